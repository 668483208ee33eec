"""`lmpnn-kge predict`: the most probable missing triples, on the terminal or to a file."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from lmpnn_kge.cli.options import backbone_option, dataset_option, device_option, out_option
from lmpnn_kge.cli.progress import terminal
from lmpnn_kge.errors import printable
from lmpnn_kge.files import check_file

if TYPE_CHECKING:
    from lmpnn_kge.runs.predictions import Predictions
    from lmpnn_kge.work.listener import Listener

TABLE = "table"


@click.command()
@click.argument("run", type=click.Path(), required=False)
@click.option(
    "--checkpoint",
    type=click.Path(readable=False),
    metavar="FILE",
    help="Checkpoint to predict with, if there is no RUN; or that of RUN, if it has moved.",
)
@backbone_option
@dataset_option
@click.option(
    "--relation",
    "relations",
    multiple=True,
    metavar="NAME",
    help="Predict triples of this relation; can be repeated. Default: all relations.",
)
@click.option(
    "--head",
    "heads",
    multiple=True,
    metavar="NAME",
    help="Predict triples with this head; can be repeated.",
)
@click.option(
    "--tail",
    "tails",
    multiple=True,
    metavar="NAME",
    help="Predict triples with this tail; can be repeated.",
)
@click.option(
    "-n",
    "--limit",
    default=100,
    show_default=True,
    type=click.IntRange(min=1),
    metavar="N",
    help="Number of triples, at most.",
)
@click.option(
    "--min-probability",
    default=0.0,
    type=click.FloatRange(0, 1),
    metavar="P",
    help="Omit triples with a lower probability.",
)
@click.option(
    "--new", is_flag=True, help="Omit triples that are in a held-out split of the dataset."
)
@click.option(
    "--any",
    "any_pair",
    is_flag=True,
    help="Also try heads (for --tail: tails) that the relation was never seen with.",
)
@out_option("FILE", "File to write: .csv, .tsv, .jsonl, .parquet or .nt (N-Triples).")
@click.option(
    "--format",
    type=click.Choice([TABLE, "csv", "tsv", "jsonl", "parquet", "nt"]),
    help="Format of the output. Default: by the ending of FILE; a table without a FILE.",
)
@device_option
def predict(
    run: str | None,
    checkpoint: str | None,
    backbone: str | None,
    dataset: str | None,
    out: str | None,
    format: str | None,
    device: str,
    **wanted: Any,
) -> None:
    """Predict the most probable triples that the training edges lack.

    `predict RUN` uses the checkpoint and the graph of a run; `predict --checkpoint FILE` needs no
    run. The probability is fitted on the valid triples: of the triples that are given the
    probability p, about p · 100 % are in a held-out split, valid or test. Such a triple is marked
    as confirmed. Every head is tried with the relations that it was seen with.
    """
    from lmpnn_kge.runs.predictions import format_of

    if run is None and checkpoint is None:
        raise click.UsageError("give a RUN or a --checkpoint FILE")
    if run is not None and backbone is not None:
        raise click.UsageError("--backbone does not apply to a RUN")
    if out is None and format == "parquet":
        raise click.UsageError("--format parquet needs -o FILE")
    if out is not None and format == TABLE:
        raise click.UsageError("a table is for the terminal; choose another --format for a FILE")
    chosen = format or (TABLE if out is None else format_of(out))
    if out is not None:
        check_file(out)
    started = time.monotonic()
    with terminal() as listener:
        predictions = _predict(run, checkpoint, backbone, dataset, device, listener, wanted)
    if out is not None:
        predictions.save(out, chosen)
    elif chosen == TABLE:
        _print(predictions)
    else:
        click.echo(predictions.to_bytes(chosen).decode(), nl=False)
    confirmed = sum(split is not None for split in predictions.confirmed)
    click.echo(
        f"{len(predictions):,} predictions in {time.monotonic() - started:.1f} s, {confirmed:,} "
        f"confirmed by held-out triples{'' if out is None else f': {printable(out)}'}",
        err=True,
    )


def _predict(
    run: str | None,
    checkpoint: str | None,
    backbone: str | None,
    dataset: str | None,
    device: str,
    listener: Listener,
    wanted: dict[str, Any],
) -> Predictions:
    if run is None:
        from lmpnn_kge.runs.predict import predict as predict_checkpoint

        return predict_checkpoint(
            str(checkpoint),
            backbone=backbone,
            dataset=dataset,
            device=device,
            listener=listener,
            **wanted,
        )
    from lmpnn_kge.runs.run import Run

    opened = Run.open(run, checkpoint=checkpoint, dataset=dataset, device=device)
    for note in opened.notes:
        listener.note(note)
    return opened.predict(listener=listener, **wanted)


def _print(predictions: Predictions) -> None:
    """A line for each prediction: probability, triple, and the split that confirms it."""
    width = max((len(printable(str(prediction))) for prediction in predictions), default=0)
    for prediction in predictions:
        triple = printable(str(prediction))
        mark = "" if prediction.confirmed is None else f"confirmed by {prediction.confirmed}"
        click.echo(f"{prediction.probability:5.3f}  {triple:<{width}}  {mark}".rstrip())
