/* test_keep_steps.c - what is told of a lock that is lost between the turns in which it is won and handed over.
 */
#include "steps.h"

#include "keep_event.h"

static bool is_set_on(int nodes)
{
    int count = 0;
    for (int i = 0; i < nodes; i++)
        count += ts_calls(p.at[i], "set") > 0;
    return count == nodes;
}

/* All answers are there, if anything was asked: then the loop learns of all in one turn. */
static void let_answers_come(void)
{
    for (int64_t end = ts_mono_ms() + 20; !is_set_on(3) && ts_mono_ms() < end;)
        ts_sleep_ms(1);
    ts_sleep_ms(1);
}

static void warm_up_loop(struct loop *loop)
{
    struct call warm = {0};
    start_acquire(loop->async, "warm-up", LONG, 0, &warm);
    AWAIT(loop, warm.times);
    ts_equal(release(loop, warm.lock), RL_OK);
    await_empty(loop);
    for (int i = 0; i < 3; i++)
        ts_command(p.at[i], "CONFIG RESETSTAT");
}

/* The loop stands still for longer than the lease after so many steps. A lock that is not handed over is nothing to its holder: no event
 * of it; one that is handed over and lost at once is told of after that. Returns how many steps it took. */
static int stall_after(int count, int *ret_times_too_slow)
{
    struct loop loop;
    struct held held = {0};
    int taken = 0;
    base_start(&loop);
    rl_options options = options_with(SOON, 300);
    loop.async = async_with(&loop, p.urls, &options);
    warm_up_loop(&loop);
    rl_request request = listening(&held, "job", 60 * (int64_t)ts_slowness());
    start_keeping(&loop, &held, &request);
    for (; taken < count && !held.times; taken++) {
        step(&loop);
        let_answers_come();
    }
    ts_sleep_ms(request.ttl_ms);
    AWAIT(&loop, held.times && (held.status != RL_OK || held.events));
    *ret_times_too_slow += held.status == RL_E_TOO_SLOW;
    ts_equal(held.events, held.status == RL_OK);
    if (held.status == RL_OK)
        check_told(&held, 0, RL_EVENT_LOST, RL_LOST_EXPIRED);
    rl_lock_free(held.lock);
    run_for(&loop, 20);
    stepped_end(&loop);
    for (int i = 0; i < 3; i++)
        ts_command(p.at[i], "FLUSHALL");
    return taken;
}

static void lost_before_it_was_handed_over(void **state)
{
    (void)state;
    int too_slow = 0, count = 0;
    while (stall_after(count, &too_slow) == count)
        count++;
    printf("%d steps, %d times too slow\n", count, too_slow);
    ts_check(too_slow > 0, "never too slow");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        REAL_TEST(lost_before_it_was_handed_over),
    };
    return REAL_RUN("event-keep-steps", tests);
}
