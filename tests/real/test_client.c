/* test_client.c - clients of real servers: URLs, credentials, what rl_client_check finds out, options, names, and reports.
 */
#include "real.h"
#include "resolver.h"

#include "hostile.h"
#include "sha1.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

/* Everything a lock can do, once. */
static void locks_work(const char *urls)
{
    rl_client *client = patient(urls);
    rl_report *report = new_report();
    int rc = rl_client_check(client, report);
    ts_check(rc == RL_OK, "%s: %s, \"%s\"", urls, rl_strstatus(rc), said(report, 0).text);
    rl_lock *lock = taken(client, "url", LONG / 2);
    ts_equal(rl_extend(lock, LONG, NULL), RL_OK);
    ts_equal(rl_release(lock), RL_OK);
    rl_client_free(client);
    rl_report_free(report);
}

/* ---- URLs -------------------------------------------------------------------------------------------------------------------- */

static void a_unix_socket(void **state)
{
    (void)state;
    ts_server *server = ts_server_start_with(&(ts_server_options){.unix_socket = true});
    char url[256];
    locks_work(ts_server_url(server));
    snprintf(url, sizeof url, "%s?db=5", ts_server_url(server));
    locks_work(url);
}

static void a_unix_socket_without_a_server(void **state)
{
    (void)state;
    rl_client *client = patient("unix:///nowhere/to/be/found");
    rl_report *report = new_report();
    ts_equal(refused(client, "url", LONG, 0, report), RL_E_NO_QUORUM);
    check_said(report, 0, RL_NODE_UNREACHABLE, NULL);
    ts_equal(said(report, 0).sys_errno, ENOENT);
    rl_client_free(client);
    rl_report_free(report);
}

static void a_database(void **state)
{
    (void)state;
    char url[128];
    snprintf(url, sizeof url, "%s/3", ts_server_url(P1));
    locks_work(url);
    rl_client *client = patient(url);
    rl_lock *lock = taken(client, "url", LONG);
    ts_check(!ts_exists(P1, "rl:url"), "it is in database 0");
    ts_command(P1, "SELECT 3");
    bool there = ts_holds(P1, "rl:url", rl_lock_token(lock));
    ts_command(P1, "SELECT 0");
    ts_check(there, "it is not in database 3");
    ts_equal(rl_release(lock), RL_OK);
    rl_client_free(client);
}

static void no_such_database(void **state)
{
    (void)state;
    char url[128];
    snprintf(url, sizeof url, "%s/99", ts_server_url(P1));
    rl_client *client = patient(url);
    rl_report *report = new_report();
    ts_equal(refused(client, "url", LONG, 0, report), RL_E_NO_QUORUM);
    check_said(report, 0, RL_NODE_ERROR, "DB index is out of range");
    ts_equal(rl_client_check(client, report), RL_E_NO_QUORUM);
    rl_client_free(client);
    rl_report_free(report);
}

#define SECRET "p@ss:w/rd,%"
static const char secret_in_url[] = "p%40ss%3aw%2Frd%2c%25";

static void a_password(void **state)
{
    (void)state;
    static const char *const args[] = {"--requirepass", SECRET, NULL};
    ts_server *server = ts_server_start(args);
    char url[128];
    snprintf(url, sizeof url, "redis://:%s@127.0.0.1:%d/1", secret_in_url, ts_server_port(server));
    locks_work(url);
}

static void a_user_and_a_password(void **state)
{
    (void)state;
    char url[128];
    ts_command(P1, "ACL SETUSER us:er on >%s ~* +@all", SECRET);
    snprintf(url, sizeof url, "redis://us%%3Aer:%s@127.0.0.1:%d", secret_in_url, ts_server_port(P1));
    locks_work(url);
    ts_command(P1, "ACL DELUSER us:er");
}

static bool has_ipv6(void)
{
    struct sockaddr_in6 loopback = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool has = fd >= 0 && bind(fd, (struct sockaddr *)&loopback, sizeof loopback) == 0;
    if (fd >= 0)
        close(fd);
    return has;
}

static void an_ipv6_address(void **state)
{
    (void)state;
    if (!has_ipv6())
        return;
    static const char *const args[] = {"--bind", "127.0.0.1", "::1", NULL};
    ts_server *server = ts_server_start(args);
    char url[128];
    snprintf(url, sizeof url, "redis://[::1]:%d", ts_server_port(server));
    locks_work(url);
}

static void a_host_name(void **state)
{
    (void)state;
    char url[128];
    snprintf(url, sizeof url, "redis://localhost:%d", ts_server_port(P1));
    locks_work(url);
}

static void is_refused(const char *urls, int status, size_t at)
{
    rl_client *client = (rl_client *)(uintptr_t)1;
    size_t error_at = 0;
    int rc = rl_client_new(urls, NULL, &client, &error_at);
    ts_check(rc == status, "%s: %s", urls, rl_strstatus(rc));
    ts_check(error_at == at, "%s: fault at %zu, expected %zu", urls, error_at, at);
    ts_check(client == (rl_client *)(uintptr_t)1, "*ret_client was written");
    ts_equal(rl_client_new(urls, NULL, &client, NULL), status);
}

