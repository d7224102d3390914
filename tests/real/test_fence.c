/* test_fence.c - fencing tokens on real servers: three ways to mint them, what may go wrong with their counters, and the writes that
 * check them.
 */
#include "real.h"

#include <signal.h>
#include <unistd.h>

static const uint32_t all_modes[] = {RL_FENCE_NONE, RL_FENCE_QUORUM, RL_FENCE_NODE};
static const char text_of_trouble[] = "the fence counter is not usable";

/* ---- What the tests share -------------------------------------------------------------------------------------------------------- */

static rl_client *fencing(const char *urls, uint32_t fence, uint32_t node)
{
    rl_options options = options_with(SOON, 300);
    options.fence = fence;
    options.fence_node = node;
    return client_with(urls, &options);
}

static void let_go(rl_lock *lock)
{
    int rc = rl_release(lock);
    ts_check(rc == RL_OK, "rl_release: %s", rl_strstatus(rc));
}

/* A whole cycle; its token. */
static int64_t cycle(rl_client *client, const char *name)
{
    rl_lock *lock = taken(client, name, LONG);
    int64_t fence = rl_lock_fence(lock);
    ts_between(fence, 1, RL_MAX_FENCE - 1);
    let_go(lock);
    return fence;
}

/* So many cycles, whose tokens rise above `last`; the highest. */
static int64_t rising(rl_client *client, const char *name, int cycles, int64_t last)
{
    for (int i = 0; i < cycles; i++) {
        int64_t fence = cycle(client, name);
        ts_check(fence > last, "cycle %d: token %lld after %lld", i, (long long)fence, (long long)last);
        last = fence;
    }
    return last;
}

static int64_t counter(ts_server *server, const char *key)
{
    char *value = ts_get(server, key);
    int64_t n = value ? atoll(value) : -1;
    free(value);
    return n;
}

struct at_least {
    ts_server *server;
    const char *key;
    int64_t value;
};

static bool is_at_least(void *arg)
{
    const struct at_least *a = arg;
    return counter(a->server, a->key) >= a->value;
}

static void await_counter(ts_server *server, const char *key, int64_t value)
{
    struct at_least a = {server, key, value};
    ts_check(ts_eventually(SOON, is_at_least, &a), "%s: %s is %lld, expected %lld", ts_server_url(server), key,
             (long long)counter(server, key), (long long)value);
}

static void away(ts_proxy *proxy)
{
    ts_proxy_refuse(proxy, true);
    ts_proxy_reset(proxy);
}

static void back(ts_proxy *proxy)
{
    ts_proxy_refuse(proxy, false);
}

/* ---- Three ways ------------------------------------------------------------------------------------------------------------------ */

static void a_way_mints(const char *urls, uint32_t fence)
{
    rl_client *client = fencing(urls, fence, 0);
    rl_lock *lock = taken(client, "way", LONG);
    int64_t first = rl_lock_fence(lock);
    ts_check((first != 0) == (fence != RL_FENCE_NONE), "mode %u: token %lld", fence, (long long)first);
    ts_equal(rl_extend(lock, LONG, NULL), RL_OK);
    ts_equal(rl_lock_fence(lock), first);
    let_go(lock);
    if (fence != RL_FENCE_NONE)
        rising(client, "way", 10, first);
    rl_client_free(client);
}

/* S8.1 */
static void three_ways(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof all_modes / sizeof *all_modes; i++) {
        a_way_mints(ts_server_url(P1), all_modes[i]);
        a_way_mints(p.urls, all_modes[i]);
        ts_equal(ts_exists(P1, "{rl:way}:fence"), all_modes[i] != RL_FENCE_NONE);
        ts_equal(ts_exists(P2, "{rl:way}:fence"), all_modes[i] == RL_FENCE_QUORUM);
        for (int s = 0; s < p.count; s++)
            make_fresh(p.at[s]);
    }
    ts_equal(rl_lock_fence(NULL), 0);
}

static int ask(rl_client *client, uint32_t fence, rl_lock **ret_lock)
{
    rl_request request;
    rl_request_init(&request);
    request.name = "asked";
    request.name_len = 5;
    request.ttl_ms = LONG;
    request.fence = fence;
    return rl_acquire_with(client, &request, NULL, ret_lock);
}

static void a_request_says_otherwise(void **state)
{
    (void)state;
    for (uint32_t by_default = RL_FENCE_DEFAULT; by_default <= RL_FENCE_NODE; by_default++) {
        rl_client *client = fencing(p.urls, by_default, 2);
        rl_lock *lock;
        for (uint32_t fence = RL_FENCE_DEFAULT; fence <= RL_FENCE_NODE; fence++) {
            uint32_t meant = fence ? fence : by_default;
            ts_equal(ask(client, fence, &lock), RL_OK);
            ts_check((rl_lock_fence(lock) > 0) == (meant >= RL_FENCE_QUORUM), "default %u, asked %u: token %lld", by_default, fence,
                     (long long)rl_lock_fence(lock));
            let_go(lock);
        }
        ts_equal(ask(client, RL_FENCE_NODE + 1, &lock), RL_E_INVALID);
        rl_client_free(client);
    }
}

/* The designated node mints even where it is not needed for the quorum; and nobody else does. */
static void the_designated_node_mints(void **state)
{
    (void)state;
    for (uint32_t node = 0; node < 3; node++) {
        rl_client *client = fencing(p.urls, RL_FENCE_NODE, node);
        cycle(client, "designated");
        for (uint32_t i = 0; i < 3; i++)
            ts_equal(ts_exists(p.at[i], "{rl:designated}:fence"), i == node);
        rl_client_free(client);
        ts_del(p.at[node], "{rl:designated}:fence");
    }
}

