/* cycle.c - takes and releases an uncontended lock a number of times, and nothing else: the program that syscalls.sh traces. */
#include <stdio.h>
#include <stdlib.h>

#include "common.h"

int main(int argc, char **argv)
{
    char *end;
    long count = argc == 3 ? strtol(argv[2], &end, 10) : -1;
    if (count < 0 || *end) {
        fprintf(stderr, "usage: %s URLS COUNT\n", argv[0]);
        return 2;
    }
    rl_client *client = client_or_die(argv[1]);
    for (long i = 0; i < count; i++)
        release_or_die(acquire_or_die(client, "bench-cycle", 0), 0);
    rl_client_free(client);
    return 0;
}
