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
    EACH(TENURE_LEASE_OVER, "lease over")

#define TENURE_IMPORT(NAME) \
    __attribute__((import_module("tenure"), import_name(NAME)))

/* Writes a line to the machine's log. Levels: 0 error, 1 warning, 2 info, 3 debug. What is
 * longer than 256 bytes is cut. */
TENURE_IMPORT("log")
void tenure_host_log(uint32_t level, const char *message, uint32_t message_length);

/* Microseconds since the device booted. */
TENURE_IMPORT("uptime_us")
int64_t tenure_host_uptime_us(void);

/* Seconds since 1970-01-01 00:00 UTC, or -1 if the device doesn't know. */
TENURE_IMPORT("unix_time_s")
int64_t tenure_host_unix_time_s(void);

/* Writes this machine's public key to `into` and returns its length, 32. */
TENURE_IMPORT("public_key")
int32_t tenure_host_public_key(void *into, uint32_t into_capacity);

/* Writes the public key of the machine that made the call being served to `into` and returns
 * its length, 32; 0 if the device itself made it. */
TENURE_IMPORT("caller")
int32_t tenure_host_caller(void *into, uint32_t into_capacity);

/* The length of the parameter of the call being served, or `NotFound` if it is null. */
TENURE_IMPORT("parameter_length")
int32_t tenure_host_parameter_length(void);

/* Copies the parameter from byte `offset` on to `into` and returns how many bytes were copied. */
TENURE_IMPORT("parameter_read")
int32_t tenure_host_parameter_read(uint32_t offset, void *into, uint32_t into_capacity);

/* Sets the result of the call being served; without it, or with a null value, it is null.
 * The last one counts. */
TENURE_IMPORT("reply")
int32_t tenure_host_reply(const void *value, uint32_t value_length);

/* Stores `value` at `path` (`a.b.c`) in the machine's tree, replacing what was there. `kind`
 * is 0 for bytes, 1 for text. Once it returns 0 the value survives a loss of power. */
TENURE_IMPORT("tree_set")
int32_t tenure_host_tree_set(const char *path, uint32_t path_length, uint32_t kind, const void *value, uint32_t value_length);

/* Copies the value at `path` to `into`, as much as fits, and returns its whole length. */
TENURE_IMPORT("tree_get")
int32_t tenure_host_tree_get(const char *path, uint32_t path_length, void *into, uint32_t into_capacity);

/* Deletes the value at `path` and everything below it; returns how many values went. */
TENURE_IMPORT("tree_delete")
int32_t tenure_host_tree_delete(const char *path, uint32_t path_length);

/* Writes the names of the children of `path` (empty: of the root) to `into`, each followed by
 * a zero byte, in order; returns the length of the whole list, which may be more than fits. */
TENURE_IMPORT("tree_list")
int32_t tenure_host_tree_list(const char *path, uint32_t path_length, void *into, uint32_t into_capacity);

/* Calls `function` of the machine `target` and waits; others run meanwhile. Returns the length
 * of the result, which `result_read` reads; `Null` if the result is null. `deadline_ms` 0
 * means the device's default. Targets: `name`, `name@device`, `#id` or `#key`; this machine
 * itself, which would wait for itself, is `Denied`. */
TENURE_IMPORT("call")
int32_t tenure_host_call(const char *target, uint32_t target_length, const char *function, uint32_t function_length, const void *parameter, uint32_t parameter_length, uint32_t deadline_ms);

/* Copies the result of the last `call` from byte `offset` on to `into` and returns how many
 * bytes were copied. Of a call that failed by `Stopped` or `Asleep` this is, in decimal, after
 * how many milliseconds another one is worth trying, if that is known. */
TENURE_IMPORT("result_read")
int32_t tenure_host_result_read(uint32_t offset, void *into, uint32_t into_capacity);

/* Puts a call into the queue and goes on. When it is done, `on_success` of this machine is
 * called with its result; when it failed for good, after `retries` further attempts to reach
 * the target, `on_failure` is called with the reason. Either may be empty. Returns the task's
 * number. A call runs at most once, however often it is sent. Targets are those of `call`, and
 * empty for this machine. If the machine is stopped meanwhile, `on_failure` is called after its next
 * start with `outcome unknown`; so it is if the result finds no room. */
TENURE_IMPORT("queue")
int32_t tenure_host_queue(const char *target, uint32_t target_length, const char *function, uint32_t function_length, const void *parameter, uint32_t parameter_length, const char *on_success, uint32_t on_success_length, const char *on_failure, uint32_t on_failure_length, uint32_t deadline_ms, uint32_t retries);

/* Lets the others run; returns when it is this machine's turn again. */
TENURE_IMPORT("yield_now")
void tenure_host_yield_now(void);

/* Waits for `duration_ms` milliseconds while others run. */
TENURE_IMPORT("sleep_ms")
void tenure_host_sleep_ms(uint32_t duration_ms);

/* Fills `into` with random bytes fit for keys. */
TENURE_IMPORT("random")
int32_t tenure_host_random(void *into, uint32_t into_capacity);

