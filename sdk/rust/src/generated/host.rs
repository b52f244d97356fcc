//! The raw host calls; the crate's other modules are what programs use.
//!
//! Generated from crates/wire/src/host_call.rs by `cargo xtask generate`.

#[cfg(not(any(target_arch = "wasm32", target_os = "none")))]
pub use elsewhere::*;
#[cfg(target_arch = "wasm32")]
pub use machine::*;
#[cfg(target_os = "none")]
pub use native::*;

/// Why a host call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Error {
    /// Not found.
    NotFound = -1,
    /// Too long.
    TooLong = -2,
    /// No room left.
    Full = -3,
    /// Denied.
    Denied = -4,
    /// Not well formed.
    Invalid = -5,
    /// Execution error.
    Execution = -6,
    /// Unreachable.
    Unreachable = -7,
    /// Deadline passed.
    Deadline = -8,
    /// Outcome unknown.
    Unknown = -9,
    /// Device failure.
    Device = -10,
    /// Null.
    Null = -11,
    /// Message budget spent.
    MessageBudget = -12,
    /// Flash budget spent.
    FlashBudget = -13,
    /// Queue budget spent.
    QueueBudget = -14,
    /// Storage budget spent.
    StoredBudget = -15,
    /// The machine is stopped for now.
    Stopped = -16,
    /// The machine is banned.
    Banned = -17,
    /// The call took more than its machine's budget.
    Overspent = -18,
    /// The device sleeps.
    Asleep = -19,
    /// Not granted.
    NotGranted = -20,
    /// Lease over.
    LeaseOver = -21,
    /// Stopped by its owner.
    Halted = -22,
}

impl Error {
    /// The error with this number, as host calls give it.
    pub const fn from_code(code: i32) -> Self {
        match code {
            -1 => Self::NotFound,
            -2 => Self::TooLong,
            -3 => Self::Full,
            -4 => Self::Denied,
            -5 => Self::Invalid,
            -6 => Self::Execution,
            -7 => Self::Unreachable,
            -8 => Self::Deadline,
            -9 => Self::Unknown,
            -11 => Self::Null,
            -12 => Self::MessageBudget,
            -13 => Self::FlashBudget,
            -14 => Self::QueueBudget,
            -15 => Self::StoredBudget,
            -16 => Self::Stopped,
            -17 => Self::Banned,
            -18 => Self::Overspent,
            -19 => Self::Asleep,
            -20 => Self::NotGranted,
            -21 => Self::LeaseOver,
            -22 => Self::Halted,
            _ => Self::Device,
        }
    }

    /// The error's meaning, in a few words.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotFound => "not found",
            Self::TooLong => "too long",
            Self::Full => "no room left",
            Self::Denied => "denied",
            Self::Invalid => "not well formed",
            Self::Execution => "execution error",
            Self::Unreachable => "unreachable",
            Self::Deadline => "deadline passed",
            Self::Unknown => "outcome unknown",
            Self::Device => "device failure",
            Self::Null => "null",
            Self::MessageBudget => "message budget spent",
            Self::FlashBudget => "flash budget spent",
            Self::QueueBudget => "queue budget spent",
            Self::StoredBudget => "storage budget spent",
            Self::Stopped => "the machine is stopped for now",
            Self::Banned => "the machine is banned",
            Self::Overspent => "the call took more than its machine's budget",
            Self::Asleep => "the device sleeps",
            Self::NotGranted => "not granted",
            Self::LeaseOver => "lease over",
            Self::Halted => "stopped by its owner",
        }
    }
}

