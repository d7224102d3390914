#!/usr/bin/env python3
"""run.py - where redlatch stands against other lock libraries and systems, on this machine, in one run.

Starts private servers, drives one small worker for each library (README.md) and alternates slices of redlatch with slices of
the other. Run install.sh first. What cannot be run is skipped with the reason.
"""

import argparse
import json
import os
import queue
import re
import signal
import statistics
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import servers
from servers import Missing

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "bench" / "peers"
OUT = ROOT / "build" / "peers"
C = OUT / "c" / "bench" / "peers"

ANSWER_SECONDS = 30  # how long a worker may be silent, beyond the time that it was told to work
HANG_SECONDS = 20  # with a stopped server: what has not answered by then hangs
LEASE_MS = 2000
HOLD_US = 5000
IDEAL = 1e6 / HOLD_US  # hand-offs a second
MANY = 256


@dataclass
class Peer:
    """A library or system, and how its worker is started. `nodes`: the numbers of servers that it can use."""

    id: str
    name: str
    part: str  # of install.sh
    program: list
    mode: str
    server: type = servers.Redis
    nodes: tuple = (1,)
    warm_seconds: float = 0.4
    env: tuple = ()

    def check(self):
        for path in self.program:
            if isinstance(path, Path) and not path.exists():
                reason = OUT / f"skipped-{self.part}"
                raise Missing(reason.read_text().strip() if reason.exists() else f"not built: bench/peers/install.sh {self.part}")


def python(name):
    return ["python3", HERE / "python" / f"{name}.py"]


def redisson(id, name, mode):
    program = ["java", "-cp", f"{OUT / 'java'}:{OUT / 'java'}/*", "RedissonWorker"]
    # Three seconds for the compiler of its virtual machine.
    return Peer(id, name, "java", program, mode, warm_seconds=3)


PEERS = [
    Peer("redlatch", "redlatch", "c", [C / "peer_redlatch"], "plain", nodes=(1, 3, 5)),
    Peer("redlatch-fence", "redlatch, fenced", "c", [C / "peer_redlatch"], "fence", nodes=(1, 3, 5)),
    Peer("redlock", "redlock 5 (npm)", "node", ["node", HERE / "node" / "redlock.js"], "v5", nodes=(1, 5), warm_seconds=1),
    Peer("redlock4", "redlock 4 (npm)", "node", ["node", HERE / "node" / "redlock.js"], "v4", nodes=(1, 5), warm_seconds=1),
    Peer("redis-py", "redis-py Lock", "python", python("redis_py"), "redis-py"),
    Peer("redsync", "redsync", "go", [OUT / "go" / "redsync"], "redsync", nodes=(1, 5)),
    Peer("redislock", "bsm/redislock", "go", [OUT / "go" / "redislock"], "redislock"),
    redisson("redisson", "Redisson RLock", "lock"),
    redisson("redisson-fair", "Redisson RFairLock", "fair"),
    redisson("redisson-fenced", "Redisson RFencedLock", "fenced"),
    Peer("rslock", "rslock", "rust", [OUT / "rust" / "target" / "release" / "rslock"], "rslock", nodes=(1, 5)),
    Peer("pottery", "pottery Redlock", "python", python("pottery_redlock"), "pottery", nodes=(1, 5)),
    Peer("python-redis-lock", "python-redis-lock", "python", python("python_redis_lock"), "python-redis-lock"),
    Peer("rueidislock", "rueidislock", "go", [OUT / "go" / "rueidislock"], "rueidislock"),
    Peer("redis-plus-plus", "redis-plus-plus", "redis-plus-plus", [OUT / "redispp" / "worker"], "redispp", nodes=(1, 5)),
    Peer("postgresql", "PostgreSQL advisory lock", "c", [C / "peer_postgres"], "postgres", servers.Postgres),
    Peer("etcd", "etcd concurrency.Mutex", "go", [OUT / "go" / "etcd"], "etcd", servers.Etcd),
    Peer("mariadb", "MariaDB GET_LOCK", "c", [C / "peer_mariadb"], "mariadb", servers.MariaDB),
    Peer("zookeeper", "ZooKeeper lock recipe", "c", [C / "peer_zookeeper"], "zookeeper", servers.ZooKeeper),
]


