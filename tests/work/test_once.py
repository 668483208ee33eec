"""Properties that threads share."""

import threading
from concurrent.futures import ThreadPoolExecutor

from lmpnn_kge.work.once import once


class Thing:
    def __init__(self, threads: int):
        self.all_here = threading.Barrier(threads)
        self.computed = 0

    @once
    def value(self) -> object:
        """What is asked for."""
        self.computed += 1
        return object()

    def ask(self) -> object:
        self.all_here.wait()
        return self.value


def test_a_property_is_computed_once_however_many_threads_ask():
    for _ in range(20):
        thing = Thing(8)
        with ThreadPoolExecutor(8) as pool:
            values = [future.result() for future in [pool.submit(thing.ask) for _ in range(8)]]
        assert len(set(map(id, values))) == 1
        assert thing.computed == 1


def test_instances_have_their_own_values_and_the_class_keeps_the_property():
    assert Thing(1).value is not Thing(1).value
    assert isinstance(Thing.value, once)
    assert Thing.value.__doc__ == "What is asked for."
