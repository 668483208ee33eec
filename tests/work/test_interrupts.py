"""Ctrl-C while the main thread waits for work that Python cannot interrupt."""

import os
import signal
import threading

import pytest

from lmpnn_kge.work.interrupts import interruptible


def test_ctrl_c_interrupts_work_that_another_thread_does():
    interrupted = threading.Event()

    def work() -> None:
        os.kill(os.getpid(), signal.SIGINT)  # which the main thread gets
        interrupted.wait()

    with pytest.raises(KeyboardInterrupt):
        interruptible(work, interrupted.set)
    assert interrupted.is_set()


def test_results_and_errors_are_those_of_the_work():
    assert interruptible(lambda: 7, pytest.fail) == 7
    with pytest.raises(ZeroDivisionError):
        interruptible(lambda: 1 / 0, pytest.fail)


def test_other_threads_do_their_work_themselves():
    threads = []
    work = threading.Thread(
        target=lambda: threads.append(interruptible(threading.current_thread, pytest.fail))
    )
    work.start()
    work.join()
    assert threads == [work]
