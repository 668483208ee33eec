"""Runs with an entity table that is larger than the device may hold: the same results."""

import json

import pytest
import torch
from safetensors.torch import load_file, safe_open, save_file

from lmpnn_kge import Run
from lmpnn_kge.backbones import mapped
from lmpnn_kge.backbones.mapped import is_mapped
from lmpnn_kge.methods.lmpnn import LmpnnMethod
from lmpnn_kge.methods.names import OF_CHECKPOINT, OF_RUN

from ..toy_runs import cli, options, random_inputs, result_of

ENTITIES, RELATIONS, DIM = 700, 4, 16

#: Less than the table with its copies, and enough for the rows of a few batches.
LIMIT = "64KB"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A random graph, its queries, a checkpoint, and a run whose device held all of the table."""
    place = tmp_path_factory.mktemp("tables")
    random_inputs(place, ENTITIES, RELATIONS, DIM)
    train(place, "whole")
    return place


@pytest.fixture
def mapping(monkeypatch):
    """Let the table stay in its file."""
    monkeypatch.setattr(mapped, "LARGE", 20_000)


def train(place, run, *more, code=0):
    return cli(
        *("train", "--checkpoint", place / "file.safetensors", "--queries", place / "queries"),
        *("--dataset", place / "graph", "--out", place / run, *options(), *more),
        code=code,
    )


def records(*command):
    return json.loads(cli(*command, "--json").stdout)


def test_training_and_its_results_are_the_same_bit_for_bit(place, mapping):
    said = train(place, "parted", "--table-memory", LIMIT).stderr
    assert "the entity table of 0.0448MB is read in parts: cpu holds at most 0.064MB" in said
    assert result_of(place / "parted") == result_of(place / "whole")


def test_a_run_opens_with_its_table_in_the_file(place, mapping):
    run = Run.open(place / "whole", table_memory=LIMIT)
    assert is_mapped(run.backbone.entities)
    assert run.method.entities is None
    assert any("read in parts" in note for note in run.notes)
    whole = Run.open(place / "whole")
    assert not is_mapped(whole.backbone.entities)
    assert run.rank("r0(e1, ?)", 5) == whole.rank("r0(e1, ?)", 5)


@pytest.mark.parametrize("method", OF_RUN)
def test_every_method_answers_the_same(place, mapping, method):
    command = ("ask", place / "whole", "r0(e1, ?x) & r1(?x, ?)", "-k", 20, "--method", method)
    parted, whole = records(*command, "--table-memory", LIMIT), records(*command)
    assert [record["id"] for record in parted] == [record["id"] for record in whole]
    scores = [[record["score"] for record in answers] for answers in (parted, whole)]
    assert scores[0] == pytest.approx(scores[1], rel=1e-4)


def test_the_network_answers_without_the_scores_of_all_entities(place, mapping, monkeypatch):
    run, whole = (Run.open(place / "whole", table_memory=limit) for limit in (LIMIT, None))
    formulas = ["r0(e1, ?) | r1(e2, ?)", "r0(e3, ?) | r1(e4, ?)", "r0(e1, ?) & ? != e5"]
    expected = whole.ask(formulas, 700, method="lmpnn")
    monkeypatch.setattr(LmpnnMethod, "score", None)
    for answers, same in zip(run.ask(formulas, 700, method="lmpnn"), expected, strict=True):
        assert [answer.id for answer in answers] == [answer.id for answer in same]
        assert answers[0].score == pytest.approx(same[0].score, rel=1e-5)


@pytest.mark.parametrize("method", ["lmpnn", *OF_CHECKPOINT])
def test_every_method_is_evaluated_the_same(place, mapping, method):
    source = [place / "whole"]
    if method != "lmpnn":
        source = ["--checkpoint", place / "file.safetensors", "--queries", place / "queries"]
        source += ["--dataset", place / "graph"]
    command = ("evaluate", *source, "--method", method, "--limit", 10)
    parted, whole = records(*command, "--table-memory", LIMIT), records(*command)
    for name, metrics in whole["types"].items():
        assert parted["types"][name]["mrr"] == pytest.approx(metrics["mrr"], rel=1e-3)


def test_what_does_not_fit_is_said_before_training(place):
    said = train(place, "none", "--table-memory", "10KB", code=2).stderr
    assert "the batches at hand need up to" in said
    assert "--table-memory is 0.01MB" in said
    said = train(place, "none", "--table-memory", LIMIT, "--set", "negatives=all", code=2).stderr
    assert "use negatives=shared" in said
    said = train(place, "none", "--table-memory", "much", code=2).stderr
    assert "'much' is not a size of memory" in said
    assert not (place / "none").exists()


def test_independent_negatives_are_read_for_each_batch(place, mapping):
    more = ("--set", "negatives=independent", "--set", "negative_count=2")
    train(place, "independent", *more)
    train(place, "independent-parted", *more, "--table-memory", LIMIT)
    assert result_of(place / "independent-parted") == result_of(place / "independent")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_table_of_half_precision_trains_as_its_numbers_in_single(place, mapping, dtype):
    tensors = load_file(place / "file.safetensors")
    with safe_open(place / "file.safetensors", "pt") as saved:
        metadata = saved.metadata()
    file = place / f"{dtype}.safetensors"
    save_file(tensors | {"entities": tensors["entities"].to(dtype)}, file, metadata)
    more = ("--checkpoint", file)  # the last one counts
    train(place, f"{dtype}", *more)
    train(place, f"{dtype}-parted", *more, "--table-memory", LIMIT)
    assert result_of(place / f"{dtype}-parted") == result_of(place / f"{dtype}")
