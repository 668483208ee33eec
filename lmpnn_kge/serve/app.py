"""The application: routes to the page, the HTTP interface and the SPARQL endpoint."""

from __future__ import annotations

import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Route

from lmpnn_kge.errors import LmpnnError, QueryError, one_line
from lmpnn_kge.reports.document import POLICY as REPORT_POLICY
from lmpnn_kge.serve import requests
from lmpnn_kge.serve.assets import INDEX, Asset, read_assets
from lmpnn_kge.serve.drawings import picture
from lmpnn_kge.serve.endpoints import ENDPOINTS, Endpoint, Service
from lmpnn_kge.serve.guard import Access, Guard
from lmpnn_kge.serve.http import (
    LINES_TYPE,
    HttpError,
    JsonBytes,
    body_text,
    content_type,
    error_response,
    parameters,
    problem,
    query_parameters,
    read_json,
)
from lmpnn_kge.serve.openapi import api_page, openapi
from lmpnn_kge.serve.sparql import sparql_routes
from lmpnn_kge.serve.workers import ClientGone, Workers

Handler = Callable[[Request], Awaitable[Response]]

#: Questions of a stream that are answered together.
TOGETHER = 64

SVG = "image/svg+xml"


class Application:
    """The handlers of all paths, over one service."""

    def __init__(self, service: Service):
        self.service, self.limits = service, service.limits
        self.workers = Workers(service.limits)
        self.assets = read_assets()

    def routes(self) -> list[Route]:
        routes = [
            Route(endpoint.path, self._endpoint(endpoint), methods=["GET", "POST"])
            for endpoint in ENDPOINTS
        ]
        return [
            *routes,
            Route("/", self._page),
            Route("/static/{name}", self._static),
            Route("/report/{run}", self._report),
            Route("/api", self._api_page),
            Route("/api/openapi.json", self._openapi),
            *sparql_routes(self.service, self.workers),
        ]

    def _endpoint(self, endpoint: Endpoint) -> Handler:
        async def handle(request: Request) -> Response:
            if request.method == "POST" and content_type(request) == LINES_TYPE:
                return await self._stream(request, endpoint)
            wanted = await parameters(request, endpoint.parameters, self.limits)
            if endpoint.at_once:
                return JsonBytes(endpoint.call(self.service, wanted))
            if isinstance(wanted, requests.Draw) and _wants_svg(request, wanted):
                served = self.service.run(wanted.run)
                svg = await self.workers.run(request, partial(picture, served, wanted))
                return Response(svg, media_type=SVG)
            content = await self.workers.run(request, partial(endpoint.call, self.service, wanted))
            return JsonBytes(content)

        return handle

    async def _stream(self, request: Request, endpoint: Endpoint) -> Response:
        """Questions in, one per line, and a line for each out as soon as it is answered."""
        if endpoint.parameters is not requests.Ask:
            raise HttpError(415, f"only /api/ask reads {LINES_TYPE}")
        options = query_parameters(request, requests.AskOptions)
        self.service.run(options.run)  # 404 before anything is sent
        text = await body_text(request, self.limits)
        lines = [line for line in text.splitlines() if line.strip()]
        if len(lines) > self.limits.lines:
            raise HttpError(
                413, f"{len(lines):,} questions were sent; at most {self.limits.lines:,} are read"
            )
        return StreamingResponse(self._lines(request, lines, options), media_type=LINES_TYPE)

    async def _lines(
        self, request: Request, lines: list[str], options: requests.AskOptions
    ) -> AsyncIterator[bytes]:
        for first in range(0, len(lines), TOGETHER):
            part = lines[first : first + TOGETHER]
            try:
                results = await self.workers.run(request, partial(self._ask_each, part, options))
            except ClientGone:
                return
            except LmpnnError as error:  # the server is busy, or stops
                results = [{"question": line[:1000], "error": problem(error)} for line in part]
            yield b"".join(bytes(JsonBytes(result).body) + b"\n" for result in results)

    def _ask_each(self, lines: list[str], options: requests.AskOptions) -> list[Any]:
        """The responses to lines, in their order."""
        questions = [_question(line) for line in lines]
        asked = [question for question in questions if isinstance(question, str)]
        answers = iter(self.service.run(options.run).ask_each(asked, options))
        results: list[Any] = []
        for line, question in zip(lines, questions, strict=True):
            result: Any = next(answers) if isinstance(question, str) else question
            if isinstance(result, LmpnnError):
                text = question if isinstance(question, str) else line[:1000]
                result = {"question": text, "error": problem(result)}
            results.append(result)
        return results

    async def _page(self, request: Request) -> Response:
        return self._asset(request, self.assets[INDEX])

    async def _static(self, request: Request) -> Response:
        asset = self.assets.get(request.path_params["name"])
        if asset is None:
            raise HttpError(404, "there is no such file")
        return self._asset(request, asset)

    def _asset(self, request: Request, asset: Asset) -> Response:
        headers = {"ETag": asset.etag, "Cache-Control": "no-cache"}
        if request.headers.get("if-none-match") == asset.etag:
            return Response(status_code=304, headers=headers)
        return Response(asset.content, media_type=asset.media_type, headers=headers)

    async def _report(self, request: Request) -> Response:
        served = self.service.run(request.path_params["run"])
        page = await self.workers.run(request, served.report.page)
        return HTMLResponse(page, headers={"Content-Security-Policy": REPORT_POLICY})

    async def _api_page(self, request: Request) -> Response:
        return HTMLResponse(api_page())

    async def _openapi(self, request: Request) -> Response:
        return JsonBytes(openapi())


def make_app(service: Service, access: Access | None = None, *, log: bool = False) -> Guard:
    """The application over a service; access says who may use it, by default this machine.

    `close` ends its threads.
    """
    application = Application(service)
    handlers: dict[Any, Any] = {
        LmpnnError: _refuse,
        HTTPException: _not_found,
        ClientGone: _nobody,
        Exception: _bug,
    }
    app = Starlette(routes=application.routes(), exception_handlers=handlers)
    guard = Guard(app, access or Access(), service.limits.body, log)
    guard.close = application.workers.close
    return guard


def _question(line: str) -> str | LmpnnError:
    """The question in a line of a stream: a JSON string, or an object that has it."""
    try:
        content = read_json(line)
    except HttpError as error:
        return error
    if isinstance(content, dict) and set(content) == {"question"}:
        content = content["question"]
    if isinstance(content, str):
        return content
    return QueryError('a line is a JSON string, or an object {"question": "…"}')


def _wants_svg(request: Request, wanted: requests.Draw) -> bool:
    accepts = request.headers.get("accept", "").partition(",")[0]
    return wanted.format == "svg" or (wanted.format is None and accepts.startswith(SVG))


async def _refuse(request: Request, error: LmpnnError) -> Response:
    return error_response(error)


async def _not_found(request: Request, error: HTTPException) -> Response:
    words = {404: "there is no such path; /api lists them", 405: "this path takes GET and POST"}
    message = words.get(error.status_code, error.detail)
    return error_response(HttpError(error.status_code, message, error.headers))


async def _nobody(request: Request, error: ClientGone) -> Response:
    return Response(status_code=499)  # nobody reads it; the log has it


async def _bug(request: Request, error: Exception) -> Response:
    """A mistake of ours: its traceback belongs to the log, not to the client."""
    traceback.print_exception(error)
    return error_response(HttpError(500, f"a mistake of the server: {one_line(error)}"))