/* S8.3: no fence node, no lock; the two others are released. */
static void no_lock_without_the_designated_node(void **state)
{
    rl_client *client = fencing(p.urls, RL_FENCE_NODE, 2);
    (void)state;
    cycle(client, "alone");
    ts_server_kill(P3);
    ts_equal(refused(client, "alone", LONG, 0, NULL), RL_E_NO_QUORUM);
    check_gone("rl:alone");
    rl_client_free(client);
}

static void clients_are_checked(void **state)
{
    rl_report *report = new_report();
    (void)state;
    for (size_t i = 0; i < sizeof all_modes / sizeof *all_modes; i++)
        for (int n = 1; n <= 3; n += 2) {
            rl_client *client = fencing(n == 1 ? ts_server_url(P1) : p.urls, all_modes[i], 0);
            ts_equal(rl_client_check(client, report), RL_OK);
            for (int s = 0; s < n; s++)
                check_said(report, (size_t)s, RL_NODE_YES, NULL);
            for (int s = 0; s < n; s++) /* nothing of it outlives it by more than the header says */
                for (const char *key; (key = ts_command(p.at[s], "KEYS *"))[0];) {
                    char name[256];
                    snprintf(name, sizeof name, "%.*s", (int)strcspn(key, "\n"), key);
                    ts_between(ts_pttl(p.at[s], name), 1, 4 * SOON + 2000);
                    ts_del(p.at[s], name);
                }
            rl_client_free(client);
        }
    rl_report_free(report);
}

/* Who may not run what a fence needs is found out before the first lock. */
static void a_missing_right_is_found(void **state)
{
    (void)state;
    ts_command(P1, "ACL SETUSER default -time");
    for (uint32_t fence = RL_FENCE_NONE; fence <= RL_FENCE_NODE; fence++) {
        rl_client *client = fencing(ts_server_url(P1), fence, 0);
        int rc = rl_client_check(client, NULL);
        ts_check(rc == (fence == RL_FENCE_NONE ? RL_OK : RL_E_AUTH), "fence %u: %s", fence, rl_strstatus(rc));
        if (fence != RL_FENCE_NONE)
            ts_equal(refused(client, "right", LONG, 0, NULL), RL_E_AUTH);
        rl_client_free(client);
    }
    rl_client *client = fencing(p.urls, RL_FENCE_NODE, 0);
    ts_equal(refused(client, "right", LONG, 0, NULL), RL_E_AUTH);
    rl_client_free(client);
    ts_command(P1, "ACL SETUSER default +time");
    check_gone("rl:right");
}

/* ---- Counters -------------------------------------------------------------------------------------------------------------------- */

static void counters_have_a_key_of_their_own(void **state)
{
    static const char *const cases[][3] = {
        {"", "plain", "{plain}:fence"}, {"", "a{b}c", "a{b}c:fence"},
        {"", "a}b", "a}b:fence"},       {"", "a{b", "{a{b}:fence"},
        {"", "a{}b", "a{}b:fence"},     {"", "a{}{b}", "a{}{b}:fence"},
        {"", "}{", "}{:fence"},         {"", "{", "{{}:fence"},
        {"", "{x}", "{x}:fence"},       {"rl:", "plain", "{rl:plain}:fence"},
        {"{t}:", "x", "{t}:x:fence"},   {"{", "x}", "{x}:fence"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rl_options options = options_with(SOON, 300);
        options.prefix = cases[i][0];
        options.fence = RL_FENCE_QUORUM;
        rl_client *client = client_with(ts_server_url(P1), &options);
        int64_t fence = cycle(client, cases[i][1]);
        ts_check(ts_dbsize(P1) == 1 && counter(P1, cases[i][2]) == fence, "\"%s\" \"%s\": no counter \"%s\"", cases[i][0],
                 cases[i][1], cases[i][2]);
        ts_command(P1, "FLUSHALL");
        rl_client_free(client);
    }
}

/* Where a cluster hashes both keys to one slot, it lets a script use them. */
static void lock_and_counter_share_a_slot(void **state)
{
    static const char *const args[] = {"--cluster-enabled", "yes", NULL};
    static const char *const names[] = {"plain", "a{b}c", "a{b", "{", "{x}", "a{bc}}{d}"};
    ts_server *server = ts_server_start(args);
    (void)state;
    ts_command(server, "CLUSTER ADDSLOTSRANGE 0 16383");
    rl_client *client = fencing(ts_server_url(server), RL_FENCE_QUORUM, 0);
    for (int64_t end = ts_mono_ms() + SOON; rl_client_check(client, NULL) != RL_OK && ts_mono_ms() < end;)
        ts_sleep_ms(20);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        cycle(client, names[i]);
    rl_client_free(client);
}

/* S8.5 */
static void counters_outlive_the_lock_by_a_day(void **state)
{
    static const int64_t day = 86400000;
    static const struct {
        int64_t ttl, px;
    } cases[] = {{1000, day}, {day / 2, day}, {day / 2 + 1000, day + 2000}, {3 * day, 6 * day}};
    (void)state;
    for (uint32_t fence = RL_FENCE_QUORUM; fence <= RL_FENCE_NODE; fence++)
        for (int n = 1; n <= 3; n += 2)
            for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                rl_client *client = fencing(n == 1 ? ts_server_url(P1) : p.urls, fence, 0);
                warm_up(client);
                ts_command(P1, "SET {rl:px}:fence 7"); /* one without an expiry gets it */
                rl_lock *lock = taken(client, "px", cases[i].ttl);
                await_counter(P1, "{rl:px}:fence", 8);
                ts_between(ts_pttl(P1, "{rl:px}:fence"), cases[i].px - 60000, cases[i].px);
                let_go(lock);
                rl_client_free(client);
            }
}

