#!/usr/bin/env python3
"""Makes a fixture of what an agent sent (run_agents.py keeps it): the form of every member, names of tools and of their
parameters, and of each text its length alone, as "~1234", which `expanded()` fills with words of our own.

    python3 tests/clients/sanitize_requests.py /tmp/agents/claude/request-1.json > tests/serve/data/claude_code_turn.json
"""
import json
import re
import sys
from pathlib import Path

IDS = {"id", "call_id", "tool_use_id"}
KEPT = {"type", "name", "role", "status", "effort", "tool_choice", "required", "enum", "format",
        "$schema", "propertyNames", "include", "summary", "const", "pattern", "namespace", "verbosity"}
WORDS = "the a of and file line when then which tool call read write path name note each other before after number place".split()


def sanitized(value, ids, key=""):
    """ids: those that were met, in order."""
    if isinstance(value, dict):
        return {name: sanitized(inner, ids, key if key == "enum" else name) for name, inner in value.items()}
    if isinstance(value, list):
        return [sanitized(inner, ids, key) for inner in value]
    if not isinstance(value, str):
        return value
    if value.startswith("x-anthropic-billing-header:"):
        return "x-anthropic-billing-header: cc_version=0.0.0.000; cc_entrypoint=sdk-cli;"
    if key in IDS:
        ids.setdefault(value, f"{value.split('_')[0]}_{len(ids) + 1}")
        return ids[value]
    if key in KEPT:
        return value
    if key == "model":
        return "pocket"
    if key == "arguments":
        return json.dumps(sanitized(json.loads(value), ids))
    return f"~{len(value)}"


def words_of(n_bytes, seed):
    words = []
    n = 0
    while n <= n_bytes:
        seed = (seed * 1103515245 + 12345) % 2**31
        words.append(WORDS[(seed >> 8) % len(WORDS)])
        n += len(words[-1]) + 1
    return " ".join(words)[:n_bytes]


def expanded(value, counter=None):
    """The fixture with texts of the lengths that it names."""
    counter = counter if counter is not None else [0]
    if isinstance(value, dict):
        return {name: expanded(inner, counter) for name, inner in value.items()}
    if isinstance(value, list):
        return [expanded(inner, counter) for inner in value]
    found = re.fullmatch(r"~(\d+)", value) if isinstance(value, str) else None
    if not found:
        return value
    counter[0] += 1
    return words_of(int(found.group(1)), counter[0])


if __name__ == "__main__":
    print(json.dumps(sanitized(json.loads(Path(sys.argv[1]).read_text()), {}), indent=1, ensure_ascii=True))
