"""Training on, and ranking by, an entity table of 12 GB in a process with 3 GB of memory.

`python -m tests.benchmarks.bench_tables [FOLDER]` writes the table to FOLDER, which needs 12 GB,
and removes it at the end. The kernel limits the data of the process (RLIMIT_DATA: all memory that
is not a file's) to 3 GB. The peak is that of all of its memory, with the pages of the file that it
had mapped at the time (VmHWM). The system may keep more of the file in its cache, which belongs to
no process; the cache is emptied of it before each step.
"""

import json
import os
import resource
import struct
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch

from lmpnn_kge.backbones.open import build, find_backbone, read_checkpoint
from lmpnn_kge.lmpnn.network import Lmpnn
from lmpnn_kge.methods.lmpnn import LmpnnMethod
from lmpnn_kge.methods.rank import rank_types
from lmpnn_kge.runs.best import choosing
from lmpnn_kge.runs.questions import Batch
from lmpnn_kge.settings.files import load_config
from lmpnn_kge.training.folder import RunFolder
from lmpnn_kge.training.lmpnn import LmpnnTask
from lmpnn_kge.training.loop import Loop

from .measure import peak_megabytes
from .workload import evaluation_queries, training_queries

ENTITIES, RELATIONS, DIM = 3_000_000, 200, 1000
MEMORY, TABLE_MEMORY = 3 * 10**9, "1GB"


def write_table(file: Path) -> None:
    """A .safetensors file of a ComplEx without names, written a part at a time."""
    sizes = {"relations": [RELATIONS, DIM], "entities": [ENTITIES, DIM]}
    facts = {"format": 1, "backbone": "complex", "reciprocal": False, "fields": {}}
    facts |= dict.fromkeys(("dataset", "entity_ids", "relation_ids"))
    header: dict[str, object] = {"__metadata__": {"lmpnn_kge": json.dumps(facts)}}
    end = 0
    for name, (rows, width) in sizes.items():
        start, end = end, end + 4 * rows * width
        header[name] = {"dtype": "F32", "shape": [rows, width], "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    random = torch.Generator().manual_seed(0)
    with file.open("wb") as stream:
        stream.write(struct.pack("<Q", len(text)) + text)
        for rows, width in sizes.values():
            for start in range(0, rows, 50_000):
                shape = min(50_000, rows - start), width
                stream.write(torch.randn(shape, generator=random).numpy().data)
        os.fsync(stream.fileno())


def timed(what: str, file: Path, count: int, step: Callable[[], object]) -> None:
    with file.open("rb") as stream:
        os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    start, cpu = time.perf_counter(), time.process_time()
    step()
    taken, cpu = time.perf_counter() - start, time.process_time() - cpu
    size = f"{count:,} in {taken:.1f} s, {cpu:.1f} s of CPU"
    print(f"{what}: {size}; peak {peak_megabytes():,.0f} MB", flush=True)


def answer(method: LmpnnMethod, batch: Batch) -> None:
    """Find the ten best entities of each question."""
    nothing = torch.zeros(len(batch), ENTITIES, dtype=torch.bool)
    choosing(method, batch)(nothing, None, 10)


def main() -> None:
    with TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as folder:
        file = Path(folder) / "table.safetensors"
        write_table(file)
        print(f"table of {file.stat().st_size / 1e9:.1f} GB; peak {peak_megabytes():,.0f} MB")
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
        opened: list[LmpnnTask] = []
        config = load_config("small", {"precision": "fp32"})
        train = training_queries(2 * config.batch_size, ENTITIES, RELATIONS)

        def open_task() -> None:
            checkpoint = read_checkpoint(file)
            backbone, _ = build(checkpoint, find_backbone(checkpoint)[1])
            model = Lmpnn(backbone, config).on(torch.device("cpu"), TABLE_MEMORY)
            opened.append(LmpnnTask(model, config, train, {}, torch.float32))

        timed("opened and checked, entities", file, ENTITIES, open_task)
        (task,) = opened
        loop = Loop(task, RunFolder(Path("nowhere"), config, None))

        def epoch() -> None:
            for batch in task.batches(0, 0):
                loop.step(batch)

        timed("trained, queries", file, sum(map(len, train.values())), epoch)
        few = evaluation_queries(10, ENTITIES, RELATIONS)
        queries = sum(map(len, few.values()))
        timed("ranked, queries", file, queries, lambda: rank_types(task.method, few))
        for count in (1, 10):
            asked = few["1p"]
            columns = (c[:count].astype(np.int64) for c in (asked.constants, asked.relations))
            batch = Batch(asked.pattern, *columns)
            timed("asked, questions", file, count, partial(answer, task.method, batch))


if __name__ == "__main__":
    main()
