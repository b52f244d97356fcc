//! A machine's state as one row of bytes: memory, stack and tree, and the task under way.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use tenure_hal::{Flash, Instant};
use tenure_journal::Event;
use tenure_store::{Hidden, Store, TreeId, ValueKind};
use tenure_vm::Instance;
use tenure_wire::PublicKey;
use tenure_wire::host_call::{GuestBuffer, HostError};

use super::{CALL_NUMBER, event_record};
use crate::calls::CallId;
use crate::lifecycle::State;
use crate::machine::{Machine, Running, Wait};
use crate::parts::Parts;
use crate::program::Program;
use crate::slot::Slot;
use crate::task::Task;

/// The most fuel that a task can have used: centuries of it.
const FUEL_MAX: u64 = 1 << 62;

/// A machine's state.
#[derive(Serialize, Deserialize)]
struct Standing {
    /// Memory, globals and stack, as [`Instance::suspend`] writes them; `None` before the first task and after a stop.
    program: Option<Vec<u8>>,
    /// The result of its last call.
    call_result: Vec<u8>,
    /// The task under way.
    task: Option<StandingTask>,
    /// Whether it waits in a host call, and where the bytes go that this brings.
    waits: Option<Option<GuestBuffer>>,
    /// The event that it has in hand.
    event: Option<Event>,
    /// The values that it set in its tree: path, whether it is a text, and bytes.
    tree: Vec<(String, bool, Vec<u8>)>,
    /// The values that it deleted of the tree that it began with, as the store has them.
    hidden: Vec<(String, bool, Vec<u8>)>,
}

/// The task under way.
#[derive(Serialize, Deserialize)]
struct StandingTask {
    function: String,
    caller: Option<PublicKey>,
    parameter: Option<Vec<u8>>,
    callback_of: Option<u32>,
    is_event: bool,
    starting: bool,
    reply: Result<Option<Vec<u8>>, HostError>,
    words: Vec<u8>,
    fuel_used: u64,
}

impl<F: Flash> Parts<F> {
    /// The state of the machine in `slot`; `None` if it can't be written down just now.
    pub(crate) fn state_of(&mut self, slot: Slot) -> Option<Vec<u8>> {
        let Self { machines, storage, events, script, .. } = self;
        let machine = machines.get(slot)?;
        if machine.long_call.is_some() || machine.is_swapped() {
            return None;
        }
        let program = match &machine.instance {
            None => None,
            Some(Program::Engine(_)) => return None,
            Some(Program::Image(instance)) => {
                let image = storage.image(machine)?;
                let mut bytes = Vec::new();
                if instance.owed() == 0 {
                    instance.suspend(&image, &mut bytes);
                } else {
                    // Where a turn ended is no part of the state, and so what is owed since isn't.
                    let mut paid = Instance::clone(instance);
                    let mut owed = paid.owed();
                    let _ = paid.run(&image, &mut owed);
                    paid.suspend(&image, &mut bytes);
                }
                Some(bytes)
            }
        };
        // An answer that the machine hasn't got isn't part of its state.
        let pending = machine.woken.as_ref().and_then(|_| machine.noted_wait());
        let (event, handles) = match script {
            Some(script) => (script.event.clone(), script.handles),
            None if matches!(pending, Some(Wait::Event(_))) => (None, false),
            None => (events.held(slot).map(event_record), false),
        };
        let call_result = match pending {
            Some(Wait::Call(_)) => Vec::new(),
            _ => machine.call_result.clone(),
        };
        let task = machine.current.as_ref().map(|running| {
            let is_event = running.task.is_event || handles;
            let payload = event.as_ref().filter(|_| is_event).map(|event| event.payload.clone());
            StandingTask {
                function: running.task.function.clone(),
                caller: running.task.caller,
                parameter: payload.or_else(|| running.task.parameter.clone()),
                callback_of: running.task.callback_of.map(|id| id.0 & CALL_NUMBER),
                is_event,
                starting: running.starting,
                reply: running.reply.clone(),
                words: running.words.clone(),
                fuel_used: machine.task_fuel(),
            }
        });
        let standing = Standing {
            program,
            call_result,
            task,
            waits: waits(machine)?,
            event,
            tree: values(&mut storage.store, slot.tree())?,
            hidden: values(&mut storage.store, slot.hidden_tree())?,
        };
        postcard::to_allocvec(&standing).ok()
    }

