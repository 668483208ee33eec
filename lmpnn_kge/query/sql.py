"""Formulas as SQL: one statement answers all queries of one pattern.

The statement reads three tables: `queries` (q, the entities c0, c1, … and the relations r0, r1, …
that fill the pattern), `edges` (s, p, o, and cost if witnesses are priced) and `entities` (e). It
yields pairs of a query q and an answer. Some pairs occur several times: the caller sorts them
anyway, and finding repeats in sorted pairs is cheaper than a last DISTINCT.

Existential variables are eliminated one at a time: all items that mention a variable are joined,
projected to their other variables and made distinct, so that no step carries columns that later
steps do not need. A variable that only one atom mentions becomes an EXISTS. A variable that no
positive atom binds ranges over all entities. A negated group is answered by itself and subtracted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from lmpnn_kge.errors import QueryError
from lmpnn_kge.query.formula import FREE, Atom, Constant, Equal, Term, Variable
from lmpnn_kge.query.normal_form import Conjunct, SignedAtom, normalise, substitute
from lmpnn_kge.query.patterns import Pattern


@dataclass(frozen=True)
class _Factor:
    """An intermediate result: a table with the columns q and some variables."""

    table: str
    variables: tuple[Variable, ...]
    negated: bool = False


@dataclass(frozen=True)
class _Exists:
    """A positive atom that only restricts one variable: its other one occurs nowhere else."""

    literal: SignedAtom
    variable: Variable


_Item = SignedAtom | _Factor | _Exists


def pattern_sql(pattern: Pattern, *, priced: bool = False, max_ranging: int | None = None) -> str:
    """The statement that answers all queries of a pattern."""
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
    compiler = _Compiler(list(constants), list(relations), priced, max_ranging)
    results = [compiler.conjunct(disjunct, (FREE,)) for disjunct in disjuncts]
    # Without MATERIALIZED, DuckDB evaluates the table of a NOT EXISTS again for every row.
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
    """Collects the steps of a statement: named tables, each of which may read those before it."""

    constants: list[str]
    relations: list[str]
    priced: bool
    max_ranging: int | None
    steps: dict[str, str] = field(default_factory=dict)  # name -> SELECT, in order

    def conjunct(self, conjunct: Conjunct, outputs: tuple[Variable, ...]) -> str:
        """The name of a table with the solutions of a conjunct for its outputs."""
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
        while len(left) > 1:  # the last variable is eliminated together with the final projection
            variable = min(left, key=lambda v: self._effort(v, items))
            left.remove(variable)
            bucket = [item for item in items if variable in _variables(item)]
            keep = tuple(v for v in _all_variables(bucket) if v != variable)
            # Items with a constant that are about these variables alone make the table smaller.
            bucket += [
                item for item in items
                if item not in bucket and _is_grounded(item) and set(_variables(item)) <= set(keep)
            ]  # fmt: skip
            items = [item for item in items if item not in bucket]
            items.append(_Factor(self._select(bucket, keep, distinct=True), keep))
        return self._select(items, outputs)

    def _leaf(self, variable: Variable, items: list[_Item]) -> _Exists | None:
        """If a variable occurs in one positive atom only, an EXISTS on the atom's other variable.

        A join would yield a row for every value of the variable, all of which the projection then
        merges again. Prices need the rows, because they take the minimum over them.
        """
        match [item for item in items if variable in _variables(item)]:
            case [SignedAtom(Atom(), False) as literal] if not self.priced:
                others = [term for term in literal.terms if term != variable]
                if len(others) == 1 and isinstance(others[0], Variable):
                    return _Exists(literal, others[0])
        return None

    def _effort(self, variable: Variable, items: list[_Item]) -> tuple[int, bool]:
        """The cost of eliminating a variable: few other variables first, then grounded ones."""
        bucket = [item for item in items if variable in _variables(item)]
        return len(_all_variables(bucket)), not any(map(_is_grounded, bucket))

    def _select(
        self, items: list[_Item], keep: tuple[Variable, ...], *, distinct: bool = False
    ) -> str:
        """The name of a new table with the variables to keep: the join of all items."""
        columns, joins, costs = self._join(items)
        ranging = [v for v in dict.fromkeys([*_all_variables(items), *keep]) if v not in columns]
        if self.max_ranging is not None and len(ranging) > self.max_ranging:
            names = ", ".join(map(str, ranging))
            raise QueryError(
                f"no positive atom binds {names}: too many combinations for a graph of this size"
            )
        for variable in ranging:
            columns[variable] = f"e{len(joins)}.e"
            joins.append(f"CROSS JOIN entities e{len(joins)}")
        # A variable that ranges over all entities and is dropped would repeat most rows E times.
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

    def _join(self, items: list[_Item]) -> tuple[dict[Term, str], list[str], list[str]]:
        """The positive items as joins: the column that binds each term, the JOINs, their costs.

        The order of joins is ours, because DuckDB's optimiser is off: always the item that adds the
        fewest new variables next, so that constants and bound variables filter early. The first
        item that has a term binds it, and later ones are compared with its column.
        """
        columns: dict[Term, str] = {
            Constant(name): f"queries.c{number}" for number, name in enumerate(self.constants)
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
        return columns, joins, costs

    def _source(self, item: _Item, alias: str) -> tuple[str, list[str], list[tuple[Term, str]]]:
        """An item's table, the conditions that tie its rows to a query, and its columns by term."""
        if isinstance(item, _Factor):
            columns = [(v, f"{alias}.{_column(v)}") for v in item.variables]
            return item.table, [f"{alias}.q = queries.q"], list(columns)
        literal = item.literal if isinstance(item, _Exists) else item
        assert isinstance(literal.atom, Atom)
        on = f"{alias}.p = queries.r{self.relations.index(literal.atom.relation)}"
        head, tail = literal.terms
        return "edges", [on], [(head, f"{alias}.s"), (tail, f"{alias}.o")]

    def _condition(self, item: _Item, columns: dict[Term, str]) -> str:
        """A WHERE condition for an item that binds nothing, over terms that have columns."""
        if isinstance(item, SignedAtom) and isinstance(item.atom, Equal):
            left, right = (columns[term] for term in item.terms)
            return f"{left} {'<>' if item.negated else '='} {right}"
        table, on, pairs = self._source(item, "n")
        on += [f"{column} = {columns[term]}" for term, column in pairs if term in columns]
        negation = "" if isinstance(item, _Exists) else "NOT "
        return f"{negation}EXISTS (SELECT 1 FROM {table} n WHERE {' AND '.join(on)})"


