"""The queries of BetaE folders: nothing in them runs, and nothing is lost in either direction."""

import os
import pickle
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings

from lmpnn_kge.cli import main
from lmpnn_kge.cli.queries import queries as queries_command
from lmpnn_kge.errors import DatasetError, FileError
from lmpnn_kge.graph.formats.betae import IDS
from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph
from lmpnn_kge.graph.vocabulary import Vocabulary
from lmpnn_kge.queries.betae import STRUCTURES, export_betae, import_betae
from lmpnn_kge.queries.store import QueryStore, write_store
from lmpnn_kge.query.patterns import BETAE, FOUR, NAMED, parse_pattern

from .. import libkge_files
from ..graph.formats.betae_files import ENTITIES, dump, graph_folder, load
from .tiny_stores import content, queries, stores

MARKS = {"n": -2, "u": -1}
ANSWERS = {"train": ["answers"], "valid": ["easy-answers", "hard-answers"]}
ANSWERS["test"] = ANSWERS["valid"]
DM = ((("e", ("r", "n")), ("e", ("r", "n"))), ("n",))


def fill(structure, numbers):
    """A query of a structure, with numbers in the places of its letters."""
    if isinstance(structure, str):
        return MARKS[structure] if structure in MARKS else next(numbers)
    return tuple(fill(part, numbers) for part in structure)


def betae_folder(folder, protocol=2):
    """A sound folder with two queries of every type in every split."""
    graph_folder(folder, protocol)
    for split, names in ANSWERS.items():
        listed, answers = defaultdict(set), [defaultdict(set) for _ in names]
        for structure in [*(STRUCTURES[name] for name in BETAE), DM]:
            for numbers in ([3, 2, 1, 0, 2, 1], [0, 3, 2, 1, 3, 2]):
                query = fill(structure, iter(numbers))
                listed[structure].add(query)
                for place, found in enumerate(answers):
                    found[query] = {3, place} if numbers[0] else set()
        dump(folder / f"{split}-queries.pkl", listed, protocol)
        for name, found in zip(names, answers, strict=True):
            dump(folder / f"{split}-{name}.pkl", found, protocol)
    return folder


@pytest.fixture
def folder(tmp_path):
    return betae_folder(tmp_path / "betae")


def test_structures_fill_the_places_of_their_patterns_in_order():
    assert list(STRUCTURES) == [*BETAE, *FOUR]
    for name, structure in STRUCTURES.items():
        letters = [letter for letter in str(structure) if letter.isalpha()]
        pattern = parse_pattern(NAMED[name])
        assert pattern.constants == [f"s{i + 1}" for i in range(letters.count("e"))]
        assert pattern.relations == [f"r{i + 1}" for i in range(letters.count("r"))]


def test_without_names_the_numbers_are_the_names(folder):
    for name in IDS:
        (folder / f"{name}.pkl").unlink()
    for _ in ("from stats.txt", "from the triples"):
        names = import_betae(folder)[0].vocabulary
        assert (names.entity_ids, names.relation_ids) == (["0", "1", "2", "3"], ["0", "2"])
        (folder / "stats.txt").unlink(missing_ok=True)


def test_unreadable_stats_are_refused_if_they_are_needed(folder):
    (folder / "stats.txt").write_text("numentity: 4")
    import_betae(folder)
    for name in IDS:
        (folder / f"{name}.pkl").unlink()
    with pytest.raises(DatasetError, match=r"stats.txt must read"):
        import_betae(folder)


@pytest.mark.parametrize("protocol", range(6))
def test_queries_of_every_pickle_protocol(tmp_path, protocol):
    store, notes = import_betae(betae_folder(tmp_path / "betae", protocol))
    assert notes == [f"{split}: skipped 2 2u-DM" for split in ("train", "valid", "test")]
    assert {name: len(found) for name, found in store.splits["test"].items()} == dict.fromkeys(
        BETAE, 2
    )


