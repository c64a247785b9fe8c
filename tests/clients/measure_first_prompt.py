#!/usr/bin/env python3
"""What an agent waits for at a server: its first prompt (a fixture, with texts of the true lengths), then the turn behind a
call. Prints the longest silence of each stream, and how much of the second prompt came from the prefix cache.

    python3 tests/clients/measure_first_prompt.py http://127.0.0.1:8080 [--tokens 20000]

--tokens shortens or lengthens the texts until the first prompt has about as many (by /v1/messages/count_tokens): a model
file of random weights has a vocabulary that makes more tokens of a text than a trained one.
"""
import argparse
import copy
import json
import re
import time
import urllib.request
from pathlib import Path

from sanitize_requests import expanded

FIXTURE = Path(__file__).resolve().parent.parent / "serve/data/claude_code_turn.json"


def scaled(value, share):
    if isinstance(value, dict):
        return {name: scaled(inner, share) for name, inner in value.items()}
    if isinstance(value, list):
        return [scaled(inner, share) for inner in value]
    found = re.fullmatch(r"~(\d+)", value) if isinstance(value, str) else None
    return f"~{round(int(found.group(1)) * share)}" if found else value


def post(url, body):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    return urllib.request.urlopen(request, timeout=3600)


def counted(url, body):
    body = {name: value for name, value in body.items() if name not in ("max_tokens", "stream", "metadata", "context_management")}
    with post(url + "/v1/messages/count_tokens", body) as reply:
        return json.load(reply)["input_tokens"]


def first_of(body):
    first = copy.deepcopy(body)
    is_answer = [message["role"] == "assistant" for message in first["messages"]]
    first["messages"] = first["messages"][:is_answer.index(True)]
    return first


def read_stream(url, body):
    """Prints what came when; the usage."""
    began = last = time.monotonic()
    longest, first_word, n_pings, usage = 0.0, None, 0, {}
    with post(url + "/v1/messages?beta=true", body) as reply:
        for line in reply:
            now = time.monotonic()
            longest, last = max(longest, now - last), now
            event = json.loads(line[6:]) if line.startswith(b"data: {") else {}
            n_pings += event.get("type") == "ping"
            if event.get("type") == "content_block_delta":
                first_word = first_word or now - began
            usage |= event.get("usage", event.get("message", {}).get("usage", {}))
    print(f"  longest silence {longest:.1f} s, {n_pings} pings, first word after {first_word or 0:.1f} s, "
          f"whole after {last - began:.1f} s\n  {usage}")
    return usage


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("--tokens", type=int)
    args = parser.parse_args()
    fixture = json.loads(FIXTURE.read_text())
    share = 1.0
    for _ in range(4 if args.tokens else 0):
        n = counted(args.url, expanded(scaled(first_of(fixture), share)))
        share *= args.tokens / n
    body = expanded(scaled(fixture, share)) | {"max_tokens": 16, "stream": True}
    for name, turn in (("first", first_of(body)), ("second", body)):
        print(f"{name} turn, {len(json.dumps(turn))} bytes, {counted(args.url, turn)} tokens")
        read_stream(args.url, turn)


if __name__ == "__main__":
    main()
