/* A machine that checks the C library it is built with: a function that finds a mistake fails. */
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <tenure.h>

static uint32_t seed = 2026;

static uint32_t chance(uint32_t below) {
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % below;
}

static void fill(uint8_t *memory, size_t size, uint8_t tag) {
    memset(memory, tag, size);
}

static void check_filled(const uint8_t *memory, size_t size, uint8_t tag) {
    for (size_t at = 0; at < size; at++) {
        assert(memory[at] == tag);
    }
}

/* Blocks never overlap, keep their content when they grow, and come back when they are freed. */
TENURE_EXPORT(heap) {
    enum { COUNT = 24 };
    static uint8_t *blocks[COUNT];
    static size_t sizes[COUNT];
    for (int step = 0; step < 4000; step++) {
        uint32_t which = chance(COUNT);
        uint8_t tag = (uint8_t)which;
        if (blocks[which] == NULL) {
            sizes[which] = chance(200);
            blocks[which] = malloc(sizes[which]);
            assert(blocks[which] != NULL && (uintptr_t)blocks[which] % 8 == 0);
        } else if (chance(3) == 0) {
            size_t size = 1 + chance(300);
            size_t kept = size < sizes[which] ? size : sizes[which];
            blocks[which] = realloc(blocks[which], size);
            assert(blocks[which] != NULL);
            check_filled(blocks[which], kept, tag);
            sizes[which] = size;
        } else {
            check_filled(blocks[which], sizes[which], tag);
            free(blocks[which]);
            blocks[which] = NULL;
            continue;
        }
        fill(blocks[which], sizes[which], tag);
    }
    for (int which = 0; which < COUNT; which++) {
        free(blocks[which]);
        blocks[which] = NULL;
    }
    /* All of it is one block again. */
    extern unsigned char __heap_base;
    size_t pages = __builtin_wasm_memory_size(0);
    size_t memory_end = pages < (uintptr_t)&__heap_base ? pages * 65536 : pages;
    void *all = malloc(memory_end - (uintptr_t)&__heap_base - 24);
    assert(all != NULL && __builtin_wasm_memory_size(0) == pages);
    free(all);
}

/* What can't be had is refused, and what was had before is still good. */
TENURE_EXPORT(exhaustion) {
    uint8_t *kept = malloc(64);
    fill(kept, 64, 7);
    errno = 0;
    assert(malloc(0x7fffffff) == NULL && errno == ENOMEM);
    assert(malloc(SIZE_MAX) == NULL);
    assert(calloc(SIZE_MAX / 2, 4) == NULL);
    assert(realloc(kept, SIZE_MAX) == NULL);
    /* Size and alignment together are more than all addresses, or just not. */
    for (size_t alignment = 1; alignment != 0; alignment *= 2) {
        for (size_t less = 0; less < 80; less++) {
            assert(aligned_alloc(alignment, SIZE_MAX - less) == NULL);
            assert(aligned_alloc(alignment, SIZE_MAX - alignment - less) == NULL);
        }
        assert(aligned_alloc(alignment, 0x80000000) == NULL);
        assert(aligned_alloc(alignment, 0x7fffffff) == NULL);
    }
    errno = 0;
    assert(aligned_alloc(3, 8) == NULL && errno == EINVAL);
    assert(aligned_alloc(0, 8) == NULL && aligned_alloc(3, 8) == NULL && aligned_alloc(48, 8) == NULL);
    check_filled(kept, 64, 7);
    free(kept);
    free(NULL);
    uint8_t *zeroed = calloc(5, 7);
    check_filled(zeroed, 35, 0);
    free(zeroed);
}

TENURE_EXPORT(strings) {
    char text[16] = "tenure";
    assert(strlen(text) == 6 && strnlen(text, 3) == 3);
    assert(strcmp("a", "b") < 0 && strcmp("b", "a") > 0 && strcmp("", "") == 0);
    assert(strcmp("a\xff", "a\x01") > 0);
    assert(strncmp("abc", "abd", 2) == 0 && strncmp("abc", "ab", 3) > 0);
    assert(memcmp("\xff", "\x01", 1) > 0 && memcmp("", "", 0) == 0);
    assert(strchr(text, 'n') == text + 2 && strchr(text, 0) == text + 6);
    assert(strchr(text, 'x') == NULL && strrchr(text, 'e') == text + 5);
    assert(strstr(text, "nur") == text + 2 && strstr(text, "") == text);
    assert(strstr(text, "rex") == NULL && memchr(text, 'e', 1) == NULL);
    assert(strcmp(strcat(text, "-sdk"), "tenure-sdk") == 0);
    assert(strcmp(strncat(text, "xyz", 1), "tenure-sdkx") == 0);
    memmove(text + 2, text, 6);
    assert(strcmp(text, "tetenuredkx") == 0);
    char padded[4];
    strncpy(padded, "a", 4);
    assert(memcmp(padded, "a\0\0\0", 4) == 0);
    assert(strspn("aab", "a") == 2 && strcspn("aab", "b") == 2 && strcspn("aa", "") == 2);
    assert(strpbrk(text, "dn") == text + 4 && strpbrk(text, "q") == NULL);
    char list[] = ",a,,b";
    assert(strcmp(strtok(list, ","), "a") == 0 && strcmp(strtok(NULL, ","), "b") == 0);
    assert(strtok(NULL, ",") == NULL);
    char *copy = strdup("copy");
    assert(strcmp(copy, "copy") == 0);
    free(copy);
}

