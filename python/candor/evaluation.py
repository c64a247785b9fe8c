"""lm-evaluation-harness over this engine: `candor-lm-eval --model candor --model_args model=FILE --tasks ...`, or
`python -m candor.evaluation`; every option is lm_eval's own. In Python: `import candor.evaluation`, then
`lm_eval.simple_evaluate(model="candor", model_args={"model": "FILE"}, tasks=[...])`.

Needs `pip install lm_eval`. Requests run together, as many as the engine takes; what continuations of one context share
is computed once. Equal requests get equal numbers, whatever runs beside them."""

from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Iterable, Sequence, TypeVar

from .errors import CandorError, InvalidInput
from .model import Model
from .sampling import Sampling

try:
    # Its own models first: it looks for them only while it knows none.
    import lm_eval.models  # noqa: F401
    from lm_eval.api.model import TemplateLM
    from lm_eval.api.registry import register_model
    from lm_eval.utils import get_rolling_token_windows, make_disjoint_window
    from tqdm import tqdm
except ImportError:
    raise CandorError("candor.evaluation needs lm-evaluation-harness: pip install lm_eval") from None

_Item = TypeVar("_Item")
_Answer = TypeVar("_Answer")

_AT_ONCE = 16
# Of lm_eval's generation_kwargs: what sampling says by another name, and what it has no use for.
_OTHER_NAMES = {"max_gen_toks": "max_tokens", "max_new_tokens": "max_tokens"}
_WITHOUT_USE = frozenset({"until", "do_sample"})


