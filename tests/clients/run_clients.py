#!/usr/bin/env python3
"""Asks a server that this script starts with the openai package, unmodified, and validates replies and chunks against the
OpenAI API's own description. Exit code 77 where a package or the description is absent: the test counts as skipped.

usage: run_clients.py PROGRAM MODEL OPENAPI_JSON
"""
import json
import os
import re
import subprocess
import sys
import urllib.request

SKIPPED = 77
SAY = [{"role": "user", "content": "Tell me a story about a cat"}]


class Served:
    def __init__(self, program, model):
        command = [program, "serve", "-m", model, "--port", "0", "--model-id", "pocket", "--log-level", "off"]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        line = self.process.stderr.readline()
        found = re.search(r"http://([\d.]+:\d+)", line)
        if not found:
            raise SystemExit(f"the server did not start: {line}")
        self.url = f"http://{found.group(1)}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        code = self.process.wait(timeout=30)
        assert code == 0, f"SIGTERM: exit code {code}, expected 0"


class Contract:
    """Validation against one schema of the description. Looser in one place: usage may be null in chunks."""

    def __init__(self, path):
        self.document = json.load(open(path, encoding="utf-8"))
        chunk = self.document["components"]["schemas"].get("CreateChatCompletionStreamResponse", {})
        chunk.get("properties", {}).pop("usage", None)

    def check(self, name, value):
        import jsonschema
        schema = {"$ref": f"#/components/schemas/{name}", "components": self.document["components"]}
        errors = list(jsonschema.Draft202012Validator(schema).iter_errors(value))
        assert not errors, f"{name}: {errors[0].message} at {list(errors[0].absolute_path)}"


def post(url, body):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as reply:
        return reply.read().decode()


def chunks(text):
    return [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]


def replies_follow_the_description(url, contract):
    chat = {"model": "pocket", "messages": SAY, "max_tokens": 12, "temperature": 0}
    text = {"model": "pocket", "prompt": ["Once", "The dog"], "max_tokens": 6, "logprobs": 2}
    for extra in ({}, {"logprobs": True, "top_logprobs": 2}, {"n": 2, "temperature": 1}):
        contract.check("CreateChatCompletionResponse", json.loads(post(url + "/v1/chat/completions", chat | extra)))
        stream = {"stream": True, "stream_options": {"include_usage": True}}
        for chunk in chunks(post(url + "/v1/chat/completions", chat | extra | stream)):
            contract.check("CreateChatCompletionStreamResponse", chunk)
    contract.check("CreateCompletionResponse", json.loads(post(url + "/v1/completions", text)))
    for chunk in chunks(post(url + "/v1/completions", text | {"stream": True, "prompt": "Once"})):
        contract.check("CreateCompletionResponse", chunk)
    with urllib.request.urlopen(url + "/v1/models") as reply:
        contract.check("ListModelsResponse", json.loads(reply.read()))


def the_package_works_unmodified(url):
    import openai
    client = openai.OpenAI(base_url=url + "/v1", api_key="none", max_retries=0)
    asked = {"model": "pocket", "messages": SAY, "max_tokens": 24, "temperature": 1, "seed": 5}
    plain = client.chat.completions.create(**asked)
    stream = client.chat.completions.create(stream=True, **asked)
    streamed = "".join(chunk.choices[0].delta.content or "" for chunk in stream)
    assert streamed == plain.choices[0].message.content, (streamed, plain)
    scored = client.chat.completions.create(logprobs=True, top_logprobs=2, **asked).choices[0].logprobs
    assert len(scored.content) == plain.usage.completion_tokens
    two = client.chat.completions.create(n=2, **asked)
    assert [choice.index for choice in two.choices] == [0, 1]
    assert two.choices[0].message.content == plain.choices[0].message.content
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"], "additionalProperties": False}
    wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema, "strict": True}}
    for seed in range(30):  # a small model may fill the free places with spaces for ever
        formed = client.chat.completions.create(response_format=wanted, **(asked | {"max_tokens": 80, "seed": seed}))
        if formed.choices[0].finish_reason == "stop":
            break
    assert isinstance(json.loads(formed.choices[0].message.content)["ok"], bool)
    assert client.completions.create(model="pocket", prompt="Once", max_tokens=3).usage.completion_tokens <= 3
    assert [model.id for model in client.models.list()] == ["pocket"]
    for error, change in ((openai.BadRequestError, {"temperature": 7}), (openai.NotFoundError, {"model": "other"})):
        try:
            client.chat.completions.create(**(asked | change))
            raise AssertionError(f"{change} was accepted")
        except error as seen:
            assert seen.body["message"] and seen.body["type"] == "invalid_request_error", seen.body
    abandoned = client.chat.completions.create(stream=True, **(asked | {"max_tokens": 400}))
    next(iter(abandoned))
    abandoned.close()


def main():
    program, model, description = sys.argv[1:]
    ran = 0
    with Served(program, model) as served:
        try:
            import jsonschema  # noqa: F401
            if os.path.exists(description):
                replies_follow_the_description(served.url, Contract(description))
                ran += 1
        except ImportError:
            print("skipped: jsonschema is absent")
        try:
            import openai  # noqa: F401
            the_package_works_unmodified(served.url)
            ran += 1
        except ImportError:
            print("skipped: the openai package is absent")
    print(f"{ran} of 2 parts ran")
    return 0 if ran == 2 else SKIPPED


if __name__ == "__main__":
    sys.exit(main())
