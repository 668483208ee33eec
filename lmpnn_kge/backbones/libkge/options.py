"""LibKGE's options: nested dictionaries in which a section may inherit from another by `type`.

They come from a file that somebody else made, so nothing here trusts their shape.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lmpnn_kge.errors import short

#: Characters of a dotted key; LibKGE's own have less than a hundred.
MAX_KEY = 1000

#: How often a look-up may follow a `type`. LibKGE's own chains have three links.
MAX_LINKS = 16


def get(options: Any, key: str) -> Any:
    """The value of a dotted key as it stands, or None; options may be anything."""
    value: Any = options
    for part in key.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return None
        value = value[part]
    return value


def look_up(options: Mapping[str, Any], key: str) -> Any:
    """The value of a dotted key, inherited where it is not set, or None; ValueError in a circle.

    Where `a.b.c` is not set, the longest of its prefixes that has a `type` is replaced by that
    type, and the search goes on there.
    """
    for _ in range(MAX_LINKS):
        if len(key) > MAX_KEY:
            raise ValueError(f"an option is called {short(key)}")
        value = get(options, key)
        if value is not None:
            return value
        parts = key.split(".")
        for cut in range(len(parts) - 1, 0, -1):
            parent = get(options, ".".join([*parts[:cut], "type"]))
            if isinstance(parent, str):
                key = ".".join([parent, *parts[cut:]])
                break
        else:
            return None
    raise ValueError(f"the sections of option {short(key)} inherit from each other in a circle")


def nest(options: Mapping[str, Any]) -> dict[str, Any]:
    """One dictionary with dotted keys as nested ones."""
    nested: dict[str, Any] = {}
    for key, value in options.items():
        *sections, name = key.split(".")
        place = nested
        for section in sections:
            place = place.setdefault(section, {})
        place[name] = value
    return nested
