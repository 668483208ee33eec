"""What is fitted is kept, reused while nothing has changed, and fitted again if something has."""

import dataclasses
import json
import shutil
from pathlib import Path

import pytest
import torch

from lmpnn_kge import (
    KnowledgeGraph,
    Run,
    RunError,
    evaluate_method,
    open_backbone,
    save_backbone,
    train,
)
from lmpnn_kge.errors import ConfigError, DatasetError, LmpnnError
from lmpnn_kge.queries.store import QueryStore, write_store
from lmpnn_kge.runs import fitting as fitting_module
from lmpnn_kge.search.fit import fit
from lmpnn_kge.work.listener import SILENT, Listener

from ..conftest import TOY
from ..edited import edit_json, read_json
from ..toy_runs import ROTATE, cli, sample_few, tiny

FRIENDS = "friend_of(person/sven_ekdal, ?)"
FITTED_SETTINGS = {"beta": 0.5, "bias": -1.0}


class Notes(Listener):
    def __init__(self):
        self.texts = []

    def note(self, text):
        self.texts.append(text)


@pytest.fixture
def fits(monkeypatch):
    """The names of the methods that are fitted during a test."""
    names = []

    def counting(name, *arguments):
        names.append(name)
        return fit(name, *arguments)

    monkeypatch.setattr(fitting_module, "fit", counting)
    return names


@pytest.fixture(scope="module")
def trained(tmp_path_factory, toy_queries) -> Path:
    """A home with a checkpoint, a graph, queries and a run, none of which is fitted."""
    home = tmp_path_factory.mktemp("fitted") / "home"
    (home / "data").mkdir(parents=True)
    shutil.copy(ROTATE, home / "rotate.pt")
    shutil.copytree(TOY / "dataset", home / "data" / "toykg")
    shutil.copytree(toy_queries, home / "data" / "toykg-queries")
    train(
        home / "rotate.pt",
        dataset=home / "data" / "toykg",
        queries=home / "data" / "toykg-queries",
        out=home / "run",
        settings=tiny(),
    )
    return home.rename(home.with_name("elsewhere"))


@pytest.fixture
def home(trained, tmp_path) -> Path:
    """A copy that a test may change; the run finds what lies beside it."""
    shutil.copytree(trained, tmp_path / "home")
    return tmp_path / "home"


def evaluate(home, name="search", listener=SILENT, **options):
    given = {"dataset": home / "data" / "toykg", "queries": home / "data" / "toykg-queries"}
    return evaluate_method(
        name, home / "rotate.pt", **{**given, "limit": 5, "listener": listener, **options}
    )


@pytest.mark.parametrize("name", ["search", "hybrid"])
def test_a_fit_is_kept_beside_the_checkpoint_and_reused(home, fits, name):
    notes = Notes()
    first = evaluate(home, name, notes)
    file = home / f"rotate.{name}.json"
    assert json.loads(file.read_text())["kind"] == "lmpnn-kge fit"
    assert any(note.startswith(f"fitting {name} on valid, once; kept in ") for note in notes.texts)
    again = Notes()
    assert evaluate(home, name, again) == first
    assert fits == [name]
    assert not any("fitting" in note for note in again.texts)


@pytest.mark.parametrize("name", ["search", "hybrid"])
def test_a_fit_is_kept_in_the_run_and_reused(home, fits, name):
    first = Run.open(home / "run").ask(FRIENDS, method=name)
    assert (home / "run" / f"{name}.json").is_file()
    run = Run.open(home / "run")
    assert run.ask(FRIENDS, method=name) == first
    assert run.ask(FRIENDS, method=name) == first
    assert fits == [name]


@pytest.mark.parametrize("name", ["search", "hybrid"])
def test_numbers_of_answers_are_fitted_once_and_measured_beside_the_known_answers(home, name):
    first, again = Notes(), Notes()
    measured = evaluate(home, name, first).counting
    assert [*measured.rows] == ["predicted", "known", "median"]
    assert (home / f"rotate.{name}-count.json").is_file()
    assert sum(note.startswith(f"fitting {name}-count on valid, once") for note in first.texts) == 1
    assert evaluate(home, name, again).counting == measured
    assert not any("fitting" in note for note in again.texts)


