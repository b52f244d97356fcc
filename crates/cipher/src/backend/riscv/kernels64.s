# The kernels of `chacha.s` for RV64. Only the lower half of a register counts: additions and
# exclusive-ors let garbage into the upper half, the rotations of words ignore it.

.equ REGISTER_BYTES, 8
.macro save x, at
    sd \x, (8 * \at)(sp)
.endm
.macro restore x, at
    ld \x, (8 * \at)(sp)
.endm

.macro rotl x, n
    srliw t0, \x, 32 - \n
    slliw \x, \x, \n
    add \x, \x, t0
.endm
chacha_kernel tenure_chacha_scalar, 1, 0
.purgem rotl

.option push
.option arch, +zbb
.macro rotl x, n
    roriw \x, \x, 32 - \n
.endm
chacha_kernel tenure_chacha_rotate, 3, 1
chacha_kernel tenure_chacha_rotate_small, 1, 1
.purgem rotl
.option pop
