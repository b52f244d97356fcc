/* The 2020 Nihilo's API over Tenure's. */
#define NIHILO_ITSELF
#include <nihilo.h>
#include <tenure.h>

/* How often the network is tried again for a queued call. */
#define RETRIES 3
/* Nihilo asked its directory before it ran `entry`; here it may still be on the way. */
#define DIRECTORY_WAITS 100
#define DIRECTORY_WAIT_MS 100
/* What one value of a tree holds; a longer string goes on below it, in parts. */
#define VALUE_BYTES_MAX 2048
#define PATH_BYTES_MAX 128
/* "~1" and so on: the parts of a string after the first. */
#define PART_NAME_BYTES 12
/* What a line of the log holds. */
#define LINE_BYTES_MAX 256
/* So little of the queue is left that the next call may be the last that fits. */
#define QUEUE_LEFT_FEW 2
/* How long a budget by the second is waited for, and a queue that nobody here empties. */
#define BUDGET_WAITS 600
#define QUEUE_WAITS 100
#define WAIT_MS 100

/* What was allocated while the call is served: each block begins with a pointer to the one before. */
struct allocation {
    struct allocation *before;
    uint32_t padding;
};

static struct allocation *allocations;

void mallocWasm(void **target, uint32_t size) {
    struct allocation *allocation = malloc(sizeof *allocation + size);
    *target = NULL;
    if (allocation != NULL) {
        allocation->before = allocations;
        allocations = allocation;
        *target = allocation + 1;
    }
}

static void free_allocations(void) {
    while (allocations != NULL) {
        struct allocation *allocation = allocations;
        allocations = allocation->before;
        free(allocation);
    }
}

/* Moves what the binding allocated to memory that goes when the call ends. */
static void *hand_over(void *memory, size_t size) {
    void *copy = NULL;
    if (memory != NULL) {
        mallocWasm(&copy, (uint32_t)size);
        if (copy != NULL) {
            memcpy(copy, memory, size);
        }
        free(memory);
    }
    return copy;
}

static void report(const char *what, const char *where, int outcome) {
    if (outcome < 0) {
        tenure_error("%s %s: %s", what, where, tenure_error_text(outcome));
    }
}

void getParam(char **param) {
    size_t length;
    char *value = tenure_parameter(&length);
    *param = hand_over(value, length + 1);
}

void setReturn(const char *ret) {
    report("return", "", tenure_reply_text(ret));
}

/* Whether a tree can have a value there. */
static bool is_path(const char *path) {
    size_t length = strlen(path);
    if (length == 0 || length > PATH_BYTES_MAX || path[0] == '.' || path[length - 1] == '.') {
        return false;
    }
    return strstr(path, "..") == NULL;
}

/* Deletes what is right below a path: the parts of a string, or the members of an object. */
static void delete_below(const char *path, bool parts) {
    size_t length;
    char *children = tenure_tree_list(path, &length);
    for (size_t at = 0; children != NULL && at < length; at += strlen(children + at) + 1) {
        if ((children[at] == '~') == parts) {
            char child[PATH_BYTES_MAX + 1];
            snprintf(child, sizeof child, "%s.%s", path, children + at);
            tenure_tree_delete(child);
        }
    }
    free(children);
}

/* Strings above a path make room for the objects that it needs. */
static void delete_strings_above(const char *path) {
    char above[PATH_BYTES_MAX + 1];
    for (const char *dot = strchr(path, '.'); dot != NULL; dot = strchr(dot + 1, '.')) {
        size_t length = (size_t)(dot - path), value_length;
        memcpy(above, path, length);
        above[length] = 0;
        char *value = tenure_tree_get(above, &value_length);
        if (value != NULL) {
            tenure_tree_delete(above);
        }
        free(value);
    }
}

/* How much of a text fits into one value without cutting a character (UTF-8). */
static size_t part_length(const char *text) {
    size_t length = strnlen(text, VALUE_BYTES_MAX + 1);
    if (length <= VALUE_BYTES_MAX) {
        return length;
    }
    length = VALUE_BYTES_MAX;
    while (length > 0 && ((unsigned char)text[length] & 0xC0) == 0x80) {
        length--;
    }
    return length > 0 ? length : VALUE_BYTES_MAX;
}

static int set_part(const char *path, const char *text, size_t length) {
    return tenure_host_tree_set(path, (uint32_t)strlen(path), 1, text, (uint32_t)length);
}

