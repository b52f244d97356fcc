/* Tight loops over bits: CRC-32 of 2,048 bytes, bit by bit. */
enum { LENGTH = 2048 };
static unsigned char data[LENGTH];
/* Not a constant: compilers turn the loop into a table if they know it. */
static unsigned polynomial = 0xEDB88320u;

__attribute__((noinline)) static unsigned crc32(const unsigned char *bytes, unsigned length) {
    unsigned reversed = *(volatile unsigned *)&polynomial;
    unsigned crc = 0xFFFFFFFFu;
    for (unsigned i = 0; i < length; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) {
            crc = crc & 1 ? crc >> 1 ^ reversed : crc >> 1;
        }
    }
    return ~crc;
}

unsigned run(unsigned repetitions) {
    unsigned sum = 0;
    for (unsigned i = 0; i < LENGTH; i++) {
        data[i] = (unsigned char)(i * 7 + 3);
    }
    while (repetitions--) {
        sum ^= crc32(data, LENGTH) + repetitions;
    }
    return sum;
}
