/* The engine's compiler, for the computer that builds a machine: JavaScript goes in, bytecode for devices comes out.
 *
 * It runs as WebAssembly in build.cjs, so that its words are 32 bits long as a device's are. Where a text isn't
 * JavaScript the engine leaves by longjmp, which build.cjs provides as an exception that ends the run. The functions
 * of engine.c are here for their names in the table alone. */
#include "engine.c"

/* The engine's block of memory: more than a program for a device takes. */
#define HEAP_BYTES (32u << 20)
#define PAGE_BYTES 65536u

/* The program that engine.c looks for. */
uint8_t tenure_js_code[1];
const uint32_t tenure_js_code_bytes = 0;
const struct tenure_js_file tenure_js_files[1];
const uint32_t tenure_js_file_count = 0;

static JSBytecodeHeader header;
static const uint8_t *code;
static uint32_t code_bytes;

static uint8_t *pages(uint32_t bytes) {
    return (uint8_t *)(__builtin_wasm_memory_grow(0, (bytes + PAGE_BYTES - 1) / PAGE_BYTES) * PAGE_BYTES);
}

#define EXPORT(NAME) __attribute__((export_name(#NAME)))

/* Room for a source and its closing zero. */
EXPORT(room) uint8_t *room(uint32_t length) {
    return pages(length + 1);
}

/* Compiles a source; what is wrong leaves by longjmp, or returns -1. */
EXPORT(compile) int32_t compile(const char *source, uint32_t length) {
    context = JS_NewContext2(pages(HEAP_BYTES), HEAP_BYTES, &js_stdlib, TRUE);
    JSValue program = JS_Parse(context, source, length, "m", JS_EVAL_STRIP_COL);
    if (JS_IsException(program)) {
        return -1;
    }
    JS_PrepareBytecode(context, &header, &code, &code_bytes, program);
    return JS_RelocateBytecode2(context, &header, (uint8_t *)code, code_bytes, 0, FALSE);
}

EXPORT(header_at) const void *header_at(void) {
    return &header;
}

EXPORT(header_bytes) uint32_t header_bytes(void) {
    return sizeof header;
}

EXPORT(code_at) const uint8_t *code_at(void) {
    return code;
}

EXPORT(code_length) uint32_t code_length(void) {
    return code_bytes;
}

/* What was wrong, once the run has ended. */
EXPORT(message) const char *message(void) {
    return context->parse_state->error_msg;
}

/* In which line, from 0. */
EXPORT(line) int32_t line(void) {
    int column;
    JSParseState *state = context->parse_state;
    return get_line_col(&column, state->source_buf, state->token.source_pos);
}
