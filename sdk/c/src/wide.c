/* What clang calls for products of more than 64 bits, such as those of __builtin_mul_overflow. */
#include <stdint.h>

#ifdef __wasm__

typedef union {
    __int128 whole;
    struct {
        uint64_t low, high;
    };
} wide;

/* The whole product of two words, by their halves. */
static wide product(uint64_t one, uint64_t other) {
    uint64_t one_low = (uint32_t)one, one_high = one >> 32;
    uint64_t other_low = (uint32_t)other, other_high = other >> 32;
    uint64_t low = one_low * other_low;
    uint64_t middle = one_high * other_low + (low >> 32);
    uint64_t carried = one_low * other_high + (uint32_t)middle;
    wide result;
    result.low = carried << 32 | (uint32_t)low;
    result.high = one_high * other_high + (middle >> 32) + (carried >> 32);
    return result;
}

__int128 __multi3(__int128 one, __int128 other) {
    wide a = {one}, b = {other};
    wide result = product(a.low, b.low);
    result.high += a.high * b.low + a.low * b.high;
    return result.whole;
}

#endif
