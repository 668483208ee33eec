"""Damaged folders: stores, runs, datasets and those of BetaE; and files of safetensors.

A case edits some files of a sound folder: their bytes, or, in JSON and YAML, single values, with or
without a forged checksum. Then a command that uses the folder runs. What is refused must be refused
in one line; what is accepted must print the same as on the sound folder, unless a checksum was
forged.
"""

import json
import os
import pickle
import shutil
import zlib
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

from lmpnn_kge.files.checked import CHECKSUM, yaml_with_checksum

from ..conftest import TOY
from ..edited import signed
from .campaign import Campaign, Outcome, Steps, Wrong, command, output
from .edits import apply_edit, draw_edit
from .pickles import apply_pickle_edit, draw_pickle_edit, operations

#: Values that a file should not have in place of its own.
ODD: tuple[Any, ...] = (
    None, True, 0, -1, 2**63, 1e308, "", "x", "../../../etc/passwd", "/proc/self/mem", "a" * 5000,
    [], [1, 2], [[]], {}, {"x": 1}, "\x1b[2J", "\ud800", "0x" + "f" * 5000, {"type": {}}, "\x00",
    "*a", "!!python/object:os.system", [None], "nan", -0.5, "~", "~nobody/x", ".", "..",
)  # fmt: skip


#: One of so many checkpoints that can be inspected is also used.
USED = 8

#: Bytes of a file that takes hardly any room on the disk.
HOLE = 1 << 40

#: What can be in the place of a file, besides a folder.
NO_FILES = ("pipe", "loop", "endless", "hole")


class Folder(Campaign):
    """Cases that damage a folder; `base` makes it and `commands` uses it."""

    memory = 2 << 30
    seconds = 60
    #: The numbers of the commands that print the same unless they notice the damage.
    compared: tuple[int, ...] = ()

    def __init__(self) -> None:
        self._sound: dict[int, str] = {}

    def commands(self, folder: Path, inputs: Path) -> Sequence[Sequence[str | Path]]:
        """Commands to run on a damaged folder."""
        raise NotImplementedError

    def sound(self, number: int, inputs: Path) -> str:
        """What a command prints for the sound folder."""
        if number not in self._sound:
            self._sound[number] = output(*self.commands(sound_copy(inputs), inputs)[number])[1]
        return self._sound[number]

    def draw(self, number: int, random: Random, inputs: Path) -> Steps:
        return [["command", random.random()], *draw_damage(random, inputs / "base")]

    def run(self, steps: Steps, inputs: Path, scratch: Path) -> Outcome:
        folder = scratch / "base"
        shutil.copytree(inputs / "base", folder)
        for step in steps:
            if step[0] != "command":
                damage(folder, step)
        share = next((step[1] for step in steps if step[0] == "command"), 0)
        commands = self.commands(folder, inputs)
        number = int(share * len(commands))
        outcome, printed = output(*commands[number])
        if outcome is Outcome.ACCEPTED and number in self.compared:
            sound = self.sound(number, inputs).replace(str(sound_copy(inputs)), str(folder))
            if printed != sound and all(is_noticed(step) or is_lost(step) for step in steps):
                raise Wrong(f"{commands[number]} printed {printed!r} and not {sound!r}")
        return outcome


def sound_copy(inputs: Path) -> Path:
    """A copy of the sound folder that is as deep as a damaged one, for relative paths."""
    copy = inputs.parent / f"sound-{os.getpid()}" / "base"
    if not copy.exists():
        shutil.copytree(inputs / "base", copy)
    return copy


def is_noticed(step: list[Any]) -> bool:
    """Whether an edit is one that a checksum shows."""
    return step[0] in ("command", "bytes") or (step[0] == "value" and not step[-1])


def is_lost(step: list[Any]) -> bool:
    """Whether an edit leaves nothing of a file."""
    return step[0] in ("remove", "empty", "folder", *NO_FILES)


