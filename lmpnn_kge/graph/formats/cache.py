"""A binary copy of a large graph's text files, beside them, so that it opens in a moment.

The copy says of which files it is: their sizes, times and numbers on the disk, and a hash of their
contents. It is used only if these agree and if its own numbers have their hashes, and is made anew
otherwise. Losing it loses nothing.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from lmpnn_kge.errors import DatasetError, FileError
from lmpnn_kge.files import replace_file
from lmpnn_kge.files.checked import with_checksum, without_checksum
from lmpnn_kge.graph.formats.content import Content
from lmpnn_kge.graph.triples import SPLITS, Triples
from lmpnn_kge.graph.vocabulary import Labels, Vocabulary

#: The file of the cache, in the folder of the graph.
NAME = ".lmpnn-kge-cache"

#: Graphs with less text than this, in bytes, are read faster than a cache is checked.
WORTH = 8 << 20

#: A file with more bytes is not hashed, because it may be no part of the graph: its times count.
HASHED = 1 << 30

#: Changes to the layout of the cache.
FORMAT = 2

#: Times of files are not exact: what changed so shortly before the cache was made, in nanoseconds,
#: could have changed once more without a trace.
RECENT = 2_000_000_000

#: What Python raises for a value that is not of the expected form.
NO_CACHE = (ValueError, LookupError, TypeError, AttributeError, RecursionError)

Stamps = dict[str, list[int]]

LISTS = ("entity_ids", "relation_ids", "entity_labels", "relation_labels", "entity_types")


def cached(folder: Path, read: Callable[[Path], Content]) -> Content:
    """The graph of a folder from its cache; without a valid one, from its texts by `read`."""
    before = _stamps(folder)
    if sum(size for size, *_ in before.values()) < WORTH:
        return read(folder)
    content = _load(folder, before)
    if content is None:
        content = read(folder)
        store(folder, content, before)
    return content


def store(folder: Path, content: Content, stamps: Stamps | None = None) -> None:
    """Write the cache of a folder, if it is worth one and nothing has changed since the stamps."""
    stamps = _stamps(folder) if stamps is None else stamps
    if sum(size for size, *_ in stamps.values()) < WORTH:
        return
    try:
        columns = _columns(content)
    except DatasetError:  # of a split that nobody has asked for yet, and perhaps nobody will
        return
    if columns is None:
        return
    about = {
        "format": FORMAT,
        "name": content.name,
        "splits": [*content.splits],
        "lists": [name for name in LISTS if name in columns],
        "digest": _digest(folder, stamps),
        "columns": {name: _hash(column) for name, column in columns.items()},
        "stamps": stamps,
        "made": time.time_ns(),
    }
    if _stamps(folder) != stamps:
        return
    # A folder that cannot be written, or a full disk, is no reason not to open a graph.
    with suppress(FileError):
        text = json.dumps(with_checksum(about))
        replace_file(save(columns, {"lmpnn_kge": text}), folder / NAME)


def _stamps(folder: Path) -> Stamps:
    """Size, times and number on the disk of each file in a folder, but the cache."""
    stamps = {}
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if not entry.name.startswith(".") and entry.is_file():
                    stat = entry.stat()
                    times = stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino
                    stamps[entry.name] = [stat.st_size, *times]
    except OSError as error:
        raise DatasetError(f"{folder} cannot be read: {error.strerror}") from error
    return dict(sorted(stamps.items()))


def _digest(folder: Path, stamps: Stamps) -> str:
    """A hash of the contents of all files but huge ones; an unreadable one has none."""
    digest = hashlib.blake2b(digest_size=32)
    for name, (size, *times) in stamps.items():
        if size > HASHED:
            digest.update(json.dumps([name, size, *times]).encode())
            continue
        digest.update(json.dumps([name, size]).encode())
        with suppress(OSError), (folder / name).open("rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def _hash(column: npt.NDArray[Any]) -> str:
    digest = hashlib.blake2b(f"{column.dtype} {column.shape}\n".encode(), digest_size=32)
    digest.update(np.ascontiguousarray(column).data)
    return digest.hexdigest()


def _columns(content: Content) -> dict[str, npt.NDArray[Any]] | None:
    """Names and triples as arrays; None if a name has a line break."""
    names = content.vocabulary
    columns: dict[str, npt.NDArray[Any]] = {}
    for key in LISTS:
        values = getattr(names, key)
        if values is None:
            continue
        texts = ["" if value is None else value for value in values]
        joined = "\n".join(texts)
        if joined.count("\n") != len(texts) - 1 or (key in LISTS[:2] and "" in texts):
            return None
        columns[key] = np.frombuffer(joined.encode(), np.uint8)
    small = max(names.num_entities, names.num_relations) < 2**31
    for split, triples in content.splits.items():
        columns[f"split.{split}"] = triples.astype(np.int32 if small else np.int64)
    return columns


def _load(folder: Path, stamps: Stamps) -> Content | None:
    """The content of a cache, if there is one and it is that of the files."""
    file = folder / NAME
    if not file.is_file() or file.is_symlink():
        return None
    try:
        with safe_open(file, framework="numpy") as opened:
            about = without_checksum(json.loads((opened.metadata() or {})["lmpnn_kge"]))
            if about["format"] != FORMAT or _sizes(about["stamps"]) != _sizes(stamps):
                return None
            by_times = _has_times(about, stamps)
            if not by_times and about["digest"] != _digest(folder, stamps):
                return None
            columns = {key: opened.get_tensor(key) for key in opened.keys()}  # noqa: SIM118
        if {name: _hash(column) for name, column in columns.items()} != about["columns"]:
            return None
        content = _content(about, columns)
    except (OSError, SafetensorError, *NO_CACHE):
        return None  # damaged, of a later version, or not ours: the texts are what counts
    if not by_times:  # the next time they will do
        store(folder, content, stamps)
    return content


def _sizes(stamps: Stamps) -> dict[str, int]:
    return {name: stamp[0] for name, stamp in stamps.items()}


def _has_times(about: Mapping[str, Any], stamps: Stamps) -> bool:
    """Whether no file has been touched since a cache was made, as far as times can say."""
    newest = max((max(stamp[1:3]) for stamp in stamps.values()), default=0)
    return about["stamps"] == stamps and bool(newest < about["made"] - RECENT)


def _content(about: Mapping[str, Any], columns: Mapping[str, npt.NDArray[Any]]) -> Content:
    """The graph in the columns of a cache; ValueError if they cannot be one."""
    lists = {key: columns[key].tobytes().decode().split("\n") for key in about["lists"]}
    entities, relations = lists["entity_ids"], lists["relation_ids"]
    if len(set(entities)) < len(entities) or len(set(relations)) < len(relations):
        raise ValueError("ids repeat")
    labels: dict[str, Labels | None] = {}
    for key, count in zip(LISTS[2:], map(len, (entities, relations, entities)), strict=True):
        if key in lists and len(lists[key]) != count:
            raise ValueError("the labels are not those of the ids")
        labels[key] = [text or None for text in lists[key]] if key in lists else None
    limits = len(entities), len(relations), len(entities)
    splits: dict[str, Triples] = {}
    for split in about["splits"]:
        triples = columns[f"split.{split}"].astype(np.int64)
        if triples.ndim != 2 or triples.shape[1] != 3 or triples.min(initial=0) < 0:
            raise ValueError("no triples")
        if (triples.max(axis=0, initial=-1) >= limits).any():
            raise ValueError("triples without names")
        splits[split] = triples
    if not splits.keys() >= set(SPLITS):
        raise ValueError("a split is missing")
    return Content(str(about["name"]), Vocabulary(entities, relations, **labels), splits)
