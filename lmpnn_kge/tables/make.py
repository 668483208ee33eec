"""Tables of runs: rows that differ in a few settings or in their checkpoint, trained and compared.

The folder of a table has a run folder for every network, called by what sets it apart from the
others (`rotate`, `rotate,epsilon=0.5`), table.json with all results, and a report. What is finished
there is used again, and what is not is gone on with.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmpnn_kge.device import choose_device
from lmpnn_kge.errors import RunError
from lmpnn_kge.files import check_place, write_whole
from lmpnn_kge.lmpnn.wiring import Union
from lmpnn_kge.methods.results import compare_seeds
from lmpnn_kge.queries.sample import sample_store
from lmpnn_kge.reports.published import ABLATION, BACKBONES, BEST, Published, published
from lmpnn_kge.reports.record import read_results
from lmpnn_kge.reports.report import write_report
from lmpnn_kge.runs.inputs import Sample
from lmpnn_kge.runs.run import Run, check_material, check_settings, train_on
from lmpnn_kge.settings import Config
from lmpnn_kge.tables.file import BASE, read_table
from lmpnn_kge.tables.plan import Job, Row, check_seeds, gather_all, jobs_of, plan_rows
from lmpnn_kge.tables.section import Line, table_section
from lmpnn_kge.training.folder import RunFolder, is_run, provenance
from lmpnn_kge.training.loop import Silent, Watch

KIND, FORMAT = "lmpnn-kge table", 1

FILE = "table.json"

Results = Mapping[str, Any]  # as `evaluate --json` prints them


@dataclass(frozen=True)
class RunTable:
    """A finished table."""

    folder: Path
    rows: Mapping[str, Sequence[Results]]  # on test, one for each seed
    report: Path

    def __str__(self) -> str:
        """A row each, in per cent; with several seeds, the mean ± the standard deviation."""
        return compare_seeds(self.rows)


def make_table(
    table: str | Path,
    checkpoints: Sequence[str | Path],
    *,
    backbone: str | None = None,
    dataset: str | Path | None = None,
    queries: str | Path | None = None,
    config: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
    seeds: int | None = None,
    out: str | Path | None = None,
    device: str = "auto",
    beside: Mapping[str, Results] | None = None,
    watch: Watch | None = None,
    tell: Callable[[str], object] = lambda text: None,
    sample: Sample = sample_store,
) -> RunTable:
    """Train and test every row of a table on every checkpoint, and write a report on them.

    table is a shipped one or a file. Each row is trained with one seed, or with so many seeds from
    0 on; beside has rows that are not trained here, as `evaluate --json` prints them.
    """
    configs = read_table(table, config, settings)
    if seeds is not None:
        check_seeds(table, seeds, configs, settings or {})
    choose_device(device)
    materials = gather_all(checkpoints, backbone, dataset, queries, sample)
    name, first = Path(table).stem, materials[0]
    place = f"{name}-{first.name if len(materials) == 1 else first.graph}"
    folder = Path(out or Path("tables") / place)
    rows = list(plan_rows(folder, configs, materials, seeds))
    jobs = jobs_of(rows)
    _check(folder, jobs, rows, beside or {})
    if not is_table(folder):
        _begin(folder, name)
    watch = watch or Silent()
    for number, job in enumerate(jobs, start=1):
        done = (job.folder / "test.json").is_file()
        tell(f"{number} of {len(jobs)}: {job.label}{' is there already' if done else ''}")
        if not done:
            train_on(job.material, job.config, job.folder, device=device, resume=True, watch=watch)
    found: dict[str, Sequence[Results]] = {
        row.label: [_tested(job, row.union, device, watch) for job in row.jobs] for row in rows
    }
    found |= {label: [results] for label, results in (beside or {}).items()}
    _write(folder, name, rows, found)
    return RunTable(folder, found, _report(folder, name, rows, found, beside or {}))


def is_table(folder: Path) -> bool:
    """Whether a folder is that of a table."""
    try:
        content = json.loads((folder / FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(content, dict) and content.get("kind") == KIND


def _check(
    folder: Path, jobs: Sequence[Job], rows: Sequence[Row], beside: Mapping[str, Results]
) -> None:
    """LmpnnError where the table cannot be made, which is best known before the work."""
    check_place(folder, may_replace=is_table)
    for job in jobs:
        if is_run(job.folder, Config):
            run = RunFolder.open(job.folder, Config)
            check_material(run, job.material)
            check_settings(run, job.config)
        else:
            RunFolder.check_new(job.folder)
    for label, results in beside.items():
        read_results(results, label)
        if any(label == row.label for row in rows):
            raise RunError(f"{label!r} is a row of the table; choose another name")


def _begin(folder: Path, name: str) -> None:
    """Make the folder, with a mark that says what it is."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"{folder} cannot be made: {error.strerror}") from error
    _write(folder, name, [], {})


def _tested(job: Job, union: Union, device: str, watch: Watch) -> Results:
    """The results of a trained network on test, with its own reading of disjunctions or another."""
    run = RunFolder.open(job.folder, Config)
    file = "test.json" if union == run.config.union else f"test-{union}.json"
    if not run.has(file):
        opened = Run.open(run.path, checkpoint=job.material.checkpoint, device=device)
        queries = job.material.queries
        results = opened.evaluate("test", queries=queries, union=union, progress=watch.validate)
        run.write_json(file, results)
    results = run.read_json(file)
    read_results(results, str(run.path / file))
    return results


def _write(
    folder: Path, name: str, rows: Sequence[Row], found: Mapping[str, Sequence[Results]]
) -> None:
    """All results, for programs."""
    made = {
        row.label: {"runs": [job.folder.name for job in row.jobs], "union": row.union}
        for row in rows
    }
    content = {
        "kind": KIND,
        "format": FORMAT,
        **provenance(),
        "table": name,
        "rows": {
            label: {**made.get(label, {}), "results": results} for label, results in found.items()
        },
    }
    write_whole(folder / FILE, (json.dumps(content, indent=1, allow_nan=False) + "\n").encode())


def _report(
    folder: Path,
    name: str,
    rows: Sequence[Row],
    found: Mapping[str, Sequence[Results]],
    beside: Mapping[str, Results],
) -> Path:
    """On all runs, with the table itself before them."""
    lines = [Line(row.label, found[row.label], row.base, _published(row, rows)) for row in rows]
    lines += [Line(label, [results]) for label, results in beside.items()]
    asked = {
        job.label: results
        for row in rows
        if row.asked_otherwise and not row.known
        for job, results in zip(row.jobs, found[row.label], strict=True)
    }
    return write_report(
        {job.label: job.folder for job in jobs_of(rows)},
        folder / "report",
        title=f"{name} on {rows[0].jobs[0].material.store.graph}",
        sections=[table_section(lines)],
        beside={**asked, **beside},
    )


def _published(row: Row, rows: Sequence[Row]) -> Published | None:
    """What the paper prints for a row: of its ablation, or of the comparison of embeddings."""
    material = row.jobs[0].material
    if all(other.name == BASE for other in rows):
        backbone = material.model
        found = published(material.store.graph, table=BACKBONES, model="LMPNN", backbone=backbone)
    else:
        setting = BEST if row.name == BASE else row.name
        found = [p for p in published(material.store.graph, table=ABLATION) if p.setting == setting]
    return found[0] if found else None
