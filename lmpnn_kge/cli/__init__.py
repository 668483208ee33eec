"""The command line: it composes the library and adds nothing to it.

Commands import torch and the like inside their functions, so that help and listings are instant.
"""

from __future__ import annotations

import errno
import io
import re
import sys
from typing import Any, NoReturn

import click

from lmpnn_kge import __version__
from lmpnn_kge.cli.answer import answer
from lmpnn_kge.cli.ask import ask
from lmpnn_kge.cli.backbones import backbones
from lmpnn_kge.cli.config import config
from lmpnn_kge.cli.demo import demo
from lmpnn_kge.cli.draw import draw
from lmpnn_kge.cli.evaluate import evaluate
from lmpnn_kge.cli.graph import graph
from lmpnn_kge.cli.inspect import inspect
from lmpnn_kge.cli.loaders import loaders
from lmpnn_kge.cli.predict import predict
from lmpnn_kge.cli.pretrain import pretrain
from lmpnn_kge.cli.queries import queries
from lmpnn_kge.cli.report import report
from lmpnn_kge.cli.sample import sample
from lmpnn_kge.cli.split import split
from lmpnn_kge.cli.table import table
from lmpnn_kge.cli.text import Group
from lmpnn_kge.cli.train import train
from lmpnn_kge.cli.translate import translate
from lmpnn_kge.errors import LmpnnError, QueryError, one_line, short

#: The longest message, in characters: it may repeat what a user typed, or what a file holds.
LONGEST = 2000

#: How torch says that a CPU or a GPU has no more memory.
NO_MEMORY = re.compile("can't allocate memory|out of memory", re.IGNORECASE)


class _Main(Group):
    """Prints a user's mistake as one line, with exit code 2; a bug keeps its traceback."""

    def make_context(self, *arguments: Any, **options: Any) -> click.Context:
        try:
            return super().make_context(*arguments, **options)
        except click.UsageError as error:
            raise _shortened(error) from None
        except OSError as error:  # of --help and --version, which print here
            _refuse(error)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            raise _shortened(error) from None
        except LmpnnError as error:
            message = one_line(error, LONGEST)
            if isinstance(error, QueryError) and error.excerpt:
                message += f"\n{error.excerpt}"
            raise _Mistake(message) from error
        except OSError as error:
            _refuse(error)
        except (MemoryError, RuntimeError) as error:  # torch raises a RuntimeError
            if isinstance(error, RuntimeError) and not NO_MEMORY.search(str(error)):
                raise
            raise _Mistake(
                f"out of memory: {one_line(error)}; use a smaller dim, hidden or batch_size"
            ) from error


def _refuse(error: OSError) -> NoReturn:
    """Say what the system refuses: a full disk, no permission, a file that is gone."""
    # Nothing but a broken pipe, which ends a command silently, is without a number.
    if error.errno in (None, errno.EPIPE):
        raise error
    # Nothing that is written to can be missing, but the current folder may have been removed.
    nameless = "the current folder" if error.errno == errno.ENOENT else "standard output"
    place = nameless if error.filename is None else short(str(error.filename))
    raise _Mistake(f"{place}: {error.strerror}") from error


def _shortened(error: click.UsageError) -> click.UsageError:
    """The same error, with no more of what a user typed than anybody reads."""
    if len(error.format_message()) <= LONGEST:
        return error
    return click.UsageError(short(error.format_message(), LONGEST), error.ctx)


class _Mistake(click.ClickException):
    exit_code = 2


@click.group(cls=_Main, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="lmpnn-kge")
def main() -> None:
    """Answer logical queries over knowledge graph embeddings."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # any name must print, whatever the locale
            stream.reconfigure(errors="backslashreplace")


for command in (
    answer, ask, backbones, config, demo, draw, evaluate, graph, inspect, loaders, predict,
    pretrain, queries, report, sample, split, table, train, translate,
):  # fmt: skip
    main.add_command(command)
