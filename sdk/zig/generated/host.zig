//! Generated from crates/wire/src/host_call.rs by `cargo xtask generate`.
//! The raw host calls; tenure.zig is what programs use.

/// Why a host call failed.
pub const Error = error{
    /// Not found.
    NotFound,
    /// Too long.
    TooLong,
    /// No room left.
    Full,
    /// Denied.
    Denied,
    /// Not well formed.
    Invalid,
    /// Execution error.
    Execution,
    /// Unreachable.
    Unreachable,
    /// Deadline passed.
    Deadline,
    /// Outcome unknown.
    Unknown,
    /// Device failure.
    Device,
    /// Null.
    Null,
    /// Message budget spent.
    MessageBudget,
    /// Flash budget spent.
    FlashBudget,
    /// Queue budget spent.
    QueueBudget,
    /// Storage budget spent.
    StoredBudget,
    /// The machine is stopped for now.
    Stopped,
    /// The machine is banned.
    Banned,
    /// The call took more than its machine's budget.
    Overspent,
    /// The device sleeps.
    Asleep,
    /// Not granted.
    NotGranted,
    /// Lease over.
    LeaseOver,
    /// Stopped by its owner.
    Halted,
};

/// The error with this number, as host calls give it.
pub fn errorOf(code: i32) Error {
    return switch (code) {
        -1 => Error.NotFound,
        -2 => Error.TooLong,
        -3 => Error.Full,
        -4 => Error.Denied,
        -5 => Error.Invalid,
        -6 => Error.Execution,
        -7 => Error.Unreachable,
        -8 => Error.Deadline,
        -9 => Error.Unknown,
        -11 => Error.Null,
        -12 => Error.MessageBudget,
        -13 => Error.FlashBudget,
        -14 => Error.QueueBudget,
        -15 => Error.StoredBudget,
        -16 => Error.Stopped,
        -17 => Error.Banned,
        -18 => Error.Overspent,
        -19 => Error.Asleep,
        -20 => Error.NotGranted,
        -21 => Error.LeaseOver,
        -22 => Error.Halted,
        else => Error.Device,
    };
}

/// An error in a few words.
pub fn errorText(err: Error) []const u8 {
    return switch (err) {
        Error.NotFound => "not found",
        Error.TooLong => "too long",
        Error.Full => "no room left",
        Error.Denied => "denied",
        Error.Invalid => "not well formed",
        Error.Execution => "execution error",
        Error.Unreachable => "unreachable",
        Error.Deadline => "deadline passed",
        Error.Unknown => "outcome unknown",
        Error.Device => "device failure",
        Error.Null => "null",
        Error.MessageBudget => "message budget spent",
        Error.FlashBudget => "flash budget spent",
        Error.QueueBudget => "queue budget spent",
        Error.StoredBudget => "storage budget spent",
        Error.Stopped => "the machine is stopped for now",
        Error.Banned => "the machine is banned",
        Error.Overspent => "the call took more than its machine's budget",
        Error.Asleep => "the device sleeps",
        Error.NotGranted => "not granted",
        Error.LeaseOver => "lease over",
        Error.Halted => "stopped by its owner",
    };
}

/// Writes a line to the machine's log. Levels: 0 error, 1 warning, 2 info, 3 debug. What is
/// longer than 256 bytes is cut.
pub extern "tenure" fn log(level: u32, message: ?[*]const u8, message_length: usize) void;

/// Microseconds since the device booted.
pub extern "tenure" fn uptime_us() i64;

/// Seconds since 1970-01-01 00:00 UTC, or -1 if the device doesn't know.
pub extern "tenure" fn unix_time_s() i64;

/// Writes this machine's public key to `into` and returns its length, 32.
pub extern "tenure" fn public_key(into: ?[*]u8, into_capacity: usize) i32;

/// Writes the public key of the machine that made the call being served to `into` and returns
/// its length, 32; 0 if the device itself made it.
pub extern "tenure" fn caller(into: ?[*]u8, into_capacity: usize) i32;

/// The length of the parameter of the call being served, or `NotFound` if it is null.
pub extern "tenure" fn parameter_length() i32;

/// Copies the parameter from byte `offset` on to `into` and returns how many bytes were copied.
pub extern "tenure" fn parameter_read(offset: u32, into: ?[*]u8, into_capacity: usize) i32;

/// Sets the result of the call being served; without it, or with a null value, it is null.
/// The last one counts.
pub extern "tenure" fn reply(value: ?[*]const u8, value_length: usize) i32;

/// Stores `value` at `path` (`a.b.c`) in the machine's tree, replacing what was there. `kind`
/// is 0 for bytes, 1 for text. Once it returns 0 the value survives a loss of power. A name
/// between dots that is empty or has a control character makes `path` invalid, here and in
/// the other calls.
pub extern "tenure" fn tree_set(path: ?[*]const u8, path_length: usize, kind: u32, value: ?[*]const u8, value_length: usize) i32;

