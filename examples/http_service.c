/* http_service.c - a service of which one instance works at a time: the one that holds the lock. The others stand by. All answer HTTP,
 * on the same libevent loop: 200 and what is left of the lease from the one that holds it, 503 from the others.
 * usage: http_service PORT URL[,URL...] [NAME] */
#include <redlatch_event.h>

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TTL_MS = 5000, TICK_MS = 500 };

struct service {
    struct event_base *base;
    rl_async *async;
    const char *name;
    struct event *tick, *terminated;
    struct evhttp *http;
    rl_lock *lock; /* NULL: standing by */
    int extending, stopping;
    unsigned long worked;
};

static void on_acquired(int status, rl_lock *lock, const rl_report *report, void *user_data)
{
    struct service *service = user_data;
    (void)report;
    printf("acquire: %s\n", rl_strstatus(status));
    service->lock = lock;
    if (status && !service->stopping) { /* waiting for ever ends only for reasons that waiting does not mend, such as RL_E_AUTH */
        event_base_loopbreak(service->base);
    }
}

static int stand_by(struct service *service)
{
    rl_request request;
    rl_request_init(&request);
    request.name = service->name;
    request.name_len = strlen(service->name);
    request.ttl_ms = TTL_MS;
    request.wait_ms = RL_FOREVER;
    puts("standing by");
    return rl_async_acquire(service->async, &request, on_acquired, service, NULL);
}

static void on_extended(int status, const rl_report *report, void *user_data)
{
    struct service *service = user_data;
    (void)report;
    service->extending = 0;
    printf("extend: %s\n", rl_strstatus(status)); /* if it failed, the next tick tries again while the lease lasts */
}

/* Works, as far as the lease covers it, and keeps it long enough for the next time. */
static void on_tick(evutil_socket_t fd, short what, void *user_data)
{
    struct service *service = user_data;
    int64_t left = rl_lock_remaining_ms(service->lock);
    (void)fd, (void)what;
    if (!service->lock) {
        return;
    }
    service->worked += left > TICK_MS; /* here would be the work: no longer than TICK_MS at a time */
    if (left > 0 && left < TTL_MS * 2 / 3 && !service->extending) {
        service->extending = rl_async_extend(service->lock, TTL_MS, on_extended, service, NULL) == RL_OK;
    } else if (left <= 0 && !service->extending) {
        puts("lost the lock");
        rl_lock_free(service->lock);
        service->lock = NULL;
        if (stand_by(service)) {
            event_base_loopbreak(service->base);
        }
    }
}

static void on_request(struct evhttp_request *http_request, void *user_data)
{
    struct service *service = user_data;
    struct evbuffer *body = evhttp_request_get_output_buffer(http_request);
    int64_t left = rl_lock_remaining_ms(service->lock); /* 0 without a lock; a clock reading, no I/O */
    evbuffer_add_printf(body, "holding %s\nremaining_ms %" PRId64 "\nworked %lu\n", left > 0 ? "yes" : "no", left, service->worked);
    evhttp_add_header(evhttp_request_get_output_headers(http_request), "Content-Type", "text/plain");
    evhttp_send_reply(http_request, left > 0 ? HTTP_OK : HTTP_SERVUNAVAIL, NULL, NULL);
}

static void on_released(int status, const rl_report *report, void *user_data)
{
    (void)report;
    printf("release: %s\n", rl_strstatus(status));
    event_base_loopbreak(((struct service *)user_data)->base);
}

/* Gives the lock back before it ends, so that the next one need not wait for the end of the lease. */
static void on_terminated(evutil_socket_t fd, short what, void *user_data)
{
    struct service *service = user_data;
    (void)fd, (void)what;
    service->stopping = 1;
    event_del(service->tick);
    if (!service->lock || rl_async_release(service->lock, on_released, service)) {
        event_base_loopbreak(service->base);
    }
    service->lock = NULL;
}

static int start(struct service *service, const char *port, const char *urls)
{
    evhttp_set_gencb(service->http, on_request, service);
    if (evhttp_bind_socket(service->http, "127.0.0.1", (uint16_t)atoi(port))) {
        fprintf(stderr, "port %s cannot be had\n", port);
        return -1;
    }
    int rc = rl_async_new(service->base, -1, urls, NULL, &service->async, NULL);
    rc = rc ? rc : stand_by(service);
    if (rc) {
        fprintf(stderr, "URL or name: %s\n", rl_strstatus(rc)); /* not the URL itself: it may hold a password */
        return -1;
    }
    printf("http://127.0.0.1:%s/\n", port);
    return event_add(service->terminated, NULL) || event_add(service->tick, &(struct timeval){.tv_usec = TICK_MS * 1000});
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: http_service PORT URL[,URL...] [NAME]\n");
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    signal(SIGPIPE, SIG_IGN); /* evhttp's; redlatch raises none */
    struct event_base *base = event_base_new();
    struct service service = {.base = base, .name = argc > 3 ? argv[3] : "http-service", .http = evhttp_new(base)};
    service.tick = event_new(base, -1, EV_PERSIST, on_tick, &service);
    service.terminated = evsignal_new(base, SIGTERM, on_terminated, &service);
    if (start(&service, argv[1], argv[2]) == 0) {
        event_base_dispatch(base);
    }
    rl_async_free(service.async); /* before its base */
    evhttp_free(service.http);
    event_free(service.tick);
    event_free(service.terminated);
    event_base_free(base);
    return service.stopping ? EXIT_SUCCESS : EXIT_FAILURE;
}
