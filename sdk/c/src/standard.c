/* What the standard library has otherwise than a machine needs it: its clock, and the names of its heap.
 *
 * Compiled only with `library = "standard"`. */
#include <errno.h>
#include <stdlib.h>
#include <tenure.h>
#include <time.h>

/* The library's own says 1970 where the device doesn't know the time. */
time_t time(time_t *into) {
    time_t now = (time_t)tenure_unix_time_s();
    if (into != NULL) {
        *into = now;
    }
    return now;
}

/* The names by which the library's own files call its heap, as those of `atexit` and locales do, which streams bring
 * along: they have ours. */
void *__libc_malloc(size_t size) {
    return malloc(size);
}

void *__libc_calloc(size_t count, size_t size) {
    return calloc(count, size);
}

void __libc_free(void *memory) {
    free(memory);
}

int posix_memalign(void **memory, size_t alignment, size_t size) {
    void *block = alignment < sizeof block ? NULL : aligned_alloc(alignment, size);
    if (block == NULL) {
        return alignment < sizeof block || (alignment & (alignment - 1)) != 0 ? EINVAL : ENOMEM;
    }
    *memory = block;
    return 0;
}
