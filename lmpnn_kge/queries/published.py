"""Which published queries a BetaE folder holds, by the checksums of its files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lmpnn_kge.files import file_hash

#: Published files: the first 12 digits of their SHA-256, and their sizes in bytes.
PUBLISHED: Mapping[str, Mapping[str, tuple[str, int]]] = {
    "FB15k-237": {
        "train-queries": ("b5b351c56bac", 27_194_876),
        "train-answers": ("1716e703c56a", 207_528_940),
        "valid-queries": ("f047cc589a8b", 4_077_063),
        "valid-easy-answers": ("53dd3d6cd696", 45_871_119),
        "valid-hard-answers": ("ace9c0cbc7dc", 9_202_599),
        "test-queries": ("b5c7dd792283", 4_123_196),
        "test-easy-answers": ("65aa4dd95788", 45_557_738),
        "test-hard-answers": ("70b26a146e76", 9_371_499),
    },
    "NELL": {
        "train-queries": ("d39659a77db5", 19_574_188),
        "valid-queries": ("1ce8888af4ae", 3_274_201),
        "test-queries": ("1eaf9e1321dc", 3_275_293),
        "test-easy-answers": ("129526f6cfea", 22_896_671),
        "test-hard-answers": ("2bb0e86d7aba", 6_954_818),
    },
    "FB15k": {
        "test-queries": ("f6f712d302af", 7_227_248),
        "test-easy-answers": ("1bac958a6752", 58_917_150),
        "test-hard-answers": ("6145b21b78d2", 16_549_212),
    },
}


#: The key in a store's provenance for the published set that was recognised, or None.
KEY = "published"


def recognise(folder: Path, names: Sequence[str]) -> tuple[str | None, list[str]]:
    """The published set that the files `name.pkl` of a folder are, and notes on exceptions."""
    for graph, files in PUBLISHED.items():
        comparable = [name for name in names if name in files]
        same = [name for name in comparable if _is(folder / f"{name}.pkl", *files[name])]
        if not same:
            continue
        if others := [name for name in comparable if name not in same]:
            return None, [f"{', '.join(others)} differ from the published {graph} files"]
        unknown = [name for name in names if name not in files]
        note = f"the checksums of the published {graph} files {', '.join(unknown)} are not known"
        return graph, [note] if unknown else []
    return None, []


def published_text(provenance: Mapping[str, Any]) -> str:
    """Whether imported queries are published ones, as a sentence."""
    if KEY not in provenance:
        return "not compared with the published files"
    graph = provenance[KEY]
    if graph is None:
        return f"these are not the published queries of {', '.join(PUBLISHED)}"
    return f"these are the published {graph} queries"


def _is(file: Path, digits: str, size: int) -> bool:
    if not file.is_file() or file.stat().st_size != size:
        return False
    return file_hash(file).startswith(digits)