void writeString(const char *path, const char *value) {
    if (!is_path(path)) {
        tenure_error("writeString \"%s\": no path; nothing was changed", path);
        return;
    }
    if (value == NULL) {
        tenure_tree_delete(path);
        return;
    }
    delete_strings_above(path);
    size_t first = part_length(value);
    int outcome = set_part(path, value, first);
    if (outcome < 0) {
        report("writeString", path, outcome);
        return;
    }
    delete_below(path, false);
    delete_below(path, true);
    const char *rest = value + first;
    for (int number = 1; *rest != 0; number++) {
        char part[PATH_BYTES_MAX + PART_NAME_BYTES];
        snprintf(part, sizeof part, "%s.~%d", path, number);
        size_t length = part_length(rest);
        outcome = set_part(part, rest, length);
        if (outcome < 0) {
            report("writeString", path, outcome);
            return;
        }
        rest += length;
    }
}

void readString(const char *path, char **target) {
    size_t length;
    char *value = tenure_tree_get(path, &length);
    /* Three bytes of a character may have gone to the next part. */
    bool goes_on = value != NULL && length > VALUE_BYTES_MAX - 4;
    for (int number = 1; goes_on; number++) {
        char part[PATH_BYTES_MAX + PART_NAME_BYTES];
        snprintf(part, sizeof part, "%s.~%d", path, number);
        size_t more_length;
        char *more = tenure_tree_get(part, &more_length);
        char *whole = more == NULL ? NULL : realloc(value, length + more_length + 1);
        goes_on = whole != NULL;
        if (goes_on) {
            memcpy(whole + length, more, more_length + 1);
            value = whole;
            length += more_length;
        }
        free(more);
    }
    *target = hand_over(value, length + 1);
}

int knownPubs(unsigned char **pubs, int include_local, int include_non_local) {
    static bool directory_was_asked;
    enum tenure_which which =
        (include_local ? TENURE_LOCAL : 0) | (include_non_local ? TENURE_REMOTE : 0);
    *pubs = NULL;
    if (which == 0) {
        return 0;
    }
    size_t count;
    uint8_t *keys = tenure_peers(which, &count);
    for (int wait = 0; keys == NULL && !directory_was_asked && wait < DIRECTORY_WAITS; wait++) {
        tenure_sleep_ms(DIRECTORY_WAIT_MS);
        keys = tenure_peers(which, &count);
    }
    directory_was_asked = true;
    *pubs = hand_over(keys, count * 32);
    return *pubs == NULL ? 0 : (int)count;
}

/* A long string takes several lines. */
void logStr(const char *tolog) {
    size_t length = tolog ? strlen(tolog) : 0;
    do {
        size_t line = length < LINE_BYTES_MAX ? length : LINE_BYTES_MAX;
        while (line < length && line > 0 && ((unsigned char)tolog[line] & 0xC0) == 0x80) {
            line--;
        }
        line = line > 0 || length == 0 ? line : LINE_BYTES_MAX;
        tenure_host_log(TENURE_LOG_INFO, tolog, (uint32_t)line);
        tolog += line;
        length -= line;
    } while (length > 0);
}

/* A call that found no room in the machine's queue: it is kept here until there is. */
struct waiting {
    struct waiting *next;
    bool has_parameter, has_success, has_failure;
    /* Target, function, parameter and callbacks, each with its end. */
    char texts[];
};

static struct waiting *first_waiting, **last_waiting = &first_waiting;
/* Whether a call is under way whose end comes back here. */
static bool pump_is_under_way;

static int submit(const char *target, const char *function, const char *parameter,
                  const char *on_success, const char *on_failure) {
    int left = tenure_budget_left(TENURE_BUDGET_QUEUE);
    bool pump = left >= 0 && left <= QUEUE_LEFT_FEW;
    struct tenure_task task = {
        .target = target,
        .function = function,
        .parameter = parameter,
        .parameter_length = parameter ? strlen(parameter) : 0,
        .on_success = on_success || !pump ? on_success : "nihilo_pump",
        .on_failure = on_failure || !pump ? on_failure : "nihilo_pump",
        .retries = RETRIES,
    };
    int outcome = tenure_queue(&task);
    for (int wait = 0; outcome == TENURE_MESSAGE_BUDGET && wait < BUDGET_WAITS; wait++) {
        tenure_sleep_ms(WAIT_MS);
        outcome = tenure_queue(&task);
    }
    pump_is_under_way = pump_is_under_way || (outcome >= 0 && pump);
    return outcome;
}

static bool is_full(int outcome) {
    return outcome == TENURE_QUEUE_BUDGET || outcome == TENURE_FULL;
}

