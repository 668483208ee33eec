"""The parser: text becomes a formula, and every mistake a QueryError that names its column.

formula   =  conjunct ("|" conjunct)*
conjunct  =  part ("&" part)*
part      =  "!" part  |  "(" formula ")"  |  name "(" term "," term ")"  |  term ("="|"!=") term
term      =  name  |  "?"  |  "?1"  |  "?x"
name      =  letters, digits and any of _ / - : . +   |   "anything in quotes"

∧, ∨, ¬ and ≠ are read as &, |, ! and !=. A SPARQL SELECT query is read as well.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from lmpnn_kge.errors import QueryError, short
from lmpnn_kge.query.formula import (
    FREE,
    Atom,
    Constant,
    Equal,
    Formula,
    Not,
    Or,
    Term,
    Variable,
    conjunction,
    free_variables,
    map_terms,
)
from lmpnn_kge.query.sparql.read import from_sparql, is_sparql

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<name>[\w/\-:.+]+)
      | "(?P<quoted>(?:[^"\\]|\\.)*)"
      | \?(?P<variable>\w*)
      | (?P<sign>!=|[!&|(),=∧∨¬≠])
      | (?P<end>\Z)
    )""",
    re.VERBOSE | re.DOTALL,
)
_SIGNS = {"∧": "&", "∨": "|", "¬": "!", "≠": "!="}
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r"}

#: Characters of a formula, and brackets and negations that may be nested. Nobody writes or nests as
#: many by hand.
MAX_LENGTH, MAX_DEPTH = 100_000, 100


@dataclass(frozen=True)
class _Token:
    kind: str  # name, variable, sign or end
    value: str
    column: int


@dataclass(frozen=True)
class Query:
    """A question that was read, with the number of answers that the LIMIT of SPARQL allows."""

    formula: Formula
    limit: int | None = None
    text: str | None = None  # in which the names of the formula have their columns


def parse(text: str) -> Formula:
    """Read a question, a formula or SPARQL; QueryError if it does not ask for `?`."""
    return read_query(text).formula


def read_query(question: str | Formula) -> Query:
    """Read a question, unless it is a formula already."""
    if not isinstance(question, str):
        return Query(with_checked_numbers(question))
    _check_length(question)
    if is_sparql(question):
        query = from_sparql(question)
        return Query(query.formula, query.limit)
    formula = parse_any(question)
    if not free_variables(formula):
        raise QueryError("the formula asks for nothing: write ? for the answer", question, 0)
    return Query(with_checked_numbers(formula), None, question)


def with_checked_numbers(formula: Formula) -> Formula:
    """The formula, if its free variables are `?` or run from `?1` to `?k`; a sole `?1` is `?`."""
    free = free_variables(formula)
    if len(free) > 1 and FREE in free:
        raise QueryError(
            f"the formula has both ? and {free[1]}; to ask for several entities, number all of "
            "them: ?1, ?2, …"
        )
    for number, variable in enumerate(free if FREE not in free else (), 1):
        if variable.name != str(number):
            raise QueryError(
                f"the formula asks for {variable}, but not for ?{number}; number what is asked for "
                "from ?1 on, and name other variables with letters: ?x"
            )
    if len(free) != 1:
        return formula
    return map_terms(formula, lambda term: FREE if term == free[0] else term)


def check_single(formula: Formula) -> None:
    """QueryError if a formula asks for several entities at once."""
    check_arity(formula, [""])


def check_arity(formula: Formula, answer: Sequence[str]) -> None:
    """QueryError if an answer does not have as many entities as a formula asks for."""
    free = free_variables(formula)
    if free and len(free) != len(answer):
        raise QueryError(
            f"the formula asks for {_entities(len(free))} ({', '.join(map(str, free))}), here it "
            f"must ask for {_entities(len(answer))}"
        )


def _entities(count: int) -> str:
    return "one entity" if count == 1 else f"{count} entities at once"


def parse_any(text: str) -> Formula:
    """Read a formula, with or without `?`."""
    _check_length(text)
    parser = _Parser(text)
    if parser.accept("end", ""):
        raise QueryError("the formula is empty")
    formula = parser.formula()
    parser.expect("end", "", "the end, & or |")
    return formula


def parse_term(text: str) -> Term:
    """Read a name or a variable by itself."""
    parser = _Parser(text)
    term = parser.term("a name, ? or a variable such as ?x")
    parser.expect("end", "", "the end")
    return term


