/* The heap: malloc and its kin.
 *
 * Blocks lie one after another from __heap_base to the end of memory, each with a header that gives
 * its own size and that of the block before, so that a freed block joins both its neighbours at
 * once. A block is found by looking through them in order. Only this file grows the memory. */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define HEADER_BYTES 8u
#define IN_USE 1u
/* Asked for at a time, unless more is needed. */
#define GROWTH_BYTES 512u
#define WASM_PAGE_BYTES 65536u
/* What no machine can have. */
#define REQUEST_BYTES_MAX 0x7fff0000u

struct block {
    /* Header included, a multiple of 8; the lowest bit says whether it is in use. */
    uint32_t size_and_use;
    /* Of the block before; 0 in the first. */
    uint32_t previous_size;
};

_Static_assert(sizeof(struct block) == HEADER_BYTES, "payloads are aligned to 8 bytes");

extern unsigned char __heap_base;

static uintptr_t heap_start;
static uintptr_t heap_end;
/* Of the block at the end, for the one that growth appends. */
static uint32_t last_size;

static uint32_t size_of(const struct block *block) {
    return block->size_and_use & ~IN_USE;
}

static bool is_used(const struct block *block) {
    return block->size_and_use & IN_USE;
}

static struct block *block_of(void *memory) {
    return (struct block *)((uintptr_t)memory - HEADER_BYTES);
}

static struct block *after(const struct block *block) {
    return (struct block *)((uintptr_t)block + size_of(block));
}

/* Writes a block's header and what its follower knows of it. */
static void place(struct block *block, uint32_t size, uint32_t use) {
    block->size_and_use = size | use;
    if ((uintptr_t)after(block) == heap_end) {
        last_size = size;
    } else {
        after(block)->previous_size = size;
    }
}

/* Makes a block `size` bytes long and what it had more a free block. */
static void trim(struct block *block, uint32_t size) {
    uint32_t rest = size_of(block) - size;
    if (rest == 0) {
        return;
    }
    struct block *second = (struct block *)((uintptr_t)block + size);
    place(block, size, IN_USE);
    place(second, rest, 0);
    if ((uintptr_t)after(second) != heap_end && !is_used(after(second))) {
        place(second, rest + size_of(after(second)), 0);
    }
}

#ifdef __wasm__
/* A page is 64 KiB, or one byte where the linker was told so; then the count of pages, being the
 * length of the memory, isn't less than the address where the heap begins. */
static uint32_t page_bytes(void) {
    return __builtin_wasm_memory_size(0) >= (uintptr_t)&__heap_base ? 1 : WASM_PAGE_BYTES;
}

static bool grow_memory(uint32_t bytes) {
    uint32_t page = page_bytes();
    uint32_t pages = (bytes + page - 1) / page;
    return __builtin_wasm_memory_grow(0, pages) != (size_t)-1;
}

static uintptr_t memory_end(void) {
    return (uintptr_t)__builtin_wasm_memory_size(0) * page_bytes();
}
#else
/* The first of the variables, which the loader writes. */
extern const volatile uintptr_t tenure_memory_end;

/* A native machine has all there is from the beginning. */
static bool grow_memory(uint32_t bytes) {
    (void)bytes;
    return false;
}

static uintptr_t memory_end(void) {
    return tenure_memory_end;
}
#endif

/* Makes all memory up to `end` that isn't the heap's yet a block of it. */
static void extend_to(uintptr_t end) {
    uint32_t size = (uint32_t)(end - heap_end) & ~7u;
    if (size == 0) {
        return;
    }
    struct block *block = (struct block *)heap_end;
    uint32_t previous = last_size;
    heap_end += size;
    block->previous_size = previous;
    place(block, size, IN_USE);
    free((void *)((uintptr_t)block + HEADER_BYTES));
}

static bool grow(uint32_t bytes) {
    if (!grow_memory(bytes > GROWTH_BYTES ? bytes : GROWTH_BYTES) && !grow_memory(bytes)) {
        return false;
    }
    extend_to(memory_end());
    return true;
}

