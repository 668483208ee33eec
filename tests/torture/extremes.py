"""What is valid but extreme: settings, numbers of an embedding, and graphs of hardly any edges."""

import dataclasses
import json
import re
import shutil
import warnings
from pathlib import Path
from random import Random
from typing import Any, Literal, get_args, get_origin, get_type_hints

from lmpnn_kge.settings.kinds import KINDS

from ..conftest import TOY
from .campaign import Campaign, Outcome, Steps, Wrong, output
from .damage import TINY, sample_few
from .kills import DATASET, QUESTION, ROTATE, SMALL

#: Settings that say how long a user wants to wait.
LONGER = ("epochs", "steps")

WHOLE = (-1, 0, 1, 2, 3, 7, 64, 1000, 100_003, 2**24, 2**31 - 1)
REAL = (-1e300, -1.0, -0.0, 0.0, 1e-320, 1e-45, 1e-30, 1e-8, 0.5, 0.999999999, 1.0, 3.0, 1e4, 1e20,
        3.5e38, 1e300)  # fmt: skip

NUMBERS = (-3.4e38, -1e20, -1.0, -0.0, 0.0, 1e-45, 1e-30, 1.0, 1e4, 1e20, 3.4e38)
NOT_FINITE = (float("nan"), float("inf"), float("-inf"))
BACKBONES = ("complex", "conve-reciprocal", "distmult", "rescal", "rotate", "transe")

#: Numbers that no result may have.
NO_NUMBER = re.compile(r"(?<![\w/.-])-?(nan|inf|infinity)(?![\w/.])", re.IGNORECASE)