/* F2 */
static void a_deleted_counter(void **state)
{
    (void)state;
    for (uint32_t fence = RL_FENCE_QUORUM; fence <= RL_FENCE_NODE; fence++)
        for (int n = 1; n <= 3; n += 2) {
            rl_client *client = fencing(n == 1 ? ts_server_url(P1) : p.urls, fence, 0);
            int64_t last = 0;
            for (int i = 0; i < 10; i++) {
                last = rising(client, "f2", 3, last);
                for (int s = 0; s < p.count; s++)
                    ts_del(p.at[s], "{rl:f2}:fence");
            }
            rl_client_free(client);
        }
}

/* F3 */
static void a_memory_is_lost(void **state)
{
    (void)state;
    for (uint32_t fence = RL_FENCE_QUORUM; fence <= RL_FENCE_NODE; fence++)
        for (int n = 1; n <= 3; n += 2) {
            rl_client *client = fencing(n == 1 ? ts_server_url(P1) : p.urls, fence, 0);
            int64_t last = rising(client, "f3", 20, 0);
            for (int i = 0; i < 2; i++) {
                ts_server_kill(P1);
                ts_server_restart(P1);
                last = rising(client, "f3", 5, last);
            }
            rl_client_free(client);
        }
}

/* Back to what it saved; the next boundary of 2^20 us has passed (S8.5). */
static void roll_back(ts_server *server)
{
    ts_server_kill(server);
    ts_sleep_ms(1100);
    ts_server_restart(server);
}

/* F3b */
static void a_snapshot_is_older(void **state)
{
    (void)state;
    for (uint32_t fence = RL_FENCE_QUORUM; fence <= RL_FENCE_NODE; fence++)
        for (int n = 1; n <= 3; n += 2) {
            ts_server *server = ts_server_start(NULL);
            char urls[256];
            snprintf(urls, sizeof urls, "%s,%s,%s", ts_server_url(server), ts_server_url(P2), ts_server_url(P3));
            rl_client *client = fencing(n == 1 ? ts_server_url(server) : urls, fence, 0);
            warm_up(client);
            int64_t last = rising(client, "f3b", 5, 0);
            ts_check(strcmp(ts_command(server, "SAVE"), "OK") == 0, "no snapshot");
            last = rising(client, "f3b", 50, last);
            roll_back(server);
            ts_check(ts_exists(server, "{rl:f3b}:fence"), "the snapshot is not there");
            rising(client, "f3b", 5, last);
            rl_client_free(client);
            ts_server_stop(server);
        }
}

/* F3b: one of the two that know the last tokens is rolled back, the other leaves; the one that was away knows nothing. */
static void a_snapshot_is_older_and_another_away(void **state)
{
    ts_server *server = ts_server_start(NULL);
    ts_proxy *second = ts_proxy_to(P2), *third = ts_proxy_to(P3);
    char urls[256];
    (void)state;
    snprintf(urls, sizeof urls, "%s,%s,%s", ts_server_url(server), ts_proxy_url(second), ts_proxy_url(third));
    rl_client *client = fencing(urls, RL_FENCE_QUORUM, 0);
    warm_up(client);
    int64_t last = rising(client, "f3b", 5, 0);
    ts_command(server, "SAVE");
    away(third);
    last = rising(client, "f3b", 50, last);
    roll_back(server);
    away(second);
    back(third);
    rising(client, "f3b", 5, last);
    rl_client_free(client);
}

/* ---- F4: counters that cannot be ------------------------------------------------------------------------------------------------- */

static const char *const unusable[] = {
    "text", "9007199254740991", "9007199254740992", "99999999999999999999", "-5", "1e3", " 7", "7.5", "0x10", "7\n"};

static void set_counter(ts_server *server, const char *value)
{
    ts_reply(server, "SET {rl:f4}:fence %s", value);
}

static void one_alone_is_unusable(const char *urls, uint32_t fence)
{
    rl_client *client = fencing(urls, fence, 0);
    rl_report *report = new_report();
    for (size_t i = 0; i < sizeof unusable / sizeof *unusable; i++) {
        set_counter(P1, unusable[i]);
        ts_equal(refused(client, "f4", LONG, 0, report), RL_E_NO_QUORUM);
        check_said(report, 0, RL_NODE_ERROR, text_of_trouble);
        check_gone("rl:f4");
        ts_check(ts_holds(P1, "{rl:f4}:fence", unusable[i]), "the counter was changed");
    }
    ts_del(P1, "{rl:f4}:fence");
    ts_command(P1, "RPUSH {rl:f4}:fence a");
    ts_equal(refused(client, "f4", LONG, 0, report), RL_E_NO_QUORUM);
    check_said(report, 0, RL_NODE_ERROR, "WRONGTYPE");
    check_gone("rl:f4");
    ts_del(P1, "{rl:f4}:fence");
    rl_report_free(report);
    rl_client_free(client);
}

/* F4 */
static void an_unusable_counter_is_an_error(void **state)
{
    (void)state;
    for (uint32_t fence = RL_FENCE_QUORUM; fence <= RL_FENCE_NODE; fence++)
        one_alone_is_unusable(ts_server_url(P1), fence);
    one_alone_is_unusable(p.urls, RL_FENCE_NODE);
}

