"""Random requests as bytes: by the grammar of HTTP and of the interface, wrong, damaged and random.

A request is a list of steps. A text is sent, one byte for each character; `["leave"]` closes the
connection at once, `["answer"]` says that the server must answer, because the request is whole, and
`["times", N]` sends it over N connections at once.
"""

import dataclasses
import json
from collections.abc import Callable
from random import Random
from typing import Any
from urllib.parse import quote, quote_from_bytes

from lmpnn_kge.serve.endpoints import ENDPOINTS, Endpoint

from .campaign import Steps
from .edits import apply_edit, draw_edit
from .hostile_graph import ENTITIES, MARKUP, RELATIONS, RUN
from .questions import connected, question, quoted
from .sparql_queries import Queries
from .strange import (
    ACCEPTS,
    BODIES,
    HEADERS,
    METHODS,
    PATHS,
    SPARQL_OPTIONS,
    STRANGE,
    STRANGE_JSON,
    STRANGE_NUMBERS,
    STRANGE_TEXTS,
    STREAM_OPTIONS,
    WORDS,
)

NAMES = (ENTITIES, RELATIONS)

HOST = "Host: 127.0.0.1\r\n"
CLOSE = "Connection: close\r\n"


def whole(method: str, path: str, body: bytes = b"", *headers: str) -> Steps:
    """A whole request, which must be answered."""
    lines = [f"{line}\r\n" for line in headers]
    if body or method == "POST":
        lines.append(f"Content-Length: {len(body)}\r\n")
    head = [f"{method} {path} HTTP/1.1\r\n", HOST, CLOSE, *lines, "\r\n"]
    return [["answer"], *head, *([body.decode("latin-1")] if body else [])]


def encoded(random: Random, text: str) -> str:
    """A text in a URL: percent-encoded, with surrogates as the bytes that they would have."""
    if random.random() < 0.98:
        return quote_from_bytes(text.encode("utf-8", "surrogatepass"), safe="")
    return quote(text.encode("utf-16", "surrogatepass"))


def any_question(random: Random) -> str:
    way = random.random()
    if way < 0.2:
        return Queries(random, NAMES).query()
    if way < 0.6:
        return "".join(connected(random, NAMES, random.randint(1, 4)))
    return "".join(question(random, NAMES))


def value(random: Random, name: str) -> Any:
    """A value of a parameter, which may be right."""
    if random.random() < 0.1:
        return random.choice([*STRANGE_TEXTS, *STRANGE_NUMBERS, *STRANGE])
    match name:
        case "question" | "text":
            return any_question(random)
        case "answer" | "name" | "prefix" | "by":
            return random.choice(ENTITIES)
        case "relation":
            return quoted(random.choice(RELATIONS))
        case "run":
            return random.choice([RUN] * 12 + ["other", MARKUP, ".."])
        case "edges":
            return [random.randrange(5) for _ in range(random.randrange(4))]
        case "head" | "tail":
            return random.choice([0, 1, 2, "?x", quoted(random.choice(ENTITIES))])
        case _ if name in WORDS:
            return random.choice(WORDS[name])
    return random.choice([0, 1, 2, 5, True, False])


def values(random: Random, endpoint: Endpoint) -> dict[str, Any]:
    fields = dataclasses.fields(endpoint.parameters)
    chosen: dict[str, Any] = {
        field.name: value(random, field.name)
        for field in fields
        if random.random() < (0.95 if field.default is dataclasses.MISSING else 0.3)
    }
    if random.random() < 0.05:
        chosen[random.choice(STRANGE_TEXTS)] = 1
    return chosen


def api_get(random: Random) -> Steps:
    endpoint = random.choice(ENDPOINTS)
    texts = {
        name: item if isinstance(item, str) else json.dumps(item)
        for name, item in values(random, endpoint).items()
    }
    pairs = [f"{encoded(random, name)}={encoded(random, text)}" for name, text in texts.items()]
    if random.random() < 0.05:
        pairs.append(random.choice(["%ff=%ff", "=", "a", "&&", "k=1&k=2", "%00", "k=%C3%28"]))
    method = random.choice(["GET", "GET", "GET", "HEAD"])
    path = f"{endpoint.path}?{'&'.join(pairs)}"
    return whole(method, path, b"", f"Accept: {random.choice(ACCEPTS)}")


def api_post(random: Random) -> Steps:
    endpoint = random.choice(ENDPOINTS)
    text = json.dumps(values(random, endpoint), ensure_ascii=random.random() < 0.8)
    body = text.encode("utf-8", "surrogatepass")
    if random.random() < 0.25:
        body = random.choice(STRANGE_JSON).encode("latin-1")
    elif random.random() < 0.1:
        body = apply_edit(body, draw_edit(random))
    return whole("POST", endpoint.path, body, "Content-Type: application/json")


def line_of_stream(random: Random) -> str:
    match random.randrange(6):
        case 0:
            return json.dumps(random.choice(STRANGE))
        case 1:
            return random.choice(STRANGE_JSON)[:200]
        case 2:
            return json.dumps({"question": any_question(random)})
    return json.dumps(any_question(random))


