//! What tasks and host calls cost, in fuel, beside the fuel of the machine's own instructions.
//!
//! Without a price a machine could keep the device busy with host calls that its slice doesn't
//! show. The unit is the vm's: about one executed instruction.

use tenure_wire::host_call::HostCall;
use tenure_wire::limits::PARAMETER_BYTES_MAX;

/// Beginning a task and clearing up after it.
pub(crate) const TASK: u64 = 300;
/// The most that one host call costs, lists of long trees aside.
pub(crate) const HOST_CALL_MAX: u64 = BASE + PARAMETER_BYTES_MAX as u64 * RANDOM_PER_BYTE;

/// Erasing and writing flash, for each byte of a machine that makes room for another.
const SWAP_PER_BYTE: u64 = 10;

/// What it costs to bring `bytes` of a machine to flash.
pub(crate) fn of_swap(bytes: u64) -> u64 {
    bytes * SWAP_PER_BYTE
}

/// What every host call costs.
const BASE: u64 = 30;
/// A lookup in the tree.
const TREE_READ: u64 = 500;
/// A change of the tree: one append to flash.
const TREE_WRITE: u64 = 5_000;
/// Handing a call to another machine.
const CALL: u64 = 2_000;
/// Going through all subscriptions.
const PUBLISH: u64 = 1_000;
/// Looking for one's own subscription, or for its next event.
const SUBSCRIPTION: u64 = 200;
/// Each queue that an event is put into.
const QUEUED_EVENT: u64 = 50;
/// Random bytes come from a key stream or slow hardware.
const RANDOM_PER_BYTE: u64 = 8;
/// Copying between machine and kernel.
const BYTES_PER_FUEL: u64 = 4;

/// Each name in a list of a tree: one step in the store's order.
const LISTED_NAME: u64 = 100;

/// The fuel that `call` costs. No call moves more bytes than a parameter has, whatever length the
/// machine alleges.
pub(crate) fn of(call: &HostCall) -> u64 {
    let bytes = |length: usize| length.min(PARAMETER_BYTES_MAX) as u64 / BYTES_PER_FUEL;
    BASE + match call {
        HostCall::log { message, .. } | HostCall::abort { message } => bytes(message.length()),
        HostCall::parameter_read { into, .. } | HostCall::result_read { into, .. } => {
            bytes(into.capacity())
        }
        HostCall::reply { value } => value.map_or(0, |value| bytes(value.length())),
        HostCall::tree_get { .. } | HostCall::tree_list { .. } => TREE_READ,
        HostCall::tree_set { value, .. } => TREE_WRITE + bytes(value.length()),
        HostCall::tree_delete { .. } => TREE_WRITE,
        HostCall::call { parameter, .. } | HostCall::queue { parameter, .. } => {
            CALL + parameter.map_or(0, |parameter| bytes(parameter.length()))
        }
        HostCall::resolve { .. } => CALL,
        HostCall::secret_read { into, .. } => TREE_READ + bytes(into.capacity()),
        HostCall::random { into } => {
            into.capacity().min(PARAMETER_BYTES_MAX) as u64 * RANDOM_PER_BYTE
        }
        HostCall::peers { .. } => TREE_READ,
        HostCall::publish { payload, .. } => PUBLISH + bytes(payload.length()),
        HostCall::event_read { into, .. } => SUBSCRIPTION + bytes(into.capacity()),
        HostCall::subscribe { .. }
        | HostCall::unsubscribe { .. }
        | HostCall::event_next { .. }
        | HostCall::event_topic { .. }
        | HostCall::event_dropped {}
        | HostCall::topic_dropped { .. } => SUBSCRIPTION,
        HostCall::uptime_us {}
        | HostCall::unix_time_s {}
        | HostCall::public_key { .. }
        | HostCall::caller { .. }
        | HostCall::parameter_length {}
        | HostCall::yield_now {}
        | HostCall::fail {}
        | HostCall::raise_tier { .. }
        | HostCall::budget_left { .. }
        | HostCall::callback_of {}
        | HostCall::sleep_ms { .. } => 0,
    }
}

/// What handing an event to so many queues costs beside the call for it.
pub(crate) fn of_queued(queues: usize) -> u64 {
    queues as u64 * QUEUED_EVENT
}

/// What a list of names, each followed by a zero byte, costs beside the call for it.
pub(crate) fn of_list(list: &[u8]) -> u64 {
    let names = list.iter().filter(|byte| **byte == 0).count() as u64;
    names * LISTED_NAME + list.len() as u64 / BYTES_PER_FUEL
}
