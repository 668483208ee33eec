"""Formulas: read, print, draw, answer and ask them; what is answered must be right."""

import json
import shutil
import xml.etree.ElementTree as ElementTree
import zlib
from functools import cache
from pathlib import Path
from random import Random

from lmpnn_kge.errors import QueryError, TimeLimitError
from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph
from lmpnn_kge.query.draw import draw
from lmpnn_kge.query.formula import FREE, Formula, Variable, literals, terms
from lmpnn_kge.query.normal_form import normalise
from lmpnn_kge.query.parser import parse
from lmpnn_kge.runs.run import Run
from lmpnn_kge.runs.train import train
from lmpnn_kge.work.deadline import time_limit

from ..conftest import TOY
from ..formulas import ENTITIES, RELATIONS, brute_force
from ..toy_runs import ROTATE, sample_few, tiny
from .campaign import LONGEST, Campaign, Outcome, Steps, Wrong, command
from .questions import SMALL, question

#: Seconds for the answers to a formula.
TIMEOUT = 5.0

SPLITS = ("train", "valid", "test")


def write_inputs(inputs: Path) -> None:
    """A small graph in three splits, and a run on the toy graph that has been asked once."""
    random = Random(11)
    folder = inputs / "small"
    folder.mkdir()
    names = [(h, r, t) for h in SMALL[0] for r in SMALL[1] for t in SMALL[0]]
    triples = random.sample(names, 14)
    # A first triple for each name, so that the names have the numbers that they are written with.
    firsts = [(h, SMALL[1][n % RELATIONS], SMALL[0][0]) for n, h in enumerate(SMALL[0])]
    for split, rows in zip(
        SPLITS, (firsts + triples[:8], triples[8:11], triples[11:]), strict=True
    ):
        (folder / f"{split}.txt").write_text("".join("\t".join(row) + "\n" for row in rows))
    shutil.copytree(TOY / "dataset", inputs / "toy")
    shutil.copy(ROTATE, inputs / "rotate.pt")
    sample_few(KnowledgeGraph.open(inputs / "toy"), inputs / "queries")
    train(
        inputs / "rotate.pt",
        dataset=inputs / "toy",
        queries=inputs / "queries",
        out=inputs / "run",
        settings=tiny(),
    )
    Run.open(inputs / "run").ask('friend_of("Ada Voss", ?)', explain=1)


@cache
def small_graph(inputs: Path) -> KnowledgeGraph:
    return KnowledgeGraph.open(inputs / "small")


@cache
def toy_run(inputs: Path) -> Run:
    return Run.open(inputs / "run")


def toy_names(run: Run) -> tuple[list[str], list[str]]:
    return run.vocabulary.entity_ids, run.vocabulary.relation_ids


class Formulas(Campaign):
    """The words of a question, one step for each."""

    name = "formulas"
    seconds = 120
    memory = 6 << 30  # DuckDB reserves address space that it does not use
    weight = 2

    def prepare(self, inputs: Path) -> None:
        write_inputs(inputs)

    def draw(self, number: int, random: Random, inputs: Path) -> Steps:
        names = toy_names(toy_run(inputs)) if number % 4 == 0 else SMALL
        return question(random, names)

    def run(self, steps: Steps, inputs: Path, scratch: Path) -> Outcome:
        text = "".join(steps)
        outcome = run_command(text, inputs, scratch)
        try:
            formula = parse(text)
        except QueryError as error:
            return self._refused(error, outcome)
        if parse(str(formula)) != formula:
            raise Wrong(f"it prints as another formula: {formula}")
        try:
            normalise(formula)
        except QueryError as error:
            return self._refused(error, outcome)
        ElementTree.fromstring(draw(formula).encode())
        return max(check_answers(formula, inputs), check_asking(text, inputs), key=_rank)

    def _refused(self, error: QueryError, of_command: Outcome | None) -> Outcome:
        if len(str(error)) + len(error.excerpt or "") > LONGEST:
            raise Wrong(f"a long message: {str(error)[:200]}")
        if of_command is Outcome.ACCEPTED:
            raise Wrong(f"a command accepts what cannot be read: {error}")
        return Outcome.REFUSED


def _rank(outcome: Outcome) -> bool:
    return outcome is Outcome.ACCEPTED


def run_command(text: str, inputs: Path, scratch: Path) -> Outcome | None:
    """Every tenth formula as the argument of a command: answer, ask or draw."""
    if text.startswith("-") or "\0" in text:
        return None
    match zlib.crc32(text.encode()) % 30:
        case 0:
            limit = ("--timeout", str(TIMEOUT))
            return command("answer", text, "--dataset", inputs / "small", *limit)
        case 1:
            return command("draw", text, "-o", scratch / "picture.svg")
        case 2 if text.strip():
            return command("ask", inputs / "run", text, "--timeout", str(TIMEOUT), "--explain")
    return None


def check_answers(formula: Formula, inputs: Path) -> Outcome:
    """The exact answers by each split, against trying every assignment if that is possible."""
    graph = small_graph(inputs)
    variables = [t for t in terms(formula) if isinstance(t, Variable) and t != FREE]
    few = len(variables) <= 5 and sum(1 for _ in literals(formula)) <= 14
    for split in SPLITS:
        try:
            with time_limit(TIMEOUT):
                rows = graph.answer_rows(formula, split).tolist()
        except QueryError:  # a name that the graph lacks, too many combinations or no time
            return Outcome.REFUSED
        if few and rows != (right := brute_force(formula, edges(inputs, split))):
            raise Wrong(f"by {split} the answers are {rows}, but {right} are right")
    with time_limit(TIMEOUT):
        try:
            witnesses = graph.witnesses(formula, range(ENTITIES), "test")
        except TimeLimitError:
            return Outcome.ACCEPTED
    having = [entity for entity, found in enumerate(witnesses) if found]
    if having != rows:
        raise Wrong(f"entities {having} have witnesses, but {rows} are answers")
    return Outcome.ACCEPTED


@cache
def edges(inputs: Path, split: str) -> frozenset[tuple[int, int, int]]:
    graph = small_graph(inputs)
    known = SPLITS[: SPLITS.index(split) + 1]
    rows = [tuple(row) for name in known for row in graph.triples(name).tolist()]
    return frozenset((h, r, t) for h, r, t in rows)


def check_asking(text: str, inputs: Path) -> Outcome:
    """The answers of a run: known ones follow from the graph, and records can be written."""
    run = toy_run(inputs)
    (answers,) = run.ask_each([text], 5, timeout=TIMEOUT, explain=1)
    if isinstance(answers, QueryError):
        return Outcome.REFUSED
    assert run.graph is not None
    with time_limit(TIMEOUT):
        known, confirmed = (set(run.graph.answer(text, split)) for split in ("train", "test"))
    for answer in answers:
        if (answer.known, answer.confirmed) != (answer.id in known, answer.id in confirmed):
            raise Wrong(f"{answer.id} is marked {answer.mark!r}")
        if answer.probability is not None and not 0 <= answer.probability <= 1:
            raise Wrong(f"{answer.id} has the probability {answer.probability}")
        json.dumps([reason.to_json() for reason in answer.reasons], allow_nan=False)
    return Outcome.ACCEPTED
