"""The worker for redis-py's Lock, with its default pause of 0.1 s between attempts. Its pool is made large enough for `many`: by
default it refuses the hundred and first connection."""

import redis
from worker import run


class RedisPy:
    def __init__(self, _mode, urls):
        self.client = redis.Redis.from_url(urls[0], max_connections=1000)

    def acquire(self, key, ttl_ms, wait_ms):
        lock = self.client.lock(key, timeout=ttl_ms / 1000, blocking_timeout=wait_ms / 1000)
        if not lock.acquire():
            raise TimeoutError("busy")
        return lock

    def release(self, lock):
        lock.release()


run(RedisPy)
