/* client.h - the processes that contend in the storm. They return when log->stop is set. */
#ifndef STORM_CLIENT_H
#define STORM_CLIENT_H

#include "log.h"

/* What a holder does with a lock, and for how long: drawn anew for each. */
enum plan { PLAN_RELEASE, PLAN_EXTEND, PLAN_FORGET, PLAN_OUTLIVE };
struct turn {
    int name;
    char text[16];
    int64_t ttl_ms, wait_ms, hold_ms;
    enum plan plan;
};
void draw_turn(struct log *log, struct turn *turn);
rl_options storm_options(void);

void run_blocking(struct log *log, const char *urls); /* one client, two threads */
void run_event(struct log *log, const char *urls);    /* one loop, many locks at once */

#endif