@register_model("candor")
class CandorLM(TemplateLM):  # type: ignore[misc]
    """model_args: `model` or, as other models of lm_eval have it, `pretrained` (a GGUF file, a folder of safetensors, a
    repository of the hub), and options of candor.Model.
    add_bos: begin texts with the model's beginning token (default: as the model says). adapter: a path (LoRA), for all
    that is asked. batch_size: requests at once
    where that is more than 16; no number depends on it."""

    def __init__(self, model: str | None = None, *, pretrained: str | None = None, batch_size: int | str = 1, max_gen_toks: int = 256,
                 add_bos: bool | str = True, adapter: str | None = None, device: str | None = None,
                 max_batch_size: int | None = None, **options: Any) -> None:
        super().__init__()
        self._at_once = max(_AT_ONCE, 0 if str(batch_size).startswith("auto") else int(batch_size))
        options.setdefault("max_running", self._at_once)
        self._adapters = {"adapter": 1.0} if adapter else {}
        self._model = Model(model or pretrained, adapters={"adapter": adapter} if adapter else {}, **options)
        self._max_gen_toks = int(max_gen_toks)
        self._cut: list[int] = []  # the lengths of inputs that were too long; appended to by many threads
        self._adds_bos = add_bos not in (False, "False", "false", "0")

    @property
    def eot_token_id(self) -> int:
        return int(self._model.info["eos"])

    @property
    def prefix_token_id(self) -> int:
        bos = int(self._model.info["bos"])
        return bos if bos >= 0 else self.eot_token_id

    @property
    def max_length(self) -> int:
        return int(self._model.info["n_ctx"])

    @property
    def tokenizer_name(self) -> str:
        return self._model.path.replace("/", "__")

    def tok_encode(self, string: str, add_special_tokens: bool | None = None, **_: Any) -> list[int]:
        adds = self._adds_bos if add_special_tokens is None else add_special_tokens
        return self._model.tokenize(string, add_special=adds, parse_special=True)

    def apply_chat_template(self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True) -> str:
        if not add_generation_prompt:
            raise InvalidInput("a chat that ends in the model's own words has no template here", "messages")
        return self._model.apply_template(chat_history)

    def _loglikelihood_tokens(self, requests: list[tuple[tuple[str, str], list[int], list[int]]],
                              disable_tqdm: bool = False, **_: Any) -> list[tuple[float, bool]]:
        def score(request: tuple[tuple[str, str], list[int], list[int]]) -> tuple[float, bool]:
            pair, context, continuation = request
            tokens = self._newest(context + continuation, self.max_length - 1)
            if len(continuation) >= len(tokens):
                raise InvalidInput(f"a continuation of {len(continuation)} tokens leaves no token of its context within "
                                   f"the model's {self.max_length}", "tokens")
            scored = self._model.score_from(tokens, len(tokens) - len(continuation),
                                            adapters=self._adapters)
            answer = sum(logprob for logprob, _ in scored), all(logprob == best for logprob, best in scored)
            if pair is not None:
                self.cache_hook.add_partial("loglikelihood", pair, answer)
            return answer

        # Continuations of one context one after the other: the first computes it for all.
        groups: dict[tuple[int, ...], list[int]] = {}
        for place, request in enumerate(requests):
            groups.setdefault(tuple(request[1]), []).append(place)
        answers: list[tuple[float, bool]] = [(0.0, False)] * len(requests)
        scored = self._each(lambda places: [score(requests[i]) for i in places], list(groups.values()), "contexts",
                            disable_tqdm)
        for places, made in zip(groups.values(), scored):
            for place, answer in zip(places, made):
                answers[place] = answer
        return answers

    def loglikelihood_rolling(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[float]:
        def score(request: Any) -> float:
            (text,) = request.args
            windows = get_rolling_token_windows(token_list=self.tok_encode(text, add_special_tokens=False),
                                                prefix_token=self.prefix_token_id, max_seq_len=self.max_length - 1,
                                                context_len=1)
            parts = [(None, *make_disjoint_window(window)) for window in windows]
            total = sum(one for one, _ in self._loglikelihood_tokens(parts, disable_tqdm=True))
            self.cache_hook.add_partial("loglikelihood_rolling", (text,), total)
            return total

        return [score(request) for request in tqdm(requests, desc="rolling", disable=disable_tqdm)]

    def generate_until(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[str]:
        def generate(request: Any) -> str:
            text, asked = request.args
            prompt = self.tok_encode(text)
            sampling = _sampling_of(dict(asked), self._max_gen_toks)
            room = self.max_length - (sampling.max_tokens or 0) - 1
            answer = self._model.generate(self._newest(prompt, max(1, room)), sampling, adapters=self._adapters)
            self.cache_hook.add_partial("generate_until", request.args, answer.text)
            return str(answer.text)

        return self._each(generate, requests, "generate_until", disable_tqdm)

    # A context that is longer than the model reads loses its oldest tokens, as with every model of lm_eval; it is counted.
    def _newest(self, tokens: list[int], most: int) -> list[int]:
        if len(tokens) > most:
            self._cut.append(len(tokens))
        return tokens[-most:]

    # In the order of the items.
    def _each(self, answer: Callable[[_Item], _Answer], items: Sequence[_Item], what: str, is_quiet: bool) -> list[_Answer]:
        n_before = len(self._cut)
        with ThreadPoolExecutor(self._at_once) as pool:
            made: Iterable[_Answer] = pool.map(answer, items)
            answers = list(tqdm(made, total=len(items), desc=what, disable=is_quiet))
        if len(self._cut) > n_before:
            warnings.warn(f"candor: {what}: {len(self._cut) - n_before} inputs are longer than the model's {self.max_length} "
                          "tokens; they lost their oldest", stacklevel=2)
        return answers


def _sampling_of(asked: dict[str, Any], most: int) -> Sampling:
    until = asked.get("until") or []
    stops = [until] if isinstance(until, str) else list(until)
    named = {_OTHER_NAMES.get(name, name): value for name, value in asked.items() if name not in _WITHOUT_USE}
    named.setdefault("max_tokens", most)
    named.setdefault("temperature", 0.0)
    if asked.get("do_sample") is False:
        named["temperature"] = 0.0
    try:
        return Sampling(stop=[stop for stop in stops if stop], **named)
    except TypeError as error:
        raise InvalidInput(f"generation_kwargs: {str(error).split(') ')[-1]}", "generation_kwargs") from None


def main() -> None:
    """lm_eval's own command, which knows --model candor."""
    from lm_eval.__main__ import cli_evaluate

    cli_evaluate()


if __name__ == "__main__":
    main()
