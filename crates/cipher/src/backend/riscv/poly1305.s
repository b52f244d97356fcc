# Poly1305 for RV32IM: words of 32 bits, products in two halves, no carry flag to help.
#
# Called as kernel(a0 state, a1 data, a2 end of data, a3 top): whole blocks, data aligned to 4
# bytes, a2 > a1. The state is `PolyState`: h0-h4, then r0-r3.
#
# Since r < 2^124 with r1-r3 multiples of 4, 2^128 * r[i] is r[i] + r[i] / 4 (called s[i]), every
# mulhu is below 1.25 * 2^28, and four of them, their carries and h4 * s[i] fit 32 bits.
#
#   r0-r3 s0-s3    s1-s3 s4-s6    h0-h4 a4 a5 a6 a7 t6    new h0-h3 s7-s10
#   carry out of h0 that is still to be added to h1: s11

.macro product low, high, x, y
    mulhu \high, \x, \y
    mul \low, \x, \y
.endm

.macro add_product low, high, x, y
    mul t2, \x, \y
    mulhu t3, \x, \y
    add \low, \low, t2
    sltu t2, \low, t2
    add \high, \high, t3
    add \high, \high, t2
.endm

# Adds the upper half of the column before, \carry, and h4 * \s to a column.
.macro carry_in low, high, carry, s
    mul t2, t6, \s
    add \carry, \carry, t2
    add \low, \low, \carry
    sltu \carry, \low, \carry
    add \high, \high, \carry
.endm

# h[i] += m[i] + carry, with the carry, 0 to 2, in t0.
.macro add_word h, m
    add \h, \h, \m
    sltu \m, \h, \m
    add \h, \h, t0
    sltu t0, \h, t0
    add t0, t0, \m
.endm

.macro poly1305_kernel name
    .section .text.\name, "ax", @progbits
    .global \name
    .type \name, @function
    .balign 4
\name:
    save_registers
    lw a4, 0(a0)
    lw a5, 4(a0)
    lw a6, 8(a0)
    lw a7, 12(a0)
    lw t6, 16(a0)
    lw s0, 20(a0)
    lw s1, 24(a0)
    lw s2, 28(a0)
    lw s3, 32(a0)
    srli s4, s1, 2
    add s4, s4, s1
    srli s5, s2, 2
    add s5, s5, s2
    srli s6, s3, 2
    add s6, s6, s3
    li s11, 0
20: # Each block: h += m + top * 2^128.
    lw t0, 0(a1)
    lw t1, 4(a1)
    lw t2, 8(a1)
    lw t3, 12(a1)
    add a4, a4, t0
    sltu t0, a4, t0
    add t0, t0, s11
    add_word a5, t1
    add_word a6, t2
    add_word a7, t3
    add t6, t6, t0
    add t6, t6, a3

    # h * r, column by column.
    product s7, t0, a4, s0
    add_product s7, t0, a5, s6
    add_product s7, t0, a6, s5
    add_product s7, t0, a7, s4

    product s8, t1, a4, s1
    add_product s8, t1, a5, s0
    add_product s8, t1, a6, s6
    add_product s8, t1, a7, s5
    carry_in s8, t1, t0, s4

    product s9, t4, a4, s2
    add_product s9, t4, a5, s1
    add_product s9, t4, a6, s0
    add_product s9, t4, a7, s6
    carry_in s9, t4, t1, s5

    product s10, t5, a4, s3
    add_product s10, t5, a5, s2
    add_product s10, t5, a6, s1
    add_product s10, t5, a7, s0
    carry_in s10, t5, t4, s6

    mul t6, t6, s0
    add t5, t5, t6

    # What stands above bit 130 comes back five times: (t5 / 4) * 5 = t5 / 4 + (t5 & ~3).
    andi t6, t5, 3
    srli t0, t5, 2
    sub t1, t5, t6
    add t0, t0, t1
    add a4, s7, t0
    sltu s11, a4, t0
    mv a5, s8
    mv a6, s9
    mv a7, s10
    addi a1, a1, 16
    bne a1, a2, 20b

    add a5, a5, s11
    sltu t0, a5, s11
    add a6, a6, t0
    sltu t0, a6, t0
    add a7, a7, t0
    sltu t0, a7, t0
    add t6, t6, t0
    sw a4, 0(a0)
    sw a5, 4(a0)
    sw a6, 8(a0)
    sw a7, 12(a0)
    sw t6, 16(a0)
    restore_registers
    ret
    .size \name, . - \name
.endm
