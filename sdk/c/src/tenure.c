/* The binding: strings for lengths, and allocated results for buffers. */
#include <tenure.h>

/* What tenure_host_log cuts messages at, and a zero byte. */
#define LOG_BYTES 257

static uint32_t text_length(const char *text) {
    return text ? (uint32_t)strlen(text) : 0;
}

/* The host takes a null pointer for a null parameter, so an empty one needs another. */
static const void *not_null_if(bool given, const void *value) {
    return given && value == NULL ? "" : value;
}

/* Gives up what was allocated for a host call that failed. */
static char *finish(char *value, int32_t length, size_t *length_out) {
    if (value == NULL || length < 0) {
        free(value);
        value = NULL;
        length = 0;
    } else {
        value[length] = 0;
    }
    if (length_out != NULL) {
        *length_out = (size_t)length;
    }
    return value;
}

char *tenure_parameter(size_t *length) {
    int32_t whole = tenure_host_parameter_length();
    char *value = whole < 0 ? NULL : malloc((size_t)whole + 1);
    if (value != NULL) {
        whole = tenure_host_parameter_read(0, value, (uint32_t)whole);
    }
    return finish(value, whole, length);
}

int tenure_reply(const void *value, size_t length) {
    return tenure_host_reply(not_null_if(length > 0, value), (uint32_t)length);
}

int tenure_reply_text(const char *text) {
    return tenure_host_reply(text, text_length(text));
}

bool tenure_caller(uint8_t key[32]) {
    return tenure_host_caller(key, 32) == 32;
}

void tenure_abort(const char *message) {
    tenure_host_abort(message, text_length(message));
    __builtin_trap();
}

void abort(void) {
    tenure_abort("abort was called");
}

/* Writes a line of the log. One that is too long ends in an ellipsis, as the device has it, behind its last whole
 * character (UTF-8). */
static void write_line(char line[LOG_BYTES], const char *format, va_list arguments) {
    static const char cut[] = "\xE2\x80\xA6";
    if (vsnprintf(line, LOG_BYTES, format, arguments) >= LOG_BYTES) {
        size_t at = LOG_BYTES - sizeof cut;
        while (at > 0 && (line[at] & 0xC0) == 0x80) {
            at--;
        }
        memcpy(line + at, cut, sizeof cut);
    }
}

void tenure_log(enum tenure_level level, const char *format, ...) {
    char message[LOG_BYTES];
    va_list arguments;
    va_start(arguments, format);
    write_line(message, format, arguments);
    va_end(arguments);
    tenure_host_log(level, message, text_length(message));
}

void tenure_fail(const char *format, ...) {
    char message[LOG_BYTES];
    va_list arguments;
    va_start(arguments, format);
    write_line(message, format, arguments);
    va_end(arguments);
    tenure_host_log(TENURE_LOG_ERROR, message, text_length(message));
    tenure_reply_text(message);
    tenure_host_fail();
}

int tenure_failure_text(char *into, size_t capacity) {
    int32_t length = tenure_host_result_read(0, into, (uint32_t)(capacity > 0 ? capacity - 1 : 0));
    if (capacity > 0) {
        into[length > 0 ? length : 0] = 0;
    }
    return length;
}

int tenure_tree_set(const char *path, const void *value, size_t length) {
    return tenure_host_tree_set(path, text_length(path), 0, value, (uint32_t)length);
}

int tenure_tree_set_text(const char *path, const char *text) {
    return tenure_host_tree_set(path, text_length(path), 1, text, text_length(text));
}

/* What tree_get, tree_list and peers have in common: they say how much there is. Between two host
 * calls of a machine nothing changes its tree, but what a device knows of others can grow. */
#define READ_WHOLE(CALL) READ_WHOLE_FROM(NULL, 0, CALL)

/* As READ_WHOLE, beginning with room for FIRST bytes. */
#define READ_WHOLE_FROM(ROOM, FIRST, CALL)                                                         \
    char *value = (ROOM);                                                                          \
    uint32_t capacity = value == NULL ? 0 : (FIRST);                                               \
    int32_t whole = CALL;                                                                          \
    while (whole >= 0 && (value == NULL || (uint32_t)whole > capacity)) {                          \
        free(value);                                                                               \
        capacity = (uint32_t)whole;                                                                \
        value = malloc(capacity + 1u);                                                             \
        if (value == NULL) {                                                                       \
            break;                                                                                 \
        }                                                                                          \
        whole = CALL;                                                                              \
    }

