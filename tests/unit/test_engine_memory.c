/* test_engine_memory.c - whole lives of locks with the n-th allocation failed, for every n: once, or with all that follow until the call
 * is over. Whatever a call then answers, it is a status of its kind; what it set has an owner or is taken back by itself (S3.6); and
 * no memory is lost. Leases are far longer than the tests, so that no key goes by itself. */
#include "servers.h"

static const int64_t long_ms = 100000000;

/* ---- Lives ----------------------------------------------------------------------------------------------------------------------------- */

static void prepare_nothing(void) {}

static void prepare_connections(void)
{
    assert_int_equal(let_go(hold("warm-up", 1000)), RL_OK);
}

static rl_lock *held;

static void prepare_lock(void)
{
    held = hold("a", long_ms);
}

static void prepare_lock_that_one_lost(void)
{
    held = hold("a", long_ms);
    lose_keys(&net.servers[2]);
}

static void prepare_lock_without_scripts(void)
{
    held = hold("a", long_ms);
    for (uint32_t i = 0; i < net.count; i++)
        memset(net.servers[i].loaded, 0, sizeof net.servers[i].loaded);
}

static void prepare_restarted_servers(void)
{
    prepare_connections();
    for (uint32_t i = 0; i < net.count; i++)
        restart(i, true);
}

static void prepare_others(void)
{
    prepare_connections();
    hold_by_other(&net.servers[0], "a", 150 * MS);
    hold_by_other(&net.servers[1], "a", 150 * MS);
}

static void prepare_silence(void)
{
    prepare_connections();
    net.servers[1].mute = net.servers[2].mute = true;
}

static void prepare_lock_and_silence(void)
{
    held = hold("a", long_ms);
    net.servers[1].mute = net.servers[2].mute = true;
}

/* Does the report tell it? Or was a connection found dead: with another node short of memory, one too many. */
static bool was_short(const struct rli_op *op)
{
    for (uint32_t i = 0; i < net.count; i++)
        if (op->results[i].sys_errno == ENOMEM || op->results[i].sys_errno == ECONNRESET)
            return true;
    return false;
}

static void acquire_for(int64_t wait_ms)
{
    struct rli_op *op = start_acquire("a", long_ms, wait_ms);
    rl_lock *lock;

    if (!op)
        return; /* RL_E_NO_MEMORY */
    pass(500 * MS);
    bool is_short = was_short(op);
    int status = take(op, &lock);
    if (status != RL_OK && status != RL_E_NO_MEMORY && status != RL_BUSY && !(status == RL_E_NO_QUORUM && is_short))
        fail_msg("acquire: %d", status);
    held = lock;
}

static void acquire(void)
{
    acquire_for(0);
}

static void acquire_and_wait(void)
{
    acquire_for(300);
}

static void acquire_in_silence(void)
{
    struct rli_op *op = start_acquire("a", long_ms, 0);

    if (!op)
        return;
    pass(300 * MS);
    int status = take(op, &held);
    if (status != RL_E_NO_QUORUM && status != RL_E_NO_MEMORY)
        fail_msg("acquire: %d", status);
}

static void acquire_and_cancel(void)
{
    struct rli_op *op = start_acquire("a", long_ms, RL_FOREVER);

    if (!op)
        return;
    for (uint32_t i = 0; i < net.count; i++) {
        move_up(i);
        serve(&net.servers[i]);
    }
    if (!is_over(op))
        rli_op_cancel(op, fake.now);
    int status = take(op, &held);
    if (status != RL_CANCELED && status != RL_E_NO_MEMORY)
        fail_msg("cancel: %d", status);
}

static void extend(void)
{
    struct rli_op *op = start_extend(held, long_ms + 1000);

    if (!op)
        return;
    pass(300 * MS);
    bool is_short = was_short(op);
    int status = take(op, NULL);
    if (status != RL_OK && !(status == RL_E_NO_QUORUM && (is_short || net.servers[1].mute)))
        fail_msg("extend: %d", status);
    assert_true(rl_lock_remaining_ms(held) > 0); /* the old deadline stands */
}

static void release(void)
{
    struct rli_op *op = start_release(held);

    held = NULL;
    if (!op)
        return;
    pass(300 * MS);
    bool is_short = was_short(op);
    int status = take(op, NULL);
    if (status != RL_OK && !(status == RL_E_NO_QUORUM && (is_short || net.servers[1].mute)))
        fail_msg("release: %d", status);
}

static void prepare_disagreement(void)
{
    prepare_connections();
    for (uint32_t i = 0; i < net.count; i++)
        put_number(&net.servers[i], "{a}:fence", INT64_C(1000000000000000) + 10 * i, 86400000);
}

