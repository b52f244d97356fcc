//! The fuel of turns, tasks and host calls, beside that of the machine's own instructions.
//!
//! Without a price a machine could keep the device busy with host calls that its slice doesn't
//! show. The unit is the vm's, 16 bits of image code; in the tightest loop there is it takes 4.5
//! instructions of an RV32 ([`INSTRUCTIONS_PER_FUEL`]). Prices are instructions, rounded up from what
//! `cargo xtask bench kernel` counts, which prints what each call was charged beside it.

use tenure_store::DeletionStep;
use tenure_wire::host_call::{GuestBytes, GuestText, HostCall};
use tenure_wire::limits::{EVENT_BYTES_MAX, PARAMETER_BYTES_MAX, PATH_BYTES_MAX, VALUE_BYTES_MAX};

/// Instructions of an RV32 that a unit of fuel stands for.
const INSTRUCTIONS_PER_FUEL: f64 = 4.5;

/// The fuel for so many instructions.
const fn instructions(count: u64) -> u64 {
    (count as f64 / INSTRUCTIONS_PER_FUEL) as u64
}

/// Choosing a machine, giving it its turn, and settling what that used.
pub(crate) const TURN: u64 = instructions(2_000);
/// Beginning a task and clearing up after it.
pub(crate) const TASK: u64 = instructions(3_900);
/// The most that one host call costs, or a piece of one that is done in pieces.
pub(crate) const HOST_CALL_MAX: u64 = BASE + TREE_WRITE + SCHEDULE + VALUE_COST + TEXTS;
/// The same in the promise of docs/scheduling.md.
const HOST_CALL_PROMISED: u64 = 21_306;
const _: () = assert!(HOST_CALL_MAX == HOST_CALL_PROMISED);
/// How many names of a tree, values that are deleted, and random bytes one piece of a host call is.
pub(crate) const PIECE_NAMES: usize = 3;
pub(crate) const PIECE_VALUES: usize = 8;
pub(crate) const PIECE_RANDOM_BYTES: usize = 1024;
/// How many queues one piece of a publication is put into, or dropped by.
pub(crate) const PIECE_QUEUES: usize = 60;
/// The most pieces of a publication before its last. A piece leaves off before a subscriber for all of whose queues it has no
/// room, of which there are 8 at most, as of each of 33 subscribers.
pub(crate) const PIECES_BEFORE_LAST_MAX: u32 = 7;
const _: () = assert!(33 * 8 <= PIECES_BEFORE_LAST_MAX as usize * (PIECE_QUEUES - 7));

const _: () = assert!(PIECE_NAMES as u64 * LISTED_NAME <= TREE_WRITE);
const _: () = assert!(PIECE_VALUES as u64 * DELETED_VALUE <= TREE_WRITE);
const _: () = assert!(PIECE_RANDOM_BYTES as u64 * RANDOM_PER_BYTE <= TREE_WRITE);
const _: () = assert!(CALL + PARAMETER_COST + TEXTS <= HOST_CALL_MAX - BASE);
const _: () = assert!(
    PUBLISH + EVENT_COST + TEXTS + PIECE_QUEUES as u64 * QUEUED_EVENT <= HOST_CALL_MAX - BASE
);

/// The most that the parts of host calls cost which have a length.
const PARAMETER_COST: u64 = PARAMETER_BYTES_MAX as u64 / BYTES_PER_FUEL;
const VALUE_COST: u64 = VALUE_BYTES_MAX as u64 / BYTES_PER_FUEL;
const EVENT_COST: u64 = EVENT_BYTES_MAX as u64 / BYTES_PER_FUEL;
/// No call has more than four texts, and none is longer than a path.
const TEXTS: u64 = 4 * (PATH_BYTES_MAX as u64 / BYTES_PER_FUEL);

/// Erasing and writing flash, for each byte of a machine that makes room for another.
const SWAP_PER_BYTE: u64 = 10;

/// The fuel to bring `bytes` of a machine to flash.
pub(crate) fn of_swap(bytes: u64) -> u64 {
    bytes * SWAP_PER_BYTE
}

/// The fuel of every host call.
const BASE: u64 = instructions(1_000);
/// A line of the log.
const LOG: u64 = instructions(600);
/// A lookup in the tree: with one value there 10,000, with a thousand twice that.
const TREE_READ: u64 = instructions(20_000);
/// A change of the tree: 22,000 for looking it up and appending it, the rest for sealing it and for the
/// flash. How long flash takes to program a page isn't measured: emulated flash takes no time.
const TREE_WRITE: u64 = instructions(64_000);
/// Reading a schedule and looking for its next time: 29 February is 96 months away at most.
const SCHEDULE: u64 = instructions(28_000);
/// Handing a call to another machine.
const CALL: u64 = instructions(24_000);
/// Going through all subscriptions.
const PUBLISH: u64 = instructions(2_800);
/// Looking for one's own subscription, or for its next event.
const SUBSCRIPTION: u64 = instructions(500);
/// Each queue that an event is put into.
const QUEUED_EVENT: u64 = instructions(1_000);
/// Random bytes come from a key stream or slow hardware.
const RANDOM_PER_BYTE: u64 = instructions(45);
/// Copying between machine and kernel.
const BYTES_PER_FUEL: u64 = 4;

