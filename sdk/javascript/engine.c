/* JavaScript machines: the engine MicroQuickJS, and what its scripts can ask of a device.
 *
 * The script comes as bytecode, made by compile.c on the computer that builds the machine; the parser stays there.
 * All objects lie in one block of memory, behind the constants, in which the engine's collector moves them. So a
 * pointer into an object holds only until the next thing that allocates, and a value lives as long as a slot that the
 * collector knows holds it: an argument, or a JSGCRef. */
#include "mquickjs.c"

#include <tenure.h>

/* ---- the program, which `tenure build` writes beside ---- */

/* A file of the script: in the program it begins at this line. */
struct tenure_js_file {
    uint32_t first_line;
    const char *name;
};

extern uint8_t tenure_js_code[];
extern const uint32_t tenure_js_code_bytes;
extern const struct tenure_js_file tenure_js_files[];
extern const uint32_t tenure_js_file_count;

extern const JSSTDLibraryDef js_stdlib;

void tenure_js_start(void);
void tenure_js_call(const char *name);

/* ---- values as bytes for the host, and back ---- */

struct span {
    const uint8_t *at;
    uint32_t length;
};

static bool is_bytes(JSContext *ctx, JSValue value) {
    if (!JS_IsObject(ctx, value)) {
        return false;
    }
    int class = ((JSObject *)JS_VALUE_TO_PTR(value))->class_id;
    return class == JS_CLASS_ARRAY_BUFFER ||
           (class >= JS_CLASS_UINT8C_ARRAY && class <= JS_CLASS_UINT8_ARRAY);
}

/* The content of an ArrayBuffer, or of an array of bytes over one. */
static struct span content(JSValue value) {
    JSObject *object = JS_VALUE_TO_PTR(value);
    if (object->class_id == JS_CLASS_ARRAY_BUFFER) {
        JSByteArray *bytes = JS_VALUE_TO_PTR(object->u.array_buffer.byte_buffer);
        return (struct span){bytes->buf, bytes->size};
    }
    struct span whole = content(object->u.typed_array.buffer);
    return (struct span){whole.at + object->u.typed_array.offset, object->u.typed_array.len};
}

/* What a value that `make_plain` has made plain says; NULL for undefined and null. `buffer` holds short texts. */
static struct span said(JSContext *ctx, JSValue value, JSStringCharBuf *buffer) {
    if (JS_IsString(ctx, value)) {
        JSString *text = get_string_ptr(ctx, buffer, value);
        return (struct span){text->buf, text->len};
    }
    if (is_bytes(ctx, value)) {
        return content(value);
    }
    return (struct span){NULL, 0};
}

/* Makes a text of what is neither one, nor bytes, nor nothing: of a function its name, of others JSON. */
static int make_plain(JSContext *ctx, JSValue *slot) {
    if (JS_IsString(ctx, *slot) || JS_IsUndefined(*slot) || JS_IsNull(*slot) || is_bytes(ctx, *slot)) {
        return 0;
    }
    bool is_function = JS_IsFunction(ctx, *slot);
    *slot = is_function ? JS_GetPropertyStr(ctx, *slot, "name") : js_json_stringify(ctx, NULL, 1, slot);
    JSStringCharBuf buffer;
    if (is_function && !JS_IsException(*slot) && said(ctx, *slot, &buffer).length == 0) {
        JS_ThrowTypeError(ctx, "a function without a name is named by a text");
        return -1;
    }
    return JS_IsException(*slot) ? -1 : 0;
}

static int make_all_plain(JSContext *ctx, JSValue *slots, int count) {
    for (int at = 0; at < count; at++) {
        if (make_plain(ctx, &slots[at])) {
            return -1;
        }
    }
    return 0;
}

