"""Training runs: what is found, what is written, what is kept."""

import hashlib
import json
import shutil

import pytest
import torch
import yaml
from safetensors.torch import load_file

from lmpnn_kge import ConfigError, DatasetError, FileError, Listener, RunError, train
from lmpnn_kge.queries.store import QueryStore, write_store
from lmpnn_kge.runs.inputs import find_dataset
from lmpnn_kge.settings.files import load_config
from lmpnn_kge.training.lmpnn import scheduled_rate
from lmpnn_kge.training.provenance import located_path

from ..conftest import TOY
from ..edited import read_json
from ..toy_runs import (
    CHECKPOINTS,
    ROTATE,
    TYPES,
    cli,
    options,
    partials,
    result_of,
    sample_few,
    tiny,
    train_tiny,
)

BACKBONES = ("complex", "conve", "distmult", "rescal", "rotate", "transe")


def copy_dataset(folder):
    folder.parent.mkdir(exist_ok=True)
    return shutil.copytree(TOY / "dataset", folder)


def metrics_of(run):
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


@pytest.fixture
def few_queries(monkeypatch):
    """Sample a few queries where `train` would sample thousands."""

    def sample(graph, folder, listener):
        return sample_few(graph, folder)

    monkeypatch.setattr("lmpnn_kge.runs.inputs.sample_store", sample)


# What is found


def test_a_dataset_is_looked_for_in_data_then_in_the_variable_then_beside_the_checkpoint(
    here, monkeypatch
):
    monkeypatch.setenv("LMPNN_KGE_DATA", str(here / "elsewhere"))
    checkpoint = here / "models" / "checkpoint.pt"
    places = [here / "models" / "toykg", here / "elsewhere" / "toykg", here / "data" / "toykg"]
    assert find_dataset("toykg", checkpoint) is None
    for place in places:  # each is preferred to those before
        place.mkdir(parents=True)
        assert find_dataset("toykg", checkpoint).resolve() == place


@pytest.mark.parametrize("name", [None, "", ".", "..", "../toykg", "/toykg", "a/b"])
def test_the_name_of_a_dataset_does_not_lead_elsewhere(here, name):
    (here / "data").mkdir()
    (here / "toykg").mkdir()
    (here / "data" / "a" / "b").mkdir(parents=True)
    assert find_dataset(name, here / "checkpoint.pt") is None


@pytest.mark.parametrize("place", ["data", "elsewhere", "models"])
def test_backbone_and_checkpoint_are_enough_wherever_the_dataset_is(
    here, few_queries, monkeypatch, place
):
    monkeypatch.setenv("LMPNN_KGE_DATA", "elsewhere")
    (here / "models").mkdir()
    shutil.copy(CHECKPOINTS / "rotate.train.pt", here / "models")
    copy_dataset(here / place / "toykg")
    run = train("models/rotate.train.pt", backbone="rotate", settings=tiny(epochs=1))
    assert str(run.folder.path) == "runs/toykg-rotate"
    assert run.folder.provenance.dataset == str(here / place / "toykg")
    assert run.folder.provenance.queries.folder == str(here / place / "toykg-queries")


def test_without_the_dataset_it_says_where_it_looked_and_how_to_get_it(here, monkeypatch):
    shutil.copy(ROTATE, here / "rotate.pt")
    stderr = cli("train", "--backbone", "rotate", "--checkpoint", "rotate.pt", code=2).stderr
    assert "the dataset 'toykg' of rotate.pt is not in data/toykg, toykg" in stderr
    assert "$LMPNN_KGE_DATA is not set" in stderr
    assert "download_all.sh" in stderr
    assert "--dataset DIR" in stderr
    monkeypatch.setenv("LMPNN_KGE_DATA", "elsewhere")
    stderr = cli("train", "--checkpoint", "rotate.pt", code=2).stderr
    assert "data/toykg, elsewhere/toykg, toykg;" in stderr
    assert sorted(path.name for path in here.iterdir()) == ["rotate.pt"]