def test_an_import_has_the_questions_and_answers_of_the_tuples(folder):
    store, _ = import_betae(folder)
    found = store.splits["test"]["pni"]
    # ((3, (2, 1, -2)), (0, (2,))): z, the inverse of /x/y, and z again
    assert str(store.question(found, 0)) == ("!(z(/m/d, ?e1) & /x/y(?, ?e1)) & z(/m/a, ?)")
    assert (found.easy.of(0).tolist(), found.hard.of(0).tolist()) == ([0, 3], [1, 3])
    assert found.easy.of(1).tolist() == []
    train = store.splits["train"]["1p"]
    assert (train.relations.tolist(), train.hard.values.tolist()) == ([[1], [3]], [])


def test_the_export_of_an_import_has_the_same_files_for_the_14_types(folder, tmp_path):
    store, _ = import_betae(folder)
    stored = write_store(store, tmp_path / "store")
    assert export_betae(stored, tmp_path / "again", KnowledgeGraph.open(folder)) == []
    names = {file.name for file in folder.iterdir()}
    assert {file.name for file in (tmp_path / "again").iterdir()} == names
    for file in sorted(folder.glob("*.pkl")):
        before, after = load(file), load(tmp_path / "again" / file.name)
        if "queries" in file.name:
            del before[DM]
        elif "answers" in file.name:
            before = {query: found for query, found in before.items() if query[1] != (-2,)}
        assert after == before, file.name
    assert content(import_betae(tmp_path / "again")[0])[1:3] == content(store)[1:3]
    for split in ("train", "valid", "test"):
        again = KnowledgeGraph.open(tmp_path / "again").triples(split)
        assert again.tolist() == KnowledgeGraph.open(folder).triples(split).tolist()


def test_files_can_be_asked_for_types_and_queries_that_they_lack(folder, tmp_path):
    """As BetaE's own: published programs do that."""
    export_betae(import_betae(folder)[0], tmp_path / "out")
    for file in (tmp_path / "out").glob("*-*.pkl"):
        with file.open("rb") as stream:
            content = pickle.load(stream)  # our own file, as those programs open it
        assert type(content) is defaultdict
        assert content["no such type"] == set()


def test_the_types_of_the_hard_sets_go_out_and_in(tmp_path):
    found = queries(NAMED["4p"], [[0]], [[0, 1, 2, 3]], [[1]], [[2]])
    store = QueryStore("out", Vocabulary(ENTITIES, ["/x/y", "z"]), {"test": {"4p": found}}, {})
    notes = export_betae(store, tmp_path / "out")
    assert notes == ["test: 4p is a type of the hard sets, not of BetaE's own files"]
    again = import_betae(tmp_path / "out")[0].splits["test"]["4p"]
    assert again.relations.tolist() == [[0, 1, 2, 3]]
    assert (again.easy.values.tolist(), again.hard.values.tolist()) == ([1], [2])


@given(stores())
@settings(max_examples=15, deadline=None)
def test_the_import_of_an_export_is_the_store(tmp_path_factory, store):
    folder = tmp_path_factory.mktemp("export")
    kept = {}
    for split, patterns in store.splits.items():
        kept[split] = {}
        for name, found in patterns.items():
            rows = np.concatenate([found.constants, found.relations], axis=1)
            if name in BETAE and len(np.unique(rows, axis=0)) == len(rows):
                hard = (
                    [[] for _ in rows] if split == "train" else map(found.hard.of, range(len(rows)))
                )
                easy = map(found.easy.of, range(len(rows)))
                kept[split][name] = queries(
                    BETAE[name], found.constants, found.relations, list(easy), list(hard)
                )
    store = QueryStore("out", store.vocabulary, kept)
    assert export_betae(store, folder / "out") == []
    if kept:
        assert without_costs(import_betae(folder / "out")[0]) == without_costs(store)


def without_costs(store):
    return {key: (*columns[:5], *columns[6:8]) for key, columns in content(store)[4].items()}


def test_an_export_reports_what_betae_cannot_hold(tmp_path):
    other = queries("r1(s1,e1)&!r2(e1,f)", [[0]], [[0, 1]], [[1]], [[]])
    twice = queries(BETAE["1p"], [[0], [0]], [[1], [1]], [[1], [1]], [[], []])
    patterns = {"1p": twice, "2p": other, "mine": other}
    store = QueryStore("g", Vocabulary(ENTITIES, ["r", "s"]), {"train": patterns})
    assert export_betae(store, tmp_path / "out") == [
        "train: skipped 1 1p that occur a second time",
        "train: skipped 1 2p, which is not a BetaE type",
        "train: skipped 1 mine, which is not a BetaE type",
    ]
    assert load(tmp_path / "out" / "train-queries.pkl") == {STRUCTURES["1p"]: {(0, (2,))}}


