/* Functions that call one another, note places and jump to them, as chance has it: the same on any computer. */
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLACES_MAX 8
#define DEPTH_MAX 14

static uint32_t chance, trace;
static int steps;
/* The places of the functions that run. */
static jmp_buf *places[PLACES_MAX];
static volatile int places_count;

static uint32_t next(uint32_t below) {
    chance = chance * 1664525u + 1013904223u;
    return (chance >> 16) % below;
}

static void note(uint32_t value) {
    trace = (trace ^ value) * 16777619u;
}

static int walk(int depth, int salt);
static int64_t walk_wide(int depth, int salt);
static double walk_real(int depth, int salt);
static void walk_only(int depth, int salt);
static int catches(int depth, int salt);
static int loops(int depth, int salt);

static int (*const by_pointer[])(int, int) = {walk, catches, loops};
static double (*const real_by_pointer[])(int, int) = {walk_real};

/* One step: a call, a jump or nothing. */
static int step(int depth, int salt) {
    note((uint32_t)(depth * 100 + salt));
    if (steps-- <= 0 || depth >= DEPTH_MAX) {
        return salt;
    }
    /* One after the other: C leaves the order of arguments to the compiler. */
    uint32_t choice = next(10), which = next(30);
    int other = (int)next(50);
    switch (choice) {
    case 0:
        return walk(depth + 1, other);
    case 1:
        return (int)walk_wide(depth + 1, other);
    case 2:
        return (int)walk_real(depth + 1, other);
    case 3:
        walk_only(depth + 1, other);
        return 3;
    case 4:
    case 5:
        return by_pointer[which % 3](depth + 1, other);
    case 6:
        return (int)real_by_pointer[which % 1](depth + 1, other);
    case 7:
        return places_count < PLACES_MAX ? catches(depth + 1, other) : 7;
    case 8:
        return places_count < PLACES_MAX ? loops(depth + 1, other) : 8;
    default:
        if (places_count > 0) {
            longjmp(*places[which % (uint32_t)places_count], other % 4);
        }
        return 9;
    }
}

static int walk(int depth, int salt) {
    int sum = salt;
    for (int at = 0; at < 3; at++) {
        sum += step(depth, at) % 1000;
    }
    note((uint32_t)sum);
    return sum;
}

static int64_t walk_wide(int depth, int salt) {
    int64_t sum = (int64_t)salt << 33;
    sum += step(depth, salt) % 1000;
    sum -= step(depth, salt + 1) % 1000;
    note((uint32_t)(sum >> 30));
    return sum >> 30;
}

static double walk_real(int depth, int salt) {
    double sum = salt * 0.5;
    sum += step(depth, salt) % 1000;
    note((uint32_t)(int)sum);
    return sum;
}

static void walk_only(int depth, int salt) {
    note((uint32_t)(step(depth, salt) % 1000));
}

static int catches(int depth, int salt) {
    jmp_buf place;
    volatile int mine = places_count, local = salt;
    char room[40];
    if (mine >= PLACES_MAX) {
        return salt;
    }
    memset(room, salt, sizeof room);
    int came = setjmp(place);
    places[mine] = &place;
    places_count = mine + 1;
    note((uint32_t)(came * 31 + local + room[11]));
    local = local + 1;
    int sum = 1;
    if (local < salt + 4) {
        sum = step(depth, salt) % 1000;
        sum += step(depth, came) % 1000;
    }
    places_count = mine;
    note((uint32_t)(local + room[33]));
    return sum;
}

static int loops(int depth, int salt) {
    volatile int sum = salt, mine = places_count;
    if (mine >= PLACES_MAX) {
        return salt;
    }
    for (volatile int round = 0; round < 3; round++) {
        jmp_buf place;
        switch (setjmp(place)) {
        case 0:
            places[mine] = &place;
            places_count = mine + 1;
            sum += step(depth, round) % 1000;
            break;
        case 1:
            sum += 100;
            break;
        default:
            sum -= 1;
            continue;
        }
        places_count = mine;
        note((uint32_t)sum);
    }
    places_count = mine;
    return sum;
}

static uint32_t run(uint32_t seed) {
    chance = seed;
    trace = 2166136261u;
    steps = 400;
    places_count = 0;
    for (int at = 0; at < 20; at++) {
        note((uint32_t)catches(0, at));
    }
    return trace;
}

#ifdef __wasm__
#include <tenure.h>

TENURE_EXPORT(run) {
    char *seed = tenure_parameter(NULL);
    char text[16];
    snprintf(text, sizeof text, "%u", (unsigned)run((uint32_t)atoi(seed)));
    free(seed);
    tenure_reply_text(text);
}
#else
int main(int count, char **words) {
    for (int seed = 0; seed < atoi(words[count - 1]); seed++) {
        printf("%u\n", (unsigned)run((uint32_t)seed));
    }
    return 0;
}
#endif
