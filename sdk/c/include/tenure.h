/* Tenure for C and C++: what a machine can do.
 *
 * A machine is a program whose exported functions others call. TENURE_EXPORT(name) defines one;
 * `entry`, if there is one, runs once when the machine starts:
 *
 *     #include <tenure.h>
 *
 *     TENURE_EXPORT(greet) {
 *         char *whom = tenure_parameter(NULL);
 *         tenure_info("greeting %s", whom ? whom : "nobody");
 *         tenure_reply_text("hello");
 *         free(whom);
 *     }
 *
 * Between calls a machine keeps its memory, and after a loss of power its tree alone.
 *
 * A function that can fail returns a negative tenure_error; tenure_error_text says it in words.
 * What comes back as a pointer is allocated, ends with a zero byte so that text can be used as a
 * string, and is the caller's to free. Everything that takes a length takes bytes. */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "generated/tenure_host.h"

#ifdef __cplusplus
#define TENURE_EXTERN_C extern "C"
extern "C" {
#else
#define TENURE_EXTERN_C
#endif

/* Begins the definition of a function that others can call. */
#ifdef __wasm__
#define TENURE_EXPORT(NAME)                                                                        \
    TENURE_EXTERN_C __attribute__((export_name(#NAME))) void tenure_export_##NAME(void)
#else
#define TENURE_EXPORT(NAME)                                                                        \
    TENURE_EXTERN_C __attribute__((used, visibility("default"))) void tenure_export_##NAME(void)
#endif

/* ---- the call being served ---- */

/* Its parameter, or NULL if it is null or there is no memory for it. If length isn't NULL, the
 * parameter's length is stored there. */
char *tenure_parameter(size_t *length);

/* Sets its result, which is null otherwise. The last one counts. */
int tenure_reply(const void *value, size_t length);
int tenure_reply_text(const char *text);

/* Makes it fail once the function returns, with a message in the log, formatted as by snprintf; the
 * machine goes on. The device's owner gets the message, too, and with `errors = "callers"` in
 * tenure.toml every caller; others learn that it failed, and nothing else. */
__attribute__((format(printf, 1, 2))) void tenure_fail(const char *format, ...);

/* Stores the public key of the machine that made it; false if the device itself did. */
bool tenure_caller(uint8_t key[32]);

/* Ends it as failed and stops the machine, with a message in the log. */
__attribute__((noreturn)) void tenure_abort(const char *message);

/* ---- the log ---- */

enum tenure_level { TENURE_LOG_ERROR, TENURE_LOG_WARNING, TENURE_LOG_INFO, TENURE_LOG_DEBUG };

/* Writes a line, formatted as snprintf does and cut at 256 bytes. */
__attribute__((format(printf, 2, 3))) void tenure_log(enum tenure_level level, const char *format,
                                                      ...);

#define tenure_error(...) tenure_log(TENURE_LOG_ERROR, __VA_ARGS__)
#define tenure_warning(...) tenure_log(TENURE_LOG_WARNING, __VA_ARGS__)
#define tenure_info(...) tenure_log(TENURE_LOG_INFO, __VA_ARGS__)
#define tenure_debug(...) tenure_log(TENURE_LOG_DEBUG, __VA_ARGS__)

/* ---- the machine's tree: values at dotted paths ("a.b.c") that survive a loss of power ---- */

/* Stores a value, replacing what was at the path. Returns 0 once it is safe. */
int tenure_tree_set(const char *path, const void *value, size_t length);
int tenure_tree_set_text(const char *path, const char *text);

/* The value at the path, or NULL if there is none, no memory for it, or it can't be read, as the flash is damaged. */
char *tenure_tree_get(const char *path, size_t *length);

/* As tenure_tree_get, for a machine that goes on from what it stored: returns 0 and the value, or NULL if there is
 * none; or a negative error, TENURE_DEVICE for a damaged value and TENURE_FULL without memory for it. */
int tenure_tree_read(const char *path, char **value, size_t *length);

/* Deletes what is at the path and below; returns how many values went. */
int tenure_tree_delete(const char *path);

/* The names of what is right below the path ("": the root), each ending with a zero byte, one after
 * another up to length; NULL if there are none or no memory. */
char *tenure_tree_list(const char *path, size_t *length);

/* ---- secrets that the tenant keeps on the device ---- */

/* The secret of that name, or NULL if there is none, no right to it or no memory for it. Read it
 * where it is used: it may change while the machine runs. */
char *tenure_secret(const char *name, size_t *length);

/* ---- calling other machines ----
 *
 * A target is "" (this machine), "name" (a machine on this device), "name@device", "#id" or
 * "#key". */

struct tenure_result {
    /* 0, or why the call failed. */
    int error;
    /* The result, or NULL if it is null. */
    char *value;
    size_t length;
};

/* Calls a function and waits for its result while other machines run. A NULL parameter is null. */
struct tenure_result tenure_call(const char *target, const char *function, const void *parameter,
                                 size_t length);
struct tenure_result tenure_call_text(const char *target, const char *function, const char *text);

/* After a call failed by TENURE_EXECUTION or TENURE_OVERSPENT: writes what the called machine says of it
 * to `into`, with a zero behind it, as much as fits, and returns its length; 0 if that machine doesn't
 * tell its callers. */
int tenure_failure_text(char *into, size_t capacity);

/* A call to be queued. What is left out is null, the default, or none. */
struct tenure_task {
    const char *target;
    const char *function;
    const void *parameter;
    size_t parameter_length;
    /* Functions of this machine, called with the result or with the reason of the failure. */
    const char *on_success;
    const char *on_failure;
    uint32_t deadline_ms;
    uint32_t retries;
};

/* Queues a call and goes on. Returns the task's number or an error. */
int tenure_queue(const struct tenure_task *task);

/* ---- requests to servers outside, as far as the lease grants them ----
 *
 * The device finds the server, judges its certificate and follows redirects within the grant, which stands
 * under `reach` in tenure.toml. */

struct tenure_http_response {
    /* 0, or why there is no answer: tenure_failure_text says it in words. */
    int error;
    /* 200, 404 and so on. */
    int status;
    /* The header fields, each as "name: value\r\n", with a zero behind the last. */
    const char *fields;
    /* The body, or its beginning if there is more. */
    const char *body;
    size_t length;
    /* Whether to ask tenure_http_more for the rest. */
    bool more;
    /* To be freed: fields and body lie in it. NULL if there is no answer. */
    char *block;
};

/* Sends a request and waits for the answer while other machines run. `fields` are written as those of the
 * answer are, or NULL; the device adds `host`, `content-length` and `user-agent`. */
struct tenure_http_response tenure_http_request(const char *method, const char *url,
                                                const char *fields, const void *body,
                                                size_t length);

/* The next part of the last answer's body, waiting for it if need be; its value is NULL after the last. The
 * device keeps what a server has sent for 15 s, and until the machine's next request. */
struct tenure_result tenure_http_more(const char *url);

/* The value of a header field and its length, without a zero behind it; NULL if there is none. The letters of the
 * name have no case. */
const char *tenure_http_field(const struct tenure_http_response *response, const char *name,
                              size_t *length);

/* ---- timers: functions of this machine called later, or again and again ----
 *
 * A machine has eight timers at most, one for each function. They outlast faults, deep sleep and
 * restarts of the device, but not an update. Setting a timer again as it is changes nothing, so
 * `entry` may do it at each start. Each returns 0 or an error. */

/* Calls `function` once, after `delay_ms` milliseconds. */
int tenure_after(uint32_t delay_ms, const char *function);
/* Calls `function` after each `period_ms` milliseconds, 10 at least. */
int tenure_every(uint32_t period_ms, const char *function);
/* Calls `function` at a time of day, in seconds since 1970-01-01 00:00 UTC, and then after each
 * `period_ms` milliseconds if that isn't 0. */
int tenure_at(uint32_t unix_time_s, uint32_t period_ms, const char *function);
/* Calls `function` at each time of `schedule`: a time of day ("06:30"), or the five fields of crontab
 * ("0,30 8-18 * * mon-fri"), 128 bytes at most; in UTC, or behind the rules of a clock as in POSIX's TZ
 * ("TZ=CET-1CEST,M3.5.0,M10.5.0/3 06:30"). */
int tenure_schedule(const char *schedule, const char *function);
/* Ends the timer of `function`. A call that waits already is made. */
int tenure_cancel(const char *function);

/* ---- events: readings of the device's sensors, and what machines tell one another ----
 *
 * Topics are names with dots, "door.front". Those below "device" are what the device's peripherals
 * say; what is published to "command.NAME" goes to the peripheral NAME. It takes grants to publish and
 * to subscribe. Subscriptions end when the machine restarts: make them in `entry`. */

/* Publishes an event of 2,048 bytes at most. Returns how many subscriptions have it in their queues. */
int tenure_publish(const char *topic, const void *payload, size_t length);
int tenure_publish_text(const char *topic, const char *text);

/* What happens when a queue is full. */
enum tenure_policy { TENURE_DROP_OLDEST, TENURE_DROP_NEWEST, TENURE_LATEST_ONLY };

/* Subscribes to a topic, to all below one ("door.*") or to all ("*"), with a queue of `depth` events.
 * Each event is a call of this machine's `handler`, with the payload as its parameter; if that is
 * NULL, tenure_event_next gives it. */
int tenure_subscribe(const char *topic, enum tenure_policy policy, uint32_t depth,
                     const char *handler);
int tenure_unsubscribe(const char *topic);

/* How many events the subscription to a topic has dropped in all. */
int tenure_topic_dropped(const char *topic);

#define TENURE_TOPIC_BYTES 65
#define TENURE_FOR_EVER 0xFFFFFFFFu

struct tenure_event {
    char topic[TENURE_TOPIC_BYTES];
    /* What it says; to be freed. */
    char *payload;
    size_t length;
    /* How many events were dropped between the one before and this one. */
    int dropped;
};

/* Waits for the next event of the subscriptions without a handler. Returns 0, TENURE_DEADLINE if none
 * came in time (with a timeout of 0, at once), or why there is none. */
int tenure_event_next(struct tenure_event *event, uint32_t timeout_ms);

/* Stores the topic of the event that is being handled. */
int tenure_event_topic(char topic[TENURE_TOPIC_BYTES]);

/* How many events were dropped between the one before and the one that is being handled. */
int tenure_event_dropped(void);

/* The number of the queued call whose callback is being served, or an error if none is. */
int tenure_callback_of(void);

/* ---- keys and peers ---- */

/* Stores this machine's public key. */
int tenure_public_key(uint8_t key[32]);

/* Finds the public key of the machine that a target names. */
int tenure_resolve(const char *target, uint8_t key[32]);

enum tenure_which { TENURE_LOCAL = 1, TENURE_REMOTE = 2, TENURE_ALL = 3 };

/* The keys of the machines that this device knows, 32 bytes each, and how many they are; NULL if
 * there are none or no memory. */
uint8_t *tenure_peers(enum tenure_which which, size_t *count);

/* Writes a key as the target that stands for its machine, "#" and 62 characters. */
#define TENURE_KEY_TARGET_BYTES 64
void tenure_key_target(const uint8_t key[32], char target[TENURE_KEY_TARGET_BYTES]);

/* ---- time and chance ---- */

/* Microseconds since the device booted. */
uint64_t tenure_uptime_us(void);

/* Seconds since 1970-01-01 00:00 UTC, or -1 if the device doesn't know. */
int64_t tenure_unix_time_s(void);

/* Waits while other machines run. */
void tenure_sleep_ms(uint32_t duration_ms);

/* Lets other machines run. */
void tenure_yield(void);

/* Asks for a higher tier for a critical section, for so much fuel; tier 0 ends it. Returns the tier
 * that the machine has from its next turn on, or an error. */
int tenure_raise_tier(uint32_t tier, uint32_t fuel);

enum tenure_budget {
    TENURE_BUDGET_FUEL = 0,
    TENURE_BUDGET_FLASH_BYTES = 1,
    TENURE_BUDGET_MESSAGES = 2,
    TENURE_BUDGET_MESSAGE_BYTES = 3,
    TENURE_BUDGET_STORED_BYTES = 4,
    TENURE_BUDGET_QUEUE = 5
};

/* The rest of a budget now; INT32_MAX if nothing limits it. */
int tenure_budget_left(enum tenure_budget budget);

/* Fills with random bytes fit for keys. */
int tenure_random(void *into, size_t length);

/* ---- errors ---- */

/* An error in a few words. */
const char *tenure_error_text(int error);

#ifdef __cplusplus
}
#endif