/* Room for so many bytes of text or of an array, to be filled by what allocates nothing. */
static JSValue room_for(JSContext *ctx, uint32_t length, bool as_bytes) {
    if (!as_bytes) {
        JSString *text = js_alloc_string(ctx, length);
        return text == NULL ? JS_EXCEPTION : JS_VALUE_FROM_PTR(text);
    }
    JSValue buffer = js_array_buffer_alloc(ctx, length);
    if (JS_IsException(buffer)) {
        return buffer;
    }
    JSGCRef buffer_ref;
    JS_PUSH_VALUE(ctx, buffer);
    JSValue array = JS_NewObjectClass(ctx, JS_CLASS_UINT8_ARRAY, sizeof(JSTypedArray));
    JS_POP_VALUE(ctx, buffer);
    if (!JS_IsException(array)) {
        JSTypedArray *bytes = &((JSObject *)JS_VALUE_TO_PTR(array))->u.typed_array;
        bytes->buffer = buffer;
        bytes->offset = 0;
        bytes->len = length;
    }
    return array;
}

static uint8_t *room_at(JSValue room, bool as_bytes) {
    return as_bytes ? (uint8_t *)content(room).at : ((JSString *)JS_VALUE_TO_PTR(room))->buf;
}

/* Whether it is text in UTF-8 (RFC 3629 §4). */
static bool is_text(const uint8_t *at, uint32_t length) {
    const uint8_t *end = at + length;
    while (at < end) {
        uint8_t first = *at++;
        uint32_t more = first < 0x80 ? 0 : first < 0xE0 ? 1 : first < 0xF0 ? 2 : 3;
        if (more > (uint32_t)(end - at) || (first >= 0x80 && first < 0xC2) || first > 0xF4) {
            return false;
        }
        if ((first == 0xE0 && at[0] < 0xA0) || (first == 0xED && at[0] > 0x9F) ||
            (first == 0xF0 && at[0] < 0x90) || (first == 0xF4 && at[0] > 0x8F)) {
            return false;
        }
        for (; more > 0; more--) {
            if ((*at++ & 0xC0) != 0x80) {
                return false;
            }
        }
    }
    return true;
}

/* The value of a room that was filled: bytes, or a text as the engine holds it. What isn't UTF-8 becomes bytes. */
static JSValue filled(JSContext *ctx, JSValue room, bool as_bytes) {
    if (as_bytes) {
        return room;
    }
    JSString *text = JS_VALUE_TO_PTR(room);
    if (text->len == 0) {
        return js_get_atom(ctx, JS_ATOM_empty);
    }
    if (!is_text(text->buf, text->len)) {
        uint32_t length = text->len;
        JSGCRef room_ref;
        JS_PUSH_VALUE(ctx, room);
        JSValue bytes = room_for(ctx, length, true);
        JS_POP_VALUE(ctx, room);
        if (!JS_IsException(bytes)) {
            memcpy(room_at(bytes, true), room_at(room, false), length);
        }
        return bytes;
    }
    if ((size_t)utf8_char_len(text->buf[0]) == text->len) {
        size_t length;
        return JS_NewStringChar(utf8_get(text->buf, &length));
    }
    text->is_ascii = is_ascii_string((const char *)text->buf, text->len);
    return room;
}

static JSValue bytes_of(JSContext *ctx, const void *at, uint32_t length) {
    JSValue room = room_for(ctx, length, true);
    if (!JS_IsException(room)) {
        memcpy(room_at(room, true), at, length);
    }
    return room;
}

/* ---- failures ---- */

/* Throws a failure of the host: an Error with its words, and its number as `code`. */
static JSValue throw_with(JSContext *ctx, int32_t status, const char *words) {
    JS_ThrowError(ctx, JS_CLASS_ERROR, *words ? "%s: %s" : "%s", tenure_error_text(status), words);
    JSValue error = JS_GetException(ctx);
    JSGCRef error_ref;
    JS_PUSH_VALUE(ctx, error);
    JS_SetPropertyStr(ctx, error_ref.val, "code", JS_NewInt32(ctx, status));
    JS_POP_VALUE(ctx, error);
    return JS_Throw(ctx, error);
}

static JSValue throw_host(JSContext *ctx, int32_t status) {
    return throw_with(ctx, status, "");
}