static void urls_that_are_refused(void **state)
{
    (void)state;
    rl_client *client = NULL;
    is_refused("redis://one,redis://two,redis://one:6379", RL_E_INVALID, 24);
    is_refused("redis://127.0.0.1,redis://127.0.0.1:6379/1", RL_E_INVALID, 18);
    is_refused("redis://one,rediss://two", RL_E_UNSUPPORTED, 12);
    is_refused("redis://one,http://two", RL_E_INVALID, 12);
    is_refused("redis://one,", RL_E_INVALID, 12);
    is_refused("", RL_E_INVALID, 0);
    is_refused("redis://one:0", RL_E_INVALID, 12);
    is_refused("redis://one:65536", RL_E_INVALID, 12);
    is_refused("redis://one/x", RL_E_INVALID, 12);
    is_refused("redis://:secret%4@one", RL_E_INVALID, 15);
    is_refused("unix://relative", RL_E_INVALID, 7);
    ts_equal(rl_client_new(NULL, NULL, &client, NULL), RL_E_INVALID);
    ts_equal(rl_client_new("redis://one", NULL, NULL, NULL), RL_E_INVALID);
    rl_client_free(NULL);
}

/* ---- Credentials ------------------------------------------------------------------------------------------------------------- */

static void is_denied(const char *url, const char *text)
{
    rl_client *client = patient(url);
    rl_report *report = new_report();
    ts_equal(refused(client, "url", LONG, RL_FOREVER, report), RL_E_AUTH);
    check_said(report, 0, RL_NODE_ERROR, text);
    ts_equal(rl_client_check(client, report), RL_E_AUTH);
    check_said(report, 0, RL_NODE_ERROR, text);
    ts_check(!strstr(said(report, 0).node, "secret") && !strstr(said(report, 0).text, "secret"), "the password is shown");
    rl_client_free(client);
    rl_report_free(report);
}

/* S9.2 */
static void wrong_passwords(void **state)
{
    (void)state;
    static const char *const args[] = {"--requirepass", "other", NULL};
    ts_server *server = ts_server_start(args);
    char url[128];
    snprintf(url, sizeof url, "redis://:secret@127.0.0.1:%d", ts_server_port(server));
    is_denied(url, "WRONGPASS");
    snprintf(url, sizeof url, "redis://nobody:secret@127.0.0.1:%d", ts_server_port(server));
    is_denied(url, "WRONGPASS");
    is_denied(ts_server_url(server), "NOAUTH");
    snprintf(url, sizeof url, "redis://:secret@127.0.0.1:%d", ts_server_port(P1));
    is_denied(url, "without any password configured");
}

/* One of three: locks work, and rl_client_check tells. */
static void a_wrong_password_for_one_of_three(void **state)
{
    (void)state;
    char urls[256];
    snprintf(urls, sizeof urls, "%s,redis://nobody:secret@127.0.0.1:%d,%s", ts_server_url(P1), ts_server_port(P2),
             ts_server_url(P3));
    rl_client *client = patient(urls);
    rl_report *report = new_report();
    ts_equal(rl_client_check(client, report), RL_E_AUTH);
    check_said(report, 0, RL_NODE_YES, NULL);
    check_said(report, 1, RL_NODE_ERROR, "WRONGPASS");
    check_said(report, 2, RL_NODE_YES, NULL);
    rl_lock *lock = taken(client, "url", LONG);
    ts_equal(rl_extend(lock, LONG, NULL), RL_OK);
    ts_equal(rl_release(lock), RL_OK);
    rl_client_free(client);
    rl_report_free(report);
}

/* ---- The least a user must be allowed to do ---------------------------------------------------------------------------------- */

/* What the library runs, on keys that begin with the prefix. */
static const char *const needed[] = {"set", "get", "del", "pttl", "pexpire", "evalsha", "eval"};
/* What it can do without. */
static const char *const useful[] = {"script|load", "client|setname", "client|info", "client|kill", "info"};
enum { NEEDED = sizeof needed / sizeof *needed, USEFUL = sizeof useful / sizeof *useful };

static void make_user(ts_server *server, const char *without)
{
    char rule[512];
    int length = snprintf(rule, sizeof rule, "ACL SETUSER least reset on >pw ~rl:*");
    for (int i = 0; i < NEEDED + USEFUL; i++) {
        const char *command = i < NEEDED ? needed[i] : useful[i - NEEDED];
        if (strcmp(command, without) != 0)
            length += snprintf(rule + length, sizeof rule - (size_t)length, " +%s", command);
    }
    const char *result = ts_command(server, rule);
    ts_check(strcmp(result, "OK") == 0, "%s: %s", rule, result);
}

static rl_client *least(int port)
{
    char url[128];
    snprintf(url, sizeof url, "redis://least:pw@127.0.0.1:%d", port);
    return patient(url);
}

/* All that the library ever sends: a lock's life, the fall-back to EVAL, another's key, and the end of a lost connection. */
static void use_everything(int kills)
{
    ts_proxy *proxy = ts_proxy_to(P1);
    rl_client *client = least(ts_proxy_port(proxy));
    ts_equal(rl_client_check(client, NULL), RL_OK);
    for (int flush = 0; flush < 2; flush++) {
        rl_lock *lock = taken(client, "least", 1000);
        if (flush)
            ts_command(P1, "SCRIPT FLUSH");
        ts_equal(rl_extend(lock, LONG, NULL), RL_OK);
        ts_equal(refused(client, "least", LONG, 30, NULL), RL_BUSY);
        ts_equal(rl_release(lock), RL_OK);
    }
    ts_proxy_fault(proxy, "SET", 0, TS_RESET_UNANSWERED, 0);
    rl_lock *lock = taken(client, "least", LONG);
    ts_equal(ts_proxy_requests(proxy, "CLIENT KILL"), kills);
    ts_equal(rl_release(lock), RL_OK);
    rl_client_free(client);
    ts_proxy_stop(proxy);
}

