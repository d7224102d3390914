"""A contender of the mixed fleet that locks with redis-py's Lock; see worker.c for what it proves."""

import os
import random
import sys
import time

import redis

TTL_S = 10
WAIT_S = 2
COUNTER_WIDTH = 20


def raise_counter(fd):
    following = int(os.pread(fd, COUNTER_WIDTH, 0)) + 1
    time.sleep(0.001)
    os.pwrite(fd, b"%0*d" % (COUNTER_WIDTH, following), 0)


def take_turn(client, key, fd):
    lock = client.lock(key, timeout=TTL_S, sleep=0.005, blocking_timeout=WAIT_S)
    if not lock.acquire():
        return 0
    raise_counter(fd)
    lock.release()  # raises if the lock was not ours to the end
    return 1


def main():
    if len(sys.argv) != 6:
        sys.exit("usage: worker.py NAME URL KEY COUNTER-FILE SECONDS")
    name, url, key, counter, seconds = sys.argv[1:]
    client = redis.Redis.from_url(url)
    fd = os.open(counter, os.O_RDWR)
    end = time.monotonic() + int(seconds)
    sections = 0
    while time.monotonic() < end:
        sections += take_turn(client, key, fd)
        time.sleep(random.uniform(0.001, 0.006))
    client.close()
    os.close(fd)
    print(name, sections)


main()