#[cfg(target_arch = "wasm32")]
mod machine {
    #[link(wasm_import_module = "tenure")]
    unsafe extern "C" {
        /// Writes a line to the machine's log. Levels: 0 error, 1 warning, 2 info, 3 debug. What is
        /// longer than 256 bytes is cut.
        pub fn log(level: u32, message: *const u8, message_length: usize);

        /// Microseconds since the device booted.
        pub fn uptime_us() -> i64;

        /// Seconds since 1970-01-01 00:00 UTC, or -1 if the device doesn't know.
        pub fn unix_time_s() -> i64;

        /// Writes this machine's public key to `into` and returns its length, 32.
        pub fn public_key(into: *mut u8, into_capacity: usize) -> i32;

        /// Writes the public key of the machine that made the call being served to `into` and returns
        /// its length, 32; 0 if the device itself made it.
        pub fn caller(into: *mut u8, into_capacity: usize) -> i32;

        /// The length of the parameter of the call being served, or `NotFound` if it is null.
        pub fn parameter_length() -> i32;

        /// Copies the parameter from byte `offset` on to `into` and returns how many bytes were copied.
        pub fn parameter_read(offset: u32, into: *mut u8, into_capacity: usize) -> i32;

        /// Sets the result of the call being served; without it, or with a null value, it is null.
        /// The last one counts.
        pub fn reply(value: *const u8, value_length: usize) -> i32;

        /// Stores `value` at `path` (`a.b.c`) in the machine's tree, replacing what was there. `kind`
        /// is 0 for bytes, 1 for text. Once it returns 0 the value survives a loss of power. A name
        /// between dots that is empty or has a control character makes `path` invalid, here and in
        /// the other calls.
        pub fn tree_set(
            path: *const u8,
            path_length: usize,
            kind: u32,
            value: *const u8,
            value_length: usize,
        ) -> i32;

        /// Copies the value at `path` to `into`, as much as fits, and returns its whole length.
        pub fn tree_get(
            path: *const u8,
            path_length: usize,
            into: *mut u8,
            into_capacity: usize,
        ) -> i32;

        /// Deletes the value at `path` and everything below it; returns how many values went. If the
        /// power goes before it returns, each value is still there or gone.
        pub fn tree_delete(path: *const u8, path_length: usize) -> i32;

        /// Writes the names of the children of `path` (empty: of the root) to `into`, each followed by
        /// a zero byte, in order; returns the length of the whole list, which may be more than fits.
        pub fn tree_list(
            path: *const u8,
            path_length: usize,
            into: *mut u8,
            into_capacity: usize,
        ) -> i32;

        /// Calls `function` of the machine `target` and waits; others run meanwhile. Returns the length
        /// of the result, which `result_read` reads; `Null` if the result is null. `deadline_ms` 0
        /// means the device's default. Targets: `name`, `name@device`, `#id` or `#key`; this machine
        /// itself, which would wait for itself, is `Denied`. A target may also be the URL of a server outside: then
        /// `function` is the method (`GET`), and the parameter the request's fields, an empty line and its body; the result
        /// is `HTTP/1.1 `, the status, a space, the fields, an empty line and the body, or its beginning where no
        /// `content-length` says that this is all. `more` instead of a method returns the next part, null after the last.
        pub fn call(
            target: *const u8,
            target_length: usize,
            function: *const u8,
            function_length: usize,
            parameter: *const u8,
            parameter_length: usize,
            deadline_ms: u32,
        ) -> i32;

        /// Copies the result of the last `call` from byte `offset` on to `into` and returns how many
        /// bytes were copied. Of a call that failed by `Stopped` or `Asleep` this is, in decimal, after
        /// how many milliseconds another one is worth trying, if that is known; by `Execution` or `Overspent`,
        /// what the called machine says of it, if it tells its callers, 512 bytes at most; and of a server, why there is no
        /// answer.
        pub fn result_read(offset: u32, into: *mut u8, into_capacity: usize) -> i32;

        /// Puts a call into the queue and goes on. When it is done, `on_success` of this machine is
        /// called with its result; when it failed for good, after `retries` further attempts to reach
        /// the target, `on_failure` is called with the reason. Either may be empty. Returns the task's
        /// number. A call runs at most once, however often it is sent. Targets are those of `call`, and
        /// empty for this machine. If the machine is stopped meanwhile, `on_failure` is called after its next
        /// start with `outcome unknown`; so it is if the result finds no room.
        pub fn queue(
            target: *const u8,
            target_length: usize,
            function: *const u8,
            function_length: usize,
            parameter: *const u8,
            parameter_length: usize,
            on_success: *const u8,
            on_success_length: usize,
            on_failure: *const u8,
            on_failure_length: usize,
            deadline_ms: u32,
            retries: u32,
        ) -> i32;

        /// Lets the others run; returns when it is this machine's turn again.
        pub fn yield_now();

        /// Waits for `duration_ms` milliseconds while others run.
        pub fn sleep_ms(duration_ms: u32);

        /// Fills `into` with random bytes fit for keys.
        pub fn random(into: *mut u8, into_capacity: usize) -> i32;

        /// Writes the 32-byte public keys of the machines this device knows to `into`, as many as fit;
        /// returns how many bytes there are in all. `which`: 1 those on this device, 2 those on others,
        /// 3 both.
        pub fn peers(which: u32, into: *mut u8, into_capacity: usize) -> i32;

        /// Finds the public key of the machine that `target` names, waiting for the directory if need
        /// be; writes it to `into` and returns its length, 32.
        pub fn resolve(
            target: *const u8,
            target_length: usize,
            into: *mut u8,
            into_capacity: usize,
        ) -> i32;

        /// Ends the call being served as failed and stops the machine, with `message` in its log.
        pub fn abort(message: *const u8, message_length: usize);

        /// Makes the call being served fail once it returns; the machine goes on. Its caller learns
        /// `Execution`. The value that was set by `reply` before, cut to 512 bytes, is the text of the error:
        /// the device's owner gets it with a call, and other callers where the manifest tells errors to
        /// callers. What `reply` sets afterwards counts for nothing.
        pub fn fail();

        /// Asks for a higher tier for a critical section, on a device that shares the processor by tiers.
        /// It counts from the machine's next turn on, until `fuel` is used, or the task ends, or tier 0 is
        /// asked for; a fifth of its fuel a machine can use so. Returns the tier that it has then: the
        /// usual one if no fuel for critical sections is left. A tier beyond the lease is `NotGranted`.
        pub fn raise_tier(tier: u32, fuel: u32) -> i32;

        /// The rest of a budget now. `which`: 0 fuel, 1 flash bytes, 2 messages, 3 message bytes,
        /// 4 stored bytes, 5 places in the queue. 2147483647 if there is no limit or it is more.
        pub fn budget_left(which: u32) -> i32;

        /// The number of the queued call whose callback is being served, as `queue` returned it; `NotFound`
        /// if none is.
        pub fn callback_of() -> i32;

        /// Calls `function` of this machine after `delay_ms` milliseconds, and again every `period_ms`
        /// milliseconds, 10 at least; 0 means once. A machine has eight timers at most, one for each
        /// function: setting another replaces it, setting the same period again changes nothing. They
        /// outlast faults and, counted from the start, restarts of the device, but not an update. A timer
        /// fires up to a tenth of its wait late, a second at most, so that wake-ups are shared. The parameter
        /// has 64 bytes at most. Setting and ending a timer are flash writes.
        pub fn timer_after(
            function: *const u8,
            function_length: usize,
            parameter: *const u8,
            parameter_length: usize,
            delay_ms: u32,
            period_ms: u32,
        ) -> i32;

        /// The same at a time of day, in seconds since 1970-01-01 00:00 UTC, and again every `period_ms`
        /// milliseconds: with 86,400,000, at the same time each day. It waits until the device knows the
        /// time. Of the times that passed while the device was off the next one counts; a timer
        /// without a period fires late.
        pub fn timer_at(
            function: *const u8,
            function_length: usize,
            parameter: *const u8,
            parameter_length: usize,
            unix_time_s: u32,
            period_ms: u32,
        ) -> i32;

        /// Ends the timer of `function`, or returns `NotFound`. A call that waits already is made.
        pub fn timer_cancel(function: *const u8, function_length: usize) -> i32;

        /// The same as `timer_after` at each time of `schedule`: a time of day (`06:30`) or the five fields of
        /// crontab(5): minute, hour, day of the month, month, day of the week (`0,30 8-18 * * mon-fri`), 128
        /// bytes at most. Its times are in UTC, or on the clock whose rules stand before it as in POSIX's `TZ`
        /// (`TZ=CET-1CEST,M3.5.0,M10.5.0/3 06:30`). It waits until the device knows the time; of the times that
        /// passed while the device was off none is made up for. `Invalid` if the text is no schedule, or its day
        /// never comes.
        pub fn timer_schedule(
            function: *const u8,
            function_length: usize,
            parameter: *const u8,
            parameter_length: usize,
            schedule: *const u8,
            schedule_length: usize,
        ) -> i32;

        /// Publishes an event: whoever has subscribed to `topic` gets `payload`, 2,048 bytes at most.
        /// Returns how many subscriptions have it in their queues. Topics below `device` are the device's
        /// own; those below `command.NAME` go to the peripheral `NAME`, and take a grant to use it. It counts
        /// as one message against the budget.
        pub fn publish(
            topic: *const u8,
            topic_length: usize,
            payload: *const u8,
            payload_length: usize,
        ) -> i32;

        /// Subscribes to `topic`, to all topics below one (`door.*`) or to all (`*`), with a queue of
        /// `depth` events. `policy` says what happens when it is full: 0 the oldest event is dropped, 1
        /// the new one, 2 only the latest is kept. Each event is a call of this machine's `handler`, with
        /// the payload as its parameter; where `handler` is empty, `event_next` gives it. A second
        /// subscription to the same text changes the first. They end with a restart of the machine.
        pub fn subscribe(
            topic: *const u8,
            topic_length: usize,
            policy: u32,
            depth: u32,
            handler: *const u8,
            handler_length: usize,
        ) -> i32;

        /// Ends a subscription with what is queued for it, or says `NotFound`.
        pub fn unsubscribe(topic: *const u8, topic_length: usize) -> i32;

        /// Takes the next event of the subscriptions without a handler, in the order in which they were
        /// published, and returns the length of its payload; others run while it waits. `Deadline` if
        /// none comes within `timeout_ms`, of which 0 doesn't wait and 0xFFFFFFFF waits for ever;
        /// `NotFound` if there is no such subscription. Other calls are served only after this one.
        pub fn event_next(timeout_ms: u32) -> i32;

        /// Writes the topic of the event that was taken, or that is being handled, to `into` and returns
        /// its length, 64 at most.
        pub fn event_topic(into: *mut u8, into_capacity: usize) -> i32;

        /// Copies the payload of that event from byte `offset` on to `into` and returns how many bytes
        /// were copied.
        pub fn event_read(offset: u32, into: *mut u8, into_capacity: usize) -> i32;

        /// How many events its subscription dropped between the one before and that one.
        pub fn event_dropped() -> i32;

        /// How many events the subscription to `topic` has dropped in all.
        pub fn topic_dropped(topic: *const u8, topic_length: usize) -> i32;

        /// Copies the secret `name` of this machine's tenant to `into`, as much as fits, and returns its
        /// whole length; `NotFound` if the tenant has set none of that name here, `NotGranted` without
        /// a right to it. What is read is as it was set last.
        pub fn secret_read(
            name: *const u8,
            name_length: usize,
            into: *mut u8,
            into_capacity: usize,
        ) -> i32;
    }
}