static void the_least_rights(void **state)
{
    (void)state;
    make_user(P1, "");
    ts_command(P1, "ACL LOG RESET");
    use_everything(1);
    const char *log = ts_command(P1, "ACL LOG");
    ts_check(log[0] == '\0', "denied: %s", log);
    ts_equal(ts_dbsize(P1), 0);
    ts_command(P1, "ACL DELUSER least");
}

/* Each of the needed ones is missed before the first lock. */
static void one_right_too_few(void **state)
{
    (void)state;
    for (int i = 0; i < NEEDED; i++) {
        make_user(P1, needed[i]);
        for (int round = 0; round < 10; round++) {
            rl_client *client = least(ts_server_port(P1));
            rl_report *report = new_report();
            int rc = rl_client_check(client, report);
            ts_check(rc == RL_E_AUTH, "without %s: %s", needed[i], rl_strstatus(rc));
            ts_equal(said(report, 0).outcome, RL_NODE_ERROR);
            rl_client_free(client);
            rl_report_free(report);
            ts_command(P1, "FLUSHALL");
        }
    }
    ts_command(P1, "ACL DELUSER least");
}

/* The others can be missed. */
static void without_what_is_only_useful(void **state)
{
    (void)state;
    for (int i = 0; i < USEFUL; i++) {
        make_user(P1, useful[i]);
        ts_command(P1, "SCRIPT FLUSH");
        use_everything(strcmp(useful[i], "client|info") != 0); /* without it the connection's id is not known */
    }
    ts_command(P1, "ACL DELUSER least");
}

/* With a fence the library needs these as well, and the pattern ~{rl:* for the counters. */
static const char *const fenced[] = {"exists", "time"};

static void make_fence_users(const char *without)
{
    for (int i = 0; i < 3; i++) {
        make_user(p.at[i], "");
        for (int j = 0; j < 2; j++)
            if (strcmp(fenced[j], without) != 0)
                ts_command(p.at[i], "ACL SETUSER least +%s", fenced[j]);
        if (strcmp("~{rl:*", without) != 0)
            ts_command(p.at[i], "ACL SETUSER least ~{rl:*");
        ts_command(p.at[i], "ACL LOG RESET");
    }
}

static rl_client *least_of(int nodes, uint32_t fence)
{
    char urls[256] = "";
    size_t length = 0;
    for (int i = 0; i < nodes; i++)
        length += (size_t)snprintf(urls + length, sizeof urls - length, "%sredis://least:pw@127.0.0.1:%d", i ? "," : "",
                                   ts_server_port(p.at[i]));
    rl_options options = options_with(SOON, 300);
    options.fence = fence;
    return client_with(urls, &options);
}

/* Fenced locks: taken, confirmed on nodes that had fallen behind, topped up, and released. */
static void use_fences(int nodes, uint32_t fence)
{
    rl_client *client = least_of(nodes, fence);
    ts_equal(rl_client_check(client, NULL), RL_OK);
    int64_t last = 0;
    for (int round = 0; round < 3; round++) {
        if (round > 0) {
            ts_del(P1, "{rl:least}:fence");
            ts_command(P1, "SCRIPT FLUSH");
        }
        rl_lock *lock = taken(client, "least", LONG / 2);
        ts_check(rl_lock_fence(lock) > last, "the token does not rise");
        last = rl_lock_fence(lock);
        if (nodes > 1) {
            for (int64_t end = ts_mono_ms() + SOON; ts_servers_holding(&p, "rl:least") < 3 && ts_mono_ms() < end;)
                ts_equal(rl_client_check(client, NULL), RL_OK); /* for the third grant to come, and be heard of */
            ts_equal(rl_client_check(client, NULL), RL_OK);
            ts_del(p.at[round], "rl:least");
        }
        ts_equal(rl_extend(lock, LONG, NULL), RL_OK);
        ts_equal(rl_release(lock), RL_OK);
    }
    rl_client_free(client);
}

static void the_least_rights_with_a_fence(void **state)
{
    (void)state;
    make_fence_users("");
    for (uint32_t fence = RL_FENCE_QUORUM; fence <= RL_FENCE_NODE; fence++) {
        use_fences(1, fence);
        use_fences(3, fence);
    }
    for (int i = 0; i < 3; i++) {
        const char *log = ts_command(p.at[i], "ACL LOG");
        ts_check(log[0] == '\0', "denied: %s", log);
        ts_command(p.at[i], "ACL DELUSER least");
    }
}

static void one_right_too_few_for_a_fence(void **state)
{
    (void)state;
    static const char *const without[] = {"exists", "time", "~{rl:*"};
    for (int i = 0; i < 3; i++) {
        make_fence_users(without[i]);
        for (uint32_t fence = RL_FENCE_QUORUM; fence <= RL_FENCE_NODE; fence++)
            for (int nodes = 1; nodes <= 3; nodes += 2) {
                rl_client *client = least_of(nodes, fence);
                int rc = rl_client_check(client, NULL);
                ts_check(rc == RL_E_AUTH, "%d nodes, fence %u without %s: %s", nodes, fence, without[i], rl_strstatus(rc));
                rl_client_free(client);
            }
    }
    for (int i = 0; i < 3; i++)
        ts_command(p.at[i], "ACL DELUSER least");
}

