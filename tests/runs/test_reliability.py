"""What is fitted is kept with its run, and so is how reliable it is."""

import json
import shutil

import pytest
import torch

from lmpnn_kge import Run
from lmpnn_kge.cli import main
from lmpnn_kge.reports.record import read_run
from lmpnn_kge.runs.reliability import measure_edges, measure_on_test
from lmpnn_kge.work.listener import SILENT

from ..conftest import TOY
from ..edited import edit_json
from ..toy_runs import CHECKPOINTS, ROTATE, CliRunner, cli, train_tiny

QUESTION = "friend_of(person/sven_ekdal, ?)"


@pytest.fixture(scope="module")
def trained(tmp_path_factory, toy_queries):
    return train_tiny(toy_queries, tmp_path_factory.mktemp("fitting") / "run").folder.path


@pytest.fixture
def run(trained, tmp_path) -> Run:
    return Run.open(shutil.copytree(trained, tmp_path / "run"))


def test_the_reliability_of_edges_on_test_is_kept_with_the_fit(run):
    run.ask(QUESTION, 3, method="search", explain=1)
    edges = run._methods.fitting.edges(SILENT)
    measured = measure_on_test(edges.probability, run.knowledge.triples)
    assert edges.reliability == measured == read_run(run.folder.path).edges
    assert set(measured) == {"calibrated", "raw"}
    assert measured["calibrated"].count == measured["raw"].count
    assert measured["calibrated"] != measured["raw"]


def test_raw_probabilities_are_the_sigmoids_of_the_scores(run):
    """One claim of each question, so that it can be seen from outside: the best tail."""
    from lmpnn_kge.search import edges as module

    knowledge = run.knowledge
    fitted = run._methods.fitting.edges(SILENT).probability
    test = knowledge.triples("test")[:1]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "TOP", 1)
        _, raw = fitted.measure_both(test)
    head, relation, tail = test[0].tolist()
    keys = [(head, relation), (tail, relation + run.backbone.num_relations)]
    best = []
    for source, edge in keys:
        scores = run.backbone.score_tails([source], [edge])[0].clone()
        key = knowledge.facts.keys_of(torch.tensor([source]), torch.tensor([edge]))
        scores[knowledge.facts.tails_of(key)[1]] = -torch.inf
        if not knowledge.facts.loops[edge]:
            scores[source] = -torch.inf
        best.append(scores.max().sigmoid().item())
    shown = sum(bin_.probability * bin_.count for bin_ in raw.bins)
    assert shown == pytest.approx(sum(best), abs=1e-5)


def test_edges_that_an_earlier_version_fitted_are_fitted_again(run):
    run.ask(QUESTION, 3, method="search", explain=1)
    file = run.folder.path / "edges.json"
    content = json.loads(file.read_text())
    before = content["fitted"]["probability"]
    edit_json(file, lambda content: content.update(fitted=before))
    result = cli("ask", run.folder.path, QUESTION, "--method", "search", "--explain")
    assert "it is fitted again" in result.stderr
    assert json.loads(file.read_text()) == content


def test_results_of_methods_are_kept_if_they_are_on_all_test_queries(run):
    folder = run.folder.path
    cli("evaluate", folder, "--method", "cqd-beam", "--limit", 2)
    cli("evaluate", folder, "--method", "cqd-beam", "--split", "valid")
    assert run.kept_results("cqd-beam") is None
    cli("evaluate", folder, "--method", "cqd-beam")
    assert run.kept_results("cqd-beam") == run.evaluate("test", method="cqd-beam")
    assert read_run(folder).methods == {"cqd-beam": run.kept_results("cqd-beam")}


def test_inspect_prints_how_reliable_the_probabilities_of_edges_are(run):
    given = ["inspect", ROTATE, "--dataset", TOY / "dataset", "--reliability"]
    measured = measure_edges(run.backbone, run.graph)
    facts = json.loads(cli(*given, "--json").stdout)["reliability"]
    assert facts == {
        population: {name: found.to_json() for name, found in both.items()}
        for population, both in measured.items()
    }
    text = cli(*given).stdout
    for name, words in (("asked", "edges of reasons"), ("every", "predicted edges")):
        errors = [f"{measured[name][kind].error:.4f}" for kind in ("calibrated", "raw")]
        line = f"{words}: expected error {errors[0]}, of sigmoids {errors[1]}"
        assert line in " ".join(text.split())


def test_reliability_without_a_graph_is_one_line(here):
    shutil.copy(ROTATE, here / "rotate.pt")
    result = CliRunner().invoke(main, ["inspect", "rotate.pt", "--reliability"])
    assert result.exit_code == 2
    assert "--reliability needs the dataset" in result.stderr


def test_what_is_fitted_to_another_checkpoint_is_not_taken_for_that_of_the_run(run):
    folder, other = run.folder.path, CHECKPOINTS / "rotate-nonormphases.package.pt"
    run.evaluate("test", method="search")
    own = json.loads((folder / "search.json").read_text())
    result = cli("evaluate", folder, "--checkpoint", other, "--method", "search")
    assert "fitting search on valid" in result.stderr
    assert json.loads((folder / "search.json").read_text())["inputs"] != own["inputs"]
    assert run.kept_results("search") is None
