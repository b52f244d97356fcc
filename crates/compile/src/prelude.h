/* What compiled code begins with: one stay behind the wall, from the words that cross it to the next stop. */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int i32;
typedef long long i64;
typedef __UINTPTR_TYPE__ uptr;

#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#define JOIN(low, high) ((u64)(low) | (u64)(high) << 32)
/* Fuel that no run has: the function has stopped, and says so to its caller. */
#define STOPPED ((i32)0x80000000)
#define RESULT(fuel, value) ((u64)(u32)(fuel) | (u64)(value) << 32)

struct context {
    u8 *memory;
    u8 *globals;
    u8 *stack_end;
    const u32 *table;
    u8 *native_end;
    /* Addresses below `near` are NEAR_BYTES from the memory's end at least. */
    u32 memory_bytes, near, table_count, function_count;
    /* Where and why it stopped. */
    u32 pc, accumulator, flow;
    u8 *frame;
    i32 fuel;
    /* Bytes of the return instruction that left an exported function. */
    i32 returned;
    /* The place in a loop that execution is on the way to; else 0. */
    u32 again;
};

struct point {
    u32 pc;
    u16 function, point;
};

/* Linear memory may be read as anything, and anywhere: the compiler knows whether the processor can. */
typedef u16 __attribute__((may_alias, aligned(1))) m16;
typedef u32 __attribute__((may_alias, aligned(1))) m32;
typedef u32 __attribute__((may_alias)) slot;

#define LOAD8(p) (*(const u8 *)(p))
#define LOAD16(p) (*(const m16 *)(p))
#define LOAD32(p) (*(const m32 *)(p))
#define LOAD64(p) JOIN(LOAD32(p), LOAD32((p) + 4))
#define STORE8(p, v) (*(u8 *)(p) = (u8)(v))
#define STORE16(p, v) (*(m16 *)(p) = (u16)(v))
#define STORE32(p, v) (*(m32 *)(p) = (u32)(v))
#define STORE64(p, v) (STORE32(p, v), STORE32((p) + 4, (v) >> 32))
#define SLOT(at) (*(slot *)(frame + (at)))

__attribute__((noinline, cold, unused)) static u64 stop(
    struct context *c, u8 *frame, i32 fuel, u32 pc, u32 flow, u32 accumulator) {
    c->pc = pc;
    c->frame = frame;
    c->fuel = fuel;
    c->flow = flow;
    c->accumulator = accumulator;
    return RESULT(STOPPED, 0);
}

__attribute__((unused)) static inline u32 rotl32(u32 a, u32 b) { return a << (b & 31) | a >> (-b & 31); }
__attribute__((unused)) static inline u32 rotr32(u32 a, u32 b) { return a >> (b & 31) | a << (-b & 31); }
__attribute__((unused)) static inline u64 rotl64(u64 a, u64 b) { return a << (b & 63) | a >> (-b & 63); }
__attribute__((unused)) static inline u64 rotr64(u64 a, u64 b) { return a >> (b & 63) | a << (-b & 63); }
__attribute__((unused)) static inline float f32of(u32 bits) {
    union { u32 bits; float value; } u = {bits};
    return u.value;
}
__attribute__((unused)) static inline double f64of(u64 bits) {
    union { u64 bits; double value; } u = {bits};
    return u.value;
}
/* There is one NaN: positive, quiet, empty. */
__attribute__((unused)) static inline u32 bits32(float value) {
    union { float value; u32 bits; } u = {value};
    return value != value ? 0x7FC00000u : u.bits;
}
__attribute__((unused)) static inline u64 bits64(double value) {
    union { double value; u64 bits; } u = {value};
    return value != value ? 0x7FF8000000000000ull : u.bits;
}
__attribute__((unused)) static inline u32 copysign32(u32 a, u32 b) { return (a & ~0x80000000u) | (b & 0x80000000u); }
/* Of two zeros the negative one is the least. */
__attribute__((unused)) static inline u32 min32(u32 a, u32 b) {
    if (f32of(a) != f32of(a) || f32of(b) != f32of(b)) return 0x7FC00000u;
    return f32of(a) == f32of(b) ? a | b : f32of(a) < f32of(b) ? a : b;
}
__attribute__((unused)) static inline u32 max32(u32 a, u32 b) {
    if (f32of(a) != f32of(a) || f32of(b) != f32of(b)) return 0x7FC00000u;
    return f32of(a) == f32of(b) ? a & b : f32of(a) > f32of(b) ? a : b;
}
__attribute__((unused)) static inline u64 copysign64(u64 a, u64 b) {
    return (a & ~0x8000000000000000ull) | (b & 0x8000000000000000ull);
}
/* Of two zeros the negative one is the least. */
__attribute__((unused)) static inline u64 min64(u64 a, u64 b) {
    if (f64of(a) != f64of(a) || f64of(b) != f64of(b)) return 0x7FF8000000000000ull;
    return f64of(a) == f64of(b) ? a | b : f64of(a) < f64of(b) ? a : b;
}
__attribute__((unused)) static inline u64 max64(u64 a, u64 b) {
    if (f64of(a) != f64of(a) || f64of(b) != f64of(b)) return 0x7FF8000000000000ull;
    return f64of(a) == f64of(b) ? a & b : f64of(a) > f64of(b) ? a : b;
}

/* Units of fuel for bytes of which each takes a part of one. */
__attribute__((unused)) static inline u32 units_of(u32 count, u32 shift) {
    return (count >> shift) + ((count & ((1u << shift) - 1)) != 0);
}
/* Moves bytes that may overlap, from the end where the target lies behind the source. All of a row are read before any
   is written. */
