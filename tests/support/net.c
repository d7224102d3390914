/* net.c - see net.h.
 */
#include "net.h"

#include "check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* ---- Ports ----------------------------------------------------------------------------------------------------------------- */

static struct sockaddr_in loopback(int port)
{
    struct sockaddr_in address = {0};
    address.sin_family = AF_INET;
    address.sin_port = htons((uint16_t)port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

/* The first port that the kernel gives to outgoing connections. */
static int first_ephemeral_port(void)
{
    int low = 32768;
    FILE *file = fopen("/proc/sys/net/ipv4/ip_local_port_range", "re");
    if (file != NULL) {
        if (fscanf(file, "%d", &low) != 1) {
            low = 32768;
        }
        fclose(file);
    }
    return low;
}

/* Takes an abstract unix address named after the port: it is gone with its last descriptor, however the program ends. -1 if
 * another test program has it. */
static int take_guard(int port)
{
    struct sockaddr_un address = {0};
    address.sun_family = AF_UNIX;
    int n = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "redlatch-test-port-%d", port);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return -1;
    }
    if (bind(fd, (struct sockaddr *)&address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)) != 0) {
        close(fd);
        return -1;
    }
    ts_fd_own(fd);
    return fd;
}

int ts_port_reserve(int *ret_guard)
{
    enum { LOWEST = 10000, TRIES = 1000 };
    int end = first_ephemeral_port();
    int low = end > LOWEST + 1000 ? LOWEST : 1024;
    for (int i = 0; i < TRIES; i++) {
        unsigned draw = 0;
        if (getrandom(&draw, sizeof draw, 0) != (ssize_t)sizeof draw) {
            continue;
        }
        /* Where nearly all ports are ephemeral there is no better choice than among all. */
        int port = end > low + 1000 ? low + (int)(draw % (unsigned)(end - low)) : 1024 + (int)(draw % 64000);
        int guard = take_guard(port);
        if (guard < 0) {
            continue;
        }
        int fd = ts_listen(port, 1);
        if (fd >= 0) {
            ts_fd_close(fd);
            *ret_guard = guard;
            return port;
        }
        ts_fd_close(guard);
    }
    ts_fail("no free port on 127.0.0.1");
}

void ts_port_release(int guard)
{
    ts_fd_close(guard);
}

int ts_listen(int port, int backlog)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return -1;
    }
    int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    struct sockaddr_in address = loopback(port);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, backlog) != 0) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    ts_fd_own(fd);
    return fd;
}

/* ---- An address that does not answer --------------------------------------------------------------------------------------- */

enum { FILLERS = 4 };
struct ts_void {
    int port, guard, listener;
    int filler[FILLERS];
    char url[64];
};

static void stop_void(void *arg)
{
    ts_void_stop(arg);
}

