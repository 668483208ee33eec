"""Content negotiation: the type of a response that a client likes best."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

#: One range of a header Accept: a type, perhaps with parameters, and a quality.
_RANGE = re.compile(r"\s*([\w!#$&.+^*-]+)/([\w!#$&.+^*-]+)\s*((?:;[^;]*)*)", re.ASCII)
_QUALITY = re.compile(r";\s*q\s*=\s*(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)\s*(?:;|$)", re.IGNORECASE)
_HAS_QUALITY = re.compile(r";\s*q\s*=", re.IGNORECASE)


def preferred(header: str, offered: Sequence[str]) -> str | None:
    """The best of the offered types by a header Accept; among equals, the first.

    An empty header accepts everything. None if nothing that is offered is accepted.
    """
    ranges = list(_ranges(header))
    if not header.strip():
        return offered[0]
    qualities = {media_type: _quality(media_type, ranges) for media_type in offered}
    best = max(offered, key=lambda media_type: qualities[media_type])  # the first of equals
    return best if qualities[best] > 0 else None


def _ranges(header: str) -> Iterator[tuple[str, float]]:
    """The ranges of a header with their qualities; what cannot be read is left out."""
    for part in header.split(","):
        if (found := _RANGE.fullmatch(part)) is None:
            continue
        kind, subtype, parameters = found.groups()
        quality = _QUALITY.search(parameters)
        if quality is None and _HAS_QUALITY.search(parameters):
            continue
        yield f"{kind}/{subtype}".lower(), float(quality[1]) if quality else 1.0


def _quality(media_type: str, ranges: Iterable[tuple[str, float]]) -> float:
    """How much a type is wanted: the most specific range that it is in decides."""
    qualities = dict(ranges)
    for wanted in (media_type, f"{media_type.partition('/')[0]}/*", "*/*"):
        if wanted in qualities:
            return qualities[wanted]
    return 0.0
