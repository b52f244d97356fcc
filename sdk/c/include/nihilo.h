/* The API of the 2020 Nihilo (ESP32) by its own names, for C and C++.
 *
 * A program written for it compiles and runs here unchanged. What differs is better: the heap is
 * real, nothing is cut at 1,000 characters, and global variables keep their values between calls. A
 * string of more than 2,048 bytes lies in the tree in parts, below its path as ~1, ~2 and so on. Calls
 * for which the queue has no room wait in the machine's memory until it has.
 * As there, what is allocated while a call is served is gone when the function returns. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
#define NIHILO_EXTERN_C extern "C"
extern "C" {
#else
#define NIHILO_EXTERN_C
#if __STDC_VERSION__ < 202311L && !defined(nullptr)
#define nullptr ((void *)0)
#endif
#endif

/* Declares a function of the host. */
#define WASM_IMPORT(MODULE, NAME) __attribute__((import_module(MODULE), import_name(NAME)))

/* The function that others call. */
#ifdef __wasm__
#define NIHILO_EXPORT(NAME) __attribute__((export_name(#NAME))) void nihilo_export_##NAME(void)
#else
#define NIHILO_EXPORT(NAME)                                                                        \
    __attribute__((used, visibility("default"))) void tenure_export_##NAME(void)
#endif

/* Begins the definition of a function that others can call, with a parameter that is null if the
 * call has none. NIH_VOID returns nothing, NIH_CHARS a string or null. */
#define NIH_VOID(NAME, PARAMNAME)                                                                  \
    void NAME(char *PARAMNAME);                                                                    \
    NIHILO_EXTERN_C NIHILO_EXPORT(NAME) {                                                          \
        char *parameter;                                                                           \
        getParam(&parameter);                                                                      \
        NAME(parameter);                                                                           \
        nihilo_end();                                                                              \
    }                                                                                              \
    void NAME(__attribute__((unused)) char *PARAMNAME)

#define NIH_CHARS(NAME, PARAMNAME)                                                                 \
    const char *NAME(char *PARAMNAME);                                                             \
    NIHILO_EXTERN_C NIHILO_EXPORT(NAME) {                                                          \
        char *parameter;                                                                           \
        getParam(&parameter);                                                                      \
        setReturn(NAME(parameter));                                                                \
        nihilo_end();                                                                              \
    }                                                                                              \
    const char *NAME(__attribute__((unused)) char *PARAMNAME)

/* The same as knownPubs, by the name that earlier programs had for it. */
#define knownIds knownPubs

/* Sets *target to `size` bytes of new memory, or to null if there is none. */
void mallocWasm(void **target, uint32_t size);

/* Stores a string at a path ("A.B.C") of the machine's tree, making the objects above it, in the place of
 * strings if need be, and replacing what is there. A null value deletes. */
void writeString(const char *path, const char *value);

/* Sets *target to the string at a path, or to null if there is none. */
void readString(const char *path, char **target);

/* Sets *pubs to the 32-byte public keys of the machines that this device knows, one after another,
 * and returns how many there are. */
int knownPubs(unsigned char **pubs, int include_local, int include_non_local);

/* Logs a string; a long one in several lines. */
void logStr(const char *tolog);

/* Puts a call of fname(param) on the machine with the given public key, or on this one if it is
 * null, at the end of the queue, which takes as many as memory holds. Then onsuccess(result) or
 * onfail(reason) is called on this one. All but fname may be null. */
void queue(const unsigned char *target_pub, const char *fname, const char *param,
           const char *onsuccess, const char *onfail);

/* Timers, which the 2020 Nihilo hadn't. Calls fname(param) of this machine once, after delay_ms; or again
 * and again, period_ms apart, 10 at least. The param has 64 bytes at most, and may be null. A machine has
 * eight timers at most, one for each function; they last as those of tenure.h. What can't be set is
 * logged. `fname` stands for the timer, which queueCancel ends. */
void queueAfter(uint32_t delay_ms, const char *fname, const char *param);
void queueEvery(uint32_t period_ms, const char *fname, const char *param);
/* At each time of a schedule: a time of day ("06:30"), or the five fields of crontab
 * ("0,30 8-18 * * mon-fri"), 128 bytes at most; in UTC, or behind the rules of a clock
 * ("TZ=CET-1CEST,M3.5.0,M10.5.0/3 06:30"). */
void queueSchedule(const char *schedule, const char *fname, const char *param);
void queueCancel(const char *fname);

/* Microseconds since the device booted. */
uint64_t uptime(void);

/* An integer as a new string. */
char *decstr(int input);

/* The integer that a string says; 0 if it says none. */
int strdec(const char *input);

/* What the macros use. */
void getParam(char **param);
void setReturn(const char *ret);
void nihilo_end(void);
void nihilo_pumped(void);

#ifdef __cplusplus
}
#endif

#ifndef NIHILO_ITSELF
/* Called when a call has ended that nobody else is told of, and others wait for room in the queue. */
NIHILO_EXTERN_C __attribute__((weak)) NIHILO_EXPORT(nihilo_pump) {
    nihilo_pumped();
}
#endif
