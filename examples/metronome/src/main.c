/* Ticks by a timer, which its device keeps over restarts. */
#include <tenure.h>

static unsigned ticks;

/* Called by the timer alone: it is private. */
TENURE_EXPORT(tick) {
    ticks++;
}

static void reply_number(unsigned number) {
    char text[16];
    snprintf(text, sizeof text, "%u", number);
    tenure_reply_text(text);
}

/* How often it ticked since its memory began: tenure call metronome count */
TENURE_EXPORT(count) {
    reply_number(ticks);
}

/* Sets the milliseconds between two ticks: tenure call metronome pace 500 */
TENURE_EXPORT(pace) {
    char *text = tenure_parameter(NULL);
    long period_ms = text ? strtol(text, NULL, 10) : 0;
    free(text);
    int error = period_ms > 0 ? tenure_every((uint32_t)period_ms, "tick") : TENURE_INVALID;
    if (error < 0) {
        tenure_fail("no such pace: %s", tenure_error_text(error));
        return;
    }
    ticks = 0;
}
