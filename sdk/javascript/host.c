/* What scripts can ask of a device, part of engine.c: the functions of the module "tenure", of console and of Date. */

/* ---- the call being served ---- */

static JSValue parameter(JSContext *ctx, bool as_bytes) {
    int32_t length = tenure_host_parameter_length();
    if (length < 0) {
        return as_bytes ? JS_NULL : JS_UNDEFINED;
    }
    JSValue room = room_for(ctx, (uint32_t)length, as_bytes);
    if (JS_IsException(room)) {
        return room;
    }
    tenure_host_parameter_read(0, room_at(room, as_bytes), (uint32_t)length);
    return filled(ctx, room, as_bytes);
}

JSValue tenure_js_parameter_bytes(JSContext *ctx, JSValue *this, int count, JSValue *arguments) {
    return parameter(ctx, true);
}

static JSValue reply_with(JSContext *ctx, JSValue *slot) {
    if (make_plain(ctx, slot)) {
        return JS_EXCEPTION;
    }
    JSStringCharBuf buffer;
    struct span value = said(ctx, *slot, &buffer);
    return done(ctx, tenure_host_reply(value.at, value.length));
}

JSValue tenure_js_reply(JSContext *ctx, JSValue *this, int count, JSValue *arguments) {
    return reply_with(ctx, &arguments[0]);
}

JSValue tenure_js_stop(JSContext *ctx, JSValue *this, int count, JSValue *arguments) {
    if (make_plain(ctx, &arguments[0])) {
        return JS_EXCEPTION;
    }
    JSStringCharBuf buffer;
    struct span message = said(ctx, arguments[0], &buffer);
    tenure_host_abort(message.at, message.length);
    __builtin_trap();
}

#define KEY_BYTES 32

/* A key that `FILL` has written; null if it hasn't. */
static JSValue key_or_null(JSContext *ctx, int32_t status, const uint8_t key[KEY_BYTES]) {
    return status == KEY_BYTES ? bytes_of(ctx, key, KEY_BYTES) : JS_NULL;
}

JSValue tenure_js_caller(JSContext *ctx, JSValue *this, int count, JSValue *arguments) {
    uint8_t key[KEY_BYTES];
    return key_or_null(ctx, tenure_host_caller(key, KEY_BYTES), key);
}

JSValue tenure_js_public_key(JSContext *ctx, JSValue *this, int count, JSValue *arguments) {
    uint8_t key[KEY_BYTES];
    return key_or_null(ctx, tenure_host_public_key(key, KEY_BYTES), key);
}

JSValue tenure_js_resolve(JSContext *ctx, JSValue *this, int count, JSValue *arguments) {
    uint8_t key[KEY_BYTES];
    if (make_plain(ctx, &arguments[0])) {
        return JS_EXCEPTION;
    }
    JSStringCharBuf buffer;
    struct span target = said(ctx, arguments[0], &buffer);
    return key_or_null(ctx, tenure_host_resolve((const char *)target.at, target.length, key, KEY_BYTES), key);
}

/* ---- the log ---- */

/* The least that a line of the log is cut at, and a zero byte. */
#define LINE_BYTES 257

JSValue tenure_js_log(JSContext *ctx, JSValue *this, int count, JSValue *arguments, int level) {
    char line[LINE_BYTES];
    uint32_t length = 0;
    for (int at = 0; at < count; at++) {
        JSValue *slot = &arguments[at];
        bool is_plain = JS_IsObject(ctx, *slot) && !JS_IsError(ctx, *slot) && !JS_IsFunction(ctx, *slot) &&
                        !is_bytes(ctx, *slot);
        *slot = is_plain ? js_json_stringify(ctx, NULL, 1, slot) : JS_ToString(ctx, *slot);
        if (JS_IsException(*slot)) {
            return JS_EXCEPTION;
        }
        JSStringCharBuf buffer;
        struct span word = said(ctx, *slot, &buffer);
        if (at > 0 && length < LINE_BYTES) {
            line[length++] = ' ';
        }
        uint32_t taken = word.length < LINE_BYTES - length ? word.length : LINE_BYTES - length;
        memcpy(line + length, word.at, taken);
        length += taken;
    }
    tenure_host_log((uint32_t)level, line, length);
    return JS_UNDEFINED;
}