def versions():
    """What install.sh installed, as far as the files of the registries' clients tell."""
    found = {}

    def note(id, path, pattern):
        try:
            found[id] = re.search(pattern, Path(path).read_text())[1]
        except (OSError, TypeError):
            pass

    note("redlatch", ROOT / "meson.build", r"version: '([^']+)'")
    for id, folder in (("redlock", "redlock"), ("redlock4", "redlock4"), ("ioredis", "ioredis")):
        note(id, OUT / "npm" / "node_modules" / folder / "package.json", r'"version": "v?([^"]+)"')
    for id, name in (("redis-py", "redis"), ("pottery", "pottery"), ("python-redis-lock", "python_redis_lock")):
        for folder in (OUT / "pip").glob(f"{name}-*.dist-info"):
            found[id] = folder.name[len(name) + 1 : -len(".dist-info")]
    modules = {"redsync": "redsync/v4", "redislock": "redislock", "rueidislock": "rueidis", "etcd client": "client/v3", "go-redis": "go-redis/v9"}
    for id, module in modules.items():
        note(id, HERE / "go" / "go.mod", rf"{module} v(\S+)")
    note("redisson", HERE / "java" / "pom.xml", r"<artifactId>redisson</artifactId>\s*<version>([^<]+)")
    note("rslock", HERE / "rust" / "Cargo.toml", r'rslock = \{ version = "=?([^"]+)"')
    note("redis-plus-plus", OUT / "redispp" / "lib" / "pkgconfig" / "redis++.pc", r"Version: (\S+)")
    found["redlatch-fence"] = found.get("redlatch")
    found["redisson-fair"] = found["redisson-fenced"] = found.get("redisson")
    return {id: version for id, version in found.items() if version}


