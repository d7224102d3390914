/* test_renewal.c - when a lease is renewed and for how long that is tried (semantics S5.4): against the rule in exact arithmetic, for
 * leases from nothing to a year. */
#include "renewal.h"
#include "unit.h"

static const rli_span year = RL_MAX_TTL_MS * MS;

/* A span of any magnitude. */
static rli_span random_span(uint64_t *seed)
{
    rli_span most = INT64_C(1) << (random_of(seed) % 55);
    return rli_min(1 + (rli_span)(random_of(seed) % (uint64_t)most), year);
}

static rli_instant random_now(uint64_t *seed)
{
    return (rli_instant)(random_of(seed) % (uint64_t)(100 * year));
}

/* S5.4: r in [0.8, 0.9]; divisions on the way may take 5 ns off. */
static void due_within_its_range(void **state)
{
    uint64_t seed = 1;
    (void)state;
    for (int i = 0; i < 2000000; i++) {
        rli_instant now = random_now(&seed);
        rli_span left = random_span(&seed);
        rli_span due = rli_renewal_due(now, now + left, random_of(&seed)) - now;
        if (left / 3 <= MS) {
            assert_true(due == rli_min(MS, left)); /* the least pause, and never after its end */
            continue;
        }
        if (30 * due < 8 * left - 150 || 30 * due > 9 * left)
            fail_msg("of %lld ns left it is due after %lld", (long long)left, (long long)due);
    }
}

/* The step of the grid: the largest power of two of which 16 fit into the range. */
static rli_span step_of(rli_span left)
{
    rli_span range = left / 3 / 10, step = INT64_C(1) << 55;
    while (step > 1 && 16 * step > range)
        step /= 2;
    return step;
}

static void due_on_the_grid(void **state)
{
    uint64_t seed = 2;
    (void)state;
    for (int i = 0; i < 500000; i++) {
        rli_instant now = random_now(&seed);
        rli_span left = 3 * MS + 3 + random_span(&seed);
        assert_true(rli_renewal_due(now, now + left, random_of(&seed)) % step_of(left) == 0);
    }
}

/* Each point of the grid in the range is drawn equally often: 16 to 33 of them, next to each other. */
static void every_point_is_drawn(void **state)
{
    uint64_t seed = 3;
    (void)state;
    for (int i = 0; i < 2000; i++) {
        rli_instant now = random_now(&seed);
        rli_span left = 3 * MS + 3 + random_span(&seed), step = step_of(left);
        if (i % 2) /* a point lies at the very beginning */
            now -= (now + left / 3 / 5 * 4) % step;
        rli_instant first = rli_renewal_due(now, now + left, 0);
        uint64_t points = 1;
        while (points < 100 && rli_renewal_due(now, now + left, points) != first) {
            assert_true(rli_renewal_due(now, now + left, points) == first + (rli_span)points * step);
            points++;
        }
        assert_true(points >= 15 && points <= 33);
        assert_true(rli_renewal_due(now, now + left, UINT64_MAX) == first + (rli_span)(UINT64_MAX % points) * step);
        /* nor is there another one before or behind */
        assert_true(30 * (first - step - now) < 8 * left);
        assert_true(30 * (first + (rli_span)points * step - now) > 9 * left - 300);
    }
}

/* Locks taken one after the other, over a tenth of a lease, are due at few instants. */
static void many_are_due_together(void **state)
{
    enum { LOCKS = 1000 };
    rli_instant due[LOCKS];
    uint64_t seed = 4;
    int instants = 0;
    (void)state;
    for (int i = 0; i < LOCKS; i++)
        due[i] = rli_renewal_due(T0 + i * 3 * MS, T0 + i * 3 * MS + 30000 * MS, random_of(&seed));
    qsort(due, LOCKS, sizeof *due, falling);
    for (int i = 0; i < LOCKS; i++)
        instants += i == 0 || due[i] != due[i - 1];
    assert_in_range(instants, 16, 150);
}

static void what_is_over_is_due_at_once(void **state)
{
    (void)state;
    assert_true(rli_renewal_due(T0, T0, 5) == T0);
    assert_true(rli_renewal_due(T0, T0 - 1, 5) == T0 - 1);
    assert_true(rli_renewal_due(T0, RLI_GONE, 5) == RLI_GONE);
    assert_true(rli_renewal_due(T0, T0 + 1, 5) == T0 + 1);
}

