"""Tools from typed functions: their names, docstrings and annotations become what a model is told of them, and its reply
becomes a call with values of their types."""

from __future__ import annotations

import inspect
import json
import re
import typing
from dataclasses import dataclass
from typing import Any, Callable, Iterable, Mapping

from .constraints import Constraint, JsonSchema, schema_of, value_of
from .errors import InvalidInput, ParseError


class Tool:
    """Of a function whose parameters are annotated. The docstring's first paragraphs describe it; its lines
    `name: text` under `Args:`, or `:param name: text`, describe parameters. Those with defaults may be left out."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.name = function.__name__
        text = inspect.getdoc(function) or ""
        self.description = re.split(r"\n\s*(?:Args|Arguments|Parameters|Returns|Raises):|\n\s*:param ", text)[0].strip()
        told = _told_of_parameters(text)
        hints = typing.get_type_hints(function)
        self._types: dict[str, Any] = {}
        properties: dict[str, Any] = {}
        required: list[str] = []
        for name, parameter in inspect.signature(function).parameters.items():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
                raise InvalidInput(f"tool {self.name}: {parameter} has no name of its own: name each parameter", name)
            if name not in hints:
                raise InvalidInput(f"tool {self.name}: parameter {name} has no type: annotate it", name)
            self._types[name] = hints[name]
            properties[name] = {**schema_of(hints[name]), **({"description": told[name]} if name in told else {})}
            if parameter.default is parameter.empty:
                required.append(name)
        self._required = required
        self.parameters: dict[str, Any] = {"type": "object", "properties": properties, "required": required,
                                           "additionalProperties": False}

    @property
    def schema(self) -> dict[str, Any]:
        """As OpenAI's interface and chat templates take tools."""
        return {"type": "function",
                "function": {"name": self.name, "description": self.description, "parameters": self.parameters}}

    def call(self, arguments: Mapping[str, Any]) -> "Call":
        """With values of JSON, as the parameters' types; ParseError where they are not."""
        text = json.dumps(dict(arguments), default=str)
        unknown = [name for name in arguments if name not in self._types]
        missing = [name for name in self._required if name not in arguments]
        if unknown or missing:
            raise ParseError(f"{self.name}: there is no parameter {unknown[0]!r}" if unknown
                             else f"{self.name}: parameter {missing[0]!r} is missing", text)
        try:
            return Call(self, {name: value_of(self._types[name], value) for name, value in arguments.items()})
        except (ValueError, TypeError, KeyError) as error:
            raise ParseError(f"{self.name}: {error}", text) from None


@dataclass
class Call:
    """What a model wants to be called."""

    tool: Tool
    arguments: dict[str, Any]

    @property
    def name(self) -> str:
        """Of the function."""
        return self.tool.name

    def run(self) -> Any:
        """Calls the function; what it raises is the caller's."""
        return self.tool.function(**self.arguments)


class Toolbox:
    """Several tools, of different names."""

    def __init__(self, functions: Iterable[Any]) -> None:
        self.tools: dict[str, Tool] = {}
        for function in functions:
            tool = function if isinstance(function, Tool) else Tool(function)
            if tool.name in self.tools:
                raise InvalidInput(f"two tools are called {tool.name}", "tools")
            self.tools[tool.name] = tool

    @property
    def schemas(self) -> list[dict[str, Any]]:
        """For the `tools` of a request to a server."""
        return [tool.schema for tool in self.tools.values()]

    @property
    def constraint(self) -> Constraint:
        """A reply that is a call of one of them."""
        return JsonSchema({"anyOf": [
            {"type": "object", "properties": {"name": {"const": tool.name}, "arguments": tool.parameters},
             "required": ["name", "arguments"], "additionalProperties": False} for tool in self.tools.values()]})

    def parse(self, text: str) -> Call:
        """The call that such a reply is."""
        try:
            reply = json.loads(text)
        except ValueError as error:
            raise ParseError(f"the reply is no call: {error}", text) from None
        if not isinstance(reply, dict):
            raise ParseError("the reply is no call: it is no JSON object", text)
        return self.read(reply.get("name"), reply.get("arguments"))

    def read(self, name: Any, arguments: Any) -> Call:
        """A call as a server tells it: `read(call.function.name, call.function.arguments)`."""
        if name not in self.tools:
            raise ParseError(f"the reply calls {name!r}, which is none of {', '.join(self.tools)}", str(arguments))
        try:
            values = json.loads(arguments) if isinstance(arguments, str) else arguments
        except ValueError as error:
            raise ParseError(f"{name}: the arguments are no JSON: {error}", str(arguments)) from None
        if not isinstance(values, dict):
            raise ParseError(f"{name}: the arguments are no object", str(arguments))
        return self.tools[name].call(values)


def _told_of_parameters(text: str) -> dict[str, str]:
    told = dict(re.findall(r"^\s*:param (\w+):\s*(.+)$", text, re.MULTILINE))
    listed = re.search(r"\n\s*(?:Args|Arguments|Parameters):\n((?:[ \t]+.*\n?)+)", text + "\n")
    if listed:
        told.update((name, about.strip()) for name, about in
                    re.findall(r"^\s+(\w+)(?:\s*\([^)]*\))?:\s*(.+)$", listed.group(1), re.MULTILINE))
    return told
