"""Asks a running server with Ollama's own package, and LangChain's for Ollama, both unmodified."""
import json
import urllib.request

SAY = [{"role": "user", "content": "Tell me a story about a cat"}]
OPTIONS = {"num_predict": 24, "seed": 5, "temperature": 1.0}
SCHEMA = {"type": "object", "properties": {"ok": {"enum": [True, False]}}, "required": ["ok"], "additionalProperties": False}


def tell_weather(place: str) -> str:
    """Tells the weather of a place.

    Args:
      place: the name of the place
    """
    return place


def ask_with_ollama(url):
    import ollama
    client = ollama.Client(host=url)
    whole = client.chat(model="pocket", messages=SAY, options=OPTIONS)
    parts = list(client.chat(model="pocket", messages=SAY, options=OPTIONS, stream=True))
    assert "".join(part.message.content or "" for part in parts) == whole.message.content
    assert [part.done for part in parts] == [False] * (len(parts) - 1) + [True]
    assert parts[-1].done_reason == whole.done_reason and parts[-1].eval_count == whole.eval_count <= 24
    assert whole.total_duration > 0 and whole.message.role == "assistant"
    same_as_openai(url, whole.message.content)
    text = client.generate(model="pocket", prompt="Once", options=OPTIONS)
    streamed = client.generate(model="pocket", prompt="Once", options=OPTIONS, stream=True)
    assert "".join(part.response for part in streamed) == text.response
    assert client.generate(model="pocket", prompt="More", context=text.context, options=OPTIONS).prompt_eval_count > len(text.context)
    formed = client.chat(model="pocket", messages=SAY, format=SCHEMA, options=OPTIONS | {"num_predict": 80})
    assert formed.done_reason == "length" or isinstance(json.loads(formed.message.content)["ok"], bool)
    client.chat(model="pocket", messages=SAY, tools=[tell_weather], options=OPTIONS)
    called = {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "tell_weather", "arguments": {"place": "Rome"}}}]}
    client.chat(model="pocket", messages=[*SAY, called, SAY[0]], options=OPTIONS)
    scored = client.chat(model="pocket", messages=SAY, options=OPTIONS, logprobs=True, top_logprobs=2)
    assert len(scored.logprobs) == scored.eval_count and len(scored.logprobs[0].top_logprobs) == 2
    models_and_vectors(ollama, client)


def same_as_openai(url, text):
    body = {"messages": SAY, "max_tokens": 24, "seed": 5, "temperature": 1, "top_k": 40, "top_p": 0.9, "repeat_last_n": 64}
    request = urllib.request.Request(url + "/v1/chat/completions", json.dumps(body).encode())
    with urllib.request.urlopen(request) as reply:
        assert json.load(reply)["choices"][0]["message"]["content"] == text


def models_and_vectors(ollama, client):
    vectors = client.embed(model="pocket", input=["a cat", "a dog"]).embeddings
    assert len(vectors) == 2 and list(client.embeddings(model="pocket", prompt="a cat").embedding) == list(vectors[0])
    assert [model.model for model in client.list().models] == ["pocket:latest"]
    assert client.ps().models[0].model == "pocket:latest"
    assert "completion" in client.show("pocket").capabilities
    assert [step.status for step in client.pull("pocket", stream=True)][-1] == "success"
    assert client.generate(model="pocket", prompt="", keep_alive=0).done_reason == "unload"
    for status, refused in ((404, lambda: client.chat(model="other", messages=SAY)), (400, lambda: client.pull("other")),
                            (400, lambda: client.delete("pocket")), (400, lambda: client.copy("pocket", "b")),
                            (400, lambda: client.chat(model="pocket", messages=SAY, options={"temperature": -1})),
                            (400, lambda: list(client.chat(model="pocket", messages=SAY, think=True, stream=True)))):
        try:
            refused()
            raise AssertionError("it was accepted")
        except ollama.ResponseError as error:
            assert error.status_code == status and error.error, error


def ask_with_langchain(url):
    from langchain_ollama import ChatOllama, OllamaEmbeddings, OllamaLLM
    asked = {"base_url": url, "model": "pocket", "num_predict": 24, "seed": 5}
    model = ChatOllama(validate_model_on_init=True, **asked)
    plain = model.invoke("Tell me a story")
    assert plain.content and plain.usage_metadata["output_tokens"] <= 24, plain
    assert "".join(chunk.content for chunk in model.stream("Tell me a story")) == plain.content
    assert plain.response_metadata["done_reason"] in ("stop", "length")
    model.bind_tools([tell_weather]).invoke("Tell me a story")
    assert ChatOllama(format="json", **asked).invoke("Tell me a story").content.startswith("{")
    assert OllamaLLM(**asked).invoke("Once upon a time")
    vectors = OllamaEmbeddings(base_url=url, model="pocket").embed_documents(["a cat", "a dog"])
    assert len(vectors) == 2 and len(vectors[0]) == len(vectors[1]) > 0
    try:
        ChatOllama(base_url=url, model="other").invoke("hi")
        raise AssertionError("another model was accepted")
    except Exception as error:
        assert getattr(error, "status_code", None) == 404, error


def ask_with_image(url, picture):
    import ollama
    client = ollama.Client(host=url)
    options = {"num_predict": 8, "temperature": 0}
    asked = {"role": "user", "content": "What is this?", "images": [str(picture)]}
    whole = client.chat(model="pocket", messages=[asked], options=options)
    bare = client.chat(model="pocket", messages=[asked | {"images": []}], options=options)
    assert whole.prompt_eval_count > bare.prompt_eval_count + 10, (whole, bare)
    text = client.generate(model="pocket", prompt="What is this?", images=[picture.read_bytes()], options=options)
    assert text.response == whole.message.content, (text, whole)
    assert "vision" in client.show("pocket").capabilities