/* S5.4: min(node timeout, a third of what remains). */
static void a_try_ends_in_time(void **state)
{
    struct rli_terms terms = terms_of(3);
    uint64_t seed = 5;
    (void)state;
    assert_true(rli_renewal_deadline(&terms, T0, T0 + 30000 * MS) == T0 + 250 * MS);
    assert_true(rli_renewal_deadline(&terms, T0, T0 + 751 * MS) == T0 + 250 * MS);
    assert_true(rli_renewal_deadline(&terms, T0, T0 + 750 * MS) == T0 + 250 * MS);
    assert_true(rli_renewal_deadline(&terms, T0, T0 + 749 * MS) == T0 + 749 * MS / 3);
    assert_true(rli_renewal_deadline(&terms, T0, T0) == T0);
    for (int i = 0; i < 100000; i++) {
        rli_span left = random_span(&seed);
        terms.node_timeout = random_span(&seed);
        rli_instant deadline = rli_renewal_deadline(&terms, T0, T0 + left);
        assert_true(deadline == T0 + (left / 3 < terms.node_timeout ? left / 3 : terms.node_timeout));
    }
}

/* Three tries of a lease that is renewed as late as it may be, none of which is ever answered: when does the last one begin? */
static rli_instant third_try(const struct rli_terms *terms, rli_instant now, rli_instant valid_until)
{
    for (int tries = 1;; tries++) {
        rli_instant latest = now;
        for (uint64_t random = 0; random < 64; random++)
            latest = rli_max(latest, rli_renewal_due(now, valid_until, random));
        if (tries == 3)
            return latest;
        now = rli_renewal_deadline(terms, latest, valid_until);
    }
}

/* S5.4: refused when three tries cannot fit; exactly these. */
static void which_leases_are_too_short(void **state)
{
    static const struct {
        uint32_t drift_ppm;
        int64_t min_validity_ms, least_ms;
    } cases[] = {
        {0, 1, 13},       /* 13 - 2 - 1 = 10 ms: * 0.7 * (2/3)^2 / 3 is 1.03 ms, of 9 ms it is 0.93 */
        {10000, 1, 13},   /* 9.87 ms; of 12 it is 8.88 */
        {500000, 1, 26},  /* 10 ms; of 25 it is 9.5 */
        {10000, 15, 27},  /* 9.73 ms; of 26 it is 8.74 */
        {0, 1000, 1012},  /* 10 ms */
        {10000, 100, 113} /* 9.87 ms */
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rli_terms terms = terms_of(3);
        terms.drift_ppm = cases[i].drift_ppm;
        terms.min_validity = cases[i].min_validity_ms * MS;
        for (int64_t ms = 1; ms < 3000; ms++)
            if (rli_renewal_fits(&terms, ms * MS) != (ms >= cases[i].least_ms))
                fail_msg("case %zu: a lease of %lld ms", i, (long long)ms);
        for (rli_span ttl = 3000 * MS; ttl < year; ttl *= 2)
            assert_true(rli_renewal_fits(&terms, ttl));
        assert_true(rli_renewal_fits(&terms, year));
    }
}

static void three_tries_do_fit(void **state)
{
    struct rli_terms terms = terms_of(3);
    (void)state;
    for (int64_t ms = 10; ms < 5000; ms++) {
        rli_instant valid_until = rli_confirmed(&terms, T0, ms * MS);
        if (rli_renewal_fits(&terms, ms * MS))
            assert_true(third_try(&terms, T0, valid_until) < valid_until - terms.min_validity);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(due_within_its_range),        cmocka_unit_test(due_on_the_grid),
        cmocka_unit_test(every_point_is_drawn),        cmocka_unit_test(many_are_due_together),
        cmocka_unit_test(what_is_over_is_due_at_once), cmocka_unit_test(a_try_ends_in_time),
        cmocka_unit_test(which_leases_are_too_short),  cmocka_unit_test(three_tries_do_fit),
    };
    return cmocka_run_group_tests_name("renewal", tests, NULL, NULL);
}
