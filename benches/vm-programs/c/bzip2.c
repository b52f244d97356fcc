/* bzip2: compresses a text and decompresses it again. */
#include <stdlib.h>
#include <string.h>

#include "bzlib.h"
#include "text.h"

enum { LENGTH = 32768 };
static char text[LENGTH], packed[LENGTH], unpacked[LENGTH];

void bz_internal_error(int code) { exit(code); }

static void *take(void *of, int count, int length) { return (void)of, malloc(count * length); }
static void give(void *of, void *at) { (void)of, (void)at; }

uint32_t run(void) {
    heap_reset();
    fill_with_text((unsigned char *)text, LENGTH);
    bz_stream to = {.bzalloc = take, .bzfree = give};
    to.next_in = text, to.avail_in = LENGTH;
    to.next_out = packed, to.avail_out = LENGTH;
    if (BZ2_bzCompressInit(&to, 1, 0, 30) != BZ_OK) return 0x80000000;
    if (BZ2_bzCompress(&to, BZ_FINISH) != BZ_STREAM_END) return 0x80000001;
    bz_stream from = {.bzalloc = take, .bzfree = give};
    from.next_in = packed, from.avail_in = to.total_out_lo32;
    from.next_out = unpacked, from.avail_out = LENGTH;
    if (BZ2_bzDecompressInit(&from, 0, 0) != BZ_OK) return 0x80000002;
    if (BZ2_bzDecompress(&from) != BZ_STREAM_END || memcmp(text, unpacked, LENGTH) != 0) return 0x80000003;
    return checksum((unsigned char *)packed, to.total_out_lo32);
}
