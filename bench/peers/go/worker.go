// worker.go - what the Go programs of the comparison share: the protocol that run.py speaks with every worker (../README.md).
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"sort"
	"strings"
	"sync"
	"syscall"
	"time"
)

// locker is one connection (or session, or pool) of the library.
type locker interface {
	// acquire waits until ctx ends, in the way of the library. The function it returns releases the lock.
	acquire(ctx context.Context, key string, ttl time.Duration) (func() error, error)
}

// opener makes the locker of the worker, which serves any number of goroutines, and one for each waiter of a contention, as each would
// have in a process of its own.
type opener func(mode string, urls []string) (locker, error)

const (
	cycleTTL  = 10 * time.Second
	cycleWait = time.Second
	drain     = time.Second // for a waiter that the end of a contention finds waiting
)

type result struct {
	mutex  sync.Mutex
	us     []int64
	errors int
	last   string
}

func (r *result) add(d time.Duration) {
	r.mutex.Lock()
	r.us = append(r.us, d.Microseconds())
	r.mutex.Unlock()
}

func (r *result) fail(err error) {
	r.mutex.Lock()
	r.errors++
	r.last = err.Error()
	r.mutex.Unlock()
}

func cpu() int64 {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return (usage.Utime.Nano() + usage.Stime.Nano()) / 1000
}

func say(line map[string]any) {
	text, _ := json.Marshal(line)
	fmt.Println(string(text))
}

func die(err error) {
	say(map[string]any{"error": err.Error()})
	os.Exit(1)
}

func (r *result) print(start time.Time, cpuUs int64) {
	line := map[string]any{"count": len(r.us), "at_us": start.UnixMicro(), "us": time.Since(start).Microseconds(), "cpu_us": cpuUs}
	if n := len(r.us); n > 0 {
		sort.Slice(r.us, func(i, j int) bool { return r.us[i] < r.us[j] })
		line["p50"], line["p90"], line["p99"] = r.us[n/2], r.us[n*9/10], r.us[n*99/100]
	}
	if r.errors > 0 {
		line["errors"], line["last_error"] = r.errors, r.last
	}
	say(line)
}

func cycle(l locker, key string, r *result) {
	ctx, cancel := context.WithTimeout(context.Background(), cycleWait)
	defer cancel()
	start := time.Now()
	release, err := l.acquire(ctx, key, cycleTTL)
	if err == nil {
		err = release()
	}
	if err != nil {
		r.fail(err)
		return
	}
	r.add(time.Since(start))
}

// timed runs the body `count` times at once until the time is over, and prints what they did.
func timed(length time.Duration, count int, body func(number int, end time.Time, r *result)) {
	var r result
	var group sync.WaitGroup
	start, before := time.Now(), cpu()
	for i := 0; i < count; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			body(i, start.Add(length), &r)
		}()
	}
	group.Wait()
	r.print(start, cpu()-before)
}

// contest: who held the lock last and when the release of it began. Who has had it stands back until another has it, and then for a
// random time of up to half a round, so that those who poll at fixed intervals do not fall into step.
type contest struct {
	mutex    sync.Mutex
	changed  *sync.Cond
	members  int
	last     int
	released time.Time
}

func (c *contest) waiter(l locker, key string, number int, hold time.Duration, end time.Time, r *result) {
	for time.Now().Before(end) {
		c.mutex.Lock()
		for c.last == number && time.Now().Before(end) {
			c.changed.Wait()
		}
		c.mutex.Unlock()
		time.Sleep(time.Duration(rand.Float64() * float64(hold) * float64(c.members-1) / 2))
		ctx, cancel := context.WithDeadline(context.Background(), end.Add(drain))
		release, err := l.acquire(ctx, key, cycleTTL)
		cancel()
		now := time.Now()
		if err != nil {
			if now.Before(end) {
				r.fail(err)
			}
			continue
		}
		c.mutex.Lock()
		if !c.released.IsZero() && now.Before(end) {
			r.add(now.Sub(c.released))
		}
		c.last = number
		c.changed.Broadcast()
		c.mutex.Unlock()
		if now.Before(end) {
			time.Sleep(hold)
		}
		c.mutex.Lock()
		c.released = time.Now()
		c.mutex.Unlock()
		if err := release(); err != nil {
			r.fail(err)
		}
	}
}

// lockers of waiters are kept for the next contention: opening and closing them would disturb what is measured next.
var lockers []locker

func contend(open opener, mode string, urls []string, count int, length, hold time.Duration) {
	c := contest{members: count, last: -1}
	c.changed = sync.NewCond(&c.mutex)
	for len(lockers) < count {
		lockers = append(lockers, must(open(mode, urls)))
	}
	wake := time.AfterFunc(length, c.changed.Broadcast)
	defer wake.Stop()
	timed(length, count, func(i int, end time.Time, r *result) {
		c.waiter(lockers[i], mode+"-contend", i, hold, end, r)
	})
}

func must(l locker, err error) locker {
	if err != nil {
		die(err)
	}
	return l
}

func runWorker(open opener) {
	if len(os.Args) != 3 {
		die(fmt.Errorf("usage: %s MODE URLS, then commands on stdin (see bench/peers/README.md)", os.Args[0]))
	}
	mode, urls := os.Args[1], strings.Split(os.Args[2], ",")
	own := must(open(mode, urls))
	say(map[string]any{"ready": true})
	var held func() error
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var a, b, c int
		var key string
		line := lines.Text()
		ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
		switch {
		case scan(line, "cycle %d", &a):
			timed(ms(a), 1, func(_ int, end time.Time, r *result) {
				for time.Now().Before(end) {
					cycle(own, mode+"-cycle", r)
				}
			})
		case scan(line, "many %d %d", &a, &b):
			timed(ms(b), a, func(i int, end time.Time, r *result) {
				for time.Now().Before(end) {
					cycle(own, fmt.Sprintf("%s-many-%d", mode, i), r)
				}
			})
		case scan(line, "contend %d %d %d", &a, &b, &c):
			contend(open, mode, urls, a, ms(b), time.Duration(c)*time.Microsecond)
		case scan(line, "take %s %d %d", &key, &a, &b):
			ctx, cancel := context.WithTimeout(context.Background(), ms(b))
			release, err := own.acquire(ctx, key, ms(a))
			cancel()
			held = release
			report("held", err)
		case line == "release":
			err := fmt.Errorf("nothing is held")
			if held != nil {
				err = held()
			}
			held = nil
			report("released", err)
		case line == "quit":
			return
		default:
			say(map[string]any{"error": "unknown command"})
		}
	}
}

func scan(line, format string, values ...any) bool {
	n, err := fmt.Sscanf(line, format, values...)
	return err == nil && n == len(values)
}

func report(what string, err error) {
	line := map[string]any{what: err == nil}
	if err != nil {
		line["error"] = err.Error()
	}
	say(line)
}
