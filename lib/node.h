/* node.h - one Redis server as a protocol without a socket: bytes in, bytes out.
 *
 * A driver tells it what happened (connected, failed, bytes, end, the time) and does what it wants (`want`, and the bytes of `out`).
 * It owns the handshake, the order of requests and answers, back-off, and the releases it still owes.
 *
 * Invariants. Requests are answered in the order they were written, and by nobody else: a reply without an owed request, or one out
 * of form, ends the connection. A creating request (SET) is written at most once. Everything about a lock on this node travels on one
 * connection in order; if that connection was lost with a creating request unanswered, the next one first kills it on the server.
 * A connection that owes a clean-up is never reset, but shut down and read to its end (semantics S3). */
#ifndef RLI_NODE_H
#define RLI_NODE_H

#include "answer.h"
#include "lock.h"
#include "port.h"
#include "url.h"

struct rli_engine;
struct rli_round;

struct rli_request { /* one request to one node; lies in its round, linked into one of the node's queues */
    struct rli_request *next;
    struct rli_round *round; /* NULL: a CLIENT KILL of the node's own */
    enum rli_kind kind;
    uint8_t node;
    enum { RLI_REQUEST_IDLE, RLI_REQUEST_WAITING, RLI_REQUEST_OWED } state;
    bool resent;       /* sent a second time, after its connection broke */
    bool whole_script; /* sent as EVAL */
    bool abandoned;    /* nobody waits for the answer, and it must not be sent (again) */
    rli_instant sent;
    uint64_t end;         /* how much of the connection's stream was written with it */
    rli_instant deadline; /* of the answer */
};

struct rli_queue {
    struct rli_request *first, **last;
};

enum rli_node_state {
    RLI_NODE_OFF,
    RLI_NODE_RESOLVING,
    RLI_NODE_CONNECTING,
    RLI_NODE_GREETING, /* handshake sent, its answers awaited */
    RLI_NODE_READY,
    RLI_NODE_DRAINING /* given up: what was written may still be read by the server */
};

enum rli_want { RLI_WANT_RESOLVE = 1, RLI_WANT_CONNECT = 2, RLI_WANT_SHUTDOWN = 4, RLI_WANT_CLOSE = 8 };

enum { RLI_MAX_OWES = 65536, RLI_MAX_LOST = 4, RLI_MAX_WORDS = 200, RLI_MAX_GREETING = 16, RLI_MAX_PEER = 128 };

struct rli_failure { /* why the last connection, or attempt at one, came to nothing */
    int outcome;     /* RL_NODE_UNREACHABLE or RL_NODE_ERROR */
    int sys_errno;
    bool denied;
    size_t words_len;
    char words[RLI_MAX_WORDS];
};

struct rli_peer { /* a connection of ours, as the server knows it */
    int64_t id;   /* 0 = unknown */
    char address[RLI_MAX_PEER];
};

struct rli_owe { /* a release that could not be delivered */
    rl_lock *lock;
    rli_instant due;
    bool again; /* the second delivery, where the old connection could not be killed */
};

struct rli_node {
    struct rli_engine *engine;
    const struct rli_url *url;
    uint32_t index;
    enum rli_node_state state;
    uint32_t want;           /* mask of enum rli_want: for the driver, who clears what it did */
    struct rli_codec *codec; /* of the connection */
    struct {
        char *bytes;
        size_t from, to, room;
    } out;
    uint64_t written, gone;   /* bytes of the connection's stream: appended, and taken by the socket */
    struct rli_queue waiting; /* for a connection, in order */
    struct rli_queue owed;    /* written, in order */

    rli_instant expires;  /* of resolving, connecting and greeting together; of draining */
    rli_instant retry_at; /* connecting: the local backlog was full */
    rli_instant heard;    /* last bytes in */
    rli_instant used;     /* last bytes in or out */
    rli_instant backoff_until;
    rli_span backoff;
    bool overfull;     /* too much is unsent: to be given up at the next tick */
    bool reconnecting; /* its last connection was in use when it ended */
    bool asked;        /* this connection was sent a request ... */
    bool useful;       /* ... and has answered one */

    struct rli_address addresses[RLI_MAX_ADDRESSES];
    uint32_t address_count, address, addresses_tried;