def test_an_export_never_replaces_anything_and_is_never_left_unfinished(tmp_path, folder):
    store, _ = import_betae(folder)
    with pytest.raises(FileError, match="holds something else"):
        export_betae(store, folder)
    hard = queries(BETAE["1p"], [[0]], [[1]], [[1]], [[2]])
    store = QueryStore("g", Vocabulary(ENTITIES, ["r", "s"]), {"train": {"1p": hard}})
    with pytest.raises(DatasetError, match="train 1p has hard answers"):
        export_betae(store, tmp_path / "out")
    assert os.listdir(tmp_path) == ["betae"]


def test_exporting_once_more_leaves_the_folder_as_it_is(folder, tmp_path):
    store = import_betae(folder)[0]
    for _ in range(2):
        export_betae(store, tmp_path / "out")
    (tmp_path / "out" / "stats.txt").write_text("other")
    with pytest.raises(FileError, match="out exists and holds something else"):
        export_betae(store, tmp_path / "out")


def test_an_export_takes_the_triples_of_a_graph_by_name(tmp_path, folder):
    store, _ = import_betae(folder)
    triples = {"train": np.array([[0, 1, 2]]), "valid": np.zeros((0, 3), int)}
    splits = triples | {"test": triples["valid"]}
    names = Vocabulary(["/m/c", "/m/b", "/m/a"], ["/x/y", "z"])
    graph = KnowledgeGraph(folder, "g", names, splits)
    export_betae(store, tmp_path / "out", graph)
    assert (tmp_path / "out" / "train.txt").read_text() == "2\t2\t0\n0\t3\t2\n"
    graph = KnowledgeGraph(folder, "g", Vocabulary(["/m/x"], []), splits)
    with pytest.raises(DatasetError, match=r"names that the queries' graph lacks: 1 \('/m/x'\)"):
        export_betae(store, tmp_path / "other", graph)


