"""Ranks against LibKGE's rule, written out for one question at a time."""

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lmpnn_kge import DatasetError, KnowledgeGraph, backbone_class, rank_triples
from lmpnn_kge.backbones import link_prediction as ranking
from lmpnn_kge.backbones.link_prediction import Ranking, rank_split

from ..libkge_files import dataset_folder

ENTITIES, RELATIONS = 7, 2
triple = st.tuples(st.integers(0, 6), st.integers(0, 1), st.integers(0, 6))


def naive(backbone, triples, known):
    """Both directions of each triple, one by one."""
    ranks = []
    for s, p, o in triples:
        for head, relation, answer, others in (
            (s, p, o, [c for a, b, c in known if (a, b) == (s, p)]),
            (o, p + RELATIONS, s, [a for a, b, c in known if (b, c) == (p, o)]),
        ):
            scores = backbone.score_tails([head], [relation])[0].tolist()
            true = scores[answer]
            tied = above = 0
            for entity, score in enumerate(scores):
                if entity in others and entity != answer:
                    continue
                if abs(score - true) <= 1e-5 + 1e-4 * abs(true):
                    tied += 1
                elif score > true:
                    above += 1
            ranks.append(above + tied // 2)
    return Ranking.of(torch.tensor(ranks))


@given(
    triples=st.lists(triple, min_size=1, max_size=12),
    more=st.lists(triple, max_size=12),
    levels=st.integers(1, 3),
    chunk=st.sampled_from([1, 20, 2**20]),
)
@settings(deadline=None, max_examples=60)
def test_ranks_follow_the_rule_ties_included(triples, more, levels, chunk):
    generator = torch.Generator().manual_seed(levels)
    tables = [torch.randint(levels, (n, 2), generator=generator).float() for n in (7, 4)]
    backbone = backbone_class("distmult").from_tensors(*tables, reciprocal=True)
    known = np.array(triples + more)
    before, ranking.CHUNK_SCORES = ranking.CHUNK_SCORES, chunk
    try:
        ranked = rank_triples(backbone, np.array(triples), known)
    finally:
        ranking.CHUNK_SCORES = before
    expected = naive(backbone, triples, [*triples, *more])
    assert dataclasses.astuple(ranked) == pytest.approx(dataclasses.astuple(expected), abs=1e-12)


def test_an_empty_split_cannot_be_ranked(tmp_path):
    folder = dataset_folder(tmp_path / "g", list("abcdefg"), ["r", "s"], test="")
    backbone = backbone_class("transe").random(
        ENTITIES, RELATIONS, 2, entity_ids=list("abcdefg"), relation_ids=["r", "s"]
    )
    with pytest.raises(DatasetError, match="no triples to rank"):
        rank_split(backbone, KnowledgeGraph.open(folder), "test")


def test_nothing_to_rank_is_an_error():
    backbone = backbone_class("distmult").random(ENTITIES, RELATIONS, 4)
    with pytest.raises(DatasetError, match="no triples to rank"):
        rank_triples(backbone, [], [])


def test_triples_may_be_lists():
    backbone = backbone_class("distmult").random(ENTITIES, RELATIONS, 4)
    triples = [(0, 1, 2), (3, 0, 1)]
    assert rank_triples(backbone, triples, []) == rank_triples(
        backbone, np.array(triples), np.zeros((0, 3), np.int64)
    )