/* ---- the tree, secrets, and lists of names ---- */

/* A host call that writes what has a name, as much as fits, and says how long it is. */
typedef int32_t reader(const char *name, uint32_t name_length, void *into, uint32_t capacity);

static int32_t read_tree(const char *name, uint32_t name_length, void *into, uint32_t capacity) {
    return tenure_host_tree_get(name, name_length, into, capacity);
}

static int32_t read_names(const char *name, uint32_t name_length, void *into, uint32_t capacity) {
    return tenure_host_tree_list(name, name_length, into, capacity);
}

static int32_t read_secret(const char *name, uint32_t name_length, void *into, uint32_t capacity) {
    return tenure_host_secret_read(name, name_length, into, capacity);
}

/* The whole of what has the name in a slot; null if there is none. Between two host calls it doesn't change. */
static JSValue read_whole(JSContext *ctx, JSValue *name, reader *read, bool as_bytes) {
    if (make_plain(ctx, name)) {
        return JS_EXCEPTION;
    }
    JSStringCharBuf buffer;
    struct span called = said(ctx, *name, &buffer);
    int32_t length = read((const char *)called.at, called.length, NULL, 0);
    if (length == TENURE_NOT_FOUND) {
        return JS_NULL;
    }
    if (length < 0) {
        return throw_host(ctx, length);
    }
    JSValue room = room_for(ctx, (uint32_t)length, as_bytes);
    if (JS_IsException(room)) {
        return room;
    }
    called = said(ctx, *name, &buffer);
    read((const char *)called.at, called.length, room_at(room, as_bytes), (uint32_t)length);
    return filled(ctx, room, as_bytes);
}

JSValue tenure_js_tree_get(JSContext *ctx, JSValue *this, int count, JSValue *arguments, int as_bytes) {
    return read_whole(ctx, &arguments[0], read_tree, as_bytes);
}

JSValue tenure_js_secret(JSContext *ctx, JSValue *this, int count, JSValue *arguments) {
    return read_whole(ctx, &arguments[0], read_secret, false);
}

JSValue tenure_js_tree_set(JSContext *ctx, JSValue *this, int count, JSValue *arguments) {
    if (make_all_plain(ctx, arguments, 2)) {
        return JS_EXCEPTION;
    }
    if (JS_IsUndefined(arguments[1]) || JS_IsNull(arguments[1])) {
        return JS_ThrowTypeError(ctx, "there is no value to store; tree.remove deletes one");
    }
    JSStringCharBuf names, values;
    struct span path = said(ctx, arguments[0], &names), value = said(ctx, arguments[1], &values);
    uint32_t kind = is_bytes(ctx, arguments[1]) ? 0 : 1;
    return done(ctx, tenure_host_tree_set((const char *)path.at, path.length, kind, value.at, value.length));
}

JSValue tenure_js_tree_remove(JSContext *ctx, JSValue *this, int count, JSValue *arguments) {
    if (make_plain(ctx, &arguments[0])) {
        return JS_EXCEPTION;
    }
    JSStringCharBuf buffer;
    struct span path = said(ctx, arguments[0], &buffer);
    return counted(ctx, tenure_host_tree_delete((const char *)path.at, path.length));
}

