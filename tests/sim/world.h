/* world.h - a world in one thread: true time, chance, servers, a network, and clients that run the real library.
 *
 * The library's port and sockets are replaced (sim_port.c, sim_sock.c); everything above them is what users link. A world is made
 * from a seed and nothing else: the same seed gives the same world, with the same transcript. */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MAX_SERVERS = 5, MAX_CLIENTS = 4, MAX_CONNS = 4096, FIRST_FD = 1000 };

typedef int64_t true_time; /* nanoseconds */
#define MS INT64_C(1000000)

/* ---- Chance, time, transcript ------------------------------------------------------------------------------------------------- */

uint64_t chance_bits(void);
int64_t between(int64_t low, int64_t high); /* both included */
bool one_in(int64_t n);

extern true_time world_now;
/* Runs callback(arg) at that time. */
void world_at(true_time when, void (*callback)(void *arg), void *arg);
/* Until nothing is left to happen before `end`. */
void world_run(true_time end);
void world_begin(uint64_t seed);
void world_end(void);

/* Printed only if the transcript is wanted. */
extern bool world_trace;
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The invariant does not hold: the seed has failed. */
extern bool world_failed;
extern char world_failure[256];
void violated(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- What this world is like (drawn from the seed) ------------------------------------------------------------------------------ */

struct nature {
    int servers, clients;
    int quorum;
    bool forgetful;     /* restarted servers come back empty: two holders are then possible, ghosts are not */
    int forgetters;     /* so do the first so many in any world: no more than the quorum allows for */
    bool long_leases;   /* no ghost can hide behind its expiry */
    int fence;          /* enum rl_fence */
    bool storm;         /* all want the same lock */
    bool renewing;      /* most locks are renewed, and held over several leases */
    int names;          /* of locks */
    int safe;           /* nothing ever happens to the first so many servers, nor to clients: a quorum, or none */
    bool hostile;       /* servers answer what nobody asked: nothing they say is worth anything, but everything ends */
    int64_t delay_most; /* of a segment */
    bool may_kill;      /* CLIENT KILL is allowed */
    true_time chaos_ends;
};
extern struct nature nature;

/* ---- Servers (sim_server.c) -------------------------------------------------------------------------------------------------------- */

void servers_begin(void);
void servers_end(void);
void server_receive(int conn, const char *bytes, size_t size); /* bytes have reached the server's socket */
void server_ended(int conn);                                   /* ... the client's end of stream */
void server_lost(int conn);                                    /* the connection is no more */
bool server_is_up(int server);
void server_pause(int server, int64_t length);
void server_restart(int server, int64_t down);
void server_flush_scripts(int server);
void server_evict_counters(int server); /* of fencing tokens */
void server_wipe(int server);           /* of everything, if it is one that forgets */
/* The value of a key at that true time, or NULL. */
const char *server_value(int server, const char *key, true_time when);
/* Was the last word that it said about this token, on a connection that still is, "not yours"? */
bool server_has_denied(int server, const char *token);
void servers_each_key(true_time when, void (*callback)(int server, const char *key, const char *value));

/* ---- Network (sim_sock.c) ------------------------------------------------------------------------------------------------------------ */

void net_begin(void);
void net_end(void);
int net_conn_server(int conn);
void net_reply(int conn, const char *bytes, size_t size);
void net_server_closes(int conn);
void net_server_died(int server);
void net_reset_some(void);
void net_stall(int server, int64_t length);
void net_trickle(int server, int64_t length); /* bytes come one by one, or nearly */
bool net_is_whole(int conn);                  /* open on both ends, and all that the server said has been read */
bool net_readable(int fd);
bool net_connect_ended(int fd);
const char *net_address(int conn);

/* ---- Clients (sim_client.c) ----------------------------------------------------------------------------------------------------------- */

void clients_begin(void);
void clients_quiet(void); /* no new locks; those held are kept, so that ghosts stand out */
void clients_check(void); /* after the quiet time: no key without an owner */
void clients_end(void);
void client_poke(int client);                     /* something has come for it */
void client_pause(int client, int64_t length);    /* its process stands still */
int client_current(void);                         /* whose code runs now */
true_time client_present(void);                   /* the true time at which it runs */
void client_stumble(int64_t length);              /* the running code is held up for so long */
void client_saw(int64_t clock);                   /* the library has read its clock */
void client_heard(void);                          /* ... and bytes of a server */
void client_alarm(int64_t at);                    /* by the running client's clock */
int64_t client_clock(int client, true_time when); /* its B() at that true time */

#endif