def test_the_command_samples_queries_once_and_prints_the_papers_row(here):
    copy_dataset(here / "data" / "toykg")
    arguments = ["train", "--backbone", "rotate", "--checkpoint", ROTATE, *options(epochs=1)]
    first = cli(*arguments, "--out", "first")
    store = here / "data" / "toykg-queries"
    assert "sampling queries to data/toykg-queries, once" in first.stderr
    assert "1p    2p    3p    2i    3i    pi    ip    2u    up   A_P\n" in first.stdout
    assert "2in   3in   inp   pin   pni   A_N\n" in first.stdout
    assert max(map(len, first.stdout.splitlines())) <= 80
    assert first.stdout.endswith("run       first\n")
    written = (store / "manifest.json").stat().st_mtime_ns
    second = cli(*arguments, "--out", "second")
    assert "sampling" not in second.stderr
    assert (store / "manifest.json").stat().st_mtime_ns == written
    assert second.stdout.replace("second", "first") == first.stdout
    assert result_of(here / "first") == result_of(here / "second")


def test_a_linked_dataset_has_its_queries_beside_the_folder_itself(here, few_queries):
    copy_dataset(here / "real" / "toy")
    (here / "link").symlink_to(here / "real" / "toy")
    train(ROTATE, dataset="link", settings=tiny(epochs=0))
    assert (here / "real" / "toy-queries" / "manifest.json").is_file()


def test_queries_of_a_graph_that_has_changed_since_are_not_used(here, few_queries):
    copy_dataset(here / "data" / "toykg")
    train(ROTATE, settings=tiny(epochs=0), out="before")
    file = here / "data" / "toykg" / "train.del"
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:-10]))
    with pytest.raises(
        DatasetError, match=r"data/toykg has changed since .*toykg-queries was samp"
    ):
        train(ROTATE, settings=tiny(epochs=0), out="after")


def test_where_queries_cannot_be_written_it_says_so_before_the_sampling(here, monkeypatch):
    copy_dataset(here / "data" / "toykg")
    monkeypatch.setattr("os.access", lambda path, mode: False)  # also for those who may do anything
    with pytest.raises(DatasetError, match="cannot be written beside data/toykg; make them"):
        train(ROTATE)


def test_mistakes_are_found_before_the_sampling(here, toy_queries):
    copy_dataset(here / "data" / "toykg")
    (here / "file").write_text("mine")
    mistakes = [
        ({"settings": {"hiden": 1}}, ConfigError, "did you mean 'hidden'"),
        ({"config": ""}, ConfigError, "no configuration is called ''"),
        ({"out": "file"}, FileError, "holds something else"),
        ({"out": "data"}, FileError, "holds something else"),
        ({"out": "."}, FileError, "is the current folder"),
        ({"device": "cdua"}, RunError, "device 'cdua' cannot be used here"),
        ({"device": "meta"}, RunError, "device 'meta' cannot be used here"),
    ]
    for arguments, kind, words in mistakes:
        with pytest.raises(kind, match=words):
            train(ROTATE, **arguments)
    assert (here / "file").read_text() == "mine"


@pytest.mark.parametrize("graph", ["../../up", "/etc/x", "a/b", "", "..", "ü n"])
def test_the_name_of_a_graph_does_not_lead_elsewhere(here, toy_queries, graph):
    from dataclasses import replace

    write_store(replace(QueryStore.open(toy_queries), graph=graph), here / "queries")
    run = train(ROTATE, queries="queries", settings=tiny(epochs=0))
    assert run.folder.path.parent.resolve() == here / "runs"
    assert run.folder.path.name.endswith("-rotate")


# What can be trained


