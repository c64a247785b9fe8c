"""What can go wrong, as one tree of exceptions. Each has `kind`, the name of the library's own kind of error, and
`field`, the option that is to blame, or an empty string."""

from __future__ import annotations

__all__ = [
    "Busy", "CandorError", "Cancelled", "Closed", "ContextLength", "InternalError", "InvalidInput", "IoError", "NotFound",
    "OutOfMemory", "Overloaded", "ParseError", "RateLimited", "Unsupported",
]


class CandorError(Exception):
    """Of the engine: one line that names the thing, what was seen and what was expected."""

    kind = "error"

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.field = field


class InvalidInput(CandorError, ValueError):
    """The file, request or option is wrong."""

    kind = "invalid_input"


class NotFound(CandorError, LookupError):
    """A named thing does not exist."""

    kind = "not_found"


class Closed(NotFound):
    """A model, stream or session was used after it was closed."""

    kind = "closed"


class Unsupported(CandorError):
    """It is understood, and not offered."""

    kind = "unsupported"


class ContextLength(CandorError, ValueError):
    """The prompt does not fit the context."""

    kind = "context_length"


class Overloaded(CandorError):
    """The queue is full: try again later."""

    kind = "overloaded"


class RateLimited(CandorError):
    """Too many requests by one key."""

    kind = "rate_limited"


class Busy(CandorError):
    """Something that is needed is in use: try again later."""

    kind = "busy"


class OutOfMemory(CandorError, MemoryError):
    """Memory does not suffice."""

    kind = "out_of_memory"


class IoError(CandorError, OSError):
    """A file could not be read or written."""

    kind = "io"

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class Cancelled(CandorError):
    """It was cancelled."""

    kind = "cancelled"


class InternalError(CandorError):
    """A fault of the library: please report it."""

    kind = "internal"


class ParseError(CandorError, ValueError):
    """A reply is no value of the type that was asked for. `text` is the reply."""

    kind = "parse"

    def __init__(self, message: str, text: str) -> None:
        super().__init__(message, "into")
        self.text = text


# By candor_status (include/candor/candor.h).
BY_STATUS: dict[int, type[CandorError]] = {
    1: InvalidInput, 2: NotFound, 3: Unsupported, 4: ContextLength, 5: Overloaded, 6: RateLimited, 7: Busy, 8: OutOfMemory,
    9: IoError, 10: Cancelled, 11: InternalError,
}
