# What a function must hand back unchanged (RISC-V psABI: s0-s11 and ra), on 16-byte frames.

.macro save_registers
    addi sp, sp, -16 * REGISTER_BYTES
    save ra, 0
    save s0, 1
    save s1, 2
    save s2, 3
    save s3, 4
    save s4, 5
    save s5, 6
    save s6, 7
    save s7, 8
    save s8, 9
    save s9, 10
    save s10, 11
    save s11, 12
.endm

.macro restore_registers
    restore ra, 0
    restore s0, 1
    restore s1, 2
    restore s2, 3
    restore s3, 4
    restore s4, 5
    restore s5, 6
    restore s6, 7
    restore s7, 8
    restore s8, 9
    restore s9, 10
    restore s10, 11
    restore s11, 12
    addi sp, sp, 16 * REGISTER_BYTES
.endm
