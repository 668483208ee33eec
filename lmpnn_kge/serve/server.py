"""A server that runs until it is stopped, and then answers what it has begun."""

from __future__ import annotations

import secrets
import socket
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
import uvicorn

from lmpnn_kge.errors import ConfigError
from lmpnn_kge.files import distinct_names
from lmpnn_kge.runs.run import Run
from lmpnn_kge.serve.app import make_app
from lmpnn_kge.serve.connection import Connection
from lmpnn_kge.serve.endpoints import Service
from lmpnn_kge.serve.guard import LOOPBACK, Access
from lmpnn_kge.serve.limits import Limits
from lmpnn_kge.serve.served_run import ServedRun
from lmpnn_kge.work.listener import SILENT, Listener

#: Connections that are open at the same time.
CONNECTIONS = 512

#: Seconds after which a thread lets another one run.
SWITCH = 0.0005

#: Bytes of the head of a request: a question in a URL may be as long as one in a body.
HEAD = 2**17

#: Seconds that a connection may take to send the head of its next request.
PATIENCE = 30


def open_service(
    folders: Sequence[str | Path],
    limits: Limits,
    *,
    device: str = "auto",
    table_memory: str | None = None,
    listener: Listener = SILENT,
) -> Service:
    """Open runs, with everything that they need to answer, by the names of their folders."""
    paths = [Path(folder) for folder in folders]
    runs = {}
    for name, path in zip(distinct_names(paths), paths, strict=True):
        run = Run.open(path, device=device, table_memory=table_memory)
        runs[name] = ServedRun(name, run, limits, listener)
    torch.set_num_threads(limits.torch_threads)
    return Service(runs, limits)


def access_for(host: str, token: str | None, origins: Sequence[str]) -> Access:
    """Who may use a server at a host: anybody with the token, or programs on this machine."""
    if host in LOOPBACK:
        return Access(LOOPBACK, token, origins)
    return Access((), token or secrets.token_urlsafe(24), origins)


def listen(host: str, port: int) -> socket.socket:
    """A socket at an address; ConfigError if it cannot be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Without the protocol, asyncio leaves small packets waiting for others.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host.strip("[]"), port))
    except OSError as error:
        listening.close()
        raise ConfigError(
            f"cannot listen at port {port} of {host}: {error.strerror or error}; choose another "
            "one with --port or --host"
        ) from error
    return listening


class _Server(uvicorn.Server):
    """A server that says when it is ready."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]):
        super().__init__(config)
        self.ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready()


def serve(
    service: Service,
    listening: socket.socket,
    access: Access,
    *,
    log: bool = True,
    ready: Callable[[], None] = lambda: None,
) -> None:
    """Answer requests until a signal comes; those that are being answered may end."""
    # By default a thread waits up to 5 ms for Python's lock: a good part of the time of an answer.
    sys.setswitchinterval(SWITCH)
    app = make_app(service, access, log=log)
    config = uvicorn.Config(
        app,
        http=Connection,
        h11_max_incomplete_event_size=HEAD,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=CONNECTIONS,
        timeout_keep_alive=PATIENCE,
        timeout_graceful_shutdown=int(service.limits.seconds) + 1,
    )
    try:
        _Server(config, ready).run([listening])
    finally:
        app.close()
