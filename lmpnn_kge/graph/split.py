"""One set of triples in three: to train on, to validate on and to test on."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from hashlib import sha256
from itertools import chain
from pathlib import Path

from lmpnn_kge.errors import DatasetError
from lmpnn_kge.files import whole_folder
from lmpnn_kge.graph.formats.libkge import SPLITS, LibkgeDataset, write_dataset
from lmpnn_kge.graph.knowledge_graph import Triple, named_triples

#: Held out of training for each of valid and test.
SHARE = 0.1


def split_file(
    file: str | Path,
    folder: str | Path,
    *,
    valid: float = SHARE,
    test: float = SHARE,
    header: bool | None = None,
    seed: int = 0,
) -> LibkgeDataset:
    """Write the triples of a file as a new LibKGE dataset folder, which gives the graph its name.

    header says whether the first line names the columns; None, that it does not, and that a line
    which looks like it is a mistake. Triples that are there twice count once.
    """
    file, folder = Path(file), Path(folder)
    rows = list(named_triples(file))
    triples = set(rows[1:] if header else rows)
    if not triples:
        raise DatasetError(f"{file} has no triples")
    others = chain.from_iterable(rows[1:])
    if header is None and len(rows) > 1 and set(rows[0]).isdisjoint(others):
        raise DatasetError(
            f"the first line of {file}, {' '.join(rows[0])!r}, shares no name with the others: "
            "--header leaves it out, --no-header takes it for a triple"
        )
    splits = split_triples(triples, str(seed), valid, test)
    for split in SPLITS:
        if not splits[split]:
            raise DatasetError(
                f"nothing is left for {split}: {file} has {len(triples):,} triples of "
                f"{len({relation for _, relation, _ in triples}):,} relations, and shares of "
                f"{valid} for valid and {test} for test are taken of each relation, as far as "
                "every entity keeps a triple to train on; give other shares"
            )
    with whole_folder(folder, may_replace=lambda place: False) as aside:
        write_dataset(aside, folder.resolve().name, splits)
    return LibkgeDataset.open(folder)


def split_triples(
    triples: Iterable[Triple], seed: str, valid: float = SHARE, test: float = SHARE
) -> dict[str, list[Triple]]:
    """Shares of each relation in valid and in test, as long as train keeps every entity.

    r(a, b) and r(b, a) stay together: one would give the other away. Which split they fall to
    depends on them, the seed and the shares alone.
    """
    facts: dict[Triple, set[Triple]] = defaultdict(set)  # with both directions, where there are
    for head, relation, tail in triples:
        facts[min(head, tail), relation, max(head, tail)].add((head, relation, tail))
    in_train = Counter(entity for head, _, tail in facts for entity in {head, tail})
    sizes = Counter(relation for _, relation, _ in facts)
    shares = {"valid": valid, "test": test}
    wanted = {
        (split, r): int(share * n) for split, share in shares.items() for r, n in sizes.items()
    }
    splits: dict[str, list[Triple]] = {split: [] for split in SPLITS}

    def lot(fact: Triple) -> bytes:
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
