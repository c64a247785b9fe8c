"""What a reply must look like: a regular expression, a grammar, a JSON schema, one of several texts, or a type of Python,
into which the reply is then read."""

from __future__ import annotations

import dataclasses
import enum
import json
import typing
from dataclasses import dataclass
from typing import Any, Mapping, Sequence

from .errors import InvalidInput, ParseError


@dataclass(frozen=True)
class Constraint:
    """`kind` and `source` as candor_constrain() takes them."""

    kind: str
    source: str


def Regex(pattern: str) -> Constraint:
    """The reply matches this expression as a whole."""
    return Constraint("regex", pattern)


def Lark(grammar: str) -> Constraint:
    """The reply is a sentence of this grammar."""
    return Constraint("lark", grammar)


def Gbnf(grammar: str) -> Constraint:
    """As llama.cpp writes grammars."""
    return Constraint("gbnf", grammar)


def JsonSchema(schema: Mapping[str, Any]) -> Constraint:
    """The reply is JSON that the schema accepts."""
    return Constraint("json_schema", json.dumps(schema))


def JsonObject() -> Constraint:
    """The reply is some JSON object."""
    return Constraint("json_object", "")


def Choice(texts: Sequence[str]) -> Constraint:
    """The reply is one of these."""
    return Constraint("choice", json.dumps(list(texts)))


_PLAIN: dict[Any, dict[str, Any]] = {
    str: {"type": "string"}, int: {"type": "integer"}, float: {"type": "number"}, bool: {"type": "boolean"},
    type(None): {"type": "null"}, Any: {},
}


def schema_of(kind: Any) -> dict[str, Any]:
    """The JSON schema of a type: a dataclass, a pydantic model, a TypedDict, an Enum, a Literal, and lists, dicts, tuples and
    unions of those and of plain types."""
    if kind in _PLAIN:
        return dict(_PLAIN[kind])
    if hasattr(kind, "model_json_schema"):
        return dict(kind.model_json_schema())
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Literal:
        return {"enum": list(inner)}
    if _is_union(kind):
        return {"anyOf": [schema_of(each) for each in inner]}
    if origin is list:
        return {"type": "array", "items": schema_of(inner[0])}
    if origin is tuple:
        return {"type": "array", "prefixItems": [schema_of(each) for each in inner], "items": False, "minItems": len(inner)}
    if origin is dict:
        return {"type": "object", "additionalProperties": schema_of(inner[1])}
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return {"enum": [each.value for each in kind]}
    if dataclasses.is_dataclass(kind) or hasattr(kind, "__total__"):  # the latter: a TypedDict
        hints = typing.get_type_hints(kind)
        return {"type": "object", "properties": {name: schema_of(each) for name, each in hints.items()},
                "required": list(hints), "additionalProperties": False}
    raise InvalidInput(f"into: {kind!r} is no type that a reply can be read into", "into")


def constraint_of(kind: Any) -> Constraint:
    """For a type: its schema, or a choice where all of it are texts."""
    schema = schema_of(kind)
    texts = schema.get("enum")
    if texts and all(isinstance(text, str) for text in texts):
        return Choice(texts)
    return JsonSchema(schema)


def parse_into(kind: Any, text: str) -> Any:
    """The reply as a value of the type; ParseError where it is none, as a reply that max_tokens cut off."""
    try:
        if constraint_of(kind).kind == "choice":
            return value_of(kind, text)
        if hasattr(kind, "model_validate_json"):
            return kind.model_validate_json(text)
        return value_of(kind, json.loads(text))
    except (ValueError, TypeError, KeyError) as error:
        raise ParseError(f"the reply is no {getattr(kind, '__name__', kind)}: {error}", text) from None


def value_of(kind: Any, value: Any) -> Any:
    """A value of JSON as one of the type; ValueError, TypeError or KeyError where it is none."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if _is_union(kind):
        return _first_of(inner, value)
    if origin is list:
        return [value_of(inner[0], each) for each in value]
    if origin is tuple:
        return tuple(value_of(each, one) for each, one in zip(inner, value))
    if origin is dict:
        return {name: value_of(inner[1], each) for name, each in value.items()}
    if origin is typing.Literal:
        if value not in inner:
            raise ValueError(f"{value!r} is none of {inner}")
        return value
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return kind(value)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        hints = typing.get_type_hints(kind)
        return kind(**{name: value_of(hints[name], each) for name, each in value.items()})
    if hasattr(kind, "model_validate"):
        return kind.model_validate(value)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if kind in _PLAIN and kind is not Any and type(value) is not kind:
        raise TypeError(f"{value!r} is no {getattr(kind, '__name__', kind)}")
    return value


def _is_union(kind: Any) -> bool:
    return typing.get_origin(kind) is typing.Union or type(kind).__name__ == "UnionType"


# As the first of the types that takes it.
def _first_of(kinds: Sequence[Any], value: Any) -> Any:
    for kind in kinds:
        try:
            return value_of(kind, value)
        except (ValueError, TypeError, KeyError):
            continue
    raise ValueError(f"{value!r} is none of {', '.join(getattr(kind, '__name__', str(kind)) for kind in kinds)}")
