/* JSON.parse (RFC 8259), part of engine.c. The engine's own is part of its parser, which isn't on devices. */

struct json {
    JSContext *ctx;
    /* The text, which may move. */
    JSValue *source;
    uint32_t at;
    JSStringCharBuf buffer;
    /* The object or array that is being read, or undefined; and the name in it to which the next value belongs. */
    JSGCRef current;
    JSGCRef name;
    /* Those around it, each with its name in that around it. */
    JSGCRef around;
    uint32_t depth;
};

/* The text from where reading is; a zero byte ends it. */
static const uint8_t *json_rest(struct json *json) {
    return get_string_ptr(json->ctx, &json->buffer, *json->source)->buf + json->at;
}

static JSValue json_error(struct json *json) {
    return JS_ThrowError(json->ctx, JS_CLASS_SYNTAX_ERROR, "no JSON at byte %d", (int)json->at);
}

/* The next byte that isn't white space (RFC 8259 §2). */
static uint8_t json_next(struct json *json) {
    const uint8_t *rest = json_rest(json);
    while (*rest == ' ' || *rest == '\t' || *rest == '\n' || *rest == '\r') {
        rest++;
        json->at++;
    }
    return *rest;
}

/* The value of four hexadecimal digits; -1 if they are none. */
static int32_t json_hex(const uint8_t *at) {
    int32_t value = 0;
    for (int digit = 0; digit < 4; digit++) {
        uint8_t byte = at[digit], letter = byte | 0x20;
        if (byte >= '0' && byte <= '9') {
            value = value << 4 | (byte - '0');
        } else if (letter >= 'a' && letter <= 'f') {
            value = value << 4 | (letter - 'a' + 10);
        } else {
            return -1;
        }
    }
    return value;
}

/* Reads one character of a text at `*at` (RFC 8259 §7), which goes behind it; -1 if it is none. */
static int32_t json_character(const uint8_t **at, bool *is_plain) {
    static const char escapes[] = "\"\"\\\\//b\bf\fn\nr\rt\t";
    uint8_t first = *(*at)++;
    *is_plain = first != '\\';
    if (*is_plain) {
        return first < 0x20 ? -1 : first;
    }
    uint8_t kind = *(*at)++;
    if (kind != 'u') {
        for (const char *pair = escapes; *pair; pair += 2) {
            if ((uint8_t)pair[0] == kind) {
                return pair[1];
            }
        }
        return -1;
    }
    int32_t unit = json_hex(*at);
    if (unit < 0) {
        return -1;
    }
    *at += 4;
    // A pair of surrogates is one character.
    if (unit >= 0xD800 && unit < 0xDC00 && (*at)[0] == '\\' && (*at)[1] == 'u') {
        int32_t second = json_hex(*at + 2);
        if (second >= 0xDC00 && second < 0xE000) {
            *at += 6;
            return 0x10000 + ((unit - 0xD800) << 10) + (second - 0xDC00);
        }
    }
    return unit;
}

/* Writes the characters up to the quote to `into`, or counts their bytes alone; -1 if they are no text. `*at` goes
 * behind the quote. */
static int32_t json_characters(const uint8_t **at, uint8_t *into) {
    int32_t length = 0;
    while (**at != '"') {
        bool is_plain;
        uint8_t bytes[UTF8_CHAR_LEN_MAX];
        int32_t character = json_character(at, &is_plain);
        if (character < 0) {
            return -1;
        }
        size_t count = 1;
        bytes[0] = (uint8_t)character;
        if (!is_plain) {
            count = unicode_to_utf8(bytes, (unsigned)character);
        }
        if (into != NULL) {
            memcpy(into + length, bytes, count);
        }
        length += (int32_t)count;
    }
    (*at)++;
    return length;
}

