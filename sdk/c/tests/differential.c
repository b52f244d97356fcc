/* Compares the library with the host's on random formats, numbers and strings. Runs on the host, beside
 * format.c and string.c that were compiled with renamed.h; fails at the first difference and says which. */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern int sdk_errno;
int sdk_snprintf(char *into, size_t capacity, const char *format, ...);
long sdk_strtol(const char *text, char **end, int base);
unsigned long sdk_strtoul(const char *text, char **end, int base);
long long sdk_strtoll(const char *text, char **end, int base);
unsigned long long sdk_strtoull(const char *text, char **end, int base);
int sdk_strcmp(const char *one, const char *two);
int sdk_strncmp(const char *one, const char *two, size_t length_max);
int sdk_memcmp(const void *one, const void *two, size_t length);
void *sdk_memchr(const void *bytes, int byte, size_t length);
void *sdk_memmove(void *into, const void *from, size_t length);
size_t sdk_strnlen(const char *text, size_t length_max);
char *sdk_strncpy(char *into, const char *from, size_t length);
char *sdk_strncat(char *into, const char *from, size_t length_max);
char *sdk_strchr(const char *text, int character);
char *sdk_strrchr(const char *text, int character);
char *sdk_strstr(const char *text, const char *part);
size_t sdk_strspn(const char *text, const char *characters);
size_t sdk_strcspn(const char *text, const char *characters);
char *sdk_strpbrk(const char *text, const char *characters);
char *sdk_strtok_r(char *text, const char *separators, char **rest);

#define ROUNDS 100000
#define TEXT_BYTES 4096

static uint64_t seed = 2026;

static uint32_t chance(uint32_t below) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % below;
}

static uint64_t random_bits(void) {
    uint64_t bits = 0;
    for (int part = 0; part < 4; part++) {
        bits = bits << 16 | chance(1 << 16);
    }
    return bits;
}

/* Small and great numbers are as likely as those between. */
static uint64_t random_number(void) {
    static const uint64_t ODD[] = {0, 1, 7, 8, 9, 10, 127, 128, 255, 32767, 32768, 65535,
                                   INT32_MAX, UINT64_C(1) << 31, UINT32_MAX, INT64_MAX,
                                   UINT64_C(1) << 63, UINT64_MAX};
    return chance(3) == 0 ? ODD[chance(sizeof ODD / sizeof *ODD)] : random_bits() >> chance(64);
}

static double random_double(void) {
    double number;
    uint64_t bits = random_bits();
    switch (chance(7)) {
    case 0: return (double)(int64_t)bits / 16;
    case 5: return chance(2) == 0 ? 0.0 : -0.0;
    case 1: return (double)(int)chance(4000) / 8 - 100;
    case 2: return (double)(int)chance(2000000) / 1000;
    case 3: return -((double)chance(100) + 0.5);
    case 4: return (double)chance(1000) + 0.9999999999;
    default: memcpy(&number, &bits, sizeof number); return number;
    }
}

static void different(const char *what, const char *detail, const char *ours, const char *theirs) {
    printf("%s %s\n  here: %s\n  host: %s\n", what, detail, ours, theirs);
    exit(1);
}

struct format {
    char text[64];
    /* How many of width and precision are arguments. */
    int stars;
    int values[2];
};

static void add(struct format *format, const char *text) {
    strcat(format->text, text);
}

static void add_count(struct format *format, int most) {
    if (chance(3) == 0) {
        add(format, "*");
        format->values[format->stars++] = (int)chance(2 * (uint32_t)most) - most / 2;
        return;
    }
    char digits[16];
    snprintf(digits, sizeof digits, "%u", chance((uint32_t)most));
    add(format, digits);
}

