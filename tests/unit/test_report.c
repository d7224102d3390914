/* test_report.c - what nodes answered, on its way into the caller's hands: escaped and cut, in structs of any size, and never more
 * than is known. */
#include "answer.h"
#include "port.h"
#include "report.h"
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- Memory that can be short ----------------------------------------------------------------------------------------------------- */

static bool no_memory;

void *rli_calloc(size_t size)
{
    return no_memory ? NULL : calloc(1, size);
}

void rli_free(void *memory)
{
    free(memory);
}

/* ---- From an answer to the caller --------------------------------------------------------------------------------------------------- */

static struct rli_answer answer_with(const char *text, size_t length)
{
    struct rli_answer answer = answer_of(ERROR, T0, T0 + 1 * MS);
    answer.text = text;
    answer.text_len = length;
    return answer;
}

static rl_report *new_report(void)
{
    rl_report *report = NULL;
    assert_int_equal(rl_report_new(&report), RL_OK);
    assert_non_null(report);
    return report;
}

/* One answer through a report; the node's result as the caller sees it. */
static rl_node_result through(rl_report *report, const struct rli_answer *answer, bool with_text)
{
    static char shown[] = "redis://h";
    const struct rli_url url = {.shown = shown};
    struct rli_result result = {0};
    rl_node_result node = {.size = sizeof node};

    rli_result_set(&result, answer, with_text);
    rli_report_fill(report, &url, &result, 1);
    rli_result_clear(&result, RL_NODE_NOT_ASKED);
    assert_int_equal(rl_report_node(report, 0, &node), RL_OK);
    assert_string_equal(node.node, "redis://h");
    return node;
}

/* S9.2: what is not printable ASCII becomes \xhh, and so does the backslash, so that it can be read back. */
static void every_byte_is_escaped_or_shown(void **state)
{
    rl_report *report = new_report();
    (void)state;
    for (int c = 0; c < 256; c++) {
        char text[] = {'a', (char)c, 'z'}, expected[16];
        struct rli_answer answer = answer_with(text, sizeof text);
        if (c >= ' ' && c <= '~' && c != '\\')
            snprintf(expected, sizeof expected, "a%cz", c);
        else
            snprintf(expected, sizeof expected, "a\\x%02xz", (unsigned)c);
        assert_string_equal(through(report, &answer, true).text, expected);
    }
    rl_report_free(report);
}

/* Cut at fewer than 200 bytes, and never within an escape. The text ends with its block. */
static void long_texts_are_cut(void **state)
{
    rl_report *report = new_report();
    (void)state;
    for (size_t length = 0; length <= 300; length++)
        for (int escapes = 0; escapes < 3; escapes++) { /* none, all, one after so many */
            char *text = malloc(length + 1);
            memset(text, escapes == 1 ? '\n' : 'x', length);
            if (escapes == 2 && length)
                text[length - 1] = '\n';
            struct rli_answer answer = answer_with(text, length);
            rl_node_result node = through(report, &answer, true);
            size_t shown = strlen(node.text), whole = escapes == 1 ? 4 * length : escapes == 2 && length ? length + 3 : length;
            assert_true(shown == whole || (shown < whole && shown >= 190 && shown < 200));
            assert_true(shown < 200);
            for (size_t i = 0; i < shown; i++)
                if (node.text[i] == '\\') {
                    assert_memory_equal(node.text + i, "\\x0a", 4);
                    i += 3;
                } else {
                    assert_int_equal(node.text[i], 'x');
                }
            free(text);
        }
    rl_report_free(report);
}

static void text_is_kept_only_if_wanted(void **state)
{
    rl_report *report = new_report();
    struct rli_answer answer = answer_with("ERR what", 8);
    (void)state;
    assert_string_equal(through(report, &answer, true).text, "ERR what");
    assert_string_equal(through(report, &answer, false).text, "");
    answer.text_len = 3; /* not ended by NUL */
    assert_string_equal(through(report, &answer, true).text, "ERR");
    answer.text = NULL;
    assert_string_equal(through(report, &answer, true).text, "");
    rl_report_free(report);
}