static JSValue json_text(struct json *json) {
    json->at++;
    const uint8_t *rest = json_rest(json), *end = rest;
    int32_t length = json_characters(&end, NULL);
    if (length < 0) {
        json->at += (uint32_t)(end - rest) - 1;
        return json_error(json);
    }
    JSValue room = room_for(json->ctx, (uint32_t)length, false);
    if (JS_IsException(room)) {
        return room;
    }
    rest = end = json_rest(json);
    json_characters(&end, room_at(room, false));
    json->at += (uint32_t)(end - rest);
    JSString *text = JS_VALUE_TO_PTR(room);
    // A surrogate alone, which the engine's texts may hold, isn't for `filled` to judge.
    if (length > 1 && (size_t)utf8_char_len(text->buf[0]) != text->len) {
        text->is_ascii = is_ascii_string((const char *)text->buf, text->len);
        return room;
    }
    if (length == 0) {
        return js_get_atom(json->ctx, JS_ATOM_empty);
    }
    size_t taken;
    return JS_NewStringChar((uint32_t)utf8_get(text->buf, &taken));
}

static bool json_is_digit(uint8_t byte) {
    return byte >= '0' && byte <= '9';
}

static JSValue json_number(struct json *json) {
    static JSATODTempMem memory;
    const uint8_t *rest = json_rest(json), *at = rest;
    at += *at == '-';
    // No digits behind a zero (RFC 8259 §6).
    bool is_well_formed = json_is_digit(*at);
    bool begins_with_zero = *at++ == '0';
    is_well_formed &= !(begins_with_zero && json_is_digit(*at));
    for (; json_is_digit(*at); at++) {
    }
    if (*at == '.') {
        is_well_formed &= json_is_digit(*++at);
        for (; json_is_digit(*at); at++) {
        }
    }
    if ((*at | 0x20) == 'e') {
        at++;
        at += *at == '+' || *at == '-';
        is_well_formed &= json_is_digit(*at);
        for (; json_is_digit(*at); at++) {
        }
    }
    if (!is_well_formed) {
        return json_error(json);
    }
    const char *end;
    double value = js_atod((const char *)rest, &end, 10, 0, &memory);
    json->at += (uint32_t)(at - rest);
    return JS_NewFloat64(json->ctx, value);
}

/* A word of JavaScript, if it stands here. */
static JSValue json_word(struct json *json, const char *word, JSValue value) {
    uint32_t length = strlen(word);
    if (strncmp((const char *)json_rest(json), word, length) != 0) {
        return json_error(json);
    }
    json->at += length;
    return value;
}

static bool json_is_array(JSValue value) {
    return ((JSObject *)JS_VALUE_TO_PTR(value))->class_id == JS_CLASS_ARRAY;
}

/* Reads the name of a member and the colon. */
static JSValue json_name(struct json *json) {
    if (json_next(json) != '"') {
        return json_error(json);
    }
    JSValue name = json_text(json);
    name = JS_IsException(name) ? name : JS_ToPropertyKey(json->ctx, name);
    json->name.val = name;
    if (JS_IsException(name) || json_next(json) != ':') {
        return JS_IsException(name) ? name : json_error(json);
    }
    json->at++;
    return JS_UNDEFINED;
}

/* Goes into an object or an array; true if it is empty. */
static JSValue json_open(struct json *json, bool is_array) {
    JSContext *ctx = json->ctx;
    if (!JS_IsUndefined(json->current.val)) {
        uint32_t at = 2 * json->depth++;
        if (JS_IsException(JS_SetPropertyUint32(ctx, json->around.val, at, json->current.val)) ||
            JS_IsException(JS_SetPropertyUint32(ctx, json->around.val, at + 1, json->name.val))) {
            return JS_EXCEPTION;
        }
    }
    JSValue made = is_array ? JS_NewArray(ctx, 0) : JS_NewObject(ctx);
    json->current.val = made;
    if (JS_IsException(made)) {
        return made;
    }
    json->at++;
    if (json_next(json) == (is_array ? ']' : '}')) {
        json->at++;
        return JS_TRUE;
    }
    JSValue outcome = is_array ? JS_UNDEFINED : json_name(json);
    return JS_IsException(outcome) ? outcome : JS_FALSE;
}

