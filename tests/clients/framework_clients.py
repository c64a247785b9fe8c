#!/usr/bin/env python3
"""LlamaIndex, Haystack, DSPy and instructor, each by its own class for OpenAI's interface, as docs/clients/frameworks.md
has them. Not with the other clients: they want another version of openai. Exit code 77 where they are not installed.

    python3 framework_clients.py PROGRAM"""

import os
import sys
from typing import Literal

os.environ.update(HF_HUB_OFFLINE="1", HAYSTACK_TELEMETRY_ENABLED="False", LITELLM_LOCAL_MODEL_COST_MAP="True")
try:
    import dspy
    import instructor
    from haystack.components.generators.chat import OpenAIChatGenerator
    from haystack.dataclasses import ChatMessage
    from haystack.utils import Secret
    from llama_index.embeddings.openai_like import OpenAILikeEmbedding
    from llama_index.llms.openai_like import OpenAILike
    from openai import OpenAI
    from pydantic import BaseModel
except ImportError:
    sys.exit(77)

from run_clients import Served

ASKED = "Say hello"


class Answer(BaseModel):
    colour: Literal["red", "blue"]


def llama_index(url, expected):
    model = OpenAILike(model="pocket", api_base=url, api_key="none", is_chat_model=True, max_tokens=12, temperature=0)
    assert str(model.complete(ASKED)) == expected
    assert "".join(part.delta or "" for part in model.stream_complete(ASKED)) == expected
    vector = OpenAILikeEmbedding(model_name="pocket", api_base=url, api_key="none").get_text_embedding(ASKED)
    assert abs(sum(number * number for number in vector) - 1) < 1e-3


def haystack(url, expected):
    generator = OpenAIChatGenerator(model="pocket", api_base_url=url, api_key=Secret.from_token("none"),
                                    generation_kwargs={"max_tokens": 12, "temperature": 0})
    assert generator.run([ChatMessage.from_user(ASKED)])["replies"][0].text == expected


def dspy_(url, expected):
    model = dspy.LM("openai/pocket", api_base=url, api_key="none", max_tokens=12, temperature=0, cache=False)
    assert model(ASKED) == [expected]


def instructor_(url, _):
    client = instructor.from_openai(OpenAI(base_url=url, api_key="none"), mode=instructor.Mode.JSON_SCHEMA)
    for seed in range(30):  # a small model may fill a constraint's free places with spaces for ever
        try:
            answer = client.chat.completions.create(model="pocket", response_model=Answer, max_tokens=60, seed=seed,
                                                    messages=[{"role": "user", "content": "Choose a colour"}])
        except Exception as error:
            assert "length" in str(error), error
            continue
        assert answer.colour in ("red", "blue")
        return
    raise AssertionError("30 seeds, and no answer ended by itself")


def main():
    with Served(sys.argv[1]) as served:
        url = served.url + "/v1"
        plain = OpenAI(base_url=url, api_key="none").chat.completions.create(
            model="pocket", messages=[{"role": "user", "content": ASKED}], max_tokens=12, temperature=0)
        for ask in (llama_index, haystack, dspy_, instructor_):
            ask(url, plain.choices[0].message.content)
            print(f"{ask.__name__.strip('_')}: as asked without it", flush=True)


if __name__ == "__main__":
    main()
