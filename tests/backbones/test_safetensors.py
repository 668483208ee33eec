"""Backbones as .safetensors files: exact copies, complete runs, and hostile files."""

import dataclasses
import json
import math
import struct
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from lmpnn_kge import (
    Backbone,
    BackboneError,
    LmpnnError,
    PluginError,
    ScoreType,
    backbone_class,
    open_backbone,
    read_checkpoint,
    save_backbone,
    write_checkpoint,
)
from lmpnn_kge.backbones import safetensors
from lmpnn_kge.testing import make_subject
from lmpnn_kge.testing.files import checkpoint

from ..backbones.libkge.test_write import assert_same, conve, every_form, named
from ..backbones.test_contract import ENTITIES, RELATIONS, make
from ..backbones.test_hostile_files import assert_refused
from ..conftest import TOY
from ..toy_runs import cli, options, result_of


def again(backbone, folder, **facts):
    save_backbone(backbone, folder / "file.safetensors", **facts)
    return open_backbone(folder / "file.safetensors")


@every_form
def test_every_backbone_comes_back_exactly(name, reciprocal, tmp_path):
    backbone = named(name, reciprocal=reciprocal)
    assert_same(again(backbone, tmp_path), backbone)


def test_names_may_be_anything_or_none(tmp_path):
    odd = ['"', "\\", "\n", "é", "日本", "\ud800", "\x00", "", " ", "[", "{}"]
    assert again(make("distmult", entity_ids=odd), tmp_path).entity_ids == odd
    assert again(make("distmult"), tmp_path).entity_ids is None


def test_own_fields_come_back(tmp_path):
    for p in (3.5, math.inf):
        assert again(make("transe", p=p), tmp_path).p == p
    backbone = conve(channels=16, padding=1)  # which LibKGE cannot have
    assert_same(again(backbone, tmp_path), backbone)


def test_the_file_says_which_graph_it_is_of(tmp_path):
    again(make("rotate"), tmp_path, dataset="toykg")
    found = read_checkpoint(tmp_path / "file.safetensors")
    assert (found.dataset, found.model) == ("toykg", "rotate")


def test_a_plain_model_is_written_without_its_derived_rows(tmp_path):
    save_backbone(make("distmult"), tmp_path / "file.safetensors")
    with safe_open(tmp_path / "file.safetensors", "pt") as content:
        assert content.get_slice("relations").get_shape()[0] == RELATIONS


def test_other_precisions_are_written_as_single(tmp_path):
    backbone = make("complex").to(dtype=torch.float64)
    assert_same(again(backbone, tmp_path), backbone.to(dtype=torch.float32))


def test_tensors_that_share_their_memory_are_written(tmp_path):
    table = torch.randn(4, 8)
    shared = backbone_class("distmult").from_tensors(table, table, reciprocal=True)
    assert_same(again(shared, tmp_path), shared)


def test_the_table_is_written_without_a_copy_of_it(monkeypatch):
    written = []
    monkeypatch.setattr(safetensors, "write_parts", lambda parts, _: written.extend(parts))
    backbone = make("distmult")
    save_backbone(backbone, "file.safetensors")
    entities = backbone.entities.numpy()
    assert any(np.shares_memory(np.frombuffer(part, np.uint8), entities) for part in written)


def test_safetensors_itself_reads_the_file(tmp_path):
    backbone = conve(channels=16, padding=1)
    save_backbone(backbone, tmp_path / "file.safetensors")
    found, tensors = load_file(tmp_path / "file.safetensors"), backbone.tensors()
    assert found.keys() == tensors.keys()
    assert all(torch.equal(found[name], tensors[name][: len(found[name])]) for name in found)


def test_a_table_with_nan_is_refused_and_the_file_before_stays(tmp_path):
    backbone = make("transe")
    again(backbone, tmp_path)
    spoilt = dataclasses.replace(backbone, entities=backbone.entities / 0)
    with pytest.raises(BackboneError, match="entities has NaN, infinite or too large numbers"):
        save_backbone(spoilt, tmp_path / "file.safetensors")
    assert_same(open_backbone(tmp_path / "file.safetensors"), backbone)
    assert [path.name for path in tmp_path.iterdir()] == ["file.safetensors"]


class Stranger(Backbone):
    score_type = ScoreType.INNER_PRODUCT
    formula = "h"

    def forward(self, heads, relations):
        return heads


