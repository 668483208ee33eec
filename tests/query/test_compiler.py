"""Statements of large formulas: their size follows that of the formula."""

import sys

import pytest

from lmpnn_kge.query.compiler import without_equalities
from lmpnn_kge.query.formula import FREE, Constant, Variable
from lmpnn_kge.query.items import Incidence
from lmpnn_kge.query.normal_form import normalise
from lmpnn_kge.query.parser import parse
from lmpnn_kge.query.patterns import Pattern
from lmpnn_kge.query.sql import pattern_sql, witness_sql


def path(length: int) -> str:
    middle = " & ".join(f"r(?x{i}, ?x{i + 1})" for i in range(1, length - 1))
    return f"r(a, ?x1) & {middle} & r(?x{length - 1}, ?)"


def star(size: int) -> str:
    arms = " & ".join(f"r(?y, ?x{i}) & s(?x{i}, a)" for i in range(size // 2))
    return f"{arms} & r(?y, ?)"


def chain(size: int) -> str:
    return " & ".join(f"?x{i} = ?x{i + 1}" for i in range(size)) + f" & r(a, ?x0) & ?x{size} = ?"


def calls(work) -> int:
    """How many Python functions are called, which does not depend on the machine."""
    count = 0

    def counting(frame, event, argument):
        nonlocal count
        count += event == "call"

    sys.setprofile(counting)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("shape", [path, star, chain])
def test_the_work_to_compile_grows_with_the_formula_and_not_with_its_square(shape):
    small, large = (
        calls(lambda size=size: pattern_sql(Pattern(parse(shape(size))))) for size in (50, 400)
    )
    assert large < 8 * 2 * small


def test_a_step_of_a_path_reads_one_edge_and_the_step_before():
    statement = pattern_sql(Pattern(parse(path(5))))
    assert statement.count("JOIN edges") + statement.count("FROM edges") == 5


@pytest.mark.parametrize(
    "formula",
    [
        "r(?x, ?) & r(?y, ?) & ?x != ?y",
        "r(?x, ?) & r(?y, ?) & r(?z, ?) & ?x != ?y & ?y != ?z & ?x != ?z",
        "!r(?x, ?y) & s(?x, ?) & r(?y, ?)",
        "r(a, ?) & !(s(?, ?x) & s(?, ?y) & ?x != ?y)",
    ],
)
def test_only_a_variable_that_no_positive_atom_binds_ranges_over_all_entities(formula):
    assert "entities" not in pattern_sql(Pattern(parse(formula)))
    assert "entities" in pattern_sql(Pattern(parse(f"{formula} & ?w != ?")))


def test_the_statement_for_witnesses_grows_with_the_formula_and_not_with_its_square():
    small, large = (
        len(witness_sql(normalise(parse(path(size))), ["a"], ["r"], limit=1)) for size in (50, 400)
    )
    assert large < 10 * small


def test_equalities_leave_one_name_for_each_entity():
    (conjunct,) = normalise(parse("?x = ?y & ?y = ?z & r(?z, ?) & s(?x, ?w) & ?w = a & ?x = ?z"))
    merged, replaced = without_equalities(conjunct)
    x, y, z, w = map(Variable, "xyzw")
    assert replaced == {x: z, y: z, w: Constant("a")}
    assert merged.bound == (z,)
    assert [str(literal.atom) for literal in merged.literals] == ["r(?z, ?)", "s(?z, a)", "?z = ?z"]


def test_entities_that_cannot_be_equal_stay_a_condition():
    (conjunct,) = normalise(parse("? = a & r(?, ?x) & ?x = b & ?x = c"))
    merged, replaced = without_equalities(conjunct)
    assert replaced == {Variable("x"): Constant("b")}
    assert [str(literal.atom) for literal in merged.literals] == ["? = a", "r(?, b)", "b = c"]


def test_items_are_taken_in_their_order_by_what_they_mention():
    (conjunct,) = normalise(parse("r(a, ?x) & s(?x, ?) & t(?, b) & u(b, c)"))
    items = Incidence(conjunct.literals)
    first, second, third, fourth = conjunct.literals
    x = Variable("x")
    assert items.having(x) == [first, second]
    assert items.effort(x) == (2, False)
    assert items.take_with(x) == [first, second]
    assert items.take_grounded([x]) == [fourth]
    assert items.take_grounded([FREE]) == [third]
    assert items.rest() == []
