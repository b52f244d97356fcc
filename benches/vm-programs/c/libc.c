/* The library of the programs and of wasm3, the same for each: compiled with them for each processor. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef HEAP_BYTES
#define HEAP_BYTES (2u << 20)
#endif

static _Alignas(16) unsigned char heap[HEAP_BYTES];
static size_t used;

void heap_reset(void) { used = 0; }

/* The length stands in front of each block. */
void *malloc(size_t length) {
    size_t block = (length + 31) & ~(size_t)15;
    if (length > HEAP_BYTES || block > HEAP_BYTES - used) return NULL;
    unsigned char *at = heap + used + 16;
    used += block;
    *(size_t *)(at - 16) = length;
    return at;
}

void *calloc(size_t count, size_t length) {
    void *at = malloc(count * length);
    return at ? memset(at, 0, count * length) : NULL;
}

void *realloc(void *old, size_t length) {
    void *at = malloc(length);
    if (!at || !old) return at;
    size_t had = *(size_t *)((unsigned char *)old - 16);
    return memcpy(at, old, had < length ? had : length);
}

void free(void *at) { (void)at; }

/* Words where both lie at their multiples, else bytes. */
void *memcpy(void *restrict to, const void *restrict from, size_t length) {
    unsigned char *t = to;
    const unsigned char *f = from;
    if ((((uintptr_t)t | (uintptr_t)f) & 3) == 0)
        for (; length >= 4; length -= 4, t += 4, f += 4) *(uint32_t *)t = *(const uint32_t *)f;
    while (length--) *t++ = *f++;
    return to;
}

void *memmove(void *to, const void *from, size_t length) {
    unsigned char *t = to;
    const unsigned char *f = from;
    if (t <= f || t >= f + length) return memcpy(to, from, length);
    while (length--) t[length] = f[length];
    return to;
}

void *memset(void *to, int byte, size_t length) {
    unsigned char *t = to;
    uint32_t word = (unsigned char)byte * 0x01010101u;
    if (((uintptr_t)t & 3) == 0)
        for (; length >= 4; length -= 4, t += 4) *(uint32_t *)t = word;
    while (length--) *t++ = (unsigned char)byte;
    return to;
}

int memcmp(const void *a, const void *b, size_t length) {
    const unsigned char *x = a, *y = b;
    for (; length; length--, x++, y++)
        if (*x != *y) return *x - *y;
    return 0;
}

void *memchr(const void *in, int byte, size_t length) {
    const unsigned char *at = in;
    for (; length; length--, at++)
        if (*at == (unsigned char)byte) return (void *)at;
    return NULL;
}

size_t strlen(const char *text) {
    size_t length = 0;
    while (text[length]) length++;
    return length;
}

int strcmp(const char *a, const char *b) {
    while (*a && *a == *b) a++, b++;
    return (unsigned char)*a - (unsigned char)*b;
}

int strncmp(const char *a, const char *b, size_t length) {
    for (; length && *a && *a == *b; length--) a++, b++;
    return length ? (unsigned char)*a - (unsigned char)*b : 0;
}

char *strchr(const char *text, int byte) {
    for (;; text++) {
        if (*text == (char)byte) return (char *)text;
        if (!*text) return NULL;
    }
}

char *strcpy(char *to, const char *from) {
    memcpy(to, from, strlen(from) + 1);
    return to;
}

char *strncpy(char *to, const char *from, size_t length) {
    size_t at = 0;
    for (; at < length && from[at]; at++) to[at] = from[at];
    for (; at < length; at++) to[at] = 0;
    return to;
}

char *strstr(const char *text, const char *part) {
    size_t length = strlen(part);
    for (; strncmp(text, part, length) != 0; text++)
        if (!*text) return NULL;
    return (char *)text;
}

void abort(void) { __builtin_trap(); }
void exit(int code) { (void)code; __builtin_trap(); }
int abs(int x) { return x < 0 ? -x : x; }
long labs(long x) { return x < 0 ? -x : x; }

unsigned long long strtoull(const char *text, char **end, int base) {
    unsigned long long value = 0;
    for (; *text >= '0' && *text <= '9'; text++) value = value * (unsigned)base + (unsigned)(*text - '0');
    if (end) *end = (char *)text;
    return value;
}

unsigned long strtoul(const char *text, char **end, int base) { return strtoull(text, end, base); }

/* Whole numbers alone. */
double strtod(const char *text, char **end) { return (double)strtoull(text, end, 10); }

#ifdef __wasm__
/* The product that clang makes of two words' upper half. */
__int128 __multi3(__int128 a, __int128 b) {
    unsigned long long x = (unsigned long long)a, y = (unsigned long long)b, half = 0xFFFFFFFF;
    unsigned long long low = (x & half) * (y & half);
    unsigned long long middle = (x >> 32) * (y & half) + (low >> 32);
    unsigned long long other = (x & half) * (y >> 32) + (middle & half);
    unsigned long long high = (x >> 32) * (y >> 32) + (middle >> 32) + (other >> 32);
    high += (unsigned long long)(a >> 64) * y + x * (unsigned long long)(b >> 64);
    return (__int128)(((unsigned __int128)high << 64) | (other << 32 | (low & half)));
}
#endif

int fflush(FILE *to) { (void)to; return 0; }
int fprintf(FILE *to, const char *format, ...) { (void)to, (void)format; return 0; }
int printf(const char *format, ...) { (void)format; return 0; }
int putchar(int c) { return c; }
int puts(const char *text) { (void)text; return 0; }
int snprintf(char *to, size_t room, const char *format, ...) {
    (void)format;
    if (room) *to = 0;
    return 0;
}
int sprintf(char *to, const char *format, ...) { (void)format; *to = 0; return 0; }
int vfprintf(FILE *to, const char *format, va_list arguments) { (void)to, (void)format, (void)arguments; return 0; }
int vsnprintf(char *to, size_t room, const char *format, va_list arguments) {
    (void)format, (void)arguments;
    if (room) *to = 0;
    return 0;
}
