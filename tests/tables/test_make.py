"""Tables: every network is trained once, reused and resumed; rows have clear labels."""

import dataclasses
import json
import shutil
import signal
import statistics
from pathlib import Path

import pytest

from lmpnn_kge import Backbone, ConfigError, LmpnnError, Run, RunError, make_table, write_checkpoint
from lmpnn_kge.backbones.open import open_backbone
from lmpnn_kge.cli.progress import TerminalListener
from lmpnn_kge.queries.store import QueryStore, write_store
from lmpnn_kge.reports.published import ABLATION, published
from lmpnn_kge.runs.baselines import evaluate_method, evaluate_on
from lmpnn_kge.tables.file import read_table
from lmpnn_kge.tables.plan import gather_all, plan_rows
from lmpnn_kge.tables.section import TableRow, table_section
from lmpnn_kge.work.listener import SILENT

from ..conftest import TOY
from ..edited import edit_json
from ..reports.test_report import results
from ..toy_runs import (
    CHECKPOINTS,
    ROTATE,
    TYPES,
    cli,
    options,
    partials,
    result_of,
    start,
    tiny,
    train_tiny,
)
from ..training.test_resume import Stop

ROWS = """
ε = 0: {epsilon: 0}
ε = 0.1: {epsilon: 0.1}   # as the base has it
merged: {union: merge}
"""
BASE, ZERO = "rotate", "rotate,epsilon=0.0"
TRANSE = CHECKPOINTS / "transe.package.pt"


@pytest.fixture(scope="module")
def queries(tmp_path_factory, toy_queries):
    """Queries as BetaE has them: none to train on has a disjunction."""
    return changed(toy_queries, tmp_path_factory.mktemp("table") / "queries")


def changed(folder, out, **changes):
    store = QueryStore.open(folder)
    train = {name: found for name, found in store.splits["train"].items() if name != "2u"}
    write_store(dataclasses.replace(store, splits={**store.splits, "train": train}, **changes), out)
    return out


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("table") / "mine.yaml"
    path.write_text(ROWS)
    return path


@pytest.fixture(scope="module")
def arguments(file, queries):
    """Of a command that makes a small table."""
    given = ["--checkpoint", ROTATE, "--dataset", TOY / "dataset", "--queries", queries]
    return ["table", file, *given, *options(epochs=1)]


@pytest.fixture(scope="module")
def made(tmp_path_factory, arguments):
    """A table with the command's output."""
    folder = tmp_path_factory.mktemp("made") / "table"
    return folder, cli(*arguments, "--out", folder)


@pytest.fixture
def copy(made, tmp_path):
    """One that may be changed."""
    return shutil.copytree(made[0], tmp_path / "copy")


def make(queries, out, table="backbones", checkpoints=(ROTATE,), **more):
    """A table of networks as they begin."""
    settings = tiny(epochs=0, **more.pop("settings", {}))
    more = {"dataset": TOY / "dataset", "queries": queries, "out": out, **more}
    return make_table(table, checkpoints, settings=settings, **more)


def plan(text, queries, tmp_path, checkpoints=(ROTATE,), seeds=None):
    """The rows of a table that nothing is trained for."""
    (tmp_path / "plan.yaml").write_text(text)
    gathered = gather_all(checkpoints, None, TOY / "dataset", queries, SILENT)
    configs = read_table(tmp_path / "plan.yaml", "tiny")
    return list(plan_rows(Path("out"), configs, gathered, seeds))


def folders(rows):
    return {row.label: [job.folder.name for job in row.jobs] for row in rows}


def saved(folder):
    return json.loads((folder / "table.json").read_text())["rows"]


def times(folder):
    files = (path for path in folder.rglob("*") if path.is_file() and "report" not in path.parts)
    return {path: path.stat().st_mtime_ns for path in files if path.name != "table.json"}


# What is trained


