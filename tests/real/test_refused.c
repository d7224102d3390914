/* test_refused.c - servers that answer with an error: a vote against, with the server's own words (A12).
 */
#include "real.h"

#include <sys/stat.h>

/* A way to make a server refuse, and to make it accept again. */
struct refusal {
    const char *text;        /* what it says then */
    int alone;               /* the verdict if it is the only node */
    const char *const *args; /* of the server */
    void (*begin)(ts_server *server);
    void (*end)(ts_server *server);
};

static void ok(ts_server *server, const char *command)
{
    const char *said_so = ts_command(server, command);
    ts_check(strcmp(said_so, "OK") == 0, "%s: %s", command, said_so);
}

/* ---- The refusals ------------------------------------------------------------------------------------------------------------ */

static void begin_readonly(ts_server *server)
{
    ok(server, "REPLICAOF 127.0.0.1 1"); /* where nobody listens */
}

static void end_readonly(ts_server *server)
{
    ok(server, "REPLICAOF NO ONE");
}

static void begin_oom(ts_server *server)
{
    ok(server, "CONFIG SET maxmemory 1");
}

static void end_oom(ts_server *server)
{
    ok(server, "CONFIG SET maxmemory 0");
}

static bool save_has_failed(void *server)
{
    const char *status = ts_info(server, "rdb_last_bgsave_status");
    return status != NULL && strcmp(status, "err") == 0;
}

/* A snapshot cannot take the place of a directory. */
static void begin_misconf(ts_server *server)
{
    char path[256];
    snprintf(path, sizeof path, "%s/dump.rdb", ts_server_dir(server));
    ts_check(mkdir(path, 0700) == 0, "cannot make %s", path);
    ts_reply(server, "CONFIG SET save %s", "3600 1000000");
    ts_command(server, "BGSAVE");
    ts_check(ts_eventually(SOON, save_has_failed, server), "the snapshot did not fail");
}

static void end_misconf(ts_server *server)
{
    ok(server, "CONFIG SET stop-writes-on-bgsave-error no");
}

static void begin_loading(ts_server *server)
{
    char value[2048];
    memset(value, 'x', sizeof value - 1);
    value[sizeof value - 1] = '\0';
    for (int i = 0; i < 1000; i++)
        ts_command(server, "SET filler:%d %s", i, value);
    ok(server, "SAVE");
    ts_server_kill(server);
    ts_server_launch(server);
}

static void end_loading(ts_server *server)
{
    ts_server_await(server);
}

static ts_conn *busy_conn;

static bool is_busy(void *server)
{
    return strncmp(ts_command(server, "PING"), "BUSY", 4) == 0;
}

static void begin_busy(ts_server *server)
{
    ok(server, "CONFIG SET lua-time-limit 10");
    busy_conn = ts_conn_tcp(ts_server_port(server));
    ts_check(busy_conn != NULL && ts_conn_command(busy_conn, "EVAL %s 0", "while true do end"), "no connection");
    ts_check(ts_eventually(SOON, is_busy, server), "the script does not run");
}

static void end_busy(ts_server *server)
{
    ok(server, "SCRIPT KILL");
    ts_conn_close(busy_conn);
}

static void begin_noauth(ts_server *server)
{
    ok(server, "CONFIG SET requirepass secret");
}

static void end_noauth(ts_server *server)
{
    ts_reply(server, "CONFIG SET requirepass %s", "");
}

static void begin_noperm(ts_server *server)
{
    ok(server, "ACL SETUSER default -set");
}

static void end_noperm(ts_server *server)
{
    ok(server, "ACL SETUSER default +set");
}

static void begin_max_clients(ts_server *server)
{
    ok(server, "CONFIG SET maxclients 1"); /* the fixture's */
}

static void end_max_clients(ts_server *server)
{
    ok(server, "CONFIG SET maxclients 100");
}

static void begin_cluster_down(ts_server *server)
{
    (void)server; /* its slots are nobody's from the start */
}

/* ---- The test of each -------------------------------------------------------------------------------------------------------- */

/* Takes and releases the lock until node 1 is heard in time to be reported: success comes at the second grant. */
static void until_heard(rl_client *client, rl_report *report, int outcome, const char *text)
{
    rl_node_result heard;
    int64_t end = ts_mono_ms() + SOON;
    do {
        rl_lock *lock = NULL;
        ts_equal(take(client, "a12", LONG, 0, report, &lock), RL_OK);
        heard = said(report, 1);
        if (heard.outcome != RL_NODE_YES) {
            check_said(report, 0, RL_NODE_YES, NULL);
            check_said(report, 2, RL_NODE_YES, NULL);
        }
        ts_equal(rl_release(lock), RL_OK);
    } while (heard.outcome != outcome && ts_mono_ms() < end);
    ts_check(heard.outcome == outcome && strstr(heard.text, text), "outcome %d, \"%s\"; expected \"%s\"", (int)heard.outcome,
             heard.text, text);
}

