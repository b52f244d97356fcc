/* How a native machine calls its device: the processor's call to whoever is privileged. Up to six words
 * of arguments are in registers, a0 to a5 or r0 to r5; of a call that has more, five are, and the sixth
 * register has the address of the others. The number is in a7, or in the instruction. */
#pragma once

#include <stdint.h>

/* Commas that are no macro's. */
#define TENURE_LIST(...) { __VA_ARGS__ }

#ifdef __riscv
#define TENURE_ARGUMENT(NAME) asm("a" #NAME)
#define TENURE_INSTRUCTION "ecall"
#else
#define TENURE_ARGUMENT(NAME) asm("r" #NAME)
#define TENURE_INSTRUCTION "svc %[number]"
#endif

/* Makes a host call; its result is a word, or two. */
__attribute__((always_inline)) static inline uint64_t
tenure_request(const uint32_t number, uint32_t first, uint32_t second, uint32_t third,
               uint32_t fourth, uint32_t fifth, uint32_t sixth) {
    register uint32_t word_0 TENURE_ARGUMENT(0) = first;
    register uint32_t word_1 TENURE_ARGUMENT(1) = second;
    register uint32_t word_2 TENURE_ARGUMENT(2) = third;
    register uint32_t word_3 TENURE_ARGUMENT(3) = fourth;
    register uint32_t word_4 TENURE_ARGUMENT(4) = fifth;
    register uint32_t word_5 TENURE_ARGUMENT(5) = sixth;
#ifdef __riscv
    register uint32_t which asm("a7") = number;
    asm volatile(TENURE_INSTRUCTION
                 : "+r"(word_0), "+r"(word_1)
                 : "r"(word_2), "r"(word_3), "r"(word_4), "r"(word_5), "r"(which)
                 : "memory");
#else
    asm volatile(TENURE_INSTRUCTION
                 : "+r"(word_0), "+r"(word_1)
                 : "r"(word_2), "r"(word_3), "r"(word_4), "r"(word_5), [number] "i"(number)
                 : "memory");
#endif
    return (uint64_t)word_1 << 32 | word_0;
}
