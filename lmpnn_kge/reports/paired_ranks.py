"""Two files of ranks, joined by their queries and answers; refused if these are not the same."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np

from lmpnn_kge.errors import RunError, examples, one_line, short
from lmpnn_kge.graph.formats.table_columns import connection, pattern
from lmpnn_kge.graph.formats.write_columns import format_of
from lmpnn_kge.methods.ranks import COLUMNS, FORMATS, Floats
from lmpnn_kge.query.patterns import ordered

#: How DuckDB reads each format; the columns of CSV have no types.
_READ = {
    "parquet": "read_parquet($file)",
    "csv": "read_csv($file, header = true, all_varchar = true, delim = ',', quote = '\"', "
    "escape = '\"')",
}

#: The columns that a comparison needs, and those that say what was ranked.
_NEEDED, _KEY = ("type", "query", "question", "answer", "rank"), "type, query, question, answer"


@dataclass(frozen=True, eq=False)
class PairedRanks:
    """The mean reciprocal rank of every query in two files, by type, in the same order."""

    first: dict[str, Floats]
    second: dict[str, Floats]


def pair_ranks(first: Path, second: Path, names: tuple[str, str] | None = None) -> PairedRanks:
    """Join two files that `evaluate --ranks` wrote; RunError if they have other queries."""
    labels = names or (str(first), str(second))
    with connection() as database:
        for table, file, label in zip("ab", (first, second), labels, strict=True):
            _read(database, table, file, label)
        _check_same(database, labels)
        columns = database.execute(
            "SELECT type, avg(1 / a.rank) AS a, avg(1 / b.rank) AS b "
            f"FROM a JOIN b USING ({_KEY}) GROUP BY type, query ORDER BY type, query"
        ).fetchnumpy()
    types = np.asarray(columns["type"], object)
    rows = {name: types == name for name in ordered(set(types.tolist()))}
    first_values, second_values = (
        {name: np.asarray(columns[side])[chosen] for name, chosen in rows.items()} for side in "ab"
    )
    return PairedRanks(first_values, second_values)


def _read(database: duckdb.DuckDBPyConnection, table: str, file: Path, label: str) -> None:
    """A file as a table of the database; RunError if it is not a file of ranks."""
    source, parameters = _READ[format_of(file, FORMATS)], {"file": pattern(file)}
    try:
        with file.open("rb"):
            pass
        described = database.execute(f"DESCRIBE FROM {source}", parameters).fetchall()
        missing = [name for name in _NEEDED if name not in {row[0] for row in described}]
        if missing:
            raise RunError(
                f"{label} is not a file of ranks: it has no column {' and '.join(missing)}; "
                "`evaluate --ranks` writes one"
            )
        selected = ", ".join(f"{name}::{COLUMNS[name]} AS {name}" for name in _NEEDED)
        database.execute(f"CREATE TABLE {table} AS SELECT {selected} FROM {source}", parameters)
    except OSError as error:
        raise RunError(f"{label} cannot be read: {error.strerror}") from error
    except duckdb.InterruptException:
        raise
    except duckdb.Error as error:
        raise RunError(f"{label} is not a file of ranks: {one_line(error)}") from error
    rows, wrong, distinct = database.execute(
        "SELECT count(*), count(*) FILTER (WHERE NOT coalesce(rank >= 1 AND isfinite(rank) AND "
        "question IS NOT NULL, false)), count(DISTINCT (type, query, answer)) "
        f"FROM {table}"
    ).fetchall()[0]
    if not rows or wrong or distinct != rows:
        reason = "it has an answer twice" if rows else "it has no rows"
        reason = f"{wrong:,} rows have no rank of 1 or more, or no question" if wrong else reason
        raise RunError(f"{label} is not a file of ranks: {reason}")


def _check_same(database: duckdb.DuckDBPyConnection, labels: tuple[str, str]) -> None:
    """RunError, with the first difference, unless both tables rank the same answers."""
    first, second = labels
    refusal = f"{second} cannot be compared with {first}"
    counts = [
        dict(
            database.execute(
                f"SELECT type, count(DISTINCT query) FROM {table} GROUP BY type"
            ).fetchall()
        )
        for table in "ab"
    ]
    if alone := {*counts[0]} ^ {*counts[1]}:
        raise RunError(f"{refusal}: only one of them has queries of the types {examples(alone)}")
    for name in ordered(counts[0]):
        own, other = counts[0][name], counts[1][name]
        if own != other:
            raise RunError(
                f"{refusal}: they have {own:,} and {other:,} queries of the type {short(name)}; "
                "evaluate both with the same --limit on the same queries"
            )
    for key, reason in (
        ("type, query, question", "they have other queries, such as {} and {}"),
        (_KEY, "the same query has other hard answers, such as {} and {}"),
    ):
        shown = key.split(", ")[-1]
        only = [
            database.execute(
                f"SELECT {shown} FROM {one} ANTI JOIN {other} USING ({key}) ORDER BY {key} LIMIT 1"
            ).fetchone()
            for one, other in ("ab", "ba")
        ]
        if any(only):
            named = [short(repr(row[0])) if row else "none" for row in only]
            raise RunError(f"{refusal}: {reason.format(*named)}; evaluate both on the same store")
