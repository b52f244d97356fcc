/* <setjmp.h>: leaving functions from deep within them.
 *
 * setjmp notes the place; longjmp comes back to it from any function that was called since. As C has it, variables
 * of the function that noted it which have changed since then must be `volatile` to be read afterwards, and a
 * place is over when that function returns: who jumps there then stops the machine, if nothing else has been put
 * into its stack's room.
 *
 * `tenure build` makes calls and returns of both: a call in a function behind a setjmp costs some more, and so
 * does each call in which a longjmp may happen, by a look at one variable. Destructors of C++ between both don't
 * run. */
#pragma once

#ifndef __wasm__
#error "code for a processor has no setjmp: leave `code` out of tenure.toml, or `#include <setjmp.h>`"
#endif

#ifdef __cplusplus
extern "C" {
#define _Noreturn [[noreturn]]
#endif

/* The function's frame, and which of its calls of setjmp that was. */
typedef struct {
    void *frame;
    unsigned call;
} jmp_buf[1];

/* Returns 0, and once more, with the value given to longjmp or 1 for 0, for each longjmp to the place. */
int setjmp(jmp_buf place) __attribute__((__returns_twice__));
_Noreturn void longjmp(jmp_buf place, int value);

#define setjmp(PLACE) setjmp(PLACE)

#ifdef __cplusplus
#undef _Noreturn
}
#endif
