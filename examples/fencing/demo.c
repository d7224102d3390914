/* demo.c - why a lock with a lease needs fencing, with real processes.
 *
 * Holder A takes the lock and reads an account. It is stopped (SIGSTOP) for longer than its lease, and the lock becomes free, as it
 * must. Holder B takes it, adds 50 and is done. Then A goes on (SIGCONT): it knows nothing of the pause, adds 10 to what it
 * read, and writes. This is played twice: with plain writes, and with writes that check the fencing token.
 *
 * usage: demo URL SOCKET      (one server, by its URL and by its unix socket; run.sh starts one and calls this)
 */
#include <redlatch.h>

#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TTL_MS = 500, START = 100, OF_A = 10, OF_B = 50 };
enum { WRITTEN = 10, REFUSED = 11, FAILED = 12 }; /* how a holder's process ends */

static const char account[] = "account";
static const char *url, *socket_path;

static int fail(const char *what, const char *why)
{
    printf("failed: %s: %s\n", what, why);
    return FAILED;
}

static void say(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    putchar('\n');
    fflush(stdout);
}

/* One Redis command that answers with a text or a number; returns it, as a number. */
static long redis(const char *format, ...)
{
    redisContext *context = redisConnectUnix(socket_path);
    va_list arguments;
    va_start(arguments, format);
    redisReply *reply = context && !context->err ? redisvCommand(context, format, arguments) : NULL;
    va_end(arguments);
    if (!reply || reply->type == REDIS_REPLY_ERROR) {
        exit(fail(format, reply ? reply->str : "no answer"));
    }
    long value = reply->str ? strtol(reply->str, NULL, 10) : (long)reply->integer;
    freeReplyObject(reply);
    redisFree(context);
    return value;
}

/* Writes the account, checked or not. */
static int write_account(rl_client *client, const rl_lock *lock, long value, int checked)
{
    if (!checked) {
        redis("SET %s %ld", account, value);
        return RL_OK;
    }
    char text[32];
    int len = snprintf(text, sizeof text, "%ld", value);
    return rl_fenced_set(client, account, strlen(account), lock, text, (size_t)len, NULL);
}

/* The critical section: read, add, write. A stops in the middle; it does not know that. */
static int work(const char *who, rl_client *client, const rl_lock *lock, long amount, int checked)
{
    if (checked) {
        int rc = rl_fenced_begin(client, account, strlen(account), lock, NULL); /* before the first read */
        if (rc) {
            return rc == RL_LOST ? REFUSED : fail("rl_fenced_begin", rl_strstatus(rc));
        }
    }
    long balance = redis("GET %s", account);
    say("  %s  has the lock, with fencing token %" PRId64 ", and reads %ld", who, rl_lock_fence(lock), balance);
    if (amount == OF_A) {
        raise(SIGSTOP);
    }
    int rc = write_account(client, lock, balance + amount, checked);
    if (rc == RL_LOST) {
        say("  %s  writes %ld + %ld = %ld: REFUSED, a newer holder has been here", who, balance, amount, balance + amount);
        return REFUSED;
    }
    if (rc) {
        return fail("rl_fenced_set", rl_strstatus(rc));
    }
    say("  %s  writes %ld + %ld = %ld: done", who, balance, amount, balance + amount);
    return WRITTEN;
}

/* One holder, in a process of its own. */
static int hold(const char *who, long amount, int checked)
{
    rl_options options;
    rl_options_init(&options);
    options.fence = RL_FENCE_QUORUM;
    options.node_timeout_ms = 5000;
    rl_client *client;
    rl_lock *lock;
    int rc = rl_client_new(url, &options, &client, NULL);
    if (rc) {
        return fail("rl_client_new", rl_strstatus(rc));
    }
    int result = FAILED;
    rc = rl_acquire(client, "account-lock", TTL_MS, 20000, &lock);
    if (rc) {
        fail("rl_acquire", rl_strstatus(rc));
    } else {
        result = work(who, client, lock, amount, checked);
        if (rl_release(lock) == RL_LOST) {
            say("  %s  gives the lock back, and learns only now that it had lost it", who);
        }
    }
    rl_client_free(client);
    return result;
}

static pid_t start(const char *who, long amount, int checked)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* none stays behind, stopped */
        int result = hold(who, amount, checked);
        fflush(stdout);
        _exit(result);
    }
    return pid;
}

/* Waits until the process ends, and returns how. */
static int ended(pid_t pid)
{
    int status;
    if (pid < 0 || waitpid(pid, &status, 0) < 0 || !WIFEXITED(status)) {
        return FAILED;
    }
    return WEXITSTATUS(status);
}

/* Plays it once. Returns whether all processes did their part; then *ret_balance and *ret_a tell how it came out. */
static int play(int checked, long *ret_balance, int *ret_a)
{
    redis("FLUSHALL");
    redis("SET %s %d", account, START);
    pid_t a = start("A", OF_A, checked);
    int status;
    if (a < 0 || waitpid(a, &status, WUNTRACED) < 0 || !WIFSTOPPED(status)) {
        return 0;
    }
    say("     (A is stopped now, for longer than its lease of %d ms)", TTL_MS);
    int b = ended(start("B", OF_B, checked));
    say("     (A goes on)");
    kill(a, SIGCONT);
    *ret_a = ended(a);
    *ret_balance = redis("GET %s", account);
    return b == WRITTEN && *ret_a != FAILED;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: demo URL SOCKET\n");
        return 2;
    }
    url = argv[1];
    socket_path = argv[2];
    long balance = 0;
    int a = FAILED;
    say("The account has %d. A shall add %d and B shall add %d, each under the lock: %d in the end.", START, OF_A, OF_B,
        START + OF_A + OF_B);

    say("\n1. Without the check");
    int lost = play(0, &balance, &a) && a == WRITTEN && balance == START + OF_A;
    say("  => the account has %ld. %s", balance,
        lost ? "CORRUPTED: what B added is gone, and nobody was told." : "Not as expected!");

    say("\n2. With the check: rl_fenced_begin before the read, rl_fenced_set for the write");
    int kept = play(1, &balance, &a) && a == REFUSED && balance == START + OF_B;
    say("  => the account has %ld. %s", balance,
        kept ? "INTACT: what B added is there, and A was told to start again." : "Not as expected!");
    return lost && kept ? EXIT_SUCCESS : EXIT_FAILURE;
}
