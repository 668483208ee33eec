"""Backbones written as LibKGE packages: read back bit for bit, and laid out as LibKGE's own."""

import dataclasses
import json
import sys
import types
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from lmpnn_kge import (
    Backbone,
    BackboneError,
    LmpnnError,
    ScoreType,
    Validation,
    backbone_class,
    open_backbone,
    read_checkpoint,
    write_checkpoint,
)
from lmpnn_kge.backbones.libkge.options import look_up, nest
from lmpnn_kge.backbones.open import build
from lmpnn_kge.cli import main
from lmpnn_kge.graph.formats.libkge import flatten

from ...backbones.libkge.test_scores import REFERENCES, reference, tolerance
from ...backbones.test_contract import ENTITIES, NAMES, RELATIONS, make, triples
from ...conftest import TOY
from ...libkge_files import Config as OtherConfig
from ...libkge_files import safe_load

METRIC = "mean_reciprocal_rank_filtered_with_test"
FORMS = [(name, True) for name in NAMES]
FORMS += [(name, False) for name in NAMES if backbone_class(name).inverse_formula is not None]
every_form = pytest.mark.parametrize(("name", "reciprocal"), FORMS)
#: LibKGE's own packages of the models, plain and reciprocal.
GENUINE = sorted(
    path
    for path in (TOY / "checkpoints").glob("*.package.pt")
    if path.name.split(".")[0].removesuffix("-reciprocal") in NAMES
    and len(path.name.split(".")) == 3
)


def named(name: str, **options) -> Backbone:
    return make(
        name,
        entity_ids=[f"é {row}\n" for row in range(ENTITIES)],
        relation_ids=[f"r{row}" for row in range(RELATIONS)],
        **options,
    )


def rewritten(backbone: Backbone, folder, **facts) -> Backbone:
    write_checkpoint(backbone, folder / "file.pt", dataset="tiny", **facts)
    return open_backbone(folder / "file.pt")


def assert_same(a: Backbone, b: Backbone) -> None:
    assert type(a) is type(b)
    for field in dataclasses.fields(a):
        x, y = getattr(a, field.name), getattr(b, field.name)
        assert torch.equal(x, y) if isinstance(x, torch.Tensor) else x == y, field.name


@every_form
@given(triples=triples, seed=st.integers(0, 1000))
@settings(max_examples=10, deadline=None)
def test_what_is_written_is_read_back_bit_for_bit(
    name, reciprocal, triples, seed, tmp_path_factory
):
    backbone = named(name, seed=seed, reciprocal=reciprocal)
    back = rewritten(backbone, tmp_path_factory.mktemp("written"))
    assert_same(backbone, back)
    s, p, o = torch.tensor(triples).T
    assert torch.equal(back.score_tails(s, p), backbone.score_tails(s, p))
    assert torch.equal(back.score_heads(p, o), backbone.score_heads(p, o))


@pytest.mark.parametrize("name", ["rotate", "transe", "transh"])
@pytest.mark.parametrize("p", [1, 2.0, 3.5])
@pytest.mark.parametrize("reciprocal", [True, False])
def test_the_norm_is_kept(name, p, reciprocal, tmp_path):
    backbone = make(name, p=p, reciprocal=reciprocal)
    assert_same(rewritten(backbone, tmp_path), backbone)


def conve(height=3, width=6, kernel=3, stride=1, padding=0, channels=32) -> Backbone:
    rows = (2 * height + 2 * padding - kernel) // stride + 1
    columns = (width + 2 * padding - kernel) // stride + 1
    size = height * width
    return backbone_class("conve").from_tensors(
        torch.randn(ENTITIES, size + 1),
        torch.randn(2 * RELATIONS, size + 1),
        reciprocal=True,
        filters=torch.randn(channels, 1, kernel, kernel),
        filter_bias=torch.randn(channels),
        projection=torch.randn(size, channels * rows * columns),
        projection_bias=torch.randn(size),
        height=height,
        stride=stride,
        padding=padding,
    )


@pytest.mark.parametrize(
    "shape",
    [
        {"padding": 1},
        {"kernel": 2, "stride": 2},
        {"height": 4, "width": 4},
        {"height": 4, "width": 6},
        {"height": 6, "width": 3},
    ],
    ids=str,
)
def test_conve_of_every_shape_comes_back(shape, tmp_path):
    backbone = conve(**shape)
    assert_same(rewritten(backbone, tmp_path), backbone)