    uint8_t greeting[RLI_MAX_GREETING]; /* the commands of the handshake */
    uint32_t greeting_count, greeted;
    struct rli_peer self;
    struct rli_peer lost[RLI_MAX_LOST]; /* connections lost with a creating request unanswered, to be killed */
    uint32_t lost_count;
    bool lost_more; /* ... and others that there was no room for */
    struct rli_request kills[RLI_MAX_LOST];
    bool blind; /* they could not be killed */

    struct rli_owe *owes;
    uint32_t owes_count, owes_room;
    struct rli_failure failure;
    char run_id[48]; /* from INFO, for rl_client_check */
};

bool rli_node_init(struct rli_node *node, struct rli_engine *engine, const struct rli_url *url, uint32_t index);
void rli_node_free(struct rli_node *node);

/* ---- For the engine ------------------------------------------------------------------------------------------------------------ */

/* Will the node not take such a request now? Then *ret is its vote. `touched`: the lock was set, or may have been, on this node.
 * `needed`: without the nodes in back-off there is no quorum. */
bool rli_node_refuses(const struct rli_node *node, enum rli_kind kind, bool touched, bool needed, rli_instant now,
                      struct rli_answer *ret);

/* Writes the request, or queues it for the connection that it then brings about. bytes: the formatted command, if at hand.
 * False: out of memory; nothing was queued. */
bool rli_node_send(struct rli_node *node, struct rli_request *request, const char *bytes, size_t size, rli_instant now);

/* Takes a waiting request off its queue. */
void rli_node_withdraw(struct rli_node *node, struct rli_request *request);

/* A release that has to reach the node once it can. Where there is no room for it, the one whose lease ends soonest is dropped: its
 * key ends with its lease. */
void rli_node_owe(struct rli_node *node, rl_lock *lock, rli_instant due, bool again);

/* The client ends: releases that are owed for later are due now. */
void rli_node_settle_up(struct rli_node *node, rli_instant now);

/* Does it owe an answer that decides whether a key of ours stays behind, or a release? */
bool rli_node_owes(const struct rli_node *node);

bool rli_node_backing_off(const struct rli_node *node, rli_instant now);
rli_instant rli_node_deadline(const struct rli_node *node);
void rli_node_tick(struct rli_node *node, rli_instant now);

/* ---- For the driver ------------------------------------------------------------------------------------------------------------ */

/* Should the driver read once before more is sent? (An idle connection may have died; a late answer may have come.) */
bool rli_node_wants_look(const struct rli_node *node, rli_instant now);
void rli_node_resolved(struct rli_node *node, uint32_t count, const char *error, rli_instant now); /* into addresses */
void rli_node_connected(struct rli_node *node, rli_instant now);
void rli_node_failed(struct rli_node *node, int sys_errno, rli_instant now);
void rli_node_received(struct rli_node *node, const char *bytes, size_t size, rli_instant now);
void rli_node_sent(struct rli_node *node, size_t size, rli_instant now);
void rli_node_blocked(struct rli_node *node, rli_instant now); /* the socket takes no more for now */
/* Nobody drove for a while: that time does not count for a connection in the making. */
void rli_node_resumed(struct rli_node *node, rli_instant now);
void rli_node_ended(struct rli_node *node, int sys_errno, rli_instant now);
static inline size_t rli_node_unsent(const struct rli_node *node)
{
    return node->out.to - node->out.from;
}

/* ---- What the node asks of the engine (engine.c) --------------------------------------------------------------------------------- */

void rli_engine_build(const struct rli_request *request, struct rli_command *ret);
void rli_engine_sent(struct rli_request *request, rli_instant now); /* its first byte is about to be sent */
void rli_engine_answered(struct rli_request *request, const struct rli_reply *reply, rli_instant now);
void rli_engine_lost(struct rli_request *request, const struct rli_answer *why, rli_instant now);
struct rli_request *rli_engine_orphan(struct rli_engine *engine, uint32_t node, rl_lock *lock, bool again,
                                      rli_instant now);          /* or NULL */
void rli_engine_dirty(struct rli_engine *engine, uint32_t node); /* it wants something, or has bytes to send */
const struct rli_terms *rli_engine_terms(const struct rli_engine *engine);
const char *rli_engine_client_name(const struct rli_engine *engine);
unsigned rli_engine_scripts(const struct rli_engine *engine); /* how many of the scripts are worth loading beforehand */
uint64_t rli_engine_random(struct rli_engine *engine);

#endif
