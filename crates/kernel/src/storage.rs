//! The kernel's use of flash: code, machines' trees, and its own records of them.
//!
//! Methods are handed the machine whose things they are about; none knows a queue, a call or a log.

use alloc::boxed::Box;
use alloc::vec::Vec;

use serde::de::DeserializeOwned;
use tenure_hal::{Flash, Instant};
use tenure_store::{
    Base, BatchError, Change, Hidden, Overlay, ReadError, SEAL_BYTES, SetError, Store, ValueKind,
};
use tenure_vm::Image;
use tenure_wire::{CodeKind, Digest, MachineId};
use zeroize::{Zeroize as _, Zeroizing};

use crate::code::{CodeRegion, Extent};
use crate::compiled::CompiledCode;
use crate::conduct::{Conduct, Repute};
use crate::machine::{CodeToken, Machine};
use crate::native::NativeBinary;
use crate::program::callable;
use crate::record::MachineRecord;
use crate::sealing::Sealer;
use crate::slot::{KERNEL_TREE, Slot};
use crate::timer::Timer;

/// The digest of its package that stands before a native binary in code flash.
const DIGEST_BYTES: usize = 32;
/// The path in the kernel's tree below which is kept what is held against machines, by slot.
const CONDUCT_PATH: &str = "conduct";
/// The path in the kernel's tree below which timers are kept, by slot.
const TIMERS_PATH: &str = "timers";
/// The path in the kernel's tree below which slots are marked whose machines the owner stopped; each mark
/// holds the id of its machine, so that it doesn't stop another one in that slot.
const HALTED_PATH: &str = "halted";

/// The store, code flash, and what seals them.
pub(crate) struct Storage<F> {
    pub(crate) store: Store<F>,
    pub(crate) code: CodeRegion<F>,
    pub(crate) sealer: Option<Box<dyn Sealer>>,
}