def draw_damage(random: Random, folder: Path) -> Steps:
    """Edits of some files of a folder."""
    files = sorted(str(f.relative_to(folder)) for f in folder.rglob("*") if f.is_file())
    steps: Steps = []
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        file = random.choice(files)
        kinds = ["bytes", "bytes", "remove", "swap", "folder", "empty", random.choice(NO_FILES)]
        if file.endswith((".json", ".jsonl", ".yaml")):
            kinds += ["value"] * 8
        if file.endswith(".pkl"):
            kinds += ["pickle"] * 10
        match random.choice(kinds):
            case "bytes":
                steps.append(["bytes", file, *draw_edit(random)])
            case "value":
                odd, forged = random.randrange(len(ODD)), random.random() < 0.6
                steps.append(["value", file, random.random(), odd, random.random() < 0.2, forged])
            case "pickle":
                steps.append(["pickle", file, *draw_pickle_edit(random)])
            case "swap":
                steps.append(["swap", file, random.choice(files)])
            case other:
                steps.append([other, file])
    return steps


def damage(folder: Path, step: list[Any]) -> None:
    """Apply one edit to a folder."""
    file = folder / step[1]
    if not is_readable(file):
        return
    match step[0]:
        case "bytes":
            file.write_bytes(apply_edit(file.read_bytes(), step[2:]))
        case "pickle":
            parts = apply_pickle_edit(operations(file.read_bytes()), step[2:])
            file.write_bytes(b"".join(parts))
        case "value":
            change_value(file, *step[2:])
        case "swap" if is_readable(folder / step[2]):
            other = (folder / step[2]).read_bytes()
            file.write_bytes(other)
        case "remove":
            file.unlink()
        case "folder":
            file.unlink()
            file.mkdir()
        case "empty":
            file.write_bytes(b"")
        case "pipe":
            file.unlink()
            os.mkfifo(file)
        case "loop":
            file.unlink()
            file.symlink_to(file)
        case "endless":
            file.unlink()
            file.symlink_to("/dev/zero")
        case "hole":
            os.truncate(file, HOLE)


def is_readable(file: Path) -> bool:
    """Whether a file has not become something that this process cannot read either."""
    return file.is_file() and file.stat().st_size < HOLE


def change_value(file: Path, share: float, odd: int, drop: bool, forged: bool = False) -> None:
    """Replace or drop one value of a JSON or YAML file, at any depth.

    The checksum is no value. It may be forged, so that it fits what the file holds then.
    """
    import yaml

    try:
        text = file.read_text()
        if file.suffix == ".yaml":
            content = yaml.safe_load(text)
        elif file.suffix == ".jsonl":
            content = [json.loads(line) for line in text.splitlines()]
        else:
            content = json.loads(text)
    except (OSError, ValueError, yaml.YAMLError):
        return  # an earlier step has damaged it
    places: list[tuple[Any, Any]] = []

    def collect(value: Any) -> None:
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in [item for item in items if item[0] != CHECKSUM][:50]:
            places.append((value, key))
            if isinstance(inner, dict | list):
                collect(inner)

    if not isinstance(content, dict | list) or not content:
        return
    collect(content)
    if not places:
        return
    parent, key = places[int(share * len(places))]
    if drop:
        del parent[key]
    else:
        parent[key] = ODD[odd]
    if file.suffix == ".yaml":
        changed, rest = yaml.safe_dump(content), text.partition(f"# {CHECKSUM}")
        file.write_text(yaml_with_checksum(changed) if forged else changed + "".join(rest[1:]))
    elif file.suffix == ".jsonl":
        lines = [forge(line) if forged else line for line in content]
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    else:
        file.write_text(json.dumps(forge(content) if forged else content))


def forge(content: Any) -> Any:
    """A mapping with a checksum that fits, if it has one."""
    return signed(content) if isinstance(content, dict) and CHECKSUM in content else content


def sample_few(dataset: Path, out: Path) -> None:
    command_ok("sample", "--dataset", dataset, "-o", out, "--types", "1p,2p,2i,2in,2u",
               "--count", "8")  # fmt: skip


def command_ok(*arguments: str | Path) -> None:
    if command(*arguments) is not Outcome.ACCEPTED:
        raise Wrong(f"{arguments} was refused")


