"""What a run and its graph hold, for people who look around: examples, figures, entities."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from lmpnn_kge.errors import DatasetError, LmpnnError, QueryError
from lmpnn_kge.graph.triples import SPLITS
from lmpnn_kge.methods.calibration import Reliability
from lmpnn_kge.query.formula import (
    FREE,
    Atom,
    Constant,
    Equal,
    Formula,
    map_literals,
)
from lmpnn_kge.reports.record import read_run
from lmpnn_kge.reports.result_tables import value_text
from lmpnn_kge.reports.sections import flat_facts
from lmpnn_kge.serve import requests, responses
from lmpnn_kge.serve.served_run import ServedRun

#: Types of queries of which an example is shown.
EXAMPLES = ("1p", "2p", "2i", "2in", "pi", "2u", "pni")

#: The longest example, in characters.
LONGEST = 200


def summary(served: ServedRun) -> responses.RunSummary:
    """A run in a few words."""
    run, graph = served.run, served.run.graph
    source = run.folder.provenance
    size: responses.GraphSize | None = None
    if graph is not None:
        train, valid, test = (len(graph.triples(split)) for split in SPLITS)
        size = {
            "name": graph.name,
            "entities": graph.num_entities,
            "relations": graph.num_relations,
            "train": train,
            "valid": valid,
            "test": test,
        }
    return {
        "name": served.name,
        "title": f"{source.backbone} on {source.queries.graph}",
        "backbone": source.backbone,
        "graph": size,
        "methods": served.methods,
        "method": served.method(None),
        "examples": list(_examples(served)),
        "notes": served.notes,
    }


def _examples(served: ServedRun) -> Iterator[responses.Example]:
    """The first short query of some types, with labels, from the valid queries of the run."""
    try:
        store, _ = served.run.queries("valid")
        splits = store.queries("valid")
    except LmpnnError:  # they are gone, or it never had any
        return
    for name in EXAMPLES:
        if name in splits:
            queries = splits[name]
            for row in range(min(len(queries), 20)):
                question = str(_labelled(served, store.question(queries, row)))
                if len(question) <= LONGEST:
                    yield {"question": question, "type": name}
                    break


def _labelled(served: ServedRun, formula: Formula) -> Formula:
    """A formula over ids, in the names that people read."""
    names = served.run.vocabulary

    def label(literal: Atom | Equal) -> Formula:
        named = literal.map_terms(
            lambda term: (
                Constant(names.entity_name(names.entity(term.name)))
                if isinstance(term, Constant)
                else term
            )
        )
        if isinstance(named, Equal):
            return named
        relation = names.relation_name(names.relation(named.relation))
        return Atom(relation, named.head, named.tail)

    return map_literals(formula, label)


def details(served: ServedRun, summarised: responses.RunSummary) -> responses.RunDetails:
    """A run with its results, calibration, settings and provenance."""
    record = read_run(served.run.folder.path)
    results = {**({"lmpnn": record.test} if record.test else {}), **record.methods}
    reliabilities = {name: result.reliability for name, result in results.items()}
    return {
        **summarised,
        "results": {name: result.to_json() for name, result in results.items()},
        "calibration": {
            name: _calibration(reliability)
            for name, reliability in {**reliabilities, **record.edges}.items()
            if reliability is not None
        },
        "settings": dict(vars(record.settings)),
        "provenance": [
            {"name": name, "value": value_text(value)}
            for name, value in flat_facts(record.provenance.to_json()).items()
        ],
    }


def _calibration(reliability: Reliability) -> responses.Calibration:
    return {
        "error": reliability.error,
        "bins": [
            {"probability": bin_.probability, "share": bin_.share, "count": bin_.count}
            for bin_ in reliability.bins
        ],
    }


def entity(served: ServedRun, wanted: requests.DescribeEntity) -> responses.Entity:
    """What the graph knows of an entity, and what is predicted, by relation."""
    names = served.run.vocabulary
    row = names.entity(wanted.name)
    types = names.entity_types
    related = list(_related(served, row, wanted.k))
    return {
        "run": served.name,
        "id": names.entity_ids[row],
        "label": names.label(row),
        "type": types[row] if types else None,
        "known": related,
        "predicted": _predicted(served, row, related, wanted.k),
    }


def _related(served: ServedRun, row: int, most: int) -> Iterator[responses.Related]:
    """The known edges of an entity, the relations with the fewest first: they say the most."""
    names, knowledge = served.run.vocabulary, served.run.knowledge
    if knowledge is None:
        raise DatasetError(f"the graph of {served.name} was not found")
    facts = knowledge.facts
    width, count = 2 * names.num_relations, names.num_relations
    keys = torch.arange(row * width, (row + 1) * width, device=facts.keys.device)
    owners, tails = (column.cpu().numpy() for column in facts.tails_of(keys))
    relations, counts = np.unique(owners, return_counts=True)
    for relation in relations[np.argsort(counts, kind="stable")].tolist():
        others = tails[owners == relation]
        yield {
            "relation": {
                "id": names.relation_ids[relation % count],
                "label": names.relation_label(relation % count),
            },
            "end": "head" if relation < count else "tail",
            "total": len(others),
            "entities": [
                {"id": names.entity_ids[other], "label": names.label(other)}
                for other in others[:most].tolist()
            ],
        }


def _predicted(
    served: ServedRun, row: int, related: list[responses.Related], most: int
) -> list[responses.Predicted]:
    """The most probable missing edges of an entity by the relations that it was seen with."""
    me = Constant(served.run.vocabulary.entity_ids[row])
    questions: list[str | Formula] = [
        Atom(part["relation"]["id"], *((me, FREE) if part["end"] == "head" else (FREE, me)))
        for part in related
    ]
    if not questions:
        return []
    answers = served.run.ask_each(
        questions,
        most,
        predicted=True,
        method=served.method(None),
        candidates="typed",
        timeout=served.limits.seconds,
    )
    predicted: list[responses.Predicted] = []
    for part, found in zip(related, answers, strict=True):
        if isinstance(found, QueryError):
            raise found
        entities: list[responses.PredictedEntity] = [
            {
                "id": answer.id,
                "label": answer.label,
                "probability": answer.probability,
                "score": answer.score if np.isfinite(answer.score) else None,
                "confirmed": answer.confirmed,
            }
            for answer in found
        ]
        predicted.append({"relation": part["relation"], "end": part["end"], "entities": entities})
    return predicted
