"""Edits of pickles, operation by operation, and pickles that are bombs."""

import io
import pickletools
import struct
from random import Random
from typing import Any

#: Names that no file needs.
HOSTILE = (
    "os\nsystem", "posix\nsystem", "builtins\neval", "builtins\nexec", "__builtin__\ngetattr",
    "subprocess\nPopen", "builtins\n__import__", "torch\nload", "torch._utils\n_rebuild_tensor",
    "builtins\nbytearray", "torch\nFloatTensor", "collections\nOrderedDict", "kge.config\nConfig",
    "torch._utils\n_rebuild_parameter", "torch._utils\n_rebuild_tensor_v2", "torch\nFloatStorage",
    "collections\nCounter", "torch.torch_version\nTorchVersion", "builtins\nset", "operator\nadd",
    "collections\ndefaultdict", "builtins\ndict", "functools\npartial", "codecs\nencode",
)  # fmt: skip


def operations(pickle: bytes) -> list[bytes]:
    """The operations of a pickle, each with its argument; a rest that cannot be read is one more.

    More than one pickle may follow another.
    """
    parts: list[bytes] = []
    stream = io.BytesIO(pickle)
    try:
        while stream.tell() < len(pickle):
            starts = [place for _, _, place in pickletools.genops(stream) if place is not None]
            ends = [*starts[1:], stream.tell()]
            parts += [pickle[a:b] for a, b in zip(starts, ends, strict=True)]
    except Exception:  # the rest is something else
        parts.append(pickle[sum(map(len, parts)) :])
    return parts


def draw_value(random: Random) -> bytes:
    """A plain value as operations that push it."""
    text = random.choice((b"", b"x", b"\xed\xa0\x80", b"\x1b[2J", b"model", b"a" * 3000))
    return random.choice((
        b"N", b"\x88", b"\x89", b"]", b"}", b")", b"K\x07", b"J\xff\xff\xff\xff", b"h\x01",
        b"\x8a\x08" + struct.pack("<q", random.choice((2**62, -(2**63), 2**40))),
        b"\x8a\xff" + b"\x7f" * 255,
        b"G" + struct.pack(">d", random.choice((float("nan"), float("inf"), -1.5, 1e308))),
        b"X" + struct.pack("<I", len(text)) + text,
        b"(K\x01K\x02t", b"(K\x01K\x02l", b"]K\x01a", b"}K\x01K\x02s", b")\x85\x85\x85",
        b"(X\x01\x00\x00\x00aK\x01d", b"0", b"2", b"(", b"1",
    ))  # fmt: skip


def draw_bomb(random: Random) -> bytes:
    """Operations that take more time, memory or stack than their size suggests."""
    times = random.choice((30, 60, 1000, 150_000))
    name = random.choice(HOSTILE).encode()
    few = min(times, 1000)
    return random.choice((
        b")" + b"\x85" * times,  # a tuple in a tuple in a tuple
        b")" + b"2\x86" * min(times, 60),  # t = (t, t)
        b"})" + b"2\x86" * min(times, 60) + b"Ns0",  # and its hash
        b"})" + b"\x85" * times + b"Ns0",
        b"]" + b"q\x00h\x00" * few + b"0" * few,
        b"(" * times,
        b"]" * times,
        b"}" * times,
        b"(" + b"K\x01" * times + b"t0",
        b"c" + name + b"\n",
        b"c" + name + b"\n)R",
        b"c" + name + b"\nX\x04\x00\x00\x00true\x85R",
        b"c" + name + b"\n)\x81",
        b"c" + name + b"\n)\x81}b",
        b"i" + name + b"\n",
        b"(c" + name + b"\no",
        b"\x8c\x02os\x8c\x06system\x93",
        b"X\xff\xff\xff\x7f",
        b"\x8b\xff\xff\xff\x7f",
        b"\x8d\xff\xff\xff\xff\xff\xff\xff\x7f",
        b"r\xff\xff\xff\x7f",
        b"j\xff\xff\xff\x7f",
        b"\x82\x01", b"\x84\x01\x00\x00\x00", b"Q", b"Pname\n", b"R", b"b", b"s", b"u", b"e", b"a",
        b"\x95\xff\xff\xff\xff\xff\xff\xff\x7f", b"I" + b"9" * times + b"\n",
        b"L" + b"9" * times + b"L\n", b"\x80\x04", b"\x80\x02", b".", b"\x8f", b"(\x91", b"\x90",
    ))  # fmt: skip


def draw_pickle_edit(random: Random) -> list[Any]:
    """An edit of a list of operations; its places are shares of their number."""
    place, other = random.random(), random.random()
    match random.randrange(8):
        case 0:
            return ["delete", place, random.choice((1, 1, 1, 2, 5))]
        case 1:
            return ["double", place, random.choice((1, 1, 3, 20))]
        case 2:
            return ["move", place, other]
        case 3 | 4:
            return ["value", place, draw_value(random).hex()]
        case 5:
            return ["replace", place, draw_value(random).hex()]
        case 6:
            return ["replace", place, draw_bomb(random).hex()]
    return ["put", place, draw_bomb(random).hex()]


#: The first bytes of operations that push a plain value.
PUSHES = b"XUKJMGN\x88\x89\x8a])}h\x8c\x94"


def apply_pickle_edit(parts: list[bytes], edit: list[Any]) -> list[bytes]:
    """The operations after an edit."""
    kind, share, value = edit
    if not parts:
        return parts
    at = min(int(share * len(parts)), len(parts) - 1)
    match kind:
        case "delete":
            return parts[:at] + parts[at + value :]
        case "double":
            return parts[:at] + parts[at : at + value] * 2 + parts[at + value :]
        case "move":
            to = min(int(value * len(parts)), len(parts) - 1)
            changed = list(parts)
            changed[at], changed[to] = changed[to], changed[at]
            return changed
        case "value":  # the next operation that pushes a plain value
            pushes = (n for n in range(at, len(parts)) if parts[n][:1] in PUSHES)
            at = next(pushes, at)
            return [*parts[:at], bytes.fromhex(value), *parts[at + 1 :]]
        case "replace":
            return [*parts[:at], bytes.fromhex(value), *parts[at + 1 :]]
        case "put":
            return [*parts[:at], bytes.fromhex(value), *parts[at:]]
    raise ValueError(kind)
