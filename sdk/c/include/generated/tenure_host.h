/* Generated from crates/wire/src/host_call.rs by `cargo xtask generate`.
 * The raw host calls; tenure.h is what programs use. */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Why a host call failed: a negative result. */
enum tenure_error {
    TENURE_NOT_FOUND = -1, /* not found */
    TENURE_TOO_LONG = -2, /* too long */
    TENURE_FULL = -3, /* no room left */
    TENURE_DENIED = -4, /* denied */
    TENURE_INVALID = -5, /* not well formed */
    TENURE_EXECUTION = -6, /* execution error */
    TENURE_UNREACHABLE = -7, /* unreachable */
    TENURE_DEADLINE = -8, /* deadline passed */
    TENURE_UNKNOWN = -9, /* outcome unknown */
    TENURE_DEVICE = -10, /* device failure */
    TENURE_NULL = -11, /* null */
    TENURE_MESSAGE_BUDGET = -12, /* message budget spent */
    TENURE_FLASH_BUDGET = -13, /* flash budget spent */
    TENURE_QUEUE_BUDGET = -14, /* queue budget spent */
    TENURE_STORED_BUDGET = -15, /* storage budget spent */
    TENURE_STOPPED = -16, /* the machine is stopped for now */
    TENURE_BANNED = -17, /* the machine is banned */
    TENURE_OVERSPENT = -18, /* the call took more than its machine's budget */
    TENURE_ASLEEP = -19, /* the device sleeps */
    TENURE_NOT_GRANTED = -20, /* not granted */
    TENURE_LEASE_OVER = -21, /* lease over */
    TENURE_HALTED = -22, /* stopped by its owner */
};

/* The words for each error, for tenure_error_text. */
#define TENURE_ERRORS(EACH) \
    EACH(TENURE_NOT_FOUND, "not found") \
    EACH(TENURE_TOO_LONG, "too long") \
    EACH(TENURE_FULL, "no room left") \
    EACH(TENURE_DENIED, "denied") \
    EACH(TENURE_INVALID, "not well formed") \
    EACH(TENURE_EXECUTION, "execution error") \
    EACH(TENURE_UNREACHABLE, "unreachable") \
    EACH(TENURE_DEADLINE, "deadline passed") \
    EACH(TENURE_UNKNOWN, "outcome unknown") \
    EACH(TENURE_DEVICE, "device failure") \
    EACH(TENURE_NULL, "null") \
    EACH(TENURE_MESSAGE_BUDGET, "message budget spent") \
    EACH(TENURE_FLASH_BUDGET, "flash budget spent") \
    EACH(TENURE_QUEUE_BUDGET, "queue budget spent") \
    EACH(TENURE_STORED_BUDGET, "storage budget spent") \
    EACH(TENURE_STOPPED, "the machine is stopped for now") \
    EACH(TENURE_BANNED, "the machine is banned") \
    EACH(TENURE_OVERSPENT, "the call took more than its machine's budget") \
    EACH(TENURE_ASLEEP, "the device sleeps") \
    EACH(TENURE_NOT_GRANTED, "not granted") \
    EACH(TENURE_LEASE_OVER, "lease over") \
    EACH(TENURE_HALTED, "stopped by its owner")

