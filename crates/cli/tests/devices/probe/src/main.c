/* Calls, answers and stores what a test asks for. */
#include <tenure.h>

/* Cuts the first word off `text`. */
static char *next_word(char **text) {
    char *word = *text;
    char *space = word ? strchr(word, ' ') : NULL;
    if (space) {
        *space = 0;
    }
    *text = space ? space + 1 : NULL;
    return word;
}

TENURE_EXPORT(echo) {
    size_t length = 0;
    char *parameter = tenure_parameter(&length);
    tenure_reply(parameter, length);
    free(parameter);
}

/* "ROUNDS": asks the host for the time so often, and does nothing else. */
TENURE_EXPORT(ask_time) {
    char *text = tenure_parameter(NULL);
    unsigned long rounds = strtoul(text, NULL, 10);
    for (unsigned long round = 0; round < rounds; round++) {
        tenure_uptime_us();
    }
    tenure_reply_text(text);
}

/* "TARGET FUNCTION PARAMETER": calls, waits and replies with what came, or with why nothing did. */
TENURE_EXPORT(call) {
    char *rest = tenure_parameter(NULL);
    char *target = next_word(&rest);
    char *function = next_word(&rest);
    struct tenure_result result = tenure_call_text(target, function, rest);
    tenure_reply_text(result.error ? tenure_error_text(result.error) : result.value);
}

/* "FUNCTION TARGET TARGET …": calls that function of each in turn, and replies with a letter for each: `y` if
 * it answered. */
TENURE_EXPORT(survey) {
    char *rest = tenure_parameter(NULL);
    char *function = next_word(&rest);
    char answers[64];
    size_t count = 0;
    while (rest && count < sizeof answers) {
        struct tenure_result result = tenure_call_text(next_word(&rest), function, NULL);
        answers[count++] = result.error ? 'n' : 'y';
        free(result.value);
    }
    tenure_reply(answers, count);
}

/* "TARGET FUNCTION DEADLINE RETRIES": queues a call and replies at once; what comes is logged. */
TENURE_EXPORT(queue) {
    char *rest = tenure_parameter(NULL);
    struct tenure_task task = {.on_success = "succeeded", .on_failure = "failed"};
    task.target = next_word(&rest);
    task.function = next_word(&rest);
    task.deadline_ms = strtoul(next_word(&rest), NULL, 10);
    task.retries = strtoul(next_word(&rest), NULL, 10);
    int error = tenure_queue(&task);
    tenure_reply_text(error < 0 ? tenure_error_text(error) : "queued");
}

TENURE_EXPORT(succeeded) {
    char *parameter = tenure_parameter(NULL);
    tenure_info("succeeded: %s", parameter ? parameter : "null");
}

TENURE_EXPORT(failed) {
    char *parameter = tenure_parameter(NULL);
    tenure_info("failed: %s", parameter ? parameter : "null");
}

/* Stores values as large as they may be, until there is no room: "COUNT REASON". */
TENURE_EXPORT(fill) {
    static uint8_t value[2048];
    int count = 0;
    for (int error = 0; error == 0; count++) {
        char text[64];
        snprintf(text, sizeof text, "big.%d", count);
        memset(value, count, sizeof value);
        error = tenure_tree_set(text, value, sizeof value);
        if (error < 0) {
            snprintf(text, sizeof text, "%d %s", count, tenure_error_text(error));
            tenure_reply_text(text);
        }
    }
    /* What is left has no room for a large one, and none for a small one after this. */
    for (int error = 0, small = 0; error == 0; small++) {
        char text[64];
        snprintf(text, sizeof text, "small.%d", small);
        error = tenure_tree_set(text, text, 8);
    }
}

/* Frees what `fill` stored. */
TENURE_EXPORT(drain) {
    int error = tenure_tree_delete("big");
    tenure_reply_text(error < 0 ? tenure_error_text(error) : "drained");
}

/* Replies with a secret of the tenant's, or with why it can't be read. */
TENURE_EXPORT(secret) {
    char *name = tenure_parameter(NULL);
    size_t length = 0;
    char *value = tenure_secret(name, &length);
    if (value) {
        tenure_reply(value, length);
        return;
    }
    int error = tenure_host_secret_read(name, strlen(name), NULL, 0);
    tenure_reply_text(tenure_error_text(error));
}

/* "ADDRESS": writes there, whosever it is. */
TENURE_EXPORT(poke) {
    volatile uint8_t *there = (volatile uint8_t *)strtoul(tenure_parameter(NULL), NULL, 16);
    *there = 0xA5;
    tenure_reply_text("written");
}

/* Three steps with a sleep before each, counted on the stack; replies with how long that took. */
TENURE_EXPORT(steps) {
    uint64_t start = tenure_uptime_us();
    int done = 0;
    for (unsigned step = 1; step <= 3; step++) {
        tenure_sleep_ms(2500);
        done += step;
        tenure_info("step %u", step);
    }
    unsigned took = (unsigned)((tenure_uptime_us() - start) / 1000);
    char text[64];
    snprintf(text, sizeof text, "sum %d after %u ms", done, took);
    tenure_reply_text(text);
}