@dataclass(frozen=True, eq=False, kw_only=True)
class Sized(Stranger):
    sizes: tuple[int, ...] = (1, 2)


@pytest.mark.parametrize(
    ("model", "file", "words"),
    [
        (Stranger, "a.safetensors", "Stranger is not an installed backbone"),
        (Sized, "a.safetensors", "sizes of Sized is a tuple; only tensors, numbers and strings"),
        (Stranger, "a.pt", r"a\.pt must end in \.safetensors"),
        (backbone_class("distmult"), "none/a.safetensors", r"a\.safetensors cannot be written"),
    ],
)
def test_what_cannot_be_written_is_refused(model, file, words, tmp_path, monkeypatch):
    (tmp_path / "none").touch()  # in the place of a folder
    if model is Sized:
        monkeypatch.setattr("lmpnn_kge.backbones.safetensors.backbone_name", lambda model: "sized")
    with pytest.raises(LmpnnError, match=words):
        save_backbone(model.random(3, 2, 4, reciprocal=True), tmp_path / file)
    assert [path.name for path in tmp_path.iterdir()] == ["none"]


def test_more_names_than_a_file_has_space_for_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("lmpnn_kge.backbones.safetensors.MAX_METADATA", 200)
    with pytest.raises(BackboneError, match="has no space for the names of 11 entities"):
        save_backbone(named("distmult"), tmp_path / "file.safetensors")


def test_a_backbone_that_another_machine_lacks_is_named(tmp_path):
    file = written(tmp_path, facts(backbone="shift"))
    assert "model       shift, plain" in cli("inspect", file).stdout
    with pytest.raises(PluginError, match="is a shift, which no installed backbone opens"):
        open_backbone(file)


@pytest.mark.parametrize(("name", "status"), [("complex", "passed"), ("distmult", "failed")])
def test_the_conformance_kit_takes_such_a_file(name, status, tmp_path):
    file = tmp_path / "file.safetensors"
    save_backbone(open_backbone(TOY / "checkpoints" / "complex.package.pt"), file)
    subject = make_subject(backbone_class(name), file, TOY / "dataset")
    assert checkpoint.on(subject).status == status


# A run on such a file ---------------------------------------------------------------------------


def test_a_run_is_the_same_as_on_libkges_file(here, toy_queries):
    """Pretrain, save, train, ask: bit for bit what the package gives."""
    recipe = ("--set", "dim=8", "--epochs", 1, "--device", "cpu")
    cli("pretrain", "--backbone", "complex", "--dataset", TOY / "dataset", "-o", "a.pt", *recipe)
    save_backbone(open_backbone("a.pt"), "a.safetensors")
    answers = []
    for file, run in (("a.pt", "run-pt"), ("a.safetensors", "run-st")):
        cli("train", "--checkpoint", file, "--dataset", TOY / "dataset", "--queries", toy_queries,
            "--out", run, *options(epochs=1))  # fmt: skip
        answers.append(cli("ask", run, "friend_of(person/ada_voss, ?)", "--json").stdout)
    assert answers[0] == answers[1]
    results = [result_of(here / run) for run in ("run-pt", "run-st")]
    files = [result["test"]["origin"].pop("checkpoint") for result in results]
    assert results[0] == results[1]
    assert files[0] != files[1]  # only the file that they were measured on differs
    facts = json.loads((here / "run-st" / "run.json").read_text())
    assert facts["backbone"] == facts["checkpoint"]["model"] == "complex"
    assert facts["checkpoint"]["file"].endswith("a.safetensors")


# Hostile files ----------------------------------------------------------------------------------


def tensors(**changes):
    generator = torch.Generator().manual_seed(0)
    made = {
        "entities": torch.randn(ENTITIES, 8, generator=generator),
        "relations": torch.randn(RELATIONS, 8, generator=generator),
    }
    return {name: tensor for name, tensor in (made | changes).items() if tensor is not None}


def facts(**changes):
    made = {
        "format": 1,
        "backbone": "transe",
        "reciprocal": False,
        "dataset": "toy",
        "entity_ids": [f"e{row}" for row in range(ENTITIES)],
        "relation_ids": [f"r{row}" for row in range(RELATIONS)],
        "fields": {"p": 1.0},
    }
    return made | changes


def without(name):
    return {key: value for key, value in facts().items() if key != name}


