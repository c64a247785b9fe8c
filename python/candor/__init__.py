"""Candor from Python: `candor.Model().generate("Once upon a time").text`.

The same model, prompt, options and seed give the same tokens and logprobs, bit for bit: alone or in a list, streamed or
not, whatever the threads and the processor."""

from __future__ import annotations

from ._library import library as _library
from .constraints import Choice, Constraint, Gbnf, JsonObject, JsonSchema, Lark, Regex, schema_of
from .errors import (
                     Busy,
                     Cancelled,
                     CandorError,
                     Closed,
                     ContextLength,
                     InternalError,
                     InvalidInput,
                     IoError,
                     NotFound,
                     OutOfMemory,
                     Overloaded,
                     ParseError,
                     RateLimited,
                     Unsupported,
)
from .model import Message, Model, Prompt, Session, shipped_model
from .rows import Rows
from .sampling import Sampling
from .server import Server, serve
from .stream import Completion, Event, Stream
from .tools import Call, Tool, Toolbox

__version__ = _library.version
numerics: int = _library.numerics  # answers of two versions with the same number are the same, bit for bit

__all__ = [
    "Busy", "Call", "CandorError", "Cancelled", "Choice", "Closed", "Completion", "Constraint", "ContextLength", "Event",
    "Gbnf", "InternalError", "InvalidInput", "IoError", "JsonObject", "JsonSchema", "Lark", "Message", "Model", "NotFound",
    "OutOfMemory", "Overloaded", "ParseError", "Prompt", "RateLimited", "Regex", "Rows", "Sampling", "Server", "Session",
    "Stream", "Tool", "Toolbox", "Unsupported", "numerics", "schema_of", "serve", "shipped_model",
]