JSValue tenure_js_tree_list(JSContext *ctx, JSValue *this, int count, JSValue *arguments) {
    JSValue names = read_whole(ctx, &arguments[0], read_names, true);
    if (JS_IsException(names)) {
        return names;
    }
    JSGCRef names_ref, list_ref;
    JS_PUSH_VALUE(ctx, names);
    JSValue list = JS_NewArray(ctx, 0);
    JS_PUSH_VALUE(ctx, list);
    uint32_t at = 0, index = 0;
    while (!JS_IsException(list_ref.val) && !JS_IsNull(names_ref.val)) {
        struct span all = content(names_ref.val);
        if (at >= all.length) {
            break;
        }
        uint32_t length = strlen((const char *)all.at + at);
        JSValue name = room_for(ctx, length, false);
        if (!JS_IsException(name)) {
            memcpy(room_at(name, false), content(names_ref.val).at + at, length);
            name = filled(ctx, name, false);
        }
        if (JS_IsException(name) || JS_IsException(JS_SetPropertyUint32(ctx, list_ref.val, index++, name))) {
            list_ref.val = JS_EXCEPTION;
        }
        at += length + 1;
    }
    JS_POP_VALUE(ctx, list);
    JS_POP_VALUE(ctx, names);
    return list;
}

/* ---- calling other machines ---- */

/* The most that is shown of what a machine says of a failure. */
#define WORDS_BYTES 160

/* A result that is waiting to be read, or the failure of its call, of which there may be words. */
static JSValue result(JSContext *ctx, int32_t status, bool has_words, bool as_bytes) {
    if (status == TENURE_NULL) {
        return JS_NULL;
    }
    if (status < 0) {
        char words[WORDS_BYTES] = "";
        if (has_words || status == TENURE_EXECUTION || status == TENURE_OVERSPENT) {
            tenure_failure_text(words, sizeof words);
        }
        return throw_with(ctx, status, words);
    }
    JSValue room = room_for(ctx, (uint32_t)status, as_bytes);
    if (JS_IsException(room)) {
        return room;
    }
    tenure_host_result_read(0, room_at(room, as_bytes), (uint32_t)status);
    return filled(ctx, room, as_bytes);
}

JSValue tenure_js_call_machine(JSContext *ctx, JSValue *this, int count, JSValue *arguments, int as_bytes) {
    uint32_t deadline_ms;
    if (make_all_plain(ctx, arguments, 3) || number(ctx, &deadline_ms, arguments[3], 0)) {
        return JS_EXCEPTION;
    }
    JSStringCharBuf targets, names, values;
    struct span target = said(ctx, arguments[0], &targets), name = said(ctx, arguments[1], &names);
    struct span value = said(ctx, arguments[2], &values);
    int32_t status = tenure_host_call((const char *)target.at, target.length, (const char *)name.at, name.length,
                                      value.at, value.length, deadline_ms);
    // Of a server outside the device says why there is no answer.
    bool is_outside = memchr(target.at != NULL ? target.at : (const uint8_t *)"", ':', target.length) != NULL;
    return result(ctx, status, is_outside, as_bytes);
}

/* The slots of a queued call's fields. */
enum {
    TASK_TARGET,
    TASK_NAME,
    TASK_PARAMETER,
    TASK_ON_SUCCESS,
    TASK_ON_FAILURE,
    TASK_DEADLINE,
    TASK_RETRIES,
    TASK_FIELDS
};

