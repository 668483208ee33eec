"""Progress on terminals: bars that tell where training, evaluation and sampling stand."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lmpnn_kge.errors import printable

if TYPE_CHECKING:
    from rich.progress import Progress
    from torch import Tensor

    from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph
    from lmpnn_kge.queries.sample import Request
    from lmpnn_kge.queries.store import QueryStore
    from lmpnn_kge.training.folder import RunFolder

#: Seconds between two looks at the loss, each of which waits for the device.
GLANCE = 0.5


@contextmanager
def bar() -> Iterator[Progress]:
    """A progress bar on standard error, or none where that is no terminal."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}", markup=False),  # a type may be called [/b]
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        yield progress


def sample_with_progress(
    graph: KnowledgeGraph,
    folder: str | Path,
    requests: list[Request] | None = None,
    seed: int = 0,
    provenance: Mapping[str, Any] | None = None,
) -> QueryStore:
    """Sample queries, under a progress bar."""
    from lmpnn_kge.queries.sample import betae_preset, sample_store

    requests = requests or betae_preset(graph)
    done: dict[tuple[str, str], int] = {}
    with bar() as progress:
        task = progress.add_task("sampling", total=sum(request.count or 0 for request in requests))

        def show(request: Request, count: int) -> None:
            done[request.split, request.name] = min(count, request.count or 0)
            name = f"{request.split} {request.name}"
            progress.update(task, completed=sum(done.values()), description=name)

        return sample_store(graph, folder, requests, seed, provenance, show)


@contextmanager
def aside(progress: Progress) -> Iterator[None]:
    """A bar that another takes the place of, for there may be one at a time."""
    progress.stop()
    yield
    progress.start()


def sampling_aside(progress: Progress) -> Callable[[KnowledgeGraph, Path], QueryStore]:
    """Samples queries under a bar of its own, which takes the place of another, and says so."""

    def sample(graph: KnowledgeGraph, folder: Path) -> QueryStore:
        click.echo(f"queries   sampling to {printable(str(folder))}, once", err=True)
        with aside(progress):
            return sample_with_progress(graph, folder)

    return sample


class TrainingBar:
    """Tells what training does: a bar on a terminal, a line for every epoch anywhere."""

    def __init__(self, progress: Progress, board: Any = None):
        self.progress = progress
        self.board = board  # a TensorBoard writer, if wanted
        self.task = progress.add_task("", visible=False)
        self.began = self.looked = 0.0
        self.queries = self.epochs = 0

    def start(self, folder: RunFolder[Any], facts: Mapping[str, str]) -> None:
        """Say what is trained on what, before the long wait."""
        self.epochs = folder.config.epochs
        for name, value in {**facts, "run": str(folder.path)}.items():
            click.echo(f"{name:<9} {printable(value)}", err=True)

    def begin(self, epoch: int, done: int, steps: int) -> None:
        self.began = self.looked = time.monotonic()
        self.queries = 0
        self.progress.reset(
            self.task,
            total=steps,
            completed=done,
            description=f"epoch {epoch + 1}/{self.epochs}",
            visible=True,
        )

    def step(self, queries: int, loss: Tensor) -> None:
        self.queries += queries
        self.progress.advance(self.task)
        now = time.monotonic()
        if now - self.looked > GLANCE and not self.progress.disable:
            self.looked = now
            speed = self.queries / (now - self.began)
            name = self.progress.tasks[0].description.split(" · ")[0]
            text = f"{name} · loss {loss.item():.3f} · {speed:,.0f} queries/s"
            self.progress.update(self.task, description=text)

    def validate(self, name: str, done: int) -> None:
        self.progress.update(self.task, description=f"evaluating {printable(name)}")

    def epoch(self, record: Mapping[str, Any]) -> None:
        speed = record["queries_per_second"]
        text = f"epoch {record['epoch']:>3}/{self.epochs}  loss {record['loss']:.4f}"
        text += f"  {speed:,.0f} queries/s" if speed else ""
        scalars = {"loss": record["loss"], "learning_rate": record["learning_rate"]}
        if "valid" in record:
            told = _headline(record["valid"])
            text += "  valid " + " ".join(f"{name} {100 * mrr:.1f}" for name, mrr in told.items())
            scalars |= {f"valid/{name}": mrr for name, mrr in told.items()}
        # Above the bar; where there is no terminal, a line like any other.
        self.progress.console.print(printable(text), highlight=False, markup=False, soft_wrap=True)
        if self.board is not None:
            for name, value in scalars.items():
                self.board.add_scalar(name, value, record["epoch"])
            self.board.flush()


def _headline(results: Mapping[str, Any]) -> dict[str, float]:
    """What a line has room for: averages, or else every type; of link prediction all there is."""
    if "types" not in results:
        return dict(results)
    averages = {name: results[name] for name in ("A_P", "A_N") if results[name] is not None}
    return averages or {name: found["mrr"] for name, found in results["types"].items()}
