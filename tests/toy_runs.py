"""Runs on the toy graph that take a moment: settings, queries, commands as a user types them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import torch
from click.testing import CliRunner
from safetensors.torch import load_file, safe_open

from lmpnn_kge import backbone_class, save_backbone
from lmpnn_kge.cli import main
from lmpnn_kge.graph.formats.libkge_write import write_dataset
from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph
from lmpnn_kge.graph.vocabulary import Vocabulary
from lmpnn_kge.queries.sample import Request, sample_store
from lmpnn_kge.query.patterns import named_patterns
from lmpnn_kge.runs.train import train

from .conftest import TOY
from .edited import read_json

CHECKPOINTS = TOY / "checkpoints"
ROTATE = CHECKPOINTS / "rotate.package.pt"

# Numbers so small are not worth the threads, which also wait for each other on a busy machine.
os.environ["OMP_NUM_THREADS"] = "1"  # for the processes that are started here
torch.set_num_threads(1)

TYPES = ("1p", "2p", "2i", "2u", "2in")

TINY = {
    "hidden": 8,
    "epochs": 2,
    "batch_size": 16,
    "negative_count": 8,
    "warmup": 2,
    "validation_queries": 10,
    "precision": "fp32",
}


def sample_few(graph: KnowledgeGraph, folder: Path, count: int = 16, types=TYPES):
    """A store with a given number of queries of a few types."""
    patterns = named_patterns()
    requests = [
        Request(split, name, patterns[name], count)
        for split in ("train", "valid", "test")
        for name in types
    ]
    return sample_store(graph, folder, requests)


def random_inputs(place: Path, entities: int, relations: int, dim: int) -> None:
    """A random graph, its queries and a random checkpoint: graph, queries and file.safetensors."""
    columns = np.random.default_rng(0).integers((80, relations, entities), size=(4000, 3))
    splits = dict(zip(("train", "valid", "test"), np.split(columns, [3000, 3500]), strict=True))
    names = [f"e{i}" for i in range(entities)], [f"r{i}" for i in range(relations)]
    (place / "graph").mkdir()
    write_dataset(place / "graph", "graph", Vocabulary(*names), splits)
    sample_few(KnowledgeGraph.open(place / "graph"), place / "queries", count=30)
    backbone = backbone_class("complex").random(
        entities, relations, dim, entity_ids=names[0], relation_ids=names[1]
    )
    save_backbone(backbone, place / "file.safetensors")


def tiny(**changes):
    return TINY | changes


def options(**changes):
    """The same for the command line."""
    return [part for key, value in tiny(**changes).items() for part in ("--set", f"{key}={value}")]


def train_tiny(queries: Path, out: Path, checkpoint: Path = ROTATE, more=None, **changes):
    return train(
        checkpoint,
        dataset=TOY / "dataset",
        queries=queries,
        out=out,
        settings=tiny(**changes),
        **(more or {}),
    )


def cli(*arguments, code=0):
    """Run a command; if it fails, it must print one line and leave nothing half-written."""
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    unexpected = result.exception is not None and not isinstance(result.exception, SystemExit)
    assert not unexpected, repr(result.exception)
    assert result.exit_code == code, result.output
    if code == 2:
        errors = [line for line in result.stderr.splitlines() if line.startswith("Error: ")]
        assert len(errors) == 1, result.stderr
        assert result.stderr.endswith(f"{errors[0]}\n")
    return result


def command(*arguments):
    return [sys.executable, "-m", "lmpnn_kge", *map(str, arguments)]


def start(*arguments, cwd: Path) -> subprocess.Popen:
    """A command in a process of its own, which can be killed."""
    return subprocess.Popen(
        command(*arguments),
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )


def partials(folder: Path):
    return sorted(str(path) for path in folder.rglob("*.partial"))


def result_of(run: Path):
    """All that a run computed, without the times it took."""
    with safe_open(run / "state.safetensors", "pt") as state:
        progress = json.loads(state.metadata()["facts"])
    del progress["checksum"]  # of the speed, too
    for record in progress["history"]:
        del record["queries_per_second"]
    return {
        "model": (run / "model.safetensors").read_bytes(),
        "state": {k: v.numpy().tobytes() for k, v in load_file(run / "state.safetensors").items()},
        "progress": progress,
        "test": read_json(run / "test.json"),
    }
