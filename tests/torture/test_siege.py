"""The framework notices every way in which a case can fail, and makes failing cases smaller."""

import json
import subprocess
import sys

from ..conftest import ROOT

#: Runs a campaign of cases that end in every way; prints its tally and the failures.
PROGRAM = """
import json, os, sys, time
from pathlib import Path
from tests.torture.campaign import Campaign, Outcome, Wrong
from tests.torture.siege import Siege

class Ends(Campaign):
    name, seconds, memory = "ends", 1, 1 << 28
    ways = ("accepted", "refused", "wrong", "exception", "memory", "crash", "hang", "exit", "shell",
            "exception that is caught")

    def prepare(self, inputs):
        (inputs / "sound").write_text("sound")

    def count(self, inputs):
        return len(self.ways)

    def draw(self, number, random, inputs):
        return ["nothing", random.random(), self.ways[number], "nothing", "nothing"]

    def run(self, steps, inputs, scratch):
        assert (inputs / "sound").read_text() == "sound"
        assert not list(scratch.iterdir())
        (scratch / "file").touch()
        if "wrong" in steps:
            raise Wrong("another answer")
        if "exception" in steps:
            {}["key"]
        if "memory" in steps:
            bytearray(1 << 30)
        if "crash" in steps:
            os.abort()
        if "hang" in steps:
            time.sleep(60)
        if "exit" in steps:
            os._exit(3)
        if "shell" in steps:
            os.system("true")
        if "exception that is caught" in steps:
            try:
                os.system("true")
            except Wrong:
                pass
        return Outcome.REFUSED if "refused" in steps else Outcome.ACCEPTED

folder = Path(sys.argv[1])
tally = Siege(Ends(), 0, folder / "inputs", folder / "failures", 2).run(60)
print(json.dumps([tally.tried, tally.refused, tally.accepted, tally.failures]))
"""


def test_every_end_of_a_case_is_counted_and_failures_are_made_smaller(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    tried, refused, accepted, failures = json.loads(done.stdout)
    assert (tried, refused, accepted) == (10, 1, 1)
    reasons = {steps[-1]: failure["reason"] for failure in failures for steps in [failure["steps"]]}
    by_case = {failure["case"]: failure for failure in failures}
    assert sorted(by_case) == [2, 3, 4, 5, 6, 7, 8, 9]
    words = {
        2: "Wrong: another answer",
        3: "KeyError: 'key'",
        4: "MemoryError",
        5: "ended by signal 6",
        6: "no end after 1 s",
        7: "ended with code 3",
        8: "the case caused os.system",
        9: "the case caused os.system",
    }
    for number, text in words.items():
        assert text in by_case[number]["reason"], reasons
    smaller = [failure for failure in failures if len(failure["steps"]) == 1]
    assert len(smaller) >= 5
    kept = json.loads((tmp_path / "failures" / "ends-0-2.json").read_text())
    assert kept["steps"] == ["wrong"]
    assert "--repeat" in kept["command"]
