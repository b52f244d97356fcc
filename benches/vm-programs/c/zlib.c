/* zlib: deflates a text and inflates it again. */
#include <stdlib.h>
#include <string.h>

#include "text.h"
#include "zlib.h"

enum { LENGTH = 32768 };
static unsigned char text[LENGTH], packed[LENGTH], unpacked[LENGTH];

static voidpf take(voidpf of, uInt count, uInt length) { return (void)of, calloc(count, length); }
static void give(voidpf of, voidpf at) { (void)of, (void)at; }

uint32_t run(void) {
    heap_reset();
    fill_with_text(text, LENGTH);
    z_stream to = {.zalloc = take, .zfree = give};
    to.next_in = text, to.avail_in = LENGTH;
    to.next_out = packed, to.avail_out = LENGTH;
    if (deflateInit2(&to, 6, Z_DEFLATED, 12, 5, Z_DEFAULT_STRATEGY) != Z_OK) return 0x80000000;
    if (deflate(&to, Z_FINISH) != Z_STREAM_END) return 0x80000001;
    z_stream from = {.zalloc = take, .zfree = give};
    from.next_in = packed, from.avail_in = to.total_out;
    from.next_out = unpacked, from.avail_out = LENGTH;
    if (inflateInit2(&from, 12) != Z_OK) return 0x80000002;
    if (inflate(&from, Z_FINISH) != Z_STREAM_END || memcmp(text, unpacked, LENGTH) != 0) return 0x80000003;
    return checksum(packed, to.total_out);
}
