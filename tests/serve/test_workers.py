"""Limits: time, rows, how much at once, and clients that go away."""

import asyncio
import dataclasses
import gc
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from starlette.requests import Request

from lmpnn_kge.errors import StoppedError, TimeLimitError
from lmpnn_kge.serve.endpoints import Service
from lmpnn_kge.serve.limits import Limits
from lmpnn_kge.serve.served_run import ServedRun
from lmpnn_kge.serve.workers import BusyError, ClientGone, Workers
from lmpnn_kge.work.deadline import check_time

from .conftest import client_of

PATH = 'friend_of("Ada Voss", ?x) & known_in(?x, ?)'


def request(*messages):
    """A request whose client sends these messages, and then nothing any more."""
    waiting = list(messages)

    async def receive():
        if waiting:
            return waiting.pop(0)
        return await asyncio.Event().wait()

    return Request({"type": "http", "method": "GET", "path": "/", "headers": []}, receive)


def run_alone(work):
    """Run a coroutine in a thread of its own: that of the tests may have a loop of a browser."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


def until_stopped(ended: threading.Event):
    """Work that checks the time, as every long computation does."""
    try:
        while True:
            check_time()
    finally:
        ended.set()


def serving(run, **limits) -> Service:
    limited = dataclasses.replace(Limits(), **limits)
    return Service({"toy": ServedRun("toy", run, limited)}, limited)


def test_work_ends_at_its_time_limit():
    workers, ended = Workers(Limits(seconds=0.05)), threading.Event()
    with pytest.raises(TimeLimitError):
        run_alone(workers.run(request(), lambda: until_stopped(ended)))
    assert ended.is_set()
    workers.close()


def test_work_is_stopped_when_its_client_goes_away():
    workers, ended = Workers(Limits(seconds=1000)), threading.Event()
    gone = request({"type": "http.disconnect"})
    with pytest.raises(ClientGone):
        run_alone(workers.run(gone, lambda: until_stopped(ended)))
    assert ended.is_set()
    assert workers.pending == 0
    workers.close()


def test_closing_stops_all_work():
    workers, ended = Workers(Limits(seconds=1000)), threading.Event()
    workers.closing.set()
    with pytest.raises(ClientGone):
        run_alone(workers.run(request(), lambda: until_stopped(ended)))
    assert ended.is_set()
    workers.close()


def test_more_requests_than_can_wait_are_refused():
    workers, begun, go = Workers(Limits(at_once=1, waiting=1)), threading.Event(), threading.Event()

    def work():
        begun.set()
        go.wait()
        return "done"

    async def scene():
        tasks = [asyncio.create_task(workers.run(request(), work)) for _ in range(2)]
        await asyncio.to_thread(begun.wait)
        with pytest.raises(BusyError, match="2 requests"):
            await workers.run(request(), work)
        go.set()
        return await asyncio.gather(*tasks)

    assert run_alone(scene()) == ["done", "done"]
    workers.close()


def test_work_that_cannot_begin_in_time_is_refused_and_never_done():
    workers, go, done = Workers(Limits(seconds=0.05, at_once=1)), threading.Event(), []

    async def scene():
        first = asyncio.create_task(workers.run(request(), go.wait))
        await asyncio.sleep(0)  # it takes the only thread
        with pytest.raises(BusyError, match="2 requests"):
            await workers.run(request(), lambda: done.append(1))
        go.set()
        return await first

    assert run_alone(scene()) is True
    workers.close()
    assert (done, workers.pending) == ([], 0)


def test_the_error_of_work_that_nobody_waits_for_is_not_reported(caplog):
    workers, go = Workers(Limits()), threading.Event()

    async def leave():
        go.set()
        return {"type": "http.disconnect"}

    def fail():
        go.wait(60)
        raise ValueError("nobody wants to know")

    gone = Request({"type": "http", "method": "GET", "path": "/", "headers": []}, leave)
    with pytest.raises(ClientGone):
        run_alone(workers.run(gone, fail))
    workers.close()
    gc.collect()  # asyncio reports an error that nobody has looked at when it is forgotten
    assert "nobody wants to know" not in caplog.text


def test_a_question_that_takes_too_long_is_answered_with_504(run):
    client = client_of(serving(run, seconds=1e-9))
    refused = client.post("/api/ask", json={"question": PATH})
    assert refused.status_code == 504
    assert "no answer within" in refused.json()["error"]["message"]
    assert client.post("/api/answer", json={"question": PATH}).status_code == 504


def test_a_busy_server_says_when_to_come_back(run):
    client = client_of(serving(run, at_once=1, waiting=-1))
    refused = client.get("/api/runs")
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")


def test_answers_that_are_cut_are_not_called_complete(run):
    client = client_of(serving(run, rows=3))
    for k, complete in ((3, True), (4, False)):
        answers = client.post("/api/ask", json={"question": PATH, "k": k}).json()
        assert len(answers["answers"]) == 3
        assert answers["complete"] is complete
        assert answers["more"]
    exact = client.post("/api/answer", json={"question": "known_in(?x, ?)"}).json()
    assert len(exact["answers"]) == 3 < exact["total"]
    assert not exact["complete"]


def test_a_stream_of_too_many_questions_is_refused(run):
    client = client_of(serving(run, lines=2))
    headers = {"Content-Type": "application/x-ndjson"}
    assert client.post("/api/ask", content='"a"\n"b"\n"c"', headers=headers).status_code == 413


def test_a_statement_of_the_database_is_stopped(run):
    from lmpnn_kge.work.deadline import stoppable

    stopped = threading.Event()
    stopped.set()
    with stoppable(stopped), pytest.raises(StoppedError, match="withdrawn"):
        run.graph.answer(PATH)


def test_work_is_stopped_if_the_server_ends_before_it():
    workers, begun, ended = Workers(Limits()), threading.Event(), threading.Event()

    def work():
        begun.set()
        until_stopped(ended)

    async def scene():
        task = asyncio.create_task(workers.run(request(), work))
        await asyncio.to_thread(begun.wait)
        task.cancel()
        with pytest.raises(BusyError, match="the server stops"):
            await task

    run_alone(scene())
    workers.close()
    assert ended.is_set()


def test_health_does_not_wait_for_those_who_ask(run):
    client = client_of(serving(run, at_once=1, waiting=-1))
    assert client.get("/api/runs").status_code == 503
    assert client.get("/health").json()["status"] == "ok"
