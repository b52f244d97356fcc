/* A mixed load in the manner of EEMBC's CoreMark, written anew: lists that are searched, reversed and
 * sorted, small matrices of 16-bit numbers, a state machine that reads numbers from text, and a CRC-16 of
 * all results. The sizes are CoreMark's: 2,000 bytes of data, a third for each kind of work. Figures are
 * comparable with CoreMark's in kind, not in value. */
typedef unsigned char u8;
typedef signed short s16;
typedef unsigned short u16;
typedef signed int s32;
typedef unsigned int u32;

static u16 crc8(u8 data, u16 crc) {
    for (int i = 0; i < 8; i++) {
        u8 carry = (u8)((data & 1) ^ (crc & 1));
        data >>= 1;
        if (carry) {
            crc = (u16)((crc ^ 0x4002) >> 1 | 0x8000);
        } else {
            crc = (u16)(crc >> 1 & 0x7FFF);
        }
    }
    return crc;
}
static u16 crc16(u16 value, u16 crc) { return crc8((u8)(value >> 8), crc8((u8)value, crc)); }
static u16 crc32(u32 value, u16 crc) { return crc16((u16)(value >> 16), crc16((u16)value, crc)); }

/* Lists. */
enum { ITEMS = 33 };
typedef struct {
    s16 data, index;
} info;
typedef struct item {
    struct item *next;
    info *info;
} item;
static item items[ITEMS + 2];
static info infos[ITEMS + 2];

static item *list_make(s16 seed) {
    item *list = 0;
    for (int i = ITEMS; i >= 0; i--) {
        u16 mixed = (u16)((seed ^ i) & 0xF);
        infos[i].data = (s16)((mixed << 3 | (i & 7)) << 8 | (mixed << 3 | (i & 7)));
        infos[i].index = (s16)(i < ITEMS / 5 ? i : 0x3FFF & ((i & 7) << 8 | (mixed ^ i)));
        items[i].info = &infos[i];
        items[i].next = list;
        list = &items[i];
    }
    return list;
}

__attribute__((noinline)) static item *list_find(item *list, const info *what) {
    if (what->index >= 0) {
        while (list && list->info->index != what->index) {
            list = list->next;
        }
    } else {
        while (list && (list->info->data & 0xFF) != what->data) {
            list = list->next;
        }
    }
    return list;
}

__attribute__((noinline)) static item *list_reverse(item *list) {
    item *next = 0;
    while (list) {
        item *rest = list->next;
        list->next = next;
        next = list;
        list = rest;
    }
    return next;
}

static u16 matrix_bench(s16 value, u16 crc);
static u16 state_bench(s16 seed, s16 step, u16 crc);
static u16 total;

/* The work that a list item stands for, done once and then remembered in the item. */
__attribute__((noinline)) static s16 item_value(s16 *data) {
    if (*data >> 7 & 1) {
        return (s16)(*data & 0x7F);
    }
    s16 flag = (s16)(*data & 7), seed = (s16)(*data >> 3 & 0xF), result = *data;
    seed |= (s16)(seed << 4);
    if (flag == 0) {
        result = (s16)state_bench(seed, (s16)(seed < 0x22 ? 0x22 : seed), total);
    } else if (flag == 1) {
        result = (s16)matrix_bench(seed, total);
    }
    total = crc16((u16)result, total);
    result &= 0x7F;
    *data = (s16)((*data & 0xFF00) | 0x80 | result);
    return result;
}

static s32 by_value(info *a, info *b) { return item_value(&a->data) - item_value(&b->data); }
static s32 by_index(info *a, info *b) {
    a->data = (s16)((a->data & 0xFF00) | (0xFF & (u16)(a->data >> 8)));
    b->data = (s16)((b->data & 0xFF00) | (0xFF & (u16)(b->data >> 8)));
    return a->index - b->index;
}
typedef s32 (*order)(info *, info *);

