/* callback.h - the callback front without a loop: everything of redlatch_event.h but the knowledge of libevent.
 *
 * The adapter of a loop (event.c) is a second library. It gets at the core by these functions alone, and passes the version it was
 * built for. */
#ifndef RLI_CALLBACK_H
#define RLI_CALLBACK_H

#include "redlatch_event.h"

#include "instant.h"

#include <stdbool.h>

struct rli_loop { /* what the front asks of a loop; `loop` is the adapter's own */
    /* Wait for the descriptor to become readable, and writable if `write`; both until told otherwise. Replaces what was said of
     * this node before; fd -1: no more, it is about to be closed. False: out of memory. */
    bool (*watch)(void *loop, uint32_t node, int fd, bool write);
    void (*defer)(void *loop); /* call rli_async_turn from the loop, soon */
    void (*free)(void *loop);
};

/* As rl_async_new. `loop` is the adapter's until RL_OK. */
RL_API int rli_async_new(const char *version, const struct rli_loop *vtable, void *loop, const char *urls,
                         const rl_options *options, rl_async **ret_async, size_t *ret_error_at);
RL_API int rli_async_waker_fd(const rl_async *async); /* a timer and more; readable: call rli_async_woken */

RL_API void rli_async_ready(rl_async *async, uint32_t node, bool readable, bool writable);
RL_API void rli_async_woken(rl_async *async);
RL_API void rli_async_turn(rl_async *async);

#endif
