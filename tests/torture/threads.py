"""Threads that share a graph and a run: every answer equals that of one thread alone."""

import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

from lmpnn_kge.errors import QueryError
from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph
from lmpnn_kge.query.draw import draw
from lmpnn_kge.query.parser import parse
from lmpnn_kge.runs.run import Run

from .campaign import Campaign, Outcome, Steps, Wrong
from .formulas import SPLITS, toy_names, toy_run, write_inputs
from .questions import SMALL, connected, formula

THREADS = 16

#: Scores that are computed beside others may be rounded in another way.
CLOSE = 1e-4

METHODS = ("hybrid", "search", "lmpnn", "cqd-beam")


class Threads(Campaign):
    """Questions, each with the way in which it is asked; all are asked by 16 threads at once."""

    name = "threads"
    seconds = 120
    memory = 8 << 30

    def prepare(self, inputs: Path) -> None:
        write_inputs(inputs)

    def draw(self, number: int, random: Random, inputs: Path) -> Steps:
        toy = toy_names(toy_run(inputs))
        steps: Steps = []
        for _ in range(24):
            way = random.choice(["answer", "refuted", "draw", *METHODS])
            names = toy if way in METHODS else SMALL
            words = random.choice(
                [formula(random, names, 2), connected(random, names, random.randint(1, 4))]
            )
            steps.append([way, random.choice(SPLITS), "".join(words)])
        return steps

    def run(self, steps: Steps, inputs: Path, scratch: Path) -> Outcome:
        alone = [
            ask(step, KnowledgeGraph.open(inputs / "small"), toy_run(inputs)) for step in steps
        ]
        graph, run = KnowledgeGraph.open(inputs / "small"), Run.open(inputs / "run")
        order = Random(len(steps)).sample(range(len(steps)), len(steps)) * 2
        with ThreadPoolExecutor(THREADS) as pool:
            together = list(pool.map(lambda n: ask(steps[n], graph, run), order))
        for number, answer in zip(order, together, strict=True):
            if not same(answer, alone[number]):
                raise Wrong(f"{steps[number]}: {answer} is not {alone[number]}")
        refused = all(isinstance(answer, str) for answer in alone)
        return Outcome.REFUSED if refused else Outcome.ACCEPTED


def ask(step: Any, graph: KnowledgeGraph, run: Run) -> Any:
    """What one question gives: rows, a picture or ranked answers; the text of a QueryError."""
    way, split, text = step
    try:
        if way == "answer":
            return graph.answer_rows(text, split).tolist()
        if way == "refuted":
            return graph.refuted_rows(text, split).tolist()
        if way == "draw":
            return [draw(parse(text))]
        explain = 1 if way in ("hybrid", "search") else 0
        return [
            (answer.id, answer.score, answer.probability, answer.known, answer.confirmed)
            for answer in run.ask(text, 8, method=way, explain=explain)
        ]
    except QueryError as error:
        return str(error)


def same(one: Any, other: Any) -> bool:
    """Whether two results are equal, but for rounding and for the order of equal scores."""
    if not (isinstance(one, list) and one and isinstance(one[0], tuple)):
        return bool(one == other)
    if not isinstance(other, list) or len(one) != len(other):
        return False
    if not all(close(a[1], b[1]) for a, b in zip(one, other, strict=True)):
        return False
    last = one[-1][1]  # entities that are as good as the last one may take its place
    first, second = (
        {row[0]: row for row in rows if not close(row[1], last)} for rows in (one, other)
    )
    return first.keys() == second.keys() and all(
        first[id_][3:] == second[id_][3:]
        and close(first[id_][1], second[id_][1])
        and close(first[id_][2] or 0, second[id_][2] or 0)
        for id_ in first
    )


def close(one: float, other: float) -> bool:
    return one == other or math.isclose(one, other, rel_tol=CLOSE, abs_tol=CLOSE)
