//! Machines' journals: everything that enters a machine is written down at its door, and played to it again.
//!
//! Invariants:
//! - A record is written where the machine is told something that doesn't follow from its state and its code: where a
//!   task begins, where a wait ends, and where a host call is answered.
//! - A journal begins with the machine's whole state, at the beginning of a turn. What enters a machine before that isn't
//!   written.
//! - Where turns end isn't written: a machine can't see it. What happens to a machine from outside says how much fuel its
//!   task had used.
//! - A machine whose journal is played knows nothing of this: the same code serves its host calls, and asks the
//!   [`Script`] for what the device alone knows.
//!
//! The heap is used for the page under way (as long as a turn's records and [`PAGE_BYTES`]) and for [`PAGES_MAX`] pages
//! that the node hasn't taken.

mod playing;
mod script;
mod state;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::ToString;
use alloc::vec::Vec;

use tenure_hal::{Flash, FlashGeometry, Instant};
use tenure_journal::{Event, Mark, PageWriter, Record, Start, Task as JournalTask, Why};
use tenure_wire::{CodeKind, Digest, LogLevel, MachineId};

pub use playing::{Player, Step, Unplayable, fuel_of_turns};
pub(crate) use script::Script;
pub use script::{Difference, Diverged};

use crate::fault::FaultKind;
use crate::kernel::Kernel;
use crate::machine::{Machine, Wait};
use crate::parts::Parts;
use crate::program::Program;
use crate::slot::Slot;
use crate::task::Task;

/// A page ends with the turn in which its records have so many bytes.
const PAGE_BYTES: usize = 1024;
/// The most pages that wait for the node. One that finds no room is dropped, and the journal begins anew.
const PAGES_MAX: usize = 16;
/// The most charges that wait for the journal to begin again. If there are more, it says that something is missing.
const CHARGES_MAX: usize = 32;

/// A page of a machine's journal, for the node to keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalPage {
    /// The machine.
    pub machine: MachineId,
    /// The page's number.
    pub number: u64,
    /// Whether it begins with the machine's state.
    pub is_start: bool,
    /// How long its records are, in bytes: what isn't its head or the machine's state.
    pub record_bytes: usize,
    /// The page, as [`tenure_journal::Page`] reads it.
    pub bytes: Vec<u8>,
}

/// The pages that wait for the node.
pub(crate) type Pages = VecDeque<JournalPage>;

/// A machine's journal.
pub(crate) struct Journal {
    /// The page under way; absent until the machine's state was written.
    writer: Option<PageWriter>,
    /// Whether that page begins with the machine's state.
    is_start: bool,
    /// The number of the page under way, or of the next one.
    number: u64,
    /// Host calls since the last record that follow from the machine's state unless the device fails them.
    calls: u32,
    /// Turns, and the fuel that was billed, since the machine's state was written.
    turns: u64,
    total: u64,
    /// Fuel that the machine owed then.
    owed_before: u64,
    /// Fuel that it owed when it was stopped, since then: nobody pays it.
    lost: u64,
    /// Fuel that it owed after its last turn, for the time that it is in flash.
    owed: u64,
    /// The machine's wait, or its last one.
    waits: Option<Wait>,
    /// Whether the page ends with the turn, however short it is.
    is_urgent: bool,
    /// Whether nothing that was billed since the last page is missing in it and in `charges`.
    continues: bool,
    /// Bytes that were written to flash for the machine since then, one number a write.
    charges: Vec<u64>,
}

impl Machine {
    /// Writes a record into the machine's journal, if it has one that has begun.
    pub(crate) fn note(&mut self, record: impl FnOnce() -> Record) {
        let Some(journal) = &mut self.journal else { return };
        let Some(writer) = &mut journal.writer else { return };
        writer.write(&record());
        journal.calls = 0;
    }

    /// Writes down that the machine is stopped; the page ends with the turn.
    pub(crate) fn note_stop(&mut self, why: Why) {
        let (fuel, owed) = (self.task_fuel(), self.owed());
        self.note(|| Record::Stopped { fuel, why });
        if let Some(journal) = &mut self.journal {
            journal.is_urgent = true;
            journal.lost += owed;
        }
    }

    /// Writes down that the machine's running state is suspended, and so loses what its stack holds beyond the frame in use.
    pub(crate) fn note_suspension(&mut self) {
        let fuel = self.task_fuel();
        self.note(|| Record::Suspended { fuel });
    }

