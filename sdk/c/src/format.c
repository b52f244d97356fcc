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

/* Writes what stands before a text of that length: spaces up to the width, sign or prefix, zeros. Returns how many
 * spaces stand behind it. */
static int begin_field(struct output *output, const struct conversion *conversion,
                       const char *prefix, int zeros, int length) {
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
    return conversion->left ? padding : 0;
}

/* Writes sign or prefix, zeros and text, padded to the width. */
static void put_field(struct output *output, const struct conversion *conversion,
                      const char *prefix, int zeros, const char *text, int length) {
    int spaces = begin_field(output, conversion, prefix, zeros, length);
    for (int at = 0; at < length; at++) {
        put(output, text[at]);
    }
    put_many(output, ' ', spaces);
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
    /* Octal digits begin with a zero then, one of the zeros that are there anyway or another. */
    if (base == 8 && conversion->alternate && least <= length) {
        least = length + 1;
    }
    put_field(output, conversion, prefix, least > length ? least - length : 0, start, length);
}

/* A double in full: its least bit is 2^-1074 and its greatest 2^1023. */
#define FRACTION_WORDS 34
#define WHOLE_WORDS 32
#define WHOLE_DIGITS_MAX 309
#define BITS_OF_WORD 32
/* Behind these all digits of a fraction are 0. */
#define FRACTION_DIGITS_MAX 1074

struct exact {
    /* The least first, and a word more for the shift. */
    uint32_t fraction[FRACTION_WORDS];
    uint32_t whole[WHOLE_WORDS + 1];
};

_Static_assert(sizeof(struct exact) == (FRACTION_WORDS + WHOLE_WORDS + 1) * sizeof(uint32_t),
               "fraction and whole are one row of words");

/* Sets it to `mantissa`, which has 53 bits, times 2^`exponent`. */
static void set_exact(struct exact *exact, uint64_t mantissa, int exponent) {
    memset(exact, 0, sizeof *exact);
    unsigned bit = (unsigned)(exponent + FRACTION_WORDS * BITS_OF_WORD);
    unsigned shift = bit % BITS_OF_WORD;
    uint64_t low = (mantissa & UINT32_MAX) << shift;
    uint64_t high = (mantissa >> BITS_OF_WORD << shift) | low >> BITS_OF_WORD;
    uint32_t words[3] = {(uint32_t)low, (uint32_t)high, (uint32_t)(high >> BITS_OF_WORD)};
    memcpy((char *)exact + bit / BITS_OF_WORD * sizeof(uint32_t), words, sizeof words);
}

/* Takes the next decimal digit off a fraction. */
static unsigned next_digit(uint32_t *fraction) {
    uint64_t carry = 0;
    for (int at = 0; at < FRACTION_WORDS; at++) {
        carry += (uint64_t)fraction[at] * 10;
        fraction[at] = (uint32_t)carry;
        carry >>= BITS_OF_WORD;
    }
    return (unsigned)carry;
}

/* Whether a number is rounded up that has this fraction behind its last digit: to the nearest, and to the even one of
 * two. */
static bool rounds_up(const uint32_t *fraction, bool is_odd) {
    const uint32_t half = UINT32_C(1) << (BITS_OF_WORD - 1);
    uint32_t most = fraction[FRACTION_WORDS - 1];
    bool has_more = most > half;
    for (int at = 0; at < FRACTION_WORDS - 1; at++) {
        has_more |= fraction[at] != 0;
    }
    return most >= half && (has_more || is_odd);
}

/* Writes the digits of a whole number up to `end`, and returns where they begin; takes the number apart. */
static char *whole_digits(char *end, uint32_t *whole) {
    int count = WHOLE_WORDS + 1;
    char *start = end;
    do {
        uint64_t rest = 0;
        for (int at = count - 1; at >= 0; at--) {
            rest = rest << BITS_OF_WORD | whole[at];
            whole[at] = (uint32_t)(rest / 10);
            rest %= 10;
        }
        *--start = (char)('0' + rest);
        while (count > 0 && whole[count - 1] == 0) {
            count--;
        }
    } while (count > 0);
    return start;
}

static void put_decimal(struct output *output, struct conversion *conversion, double number) {
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    const char *sign = sign_of(conversion, bits >> 63);
    int power = (int)(bits >> 52 & 0x7ff);
    uint64_t mantissa = bits & ((UINT64_C(1) << 52) - 1);
    if (power == 0x7ff) {
        conversion->zero = false;
        put_field(output, conversion, sign, 0, mantissa != 0 ? "nan" : "inf", 3);
        return;
    }
    mantissa |= power > 0 ? UINT64_C(1) << 52 : 0;
    int exponent = (power > 0 ? power : 1) - 1075;
    int places = conversion->precision < 0 ? 6 : conversion->precision;
    int exact_places = places < FRACTION_DIGITS_MAX ? places : FRACTION_DIGITS_MAX;
    struct exact exact;
    set_exact(&exact, mantissa, exponent);
    /* The last digit that isn't a nine is the one that grows if the number is rounded up; 0: of the whole. */
    int growing = 0;
    bool is_odd = exact.whole[0] & 1;
    for (int place = 1; place <= exact_places; place++) {
        unsigned digit = next_digit(exact.fraction);
        is_odd = digit & 1;
        growing = digit == 9 ? growing : place;
    }
    bool up = rounds_up(exact.fraction, is_odd);
    for (int at = 0; up && growing == 0 && ++exact.whole[at] == 0;) {
        at++;
    }
    char buffer[WHOLE_DIGITS_MAX + 1];
    char *end = buffer + sizeof buffer;
    char *start = whole_digits(end, exact.whole);
    bool has_point = places > 0 || conversion->alternate;
    int length = (int)(end - start);
    int spaces = begin_field(output, conversion, sign, 0, length + has_point + places);
    for (; start < end; start++) {
        put(output, *start);
    }
    if (has_point) {
        put(output, '.');
    }
    set_exact(&exact, mantissa, exponent);
    for (int place = 1; place <= exact_places; place++) {
        unsigned digit = next_digit(exact.fraction);
        digit = !up || place < growing ? digit : place == growing ? digit + 1 : 0;
        put(output, (char)('0' + digit));
    }
    put_many(output, '0', places - exact_places);
    put_many(output, ' ', spaces);
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
        case 'j': conversion.length = 2; continue;
        case 'z':
        case 't': continue;
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
        put_integer(output, conversion, "", take_unsigned(conversion, arguments), 8, false);
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
        conversion->zero = false;
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
