/* storm.c - many processes contend for a few locks on five servers, while servers and processes are stopped, killed, paused and cut off
 * at random. No two of them may ever claim the same lock at the same time, and fencing tokens rise.
 *
 * usage: storm [--seconds=50] [--seed=N] [--clients=6] [--least=100] [--wipe=0]
 *   --least   fewer claims than this by one of the two fronts are a failure too
 *
 *   --wipe    1: killed servers come back empty; then two may claim a lock, but tokens must rise all the same
 *
 * Every server keeps what it was told (appendfsync always), so that none forgets a lock. Exit: 0, or 1 with what was found. */
#include "client.h"

#include "../support/check.h"
#include "../support/net.h"
#include "../support/server.h"

#include <dirent.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SERVERS = 5, MAX_CLIENTS = 16 };

struct victim {                    /* a server or a client, and what is to become of it next */
    int64_t resume_at, restart_at; /* ts_mono_ms; 0: nothing */
};

struct storm {
    struct log *log;
    ts_servers servers;
    struct victim server[SERVERS], client[MAX_CLIENTS];
    pid_t pid[MAX_CLIENTS];
    int clients;
    bool wipe;   /* killed servers come back without their memory */
    int done[6]; /* how often each thing was done */
};

/* A server that is down loses what it has on its disk. */
static void wipe_server(const ts_server *server)
{
    char path[512];
    struct dirent *entry;
    snprintf(path, sizeof path, "%s/appendonlydir", ts_server_dir(server));
    DIR *dir = opendir(path);
    while (dir && (entry = readdir(dir)))
        unlinkat(dirfd(dir), entry->d_name, 0); /* "." and ".." stay */
    if (dir)
        closedir(dir);
}

/* ---- Clients ----------------------------------------------------------------------------------------------------------------- */

static void start_client(struct storm *storm, int i)
{
    pid_t parent = getpid();
    storm->client[i] = (struct victim){0};
    storm->pid[i] = fork();
    if (storm->pid[i] > 0)
        return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (storm->pid[i] < 0 || getppid() != parent)
        _exit(1);
    if (i % 2)
        run_event(storm->log, storm->servers.urls);
    else
        run_blocking(storm->log, storm->servers.urls);
    _exit(0);
}

/* False if a client ended in another way than it should have. */
static bool end_clients(struct storm *storm)
{
    bool ok = true;
    atomic_store(&storm->log->stop, true);
    for (int i = 0; i < storm->clients; i++)
        kill(storm->pid[i], SIGCONT);
    int64_t end = ts_mono_ms() + 20000;
    for (int i = 0; i < storm->clients; i++) {
        int status = 0;
        while (waitpid(storm->pid[i], &status, WNOHANG) == 0 && ts_mono_ms() < end)
            ts_sleep_ms(5);
        if (ts_mono_ms() >= end) {
            printf("FAIL: client %d does not end\n", i);
            kill(storm->pid[i], SIGKILL);
            waitpid(storm->pid[i], &status, 0);
            ok = false;
        } else if (status) {
            printf("FAIL: client %d ended with status %#x\n", i, (unsigned)status);
            ok = false;
        }
    }
    return ok;
}

/* ---- Weather ----------------------------------------------------------------------------------------------------------------- */

static int64_t soon(struct storm *storm, int64_t most_ms)
{
    return ts_mono_ms() + 1 + (int64_t)(log_random(storm->log) % (uint64_t)most_ms);
}

static bool calm(const struct victim *victim)
{
    return !victim->resume_at && !victim->restart_at;
}

/* A command to a server that may not answer. */
static void tell_server(struct storm *storm, int i, const char *command)
{
    redisReply *reply;
    ts_conn *conn = ts_conn_tcp(ts_server_port(storm->servers.at[i]));
    if (!conn)
        return;
    if (ts_conn_command(conn, command) && ts_conn_read(conn, 100, &reply) == TS_CONN_REPLY)
        freeReplyObject(reply);
    ts_conn_close(conn);
}

static void harm_server(struct storm *storm, int kind)
{
    int i = (int)(log_random(storm->log) % SERVERS);
    struct victim *victim = &storm->server[i];
    char pause[48];
    if (!calm(victim))
        return;
    storm->done[kind]++;
    switch (kind) {
    case 0:
        ts_server_pause(storm->servers.at[i]);
        victim->resume_at = soon(storm, 900);
        break;
    case 1:
        ts_server_kill(storm->servers.at[i]);
        if (storm->wipe)
            wipe_server(storm->servers.at[i]);
        victim->restart_at = soon(storm, 300);
        break;
    case 2:
        tell_server(storm, i, "CLIENT KILL TYPE normal SKIPME yes");
        break;
    case 3:
        snprintf(pause, sizeof pause, "CLIENT PAUSE %d WRITE", (int)(log_random(storm->log) % 400));
        tell_server(storm, i, pause);
        break;
    }
}

