//! The limits that everybody who speaks to a node must keep, in one place.

/// The longest name of a machine or device, in bytes.
pub const NAME_BYTES_MAX: usize = 32;
/// The longest name of a function, in bytes.
pub const FUNCTION_BYTES_MAX: usize = 64;
/// The longest parameter or result of one call, in bytes.
pub const PARAMETER_BYTES_MAX: usize = 8 * 1024;
/// The most that a host call writes to the room that a machine gives it, in bytes.
pub const BUFFER_BYTES_MAX: usize = 64 * 1024;
/// The longest path in a machine's tree, in bytes, dots included.
pub const PATH_BYTES_MAX: usize = 128;
/// The longest value in a machine's tree, in bytes.
pub const VALUE_BYTES_MAX: usize = 2 * 1024;
/// The longest name of a machine as it is called, in bytes: a name with its device's, an id or a key.
pub const TARGET_BYTES_MAX: usize = 2 * NAME_BYTES_MAX + 1;
/// The longest topic of an event, in bytes, dots included.
pub const TOPIC_BYTES_MAX: usize = 64;
/// The longest pattern of topics, in bytes.
pub const PATTERN_BYTES_MAX: usize = TOPIC_BYTES_MAX + 2;
/// The longest payload of one event, in bytes.
pub const EVENT_BYTES_MAX: usize = 2 * 1024;
/// The longest message of one log entry, in bytes; what is longer is cut.
pub const LOG_BYTES_MAX: usize = 256;
/// The most that is kept of a machine's log over a restart of its device, in bytes.
pub const LOG_KEPT_BYTES_MAX: usize = 1024;
/// The most of a machine's own words on a failure that its caller is told, in bytes; what is longer is cut.
pub const WORDS_BYTES_MAX: usize = 512;
/// The longest secret, in bytes.
pub const SECRET_BYTES_MAX: usize = 1024;
/// The most labels of one device.
pub const LABELS_MAX: usize = 16;
/// The most timers of one machine.
pub const TIMERS_MAX: usize = 8;
/// The most machines that one device announces.
pub const MACHINES_MAX: usize = 32;

const _: () = assert!(VALUE_BYTES_MAX <= PARAMETER_BYTES_MAX, "a value can be returned whole");
const _: () =
    assert!(EVENT_BYTES_MAX <= PARAMETER_BYTES_MAX, "a handler takes it as its parameter");
const _: () = assert!(PARAMETER_BYTES_MAX <= BUFFER_BYTES_MAX, "a parameter can be read whole");
const _: () = assert!(LOG_BYTES_MAX <= PARAMETER_BYTES_MAX);
