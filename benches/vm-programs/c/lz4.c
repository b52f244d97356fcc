/* LZ4: compresses a text and decompresses it again. */
#include <string.h>

#include "lz4.h"
#include "text.h"

enum { LENGTH = 65536 };
static char text[LENGTH], packed[LENGTH], unpacked[LENGTH];
static _Alignas(16) char state[LZ4_STREAM_MINSIZE];

uint32_t run(void) {
    fill_with_text((unsigned char *)text, LENGTH);
    int length = LZ4_compress_fast_extState(state, text, packed, LENGTH, LENGTH, 1);
    if (length <= 0) return 0x80000000;
    if (LZ4_decompress_safe(packed, unpacked, length, LENGTH) != LENGTH) return 0x80000001;
    if (memcmp(text, unpacked, LENGTH) != 0) return 0x80000002;
    return checksum((unsigned char *)packed, (uint32_t)length);
}
