"""A model that is open: text in, text, ids, logprobs, vectors and rows out."""

from __future__ import annotations

import json
import math
import os
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Callable, Iterable, List, Mapping, Sequence, Union

from ._library import Handle, ids_of, library
from .constraints import Constraint, constraint_of, parse_into
from .errors import CandorError, InvalidInput, NotFound, Unsupported
from .processor import Hook, Processor, is_inside
from .rows import Rows
from .sampling import Sampling, scales_of, text_of
from .stream import Completion, Stream, together
from .tools import Tool, Toolbox

Message = Mapping[str, Any]  # {"role": "user", "content": "..."}
AnyPath = Union[str, "os.PathLike[str]"]
Adapters = Union[Mapping[str, AnyPath], Sequence[AnyPath]]
Uses = Union[str, Sequence[str], Mapping[str, float], None]  # names of adapters, or their scales
Prompt = Union[str, Sequence[int], Sequence[Message]]  # a text, token ids, or a chat


def _named(adapters: Adapters) -> dict[str, AnyPath]:
    if isinstance(adapters, Mapping):
        return dict(adapters)
    return {_name_of(path): path for path in adapters}


def _name_of(adapter: AnyPath) -> str:
    path = Path(adapter)
    return path.name if path.is_dir() else path.stem


def shipped_model() -> str:
    """The small model that ships with Candor."""
    name = Path("models/pocket/pocket-q8_0.gguf")
    here = Path(__file__).resolve().parent
    for folder in (here / "share/candor", here.parents[1], Path("/usr/share/candor"), Path("/usr/local/share/candor")):
        if (folder / name).exists():
            return str(folder / name)
    raise NotFound("there is no shipped model beside this package: name a GGUF file or a folder of safetensors", "model")


def _file_of(model: Union[str, "os.PathLike[str]", None]) -> str:
    if model is None:
        return os.environ.get("CANDOR_MODEL") or shipped_model()
    path = os.fspath(model)
    if os.path.exists(path) or path.count("/") != 1 or path.startswith((".", "/")):
        return path
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        raise NotFound(f"{path}: there is no such file; for a repository of the hub, `pip install huggingface_hub`, or "
                       f"`candor pull {path}` and name the file", "model") from None
    return str(snapshot_download(path))


