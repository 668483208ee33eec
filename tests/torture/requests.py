"""Requests to a server in a process of its own: it refuses or answers, in time, and stays sound."""

import json
import math
import socket
import time
import zlib
from contextlib import ExitStack
from functools import cache
from itertools import takewhile
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote, urlencode

from lmpnn_kge.query.iri import iri_of

from ..serving import Serving
from .campaign import Campaign, Outcome, Steps, Wrong
from .hostile_graph import MARKUP, RUN, write_run
from .questions import quoted
from .responses import Response, check, split

#: Seconds that the server gives an answer, that it may take in all on a busy machine, and after
#: which nothing more is expected from a request that need not be answered.
LIMIT, LATEST, QUIET = 5, 25, 0.2

#: The status of what takes longer, as the report of a run may on a busy machine, and how often such
#: a request is repeated before that is wrong.
LATE, ATTEMPTS = 504, 10

#: Bytes that the server may grow by.
GROWTH = 400 << 20

#: Characters of a traceback that are shown.
TRACEBACK = 10_000

#: One of so many cases looks whether the server is still sound.
EVERY = 20

#: What uvicorn says about requests that are not HTTP, or not what it speaks.
WARNINGS = (
    "Invalid HTTP request received.",
    "Unsupported upgrade request.",
    "No supported WebSocket library detected.",
    "Exceeded concurrency limit.",
)

QUESTIONS = (f"knows(?, {quoted(MARKUP)})", f'knows(?x, ?) & !"r&d"(?, {quoted(MARKUP)})')

_ASKED = urlencode({"question": QUESTIONS[0]})
_SELECT = urlencode({"query": f"SELECT ?a ?label {{ ?a <kge:knows> <{iri_of(MARKUP)}> }}"})

#: Paths of all that shows names.
SHOWN = (
    "/", "/api", "/sparql", f"/report/{quote(RUN)}", f"/api/draw?format=svg&{_ASKED}",
    f"/api/ask?explain=1&{_ASKED}", f"/api/explain?{_ASKED}&answer=-", "/api/entity?name=-",
    "/api/runs", "/api/run", "/api/complete?role=entity",
    *(f"/sparql?{_SELECT}&format={name}" for name in ("json", "xml", "csv", "tsv")),
)  # fmt: skip


class Requests(Campaign):
    """The parts of a request, which are sent one after the other."""

    name = "requests"
    seconds = 150
    memory = 8 << 30  # DuckDB reserves address space that it does not use
    spawns = connects = True

    def prepare(self, inputs: Path) -> None:
        from lmpnn_kge import Run

        write_run(inputs)
        run = Run.open(inputs / RUN)
        right = {
            text: [[answer.id, answer.score] for answer in run.ask(text, 24)] for text in QUESTIONS
        }
        (inputs / "right.json").write_text(json.dumps(right))

    def draw(self, number: int, random: Random, inputs: Path) -> Steps:
        from .made_requests import request  # which needs the extra serve

        return request(random)

    def run(self, steps: Steps, inputs: Path, scratch: Path) -> Outcome:
        server = watched(inputs)
        responses = server.send(steps)
        for response in responses:
            check(response)
        if server.process.poll() is not None:
            raise Wrong(f"the server ended with code {server.process.returncode}")
        if not zlib.crc32(repr(steps).encode("utf-8", "replace")) % EVERY or server.asked == 1:
            server.check()
        accepted = any(response.status < 400 for response in responses)
        return Outcome.ACCEPTED if accepted else Outcome.REFUSED


@cache
def watched(inputs: Path) -> "Watched":
    """The server of this process, which is started for its first case."""
    return Watched(inputs)


