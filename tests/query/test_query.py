"""The query language: parsing, printing, patterns, query graphs, pictures."""

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmpnn_kge.errors import QueryError
from lmpnn_kge.query.formula import (
    FREE,
    And,
    Atom,
    Constant,
    Equal,
    Not,
    Or,
    Variable,
    connected_to,
    map_terms,
)
from lmpnn_kge.query.graph import Edge, query_graphs, signed_literals
from lmpnn_kge.query.negations import denials, exclusions
from lmpnn_kge.query.normal_form import (
    MAX_DISJUNCTS,
    MAX_LITERALS,
    normalise,
    scoped,
)
from lmpnn_kge.query.parser import parse, parse_any
from lmpnn_kge.query.patterns import NAMED, Pattern, named_patterns, ordered, parse_pattern

from ..formulas import formulas

GERMANY, X = Constant("Germany"), Variable("x")


A, B, C = (Atom(name, FREE, Constant(name)) for name in "abc")


@pytest.mark.parametrize(
    ("text", "formula"),
    [
        ("borders(Germany, ?)", Atom("borders", GERMANY, FREE)),
        ("!r(?x,?)", Not(Atom("r", X, FREE))),
        ("? = Germany", Equal(FREE, GERMANY)),
        ("?!=Germany", Not(Equal(FREE, GERMANY))),
        ("""r(?, "Côte d'Ivoire")""", Atom("r", FREE, Constant("Côte d'Ivoire"))),
        ('"has, (comma)"(?, a)', Atom("has, (comma)", FREE, Constant("a"))),
        ("/people/a-b:c.d+e_f(?, ?)", Atom("/people/a-b:c.d+e_f", FREE, FREE)),
        ("a(?,a)&b(?,b)|c(?,c)", Or((And((A, B)), C))),
        ("a(?,a)&(b(?,b)|c(?,c))", And((A, Or((B, C))))),
        ("((a(?,a)&b(?,b))&c(?,c))", And((A, B, C))),
        (r'r(?, "say \"a\\b\"\n")', Atom("r", FREE, Constant('say "a\\b"\n'))),
    ],
)
def test_the_language(text, formula):
    assert parse(text) == formula


@given(formula=formulas())
@settings(max_examples=500, deadline=None)
def test_printing_and_parsing_again_gives_the_same_formula(formula):
    assert parse_any(str(formula)) == formula


@given(
    text=st.text(alphabet=st.sampled_from('rs?x&|!()=, "\\a/.é\n'), max_size=30)
    | st.text(max_size=20)
)
@settings(max_examples=10_000, deadline=None)
def test_any_text_is_a_formula_or_a_query_error(text):
    with contextlib.suppress(QueryError):
        assert parse(str(parse(text))) == parse(text)


@pytest.mark.parametrize(
    ("node", "text"),
    [
        (Constant("Peru"), "Peru"),
        (Constant("New York"), '"New York"'),
        (FREE, "?"),
        (X, "?x"),
        (Atom("has part", X, FREE), '"has part"(?x, ?)'),
        (Equal(FREE, GERMANY), "? = Germany"),
        (Not(Equal(FREE, GERMANY)), "? != Germany"),
        (Not(A), "!a(?, a)"),
        (Not(And((A, Not(B)))), "!(a(?, a) & !b(?, b))"),
        (And((A, Or((B, C)))), "a(?, a) & (b(?, b) | c(?, c))"),
        (Or((And((A, B)), C)), "a(?, a) & b(?, b) | c(?, c)"),
    ],
)
def test_a_node_prints_as_it_is_written(node, text):
    assert str(node) == text


def test_the_signs_of_logic_are_read():
    assert parse("r(a, ?) ∧ ¬s(?, b) ∨ ? ≠ c") == parse("r(a, ?) & !s(?, b) | ? != c")


@pytest.mark.parametrize("text", ["", "  "])
def test_an_empty_formula_is_called_so(text):
    with pytest.raises(QueryError, match="the formula is empty"):
        parse(text)


