"""The paper's numbers are all there, and what is odd about them is known."""

import dataclasses
from itertools import combinations

import pytest

from lmpnn_kge.errors import LmpnnError
from lmpnn_kge.query.patterns import NEGATIVE, POSITIVE
from lmpnn_kge.reports.published import MAJOR, is_published_graph, published, published_graph

#: A mean of rounded numbers, itself rounded: half a unit for each.
ROUNDING = 0.1 + 1e-9


def one(*arguments, **options):
    (row,) = published(*arguments, **options)
    return row


def same_model(row):
    return row.graph, row.model, row.backbone, row.dim


def test_values_are_those_of_the_paper():
    lmpnn = one("FB15k-237", table=MAJOR, model="LMPNN")
    assert lmpnn.mrr["1p"] == 45.9
    assert (lmpnn.mrr["pni"], lmpnn.positive, lmpnn.negative) == (5.2, 24.1, 7.8)
    assert (lmpnn.backbone, lmpnn.dim) == ("ComplEx", 2000)
    assert one("FB15k", table=MAJOR, model="CQD(E)").mrr["pni"] == 18.4
    assert one("NELL", table=MAJOR, model="ConE").mrr["3i"] == 50.8
    rotate = one("FB15k-237", table="tb:LMPNN-KGs", backbone="rotate")
    assert (rotate.mrr["2u"], rotate.positive, rotate.dim) == (13.0, 20.7, 256)
    (cat,) = (row for row in published(table="tb:ablation") if row.setting == "KGE Cat")
    assert (cat.mrr["inp"], cat.negative) == (5.6, 3.1)
    assert one("NELL", table="tb:bench-symb", model="ENeSy").mrr["2in"] == 11.3


def test_all_that_is_printed_of_a_row_can_be_had_at_once():
    lmpnn = one("FB15k-237", table=MAJOR, model="LMPNN")
    assert list(lmpnn.printed) == [*POSITIVE, *NEGATIVE, "A_P", "A_N"]
    assert (lmpnn.printed["1p"], lmpnn.printed["A_N"]) == (45.9, 7.8)
    assert lmpnn.label(same_queries=True) == "published: LMPNN (ComplEx 2000D)"
    other = lmpnn.label(same_queries=False)
    assert other == "published, on other queries: LMPNN (ComplEx 2000D)"


@pytest.mark.parametrize(
    ("name", "entities", "relations", "same"),
    [
        ("fb15k-237-betae", 40, 6, True),
        ("mine", 14541, 237, True),
        ("mine", 14505, 237, True),
        ("mine", 14505, 1345, False),
        ("geography", 2000, 8, False),
    ],
)
def test_a_graph_is_recognised_by_its_name_or_its_sizes(name, entities, relations, same):
    assert is_published_graph("FB15k-237", name, entities, relations) is same


def test_every_table_is_whole():
    counts = {}
    for row in published():
        counts[row.table] = counts.get(row.table, 0) + 1
        assert tuple(row.mrr) == (*POSITIVE, *NEGATIVE)
        assert all(0 <= value <= 100 for value in row.mrr.values())
    assert counts == {
        "tb:major": 15,
        "tb:ablation": 10,
        "tb:LMPNN-KGs": 6,
        "tb:bench-fb15k-237": 6,
        "tb:bench-fb15k": 6,
        "tb:bench-nell": 8,
        "tb:bench-symb": 6,
    }
    assert len(set(map(str, published()))) == len(published())


def test_averages_are_means_of_their_types_but_for_two():
    odd = [
        (row.table, row.graph, row.model, name)
        for row in published()
        for name, types, printed in (
            ("A_P", POSITIVE, row.positive),
            ("A_N", NEGATIVE, row.negative),
        )
        if abs(sum(row.mrr[type_] for type_ in types) / len(types) - printed) > ROUNDING
    ]
    assert odd == [("tb:major", "FB15k", "Q2P", "A_N"), ("tb:major", "NELL", "Q2P", "A_N")]
    assert all("A_N is printed" in one(g, table=t, model=m).note for t, g, m, _ in odd)


def test_a_row_that_is_printed_twice_has_the_same_types_and_almost_the_same_averages():
    differing = set()
    plain = [row for row in published() if row.setting in (None, "best choice")]
    for first, other in combinations(plain, 2):
        if same_model(first) == same_model(other):
            assert first.mrr == other.mrr
            if (first.positive, first.negative) != (other.positive, other.negative):
                differing.add((first.graph, first.model))
    assert differing == {
        ("FB15k", "BetaE"),
        ("FB15k", "Q2P"),
        ("FB15k-237", "BetaE"),
        ("NELL", "ConE"),
        ("NELL", "Q2P"),
    }


def test_columns_that_may_be_exchanged_are_noted():
    noted = [row for row in published() if row.note is not None and "exchanged" in row.note]
    assert {row.model for row in noted} == {"MLP-Mix"}
    assert {row.graph for row in noted} == {"FB15k", "FB15k-237", "NELL"}
    assert all(row.mrr["pi"] < row.mrr["ip"] for row in noted)


def test_sources_tell_own_reproduced_and_reported_rows_apart():
    assert "own" in one("NELL", table=MAJOR, model="LMPNN").source
    assert "reproduced" in one("NELL", table=MAJOR, model="BetaE").source
    assert "paper of its authors" in one("NELL", model="GNN-QE").source
    assert [row.setting for row in published("NELL", model="FuzzQE")] == ["reproduced", "reported"]


@pytest.mark.parametrize("name", ["fb15k-237", "FB15k-237", "FB15k-237-betae", "FB15K_237"])
def test_a_graph_goes_by_any_spelling(name):
    assert published_graph(name) == "FB15k-237"
    assert published(name) == published("FB15k-237")


def test_one_graph_is_not_taken_for_another():
    assert {row.graph for row in published("fb15k")} == {"FB15k"}
    assert published("toykg") == published("betae") == published("") == []
    with pytest.raises(LmpnnError, match="nothing is published on 'NEL'; did you mean 'NELL'"):
        published_graph("NEL")


def test_rows_cannot_be_changed():
    row = published()[0]
    with pytest.raises(dataclasses.FrozenInstanceError):
        row.graph = "another"
    with pytest.raises(TypeError):
        row.mrr["1p"] = 100.0
