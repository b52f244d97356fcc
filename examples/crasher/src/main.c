/* Fails in every way a program can: it is stopped, and nobody else notices. */
#include <tenure.h>

/* Shows that it runs, and runs again after a crash: tenure call crasher ping */
TENURE_EXPORT(ping) {
    tenure_reply_text("pong");
}

TENURE_EXPORT(unreachable) {
    __builtin_trap();
}

TENURE_EXPORT(out_of_bounds) {
    volatile uint8_t *beyond = (volatile uint8_t *)0x7fffffff;
    *beyond = 1;
}

/* Each round needs room in memory for its values; what overruns that room traps. */
static uint32_t deeper(uint32_t depth) {
    volatile uint32_t room[16];
    room[depth % 16] = depth;
    return depth == UINT32_MAX ? 0 : deeper(depth + 1) + room[depth % 16];
}

TENURE_EXPORT(stack_overflow) {
    tenure_info("%u", deeper(1));
}

TENURE_EXPORT(division) {
    volatile int zero = 0;
    tenure_info("%d", 100 / zero);
}

/* As a program that finds itself in a state that can't be. */
TENURE_EXPORT(give_up) {
    tenure_abort("gave up, as it was told");
}
