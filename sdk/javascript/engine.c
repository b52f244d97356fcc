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

#include "host.c"
#include "json.c"
#include "library.c"

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

/* The room for where it was thrown. */
#define PLACE_BYTES 80

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
    size_t length = words.length;
    if (length > capacity - PLACE_BYTES) {
        // Behind the last whole character.
        for (length = capacity - PLACE_BYTES; length > 0 && (words.at[length] & 0xC0) == 0x80; length--) {
        }
    }
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
    JSValue value = JS_IsException(function) ? function : parameter(ctx, false);
    JS_POP_VALUE(ctx, function);
    if (!JS_IsException(value)) {
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

#include "mqjs_stdlib.h"
