/* url.h - the list of node URLs. Pure. */
#ifndef RLI_URL_H
#define RLI_URL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rli_url {
    char *host;     /* a name or address; NULL for a unix socket */
    char *path;     /* of a unix socket; NULL otherwise */
    char *user;     /* or NULL */
    char *password; /* or NULL */
    char *shown;    /* the URL without user and password */
    size_t at;      /* offset in the list */
    uint32_t db;
    uint16_t port;
};

/* Parses 1 .. RL_MAX_NODES URLs into urls[]. Returns RL_OK, or RL_E_INVALID or RL_E_UNSUPPORTED with the offset of the fault, or
 * RL_E_NO_MEMORY; nothing to free then. */
int rli_urls_parse(const char *list, struct rli_url *urls, uint32_t *ret_count, size_t *ret_error_at);
void rli_urls_free(struct rli_url *urls, uint32_t count);

#endif
