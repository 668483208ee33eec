"""Threads that compute one after the other."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from lmpnn_kge.work import turns
from lmpnn_kge.work.turns import Turns

LONG = 60.0  # seconds that no test takes


@pytest.fixture
def patient(monkeypatch):
    """Turns that do not end by themselves."""
    monkeypatch.setattr(turns, "LONGEST", LONG)
    return Turns()


def waiting_for(turn: Turns, count: int) -> None:
    """Return when so many threads wait for their turn."""
    while len(turn._waiting) < count:
        threading.Event().wait(0.001)


@pytest.mark.parametrize("alone", [True, False])
def test_few_threads_compute_at_a_time(patient, alone):
    computing, most = 0, 0

    counting = threading.Lock()

    def compute(_: int) -> None:
        nonlocal computing, most
        for _ in range(50):
            with patient.turn(alone=alone):
                with counting:
                    computing += 1
                    most = max(most, computing)
                threading.Event().wait(0.0001)  # lets others run, as torch does
                with counting:
                    computing -= 1

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(compute, range(8)))
    assert most == (1 if alone else turns.AT_ONCE)


def test_turns_come_in_the_order_in_which_threads_asked(patient):
    order: list[int] = []

    def compute(number: int) -> None:
        with patient.turn(alone=True):
            order.append(number)

    with ThreadPoolExecutor(4) as pool, patient.turn(alone=True):
        for number in range(4):
            pool.submit(compute, number)
            waiting_for(patient, number + 1)
    assert order == [0, 1, 2, 3]


def test_a_turn_inside_a_turn_does_not_wait(patient):
    with patient.turn(alone=True), patient.turn():
        assert len(patient._running) == 1
    assert not patient._running


def test_another_thread_computes_while_one_waits_for_something(patient):
    done = threading.Event()

    def compute() -> None:
        with patient.turn():
            done.set()

    with patient.turn(alone=True):
        thread = threading.Thread(target=compute)
        thread.start()
        waiting_for(patient, 1)
        with patient.passed():
            assert done.wait(LONG)
        assert patient._running == [patient._own.turn]  # it has its turn again
    thread.join()


def test_nobody_waits_long_for_a_long_turn(monkeypatch):
    monkeypatch.setattr(turns, "LONGEST", 0.01)
    shared, done = Turns(), threading.Event()

    def compute() -> None:
        with shared.turn():
            done.set()

    with shared.turn(alone=True):
        thread = threading.Thread(target=compute)
        thread.start()
        assert done.wait(LONG)  # although this turn has not been given back
        thread.join()
    assert not shared._running


def test_a_thread_that_is_interrupted_while_it_waits_leaves_the_queue(patient, monkeypatch):
    class Interrupted:
        def acquire(self, timeout: float = 0.0) -> bool:
            if timeout:
                raise KeyboardInterrupt
            return True

    class Turn(turns._Turn):
        begun = property(lambda _: Interrupted(), lambda *_: None)

    with patient.turn(alone=True):
        with ThreadPoolExecutor(1) as pool, monkeypatch.context() as patched:
            patched.setattr(turns, "_Turn", Turn)
            with pytest.raises(KeyboardInterrupt):
                pool.submit(patient._take, 1).result()
        assert not patient._waiting
    assert not patient._running


def test_an_error_gives_the_turn_back(patient):
    with pytest.raises(KeyError), patient.turn():
        raise KeyError
    assert not patient._running
