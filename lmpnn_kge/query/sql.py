"""Formulas as SQL: one statement answers all queries of one pattern.

A statement reads three tables: `queries` (q, the entities c0, c1, … and the relations r0, r1, …
that fill the pattern), `edges` (s, p, o, and cost if witnesses are priced) and `entities` (e).
"""

from __future__ import annotations

from collections.abc import Sequence

from lmpnn_kge.query.compiler import Bucket, Compiler, column_of, without_equalities
from lmpnn_kge.query.formula import FREE, Constant, Term, Variable
from lmpnn_kge.query.items import Factor
from lmpnn_kge.query.normal_form import Conjunct, normalise, substitute
from lmpnn_kge.query.patterns import Pattern


def pattern_sql(pattern: Pattern, *, priced: bool = False, max_ranging: int | None = None) -> str:
    """The statement that answers all queries of a pattern: pairs of a query q and an answer.

    Some pairs occur several times: the caller sorts them anyway, and finding repeats in sorted
    pairs is cheaper than a last DISTINCT.
    """
    return compile_sql(
        normalise(pattern.formula),
        pattern.constants,
        pattern.relations,
        priced=priced,
        max_ranging=max_ranging,
    )


def compile_sql(
    disjuncts: Sequence[Conjunct],
    constants: Sequence[str],
    relations: Sequence[str],
    *,
    priced: bool = False,
    max_ranging: int | None = None,
) -> str:
    """The statement for a pattern in normal form, whose places are filled in the given order.

    priced adds the cost of the cheapest witness: the least sum of the costs of its edges.
    max_ranging limits the variables that range over all entities in one step.
    """
    compiler = Compiler(list(constants), list(relations), priced, max_ranging)
    results = [compiler.conjunct(disjunct, (FREE,)) for disjunct in disjuncts]
    chosen = f"q, {column_of(FREE)} AS answer{', cost' if priced else ''}"
    return f"{_with(compiler, results)}\n" + "\nUNION ALL\n".join(
        f"SELECT {chosen} FROM {table}" for table in results
    )


def witness_sql(
    disjuncts: Sequence[Conjunct],
    constants: Sequence[str],
    relations: Sequence[str],
    *,
    limit: int,
    max_ranging: int | None = None,
) -> str:
    """The statement that finds the witnesses of answers: entities for all bound variables.

    `queries` has the answer as one more constant, after the others. The statement yields the query
    q, the number of the disjunct, and an entity w0, w1, … for each variable that the disjunct
    binds: the first `limit` witnesses of each disjunct, in an order that depends on the edges only.
    """
    answer = answer_constant(constants)
    compiler = Compiler([*constants, answer.name], list(relations), False, max_ranging)
    # Several steps read the edges, of which only those of the formula's relations matter.
    compiler.edges = compiler.add(["SELECT s, p, o FROM edges"])
    width = max(len(disjunct.bound) for disjunct in disjuncts)
    results = [
        _witnesses(compiler, substitute(disjunct, {FREE: answer}), number, limit, width)
        for number, disjunct in enumerate(disjuncts)
    ]
    order = ", ".join(["q", "disjunct", "place", *(f"w{place}" for place in range(width))])
    return f"{_with(compiler)}\n" + "\nUNION ALL\n".join(results) + f"\nORDER BY {order}"


def answer_constant(constants: Sequence[str]) -> Constant:
    """The constant that stands for the answer in `witness_sql`: no other has its name."""
    return Constant(max(constants, default="") + "?")


def _witnesses(compiler: Compiler, conjunct: Conjunct, number: int, limit: int, width: int) -> str:
    """The SELECT of a disjunct's witnesses, with NULL for the variables that it lacks.

    When a variable is eliminated, every solution for the other variables can be extended to it.
    Therefore variables get their values in the reverse order, and no step needs to keep more than
    the first `limit` solutions of each query.
    """
    merged, replaced = without_equalities(conjunct)
    partial = None
    for bucket in reversed(compiler.eliminate(merged)):
        partial = _extend(compiler, partial, bucket, limit)
    assert partial is not None
    terms: list[Term] = [replaced.get(variable, variable) for variable in conjunct.bound]
    columns = [
        f"queries.c{compiler.constants.index(term.name)}"
        if isinstance(term, Constant)
        else f"found.{column_of(term)}"
        for term in terms
    ]
    columns += ["NULL"] * (width - len(columns))
    chosen = ["found.q", f"{number} AS disjunct", "found.place"]
    chosen += [f"{column} AS w{place}" for place, column in enumerate(columns)]
    return f"SELECT {', '.join(chosen)} FROM {partial.table} found JOIN queries USING (q)"


def _extend(compiler: Compiler, partial: Factor | None, bucket: Bucket, limit: int) -> Factor:
    """The first solutions of each query that extend partial ones by the variable of a bucket."""
    known = () if partial is None else partial.variables
    keep: tuple[Variable, ...] = (*known, *([bucket.variable] if bucket.variable else []))
    items = [*([partial] if partial else []), *bucket.items]
    rows = compiler.rows(items, keep, first=partial)
    order = ["t0.place"] * (partial is not None) + [rows.columns[v] for v in keep[-1:]]
    # Without a variable there is only one row, but some engines number none without an order.
    by = ", ".join(order or ["queries.q"])
    place = f"row_number() OVER (PARTITION BY queries.q ORDER BY {by})"
    chosen = ", ".join(["queries.q", *rows.chosen(keep), f"{place} AS place"])
    limited = f"QUALIFY place <= {limit}"
    return Factor(compiler.add([f"SELECT {chosen}", *rows.lines, limited]), keep)


def _with(compiler: Compiler, results: Sequence[str] = ()) -> str:
    """The steps of a statement, of which the results are read only once."""
    # Without MATERIALIZED, DuckDB evaluates the table of a NOT EXISTS again for every row.
    steps = ",\n".join(
        f"{name} AS {'' if name in results else 'MATERIALIZED '}(\n{body}\n)"
        for name, body in compiler.steps.items()
    )
    return f"WITH {steps}"
