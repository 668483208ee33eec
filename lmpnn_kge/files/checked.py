"""Texts with a checksum of their own, so that a changed digit is noticed when they are read.

In JSON it is one more key, in YAML the last line, a comment. Files of older versions have none, and
are read as they are.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

CHECKSUM = "checksum"

_LAST_LINE = f"# {CHECKSUM}: "


def with_checksum(content: Mapping[str, Any]) -> dict[str, Any]:
    """A mapping to be written as JSON, with its checksum."""
    as_read = json.loads(json.dumps(content))  # tuples become lists, and all keys texts
    return {**content, CHECKSUM: _checksum(as_read)}


def json_with_checksum(content: Mapping[str, Any]) -> str:
    """The text of a JSON file with its checksum."""
    return json.dumps(with_checksum(content), indent=1, allow_nan=False) + "\n"


def without_checksum(content: Any) -> dict[str, Any]:
    """A mapping that was read from JSON; ValueError if it is not what was written."""
    if not isinstance(content, dict):
        raise ValueError("it does not hold a mapping")
    rest = {key: value for key, value in content.items() if key != CHECKSUM}
    if CHECKSUM in content and content[CHECKSUM] != _checksum(rest):
        raise ValueError("it has changed since it was written: its checksum differs")
    return rest


def _checksum(content: Mapping[str, Any]) -> str:
    try:
        return _hash(json.dumps(content, sort_keys=True))
    except RecursionError as error:  # it can be just shallow enough to be read
        raise ValueError("it is nested too deeply") from error


def yaml_with_checksum(text: str) -> str:
    """A YAML text with its checksum in a comment."""
    return f"{text}{_LAST_LINE}{_hash(text)}\n"


def check_yaml(text: str) -> None:
    """ValueError if a text with a checksum is not what was written."""
    before, mark, checksum = text.rpartition(_LAST_LINE)
    if mark and checksum.strip() != _hash(before):
        raise ValueError("it has changed since it was written: its checksum differs")


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
