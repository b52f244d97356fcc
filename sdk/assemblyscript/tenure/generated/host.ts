// Generated from crates/wire/src/host_call.rs by `cargo xtask generate`.
// The raw host calls; tenure.ts is what programs use.

/** Why a host call failed: a negative result. */
export namespace HostError {
  /** Not found. */
  export const NotFound: i32 = -1;
  /** Too long. */
  export const TooLong: i32 = -2;
  /** No room left. */
  export const Full: i32 = -3;
  /** Denied. */
  export const Denied: i32 = -4;
  /** Not well formed. */
  export const Invalid: i32 = -5;
  /** Execution error. */
  export const Execution: i32 = -6;
  /** Unreachable. */
  export const Unreachable: i32 = -7;
  /** Deadline passed. */
  export const Deadline: i32 = -8;
  /** Outcome unknown. */
  export const Unknown: i32 = -9;
  /** Device failure. */
  export const Device: i32 = -10;
  /** Null. */
  export const Null: i32 = -11;
  /** Message budget spent. */
  export const MessageBudget: i32 = -12;
  /** Flash budget spent. */
  export const FlashBudget: i32 = -13;
  /** Queue budget spent. */
  export const QueueBudget: i32 = -14;
  /** Storage budget spent. */
  export const StoredBudget: i32 = -15;
  /** The machine is stopped for now. */
  export const Stopped: i32 = -16;
  /** The machine is banned. */
  export const Banned: i32 = -17;
  /** The call took more than its machine's budget. */
  export const Overspent: i32 = -18;
  /** The device sleeps. */
  export const Asleep: i32 = -19;
  /** Not granted. */
  export const NotGranted: i32 = -20;
  /** Lease over. */
  export const LeaseOver: i32 = -21;
  /** Stopped by its owner. */
  export const Halted: i32 = -22;
}

/** An error in a few words. */
export function errorText(code: i32): string {
  switch (code) {
    case -1: return "not found";
    case -2: return "too long";
    case -3: return "no room left";
    case -4: return "denied";
    case -5: return "not well formed";
    case -6: return "execution error";
    case -7: return "unreachable";
    case -8: return "deadline passed";
    case -9: return "outcome unknown";
    case -10: return "device failure";
    case -11: return "null";
    case -12: return "message budget spent";
    case -13: return "flash budget spent";
    case -14: return "queue budget spent";
    case -15: return "storage budget spent";
    case -16: return "the machine is stopped for now";
    case -17: return "the machine is banned";
    case -18: return "the call took more than its machine's budget";
    case -19: return "the device sleeps";
    case -20: return "not granted";
    case -21: return "lease over";
    case -22: return "stopped by its owner";
    default: return code < 0 ? "unknown error" : "no error";
  }
}

/**
 * Writes a line to the machine's log. Levels: 0 error, 1 warning, 2 info, 3 debug. What is
 * longer than 256 bytes is cut.
 */
// @ts-ignore: the compiler's
@external("tenure", "log")
export declare function log(level: u32, message_at: usize, message_length: u32): void;

/**
 * Microseconds since the device booted.
 */
// @ts-ignore: the compiler's
@external("tenure", "uptime_us")
export declare function uptime_us(): i64;

/**
 * Seconds since 1970-01-01 00:00 UTC, or -1 if the device doesn't know.
 */
// @ts-ignore: the compiler's
@external("tenure", "unix_time_s")
export declare function unix_time_s(): i64;

/**
 * Writes this machine's public key to `into` and returns its length, 32.
 */
// @ts-ignore: the compiler's
@external("tenure", "public_key")
export declare function public_key(into_at: usize, into_capacity: u32): i32;

/**
 * Writes the public key of the machine that made the call being served to `into` and returns
 * its length, 32; 0 if the device itself made it.
 */
// @ts-ignore: the compiler's
@external("tenure", "caller")
export declare function caller(into_at: usize, into_capacity: u32): i32;

/**
 * The length of the parameter of the call being served, or `NotFound` if it is null.
 */
// @ts-ignore: the compiler's
@external("tenure", "parameter_length")
export declare function parameter_length(): i32;

/**
 * Copies the parameter from byte `offset` on to `into` and returns how many bytes were copied.
 */
