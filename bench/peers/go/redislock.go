// redislock.go - the worker for bsm/redislock, over go-redis. It does not retry by default; waiters use the strategy of its
// documentation, LinearBackoff of 100 ms.
package main

import (
	"context"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"
)

type redislockLocker struct{ client *redislock.Client }

func (l redislockLocker) acquire(ctx context.Context, key string, ttl time.Duration) (func() error, error) {
	lock, err := l.client.Obtain(ctx, key, ttl, &redislock.Options{RetryStrategy: redislock.LinearBackoff(100 * time.Millisecond)})
	if err != nil {
		return nil, err
	}
	return func() error { return lock.Release(context.Background()) }, nil
}

func main() {
	runWorker(func(_ string, urls []string) (locker, error) {
		options, err := redis.ParseURL(urls[0])
		if err != nil {
			return nil, err
		}
		return redislockLocker{redislock.New(redis.NewClient(options))}, nil
	})
}
