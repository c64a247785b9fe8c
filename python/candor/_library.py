"""libcandor by ctypes: the functions of include/candor/candor.h, with their errors as exceptions. ctypes lets other threads
of Python run while a function works."""

from __future__ import annotations

import ctypes
import os
import weakref
from ctypes import POINTER, byref, c_char_p, c_double, c_float, c_int, c_int32, c_int64, c_size_t, c_uint64, c_void_p
from pathlib import Path
from typing import Any, Callable, NoReturn

from .errors import BY_STATUS, CandorError, Closed, InternalError, InvalidInput

ABI = 0
TIMEOUT = 100
END = 101


class Logprob(ctypes.Structure):
    _fields_ = [("token", c_int32), ("logprob", c_float)]


class Event(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t), ("choice", c_int32), ("token", c_int32), ("text", POINTER(ctypes.c_char)), ("text_size", c_size_t),
        ("finish", c_int), ("stop_index", c_int32), ("has_logprob", c_int32), ("logprob", c_float),
        ("top", POINTER(Logprob)), ("n_top", c_size_t),
    ]


_HANDLE = c_uint64
_OUT = POINTER(c_uint64)
_IDS = POINTER(c_int32)
# Arguments, without the last one, which is where the error goes.
_CALLS: dict[str, list[Any]] = {
    "options_new": [_OUT], "request_new": [_OUT], "set": [_HANDLE, c_char_p, c_char_p],
    "open": [c_char_p, _HANDLE, _OUT], "info": [_HANDLE, _OUT], "metrics": [_HANDLE, _OUT],
    "tokenize": [_HANDLE, c_char_p, c_size_t, c_int, c_int, _OUT], "detokenize": [_HANDLE, _IDS, c_size_t, _OUT],
    "token_bytes": [_HANDLE, c_int32, _OUT], "apply_template": [_HANDLE, c_char_p, _OUT],
    "prompt_text": [_HANDLE, c_char_p, c_size_t], "prompt_tokens": [_HANDLE, _IDS, c_size_t],
    "prompt_messages": [_HANDLE, c_char_p], "constrain": [_HANDLE, c_char_p, c_char_p],
    "on_logits": [_HANDLE, c_void_p, c_void_p, c_void_p],
    "start": [_HANDLE, _HANDLE, _OUT], "next": [_HANDLE, POINTER(Event), c_int64], "cancel": [_HANDLE],
    "run_fd": [_HANDLE, POINTER(c_int)],
    "summary": [_HANDLE, _OUT], "explanation": [_HANDLE, _OUT],
    "receipt": [_HANDLE, _OUT], "verify": [_HANDLE, c_char_p, c_size_t, _OUT],
    "embed": [_HANDLE, c_char_p, c_size_t, c_char_p, _OUT], "score": [_HANDLE, _IDS, c_size_t, _OUT],
    "read": [_HANDLE, c_char_p, _OUT],
    "load_adapter": [_HANDLE, c_char_p, c_char_p, c_double], "drop_adapter": [_HANDLE, c_char_p],
    "adapters": [_HANDLE, _OUT],
    "score_from": [_HANDLE, _IDS, c_size_t, c_size_t, _OUT],
    "logits": [_HANDLE, _IDS, c_size_t, _OUT], "hidden": [_HANDLE, _IDS, c_size_t, _OUT],
    "session_new": [_HANDLE, _OUT], "session_say": [_HANDLE, c_char_p, c_char_p, c_size_t],
    "session_branch": [_HANDLE, _OUT], "session_start": [_HANDLE, _HANDLE, _OUT], "session_messages": [_HANDLE, _OUT],
}


def find_library() -> str:
    """The file that is loaded: CANDOR_LIBRARY, the package's own, or the system's."""
    named = os.environ.get("CANDOR_LIBRARY")
    if named:
        return named
    own = Path(__file__).parent / "lib" / "libcandor.so.0"
    return str(own) if own.exists() else "libcandor.so.0"


