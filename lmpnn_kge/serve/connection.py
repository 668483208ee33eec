"""Connections that do not wait forever for slow clients, and end quietly if a body is not HTTP.

uvicorn limits how long a connection may be idle after a response, but not how long a client may
take to send the head of a request, to send a body that nobody reads, or to read a response. A few
hundred clients that send a byte now and then would take all connections.

If a body turns out not to be HTTP, uvicorn refuses it although the request may be answered already
or at the same time. One of both would fail, and its traceback would fill the log.
"""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol


class Connection(H11Protocol):
    """A connection that is closed if its next request, or its reader, is late."""

    _request_late: asyncio.TimerHandle | None = None
    _reader_late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect_request()

    def data_received(self, data: bytes) -> None:
        before = self.cycle
        super().data_received(data)
        if self.cycle is not before:  # the head of a request is complete
            self._stop_expecting()

    def on_response_complete(self) -> None:
        answered = self.cycle
        super().on_response_complete()
        if self.cycle is answered:  # and not that of a request that was sent together with it
            self._expect_request()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._reader_late = self.loop.call_later(self.timeout_keep_alive, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        _cancel(self._reader_late)

    def send_400_response(self, msg: str) -> None:
        if self.cycle is not None:
            self.cycle.disconnected = True  # what the application sends from now on goes nowhere
            self.cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:  # a response has begun
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_expecting()
        _cancel(self._reader_late)
        super().connection_lost(exc)

    def _expect_request(self) -> None:
        self._stop_expecting()
        self._request_late = self.loop.call_later(self.timeout_keep_alive, self.transport.close)

    def _stop_expecting(self) -> None:
        _cancel(self._request_late)


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
