"""The worker for python-redis-lock, over redis-py. Waiters block in BLPOP on a list that the release pushes to. Times are whole
seconds there, and a wait may not be longer than the time to live."""

import logging

import redis
import redis_lock
from worker import run


class PythonRedisLock:
    def __init__(self, _mode, urls):
        self.client = redis.Redis.from_url(urls[0], max_connections=1000)
        logging.disable(logging.CRITICAL)

    def acquire(self, key, ttl_ms, wait_ms):
        lock = redis_lock.Lock(self.client, key, expire=ttl_ms // 1000)
        if not lock.acquire(timeout=max(1, min(wait_ms, ttl_ms) // 1000)):
            raise TimeoutError("busy")
        return lock

    def release(self, lock):
        lock.release()


run(PythonRedisLock)
