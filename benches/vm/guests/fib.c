/* Calls: the Fibonacci numbers the slow way. */
__attribute__((noinline)) static unsigned fib(unsigned n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

/* Not a constant: compilers compute the same sum once. */
static volatile unsigned argument = 20;

unsigned run(unsigned repetitions) {
    unsigned sum = 0;
    while (repetitions--) {
        sum += fib(argument);
    }
    return sum;
}
