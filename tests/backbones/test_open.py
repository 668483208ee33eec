"""Files that LibKGE did not write, read by plugins: claimed, refused, broken, listed."""

import json
import math
import sys
import types
from importlib.metadata import EntryPoint, entry_points

import pytest
import torch
from click.testing import CliRunner

from lmpnn_kge import (
    BackboneError,
    Checkpoint,
    CheckpointError,
    PluginError,
    backbone_class,
    hookimpl,
    open_backbone,
    read_checkpoint,
)
from lmpnn_kge.backbones import discovery as plugins
from lmpnn_kge.cli import main
from lmpnn_kge.reports.record import read_run

from ..conftest import TOY
from ..test_docs import CONTRIBUTING, blocks
from ..toy_runs import cli, options


class Distribution:
    version = "1.0"

    def __init__(self, name):
        self.name = name


def loader(hook, name="lmpnn_kge_load"):
    module = types.ModuleType("some_loader")
    setattr(module, name, hookimpl(hook))
    return module


@pytest.fixture
def install(monkeypatch):
    """Pretend that modules are installed as loaders and nothing else is: install(name=module)."""

    def pretend(**modules):
        entries = []
        for name, module in modules.items():
            monkeypatch.setitem(sys.modules, f"loader_{name}", module)
            entry = EntryPoint(name, f"loader_{name}", plugins.LOADERS)
            entries.append(entry._for(Distribution(f"lmpnn-kge-{name}")))
        monkeypatch.setattr(
            plugins,
            "entry_points",
            lambda group: entries if group == plugins.LOADERS else entry_points(group=group),
        )

    return pretend


def loaded(file, **changes):
    """A checkpoint that a loader may return for any file."""
    facts = {
        "path": file,
        "kind": "text",
        "model": "transe",
        "reciprocal": False,
        "entities": torch.arange(6.0).view(3, 2),
        "relations": torch.ones(1, 2),
        "entity_ids": ["a", "b", "c"],
        "relation_ids": ["r"],
    }
    return Checkpoint(**(facts | changes))


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "mine.txt"
    path.write_text("my own format")
    return path


def refused(file, *arguments):
    """The one line that `inspect` has for a file."""
    result = CliRunner().invoke(main, ["inspect", str(file), *arguments])
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    return result.stderr


def test_a_file_that_libkge_did_not_write_is_read_by_the_loader_that_claims_it(install, file):
    mine = loader(lambda file: loaded(file, fields={"p": 2.0}))
    install(mine=mine, other=loader(lambda file: None))
    backbone = open_backbone(file)
    assert (type(backbone).__name__, backbone.p) == ("TransE", 2.0)
    assert backbone.entity_ids == ["a", "b", "c"]
    assert backbone.relations.tolist() == [[1, 1], [-1, -1]]


def test_a_checkpoint_is_shown_in_one_line_without_its_tensors(install, file):
    facts = "3 entities, 1 relations, width 2, plain"
    assert repr(loaded(file)) == f"Checkpoint({str(file)!r}, text, model transe, {facts})"
    package = TOY / "checkpoints" / "rotate.package.pt"
    facts = "LibKGE package, model RotatE, 40 entities, 6 relations, width 16, plain"
    assert repr(read_checkpoint(package)) == f"LibkgeCheckpoint({str(package)!r}, {facts})"


def test_inspect_shows_what_a_loader_found(install, file):
    install(mine=loader(lambda file: loaded(file, dataset="graph", epoch=7)))
    facts = json.loads(cli("inspect", file, "--json").stdout)
    shown = {
        "file": str(file),
        "kind": "text",
        "model": "transe",
        "entities": 3,
        "relations": 1,
        "dataset": "graph",
        "epoch": 7,
        "validation": None,
        "backbone": "transe",
        "type": "distance",
        "ids": True,
        "missing": [],
    }
    assert facts | shown == facts
    assert "kind        text\n" in cli("inspect", file).stdout


def test_libkges_files_come_through_the_same_hook_as_any_other(install):
    file = TOY / "checkpoints" / "rotate.package.pt"
    assert read_checkpoint(file).model == "RotatE"
    install(mine=loader(lambda file: None))
    assert f"{file}: not a readable checkpoint: no loader knows its format" in refused(file)


def test_a_file_that_two_loaders_claim_is_refused_naming_both(install, file):
    install(one=loader(loaded), two=loader(loaded))
    with pytest.raises(
        PluginError,
        match=r"mine.txt is claimed by loader 'one' of lmpnn-kge-one 1\.0 and by loader 'two' of "
        r"lmpnn-kge-two 1\.0; uninstall all but one",
    ):
        open_backbone(file)