@pytest.mark.parametrize(
    ("text", "words", "column"),
    [
        ("& r(a, ?)", "expected a relation, an entity", 1),
        ("r(a, b)", "asks for nothing", 1),
        ("r(a)", "a comma: a relation has a head and a tail", 4),
        ("r(a, ?, b)", "a closing bracket: a relation has a head and a tail", 7),
        ("r(a, ?) &", "found the end", 10),
        ("r(a, ?) r(b, ?)", "expected the end, & or |", 9),
        ("(r(a, ?)", "a closing bracket", 9),
        ('r("a, ?)', "a closing quote is missing", 3),
        ("r(a, ?) & %", "unexpected character: '%'", 11),
        ("a & ?", "expected ( after a relation, = or != after an entity", 3),
        ("lives_in(?, New York)", 'is written in quotes: "New York"', 17),
        ("has part(a, ?)", 'is written in quotes: "has part"', 5),
        ("!" * 200 + "r(a, ?)", "more than 100", 101),
    ],
)
def test_a_mistake_is_pointed_at(text, words, column):
    with pytest.raises(QueryError) as error:
        parse(text)
    assert words in str(error.value)
    assert f"(column {column})" in str(error.value)
    assert error.value.excerpt == f"{text}\n{' ' * (column - 1)}^"


def test_a_mistake_in_text_of_several_lines_is_pointed_at_in_one():
    with pytest.raises(QueryError) as error:
        parse('r("a\nb", ?) @')
    assert error.value.excerpt == 'r("a\\nb", ?) @\n             ^'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("r(a, ?) & s(b, ?x)", "not connected to ?: 'b', ?x"),
        ("r(a, ?) & s(b, c)", "not connected to ?: 'b', 'c'"),
        ("r(a, ?) | s(b, ?x)", "not connected to ?"),
        (" & ".join(f"(r{i}(a, ?) | s{i}(a, ?))" for i in range(7)), f"{MAX_DISJUNCTS} disjuncts"),
        (" | ".join(f"r{i}(a, ?)" for i in range(100)), f"more than {MAX_DISJUNCTS} disjuncts"),
        (
            " & ".join(f"r{i}(a, ?)" for i in range(1000)),
            f"1,000 conditions; at most {MAX_LITERALS}",
        ),
        (" & ".join(["(" + " | ".join(f"r{i}(a, ?)" for i in range(8)) + ")"] * 90), "conditions"),
        (
            "(" + " & ".join(f"r{i}(a, ?)" for i in range(60)) + ") & "
            "(" + " | ".join(f"s{i}(a, ?)" for i in range(60)) + ")",
            "more than 2,000 conditions",
        ),
    ],
)
def test_what_cannot_be_answered_is_refused_with_the_reason(text, words):
    with pytest.raises(QueryError) as error:
        normalise(parse(text))
    assert words in str(error.value)


def test_too_long_a_text_is_refused_before_it_is_read():
    with pytest.raises(QueryError, match="the formula has 200,000 characters; at most 100,000"):
        parse("&" * 200_000)


def test_an_error_in_a_long_formula_shows_only_the_part_around_it():
    with pytest.raises(QueryError) as error:
        parse(" & ".join(["r(a, ?)"] * 400) + " & %" + " & r(b, ?)" * 400)
    shown, mark = error.value.excerpt.splitlines()
    assert shown[mark.index("^")] == "%"
    assert shown.startswith("…")
    assert shown.endswith("…")
    assert len(shown) < 1100
    with pytest.raises(QueryError) as error:
        parse(f"{'x' * 5000} {'y' * 5000}")
    assert len(str(error.value)) < 1000


def test_any_number_of_negated_alternatives_is_one_disjunct():
    (only,) = normalise(parse("!(" + " | ".join(f"r{i}(a, ?)" for i in range(200)) + ")"))
    assert len(only.literals) == 200


