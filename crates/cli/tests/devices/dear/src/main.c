/* Operations that take a small processor long, and such as compiled code leaves to the interpreter. */
#include <tenure.h>

#define ROUNDS 3000

static uint64_t state = 0x9E3779B97F4A7C15u;
static char from[512], to[512];

static uint64_t next(void) {
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

static double number(void) { return (double)(int64_t)next() * 0x1p-31; }

/* The result goes on as bits: of which NaN it is, nothing is promised. */
static uint64_t bits(double value) {
    union { double value; uint64_t bits; } u = {value};
    return value == value ? u.bits : 1;
}

static void answer(uint64_t sum) {
    char digits[17];
    for (int n = 0; n < 16; n++) digits[n] = "0123456789abcdef"[sum >> (60 - 4 * n) & 15];
    digits[16] = 0;
    tenure_reply_text(digits);
}

/* Chains, so that each operation waits for the one before and none is left out. */
TENURE_EXPORT(divide) {
    uint64_t sum = 0;
    double chain = 1.5;
    for (int n = 0; n < ROUNDS; n++) {
        chain = chain / (number() + 3.0) + number();
        sum += bits(chain);
    }
    answer(sum);
}

TENURE_EXPORT(narrow) {
    uint64_t sum = 0;
    float chain = 1.5f;
    for (int n = 0; n < ROUNDS; n++) {
        chain = chain / ((float)number() + 3.0f) * 1.25f + (float)n;
        sum += bits(chain);
    }
    answer(sum);
}

TENURE_EXPORT(integers) {
    uint64_t sum = 1;
    for (int n = 0; n < ROUNDS; n++) {
        sum += next() / (next() >> (n & 63) | 1) + next() % (sum | 1) + (uint64_t)__builtin_popcountll(sum);
        sum += (uint64_t)((int64_t)next() / (int64_t)(next() >> 33 | 1));
    }
    answer(sum);
}

TENURE_EXPORT(roots) {
    uint64_t sum = 0;
    for (int n = 0; n < ROUNDS; n++) {
        double value = __builtin_fabs(number());
        sum += bits(__builtin_elementwise_sqrt(value)) + bits(__builtin_elementwise_floor(value));
        sum += bits(__builtin_elementwise_rint(value));
        sum += bits(__builtin_elementwise_floor((float)value)) + (uint64_t)(int64_t)(value * 0x1p-8);
    }
    answer(sum);
}

TENURE_EXPORT(copies) {
    uint64_t sum = 0;
    for (int n = 0; n < ROUNDS; n++) {
        from[n & 511] = (char)next();
        __builtin_memcpy(to + (n & 7), from + (n >> 3 & 7), 32 + (size_t)(n & 255));
        __builtin_memset(from + (n & 15), n, (size_t)(n & 63));
        sum = sum * 31 + (unsigned char)to[n & 255] + __builtin_wasm_memory_size(0);
    }
    answer(sum);
}

static uint64_t one(uint64_t n) { return n * 3 + 1; }
static uint64_t two(uint64_t n) { return n >> 1; }
static uint64_t three(uint64_t n) { return ~n; }
static uint64_t (*const volatile table[])(uint64_t) = {one, two, three};

__attribute__((noinline)) static uint64_t deep(uint32_t depth, uint64_t a, uint64_t b, uint64_t c) {
    if (depth == 0) return a ^ b ^ c;
    uint64_t inner = deep(depth - 1, b + 1, table[depth % 3](c), a);
    switch (inner % 7) {
        case 0: return inner + a;
        case 1: return inner ^ b;
        case 2: return inner - c;
        case 3: return inner * 5;
        case 4: return inner + depth;
        default: return inner + 1;
    }
}

/* Deeper than the native stack of compiled code: callers come back one by one. */
__attribute__((noinline)) static uint32_t down(uint32_t depth, uint32_t a) {
    if (depth == 0) return a;
    return (down(depth - 1, a * 5) ^ depth) * 3;
}

TENURE_EXPORT(recursion) {
    uint64_t sum = 0;
    for (uint32_t n = 0; n < 300; n++) sum = sum * 31 + down(300, n);
    answer(sum);
}

TENURE_EXPORT(calls) {
    uint64_t sum = 0;
    for (int n = 0; n < ROUNDS / 8; n++) sum += deep(20, sum, (uint64_t)n, next());
    answer(sum);
}
