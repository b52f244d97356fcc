/* Lua's memory, part of engine.c: all that the machine has behind the linker's, in steps of 16 bytes.
 *
 * Lua says how large a block is that it gives back, so that blocks have no headers. Free ones hold their size at
 * both ends, and lie in lists by it: for each size up to 31 steps one, then one for each power of two. Of each
 * step a bit says whether it is the first or the last of a free block, by which one that is given back finds free
 * neighbours and joins them. */

#define STEP 16u
#define EXACT 32u
#define LISTS (EXACT + 27u)

/* A free block: it has at least one step, whose last word holds the size, too. */
struct free_block {
    struct free_block *next, *previous;
    /* In steps. */
    uint32_t steps;
    uint32_t last;
};

_Static_assert(sizeof(struct free_block) == STEP, "a free block fits into a step");

static struct free_block *lists[LISTS];
/* The lists that have a block. */
static uint64_t filled;
/* Of each step of the memory, from its first on. */
static uint8_t *ends;
static uint8_t *first_step;
static uint32_t step_count;

static uint32_t list_of(uint32_t steps) {
    return steps < EXACT ? steps : EXACT - 5u + (31u - (uint32_t)__builtin_clz(steps));
}

static uint32_t index_of(const void *at) {
    return (uint32_t)((const uint8_t *)at - first_step) / STEP;
}

static bool is_end(uint32_t step) {
    return ends[step / 8] >> (step % 8) & 1;
}

static void mark(struct free_block *block, bool is_free) {
    uint32_t both[2] = {index_of(block), index_of(block) + block->steps - 1};
    for (int at = 0; at < 2; at++) {
        uint8_t bit = (uint8_t)(1u << (both[at] % 8));
        ends[both[at] / 8] = is_free ? ends[both[at] / 8] | bit : ends[both[at] / 8] & (uint8_t)~bit;
    }
}

static void link_free(uint8_t *at, uint32_t steps) {
    struct free_block *block = (struct free_block *)at;
    uint32_t list = list_of(steps);
    block->steps = steps;
    ((struct free_block *)(at + (steps - 1) * STEP))->last = steps;
    block->previous = NULL;
    block->next = lists[list];
    if (block->next != NULL) {
        block->next->previous = block;
    }
    lists[list] = block;
    filled |= 1ull << list;
    mark(block, true);
}

static void unlink_free(struct free_block *block) {
    uint32_t list = list_of(block->steps);
    if (block->next != NULL) {
        block->next->previous = block->previous;
    }
    if (block->previous != NULL) {
        block->previous->next = block->next;
    } else {
        lists[list] = block->next;
        filled &= block->next == NULL ? ~(1ull << list) : ~0ull;
    }
    mark(block, false);
}

/* Gives memory back, joined with what is free beside it. */
static void give_back(uint8_t *at, uint32_t steps) {
    uint32_t step = index_of(at);
    if (step + steps < step_count && is_end(step + steps)) {
        struct free_block *behind = (struct free_block *)(at + steps * STEP);
        steps += behind->steps;
        unlink_free(behind);
    }
    if (step > 0 && is_end(step - 1)) {
        uint32_t before = ((struct free_block *)(at - STEP))->last;
        at -= before * STEP;
        steps += before;
        unlink_free((struct free_block *)at);
    }
    link_free(at, steps);
}

/* Takes so much off a free block, whose rest stays free. */
static void *take_of(struct free_block *block, uint32_t steps) {
    uint32_t whole = block->steps;
    unlink_free(block);
    if (whole > steps) {
        link_free((uint8_t *)block + steps * STEP, whole - steps);
    }
    return block;
}

static void *take(uint32_t steps) {
    uint32_t list = list_of(steps);
    if (list >= LISTS) {
        return NULL;
    }
    // In a list of several sizes not every block is large enough; in those behind it each is.
    for (struct free_block *block = lists[list]; block != NULL; block = block->next) {
        if (block->steps >= steps) {
            return take_of(block, steps);
        }
    }
    uint64_t larger = filled & (~0ull << 1 << list);
    return larger == 0 ? NULL : take_of(lists[__builtin_ctzll(larger)], steps);
}

static uint32_t steps_of(size_t bytes) {
    return (uint32_t)((bytes + STEP - 1) / STEP);
}

/* lua_Alloc. `old` is the block's size, or the kind of what is to come if there is no block. */
static void *allocate(void *unused, void *block, size_t old, size_t bytes) {
    (void)unused;
    uint32_t before = block == NULL ? 0 : steps_of(old), now = steps_of(bytes);
    if (before == now) {
        return block;
    }
    if (now == 0) {
        give_back(block, before);
        return NULL;
    }
    if (now < before) {
        give_back((uint8_t *)block + now * STEP, before - now);
        return block;
    }
    void *moved = take(now);
    if (moved != NULL && before > 0) {
        memcpy(moved, block, old);
        give_back(block, before);
    }
    return moved;
}

/* Takes all memory behind the linker's. `tenure build` gives it pages of one byte, and all that the machine has. */
static void take_memory(void) {
    extern uint8_t __heap_base[];
    uintptr_t begin = ((uintptr_t)__heap_base + STEP - 1) & ~(uintptr_t)(STEP - 1);
    uint32_t bytes = (uint32_t)(__builtin_wasm_memory_size(0) - begin);
    // For each 8 steps a byte of bits.
    uint32_t bits = (bytes / (8 * STEP) + STEP) & ~(STEP - 1);
    ends = (uint8_t *)begin;
    first_step = ends + bits;
    step_count = (bytes - bits) / STEP;
    link_free(first_step, step_count);
}
