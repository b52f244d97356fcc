@ ChaCha for ARMv7-M: no instruction rotates. A second operand may be rotated for nothing, so a
@ word is kept as it stands before its rotation, and whoever reads it rotates it.
@
@ Called as kernel(r0 data, r1 end of data, r2 plan): whole blocks, data aligned to 4 bytes,
@ r1 > r0. The plan is `super::Plan`; its counter, input[12], is advanced.
@
@   x0-x3 r0-r3    x4-x7 r4-r7    x8-x11 r8-r11    two of x12-x15 in r12 and lr, the others in
@   the frame: x12-x15 at 0, room for x8-x11 at 16, loop passes 32, data 36, end 40, plan 44

.syntax unified
.thumb

@ \b is to be rotated right by \rb when read, \d by \rd; after it, by 25 and 24.
.macro v7m_quarter a, b, c, d, rb, rd
    add \a, \a, \b, ror #\rb
    eor \d, \a, \d, ror #\rd
    add \c, \c, \d, ror #16
    eor \b, \c, \b, ror #\rb
    add \a, \a, \b, ror #20
    eor \d, \a, \d, ror #16
    add \c, \c, \d, ror #24
    eor \b, \c, \b, ror #20
.endm

@ The same when a += b is done, and neither \b nor \d (but for \rd) awaits a rotation.
.macro v7m_quarter_added a, b, c, d, rd
    .if \rd
    eor \d, \a, \d, ror #\rd
    .else
    eor \d, \a, \d
    .endif
    add \c, \c, \d, ror #16
    eor \b, \c, \b
    add \a, \a, \b, ror #20
    eor \d, \a, \d, ror #16
    add \c, \c, \d, ror #24
    eor \b, \c, \b, ror #20
.endm

@ Input words, data, result: \a-\d hold four output words before their rotation by \n, r0 or
@ what \t names is scratch; r12 data, lr input.
.macro v7m_finish a, b, c, d, n, t0, t1, t2, t3
    ldm lr!, {\t0, \t1, \t2, \t3}
    .if \n
    add \a, \t0, \a, ror #\n
    add \b, \t1, \b, ror #\n
    add \c, \t2, \c, ror #\n
    add \d, \t3, \d, ror #\n
    .else
    add \a, \t0, \a
    add \b, \t1, \b
    add \c, \t2, \c
    add \d, \t3, \d
    .endif
.endm

.macro v7m_xor_data a, b, c, d, t0, t1, t2, t3
    ldm r12, {\t0, \t1, \t2, \t3}
    eor \a, \a, \t0
    eor \b, \b, \t1
    eor \c, \c, \t2
    eor \d, \d, \t3
    stm r12!, {\a, \b, \c, \d}
.endm

    .section .text.tenure_chacha_armv7m, "ax", %progbits
    .global tenure_chacha_armv7m
    .type tenure_chacha_armv7m, %function
    .thumb_func
    .balign 4
tenure_chacha_armv7m:
    push {r4-r11, lr}
    sub sp, sp, #52
    strd r0, r1, [sp, #36]
    str r2, [sp, #44]
10: @ Each block. The plan's start has done what does not depend on the counter.
    ldr lr, [sp, #44]
    ldr r0, [lr, #128]
    str r0, [sp, #32]
    ldr r0, [lr, #52]
    str r0, [sp, #4]
    ldrd r0, r1, [lr, #56]
    strd r0, r1, [sp, #8]
    ldr r12, [lr, #112]
    ldm lr, {r0-r11}
    v7m_quarter_added r0, r4, r8, r12, 0
    v7m_quarter_added r1, r6, r11, r12, 24
    @ x2, x7, x8, x13: x13 = (x13 ^ x2) <<< 16 is done too.
    ldr lr, [sp, #4]
    add r8, r8, lr
    eor r7, r8, r7
    add r2, r2, r7, ror #20
    eor lr, r2, lr
    add r8, r8, lr, ror #24
    eor r7, r8, r7, ror #20
    strd r12, lr, [sp]
    ldrd r12, lr, [sp, #8]
    @ x0, x5, x10, x15, of which x5 and x15 await no rotation.
    add r0, r0, r5
    v7m_quarter_added r0, r5, r10, lr, 0
    @ x3, x4, x9, x14, of which x14 awaits none.
    add r3, r3, r4, ror #25
    eor r12, r3, r12
    add r9, r9, r12, ror #16
    eor r4, r9, r4, ror #25
    add r3, r3, r4, ror #20
    eor r12, r3, r12, ror #16
    add r9, r9, r12, ror #24
    eor r4, r9, r4, ror #20
    strd r12, lr, [sp, #8]
    ldrd r12, lr, [sp]
tenure_chacha_armv7m_loop: @ Each double round.
    v7m_quarter r0, r4, r8, r12, 25, 24
    v7m_quarter r1, r5, r9, lr, 25, 24
    strd r12, lr, [sp]
    ldr r12, [sp, #32]
    subs r12, r12, #1
    str r12, [sp, #32]
    ldrd r12, lr, [sp, #8]
    v7m_quarter r2, r6, r10, r12, 25, 24
    v7m_quarter r3, r7, r11, lr, 25, 24
    v7m_quarter r0, r5, r10, lr, 25, 24
    v7m_quarter r3, r4, r9, r12, 25, 24
    strd r12, lr, [sp, #8]
    ldrd r12, lr, [sp]
    v7m_quarter r1, r6, r11, r12, 25, 24
    v7m_quarter r2, r7, r8, lr, 25, 24
    bne tenure_chacha_armv7m_loop
tenure_chacha_armv7m_loop_end:

    strd r12, lr, [sp]
    add r12, sp, #16
    stm r12, {r8-r11}
    ldr r12, [sp, #36]
    ldr lr, [sp, #44]
    add lr, lr, #64
    v7m_finish r0, r1, r2, r3, 0, r8, r9, r10, r11
    v7m_xor_data r0, r1, r2, r3, r8, r9, r10, r11
    v7m_finish r4, r5, r6, r7, 25, r0, r1, r2, r3
    v7m_xor_data r4, r5, r6, r7, r0, r1, r2, r3
    add r4, sp, #16
    ldm r4, {r4-r7}
    v7m_finish r4, r5, r6, r7, 0, r0, r1, r2, r3
    v7m_xor_data r4, r5, r6, r7, r0, r1, r2, r3
    ldm sp, {r4-r7}
    v7m_finish r4, r5, r6, r7, 24, r0, r1, r2, r3
    add r0, r0, #1
    str r0, [lr, #-16]
    v7m_xor_data r4, r5, r6, r7, r0, r1, r2, r3
    str r12, [sp, #36]
    ldr r0, [sp, #40]
    cmp r12, r0
    bne 10b

    @ Leave nothing of the state in the frame.
    movs r0, #0
    movs r1, #0
    strd r0, r1, [sp]
    strd r0, r1, [sp, #8]
    strd r0, r1, [sp, #16]
    strd r0, r1, [sp, #24]
    add sp, sp, #52
    pop {r4-r11, pc}
    .size tenure_chacha_armv7m, . - tenure_chacha_armv7m
