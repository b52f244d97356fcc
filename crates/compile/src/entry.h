static int find(u32 pc) {
    u32 low = 0, high = POINTS;
    while (low < high) {
        u32 middle = (low + high) / 2;
        if (points[middle].pc < pc) low = middle + 1;
        else high = middle;
    }
    return low < POINTS && points[low].pc == pc ? (int)low : -1;
}

/* Runs functions and, as they return, their callers, until one stops. */
static void run(struct context *c, const u8 *image) {
    for (;;) {
        int at = find(c->pc);
        u8 *frame = c->frame;
        u32 function = at < 0 ? 0 : points[at].function;
        u32 link = at < 0 ? 0 : *(slot *)(frame + shapes[function].link);
        if (at < 0 || (!link && !(shapes[function].bits & 1))) {
            c->flow = INTERPRET;
            return;
        }
        /* A call that didn't fit the native stack any more begins on an empty one, whatever its frame takes. */
        u32 point = points[at].point ? points[at].point : BEGIN;
        u64 r = start(c, frame, c->fuel, function, point);
        if ((i32)r == STOPPED) {
            if (c->flow != DEEP) return;
            continue;
        }
        if (shapes[function].bits & 2) *(slot *)frame = (u32)(r >> 32);
        c->fuel = (i32)r;
        if (!link) {
            c->fuel += c->returned;
            c->flow = WORD_DONE;
            return;
        }
        c->frame = frame - *(const u16 *)(image + link - 2);
        c->pc = link;
        c->accumulator = 0;
        if (c->fuel < 0) {
            c->flow = WORD_CHECK;
            return;
        }
    }
}

void ENTRY_NAME(uptr *words);
void ENTRY_NAME(uptr *words) {
    const u8 *image = (const u8 *)words[WORD_IMAGE];
    struct context c;
    c.memory = (u8 *)words[WORD_MEMORY];
    c.memory_bytes = (u32)words[WORD_MEMORY_BYTES];
    c.near = c.memory_bytes > NEAR_BYTES ? c.memory_bytes - NEAR_BYTES : 0;
    c.globals = (u8 *)words[WORD_GLOBALS];
    c.stack_end = (u8 *)words[WORD_STACK_END];
    c.table = (const u32 *)words[WORD_TABLE];
    c.table_count = (u32)words[WORD_TABLE_COUNT];
    c.function_count = (u32)words[WORD_FUNCTION_COUNT];
    c.native_end = (u8 *)&c - NATIVE_BYTES;
    c.pc = (u32)(words[WORD_PC] - (uptr)image);
    c.frame = (u8 *)words[WORD_FRAME];
    c.accumulator = (u32)words[WORD_ACCUMULATOR];
    c.fuel = (i32)(words[WORD_LIMIT] - words[WORD_PC]);
    c.returned = 0;
    c.again = 0;
    run(&c, image);
    words[WORD_PC] = (uptr)image + c.pc;
    words[WORD_FRAME] = (uptr)c.frame;
    words[WORD_ACCUMULATOR] = c.accumulator;
    words[WORD_LIMIT] = words[WORD_PC] + (uptr)(iptr)c.fuel;
    words[WORD_FLOW] = c.flow == INTERPRET ? (uptr)-1 : c.flow;
}
