/* Text for programs that compress, and a checksum over what they make of it. */
#pragma once
#include <stdint.h>

static void fill_with_text(unsigned char *to, uint32_t length) {
    static const char *const words[] = {
        "the ", "tenant ", "of ", "a ", "device ", "reads ", "sends ", "temperature ",
        "each ", "hour, ", "and ", "then ", "sleeps ", "until ", "woken. ", "\n",
        "42 ", "17.5 ", "celsius ", "in ", "rooms ", "where ", "windows ", "are ",
    };
    uint32_t random = 0x7E17;
    const char *word = "";
    for (uint32_t at = 0; at < length; at++) {
        if (!*word) {
            random = random * 1664525 + 1013904223;
            word = words[(random >> 16) % (sizeof words / sizeof *words)];
        }
        to[at] = (unsigned char)*word++;
    }
}

/* FNV-1a. */
static uint32_t checksum(const unsigned char *bytes, uint32_t length) {
    uint32_t sum = 0x811C9DC5;
    for (uint32_t at = 0; at < length; at++) sum = (sum ^ bytes[at]) * 16777619;
    return sum & 0x7FFFFFFF;
}
