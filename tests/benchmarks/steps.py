"""Every step from triples to an answer on a large graph: its time and its peak memory.

`python -m tests.benchmarks.steps FOLDER [STEP...]` runs steps in FOLDER, each in a process of
its own, in this order: graph, split, sample, table, train, evaluate, ask. The graph has about 4.6
million entities and 21 million triples; the table is random, of width 128.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import numpy as np

from lmpnn_kge import backbone_class, save_backbone
from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph
from lmpnn_kge.queries.sample import betae_preset, sample_store

from .bench_large import typed_graph

TRIPLES, DIM = 21_000_000, 128

#: Queries per type, 100,000 in all: ten types are trained on, and 14 are in valid and test each.
TRAIN, HELD_OUT = 9_720, 100


def graph(count: int = TRIPLES) -> None:
    """Triples in which every entity occurs."""
    made = typed_graph(count)
    triples = np.concatenate([made.triples(split) for split in ("train", "valid", "test")])
    draw = np.random.default_rng(1)
    alone = np.setdiff1d(np.arange(made.num_entities), triples[:, ::2])
    others = triples[draw.integers(len(triples), size=len(alone))]
    joined = np.stack([alone, others[:, 1], others[:, 2]], axis=1)
    head, relation, tail = np.concatenate([triples, joined]).T
    with duckdb.connect() as connection:
        connection.register("triples", {"h": head, "r": relation, "t": tail})
        connection.execute(
            "COPY (SELECT 'e' || h, 'r' || r, 'e' || t FROM triples) TO 'triples.tsv' "
            "(DELIMITER '\t', HEADER false)"
        )


def sample() -> None:
    dataset = KnowledgeGraph.open("graph")
    requests = [
        request
        for count, splits in ((TRAIN, ("train",)), (HELD_OUT, ("valid", "test")))
        for request in betae_preset(dataset, None, count)
        if request.split in splits
    ]
    store = sample_store(dataset, Path("queries"), requests)
    print(f"{len(store):,} queries")


def table() -> None:
    names = KnowledgeGraph.open("graph").vocabulary
    sizes = names.num_entities, names.num_relations, DIM
    save_backbone(backbone_class("complex").random(*sizes), "random.safetensors", dataset="graph")


def lmpnn_kge(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "lmpnn_kge", *arguments], check=True)


INPUTS = ("--checkpoint", "random.safetensors", "--dataset", "graph", "--queries", "queries")

STEPS = {
    "graph": graph,
    "split": lambda: lmpnn_kge("split", "triples.tsv", "-o", "graph"),
    "sample": sample,
    "table": table,
    "train": lambda: lmpnn_kge(
        *("train", *INPUTS, "--config", "small", "--epochs", "1", "--out", "run"),
        *("--set", "validation_queries=50"),
    ),
    "evaluate": lambda: lmpnn_kge("evaluate", "run"),
    "ask": lambda: lmpnn_kge("ask", "run", "r1(e1, ?x) & r2(?x, ?)", "--method", "lmpnn"),
}


def timed(step: str) -> None:
    """Run a step in a process of its own, which starts others only to wait for them."""
    start = time.perf_counter()
    child = subprocess.Popen([sys.executable, "-m", __spec__.name, "--only", step])
    _, status, used = os.wait4(child.pid, 0)
    taken = time.perf_counter() - start
    # The peak of a process that has ended is the largest of its own and of those it waited for.
    memory, cpu = used.ru_maxrss / 1e6, used.ru_utime + used.ru_stime
    print(f"{step}: {taken:,.0f} s, {cpu:,.0f} s of CPU, peak {memory:.2f} GB", flush=True)
    if status:
        sys.exit(f"{step} failed")


def main() -> None:
    if sys.argv[1] == "--only":
        STEPS[sys.argv[2]]()
        return
    os.environ["PYTHONPATH"] = os.getcwd()  # because the folder is another one from here on
    folder, *steps = sys.argv[1:]
    Path(folder).mkdir(parents=True, exist_ok=True)
    os.chdir(folder)
    for step in steps or STEPS:
        timed(step)


if __name__ == "__main__":
    main()