def test_rows_with_the_same_settings_are_one_run_and_each_is_what_train_makes(
    made, tmp_path, queries
):
    folder, _ = made
    assert {path.parent.name for path in folder.glob("*/run.json")} == {BASE, ZERO}
    rows = saved(folder)
    assert {label: row["runs"] for label, row in rows.items()} == {
        "base": [BASE],
        "ε = 0": [ZERO],
        "ε = 0.1 (= base)": [BASE],
        "merged": [BASE],
    }
    assert rows["base"]["results"] == rows["ε = 0.1 (= base)"]["results"]
    train_tiny(queries, tmp_path / "alone", epochs=1, epsilon=0)
    assert result_of(folder / ZERO) == result_of(tmp_path / "alone")
    assert rows["ε = 0"]["results"] == [result_of(folder / ZERO)["test"]]


def test_what_only_differs_in_evaluation_is_only_evaluated(made):
    folder, _ = made
    rows = saved(folder)
    (base,), (merged,) = rows["base"]["results"], rows["merged"]["results"]
    assert rows["merged"]["runs"] == [BASE]
    assert merged == Run.open(folder / BASE).evaluate("test", union="merge").to_json()
    assert {name for name in TYPES if base["types"][name] != merged["types"][name]} == {"2u"}


def test_a_disjunction_among_the_training_queries_is_trained_for(toy_queries, queries, tmp_path):
    text = "merged: {union: merge}"
    assert folders(plan(text, queries, tmp_path))["merged"] == [BASE]
    assert folders(plan(text, toy_queries, tmp_path))["merged"] == ["rotate,union=merge"]


def test_the_first_row_with_some_settings_decides_how_its_network_is_trained(queries, tmp_path):
    text = "a: {epsilon: 0, union: merge}\nb: {epsilon: 0}\nc: {union: merge, epsilon: 0.0}"
    rows = plan(text, queries, tmp_path)
    folder = "rotate,epsilon=0.0,union=merge"
    assert folders(rows) == {"base": [BASE], "a": [folder], "b": [folder], "c (= a)": [folder]}
    assert [row.borrowed for row in rows] == [False, False, True, False]


def test_many_changes_make_a_name_that_a_file_system_takes(queries, tmp_path):
    changes = "hidden: 1, hidden_layers: 2, epsilon: 0.3, depth_shift: 1, constants: updated, "
    changes += "messages: cat, temperature: 0.3, negatives: all, batch_size: 1, warmup: 0, "
    text = f"a: {{{changes} patience: 1}}\nb: {{{changes} patience: 2}}"
    names = [name for (name,) in folders(plan(text, queries, tmp_path)).values()]
    assert len(set(names)) == 3
    assert max(map(len, names)) < 150


def test_a_row_for_every_checkpoint_by_the_name_of_its_backbone(here, queries):
    made = make(queries, None, checkpoints=[ROTATE, TRANSE, ROTATE])
    assert list(made.rows) == ["rotate", "transe"]
    assert made.folder == Path("tables/backbones-toykg")
    assert {path.parent.name for path in made.folder.glob("*/run.json")} == {"rotate", "transe"}
    before = times(made.folder / "rotate")
    more = CHECKPOINTS / "rotate-l2.package.pt"
    again = make(queries, None, checkpoints=[ROTATE, TRANSE, more])
    labels = ["rotate (rotate.package.pt)", "transe", "rotate (rotate-l2.package.pt)"]
    assert list(again.rows) == labels
    assert times(made.folder / "rotate") == before
    assert (made.folder / "rotate-rotate-l2.package.pt" / "test.json").is_file()


def test_rows_of_several_checkpoints_are_called_by_both(queries, tmp_path):
    rows = plan("ε = 0: {epsilon: 0}\nsame: {}", queries, tmp_path, [ROTATE, TRANSE])
    assert folders(rows) == {
        "rotate, base": [BASE],
        "rotate, ε = 0": [ZERO],
        "rotate, same (= rotate, base)": [BASE],
        "transe, base": ["transe"],
        "transe, ε = 0": ["transe,epsilon=0.0"],
        "transe, same (= transe, base)": ["transe"],
    }
    assert [row.base for row in rows] == ["rotate, base"] * 3 + ["transe, base"] * 3


# What is there


