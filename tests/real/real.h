/* real.h - what the tests against real servers share: P1, P2 and P3, clients of them, and questions about what a call left behind.
 *
 * The three servers live as long as the program; each test finds them running, empty, with their counters at 0. A test that changes
 * a server's configuration starts one of its own.
 *
 * The machine may be busy: where nothing is meant to time out, clients are `patient` and leases long. */
#ifndef RLT_REAL_H
#define RLT_REAL_H

#include "check.h"
#include "net.h"
#include "proxy.h"
#include "server.h"

#include "redlatch.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONG = 30000 /* ms: a lease, or a wait, that no test lives to see the end of */, SOON = 5000 /* ms */ };

/* ---- Servers ----------------------------------------------------------------------------------------------------------------- */

static ts_servers p;
#define P1 p.at[0]
#define P2 p.at[1]
#define P3 p.at[2]

static inline int start_servers(void **state)
{
    (void)state;
    ts_servers_start(&p, 3, NULL);
    return 0;
}

static inline int stop_servers(void **state)
{
    (void)state;
    ts_servers_stop(&p);
    return 0;
}

static inline void make_fresh(ts_server *server)
{
    if (ts_server_pid(server) == 0)
        ts_server_restart(server);
    ts_server_resume(server);
    ts_command(server, "FLUSHALL");
    ts_command(server, "CONFIG RESETSTAT");
}

static inline int real_setup(void **state)
{
    int rc = ts_setup_named(state);
    for (int i = 0; i < p.count; i++)
        make_fresh(p.at[i]);
    return rc;
}

#define REAL_TEST(fn)                                                                                                              \
    {                                                                                                                              \
#fn, (fn), real_setup, ts_teardown, (void *)(uintptr_t) #fn                                                                \
    }

/* The main of a program of such tests. */
#define REAL_RUN(name, tests)                                                                                                      \
    (ts_need_server(), ts_run_group((name), (tests), sizeof(tests) / sizeof((tests)[0]), start_servers, stop_servers))

/* Proxies in front of all three. */
struct net {
    ts_proxy *at[3];
    char urls[256];
};

static inline void net_start(struct net *net)
{
    for (int i = 0; i < 3; i++)
        net->at[i] = ts_proxy_to(p.at[i]);
    snprintf(net->urls, sizeof net->urls, "%s,%s,%s", ts_proxy_url(net->at[0]), ts_proxy_url(net->at[1]), ts_proxy_url(net->at[2]));
}

static inline void net_stop(struct net *net)
{
    for (int i = 0; i < 3; i++)
        ts_proxy_stop(net->at[i]);
}

/* ---- Clients ----------------------------------------------------------------------------------------------------------------- */

static inline rl_options options_with(int64_t node_timeout_ms, int64_t cleanup_timeout_ms)
{
    rl_options options;
    rl_options_init(&options);
    options.node_timeout_ms = node_timeout_ms;
    options.cleanup_timeout_ms = cleanup_timeout_ms;
    return options;
}

static inline rl_client *client_with(const char *urls, const rl_options *options)
{
    rl_client *client = NULL;
    size_t at = 0;
    int rc = rl_client_new(urls, options, &client, &at);
    ts_check(rc == RL_OK, "rl_client_new(%s): %s at %zu", urls, rl_strstatus(rc), at);
    return client;
}

/* One that gives every node the time it needs. (The end of a client waits for nodes that are down: hence the shorter clean-up.) */
static inline rl_client *patient(const char *urls)
{
    rl_options options = options_with(SOON, 300);
    return client_with(urls, &options);
}

/* One that has little patience: for tests in which nodes do not answer. */
static inline rl_client *hasty(const char *urls, int64_t node_timeout_ms)
{
    rl_options options = options_with(node_timeout_ms, node_timeout_ms);
    return client_with(urls, &options);
}

static inline rl_report *new_report(void)
{
    rl_report *report = NULL;
    ts_equal(rl_report_new(&report), RL_OK);
    return report;
}

static inline int take(rl_client *client, const char *name, int64_t ttl_ms, int64_t wait_ms, rl_report *report, rl_lock **ret_lock)
{
    rl_request request;
    rl_request_init(&request);
    request.name = name;
    request.name_len = strlen(name);
    request.ttl_ms = ttl_ms;
    request.wait_ms = wait_ms;
    return rl_acquire_with(client, &request, report, ret_lock);
}

/* A call that has to fail: *ret_lock must come back NULL. */
static inline int refused(rl_client *client, const char *name, int64_t ttl_ms, int64_t wait_ms, rl_report *report)
{
    rl_lock *lock = (rl_lock *)(uintptr_t)1;
    int rc = take(client, name, ttl_ms, wait_ms, report, &lock);
    ts_check((lock == NULL) == (rc != RL_OK), "a handle with %s", rl_strstatus(rc));
    if (lock)
        rl_lock_free(lock);
    return rc;
}

