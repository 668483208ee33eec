"""`make torture`: run all campaigns, print a line for each, and keep what fails.

python -m tests.torture --minutes 60 --seed 7
python -m tests.torture --only checkpoints --cases 500
python -m tests.torture --repeat torture-failures/checkpoints-0-17.json
"""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"  # before torch is imported: its threads would not be forked

from .campaigns import CAMPAIGNS
from .siege import HEADER, Siege, kind_of


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10, help="for all campaigns together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", metavar="NAME,NAME,…", help="some campaigns")
    parser.add_argument("--cases", type=int, help="the most cases of each campaign")
    parser.add_argument("--repeat", type=Path, metavar="FILE", help="run a failure again")
    parser.add_argument("--failures", type=Path, default=Path("torture-failures"))
    chosen = parser.parse_args()

    # So that the children need not import them; matplotlib asks another program for fonts, once.
    import matplotlib.font_manager  # noqa: F401

    import lmpnn_kge.cli
    import lmpnn_kge.plugin
    import lmpnn_kge.runs.train  # noqa: F401

    if chosen.repeat is not None:
        return repeat(chosen.repeat)
    known = {campaign.name: campaign for campaign in CAMPAIGNS}
    names = [name for name in chosen.only.split(",") if name] or list(known)
    if unknown := set(names) - set(known):
        parser.error(f"no campaign {', '.join(unknown)}; choose from {', '.join(known)}")
    weights = sum(known[name].weight for name in names)
    print(HEADER, flush=True)
    tallies = []
    for name in names:
        campaign = known[name]
        with tempfile.TemporaryDirectory(prefix=f"torture-{name}-") as folder:
            siege = Siege(campaign, chosen.seed, Path(folder) / "inputs", chosen.failures.resolve())
            tallies.append(siege.run(60 * chosen.minutes * campaign.weight / weights, chosen.cases))
        print(tallies[-1], flush=True)
    failures = [failure for tally in tallies for failure in tally.failures]
    print(f"{sum(tally.tried for tally in tallies):,} cases, {len(failures):,} failed")
    for kind, failure in {kind_of(f["reason"]): f for f in reversed(failures)}.items():
        alike = sum(kind_of(f["reason"]) == kind for f in failures)
        print(f"{alike} × {failure['reason'][:300]}\n    {failure['command']}")
    return int(bool(failures))


def repeat(file: Path) -> int:
    failure = json.loads(file.read_text())
    campaign = next(c for c in CAMPAIGNS if c.name == failure["campaign"])
    with tempfile.TemporaryDirectory(prefix="torture-") as folder:
        siege = Siege(campaign, failure["seed"], Path(folder) / "inputs", file.parent)
        siege.prepare()
        reason = siege.repeat(failure["steps"])
    print(f"{json.dumps(failure['steps'])}\n{reason or 'it does not fail any more'}")
    return int(reason is not None)


if __name__ == "__main__":
    sys.exit(main())
