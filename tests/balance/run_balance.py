#!/usr/bin/env python3
"""HAProxy with packaging/balance/haproxy.cfg before two servers, of which one is killed and started again under load:
no request of which no answer had begun is lost, and conversations find their cached beginnings about as often as before
one server alone.

usage: run_balance.py PROGRAM [KILLS]

Exits with 77 where HAProxy is not installed. Everything listens on 127.0.0.1 and ends with this program.
"""
import http.client
import json
import os
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
CONFIG = ROOT / "packaging/balance/haproxy.cfg"
N_CONVERSATIONS = 12
N_CLIENTS = 4
LEAST_SHARE = 0.8  # of one server's
QUESTIONS_BETWEEN_KILLS = 120  # of all clients together


def wait_until(port, path="/ready", seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
            connection.request("GET", path)
            if connection.getresponse().status == 200:
                return
        except OSError:
            pass
        time.sleep(0.02)
    raise SystemExit(f"nobody answers at port {port} within {seconds} s")


class Server:
    def __init__(self, program, port):
        self.command = [program, "serve", "-m", str(MODEL), "--port", str(port), "-t", "1", "--parallel", "8", "--no-ui",
                        "--log-level", "off"]
        self.port = port
        self.process = None

    def start(self):
        self.process = subprocess.Popen(self.command, stderr=subprocess.DEVNULL)
        wait_until(self.port)

    def end(self, how=signal.SIGKILL):
        self.process.send_signal(how)
        self.process.wait()


class Balancer:
    def __init__(self, servers):
        self.front, figures = free_port(), free_port()
        environment = dict(os.environ, CANDOR_FRONT=f"127.0.0.1:{self.front}", CANDOR_FIGURES=f"127.0.0.1:{figures}",
                           CANDOR_A=f"127.0.0.1:{servers[0].port}", CANDOR_B=f"127.0.0.1:{servers[1].port}")
        self.process = subprocess.Popen([haproxy(), "-db", "-q", "-f", str(CONFIG)], env=environment, stderr=subprocess.DEVNULL)
        wait_until(self.front)

    def end(self):
        self.process.kill()
        self.process.wait()


def haproxy():
    return shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin:/usr/local/sbin")


class Load:
    """Clients that go on with conversations, one question after the other, and count what they get."""

    def __init__(self, port):
        self.port = port
        self.lock = threading.Lock()
        self.next = 0
        self.n_answers = self.n_begun_lost = self.n_prompt = self.n_cached = 0
        self.lost = []
        self.is_over = False
        self.threads = [threading.Thread(target=self.run) for _ in range(N_CLIENTS)]
        for thread in self.threads:
            thread.start()

    def run(self):
        while not self.is_over:
            with self.lock:
                number = self.next
                self.next += 1
            self.ask(number % N_CONVERSATIONS, number // N_CONVERSATIONS)

    def ask(self, conversation, question):
        story = f"Conversation {conversation}. " + " ".join(f"Once upon a time there was a cat who saw {conversation + i} birds."
                                                               for i in range(12))
        body = {"messages": [{"role": "user", "content": story}, {"role": "assistant", "content": "Oh!"},
                             {"role": "user", "content": f"And then {question}?"}],
                "max_tokens": 8, "ignore_eos": True, "stream": True, "stream_options": {"include_usage": True}, "seed": question}
        has_begun, events, error = stream(self.port, body)
        with self.lock:
            usage = next((e["usage"] for e in events if e.get("usage")), None)
            if error is None and usage:
                self.n_answers += 1
                self.n_prompt += usage["prompt_tokens"]
                self.n_cached += usage["prompt_tokens_details"]["cached_tokens"]
            elif has_begun:
                self.n_begun_lost += 1
            else:
                self.lost.append(error)

    def end(self):
        self.is_over = True
        for thread in self.threads:
            thread.join()

    def wait_for(self, n_more):
        end = time.monotonic() + 120
        goal = self.n_answers + n_more
        while self.n_answers < goal and time.monotonic() < end:
            time.sleep(0.01)
        if self.n_answers < goal:
            raise SystemExit(f"only {self.n_answers} of {goal} answers within 120 s")

    def share(self):
        return self.n_cached / max(1, self.n_prompt)


def stream(port, body):
    """Whether an answer began, its events, and what went wrong. An answer begins with the head of its reply: from there on
    nobody between can ask another server."""
    has_begun, events = False, []
    try:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("POST", "/v1/chat/completions", json.dumps(body), {"content-type": "application/json"})
        reply = connection.getresponse()
        if reply.status != 200:
            return False, events, f"status {reply.status}: {reply.read(300)!r}"
        has_begun = True
        for line in reply:
            if line.startswith(b"data: [DONE]"):
                return True, events, None
            if line.startswith(b"data: "):
                events.append(json.loads(line[6:]))
        return True, events, "the stream ends in its middle"
    except (OSError, http.client.HTTPException, ValueError) as error:
        return has_begun, events, repr(error)


def share_of_one(program):
    server = Server(program, free_port())
    server.start()
    try:
        load = Load(server.port)
        load.wait_for(20 * N_CONVERSATIONS)
        load.end()
        return load.share()
    finally:
        server.end()


def share_of_two(program, n_kills):
    servers = [Server(program, free_port()) for _ in range(2)]
    for server in servers:
        server.start()
    balancer = Balancer(servers)
    load = Load(balancer.front)
    try:
        for number in range(n_kills):
            load.wait_for(QUESTIONS_BETWEEN_KILLS)
            server = servers[number % 2]
            server.end(signal.SIGTERM if number % 5 == 4 else signal.SIGKILL)
            load.wait_for(QUESTIONS_BETWEEN_KILLS // 4)
            server.start()
        load.wait_for(QUESTIONS_BETWEEN_KILLS)
    finally:
        load.end()
        balancer.end()
        for server in servers:
            server.end()
    return load


def main():
    program = sys.argv[1]
    n_kills = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    if haproxy() is None:
        print("skipped: no haproxy here (apt install haproxy)")
        return 77
    alone = share_of_one(program)
    load = share_of_two(program, n_kills)
    print(f"{n_kills} ends of a server: {load.n_answers} answers, {len(load.lost)} requests lost before their answer began, "
          f"{load.n_begun_lost} answers cut in their middle")
    print(f"cached share of prompts: {load.share():.1%} behind HAProxy, {alone:.1%} of one server "
          f"({load.share() / alone:.1%}; at least {LEAST_SHARE:.0%})")
    for error in load.lost[:5]:
        print("lost:", error)
    return 0 if not load.lost and load.share() >= LEAST_SHARE * alone else 1


if __name__ == "__main__":
    sys.exit(main())