/* Merge sort from the bottom up. */
__attribute__((noinline)) static item *list_sort(item *list, order compare) {
    for (int size = 1;; size *= 2) {
        item *left = list, *tail = 0;
        int merges = 0;
        list = 0;
        while (left) {
            merges++;
            item *right = left;
            int lefts = 0, rights = size;
            for (int i = 0; i < size && right; i++) {
                lefts++;
                right = right->next;
            }
            while (lefts > 0 || (rights > 0 && right)) {
                item *taken;
                if (lefts == 0 || (rights > 0 && right && compare(left->info, right->info) > 0)) {
                    taken = right, right = right->next, rights--;
                } else {
                    taken = left, left = left->next, lefts--;
                }
                if (tail) {
                    tail->next = taken;
                } else {
                    list = taken;
                }
                tail = taken;
            }
            left = right;
        }
        tail->next = 0;
        if (merges <= 1) {
            return list;
        }
    }
}

static u16 list_bench(item *list, s16 finder) {
    u16 crc = 0, missed = 0, found = 0;
    info what = {0, finder};
    item *hit;
    for (int i = 0; i < 30; i++) {
        what.data = (s16)(i & 0xFF);
        hit = list_find(list, &what);
        list = list_reverse(list);
        if (!hit) {
            missed++;
            crc = (u16)(crc + (list->next->info->data >> 8 & 1));
        } else {
            found++;
            if (hit->info->data & 1) {
                crc = (u16)(crc + (hit->info->data >> 9 & 1));
            }
            if (hit->next) {
                item *moved = hit->next;
                hit->next = moved->next;
                moved->next = list->next;
                list->next = moved;
            }
        }
        if (what.index >= 0) {
            what.index++;
        }
    }
    crc = (u16)(crc + found * 4 - missed);
    if (finder > 0) {
        list = list_sort(list, by_value);
    }
    item *removed = list->next;
    list->next = removed->next;
    hit = list_find(list, &what);
    if (!hit) {
        hit = list->next;
    }
    while (hit) {
        crc = crc16((u16)list->info->data, crc);
        hit = hit->next;
    }
    removed->next = list->next;
    list->next = removed;
    list = list_sort(list, by_index);
    for (hit = list->next; hit; hit = hit->next) {
        crc = crc16((u16)list->info->data, crc);
    }
    return crc;
}

/* Matrices. */
enum { N = 9 };
static s16 A[N * N], B[N * N];
static s32 C[N * N];

static void matrix_make(s32 seed) {
    s32 order = 1;
    for (int i = 0; i < N * N; i++, order++) {
        seed = (order * seed) % 65536;
        B[i] = (s16)(seed + order);
        A[i] = (s16)((B[i] + order) & 0xFF);
    }
}

__attribute__((noinline)) static s16 matrix_sum(s32 clip) {
    s32 sum = 0, previous = 0;
    s16 result = 0;
    for (int i = 0; i < N * N; i++) {
        s32 current = C[i];
        sum += current;
        if (sum > clip) {
            result += 10;
            sum = 0;
        } else {
            result = (s16)(result + (current > previous));
        }
        previous = current;
    }
    return result;
}

__attribute__((noinline)) static void matrix_add(s16 value) {
    for (int i = 0; i < N * N; i++) {
        A[i] = (s16)(A[i] + value);
    }
}

__attribute__((noinline)) static void matrix_scale(s16 value) {
    for (int i = 0; i < N * N; i++) {
        C[i] = (s32)A[i] * value;
    }
}

__attribute__((noinline)) static void matrix_vector(void) {
    for (int i = 0; i < N; i++) {
        C[i] = 0;
        for (int j = 0; j < N; j++) {
            C[i] += (s32)A[i * N + j] * B[j];
        }
    }
}

__attribute__((noinline)) static void matrix_product(int bits) {
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++) {
            s32 sum = 0;
            for (int k = 0; k < N; k++) {
                s32 term = (s32)A[i * N + k] * B[k * N + j];
                sum += bits ? (term >> 2 & 0xF) * (term >> 5 & 0x7F) : term;
            }
            C[i * N + j] = sum;
        }
    }
}

static u16 matrix_bench(s16 value, u16 crc) {
    s32 clip = (s16)(0xF000 | value);
    matrix_add(value);
    matrix_scale(value);
    crc = crc16((u16)matrix_sum(clip), crc);
    matrix_vector();
    crc = crc16((u16)matrix_sum(clip), crc);
    matrix_product(0);
    crc = crc16((u16)matrix_sum(clip), crc);
    matrix_product(1);
    crc = crc16((u16)matrix_sum(clip), crc);
    matrix_add((s16)-value);
    return crc;
}