def test_known_answers_are_those_by_training_edges(home):
    """The baseline is what the graph says: no more than the answers to 1p, and exactly its own."""
    store = QueryStore.open(home / "data" / "toykg-queries")
    graph = KnowledgeGraph.open(home / "data" / "toykg")
    queries = store.queries("test")["1p"].ranked
    known = graph.database.answer(queries.pattern, queries.constants, queries.relations, "train")
    actual = queries.easy.counts + queries.hard.counts
    error = evaluate(home, limit=None).counting.errors["known"]["1p"]
    assert len(queries) <= fitting_module.MEASURED
    assert error == pytest.approx((abs(known.counts - actual) / actual).mean())


def test_ignored_facts_and_the_network_count_by_scores_alone(home):
    ignored = evaluate(home, settings={"facts": "ignored"}).counting
    network = Run.open(home / "run").evaluate(limit=5).counting
    assert [*ignored.rows] == [*network.rows] == ["predicted", "median"]


def test_a_question_has_about_so_many_answers(home):
    run = Run.open(home / "run")
    known = len(run.graph.answer(FRIENDS, split="train"))
    for method in ("search", "hybrid", "lmpnn"):
        number = run.count(FRIENDS, method=method)
        assert number.known == known
        assert known <= number.expected <= run.vocabulary.num_entities
    printed = cli("ask", home / "run", "--count", "-k", 1, FRIENDS, FRIENDS).stdout.splitlines()
    assert printed[2].strip() == str(run.count(FRIENDS))
    assert f"{known} of them known" in printed[2]
    (record,) = json.loads(cli("ask", home / "run", "--count", "-k", 1, FRIENDS, "--json").stdout)
    assert (record["known_count"], record["count"]) == (known, run.count(FRIENDS).expected)


def test_a_method_that_predicts_no_numbers_is_one_clear_line(home):
    command = ["ask", home / "run", "--count", "--method", "cqd-beam", FRIENDS]
    assert "cqd-beam cannot predict numbers of answers" in cli(*command, code=2).stderr


def test_other_settings_are_fitted_again(home, fits):
    evaluate(home)
    evaluate(home, settings={"beam": 16})
    evaluate(home, settings={"beam": 16})
    assert fits == ["search"] * 2
    evaluate(home, settings={"facts": "ignored"})
    assert fits == ["search"] * 3


def test_a_changed_checkpoint_is_fitted_again(home, fits):
    evaluate(home)
    backbone = open_backbone(home / "rotate.pt")
    save_backbone(
        dataclasses.replace(backbone, entities=backbone.entities * 1.01),
        home / "other.safetensors",
        name="rotate",
    )
    (home / "rotate.pt").unlink()
    evaluate_method(
        "search",
        (home / "other.safetensors").rename(home / "rotate.safetensors"),
        dataset=home / "data" / "toykg",
        queries=home / "data" / "toykg-queries",
        limit=5,
    )
    assert fits == ["search"] * 2


def test_a_run_with_another_checkpoint_is_fitted_again(home, fits):
    Run.open(home / "run").ask(FRIENDS, method="search")
    backbone = open_backbone(home / "rotate.pt")
    other = dataclasses.replace(backbone, entities=backbone.entities * 1.01)
    save_backbone(other, home / "other.safetensors", name="rotate")
    run = Run.open(home / "run", checkpoint=home / "other.safetensors")
    run.ask(FRIENDS, method="search")
    assert fits == ["search"] * 2


def replace_queries(home):
    graph = KnowledgeGraph.open(home / "data" / "toykg")
    shutil.rmtree(home / "data" / "toykg-queries")
    sample_few(graph, home / "data" / "toykg-queries", 12)


def test_changed_queries_are_fitted_again(home, fits):
    evaluate(home)
    Run.open(home / "run").ask(FRIENDS, method="search")
    replace_queries(home)
    evaluate(home)
    Run.open(home / "run").ask(FRIENDS, method="search")
    assert fits == ["search"] * 4


def test_a_changed_graph_is_fitted_again(home, fits):
    Run.open(home / "run").ask(FRIENDS, method="search")
    train = home / "data" / "toykg" / "train.del"
    train.write_text("".join(train.read_text().splitlines(keepends=True)[:-1]))
    with pytest.raises(RunError, match="has changed since"):
        Run.open(home / "run").ask(FRIENDS, method="search")
    Run.open(home / "run", dataset=train.parent).ask(FRIENDS, method="search")
    assert fits == ["search"] * 2