impl<F: Flash> Storage<F> {
    /// The image of `machine`, if it has one, which was checked when it took its slot.
    pub(crate) fn image(&self, machine: &Machine) -> Option<Image<'_>> {
        let Some(CodeToken::Image(token)) = &machine.token else { return None };
        Image::reopen(self.code.view(machine.record.image).ok()?, token).ok()
    }

    /// The native binary of `machine`, if it has one, which was checked when it took its slot.
    pub(crate) fn binary(&self, machine: &Machine) -> Option<NativeBinary<'_>> {
        let Some(CodeToken::Native) = machine.token else { return None };
        let bytes = self.code.view(machine.record.image).ok()?;
        NativeBinary::reopen(bytes.get(DIGEST_BYTES..)?).ok()
    }

    /// The code that was compiled from the image of `machine`, if it runs that.
    pub(crate) fn compiled(&self, machine: &Machine) -> Option<CompiledCode<'_>> {
        let faster = machine.record.faster.filter(|_| machine.runs_compiled)?;
        CompiledCode::reopen(self.code.view(faster).ok()?).ok()
    }

    /// Whether the code beside the image of `machine` is whole, was compiled from that image, and is for
    /// the processor `kind`.
    pub(crate) fn is_compiled(&self, machine: &Machine, kind: CodeKind) -> bool {
        let Some(image) = self.image(machine) else { return false };
        let faster = machine.record.faster.and_then(|faster| self.code.view(faster).ok());
        faster
            .and_then(|bytes| CompiledCode::parse(bytes).ok())
            .is_some_and(|compiled| compiled.kind() == kind && compiled.is_of(&image))
    }

    /// Whether the code of `machine` offers `function` in the form that tasks have: no parameters, no
    /// results.
    pub(crate) fn has_function(&self, machine: &Machine, function: &str) -> bool {
        match self.image(machine) {
            Some(image) => callable(&image, function).is_some(),
            None => self.binary(machine).is_some_and(|binary| binary.function(function).is_some()),
        }
    }

    /// Checks the code that `record` names, and the tree that comes with it; `None` if they are damaged.
    pub(crate) fn checked_code(&self, record: &MachineRecord) -> Option<CodeToken> {
        let MachineRecord { code, image, package, .. } = record;
        let bytes = self.code.view(*image).ok()?;
        self.base(record.base)?;
        match code {
            CodeKind::WebAssembly => {
                let image = Image::parse_bound(bytes, &package.0).ok()?;
                Some(CodeToken::Image(image.token()))
            }
            kind => {
                let binary = NativeBinary::parse(bytes.strip_prefix(&package.0)?).ok()?;
                (binary.kind() == *kind).then_some(CodeToken::Native)
            }
        }
    }

    /// The tree that a machine began with, unless it is damaged.
    pub(crate) fn base(&self, extent: Option<Extent>) -> Option<Base<'_>> {
        base_in(&self.code, extent)
    }

    /// The tree of `machine`: what it changed, on top of what its package gave it. `None` if that is
    /// damaged.
    pub(crate) fn tree<'a>(&'a mut self, machine: &'a mut Machine) -> Option<Overlay<'a, F>> {
        Some(Overlay {
            store: &mut self.store,
            base: base_in(&self.code, machine.record.base)?,
            hidden: &mut machine.hidden,
            tree: machine.slot.tree(),
            hidden_tree: machine.slot.hidden_tree(),
        })
    }

    /// Bytes that the machine in `slot` stores: its changes, and not the tree that it began with.
    pub(crate) fn stored_bytes(&self, slot: Slot) -> usize {
        self.store.stored_bytes(slot.tree()) + self.store.stored_bytes(slot.hidden_tree())
    }

    /// Whether the budget of `machine` has room for a record of `bytes` in the place of what it set at `path`.
    pub(crate) fn has_budget_for(
        &mut self,
        machine: &Machine,
        path: &str,
        bytes: usize,
    ) -> Result<bool, ReadError> {
        let tree = machine.slot.tree();
        let replaced = match self.store.get(tree, path) {
            Ok(Some(value)) => self.store.record_bytes(tree, path, &value.bytes),
            Ok(None) | Err(ReadError::Corrupt | ReadError::Unsealable) => 0,
            Err(error) => return Err(error),
        };
        let kept = self.stored_bytes(machine.slot).saturating_sub(replaced);
        Ok(kept + bytes <= machine.record.budget.stored_bytes as usize)
    }

    /// Puts what `machine` has stored up to now down to its bill: before that changes, and before the
    /// bill is taken.
    pub(crate) fn bill(&self, machine: &mut Machine, now: Instant) {
        let stored = self.stored_bytes(machine.slot) as u64;
        let code: u64 = machine.record.extents().map(|extent| u64::from(extent.bytes)).sum();
        let span_ms = now.as_millis().saturating_sub(machine.stored_until.as_millis());
        machine.usage.stored_byte_ms += stored.saturating_mul(span_ms);
        machine.usage.code_byte_ms += code.saturating_mul(span_ms);
        if span_ms > 0 {
            machine.stored_until = now;
        }
    }

    /// The values that the machine in `slot` had deleted of the tree that it began with.
    pub(crate) fn recall_hidden(&mut self, slot: Slot) -> Result<Hidden, ReadError> {
        Hidden::load(&mut self.store, slot.hidden_tree())
    }

    /// The conduct that is held against the machine of that record since before the device started.
    pub(crate) fn recall_conduct(
        &mut self,
        slot: Slot,
        record: &MachineRecord,
        now: Instant,
    ) -> Conduct {
        // A package's conduct before an update doesn't count any more.
        match self.recall::<(u64, Repute, u32)>(&slot.path(CONDUCT_PATH)) {
            Some((placement, repute, score)) if placement == record.placement => {
                Conduct::remembered(repute, score, now)
            }
            _ => Conduct::default(),
        }
    }

    /// Writes down what is held against a machine. If the store has no room for that, it lasts until
    /// the device restarts.
    pub(crate) fn keep_conduct(&mut self, machine: &Machine) {
        let (conduct, placement) = (machine.conduct, machine.record.placement);
        let path = machine.slot.path(CONDUCT_PATH);
        if conduct == Conduct::default() {
            let _ = self.store.delete(KERNEL_TREE, &path);
            return;
        }
        if let Some(bytes) = conduct_bytes(&conduct, placement) {
            let _ = self.store.set(KERNEL_TREE, &path, ValueKind::Bytes, &bytes);
        }
    }

    /// Writes the record of a machine whose placement or term changed, and with it what is held against
    /// it, which is held under the number of its placement.
    pub(crate) fn keep_term(
        &mut self,
        slot: Slot,
        record: &[u8],
        conduct: &Conduct,
        placement: u64,
    ) -> Result<(), BatchError> {
        let (record_path, conduct_path) = (slot.record_path(), slot.path(CONDUCT_PATH));
        let kept = Some(conduct).filter(|conduct| **conduct != Conduct::default());
        let kept = kept.and_then(|conduct| conduct_bytes(conduct, placement));
        let mut changes = alloc::vec![set(&record_path, record)];
        changes.extend(kept.iter().map(|kept| set(&conduct_path, kept)));
        self.store.batch(&changes)
    }

    /// Writes down `timers` as those of a machine, and charges it for that; `machine.timers` stays as it is.
    pub(crate) fn keep_timers(
        &mut self,
        machine: &mut Machine,
        now: Instant,
        timers: &[Timer],
    ) -> Result<(), KeepTimersError> {
        let kept = (machine.id, machine.record.package, timers);
        let bytes = postcard::to_allocvec(&kept).map_err(|_| KeepTimersError::Format)?;
        debug_assert!(bytes.len() + SEAL_BYTES <= self.store.value_bytes_max());
        let path = machine.slot.path(TIMERS_PATH);
        let appended = self.store.record_bytes(KERNEL_TREE, &path, &bytes);
        self.store
            .set(KERNEL_TREE, &path, ValueKind::Bytes, &bytes)
            .map_err(KeepTimersError::Store)?;
        machine.charge_flash(now, appended);
        Ok(())
    }

    /// The timers that `machine` had set, or else those of its package, begun anew.
    pub(crate) fn timers_anew(
        &mut self,
        machine: &Machine,
        unix_us: Option<u64>,
        now: Instant,
    ) -> Vec<Timer> {
        let mut timers = self
            .recall_timers(machine)
            .unwrap_or_else(|| machine.record.timers.iter().map(Timer::of_package).collect());
        for timer in &mut timers {
            timer.due = None;
            timer.begin(now, unix_us);
        }
        timers
    }

    /// Marks a machine as stopped by its owner.
    pub(crate) fn keep_halt(&mut self, machine: &Machine) -> Result<(), BatchError> {
        self.store.batch(&[set(&machine.slot.path(HALTED_PATH), &machine.id.0)])
    }

    /// Takes the mark from the machine in a slot.
    pub(crate) fn forget_halt(&mut self, slot: Slot) -> Result<(), BatchError> {
        self.store.batch(&[delete(&slot.path(HALTED_PATH))])
    }

    /// Keeps a machine that is about to take its slot from running, if its owner stopped it before.
    pub(crate) fn recall_halt(&mut self, machine: &mut Machine) {
        let mark = self.store.get(KERNEL_TREE, &machine.slot.path(HALTED_PATH)).ok().flatten();
        if mark.is_some_and(|mark| mark.bytes == machine.id.0) {
            machine.halt();
            machine.stay_down();
        }
    }

    /// The timers that a machine had when it last set or ended one, if it is the same and of the same package.
    fn recall_timers(&mut self, machine: &Machine) -> Option<Vec<Timer>> {
        match self.recall::<(MachineId, Digest, Vec<Timer>)>(&machine.slot.path(TIMERS_PATH)) {
            Some((id, package, timers))
                if (id, package) == (machine.id, machine.record.package) =>
            {
                Some(timers)
            }
            _ => None,
        }
    }

    /// Gives the tree of a machine that is new in its slot its seal.
    pub(crate) fn seal_tree(&mut self, slot: Slot, record: &MachineRecord) {
        if let Some(sealer) = &self.sealer {
            self.store.seal_tree(slot.tree(), Some(sealer.machine_tree(record)));
        }
    }

    /// Forgets the key of the machine that was in the slot.
    pub(crate) fn unseal_tree(&mut self, slot: Slot) {
        self.store.seal_tree(slot.tree(), None);
    }

    /// A machine's running state in the form in which it goes to flash. What it was before is wiped.
    pub(crate) fn sealed_state(&mut self, record: &MachineRecord, mut state: Vec<u8>) -> Vec<u8> {
        let Some(sealer) = &mut self.sealer else { return state };
        // Sealing appends to it, and room for that must not leave a copy behind.
        let mut sealed = if state.capacity() - state.len() >= SEAL_BYTES {
            state
        } else {
            let mut roomy = Vec::with_capacity(state.len() + SEAL_BYTES);
            roomy.extend_from_slice(&state);
            state.zeroize();
            roomy
        };
        sealer.seal_state(record, &mut sealed);
        sealed
    }

    /// A machine's running state as it was before it was sealed: `Some(None)` if nothing seals it,
    /// `None` if it doesn't open.
    #[allow(clippy::option_option)]
    pub(crate) fn opened_state(
        &self,
        record: &MachineRecord,
        sealed: &[u8],
    ) -> Option<Option<Zeroizing<Vec<u8>>>> {
        let Some(sealer) = &self.sealer else { return Some(None) };
        let mut state = Zeroizing::new(sealed.to_vec());
        sealer.open_state(record, &mut state).ok()?;
        Some(Some(state))
    }

    /// Returns the room of what was written down of a machine that goes on as it is, or never does.
    pub(crate) fn discard_state(&mut self, machine: &mut Machine) {
        if let Some(extent) = machine.suspended.take() {
            self.code.release(extent);
        }
    }

    /// The value at `path` in the kernel's tree, if it is there and has its form.
    fn recall<T: DeserializeOwned>(&mut self, path: &str) -> Option<T> {
        let value = self.store.get(KERNEL_TREE, path).ok().flatten()?;
        postcard::from_bytes(&value.bytes).ok()
    }
}

/// Why timers were not written down.
pub(crate) enum KeepTimersError {
    /// They have no form in bytes.
    Format,
    /// The store's error.
    Store(SetError),
}

/// A change that sets a value of the kernel's tree.
pub(crate) fn set<'a>(path: &'a str, value: &'a [u8]) -> Change<'a> {
    Change::Set { tree: KERNEL_TREE, path, kind: ValueKind::Bytes, value }
}

/// A change that deletes a value of the kernel's tree.
pub(crate) fn delete(path: &str) -> Change<'_> {
    Change::Delete { tree: KERNEL_TREE, path }
}

/// The tree that stands in `extent`, or an empty one; `None` if it is damaged.
fn base_in<F: Flash>(code: &CodeRegion<F>, extent: Option<Extent>) -> Option<Base<'_>> {
    extent.map_or(Some(Base::EMPTY), |extent| Base::open(code.view(extent).ok()?))
}

/// The record of the conduct of a machine under that placement.
fn conduct_bytes(conduct: &Conduct, placement: u64) -> Option<Vec<u8>> {
    postcard::to_allocvec(&(placement, conduct.repute(), conduct.score())).ok()
}
