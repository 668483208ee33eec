"""The conformance kit: checks that a backbone keeps the contract.

In a plugin's tests, a subclass of BackboneTests makes pytest run every check as a test:

    from lmpnn_kge.testing import BackboneTests
    from lmpnn_kge_shift import Shift

    class TestShift(BackboneTests):
        backbone = Shift

        def phi(self, model, h, r, t):  # your paper's score of one triple, written naively
            return -(h + r - t).norm()

Without pytest, call `check_backbone("shift")` or run `lmpnn-kge backbones check shift`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar
from unittest import SkipTest

from lmpnn_kge.backbones.contract import Backbone
from lmpnn_kge.backbones.discovery import backbone_class, backbone_name
from lmpnn_kge.backbones.open import read_checkpoint
from lmpnn_kge.errors import PluginError
from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph
from lmpnn_kge.runs.inputs import find_dataset
from lmpnn_kge.testing.cost import memory, speed
from lmpnn_kge.testing.files import checkpoint, round_trip
from lmpnn_kge.testing.forward import (
    batch,
    determinism,
    devices,
    dtypes,
    frozen,
    gradient,
    moves,
    shapes,
    trainable,
    widths,
)
from lmpnn_kge.testing.learning import learns
from lmpnn_kge.testing.outcome import CONTRACT, Check, Outcome, Phi, Subject
from lmpnn_kge.testing.scores import (
    declaration,
    distance,
    inverse,
    involution,
    messages,
    phi,
    score_type,
)

__all__ = [
    "CHECKS",
    "CONTRACT",
    "BackboneTests",
    "Check",
    "Outcome",
    "Phi",
    "Subject",
    "check_backbone",
    "make_subject",
]

#: All checks, simple ones first.
CHECKS: tuple[Check, ...] = (
    declaration, widths, shapes, dtypes, devices, moves, batch, determinism, frozen, gradient,
    trainable, messages, inverse, involution, score_type, distance, phi, round_trip, checkpoint,
    learns, speed, memory,
)  # fmt: skip


def check_backbone(
    backbone: type[Backbone] | str,
    checkpoint: str | Path | None = None,
    *,
    dataset: str | Path | None = None,
    phi: Phi | None = None,
) -> list[Outcome]:
    """Run all checks on a backbone, given as a class or by its installed name.

    checkpoint is a file that the backbone should open. dataset is the folder of the checkpoint's
    graph; by default it is searched for as `train` does. phi is the score of one triple by the
    author's own formula.
    """
    subject = make_subject(backbone, checkpoint, dataset, phi)
    return [check.on(subject) for check in CHECKS]


def make_subject(
    backbone: type[Backbone] | str,
    checkpoint: str | Path | None = None,
    dataset: str | Path | None = None,
    phi: Phi | None = None,
) -> Subject:
    """Collect what the checks need; LmpnnError if the backbone, file or folder does not exist."""
    model = backbone_class(backbone) if isinstance(backbone, str) else backbone
    file = None if checkpoint is None else read_checkpoint(checkpoint)
    folder = None if dataset is None else KnowledgeGraph.open(dataset).folder
    if file is not None and folder is None:
        folder = find_dataset(file.dataset, file.path)
    return Subject(model, file, folder, phi, "" if file is None else _installed_name(model))


def _installed_name(model: type[Backbone]) -> str:
    try:
        return backbone_name(model)
    except PluginError:  # the class is tested before it is installed
        return ""


class BackboneTests:
    """One pytest test per check; a subclass names the backbone."""

    #: The backbone class, or the name under which it is installed.
    backbone: ClassVar[type[Backbone] | str]
    #: A checkpoint that the backbone should open, and its dataset folder if `train` cannot find it.
    checkpoint: ClassVar[str | Path | None] = None
    dataset: ClassVar[str | Path | None] = None
    #: def phi(self, model, h, r, t): the score of one triple by your own formula, as a number.
    #: h and t are rows of the entity table, r is a row of the relation table, and model is the
    #: backbone with its own fields.
    phi: Any = None


def _test(check: Check) -> Callable[[BackboneTests], None]:
    def test(self: BackboneTests) -> None:
        __tracebackhide__ = True  # pytest then shows the finding only
        given = (self.backbone, self.checkpoint, self.dataset, self.phi)
        outcome = check.on(make_subject(*given))
        if outcome.status == "skipped":
            raise SkipTest(outcome.detail)
        if outcome.status == "failed":
            raise AssertionError(str(outcome)) from outcome.cause

    test.__name__, test.__doc__ = f"test_{check.name}", check.shows
    return test


for _check in CHECKS:
    setattr(BackboneTests, f"test_{_check.name}", _test(_check))