JSValue tenure_js_queue(JSContext *ctx, JSValue *this, int count, JSValue *arguments) {
    static const char *const fields[TASK_FIELDS] = {"target",    "name",      "parameter", "onSuccess",
                                                    "onFailure", "deadlineMs", "retries"};
    JSGCRef references[TASK_FIELDS];
    JSStringCharBuf buffers[TASK_DEADLINE];
    struct span texts[TASK_DEADLINE];
    uint32_t numbers[TASK_FIELDS - TASK_DEADLINE];
    JSValue outcome = JS_UNDEFINED;
    for (int at = 0; at < TASK_FIELDS; at++) {
        *JS_PushGCRef(ctx, &references[at]) = JS_UNDEFINED;
    }
    for (int at = 0; at < TASK_FIELDS && !JS_IsException(outcome); at++) {
        JSValue *slot = &references[at].val;
        *slot = JS_GetPropertyStr(ctx, arguments[0], fields[at]);
        if (JS_IsException(*slot) || (at < TASK_DEADLINE ? make_plain(ctx, slot)
                                                         : number(ctx, &numbers[at - TASK_DEADLINE], *slot, 0))) {
            outcome = JS_EXCEPTION;
        }
    }
    if (!JS_IsException(outcome)) {
        for (int at = 0; at < TASK_DEADLINE; at++) {
            texts[at] = said(ctx, references[at].val, &buffers[at]);
        }
        int32_t status = tenure_host_queue(
            (const char *)texts[TASK_TARGET].at, texts[TASK_TARGET].length, (const char *)texts[TASK_NAME].at,
            texts[TASK_NAME].length, texts[TASK_PARAMETER].at, texts[TASK_PARAMETER].length,
            (const char *)texts[TASK_ON_SUCCESS].at, texts[TASK_ON_SUCCESS].length,
            (const char *)texts[TASK_ON_FAILURE].at, texts[TASK_ON_FAILURE].length, numbers[0], numbers[1]);
        outcome = counted(ctx, status);
    }
    for (int at = TASK_FIELDS - 1; at >= 0; at--) {
        JS_PopGCRef(ctx, &references[at]);
    }
    return outcome;
}

JSValue tenure_js_callback_of(JSContext *ctx, JSValue *this, int count, JSValue *arguments) {
    return counted(ctx, tenure_host_callback_of());
}

/* Room for 16 keys: each host call costs a message. */
#define PEERS_BYTES 512

JSValue tenure_js_peers(JSContext *ctx, JSValue *this, int count, JSValue *arguments) {
    uint32_t which;
    if (number(ctx, &which, arguments[0], TENURE_ALL)) {
        return JS_EXCEPTION;
    }
    uint32_t capacity = PEERS_BYTES;
    for (;;) {
        JSValue room = room_for(ctx, capacity, true);
        if (JS_IsException(room)) {
            return room;
        }
        int32_t length = tenure_host_peers(which, room_at(room, true), capacity);
        if (length < 0) {
            return throw_host(ctx, length);
        }
        if ((uint32_t)length <= capacity) {
            ((JSObject *)JS_VALUE_TO_PTR(room))->u.typed_array.len = (uint32_t)length;
            return room;
        }
        capacity = (uint32_t)length;
    }
}

/* ---- timers ---- */

JSValue tenure_js_timer_after(JSContext *ctx, JSValue *this, int count, JSValue *arguments, int again) {
    uint32_t time_ms;
    if (make_plain(ctx, &arguments[1]) || number(ctx, &time_ms, arguments[0], 0)) {
        return JS_EXCEPTION;
    }
    JSStringCharBuf buffer;
    struct span name = said(ctx, arguments[1], &buffer);
    uint32_t period_ms = again ? time_ms : 0;
    return done(ctx, tenure_host_timer_after((const char *)name.at, name.length, NULL, 0, time_ms, period_ms));
}

JSValue tenure_js_timer_at(JSContext *ctx, JSValue *this, int count, JSValue *arguments) {
    uint32_t time_s, period_ms;
    if (make_plain(ctx, &arguments[2]) || number(ctx, &time_s, arguments[0], 0) ||
        number(ctx, &period_ms, arguments[1], 0)) {
        return JS_EXCEPTION;
    }
    JSStringCharBuf buffer;
    struct span name = said(ctx, arguments[2], &buffer);
    return done(ctx, tenure_host_timer_at((const char *)name.at, name.length, NULL, 0, time_s, period_ms));
}

JSValue tenure_js_timer_schedule(JSContext *ctx, JSValue *this, int count, JSValue *arguments) {
    if (make_all_plain(ctx, arguments, 2)) {
        return JS_EXCEPTION;
    }
    JSStringCharBuf times, names;
    struct span when = said(ctx, arguments[0], &times), name = said(ctx, arguments[1], &names);
    return done(ctx, tenure_host_timer_schedule((const char *)name.at, name.length, NULL, 0, (const char *)when.at,
                                                when.length));
}

