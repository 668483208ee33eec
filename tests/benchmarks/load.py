"""Many clients ask one server at once: rates, waiting times, memory, and whether answers are right.

python -m tests.benchmarks.load RUN --questions 5000 --clients 16 --methods lmpnn,search
python -m tests.benchmarks.load RUN --minutes 20 --methods hybrid --rate 40

The answers are compared with those of the library, called directly. With --minutes, questions are
repeated for that time, and the memory of the server is printed for every minute; --rate limits how
many are asked in a second.
"""

import argparse
import http.client
import itertools
import json
import math
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np

from lmpnn_kge import Run

#: What is compared, for each answer.
FIELDS = ("id", "probability", "known", "confirmed")


def questions_of(run: Run, count: int) -> list[str]:
    """Test queries of all types in turn."""
    store, _ = run.queries("test")
    columns = [
        [str(store.question(queries, row)) for row in range(min(len(queries), count))]
        for queries in store.queries("test").values()
    ]
    mixed = [text for texts in itertools.zip_longest(*columns) for text in texts if text]
    return list(itertools.islice(itertools.cycle(mixed), count))


class Server:
    """`lmpnn-kge serve` as a process."""

    def __init__(self, folder: Path):
        command = [sys.executable, "-m", "lmpnn_kge", "serve", str(folder), "--port", "0"]
        self.process = subprocess.Popen(
            [*command, "--no-log"], stdout=subprocess.PIPE, text=True, bufsize=1
        )
        line = next(line for line in self.process.stdout if "page is at" in line)
        self.port = int(re.search(r":(\d+)/", line)[1])

    @property
    def megabytes(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024

    @property
    def seconds(self) -> float:
        """The time of the processor that the server has taken."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def client(port: int, numbers, questions, method, seconds, answers) -> None:
    """One client: a connection on which it asks one question after the other."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    for number in numbers:
        body = json.dumps({"question": questions[number], "method": method})
        begun = time.perf_counter()
        connection.request("POST", "/api/ask", body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        content = response.read()
        seconds.append(time.perf_counter() - begun)
        assert response.status == 200, content
        answers[number] = content


def ask_all(port: int, questions: list[str], method: str, clients: int):
    """All questions by all clients; the rate, and the waiting times."""
    seconds, answers = [], {}
    begun = time.perf_counter()
    threads = [
        threading.Thread(
            target=client,
            args=(port, range(first, len(questions), clients), questions, method, seconds, answers),
        )
        for first in range(clients)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rate = len(questions) / (time.perf_counter() - begun)
    return rate, np.percentile(seconds, [50, 99]) * 1000, answers


def differing(run: Run, questions: list[str], method: str, answers) -> int:
    """How many responses differ from what the library answers, one question at a time."""
    different = 0
    for number, question in enumerate(questions):
        direct = [vars(answer) for answer in run.ask(question, method=method)]
        served = json.loads(answers[number])["answers"]
        different += _compared(direct) != _compared(served)
    return different


def _compared(answers) -> list[list]:
    return [[answer[field] for field in FIELDS] for answer in answers]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--questions", type=int, default=5000)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--methods", default="lmpnn,search")
    parser.add_argument("--minutes", type=float, default=0)
    parser.add_argument("--rate", type=float, default=math.inf)
    chosen = parser.parse_args()
    run = Run.open(chosen.run)
    questions = questions_of(run, chosen.questions)
    server = Server(chosen.run)
    try:
        if chosen.minutes:
            soak(server, questions, chosen)
            return
        for method in chosen.methods.split(","):
            before = server.seconds
            rate, (median, slow), answers = ask_all(server.port, questions, method, chosen.clients)
            each = (server.seconds - before) / len(questions) * 1000
            wrong = differing(run, questions, method, answers)
            print(
                f"{method}: {len(questions):,} questions of {chosen.clients} clients, "
                f"{rate:.0f}/s, p50 {median:.0f} ms, p99 {slow:.0f} ms, {each:.1f} ms of "
                f"processor time each, {wrong} differ, "
                f"{server.megabytes:.0f} MB",
                flush=True,
            )
    finally:
        server.process.terminate()
        server.process.wait()


def soak(server: Server, questions: list[str], chosen) -> None:
    """Ask for some minutes; print the memory of the server after each, relative to the first."""
    begun, done, minutes = time.monotonic(), 0, []
    methods = itertools.cycle(chosen.methods.split(","))
    part = 20 * chosen.clients
    while (passed := time.monotonic() - begun) < 60 * chosen.minutes:
        first = done % max(1, len(questions) - part)
        ask_all(server.port, questions[first : first + part], next(methods), chosen.clients)
        done += part
        time.sleep(max(0.0, begun + done / chosen.rate - time.monotonic()))
        if passed >= 60 * (len(minutes) + 1):
            minutes.append(server.megabytes)
            change = minutes[-1] / minutes[0] - 1
            print(
                f"minute {len(minutes)}: {done:,} questions, {minutes[-1]:.0f} MB, {change:+.1%}",
                flush=True,
            )


if __name__ == "__main__":
    main()