// @ts-ignore: the compiler's
@external("tenure", "parameter_read")
export declare function parameter_read(offset: u32, into_at: usize, into_capacity: u32): i32;

/**
 * Sets the result of the call being served; without it, or with a null value, it is null.
 * The last one counts.
 */
// @ts-ignore: the compiler's
@external("tenure", "reply")
export declare function reply(value_at: usize, value_length: u32): i32;

/**
 * Stores `value` at `path` (`a.b.c`) in the machine's tree, replacing what was there. `kind`
 * is 0 for bytes, 1 for text. Once it returns 0 the value survives a loss of power. A name
 * between dots that is empty or has a control character makes `path` invalid, here and in
 * the other calls.
 */
// @ts-ignore: the compiler's
@external("tenure", "tree_set")
export declare function tree_set(path_at: usize, path_length: u32, kind: u32, value_at: usize, value_length: u32): i32;

/**
 * Copies the value at `path` to `into`, as much as fits, and returns its whole length.
 */
// @ts-ignore: the compiler's
@external("tenure", "tree_get")
export declare function tree_get(path_at: usize, path_length: u32, into_at: usize, into_capacity: u32): i32;

/**
 * Deletes the value at `path` and everything below it; returns how many values went. If the
 * power goes before it returns, each value is still there or gone.
 */
// @ts-ignore: the compiler's
@external("tenure", "tree_delete")
export declare function tree_delete(path_at: usize, path_length: u32): i32;

/**
 * Writes the names of the children of `path` (empty: of the root) to `into`, each followed by
 * a zero byte, in order; returns the length of the whole list, which may be more than fits.
 */
// @ts-ignore: the compiler's
@external("tenure", "tree_list")
export declare function tree_list(path_at: usize, path_length: u32, into_at: usize, into_capacity: u32): i32;

/**
 * Calls `function` of the machine `target` and waits; others run meanwhile. Returns the length
 * of the result, which `result_read` reads; `Null` if the result is null. `deadline_ms` 0
 * means the device's default. Targets: `name`, `name@device`, `#id` or `#key`; this machine
 * itself, which would wait for itself, is `Denied`. A target may also be the URL of a server outside: then
 * `function` is the method (`GET`), and the parameter the request's fields, an empty line and its body; the result
 * is `HTTP/1.1 `, the status, a space, the fields, an empty line and the body, or its beginning where no
 * `content-length` says that this is all. `more` instead of a method returns the next part, null after the last.
 */
// @ts-ignore: the compiler's
@external("tenure", "call")
export declare function call(target_at: usize, target_length: u32, function_at: usize, function_length: u32, parameter_at: usize, parameter_length: u32, deadline_ms: u32): i32;

/**
 * Copies the result of the last `call` from byte `offset` on to `into` and returns how many
 * bytes were copied. Of a call that failed by `Stopped` or `Asleep` this is, in decimal, after
 * how many milliseconds another one is worth trying, if that is known; by `Execution` or `Overspent`,
 * what the called machine says of it, if it tells its callers, 512 bytes at most; and of a server, why there is no
 * answer.
 */
// @ts-ignore: the compiler's
@external("tenure", "result_read")
export declare function result_read(offset: u32, into_at: usize, into_capacity: u32): i32;

/**
 * Puts a call into the queue and goes on. When it is done, `on_success` of this machine is
 * called with its result; when it failed for good, after `retries` further attempts to reach
 * the target, `on_failure` is called with the reason. Either may be empty. Returns the task's
 * number. A call runs at most once, however often it is sent. Targets are those of `call`, and
 * empty for this machine. If the machine is stopped meanwhile, `on_failure` is called after its next
 * start with `outcome unknown`; so it is if the result finds no room.
 */
// @ts-ignore: the compiler's
@external("tenure", "queue")
export declare function queue(target_at: usize, target_length: u32, function_at: usize, function_length: u32, parameter_at: usize, parameter_length: u32, on_success_at: usize, on_success_length: u32, on_failure_at: usize, on_failure_length: u32, deadline_ms: u32, retries: u32): i32;

/**
 * Lets the others run; returns when it is this machine's turn again.
 */