static void without_memory_the_words_are_dropped(void **state)
{
    rl_report *report = new_report(), *none = report;
    struct rli_answer answer = answer_with("ERR what", 8);
    (void)state;
    no_memory = true;
    rl_node_result node = through(report, &answer, true);
    assert_string_equal(node.text, "");
    assert_int_equal(node.outcome, RL_NODE_ERROR);
    assert_int_equal(rl_report_new(&none), RL_E_NO_MEMORY);
    no_memory = false;
    assert_null(none);
    assert_int_equal(rl_report_new(NULL), RL_E_INVALID);
    rl_report_free(report);
    rl_report_free(NULL);
}

/* S9.1: a time only where there was an answer, in whole microseconds. */
static void round_trip_times(void **state)
{
    rl_report *report = new_report();
    struct rli_answer answer = answer_of(YES, T0, T0 + 1234567);
    (void)state;
    assert_int_equal(through(report, &answer, true).rtt_us, 1234);
    answer.at = T0;
    assert_int_equal(through(report, &answer, true).rtt_us, 0);
    answer.at = RLI_GONE;
    assert_int_equal(through(report, &answer, true).rtt_us, -1);
    answer.at = T0;
    answer.sent = RLI_GONE;
    assert_int_equal(through(report, &answer, true).rtt_us, -1);
    answer = rli_answer_lost(RL_NODE_NO_ANSWER, ECONNRESET);
    answer.sent = T0;
    assert_int_equal(through(report, &answer, true).rtt_us, -1);
    assert_int_equal(through(report, &answer, true).sys_errno, ECONNRESET);
    rl_report_free(report);
}

static void a_new_answer_leaves_nothing_of_the_last(void **state)
{
    struct rli_result result = {0};
    struct rli_answer answer = answer_with("ERR what", 8), lost = rli_answer_lost(RL_NODE_UNREACHABLE, ECONNREFUSED);
    (void)state;
    rli_result_set(&result, &answer, true);
    assert_string_equal(result.text, "ERR what");
    assert_int_equal(result.rtt_us, 1000);
    rli_result_set(&result, &lost, true);
    assert_true(!result.text && result.rtt_us == -1);
    assert_int_equal(result.outcome, RL_NODE_UNREACHABLE);
    assert_int_equal(result.sys_errno, ECONNREFUSED);
    rli_result_set(&result, &answer, true);
    rli_result_clear(&result, RL_NODE_PENDING);
    assert_true(!result.text && result.rtt_us == -1 && !result.sys_errno);
    assert_int_equal(result.outcome, RL_NODE_PENDING);
}

/* ---- The report itself --------------------------------------------------------------------------------------------------------------- */

enum { LONG_URL = 1000 };

static void fill(rl_report *report, uint32_t count)
{
    static char shown[RL_MAX_NODES][LONG_URL + 1], text[RL_MAX_NODES][20];
    struct rli_result results[RL_MAX_NODES] = {0};
    struct rli_url urls[RL_MAX_NODES] = {0};

    for (uint32_t i = 0; i < count; i++) {
        memset(shown[i], 'u', i == 7 ? LONG_URL : i);
        snprintf(text[i], sizeof text[i], "text %u", i);
        urls[i].shown = i == 3 ? NULL : shown[i];
        results[i] = (struct rli_result){
            .outcome = (int)i % 9, .sys_errno = (int)i + 100, .rtt_us = i * INT64_C(10000000000), .text = i == 5 ? NULL : text[i]};
    }
    rli_report_fill(report, urls, results, count);
}

static void nodes_come_in_order(void **state)
{
    rl_report *report = new_report();
    rl_node_result node = {.size = sizeof node};
    (void)state;
    assert_int_equal(rl_report_count(report), 0);
    assert_int_equal(rl_report_node(report, 0, &node), RL_E_INVALID);
    fill(report, RL_MAX_NODES);
    assert_int_equal(rl_report_count(report), RL_MAX_NODES);
    for (uint32_t i = 0; i < RL_MAX_NODES; i++) {
        char text[20];
        snprintf(text, sizeof text, "text %u", i);
        assert_int_equal(rl_report_node(report, i, &node), RL_OK);
        assert_true(node.size == sizeof node);
        assert_int_equal(node.outcome, i % 9);
        assert_int_equal(node.sys_errno, i + 100);
        assert_true(node.rtt_us == i * INT64_C(10000000000));
        assert_string_equal(node.text, i == 5 ? "" : text);
        assert_int_equal(strlen(node.node), i == 3 ? 0 : i == 7 ? 399 : i);
    }
    assert_int_equal(rl_report_node(report, RL_MAX_NODES, &node), RL_E_INVALID);
    assert_int_equal(rl_report_node(report, SIZE_MAX, &node), RL_E_INVALID);
    fill(report, 2); /* overwritten by each call */
    assert_int_equal(rl_report_count(report), 2);
    assert_int_equal(rl_report_node(report, 2, &node), RL_E_INVALID);
    rli_report_reset(report);
    assert_int_equal(rl_report_count(report), 0);
    assert_int_equal(rl_report_node(report, 0, &node), RL_E_INVALID);
    rl_report_free(report);
}

