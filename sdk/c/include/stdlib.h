/* The part of <stdlib.h> that machines have. */
#pragma once

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Memory is aligned to 8 bytes. The heap grows as far as the machine's budget lets it; then
 * these return NULL, and say ENOMEM in errno. */
void *malloc(size_t size);
void *calloc(size_t count, size_t size);
void *realloc(void *memory, size_t size);
void free(void *memory);
/* Memory at a multiple of `alignment`, a power of two. */
void *aligned_alloc(size_t alignment, size_t size);

/* Ends the call being served as failed and stops the machine. */
__attribute__((noreturn)) void abort(void);

int abs(int number);
long labs(long number);
long long llabs(long long number);

/* A number beyond the type's is its limit, and ERANGE in errno; no base is EINVAL. */
int atoi(const char *text);
long atol(const char *text);
long long atoll(const char *text);
long strtol(const char *__restrict text, char **__restrict end, int base);
unsigned long strtoul(const char *__restrict text, char **__restrict end, int base);
long long strtoll(const char *__restrict text, char **__restrict end, int base);
unsigned long long strtoull(const char *__restrict text, char **__restrict end, int base);

#ifdef __cplusplus
}
#endif
