"""Tables of runs: rows that differ in a few settings or in their checkpoint, trained and compared.

The folder of a table has a run folder for every network, named after its backbone and its changed
settings (`rotate`, `rotate,epsilon=0.5`), a file with results for every other method
(`rotate.hybrid.json`), table.json with all results, and a report. What is finished is used again,
and unfinished runs are resumed.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmpnn_kge.device import choose_device
from lmpnn_kge.errors import RunError
from lmpnn_kge.files import check_target, read_text, replace_file
from lmpnn_kge.methods.query_set import QuerySet
from lmpnn_kge.methods.results import Results
from lmpnn_kge.reports.published import ABLATION, BACKBONES, BEST, Published, published
from lmpnn_kge.reports.report import write_report
from lmpnn_kge.reports.result_tables import ReportRow
from lmpnn_kge.runs.inputs import Inputs
from lmpnn_kge.runs.kept import TEST
from lmpnn_kge.runs.train import open_trained, provenance_of, train_on
from lmpnn_kge.settings.kinds import UnionMode
from lmpnn_kge.tables.file import BASE, read_table
from lmpnn_kge.tables.methods import PlannedMethod, plan_methods
from lmpnn_kge.tables.plan import Job, PlannedRow, check_seeds, gather_all, jobs_of, plan_rows
from lmpnn_kge.tables.run_table import RunTable, Tested
from lmpnn_kge.tables.section import TableRow, table_section, test_section
from lmpnn_kge.tables.test_set import TestSet, test_sets
from lmpnn_kge.training.folder import RUN, RunFolder, check_new, is_run
from lmpnn_kge.training.provenance import Software, recorded_path
from lmpnn_kge.work.listener import SILENT, Listener

if TYPE_CHECKING:
    import torch

KIND, FORMAT = "lmpnn-kge table", 1

FILE = "table.json"


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
    methods: Sequence[str] = (),
    test_queries: Sequence[str | Path] = (),
    limit: int | None = None,
    beside: Mapping[str, Results] | None = None,
    listener: Listener = SILENT,
) -> RunTable:
    """Train and test every row of a table on every checkpoint, and write a report on them.

    table is the name of a shipped table, or a file. Each row is trained once, or with the seeds
    0 … seeds − 1. methods are other ways to answer, such as `hybrid`, each of which is evaluated on
    every checkpoint. Rows are tested on the test queries of the store that they are trained on and,
    in tables of their own, of the stores test_queries; on at most `limit` queries per type. beside
    has additional rows of the first table, which are not trained here.
    """
    configs = read_table(table, config, settings)
    if seeds is not None:
        check_seeds(table, seeds, configs, settings or {})
    chosen = choose_device(device)
    gathered = gather_all(checkpoints, backbone, dataset, queries, listener)
    name, first = Path(table).stem, gathered[0]
    default = f"{name}-{first.name if len(gathered) == 1 else first.graph_name}"
    folder = Path(out or Path("tables") / default)
    rows = list(plan_rows(folder, configs, gathered, seeds))
    jobs = jobs_of(rows)
    others = plan_methods(folder, methods, gathered)
    labels = [*(row.label for row in rows), *(other.label for other in others)]
    own, *more = test_sets(first, test_queries, limit)
    _check(folder, jobs, chosen)
    _check_beside(beside or {}, labels, own.query_set(first), first)
    if not is_table(folder):
        _begin(folder, name)
    for number, job in enumerate(jobs, start=1):
        done = (job.folder / TEST).is_file()
        listener.note(
            f"network {number} of {len(jobs)}: {job.label}{' is already finished' if done else ''}"
        )
        if not done:
            train_on(
                job.inputs, job.settings, job.folder, device=device, resume=True, listener=listener
            )

    def test(on: TestSet, beside: Mapping[str, Results]) -> Tested:
        """All rows on a test set, and those of them that have no network."""
        trained: dict[str, Sequence[Results]] = {
            row.label: [_tested(job, row.union, on, device, listener) for job in row.jobs]
            for row in rows
        }
        alone = {other.label: other.results(on, device, listener) for other in others}
        alone |= beside
        return Tested(
            on,
            trained | {ReportRow.beside(name, row).label: [row] for name, row in alone.items()},
            alone,
        )

    main = test(own, beside or {})
    further = [test(on, {}) for on in more]
    _write(folder, name, rows, others, [main, *further])
    report = _report(folder, name, rows, main, further)
    return RunTable(folder, main.rows, report, {t.on.title: t.rows for t in further})


def is_table(folder: Path) -> bool:
    """Whether a folder holds a table."""
    try:
        content = json.loads(read_text(folder / FILE))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(content, dict) and content.get("kind") == KIND


def _check(
    folder: Path,
    jobs: Sequence[Job],
    device: torch.device,
) -> None:
    """LmpnnError, before anything is trained, if the table cannot be made."""
    check_target(folder, may_replace=is_table)
    for job in jobs:
        if is_run(job.folder, RUN):
            run = RunFolder.open(job.folder, RUN)
            run.check_inputs(provenance_of(job.inputs, job.settings, device), job.inputs.vocabulary)
            run.check_settings(job.settings)
        else:
            check_new(job.folder)


def _check_beside(
    beside: Mapping[str, Results], labels: Collection[str], own: QuerySet, inputs: Inputs
) -> None:
    """RunError if an additional row has the name of another, or was measured on other queries."""
    for label, results in beside.items():
        if label in labels:
            raise RunError(f"{label!r} is a row of the table; choose another name")
        reason = own.why_not(results)
        if reason is not None:
            raise RunError(
                f"{label!r} cannot stand in the table: {reason}; evaluate it on the queries "
                f"{inputs.queries.folder}, or leave it out"
            )


def _begin(folder: Path, name: str) -> None:
    """Make the folder, with a table.json that marks it as a table."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"{folder} cannot be made: {error.strerror}") from error
    _write(folder, name, [], [], [])


