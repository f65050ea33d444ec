/* Fault injection by LD_PRELOAD: shifts the wall clock and makes writes to files fail, controlled by a file that the test also
 * maps. Memory, sockets, pipes and the monotonic clock are not affected. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

struct orders {
    int64_t shift_millis;
    /* The errno of a write to a file; 0: the write is executed. */
    int64_t write_error;
};

static volatile const struct orders *orders;

__attribute__((constructor)) static void read_orders(void) {
    const char *path = getenv("FAULT_ORDERS");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
        return;
    void *at = mmap(NULL, sizeof(struct orders), PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (at != MAP_FAILED)
        orders = at;
}

static int64_t shift(void) { return orders ? orders->shift_millis : 0; }

int clock_gettime(clockid_t clock, struct timespec *now) {
    int result = (int)syscall(SYS_clock_gettime, clock, now);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        int64_t nanos = now->tv_nsec + shift() % 1000 * 1000000;
        now->tv_sec += shift() / 1000 + (nanos < 0 ? -1 : nanos / 1000000000);
        now->tv_nsec = nanos < 0 ? nanos + 1000000000 : nanos % 1000000000;
    }
    return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    (void)zone;
    struct timespec precise;
    int result = clock_gettime(CLOCK_REALTIME, &precise);
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return result;
}

time_t time(time_t *into) {
    struct timespec precise;
    clock_gettime(CLOCK_REALTIME, &precise);
    if (into)
        *into = precise.tv_sec;
    return precise.tv_sec;
}

/* Whether a write fails; sets errno. */
static int is_refused(int file) {
    int error = orders ? (int)orders->write_error : 0;
    struct stat found;
    if (error == 0 || fstat(file, &found) != 0 || !S_ISREG(found.st_mode))
        return 0;
    errno = error;
    return 1;
}

ssize_t write(int file, const void *bytes, size_t length) {
    return is_refused(file) ? -1 : syscall(SYS_write, file, bytes, length);
}

ssize_t writev(int file, const struct iovec *pieces, int count) {
    return is_refused(file) ? -1 : syscall(SYS_writev, file, pieces, count);
}

ssize_t pwrite64(int file, const void *bytes, size_t length, off64_t at) {
    return is_refused(file) ? -1 : syscall(SYS_pwrite64, file, bytes, length, at);
}

ssize_t pwrite(int file, const void *bytes, size_t length, off_t at) { return pwrite64(file, bytes, length, at); }

ssize_t pwritev64(int file, const struct iovec *pieces, int count, off_t at) {
    return is_refused(file) ? -1 : syscall(SYS_pwritev, file, pieces, count, at, 0L);
}

ssize_t pwritev(int file, const struct iovec *pieces, int count, off_t at) { return pwritev64(file, pieces, count, at); }

int fsync(int file) { return is_refused(file) ? -1 : (int)syscall(SYS_fsync, file); }

int fdatasync(int file) { return is_refused(file) ? -1 : (int)syscall(SYS_fdatasync, file); }