def _from(joins: list[str]) -> list[str]:
    """The FROM clause: the first table, then the queries, then the others in their order.

    DuckDB streams the first table in parallel and hashes all others. In this order it never hashes
    the result of a join, which can be much larger than a table.
    """
    if not joins or not joins[0].startswith("JOIN "):
        return ["FROM queries", *joins]
    table, _, condition = joins[0].removeprefix("JOIN ").partition(" ON ")
    return [f"FROM {table}", f"JOIN queries ON {condition}", *joins[1:]]


def _without_equalities(conjunct: Conjunct) -> Conjunct:
    """Replace each bound variable that equals another term by that term."""
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
    """Whether an item binds its variables; other items only restrict bound ones."""
    if isinstance(item, _Exists) or (isinstance(item, SignedAtom) and isinstance(item.atom, Equal)):
        return False
    return not item.negated


def _is_grounded(item: _Item) -> bool:
    """Whether an item yields few bindings: it has a constant, or is the result of a step."""
    if not _is_positive(item):
        return False
    return not isinstance(item, SignedAtom) or any(isinstance(t, Constant) for t in item.terms)


def _column(variable: Variable) -> str:
    """A variable's column, quoted; SQL ignores case, so that ?X needs a mark to differ from ?x."""
    name = "".join(f"^{c}" if c != c.lower() else c for c in variable.name)
    return f'"?{name}"'