/* The last token of all is one still. */
static void the_last_token(void **state)
{
    rl_client *client = fencing(ts_server_url(P1), RL_FENCE_QUORUM, 0);
    (void)state;
    set_counter(P1, "9007199254740990");
    rl_lock *lock = taken(client, "f4", LONG);
    ts_equal(rl_lock_fence(lock), RL_MAX_FENCE - 1);
    ts_check(ts_holds(P1, "{rl:f4}:fence", "9007199254740991"), "written as %s", ts_command(P1, "GET {rl:f4}:fence"));
    let_go(lock);
    ts_equal(refused(client, "f4", LONG, 0, NULL), RL_E_NO_QUORUM);
    rl_client_free(client);
}

/* F4: in quorum mode it is a vote against. */
static void an_unusable_counter_is_a_vote_against(void **state)
{
    struct net net;
    rl_report *report = new_report();
    (void)state;
    net_start(&net);
    rl_client *client = fencing(net.urls, RL_FENCE_QUORUM, 0);
    warm_up(client);
    ts_proxy_delay(net.at[1], TS_DOWN, 50); /* so that the first is heard */
    ts_proxy_delay(net.at[2], TS_DOWN, 50);
    for (size_t i = 0; i < sizeof unusable / sizeof *unusable; i++) {
        rl_lock *lock = NULL;
        set_counter(P1, unusable[i]);
        ts_equal(take(client, "f4", LONG, 0, report, &lock), RL_OK);
        check_said(report, 0, RL_NODE_ERROR, text_of_trouble);
        let_go(lock);
        check_gone("rl:f4");
    }
    set_counter(P2, "text");
    ts_equal(refused(client, "f4", LONG, 0, report), RL_E_NO_QUORUM);
    check_said(report, 1, RL_NODE_ERROR, text_of_trouble);
    check_gone("rl:f4");
    rl_report_free(report);
    rl_client_free(client);
}

/* S6, S8.6: trouble with the counter does not keep a lock from being released. */
static void a_release_does_not_mind(void **state)
{
    rl_client *client = fencing(p.urls, RL_FENCE_QUORUM, 0);
    (void)state;
    for (int i = 0; i < 3; i++) {
        rl_lock *lock = taken(client, "f4", LONG);
        for (int s = 0; s < p.count; s++) {
            ts_check(ts_wait_present(p.at[s], "rl:f4", SOON), "not granted");
            ts_del(p.at[s], "{rl:f4}:fence");
            if (i == 0)
                ts_command(p.at[s], "RPUSH {rl:f4}:fence a");
            else
                set_counter(p.at[s], unusable[i - 1]);
        }
        let_go(lock);
        check_gone("rl:f4");
        for (int s = 0; s < p.count; s++)
            ts_del(p.at[s], "{rl:f4}:fence");
    }
    rl_client_free(client);
}

/* ---- F1: stopped in between ------------------------------------------------------------------------------------------------------ */

struct stopped {
    const char *urls;
    uint32_t fence, node;
    int64_t ttl;
};

static int acquire_slowly(int out, void *arg)
{
    const struct stopped *s = arg;
    rl_client *client = fencing(s->urls, s->fence, s->node);
    rl_lock *lock = NULL;
    int rc = rl_client_check(client, NULL); /* connects; two EVALSHA a node */
    ts_check(rc == RL_OK, "rl_client_check: %s", rl_strstatus(rc));
    rc = take(client, "f1", s->ttl, 0, NULL, &lock);
    ts_check((lock != NULL) == (rc == RL_OK) && write(out, &rc, sizeof rc) == sizeof rc, "%s", rl_strstatus(rc));
    rl_lock_free(lock);
    rl_client_free(client);
    return 0;
}

/* A is stopped while what would finish its acquisition is held; B acquires; A goes on. */
static void is_stopped_in_between(struct net *net, const struct stopped *a)
{
    int rc = RL_OK;
    ts_child child = ts_child_start(acquire_slowly, (void *)(uintptr_t)a);
    ts_check(ts_proxy_wait_held(net->at[1], 1, SOON), "nothing is held");
    ts_check(kill(child.pid, SIGSTOP) == 0, "kill");
    check_gone("rl:f1");
    rl_client *client = fencing(p.urls, a->fence, a->node);
    rl_lock *lock = taken(client, "f1", LONG);
    int64_t token = rl_lock_fence(lock);
    for (int i = 0; i < 3; i++)
        ts_proxy_unhold(net->at[i]);
    kill(child.pid, SIGCONT);
    ts_child_read(&child, &rc, sizeof rc, SOON);
    ts_check(rc != RL_OK, "A holds it too");
    ts_equal(ts_child_wait(&child, SOON), 0);
    ts_check(rl_lock_remaining_ms(lock) > 0 && ts_servers_holding(&p, "rl:f1") >= 2, "B has lost it");
    let_go(lock);
    rising(client, "f1", 3, token);
    rl_client_free(client);
}

/* F1: before the mint. */
static void stopped_before_the_mint(void **state)
{
    struct net net;
    struct stopped a = {net.urls, RL_FENCE_NODE, 1, 1500};
    (void)state;
    net_start(&net);
    ts_proxy_fault(net.at[1], "EVALSHA", 2, TS_HOLD, 0);
    is_stopped_in_between(&net, &a);
}

