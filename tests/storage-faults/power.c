/* Writes down each change of a file before it is made, in an unmodified program, so that what was not flushed can be undone
 * as a power loss undoes it (`power.rs` reads the journal). LD_PRELOAD this library, and name a folder in
 * TABELLION_TEST_POWER: it holds the files `control`, `journal` and `lock`, and the folder `kept`, on the file system of the
 * files that are watched.
 *
 * Only files whose path begins with `prefix` are concerned; none while it is empty. A program that writes through mapped
 * memory or stdio is not seen; SQLite's `-shm` files are left out, since their content never survives a start. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
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

struct control {
    volatile int64_t left; /* calls until the process is killed before one; 0 or below: it is not */
    char prefix[512];
};

enum kind { WRITE = 1, TRUNCATE, SYNC_BEGUN, SYNC_ENDED, CREATED, UNLINKED, RENAMED, LINKED, MADE_FOLDER };

struct record {
    uint32_t kind;
    uint32_t path_length, other_length; /* two paths follow, */
    uint32_t old_length, new_length;    /* then what the call replaces, and what it writes */
    uint32_t kept;                      /* the number of the link in `kept`, or 0 */
    uint64_t inode;                     /* the file; of a flush: file or folder */
    uint64_t folder;                    /* the inode of the folder that the call changes */
    uint64_t offset;                    /* of a truncation: the new length; of a flush: its number */
    uint64_t old_size;
};

static struct control *control;
static int journal = -1, lock_file = -1;
static char kept_folder[PATH_MAX - 16];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

#define REAL(name)                 \
    static __typeof__(name) *real; \
    if (!real) real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

static int real_open(const char *path, int flags, mode_t mode) {
    static int (*real)(const char *, int, ...);
    if (!real) real = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open64");
    return real(path, flags, mode);
}

