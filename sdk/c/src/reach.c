/* Requests to servers outside: a message made of fields and body, and an answer taken apart. */
#include <stdlib.h>
#include <string.h>
#include <tenure.h>

/* What an answer begins with; the three digits of the status follow. */
#define START "HTTP/1.1 "

/* A letter of a field's name, whose case doesn't count (RFC 9110, 5.1). */
static int lower(char letter) {
    return letter >= 'A' && letter <= 'Z' ? letter + ('a' - 'A') : letter;
}

static bool is_named(const char *line, const char *name, size_t length) {
    for (size_t at = 0; at < length; at++) {
        if (lower(line[at]) != lower(name[at])) {
            return false;
        }
    }
    return line[length] == ':';
}

/* Where the empty line behind the fields begins, or NULL if there is none. */
static char *empty_line(char *text, size_t length) {
    for (size_t at = 0; at + 4 <= length; at++) {
        if (memcmp(text + at, "\r\n\r\n", 4) == 0) {
            return text + at + 2;
        }
    }
    return NULL;
}

const char *tenure_http_field(const struct tenure_http_response *response, const char *name,
                              size_t *length) {
    size_t name_length = strlen(name);
    const char *line = response->fields;
    while (line != NULL && *line != 0) {
        const char *end = strstr(line, "\r\n");
        if (end == NULL) {
            break;
        }
        if ((size_t)(end - line) > name_length && is_named(line, name, name_length)) {
            const char *value = line + name_length + 1;
            while (*value == ' ') {
                value++;
            }
            *length = (size_t)(end - value);
            return value;
        }
        line = end + 2;
    }
    *length = 0;
    return NULL;
}

/* Takes an answer apart in its own block; false if it is none. */
static bool take_apart(struct tenure_http_response *response, char *told, size_t length,
                       bool is_head) {
    size_t start = strlen(START);
    char *end = empty_line(told, length);
    char *line = end == NULL ? NULL : strstr(told, "\r\n");
    if (line == NULL || length < start + 3 || memcmp(told, START, start) != 0) {
        return false;
    }
    response->status = (int)strtol(told + start, NULL, 10);
    response->block = told;
    response->fields = line + 2;
    response->body = end + 2;
    response->length = length - (size_t)(response->body - told);
    *end = 0;
    size_t digits;
    const char *whole = tenure_http_field(response, "content-length", &digits);
    bool is_known = whole != NULL && strtoll(whole, NULL, 10) == (long long)response->length;
    response->more =
        !is_known && !is_head && response->status != 204 && response->status != 304;
    return true;
}

struct tenure_http_response tenure_http_request(const char *method, const char *url,
                                                const char *fields, const void *body,
                                                size_t length) {
    struct tenure_http_response response = {0};
    size_t head = fields == NULL ? 0 : strlen(fields);
    char *message = malloc(head + 2 + length);
    if (message == NULL) {
        response.error = TENURE_FULL;
        return response;
    }
    memcpy(message, fields == NULL ? "" : fields, head);
    memcpy(message + head, "\r\n", 2);
    memcpy(message + head + 2, length > 0 ? body : "", length);
    struct tenure_result result = tenure_call(url, method, message, head + 2 + length);
    free(message);
    response.error = result.error;
    bool is_head = strcmp(method, "HEAD") == 0;
    if (result.error == 0 &&
        (result.value == NULL || !take_apart(&response, result.value, result.length, is_head))) {
        free(result.value);
        response.error = TENURE_DEVICE;
    }
    return response;
}

struct tenure_result tenure_http_more(const char *url) {
    return tenure_call(url, "more", NULL, 0);
}
