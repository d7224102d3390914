/* ballot.h - one request put to all nodes, and the votes that came back.
 *
 * Each node votes once. A node is in exactly one of `open`, `yes`, `other`, `absent`, `failed`, or was not asked. "Unknown" (asked,
 * but no answer will tell whether it acted) is a kind of failure that is never a grant and always gets a release. Pure. */
#ifndef RLI_BALLOT_H
#define RLI_BALLOT_H

#include "quorum.h"

/* What one node answered, or why it did not; decoded from the wire (answer.h) or made by the engine. */
struct rli_answer {
    int outcome;          /* enum rl_node_outcome */
    bool denied;          /* an ERROR: it refused our credentials or a command */
    bool unknown;         /* a failure that leaves open whether the request was carried out */
    bool died;            /* the connection broke before any byte of an answer came */
    bool resent;          /* the answer is to a request sent a second time, after its connection broke */
    int sys_errno;        /* of a failure without a reply */
    rli_instant sent;     /* no later than the sending of the request's first byte; RLI_GONE if it was never sent */
    rli_instant at;       /* when the answer came; RLI_GONE if none did */
    int64_t fence;        /* YES to a grant or mint: the counter */
    rli_span holder_left; /* HELD_BY_OTHER: how long the other's key will live; RLI_NEVER if that is not known */
    const char *text;     /* the server's words, not ended by NUL, valid during the call that hands over the answer; or NULL */
    size_t text_len;
};

struct rli_ballot {
    uint32_t open;    /* asked, no vote yet */
    uint32_t yes;     /* granted, extended, deleted */
    uint32_t other;   /* held by another */
    uint32_t absent;  /* no such key */
    uint32_t failed;  /* everything else */
    uint32_t denied;  /* of the failed: refused our credentials or command */
    uint32_t unknown; /* of the failed: may have acted */
    uint32_t died;    /* of the failed: connection found dead */
    rli_span slowest; /* the longest time to an answer */
};

#define RLI_UNDECIDED 1000 /* no rl_status */

/* Opens a new ballot to the nodes in the mask. */
void rli_ballot_open(struct rli_ballot *ballot, uint32_t nodes);

/* Counts a node's vote; false (and nothing counted) if that node owes none. */
bool rli_ballot_count(struct rli_ballot *ballot, uint32_t node, const struct rli_answer *answer);

/* Time is up: every open vote fails; those in `unsent` were never sent and have not acted. */
void rli_ballot_close(struct rli_ballot *ballot, uint32_t unsent);

/* RL_E_AUTH if every failure was a refusal of credentials or commands, else RL_E_NO_QUORUM. */
int rli_ballot_failure(const struct rli_ballot *ballot);

/* An acquisition's verdict by S2.8: RL_OK at q grants; RLI_UNDECIDED while q can be reached; else why not. */
int rli_ballot_verdict(const struct rli_ballot *ballot, const struct rli_terms *terms);

#endif
