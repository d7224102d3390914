/* hostile.h - a server that follows a script instead of a protocol, for answers that no real server gives, and for looking at what
 * the library sends.
 *
 * Every connection is played by a thread of its own, step by step:
 *
 *     static const ts_step oops[] = {TS_HANDSHAKE, TS_EXPECT("SET"), TS_SEND("+OK\r\n+OK\r\n"), TS_READ_TO_END, TS_END};
 *     ts_hostile *h = ts_hostile_start(oops);
 *
 * Scripts and byte strings are not copied: keep them until ts_hostile_stop. After its last step a connection is closed.
 */
#ifndef TS_HOSTILE_H
#define TS_HOSTILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ts_hostile ts_hostile;

typedef enum ts_step_kind {
    TS_STEP_END,
    TS_STEP_EXPECT,
    TS_STEP_SEND,
    TS_STEP_REPEAT,
    TS_STEP_TRICKLE,
    TS_STEP_SLEEP,
    TS_STEP_HANDSHAKE,
    TS_STEP_SERVE,
    TS_STEP_SERVE_UNTIL,
    TS_STEP_READ_TO_END,
    TS_STEP_CLOSE,
    TS_STEP_RESET,
    TS_STEP_SHUT_WRITE,
    TS_STEP_HANG
} ts_step_kind;

typedef struct ts_step {
    ts_step_kind kind;
    const char *bytes;
    size_t len;
    int64_t n;
} ts_step;

/* The steps. */
#define TS_STEP(kind, bytes, len, n)                                                                                               \
    {                                                                                                                              \
        TS_STEP_##kind, (bytes), (len), (n)                                                                                        \
    }
#define TS_END TS_STEP(END, NULL, 0, 0)
/* Reads one whole command, and notes an error unless its name is this (any case, two words for a subcommand; NULL = any). */
#define TS_EXPECT(name) TS_STEP(EXPECT, (name), 0, 0)
#define TS_SEND(literal) TS_STEP(SEND, (literal), sizeof(literal) - 1, 0)
#define TS_SEND_BYTES(bytes, len) TS_STEP(SEND, (bytes), (len), 0)
#define TS_REPEAT(literal, n) TS_STEP(REPEAT, (literal), sizeof(literal) - 1, (n))     /* n times; -1 = until the peer is gone */
#define TS_TRICKLE(literal, ms) TS_STEP(TRICKLE, (literal), sizeof(literal) - 1, (ms)) /* a byte every ms */
#define TS_SLEEP(ms) TS_STEP(SLEEP, NULL, 0, (ms))
/* Answers AUTH, SELECT, CLIENT and SCRIPT commands like an honest server, until another command comes, which is left for the next
 * step. TS_HANDSHAKE_THEN_IDLE ends also when nothing came for ms. */
#define TS_HANDSHAKE TS_STEP(HANDSHAKE, NULL, 0, -1)
#define TS_HANDSHAKE_THEN_IDLE(ms) TS_STEP(HANDSHAKE, NULL, 0, (ms))
/* Answers n commands (-1 = until the peer ends) from the table of ts_hostile_answer. */
#define TS_SERVE(n) TS_STEP(SERVE, NULL, 0, (n))
/* Answers from the table until a command of this name comes, which is left for the next step. */
#define TS_SERVE_UNTIL(name) TS_STEP(SERVE_UNTIL, (name), 0, -1)
#define TS_READ_TO_END TS_STEP(READ_TO_END, NULL, 0, 0) /* records commands, answers nothing, until the peer ends */
#define TS_CLOSE TS_STEP(CLOSE, NULL, 0, 0)             /* FIN if everything was read */
#define TS_RESET TS_STEP(RESET, NULL, 0, 0)             /* RST */
#define TS_SHUT_WRITE TS_STEP(SHUT_WRITE, NULL, 0, 0)   /* FIN; goes on reading */
#define TS_HANG TS_STEP(HANG, NULL, 0, 0)               /* neither reads nor writes, until ts_hostile_stop */

/* script: for every connection that has none of its own; NULL = {TS_SERVE(-1), TS_END}. */
ts_hostile *ts_hostile_start(const ts_step *script);
void ts_hostile_stop(ts_hostile *hostile); /* NULL is fine */
int ts_hostile_port(const ts_hostile *hostile);
const char *ts_hostile_url(const ts_hostile *hostile); /* redis://127.0.0.1:PORT */

/* The script of one connection, counted from 0 in the order of arrival. Before it arrives. */
void ts_hostile_script(ts_hostile *hostile, int connection, const ts_step *script);

/* The table: what a command of this name is answered with (any case, two words for a subcommand; NULL = every name that is not in
 * the table). Bytes not copied; NULL = no answer at all. Without it: what an empty server says to AUTH, SELECT, CLIENT ..., SCRIPT
 * LOAD (the true digest), PING, SET (+OK), GET (nil), EVAL and EVALSHA (:1), DEL (:1), INFO; else -ERR unknown command.
 * ts_hostile_answer_once: only the next such command; these are used up first, in the order of their making. */
void ts_hostile_answer(ts_hostile *hostile, const char *command, const char *bytes);
void ts_hostile_answer_len(ts_hostile *hostile, const char *command, const char *bytes, size_t len);
void ts_hostile_answer_once(ts_hostile *hostile, const char *command, const char *bytes);

/* ---- What was seen --------------------------------------------------------------------------------------------------------- */

/* A received command; it lives until ts_hostile_stop. Every argument is followed by a NUL that does not count. */
typedef struct ts_received {
    int connection;
    int argc;
    char **argv;
    size_t *len;
    int64_t at_ms; /* ts_now_ms when it was complete */
} ts_received;

int ts_hostile_count(ts_hostile *hostile, const char *command); /* received so far; NULL = all */
const ts_received *ts_hostile_received(ts_hostile *hostile, const char *command,
                                       int i);                                         /* the i-th from 0; NULL if there is none */
bool ts_hostile_wait(ts_hostile *hostile, const char *command, int count, int64_t ms); /* until so many; false if not within ms */

typedef enum ts_peer {
    TS_PEER_NONE, /* no such connection yet */
    TS_PEER_OPEN, /* no end seen (nobody looks while no step reads) */
    TS_PEER_FIN,  /* the peer ended orderly */
    TS_PEER_RST   /* the peer reset the connection */
} ts_peer;
int ts_hostile_connections(ts_hostile *hostile);              /* accepted so far */
ts_peer ts_hostile_peer(ts_hostile *hostile, int connection); /* how the peer ended */
bool ts_hostile_wait_peer(ts_hostile *hostile, int connection, ts_peer peer, int64_t ms);
bool ts_hostile_wait_done(ts_hostile *hostile, int connection, int64_t ms); /* its script has ended */
int64_t ts_hostile_bytes(ts_hostile *hostile);                              /* read so far, from all */
/* The first thing that was not as the script expects it (also bytes that are no command); NULL = all well. Lives until the stop. */
const char *ts_hostile_error(ts_hostile *hostile);

#endif
