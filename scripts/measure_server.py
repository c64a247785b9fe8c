#!/usr/bin/env python3
"""What a running server costs beside the engine: memory of idle streams, and time of a request outside the engine.

usage: measure_server.py PROGRAM [IDLE_STREAMS]
"""
import json
import re
import resource
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


def main():
    program = sys.argv[1]
    n = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    idle_streams(program, n)
    overhead(program)


if __name__ == "__main__":
    main()
