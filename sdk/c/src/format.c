/* snprintf: the conversions that <stdio.h> names. */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct output {
    char *into;
    size_t capacity;
    /* How long the whole text is, whether it fits or not. */
    uint64_t length;
};

struct conversion {
    bool left, plus, space, alternate, zero, upper;
    int width;
    int precision; /* -1: none given */
    int length;    /* in steps: -2 hh, -1 h, 0 int, 1 l, 2 ll */
    bool beyond;   /* width or precision is more than an int holds */
};

static void put(struct output *output, char character) {
    if (output->length + 1 < output->capacity) {
        output->into[output->length] = character;
    }
    output->length++;
}

static void put_many(struct output *output, char character, int64_t count) {
    for (; count > 0 && output->length + 1 < output->capacity; count--) {
        put(output, character);
    }
    output->length += count > 0 ? (uint64_t)count : 0;
}

/* Writes what stands before a text of that length: spaces up to the width, sign or prefix, zeros. Returns how many
 * spaces stand behind it. */
static int64_t begin_field(struct output *output, const struct conversion *conversion,
                           const char *prefix, int64_t zeros, int64_t length) {
    int prefix_length = (int)strlen(prefix);
    int64_t padding = conversion->width - prefix_length - zeros - length;
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
                      const char *prefix, int64_t zeros, const char *text, int length) {
    int64_t spaces = begin_field(output, conversion, prefix, zeros, length);
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

/* A double in full, in decimal digits. Its least bit is 2^-1074 and its greatest 2^1023. */
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

/* A number, and its digits as they are once it is rounded. */
struct decimal {
    uint64_t mantissa;
    int exponent;
    struct exact exact;
    char buffer[WHOLE_DIGITS_MAX + 1];
    /* The digits before the point, at the end of the buffer. */
    char *whole;
    int whole_length;
    /* Of the digits behind the point so many are exact, and the others zeros. */
    int places;
    /* Whether the digits behind the point are rounded up, and the place of the last that isn't a nine: the one that
     * grows then. */
    bool up;
    int growing;
};

static void begin_decimal(struct decimal *decimal, uint64_t mantissa, int exponent) {
    char *end = decimal->buffer + sizeof decimal->buffer;
    decimal->mantissa = mantissa;
    decimal->exponent = exponent;
    set_exact(&decimal->exact, mantissa, exponent);
    decimal->whole = whole_digits(end, decimal->exact.whole);
    decimal->whole_length = (int)(end - decimal->whole);
}

/* The position of the first digit that isn't zero: 0 is the last before the point, -1 the first behind it. */
static int first_position(struct decimal *decimal) {
    if (*decimal->whole != '0' || decimal->mantissa == 0) {
        return decimal->whole_length - 1;
    }
    int position = -1;
    while (next_digit(decimal->exact.fraction) == 0) {
        position--;
    }
    set_exact(&decimal->exact, decimal->mantissa, decimal->exponent);
    return position;
}

/* Adds one to the whole number whose last digit is at `last`. */
static void increment(struct decimal *decimal, char *last) {
    while (last >= decimal->whole && *last == '9') {
        *last-- = '0';
    }
    if (last >= decimal->whole) {
        ++*last;
    } else {
        *--decimal->whole = '1';
        decimal->whole_length++;
    }
}

/* Rounds to so many places behind the point, or to zeros before it if that is negative: to the nearest, and to the
 * even one of two. */
static void round_decimal(struct decimal *decimal, int places) {
    char *end = decimal->buffer + sizeof decimal->buffer;
    decimal->places = places < 0 ? 0 : places < FRACTION_DIGITS_MAX ? places : FRACTION_DIGITS_MAX;
    decimal->growing = 0;
    decimal->up = false;
    if (places < 0) {
        char *cut = end + places;
        bool has_more = false;
        for (const char *at = cut + 1; at < end; at++) {
            has_more |= *at != '0';
        }
        for (int at = 0; at < FRACTION_WORDS; at++) {
            has_more |= decimal->exact.fraction[at] != 0;
        }
        bool is_odd = cut > decimal->whole && (cut[-1] & 1) != 0;
        bool up = *cut > '5' || (*cut == '5' && (has_more || is_odd));
        memset(cut, '0', (size_t)(end - cut));
        if (up) {
            increment(decimal, cut - 1);
        }
        return;
    }
    bool is_odd = end[-1] & 1;
    for (int place = 1; place <= decimal->places; place++) {
        unsigned digit = next_digit(decimal->exact.fraction);
        is_odd = digit & 1;
        decimal->growing = digit == 9 ? decimal->growing : place;
    }
    decimal->up = rounds_up(decimal->exact.fraction, is_odd);
    if (decimal->up && decimal->growing == 0) {
        increment(decimal, end - 1);
    }
}

/* Goes through `count` digits from the position `first` on, and writes them, with a point behind the first `before`
 * ones if `has_point`, unless there is no output. Returns how many of them there are up to the last that isn't zero. */
static int64_t walk_digits(struct decimal *decimal, struct output *output, int first, int64_t count,
                           int before, bool has_point) {
    int64_t walked = 0, last = 0;
    set_exact(&decimal->exact, decimal->mantissa, decimal->exponent);
    for (int position = decimal->whole_length - 1; walked < count && position >= -decimal->places;
         position--) {
        unsigned digit;
        if (position >= 0) {
            digit = (unsigned)(decimal->whole[decimal->whole_length - 1 - position] - '0');
        } else {
            digit = next_digit(decimal->exact.fraction);
            digit = !decimal->up || -position < decimal->growing ? digit
                    : -position == decimal->growing              ? digit + 1
                                                                 : 0;
        }
        if (position > first) {
            continue;
        }
        walked++;
        last = digit != 0 ? walked : last;
        if (output != NULL) {
            put(output, (char)('0' + digit));
            if (walked == before && has_point) {
                put(output, '.');
            }
        }
    }
    if (output != NULL) {
        put_many(output, '0', count - walked);
    }
    return last;
}

/* A power behind its letter: with a sign, and so many digits at least. */
static int power_text(char *into, char letter, int power, int least) {
    char buffer[8];
    char *end = buffer + sizeof buffer;
    char *start = digits(end, (uint64_t)(power < 0 ? -power : power), 10, false);
    while (end - start < least) {
        *--start = '0';
    }
    into[0] = letter;
    into[1] = power < 0 ? '-' : '+';
    memcpy(into + 2, start, (size_t)(end - start));
    return 2 + (int)(end - start);
}

/* The longest: a letter, a sign and four digits. */
#define POWER_BYTES 8

static void put_decimal(struct output *output, struct conversion *conversion, char letter,
                        const char *sign, uint64_t mantissa, int exponent) {
    struct decimal decimal;
    int precision = conversion->precision < 0 ? 6 : conversion->precision;
    bool is_general = letter == 'g', is_scientific = letter == 'e';
    int64_t count;
    int first;
    begin_decimal(&decimal, mantissa, exponent);
    if (letter == 'f') {
        round_decimal(&decimal, precision);
        first = decimal.whole_length - 1;
        count = (int64_t)decimal.whole_length + precision;
    } else {
        precision -= is_general && precision > 0;
        first = first_position(&decimal);
        /* No digit lies behind these. */
        round_decimal(&decimal, precision > 2 * FRACTION_DIGITS_MAX ? FRACTION_DIGITS_MAX
                                                                    : precision - first);
        if (first >= 0 || (decimal.up && decimal.growing == 0)) {
            first = decimal.whole_length - 1;
        } else if (decimal.up && decimal.growing < -first) {
            first++;
        }
        count = (int64_t)precision + 1;
    }
    int power = first;
    if (is_general) {
        is_scientific = power < -4 || power > precision;
        if (!conversion->alternate) {
            count = walk_digits(&decimal, NULL, first, count, 0, false);
            count = count == 0 ? 1 : count;
        }
        if (!is_scientific) {
            /* All digits before the point, and the zeros between it and the first. */
            count = power < 0 ? count - power : count > power ? count : power + 1;
            first = power < 0 ? 0 : power;
        }
    }
    int before = is_scientific || first < 0 ? 1 : first + 1;
    bool has_point = count > before || conversion->alternate;
    char text[POWER_BYTES];
    int length = is_scientific
                     ? power_text(text, conversion->upper ? 'E' : 'e', power, 2)
                     : 0;
    int64_t spaces = begin_field(output, conversion, sign, 0, count + has_point + length);
    walk_digits(&decimal, output, first, count, before, has_point);
    for (int at = 0; at < length; at++) {
        put(output, text[at]);
    }
    put_many(output, ' ', spaces);
}

/* The 52 bits behind the point of a double are so many hexadecimal digits. */
#define HEX_DIGITS 13

static void put_hexadecimal(struct output *output, struct conversion *conversion, const char *sign,
                            uint64_t mantissa, int power) {
    int places = conversion->precision;
    if (places < 0) {
        places = HEX_DIGITS;
        for (uint64_t rest = mantissa; places > 0 && (rest & 15) == 0; rest >>= 4) {
            places--;
        }
    } else if (places < HEX_DIGITS) {
        int dropped = (HEX_DIGITS - places) * 4;
        uint64_t half = UINT64_C(1) << (dropped - 1);
        uint64_t rest = mantissa & (2 * half - 1);
        mantissa >>= dropped;
        mantissa += rest > half || (rest == half && (mantissa & 1) != 0);
        mantissa <<= dropped;
    }
    char text[HEX_DIGITS + 1 + POWER_BYTES], prefix[4] = "";
    strcpy(prefix, sign);
    strcat(prefix, conversion->upper ? "0X" : "0x");
    bool has_point = places > 0 || conversion->alternate;
    int exact = places < HEX_DIGITS ? places : HEX_DIGITS;
    int length = power_text(text, conversion->upper ? 'P' : 'p', power, 1);
    int64_t spaces =
        begin_field(output, conversion, prefix, 0, (int64_t)1 + has_point + places + length);
    for (int at = 0; at <= exact; at++) {
        unsigned digit = (unsigned)(mantissa >> (HEX_DIGITS - at) * 4 & 15);
        put(output, (char)(digit < 10 ? '0' + digit : (conversion->upper ? 'A' : 'a') + digit - 10));
        if (at == 0 && has_point) {
            put(output, '.');
        }
    }
    put_many(output, '0', places - exact);
    for (int at = 0; at < length; at++) {
        put(output, text[at]);
    }
    put_many(output, ' ', spaces);
}

static void put_double(struct output *output, struct conversion *conversion, char letter,
                       double number) {
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    const char *sign = sign_of(conversion, bits >> 63);
    int power = (int)(bits >> 52 & 0x7ff);
    uint64_t mantissa = bits & ((UINT64_C(1) << 52) - 1);
    conversion->upper = letter < 'a';
    if (power == 0x7ff) {
        conversion->zero = false;
        const char *text = mantissa != 0 ? "NANnan" : "INFinf";
        put_field(output, conversion, sign, 0, conversion->upper ? text : text + 3, 3);
        return;
    }
    mantissa |= power > 0 ? UINT64_C(1) << 52 : 0;
    int exponent = (power > 0 ? power : 1) - 1075;
    letter |= 'a' - 'A';
    if (letter == 'a') {
        put_hexadecimal(output, conversion, sign, mantissa, mantissa != 0 ? exponent + 52 : 0);
    } else {
        put_decimal(output, conversion, letter, sign, mantissa, exponent);
    }
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

static int read_count(const char **format, va_list *arguments, bool *beyond) {
    if (**format == '*') {
        ++*format;
        return va_arg(*arguments, int);
    }
    int count = 0;
    for (; **format >= '0' && **format <= '9'; ++*format) {
        int digit = **format - '0';
        *beyond |= count > (INT_MAX - digit) / 10;
        count = *beyond ? INT_MAX : count * 10 + digit;
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
    conversion.width = read_count(format, arguments, &conversion.beyond);
    if (conversion.width < 0) {
        conversion.left = true;
        conversion.beyond |= conversion.width == INT_MIN;
        conversion.width = conversion.beyond ? INT_MAX : -conversion.width;
    }
    if (**format == '.') {
        ++*format;
        conversion.precision = read_count(format, arguments, &conversion.beyond);
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

/* Stores how long the text is so far where the argument points to (%n). */
static void store_length(const struct output *output, const struct conversion *conversion,
                         void *into) {
    switch (conversion->length) {
    case -2: *(signed char *)into = (signed char)output->length; return;
    case -1: *(short *)into = (short)output->length; return;
    case 0: *(int *)into = (int)output->length; return;
    case 1: *(long *)into = (long)output->length; return;
    default: *(long long *)into = (long long)output->length;
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
    case 'a':
    case 'A':
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
        put_double(output, conversion, letter, va_arg(*arguments, double));
        return;
    case 'n':
        store_length(output, conversion, va_arg(*arguments, void *));
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
    bool beyond = false;
    va_list arguments;
    va_copy(arguments, given);
    for (const char *at = format; *at != 0; at++) {
        if (*at != '%') {
            put(&output, *at);
            continue;
        }
        at++;
        struct conversion conversion = read_conversion(&at, &arguments);
        beyond |= conversion.beyond;
        if (*at == 0 || beyond) {
            break;
        }
        put_conversion(&output, *at, &conversion, &arguments);
    }
    va_end(arguments);
    if (capacity > 0) {
        into[output.length < capacity ? output.length : capacity - 1] = 0;
    }
    if (beyond || output.length > INT_MAX) {
        errno = EOVERFLOW;
        return -1;
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