JSValue tenure_js_timer_cancel(JSContext *ctx, JSValue *this, int count, JSValue *arguments) {
    if (make_plain(ctx, &arguments[0])) {
        return JS_EXCEPTION;
    }
    JSStringCharBuf buffer;
    struct span name = said(ctx, arguments[0], &buffer);
    return done(ctx, tenure_host_timer_cancel((const char *)name.at, name.length));
}

/* ---- events ---- */

JSValue tenure_js_publish(JSContext *ctx, JSValue *this, int count, JSValue *arguments) {
    if (make_all_plain(ctx, arguments, 2)) {
        return JS_EXCEPTION;
    }
    JSStringCharBuf topics, values;
    struct span topic = said(ctx, arguments[0], &topics), value = said(ctx, arguments[1], &values);
    return counted(ctx, tenure_host_publish((const char *)topic.at, topic.length, value.at, value.length));
}

/* The policy of a name; -1 if it is none. */
static int policy(struct span name) {
    static const char *const policies[] = {"drop-oldest", "drop-newest", "latest-only"};
    for (int at = 0; at < 3; at++) {
        if (strlen(policies[at]) == name.length && memcmp(policies[at], name.at, name.length) == 0) {
            return at;
        }
    }
    return name.at == NULL ? TENURE_DROP_OLDEST : -1;
}

/* The events that a queue holds unless it is said. */
#define DEPTH 8

JSValue tenure_js_subscribe(JSContext *ctx, JSValue *this, int count, JSValue *arguments) {
    uint32_t depth;
    if (make_all_plain(ctx, arguments, 3) || number(ctx, &depth, arguments[3], DEPTH)) {
        return JS_EXCEPTION;
    }
    JSStringCharBuf topics, handlers, policies;
    struct span topic = said(ctx, arguments[0], &topics), handler = said(ctx, arguments[1], &handlers);
    int when_full = policy(said(ctx, arguments[2], &policies));
    if (when_full < 0) {
        return JS_ThrowTypeError(ctx, "the policy is drop-oldest, drop-newest or latest-only");
    }
    return done(ctx, tenure_host_subscribe((const char *)topic.at, topic.length, (uint32_t)when_full, depth,
                                           (const char *)handler.at, handler.length));
}

JSValue tenure_js_unsubscribe(JSContext *ctx, JSValue *this, int count, JSValue *arguments) {
    if (make_plain(ctx, &arguments[0])) {
        return JS_EXCEPTION;
    }
    JSStringCharBuf buffer;
    struct span topic = said(ctx, arguments[0], &buffer);
    return done(ctx, tenure_host_unsubscribe((const char *)topic.at, topic.length));
}

static JSValue topic_of_event(JSContext *ctx) {
    char topic[TENURE_TOPIC_BYTES];
    return tenure_event_topic(topic) < 0 ? JS_NULL : JS_NewString(ctx, topic);
}

JSValue tenure_js_event_topic(JSContext *ctx, JSValue *this, int count, JSValue *arguments) {
    return topic_of_event(ctx);
}

JSValue tenure_js_dropped(JSContext *ctx, JSValue *this, int count, JSValue *arguments) {
    if (JS_IsUndefined(arguments[0])) {
        return counted(ctx, tenure_host_event_dropped());
    }
    if (make_plain(ctx, &arguments[0])) {
        return JS_EXCEPTION;
    }
    JSStringCharBuf buffer;
    struct span topic = said(ctx, arguments[0], &buffer);
    return counted(ctx, tenure_host_topic_dropped((const char *)topic.at, topic.length));
}