def test_a_name_that_two_distributions_claim_is_refused_naming_both(monkeypatch, file):
    entries = [
        EntryPoint("twice", "m", plugins.LOADERS)._for(Distribution(name))
        for name in ("here", "there")
    ]
    monkeypatch.setattr(plugins, "entry_points", lambda group: entries)
    assert "loader 'twice' is claimed by here 1.0 and by there 1.0" in refused(file)


@pytest.mark.parametrize("raised", [ValueError("bad"), SystemExit(3), ImportError("no jax")])
def test_a_loader_that_raises_is_reported_in_one_line_and_disturbs_no_other(install, file, raised):
    def fail(file):
        raise raised

    install(bad=loader(fail))
    line = refused(file)
    assert f"{file}: not a readable checkpoint" in line
    assert f"loader 'bad' of lmpnn-kge-bad 1.0 is broken: {type(raised).__name__}: {raised}" in line
    install(bad=loader(fail), good=loader(loaded))
    assert open_backbone(file).num_entities == 3


def test_ctrl_c_in_a_loader_is_not_contained(install, file):
    def interrupted(file):
        raise KeyboardInterrupt

    install(mine=loader(interrupted))
    with pytest.raises(KeyboardInterrupt):
        read_checkpoint(file)


def test_a_loader_says_what_is_wrong_with_a_file_and_the_path_is_added(install, file):
    def choosy(file):
        raise CheckpointError("its third line is missing")

    install(mine=loader(choosy))
    assert refused(file) == f"Error: {file}: its third line is missing\n"
    install(mine=loader(choosy), other=loader(loaded))  # which is another format of the same name
    assert open_backbone(file).num_entities == 3


def test_a_file_that_no_loader_claims_is_refused(install, file):
    install(mine=loader(lambda file: None))
    assert f"{file}: not a readable checkpoint" in refused(file)


def test_loaders_are_not_asked_about_a_file_that_does_not_exist(install, tmp_path):
    install(mine=loader(loaded))
    assert "does not exist" in refused(tmp_path / "nothing.txt")
    assert "is not a file" in refused(tmp_path)


def test_what_a_loader_prints_is_not_in_our_output(install, file):
    def chatty(file):
        print("hello")
        return loaded(file)

    install(mine=loader(chatty))
    result = cli("inspect", file, "--json")
    assert json.loads(result.stdout)["kind"] == "text"
    assert result.stderr == "hello\n"


@pytest.mark.parametrize("returned", [{"entities": 1}, "checkpoint", 0])
def test_a_loader_that_returns_something_else_is_broken(install, file, returned):
    install(mine=loader(lambda file: returned))
    assert "must return a Checkpoint or None, not" in refused(file)


WRONG = {
    "a table that is a list": ({"entities": [[1.0]]}, "entities must be a matrix"),
    "a table that is a vector": ({"entities": torch.ones(3)}, "entities must be a matrix"),
    "a table of integers": ({"relations": torch.ones(1, 2).long()}, "relations must be a matrix"),
    "a table of complex numbers": ({"entities": torch.ones(3, 2).cfloat()}, "entities must be"),
    "no table": ({"relations": None}, "relations must be a matrix"),
    "tables of other widths": ({"relations": torch.ones(1, 3)}, "width 2, not 3"),
    "no rows": ({"entities": torch.ones(0, 2), "entity_ids": []}, "at least one row"),
    "NaN": ({"entities": torch.ones(3, 2) / 0 - torch.ones(3, 2) / 0}, "NaN or infinite"),
    "half a pair of relations": ({"reciprocal": True, "relation_ids": []}, "come in pairs"),
    "too few ids": ({"entity_ids": ["a"]}, "1 entity ids do not match the 3 entity rows"),
    "ids that are a string": ({"entity_ids": "abc"}, "entity ids must be a list"),
    "ids that are numbers": ({"relation_ids": [1]}, "relation ids must be strings"),
    "ids that repeat": ({"entity_ids": ["a", "b", "a"]}, "these repeat: 1 ('a')"),
    "a model that is a number": ({"model": 7}, "model must be a string, not 7"),
    "a model that is not there": ({"model": "mine"}, "no installed backbone opens"),
    "a model in other letters": ({"model": "TransE"}, "no installed backbone opens"),
    "reciprocal that is a word": ({"reciprocal": "no"}, "reciprocal must be true or false, not no"),
    "a dataset that is a list": ({"dataset": ["a"]}, "dataset must be a string or None, not ['a']"),
    "an epoch that is a word": ({"epoch": "last"}, "epoch must be a whole number or None"),
    "an unknown field": ({"fields": {"colour": 1}}, "cannot make a TransE from it (TypeError"),
    "a field twice": ({"fields": {"reciprocal": True}}, "cannot make a TransE from it (TypeError"),
    "a field that is a word": ({"fields": {"p": "two"}}, "cannot make a TransE from it (TypeError"),
    "a norm of zero": ({"fields": {"p": 0.0}}, "p of TransE must be above 0, not 0.0"),
    "a norm that is NaN": ({"fields": {"p": float("nan")}}, "p of TransE must be above 0, not nan"),
}


