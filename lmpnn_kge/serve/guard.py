"""Who may ask, and how much may be sent: a layer around the application, with its access log."""

from __future__ import annotations

import asyncio
import hmac
import json
import sys
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lmpnn_kge.serve.http import HttpError, error_response

#: Names of this machine that only programs and people on it can use.
LOOPBACK = ("127.0.0.1", "localhost", "[::1]", "::1")

#: What the page may load and do; a response can have a policy of its own.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}

COOKIE = "lmpnn_kge_token"


@dataclass(frozen=True)
class Access:
    """Who may use a server: names of the host, a token, and origins of other pages."""

    hosts: Collection[str] = LOOPBACK  # empty: any
    token: str | None = None
    origins: Collection[str] = ()

    def check(self, scope: Scope) -> None:
        """HttpError if a request may not be answered."""
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
        if not host or (self.hosts and name.lower() not in self.hosts):
            raise HttpError(421, "this server is not known by the name in the header Host")
        self._check_site(scope, headers, f"{scope['scheme']}://{host}")
        if self.token is not None and not self._has_token(headers):
            raise HttpError(
                401,
                "a token is needed: open the address that `lmpnn-kge serve` printed, or send the "
                "header Authorization: Bearer TOKEN",
                {"WWW-Authenticate": "Bearer"},
            )

    def _check_site(self, scope: Scope, headers: Headers, own: str) -> None:
        """Refuse requests that a page of another site makes in a user's browser."""
        origin = headers.get("origin")
        if origin in self.origins:
            return
        # A link from elsewhere may open a page of ours. Its script cannot see what it opened.
        opens = scope["method"] == "GET" and headers.get("sec-fetch-mode") == "navigate"
        is_page = not scope["path"].startswith(("/api/", "/sparql"))
        site = headers.get("sec-fetch-site", "none")
        if origin not in (None, own) or (
            site not in ("none", "same-origin") and not (opens and is_page)
        ):
            raise HttpError(403, "requests from pages of other sites are not answered")

    def _has_token(self, headers: Headers) -> bool:
        scheme, _, given = headers.get("authorization", "").partition(" ")
        candidates = [given] if scheme.lower() == "bearer" else []
        try:
            cookies = SimpleCookie(headers.get("cookie", ""))
        except CookieError:
            cookies = SimpleCookie()
        candidates += [cookie.value for name, cookie in cookies.items() if name == COOKIE]
        return any(self.accepts(candidate) for candidate in candidates)

    def accepts(self, token: str) -> bool:
        """Whether a token is the right one; the time that it takes does not say how wrong it is."""
        return self.token is not None and hmac.compare_digest(
            token.encode(errors="replace"), self.token.encode()
        )


class Guard:
    """Checks access and the size of every request, adds headers to responses, and writes a log."""

    def __init__(self, app: ASGIApp, access: Access, body: int, log: bool = True):
        self.app, self.access, self.body, self.log = app, access, body, log
        self.close: Callable[[], None] = lambda: None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        exchange = _Exchange(self, scope, receive, send)
        begun = time.perf_counter()
        try:
            with suppress(asyncio.CancelledError):  # the server ends before the response does
                await exchange.answer()
        finally:
            if self.log:
                exchange.write_log(time.perf_counter() - begun)


class _Exchange:
    """One request and its response."""

    def __init__(self, guard: Guard, scope: Scope, receive: Receive, send: Send):
        self.guard, self.scope, self._receive, self._send = guard, scope, receive, send
        self.received = self.sent = self.status = 0

    async def answer(self) -> None:
        origin = Headers(scope=self.scope).get("origin")
        self.cors = origin if origin in self.guard.access.origins else None
        try:
            if (login := self._login()) is not None:
                await login(self.scope, self.receive, self.send)
                return
            if self.cors is not None and self.scope["method"] == "OPTIONS":
                await Response(status_code=204)(self.scope, self.receive, self.send)
                return
            self.guard.access.check(self.scope)
            length = Headers(scope=self.scope).get("content-length", "0")
            if length.isdecimal() and int(length[:20]) > self.guard.body:
                raise self._too_large()
            await self.guard.app(self.scope, self.receive, self.send)
        except HttpError as error:
            if self.status:
                raise
            await error_response(error)(self.scope, self.receive, self.send)

    def _login(self) -> Response | None:
        """`/?token=…` puts the token into a cookie, and leads to the page without it."""
        if self.guard.access.token is None or self.scope["path"] != "/":
            return None
        query = parse_qs(self.scope["query_string"].decode("latin-1"))
        given = query.pop("token", [""])[0]
        if not self.guard.access.accepts(given):
            return None
        rest = urlencode(query, doseq=True)
        response = RedirectResponse(f"/?{rest}" if rest else "/", 303)
        response.set_cookie(COOKIE, given, httponly=True, samesite="strict", path="/")
        return response

    def _too_large(self) -> HttpError:
        return HttpError(413, f"a request may have at most {self.guard.body:,} bytes")

    async def receive(self) -> Message:
        message = await self._receive()
        self.received += len(message.get("body", b""))
        if self.received > self.guard.body:
            raise self._too_large()
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
            if self.cors is not None:
                headers.update(_cors(self.cors))
                headers.add_vary_header("Origin")
        self.sent += len(message.get("body", b""))
        await self._send(message)

    def write_log(self, seconds: float) -> None:
        """One line of JSON; the query of a URL is left out, because it may have a token."""
        client = self.scope.get("client")
        record = {
            "time": datetime.now(timezone.utc).isoformat(timespec="milliseconds"),
            "client": client[0] if client else None,
            "method": self.scope["method"],
            "path": self.scope["path"][:500],
            "status": self.status or None,
            "received": self.received,
            "sent": self.sent,
            "seconds": round(seconds, 4),
        }
        print(json.dumps(record), file=sys.stderr, flush=True)


def _cors(origin: str) -> Mapping[str, str]:
    """Headers by which a browser lets a page of an allowed origin read a response."""
    return {
        "Access-Control-Allow-Origin": origin,
        "Access-Control-Allow-Methods": "GET, POST",
        "Access-Control-Allow-Headers": "Accept, Authorization, Content-Type",
        "Access-Control-Allow-Private-Network": "true",
        "Access-Control-Expose-Headers": "Content-Range, Retry-After",
        "Cross-Origin-Resource-Policy": "cross-origin",
    }
