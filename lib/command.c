/* command.c - see command.h. */
#include "command.h"

#include "script.h"

#include <assert.h>
#include <string.h>

static void begin(struct rli_command *command)
{
    command->argc = command->numbers = 0;
}

static void add(struct rli_command *command, const char *text, size_t length)
{
    command->argv[command->argc] = text;
    command->length[command->argc++] = length;
}

static void word(struct rli_command *command, const char *text)
{
    add(command, text, strlen(text));
}

static void number(struct rli_command *command, int64_t value)
{
    char *end = command->digits[command->numbers++] + sizeof command->digits[0], *at = end;

    assert(value >= 0);
    do
        *--at = (char)('0' + value % 10);
    while (value /= 10);
    add(command, at, (size_t)(end - at));
}

static void eval_script(struct rli_command *command, enum rli_script_id id, bool whole)
{
    const struct rli_script *script = &rli_scripts[id];

    word(command, whole ? "EVAL" : "EVALSHA");
    if (whole)
        add(command, script->text, script->length);
    else
        add(command, script->sha1, 40);
}

static void eval(struct rli_command *command, enum rli_script_id id, bool whole, const struct rli_subject *subject)
{
    bool fenced = id != RLI_SCRIPT_RELEASE && id != RLI_SCRIPT_EXTEND;

    eval_script(command, id, whole);
    word(command, fenced ? "2" : "1");
    add(command, subject->key, subject->key_len);
    if (fenced)
        add(command, subject->counter, subject->counter_len);
    if (id != RLI_SCRIPT_MINT && id != RLI_SCRIPT_STORE)
        add(command, subject->token, subject->token_len);
}

/* How long a counter outlives its last use: max(1 day, 2 ttl) (S8.5). */
static int64_t counter_px(rli_span ttl)
{
    return rli_max(INT64_C(86400000), 2 * (ttl / RLI_MS));
}

static void set(struct rli_command *command, const struct rli_subject *subject, rli_span ttl)
{
    word(command, "SET");
    add(command, subject->key, subject->key_len);
    add(command, subject->token, subject->token_len);
    word(command, "NX");
    word(command, "PX");
    number(command, ttl / RLI_MS);
}

static void grant(struct rli_command *command, const struct rli_subject *subject, rli_span ttl, bool whole)
{
    enum { AGREED_GRAIN = 1048576 }; /* 2^20 microseconds */

    eval(command, RLI_SCRIPT_GRANT, whole, subject);
    number(command, ttl / RLI_MS);
    number(command, subject->probe ? ttl / RLI_MS : counter_px(ttl));
    number(command, subject->nodes > 1 ? AGREED_GRAIN : 1);
}

static void top_up(struct rli_command *command, const struct rli_subject *subject, rli_span ttl, bool whole)
{
    if (subject->mode != RLI_FENCE_QUORUM || !subject->fence) {
        set(command, subject, ttl);
        return;
    }
    eval(command, RLI_SCRIPT_FENCED_TOP_UP, whole, subject);
    number(command, ttl / RLI_MS);
    number(command, subject->fence);
    number(command, counter_px(ttl));
}

static void release(struct rli_command *command, const struct rli_subject *subject, rli_span ttl, bool whole)
{
    if (subject->mode != RLI_FENCE_QUORUM || !subject->fence || subject->nodes == 1) {
        eval(command, RLI_SCRIPT_RELEASE, whole, subject);
        return;
    }
    eval(command, RLI_SCRIPT_FENCED_RELEASE, whole, subject);
    number(command, subject->fence);
    number(command, counter_px(ttl));
}

static void store(struct rli_command *command, const struct rli_subject *subject, bool whole)
{
    eval(command, RLI_SCRIPT_STORE, whole, subject);
    number(command, subject->fence);
    add(command, subject->token, subject->token_len);
    if (subject->value)
        add(command, subject->value, subject->value_len);
}

void rli_command_request(struct rli_command *command, enum rli_kind kind, const struct rli_subject *subject, rli_span ttl,
                         bool whole_script)
{
    begin(command);
    switch (kind) {
    case RLI_SET:
        set(command, subject, ttl);
        break;
    case RLI_GRANT:
        grant(command, subject, ttl, whole_script);
        break;
    case RLI_TOP_UP:
        top_up(command, subject, ttl, whole_script);
        break;
    case RLI_EXTEND:
        eval(command, RLI_SCRIPT_EXTEND, whole_script, subject);
        number(command, ttl / RLI_MS);
        break;
    case RLI_RELEASE:
        release(command, subject, ttl, whole_script);
        break;
    case RLI_CONFIRM:
        eval(command, RLI_SCRIPT_CONFIRM, whole_script, subject);
        number(command, subject->fence);
        number(command, counter_px(ttl));
        break;
    case RLI_MINT:
        eval(command, RLI_SCRIPT_MINT, whole_script, subject);
        number(command, counter_px(ttl));
        break;
    case RLI_RENEW: /* see rli_command_renew */
        break;
    case RLI_STORE:
        store(command, subject, whole_script);
        break;
    case RLI_INFO:
        word(command, "INFO");
        word(command, "server");
        break;
    }
}

void rli_command_renew(struct rli_command *command, uint32_t count, bool whole_script)
{
    begin(command);
    eval_script(command, RLI_SCRIPT_RENEW, whole_script);
    number(command, count);
}

void rli_command_renew_key(struct rli_command *command, const char *key, size_t key_len)
{
    add(command, key, key_len);
}

void rli_command_renew_for(struct rli_command *command, const char *token, size_t token_len, rli_span ttl)
{
    add(command, token, token_len);
    number(command, ttl / RLI_MS);
}

void rli_command_auth(struct rli_command *command, const char *user, const char *password)
{
    begin(command);
    word(command, "AUTH");
    if (user)
        word(command, user);
    word(command, password);
}

void rli_command_select(struct rli_command *command, uint32_t db)
{
    begin(command);
    word(command, "SELECT");
    number(command, db);
}

void rli_command_set_name(struct rli_command *command, const char *client_name)
{
    begin(command);
    word(command, "CLIENT");
    word(command, "SETNAME");
    word(command, client_name);
}

void rli_command_client_info(struct rli_command *command)
{
    begin(command);
    word(command, "CLIENT");
    word(command, "INFO");
}

void rli_command_script_load(struct rli_command *command, unsigned script)
{
    begin(command);
    word(command, "SCRIPT");
    word(command, "LOAD");
    add(command, rli_scripts[script].text, rli_scripts[script].length);
}

void rli_command_client_kill(struct rli_command *command, int64_t id, const char *address)
{
    begin(command);
    word(command, "CLIENT");
    word(command, "KILL");
    word(command, "ID");
    number(command, id);
    word(command, "ADDR");
    word(command, address);
}