static void harm_client(struct storm *storm, int kind)
{
    int i = (int)(log_random(storm->log) % (uint64_t)storm->clients);
    struct victim *victim = &storm->client[i];
    if (!calm(victim))
        return;
    storm->done[kind]++;
    if (kind == 4) {
        kill(storm->pid[i], SIGSTOP);
        victim->resume_at = soon(storm, 1500);
    } else {
        kill(storm->pid[i], SIGKILL);
        waitpid(storm->pid[i], NULL, 0);
        start_client(storm, i);
    }
}

static void set_right(struct storm *storm, bool all)
{
    int64_t now = all ? INT64_MAX : ts_mono_ms();
    for (int i = 0; i < SERVERS; i++) {
        struct victim *victim = &storm->server[i];
        if (victim->resume_at && victim->resume_at <= now)
            ts_server_resume(storm->servers.at[i]);
        else if (victim->restart_at && victim->restart_at <= now)
            ts_server_launch(storm->servers.at[i]);
        else
            continue;
        *victim = (struct victim){0};
    }
    for (int i = 0; i < storm->clients; i++) {
        if (!storm->client[i].resume_at || storm->client[i].resume_at > now)
            continue;
        kill(storm->pid[i], SIGCONT);
        storm->client[i].resume_at = 0;
    }
}

/* Did a client end by itself? */
static bool all_alive(struct storm *storm)
{
    for (int i = 0; i < storm->clients; i++) {
        int status;
        if (waitpid(storm->pid[i], &status, WNOHANG) == 0)
            continue;
        printf("FAIL: client %d (%s) died, status %#x\n", i, i % 2 ? "event" : "blocking", (unsigned)status);
        return false;
    }
    return true;
}

static bool blow(struct storm *storm, int64_t seconds)
{
    static const int kinds[] = {0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 4, 5};
    int64_t end = ts_mono_ms() + seconds * 1000, next = 0;
    while (ts_mono_ms() < end) {
        ts_sleep_ms(2);
        set_right(storm, false);
        if (!all_alive(storm))
            return false;
        if (ts_mono_ms() < next)
            continue;
        int kind = kinds[log_random(storm->log) % (sizeof kinds / sizeof kinds[0])];
        if (kind < 4)
            harm_server(storm, kind);
        else
            harm_client(storm, kind);
        next = soon(storm, 250);
    }
    return true;
}

/* All that clients left is gone once the longest lease is over; some of them were killed. (The counters of the fence, whose keys begin
 * with '{', stay for a day.) */
static bool all_empty(struct storm *storm)
{
    int64_t keys = 0;
    ts_sleep_ms(800);
    for (int i = 0; i < SERVERS; i++) {
        ts_server_await(storm->servers.at[i]);
        keys += (int64_t)ts_reply(storm->servers.at[i], "KEYS rl:*")->elements;
    }
    if (keys)
        printf("FAIL: %" PRId64 " keys are left\n", keys);
    return keys == 0;
}

static bool run(struct storm *storm, int64_t seconds, uint64_t least)
{
    static const char *const args[] = {"--appendonly", "yes", "--appendfsync", "always", NULL};
    ts_servers_start(&storm->servers, SERVERS, args);
    for (int i = 0; i < storm->clients; i++)
        start_client(storm, i);
    bool ok = blow(storm, seconds);
    set_right(storm, true);
    ok = end_clients(storm) && ok;
    ok = all_empty(storm) && ok;
    printf("servers: %d stopped, %d killed, %d cut off their clients, %d paused writing; clients: %d stopped, %d killed\n",
           storm->done[0], storm->done[1], storm->done[2], storm->done[3], storm->done[4], storm->done[5]);
    ok = log_check(storm->log, least, storm->wipe) && ok;
    ts_servers_stop(&storm->servers);
    return ok;
}

static bool number(const char *argument, const char *name, int64_t *ret)
{
    size_t length = strlen(name);
    char *end;
    if (strncmp(argument, name, length) != 0)
        return false;
    *ret = strtoll(argument + length, &end, 10);
    return end != argument + length && !*end && *ret >= 0;
}

int main(int argc, char **argv)
{
    static struct storm storm;
    int64_t seconds = 50, seed = ts_now_ms(), clients = 6, least = 100, wipe = 0;
    for (int i = 1; i < argc; i++) {
        if (number(argv[i], "--seconds=", &seconds) || number(argv[i], "--seed=", &seed) ||
            number(argv[i], "--clients=", &clients) || number(argv[i], "--least=", &least) || number(argv[i], "--wipe=", &wipe))
            continue;
        fprintf(stderr, "usage: %s [--seconds=50] [--seed=N] [--clients=6] [--least=100] [--wipe=0]\n", argv[0]);
        return 2;
    }
    ts_need_server();
    storm.log = log_new();
    storm.wipe = wipe != 0;
    atomic_store(&storm.log->seed, (uint64_t)seed);
    storm.clients = clients < 1 ? 1 : clients > MAX_CLIENTS ? MAX_CLIENTS : (int)clients;
    printf("seed %" PRId64 ", %" PRId64 " s, %d clients\n", seed, seconds, storm.clients);
    fflush(stdout);
    bool ok = run(&storm, seconds, (uint64_t)least);
    printf("%s\n", !ok ? "FAILED" : storm.wipe ? "tokens rise, whatever is forgotten" : "no two holders at any time");
    return !ok;
}
