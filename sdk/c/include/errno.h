/* The part of <errno.h> that machines have: what the functions of these headers say of a failure. The numbers are those
 * of Linux; 0 at the start, and no function sets it to 0. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

extern int errno;
#ifndef errno
#define errno errno
#endif

#define ENOMEM 12
#define EINVAL 22
#define EDOM 33
#define ERANGE 34
#define EOVERFLOW 75
#define EILSEQ 84

#ifdef __cplusplus
}
#endif
