"""Folders of named triples: `train`, `valid` and `test` as files of triples in any format."""

from __future__ import annotations

from pathlib import Path

from lmpnn_kge.errors import DatasetError
from lmpnn_kge.graph.formats.content import Content
from lmpnn_kge.graph.formats.reading import ReadOptions
from lmpnn_kge.graph.formats.sources import ENDINGS, read_files
from lmpnn_kge.graph.formats.streams import COMPRESSED
from lmpnn_kge.graph.numbered import Numbered
from lmpnn_kge.graph.triples import SPLITS
from lmpnn_kge.graph.vocabulary import Vocabulary

#: The end of an error about something that is not a graph.
MAKE_ONE = "; `lmpnn-kge split` makes a dataset folder from a file of triples"


def read(folder: Path) -> Content:
    """Number names by their first occurrence, in train, then valid, then test."""
    options = ReadOptions(suspects_header=False)
    sources = [read_files(_split_file(folder, split), options) for split in SPLITS]
    joined = Numbered.joined([source.numbered for source in sources]).by_occurrence()
    ends = [sum(len(source.numbered) for source in sources[:place]) for place in (1, 2, 3)]
    names = Vocabulary(joined.entities, joined.relations)
    for source in sources:
        names = source.labelled.of(names)
    starts = (0, *ends[:2])
    splits = {
        split: joined.triples[start:end]
        for split, start, end in zip(SPLITS, starts, ends, strict=True)
    }
    return Content(folder.resolve().name, names, splits)


def _split_file(folder: Path, split: str) -> Path:
    names = [f"{split}{ending}{more}" for more in ("", *COMPRESSED) for ending in ENDINGS]
    files = [folder / name for name in names if (folder / name).is_file()]
    if not files:
        raise DatasetError(
            f"{folder} is not a dataset folder: it has neither dataset.yaml nor {split}.txt, .tsv, "
            f".csv or another file of triples{MAKE_ONE}"
        )
    if len(files) > 1:
        found = " and ".join(file.name for file in files)
        raise DatasetError(f"{folder} has {found}; keep one of them")
    return files[0]
