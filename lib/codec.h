/* codec.h - RESP2 on the wire: commands are written by a formatter of our own, replies are read by hiredis' reader.
 *
 * (hiredis' formatter, with its sprintf for each argument and its allocation, was half of all our instructions in a cycle.)
 * Replies become small views without an allocation each, and are limited from the first byte: RLI_MAX_ELEMENTS, RLI_MAX_DEPTH,
 * RLI_MAX_BULK. Beyond that, or out of form, is a violation: the stream can't be trusted any more. */
#ifndef RLI_CODEC_H
#define RLI_CODEC_H

#include "command.h"

enum { RLI_MAX_ELEMENTS = 1024, RLI_MAX_DEPTH = 4, RLI_MAX_BULK = 64 * 1024, RLI_MAX_TEXT = 4096, RLI_MAX_INTS = RLI_MAX_KEYS };

enum rli_reply_type { RLI_NIL, RLI_STATUS, RLI_ERROR, RLI_INTEGER, RLI_BULK, RLI_ARRAY };

struct rli_reply {
    enum rli_reply_type type;
    int64_t integer;
    const char *text; /* STATUS, ERROR, BULK: ended by NUL, cut at RLI_MAX_TEXT; valid until the next rli_codec_next */
    size_t text_len;
    size_t elements;       /* ARRAY */
    uint32_t ints;         /* ARRAY: so many of the first elements are integers ... */
    const int64_t *values; /* ... namely these, at most RLI_MAX_INTS; valid until the next rli_codec_next */
};

struct rli_codec;
struct rli_codec *rli_codec_new(void);
void rli_codec_free(struct rli_codec *codec);

bool rli_codec_feed(struct rli_codec *codec, const char *bytes, size_t size); /* false: out of memory or a violation */

enum rli_next { RLI_NEXT_REPLY, RLI_NEXT_NONE, RLI_NEXT_VIOLATION };
enum rli_next rli_codec_next(struct rli_codec *codec, struct rli_reply *ret);

/* Have bytes of a reply come that is not whole yet? */
bool rli_codec_partial(const struct rli_codec *codec);

/* The size of the command in RESP; the command itself in `to`, if it fits into `room`. */
size_t rli_format(const struct rli_command *command, char *to, size_t room);

#endif