/* The prefix is the pattern; rl_client_check keeps to it. */
static void keys_outside_of_the_pattern(void **state)
{
    (void)state;
    make_user(P1, "");
    ts_command(P1, "ACL SETUSER least resetkeys ~rl:redlatch-check:*");
    rl_client *client = least(ts_server_port(P1));
    rl_report *report = new_report();
    ts_equal(rl_client_check(client, report), RL_OK);
    ts_equal(refused(client, "least", LONG, 0, report), RL_E_AUTH);
    check_said(report, 0, RL_NODE_ERROR, "NOPERM");
    ts_command(P1, "ACL DELUSER least");
    rl_client_free(client);
    rl_report_free(report);
}

/* ---- rl_client_check --------------------------------------------------------------------------------------------------------- */

static void a_check_leaves_nothing_behind(void **state)
{
    (void)state;
    rl_client *client = patient(p.urls);
    rl_report *report = new_report();
    for (int i = 0; i < 5; i++) {
        ts_equal(rl_client_check(client, report), RL_OK);
        for (size_t node = 0; node < 3; node++)
            check_said(report, node, RL_NODE_YES, NULL);
        for (int node = 0; node < 3; node++)
            ts_equal(ts_dbsize(p.at[node]), 0);
    }
    ts_equal(rl_client_check(NULL, report), RL_E_INVALID);
    rl_client_free(client);
    rl_report_free(report);
}

static void a_check_with_nodes_down(void **state)
{
    (void)state;
    rl_client *client = patient(p.urls);
    rl_report *report = new_report();
    ts_server_kill(P3);
    ts_equal(rl_client_check(client, report), RL_OK);
    check_said(report, 0, RL_NODE_YES, NULL);
    check_said(report, 1, RL_NODE_YES, NULL);
    check_said(report, 2, RL_NODE_UNREACHABLE, NULL);
    ts_equal(said(report, 2).sys_errno, ECONNREFUSED);
    ts_server_kill(P2);
    ts_equal(rl_client_check(client, report), RL_E_NO_QUORUM);
    ts_equal(said(report, 0).outcome, RL_NODE_YES);
    ts_check(said(report, 1).outcome != RL_NODE_YES && said(report, 2).outcome != RL_NODE_YES, "a node that is down is fine");
    rl_client_free(client);
    rl_report_free(report);
}

/* A14: servers that are back are fine. */
static void a_check_after_a_restart(void **state)
{
    (void)state;
    rl_client *client = patient(p.urls);
    rl_report *report = new_report();
    ts_equal(rl_client_check(client, NULL), RL_OK);
    for (int i = 0; i < 3; i++)
        ts_server_kill(p.at[i]);
    for (int i = 0; i < 3; i++)
        ts_server_restart(p.at[i]);
    ts_equal(rl_client_check(client, report), RL_OK);
    for (size_t i = 0; i < 3; i++)
        check_said(report, i, RL_NODE_YES, NULL);
    rl_client_free(client);
    rl_report_free(report);
}

static void a_check_with_a_stopped_node(void **state)
{
    (void)state;
    rl_client *client = hasty(p.urls, 200);
    rl_report *report = new_report();
    ts_server_pause(P2);
    int64_t start = ts_mono_ms();
    ts_equal(rl_client_check(client, report), RL_OK);
    ts_between(ts_mono_ms() - start, 195, 4 * 200 + slack());
    check_said(report, 1, RL_NODE_UNREACHABLE, NULL);
    ts_equal(said(report, 1).sys_errno, ETIMEDOUT);
    ts_server_resume(P2);
    rl_client_free(client);
    rl_report_free(report);
}

static void are_twins(const char *urls)
{
    rl_client *client = patient(urls);
    rl_report *report = new_report();
    ts_equal(rl_client_check(client, report), RL_E_UNSUPPORTED);
    int first = said(report, 0).outcome;
    ts_check(first == RL_NODE_YES || strstr(said(report, 0).text, "same server"), "outcome of the first twin: %d", first);
    check_said(report, 1, RL_NODE_ERROR, "same server");
    check_said(report, 2, RL_NODE_YES, NULL);
    rl_client_free(client);
    rl_report_free(report);
}

/* S2.9 */
static void two_names_of_one_server(void **state)
{
    (void)state;
    char urls[256];
    ts_proxy *proxy = ts_proxy_to(P1);
    snprintf(urls, sizeof urls, "%s,%s,%s", ts_server_url(P1), ts_proxy_url(proxy), ts_server_url(P3));
    are_twins(urls);
    snprintf(urls, sizeof urls, "%s,redis://localhost:%d,%s", ts_server_url(P1), ts_server_port(P1), ts_server_url(P3));
    are_twins(urls);
}

/* ---- Reports ----------------------------------------------------------------------------------------------------------------- */