class Model:
    """Opens a model: a GGUF file, a folder of safetensors, a repository of the hub (with huggingface_hub installed), or the
    model that ships with Candor. adapters: {"poet": "adapters/poet"}, or a list of paths, whose last parts are the names.
    Options are those of include/candor/options.h: kv_type, quantize, max_running, ...

    Any thread may use it, and several at once: their requests share steps, and no answer depends on that. It is closed by
    `with`, by close(), with the object, or at the interpreter's end; what is in work is cancelled then. It does not survive
    a fork and cannot be pickled: give other processes the path."""

    def __init__(self, model: Union[str, "os.PathLike[str]", None] = None, *, threads: int | None = None,
                 ctx: int | None = None, adapters: Adapters | None = None, **options: Any) -> None:
        self.path = _file_of(model)
        named = {"n_threads": threads, "n_ctx": ctx, **options}
        made = Handle(library.make("options_new"), "options")
        for name, value in named.items():
            if value is not None:
                library.call("set", made.value, name.encode(), text_of(value).encode())
        for name, path in _named(adapters or {}).items():
            library.call("set", made.value, b"adapter", name.encode() + b"=" + os.fsencode(path))
        self._engine = Handle(library.make("open", os.fsencode(self.path), made.value), "model")
        made.close()
        self.info: dict[str, Any] = json.loads(library.text("info", self._engine.value).decode("utf-8", "replace"))

    def close(self) -> None:
        """Any number of times."""
        self._engine.close()

    def __enter__(self) -> "Model":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError("a candor.Model cannot be pickled: give the other process its path, and open it there")

    def __repr__(self) -> str:
        return f"<candor.Model {self.path}: {self.info['family']}, {self.info['n_parameters']:,} parameters>"

    @property
    def adapters(self) -> List[dict[str, Any]]:
        """The adapters that are loaded: name, path, format, scale, rank, n_matrices, prompt, memory_bytes,
        hash."""
        return list(json.loads(library.text("adapters", self._engine.value).decode("utf-8", "replace")))

    def load_adapter(self, path: AnyPath, name: str | None = None, *, scale: float = 1.0) -> str:
        """Loads a LoRA adapter beside the model: PEFT's folder, or a GGUF file. Its name, for Sampling(adapters=)."""
        chosen = name or _name_of(path)
        library.call("load_adapter", self._engine.value, chosen.encode(), os.fsencode(path), float(scale))
        return chosen

    def drop_adapter(self, name: str) -> None:
        """Requests that use it go on to their ends."""
        library.call("drop_adapter", self._engine.value, name.encode())

    def stream(self, prompt: Prompt, sampling: Sampling | None = None, *, constraint: Constraint | None = None,
               into: Any = None, tools: Sequence[Any] | None = None, logits_processor: Processor | None = None,
               **options: Any) -> Stream:
        """Starts a request; `for event in stream` or `async for`. Options are fields of Sampling. into: a type that the
        reply must be of, which Completion.parsed then is. tools: typed functions (candor.Tool), one of which the reply calls:
        Completion.parsed is a candor.Call; or JSON schemas, which only the chat template is told. logits_processor(ids,
        logits): called for each token, may change the row in place or return another; it holds up every request of the model
        meanwhile."""
        if tools is not None:
            options["tools"] = tools
            if any(callable(tool) or isinstance(tool, Tool) for tool in tools):
                if into is not None or constraint is not None:
                    raise InvalidInput("tools come with a constraint of their own: give neither into nor constraint", "tools")
                into = Toolbox(tools)
                options["tools"] = into.schemas
        request = self._request(prompt, sampling, constraint, into, options)
        hook = None if logits_processor is None else Hook(logits_processor)
        if hook is not None:
            hook.attach(request)
        return self._started(lambda: library.make("start", self._engine.value, request.value), into, hook)

    def generate(self, prompt: Union[Prompt, Sequence[Prompt]], sampling: Sampling | None = None, *,
                 constraint: Constraint | None = None, into: Any = None, progress: bool = False,
                 **options: Any) -> Any:
        """The whole answer, a Completion; for a list of prompts a list of them, in its order, computed together. progress: a
        bar, with tqdm where it is installed. An error of one prompt of a list ends all of them."""
        if not _is_list(prompt):
            return self.stream(prompt, sampling, constraint=constraint, into=into, **options).finished()  # type: ignore[arg-type]
        return self._batch(list(prompt), sampling, constraint, into, progress, options)

    async def agenerate(self, prompt: Prompt, sampling: Sampling | None = None, **options: Any) -> Completion:
        """generate() of one prompt in an asyncio loop. Cancelling the task cancels the request."""
        stream = self.stream(prompt, sampling, **options)
        async for _ in stream:
            pass
        return stream.completion

    def _batch(self, prompts: List[Any], sampling: Sampling | None, constraint: Constraint | None, into: Any,
               progress: bool, options: Mapping[str, Any]) -> List[Completion]:
        made: List[Any] = [None] * len(prompts)
        bar = _Bar(len(prompts)) if progress else None
        starts = (partial(self.stream, prompt, sampling, constraint=constraint, into=into, **options) for prompt in prompts)
        try:
            for place, answer in together(starts):
                if isinstance(answer, CandorError):
                    raise answer
                made[place] = answer
                if bar is not None:
                    bar.step()
        finally:
            if bar is not None:
                bar.close()
        return made

    def _request(self, prompt: Any, sampling: Sampling | None, constraint: Constraint | None, into: Any,
                 options: Mapping[str, Any]) -> Handle:
        if is_inside():
            raise CandorError("a logits processor cannot ask an engine: the engine's thread waits for the processor")
        chosen = sampling or Sampling()
        try:
            chosen = replace(chosen, **options)
        except TypeError:
            unknown = [name for name in options if name not in Sampling.__dataclass_fields__]
            raise InvalidInput(f"{unknown[0]}: there is no such option; candor.Sampling lists them", unknown[0]) from None
        if into is not None and constraint is not None:
            raise InvalidInput("into comes with a constraint of its own: give one of both", "into")
        request = Handle(library.make("request_new"), "request")
        _set_prompt(request, prompt)
        for name, value in chosen.options():
            library.call("set", request.value, name.encode(), value.encode())
        rule = constraint if into is None else into.constraint if isinstance(into, Toolbox) else constraint_of(into)
        if rule is not None:
            library.call("constrain", request.value, rule.kind.encode(), rule.source.encode())
        return request

    def _started(self, start: Callable[[], int], into: Any, hook: Hook | None = None) -> Stream:
        parse = None if into is None else into.parse if isinstance(into, Toolbox) else (lambda text: parse_into(into, text))
        return Stream(Handle(start(), "stream"), parse, hook)

    def session(self, system: str | None = None) -> "Session":
        """A conversation, whose branches share what they begin with."""
        session = Session(self, Handle(library.make("session_new", self._engine.value), "session"))
        if system is not None:
            session.say("system", system)
        return session

    def tokenize(self, text: str, *, add_special: bool = True, parse_special: bool = False) -> List[int]:
        """Ids of the text. add_special: with the beginning token, where the model wants one. parse_special: control tokens
        that are written in the text become their ids."""
        raw = text.encode()
        return library.tokens("tokenize", self._engine.value, raw, len(raw), int(add_special), int(parse_special))

    def detokenize(self, tokens: Iterable[int]) -> str:
        """The text of ids."""
        return library.text("detokenize", self._engine.value, *ids_of(tokens)).decode("utf-8", "replace")

    def token_bytes(self, token: int) -> bytes:
        """What a token stands for; part of a character, often."""
        return library.text("token_bytes", self._engine.value, token)

    def apply_template(self, messages: Sequence[Message]) -> str:
        """The prompt that the model's chat template makes."""
        raw = json.dumps(list(messages)).encode()
        return library.text("apply_template", self._engine.value, raw).decode("utf-8", "replace")

    def score(self, tokens: Union[str, Sequence[int]], *, adapters: Uses = None) -> List[float]:
        """The natural logprob of each token behind the first, given those before it."""
        if adapters:
            return [own for own, _ in self.score_from(self._ids(tokens), 1, adapters=adapters)]
        return list(self._rows("score", tokens, adapters).view())

    def score_from(self, tokens: Sequence[int], first: int, *, adapters: Uses = None) -> List[tuple[float, float]]:
        """Of each token from `first` on (1 or more): its natural logprob, and that of the likeliest token there. What stands
        before `first` comes from the prefix cache where it was computed before."""
        ids, n = ids_of(tokens)
        if not 1 <= first <= n:
            raise InvalidInput(f"first is {first}, expected 1 to {n}", "first")
        if adapters:
            asked = {"tokens": [list(ids)[:n]], "rows": "scores", "first": first, "adapters": scales_of(adapters)}
            rows = self._read(asked, n - first)
        else:
            rows = Rows(Handle(library.make("score_from", self._engine.value, ids, n, first), "scores"), n - first)
        return [(row[0], row[1]) for row in rows]

    def logits(self, tokens: Union[str, Sequence[int]], *, adapters: Uses = None) -> Rows:
        """[tokens, info["n_vocab"]]: row i for the token behind token i. At most 1 GiB."""
        return self._rows("logits", tokens, adapters)

    def hidden(self, tokens: Union[str, Sequence[int]], *, adapters: Uses = None) -> Rows:
        """[tokens, info["dim"]]: the last hidden states, behind the final norm."""
        return self._rows("hidden", tokens, adapters)

    def _ids(self, tokens: Union[str, Sequence[int]]) -> Sequence[int]:
        return self.tokenize(tokens) if isinstance(tokens, str) else tokens

    def _rows(self, name: str, tokens: Union[str, Sequence[int]], adapters: Uses) -> Rows:
        ids, n = ids_of(self._ids(tokens))
        if adapters:
            return self._read({"tokens": [list(ids)[:n]], "rows": name, "adapters": scales_of(adapters)}, n)
        return Rows(Handle(library.make(name, self._engine.value, ids, n), "rows"), n)

    def embed(self, text: str, *, pooling: str = "model") -> List[float]:
        """A vector of info["embedding_dim"] numbers. pooling: model (what its files say), mean, last or cls."""
        raw = text.encode()
        made = Handle(library.make("embed", self._engine.value, raw, len(raw), pooling.encode()), "vector")
        return Rows(made, 1)[0]

    def embed_all(self, texts: Sequence[str], *, pooling: str = "model", truncate: bool = False,
                  adapters: Uses = None) -> Rows:
        """[texts, info["embedding_dim"]], computed many at once. truncate: texts that are longer than the model reads lose
        their ends, instead of an error."""
        asked = {"texts": list(texts), "pooling": pooling, "truncate": truncate, "adapters": scales_of(adapters or ())}
        return self._read(asked, len(texts))

    def embed_sparse(self, texts: Sequence[str], *, truncate: bool = False) -> List[dict[int, float]]:
        """Of each text the weights of its words by their token ids, where the model gives them (info["weighs_words"]:
        BGE M3, SPLADE); all others weigh nothing."""
        flat = self._read({"texts": list(texts), "pooling": "sparse", "truncate": truncate}, 1)[0]
        words: List[dict[int, float]] = [{} for _ in texts]
        for at in range(0, len(flat), 3):
            words[int(flat[at])][int(flat[at + 1])] = flat[at + 2]
        return words

    def rerank(self, query: str, documents: Sequence[str], *, top: int | None = None, raw_scores: bool = False,
               truncate: bool = False) -> List[tuple[int, float]]:
        """Documents by how well they answer the query, best first: their numbers in the list and their scores. By the
        model's own head for it; a score is the sigmoid of what that gives, or that itself (raw_scores)."""
        if not self.info["ranks_pairs"]:
            raise Unsupported("this model has no head that scores pairs of texts: load a reranker", "model")
        pairs = [[query, document] for document in documents]
        rows = self._read({"pairs": pairs, "pooling": "labels", "truncate": truncate}, len(pairs))
        logits = [row[0] - row[1] if len(row) == 2 else row[0] for row in rows]
        scores = logits if raw_scores else [1.0 / (1.0 + math.exp(-logit)) for logit in logits]
        return sorted(enumerate(scores), key=lambda one: -one[1])[:top]

    def classify(self, texts: Sequence[str], *, truncate: bool = False) -> List[dict[str, float]]:
        """Of each text the share of each of the model's labels, likeliest first."""
        rows = self._read({"texts": list(texts), "pooling": "labels", "truncate": truncate}, len(texts))
        return [_shares(self.info["labels"], row) for row in rows]

    def _read(self, asked: dict[str, Any], n_texts: int) -> Rows:
        return Rows(Handle(library.make("read", self._engine.value, json.dumps(asked).encode()), "vectors"), n_texts)

    def explain(self, prompt: Prompt, sampling: Sampling | None = None, **options: Any) -> List[dict[str, Any]]:
        """How each token of the answer came about: "token", "text", and what `candor explain --json` has of it. The arguments
        are those of stream()."""
        told = []
        with self.stream(prompt, sampling, explain=True, **options) as stream:
            for event in stream:
                if event.token >= 0:
                    told.append({"token": event.token, "text": event.text, **stream.explanation()})
        return told

    def receipt(self, prompt: Prompt, sampling: Sampling | None = None, **options: Any) -> dict[str, Any]:
        """The answer with all that it follows from (docs/receipts.md), for verify(), here or elsewhere. The arguments are those
        of generate(), which gives it beside the text with receipt=True."""
        answer = self.generate(prompt, sampling, receipt=True, **options)
        return dict(answer.receipt)

    def verify(self, receipt: Union[str, Mapping[str, Any]]) -> dict[str, Any]:
        """Reads a receipt's answers again: "verified", "message", "tokens", "verified_tokens", and "difference", None or the
        first: "field", "answer", "position", "claimed", "expected" and their logprobs. receipt: Completion.receipt, or its
        JSON. InvalidInput and Unsupported where it is none, or another model's."""
        text = (receipt if isinstance(receipt, str) else json.dumps(receipt)).encode()
        return dict(json.loads(library.text("verify", self._engine.value, text, len(text))))

    def metrics(self) -> dict[str, Any]:
        """Steps, tokens, cache hits, and distributions of times, of the engine."""
        return dict(json.loads(library.text("metrics", self._engine.value)))