static void keep(const char *target, const char *function, const char *parameter,
                 const char *on_success, const char *on_failure) {
    const char *texts[] = {target, function, parameter, on_success, on_failure};
    size_t length = 0;
    for (size_t at = 0; at < 5; at++) {
        length += (texts[at] ? strlen(texts[at]) : 0) + 1;
    }
    struct waiting *waiting = malloc(sizeof *waiting + length);
    if (waiting == NULL) {
        tenure_error("queue %s: no memory to keep the call until there is room", function);
        return;
    }
    waiting->next = NULL;
    waiting->has_parameter = parameter != NULL;
    waiting->has_success = on_success != NULL;
    waiting->has_failure = on_failure != NULL;
    char *into = waiting->texts;
    for (size_t at = 0; at < 5; at++) {
        strcpy(into, texts[at] ? texts[at] : "");
        into += strlen(into) + 1;
    }
    *last_waiting = waiting;
    last_waiting = &waiting->next;
}

/* A call that can't be queued for good ends as one that failed. */
static void fail(const char *function, const char *on_failure, int outcome) {
    report("queue", function, outcome);
    if (on_failure != NULL) {
        keep("", on_failure, tenure_error_text(outcome), NULL, NULL);
    }
}

static void submit_or_keep(const char *target, const char *function, const char *parameter,
                           const char *on_success, const char *on_failure) {
    int outcome = submit(target, function, parameter, on_success, on_failure);
    if (is_full(outcome)) {
        keep(target, function, parameter, on_success, on_failure);
    } else if (outcome < 0) {
        fail(function, on_failure, outcome);
    }
}

/* Queues what was kept, as far as there is room; returns whether all of it was. */
static bool submit_waiting(void) {
    while (first_waiting != NULL) {
        struct waiting *waiting = first_waiting;
        const char *texts[5];
        const char *at = waiting->texts;
        for (size_t number = 0; number < 5; number++) {
            texts[number] = at;
            at += strlen(at) + 1;
        }
        const char *parameter = waiting->has_parameter ? texts[2] : NULL;
        const char *on_success = waiting->has_success ? texts[3] : NULL;
        const char *on_failure = waiting->has_failure ? texts[4] : NULL;
        int outcome = submit(texts[0], texts[1], parameter, on_success, on_failure);
        if (is_full(outcome)) {
            return false;
        }
        first_waiting = waiting->next;
        if (first_waiting == NULL) {
            last_waiting = &first_waiting;
        }
        if (outcome < 0) {
            fail(texts[1], on_failure, outcome);
        }
        free(waiting);
    }
    return true;
}

void nihilo_end(void) {
    free_allocations();
    /* If no call comes back here, others' replies make room while this one waits. */
    for (int wait = 0; !submit_waiting() && !pump_is_under_way && wait < QUEUE_WAITS; wait++) {
        tenure_sleep_ms(WAIT_MS);
    }
}

void nihilo_pumped(void) {
    pump_is_under_way = false;
    nihilo_end();
}

void queue(const unsigned char *target_pub, const char *fname, const char *param,
           const char *onsuccess, const char *onfail) {
    char target[TENURE_KEY_TARGET_BYTES] = "";
    if (target_pub != NULL) {
        tenure_key_target(target_pub, target);
    }
    /* What waits already comes first. */
    if (!submit_waiting()) {
        keep(target, fname, param, onsuccess, onfail);
    } else {
        submit_or_keep(target, fname, param, onsuccess, onfail);
    }
}

/* An empty string is a parameter, and no pointer is none. */
static size_t parameter_length(const char *param) {
    return param == NULL ? 0 : strlen(param);
}

static void set_timer(const char *fname, const char *param, uint32_t delay_ms, uint32_t period_ms) {
    size_t length = parameter_length(param);
    int outcome = tenure_host_timer_after(fname, strlen(fname), param, length, delay_ms, period_ms);
    report("timer of", fname, outcome);
}

void queueAfter(uint32_t delay_ms, const char *fname, const char *param) {
    set_timer(fname, param, delay_ms, 0);
}

void queueEvery(uint32_t period_ms, const char *fname, const char *param) {
    set_timer(fname, param, period_ms, period_ms);
}

void queueSchedule(const char *schedule, const char *fname, const char *param) {
    int outcome = tenure_host_timer_schedule(fname, strlen(fname), param, parameter_length(param),
                                             schedule, strlen(schedule));
    report("timer of", fname, outcome);
}

void queueCancel(const char *fname) {
    report("timer of", fname, tenure_host_timer_cancel(fname, strlen(fname)));
}

uint64_t uptime(void) {
    return tenure_uptime_us();
}

char *decstr(int input) {
    void *text;
    mallocWasm(&text, 12);
    if (text != NULL) {
        snprintf(text, 12, "%d", input);
    }
    return text;
}

int strdec(const char *input) {
    return input ? atoi(input) : 0;
}
