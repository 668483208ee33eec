"""The comparison of two methods on the same queries, with intervals, as a section of a report."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lmpnn_kge.files import distinct_names
from lmpnn_kge.methods.bootstrap import LEVEL, RESAMPLES, Difference, compare_paired
from lmpnn_kge.methods.results import AVERAGES
from lmpnn_kge.methods.text_table import Cell, Table, Text, percent
from lmpnn_kge.reports.paired_ranks import pair_ranks
from lmpnn_kge.reports.result_tables import signed
from lmpnn_kge.reports.sections import Section
from lmpnn_kge.work.listener import SILENT, Listener

#: Marks a difference whose interval excludes 0.
MARK = "*"


@dataclass(frozen=True)
class Comparison:
    """The difference of two methods by query type, with the interval of each."""

    first: str
    second: str
    differences: Mapping[str, Difference]
    resamples: int
    seed: int

    def to_table(self) -> Table:
        """A row for each type, then for the averages; in percent."""
        header = ["", self.first, self.second, "difference", "low", "high", "", "queries"]
        types = [name for name in self.differences if name not in AVERAGES]
        rows = [_row(name, difference) for name, difference in self.differences.items()]
        caption = (
            f"MRR in percent, and the difference of {self.second} from {self.first} with the ends "
            f"of its {LEVEL:.0%} interval: a paired bootstrap over queries, {self.resamples:,} "
            f"samples, seed {self.seed}. {MARK} marks an interval that excludes 0. Of 20 types "
            "without a real difference, about one is marked by chance."
        )
        return Table(header, rows, caption, rules=[len(types)])

    def to_section(self) -> Section:
        return Section(f"{self.second} compared with {self.first}", [self.to_table()], first=True)


def _row(name: str, difference: Difference) -> list[Cell]:
    points = (signed(100 * v) for v in (difference.value, difference.low, difference.high))
    change, low, high = points
    return [
        name,
        percent([difference.first]),
        percent([difference.second]),
        Text(change, strong=difference.is_significant),
        low,
        high,
        MARK * difference.is_significant,
        f"{difference.queries:,}",
    ]


def compare_ranks(
    first: str | Path,
    second: str | Path,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
    device: str = "auto",
    listener: Listener = SILENT,
) -> Comparison:
    """Compare two runs, or files that `evaluate --ranks` wrote, on the queries that they share.

    The test queries of a run are ranked for this. RunError if the two have other queries.
    """
    paths = [Path(first), Path(second)]
    same = paths[0].resolve() == paths[1].resolve()
    one, other = [paths[0].name] * 2 if same else distinct_names(paths)
    with tempfile.TemporaryDirectory() as folder:
        left, right = (
            _ranks_of(path, Path(folder, f"{number}.parquet"), device, listener)
            for number, path in enumerate(paths)
        )
        pairs = pair_ranks(left, right, (one, other))
    differences = compare_paired(pairs.first, pairs.second, resamples, seed)
    return Comparison(one, other, differences, resamples, seed)


def _ranks_of(path: Path, file: Path, device: str, listener: Listener) -> Path:
    """The ranks of a run, written to a file; another path is that of a file of ranks."""
    if not path.is_dir():
        return path
    from lmpnn_kge.runs.run import Run  # which needs torch: files are compared without it

    run = Run.open(path, device=device)
    for note in run.notes:
        listener.note(note)
    run.ranks("test", listener=listener).save(file)
    return file
