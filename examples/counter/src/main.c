/* Counts, and goes on where it was after a loss of power. */
#include <tenure.h>

static long read_count(void) {
    char *text = tenure_tree_get("count", NULL);
    long count = text ? strtol(text, NULL, 10) : 0;
    free(text);
    return count;
}

static void reply_count(long count) {
    char text[16];
    snprintf(text, sizeof text, "%ld", count);
    tenure_reply_text(text);
}

TENURE_EXPORT(entry) {
    tenure_info("going on from %ld", read_count());
}

/* tenure call counter value */
TENURE_EXPORT(value) {
    reply_count(read_count());
}

/* Adds the parameter, or 1: tenure call counter add 5 */
TENURE_EXPORT(add) {
    char *parameter = tenure_parameter(NULL);
    long count = read_count() + (parameter ? strtol(parameter, NULL, 10) : 1);
    free(parameter);

    char text[16];
    snprintf(text, sizeof text, "%ld", count);
    int error = tenure_tree_set_text("count", text);
    if (error < 0) {
        tenure_fail("can't keep %s: %s", text, tenure_error_text(error));
        return;
    }
    tenure_reply_text(text);
}
