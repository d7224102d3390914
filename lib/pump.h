/* pump.h - between the nodes of an engine and their sockets, for every driver that has real ones. */
#ifndef RLI_PUMP_H
#define RLI_PUMP_H

#include "engine.h"

struct rli_link { /* one node's connection */
    int fd;       /* -1 = none */
    bool connecting;
    struct rli_lookup *lookup;
};

void rli_pump_init(struct rli_link *links, uint32_t count);

/* Does what the nodes want and sends what they have. A driver calls it before it waits. */
void rli_pump_flush(struct rli_engine *engine, struct rli_link *links, rli_instant now);

/* Should the driver wait for the descriptor to become writable (too)? */
bool rli_pump_wants_write(const struct rli_engine *engine, const struct rli_link *links, uint32_t node);

void rli_pump_readable(struct rli_engine *engine, struct rli_link *links, uint32_t node, rli_instant now);
void rli_pump_writable(struct rli_engine *engine, struct rli_link *links, uint32_t node, rli_instant now);

/* Hands over the look-ups that have ended: for when the waker was woken. */
void rli_pump_lookups(struct rli_engine *engine, struct rli_link *links, rli_instant now);

/* Reads once from each node that wants a look (`all`: that owes any answer) before more is sent to it. */
void rli_pump_look(struct rli_engine *engine, struct rli_link *links, bool all, rli_instant now);

/* Closes everything at once. */
void rli_pump_close(struct rli_link *links, uint32_t count);

#endif
