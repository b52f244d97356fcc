/* Bytes in memory: the primes below 16,384 by the sieve of Eratosthenes. */
enum { LIMIT = 16384 };
static unsigned char composite[LIMIT];

unsigned run(unsigned repetitions) {
    unsigned count = 0;
    while (repetitions--) {
        count = 0;
        for (unsigned i = 0; i < LIMIT; i++) {
            composite[i] = 0;
        }
        for (unsigned i = 2; i < LIMIT; i++) {
            if (composite[i]) {
                continue;
            }
            count++;
            for (unsigned j = i + i; j < LIMIT; j += i) {
                composite[j] = 1;
            }
        }
    }
    return count;
}
