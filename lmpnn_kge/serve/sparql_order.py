"""ORDER BY: answers in the order of their names and figures, as SPARQL compares values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lmpnn_kge.query.sparql.modifiers import Order
from lmpnn_kge.serve.sparql_results import entity_value

Answers = Sequence[Mapping[str, Any]]


def in_order(answers: Answers, order: Sequence[Order], answer: str) -> Answers:
    """Answers by the first variable, equal ones by the next; equal ones keep their order."""
    for name, descending in reversed(order):

        def key(row: Mapping[str, Any], name: str = name) -> tuple[int, Any]:
            """No value comes first, then blank nodes, then IRIs or literals."""
            if name == answer:
                value = entity_value(row["id"])
                return int(value.type == "uri") + 1, value.text
            figure = row.get(name)
            return (0, 0) if figure is None else (2, figure)

        answers = sorted(answers, key=key, reverse=descending)
    return answers