TINY = [
    part
    for pair in ("hidden=8", "epochs=1", "batch_size=16", "negative_count=8", "warmup=2",
                 "validation_queries=4", "precision=fp32")
    for part in ("--set", pair)
]  # fmt: skip


class Stores(Folder):
    name = "stores"
    weight = 2
    compared = (0, 1)

    def prepare(self, inputs: Path) -> None:
        sample_few(TOY / "dataset", inputs / "base")

    def commands(self, folder: Path, inputs: Path) -> Sequence[Sequence[str | Path]]:
        return (
            ("queries", "show", folder),
            ("queries", "show", folder, "--type", "2p", "--split", "test"),
            ("queries", "verify", folder),
            ("queries", "export", folder, "-o", "out"),
        )

    def run(self, steps: Steps, inputs: Path, scratch: Path) -> Outcome:
        outcome = super().run(steps, inputs, scratch)
        arrays = [s for s in steps if s[0] != "command"]
        if outcome is Outcome.ACCEPTED and all(s[1].endswith(".npy") for s in arrays):
            self._compare(inputs, scratch)
        return outcome

    def _compare(self, inputs: Path, scratch: Path) -> None:
        """Arrays that pass `verify` must be those of the sound store."""
        import numpy as np

        if command("queries", "verify", scratch / "base") is Outcome.REFUSED:
            return
        for file in sorted((inputs / "base").rglob("*.npy")):
            damaged = scratch / "base" / file.relative_to(inputs / "base")
            if not np.array_equal(np.load(file), np.load(damaged)):
                raise Wrong(f"{file.name} was changed, and nobody noticed")


class Runs(Folder):
    """A run with all that it keeps: fits of its methods and their results."""

    name = "runs"
    weight = 2
    compared = (0, 1, 2, 3, 4, 5)

    def prepare(self, inputs: Path) -> None:
        sample_few(TOY / "dataset", inputs / "queries")
        command_ok(
            "train", "--checkpoint", TOY / "checkpoints" / "rotate.package.pt",
            "--dataset", TOY / "dataset", "--queries", inputs / "queries",
            "--out", inputs / "base", *TINY,
        )  # fmt: skip
        for method in ("search", "hybrid"):
            command_ok("evaluate", inputs / "base", "--method", method)
        for number in self.compared:  # which keeps what they fit
            command_ok(*self.commands(inputs / "base", inputs)[number])

    def commands(self, folder: Path, inputs: Path) -> Sequence[Sequence[str | Path]]:
        checkpoint = ["--checkpoint", TOY / "checkpoints" / "rotate.package.pt"]
        moved = [*checkpoint, "--dataset", TOY / "dataset"]
        formula = 'friend_of("person/ada_voss", ?x) & friend_of(?x, ?)'
        queries = ["--queries", inputs / "queries"]
        return (
            ("evaluate", folder, *queries, *checkpoint, "--limit", "2", "--json"),
            ("ask", folder, formula, "--method", "lmpnn", *moved, "--json"),
            ("ask", folder, formula, *moved, "--explain", "--count", "--json"),
            ("ask", folder, formula, "--method", "search", *moved, "--json"),
            ("evaluate", folder, *queries, *moved, "--method", "hybrid", "--limit", "2", "--json"),
            ("predict", folder, *moved, "--limit", "5", "--format", "csv"),
            ("report", folder, "-o", "report"),
            ("train", "--resume", "--out", folder),
            ("evaluate", folder),
        )

    def run(self, steps: Steps, inputs: Path, scratch: Path) -> Outcome:
        outcome = super().run(steps, inputs, scratch)
        report = scratch / "report"
        if report.exists() and all(map(is_noticed, steps)):
            command_ok("report", sound_copy(inputs), "-o", scratch / "sound")
            for file in sorted((scratch / "sound").rglob("*.md")):
                if (report / file.name).read_bytes() != file.read_bytes():
                    raise Wrong(f"{file.name} differs")
        return outcome


