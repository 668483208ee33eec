"""Formulas as SQL: all queries of one pattern answered by one statement.

The statement reads three tables: `queries` (q, the entities c0, c1, … and the relations r0, r1, …
that fill the pattern), `edges` (s, p, o, and cost where witnesses are priced) and `entities` (e).
It yields pairs of a query q and an answer, some of them several times: sorting them is cheaper
than a last DISTINCT.

Existential variables are eliminated one at a time: what mentions one is joined, projected to the
other variables and made distinct, so that no step carries more than it must. A variable that only
one atom mentions is an EXISTS. A variable that no positive atom binds ranges over all entities; a
negated group is answered by itself and taken out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from lmpnn_kge.errors import QueryError
from lmpnn_kge.query.formula import FREE, Atom, Constant, Equal, Term, Variable
from lmpnn_kge.query.normal_form import Conjunct, Literal, substitute


@dataclass(frozen=True)
class _Factor:
    """An intermediate result: a named table over q and some variables."""

    table: str
    variables: tuple[Variable, ...]
    negated: bool = False


@dataclass(frozen=True)
class _Exists:
    """A positive atom of which only one variable matters: the other occurs nowhere else."""

    literal: Literal
    variable: Variable


_Item = Literal | _Factor | _Exists


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
    max_ranging is how many variables may range over all entities at once.
    """
    compiler = _Compiler(list(constants), list(relations), priced, max_ranging)
    results = [compiler.conjunct(disjunct, (FREE,)) for disjunct in disjuncts]
    # What is taken out of something must be made once, or DuckDB would make it for every row.
    steps = ",\n".join(
        f"{name} AS {'' if name in results else 'MATERIALIZED '}(\n{body}\n)"
        for name, body in compiler.steps.items()
    )
    chosen = f"q, {_column(FREE)} AS answer{', cost' if priced else ''}"
    return f"WITH {steps}\n" + "\nUNION ALL\n".join(
        f"SELECT {chosen} FROM {table}" for table in results
    )


@dataclass
class _Compiler:
    constants: list[str]
    relations: list[str]
    priced: bool
    max_ranging: int | None
    steps: dict[str, str] = field(default_factory=dict)  # tables by name, in order

    def conjunct(self, conjunct: Conjunct, outputs: tuple[Variable, ...]) -> str:
        """The table of a conjunct over its outputs."""
        conjunct = _without_equalities(conjunct)
        items: list[_Item] = list(conjunct.literals)
        for group in conjunct.groups:
            shared = tuple(
                term for term in group.terms
                if isinstance(term, Variable) and term not in group.bound
            )  # fmt: skip
            items.append(_Factor(self.conjunct(group, shared), shared, negated=True))
        left = list(conjunct.bound)
        for variable in conjunct.bound:
            if (leaf := self._leaf(variable, items)) is not None:
                left.remove(variable)
                items[items.index(leaf.literal)] = leaf
        while len(left) > 1:  # the last one goes with the outputs
            variable = min(left, key=lambda v: self._effort(v, items))
            left.remove(variable)
            bucket = [item for item in items if variable in _variables(item)]
            keep = tuple(v for v in _all_variables(bucket) if v != variable)
            bucket += [
                item for item in items
                if item not in bucket and _is_grounded(item) and set(_variables(item)) <= set(keep)
            ]  # fmt: skip
            items = [item for item in items if item not in bucket]
            items.append(_Factor(self._select(bucket, keep, distinct=True), keep))
        return self._select(items, outputs)

    def _leaf(self, variable: Variable, items: list[_Item]) -> _Exists | None:
        """What is left of a variable if all that is said of it is one atom with another one."""
        match [item for item in items if variable in _variables(item)]:
            case [Literal(Atom(), False) as literal] if not self.priced:
                others = [term for term in literal.terms if term != variable]
                if len(others) == 1 and isinstance(others[0], Variable):
                    return _Exists(literal, others[0])
        return None

    def _effort(self, variable: Variable, items: list[_Item]) -> tuple[int, bool]:
        """Few variables to carry on first, and among equals those that something grounds."""
        bucket = [item for item in items if variable in _variables(item)]
        return len(_all_variables(bucket)), not any(map(_is_grounded, bucket))

    def _select(
        self, items: list[_Item], keep: tuple[Variable, ...], *, distinct: bool = False
    ) -> str:
        """A new table over the variables to keep: the join of all items."""
        columns: dict[Term, str] = {
            Constant(name): f"queries.c{place}" for place, name in enumerate(self.constants)
        }
        joins: list[str] = []
        costs: list[str] = []
        pending = [item for item in items if _is_positive(item)]
        while pending:
            item = min(pending, key=lambda i: sum(v not in columns for v in _variables(i)))
            pending.remove(item)
            alias = f"t{len(joins)}"
            table, on, pairs = self._source(item, alias)
            for term, column in pairs:
                if term in columns:
                    on.append(f"{column} = {columns[term]}")
                else:
                    columns[term] = column
            joins.append(f"JOIN {table} {alias} ON {' AND '.join(on)}")
            costs.append(f"{alias}.cost")
        ranging = [v for v in dict.fromkeys([*_all_variables(items), *keep]) if v not in columns]
        if self.max_ranging is not None and len(ranging) > self.max_ranging:
            names = ", ".join(f"?{variable.name}" for variable in ranging)
            raise QueryError(
                f"no positive atom binds {names}: too many combinations for a graph of this size"
            )
        for variable in ranging:
            columns[variable] = f"e{len(joins)}.e"
            joins.append(f"CROSS JOIN entities e{len(joins)}")
        # Of what ranges over everything, most rows would be the same without it.
        distinct = distinct or not set(ranging) <= set(keep)
        conditions = [self._condition(item, columns) for item in items if not _is_positive(item)]
        chosen = ["queries.q", *(f"{columns[v]} AS {_column(v)}" for v in keep)]
        if self.priced:
            chosen.append(f"min({' + '.join(costs) or 0}) AS cost")
        lines = [f"SELECT {'DISTINCT ' * (distinct and not self.priced)}{', '.join(chosen)}"]
        lines += _from(joins)
        if conditions:
            lines.append("WHERE " + "\n    AND ".join(conditions))
        if self.priced:
            lines.append("GROUP BY ALL")
        name = f"step{len(self.steps)}"
        self.steps[name] = "\n".join(f"  {line}" for line in lines)
        return name

    def _source(self, item: _Item, alias: str) -> tuple[str, list[str], list[tuple[Term, str]]]:
        """An item's table, what makes its rows belong to a query, and its columns by term."""
        if isinstance(item, _Factor):
            columns = [(v, f"{alias}.{_column(v)}") for v in item.variables]
            return item.table, [f"{alias}.q = queries.q"], list(columns)
        literal = item.literal if isinstance(item, _Exists) else item
        assert isinstance(literal.atom, Atom)
        on = f"{alias}.p = queries.r{self.relations.index(literal.atom.relation)}"
        head, tail = literal.terms
        return "edges", [on], [(head, f"{alias}.s"), (tail, f"{alias}.o")]

    def _condition(self, item: _Item, columns: dict[Term, str]) -> str:
        """An item that binds nothing, once the terms that matter have columns."""
        if isinstance(item, Literal) and isinstance(item.atom, Equal):
            left, right = (columns[term] for term in item.terms)
            return f"{left} {'<>' if item.negated else '='} {right}"
        table, on, pairs = self._source(item, "n")
        on += [f"{column} = {columns[term]}" for term, column in pairs if term in columns]
        negation = "" if isinstance(item, _Exists) else "NOT "
        return f"{negation}EXISTS (SELECT 1 FROM {table} n WHERE {' AND '.join(on)})"