def test_a_finished_table_is_made_again_without_training(made, copy, arguments, monkeypatch):
    def never(*given, **more):
        raise AssertionError("nothing is to be computed")

    monkeypatch.setattr("lmpnn_kge.tables.make.train_on", never)
    monkeypatch.setattr(Run, "evaluate", never)
    before = times(copy)
    again = cli(*arguments, "--out", copy)
    assert times(copy) == before
    assert again.stdout.replace(str(copy), str(made[0])) == made[1].stdout
    lines = again.stderr.splitlines()
    assert lines == [
        "note: network 1 of 2: base is already finished",
        "note: network 2 of 2: ε = 0 is already finished",
    ]


def test_a_table_says_what_it_does_and_what_is_the_same_for_all_rows_once(made):
    _, result = made
    first = [line.split()[0] for line in result.stderr.splitlines()]
    assert first == [
        *("note:", "backbone", "queries", "device", "run", "epoch"),
        *("note:", "run", "epoch"),
    ]
    assert "note: network 2 of 2: ε = 0\n" in result.stderr
    lines = result.stdout.splitlines()
    assert lines[0] == "MRR on test queries, in percent:"
    assert [lines[2].split(), lines[8].split()] == [["1p", "2p", "2i", "2u"], ["2in"]]
    for block in (lines[3:7], lines[9:13]):
        assert [line[:16].strip() for line in block] == list(saved(made[0]))
    assert lines[-1] == f"report    {made[0]}/report/report.html"


def test_a_stopped_table_resumes_to_the_same_results(here, made, arguments, monkeypatch):
    with monkeypatch.context() as patch:
        stop = Stop(patch)
        patch.setattr(TerminalListener, "begin", lambda self, *given: stop.begin(*given))
        patch.setattr(TerminalListener, "advance", lambda self, *given: stop.advance(*given))
        result = cli(*arguments, code=130)
        assert result.stdout == "stopped and saved; the same command continues\n"
    (folder,) = (here / "tables").iterdir()
    assert folder.name == "mine-toykg-rotate"
    assert not (folder / BASE / "test.json").exists()
    assert "1 of 2: base\n" in cli(*arguments).stderr
    for name in (BASE, ZERO):
        assert result_of(folder / name) == result_of(made[0] / name)
    assert saved(folder) == saved(made[0])


def test_a_killed_table_resumes_to_the_same_results(here, made, arguments):
    process = start(*arguments, "--out", "killed", cwd=here)
    while "2 of 2" not in (line := process.stderr.readline()):
        assert line
    process.kill()
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    before = times(here / "killed" / BASE)
    assert "1 of 2: base is already finished" in cli(*arguments, "--out", "killed").stderr
    assert before.items() <= times(here / "killed" / BASE).items()
    for name in (BASE, ZERO):
        assert result_of(here / "killed" / name) == result_of(made[0] / name)
    assert saved(here / "killed") == saved(made[0])
    assert partials(here) == []


def test_an_interrupted_evaluation_is_resumed(copy, arguments, monkeypatch):
    def interrupted(*given, **more):
        raise KeyboardInterrupt

    (copy / BASE / "test-merge.json").unlink()
    with monkeypatch.context() as patch:
        patch.setattr("lmpnn_kge.runs.fitting.rank_split", interrupted)
        stdout = cli(*arguments, "--out", copy, code=130).stdout
    assert stdout == "stopped; the same command continues\n"
    cli(*arguments, "--out", copy)
    assert (copy / BASE / "test-merge.json").is_file()


def test_more_epochs_for_one_run_leave_no_results_of_fewer(copy, arguments):
    cli("train", "--resume", "--out", copy / BASE, "--epochs", 2)
    assert not (copy / BASE / "test-merge.json").exists()
    stderr = cli(*arguments, "--out", copy, code=2).stderr
    assert f"{BASE} began with other settings of epochs" in stderr


# What is wrong


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: {epsilo: 0}", "the row 'a': there is no setting 'epsilo'; did you mean 'epsilon'?"),
        ("a: {epsilon: no}", "the row 'a': epsilon is 'False', but must be a number"),
        ("a: {temperature: 0}", "the row 'a': temperature is 0.0, but must be above 0"),
        ("a: 3", "the row 'a' has '3' in place of settings"),
        ("a:", "the row 'a' has 'None' in place of settings"),
        ("1: {epsilon: 0}", "has a row called '1': a name is text, in quotes"),
        ('"a\\nb": {epsilon: 0}', "has a row called 'a"),
        ("base: {epsilon: 0}", "'base' is the row that changes nothing"),
        ("- a", "must hold lines of the form"),
        ("a: {", "cannot be read"),
    ],
)
def test_a_mistake_in_a_file_is_reported_before_any_work(here, queries, text, words):
    (here / "mine.yaml").write_text(text)
    given = ["--checkpoint", ROTATE, "--queries", queries]
    assert words in cli("table", "mine.yaml", *given, code=2).stderr
    assert [path.name for path in here.iterdir()] == ["mine.yaml"]


