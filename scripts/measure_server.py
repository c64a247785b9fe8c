#!/usr/bin/env python3
"""What a running server costs beside the engine: memory of idle streams, time of a request outside the engine, and
what a crowd for whom there is no room does to itself and to those inside.

usage: measure_server.py PROGRAM [IDLE_STREAMS] [CROWD]
"""
import json
import multiprocessing
import re
import resource
import select
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path

MODEL = Path(__file__).resolve().parent.parent / "models/pocket/pocket-q8_0.gguf"


class Served:
    def __init__(self, program, *options):
        command = [program, "serve", "-m", str(MODEL), "--port", "0", "--log-level", "off", *options]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.port = int(re.search(r":(\d+) ", self.process.stderr.readline()).group(1))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def resident_bytes(self):
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) * 1024

    def connect(self):
        connection = socket.create_connection(("127.0.0.1", self.port))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection


def request_bytes(body):
    text = json.dumps(body).encode()
    head = f"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(text)}\r\n\r\n"
    return head.encode() + text


def idle_streams(program, n):
    """Streams that are open and wait: one request is computed at a time, all others stand in the queue."""
    options = ["--parallel", "1", "--max-queued", str(2 * n), "--max-per-key", str(2 * n), "--max-connections", str(2 * n)]
    asked = request_bytes({"prompt": "Once", "max_tokens": 1000, "ignore_eos": True, "stream": True})
    chat = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 1000, "ignore_eos": True, "stream": True}
    waiting = request_bytes(chat).replace(b"/v1/completions", b"/v1/chat/completions")
    with Served(program, *options) as served:
        first = served.connect()
        first.sendall(asked)
        first.recv(100)
        before = served.resident_bytes()
        open_streams = []
        for _ in range(n):
            stream = served.connect()
            stream.sendall(waiting)
            open_streams.append(stream)
        opened = sum(stream.recv(4096).startswith(b"HTTP/1.1 200") for stream in open_streams)
        grown = served.resident_bytes() - before
    print(f"{opened} idle streams: {grown / 1024 / n:.1f} KB each")


def overhead(program, n=400):
    """Wall time at the client, less what the engine says of queue, prompt and tokens. Connections are kept."""
    with Served(program) as served, served.connect() as connection:
        asked = request_bytes({"prompt": "Once", "max_tokens": 1, "temperature": 0})
        outside = []
        for _ in range(n):
            began = time.perf_counter()
            connection.sendall(asked)
            reply = b""
            while not reply.endswith(b"}"):
                reply += connection.recv(65536)
            wall_ms = (time.perf_counter() - began) * 1e3
            timings = json.loads(reply.partition(b"\r\n\r\n")[2])["timings"]
            outside.append(wall_ms - timings["queue_ms"] - timings["prompt_ms"] - timings["predicted_ms"])
            time.sleep(0.002)
    outside.sort()
    print(f"outside the engine: median {statistics.median(outside):.3f} ms, p99 {outside[int(0.99 * n)]:.3f} ms")


def percentile(values, share):
    return sorted(values)[int(share * (len(values) - 1))]


def read_streams(port, n_tokens, n, is_full, arrivals):
    """Reads n streams to their end, and sends the times at which the tokens of each arrived."""
    poll = select.epoll()
    body = {"prompt": "Once", "max_tokens": n_tokens, "temperature": 1, "ignore_eos": True, "stream": True}
    streams, tails, times = {}, {}, {}
    for seed in range(n):
        stream = socket.create_connection(("127.0.0.1", port))
        stream.sendall(request_bytes(body | {"seed": seed}))
        streams[stream.fileno()], tails[stream.fileno()], times[stream.fileno()] = stream, b"", []
        poll.register(stream, select.EPOLLIN)
    while streams:
        for number, _ in poll.poll():
            got = streams[number].recv(65536)
            now = time.monotonic()
            if got.startswith(b"HTTP/1.1 ") and b" 200 " not in got[:16]:
                sys.exit(f"a stream was refused: {got[:16].decode()}")
            read = tails[number] + got
            times[number].extend([now] * (read.count(b'"text":') - tails[number].count(b'"text":')))
            tails[number] = read[-32:]
            if not got or b"[DONE]" in read:
                poll.unregister(number)
                streams.pop(number).close()
        if min(map(len, times.values())) > 50:
            is_full.set()
    arrivals.send(list(times.values()))


def ask_at_once(port, asked, n):
    """Milliseconds from the end of each request to the first byte of its reply, and how many were refused."""
    crowd = {}
    for _ in range(n):
        client = socket.create_connection(("127.0.0.1", port))
        crowd[client.fileno()] = client
    poll = select.epoll()
    sent = {}
    for number, client in crowd.items():
        client.sendall(asked)
        sent[number] = time.monotonic()
        poll.register(number, select.EPOLLIN)
    waits, n_refused = [], 0
    while len(waits) < n:
        for number, _ in poll.poll():
            reply = crowd[number].recv(4096)
            waits.append((time.monotonic() - sent[number]) * 1e3)
            n_refused += b" 429 " in reply[:20] and b"retry-after" in reply
            poll.unregister(number)
    return waits, n_refused


def one_crowd(port, asked, n, n_inside, gaps):
    """Waits and refusals of one crowd; adds the gaps between tokens of those inside: alone, and while it asked."""
    receiver, sender = multiprocessing.Pipe(False)
    is_full = multiprocessing.Event()
    reader = multiprocessing.Process(target=read_streams, args=(port, 450, n_inside, is_full, sender))
    reader.start()
    sender.close()
    if not is_full.wait(30):
        sys.exit("the streams inside do not run")
    time.sleep(0.3)
    began = time.monotonic()
    waits, n_refused = ask_at_once(port, asked, n)
    ended = time.monotonic()
    times = receiver.recv()
    reader.join()
    for arrived in times:
        for earlier, later in zip(arrived, arrived[1:]):
            gaps[later > began and earlier < ended].append((later - earlier) * 1e3)
    return waits, n_refused


def crowd(program, n=1000, n_inside=16, rounds=5):
    """Crowds while the server is full of streams that run on: what they wait, and the gaps between the streams' tokens."""
    options = ["--parallel", str(n_inside), "--max-queued", "0", "--max-connections", str(2 * n)]
    asked = request_bytes({"prompt": "Once", "max_tokens": 8})
    gaps = {False: [], True: []}
    print(f"{rounds} times a crowd of {n} while {n_inside} streams run:")
    with Served(program, *options) as served:
        for _ in range(rounds):
            waits, n_refused = one_crowd(served.port, asked, n, n_inside, gaps)
            print(f"  {n_refused} refused, after {percentile(waits, 0.5):.1f} ms (median), "
                  f"{percentile(waits, 0.99):.1f} ms (p99)")
    shown = {"alone": gaps[False], "beside the crowds": gaps[True], "in all": gaps[False] + gaps[True]}
    for name, found in shown.items():
        print(f"  between the streams' tokens {name}: {percentile(found, 0.5):.2f} ms (median), "
              f"{percentile(found, 0.99):.2f} ms (p99), {len(found)} gaps")


def main():
    program = sys.argv[1]
    n = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    n_crowd = int(sys.argv[3]) if len(sys.argv) > 3 else 1000
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    idle_streams(program, n)
    overhead(program)
    crowd(program, n_crowd)


if __name__ == "__main__":
    main()