class Worker:
    """A running worker, and what it answers."""

    def __init__(self, peer, urls, cores=None):
        env = dict(os.environ, NODE_PATH=str(OUT / "npm" / "node_modules"), PYTHONDONTWRITEBYTECODE="1")
        env["PYTHONPATH"] = str(OUT / "pip")
        command = [str(word) for word in peer.program] + [peer.mode, urls]
        self.log = open(OUT / f"worker-{peer.id}.log", "ab")
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, env=env, text=True, bufsize=1,
            start_new_session=True, preexec_fn=(lambda: os.sched_setaffinity(0, cores)) if cores else None,
        )  # fmt: skip
        self.lines = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()
        if "error" in (answer := self.answer(ANSWER_SECONDS)):
            self.kill()
            raise Missing(answer["error"])

    def read(self):
        for line in self.process.stdout:
            self.lines.put((time.monotonic(), line))
        self.lines.put((time.monotonic(), None))

    def send(self, command):
        try:
            self.process.stdin.write(command + "\n")
            self.process.stdin.flush()
        except OSError:
            pass  # it is gone: the answer says so

    def timed_answer(self, seconds):
        """The time at which the next line came, and the line; None if none came."""
        try:
            at, line = self.lines.get(timeout=seconds)
        except queue.Empty:
            return time.monotonic(), None
        if line is None:
            self.lines.put((at, None))
            return at, {"error": "the worker ended"}
        return at, json.loads(line)

    def answer(self, seconds=ANSWER_SECONDS):
        answer = self.timed_answer(seconds)[1]
        return answer if answer is not None else {"error": f"no answer in {seconds:.0f} s"}

    def ask(self, command, ms=0):
        self.send(command)
        answer = self.answer(ANSWER_SECONDS + ms / 1000)
        if "error" in answer and "held" not in answer and "released" not in answer:
            raise Missing(answer["error"])
        return answer

    def kill(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except OSError:
            pass
        self.process.wait()
        self.process.stdin = None
        self.log.close()


class Workers:
    """Workers that are gone at the end of a `with`."""

    def __init__(self):
        self.all = []

    def __enter__(self):
        return self

    def start(self, *arguments):
        self.all.append(Worker(*arguments))
        return self.all[-1]

    def __exit__(self, *_):
        for worker in self.all:
            worker.kill()


# ---- Scenarios ------------------------------------------------------------------------------------------------------------------


class Bench:
    def __init__(self, settings):
        self.settings = settings
        cores = sorted(os.sched_getaffinity(0))
        self.all_cores, self.one_core, self.other_core = set(cores), {cores[-1]}, {cores[0]}
        self.servers = {}  # by class and number

    def server(self, kind, count):
        key = (kind, count)
        if key not in self.servers:
            self.servers[key] = kind(count) if kind is servers.Redis else kind()
        return self.servers[key]

    def close(self):
        for server in self.servers.values():
            server.close()

    def spread(self, count, kind, cores):
        """Puts the servers of the peer on these cores, and returns them and redlatch's."""
        redis, theirs = self.server(servers.Redis, count), self.server(kind, count)
        redis.pin(cores)
        theirs.pin(cores)
        return redis, theirs

    def slices(self, peer, count, command, ms, server_cores, worker_cores, counted=True):
        """Alternates slices of redlatch and of the peer; returns their answers and what the server was asked in one more slice."""
        redis, theirs = self.spread(count, peer.server, server_cores)
        with Workers() as workers:
            ours = None if peer.id == "redlatch" else workers.start(PEERS[0], redis.urls, worker_cores)
            other = workers.start(peer, theirs.urls, worker_cores)
            warm_ms = int(peer.warm_seconds * 1000 * self.settings.warm)
            for worker in filter(None, (ours, other)):
                if command.startswith("many"):
                    worker.ask(command.format(ms=warm_ms), warm_ms)
                worker.ask(f"cycle {warm_ms}", warm_ms)
            pairs = []
            for _ in range(self.settings.reps):
                first = ours.ask(command.format(ms=ms), ms) if ours else None
                time.sleep(0.02)
                second = other.ask(command.format(ms=ms), ms)
                time.sleep(0.02)  # what a slice leaves to be done is not the next one's
                pairs.append((first or second, second))
            return pairs, self.commands(peer, theirs, other, command) if counted else None

    def commands(self, peer, server, worker, command):
        """Requests for each acquisition, as the servers see them."""
        ms = 100 if command.startswith("cycle") else 1000
        if peer.server is servers.Redis:
            monitor = servers.Monitor(server)
            answer = worker.ask(command.format(ms=ms), ms)
            asked = monitor.count(answer["at_us"], ms * 1000)
        elif server.commands() is None:
            answer = worker.ask(command.format(ms=ms), ms)
            asked = answer["commands"]
        else:
            # Sessions cost requests too: what is beyond a shorter run is that of the hand-offs.
            before = server.commands()
            short = worker.ask(command.format(ms=ms), ms)
            between = server.commands()
            answer = worker.ask(command.format(ms=3 * ms), 3 * ms)
            asked = server.commands() - between - (between - before)
            answer = {"count": answer["count"] - short["count"]}
        return asked / answer["count"] if answer["count"] > 0 else None

    @staticmethod
    def summary(pairs, value, ratio=lambda ours, theirs: theirs / ours):
        """Median, minimum and maximum of the ratios of the pairs, where both did something."""
        ratios = [ratio(value(ours), value(theirs)) for ours, theirs in pairs if value(ours) and value(theirs)]
        if not ratios:
            return None
        return {"median": statistics.median(ratios), "min": min(ratios), "max": max(ratios)}

    def figures(self, pairs, commands):
        theirs = [pair[1] for pair in pairs]
        some = [t for t in theirs if t["count"]]
        result = {
            "rate": statistics.median(t["count"] * 1e6 / t["us"] for t in theirs),
            "errors": sum(t.get("errors", 0) for t in theirs),
            "commands": commands,
        }
        if last := [t["last_error"] for t in theirs if "last_error" in t]:
            result["last_error"] = last[-1]
        for key in ("p50", "p90", "p99"):
            result[key] = statistics.median(t[key] for t in some) if some else None
        result["cpu_us"] = statistics.median(t["cpu_us"] / t["count"] for t in some) if some else None
        return result

    def uncontended(self, peer, count):
        """One lock taken and released in turn, everything on one core."""
        pairs, commands = self.slices(peer, count, "cycle {ms}", self.settings.cycle_ms, self.one_core, self.one_core)
        return self.figures(pairs, commands) | {"ratio": self.summary(pairs, lambda slice: slice.get("p50"))}

    def apart(self, peer, count):
        """The same with the servers on one core and the client on the other, where waiting for one server after the other shows."""
        pairs, _ = self.slices(peer, count, "cycle {ms}", self.settings.cycle_ms, self.other_core, self.one_core, counted=False)
        return self.figures(pairs, None) | {"ratio": self.summary(pairs, lambda slice: slice.get("p50"))}

    def many(self, peer, count):
        """256 locks taken and released at once, each again and again: the client on one core, the server on the other."""
        command = f"many {MANY} {{ms}}"
        pairs, _ = self.slices(peer, count, command, self.settings.many_ms, self.other_core, self.one_core, counted=False)
        return self.figures(pairs, None) | {
            "throughput_ratio": self.summary(pairs, lambda s: s["count"] / s["us"]),
            "cpu_ratio": self.summary(pairs, lambda s: s["count"] and s["cpu_us"] / s["count"]),
        }

    def contention(self, peer, count, waiters):
        """Waiters for one lock, each holding it for 5 ms; who has had it stands back until another has it."""
        command = f"contend {waiters} {{ms}} {HOLD_US}"
        pairs, commands = self.slices(peer, count, command, self.settings.contend_ms, self.all_cores, self.all_cores)
        result = self.figures(pairs, commands)
        return result | {"of_ideal": result["rate"] / IDEAL, "ratio": self.summary(pairs, lambda s: s["count"] / s["us"])}

    def crash(self, peer, count):
        """A holder is killed; how long until another gets the lock. Leases and sessions of 2 s."""
        _, theirs = self.spread(count, peer.server, self.all_cores)
        times = []
        for i in range(self.settings.crashes):
            with Workers() as workers:
                holder, waiter = workers.start(peer, theirs.urls), workers.start(peer, theirs.urls)
                for worker in (holder, waiter):
                    worker.ask("cycle 100", 100)  # connected, and scripts are loaded
                if not holder.ask(f"take {peer.id}-crash-{i} {LEASE_MS} 1000").get("held"):
                    raise Missing("the lock could not be taken")
                waiter.send(f"take {peer.id}-crash-{i} {LEASE_MS} {LEASE_MS}")
                time.sleep(0.5)
                killed = time.monotonic()
                holder.kill()
                times.append(self.until_held(waiter, f"take {peer.id}-crash-{i} {LEASE_MS} {LEASE_MS}", killed))
        got = [t for t in times if t is not None]
        return {"seconds": statistics.median(got) if got else None, "min": min(got, default=None), "max": max(got, default=None)}

    @staticmethod
    def until_held(worker, again, since, limit=HANG_SECONDS):
        """Seconds until the worker says that it has the lock; it is asked again when it has given up."""
        while time.monotonic() < since + limit:
            at, answer = worker.timed_answer(since + limit - time.monotonic())
            if answer is None or answer.get("held"):
                return None if answer is None else at - since
            if "ended" in answer.get("error", ""):
                return None
            time.sleep(0.02)
            worker.send(again)
        return None

    def restart(self, peer):
        """The one server is killed and started again while a lock is held: is the lock granted again, and what is its holder told?"""
        kind = peer.server
        server = kind(1) if kind is servers.Redis else kind()
        try:
            with Workers() as workers:
                holder, other = workers.start(peer, server.urls), workers.start(peer, server.urls)
                for worker in (holder, other):
                    worker.ask("cycle 100", 100)
                take = f"take {peer.id}-restart 30000 "
                holder.ask(take + "1000")
                killed = time.monotonic()
                server.restart(0.2)
                began = time.monotonic()
                other.send(take + "500")
                granted = self.until_held(other, take + "500", began, 6)
                holder.send("release")
                told = holder.answer(15)
                return {
                    "away_s": began - killed,
                    "granted_again_s": granted,
                    "holder_told": not told.get("released", False),
                    "holder_error": told.get("error"),
                }
        finally:
            server.close()

    def stopped(self, peer, count):
        """One server of several stops answering (SIGSTOP), while locks are taken and released."""
        redis, _ = self.spread(count, peer.server, self.all_cores)
        with Workers() as workers:
            worker = workers.start(peer, redis.urls)
            worker.ask(f"cycle {int(peer.warm_seconds * 1000)}", 1000)
            healthy = worker.ask("cycle 500", 500)
            redis.freeze(0)
            try:
                began = time.monotonic()
                worker.send("cycle 2000")
                at, answer = worker.timed_answer(HANG_SECONDS)
                result = {"healthy_p50": healthy.get("p50"), "seconds": at - began}
                if answer is None or "count" not in answer:
                    return result | {"hangs": True}
                return result | {key: answer.get(key) for key in ("count", "p50", "p99", "errors", "last_error")}
            finally:
                redis.thaw(0)
                time.sleep(0.2)

    def scenarios(self, peer):
        """Name and function of each scenario for this peer."""
        for count in peer.nodes:
            suffix = f"-{count}"
            yield "uncontended" + suffix, lambda c=count: self.uncontended(peer, c)
            yield "contended16" + suffix, lambda c=count: self.contention(peer, c, 16)
            yield "crash" + suffix, lambda c=count: self.crash(peer, c)
            if count == 1:
                yield "many" + suffix, lambda c=count: self.many(peer, c)
                yield "contended2" + suffix, lambda c=count: self.contention(peer, c, 2)
                yield "restart" + suffix, lambda: self.restart(peer)
            else:
                yield "apart" + suffix, lambda c=count: self.apart(peer, c)
                yield "stopped" + suffix, lambda c=count: self.stopped(peer, c)


# ---- What is printed ------------------------------------------------------------------------------------------------------------


def short(scenario, r):
    """One line for the terminal."""
    if "skipped" in r:
        return f"skipped: {r['skipped']}"
    parts = []
    for key, label in (("ratio", "x redlatch"), ("throughput_ratio", "x the throughput"), ("cpu_ratio", "x the client CPU")):
        if r.get(key):
            parts.append("{median:.2f} ({min:.2f}-{max:.2f}) ".format(**r[key]) + label)
    if r.get("rate") is not None:
        parts.append(f"{r['rate']:.0f}/s")
    if r.get("p50") is not None:
        parts.append(f"p50 {r['p50']:.0f} us")
        parts.append(f"p99 {r['p99']:.0f} us")
    if r.get("commands") is not None:
        parts.append(f"{r['commands']:.1f} commands each")
    if r.get("errors"):
        parts.append(f"{r['errors']} errors: {r.get('last_error')}")
    if scenario.startswith("crash"):
        parts.append("never" if r["seconds"] is None else f"free after {r['seconds']:.2f} s ({r['min']:.2f}-{r['max']:.2f})")
    if scenario.startswith("restart"):
        granted = r["granted_again_s"]
        parts.append("kept" if granted is None else f"granted again after {granted:.2f} s")
        parts.append(f"holder told: {r['holder_error']}" if r["holder_told"] else "holder not told")
    if scenario.startswith("stopped"):
        parts.append(f"hangs (> {r['seconds']:.0f} s)" if r.get("hangs") else f"{r['count']} cycles in {r['seconds']:.1f} s")
    return ", ".join(parts)


def goals(results):
    """The lines of P7 and of what P8 says about contention: id, goal, measured, met or short (or not run)."""
    lines = []

    def look(id, scenario, *keys):
        value = results.get(id, {}).get("scenarios", {}).get(scenario)
        for key in keys:
            value = value.get(key) if value else None
        return value

    def add(id, goal, value, limit, above=True):
        verdict = "not run" if value is None else "met" if (value >= limit if above else value <= limit) else "short"
        lines.append({"id": id, "goal": goal, "measured": value, "verdict": verdict})

    plus = look("redis-plus-plus", "uncontended-1", "ratio", "median")
    add("P7", "N=1, redlatch / redis-plus-plus <= 0.98", plus and 1 / plus, 0.98, above=False)
    for peer, limit in (("redsync", 1.5), ("redlock", 2), ("redis-py", 3.4)):
        add("P7", f"N=1, {peer} / redlatch >= {limit}", look(peer, "uncontended-1", "ratio", "median"), limit)
    for peer, limit in (("redlock", 1.2), ("redsync", 2), ("redis-plus-plus", 4.5)):
        add("P7", f"N=5, two cores, {peer} / redlatch >= {limit}", look(peer, "apart-5", "ratio", "median"), limit)
    for peer in ("redsync", "redlock"):
        throughput = look(peer, "many-1", "throughput_ratio", "median")
        cpu = look(peer, "many-1", "cpu_ratio", "median")
        add("P7", f"256 concurrent, throughput of redlatch / {peer} >= 4", throughput and 1 / throughput, 4)
        add("P7", f"256 concurrent, client CPU a cycle of redlatch / {peer} <= 0.1", cpu and 1 / cpu, 0.1, above=False)
    add("P8", "16 contenders, 5 ms hold, part of the ideal rate >= 0.9", look("redlatch", "contended16-1", "of_ideal"), 0.9)
    for waiters in (2, 16):
        add("P8", f"{waiters} waiters, commands a hand-off <= 3", look("redlatch", f"contended{waiters}-1", "commands"), 3, above=False)
    add("P8", "N=5, 16 waiters, commands a hand-off <= 12", look("redlatch", "contended16-5", "commands"), 12, above=False)
    return lines


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[1])
    parser.add_argument("--json", metavar="FILE", help="write all figures there (README.md)")
    parser.add_argument("--only", metavar="NAME,...", help="only these peers; redlatch is measured anyhow")
    parser.add_argument("--scenarios", metavar="NAME,...", help="only scenarios whose names begin so")
    parser.add_argument("--quick", action="store_true", help="2 short repetitions: whether it runs, not what it measures")
    parser.add_argument("--reps", type=int, default=7, help="interleaved repetitions (7)")
    parser.add_argument("--list", action="store_true", help="the peers")
    settings = parser.parse_args()
    settings.cycle_ms, settings.many_ms, settings.contend_ms, settings.crashes, settings.warm = 300, 400, 1000, 3, 1
    if settings.quick:
        settings.reps, settings.cycle_ms, settings.many_ms, settings.contend_ms = 2, 100, 200, 500
        settings.crashes, settings.warm = 1, 0.3
    return settings


