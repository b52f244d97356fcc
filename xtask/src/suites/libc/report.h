/* Included before a test with the small library: the functions by which tests report and end, which that library
 * doesn't have. */
#pragma once
#include <stdio.h>
#include <stdlib.h>

int suite_printf(const char *format, ...);
int suite_puts(const char *text);
#define printf suite_printf
#define puts suite_puts
#define fflush(FILE) 0
