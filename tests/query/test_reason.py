"""Reasons: what is said about each condition, as text, as JSON and as a picture."""

import json
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lmpnn_kge.errors import QueryError
from lmpnn_kge.query.draw_reasons import LOOKS, draw_reasons
from lmpnn_kge.query.explain import Witness, explain
from lmpnn_kge.query.formula import FREE, Atom, Constant, literals, terms
from lmpnn_kge.query.normal_form import all_literals, normalise
from lmpnn_kge.query.parser import parse
from lmpnn_kge.query.reason import formula_of, percent

from ..formulas import formulas

COUNTRIES = ["Chile", "Peru", "Bolivia", "Peso", "Sol"]
RELATIONS = ["borders", "currency"]
EDGES = {
    ("Chile", "borders", "Peru"),
    ("Peru", "borders", "Bolivia"),
    ("Chile", "currency", "Peso"),
}
SVG = "{http://www.w3.org/2000/svg}"


@dataclass
class Names:
    """Rows by position; every label is its id with a prefix, if there is one."""

    entity_ids: list[str]
    relation_ids: list[str]
    prefix: str = ""

    def entity(self, name):
        return self.entity_ids.index(name)

    def relation(self, name):
        return self.relation_ids.index(name)

    def label(self, entity):
        return self.prefix + self.entity_ids[entity]

    def relation_label(self, relation):
        return self.prefix + self.relation_ids[relation]


NAMES = Names(COUNTRIES, RELATIONS)


def known(edges):
    triples = [(COUNTRIES[h], RELATIONS[r], COUNTRIES[t]) for h, r, t in edges.tolist()]
    return np.array([triple in EDGES for triple in triples])


def half(edges):
    return np.full(len(edges), 0.5)


def reason(text, answer, paths=None, probability=half, names=NAMES, **others):
    """The reason of an answer by the first disjunct of a formula."""
    disjunct = normalise(parse(text))[0]
    rows = {variable: names.entity(others[variable.name]) for variable in disjunct.bound}
    witness = Witness(disjunct, {FREE: names.entity(answer), **rows}, paths)
    return explain([witness], names, known, probability)[0]


@pytest.mark.parametrize(
    ("text", "answer", "line", "truth"),
    [
        ("borders(Chile, ?)", "Peru", "known  borders(Chile, Peru)", 1.0),
        ("borders(Chile, ?)", "Bolivia", "predicted 50%  borders(Chile, Bolivia)", 0.5),
        ("!currency(?, Sol)", "Peru", "not known to hold, 50% likely  currency(Peru, Sol)", 0.5),
        ("!currency(?, Peso)", "Chile", "known but denied  currency(Chile, Peso)", 0.0),
        ("? = Peru", "Peru", "true  Peru = Peru", 1.0),
        ("? = Peru", "Chile", "false  Chile = Peru", 0.0),
        ("? != Peru", "Chile", "true  Chile != Peru", 1.0),
        ("? != Peru", "Peru", "false  Peru != Peru", 0.0),
    ],
)
def test_a_condition_is_described_in_words(text, answer, line, truth):
    explained = reason(text, answer)
    assert explained.lines() == [line]
    assert explained.truth == truth


@pytest.mark.parametrize(
    ("text", "line", "truth"),
    [
        ("borders(Peru, ?)", "missing  borders(Peru, Chile)", 0.0),
        ("!currency(?, Sol)", "not known to hold  currency(Chile, Sol)", 1.0),
    ],
)
def test_without_an_embedding_nothing_is_predicted(text, line, truth):
    explained = reason(text, "Chile", probability=None)
    assert explained.lines() == [line]
    assert explained.truth == truth


@pytest.mark.parametrize(
    ("chance", "words", "truth"),
    [
        (None, "no path is known", 1.0),
        (0.25, "no path is known, 25% likely", 0.75),
        (1.0, "path known but denied", 0.0),
    ],
)
def test_a_denied_group_is_one_condition(chance, words, truth):
    explained = reason("!(borders(Peru, ?x) & borders(?x, ?))", "Chile", (chance,))
    assert explained.lines() == [f"{words}  borders(Peru, ?x) & borders(?x, Chile)"]
    assert explained.truth == truth


def test_the_truth_of_a_reason_is_the_product_over_its_conditions():
    explained = reason(
        "borders(Chile, ?x) & borders(?x, ?) & !currency(?, Sol)", "Sol", x="Bolivia"
    )
    assert explained.truth == 0.5**3
    assert str(explained).splitlines() == [
        "Sol with ?x = Bolivia, truth 12%",
        "  predicted 50%                  borders(Chile, Bolivia)",
        "  predicted 50%                  borders(Bolivia, Sol)",
        "  not known to hold, 50% likely  currency(Sol, Sol)",
    ]


def test_a_reason_prints_as_one_line():
    explained = reason("borders(Chile, ?x) & borders(?x, ?)", "Bolivia", x="Peru")
    assert repr(explained) == (
        "Reason(Bolivia with ?x = Peru: borders(Chile, Peru) known, borders(Peru, Bolivia) known)"
    )


