"""One set of triples split in three: to train on, to validate on and to test on."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from hashlib import sha256
from itertools import chain
from pathlib import Path

from lmpnn_kge.errors import DatasetError
from lmpnn_kge.files import atomic_folder
from lmpnn_kge.graph.formats.libkge import write_dataset
from lmpnn_kge.graph.formats.named import NamedTriple, named_triples
from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph
from lmpnn_kge.graph.triples import SPLITS

#: The share of triples held out for valid, and again for test.
SHARE = 0.1


def split_file(
    file: str | Path,
    folder: str | Path,
    *,
    valid: float = SHARE,
    test: float = SHARE,
    header: bool | None = None,
    seed: int = 0,
) -> KnowledgeGraph:
    """Write the triples of a file as a LibKGE dataset folder, whose name becomes the graph's.

    header says whether the first line names the columns. If it is None, the file has no header,
    and a first line that looks like one is an error. Repeated triples count once. A folder that
    already holds exactly this result is left as it is.
    """
    if valid + test >= 1:
        raise DatasetError(
            f"shares of {valid} for valid and {test} for test leave nothing to train on; their sum "
            "must be below 1"
        )
    file, folder = Path(file), Path(folder)
    rows = list(named_triples(file))
    triples = set(rows[1:] if header else rows)
    if not triples:
        raise DatasetError(f"{file} has no triples")
    others = chain.from_iterable(rows[1:])
    if header is None and len(rows) > 1 and set(rows[0]).isdisjoint(others):
        raise DatasetError(
            f"the first line of {file}, {' '.join(rows[0])!r}, shares no name with the others: "
            "give --header if it names the columns, or --no-header if it is a triple"
        )
    splits = split_triples(triples, str(seed), valid, test)
    for split in SPLITS:
        if not splits[split]:
            raise DatasetError(
                f"no triples are left for {split}: {file} has {len(triples):,} triples of "
                f"{len({relation for _, relation, _ in triples}):,} relations; valid takes a share "
                f"of {valid} of each relation and test {test}, while every entity keeps a training "
                "triple; give other shares"
            )
    with atomic_folder(folder, or_same=True) as aside:
        write_dataset(aside, folder.resolve().name, splits)
    return KnowledgeGraph.open(folder)


def split_triples(
    triples: Iterable[NamedTriple], seed: str, valid: float = SHARE, test: float = SHARE
) -> dict[str, list[NamedTriple]]:
    """Hold out shares of each relation for valid and test, while train keeps every entity.

    r(a, b) and r(b, a) stay in one split, because one would give the other away. Their split
    depends only on them, the seed and the shares.
    """
    # r(a, b) and r(b, a) are one fact, under a key that has no direction.
    facts: dict[NamedTriple, set[NamedTriple]] = defaultdict(set)
    for head, relation, tail in triples:
        facts[min(head, tail), relation, max(head, tail)].add((head, relation, tail))
    in_train = Counter(entity for head, _, tail in facts for entity in {head, tail})
    sizes = Counter(relation for _, relation, _ in facts)
    shares = {"valid": valid, "test": test}
    wanted = {
        (split, r): int(share * n) for split, share in shares.items() for r, n in sizes.items()
    }
    splits: dict[str, list[NamedTriple]] = {split: [] for split in SPLITS}

    def lot(fact: NamedTriple) -> bytes:
        named = fact if len(facts[fact]) > 1 else next(iter(facts[fact]))
        return sha256("\t".join((seed, *named)).encode()).digest()

    for fact in sorted(facts, key=lot):
        head, relation, tail = fact
        split = "valid" if wanted["valid", relation] > wanted["test", relation] else "test"
        if wanted[split, relation] and all(in_train[entity] > 1 for entity in (head, tail)):
            wanted[split, relation] -= 1
            in_train.subtract({head, tail})
        else:
            split = "train"
        splits[split] += facts[fact]
    return splits
