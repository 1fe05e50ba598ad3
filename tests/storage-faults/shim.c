/* Makes calls that change files fail or take long, in an unmodified program: LD_PRELOAD this library, and name the control file in
 * TABELLION_TEST_STORAGE_FAULTS. The test maps no memory: it writes the control file, which every process that was started
 * so has mapped (`storage_faults.rs` has the same layout).
 *
 * A call fails before it has any effect. Only files whose path begins with `prefix` and ends with `suffix` are concerned.
 * Without the variable, or while `kinds` is 0, every call goes through. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { WRITE = 1, SYNC = 2, TRUNCATE = 4, OPEN = 8 };

struct control {
    volatile uint32_t kinds;    /* which calls fail */
    volatile int32_t error;     /* with which errno */
    volatile int64_t passing;   /* so many calls go through first */
    volatile int64_t failing;   /* so many fail then; negative: all */
    volatile uint64_t failed;   /* so many have failed */
    char prefix[512];
    char suffix[64];
    volatile uint32_t delay; /* in milliseconds; then no call fails, but takes so much longer */
};

static struct control *control;

#define REAL(name)                 \
    static __typeof__(name) *real; \
    if (!real) real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

__attribute__((constructor)) static void map_control(void) {
    const char *path = getenv("TABELLION_TEST_STORAGE_FAULTS");
    if (!path) return;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) return;
    void *mapped = mmap(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (mapped != MAP_FAILED) control = mapped;
}

static int concerned(const char *path) {
    size_t prefix = strlen(control->prefix), suffix = strlen(control->suffix), length = strlen(path);
    return strncmp(path, control->prefix, prefix) == 0 && length >= suffix &&
           strcmp(path + length - suffix, control->suffix) == 0;
}

/* Takes one off a counter, unless it is 0 or below. */
static int take(volatile int64_t *counter) {
    int64_t left = *counter;
    while (left > 0)
        if (__atomic_compare_exchange_n(counter, &left, left - 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) return 1;
    return 0;
}

static int fails(const char *path) {
    if (!concerned(path) || take(&control->passing)) return 0;
    if (control->failing >= 0 && !take(&control->failing)) return 0;
    __atomic_add_fetch(&control->failed, 1, __ATOMIC_SEQ_CST);
    if (control->delay) {
        usleep(1000 * control->delay);
        return 0;
    }
    errno = control->error;
    return 1;
}

static int fd_fails(uint32_t kind, int fd) {
    if (!control || !(control->kinds & kind)) return 0;
    char link[64], path[1024];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    int before = errno;
    ssize_t length = readlink(link, path, sizeof path - 1);
    errno = before;
    if (length <= 0) return 0;
    path[length] = 0;
    return fails(path);
}

static int open_fails(const char *path, int flags) {
    if (!control || !(control->kinds & OPEN)) return 0;
    if ((flags & O_ACCMODE) == O_RDONLY && !(flags & O_CREAT)) return 0;
    char full[2048];
    if (path[0] != '/') {
        char folder[1024];
        if (!getcwd(folder, sizeof folder)) return 0;
        snprintf(full, sizeof full, "%s/%s", folder, path);
        path = full;
    }
    /* Only a new file needs room. */
    if (control->error == ENOSPC && access(path, F_OK) == 0) return 0;
    return fails(path);
}

ssize_t write(int fd, const void *bytes, size_t count) {
    REAL(write);
    return fd_fails(WRITE, fd) ? -1 : real(fd, bytes, count);
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    REAL(writev);
    return fd_fails(WRITE, fd) ? -1 : real(fd, parts, count);
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at) {
    REAL(pwrite);
    return fd_fails(WRITE, fd) ? -1 : real(fd, bytes, count, at);
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t at) {
    REAL(pwrite64);
    return fd_fails(WRITE, fd) ? -1 : real(fd, bytes, count, at);
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t at) {
    REAL(pwritev);
    return fd_fails(WRITE, fd) ? -1 : real(fd, parts, count, at);
}

int fsync(int fd) {
    REAL(fsync);
    return fd_fails(SYNC, fd) ? -1 : real(fd);
}

int fdatasync(int fd) {
    REAL(fdatasync);
    return fd_fails(SYNC, fd) ? -1 : real(fd);
}

int ftruncate(int fd, off_t length) {
    REAL(ftruncate);
    return fd_fails(TRUNCATE, fd) ? -1 : real(fd, length);
}

int ftruncate64(int fd, off64_t length) {
    REAL(ftruncate64);
    return fd_fails(TRUNCATE, fd) ? -1 : real(fd, length);
}

/* Answers an error number and leaves errno alone. */
int posix_fallocate(int fd, off_t from, off_t length) {
    REAL(posix_fallocate);
    int before = errno;
    if (fd_fails(TRUNCATE, fd)) {
        errno = before;
        return control->error;
    }
    return real(fd, from, length);
}

#define MODE(flags)                        \
    mode_t mode = 0;                       \
    if ((flags) & (O_CREAT | O_TMPFILE)) { \
        va_list rest;                      \
        va_start(rest, flags);             \
        mode = va_arg(rest, mode_t);       \
        va_end(rest);                      \
    }

int open(const char *path, int flags, ...) {
    REAL(open);
    MODE(flags)
    return open_fails(path, flags) ? -1 : real(path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    REAL(open64);
    MODE(flags)
    return open_fails(path, flags) ? -1 : real(path, flags, mode);
}

int openat(int folder, const char *path, int flags, ...) {
    REAL(openat);
    MODE(flags)
    return (path[0] == '/' || folder == AT_FDCWD) && open_fails(path, flags) ? -1 : real(folder, path, flags, mode);
}

int openat64(int folder, const char *path, int flags, ...) {
    REAL(openat64);
    MODE(flags)
    return (path[0] == '/' || folder == AT_FDCWD) && open_fails(path, flags) ? -1 : real(folder, path, flags, mode);
}
