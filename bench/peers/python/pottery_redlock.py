"""The worker for pottery's Redlock, over redis-py, with its defaults (random pauses of up to 0.2 s)."""

import logging

import pottery
import redis
from worker import run


class Pottery:
    def __init__(self, _mode, urls):
        self.masters = {redis.Redis.from_url(url, max_connections=1000) for url in urls}
        logging.disable(logging.CRITICAL)  # it logs a traceback for each server that fails

    def acquire(self, key, ttl_ms, wait_ms):
        lock = pottery.Redlock(key=key, masters=self.masters, auto_release_time=ttl_ms / 1000)
        if not lock.acquire(timeout=wait_ms / 1000):
            raise TimeoutError("busy")
        return lock

    def release(self, lock):
        lock.release()


run(Pottery)
