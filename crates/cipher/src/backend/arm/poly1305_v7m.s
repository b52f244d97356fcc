@ Poly1305 for ARMv7-M: words of 32 bits, `umlal` carries the columns.
@
@ Called as kernel(r0 state, r1 data, r2 end of data, r3 top): whole blocks, data aligned to 4
@ bytes, r2 > r1. The state is `PolyState`: h0-h4, then r0-r3 (here called R0-R3).
@
@ Since R < 2^124 with R1-R3 multiples of 4, 2^128 * R[i] is S[i] = R[i] + R[i] / 4, and a column's
@ upper half plus h4 * S[i] fits 32 bits.
@
@   h0-h4 r4-r8    R0 r0    data r1    the columns r9 r10 r11 r12 lr    scratch r2 r3
@   frame: S3 0, S2 4, S1 8, R1 12, S3 16, R2 20, R3 24, top 28, end 32, state 36

    .section .text.tenure_poly1305_armv7m, "ax", %progbits
    .global tenure_poly1305_armv7m
    .type tenure_poly1305_armv7m, %function
    .thumb_func
    .balign 4
tenure_poly1305_armv7m:
    push {r4-r11, lr}
    sub sp, sp, #44
    str r3, [sp, #28]
    strd r2, r0, [sp, #32]
    ldm r0!, {r4-r8}
    ldm r0, {r0, r2, r3, r12}
    str r2, [sp, #12]
    str r3, [sp, #20]
    str r12, [sp, #24]
    add r2, r2, r2, lsr #2
    add r3, r3, r3, lsr #2
    add r12, r12, r12, lsr #2
    strd r12, r3, [sp]
    str r2, [sp, #8]
    str r12, [sp, #16]
20: @ Each block: h += m + top * 2^128.
    ldm r1!, {r2, r3, r9, r10}
    ldr r11, [sp, #28]
    adds r4, r4, r2
    adcs r5, r5, r3
    adcs r6, r6, r9
    adcs r7, r7, r10
    adc r8, r8, r11

    ldrd r2, r3, [sp]
    umull r9, r10, r4, r0
    umlal r9, r10, r5, r2
    umlal r9, r10, r6, r3
    ldr r2, [sp, #8]
    umlal r9, r10, r7, r2

    mla r10, r8, r2, r10
    mov r11, #0
    umlal r10, r11, r7, r3
    ldrd r2, r3, [sp, #12]
    umlal r10, r11, r4, r2
    umlal r10, r11, r5, r0
    umlal r10, r11, r6, r3

    ldr r12, [sp, #4]
    mla r11, r8, r12, r11
    mov r12, #0
    ldr lr, [sp, #20]
    umlal r11, r12, r7, r3
    umlal r11, r12, r5, r2
    umlal r11, r12, r6, r0
    umlal r11, r12, r4, lr

    mla r12, r8, r3, r12
    mov r3, lr
    mov lr, #0
    umlal r12, lr, r5, r3
    umlal r12, lr, r6, r2
    ldr r2, [sp, #24]
    umlal r12, lr, r7, r0
    umlal r12, lr, r4, r2
    mla lr, r8, r0, lr

    @ What stands above bit 130 comes back five times.
    and r8, lr, #3
    bic lr, lr, #3
    add lr, lr, lr, lsr #2
    adds r4, r9, lr
    adcs r5, r10, #0
    adcs r6, r11, #0
    adcs r7, r12, #0
    adc r8, r8, #0
    ldr r2, [sp, #32]
    cmp r1, r2
    bne 20b

    ldr r0, [sp, #36]
    stm r0, {r4-r8}
    @ Leave nothing of the key in the frame.
    movs r2, #0
    movs r3, #0
    strd r2, r3, [sp]
    strd r2, r3, [sp, #8]
    strd r2, r3, [sp, #16]
    str r2, [sp, #24]
    add sp, sp, #44
    pop {r4-r11, pc}
    .size tenure_poly1305_armv7m, . - tenure_poly1305_armv7m
