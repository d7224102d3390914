/* net.h - ports and raw connections for the fixtures, and for tests that want to see a server without the library.
 */
#ifndef TS_NET_H
#define TS_NET_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hiredis/hiredis.h>

/* A free port of 127.0.0.1 that no other test program gets until ts_port_release, whether or not anybody listens on it. It lies
 * outside of the range for outgoing connections, where a connect to a closed port may meet itself. *ret_guard goes to
 * ts_port_release. */
int ts_port_reserve(int *ret_guard);
void ts_port_release(int guard);

/* A listening socket on 127.0.0.1:port, non-blocking, close-on-exec, owned by the fixtures (ts_fd_close). -1 and errno. */
int ts_listen(int port, int backlog);

/* An address whose connects hang: a listener whose queue is full, so that Linux drops each SYN. */
typedef struct ts_void ts_void;
ts_void *ts_void_start(void);
void ts_void_stop(ts_void *hole);
int ts_void_port(const ts_void *hole);
const char *ts_void_url(const ts_void *hole);

/* A connection of a test's own. It never raises SIGPIPE. */
typedef struct ts_conn ts_conn;
enum { TS_CONN_TIMEOUT = 0, TS_CONN_REPLY = 1, TS_CONN_EOF = -1, TS_CONN_RESET = -2, TS_CONN_GARBAGE = -3 };

ts_conn *ts_conn_tcp(int port);          /* to 127.0.0.1; NULL if refused */
ts_conn *ts_conn_unix(const char *path); /* NULL if refused */
void ts_conn_close(ts_conn *conn);       /* NULL is fine */
void ts_conn_reset(ts_conn *conn);       /* closes with RST */
int ts_conn_fd(const ts_conn *conn);

/* Sends all the bytes, or a command formatted like redisCommand. false if the connection is gone. */
bool ts_conn_send(ts_conn *conn, const void *bytes, size_t len);
bool ts_conn_command(ts_conn *conn, const char *format, ...);
bool ts_conn_vcommand(ts_conn *conn, const char *format, va_list args);
/* Waits for the next reply for at most ms. TS_CONN_REPLY: *ret_reply is the caller's (freeReplyObject). */
int ts_conn_read(ts_conn *conn, int64_t ms, redisReply **ret_reply);
/* Reads raw bytes, at most size, waiting for the first. > 0 bytes, or one of TS_CONN_TIMEOUT, _EOF, _RESET. Not to be mixed with
 * ts_conn_read. */
int ts_conn_read_raw(ts_conn *conn, int64_t ms, void *ret_bytes, size_t size);

#endif
