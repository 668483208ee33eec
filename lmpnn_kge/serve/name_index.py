"""Names that contain what somebody types: ids and labels, found in one pass over one text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

#: Matches that are looked at: more than anybody pages through.
MOST_MATCHES = 20_000

END = "\n"


class NameIndex:
    """Numbered rows, each with one or several names, in a single text that is searched at once."""

    def __init__(self, names: Iterable[tuple[int, str]]):
        rows, folded = [], []
        for row, name in names:
            rows.append(row)
            folded.append(name.casefold().replace(END, " "))
        self.rows = np.array(rows, np.int64)  # of every name
        self.text = END + END.join(folded) + END
        lengths = np.fromiter((len(name) + 1 for name in folded), np.int64, len(folded))
        self.starts = 1 + np.concatenate([[0], np.cumsum(lengths)])[:-1].astype(np.int64)

    @classmethod
    def of(cls, ids: Sequence[str], labels: Sequence[str | None] | None) -> NameIndex:
        """Rows with an id, and perhaps a label."""
        names = list(enumerate(ids))
        names += [(row, label) for row, label in enumerate(labels or ()) if label is not None]
        return cls(names)

    def find(self, part: str) -> tuple[Ints, Ints]:
        """The rows with a name that contains a part, and how well: 0 is best.

        0: a name begins with it; 1: a word does; 2: it is inside a word.
        """
        wanted = re.compile(re.escape(part.casefold().replace(END, " ")))
        places, quality = [], []
        for match in wanted.finditer(self.text, 1, len(self.text) - 1):
            before = self.text[match.start() - 1]
            places.append(match.start())
            quality.append(0 if before == END else 2 if before.isalnum() else 1)
            if len(places) == MOST_MATCHES:
                break
        names = np.searchsorted(self.starts, np.array(places, np.int64), side="right") - 1
        order = np.argsort(np.array(quality, np.int64), kind="stable")
        rows, first = np.unique(self.rows[names[order]], return_index=True)
        return rows, np.array(quality, np.int64)[order[first]]
