/* Never gives the processor back, and yet the others run: a machine is pre-empted anywhere. */
#include <tenure.h>

#define ROUNDS_A_LINE (1u << 24)

TENURE_EXPORT(entry) {
    for (uint32_t line = 0;; line++) {
        for (volatile uint32_t round = 0; round < ROUNDS_A_LINE; round++) {
        }
        tenure_info("still spinning, %u", line);
    }
}