@pytest.mark.parametrize("name", NAMED)
def test_named_patterns_print_as_they_are_written(name):
    assert str(named_patterns()[name]) == NAMED[name]


def test_types_stand_as_in_the_tables_of_the_field_and_others_after_them_by_name():
    assert ordered(["zz", "2il", "pni", "a", "1p", "up"]) == ["1p", "up", "pni", "2il", "a", "zz"]
    assert ordered(reversed(NAMED)) == [*NAMED]


def test_places_of_a_pattern_are_in_the_order_of_their_first_occurrence():
    pattern = named_patterns()["coauthor"]
    assert (pattern.constants, pattern.relations) == (["s1"], ["r1", "r2"])


def test_a_pattern_is_filled_in_the_order_of_its_places():
    pattern = parse_pattern("!(r1(s1,e1)&r2(e1,f))&r1(f,s2)|f=s1")
    names = [("likes", False), ("has part", True)]
    assert str(pattern.fill(["Ann", "Bo B"], names)) == (
        '!(likes(Ann, ?e1) & "has part"(?, ?e1)) & likes(?, "Bo B") | ? = Ann'
    )
    with pytest.raises(ValueError, match="zip"):
        pattern.fill(["Ann"], names)


@given(formula=formulas())
@settings(max_examples=100, deadline=None)
def test_a_pattern_filled_with_the_names_of_its_places_is_its_formula(formula):
    pattern = Pattern(formula)
    assert pattern.fill(pattern.constants, [(r, False) for r in pattern.relations]) == formula


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("r1(s1,e1)", "asks for nothing"),
        ("r1(s1,?)", "instead of ? and ?x"),
        ("r1(Germany,f)", "'Germany' is not a place: write s1"),
    ],
)
def test_a_pattern_with_other_places_is_refused(text, words):
    with pytest.raises(QueryError) as error:
        parse_pattern(text)
    assert words in str(error.value)


