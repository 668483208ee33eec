"""Triples as N-Triples, which every RDF tool reads; no package is needed to write them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lmpnn_kge.graph.triples import Triples
from lmpnn_kge.graph.vocabulary import Labels, Vocabulary
from lmpnn_kge.query.iri import BLANK, iri_of

#: The property that gives a label.
LABEL = "http://www.w3.org/2000/01/rdf-schema#label"

#: The names that a blank node can have.
_NODE = re.compile(r"_:[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_-])?")

_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"})


def ntriples(names: Vocabulary, triples: Triples) -> Iterator[str]:
    """A line for each triple, and one for each label of its entities and relations.

    A name that is not an IRI becomes one, as in SPARQL: `Germany` is <kge:Germany>.
    """
    entities: dict[int, str] = {}
    relations: dict[int, str] = {}
    for head, relation, tail in triples.tolist():
        for row in (head, tail):
            if row not in entities:
                entities[row] = _node(names.entity_ids[row])
        if relation not in relations:
            relations[relation] = f"<{iri_of(names.relation_ids[relation])}>"
        yield f"{entities[head]} {relations[relation]} {entities[tail]} .\n"
    yield from _labels(entities, names.entity_ids, names.entity_labels)
    yield from _labels(relations, names.relation_ids, names.relation_labels)


def _labels(nodes: dict[int, str], ids: list[str], labels: Labels | None) -> Iterator[str]:
    for row, node in sorted(nodes.items()):
        label = None if labels is None else labels[row]
        if label and label != ids[row]:
            yield f'{node} <{LABEL}> "{label.translate(_ESCAPES)}" .\n'


def _node(id_: str) -> str:
    if id_.startswith(BLANK) and _NODE.fullmatch(id_):
        return id_
    return f"<{iri_of(id_)}>"