class Watched(Serving):
    """A server with what it must still be able to do, and how large it was at first."""

    def __init__(self, inputs: Path):
        log = inputs / f"log-{time.monotonic_ns()}"
        program = ("tests.torture.watched_server",)
        super().__init__(log, inputs / RUN, "--timeout", str(LIMIT), program=program)
        self.right = json.loads((inputs / "right.json").read_text())
        self.read = log.stat().st_size
        self.asked = 0
        self._check_names()
        self._check_answers()  # what is made for the first answer is made
        self.size = self._memory()

    def send(self, steps: Steps) -> list[Response]:
        """Send a request, and take the responses that arrive."""
        self.asked += 1
        texts = [step for step in steps if isinstance(step, str)]
        methods = [text.partition(" ")[0] for text in texts if text.endswith(" HTTP/1.1\r\n")]
        times = next((step[1] for step in steps if step[:1] == ["times"]), 1)
        with ExitStack() as stack:
            connections = [
                stack.enter_context(socket.create_connection(("127.0.0.1", self.port), LATEST))
                for _ in range(times)
            ]
            must_answer = ["answer"] in steps
            for connection in connections:
                try:
                    connection.sendall("".join(texts).encode("latin-1"))
                except OSError:  # the server has heard enough
                    must_answer = False
            if ["leave"] in steps:
                return []
            return [
                response
                for connection in connections
                for response in _receive(connection, methods, must_answer)
            ]

    def check(self) -> None:
        """Wrong if answers are wrong, memory has grown, or the log has what it should not have."""
        self._check_answers()
        if (grown := self._memory() - self.size) > GROWTH:
            raise Wrong(f"the server has grown by {grown >> 20} MB")
        with self.log.open("rb") as log:
            log.seek(self.read)
            content = log.read()
        whole = content[: content.rfind(b"\n") + 1]
        self.read += len(whole)
        lines = whole.decode("utf-8").split("\n")[:-1]
        for number in range(len(lines)):
            _check_line(lines, number)

    def _check_names(self) -> None:
        """Wrong if a name is more than text in a page, a picture or a result."""
        for path in SHOWN:
            steps = [["answer"], f"GET {path} HTTP/1.1\r\n", "Host: 127.0.0.1\r\n\r\n"]
            for _ in range(ATTEMPTS):
                (response,) = self.send(steps)
                check(response)
                if response.status != LATE:
                    break
            if response.status != 200:
                raise Wrong(f"{path} has the status {response.status}")

    def _check_answers(self) -> None:
        for text, right in self.right.items():
            answers = self.get("/api/ask?" + urlencode({"question": text, "k": 24}))["answers"]
            scores = {answer["id"]: answer["score"] for answer in answers}
            if not all(_close(scores.get(id_), score) for id_, score in right):
                raise Wrong(f"{text} is answered by {scores}, but {right} is right")

    def _memory(self) -> int:
        pages = Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
        return int(pages) * 4096


def _close(one: float | None, other: float) -> bool:
    if not math.isfinite(other):
        return one is None
    return one is not None and math.isclose(one, other, rel_tol=1e-4, abs_tol=1e-4)


def _receive(connection: socket.socket, methods: list[str], must_answer: bool) -> list[Response]:
    """The responses until the server closes the connection or has nothing more to say."""
    content, begun = b"", time.monotonic()
    responses: list[Response] = []
    is_open = True
    while is_open:
        is_waiting = (must_answer and len(responses) < len(methods)) or content
        connection.settimeout(max(0.01, begun + LATEST - time.monotonic()) if is_waiting else QUIET)
        try:
            part = connection.recv(1 << 20)
        except TimeoutError:
            if is_waiting:
                raise Wrong(f"no answer after {LATEST} s, but {content[:200]!r}") from None
            break
        except ConnectionResetError:
            part = b""
        is_open = bool(part)
        content += part
        found, content = split(content, methods[len(responses) :])
        responses += found
    if must_answer and not responses:
        raise Wrong(f"the connection was closed without an answer: {content[:200]!r}")
    return responses


def _check_line(lines: list[str], number: int) -> None:
    """Wrong if a line of the log is not the record of a request, or a known warning."""
    line = lines[number]
    if line.startswith(WARNINGS):
        return
    try:
        record: Any = json.loads(line)
    except ValueError:
        traceback = takewhile(lambda other: not other.startswith("{"), lines[number:])
        before = lines[number - 1] if number else ""  # the record of the request is written first
        raise Wrong("\n".join(["the log has", before, *traceback])[:TRACEBACK]) from None
    if record["seconds"] > LATEST or record["status"] == 500:
        raise Wrong(f"the log has {line[:500]}")
