@ Poly1305 for ARMv6-M, whose one multiplication gives 32 bits: ten limbs of 13 bits, so that a
@ column of ten products, five times over where it wraps at 2^130, still fits.
@
@ (The worst column: limbs of the clamped r have 13 bits but for limb 4 with 8 and limb 9 with 7;
@ 1 + 5 * (7 + 1/32 + 1/64) = 36.2; times 2^13 for r and 1.07 * 2^13 for h, below 2^31.3.)
@
@ Called as kernel(r0 work, r1 data, r2 end of data, r3 top << 11): whole blocks, data aligned to
@ 4 bytes, r2 > r1. The work area is `super::Limbs`:
@   at 0   5 r1, 5 r2, … 5 r9, r0, r1, … r9
@   at 76  h9, h8, … h0, in any number of bits up to 31 at the call and afterwards
@
@   columns 0-4 r3-r7, 5-9 r8-r12, work area lr; scratch r0 r1 r2
@   frame: data 0, end 4, top 8

@ Adds message bits (in r2) and the carry (in r1) to \x, leaves the next carry in r1, and stores the
@ 13 bits that remain at \at of the work area, r0.
.macro v6m_limb x, at
    adds \x, \x, r2
    adds \x, \x, r1
    lsrs r1, \x, #13
    lsls \x, \x, #19
    lsrs \x, \x, #19
    str \x, [r0, #\at]
.endm

    .section .text.tenure_poly1305_armv6m, "ax", %progbits
    .global tenure_poly1305_armv6m
    .type tenure_poly1305_armv6m, %function
    .thumb_func
    .balign 4
tenure_poly1305_armv6m:
    push {r4-r7, lr}
    mov r4, r8
    mov r5, r9
    mov r6, r10
    mov r7, r11
    push {r4-r7}
    sub sp, sp, #12
    str r1, [sp]
    str r2, [sp, #4]
    str r3, [sp, #8]
    mov lr, r0
    adds r0, #76
    ldm r0!, {r3, r4, r5, r6, r7}
    mov r12, r3
    mov r11, r4
    mov r10, r5
    mov r9, r6
    mov r8, r7
    ldm r0!, {r3, r4, r5, r6, r7}
    @ h4 to h0 came in r3-r7: turn them round.
    mov r0, r3
    mov r3, r7
    mov r7, r0
    mov r0, r4
    mov r4, r6
    mov r6, r0
20: @ Each block: the columns become limbs again, and the message is added on the way.
    mov r0, lr
    push {r7}
    ldr r7, [sp, #4]
    ldr r1, [r7]
    lsls r2, r1, #19
    lsrs r2, r2, #19
    adds r3, r3, r2
    lsls r2, r1, #6
    lsrs r2, r2, #19
    adds r4, r4, r2
    lsrs r2, r1, #26
    adds r5, r5, r2
    ldr r1, [r7, #4]
    lsls r2, r1, #25
    lsrs r2, r2, #19
    adds r5, r5, r2
    lsls r2, r1, #12
    lsrs r2, r2, #19
    adds r6, r6, r2
    lsrs r2, r1, #20
    ldr r1, [r7, #8]
    lsls r1, r1, #31
    lsrs r1, r1, #19
    adds r2, r2, r1
    pop {r7}
    adds r7, r7, r2
    @ Columns 0-4 carry.
    lsrs r1, r3, #13
    lsls r3, r3, #19
    lsrs r3, r3, #19
    adds r4, r4, r1
    lsrs r1, r4, #13
    lsls r4, r4, #19
    lsrs r4, r4, #19
    adds r5, r5, r1
    lsrs r1, r5, #13
    lsls r5, r5, #19
    lsrs r5, r5, #19
    str r5, [r0, #104]
    adds r6, r6, r1
    lsrs r1, r6, #13
    lsls r6, r6, #19
    lsrs r6, r6, #19
    str r6, [r0, #100]
    adds r7, r7, r1
    lsrs r1, r7, #13
    lsls r7, r7, #19
    lsrs r7, r7, #19
    str r7, [r0, #96]
    @ Columns 5-9, with the message's last two words in r6 and r7.
    ldr r5, [sp]
    ldr r6, [r5, #8]
    ldr r7, [r5, #12]
    adds r5, #16
    str r5, [sp]
    mov r5, r8
    lsls r2, r6, #18
    lsrs r2, r2, #19
    v6m_limb r5, 92
    mov r5, r9
    lsls r2, r6, #5
    lsrs r2, r2, #19
    v6m_limb r5, 88
    mov r5, r10
    lsrs r2, r6, #27
    adds r5, r5, r2
    lsls r2, r7, #24
    lsrs r2, r2, #19
    v6m_limb r5, 84
    mov r5, r11
    lsls r2, r7, #11
    lsrs r2, r2, #19
    v6m_limb r5, 80
    mov r5, r12
    lsrs r2, r7, #21
    adds r5, r5, r2
    ldr r2, [sp, #8]
    v6m_limb r5, 76
    @ 2^130 is 5: the last carry comes back five times, into h0 and, once more carried, h1.
    lsls r2, r1, #2
    adds r2, r2, r1
    adds r3, r3, r2
    lsrs r1, r3, #13
    lsls r3, r3, #19
    lsrs r3, r3, #19
    str r3, [r0, #112]
    adds r4, r4, r1
    str r4, [r0, #108]

    @ h * r, row by row: r0 walks from r0's place down to 5 r1's, the limb of h always 76 above.
    movs r3, #0
    movs r4, #0
    movs r5, #0
    movs r6, #0
    movs r7, #0
    mov r8, r3
    mov r9, r3
    mov r10, r3
    mov r11, r3
    mov r12, r3
    adds r0, #36
21:
    ldr r1, [r0, #76]
    ldr r2, [r0]
    muls r2, r1, r2
    adds r3, r3, r2
    ldr r2, [r0, #4]
    muls r2, r1, r2
    adds r4, r4, r2
    ldr r2, [r0, #8]
    muls r2, r1, r2
    adds r5, r5, r2
    ldr r2, [r0, #12]
    muls r2, r1, r2
    adds r6, r6, r2
    ldr r2, [r0, #16]
    muls r2, r1, r2
    adds r7, r7, r2
    ldr r2, [r0, #20]
    muls r2, r1, r2
    add r8, r2
    ldr r2, [r0, #24]
    muls r2, r1, r2
    add r9, r2
    ldr r2, [r0, #28]
    muls r2, r1, r2
    add r10, r2
    ldr r2, [r0, #32]
    muls r2, r1, r2
    add r11, r2
    ldr r2, [r0, #36]
    muls r2, r1, r2
    add r12, r2
    subs r0, #4
    cmp r0, lr
    bhs 21b

    ldr r1, [sp]
    ldr r2, [sp, #4]
    cmp r1, r2
    beq 22f
    b 20b
22:
    mov r0, lr
    adds r0, #96
    str r7, [r0]
    str r6, [r0, #4]
    str r5, [r0, #8]
    str r4, [r0, #12]
    str r3, [r0, #16]
    subs r0, #20
    mov r3, r12
    mov r4, r11
    mov r5, r10
    mov r6, r9
    mov r7, r8
    stm r0!, {r3, r4, r5, r6, r7}
    add sp, sp, #12
    pop {r4-r7}
    mov r8, r4
    mov r9, r5
    mov r10, r6
    mov r11, r7
    pop {r4-r7, pc}
    .size tenure_poly1305_armv6m, . - tenure_poly1305_armv6m
