// Seals and opens a message, and checks the keystream of RFC 8439 §2.4.2.
#include "tenure_cipher.h"

#include <stdio.h>
#include <string.h>

static int failed(const char *what) {
    printf("failed: %s\n", what);
    return 1;
}

int main(void) {
    uint8_t key[32], nonce[12] = {0, 0, 0, 0, 0, 0, 0, 0x4a}, tag[16];
    for (int i = 0; i < 32; i++) key[i] = (uint8_t)i;

    uint8_t text[] = "Ladies and Gentlemen of the class of '99";
    uint8_t data[sizeof text];
    memcpy(data, text, sizeof text);
    const uint8_t expected[8] = {0x6e, 0x2e, 0x35, 0x9a, 0x25, 0x68, 0xf9, 0x80};
    if (tenure_chacha20_xor(key, nonce, 64, data, sizeof data) != TENURE_CIPHER_RESULT_OK)
        return failed("xor");
    if (memcmp(data, expected, sizeof expected)) return failed("RFC 8439 2.4.2");
    const uint64_t end = (uint64_t)64 << 32;
    if (tenure_chacha20_xor(key, nonce, end - 1, data, 2) != TENURE_CIPHER_RESULT_TOO_LONG)
        return failed("the end of the keystream");

    memcpy(data, text, sizeof text);
    if (tenure_chacha20_poly1305_seal(key, nonce, NULL, 0, data, sizeof data, tag)
        != TENURE_CIPHER_RESULT_OK)
        return failed("seal");
    if (!memcmp(data, text, sizeof text)) return failed("seal");
    tag[3] ^= 1;
    if (tenure_chacha20_poly1305_open(key, nonce, NULL, 0, data, sizeof data, tag)
        != TENURE_CIPHER_RESULT_FORGED)
        return failed("a forged tag");
    tag[3] ^= 1;
    if (tenure_chacha20_poly1305_open(key, nonce, NULL, 0, data, sizeof data, tag)
        != TENURE_CIPHER_RESULT_OK)
        return failed("open");
    if (memcmp(data, text, sizeof text)) return failed("the text came back changed");

    // Nothing is changed by a caller's mistakes, and none is taken for success.
    const tenure_cipher_result bad[] = {
        tenure_chacha20_xor(NULL, nonce, 0, data, sizeof data),
        tenure_chacha20_xor(key, NULL, 0, data, sizeof data),
        tenure_chacha20_xor(key, nonce, 0, NULL, 1),
        tenure_chacha20_xor(key, nonce, 0, data, SIZE_MAX),
        tenure_chacha20_poly1305_seal(key, nonce, NULL, 1, data, sizeof data, tag),
        tenure_chacha20_poly1305_seal(key, nonce, NULL, 0, data, sizeof data, NULL),
        tenure_chacha20_poly1305_seal(key, nonce, data + 1, 1, data, sizeof data, tag),
        tenure_chacha20_poly1305_seal(key, nonce, NULL, 0, data, sizeof data, data + 4),
        tenure_xchacha20_poly1305_open(key, NULL, NULL, 0, data, sizeof data, tag),
        tenure_poly1305(key, NULL, 1, tag),
        tenure_poly1305(key, data, 1, NULL),
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (bad[i] != TENURE_CIPHER_RESULT_BAD_ARGUMENT) return failed("a bad argument");
    if (memcmp(data, text, sizeof text)) return failed("a bad argument changed the text");
    if (tenure_chacha20_xor(key, nonce, 0, NULL, 0) != TENURE_CIPHER_RESULT_OK
        || tenure_chacha20_poly1305_seal(key, nonce, NULL, 0, NULL, 0, tag)
               != TENURE_CIPHER_RESULT_OK)
        return failed("nothing at all");
    printf("ok\n");
    return 0;
}
