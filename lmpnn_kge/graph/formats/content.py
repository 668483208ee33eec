"""What every format of a graph folder yields."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from lmpnn_kge.graph.triples import Triples
from lmpnn_kge.graph.vocabulary import Vocabulary


@dataclass(frozen=True, eq=False)
class Content:
    """A graph's name, the names of its rows, and its triples by split."""

    name: str
    vocabulary: Vocabulary
    splits: Mapping[str, Triples]


class LazySplits(Mapping[str, Triples]):
    """Splits that are read from their files on first use, each once."""

    def __init__(self, names: Sequence[str], read: Callable[[str], Triples]):
        self.names, self.read = tuple(names), read
        self.triples: dict[str, Triples] = {}

    def __getitem__(self, split: str) -> Triples:
        if split not in self.names:
            raise KeyError(split)
        if split not in self.triples:
            self.triples[split] = self.read(split)
        return self.triples[split]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)
