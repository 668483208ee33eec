"""The files of the page, read once: no request reads from the file system."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib.resources import files

#: Types of the files that the page consists of.
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}

INDEX = "index.html"


@dataclass(frozen=True)
class Asset:
    """A file of the page."""

    content: bytes
    media_type: str

    @property
    def etag(self) -> str:
        return f'"{hashlib.sha256(self.content).hexdigest()[:16]}"'


def read_assets() -> dict[str, Asset]:
    """All files of the page, by name."""
    assets = {}
    for file in files("lmpnn_kge.serve").joinpath("page").iterdir():
        suffix = file.name[file.name.rfind(".") :]
        if suffix in TYPES:
            assets[file.name] = Asset(file.read_bytes(), TYPES[suffix])
    return assets
