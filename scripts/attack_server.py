#!/usr/bin/env python3
"""Steady streams beside a random mix of every bad request: is each answer right, how much do the streams feel of it,
does memory stay, does nothing stay behind, and is SIGTERM answered at any moment? Loopback only; stops by itself.

usage: attack_server.py PROGRAM [--seconds 3600] [--rounds 6] [--streams 16] [--attackers 4] [--terms 20] [--seed 1]

Undisturbed and attacked stretches alternate, so that what else the machine does counts for both.

Exits with 1 where an answer differs, the server ends, memory grows by more than 5 %, blocks stay in use, SIGTERM takes
longer than a second to be answered, or the streams' p99 gap is more than twice the undisturbed one.
"""
import argparse
import base64
import json
import multiprocessing
import os
import random
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

MODEL = Path(__file__).resolve().parent.parent / "models/pocket/pocket-q8_0.gguf"
N_TOKENS = 120


class Served:
    def __init__(self, program, *options):
        command = [program, "serve", "-m", str(MODEL), "--port", "0", "--log-level", "off", *options]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        line = self.process.stderr.readline()
        found = re.search(r":(\d+) ", line)
        if not found:
            sys.exit(f"the server did not start: {line}")
        self.port = int(found.group(1))

    def end(self):
        self.process.kill()
        self.process.wait()

    def resident_bytes(self):
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) * 1024

    def metric(self, name):
        page = exchange(self.port, request("GET", "/metrics"))
        found = re.search(rf"^{name}(?:{{[^}}]*}})? ([0-9.e+]+)", page.decode(errors="replace"), re.M)
        return float(found.group(1)) if found else None


def request(method, path, body=b"", headers=()):
    head = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", *headers]
    if body or method == "POST":
        head.append(f"Content-Length: {len(body)}")
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def exchange(port, asked, at_most=30.0):
    """What comes back until the other side closes, says nothing for a while, or a reply with a length is whole."""
    with socket.create_connection(("127.0.0.1", port), timeout=at_most) as connection:
        try:
            connection.sendall(asked)
        except OSError:
            pass  # refused before all was sent; the reply may still be there
        got = b""
        end = time.monotonic() + at_most
        while time.monotonic() < end:
            connection.settimeout(max(0.01, end - time.monotonic()))
            try:
                part = connection.recv(65536)
            except OSError:
                break
            got += part
            head, mark, rest = got.partition(b"\r\n\r\n")
            length = re.search(rb"content-length: (\d+)", head.lower())
            if not part or (mark and length and len(rest) >= int(length.group(1))):
                break
        return got


def chat(**fields):
    body = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 4, **fields}
    return json.dumps(body).encode()


# ---- steady streams


def steady_body(number):
    return {"prompt": f"Once upon a time, {number} foxes", "max_tokens": N_TOKENS, "temperature": 1, "seed": number,
            "ignore_eos": True, "stream": True}


class Stream:
    """Asks the same again and again; keeps each token's time and whether the text was the known one."""

    def __init__(self, port, number, known):
        self.port, self.number, self.known = port, number, known
        self.open()

    def open(self):
        body = json.dumps(steady_body(self.number)).encode()
        self.socket = socket.create_connection(("127.0.0.1", self.port))
        self.socket.sendall(request("POST", "/v1/completions", body, ["Connection: close"]))
        self.bytes, self.last = b"", None

    def text(self):
        parts = re.findall(rb'^data: (\{.*\})\r?$', self.bytes, re.M)
        events = [json.loads(part) for part in parts]
        return "".join(choice.get("text", "") for event in events for choice in event.get("choices", []))


