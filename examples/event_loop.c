/* event_loop.c - a lock on a libevent loop, which is never blocked: take it, work in steps on a timer, extend it, give it back.
 * usage: event_loop [URL[,URL...] [NAME]] */
#include <redlatch_event.h>

#include <event2/event.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { TTL_MS = 2000, STEP_MS = 500, STEPS = 6 };
struct job {
    struct event_base *base;
    struct event *timer;
    rl_lock *lock;
    int steps, extending;
};

static void on_released(int status, const rl_report *report, void *user_data)
{
    (void)report;
    printf("release: %s\n", rl_strstatus(status));
    event_base_loopbreak(((struct job *)user_data)->base);
}

static void on_extended(int status, const rl_report *report, void *user_data)
{
    (void)report;
    printf("extend: %s\n", rl_strstatus(status)); /* if it failed, the next step sees what is left of the lease */
    ((struct job *)user_data)->extending = 0;
}

static void on_timer(evutil_socket_t fd, short what, void *user_data)
{
    struct job *job = user_data;
    (void)fd, (void)what;
    int64_t left = rl_lock_remaining_ms(job->lock);
    if (left < STEP_MS || job->steps == STEPS) { /* the next step would not be covered, or there is none */
        event_del(job->timer);
        rl_async_release(job->lock, on_released, job);
        return;
    }
    printf("step %d of %d; the lease has %" PRId64 " ms left\n", ++job->steps, STEPS, left);
    if (left < TTL_MS / 2 && !job->extending) {
        job->extending = rl_async_extend(job->lock, TTL_MS, on_extended, job, NULL) == RL_OK;
    }
}

static void on_acquired(int status, rl_lock *lock, const rl_report *report, void *user_data)
{
    struct job *job = user_data;
    (void)report;
    printf("acquire: %s\n", rl_strstatus(status));
    job->lock = lock;
    if (status || event_add(job->timer, &(struct timeval){.tv_usec = STEP_MS * 1000})) {
        event_base_loopbreak(job->base);
    }
}

int main(int argc, char **argv)
{
    struct job job = {.base = event_base_new()};
    rl_async *async = NULL;
    rl_request request;
    rl_request_init(&request);
    request.name = argc > 2 ? argv[2] : "invoice-42";
    request.name_len = strlen(request.name);
    request.ttl_ms = TTL_MS;
    request.wait_ms = 5000;
    job.timer = event_new(job.base, -1, EV_PERSIST, on_timer, &job);
    int rc = rl_async_new(job.base, -1, argc > 1 ? argv[1] : "redis://127.0.0.1:6379", NULL, &async, NULL);
    rc = rc ? rc : rl_async_acquire(async, &request, on_acquired, &job, NULL);
    printf("start: %s\n", rl_strstatus(rc));
    rc = rc ? rc : event_base_dispatch(job.base); /* nothing is sent before */
    rl_async_free(async);                         /* before its base; NULL is fine */
    event_free(job.timer);
    event_base_free(job.base);
    return rc || job.steps < STEPS ? 1 : 0;
}
