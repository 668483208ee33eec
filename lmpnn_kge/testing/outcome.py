"""What a check is given, and what comes of it."""

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

#: Where the rules are written that the checks are about.
CONTRACT = "CONTRIBUTING.md#the-contract"

#: φ of one triple as an author would write it: (backbone, h [d], r [w], t [d]) -> a number.
Phi = Callable[[Backbone, Tensor, Tensor, Tensor], Any]


@dataclass(frozen=True, eq=False)
class Subject:
    """A backbone to check, and what else its author has to check it with."""

    kind: type[Backbone]
    checkpoint: Checkpoint | None = None
    dataset: Path | None = None  # of the checkpoint
    phi: Phi | None = None
    name: str = ""  # under which it is installed, if it is

    @property
    def has_inverse(self) -> bool:
        width = self.kind.entity_width(8)
        rows = torch.zeros(1, self.kind.relation_width(width) or width)
        return self.kind.invert(rows) is not None

    @property
    def forms(self) -> list[bool]:
        """What `reciprocal` can be: with inverses that are derived, if it has any, and trained."""
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
        """A random one of about this width; plain where the model allows it."""
        if reciprocal is None:
            reciprocal = self.forms[0]
        made = self.kind.random(
            entities, relations, self.kind.entity_width(width), reciprocal=reciprocal, **fields
        )
        return made if dtype is None else made.to(dtype=dtype)


class Unmet(AssertionError):
    """Something else came than what the contract promises."""

    def __init__(self, expected: str, found: str):
        super().__init__(f"expected {expected}; found {found}")
        self.expected, self.found = expected, found


class Skipped(Exception):
    """There is nothing to check, and why."""


def demand(holds: bool, expected: str, found: str) -> None:
    if not holds:
        raise Unmet(expected, found)


def demand_same(found: Tensor, wanted: Tensor, expected: str, tolerance: float = 1e-8) -> None:
    """Unmet where two tensors differ by more than a share of the largest number in them."""
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
    """What came of one check."""

    name: str
    shows: str  # what it would show
    status: Literal["passed", "failed", "skipped"]
    detail: str = ""  # figures, or why it was skipped
    expected: str | None = None
    found: str | None = None
    where: str | None = None  # it is written
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
    """One question to a backbone; run returns the figures to tell, or raises Unmet or Skipped."""

    name: str
    shows: str
    rule: str  # words of the contract
    run: Callable[[Subject], str]

    def on(self, subject: Subject) -> Outcome:
        """Whatever a plugin raises is a finding, and stops no other check."""
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
            expected, found, cause = f"{self.shows}, and no error on the way", told(error), error
        known = cause if isinstance(cause, Exception) else None
        return Outcome(
            self.name, self.shows, "failed", "", expected, found, where=where, cause=known
        )


def check(rule: str) -> Callable[[Callable[[Subject], str]], Check]:
    """Make a check of a function: its name, its docstring and the rule that it is about."""

    def made(run: Callable[[Subject], str]) -> Check:
        shows = " ".join((inspect.getdoc(run) or "").split()).removesuffix(".")
        return Check(run.__name__, shows, rule, run)

    return made


def told(error: Exception) -> str:
    """An error in a line, with the place where it was raised."""
    message = short(" ".join(str(error).split()), 300)
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {message}{place}"
