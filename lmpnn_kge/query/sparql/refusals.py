"""What SPARQL has and a formula has not: refused by name."""

from __future__ import annotations

from typing import Any

from lmpnn_kge.errors import QueryError, short

ALLOWED = (
    "write SELECT ?x with triple patterns, paths with / ^ |, UNION, MINUS, VALUES, LIMIT, and "
    "FILTER with =, !=, IN, EXISTS, &&, || and !"
)

#: Parts of rdflib's parse tree, as users write them.
_PARTS = {
    "OptionalGraphPattern": "OPTIONAL",
    "Bind": "BIND",
    "GraphGraphPattern": "GRAPH",
    "ServiceGraphPattern": "SERVICE",
    "SubSelect": "a SELECT inside the query",
    "ConstructQuery": "CONSTRUCT",
    "DescribeQuery": "DESCRIBE",
    "AdditiveExpression": "arithmetic",
    "MultiplicativeExpression": "arithmetic",
    "UnaryMinus": "arithmetic",
    "UnaryPlus": "arithmetic",
    "Function": "a function",
    "PathNegatedPropertySet": "a path with !",
}


def refusal(part: str) -> QueryError:
    """The error about a part that cannot be asked."""
    return QueryError(f"SPARQL: {part} is not supported; {ALLOWED}")


def only_at_endpoint(part: str) -> QueryError:
    """The error about a part that a formula cannot say, but an endpoint can answer."""
    return QueryError(
        f"SPARQL: {part} is not supported here, only by the endpoint of `lmpnn-kge serve`; "
        f"{ALLOWED}"
    )


def refused_node(node: Any) -> QueryError:
    """The error about a node of the parse tree that cannot be asked."""
    name = getattr(node, "name", None)
    if not isinstance(name, str):
        return refusal(f"the value {short(str(node))!r} as a condition")
    for beginning, word in (("Builtin_", "the function"), ("Aggregate_", "the aggregate")):
        if name.startswith(beginning):
            return refusal(f"{word} {name.removeprefix(beginning).upper()}")
    return refusal(_PARTS.get(name, name))
