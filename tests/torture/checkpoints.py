"""LibKGE checkpoints, changed in their pickle, in their archive and in their bytes."""

import shutil
import warnings
import zipfile
from io import BytesIO
from pathlib import Path
from random import Random

from ..conftest import TOY
from .campaign import Campaign, Outcome, Steps
from .damage import use_checkpoint
from .edits import apply_edit, draw_edit
from .pickles import apply_pickle_edit, draw_pickle_edit, operations

Members = list[tuple[str, bytes]]

ZIP_EDITS = (
    "upper before", "upper after", "twice", "twice other", "drop", "rename", "deflate", "folder",
    "before", "behind", "legacy before", "shorten", "lengthen", "empty", "second top", "byteorder",
)  # fmt: skip


class Checkpoints(Campaign):
    name = "checkpoints"
    weight = 10  # the files that strangers send, and each case takes some milliseconds

    def prepare(self, inputs: Path) -> None:
        for file in (TOY / "checkpoints").iterdir():
            shutil.copy(file, inputs)

    def draw(self, number: int, random: Random, inputs: Path) -> Steps:
        names = sorted(file.name for file in inputs.iterdir())
        level = random.choice(("pickle", "pickle", "zip", "bytes", "all"))
        steps: Steps = [["base", random.choice(names)]]
        for _ in range(random.choice((1, 1, 2, 3, 8))):
            kind = random.choice(("pickle", "zip", "bytes")) if level == "all" else level
            if kind == "pickle":
                steps.append(["pickle", *draw_pickle_edit(random)])
            elif kind == "zip":
                steps.append(["zip", random.choice(ZIP_EDITS), random.random()])
            else:
                steps.append(["bytes", *draw_edit(random)])
        return steps

    def run(self, steps: Steps, inputs: Path, scratch: Path) -> Outcome:
        base = next((step[1] for step in steps if step[0] == "base"), "complex.package.pt")
        content = (inputs / base).read_bytes()
        edits = {level: [s[1:] for s in steps if s[0] == level] for level in ("pickle", "zip")}
        if content.startswith(b"PK"):
            members = read_members(content)
            index = next(n for n, (name, _) in enumerate(members) if name.endswith("/data.pkl"))
            members[index] = members[index][0], edited_pickle(members[index][1], edits["pickle"])
            content = write_members(members, edits["zip"])
        else:
            content = edited_pickle(content, edits["pickle"])
        for step in steps:
            if step[0] == "bytes":
                content = apply_edit(content, step[1:])
        return use_checkpoint(scratch / "file.pt", content)


def edited_pickle(pickle: bytes, edits: Steps) -> bytes:
    parts = operations(pickle)
    for edit in edits:
        parts = apply_pickle_edit(parts, edit)
    return b"".join(parts)


def read_members(content: bytes) -> Members:
    with zipfile.ZipFile(BytesIO(content)) as archive:
        return [(name, archive.read(name)) for name in archive.namelist()]


def write_members(members: Members, edits: Steps) -> bytes:
    """The archive after edits of its members and of what surrounds it."""
    before, behind, compression = b"", b"", zipfile.ZIP_STORED
    for kind, share in edits:
        at = min(int(share * len(members)), len(members) - 1)
        if at < 0:
            continue
        name, data = members[at]
        top = name.partition("/")[0]
        match kind:
            case "upper before":
                members.insert(0, (f"{top}/DATA.PKL", b"\x80\x02c" + b"os\nsystem\n."))
            case "upper after":
                members.append((name.upper(), data[::-1]))
            case "twice":
                members.append((name, data))
            case "twice other":
                members.append((name, data[: len(data) // 2]))
            case "drop":
                members.pop(at)
            case "rename":
                members[at] = f"{top}/../{name}", data
            case "deflate":
                compression = zipfile.ZIP_DEFLATED
            case "folder":
                members.append((f"{name}/", b""))
            case "before":
                before = b"\x80\x02}." * 5
            case "behind":
                behind = data[:50]
            case "legacy before":
                before = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03."
            case "shorten":
                members[at] = name, data[:-1]
            case "lengthen":
                members[at] = name, data + bytes(64)
            case "empty":
                members[at] = name, b""
            case "second top":
                members.append((f"other/{name.partition('/')[2]}", data))
            case "byteorder":
                members.append((f"{top}/byteorder", b"big"))
    stream = BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(stream, "w", compression) as archive:
        warnings.simplefilter("ignore")  # of a name that is there twice
        for name, data in members:
            archive.writestr(name, data)
    return before + stream.getvalue() + behind