/* S9.2 */
static void words_are_escaped_and_cut(void **state)
{
    (void)state;
    ts_proxy *proxy = ts_proxy_to(P1);
    rl_client *client = patient(ts_proxy_url(proxy));
    rl_report *report = new_report();
    ts_proxy_answer(proxy, "SET", 1, "-ERR \x01\x1b[31m \"caf\xc3\xa9\" \\n\r\n");
    ts_equal(refused(client, "report", LONG, 0, report), RL_E_NO_QUORUM);
    const char *text = said(report, 0).text;
    ts_check(strcmp(text, "ERR \\x01\\x1b[31m \"caf\\xc3\\xa9\" \\x5cn") == 0, "text is %s", text);

    char answer[1100] = "-ERR ";
    memset(answer + 5, '\x7f', 1000);
    memcpy(answer + 1005, "\r\n", 3);
    ts_proxy_answer(proxy, "SET", 1, answer);
    ts_equal(refused(client, "report", LONG, 0, report), RL_E_NO_QUORUM);
    size_t length = strlen(said(report, 0).text);
    ts_between(length, 100, 255);
    ts_check(strcmp(said(report, 0).text + length - 4, "\\x7f") == 0, "an escape was cut in two");
    rl_client_free(client);
    rl_report_free(report);
    ts_proxy_stop(proxy);
}

/* S9.1 */
static void round_trips_are_measured(void **state)
{
    (void)state;
    ts_proxy *proxy = ts_proxy_to(P1);
    rl_client *client = patient(ts_proxy_url(proxy));
    rl_report *report = new_report();
    rl_lock *lock = NULL;
    ts_equal(rl_client_check(client, report), RL_OK);
    ts_between(said(report, 0).rtt_us, 1, SOON * 1000);
    ts_proxy_delay(proxy, TS_DOWN, 50);
    ts_equal(take(client, "report", LONG, 0, report, &lock), RL_OK);
    ts_between(said(report, 0).rtt_us, 49000, SOON * 1000);
    ts_equal(rl_extend(lock, LONG, report), RL_OK);
    ts_between(said(report, 0).rtt_us, 49000, SOON * 1000);
    ts_equal(rl_report_free_in_ms(report), 0);
    ts_equal(rl_release_with(lock, 0, report), RL_OK);
    ts_between(said(report, 0).rtt_us, 49000, SOON * 1000);
    rl_client_free(client);
    rl_report_free(report);
    ts_proxy_stop(proxy);
}

/* S9.2: everything of the URL but user and password. */
static void nodes_are_shown_without_passwords(void **state)
{
    (void)state;
    static const char *const shown[] = {"redis://one.none.test:7000/2", "unix:///a/path?db=1", "redis://[::1]:7001"};
    rl_client *client = patient("redis://me:secret@one.none.test:7000/2,unix://:p%40ss@/a/path?db=1,redis://user:pa@ss@[::1]:7001");
    rl_report *report = new_report();
    ts_equal(refused(client, "report", LONG, 0, report), RL_E_NO_QUORUM);
    ts_equal(rl_report_count(report), 3);
    for (size_t i = 0; i < 3; i++)
        ts_check(strcmp(said(report, i).node, shown[i]) == 0, "node is %s", said(report, i).node);
    rl_client_free(client);
    rl_report_free(report);
}

/* The growth rule, written by the library; and reports that have nothing to say. */
static void reports_of_other_sizes(void **state)
{
    (void)state;
    rl_client *client = patient(p.urls);
    rl_report *report = new_report();
    struct {
        rl_node_result result;
        unsigned char more[16];
    } big;
    ts_equal(rl_report_count(report), 0);
    ts_equal(rl_client_check(client, report), RL_OK);

    memset(&big, 0xee, sizeof big);
    big.result.size = offsetof(rl_node_result, text);
    ts_equal(rl_report_node(report, 2, &big.result), RL_OK);
    ts_check(strcmp(big.result.node, ts_server_url(P3)) == 0, "node is %s", big.result.node);
    ts_equal(((unsigned char *)&big)[offsetof(rl_node_result, text)], 0xee);
    big.result.size = sizeof big;
    ts_equal(rl_report_node(report, 2, &big.result), RL_OK);
    ts_equal(big.result.outcome, RL_NODE_YES);
    ts_equal(big.result.size, sizeof big);

    ts_equal(rl_report_node(report, 3, &big.result), RL_E_INVALID);
    ts_equal(rl_report_node(NULL, 0, &big.result), RL_E_INVALID);
    ts_equal(rl_report_node(report, 0, NULL), RL_E_INVALID);
    big.result.size = 0;
    ts_equal(rl_report_node(report, 0, &big.result), RL_E_INVALID);
    ts_equal(refused(client, "", LONG, 0, report), RL_E_INVALID);
    ts_equal(rl_report_count(report), 0);
    ts_equal(rl_report_count(NULL), 0);
    ts_equal(rl_report_free_in_ms(NULL), 0);
    ts_equal(rl_report_new(NULL), RL_E_INVALID);
    rl_report_free(report);
    rl_report_free(NULL);
    rl_client_free(client);
}

static void every_status_has_a_text(void **state)
{
    (void)state;
    for (int a = RL_E_FORKED; a <= RL_CANCELED; a++) {
        ts_check(rl_strstatus(a)[0] != '\0' && strcmp(rl_strstatus(a), "unknown status") != 0, "%d has none", a);
        for (int b = RL_E_FORKED; b < a; b++)
            ts_check(strcmp(rl_strstatus(a), rl_strstatus(b)) != 0, "%d and %d have the same", a, b);
    }
    ts_check(strcmp(rl_strstatus(99), "unknown status") == 0 && strcmp(rl_strstatus(-99), "unknown status") == 0, "99 has one");
    int major, minor, patch;
    ts_equal(sscanf(rl_version(), "%d.%d.%d", &major, &minor, &patch), 3);
}