    /// Makes the machine in `slot`, which was just installed, what [`Parts::state_of`] wrote; `None` if that isn't a state
    /// of its code, and it is as it was or stopped then.
    pub(crate) fn take_up_state(&mut self, slot: Slot, bytes: &[u8]) -> Option<()> {
        let (standing, rest) = postcard::take_from_bytes::<Standing>(bytes).ok()?;
        let used = standing.task.as_ref().map_or(0, |task| task.fuel_used);
        if !rest.is_empty() || used > FUEL_MAX {
            return None;
        }
        let config = self.residence(Instant::BOOT).instance_config(slot)?;
        let Self { machines, storage, script, .. } = self;
        let machine = machines.get_mut(slot)?;
        let instance = match &standing.program {
            None => None,
            Some(bytes) => {
                let image = storage.image(machine)?;
                let instance = Instance::resume(&image, bytes, &config).ok()?;
                Some(Program::Image(Box::new(instance)))
            }
        };
        set_values(&mut storage.store, slot.tree(), &standing.tree)?;
        set_values(&mut storage.store, slot.hidden_tree(), &standing.hidden)?;
        machine.hidden = Hidden::load(&mut storage.store, slot.hidden_tree()).ok()?;
        machine.queue.clear();
        machine.instance = instance;
        machine.call_result = standing.call_result;
        machine.state = match (&standing.task, standing.waits) {
            (None, None) => State::Idle,
            (Some(_), None) => State::Ready,
            (Some(_), Some(_)) => State::Waiting,
            (None, Some(_)) => return None,
        };
        machine.wait = standing.waits.map(|into| match into {
            Some(into) => Wait::Keys(CallId(0), into),
            None => Wait::Call(CallId(0)),
        });
        if let Some(script) = script {
            script.event = standing.event;
            script.handles = standing.task.as_ref().is_some_and(|task| task.is_event);
        }
        machine.current = standing.task.map(|task| {
            let running = Task::of_kernel(task.function, task.parameter);
            Box::new(Running {
                task: Task {
                    caller: task.caller,
                    callback_of: task.callback_of.map(CallId),
                    ..running
                },
                starting: task.starting,
                begun: Instant::BOOT,
                reply: task.reply,
                words: task.words,
                fuel_used: task.fuel_used,
            })
        });
        Some(())
    }
}

/// Whether `machine` waits in a host call, and where its bytes go; `None` if that isn't known.
#[allow(clippy::option_option)]
fn waits(machine: &Machine) -> Option<Option<Option<GuestBuffer>>> {
    let wait = match (machine.state, &machine.woken) {
        (State::Waiting, _) => machine.wait,
        // It was told what it waited for, and hasn't gone on.
        (_, Some(_)) => Some(machine.noted_wait()?),
        _ => return Some(None),
    };
    Some(wait.map(|wait| match wait {
        Wait::Keys(_, into) | Wait::Secret(_, into) => Some(into),
        Wait::Call(_) | Wait::Until(_) | Wait::Event(_) => None,
    }))
}

/// The values of a tree, in the order of their paths; `None` if the store fails.
fn values<F: Flash>(store: &mut Store<F>, tree: TreeId) -> Option<Vec<(String, bool, Vec<u8>)>> {
    let mut values = Vec::new();
    let mut last: Option<String> = None;
    while let Some(path) = store.next_path(tree, last.as_deref()).ok()? {
        if let Some(value) = store.get(tree, &path).ok()? {
            values.push((path.clone(), value.kind == ValueKind::Text, value.bytes));
        }
        last = Some(path);
    }
    Some(values)
}

fn set_values<F: Flash>(
    store: &mut Store<F>,
    tree: TreeId,
    values: &[(String, bool, Vec<u8>)],
) -> Option<()> {
    for (path, is_text, bytes) in values {
        let kind = if *is_text { ValueKind::Text } else { ValueKind::Bytes };
        store.set(tree, path, kind, bytes).ok()?;
    }
    Some(())
}
