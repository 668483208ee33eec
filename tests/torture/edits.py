"""Edits of bytes that any campaign on files can use: as steps, and applied."""

from random import Random
from typing import Any

#: Numbers at which readers go wrong.
NUMBERS = (0, 1, 2, 127, 128, 255, 256, 65535, 2**31 - 1, 2**31, 2**32 - 1, 2**62, 2**63 - 1)


def draw_edit(random: Random) -> list[Any]:
    """An edit of the bytes of a file; its places are shares of the length."""
    kind = random.choice(("flip", "set", "cut", "end", "repeat", "insert", "number"))
    place = random.random() if random.random() < 0.7 else 1 - random.random() ** 4
    match kind:
        case "flip":
            return [kind, place, 1 << random.randrange(8)]
        case "set":
            return [kind, place, random.randrange(256)]
        case "insert":
            return [kind, place, random.randbytes(random.randrange(1, 9)).hex()]
        case "number":
            size = random.choice((1, 2, 4, 8))
            number = random.choice(NUMBERS) % (1 << 8 * size)
            return [kind, place, number.to_bytes(size, "little").hex()]
    return [kind, place, random.randrange(1, 1 << random.randrange(1, 12))]


def apply_edit(content: bytes, edit: list[Any]) -> bytes:
    """The content after an edit."""
    kind, share, value = edit
    at = min(int(share * len(content)), max(0, len(content) - 1))
    if not content:
        return content
    match kind:
        case "flip":
            return content[:at] + bytes([content[at] ^ value]) + content[at + 1 :]
        case "set":
            return content[:at] + bytes([value]) + content[at + 1 :]
        case "cut":
            return content[:at] + content[at + value :]
        case "end":
            return content[:at]
        case "repeat":
            return content[:at] + content[at : at + value] * 2 + content[at + value :]
        case "insert":
            return content[:at] + bytes.fromhex(value) + content[at:]
        case "number":
            number = bytes.fromhex(value)
            return content[:at] + number + content[at + len(number) :]
    raise ValueError(kind)