JSValue tenure_js_event_next(JSContext *ctx, JSValue *this, int count, JSValue *arguments) {
    uint32_t timeout_ms;
    if (number(ctx, &timeout_ms, arguments[0], TENURE_FOR_EVER)) {
        return JS_EXCEPTION;
    }
    int32_t length = tenure_host_event_next(timeout_ms);
    if (length == TENURE_DEADLINE) {
        return JS_NULL;
    }
    if (length < 0) {
        return throw_host(ctx, length);
    }
    JSValue room = room_for(ctx, (uint32_t)length, false);
    if (JS_IsException(room)) {
        return room;
    }
    tenure_host_event_read(0, room_at(room, false), (uint32_t)length);
    JSValue payload = filled(ctx, room, false);
    JSGCRef payload_ref, event_ref;
    JS_PUSH_VALUE(ctx, payload);
    JSValue event = JS_IsException(payload) ? JS_EXCEPTION : JS_NewObject(ctx);
    JS_PUSH_VALUE(ctx, event);
    if (!JS_IsException(event)) {
        JSValue topic = topic_of_event(ctx);
        if (JS_IsException(topic) || JS_IsException(JS_SetPropertyStr(ctx, event_ref.val, "topic", topic)) ||
            JS_IsException(JS_SetPropertyStr(ctx, event_ref.val, "payload", payload_ref.val)) ||
            JS_IsException(
                JS_SetPropertyStr(ctx, event_ref.val, "dropped", JS_NewInt32(ctx, tenure_host_event_dropped())))) {
            event_ref.val = JS_EXCEPTION;
        }
    }
    JS_POP_VALUE(ctx, event);
    JS_POP_VALUE(ctx, payload);
    return event;
}

/* ---- time, chance and budgets ---- */

JSValue tenure_js_uptime_us(JSContext *ctx, JSValue *this, int count, JSValue *arguments) {
    return JS_NewFloat64(ctx, (double)tenure_host_uptime_us());
}

JSValue tenure_js_performance_now(JSContext *ctx, JSValue *this, int count, JSValue *arguments) {
    return JS_NewFloat64(ctx, (double)tenure_host_uptime_us() / 1000.0);
}

JSValue tenure_js_unix_time_s(JSContext *ctx, JSValue *this, int count, JSValue *arguments) {
    int64_t time_s = tenure_host_unix_time_s();
    return time_s < 0 ? JS_NULL : JS_NewFloat64(ctx, (double)time_s);
}

/* NaN while the device doesn't know the time. */
JSValue tenure_js_date_now(JSContext *ctx, JSValue *this, int count, JSValue *arguments) {
    int64_t time_s = tenure_host_unix_time_s();
    return JS_NewFloat64(ctx, time_s < 0 ? NAN : (double)time_s * 1000.0);
}

JSValue tenure_js_sleep_ms(JSContext *ctx, JSValue *this, int count, JSValue *arguments) {
    uint32_t duration_ms;
    if (number(ctx, &duration_ms, arguments[0], 0)) {
        return JS_EXCEPTION;
    }
    tenure_host_sleep_ms(duration_ms);
    return JS_UNDEFINED;
}

JSValue tenure_js_yield_now(JSContext *ctx, JSValue *this, int count, JSValue *arguments) {
    tenure_host_yield_now();
    return JS_UNDEFINED;
}

JSValue tenure_js_random(JSContext *ctx, JSValue *this, int count, JSValue *arguments) {
    uint32_t length;
    if (number(ctx, &length, arguments[0], 0)) {
        return JS_EXCEPTION;
    }
    JSValue room = room_for(ctx, length, true);
    if (!JS_IsException(room)) {
        tenure_host_random(room_at(room, true), length);
    }
    return room;
}

JSValue tenure_js_budget_left(JSContext *ctx, JSValue *this, int count, JSValue *arguments) {
    uint32_t budget;
    if (number(ctx, &budget, arguments[0], TENURE_BUDGET_FUEL)) {
        return JS_EXCEPTION;
    }
    return counted(ctx, tenure_host_budget_left(budget));
}

JSValue tenure_js_raise_tier(JSContext *ctx, JSValue *this, int count, JSValue *arguments) {
    uint32_t tier, fuel;
    if (number(ctx, &tier, arguments[0], 0) || number(ctx, &fuel, arguments[1], 0)) {
        return JS_EXCEPTION;
    }
    return counted(ctx, tenure_host_raise_tier(tier, fuel));
}
