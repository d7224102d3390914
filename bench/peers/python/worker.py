"""What the Python programs of the comparison share: the protocol that run.py speaks with every worker (../README.md).

A program defines a class with `__init__(mode, urls)`, `acquire(key, ttl_ms, wait_ms)`, which returns a handle or raises, and
`release(handle)`, which raises if the lock was not ours to the end; then it calls `run(Class)`.
"""

import json
import random
import resource
import sys
import threading
import time

TTL_MS = 10000
WAIT_MS = 1000
DRAIN_MS = 1000  # for a waiter that the end of a contention finds waiting


def say(**line):
    print(json.dumps(line), flush=True)


def cpu_us():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return int((usage.ru_utime + usage.ru_stime) * 1e6)


class Run:
    """The measured cycles of one command."""

    def __init__(self, ms):
        self.us = []
        self.errors = 0
        self.last_error = ""
        self.cpu_us = cpu_us()
        self.at_us = int(time.time() * 1e6)
        self.begin = time.monotonic()
        self.end = self.begin + ms / 1000

    def over(self):
        return time.monotonic() >= self.end

    def add(self, seconds):
        self.us.append(int(seconds * 1e6))  # atomic under the interpreter's lock

    def fail(self, error):
        self.errors += 1
        self.last_error = f"{type(error).__name__}: {error}"

    def print(self):
        elapsed_us = int((time.monotonic() - self.begin) * 1e6)
        line = {"count": len(self.us), "at_us": self.at_us, "us": elapsed_us, "cpu_us": cpu_us() - self.cpu_us}
        if self.us:
            self.us.sort()
            n = len(self.us)
            line.update(p50=self.us[n // 2], p90=self.us[n * 9 // 10], p99=self.us[n * 99 // 100])
        if self.errors:
            line.update(errors=self.errors, last_error=self.last_error[:200])
        say(**line)


def cycle(locker, key, run):
    start = time.monotonic()
    try:
        locker.release(locker.acquire(key, TTL_MS, WAIT_MS))
        run.add(time.monotonic() - start)
    except Exception as error:
        run.fail(error)


def cycles(locker, key, run):
    while not run.over():
        cycle(locker, key, run)


class Contest:
    """Who held the lock last, and when the release of it began. Who has had it stands back until another has it, and then for a
    random time of up to half a round, so that those who poll at fixed intervals do not fall into step."""

    def __init__(self, key, run, hold_us, members):
        self.key, self.run, self.hold, self.members = key, run, hold_us / 1e6, members
        self.changed = threading.Condition()
        self.last = None
        self.released = None

    def wait(self, number, locker):
        run = self.run
        while not run.over():
            with self.changed:
                while self.last == number and not run.over():
                    self.changed.wait(max(run.end - time.monotonic(), 0))
            time.sleep(random.random() * self.hold * (self.members - 1) / 2)
            left_ms = (run.end - time.monotonic()) * 1000
            if left_ms <= 0:
                break
            try:
                handle = locker.acquire(self.key, TTL_MS, int(left_ms) + DRAIN_MS)
            except Exception as error:
                if not run.over():
                    run.fail(error)
                continue
            with self.changed:
                now = time.monotonic()
                if self.released and not run.over():
                    run.add(now - self.released)
                self.last = number
                self.changed.notify_all()
            if not run.over():
                time.sleep(self.hold)
            self.released = time.monotonic()
            try:
                locker.release(handle)
            except Exception as error:
                run.fail(error)


def in_threads(bodies):
    threads = [threading.Thread(target=body, args=arguments) for body, *arguments in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def run(locker_class):
    if len(sys.argv) != 3:
        sys.exit(f"usage: {sys.argv[0]} MODE URLS, then commands on stdin (see bench/peers/README.md)")
    mode, urls = sys.argv[1], sys.argv[2].split(",")
    own = locker_class(mode, urls)
    held = None
    lockers = []  # of waiters, as in processes of their own; kept for the next contention
    say(ready=True)
    for line in sys.stdin:
        command, *words = line.split()
        if command == "cycle":
            measured = Run(int(words[0]))
            cycles(own, f"{mode}-cycle", measured)
            measured.print()
        elif command == "many":
            measured = Run(int(words[1]))
            in_threads([(cycles, own, f"{mode}-many-{i}", measured) for i in range(int(words[0]))])
            measured.print()
        elif command == "contend":
            count = int(words[0])
            lockers += [locker_class(mode, urls) for _ in range(count - len(lockers))]
            measured = Run(int(words[1]))
            contest = Contest(f"{mode}-contend", measured, int(words[2]), count)
            in_threads([(contest.wait, i, locker) for i, locker in enumerate(lockers[:count])])
            measured.print()
        elif command == "take":
            try:
                held = own.acquire(words[0], int(words[1]), int(words[2]))
                say(held=True)
            except Exception as error:
                say(held=False, error=f"{type(error).__name__}: {error}"[:200])
        elif command == "release":
            try:
                own.release(held)
                say(released=True)
            except Exception as error:
                say(released=False, error=f"{type(error).__name__}: {error}"[:200])
            held = None
        elif command == "quit":
            break
        else:
            say(error="unknown command")
