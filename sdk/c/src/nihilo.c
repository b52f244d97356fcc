/* The 2020 Nihilo's API over Tenure's. */
#include <nihilo.h>
#include <tenure.h>

/* How often the network is tried again for a queued call. */
#define RETRIES 3
/* Nihilo asked its directory before it ran `entry`; here it may still be on the way. */
#define DIRECTORY_WAITS 20
#define DIRECTORY_WAIT_MS 100

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

void nihilo_end(void) {
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

void writeString(const char *path, const char *value) {
    if (value == NULL) {
        tenure_tree_delete(path);
        return;
    }
    char *children = tenure_tree_list(path, NULL);
    if (children != NULL) {
        free(children);
        tenure_tree_delete(path);
    }
    report("writeString", path, tenure_tree_set_text(path, value));
}

void readString(const char *path, char **target) {
    size_t length;
    char *value = tenure_tree_get(path, &length);
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

void logStr(const char *tolog) {
    tenure_info("%s", tolog);
}

void queue(const unsigned char *target_pub, const char *fname, const char *param,
           const char *onsuccess, const char *onfail) {
    char target[TENURE_KEY_TARGET_BYTES] = "";
    if (target_pub != NULL) {
        tenure_key_target(target_pub, target);
    }
    struct tenure_task task = {
        .target = target,
        .function = fname,
        .parameter = param,
        .parameter_length = param ? strlen(param) : 0,
        .on_success = onsuccess,
        .on_failure = onfail,
        .retries = RETRIES,
    };
    report("queue", fname, tenure_queue(&task));
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
