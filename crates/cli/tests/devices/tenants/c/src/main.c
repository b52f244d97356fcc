/* Hears each round, and asks others what they heard. One that has a will does worse. */
#include <tenure.h>

TENURE_EXPORT(entry) {
    if (tenure_subscribe("round", TENURE_DROP_OLDEST, 2, "heard") < 0) {
        tenure_abort("no right to hear the rounds");
    }
}

TENURE_EXPORT(heard) {
    char *round = tenure_parameter(NULL);
    int error = tenure_tree_set_text("heard", round);
    char *will = tenure_tree_get("will", NULL);
    if (error < 0 || (will && !strcmp(will, "trap"))) {
        __builtin_trap();
    }
    if (will && !strcmp(will, "spin")) {
        for (volatile int turns = 0;; turns++) {
        }
    }
    free(will);
    free(round);
}

/* The last round that it has heard. */
TENURE_EXPORT(value) {
    char *heard = tenure_tree_get("heard", NULL);
    tenure_reply_text(heard);
    free(heard);
}

/* What the machine that the parameter names has heard; it is kept. */
TENURE_EXPORT(ask) {
    char *target = tenure_parameter(NULL);
    struct tenure_result result = tenure_call(target, "value", NULL, 0);
    free(target);
    if (result.error || tenure_tree_set_text("answer", result.value) < 0) {
        tenure_fail("no answer: %s", tenure_error_text(result.error));
        return;
    }
    tenure_reply_text(result.value);
    free(result.value);
}

TENURE_EXPORT(announce) {
    char *round = tenure_parameter(NULL);
    int heard_by = tenure_publish_text("round", round);
    free(round);
    char text[16];
    snprintf(text, sizeof text, "%d", heard_by);
    tenure_reply_text(text);
}

/* What it does at the next round: "spin" or "trap". */
TENURE_EXPORT(will) {
    char *will = tenure_parameter(NULL);
    int error = tenure_tree_set_text("will", will);
    free(will);
    tenure_reply_text(error < 0 ? tenure_error_text(error) : "so be it");
}
