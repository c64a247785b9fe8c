#!/usr/bin/env python3
"""Servers whose model is computed by ranks lose one of them again and again under load, by a signal to a rank drawn by
chance. Every client gets an answer or an error in time, the server ends with a code of its own or serves on, no process
and no shared memory stays behind.

usage: lose_ranks.py PROGRAM ROUNDS [WAY ...]

Ways: mpi (mpirun, shared memory), far (mpirun, MPI alone), shm (--ranks), restart (--ranks --restart: one server for all
rounds); with "-stop" behind it ranks are stopped instead of killed, so that they say nothing more. Without ways: mpi, far
and restart. Exits with 77 where mpirun is not installed. The seed is printed, and taken from LOSE_RANKS_SEED.
"""
import http.client
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/support"))
from ports import free_port  # noqa: E402

MODEL = ROOT / "models/pocket/pocket-q8_0.gguf"
N_CLIENTS = 4
NOTICED_WITHIN = 10  # seconds
ENDS_WITHIN = 20  # behind the last client's word
CODE_OF_LOST_RANKS = 3
CODE_OF_KILLED = 128 + signal.SIGKILL


class RunningClock:
    """Seconds during which this program ran: while it is stopped it sees nothing, and no rank is late for that."""

    TICK, MOST = 0.01, 0.5

    def __init__(self):
        self.n_seconds, self.last = 0.0, time.monotonic()
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            time.sleep(self.TICK)
            now = time.monotonic()
            self.n_seconds += min(now - self.last, self.MOST)
            self.last = now

    def seconds(self):
        return self.n_seconds


CLOCK = RunningClock()


def parent_of(pid):
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        return -1 if fields[0] == "Z" else int(fields[1])
    except OSError:
        return -1


def children_of(pid):
    return [int(p.name) for p in Path("/proc").iterdir() if p.name.isdigit() and parent_of(p.name) == pid]


def descendants_of(pid):
    children = children_of(pid)
    return children + [d for child in children for d in descendants_of(child)]


def is_rank(pid):
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        return len(words) > 1 and (words[1] in (b"rank", b"serve"))
    except OSError:
        return False


def resident_kb(pid):
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    return 0


def shared_memory():
    return [p.name for p in Path("/dev/shm").iterdir()]


class Server:
    def __init__(self, program, way, n_ranks):
        self.port = free_port()
        self.uses_mpi = way.startswith(("mpi", "far"))
        command = [program, "serve", "-m", str(MODEL), "-t", str(n_ranks), "--no-ui", "--log-level", "off", "--port",
                   str(self.port)]
        if self.uses_mpi:
            command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-q", "-n", str(n_ranks)] + command
        else:
            command += ["--ranks", str(n_ranks)] + (["--restart"] if way.startswith("restart") else [])
        self.folder = tempfile.TemporaryDirectory()  # mpirun leaves its session's files where its ranks are killed
        environment = dict(os.environ, CANDOR_RANKS_LINK="mpi" if way.startswith("far") else "", TMPDIR=self.folder.name)
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(command, env=environment, stderr=self.errors, stdout=subprocess.DEVNULL)
        self.wait_until_ready()

    def wait_until_ready(self):
        end = CLOCK.seconds() + 60
        while CLOCK.seconds() < end and self.process.poll() is None:
            if self.ask("/ready") == 200:
                return
            time.sleep(0.02)
        self.end()
        raise SystemExit(f"the server is not ready within 60 s: {self.said()}")

    def ask(self, path):
        try:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=2)
            connection.request("GET", path)
            return connection.getresponse().status
        except (OSError, http.client.HTTPException):
            return None

    def ranks(self):
        candidates = [self.process.pid] if not self.uses_mpi else []
        return [pid for pid in candidates + descendants_of(self.process.pid) if is_rank(pid)]

    def said(self):
        self.errors.seek(0)
        return self.errors.read()

    def end(self):
        family = [self.process.pid] + descendants_of(self.process.pid)
        for pid in family:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        self.process.wait()


class Client(threading.Thread):
    """Streamed answers one after the other, until one ends in an error."""

    def __init__(self, port):
        super().__init__()
        self.port, self.n_events, self.outcome, self.ended_at = port, 0, None, None
        self.start()

    def run(self):
        body = {"prompt": "Once upon a time", "max_tokens": 400, "ignore_eos": True, "stream": True}
        try:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
            while self.outcome is None:
                connection.request("POST", "/v1/completions", json.dumps(body), {"content-type": "application/json"})
                reply = connection.getresponse()
                if reply.status != 200:
                    self.outcome = f"status {reply.status}: {reply.read(300)!r}"
                for line in reply if self.outcome is None else []:
                    self.n_events += 1
                    if b'"error"' in line:
                        self.outcome = line.decode()
        except TimeoutError:
            self.outcome = None
        except (OSError, http.client.HTTPException) as error:
            self.outcome = repr(error)
        self.ended_at = CLOCK.seconds()


