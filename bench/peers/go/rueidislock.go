// rueidislock.go - the worker for rueidislock, with what its documentation recommends for one server: KeyMajority 1, NoLoopTracking.
// Its locks are extended in the background for as long as they are held; the time to live is an option of the locker.
package main

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

type rueidisLocker struct {
	address string
	mutex   sync.Mutex
	lockers map[time.Duration]rueidislock.Locker
}

func (l *rueidisLocker) locker(ttl time.Duration) (rueidislock.Locker, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.lockers[ttl] != nil {
		return l.lockers[ttl], nil
	}
	made, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption:   rueidis.ClientOption{InitAddress: []string{l.address}},
		KeyValidity:    ttl,
		KeyMajority:    1,
		NoLoopTracking: true,
	})
	if err == nil {
		l.lockers[ttl] = made
	}
	return made, err
}

func (l *rueidisLocker) acquire(ctx context.Context, key string, ttl time.Duration) (func() error, error) {
	locker, err := l.locker(ttl)
	if err != nil {
		return nil, err
	}
	// The lock ends with the context that it was acquired under, so the time to wait must not be that context's deadline.
	lockCtx, stop := context.WithCancel(context.Background())
	unwatch := context.AfterFunc(ctx, stop)
	held, cancel, err := locker.WithContext(lockCtx, key)
	if !unwatch() && err == nil {
		cancel()
		err = ctx.Err()
	}
	if err != nil {
		stop()
		return nil, err
	}
	return func() error {
		err := held.Err() // set when the library saw that the lock was lost
		cancel()
		stop()
		return err
	}, nil
}

func main() {
	runWorker(func(_ string, urls []string) (locker, error) {
		address := strings.TrimPrefix(urls[0], "redis://")
		l := &rueidisLocker{address: address, lockers: map[time.Duration]rueidislock.Locker{}}
		_, err := l.locker(cycleTTL)
		return l, err
	})
}