    /// Writes down that the machine was billed for bytes that were written to flash outside of its host calls.
    pub(crate) fn note_charge(&mut self, flash_bytes: u64) {
        let fuel = self.task_fuel();
        let Some(journal) = &mut self.journal else { return };
        match flash_bytes {
            0 => {}
            _ if journal.writer.is_some() => self.note(|| Record::Charged { fuel, flash_bytes }),
            _ if journal.charges.len() < CHARGES_MAX => journal.charges.push(flash_bytes),
            _ => journal.continues = false,
        }
    }

    /// Remembers what the machine waits for.
    pub(crate) fn note_wait(&mut self, wait: Wait) {
        if let Some(journal) = &mut self.journal {
            journal.waits = Some(wait);
        }
    }

    /// The machine's wait, or its last one, as its journal knows.
    pub(crate) fn noted_wait(&self) -> Option<Wait> {
        self.journal.as_ref()?.waits
    }

    /// Counts a host call that follows from the machine's state unless the device fails it; returns how many there were
    /// since the last record.
    pub(crate) fn note_call(&mut self) -> u32 {
        let Some(journal) = &mut self.journal else { return 0 };
        journal.calls = journal.calls.saturating_add(1);
        journal.calls
    }

    /// How many such calls there were since the last record.
    pub(crate) fn noted_calls(&self) -> u32 {
        self.journal.as_ref().map_or(0, |journal| journal.calls)
    }

    /// The fuel that the task under way has used, what it owes of it included, without what its turns cost; 0 if there
    /// is none. It is the same wherever the machine stands at the same instruction.
    pub(crate) fn task_fuel(&self) -> u64 {
        self.current.as_ref().map_or(0, |running| running.fuel_used + self.owed())
    }

    /// Fuel that the machine has used and not paid.
    pub(crate) fn owed(&self) -> u64 {
        match &self.instance {
            Some(Program::Image(instance)) => instance.owed(),
            None if self.is_swapped() => self.journal.as_ref().map_or(0, |journal| journal.owed),
            _ => 0,
        }
    }
}

/// A task as it is written down.
pub(crate) fn task_record(now: Instant, task: &Task, event: Option<Event>) -> Record {
    Record::Task(JournalTask {
        at_ms: now.as_millis(),
        function: task.function.clone(),
        caller: task.caller,
        parameter: task.parameter.clone(),
        callback_of: task.callback_of.map(|id| id.0 & CALL_NUMBER),
        event,
    })
}

/// The bits of a call's number that its machine knows.
pub(crate) const CALL_NUMBER: u32 = 0x7FFF_FFFF;

/// An event as it is written down.
pub(crate) fn event_record(event: tenure_pipeline::Event<'_>) -> Event {
    Event {
        topic: event.topic.to_string(),
        payload: event.payload.to_vec(),
        dropped: event.dropped_before,
    }
}

/// The reason for a fault, as it is written down.
pub(crate) fn why(kind: FaultKind) -> Why {
    match kind {
        FaultKind::Trap(kind) => Why::Trap(kind as u8),
        FaultKind::Breach(_) => Why::Breach,
        FaultKind::BadPointer => Why::BadPointer,
        FaultKind::Aborted => Why::Aborted,
        FaultKind::TaskFuel => Why::TaskFuel,
        FaultKind::Memory => Why::Memory,
        FaultKind::Image => Why::Image,
        FaultKind::Suspended => Why::Suspended,
        FaultKind::Place => Why::Place,
        FaultKind::Function => Why::Function,
        FaultKind::Watchdog => Why::Watchdog,
    }
}

