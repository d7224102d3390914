/* sock.c - see sock.h. */
#include "sock.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

int rli_sock_open(const struct rli_address *address, bool *ret_connecting)
{
    const struct sockaddr *to = (const struct sockaddr *)(const void *)address->bytes;
    int fd = socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), one = 1;

    if (fd < 0)
        return -errno;
    if (to->sa_family != AF_UNIX)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    *ret_connecting = false;
    if (connect(fd, to, address->size) == 0)
        return fd;
    /* Interrupted, a connect goes on by itself. EAGAIN (a unix socket's full backlog) means that nothing was started. */
    if (errno == EINPROGRESS || errno == EINTR) {
        *ret_connecting = true;
        return fd;
    }
    int error = errno;
    close(fd);
    return -error;
}

int rli_sock_connected(int fd)
{
    struct sockaddr_storage peer;
    int error = 0;
    socklen_t size = sizeof error;

    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
        return -errno;
    if (error)
        return -error;
    size = sizeof peer;
    return getpeername(fd, (struct sockaddr *)&peer, &size) == 0 ? 0 : 1;
}

static bool is_nothing_now(int error)
{
    return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

ssize_t rli_sock_send(int fd, const void *bytes, size_t size)
{
    ssize_t n = send(fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0)
        return n;
    return is_nothing_now(errno) ? 0 : -errno;
}

static ssize_t receive(int fd, void *bytes, size_t size, int flags)
{
    ssize_t n = recv(fd, bytes, size, flags);
    if (n > 0)
        return n;
    if (n == 0)
        return -ECONNRESET;
    return is_nothing_now(errno) ? 0 : -errno;
}

ssize_t rli_sock_receive(int fd, void *bytes, size_t size)
{
    return receive(fd, bytes, size, MSG_DONTWAIT);
}

bool rli_sock_lend(int fd, rli_span patience)
{
    struct timeval timeout = {.tv_usec = patience / 1000};

    return setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout) == 0 && fcntl(fd, F_SETFL, 0) == 0;
}

ssize_t rli_sock_wait(int fd, void *bytes, size_t size)
{
    return receive(fd, bytes, size, 0);
}

void rli_sock_shut(int fd)
{
    shutdown(fd, SHUT_WR);
}

void rli_sock_close(int fd)
{
    char scratch[4096];

    for (int i = 0; i < 64 && recv(fd, scratch, sizeof scratch, MSG_DONTWAIT) > 0; i++)
        ;
    close(fd);
}
