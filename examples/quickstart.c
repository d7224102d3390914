/* quickstart.c - what a lock does, step by step; quickstart.sh starts the servers and runs it.
 *
 * usage: quickstart single URL         one server
 *        quickstart majority URL,...   several independent servers
 */
#include <redlatch.h>

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    printf("   ");
    vprintf(format, args);
    printf("\n");
    va_end(args);
}

/* Prints what a call returned, and ends the program if that is not what the story needs. */
static void expect(const char *call, int got, int wanted)
{
    say("%-48s -> %s", call, rl_strstatus(got));
    if (got != wanted) {
        say("Expected: %s. Giving up.", rl_strstatus(wanted));
        exit(EXIT_FAILURE);
    }
}

static rl_client *new_client(const char *urls)
{
    rl_client *client;
    int rc = rl_client_new(urls, NULL, &client, NULL);
    if (rc) {
        expect("rl_client_new", rc, RL_OK);
    }
    return client;
}

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void take_extend_release(rl_client *alice, rl_client *bob)
{
    rl_lock *lock, *other;
    puts("\n1. Alice takes the lock \"invoice-42\" for 10 seconds.");
    expect("alice: rl_acquire(ttl 10000, wait 0)", rl_acquire(alice, "invoice-42", 10000, 0, &lock), RL_OK);
    say("She may work for %" PRId64 " ms; a margin is kept for clocks that differ.", rl_lock_remaining_ms(lock));

    puts("\n2. Bob wants it too. He tries once, then waits for 300 ms.");
    expect("bob:   rl_acquire(wait 0)", rl_acquire(bob, "invoice-42", 10000, 0, &other), RL_BUSY);
    expect("bob:   rl_acquire(wait 300)", rl_acquire(bob, "invoice-42", 10000, 300, &other), RL_BUSY);

    puts("\n3. Alice needs longer: she extends the lease to 30 seconds from now.");
    expect("alice: rl_extend(ttl 30000)", rl_extend(lock, 30000, NULL), RL_OK);
    say("She may work for %" PRId64 " ms.", rl_lock_remaining_ms(lock));

    puts("\n4. Alice gives it back, and Bob gets it at once.");
    expect("alice: rl_release", rl_release(lock), RL_OK);
    expect("bob:   rl_acquire(wait 0)", rl_acquire(bob, "invoice-42", 10000, 0, &other), RL_OK);
    expect("bob:   rl_release", rl_release(other), RL_OK);
}

/* The child: takes the lock, tells so, and never comes back. */
static void hold_for_ever(const char *url, int told)
{
    rl_client *carol = new_client(url); /* its own: clients do not cross fork() */
    rl_lock *lock;
    expect("carol: rl_acquire(ttl 2000)", rl_acquire(carol, "invoice-42", 2000, 0, &lock), RL_OK);
    if (write(told, "x", 1) == 1) {
        pause();
    }
    _exit(EXIT_FAILURE);
}

static void holder_is_killed(const char *url, rl_client *bob)
{
    puts("\n5. Carol, another process, takes it for 2 seconds and is killed (kill -9) while she holds it.");
    int told[2];
    pid_t carol = pipe(told) == 0 ? fork() : -1;
    if (carol == 0) {
        hold_for_ever(url, told[1]);
    }
    close(told[1]);
    char byte;
    if (carol < 0 || read(told[0], &byte, 1) != 1) {
        say("Carol could not be started.");
        exit(EXIT_FAILURE);
    }
    close(told[0]);
    kill(carol, SIGKILL);
    waitpid(carol, NULL, 0);
    say("Carol is dead. Her lease is not: nobody else can know whether she only pauses.");

    rl_lock *lock;
    int64_t began = now_ms();
    expect("bob:   rl_acquire(wait 0)", rl_acquire(bob, "invoice-42", 10000, 0, &lock), RL_BUSY);
    expect("bob:   rl_acquire(wait 5000)", rl_acquire(bob, "invoice-42", 10000, 5000, &lock), RL_OK);
    say("Her lease ended by itself; Bob waited for %" PRId64 " ms.", now_ms() - began);
    expect("bob:   rl_release", rl_release(lock), RL_OK);
}

static void print_nodes(const rl_report *report)
{
    for (size_t i = 0; i < rl_report_count(report); i++) {
        rl_node_result node = {.size = sizeof node};
        if (rl_report_node(report, i, &node)) {
            continue;
        }
        const char *why = node.text[0] ? node.text : node.sys_errno ? strerror(node.sys_errno) : "";
        if (node.outcome == RL_NODE_YES) {
            say("    %-28s yes", node.node);
        } else if (node.outcome == RL_NODE_PENDING) {
            say("    %-28s had not answered yet, and was not needed", node.node);
        } else {
            say("    %-28s no: %s", node.node, why);
        }
    }
}

static void majority(const char *urls)
{
    rl_client *client = new_client(urls);
    rl_report *report;
    int rc = rl_report_new(&report);
    if (rc) {
        expect("rl_report_new", rc, RL_OK);
    }

    rl_request request;
    rl_request_init(&request);
    request.name = "invoice-42";
    request.name_len = strlen("invoice-42");
    request.ttl_ms = 10000;
    rl_lock *lock;
    expect("rl_acquire_with(ttl 10000, wait 0)", rl_acquire_with(client, &request, report, &lock), RL_OK);
    print_nodes(report);
    expect("rl_extend(ttl 10000)", rl_extend(lock, 10000, NULL), RL_OK);
    expect("rl_release", rl_release(lock), RL_OK);
    rl_report_free(report);
    rl_client_free(client);
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0); /* nothing is left in it at a fork() */
    if (argc == 3 && strcmp(argv[1], "single") == 0) {
        rl_client *alice = new_client(argv[2]), *bob = new_client(argv[2]);
        take_extend_release(alice, bob);
        holder_is_killed(argv[2], bob);
        rl_client_free(alice);
        rl_client_free(bob);
    } else if (argc == 3 && strcmp(argv[1], "majority") == 0) {
        majority(argv[2]);
    } else {
        fprintf(stderr, "usage: quickstart single URL | quickstart majority URL,URL,URL\n");
        return 2;
    }
    return EXIT_SUCCESS;
}
