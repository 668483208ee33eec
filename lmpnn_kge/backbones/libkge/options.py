"""LibKGE's options: nested dictionaries in which a section may inherit from another by `type`.

They come from a file that anybody could have made, so nothing here trusts their shape.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lmpnn_kge.errors import short

#: Longest dotted key, in characters; LibKGE's own keys have less than a hundred.
MAX_KEY = 1000

#: How many times a look-up may follow a `type`; LibKGE's own chains have three links.
MAX_LINKS = 16


def get(options: Any, key: str) -> Any:
    """Get the value of a dotted key without inheritance, or None; options may be anything."""
    value: Any = options
    for part in key.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return None
        value = value[part]
    return value


def look_up(options: Mapping[str, Any], key: str) -> Any:
    """Get the value of a dotted key, set or inherited, or None; ValueError if types form a circle.

    If `a.b.c` is not set, its longest prefix with a `type` is replaced by that type, and the
    search continues there.
    """
    for _ in range(MAX_LINKS):
        if len(key) > MAX_KEY:
            raise ValueError(f"the name of an option is too long: {short(key)}")
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
    """Turn a dictionary with dotted keys into nested dictionaries."""
    nested: dict[str, Any] = {}
    for key, value in options.items():
        *sections, name = key.split(".")
        parent = nested
        for section in sections:
            parent = parent.setdefault(section, {})
        parent[name] = value
    return nested
