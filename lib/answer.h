/* answer.h - what a reply means: from RESP to a vote (semantics S2.3, S2.4). Pure. */
#ifndef RLI_ANSWER_H
#define RLI_ANSWER_H

#include "ballot.h"
#include "codec.h"

/* The vote that a reply to a request of that kind is. Text points into the reply; sent, at and the flags are the caller's. */
struct rli_answer rli_answer_from_reply(enum rli_kind kind, const struct rli_reply *reply);

/* A vote without a reply. */
struct rli_answer rli_answer_lost(int outcome, int sys_errno);

/* Does the server not have the script? */
bool rli_is_noscript(const struct rli_reply *reply);

/* Does this error say that our credentials, or a command of ours, are refused? */
bool rli_is_denial(const struct rli_reply *reply);

/* Does this error mean that the connection is of no use (too many clients, protected mode)? */
bool rli_is_fatal(const struct rli_reply *reply);

/* How much of an error's text may be shown. Some servers repeat the arguments of what they do not understand: a password, a token. */
size_t rli_error_words(const struct rli_reply *reply);

/* The value of "field:" or "field=" in the text of INFO or CLIENT INFO; its length, 0 if it is not there. */
size_t rli_field(const char *text, const char *field, const char **ret_value);

#endif
