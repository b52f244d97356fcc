/* Hears what the diary publishes on this device, and remembers which bed was dry last. */
#include <tenure.h>

static char last[32] = "nobody";

TENURE_EXPORT(entry) {
    int error = tenure_subscribe("garden.dry", TENURE_DROP_OLDEST, 8, "on_dry");
    if (error < 0) tenure_fail("can't hear the garden: %s", tenure_error_text(error));
}

TENURE_EXPORT(on_dry) {
    char *bed = tenure_parameter(NULL);
    if (bed && strcmp(bed, last) != 0) {
        snprintf(last, sizeof last, "%s", bed);
        tenure_warning("%s is dry", last);
    }
    free(bed);
}

/* tenure call alarm last */
TENURE_EXPORT(last_dry) {
    tenure_reply_text(last);
}
