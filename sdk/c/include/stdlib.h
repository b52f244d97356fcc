/* The part of <stdlib.h> that machines have. */
#pragma once

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Memory is aligned to 8 bytes. The heap grows as far as the machine's budget lets it; then
 * these return NULL. */
void *malloc(size_t size);
void *calloc(size_t count, size_t size);
void *realloc(void *memory, size_t size);
void free(void *memory);
/* Memory at a multiple of `alignment`, a power of two. */
void *aligned_alloc(size_t alignment, size_t size);

/* Ends the call being served as failed and stops the machine. */
__attribute__((noreturn)) void abort(void);

int abs(int number);
int atoi(const char *text);
long strtol(const char *__restrict text, char **__restrict end, int base);
unsigned long strtoul(const char *__restrict text, char **__restrict end, int base);

#ifdef __cplusplus
}
#endif
