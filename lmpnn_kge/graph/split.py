"""Files of triples as a graph to train on: a folder with triples held out for valid and test."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lmpnn_kge.errors import DatasetError
from lmpnn_kge.graph.hold_out import SHARE, check_shares
from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph
from lmpnn_kge.graph.triples import SPLITS


def split_file(
    file: str | Path | Sequence[str | Path],
    folder: str | Path,
    *,
    valid: float = SHARE,
    test: float = SHARE,
    seed: int = 0,
    labels: str | Path | None = None,
    **options: Any,
) -> KnowledgeGraph:
    """Write the triples of one or several files as a LibKGE dataset folder, which names the graph.

    labels is a file of ids and labels. Other options are those of `KnowledgeGraph.from_triples`.
    Repeated triples count once. A folder that already holds exactly this result is left as it is.
    """
    check_shares(valid, test)
    folder = Path(folder)
    graph = KnowledgeGraph.from_triples(
        file,
        valid=valid,
        test=test,
        seed=seed,
        labels=labels,
        name=Path(os.path.realpath(folder)).name,  # which links in a circle do not stop
        **options,
    )
    sizes = {split: len(graph.triples(split)) for split in SPLITS}
    source = file if isinstance(file, str | Path) else " and ".join(map(str, file))
    if not any(sizes.values()):
        raise DatasetError(f"{source} has no triples")
    for split, size in sizes.items():
        if not size:
            raise DatasetError(
                f"no triples are left for {split}: {source} has {sum(sizes.values()):,} triples of "
                f"{graph.num_relations:,} relations; valid takes a share of {valid} of each "
                f"relation and test {test}, while every entity keeps a training triple; give other "
                "shares"
            )
    return graph.save(folder)