/* F1: after the mint, whose answer is not read in time. */
static void stopped_before_the_minted_token_is_read(void **state)
{
    struct net net;
    struct stopped a = {net.urls, RL_FENCE_NODE, 1, 1500};
    int rc = RL_OK;
    (void)state;
    net_start(&net);
    ts_proxy_fault(net.at[1], "EVALSHA", 2, TS_DELAY_REPLY, 2000);
    ts_child child = ts_child_start(acquire_slowly, &a);
    ts_check(ts_wait_present(P2, "{rl:f1}:fence", SOON), "nothing is minted");
    kill(child.pid, SIGSTOP);
    int64_t first = counter(P2, "{rl:f1}:fence");
    check_gone("rl:f1");
    rl_client *client = fencing(p.urls, RL_FENCE_NODE, 1);
    rl_lock *lock = taken(client, "f1", LONG);
    ts_check(rl_lock_fence(lock) > first, "B's token is not the highest");
    ts_sleep_ms(1000);
    kill(child.pid, SIGCONT);
    ts_child_read(&child, &rc, sizeof rc, SOON);
    ts_equal(rc, RL_E_TOO_SLOW);
    ts_equal(ts_child_wait(&child, SOON), 0);
    ts_equal(counter(P2, "{rl:f1}:fence"), rl_lock_fence(lock));
    let_go(lock);
    rl_client_free(client);
}

/* The first node's grant comes first. */
static void hold_confirmations(struct net *net)
{
    for (int i = 1; i < 3; i++) {
        ts_proxy_delay(net->at[i], TS_DOWN, 400);
        ts_proxy_fault(net->at[i], "EVALSHA", 3, TS_HOLD, 0);
    }
}

/* F1 in quorum mode: between grant and confirmation. */
static void stopped_before_the_confirmation(void **state)
{
    struct net net;
    struct stopped a = {net.urls, RL_FENCE_QUORUM, 0, 1500};
    (void)state;
    net_start(&net);
    ts_command(P1, "SET {rl:f1}:fence 8000000000000000"); /* the others have to follow */
    hold_confirmations(&net);
    is_stopped_in_between(&net, &a);
}

/* Design 5, step 3: the lock vanishes from two nodes before they are asked to confirm, and B takes it there. A's lease would last. */
static void another_took_it_before_the_confirmation(void **state)
{
    struct net net;
    struct stopped a = {net.urls, RL_FENCE_QUORUM, 0, LONG};
    int rc = RL_OK;
    (void)state;
    net_start(&net);
    ts_command(P1, "SET {rl:f1}:fence 8000000000000000");
    hold_confirmations(&net);
    ts_child child = ts_child_start(acquire_slowly, &a);
    ts_check(ts_proxy_wait_held(net.at[1], 1, SOON) && ts_proxy_wait_held(net.at[2], 1, SOON), "nothing is held");
    ts_check(ts_del(P2, "rl:f1") && ts_del(P3, "rl:f1"), "A was not granted it");
    rl_client *client = fencing(p.urls, RL_FENCE_QUORUM, 0);
    rl_lock *lock = taken(client, "f1", LONG);
    ts_between(rl_lock_fence(lock), 1, 7999999999999999);
    ts_proxy_unhold(net.at[1]);
    ts_proxy_unhold(net.at[2]);
    ts_child_read(&child, &rc, sizeof rc, SOON);
    ts_equal(rc, RL_BUSY);
    ts_equal(ts_child_wait(&child, SOON), 0);
    ts_check(ts_wait_absent(P1, "rl:f1", SOON), "A's lock stays");
    let_go(lock);
    rl_client_free(client);
}

/* ---- Away and back --------------------------------------------------------------------------------------------------------------- */

/* Takes turns being away. */
static void others_leave_in_turn(void **state)
{
    struct net net;
    int64_t last = 0;
    (void)state;
    net_start(&net);
    rl_client *client = fencing(net.urls, RL_FENCE_QUORUM, 0);
    for (int i = 0; i < 7; i++) {
        away(net.at[i % 3]);
        last = rising(client, "f5", i == 0 ? 100 : 20, last);
        back(net.at[i % 3]);
        warm_up(client);
    }
    rl_client_free(client);
}

/* Counters beyond the clock: it has no part in whether they agree. */
static void set_counters(const char *key)
{
    for (int i = 0; i < p.count; i++)
        ts_set_px(p.at[i], key, "8000000000000000", LONG);
}

/* A cycle that takes so many calls of that server. */
static void check_cycle(rl_client *client, ts_server *server, int64_t calls)
{
    ts_command(server, "CONFIG RESETSTAT");
    cycle(client, "f5");
    await_calls(server, "evalsha", calls);
    ts_sleep_ms(20);
    ts_equal(ts_calls(server, "evalsha"), calls);
    ts_equal(ts_calls(server, "eval"), 0);
}

/* F5, and design 5: one confirmation, once. */
static void one_was_away_for_a_hundred(void **state)
{
    struct net net;
    (void)state;
    net_start(&net);
    rl_client *client = fencing(net.urls, RL_FENCE_QUORUM, 0);
    set_counters("{rl:f5}:fence");
    int64_t last = rising(client, "f5", 3, 0);
    away(net.at[2]);
    last = rising(client, "f5", 100, last);
    back(net.at[2]);
    warm_up(client);
    away(net.at[0]);
    check_cycle(client, P3, 3);
    for (int i = 0; i < 5; i++)
        check_cycle(client, i % 2 ? P2 : P3, 2);
    ts_between(rising(client, "f5", 3, last), last + 9, last + 10);
    rl_client_free(client);
}

