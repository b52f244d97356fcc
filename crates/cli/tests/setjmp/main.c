/* What C promises of setjmp and longjmp, a function for each. */
#include <setjmp.h>
#include <tenure.h>

#define NOINLINE __attribute__((noinline))

static jmp_buf outer, inner, kept;
static volatile int zero = 0;

static void reply(int first, int second, int third) {
    char text[48];
    snprintf(text, sizeof text, "%d %d %d", first, second, third);
    tenure_reply_text(text);
}

/* Frames of several types of results, and one with much in memory. */
struct large {
    int numbers[20];
};

static NOINLINE double real(int depth, int value);
static NOINLINE long long wide(int depth, int value);

static NOINLINE struct large large(int depth, int value) {
    struct large made;
    for (int at = 0; at < 20; at++) {
        made.numbers[at] = depth + at;
    }
    if (depth == 0 && value >= 0) {
        longjmp(outer, value);
    }
    made.numbers[depth] += depth > 0 ? (int)real(depth - 1, value) : 1;
    return made;
}

static NOINLINE float single(int depth, int value) {
    return (float)large(depth, value).numbers[3] / 2;
}

static NOINLINE double real(int depth, int value) {
    return 1.5 + (double)wide(depth, value) + (double)single(depth, value);
}

static NOINLINE long long wide(int depth, int value) {
    return depth == 0 ? 1 : (long long)large(depth - 1, value).numbers[0] << 20;
}

TENURE_EXPORT(deep) {
    volatile int rounds = 0;
    int came = setjmp(outer);
    rounds++;
    if (came < 3) {
        real(4, came + 1);
    }
    /* -1 doesn't jump. */
    reply(came, rounds, (int)real(2, -1));
}

TENURE_EXPORT(values) {
    volatile int from_zero = -1, negative = 0;
    int came = setjmp(outer);
    if (came == 0) {
        longjmp(outer, 0);
    }
    if (from_zero < 0) {
        from_zero = came;
        longjmp(outer, -7);
    }
    negative = came;
    reply(from_zero, negative, came);
}

static NOINLINE void jump(jmp_buf place, int value) {
    longjmp(place, value);
}

static NOINLINE int nested_inner(void) {
    volatile int seen = 0;
    int came = setjmp(inner);
    seen = seen * 10 + came;
    if (came == 0) {
        jump(inner, 1);
    } else if (came == 1) {
        jump(inner, 2);
    } else if (seen == 12) {
        jump(outer, seen);
    }
    return 99;
}

TENURE_EXPORT(nested) {
    volatile int changed = 5;
    int unchanged = 6;
    int came = setjmp(outer);
    if (came == 0) {
        changed = 7;
        nested_inner();
    }
    reply(came, changed, unchanged);
}

/* Two places in one function, in turn. */
TENURE_EXPORT(two) {
    volatile int first = 0, second = 0;
    if (setjmp(outer) == 0) {
        jump(outer, 1);
    } else if (first++ < 2) {
        if (setjmp(inner) == 0) {
            jump(inner, 1);
        }
        second++;
        jump(outer, 1);
    }
    reply(first, second, 0);
}

static int (*volatile visit)(int);

static int jumps_at(int at) {
    if (at == 5) {
        longjmp(outer, at);
    }
    return at;
}

static NOINLINE int each(int count, int (*visitor)(int)) {
    int sum = 0;
    for (int at = 0; at < count; at++) {
        sum += visitor(at);
    }
    return sum;
}

TENURE_EXPORT(callback) {
    volatile int sum = 0;
    visit = jumps_at;
    int came = setjmp(outer);
    if (came == 0) {
        sum = each(5, visit);
        sum += each(9, visit) * 1000;
    }
    reply(came, sum, 0);
}

/* Ten thousand of them leave nothing on the stack of 4 KiB. */
TENURE_EXPORT(often) {
    volatile int jumped = 0;
    for (volatile int round = 0; round < 10000; round++) {
        jmp_buf own;
        if (setjmp(own) == 0) {
            memcpy(outer, own, sizeof own);
            large(0, 1);
        } else {
            jumped++;
        }
    }
    reply(jumped, 0, 0);
}

static NOINLINE int asks(int depth) {
    if (depth > 0) {
        return asks(depth - 1) + 1;
    }
    struct tenure_result told = tenure_call_text("friend@cellar", "tell", NULL);
    int length = (int)told.length;
    free(told.value);
    tenure_sleep_ms(20);
    longjmp(outer, 100 + length);
}

/* Waits for another device between both, and has other variables then than other machines. */
TENURE_EXPORT(waits) {
    volatile int local = 3;
    int came = setjmp(outer);
    if (came == 0) {
        local = 4;
        asks(3);
    }
    struct tenure_result again = tenure_call_text("friend@cellar", "tell", NULL);
    reply(came, local, (int)again.length);
    free(again.value);
}

TENURE_EXPORT(jumper) {
    longjmp(outer, 3);
}

/* Calls a function that others can call, too. */
TENURE_EXPORT(own) {
    int came = setjmp(outer);
    if (came == 0) {
        tenure_export_jumper();
    }
    reply(came, 0, 0);
}

static NOINLINE void keeps(void) {
    if (setjmp(kept) != 0) {
        tenure_info("came back");
    }
}

TENURE_EXPORT(lost) {
    keeps();
    char room[256];
    memset(room, 7, sizeof room);
    if (zero == 0) {
        jump(kept, room[3]);
    }
}

static NOINLINE void traps(void) {
    if (zero == 0) {
        __builtin_trap(); /* the line of the fault */
    }
}

TENURE_EXPORT(fault) {
    if (setjmp(outer) == 0) {
        jump(outer, 1);
    }
    traps(); /* the line of the call */
}
