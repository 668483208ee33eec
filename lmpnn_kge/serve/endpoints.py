"""The endpoints of the HTTP interface: one table, from which routes and descriptions are made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lmpnn_kge import __version__
from lmpnn_kge.serve import describe, drawings, requests, responses
from lmpnn_kge.serve.http import HttpError
from lmpnn_kge.serve.limits import Limits
from lmpnn_kge.serve.served_run import ServedRun


class Service:
    """The runs that are served, by name; the first one is meant if none is named."""

    def __init__(self, runs: Mapping[str, ServedRun], limits: Limits):
        self.runs, self.limits = dict(runs), limits
        self.summaries = {name: describe.summary(served) for name, served in runs.items()}

    def run(self, name: str | None) -> ServedRun:
        """A run by its name."""
        if name is None:
            return next(iter(self.runs.values()))
        if name not in self.runs:
            known = ", ".join(self.runs)
            raise HttpError(404, f"there is no run {name[:100]!r}; this server has {known}")
        return self.runs[name]

    def list_runs(self, _: requests.Nothing) -> responses.Runs:
        limits = self.limits
        return {
            "runs": list(self.summaries.values()),
            "limits": {
                "seconds": limits.seconds,
                "rows": limits.rows,
                "characters": limits.characters,
                "lines": limits.lines,
                "body": limits.body,
            },
        }

    def describe_run(self, wanted: requests.OfRun) -> responses.RunDetails:
        served = self.run(wanted.run)
        return describe.details(served, self.summaries[served.name])

    def ask(self, wanted: requests.Ask) -> responses.Answers:
        return self.run(wanted.run).ask(wanted)

    def answer(self, wanted: requests.AnswerExactly) -> responses.ExactAnswers:
        return self.run(wanted.run).answer(wanted)

    def explain(self, wanted: requests.Explain) -> responses.Explanation:
        return self.run(wanted.run).explain(wanted)

    def draw(self, wanted: requests.Draw) -> responses.Drawing:
        return drawings.drawing(self.run(wanted.run), wanted)

    def edit(self, wanted: requests.Edit) -> responses.Edited:
        return drawings.edited(wanted)

    def complete(self, wanted: requests.Complete) -> responses.Completions:
        return self.run(wanted.run).completer.complete(wanted)

    def entity(self, wanted: requests.DescribeEntity) -> responses.Entity:
        return describe.entity(self.run(wanted.run), wanted)

    def health(self, _: requests.Nothing) -> responses.Health:
        return {"status": "ok", "version": __version__}


@dataclass(frozen=True)
class Endpoint:
    """A path, what it is for, and the types of its parameters and of its response."""

    path: str
    about: str
    parameters: type[Any]
    response: type[Any]
    call: Callable[[Service, Any], Any]
    at_once: bool = False  # without waiting for a thread that answers requests


ENDPOINTS = (
    Endpoint(
        "/health",
        "Whether the server runs.",
        requests.Nothing,
        responses.Health,
        Service.health,
        at_once=True,
    ),
    Endpoint(
        "/api/runs",
        "The runs that are served, and the limits of a request.",
        requests.Nothing,
        responses.Runs,
        Service.list_runs,
    ),
    Endpoint(
        "/api/run",
        "One run: its results, calibration, settings and provenance.",
        requests.OfRun,
        responses.RunDetails,
        Service.describe_run,
    ),
    Endpoint(
        "/api/ask",
        "Answers to a question, known and predicted. As POST, it also takes a question per line "
        "(application/x-ndjson) with the options in the URL, and streams a line for each.",
        requests.Ask,
        responses.Answers,
        Service.ask,
    ),
    Endpoint(
        "/api/answer",
        "Exact answers to a question, by the edges of the graph.",
        requests.AnswerExactly,
        responses.ExactAnswers,
        Service.answer,
    ),
    Endpoint(
        "/api/explain",
        "Why an entity answers a question.",
        requests.Explain,
        responses.Explanation,
        Service.explain,
    ),
    Endpoint(
        "/api/draw",
        "A question, checked, in both languages, and its graph: as data, or as SVG.",
        requests.Draw,
        responses.Drawing,
        Service.draw,
    ),
    Endpoint(
        "/api/edit",
        "A question after an edit of its drawing.",
        requests.Edit,
        responses.Edited,
        Service.edit,
    ),
    Endpoint(
        "/api/complete",
        "Names that fit a place in a question.",
        requests.Complete,
        responses.Completions,
        Service.complete,
    ),
    Endpoint(
        "/api/entity",
        "What the graph knows of an entity, and what is predicted.",
        requests.DescribeEntity,
        responses.Entity,
        Service.entity,
    ),
)
