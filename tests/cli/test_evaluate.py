"""Runs in use: evaluated, moved, opened again, asked."""

import dataclasses
import json
import shutil
from pathlib import Path
from typing import get_args

import pytest
import torch

import lmpnn_kge
from lmpnn_kge import QueryError, Run, RunError, open_backbone, save_backbone
from lmpnn_kge.cli.evaluate import evaluate
from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph
from lmpnn_kge.graph.vocabulary import Vocabulary
from lmpnn_kge.methods.results import Results
from lmpnn_kge.queries.store import QueryStore, write_store
from lmpnn_kge.settings.kinds import FactsMode, UnionMode

from ..conftest import TOY
from ..edited import edit_json, read_json
from ..toy_runs import CHECKPOINTS, ROTATE, TYPES, cli, sample_few, train_tiny

FACTS = get_args(FactsMode)


@pytest.fixture(scope="module")
def trained(tmp_path_factory, toy_queries):
    folder = tmp_path_factory.mktemp("trained") / "run"
    train_tiny(toy_queries, folder, CHECKPOINTS / "rotate.train.pt")
    return folder


def renamed(store: QueryStore, rows: int | None) -> QueryStore:
    """A store with other names for its first entities, or for all of them."""
    names = store.vocabulary
    ids = [f"new {id_}" for id_ in names.entity_ids[:rows]]
    ids += [] if rows is None else names.entity_ids[rows:]
    return dataclasses.replace(store, vocabulary=Vocabulary(ids, names.relation_ids))


def strict(text):
    """JSON as every reader understands it: no NaN and no Infinity."""

    def refuse(constant):
        raise AssertionError(f"{constant} is no JSON")

    return json.loads(text, parse_constant=refuse)


def test_the_command_offers_every_way_to_answer_a_disjunction():
    (option,) = (option for option in evaluate.params if option.name == "union")
    assert tuple(option.type.choices) == get_args(UnionMode)


def test_json_has_this_shape_exactly(trained):
    results = strict(cli("evaluate", trained, "--json").stdout)
    assert list(results) == ["split", "types", "A_P", "A_N", "origin", "intervals", "counting"]
    assert list(results["intervals"]) == list(results["counting"]["predicted"]) == list(TYPES)
    assert results["split"] == "test"
    assert list(results["types"]) == list(TYPES)
    for found in results["types"].values():
        assert list(found) == ["mrr", "hits@1", "hits@3", "hits@10", "queries", "missing_edges"]
        assert 0 < found["mrr"] <= 1
        assert 0 <= found["hits@1"] <= found["hits@3"] <= found["hits@10"] <= 1
        assert 0 < found["queries"] <= 16
        assert all(list(part) == ["mrr", "answers"] for part in found["missing_edges"].values())
    assert results["A_P"] is results["A_N"] is None  # as not all of their types are there
    assert results == read_json(trained / "test.json")


def test_json_says_what_was_measured_with_what(trained, toy_queries, tmp_path):
    origin = strict(cli("evaluate", trained, "--limit", 3, "--json").stdout)["origin"]
    facts = json.loads((trained / "run.json").read_text())
    assert list(origin) == [
        "method",
        "settings",
        "checkpoint",
        "queries",
        "graph",
        "graph_name",
        "limit",
        "versions",
    ]
    assert (origin["method"], origin["limit"]) == ("lmpnn", 3)
    assert origin["settings"]["hidden"] == 8
    assert origin["checkpoint"] == facts["checkpoint"]["sha256"]
    assert origin["queries"] == facts["queries"]["sha256"]
    assert origin["graph"] == facts["graph"]
    assert origin["graph_name"] == "toykg"
    assert origin["versions"].keys() == {"python", "lmpnn-kge", "torch", "numpy", "safetensors"}
    assert origin | {"limit": None} == json.loads((trained / "test.json").read_text())["origin"]
    merged = strict(cli("evaluate", trained, "--union", "merge", "--json").stdout)["origin"]
    assert merged["settings"]["union"] == "merge"
    checkpoint = Path(shutil.copy(ROTATE, tmp_path / "rotate.pt"))
    given = ["--checkpoint", checkpoint, "--dataset", TOY / "dataset", "--queries", toy_queries]
    beam = ["--method", "cqd-beam", "--set", "beam=2", "--json"]
    other = strict(cli("evaluate", *beam, *given).stdout)["origin"]
    assert (other["method"], other["settings"]["beam"], other["limit"]) == ("cqd-beam", 2, None)
    assert (other["graph"], other["queries"]) == (origin["graph"], origin["queries"])


