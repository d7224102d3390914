/* sim.c - many small worlds, each from a seed, in search of one in which the library breaks its word.
 *
 * usage: sim [-v] [-s SECONDS] FIRST [COUNT]
 * Runs COUNT seeds from FIRST on (1 by default). Exit 1 at the first that fails; -v SEED prints its transcript. -s: as many as fit. */
#include "world.h"

#include "redlatch.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

extern int64_t sim_allocated;

/* Off: a release puts a lost counter back to its own token, and then S8.5 holds only with its condition for those rolled back. */
static const bool counters_may_be_lost = true;

static void trouble(void *arg)
{
    int server;

    (void)arg;
    if (world_now >= nature.chaos_ends || nature.safe == nature.servers)
        return;
    server = (int)between(nature.safe + 1, nature.servers);
    if (counters_may_be_lost && nature.fence != RL_FENCE_NONE && one_in(3))
        server_evict_counters(server);
    if (nature.renewing && one_in(8))
        server_wipe(server);
    switch (between(0, 9)) {
    case 0:
    case 1:
        server_pause(server, between(1, 600) * MS);
        break;
    case 2:
        server_restart(server, between(0, 400) * MS);
        break;
    case 3:
    case 4:
        net_reset_some();
        break;
    case 5:
        net_stall(server, between(1, 800) * MS);
        break;
    case 6:
        net_trickle(server, between(1, 200) * MS);
        break;
    case 7:
        server_flush_scripts(server);
        break;
    default:
        if (nature.safe)
            break;
        client_pause((int)between(0, nature.clients - 1), between(1, 500) * MS);
        break;
    }
    world_at(world_now + between(1, nature.renewing && nature.long_leases ? 1600 : 400) * MS, trouble, NULL);
}

/* Chaos, then quiet: time enough for all that is owed, but not for a long lease to end. */
static bool run(uint64_t seed)
{
    int64_t before = sim_allocated;

    world_begin(seed);
    net_begin();
    servers_begin();
    clients_begin();
    world_at(world_now + between(1, 300) * MS, trouble, NULL);
    world_run(nature.chaos_ends);
    clients_quiet();
    world_run(nature.chaos_ends + (nature.renewing ? 25000 : 40000) * MS);
    if (!world_failed)
        clients_check();
    clients_end();
    net_end();
    servers_end();
    world_end();
    if (!world_failed && sim_allocated != before)
        violated("%lld allocations were not freed", (long long)(sim_allocated - before));
    return !world_failed;
}

static char last_words[128];

/* An assertion of the library, or worse. */
static void crashed(int number)
{
    ssize_t ignored = write(STDOUT_FILENO, last_words, strlen(last_words));

    (void)ignored;
    signal(number, SIG_DFL);
    raise(number);
}

static bool run_or_tell(uint64_t seed)
{
    snprintf(last_words, sizeof last_words, "seed %llu failed: it crashed\nreplay: sim -v %llu\n", (unsigned long long)seed,
             (unsigned long long)seed);
    if (run(seed))
        return true;
    printf("seed %llu failed: %s\nreplay: sim -v %llu\n", (unsigned long long)seed, world_failure, (unsigned long long)seed);
    return false;
}

int main(int argc, char **argv)
{
    long seconds = 0;
    uint64_t first = 1, count = 1, done = 0;
    time_t end;
    int at = 1;

    for (; at < argc && argv[at][0] == '-'; at++) {
        if (strcmp(argv[at], "-v") == 0)
            world_trace = true;
        else if (strcmp(argv[at], "-s") == 0 && at + 1 < argc)
            seconds = atol(argv[++at]);
    }
    if (at < argc)
        first = strtoull(argv[at++], NULL, 10);
    if (at < argc)
        count = strtoull(argv[at], NULL, 10);
    setvbuf(stdout, NULL, _IOLBF, 0);
    signal(SIGABRT, crashed);
    signal(SIGSEGV, crashed);
    end = time(NULL) + seconds;
    for (; seconds ? time(NULL) < end : done < count; done++) {
        if (!run_or_tell(first + done))
            return 1;
    }
    printf("%llu seeds, none failed\n", (unsigned long long)done);
    return 0;
}