impl<F: Flash> Parts<F> {
    /// Begins the journal of the machine in `slot` with its state, if that is due and can be written.
    pub(crate) fn begin_journal(&mut self, slot: Slot, now: Instant) {
        let Some(machine) = self.machines.get(slot) else { return };
        if machine.journal.as_ref().is_none_or(|journal| journal.writer.is_some())
            || machine.record.code != CodeKind::WebAssembly
        {
            return;
        }
        let Some(state) = self.state_of(slot) else { return };
        // A replay begins without what that doesn't have.
        self.forget_dead_slots(slot);
        let is_sealed = self.storage.sealer.is_some();
        let FlashGeometry { sector_bytes, program_bytes, .. } =
            self.storage.store.flash().geometry();
        let Some(machine) = self.machines.get_mut(slot) else { return };
        let (fuel, owed) = (machine.task_fuel(), machine.owed());
        let continues = machine.journal.as_ref().is_some_and(|journal| journal.continues);
        let start = Start {
            machine: machine.id,
            public_key: machine.public_key(),
            name: machine.record.name.clone(),
            package: machine.record.package,
            budget: machine.record.budget,
            log: machine.record.log,
            is_sealed,
            sector_bytes,
            program_bytes,
            continues,
            owed,
            at_ms: now.as_millis(),
            state,
        };
        let Some(journal) = &mut machine.journal else { return };
        let Some(mut writer) = PageWriter::begin(journal.number, Some(&start)) else { return };
        for flash_bytes in core::mem::take(&mut journal.charges) {
            writer.write(&Record::Charged { fuel, flash_bytes });
        }
        journal.writer = Some(writer);
        (journal.is_start, journal.calls, journal.turns, journal.total) = (true, 0, 0, 0);
        (journal.owed_before, journal.lost, journal.continues) = (owed, 0, true);
    }

    /// Has the machine in `slot` forget what its stack holds beyond the frame in use, as it does when it is suspended.
    pub(crate) fn forget_dead_slots(&mut self, slot: Slot) {
        let Self { machines, storage, .. } = self;
        let Some(machine) = machines.get_mut(slot) else { return };
        let mut program = machine.instance.take();
        if let (Some(Program::Image(instance)), Some(image)) =
            (&mut program, storage.image(machine))
        {
            instance.forget_dead_slots(&image);
        }
        machine.instance = program;
    }

    /// Counts a turn of the machine in `slot`, and ends its journal's page if that is long enough.
    pub(crate) fn end_turn_of_journal(&mut self, slot: Slot, used: u64) {
        let Some(machine) = self.machines.get_mut(slot) else { return };
        let owed = machine.owed();
        let Some(journal) = &mut machine.journal else { return };
        journal.owed = owed;
        let Some(writer) = &journal.writer else { return };
        journal.turns += 1;
        journal.total += used;
        if writer.record_bytes() >= PAGE_BYTES || journal.is_urgent {
            self.end_journal_page(slot, None, None);
        }
    }

    /// Ends the page under way of the machine in `slot` with a mark.
    pub(crate) fn end_journal_page(
        &mut self,
        slot: Slot,
        state: Option<Digest>,
        receipt: Option<u64>,
    ) {
        let Some(machine) = self.machines.get(slot) else { return };
        let (fuel, owed) = (machine.task_fuel(), machine.owed());
        self.end_page(slot, owed, Mark { fuel, state, receipt, ..Mark::default() });
    }

    /// Ends the journal of a machine that leaves its slot.
    pub(crate) fn end_journal(&mut self, slot: Slot) {
        let Some(machine) = self.machines.get_mut(slot) else { return };
        machine.note_stop(Why::Ended);
        // Its task is over, and what it owed is lost.
        self.end_page(slot, 0, Mark::default());
    }

    /// Ends the page under way of the machine in `slot`, which owes so much, with a mark that lacks the counts.
    fn end_page(&mut self, slot: Slot, owed: u64, mark: Mark) {
        let Some(machine) = self.machines.get_mut(slot) else { return };
        let id = machine.id;
        let Some(journal) = &mut machine.journal else { return };
        let Some(mut writer) = journal.writer.take() else { return };
        let Journal { turns, total, owed_before, lost, number, is_start, .. } = **journal;
        let unpaid = owed + lost;
        let total = (total + unpaid).saturating_sub(owed_before);
        writer.write(&Record::Mark(Mark { turns, total, unpaid, ..mark }));
        (journal.calls, journal.is_urgent) = (0, false);
        if self.pages.len() >= PAGES_MAX {
            journal.continues = false;
            return;
        }
        let record_bytes = writer.record_bytes();
        let bytes = writer.finish();
        self.pages.push_back(JournalPage { machine: id, number, is_start, record_bytes, bytes });
        journal.number += 1;
        journal.is_start = false;
        journal.writer = PageWriter::begin(journal.number, None);
    }
}

/// The journals of a kernel's machines.
pub struct MachineJournals<'k, F>(&'k mut Kernel<F>);

impl<'k, F: Flash> MachineJournals<'k, F> {
    /// The journals of this kernel's machines.
    pub fn of(kernel: &'k mut Kernel<F>) -> Self {
        Self(kernel)
    }