def require(holds, what, server):
    if not holds:
        raise SystemExit(f"{what}\n{server.said()}")


def clients_under_load(server):
    clients = [Client(server.port) for _ in range(N_CLIENTS)]
    end = CLOCK.seconds() + 30
    while CLOCK.seconds() < end and not all(c.n_events > 0 for c in clients):
        time.sleep(0.005)
    time.sleep(random.uniform(0, 0.3))
    return clients


def lose_one(server, how, candidates):
    """Seconds until the last client was told."""
    clients = clients_under_load(server)
    victim = random.choice(candidates(server.ranks()))
    begin = CLOCK.seconds()
    os.kill(victim, how)
    for client in clients:
        client.join()
        require(client.outcome is not None, "a client waits for ever", server)
    seconds = max(client.ended_at for client in clients) - begin
    require(seconds < NOTICED_WITHIN, f"noticed after {seconds:.1f} s", server)
    return seconds, victim


def gone(pids):
    return not any(Path(f"/proc/{pid}").exists() and parent_of(pid) != -1 for pid in pids)


def wait_for(holds, seconds):
    end = CLOCK.seconds() + seconds
    while CLOCK.seconds() < end:
        if holds():
            return True
        time.sleep(0.02)
    return holds()


def rounds_that_end(program, way, n_rounds, how):
    slowest = 0
    for number in range(n_rounds):
        server = Server(program, way, 2 + number % 2)
        try:
            everybody = [server.process.pid] + descendants_of(server.process.pid)
            first = min(server.ranks())
            seconds, victim = lose_one(server, how, lambda ranks: ranks)
            slowest = max(slowest, seconds)
            require(wait_for(lambda: server.process.poll() is not None, ENDS_WITHIN), "the server does not end", server)
            code = server.process.returncode
            if server.uses_mpi:  # mpirun hands on the code of the rank that ended first
                expected = CODE_OF_LOST_RANKS if how == signal.SIGSTOP else CODE_OF_KILLED
            else:
                expected = CODE_OF_LOST_RANKS if victim != first else -how
            require(code == expected, f"exit code {code}, expected {expected}", server)
            if victim != first and how == signal.SIGKILL and not server.uses_mpi:
                require("rank " in server.said(), "nothing is said of the rank", server)
            require(wait_for(lambda: gone(everybody), ENDS_WITHIN), "a process stays behind", server)
        finally:
            server.end()
    return slowest


def rounds_that_restart(program, way, n_rounds, how):
    server, slowest = Server(program, way, 3), 0
    try:
        others = lambda ranks: [pid for pid in ranks if pid != server.process.pid]
        before = None
        for number in range(n_rounds):
            seconds, victim = lose_one(server, how, others)
            slowest = max(slowest, seconds)
            require(wait_for(lambda: gone([victim]) and len(others(server.ranks())) == 2, ENDS_WITHIN),
                    "the ranks are not started again", server)
            server.wait_until_ready()
            if number == min(5, n_rounds - 1):
                before = resident_kb(server.process.pid)
        grown = resident_kb(server.process.pid) - before
        require(grown < 64 * 1024, f"the server has grown by {grown} kB", server)
        everybody = [server.process.pid] + descendants_of(server.process.pid)
        server.process.send_signal(signal.SIGTERM)
        require(wait_for(lambda: server.process.poll() is not None, ENDS_WITHIN), "the server does not end", server)
        require(server.process.returncode == 0, f"exit code {server.process.returncode}", server)
        require(wait_for(lambda: gone(everybody), ENDS_WITHIN), "a process stays behind", server)
    finally:
        server.end()
    return slowest


def main():
    program, n_rounds = str(Path(sys.argv[1]).resolve()), int(sys.argv[2])
    ways = sys.argv[3:] or ["mpi", "far", "restart"]
    if shutil.which("mpirun") is None and any(way.startswith(("mpi", "far")) for way in ways):
        print("mpirun is not installed")
        return 77
    seed = int(os.environ.get("LOSE_RANKS_SEED", random.randrange(1 << 30)))
    random.seed(seed)
    print(f"seed {seed}", flush=True)
    before = set(shared_memory())
    for way in ways:
        how = signal.SIGSTOP if way.endswith("-stop") else signal.SIGKILL
        rounds = rounds_that_restart if way.startswith("restart") else rounds_that_end
        slowest = rounds(program, way, n_rounds, how)
        if not wait_for(lambda: set(shared_memory()) <= before, ENDS_WITHIN):
            raise SystemExit(f"shared memory stays behind: {set(shared_memory()) - before}")
        print(f"{way}: {n_rounds} ranks lost, every client told within {slowest:.1f} s, nothing left behind", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
