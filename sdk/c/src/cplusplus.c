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

/* What `new` calls while there is no memory (set_new_handler). */
static void (*new_handler)(void);
/* Whether null is an answer: `new` was called with std::nothrow. */
static int takes_null;

WEAK void (*_ZSt15set_new_handlerPFvvE(void (*handler)(void)))(void) {
    void (*before)(void) = new_handler;
    new_handler = handler;
    return before;
}
WEAK void (*_ZSt15get_new_handlerv(void))(void) {
    return new_handler;
}

/* Memory of `size` bytes, aligned to `alignment` if that isn't 0. */
static void *take(size_t size, size_t alignment) {
    size = size ? size : 1;
    if (alignment != 0 && alignment < sizeof(void *)) {
        alignment = sizeof(void *);
    }
    for (;;) {
        void *memory = alignment ? aligned_alloc(alignment, size) : malloc(size);
        if (memory != NULL) {
            return memory;
        }
        if (new_handler == NULL) {
            break;
        }
        new_handler();
    }
    if (!takes_null) {
        tenure_abort("out of memory: `new` found none within memory_bytes of the machine's budget");
    }
    return NULL;
}

/* C++'s [new.delete]: each function that has a default calls the one that it says, so that a program which brings the
 * plain one alone has it called for arrays, sizes and std::nothrow as well. */

/* operator new, new[] */
WEAK void *WITH_SIZE(_Znw)(size_t size) {
    return take(size, 0);
}
WEAK void *WITH_SIZE(_Zna)(size_t size) {
    return WITH_SIZE(_Znw)(size);
}
/* with an alignment */
WEAK void *SIZED(_Znw, St11align_val_t)(size_t size, size_t alignment) {
    return take(size, alignment);
}
WEAK void *SIZED(_Zna, St11align_val_t)(size_t size, size_t alignment) {
    return SIZED(_Znw, St11align_val_t)(size, alignment);
}
/* with std::nothrow */
WEAK void *SIZED(_Znw, RKSt9nothrow_t)(size_t size, const void *nothrow) {
    (void)nothrow;
    takes_null++;
    void *memory = WITH_SIZE(_Znw)(size);
    takes_null--;
    return memory;
}
WEAK void *SIZED(_Zna, RKSt9nothrow_t)(size_t size, const void *nothrow) {
    (void)nothrow;
    takes_null++;
    void *memory = WITH_SIZE(_Zna)(size);
    takes_null--;
    return memory;
}
WEAK void *SIZED(_Znw, St11align_val_tRKSt9nothrow_t)(size_t size, size_t alignment, const void *nothrow) {
    (void)nothrow;
    takes_null++;
    void *memory = SIZED(_Znw, St11align_val_t)(size, alignment);
    takes_null--;
    return memory;
}
WEAK void *SIZED(_Zna, St11align_val_tRKSt9nothrow_t)(size_t size, size_t alignment, const void *nothrow) {
    (void)nothrow;
    takes_null++;
    void *memory = SIZED(_Zna, St11align_val_t)(size, alignment);
    takes_null--;
    return memory;
}

/* operator delete, delete[] */
WEAK void _ZdlPv(void *memory) {
    free(memory);
}
WEAK void _ZdaPv(void *memory) {
    _ZdlPv(memory);
}
/* that are told the size */
WEAK void WITH_SIZE(_ZdlPv)(void *memory, size_t size) {
    (void)size;
    _ZdlPv(memory);
}
WEAK void WITH_SIZE(_ZdaPv)(void *memory, size_t size) {
    (void)size;
    _ZdaPv(memory);
}
/* of what has an alignment */
WEAK void _ZdlPvSt11align_val_t(void *memory, size_t alignment) {
    (void)alignment;
    free(memory);
}
WEAK void _ZdaPvSt11align_val_t(void *memory, size_t alignment) {
    _ZdlPvSt11align_val_t(memory, alignment);
}
WEAK void SIZED(_ZdlPv, St11align_val_t)(void *memory, size_t size, size_t alignment) {
    (void)size;
    _ZdlPvSt11align_val_t(memory, alignment);
}
WEAK void SIZED(_ZdaPv, St11align_val_t)(void *memory, size_t size, size_t alignment) {
    (void)size;
    _ZdaPvSt11align_val_t(memory, alignment);
}
/* that std::nothrow goes with */
WEAK void _ZdlPvRKSt9nothrow_t(void *memory, const void *nothrow) {
    (void)nothrow;
    _ZdlPv(memory);
}
WEAK void _ZdaPvRKSt9nothrow_t(void *memory, const void *nothrow) {
    (void)nothrow;
    _ZdaPv(memory);
}
WEAK void _ZdlPvSt11align_val_tRKSt9nothrow_t(void *memory, size_t alignment, const void *nothrow) {
    (void)nothrow;
    _ZdlPvSt11align_val_t(memory, alignment);
}
WEAK void _ZdaPvSt11align_val_tRKSt9nothrow_t(void *memory, size_t alignment, const void *nothrow) {
    (void)nothrow;
    _ZdaPvSt11align_val_t(memory, alignment);
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