#define MOVE_ROW()                                                                                                     \
    u32 a = LOAD32(from), b = LOAD32(from + 4), d = LOAD32(from + 8), e = LOAD32(from + 12);                           \
    slot *row = (slot *)to;                                                                                            \
    row[0] = a, row[1] = b, row[2] = d, row[3] = e
__attribute__((noinline, unused)) static void move_bytes(u8 *to, const u8 *from, u32 count) {
    if ((uptr)to - (uptr)from >= count) {
        for (; count && (uptr)to & 3; count--) *to++ = *from++;
        for (; count >= 16; count -= 16, to += 16, from += 16) { MOVE_ROW(); }
        for (; count >= 4; count -= 4, to += 4, from += 4) *(slot *)to = LOAD32(from);
        for (; count; count--) *to++ = *from++;
        return;
    }
    to += count, from += count;
    for (; count && (uptr)to & 3; count--) *--to = *--from;
    for (; count >= 16; count -= 16) { to -= 16, from -= 16; MOVE_ROW(); }
    for (; count >= 4; count -= 4) to -= 4, from -= 4, *(slot *)to = LOAD32(from);
    for (; count; count--) *--to = *--from;
}
__attribute__((noinline, unused)) static void fill_bytes(u8 *to, u32 value, u32 count) {
    u32 word = (value & 255) * 0x01010101u;
    for (; count && (uptr)to & 3; count--) *to++ = (u8)value;
    for (; count >= 16; count -= 16, to += 16) {
        slot *row = (slot *)to;
        row[0] = word, row[1] = word, row[2] = word, row[3] = word;
    }
    for (; count >= 4; count -= 4, to += 4) *(slot *)to = word;
    for (; count; count--) *to++ = (u8)value;
}

/* Roundings, on bits: MASK is what lies behind the point. Adding it rounds away from zero, half of it to the
   nearest; a carry goes into the exponent, which is right (IEEE 754-2019 5.9). What is less than one has no such
   mask. */
#define ROUNDINGS(BITS, SIGN, EXPONENT, FRACTION_BITS, BIAS, NAN_BITS, ONE, HALF)                                      \
    __attribute__((unused)) static inline u##BITS round##BITS(u##BITS a, u##BITS small, u##BITS add, u32 nearest) {    \
        i32 e = (i32)(a >> FRACTION_BITS & EXPONENT) - BIAS;                                                           \
        if (e >= FRACTION_BITS) return (a & ~SIGN) > (u##BITS)EXPONENT << FRACTION_BITS ? NAN_BITS : a;                \
        if (e < 0) return small;                                                                                       \
        u##BITS mask = ((u##BITS)1 << (FRACTION_BITS - e)) - 1;                                                        \
        u##BITS to_even = (mask >> 1) + (a >> (FRACTION_BITS - e) & 1);                                                \
        return (a + (nearest ? to_even : add & mask)) & ~mask;                                                         \
    }                                                                                                                  \
    __attribute__((noinline, unused)) static u##BITS trunc##BITS(u##BITS a) {                                          \
        return round##BITS(a, a & SIGN, 0, 0);                                                                         \
    }                                                                                                                  \
    __attribute__((noinline, unused)) static u##BITS floor##BITS(u##BITS a) {                                          \
        return a & SIGN ? round##BITS(a, a == SIGN ? a : SIGN | ONE, ~(u##BITS)0, 0) : trunc##BITS(a);                 \
    }                                                                                                                  \
    __attribute__((noinline, unused)) static u##BITS ceil##BITS(u##BITS a) {                                           \
        return a & SIGN ? trunc##BITS(a) : round##BITS(a, a ? ONE : 0, ~(u##BITS)0, 0);                                \
    }                                                                                                                  \
    __attribute__((noinline, unused)) static u##BITS nearest##BITS(u##BITS a) {                                        \
        return round##BITS(a, (a & SIGN) | ((a & ~SIGN) > HALF ? ONE : 0), 0, 1);                                      \
    }                                                                                                                  \
    /* A root, bit by bit: ROOT's square and REST are the number, one more bit each time. */                           \
    __attribute__((noinline, unused)) static u##BITS sqrt##BITS(u##BITS a) {                                           \
        if (!(a & ~SIGN)) return a;                                                                                    \
        if (a & SIGN || a >> FRACTION_BITS == EXPONENT) return a == (u##BITS)EXPONENT << FRACTION_BITS ? a : NAN_BITS; \
        i32 e = (i32)(a >> FRACTION_BITS);                                                                             \
        u##BITS rest = a & (((u##BITS)1 << FRACTION_BITS) - 1), root = 0, twice = 0;                                   \
        if (e) rest |= (u##BITS)1 << FRACTION_BITS;                                                                    \
        else for (e = 1; !(rest >> FRACTION_BITS); e--) rest <<= 1;                                                    \
        e -= BIAS;                                                                                                     \
        rest <<= 1 + (e & 1);                                                                                          \
        for (u##BITS bit = (u##BITS)2 << FRACTION_BITS; bit; bit >>= 1) {                                              \
            u##BITS next = twice + bit;                                                                                \
            if (next <= rest) {                                                                                        \
                twice = next + bit;                                                                                    \
                rest -= next;                                                                                          \
                root += bit;                                                                                           \
            }                                                                                                          \
            rest <<= 1;                                                                                                \
        }                                                                                                              \
        if (rest) root += root & 1;                                                                                    \
        return (root >> 1) + ((u##BITS)(BIAS - 1 + (e >> 1)) << FRACTION_BITS);                                        \
    }
ROUNDINGS(32, 0x80000000u, 0xFF, 23, 127, 0x7FC00000u, 0x3F800000u, 0x3F000000u)
ROUNDINGS(64, 0x8000000000000000ull, 0x7FF, 52, 1023, 0x7FF8000000000000ull, 0x3FF0000000000000ull,
          0x3FE0000000000000ull)
