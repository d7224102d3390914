/* command.c - see command.h. */
#include "command.h"

#include "script.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void begin(struct rli_command *command)
{
    command->argc = 0;
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
    int length = snprintf(command->digits, sizeof command->digits, "%" PRId64, value);
    add(command, command->digits, (size_t)length);
}

static void eval(struct rli_command *command, enum rli_script_id id, bool whole, const struct rli_subject *subject)
{
    const struct rli_script *script = &rli_scripts[id];

    word(command, whole ? "EVAL" : "EVALSHA");
    if (whole)
        add(command, script->text, script->length);
    else
        add(command, script->sha1, 40);
    word(command, "1");
    add(command, subject->key, subject->key_len);
    add(command, subject->token, subject->token_len);
}

void rli_command_request(struct rli_command *command, enum rli_kind kind, const struct rli_subject *subject, rli_span ttl,
                         bool whole_script)
{
    begin(command);
    switch (kind) {
    case RLI_SET:
    case RLI_TOP_UP:
        word(command, "SET");
        add(command, subject->key, subject->key_len);
        add(command, subject->token, subject->token_len);
        word(command, "NX");
        word(command, "PX");
        number(command, ttl / RLI_MS);
        break;
    case RLI_EXTEND:
        eval(command, RLI_SCRIPT_EXTEND, whole_script, subject);
        number(command, ttl / RLI_MS);
        break;
    case RLI_RELEASE:
        eval(command, RLI_SCRIPT_RELEASE, whole_script, subject);
        break;
    case RLI_INFO:
        word(command, "INFO");
        word(command, "server");
        break;
    }
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