/// The host calls of native machines.
#[cfg(target_os = "none")]
#[allow(clippy::missing_safety_doc, clippy::too_many_arguments)]
#[rustfmt::skip]
mod native {
    use crate::native::request;

    /// Writes a line to the machine's log. Levels: 0 error, 1 warning, 2 info, 3 debug. What is
    /// longer than 256 bytes is cut.
    pub unsafe fn log(level: u32, message: *const u8, message_length: usize) {
        // SAFETY: the caller's promise.
        unsafe { request::<0>([level as usize, message.expose_provenance(), message_length, 0, 0, 0]) };
    }

    /// Microseconds since the device booted.
    pub unsafe fn uptime_us() -> i64 {
        // SAFETY: the caller's promise.
        let [low, high] = unsafe { request::<1>([0, 0, 0, 0, 0, 0]) };
        (high as i64) << 32 | low as i64
    }

    /// Seconds since 1970-01-01 00:00 UTC, or -1 if the device doesn't know.
    pub unsafe fn unix_time_s() -> i64 {
        // SAFETY: the caller's promise.
        let [low, high] = unsafe { request::<2>([0, 0, 0, 0, 0, 0]) };
        (high as i64) << 32 | low as i64
    }

    /// Writes this machine's public key to `into` and returns its length, 32.
    pub unsafe fn public_key(into: *mut u8, into_capacity: usize) -> i32 {
        // SAFETY: the caller's promise.
        let [low, _] = unsafe { request::<3>([into.expose_provenance(), into_capacity, 0, 0, 0, 0]) };
        low as i32
    }

