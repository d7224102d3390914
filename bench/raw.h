/* raw.h - the cycles that redlatch is measured against: the same commands sent by hand, with nothing of a library around them.
 *
 * A cycle is SET key token NX PX ttl, then compare-and-delete by EVALSHA. The token is a constant, no clock is read and nothing is
 * retried, so these are limits and not rivals. What goes wrong ends the program.
 */
#ifndef BENCH_RAW_H
#define BENCH_RAW_H

/* One server, by hiredis' blocking redisCommandArgv: each command waits for its reply. `path` of a unix socket, or NULL: then
 * 127.0.0.1:port. The key is borrowed. */
typedef struct raw_blocking raw_blocking;
raw_blocking *raw_blocking_new(const char *path, int port, const char *key);
void raw_blocking_free(raw_blocking *raw);
void raw_blocking_cycle(raw_blocking *raw);

/* Several servers on unix sockets, majority-parallel: each command goes to all at once, the SET is over with a majority of OKs,
 * and the replies of stragglers and releases are counted off in later cycles. hiredis' formatter and reader on own sockets. */
enum { RAW_MAX_NODES = 9 };
typedef struct raw_majority raw_majority;
raw_majority *raw_majority_new(const char *const *paths, int count, const char *key);
void raw_majority_free(raw_majority *raw);
void raw_majority_cycle(raw_majority *raw);

/* One server at 127.0.0.1:port, `count` cycles outstanding at any time on one connection, over epoll: the requests of a turn are sent at
 * once. The keys are "rl:loop-" and a number of six digits. A run is `rounds` times as many cycles, to the last answer. */
typedef struct raw_loop raw_loop;
raw_loop *raw_loop_new(int port, int count);
void raw_loop_free(raw_loop *raw);
void raw_loop_run(raw_loop *raw, int rounds);

#endif