#ifdef __wasm__
#define TENURE_CALL(RESULT, NUMBER, NAME, PARAMETERS, BODY) \
    __attribute__((import_module("tenure"), import_name(#NAME))) \
    RESULT tenure_host_##NAME PARAMETERS;
#else
#include "tenure_native.h"
#define TENURE_CALL(RESULT, NUMBER, NAME, PARAMETERS, BODY) \
    static inline RESULT tenure_host_##NAME PARAMETERS BODY
#endif

/* Writes a line to the machine's log. Levels: 0 error, 1 warning, 2 info, 3 debug. What is
 * longer than 256 bytes is cut. */
TENURE_CALL(void, 0, log, (uint32_t level, const char *message, uint32_t message_length), { tenure_request(0, level, (uint32_t)message, message_length, 0, 0, 0); })

/* Microseconds since the device booted. */
TENURE_CALL(int64_t, 1, uptime_us, (void), { return (int64_t)tenure_request(1, 0, 0, 0, 0, 0, 0); })

/* Seconds since 1970-01-01 00:00 UTC, or -1 if the device doesn't know. */
TENURE_CALL(int64_t, 2, unix_time_s, (void), { return (int64_t)tenure_request(2, 0, 0, 0, 0, 0, 0); })

/* Writes this machine's public key to `into` and returns its length, 32. */
TENURE_CALL(int32_t, 3, public_key, (void *into, uint32_t into_capacity), { return (int32_t)tenure_request(3, (uint32_t)into, into_capacity, 0, 0, 0, 0); })

/* Writes the public key of the machine that made the call being served to `into` and returns
 * its length, 32; 0 if the device itself made it. */
TENURE_CALL(int32_t, 4, caller, (void *into, uint32_t into_capacity), { return (int32_t)tenure_request(4, (uint32_t)into, into_capacity, 0, 0, 0, 0); })

/* The length of the parameter of the call being served, or `NotFound` if it is null. */
TENURE_CALL(int32_t, 5, parameter_length, (void), { return (int32_t)tenure_request(5, 0, 0, 0, 0, 0, 0); })

/* Copies the parameter from byte `offset` on to `into` and returns how many bytes were copied. */
TENURE_CALL(int32_t, 6, parameter_read, (uint32_t offset, void *into, uint32_t into_capacity), { return (int32_t)tenure_request(6, offset, (uint32_t)into, into_capacity, 0, 0, 0); })

/* Sets the result of the call being served; without it, or with a null value, it is null.
 * The last one counts. */
TENURE_CALL(int32_t, 7, reply, (const void *value, uint32_t value_length), { return (int32_t)tenure_request(7, (uint32_t)value, value_length, 0, 0, 0, 0); })

/* Stores `value` at `path` (`a.b.c`) in the machine's tree, replacing what was there. `kind`
 * is 0 for bytes, 1 for text. Once it returns 0 the value survives a loss of power. A name
 * between dots that is empty or has a control character makes `path` invalid, here and in
 * the other calls. */
TENURE_CALL(int32_t, 8, tree_set, (const char *path, uint32_t path_length, uint32_t kind, const void *value, uint32_t value_length), { return (int32_t)tenure_request(8, (uint32_t)path, path_length, kind, (uint32_t)value, value_length, 0); })

/* Copies the value at `path` to `into`, as much as fits, and returns its whole length. */
TENURE_CALL(int32_t, 9, tree_get, (const char *path, uint32_t path_length, void *into, uint32_t into_capacity), { return (int32_t)tenure_request(9, (uint32_t)path, path_length, (uint32_t)into, into_capacity, 0, 0); })

/* Deletes the value at `path` and everything below it; returns how many values went. If the
 * power goes before it returns, each value is still there or gone. */
TENURE_CALL(int32_t, 10, tree_delete, (const char *path, uint32_t path_length), { return (int32_t)tenure_request(10, (uint32_t)path, path_length, 0, 0, 0, 0); })

/* Writes the names of the children of `path` (empty: of the root) to `into`, each followed by
 * a zero byte, in order; returns the length of the whole list, which may be more than fits. */
TENURE_CALL(int32_t, 11, tree_list, (const char *path, uint32_t path_length, void *into, uint32_t into_capacity), { return (int32_t)tenure_request(11, (uint32_t)path, path_length, (uint32_t)into, into_capacity, 0, 0); })

/* Calls `function` of the machine `target` and waits; others run meanwhile. Returns the length
 * of the result, which `result_read` reads; `Null` if the result is null. `deadline_ms` 0
 * means the device's default. Targets: `name`, `name@device`, `#id` or `#key`; this machine
 * itself, which would wait for itself, is `Denied`. A target may also be the URL of a server outside: then
 * `function` is the method (`GET`), and the parameter the request's fields, an empty line and its body; the result
 * is `HTTP/1.1 `, the status, a space, the fields, an empty line and the body, or its beginning where no
 * `content-length` says that this is all. `more` instead of a method returns the next part, null after the last. */
TENURE_CALL(int32_t, 12, call, (const char *target, uint32_t target_length, const char *function, uint32_t function_length, const void *parameter, uint32_t parameter_length, uint32_t deadline_ms), { const uint32_t rest[] = TENURE_LIST(parameter_length, deadline_ms); return (int32_t)tenure_request(12, (uint32_t)target, target_length, (uint32_t)function, function_length, (uint32_t)parameter, (uint32_t)rest); })

/* Copies the result of the last `call` from byte `offset` on to `into` and returns how many
 * bytes were copied. Of a call that failed by `Stopped` or `Asleep` this is, in decimal, after
 * how many milliseconds another one is worth trying, if that is known; by `Execution` or `Overspent`,
 * what the called machine says of it, if it tells its callers, 512 bytes at most; and of a server, why there is no
 * answer. */
TENURE_CALL(int32_t, 13, result_read, (uint32_t offset, void *into, uint32_t into_capacity), { return (int32_t)tenure_request(13, offset, (uint32_t)into, into_capacity, 0, 0, 0); })

/* Puts a call into the queue and goes on. When it is done, `on_success` of this machine is
 * called with its result; when it failed for good, after `retries` further attempts to reach
 * the target, `on_failure` is called with the reason. Either may be empty. Returns the task's
 * number. A call runs at most once, however often it is sent. Targets are those of `call`, and
 * empty for this machine. If the machine is stopped meanwhile, `on_failure` is called after its next
 * start with `outcome unknown`; so it is if the result finds no room. */
TENURE_CALL(int32_t, 14, queue, (const char *target, uint32_t target_length, const char *function, uint32_t function_length, const void *parameter, uint32_t parameter_length, const char *on_success, uint32_t on_success_length, const char *on_failure, uint32_t on_failure_length, uint32_t deadline_ms, uint32_t retries), { const uint32_t rest[] = TENURE_LIST(parameter_length, (uint32_t)on_success, on_success_length, (uint32_t)on_failure, on_failure_length, deadline_ms, retries); return (int32_t)tenure_request(14, (uint32_t)target, target_length, (uint32_t)function, function_length, (uint32_t)parameter, (uint32_t)rest); })

/* Lets the others run; returns when it is this machine's turn again. */
TENURE_CALL(void, 15, yield_now, (void), { tenure_request(15, 0, 0, 0, 0, 0, 0); })

/* Waits for `duration_ms` milliseconds while others run. */
TENURE_CALL(void, 16, sleep_ms, (uint32_t duration_ms), { tenure_request(16, duration_ms, 0, 0, 0, 0, 0); })

/* Fills `into` with random bytes fit for keys. */
TENURE_CALL(int32_t, 17, random, (void *into, uint32_t into_capacity), { return (int32_t)tenure_request(17, (uint32_t)into, into_capacity, 0, 0, 0, 0); })

/* Writes the 32-byte public keys of the machines this device knows to `into`, as many as fit;
 * returns how many bytes there are in all. `which`: 1 those on this device, 2 those on others,
 * 3 both. */
TENURE_CALL(int32_t, 18, peers, (uint32_t which, void *into, uint32_t into_capacity), { return (int32_t)tenure_request(18, which, (uint32_t)into, into_capacity, 0, 0, 0); })

/* Finds the public key of the machine that `target` names, waiting for the directory if need
 * be; writes it to `into` and returns its length, 32. */
TENURE_CALL(int32_t, 19, resolve, (const char *target, uint32_t target_length, void *into, uint32_t into_capacity), { return (int32_t)tenure_request(19, (uint32_t)target, target_length, (uint32_t)into, into_capacity, 0, 0); })

/* Ends the call being served as failed and stops the machine, with `message` in its log. */
TENURE_CALL(void, 20, abort, (const char *message, uint32_t message_length), { tenure_request(20, (uint32_t)message, message_length, 0, 0, 0, 0); })

/* Makes the call being served fail once it returns; the machine goes on. Its caller learns
 * `Execution`. The value that was set by `reply` before, cut to 512 bytes, is the text of the error:
 * the device's owner gets it with a call, and other callers where the manifest tells errors to
 * callers. What `reply` sets afterwards counts for nothing. */
TENURE_CALL(void, 21, fail, (void), { tenure_request(21, 0, 0, 0, 0, 0, 0); })

/* Asks for a higher tier for a critical section, on a device that shares the processor by tiers.
 * It counts from the machine's next turn on, until `fuel` is used, or the task ends, or tier 0 is
 * asked for; a fifth of its fuel a machine can use so. Returns the tier that it has then: the
 * usual one if no fuel for critical sections is left. A tier beyond the lease is `NotGranted`. */
TENURE_CALL(int32_t, 22, raise_tier, (uint32_t tier, uint32_t fuel), { return (int32_t)tenure_request(22, tier, fuel, 0, 0, 0, 0); })

/* The rest of a budget now. `which`: 0 fuel, 1 flash bytes, 2 messages, 3 message bytes,
 * 4 stored bytes, 5 places in the queue. 2147483647 if there is no limit or it is more. */
TENURE_CALL(int32_t, 23, budget_left, (uint32_t which), { return (int32_t)tenure_request(23, which, 0, 0, 0, 0, 0); })

/* The number of the queued call whose callback is being served, as `queue` returned it; `NotFound`
 * if none is. */
TENURE_CALL(int32_t, 24, callback_of, (void), { return (int32_t)tenure_request(24, 0, 0, 0, 0, 0, 0); })

/* Calls `function` of this machine after `delay_ms` milliseconds, and again every `period_ms`
 * milliseconds, 10 at least; 0 means once. A machine has eight timers at most, one for each
 * function: setting another replaces it, setting the same period again changes nothing. They
 * outlast faults and, counted from the start, restarts of the device, but not an update. A timer
 * fires up to a tenth of its wait late, a second at most, so that wake-ups are shared. The parameter
 * has 64 bytes at most. Setting and ending a timer are flash writes. */
TENURE_CALL(int32_t, 25, timer_after, (const char *function, uint32_t function_length, const void *parameter, uint32_t parameter_length, uint32_t delay_ms, uint32_t period_ms), { return (int32_t)tenure_request(25, (uint32_t)function, function_length, (uint32_t)parameter, parameter_length, delay_ms, period_ms); })

/* The same at a time of day, in seconds since 1970-01-01 00:00 UTC, and again every `period_ms`
 * milliseconds: with 86,400,000, at the same time each day. It waits until the device knows the
 * time. Of the times that passed while the device was off the next one counts; a timer
 * without a period fires late. */
TENURE_CALL(int32_t, 26, timer_at, (const char *function, uint32_t function_length, const void *parameter, uint32_t parameter_length, uint32_t unix_time_s, uint32_t period_ms), { return (int32_t)tenure_request(26, (uint32_t)function, function_length, (uint32_t)parameter, parameter_length, unix_time_s, period_ms); })

/* Ends the timer of `function`, or returns `NotFound`. A call that waits already is made. */
TENURE_CALL(int32_t, 27, timer_cancel, (const char *function, uint32_t function_length), { return (int32_t)tenure_request(27, (uint32_t)function, function_length, 0, 0, 0, 0); })

/* The same as `timer_after` at each time of `schedule`: a time of day (`06:30`) or the five fields of
 * crontab(5): minute, hour, day of the month, month, day of the week (`0,30 8-18 * * mon-fri`), 128
 * bytes at most. Its times are in UTC, or on the clock whose rules stand before it as in POSIX's `TZ`
 * (`TZ=CET-1CEST,M3.5.0,M10.5.0/3 06:30`). It waits until the device knows the time; of the times that
 * passed while the device was off none is made up for. `Invalid` if the text is no schedule, or its day
 * never comes. */
TENURE_CALL(int32_t, 28, timer_schedule, (const char *function, uint32_t function_length, const void *parameter, uint32_t parameter_length, const char *schedule, uint32_t schedule_length), { return (int32_t)tenure_request(28, (uint32_t)function, function_length, (uint32_t)parameter, parameter_length, (uint32_t)schedule, schedule_length); })

/* Publishes an event: whoever has subscribed to `topic` gets `payload`, 2,048 bytes at most.
 * Returns how many subscriptions have it in their queues. Topics below `device` are the device's
 * own; those below `command.NAME` go to the peripheral `NAME`, and take a grant to use it. It counts
 * as one message against the budget. */
TENURE_CALL(int32_t, 30, publish, (const char *topic, uint32_t topic_length, const void *payload, uint32_t payload_length), { return (int32_t)tenure_request(30, (uint32_t)topic, topic_length, (uint32_t)payload, payload_length, 0, 0); })

/* Subscribes to `topic`, to all topics below one (`door.*`) or to all (`*`), with a queue of
 * `depth` events. `policy` says what happens when it is full: 0 the oldest event is dropped, 1
 * the new one, 2 only the latest is kept. Each event is a call of this machine's `handler`, with
 * the payload as its parameter; where `handler` is empty, `event_next` gives it. A second
 * subscription to the same text changes the first. They end with a restart of the machine. */
TENURE_CALL(int32_t, 31, subscribe, (const char *topic, uint32_t topic_length, uint32_t policy, uint32_t depth, const char *handler, uint32_t handler_length), { return (int32_t)tenure_request(31, (uint32_t)topic, topic_length, policy, depth, (uint32_t)handler, handler_length); })

/* Ends a subscription with what is queued for it, or says `NotFound`. */
TENURE_CALL(int32_t, 32, unsubscribe, (const char *topic, uint32_t topic_length), { return (int32_t)tenure_request(32, (uint32_t)topic, topic_length, 0, 0, 0, 0); })

/* Takes the next event of the subscriptions without a handler, in the order in which they were
 * published, and returns the length of its payload; others run while it waits. `Deadline` if
 * none comes within `timeout_ms`, of which 0 doesn't wait and 0xFFFFFFFF waits for ever;
 * `NotFound` if there is no such subscription. Other calls are served only after this one. */
TENURE_CALL(int32_t, 33, event_next, (uint32_t timeout_ms), { return (int32_t)tenure_request(33, timeout_ms, 0, 0, 0, 0, 0); })

/* Writes the topic of the event that was taken, or that is being handled, to `into` and returns
 * its length, 64 at most. */
TENURE_CALL(int32_t, 34, event_topic, (void *into, uint32_t into_capacity), { return (int32_t)tenure_request(34, (uint32_t)into, into_capacity, 0, 0, 0, 0); })

/* Copies the payload of that event from byte `offset` on to `into` and returns how many bytes
 * were copied. */
TENURE_CALL(int32_t, 35, event_read, (uint32_t offset, void *into, uint32_t into_capacity), { return (int32_t)tenure_request(35, offset, (uint32_t)into, into_capacity, 0, 0, 0); })

/* How many events its subscription dropped between the one before and that one. */
TENURE_CALL(int32_t, 36, event_dropped, (void), { return (int32_t)tenure_request(36, 0, 0, 0, 0, 0, 0); })

/* How many events the subscription to `topic` has dropped in all. */
TENURE_CALL(int32_t, 37, topic_dropped, (const char *topic, uint32_t topic_length), { return (int32_t)tenure_request(37, (uint32_t)topic, topic_length, 0, 0, 0, 0); })

/* Copies the secret `name` of this machine's tenant to `into`, as much as fits, and returns its
 * whole length; `NotFound` if the tenant has set none of that name here, `NotGranted` without
 * a right to it. What is read is as it was set last. */
TENURE_CALL(int32_t, 40, secret_read, (const char *name, uint32_t name_length, void *into, uint32_t into_capacity), { return (int32_t)tenure_request(40, (uint32_t)name, name_length, (uint32_t)into, into_capacity, 0, 0); })

#undef TENURE_CALL

#ifdef __cplusplus
}
#endif
