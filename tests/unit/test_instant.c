/* test_instant.c - sums of time saturate instead of wrapping, infinity stays infinite, and milliseconds are rounded to the safe
 * side; against 128-bit arithmetic. */
#include "unit.h"

__extension__ typedef __int128 wide;

static int64_t clamp(wide value)
{
    return value > INT64_MAX ? INT64_MAX : value < INT64_MIN ? INT64_MIN : (int64_t)value;
}

/* Numbers of every size, both signs, and the edges. */
static int64_t any_number(uint64_t *seed)
{
    static const int64_t edges[] = {0, 1, -1, RLI_MS, -RLI_MS, RLI_NEVER, RLI_GONE, RLI_NEVER - 1, RLI_GONE + 1};
    uint64_t pick = random_of(seed);
    if (pick % 4 == 0)
        return edges[pick / 4 % (sizeof edges / sizeof *edges)];
    int64_t number = (int64_t)(random_of(seed) >> pick / 4 % 64);
    return pick & UINT64_C(1) << 40 ? number : -number;
}

/* S1.1 */
static void sums_saturate(void **state)
{
    uint64_t seed = 1;
    (void)state;
    assert_true(rli_add(T0, 5) == T0 + 5);
    assert_true(rli_add(RLI_NEVER - 1, 1) == RLI_NEVER);
    assert_true(rli_add(RLI_NEVER - 1, 2) == RLI_NEVER);
    assert_true(rli_add(RLI_GONE + 1, -2) == RLI_GONE);
    assert_true(rli_add(T0, RLI_NEVER) == RLI_NEVER);
    for (int i = 0; i < 100000; i++) {
        int64_t a = any_number(&seed), b = any_number(&seed);
        if (a != RLI_NEVER && a != RLI_GONE)
            assert_true(rli_add(a, b) == clamp((wide)a + b));
    }
}

/* S1.1: never and gone do not become an instant, whatever is added. */
static void infinity_stays(void **state)
{
    uint64_t seed = 2;
    (void)state;
    for (int i = 0; i < 10000; i++) {
        int64_t b = any_number(&seed);
        assert_true(rli_add(RLI_NEVER, b) == RLI_NEVER);
        assert_true(rli_add(RLI_GONE, b) == RLI_GONE);
        assert_true(rli_until(RLI_NEVER, b) == RLI_NEVER);
        assert_true(rli_until(RLI_GONE, b) == RLI_GONE);
    }
}

/* S1.1 */
static void differences_saturate(void **state)
{
    uint64_t seed = 3;
    (void)state;
    assert_true(rli_until(T0 + 7, T0) == 7);
    assert_true(rli_until(T0, T0 + 7) == -7);
    assert_true(rli_until(T0, RLI_GONE) == RLI_NEVER);
    for (int i = 0; i < 100000; i++) {
        int64_t to = any_number(&seed), from = any_number(&seed);
        if (to != RLI_NEVER && to != RLI_GONE)
            assert_true(rli_until(to, from) == clamp((wide)to - from));
    }
}

/* S1.1, S1.6 */
static void milliseconds_saturate(void **state)
{
    uint64_t seed = 4;
    (void)state;
    assert_true(rli_from_ms(RL_MAX_TTL_MS) == RL_MAX_TTL_MS * RLI_MS);
    assert_true(rli_from_ms(INT64_MAX) == RLI_NEVER);
    assert_true(rli_from_ms(INT64_MIN) == RLI_GONE);
    assert_true(rli_from_ms(-1) == -RLI_MS);
    for (int i = 0; i < 100000; i++) {
        int64_t ms = any_number(&seed);
        assert_true(rli_from_ms(ms) == clamp((wide)ms * RLI_MS));
    }
}

/* S1.1: what remains is rounded down, what is slept is rounded up. */
static void milliseconds_are_rounded_to_the_safe_side(void **state)
{
    static const struct {
        int64_t span, floor, ceil;
    } cases[] = {{0, 0, 0},      {1, 0, 1},          {-1, -1, 0},       {RLI_MS - 1, 0, 1},
                 {RLI_MS, 1, 1}, {RLI_MS + 1, 1, 2}, {-RLI_MS, -1, -1}, {-RLI_MS - 1, -2, -1}};
    uint64_t seed = 5;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_true(rli_to_ms_floor(cases[i].span) == cases[i].floor);
        assert_true(rli_to_ms_ceil(cases[i].span) == cases[i].ceil);
    }
    for (int i = 0; i < 100000; i++) {
        int64_t span = any_number(&seed);
        wide floor = rli_to_ms_floor(span), ceil = rli_to_ms_ceil(span);
        assert_true(floor * RLI_MS <= span && span < (floor + 1) * RLI_MS);
        assert_true((ceil - 1) * RLI_MS < span && span <= ceil * RLI_MS);
    }
}

static void smaller_and_larger(void **state)
{
    (void)state;
    assert_true(rli_min(RLI_GONE, RLI_NEVER) == RLI_GONE && rli_min(2, 1) == 1 && rli_min(1, 2) == 1);
    assert_true(rli_max(RLI_GONE, RLI_NEVER) == RLI_NEVER && rli_max(2, 1) == 2 && rli_max(1, 2) == 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_saturate),        cmocka_unit_test(infinity_stays),
        cmocka_unit_test(differences_saturate), cmocka_unit_test(milliseconds_saturate),
        cmocka_unit_test(smaller_and_larger),   cmocka_unit_test(milliseconds_are_rounded_to_the_safe_side),
    };
    return cmocka_run_group_tests_name("instant", tests, NULL, NULL);
}
