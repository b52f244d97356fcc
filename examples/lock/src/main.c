/* Lends something to one caller at a time, known by its key. */
#include <tenure.h>

#define LENT_FOR_US 10000000u

static uint8_t holder[32];
static uint64_t lent_until_us;

static bool is_lent(void) {
    return tenure_uptime_us() < lent_until_us;
}

/* The device's owner calls by no machine, and counts as the caller whose key is zero. */
static bool holds(const uint8_t key[32]) {
    return is_lent() && memcmp(holder, key, sizeof holder) == 0;
}

/* Lends it for ten seconds, or for ten more: tenure call lock take */
TENURE_EXPORT(take) {
    uint8_t caller[32] = {0};
    tenure_caller(caller);
    if (is_lent() && !holds(caller)) {
        tenure_fail("another has it for %llu ms", (unsigned long long)(lent_until_us - tenure_uptime_us()) / 1000);
        return;
    }
    memcpy(holder, caller, sizeof holder);
    lent_until_us = tenure_uptime_us() + LENT_FOR_US;
}

/* Gives it back: tenure call lock give */
TENURE_EXPORT(give) {
    uint8_t caller[32] = {0};
    tenure_caller(caller);
    if (!holds(caller)) {
        tenure_fail("it isn't yours to give back");
        return;
    }
    lent_until_us = 0;
}