@pytest.mark.parametrize(
    "shape", [{"channels": 16}, {"kernel": 3, "stride": 2, "height": 4, "width": 8}], ids=str
)
def test_a_conve_that_libkge_cannot_have_is_refused(shape, tmp_path):
    with pytest.raises(BackboneError, match="LibKGE has no ConvE with"):
        write_checkpoint(conve(**shape), tmp_path / "file.pt", dataset="tiny")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("width", [1, 20])
@pytest.mark.parametrize("reciprocal", [True, False])
def test_relational_tucker3_may_have_relations_of_any_width(width, reciprocal, tmp_path):
    backbone = backbone_class("relational_tucker3").from_tensors(
        torch.randn(ENTITIES, 4),
        torch.randn(2 * RELATIONS, width),
        reciprocal=reciprocal,
        projection=torch.randn(16, width),
    )
    assert_same(rewritten(backbone, tmp_path), backbone)


def test_a_projected_relation_is_written_as_what_it_is_projected_from(tmp_path):
    backbone = make("relational_tucker3")
    rewritten(backbone, tmp_path)
    state = safe_load(tmp_path / "file.pt")["model"][0]
    rows = state["_relation_embedder.base_embedder._embeddings.weight"]
    assert torch.equal(rows, backbone.relations[:RELATIONS])
    assert torch.equal(state["_relation_embedder.projection.weight"], backbone.projection)


def transformer(layers=2, hidden=5, **fields) -> Backbone:
    shapes = {
        "tokens": (3, 6),
        "attend": (layers, 18, 6), "attend_bias": (layers, 18),
        "merge": (layers, 6, 6), "merge_bias": (layers, 6),
        "widen": (layers, hidden, 6), "widen_bias": (layers, hidden),
        "narrow": (layers, 6, hidden), "narrow_bias": (layers, 6),
        "scale_1": (layers, 6), "shift_1": (layers, 6),
        "scale_2": (layers, 6), "shift_2": (layers, 6),
    }  # fmt: skip
    return backbone_class("transformer").from_tensors(
        torch.randn(ENTITIES, 6),
        torch.randn(2 * RELATIONS, 6),
        reciprocal=True,
        **{"heads": 3, **{name: torch.randn(shape) for name, shape in shapes.items()}, **fields},
    )


@pytest.mark.parametrize(
    "shape", [{}, {"layers": 1}, {"heads": 2, "activation": "gelu"}, {"hidden": 1}], ids=str
)
def test_a_transformer_of_every_shape_comes_back(shape, tmp_path):
    backbone = transformer(**shape)
    assert_same(rewritten(backbone, tmp_path), backbone)


@pytest.mark.parametrize("path", GENUINE, ids=lambda path: path.name)
def test_a_rewritten_package_is_laid_out_as_libkges_own(path, tmp_path):
    genuine = safe_load(path)
    rewritten(open_backbone(path), tmp_path)
    ours = safe_load(tmp_path / "file.pt")
    assert ours.keys() == genuine.keys()
    assert ours["dataset"] == genuine["dataset"]
    state, expected = ours["model"][0], genuine["model"][0]
    assert state.keys() == expected.keys()
    for name, tensor in state.items():
        assert (tensor.shape, tensor.dtype) == (expected[name].shape, expected[name].dtype)
    for option, value in flatten(ours["config"].options, 10).items():
        there = look_up(genuine["config"].options, option)
        assert type(value) is type(there), option
        if option != "dataset.name" and not option.endswith(".normalize_phases"):
            assert value == there, option


@pytest.mark.parametrize("path", GENUINE, ids=lambda path: path.name)
def test_a_rewritten_package_scores_as_libkge_did(path, tmp_path):
    if path.name.rsplit(".", 2)[0] not in REFERENCES:
        pytest.skip("LibKGE's scores of it are not recorded")
    back, expected = rewritten(open_backbone(path), tmp_path), reference(path)
    tails = back.score_tails(expected["sp_s"], expected["sp_p"]).numpy()
    heads = back.score_heads(expected["po_p"], expected["po_o"]).numpy()
    np.testing.assert_allclose(tails, expected["sp"], rtol=0, atol=tolerance(back))
    np.testing.assert_allclose(heads, expected["po"], rtol=0, atol=tolerance(back))


