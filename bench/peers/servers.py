"""The private servers that the comparison runs against: in a temp dir, on free ports, without persistence where nobody asked for it.

Each class starts its servers in the constructor. `urls` is what workers are told; `freeze`, `thaw` and `restart` are what is done to
them; `pin` puts all their threads on some cores; `commands` counts what they have been asked (None: the workers count).
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

START_SECONDS = 30


class Missing(Exception):
    """A server cannot be run here; the message says why."""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def find_program(name, *patterns):
    """The path of a program that may be outside of PATH, as the servers of Debian are."""
    found = shutil.which(name)
    for pattern in ("/usr/sbin", *patterns):
        for folder in sorted(Path("/").glob(pattern.lstrip("/"))):
            if not found and (folder / name).exists():
                found = str(folder / name)
    if not found:
        raise Missing(f"{name} is not installed")
    return found


def run(*command, **options):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False, **options)
    if done.returncode:
        raise Missing(f"{Path(command[0]).name}: {(done.stderr or done.stdout).strip().splitlines()[-1:]}")
    return done.stdout


def threads_of(pid):
    """All threads of a process and of the processes that it started."""
    pids, found = [pid], []
    while pids:
        one = pids.pop()
        try:
            found += [int(t) for t in os.listdir(f"/proc/{one}/task")]
            for thread in os.listdir(f"/proc/{one}/task"):
                pids += [int(child) for child in Path(f"/proc/{one}/task/{thread}/children").read_text().split()]
        except OSError:
            continue  # gone meanwhile
    return found


def pin_process(pid, cores):
    for thread in threads_of(pid):
        try:
            os.sched_setaffinity(thread, cores)
        except OSError:
            pass  # gone meanwhile


class Servers:
    """What is common: `count` processes, each with its command, and a question that it answers when it is ready."""

    count = 1
    user = None  # whom the processes belong to

    def __init__(self, cores=None):
        self.cores = cores
        self.dir = Path(tempfile.mkdtemp(prefix="redlatch-peers."))
        self.processes = [None] * self.count
        try:
            self.prepare()
            for i in range(self.count):
                self.start(i)
        except BaseException:
            self.close()
            raise

    def prepare(self):
        pass

    def command(self, i):
        raise NotImplementedError

    def ready(self, i):
        raise NotImplementedError

    def start(self, i):
        log = open(self.dir / f"log-{i}", "ab")
        self.processes[i] = subprocess.Popen(
            self.command(i), stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.dir, user=self.user, start_new_session=True
        )
        log.close()
        end = time.monotonic() + START_SECONDS
        while not self.ready(i):
            if self.processes[i].poll() is not None or time.monotonic() > end:
                text = (self.dir / f"log-{i}").read_text(errors="replace").strip().splitlines()
                raise Missing(f"{type(self).__name__} does not start: {text[-1] if text else 'it says nothing'}")
            time.sleep(0.02)
        if self.cores:
            self.pin(self.cores)

    def pin(self, cores):
        self.cores = cores
        for process in self.processes:
            if process:
                pin_process(process.pid, cores)

    def kill(self, i):
        """As a crash would, with the processes that it started."""
        os.killpg(self.processes[i].pid, signal.SIGKILL)
        self.processes[i].wait()

    def restart(self, away_seconds):
        for i in range(self.count):
            self.kill(i)
        time.sleep(away_seconds)
        for i in range(self.count):
            self.start(i)

    def freeze(self, i):
        os.killpg(self.processes[i].pid, signal.SIGSTOP)

    def thaw(self, i):
        os.killpg(self.processes[i].pid, signal.SIGCONT)

    def commands(self):
        return None

    def close(self):
        for process in self.processes:
            if process and process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        shutil.rmtree(self.dir, ignore_errors=True)


class Redis(Servers):
    def __init__(self, count, cores=None):
        self.count = count
        super().__init__(cores)

    def prepare(self):
        self.program = find_program("redis-server")
        self.ports = [free_port() for _ in range(self.count)]

    @property
    def urls(self):
        return ",".join(f"redis://127.0.0.1:{port}" for port in self.ports)

    def command(self, i):
        port = str(self.ports[i])
        return [self.program, "--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no", "--loglevel", "warning"]

    def ask(self, i, *words):
        """One command, its raw answer."""
        with socket.create_connection(("127.0.0.1", self.ports[i]), timeout=5) as link:
            link.sendall(" ".join(words).encode() + b"\r\n")
            answer = link.recv(65536)
            while answer.startswith(b"$") and not answer.endswith(b"\r\n"):
                answer += link.recv(65536)
            return answer.decode()

    def ready(self, i):
        try:
            return f"process_id:{self.processes[i].pid}\r" in self.ask(i, "INFO", "server")
        except OSError:
            return False

    def version(self):
        return re.search(r"redis_version:(\S+)", self.ask(0, "INFO", "server"))[1]


class Monitor:
    """Counts the commands that clients send to redis-servers. (The servers' own counters also count what scripts call.)"""

    def __init__(self, servers):
        self.links = [socket.create_connection(("127.0.0.1", port)) for port in servers.ports]
        self.chunks = [[] for _ in self.links]
        for link in self.links:
            link.sendall(b"MONITOR\r\n")
        self.threads = [threading.Thread(target=self.read, args=pair, daemon=True) for pair in zip(self.links, self.chunks)]
        for thread in self.threads:
            thread.start()
        time.sleep(0.05)

    @staticmethod
    def read(link, chunks):
        try:
            while chunk := link.recv(1 << 20):
                chunks.append(chunk)
        except OSError:
            pass

    def count(self, begin_us, length_us):
        """How many there were in this time; ends the monitor."""
        time.sleep(0.1)
        for link in self.links:
            link.shutdown(socket.SHUT_RDWR)
        for thread in self.threads:
            thread.join()
        found = 0
        for link, chunks in zip(self.links, self.chunks):
            link.close()
            for line in b"".join(chunks).split(b"\r\n"):
                match = re.match(rb"\+(\d+)\.(\d+) \[\d+ (\S+)\]", line)
                if match and match[3] != b"lua":
                    at_us = int(match[1]) * 1000000 + int(match[2])
                    found += begin_us <= at_us < begin_us + length_us
        return found


class Etcd(Servers):
    def prepare(self):
        self.program = find_program("etcd")
        self.port, self.peer_port = free_port(), free_port()

    @property
    def urls(self):
        return f"http://127.0.0.1:{self.port}"

    def command(self, i):
        peer = f"http://127.0.0.1:{self.peer_port}"
        return [
            self.program, "--data-dir", str(self.dir / "data"), "--log-level", "error",
            "--listen-client-urls", self.urls, "--advertise-client-urls", self.urls,
            "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}",
        ]  # fmt: skip

    def get(self, path):
        with urllib.request.urlopen(self.urls + path, timeout=5) as answer:
            return answer.read().decode()

    def ready(self, i):
        try:
            return '"true"' in self.get("/health")
        except OSError:
            return False

    def commands(self):
        """Messages that clients sent, keep-alives and watches included."""
        counts = re.findall(r"^grpc_server_msg_received_total\{.*\} (\S+)$", self.get("/metrics"), re.MULTILINE)
        return int(sum(map(float, counts)))

    def version(self):
        return re.search(r'"etcdserver":"([^"]+)"', self.get("/version"))[1]


class ZooKeeper(Servers):
    def prepare(self):
        self.program = find_program("zkServer.sh", "/usr/share/zookeeper/bin")
        self.port = free_port()
        # tickTime of 1 s instead of 2: a session of 2 s is the shortest then, as long as the leases of the others.
        (self.dir / "zoo.cfg").write_text(
            f"tickTime=1000\ndataDir={self.dir / 'data'}\nclientPort={self.port}\nclientPortAddress=127.0.0.1\n"
            "maxClientCnxns=0\nadmin.enableServer=false\n4lw.commands.whitelist=ruok,mntr,srvr\n"
        )
        (self.dir / "data").mkdir()

    @property
    def urls(self):
        return f"127.0.0.1:{self.port}"

    def command(self, i):
        return ["env", f"ZOO_LOG_DIR={self.dir}", "JMXDISABLE=1", self.program, "start-foreground", str(self.dir / "zoo.cfg")]

    def ask(self, word):
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=5) as link:
                link.sendall(word.encode())
                answer = b""
                while chunk := link.recv(65536):
                    answer += chunk
                return answer.decode()
        except OSError:
            return ""

    def ready(self, i):
        return self.ask("ruok") == "imok" and "Mode:" in self.ask("srvr")

    def commands(self):
        return int(re.search(r"zk_packets_received\s+(\d+)", self.ask("mntr"))[1])

    def version(self):
        return re.search(r"version: ([\d.]+)", self.ask("srvr"))[1]


