#!/usr/bin/env python3
"""Asks a server that this script starts as its users do: with the packages of OpenAI, Anthropic, Ollama and others,
unmodified, and against the description of OpenAI's API. Exit code 77 where what a part needs is absent: the test counts
as skipped.

usage: run_clients.py PART PROGRAM CLIENTS_FOLDER
PART: one of those in main()
"""
import base64
import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import anthropic_clients
import ollama_clients
import responses_clients

SKIPPED = 77
ROOT = Path(__file__).resolve().parent.parent.parent
MODEL = ROOT / "models/pocket/pocket-q8_0.gguf"
DESCRIPTION = ROOT / "../shared/data/openai/openapi.json"
PICTURE = ROOT / "tests/vision/goldens/smolvlm/image.png"
SAY = [{"role": "user", "content": "Tell me a story about a cat"}]


class Served:
    def __init__(self, program, *options):
        model = [] if "-m" in options else ["-m", str(MODEL)]
        command = [program, "serve", *model, "--port", "0", "--model-id", "pocket", "--log-level", "off", *options]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        line = self.process.stderr.readline()
        found = re.search(r"http://([\d.]+:\d+)", line)
        if not found:
            raise SystemExit(f"the server did not start: {line}")
        self.url = f"http://{found.group(1)}"
        self.is_told = False

    def tell_to_stop(self):
        self.is_told = True
        self.process.terminate()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if not self.is_told:
            self.process.terminate()
        code = self.process.wait(timeout=30)
        assert code == 0, f"SIGTERM: exit code {code}, expected 0"


def allow_nulls(schema):
    """`nullable: true`, which the description writes beside `type`, in the words of its own JSON Schema."""
    if isinstance(schema, dict):
        if schema.get("nullable") is True and isinstance(schema.get("type"), str):
            schema["type"] = [schema["type"], "null"]
            if "enum" in schema:
                schema["enum"] = [*schema["enum"], None]
        for inner in schema.values():
            allow_nulls(inner)
    elif isinstance(schema, list):
        for inner in schema:
            allow_nulls(inner)


class Contract:
    """Validation against the schemas of the description. Looser where it contradicts what the API does: usage may be null
    in chunks, an embedding may be base64, finish_reason may be null in chunks of a text completion (one schema describes
    them and the whole reply), and the first token of an echoed prompt has null for its logprobs."""

    def __init__(self, path):
        self.document = json.loads(path.read_text(encoding="utf-8"))
        allow_nulls(self.document["components"])
        schemas = self.document["components"]["schemas"]
        schemas["CreateChatCompletionStreamResponse"]["properties"].pop("usage", None)
        self.reason = schemas["CreateCompletionResponse"]["properties"]["choices"]["items"]["properties"]["finish_reason"]
        embedding = schemas["Embedding"]["properties"]
        embedding["embedding"] = {"anyOf": [embedding["embedding"], {"type": "string"}]}

    def check_text_chunk(self, chunk):
        strict = dict(self.reason)
        self.reason.clear()  # anything
        self.check_text(chunk)
        self.reason.update(strict)

    def check_text(self, reply):
        for choice in reply["choices"]:
            for name in ("token_logprobs", "top_logprobs"):
                numbers = (choice["logprobs"] or {}).get(name, [])
                assert None not in numbers[1:]
                numbers[:] = [number for number in numbers if number is not None]
        self.check("CreateCompletionResponse", reply)

    def check(self, name, value):
        import jsonschema
        schema = {"$ref": f"#/components/schemas/{name}", "components": self.document["components"]}
        errors = list(jsonschema.Draft202012Validator(schema).iter_errors(value))
        assert not errors, f"{name}: {errors[0].message[:300]} at {list(errors[0].absolute_path)}"


def post(url, body):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as reply:
        return reply.read().decode()


def chunks(text):
    return [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]


TOOL = {"type": "function", "function": {"name": "weather", "parameters": {
    "type": "object", "properties": {"place": {"type": "string", "enum": ["Rome", "Oslo"]}},
    "required": ["place"], "additionalProperties": False}}}


