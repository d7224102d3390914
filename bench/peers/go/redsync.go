// redsync.go - the worker for redsync, over go-redis, with its default options (32 tries, pauses of 50 to 250 ms) and the TTL.
package main

import (
	"context"
	"errors"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

type redsyncLocker struct{ rs *redsync.Redsync }

func (l redsyncLocker) acquire(ctx context.Context, key string, ttl time.Duration) (func() error, error) {
	mutex := l.rs.NewMutex(key, redsync.WithExpiry(ttl))
	if err := mutex.LockContext(ctx); err != nil {
		return nil, err
	}
	return func() error {
		held, err := mutex.Unlock()
		if err == nil && !held {
			err = errors.New("the lock was not held")
		}
		return err
	}, nil
}

func main() {
	runWorker(func(_ string, urls []string) (locker, error) {
		var pools []redsyncredis.Pool
		for _, url := range urls {
			options, err := redis.ParseURL(url)
			if err != nil {
				return nil, err
			}
			pools = append(pools, goredis.NewPool(redis.NewClient(options)))
		}
		return redsyncLocker{redsync.New(pools...)}, nil
	})
}
