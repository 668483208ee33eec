"""How the cost of every command grows with the graph and with the width of the embedding.

`python -m tests.benchmarks.growth FOLDER [SIZE...]` measures graphs of 1, 4 and 64 times the
entities of FB15k-237, or of the given SIZEs, with random embeddings of width 128 and 1000. Every
step is a process of its own with one thread. It prints two tables in Markdown: the CPU seconds to
open what a command needs, those of its work per unit and the peak memory; and the formulas of cost
that fit them best. FOLDER keeps what was measured: the next call measures only what is missing.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from itertools import combinations, islice
from pathlib import Path

import numpy as np
import torch

from lmpnn_kge import Run, backbone_class, save_backbone
from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph
from lmpnn_kge.graph.split import split_file
from lmpnn_kge.methods.rank import capped
from lmpnn_kge.queries.question_texts import question_texts
from lmpnn_kge.queries.sample import betae_preset, sample_store
from lmpnn_kge.queries.store import QueryStore
from lmpnn_kge.runs.inputs import gather
from lmpnn_kge.runs.pretrain import pretrain_settings
from lmpnn_kge.runs.train import train_on
from lmpnn_kge.settings.files import load_config
from lmpnn_kge.training.embedding import EmbeddingTask
from lmpnn_kge.training.folder import RunFolder
from lmpnn_kge.training.loop import Loop

from .steps import graph

ENTITIES, PER_ENTITY = 14_541, 4.6  # of FB15k-237; triples for each entity of the random graphs
SIZES, WIDTHS = (1, 4, 64), (128, 1000)

#: Queries per type: to train on, to fit on and to rank; questions per method; steps of pretraining.
TRAIN, VALID, TEST, QUESTIONS, STEPS = 1024, 60, 20, 14, 4

#: A table of more numbers than this stays in its file, of which the device holds TABLE_MEMORY.
LARGE, TABLE_MEMORY = 600_000_000, "1GB"


@dataclass(frozen=True)
class Cost:
    """What a step took: CPU seconds to open its inputs, and for its work on so many units."""

    opened: float
    work: float
    units: int
    entities: int
    triples: int
    peak: float = 0.0  # GB

    @property
    def each(self) -> float:
        return self.work / self.units


def table_memory(entities: int, width: int) -> str | None:
    return TABLE_MEMORY if entities * width > LARGE else None


def cost(started: float, opened: float, units: int, size: tuple[int, int]) -> Cost:
    return Cost(opened - started, time.process_time() - opened, units, *size)


def size_of(folder: str = "graph") -> tuple[int, int]:
    """Entities and triples of the graph, without a look at its names."""
    entities, triples = json.loads(Path(folder, "size.json").read_text())
    return entities, triples


def split(_: int) -> Cost:
    start = time.process_time()
    made = split_file(("triples.tsv",), "graph")
    triples = len(made.edges[0])
    Path("graph", "size.json").write_text(json.dumps([made.num_entities, triples]))
    return cost(start, start, 1, size_of())


def sample(_: int) -> Cost:
    """A store of about 11,000 queries of all types."""
    start = time.process_time()
    dataset = KnowledgeGraph.open("graph")
    assert dataset.database
    opened = time.process_time()
    wanted = (("train", TRAIN), ("valid", VALID), ("test", TEST))
    requests = [
        r for s, count in wanted for r in betae_preset(dataset, None, count) if r.split == s
    ]
    sample_store(dataset, "queries", requests)
    return cost(start, opened, 1, size_of())


def pretrain(width: int, negatives: int = 0) -> Cost:
    """Some steps of a batch; nothing is written."""
    start = time.process_time()
    kind, dataset = backbone_class("complex"), KnowledgeGraph.open("graph")
    changes = {"dim": width, "negatives": negatives, "penalty": 0.08}
    settings = pretrain_settings(kind, None, changes)
    task = EmbeddingTask(kind, dataset, settings, torch.device("cpu"))
    loop = Loop(task, RunFolder(Path("nowhere"), settings, None))
    batches = islice(task.batches(0, 0), STEPS)
    opened = time.process_time()
    questions = 0
    for batch in batches:
        loop.step(batch)
        questions += sum(map(task.size, batch))
    return cost(start, opened, questions, size_of())


def table(width: int) -> Cost:
    """A checkpoint with a random table."""
    start = time.process_time()
    names = KnowledgeGraph.open("graph").vocabulary
    opened = time.process_time()
    sizes = names.num_entities, names.num_relations, width
    made = backbone_class("complex").random(*sizes)
    save_backbone(made, f"table-{width}.safetensors", dataset="graph")
    return cost(start, opened, 1, size_of())


def train(width: int) -> Cost:
    """An epoch of 10,240 queries, validated on one query per type and not tested."""
    start = time.process_time()
    inputs = gather(f"table-{width}.safetensors", dataset="graph", queries="queries")
    opened = time.process_time()
    settings = load_config("small", {"epochs": 1, "validation_queries": 1, "precision": "fp32"})
    memory = table_memory(size_of()[0], width)
    train_on(inputs, settings, f"run-{width}", table_memory=memory, test=False)
    return cost(start, opened, 1, size_of())


def opened_run(width: int) -> Run:
    return Run.open(f"run-{width}", table_memory=table_memory(size_of()[0], width))


def evaluate(width: int) -> Cost:
    """Ranks of test queries by the network."""
    start = time.process_time()
    run = opened_run(width)
    store, _ = run.queries("test")
    opened = time.process_time()
    run.ranks("test", queries=store)
    return cost(start, opened, len(store), size_of())


def ask(width: int, method: str) -> Cost:
    """Questions of all types, one after the other, with a method that is ready."""
    start = time.process_time()
    run = opened_run(width)
    few = capped(QueryStore.open("queries").queries("test"), 1)
    questions = [str(question_texts(run.vocabulary, group)[0]) for group in few.values()]
    run.ask(questions[0], method=method)
    opened = time.process_time()
    for question in questions[:QUESTIONS]:
        run.ask(question, method=method)
    return cost(start, opened, len(questions[:QUESTIONS]), size_of())


def fit(width: int, method: str) -> Cost:
    """What a method learns on the valid queries at its first use, and the answer to a question."""
    start = time.process_time()
    run = opened_run(width)
    assert run.knowledge is not None
    valid = len(run.queries("valid")[0])
    opened = time.process_time()
    run.rank("r1(e1, ?)", 1, method=method)
    return cost(start, opened, valid, size_of())


#: Each step with its unit, and whether it depends on the width.
MEASURED: dict[str, tuple[Callable[[int], Cost], str, bool]] = {
    "split": (split, "graph", False),
    "sample": (sample, "store", False),
    "pretrain": (pretrain, "question", True),
    "pretrain, negatives=1024": (partial(pretrain, negatives=1024), "question", True),
    "table": (table, "table", True),
    "train": (train, "epoch", True),
    "evaluate": (evaluate, "query", True),
    "ask, lmpnn": (partial(ask, method="lmpnn"), "question", True),
    "fit, search": (partial(fit, method="search"), "valid query", True),
    "ask, search": (partial(ask, method="search"), "question", True),
    "fit, hybrid": (partial(fit, method="hybrid"), "valid query", True),
    "ask, hybrid": (partial(ask, method="hybrid"), "question", True),
}

#: Not measured: training a table takes eight times its size, here 30 GB.
TOO_LARGE = {("pretrain", 64, 1000), ("pretrain, negatives=1024", 64, 1000)}

#: The terms of which costs may consist, with their names.
TERMS: dict[str, Callable[[Cost, int], float]] = {
    "": lambda cost, width: 1.0,
    "T": lambda cost, width: cost.triples / 1e6,
    "d": lambda cost, width: width / 1e3,
    "E·d": lambda cost, width: cost.entities * width / 1e9,
}

Key = tuple[str, int, int]  # step, size, width


def measure(step: str, size: int, width: int) -> Cost:
    """Run a step in a process of its own; its peak is that of the process."""
    command = [sys.executable, "-m", __spec__.name, "--only", step, str(width)]
    child = subprocess.Popen(command, cwd=str(size), stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    *_, line = child.stdout.read().splitlines() or [""]
    _, status, used = os.wait4(child.pid, 0)
    if status:
        sys.exit(f"{step} failed for size {size} and width {width}")
    return Cost(**{**json.loads(line), "peak": used.ru_maxrss / 1e6})


def fitted(rows: list[tuple[Cost, int, float]], names: tuple[str, ...]) -> str:
    """The sum of terms, none of them negative, with the smallest relative error.

    rows has a cost, a width and the figure to explain.
    """
    best, formula = np.inf, "–"
    for count in range(1, len(names) + 1):
        for chosen in combinations(names, count):
            terms = np.array([[TERMS[n](c, w) / y for n in chosen] for c, w, y in rows])
            factors, *_ = np.linalg.lstsq(terms, np.ones(len(rows)))
            error = float(np.abs(terms @ factors - 1).max())
            if (factors >= 0).all() and error < 0.98 * best:
                parts = (f"{f:.3g} {n}".strip() for f, n in zip(factors, chosen, strict=True))
                best, formula = error, f"{' + '.join(parts)} (±{100 * error:.0f} %)"
    return formula


def report(costs: dict[Key, Cost]) -> None:
    """Both tables."""
    print("| step | size | width | open, s | work | peak, GB |\n|---|---|---|---|---|---|")
    for (step, size, width), spent in costs.items():
        _, unit, wide = MEASURED[step]
        work = f"{1e3 * spent.each:.3g} ms per {unit}"
        row = step, f"{size}×", width if wide else "", f"{spent.opened:.1f}", work
        print(f"| {' | '.join(map(str, row))} | {spent.peak:.2f} |")
    print("\n| step | open, s | work, ms per unit | peak, GB |\n|---|---|---|---|")
    for step, (_, _, wide) in MEASURED.items():
        rows = [(c, width) for (name, _, width), c in costs.items() if name == step]
        shared = ("", "T", "E·d") if wide else ("", "T")
        figures = (
            ([(c, w, c.opened or 1e-9) for c, w in rows], shared),
            ([(c, w, 1e3 * c.each) for c, w in rows], ("", "d", "E·d") if wide else shared),
            ([(c, w, c.peak) for c, w in rows], shared),
        )
        print(f"| {step} | {' | '.join(fitted(*figure) for figure in figures)} |")


def main() -> None:
    if sys.argv[1] == "--only":
        step, width = sys.argv[2:]
        print(json.dumps(asdict(MEASURED[step][0](int(width)))))
        return
    if sys.argv[1] == "--graph":
        graph(int(int(sys.argv[2]) * ENTITIES * PER_ENTITY))
        return
    os.environ |= {"PYTHONPATH": os.getcwd(), "OMP_NUM_THREADS": "1"}
    folder, *sizes = sys.argv[1:]
    Path(folder).mkdir(parents=True, exist_ok=True)
    os.chdir(folder)
    kept = Path("costs.json")
    costs: dict[Key, Cost] = {}
    if kept.exists():
        costs = {(n, s, w): Cost(**spent) for n, s, w, spent in json.loads(kept.read_text())}
    for size in map(int, sizes or SIZES):
        Path(str(size)).mkdir(exist_ok=True)
        if not Path(str(size), "triples.tsv").exists():
            command = [sys.executable, "-m", __spec__.name, "--graph", str(size)]
            subprocess.run(command, cwd=str(size), check=True)
        for width in WIDTHS:
            for step, (_, _, wide) in MEASURED.items():
                key = step, size, width if wide else WIDTHS[0]
                if key not in costs and key not in TOO_LARGE:
                    costs[key] = measure(*key)
                    print(*key, costs[key], file=sys.stderr, flush=True)
                    kept.write_text(json.dumps([[*k, asdict(c)] for k, c in costs.items()]))
    report(costs)


if __name__ == "__main__":
    main()