/* A state machine that tells kinds of numbers apart. */
enum { TEXT = 666 };
static u8 text[TEXT + 1];
typedef enum { START, INVALID, SIGN1, SIGN2, INTEGER, FLOAT, EXPONENT, SCIENTIFIC, STATES } state;

static void text_make(s16 seed) {
    static const char *const words[16] = {
        "5012", "1234", "-874", "+122", "35.54400", ".1234500", "-110.700", "+0.64400",
        "5.500e+3", "-.123e-2", "-87e+832", "+0.6e-12", "T0.3e-1F", "-T.T++Tq", "1T3.4e4z", "34.0e-T^",
    };
    u32 at = 0;
    for (;;) {
        seed++;
        u32 kind = (u32)seed & 7;
        u32 group = kind < 3 ? 0 : kind < 5 ? 4 : kind < 7 ? 8 : 12;
        const char *word = words[group + ((u32)seed >> 3 & 3)];
        u32 length = group ? 8 : 4;
        if (at + length + 1 >= TEXT) {
            break;
        }
        for (u32 i = 0; i < length; i++) {
            text[at + i] = (u8)word[i];
        }
        text[at + length] = ',';
        at += length + 1;
    }
    while (at <= TEXT) {
        text[at++] = 0;
    }
}

static int is_digit(u8 symbol) { return symbol >= '0' && symbol <= '9'; }

__attribute__((noinline)) static state transition(u8 **from, u32 *counts) {
    u8 *at = *from;
    state now = START;
    for (; *at && now != INVALID; at++) {
        u8 symbol = *at;
        if (symbol == ',') {
            at++;
            break;
        }
        switch (now) {
        case START:
            now = is_digit(symbol) ? INTEGER : symbol == '+' || symbol == '-' ? SIGN1 : symbol == '.' ? FLOAT : INVALID;
            if (now == INVALID) {
                counts[INVALID]++;
            }
            counts[START]++;
            break;
        case SIGN1:
            now = is_digit(symbol) ? INTEGER : symbol == '.' ? FLOAT : INVALID;
            counts[SIGN1]++;
            break;
        case INTEGER:
            if (symbol == '.') {
                now = FLOAT;
                counts[INTEGER]++;
            } else if (!is_digit(symbol)) {
                now = INVALID;
                counts[INTEGER]++;
            }
            break;
        case FLOAT:
            if (symbol == 'E' || symbol == 'e') {
                now = SIGN2;
                counts[FLOAT]++;
            } else if (!is_digit(symbol)) {
                now = INVALID;
                counts[FLOAT]++;
            }
            break;
        case SIGN2:
            now = symbol == '+' || symbol == '-' ? EXPONENT : INVALID;
            counts[SIGN2]++;
            break;
        case EXPONENT:
            now = is_digit(symbol) ? SCIENTIFIC : INVALID;
            counts[EXPONENT]++;
            break;
        case SCIENTIFIC:
            if (!is_digit(symbol)) {
                now = INVALID;
                counts[INVALID]++;
            }
            break;
        default:
            break;
        }
    }
    *from = at;
    return now;
}

static u16 state_bench(s16 seed, s16 step, u16 crc) {
    u32 finals[STATES] = {0}, counts[STATES] = {0};
    for (int round = 0; round < 2; round++) {
        for (u8 *at = text; *at;) {
            finals[transition(&at, counts)]++;
        }
        for (u8 *at = text; at < text + TEXT; at += step) {
            if (*at != ',') {
                *at ^= (u8)seed;
            }
        }
    }
    for (int i = 0; i < STATES; i++) {
        crc = crc32(counts[i], crc32(finals[i], crc));
    }
    return crc;
}

unsigned run(unsigned repetitions) {
    u16 crc = 0;
    total = 0;
    matrix_make(0x66);
    text_make(0);
    while (repetitions--) {
        crc = crc16(list_bench(list_make(0), 1), crc);
        crc = crc16(list_bench(list_make(0), -1), crc);
        total = crc;
    }
    return crc | (u32)total << 16;
}
