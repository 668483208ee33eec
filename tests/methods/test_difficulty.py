"""Methods beside each other, by the number of missing edges."""

from lmpnn_kge.methods.difficulty import by_difficulty
from lmpnn_kge.methods.results import Results, TypeResult


def results(**by_missing):
    types = {
        name: TypeResult(0.5, {1: 0.1}, 3, {edges: (mrr, 4) for edges, mrr in parts.items()})
        for name, parts in by_missing.items()
    }
    return Results("test", types)


def test_each_number_of_missing_edges_has_a_table_with_a_row_per_method():
    rows = {
        "search": results(p1={1: 0.5}, p2={1: 0.25, 2: 0.125}),
        "hybrid": results(p1={1: 0.75}, p2={1: 0.5, 2: 0.375}),
    }
    one, two = by_difficulty(rows).split("\n\n")
    assert [line.split() for line in one.splitlines()] == [
        ["1", "missing", "p1", "p2"],
        ["search", "50.0", "25.0"],
        ["hybrid", "75.0", "50.0"],
    ]
    assert two.splitlines()[0].split() == ["2", "missing", "p2"]


def test_without_known_numbers_there_is_nothing_to_show():
    assert by_difficulty({"search": results(p1={})}) == ""
