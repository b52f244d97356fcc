@ ChaCha for ARMv6-M: eight registers that can be computed with. Four hold a quarter round, four
@ the rotations (`rors` takes them from registers), and the state stands in the frame, in the order
@ in which the next round loads it: four words with one `ldm`.
@
@ Called as kernel(r0 data, r1 end of data, r2 plan): whole blocks, data aligned to 4 bytes,
@ r1 > r0. The plan is `super::ThumbPlan`: the start in the order of the diagonals at 0, then
@ x0 x4 x8 at 64 with the counter, input[12], moved behind them at 76 for each block; the input at
@ 80; the passes at 144.
@
@   rotations right by 16, 20, 24, 25: r4-r7
@   pass r8, passes r9, 1 r10, 0 r11, plan r12, data lr
@   frame: by columns (x0 x4 x8 x12, x1 …) at 0, by diagonals (x0 x5 x10 x15, x1 …) at 64, end 128

.syntax unified
.thumb

.macro v6m_quarter_rest
    adds r2, r2, r3
    eors r1, r2
    rors r1, r5
    adds r0, r0, r1
    eors r3, r0
    rors r3, r6
    adds r2, r2, r3
    eors r1, r2
    rors r1, r7
.endm

.macro v6m_quarter_added
    eors r3, r0
    rors r3, r4
    v6m_quarter_rest
.endm

.macro v6m_quarter
    adds r0, r0, r1
    v6m_quarter_added
.endm

@ Stores at the byte offsets given.
.macro v6m_store a, b, c, d
    str r0, [sp, #\a]
    str r1, [sp, #\b]
    str r2, [sp, #\c]
    str r3, [sp, #\d]
.endm

.macro v6m_round_quarter from, a, b, c, d
    add r0, sp, #\from
    ldm r0, {r0, r1, r2, r3}
    v6m_quarter
    v6m_store \a, \b, \c, \d
.endm

@ Where the plan's words at \from are; r0-r3.
.macro v6m_load_plan from
    mov r0, r12
    adds r0, #\from
    ldm r0, {r0, r1, r2, r3}
.endm

@ One row of the output: its words stand at \at, 16 bytes apart; r6 input, r7 data.
.macro v6m_finish at
    ldr r0, [sp, #\at]
    ldr r1, [sp, #(\at + 16)]
    ldr r2, [sp, #(\at + 32)]
    ldr r3, [sp, #(\at + 48)]
    ldm r6!, {r4, r5}
    adds r0, r0, r4
    adds r1, r1, r5
    ldm r6!, {r4, r5}
    adds r2, r2, r4
    adds r3, r3, r5
    ldr r4, [r7]
    eors r0, r4
    ldr r4, [r7, #4]
    eors r1, r4
    ldr r4, [r7, #8]
    eors r2, r4
    ldr r4, [r7, #12]
    eors r3, r4
    stm r7!, {r0, r1, r2, r3}
.endm

    .section .text.tenure_chacha_armv6m, "ax", %progbits
    .global tenure_chacha_armv6m
    .type tenure_chacha_armv6m, %function
    .thumb_func
    .balign 4
tenure_chacha_armv6m:
    push {r4-r7, lr}
    mov r4, r8
    mov r5, r9
    mov r6, r10
    mov r7, r11
    push {r4-r7}
    sub sp, sp, #132
    str r1, [sp, #128]
    mov lr, r0
    mov r12, r2
    movs r0, #0
    mov r11, r0
    movs r0, #1
    mov r10, r0
    adds r2, #128
    ldr r0, [r2, #16]
    mov r9, r0
10: @ Each block. The plan's start has done what does not depend on the counter.
    mov r8, r11
    movs r4, #16
    movs r5, #20
    movs r6, #24
    movs r7, #25
    v6m_load_plan 64
    v6m_quarter_added
    str r1, [sp, #116]
    str r2, [sp, #104]
    str r3, [sp, #92]
    mov r3, r12
    ldr r1, [r3, #4]
    ldr r2, [r3, #8]
    ldr r3, [r3, #12]
    v6m_quarter
    v6m_store 0, 20, 40, 60
    v6m_load_plan 16
    ldr r3, [sp, #92]
    v6m_quarter_added
    v6m_store 16, 36, 56, 12
    v6m_load_plan 32
    ldr r2, [sp, #104]
    v6m_quarter_rest
    v6m_store 32, 52, 8, 28
    v6m_load_plan 48
    ldr r1, [sp, #116]
    v6m_quarter
    v6m_store 48, 4, 24, 44
tenure_chacha_armv6m_loop: @ Each double round.
    v6m_round_quarter 0, 64, 116, 104, 92
    v6m_round_quarter 16, 80, 68, 120, 108
    v6m_round_quarter 32, 96, 84, 72, 124
    v6m_round_quarter 48, 112, 100, 88, 76
    v6m_round_quarter 64, 0, 20, 40, 60
    v6m_round_quarter 80, 16, 36, 56, 12
    v6m_round_quarter 96, 32, 52, 8, 28
    v6m_round_quarter 112, 48, 4, 24, 44
    add r8, r10
    cmp r8, r9
    beq tenure_chacha_armv6m_loop_end
    b tenure_chacha_armv6m_loop
tenure_chacha_armv6m_loop_end:
    mov r6, r12
    adds r6, #80
    mov r7, lr
    v6m_finish 0
    v6m_finish 4
    v6m_finish 8
    v6m_finish 12
    mov lr, r7
    @ The counter, for the start and for the end of the next block.
    mov r6, r12
    ldr r4, [r6, #76]
    adds r4, r4, #1
    str r4, [r6, #76]
    adds r6, #128
    str r4, [r6]
    ldr r4, [sp, #128]
    cmp r7, r4
    beq 13f
    b 10b
13:
    @ Leave nothing of the state in the frame.
    movs r0, #0
    movs r1, #0
    movs r2, #0
    movs r3, #0
    mov r4, sp
    .rept 8
    stm r4!, {r0, r1, r2, r3}
    .endr
    add sp, sp, #132
    pop {r4-r7}
    mov r8, r4
    mov r9, r5
    mov r10, r6
    mov r11, r7
    pop {r4-r7, pc}
    .size tenure_chacha_armv6m, . - tenure_chacha_armv6m
