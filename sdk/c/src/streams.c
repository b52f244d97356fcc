/* What the standard library asks of a system, in a machine without files: standard output and error go to the log a
 * line at a time, clocks and chance come from the device, and there are no files and no environment.
 *
 * Compiled only with `library = "standard"`, and not into programs with `[wasi]`. The functions are weak: a program
 * that asks for more than these pulls in the library's own, all of them, and `tenure build` links it with what does
 * WASI by host calls (sdk/wasi). */
#include <string.h>
#include <tenure.h>
#include <wasi/api.h>

#define WEAK __attribute__((weak))
/* The longest line of a log. */
#define LINE_BYTES 256
#define STANDARD_OUTPUT 1
#define STANDARD_ERROR 2
#define NANOSECONDS_PER_MICROSECOND 1000u
#define NANOSECONDS_PER_SECOND 1000000000u

struct line {
    enum tenure_level level;
    size_t length;
    char text[LINE_BYTES];
};

static struct line lines[] = {{.level = TENURE_LOG_INFO}, {.level = TENURE_LOG_ERROR}};

static void end_line(struct line *line) {
    tenure_host_log(line->level, line->text, (uint32_t)line->length);
    line->length = 0;
}

static void put(struct line *line, const uint8_t *bytes, size_t length) {
    for (size_t at = 0; at < length; at++) {
        if (bytes[at] == '\n') {
            end_line(line);
            continue;
        }
        if (line->length == LINE_BYTES) {
            end_line(line);
        }
        line->text[line->length++] = (char)bytes[at];
    }
}

WEAK __wasi_errno_t __wasi_fd_write(__wasi_fd_t file, const __wasi_ciovec_t *parts, size_t count,
                                    __wasi_size_t *written) {
    if (file != STANDARD_OUTPUT && file != STANDARD_ERROR) {
        return __WASI_ERRNO_BADF;
    }
    *written = 0;
    for (size_t part = 0; part < count; part++) {
        put(&lines[file - STANDARD_OUTPUT], parts[part].buf, parts[part].buf_len);
        *written += parts[part].buf_len;
    }
    return __WASI_ERRNO_SUCCESS;
}

/* A terminal, so that each line goes out when it ends. */
WEAK __wasi_errno_t __wasi_fd_fdstat_get(__wasi_fd_t file, __wasi_fdstat_t *state) {
    if (file > STANDARD_ERROR) {
        return __WASI_ERRNO_BADF;
    }
    memset(state, 0, sizeof *state);
    state->fs_filetype = __WASI_FILETYPE_CHARACTER_DEVICE;
    return __WASI_ERRNO_SUCCESS;
}

WEAK __wasi_errno_t __wasi_fd_read(__wasi_fd_t file, const __wasi_iovec_t *parts, size_t count,
                                   __wasi_size_t *read) {
    (void)file, (void)parts, (void)count;
    *read = 0;
    return __WASI_ERRNO_SUCCESS;
}

WEAK __wasi_errno_t __wasi_fd_seek(__wasi_fd_t file, __wasi_filedelta_t offset,
                                   __wasi_whence_t whence, __wasi_filesize_t *place) {
    (void)file, (void)offset, (void)whence, (void)place;
    return __WASI_ERRNO_SPIPE;
}

WEAK __wasi_errno_t __wasi_fd_close(__wasi_fd_t file) {
    (void)file;
    return __WASI_ERRNO_BADF;
}

WEAK __wasi_errno_t __wasi_clock_time_get(__wasi_clockid_t clock, __wasi_timestamp_t precision,
                                          __wasi_timestamp_t *time) {
    (void)precision;
    if (clock != __WASI_CLOCKID_REALTIME) {
        *time = tenure_uptime_us() * NANOSECONDS_PER_MICROSECOND;
        return __WASI_ERRNO_SUCCESS;
    }
    int64_t seconds = tenure_unix_time_s();
    if (seconds < 0) {
        return __WASI_ERRNO_INVAL;
    }
    *time = (uint64_t)seconds * NANOSECONDS_PER_SECOND;
    return __WASI_ERRNO_SUCCESS;
}

WEAK __wasi_errno_t __wasi_clock_res_get(__wasi_clockid_t clock, __wasi_timestamp_t *resolution) {
    *resolution = clock == __WASI_CLOCKID_REALTIME ? NANOSECONDS_PER_SECOND
                                                   : NANOSECONDS_PER_MICROSECOND;
    return __WASI_ERRNO_SUCCESS;
}

WEAK __wasi_errno_t __wasi_random_get(uint8_t *into, __wasi_size_t length) {
    return tenure_random(into, length) < 0 ? __WASI_ERRNO_IO : __WASI_ERRNO_SUCCESS;
}

WEAK __wasi_errno_t __wasi_environ_sizes_get(__wasi_size_t *count, __wasi_size_t *bytes) {
    *count = *bytes = 0;
    return __WASI_ERRNO_SUCCESS;
}

WEAK __wasi_errno_t __wasi_environ_get(uint8_t **variables, uint8_t *bytes) {
    (void)variables, (void)bytes;
    return __WASI_ERRNO_SUCCESS;
}

WEAK __wasi_errno_t __wasi_sched_yield(void) {
    tenure_yield();
    return __WASI_ERRNO_SUCCESS;
}

WEAK _Noreturn void __wasi_proc_exit(__wasi_exitcode_t code) {
    tenure_abort(code == 0 ? "exit was called" : "exit was called with a failure");
}