def test_results_on_changed_queries_are_not_kept_in_the_run(trained, tmp_path, toy_queries):
    run, store = tmp_path / "run", tmp_path / "queries"
    shutil.copytree(trained, run)
    shutil.copytree(toy_queries, store)
    edit_json(run / "run.json", lambda facts: facts["queries"].update(folder=str(store)))
    cli("evaluate", run, "--method", "cqd-beam")
    assert (run / "test-cqd-beam.json").is_file()
    (run / "test-cqd-beam.json").unlink()
    edit_json(store / "manifest.json", lambda facts: facts["provenance"].update(changed=True))
    assert "has changed since" in cli("evaluate", run, "--method", "cqd-beam").stderr
    assert not (run / "test-cqd-beam.json").exists()


def test_results_that_cannot_be_kept_are_printed_with_a_note(trained, tmp_path):
    run = shutil.copytree(trained, tmp_path / "run")
    (run / "test-search.json").mkdir()  # in the way
    (run / "test-search.json" / "mine").touch()
    done = cli("evaluate", run, "--method", "search", "--limit", "1000000")
    assert "cannot be written" not in done.stderr
    done = cli("evaluate", run, "--method", "search")
    assert "MRR" in done.stdout
    assert "test-search.json cannot be written" in done.stderr
    assert "without these results" in " ".join(done.stderr.split())


def test_all_types_have_averages(trained, tmp_path):
    from lmpnn_kge.query.patterns import NEGATIVE, POSITIVE

    graph = KnowledgeGraph.open(TOY / "dataset")
    sample_few(graph, tmp_path / "all", 4, (*POSITIVE, *NEGATIVE))
    results = strict(cli("evaluate", trained, "--queries", tmp_path / "all", "--json").stdout)
    for name, types in (("A_P", POSITIVE), ("A_N", NEGATIVE)):
        mean = sum(results["types"][type_]["mrr"] for type_ in types) / len(types)
        assert results[name] == pytest.approx(mean)
    lines = cli("evaluate", trained, "--queries", tmp_path / "all").stdout.splitlines()
    assert lines[2].split() == [*POSITIVE, "A_P"]
    assert lines[6].split() == [*NEGATIVE, "A_N"]
    for line, name in ((lines[3], "A_P"), (lines[7], "A_N")):
        assert line.split()[-1] == f"{100 * results[name]:.1f}"
    assert max(map(len, lines)) <= 80


def test_text_is_the_row_in_percent(trained):
    lines = cli("evaluate", trained, "--split", "valid").stdout.splitlines()
    results = strict(cli("evaluate", trained, "--split", "valid", "--json").stdout)
    assert lines[0] == "valid, MRR in percent:"
    assert [lines[2].split(), lines[6].split()] == [["1p", "2p", "2i", "2u"], ["2in"]]
    cells = dict(zip(lines[2].split(), lines[3].split()[1:], strict=True))
    cells |= dict(zip(lines[6].split(), lines[7].split()[1:], strict=True))
    assert lines[4].split()[0] == lines[8].split()[0] == "±"
    assert cells == {n: f"{100 * of['mrr']:.1f}" for n, of in results["types"].items()}