def test_inspect_shows_what_was_written(tmp_path):
    validations = [Validation(METRIC, 0.25, 5), Validation(METRIC, 0.3125, 10)]
    rewritten(named("rotate", reciprocal=True), tmp_path, epoch=10, validations=validations)
    result = CliRunner().invoke(main, ["inspect", str(tmp_path / "file.pt"), "--json"])
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)
    shown = {
        "kind": "LibKGE package",
        "model": "RotatE",
        "reciprocal": True,
        "entities": ENTITIES,
        "relations": RELATIONS,
        "dataset": "tiny",
        "epoch": 10,
        "validation": {"metric": METRIC, "value": 0.3125, "epoch": 10},
        "backbone": "rotate",
        "ids": True,
        "missing": [],
        "notes": [],
    }
    assert facts | shown == facts


def test_a_backbone_without_names_stays_without(tmp_path):
    back = rewritten(make("distmult"), tmp_path)
    assert back.entity_ids is None
    assert back.relation_ids is None
    assert read_checkpoint(tmp_path / "file.pt").validation is None


def test_a_plain_model_is_written_without_its_derived_rows(tmp_path):
    backbone = backbone_class("distmult").random(4, 5000, 8)
    write_checkpoint(backbone, tmp_path / "plain.pt", dataset="tiny")
    assert len(read_checkpoint(tmp_path / "plain.pt").relations) == 5000
    assert (tmp_path / "plain.pt").stat().st_size < 1.5 * 5000 * 8 * 4


def test_a_reciprocal_model_stores_each_number_once(tmp_path):
    backbone = backbone_class("distmult").random(4, 5000, 8, reciprocal=True)
    write_checkpoint(backbone, tmp_path / "file.pt", dataset="tiny")
    assert (tmp_path / "file.pt").stat().st_size < 1.5 * 10000 * 8 * 4


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
@pytest.mark.parametrize("name", ["complex", "conve"])
def test_other_precisions_are_written_as_single(name, dtype, tmp_path):
    backbone = make(name, reciprocal=True).to(dtype=dtype)
    assert_same(rewritten(backbone, tmp_path), backbone.to(dtype=torch.float32))


def test_numbers_and_names_of_numpy_are_written_as_pythons(tmp_path):
    backbone = make("distmult", entity_ids=list(np.array([f"e{i}" for i in range(ENTITIES)])))
    validations = [Validation(METRIC, np.float64(0.5), 3)]
    back = rewritten(backbone, tmp_path, epoch=np.int64(3), validations=validations)
    assert back.entity_ids == [f"e{i}" for i in range(ENTITIES)]
    assert read_checkpoint(tmp_path / "file.pt").validation == Validation(METRIC, 0.5, 3)


# Whole or not at all, whoever else is there ---------------------------------------------------


def test_the_same_backbone_gives_the_same_bytes_whatever_kge_is_imported(tmp_path, monkeypatch):
    backbone = named("conve", reciprocal=True)
    before = dict(sys.modules)
    write_checkpoint(backbone, tmp_path / "a.pt", dataset="tiny")
    assert "kge" in before or "kge" not in sys.modules
    package, config = types.ModuleType("kge"), types.ModuleType("kge.config")
    config.Config = OtherConfig
    for module in (package, config):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    write_checkpoint(backbone, tmp_path / "b.pt", dataset="tiny")
    assert sys.modules["kge.config"] is config
    assert (tmp_path / "a.pt").read_bytes() == (tmp_path / "b.pt").read_bytes()


def test_many_threads_write_at_once(tmp_path):
    backbones = [make("distmult", seed=seed) for seed in range(12)]
    files = [tmp_path / f"{seed}.pt" for seed in range(12)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda b, f: write_checkpoint(b, f, dataset="tiny"), backbones, files))
    for file, backbone in zip(files, backbones, strict=True):
        assert_same(open_backbone(file), backbone)


def test_a_table_with_nan_is_refused_and_the_file_before_stays(tmp_path):
    backbone = make("transe")
    rewritten(backbone, tmp_path)
    spoilt = dataclasses.replace(backbone, entities=backbone.entities / 0)
    with pytest.raises(BackboneError, match="has NaN, infinite or too large numbers"):
        write_checkpoint(spoilt, tmp_path / "file.pt", dataset="tiny")
    assert_same(open_backbone(tmp_path / "file.pt"), backbone)
    assert [path.name for path in tmp_path.iterdir()] == ["file.pt"]


