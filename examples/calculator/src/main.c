/* Computes an expression, or says what is wrong with it: a call that fails costs nothing but itself. */
#include <tenure.h>

/* Each level of brackets is three calls deep, and the stack is a budget. */
#define DEPTH_MAX 16

/* What is left of the text, and the first thing that was wrong. */
static const char *rest;
static const char *fault;
static int depth;

static int64_t sum(void);

static char next_sign(void) {
    while (*rest == ' ') {
        rest++;
    }
    return *rest;
}

static int64_t fail(const char *reason) {
    fault = fault ? fault : reason;
    return 0;
}

static int64_t number(void) {
    if (next_sign() < '0' || *rest > '9') {
        return fail("a number is missing");
    }
    int64_t value = 0;
    for (; *rest >= '0' && *rest <= '9'; rest++) {
        if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, *rest - '0', &value)) {
            return fail("the number is too large");
        }
    }
    return value;
}

static int64_t single(void) {
    int64_t value;
    switch (next_sign()) {
    case '-':
        rest++;
        return __builtin_sub_overflow(0, single(), &value) ? fail("the result is too large") : value;
    case '(':
        rest++;
        if (++depth > DEPTH_MAX) {
            return fail("the brackets are too deep");
        }
        value = sum();
        depth--;
        return next_sign() == ')' ? (rest++, value) : fail("a bracket is missing");
    default:
        return number();
    }
}

static int64_t product(void) {
    int64_t value = single();
    while (!fault && (next_sign() == '*' || *rest == '/')) {
        bool divides = *rest++ == '/';
        int64_t other = single();
        if (divides && (other == 0 || (value == INT64_MIN && other == -1))) {
            return fail("that can't be divided");
        }
        if (divides) {
            value /= other;
        } else if (__builtin_mul_overflow(value, other, &value)) {
            return fail("the result is too large");
        }
    }
    return value;
}

static int64_t sum(void) {
    int64_t value = product();
    while (!fault && (next_sign() == '+' || *rest == '-')) {
        bool subtracts = *rest++ == '-';
        int64_t other = product();
        if (subtracts ? __builtin_sub_overflow(value, other, &value)
                      : __builtin_add_overflow(value, other, &value)) {
            return fail("the result is too large");
        }
    }
    return value;
}

/* tenure call calculator compute '2*(3+4)' */
TENURE_EXPORT(compute) {
    char *text = tenure_parameter(NULL);
    rest = text ? text : "";
    fault = NULL;
    depth = 0;
    int64_t value = sum();
    if (next_sign() != 0) {
        fail("this is not understood");
    }
    if (fault) {
        tenure_fail("%s, %u characters before the end", fault, (unsigned)strlen(rest));
    } else {
        char digits[24];
        snprintf(digits, sizeof digits, "%lld", (long long)value);
        tenure_reply_text(digits);
    }
    free(text);
}
