# The kernels of `chacha.s` for RV32.

.equ REGISTER_BYTES, 4
.macro save x, at
    sw \x, (4 * \at)(sp)
.endm
.macro restore x, at
    lw \x, (4 * \at)(sp)
.endm

# c.slli and c.add take two bytes each, whatever the register.
.macro rotl x, n
    srli t0, \x, 32 - \n
    slli \x, \x, \n
    add \x, \x, t0
.endm
chacha_kernel tenure_chacha_scalar, 1, 0
.purgem rotl

.option push
.option arch, +zbb
.macro rotl x, n
    rori \x, \x, 32 - \n
.endm
chacha_kernel tenure_chacha_rotate, 3, 1
chacha_kernel tenure_chacha_rotate_small, 1, 1
.purgem rotl
.option pop

.option push
.option arch, +m
poly1305_kernel tenure_poly1305_rv32
.option pop