def check_description(program, _):
    if not DESCRIPTION.exists():
        return SKIPPED
    try:
        import jsonschema  # noqa: F401
    except ImportError:
        return SKIPPED
    contract = Contract(DESCRIPTION)
    chat = {"model": "pocket", "messages": SAY, "max_tokens": 12, "temperature": 0}
    text = {"model": "pocket", "prompt": ["Once", "The dog"], "max_tokens": 6, "logprobs": 2}
    stream = {"stream": True, "stream_options": {"include_usage": True}}
    tools = {"tools": [TOOL], "tool_choice": "required", "max_tokens": 200, "temperature": 0.7, "seed": 1}
    with Served(program) as served:
        url = served.url
        for extra in ({}, {"logprobs": True, "top_logprobs": 2}, {"n": 2, "temperature": 1}, {"stop": ["a"]}, tools):
            contract.check("CreateChatCompletionResponse", json.loads(post(url + "/v1/chat/completions", chat | extra)))
            for chunk in chunks(post(url + "/v1/chat/completions", chat | extra | stream)):
                contract.check("CreateChatCompletionStreamResponse", chunk)
        for extra in ({}, {"echo": True}, {"echo": True, "max_tokens": 0}, {"n": 2}, {"logprobs": None}):
            contract.check_text(json.loads(post(url + "/v1/completions", text | extra)))
            for chunk in chunks(post(url + "/v1/completions", text | extra | {"stream": True})):
                contract.check_text_chunk(chunk)
        for extra in ({}, {"encoding_format": "base64"}, {"dimensions": 4}):
            body = {"model": "pocket", "input": ["a", "b"]} | extra
            contract.check("CreateEmbeddingResponse", json.loads(post(url + "/v1/embeddings", body)))
        with urllib.request.urlopen(url + "/v1/models") as reply:
            contract.check("ListModelsResponse", json.loads(reply.read()))
        with urllib.request.urlopen(url + "/v1/models/pocket") as reply:
            contract.check("Model", json.loads(reply.read()))
    return 0


def until_stopped(ask):
    """A small model may fill a constraint's free places with spaces for ever: one seed after the other."""
    for seed in range(30):
        answer = ask(seed)
        if answer.choices[0].finish_reason != "length":
            return answer
    raise AssertionError("30 seeds, and no answer ended by itself")


def check_python(program, _):
    try:
        import openai
    except ImportError:
        return SKIPPED
    with Served(program) as served:
        client = openai.OpenAI(base_url=served.url + "/v1", api_key="none", max_retries=0)
        asked = {"model": "pocket", "messages": SAY, "max_tokens": 24, "temperature": 1, "seed": 5}
        chat(client, asked)
        structure(client, asked)
        scoring_and_embeddings(client)
        errors_and_abort(openai, client, asked)
    return 0


def chat(client, asked):
    plain = client.chat.completions.create(**asked)
    stream = client.chat.completions.create(stream=True, **asked)
    streamed = "".join(chunk.choices[0].delta.content or "" for chunk in stream)
    assert streamed == plain.choices[0].message.content, (streamed, plain)
    scored = client.chat.completions.create(logprobs=True, top_logprobs=2, **asked).choices[0].logprobs
    assert len(scored.content) == plain.usage.completion_tokens
    two = client.chat.completions.create(n=2, **asked)
    assert [choice.index for choice in two.choices] == [0, 1]
    assert two.choices[0].message.content == plain.choices[0].message.content
    assert [model.id for model in client.models.list()] == ["pocket"]
    assert client.models.retrieve("pocket").id == "pocket"


