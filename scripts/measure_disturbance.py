#!/usr/bin/env python3
"""What reading a long prompt costs the streams that decode beside it, on any server of OpenAI's API (ours, llama.cpp's).

usage: measure_disturbance.py URL [--rounds 1] [--streams 8] [--long 4000] [--model NAME] [--key KEY]

Three phases, each with fresh random prompts of token ids: the long prompt alone; the streams alone; the streams, and
the long prompt once they run. Printed as JSON, of every round (on stderr as it ends): gaps between a stream's tokens in ms (median, p99,
largest), those while the long prompt was read among them, and the rate at which it was read; of several rounds, which
tell the server from a machine that drifts, the median of each ratio.
"""
import argparse
import http.client
import json
import random
import statistics
import sys
import threading
import time
import urllib.parse


class Server:
    def __init__(self, options):
        self.address = urllib.parse.urlparse(options.url)
        self.model = options.model
        self.headers = {"Content-Type": "application/json"}
        if options.key:
            self.headers["Authorization"] = f"Bearer {options.key}"

    def stream(self, prompt, n_new, stop):
        """The times of the tokens, until n_new came or stop is set."""
        connection = http.client.HTTPConnection(self.address.hostname, self.address.port, timeout=900)
        body = {"prompt": prompt, "max_tokens": n_new, "temperature": 0, "stream": True, "ignore_eos": True, "logprobs": 0}
        if self.model:
            body["model"] = self.model
        connection.request("POST", "/v1/completions", json.dumps(body), self.headers)
        reply = connection.getresponse()
        if reply.status != 200:
            raise SystemExit(f"{reply.status}: {reply.read().decode()}")
        times = []
        for line in reply:
            if line.startswith(b"data: {") and json.loads(line[6:]).get("choices"):
                times.append(time.monotonic())
            if stop.is_set() or line.startswith(b"data: [DONE]"):
                break
        connection.close()
        return times


def random_prompt(n):
    return [random.randrange(300, 2000) for _ in range(n)]


class Streams:
    """Streams that decode until they are stopped."""

    def __init__(self, server, n):
        self.stop = threading.Event()
        self.times = [[] for _ in range(n)]
        self.threads = [threading.Thread(target=self.run, args=(server, i)) for i in range(n)]
        for thread in self.threads:
            thread.start()

    def run(self, server, i):
        self.times[i] = server.stream(random_prompt(32), 4000, self.stop)

    def end(self):
        self.stop.set()
        for thread in self.threads:
            thread.join()

    def gaps_ms(self, begin, end):
        gaps = [1e3 * (b - a) for times in self.times for a, b in zip(times, times[1:]) if b > begin and a < end]
        gaps.sort()
        return gaps


def summary(gaps):
    if not gaps:
        return {"gaps": 0}
    at = lambda share: round(gaps[min(len(gaps) - 1, int(share * len(gaps)))], 1)
    return {"gaps": len(gaps), "median_ms": at(0.5), "p99_ms": at(0.99), "max_ms": round(gaps[-1], 1)}


def read_long(server, n):
    began = time.monotonic()
    times = server.stream(random_prompt(n), 1, threading.Event())
    return began, times[0]


def measure(server, options):
    began, first = read_long(server, options.long)
    solo = options.long / (first - began)
    streams = Streams(server, options.streams)
    time.sleep(options.seconds / 2)  # all read their prompts
    begin = time.monotonic()
    time.sleep(options.seconds)
    end = time.monotonic()
    read_began, read_ended = read_long(server, options.long)
    streams.end()
    alone, beside = summary(streams.gaps_ms(begin, end)), summary(streams.gaps_ms(read_began, read_ended))
    rate = options.long / (read_ended - read_began)
    return {"solo_tokens_per_second": round(solo, 1), "beside_tokens_per_second": round(rate, 1),
            "share_of_solo": round(rate / solo, 3), "undisturbed": alone, "while_it_is_read": beside,
            "median_over_undisturbed_median": round(beside.get("median_ms", 0) / alone.get("median_ms", 1), 2),
            "p99_over_undisturbed_median": round(beside.get("p99_ms", 0) / alone.get("median_ms", 1), 2),
            "p99_over_undisturbed_p99": round(beside.get("p99_ms", 0) / alone.get("p99_ms", 1), 2)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--streams", type=int, default=8)
    parser.add_argument("--long", type=int, default=4000)
    parser.add_argument("--model", default=None)
    parser.add_argument("--key")
    parser.add_argument("--seconds", type=float, default=15, help="of the streams alone")
    options = parser.parse_args()
    server = Server(options)
    random.seed(1)
    rounds = []
    for _ in range(options.rounds):
        rounds.append(measure(server, options))
        print(json.dumps(rounds[-1]), file=sys.stderr, flush=True)
    ratios = ("share_of_solo", "median_over_undisturbed_median", "p99_over_undisturbed_median", "p99_over_undisturbed_p99")
    print(json.dumps({"streams": options.streams, "long_prompt": options.long, "rounds": rounds,
                      "medians": {name: statistics.median(r[name] for r in rounds) for name in ratios}}, indent=2))


if __name__ == "__main__":
    main()
