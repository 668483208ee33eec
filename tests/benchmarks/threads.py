"""Threads that ask one run and its graph: their rate against that of one thread, and the answers.

python -m tests.benchmarks.threads RUN --seconds 60 --threads 16 --processes 2

Exact answers and those of each method take turns. One thread asks first, for a third of the time;
what the others get must be equal to its answers. The threads ask the run itself and, with
--processes, a pool. One thread may use several cores, as torch does for products;
`OMP_NUM_THREADS=1` prevents that.
"""

import argparse
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from lmpnn_kge import Answer, Run, RunPool

from .load import questions_of

QUESTIONS = 280

Ask = Callable[[], object]


def questions(run: Run, methods: list[str]) -> list[tuple[str, str]]:
    """Questions, each with the way to ask it: exact answers and the methods in turn."""
    ways = itertools.cycle(["exact", *methods])
    return list(zip(questions_of(run, QUESTIONS), ways, strict=False))


def ask(run: Run, text: str, way: str) -> object:
    if way == "exact":
        return run.graph.answer_rows(text, "train").tolist()
    return [fields_of(answer) for answer in run.ask(text, 10, method=way)]


def fields_of(answer: Answer) -> tuple[object, ...]:
    return answer.id, answer.score, answer.probability, answer.known, answer.confirmed


def rate(calls: list[Ask], threads: int, seconds: float, results: dict[int, object]) -> float:
    """Questions per second of some threads, and how many answers differ from earlier ones."""
    numbers: Iterator[int] = itertools.cycle(range(len(calls)))
    lock, deadline, asked = threading.Lock(), time.monotonic() + seconds, [0] * threads
    different: list[int] = []

    def work(own: int) -> None:
        while time.monotonic() < deadline:
            with lock:
                number = next(numbers)
            result = calls[number]()
            if results.setdefault(number, result) != result:
                different.append(number)
            asked[own] += 1

    begun, used = time.monotonic(), time.process_time()
    workers = [threading.Thread(target=work, args=(own,)) for own in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    taken, total = time.monotonic() - begun, sum(asked)
    cores = (time.process_time() - used) / taken
    print(f"{threads:>2} threads: {total:,} questions, {len(different)} differ, {cores:.2f} cores")
    return total / taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--processes", type=int, default=0)
    parser.add_argument("--methods", default="lmpnn,search,hybrid")
    chosen = parser.parse_args()
    run = Run.open(chosen.run)
    wanted = questions(run, chosen.methods.split(","))
    calls = [partial(ask, run, *question) for question in wanted]
    for call in calls:  # what is fitted and loaded once
        call()
    results: dict[int, object] = {}
    one = rate(calls, 1, chosen.seconds / 3, results)
    many = rate(calls, chosen.threads, chosen.seconds, results)
    print(f"one thread {one:.1f}/s, {chosen.threads} threads {many:.1f}/s: {many / one:.2f} ×")
    if chosen.processes:
        with RunPool(chosen.run, chosen.processes) as pool:
            pooled = [partial(pool.call, ask, *question) for question in wanted]
            rate(pooled, chosen.threads, chosen.seconds / 3, results)  # every process has opened it
            many = rate(pooled, chosen.threads, chosen.seconds, results)
        print(f"with {chosen.processes} processes {many:.1f}/s: {many / one:.2f} ×")


if __name__ == "__main__":
    main()
