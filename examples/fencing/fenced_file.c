/* fenced_file.c - a file whose writers show fencing tokens: a write with a token lower than the highest that was shown is refused.
 *
 * usage: fenced_file begin FILE TOKEN HOLDER     shows the token, before the first read; prints what the file contains
 *        fenced_file write FILE TOKEN HOLDER     shows the token and replaces the file by what comes on stdin
 *
 * TOKEN is what rl_lock_fence said, HOLDER what tells this holder from others (rl_lock_token, or a hash of it). Exit status: 0
 * accepted, 1 refused: a newer holder has been here, 2 a failure.
 *
 * FILE.fence has the highest token and its holder, FILE.lock is held (flock) while one looks and writes. Each file is replaced as a
 * whole: written beside its place, fsync, rename, fsync of the directory. The token is on the disk before the data is: a crash in
 * between leaves the old data and refuses the older holders. All writers must go this way, on one machine (or on a file system
 * whose flock and rename hold between machines).
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { ACCEPTED = 0, REFUSED = 1, FAILED = 2, MAX_DATA = 1 << 20, MAX_HOLDER = 128 };

static int64_t parse_token(const char *text)
{
    char *end;
    errno = 0;
    long long token = strtoll(text, &end, 10);
    return errno || *end || end == text || token >= INT64_C(9007199254740992) ? -1 : token;
}

/* Makes it last that a name in this file's directory was replaced. */
static int sync_directory(const char *path)
{
    char copy[PATH_MAX];
    snprintf(copy, sizeof copy, "%s", path);
    int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return -1;
    }
    int rc = fsync(fd);
    close(fd);
    return rc;
}

static int write_all(int fd, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t written = write(fd, data, len);
        if (written < 0) {
            return -1;
        }
        data += written;
        len -= (size_t)written;
    }
    return fsync(fd);
}

/* Replaces the file as a whole: after a crash it is the old one or the new one. */
static int replace(const char *path, const char *data, size_t len)
{
    char beside[PATH_MAX];
    if (snprintf(beside, sizeof beside, "%s.new", path) >= (int)sizeof beside) {
        return -1;
    }
    int fd = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0) {
        return -1;
    }
    int rc = write_all(fd, data, len);
    if (close(fd) < 0 || rc < 0 || rename(beside, path) < 0) {
        return -1;
    }
    return sync_directory(path);
}

/* Accepts the token if it is higher than all before, or equal and of the same holder, and keeps it. FILE.lock is held. */
static int show(const char *fence, int64_t token, const char *holder)
{
    long long highest = 0;
    char its_holder[MAX_HOLDER + 1] = "";
    FILE *file = fopen(fence, "re");
    if (!file && errno != ENOENT) {
        return FAILED;
    }
    if (file) {
        int fields = fscanf(file, "%lld %128s", &highest, its_holder);
        fclose(file);
        if (fields != 2) {
            errno = EBADMSG;
            return FAILED; /* not ours to guess */
        }
    }
    if (token == highest && strcmp(holder, its_holder) == 0) {
        return ACCEPTED;
    }
    if (token <= highest) {
        return REFUSED;
    }
    char line[MAX_HOLDER + 32];
    int len = snprintf(line, sizeof line, "%lld %s\n", (long long)token, holder);
    return replace(fence, line, (size_t)len) ? FAILED : ACCEPTED;
}

static int print_file(const char *path)
{
    FILE *file = fopen(path, "re");
    if (!file) {
        return errno == ENOENT ? ACCEPTED : FAILED;
    }
    int c;
    while ((c = getc(file)) != EOF) {
        putchar(c);
    }
    int bad = ferror(file) || fflush(stdout);
    fclose(file);
    return bad ? FAILED : ACCEPTED;
}

/* Under FILE.lock: the token first, then the data (NULL: print what is there). */
static int act(const char *path, int64_t token, const char *holder, const char *data, size_t len)
{
    char lock[PATH_MAX], fence[PATH_MAX];
    if (snprintf(lock, sizeof lock, "%s.lock", path) >= (int)sizeof lock ||
        snprintf(fence, sizeof fence, "%s.fence", path) >= (int)sizeof fence) {
        return FAILED;
    }
    int fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0666); /* never replaced or removed */
    if (fd < 0) {
        return FAILED;
    }
    int rc = flock(fd, LOCK_EX) ? FAILED : show(fence, token, holder);
    if (rc == ACCEPTED) {
        rc = data ? replace(path, data, len) ? FAILED : ACCEPTED : print_file(path);
    }
    close(fd);
    return rc;
}

int main(int argc, char **argv)
{
    static char data[MAX_DATA + 1];
    int writes = argc == 5 && strcmp(argv[1], "write") == 0;
    if (!writes && !(argc == 5 && strcmp(argv[1], "begin") == 0)) {
        fprintf(stderr, "usage: fenced_file begin|write FILE TOKEN HOLDER\n");
        return FAILED;
    }
    int64_t token = parse_token(argv[3]);
    size_t holder_len = strlen(argv[4]);
    if (token <= 0 || holder_len == 0 || holder_len > MAX_HOLDER || strpbrk(argv[4], " \t\n\v\f\r")) {
        fprintf(stderr, "refused: no token, or no holder\n"); /* 0 is what a lock without a fence has */
        return REFUSED;
    }
    size_t len = writes ? fread(data, 1, sizeof data, stdin) : 0; /* all of it before the lock is taken */
    if (len > MAX_DATA || ferror(stdin)) {
        fprintf(stderr, "failed: stdin\n");
        return FAILED;
    }
    int rc = act(argv[2], token, argv[4], writes ? data : NULL, len);
    if (rc) {
        fprintf(stderr, rc == REFUSED ? "refused: a newer holder has been here\n" : "failed: %s\n", strerror(errno));
    }
    return rc;
}