def chosen(settings):
    wanted = settings.only.split(",") if settings.only else [peer.id for peer in PEERS]
    if unknown := set(wanted) - {peer.id for peer in PEERS}:
        sys.exit(f"No peer is called {', '.join(sorted(unknown))}; they are: {', '.join(peer.id for peer in PEERS)}")
    return [peer for peer in PEERS if peer.id in wanted or peer.id == "redlatch"]


def measure(bench, peer, settings):
    """All scenarios of a peer; one that fails is skipped with its reason, and the next one is tried."""
    found = {}
    for scenario, run in bench.scenarios(peer):
        if settings.scenarios and not scenario.startswith(tuple(settings.scenarios.split(","))):
            continue
        try:
            found[scenario] = run()
        except Missing as reason:
            found[scenario] = {"skipped": str(reason)}
        print(f"{peer.name:26} {scenario:14} {short(scenario, found[scenario])}", flush=True)
    return found


def write(settings, known, results, lines):
    report = {
        "date": time.strftime("%Y-%m-%d"),
        "settings": {key: getattr(settings, key) for key in ("reps", "cycle_ms", "many_ms", "contend_ms", "crashes", "quick")},
        "cores": os.cpu_count(),
        "versions": known,
        "peers": results,
        "goals": lines,
    }
    Path(settings.json).write_text(json.dumps(report, indent=1) + "\n")