/* Leaves the object or array that is being read for the one around it, and gives it. */
static JSValue json_close(struct json *json) {
    JSValue closed = json->current.val;
    json->current.val = JS_UNDEFINED;
    if (json->depth > 0) {
        uint32_t at = 2 * --json->depth;
        json->current.val = JS_GetPropertyUint32(json->ctx, json->around.val, at);
        json->name.val = JS_GetPropertyUint32(json->ctx, json->around.val, at + 1);
    }
    return closed;
}

/* Puts a value where it belongs; true if another follows there. */
static JSValue json_put(struct json *json, JSValue value) {
    JSValue *into = &json->current.val;
    bool is_array = json_is_array(*into);
    uint32_t length = is_array ? ((JSObject *)JS_VALUE_TO_PTR(*into))->u.array.len : 0;
    value = is_array ? JS_SetPropertyUint32(json->ctx, *into, length, value)
                     : JS_DefinePropertyValue(json->ctx, *into, json->name.val, value);
    if (JS_IsException(value)) {
        return value;
    }
    uint8_t next = json_next(json);
    if (next != ',' && next != (is_array ? ']' : '}')) {
        return json_error(json);
    }
    json->at++;
    if (next != ',') {
        return JS_FALSE;
    }
    JSValue outcome = is_array ? JS_UNDEFINED : json_name(json);
    return JS_IsException(outcome) ? outcome : JS_TRUE;
}

/* A value that is no object and no array. */
static JSValue json_scalar(struct json *json, uint8_t first) {
    switch (first) {
    case '"': return json_text(json);
    case 't': return json_word(json, "true", JS_TRUE);
    case 'f': return json_word(json, "false", JS_FALSE);
    case 'n': return json_word(json, "null", JS_NULL);
    default: return json_number(json);
    }
}

/* A whole text. Nothing calls itself, so that depth takes no stack. */
static JSValue json_document(struct json *json) {
    for (;;) {
        uint8_t first = json_next(json);
        JSValue value;
        if (first == '{' || first == '[') {
            JSValue is_empty = json_open(json, first == '[');
            if (JS_IsException(is_empty)) {
                return is_empty;
            }
            if (is_empty == JS_FALSE) {
                continue;
            }
            value = json_close(json);
        } else {
            value = json_scalar(json, first);
        }
        for (;;) {
            if (JS_IsException(value) || JS_IsUndefined(json->current.val)) {
                return value;
            }
            JSValue more = json_put(json, value);
            if (JS_IsException(more)) {
                return more;
            }
            if (more == JS_TRUE) {
                break;
            }
            value = json_close(json);
        }
    }
}

JSValue tenure_js_json_parse(JSContext *ctx, JSValue *this, int count, JSValue *arguments) {
    arguments[0] = JS_ToString(ctx, arguments[0]);
    if (JS_IsException(arguments[0])) {
        return JS_EXCEPTION;
    }
    struct json json = {.ctx = ctx, .source = &arguments[0]};
    *JS_PushGCRef(ctx, &json.current) = JS_UNDEFINED;
    *JS_PushGCRef(ctx, &json.name) = JS_UNDEFINED;
    *JS_PushGCRef(ctx, &json.around) = JS_UNDEFINED;
    JSValue value = json.around.val = JS_NewArray(ctx, 0);
    value = JS_IsException(value) ? value : json_document(&json);
    JS_PopGCRef(ctx, &json.around);
    JS_PopGCRef(ctx, &json.name);
    JS_PopGCRef(ctx, &json.current);
    JSStringCharBuf buffer;
    if (!JS_IsException(value) && (json_next(&json), json.at) != said(ctx, arguments[0], &buffer).length) {
        return json_error(&json);
    }
    return value;
}
