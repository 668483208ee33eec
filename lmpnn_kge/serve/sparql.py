"""The SPARQL 1.1 Protocol: SELECT and ASK in, and results in the format that a client likes best.

SELECT selects one variable. Besides it, it can select `?label`, `?score`, `?probability`, `?known`
and `?confirmed`, which no pattern binds: they describe the answer in the same row.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import NamedTuple, TypeVar

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from lmpnn_kge.errors import QueryError, choices, short
from lmpnn_kge.query.sparql.read import NEEDS_RDFLIB, AskQuery, SelectQuery, read_sparql
from lmpnn_kge.runs.questions import DEFAULT_ANSWERS
from lmpnn_kge.serve import requests
from lmpnn_kge.serve.accept import preferred
from lmpnn_kge.serve.endpoints import Service
from lmpnn_kge.serve.http import (
    HttpError,
    body_bytes,
    body_text,
    content_type,
    each_once,
    form_pairs,
    url_pairs,
)
from lmpnn_kge.serve.limits import Limits
from lmpnn_kge.serve.schema import read_parameters
from lmpnn_kge.serve.served_run import ServedRun
from lmpnn_kge.serve.service_description import DESCRIPTIONS
from lmpnn_kge.serve.sparql_order import Answers, in_order
from lmpnn_kge.serve.sparql_results import (
    BY_TYPE,
    FORMATS,
    Format,
    Solutions,
    entity_value,
    literal,
)
from lmpnn_kge.serve.workers import Workers

T = TypeVar("T")

FORM_TYPE, QUERY_TYPE = "application/x-www-form-urlencoded", "application/sparql-query"

#: What a query can select besides its variable.
FIGURES = ("label", "score", "probability", "known", "confirmed")

#: Parameters of the protocol that choose graphs; there is only one.
GRAPHS = ("default-graph-uri", "named-graph-uri")

#: Names by which clients also send the parameter `format`, often several of them at once.
FORMAT_NAMES = ("format", "output", "results")


def sparql_routes(service: Service, workers: Workers) -> list[Route]:
    """The endpoint of the first run, and of each run by its name."""
    if find_spec("rdflib") is not None:
        import_module("rdflib.plugins.sparql.parser")  # so that no query has to wait for it

    async def handle(request: Request) -> Response:
        served = service.run(request.path_params.get("run"))
        if request.method != "POST" and not request.scope["query_string"]:
            return _description(request, served)
        pairs = await _pairs(request, service.limits)
        if find_spec("rdflib") is None:
            raise HttpError(501, NEEDS_RDFLIB)
        wanted = read_query_parameters(pairs)
        media_type = (
            _accepted(request, list(BY_TYPE))
            if wanted.format is None
            else _format(wanted.format).media_types[0]
        )
        return await workers.run(request, partial(respond, served, wanted, media_type))

    return [Route(path, handle, methods=["GET", "POST"]) for path in ("/sparql", "/sparql/{run}")]


async def _pairs(request: Request, limits: Limits) -> list[tuple[str, str]]:
    """The names and values of all parameters; the body can be a form, or the query itself."""
    pairs = url_pairs(request)
    if request.method != "POST":
        return pairs
    if (media_type := content_type(request)) == FORM_TYPE:
        return pairs + form_pairs(await body_bytes(request, limits))
    if media_type == QUERY_TYPE:
        return [*pairs, ("query", await body_text(request, limits))]
    raise HttpError(415, f"send {QUERY_TYPE} or {FORM_TYPE}, or use GET")


def read_query_parameters(pairs: Sequence[tuple[str, str]]) -> requests.Sparql:
    """A query with its options; HttpError or ConfigError if a parameter cannot be fulfilled."""
    for name, value in pairs:
        if name in GRAPHS and value:
            raise HttpError(400, f"{name} cannot be chosen: each run has one graph")
        if name == "update":
            raise HttpError(400, "this endpoint answers queries; it does not take updates")
    formats = {_format(value) for name, value in pairs if name in FORMAT_NAMES}
    if len(formats) > 1:
        raise HttpError(400, f"{', '.join(FORMAT_NAMES)} ask for different formats")
    others = [pair for pair in pairs if pair[0] not in (*GRAPHS, *FORMAT_NAMES)]
    values = each_once([*others, *(("format", format_.name) for format_ in formats)])
    wanted = read_parameters(requests.Sparql, values, as_text=True)
    if wanted.answers == "exact" and (wanted.k, wanted.method) != (None, None):
        raise HttpError(400, "k and method need answers=predicted; use LIMIT for exact answers")
    if wanted.answers == "predicted" and wanted.split is not None:
        raise HttpError(400, "split needs answers=exact")
    return wanted


def _format(name: str) -> Format:
    """A format by its name or its media type."""
    known = {format_.name: format_ for format_ in FORMATS} | BY_TYPE
    if name not in known:
        raise HttpError(400, f"the format is {short(name)!r}; {choices(short(name), known)}")
    return known[name]


def _accepted(request: Request, offered: list[str]) -> str:
    """The type that the header Accept prefers; 406 if it accepts none."""
    media_type = preferred(",".join(request.headers.getlist("accept")), offered)
    if media_type is None:
        raise HttpError(406, f"the header Accept has none of {', '.join(offered)}")
    return media_type


def _description(request: Request, served: ServedRun) -> Response:
    """What the endpoint is, for programs and for people."""
    media_type = _accepted(request, list(DESCRIPTIONS))
    content = DESCRIPTIONS[media_type](request.scope["path"], served)
    return Response(content, media_type=media_type, headers={"Vary": "Accept"})


def respond(served: ServedRun, wanted: requests.Sparql, media_type: str) -> Response:
    """The response to a query: 206 if the limit of rows leaves out some of its results."""
    served.check_length(wanted.query)
    query = read_sparql(wanted.query, FIGURES)
    status, headers = 200, {"Vary": "Accept"}
    if isinstance(query, AskQuery):
        text = BY_TYPE[media_type].write_boolean(is_true(served, query, wanted))
    else:
        result = solve(served, query, wanted)
        text = BY_TYPE[media_type].write(result.solutions)
        if not result.complete:
            count = len(result.solutions.rows)
            rows = f"0-{count - 1}" if count else "*"
            total = "*" if result.total is None else result.total
            status, headers["Content-Range"] = 206, f"rows {rows}/{total}"
    return Response(text.encode("utf-8", "replace"), status, headers, media_type)


def is_true(served: ServedRun, query: AskQuery, wanted: requests.Sparql) -> bool:
    """Whether the known edges match the patterns of ASK."""
    if wanted.answers == "predicted":
        raise HttpError(400, "ASK needs answers=exact; a prediction is neither true nor false")
    return len(served.graph.answer_rows(query.formula, wanted.split or "test")) > 0


class Result(NamedTuple):
    """Solutions, whether the limit of rows left out none, and how many there are if known."""

    solutions: Solutions
    complete: bool
    total: int | None


def solve(served: ServedRun, query: SelectQuery, wanted: requests.Sparql) -> Result:
    """The solutions of SELECT; QueryError if it has several variables."""
    if len(query.answers) > 1:
        names = ", ".join(f"?{name}" for name in query.answers)
        raise QueryError(
            f"the query selects {len(query.answers)} variables ({short(names)}); this endpoint "
            "answers one: SELECT ?x"
        )
    solver = _exact if wanted.answers == "exact" else _predicted
    answers, complete, total = solver(served, query, wanted)
    rows = [
        [
            entity_value(answer["id"]) if column == query.answer else literal(answer.get(column))
            for column in query.columns
        ]
        for answer in answers
    ]
    return Result(Solutions(query.columns, rows), complete, total)


def _exact(
    served: ServedRun, query: SelectQuery, wanted: requests.Sparql
) -> tuple[Answers, bool, int]:
    """Answers by known edges, which have no score; whether others know them if that is asked."""
    graph, names = served.graph, served.graph.vocabulary
    rows: Sequence[int] = graph.answer_rows(query.formula, wanted.split or "test").tolist()
    mentioned = {*query.columns, *(order.variable for order in query.order)}
    by_edges = {
        figure: set(graph.answer_rows(query.formula, split).tolist())
        for figure, split in (("known", "train"), ("confirmed", "test"))
        if figure in mentioned
    }

    def described(some: Sequence[int]) -> Answers:
        return [
            {"id": names.entity_ids[row], "label": names.label(row)}
            | {figure: row in members for figure, members in by_edges.items()}
            for row in some
        ]

    most = served.limits.rows
    if query.order:
        answers = _wanted(in_order(described(rows), query.order, query.answer), query)
        return answers[:most], len(answers) <= most, len(answers)
    rows = _wanted(rows, query)
    return described(rows[:most]), len(rows) <= most, len(rows)


def _predicted(
    served: ServedRun, query: SelectQuery, wanted: requests.Sparql
) -> tuple[Answers, bool, None]:
    """The best answers, known and predicted."""
    count = wanted.k or DEFAULT_ANSWERS if query.limit is None else query.limit
    end = min(query.offset + count, wanted.k or sys.maxsize)
    if end <= query.offset:
        return [], True, None
    # Without ORDER BY, answers have the order of their ranks, and the first ones suffice.
    ranked = wanted.k or served.limits.rows if query.order else end
    options = requests.AskOptions(k=ranked, method=wanted.method)
    (found,) = served.ask_each([query.formula], options)
    if isinstance(found, QueryError):
        raise found
    answers = in_order(found["answers"], query.order, query.answer)
    return answers[query.offset : end], found["complete"], None


def _wanted(rows: Sequence[T], query: SelectQuery) -> Sequence[T]:
    """What OFFSET and LIMIT leave of rows."""
    rows = rows[query.offset :]
    return rows if query.limit is None else rows[: query.limit]
