/* The part of <stdio.h> that machines have.
 *
 * Conversions: d i u x X o a A e E f F g G c s p n %, with the flags - 0 + space #, width, precision and the lengths
 * hh h l ll j z t. Characters are bytes: there is no lc or ls, and no L. A text of more than INT_MAX bytes is -1, and
 * EOVERFLOW in errno. */
#pragma once

#include <stdarg.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

__attribute__((format(printf, 3, 4))) int snprintf(char *__restrict into, size_t capacity,
                                                   const char *__restrict format, ...);
__attribute__((format(printf, 3, 0))) int vsnprintf(char *__restrict into, size_t capacity,
                                                    const char *__restrict format,
                                                    va_list arguments);

#ifdef __cplusplus
}
#endif
