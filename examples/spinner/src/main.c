/* Never gives the processor back, and yet the others run: a machine is pre-empted anywhere. */
#include <tenure.h>

#define ROUNDS_A_LOOK 4096
#define LINE_EVERY_US 2000000

TENURE_EXPORT(entry) {
    uint64_t rounds = 0;
    for (uint64_t next_line = tenure_uptime_us();;) {
        for (volatile int round = 0; round < ROUNDS_A_LOOK; round++) {
        }
        rounds += ROUNDS_A_LOOK;
        if (tenure_uptime_us() >= next_line) {
            tenure_info("still spinning, %llu rounds so far", rounds);
            next_line += LINE_EVERY_US;
        }
    }
}
