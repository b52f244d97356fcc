/* Functions of JavaScript's library that MicroQuickJS lacks, part of engine.c. */

/* `new Function`, `new RegExp`: what isn't known when the machine is built can't be compiled. */
JSValue tenure_js_no_parser(JSContext *ctx, JSValue *this, int count, JSValue *arguments) {
    return JS_ThrowTypeError(ctx, "no code and no regular expression is compiled on a device; write /it/ as a literal");
}

/* Object.values, or Object.entries if `with_names`. */
JSValue tenure_js_object_values(JSContext *ctx, JSValue *this, int count, JSValue *arguments, int with_names) {
    JSValue list = js_object_keys(ctx, this, 1, arguments);
    JSGCRef list_ref, pair_ref;
    JS_PUSH_VALUE(ctx, list);
    uint32_t length = JS_IsException(list) ? 0 : ((JSObject *)JS_VALUE_TO_PTR(list))->u.array.len;
    for (uint32_t at = 0; at < length; at++) {
        JSValue pair = with_names ? JS_NewArray(ctx, 0) : JS_UNDEFINED;
        JS_PUSH_VALUE(ctx, pair);
        JSValue name = JS_GetPropertyUint32(ctx, list_ref.val, at);
        if (with_names && !JS_IsException(pair_ref.val)) {
            JS_SetPropertyUint32(ctx, pair_ref.val, 0, name);
            name = JS_GetPropertyUint32(ctx, list_ref.val, at);
        }
        JSValue value = JS_ToPropertyKey(ctx, name);
        value = JS_IsException(value) ? value : JS_GetProperty(ctx, arguments[0], value);
        if (with_names && !JS_IsException(pair_ref.val) && !JS_IsException(value)) {
            value = JS_SetPropertyUint32(ctx, pair_ref.val, 1, value);
        }
        JS_POP_VALUE(ctx, pair);
        if (JS_IsException(value) || JS_IsException(pair)) {
            list_ref.val = JS_EXCEPTION;
            break;
        }
        JS_SetPropertyUint32(ctx, list_ref.val, at, with_names ? pair : value);
    }
    JS_POP_VALUE(ctx, list);
    return list;
}

JSValue tenure_js_object_assign(JSContext *ctx, JSValue *this, int count, JSValue *arguments) {
    for (int source = 1; source < count; source++) {
        if (JS_IsUndefined(arguments[source]) || JS_IsNull(arguments[source])) {
            continue;
        }
        JSValue names = js_object_keys(ctx, this, 1, &arguments[source]);
        if (JS_IsException(names)) {
            return names;
        }
        JSGCRef names_ref, name_ref;
        JS_PUSH_VALUE(ctx, names);
        uint32_t length = ((JSObject *)JS_VALUE_TO_PTR(names))->u.array.len;
        JSValue outcome = JS_UNDEFINED;
        for (uint32_t at = 0; at < length && !JS_IsException(outcome); at++) {
            JSValue name = JS_ToPropertyKey(ctx, JS_GetPropertyUint32(ctx, names_ref.val, at));
            JS_PUSH_VALUE(ctx, name);
            outcome = JS_IsException(name) ? name : JS_GetProperty(ctx, arguments[source], name);
            JS_POP_VALUE(ctx, name);
            if (!JS_IsException(outcome)) {
                outcome = JS_SetPropertyInternal(ctx, arguments[0], name, outcome, TRUE);
            }
        }
        JS_POP_VALUE(ctx, names);
        if (JS_IsException(outcome)) {
            return outcome;
        }
    }
    return arguments[0];
}

enum { IS_INTEGER, IS_FINITE, IS_NAN };

JSValue tenure_js_number_is(JSContext *ctx, JSValue *this, int count, JSValue *arguments, int kind) {
    double value;
    if (!JS_IsNumber(ctx, arguments[0]) || JS_ToNumber(ctx, &value, arguments[0])) {
        return JS_FALSE;
    }
    switch (kind) {
    case IS_INTEGER: return JS_NewBool(isfinite(value) && js_floor(value) == value);
    case IS_FINITE: return JS_NewBool(isfinite(value));
    default: return JS_NewBool(isnan(value));
    }
}

enum { INCLUDES, STARTS_WITH, ENDS_WITH };

JSValue tenure_js_string_has(JSContext *ctx, JSValue *this, int count, JSValue *arguments, int where) {
    *this = JS_ToString(ctx, *this);
    arguments[0] = JS_ToString(ctx, arguments[0]);
    if (JS_IsException(*this) || JS_IsException(arguments[0])) {
        return JS_EXCEPTION;
    }
    if (where == INCLUDES) {
        JSValue at = js_string_indexOf(ctx, this, count, arguments, 0);
        return JS_IsException(at) ? at : JS_NewBool(JS_VALUE_GET_INT(at) >= 0);
    }
    JSStringCharBuf buffers[2];
    struct span text = said(ctx, *this, &buffers[0]), part = said(ctx, arguments[0], &buffers[1]);
    if (part.length > text.length) {
        return JS_FALSE;
    }
    const uint8_t *at = where == STARTS_WITH ? text.at : text.at + text.length - part.length;
    return JS_NewBool(memcmp(at, part.at, part.length) == 0);
}

