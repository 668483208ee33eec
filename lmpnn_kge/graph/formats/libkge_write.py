"""Write LibKGE's dataset folders: `dataset.yaml` beside tab-separated `.del` files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import yaml

from lmpnn_kge.errors import DatasetError, short
from lmpnn_kge.graph.formats.number_rows import write_rows
from lmpnn_kge.graph.formats.reading import first_fault
from lmpnn_kge.graph.triples import Triples
from lmpnn_kge.graph.vocabulary import Labels, Vocabulary


def write_dataset(
    folder: Path,
    name: str,
    vocabulary: Vocabulary,
    splits: Mapping[str, Triples],
    header: str | None = None,
) -> Vocabulary:
    """Write a graph to a folder in LibKGE's layout, and return its names as the folder has them.

    header is a comment for the first line of `dataset.yaml`.
    """
    vocabulary = _as_written(vocabulary)
    entities, relations = vocabulary.entity_ids, vocabulary.relation_ids
    if fault := first_fault([*entities, *relations]):
        raise DatasetError(f"the name {short(repr(fault[0]))} {fault[1]}, so it cannot be written")
    options: dict[str, object] = {
        "name": name, "num_entities": len(entities), "num_relations": len(relations)
    }  # fmt: skip
    maps: dict[str, Iterable[tuple[object, object]]] = {
        "entity_ids": enumerate(entities),
        "entity_strings": zip(entities, vocabulary.entity_labels or [], strict=True),
        "relation_ids": enumerate(relations),
        "relation_strings": zip(relations, vocabulary.relation_labels or [], strict=True),
    }
    if vocabulary.entity_types is not None:
        pairs = zip(entities, vocabulary.entity_types, strict=True)
        maps["entity_types"] = (pair for pair in pairs if pair[1])
    for key, rows in maps.items():
        options[f"files.{key}.type"] = "map" if key.endswith("ids") else "idmap"
        options[f"files.{key}.filename"] = f"{key}.del"
        _write_text(folder / f"{key}.del", "".join(f"{left}\t{right}\n" for left, right in rows))
    for split, triples in splits.items():
        options[f"files.{split}.type"] = "triples"
        options[f"files.{split}.split_type"] = split
        options[f"files.{split}.size"] = len(triples)
        options[f"files.{split}.filename"] = f"{split}.del"
        write_rows(triples, folder / f"{split}.del")
    comment = "" if header is None else f"{header}\n"
    _write_text(folder / "dataset.yaml", comment + yaml.safe_dump({"dataset": options}))
    return vocabulary


def _as_written(names: Vocabulary) -> Vocabulary:
    """Every id has a label, if only itself; types are left out if there are none."""
    types = None if names.entity_types is None else [*map(_one_line, names.entity_types)]
    return Vocabulary(
        names.entity_ids,
        names.relation_ids,
        _labels(names.entity_ids, names.entity_labels),
        _labels(names.relation_ids, names.relation_labels),
        types if types and any(types) else None,
    )


def _labels(ids: list[str], labels: Labels | None) -> Labels:
    if labels is None:
        return [*ids]
    return [_one_line(label) or id_ for id_, label in zip(ids, labels, strict=True)]


def _one_line(label: str | None) -> str | None:
    """Labels are for people: a line break in one is a space."""
    return label if label is None or label.isprintable() else " ".join(label.split())


def _write_text(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8", newline="\n")