    /// Writes the public key of the machine that made the call being served to `into` and returns
    /// its length, 32; 0 if the device itself made it.
    pub unsafe fn caller(into: *mut u8, into_capacity: usize) -> i32 {
        // SAFETY: the caller's promise.
        let [low, _] = unsafe { request::<4>([into.expose_provenance(), into_capacity, 0, 0, 0, 0]) };
        low as i32
    }

    /// The length of the parameter of the call being served, or `NotFound` if it is null.
    pub unsafe fn parameter_length() -> i32 {
        // SAFETY: the caller's promise.
        let [low, _] = unsafe { request::<5>([0, 0, 0, 0, 0, 0]) };
        low as i32
    }

    /// Copies the parameter from byte `offset` on to `into` and returns how many bytes were copied.
    pub unsafe fn parameter_read(offset: u32, into: *mut u8, into_capacity: usize) -> i32 {
        // SAFETY: the caller's promise.
        let [low, _] = unsafe { request::<6>([offset as usize, into.expose_provenance(), into_capacity, 0, 0, 0]) };
        low as i32
    }

    /// Sets the result of the call being served; without it, or with a null value, it is null.
    /// The last one counts.
    pub unsafe fn reply(value: *const u8, value_length: usize) -> i32 {
        // SAFETY: the caller's promise.
        let [low, _] = unsafe { request::<7>([value.expose_provenance(), value_length, 0, 0, 0, 0]) };
        low as i32
    }

    /// Stores `value` at `path` (`a.b.c`) in the machine's tree, replacing what was there. `kind`
    /// is 0 for bytes, 1 for text. Once it returns 0 the value survives a loss of power. A name
    /// between dots that is empty or has a control character makes `path` invalid, here and in
    /// the other calls.
    pub unsafe fn tree_set(
        path: *const u8,
        path_length: usize,
        kind: u32,
        value: *const u8,
        value_length: usize,
    ) -> i32 {
        // SAFETY: the caller's promise.
        let [low, _] = unsafe { request::<8>([path.expose_provenance(), path_length, kind as usize, value.expose_provenance(), value_length, 0]) };
        low as i32
    }

    /// Copies the value at `path` to `into`, as much as fits, and returns its whole length.
    pub unsafe fn tree_get(
        path: *const u8,
        path_length: usize,
        into: *mut u8,
        into_capacity: usize,
    ) -> i32 {
        // SAFETY: the caller's promise.
        let [low, _] = unsafe { request::<9>([path.expose_provenance(), path_length, into.expose_provenance(), into_capacity, 0, 0]) };
        low as i32
    }

    /// Deletes the value at `path` and everything below it; returns how many values went. If the
    /// power goes before it returns, each value is still there or gone.
    pub unsafe fn tree_delete(path: *const u8, path_length: usize) -> i32 {
        // SAFETY: the caller's promise.
        let [low, _] = unsafe { request::<10>([path.expose_provenance(), path_length, 0, 0, 0, 0]) };
        low as i32
    }

    /// Writes the names of the children of `path` (empty: of the root) to `into`, each followed by
    /// a zero byte, in order; returns the length of the whole list, which may be more than fits.
    pub unsafe fn tree_list(
        path: *const u8,
        path_length: usize,
        into: *mut u8,
        into_capacity: usize,
    ) -> i32 {
        // SAFETY: the caller's promise.
        let [low, _] = unsafe { request::<11>([path.expose_provenance(), path_length, into.expose_provenance(), into_capacity, 0, 0]) };
        low as i32
    }

    /// Calls `function` of the machine `target` and waits; others run meanwhile. Returns the length
    /// of the result, which `result_read` reads; `Null` if the result is null. `deadline_ms` 0
    /// means the device's default. Targets: `name`, `name@device`, `#id` or `#key`; this machine
    /// itself, which would wait for itself, is `Denied`. A target may also be the URL of a server outside: then
    /// `function` is the method (`GET`), and the parameter the request's fields, an empty line and its body; the result
    /// is `HTTP/1.1 `, the status, a space, the fields, an empty line and the body, or its beginning where no
    /// `content-length` says that this is all. `more` instead of a method returns the next part, null after the last.
    pub unsafe fn call(
        target: *const u8,
        target_length: usize,
        function: *const u8,
        function_length: usize,
        parameter: *const u8,
        parameter_length: usize,
        deadline_ms: u32,
    ) -> i32 {
        let rest = [parameter_length, deadline_ms as usize];
        // SAFETY: the caller's promise.
        let [low, _] = unsafe { request::<12>([target.expose_provenance(), target_length, function.expose_provenance(), function_length, parameter.expose_provenance(), (&raw const rest).expose_provenance()]) };
        low as i32
    }