def test_ids_that_could_not_be_read_back_are_refused(tmp_path):
    twice = make("distmult", entity_ids=["same"] * ENTITIES)
    with pytest.raises(BackboneError, match="entity_ids: ids must be distinct"):
        write_checkpoint(twice, tmp_path / "file.pt", dataset="tiny")


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path):
    (tmp_path / "none").touch()
    with pytest.raises(LmpnnError, match=r"file\.pt cannot be written: "):
        write_checkpoint(make("distmult"), tmp_path / "none" / "file.pt", dataset="tiny")


# Plugins of others ----------------------------------------------------------------------------


class Shift(Backbone):
    score_type = ScoreType.DISTANCE
    formula = "h + r"
    libkge_models = ("SimplE", "Other")

    def forward(self, heads, relations):
        return heads + self.relations[relations]

    @staticmethod
    def invert(relations):
        return -relations


@dataclass(frozen=True, eq=False, kw_only=True)
class Scaled(Shift):
    scale: float = 2.0


class Described(Scaled):
    def to_libkge(self):
        return super().to_libkge().adding({"user_scale": self.scale})

    @classmethod
    def from_libkge(cls, checkpoint, **fields):
        return super().from_libkge(checkpoint, scale=checkpoint.number("user_scale", 1.0), **fields)


@pytest.mark.parametrize("reciprocal", [True, False])
@pytest.mark.parametrize("model", [Shift, Described])
def test_two_tables_need_no_to_libkge_and_own_fields_need_it(model, reciprocal, tmp_path):
    backbone = model.random(5, 3, 4, reciprocal=reciprocal)
    write_checkpoint(backbone, tmp_path / "file.pt", dataset="tiny")
    checkpoint = read_checkpoint(tmp_path / "file.pt")
    assert (checkpoint.model, checkpoint.reciprocal) == ("SimplE", reciprocal)
    assert_same(build(checkpoint, model)[0], backbone)


def test_a_field_is_not_lost_in_silence():
    with pytest.raises(BackboneError, match="Scaled does not say what LibKGE calls its scale"):
        Scaled.random(5, 3, 4).to_libkge()


def test_a_backbone_that_names_no_libkge_model_has_no_file():
    class Nameless(Shift):
        libkge_models = ()

    with pytest.raises(BackboneError, match="Nameless names no LibKGE model"):
        Nameless.random(5, 3, 4).to_libkge()


def test_nesting_undoes_flattening():
    options = {"a": {"b": {"c": 1}, "d": [2]}, "e": 3}
    assert nest(flatten(options)) == options


# LibKGE itself --------------------------------------------------------------------------------


@every_form
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of LibKGE's
@pytest.mark.filterwarnings("ignore:enable_nested_tensor:UserWarning")  # of its Transformer's
def test_libkge_opens_it_and_scores_alike(name, reciprocal, tmp_path):
    kge = pytest.importorskip("kge", reason="LibKGE is not installed here")
    from kge.model import KgeModel

    backbone = named(name, reciprocal=reciprocal)
    back = rewritten(backbone, tmp_path)
    checkpoint = torch.load(tmp_path / "file.pt", weights_only=False) | {"folder": str(tmp_path)}
    assert type(checkpoint["config"]) is kge.Config
    graph = kge.Dataset(kge.Config.create_from(checkpoint))  # without its folder in LibKGE's
    graph._meta |= {"entity_ids": back.entity_ids, "relation_ids": back.relation_ids}
    model = KgeModel.create_from(checkpoint, dataset=graph)
    entities = torch.arange(ENTITIES).repeat(RELATIONS)
    relations = torch.arange(RELATIONS).repeat_interleave(ENTITIES)
    with torch.no_grad():
        tails = model.score_sp(entities, relations)
        heads = model.score_po(relations, entities)
    near = {"rtol": 1e-6, "atol": tolerance(backbone)}
    assert torch.allclose(tails, backbone.score_tails(entities, relations), **near)
    assert torch.allclose(heads, backbone.score_heads(relations, entities), **near)
