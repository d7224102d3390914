/* relay.h - a slow network: a process that hands TCP bytes on to servers after a delay, without burning a core for it. */
#ifndef BENCH_RELAY_H
#define BENCH_RELAY_H

#include "nodes.h"

struct relay {
    int pid, count;
    struct address at[MAX_NODES]; /* where to connect instead */
    char urls[URLS_ROOM];
};

/* Starts the process, on the cores that this one is on: half of rtt_us goes by before bytes are handed on, each way. It is a fork:
 * to be started before any thread and any client. It ends with its parent. */
void relay_start(struct relay *ret_relay, const struct address *targets, int count, int64_t rtt_us);
void relay_stop(struct relay *relay);

#endif