/* A result that is a count. */
static JSValue counted(JSContext *ctx, int32_t status) {
    return status < 0 ? throw_host(ctx, status) : JS_NewInt32(ctx, status);
}

/* A result that says nothing but that it went well. */
static JSValue done(JSContext *ctx, int32_t status) {
    return status < 0 ? throw_host(ctx, status) : JS_UNDEFINED;
}

/* A number that is an argument; what is left out is `otherwise`. */
static int number(JSContext *ctx, uint32_t *into, JSValue value, uint32_t otherwise) {
    if (JS_IsUndefined(value)) {
        *into = otherwise;
        return 0;
    }
    return JS_ToUint32(ctx, into, value);
}

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

/* A result that is waiting to be read, or the failure of its call. */
static JSValue result(JSContext *ctx, int32_t status, bool as_bytes) {
    if (status == TENURE_NULL) {
        return JS_NULL;
    }
    if (status < 0) {
        char words[WORDS_BYTES];
        tenure_failure_text(words, sizeof words);
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
    return result(ctx, status, as_bytes);
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

/* ---- the machine ---- */

static JSContext *context;

/* The objects of the module "tenure", in the order in which stdlib.c numbers them. */
#define PARTS 4
static JSGCRef parts[PARTS];

JSValue tenure_js_part(JSContext *ctx, JSValue *this, int count, JSValue *arguments, int part) {
    return parts[part].val;
}

static void find_parts(JSContext *ctx) {
    static const char *const names[PARTS] = {"__log", "__tree", "__timers", "__events"};
    for (int part = 0; part < PARTS; part++) {
        JSValue *slot = JS_AddGCRef(ctx, &parts[part]);
        *slot = JS_GetPropertyStr(ctx, JS_GetGlobalObject(ctx), names[part]);
    }
}

/* The line in the program of the next frame in a stack's text, behind which `*stack` goes; 0 if there is none. */
static uint32_t line_of_frame(const char **stack) {
    const char *at = strstr(*stack, "(m:");
    if (at == NULL) {
        return 0;
    }
    uint32_t line = 0;
    for (at += 3; *at >= '0' && *at <= '9'; at++) {
        line = line * 10 + (uint32_t)(*at - '0');
    }
    *stack = at;
    return line;
}

/* The file that a line of the program comes from. */
static const struct tenure_js_file *file_of(uint32_t line) {
    const struct tenure_js_file *found = &tenure_js_files[0];
    for (uint32_t at = 1; at < tenure_js_file_count && tenure_js_files[at].first_line <= line; at++) {
        found = &tenure_js_files[at];
    }
    return found;
}

/* The stack of the last exception, of which the first place stands in its words. */
static char trail[128];

/* Puts the exception that wasn't caught into words, with the file and the line where it was thrown. */
static void describe(char *into, size_t capacity) {
    JSContext *ctx = context;
    JSGCRef thrown_ref;
    JSValue thrown = JS_GetException(ctx);
    JS_PUSH_VALUE(ctx, thrown);
    JSValue text = JS_IsError(ctx, thrown_ref.val) || !JS_IsObject(ctx, thrown_ref.val)
                       ? JS_ToString(ctx, thrown_ref.val)
                       : js_json_stringify(ctx, NULL, 1, &thrown_ref.val);
    JSStringCharBuf buffer;
    struct span words = {(const uint8_t *)"out of memory", 13};
    if (!JS_IsException(text)) {
        words = said(ctx, text, &buffer);
    }
    size_t length = words.length < capacity ? words.length : capacity - 1;
    memcpy(into, words.at, length);
    into[length] = 0;
    trail[0] = 0;
    if (JS_IsError(ctx, thrown_ref.val)) {
        JSValue stack = ((JSObject *)JS_VALUE_TO_PTR(thrown_ref.val))->u.error.stack;
        const char *rest = JS_IsString(ctx, stack) ? (const char *)said(ctx, stack, &buffer).at : "";
        uint32_t line = line_of_frame(&rest);
        if (line > 0) {
            const struct tenure_js_file *file = file_of(line);
            snprintf(into + length, capacity - length, " at %s:%u", file->name,
                     (unsigned)(line - file->first_line + 1));
            snprintf(trail, sizeof trail, "%s", rest);
        }
    }
    JS_POP_VALUE(ctx, thrown);
}

/* The calls that are told: what `trail` has room for. */
#define CALLS_MAX 8

/* Writes to the log through which calls the script came to the last exception, the first call first. */
static void log_trail(void) {
    uint32_t lines[CALLS_MAX], count = 0;
    const char *rest = trail;
    while (count < CALLS_MAX && (lines[count] = line_of_frame(&rest)) > 0) {
        count++;
    }
    while (count-- > 0) {
        const struct tenure_js_file *file = file_of(lines[count]);
        if (lines[count] >= file->first_line) {
            tenure_error("  called at %s:%u", file->name, (unsigned)(lines[count] - file->first_line + 1));
        }
    }
}

/* The room for a failure's words. */
#define FAILURE_BYTES 240

/* Makes the engine and runs the script, once. A script that throws stops the machine. */
void tenure_js_start(void) {
    if (context != NULL) {
        return;
    }
    extern uint8_t __heap_base[];
    uintptr_t begin = ((uintptr_t)__heap_base + 7u) & ~(uintptr_t)7u;
    // `tenure build` gives the memory pages of one byte, and all that the machine has from the beginning.
    context = JS_NewContext((void *)begin, __builtin_wasm_memory_size(0) - begin, &js_stdlib);
    uint64_t seed = 0;
    tenure_host_random(&seed, sizeof seed);
    JS_SetRandomSeed(context, seed);
    JSValue program = JS_EXCEPTION;
    if (JS_RelocateBytecode(context, tenure_js_code, tenure_js_code_bytes) == 0) {
        program = JS_LoadBytecode(context, tenure_js_code);
    }
    if (!JS_IsException(program)) {
        JSGCRef program_ref;
        JS_PUSH_VALUE(context, program);
        find_parts(context);
        JS_POP_VALUE(context, program);
        program = JS_Run(context, program);
    }
    if (JS_IsException(program)) {
        char words[FAILURE_BYTES];
        describe(words, sizeof words);
        tenure_abort(words);
    }
}

/* Calls the function of that name that the script exports, with the call's parameter; what it returns is the result,
 * and what it throws fails the call. */
void tenure_js_call(const char *name) {
    tenure_js_start();
    JSContext *ctx = context;
    JSGCRef function_ref;
    JSValue function = JS_GetPropertyStr(ctx, JS_GetGlobalObject(ctx), "__main");
    function = JS_IsException(function) ? function : JS_GetPropertyStr(ctx, function, name);
    JS_PUSH_VALUE(ctx, function);
    JSValue value = parameter(ctx, false);
    JS_POP_VALUE(ctx, function);
    if (!JS_IsException(value) && !JS_IsException(function)) {
        JSGCRef value_ref;
        JS_PUSH_VALUE(ctx, value);
        JS_PUSH_VALUE(ctx, function);
        int full = JS_StackCheck(ctx, 3);
        JS_POP_VALUE(ctx, function);
        JS_POP_VALUE(ctx, value);
        if (full) {
            value = JS_EXCEPTION;
        } else {
            JS_PushArg(ctx, value);
            JS_PushArg(ctx, function);
            JS_PushArg(ctx, JS_UNDEFINED);
            value = JS_Call(ctx, 1);
        }
    }
    if (!JS_IsException(value) && !JS_IsUndefined(value)) {
        JSGCRef value_ref;
        JS_PUSH_VALUE(ctx, value);
        JSValue outcome = reply_with(ctx, &value_ref.val);
        JS_POP_VALUE(ctx, value);
        value = outcome;
    }
    if (JS_IsException(value)) {
        char words[FAILURE_BYTES];
        describe(words, sizeof words);
        log_trail();
        tenure_fail("%s", words);
    }
}

#include "json.c"
#include "library.c"

#include "mqjs_stdlib.h"
