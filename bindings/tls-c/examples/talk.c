// One connection over TCP, by tenure_tls.h.
//
//   talk client PORT AUTHORITY NAME      sends what stands on standard input, prints the answer
//   talk server PORT KEY CERTIFICATE...  echoes one connection; says first where it listens
//
// Files are in DER. A server takes PORT 0 for any that is free.
#include "tenure_tls.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BUFFER_BYTES 4500
#define FILE_BYTES_MAX 8192
#define QUESTION_BYTES_MAX 65536

static _Alignas(TENURE_TLS_MEMORY_ALIGNMENT) uint8_t memory[TENURE_TLS_MEMORY_BYTES];
static uint8_t buffer[BUFFER_BYTES];
static uint8_t files[TENURE_TLS_LIST_MAX + 1][FILE_BYTES_MAX];
static uint8_t question[QUESTION_BYTES_MAX];

static bool fill(void *context, uint8_t *bytes, size_t len) {
    (void)context;
    return getrandom(bytes, len, 0) == (ssize_t)len;
}

static tenure_tls_now now(void) {
    struct timespec uptime;
    clock_gettime(CLOCK_MONOTONIC, &uptime);
    tenure_tls_now now = {
        .uptime_ms = (uint64_t)uptime.tv_sec * 1000 + (uint64_t)uptime.tv_nsec / 1000000,
        .date_s = time(NULL),
        .has_date = true,
    };
    return now;
}

static void fail(const char *what) {
    fprintf(stderr, "%s\n", what);
    exit(1);
}

static tenure_tls_bytes read_file(const char *name, uint8_t *into) {
    FILE *file = fopen(name, "rb");
    if (!file) fail("a file can't be opened");
    tenure_tls_bytes bytes = {into, fread(into, 1, FILE_BYTES_MAX, file)};
    fclose(file);
    return bytes;
}

static void flush(tenure_tls *tls, int stream) {
    size_t len;
    for (;;) {
        const uint8_t *output = tenure_tls_output(tls, &len);
        if (len == 0) return;
        ssize_t sent = send(stream, output, len, MSG_NOSIGNAL);
        // The peer may be gone; what came in says why.
        tenure_tls_sent(tls, sent > 0 ? (size_t)sent : len);
    }
}

// Sends `len` bytes of the question from `*from` on, as far as they fit.
static void ask(tenure_tls *tls, int stream, size_t *from, size_t len) {
    while (tenure_tls_is_connected(tls) && *from < len) {
        size_t sent = 0;
        if (tenure_tls_send(tls, question + *from, len - *from, &sent) != TENURE_TLS_RESULT_OK) return;
        *from += sent;
        flush(tls, stream);
    }
}

// Speaks until the peer closes, or until a client without a question to wait for is connected.
static tenure_tls_result speak(tenure_tls *tls, int stream, size_t len, bool echoes) {
    size_t asked = 0;
    for (;;) {
        tenure_tls_now at = now();
        tenure_tls_event event = TENURE_TLS_EVENT_IDLE;
        tenure_tls_result result = tenure_tls_poll(tls, &at, &event);
        flush(tls, stream);
        if (result != TENURE_TLS_RESULT_OK) return result;
        if (event == TENURE_TLS_EVENT_CONNECTED) {
            fprintf(stderr, "suite %04x, group %04x\n", tenure_tls_suite(tls), tenure_tls_group(tls));
        } else if (event == TENURE_TLS_EVENT_DATA) {
            size_t data_len, sent = 0;
            const uint8_t *data = tenure_tls_data(tls, &data_len);
            if (echoes) {
                if (data_len > sizeof question) data_len = sizeof question;
                memcpy(question, data, data_len);
                tenure_tls_consume(tls, data_len);
                ask(tls, stream, &sent, data_len);
            } else {
                fwrite(data, 1, data_len, stdout);
                tenure_tls_consume(tls, data_len);
            }
        } else if (event == TENURE_TLS_EVENT_PEER_CLOSED) {
            tenure_tls_close(tls);
            flush(tls, stream);
            return TENURE_TLS_RESULT_OK;
        } else if (event == TENURE_TLS_EVENT_IDLE) {
            if (!echoes && tenure_tls_is_connected(tls) && asked < len) {
                ask(tls, stream, &asked, len);
                // This end has said all; the peer answers and closes.
                tenure_tls_close(tls);
                flush(tls, stream);
                continue;
            }
            size_t room;
            uint8_t *space = tenure_tls_space(tls, &room);
            ssize_t received = recv(stream, space, room, 0);
            if (received > 0) {
                tenure_tls_received(tls, (size_t)received);
            } else {
                result = tenure_tls_end_of_input(tls);
                if (result != TENURE_TLS_RESULT_OK) return result;
            }
        }
    }
}

