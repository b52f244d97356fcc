/* snprintf: the conversions that <stdio.h> names. */
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct output {
    char *into;
    size_t capacity;
    /* How long the whole text is, whether it fits or not. */
    size_t length;
};

struct conversion {
    bool left, plus, space, alternate, zero;
    int width;
    int precision; /* -1: none given */
    int length;    /* in steps: -2 hh, -1 h, 0 int, 1 l, 2 ll */
};

static void put(struct output *output, char character) {
    if (output->length + 1 < output->capacity) {
        output->into[output->length] = character;
    }
    output->length++;
}

static void put_many(struct output *output, char character, int count) {
    while (count-- > 0) {
        put(output, character);
    }
}

/* Writes sign or prefix, zeros and text, padded to the width. */
static void put_field(struct output *output, const struct conversion *conversion,
                      const char *prefix, int zeros, const char *text, int length) {
    int prefix_length = (int)strlen(prefix);
    int padding = conversion->width - prefix_length - zeros - length;
    if (conversion->zero && !conversion->left && padding > 0) {
        zeros += padding;
        padding = 0;
    }
    if (!conversion->left) {
        put_many(output, ' ', padding);
    }
    for (int at = 0; at < prefix_length; at++) {
        put(output, prefix[at]);
    }
    put_many(output, '0', zeros);
    for (int at = 0; at < length; at++) {
        put(output, text[at]);
    }
    if (conversion->left) {
        put_many(output, ' ', padding);
    }
}

/* Writes the digits of a number up to `end`; returns where they begin. */
static char *digits(char *end, uint64_t number, unsigned base, bool upper) {
    for (; number > 0; number /= base) {
        unsigned digit = (unsigned)(number % base);
        *--end = (char)(digit < 10 ? '0' + digit : (upper ? 'A' : 'a') + digit - 10);
    }
    return end;
}

static const char *sign_of(const struct conversion *conversion, bool negative) {
    return negative ? "-" : conversion->plus ? "+" : conversion->space ? " " : "";
}

static void put_integer(struct output *output, struct conversion *conversion, const char *prefix,
                        uint64_t number, unsigned base, bool upper) {
    char buffer[24];
    char *end = buffer + sizeof buffer;
    char *start = digits(end, number, base, upper);
    int length = (int)(end - start);
    int least = conversion->precision < 0 ? 1 : conversion->precision;
    if (conversion->precision >= 0) {
        conversion->zero = false;
    }
    put_field(output, conversion, prefix, least > length ? least - length : 0, start, length);
}

#define FRACTION_DIGITS_MAX 9

/* Writes a number with a fraction. Beyond 2^63 it says "inf": machines count and measure. */
static void put_decimal(struct output *output, struct conversion *conversion, double number) {
    bool negative = number < 0;
    const char *sign = sign_of(conversion, negative);
    double magnitude = negative ? -number : number;
    if (!(magnitude < 9.2e18)) {
        conversion->zero = false;
        put_field(output, conversion, sign, 0, magnitude != magnitude ? "nan" : "inf", 3);
        return;
    }
    int places = conversion->precision < 0 ? 6 : conversion->precision;
    int exact = places < FRACTION_DIGITS_MAX ? places : FRACTION_DIGITS_MAX;
    uint64_t scale = 1;
    for (int place = 0; place < exact; place++) {
        scale *= 10;
    }
    uint64_t whole = (uint64_t)magnitude;
    uint64_t fraction = (uint64_t)((magnitude - (double)whole) * (double)scale + 0.5);
    if (fraction >= scale) {
        whole++;
        fraction -= scale;
    }
    char buffer[24 + FRACTION_DIGITS_MAX];
    char *end = buffer + sizeof buffer;
    char *start = end;
    if (exact > 0) {
        start = digits(end, fraction, 10, false);
        while (start > end - exact) {
            *--start = '0';
        }
        *--start = '.';
    }
    char *whole_end = start;
    start = digits(start, whole, 10, false);
    if (start == whole_end) {
        *--start = '0';
    }
    put_field(output, conversion, sign, 0, start, (int)(end - start));
}

static uint64_t take_unsigned(const struct conversion *conversion, va_list *arguments) {
    uint64_t number = conversion->length >= 2 ? va_arg(*arguments, unsigned long long)
                                              : va_arg(*arguments, unsigned);
    return conversion->length == -1   ? (unsigned short)number
           : conversion->length == -2 ? (unsigned char)number
                                      : number;
}