def structure(client, asked):
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"], "additionalProperties": False}
    wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema, "strict": True}}
    longer = asked | {"max_tokens": 80}
    formed = until_stopped(lambda seed: client.chat.completions.create(response_format=wanted, **(longer | {"seed": seed})))
    assert isinstance(json.loads(formed.choices[0].message.content)["ok"], bool)
    named = {"type": "function", "function": {"name": "weather"}}
    called = until_stopped(
        lambda seed: client.chat.completions.create(tools=[TOOL], tool_choice=named, **(longer | {"seed": seed})))
    call = called.choices[0].message.tool_calls[0]
    assert called.choices[0].finish_reason == "tool_calls" and call.function.name == "weather"
    assert json.loads(call.function.arguments)["place"] in ("Rome", "Oslo")
    again = [*SAY, called.choices[0].message.to_dict(), SAY[0]]  # the shipped model's template knows no role tool
    client.chat.completions.create(**(asked | {"messages": again}))


def scoring_and_embeddings(client):
    assert client.completions.create(model="pocket", prompt="Once", max_tokens=3).usage.completion_tokens <= 3
    scored = client.completions.create(model="pocket", prompt="Once upon a time", max_tokens=0, echo=True, logprobs=1)
    logprobs = scored.choices[0].logprobs
    assert scored.choices[0].text == "Once upon a time" and logprobs.token_logprobs[0] is None
    assert len(logprobs.token_logprobs) == scored.usage.prompt_tokens and max(logprobs.token_logprobs[1:]) < 0
    by_default = client.embeddings.create(model="pocket", input=["a cat", "a dog"])
    as_floats = client.embeddings.create(model="pocket", input=["a cat"], encoding_format="float")
    assert list(by_default.data[0].embedding) == list(as_floats.data[0].embedding)


def errors_and_abort(openai, client, asked):
    for error, change in ((openai.BadRequestError, {"temperature": 7}), (openai.NotFoundError, {"model": "other"})):
        try:
            client.chat.completions.create(**(asked | change))
            raise AssertionError(f"{change} was accepted")
        except error as seen:
            assert seen.body["message"] and seen.body["type"] == "invalid_request_error", seen.body
    abandoned = client.chat.completions.create(stream=True, **(asked | {"max_tokens": 400}))
    next(iter(abandoned))
    abandoned.close()


def batches(client):
    lines = [{"custom_id": f"c{i}", "method": "POST", "url": "/v1/completions",
              "body": {"prompt": f"Once {i}", "max_tokens": 5, "seed": i}} for i in range(8)]
    data = "".join(json.dumps(line) + "\n" for line in lines).encode()
    file = client.files.create(file=("in.jsonl", data), purpose="batch")
    assert client.files.content(file.id).read() == data
    batch = client.batches.create(input_file_id=file.id, endpoint="/v1/completions", completion_window="24h")
    while batch.status not in ("completed", "failed"):
        time.sleep(0.05)
        batch = client.batches.retrieve(batch.id)
    assert batch.status == "completed" and batch.request_counts.completed == 8, batch
    answers = {answer["custom_id"]: answer["response"]["body"]["choices"][0]["text"]
               for answer in map(json.loads, client.files.content(batch.output_file_id).text.splitlines())}
    for line in lines:
        alone = client.completions.create(model="pocket", **line["body"])
        assert answers[line["custom_id"]] == alone.choices[0].text, line
    assert [one.id for one in client.batches.list()] == [batch.id]
    assert client.files.delete(file.id).deleted
    return 0


def check_batches(program, _):
    try:
        import openai
    except ImportError:
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder, Served(program, "--batch-dir", folder) as served:
        return batches(openai.OpenAI(base_url=served.url + "/v1", api_key="none", max_retries=0))


def check_langchain(program, _):
    try:
        from langchain_openai import ChatOpenAI
    except ImportError:
        return SKIPPED
    with Served(program) as served:
        model = ChatOpenAI(base_url=served.url + "/v1", api_key="none", model="pocket", max_tokens=24, temperature=1, seed=5,
                           max_retries=0)
        question = SAY[0]["content"]
        plain = model.invoke(question)
        assert "".join(chunk.content for chunk in model.stream(question)) == plain.content
        assert plain.usage_metadata["output_tokens"] <= 24
        function = TOOL["function"]
        for seed in range(30):
            with_tool = ChatOpenAI(base_url=served.url + "/v1", api_key="none", model="pocket", max_tokens=80, seed=seed)
            called = with_tool.bind_tools([TOOL], tool_choice=function["name"]).invoke(question)
            if called.tool_calls:
                break
        assert called.tool_calls[0]["args"]["place"] in ("Rome", "Oslo")
        try:
            model.invoke(question, model="other")
            raise AssertionError("another model was accepted")
        except Exception as error:
            assert getattr(error, "status_code", None) == 404, error
    return 0


