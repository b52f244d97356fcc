// Gives names to what PMSIS, the runtime of the GAP SDK, defines as `static inline`. A program that
// uses the engine's feature `gap8` compiles this file with the SDK's compiler.
#include "pmsis.h"

void tenure_gap8_fork(uint32_t cores, void (*entry)(void *), void *argument) {
    pi_cl_team_fork((int)cores, entry, argument);
}

uint32_t tenure_gap8_core(void) { return (uint32_t)pi_core_id(); }

// Two transfers are under way at most.
static pi_cl_dma_copy_t copies[2];
static uint32_t next;

uint32_t tenure_gap8_copy(uint8_t *to, const uint8_t *from, uint32_t len, uint32_t inward) {
    next ^= 1;
    pi_cl_dma_copy_t *copy = &copies[next];
    copy->dir = inward ? PI_CL_DMA_DIR_EXT2LOC : PI_CL_DMA_DIR_LOC2EXT;
    copy->loc = inward ? (uint32_t)to : (uint32_t)from;
    copy->ext = inward ? (uint32_t)from : (uint32_t)to;
    copy->size = (uint16_t)len; // The caller has no more than that at a time.
    copy->merge = 0;
    pi_cl_dma_memcpy(copy);
    return next;
}

void tenure_gap8_wait(uint32_t number) { pi_cl_dma_wait(&copies[number & 1]); }