class Runs:
    """Pickles as a call of a function."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


def hostile(marker: Path) -> dict[str, tuple[bytes, str]]:
    code = f"open({str(marker)!r}, 'w')"
    nested = b"\x80\x04\x8f(K\x01" + b"\x85" * 1_000_000 + b"\x90."
    opened = b"\x80\x04]" + b"]" * 100_000
    huge_place = b"\x80\x04}r\xff\xff\xff\x7f."
    return {
        "os.system": (pickle.dumps(Runs(os.system, f"touch {marker}")), "it names posix.system"),
        "eval": (pickle.dumps({1: Runs(eval, code)}), "it names builtins.eval"),
        "eval, as in Python 2": (pickle.dumps(Runs(eval, code), 0), "names __builtin__.eval"),
        "a default that runs": (
            pickle.dumps(Runs(defaultdict, os.getcwd)),
            "it names posix.getcwd",
        ),
        "a name with dots": (
            b"\x80\x04\x8c\x08builtins\x8c\x0bset.__doc__\x93.",
            "it names builtins.set.__doc__",
        ),
        "numpy": (pickle.dumps({1: np.int64(1)}), "it names numpy"),
        "a change of a type": (b"\x80\x02cbuiltins\nset\n}X\x01\x00\x00\x00aK\x01sb.", "readable"),
        "a persistent id": (b"\x80\x02X\x01\x00\x00\x00aQ.", "persistent"),
        "nested too deep": (nested, "nested too deep"),
        "a place in memory that nobody has": (huge_place, "would take far more memory"),
        "lists that never end": (opened, "not a readable pickle"),
        "nothing": (b"", "EOFError"),
        "half of it": (pickle.dumps({i: str(i) for i in range(99)})[:300], "not a readable pickle"),
        "no pickle": (b"<html>Not found</html>", "not a readable pickle"),
        "a list": (pickle.dumps([1]), "holds a list and not a dict"),
    }


def test_a_few_tuples_that_take_years_to_hash_are_refused_whatever_size_they_claim(folder):
    doubled = b"\x80\x02})" + b"q\x00h\x00\x86" * 60 + b"Ns."
    (folder / "id2ent.pkl").write_bytes(doubled)
    os.truncate(folder / "id2ent.pkl", 1 << 40)  # a hole, which takes no room on the disk
    with pytest.raises(DatasetError, match=r"id2ent.pkl takes longer to read than any file"):
        import_betae(folder)


@pytest.mark.parametrize("name", hostile(Path("marker")))
@pytest.mark.parametrize("file", ["id2ent.pkl", "test-hard-answers.pkl"])
def test_a_hostile_pickle_is_refused_by_name_and_nothing_runs(folder, tmp_path, name, file):
    data, words = hostile(tmp_path / "marker")[name]
    (folder / file).write_bytes(data)
    with pytest.raises(DatasetError) as refused:
        import_betae(folder)
    assert str(refused.value).startswith(str(folder / file))
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "marker").exists()
    if file == "id2ent.pkl":
        with pytest.raises(DatasetError):
            KnowledgeGraph.open(folder)


def test_no_module_is_imported_from_the_current_folder(folder, monkeypatch, tmp_path):
    for name in ("json", "numpy", "resource", "lmpnn_kge"):
        (folder / f"{name}.py").write_text(f"open({str(tmp_path / 'marker')!r}, 'w')")
    monkeypatch.chdir(folder)
    import_betae(".")
    assert not (tmp_path / "marker").exists()


ONE = STRUCTURES["1p"]

#: A file, its content, and words that the message must have.
BROKEN = {
    "names with gaps": ("id2ent", {0: "a", 2: "b"}, "must number its 2 names from 0"),
    "names that are numbers": ("id2ent", {0: "a", 1: 2}, "names and numbers only"),
    "numbers that are sets": ("ent2id", {"a": {1}}, "names and numbers only"),
    "tables that disagree": ("id2ent", dict(enumerate("abcd")), "disagree: 8"),
    "relations without signs": ("id2rel", dict(enumerate("abcd")), "disagree"),
    "queries in a list": ("test-queries", {ONE: [(1, (2,))]}, "must hold sets of queries"),
    "a query of another shape": ("test-queries", {ONE: {(1, 2)}}, "no answers to 1 1p"),
    "answers in a list": ("test-hard-answers", {(3, (2,)): [1]}, "no answers to 1 1p"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_content_is_refused(folder, name):
    file, value, words = BROKEN[name]
    dump(folder / f"{file}.pkl", value)
    with pytest.raises(DatasetError) as refused:
        import_betae(folder)
    assert words in str(refused.value)
    assert str(folder) in str(refused.value)


@pytest.mark.parametrize(
    ("query", "found", "words"),
    [
        ((1, 2), {1}, "they have an unexpected shape"),
        ((1, (2, 3)), {1}, "they have an unexpected shape"),
        ((1, ("r",)), {1}, "they hold something other than numbers"),
        ((True, (2,)), {1}, "they hold something other than numbers"),
        ((1.0, (2,)), {1}, "they hold something other than numbers"),
        ((4, (2,)), {1}, "1 have an id outside 0 to 3"),
        ((2**70, (2,)), {1}, "too"),
        ((1, (-1,)), {1}, "1 have an id outside 0 to 3"),
        ((1, (2,)), [1], "test-hard-answers.pkl must hold sets of numbers"),
        ((1, (2,)), {"a"}, "test-hard-answers.pkl must hold sets of numbers"),
        ((1, (2,)), {1, 4}, "1 answers are not among 0 to 3"),
        ((1, (2,)), {2**70}, "answers are not among 0 to 3"),
    ],
    ids=str,
)
def test_broken_queries_and_answers_are_refused(folder, query, found, words):
    dump(folder / "test-queries.pkl", {ONE: {query}})
    dump(folder / "test-hard-answers.pkl", {query: found})
    with pytest.raises(DatasetError, match=words):
        import_betae(folder)


@pytest.mark.parametrize(
    ("name", "query", "words"),
    [
        ("2in", ((1, (2, -2)), (1, (2, 0))), "they have an unexpected shape"),
        ("2in", ((1, (2,)), (1, (2, 0))), "unexpected markers for negation or union"),
        ("2in", ((1, (2,)), (1, (2, -1))), "unexpected markers for negation or union"),
        ("2u", ((1, (2,)), (1, (3,)), (-2,)), "unexpected markers for negation or union"),
    ],
    ids=str,
)
def test_a_marker_in_another_position_is_refused(folder, name, query, words):
    dump(folder / "test-queries.pkl", {STRUCTURES[name]: {query}})
    dump(folder / "test-hard-answers.pkl", {query: {1}})
    with pytest.raises(DatasetError, match=f"cannot read the {name} queries: {words}"):
        import_betae(folder)


def test_other_structures_and_stray_answers_are_reported(folder):
    dump(folder / "test-queries.pkl", {("e", ("r",) * 5): {(1, (0, 0, 0, 0, 0))}, ONE: set()})
    store, notes = import_betae(folder)
    assert len(store.splits["test"]["1p"]) == 0
    assert notes[-2].startswith("test: skipped 1 ('e', ('r', 'r', 'r', 'r', 'r'))")
    assert "queries that are not listed" in notes[-1]


def test_a_folder_without_queries_is_refused(tmp_path):
    with pytest.raises(DatasetError, match="is not a BetaE folder: it has neither train-"):
        import_betae(tmp_path)
    with pytest.raises(DatasetError, match="is not a BetaE folder: it has neither train-"):
        import_betae(tmp_path / "nowhere")


def test_missing_answers_are_refused(folder):
    (folder / "test-easy-answers.pkl").unlink()
    with pytest.raises(DatasetError, match=r"test-easy-answers.pkl is missing"):
        import_betae(folder)


def test_the_commands_import_and_export(folder, tmp_path):
    def run(*arguments):
        return CliRunner().invoke(
            queries_command, [str(a) for a in arguments], catch_exceptions=False
        )

    imported = run("import", folder, "--out", tmp_path / "store")
    assert imported.stdout.splitlines()[1].split() == [
        "train", "1p", "2", "1.0", "0.0", "r1(s1,f)",
    ]  # fmt: skip
    assert "note: test: skipped 2 2u-DM" in imported.stderr
    assert run("export", tmp_path / "store", "--out", tmp_path / "out").exit_code == 0
    assert content(import_betae(tmp_path / "out")[0])[4] == content(import_betae(folder)[0])[4]


def test_imported_queries_are_joined_to_a_checkpoint_by_name(folder, tmp_path):
    """The checkpoint of the helper has five entities of its own names; one of them is ours."""
    made = libkge_files.content()
    made["dataset"]["meta"]["entity_ids"][4] = "/m/d"
    made["dataset"]["meta"]["relation_ids"][:2] = ["z", "/x/y"]
    file = libkge_files.save(tmp_path / "file.pt", made)
    arguments = ["queries", "import", str(folder), "--out", str(tmp_path / "store")]
    result = CliRunner().invoke(main, [*arguments, "--checkpoint", str(file)])
    assert result.exit_code == 0, result.output
    assert "unknown entities: 3 ('/m/a', '/m/b', '/m/c')" in result.output
    joined = QueryStore.open(tmp_path / "store")
    assert joined.vocabulary.entity_ids[4] == "/m/d"
    one_hop = joined.splits["train"]["1p"]
    assert one_hop.constants.tolist() == [[4]]  # entity 3 there
    assert one_hop.relations.tolist() == [[0]]  # relation 2 there: z forwards
    assert one_hop.easy.values.tolist() == [4]


def test_a_checkpoint_without_names_cannot_be_joined(folder, tmp_path):
    file = libkge_files.save(tmp_path / "file.pt", libkge_files.content(dataset=None))
    arguments = ["queries", "import", str(folder), "--out", str(tmp_path / "store")]
    result = CliRunner().invoke(main, [*arguments, "--checkpoint", str(file)])
    assert result.exit_code == 2
    assert "has no names to join by" in result.output
    assert not (tmp_path / "store").exists()
