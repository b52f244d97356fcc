/* The header by which tests of libc-test report, in a machine. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#if __has_include(<unistd.h>)
#include <unistd.h>
#endif

#define T_TEXT_OF(LINE) #LINE
#define T_TEXT(LINE) T_TEXT_OF(LINE)
#define t_error(...) t_printf("line " T_TEXT(__LINE__) ": " __VA_ARGS__)

extern volatile int t_status;
int t_printf(const char *format, ...);