/* ---- Names, labels, tokens --------------------------------------------------------------------------------------------------- */

static bool key_holds(ts_server *server, const void *key, size_t length, const char *value)
{
    redisReply *reply = ts_reply(server, "GET %b", key, length);
    return reply->type == REDIS_REPLY_STRING && strcmp(reply->str, value) == 0;
}

static rl_lock *take_bytes(rl_client *client, const void *name, size_t length, const char *label)
{
    rl_request request;
    rl_lock *lock = NULL;
    size_t name_len = 0;
    rl_request_init(&request);
    request.name = name;
    request.name_len = length;
    request.ttl_ms = LONG;
    request.label = label;
    ts_equal(rl_acquire_with(client, &request, NULL, &lock), RL_OK);
    const char *kept = rl_lock_name(lock, &name_len);
    ts_check(name_len == length && memcmp(kept, name, length) == 0 && kept[length] == '\0', "another name");
    return lock;
}

/* S7.2 */
static void names_are_any_bytes(void **state)
{
    (void)state;
    rl_client *client = patient(ts_server_url(P1));
    static const char binary[] = "a\0b\xff\r\n c", key[] = "rl:a\0b\xff\r\n c";
    char longest[3 + RL_MAX_NAME] = "rl:";
    memset(longest + 3, 0, RL_MAX_NAME);

    rl_lock *lock = take_bytes(client, binary, sizeof binary - 1, NULL);
    ts_check(key_holds(P1, key, sizeof key - 1, rl_lock_token(lock)), "another key");
    rl_lock *prefix_of_it = take_bytes(client, binary, 1, NULL); /* "a" is another lock */
    ts_equal(rl_release(prefix_of_it), RL_OK);
    ts_equal(rl_extend(lock, LONG, NULL), RL_OK);
    ts_equal(rl_release(lock), RL_OK);
    lock = take_bytes(client, longest + 3, RL_MAX_NAME, NULL);
    ts_check(key_holds(P1, longest, sizeof longest, rl_lock_token(lock)), "another key");
    ts_equal(rl_release(lock), RL_OK);
    ts_equal(ts_dbsize(P1), 0);
    rl_client_free(client);
    ts_check(rl_lock_name(NULL, NULL) == NULL && rl_lock_token(NULL) == NULL, "NULL has a name");
    ts_equal(rl_lock_remaining_ms(NULL), 0);
}

/* S7.2 */
static void prefixes(void **state)
{
    (void)state;
    char longest[RL_MAX_PREFIX + 1], key[RL_MAX_PREFIX + 5];
    memset(longest, 'p', RL_MAX_PREFIX);
    longest[RL_MAX_PREFIX] = '\0';
    snprintf(key, sizeof key, "%sname", longest);
    const char *const prefix[] = {"", longest}, *const expected[] = {"name", key};
    for (int i = 0; i < 2; i++) {
        rl_options options = options_with(SOON, 300);
        options.prefix = prefix[i];
        rl_client *client = client_with(ts_server_url(P1), &options);
        ts_equal(rl_client_check(client, NULL), RL_OK);
        rl_lock *lock = taken(client, "name", LONG);
        ts_check(ts_holds(P1, expected[i], rl_lock_token(lock)), "another key than %s", expected[i]);
        ts_check(strcmp(rl_lock_name(lock, NULL), "name") == 0, "name is %s", (const char *)rl_lock_name(lock, NULL));
        ts_equal(rl_release(lock), RL_OK);
        ts_equal(ts_dbsize(P1), 0);
        rl_client_free(client);
    }
}

/* S7.1 */
static void tokens_and_labels(void **state)
{
    (void)state;
    char longest[RL_MAX_LABEL + 1];
    memset(longest, '~', RL_MAX_LABEL);
    longest[RL_MAX_LABEL] = '\0';
    const char *const labels[] = {NULL, "host 7: job 12", longest, "x"};
    rl_client *client = patient(ts_server_url(P1));
    char before[33] = "";
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) {
        rl_lock *lock = take_bytes(client, "label", 5, labels[i]);
        const char *token = rl_lock_token(lock);
        ts_equal(strspn(token, "0123456789abcdef"), 32);
        ts_check(strncmp(token, before, 32) != 0, "the token before, again");
        memcpy(before, token, 32);
        if (labels[i])
            ts_check(token[32] == ':' && strcmp(token + 33, labels[i]) == 0, "token is %s", token);
        else
            ts_equal(token[32], '\0');
        ts_check(ts_holds(P1, "rl:label", token), "the key holds another value");
        ts_equal(rl_extend(lock, LONG, NULL), RL_OK);
        ts_check(ts_holds(P1, "rl:label", rl_lock_token(lock)), "the key holds another value");
        ts_equal(rl_release(lock), RL_OK);
    }
    rl_client_free(client);
}

/* S1.2, S1.3: what is left falls to nothing, and the servers never have less. */
static void what_is_left_falls_to_nothing(void **state)
{
    (void)state;
    rl_client *client = patient(p.urls);
    rl_lock *lock = taken(client, "left", 200);
    int64_t left, before = 200 - 2 - 2;
    do {
        int64_t now = ts_now_ms();
        left = rl_lock_remaining_ms(lock);
        int holding = 0;
        for (int i = 0; i < 3; i++) {
            int64_t truly = ts_pttl(p.at[i], "rl:left");
            holding += truly + (ts_now_ms() - now) + 1 >= left;
        }
        ts_check(left <= before, "%lld ms after %lld", (long long)left, (long long)before);
        ts_check(left <= 0 || holding >= 2, "%lld ms are claimed, and only %d servers have as much", (long long)left, holding);
        before = left;
    } while (left >= -20);
    ts_equal(rl_extend(lock, LONG, NULL), RL_LOST);
    ts_check(rl_lock_remaining_ms(lock) <= 0, "a lost lock has time left");
    rl_lock_free(lock);
    rl_client_free(client);
}

