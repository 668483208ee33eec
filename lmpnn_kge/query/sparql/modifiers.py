"""What follows the patterns of a query: ORDER BY, LIMIT and OFFSET."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from lmpnn_kge.errors import QueryError, choices
from lmpnn_kge.query.sparql.refusals import refusal, refused_node


class Order(NamedTuple):
    """A variable by which solutions are sorted."""

    variable: str
    descending: bool


def read_modifiers(query: Any) -> tuple[int | None, int, tuple[Order, ...]]:
    """LIMIT, OFFSET and ORDER BY of a query that rdflib has parsed."""
    for clause, word in (
        ("datasetClause", "FROM"),
        ("groupby", "GROUP BY"),
        ("having", "HAVING"),
    ):
        if getattr(query, clause):
            raise refusal(word)
    order = tuple(map(_order, query.orderby.condition)) if query.orderby else ()
    if not query.limitoffset:
        return None, 0, order
    limit, offset = query.limitoffset.limit, query.limitoffset.offset
    return None if limit is None else _number(limit), _number(offset or 0), order


def _number(value: Any) -> int:
    return min(int(value), sys.maxsize)


def _order(condition: Any) -> Order:
    from rdflib.term import Variable

    term = innermost(condition.expr)
    if not isinstance(term, Variable):
        raise refused_node(term)
    return Order(str(term), condition.order == "DESC")


def check_order(order: Iterable[Order], known: Sequence[str]) -> None:
    """QueryError if answers cannot be sorted by a variable."""
    for name, _ in order:
        if name not in known:
            names = [f"?{variable}" for variable in known]
            raise QueryError(f"answers cannot be sorted by ?{name}; {choices(f'?{name}', names)}")


def innermost(node: Any) -> Any:
    """What an expression is about, without the levels of the grammar that say nothing."""
    while getattr(node, "expr", None) is not None and not node.other:
        node = node.expr
    return node