def main():
    settings = parse()
    if settings.list:
        return print("\n".join(f"{peer.id:18} {peer.name}" for peer in PEERS))
    began = time.monotonic()
    bench, results, known = Bench(settings), {}, versions()
    if not (C / "peer_redlatch").exists():
        sys.exit("redlatch's own worker is not built: run bench/peers/install.sh")
    try:
        known["redis-server"] = bench.server(servers.Redis, 1).version()
        for peer in chosen(settings):
            entry = results[peer.id] = {"name": peer.name}
            try:
                peer.check()
                if peer.server is not servers.Redis:
                    known[peer.id] = bench.server(peer.server, 1).version()
                entry["scenarios"] = measure(bench, peer, settings)
            except Missing as reason:
                entry["skipped"] = str(reason)
                print(f"{peer.name:26} skipped: {reason}", flush=True)
            if peer.server is not servers.Redis and (peer.server, 1) in bench.servers:
                bench.servers.pop((peer.server, 1)).close()  # its background work would disturb the next one
            entry["version"] = known.get(peer.id)
            lines = goals(results)
            if settings.json:  # after each peer: a run that is broken off leaves what it has
                write(settings, known, results, lines)
    finally:
        bench.close()
    print()
    for line in lines:
        measured = "-" if line["measured"] is None else f"{line['measured']:.2f}"
        print(f"{line['id']}  {line['goal']:66} {measured:>7}  {line['verdict']}")
    print(f"\n{time.monotonic() - began:.0f} s")
    return None


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    main()
