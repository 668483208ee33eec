"""What results were measured with and on.

Nothing here needs torch, so that reports can be made without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from lmpnn_kge.errors import short


@dataclass(frozen=True, kw_only=True)
class Origin:
    """The method, its settings and its inputs; files are known by the SHA-256 of their content."""

    method: str
    settings: Mapping[str, Any]
    checkpoint: str | None
    queries: str | None  # of the store's manifest; None for a store that is in no folder
    graph: str | None  # the fingerprint of the graph; None if it was not at hand
    graph_name: str
    limit: int | None  # queries per type, at most
    versions: Mapping[str, str]

    def to_json(self) -> dict[str, object]:
        return asdict(self)

    @classmethod
    def from_json(cls, content: object) -> Origin:
        """Read what `to_json` returned; KeyError or ValueError if it is something else."""
        if not isinstance(content, dict):
            raise ValueError(f"the origin is {short(content)}")
        kinds: dict[str, Any] = {
            "settings": dict,
            "versions": dict,
            "limit": int | None,
            "method": str,
            "graph_name": str,
        }
        values = {field.name: content[field.name] for field in fields(cls)}
        for name, value in values.items():
            if isinstance(value, bool) or not isinstance(value, kinds.get(name, str | None)):
                raise ValueError(f"the {name} of its origin is {short(value)}")
        return cls(**values)
