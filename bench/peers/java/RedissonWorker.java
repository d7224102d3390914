/* RedissonWorker.java - the worker for Redisson. Modes: lock (RLock), fair (RFairLock), fenced (RFencedLock).
 *
 * One server; its RedLock object is deprecated. Locks are taken with a lease time, so its watchdog does not renew them. The clients
 * of the waiters have two threads and two connections each instead of 16 + 32 and 24, or sixteen of them would not fit.
 */
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

public class RedissonWorker {
    static final long TTL_MS = 10000, WAIT_MS = 1000;
    static final long DRAIN_MS = 1000; // for a waiter that the end of a contention finds waiting
    static String mode, url;

    static RedissonClient open(boolean small) {
        Config config = new Config();
        if (small) {
            config.setThreads(2).setNettyThreads(2);
            config.useSingleServer().setAddress(url).setConnectionMinimumIdleSize(2).setConnectionPoolSize(2)
                .setSubscriptionConnectionMinimumIdleSize(1).setSubscriptionConnectionPoolSize(1);
        } else {
            config.useSingleServer().setAddress(url);
        }
        return Redisson.create(config);
    }

    static RLock lock(RedissonClient client, String key) {
        switch (mode) {
        case "fair": return client.getFairLock(key);
        case "fenced": return client.getFencedLock(key);
        default: return client.getLock(key);
        }
    }

    static long cpuUs() throws Exception {
        java.lang.management.OperatingSystemMXBean bean = java.lang.management.ManagementFactory.getOperatingSystemMXBean();
        return ((com.sun.management.OperatingSystemMXBean) bean).getProcessCpuTime() / 1000;
    }

    /* The measured cycles of one command. */
    static class Run {
        final List<Long> us = new ArrayList<>();
        final long at = System.currentTimeMillis() * 1000, begin = System.nanoTime(), end, cpu;
        long errors;
        String last = "";

        Run(long ms) throws Exception {
            end = begin + ms * 1000000;
            cpu = cpuUs();
        }

        boolean over() {
            return System.nanoTime() >= end;
        }

        synchronized void add(long ns) {
            us.add(ns / 1000);
        }

        synchronized void fail(Throwable error) {
            errors++;
            last = clean(error);
        }

        void print() throws Exception {
            long elapsed = (System.nanoTime() - begin) / 1000;
            int n = us.size();
            StringBuilder line = new StringBuilder();
            line.append(String.format("{\"count\": %d, \"at_us\": %d, \"us\": %d, \"cpu_us\": %d", n, at, elapsed, cpuUs() - cpu));
            if (n > 0) {
                us.sort(null);
                line.append(String.format(", \"p50\": %d, \"p90\": %d, \"p99\": %d", us.get(n / 2),
                                          us.get((int) (n * 9L / 10)), us.get((int) (n * 99L / 100))));
            }
            if (errors > 0)
                line.append(String.format(", \"errors\": %d, \"last_error\": \"%s\"", errors, last));
            say(line.append("}").toString());
        }
    }

    static String clean(Throwable error) {
        String text = String.valueOf(error).replaceAll("[^ -~]|[\"\\\\]", " ");
        return text.substring(0, Math.min(text.length(), 200));
    }

    static void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    interface Body {
        void run(int number) throws Exception;
    }

    static void inThreads(int count, Body body) throws Exception {
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            int number = i;
            Thread thread = new Thread(() -> {
                try {
                    body.run(number);
                } catch (Exception error) {
                    throw new IllegalStateException(error);
                }
            });
            threads.add(thread);
            thread.start();
        }
        for (Thread thread : threads)
            thread.join();
    }

    static void cycles(RedissonClient client, String key, Run run) {
        while (!run.over()) {
            long start = System.nanoTime();
            try {
                RLock lock = lock(client, key);
                if (!lock.tryLock(WAIT_MS, TTL_MS, TimeUnit.MILLISECONDS))
                    throw new IllegalStateException("busy");
                lock.unlock();
                run.add(System.nanoTime() - start);
            } catch (Exception error) {
                run.fail(error);
            }
        }
    }

    /* Who held the lock last, and when the release of it began. Who has had it stands back until another has it, and then for a random
     * time of up to half a round, so that those who poll at fixed intervals do not fall into step. */
    static class Contest {
        int last = -1;
        long released;

        synchronized void standBack(int number, Run run) throws InterruptedException {
            while (last == number && !run.over())
                wait(Math.max(1, (run.end - System.nanoTime()) / 1000000));
        }

        synchronized void taken(int number, Run run) {
            if (released != 0 && !run.over())
                run.add(System.nanoTime() - released);
            last = number;
            notifyAll();
        }

        synchronized void releasing() {
            released = System.nanoTime();
        }
    }

    static void waiter(Contest contest, int number, int members, RedissonClient client, Run run, long holdUs) throws Exception {
        while (!run.over()) {
            contest.standBack(number, run);
            TimeUnit.MICROSECONDS.sleep((long) (Math.random() * holdUs * (members - 1) / 2));
            long left = (run.end - System.nanoTime()) / 1000000;
            if (left <= 0)
                break;
            RLock lock = lock(client, mode + "-contend");
            if (!lock.tryLock(left + DRAIN_MS, TTL_MS, TimeUnit.MILLISECONDS))
                continue;
            contest.taken(number, run);
            if (!run.over())
                TimeUnit.MICROSECONDS.sleep(holdUs);
            contest.releasing();
            try {
                lock.unlock();
            } catch (Exception error) {
                run.fail(error);
            }
        }
    }

    /* Of waiters, as in processes of their own; kept for the next contention. */
    static final List<RedissonClient> clients = new ArrayList<>();

    static void contend(int count, long ms, long holdUs) throws Exception {
        while (clients.size() < count)
            clients.add(open(true));
        Run run = new Run(ms);
        Contest contest = new Contest();
        inThreads(count, i -> waiter(contest, i, count, clients.get(i), run, holdUs));
        run.print();
    }

    public static void main(String[] args) throws Exception {
        Locale.setDefault(Locale.ROOT);
        mode = args[0];
        url = args[1];
        RedissonClient own = open(false);
        RLock held = null;
        say("{\"ready\": true}");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null;) {
            String[] words = line.split(" ");
            long[] n = new long[words.length];
            for (int i = 1; i < words.length; i++)
                n[i] = words[i].matches("[0-9]+") ? Long.parseLong(words[i]) : 0;
            switch (words[0]) {
            case "cycle": {
                Run run = new Run(n[1]);
                cycles(own, mode + "-cycle", run);
                run.print();
                break;
            }
            case "many": {
                Run run = new Run(n[2]);
                inThreads((int) n[1], i -> cycles(own, mode + "-many-" + i, run));
                run.print();
                break;
            }
            case "contend":
                contend((int) n[1], n[2], n[3]);
                break;
            case "take":
                try {
                    RLock lock = lock(own, words[1]);
                    if (!lock.tryLock(n[3], n[2], TimeUnit.MILLISECONDS))
                        throw new IllegalStateException("busy");
                    held = lock;
                    say("{\"held\": true}");
                } catch (Exception error) {
                    say("{\"held\": false, \"error\": \"" + clean(error) + "\"}");
                }
                break;
            case "release":
                try {
                    held.unlock();
                    say("{\"released\": true}");
                } catch (Exception error) {
                    say("{\"released\": false, \"error\": \"" + clean(error) + "\"}");
                }
                held = null;
                break;
            case "quit":
                System.exit(0);
            default:
                say("{\"error\": \"unknown command\"}");
            }
        }
        System.exit(0);
    }
}