    /// Copies the result of the last `call` from byte `offset` on to `into` and returns how many
    /// bytes were copied. Of a call that failed by `Stopped` or `Asleep` this is, in decimal, after
    /// how many milliseconds another one is worth trying, if that is known; by `Execution` or `Overspent`,
    /// what the called machine says of it, if it tells its callers, 512 bytes at most; and of a server, why there is no
    /// answer.
    pub unsafe fn result_read(offset: u32, into: *mut u8, into_capacity: usize) -> i32 {
        // SAFETY: the caller's promise.
        let [low, _] = unsafe { request::<13>([offset as usize, into.expose_provenance(), into_capacity, 0, 0, 0]) };
        low as i32
    }

    /// Puts a call into the queue and goes on. When it is done, `on_success` of this machine is
    /// called with its result; when it failed for good, after `retries` further attempts to reach
    /// the target, `on_failure` is called with the reason. Either may be empty. Returns the task's
    /// number. A call runs at most once, however often it is sent. Targets are those of `call`, and
    /// empty for this machine. If the machine is stopped meanwhile, `on_failure` is called after its next
    /// start with `outcome unknown`; so it is if the result finds no room.
    pub unsafe fn queue(
        target: *const u8,
        target_length: usize,
        function: *const u8,
        function_length: usize,
        parameter: *const u8,
        parameter_length: usize,
        on_success: *const u8,
        on_success_length: usize,
        on_failure: *const u8,
        on_failure_length: usize,
        deadline_ms: u32,
        retries: u32,
    ) -> i32 {
        let rest = [parameter_length, on_success.expose_provenance(), on_success_length, on_failure.expose_provenance(), on_failure_length, deadline_ms as usize, retries as usize];
        // SAFETY: the caller's promise.
        let [low, _] = unsafe { request::<14>([target.expose_provenance(), target_length, function.expose_provenance(), function_length, parameter.expose_provenance(), (&raw const rest).expose_provenance()]) };
        low as i32
    }

    /// Lets the others run; returns when it is this machine's turn again.
    pub unsafe fn yield_now() {
        // SAFETY: the caller's promise.
        unsafe { request::<15>([0, 0, 0, 0, 0, 0]) };
    }

    /// Waits for `duration_ms` milliseconds while others run.
    pub unsafe fn sleep_ms(duration_ms: u32) {
        // SAFETY: the caller's promise.
        unsafe { request::<16>([duration_ms as usize, 0, 0, 0, 0, 0]) };
    }

    /// Fills `into` with random bytes fit for keys.
    pub unsafe fn random(into: *mut u8, into_capacity: usize) -> i32 {
        // SAFETY: the caller's promise.
        let [low, _] = unsafe { request::<17>([into.expose_provenance(), into_capacity, 0, 0, 0, 0]) };
        low as i32
    }

    /// Writes the 32-byte public keys of the machines this device knows to `into`, as many as fit;
    /// returns how many bytes there are in all. `which`: 1 those on this device, 2 those on others,
    /// 3 both.
    pub unsafe fn peers(which: u32, into: *mut u8, into_capacity: usize) -> i32 {
        // SAFETY: the caller's promise.
        let [low, _] = unsafe { request::<18>([which as usize, into.expose_provenance(), into_capacity, 0, 0, 0]) };
        low as i32
    }

    /// Finds the public key of the machine that `target` names, waiting for the directory if need
    /// be; writes it to `into` and returns its length, 32.
    pub unsafe fn resolve(
        target: *const u8,
        target_length: usize,
        into: *mut u8,
        into_capacity: usize,
    ) -> i32 {
        // SAFETY: the caller's promise.
        let [low, _] = unsafe { request::<19>([target.expose_provenance(), target_length, into.expose_provenance(), into_capacity, 0, 0]) };
        low as i32
    }

    /// Ends the call being served as failed and stops the machine, with `message` in its log.
    pub unsafe fn abort(message: *const u8, message_length: usize) {
        // SAFETY: the caller's promise.
        unsafe { request::<20>([message.expose_provenance(), message_length, 0, 0, 0, 0]) };
    }

    /// Makes the call being served fail once it returns; the machine goes on. Its caller learns
    /// `Execution`. The value that was set by `reply` before, cut to 512 bytes, is the text of the error:
    /// the device's owner gets it with a call, and other callers where the manifest tells errors to
    /// callers. What `reply` sets afterwards counts for nothing.
    pub unsafe fn fail() {
        // SAFETY: the caller's promise.
        unsafe { request::<21>([0, 0, 0, 0, 0, 0]) };
    }

