"""Questions as drawings: checked, translated, drawn, and edited by their drawing."""

from __future__ import annotations

from typing import Any, TypeVar

from lmpnn_kge.errors import ConfigError, QueryError
from lmpnn_kge.query import edit
from lmpnn_kge.query.draw import draw, panel_of
from lmpnn_kge.query.drawing.graph_data import graph_data
from lmpnn_kge.query.formula import Constant, Term
from lmpnn_kge.query.normal_form import normalise
from lmpnn_kge.query.parser import read_query
from lmpnn_kge.query.sparql.read import is_sparql
from lmpnn_kge.query.sparql.write import to_sparql
from lmpnn_kge.runs.questions import Question
from lmpnn_kge.serve import requests, responses
from lmpnn_kge.serve.http import problem
from lmpnn_kge.serve.served_run import ServedRun

T = TypeVar("T")


def drawing(served: ServedRun, wanted: requests.Draw) -> responses.Drawing:
    """A question in both languages, and its graphs; QueryError says what is wrong with it."""
    try:
        question = _read(served, wanted.question)
    except QueryError as error:
        if not wanted.check:
            raise
        return _wrong(wanted.question, error)
    formula = read_query(wanted.question).formula
    names = served.run.vocabulary

    def id_of(term: Term) -> str | None:
        return names.entity_ids[names.entity(term.name)] if isinstance(term, Constant) else None

    graphs: Any = [graph_data(panel_of(disjunct), id_of) for disjunct in normalise(formula)]
    return {
        "question": wanted.question,
        "formula": str(formula),
        "is_sparql": is_sparql(wanted.question),
        "sparql": _sparql(question),
        "notes": list(question.notes),
        "disjuncts": graphs,
        "error": None,
    }


def _wrong(text: str, error: QueryError) -> responses.Drawing:
    """The drawing of a question that is not finished."""
    return {
        "question": text,
        "formula": "",
        "is_sparql": is_sparql(text),
        "sparql": None,
        "notes": [],
        "disjuncts": [],
        "error": problem(error),
    }


def picture(served: ServedRun, wanted: requests.Draw) -> str:
    """The drawing of a question as SVG."""
    _read(served, wanted.question)
    return draw(read_query(wanted.question).formula)


def _read(served: ServedRun, text: str) -> Question:
    served.check_length(text)
    knowledge = served.run.knowledge
    return Question.read(text, served.run.vocabulary, knowledge.seen if knowledge else None)


def _sparql(question: Question) -> str | None:
    try:
        return to_sparql(question.formula)
    except QueryError:  # it names a blank node, which SPARQL cannot
        return None


def edited(wanted: requests.Edit) -> responses.Edited:
    """A question after an edit."""
    text, part = wanted.question, wanted.disjunct
    match wanted.action:
        case "add":
            relation = _given(wanted.relation, "relation", wanted)
            ends = wanted.head, wanted.tail
            result = edit.add_edge(text, part, relation, *ends, negated=wanted.negated)
        case "negate":
            result = edit.negate_edge(text, part, _given(wanted.edge, "edge", wanted))
        case "remove":
            result = edit.remove_edge(text, part, _given(wanted.edge, "edge", wanted))
        case "replace":
            result = edit.replace_node(text, part, _given(wanted.node, "node", wanted), wanted.by)
        case "ask":
            result = edit.ask_for_node(text, part, _given(wanted.node, "node", wanted))
        case "deny":
            result = edit.deny_edges(text, part, _given(wanted.edges, "edges", wanted))
        case "allow":
            result = edit.allow_edge(text, part, _given(wanted.edge, "edge", wanted))
        case "remove-part":
            result = edit.remove_disjunct(text, part)
    return {"question": result}


def _given(value: T | None, name: str, wanted: requests.Edit) -> T:
    """A parameter that an action needs."""
    if value is None:
        raise ConfigError(f"the action {wanted.action} needs the parameter {name}")
    return value
