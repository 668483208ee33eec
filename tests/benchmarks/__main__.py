"""`make bench`: every benchmark in a process of its own, so that each shows its own memory."""

import subprocess
import sys
from pathlib import Path

chosen = sys.argv[1:] or sorted(path.stem for path in Path(__file__).parent.glob("bench_*.py"))
for name in chosen:
    print(f"== {name.removeprefix('bench_')}", flush=True)
    subprocess.run([sys.executable, "-m", f"tests.benchmarks.{name}"], check=True)
