/* command.h - the commands that the library sends, as argument vectors. With script.h and answer.h this is the whole wire contract. */
#ifndef RLI_COMMAND_H
#define RLI_COMMAND_H

#include "machine.h"

enum { RLI_MAX_KEYS = 64, RLI_MAX_ARGS = 3 + 3 * RLI_MAX_KEYS, RLI_MAX_NUMBERS = 1 + RLI_MAX_KEYS };

struct rli_command { /* borrows every string but its own digits */
    int argc;
    const char *argv[RLI_MAX_ARGS];
    size_t length[RLI_MAX_ARGS];
    int numbers;
    char digits[RLI_MAX_NUMBERS][24];
};

/* What a request is about. */
struct rli_subject {
    const char *key, *token, *counter; /* counter: the fence counter's key; NULL without a fence */
    size_t key_len, token_len, counter_len;
    enum rli_fence mode;
    bool probe;        /* nobody will ask for its counter again */
    uint32_t nodes;    /* of the client: a single one needs no agreement */
    const char *value; /* RLI_STORE: what to write; NULL = only show the token */
    size_t value_len;
    int64_t fence; /* the fencing token; 0 = none yet */
};

/* The command for a request; `whole_script`: EVAL instead of EVALSHA. */
void rli_command_request(struct rli_command *command, enum rli_kind kind, const struct rli_subject *subject, rli_span ttl,
                         bool whole_script);

/* Extends so many locks at once (at most RLI_MAX_KEYS): their keys follow, then for each, in the same order, token and ttl. */
void rli_command_renew(struct rli_command *command, uint32_t count, bool whole_script);
void rli_command_renew_key(struct rli_command *command, const char *key, size_t key_len);
void rli_command_renew_for(struct rli_command *command, const char *token, size_t token_len, rli_span ttl);

/* The commands of a handshake. */
void rli_command_auth(struct rli_command *command, const char *user, const char *password);
void rli_command_select(struct rli_command *command, uint32_t db);
void rli_command_set_name(struct rli_command *command, const char *client_name);
void rli_command_client_info(struct rli_command *command);
void rli_command_script_load(struct rli_command *command, unsigned script);
void rli_command_client_kill(struct rli_command *command, int64_t id, const char *address);

#endif
