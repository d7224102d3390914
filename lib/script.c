/* script.c - see script.h. */
#include "script.h"

/* Deletes the key if it holds our token: 1. Otherwise 0 = no key, {2, PTTL} = another's. */
static const char release_text[] = "local token = redis.call('GET', KEYS[1])\n"
                                   "if token == ARGV[1] then return redis.call('DEL', KEYS[1]) end\n"
                                   "if not token then return 0 end\n"
                                   "return {2, redis.call('PTTL', KEYS[1])}\n";

/* Makes the key last at least ARGV[2] ms if it holds our token; never shorter, never a new key: 1. Otherwise 0 = no key, 2 = another's. */
static const char extend_text[] =
    "local token = redis.call('GET', KEYS[1])\n"
    "if token ~= ARGV[1] then return token and 2 or 0 end\n"
    "if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end\n"
    "return 1\n";

const struct rli_script rli_scripts[RLI_SCRIPTS] = {
    [RLI_SCRIPT_RELEASE] = {release_text, sizeof release_text - 1, "20da75687f66f315d9737393e4194a045311e236"},
    [RLI_SCRIPT_EXTEND] = {extend_text, sizeof extend_text - 1, "4c8fe71ec57ae2eb60c569cc39f539c18dd65214"},
};
