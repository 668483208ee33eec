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


def test_one_thread_computes_at_a_time(patient):
    computing, most = 0, 0

    def compute(_: int) -> None:
        nonlocal computing, most
        for _ in range(50):
            with patient.turn():
                computing += 1
                most = max(most, computing)
                threading.Event().wait(0.0001)  # lets others run, as torch does
                computing -= 1

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(compute, range(8)))
    assert most == 1


def test_turns_come_in_the_order_in_which_threads_asked(patient):
    order: list[int] = []

    def compute(number: int) -> None:
        with patient.turn():
            order.append(number)

    with ThreadPoolExecutor(4) as pool, patient.turn():
        for number in range(4):
            pool.submit(compute, number)
            waiting_for(patient, number + 1)
    assert order == [0, 1, 2, 3]


def test_a_turn_inside_a_turn_does_not_wait(patient):
    with patient.turn(), patient.turn():
        pass
    with patient.turn():  # it was given back
        pass


def test_another_thread_computes_while_one_waits_for_something(patient):
    done = threading.Event()

    def compute() -> None:
        with patient.turn():
            done.set()

    with patient.turn():
        thread = threading.Thread(target=compute)
        thread.start()
        waiting_for(patient, 1)
        with patient.passed():
            assert done.wait(LONG)
        assert patient._own.turn is patient._current  # it has its turn again
    thread.join()


def test_nobody_waits_long_for_a_long_turn(monkeypatch):
    monkeypatch.setattr(turns, "LONGEST", 0.01)
    shared, done = Turns(), threading.Event()

    def compute() -> None:
        with shared.turn():
            done.set()

    with shared.turn():
        thread = threading.Thread(target=compute)
        thread.start()
        assert done.wait(LONG)  # although this turn has not been given back
        thread.join()
    with shared.turn():
        pass
    assert shared._current is None


def test_a_thread_that_is_interrupted_while_it_waits_leaves_the_queue(patient, monkeypatch):
    class Interrupted:
        def acquire(self, timeout: float = 0.0) -> bool:
            if timeout:
                raise KeyboardInterrupt
            return True

    with patient.turn():
        with ThreadPoolExecutor(1) as pool, monkeypatch.context() as patched:
            patched.setattr(turns._Turn, "__init__", lambda self: None)
            patched.setattr(turns._Turn, "begun", Interrupted(), raising=False)
            with pytest.raises(KeyboardInterrupt):
                pool.submit(patient._take).result()
        assert not patient._waiting
    with patient.turn():
        pass


def test_an_error_gives_the_turn_back(patient):
    with pytest.raises(KeyError), patient.turn():
        raise KeyError
    assert patient._current is None
