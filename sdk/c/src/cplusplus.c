/* What compilers of C++ expect of a library: new and delete, and what objects that are never
 * destroyed need. A machine's objects live until it stops, so that what would run at an exit never does.
 *
 * The functions go by their mangled names; the letter for size_t is the target's. All are weak: a
 * program may bring its own. */
#include <stddef.h>
#include <stdlib.h>
#include <tenure.h>

#define WEAK __attribute__((weak, visibility("hidden")))

#ifdef __wasm__
#define WITH_SIZE(NAME) NAME##m
#define SIZED(BEFORE, AFTER) BEFORE##m##AFTER
#else
#define WITH_SIZE(NAME) NAME##j
#define SIZED(BEFORE, AFTER) BEFORE##j##AFTER
#endif

static void *take(size_t size) {
    void *memory = malloc(size ? size : 1);
    if (memory == NULL) {
        tenure_abort("out of memory: `new` found none within memory_bytes of the machine's budget");
    }
    return memory;
}

/* operator new, new[] */
WEAK void *WITH_SIZE(_Znw)(size_t size) {
    return take(size);
}
WEAK void *WITH_SIZE(_Zna)(size_t size) {
    return take(size);
}
/* with std::nothrow */
WEAK void *SIZED(_Znw, RKSt9nothrow_t)(size_t size, const void *nothrow) {
    (void)nothrow;
    return malloc(size ? size : 1);
}
WEAK void *SIZED(_Zna, RKSt9nothrow_t)(size_t size, const void *nothrow) {
    (void)nothrow;
    return malloc(size ? size : 1);
}
/* operator delete, delete[], and those that are told the size */
WEAK void _ZdlPv(void *memory) {
    free(memory);
}
WEAK void _ZdaPv(void *memory) {
    free(memory);
}
WEAK void WITH_SIZE(_ZdlPv)(void *memory, size_t size) {
    (void)size;
    free(memory);
}
WEAK void WITH_SIZE(_ZdaPv)(void *memory, size_t size) {
    (void)size;
    free(memory);
}

WEAK void *__dso_handle;

/* Registers what would destroy an object at the exit, which a machine doesn't have. */
WEAK int __cxa_atexit(void (*function)(void *), void *object, void *handle) {
    (void)function, (void)object, (void)handle;
    return 0;
}

WEAK int __aeabi_atexit(void *object, void (*function)(void *), void *handle) {
    (void)function, (void)object, (void)handle;
    return 0;
}

WEAK void __cxa_pure_virtual(void) {
    tenure_abort("a pure virtual function was called");
}