// @ts-ignore: the compiler's
@external("tenure", "yield_now")
export declare function yield_now(): void;

/**
 * Waits for `duration_ms` milliseconds while others run.
 */
// @ts-ignore: the compiler's
@external("tenure", "sleep_ms")
export declare function sleep_ms(duration_ms: u32): void;

/**
 * Fills `into` with random bytes fit for keys.
 */
// @ts-ignore: the compiler's
@external("tenure", "random")
export declare function random(into_at: usize, into_capacity: u32): i32;

/**
 * Writes the 32-byte public keys of the machines this device knows to `into`, as many as fit;
 * returns how many bytes there are in all. `which`: 1 those on this device, 2 those on others,
 * 3 both.
 */
// @ts-ignore: the compiler's
@external("tenure", "peers")
export declare function peers(which: u32, into_at: usize, into_capacity: u32): i32;

/**
 * Finds the public key of the machine that `target` names, waiting for the directory if need
 * be; writes it to `into` and returns its length, 32.
 */
// @ts-ignore: the compiler's
@external("tenure", "resolve")
export declare function resolve(target_at: usize, target_length: u32, into_at: usize, into_capacity: u32): i32;

/**
 * Ends the call being served as failed and stops the machine, with `message` in its log.
 */
// @ts-ignore: the compiler's
@external("tenure", "abort")
export declare function abort(message_at: usize, message_length: u32): void;

/**
 * Makes the call being served fail once it returns; the machine goes on. Its caller learns
 * `Execution`. The value that was set by `reply` before, cut to 512 bytes, is the text of the error:
 * the device's owner gets it with a call, and other callers where the manifest tells errors to
 * callers. What `reply` sets afterwards counts for nothing.
 */
// @ts-ignore: the compiler's
@external("tenure", "fail")
export declare function fail(): void;

/**
 * Asks for a higher tier for a critical section, on a device that shares the processor by tiers.
 * It counts from the machine's next turn on, until `fuel` is used, or the task ends, or tier 0 is
 * asked for; a fifth of its fuel a machine can use so. Returns the tier that it has then: the
 * usual one if no fuel for critical sections is left. A tier beyond the lease is `NotGranted`.
 */
// @ts-ignore: the compiler's
@external("tenure", "raise_tier")
export declare function raise_tier(tier: u32, fuel: u32): i32;

/**
 * The rest of a budget now. `which`: 0 fuel, 1 flash bytes, 2 messages, 3 message bytes,
 * 4 stored bytes, 5 places in the queue. 2147483647 if there is no limit or it is more.
 */
// @ts-ignore: the compiler's
@external("tenure", "budget_left")
export declare function budget_left(which: u32): i32;

/**
 * The number of the queued call whose callback is being served, as `queue` returned it; `NotFound`
 * if none is.
 */
// @ts-ignore: the compiler's
@external("tenure", "callback_of")
export declare function callback_of(): i32;

/**
 * Calls `function` of this machine after `delay_ms` milliseconds, and again every `period_ms`
 * milliseconds, 10 at least; 0 means once. A machine has eight timers at most, one for each
 * function: setting another replaces it, setting the same period again changes nothing. They
 * outlast faults and, counted from the start, restarts of the device, but not an update. A timer
 * fires up to a tenth of its wait late, a second at most, so that wake-ups are shared. The parameter
 * has 64 bytes at most. Setting and ending a timer are flash writes.
 */
// @ts-ignore: the compiler's
@external("tenure", "timer_after")
export declare function timer_after(function_at: usize, function_length: u32, parameter_at: usize, parameter_length: u32, delay_ms: u32, period_ms: u32): i32;

/**
 * The same at a time of day, in seconds since 1970-01-01 00:00 UTC, and again every `period_ms`
 * milliseconds: with 86,400,000, at the same time each day. It waits until the device knows the
 * time. Of the times that passed while the device was off the next one counts; a timer
 * without a period fires late.
 */
// @ts-ignore: the compiler's
@external("tenure", "timer_at")
export declare function timer_at(function_at: usize, function_length: u32, parameter_at: usize, parameter_length: u32, unix_time_s: u32, period_ms: u32): i32;

/**
 * Ends the timer of `function`, or returns `NotFound`. A call that waits already is made.
 */