def _check_length(text: str) -> None:
    if len(text) > MAX_LENGTH:
        raise QueryError(
            f"the formula has {len(text):,} characters; at most {MAX_LENGTH:,} can be read"
        )


class _Parser:
    """A recursive descent: one method for each rule of the grammar above."""

    def __init__(self, text: str):
        self.text = text
        self.tokens = _tokens(text)
        self.position = 0  # in tokens
        self.depth = 0

    @property
    def next(self) -> _Token:
        return self.tokens[self.position]

    def accept(self, kind: str, value: str) -> bool:
        """Whether the next token is this one; if so, step over it."""
        matches = (self.next.kind, self.next.value) == (kind, value)
        self.position += matches
        return matches

    def expect(self, kind: str, value: str, wanted: str) -> None:
        if not self.accept(kind, value):
            raise self.error(f"expected {wanted}")

    def error(self, message: str) -> QueryError:
        """A mistake at the next token, with a hint at the two that users make most."""
        before, token = self.tokens[self.position - 1], self.next
        name = "the end" if token.kind == "end" else repr(short(token.value or "?"))
        if {before.value.lower(), token.value.lower()} & {"and", "or", "not"}:
            name += "; write & for and, | for or, ! for not"
        elif before.kind == token.kind == "name":
            together = short(f"{before.value} {token.value}")
            name += f'; a name with spaces is written in quotes: "{together}"'
        return QueryError(f"{message}, found {name}", self.text, token.column)

    def formula(self) -> Formula:
        parts = [self.conjunct()]
        while self.accept("sign", "|"):
            parts.append(self.conjunct())
        return Or(tuple(parts)) if len(parts) > 1 else parts[0]

    def conjunct(self) -> Formula:
        parts = [self.part()]
        while self.accept("sign", "&"):
            parts.append(self.part())
        return conjunction(parts)

    def part(self) -> Formula:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.error(f"more than {MAX_DEPTH} nested brackets and negations")
        try:
            if self.accept("sign", "!"):
                return Not(self.part())
            if self.accept("sign", "("):
                inner = self.formula()
                self.expect("sign", ")", "& or | or a closing bracket")
                return inner
            return self.literal()
        finally:
            self.depth -= 1

    def literal(self) -> Formula:
        start = self.next
        left = self.term("a relation, an entity, ?, ! or (")
        if isinstance(left, Constant) and self.accept("sign", "("):
            head = self.term("an entity or a variable")
            self.expect("sign", ",", "a comma: a relation has a head and a tail")
            tail = self.term("an entity or a variable")
            self.expect("sign", ")", "a closing bracket: a relation has a head and a tail")
            return Atom(left.name, head, tail, start.column)
        if self.accept("sign", "="):
            return Equal(left, self.term("an entity or a variable"))
        if self.accept("sign", "!="):
            return Not(Equal(left, self.term("an entity or a variable")))
        raise self.error("expected ( after a relation, = or != after an entity or a variable")

    def term(self, wanted: str) -> Term:
        token = self.next
        if token.kind not in ("name", "variable"):
            raise self.error(f"expected {wanted}")
        self.position += 1
        if token.kind == "variable":
            return Variable(token.value)
        return Constant(token.value, token.column)


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    start = 0
    while not tokens or tokens[-1].kind != "end":
        match = _TOKEN.match(text, start)
        if match is None:
            column = start + len(text[start:]) - len(text[start:].lstrip())
            wrong = text[column]
            problem = "a closing quote is missing" if wrong == '"' else "unexpected character"
            instead = '; names are quoted with "' if wrong in "'`‘’“”«»" else ""
            raise QueryError(f"{problem}: {wrong!r}{instead}", text, column)
        kind = match.lastgroup
        assert kind is not None
        value, column = match[kind], match.start(kind)
        if kind == "quoted":
            unescaped = re.sub(r"\\(.)", lambda m: _ESCAPED.get(m[1], m[1]), value, flags=re.DOTALL)
            kind, value, column = "name", unescaped, column - 1  # the quote
        elif kind == "variable":
            column -= 1  # the question mark
        elif kind == "sign":
            value = _SIGNS.get(value, value)
        tokens.append(_Token(kind, value, column))
        start = match.end()
    return tokens