/* Writes the 32-byte public keys of the machines this device knows to `into`, as many as fit;
 * returns how many bytes there are in all. `which`: 1 those on this device, 2 those on others,
 * 3 both. */
TENURE_IMPORT("peers")
int32_t tenure_host_peers(uint32_t which, void *into, uint32_t into_capacity);

/* Finds the public key of the machine that `target` names, waiting for the directory if need
 * be; writes it to `into` and returns its length, 32. */
TENURE_IMPORT("resolve")
int32_t tenure_host_resolve(const char *target, uint32_t target_length, void *into, uint32_t into_capacity);

/* Ends the call being served as failed and stops the machine, with `message` in its log. */
TENURE_IMPORT("abort")
void tenure_host_abort(const char *message, uint32_t message_length);

/* Makes the call being served fail once it returns, whatever it replied; the machine goes on.
 * Its caller learns `Execution` and nothing else; why is for the log. */
TENURE_IMPORT("fail")
void tenure_host_fail(void);

/* Asks for a higher tier for a critical section, on a device that shares the processor by tiers.
 * It counts from the machine's next turn on, until `fuel` is used, or the task ends, or tier 0 is
 * asked for; a fifth of its fuel a machine can use so. Returns the tier that it has then: the
 * usual one if no fuel for critical sections is left. A tier beyond the lease is `NotGranted`. */
TENURE_IMPORT("raise_tier")
int32_t tenure_host_raise_tier(uint32_t tier, uint32_t fuel);

/* What is left of a budget now. `which`: 0 fuel, 1 flash bytes, 2 messages, 3 message bytes,
 * 4 stored bytes, 5 places in the queue. 2147483647 if there is no limit or it is more. */
TENURE_IMPORT("budget_left")
int32_t tenure_host_budget_left(uint32_t which);

/* The number of the queued call whose callback is being served, as `queue` returned it; `NotFound`
 * if none is. */
TENURE_IMPORT("callback_of")
int32_t tenure_host_callback_of(void);

/* Publishes an event: whoever has subscribed to `topic` gets `payload`, 2,048 bytes at most.
 * Returns how many subscriptions have it in their queues. Topics below `device` are the device's
 * own; those below `command.NAME` go to the peripheral `NAME`, and take a grant to use it. It counts
 * as one message against the budget. */
TENURE_IMPORT("publish")
int32_t tenure_host_publish(const char *topic, uint32_t topic_length, const void *payload, uint32_t payload_length);

/* Subscribes to `topic`, to all topics below one (`door.*`) or to all (`*`), with a queue of
 * `depth` events. `policy` says what happens when it is full: 0 the oldest event is dropped, 1
 * the new one, 2 only the latest is kept. Each event is a call of this machine's `handler`, with
 * the payload as its parameter; where `handler` is empty, `event_next` gives it. A second
 * subscription to the same text changes the first. They end with a restart of the machine. */
TENURE_IMPORT("subscribe")
int32_t tenure_host_subscribe(const char *topic, uint32_t topic_length, uint32_t policy, uint32_t depth, const char *handler, uint32_t handler_length);

/* Ends a subscription with what is queued for it, or says `NotFound`. */
TENURE_IMPORT("unsubscribe")
int32_t tenure_host_unsubscribe(const char *topic, uint32_t topic_length);

/* Takes the next event of the subscriptions without a handler, in the order in which they were
 * published, and returns the length of its payload; others run while it waits. `Deadline` if
 * none comes within `timeout_ms`, of which 0 doesn't wait and 0xFFFFFFFF waits for ever;
 * `NotFound` if there is no such subscription. Other calls are served only after this one. */
TENURE_IMPORT("event_next")
int32_t tenure_host_event_next(uint32_t timeout_ms);

/* Writes the topic of the event that was taken, or that is being handled, to `into` and returns
 * its length, 64 at most. */
TENURE_IMPORT("event_topic")
int32_t tenure_host_event_topic(void *into, uint32_t into_capacity);

/* Copies the payload of that event from byte `offset` on to `into` and returns how many bytes
 * were copied. */
TENURE_IMPORT("event_read")
int32_t tenure_host_event_read(uint32_t offset, void *into, uint32_t into_capacity);

/* How many events its subscription dropped between the one before and that one. */
TENURE_IMPORT("event_dropped")
int32_t tenure_host_event_dropped(void);

/* How many events the subscription to `topic` has dropped in all. */
TENURE_IMPORT("topic_dropped")
int32_t tenure_host_topic_dropped(const char *topic, uint32_t topic_length);

/* Copies the secret `name` of this machine's tenant to `into`, as much as fits, and returns its
 * whole length; `NotFound` if the tenant has set none of that name here, `NotGranted` without
 * a right to it. What is read is as it was set last. */
TENURE_IMPORT("secret_read")
int32_t tenure_host_secret_read(const char *name, uint32_t name_length, void *into, uint32_t into_capacity);

#undef TENURE_IMPORT

#ifdef __cplusplus
}
#endif