// Misuse is told, and changes nothing.
static void misuse(void) {
    tenure_tls *tls = NULL;
    tenure_tls_event event;
    tenure_tls_now at = now();
    tenure_tls_client_config config;
    memset(&config, 0, sizeof config);
    size_t len = 1;
    const tenure_tls_result results[] = {
        tenure_tls_poll(NULL, &at, &event),
        tenure_tls_send(NULL, NULL, 0, &len),
        tenure_tls_client(NULL, 0, buffer, sizeof buffer, &config, &at, &tls),
        tenure_tls_client(memory, 64, buffer, sizeof buffer, &config, &at, &tls),
        tenure_tls_client(memory + 1, sizeof memory - 1, buffer, sizeof buffer, &config, &at, &tls),
        tenure_tls_client(memory, sizeof memory, memory, 100, &config, &at, &tls),
        tenure_tls_client(memory, sizeof memory, buffer, sizeof buffer, NULL, &at, &tls),
        tenure_tls_client(memory, sizeof memory, buffer, SIZE_MAX, &config, &at, &tls),
    };
    for (size_t i = 0; i < sizeof results / sizeof results[0]; i++)
        if (results[i] != TENURE_TLS_RESULT_BAD_ARGUMENT) fail("a misuse was taken");
    config.protocols.count = TENURE_TLS_LIST_MAX + 1;
    tenure_tls_result result = tenure_tls_client(memory, sizeof memory, buffer, sizeof buffer, &config, &at, &tls);
    if (result != TENURE_TLS_RESULT_BAD_ARGUMENT)
        fail("a list that is too long was taken");
    config.protocols.count = 0;
    result = tenure_tls_client(memory, sizeof memory, buffer, sizeof buffer, &config, &at, &tls);
    if (result != TENURE_TLS_RESULT_CONFIGURATION)
        fail("a server without a name was taken");
    if (tls != NULL || tenure_tls_is_connected(tls) || tenure_tls_suite(tls) != 0) fail("there is a connection");
    if (tenure_tls_space(tls, &len) == NULL || len != 0) fail("there is room without a buffer");
    // A connection without randomness ends, and says why.
    config.server_name = (tenure_tls_bytes){(const uint8_t *)"a.test", 6};
    config.handshake_ms_max = 1000;
    result = tenure_tls_client(memory, sizeof memory, buffer, sizeof buffer, &config, &at, &tls);
    if (result != TENURE_TLS_RESULT_OK) fail("no client");
    char text[20];
    if (tenure_tls_poll(tls, &at, &event) != TENURE_TLS_RESULT_SECURITY) fail("randomness from nowhere");
    tenure_tls_error_text(tls, (uint8_t *)text, sizeof text);
    if (strcmp(text, "an operation with k") != 0) fail("the text isn't cut");
    tenure_tls_wipe(tls);
}

int main(int argc, char **argv) {
    misuse();
    if (argc < 5 || argc > 4 + TENURE_TLS_LIST_MAX) {
        fail("talk client PORT AUTHORITY NAME | talk server PORT KEY CERTIFICATE...");
    }
    const bool is_server = strcmp(argv[1], "server") == 0;
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons((uint16_t)atoi(argv[2])),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    socklen_t address_len = sizeof address;
    int stream = socket(AF_INET, SOCK_STREAM, 0);
    const tenure_tls_random random = {fill, NULL};
    const tenure_tls_bytes first = read_file(argv[3], files[0]);
    tenure_tls *tls = NULL;
    tenure_tls_result result;
    size_t len = 0;
    if (is_server) {
        if (bind(stream, (struct sockaddr *)&address, sizeof address) || listen(stream, 1)) fail("can't listen");
        getsockname(stream, (struct sockaddr *)&address, &address_len);
        printf("listening %d\n", ntohs(address.sin_port));
        fflush(stdout);
        stream = accept(stream, NULL, NULL);
        tenure_tls_bytes chain[TENURE_TLS_LIST_MAX];
        for (int i = 4; i < argc; i++) chain[i - 4] = read_file(argv[i], files[i - 3]);
        const tenure_tls_server_config config = {
            .identity = {.chain = {chain, (size_t)argc - 4}, .private_key = first},
            .random = random,
            .handshake_ms_max = 10000,
        };
        tenure_tls_now at = now();
        result = tenure_tls_server(memory, sizeof memory, buffer, sizeof buffer, &config, &at, &tls);
    } else {
        if (connect(stream, (struct sockaddr *)&address, sizeof address)) fail("can't connect");
        len = fread(question, 1, sizeof question, stdin);
        const tenure_tls_client_config config = {
            .server_name = {(const uint8_t *)argv[4], strlen(argv[4])},
            .authorities = {&first, 1},
            .random = random,
            .handshake_ms_max = 10000,
        };
        tenure_tls_now at = now();
        result = tenure_tls_client(memory, sizeof memory, buffer, sizeof buffer, &config, &at, &tls);
    }
    if (result == TENURE_TLS_RESULT_OK) result = speak(tls, stream, len, is_server);
    if (result != TENURE_TLS_RESULT_OK) {
        char text[100] = "";
        tenure_tls_error_text(tls, (uint8_t *)text, sizeof text);
        fprintf(stderr, "result %d: %s\n", result, text);
    }
    tenure_tls_wipe(tls);
    for (size_t i = 0; i < sizeof memory; i++)
        if (memory[i] != 0) fail("something is left");
    close(stream);
    return result != TENURE_TLS_RESULT_OK;
}