def test_metrics_of_nothing_are_valid_json():
    results = Results("test", {})
    assert strict(json.dumps(results.to_json(), allow_nan=False))["types"] == {}
    assert "nan" not in str(results)


def test_only_disjunctions_depend_on_how_they_are_read(trained):
    dnf, merge = (
        strict(cli("evaluate", trained, "--union", union, "--json").stdout)["types"]
        for union in ("dnf", "merge")
    )
    assert dnf["2u"] != merge["2u"]
    assert all(dnf[name] == merge[name] for name in TYPES if name != "2u")
    assert "Invalid value for '--union'" in cli("evaluate", trained, "--union", "x", code=2).stderr


def test_other_queries_are_joined_by_name(trained, tmp_path):
    """A BetaE folder that numbers everything anew."""
    graph = KnowledgeGraph.open(TOY / "dataset")
    store = sample_few(graph, tmp_path / "own", 8)
    cli("queries", "export", tmp_path / "own", "--out", tmp_path / "betae")
    cli("queries", "import", tmp_path / "betae", "--out", tmp_path / "imported")
    own, imported = (
        strict(cli("evaluate", trained, "--queries", tmp_path / name, "--json").stdout)["types"]
        for name in ("own", "imported")
    )
    assert set(store.splits["test"]) == set(own) == set(imported)
    for name in own:
        assert own[name]["mrr"] == pytest.approx(imported[name]["mrr"])


def test_unknown_names_are_noted_and_no_known_ones_are_an_error(trained, tmp_path, toy_queries):
    store = QueryStore.open(toy_queries)
    write_store(renamed(store, 3), tmp_path / "some")
    result = cli("evaluate", trained, "--queries", tmp_path / "some", "--json")
    assert "note: " in result.stderr
    assert "unknown entities: 3" in result.stderr
    assert strict(result.stdout)["types"]
    write_store(renamed(store, None), tmp_path / "none")
    stderr = cli("evaluate", trained, "--queries", tmp_path / "none", code=2).stderr
    assert "is of another graph than the checkpoint" in stderr


def test_notes_come_before_the_wait_for_the_figures(trained, monkeypatch):
    def broken(*arguments):
        raise RunError("evaluation was begun")

    monkeypatch.setattr("lmpnn_kge.methods.rank.rank_types", broken)
    other = CHECKPOINTS / "rotate-l2.package.pt"
    stderr = cli("evaluate", trained, "--checkpoint", other, code=2).stderr
    assert stderr.index("note: ") < stderr.index("evaluation was begun")


def test_so_do_those_of_a_method(tmp_path, toy_queries, monkeypatch):
    def broken(*arguments):
        raise RunError("evaluation was begun")

    store = QueryStore.open(toy_queries)
    write_store(renamed(store, 3), tmp_path / "some")
    monkeypatch.setattr("lmpnn_kge.methods.rank.rank_types", broken)
    given = ["--checkpoint", ROTATE, "--dataset", TOY / "dataset", "--queries", tmp_path / "some"]
    stderr = cli("evaluate", "--method", "frequency", *given, code=2).stderr
    assert stderr.index("unknown entities: 3") < stderr.index("evaluation was begun")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--split", "tset"], "has no split 'tset'; did you mean 'test'?"),
        (["--split", "train"], "has no hard answers in 'train'"),
        (["--queries", "nowhere"], "nowhere is not a query store"),
        (["--checkpoint", "nowhere"], "is not at nowhere; say where it is with --checkpoint"),
        (["--device", "cdua"], "device 'cdua' cannot be used here"),
        (["--device", "meta"], "device 'meta' cannot be used here"),
        (["--checkpoint", CHECKPOINTS / "transe.train.pt"], "backbone 'rotate' opens RotatE"),
        (["--checkpoint", CHECKPOINTS / "search.pt"], "search.pt"),
    ],
)
def test_mistakes_are_one_line(trained, here, arguments, words):
    stderr = cli("evaluate", trained, *arguments, code=2).stderr
    assert words in stderr
    assert len(stderr) < 500


