# ChaCha for RISC-V: the sixteen words stay in registers from the first round to the last.
#
# Called as kernel(a0 data, a1 end of data, a2 plan): whole blocks, data aligned to 4 bytes,
# a1 > a0. The plan is `super::Plan`: 16 words to start from (the counter-independent part of the
# first double round already done), the 16 input words, and the number of loop passes.
#
# Neither gp nor tp is touched: interrupt handlers may rely on them.
#
# The additive and the d words stand in x8-x15, where `c.xor` reaches them:
#   x0-x3 s0 s1 a0 a1    x4-x7 a6 a7 s2 s3    x8-x11 s4 s5 s6 s7    x12-x15 a2 a3 a4 a5
#   data t2, end t3, plan t4, counter t5, loop passes t1
#   kept input words: x4 t6, x8 ra, x5 s8, x6 s9, x7 s10, x9 s11, and with a rotate x10 t0

.macro quarter a, b, c, d
    add \a, \a, \b
    xor \d, \d, \a
    rotl \d, 16
    add \c, \c, \d
    xor \b, \b, \c
    rotl \b, 12
    add \a, \a, \b
    xor \d, \d, \a
    rotl \d, 8
    add \c, \c, \d
    xor \b, \b, \c
    rotl \b, 7
.endm

# What is left of a quarter round once its first rotation is done.
.macro quarter_rest a, b, c, d
    add \c, \c, \d
    xor \b, \b, \c
    rotl \b, 12
    add \a, \a, \b
    xor \d, \d, \a
    rotl \d, 8
    add \c, \c, \d
    xor \b, \b, \c
    rotl \b, 7
.endm

.macro double_round
    quarter s0, a6, s4, a2
    quarter s1, a7, s5, a3
    quarter a0, s2, s6, a4
    quarter a1, s3, s7, a5
    quarter s0, a7, s6, a5
    quarter s1, s2, s7, a2
    quarter a0, s3, s4, a3
    quarter a1, a6, s5, a4
.endm

# The first double round, of which everything that does not depend on the counter stands in the
# plan: columns 1 to 3, x0 + x4, x1 + x6, x2 + x7 and (x13 ^ x2) <<< 16.
.macro first_double_round
    lw s0, 0(t4)
    lw s1, 4(t4)
    xor a2, t5, s0
    rotl a2, 16
    add s4, ra, a2
    xor a6, t6, s4
    rotl a6, 12
    add s0, s0, a6
    xor a2, a2, s0
    rotl a2, 8
    add s4, s4, a2
    xor a6, a6, s4
    rotl a6, 7

    lw s2, 24(t4)
    lw s7, 44(t4)
    xor a2, a2, s1
    rotl a2, 16
    quarter_rest s1, s2, s7, a2

    lw a7, 20(t4)
    lw s6, 40(t4)
    lw a5, 60(t4)
    quarter s0, a7, s6, a5

    lw a3, 52(t4)
    lw a0, 8(t4)
    lw s3, 28(t4)
    quarter_rest a0, s3, s4, a3

    lw a1, 12(t4)
    lw s5, 36(t4)
    lw a4, 56(t4)
    quarter a1, a6, s5, a4
.endm

# Adds the kept input word \input to \x and exclusive-ors data word \at with it.
.macro finish_kept x, at, input, data
    lw \data, \at(t2)
    add \x, \x, \input
    xor \x, \x, \data
    sw \x, \at(t2)
.endm

# The same with the input word in the plan.
.macro finish x, at, input, data
    lw \input, (64 + \at)(t4)
    lw \data, \at(t2)
    add \x, \x, \input
    xor \x, \x, \data
    sw \x, \at(t2)
.endm

# \unroll double rounds a loop pass, 1 or 3; \rotate says that a rotation takes no scratch register.
.macro chacha_kernel name, unroll, rotate
    .section .text.\name, "ax", @progbits
    .global \name
    .type \name, @function
    .balign 4
\name:
    save_registers
    mv t2, a0
    mv t3, a1
    mv t4, a2
    lw t5, (64 + 48)(t4)
    lw t6, (64 + 16)(t4)
    lw ra, (64 + 32)(t4)
    lw s8, (64 + 20)(t4)
    lw s9, (64 + 24)(t4)
    lw s10, (64 + 28)(t4)
    lw s11, (64 + 36)(t4)
    .if \rotate
    lw t0, (64 + 40)(t4)
    .endif
10: # Each block.
    lw t1, 128(t4)
    first_double_round
    .if \unroll == 3
    # Passes of three double rounds; a negative number enters the first after one of them.
    bltz t1, 13f
\name\()_loop:
    double_round
12:
    double_round
    double_round
    .else
\name\()_loop:
    double_round
    .endif
    addi t1, t1, -1
    bnez t1, \name\()_loop
\name\()_loop_end:

    finish_kept a6, 16, t6, t1
    finish_kept s4, 32, ra, t1
    finish_kept a7, 20, s8, t1
    finish_kept s2, 24, s9, t1
    finish_kept s3, 28, s10, t1
    finish_kept s5, 36, s11, t1
    finish_kept a2, 48, t5, t1
    .if \rotate
    finish_kept s6, 40, t0, t1
    .else
    finish s6, 40, a6, t1
    .endif
    finish s0, 0, a6, t1
    finish s1, 4, a6, t1
    finish a0, 8, a6, t1
    finish a1, 12, a6, t1
    finish s7, 44, a6, t1
    finish a3, 52, a6, t1
    finish a4, 56, a6, t1
    finish a5, 60, a6, t1
    addi t5, t5, 1
    addi t2, t2, 64
    bne t2, t3, 10b
    restore_registers
    ret
    .if \unroll == 3
13:
    neg t1, t1
    j 12b
    .endif
    .size \name, . - \name
.endm