char *tenure_tree_get(const char *path, size_t *length) {
    READ_WHOLE(tenure_host_tree_get(path, text_length(path), value, capacity))
    return finish(value, whole, length);
}

int tenure_tree_read(const char *path, char **into, size_t *length) {
    READ_WHOLE(tenure_host_tree_get(path, text_length(path), value, capacity))
    *into = finish(value, whole, length);
    if (whole < 0) {
        return whole == TENURE_NOT_FOUND ? 0 : whole;
    }
    return *into == NULL ? TENURE_FULL : 0;
}

char *tenure_secret(const char *name, size_t *length) {
    READ_WHOLE(tenure_host_secret_read(name, text_length(name), value, capacity))
    return finish(value, whole, length);
}

int tenure_tree_delete(const char *path) {
    return tenure_host_tree_delete(path, text_length(path));
}

char *tenure_tree_list(const char *path, size_t *length) {
    READ_WHOLE(tenure_host_tree_list(path, text_length(path), value, capacity))
    return finish(value, whole > 0 ? whole : TENURE_NOT_FOUND, length);
}

struct tenure_result tenure_call(const char *target, const char *function, const void *parameter,
                                 size_t length) {
    struct tenure_result result = {0};
    int32_t whole = tenure_host_call(target, text_length(target), function, text_length(function),
                                     parameter, (uint32_t)length, 0);
    if (whole < 0) {
        result.error = whole == TENURE_NULL ? 0 : whole;
        return result;
    }
    char *value = malloc((size_t)whole + 1);
    if (value == NULL) {
        result.error = TENURE_FULL;
        return result;
    }
    whole = tenure_host_result_read(0, value, (uint32_t)whole);
    result.error = whole < 0 ? whole : 0;
    result.value = finish(value, whole, &result.length);
    return result;
}

struct tenure_result tenure_call_text(const char *target, const char *function, const char *text) {
    return tenure_call(target, function, text, text_length(text));
}

int tenure_queue(const struct tenure_task *task) {
    return tenure_host_queue(
        task->target, text_length(task->target), task->function, text_length(task->function),
        not_null_if(task->parameter_length > 0, task->parameter), (uint32_t)task->parameter_length,
        task->on_success, text_length(task->on_success), task->on_failure,
        text_length(task->on_failure), task->deadline_ms, task->retries);
}

int tenure_publish(const char *topic, const void *payload, size_t length) {
    return tenure_host_publish(topic, text_length(topic), payload, (uint32_t)length);
}

int tenure_publish_text(const char *topic, const char *text) {
    return tenure_publish(topic, text, text_length(text));
}

int tenure_after(uint32_t delay_ms, const char *function) {
    return tenure_host_timer_after(function, text_length(function), NULL, 0, delay_ms, 0);
}

int tenure_every(uint32_t period_ms, const char *function) {
    return tenure_host_timer_after(function, text_length(function), NULL, 0, period_ms, period_ms);
}

int tenure_at(uint32_t unix_time_s, uint32_t period_ms, const char *function) {
    return tenure_host_timer_at(function, text_length(function), NULL, 0, unix_time_s, period_ms);
}

int tenure_schedule(const char *schedule, const char *function) {
    return tenure_host_timer_schedule(function, text_length(function), NULL, 0, schedule,
                                      text_length(schedule));
}

int tenure_cancel(const char *function) {
    return tenure_host_timer_cancel(function, text_length(function));
}

int tenure_subscribe(const char *topic, enum tenure_policy policy, uint32_t depth,
                     const char *handler) {
    return tenure_host_subscribe(topic, text_length(topic), policy, depth, handler,
                                 text_length(handler));
}

int tenure_unsubscribe(const char *topic) {
    return tenure_host_unsubscribe(topic, text_length(topic));
}

int tenure_topic_dropped(const char *topic) {
    return tenure_host_topic_dropped(topic, text_length(topic));
}

