// Run under valgrind: keys and texts are marked as undefined, so that every branch and every
// address that depends on one is an error. With an argument it makes such a branch itself.
#include "tenure_cipher.h"

#include <stdio.h>
#include <valgrind/memcheck.h>

static uint8_t key[32], nonce[24], data[20000], header[37], tag[16];

static void hide(void) {
    VALGRIND_MAKE_MEM_UNDEFINED(key, sizeof key);
    VALGRIND_MAKE_MEM_UNDEFINED(data, sizeof data);
    VALGRIND_MAKE_MEM_UNDEFINED(header, sizeof header);
}

int main(int argc, char **argv) {
    (void)argv;
    const size_t lengths[] = {0, 1, 63, 64, 65, 200, 1024, 2100, 20000};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        hide();
        tenure_cipher_result results[] = {
            tenure_chacha20_xor(key, nonce, 17, data, lengths[i]),
            tenure_chacha20_legacy_xor(key, nonce, (uint64_t)64 << 32, data, lengths[i]),
            tenure_xchacha20_xor(key, nonce, 0, data, lengths[i]),
            tenure_chacha20_poly1305_seal(key, nonce, header, sizeof header, data, lengths[i], tag),
            tenure_xchacha20_poly1305_seal(key, nonce, header, i, data, lengths[i], tag),
            tenure_poly1305(key, data, lengths[i], tag),
        };
        for (size_t j = 0; j < sizeof results / sizeof results[0]; j++)
            if (results[j] != TENURE_CIPHER_RESULT_OK) return 1;
    }
    if (argc > 1) {
        hide();
        if (key[0] & 1) puts("odd");
    }
    return 0;
}