@pytest.mark.parametrize("name", ["rotate", "transe", "transh"])
@pytest.mark.parametrize("p", [0, -1.0, math.nan])
def test_an_impossible_norm_is_refused(name, p):
    with pytest.raises(BackboneError, match=f"must be above 0, not {p}"):
        backbone_class(name).random(3, 2, 4, p=p)


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_is_refused_whichever_loader_found_it(install, file, name):
    changes, words = WRONG[name]
    install(mine=loader(lambda file: loaded(file, **changes)))
    line = refused(file, "--rank", "test", "--dataset", str(TOY / "dataset"))
    assert words in line
    assert str(file) in line


def test_a_backbone_by_name_is_checked(install, file):
    install(mine=loader(loaded))
    assert open_backbone(file, "transe").num_entities == 3
    assert f"{file} is a transe, but backbone 'rotate' opens RotatE" in refused(
        file, "--backbone", "rotate"
    )


def test_tables_of_any_precision_are_read_as_single(install, file):
    tables = {"entities": torch.rand(3, 2).double(), "relations": torch.rand(1, 2).bfloat16()}
    install(mine=loader(lambda file: loaded(file, **tables)))
    backbone = open_backbone(file)
    assert backbone.entities.dtype == backbone.relations.dtype == torch.float32


def test_libkge_itself_is_not_asked_about_files_of_others(install, file):
    install(mine=loader(loaded))
    assert "LibKGE itself cannot open a text" in refused(file, "--against-libkge")


# The list -------------------------------------------------------------------------------------


def test_loaders_are_listed_with_what_is_wrong_with_them(install):
    install(
        empty=types.ModuleType("empty"),
        good=loader(loaded),
        misspelt=loader(loaded, "lmpnn_kge_laod"),
    )
    rows = {row["name"]: row for row in json.loads(cli("loaders", "--json").stdout)}
    assert rows["good"] == {
        "name": "good",
        "distribution": "lmpnn-kge-good 1.0",
        "health": "ok",
    }
    assert "loader_empty has no hook lmpnn_kge_load" in rows["empty"]["health"]
    assert "unknown hook 'lmpnn_kge_laod'" in rows["misspelt"]["health"]
    lines = cli("loaders").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["name", "empty", "good", "misspelt"]
    assert lines[2].endswith(" ok")


def test_the_shipped_loader_is_listed():
    assert "safetensors" in [
        row["name"] for row in json.loads(cli("loaders", "--json").stdout) if row["health"] == "ok"
    ]


# A run on a file of a third party's format ------------------------------------------------------


def test_the_loader_of_the_guide_serves_a_complete_run(install, here, toy_queries):
    """Train, resume, evaluate, ask and join queries, with no format known to the core."""
    import numpy as np

    (source,) = (block for block in blocks(CONTRIBUTING, "python") if "lmpnn_kge_load" in block)
    module = types.ModuleType("lmpnn_kge_npz")
    exec(source, module.__dict__)
    backbone = open_backbone(TOY / "checkpoints" / "distmult.package.pt")
    install(npz=module)
    np.savez(
        "mine.npz",
        entities=backbone.entities.numpy(),
        relations=backbone.relations[: backbone.num_relations].numpy(),
        entity_ids=np.array(backbone.entity_ids),
        relation_ids=np.array(backbone.relation_ids),
    )
    cli("train", "--checkpoint", "mine.npz", "--queries", toy_queries, "--out", "run", *options())
    source = read_run("run").provenance
    assert source.backbone == source.checkpoint.model == "distmult"
    assert (here / "run" / source.checkpoint.file).resolve() == here / "mine.npz"
    cli("train", "--resume", "--out", "run", "--epochs", 3)
    cli("evaluate", "run", "--split", "valid")
    assert len(cli("ask", "run", "friend_of(person/ada_voss, ?)", "-k", 3).stdout.splitlines()) == 3
    (here / "mine.npz").rename("moved.npz")
    line = cli("ask", "run", "friend_of(person/ada_voss, ?)", code=2).stderr
    assert "say where it is with --checkpoint" in line
    cli("ask", "run", "friend_of(person/ada_voss, ?)", "--checkpoint", "moved.npz")
