@ Products of many limbs on ARMv6-M. MULS leaves the carry alone and takes halves of 16 bits here, so that
@ none of the four products of a pair of limbs loses a bit. No branch depends on a limb.
@
@ `row` adds the product of a number and one limb to a sum, limb by limb:
@   r0 number, r1 sum, r10 end of number, r8 and r9 lower and upper half of the factor, r2 carry
@   returns r0 = r10, r1 behind the sum's last limb, r2 carry; uses r3-r7
@ It is entered at a limb at least.

.macro enter
    push {r4-r7, lr}
    mov r4, r8
    mov r5, r9
    mov r6, r10
    mov r7, r11
    push {r4-r7}
.endm

.macro leave
    pop {r4-r7}
    mov r8, r4
    mov r9, r5
    mov r10, r6
    mov r11, r7
    pop {r4-r7, pc}
.endm

@ The halves of \factor to r8 and r9.
.macro halve factor, scratch
    uxth \scratch, \factor
    mov r8, \scratch
    lsrs \factor, \factor, #16
    mov r9, \factor
.endm

@ One limb of `row`.
.macro limb
    ldm r0!, {r3}
    lsrs r4, r3, #16
    uxth r3, r3
    mov r7, r8
    muls r7, r3, r7     @ low * low
    mov r5, r9
    muls r3, r5, r3     @ low * high
    muls r5, r4, r5     @ high * high
    mov r6, r8
    muls r4, r6, r4     @ high * low
    adds r3, r3, r4
    movs r4, #0
    adcs r4, r4
    lsls r4, r4, #16
    ldr r6, [r1]
    adds r6, r6, r2
    adcs r5, r4
    lsls r4, r3, #16
    lsrs r3, r3, #16
    adds r7, r7, r4
    adcs r5, r3
    adds r7, r7, r6
    movs r2, #0
    adcs r2, r5
    stm r1!, {r7}
.endm

    .section .text.tenure_add, "ax", %progbits
    .global tenure_add
    .type tenure_add, %function
    .thumb_func
    .balign 4
@ r0 sum, r1 number, r2 limbs, r3 mask; returns the carry.
tenure_add:
    push {r4-r6, lr}
    lsls r2, r2, #2
    adds r2, r2, r0
    movs r6, #0
1:
    ldm r1!, {r4}
    ands r4, r3
    ldr r5, [r0]
    lsrs r6, r6, #1     @ to the carry
    adcs r5, r4
    stm r0!, {r5}
    adcs r6, r6         @ and back
    cmp r0, r2
    bne 1b
    mov r0, r6
    pop {r4-r6, pc}

    .section .text.tenure_add_small, "ax", %progbits
    .global tenure_add_small
    .type tenure_add_small, %function
    .thumb_func
    .balign 4
@ r0 sum, r1 columns, r2 limbs; returns the carry, which has a sign.
tenure_add_small:
    push {r4-r5, lr}
    lsls r2, r2, #2
    adds r2, r2, r0
    movs r5, #0
1:
    ldm r1!, {r4}
    adds r4, r4, r5
    asrs r5, r4, #31
    ldr r3, [r0]
    adds r3, r3, r4
    stm r0!, {r3}
    movs r4, #0
    adcs r5, r4
    cmp r0, r2
    bne 1b
    mov r0, r5
    pop {r4-r5, pc}

    .section .text.tenure_subtract, "ax", %progbits
    .global tenure_subtract
    .type tenure_subtract, %function
    .thumb_func
    .balign 4
@ r0 difference, r1 number, r2 limbs, r3 mask; returns the borrow.
tenure_subtract:
    push {r4-r6, lr}
    lsls r2, r2, #2
    adds r2, r2, r0
    movs r6, #1         @ no borrow is a carry
1:
    ldm r1!, {r4}
    ands r4, r3
    ldr r5, [r0]
    lsrs r6, r6, #1
    sbcs r5, r4
    stm r0!, {r5}
    adcs r6, r6
    cmp r0, r2
    bne 1b
    movs r0, #1
    subs r0, r0, r6
    pop {r4-r6, pc}

    .section .text.tenure_multiply_row, "ax", %progbits
    .type tenure_multiply_row, %function
    .thumb_func
    .balign 4
tenure_multiply_row:
    mov r3, r10
    subs r3, r3, r0
    lsls r3, r3, #29    @ the sign is bit 2 of the length in bytes: an odd number of limbs
    bpl 2f
    limb
    cmp r0, r10
    beq 3f
2:
    limb
    limb
    cmp r0, r10
    bne 2b
3:
    bx lr

    .section .text.tenure_multiply_add, "ax", %progbits
    .global tenure_multiply_add
    .type tenure_multiply_add, %function
    .thumb_func
    .balign 4
@ r0 sum, r1 number, r2 limbs, r3 factor; returns the limb above.
tenure_multiply_add:
    enter
    halve r3, r4
    lsls r2, r2, #2
    adds r2, r2, r1
    mov r10, r2
    mov r4, r0
    mov r0, r1
    mov r1, r4
    movs r2, #0
    bl tenure_multiply_row
    mov r0, r2
    leave

    .section .text.tenure_multiply, "ax", %progbits
    .global tenure_multiply
    .type tenure_multiply, %function
    .thumb_func
    .balign 4