def test_users_add_patterns_in_yaml(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("triangle: r1(s1,e1)&r2(e1,f)&r3(s1,f)\n")
    assert str(named_patterns(file)["triangle"]) == "r1(s1,e1)&r2(e1,f)&r3(s1,f)"
    file.write_text("- a list")
    with pytest.raises(QueryError, match="name: pattern"):
        named_patterns(file)


def graph(text):
    (only,) = query_graphs(parse(text))
    return only


def test_edges_are_signed_and_directed():
    drawn = graph("capital(?x, ?) & !continent(?x, Asia)")
    assert drawn.nodes == (FREE, X, Constant("Asia"))
    assert drawn.edges == (Edge("capital", 1, 0), Edge("continent", 1, 2, negated=True))
    assert drawn.distances == [0, 1, 2]
    assert drawn.depth == 2
    assert drawn.plan() == ((0, 1, 2), (0, 1), (0,))


def test_a_relation_named_equal_is_not_equality():
    assert graph('"="(a, ?)').edges == (Edge("=", 1, 0),)
    assert graph("? = a").edges == (Edge(None, 0, 1),)


def test_a_denied_path_is_negated_where_it_leaves_the_group():
    drawn = graph("!(r(a, ?x) & s(?x, ?)) & t(b, ?)")
    assert {(edge.relation, edge.negated) for edge in drawn.edges} == {
        ("r", False), ("s", True), ("t", False)
    }  # fmt: skip


def test_without_constants_the_depth_is_that_of_the_farthest_node():
    assert graph("r(?, ?x) & s(?x, ?y)").depth == 2
    assert graph("r(a, ?) & s(?, ?x) & t(?x, ?y)").depth == 1


def test_parallel_edges_do_not_multiply_the_ways_to_a_node():
    ladder = "&".join(f"r(?x{i}, ?x{i + 1}) & s(?x{i}, ?x{i + 1})" for i in range(60))
    assert graph(f"r(?x60, ?) & {ladder} & r(a, ?x0)").depth == 62


def test_a_constant_that_is_named_twice_is_as_far_as_the_farther():
    assert graph("r(a, ?x) & s(?x, ?) & ? != a").depth == 2
    assert graph("r(a, ?x) & s(?x, ?y) & t(?y, ?) & u(a, ?)").depth == 3
    assert graph("r(a, ?) & s(a, ?)").depth == 1


def test_what_is_excluded_is_apart_from_what_is_asked():
    formula = parse("? != a & r(b, ?) & b != ? & !s(?, c)")
    assert exclusions(formula) == (parse("r(b, ?) & !s(?, c)"), [Constant("a"), Constant("b")])
    for text in ("r(a, ?)", "r(?x, ?) & ?x != a", "r(a, ?) | ? != a", "r(a, ?) & ? = a"):
        assert exclusions(parse(text)) == (parse(text), [])
    assert exclusions(parse("? != a")) == (parse("? != a"), [Constant("a")])


@pytest.mark.parametrize(
    ("text", "denied"),
    [
        ("r(a, ?) & !s(?, b)", ["s(?, b)"]),
        ("r(a, ?) & !(s(b, ?x) & t(?x, ?))", ["s(b, ?x) & t(?x, ?)"]),
        ("r(a, ?) & ? != b", ["? = b"]),
        ("r(a, ?) & ? = b", ["? != b"]),
        ("r(a, ?) & !(s(?, ?x) & ?x != b)", ["s(?, ?x) & ?x != b"]),
        ("r(a, ?)", []),
        ("r(a, ?x) & !s(?x, ?)", []),  # the same ?x must satisfy r
        ("r(a, ?) & !(s(?, ?x) & !t(?x, b))", []),  # a new t may make it false
    ],
)
def test_what_is_denied_for_good_is_about_the_answer_alone(text, denied):
    (conjunct,) = normalise(parse(text))
    assert [str(formula) for formula in denials(conjunct)] == denied


def test_pieces_are_connected_by_the_terms_that_they_share():
    texts = ("r(?x, ?y)", "s(a, b)", "t(?, ?x)", "u(?, c)", "v(c, d)")
    pieces = [parse_any(text) for text in texts]
    far, loose, near, side, behind = pieces
    assert connected_to(FREE, pieces) == [near, far, side, behind]
    assert connected_to(Constant("b"), pieces) == [loose]
    assert connected_to(FREE, [near, near]) == [near, near]


def test_terms_are_mapped_wherever_they_stand():
    formula = parse("!(r(a, ?x) & ?x != a) | s(?, a)")
    changed = map_terms(formula, lambda term: X if term == Constant("a") else term)
    assert changed == parse("!(r(?x, ?x) & ?x != ?x) | s(?, ?x)")


def test_variables_of_groups_are_named_after_their_group():
    (conjunct,) = normalise(parse("!(r(a, ?x) & s(?x, ?) | t(b, ?x) & u(?x, ?)) & v(c, ?)"))
    first, second = scoped(conjunct).groups
    assert (first.bound, second.bound) == ((Variable("0.x"),), (Variable("1.x"),))
    assert [(str(literal.atom), literal.negated) for literal in signed_literals(conjunct)] == [
        ("v(c, ?)", False),
        ("r(a, ?0.x)", False),
        ("s(?0.x, ?)", True),
        ("t(b, ?1.x)", False),
        ("u(?1.x, ?)", True),
    ]


def test_a_group_within_a_group_has_both_numbers():
    (conjunct,) = normalise(parse("r(a, ?) & !(s(?, ?x) & !(t(?x, ?y) & u(?y, b)))"))
    (outer,) = scoped(conjunct).groups
    (inner,) = outer.groups
    assert (outer.bound, inner.bound) == ((Variable("0.x"),), (Variable("0.0.y"),))


def test_a_plan_for_more_layers_keeps_nodes_longer():
    assert graph("r(a, ?)").plan(2) == ((0, 1), (0, 1), (0,))
