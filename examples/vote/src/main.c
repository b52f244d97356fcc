/* Takes the median of what sensors on other devices read, so that one that is wrong changes nothing. */
#include <tenure.h>

#define SENSORS_MAX 8
/* One reading can't be checked by another. */
#define READINGS_MIN 2

/* Puts a reading in its place among `count` that are in order. */
static void insert(long *readings, size_t count, long reading) {
    for (; count > 0 && readings[count - 1] > reading; count--) {
        readings[count] = readings[count - 1];
    }
    readings[count] = reading;
}

/* Asks the sensor whose target stands at `sensors.NAME`; false if it doesn't answer with a number. */
static bool reading_of(const char *name, long *reading) {
    char path[64];
    snprintf(path, sizeof path, "sensors.%s", name);
    char *target = tenure_tree_get(path, NULL);
    struct tenure_result result = tenure_call_text(target ? target : "", "read", NULL);
    char *end = NULL;
    *reading = result.value ? strtol(result.value, &end, 10) : 0;
    bool is_number = result.value && end != result.value && *end == 0;
    if (!is_number) {
        tenure_warning("%s: %s", name, result.error < 0 ? tenure_error_text(result.error) : "no number");
    }
    free(result.value);
    free(target);
    return is_number;
}

/* The median of all sensors: tenure call vote read */
TENURE_EXPORT(read) {
    size_t length = 0;
    char *names = tenure_tree_list("sensors", &length);
    long readings[SENSORS_MAX];
    size_t count = 0;
    for (char *name = names; name && name < names + length && count < SENSORS_MAX; name += strlen(name) + 1) {
        long reading;
        if (reading_of(name, &reading)) {
            insert(readings, count++, reading);
        }
    }
    free(names);
    if (count < READINGS_MIN) {
        tenure_fail("%u of the sensors answered, and it takes %u", (unsigned)count, READINGS_MIN);
        return;
    }
    char text[24];
    snprintf(text, sizeof text, "%ld", readings[count / 2]);
    tenure_reply_text(text);
}
