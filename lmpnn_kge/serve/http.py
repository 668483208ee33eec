"""HTTP in and out: parameters of a request, JSON, and errors with their status."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from lmpnn_kge.errors import LmpnnError, QueryError, StoppedError, TimeLimitError, one_line
from lmpnn_kge.serve import responses
from lmpnn_kge.serve.limits import Limits
from lmpnn_kge.serve.schema import read_parameters
from lmpnn_kge.serve.workers import BusyError, ClientGone

P = TypeVar("P")

#: The longest message of an error, as on the command line.
LONGEST = 2000

#: The most parameters of a URL or a form.
MOST_PARAMETERS = 100

JSON_TYPE, LINES_TYPE = "application/json", "application/x-ndjson"


class HttpError(LmpnnError):
    """A request that is wrong as HTTP, with its status."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None):
        super().__init__(message)
        self.status, self.headers = status, dict(headers or {})


class JsonBytes(Response):
    """JSON that is written as one line."""

    media_type = JSON_TYPE

    def render(self, content: Any) -> bytes:
        # What a lone surrogate in a name would otherwise make of it is not UTF-8.
        text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode("utf-8", "backslashreplace")


def content_type(request: Request) -> str:
    """The media type of the body of a request, without its parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def body_text(request: Request, limits: Limits) -> str:
    """The body of a request as text."""
    try:
        return (await body_bytes(request, limits)).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise HttpError(400, f"the request is not UTF-8: {one_line(error)}") from error


async def body_bytes(request: Request, limits: Limits) -> bytes:
    """The body of a request, which must arrive in time."""
    try:
        return await asyncio.wait_for(request.body(), limits.seconds)
    except asyncio.TimeoutError as error:
        raise HttpError(408, f"the request took longer than {limits.seconds:g} s") from error
    except ClientDisconnect as error:
        raise ClientGone from error


async def parameters(request: Request, kind: type[P], limits: Limits) -> P:
    """The parameters of a request: in its URL, or as a JSON object in its body."""
    if request.method in ("GET", "HEAD"):
        return query_parameters(request, kind)
    if content_type(request) != JSON_TYPE:
        raise HttpError(415, f"send {JSON_TYPE}, or use GET with the parameters in the URL")
    content = read_json(await body_text(request, limits))
    if not isinstance(content, dict):
        raise HttpError(400, "the request must be a JSON object")
    return read_parameters(kind, content, as_text=False)


def query_parameters(request: Request, kind: type[P]) -> P:
    """The parameters in the URL of a request."""
    return read_parameters(kind, each_once(url_pairs(request)), as_text=True)


def url_pairs(request: Request) -> list[tuple[str, str]]:
    """The names and values in the URL of a request."""
    return form_pairs(request.scope["query_string"])


def form_pairs(content: bytes) -> list[tuple[str, str]]:
    """Names and values, as a URL or a form encodes them."""
    try:
        text = content.decode("utf-8")
        return parse_qsl(
            text, keep_blank_values=True, errors="strict", max_num_fields=MOST_PARAMETERS
        )
    except UnicodeDecodeError as error:
        raise HttpError(400, f"the parameters are not UTF-8: {one_line(error)}") from error
    except ValueError as error:
        raise HttpError(400, f"there are more than {MOST_PARAMETERS} parameters") from error


def each_once(pairs: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Parameters by name, none of which may be given twice."""
    values = dict(pairs)
    if len(values) < len(pairs):
        raise HttpError(400, "a parameter is given twice")
    return values


def read_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise HttpError(400, f"the request is not JSON: {one_line(error)}") from error


def problem(error: LmpnnError) -> responses.Problem:
    """An error as part of a response."""
    return {
        "message": one_line(error, LONGEST),
        "excerpt": error.excerpt if isinstance(error, QueryError) else None,
        "column": error.column if isinstance(error, QueryError) else None,
    }


def error_response(error: LmpnnError) -> Response:
    """An error with its status."""
    headers: dict[str, str] = {}
    match error:
        case HttpError():
            status, headers = error.status, error.headers
        case BusyError():
            status, headers = 503, {"Retry-After": "1"}
        case TimeLimitError():
            status = 504
        case StoppedError():
            status = 503
        case _:
            status = 400
    return JSONResponse({"error": problem(error)}, status, headers)
