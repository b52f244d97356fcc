//! The host-call table: everything a machine may ask of its device, described once.
//!
//! From the one description below come [`HostCall`] (what the kernel matches on, with its decoder),
//! [`TABLE`] (what the vm checks imports against) and, by `cargo xtask generate`, the C header, the
//! bindings of the SDK, the WIT package and the reference page.
//!
//! A machine imports these functions from the wasm module [`MODULE`]. On the wasm side a `Text`,
//! `Bytes`, `Optional` or `Buffer` is two `i32` parameters, a pointer and a length in bytes; a
//! `Word` is an `i32`. Guest pointers are allegations: they are checked at each use, by
//! [`GuestBytes`] and its kin.

mod guest;
mod table;

pub use guest::{BadPointer, GuestBuffer, GuestBytes, GuestText, TextError};
pub use table::{HostCallInfo, Parameter, ParameterKind, ResultKind, WasmType, WitPackage};

use table::{host_calls, host_errors};

/// The wasm module name that host calls are imported from.
pub const MODULE: &str = "tenure";

/// The WIT package that the table is published as (`sdk/wit/generated/machine.wit`).
pub const WIT: WitPackage =
    WitPackage { package: "tenure:machine", version: "0.1.0", interface: "host" };

host_errors! {
    /// The name, path, function, machine or task isn't there, or the parameter is null.
    NotFound = -1, "not found";
    /// A name, path, value or parameter is longer than its limit.
    TooLong = -2, "too long";
    /// The device, or a machine that was called, has no room left.
    Full = -3, "no room left";
    /// The machine that was called doesn't let this one call it, or is this one itself.
    Denied = -4, "denied";
    /// A name, path or text is not well formed.
    Invalid = -5, "not well formed";
    /// The called function failed; why is its device's business alone.
    Execution = -6, "execution error";
    /// The machine that was called could not be reached.
    Unreachable = -7, "unreachable";
    /// The deadline passed before there was an answer.
    Deadline = -8, "deadline passed";
    /// The call may have run or not: its device restarted before it answered, or had no session left for the caller.
    Unknown = -9, "outcome unknown";
    /// The device failed: its flash or its random source.
    Device = -10, "device failure";
    /// The call went well, and its result is null.
    Null = -11, "null";
    /// This machine has spent its messages, or their bytes, for the moment: again a little later.
    MessageBudget = -12, "message budget spent";
    /// This machine has spent its flash writes for the day: again later.
    FlashBudget = -13, "flash budget spent";
    /// This machine's queue of tasks and calls under way is as long as its budget allows.
    QueueBudget = -14, "queue budget spent";
    /// This machine stores as much as its budget allows.
    StoredBudget = -15, "storage budget spent";
    /// The machine that was called was stopped for a fault, and starts again too late for this call,
    /// which didn't run: again later.
    Stopped = -16, "the machine is stopped for now";
    /// The machine that was called failed too often and is stopped until its owner lifts that. The
    /// call didn't run.
    Banned = -17, "the machine is banned";
    /// The call was stopped, and its machine with it: it took more fuel, memory or stack than that
    /// has.
    Overspent = -18, "the call took more than its machine's budget";
    /// The device that was called sleeps for longer than there is time. The call runs when it wakes,
    /// if it had begun before.
    Asleep = -19, "the device sleeps";
    /// This machine's lease doesn't grant that; its log says what.
    NotGranted = -20, "not granted";
    /// The lease of the machine that was called is over.
    LeaseOver = -21, "lease over";
    /// The owner of the machine that was called has stopped it.
    Halted = -22, "stopped by its owner";
}

