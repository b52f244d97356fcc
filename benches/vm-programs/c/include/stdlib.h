/* A heap that gives nothing back, and what else programs ask for. */
#pragma once
#include <stddef.h>
#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1
#define RAND_MAX 0x7FFFFFFF
void *calloc(size_t, size_t);
void free(void *);
void *malloc(size_t);
void *realloc(void *, size_t);
/* All of the heap is free again. */
void heap_reset(void);
_Noreturn void abort(void);
_Noreturn void exit(int);
int abs(int);
long labs(long);
double strtod(const char *, char **);
unsigned long strtoul(const char *, char **, int);
unsigned long long strtoull(const char *, char **, int);
