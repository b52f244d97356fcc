// As much of PMSIS as `tenure_gap8.c` uses, with its types and prototypes, for one core: the team's
// cores take turns, and a transfer is done at the latest moment that the runtime allows.
#ifndef PMSIS_H
#define PMSIS_H

#include <stdint.h>

typedef enum { PI_CL_DMA_DIR_LOC2EXT = 0, PI_CL_DMA_DIR_EXT2LOC = 1 } pi_cl_dma_dir_e;

typedef struct {
    uint32_t ext;
    uint32_t loc;
    uint32_t id;
    uint16_t size;
    pi_cl_dma_dir_e dir;
    uint8_t merge;
} pi_cl_dma_copy_t;

// What the test looks at.
uint32_t pmsis_forks, pmsis_copies_in, pmsis_copies_out, pmsis_waits;

static uint32_t pmsis_core;

static inline int pi_core_id(void) { return (int)pmsis_core; }

static inline void pi_cl_team_fork(int nb_cores, void (*entry)(void *), void *arg) {
    pmsis_forks++;
    for (pmsis_core = 0; pmsis_core < (uint32_t)nb_cores; pmsis_core++) entry(arg);
    pmsis_core = 0;
}

static inline void pi_cl_dma_memcpy(pi_cl_dma_copy_t *copy) {
    if (copy->dir == PI_CL_DMA_DIR_EXT2LOC)
        pmsis_copies_in++;
    else
        pmsis_copies_out++;
}

static inline void pi_cl_dma_wait(void *arg) {
    pi_cl_dma_copy_t *copy = arg;
    int inward = copy->dir == PI_CL_DMA_DIR_EXT2LOC;
    uint8_t *to = (uint8_t *)(inward ? copy->loc : copy->ext);
    const uint8_t *from = (const uint8_t *)(inward ? copy->ext : copy->loc);
    for (uint32_t i = 0; i < copy->size; i++) to[i] = from[i];
    pmsis_waits++;
}

#endif
