/* renewing_worker.c - work that takes longer than one lease: the library renews it, and the worker stops when it is lost.
 *
 * The worker waits for its next part and for the loss at once, in poll(). With each part it checks in (rl_lock_touch), so that the lock
 * becomes free if it hangs.
 *
 * usage: renewing_worker [URLS [NAME [PARTS]]]      a part takes 200 ms, the lease is 1 s
 */
#include <redlatch.h>

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TTL_MS = 1000, WAIT_MS = 5000, PART_MS = 200, TOUCH_WITHIN_MS = 2000 };

static const char *const reasons[] = {
    [RL_LOST_NOT] = "not lost",
    [RL_LOST_EXPIRED] = "it was not renewed in time",
    [RL_LOST_TAKEN_OVER] = "somebody else has it",
    [RL_LOST_QUORUM_GONE] = "too few servers still know it",
    [RL_LOST_HOLD_CAP] = "it was held for as long as it may be",
    [RL_LOST_NOT_TOUCHED] = "the worker did not check in",
};

/* Readable means lost. A real worker has its own descriptors beside this one. */
static int work(rl_lock *lock, int parts)
{
    struct pollfd lost = {.fd = rl_lock_lost_fd(lock), .events = POLLIN};

    if (lost.fd < 0) {
        return lost.fd; /* an enum rl_status */
    }
    for (int part = 1; part <= parts; part++) {
        printf("part %d of %d; the lease has %" PRId64 " ms left\n", part, parts, rl_lock_remaining_ms(lock));
        fflush(stdout);
        if (poll(&lost, 1, PART_MS) > 0 || rl_lock_touch(lock) == RL_LOST) {
            fprintf(stderr, "stopped: %s\n", reasons[rl_lock_lost_reason(lock)]);
            return RL_LOST;
        }
    }
    return RL_OK;
}

static int take(rl_client *client, const char *name, rl_lock **ret_lock)
{
    rl_request request;

    rl_request_init(&request);
    request.name = name;
    request.name_len = strlen(name);
    request.ttl_ms = TTL_MS;
    request.wait_ms = WAIT_MS;
    request.renew = 1;
    request.touch_within_ms = TOUCH_WITHIN_MS;
    request.max_hold_ms = 60 * 60 * 1000; /* whatever happens, an hour is enough */
    return rl_acquire_with(client, &request, NULL, ret_lock);
}

int main(int argc, char **argv)
{
    const char *urls = argc > 1 ? argv[1] : "redis://127.0.0.1:6379", *name = argc > 2 ? argv[2] : "invoice-42";
    int parts = argc > 3 ? atoi(argv[3]) : 20;
    rl_client *client;
    rl_lock *lock;
    int rc = rl_client_new(urls, NULL, &client, NULL);

    if (rc == RL_OK) {
        rc = take(client, name, &lock);
        if (rc == RL_OK) {
            int worked = work(lock, parts), released = rl_release(lock);
            rc = worked ? worked : released;
        }
        rl_client_free(client);
    }
    puts(rl_strstatus(rc));
    return rc ? EXIT_FAILURE : EXIT_SUCCESS;
}
