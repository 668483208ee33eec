"""The steps of a statement: how the variables of a conjunct are eliminated in SQL.

Existential variables are eliminated one at a time: all items that mention a variable are joined,
projected to their other variables and made distinct, so that no step carries columns that later
steps do not need. A variable that only one atom mentions becomes an EXISTS. A variable that no
positive atom binds ranges over all entities. A negated group is answered by itself and subtracted.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass, field

from lmpnn_kge.errors import QueryError
from lmpnn_kge.query.formula import Atom, Constant, Equal, Term, Variable
from lmpnn_kge.query.items import (
    Exists,
    Factor,
    Incidence,
    Item,
    all_variables,
    is_positive,
    join_order,
)
from lmpnn_kge.query.normal_form import Conjunct, SignedAtom, separate_parts, substitute


@dataclass(frozen=True)
class Bucket:
    """All items that mentioned a variable when it was eliminated, or those left at the end."""

    variable: Variable | None  # None if no variable is left
    items: list[Item]


@dataclass(frozen=True)
class Rows:
    """FROM and WHERE of a step, with the column of each term."""

    columns: dict[Term, str]
    ranging: list[Variable]  # those that range over all entities
    costs: list[str]
    lines: list[str]

    def chosen(self, variables: Iterable[Variable]) -> list[str]:
        """The columns of variables, by the names that they have in later steps."""
        return [f"{self.columns[v]} AS {column_of(v)}" for v in variables]


@dataclass
class Compiler:
    """Collects the steps of a statement: named tables, each of which may read those before it."""

    constants: list[str]
    relations: list[str]
    priced: bool
    max_ranging: int | None
    edges: str = "edges"  # the table of edges
    steps: dict[str, str] = field(default_factory=dict)  # name -> SELECT, in order
    _relation_columns: dict[str, str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._relation_columns = {name: f"r{place}" for place, name in enumerate(self.relations)}

    def conjunct(self, conjunct: Conjunct, outputs: tuple[Variable, ...]) -> str:
        """The name of a table with the solutions of a conjunct for its outputs."""
        conjunct, _ = without_equalities(conjunct)
        items = self.eliminate(conjunct)[-1].items
        return self._select(items, outputs)

    def eliminate(self, conjunct: Conjunct) -> list[Bucket]:
        """Eliminate all bound variables but one: the items of each variable, in this order.

        The last bucket has the last variable and all items that are left; the final projection
        eliminates it.
        """
        items = Incidence(self._items(conjunct))
        order = {variable: place for place, variable in enumerate(conjunct.bound)}
        buckets = []
        for variable in conjunct.bound:
            if (leaf := self._leaf(variable, items)) is not None:
                del order[variable]
                items.replace_only(variable, leaf)
                buckets.append(Bucket(variable, [leaf.literal]))
        effort = {variable: items.effort(variable) for variable in order}
        waiting = [(effort[variable], place, variable.name) for variable, place in order.items()]
        heapq.heapify(waiting)
        while len(effort) > 1:
            estimated, _, name = heapq.heappop(waiting)
            variable = Variable(name)
            if effort.get(variable) != estimated:
                continue  # its neighbours have changed since, and it waits in another place, too
            del effort[variable]
            mentioning = items.take_with(variable)
            keep = tuple(v for v in all_variables(mentioning) if v != variable)
            # Items with a constant that are about these variables alone make the table smaller.
            bucket = [*mentioning, *items.take_grounded(keep)]
            # Those of an inequality or a denied atom would otherwise range over all entities.
            bound = set(all_variables(filter(is_positive, bucket)))
            bucket += items.take_binding([v for v in keep if v not in bound], keep)
            items.add(Factor(self._select(bucket, keep, distinct=True), keep))
            buckets.append(Bucket(variable, mentioning))
            for neighbour in effort.keys() & set(keep):
                effort[neighbour] = items.effort(neighbour)
                heapq.heappush(waiting, (effort[neighbour], order[neighbour], neighbour.name))
        return [*buckets, Bucket(next(iter(effort), None), items.rest())]

    def _items(self, conjunct: Conjunct) -> list[Item]:
        """The literals of a conjunct, and its groups as tables to subtract."""
        items: list[Item] = list(conjunct.literals)
        for group in conjunct.groups:
            shared = tuple(
                term for term in group.terms
                if isinstance(term, Variable) and term not in group.bound
            )  # fmt: skip
            items.append(Factor(self.conjunct(group, shared), shared, negated=True))
        return items

    def _leaf(self, variable: Variable, items: Incidence) -> Exists | None:
        """If a variable occurs in one positive atom only, an EXISTS on the atom's other variable.

        A join would yield a row for every value of the variable, all of which the projection then
        merges again. Prices need the rows, because they take the minimum over them.
        """
        match items.having(variable):
            case [SignedAtom(Atom(), False) as literal] if not self.priced:
                others = [term for term in literal.terms if term != variable]
                if len(others) == 1 and isinstance(others[0], Variable):
                    return Exists(literal, others[0])
        return None

    def _select(
        self, items: list[Item], keep: tuple[Variable, ...], *, distinct: bool = False
    ) -> str:
        """The name of a new table with the variables to keep: the join of all items."""
        rows = self.rows(items, keep)
        # A variable that ranges over all entities and is dropped would repeat most rows E times.
        distinct = distinct or not set(rows.ranging) <= set(keep)
        chosen = ["queries.q", *rows.chosen(keep)]
        if self.priced:
            chosen.append(f"min({' + '.join(rows.costs) or 0}) AS cost")
        first = f"SELECT {'DISTINCT ' * (distinct and not self.priced)}{', '.join(chosen)}"
        return self.add([first, *rows.lines, *["GROUP BY ALL"] * self.priced])

    def add(self, lines: list[str]) -> str:
        """The name of a new step."""
        name = f"step{len(self.steps)}"
        self.steps[name] = "\n".join(f"  {line}" for line in lines)
        return name

    def rows(
        self, items: list[Item], keep: tuple[Variable, ...], first: Factor | None = None
    ) -> Rows:
        """The join of all items, in which every variable has a column, also those to keep.

        first is an item to begin with.
        """
        columns, joins, costs = self._join(items, first)
        ranging = [v for v in dict.fromkeys([*all_variables(items), *keep]) if v not in columns]
        if self.max_ranging is not None and len(ranging) > self.max_ranging:
            names = ", ".join(map(str, ranging))
            raise QueryError(
                f"no positive atom binds {names}: too many combinations for a graph of this size"
            )
        for variable in ranging:
            columns[variable] = f"e{len(joins)}.e"
            joins.append(f"CROSS JOIN entities e{len(joins)}")
        conditions = [self._condition(item, columns) for item in items if not is_positive(item)]
        lines = _from(joins)
        if conditions:
            lines.append("WHERE " + "\n    AND ".join(conditions))
        return Rows(columns, ranging, costs, lines)

    def _join(
        self, items: list[Item], first: Factor | None
    ) -> tuple[dict[Term, str], list[str], list[str]]:
        """The positive items as joins: the column that binds each term, the JOINs, their costs.

        The order of joins is ours, because DuckDB's optimiser is off. The first item that has a
        term binds it, and later ones are compared with its column.
        """
        columns: dict[Term, str] = {
            Constant(name): f"queries.c{number}" for number, name in enumerate(self.constants)
        }
        joins: list[str] = []
        costs: list[str] = []
        for item in join_order([item for item in items if is_positive(item)], first):
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

    def _source(self, item: Item, alias: str) -> tuple[str, list[str], list[tuple[Term, str]]]:
        """An item's table, the conditions that tie its rows to a query, and its columns by term."""
        if isinstance(item, Factor):
            columns = [(v, f"{alias}.{column_of(v)}") for v in item.variables]
            return item.table, [f"{alias}.q = queries.q"], list(columns)
        literal = item.literal if isinstance(item, Exists) else item
        assert isinstance(literal.atom, Atom)
        on = f"{alias}.p = queries.{self._relation_columns[literal.atom.relation]}"
        head, tail = literal.terms
        return self.edges, [on], [(head, f"{alias}.s"), (tail, f"{alias}.o")]

    def _condition(self, item: Item, columns: dict[Term, str]) -> str:
        """A WHERE condition for an item that binds nothing, over terms that have columns."""
        if isinstance(item, SignedAtom) and isinstance(item.atom, Equal):
            left, right = (columns[term] for term in item.terms)
            return f"{left} {'<>' if item.negated else '='} {right}"
        table, on, pairs = self._source(item, "n")
        on += [f"{column} = {columns[term]}" for term, column in pairs if term in columns]
        negation = "" if isinstance(item, Exists) else "NOT "
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