/* Where the nodes agree, one call acquires and one releases. */
static void agreement_costs_nothing(void **state)
{
    rl_client *client = fencing(p.urls, RL_FENCE_QUORUM, 0);
    (void)state;
    warm_up(client);
    set_counters("{rl:rounds}:fence");
    for (int i = 0; i < p.count; i++)
        ts_command(p.at[i], "CONFIG RESETSTAT");
    for (int i = 1; i <= 50; i++)
        ts_equal(cycle(client, "rounds"), 8000000000000000 + i);
    ts_sleep_ms(20);
    for (int i = 0; i < p.count; i++) {
        await_calls(p.at[i], "evalsha", 100);
        ts_equal(ts_calls(p.at[i], "evalsha"), 100);
        ts_equal(ts_calls(p.at[i], "eval"), 0);
    }
    rl_client_free(client);
}

/* Design 5, step 5. */
static void a_release_heals(void **state)
{
    rl_client *client = fencing(p.urls, RL_FENCE_QUORUM, 0);
    (void)state;
    warm_up(client);
    rising(client, "heal", 3, 0);
    ts_command(P3, "SET {rl:heal}:fence 7");
    ts_command(P3, "SET rl:heal another's PX %d", LONG); /* it does not even grant */
    int64_t fence = cycle(client, "heal");
    await_counter(P3, "{rl:heal}:fence", fence);
    ts_equal(counter(P3, "{rl:heal}:fence"), fence);
    ts_between(ts_pttl(P3, "{rl:heal}:fence"), 86400000 - 60000, 86400000);
    ts_check(ts_holds(P3, "rl:heal", "another's"), "another's lock was deleted");
    ts_del(P3, "rl:heal");
    ts_set_px(P3, "{rl:heal}:fence", "8999999999999999", LONG); /* it never lowers one */
    cycle(client, "heal");
    ts_between(counter(P3, "{rl:heal}:fence"), 8999999999999999, RL_MAX_FENCE);
    rl_client_free(client);
}

/* All three nodes are known to have granted it. */
static void hear_all(rl_lock *lock)
{
    for (int i = 0; i < 3; i++) {
        ts_equal(rl_extend(lock, LONG, NULL), RL_OK);
        ts_sleep_ms(20); /* what comes now is read by the next */
    }
}

/* An "absent" may be read only by the next call. */
static bool is_topped_up(void *lock)
{
    ts_equal(rl_extend(lock, LONG, NULL), RL_OK);
    return ts_command(P3, "KEYS rl:*")[0] != '\0';
}

/* S5.3 */
static void a_top_up_raises_the_counter_first(void **state)
{
    static const char *const before[] = {NULL, "7", "8999999999999999"};
    rl_client *client = fencing(p.urls, RL_FENCE_QUORUM, 0);
    (void)state;
    for (size_t i = 0; i < sizeof before / sizeof *before; i++) {
        rl_lock *lock = taken(client, "top-up", LONG);
        int64_t fence = rl_lock_fence(lock);
        hear_all(lock);
        ts_command(P3, "FLUSHALL");
        if (before[i])
            ts_set_px(P3, "{rl:top-up}:fence", before[i], 0);
        ts_check(ts_eventually(SOON, is_topped_up, lock), "not topped up");
        ts_check(ts_holds(P3, "rl:top-up", rl_lock_token(lock)), "another token");
        int64_t now_at = counter(P3, "{rl:top-up}:fence"); /* one that was missing comes back at the clock */
        ts_check(i == 2      ? now_at == 8999999999999999
                 : before[i] ? now_at == fence
                             : now_at >= fence,
                 "it is %lld", (long long)now_at);
        if (i < 2)
            ts_between(ts_pttl(P3, "{rl:top-up}:fence"), 86400000 - 60000, 86400000);
        let_go(lock);
        ts_command(P3, "FLUSHALL");
    }
    rl_client_free(client);
}

/* ... or does not set it. */
static void no_top_up_beside_an_unusable_counter(void **state)
{
    rl_client *client = fencing(p.urls, RL_FENCE_QUORUM, 0);
    rl_lock *lock = taken(client, "top-up", LONG);
    (void)state;
    hear_all(lock);
    ts_command(P3, "FLUSHALL");
    ts_command(P3, "CONFIG RESETSTAT");
    ts_command(P3, "SET {rl:top-up}:fence text");
    for (int64_t end = ts_mono_ms() + SOON; ts_calls(P3, "exists") == 0 && ts_mono_ms() < end;) /* the script's first */
        ts_equal(rl_extend(lock, LONG, NULL), RL_OK);
    await_calls(P3, "exists", 1);
    ts_check(!ts_exists(P3, "rl:top-up") && ts_holds(P3, "{rl:top-up}:fence", "text"), "topped up");
    let_go(lock);
    rl_client_free(client);
}