def check_lm_eval(program, _):
    import importlib.util
    if importlib.util.find_spec("lm_eval") is None:
        return SKIPPED
    sys.path.insert(0, str(Path(__file__).parent))
    import lm_eval_client
    with Served(program) as served:
        lm_eval_client.evaluate(served.url)
    return 0


def as_anthropic(message):
    """A message without what differs between two runs (its id, those of its calls, what came from the cache) and without
    our warnings, which an SDK does not take over from a stream's last event."""
    fields = message.model_dump(exclude={"id", "warnings"})
    for block in fields["content"]:
        block.pop("id", None)
    usage = fields["usage"]
    usage["input_tokens"] += usage.pop("cache_read_input_tokens")
    return fields


def check_anthropic(program, _):
    try:
        import anthropic
    except ImportError:
        return SKIPPED
    with Served(program) as served:
        client = anthropic.Anthropic(base_url=served.url, api_key="none", max_retries=0)
        function = TOOL["function"]
        tool = {"name": "weather", "description": "Outside", "input_schema": function["parameters"]}
        asked = {"model": "pocket", "messages": SAY, "max_tokens": 24, "extra_body": {"seed": 5}}
        for more in ({}, {"stop_sequences": ["a"]}, {"system": [{"type": "text", "text": "Be kind"}]},
                     {"tools": [tool], "tool_choice": {"type": "tool", "name": "weather"}, "max_tokens": 100}):
            plain = client.messages.create(**(asked | more))
            with client.messages.stream(**(asked | more)) as stream:
                streamed = stream.get_final_message()
            assert as_anthropic(plain) == as_anthropic(streamed), (plain, streamed)
            countable = {name: value for name, value in (asked | more).items()
                         if name not in ("max_tokens", "stop_sequences", "extra_body")}
            n_tokens = client.messages.count_tokens(**countable).input_tokens
            assert n_tokens == plain.usage.input_tokens + plain.usage.cache_read_input_tokens
        for seed in range(30):
            call = client.messages.create(**(asked | more | {"extra_body": {"seed": seed}}))
            if call.stop_reason == "tool_use":
                break
        assert call.content[0].input["place"] in ("Rome", "Oslo"), call
        assert [model.id for model in client.models.list()] == ["pocket"]
        for error, change in ((anthropic.BadRequestError, {"max_tokens": 0}), (anthropic.NotFoundError, {"model": "other"}),
                              (anthropic.BadRequestError, {"messages": [{"role": "user", "content": "word " * 2000}]})):
            try:
                client.messages.create(**(asked | change))
                raise AssertionError(f"{change} was accepted")
            except error as seen:
                assert seen.body["error"]["message"] and seen.request_id, seen.body
                last = seen.message
        assert re.search(r"prompt is too long: \d+ tokens > 512 maximum", last), last
    return 0


