"""`python -m tests.torture.watched_server ARGUMENTS`: a server that a campaign can leave alone.

It ends with the process that started it, whose end closes its standard input. It reports files that
it opens for a request, other than those of its run and of Python.
"""

import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from lmpnn_kge.cli import main

from ..conftest import ROOT

#: How a line of the log begins that says which file was opened.
OPENED = "opened for a request: "


def watch(run: Path) -> None:
    allowed = tuple(map(str, (run, ROOT, Path(sys.prefix).resolve(), sys.prefix, sys.base_prefix)))
    allowed += ("/proc/", "/sys/", os.devnull)

    def note(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(arguments[0], str | bytes):
            path, mode, _ = arguments
            name = os.path.realpath(os.fsdecode(path))
            is_writing = isinstance(mode, str) and mode.strip("rbtU") != ""
            if is_writing or not name.startswith(allowed):
                os.write(2, f"{OPENED}{name!r} {mode!r}\n".encode())

    sys.addaudithook(note)


def end_with_parent() -> None:
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGINT)


if __name__ == "__main__":
    threading.Thread(target=end_with_parent, daemon=True).start()
    import matplotlib.font_manager  # noqa: F401  # the first report would read its list of fonts

    from lmpnn_kge.serve import server

    ready = server._Server.startup

    async def startup(self: Any, sockets: Any = None) -> None:
        await ready(self, sockets)
        watch(Path(sys.argv[1]).resolve())

    server._Server.startup = startup  # type: ignore[method-assign]
    main(["serve", *sys.argv[1:]])