/* A format that the C standard defines for that letter. */
static struct format random_format(char letter, const char *length) {
    struct format format = {"<%", 0, {0}};
    bool is_double = strchr("aAeEfFgG", letter) != NULL;
    bool is_signed = is_double || strchr("di", letter) != NULL;
    bool is_number = strchr("cs", letter) == NULL;
    bool has_base = is_double || strchr("oxX", letter) != NULL;
    for (int count = (int)chance(4); count > 0; count--) {
        char flag[2] = {"-0+ #"[chance(5)], 0};
        bool is_defined = flag[0] == '-' || (flag[0] == '0' && is_number) ||
                          (flag[0] == '#' ? has_base : flag[0] != '0' && is_signed);
        add(&format, is_defined ? flag : "");
    }
    if (chance(2) == 0) {
        /* A width doesn't begin with a zero, which is a flag. */
        char first[2] = {(char)('1' + chance(9)), 0};
        add(&format, chance(2) == 0 ? first : "");
        if (format.text[strlen(format.text) - 1] == first[0]) {
            add(&format, chance(3) == 0 ? "0" : "");
        } else {
            add(&format, "*");
            format.values[format.stars++] = (int)chance(60) - 30;
        }
    }
    if (letter != 'c' && chance(2) == 0) {
        add(&format, ".");
        if (chance(5) > 0) {
            add_count(&format, !is_double ? 30 : chance(20) == 0 ? 1200 : 25);
        }
    }
    char end[] = {letter, '>', 0};
    add(&format, length);
    add(&format, end);
    return format;
}

#define BOTH(VALUE)                                                                               \
    (format.stars == 0   ? (ours = sdk_snprintf(here, capacity, format.text, VALUE),              \
                          theirs = snprintf(host, capacity, format.text, VALUE))                  \
     : format.stars == 1 ? (ours = sdk_snprintf(here, capacity, format.text, *format.values,      \
                                                VALUE),                                           \
                            theirs = snprintf(host, capacity, format.text, *format.values,        \
                                              VALUE))                                             \
                         : (ours = sdk_snprintf(here, capacity, format.text, *format.values,      \
                                                format.values[1], VALUE),                         \
                            theirs = snprintf(host, capacity, format.text, *format.values,        \
                                              format.values[1], VALUE)))

static void formats(void) {
    static char here[TEXT_BYTES], host[TEXT_BYTES];
    static const char *const LENGTHS[] = {"", "", "hh", "h", "l", "ll", "j", "z", "t"};
    static const char *const TEXTS[] = {"", "a", "tenure", "a text that is rather long, %d"};
    for (int round = 0; round < ROUNDS; round++) {
        char letter = "diuoxXcsaAeEfFgGfeg"[chance(19)];
        bool is_double = strchr("aAeEfFgG", letter) != NULL;
        bool is_whole = !is_double && strchr("cs", letter) == NULL;
        const char *length = is_whole ? LENGTHS[chance(9)] : "";
        struct format format = random_format(letter, length);
        size_t capacity = chance(4) == 0 ? chance(20) : sizeof here;
        int ours, theirs;
        memset(here, '#', sizeof here);
        memset(host, '#', sizeof host);
        uint64_t number = random_number();
        double value = random_double();
        const char *text = TEXTS[chance(4)];
        int character = '!' + (int)chance(90);
        bool is_signed = letter == 'd' || letter == 'i';
        switch (is_double ? 'f' : letter) {
        case 'f': BOTH(value); break;
        case 's': BOTH(text); break;
        case 'c': BOTH(character); break;
        default:
            if (strcmp(length, "ll") == 0 || *length == 'j') {
                BOTH((long long)number);
            } else if (*length == 'l' || *length == 'z' || *length == 't') {
                /* A machine's have 32 bits. */
                long whole = is_signed ? (long)(int32_t)number : (long)(uint32_t)number;
                BOTH(whole);
            } else {
                BOTH((int)number);
            }
        }
        if (ours != theirs || memcmp(here, host, sizeof here) != 0) {
            here[200] = host[200] = 0;
            printf("returned %d and %d\n", ours, theirs);
            different("snprintf", format.text, here, host);
        }
    }
}

static void random_text(char *text, const char *characters, uint32_t most) {
    uint32_t length = chance(most);
    for (uint32_t at = 0; at < length; at++) {
        text[at] = characters[chance((uint32_t)strlen(characters))];
    }
    text[length] = 0;
}