def ask_with_image(url):
    import openai
    client = openai.OpenAI(base_url=url + "/v1", api_key="none", max_retries=0)
    picture = "data:image/png;base64," + base64.b64encode(PICTURE.read_bytes()).decode()
    parts = [{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": picture}}]
    asked = {"model": "pocket", "messages": [{"role": "user", "content": parts}], "max_tokens": 8, "temperature": 0}
    plain = client.chat.completions.create(**asked)
    assert plain.usage.prompt_tokens_details.image_tokens > 0, plain.usage
    streamed = client.chat.completions.create(stream=True, **asked)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in streamed) == plain.choices[0].message.content
    shown = [{"type": "input_text", "text": "What is this?"}, {"type": "input_image", "image_url": picture}]
    response = client.responses.create(model="pocket", input=[{"role": "user", "content": shown}], max_output_tokens=8,
                                       temperature=0)
    assert response.output_text == plain.choices[0].message.content, (response, plain)
    parts[1]["image_url"]["url"] = "https://example.org/a.png"
    try:
        client.chat.completions.create(**asked)
        raise AssertionError("an address was accepted")
    except openai.BadRequestError as error:
        assert "messages[0].content[1].image_url.url" in error.body["message"], error.body


def check_images(module, ask):
    def check(program, clients):
        model = clients.parent / "tests/vision_goldens/smolvlm"
        try:
            importlib.import_module(module)
        except ImportError:
            return SKIPPED
        if not model.exists():
            return SKIPPED
        with Served(program, "-m", str(model)) as served:
            ask(served.url)
        return 0
    return check


def check_node_images(program, clients):
    model = clients.parent / "tests/vision_goldens/smolvlm"
    if not (clients / "node_modules/openai").exists() or not model.exists():
        return SKIPPED
    with Served(program, "-m", str(model)) as served:
        command = ["node", Path(__file__).with_name("node_client.cjs"), served.url, clients, "openai", PICTURE]
        return subprocess.run(command, timeout=240).returncode


def asked_by(module, ask):
    def check(program, _):
        try:
            importlib.import_module(module)
        except ImportError:
            return SKIPPED
        with Served(program) as served:
            ask(served.url)
        return 0
    return check


def check_node(package, script="node_client.cjs"):
    def check(program, clients):
        if not (clients / "node_modules" / package).exists():
            return SKIPPED
        with Served(program) as served:
            command = ["node", Path(__file__).with_name(script), served.url, clients, package]
            return subprocess.run(command, timeout=240).returncode
    return check


def served_to(check):
    return lambda program, _: check(lambda: Served(program))


def check_shutdown(program, _):
    """SIGTERM while a long reply streams: it ends by itself within the drain time, or is told that it cannot."""
    for options, last in ((("--drain-seconds", "30"), "[DONE]"), (("--drain-seconds", "0"), "shutting down")):
        with Served(program, *options) as served:
            body = {"messages": SAY, "max_tokens": 400, "n": 32, "stream": True, "ignore_eos": True}
            request = urllib.request.Request(served.url + "/v1/chat/completions", json.dumps(body).encode())
            with urllib.request.urlopen(request) as reply:
                reply.readline()
                served.tell_to_stop()
                assert last in reply.read().decode(), f"the stream did not end with {last}"
    return 0


def main():
    part, program, clients = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    python = clients / "python/bin/python"
    if python.exists() and Path(sys.prefix).resolve() != (clients / "python").resolve():
        os.execv(python, [str(python), *sys.argv])
    parts = {"description": check_description, "python": check_python, "batches": check_batches, "responses": served_to(responses_clients.check_responses),
             "agents": served_to(responses_clients.check_agents), "node_6": check_node("openai"),
             "node_5": check_node("openai-5"), "node_4": check_node("openai-4"), "ai_6": check_node("ai", "ai_client.cjs"),
             "langchain": check_langchain, "lm_eval": check_lm_eval, "anthropic": check_anthropic,
             "langchain_anthropic": asked_by("langchain_anthropic", anthropic_clients.ask_with_langchain),
             "shutdown": check_shutdown,
             "images_python": check_images("openai", ask_with_image),
             "images_anthropic": check_images("anthropic", lambda url: anthropic_clients.ask_with_image(url, PICTURE)),
             "images_ollama": check_images("ollama", lambda url: ollama_clients.ask_with_image(url, PICTURE)),
             "images_node": check_node_images,
             "ollama": asked_by("ollama", ollama_clients.ask_with_ollama),
             "langchain_ollama": asked_by("langchain_ollama", ollama_clients.ask_with_langchain)}
    return parts[part](program, clients)


if __name__ == "__main__":
    sys.exit(main())
