/* single.c - a lock on one Redis server: take it, work while the lease lasts, extend it, give it back.
 *
 * usage: single [URL [NAME]]
 */
#include <redlatch.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { TTL_MS = 3000, WAIT_MS = 5000, PARTS = 5 };

/* Work in parts shorter than the lease. Before each, see that the lease covers it; if it cannot be made to, stop. */
static int work(rl_lock *lock)
{
    for (int part = 1; part <= PARTS; part++) {
        if (rl_lock_remaining_ms(lock) < 2000) {
            int rc = rl_extend(lock, TTL_MS, NULL);
            if (rc) {
                return rc; /* RL_LOST: over. The others: the old lease still runs, but it is too short for this part. */
            }
        }
        printf("part %d of %d; the lease has %" PRId64 " ms left\n", part, PARTS, rl_lock_remaining_ms(lock));
        usleep(500 * 1000);
    }
    return RL_OK;
}

int main(int argc, char **argv)
{
    const char *url = argc > 1 ? argv[1] : "redis://127.0.0.1:6379";
    const char *name = argc > 2 ? argv[2] : "invoice-42";

    rl_client *client;
    size_t error_at;
    int rc = rl_client_new(url, NULL, &client, &error_at);
    if (rc) {
        fprintf(stderr, "the URL, at character %zu: %s\n", error_at + 1, rl_strstatus(rc));
        return EXIT_FAILURE;
    }

    rl_lock *lock;
    rc = rl_acquire(client, name, TTL_MS, WAIT_MS, &lock);
    if (rc) {
        /* RL_BUSY is an ordinary outcome: somebody else does the work. Everything below 0 is a failure. */
        fprintf(stderr, "%s is not ours: %s\n", name, rl_strstatus(rc));
        rl_client_free(client);
        return EXIT_FAILURE;
    }

    int worked = work(lock);
    if (worked) {
        fprintf(stderr, "stopped the work: %s\n", rl_strstatus(worked));
    }

    int released = rl_release(lock); /* the handle is gone, whatever this returns */
    if (released == RL_LOST) {
        fprintf(stderr, "the lease had ended before the work did: somebody else may have worked at the same time\n");
    } else if (released) {
        /* The work was protected; only the others have to wait until the lease ends by itself. */
        fprintf(stderr, "could not give it back: %s\n", rl_strstatus(released));
    }
    rl_client_free(client);
    if (worked || released == RL_LOST) {
        return EXIT_FAILURE;
    }
    puts("done");
    return EXIT_SUCCESS;
}
