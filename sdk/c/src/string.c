/* Strings and numbers in text: the parts of the C library that are small.
 *
 * Built with -fno-builtin, or the compiler would turn these loops into calls of themselves. */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef __wasm_bulk_memory__
/* One instruction each. */
void *memcpy(void *__restrict into, const void *__restrict from, size_t length) {
    return __builtin_memcpy(into, from, length);
}

void *memmove(void *into, const void *from, size_t length) {
    return __builtin_memmove(into, from, length);
}

void *memset(void *into, int byte, size_t length) {
    return __builtin_memset(into, byte, length);
}
#elif defined(__wasm__)
#error "build with -mbulk-memory"
#else
void *memcpy(void *__restrict into, const void *__restrict from, size_t length) {
    return memmove(into, from, length);
}

void *memmove(void *into, const void *from, size_t length) {
    unsigned char *to = into;
    const unsigned char *source = from;
    if (to <= source) {
        for (size_t at = 0; at < length; at++) {
            to[at] = source[at];
        }
    } else {
        while (length > 0) {
            length--;
            to[length] = source[length];
        }
    }
    return into;
}

void *memset(void *into, int byte, size_t length) {
    unsigned char *to = into;
    for (size_t at = 0; at < length; at++) {
        to[at] = (unsigned char)byte;
    }
    return into;
}
#endif

int memcmp(const void *one, const void *two, size_t length) {
    const unsigned char *first = one, *second = two;
    for (size_t at = 0; at < length; at++) {
        if (first[at] != second[at]) {
            return first[at] - second[at];
        }
    }
    return 0;
}

void *memchr(const void *bytes, int byte, size_t length) {
    const unsigned char *at = bytes;
    for (; length > 0; at++, length--) {
        if (*at == (unsigned char)byte) {
            return (void *)at;
        }
    }
    return NULL;
}

size_t strlen(const char *text) {
    return strnlen(text, SIZE_MAX);
}

size_t strnlen(const char *text, size_t length_max) {
    size_t length = 0;
    while (length < length_max && text[length] != 0) {
        length++;
    }
    return length;
}

int strcmp(const char *one, const char *two) {
    return strncmp(one, two, SIZE_MAX);
}

int strncmp(const char *one, const char *two, size_t length_max) {
    for (size_t at = 0; at < length_max; at++) {
        if (one[at] != two[at] || one[at] == 0) {
            return (unsigned char)one[at] - (unsigned char)two[at];
        }
    }
    return 0;
}

char *strcpy(char *__restrict into, const char *__restrict from) {
    return memcpy(into, from, strlen(from) + 1);
}

char *strncpy(char *__restrict into, const char *__restrict from, size_t length) {
    size_t copied = strnlen(from, length);
    memset(into + copied, 0, length - copied);
    return memcpy(into, from, copied);
}

char *strcat(char *__restrict into, const char *__restrict from) {
    strcpy(into + strlen(into), from);
    return into;
}

char *strncat(char *__restrict into, const char *__restrict from, size_t length_max) {
    size_t added = strnlen(from, length_max);
    char *end = into + strlen(into);
    memcpy(end, from, added);
    end[added] = 0;
    return into;
}

char *strchr(const char *text, int character) {
    return memchr(text, character, strlen(text) + 1);
}

char *strrchr(const char *text, int character) {
    for (size_t at = strlen(text) + 1; at > 0; at--) {
        if (text[at - 1] == (char)character) {
            return (char *)text + at - 1;
        }
    }
    return NULL;
}

char *strstr(const char *text, const char *part) {
    size_t length = strlen(part);
    for (; strncmp(text, part, length) != 0; text++) {
        if (*text == 0) {
            return NULL;
        }
    }
    return (char *)text;
}

size_t strspn(const char *text, const char *characters) {
    size_t length = 0;
    while (text[length] != 0 && strchr(characters, text[length]) != NULL) {
        length++;
    }
    return length;
}

size_t strcspn(const char *text, const char *characters) {
    size_t length = 0;
    while (strchr(characters, text[length]) == NULL) {
        length++;
    }
    return length;
}

char *strpbrk(const char *text, const char *characters) {
    text += strcspn(text, characters);
    return *text != 0 ? (char *)text : NULL;
}