static ssize_t real_write(int fd, const void *bytes, size_t count) {
    static ssize_t (*real)(int, const void *, size_t);
    if (!real) real = (ssize_t(*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
    return real(fd, bytes, count);
}

__attribute__((constructor)) static void prepare(void) {
    const char *folder = getenv("TABELLION_TEST_POWER");
    if (!folder) return;
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/control", folder);
    int fd = real_open(path, O_RDWR | O_CLOEXEC, 0);
    if (fd < 0) return;
    void *mapped = mmap(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    snprintf(path, sizeof path, "%s/journal", folder);
    journal = real_open(path, O_WRONLY | O_APPEND | O_CLOEXEC, 0);
    snprintf(path, sizeof path, "%s/lock", folder);
    lock_file = real_open(path, O_RDWR | O_CLOEXEC, 0);
    snprintf(kept_folder, sizeof kept_folder, "%s/kept", folder);
    if (mapped != MAP_FAILED && journal >= 0 && lock_file >= 0) control = mapped;
}

/* A process that cannot keep the journal must not go on: the test would prove nothing. */
static void give_up(const char *what) {
    dprintf(2, "power.c: %s: %s\n", what, strerror(errno));
    abort();
}

static int concerned(const char *path) {
    size_t prefix = strlen(control->prefix), length = strlen(path);
    if (!prefix) return 0;
    if (length + 1 == prefix && strncmp(path, control->prefix, length) == 0) return 1; /* the folder itself, to be flushed */
    if (strncmp(path, control->prefix, prefix) != 0) return 0;
    return length < 4 || strcmp(path + length - 4, "-shm") != 0;
}

/* One change at a time, in all processes. The process dies here when its time has come. */
static void enter(void) {
    pthread_mutex_lock(&mutex);
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    while (fcntl(lock_file, F_SETLKW, &whole) != 0)
        if (errno != EINTR) give_up("lock");
    if (control->left > 0 && --control->left == 0) raise(SIGKILL);
}

static void leave(void) {
    int before = errno;
    struct flock whole = {.l_type = F_UNLCK, .l_whence = SEEK_SET};
    fcntl(lock_file, F_SETLK, &whole);
    pthread_mutex_unlock(&mutex);
    errno = before;
}

/* One write: a record is whole or the last one. */
static void note(struct record record, const char *path, const char *other, const void *old, const void *new) {
    record.path_length = path ? strlen(path) : 0;
    record.other_length = other ? strlen(other) : 0;
    size_t length = sizeof record + record.path_length + record.other_length + record.old_length + record.new_length;
    char *bytes = malloc(length), *at = bytes;
    if (!bytes) give_up("malloc");
    at = mempcpy(at, &record, sizeof record);
    if (path) at = mempcpy(at, path, record.path_length);
    if (other) at = mempcpy(at, other, record.other_length);
    if (old) at = mempcpy(at, old, record.old_length);
    if (new) memcpy(at, new, record.new_length);
    if (real_write(journal, bytes, length) != (ssize_t)length) give_up("journal");
    free(bytes);
}

/* The path of a file that is concerned, by descriptor. Standard output and error are the test's. */
static int watched(int fd, char *path) {
    if (!control || fd < 3) return 0;
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    int before = errno;
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    errno = before;
    if (length <= 0) return 0;
    path[length] = 0;
    return concerned(path);
}

/* The absolute path of a file that is concerned, by name. */
static int named(int folder, const char *path, char *full) {
    if (!control || !control->prefix[0]) return 0;
    char base[PATH_MAX];
    int before = errno;
    if (path[0] == '/') {
        snprintf(full, PATH_MAX, "%s", path);
    } else {
        if (folder == AT_FDCWD) {
            if (!getcwd(base, sizeof base)) return 0;
        } else {
            char link[64];
            snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
            ssize_t length = readlink(link, base, sizeof base - 1);
            if (length <= 0) return 0;
            base[length] = 0;
        }
        if (path[0] == '.' && path[1] == '/') path += 2;
        if (snprintf(full, PATH_MAX, "%s/%s", base, path) >= PATH_MAX) return 0;
    }
    errno = before;
    return concerned(full);
}

static uint64_t inode_of(const char *path) {
    struct stat status;
    return lstat(path, &status) == 0 ? status.st_ino : 0;
}

static uint64_t folder_of(const char *path) {
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s", path);
    char *slash = strrchr(folder, '/');
    if (!slash) return 0;
    *slash = 0;
    return inode_of(folder[0] ? folder : "/");
}

/* Keeps a file that is about to lose its name, and so its inode from being given to another. */
static uint32_t keep(const char *path) {
    static uint32_t next;
    char name[PATH_MAX];
    for (;;) {
        uint32_t number = ((uint32_t)getpid() << 12) ^ ++next;
        if (!number) continue;
        snprintf(name, sizeof name, "%s/%u", kept_folder, number);
        static int (*real)(const char *, const char *);
        if (!real) real = (int (*)(const char *, const char *))dlsym(RTLD_NEXT, "link");
        if (real(path, name) == 0) return number;
        if (errno != EEXIST) give_up(path);
    }
}

/* What a range of a file holds, also where the descriptor only writes. */
static void *read_range(int fd, uint64_t offset, size_t length) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    int reading = real_open(link, O_RDONLY | O_CLOEXEC, 0);
    if (reading < 0) give_up("open to read");
    char *bytes = malloc(length ? length : 1);
    if (!bytes) give_up("malloc");
    for (size_t done = 0; done < length;) {
        ssize_t got = pread64(reading, bytes + done, length - done, offset + done);
        if (got <= 0) give_up("read");
        done += got;
    }
    close(reading);
    return bytes;
}

static void note_write(int fd, const char *path, const void *bytes, size_t count, off64_t at) {
    struct stat status;
    if (fstat(fd, &status) != 0) give_up("fstat");
    uint64_t size = status.st_size;
    if (at < 0) at = fcntl(fd, F_GETFL) & O_APPEND ? (off64_t)size : lseek64(fd, 0, SEEK_CUR);
    uint64_t old = (uint64_t)at >= size ? 0 : size - at < count ? size - at : count;
    void *before = read_range(fd, at, old);
    note((struct record){.kind = WRITE, .old_length = old, .new_length = count, .inode = status.st_ino, .offset = at,
                         .old_size = size},
         path, NULL, before, bytes);
    free(before);
}

static void note_length(int fd, const char *path, uint64_t length) {
    struct stat status;
    if (fstat(fd, &status) != 0) give_up("fstat");
    uint64_t size = status.st_size, cut = length < size ? size - length : 0;
    void *before = read_range(fd, length, cut);
    note((struct record){.kind = TRUNCATE, .old_length = cut, .inode = status.st_ino, .offset = length, .old_size = size},
         path, NULL, before, NULL);
    free(before);
}

ssize_t write(int fd, const void *bytes, size_t count) {
    char path[PATH_MAX];
    if (!watched(fd, path)) return real_write(fd, bytes, count);
    enter();
    note_write(fd, path, bytes, count, -1);
    ssize_t written = real_write(fd, bytes, count);
    leave();
    return written;
}

#define POSITIONED_WRITE(name, type)                                  \
    ssize_t name(int fd, const void *bytes, size_t count, type at) {  \
        REAL(name);                                                   \
        char path[PATH_MAX];                                          \
        if (!watched(fd, path)) return real(fd, bytes, count, at);    \
        enter();                                                      \
        note_write(fd, path, bytes, count, at);                       \
        ssize_t written = real(fd, bytes, count, at);                 \
        leave();                                                      \
        return written;                                               \
    }
POSITIONED_WRITE(pwrite, off_t)
POSITIONED_WRITE(pwrite64, off64_t)

static void *joined(const struct iovec *parts, int count, size_t *length) {
    *length = 0;
    for (int i = 0; i < count; i++) *length += parts[i].iov_len;
    char *bytes = malloc(*length ? *length : 1), *at = bytes;
    if (!bytes) give_up("malloc");
    for (int i = 0; i < count; i++) at = mempcpy(at, parts[i].iov_base, parts[i].iov_len);
    return bytes;
}

/* As one write: whoever writes several parts means one. */
ssize_t writev(int fd, const struct iovec *parts, int count) {
    REAL(writev);
    char path[PATH_MAX];
    if (!watched(fd, path)) return real(fd, parts, count);
    size_t length;
    void *bytes = joined(parts, count, &length);
    ssize_t written = write(fd, bytes, length);
    free(bytes);
    return written;
}

#define POSITIONED_WRITEV(name, type)                                           \
    ssize_t name(int fd, const struct iovec *parts, int count, type at) {       \
        REAL(name);                                                             \
        char path[PATH_MAX];                                                    \
        if (!watched(fd, path)) return real(fd, parts, count, at);              \
        size_t length;                                                          \
        void *bytes = joined(parts, count, &length);                            \
        ssize_t written = pwrite64(fd, bytes, length, at);                      \
        free(bytes);                                                            \
        return written;                                                         \
    }
POSITIONED_WRITEV(pwritev, off_t)
POSITIONED_WRITEV(pwritev64, off64_t)

#define LENGTH(name, type)                                      \
    int name(int fd, type length) {                             \
        REAL(name);                                             \
        char path[PATH_MAX];                                    \
        if (!watched(fd, path)) return real(fd, length);        \
        enter();                                                \
        note_length(fd, path, length);                          \
        int result = real(fd, length);                          \
        leave();                                                \
        return result;                                          \
    }
LENGTH(ftruncate, off_t)
LENGTH(ftruncate64, off64_t)

#define ALLOCATE(name, type)                                                    \
    int name(int fd, type from, type length) {                                  \
        REAL(name);                                                             \
        char path[PATH_MAX];                                                    \
        if (!watched(fd, path)) return real(fd, from, length);                  \
        struct stat status;                                                     \
        enter();                                                                \
        if (fstat(fd, &status) != 0) give_up("fstat");                          \
        if (status.st_size < from + length) note_length(fd, path, from + length); \
        int result = real(fd, from, length);                                    \
        leave();                                                                \
        return result;                                                          \
    }
ALLOCATE(posix_fallocate, off_t)
ALLOCATE(posix_fallocate64, off64_t)

/* A flush makes durable what was written before it began. */
#define FLUSH(name)                                                                                  \
    int name(int fd) {                                                                               \
        REAL(name);                                                                                  \
        char path[PATH_MAX];                                                                         \
        struct stat status;                                                                          \
        if (!watched(fd, path) || fstat(fd, &status) != 0) return real(fd);                          \
        static uint32_t count;                                                                       \
        uint64_t number = (uint64_t)getpid() << 32 | __atomic_add_fetch(&count, 2, __ATOMIC_SEQ_CST) | \
                          (sizeof #name == sizeof "fsync");                                          \
        enter();                                                                                     \
        note((struct record){.kind = SYNC_BEGUN, .inode = status.st_ino, .offset = number}, path, NULL, NULL, NULL); \
        leave();                                                                                     \
        int result = real(fd);                                                                       \
        if (result != 0) return result;                                                              \
        enter();                                                                                     \
        note((struct record){.kind = SYNC_ENDED, .inode = status.st_ino, .offset = number}, path, NULL, NULL, NULL); \
        leave();                                                                                     \
        return 0;                                                                                    \
    }
FLUSH(fsync)
FLUSH(fdatasync)

static int opened(int folder, const char *path, int flags, mode_t mode,
                  int (*real)(int, const char *, int, mode_t)) {
    char full[PATH_MAX];
    if (!(flags & (O_CREAT | O_TRUNC)) || (flags & O_TMPFILE) == O_TMPFILE || !named(folder, path, full))
        return real(folder, path, flags, mode);
    enter();
    uint64_t before = inode_of(full);
    if (before && flags & O_TRUNC && !(flags & O_EXCL)) {
        int fd = real_open(full, O_RDONLY | O_CLOEXEC, 0);
        if (fd >= 0) note_length(fd, full, 0);
        if (fd >= 0) close(fd);
    }
    int fd = real(folder, path, flags, mode);
    int error = errno;
    /* After the call, which gives the inode: a process that dies in between leaves an empty file behind, as a disk may. */
    if (fd >= 0 && !before)
        note((struct record){.kind = CREATED, .inode = inode_of(full), .folder = folder_of(full)}, full, NULL, NULL, NULL);
    errno = error;
    leave();
    return fd;
}

#define MODE(flags)                        \
    mode_t mode = 0;                       \
    if ((flags) & (O_CREAT | O_TMPFILE)) { \
        va_list rest;                      \
        va_start(rest, flags);             \
        mode = va_arg(rest, mode_t);       \
        va_end(rest);                      \
    }

static int really_openat(int folder, const char *path, int flags, mode_t mode) {
    static int (*real)(int, const char *, int, ...);
    if (!real) real = (int (*)(int, const char *, int, ...))dlsym(RTLD_NEXT, "openat64");
    return real(folder, path, flags, mode);
}

int open(const char *path, int flags, ...) {
    MODE(flags)
    return opened(AT_FDCWD, path, flags, mode, really_openat);
}

int open64(const char *path, int flags, ...) {
    MODE(flags)
    return opened(AT_FDCWD, path, flags, mode, really_openat);
}

int openat(int folder, const char *path, int flags, ...) {
    MODE(flags)
    return opened(folder, path, flags, mode, really_openat);
}

int openat64(int folder, const char *path, int flags, ...) {
    MODE(flags)
    return opened(folder, path, flags, mode, really_openat);
}

static int unlinked(int folder, const char *path, int flags, int (*real)(int, const char *, int)) {
    char full[PATH_MAX];
    struct stat status;
    if (!named(folder, path, full)) return real(folder, path, flags);
    enter();
    if (!(flags & AT_REMOVEDIR) && lstat(full, &status) == 0 && S_ISREG(status.st_mode))
        note((struct record){.kind = UNLINKED, .inode = status.st_ino, .folder = folder_of(full), .kept = keep(full)}, full,
             NULL, NULL, NULL);
    int result = real(folder, path, flags);
    leave();
    return result;
}

static int really_unlinkat(int folder, const char *path, int flags) {
    static int (*real)(int, const char *, int);
    if (!real) real = (int (*)(int, const char *, int))dlsym(RTLD_NEXT, "unlinkat");
    return real(folder, path, flags);
}

int unlink(const char *path) { return unlinked(AT_FDCWD, path, 0, really_unlinkat); }
int unlinkat(int folder, const char *path, int flags) { return unlinked(folder, path, flags, really_unlinkat); }

int rename(const char *from, const char *to) {
    REAL(rename);
    char one[PATH_MAX], other[PATH_MAX];
    if (!named(AT_FDCWD, from, one) || !named(AT_FDCWD, to, other)) return real(from, to);
    enter();
    if (inode_of(one)) {
        uint32_t kept = inode_of(other) ? keep(other) : 0;
        note((struct record){.kind = RENAMED, .inode = inode_of(one), .folder = folder_of(other), .kept = kept}, one, other,
             NULL, NULL);
    }
    int result = real(from, to);
    leave();
    return result;
}

static int linked(int from_folder, const char *from, int folder, const char *to, int flags,
                  int (*real)(int, const char *, int, const char *, int)) {
    char full[PATH_MAX];
    if (!named(folder, to, full)) return real(from_folder, from, folder, to, flags);
    enter();
    int result = real(from_folder, from, folder, to, flags);
    if (result == 0)
        note((struct record){.kind = LINKED, .inode = inode_of(full), .folder = folder_of(full)}, full, NULL, NULL, NULL);
    leave();
    return result;
}

static int really_linkat(int from_folder, const char *from, int folder, const char *to, int flags) {
    static int (*real)(int, const char *, int, const char *, int);
    if (!real) real = (int (*)(int, const char *, int, const char *, int))dlsym(RTLD_NEXT, "linkat");
    return real(from_folder, from, folder, to, flags);
}

int link(const char *from, const char *to) { return linked(AT_FDCWD, from, AT_FDCWD, to, 0, really_linkat); }
int linkat(int from_folder, const char *from, int folder, const char *to, int flags) {
    return linked(from_folder, from, folder, to, flags, really_linkat);
}

int mkdir(const char *path, mode_t mode) {
    REAL(mkdir);
    char full[PATH_MAX];
    if (!named(AT_FDCWD, path, full)) return real(path, mode);
    enter();
    int result = real(path, mode);
    if (result == 0)
        note((struct record){.kind = MADE_FOLDER, .inode = inode_of(full), .folder = folder_of(full)}, full, NULL, NULL, NULL);
    leave();
    return result;
}
