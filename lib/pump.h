/* pump.h - between the nodes of an engine and their sockets, for every driver that has real ones. */
#ifndef RLI_PUMP_H
#define RLI_PUMP_H

#include "engine.h"

#include <sys/types.h>

struct rli_link { /* one node's connection */
    int fd;       /* -1 = none */
    bool connecting;
    uint32_t serial; /* of the connections there were: descriptors come again, this does not */
    struct rli_lookup *lookup;
};

struct rli_pump {
    struct rli_engine *engine;
    void (*closing)(struct rli_pump *pump, uint32_t node); /* its descriptor is about to be closed; may be NULL */
    bool lent;                                             /* a thread waits for bytes of the only node: nobody else reads */
    struct rli_link links[RL_MAX_NODES];
};

void rli_pump_init(struct rli_pump *pump, struct rli_engine *engine);

/* Does what the nodes want and sends what they have. A driver calls it before it waits. */
void rli_pump_flush(struct rli_pump *pump, rli_instant now);

/* Should the driver wait for the descriptor to become writable (too)? */
bool rli_pump_wants_write(const struct rli_pump *pump, uint32_t node);

void rli_pump_readable(struct rli_pump *pump, uint32_t node, rli_instant now);
/* What a thread that waited by itself has got. */
void rli_pump_received(struct rli_pump *pump, uint32_t node, const char *bytes, ssize_t size, rli_instant now);
void rli_pump_writable(struct rli_pump *pump, uint32_t node, rli_instant now);

/* Hands over the look-ups that have ended: for when the waker was woken. */
void rli_pump_lookups(struct rli_pump *pump, rli_instant now);

/* Before more is sent, or a deadline believed: reads once from each node that wants a look (`all`: that owes any answer), and takes
 * notice of what has become of connections in the making. */
void rli_pump_look(struct rli_pump *pump, bool all, rli_instant now);

/* What can be sent now is sent, once; where a node owes an answer the stream is ended in order (S3.3); then all is closed. */
void rli_pump_close(struct rli_pump *pump);

#endif