class Postgres(Servers):
    def prepare(self):
        folders = "/usr/lib/postgresql/*/bin"
        self.program = find_program("postgres", folders)
        if os.geteuid() == 0:
            self.user = "postgres"  # it refuses to run as root
            shutil.chown(self.dir, "postgres")
        self.port = free_port()
        initdb = find_program("initdb", folders)
        run(initdb, "--auth=trust", "--username=peers", "--no-sync", "-D", str(self.dir / "data"), user=self.user, cwd=self.dir)

    @property
    def urls(self):
        return f"host=127.0.0.1 port={self.port} user=peers dbname=postgres"

    def command(self, i):
        return [self.program, "-D", str(self.dir / "data"), "-p", str(self.port), "-h", "127.0.0.1",
                "-c", f"unix_socket_directories={self.dir}", "-c", "max_connections=400"]  # fmt: skip

    def ready(self, i):
        program = find_program("pg_isready", "/usr/lib/postgresql/*/bin")
        return not subprocess.run([program, "-q", "-h", "127.0.0.1", "-p", str(self.port)], check=False).returncode

    def version(self):
        return run(self.program, "--version").split()[2]


class MariaDB(Servers):
    def prepare(self):
        self.program = find_program("mariadbd")
        self.port = free_port()
        data = str(self.dir / "data")
        run(find_program("mariadb-install-db"), "--no-defaults", f"--datadir={data}", "--skip-test-db",
            "--auth-root-authentication-method=normal", *self.as_root())  # fmt: skip

    @staticmethod
    def as_root():
        return ["--user=root"] if os.geteuid() == 0 else []

    @property
    def urls(self):
        return f"127.0.0.1:{self.port}"

    def command(self, i):
        return [self.program, "--no-defaults", f"--datadir={self.dir / 'data'}", f"--port={self.port}", "--bind-address=127.0.0.1",
                f"--socket={self.dir / 'socket'}", f"--pid-file={self.dir / 'pid'}", "--max-connections=400", *self.as_root()]  # fmt: skip

    def ready(self, i):
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as link:
                return bool(link.recv(1))
        except OSError:
            return False

    def version(self):
        return re.search(r"([\d.]+)-MariaDB", run(self.program, "--no-defaults", "--version"))[1]