static int64_t take_signed(const struct conversion *conversion, va_list *arguments) {
    int64_t number =
        conversion->length >= 2 ? va_arg(*arguments, long long) : va_arg(*arguments, int);
    return conversion->length == -1   ? (short)number
           : conversion->length == -2 ? (signed char)number
                                      : number;
}

static int read_count(const char **format, va_list *arguments) {
    if (**format == '*') {
        ++*format;
        return va_arg(*arguments, int);
    }
    int count = 0;
    for (; **format >= '0' && **format <= '9'; ++*format) {
        count = count < 100000 ? count * 10 + (**format - '0') : count;
    }
    return count;
}

/* Reads what stands between % and the conversion's letter. */
static struct conversion read_conversion(const char **format, va_list *arguments) {
    struct conversion conversion = {.precision = -1};
    for (;; ++*format) {
        switch (**format) {
        case '-': conversion.left = true; continue;
        case '+': conversion.plus = true; continue;
        case ' ': conversion.space = true; continue;
        case '#': conversion.alternate = true; continue;
        case '0': conversion.zero = true; continue;
        }
        break;
    }
    conversion.width = read_count(format, arguments);
    if (conversion.width < 0) {
        conversion.left = true;
        conversion.width = -conversion.width;
    }
    if (**format == '.') {
        ++*format;
        conversion.precision = read_count(format, arguments);
    }
    for (;; ++*format) {
        switch (**format) {
        case 'h': conversion.length--; continue;
        case 'l': conversion.length++; continue;
        case 'z': continue;
        }
        return conversion;
    }
}

static void put_text(struct output *output, struct conversion *conversion, const char *text) {
    text = text ? text : "(null)";
    size_t most = conversion->precision < 0 ? SIZE_MAX : (size_t)conversion->precision;
    conversion->zero = false;
    put_field(output, conversion, "", 0, text, (int)strnlen(text, most));
}

static void put_conversion(struct output *output, char letter, struct conversion *conversion,
                           va_list *arguments) {
    bool alternate = conversion->alternate;
    switch (letter) {
    case 'd':
    case 'i': {
        int64_t number = take_signed(conversion, arguments);
        uint64_t magnitude = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
        put_integer(output, conversion, sign_of(conversion, number < 0), magnitude, 10, false);
        return;
    }
    case 'u':
        put_integer(output, conversion, "", take_unsigned(conversion, arguments), 10, false);
        return;
    case 'o':
        put_integer(output, conversion, alternate ? "0" : "", take_unsigned(conversion, arguments),
                    8, false);
        return;
    case 'x':
    case 'X': {
        uint64_t number = take_unsigned(conversion, arguments);
        const char *prefix = !alternate || number == 0 ? "" : letter == 'x' ? "0x" : "0X";
        put_integer(output, conversion, prefix, number, 16, letter == 'X');
        return;
    }
    case 'p':
        put_integer(output, conversion, "0x", (uintptr_t)va_arg(*arguments, void *), 16, false);
        return;
    case 'f':
        put_decimal(output, conversion, va_arg(*arguments, double));
        return;
    case 'c': {
        char character = (char)va_arg(*arguments, int);
        put_field(output, conversion, "", 0, &character, 1);
        return;
    }
    case 's':
        put_text(output, conversion, va_arg(*arguments, const char *));
        return;
    default:
        put(output, letter);
    }
}

int vsnprintf(char *__restrict into, size_t capacity, const char *__restrict format,
              va_list given) {
    struct output output = {into, capacity, 0};
    va_list arguments;
    va_copy(arguments, given);
    for (const char *at = format; *at != 0; at++) {
        if (*at != '%') {
            put(&output, *at);
            continue;
        }
        at++;
        struct conversion conversion = read_conversion(&at, &arguments);
        if (*at == 0) {
            break;
        }
        put_conversion(&output, *at, &conversion, &arguments);
    }
    va_end(arguments);
    if (capacity > 0) {
        into[output.length < capacity ? output.length : capacity - 1] = 0;
    }
    return (int)output.length;
}

int snprintf(char *__restrict into, size_t capacity, const char *__restrict format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(into, capacity, format, arguments);
    va_end(arguments);
    return length;
}
