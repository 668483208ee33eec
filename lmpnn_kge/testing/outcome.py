"""The subject of a check, and its outcome."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from lmpnn_kge.backbones.checkpoint import Checkpoint
from lmpnn_kge.backbones.contract import Backbone
from lmpnn_kge.errors import short

#: The text that has the rules of the checks.
CONTRACT = "CONTRIBUTING.md#the-contract"

#: φ of one triple by the author's formula: (backbone, h [d], r [w], t [d]) -> a number.
Phi = Callable[[Backbone, Tensor, Tensor, Tensor], Any]


@dataclass(frozen=True, eq=False)
class Subject:
    """A backbone to check, with an optional checkpoint and formula of its author."""

    backbone: type[Backbone]
    checkpoint: Checkpoint | None = None
    dataset: Path | None = None  # of the checkpoint
    phi: Phi | None = None
    name: str = ""  # under which it is installed, or empty

    @property
    def has_inverse(self) -> bool:
        width = self.backbone.entity_width(8)
        rows = torch.zeros(1, self.backbone.relation_width(width) or width)
        return self.backbone.invert(rows) is not None

    @property
    def forms(self) -> list[bool]:
        """Possible values of `reciprocal`: plain models need an analytic inverse."""
        return [False, True] if self.has_inverse else [True]

    def make(
        self,
        width: int = 8,
        *,
        entities: int = 11,
        relations: int = 4,
        reciprocal: bool | None = None,
        dtype: torch.dtype | None = None,
        **fields: Any,
    ) -> Backbone:
        """Make a random backbone of about this width; plain if the model allows it."""
        if reciprocal is None:
            reciprocal = self.forms[0]
        dim = self.backbone.entity_width(width)
        made = self.backbone.random(entities, relations, dim, reciprocal=reciprocal, **fields)
        return made if dtype is None else made.to(dtype=dtype)


class Unmet(AssertionError):
    """The contract promises one thing, and the backbone does another."""

    def __init__(self, expected: str, found: str):
        super().__init__(f"expected {expected}; found {found}")
        self.expected, self.found = expected, found


class Skipped(Exception):
    """The check does not apply; the message says why."""


def demand(holds: bool, expected: str, found: str) -> None:
    if not holds:
        raise Unmet(expected, found)


def demand_same(found: Tensor, wanted: Tensor, expected: str, tolerance: float = 1e-8) -> None:
    """Raise Unmet if tensors differ by more than tolerance, relative to their largest number."""
    if found.shape != wanted.shape:
        raise Unmet(expected, f"shapes {list(found.shape)} and {list(wanted.shape)}")
    if not found.numel():
        return
    gap = (found - wanted).abs().max().item()
    scale = max(1.0, wanted.abs().max().item())
    if not gap <= tolerance * scale:
        raise Unmet(expected, f"a difference of {gap:.2g} where numbers reach {scale:.2g}")


@dataclass(frozen=True)
class Outcome:
    """The result of one check."""

    name: str
    shows: str  # the claim that was checked
    status: Literal["passed", "failed", "skipped"]
    detail: str = ""  # figures if it passed, the reason if it was skipped
    expected: str | None = None
    found: str | None = None
    where: str | None = None  # the rule is written
    cause: Exception | None = None

    def __str__(self) -> str:
        if self.status != "failed":
            return f"{self.name} {self.status}: {self.detail}"
        return (
            f"{self.name}\n  expected: {self.expected}\n  found:    {self.found}\n"
            f"  written:  {self.where}"
        )


@dataclass(frozen=True)
class Check:
    """A claim about a backbone; run returns figures to show, or raises Unmet or Skipped."""

    name: str
    shows: str  # the claim
    rule: str  # a phrase of the contract
    run: Callable[[Subject], str]

    def on(self, subject: Subject) -> Outcome:
        """Run the check; any exception of the plugin becomes a finding."""
        where = f"{CONTRACT}, “{self.rule}”"
        try:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(0)
                return Outcome(self.name, self.shows, "passed", self.run(subject))
        except Skipped as skipped:
            return Outcome(self.name, self.shows, "skipped", str(skipped))
        except Unmet as unmet:
            expected, found, cause = unmet.expected, unmet.found, unmet.__cause__
        except Exception as error:
            expected, found = f"{self.shows}, without an error", error_line(error)
            cause = error
        known = cause if isinstance(cause, Exception) else None
        return Outcome(
            self.name, self.shows, "failed", "", expected, found, where=where, cause=known
        )


def check(rule: str) -> Callable[[Callable[[Subject], str]], Check]:
    """Decorator that makes a check from a function, with its name, docstring and a rule."""

    def decorate(run: Callable[[Subject], str]) -> Check:
        shows = " ".join((inspect.getdoc(run) or "").split()).removesuffix(".")
        return Check(run.__name__, shows, rule, run)

    return decorate


def error_line(error: Exception) -> str:
    """Describe an error in one line, with the file and line that raised it."""
    message = short(" ".join(str(error).split()), 300)
    frames = traceback.extract_tb(error.__traceback__)
    origin = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {message}{origin}"