def test_a_device_is_looked_at_whatever_the_method(toy_queries):
    given = ["--checkpoint", ROTATE, "--dataset", TOY / "dataset", "--queries", toy_queries]
    asked = ["--method", "frequency", "--device", "cdua"]
    assert "device 'cdua' cannot be used" in cli("evaluate", *asked, *given, code=2).stderr


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has what is tested to lack")
def test_a_missing_device_is_reported(trained):
    assert "device 'cuda' cannot be used here" in cli(
        "evaluate", trained, "--device", "cuda", code=2
    ).stderr  # fmt: skip


def test_a_folder_that_is_not_a_run_is_reported(here):
    assert ". is not a run folder" in cli("evaluate", ".", code=2).stderr
    assert "gone does not exist" in cli("evaluate", "gone", code=2).stderr


def test_a_run_may_move_with_its_checkpoint(trained, here):
    shutil.copytree(trained, here / "ä b" / "moved")
    shutil.copy(CHECKPOINTS / "rotate.train.pt", here / "my rotate.pt")
    file = here / "ä b" / "moved" / "run.json"
    edit_json(file, lambda facts: facts["checkpoint"].update(file="/gone/rotate.pt"))
    assert "is not at /gone/rotate.pt; say where it is with --checkpoint" in cli(
        "evaluate", "ä b/moved", code=2
    ).stderr  # fmt: skip
    result = cli("evaluate", "ä b/moved", "--checkpoint", "my rotate.pt", "--json")
    assert result.stderr == ""
    assert strict(result.stdout) == read_json(trained / "test.json")


def test_another_checkpoint_of_the_same_sizes_is_noted(trained):
    other = CHECKPOINTS / "rotate-nonormphases.package.pt"
    result = cli("evaluate", trained, "--checkpoint", other, "--json")
    assert "is not the file that" in result.stderr
    assert "its hash differs" in result.stderr
    strict(result.stdout)


def test_another_checkpoint_is_not_joined_by_position(trained, tmp_path):
    backbone = open_backbone(ROTATE)
    order = list(reversed(range(backbone.num_entities)))
    turned = dataclasses.replace(
        backbone,
        entities=backbone.entities[order],
        entity_ids=[backbone.entity_ids[row] for row in order],
    )
    save_backbone(turned, tmp_path / "turned.safetensors")
    stderr = cli(
        "evaluate", trained, "--checkpoint", tmp_path / "turned.safetensors", code=2
    ).stderr
    assert "has other names, or in another order, than" in stderr


def test_a_checkpoint_of_other_sizes_is_refused(trained, tmp_path):
    from ..libkge_files import content, save

    saved = content("rotate", "RotatE")
    tables = saved["model"][0]
    relations = "_relation_embedder._embeddings.weight"
    tables[relations] = tables[relations][:, :2].clone()  # an angle for two numbers
    file = save(tmp_path / "small.pt", saved)
    stderr = cli("evaluate", trained, "--checkpoint", file, code=2).stderr
    assert "was trained on 40 entities and 6 relations, but" in stderr
    assert "has 5 and 3" in stderr


def test_the_precision_of_a_run_is_that_of_its_training(here, toy_queries, monkeypatch):
    from lmpnn_kge.runs import train

    monkeypatch.setattr(train, "choose_precision", lambda name, device: torch.bfloat16)
    train_tiny(toy_queries, here / "run", precision="auto", epochs=1)
    monkeypatch.setattr(train, "choose_precision", lambda name, device: torch.float32)
    opened = Run.open(here / "run")
    assert opened.method.model.mlp.dtype == torch.bfloat16
    assert opened.evaluate().to_json() == read_json(here / "run" / "test.json")


# The Python side, from the root of the package


