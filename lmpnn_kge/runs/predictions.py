"""Predicted triples as columns, and the files they are written to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from lmpnn_kge.errors import ConfigError, choices
from lmpnn_kge.files import write_file
from lmpnn_kge.graph.formats import write_columns
from lmpnn_kge.graph.formats.ntriples import ntriples
from lmpnn_kge.graph.triples import Triples
from lmpnn_kge.graph.vocabulary import Vocabulary
from lmpnn_kge.notebook import data_frame, html_paragraphs, html_table

#: The formats of files; N-Triples are not columns.
FORMATS = (*write_columns.FORMATS, "nt")


@dataclass(frozen=True)
class Prediction:
    """A triple that is not in the training graph, with its probability.

    confirmed: the held-out split that has the triple, valid or test; None if neither has it.
    """

    head: str
    relation: str
    tail: str
    head_label: str | None
    relation_label: str | None
    tail_label: str | None
    probability: float
    confirmed: str | None

    def __str__(self) -> str:
        names = (
            self.relation_label or self.relation,
            self.head_label or self.head,
            self.tail_label or self.tail,
        )
        return "{}({}, {})".format(*names)


@dataclass(frozen=True, eq=False)
class Predictions(Sequence[Prediction]):
    """Predictions as columns, the most probable first; each row is a Prediction."""

    vocabulary: Vocabulary
    triples: Triples  # [n, 3]
    probabilities: npt.NDArray[np.float64]  # [n]
    confirmed: list[str | None]

    def __len__(self) -> int:
        return len(self.triples)

    @overload
    def __getitem__(self, place: int) -> Prediction: ...
    @overload
    def __getitem__(self, place: slice) -> Predictions: ...
    def __getitem__(self, place: int | slice) -> Prediction | Predictions:
        if isinstance(place, slice):
            parts = self.triples[place], self.probabilities[place], self.confirmed[place]
            return Predictions(self.vocabulary, *parts)
        return Prediction(**{name: values[place] for name, values in self._all_columns.items()})

    def __repr__(self) -> str:
        confirmed = sum(split is not None for split in self.confirmed)
        return f"Predictions({len(self):,} triples, {confirmed:,} of them in a held-out split)"

    @cached_property
    def columns(self) -> dict[str, list[Any]]:
        """The columns by name, without labels that no row has."""
        every = self._all_columns
        names = self.vocabulary
        unlabelled = {"head_label", "tail_label"} if names.entity_labels is None else set()
        unlabelled |= {"relation_label"} if names.relation_labels is None else set()
        return {name: values for name, values in every.items() if name not in unlabelled}

    def to_frame(self) -> Any:
        """The predictions as a DataFrame (needs pandas)."""
        return data_frame(self.columns)

    def _repr_html_(self) -> str:
        """What a notebook shows: the most probable ones."""
        rows = [
            [f"{one.probability:.1%}", str(one), f"in {one.confirmed}" if one.confirmed else ""]
            for one in self[:20]
        ]
        return html_paragraphs([repr(self)]) + html_table(["probability", "triple", ""], rows)

    def save(self, file: str | Path, format: str | None = None) -> None:
        """Write a .csv, .tsv, .jsonl, .parquet or .nt file, complete or not at all."""
        write_file(self.to_bytes(format or format_of(file)), Path(file))

    def to_bytes(self, format: str) -> bytes:
        """The content of a file in a format."""
        if format not in FORMATS:
            raise ConfigError(f"there is no format {format!r}; {choices(format, FORMATS)}")
        if format == "nt":  # which has no place for a probability
            return "".join(ntriples(self.vocabulary, self.triples)).encode()
        data = {name: np.array(values, dtype=object) for name, values in self.columns.items()}
        data["probability"] = self.probabilities
        types = dict.fromkeys(data, "VARCHAR") | {"probability": "DOUBLE"}
        return write_columns.columns_to_bytes(data, types, format)

    @cached_property
    def _all_columns(self) -> dict[str, list[Any]]:
        heads, relations, tails = self.triples.T.tolist()
        names = self.vocabulary
        entity_labels = names.entity_labels or [None] * names.num_entities
        relation_labels = names.relation_labels or [None] * names.num_relations
        return {
            "head": [names.entity_ids[row] for row in heads],
            "relation": [names.relation_ids[row] for row in relations],
            "tail": [names.entity_ids[row] for row in tails],
            "head_label": [entity_labels[row] for row in heads],
            "relation_label": [relation_labels[row] for row in relations],
            "tail_label": [entity_labels[row] for row in tails],
            "probability": self.probabilities.tolist(),
            "confirmed": self.confirmed,
        }


def format_of(file: str | Path) -> str:
    """The format that the ending of a file names."""
    return write_columns.format_of(file, FORMATS, "choose one, or give --format")
