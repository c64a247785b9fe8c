#!/usr/bin/env python3
"""The prefix cache on disk, measured: a long prompt's first token, computed and then, after a restart, from the disk (read
again from the device where this is run by root); and the pace of streams beside a prompt that comes from the disk.

usage: measure_disk_cache.py PROGRAM MODEL [TOKENS] [STREAMS]        (20000 16)

MODEL: for example make_shape.py llama-3.2-1b Q4_K_M. Uses only the standard library.
"""
import http.client
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path


class Server:
    def __init__(self, program, model, folder, n_ctx):
        self.process = subprocess.Popen(
            [program, "serve", "-m", model, "--port", "0", "--no-ui", "-c", str(n_ctx), "--cache-dir", folder, "--drain-seconds", "1"],
            stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            found = re.search(r"127\.0\.0\.1:(\d+)", line)
            if found:
                self.port = int(found.group(1))
                break
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def close(self):
        self.process.terminate()
        self.process.wait()

    def stream(self, body, on_token):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=3600)
        connection.request("POST", "/v1/completions", json.dumps({**body, "stream": True, "logprobs": 0, "stream_options": {"include_usage": True}}),
                           {"Content-Type": "application/json"})
        usage, text = None, ""
        for line in connection.getresponse():
            if not line.startswith(b"data: {"):
                continue
            chunk = json.loads(line[6:])
            usage = chunk.get("usage") or usage
            for choice in chunk["choices"]:
                if choice.get("logprobs"):  # no others are of a token
                    text += str(choice["logprobs"])
                    on_token(time.perf_counter())
        return text, usage


def first_token(server, prompt):
    times, began = [], time.perf_counter()
    text, usage = server.stream({"prompt": prompt, "max_tokens": 16, "temperature": 0, "ignore_eos": True}, times.append)
    return times[0] - began, text, usage


def drop_caches():
    try:
        os.sync()
        Path("/proc/sys/vm/drop_caches").write_text("3")
        return True
    except OSError:
        return False


def read_seconds(folder):
    began, n_bytes = time.perf_counter(), 0
    for path in Path(folder).glob("*.blocks"):
        with open(path, "rb", buffering=0) as file:
            while part := file.read(1 << 20):
                n_bytes += len(part)
    return time.perf_counter() - began, n_bytes


def gaps_of(server, n_streams, beside):
    gaps, stop = [], threading.Event()

    def one(i):
        times = []
        server.stream({"prompt": [100 + i, 200, 300], "max_tokens": 160, "temperature": 0, "ignore_eos": True}, times.append)
        gaps.append(times)

    threads = [threading.Thread(target=one, args=(i,)) for i in range(n_streams)]
    for thread in threads:
        thread.start()
    time.sleep(6)
    window = [time.perf_counter()]
    beside()
    window.append(time.perf_counter())
    for thread in threads:
        thread.join()
    stop.set()
    inside = [b - a for times in gaps for a, b in zip(times, times[1:]) if window[0] <= b <= window[1] + 0.2]
    before = [b - a for times in gaps for a, b in zip(times, times[1:]) if times[0] + 2 < b < window[0]]
    return before, inside


def p99(values):
    return statistics.quantiles(values, n=100)[98] if len(values) > 2 else float("nan")


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    program, model = sys.argv[1:3]
    n_tokens = int(sys.argv[3]) if len(sys.argv) > 3 else 20_000
    n_streams = int(sys.argv[4]) if len(sys.argv) > 4 else 16
    prompt = [(i * i * 7 + 3 * i) % 30_000 + 100 for i in range(n_tokens)]
    with tempfile.TemporaryDirectory(dir=".") as parent:
        folder = parent + "/prefixes"
        server = Server(program, model, folder, n_tokens + 2048)
        cold, text, _ = first_token(server, prompt)
        print(f"computed: first token of {n_tokens} tokens after {cold:.2f} s", flush=True)
        server.close()
        dropped = drop_caches()
        plain_s, n_bytes = read_seconds(folder)
        print(f"the disk gives these {n_bytes / 1e6:.0f} MB in {plain_s:.2f} s ({'device' if dropped else 'page cache'})", flush=True)
        for how in ("device" if dropped else "page cache", "page cache"):
            server = Server(program, model, folder, n_tokens + 2048)
            if how == "device":
                subprocess.run(["cat", model], stdout=subprocess.DEVNULL, check=True)
                drop_caches()
            warm, again, usage = first_token(server, prompt)
            print(f"from disk ({how}): {warm:.2f} s, {cold / warm:.0f} x sooner, {usage['prompt_tokens_details']}, "
                  f"{'the same' if again == text else 'ANOTHER'} answer; {warm / plain_s:.2f} x of reading alone", flush=True)
            server.close()
        server = Server(program, model, folder, n_tokens + 2048)
        before, inside = gaps_of(server, n_streams, lambda: first_token(server, prompt))
        print(f"{n_streams} streams: p99 between tokens {p99(before) * 1e3:.0f} ms undisturbed, {p99(inside) * 1e3:.0f} ms beside a "
              f"prompt from disk ({p99(inside) / p99(before):.2f} x); median {statistics.median(before) * 1e3:.0f} and "
              f"{statistics.median(inside) * 1e3:.0f} ms", flush=True)
        server.close()


if __name__ == "__main__":
    main()