def stream(random: Random) -> Steps:
    lines = [line_of_stream(random) for _ in range(random.choice([0, 1, 3, 3, 20]))]
    body = "\n".join(lines).encode("utf-8", "replace")
    path = "/api/draw" if random.random() < 0.05 else "/api/ask"
    options = random.choice(STREAM_OPTIONS)
    return whole("POST", path + options, body, "Content-Type: application/x-ndjson")


def to_sparql(random: Random) -> Steps:
    query = Queries(random, NAMES).query().encode("utf-8", "surrogatepass")
    path = random.choice(["/sparql", "/sparql", f"/sparql/{quote(RUN)}"])
    options = random.choice(SPARQL_OPTIONS)
    accept = f"Accept: {random.choice(ACCEPTS)}"
    match random.randrange(3):
        case 0:
            return whole("GET", f"{path}?query={quote_from_bytes(query)}&{options}", b"", accept)
        case 1:
            form = f"query={quote_from_bytes(query)}&{options}".encode()
            kind = "Content-Type: application/x-www-form-urlencoded"
            return whole("POST", path, form, accept, kind)
    return whole(
        "POST", f"{path}?{options}", query, accept, "Content-Type: application/sparql-query"
    )


def path_trick(random: Random) -> Steps:
    headers = [random.choice(HEADERS) for _ in range(random.choice([0, 0, 1]))]
    steps = whole(random.choice(METHODS), random.choice(PATHS), b"", *headers)
    return steps[1:]  # it may not be HTTP at all, and then nothing need come back


def header_trick(random: Random) -> Steps:
    """A request with headers that contradict each other, or that are none."""
    lines = [f"{random.choice(HEADERS)}\r\n" for _ in range(random.choice([1, 1, 2, 3, 200]))]
    if random.random() < 0.7:
        lines.insert(random.randrange(len(lines) + 1), HOST)
    body = random.choice(BODIES)
    path = random.choice(["/api/ask", "/sparql", "/health", "/", "/static/index.html"])
    version = random.choice(["1.1", "1.1", "1.1", "1.0", "0.9", "2.0", "9.9", "", "1.1 x"])
    method = random.choice(["GET", "POST", "POST", "OPTIONS"])
    return [f"{method} {path} HTTP/{version}\r\n", *lines, "\r\n", body]


def damaged(random: Random) -> Steps:
    """The bytes of another request after some edits."""
    steps = random.choice([api_get, api_post, to_sparql, stream])(random)
    content = "".join(step for step in steps if isinstance(step, str)).encode("latin-1")
    for _ in range(random.randint(1, 3)):
        content = apply_edit(content, draw_edit(random))
    return [line.decode("latin-1") for line in content.splitlines(keepends=True)]


def pipelined(random: Random) -> Steps:
    makers = [random.choice([api_get, api_post, to_sparql]) for _ in range(random.randint(2, 4))]
    steps = [step for maker in makers for step in maker(random)]
    return [["answer"], *(step for step in steps if step not in (["answer"], CLOSE))]


def noise(random: Random) -> Steps:
    return [random.randbytes(random.choice([1, 10, 100, 5_000, 70_000])).decode("latin-1")]


def early_end(random: Random) -> Steps:
    """A client that leaves in the middle of its request, or before the response."""
    steps = random.choice([api_get, api_post, to_sparql, stream])(random)[1:]
    return [*steps[: random.randint(1, len(steps))], ["leave"]]


def slow(random: Random) -> Steps:
    """A body of which some bytes never arrive: the server must give up by itself."""
    body = json.dumps({"question": any_question(random)}).encode()
    *head, sent = whole("POST", "/api/ask", body, "Content-Type: application/json")
    return [*head, sent[: random.randrange(len(sent))]]


def too_long(random: Random) -> Steps:
    """A body that is larger than the limit, announced or in pieces that are not."""
    size = random.choice([2**20 + 1, 2**21])
    body = b" " * size
    if random.random() < 0.5:
        return whole("POST", "/api/ask", body, "Content-Type: application/json")[1:]
    piece = f"{2**16:x}\r\n{' ' * 2**16}\r\n"
    head = ["POST /sparql HTTP/1.1\r\n", HOST, CLOSE, "Transfer-Encoding: chunked\r\n",
            "Content-Type: application/sparql-query\r\n", "\r\n"]  # fmt: skip
    return [*head, *[piece] * (size // 2**16 + 1), "0\r\n\r\n"]


def crowd(random: Random) -> Steps:
    """The same request over many connections at once."""
    steps = random.choice([api_get, api_post, to_sparql])(random)
    return [["times", random.choice([20, 60, 200])], *steps]


#: Ways to make a request, each with how often it is taken.
WAYS: dict[Callable[[Random], Steps], float] = {
    api_get: 22, api_post: 24, stream: 6, to_sparql: 16, path_trick: 8, header_trick: 10,
    damaged: 6, pipelined: 2, noise: 2, early_end: 2, slow: 0.5, too_long: 0.5, crowd: 0.5,
}  # fmt: skip


def request(random: Random) -> Steps:
    (way,) = random.choices(list(WAYS), list(WAYS.values()))
    return way(random)
