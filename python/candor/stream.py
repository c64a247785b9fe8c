"""A request in work: its events as they come, for `for` and for `async for`."""

from __future__ import annotations

import ctypes
import json
from collections import deque
from dataclasses import dataclass, field
from typing import Any, AsyncIterator, Callable, Iterable, Iterator, NamedTuple

from ._library import END, TIMEOUT, Handle, library
from ._library import Event as CEvent
from .errors import Cancelled, CandorError, Overloaded
from .processor import Hook

# Between two looks at what else Python has to do: Ctrl-C, a task that was cancelled.
_PATIENCE_MS = 100

FINISH = {1: "eos", 2: "stop_id", 3: "stop", 4: "length", 5: "context_full", 6: "cancelled", 7: "deadline", 8: "failed"}


class Event(NamedTuple):
    """One token of one choice. `text` is what may be shown now: often the token's, sometimes "", sometimes more."""

    text: str
    token: int  # -1 in a last event that no token caused
    choice: int = 0
    logprob: float | None = None
    top: tuple[tuple[int, float], ...] = ()  # (token, logprob) of the likeliest, best first
    finish: str | None = None  # in the choice's last event: eos, stop_id, stop, length, context_full, ...
    stop_index: int | None = None  # which stop or stop_id


@dataclass
class Completion:
    """A whole answer. `parsed`: with `into`, the reply as a value of that type. `usage`: tokens, seed, times in
    milliseconds, warnings. `choices`: all answers where n was more than 1, this one first. `receipt`: what anyone can check
    them by (docs/receipts.md), with Sampling.receipt."""

    text: str = ""
    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)  # natural, one a token, with Sampling.logprobs
    top_logprobs: list[tuple[tuple[int, float], ...]] = field(default_factory=list)
    finish: str = ""
    parsed: Any = None
    usage: dict[str, Any] = field(default_factory=dict)
    choices: list["Completion"] = field(default_factory=list)
    receipt: dict[str, Any] | None = None

    @property
    def warnings(self) -> list[str]:
        """What of the request had no effect, one line each."""
        return list(self.usage.get("warnings", []))

    def __str__(self) -> str:
        return self.text

    def add(self, event: Event) -> None:
        """Appends what the event brings."""
        self.text += event.text
        if event.token >= 0:
            self.ids.append(event.token)
        if event.logprob is not None:
            self.logprobs.append(event.logprob)
            self.top_logprobs.append(event.top)
        self.finish = event.finish or self.finish


class Stream:
    """Iterates over events. Leaving it early (break, close(), a task that is cancelled) cancels the request; what came so
    far is in `completion`. One thread at a time."""

    def __init__(self, run: Handle, into: Callable[[str], Any] | None = None, hook: Hook | None = None) -> None:
        self._hook = hook
        self._run = run
        self._into = into
        self._event = CEvent(size=ctypes.sizeof(CEvent))
        self._next = library.puller(self._event)
        self._choices: list[Completion] = []
        self._has_ended = False

    # One event; None: not yet, or no more (_has_ended).
    def _pull(self, timeout_ms: int) -> Event | None:
        try:
            status = self._next(self._run.value, timeout_ms)
        except CandorError as error:
            if self._hook is not None and self._hook.error is not None:
                raise error from self._hook.error
            raise
        if status == TIMEOUT:
            return None
        if status == END:
            self._has_ended = True
            return None
        event = self._shown()
        while len(self._choices) <= event.choice:
            self._choices.append(Completion())
        self._choices[event.choice].add(event)
        return event

    def _shown(self) -> Event:
        c = self._event
        size, n_top, stop = c.text_size, c.n_top, c.stop_index
        return Event(
            str(ctypes.string_at(c.text, size), "utf-8", "replace") if size else "", c.token, c.choice,
            c.logprob if c.has_logprob else None,
            tuple((c.top[i].token, c.top[i].logprob) for i in range(n_top)) if n_top else (),
            FINISH.get(c.finish), stop if stop >= 0 else None)

    def __iter__(self) -> Iterator[Event]:
        try:
            while not self._has_ended:
                event = self._pull(_PATIENCE_MS)
                if event is not None:
                    yield event
        finally:
            self._leave()

    async def __aiter__(self) -> AsyncIterator[Event]:
        import asyncio  # here, as it takes longer to import than all of this package

        loop = asyncio.get_running_loop()
        fd = ctypes.c_int(-1)
        library.call("run_fd", self._run.value, ctypes.byref(fd))
        arrived = asyncio.Event()
        loop.add_reader(fd.value, arrived.set)
        try:
            while not self._has_ended:
                arrived.clear()
                event = self._pull(0)
                if event is not None:
                    yield event
                elif not self._has_ended:
                    await arrived.wait()
        finally:
            loop.remove_reader(fd.value)
            self._leave()

    def _leave(self) -> None:
        if not self._has_ended:
            self.close()

    def cancel(self) -> None:
        """From any thread: the events that are there already still come, then the stream ends."""
        library.call("cancel", self._run.value)

    def close(self) -> None:
        """Cancels what has not ended. Any number of times."""
        self._run.close()

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def explanation(self) -> dict[str, Any]:
        """How the token of the last event came about, with Sampling.explain."""
        return dict(json.loads(library.text("explanation", self._run.value)))

    @property
    def completion(self) -> Completion:
        """What came so far; with `usage` and `parsed` where the stream has ended."""
        whole = self._choices[0] if self._choices else Completion()
        whole.choices = list(self._choices) or [whole]
        if self._has_ended and self._run.is_open and not whole.usage:
            whole.usage = dict(json.loads(library.text("summary", self._run.value).decode("utf-8", "replace")))
            if whole.usage.pop("has_receipt", False):
                whole.receipt = dict(json.loads(library.text("receipt", self._run.value)))
            for choice in whole.choices:
                choice.usage = whole.usage
                choice.receipt = whole.receipt
                if self._into is not None:
                    choice.parsed = self._into(choice.text)
        return whole

    def finished(self) -> Completion:
        """Waits for the end. Ctrl-C cancels the request."""
        for _ in self:
            pass
        if not self._has_ended:
            raise Cancelled("the stream was closed before its end")
        return self.completion


def together(starts: Iterable[Callable[[], Stream]]) -> Iterator[tuple[int, Completion | CandorError]]:
    """Starts streams, as many as the engine takes at once, and gives the place and the Completion or error of each: an error
    of a start at once, the others in their order. What is left when nobody asks on is cancelled."""
    running: deque[tuple[int, Stream]] = deque()

    def oldest() -> tuple[int, Completion | CandorError]:
        place, stream = running[0]
        try:
            return place, stream.finished()
        except CandorError as error:
            return place, error
        finally:
            running.popleft()
            stream.close()

    try:
        for place, start in enumerate(starts):
            while True:
                try:
                    running.append((place, start()))
                except Overloaded as error:
                    if running:
                        yield oldest()
                        continue
                    yield place, error
                except CandorError as error:
                    yield place, error
                break
        while running:
            yield oldest()
    finally:
        for _, stream in running:
            stream.close()