def test_an_unknown_table_is_reported_with_the_known_ones(here):
    stderr = cli("table", "ablatoin", "--checkpoint", ROTATE, code=2).stderr
    assert "no table is called 'ablatoin'; did you mean 'ablation'? choose from: " in stderr
    assert "ablation, backbones, or a file that ends in .yaml" in stderr
    assert "cannot be read" in cli("table", "no.yaml", "--checkpoint", ROTATE, code=2).stderr
    given = ["--checkpoint", ROTATE, "--beside", "none.json"]
    assert "not of the form NAME=FILE" in cli("table", "ablation", *given, code=2).stderr
    assert "Missing option '--checkpoint'" in cli("table", "ablation", code=2).stderr
    with pytest.raises(RunError, match="give a checkpoint"):
        make_table("ablation", [])


def other_graph(tmp_path, renamed):
    """A checkpoint in which some entities have other names."""
    backbone: Backbone = open_backbone(TRANSE, dataset=TOY / "dataset")
    names = [f"new {n}" if i < renamed else n for i, n in enumerate(backbone.entity_ids)]
    file = tmp_path / "other.pt"
    write_checkpoint(dataclasses.replace(backbone, entity_ids=names), file, dataset="other")
    return file


@pytest.mark.parametrize(
    ("renamed", "words"), [(3, "knows other queries of"), (40, "is of another graph than")]
)
def test_a_checkpoint_of_another_graph_is_refused(here, queries, renamed, words):
    file = other_graph(here, renamed)
    with pytest.raises(RunError, match=words):
        make(queries, here / "out", checkpoints=[ROTATE, file], dataset=None)
    assert not (here / "out").exists()


def test_queries_that_nothing_can_be_ranked_on_are_refused(tmp_path, queries):
    store = QueryStore.open(queries)
    for split, words in (("test", "no hard answers in 'test'"), ("train", "no training queries")):
        rest = {name: found for name, found in store.splits.items() if name != split}
        write_store(dataclasses.replace(store, splits=rest), tmp_path / split)
        with pytest.raises(RunError, match=words):
            make(tmp_path / split, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_folder_of_other_settings_checkpoint_or_queries_is_left_alone(
    copy, queries, file, tmp_path
):
    other = changed(queries, tmp_path / "other", provenance={"seed": 1})
    begun = {"settings": {"epochs": 1}, "queries": queries, "checkpoints": [ROTATE]}
    for change, words in (
        ({"settings": {"epochs": 2}}, "began with other settings of epochs; .* another --out"),
        ({"settings": {"epochs": 1, "hidden": 9}}, "began with other settings of hidden"),
        ({"queries": other}, r"did not begin with the queries .*; choose another --out"),
        (
            {"checkpoints": [CHECKPOINTS / "rotate-l2.package.pt"]},
            r"did not begin with the checkpoint .*; choose another --out",
        ),
    ):
        given = begun | change
        before = times(copy)
        with pytest.raises(LmpnnError, match=words):
            make_table(
                file,
                given["checkpoints"],
                dataset=TOY / "dataset",
                queries=given["queries"],
                settings=tiny(**given["settings"]),
                out=copy,
            )
        assert times(copy) == before


def test_a_folder_that_is_not_a_table_is_not_written_to(made, queries, tmp_path, monkeypatch):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("")
    (tmp_path / "file").write_text("")
    monkeypatch.chdir(tmp_path)
    for out in (made[0] / BASE, "full", "file"):
        with pytest.raises(LmpnnError, match="exists and holds something else"):
            make(queries, out)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "full"]


def test_damaged_results_are_named(copy, arguments):
    (copy / ZERO / "test.json").write_text('{"types": {}}')
    assert "test.json is damaged" in cli(*arguments, "--out", copy, code=2).stderr


