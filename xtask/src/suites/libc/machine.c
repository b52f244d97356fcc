/* A machine around one test of a suite: its log says how the test ended. */
#include <tenure.h>

#define LINE_BYTES 250

volatile int t_status;

static void write_line(const char *format, va_list arguments) {
    char line[LINE_BYTES];
    vsnprintf(line, sizeof line, format, arguments);
    size_t length = strlen(line);
    while (length > 0 && line[length - 1] == '\n') {
        line[--length] = 0;
    }
    tenure_host_log(TENURE_LOG_INFO, line, (uint32_t)length);
}

int t_printf(const char *format, ...) {
    va_list arguments;
    t_status = 1;
    va_start(arguments, format);
    write_line(format, arguments);
    va_end(arguments);
    return 0;
}

int suite_printf(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    write_line(format, arguments);
    va_end(arguments);
    return 0;
}

int suite_puts(const char *text) {
    return suite_printf("%s", text);
}

/* The status by which a test says that it doesn't apply. */
#define LEFT_OUT 77

static void tell_end(int status) {
    tenure_info(status == LEFT_OUT                ? "the test leaves itself out"
                : status == 0 && t_status == 0 ? "the test has passed"
                                               : "the test has failed");
}

/* A test that ends by `exit` takes the machine along. */
__attribute__((noreturn)) void suite_exit(int status) {
    tell_end(status);
    tenure_abort("the test called exit");
}

#ifdef SUITE_ARGUMENTS
int suite_main(int count, char **arguments);
#else
int suite_main(void);
#endif

TENURE_EXPORT(entry) {
#ifdef SUITE_ARGUMENTS
    static char name[] = "test", *arguments[] = {name, NULL};
    tell_end(suite_main(1, arguments));
#else
    tell_end(suite_main());
#endif
}
