/* The part of <string.h> that machines have. */
#pragma once

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

void *memcpy(void *__restrict into, const void *__restrict from, size_t length);
void *memmove(void *into, const void *from, size_t length);
void *memset(void *into, int byte, size_t length);
int memcmp(const void *one, const void *two, size_t length);
void *memchr(const void *bytes, int byte, size_t length);

size_t strlen(const char *text);
size_t strnlen(const char *text, size_t length_max);
int strcmp(const char *one, const char *two);
int strncmp(const char *one, const char *two, size_t length_max);
char *strcpy(char *__restrict into, const char *__restrict from);
char *strncpy(char *__restrict into, const char *__restrict from, size_t length);
char *strcat(char *__restrict into, const char *__restrict from);
char *strncat(char *__restrict into, const char *__restrict from, size_t length_max);
char *strchr(const char *text, int character);
char *strrchr(const char *text, int character);
char *strstr(const char *text, const char *part);
size_t strspn(const char *text, const char *characters);
size_t strcspn(const char *text, const char *characters);
char *strpbrk(const char *text, const char *characters);
char *strtok(char *__restrict text, const char *__restrict separators);
char *strtok_r(char *__restrict text, const char *__restrict separators, char **__restrict rest);
char *strdup(const char *text);

#ifdef __cplusplus
}
#endif