/* ---- Options ----------------------------------------------------------------------------------------------------------------- */

static void option_is_refused(const rl_options *options)
{
    rl_client *client = NULL;
    size_t at = 0;
    ts_equal(rl_client_new("redis://one,redis://two,redis://three", options, &client, &at), RL_E_INVALID);
    ts_equal(at, SIZE_MAX);
}

#define WITH(field, value)                                                                                                         \
    do {                                                                                                                           \
        rl_options with = options_with(SOON, 300);                                                                                 \
        with.field = (value);                                                                                                      \
        option_is_refused(&with);                                                                                                  \
    } while (0)

static void options_that_are_refused(void **state)
{
    (void)state;
    char text[RL_MAX_PREFIX + 2];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    WITH(prefix, NULL);
    WITH(prefix, text);
    WITH(client_name, NULL);
    WITH(client_name, "");
    WITH(client_name, "two words");
    WITH(client_name, text + RL_MAX_PREFIX + 1 - 65);
    WITH(node_timeout_ms, 0);
    WITH(node_timeout_ms, 600001);
    WITH(cleanup_timeout_ms, -1);
    WITH(cleanup_timeout_ms, 600001);
    WITH(retry_min_ms, 0);
    WITH(retry_min_ms, 201); /* more than the default of retry_max_ms */
    WITH(retry_max_ms, 600001);
    WITH(min_validity_ms, 0);
    WITH(min_validity_ms, RL_MAX_TTL_MS + 1);
    WITH(drift_ppm, 500001);
    WITH(quorum, 1);
    WITH(quorum, 4);
    WITH(size, 0);
    WITH(size, 4);
}

static void shorter_structs(void **state)
{
    (void)state;
    unsigned char bytes[sizeof(rl_options)];
    rl_options *options = (rl_options *)(void *)bytes;
    rl_client *client = NULL;
    for (size_t size = sizeof(size_t); size <= sizeof bytes; size += 4) {
        memset(bytes, 0xee, sizeof bytes); /* what lies beyond must not be looked at */
        rl_options_init_sized(options, size);
        ts_equal(options->size, size);
        for (size_t i = size; i < sizeof bytes; i++)
            ts_equal(bytes[i], 0xee);
        if (size % sizeof(size_t) == 0) { /* cut between fields */
            ts_equal(rl_client_new(ts_server_url(P1), options, &client, NULL), RL_OK);
            rl_client_free(client);
        }
    }
    rl_options_init_sized(options, 0);
    ts_equal(options->size, sizeof bytes);
    rl_options_init_sized(NULL, sizeof bytes);
    rl_request_init_sized(NULL, sizeof(rl_request));
}

/* Requests that end before wait_ms, label or fail_fast. */
static void shorter_requests(void **state)
{
    (void)state;
    static const size_t sizes[] = {offsetof(rl_request, wait_ms), offsetof(rl_request, label), offsetof(rl_request, fail_fast)};
    rl_client *client = patient(ts_server_url(P1));
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        rl_request request;
        rl_lock *lock = NULL;
        memset(&request, 0xee, sizeof request);
        rl_request_init_sized(&request, sizes[i]);
        request.name = "short";
        request.name_len = 5;
        request.ttl_ms = LONG;
        ts_equal(rl_acquire_with(client, &request, NULL, &lock), RL_OK);
        ts_equal(strlen(rl_lock_token(lock)), 32);
        ts_equal(rl_release(lock), RL_OK);
    }
    rl_client_free(client);
}

static void longer_structs(void **state)
{
    (void)state;
    struct {
        rl_options options;
        unsigned char more[24];
    } big;
    struct {
        rl_request request;
        unsigned char more[24];
    } ask;
    rl_client *client = NULL;
    rl_lock *lock = NULL;
    size_t at = 0;
    memset(&big, 0xee, sizeof big);
    memset(&ask, 0xee, sizeof ask);
    rl_options_init_sized(&big.options, sizeof big);
    rl_request_init_sized(&ask.request, sizeof ask);
    ask.request.name = "long";
    ask.request.name_len = 4;
    ask.request.ttl_ms = LONG;
    big.more[23] = 1;
    ts_equal(rl_client_new(ts_server_url(P1), &big.options, &client, &at), RL_E_UNSUPPORTED);
    ts_equal(at, SIZE_MAX);
    big.more[23] = 0;
    big.options.prefix = "long:";
    ts_equal(rl_client_new(ts_server_url(P1), &big.options, &client, NULL), RL_OK);
    ask.more[0] = 1;
    ts_equal(rl_acquire_with(client, &ask.request, NULL, &lock), RL_E_UNSUPPORTED);
    ts_equal(ts_calls(P1, "set"), 0);
    ask.more[0] = 0;
    ts_equal(rl_acquire_with(client, &ask.request, NULL, &lock), RL_OK);
    ts_check(ts_exists(P1, "long:long"), "the prefix was not taken");
    ts_equal(rl_release(lock), RL_OK);
    rl_client_free(client);
}