static void alone(ts_server *server, const struct refusal *refusal, rl_report *report)
{
    rl_client *client = patient(ts_server_url(server));
    ts_equal(refused(client, "a12", LONG, 0, report), refusal->alone);
    check_said(report, 0, RL_NODE_ERROR, refusal->text);
    rl_client_free(client);
}

static void is_a_vote_against(const struct refusal *refusal)
{
    ts_server *server = ts_server_start(refusal->args);
    struct net net;
    char urls[256];
    net_start(&net);
    snprintf(urls, sizeof urls, "%s,%s,%s", ts_proxy_url(net.at[0]), ts_server_url(server), ts_proxy_url(net.at[2]));
    rl_client *client = patient(urls);
    rl_report *report = new_report();
    refusal->begin(server);
    ts_proxy_delay(net.at[0], TS_DOWN, 20);
    ts_proxy_delay(net.at[2], TS_DOWN, 20);

    until_heard(client, report, RL_NODE_ERROR, refusal->text);
    alone(server, refusal, report);
    if (refusal->end) {
        refusal->end(server);
        until_heard(client, report, RL_NODE_YES, "");
    }
    rl_client_free(client);
    rl_report_free(report);
    check_gone("rl:a12");
}

/* A12 */
static void a_replica(void **state)
{
    (void)state;
    is_a_vote_against(&(struct refusal){"READONLY You can't write against a read only replica", RL_E_NO_QUORUM, NULL,
                                        begin_readonly, end_readonly});
}

/* A12 */
static void a_full_memory(void **state)
{
    (void)state;
    is_a_vote_against(&(struct refusal){"OOM command not allowed", RL_E_NO_QUORUM, NULL, begin_oom, end_oom});
}

/* A12 */
static void a_snapshot_that_failed(void **state)
{
    (void)state;
    is_a_vote_against(&(struct refusal){"MISCONF ", RL_E_NO_QUORUM, NULL, begin_misconf, end_misconf});
}

/* A12 */
static void a_data_set_being_loaded(void **state)
{
    (void)state;
    static const char *const args[] = {
        "--key-load-delay", "1000", "--loading-process-events-interval-bytes", "4096", "--rdbcompression", "no", NULL};
    is_a_vote_against(&(struct refusal){"LOADING ", RL_E_NO_QUORUM, args, begin_loading, end_loading});
}

/* A12 */
static void a_busy_script(void **state)
{
    (void)state;
    is_a_vote_against(&(struct refusal){"BUSY ", RL_E_NO_QUORUM, NULL, begin_busy, end_busy});
}

/* A12 */
static void a_password_is_missing(void **state)
{
    (void)state;
    is_a_vote_against(&(struct refusal){"NOAUTH Authentication required", RL_E_AUTH, NULL, begin_noauth, end_noauth});
}

/* A12 */
static void a_user_who_may_not_set(void **state)
{
    (void)state;
    is_a_vote_against(&(struct refusal){"NOPERM", RL_E_AUTH, NULL, begin_noperm, end_noperm});
}

/* A12 */
static void a_server_with_enough_clients(void **state)
{
    (void)state;
    is_a_vote_against(&(struct refusal){"max number of clients reached", RL_E_NO_QUORUM, NULL, begin_max_clients, end_max_clients});
}

/* A12 */
static void a_cluster_without_slots(void **state)
{
    (void)state;
    static const char *const args[] = {"--cluster-enabled", "yes", NULL};
    is_a_vote_against(&(struct refusal){"CLUSTERDOWN", RL_E_NO_QUORUM, args, begin_cluster_down, NULL});
}

/* S2.8: refused by one for our credentials, and down the other: not a matter of credentials alone. */
static void a_denial_and_a_failure(void **state)
{
    (void)state;
    rl_client *client = patient(p.urls);
    ok(P2, "ACL SETUSER default -set");
    ts_server_kill(P3);
    ts_equal(refused(client, "a12", LONG, 0, NULL), RL_E_NO_QUORUM);
    rl_client_free(client);
    ok(P2, "ACL SETUSER default +set");
    check_gone("rl:a12");
}

/* S2.8, S4.2: credentials are not waited out. */
static void denials_end_the_wait(void **state)
{
    (void)state;
    rl_client *client = patient(p.urls);
    ok(P2, "ACL SETUSER default -set");
    ok(P3, "ACL SETUSER default -set");
    ts_equal(refused(client, "a12", LONG, RL_FOREVER, NULL), RL_E_AUTH);
    rl_client_free(client);
    ok(P2, "ACL SETUSER default +set");
    ok(P3, "ACL SETUSER default +set");
    check_gone("rl:a12");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        REAL_TEST(a_replica),
        REAL_TEST(a_full_memory),
        REAL_TEST(a_snapshot_that_failed),
        REAL_TEST(a_data_set_being_loaded),
        REAL_TEST(a_busy_script),
        REAL_TEST(a_password_is_missing),
        REAL_TEST(a_user_who_may_not_set),
        REAL_TEST(a_server_with_enough_clients),
        REAL_TEST(a_cluster_without_slots),
        REAL_TEST(a_denial_and_a_failure),
        REAL_TEST(denials_end_the_wait),
    };
    return REAL_RUN("refused", tests);
}