def test_from_training_to_an_answer(here, toy_queries):
    from ..toy_runs import tiny

    run = lmpnn_kge.train(
        ROTATE, dataset=TOY / "dataset", queries=toy_queries, settings=tiny(), out="run"
    )
    again = lmpnn_kge.Run.open("run")
    assert run.evaluate() == again.evaluate() == again.results
    assert again.evaluate("valid").split == "valid"
    formula = "friend_of(person/sven_ekdal, ?)"
    assert again.embed(formula).shape == (1, 16)
    assert torch.equal(again.embed(formula), run.embed(formula))
    either = f"{formula} | mentor_of(person/sven_ekdal, ?)"
    assert again.embed(either).shape == (2, 16)
    torch.testing.assert_close(again.embed(either)[0].norm(), torch.tensor(1.0))
    best = again.rank(formula, k=3)
    scores = [score for _, score in best]
    assert scores == sorted(scores, reverse=True)
    assert all(-1 <= score <= 1 for score in scores)
    assert {name for name, _ in best} <= set(again.vocabulary.entity_ids)
    assert [name for name, _ in again.rank(formula, k=10_000)[:3]] == [name for name, _ in best]
    assert len(again.rank(formula, k=10_000)) == 40
    assert again.rank(formula, k=0) == []


def test_names_may_be_labels_and_wrong_ones_are_pointed_at(trained):
    run = Run.open(trained)
    by_id = run.embed("friend_of(person/sven_ekdal, ?)")
    assert torch.equal(run.embed('"friend of"("Sven Ekdal", ?)'), by_id)
    with pytest.raises(QueryError, match="sven_ekdal"):
        run.embed("friend_of(person/sven_ekda, ?)")
    with pytest.raises(QueryError):
        run.rank("friend_of(")


def test_an_error_of_a_run_is_one_of_the_package(here):
    with pytest.raises(lmpnn_kge.LmpnnError):
        lmpnn_kge.Run.open("nowhere")
    with pytest.raises(RunError, match="nothing to train on"):
        lmpnn_kge.train()


def test_facts_known_and_ignored_stand_beside_each_other_and_the_network(
    trained, toy_queries, tmp_path
):
    run = shutil.copytree(trained, tmp_path / "run")
    checkpoint = shutil.copy(CHECKPOINTS / "rotate.train.pt", tmp_path / "own.pt")
    options = ["--checkpoint", checkpoint, "--dataset", TOY / "dataset", "--limit", "3"]
    rows = strict(cli("evaluate", run, "--facts", "both", "--json", *options).stdout)
    labels = [f"{name}, facts {facts}" for name in ("search", "hybrid") for facts in FACTS]
    assert list(rows) == ["lmpnn", *labels]
    assert rows[labels[0]]["types"] != rows[labels[1]]["types"]
    names = {file.name for file in tmp_path.glob("own.*.json")}
    assert {"own.search.json", "own.search-ignored.json", "own.hybrid-ignored.json"} <= names
    again = cli("evaluate", run, "--facts", "both", *options)
    assert "fitting" not in again.stderr  # both are kept
    assert "test, MRR in percent:" in again.stdout
    assert "\n1 missing" in again.stdout
    one = ["evaluate", "--method", "search", "--facts", "ignored", "--json", *options]
    assert strict(cli(*one, "--queries", toy_queries).stdout) == rows[labels[1]]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--method", "cqd", "--checkpoint", "x.pt", "--facts", "both"], "--method cqd"),
        (["RUN", "--method", "cqd-beam", "--facts", "both"], "--method cqd-beam"),
        (["RUN", "--union", "merge", "--facts", "both"], "--union does not apply"),
        (["RUN", "--facts", "known"], "--facts known does not apply to --method lmpnn"),
        (["RUN", "--method", "search", "--facts", "known"], "takes a --checkpoint, not a RUN"),
    ],
)
def test_facts_are_refused_for_what_does_not_know_them(trained, arguments, words):
    arguments = [trained if argument == "RUN" else argument for argument in arguments]
    assert words in cli("evaluate", *arguments, code=2).stderr