def read_streams(port, n, seconds, known, results):
    """Reads n streams again and again; sends the gaps between tokens, and how many texts were right and wrong."""
    poll = select.epoll()
    streams = {}
    for number in range(n):
        stream = Stream(port, number, known[number])
        streams[stream.socket.fileno()] = stream
        poll.register(stream.socket, select.EPOLLIN)
    gaps, n_right, wrong = [], 0, []
    end = time.monotonic() + seconds
    while streams:
        for number, _ in poll.poll(1.0):
            stream = streams[number]
            try:
                got = stream.socket.recv(65536)
            except OSError:
                got = b""
            now = time.monotonic()
            if got:
                before = stream.bytes.count(b'"text":')
                stream.bytes += got
                if stream.bytes.count(b'"text":') > before:
                    if stream.last is not None:
                        gaps.append(now - stream.last)
                    stream.last = now
                continue
            text = stream.text()
            if text == stream.known and b"[DONE]" in stream.bytes:
                n_right += 1
            else:
                wrong.append((stream.number, stream.bytes[:300].decode(errors="replace")))
            poll.unregister(number)
            streams.pop(number).socket.close()
            if now < end and len(wrong) < 50:
                stream.open()
                streams[stream.socket.fileno()] = stream
                poll.register(stream.socket, select.EPOLLIN)
    results.send((gaps, n_right, wrong))


def run_streams(port, n, seconds, known):
    receiver, sender = multiprocessing.Pipe(False)
    reader = multiprocessing.Process(target=read_streams, args=(port, n, seconds, known, sender))
    reader.start()
    sender.close()
    return reader, receiver


# ---- the bad requests: each takes (port, random) and does its worst in at most some seconds


def many_keys(n):
    return {f"k{i}": i for i in range(n)}


def schema_attacks(r):
    return r.choice([
        {"type": "integer", "multipleOf": 9999991},
        {"type": "object", "required": [f"n{i}" for i in range(r.choice([100, 80_000]))]},
        {"allOf": [{"properties": {f"a{i}{j}": {"pattern": "a+" * 20} for j in range(20)}} for i in range(12)]},
        {"type": "array", "minItems": 100_000, "items": {"type": "string", "minLength": 100_000}},
        {"enum": [str(i) * 50 for i in range(9000)]},
        {"pattern": "(" * 200 + "a" + "){2,50}" * 200},
        {"$ref": "#"},
        {"type": "object", "properties": {str(i): {"$ref": "#"} for i in range(2900)}},
        {"type": "string", "pattern": "(.*a){50}"},
        {"not": {"not": {"not": {"type": "object"}}}},
        {"oneOf": [{"multipleOf": p} for p in (2, 3, 5, 7, 11, 13, 17, 19, 23)]},
    ])


def grammar_attacks(r):
    return r.choice([
        'root ::= s\ns ::= s s | [^x]',
        "root ::= " + "(" * 250 + "a" + ")*" * 250,
        "root ::= " + " ".join("(" + "[a]" + "*" * 250 + ")" for _ in range(255)),
        'root ::= a{1,100000}\na ::= "b" a | "c"',
        "root ::= " + " | ".join(f'"{i}"' for i in range(9000)),
        "\n".join(f"r{i} ::= r{i + 1}" for i in range(7000)) + '\nroot ::= r0\nr7000 ::= "a"',
        'root ::= root root root | "a" | ""',
    ])


def constrained(port, r):
    body = r.choice([
        lambda: chat(response_format={"type": "json_schema", "json_schema": {"name": "a", "schema": schema_attacks(r)}}),
        lambda: chat(grammar=grammar_attacks(r), n=r.choice([1, 15]), max_tokens=r.choice([4, 40]), t_max_ms=3000),
        lambda: chat(guided_regex=r.choice(["(a*)*b", "a{1,99999}", "(x+x+)+y", "[" * 300, "\\p{L}{0,5000}"])),
        lambda: chat(tools=[{"type": "function", "function": {"name": "f", "strict": True, "parameters": schema_attacks(r)}}],
                     tool_choice="required"),
    ])()
    exchange(port, request("POST", "/v1/chat/completions", body))


def large_json(port, r):
    body = r.choice([
        lambda: chat(chat_template_kwargs=many_keys(80_000)),
        lambda: chat(tools=[{"type": "function", "function": {"name": "f", "parameters": many_keys(80_000)}}]),
        lambda: b'{"messages":' + b"[" * 500_000,
        lambda: chat(messages=[{"role": "user", "content": "a" + "\u0301" * 80_000}]),
        lambda: chat(messages=[{"role": "user", "content": "x" * 3_000_000}]),
        lambda: chat(stop=["a" * 200_000]),
        lambda: chat(**{f"unknown{i}": i for i in range(50_000)}),
        lambda: chat(model="m" * 1_000_000),
        lambda: chat(logit_bias={str(i): 1 for i in range(100_000)}),
        lambda: os.urandom(200_000),
    ])()
    path = r.choice(["/v1/chat/completions", "/v1/completions", "/tokenize", "/apply-template", "/v1/embeddings"])
    exchange(port, request("POST", path, body))


