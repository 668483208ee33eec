"""Folders of named triples, sound and broken."""

import pytest

from lmpnn_kge import DatasetError, KnowledgeGraph
from lmpnn_kge.graph.formats.reading import ReadOptions
from lmpnn_kge.graph.formats.sources import read_files


def triples_of(file):
    """The named triples of a file, in its order."""
    numbered = read_files(file, ReadOptions(suspects_header=False)).numbered
    entities, relations = numbered.entities, numbered.relations
    return [(entities[s], relations[p], entities[o]) for s, p, o in numbered.triples.tolist()]


def test_named_triples_are_numbered_by_first_occurrence(countries):
    graph = KnowledgeGraph.open(countries)
    assert graph.name == "countries"
    assert graph.entity_ids == ["France", "Germany", "Poland", "Euro", "Côte d'Ivoire"]
    assert graph.relation_ids == ["borders", "currency"]
    assert graph.triples("valid").tolist() == [[1, 1, 3]]


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        ("train.txt", b"a\tr\tb\nFrance\tborders\n", "train.txt line 2 must be a head, a relation"),
        (
            "train.txt",
            b"France\tborders\tItaly\t1861\n",
            "line 1 must be a head, a relation and a tail separated by tabs, but has 4 columns",
        ),
        ("train.txt", b"France\t\tItaly\n", "line 1 must be a head, a relation and a tail"),
        ("test.txt", b"a\tb\t\xff\n", "test.txt line 1 is not UTF-8"),
        ("valid.txt", None, "is not a dataset folder: it has neither dataset.yaml nor valid.txt"),
    ],
)
def test_a_broken_folder_is_refused_with_the_file_and_the_line(countries, file, content, words):
    if content is None:
        (countries / file).unlink()
    else:
        (countries / file).write_bytes(content)
    with pytest.raises(DatasetError) as refused:
        KnowledgeGraph.open(countries)
    assert words in str(refused.value)


def test_a_byte_order_mark_is_not_part_of_a_name(countries):
    before = KnowledgeGraph.open(countries)
    for file in countries.glob("*.txt"):
        file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    assert KnowledgeGraph.open(countries).entity_ids == before.entity_ids


@pytest.mark.parametrize("suffix", [".tsv", ".csv", ".del"])
def test_files_of_other_suffixes_hold_the_same_graph(countries, suffix):
    before = KnowledgeGraph.open(countries)
    for file in sorted(countries.glob("*.txt")):
        text = file.read_text()
        file.unlink()
        separated = text.replace("\t", ",") if suffix == ".csv" else text
        file.with_suffix(suffix).write_text(separated)
    assert KnowledgeGraph.open(countries).fingerprint == before.fingerprint


def test_empty_lines_are_skipped_and_an_empty_file_has_no_triples(tmp_path):
    file = tmp_path / "train.txt"
    file.write_text("a\tr\tb\n\nb\tr\tc\n\n")
    assert triples_of(file) == [("a", "r", "b"), ("b", "r", "c")]
    file.write_text("")
    assert triples_of(file) == []


def test_a_csv_file_is_read_with_its_quotes_and_spaces(tmp_path):
    file = tmp_path / "train.csv"
    file.write_text('"Paris, France", in,"the ""hexagon"""\n')
    assert triples_of(file) == [("Paris, France", "in", 'the "hexagon"')]


def test_spaces_before_names_are_left_out_with_a_note(tmp_path):
    file = tmp_path / "train.csv"
    file.write_text('b, "in", " c"\n b,in,c\n"x, y",in,c\n')
    graph = KnowledgeGraph.from_triples(file, valid=0, test=0, header=False)
    assert sorted(graph.entity_ids) == [" c", "b", "c", "x, y"]
    assert graph.notes == (
        f"{file}: spaces before names are left out, as in line 2; put names that begin with a "
        "space in double quotes",
    )