static void an_imported_lock_carries_its_fence(void **state)
{
    rl_client *client = fencing(p.urls, RL_FENCE_QUORUM, 0), *other = fencing(p.urls, RL_FENCE_QUORUM, 0);
    rl_lock *lock = taken(client, "import", LONG), *imported = NULL;
    int64_t fence = rl_lock_fence(lock);
    (void)state;
    ts_equal(rl_lock_import(other, "import", 6, rl_lock_token(lock), -1, &imported), RL_E_INVALID);
    ts_equal(rl_lock_import(other, "import", 6, rl_lock_token(lock), RL_MAX_FENCE, &imported), RL_E_INVALID);
    ts_check(imported == NULL, "a handle");
    ts_equal(rl_lock_import(other, "import", 6, rl_lock_token(lock), RL_MAX_FENCE - 1, &imported), RL_OK);
    rl_lock_free(imported);
    ts_equal(rl_lock_import(other, "import", 6, rl_lock_token(lock), 0, &imported), RL_OK);
    ts_equal(rl_lock_fence(imported), 0);
    rl_lock_free(imported);
    ts_equal(rl_lock_import(other, "import", 6, rl_lock_token(lock), fence, &imported), RL_OK);
    ts_equal(rl_lock_fence(imported), fence);
    hear_all(lock);
    rl_lock_free(lock);
    ts_command(P3, "FLUSHALL");
    ts_check(ts_eventually(SOON, is_topped_up, imported), "not topped up"); /* as by the first */
    ts_equal(rl_lock_fence(imported), fence);
    ts_check(counter(P3, "{rl:import}:fence") >= fence, "the counter is not raised");
    let_go(imported);
    check_gone("rl:import");
    rising(client, "import", 2, fence);
    rl_client_free(client);
    rl_client_free(other);
}

/* ---- Writes that check the token -------------------------------------------------------------------------------------------------- */

/* Two holders, of whom the first is stale. */
struct two {
    rl_client *client, *store;
    rl_lock *stale, *fresh;
};

static void two_start(struct two *t)
{
    t->client = fencing(ts_server_url(P1), RL_FENCE_QUORUM, 0);
    t->store = patient(ts_server_url(P2));
    t->stale = taken(t->client, "two", 300);
    check_gone("rl:two");
    t->fresh = taken(t->client, "two", LONG);
}

static void two_end(struct two *t)
{
    rl_lock_free(t->stale);
    rl_lock_free(t->fresh);
    rl_client_free(t->client);
    rl_client_free(t->store);
}

static int set(struct two *t, rl_lock *lock, const char *value)
{
    return rl_fenced_set(t->store, "data", 4, lock, value, strlen(value), NULL);
}

static int show(struct two *t, rl_lock *lock)
{
    return rl_fenced_begin(t->store, "data", 4, lock, NULL);
}

/* F6 */
static void a_stale_writer_is_refused(void **state)
{
    struct two t;
    (void)state;
    two_start(&t);
    ts_equal(set(&t, t.stale, "by A, in time"), RL_OK);
    ts_equal(set(&t, t.stale, "by A, again"), RL_OK);
    ts_equal(set(&t, t.fresh, "by B"), RL_OK);
    ts_equal(set(&t, t.stale, "by A, late"), RL_LOST);
    ts_equal(show(&t, t.stale), RL_LOST);
    ts_check(ts_holds(P2, "data", "by B"), "the data is \"%s\"", ts_command(P2, "GET data"));
    ts_equal(set(&t, t.fresh, "by B, again"), RL_OK);
    ts_equal(show(&t, t.fresh), RL_OK);
    ts_check(ts_holds(P2, "data", "by B, again"), "the data is \"%s\"", ts_command(P2, "GET data"));
    ts_equal(ts_pttl(P2, "{data}:fenced"), -1);
    ts_equal(ts_command_int(P2, "HGET {data}:fenced fence"), rl_lock_fence(t.fresh));
    ts_check(strcmp(ts_command(P2, "HGET {data}:fenced holder"), rl_lock_token(t.fresh)) == 0, "another holder");
    two_end(&t);
}

/* F7 */
static void a_stale_writer_after_the_first_read(void **state)
{
    struct two t;
    (void)state;
    two_start(&t);
    ts_equal(show(&t, t.stale), RL_OK);
    ts_check(!ts_exists(P2, "data"), "showing a token writes data");
    ts_equal(show(&t, t.fresh), RL_OK);
    ts_equal(set(&t, t.stale, "by A"), RL_LOST);
    ts_check(!ts_exists(P2, "data"), "a stale write");
    ts_equal(set(&t, t.fresh, "by B"), RL_OK);
    two_end(&t);
}

/* S8.7: an equal token of another holder is not accepted. */
static void an_equal_token_of_another(void **state)
{
    struct two t;
    rl_lock *twin = NULL;
    (void)state;
    two_start(&t);
    ts_equal(show(&t, t.fresh), RL_OK);
    ts_equal(rl_lock_import(t.client, "two", 3, rl_lock_token(t.stale), rl_lock_fence(t.fresh), &twin), RL_OK);
    ts_equal(show(&t, twin), RL_LOST);
    ts_equal(set(&t, twin, "twin"), RL_LOST);
    rl_lock_free(twin);
    ts_equal(rl_lock_import(t.client, "two", 3, rl_lock_token(t.fresh), rl_lock_fence(t.fresh), &twin), RL_OK);
    ts_equal(set(&t, twin, "the same holder"), RL_OK);
    rl_lock_free(twin);
    two_end(&t);
}

static void a_store_that_cannot_judge(void **state)
{
    static const char *const bad[] = {"text", "9007199254740992", "-1", "1e3", ""};
    struct two t;
    rl_report *report = new_report();
    (void)state;
    two_start(&t);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ts_reply(P2, "HSET {data}:fenced fence %s", bad[i]);
        ts_equal(show(&t, t.fresh), RL_E_NO_QUORUM);
        ts_equal(rl_fenced_set(t.store, "data", 4, t.fresh, "x", 1, report), RL_E_NO_QUORUM);
        check_said(report, 0, RL_NODE_ERROR, "the highest fencing token is not usable");
    }
    ts_del(P2, "{data}:fenced");
    ts_command(P2, "SET {data}:fenced text");
    ts_equal(rl_fenced_begin(t.store, "data", 4, t.fresh, report), RL_E_NO_QUORUM);
    check_said(report, 0, RL_NODE_ERROR, "WRONGTYPE");
    ts_check(!ts_exists(P2, "data"), "it was written");
    ts_del(P2, "{data}:fenced");
    ts_command(P2, "HSET {data}:fenced fence 9007199254740991");
    ts_equal(set(&t, t.fresh, "x"), RL_LOST);
    ts_server_kill(P2);
    ts_equal(set(&t, t.fresh, "x"), RL_E_NO_QUORUM);
    two_end(&t);
    rl_report_free(report);
}

