# ChaCha for RI5CY: a rotation in one instruction, the loop over the double rounds in none.
#
# Called as the kernels of `chacha.s`, whose macros and registers it shares but for
#   rotations right by 16, 20, 24, 25 in t0 t1 t3 s8 (`p.ror` takes them from registers)
#   scratch s9, kept input words x4 t6, x8 ra, x5 s10, x6 s11
#
# The instructions are those of the RI5CY user manual 1.8, §3.3.2, §4.2, §5.3; CORE-V's differ.
# The assembler knows none of them. Inside a hardware loop nothing is compressed, so that the
# addresses of the last instructions, to which RI5CY counts, are plain arithmetic.

# p.ror d, a, b: rotates a right by b.
.macro p_ror d, a, b
    .insn r 0x33, 5, 0x04, \d, \a, \b
.endm

# p.sw: stores at the address in \base, then adds \step to it.
.macro p_sw x, step, base
    .insn s 0x2b, 2, \x, \step(\base)
.endm

# lp.setup: runs what follows \count times; the last of it stands \last bytes after this. The
# second loop register, x1 in the encoding, is for the outer of two nested loops.
.macro lp_setup loop, count, last
    .insn i 0x7b, 4, \loop, \count, \last / 2
.endm

.macro rotl x, n
    .if \n == 16
    p_ror \x, \x, t0
    .elseif \n == 12
    p_ror \x, \x, t1
    .elseif \n == 8
    p_ror \x, \x, t3
    .else
    p_ror \x, \x, s8
    .endif
.endm

# Instructions of a block, from the first of `first_double_round` on: 13 loads, 1 of the passes,
# 55 operations; the inner loop's set-up and its 96; 5 kept words of 4, 11 of 5; the counter.
.equ XPULP_BLOCK, 13 + 1 + 55 + 1 + 96 + 5 * 4 + 11 * 5 + 1

    .section .text.tenure_chacha_xpulp, "ax", @progbits
    .global tenure_chacha_xpulp
    .type tenure_chacha_xpulp, @function
    .balign 4
tenure_chacha_xpulp:
    save_registers
    .option push
    .option norvc
    mv t2, a0
    sub a0, a1, a0
    srli a0, a0, 6
    mv t4, a2
    lw t5, (64 + 48)(t4)
    lw t6, (64 + 16)(t4)
    lw ra, (64 + 32)(t4)
    lw s10, (64 + 20)(t4)
    lw s11, (64 + 24)(t4)
    li t0, 16
    li t1, 20
    li t3, 24
    li s8, 25
    lp_setup x1, a0, 4 * XPULP_BLOCK
    lw s9, 128(t4)
    first_double_round
    lp_setup x0, s9, 4 * 96
tenure_chacha_xpulp_loop:
    double_round
tenure_chacha_xpulp_loop_end:
    finish_kept a6, 16, t6, s9
    finish_kept s4, 32, ra, s9
    finish_kept a7, 20, s10, s9
    finish_kept s2, 24, s11, s9
    finish_kept a2, 48, t5, s9
    finish s3, 28, a6, s9
    finish s5, 36, a6, s9
    finish s6, 40, a6, s9
    finish s1, 4, a6, s9
    finish a0, 8, a6, s9
    finish a1, 12, a6, s9
    finish s7, 44, a6, s9
    finish a3, 52, a6, s9
    finish a4, 56, a6, s9
    finish a5, 60, a6, s9
    addi t5, t5, 1
    lw a6, 64(t4)
    lw s9, 0(t2)
    add s0, s0, a6
    xor s0, s0, s9
    p_sw s0, 64, t2
xpulp_block_end:
    .option pop
    restore_registers
    ret
    .size tenure_chacha_xpulp, . - tenure_chacha_xpulp
.purgem rotl
