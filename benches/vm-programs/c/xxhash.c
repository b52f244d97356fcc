/* xxHash: 64-bit hashes of a text. */
#include "text.h"
#include "xxhash.h"

enum { LENGTH = 65536 };
static unsigned char text[LENGTH];

uint32_t run(void) {
    fill_with_text(text, LENGTH);
    uint64_t hash = 0;
    for (uint32_t at = 0; at < 64; at++) hash = XXH64(text, LENGTH - at, hash);
    return (uint32_t)(hash ^ hash >> 32) & 0x7FFFFFFF;
}