TENURE_EXPORT(numbers) {
    char *end;
    assert(atoi("  -42x") == -42 && atoi("x") == 0 && atoi("") == 0);
    assert(strtol("0x1F", &end, 0) == 31 && *end == 0);
    assert(strtol("0x", &end, 16) == 0 && *end == 'x');
    assert(strtol("017", NULL, 0) == 15 && strtol("z", NULL, 36) == 35);
    errno = 0;
    assert(strtol("2147483647", NULL, 10) == 2147483647 && errno == 0);
    assert(strtol("2147483648", NULL, 10) == 2147483647 && errno == ERANGE);
    errno = 0;
    assert(strtol("1", NULL, 37) == 0 && errno == EINVAL);
    errno = 0;
    assert(strtoll("-9223372036854775808", NULL, 10) == LLONG_MIN && errno == 0);
    assert(strtoll("-9223372036854775809", NULL, 10) == LLONG_MIN && errno == ERANGE);
    assert(strtoull("0xffffffffffffffff", NULL, 0) == ULLONG_MAX && atoll("-3") == -3);
    assert(strtol("-2147483649", NULL, 10) == -2147483647 - 1);
    assert(strtoul("4294967295", NULL, 10) == 4294967295u);
    assert(strtoul("4294967296", NULL, 10) == 4294967295u);
    assert(strtoul("-4294967295", NULL, 10) == 1 && strtoul("-4294967296", NULL, 10) == 4294967295u);
    const char *nothing = "+-1";
    assert(strtol(nothing, &end, 10) == 0 && end == nothing);
    assert(abs(-3) == 3 && labs(-3) == 3 && llabs(-3) == 3);
}

static void expect(const char *expected, const char *format, ...) {
    char text[64];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (strcmp(text, expected) != 0 || length != (int)strlen(expected)) {
        tenure_error("%s gave '%s', not '%s'", format, text, expected);
        tenure_abort("snprintf");
    }
}

/* The expected texts are those of glibc. */
TENURE_EXPORT(format) {
    expect("-5|  5|5  |005|+5| 5", "%d|%3d|%-3d|%03d|%+d|% d", -5, 5, 5, 5, 5, 5);
    expect("-2147483648", "%d", -2147483647 - 1);
    expect("-9223372036854775808", "%lld", -9223372036854775807ll - 1);
    expect("18446744073709551615", "%llu", 18446744073709551615ull);
    expect("ff|FF|0xff|  ff|00ff", "%x|%X|%#x|%4x|%.4x", 255, 255, 255, 255, 255);
    expect("0|17|017", "%x|%o|%#o", 0, 15, 15);
    expect("0|0001|0|00000010", "%#o|%#.4o|%#.0o|%#08o", 0, 1, 0, 8);
    expect("1|-1|255", "%hhd|%hd|%hhu", 257, 65535, 255);
    expect("|0|  7", "%.0d|%d|%3.1d", 0, 0, 7);
    expect("ab|   ab|ab   |a|(null)", "%s|%5s|%-5s|%.1s|%s", "ab", "ab", "ab", "ab", (char *)NULL);
    expect("  x|x  %", "%*c|%-3c%%", 3, 'x', 'x');
    expect("3.141593|3.14|3|-0.50|  1.5|001.5", "%f|%.2f|%.0f|%.2f|%5.1f|%05.1f", 3.14159265,
           3.14159265, 3.14159265, -0.5, 1.5, 1.5);
    expect("1.00|0.10|inf|-inf|nan", "%.2f|%.2f|%f|%f|%f", 0.999, 0.1, __builtin_inf(),
           -__builtin_inf(), __builtin_nan(""));
    expect("1.500000e+00|1E+01|1.5|1e-05|100000|1e+06|1.50000|0", "%e|%.0E|%g|%g|%g|%g|%#g|%g", 1.5, 9.5,
           1.5, 0.00001, 1e5, 1e6, 1.5, 0.0);
    expect("0x1.8p+0|0X1P+4|INF|NAN", "%a|%.0A|%F|%G", 1.5, 16.0, __builtin_inf(),
           __builtin_nan(""));
    int length;
    expect("abc", "a%nbc", &length);
    assert(length == 1);
    errno = 0;
    assert(snprintf(NULL, 0, "%2147483647d", 1) == INT_MAX && errno == 0);
    assert(snprintf(NULL, 0, " %2147483647d", 1) == -1 && errno == EOVERFLOW);
    errno = 0;
    assert(snprintf(NULL, 0, "%2147483648d", 1) == -1 && errno == EOVERFLOW);
    char small[4];
    assert(snprintf(small, sizeof small, "%s", "truncated") == 9 && strcmp(small, "tru") == 0);
    assert(snprintf(NULL, 0, "%d", 123) == 3);
}

/* The text form of a key is the one that the rest of the system uses. */
TENURE_EXPORT(key_target) {
    uint8_t key[32];
    for (int at = 0; at < 32; at++) {
        key[at] = (uint8_t)(at * 7 + 1);
    }
    char target[TENURE_KEY_TARGET_BYTES];
    tenure_key_target(key, target);
    tenure_reply_text(target);
}

TENURE_EXPORT(errors) {
    assert(strcmp(tenure_error_text(TENURE_EXECUTION), "execution error") == 0);
    assert(strcmp(tenure_error_text(0), "no error") == 0);
}