def _shares(labels: Sequence[str], logits: Sequence[float]) -> dict[str, float]:
    """A softmax; of one label its sigmoid."""
    if len(labels) == 1:
        return {labels[0]: 1.0 / (1.0 + math.exp(-logits[0]))}
    most = max(logits)
    weights = [math.exp(logit - most) for logit in logits]
    shares = {label: weight / sum(weights) for label, weight in zip(labels, weights)}
    return dict(sorted(shares.items(), key=lambda one: -one[1]))


class Session:
    """A conversation: what is said, and answers to it. branch() goes on by itself from here; what both share is computed
    once."""

    def __init__(self, model: Model, handle: Handle) -> None:
        self._model = model
        self._handle = handle

    def say(self, role: str, text: str) -> "Session":
        """Adds a message: system, user, assistant or tool."""
        raw = text.encode()
        library.call("session_say", self._handle.value, role.encode(), raw, len(raw))
        return self

    def stream(self, text: str | None = None, sampling: Sampling | None = None, *, constraint: Constraint | None = None,
               into: Any = None, **options: Any) -> Stream:
        """Says `text` as the user and starts the answer, which becomes a message when the stream has ended."""
        if text is not None:
            self.say("user", text)
        request = self._model._request("", sampling, constraint, into, options)
        return self._model._started(lambda: library.make("session_start", self._handle.value, request.value), into)

    def ask(self, text: str | None = None, sampling: Sampling | None = None, **options: Any) -> Completion:
        """The whole answer."""
        return self.stream(text, sampling, **options).finished()

    def branch(self) -> "Session":
        """Another session with what was said so far."""
        return Session(self._model, Handle(library.make("session_branch", self._handle.value), "session"))

    @property
    def messages(self) -> List[dict[str, Any]]:
        """What was said so far, each with its role and content."""
        return list(json.loads(library.text("session_messages", self._handle.value).decode("utf-8", "replace")))

    def close(self) -> None:
        """Any number of times."""
        self._handle.close()

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _is_ids(prompt: Any) -> bool:
    return not isinstance(prompt, str) and len(prompt) > 0 and all(isinstance(one, int) for one in prompt)