def test_a_graph_that_is_given_is_fitted_and_not_kept(home, fits):
    run = Run.open(home / "run")
    run.ask(FRIENDS, method="search", graph=home / "data" / "toykg")
    assert fits == ["search"]
    assert not (home / "run" / "search.json").exists()


def cut(text):
    return text[: len(text) // 2]


def with_fitted(**changes):
    def damage(text):
        content = json.loads(text)
        content["fitted"] |= changes
        return json.dumps(content)

    return damage


DAMAGES = {
    "cut": cut,
    "empty": lambda _: "",
    "list": lambda _: "[]",
    "deep": lambda _: "[" * 100_000,
    "zeros": lambda _: "\0" * 100,
    "other format": lambda text: text.replace('"format": 1', '"format": 99'),
    "nothing fitted": lambda text: json.dumps({**json.loads(text), "fitted": None}),
    "beta": with_fitted(beta="x"),
    "huge": with_fitted(beta=10**400),
    "relations": with_fitted(relations=[]),
    "reranker": with_fitted(reranker={}),
    "probability": with_fitted(probability={"a": 1}),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_fitted_again(home, fits, damage):
    expected = Run.open(home / "run").ask(FRIENDS)
    file = home / "run" / "hybrid.json"
    right = file.read_text()
    file.write_text(DAMAGES[damage](right))
    assert Run.open(home / "run").ask(FRIENDS) == expected
    assert fits == ["hybrid"] * 2
    assert file.read_text() == right


def test_rank_fits_a_method_at_its_first_use(home, fits):
    first = Run.open(home / "run").rank(FRIENDS, 5, method="hybrid")
    assert fits == ["hybrid"]
    assert Run.open(home / "run").rank(FRIENDS, 5, method="hybrid") == first


def test_damage_inside_the_file_is_noted(home):
    Run.open(home / "run").ask(FRIENDS)
    file = home / "run" / "hybrid.json"
    file.write_text(with_fitted(beta=-1)(file.read_text()))
    notes = Notes()
    Run.open(home / "run").ask(FRIENDS, listener=notes)
    assert notes.texts[0] == (
        f"{file} is damaged: it has changed since it was written: its checksum differs; "
        "it is fitted again"
    )
    edit_json(file, lambda content: content["fitted"].update(beta=-1))
    notes = Notes()
    Run.open(home / "run").ask(FRIENDS, listener=notes)
    assert notes.texts[0] == f"{file}: beta must be greater than 0; it is fitted again"


def test_a_folder_that_cannot_be_written_is_a_note(home, fits):
    (home / "run" / "search.json").mkdir()  # what is there is no file, and cannot become one
    notes = Notes()
    run = Run.open(home / "run")
    answers = run.ask(FRIENDS, method="search", listener=notes)
    assert len(answers) == 10
    assert "search.json cannot be written" in notes.texts[-1]
    assert notes.texts[-1].endswith(", so it will be fitted again next time")
    assert run.ask(FRIENDS, method="search") == answers
    assert fits == ["search"]


def without_valid(home):
    store = QueryStore.open(home / "data" / "toykg-queries")
    rest = {split: queries for split, queries in store.splits.items() if split != "valid"}
    write_store(dataclasses.replace(store, splits=rest), home / "no-valid")
    shutil.rmtree(home / "data" / "toykg-queries")
    (home / "no-valid").rename(home / "data" / "toykg-queries")


@pytest.mark.parametrize("name", ["search", "hybrid"])
def test_a_store_without_valid_queries_is_one_clear_line(home, name):
    without_valid(home)
    with pytest.raises(RunError, match=f"^{name} is fitted on valid queries, and there are none"):
        evaluate(home, name)
    with pytest.raises(RunError, match=f"^{name} is fitted on valid queries, and there are none"):
        Run.open(home / "run").ask(FRIENDS, method=name)


def test_search_takes_given_weights_without_valid_queries(home):
    without_valid(home)
    results = evaluate(home, settings=FITTED_SETTINGS)
    assert results.mean > 0
    assert results.reliability is None


def test_if_hybrid_cannot_be_fitted_the_network_answers_with_a_note(home):
    expected = Run.open(home / "run").ask(FRIENDS, method="lmpnn")
    without_valid(home)
    notes = Notes()
    assert Run.open(home / "run").ask(FRIENDS, listener=notes) == expected
    (note,) = notes.texts[-1:]
    assert note.startswith("lmpnn answers, because hybrid cannot be fitted: hybrid is fitted on")
    shutil.rmtree(home / "data" / "toykg-queries")
    assert Run.open(home / "run").ask(FRIENDS, listener=notes) == expected
    assert "hybrid cannot be fitted" in notes.texts[-1]


def test_a_fit_that_is_kept_needs_no_queries(home, fits):
    expected = Run.open(home / "run").ask(FRIENDS)
    shutil.rmtree(home / "data" / "toykg-queries")
    assert Run.open(home / "run").ask(FRIENDS) == expected
    assert fits == ["hybrid"]


def test_scores_that_are_all_equal_are_one_clear_line(home):
    backbone = open_backbone(home / "rotate.pt")
    flat = dataclasses.replace(backbone, entities=torch.zeros_like(backbone.entities))
    save_backbone(flat, home / "flat.safetensors", name="rotate")
    with pytest.raises(LmpnnError, match="all entities the same score"):
        evaluate_method(
            "search",
            home / "flat.safetensors",
            dataset=home / "data" / "toykg",
            queries=home / "data" / "toykg-queries",
        )


def test_a_checkpoint_without_a_graph_is_one_clear_line(home, monkeypatch):
    monkeypatch.chdir(home / "run")
    monkeypatch.delenv("LMPNN_KGE_DATA", raising=False)
    shutil.rmtree(home / "data" / "toykg")
    with pytest.raises(DatasetError, match="search needs the training edges: give their graph"):
        evaluate(home, dataset=None)


@pytest.mark.parametrize("name", ["search", "hybrid"])
def test_the_command_evaluates_a_run(home, name):
    results = json.loads(cli("evaluate", home / "run", "--method", name, "--json").stdout)
    assert 0 < results["types"]["1p"]["mrr"] <= 1
    assert 0 <= results["reliability"]["error"] < 1
    assert read_json(home / "run" / f"test-{name}.json") == results
    assert (home / "run" / f"{name}.json").is_file()


@pytest.mark.parametrize("name", ["search", "hybrid"])
@pytest.mark.parametrize("given", [[], ["facts=ignored"], ["beta=0.5", "bias=-1"]], ids=str)
def test_the_command_evaluates_a_checkpoint(home, name, given):
    options = [part for setting in given for part in ("--set", setting)]
    printed = cli(
        "evaluate",
        *("--method", name, "--checkpoint", home / "rotate.pt", "--limit", 5, "--json"),
        *("--dataset", home / "data" / "toykg", "--queries", home / "data" / "toykg-queries"),
        *options,
    ).stdout
    assert 0 < json.loads(printed)["types"]["1p"]["mrr"] <= 1
    suffix = "-ignored" if "facts=ignored" in given else ""
    kept = json.loads((home / f"rotate.{name}{suffix}.json").read_text())
    for setting in given:
        key, value = setting.split("=")
        assert str(kept["settings"][key]).startswith(value)


def test_ignored_facts_change_the_results(home):
    known, ignored = (
        evaluate(home, settings={"facts": facts, **FITTED_SETTINGS}, limit=None).mean
        for facts in ("known", "ignored")
    )
    assert known != ignored


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"facts": "maybe"}, "facts"),
        ({"beta": 0.0}, "beta"),
        ({"beta": -1.0}, "beta"),
        ({"beam": 0}, "beam"),
        ({"gamma": 1}, "gamma"),
    ],
)
def test_a_wrong_setting_is_one_clear_line(home, fits, given, message):
    with pytest.raises(ConfigError, match=message):
        evaluate(home, settings=given)
    assert fits == []


def test_the_network_is_evaluated_without_its_graph(home):
    expected = Run.open(home / "run").evaluate(limit=5)
    broken = home / "data" / "toykg"
    shutil.rmtree(broken)
    broken.mkdir()
    assert Run.open(home / "run").evaluate(limit=5) == expected