# Seeds


def test_seeds_are_runs_whose_mean_and_standard_deviation_are_shown(made, copy, arguments):
    before = times(copy / BASE)
    result = cli(*arguments, "--out", copy, "--seeds", 3)
    assert times(copy / BASE) == before
    assert "1 of 6: base, seed 0 is already finished" in result.stderr
    rows = saved(copy)
    assert rows["ε = 0"]["runs"] == [ZERO, f"{ZERO},seed=1", f"{ZERO},seed=2"]
    found = [result_of(copy / name)["test"] for name in rows["ε = 0"]["runs"]]
    assert rows["ε = 0"]["results"] == found
    values = [100 * one["types"]["2p"]["mrr"] for one in found]
    assert len(set(values)) == 3
    header, *lines = result.stdout.splitlines()[2:7]
    cells = next(line for line in lines if line.startswith("ε = 0  ")).split()[3:]
    shown = dict(zip(header.split(), cells, strict=True))["2p"]
    assert shown == f"{sum(values) / 3:.1f}±{statistics.stdev(values):.1f}"
    assert len({len(line) for line in lines}) == 1
    text = (copy / "report" / "report.md").read_text()
    assert "the mean ± the standard deviation of 3 seeds" in text
    assert f"| {shown} |" in text
    assert "merged, seed 2" in text


def test_seeds_cannot_be_given_twice(here, queries):
    given = ["--checkpoint", ROTATE, "--queries", queries, "--seeds", 2]
    stderr = cli("table", "ablation", *given, "--seed", 1, code=2).stderr
    assert "the settings have a seed, but --seeds gives every row its own" in stderr
    (here / "mine.yaml").write_text("a: {seed: 5}")
    assert "the row 'a' of mine.yaml has a seed" in cli("table", "mine.yaml", *given, code=2).stderr
    with pytest.raises(ConfigError, match="the number of seeds is 0, but must be 1 or more"):
        make(queries, here / "out", seeds=0)


# The report


def test_the_report_shows_all_runs_once_and_the_table_before_them(made):
    text = (made[0] / "report" / "report.md").read_text()
    assert text.startswith("# mine on toykg\n\n## The table\n")
    overview = text.partition("## Runs")[2].partition("##")[0]
    assert [line.split("|")[1].strip() for line in overview.splitlines() if "RotatE" in line] == [
        "base",
        "ε = 0",
    ]
    answering = text.partition("## Answering")[2]
    assert "| merged " in answering
    assert "(= base)" not in answering


def test_rows_of_the_paper_stand_beside_ours(tmp_path, queries):
    named = changed(queries, tmp_path / "queries", graph="fb15k-237")
    (tmp_path / "mine.yaml").write_text("ε = 0: {epsilon: 0}\nmine: {epsilon: 0.3}")
    made = make(named, tmp_path / "ablation", tmp_path / "mine.yaml")
    text = (made.folder / "report" / "report.md").read_text()
    for name in ("best choice", "ε = 0"):
        assert f"published, on other queries: LMPNN (ComplEx 2000D, {name})" in text
    made = make(named, tmp_path / "backbones", checkpoints=[ROTATE])
    table = (made.folder / "report" / "report.md").read_text().partition("## Runs")[0]
    assert "published, on other queries: LMPNN (RotatE 256D)" in table
    assert "ComplEx" not in table


def test_what_a_change_does_is_shown_beside_what_it_does_in_the_paper():
    types = dict.fromkeys(published()[0].mrr, 0.2)
    rows = {row.setting: row for row in published(table=ABLATION)}
    base = TableRow("base", [results(types)], "base", rows["best choice"])
    worse = [results({name: value / 2 for name, value in types.items()})]
    zero = TableRow("ε = 0", worse, "base", rows["ε = 0"])
    section = table_section([base, zero, TableRow("mine", worse, "base")])
    assert section.first
    _, changes = section.blocks
    assert list(changes.rows) == [
        ["base", "20.0", "0.0", "24.1", "0.0", "20.0", "0.0", "7.8", "0.0"],
        ["ε = 0", "10.0", "−10.0", "22.3", "−1.8", "10.0", "−10.0", "6.8", "−1.0"],
    ]
    assert len(table_section([dataclasses.replace(base, published=None)]).blocks) == 1


