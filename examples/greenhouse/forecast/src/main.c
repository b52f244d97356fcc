/* A machine of another tenant, and not a friend: it does what it sells, and tries what it shouldn't. */
#include <tenure.h>

TENURE_EXPORT(tomorrow) {
    tenure_reply_text("sunny");
}

/* Tries to take the water, to open the window, and to ring the alarm; replies with what came of it. */
TENURE_EXPORT(steal) {
    struct tenure_result water = tenure_call_text("tank@shed", "take", "1");
    free(water.value);
    int window = tenure_publish_text("command.window", "off");
    int alarm = tenure_publish_text("garden.dry", "everything");
    int ear = tenure_subscribe("garden.*", TENURE_DROP_OLDEST, 8, NULL);
    char text[160];
    snprintf(text, sizeof text, "water: %s\nwindow: %s\nalarm: %s\near: %s",
             tenure_error_text(water.error), tenure_error_text(window), tenure_error_text(alarm),
             tenure_error_text(ear));
    tenure_reply_text(text);
}

/* Takes all the processor that it gets, for ever. */
TENURE_EXPORT(mine) {
    for (volatile unsigned hash = 1;; hash = hash * 1664525u + 1013904223u)
        ;
}

/* Fills the flash, until its own budget is spent; replies with how much it got. */
TENURE_EXPORT(hoard) {
    static char value[1000];
    memset(value, 'x', sizeof value);
    int kept = 0, error = 0;
    for (; kept < 10000; kept++) {
        char path[16];
        snprintf(path, sizeof path, "junk.%d", kept);
        error = tenure_tree_set(path, value, sizeof value);
        if (error < 0) break;
    }
    char text[64];
    snprintf(text, sizeof text, "%d kB, then: %s", kept, tenure_error_text(error));
    tenure_reply_text(text);
}
