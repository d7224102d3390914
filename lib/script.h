/* script.h - the Lua scripts that run on the servers, and their SHA-1 digests (which a test compares with SCRIPT LOAD's answer).
 * KEYS[1] is the lock key, ARGV[1] our token. */
#ifndef RLI_SCRIPT_H
#define RLI_SCRIPT_H

#include <stddef.h>

struct rli_script {
    const char *text;
    size_t length;
    const char *sha1;
};

enum rli_script_id { RLI_SCRIPT_RELEASE, RLI_SCRIPT_EXTEND, RLI_SCRIPTS };

extern const struct rli_script rli_scripts[RLI_SCRIPTS];

#endif
