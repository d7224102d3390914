/* options.h - reading the caller's structs, of whatever header version, into those of this one (the growth rule). Pure. */
#ifndef RLI_OPTIONS_H
#define RLI_OPTIONS_H

#include "redlatch.h"

#include "machine.h"

/* *ret = the caller's fields, defaults for those it does not have. RL_OK, RL_E_INVALID, RL_E_UNSUPPORTED. */
int rli_options_read(const rl_options *theirs, rl_options *ret);
int rli_request_read(const rl_request *theirs, rl_request *ret);

/* Are the options in range for that many nodes? Then they become the terms of a client. */
int rli_terms_make(const rl_options *options, uint32_t nodes, struct rli_terms *ret);

/* Which fence does the request ask for, on a client with that default? */
enum rli_fence rli_request_fence(const rl_request *request, enum rli_fence by_default);

/* RL_OK, or RL_E_INVALID. */
int rli_request_check(const rl_request *request, const struct rli_terms *terms);
int rli_name_check(const void *name, size_t name_len);
int rli_ttl_check(int64_t ttl_ms, const struct rli_terms *terms);

/* Ends where a printable ASCII text without spaces (or with, if `spaces`) ends, at most at `max`; text[result] is then not 0 if the
 * text is not of that form. */
size_t rli_printable(const char *text, size_t max, bool spaces);

#endif