def checked(job: list[Any]) -> Outcome:
    """Run a command; Wrong if it warns of its numbers, or prints some that are none."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        outcome, printed = output(*job, scarce=True)
    if outcome is Outcome.ACCEPTED and (found := NO_NUMBER.search(printed)):
        raise Wrong(f"{job[:3]} prints {found[0]}: {printed[:1000]}")
    return outcome


def check_all(jobs: list[list[Any]]) -> Outcome:
    """Run commands one after the other, also if one that they need has been refused."""
    outcomes = {checked(job) for job in jobs}
    return Outcome.REFUSED if Outcome.REFUSED in outcomes else Outcome.ACCEPTED


class ExtremeSettings(Campaign):
    """A training or an evaluation with settings that nobody has."""

    name = "settings"
    seconds = 120
    memory = 4 << 30
    weight = 2

    def prepare(self, inputs: Path) -> None:
        sample_few(DATASET, inputs / "queries")

    def draw(self, number: int, random: Random, inputs: Path) -> Steps:
        kind = random.choice(list(KINDS))
        hints = get_type_hints(KINDS[kind])
        names = [field.name for field in dataclasses.fields(KINDS[kind])]
        steps: Steps = [["kind", kind]]
        for name in random.sample(names, random.choice((1, 1, 2, 3, 5))):
            steps.append(["set", name, extreme(random, name, hints[name])])
        return steps

    def run(self, steps: Steps, inputs: Path, scratch: Path) -> Outcome:
        kind = next((step[1] for step in steps if step[0] == "kind"), "train")
        shutil.copy(ROTATE, "rotate.pt")  # beside which its fits are kept
        data = ["--dataset", DATASET]
        queries = ["--checkpoint", "rotate.pt", *data, "--queries", inputs / "queries"]
        ranked = [*queries, "--limit", "2", "--json"]
        job: list[Any] = {
            "train": ["train", *queries, "--out", "out", *TINY],
            "pretrain": ["pretrain", "--backbone", "complex", *data, "-o", "x.pt", *SMALL],
            "cqd": ["evaluate", "--method", "cqd-co", *ranked, "--set", "steps=2"],
            "search": ["evaluate", "--method", "search", *ranked],
        }[kind]
        for step in steps:
            if step[0] == "set":
                job += ["--set", f"{step[1]}={json.dumps(step[2])}"]
        return checked(job)


def extreme(random: Random, name: str, kind: Any) -> Any:
    """A value of the type of a setting."""
    if type(None) in get_args(kind):
        kind = next(part for part in get_args(kind) if part is not type(None))
    if get_origin(kind) is Literal:
        return random.choice(get_args(kind))
    if kind is bool:
        return False if name == "compile" else random.random() < 0.5
    if kind is int:
        return random.choice(WHOLE[:5] if name in LONGER else WHOLE)
    return random.choice(REAL)


class ExtremeNumbers(Campaign):
    """An embedding some of whose numbers are zero, tiny, huge, equal or none."""

    name = "numbers"
    seconds = 120
    memory = 4 << 30
    weight = 2

    def prepare(self, inputs: Path) -> None:
        from lmpnn_kge import save_backbone

        sample_few(DATASET, inputs / "queries")
        for name in BACKBONES:
            file = TOY / "checkpoints" / f"{name}.package.pt"
            save_backbone(file, inputs / f"{name}.safetensors")

    def draw(self, number: int, random: Random, inputs: Path) -> Steps:
        steps: Steps = [["base", random.choice(BACKBONES)], ["job", random.random()]]
        if random.random() < 0.2:
            steps.append(["type", random.choice(("float16", "bfloat16", "float64"))])
        for _ in range(random.choice((1, 1, 1, 2, 4))):
            span = random.choice(("all", "row", "column", "number"))
            value = random.choice(NUMBERS if random.random() < 0.9 else NOT_FINITE)
            steps.append(["fill", random.random(), span, random.random(), value])
        return steps

    def run(self, steps: Steps, inputs: Path, scratch: Path) -> Outcome:
        base = next((step[1] for step in steps if step[0] == "base"), "rotate")
        write_edited(inputs / f"{base}.safetensors", Path("file.safetensors"), steps)
        share = next((step[1] for step in steps if step[0] == "job"), 0)
        data = ["--checkpoint", "file.safetensors", "--dataset", DATASET]
        queries = [*data, "--queries", inputs / "queries"]
        ranked = [*queries, "--limit", "2", "--json"]
        train = ["train", *queries, "--out", "run", *TINY]
        ways: list[list[list[Any]]] = [
            [["inspect", "file.safetensors", "--dataset", DATASET, "--json"]],
            [["evaluate", "--method", "search", *ranked]],
            [["evaluate", "--method", "cqd-beam", *ranked]],
            [["evaluate", "--method", "cqd-co", *ranked, "--set", "steps=2"]],
            [["predict", *data, "--limit", "3"]],
            [train, ["ask", "run", QUESTION, "--explain", "--count", "--json"]],
            [train, ["evaluate", "run", "--method", "hybrid", "--limit", "2", "--json"]],
            [train, ["ask", "run", QUESTION, "--method", "lmpnn", "--json"]],
        ]
        return check_all(ways[int(share * len(ways))])


def write_edited(source: Path, file: Path, steps: Steps) -> None:
    """Copy a file of safetensors with some of its numbers replaced."""
    import torch
    from safetensors import safe_open
    from safetensors.torch import save_file

    with safe_open(source, "pt") as opened:
        tensors = {name: opened.get_tensor(name) for name in sorted(opened.keys())}
        metadata = opened.metadata()
    for kind, *what in steps:
        if kind == "fill":
            share, span, place, value = what
            tensor = list(tensors.values())[int(share * len(tensors))]
            rows = tensor.view(len(tensor), -1) if tensor.dim() else tensor.view(1, 1)
            at = int(place * rows.numel())
            row, column = divmod(at, rows.shape[1])
            match span:
                case "all":
                    rows.fill_(value)
                case "row":
                    rows[row] = value
                case "column":
                    rows[:, column] = value
                case "number":
                    rows[row, column] = value
    for number_type in [what for kind, what, *_ in steps if kind == "type"]:
        tensors = {name: t.to(getattr(torch, number_type)) for name, t in tensors.items()}
    save_file(tensors, file, metadata)


class ExtremeGraphs(Campaign):
    """A graph of a few edges, one step for each, from which everything else is made."""

    name = "graphs"
    seconds = 180
    memory = 6 << 30
    weight = 2

    def draw(self, number: int, random: Random, inputs: Path) -> Steps:
        names, relations = random.choice((1, 2, 3, 5)), random.choice((1, 1, 2, 4))
        steps: Steps = [["backbone", random.choice(("distmult", "rotate", "complex", "transe"))]]
        for split, most in (("train", 12), ("valid", 4), ("test", 4)):
            for _ in range(random.choice((0, 1, most // 2, most))):
                head, tail = (f"e{random.randrange(names)}" for _ in range(2))
                steps.append([split, head, f"r{random.randrange(relations)}", tail])
        return steps

    def run(self, steps: Steps, inputs: Path, scratch: Path) -> Outcome:
        Path("graph").mkdir()
        for split in ("train", "valid", "test"):
            lines = ["\t".join(step[1:]) + "\n" for step in steps if step[0] == split]
            Path("graph", f"{split}.txt").write_text("".join(lines))
        backbone = next((step[1] for step in steps if step[0] == "backbone"), "distmult")
        question = next(("r0(e0, ?)" for step in steps if step[1:3] == ["e0", "r0"]), "r0(?x, ?)")
        data = ["--dataset", "graph"]
        queries = ["--checkpoint", "x.pt", *data, "--queries", "queries"]
        return check_all([
            ["graph", "graph", "--json"],
            ["answer", question, *data],
            ["pretrain", "--backbone", backbone, *data, "-o", "x.pt", *SMALL],
            ["predict", "--checkpoint", "x.pt", *data, "--limit", "3"],
            ["sample", *data, "-o", "queries", "--types", "1p,2p,2i,2in,pni,2u", "--count", "2",
             "--timeout", "20"],
            ["train", *queries, "--out", "run", *TINY],
            ["evaluate", "run", "--json"],
            ["evaluate", "run", "--method", "hybrid", "--json"],
            ["ask", "run", question, "--explain", "--count", "--json"],
            ["report", "run", "-o", "report"],
        ])  # fmt: skip
