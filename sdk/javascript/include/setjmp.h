/* The parser leaves by longjmp where a text isn't JavaScript. It runs on the computer that builds a machine alone,
 * which ends it there; on devices there is no parser. */
#pragma once

typedef int jmp_buf[1];

#define setjmp(PLACE) 0
_Noreturn void longjmp(jmp_buf place, int value);
