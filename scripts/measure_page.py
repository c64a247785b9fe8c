#!/usr/bin/env python3
"""What somebody who looks at the page's machine view costs the streams of a server: 16 of them, in turns with and
without the page's question once a second.

usage: measure_page.py PROGRAM [MODEL] [TURNS] [SECONDS]

Prints tokens a second of each kind of turn, and milliseconds of a step as the engine counts them, with the medians of the
ratios of neighbours; and what measuring its operations adds to a step: steps that were measured beside those before them.
"""
import json
import re
import selectors
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

MODEL = Path(__file__).resolve().parent.parent / "models/pocket/pocket-q8_0.gguf"
STREAMS = 16
BODY = {"prompt": "Once upon a time", "max_tokens": 480, "ignore_eos": True, "stream": True, "temperature": 0.8}


class Streams:
    """Keeps STREAMS answers coming, and counts their chunks."""

    def __init__(self, port):
        self.port = port
        self.n_chunks = 0
        self.selector = selectors.DefaultSelector()
        for seed in range(STREAMS):
            self.begin(seed)

    def begin(self, seed):
        body = json.dumps({**BODY, "seed": seed})
        connection = socket.create_connection(("127.0.0.1", self.port))
        connection.sendall(
            f"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nContent-Type: application/json\r\n"
            f"Connection: close\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
        self.selector.register(connection, selectors.EVENT_READ, seed)

    def run(self, seconds, tick):
        """Chunks a second; tick() is called once a second."""
        begin, next_tick, before = time.monotonic(), time.monotonic(), self.n_chunks
        while (now := time.monotonic()) < begin + seconds:
            if now >= next_tick:
                tick()
                next_tick += 1
            for key, _ in self.selector.select(0.01):
                data = key.fileobj.recv(1 << 16)
                self.n_chunks += data.count(b"data: {")
                if data:
                    continue
                self.selector.unregister(key.fileobj)
                key.fileobj.close()
                self.begin(key.data)
        return (self.n_chunks - before) / (time.monotonic() - begin)


class Page:
    """Asks as web/src/store/live.ts does."""

    def __init__(self, port):
        self.url = f"http://127.0.0.1:{port}/v1/ui/live?steps="
        self.n_known = 0
        self.rows = []

    def totals(self):
        """Steps so far and the milliseconds that they took. Without steps=N nobody looks."""
        with urllib.request.urlopen(self.url.split("?")[0]) as reply:
            steps = json.load(reply)["steps"]
        return steps["n"], steps["busy_ms"]

    def ask(self):
        with urllib.request.urlopen(self.url + str(self.n_known)) as reply:
            steps = json.load(reply)["steps"]
        self.n_known = steps["n"]
        self.rows += steps["newest"]

    def measuring(self):
        """compute_ms of a measured step by that of the step before it, both of STREAMS rows that decode: the median."""
        pairs = zip(self.rows, self.rows[1:])
        ratios = [b[5] / a[5] for a, b in pairs if b[7] and not a[7] and a[1] == b[1] == STREAMS]
        return {"pairs": len(ratios), "median_ratio": round(statistics.median(ratios), 4)}


def compared(rates, column):
    with_page = [row[column] for row in rates if row[0]]
    without = [row[column] for row in rates if not row[0]]
    ratios = [a / b for a, b in zip(with_page, without)]
    return {"with": [round(x, 4) for x in with_page], "without": [round(x, 4) for x in without],
            "ratios": [round(x, 4) for x in ratios], "median_ratio": round(statistics.median(ratios), 4)}


def main():
    program = sys.argv[1]
    model = sys.argv[2] if len(sys.argv) > 2 else str(MODEL)
    turns = int(sys.argv[3]) if len(sys.argv) > 3 else 12
    seconds = float(sys.argv[4]) if len(sys.argv) > 4 else 6
    command = [program, "serve", "-m", model, "--port", "0", "--log-level", "off", "--parallel", str(STREAMS)]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        port = int(re.search(r":(\d+) ", server.stderr.readline()).group(1))
        streams, page = Streams(port), Page(port)
        streams.run(3, lambda: None)
        rates = []
        for turn in range(turns):
            looks = turn % 4 in (1, 2)  # without, with, with, without: drift counts for both
            if not looks:
                streams.run(5.5, lambda: None)  # operations are measured for 5 s after a look
            if looks:
                streams.run(1, page.ask)  # from here on they are measured
            n_before, ms_before = page.totals()
            rate = streams.run(seconds, page.ask if looks else lambda: None)
            n_after, ms_after = page.totals()
            rates.append((looks, rate, (ms_after - ms_before) / (n_after - n_before)))
        print(json.dumps({"tokens_per_second": compared(rates, 1), "step_ms": compared(rates, 2),
                          "measured_step": page.measuring()}))
    finally:
        server.kill()
        server.wait()


if __name__ == "__main__":
    main()