def written(folder, metadata, content=None):
    """A file with any metadata, given as JSON's value or as text, over any tensors."""
    text = metadata if isinstance(metadata, str) else json.dumps(metadata)
    save_file(content or tensors(), folder / "file.safetensors", {"lmpnn_kge": text})
    return folder / "file.safetensors"


HOSTILE = {
    "metadata that is no JSON": ("{", {}, "not a safetensors file of a backbone"),
    "metadata that is a list": ([1], {}, "its metadata lacks backbone"),
    "metadata that is a number": (7, {}, "its metadata lacks backbone"),
    "metadata that is deep": ("[" * 100_000, {}, "not a safetensors file of a backbone"),
    "a number beyond all numbers": ("9" * 10_000, {}, "not a safetensors file of a backbone"),
    "no backbone": (without("backbone"), {}, "lacks backbone"),
    "no names": (without("entity_ids"), {}, "lacks entity_ids"),
    "no format": (without("format"), {}, "its format is None, but this version reads 1"),
    "a later format": (facts(format=2), {}, "its format is 2, but this version reads 1"),
    "a backbone that is a list": (facts(backbone=["transe"]), {}, "model must be a string"),
    "reciprocal that is a number": (facts(reciprocal=1), {}, "reciprocal must be true or"),
    "a dataset that is a number": (facts(dataset=1), {}, "dataset must be a string or None"),
    "ids that are a mapping": (facts(entity_ids={}), {}, "entity ids must be a list"),
    "ids that are numbers": (facts(relation_ids=[1, 2, 3, 4]), {}, "relation ids must be strings"),
    "too few ids": (facts(entity_ids=["a"]), {}, "1 entity ids do not match the 11"),
    "ids that repeat": (facts(entity_ids=["a"] * ENTITIES), {}, "these repeat: 1 ('a')"),
    "fields that are a list": (facts(fields=[1]), {}, "fields must be numbers and strings"),
    "a field that is a list": (facts(fields={"p": [1]}), {}, "fields must be numbers and strings"),
    "a field nobody knows": (facts(fields={"q": 1}), {}, "cannot make a TransE from it"),
    "a field of the contract": (facts(fields={"entity_ids": None}), {}, "cannot make a TransE"),
    "a norm that is a word": (facts(fields={"p": "two"}), {}, "cannot make a TransE from it"),
    "a norm that is NaN": (facts(fields={"p": float("nan")}), {}, "p of TransE must be above 0"),
    "a norm of zero": (facts(fields={"p": 0}), {}, "p of TransE must be above 0, not 0"),
    "no entities": (facts(), {"entities": None}, "entities must be a matrix"),
    "no relations": (facts(), {"relations": None}, "relations must be a matrix"),
    "a tensor nobody knows": (facts(), {"extra": torch.ones(2)}, "cannot make a TransE from it"),
    "a table that is a vector": (facts(), {"entities": torch.ones(8)}, "entities must be a matrix"),
    "a table of integers": (facts(), {"entities": torch.ones(11, 8).int()}, "entities must be"),
    "a table that is too narrow": (facts(), {"relations": torch.ones(4, 7)}, "width 8, not 7"),
    "a table without rows": (
        facts(entity_ids=None),
        {"entities": torch.ones(0, 8)},
        "at least one row",
    ),
    "NaN in a table": (facts(), {"entities": torch.full((11, 8), torch.nan)}, "NaN or infinite"),
    "numbers too large for single precision": (
        facts(),
        {"relations": torch.full((4, 8), 1e300, dtype=torch.float64)},
        "NaN or infinite",
    ),
    "an odd number of reciprocal relations": (
        facts(reciprocal=True, relation_ids=["a", "b"]),
        {"relations": torch.ones(5, 8)},
        "come in pairs",
    ),
    "a plain model without an inverse": (
        facts(backbone="conve", fields={"height": 2}),
        {},
        "no analytic inverse",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused_in_one_line(tmp_path, name):
    metadata, changes, words = HOSTILE[name]
    assert_refused(written(tmp_path, metadata, tensors(**changes)), words)


CONVE = {
    "filters that are flat": {"filters": torch.ones(32, 9)},
    "filters that are a number": {"filters": torch.tensor(1.0)},
    "too few biases": {"filter_bias": torch.ones(3)},
    "a projection of another shape": {"projection": torch.ones(8, 7)},
    "a projection bias that is too long": {"projection_bias": torch.ones(9)},
    "filters of integers": {"filters": torch.ones(32, 1, 3, 3).int()},
    "no filters": {"filters": None},
    "a step of nothing": {"stride": 0},
    "half a step": {"stride": 0.5},
    "a height of nothing": {"height": 0},
    "endless padding": {"padding": 10**30},
    "a height that is a word": {"height": "tall"},
}


@pytest.mark.parametrize("name", CONVE)
def test_own_tensors_and_fields_that_do_not_fit_are_refused(tmp_path, name):
    """The core knows nothing of a model's own fields, and a file cannot make it stumble later."""
    save_backbone(named("conve", reciprocal=True), tmp_path / "sound.safetensors")
    with safe_open(tmp_path / "sound.safetensors", "pt") as content:
        sound = {key: content.get_tensor(key) for key in content.keys()}  # noqa: SIM118
        metadata = json.loads(content.metadata()["lmpnn_kge"])
    for key, value in CONVE[name].items():
        if value is None:
            del sound[key]
        elif isinstance(value, torch.Tensor):
            sound[key] = value
        else:
            metadata["fields"][key] = value
    assert_refused(written(tmp_path, metadata, sound), "ConvE")


def header(claims, data=b""):
    text = claims if isinstance(claims, bytes) else json.dumps(claims).encode()
    return struct.pack("<Q", len(text)) + text + data


CLAIM = {"dtype": "F32", "shape": [2**40, 2**20], "data_offsets": [0, 2**62]}
LATE = {"dtype": "F32", "shape": [1, 1], "data_offsets": [4, 8]}

BYTES = {
    "nothing": b"",
    "seven bytes": b"1234567",
    "a header of an exabyte": struct.pack("<Q", 2**60) + b"{}",
    "a header longer than the file": struct.pack("<Q", 1000) + b"{}",
    "a header that is no JSON": header(b"{{{"),
    "a header that is a list": header([]),
    "a header that is deep": header(b'{"a":' * 10_000),
    "no metadata": header({}),
    "metadata that is not text": header({"__metadata__": {"lmpnn_kge": {"format": 1}}}),
    "a tensor that claims more than there is": header({"entities": CLAIM}),
    "a tensor that begins too late": header({"entities": LATE}, b"\0" * 8),
    "an unknown type": header({"entities": LATE | {"dtype": "OBJECT"}}, b"\0" * 8),
    "a picture": b"\x89PNG\r\n\x1a\n" + bytes(100),
    "a pickle": b"\x80\x02cos\nsystem\nX\x04\x00\x00\x00true\x85R.",
}


@pytest.mark.parametrize("name", BYTES)
def test_a_file_that_is_not_a_safetensors_file_of_a_backbone(tmp_path, name):
    path = tmp_path / "file.safetensors"
    path.write_bytes(BYTES[name])
    assert_refused(path, "not a safetensors file of a backbone" if BYTES[name] else "is empty")


@pytest.mark.parametrize("kept", [10, 100, 500, -100, -1])
def test_a_truncated_file(tmp_path, kept):
    path = written(tmp_path, facts())
    path.write_bytes(path.read_bytes()[:kept])
    assert_refused(path, "not a safetensors file of a backbone")


@pytest.mark.parametrize("gap", range(8))
def test_tables_at_odd_places_are_read(tmp_path, gap):
    """The format does not promise that numbers begin where a machine likes them to."""
    path = written(tmp_path, facts())
    size, rest = path.read_bytes()[:8], path.read_bytes()[8:]
    (length,) = struct.unpack("<Q", size)
    path.write_bytes(struct.pack("<Q", length + gap) + rest[:length] + b" " * gap + rest[length:])
    assert open_backbone(path).entities.equal(tensors()["entities"])


def test_the_network_of_a_run_is_not_a_backbone(tmp_path):
    save_file({"entities": torch.ones(2, 2)}, tmp_path / "model.safetensors", {"facts": "{}"})
    assert_refused(tmp_path / "model.safetensors", "lmpnn_kge.save_backbone writes such files")


def test_a_checkpoint_file_is_taken_for_its_backbone(tmp_path):
    source = TOY / "checkpoints" / "rotate.package.pt"
    save_backbone(source, tmp_path / "a.safetensors")
    write_checkpoint(tmp_path / "a.safetensors", tmp_path / "b.pt", dataset="toykg")
    again, first = open_backbone(tmp_path / "b.pt"), open_backbone(source)
    assert torch.equal(again.entities, first.entities)
    assert again.vocabulary.has_ids_of(first.vocabulary)
