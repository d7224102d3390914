/* test_heap.c - the heap of deadlines gives the earliest first: random operations against a plain array. */
#include "heap.h"
#include "unit.h"

#include <string.h>

enum { TIMERS = 300 };

/* Every timer is where it says, none is earlier than its parent, and exactly the armed ones are in it. */
static void check_shape(const struct rli_heap *heap, const struct rli_timer *timers, const rli_instant *model, size_t count)
{
    size_t armed = 0;
    assert_true(heap->count <= heap->room);
    for (size_t i = 0; i < heap->count; i++) {
        assert_int_equal(heap->entries[i].timer->place, i + 1);
        assert_true(i == 0 || heap->entries[(i - 1) / 4].at <= heap->entries[i].at);
    }
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(timers[i].place != 0, model[i] != RLI_NEVER);
        assert_true(!timers[i].place || heap->entries[timers[i].place - 1].at == model[i]);
        armed += timers[i].place != 0;
    }
    assert_int_equal(heap->count, armed);
}

static rli_instant earliest(const rli_instant *model, size_t count)
{
    rli_instant first = RLI_NEVER;
    for (size_t i = 0; i < count; i++)
        first = rli_min(first, model[i]);
    return first;
}

static void random_timers_against_a_model(void **state)
{
    struct rli_heap heap = {0};
    struct rli_timer timers[TIMERS] = {{0}};
    rli_instant model[TIMERS];
    uint64_t seed = 8;

    (void)state;
    for (size_t i = 0; i < TIMERS; i++) {
        model[i] = RLI_NEVER;
        assert_true(rli_heap_reserve(&heap, i + 1));
    }
    for (int round = 0; round < 20000; round++) {
        size_t pick = random_of(&seed) % TIMERS;
        rli_instant at = random_of(&seed) % 3 ? (rli_instant)(random_of(&seed) % 1000) : RLI_NEVER;
        rli_heap_set(&heap, &timers[pick], at);
        model[pick] = at;
        rli_instant first = earliest(model, TIMERS);
        assert_true(rli_heap_due(&heap) == first);
        assert_null(rli_heap_expired(&heap, first - 1));
        assert_true(first == RLI_NEVER || rli_heap_expired(&heap, first)->place == 1);
        if (round % 50 == 0)
            check_shape(&heap, timers, model, TIMERS);
    }
    rli_heap_free(&heap);
    assert_null(rli_heap_expired(&heap, RLI_NEVER));
}

static void timers_come_out_in_order(void **state)
{
    struct rli_heap heap = {0};
    struct rli_timer timers[TIMERS] = {{0}};
    uint64_t seed = 9;
    rli_instant last = RLI_GONE;

    (void)state;
    for (size_t i = 0; i < TIMERS; i++) {
        assert_true(rli_heap_reserve(&heap, i + 1));
        rli_heap_set(&heap, &timers[i], (rli_instant)(random_of(&seed) % 100));
    }
    for (size_t i = 0; i < TIMERS; i++) {
        struct rli_timer *first = rli_heap_expired(&heap, RLI_NEVER);
        assert_true(rli_heap_due(&heap) >= last);
        last = rli_heap_due(&heap);
        rli_heap_set(&heap, first, RLI_NEVER);
        assert_int_equal(first->place, 0);
    }
    assert_null(rli_heap_expired(&heap, RLI_NEVER));
    rli_heap_free(&heap);
}

/* As the header says: arming that many cannot fail afterwards. */
static void reserve_makes_room_for_all_at_once(void **state)
{
    static const size_t wanted[] = {1, 16, 17, 33, 100, 5000};
    (void)state;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        struct rli_heap heap = {0};
        assert_true(rli_heap_reserve(&heap, wanted[i]));
        assert_true(heap.room >= wanted[i]);
        rli_heap_free(&heap);
    }
}

static void disarming_twice_and_setting_the_same_change_nothing(void **state)
{
    struct rli_heap heap = {0};
    struct rli_timer a = {0}, b = {0};

    (void)state;
    assert_true(rli_heap_reserve(&heap, 2));
    rli_heap_set(&heap, &a, RLI_NEVER);
    assert_int_equal(heap.count, 0);
    rli_heap_set(&heap, &a, 5);
    rli_heap_set(&heap, &a, 5);
    assert_int_equal(heap.count, 1);
    rli_heap_set(&heap, &b, 3);
    assert_ptr_equal(rli_heap_expired(&heap, 100), &b);
    rli_heap_set(&heap, &b, 9);
    assert_ptr_equal(rli_heap_expired(&heap, 100), &a);
    rli_heap_set(&heap, &a, RLI_NEVER);
    rli_heap_set(&heap, &a, RLI_NEVER);
    assert_ptr_equal(rli_heap_expired(&heap, 100), &b);
    assert_int_equal(heap.count, 1);
    rli_heap_free(&heap);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_timers_against_a_model),
        cmocka_unit_test(timers_come_out_in_order),
        cmocka_unit_test(reserve_makes_room_for_all_at_once),
        cmocka_unit_test(disarming_twice_and_setting_the_same_change_nothing),
    };
    return cmocka_run_group_tests_name("heap", tests, NULL, NULL);
}