    /// Asks for a higher tier for a critical section, on a device that shares the processor by tiers.
    /// It counts from the machine's next turn on, until `fuel` is used, or the task ends, or tier 0 is
    /// asked for; a fifth of its fuel a machine can use so. Returns the tier that it has then: the
    /// usual one if no fuel for critical sections is left. A tier beyond the lease is `NotGranted`.
    pub unsafe fn raise_tier(tier: u32, fuel: u32) -> i32 {
        // SAFETY: the caller's promise.
        let [low, _] = unsafe { request::<22>([tier as usize, fuel as usize, 0, 0, 0, 0]) };
        low as i32
    }

    /// The rest of a budget now. `which`: 0 fuel, 1 flash bytes, 2 messages, 3 message bytes,
    /// 4 stored bytes, 5 places in the queue. 2147483647 if there is no limit or it is more.
    pub unsafe fn budget_left(which: u32) -> i32 {
        // SAFETY: the caller's promise.
        let [low, _] = unsafe { request::<23>([which as usize, 0, 0, 0, 0, 0]) };
        low as i32
    }

    /// The number of the queued call whose callback is being served, as `queue` returned it; `NotFound`
    /// if none is.
    pub unsafe fn callback_of() -> i32 {
        // SAFETY: the caller's promise.
        let [low, _] = unsafe { request::<24>([0, 0, 0, 0, 0, 0]) };
        low as i32
    }

    /// Calls `function` of this machine after `delay_ms` milliseconds, and again every `period_ms`
    /// milliseconds, 10 at least; 0 means once. A machine has eight timers at most, one for each
    /// function: setting another replaces it, setting the same period again changes nothing. They
    /// outlast faults and, counted from the start, restarts of the device, but not an update. A timer
    /// fires up to a tenth of its wait late, a second at most, so that wake-ups are shared. The parameter
    /// has 64 bytes at most. Setting and ending a timer are flash writes.
    pub unsafe fn timer_after(
        function: *const u8,
        function_length: usize,
        parameter: *const u8,
        parameter_length: usize,
        delay_ms: u32,
        period_ms: u32,
    ) -> i32 {
        // SAFETY: the caller's promise.
        let [low, _] = unsafe { request::<25>([function.expose_provenance(), function_length, parameter.expose_provenance(), parameter_length, delay_ms as usize, period_ms as usize]) };
        low as i32
    }

    /// The same at a time of day, in seconds since 1970-01-01 00:00 UTC, and again every `period_ms`
    /// milliseconds: with 86,400,000, at the same time each day. It waits until the device knows the
    /// time. Of the times that passed while the device was off the next one counts; a timer
    /// without a period fires late.
    pub unsafe fn timer_at(
        function: *const u8,
        function_length: usize,
        parameter: *const u8,
        parameter_length: usize,
        unix_time_s: u32,
        period_ms: u32,
    ) -> i32 {
        // SAFETY: the caller's promise.
        let [low, _] = unsafe { request::<26>([function.expose_provenance(), function_length, parameter.expose_provenance(), parameter_length, unix_time_s as usize, period_ms as usize]) };
        low as i32
    }

    /// Ends the timer of `function`, or returns `NotFound`. A call that waits already is made.
    pub unsafe fn timer_cancel(function: *const u8, function_length: usize) -> i32 {
        // SAFETY: the caller's promise.
        let [low, _] = unsafe { request::<27>([function.expose_provenance(), function_length, 0, 0, 0, 0]) };
        low as i32
    }

    /// The same as `timer_after` at each time of `schedule`: a time of day (`06:30`) or the five fields of
    /// crontab(5): minute, hour, day of the month, month, day of the week (`0,30 8-18 * * mon-fri`), 128
    /// bytes at most. Its times are in UTC, or on the clock whose rules stand before it as in POSIX's `TZ`
    /// (`TZ=CET-1CEST,M3.5.0,M10.5.0/3 06:30`). It waits until the device knows the time; of the times that
    /// passed while the device was off none is made up for. `Invalid` if the text is no schedule, or its day
    /// never comes.
    pub unsafe fn timer_schedule(
        function: *const u8,
        function_length: usize,
        parameter: *const u8,
        parameter_length: usize,
        schedule: *const u8,
        schedule_length: usize,
    ) -> i32 {
        // SAFETY: the caller's promise.
        let [low, _] = unsafe { request::<28>([function.expose_provenance(), function_length, parameter.expose_provenance(), parameter_length, schedule.expose_provenance(), schedule_length]) };
        low as i32
    }

    /// Publishes an event: whoever has subscribed to `topic` gets `payload`, 2,048 bytes at most.
    /// Returns how many subscriptions have it in their queues. Topics below `device` are the device's
    /// own; those below `command.NAME` go to the peripheral `NAME`, and take a grant to use it. It counts
    /// as one message against the budget.
    pub unsafe fn publish(
        topic: *const u8,
        topic_length: usize,
        payload: *const u8,
        payload_length: usize,
    ) -> i32 {
        // SAFETY: the caller's promise.
        let [low, _] = unsafe { request::<30>([topic.expose_provenance(), topic_length, payload.expose_provenance(), payload_length, 0, 0]) };
        low as i32
    }

