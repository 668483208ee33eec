"""Five million triples: split from text, read as Parquet and N-Triples, and opened again.

An argument makes the graph smaller: `python -m tests.benchmarks.bench_graph 500000`.
"""

import gzip
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import duckdb
import numpy as np

from lmpnn_kge import KnowledgeGraph, split_file
from lmpnn_kge.graph.formats.sources import read_source

from .measure import peak_megabytes

TRIPLES, RELATIONS = 5_000_000, 500


def write_graph(folder: Path, count: int) -> None:
    """Heads and tails by a power law, one entity for every five triples, as .tsv and .nt."""
    drawn, entities = np.random.default_rng(0), max(1, count // 5)
    names = drawn.permutation(entities)
    heads, tails = (names[(entities * drawn.random(count) ** 3).astype(int)] for _ in "ht")
    heads[:entities] = np.arange(entities)  # so that each of them occurs
    relations = (RELATIONS * drawn.random(count) ** 2).astype(int)
    with duckdb.connect() as database:
        database.register("rows", {"h": heads, "r": relations, "t": tails})
        database.execute(
            "CREATE TABLE named AS SELECT concat('entity/Q', h) AS head, concat('P', r) AS "
            "relation, concat('entity/Q', t) AS tail FROM rows"
        )
        named = database.table("named")
        named.write_csv(str(folder / "big.tsv"), sep="\t", header=False)
        named.write_parquet(str(folder / "big.parquet"))
        iri = "concat('<http://example.org/', {}, '>') AS {}".format
        lines = named.project(", ".join(map(iri, named.columns, named.columns)) + ", '.' AS dot")
        lines.write_csv(str(folder / "big.nt"), sep=" ", header=False, quotechar="")
    with (folder / "big.tsv").open("rb") as text, gzip.open(folder / "big.tsv.gz", "wb", 1) as out:
        shutil.copyfileobj(text, out)


def report(what: str, count: int, call: Callable[[], object]) -> None:
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(
        f"{what:28} {wall:6.2f} s, {cpu:6.2f} s of CPU, {count / wall:10,.0f} triples/s, peak "
        f"{peak_megabytes():6,.0f} MB",
        flush=True,
    )


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else TRIPLES
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_graph(folder, count)
        for name in ("big.tsv", "big.tsv.gz"):
            out = folder / f"from-{name}"
            report(
                f"split {name}", count, lambda name=name, out=out: split_file(folder / name, out)
            )
            for place in ("first time", "again"):
                report(f"open, {place}", count, lambda out=out: KnowledgeGraph.open(out))
        report("read big.parquet", count, lambda: read_source(folder / "big.parquet"))
        if find_spec("pyoxigraph"):
            report("read big.nt", count, lambda: read_source(folder / "big.nt"))


if __name__ == "__main__":
    main()
