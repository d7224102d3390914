/* outside.c - a program of its own, built against the installed library. It runs a critical section under a lock.
 *
 * usage: outside URL NAME | outside --version
 */
#include <redlatch.h>

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        printf("redlatch %s\n", rl_version());
        return 0;
    }
    if (argc != 3) {
        fprintf(stderr, "usage: outside URL NAME | outside --version\n");
        return 2;
    }

    rl_client *client;
    rl_lock *lock;
    int rc = rl_client_new(argv[1], NULL, &client, NULL);
    if (rc) {
        fprintf(stderr, "%s\n", rl_strstatus(rc)); /* not the URL: it may hold a password */
        return 1;
    }
    rc = rl_acquire(client, argv[2], 10000, 2000, &lock);
    if (rc == RL_OK) {
        printf("%s is ours\n", argv[2]);
        rc = rl_release(lock);
    }
    if (rc) {
        fprintf(stderr, "%s\n", rl_strstatus(rc));
    }
    rl_client_free(client);
    return rc ? 1 : 0;
}