char *strtok_r(char *__restrict text, const char *__restrict separators, char **__restrict rest) {
    text = text != NULL ? text : *rest;
    text += strspn(text, separators);
    char *end = text + strcspn(text, separators);
    *rest = *end != 0 ? end + 1 : end;
    if (end == text) {
        return NULL;
    }
    *end = 0;
    return text;
}

char *strtok(char *__restrict text, const char *__restrict separators) {
    static char *rest = "";
    return strtok_r(text, separators, &rest);
}

char *strdup(const char *text) {
    size_t bytes = strlen(text) + 1;
    char *copy = malloc(bytes);
    return copy ? memcpy(copy, text, bytes) : NULL;
}

int errno;

int abs(int number) {
    return number < 0 ? (int)-(unsigned)number : number;
}

long labs(long number) {
    return number < 0 ? (long)-(unsigned long)number : number;
}

long long llabs(long long number) {
    return number < 0 ? (long long)-(unsigned long long)number : number;
}

struct number {
    uint64_t value;
    /* Whether it is more than the limit, which is its value then. */
    bool beyond;
};

/* Reads digits. Returns where they end, or NULL if there is none. */
static const char *read_digits(const char *text, unsigned base, uint64_t limit,
                               struct number *number) {
    const char *start = text;
    uint64_t most = limit / base;
    unsigned last = (unsigned)(limit % base);
    *number = (struct number){0};
    for (;; text++) {
        unsigned digit = (unsigned char)*text;
        unsigned lower = digit | 32;
        digit = digit - '0' < 10 ? digit - '0' : lower - 'a' < 26 ? lower - 'a' + 10 : 99;
        if (digit >= base) {
            return text == start ? NULL : text;
        }
        number->beyond |= number->value > most || (number->value == most && digit > last);
        number->value = number->beyond ? limit : number->value * base + digit;
    }
}

static const char *skip_space(const char *text) {
    while (*text == ' ' || (*text >= '\t' && *text <= '\r')) {
        text++;
    }
    return text;
}

/* What strtol and its kin have in common: sign, base, digits. The limit is the type's largest number; a signed type
 * has one more below zero. */
static uint64_t read_number(const char *text, char **end, int base, uint64_t limit,
                            bool is_signed) {
    const char *at = skip_space(text);
    bool negative = *at == '-';
    at += *at == '-' || *at == '+';
    limit += is_signed && negative;
    struct number number = {0};
    const char *stop = NULL;
    if (base < 0 || base == 1 || base > 36) {
        errno = EINVAL;
        at = "";
        base = 10;
    }
    if (at[0] == '0' && (at[1] | 32) == 'x' && (base == 0 || base == 16)) {
        stop = read_digits(at + 2, 16, limit, &number);
    }
    if (stop == NULL) {
        unsigned of_text = base != 0 ? (unsigned)base : *at == '0' ? 8 : 10;
        stop = read_digits(at, of_text, limit, &number);
    }
    if (end != NULL) {
        *end = (char *)(stop ? stop : text);
    }
    if (number.beyond) {
        errno = ERANGE;
    }
    /* A number beyond ULONG_MAX has no sign (C11 7.22.1.4). */
    return negative && !(number.beyond && !is_signed) ? 0 - number.value : number.value;
}

long strtol(const char *__restrict text, char **__restrict end, int base) {
    return (long)read_number(text, end, base, LONG_MAX, true);
}

unsigned long strtoul(const char *__restrict text, char **__restrict end, int base) {
    return (unsigned long)read_number(text, end, base, ULONG_MAX, false);
}

long long strtoll(const char *__restrict text, char **__restrict end, int base) {
    return (long long)read_number(text, end, base, LLONG_MAX, true);
}

unsigned long long strtoull(const char *__restrict text, char **__restrict end, int base) {
    return read_number(text, end, base, ULLONG_MAX, false);
}

int atoi(const char *text) {
    return (int)strtol(text, NULL, 10);
}

long atol(const char *text) {
    return strtol(text, NULL, 10);
}

long long atoll(const char *text) {
    return strtoll(text, NULL, 10);
}
