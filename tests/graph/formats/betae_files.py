"""Writes the files of a BetaE folder that belong to its graph."""

import pickle
from pathlib import Path
from typing import Any

ENTITIES = ["/m/a", "/m/b", "/m/c", "/m/d"]
RELATIONS = ["+/x/y", "-/x/y", "+z", "-z"]


def dump(file: Path, value: Any, protocol: int = 2) -> None:
    file.write_bytes(pickle.dumps(value, protocol=protocol))


def load(file: Path) -> Any:
    return pickle.loads(file.read_bytes())


def graph_folder(folder: Path, protocol: int = 2) -> Path:
    """A sound folder with names and triples, without queries."""
    folder.mkdir()
    for role, ids in (("ent", ENTITIES), ("rel", RELATIONS)):
        dump(folder / f"id2{role}.pkl", dict(enumerate(ids)), protocol)
        dump(folder / f"{role}2id.pkl", {id_: i for i, id_ in enumerate(ids)}, protocol)
    (folder / "stats.txt").write_text("numentity: 4\nnumrelations: 4")
    (folder / "train.txt").write_text("0\t0\t1\n1\t1\t0\n2\t3\t3\n3\t2\t2\n0\t0\t1\n1\t1\t0\n")
    (folder / "valid.txt").write_text("1\t0\t1\n1\t1\t1\n")
    (folder / "test.txt").write_text("\n")
    return folder