def wrong_fields(port, r):
    names = ["temperature", "top_p", "n", "seed", "stop", "max_tokens", "messages", "tools", "response_format", "logprobs",
             "stream", "logit_bias", "best_of", "samplers", "grammar", "priority"]
    values = [None, True, -1, 1e308, 2**63, "x", [], {}, [[]], {"a": None}, "\ud800", "a" * 10_000, [1] * 10_000]
    for _ in range(20):
        exchange(port, request("POST", "/v1/chat/completions", chat(**{r.choice(names): r.choice(values)}, t_max_ms=500)))


def broken_http(port, r):
    asked = r.choice([
        b"GET /health HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: " + b"y" * 70_000 + b"\r\n\r\n",
        b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1;" + b"e" * 300_000 + b"\r\na\r\n0\r\n\r\n",
        b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n-2\r\n",
        b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n",
        b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
        b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        b"GET /v1/models HTTP/1.1\r\nHost: [::1].evil.example\r\n\r\n",
        b"GET /health HTTP/1.1\r\n" + b"".join(b"A%d: b\r\n" % i for i in range(5000)) + b"\r\n",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01" + os.urandom(200),
        b"GET /health HTTP/1.1\nHost: localhost\n\n",
        os.urandom(r.randrange(1, 3000)),
        b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\nhalf",
    ])
    exchange(port, asked, at_most=2)


