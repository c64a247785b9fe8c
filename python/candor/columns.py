"""Answers to a table's rows, for engines that spread tables over machines: candor.ray and candor.spark.

A row's answer follows from the model, its prompt, the options, and a seed that follows from `seed` and the row's key: it
does not depend on the machine, the worker, the batch or how often the row was tried."""

from __future__ import annotations

import hashlib
import socket
from functools import partial
from typing import Any, Mapping, Sequence

from .errors import CandorError, InvalidInput, NotFound
from .model import Model
from .sampling import Sampling
from .stream import together

# Columns that answers add, with their types; `error` is empty where all went well, and the others are where it is not.
ANSWER_COLUMNS: Mapping[str, type] = {"answer": str, "finish": str, "n_prompt_tokens": int, "n_tokens": int, "seed": int,
                                      "error": str}


def seed_of(seed: int, key: str) -> int:
    """A seed below 2**63 of a row."""
    return int.from_bytes(hashlib.blake2b(f"{seed}\0{key}".encode(), digest_size=8).digest(), "big") >> 1


def open_model(model: str | None, options: Mapping[str, Any]) -> Model:
    """Of this worker; an error names its machine."""
    try:
        return Model(model, **options)
    except NotFound as error:
        raise NotFound(f"{error} (on {socket.gethostname()}; each machine needs the model at the same path)",
                       error.field) from None


def answer_rows(model: Model, prompts: Sequence[Any], keys: Sequence[Any], sampling: Sampling | None = None, seed: int = 0,
                **options: Any) -> dict[str, list[Any]]:
    """ANSWER_COLUMNS of so many rows, computed together. A row that cannot be answered has an `error` and ends no other."""
    if len(prompts) != len(keys):
        raise InvalidInput(f"{len(prompts)} prompts and {len(keys)} keys", "keys")
    seeds = [seed_of(seed, str(key)) for key in keys]
    starts = (partial(model.stream, _plain(prompt), sampling, seed=chosen, **options)
              for prompt, chosen in zip(prompts, seeds))
    answers: dict[int, Any] = dict(together(starts))
    columns: dict[str, list[Any]] = {name: [] for name in ANSWER_COLUMNS}
    for place, chosen in enumerate(seeds):
        made = answers[place]
        failed = isinstance(made, CandorError)
        usage = {} if failed else made.usage
        row = {"answer": "" if failed else made.text, "finish": "" if failed else made.finish,
               "n_prompt_tokens": int(usage.get("prompt_tokens", 0)), "n_tokens": 0 if failed else len(made.ids),
               "seed": chosen, "error": str(made) if failed else ""}
        for name, value in row.items():
            columns[name].append(value)
    return columns


# As the package takes prompts: arrays of other libraries as lists.
def _plain(prompt: Any) -> Any:
    if hasattr(prompt, "tolist"):
        prompt = prompt.tolist()
    return "" if prompt is None else prompt
