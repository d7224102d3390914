/* answer.c - see answer.h. */
#include "answer.h"

#include "redlatch.h"

#include <string.h>

static bool is_error(const struct rli_reply *reply, const char *prefix)
{
    return reply->type == RLI_ERROR && strncmp(reply->text, prefix, strlen(prefix)) == 0;
}

bool rli_is_noscript(const struct rli_reply *reply)
{
    return is_error(reply, "NOSCRIPT");
}

/* A denial inside a script has no code of its own; the words changed with Redis 7.2. */
static bool is_script_denial(const struct rli_reply *reply)
{
    return reply->type == RLI_ERROR &&
           (strstr(reply->text, "The user executing the script ") || strstr(reply->text, "ACL failure in script"));
}

bool rli_is_denial(const struct rli_reply *reply)
{
    return is_error(reply, "NOPERM") || is_error(reply, "NOAUTH") || is_error(reply, "WRONGPASS") ||
           is_error(reply, "ERR invalid password") || is_error(reply, "ERR AUTH ") || is_error(reply, "ERR Client sent AUTH") ||
           is_script_denial(reply);
}

bool rli_is_fatal(const struct rli_reply *reply)
{
    return is_error(reply, "ERR max number of clients") || is_error(reply, "DENIED");
}

/* The key holds something else than a string. Before Redis 7 a script's error names its cause only inside the text. */
static bool is_wrong_type(const struct rli_reply *reply)
{
    return is_error(reply, "WRONGTYPE") || (is_error(reply, "ERR Error running script") && strstr(reply->text, "WRONGTYPE"));
}

static int outcome_of_set(const struct rli_reply *reply)
{
    if (reply->type == RLI_STATUS && strcmp(reply->text, "OK") == 0)
        return RL_NODE_YES;
    return reply->type == RLI_NIL ? RL_NODE_HELD_BY_OTHER : RL_NODE_ERROR;
}

/* A counter: what a grant or a mint answers. */
static int outcome_of_counter(const struct rli_reply *reply)
{
    if (reply->type == RLI_INTEGER && reply->integer > 0 && reply->integer < RL_MAX_FENCE)
        return RL_NODE_YES;
    return reply->type == RLI_NIL ? RL_NODE_HELD_BY_OTHER : RL_NODE_ERROR;
}

/* The scripts of extend, release and confirm answer 1 = ours, 0 = absent; another's is 2, or {2, PTTL}. */
static int outcome_of_script(const struct rli_reply *reply)
{
    if (is_wrong_type(reply))
        return RL_NODE_HELD_BY_OTHER; /* proof that the key is not ours */
    int64_t value = reply->type == RLI_INTEGER                                             ? reply->integer
                    : reply->type == RLI_ARRAY && reply->elements == 2 && reply->ints == 2 ? reply->values[0]
                                                                                           : -1;
    if (value == 2)
        return RL_NODE_HELD_BY_OTHER;
    if (reply->type != RLI_INTEGER)
        return RL_NODE_ERROR;
    return value == 1 ? RL_NODE_YES : value == 0 ? RL_NODE_ABSENT : RL_NODE_ERROR;
}

static int outcome_of(enum rli_kind kind, const struct rli_reply *reply)
{
    switch (kind) {
    case RLI_SET:
    case RLI_TOP_UP:
        return outcome_of_set(reply);
    case RLI_GRANT:
        return outcome_of_counter(reply);
    case RLI_MINT:
        return reply->type == RLI_NIL ? RL_NODE_ERROR : outcome_of_counter(reply);
    case RLI_EXTEND:
    case RLI_RELEASE:
        return outcome_of_script(reply);
    case RLI_CONFIRM: /* here it may be another key that is of the wrong type */
    case RLI_STORE:
        return reply->type == RLI_ERROR ? RL_NODE_ERROR : outcome_of_script(reply);
    case RLI_RENEW: /* a number for each lock */
        return reply->type == RLI_ARRAY ? RL_NODE_YES : RL_NODE_ERROR;
    case RLI_INFO:
        break;
    }
    return reply->type == RLI_BULK || rli_is_denial(reply) ? RL_NODE_YES : RL_NODE_ERROR;
}

struct rli_answer rli_answer_from_reply(enum rli_kind kind, const struct rli_reply *reply)
{
    static const char unexpected[] = "unexpected type of reply";
    struct rli_answer answer = {.outcome = outcome_of(kind, reply), .holder_left = RLI_NEVER};

    if (reply->type == RLI_ARRAY && answer.outcome == RL_NODE_HELD_BY_OTHER && reply->values[1] >= 0)
        answer.holder_left = rli_from_ms(reply->values[1]);
    if (answer.outcome == RL_NODE_YES && (kind == RLI_GRANT || kind == RLI_MINT))
        answer.fence = reply->integer;
    if (reply->type == RLI_ERROR) {
        answer.text = reply->text;
        answer.text_len = rli_error_words(reply);
        answer.denied = answer.outcome == RL_NODE_ERROR && rli_is_denial(reply);
    } else if (answer.outcome == RL_NODE_ERROR) { /* whatever it was, it was no answer to what we asked: it may have acted */
        answer.text = unexpected;
        answer.text_len = sizeof unexpected - 1;
        answer.unknown = true;
    }
    return answer;
}

struct rli_answer rli_answer_lost(int outcome, int sys_errno)
{
    return (struct rli_answer){.outcome = outcome,
                               .sys_errno = sys_errno,
                               .unknown = outcome == RL_NODE_NO_ANSWER,
                               .sent = RLI_GONE,
                               .at = RLI_GONE,
                               .holder_left = RLI_NEVER};
}

size_t rli_error_words(const struct rli_reply *reply)
{
    const char *arguments = strstr(reply->text, ", with args beginning with");
    return arguments ? (size_t)(arguments - reply->text) : reply->text_len;
}

size_t rli_field(const char *text, const char *field, const char **ret_value)
{
    size_t length = strlen(field);

    for (const char *at = text; (at = strstr(at, field)); at += length) {
        bool starts = at == text || at[-1] == '\n' || at[-1] == ' ';
        if (!starts || (at[length] != ':' && at[length] != '='))
            continue;
        *ret_value = at + length + 1;
        return strcspn(*ret_value, " \r\n");
    }
    return 0;
}