/// Each name in a list of a tree: a search in the store and in what the package gave; among a hundred
/// values.
const LISTED_NAME: u64 = instructions(21_000);
/// Each value that goes with a node of a tree: one look at its record, or one search; among a hundred
/// values 5,400.
const DELETED_VALUE: u64 = instructions(8_000);

/// The fuel for the bytes of a host call: no more than it looks at, whatever length the machine alleges.
fn of_bytes(length: usize, bytes_max: usize) -> u64 {
    length.min(bytes_max) as u64 / BYTES_PER_FUEL
}

/// The fuel for texts: a text that is longer than a path is refused before it is read.
fn of_texts(texts: &[GuestText]) -> u64 {
    texts.iter().map(|text| of_bytes(text.length(), PATH_BYTES_MAX)).sum()
}

/// The fuel that `call` costs.
pub(crate) fn of(call: &HostCall) -> u64 {
    let bytes = |length: usize| of_bytes(length, PARAMETER_BYTES_MAX);
    let parameter_of = |value: &Option<GuestBytes>| value.map_or(0, |value| bytes(value.length()));
    BASE + match call {
        HostCall::log { message, .. } | HostCall::abort { message } => {
            LOG + bytes(message.length())
        }
        HostCall::parameter_read { into, .. } | HostCall::result_read { into, .. } => {
            bytes(into.capacity())
        }
        HostCall::reply { value } => parameter_of(value),
        HostCall::tree_get { path, into } => {
            TREE_READ + of_texts(&[*path]) + bytes(into.capacity())
        }
        HostCall::tree_set { path, value, .. } => {
            TREE_WRITE + of_texts(&[*path]) + of_bytes(value.length(), VALUE_BYTES_MAX)
        }
        HostCall::timer_after { function, parameter, .. }
        | HostCall::timer_at { function, parameter, .. } => {
            let parameter = parameter.map_or(0, |value| of_bytes(value.length(), VALUE_BYTES_MAX));
            TREE_WRITE + of_texts(&[*function]) + parameter
        }
        HostCall::timer_schedule { function, parameter, schedule } => {
            let parameter = parameter.map_or(0, |value| of_bytes(value.length(), VALUE_BYTES_MAX));
            TREE_WRITE + SCHEDULE + of_texts(&[*function, *schedule]) + parameter
        }
        HostCall::timer_cancel { function } => TREE_WRITE + of_texts(&[*function]),
        HostCall::call { target, function, parameter, .. } => {
            CALL + of_texts(&[*target, *function]) + parameter_of(parameter)
        }
        HostCall::queue { target, function, parameter, on_success, on_failure, .. } => {
            let texts = [*target, *function, *on_success, *on_failure];
            CALL + of_texts(&texts) + parameter_of(parameter)
        }
        HostCall::resolve { target, .. } => CALL + of_texts(&[*target]),
        HostCall::secret_read { name, into } => {
            TREE_READ + of_texts(&[*name]) + bytes(into.capacity())
        }
        HostCall::peers { .. } => TREE_READ,
        HostCall::publish { topic, payload } => {
            PUBLISH + of_texts(&[*topic]) + of_bytes(payload.length(), EVENT_BYTES_MAX)
        }
        HostCall::event_read { into, .. } => SUBSCRIPTION + bytes(into.capacity()),
        HostCall::subscribe { topic, handler, .. } => SUBSCRIPTION + of_texts(&[*topic, *handler]),
        HostCall::unsubscribe { topic } | HostCall::topic_dropped { topic } => {
            SUBSCRIPTION + of_texts(&[*topic])
        }
        HostCall::tree_list { path, .. } | HostCall::tree_delete { path } => of_texts(&[*path]),
        HostCall::event_next { .. } | HostCall::event_topic { .. } | HostCall::event_dropped {} => {
            SUBSCRIPTION
        }
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
        | HostCall::random { .. }
        | HostCall::sleep_ms { .. } => 0,
    }
}

/// The fuel for so many queues that took an event or dropped it, beside the call's own.
pub(crate) fn of_queued(queues: usize) -> u64 {
    queues as u64 * QUEUED_EVENT
}

/// The fuel for so many names, `bytes` long together, beside that of the call that lists them.
pub(crate) fn of_names(names: usize, bytes: usize) -> u64 {
    names as u64 * LISTED_NAME + bytes as u64 / BYTES_PER_FUEL
}

/// The fuel for so many random bytes.
pub(crate) fn of_random(bytes: usize) -> u64 {
    bytes as u64 * RANDOM_PER_BYTE
}

/// The fuel for a step of a deletion beside the call for it: the step writes, or looks at values.
pub(crate) fn of_deleting(step: &DeletionStep) -> u64 {
    match step.looked_at {
        0 => TREE_WRITE,
        values => values as u64 * DELETED_VALUE,
    }
}
