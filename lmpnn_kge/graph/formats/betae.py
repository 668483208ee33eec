"""The graph of a BetaE folder: id triples in both directions, and names in pickles.

BetaE numbers a relation 2i and its inverse 2i + 1; we number them i and i + R.
"""

from __future__ import annotations

import io
import re
from pathlib import Path

import numpy as np
import numpy.typing as npt

from lmpnn_kge.errors import DatasetError, examples, short
from lmpnn_kge.files import open_file, read_bytes
from lmpnn_kge.graph.formats.content import Content
from lmpnn_kge.graph.formats.libkge import has_gaps
from lmpnn_kge.graph.formats.number_rows import parse_rows
from lmpnn_kge.graph.formats.safe_pickle import are, load, try_out
from lmpnn_kge.graph.triples import SPLITS, Triples
from lmpnn_kge.graph.vocabulary import Vocabulary, name_rows

Ints = npt.NDArray[np.int64]

#: The files that name entities and relations.
IDS = ("id2ent", "ent2id", "id2rel", "rel2id")


def from_betae(relations: Ints, count: int) -> Ints:
    """BetaE's relation numbers as ours, in a graph of count relations without inverses."""
    return relations // 2 + relations % 2 * count


def to_betae(relations: Ints, count: int) -> Ints:
    """Our relation numbers as BetaE's."""
    return relations % count * 2 + relations // count


def recognises(folder: Path) -> bool:
    return any((folder / f"{name}.pkl").exists() for name in (*IDS, "train-queries"))


def read(folder: Path) -> Content:
    """Read the graph of a BetaE folder."""
    try_out(folder, IDS)
    vocabulary = read_vocabulary(folder)
    limits = vocabulary.num_entities, vocabulary.num_relations
    splits = {split: _fold(folder / f"{split}.txt", *limits) for split in SPLITS}
    return Content(folder.resolve().name, vocabulary, splits)


def read_vocabulary(folder: Path) -> Vocabulary:
    """The names of entities and relations, or their numbers if the folder has no names."""
    entities, signed = _read_names(folder, "ent"), _read_names(folder, "rel")
    if entities is None or signed is None:
        counts = _read_counts(folder)
        entities = entities or [str(number) for number in range(counts[0])]
        if signed is None:
            return Vocabulary(entities, [str(number) for number in range(0, counts[1], 2)])
    relations = [name[1:] for name in signed[::2]]
    expected = [sign + name for name in relations for sign in "+-"]
    wrong = [name for name, right in zip(signed, expected, strict=False) if name != right]
    if wrong or len(signed) % 2:
        raise DatasetError(
            f"{folder} must name relation 2i '+name' and its inverse 2i+1 '-name', unlike "
            f"{examples(wrong or signed[-1:])}"
        )
    return Vocabulary(entities, relations)


def _read_names(folder: Path, kind: str) -> list[str] | None:
    """The names of entities (`ent`) or relations (`rel`), if the folder has them."""
    forth, back = folder / f"id2{kind}.pkl", folder / f"{kind}2id.pkl"
    pairs = {}
    if forth.exists():
        pairs[forth] = list(load(forth).items())
    if back.exists():
        pairs[back] = [(number, name) for name, number in load(back).items()]
    for file, found in pairs.items():
        if not are(int, (number for number, _ in found)) or not are(str, (n for _, n in found)):
            raise DatasetError(f"{file} must hold names and numbers only")
        if sorted(number for number, _ in found) != list(range(len(found))):
            raise DatasetError(f"{file} must number its {len(found)} names from 0, each once")
    if len(pairs) == 2 and (wrong := set(pairs[forth]) ^ set(pairs[back])):
        raise DatasetError(f"{forth} and {back} disagree: {examples([n for _, n in wrong])}")
    for file, found in pairs.items():
        try:
            return name_rows([name for _, name in sorted(found)])
        except ValueError as error:
            raise DatasetError(f"{file}: {error}") from error
    return None


def _read_counts(folder: Path) -> tuple[int, int]:
    """The numbers of entities and of signed relations, for a folder without names."""
    triples = np.concatenate([_read_triples(folder / f"{split}.txt") for split in SPLITS])
    heads, relations, tails = (triples.max(axis=0, initial=-1) + 1).tolist()
    counts, source = (max(heads, tails), relations + relations % 2), folder
    stats = folder / "stats.txt"
    if stats.is_file():
        text = read_bytes(stats).decode(errors="replace")
        found = re.fullmatch(r"\s*numentity:\s*(\d{1,18})\s+numrelations:\s*(\d{1,18})\s*", text)
        if not found or int(found[2]) % 2:
            raise DatasetError(
                f"{stats} must read 'numentity: E', 'numrelations: 2R': {short(text)}"
            )
        counts, source = (int(found[1]), int(found[2])), stats
    if has_gaps(max(counts), len(triples)):  # each of them takes memory
        raise DatasetError(
            f"{source} has {counts[0]:,} entities and {counts[1]:,} relations, but there are only "
            f"{len(triples):,} triples"
        )
    return counts


def _read_triples(file: Path) -> Triples:
    try:
        with open_file(file) as stream:
            text = stream.read().decode().strip()
        rows = parse_rows(text.encode())
        found = (
            rows
            if rows is not None and len(rows)
            else np.loadtxt(io.StringIO(text or "0 0 0"), np.int64, comments=None, ndmin=2)
        )
        if found.shape[1] != 3:
            raise ValueError(f"its lines have {found.shape[1]} numbers")
    except FileNotFoundError:
        raise DatasetError(f"{file} is missing") from None
    except MemoryError as error:
        raise DatasetError(f"{file} is too large for the memory of this machine") from error
    except (OSError, ValueError) as error:
        reason = short(" ".join(str(error).split()))
        raise DatasetError(
            f"{file} must have a head, relation and tail a line: {reason}"
        ) from error
    return found if text else found[:0]


def _fold(file: Path, entities: int, relations: int) -> Triples:
    """The triples of a file in one direction; DatasetError if one lacks its inverse."""
    triples = _read_triples(file)
    limits = entities, 2 * relations, entities
    if wrong := int(((triples < 0) | (triples >= limits)).any(axis=1).sum()):
        raise DatasetError(
            f"{file}: {wrong} triples are not over {entities} entities and {limits[1]} relations"
        )
    inverse = triples[:, 1] % 2 == 1
    folded = np.where(inverse[:, None], triples[:, ::-1], triples) // [1, 2, 1]
    keys = (folded[:, 0] * relations + folded[:, 1]) * entities + folded[:, 2]
    alone = np.setxor1d(keys[inverse], keys[~inverse])
    if len(alone):
        head, relation = divmod(int(alone[0]) // entities, relations)
        raise DatasetError(
            f"{file}: {len(alone)} triples lack their inverse, such as the one of head {head}, "
            f"relation {2 * relation} and tail {alone[0] % entities}"
        )
    _, first = np.unique(keys[~inverse], return_index=True)
    return folded[~inverse][np.sort(first)]