    /// Subscribes to `topic`, to all topics below one (`door.*`) or to all (`*`), with a queue of
    /// `depth` events. `policy` says what happens when it is full: 0 the oldest event is dropped, 1
    /// the new one, 2 only the latest is kept. Each event is a call of this machine's `handler`, with
    /// the payload as its parameter; where `handler` is empty, `event_next` gives it. A second
    /// subscription to the same text changes the first. They end with a restart of the machine.
    pub unsafe fn subscribe(
        topic: *const u8,
        topic_length: usize,
        policy: u32,
        depth: u32,
        handler: *const u8,
        handler_length: usize,
    ) -> i32 {
        // SAFETY: the caller's promise.
        let [low, _] = unsafe { request::<31>([topic.expose_provenance(), topic_length, policy as usize, depth as usize, handler.expose_provenance(), handler_length]) };
        low as i32
    }

    /// Ends a subscription with what is queued for it, or says `NotFound`.
    pub unsafe fn unsubscribe(topic: *const u8, topic_length: usize) -> i32 {
        // SAFETY: the caller's promise.
        let [low, _] = unsafe { request::<32>([topic.expose_provenance(), topic_length, 0, 0, 0, 0]) };
        low as i32
    }

    /// Takes the next event of the subscriptions without a handler, in the order in which they were
    /// published, and returns the length of its payload; others run while it waits. `Deadline` if
    /// none comes within `timeout_ms`, of which 0 doesn't wait and 0xFFFFFFFF waits for ever;
    /// `NotFound` if there is no such subscription. Other calls are served only after this one.
    pub unsafe fn event_next(timeout_ms: u32) -> i32 {
        // SAFETY: the caller's promise.
        let [low, _] = unsafe { request::<33>([timeout_ms as usize, 0, 0, 0, 0, 0]) };
        low as i32
    }

    /// Writes the topic of the event that was taken, or that is being handled, to `into` and returns
    /// its length, 64 at most.
    pub unsafe fn event_topic(into: *mut u8, into_capacity: usize) -> i32 {
        // SAFETY: the caller's promise.
        let [low, _] = unsafe { request::<34>([into.expose_provenance(), into_capacity, 0, 0, 0, 0]) };
        low as i32
    }

    /// Copies the payload of that event from byte `offset` on to `into` and returns how many bytes
    /// were copied.
    pub unsafe fn event_read(offset: u32, into: *mut u8, into_capacity: usize) -> i32 {
        // SAFETY: the caller's promise.
        let [low, _] = unsafe { request::<35>([offset as usize, into.expose_provenance(), into_capacity, 0, 0, 0]) };
        low as i32
    }

    /// How many events its subscription dropped between the one before and that one.
    pub unsafe fn event_dropped() -> i32 {
        // SAFETY: the caller's promise.
        let [low, _] = unsafe { request::<36>([0, 0, 0, 0, 0, 0]) };
        low as i32
    }

    /// How many events the subscription to `topic` has dropped in all.
    pub unsafe fn topic_dropped(topic: *const u8, topic_length: usize) -> i32 {
        // SAFETY: the caller's promise.
        let [low, _] = unsafe { request::<37>([topic.expose_provenance(), topic_length, 0, 0, 0, 0]) };
        low as i32
    }

    /// Copies the secret `name` of this machine's tenant to `into`, as much as fits, and returns its
    /// whole length; `NotFound` if the tenant has set none of that name here, `NotGranted` without
    /// a right to it. What is read is as it was set last.
    pub unsafe fn secret_read(
        name: *const u8,
        name_length: usize,
        into: *mut u8,
        into_capacity: usize,
    ) -> i32 {
        // SAFETY: the caller's promise.
        let [low, _] = unsafe { request::<40>([name.expose_provenance(), name_length, into.expose_provenance(), into_capacity, 0, 0]) };
        low as i32
    }
}

/// The same names where there is no host, so that a program's own tests can be built.
#[cfg(not(any(target_arch = "wasm32", target_os = "none")))]
#[allow(clippy::missing_safety_doc, clippy::too_many_arguments)]
#[allow(missing_docs, unused_variables)]
mod elsewhere {
    pub unsafe fn log(level: u32, message: *const u8, message_length: usize) {
        panic!("`log` is there only in a machine")
    }

    pub unsafe fn uptime_us() -> i64 {
        panic!("`uptime_us` is there only in a machine")
    }

    pub unsafe fn unix_time_s() -> i64 {
        panic!("`unix_time_s` is there only in a machine")
    }

    pub unsafe fn public_key(into: *mut u8, into_capacity: usize) -> i32 {
        panic!("`public_key` is there only in a machine")
    }

    pub unsafe fn caller(into: *mut u8, into_capacity: usize) -> i32 {
        panic!("`caller` is there only in a machine")
    }

    pub unsafe fn parameter_length() -> i32 {
        panic!("`parameter_length` is there only in a machine")
    }

    pub unsafe fn parameter_read(offset: u32, into: *mut u8, into_capacity: usize) -> i32 {
        panic!("`parameter_read` is there only in a machine")
    }

    pub unsafe fn reply(value: *const u8, value_length: usize) -> i32 {
        panic!("`reply` is there only in a machine")
    }

    pub unsafe fn tree_set(
        path: *const u8,
        path_length: usize,
        kind: u32,
        value: *const u8,
        value_length: usize,
    ) -> i32 {
        panic!("`tree_set` is there only in a machine")
    }

