#!/usr/bin/env python3
"""Runs Codex or Claude Code from npm, unmodified, against the server: a question, a call of a tool, its result, an answer.
By hand, since both are large; what they sent is kept, so that tests replay it (`sanitize_requests.py`).

    npm install --prefix /tmp/agents @openai/codex@0.169.0 @anthropic-ai/claude-code@2.1.197
    node /tmp/agents/node_modules/@anthropic-ai/claude-code/install.cjs
    unshare -rn python3 tests/clients/run_agents.py codex build/candor /tmp/agents /tmp/agents/codex
    unshare -rn python3 tests/clients/run_agents.py claude build/candor /tmp/agents /tmp/agents/claude

`unshare -rn` leaves them a network that has nothing but loopback; their HOME is a folder of its own. The model is the
shipped one with a template that knows tools. It is too small to call one by itself, and may end its answer at once: a
proxy between client and server narrows the tool's schema to the one call that is wanted, asks for it in the first turn
(tool_choice), and asks for at least LEAST_TOKENS in the others. All else passes as it came, streamed.
"""
import argparse
import fcntl
import http.client
import http.server
import json
import os
import re
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from changed_model import write_changed

ROOT = Path(__file__).resolve().parent.parent.parent
CONTENT = "Forty-two hens live in the red barn."
CONTEXT = 65536
LEAST_TOKENS = 16
TEMPLATE = """{%- if tools %}{{- '<|im_start|>system\\n' }}{%- if messages[0].role == 'system' %}{{- messages[0].content + '\\n\\n' }}{%- endif %}
{{- 'Tools:\\n' }}{%- for tool in tools %}{{- tool | tojson }}{{- '\\n' }}{%- endfor %}
{{- 'A call:\\n<tool_call>\\n{"name": NAME, "arguments": OBJECT}\\n</tool_call><|im_end|>\\n' }}
{%- elif messages[0].role == 'system' %}{{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}{%- endif %}
{%- for message in messages %}
{%- if message.role == 'user' or (message.role == 'system' and not loop.first) %}
{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
{%- elif message.role == 'assistant' %}
{{- '<|im_start|>assistant\\n' + message.content }}
{%- for call in message.tool_calls or [] %}
{{- '\\n<tool_call>\\n{"name": "' + call.function.name + '", "arguments": ' }}{{- call.function.arguments | tojson }}{{- '}\\n</tool_call>' }}
{%- endfor %}{{- '<|im_end|>\\n' }}
{%- elif message.role == 'tool' %}
{{- '<|im_start|>user\\n<tool_response>\\n' + message.content + '\\n</tool_response><|im_end|>\\n' }}
{%- endif %}{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"""


def only(name, value):
    return {"type": "object", "properties": {name: {"type": "string", "enum": [value]}}, "required": [name],
            "additionalProperties": False}


class Codex:
    name = "codex"
    tool = "exec_command"

    def __init__(self, project):
        self.schema = only("cmd", f"cat {project}/a.txt")

    choice = {"type": "function", "name": tool}

    def narrow(self, body):
        for tool in body["tools"]:
            if tool.get("name") == self.tool:
                tool["parameters"] = self.schema

    def is_first(self, body):
        return not any(item.get("type") == "function_call_output" for item in body["input"])

    def results(self, body):
        return [json.dumps(item["output"]) for item in body["input"] if item.get("type") == "function_call_output"]

    def command(self, agents, url, home, project):
        config = home / ".codex"
        config.mkdir()
        (config / "config.toml").write_text(
            f'model = "pocket"\nmodel_provider = "candor"\nmodel_context_window = {CONTEXT}\n'
            f'[model_providers.candor]\nname = "Candor"\nbase_url = "{url}/v1"\nwire_api = "responses"\n')
        return [agents / "node_modules/.bin/codex", "exec", "--skip-git-repo-check", "--sandbox", "danger-full-access", "-C", project,
                "What does a.txt say?"], {}


class Claude:
    name = "claude"
    tool = "Read"

    def __init__(self, project):
        self.schema = only("file_path", f"{project}/a.txt")

    choice = {"type": "tool", "name": tool}

    def narrow(self, body):
        for tool in body.get("tools", []):
            if tool["name"] == self.tool:
                tool["input_schema"] = self.schema

    def is_first(self, body):
        return any(tool["name"] == self.tool for tool in body.get("tools", [])) and not self.results(body)

    def results(self, body):
        blocks = [block for message in body["messages"] if isinstance(message["content"], list) for block in message["content"]]
        return [json.dumps(block["content"]) for block in blocks if block["type"] == "tool_result"]

    def command(self, agents, url, home, project):
        given = {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "none", "ANTHROPIC_MODEL": "pocket",
                 "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1", "DISABLE_TELEMETRY": "1"}
        return [agents / "node_modules/.bin/claude", "-p", "What does a.txt say?"], given