def slow_clients(port, r):
    held = [socket.create_connection(("127.0.0.1", port)) for _ in range(20)]
    for one in held:
        try:
            one.sendall(b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Length: 8000000\r\n\r\n" + b"x" * 100_000)
        except OSError:
            pass
    time.sleep(r.uniform(0.1, 3))
    for one in held:
        one.close()


def leaving_clients(port, r):
    for _ in range(10):
        one = socket.create_connection(("127.0.0.1", port))
        one.sendall(request("POST", "/v1/chat/completions", chat(stream=True, max_tokens=200, n=r.choice([1, 4]))))
        time.sleep(r.uniform(0, 0.05))
        if r.random() < 0.5:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        one.close()


def web_socket_frame(payload, opcode=1):
    n = len(payload)
    size = bytes([0x80 | n]) if n < 126 else b"\xfe" + struct.pack(">H", n) if n < 65536 else b"\xff" + struct.pack(">Q", n)
    return bytes([0x80 | opcode]) + size + b"\0\0\0\0" + payload


def web_sockets(port, r):
    key = base64.b64encode(os.urandom(16)).decode()
    with socket.create_connection(("127.0.0.1", port), timeout=5) as one:
        one.sendall(request("GET", "/v1/stream", b"", ["Upgrade: websocket", "Connection: Upgrade",
                                                       "Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {key}"]))
        try:
            one.recv(4096)
            for _ in range(r.randrange(1, 60)):
                message = {"id": r.choice(["a", "b", "c" * 1000]), "method": r.choice(["chat.completions", "cancel", "x"]),
                           "body": json.loads(chat(max_tokens=r.choice([1, 50]), stream=r.random() < 0.5))}
                frame = r.choice([
                    lambda: web_socket_frame(json.dumps(message).encode()),
                    lambda: web_socket_frame(json.dumps(message).encode()),
                    lambda: web_socket_frame(b"[" * 50_000),
                    lambda: web_socket_frame(os.urandom(50)),
                    lambda: web_socket_frame(b"", r.randrange(16)),
                    lambda: b"\x81\xff" + struct.pack(">Q", 2**62) + b"\0\0\0\0",
                    lambda: os.urandom(20),
                ])()
                one.sendall(frame)
            time.sleep(r.uniform(0, 0.3))
        except OSError:
            pass


def large_texts(port, r):
    text = r.choice(["a", "\n", " ", "9", "!", "\U0001f98a", "e\u0301", "\u0915\u094d", "<|im_start|>"]) * r.choice([1000, 300_000])
    exchange(port, request("POST", "/tokenize", json.dumps({"content": text}).encode()))
    body = {"prompt": text, "max_tokens": 2}
    exchange(port, request("POST", "/v1/completions", json.dumps(body).encode()))


def crowds(port, r):
    held = []
    for _ in range(60):
        one = socket.create_connection(("127.0.0.1", port))
        one.sendall(request("POST", "/v1/chat/completions", chat(max_tokens=8)))
        held.append(one)
    for one in held:
        one.settimeout(20)
        try:
            one.recv(65536)
        except OSError:
            pass
        one.close()


ATTACKS = [constrained, constrained, large_json, wrong_fields, broken_http, broken_http, slow_clients, leaving_clients,
           web_sockets, large_texts, crowds]


def attack(port, seed, end, counts):
    os.nice(5)
    r = random.Random(seed)
    done = {}
    while time.monotonic() < end:
        one = r.choice(ATTACKS)
        try:
            one(port, r)
            done[one.__name__] = done.get(one.__name__, 0) + 1
        except ConnectionRefusedError:
            time.sleep(0.2)
        except OSError:
            done["cut"] = done.get("cut", 0) + 1
    counts.send(done)


# ---- the runs


def percentile(values, share):
    return sorted(values)[int(share * (len(values) - 1))] if values else float("nan")


class Seen:
    """What streams saw over several stretches."""

    def __init__(self, name):
        self.name, self.stretches, self.gaps, self.n_right, self.wrong = name, [], [], 0, []

    def add(self, seen):
        gaps, n_right, wrong = seen
        self.stretches.append(percentile(gaps, 0.99))
        self.gaps += gaps
        self.n_right += n_right
        self.wrong += wrong

    def last(self):
        return f"{self.name} p99 {self.stretches[-1] * 1e3:.1f} ms"

    def __str__(self):
        return (f"{self.name}: {self.n_right} answers right, {len(self.wrong)} wrong; between tokens "
                f"{percentile(self.gaps, 0.5) * 1e3:.1f} ms (median), {percentile(self.gaps, 0.99) * 1e3:.1f} ms (p99), "
                f"{max(self.gaps) * 1e3:.0f} ms (most)")


def known_texts(port, n):
    texts = []
    for number in range(n):
        body = steady_body(number) | {"stream": False}
        reply = exchange(port, request("POST", "/v1/completions", json.dumps(body).encode()), 120)
        texts.append(json.loads(reply.partition(b"\r\n\r\n")[2])["choices"][0]["text"])
    return texts


def start_attackers(port, n, seed, seconds):
    end = time.monotonic() + seconds
    started = []
    for i in range(n):
        receiver, sender = multiprocessing.Pipe(False)
        process = multiprocessing.Process(target=attack, args=(port, seed * 1000 + i, end, sender))
        process.start()
        sender.close()
        started.append((process, receiver))
    return started


def watch_memory(served, seconds):
    """Resident bytes every second."""
    found = []
    end = time.monotonic() + seconds
    while time.monotonic() < end and served.process.poll() is None:
        found.append(served.resident_bytes())
        time.sleep(1)
    return found


def add_counts(counts, more):
    for name, count in more.items():
        counts[name] = counts.get(name, 0) + count


def attacked_stretch(served, options, number, known):
    """Streams beside attackers: what the streams saw, resident bytes every second, attacks by name."""
    seconds = options.seconds / options.rounds
    reader, receiver = run_streams(served.port, options.streams, seconds, known)
    attackers = start_attackers(served.port, options.attackers, options.seed + 100 * number, seconds)
    memory = watch_memory(served, seconds)
    counts = {}
    for process, results in attackers:
        add_counts(counts, results.recv())
        process.join()
    seen = receiver.recv()
    reader.join()
    return seen, memory, counts


def undisturbed_stretch(served, options, known):
    reader, receiver = run_streams(served.port, options.streams, options.alone, known)
    seen = receiver.recv()
    reader.join()
    return seen


def steady_run(options):
    more = ["--threads", str(options.threads)] if options.threads else []
    served = Served(options.program, "--parallel", str(options.streams + 8), "-c", "512", *more)
    faults, memory, counts = [], [], {}
    undisturbed, beside = Seen("undisturbed"), Seen("beside attacks")
    try:
        known = known_texts(served.port, options.streams)
        for number in range(options.rounds):
            undisturbed.add(undisturbed_stretch(served, options, known))
            seen, resident, attacks = attacked_stretch(served, options, number, known)
            beside.add(seen)
            memory += resident
            add_counts(counts, attacks)
            print(f"round {number + 1}: {undisturbed.last()}; {beside.last()}; {resident[-1] / 2**20:.0f} MB", flush=True)
        print(f"attacks: {counts}\n{undisturbed}\n{beside}")
        if beside.wrong:
            faults.append(f"{len(beside.wrong)} answers were wrong, such as {beside.wrong[0]}")
        if percentile(beside.gaps, 0.99) > 2 * percentile(undisturbed.gaps, 0.99):
            faults.append("the streams' p99 gap is more than twice the undisturbed one")
        faults += memory_faults(memory) + remains(served)
    finally:
        served.end()
    return faults


def memory_faults(memory):
    """Compares the medians of the second quarter of the run and of the last: caches fill in the first, and what attackers
    hold at a moment comes and goes."""
    n = len(memory)
    if n < 8:
        return []
    quarters = [memory[n // 4: n // 2], memory[3 * n // 4:]]
    early, late = (sorted(quarter)[len(quarter) // 2] for quarter in quarters)
    print(f"resident: {memory[0] / 2**20:.0f} MB at first, {early / 2**20:.0f} in the second quarter (median; "
          f"{max(quarters[0]) / 2**20:.0f} at most), {late / 2**20:.0f} in the last ({max(quarters[1]) / 2**20:.0f} at most)")
    return [f"resident memory grew by {100 * (late / early - 1):.1f} %"] if late > 1.05 * early else []


def remains(served):
    if served.process.poll() is not None:
        return [f"the server ended with {served.process.returncode}"]
    for _ in range(100):
        used = served.metric("candor_kv_blocks_used")
        if used == 0:
            break
        time.sleep(0.1)
    print(f"blocks in use at the end: {used}")
    return [] if used == 0 else [f"{used} blocks are in use when nobody asks any more"]


def term_run(options, number):
    """SIGTERM at a random moment of the mix: seconds until nobody new is let in, and until the process has ended."""
    r = random.Random(options.seed * 7919 + number)
    served = Served(options.program, "--drain-seconds", "1")
    try:
        attackers = start_attackers(served.port, options.attackers, options.seed + number, 6)
        time.sleep(r.uniform(0.2, 4))
        began = time.monotonic()
        served.process.send_signal(signal.SIGTERM)
        while True:
            try:
                reply = exchange(served.port, request("POST", "/v1/chat/completions", chat(max_tokens=1)), 5)
            except OSError:
                break
            if b" 503 " in reply[:20] or not reply:
                break
        answered = time.monotonic() - began
        served.process.wait(30)
        ended = time.monotonic() - began
        for process, _ in attackers:
            process.terminate()
            process.join()
        return answered, ended, served.process.returncode
    finally:
        served.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    for name, default in (("seconds", 3600), ("rounds", 6), ("alone", 60), ("streams", 16), ("attackers", 4), ("terms", 20), ("seed", 1), ("threads", 0)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    faults = steady_run(options) if options.seconds else []
    ends = [term_run(options, i) for i in range(options.terms)]
    if ends:
        print(f"SIGTERM {len(ends)} times: nobody new after {max(e[0] for e in ends):.2f} s at most, ended after "
              f"{max(e[1] for e in ends):.2f} s at most, exit codes {sorted({e[2] for e in ends})}")
        if max(e[0] for e in ends) > 1 or {e[2] for e in ends} != {0}:
            faults.append("SIGTERM was answered late, or not with exit code 0")
    for fault in faults:
        print(f"FAULT: {fault}")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