host_calls! {
    /// Writes a line to the machine's log. Levels: 0 error, 1 warning, 2 info, 3 debug. What is
    /// longer than 256 bytes is cut.
    0 => log(level: Word, message: Text) -> Nothing;

    /// Microseconds since the device booted.
    1 => uptime_us() -> Time;

    /// Seconds since 1970-01-01 00:00 UTC, or -1 if the device doesn't know.
    2 => unix_time_s() -> Time;

    /// Writes this machine's public key to `into` and returns its length, 32.
    3 => public_key(into: Buffer) -> Status;

    /// Writes the public key of the machine that made the call being served to `into` and returns
    /// its length, 32; 0 if the device itself made it.
    4 => caller(into: Buffer) -> Status;

    /// The length of the parameter of the call being served, or `NotFound` if it is null.
    5 => parameter_length() -> Status;

    /// Copies the parameter from byte `offset` on to `into` and returns how many bytes were copied.
    6 => parameter_read(offset: Word, into: Buffer) -> Status;

    /// Sets the result of the call being served; without it, or with a null value, it is null.
    /// The last one counts.
    7 => reply(value: Optional) -> Status;

    /// Stores `value` at `path` (`a.b.c`) in the machine's tree, replacing what was there. `kind`
    /// is 0 for bytes, 1 for text. Once it returns 0 the value survives a loss of power. A name
    /// between dots that is empty or has a control character makes `path` invalid, here and in
    /// the other calls.
    8 => tree_set(path: Text, kind: Word, value: Bytes) -> Status;

    /// Copies the value at `path` to `into`, as much as fits, and returns its whole length.
    9 => tree_get(path: Text, into: Buffer) -> Status;

    /// Deletes the value at `path` and everything below it; returns how many values went. If the
    /// power goes before it returns, each value is still there or gone.
    10 => tree_delete(path: Text) -> Status;

    /// Writes the names of the children of `path` (empty: of the root) to `into`, each followed by
    /// a zero byte, in order; returns the length of the whole list, which may be more than fits.
    11 => tree_list(path: Text, into: Buffer) -> Status;

    /// Calls `function` of the machine `target` and waits; others run meanwhile. Returns the length
    /// of the result, which `result_read` reads; `Null` if the result is null. `deadline_ms` 0
    /// means the device's default. Targets: `name`, `name@device`, `#id` or `#key`; this machine
    /// itself, which would wait for itself, is `Denied`. A target may also be the URL of a server outside: then
    /// `function` is the method (`GET`), and the parameter the request's fields, an empty line and its body; the result
    /// is `HTTP/1.1 `, the status, a space, the fields, an empty line and the body, or its beginning where no
    /// `content-length` says that this is all. `more` instead of a method returns the next part, null after the last.
    12 => call(target: Text, function: Text, parameter: Optional, deadline_ms: Word) -> Status;

    /// Copies the result of the last `call` from byte `offset` on to `into` and returns how many
    /// bytes were copied. Of a call that failed by `Stopped` or `Asleep` this is, in decimal, after
    /// how many milliseconds another one is worth trying, if that is known; by `Execution` or `Overspent`,
    /// what the called machine says of it, if it tells its callers, 512 bytes at most; and of a server, why there is no
    /// answer.
    13 => result_read(offset: Word, into: Buffer) -> Status;

    /// Puts a call into the queue and goes on. When it is done, `on_success` of this machine is
    /// called with its result; when it failed for good, after `retries` further attempts to reach
    /// the target, `on_failure` is called with the reason. Either may be empty. Returns the task's
    /// number. A call runs at most once, however often it is sent. Targets are those of `call`, and
    /// empty for this machine. If the machine is stopped meanwhile, `on_failure` is called after its next
    /// start with `outcome unknown`; so it is if the result finds no room.
    14 => queue(
        target: Text,
        function: Text,
        parameter: Optional,
        on_success: Text,
        on_failure: Text,
        deadline_ms: Word,
        retries: Word
    ) -> Status;

    /// Lets the others run; returns when it is this machine's turn again.
    15 => yield_now() -> Nothing;

    /// Waits for `duration_ms` milliseconds while others run.
    16 => sleep_ms(duration_ms: Word) -> Nothing;

    /// Fills `into` with random bytes fit for keys.
    17 => random(into: Buffer) -> Status;

    /// Writes the 32-byte public keys of the machines this device knows to `into`, as many as fit;
    /// returns how many bytes there are in all. `which`: 1 those on this device, 2 those on others,
    /// 3 both.
    18 => peers(which: Word, into: Buffer) -> Status;

    /// Finds the public key of the machine that `target` names, waiting for the directory if need
    /// be; writes it to `into` and returns its length, 32.
    19 => resolve(target: Text, into: Buffer) -> Status;

    /// Ends the call being served as failed and stops the machine, with `message` in its log.
    20 => abort(message: Text) -> Nothing;

    /// Makes the call being served fail once it returns; the machine goes on. Its caller learns
    /// `Execution`. The value that was set by `reply` before, cut to 512 bytes, is the text of the error:
    /// the device's owner gets it with a call, and other callers where the manifest tells errors to
    /// callers. What `reply` sets afterwards counts for nothing.
    21 => fail() -> Nothing;

    /// Asks for a higher tier for a critical section, on a device that shares the processor by tiers.
    /// It counts from the machine's next turn on, until `fuel` is used, or the task ends, or tier 0 is
    /// asked for; a fifth of its fuel a machine can use so. Returns the tier that it has then: the
    /// usual one if no fuel for critical sections is left. A tier beyond the lease is `NotGranted`.
    22 => raise_tier(tier: Word, fuel: Word) -> Status;

    /// The rest of a budget now. `which`: 0 fuel, 1 flash bytes, 2 messages, 3 message bytes,
    /// 4 stored bytes, 5 places in the queue. 2147483647 if there is no limit or it is more.
    23 => budget_left(which: Word) -> Status;

    /// The number of the queued call whose callback is being served, as `queue` returned it; `NotFound`
    /// if none is.
    24 => callback_of() -> Status;

    /// Calls `function` of this machine after `delay_ms` milliseconds, and again every `period_ms`
    /// milliseconds, 10 at least; 0 means once. A machine has eight timers at most, one for each
    /// function: setting another replaces it, setting the same period again changes nothing. They
    /// outlast faults and, counted from the start, restarts of the device, but not an update. A timer
    /// fires up to a tenth of its wait late, a second at most, so that wake-ups are shared. The parameter
    /// has 64 bytes at most. Setting and ending a timer are flash writes.
    25 => timer_after(
        function: Text,
        parameter: Optional,
        delay_ms: Word,
        period_ms: Word
    ) -> Status;

    /// The same at a time of day, in seconds since 1970-01-01 00:00 UTC, and again every `period_ms`
    /// milliseconds: with 86,400,000, at the same time each day. It waits until the device knows the
    /// time. Of the times that passed while the device was off the next one counts; a timer
    /// without a period fires late.
    26 => timer_at(
        function: Text,
        parameter: Optional,
        unix_time_s: Word,
        period_ms: Word
    ) -> Status;

    /// Ends the timer of `function`, or returns `NotFound`. A call that waits already is made.
    27 => timer_cancel(function: Text) -> Status;

    /// The same as `timer_after` at each time of `schedule`: a time of day (`06:30`) or the five fields of
    /// crontab(5): minute, hour, day of the month, month, day of the week (`0,30 8-18 * * mon-fri`), 128
    /// bytes at most. Its times are in UTC, or on the clock whose rules stand before it as in POSIX's `TZ`
    /// (`TZ=CET-1CEST,M3.5.0,M10.5.0/3 06:30`). It waits until the device knows the time; of the times that
    /// passed while the device was off none is made up for. `Invalid` if the text is no schedule, or its day
    /// never comes.
    28 => timer_schedule(function: Text, parameter: Optional, schedule: Text) -> Status;

    /// Publishes an event: whoever has subscribed to `topic` gets `payload`, 2,048 bytes at most.
    /// Returns how many subscriptions have it in their queues. Topics below `device` are the device's
    /// own; those below `command.NAME` go to the peripheral `NAME`, and take a grant to use it. It counts
    /// as one message against the budget.
    30 => publish(topic: Text, payload: Bytes) -> Status;

    /// Subscribes to `topic`, to all topics below one (`door.*`) or to all (`*`), with a queue of
    /// `depth` events. `policy` says what happens when it is full: 0 the oldest event is dropped, 1
    /// the new one, 2 only the latest is kept. Each event is a call of this machine's `handler`, with
    /// the payload as its parameter; where `handler` is empty, `event_next` gives it. A second
    /// subscription to the same text changes the first. They end with a restart of the machine.
    31 => subscribe(topic: Text, policy: Word, depth: Word, handler: Text) -> Status;

    /// Ends a subscription with what is queued for it, or says `NotFound`.
    32 => unsubscribe(topic: Text) -> Status;

    /// Takes the next event of the subscriptions without a handler, in the order in which they were
    /// published, and returns the length of its payload; others run while it waits. `Deadline` if
    /// none comes within `timeout_ms`, of which 0 doesn't wait and 0xFFFFFFFF waits for ever;
    /// `NotFound` if there is no such subscription. Other calls are served only after this one.
    33 => event_next(timeout_ms: Word) -> Status;

    /// Writes the topic of the event that was taken, or that is being handled, to `into` and returns
    /// its length, 64 at most.
    34 => event_topic(into: Buffer) -> Status;

    /// Copies the payload of that event from byte `offset` on to `into` and returns how many bytes
    /// were copied.
    35 => event_read(offset: Word, into: Buffer) -> Status;

    /// How many events its subscription dropped between the one before and that one.
    36 => event_dropped() -> Status;

    /// How many events the subscription to `topic` has dropped in all.
    37 => topic_dropped(topic: Text) -> Status;

    /// Copies the secret `name` of this machine's tenant to `into`, as much as fits, and returns its
    /// whole length; `NotFound` if the tenant has set none of that name here, `NotGranted` without
    /// a right to it. What is read is as it was set last.
    40 => secret_read(name: Text, into: Buffer) -> Status;
}

#[cfg(test)]
mod tests;