def test_results_of_something_else_can_stand_beside(tmp_path, queries):
    given = {"dataset": TOY / "dataset", "queries": queries}
    alone = evaluate_method("frequency", ROTATE, **given)
    half = {name: dataclasses.replace(row, mrr=0.5) for name, row in alone.types.items()}
    other = dataclasses.replace(alone, types=half)
    made = make(queries, tmp_path / "out", beside={"cqd": other})
    assert list(made.rows) == ["rotate", "cqd"]
    assert [line.split() for line in str(made).splitlines() if line.startswith("cqd")] == [
        ["cqd", *["50.0"] * 4],
        ["cqd", "50.0"],
    ]
    assert saved(made.folder)["cqd"] == {"results": [other.to_json()]}
    assert "| cqd " in (made.folder / "report" / "report.md").read_text()
    with pytest.raises(RunError, match="'rotate' is a row of the table; choose another name"):
        make(queries, tmp_path / "another", beside={"rotate": other})
    assert not (tmp_path / "another").exists()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"queries": "0" * 64}, "it was measured on other queries over toykg"),
        ({"graph": "0" * 64, "graph_name": "FB15k"}, "it was measured on another graph: FB15k"),
        ({"limit": 9}, "it ranks at most 9 queries per type, not all queries"),
        (None, "it ranks 9 queries of the type 1p, not 16"),
    ],
)
def test_results_on_other_queries_are_refused_before_any_work(tmp_path, queries, changes, reason):
    other = results({"1p": 0.5})  # of nine queries
    if changes is not None:
        alone = evaluate_method("frequency", ROTATE, dataset=TOY / "dataset", queries=queries)
        other = dataclasses.replace(alone, origin=dataclasses.replace(alone.origin, **changes))
    with pytest.raises(RunError, match=f"'cqd' cannot stand in the table: {reason}"):
        make(queries, tmp_path / "out", beside={"cqd": other})
    assert not (tmp_path / "out").exists()


def test_results_that_do_not_name_their_queries_are_labelled(tmp_path, queries):
    alone = evaluate_method("frequency", ROTATE, dataset=TOY / "dataset", queries=queries)
    made = make(queries, tmp_path / "out", beside={"old": dataclasses.replace(alone, origin=None)})
    assert list(made.rows) == ["rotate", "old (its queries are not recorded)"]
    text = (made.folder / "report" / "report.md").read_text()
    assert "| old (its queries are not recorded) " in text
    assert "recorded) (its" not in text


# Methods


@pytest.fixture
def checkpoint(tmp_path):
    """A copy, because what is fitted to a checkpoint is kept beside it."""
    return Path(shutil.copy(ROTATE, tmp_path / "rotate.pt"))


def test_methods_are_rows_that_are_evaluated_on_every_checkpoint(tmp_path, queries, checkpoint):
    files = [checkpoint, TRANSE]
    made = make(queries, tmp_path / "out", checkpoints=files, methods=["cqd-beam", "frequency"])
    labels = ["rotate", "transe", "rotate, cqd-beam", "transe, cqd-beam", "frequency"]
    assert list(made.rows) == labels
    given = {"dataset": TOY / "dataset", "queries": queries}
    for label, file in (("rotate, cqd-beam", checkpoint), ("transe, cqd-beam", TRANSE)):
        alone = evaluate_method("cqd-beam", file, **given)
        assert made.rows[label] == [alone]
        row = saved(made.folder)[label]
        assert (row["method"], Path(row["checkpoint"]).name) == ("cqd-beam", file.name)
    assert made.rows["frequency"] == [evaluate_method("frequency", checkpoint, **given)]
    text = (made.folder / "report" / "report.md").read_text()
    for part in (text.partition("## Runs")[0], text.partition("## Answering")[2]):
        assert "| transe, cqd-beam " in part
    assert "rotate, cqd-beam  " in str(made)


