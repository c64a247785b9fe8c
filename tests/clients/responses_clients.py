"""/v1/responses as its users ask it: OpenAI's package and its agents, unmodified, and the facts of Open Responses."""
import asyncio
import json
from pathlib import Path

SKIPPED = 77
FACTS = Path(__file__).resolve().parent.parent / "serve/data/open_responses.json"
STORY = "Tell me a story about a cat"
ASKED = {"model": "pocket", "max_output_tokens": 200, "temperature": 1, "extra_body": {"seed": 5, "stop": ["."]}}
PLACE = {"type": "object", "properties": {"place": {"type": "string", "enum": ["Rome", "Oslo"]}},
         "required": ["place"], "additionalProperties": False}
TOOL = {"type": "function", "name": "weather", "description": "Tells the weather", "parameters": PLACE, "strict": True}


class Facts:
    def __init__(self):
        self.document = json.loads(FACTS.read_text(encoding="utf-8"))

    def check(self, name, value):
        import jsonschema
        schema = {"$ref": f"#/$defs/{name}", "$defs": self.document["$defs"]}
        errors = list(jsonschema.Draft202012Validator(schema).iter_errors(value))
        assert not errors, f"{name}: {errors[0].message[:300]} at {list(errors[0].absolute_path)}"


def comparable(response):
    """Without what differs between two replies of the same tokens."""
    def clean(value):
        if isinstance(value, dict):
            return {key: clean(inner) for key, inner in value.items() if key not in ("id", "call_id")}
        return [clean(inner) for inner in value] if isinstance(value, list) else value
    kept = clean(response.to_dict())
    for name in ("created_at", "completed_at", "timings"):
        kept.pop(name, None)
    kept["usage"].pop("input_tokens_details")  # the second finds the prompt in the cache
    return kept


def accumulated(client, **asked):
    with client.responses.stream(**asked) as stream:
        for _ in stream:
            pass
        return stream.get_final_response()


def until_whole(ask):
    """A small model may fill a constraint's free places with spaces for ever: one seed after the other."""
    for seed in range(30):
        response = ask({"seed": seed})
        if response.status == "completed":
            return response
    raise AssertionError("30 seeds, and no answer ended by itself")


def plain_and_streamed(client, facts):
    plain = client.responses.create(input=STORY, **ASKED)
    assert plain.status == "completed" and plain.output_text, plain
    facts.check("response", plain.to_dict())
    assert plain.usage.output_tokens_details.reasoning_tokens == 0
    events = list(client.responses.create(input=STORY, stream=True, **ASKED))
    for event in events:
        facts.check("event", event.to_dict())
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == plain.output_text
    assert comparable(events[-1].response) == comparable(plain)
    helped = accumulated(client, input=STORY, **ASKED)
    assert helped.output_text == plain.output_text
    scored = client.responses.create(input=STORY, include=["message.output_text.logprobs"], top_logprobs=2, **ASKED)
    assert len(scored.output[0].content[0].logprobs[0].top_logprobs) == 2


def turns_and_counts(client):
    first = client.responses.create(input=STORY, **ASKED)
    turns = [{"role": "user", "content": STORY}, *[item.to_dict() for item in first.output], {"role": "user", "content": "And then?"}]
    second = client.responses.create(input=turns, instructions="Be kind", **ASKED)
    counted = client.responses.input_tokens.count(model="pocket", input=turns, instructions="Be kind")
    assert counted.input_tokens == second.usage.input_tokens


def calls(client, facts):
    asked = {"model": "pocket", "input": "What is the weather?", "tools": [TOOL], "tool_choice": "required",
             "max_output_tokens": 120, "temperature": 0.7}
    plain = until_whole(lambda extra: client.responses.create(extra_body=extra, **asked))
    facts.check("response", plain.to_dict())
    call = plain.output[0]
    assert call.type == "function_call" and json.loads(call.arguments)["place"] in ("Rome", "Oslo")
    helped = until_whole(lambda extra: last_of(client, extra_body=extra, **asked))
    assert helped.output[0].arguments == call.arguments


def last_of(client, **asked):
    """The last response of a stream; the helper refuses one that is cut."""
    with client.responses.stream(**asked) as stream:
        return [event for event in stream][-1].response


def formed(client):
    import pydantic

    class Answer(pydantic.BaseModel):
        ok: bool

    for seed in range(30):
        asked = {"model": "pocket", "input": STORY, "max_output_tokens": 80, "temperature": 0.7, "extra_body": {"seed": seed}}
        try:
            response = client.responses.parse(text_format=Answer, **asked)
        except pydantic.ValidationError:
            continue  # cut
        if response.status == "completed":
            assert isinstance(response.output_parsed.ok, bool)
            return
    raise AssertionError("30 seeds, and no answer ended by itself")


def refusals(openai, client):
    for error, change in ((openai.BadRequestError, {"temperature": 7}), (openai.NotFoundError, {"model": "other"}),
                          (openai.BadRequestError, {"previous_response_id": "resp_1"}), (openai.BadRequestError, {"background": True})):
        try:
            client.responses.create(**(ASKED | {"input": STORY} | change))
            raise AssertionError(f"{change} was accepted")
        except error as seen:
            assert seen.body["param"] == next(iter(change)), seen.body


def check_responses(served_by):
    try:
        import jsonschema  # noqa: F401
        import openai
    except ImportError:
        return SKIPPED
    facts = Facts()
    with served_by() as served:
        client = openai.OpenAI(base_url=served.url + "/v1", api_key="none", max_retries=0)
        plain_and_streamed(client, facts)
        turns_and_counts(client)
        calls(client, facts)
        formed(client)
        refusals(openai, client)
    return 0


async def ask_agents(agents, client):
    def agent(**more):
        settings = agents.ModelSettings(max_tokens=200, temperature=1, extra_body={"seed": 5, "stop": ["."]},
                                        tool_choice="required" if more else None)
        return agents.Agent(name="teller", instructions="Be kind", model_settings=settings,
                            model=agents.OpenAIResponsesModel("pocket", client), **more)

    plain = await agents.Runner.run(agent(), STORY)
    assert plain.final_output
    streamed = agents.Runner.run_streamed(agent(), STORY)
    deltas = [event.data.delta async for event in streamed.stream_events()
              if event.type == "raw_response_event" and event.data.type == "response.output_text.delta"]
    assert "".join(deltas) == streamed.final_output == plain.final_output

    seen = []

    async def weather(_, arguments):
        seen.append(json.loads(arguments)["place"])
        return "sun"

    tool = agents.FunctionTool(name="weather", description="Tells the weather", params_json_schema=PLACE, on_invoke_tool=weather)
    # The shipped model's template knows no results of tools, so that the first one ends the run.
    called = await agents.Runner.run(agent(tools=[tool], tool_use_behavior="stop_on_first_tool"), "What is the weather?")
    assert called.final_output == "sun" and seen[0] in ("Rome", "Oslo"), (called.final_output, seen)


def check_agents(served_by):
    try:
        import agents
        import openai
    except ImportError:
        return SKIPPED
    agents.set_tracing_disabled(True)
    with served_by() as served:
        client = openai.AsyncOpenAI(base_url=served.url + "/v1", api_key="none", max_retries=0)
        asyncio.run(ask_agents(agents, client))
    return 0