@pytest.mark.parametrize("kind", ["plain", "reciprocal"])
@pytest.mark.parametrize("backbone", BACKBONES)
def test_every_backbone_trains_without_being_named(here, toy_queries, backbone, kind):
    name = f"{backbone}{'-reciprocal' if kind == 'reciprocal' else ''}.package.pt"
    if name == "conve.package.pt":
        pytest.skip("ConvE has no inverse of its own")
    run = train_tiny(toy_queries, here / "run", CHECKPOINTS / name, epochs=1)
    assert run.folder.provenance.backbone == backbone
    assert set(run.evaluate().types) == set(TYPES)


def test_a_backbone_without_inverse_says_what_would_help(here, toy_queries):
    checkpoint = CHECKPOINTS / "conve-plain.package.pt"
    arguments = ("--checkpoint", checkpoint, "--queries", toy_queries, "--dataset", TOY / "dataset")
    stderr = cli("train", *arguments, *options(), "--out", "run", code=2).stderr
    assert "reciprocal" in stderr


@pytest.mark.parametrize(
    "changes",
    [
        {"negatives": "independent"},
        {"negatives": "shared"},
        {"negatives": "shared", "negative_count": 10_000},
        {"negatives": "all"},
        {"messages": "cat"},
        {"messages": "cat", "negatives": "independent", "union": "merge"},
        {"hidden_layers": 2},
        {"attention": 4},
        {"attention": 4, "messages": "cat"},
        {"schedule": "linear"},
        {"schedule": "constant", "warmup": 0},
        {"schedule": "cosine", "warmup": 1000},
        {"depth_shift": 1},
        {"depth_shift": -1},
        {"epsilon": 0},
        {"weight_decay": 0},
        {"precision": "bf16"},
        {"batch_size": 10_000},
        {"validate_every": 0},
        {"save_minutes": 0},
    ],
    ids=str,
)
def test_every_setting_trains_and_opens_again(here, toy_queries, changes):
    from lmpnn_kge import Run

    run = train_tiny(toy_queries, here / "run", epochs=1, **changes)
    (record,) = metrics_of(here / "run")
    assert record["loss"] > 0
    assert ("valid" in record) == (changes.get("validate_every") != 0)
    again = Run.open(here / "run").evaluate()
    assert again == run.evaluate() == run.results
    assert again.to_json() == read_json(here / "run" / "test.json")


def test_training_learns(here, toy_queries):
    train_tiny(toy_queries, here / "run", epochs=16, hidden=64, learning_rate=1e-2, patience=0)
    losses = [record["loss"] for record in metrics_of(here / "run")]
    assert losses[-1] < 0.7 * losses[0]


def test_the_learning_rate_rises_then_falls_as_its_schedule_says():
    def rates(schedule):
        config = load_config(settings={"schedule": schedule, "warmup": 2, "learning_rate": 1.0})
        return [round(scheduled_rate(config, step, 10), 3) for step in range(11)]

    assert rates("constant") == [0.5] + [1.0] * 10
    assert rates("linear") == [0.5, 1.0, 1.0, 0.875, 0.75, 0.625, 0.5, 0.375, 0.25, 0.125, 0.0]
    assert rates("cosine")[1:3] == [1.0, 1.0]
    assert rates("cosine")[6] == 0.5
    assert rates("cosine")[10] == 0.0


def test_the_seed_decides(here, toy_queries):
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        train_tiny(toy_queries, here / name, seed=seed)
    assert result_of(here / "a") == result_of(here / "b")
    assert result_of(here / "a")["model"] != result_of(here / "c")["model"]


# What is written