/// Copies the value at `path` to `into`, as much as fits, and returns its whole length.
pub extern "tenure" fn tree_get(path: ?[*]const u8, path_length: usize, into: ?[*]u8, into_capacity: usize) i32;

/// Deletes the value at `path` and everything below it; returns how many values went. If the
/// power goes before it returns, each value is still there or gone.
pub extern "tenure" fn tree_delete(path: ?[*]const u8, path_length: usize) i32;

/// Writes the names of the children of `path` (empty: of the root) to `into`, each followed by
/// a zero byte, in order; returns the length of the whole list, which may be more than fits.
pub extern "tenure" fn tree_list(path: ?[*]const u8, path_length: usize, into: ?[*]u8, into_capacity: usize) i32;

/// Calls `function` of the machine `target` and waits; others run meanwhile. Returns the length
/// of the result, which `result_read` reads; `Null` if the result is null. `deadline_ms` 0
/// means the device's default. Targets: `name`, `name@device`, `#id` or `#key`; this machine
/// itself, which would wait for itself, is `Denied`. A target may also be the URL of a server outside: then
/// `function` is the method (`GET`), and the parameter the request's fields, an empty line and its body; the result
/// is `HTTP/1.1 `, the status, a space, the fields, an empty line and the body, or its beginning where no
/// `content-length` says that this is all. `more` instead of a method returns the next part, null after the last.
pub extern "tenure" fn call(target: ?[*]const u8, target_length: usize, function: ?[*]const u8, function_length: usize, parameter: ?[*]const u8, parameter_length: usize, deadline_ms: u32) i32;

/// Copies the result of the last `call` from byte `offset` on to `into` and returns how many
/// bytes were copied. Of a call that failed by `Stopped` or `Asleep` this is, in decimal, after
/// how many milliseconds another one is worth trying, if that is known; by `Execution` or `Overspent`,
/// what the called machine says of it, if it tells its callers, 512 bytes at most; and of a server, why there is no
/// answer.
pub extern "tenure" fn result_read(offset: u32, into: ?[*]u8, into_capacity: usize) i32;

/// Puts a call into the queue and goes on. When it is done, `on_success` of this machine is
/// called with its result; when it failed for good, after `retries` further attempts to reach
/// the target, `on_failure` is called with the reason. Either may be empty. Returns the task's
/// number. A call runs at most once, however often it is sent. Targets are those of `call`, and
/// empty for this machine. If the machine is stopped meanwhile, `on_failure` is called after its next
/// start with `outcome unknown`; so it is if the result finds no room.
pub extern "tenure" fn queue(target: ?[*]const u8, target_length: usize, function: ?[*]const u8, function_length: usize, parameter: ?[*]const u8, parameter_length: usize, on_success: ?[*]const u8, on_success_length: usize, on_failure: ?[*]const u8, on_failure_length: usize, deadline_ms: u32, retries: u32) i32;

/// Lets the others run; returns when it is this machine's turn again.
pub extern "tenure" fn yield_now() void;

/// Waits for `duration_ms` milliseconds while others run.
pub extern "tenure" fn sleep_ms(duration_ms: u32) void;

/// Fills `into` with random bytes fit for keys.
pub extern "tenure" fn random(into: ?[*]u8, into_capacity: usize) i32;

/// Writes the 32-byte public keys of the machines this device knows to `into`, as many as fit;
/// returns how many bytes there are in all. `which`: 1 those on this device, 2 those on others,
/// 3 both.
pub extern "tenure" fn peers(which: u32, into: ?[*]u8, into_capacity: usize) i32;

/// Finds the public key of the machine that `target` names, waiting for the directory if need
/// be; writes it to `into` and returns its length, 32.
pub extern "tenure" fn resolve(target: ?[*]const u8, target_length: usize, into: ?[*]u8, into_capacity: usize) i32;

/// Ends the call being served as failed and stops the machine, with `message` in its log.
pub extern "tenure" fn abort(message: ?[*]const u8, message_length: usize) void;

/// Makes the call being served fail once it returns; the machine goes on. Its caller learns
/// `Execution`. The value that was set by `reply` before, cut to 512 bytes, is the text of the error:
/// the device's owner gets it with a call, and other callers where the manifest tells errors to
/// callers. What `reply` sets afterwards counts for nothing.
pub extern "tenure" fn fail() void;

/// Asks for a higher tier for a critical section, on a device that shares the processor by tiers.
/// It counts from the machine's next turn on, until `fuel` is used, or the task ends, or tier 0 is
/// asked for; a fifth of its fuel a machine can use so. Returns the tier that it has then: the
/// usual one if no fuel for critical sections is left. A tier beyond the lease is `NotGranted`.
pub extern "tenure" fn raise_tier(tier: u32, fuel: u32) i32;

/// The rest of a budget now. `which`: 0 fuel, 1 flash bytes, 2 messages, 3 message bytes,
/// 4 stored bytes, 5 places in the queue. 2147483647 if there is no limit or it is more.
pub extern "tenure" fn budget_left(which: u32) i32;

