"""Folders of named triples: `train`, `valid` and `test` as .txt, .tsv, .csv or .del files."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from lmpnn_kge.errors import DatasetError, short
from lmpnn_kge.graph.formats.content import Content
from lmpnn_kge.graph.triples import SPLITS, Triples
from lmpnn_kge.graph.vocabulary import Vocabulary

NamedTriple = tuple[str, str, str]

#: The end of an error about something that is not a graph.
MAKE_ONE = "; `lmpnn-kge split` makes a dataset folder from a file of triples"


def read(folder: Path) -> Content:
    """Number names by their first occurrence, in train, then valid, then test."""
    entities: dict[str, int] = {}
    relations: dict[str, int] = {}
    splits = {split: _number(_split_file(folder, split), entities, relations) for split in SPLITS}
    return Content(folder.resolve().name, Vocabulary(list(entities), list(relations)), splits)


def _split_file(folder: Path, split: str) -> Path:
    for suffix in (".txt", ".tsv", ".csv", ".del"):
        if (folder / f"{split}{suffix}").is_file():
            return folder / f"{split}{suffix}"
    raise DatasetError(
        f"{folder} is not a dataset folder: it has neither dataset.yaml nor {split}.txt, .tsv or "
        f".csv{MAKE_ONE}"
    )


def _number(file: Path, entities: dict[str, int], relations: dict[str, int]) -> Triples:
    rows = [
        (
            entities.setdefault(head, len(entities)),
            relations.setdefault(relation, len(relations)),
            entities.setdefault(tail, len(entities)),
        )
        for head, relation, tail in named_triples(file)
    ]
    return np.array(rows, np.int64).reshape(-1, 3)


def named_triples(file: Path) -> Iterator[NamedTriple]:
    """The head, relation and tail of each line, separated by commas in a .csv, else by tabs."""
    commas = file.suffix == ".csv"
    try:
        with file.open(encoding="utf-8-sig") as lines:  # some editors begin a file with a mark
            rows: Iterable[list[str]] = (line.rstrip("\n").split("\t") for line in lines)
            if commas:
                rows = csv.reader(lines, skipinitialspace=True, strict=True)
            for number, parts in enumerate(rows, start=1):
                if parts in ([], [""]):
                    continue
                broken = commas and any(sign in part for part in parts for sign in "\t\n")
                if len(parts) != 3 or not all(parts) or broken:
                    raise DatasetError(
                        f"{file} line {number} must be a head, a relation and a tail separated by "
                        f"{'commas' if commas else 'tabs'}: {short(repr(parts))}"
                    )
                yield parts[0], parts[1], parts[2]
    except UnicodeDecodeError as error:
        raise DatasetError(f"{file} is not UTF-8: {error}") from error
    except csv.Error as error:
        raise DatasetError(f"{file} is not a readable .csv file: {error}") from error
    except OSError as error:
        raise DatasetError(f"{file} cannot be read: {error.strerror}") from error
