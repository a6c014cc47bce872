/* Shifts the wall clock of a process that preloads this library by the number of milliseconds in the file named by
   WALL_CLOCK_OFF. Monotonic clocks are unchanged. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { READ_EVERY_MS = 10 };

/* Reads the kernel's clock directly, because a lookup of the C library's function may allocate memory. */
static int told(clockid_t clock, struct timespec *at) {
    return (int)syscall(SYS_clock_gettime, clock, at);
}

static long long off_ms(void) {
    static _Thread_local long long off, read_at = -READ_EVERY_MS;
    struct timespec now;
    told(CLOCK_MONOTONIC, &now);
    long long now_ms = now.tv_sec * 1000LL + now.tv_nsec / 1000000;
    const char *name = getenv("WALL_CLOCK_OFF");
    if (name == NULL || now_ms - read_at < READ_EVERY_MS) {
        return off;
    }
    read_at = now_ms;
    int file = open(name, O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        char text[32] = {0};
        if (read(file, text, sizeof text - 1) > 0) {
            off = strtoll(text, NULL, 10);
        }
        close(file);
    }
    return off;
}

int clock_gettime(clockid_t clock, struct timespec *at) {
    int failed = told(clock, at);
    if (failed == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        long long ms = off_ms();
        at->tv_sec += ms / 1000;
        at->tv_nsec += ms % 1000 * 1000000;
        if (at->tv_nsec < 0) {
            at->tv_nsec += 1000000000;
            at->tv_sec -= 1;
        } else if (at->tv_nsec >= 1000000000) {
            at->tv_nsec -= 1000000000;
            at->tv_sec += 1;
        }
    }
    return failed;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone) {
    (void)zone;
    struct timespec now;
    int failed = clock_gettime(CLOCK_REALTIME, &now);
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return failed;
}

time_t time(time_t *at) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at != NULL) {
        *at = now.tv_sec;
    }
    return now.tv_sec;
}
