/* script.h - the Lua scripts that run on the servers, and their SHA-1 digests (which a test compares with SCRIPT LOAD's answer).
 * KEYS[1] is the lock key, KEYS[2] the fence counter's; ARGV[1] our token. RLI_SCRIPT_STORE runs where the protected data is. */
#ifndef RLI_SCRIPT_H
#define RLI_SCRIPT_H

#include <stddef.h>

struct rli_script {
    const char *text;
    size_t length;
    const char *sha1;
};

enum rli_script_id {
    RLI_SCRIPT_RELEASE,
    RLI_SCRIPT_EXTEND,
    RLI_SCRIPT_RENEW,
    RLI_SCRIPT_GRANT,
    RLI_SCRIPT_CONFIRM,
    RLI_SCRIPT_MINT,
    RLI_SCRIPT_FENCED_TOP_UP,
    RLI_SCRIPT_FENCED_RELEASE,
    RLI_SCRIPT_STORE,
    RLI_SCRIPTS
};

extern const struct rli_script rli_scripts[RLI_SCRIPTS];

#endif
