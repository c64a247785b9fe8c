"""Asks a running server with Anthropic's own package, and LangChain's for Anthropic, both unmodified."""
import base64

WEATHER = {"name": "weather", "description": "Outside", "input_schema": {
    "type": "object", "properties": {"place": {"enum": ["Rome", "Oslo"]}}, "required": ["place"],
    "additionalProperties": False}}


def ask_with_langchain(url):
    import anthropic
    from langchain_anthropic import ChatAnthropic
    asked = {"base_url": url, "api_key": "none", "model": "pocket", "max_tokens": 24, "max_retries": 0,
             "model_kwargs": {"extra_body": {"seed": 5}}}
    model = ChatAnthropic(**asked)
    plain = model.invoke("Tell me a story")
    assert plain.content and 0 < plain.usage_metadata["output_tokens"] <= 24, plain
    assert plain.response_metadata["stop_reason"] in ("end_turn", "max_tokens"), plain
    assert "".join(chunk.text for chunk in model.stream("Tell me a story")) == plain.text
    told = model.invoke([("system", "Be kind"), ("user", "Tell me a story")])
    assert told.usage_metadata["input_tokens"] > plain.usage_metadata["input_tokens"]
    forced = ChatAnthropic(**asked | {"max_tokens": 200}).bind_tools([WEATHER], tool_choice="weather")
    call = forced.invoke("What is the weather?").tool_calls[0]
    assert call["name"] == "weather" and call["args"]["place"] in ("Rome", "Oslo"), call
    assert model.get_num_tokens_from_messages(told_messages()) > 0
    for error, wrong in ((anthropic.NotFoundError, {"model": "other"}), (anthropic.BadRequestError, {"temperature": -1})):
        try:
            ChatAnthropic(**asked | wrong).invoke("hi")
            raise AssertionError("it was accepted")
        except error:
            pass


def told_messages():
    from langchain_core.messages import HumanMessage
    return [HumanMessage("Tell me a story")]


def ask_with_image(url, picture):
    """Of the user, and as the result of a tool, as Claude Code sends screenshots."""
    import anthropic
    client = anthropic.Anthropic(base_url=url, api_key="none", max_retries=0)
    data = base64.b64encode(picture.read_bytes()).decode()
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
    text = {"type": "text", "text": "What is this?"}
    asked = {"model": "pocket", "max_tokens": 8, "extra_body": {"temperature": 0}}
    plain = client.messages.create(messages=[{"role": "user", "content": [image, text]}], **asked)
    bare = client.messages.create(messages=[{"role": "user", "content": [text]}], **asked)
    read = [message.usage.input_tokens + message.usage.cache_read_input_tokens for message in (plain, bare)]
    assert read[0] > read[1] + 10, read
    call = {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "weather", "input": {}}]}
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": [text, image]}]}
    shown = client.messages.create(messages=[{"role": "user", "content": "Look"}, call, result], tools=[WEATHER], **asked)
    assert shown.usage.output_tokens > 0, shown
