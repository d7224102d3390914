/* redlatch.c - the worker for redlatch itself, on its public API: blocking calls, and the libevent loop for `many`.
 *
 * Modes: plain; fence (RL_FENCE_QUORUM). One URL is a single server, several are Redlock.
 */
#include <event2/event.h>
#include <redlatch.h>
#include <redlatch_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker.h"

static void set_options(rl_options *options, const char *mode)
{
    rl_options_init(options);
    if (!strcmp(mode, "fence"))
        options->fence = RL_FENCE_QUORUM;
}

static void *open_client(const char *mode, const char *urls)
{
    rl_options options;
    set_options(&options, mode);
    rl_client *client;
    int rc = rl_client_new(urls, &options, &client, NULL);
    if (rc)
        worker_die(rl_strstatus(rc));
    return client;
}

static void close_client(void *client)
{
    rl_client_free(client);
}

static void *acquire(void *client, const char *key, int64_t ttl_ms, int64_t wait_ms, const char **ret_error)
{
    rl_lock *lock;
    int rc = rl_acquire(client, key, ttl_ms, wait_ms, &lock);
    if (rc)
        *ret_error = rl_strstatus(rc);
    return lock;
}

static bool release(void *client, void *lock, const char **ret_error)
{
    (void)client;
    int rc = rl_release(lock);
    if (rc)
        *ret_error = rl_strstatus(rc);
    return !rc;
}

/* ---- Many at once on one loop ------------------------------------------------------------------------------------------------- */

struct loop {
    rl_async *async;
    struct event_base *base;
    struct worker_run *run;
    int running;
};

struct task {
    struct loop *loop;
    rl_request request;
    char key[32];
    int64_t start_us;
};

static void start_cycle(struct task *task);

static void on_released(int status, const rl_report *report, void *data)
{
    (void)report;
    struct task *task = data;
    int64_t now = worker_now_us();
    if (status)
        worker_error(task->loop->run, rl_strstatus(status));
    else
        worker_add(task->loop->run, now - task->start_us);
    if (now < worker_end_us(task->loop->run))
        start_cycle(task);
    else if (!--task->loop->running)
        event_base_loopbreak(task->loop->base);
}

static void on_acquired(int status, rl_lock *lock, const rl_report *report, void *data)
{
    struct task *task = data;
    if (status)
        on_released(status, report, task);
    else if ((status = rl_async_release(lock, on_released, task)))
        worker_die(rl_strstatus(status));
}

static void start_cycle(struct task *task)
{
    task->start_us = worker_now_us();
    int rc = rl_async_acquire(task->loop->async, &task->request, on_acquired, task, NULL);
    if (rc)
        worker_die(rl_strstatus(rc));
}

static void many(const char *mode, const char *urls, int count, struct worker_run *run)
{
    rl_options options;
    set_options(&options, mode);
    struct loop loop = {.base = event_base_new(), .run = run, .running = count};
    struct task *tasks = calloc((size_t)count, sizeof *tasks);
    if (!loop.base || !tasks)
        worker_die("out of memory");
    int rc = rl_async_new(loop.base, -1, urls, &options, &loop.async, NULL);
    if (rc)
        worker_die(rl_strstatus(rc));
    for (int i = 0; i < count; i++) {
        struct task *task = &tasks[i];
        task->loop = &loop;
        snprintf(task->key, sizeof task->key, "many-%d", i);
        rl_request_init(&task->request);
        task->request.name = task->key;
        task->request.name_len = strlen(task->key);
        task->request.ttl_ms = 10000;
        task->request.wait_ms = 1000;
        start_cycle(task);
    }
    event_base_dispatch(loop.base);
    rl_async_free(loop.async);
    event_base_free(loop.base);
    free(tasks);
}

int main(int argc, char **argv)
{
    static const struct peer peer = {
        .open = open_client, .close = close_client, .acquire = acquire, .release = release, .many = many, .shared = true};
    return worker_main(argc, argv, &peer);
}
