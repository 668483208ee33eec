"""Plain lines of N-Triples by DuckDB: three usual IRIs each. A parser reads all other lines."""

from __future__ import annotations

from pathlib import Path

import duckdb

from lmpnn_kge.graph.formats.table_columns import (
    check_rows,
    compression,
    connection,
    limit,
    number,
    pattern,
)
from lmpnn_kge.graph.formats.table_rows import MAX_LINE
from lmpnn_kge.graph.numbered import Numbered

#: An IRI that is right beyond doubt; others may be right, too.
_PART = r"(?:[A-Za-z0-9/_.~:@!$&()*+,;=-]|%[0-9A-Fa-f][0-9A-Fa-f])*"
_IRI = rf"<(?:https?://[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*/|urn:[a-z0-9]+:|kge:){_PART}(?:#{_PART})?>"

PLAIN = rf"{_IRI} {_IRI} {_IRI} \."

READ = f"""
    CREATE TEMP TABLE parts AS
    SELECT CASE WHEN plain THEN split_part(line, ' ', 1) END AS h,
           CASE WHEN plain THEN split_part(line, ' ', 2) END AS r,
           CASE WHEN plain THEN split_part(line, ' ', 3) END AS t,
           CASE WHEN NOT plain THEN line END AS rest
    FROM (SELECT line, regexp_full_match(line, $plain) AS plain FROM read_csv($file,
          auto_detect = false, delim = chr(1), quote = '', escape = '', header = false,
          columns = {{'line': 'VARCHAR'}}, comment = '', max_line_size = {MAX_LINE},
          compression = $compression)"""


def read_plain(file: Path) -> tuple[Numbered, bytes] | None:
    """The triples of all plain lines, and the other lines; None if the file is not such a text."""
    try:
        with connection(file) as database:
            values = {"file": pattern(file), "plain": PLAIN, "compression": compression(file)}
            database.execute(f"{READ}{limit(file)})", values)
            check_rows(database, file, "parts")
            rest = database.execute("SELECT rest FROM parts WHERE rest IS NOT NULL").fetchall()
            database.execute(
                "CREATE TEMP VIEW raw AS SELECT h, r, t, rowid FROM parts WHERE rest IS NULL"
            )
            numbered = number(database)
    except duckdb.InterruptException:
        raise
    except duckdb.Error:  # the parser finds out what is wrong
        return None
    if numbered is None:
        return None
    entities, relations = (
        [iri[1:-1] for iri in iris] for iris in (numbered.entities, numbered.relations)
    )
    lines = "".join(f"{line}\n" for (line,) in rest).encode()
    return Numbered(entities, relations, numbered.triples), lines