static void values_of_all_sizes(void **state)
{
    static const size_t sizes[] = {0, 1, 1000, 65536, 1048575, RL_MAX_VALUE};
    struct two t;
    char *value = malloc(RL_MAX_VALUE + 1);
    (void)state;
    two_start(&t);
    for (size_t i = 0; i <= RL_MAX_VALUE; i++)
        value[i] = (char)(i * 7 + i / 251);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int rc = rl_fenced_set(t.store, "d\0\r\n", 4, t.fresh, value, sizes[i], NULL);
        ts_check(rc == RL_OK, "%zu bytes: %s", sizes[i], rl_strstatus(rc));
        const redisReply *reply = ts_reply(P2, "GET %b", "d\0\r\n", (size_t)4);
        ts_check(reply->type == REDIS_REPLY_STRING && reply->len == sizes[i] && memcmp(reply->str, value, sizes[i]) == 0,
                 "%zu bytes: %zu came", sizes[i], reply->len);
    }
    ts_equal(rl_fenced_set(t.store, "d", 1, t.fresh, value, RL_MAX_VALUE + 1, NULL), RL_E_INVALID);
    ts_check(!ts_exists(P2, "d"), "it was written");
    free(value);
    two_end(&t);
}

static void what_is_invalid(void **state)
{
    char key[RL_MAX_NAME + 1];
    struct two t;
    rl_client *three = patient(p.urls), *plain = patient(ts_server_url(P1));
    rl_lock *without = taken(plain, "plain", LONG);
    (void)state;
    memset(key, 'k', sizeof key);
    two_start(&t);
    ts_equal(rl_fenced_begin(NULL, key, 1, t.fresh, NULL), RL_E_INVALID);
    ts_equal(rl_fenced_begin(t.store, NULL, 1, t.fresh, NULL), RL_E_INVALID);
    ts_equal(rl_fenced_begin(t.store, key, 0, t.fresh, NULL), RL_E_INVALID);
    ts_equal(rl_fenced_begin(t.store, key, RL_MAX_NAME + 1, t.fresh, NULL), RL_E_INVALID);
    ts_equal(rl_fenced_begin(t.store, key, RL_MAX_NAME, t.fresh, NULL), RL_OK);
    ts_equal(rl_fenced_begin(t.store, key, 1, NULL, NULL), RL_E_INVALID);
    ts_equal(rl_fenced_begin(t.store, key, 1, without, NULL), RL_E_INVALID);
    ts_equal(rl_fenced_begin(three, key, 1, t.fresh, NULL), RL_E_INVALID);
    ts_equal(rl_fenced_set(three, key, 1, t.fresh, "", 0, NULL), RL_E_INVALID);
    ts_equal(rl_fenced_set(t.store, key, 1, without, "", 0, NULL), RL_E_INVALID);
    ts_equal(rl_fenced_set(t.store, key, 1, t.fresh, NULL, 0, NULL), RL_E_INVALID);
    let_go(without);
    two_end(&t);
    rl_client_free(three);
    rl_client_free(plain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        REAL_TEST(three_ways),
        REAL_TEST(a_request_says_otherwise),
        REAL_TEST(the_designated_node_mints),
        REAL_TEST(no_lock_without_the_designated_node),
        REAL_TEST(clients_are_checked),
        REAL_TEST(a_missing_right_is_found),
        REAL_TEST(counters_have_a_key_of_their_own),
        REAL_TEST(lock_and_counter_share_a_slot),
        REAL_TEST(counters_outlive_the_lock_by_a_day),
        REAL_TEST(a_deleted_counter),
        REAL_TEST(a_memory_is_lost),
        REAL_TEST(a_snapshot_is_older),
        REAL_TEST(a_snapshot_is_older_and_another_away),
        REAL_TEST(an_unusable_counter_is_an_error),
        REAL_TEST(the_last_token),
        REAL_TEST(an_unusable_counter_is_a_vote_against),
        REAL_TEST(a_release_does_not_mind),
        REAL_TEST(stopped_before_the_mint),
        REAL_TEST(stopped_before_the_minted_token_is_read),
        REAL_TEST(stopped_before_the_confirmation),
        REAL_TEST(another_took_it_before_the_confirmation),
        REAL_TEST(others_leave_in_turn),
        REAL_TEST(one_was_away_for_a_hundred),
        REAL_TEST(agreement_costs_nothing),
        REAL_TEST(a_release_heals),
        REAL_TEST(a_top_up_raises_the_counter_first),
        REAL_TEST(no_top_up_beside_an_unusable_counter),
        REAL_TEST(an_imported_lock_carries_its_fence),
        REAL_TEST(a_stale_writer_is_refused),
        REAL_TEST(a_stale_writer_after_the_first_read),
        REAL_TEST(an_equal_token_of_another),
        REAL_TEST(a_store_that_cannot_judge),
        REAL_TEST(values_of_all_sizes),
        REAL_TEST(what_is_invalid),
    };
    return REAL_RUN("fence", tests);
}