int tenure_event_topic(char topic[TENURE_TOPIC_BYTES]) {
    int32_t length = tenure_host_event_topic(topic, TENURE_TOPIC_BYTES - 1);
    topic[length < 0 ? 0 : length] = 0;
    return length < 0 ? length : 0;
}

int tenure_event_dropped(void) {
    return tenure_host_event_dropped();
}

int tenure_event_next(struct tenure_event *event, uint32_t timeout_ms) {
    *event = (struct tenure_event){0};
    int32_t whole = tenure_host_event_next(timeout_ms);
    if (whole < 0) {
        return whole;
    }
    char *payload = malloc((size_t)whole + 1);
    if (payload == NULL) {
        return TENURE_FULL;
    }
    whole = tenure_host_event_read(0, payload, (uint32_t)whole);
    event->payload = finish(payload, whole, &event->length);
    event->dropped = tenure_host_event_dropped();
    return tenure_event_topic(event->topic);
}

int tenure_public_key(uint8_t key[32]) {
    int32_t length = tenure_host_public_key(key, 32);
    return length < 0 ? length : 0;
}

int tenure_resolve(const char *target, uint8_t key[32]) {
    int32_t length = tenure_host_resolve(target, text_length(target), key, 32);
    return length < 0 ? length : 0;
}

/* Room for 16 keys. */
#define PEERS_ROOM 512u

uint8_t *tenure_peers(enum tenure_which which, size_t *count) {
    /* Each host call costs a message: room for more than a device knows as a rule. */
    READ_WHOLE_FROM(malloc(PEERS_ROOM + 1), PEERS_ROOM, tenure_host_peers(which, value, capacity))
    size_t length;
    value = finish(value, whole > 0 ? whole : TENURE_NOT_FOUND, &length);
    *count = length / 32;
    return (uint8_t *)value;
}

/* The bits of the last character that the 256 of a key leave over: its check. */
static unsigned key_check(const uint8_t key[32]) {
    uint32_t sum = 0, weighted = 7;
    for (int at = 0; at < 32; at++) {
        sum = (sum + key[at]) % 251;
        weighted = (weighted * 3 + sum) % 251;
    }
    return (sum ^ weighted ^ (weighted >> 4)) & 15;
}

void tenure_key_target(const uint8_t key[32], char target[TENURE_KEY_TARGET_BYTES]) {
    static const char alphabet[] = "0123456789abcdefghjkmnpqrstvwxyz";
    uint32_t bits = 0;
    int bit_count = 0, taken = 0;
    *target++ = '#';
    for (int position = 0; position < 52; position++) {
        if (position > 0 && position % 5 == 0) {
            *target++ = '-';
        }
        if (bit_count < 5 && taken < 32) {
            bits = bits << 8 | key[taken++];
            bit_count += 8;
        } else if (bit_count < 5) {
            bits = bits << 4 | key_check(key);
            bit_count += 4;
        }
        bit_count -= 5;
        *target++ = alphabet[bits >> bit_count & 31];
    }
    *target = 0;
}

uint64_t tenure_uptime_us(void) {
    return (uint64_t)tenure_host_uptime_us();
}

int64_t tenure_unix_time_s(void) {
    return tenure_host_unix_time_s();
}

void tenure_sleep_ms(uint32_t duration_ms) {
    tenure_host_sleep_ms(duration_ms);
}

void tenure_yield(void) {
    tenure_host_yield_now();
}

int tenure_callback_of(void) {
    return tenure_host_callback_of();
}

int tenure_raise_tier(uint32_t tier, uint32_t fuel) {
    return tenure_host_raise_tier(tier, fuel);
}

int tenure_budget_left(enum tenure_budget budget) {
    return tenure_host_budget_left(budget);
}

int tenure_random(void *into, size_t length) {
    return tenure_host_random(into, (uint32_t)length);
}

const char *tenure_error_text(int error) {
    switch (error) {
#define CASE(NUMBER, TEXT)                                                                         \
    case NUMBER: return TEXT;
        TENURE_ERRORS(CASE)
#undef CASE
    default: return error < 0 ? "unknown error" : "no error";
    }
}