#define READ(FUNCTION, TYPE)                                                                      \
    do {                                                                                          \
        errno = sdk_errno = 0;                                                                    \
        TYPE ours = sdk_##FUNCTION(text, &here, base), theirs = FUNCTION(text, &host, base);      \
        /* The host says EINVAL where there is no number, too. */                                 \
        int reason = errno == EINVAL && base != 1 && base != 37 ? 0 : errno;                      \
        if (ours != theirs || (here != host && base != 1 && base != 37) || sdk_errno != reason) { \
            different(#FUNCTION, text, here, host);                                               \
        }                                                                                         \
    } while (0)

static void numbers(void) {
    char text[64], tail[48];
    for (int round = 0; round < ROUNDS; round++) {
        static const char *const HEADS[] = {"", "", " ", "\t\n ", "-", "+", " -", "0x", "-0X", "0", "- "};
        strcpy(text, HEADS[chance(sizeof HEADS / sizeof *HEADS)]);
        /* At the limits, and just beyond. */
        static const char *const LIMITS[] = {"9223372036854775807", "9223372036854775808",
                                             "9223372036854775809", "18446744073709551615",
                                             "18446744073709551616"};
        random_text(tail, chance(2) ? "0123456789" : "0129afzxAFZX-+ _@[`{\xc1", 30);
        strcat(text, chance(4) == 0 ? LIMITS[chance(sizeof LIMITS / sizeof *LIMITS)] : tail);
        int base = chance(3) == 0 ? 10 : chance(3) == 0 ? 0 : 1 + (int)chance(37);
        char *here, *host;
        READ(strtol, long);
        READ(strtoul, unsigned long);
        READ(strtoll, long long);
        READ(strtoull, unsigned long long);
    }
}

static int sign(int number) {
    return (number > 0) - (number < 0);
}

static void strings(void) {
    char one[64], two[64];
    for (int round = 0; round < ROUNDS; round++) {
        random_text(one, "ab\xff", 12);
        random_text(two, "ab\xff", 5);
        size_t length = chance(14);
        int character = "abc\xff"[chance(5)];
        bool is_same =
            sign(sdk_strcmp(one, two)) == sign(strcmp(one, two)) &&
            sign(sdk_strncmp(one, two, length)) == sign(strncmp(one, two, length)) &&
            sign(sdk_memcmp(one, two, strlen(two) + 1)) == sign(memcmp(one, two, strlen(two) + 1)) &&
            sdk_strnlen(one, length) == strnlen(one, length) &&
            sdk_strchr(one, character) == strchr(one, character) &&
            sdk_strrchr(one, character) == strrchr(one, character) &&
            sdk_strstr(one, two) == strstr(one, two) &&
            sdk_strspn(one, two) == strspn(one, two) &&
            sdk_strcspn(one, two) == strcspn(one, two) &&
            sdk_strpbrk(one, two) == strpbrk(one, two) &&
            sdk_memchr(one, character, strlen(one)) == memchr(one, character, strlen(one));
        char here[64] = "begin", host[64] = "begin";
        sdk_strncat(here, one, length);
        strncat(host, one, length);
        sdk_strncpy(here + 32, one, length);
        strncpy(host + 32, one, length);
        size_t from = chance(30), to = chance(30), bytes = chance(30);
        sdk_memmove(here + to, here + from, bytes);
        memmove(host + to, host + from, bytes);
        char ours[64], theirs[64], *rest, *hosts_rest;
        strcpy(ours, one);
        strcpy(theirs, one);
        char *part = sdk_strtok_r(ours, two, &rest);
        char *hosts_part = strtok_r(theirs, two, &hosts_rest);
        while (part != NULL && hosts_part != NULL && part - ours == hosts_part - theirs) {
            part = sdk_strtok_r(NULL, two, &rest);
            hosts_part = strtok_r(NULL, two, &hosts_rest);
        }
        is_same &= part == NULL && hosts_part == NULL && memcmp(ours, theirs, strlen(one) + 1) == 0;
        if (!is_same || memcmp(here, host, sizeof here) != 0) {
            different("strings", two, one, one);
        }
    }
}

int main(void) {
    formats();
    numbers();
    strings();
    puts("the same");
    return 0;
}