static const struct life {
    const char *name;
    void (*prepare)(void), (*call)(void);
    uint32_t fence;
} lives[] = {
    {"acquire, from the first connection on", prepare_nothing, acquire, RL_FENCE_NONE},
    {"acquire", prepare_connections, acquire, RL_FENCE_NONE},
    {"acquire from restarted servers", prepare_restarted_servers, acquire, RL_FENCE_NONE},
    {"acquire after others", prepare_others, acquire_and_wait, RL_FENCE_NONE},
    {"acquire in silence", prepare_silence, acquire_in_silence, RL_FENCE_NONE},
    {"acquire and cancel", prepare_connections, acquire_and_cancel, RL_FENCE_NONE},
    {"extend", prepare_lock, extend, RL_FENCE_NONE},
    {"extend and top up", prepare_lock_that_one_lost, extend, RL_FENCE_NONE},
    {"extend without scripts", prepare_lock_without_scripts, extend, RL_FENCE_NONE},
    {"extend in silence", prepare_lock_and_silence, extend, RL_FENCE_NONE},
    {"release", prepare_lock, release, RL_FENCE_NONE},
    {"release without scripts", prepare_lock_without_scripts, release, RL_FENCE_NONE},
    {"release in silence", prepare_lock_and_silence, release, RL_FENCE_NONE},
    {"acquire with a fence, from the first connection on", prepare_nothing, acquire, RL_FENCE_QUORUM},
    {"acquire with a fence", prepare_disagreement, acquire, RL_FENCE_QUORUM},
    {"acquire with a fence and cancel", prepare_disagreement, acquire_and_cancel, RL_FENCE_QUORUM},
    {"acquire with a designated node", prepare_connections, acquire, RL_FENCE_NODE},
    {"acquire with a designated node, in silence", prepare_silence, acquire_in_silence, RL_FENCE_NODE},
    {"extend with a fence and top up", prepare_lock_that_one_lost, extend, RL_FENCE_QUORUM},
    {"release with a fence", prepare_lock_without_scripts, release, RL_FENCE_QUORUM},
};

/* ---- Each allocation of each, failed -------------------------------------------------------------------------------------------------- */

/* No key of ours is left within a few seconds after memory is there again. */
static void everything_is_taken_back(const struct life *life, uint64_t n)
{
    for (uint32_t i = 0; i < net.count; i++)
        net.servers[i].mute = false;
    pass(20000 * MS);
    for (uint32_t i = 0; i < net.count; i++) {
        int holds = holder(&net.servers[i], "a");
        if (holds && strcmp(net.tokens[holds - 1], "another's") != 0)
            fail_msg("%s, allocation %d: server %u still holds it: %s", life->name, (int)n, i, net.servers[i].log);
        assert_int_equal(node_of(i)->owes_count, 0);
    }
    assert_null(net.client->engine.running);
}

/* Returns whether there was an n-th allocation. */
static bool fail_nth(const struct life *life, uint64_t n, bool forever)
{
    rl_options options = test_options();

    options.fence = life->fence;
    begin_with(3, &options);
    held = NULL;
    life->prepare();
    empty_pools();
    uint64_t before = fake.calls;
    fake.fail_at = before + n;
    fake.fail_forever = forever;
    life->call();
    bool failed = fake.calls >= fake.fail_at;
    if (forever && failed)
        pass(1000 * MS); /* so long it stays short */
    fake.fail_at = 0;
    if (held) {
        for (uint32_t i = 0; i < net.count; i++)
            net.servers[i].mute = false;
        settle();
        struct rli_op *op = start_release(held);
        pass(300 * MS);
        assert_int_equal(take(op, NULL), RL_OK);
    }
    everything_is_taken_back(life, n);
    end();
    return failed;
}

static void every_allocation_failed_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof lives / sizeof *lives; i++)
        for (uint64_t n = 1; fail_nth(&lives[i], n, false); n++)
            assert_true(n < 1000);
}

static void every_allocation_and_all_after_it_failed(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof lives / sizeof *lives; i++)
        for (uint64_t n = 1; fail_nth(&lives[i], n, true); n++)
            assert_true(n < 1000);
}

/* A client that there is no memory for is none, and leaves nothing. */
static void a_client_without_memory_is_none(void **state)
{
    static const char urls[] = "redis://us:pw@10.0.0.1,unix://:pw@/run/s,redis://name.example:7/3";
    int rc = RL_E_NO_MEMORY;
    (void)state;
    for (uint64_t n = 1; rc != RL_OK; n++) {
        size_t at = SIZE_MAX;
        fake_begin();
        memset(&net, 0, sizeof net);
        net.client = fake_calloc(sizeof *net.client);
        fake.fail_at = n;
        rc = rli_client_init(net.client, urls, NULL, &at);
        fake.fail_at = 0;
        assert_true(at == SIZE_MAX);
        if (rc == RL_OK) {
            end();
            assert_true(n > 10);
        } else {
            assert_int_equal(rc, RL_E_NO_MEMORY);
            rli_free(net.client);
        }
        assert_int_equal(fake.live, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_failed_once),
        cmocka_unit_test(every_allocation_and_all_after_it_failed),
        cmocka_unit_test(a_client_without_memory_is_none),
    };
    return cmocka_run_group_tests_name("engine_memory", tests, NULL, NULL);
}
