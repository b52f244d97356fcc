/* Streams, of which nothing comes and into which nothing goes. */
#pragma once
#include <stdarg.h>
#include <stddef.h>
typedef struct stream FILE;
#define EOF (-1)
#define stdout ((FILE *)0)
#define stderr ((FILE *)0)
int fflush(FILE *);
int fprintf(FILE *, const char *, ...);
int printf(const char *, ...);
int putchar(int);
int puts(const char *);
int snprintf(char *, size_t, const char *, ...);
int sprintf(char *, const char *, ...);
int vfprintf(FILE *, const char *, va_list);
int vsnprintf(char *, size_t, const char *, va_list);