class Library:
    """The functions, by their names without candor_."""

    def __init__(self, path: str) -> None:
        try:
            self._dll = ctypes.CDLL(path)
        except OSError as error:
            raise ImportError(f"{path} cannot be loaded ({error}); install the package, or name the file by "
                              "CANDOR_LIBRARY") from None
        if not hasattr(self._dll, "candor_abi") or self._dll.candor_abi() != ABI:
            raise ImportError(f"{path} has another interface than ABI {ABI}, which this package is written for")
        self._dll.candor_version.restype = c_char_p
        self._calls: dict[str, Callable[..., int]] = {}
        for name, arguments in _CALLS.items():
            function = getattr(self._dll, f"candor_{name}")
            function.argtypes = [*arguments, _OUT]
            self._calls[name] = function
        self._close = self._dll.candor_close
        self._close.argtypes = [_HANDLE]
        for name, result in (("text", POINTER(ctypes.c_char)), ("tokens", _IDS), ("floats", POINTER(c_float))):
            function = getattr(self._dll, f"candor_{name}")
            function.argtypes = [_HANDLE, POINTER(c_size_t)]
            function.restype = result
        for name in ("error_message", "error_field"):
            getattr(self._dll, f"candor_{name}").argtypes = [_HANDLE]
            getattr(self._dll, f"candor_{name}").restype = c_char_p

    @property
    def version(self) -> str:
        return str(self._dll.candor_version().decode())

    @property
    def numerics(self) -> int:
        return int(self._dll.candor_numerics())

    def call(self, name: str, *arguments: Any) -> int:
        """The status: 0, TIMEOUT or END; anything else is raised."""
        error = c_uint64()
        status = self._calls[name](*arguments, byref(error))
        return status if status in (0, TIMEOUT, END) else self._fail(name, status, error)

    def puller(self, event: Event) -> Callable[[int, int], int]:
        """candor_next() of a run into this event, for who calls it for every token: (run, timeout in ms) to the status."""
        error = c_uint64()
        function, where, told = self._calls["next"], byref(event), byref(error)

        def pull(run: int, timeout_ms: int) -> int:
            status = function(run, where, timeout_ms, told)
            return status if status in (0, TIMEOUT, END) else self._fail("next", status, error)

        return pull

    def _fail(self, name: str, status: int, error: c_uint64) -> NoReturn:
        message = (self._dll.candor_error_message(error) or b"").decode("utf-8", "replace")
        field = (self._dll.candor_error_field(error) or b"").decode("utf-8", "replace")
        self._close(error)
        raise BY_STATUS.get(status, InternalError)(message or f"candor_{name} failed", field)

    def make(self, name: str, *arguments: Any) -> int:
        """Calls what gives a handle."""
        handle = c_uint64()
        self.call(name, *arguments, byref(handle))
        return handle.value

    def close(self, handle: int) -> None:
        self._close(handle)

    def text(self, name: str, *arguments: Any) -> bytes:
        handle = self.make(name, *arguments)
        size = c_size_t()
        at = self._dll.candor_text(handle, byref(size))
        copy = ctypes.string_at(at, size.value)
        self._close(handle)
        return copy

    def tokens(self, name: str, *arguments: Any) -> list[int]:
        handle = self.make(name, *arguments)
        size = c_size_t()
        at = self._dll.candor_tokens(handle, byref(size))
        copy = at[: size.value] if size.value else []
        self._close(handle)
        return list(copy)

    def floats(self, handle: int) -> tuple[int, int]:
        """Address and number of the floats of a handle."""
        size = c_size_t()
        at = self._dll.candor_floats(handle, byref(size))
        return ctypes.cast(at, ctypes.c_void_p).value or 0, size.value


library = Library(find_library())


class Handle:
    """A handle of the library, closed with the object, by close(), or at the interpreter's end. Of the process that made
    it: behind a fork it is refused."""

    def __init__(self, value: int, what: str) -> None:
        self._value = value
        self._what = what
        self._process = os.getpid()
        self._finalizer = weakref.finalize(self, _close_in, value, self._process)

    @property
    def value(self) -> int:
        if os.getpid() != self._process:
            raise CandorError(f"the {self._what} was made before a fork, and threads do not survive one: open the model in the "
                              "process that uses it (multiprocessing: the start method \"spawn\")")
        if not self._finalizer.alive:
            raise Closed(f"the {self._what} is closed")
        return self._value

    @property
    def is_open(self) -> bool:
        return self._finalizer.alive

    def close(self) -> None:
        """Any number of times."""
        self._finalizer()


def _close_in(value: int, process: int) -> None:
    if os.getpid() == process:
        library.close(value)


def ids_of(tokens: Any) -> tuple[Any, int]:
    """An array for C, and its length."""
    try:
        listed = [int(token) for token in tokens]
        return (c_int32 * max(1, len(listed)))(*listed), len(listed)
    except (TypeError, ValueError):
        raise InvalidInput("tokens: expected a sequence of whole numbers", "tokens") from None
