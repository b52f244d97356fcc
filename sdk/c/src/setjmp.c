/* setjmp and longjmp: what clang calls for them, as with emscripten (`-mllvm -enable-emscripten-sjlj`).
 *
 * A function with a setjmp makes its calls by functions that come back, too, when a longjmp has begun in them, and
 * then asks __wasm_setjmp_test whether it is meant; if it isn't, it goes on with the longjmp. `tenure build`
 * writes those functions, and lets those between return. */
#include <stddef.h>
#include <stdint.h>

#ifdef __wasm__

struct place {
    void *frame;
    unsigned call;
};

/* Begins to return from all functions up to one that has called setjmp. The message is for when there is none. */
__attribute__((import_module("env"), import_name("tenure_unwind"))) void
tenure_unwind(const char *message, size_t message_length);

/* The place that a longjmp is on its way to, or 0; and the value that setjmp is to return there. */
uintptr_t __THREW__;
int __threwValue;

static int second_result;

void setTempRet0(int value) {
    second_result = value;
}

int getTempRet0(void) {
    return second_result;
}

/* The frame is one variable's address, another one at each call of the function. */
void __wasm_setjmp(struct place *place, unsigned call, void *frame) {
    place->frame = frame;
    place->call = call;
}

/* Which setjmp of the function with this frame the place is of; 0 if it is another function's. */
unsigned __wasm_setjmp_test(const struct place *place, const void *frame) {
    return place->frame == frame ? place->call : 0;
}

void emscripten_longjmp(struct place *place, int value) {
    static const char message[] = "longjmp, and the function that called setjmp isn't running any more";
    __THREW__ = (uintptr_t)place;
    __threwValue = value == 0 ? 1 : value;
    tenure_unwind(message, sizeof message - 1);
}

/* What its address is taken of: clang makes calls of the function above. */
void longjmp(struct place *place, int value) {
    emscripten_longjmp(place, value);
}

#endif
