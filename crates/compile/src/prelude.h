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
