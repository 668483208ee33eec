"""A run that is served: questions, exact answers and reasons as plain data."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

from lmpnn_kge.errors import ConfigError, LmpnnError, QueryError, RunError, choices, one_line
from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph
from lmpnn_kge.methods.names import CQD_BEAM, HYBRID, LMPNN, SEARCH
from lmpnn_kge.query.draw_reasons import panel_of
from lmpnn_kge.query.drawing.graph_data import graph_data
from lmpnn_kge.query.formula import Formula, Term
from lmpnn_kge.query.parser import check_single, read_query
from lmpnn_kge.query.reason import Reason
from lmpnn_kge.runs.answer import Answer, AnswerList
from lmpnn_kge.runs.questions import DEFAULT_ANSWERS
from lmpnn_kge.runs.run import Run
from lmpnn_kge.serve import requests, responses
from lmpnn_kge.serve.completer import Completer
from lmpnn_kge.serve.limits import Limits
from lmpnn_kge.serve.run_report import RunReport
from lmpnn_kge.work.listener import SILENT, Listener

#: What a group that is denied as a whole does not have.
_GROUP = {"relation": None, "head": None, "tail": None}


class ServedRun:
    """A run with its name and limits; everything that takes long is made ready once.

    Any number of threads can use it at the same time.
    """

    def __init__(self, name: str, run: Run, limits: Limits, listener: Listener = SILENT):
        self.name, self.run, self.limits = name, run, limits
        # Whoever looks at the page need not know where the run is.
        self.notes = [note.replace(str(run.folder.path), name) for note in run.notes]
        self.methods = self._ready(listener)
        self.completer = Completer(run.vocabulary, run.knowledge)
        self.report = RunReport(name, run.folder.path)
        if run.graph is not None:  # loaded now, so that no request has to
            run.graph.database.engine.use_threads(limits.statement_threads)

    def _ready(self, listener: Listener) -> list[str]:
        """The methods that answer, the best first, each fitted or read from the run."""
        methods = []
        for method in (HYBRID, SEARCH, LMPNN, CQD_BEAM):
            try:
                self.run.prepare(method, listener)
            except LmpnnError as error:
                if method == LMPNN:
                    raise
                self.notes.append(f"{method} is not offered: {one_line(error)}")
            else:
                methods.append(method)
        return methods

    @property
    def graph(self) -> KnowledgeGraph:
        """The graph of the run; RunError if it was not found."""
        if self.run.graph is None:
            raise RunError(
                f"the graph of {self.name} was not found, so only predictions can be had; serve "
                "the run again when its dataset is back in its place"
            )
        return self.run.graph

    def method(self, name: str | None) -> str:
        """A method by its name, or the best one."""
        if name is None:
            return self.methods[0]
        if name not in self.methods:
            raise ConfigError(f"{self.name} has no method {name!r}; {choices(name, self.methods)}")
        return name

    def check_length(self, question: str) -> None:
        """QueryError if a question is longer than the server reads."""
        if len(question) > self.limits.characters:
            raise QueryError(
                f"the question has {len(question):,} characters; this server reads up to "
                f"{self.limits.characters:,}"
            )

    def ask(self, wanted: requests.Ask) -> responses.Answers:
        """The answers to one question."""
        (result,) = self.ask_each([wanted.question], wanted)
        if isinstance(result, QueryError):
            raise result
        return result

    def ask_each(
        self, questions: Sequence[str | Formula], wanted: requests.AskOptions
    ) -> list[responses.Answers | QueryError]:
        """The answers to each question, or what is wrong with it."""
        method, begun = self.method(wanted.method), time.perf_counter()
        ends = [self._end(question, wanted) for question in questions]
        lengths = [end for end in ends if isinstance(end, int)]
        asked = [
            question for question, end in zip(questions, ends, strict=True) if isinstance(end, int)
        ]
        answered = iter(
            self.run.ask_each(
                asked,
                min(self.limits.rows, max(lengths, default=0)) + 1,  # one more shows if there are
                predicted=wanted.predicted,
                method=method,
                candidates=wanted.candidates,
                explain=wanted.explain,
                timeout=min(wanted.timeout or math.inf, self.limits.seconds),
            )
        )
        seconds = time.perf_counter() - begun
        return [
            self._page(next(answered), method, wanted.offset, end, seconds)
            if isinstance(end, int)
            else end
            for end in ends
        ]

    def _end(self, question: str | Formula, wanted: requests.AskOptions) -> int | QueryError:
        """How many answers a question wants, with those before the offset."""
        limit = None
        if isinstance(question, str):
            try:
                self.check_length(question)
                query = read_query(question)
                check_single(query.formula)
                limit = query.limit
            except QueryError as error:
                return error
        return wanted.offset + (wanted.k or limit or DEFAULT_ANSWERS)

    def _page(
        self, answers: AnswerList | QueryError, method: str, offset: int, end: int, seconds: float
    ) -> responses.Answers | QueryError:
        """The answers from an offset to an end, as far as the limit of rows allows."""
        if isinstance(answers, QueryError):
            return answers
        last = min(end, self.limits.rows)
        return {
            "run": self.name,
            "question": answers.question,
            "method": method,
            "estimated": answers.estimated,
            "notes": list(answers.notes),
            "answers": [
                _answer(rank, answer)
                for rank, answer in enumerate(answers[offset:last], offset + 1)
            ],
            "more": len(answers) > last,
            "complete": last == end or len(answers) <= last,
            "seconds": round(seconds, 6),
        }

    def answer(self, wanted: requests.AnswerExactly) -> responses.ExactAnswers:
        """The exact answers to a question, by known edges."""
        self.check_length(wanted.question)
        begun, names = time.perf_counter(), self.graph.vocabulary
        rows = self.graph.answer_rows(wanted.question, wanted.split).tolist()
        end = min(wanted.offset + (wanted.k or self.limits.rows), self.limits.rows)
        return {
            "run": self.name,
            "question": wanted.question,
            "split": wanted.split,
            "answers": [
                {"id": names.entity_ids[row], "label": names.label(row)}
                for row in rows[wanted.offset : end]
            ],
            "total": len(rows),
            "complete": end >= len(rows),
            "seconds": round(time.perf_counter() - begun, 6),
        }

    def explain(self, wanted: requests.Explain) -> responses.Explanation:
        """The reasons for one answer, each with its drawing."""
        self.check_length(wanted.question)
        _ = self.graph  # without a graph there are no reasons
        answer = self.run.explain(
            wanted.question,
            wanted.answer,
            min(wanted.count, self.limits.rows),
            method=self.method(wanted.method),
        )
        return {
            "run": self.name,
            "question": wanted.question,
            "answer": {
                "id": answer.id,
                "label": answer.label,
                "known": bool(answer.known),
                "confirmed": bool(answer.confirmed),
            },
            "reasons": [_reason(reason, drawn=True) for reason in answer.reasons],
        }


def _answer(rank: int, answer: Answer) -> responses.Answer:
    return {
        "rank": rank,
        "id": answer.id,
        "label": answer.label,
        "score": answer.score if math.isfinite(answer.score) else None,
        "probability": answer.probability,
        "known": answer.known,
        "confirmed": answer.confirmed,
        "mark": answer.mark,
        "reasons": [_reason(reason, drawn=False) for reason in answer.reasons],
    }


def _reason(reason: Reason, *, drawn: bool) -> responses.Reason:
    def id_of(term: Term) -> str | None:
        return reason.names[term].id if term in reason.names else None

    content = reason.to_json()
    atoms: Any = [{**_GROUP, **atom} for atom in content["atoms"]]
    graph: Any = graph_data(panel_of(reason), id_of) if drawn else None
    return {
        "disjunct": content["disjunct"],
        "values": content["values"],
        "truth": content["truth"],
        "atoms": atoms,
        "title": reason.title,
        "graph": graph,
    }