def test_a_run_folder_has_all_there_is_to_know(here, toy_queries):
    run = train_tiny(toy_queries, here / "my run", epochs=2)
    assert sorted(path.name for path in (here / "my run").iterdir()) == [
        "config.yaml",
        "metrics.jsonl",
        "model.safetensors",
        "names.json",
        "run.json",
        "state.safetensors",
        "test.json",
    ]
    assert yaml.safe_load((here / "my run" / "config.yaml").read_text()) == vars(
        load_config(settings=tiny())
    )
    facts = json.loads((here / "my run" / "run.json").read_text())
    assert facts["versions"]["torch"] == torch.__version__
    run_folder = here / "my run"
    assert located_path(facts["checkpoint"].pop("file"), run_folder) == ROTATE
    assert facts["checkpoint"] == {
        "sha256": hashlib.sha256(ROTATE.read_bytes()).hexdigest(),
        "model": "RotatE",
    }
    assert located_path(facts["dataset"], run_folder) == TOY / "dataset"
    assert located_path(facts["queries"]["folder"], run_folder) == toy_queries
    assert not facts["queries"]["folder"].startswith("/")
    assert facts["queries"]["provenance"]["seed"] == 0
    assert facts["precision"] == "fp32"
    assert facts["device"].startswith("cpu")
    recorded = run.folder.provenance.to_json(run_folder)
    del recorded["checkpoint"]["file"]
    assert recorded.items() <= facts.items()
    records = metrics_of(here / "my run")
    assert [record["epoch"] for record in records] == [1, 2]
    assert set(records[0]["valid"]["types"]) == set(TYPES)
    assert set(load_file(here / "my run" / "model.safetensors")) == set(
        run.method.model.state_dict()
    )


def test_what_a_store_says_of_itself_does_not_hide_where_it_is(here, toy_queries):
    from dataclasses import replace

    store = replace(QueryStore.open(toy_queries), provenance={"folder": "gone", "sha256": "no"})
    write_store(store, here / "queries")
    train_tiny(here / "queries", here / "run", epochs=0)
    train(out=here / "run", resume=True)


def test_the_command_is_remembered_as_one_could_type_it(here, toy_queries, monkeypatch):
    monkeypatch.setattr("sys.argv", ["/bin/lmpnn-kge", "train", "--out", "my run"])
    run = train_tiny(toy_queries, here / "my run", epochs=0)
    assert run.folder.provenance.command == "lmpnn-kge train --out 'my run'"


def test_the_best_network_is_kept_and_not_the_last(here, toy_queries, monkeypatch):
    from lmpnn_kge.training import lmpnn as training

    seen, true_evaluate = [], training.evaluate

    def planted(method, queries, split, listener):
        """Says that the second of four validations is the best."""
        from dataclasses import replace

        weights = {k: v.clone() for k, v in method.model.state_dict().items()}
        seen.append(weights)
        mrr = [0.1, 0.4, 0.3, 0.2][len(seen) - 1]
        found = true_evaluate(method, queries, split, listener)
        return replace(found, types={n: replace(of, mrr=mrr) for n, of in found.types.items()})

    monkeypatch.setattr(training, "evaluate", planted)
    train_tiny(toy_queries, here / "run", epochs=4, patience=0)
    kept = load_file(here / "run" / "model.safetensors")
    last = load_file(here / "run" / "state.safetensors")
    assert len(seen) == 4
    for name, value in kept.items():
        assert torch.equal(value, seen[1][name])
        assert torch.equal(last[f"model.{name}"], seen[3][name])
    assert not torch.equal(kept["free"], last["model.free"])


@pytest.mark.parametrize(("patience", "epochs"), [(1, 3), (2, 4), (0, 6)])
def test_training_stops_after_validations_without_improvement_and_says_so(
    here, toy_queries, monkeypatch, patience, epochs
):
    from dataclasses import replace

    from lmpnn_kge.training import lmpnn as training

    scores, true_evaluate = iter([0.1, 0.2, 0.2, 0.1, 0.15, 0.1]), training.evaluate

    def planted(*arguments):
        mrr = next(scores)
        found = true_evaluate(*arguments)
        return replace(found, types={n: replace(of, mrr=mrr) for n, of in found.types.items()})

    class Notes(Listener):
        def __init__(self):
            self.notes = []

        def note(self, text):
            self.notes.append(text)

    monkeypatch.setattr(training, "evaluate", planted)
    listener = Notes()
    more = {"listener": listener}
    train_tiny(toy_queries, here / "run", epochs=6, patience=patience, more=more)
    assert len(metrics_of(here / "run")) == epochs
    note = f"stopped at epoch {epochs}: no improvement for {patience} validations, kept epoch 2"
    assert listener.notes == ([note] if patience else [])
    train(out=here / "run", resume=True)  # finished is finished
    assert len(metrics_of(here / "run")) == epochs