    pub unsafe fn tree_get(
        path: *const u8,
        path_length: usize,
        into: *mut u8,
        into_capacity: usize,
    ) -> i32 {
        panic!("`tree_get` is there only in a machine")
    }

    pub unsafe fn tree_delete(path: *const u8, path_length: usize) -> i32 {
        panic!("`tree_delete` is there only in a machine")
    }

    pub unsafe fn tree_list(
        path: *const u8,
        path_length: usize,
        into: *mut u8,
        into_capacity: usize,
    ) -> i32 {
        panic!("`tree_list` is there only in a machine")
    }

    pub unsafe fn call(
        target: *const u8,
        target_length: usize,
        function: *const u8,
        function_length: usize,
        parameter: *const u8,
        parameter_length: usize,
        deadline_ms: u32,
    ) -> i32 {
        panic!("`call` is there only in a machine")
    }

    pub unsafe fn result_read(offset: u32, into: *mut u8, into_capacity: usize) -> i32 {
        panic!("`result_read` is there only in a machine")
    }

    pub unsafe fn queue(
        target: *const u8,
        target_length: usize,
        function: *const u8,
        function_length: usize,
        parameter: *const u8,
        parameter_length: usize,
        on_success: *const u8,
        on_success_length: usize,
        on_failure: *const u8,
        on_failure_length: usize,
        deadline_ms: u32,
        retries: u32,
    ) -> i32 {
        panic!("`queue` is there only in a machine")
    }

    pub unsafe fn yield_now() {
        panic!("`yield_now` is there only in a machine")
    }

    pub unsafe fn sleep_ms(duration_ms: u32) {
        panic!("`sleep_ms` is there only in a machine")
    }

    pub unsafe fn random(into: *mut u8, into_capacity: usize) -> i32 {
        panic!("`random` is there only in a machine")
    }

    pub unsafe fn peers(which: u32, into: *mut u8, into_capacity: usize) -> i32 {
        panic!("`peers` is there only in a machine")
    }

    pub unsafe fn resolve(
        target: *const u8,
        target_length: usize,
        into: *mut u8,
        into_capacity: usize,
    ) -> i32 {
        panic!("`resolve` is there only in a machine")
    }

    pub unsafe fn abort(message: *const u8, message_length: usize) {
        panic!("`abort` is there only in a machine")
    }

    pub unsafe fn fail() {
        panic!("`fail` is there only in a machine")
    }

    pub unsafe fn raise_tier(tier: u32, fuel: u32) -> i32 {
        panic!("`raise_tier` is there only in a machine")
    }

    pub unsafe fn budget_left(which: u32) -> i32 {
        panic!("`budget_left` is there only in a machine")
    }

    pub unsafe fn callback_of() -> i32 {
        panic!("`callback_of` is there only in a machine")
    }

    pub unsafe fn timer_after(
        function: *const u8,
        function_length: usize,
        parameter: *const u8,
        parameter_length: usize,
        delay_ms: u32,
        period_ms: u32,
    ) -> i32 {
        panic!("`timer_after` is there only in a machine")
    }

    pub unsafe fn timer_at(
        function: *const u8,
        function_length: usize,
        parameter: *const u8,
        parameter_length: usize,
        unix_time_s: u32,
        period_ms: u32,
    ) -> i32 {
        panic!("`timer_at` is there only in a machine")
    }

    pub unsafe fn timer_cancel(function: *const u8, function_length: usize) -> i32 {
        panic!("`timer_cancel` is there only in a machine")
    }

    pub unsafe fn timer_schedule(
        function: *const u8,
        function_length: usize,
        parameter: *const u8,
        parameter_length: usize,
        schedule: *const u8,
        schedule_length: usize,
    ) -> i32 {
        panic!("`timer_schedule` is there only in a machine")
    }

    pub unsafe fn publish(
        topic: *const u8,
        topic_length: usize,
        payload: *const u8,
        payload_length: usize,
    ) -> i32 {
        panic!("`publish` is there only in a machine")
    }

    pub unsafe fn subscribe(
        topic: *const u8,
        topic_length: usize,
        policy: u32,
        depth: u32,
        handler: *const u8,
        handler_length: usize,
    ) -> i32 {
        panic!("`subscribe` is there only in a machine")
    }

    pub unsafe fn unsubscribe(topic: *const u8, topic_length: usize) -> i32 {
        panic!("`unsubscribe` is there only in a machine")
    }

    pub unsafe fn event_next(timeout_ms: u32) -> i32 {
        panic!("`event_next` is there only in a machine")
    }

    pub unsafe fn event_topic(into: *mut u8, into_capacity: usize) -> i32 {
        panic!("`event_topic` is there only in a machine")
    }

    pub unsafe fn event_read(offset: u32, into: *mut u8, into_capacity: usize) -> i32 {
        panic!("`event_read` is there only in a machine")
    }

    pub unsafe fn event_dropped() -> i32 {
        panic!("`event_dropped` is there only in a machine")
    }

    pub unsafe fn topic_dropped(topic: *const u8, topic_length: usize) -> i32 {
        panic!("`topic_dropped` is there only in a machine")
    }

    pub unsafe fn secret_read(
        name: *const u8,
        name_length: usize,
        into: *mut u8,
        into_capacity: usize,
    ) -> i32 {
        panic!("`secret_read` is there only in a machine")
    }
}
