"""`lmpnn-kge serve`: a page to ask questions in a browser, and the same over HTTP."""

from __future__ import annotations

import os
import webbrowser
from collections.abc import Sequence

import click

from lmpnn_kge.cli.options import device_option, table_memory_option
from lmpnn_kge.cli.progress import terminal
from lmpnn_kge.errors import LmpnnError

#: The environment variable with a token, which other users of a machine cannot see.
TOKEN = "LMPNN_KGE_TOKEN"


@click.command()
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, type=click.Path())
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    metavar="ADDRESS",
    help="Address to listen at. Any other than this machine's own needs a token.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8000,
    show_default=True,
    metavar="N",
    help="Port to listen at; 0 takes a free one.",
)
@click.option("--open", "open_page", is_flag=True, help="Open the page in a browser.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=20.0,
    show_default=True,
    metavar="SECONDS",
    help="Time for the answer to a question.",
)
@click.option(
    "--rows",
    type=click.IntRange(min=1),
    default=1000,
    show_default=True,
    metavar="N",
    help="Number of answers in one response.",
)
@click.option(
    "--allow-origin",
    "origins",
    multiple=True,
    metavar="ORIGIN",
    help="Answer requests from pages of this origin, such as https://yasgui.org; can be repeated.",
)
@click.option("--no-log", is_flag=True, help="Do not print a line for each request.")
@device_option
@table_memory_option
def serve(
    runs: tuple[str, ...],
    host: str,
    port: int,
    open_page: bool,
    timeout: float,
    rows: int,
    origins: tuple[str, ...],
    no_log: bool,
    device: str,
    table_memory: str | None,
) -> None:
    """Serve a page, an HTTP interface and a SPARQL endpoint for one or several RUNs.

    The page asks questions, draws them, shows answers with their probabilities and explains them.
    /api describes the HTTP interface. /sparql is the SPARQL endpoint.

    What hybrid and search need is fitted when a run is first served, and kept in the run. Only
    programs on this machine can use the server, unless --host says otherwise. Then a token is
    needed: the one in the environment variable LMPNN_KGE_TOKEN, or a new one that is printed. The
    log on standard error has a line of JSON for each request. Ctrl-C stops the server.
    """
    serve_runs(
        runs,
        host=host,
        port=port,
        open_page=open_page,
        timeout=timeout,
        rows=rows,
        origins=origins,
        log=not no_log,
        device=device,
        table_memory=table_memory,
    )


def serve_runs(
    runs: Sequence[str],
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    open_page: bool = False,
    timeout: float = 20.0,
    rows: int = 1000,
    origins: Sequence[str] = (),
    log: bool = True,
    device: str = "auto",
    table_memory: str | None = None,
) -> None:
    """Serve runs until Ctrl-C."""
    try:
        from lmpnn_kge.serve.limits import Limits
        from lmpnn_kge.serve.server import access_for, listen, open_service, serve
    except ImportError as error:
        if error.name not in ("starlette", "uvicorn"):
            raise
        message = "serving needs starlette and uvicorn: pip install 'lmpnn-kge[serve]'"
        raise LmpnnError(message) from error
    access = access_for(host, os.environ.get(TOKEN), origins)
    with listen(host, port) as listening:
        with terminal() as listener:
            limits = Limits(seconds=timeout, rows=rows)
            service = open_service(
                runs, limits, device=device, table_memory=table_memory, listener=listener
            )
        shown = f"[{host}]" if ":" in host else host
        address = f"http://{shown}:{listening.getsockname()[1]}/"
        if access.token is not None:
            address += f"?token={access.token}"

        def ready() -> None:
            for name, served in service.runs.items():
                for note in served.notes:
                    click.echo(f"note: {name}: {note}", err=True)
            click.echo(f"the page is at {address}")
            if open_page:
                webbrowser.open(address)

        try:
            serve(service, listening, access, log=log, ready=ready)
        except KeyboardInterrupt:
            click.echo("stopped")