def _from(joins: list[str]) -> list[str]:
    """The FROM clause, in an order to be kept: the first table streams past the queries.

    What comes first is read in parallel; the rest is hashed, and hashed edges are as large as they
    will ever be, unlike what a join makes of them.
    """
    if not joins or not joins[0].startswith("JOIN "):
        return ["FROM queries", *joins]
    table, _, condition = joins[0].removeprefix("JOIN ").partition(" ON ")
    return [f"FROM {table}", f"JOIN queries ON {condition}", *joins[1:]]


def _without_equalities(conjunct: Conjunct) -> Conjunct:
    """Put one term in the place of another that equals it, where a bound variable allows it."""
    for literal in conjunct.literals:
        if not isinstance(literal.atom, Equal) or literal.negated:
            continue
        rest = tuple(other for other in conjunct.literals if other is not literal)
        for old, new in (literal.terms, literal.terms[::-1]):
            if old in conjunct.bound and old != new:
                bound = tuple(variable for variable in conjunct.bound if variable != old)
                merged = Conjunct(rest, conjunct.groups, bound)
                return _without_equalities(substitute(merged, {old: new}))
    return conjunct


def _variables(item: _Item) -> tuple[Variable, ...]:
    if isinstance(item, _Factor):
        return item.variables
    if isinstance(item, _Exists):
        return (item.variable,)
    return tuple(dict.fromkeys(term for term in item.terms if isinstance(term, Variable)))


def _all_variables(items: Iterable[_Item]) -> tuple[Variable, ...]:
    return tuple(dict.fromkeys(variable for item in items for variable in _variables(item)))


def _is_positive(item: _Item) -> bool:
    """Whether it binds its variables; the others only compare what is bound."""
    if isinstance(item, _Exists) or (isinstance(item, Literal) and isinstance(item.atom, Equal)):
        return False
    return not item.negated


def _is_grounded(item: _Item) -> bool:
    """Whether it yields few bindings: it has a constant, or comes of something that has."""
    if not _is_positive(item):
        return False
    return not isinstance(item, Literal) or any(isinstance(t, Constant) for t in item.terms)


def _column(variable: Variable) -> str:
    """A variable's column; `?` and `?x` are not names that SQL knows, and to it ?x would be ?X."""
    name = "".join(f"^{c}" if c != c.lower() else c for c in variable.name)
    return f'"?{name}"'