def _is_chat(prompt: Any) -> bool:
    return not isinstance(prompt, str) and len(prompt) > 0 and all(isinstance(one, Mapping) for one in prompt)


def _is_list(prompt: Any) -> bool:
    if isinstance(prompt, (str, bytes)) or not isinstance(prompt, Sequence):
        return False
    return not _is_ids(prompt) and not _is_chat(prompt)


def _set_prompt(request: Handle, prompt: Any) -> None:
    if isinstance(prompt, str):
        raw = prompt.encode()
        library.call("prompt_text", request.value, raw, len(raw))
    elif isinstance(prompt, Sequence) and _is_chat(prompt):
        library.call("prompt_messages", request.value, json.dumps(list(prompt)).encode())
    elif isinstance(prompt, bytes) or not hasattr(prompt, "__iter__"):
        raise InvalidInput(f"prompt: expected a text, token ids or messages, got {type(prompt).__name__}", "prompt")
    else:
        ids, n = ids_of(prompt)
        library.call("prompt_tokens", request.value, ids, n)


class _Bar:
    """tqdm's, or a line on standard error."""

    def __init__(self, n: int) -> None:
        self._n, self._done, self._bar = n, 0, None
        try:
            from tqdm import tqdm
            self._bar = tqdm(total=n, unit="prompt")
        except ImportError:
            pass

    def step(self) -> None:
        self._done += 1
        if self._bar is not None:
            self._bar.update(1)
        elif sys.stderr.isatty():
            print(f"\r{self._done} of {self._n} prompts", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
        elif sys.stderr.isatty():
            print(file=sys.stderr)