/* padStart, or padEnd if `at_end`. */
JSValue tenure_js_string_pad(JSContext *ctx, JSValue *this, int count, JSValue *arguments, int at_end) {
    int wanted;
    *this = JS_ToString(ctx, *this);
    arguments[1] = JS_IsUndefined(arguments[1]) ? JS_NewStringChar(' ') : JS_ToString(ctx, arguments[1]);
    if (JS_IsException(*this) || JS_IsException(arguments[1]) || JS_ToInt32Sat(ctx, &wanted, arguments[0])) {
        return JS_EXCEPTION;
    }
    int filler = js_string_len(ctx, arguments[1]), missing = wanted - js_string_len(ctx, *this);
    if (missing <= 0 || filler == 0) {
        return *this;
    }
    JSValue times = JS_NewInt32(ctx, missing / filler + 1);
    JSGCRef times_ref;
    JS_PUSH_VALUE(ctx, times);
    JSValue padding = js_string_repeat(ctx, &arguments[1], 1, &times_ref.val);
    JS_POP_VALUE(ctx, times);
    padding = JS_IsException(padding) ? padding : js_sub_string(ctx, padding, 0, missing);
    if (JS_IsException(padding)) {
        return padding;
    }
    return at_end ? JS_ConcatString(ctx, *this, padding) : JS_ConcatString(ctx, padding, *this);
}

JSValue tenure_js_array_includes(JSContext *ctx, JSValue *this, int count, JSValue *arguments) {
    JSValue at = js_array_indexOf(ctx, this, count, arguments, 0);
    return JS_IsException(at) ? at : JS_NewBool(JS_VALUE_GET_INT(at) >= 0);
}

/* find, or findIndex if `as_index`. */
JSValue tenure_js_array_find(JSContext *ctx, JSValue *this, int count, JSValue *arguments, int as_index) {
    if (!js_get_array(ctx, *this)) {
        return JS_EXCEPTION;
    }
    for (uint32_t at = 0; at < ((JSObject *)JS_VALUE_TO_PTR(*this))->u.array.len; at++) {
        if (JS_StackCheck(ctx, 5)) {
            return JS_EXCEPTION;
        }
        JS_PushArg(ctx, *this);
        JS_PushArg(ctx, JS_NewInt32(ctx, (int32_t)at));
        JS_PushArg(ctx, JS_GetPropertyUint32(ctx, *this, at));
        JS_PushArg(ctx, arguments[0]);
        JS_PushArg(ctx, JS_UNDEFINED);
        JSValue is_it = JS_Call(ctx, 3);
        if (JS_IsException(is_it)) {
            return is_it;
        }
        if (JS_ToBool(ctx, is_it)) {
            return as_index ? JS_NewInt32(ctx, (int32_t)at) : JS_GetPropertyUint32(ctx, *this, at);
        }
    }
    return as_index ? JS_NewInt32(ctx, -1) : JS_UNDEFINED;
}

/* Array.from, of what has a length: arrays, arrays of bytes, texts by their units, `{ length }`. */
JSValue tenure_js_array_from(JSContext *ctx, JSValue *this, int count, JSValue *arguments) {
    int length;
    JSValue said_length = JS_GetPropertyStr(ctx, arguments[0], "length");
    if (JS_IsException(said_length) || JS_ToInt32Sat(ctx, &length, said_length)) {
        return JS_EXCEPTION;
    }
    JSGCRef list_ref;
    JSValue list = JS_NewArray(ctx, 0);
    JS_PUSH_VALUE(ctx, list);
    for (int at = 0; at < length && !JS_IsException(list_ref.val); at++) {
        JSValue value = JS_GetPropertyUint32(ctx, arguments[0], (uint32_t)at);
        if (!JS_IsException(value) && JS_IsFunction(ctx, arguments[1])) {
            JSGCRef value_ref;
            JS_PUSH_VALUE(ctx, value);
            int full = JS_StackCheck(ctx, 4);
            JS_POP_VALUE(ctx, value);
            if (!full) {
                JS_PushArg(ctx, JS_NewInt32(ctx, at));
                JS_PushArg(ctx, value);
                JS_PushArg(ctx, arguments[1]);
                JS_PushArg(ctx, JS_UNDEFINED);
            }
            value = full ? JS_EXCEPTION : JS_Call(ctx, 2);
        }
        if (JS_IsException(value) || JS_IsException(JS_SetPropertyUint32(ctx, list_ref.val, (uint32_t)at, value))) {
            list_ref.val = JS_EXCEPTION;
        }
    }
    JS_POP_VALUE(ctx, list);
    return list;
}
