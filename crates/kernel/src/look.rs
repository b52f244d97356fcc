//! Looking: machines and their trees as the owner sees them.

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use tenure_hal::{Flash, Instant};
use tenure_store::{Overlay, ReadError, Value, ValueKind};
use tenure_wire::{Grants, MachineId, Name};

use crate::conduct::Repute;
use crate::fault::Fault;
use crate::kernel::Kernel;
use crate::lifecycle::State;
use crate::machine::Machine;
use crate::parts::Parts;
use crate::program::Program;
use crate::record::MachineRecord;
use crate::slot::Slot;

/// The value at `path` in the tree of machine `name`, and what is below.
///
/// # Errors
/// [`LookError`].
pub(crate) fn look<F: Flash>(
    parts: &mut Parts<F>,
    name: &Name,
    path: &str,
) -> Result<Look, LookError> {
    let mut tree = tree_of(parts, name)?;
    let (value, is_damaged) = match path {
        "" => (None, false),
        _ => match tree.get(path) {
            Err(ReadError::Corrupt | ReadError::Unsealable) => (None, true),
            value => (value.map_err(LookError::Store)?, false),
        },
    };
    let children = tree.children(path).map_err(LookError::Store)?;
    Ok(Look { value, is_damaged, children })
}

/// Hands over every value in the tree of machine `name`, in the order of their paths.
///
/// # Errors
/// [`LookError`]; some values may have been handed over.
pub(crate) fn each_value<F: Flash>(
    parts: &mut Parts<F>,
    name: &Name,
    mut each: impl FnMut(&str, ValueKind, &[u8]),
) -> Result<(), LookError> {
    let mut tree = tree_of(parts, name)?;
    let mut last: Option<String> = None;
    while let Some(path) = tree.next_path(last.as_deref()).map_err(LookError::Store)? {
        if let Some(value) = tree.get(&path).map_err(LookError::Store)? {
            each(&path, value.kind, &value.bytes);
        }
        last = Some(path);
    }
    Ok(())
}

/// The slots of machines whose record can't be read, and how many bytes each stores.
pub fn unreadable<F: Flash>(kernel: &Kernel<F>) -> impl Iterator<Item = (Slot, usize)> {
    let Parts { machines, storage, .. } = &kernel.parts;
    machines.unreadable().iter().map(|slot| (*slot, storage.stored_bytes(*slot)))
}

fn tree_of<'a, F: Flash>(
    parts: &'a mut Parts<F>,
    name: &Name,
) -> Result<Overlay<'a, F>, LookError> {
    let machine = parts.machines.with_name_mut(name).ok_or(LookError::NoSuchMachine)?;
    parts.storage.tree(machine).ok_or(LookError::NoSuchMachine)
}

impl<'a> MachineInfo<'a> {
    /// The status of `machine`, which stores so many bytes and waits for its turn while so
    /// much fuel is burnt, at most.
    pub(crate) fn of(machine: &'a Machine, stored_bytes: usize, wait_fuel_max: u64) -> Self {
        let running = machine.current.as_ref();
        Self {
            record: &machine.record,
            id: machine.id,
            state: machine.state,
            is_removed: machine.is_removed,
            queue_length: machine.tasks_waiting(),
            serves: running
                .map(|running| Serves { function: &running.task.function, begun: running.begun }),
            fuel_used: machine.fuel_used,
            waited_max: machine.waited_max,
            wait_fuel_max,
            is_throttled: machine.meters.is_throttled,
            is_swapped: machine.is_swapped(),
            tasks_done: machine.tasks_done,
            faults: machine.conduct.score(),
            repute: machine.conduct.repute(),
            last_fault: machine.last_fault,
            grants: &machine.grants,
            memory_bytes: machine.memory_bytes(),
            stored_bytes,
            on_engine: machine.runs_compiled
                || matches!(machine.instance, Some(Program::Engine(_))),
        }
    }
}

/// A machine as others may see it.
#[derive(Clone, Debug)]
pub struct MachineInfo<'a> {
    /// The store's record of it.
    pub record: &'a MachineRecord,
    /// Its id.
    pub id: MachineId,
    /// Whether the board's engine or code compiled from its image runs it, and not the vm alone.
    pub on_engine: bool,
    /// Its state.
    pub state: State,
    /// Whether it is in the trash.
    pub is_removed: bool,
    /// Tasks waiting.
    pub queue_length: usize,
    /// The task that it is in the middle of.
    pub serves: Option<Serves<'a>>,
    /// Fuel used since boot, or since its last update.
    pub fuel_used: u64,
    /// The longest it has waited for its turn since boot, or since its last update.
    pub waited_max: Duration,
    /// The longest that it has to wait for its turn, as the policy promises, in fuel.
    pub wait_fuel_max: u64,
    /// Whether it stands in flash and not in RAM.
    pub is_swapped: bool,
    /// Whether it doesn't run because its fuel by the second is spent.
    pub is_throttled: bool,
    /// Tasks finished since boot.
    pub tasks_done: u64,
    /// Its standing.
    pub repute: Repute,
    /// Faults that count against it.
    pub faults: u32,
    /// The last fault since boot.
    pub last_fault: Option<Fault>,
    /// Its rights, and how often it used each.
    pub grants: &'a Grants,
    /// Linear memory committed, in bytes.
    pub memory_bytes: usize,
    /// Keys and values in its tree, in bytes.
    pub stored_bytes: usize,
}

/// The task that a machine is in the middle of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Serves<'a> {
    /// The function.
    pub function: &'a str,
    /// When it was begun.
    pub begun: Instant,
}

/// The content of a path of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// The value, if there is one that can be read.
    pub value: Option<Value>,
    /// Whether there is one that can't be read.
    pub is_damaged: bool,
    /// The names of the children, in order.
    pub children: Vec<String>,
}

/// Why there is nothing to see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookError {
    /// The caller's mistake: no machine of that name.
    NoSuchMachine,
    /// The store's fault, or a path that is none.
    Store(ReadError),
}