@ r0 product, r1 one, r2 other, r3 limbs.
tenure_multiply:
    enter
    sub sp, sp, #12
    str r0, [sp]
    str r1, [sp, #4]
    str r2, [sp, #8]
    lsls r3, r3, #2
    adds r1, r1, r3
    mov r10, r1
    adds r2, r2, r3
    mov r11, r2
    adds r3, r3, r0
    movs r4, #0
1:
    stm r0!, {r4}
    cmp r0, r3
    bne 1b
2:
    ldr r0, [sp, #8]
    ldm r0!, {r3}
    str r0, [sp, #8]
    halve r3, r4
    ldr r0, [sp, #4]
    ldr r1, [sp]
    adds r3, r1, #4
    str r3, [sp]
    movs r2, #0
    bl tenure_multiply_row
    str r2, [r1]
    ldr r0, [sp, #8]
    cmp r0, r11
    bne 2b
    add sp, sp, #12
    leave

    .section .text.tenure_square, "ax", %progbits
    .global tenure_square
    .type tenure_square, %function
    .thumb_func
    .balign 4
@ r0 product, r1 number, r2 limbs. First what lies beside the diagonal, then twice that and the diagonal.
tenure_square:
    enter
    sub sp, sp, #16
    str r0, [sp]        @ the product
    str r1, [sp, #4]    @ the number
    str r1, [sp, #8]    @ the factor's place
    lsls r2, r2, #2
    adds r1, r1, r2
    mov r10, r1
    adds r2, r2, r2
    adds r2, r2, r0
    adds r3, r0, #4
    str r3, [sp, #12]   @ the row's place
    movs r3, #0
1:
    stm r0!, {r3}
    cmp r0, r2
    bne 1b
2:
    ldr r0, [sp, #8]
    ldm r0!, {r3}
    cmp r0, r10
    beq 3f
    str r0, [sp, #8]
    halve r3, r4
    ldr r1, [sp, #12]
    mov r3, r1
    adds r3, r3, #8
    str r3, [sp, #12]
    movs r2, #0
    bl tenure_multiply_row
    str r2, [r1]
    b 2b
3:
    ldr r0, [sp]
    ldr r1, [sp, #4]
    movs r2, #0
4:
    ldm r1!, {r3}
    uxth r4, r3
    lsrs r3, r3, #16
    mov r5, r4
    muls r5, r3, r5
    muls r4, r4, r4
    muls r3, r3, r3
    lsls r6, r5, #17
    lsrs r5, r5, #15
    adds r4, r4, r6
    adcs r3, r5         @ r4, r3: the limb's square
    ldr r5, [r0]
    ldr r6, [r0, #4]
    movs r7, #0
    adds r5, r5, r5
    adcs r6, r6
    adcs r7, r7
    adds r5, r5, r2
    movs r2, #0
    adcs r6, r2
    adcs r7, r2
    adds r5, r5, r4
    adcs r6, r3
    adcs r2, r7
    stm r0!, {r5, r6}
    cmp r1, r10
    bne 4b
    add sp, sp, #16
    leave

@ Adds r1 and r2, or subtracts them, to the column \distance bytes above r0.
.macro fold_to distance, low, high
    mov r3, \distance
    adds r3, r3, r0
    ldr r4, [r3]
    ldr r5, [r3, #4]
    \low r4, r4, r1
    \high r5, r2
    str r4, [r3]
    str r5, [r3, #4]
.endm

    .section .text.tenure_fold, "ax", %progbits
    .global tenure_fold
    .type tenure_fold, %function
    .thumb_func
    .balign 4
@ r0 columns of 64 bits, r1 limbs, r2 three distances in bytes and a mask. From the top down, adds each column above
@ the limbs to the one at its weight and the first distance above, subtracts it at the second, and adds it at the
@ third, or subtracts it if the mask is all ones.
tenure_fold:
    enter
    ldm r2!, {r4, r5, r6, r7}
    mov r8, r4
    mov r9, r5
    mov r10, r6
    mov r11, r7
    lsls r1, r1, #3
    mov r12, r1
    mov lr, r0
    adds r0, r0, r1
1:
    subs r0, r0, #8
    mov r3, r12
    adds r3, r3, r0
    ldr r1, [r3]
    ldr r2, [r3, #4]
    ldr r4, [r0]
    ldr r5, [r0, #4]
    adds r4, r4, r1
    adcs r5, r2
    str r4, [r0]
    str r5, [r0, #4]
    fold_to r8, adds, adcs
    fold_to r9, subs, sbcs
    mov r6, r11
    eors r1, r6
    eors r2, r6
    subs r1, r1, r6
    sbcs r2, r6
    fold_to r10, adds, adcs
    cmp r0, lr
    bne 1b
    leave
