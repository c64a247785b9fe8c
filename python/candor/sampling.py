"""How each token is chosen, and when to stop."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from typing import Any, Mapping, Sequence


@dataclass(frozen=True)
class Sampling:
    """Every field that is None is as the model's file suggests, or as docs/server.md lists it. Ranges are those there; a
    value out of its range is an InvalidInput that names the field. Lists may be any sequence."""

    temperature: float | None = None  # 0: the most likely token
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    typical_p: float | None = None
    xtc_probability: float | None = None
    xtc_threshold: float | None = None
    dynatemp_range: float | None = None
    dynatemp_exponent: float | None = None
    repetition_penalty: float | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    repeat_last_n: int | None = None
    dry_multiplier: float | None = None
    dry_base: float | None = None
    dry_allowed_length: int | None = None
    dry_penalty_last_n: int | None = None
    no_repeat_ngram_size: int | None = None
    preset: str | None = None  # code, factual, chat, creative, brainstorm
    samplers: Sequence[str] | None = None  # the stages, in their order
    seed: int | None = None  # None: a new one, which Completion.usage["seed"] tells
    max_tokens: int | None = None  # None: until the model ends, or the context is full
    min_tokens: int | None = None
    n: int | None = None  # answers to one prompt, which is read once
    logprobs: int | None = None  # of each token, and so many of the likeliest beside it
    stop: str | Sequence[str] | None = None
    stop_ids: Sequence[int] | None = None
    bad_words: Sequence[str] | None = None
    allowed_token_ids: Sequence[int] | None = None
    logit_bias: Mapping[int, float] | None = None
    ban: Sequence[str] | None = None
    ignore_eos: bool | None = None
    beams: int | None = None
    length_penalty: float | None = None
    on_context_full: str | None = None  # stop, crop
    max_prompt_tokens: int | None = None
    priority: int | None = None  # lower is sooner
    deadline_ms: int | None = None
    cache_scope: str | None = None
    speculate: bool | None = None
    explain: bool | None = None
    receipt: bool | None = None  # Completion.receipt is wanted
    add_special: bool | None = None
    parse_special: bool | None = None
    add_generation_prompt: bool | None = None
    continue_final: bool | None = None
    adapters: str | Sequence[str] | Mapping[str, float] | None = None  # names of loaded ones, or their scales
    tools: Sequence[Mapping[str, Any]] | None = field(default=None)
    template_kwargs: Mapping[str, Any] | None = field(default=None)

    def options(self) -> list[tuple[str, str]]:
        """For candor_set(): each call's name and value."""
        made: list[tuple[str, str]] = []
        for each in fields(self):
            value = getattr(self, each.name)
            if value is not None:
                made += _options_of(each.name, value)
        return made


_LISTS = {"stop": "stop", "stop_ids": "stop_id", "bad_words": "bad_word", "allowed_token_ids": "allowed_token_id",
          "samplers": "sampler", "ban": "ban"}


def _options_of(name: str, value: Any) -> list[tuple[str, str]]:
    if name in _LISTS:
        listed = [value] if isinstance(value, str) else value
        return [(_LISTS[name], text_of(one)) for one in listed]
    if name == "adapters":
        return [("adapter", f"{one}:{scale!r}") for one, scale in scales_of(value).items()]
    if name == "logit_bias":
        return [(name, f"{int(token)}:{float(bias)!r}") for token, bias in value.items()]
    if name in ("tools", "template_kwargs"):
        return [(name, json.dumps(value))]
    return [(name, text_of(value))]


def scales_of(adapters: str | Sequence[str] | Mapping[str, float]) -> dict[str, float]:
    """Of adapters that are named with or without scales."""
    if isinstance(adapters, Mapping):
        return {name: float(scale) for name, scale in adapters.items()}
    return {name: 1.0 for name in ([adapters] if isinstance(adapters, str) else adapters)}


def text_of(value: Any) -> str:
    """As options are written: true, 0.5, a text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, float) else str(value)