/* Growth: exactly `size` bytes are written, of what is known and then zeros; `size` itself stays. */
static void results_of_any_size(void **state)
{
    enum { ROOM = sizeof(rl_node_result) + 64, CANARY = 0xc5 };
    rl_report *report = new_report();
    rl_node_result whole = {.size = sizeof whole};
    (void)state;
    fill(report, 2);
    assert_int_equal(rl_report_node(report, 1, &whole), RL_OK);
    for (size_t size = 0; size <= ROOM; size++) {
        _Alignas(16) unsigned char theirs[ROOM];
        memset(theirs, CANARY, sizeof theirs);
        memcpy(theirs, &size, sizeof size);
        int rc = rl_report_node(report, 1, (rl_node_result *)(void *)theirs);
        assert_int_equal(rc, size >= sizeof size ? RL_OK : RL_E_INVALID);
        assert_memory_equal(theirs, &size, sizeof size);
        for (size_t i = sizeof size; i < ROOM; i++)
            assert_int_equal(theirs[i], i >= size ? CANARY : i < sizeof whole ? ((unsigned char *)&whole)[i] : 0);
    }
    rl_report_free(report);
}

static void free_in_is_rounded_up_and_never_negative(void **state)
{
    static const struct {
        rli_span span;
        int64_t ms;
    } spans[] = {{0, 0},        {1, 1},           {MS, 1},       {MS + 1, 2},     {999 * MS, 999},
                 {-1, 0},       {-1000 * MS, 0},  {RLI_GONE, 0}, {RLI_NEVER, -1}, {RLI_NEVER - 1, INT64_MAX / MS + 1},
                 {10 * MS, 10}, {10 * MS - 1, 10}};
    rl_report *report = new_report();
    (void)state;
    assert_int_equal(rl_report_free_in_ms(report), 0);
    for (size_t i = 0; i < sizeof spans / sizeof *spans; i++) {
        rli_report_set_free_in(report, spans[i].span);
        assert_true(rl_report_free_in_ms(report) == spans[i].ms);
    }
    rli_report_reset(report);
    assert_int_equal(rl_report_free_in_ms(report), 0);
    rl_report_free(report);
}

static void null_is_fine_or_refused(void **state)
{
    rl_report *report = new_report();
    rl_node_result node = {.size = sizeof node};
    (void)state;
    rli_report_reset(NULL);
    rli_report_set_free_in(NULL, 5);
    fill(NULL, 3);
    assert_int_equal(rl_report_count(NULL), 0);
    assert_int_equal(rl_report_free_in_ms(NULL), 0);
    assert_int_equal(rl_report_node(NULL, 0, &node), RL_E_INVALID);
    fill(report, 1);
    assert_int_equal(rl_report_node(report, 0, NULL), RL_E_INVALID);
    rl_report_free(report);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_byte_is_escaped_or_shown),
        cmocka_unit_test(long_texts_are_cut),
        cmocka_unit_test(text_is_kept_only_if_wanted),
        cmocka_unit_test(without_memory_the_words_are_dropped),
        cmocka_unit_test(round_trip_times),
        cmocka_unit_test(a_new_answer_leaves_nothing_of_the_last),
        cmocka_unit_test(nodes_come_in_order),
        cmocka_unit_test(results_of_any_size),
        cmocka_unit_test(free_in_is_rounded_up_and_never_negative),
        cmocka_unit_test(null_is_fine_or_refused),
    };
    return cmocka_run_group_tests_name("report", tests, NULL, NULL);
}
