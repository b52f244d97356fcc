/* Keeps what the thermometer says, and compares it with the thermostat. */
#include <tenure.h>

/* The bytes of four readings, and how a text of them begins. */
#define HISTORY_BYTES 64
#define READINGS 4

TENURE_EXPORT(entry) {
    tenure_subscribe("device.temperature", TENURE_LATEST_ONLY, 1, "on_temperature");
    tenure_every(1000, "on_compare");
}

/* tenure call weather report */
TENURE_EXPORT(report) {
    char *history = tenure_tree_get("history", NULL);
    char *verdict = tenure_tree_get("verdict", NULL);
    char text[2 * HISTORY_BYTES] = "no reading yet";
    if (history != NULL) {
        snprintf(text, sizeof text, "%s: %s", history, verdict ? verdict : "not compared yet");
    }
    tenure_reply_text(text);
    free(history);
    free(verdict);
}

/* The last of the readings, which are parted by spaces. */
static const char *last_of(const char *history) {
    const char *space = strrchr(history, ' ');
    return space ? space + 1 : history;
}

/* The thermometer's reading comes as a call. One like the last is no news. */
TENURE_EXPORT(on_temperature) {
    char *degrees = tenure_parameter(NULL);
    char *history = tenure_tree_get("history", NULL);
    char text[HISTORY_BYTES] = "";
    if (history != NULL && strcmp(last_of(history), degrees) == 0) {
        goto done;
    }
    snprintf(text, sizeof text, "%s%s%s", history ? history : "", history ? " " : "", degrees);
    size_t spaces = 0;
    for (const char *at = text; *at != 0; at++) {
        spaces += *at == ' ';
    }
    const char *first = text;
    for (; spaces >= READINGS; spaces--) {
        first = strchr(first, ' ') + 1;
    }
    tenure_tree_set_text("history", first);
done:
    free(history);
    free(degrees);
}

/* "21.5" as tenths of a degree. */
static int tenths(const char *text) {
    char digits[16];
    size_t length = 0;
    for (; *text != 0 && length + 1 < sizeof digits; text++) {
        if (*text != '.') {
            digits[length++] = *text;
        }
    }
    digits[length] = 0;
    return atoi(digits);
}

/* The timer's call. */
TENURE_EXPORT(on_compare) {
    char *history = tenure_tree_get("history", NULL);
    if (history == NULL) {
        return;
    }
    struct tenure_result target = tenure_call_text("thermostat", "read", NULL);
    char *before = tenure_tree_get("verdict", NULL);
    if (target.value == NULL) {
        tenure_warning("no target: %s", tenure_error_text(target.error));
    } else {
        char verdict[HISTORY_BYTES];
        bool is_colder = tenths(last_of(history)) < tenths(target.value);
        snprintf(verdict, sizeof verdict, "%s than %s", is_colder ? "colder" : "warmer", target.value);
        if (before == NULL || strcmp(before, verdict) != 0) {
            tenure_tree_set_text("verdict", verdict);
        }
    }
    free(target.value);
    free(before);
    free(history);
}