def test_all_edges_are_looked_up_at_once_and_each_only_once():
    (disjunct,) = normalise(parse("borders(Chile, ?x) & borders(?x, ?) & !currency(?, Peso)"))
    free, x = FREE, disjunct.bound[0]
    witnesses = [Witness(disjunct, {free: answer, x: 1}) for answer in (2, 3, 4)]
    calls = []

    def counted(function):
        def call(edges):
            calls.append(edges.tolist())
            return function(edges)

        return call

    reasons = explain(witnesses, NAMES, counted(known), counted(half))
    asked, unknown = calls
    assert len(asked) == 1 + 3 + 3
    assert unknown == [edge for edge in asked if edge not in ([0, 0, 1], [1, 0, 2])]
    assert [r.answer.id for r in reasons] == COUNTRIES[2:]
    assert explain([], NAMES, known, half) == []


def test_json_has_ids_and_labels():
    names = Names(COUNTRIES, RELATIONS, "the ")
    explained = reason("!currency(?, Peso) & !borders(?x, ?)", "Peru", (0.25,), names=names)
    assert json.loads(json.dumps(explained.to_json())) == {
        "disjunct": "!currency(?, Peso) & !borders(?x, ?)",
        "values": {"?": {"id": "Peru", "label": "the Peru"}},
        "truth": 0.375,
        "atoms": [
            {
                "text": '"the currency"("the Peru", "the Peso")',
                "status": "not known to hold",
                "probability": 0.5,
                "negated": True,
                "relation": {"id": "currency", "label": "the currency"},
                "head": {"id": "Peru", "label": "the Peru"},
                "tail": {"id": "Peso", "label": "the Peso"},
            },
            {
                "text": '"the borders"(?x, "the Peru")',
                "status": "no path is known",
                "probability": 0.25,
                "negated": True,
            },
        ],
    }


@pytest.mark.parametrize(
    ("chance", "text"), [(0.0, "<1%"), (0.004, "<1%"), (0.5, "50%"), (0.994, ">99%"), (1.0, ">99%")]
)
def test_a_prediction_is_never_called_certain(chance, text):
    assert percent(chance) == text


@pytest.mark.parametrize(
    "text",
    ["r(a, ?)", "!r(a, ?) & ? != b", "r(a, ?x) & s(?x, ?) & !(t(?, ?y) & !(u(?y, ?z) & v(?z, b)))"],
)
def test_a_conjunct_prints_as_it_was_written(text):
    assert [str(formula_of(conjunct)) for conjunct in normalise(parse(text))] == [text]


def texts(picture):
    return ["".join(element.itertext()) for element in picture.iter(f"{SVG}text")]


def looks(picture):
    return [path.get("class") for path in picture.iter(f"{SVG}path")]


def test_a_picture_shows_entities_and_what_is_known_of_each_edge():
    explained = reason(
        "borders(Chile, ?x) & borders(?x, ?) & !currency(?, Sol) & ? != Peso & !borders(?y, ?)",
        "Sol",
        x="Peru",
    )
    picture = ElementTree.fromstring(draw_reasons([explained, explained]))
    edges = ["known", "predicted", "absent", "different", "no-path"]
    assert looks(picture) == 3 * edges  # two reasons and the legend
    shown = texts(picture)
    for text in ("Chile", "Peru", "?x", "predicted 50%", "not currency", "≠", "no path is known"):
        assert text in shown
    assert len({(look.colour, look.dashes) for look in LOOKS.values()}) == len(LOOKS)


def test_long_names_are_shortened_and_kept_as_tooltips():
    entity = "A very long name of an entity that would make the picture wide"
    relation = "/a/very/long/name/of/a/relation/whose/end/tells/most"
    names = Names([*COUNTRIES, entity], [relation])
    (disjunct,) = normalise(parse(f"{relation}(Chile, ?)"))
    (explained,) = explain(
        [Witness(disjunct, {FREE: 5})], names, lambda edges: np.zeros(len(edges), bool), half
    )
    picture = ElementTree.fromstring(draw_reasons([explained]))
    tooltips = [element.text for element in picture.iter(f"{SVG}title")]
    assert tooltips == [entity, relation]
    visible = [title.tail for title in picture.iter(f"{SVG}title")]
    assert visible == ["A very long name of an entity tha…", "…f/a/relation/whose/end/tells/most"]


@given(formula=formulas(leaves=6), data=st.data())
@settings(max_examples=150, deadline=None)
def test_every_reason_has_a_picture_and_a_text_of_printable_lines(formula, data):
    try:
        disjuncts = normalise(formula)
    except QueryError:
        assume(False)
    constants = [term.name for term in terms(formula) if isinstance(term, Constant)]
    relations = [atom.relation for atom in literals(formula) if isinstance(atom, Atom)]
    names = Names(list(dict.fromkeys(["e", *constants])), list(dict.fromkeys(relations)))
    rows = st.integers(0, len(names.entity_ids) - 1)
    witnesses = [
        Witness(disjunct, {v: data.draw(rows) for v in (FREE, *disjunct.bound)})
        for disjunct in disjuncts
    ]
    reasons = explain(witnesses, names, lambda edges: edges[:, 0] % 2 == 0, half)
    picture = ElementTree.fromstring(draw_reasons(reasons).encode())
    edges = sum(len(list(all_literals(disjunct))) for disjunct in disjuncts)
    legend = len(set(looks(picture)))
    assert len(looks(picture)) == edges + legend
    assert all(line.isprintable() for r in reasons for line in str(r).splitlines())
    assert all(len(str(r).splitlines()) == 1 + len(r.checks) for r in reasons)
    assert all(0 <= r.truth <= 1 for r in reasons)
