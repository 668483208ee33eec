"""What is being typed at a place in an unfinished formula: a relation, or an entity of one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from lmpnn_kge.query.sparql.read import is_sparql

Role = Literal["relation", "entity", "none"]

#: The end of an edge.
EdgeEnd = Literal["head", "tail"]

#: Like the tokens of the parser, but nothing is wrong: a quote may be open, any sign is a token.
_TOKEN = re.compile(
    r"""(?P<name>[\w/\-:.+]+)
      | "(?P<quoted>(?:[^"\\]|\\.)*)"?
      | \?(?P<variable>\w*)
      | (?P<sign>!=|\S)""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True)
class Cursor:
    """The name at a place: what it stands for, and the span of the text that it takes.

    An entity is at one end of a relation, or it is compared with another term.
    """

    role: Role
    start: int
    end: int
    prefix: str = ""  # the part of the name before the place
    relation: str | None = None
    at: EdgeEnd | None = None


@dataclass
class _Brackets:
    """Open brackets: of a relation, with the number of commas in it, or of a group."""

    relation: str | None
    commas: int = 0


def cursor_at(text: str, place: int) -> Cursor:
    """What a user types at a place, from 0 to the length of the text."""
    place = max(0, min(place, len(text)))
    if is_sparql(text):
        return Cursor("none", place, place)
    open_brackets: list[_Brackets] = [_Brackets(None)]
    before, name = "", None  # the last token, and its value if it is a name
    here: re.Match[str] | None = None
    for token in _TOKEN.finditer(text):
        if token.start() >= place:
            break
        kind, value = token.lastgroup, token[0]
        if kind in ("name", "quoted", "variable") and place <= token.end():
            here = token
            break
        if value == "(":
            open_brackets.append(_Brackets(name))
        elif value == ")" and len(open_brackets) > 1:
            open_brackets.pop()
        elif value == ",":
            open_brackets[-1].commas += 1
        before, name = value, token[kind] if kind in ("name", "quoted") else None
    span = (place, place) if here is None else here.span()
    role = _role(before, open_brackets[-1])
    if role == "none" or (here is not None and here.lastgroup == "variable"):
        return Cursor("none", *span)
    prefix = "" if here is None else _typed(here, place)
    inner = open_brackets[-1]
    if role == "relation" or inner.relation is None:
        return Cursor(role, *span, prefix)
    return Cursor(role, *span, prefix, inner.relation, "tail" if inner.commas else "head")


def _role(before: str, inner: _Brackets) -> Role:
    """What can follow the last token."""
    if inner.relation is not None:
        return "entity" if before in ("(", ",") and inner.commas < 2 else "none"
    if before in ("=", "!=", "≠"):
        return "entity"
    return "relation" if before in ("", "(", "&", "|", "!", "∧", "∨", "¬") else "none"


def _typed(token: re.Match[str], place: int) -> str:
    """The part of a name before a place, without its quote."""
    typed = token.string[token.start() : place].removeprefix('"')
    closed = token.lastgroup == "quoted" and place == token.end() and token[0] != '"'
    return typed.removesuffix('"') if closed else typed
