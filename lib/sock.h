/* sock.h - non-blocking stream sockets: open, send, receive, close. Results are >= 0, or a negative errno. */
#ifndef RLI_SOCK_H
#define RLI_SOCK_H

#include "port.h"

#include <sys/types.h>

/* A descriptor whose connect is done or (*ret_connecting) under way; CLOEXEC, TCP_NODELAY. */
int rli_sock_open(const struct rli_address *address, bool *ret_connecting);

/* The outcome of a connect that was under way: 0, or a negative errno; 1 = it still is. */
int rli_sock_connected(int fd);

/* Bytes taken; 0 = none now. Never raises SIGPIPE. */
ssize_t rli_sock_send(int fd, const void *bytes, size_t size);

/* Bytes read; 0 = none now; the end of the stream is -ECONNRESET. */
ssize_t rli_sock_receive(int fd, void *bytes, size_t size);

/* A connected socket on which rli_sock_wait waits for bytes, for less than a second; 0 = none came. (The other calls never wait.) */
bool rli_sock_lend(int fd, rli_span patience);
ssize_t rli_sock_wait(int fd, void *bytes, size_t size);

/* No more will be sent; the peer may still read all that was. */
void rli_sock_shut(int fd);

/* Closes. What lies unread is read first, a bounded amount: otherwise Linux resets the connection, and the peer drops what it has
 * not read yet. */
void rli_sock_close(int fd);

#endif
