/* nodes.h - the servers of a scenario: those given by --urls, or redis-servers of its own that are gone after it. */
#ifndef BENCH_NODES_H
#define BENCH_NODES_H

#include "common.h"

#include "../tests/support/server.h"

enum { MAX_NODES = 9, URLS_ROOM = MAX_NODES * 128 };
enum transport { OVER_TCP, OVER_UNIX };

struct nodes {
    int count;
    struct address at[MAX_NODES];
    char urls[URLS_ROOM];             /* joined by commas */
    ts_server *own[MAX_NODES];        /* NULL for one that was given */
    redisContext *control[MAX_NODES]; /* a connection for questions */
    char *given;                      /* the memory of the addresses, where they were given */
};

/* given: NULL, or URLs separated by commas: redis://host:port or unix:///path, nothing else in them. Of those of that
 * transport the first is used for a single one, else the last `count`. false: there are fewer of them. Own servers run on the cores that this process is on. */
bool nodes_open(struct nodes *nodes, int count, enum transport transport, const char *given);
void nodes_close(struct nodes *nodes);

/* Adds the URL of an address to a list. */
void urls_add(char urls[URLS_ROOM], const struct address *address);

/* How often the servers ran a command, from INFO commandstats, all together: "evalsha". */
int64_t nodes_calls(struct nodes *nodes, const char *command);
/* A number from INFO of one server. */
int64_t nodes_info(struct nodes *nodes, int i, const char *field);
/* Connections of the library's default name to all servers. */
int nodes_connections(struct nodes *nodes);

/* A hiredis connection, or the end of the program. */
redisContext *connect_to(const struct address *address);

#endif