static void *take(uint32_t size) {
    uintptr_t at = heap_start;
    while (at != heap_end) {
        struct block *block = (struct block *)at;
        if (!is_used(block) && size_of(block) >= size) {
            place(block, size_of(block), IN_USE);
            trim(block, size);
            return (void *)(at + HEADER_BYTES);
        }
        at += size_of(block);
    }
    return NULL;
}

/* The size of a block that holds so much. */
static uint32_t block_bytes(size_t size) {
    return ((uint32_t)size + HEADER_BYTES + 7u) & ~7u;
}

static void *refuse(int reason) {
    errno = reason;
    return NULL;
}

void *malloc(size_t size) {
    if (size > REQUEST_BYTES_MAX) {
        return refuse(ENOMEM);
    }
    if (heap_start == 0) {
        heap_start = heap_end = ((uintptr_t)&__heap_base + 7u) & ~(uintptr_t)7u;
        if (memory_end() > heap_end) {
            extend_to(memory_end());
        }
    }
    uint32_t needed = block_bytes(size);
    void *memory = take(needed);
    /* Up to 7 bytes at the end of memory are no block's yet. */
    if (memory == NULL && grow(needed + 7u)) {
        memory = take(needed);
    }
    return memory != NULL ? memory : refuse(ENOMEM);
}

void free(void *memory) {
    if (memory == NULL) {
        return;
    }
    struct block *block = block_of(memory);
    uint32_t size = size_of(block);
    if ((uintptr_t)after(block) != heap_end && !is_used(after(block))) {
        size += size_of(after(block));
    }
    if (block->previous_size != 0) {
        struct block *before = (struct block *)((uintptr_t)block - block->previous_size);
        if (!is_used(before)) {
            size += size_of(before);
            block = before;
        }
    }
    place(block, size, 0);
}

/* How much of a block is the caller's: a GNU extension, whose callers would bring the standard library's own heap along
 * otherwise. */
size_t malloc_usable_size(void *memory);
size_t malloc_usable_size(void *memory) {
    return memory != NULL ? size_of(block_of(memory)) - HEADER_BYTES : 0;
}

void *calloc(size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        return refuse(ENOMEM);
    }
    void *memory = malloc(bytes);
    return memory ? memset(memory, 0, bytes) : NULL;
}

/* Takes more, and gives back what lies before the first place that is aligned. */
void *aligned_alloc(size_t alignment, size_t size) {
    if (alignment == 0 || (alignment & (alignment - 1)) != 0) {
        return refuse(EINVAL);
    }
    if (alignment <= HEADER_BYTES) {
        return malloc(size);
    }
    if (size > REQUEST_BYTES_MAX || alignment > REQUEST_BYTES_MAX - size) {
        return refuse(ENOMEM);
    }
    void *memory = malloc(size + alignment);
    if (memory == NULL) {
        return NULL;
    }
    uintptr_t start = (uintptr_t)memory;
    uint32_t gap = (uint32_t)(((start + alignment - 1) & ~(uintptr_t)(alignment - 1)) - start);
    struct block *block = block_of(memory);
    if (gap > 0) {
        struct block *second = (struct block *)((uintptr_t)block + gap);
        place(second, size_of(block) - gap, IN_USE);
        place(block, gap, IN_USE);
        free(memory);
        block = second;
    }
    trim(block, block_bytes(size));
    return (void *)((uintptr_t)block + HEADER_BYTES);
}

void *realloc(void *memory, size_t size) {
    if (memory == NULL) {
        return malloc(size);
    }
    if (size > REQUEST_BYTES_MAX) {
        return refuse(ENOMEM);
    }
    struct block *block = block_of(memory);
    uint32_t needed = block_bytes(size);
    uint32_t room = size_of(block);
    struct block *next = after(block);
    if (room < needed && (uintptr_t)next != heap_end && !is_used(next)) {
        uint32_t both = room + size_of(next);
        if (both >= needed) {
            place(block, both, IN_USE);
            room = both;
        }
    }
    if (room >= needed) {
        trim(block, needed);
        return memory;
    }
    void *moved = malloc(size);
    if (moved != NULL) {
        memcpy(moved, memory, room - HEADER_BYTES);
        free(memory);
    }
    return moved;
}
