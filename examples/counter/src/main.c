/* Counts, and goes on where it was after a loss of power. */
#include <tenure.h>

/* Returns 0, or why the count can't be read. */
static int read_count(long *count) {
    char *text = NULL;
    int error = tenure_tree_read("count", &text, NULL);
    *count = text ? strtol(text, NULL, 10) : 0;
    free(text);
    return error;
}

static void reply_count(long count) {
    char text[16];
    snprintf(text, sizeof text, "%ld", count);
    tenure_reply_text(text);
}

TENURE_EXPORT(entry) {
    long count;
    int error = read_count(&count);
    if (error < 0) {
        tenure_error("can't read the count: %s", tenure_error_text(error));
        return;
    }
    tenure_info("going on from %ld", count);
}

/* tenure call counter value */
TENURE_EXPORT(value) {
    long count;
    int error = read_count(&count);
    if (error < 0) {
        tenure_fail("can't read the count: %s", tenure_error_text(error));
        return;
    }
    reply_count(count);
}

/* Adds the parameter, or 1: tenure call counter add 5 */
TENURE_EXPORT(add) {
    long count;
    int error = read_count(&count);
    if (error < 0) {
        tenure_fail("can't read the count: %s", tenure_error_text(error));
        return;
    }
    char *parameter = tenure_parameter(NULL);
    count += parameter ? strtol(parameter, NULL, 10) : 1;
    free(parameter);

    char text[16];
    snprintf(text, sizeof text, "%ld", count);
    error = tenure_tree_set_text("count", text);
    if (error < 0) {
        tenure_fail("can't keep %s: %s", text, tenure_error_text(error));
        return;
    }
    tenure_reply_text(text);
}
