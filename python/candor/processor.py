"""Logits processors: functions of Python that see a row of logits before its token is chosen, and may change it."""

from __future__ import annotations

import ctypes
import functools
import itertools
import threading
from ctypes import POINTER, c_float, c_int, c_int32, c_size_t, c_void_p
from typing import Any, Callable, Sequence

from ._library import Handle, library
from .errors import CandorError

# (ids before the token, prompt and output; the row) -> None, or a row to take instead. The row is a numpy array, or a
# memoryview of floats where numpy is not installed; it is gone after the call.
Processor = Callable[[Sequence[int], Any], Any]


class Row(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("text", POINTER(c_int32)), ("n_text", c_size_t), ("n_output", c_size_t),
                ("logits", POINTER(c_float)), ("n_logits", c_size_t), ("choice", c_int32)]


class Hook:
    """A processor of one request. `error`: what it raised."""

    def __init__(self, processor: Processor) -> None:
        self.processor = processor
        self.error: BaseException | None = None

    def attach(self, request: Handle) -> None:
        number = next(_numbers)
        _hooks[number] = self
        try:
            library.call("on_logits", request.value, _address(_called), number, _address(_released))
        except CandorError:
            del _hooks[number]
            raise

    def _run(self, row: Row) -> None:
        ids = row.text[: row.n_text] if row.n_text else []
        logits = _view(row)
        made = self.processor(ids, logits)
        if made is not None:
            if len(made) != row.n_logits:
                raise ValueError(f"the processor returned {len(made)} numbers, expected {row.n_logits}")
            logits[:] = made if not isinstance(logits, memoryview) else memoryview(_floats(made))


def is_inside() -> bool:
    """Whether this thread is an engine's, which a processor holds up."""
    return getattr(_inside, "is_set", False)


def _view(row: Row) -> Any:
    numpy = _numpy()
    if numpy is None:
        whole = ctypes.cast(row.logits, POINTER(c_float * row.n_logits)).contents
        return memoryview(whole).cast("B").cast("f")
    return numpy.ctypeslib.as_array(row.logits, shape=(row.n_logits,))


@functools.lru_cache(maxsize=None)
def _numpy() -> Any:
    """None where it is not installed, which takes long to find out."""
    try:
        import numpy
    except ImportError:
        return None
    return numpy


def _floats(values: Sequence[float]) -> Any:
    import array

    return array.array("f", values)


def _address(function: Any) -> c_void_p:
    return ctypes.cast(function, c_void_p)


# By the number that the library hands back. Removed when no run can call it any more.
_hooks: dict[int, Hook] = {}
_numbers = itertools.count(1)
_inside = threading.local()


def _call(number: int, row: Any) -> int:
    hook = _hooks[number]
    _inside.is_set = True
    try:
        hook._run(row.contents)
        return 0
    except BaseException as error:  # the run ends with it, in the thread that waits for the run
        hook.error = error
        return 1
    finally:
        _inside.is_set = False


def _release(number: int) -> None:
    _hooks.pop(number, None)


_called = ctypes.CFUNCTYPE(c_int, c_void_p, POINTER(Row))(_call)
_released = ctypes.CFUNCTYPE(None, c_void_p)(_release)
