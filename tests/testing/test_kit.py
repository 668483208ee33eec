"""The conformance kit passes what is sound, and finds every fault that is planted."""

import json
import subprocess
import sys
from dataclasses import dataclass, field

import pytest
import torch
from click.testing import CliRunner
from lmpnn_kge_distmult import DistMult
from lmpnn_kge_rescal import Rescal
from lmpnn_kge_rotate import RotatE
from lmpnn_kge_transe import TransE

from lmpnn_kge import Backbone, ScoreType
from lmpnn_kge.backbones.discovery import discover
from lmpnn_kge.cli import main
from lmpnn_kge.testing import CHECKS, BackboneTests, check_backbone, make_subject

from ..conftest import ROOT, TOY

BY_NAME = {check.name: check for check in CHECKS}
QUICK = [check for check in CHECKS if check.name not in ("learns", "speed")]


def complex_(row):
    return torch.complex(*row.chunk(2))


def conv(model, h, r):
    """Both batch norms are folded into the filters and the projection."""
    image = torch.cat([h[1:], r[1:]]).view(1, 1, 2 * model.height, -1)
    features = torch.nn.functional.conv2d(image, model.filters, model.filter_bias).relu()
    return (model.projection @ features.flatten() + model.projection_bias).relu()


def on_plane(x, r):
    normal = r[len(x) :] / r[len(x) :].norm()
    return x - (x @ normal) * normal


