"""Predicted triples are the most probable ones that are missing, however they are found."""

import numpy as np
import pytest
import torch

import lmpnn_kge
from lmpnn_kge import ConfigError, DatasetError, Listener, QueryError, Run, open_backbone
from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph
from lmpnn_kge.graph.triples import SPLITS
from lmpnn_kge.runs.predict import Wanted, predict_missing
from lmpnn_kge.search.edges import EdgeProbability
from lmpnn_kge.search.facts import Facts
from lmpnn_kge.work.listener import SILENT

from ..conftest import TOY
from ..toy_runs import CHECKPOINTS, ROTATE, train_tiny

ALL = 100_000


@pytest.fixture(scope="module")
def graph():
    return KnowledgeGraph.open(TOY / "dataset")


@pytest.fixture(scope="module")
def backbone():
    return open_backbone(ROTATE, dataset=TOY / "dataset")


@pytest.fixture(scope="module")
def predict(backbone, graph):
    def call(listener=SILENT, **wanted):
        return predict_missing(backbone, graph, Wanted(**wanted), listener)

    return call


@pytest.fixture(scope="module")
def everything(predict):
    return predict(limit=ALL)


def triples(predictions):
    return [(p.head, p.relation, p.tail) for p in predictions]


def known(graph, *splits):
    names = graph.entity_ids, graph.relation_ids, graph.entity_ids
    rows = np.concatenate([graph.triples(split) for split in splits]).tolist()
    return {tuple(ids[row] for ids, row in zip(names, triple, strict=True)) for triple in rows}


def test_predictions_are_all_missing_edges_by_their_probability(backbone, graph, everything):
    rows = graph.vocabulary.rows_in(backbone.vocabulary)
    splits = {split: rows.of(graph.triples(split)) for split in SPLITS}
    facts = Facts.of(splits["train"], backbone.num_entities, backbone.num_relations)
    held_out = len(splits["valid"]) + len(splits["test"])
    probability = EdgeProbability.fit(
        backbone, facts, splits["valid"], population="every", held_out=held_out
    )
    loops = {relation for head, relation, tail in known(graph, "train") if head == tail}
    expected = {}
    for relation, relation_id in enumerate(backbone.relation_ids):
        for head in facts.heads(relation).tolist():
            row = probability.rows(torch.tensor([head]), torch.tensor([relation]))[0].tolist()
            for tail, value in enumerate(row):
                if head != tail or relation_id in loops:
                    ids = backbone.entity_ids[head], relation_id, backbone.entity_ids[tail]
                    expected[ids] = value
    for triple in known(graph, "train"):
        del expected[triple]
    assert dict(zip(triples(everything), everything.probabilities, strict=True)) == (
        pytest.approx(expected, abs=2e-6)
    )
    assert (np.diff(everything.probabilities) <= 0).all()


@pytest.mark.parametrize("limit", [1, 7, 300])
def test_a_limit_keeps_the_first(predict, everything, limit, monkeypatch):
    monkeypatch.setattr("lmpnn_kge.search.edges.CHUNK", 40 * 3)  # three rows at once
    predictions = predict(limit=limit)
    assert triples(predictions) == triples(everything[:limit])


def test_a_probability_can_be_the_limit(predict, everything):
    least = everything[50].probability
    predictions = predict(limit=ALL, min_probability=least)
    assert set(triples(predictions)) == set(
        triples(p for p in everything if p.probability >= least)
    )
    assert len(predict(min_probability=1.0)) == 0


def test_held_out_triples_are_marked_and_can_be_omitted(predict, everything, graph):
    assert {p.confirmed for p in everything} == {None, "valid", "test"}
    for split in ("valid", "test"):
        marked = set(triples(p for p in everything if p.confirmed == split))
        assert marked
        assert marked <= known(graph, split)
    new = predict(limit=ALL, new=True)
    assert triples(new) == triples(p for p in everything if p.confirmed is None)


def test_relations_heads_and_tails_select(predict, everything):
    relation, head, tail = "friend_of", "person/ada_voss", everything[0].tail
    chosen = predict(limit=ALL, relations=[relation], heads=[head])
    assert triples(chosen) == [t for t in triples(everything) if t[:2] == (head, relation)]
    both = predict(limit=ALL, heads=[p.head for p in everything], tails=[tail])
    assert triples(both) == [t for t in triples(everything) if t[2] == tail]
    by_tail = triples(predict(limit=ALL, tails=[tail]))  # asked from the tail
    assert {t[2] for t in by_tail} == {tail}
    assert set(by_tail) >= set(triples(both)) & {t for t in by_tail if t[1] == relation}


def test_a_label_selects_as_an_id_does(predict, graph):
    head = "person/ada_voss"
    label = graph.vocabulary.label(graph.vocabulary.entity(head))
    assert label != head
    assert triples(predict(heads=[label])) == triples(predict(heads=[head]))


def test_only_heads_that_a_relation_was_seen_with_are_tried_unless_any_is(predict, graph):
    seen = {(head, relation) for head, relation, _ in known(graph, "train")}
    assert {t[:2] for t in triples(predict(limit=ALL))} <= seen
    assert {t[:2] for t in triples(predict(limit=ALL, any_pair=True))} - seen
    heads = set(graph.entity_ids) - {head for head, relation in seen if relation == "friend_of"}
    with pytest.raises(QueryError, match=r"none of the chosen heads .* --any"):
        predict(relations=["friend_of"], heads=sorted(heads))
    assert predict(relations=["friend_of"], heads=sorted(heads), any_pair=True)


def test_no_entity_is_predicted_to_be_its_own_tail(everything, graph):
    loops = {relation for head, relation, tail in known(graph, "train") if head == tail}
    assert {p.relation for p in everything if p.head == p.tail} <= loops


def test_columns_have_what_rows_have(everything, tmp_path):
    first = everything[0]
    assert {name: values[0] for name, values in everything.columns.items()} == {
        name: value for name, value in vars(first).items() if name in everything.columns
    }
    assert repr(everything[:3]).startswith("Predictions(3 triples, ")
    assert len(everything[:3]) == len(list(everything[:3])) == 3


def test_a_run_predicts_as_its_checkpoint_does(tmp_path, toy_queries, here):
    checkpoint = CHECKPOINTS / "rotate.train.pt"
    folder = tmp_path / "run"
    train_tiny(toy_queries, folder, checkpoint)
    run = Run.open(folder)
    ours = run.predict(relations=["friend_of"], limit=20)
    theirs = lmpnn_kge.predict(
        checkpoint, dataset=TOY / "dataset", relations=["friend_of"], limit=20
    )
    assert list(ours) == list(theirs)
    assert ours[0].probability > 0
    with pytest.raises(DatasetError, match="--dataset DIR"):
        lmpnn_kge.predict(checkpoint)


@pytest.mark.parametrize("wanted", [{"limit": 0}, {"min_probability": 1.5}])
def test_impossible_wishes_are_refused(wanted):
    with pytest.raises(ConfigError, match=next(iter(wanted))):
        Wanted(**wanted)


def test_progress_is_reported_by_rows(predict, graph):
    class Count(Listener):
        total = done = 0

        def begin(self, task, total=None, done=0):
            self.total = total

        def advance(self, steps=1, detail=None):
            self.done += steps

    count = Count()
    predict(listener=count)
    pairs = {(head, relation) for head, relation, _ in known(graph, "train")}
    assert count.done == count.total == len(pairs)
