"""Formulas as SQL: one statement answers all queries of one pattern.

A statement reads three tables: `queries` (q, the entities c0, c1, … and the relations r0, r1, …
that fill the pattern), `edges` (s, p, o, and cost if witnesses are priced) and `entities` (e).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache

from lmpnn_kge.query.compiler import Bucket, Compiler, column_of, without_equalities
from lmpnn_kge.query.formula import Constant, Term, Variable
from lmpnn_kge.query.items import Factor, all_variables
from lmpnn_kge.query.normal_form import Conjunct, substitute
from lmpnn_kge.query.patterns import Pattern


@lru_cache(maxsize=256)  # questions of a few patterns are asked one by one
def pattern_sql(
    pattern: Pattern,
    *,
    priced: bool = False,
    max_ranging: int | None = None,
    limit: int | None = None,
) -> str:
    """The statement that answers all queries of a pattern: pairs of a query q and an answer.

    Some pairs occur several times: the caller sorts them anyway, and finding repeats in sorted
    pairs is cheaper than a last DISTINCT. If the pattern has several free variables, the answer is
    in the columns answer1, answer2, …, and limit keeps the first so many answers of each query.
    """
    return compile_sql(
        pattern.disjuncts,
        pattern.constants,
        pattern.relations,
        priced=priced,
        max_ranging=max_ranging,
        limit=limit,
    )


def compile_sql(
    disjuncts: Sequence[Conjunct],
    constants: Sequence[str],
    relations: Sequence[str],
    *,
    priced: bool = False,
    max_ranging: int | None = None,
    limit: int | None = None,
) -> str:
    """The statement for a pattern in normal form, whose places are filled in the given order.

    priced adds the cost of the cheapest witness: the least sum of the costs of its edges.
    max_ranging limits the variables that range over all entities in one step. limit is for a
    pattern with several free variables that is not priced.
    """
    compiler = Compiler(list(constants), list(relations), priced, max_ranging)
    free = disjuncts[0].free
    results = [compiler.conjunct(disjunct, free) for disjunct in disjuncts]
    answers = [f"{column_of(variable)} AS {answer_column(variable)}" for variable in free]
    chosen = f"q, {', '.join(answers)}{', cost' if priced else ''}"
    union = "\nUNION ALL\n".join(f"SELECT {chosen} FROM {table}" for table in results)
    if limit is None:
        return f"{_with(compiler, results)}\n{union}"
    unique = compiler.add(["SELECT DISTINCT * FROM (", *union.split("\n"), ")"])
    order = ", ".join(map(answer_column, free))
    limited = f"QUALIFY row_number() OVER (PARTITION BY q ORDER BY {order}) <= {limit}"
    return f"{_with(compiler, [*results, unique])}\nSELECT * FROM {unique} {limited}"


def answer_column(variable: Variable) -> str:
    """The column of a statement's result that has the entities of a free variable."""
    return f"answer{variable.name}"


def witness_sql(
    disjuncts: Sequence[Conjunct],
    constants: Sequence[str],
    relations: Sequence[str],
    *,
    limit: int,
    max_ranging: int | None = None,
) -> str:
    """The statement that finds the witnesses of answers: entities for all bound variables.

    `queries` has the answers as more constants, after the others. The statement yields the query
    q, the number of the disjunct, and the list `entities` with one for each variable that the
    disjunct binds: the first `limit` witnesses of each disjunct, in an order that depends on the
    edges only.
    """
    answers = answer_constants(constants, disjuncts[0].free)
    names = [*constants, *(constant.name for constant in answers.values())]
    compiler = Compiler(names, list(relations), False, max_ranging)
    # Several steps read the edges, of which only those of the formula's relations matter.
    compiler.edges = compiler.add(["SELECT s, p, o FROM edges"])
    results = [
        _witnesses(compiler, substitute(disjunct, answers), number, limit)
        for number, disjunct in enumerate(disjuncts)
    ]
    union = "\nUNION ALL\n".join(results)
    return f"{_with(compiler)}\n{union}\nORDER BY q, disjunct, place, entities"


def answer_constants(constants: Sequence[str], free: Sequence[Variable]) -> dict[Term, Term]:
    """The constants that stand for free variables in `witness_sql`: no others have their names."""
    last = max(constants, default="")
    return {variable: Constant(f"{last}{variable}") for variable in free}


def _witnesses(compiler: Compiler, conjunct: Conjunct, number: int, limit: int) -> str:
    """The SELECT of a disjunct's witnesses.

    When a variable is eliminated, every solution for the other variables can be extended to it.
    Therefore variables get their values in the reverse order, and no step needs to keep more than
    the first `limit` solutions of each query.
    """
    merged, replaced = without_equalities(conjunct)
    buckets = compiler.eliminate(merged)[::-1]
    # The last bucket that mentions a variable; no step after it needs a column for the variable.
    last = {v: step for step, bucket in enumerate(buckets) for v in all_variables(bucket.items)}
    partial = None
    for step, bucket in enumerate(buckets):
        needed = {variable for variable in last if last[variable] > step}
        partial = _extend(compiler, partial, bucket, needed, limit)
    assert partial is not None
    known = [bucket.variable for bucket in buckets if bucket.variable is not None]
    value: dict[Term, str] = {v: f"known[{place}]" for place, v in enumerate(known, 1)}
    value |= {Constant(name): f"c{place}" for place, name in enumerate(compiler.constants)}
    values = ", ".join(value[replaced.get(variable, variable)] for variable in conjunct.bound)
    return (
        f"SELECT q, {number} AS disjunct, place, [{values}]::INTEGER[] AS entities "
        f"FROM {partial.table} JOIN queries USING (q)"
    )


def _extend(
    compiler: Compiler,
    partial: Factor | None,
    bucket: Bucket,
    needed: Collection[Variable],
    limit: int,
) -> Factor:
    """The first solutions of each query that extend partial ones by the variable of a bucket.

    The entities of all variables so far are in the list `known`. Those that later steps need have
    a column, too: one for each of them would make a long formula take the square of its length.
    """
    new = () if bucket.variable is None else (bucket.variable,)
    solved = (*(partial.variables if partial else ()), *new)
    items = [*([partial] if partial else []), *bucket.items]
    rows = compiler.rows(items, solved, first=partial)
    values = [rows.columns[variable] for variable in new]
    # Without a variable there is only one row, but some engines number none without an order.
    order = ", ".join([*(["t0.place"] if partial else []), *values] or ["queries.q"])
    place = f"row_number() OVER (PARTITION BY queries.q ORDER BY {order})"
    known = f"{'t0.known || ' if partial else ''}[{', '.join(values)}]::INTEGER[] AS known"
    keep = tuple(variable for variable in solved if variable in needed)
    chosen = ", ".join(["queries.q", *rows.chosen(keep), known, f"{place} AS place"])
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