def _tested(job: Job, union: UnionMode, on: TestSet, device: str, listener: Listener) -> Results:
    """The results of a trained network on test, which may answer OR unlike in training."""
    folder = RunFolder.open(job.folder, RUN)
    file = TEST if union == folder.settings.union else f"test-{union}.json"
    if on.suffix:
        file = f"tested-{union}{on.suffix}.json"
    if folder.has(file):
        kept = Results.from_json(folder.read_json(file), str(folder.path / file))
        if file == TEST or on.has(kept):  # an older version did not record its queries
            return kept
    run = open_trained(folder, job.inputs, device)
    store = on.store(job.inputs)
    results = run.evaluate("test", queries=store, union=union, limit=on.limit, listener=listener)
    folder.write_json(file, results.to_json())
    return results


def _write(
    folder: Path,
    name: str,
    rows: Sequence[PlannedRow],
    methods: Sequence[PlannedMethod],
    tested: Sequence[Tested],
) -> None:
    """Write table.json: all results, for programs."""
    origins: dict[str, dict[str, object]] = {
        row.label: {"runs": [job.folder.name for job in row.jobs], "union": row.union}
        for row in rows
    }
    origins |= {
        other.label: {
            "method": other.method,
            "checkpoint": recorded_path(other.inputs.checkpoint.file, folder),
        }
        for other in methods
    }
    tables = [
        {
            label: {**origins.get(label, {}), "results": [seed.to_json() for seed in results]}
            for label, results in test.rows.items()
        }
        for test in tested
    ]
    content = {
        "kind": KIND,
        "format": FORMAT,
        **Software.now().to_json(),
        "table": name,
        "rows": tables[0] if tables else {},
        "others": {t.on.name: rows for t, rows in zip(tested[1:], tables[1:], strict=True)},
    }
    text = json.dumps(content, indent=1, allow_nan=False)
    replace_file(f"{text}\n".encode(), folder / FILE)


def _report(
    folder: Path, name: str, rows: Sequence[PlannedRow], main: Tested, further: Sequence[Tested]
) -> Path:
    """Write a report on all runs that begins with the table itself."""
    shown = [
        TableRow(row.label, main.rows[row.label], row.base, _published(row, rows)) for row in rows
    ]
    labels = [ReportRow.beside(label, row).label for label, row in main.alone.items()]
    shown += [TableRow(label, main.rows[label]) for label in labels]
    # These rows have no run of their own, so the report would not show them otherwise.
    borrowed = {
        job.label: results
        for row in rows
        if row.borrowed and not row.repeated
        for job, results in zip(row.jobs, main.rows[row.label], strict=True)
    }
    inputs = rows[0].jobs[0].inputs
    sections = [table_section(shown, same_queries=inputs.queries.imported is not None)]
    # The report itself is on all test queries of the runs, which cannot stand beside fewer of them.
    limited = [] if main.on.limit is None else [main]
    sections += [test_section(test.on.title, test.rows) for test in (*limited, *further)]
    return write_report(
        {job.label: job.folder for job in jobs_of(rows)},
        folder / "report",
        title=f"{name} on {inputs.store.graph}",
        sections=sections,
        beside={} if limited else {**borrowed, **main.alone},
    )


def _published(row: PlannedRow, rows: Sequence[PlannedRow]) -> Published | None:
    """The same row in the paper's ablation, or in its comparison of embeddings."""
    inputs = row.jobs[0].inputs
    graph, model = inputs.store.graph, inputs.checkpoint.model
    if all(other.name == BASE for other in rows):
        same = published(graph, table=BACKBONES, model="LMPNN", backbone=model)
    else:
        setting = BEST if row.name == BASE else row.name
        same = [entry for entry in published(graph, table=ABLATION) if entry.setting == setting]
    return same[0] if same else None
