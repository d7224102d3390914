// etcd.go - the worker for etcd, with its client's concurrency.Mutex. A lock belongs to a session, which is a lease that the client
// keeps alive; sessions live for 2 s, the shortest that a server with default settings grants. Each waiter has a session of its
// own, as it would have in a process of its own.
package main

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

const sessionSeconds = 2

type etcdLocker struct {
	client  *clientv3.Client
	session *concurrency.Session
}

func (l *etcdLocker) acquire(ctx context.Context, key string, _ time.Duration) (func() error, error) {
	select {
	case <-l.session.Done(): // its lease is over: what it held is lost, and a new one is needed
		session, err := concurrency.NewSession(l.client, concurrency.WithTTL(sessionSeconds))
		if err != nil {
			return nil, err
		}
		l.session = session
	default:
	}
	mutex := concurrency.NewMutex(l.session, "/"+key)
	if err := mutex.Lock(ctx); err != nil {
		return nil, err
	}
	return func() error { return mutex.Unlock(context.Background()) }, nil
}

func main() {
	runWorker(func(_ string, urls []string) (locker, error) {
		client, err := clientv3.New(clientv3.Config{Endpoints: urls, DialTimeout: 5 * time.Second})
		if err != nil {
			return nil, err
		}
		session, err := concurrency.NewSession(client, concurrency.WithTTL(sessionSeconds))
		if err != nil {
			return nil, err
		}
		return &etcdLocker{client, session}, nil
	})
}