// @ts-ignore: the compiler's
@external("tenure", "timer_cancel")
export declare function timer_cancel(function_at: usize, function_length: u32): i32;

/**
 * The same as `timer_after` at each time of `schedule`: a time of day (`06:30`) or the five fields of
 * crontab(5): minute, hour, day of the month, month, day of the week (`0,30 8-18 * * mon-fri`), 128
 * bytes at most. Its times are in UTC, or on the clock whose rules stand before it as in POSIX's `TZ`
 * (`TZ=CET-1CEST,M3.5.0,M10.5.0/3 06:30`). It waits until the device knows the time; of the times that
 * passed while the device was off none is made up for. `Invalid` if the text is no schedule, or its day
 * never comes.
 */
// @ts-ignore: the compiler's
@external("tenure", "timer_schedule")
export declare function timer_schedule(function_at: usize, function_length: u32, parameter_at: usize, parameter_length: u32, schedule_at: usize, schedule_length: u32): i32;

/**
 * Publishes an event: whoever has subscribed to `topic` gets `payload`, 2,048 bytes at most.
 * Returns how many subscriptions have it in their queues. Topics below `device` are the device's
 * own; those below `command.NAME` go to the peripheral `NAME`, and take a grant to use it. It counts
 * as one message against the budget.
 */
// @ts-ignore: the compiler's
@external("tenure", "publish")
export declare function publish(topic_at: usize, topic_length: u32, payload_at: usize, payload_length: u32): i32;

/**
 * Subscribes to `topic`, to all topics below one (`door.*`) or to all (`*`), with a queue of
 * `depth` events. `policy` says what happens when it is full: 0 the oldest event is dropped, 1
 * the new one, 2 only the latest is kept. Each event is a call of this machine's `handler`, with
 * the payload as its parameter; where `handler` is empty, `event_next` gives it. A second
 * subscription to the same text changes the first. They end with a restart of the machine.
 */
// @ts-ignore: the compiler's
@external("tenure", "subscribe")
export declare function subscribe(topic_at: usize, topic_length: u32, policy: u32, depth: u32, handler_at: usize, handler_length: u32): i32;

/**
 * Ends a subscription with what is queued for it, or says `NotFound`.
 */
// @ts-ignore: the compiler's
@external("tenure", "unsubscribe")
export declare function unsubscribe(topic_at: usize, topic_length: u32): i32;

/**
 * Takes the next event of the subscriptions without a handler, in the order in which they were
 * published, and returns the length of its payload; others run while it waits. `Deadline` if
 * none comes within `timeout_ms`, of which 0 doesn't wait and 0xFFFFFFFF waits for ever;
 * `NotFound` if there is no such subscription. Other calls are served only after this one.
 */
// @ts-ignore: the compiler's
@external("tenure", "event_next")
export declare function event_next(timeout_ms: u32): i32;

/**
 * Writes the topic of the event that was taken, or that is being handled, to `into` and returns
 * its length, 64 at most.
 */
// @ts-ignore: the compiler's
@external("tenure", "event_topic")
export declare function event_topic(into_at: usize, into_capacity: u32): i32;

/**
 * Copies the payload of that event from byte `offset` on to `into` and returns how many bytes
 * were copied.
 */
// @ts-ignore: the compiler's
@external("tenure", "event_read")
export declare function event_read(offset: u32, into_at: usize, into_capacity: u32): i32;

/**
 * How many events its subscription dropped between the one before and that one.
 */
// @ts-ignore: the compiler's
@external("tenure", "event_dropped")
export declare function event_dropped(): i32;

/**
 * How many events the subscription to `topic` has dropped in all.
 */
// @ts-ignore: the compiler's
@external("tenure", "topic_dropped")
export declare function topic_dropped(topic_at: usize, topic_length: u32): i32;

/**
 * Copies the secret `name` of this machine's tenant to `into`, as much as fits, and returns its
 * whole length; `NotFound` if the tenant has set none of that name here, `NotGranted` without
 * a right to it. What is read is as it was set last.
 */
// @ts-ignore: the compiler's
@external("tenure", "secret_read")
export declare function secret_read(name_at: usize, name_length: u32, into_at: usize, into_capacity: u32): i32;
