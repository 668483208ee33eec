"""The parameters of every request to the HTTP interface."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lmpnn_kge.query.completion import EdgeEnd
from lmpnn_kge.serve.schema import parameter

_RUN = "Name of the run; default: the first one that is served."
_QUESTION = "A formula, or a SPARQL query that selects one variable."
_METHOD = "Way to answer: hybrid, search, lmpnn or cqd-beam; default: the best that the run has."

#: What happens to entities that the relation was never seen with, as in `Run.ask`.
Candidates = Literal["typed-first", "typed", "any"]

Split = Literal["train", "valid", "test"]

Action = Literal["add", "negate", "remove", "replace", "ask", "deny", "allow", "remove-part"]


@dataclass(frozen=True, kw_only=True)
class Nothing:
    """No parameters."""


@dataclass(frozen=True, kw_only=True)
class OfRun:
    """Which run is meant."""

    run: str | None = parameter(_RUN, None)


@dataclass(frozen=True, kw_only=True)
class AskOptions(OfRun):
    """How questions are answered."""

    k: int | None = parameter("Number of answers; default: the LIMIT of SPARQL, or 10.", None, 1)
    offset: int = parameter("Number of answers to leave out before the first one.", 0, 0)
    method: str | None = parameter(_METHOD, None)
    predicted: bool = parameter("Whether to leave out known answers.", False)
    candidates: Candidates = parameter(
        "Entities that the relation was never seen with come last (typed-first), are left out "
        "(typed) or are ranked by score (any).",
        "typed-first",
    )
    explain: int = parameter("Number of reasons for each answer.", 0, 0)
    timeout: float | None = parameter("Seconds; at most the limit of the server.", None, 0)


@dataclass(frozen=True, kw_only=True)
class Ask(AskOptions):
    """A question to answer, also by edges that are missing."""

    question: str = parameter(_QUESTION)


@dataclass(frozen=True, kw_only=True)
class AnswerExactly(OfRun):
    """A question to answer by the edges of the graph alone."""

    question: str = parameter(_QUESTION)
    split: Split = parameter("Known edges: train, valid (train and valid) or test (all).", "test")
    k: int | None = parameter("Number of answers; default: the limit of the server.", None, 1)
    offset: int = parameter("Number of answers to leave out before the first one.", 0, 0)


@dataclass(frozen=True, kw_only=True)
class Explain(OfRun):
    """An answer to explain."""

    question: str = parameter(_QUESTION)
    answer: str = parameter("Id or label of the entity.")
    method: str | None = parameter(_METHOD, None)
    count: int = parameter("Number of reasons.", 3, 1)


@dataclass(frozen=True, kw_only=True)
class Draw(OfRun):
    """A question to check and to draw."""

    question: str = parameter(_QUESTION)
    format: Literal["json", "svg"] | None = parameter(
        "Data or a picture; default: by the header Accept, or json.", None
    )
    check: bool = parameter(
        "Whether a wrong question is a normal response that has the error, for a page that draws "
        "while somebody types.",
        False,
    )


@dataclass(frozen=True, kw_only=True)
class Edit:
    """A change to a question, by the numbers of nodes and edges in its drawing."""

    question: str = parameter("The question so far; an empty text is no question yet.", "")
    action: Action = parameter("What to do.")
    disjunct: int = parameter("Number of the graph in the drawing.", 0, 0)
    edge: int | None = parameter("Number of an edge: negate, remove, allow.", None, 0)
    edges: list[int] | None = parameter("Numbers of edges: deny.", None)
    node: int | None = parameter("Number of a node: replace, ask.", None, 0)
    by: str | None = parameter("New term: replace; default: a new variable.", None)
    relation: str | None = parameter("As in a formula, or = for equality: add.", None)
    head: int | str | None = parameter(
        "Number of a node, or a term: add; default: a new variable.", None
    )
    tail: int | str | None = parameter("Likewise.", None)
    negated: bool = parameter("Whether the new edge is negated: add.", False)


@dataclass(frozen=True, kw_only=True)
class Complete(OfRun):
    """The beginning of a name: at a place in a question, or by itself."""

    text: str | None = parameter("A question that is being typed.", None)
    cursor: int | None = parameter("A place in the text; default: its end.", None, 0)
    role: Literal["relation", "entity"] | None = parameter("Without a text: what to name.", None)
    prefix: str = parameter("Without a text: the beginning of the name.", "")
    relation: str | None = parameter("Without a text: the relation of the entity.", None)
    end: EdgeEnd | None = parameter("Without a text: the end of the relation.", None)
    limit: int = parameter("Number of names.", 12, 1)


@dataclass(frozen=True, kw_only=True)
class DescribeEntity(OfRun):
    """An entity to describe."""

    name: str = parameter("Id or label of the entity.")
    k: int = parameter("Number of entities for each relation.", 10, 1)


@dataclass(frozen=True, kw_only=True)
class Sparql:
    """A query to the SPARQL endpoint, and how it is answered."""

    query: str = parameter("A SPARQL query that selects one variable, or ASK.")
    answers: Literal["exact", "predicted"] = parameter(
        "By the edges of the graph alone (exact), or also by edges that are missing (predicted).",
        "exact",
    )
    split: Split | None = parameter(
        "Exact: known edges, train, valid (train and valid) or test (all); default: test.", None
    )
    k: int | None = parameter(
        "Predicted: number of best answers that the query is about; default: all.", None, 1
    )
    method: str | None = parameter(f"Predicted: {_METHOD[0].lower()}{_METHOD[1:]}", None)
    format: str | None = parameter(
        "json, xml, csv, tsv or a media type; default: by the header Accept, or json.", None
    )