def test_finished_methods_are_reused_unless_their_inputs_differ(
    tmp_path, queries, checkpoint, monkeypatch
):
    options = {"checkpoints": [checkpoint], "methods": ["search", "cqd-beam"]}
    first = make(queries, tmp_path / "out", **options)
    assert checkpoint.with_suffix(".search.json").is_file()
    assert first.rows["rotate, search"][0].reliability is not None
    assert "## Probabilities" in (first.folder / "report" / "report.md").read_text()
    evaluated = []
    monkeypatch.setattr(
        "lmpnn_kge.tables.methods.evaluate_on",
        lambda name, *given, **more: evaluated.append(name) or evaluate_on(name, *given, **more),
    )
    assert make(queries, tmp_path / "out", **options).rows == first.rows
    assert not evaluated
    file = tmp_path / "out" / "rotate.cqd-beam.json"
    edit_json(file, lambda content: content["inputs"].update(queries="0" * 64))
    assert make(queries, tmp_path / "out", **options).rows == first.rows
    assert evaluated == ["cqd-beam"]


@pytest.fixture(scope="module")
def hard(tmp_path_factory):
    """Test queries of other types than the table is trained on."""
    folder = tmp_path_factory.mktemp("hard") / "hard"
    given = ["--preset", "hard", "--types", "2p,2i", "--count", 10]
    cli("sample", "--dataset", TOY / "dataset", *given, "--out", folder)
    return folder


def test_rows_are_also_tested_on_other_queries_without_being_fitted_to_them(
    tmp_path, queries, hard, checkpoint, monkeypatch
):
    options = {"checkpoints": [checkpoint], "methods": ["search"], "test_queries": [hard]}
    made = make(queries, tmp_path / "out", limit=3, **options)
    (title,) = made.others
    assert title == "test queries of hard, at most 3 per type"
    others = made.others[title]
    assert list(others) == list(made.rows) == ["rotate", "rotate, search"]
    run = Run.open(tmp_path / "out" / "rotate", dataset=TOY / "dataset")
    assert others["rotate"] == [run.evaluate(queries=hard, limit=3)]
    assert made.rows["rotate"] == [run.evaluate(limit=3)]
    own = evaluate_method("search", checkpoint, dataset=TOY / "dataset", queries=queries, limit=3)
    assert made.rows["rotate, search"] == [own]
    assert (
        others["rotate, search"][0].mrr == run.evaluate(queries=hard, method="search", limit=3).mrr
    )
    assert others["rotate, search"][0].origin.queries != own.origin.queries
    assert f"{title}:" in str(made)
    text = (made.folder / "report" / "report.md").read_text()
    assert f"## On the {title}" in text
    assert "rotate, search, 2 missing" in text
    content = json.loads((made.folder / "table.json").read_text())
    assert list(content["others"]["hard"]) == list(others)

    monkeypatch.setattr("lmpnn_kge.tables.methods.evaluate_on", None)  # nothing is evaluated again
    again = make(queries, tmp_path / "out", limit=3, **options)
    assert (again.rows, again.others) == (made.rows, made.others)


def test_a_store_without_test_queries_is_refused_before_any_work(here, queries, checkpoint):
    store = QueryStore.open(queries)
    write_store(dataclasses.replace(store, splits={"valid": store.queries("valid")}), "other")
    with pytest.raises(LmpnnError, match="other"):
        make(queries, here / "out", checkpoints=[checkpoint], test_queries=["other"])
    assert not (here / "out").exists()


def test_a_method_that_cannot_be_evaluated_is_reported_before_any_work(here, queries, checkpoint):
    before = sorted(here.iterdir())
    given = ["--checkpoint", checkpoint, "--queries", queries, "--out", "out"]
    stderr = cli("table", "backbones", *given, "--method", "cqd_beam", code=2).stderr
    assert "'cqd_beam' is not one of 'search', 'hybrid'" in stderr
    stderr = cli("table", "backbones", *given, "--method", "hybrid", code=2).stderr
    assert "hybrid needs the training edges: give their graph with --dataset DIR" in stderr
    with pytest.raises(ConfigError, match="there is no method 'serach'; did you mean"):
        make(queries, here / "out", methods=["serach"])
    with pytest.raises(RunError, match="'frequency' is a row of the table"):
        make(queries, here / "out", methods=["frequency"], beside={"frequency": results({"1p": 1})})
    assert sorted(here.iterdir()) == before
