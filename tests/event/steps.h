/* steps.h - an event_new of the test's own, which the library finds before libevent's: the loop breaks after each single event of the
 * library, so that a test can act between any two. Only in one source file of a program. */
#ifndef RLT_STEPS_H
#define RLT_STEPS_H

#include "event.h"

#include <dlfcn.h>

struct stepped { /* an event of the library's */
    struct stepped *next;
    struct event_base *base;
    event_callback_fn callback;
    void *arg;
};

static struct stepped *all_stepped; /* freed when their base is gone */

static void on_stepped(evutil_socket_t fd, short what, void *arg)
{
    const struct stepped *stepped = arg;
    stepped->callback(fd, what, stepped->arg);
    event_base_loopbreak(stepped->base);
}

typedef struct event *event_new_fn(struct event_base *, evutil_socket_t, short, event_callback_fn, void *);

struct event *event_new(struct event_base *base, evutil_socket_t fd, short what, event_callback_fn callback, void *arg)
{
    void *symbol = dlsym(RTLD_NEXT, "event_new");
    event_new_fn *real;
    memcpy(&real, &symbol, sizeof real); /* a data pointer may not be cast to a function */
    if (callback == on_tick)
        return real(base, fd, what, callback, arg);
    struct stepped *stepped = malloc(sizeof *stepped);
    assert_non_null(stepped);
    *stepped = (struct stepped){all_stepped, base, callback, arg};
    all_stepped = stepped;
    return real(base, fd, what, on_stepped, stepped);
}

/* Waits for the next event of the library's and runs it. */
static void step(struct loop *loop)
{
    ts_check(event_base_loop(loop->base, 0) == 0, "the loop has ended");
}

/* At most so many events, while the call has not come back; false if it has. */
static inline bool steps(struct loop *loop, int count, const struct call *call)
{
    for (int i = 0; i < count && !call->times; i++)
        step(loop);
    return !call->times;
}

static void stepped_end(struct loop *loop)
{
    loop_end(loop);
    for (struct stepped *stepped; (stepped = all_stepped);) {
        all_stepped = stepped->next;
        free(stepped);
    }
}

#endif
