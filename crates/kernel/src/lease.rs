//! The end of a lease, and its renewal: the node says when.

use alloc::string::ToString;

use tenure_hal::{Flash, Instant};
use tenure_store::{Change, SEAL_BYTES, ValueKind};
use tenure_wire::host_call::HostError;
use tenure_wire::{MachineId, Term};

use crate::conduct::{Conduct, Repute};
use crate::effect::LogLevel;
use crate::faults::{conduct_bytes, conduct_path};
use crate::install::InstallError;
use crate::kernel::{KERNEL_TREE, Kernel, record_path};
use crate::lifecycle::{Event, State};

impl<F: Flash> Kernel<F> {
    /// Stops a machine whose lease is over: who waits for it is told so, and it runs no more until its
    /// lease is renewed. Its code and its tree stay; its memory, its queue and its calls go.
    pub fn end_lease(&mut self, now: Instant, id: MachineId) {
        let Some(slot) = self.slot_of_id(id) else { return };
        let Some(machine) = self.machine_mut(slot) else { return };
        if machine.state == State::Over {
            return;
        }
        let name = machine.record.name.clone();
        let suspended = machine.suspended.take();
        let (current, queue) = machine.end();
        self.forget_events(slot);
        if let Some(extent) = suspended {
            self.code.release(extent);
        }
        self.calls.remove_all_of(slot);
        for task in current.into_iter().chain(queue) {
            self.answer(now, task.reply_to, Err(HostError::LeaseOver.into()));
        }
        self.log(now, name, LogLevel::Warning, "its lease is over".to_string());
    }

    /// Gives a machine another term, under the number of the owner's word for it; one whose lease was
    /// over starts again.
    ///
    /// # Errors
    /// [`InstallError::NotFound`], [`InstallError::Stale`] if the number isn't higher than the last, or
    /// the store's; all is as before then.
    pub fn renew(
        &mut self,
        now: Instant,
        id: MachineId,
        number: u64,
        term: Term,
    ) -> Result<(), InstallError> {
        let slot = self.slot_of_id(id).ok_or(InstallError::NotFound)?;
        let machine = self.machine(slot).ok_or(InstallError::NotFound)?;
        let mut record = machine.record.clone();
        if record.placement >= number {
            return Err(InstallError::Stale);
        }
        (record.placement, record.term) = (number, term);
        let bytes = record.to_bytes().ok_or(InstallError::Record)?;
        if bytes.len() + SEAL_BYTES > self.store.value_bytes_max() {
            return Err(InstallError::Record);
        }
        let set =
            |path, value| Change::Set { tree: KERNEL_TREE, path, kind: ValueKind::Bytes, value };
        let (record_path, conduct_path) = (record_path(slot), conduct_path(slot));
        let mut changes = alloc::vec![set(&record_path, &bytes)];
        // What is held against it is held under the number of its placement.
        let conduct = machine.conduct;
        let kept = Some(conduct).filter(|conduct| *conduct != Conduct::default());
        let kept = kept.and_then(|conduct| conduct_bytes(&conduct, number));
        changes.extend(kept.iter().map(|kept| set(&conduct_path, kept)));
        self.store.batch(&changes)?;
        let Some(machine) = self.machine_mut(slot) else { return Err(InstallError::NotFound) };
        machine.record = record;
        self.go_on(now, slot, "its lease was renewed");
        Ok(())
    }

    /// Lets a machine go on whose lease isn't over after all: the time by which it was is corrected.
    pub fn resume_lease(&mut self, now: Instant, id: MachineId) {
        if let Some(slot) = self.slot_of_id(id) {
            self.go_on(now, slot, "its lease goes on: the time was corrected");
        }
    }

    fn go_on(&mut self, now: Instant, slot: usize, message: &str) {
        let Some(machine) = self.machine_mut(slot) else { return };
        if machine.state != State::Over || machine.is_removed {
            return;
        }
        machine.step(Event::Renewed);
        if machine.conduct.repute() == Repute::Banned {
            machine.state = State::Banned;
        }
        let name = machine.record.name.clone();
        self.enqueue_entry(slot);
        self.log(now, name, LogLevel::Info, message.to_string());
    }
}
