/* redlock.c - a lock on a majority of independent Redis servers, and what each of them said.
 * usage: redlock URL...      for example redis://10.0.0.1 redis://10.0.0.2 redis://10.0.0.3 */
#include <redlatch.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_report(const char *what, int rc, const rl_report *report)
{
    static const char *const outcomes[] = {"not asked", "yes",         "held by other", "absent", "error",
                                           "no answer", "unreachable", "late",          "pending"};
    printf("%s: %s\n", what, rl_strstatus(rc));
    for (size_t i = 0; i < rl_report_count(report); i++) {
        rl_node_result node = {.size = sizeof node};
        if (rl_report_node(report, i, &node) == RL_OK && node.outcome >= 0 && node.outcome <= RL_NODE_PENDING) {
            const char *why = node.sys_errno ? strerror(node.sys_errno) : "";
            printf("    %s: %s %s %s\n", node.node, outcomes[node.outcome], node.text, why);
        }
    }
}

static int run(rl_client *client, rl_report *report)
{
    /* At start-up: finds wrong passwords, missing rights, and two URLs of one server, before they cost a lock. */
    int rc = rl_client_check(client, report);
    print_report("check", rc, report);
    if (rc) {
        return rc;
    }

    rl_request request;
    rl_request_init(&request);
    request.name = "invoice-42";
    request.name_len = strlen("invoice-42");
    request.ttl_ms = 10000;
    request.wait_ms = 2000;
    rl_lock *lock;
    rc = rl_acquire_with(client, &request, report, &lock);
    print_report("acquire", rc, report);
    if (rc) {
        return rc; /* RL_BUSY: not now. RL_E_NO_QUORUM: the report says which servers failed, and how. */
    }
    printf("held for %" PRId64 " ms\n", rl_lock_remaining_ms(lock));

    rc = rl_release_with(lock, 0, report);
    print_report("release", rc, report);
    if (rc) {
        printf("free for everybody in %" PRId64 " ms at the latest\n", rl_report_free_in_ms(report));
    }
    return rc;
}

int main(int argc, char **argv)
{
    char urls[4096] = "";
    for (int i = 1; i < argc; i++) {
        if (strlen(urls) + strlen(argv[i]) + 2 > sizeof urls) {
            fprintf(stderr, "too many URLs\n"); /* never go on with fewer: another majority is another lock */
            return EXIT_FAILURE;
        }
        strcat(strcat(urls, i > 1 ? "," : ""), argv[i]);
    }
    rl_client *client;
    size_t error_at;
    int rc = rl_client_new(urls, NULL, &client, &error_at);
    if (rc) {
        fprintf(stderr, "usage: redlock URL...\nat character %zu: %s\n", error_at + 1, rl_strstatus(rc));
        return EXIT_FAILURE;
    }
    rl_report *report = NULL;
    rc = rl_report_new(&report);
    rc = rc ? rc : run(client, report);
    rl_report_free(report);
    rl_client_free(client);
    return rc ? EXIT_FAILURE : EXIT_SUCCESS;
}