static void options_are_copied(void **state)
{
    (void)state;
    char prefix[] = "mine:", name[] = "worker-7";
    rl_options options = options_with(SOON, 300);
    options.prefix = prefix;
    options.client_name = name;
    rl_client *client = client_with(ts_server_url(P1), &options);
    memset(prefix, 'x', sizeof prefix - 1);
    memset(name, 'x', sizeof name - 1);
    rl_lock *lock = taken(client, "copy", LONG);
    ts_check(ts_exists(P1, "mine:copy"), "the prefix was not copied");
    ts_check(strstr(ts_command(P1, "CLIENT LIST"), " name=worker-7 ") != NULL, "%s", ts_command(P1, "CLIENT LIST"));
    ts_equal(rl_release(lock), RL_OK);
    rl_client_free(client);
}

/* ---- On the wire ------------------------------------------------------------------------------------------------------------- */

/* S2.5: the digests that EVALSHA names are those of the scripts that SCRIPT LOAD brings, by the server's reckoning and by ours. */
static void digests_of_the_scripts(void **state)
{
    (void)state;
    ts_hostile *server = ts_hostile_start(NULL);
    rl_client *client = patient(ts_hostile_url(server));
    rl_lock *lock = taken(client, "digest", LONG);
    ts_equal(rl_extend(lock, LONG, NULL), RL_OK);
    ts_equal(rl_release(lock), RL_OK);
    rl_client_free(client);
    ts_equal(ts_hostile_count(server, "EVALSHA"), 2);
    ts_equal(ts_hostile_count(server, "SCRIPT LOAD"), 2);
    for (int i = 0; i < 2; i++) {
        const ts_received *call = ts_hostile_received(server, "EVALSHA", i);
        bool found = false;
        for (int j = 0; j < 2; j++) {
            const ts_received *load = ts_hostile_received(server, "SCRIPT LOAD", j);
            char digest[41];
            ts_sha1_hex(load->argv[2], load->len[2], digest);
            found = found || strcmp(call->argv[1], digest) == 0;
            ts_check(strcmp(ts_command(P1, "SCRIPT LOAD %b", load->argv[2], load->len[2]), digest) == 0, "SHA-1 is %s", digest);
        }
        ts_check(found, "no script has the digest %s", call->argv[1]);
    }
}

static void *cycle(void *client)
{
    static atomic_int number;
    char name[32];
    snprintf(name, sizeof name, "cycle-%d", atomic_fetch_add(&number, 1));
    for (intptr_t i = 0; i < 50; i++) {
        rl_lock *lock = NULL;
        if (rl_acquire(client, name, LONG, LONG, &lock) != RL_OK || rl_extend(lock, LONG, NULL) != RL_OK ||
            rl_release(lock) != RL_OK)
            return (void *)(i + 1);
    }
    return NULL;
}

/* One connection for each node, whoever uses the client. */
static void connections_are_kept(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    int64_t before[3];
    for (int i = 0; i < 3; i++)
        before[i] = ts_info_int(p.at[i], "total_connections_received");
    rl_client *client = patient(p.urls);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, cycle, client);
    for (int i = 0; i < THREADS; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        ts_check(!failed, "round %d failed", (int)(intptr_t)failed - 1);
    }
    rl_client_free(client);
    for (int i = 0; i < 3; i++) {
        ts_equal(ts_info_int(p.at[i], "total_connections_received"), before[i] + 1);
        ts_equal(ts_dbsize(p.at[i]), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        REAL_TEST(a_unix_socket),
        REAL_TEST(a_unix_socket_without_a_server),
        REAL_TEST(a_database),
        REAL_TEST(no_such_database),
        REAL_TEST(a_password),
        REAL_TEST(a_user_and_a_password),
        REAL_TEST(an_ipv6_address),
        REAL_TEST(a_host_name),
        REAL_TEST(urls_that_are_refused),
        REAL_TEST(wrong_passwords),
        REAL_TEST(a_wrong_password_for_one_of_three),
        REAL_TEST(the_least_rights),
        REAL_TEST(one_right_too_few),
        REAL_TEST(without_what_is_only_useful),
        REAL_TEST(the_least_rights_with_a_fence),
        REAL_TEST(one_right_too_few_for_a_fence),
        REAL_TEST(keys_outside_of_the_pattern),
        REAL_TEST(a_check_leaves_nothing_behind),
        REAL_TEST(a_check_with_nodes_down),
        REAL_TEST(a_check_after_a_restart),
        REAL_TEST(a_check_with_a_stopped_node),
        REAL_TEST(two_names_of_one_server),
        REAL_TEST(words_are_escaped_and_cut),
        REAL_TEST(round_trips_are_measured),
        REAL_TEST(nodes_are_shown_without_passwords),
        REAL_TEST(reports_of_other_sizes),
        REAL_TEST(every_status_has_a_text),
        REAL_TEST(names_are_any_bytes),
        REAL_TEST(prefixes),
        REAL_TEST(tokens_and_labels),
        REAL_TEST(what_is_left_falls_to_nothing),
        REAL_TEST(options_that_are_refused),
        REAL_TEST(shorter_structs),
        REAL_TEST(shorter_requests),
        REAL_TEST(longer_structs),
        REAL_TEST(options_are_copied),
        REAL_TEST(digests_of_the_scripts),
        REAL_TEST(connections_are_kept),
    };
    return REAL_RUN("client", tests);
}
