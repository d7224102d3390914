/* wire.h - the other end of a node's connection, by hand: what it sends, command by command and readable, and what it is told. */
#ifndef RLT_WIRE_H
#define RLT_WIRE_H

#include "node.h"
#include "resp.h"
#include "script.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>

/* Which script has that digest or text? RLI_SCRIPTS: none. */
static inline enum rli_script_id script_of(const char *word, size_t length, bool *ret_whole)
{
    int i = 0;

    for (; i < RLI_SCRIPTS; i++) {
        *ret_whole = length == rli_scripts[i].length && memcmp(word, rli_scripts[i].text, length) == 0;
        if (*ret_whole || (length == 40 && memcmp(word, rli_scripts[i].sha1, 40) == 0))
            break;
    }
    return (enum rli_script_id)i;
}

static inline const char *script_name(const char *word, size_t length)
{
    static const char *const names[][2] = {
        [RLI_SCRIPT_RELEASE] = {"#release", "@release"},
        [RLI_SCRIPT_EXTEND] = {"#extend", "@extend"},
        [RLI_SCRIPT_RENEW] = {"#renew", "@renew"},
        [RLI_SCRIPT_GRANT] = {"#grant", "@grant"},
        [RLI_SCRIPT_CONFIRM] = {"#confirm", "@confirm"},
        [RLI_SCRIPT_MINT] = {"#mint", "@mint"},
        [RLI_SCRIPT_FENCED_TOP_UP] = {"#fenced-top-up", "@fenced-top-up"},
        [RLI_SCRIPT_FENCED_RELEASE] = {"#fenced-release", "@fenced-release"},
        [RLI_SCRIPT_STORE] = {"#store", "@store"},
    };
    bool whole;
    enum rli_script_id id = script_of(word, length, &whole);

    return id == RLI_SCRIPTS ? NULL : names[id][whole];
}

/* The next whole command that the node has to send, its words joined by spaces; a script's digest as "#release", its text as
 * "@release". NULL if there is none. It counts as sent. The text lives until the next call. */
static inline const char *next_command(struct rli_node *node, rli_instant now)
{
    static char text[2048];
    const char *bytes = node->out.bytes + node->out.from;
    ssize_t size = rli_node_unsent(node) ? ts_resp_length(bytes, rli_node_unsent(node)) : 0;
    size_t length = 0;
    ts_words words;

    if (size == 0)
        return NULL;
    assert_true(size > 0 && ts_resp_words(bytes, (size_t)size, &words));
    for (int i = 0; i < words.count; i++) {
        const char *name = script_name(words.word[i], words.len[i]);
        length += (size_t)(name ? snprintf(text + length, sizeof text - length, " %s", name)
                                : snprintf(text + length, sizeof text - length, " %.*s", (int)words.len[i], words.word[i]));
        assert_true(length < sizeof text);
    }
    rli_node_sent(node, (size_t)size, now);
    return text + 1;
}

/* The node sends exactly these commands, in this order: expect_commands(node, now, "A 1", "B", NULL). */
static inline void expect_commands(struct rli_node *node, rli_instant now, ...)
{
    const char *expected, *actual;
    va_list list;

    va_start(list, now);
    while ((expected = va_arg(list, const char *))) {
        actual = next_command(node, now);
        if (!actual || strcmp(actual, expected) != 0)
            fail_msg("sent: %s, not: %s", actual ? actual : "nothing", expected);
    }
    va_end(list);
    actual = next_command(node, now);
    if (actual)
        fail_msg("also sent: %s", actual);
}

#endif