def test_validation_comes_every_so_often_and_at_the_end(here, toy_queries):
    train_tiny(toy_queries, here / "run", epochs=5, validate_every=2)
    validated = ["valid" in record for record in metrics_of(here / "run")]
    assert validated == [False, True, False, True, True]


def test_no_epochs_give_an_untrained_network_that_can_be_resumed(here, toy_queries):
    train_tiny(toy_queries, here / "run", epochs=0)
    assert metrics_of(here / "run") == []
    assert cli("evaluate", "run", "--json").stdout
    train(out=here / "run", resume=True, settings={"epochs": 2})
    train_tiny(toy_queries, here / "whole", epochs=2)
    assert result_of(here / "run") == result_of(here / "whole")


# What is missing from the queries


def only(toy_queries, folder, keep):
    """The toy queries as keep(split, name, queries) leaves them; None leaves a type out."""
    from dataclasses import replace

    store = QueryStore.open(toy_queries)
    splits = {
        split: {n: kept for n, q in found.items() if (kept := keep(split, n, q)) is not None}
        for split, found in store.splits.items()
    }
    write_store(replace(store, splits=splits), folder)
    return folder


def none_of(queries):
    return queries.select(queries.easy.counts < 0)


def test_a_type_without_queries_is_left_out(here, toy_queries):
    queries = only(
        toy_queries, here / "q", lambda split, name, q: none_of(q) if name == "2p" else q
    )
    run = train_tiny(queries, here / "run", epochs=1)
    assert set(run.evaluate().types) == set(TYPES) - {"2p"}
    assert set(metrics_of(here / "run")[0]["valid"]["types"]) == set(TYPES) - {"2p"}
    text = cli("evaluate", "run").stdout
    assert "2p" not in text
    assert "nan" not in text


@pytest.mark.parametrize("how", ["no split", "no types", "no queries", "no hard answers"])
def test_without_validation_queries_the_last_network_is_kept(here, toy_queries, how):
    from dataclasses import replace

    from lmpnn_kge.graph.answers import Answers

    def keep(split, name, q):
        if split != "valid" or how == "no split":
            return q
        if how == "no hard answers":
            return replace(q, hard=Answers.none(len(q)))
        return None if how == "no types" else none_of(q)

    queries = only(toy_queries, here / "q", keep)
    if how == "no split":
        store = QueryStore.open(queries)
        splits = {split: found for split, found in store.splits.items() if split != "valid"}
        write_store(replace(store, splits=splits), queries)
    train_tiny(queries, here / "run")
    assert all("valid" not in record for record in metrics_of(here / "run"))
    kept = load_file(here / "run" / "model.safetensors")
    last = load_file(here / "run" / "state.safetensors")
    assert all(torch.equal(value, last[f"model.{name}"]) for name, value in kept.items())


def test_without_test_queries_there_is_no_test(here, toy_queries):
    queries = only(toy_queries, here / "q", lambda split, n, q: None if split == "test" else q)
    train_tiny(queries, here / "run", epochs=1)
    assert not (here / "run" / "test.json").exists()
    again = cli("train", "--resume", "--out", "run")
    assert again.stdout == "run       run\n"
    assert "nothing was tested" in again.stderr


def test_without_training_queries_there_is_no_run(here, toy_queries):
    queries = only(toy_queries, here / "q", lambda split, n, q: None if split == "train" else q)
    with pytest.raises(RunError, match="has no training queries"):
        train_tiny(queries, here / "run")
    empty = only(toy_queries, here / "e", lambda split, n, q: none_of(q))
    with pytest.raises(RunError, match="has no queries"):
        train_tiny(empty, here / "run")
    assert not (here / "run").exists()
    assert partials(here) == []