class Betae(Folder):
    name = "betae"
    spawns = True  # a pickle is tried out in another process
    weight = 2

    def prepare(self, inputs: Path) -> None:
        sample_few(TOY / "dataset", inputs / "store")
        command_ok("queries", "export", inputs / "store", "-o", inputs / "base", "--dataset",
                   TOY / "dataset")  # fmt: skip
        for protocol, name in enumerate(("train", "valid", "test")):
            file = inputs / "base" / f"{name}-queries.pkl"
            content = pickle.loads(file.read_bytes())  # our own
            file.write_bytes(pickle.dumps(content, protocol + 2))

    def commands(self, folder: Path, inputs: Path) -> Sequence[Sequence[str | Path]]:
        return (
            ("queries", "import", folder, "-o", "out"),
            ("queries", "import", folder, "-o", "out"),
            ("answer", "--dataset", folder, "x(y, ?)"),
        )


class Datasets(Folder):
    name = "datasets"
    weight = 2

    def prepare(self, inputs: Path) -> None:
        shutil.copytree(TOY / "dataset", inputs / "base")

    def commands(self, folder: Path, inputs: Path) -> Sequence[Sequence[str | Path]]:
        checkpoint = TOY / "checkpoints" / "rotate.package.pt"
        return (
            ("answer", "--dataset", folder, "x(y, ?)"),
            ("inspect", checkpoint, "--dataset", folder),
            ("sample", "--dataset", folder, "-o", "out", "--types", "1p,2in", "--count", "2"),
            ("split", folder / "train.del", "-o", "out", "--no-header"),
        )


class Safetensors(Campaign):
    name = "safetensors"
    weight = 4

    def prepare(self, inputs: Path) -> None:
        from lmpnn_kge import save_backbone

        for name in ("rotate", "complex", "rescal"):
            save_backbone(
                TOY / "checkpoints" / f"{name}.package.pt", inputs / f"{name}.safetensors"
            )

    def draw(self, number: int, random: Random, inputs: Path) -> Steps:
        names = sorted(file.name for file in inputs.iterdir())
        steps: Steps = [["base", random.choice(names)]]
        for _ in range(random.choice((1, 1, 2, 5))):
            if random.random() < 0.6:
                odd = random.randrange(len(ODD))
                steps.append(["header", random.random(), odd, random.random() < 0.2])
            else:
                steps.append(["bytes", *draw_edit(random)])
        return steps

    def run(self, steps: Steps, inputs: Path, scratch: Path) -> Outcome:
        base = next((step[1] for step in steps if step[0] == "base"), "rotate.safetensors")
        content = (inputs / base).read_bytes()
        for step in steps:
            if step[0] == "header":
                content = with_header(content, scratch, *step[1:])
            elif step[0] == "bytes":
                content = apply_edit(content, step[1:])
        return use_checkpoint(scratch / "file.safetensors", content)


def use_checkpoint(file: Path, content: bytes) -> Outcome:
    """Write a checkpoint and inspect it; some of those that can be inspected are also used."""
    file.write_bytes(content)
    outcome = command("inspect", file, "--json")
    if outcome is Outcome.ACCEPTED and zlib.crc32(content) % USED == 0:
        command("predict", "--checkpoint", file, "--dataset", TOY / "dataset", "--limit", "3")
    return outcome


def with_header(content: bytes, scratch: Path, share: float, odd: int, drop: bool) -> bytes:
    """A file of safetensors with one value of its header changed, or of our facts in it."""
    length = int.from_bytes(content[:8], "little")
    try:
        header = json.loads(content[8 : 8 + length])
        facts = json.loads(header["__metadata__"]["lmpnn_kge"])
    except (ValueError, KeyError, TypeError):
        return content
    inner = share < 0.6
    file = scratch / "header.json"
    file.write_text(json.dumps(facts if inner else header))
    change_value(file, share % 0.6 / 0.6 if inner else (share - 0.6) / 0.4, odd, drop)
    changed = file.read_text()
    os.unlink(file)
    if inner:
        header["__metadata__"]["lmpnn_kge"] = changed
        changed = json.dumps(header)
    text = changed.encode("utf-8", "surrogatepass")
    return len(text).to_bytes(8, "little") + text + content[8 + length :]
