//! Mends of MicroQuickJS before it is compiled: of places where it loses an exception, or keeps the memory of calls that an
//! exception has ended.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, ensure};

use crate::whole_file;

/// The engine's file that has all of them.
const FILE: &str = "mquickjs.c";

/// The places, each with what takes it.
pub(super) const MENDS: [(&str, &str); 6] = [
    // sort: the exception of the function that compares counted as an order.
    (
        "        res = JS_Call(ctx, 2);
        if (JS_IsException(res))
            return JS_EXCEPTION;
        if (JS_IsInt(res)) {",
        "        res = JS_Call(ctx, 2);
        if (JS_IsException(res))
            goto exception;
        if (JS_IsInt(res)) {",
    ),
    // replace, by a regular expression and by a text: the exception of the function that gives the new text was lost.
    (
        "            js_string_concat_subst(ctx, b, this_val, &argv[1],
                                   start, end, capture_buf, capture_count, NULL);",
        "            if (js_string_concat_subst(ctx, b, this_val, &argv[1],
                                       start, end, capture_buf, capture_count, NULL)) {
                JS_PopGCRef(ctx, &capture_buf_ref);
                string_buffer_pop(ctx, b);
                return JS_EXCEPTION;
            }",
    ),
    (
        "            js_string_concat_subst(ctx, b, this_val, &argv[1],
                                   pos, pos + needle_len, NULL, 1, &argv[0]);",
        "            if (js_string_concat_subst(ctx, b, this_val, &argv[1],
                                       pos, pos + needle_len, NULL, 1, &argv[0])) {
                string_buffer_pop(ctx, b);
                return JS_EXCEPTION;
            }",
    ),
    // repeat: the number of a failure was returned as a value.
    (
        "        return JS_ThrowTypeError(ctx, \"not a string\");
    if (JS_ToInt32Sat(ctx, &n, argv[0]))
        return -1;",
        "        return JS_ThrowTypeError(ctx, \"not a string\");
    if (JS_ToInt32Sat(ctx, &n, argv[0]))
        return JS_EXCEPTION;",
    ),
    // Functions of Math with one argument: what could not be converted was any number.
    (
        "                                    d = fd->func.f_f(d);
                                }
                                val = JS_NewFloat64(ctx, d);",
        "                                    d = fd->func.f_f(d);
                                    val = JS_NewFloat64(ctx, d);
                                }",
    ),
    // catch: the stack of calls that have ended was no room for objects until the next call.
    (
        "                            *--sp = ctx->current_exception;
                            ctx->current_exception = JS_NULL;",
        "                            *--sp = ctx->current_exception;
                            ctx->current_exception = JS_NULL;
                            if (ctx->stack_bottom < stack_top - b->stack_size - JS_STACK_SLACK)
                                ctx->stack_bottom = stack_top - b->stack_size - JS_STACK_SLACK;",
    ),
];

/// Mends the engine's sources in `folder`.
///
/// # Errors
/// They are of another version, or can't be written.
pub(super) fn mend(folder: &Path) -> anyhow::Result<()> {
    let path = folder.join(FILE);
    let failed = || path.display().to_string();
    let mut text = fs::read_to_string(&path).with_context(failed)?;
    for (place, mended) in MENDS {
        ensure!(text.matches(place).count() == 1, "{} isn't the engine's: {place}", failed());
        text = text.replace(place, mended);
    }
    whole_file::write(&path, text).with_context(failed)
}
