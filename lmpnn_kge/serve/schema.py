"""Types of requests and responses: read from text or JSON, and described as JSON Schema."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from types import NoneType, UnionType
from typing import (
    Any,
    Literal,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from lmpnn_kge.errors import ConfigError, choices, short

P = TypeVar("P")

#: Words for the types that a parameter can have.
_WORDS = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}

_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}

_JSON = {str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null"}


def parameter(about: str, default: Any = dataclasses.MISSING, least: float | None = None) -> Any:
    """A field of a request: what it means, its default if it has one, and the least value."""
    return dataclasses.field(default=default, metadata={"about": about, "least": least})


def read_parameters(kind: type[P], values: Mapping[str, Any], *, as_text: bool) -> P:
    """A request from the values of its fields, which are texts in a URL or come from JSON.

    ConfigError says which one is wrong.
    """
    hints = get_type_hints(kind)
    fields = {field.name: field for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    for name in values:
        if name not in fields:
            raise ConfigError(
                f"there is no parameter {short(name)!r}; {choices(short(name), fields)}"
            )
    read = {}
    for name, field in fields.items():
        if name not in values:
            if field.default is dataclasses.MISSING:
                raise ConfigError(f"the parameter {name} is missing: {field.metadata['about']}")
            continue
        value = _read(name, values[name], hints[name], as_text)
        least = field.metadata["least"]
        if least is not None and value is not None and value < least:
            raise ConfigError(f"{name} is {short(value)}, but must be at least {least:g}")
        read[name] = value
    return kind(**read)


def _read(name: str, value: Any, hint: Any, as_text: bool) -> Any:
    """A value of a type; the members of a union are tried in their order."""
    members = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    for member in members:
        read = _read_as(member, value, as_text)
        if read is not _WRONG:
            return read
    if get_origin(members[0]) is Literal:
        raise ConfigError(f"{name} is {short(value)!r}; {choices(short(value), members_of(hint))}")
    words = " or ".join(dict.fromkeys(_words(member) for member in members if member != NoneType))
    raise ConfigError(f"{name} is {short(value)!r}, but must be {words}")


_WRONG = object()


def _read_as(kind: Any, value: Any, as_text: bool) -> Any:
    """A value as one type, or _WRONG."""
    if kind is NoneType:
        return None if value is None else _WRONG
    if get_origin(kind) is Literal:
        return value if value in get_args(kind) else _WRONG
    if get_origin(kind) is list:
        items = value.split(",") if as_text and isinstance(value, str) else value
        if not isinstance(items, list):
            return _WRONG
        read = [_read_as(get_args(kind)[0], item, as_text) for item in items]
        return _WRONG if any(item is _WRONG for item in read) else read
    if as_text and isinstance(value, str) and kind is not str:
        return _from_text(kind, value)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value) if abs(value) < 2**53 else math.inf
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        return _WRONG
    is_number = isinstance(value, int | float)
    return _WRONG if is_number and not abs(value) < 2**53 else value


def _from_text(kind: Any, text: str) -> Any:
    if kind is bool:
        return _BOOLEANS.get(text.lower(), _WRONG)
    if len(text) > 30:  # no number that is meant
        return _WRONG
    try:
        return _read_as(kind, kind(text), as_text=False)
    except ValueError:
        return _WRONG


def _words(kind: Any) -> str:
    if get_origin(kind) is list:
        return "a list, each " + _words(get_args(kind)[0])
    return _WORDS.get(kind, "something else")


def members_of(hint: Any) -> tuple[str, ...]:
    """The values of a Literal, which may be part of a union."""
    if get_origin(hint) is Literal:
        return get_args(hint)
    return tuple(value for member in get_args(hint) for value in members_of(member))


def json_schema(hint: Any, named: dict[str, Any]) -> dict[str, Any]:
    """The JSON Schema of a type; those of its TypedDicts are added to the named ones."""
    origin = get_origin(hint)
    if hint is Any:
        return {}
    if is_typeddict(hint):
        if hint.__name__ not in named:
            named[hint.__name__] = {}  # a type may contain itself
            named[hint.__name__] = _object_schema(hint, named)
        return {"$ref": f"#/components/schemas/{hint.__name__}"}
    if origin is Literal:
        return {"type": "string", "enum": list(get_args(hint))}
    if origin is list:
        return {"type": "array", "items": json_schema(get_args(hint)[0], named)}
    if origin is dict:
        return {"type": "object", "additionalProperties": json_schema(get_args(hint)[1], named)}
    if origin in (Union, UnionType):
        return {"anyOf": [json_schema(member, named) for member in get_args(hint)]}
    return {"type": _JSON[hint]}


def _object_schema(kind: Any, named: dict[str, Any]) -> dict[str, Any]:
    properties = {name: json_schema(hint, named) for name, hint in get_type_hints(kind).items()}
    return {**_described(kind), "properties": properties, "required": list(properties)}


def parameters_schema(kind: type[Any], named: dict[str, Any]) -> dict[str, Any]:
    """The JSON Schema of a request."""
    hints = get_type_hints(kind)
    properties, required = {}, []
    for field in dataclasses.fields(kind):
        schema = json_schema(hints[field.name], named)
        schema["description"] = field.metadata["about"]
        if field.metadata["least"] is not None:
            schema["minimum"] = field.metadata["least"]
        if field.default is dataclasses.MISSING:
            required.append(field.name)
        elif field.default is not None:
            schema["default"] = field.default
        properties[field.name] = schema
    return {**_described(kind), "properties": properties, "required": required}


def _described(kind: Any) -> dict[str, Any]:
    """The beginning of the schema of a class with named fields and no others."""
    return {"type": "object", "description": kind.__doc__, "additionalProperties": False}