ts_void *ts_void_start(void)
{
    ts_void *hole = calloc(1, sizeof *hole);
    if (hole == NULL) {
        abort();
    }
    hole->port = ts_port_reserve(&hole->guard);
    hole->listener = ts_listen(hole->port, 0);
    snprintf(hole->url, sizeof hole->url, "redis://127.0.0.1:%d", hole->port);
    struct sockaddr_in address = loopback(hole->port);
    for (int i = 0; i < FILLERS; i++) {
        hole->filler[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        ts_fd_own(hole->filler[i]);
        if (connect(hole->filler[i], (struct sockaddr *)&address, sizeof address) != 0 && errno != EINPROGRESS) {
            ts_fail("connect: %s", strerror(errno));
        }
    }
    ts_cleanup_add(stop_void, hole);
    return hole;
}

void ts_void_stop(ts_void *hole)
{
    if (hole == NULL) {
        return;
    }
    ts_cleanup_remove(hole);
    for (int i = 0; i < FILLERS; i++) {
        ts_fd_close(hole->filler[i]);
    }
    ts_fd_close(hole->listener);
    ts_port_release(hole->guard);
    free(hole);
}

int ts_void_port(const ts_void *hole)
{
    return hole->port;
}

const char *ts_void_url(const ts_void *hole)
{
    return hole->url;
}

/* ---- Connections ----------------------------------------------------------------------------------------------------------- */

struct ts_conn {
    int fd;
    redisReader *reader; /* NULL between replies: an idle connection holds nothing that a leak check may misread */
};

static ts_conn *connect_to(int family, const void *address, socklen_t len)
{
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return NULL;
    }
    if (connect(fd, address, len) != 0) {
        close(fd);
        return NULL;
    }
    if (family == AF_INET) {
        int on = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    ts_conn *conn = calloc(1, sizeof *conn);
    if (conn == NULL) {
        abort();
    }
    ts_fd_own(fd);
    conn->fd = fd;
    return conn;
}

ts_conn *ts_conn_tcp(int port)
{
    struct sockaddr_in address = loopback(port);
    return connect_to(AF_INET, &address, sizeof address);
}

ts_conn *ts_conn_unix(const char *path)
{
    struct sockaddr_un address = {0};
    address.sun_family = AF_UNIX;
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    return connect_to(AF_UNIX, &address, sizeof address);
}

void ts_conn_close(ts_conn *conn)
{
    if (conn != NULL) {
        ts_fd_close(conn->fd);
        if (conn->reader != NULL) {
            redisReaderFree(conn->reader);
        }
        free(conn);
    }
}

void ts_conn_reset(ts_conn *conn)
{
    struct linger now = {1, 0};
    setsockopt(conn->fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    ts_conn_close(conn);
}

int ts_conn_fd(const ts_conn *conn)
{
    return conn->fd;
}

bool ts_conn_send(ts_conn *conn, const void *bytes, size_t len)
{
    size_t done = 0;
    while (done < len) {
        ssize_t n = send(conn->fd, (const char *)bytes + done, len - done, MSG_NOSIGNAL);
        if (n < 0 && errno != EINTR) {
            return false;
        }
        done += n > 0 ? (size_t)n : 0;
    }
    return true;
}

bool ts_conn_vcommand(ts_conn *conn, const char *format, va_list args)
{
    char *bytes = NULL;
    int len = redisvFormatCommand(&bytes, format, args);
    if (len < 0) {
        ts_fail("malformed command: %s", format);
    }
    bool sent = ts_conn_send(conn, bytes, (size_t)len);
    redisFreeCommand(bytes);
    return sent;
}

bool ts_conn_command(ts_conn *conn, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    bool sent = ts_conn_vcommand(conn, format, args);
    va_end(args);
    return sent;
}

int ts_conn_read_raw(ts_conn *conn, int64_t ms, void *ret_bytes, size_t size)
{
    int64_t end = ts_mono_ms() + ms;
    for (;;) {
        int64_t left = end - ts_mono_ms();
        struct pollfd ready = {conn->fd, POLLIN, 0};
        int rc = poll(&ready, 1, left < 0 ? 0 : left > 1000 ? 1000 : (int)left);
        if (rc > 0) {
            ssize_t n = recv(conn->fd, ret_bytes, size, MSG_DONTWAIT);
            if (n >= 0) {
                return n == 0 ? TS_CONN_EOF : (int)n;
            }
            if (errno != EINTR && errno != EAGAIN) {
                return TS_CONN_RESET;
            }
        } else if (left <= 0) {
            return TS_CONN_TIMEOUT;
        }
    }
}

int ts_conn_read(ts_conn *conn, int64_t ms, redisReply **ret_reply)
{
    int64_t end = ts_mono_ms() + ms;
    for (;;) {
        void *reply = NULL;
        if (conn->reader == NULL) {
            conn->reader = redisReaderCreate();
        }
        if (redisReaderGetReply(conn->reader, &reply) != REDIS_OK) {
            return TS_CONN_GARBAGE;
        }
        if (reply != NULL) {
            *ret_reply = reply;
            if (conn->reader->pos == conn->reader->len) {
                redisReaderFree(conn->reader);
                conn->reader = NULL;
            }
            return TS_CONN_REPLY;
        }
        char bytes[16384];
        int n = ts_conn_read_raw(conn, end - ts_mono_ms(), bytes, sizeof bytes);
        if (n <= 0) {
            return n;
        }
        redisReaderFeed(conn->reader, bytes, (size_t)n);
    }
}