/// The number of the queued call whose callback is being served, as `queue` returned it; `NotFound`
/// if none is.
pub extern "tenure" fn callback_of() i32;

/// Calls `function` of this machine after `delay_ms` milliseconds, and again every `period_ms`
/// milliseconds, 10 at least; 0 means once. A machine has eight timers at most, one for each
/// function: setting another replaces it, setting the same period again changes nothing. They
/// outlast faults and, counted from the start, restarts of the device, but not an update. A timer
/// fires up to a tenth of its wait late, a second at most, so that wake-ups are shared. The parameter
/// has 64 bytes at most. Setting and ending a timer are flash writes.
pub extern "tenure" fn timer_after(function: ?[*]const u8, function_length: usize, parameter: ?[*]const u8, parameter_length: usize, delay_ms: u32, period_ms: u32) i32;

/// The same at a time of day, in seconds since 1970-01-01 00:00 UTC, and again every `period_ms`
/// milliseconds: with 86,400,000, at the same time each day. It waits until the device knows the
/// time. Of the times that passed while the device was off the next one counts; a timer
/// without a period fires late.
pub extern "tenure" fn timer_at(function: ?[*]const u8, function_length: usize, parameter: ?[*]const u8, parameter_length: usize, unix_time_s: u32, period_ms: u32) i32;

/// Ends the timer of `function`, or returns `NotFound`. A call that waits already is made.
pub extern "tenure" fn timer_cancel(function: ?[*]const u8, function_length: usize) i32;

/// The same as `timer_after` at each time of `schedule`: a time of day (`06:30`) or the five fields of
/// crontab(5): minute, hour, day of the month, month, day of the week (`0,30 8-18 * * mon-fri`), 128
/// bytes at most. Its times are in UTC, or on the clock whose rules stand before it as in POSIX's `TZ`
/// (`TZ=CET-1CEST,M3.5.0,M10.5.0/3 06:30`). It waits until the device knows the time; of the times that
/// passed while the device was off none is made up for. `Invalid` if the text is no schedule, or its day
/// never comes.
pub extern "tenure" fn timer_schedule(function: ?[*]const u8, function_length: usize, parameter: ?[*]const u8, parameter_length: usize, schedule: ?[*]const u8, schedule_length: usize) i32;

/// Publishes an event: whoever has subscribed to `topic` gets `payload`, 2,048 bytes at most.
/// Returns how many subscriptions have it in their queues. Topics below `device` are the device's
/// own; those below `command.NAME` go to the peripheral `NAME`, and take a grant to use it. It counts
/// as one message against the budget.
pub extern "tenure" fn publish(topic: ?[*]const u8, topic_length: usize, payload: ?[*]const u8, payload_length: usize) i32;

/// Subscribes to `topic`, to all topics below one (`door.*`) or to all (`*`), with a queue of
/// `depth` events. `policy` says what happens when it is full: 0 the oldest event is dropped, 1
/// the new one, 2 only the latest is kept. Each event is a call of this machine's `handler`, with
/// the payload as its parameter; where `handler` is empty, `event_next` gives it. A second
/// subscription to the same text changes the first. They end with a restart of the machine.
pub extern "tenure" fn subscribe(topic: ?[*]const u8, topic_length: usize, policy: u32, depth: u32, handler: ?[*]const u8, handler_length: usize) i32;

/// Ends a subscription with what is queued for it, or says `NotFound`.
pub extern "tenure" fn unsubscribe(topic: ?[*]const u8, topic_length: usize) i32;

/// Takes the next event of the subscriptions without a handler, in the order in which they were
/// published, and returns the length of its payload; others run while it waits. `Deadline` if
/// none comes within `timeout_ms`, of which 0 doesn't wait and 0xFFFFFFFF waits for ever;
/// `NotFound` if there is no such subscription. Other calls are served only after this one.
pub extern "tenure" fn event_next(timeout_ms: u32) i32;

/// Writes the topic of the event that was taken, or that is being handled, to `into` and returns
/// its length, 64 at most.
pub extern "tenure" fn event_topic(into: ?[*]u8, into_capacity: usize) i32;

/// Copies the payload of that event from byte `offset` on to `into` and returns how many bytes
/// were copied.
pub extern "tenure" fn event_read(offset: u32, into: ?[*]u8, into_capacity: usize) i32;

/// How many events its subscription dropped between the one before and that one.
pub extern "tenure" fn event_dropped() i32;

/// How many events the subscription to `topic` has dropped in all.
pub extern "tenure" fn topic_dropped(topic: ?[*]const u8, topic_length: usize) i32;

/// Copies the secret `name` of this machine's tenant to `into`, as much as fits, and returns its
/// whole length; `NotFound` if the tenant has set none of that name here, `NotGranted` without
/// a right to it. What is read is as it was set last.
pub extern "tenure" fn secret_read(name: ?[*]const u8, name_length: usize, into: ?[*]u8, into_capacity: usize) i32;
