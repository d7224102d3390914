/* resp.h - where a request or reply of RESP2 begins and ends, for the fixtures that stand between a client and a server.
 */
#ifndef TS_RESP_H
#define TS_RESP_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The length of the element (with all it contains) that the bytes begin with; 0 = not complete yet; -1 = this is no RESP. */
ssize_t ts_resp_length(const char *bytes, size_t len);

/* A request taken apart. The words point into its bytes and are not ended by NUL. */
enum { TS_RESP_MAX_WORDS = 1024 };
typedef struct ts_words {
    int count;
    const char *word[TS_RESP_MAX_WORDS];
    size_t len[TS_RESP_MAX_WORDS];
} ts_words;

/* bytes, len: one complete element. false if it is not an array of at least one bulk string. */
bool ts_resp_words(const char *bytes, size_t len, ts_words *ret_words);

/* Whether a request has this name: any case; two words for a subcommand ("CLIENT KILL"); NULL matches every request. */
bool ts_resp_is(const ts_words *words, const char *name);

#endif