def without_equalities(conjunct: Conjunct) -> tuple[Conjunct, dict[Variable, Term]]:
    """Replace each bound variable that equals another term by that term; say which by which."""
    equal_to: dict[Term, Term] = {}  # a variable -> a term that it equals, perhaps replaced itself

    def final(term: Term) -> Term:
        passed = []
        while term in equal_to:
            passed.append(term)
            term = equal_to[term]
        equal_to.update(dict.fromkeys(passed, term))  # so that no chain is followed twice
        return term

    bound, kept = set(conjunct.bound), []
    for literal in conjunct.literals:
        if isinstance(literal.atom, Equal) and not literal.negated:
            left, right = map(final, literal.terms)
            if left != right and left in bound:
                equal_to[left] = right
                continue
            if left != right and right in bound:
                equal_to[right] = left
                continue
        kept.append(literal)
    if not equal_to:
        return conjunct, {}
    replaced = {v: final(v) for v in conjunct.bound if v in equal_to}
    free = tuple(variable for variable in conjunct.bound if variable not in equal_to)
    names: dict[Term, Term] = dict(replaced.items())
    return substitute(Conjunct(tuple(kept), conjunct.groups, free), names), replaced


def simpler_group(group: Conjunct) -> Conjunct:
    """A denied group without equalities, unless one of them is what holds it together.

    As text, !(r(?, a) & s(a, b)) would be two denied atoms, and the second one has no `?`.
    """
    merged, _ = without_equalities(group)
    return merged if len(separate_parts(merged)) <= 1 else group


def column_of(variable: Variable) -> str:
    """A variable's column, quoted; SQL ignores case, so that ?X needs a mark to differ from ?x."""
    name = "".join(f"^{c}" if c != c.lower() else c for c in variable.name)
    return f'"?{name}"'
