"""The command line: it composes the library and adds nothing to it.

Commands import torch and the like inside their functions, so that help and listings are instant.
"""

from __future__ import annotations

import errno
import io
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, redirect_stderr, redirect_stdout
from typing import Any, NoReturn

import click

from lmpnn_kge import __version__
from lmpnn_kge.cli.allocator import keep_freed_memory
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
from lmpnn_kge.cli.serve import serve
from lmpnn_kge.cli.split import split
from lmpnn_kge.cli.table import table
from lmpnn_kge.cli.text import Group
from lmpnn_kge.cli.threads import wait_briefly
from lmpnn_kge.cli.trackers import trackers
from lmpnn_kge.cli.train import train
from lmpnn_kge.cli.translate import translate
from lmpnn_kge.cli.tune import tune
from lmpnn_kge.errors import LmpnnError, QueryError, one_line, short
from lmpnn_kge.processes import job, launched_rank

#: The longest message, in characters: it may repeat what a user typed, or what a file holds.
LONGEST = 2000

#: The commands whose work several processes can share.
SHARED = ("evaluate", "pretrain", "train")

#: How torch says that a CPU or a GPU has no more memory.
NO_MEMORY = re.compile("can't allocate memory|out of memory", re.IGNORECASE)


class _Main(Group):
    """Prints a user's mistake as one line, with exit code 2; a bug keeps its traceback.

    In a job of several processes, the first one prints, and the first one that fails says why.
    """

    def main(self, *arguments: Any, **options: Any) -> Any:
        wait_briefly(os.environ)
        with nullcontext() if launched_rank() in (None, 0) else _silenced():
            return super().main(*arguments, **options)

    def make_context(self, *arguments: Any, **options: Any) -> click.Context:
        try:
            return super().make_context(*arguments, **options)
        except click.UsageError as error:
            raise _shortened(error) from None
        except OSError as error:  # of --help and --version, which print here
            _refuse(error)

    def invoke(self, ctx: click.Context) -> Any:
        with job() as processes:
            try:
                return self._invoke(ctx)
            except (click.UsageError, click.exceptions.Exit):  # the same in every process
                raise
            except Exception:
                if not processes.claims("failure"):
                    sys.exit(_Mistake.exit_code)
                if not processes.first:
                    sys.stderr = sys.__stderr__
                raise

    def _invoke(self, ctx: click.Context) -> Any:
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
            cause = f": {one_line(error)}" if str(error) else ""
            raise _Mistake(
                f"out of memory{cause}; use a smaller dim, hidden or batch_size"
            ) from error


@contextmanager
def _silenced() -> Iterator[None]:
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        yield


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
@click.pass_context
def main(ctx: click.Context) -> None:
    """Answer logical queries over knowledge graph embeddings."""
    if launched_rank() is not None and ctx.invoked_subcommand not in SHARED:
        raise click.UsageError(
            f"{ctx.invoked_subcommand} runs in one process, but WORLD_SIZE is "
            f"{os.environ['WORLD_SIZE']}; start it without torchrun"
        )
    if ctx.invoked_subcommand in SHARED:  # a server's threads would keep memory for each of them
        keep_freed_memory(os.environ)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # any name must print, whatever the locale
            stream.reconfigure(errors="backslashreplace")


for command in (
    answer, ask, backbones, config, demo, draw, evaluate, graph, inspect, loaders, predict,
    pretrain, queries, report, sample, serve, split, table, trackers, train, translate, tune,
):  # fmt: skip
    main.add_command(command)
