/* raw_command.h - the commands of the raw clients, shared by them. */
#ifndef BENCH_RAW_COMMAND_H
#define BENCH_RAW_COMMAND_H

#include "common.h"

#include <hiredis/hiredis.h>

enum { SHA_LENGTH = 40, WAIT_MS = 1000 };

/* A command with the lengths that hiredis wants. */
struct command {
    int argc;
    const char *argv[9];
    size_t lengths[9];
};
struct command command_of(int argc, const char *const *argv);
struct command acquire_command(const char *key);
struct command release_command(const char *key, const char *sha);

bool is_ok(const redisReply *reply);
bool is_one(const redisReply *reply);

/* Loads the release script over a connection of its own. */
void load_release(const struct address *address, char ret_sha[SHA_LENGTH + 1]);

/* A connected, non-blocking socket without Nagle's delay. */
int socket_to(const struct address *address);

#endif