#: The papers' scores of one triple, written naively.
PHI = {
    "complex": lambda m, h, r, t: (complex_(h) * complex_(r) * complex_(t).conj()).sum().real,
    "conve": lambda m, h, r, t: conv(m, h, r) @ t[1:] + t[0],
    "cp": lambda m, h, r, t: (h[: len(r)] * r * t[len(r) :]).sum(),
    "distmult": lambda m, h, r, t: (h * r * t).sum(),
    "relational_tucker3": lambda m, h, r, t: h @ (m.projection @ r).view(len(h), len(t)) @ t,
    "rescal": lambda m, h, r, t: h @ r.view(len(h), len(t)) @ t,
    "rotate": lambda m, h, r, t: (
        -((complex_(h) * torch.polar(torch.ones_like(r), r) - complex_(t)).abs().norm(m.p))
    ),
    "simple": lambda m, h, r, t: ((h * r) @ t.roll(len(t) // 2)) / 2,
    "transe": lambda m, h, r, t: -(h + r - t).norm(m.p),
    "transh": lambda m, h, r, t: -(on_plane(h, r) + r[: len(h)] - on_plane(t, r)).norm(m.p),
}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
@pytest.mark.parametrize("name", [plugin.name for plugin in discover()])
def test_every_installed_backbone_keeps_the_contract(name, check):
    outcome = check.on(make_subject(name, phi=PHI.get(name)))
    assert outcome.status != "failed", outcome
    assert outcome.detail


@pytest.mark.parametrize("name", [*PHI, "transformer"])
def test_the_built_in_checkpoints_rank_as_well_as_they_say(name):
    files = sorted((TOY / "checkpoints").glob(f"{name}*reciprocal*.package.pt"))
    assert files
    for file in files:
        outcome = BY_NAME["checkpoint"].on(make_subject(name, file, TOY / "dataset"))
        assert outcome.status == "passed", outcome
        found, recorded = outcome.detail.split(" on ")[0][-6:], outcome.detail[-6:]
        assert found == recorded


# Planted faults ---------------------------------------------------------------------------------


class Product(Backbone):
    """Sound, to plant faults in."""

    score_type = ScoreType.INNER_PRODUCT
    formula = "h ∘ r"
    inverse_formula = "r"

    def forward(self, heads, relations):
        return heads * self.relations[relations]

    @staticmethod
    def invert(relations):
        return relations


class Shift(Backbone):
    score_type = ScoreType.DISTANCE
    formula = "h + r"
    inverse_formula = "−r"

    def forward(self, heads, relations):
        return heads + self.relations[relations]

    @staticmethod
    def invert(relations):
        return -relations


FAULTS = []


def fault(check, words, **given):
    """Plant a class: which check finds it, and what it says."""

    def plant(model):
        FAULTS.append(pytest.param(model, check, words, given, id=model.__name__))
        return model

    return plant


@fault("inverse", "φ from f(t, r⁻¹); found a difference of")
class RotatesForwardOnTheInverse(RotatE):
    @staticmethod
    def invert(relations):
        return relations


@fault("inverse", "φ from f(t, r⁻¹); found a difference of")
class InvertsWithoutTransposing(Rescal):
    @staticmethod
    def invert(relations):
        return relations


@fault("phi", "from f: head and tail are exchanged", phi=PHI["rescal"])
class Transposed(Rescal):
    def forward(self, heads, relations):
        return super().forward(heads, self.inverse(relations))


@fault("phi", "from f: it has the opposite sign", phi=PHI["distmult"])
@fault("checkpoint", "expected the MRR that the file records, 0.3220; found a filtered MRR",
       checkpoint=TOY / "checkpoints" / "distmult.package.pt", dataset=TOY / "dataset")  # fmt: skip
class Negated(DistMult):
    def forward(self, heads, relations):
        return -super().forward(heads, relations)


@fault(
    "phi",
    "the difference depends on the tail alone, as a bias does",
    phi=lambda m, h, r, t: (h[1:] * r[1:] * t[1:]).sum() + t[0],
)
class WithoutItsBias(Backbone):
    score_type = ScoreType.INNER_PRODUCT
    formula = "[1 ‖ h ∘ r]"

    def forward(self, heads, relations):
        product = heads * self.relations[relations]
        return torch.cat([torch.zeros_like(product[:, :1]), product[:, 1:]], 1)


@fault("phi", "belongs in the shift of truth", phi=lambda m, h, r, t: 9 - (h + r - t).norm())
class WithoutItsMargin(Shift):
    pass


@fault("batch", "the same row in a batch as alone")
class Centred(Product):
    def forward(self, heads, relations):
        return super().forward(heads - heads.mean(0), relations)


@fault("frozen", "some tensor in f is a parameter")
class TrainsItsTable(Product):
    def __post_init__(self):
        super().__post_init__()
        object.__setattr__(self, "relations", torch.nn.Parameter(self.relations))


@fault("frozen", "expected relations unchanged; found calls change it")
class UpdatesItsTable(Product):
    def forward(self, heads, relations):
        result = super().forward(heads, relations)
        self.relations.mul_(0.99)
        return result


@fault("frozen", "expected heads unchanged; found they are changed in place")
class ChangesHeads(Product):
    def forward(self, heads, relations):
        return heads.mul_(self.relations[relations]) if not heads.requires_grad else heads


@fault("widths", "f(h, r) of width 1 for entities of width 1; found shape [2, 2]")
class WideRelations(Product):
    @staticmethod
    def relation_width(dim):
        return dim + 1


@fault("shapes", "expected f of 1 heads to have shape [1, 8]; found shape [1, 4]")
class HalfAsWide(Product):
    def forward(self, heads, relations):
        result = super().forward(heads, relations)
        return result[:, : 4 if len(heads) else None]


@fault("widths", "Every width works or raises BackboneError, and entity_width returns")
class WrongError(Product):
    @staticmethod
    def relation_width(dim):
        if dim % 2:
            raise ValueError(dim)
        return dim


@fault("devices", "found ones with a tensor of shape [8] on cpu")
class MakesATensorOnTheHost(Product):
    def forward(self, heads, relations):
        return super().forward(heads, relations) * torch.ones(self.dim)


@fault("devices", "no step that reads values")
class ReadsValues(Product):
    def forward(self, heads, relations):
        return super().forward(heads, relations) / max(1.0, heads.abs().max().item() - 1e9)


@fault("score_type", "it holds for DISTANCE")
class ShiftAsProduct(Shift):
    score_type = ScoreType.INNER_PRODUCT


@fault("score_type", "it holds for INNER_PRODUCT")
class ProductAsDistance(Product):
    score_type = ScoreType.DISTANCE


@fault("score_type", "a definition of distance and distances, which only DISTANCE uses")
class RotationAsProduct(RotatE):
    score_type = ScoreType.INNER_PRODUCT


@fault("score_type", "score_entities by the definition of INNER_PRODUCT")
class OwnScores(Product):
    def score_entities(self, estimates, relations=None):
        return -super().score_entities(estimates, relations)


@fault("messages", "message(inverse=True) equal to f(z, r⁻¹)")
class OwnMessages(Product):
    def message(self, z, relation, *, inverse=False, negated=False):
        return super().message(z, relation, inverse=False, negated=negated) * (1 + inverse)


@fault("determinism", "no random numbers, no state")
class Random(Product):
    def forward(self, heads, relations):
        return torch.nn.functional.dropout(super().forward(heads, relations))


@fault("dtypes", "f(h, r) in torch.float64 from tables in torch.float64; found torch.float32")
class Single(Product):
    def forward(self, heads, relations):
        return heads.float() * self.relations[relations].float()


@fault("dtypes", "float64 in every step")
class SingleInside(Single):
    def forward(self, heads, relations):
        return super().forward(heads, relations).to(heads.dtype)


@fault("involution", "f(h, (r⁻¹)⁻¹) equal to f(h, r)")
class NoInvolution(Shift):
    @staticmethod
    def invert(relations):
        return -2 * relations


@fault("distance", "distance(a, b) = distance(b, a)")
class OneWay(Shift):
    def distance(self, a, b):
        return (2 * (a - b).relu() + (b - a).relu()).sum(-1)


@fault("distance", "expected distances of at least 0")
class Negative(Shift):
    def distance(self, a, b):
        return -super().distance(a, b)


@fault("distance", "0 from a point to itself")
class NeverThere(Shift):
    def distance(self, a, b):
        return super().distance(a, b) + 1


@fault("distance", "distances(a, b, relations) equal to distance of all pairs")
class Squared(Shift):
    def distances(self, a, b, relations):
        return super().distances(a, b, relations) ** 2


@fault("round_trip", "the same scores from a file; found a difference")
class LosesItsNorm(TransE):
    def to_libkge(self):
        return Backbone.to_libkge(self)


@fault("round_trip", "the same scores from a file, with another scale; found a difference")
@dataclass(frozen=True, eq=False, kw_only=True)
class LosesItsScale(Product):
    libkge_models = ("Product",)
    scale: float = 1.0

    def forward(self, heads, relations):
        return self.scale * super().forward(heads, relations)

    def to_libkge(self):
        return super().to_libkge()


@fault("round_trip", "the same scores from a file, with another scale; found a difference")
@dataclass(frozen=True, eq=False, kw_only=True)
class ResetsItsScale(Product):
    scale: float = 1.0

    def forward(self, heads, relations):
        return self.scale * super().forward(heads, relations)

    @classmethod
    def from_tensors(cls, entities, relations, *, scale=1.0, **fields):
        return super().from_tensors(entities, relations, **fields)


@fault("round_trip", "sizes of KeepsAList is a list; only tensors, numbers and strings")
@dataclass(frozen=True, eq=False, kw_only=True)
class KeepsAList(Product):
    sizes: list = field(default_factory=list)


@fault("memory", "is a matrix copied for each row?")
class MatrixForEachRow(Rescal):
    def forward(self, heads, relations):
        matrices = self.relations[relations].unflatten(1, (self.dim, self.dim))
        return (heads[:, None] @ matrices)[:, 0]


@fault("gradient", "found none: f leaves autograd")
class Detached(Product):
    def forward(self, heads, relations):
        return super().forward(heads.detach(), relations)


@fault("gradient", "the gradient of f by h")
class WrongGradient(Product):
    def forward(self, heads, relations):
        return super().forward(heads + (heads**2).detach(), relations)


@fault("trainable", "expected a gradient for relations; found none: scores do not depend on")
@dataclass(frozen=True, eq=False, kw_only=True)
class WorkedOutAhead(Product):
    doubled: torch.Tensor | None = None

    def __post_init__(self):
        if self.doubled is None:
            object.__setattr__(self, "doubled", 2 * self.relations)
        super().__post_init__()

    def forward(self, heads, relations):
        return heads * self.doubled[relations]


@fault("moves", "every tensor in a field of the dataclass")
class Hides(Product):
    def __post_init__(self):
        super().__post_init__()
        object.__setattr__(self, "_ones", torch.ones(3))


@fault("inverse", "φ from f(t, r⁻¹); found a difference of")
class ProjectsTheTailOnly(Shift):
    def project(self, tails, relations):
        return tails * self.relations[relations].sign()


@fault("declaration", "inverse_formula if and only if invert is defined")
class SaysNothingOfItsInverse(Product):
    inverse_formula = None


@fault("learns", "a filtered MRR above 0.028 on geography, 10 × chance; found 0.00")
class LearnsNothing(Product):
    def forward(self, heads, relations):
        return (super().forward(heads, relations)).tanh() * 1e-9


@pytest.mark.parametrize(("model", "name", "words", "given"), FAULTS)
def test_a_planted_fault_is_found(model, name, words, given):
    outcome = BY_NAME[name].on(make_subject(model, **given))
    assert outcome.status == "failed", outcome
    assert words in f"expected {outcome.expected}; found {outcome.found}"
    assert outcome.where.startswith("CONTRIBUTING.md#the-contract, “")


@pytest.mark.parametrize("model", [Product, Shift])
def test_what_faults_are_planted_in_is_sound(model):
    found = [check.on(make_subject(model)) for check in QUICK]
    assert [str(outcome) for outcome in found if outcome.status == "failed"] == []


def test_the_contract_has_the_words_that_failures_refer_to():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    contract = text.split("\n### The contract\n")[1].split("\n### ")[0]
    assert [check.name for check in CHECKS if check.rule not in contract] == []


def test_every_check_says_what_it_shows_and_the_guide_names_it():
    text = (ROOT / "CONTRIBUTING.md").read_text().split("\n### Check it\n")[1].split("\n### ")[0]
    assert len(BY_NAME) == len(CHECKS)
    for check in CHECKS:
        assert check.shows
        assert f"`{check.name}`" in text, check.name


# How it is used ---------------------------------------------------------------------------------


class Broken(Product):
    def forward(self, heads, relations):
        raise KeyError("nothing works")


def test_a_model_that_libkge_lacks_is_written_as_safetensors():
    outcome = BY_NAME["round_trip"].on(make_subject(Product))
    assert (outcome.status, outcome.detail) == ("passed", "as .safetensors, plain and reciprocal")
    outcome = BY_NAME["round_trip"].on(make_subject(DistMult))
    assert outcome.detail == "as LibKGE's DistMult, plain and reciprocal"


def test_what_a_plugin_raises_is_a_finding_with_its_origin():
    found = {check.name: check.on(make_subject(Broken)) for check in QUICK}
    assert found["declaration"].status == "passed"
    assert found["batch"].status == "failed"
    assert "KeyError: 'nothing works' (test_kit.py, line " in found["batch"].found
    assert isinstance(found["batch"].cause, KeyError)


def test_a_backbone_is_checked_from_python(monkeypatch):
    monkeypatch.setattr("lmpnn_kge.testing.CHECKS", (BY_NAME["shapes"], BY_NAME["phi"]))
    assert [outcome.status for outcome in check_backbone(Product)] == ["passed", "skipped"]
    phi = PHI["distmult"]
    assert [outcome.status for outcome in check_backbone("distmult", phi=phi)] == ["passed"] * 2


def test_a_test_class_has_a_test_for_each_check():
    class TestProduct(BackboneTests):
        backbone = Product

        def phi(self, model, h, r, t):
            return (h * r * t).sum()

    tests = {name for name in dir(TestProduct) if name.startswith("test_")}
    assert tests == {f"test_{check.name}" for check in CHECKS}
    TestProduct().test_phi()


def test_pytest_passes_skips_and_fails_and_shows_what_was_found(tmp_path):
    (tmp_path / "test_it.py").write_text(
        "from lmpnn_kge.testing import BackboneTests\n"
        "class TestIt(BackboneTests):\n"
        "    backbone = 'distmult'\n"
        "class TestPhi(BackboneTests):\n"
        "    backbone = 'distmult'\n"
        "    def phi(self, model, h, r, t):\n"
        "        return -(h * r * t).sum()\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rs", tmp_path,
         "-k", "test_shapes or test_phi"],
        capture_output=True, text=True, cwd=tmp_path,
    )  # fmt: skip
    assert "1 failed, 2 passed, 1 skipped" in done.stdout, done.stdout + done.stderr
    assert "from f: it has the opposite sign" in done.stdout
    assert "written:  CONTRIBUTING.md#the-contract" in done.stdout
    assert "no formula to compare with" in done.stdout


def test_the_kit_does_not_need_pytest():
    code = "import sys, lmpnn_kge.testing; assert 'pytest' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def run(*arguments, code=0):
    result = CliRunner().invoke(main, ["backbones", *map(str, arguments)])
    assert result.exit_code == code, result.output
    return result


@pytest.fixture
def few(monkeypatch):
    """Only some of the checks, for what only passes them on."""
    some = tuple(BY_NAME[name] for name in ("shapes", "score_type", "phi", "checkpoint"))
    monkeypatch.setattr("lmpnn_kge.testing.CHECKS", some)


def test_the_command_has_a_line_for_each_check(few):
    file = TOY / "checkpoints" / "rotate.package.pt"
    lines = run("check", "rotate", "--checkpoint", file, "--dataset", TOY / "dataset")
    signs = [line.split()[:2] for line in lines.stdout.splitlines()]
    assert signs[:4] == [["✓", "shapes"], ["✓", "score_type"], ["–", "phi"], ["✓", "checkpoint"]]
    assert "recorded 0.1292" in lines.stdout
    assert lines.stdout.endswith("rotate: 3 passed, 1 skipped\n")


def test_the_command_exits_with_1_and_the_reasons(few, monkeypatch):
    monkeypatch.setattr("lmpnn_kge.testing.backbone_class", lambda name: ShiftAsProduct)
    text = run("check", "shift", code=1).stdout
    assert "✗ score_type" in text
    assert "    found     INNER_PRODUCT, with a difference of" in text
    assert "    written   CONTRIBUTING.md#the-contract, “score_type”" in text
    assert text.endswith("shift: 1 passed, 2 skipped, 1 failed: score_type\n")
    content = json.loads(run("check", "shift", "--json", code=1).stdout)
    assert not content["passed"]
    assert content["checks"][1]["status"] == "failed"
    assert content["checks"][1]["where"] == "CONTRIBUTING.md#the-contract, “score_type”"
    assert content["checks"][2]["detail"].startswith("no formula")


def test_a_checkpoint_of_another_model_is_a_finding(few):
    file = TOY / "checkpoints" / "rotate.package.pt"
    text = run("check", "transe", "--checkpoint", file, code=1).stdout
    assert "expected  a checkpoint of TransE" in text
    assert "found     one of RotatE" in text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["check", "rotat"], "did you mean 'rotate'?"),
        (["check", "rotate", "--checkpoint", "nowhere.pt"], "nowhere.pt"),
        (["check", "rotate", "--dataset", "nowhere"], "nowhere is neither a folder nor a file"),
        (["--json", "check", "rotate"], "write --json after check"),
    ],
)
def test_mistakes_are_not_findings(arguments, words):
    assert words in run(*arguments, code=2).stderr