class Proxy(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, server_url, agent, folder):
        super().__init__(("127.0.0.1", 0), Passing)
        self.address = server_url.removeprefix("http://")
        self.agent, self.folder = agent, folder
        self.bodies, self.replies, self.seen = [], [], []
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Passing(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = self.changed(body) if self.command == "POST" else body
        began = time.monotonic()
        server = http.client.HTTPConnection(self.server.address)
        headers = {name: value for name, value in self.headers.items()
                   if name.lower() not in ("host", "content-length", "connection", "accept-encoding")}
        server.request(self.command, self.path, body or None, headers)
        reply = server.getresponse()
        self.send_response(reply.status)
        for name, value in reply.getheaders():
            if name.lower() not in ("transfer-encoding", "content-length", "connection"):
                self.send_header(name, value)
        self.send_header("Connection", "close")
        self.end_headers()
        text, gap, last = b"", 0.0, began
        while part := reply.read1(65536):
            gap, last = max(gap, time.monotonic() - last), time.monotonic()
            text += part
            self.wfile.write(part)
            self.wfile.flush()
        self.close_connection = True
        self.server.seen.append(f"{self.command} {self.path} {reply.status}, {len(text)} bytes in {last - began:.1f} s, "
                                f"longest silence {gap:.1f} s, warnings {reply.getheader('x-candor-warnings')}")
        self.server.replies.append(text.decode())

    do_GET = do_POST = do_HEAD = answer

    def changed(self, raw):
        body = json.loads(raw)
        n = len(self.server.bodies)
        self.server.bodies.append(json.loads(raw))
        (self.server.folder / f"request-{n}.json").write_bytes(raw)
        (self.server.folder / f"request-{n}.headers").write_text(f"{self.command} {self.path}\n{self.headers}")
        agent = self.server.agent
        agent.narrow(body)
        if "_tokens" in self.path:
            return json.dumps(body).encode()
        if agent.is_first(body):
            body["tool_choice"] = agent.choice
        else:
            body["min_tokens"] = LEAST_TOKENS
        return json.dumps(body).encode()


def open_loopback():
    """In a network of its own the loopback device is down at first."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as device:
        request = struct.pack("16sH14s", b"lo", 0x1 | 0x40, b"")  # IFF_UP, IFF_RUNNING
        try:
            fcntl.ioctl(device, 0x8914, request)  # SIOCSIFFLAGS
        except PermissionError:
            pass


def told_text(reply):
    """The text that a stream gave."""
    deltas = []
    for line in reply.splitlines():
        event = json.loads(line[6:]) if line.startswith("data: {") else {}
        if event.get("type") == "response.output_text.delta":
            deltas.append(event["delta"])
        elif event.get("type") == "content_block_delta" and event["delta"]["type"] == "text_delta":
            deltas.append(event["delta"]["text"])
    return "".join(deltas)


def check(agent, proxy, shown):
    results = [result for body in proxy.bodies if "input" in body or "messages" in body for result in agent.results(body)]
    assert any(CONTENT in result for result in results), f"the tool's result never came back: {results}"
    answer = told_text(proxy.replies[-1]).strip()
    assert answer, "the last reply has no text"
    words = " ".join(answer.split())
    assert words in " ".join(shown.split()), f"the client does not show the answer: {answer!r}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("agent", choices=["codex", "claude"])
    parser.add_argument("program")
    parser.add_argument("agents", type=Path, help="the folder with node_modules")
    parser.add_argument("folder", type=Path, help="where the requests are written")
    args = parser.parse_args()
    open_loopback()
    args.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        home, project = Path(scratch) / "home", Path(scratch) / "project"
        home.mkdir()
        project.mkdir()
        (project / "a.txt").write_text(CONTENT + "\n")
        model = Path(scratch) / "model.gguf"
        write_changed(ROOT / "models/pocket/pocket-q8_0.gguf",
                      {"llama.context_length": CONTEXT, "tokenizer.chat_template": TEMPLATE}, model)
        served = subprocess.Popen([args.program, "serve", "-m", model, "--port", "0", "--model-id", "pocket"],
                                  stderr=subprocess.PIPE, text=True)
        found = None
        while not found:
            found = re.search(r"http://[\d.]+:\d+", served.stderr.readline())
        log = []
        threading.Thread(target=lambda: log.extend(served.stderr), daemon=True).start()
        agent = (Codex if args.agent == "codex" else Claude)(project)
        proxy = Proxy(found.group(0), agent, args.folder)
        command, given = agent.command(args.agents.resolve(), proxy.url, home, project)
        environment = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8", "NO_COLOR": "1", **given}
        shown = subprocess.run(command, env=environment, cwd=project, stdin=subprocess.DEVNULL, text=True, timeout=900,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        served.terminate()
        served.wait()
        print(*proxy.seen, sep="\n")
        print("".join(log))
        print(f"--- {agent.name} ends with {shown.returncode} and shows:\n{shown.stdout}")
        check(agent, proxy, shown.stdout)
        assert shown.returncode == 0
        print("--- through a call of a tool and back")
    return 0


if __name__ == "__main__":
    sys.exit(main())
