/* A program of Embench, once through; its own check of the result decides the upper bit. */
#include <stdint.h>

void initialise_benchmark(void);
int benchmark(void);
int verify_benchmark(int result);

uint32_t run(void) {
    initialise_benchmark();
    int result = benchmark();
    return verify_benchmark(result) ? (uint32_t)result & 0x7FFFFFFF : 0x80000000;
}