/* Takes a lock that is free: all that every node said is in the message if it cannot. */
static inline rl_lock *taken(rl_client *client, const char *name, int64_t ttl_ms)
{
    rl_lock *lock = NULL;
    rl_report *report = new_report();
    int rc = take(client, name, ttl_ms, 0, report, &lock);
    char text[1024] = "";
    for (size_t i = 0, length = 0; rc != RL_OK && i < rl_report_count(report) && length < sizeof text; i++) {
        rl_node_result result = {.size = sizeof result};
        ts_equal(rl_report_node(report, i, &result), RL_OK);
        length += (size_t)snprintf(text + length, sizeof text - length, "; node %zu: outcome %d, errno %d, \"%s\"", i,
                                   (int)result.outcome, (int)result.sys_errno, result.text);
    }
    rl_report_free(report);
    ts_check(rc == RL_OK, "rl_acquire(%s): %s%s", name, rl_strstatus(rc), text);
    return lock;
}

/* Opens the client's connections, and leaves no trace but in the counters, which are set to 0 again. */
static inline void warm_up(rl_client *client)
{
    rl_report *report = new_report();
    bool all = false;
    for (int64_t end = ts_mono_ms() + SOON; !all && ts_mono_ms() < end;) {
        all = rl_client_check(client, report) == RL_OK; /* a hasty client on a busy machine may need several */
        for (size_t i = 0; i < rl_report_count(report); i++) {
            rl_node_result result = {.size = sizeof result};
            ts_equal(rl_report_node(report, i, &result), RL_OK);
            all = all && result.outcome == RL_NODE_YES;
        }
    }
    ts_check(all, "not all nodes are fine");
    rl_report_free(report);
    for (int i = 0; i < p.count; i++)
        if (ts_server_pid(p.at[i]) != 0)
            ts_command(p.at[i], "CONFIG RESETSTAT");
}

/* ---- Reports ----------------------------------------------------------------------------------------------------------------- */

static inline rl_node_result said(const rl_report *report, size_t i)
{
    rl_node_result result = {.size = sizeof result};
    ts_equal(rl_report_node(report, i, &result), RL_OK);
    return result;
}

#define check_said(report, i, outcome, text) check_said_at(__FILE__, __LINE__, (report), (i), (outcome), (text))
static inline void check_said_at(const char *file, int line, const rl_report *report, size_t i, int outcome, const char *text)
{
    rl_node_result result = said(report, i);
    if (result.outcome != outcome || (text ? strstr(result.text, text) == NULL : result.text[0] != '\0'))
        ts_fail_at(file, line, "node %zu: outcome %d, errno %d, text \"%s\"; expected %d, \"%s\"", i, (int)result.outcome,
                   (int)result.sys_errno, result.text, outcome, text ? text : "");
}

/* ---- What is left behind ----------------------------------------------------------------------------------------------------- */

struct call_count {
    ts_server *server;
    const char *command;
    int64_t count;
};

static inline bool was_called(void *arg)
{
    const struct call_count *c = arg;
    return ts_calls(c->server, c->command) >= c->count;
}

/* The key as another holder would have it; px_ms 0 = for ever. The counters are set to 0 after that. */
static const char foreign[] = "somebody else's token";
static inline void hold(ts_server *server, const char *key, int64_t px_ms)
{
    ts_set_px(server, key, foreign, px_ms);
    ts_command(server, "CONFIG RESETSTAT");
}

/* Waits until the server has run so many of that command ("evalsha") since its counters were set to 0. */
static inline void await_calls(ts_server *server, const char *command, int64_t count)
{
    struct call_count c = {server, command, count};
    ts_check(ts_eventually(SOON, was_called, &c), "%s: %lld %s, expected %lld", ts_server_url(server),
             (long long)ts_calls(server, command), command, (long long)count);
}

static inline int64_t releases(ts_server *server)
{
    return ts_calls(server, "evalsha") + ts_calls(server, "eval");
}

static inline void check_gone(const char *key)
{
    for (int i = 0; i < p.count; i++)
        if (ts_server_pid(p.at[i]) != 0)
            ts_check(ts_wait_absent(p.at[i], key, SOON), "%s still holds %s", ts_server_url(p.at[i]), key);
}

/* ---- Time -------------------------------------------------------------------------------------------------------------------- */

/* What a busy machine may add to a bound. */
static inline int64_t slack(void)
{
    return 500 * (int64_t)ts_slowness();
}

#endif