    /// Has the machine with that id keep a journal from its next turn on, whose next page has that number; returns whether
    /// there is such a machine that runs wasm. The vm runs it from its next start on, and no engine.
    pub fn keep(&mut self, id: MachineId, number: u64) -> bool {
        let Some(machine) = self.0.parts.machines.with_id_mut(id) else { return false };
        if machine.record.code != CodeKind::WebAssembly {
            return false;
        }
        machine.engine_refused = true;
        machine.journal.get_or_insert_with(|| {
            Box::new(Journal {
                writer: None,
                is_start: false,
                number,
                calls: 0,
                turns: 0,
                total: 0,
                owed_before: 0,
                lost: 0,
                owed: 0,
                waits: None,
                is_urgent: false,
                continues: false,
                charges: Vec::new(),
            })
        });
        true
    }

    /// Whether the machine with that id keeps a journal.
    pub fn keeps(&self, id: MachineId) -> bool {
        self.0.parts.machines.with_id(id).is_some_and(|machine| machine.journal.is_some())
    }

    /// How long the records of the page under way are of the machine with that id, in bytes.
    pub fn page_bytes(&self, id: MachineId) -> usize {
        let journal =
            self.0.parts.machines.with_id(id).and_then(|machine| machine.journal.as_ref());
        let writer = journal.and_then(|journal| journal.writer.as_ref());
        writer.map_or(0, PageWriter::record_bytes)
    }

    /// Ends the journal of the machine with that id, with its last page.
    pub fn drop(&mut self, id: MachineId) {
        self.end_page(id, None, None);
        if let Some(machine) = self.0.parts.machines.with_id_mut(id) {
            machine.journal = None;
        }
    }

    /// The next page that was ended, for the node to keep.
    pub fn take_page(&mut self) -> Option<JournalPage> {
        self.0.parts.pages.pop_front()
    }

    /// The state of the machine with that id, to be hashed: the same bytes wherever the same happened to it. `None` if it
    /// is in the middle of a long host call, or an engine runs it.
    pub fn state(&mut self, id: MachineId) -> Option<Vec<u8>> {
        let slot = self.0.parts.machines.with_id(id)?.slot;
        self.0.parts.state_of(slot)
    }

    /// How long the machine's state is, in bytes: what its journal begins with. `None` if the vm doesn't hold it just now.
    pub fn state_bytes(&mut self, id: MachineId) -> Option<u64> {
        let machine = self.0.parts.machines.with_id(id)?;
        let is_held = matches!(machine.instance, Some(Program::Image(_)));
        let state = if is_held { self.state(id) } else { None };
        state.map(|state| state.len() as u64)
    }

    /// How long the memory is with which the machine begins, or that it has, in bytes.
    pub fn memory_bytes(&self, id: MachineId) -> u64 {
        let parts = &self.0.parts;
        let Some(machine) = parts.machines.with_id(id) else { return 0 };
        let image = parts.storage.image(machine);
        let initial =
            image.and_then(|image| image.memory_bytes()).map_or(0, |(initial, _)| initial);
        initial.max(machine.memory_bytes() as u64)
    }

    /// The most bytes that may be written to flash for the machine at once, as its budget has it.
    pub fn flash_bytes_at_once(&self, id: MachineId) -> u64 {
        let machine = self.0.parts.machines.with_id(id);
        machine.map_or(0, |machine| machine.meters.flash.capacity())
    }

    /// Writes a line about the machine's journal into the machine's log, where its owner and its tenant look for it.
    pub fn remark(&mut self, now: Instant, id: MachineId, level: LogLevel, message: &str) {
        if let Some(slot) = self.0.parts.machines.with_id(id).map(|machine| machine.slot) {
            self.0.parts.log(now, slot, level, message);
        }
    }

    /// Ends the page under way of the machine with that id with a mark, which says the digest of the machine's state and
    /// the number of the receipt whose period ends.
    pub fn end_page(&mut self, id: MachineId, state: Option<Digest>, receipt: Option<u64>) {
        if let Some(slot) = self.0.parts.machines.with_id(id).map(|machine| machine.slot) {
            self.0.parts.end_journal_page(slot, state, receipt);
        }
    }

    /// Has the journal of the machine with that id begin with its state again, at its next turn.
    pub fn renew(&mut self, id: MachineId) {
        self.end_page(id, None, None);
        let machine = self.0.parts.machines.with_id_mut(id);
        if let Some(journal) = machine.and_then(|machine| machine.journal.as_mut()) {
            journal.writer = None;
        }
    }
}
