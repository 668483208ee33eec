"""Ranks and metrics against sorted lists and plain sets."""

import bisect
import json
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lmpnn_kge.errors import RunError
from lmpnn_kge.graph.vocabulary import Vocabulary
from lmpnn_kge.lmpnn.network import Lmpnn
from lmpnn_kge.lmpnn.wiring import wire
from lmpnn_kge.methods import rank as evaluation
from lmpnn_kge.methods.lmpnn import LmpnnMethod
from lmpnn_kge.methods.rank import capped, evaluate, evaluate_split, measure, rank_queries
from lmpnn_kge.methods.results import Results
from lmpnn_kge.queries.columns import Queries
from lmpnn_kge.queries.store import QueryStore
from lmpnn_kge.query.patterns import named_patterns
from lmpnn_kge.settings.files import load_config
from lmpnn_kge.work.listener import Listener

from .. import made_up
from ..backbones.test_contract import ENTITIES, RELATIONS, make

PATTERNS = named_patterns()


@dataclass(frozen=True)
class Given(LmpnnMethod):
    """Scores that are looked up: the constant of a query is its row; whole numbers, many alike."""

    rows: torch.Tensor = None  # [disjuncts, n, d]

    def embed(self, pattern, constants, relations):
        return self.rows[:, constants[:, 0]]


def given_method(entities: int, queries: int, disjuncts: int = 1, seed: int = 0) -> Given:
    random = torch.Generator().manual_seed(seed)
    table = torch.randint(-1, 2, (entities, 3), generator=random).float()
    rows = torch.randint(-2, 3, (disjuncts, queries, 3), generator=random).float()
    return Given(None, table, "dnf", rows=rows)


def asked(easy, hard, costs=None) -> Queries:
    """Query i has the constant i."""
    count = len(easy)
    constants = np.arange(count, dtype=np.int32)[:, None]
    return Queries(
        PATTERNS["1p"],
        constants,
        np.zeros((count, 1), np.int32),
        made_up.answers(easy),
        made_up.answers(hard, costs),
    )


def plain_ranks(method: Given, easy, hard) -> list[float]:
    """Sort the entities that are not answers, and find the position of a hard answer."""
    ranks = []
    for query, (known, missing) in enumerate(zip(easy, hard, strict=True)):
        scores = [
            max(float(disjunct[query] @ entity) for disjunct in method.rows)
            for entity in method.entities
        ]
        others = sorted(
            scores[entity] for entity in range(len(scores)) if entity not in {*known, *missing}
        )
        for answer in sorted(missing):
            right = bisect.bisect_right(others, scores[answer])
            better, equal = len(others) - right, right - bisect.bisect_left(others, scores[answer])
            ranks.append(1 + better + equal / 2)
    return ranks


def split_answers(seed: int, queries: int, entities: int) -> tuple[list, list]:
    """Easy and hard answers that do not meet; some queries have none, one has nearly all."""
    random = np.random.default_rng(seed)
    easy, hard = [], []
    for _ in range(queries):
        order = random.permutation(entities).tolist()
        few, more = random.integers(0, entities // 2, 2)
        easy.append(order[:few])
        hard.append([] if random.random() < 0.3 else order[few : few + more])
    easy[-1], hard[-1] = [], list(range(entities - 2))
    return easy, hard


@given(
    seed=st.integers(0, 10_000),
    entities=st.integers(3, 20),
    queries=st.integers(1, 12),
    disjuncts=st.integers(1, 3),
    batch=st.integers(1, 5),
    chunk=st.integers(1, 60),
)
@settings(max_examples=60, deadline=None)
def test_ranks_are_those_of_sorted_lists_however_the_work_is_cut(
    seed, entities, queries, disjuncts, batch, chunk
):
    method = given_method(entities, queries, disjuncts, seed)
    easy, hard = split_answers(seed, queries, entities)
    done = []

    class Count(Listener):
        def advance(self, steps=1, detail=None):
            done.append(steps)
            assert detail() == "1p"

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluation, "BATCH", batch)
        patch.setattr(evaluation, "CHUNK_SCORES", chunk)
        ranks = rank_queries(method, asked(easy, hard), "1p", Count())
    assert ranks.tolist() == plain_ranks(method, easy, hard)
    assert sum(done) == sum(map(bool, hard))


def test_ranks_by_hand():
    """Scores 3 2 2 2 1 0; entity 1 is known, 2 and 4 are looked for, so 3 ties with 2."""
    method = Given(
        None,
        torch.tensor([[3.0], [2.0], [2.0], [2.0], [1.0], [0.0]]),
        "dnf",
        rows=torch.ones(1, 1, 1),
    )
    queries = asked([[1]], [[2, 4]])
    # 2: behind 0, beside 3. 4: behind 0 and 3, because 1 and 2 are answers.
    assert rank_queries(method, queries).tolist() == [2.5, 3.0]
    metrics = evaluate(method, {"1p": queries}).types["1p"]
    assert metrics.mrr == pytest.approx((1 / 2.5 + 1 / 3) / 2)
    assert metrics.hits == {1: 0.0, 3: 1.0, 10: 1.0}
    assert metrics.queries == 1


def test_ranking_changes_neither_the_table_nor_the_queries():
    method = given_method(9, 4)
    easy, hard = split_answers(0, 4, 9)
    queries = asked(easy, hard)
    first = rank_queries(method, queries)
    assert np.array_equal(first, rank_queries(method, queries))


def test_embeddings_that_are_not_finite_are_refused():
    method = given_method(5, 1)
    method.rows[0, 0, 0] = torch.nan
    with pytest.raises(RunError, match="not finite"):
        rank_queries(method, asked([[0]], [[1]]))


def test_queries_without_hard_answers_are_not_ranked():
    method = given_method(5, 2)
    without = asked([[0], [1]], [[], []])
    assert evaluate(method, {"1p": without}) == Results("test", {})
    store = QueryStore(
        "toy", Vocabulary([], []), {"valid": {"1p": without}}, folder=Path("my-queries")
    )
    with pytest.raises(RunError, match="my-queries has no hard answers in 'valid'"):
        evaluate_split(method, store, "valid")
    assert rank_queries(method, asked([[0], [1]], [[], []])).tolist() == []


# A real network -----------------------------------------------------------------------------


@pytest.mark.parametrize("union", ["dnf", "merge"])
def test_an_entity_counts_by_the_nearest_of_the_disjuncts(union):
    pattern = PATTERNS["2u"]
    model = Lmpnn(make("complex"), load_config("tiny"))
    unit = torch.nn.functional.normalize(model.backbone.entities, dim=-1)
    method = LmpnnMethod(model, unit, union)
    drawn = made_up.queries(pattern, 4, ENTITIES, RELATIONS)
    constants, relations = (
        torch.from_numpy(ids).long() for ids in (drawn.constants, drawn.relations)
    )
    scores = method.score(method.embed(pattern, constants, relations))
    with torch.no_grad():
        answers = [model(wiring, constants, relations) for wiring in wire(pattern, union)]
    assert len(answers) == (2 if union == "dnf" else 1)
    entities = model.backbone.entities
    for query in range(4):
        for entity in range(ENTITIES):
            cosines = [
                torch.cosine_similarity(answer[query], entities[entity], dim=0).item()
                for answer in answers
            ]
            assert scores[query, entity].item() == pytest.approx(max(cosines), abs=1e-5)


# Metrics ------------------------------------------------------------------------------------


def test_metrics_are_averaged_over_the_answers_of_a_query_then_over_queries():
    hard = made_up.answers([[5, 6, 7], [], [8]], costs=[1, 2, 1, 2])
    metrics = measure(np.array([1.0, 2.0, 4.0, 10.0]), hard)
    assert metrics.mrr == pytest.approx(((1 + 1 / 2 + 1 / 4) / 3 + 1 / 10) / 2)
    assert metrics.hits == pytest.approx({1: (1 / 3) / 2, 3: (2 / 3) / 2, 10: 1.0})
    assert metrics.queries == 2
    # One missing edge: 5 and 7 of the first query. Two: 6 of the first, 8 of the third.
    assert metrics.by_missing == {
        1: (pytest.approx((1 + 1 / 4) / 2), 2),
        2: (pytest.approx((1 / 2 + 1 / 10) / 2), 2),
    }


def test_without_costs_there_are_no_results_by_missing_edges():
    assert measure(np.array([2.0]), made_up.answers([[3]])).by_missing == {}


def test_a_rank_between_two_positions_does_not_hit_the_better_one():
    assert measure(np.array([1.5]), made_up.answers([[3]])).hits == {1: 0.0, 3: 1.0, 10: 1.0}


def test_of_many_queries_some_are_taken_evenly():
    many = asked([[0]] * 10, [[1]] * 10)
    few = capped({"a": many, "b": many.select(np.arange(10) < 3)}, 4)
    assert few["a"].constants[:, 0].tolist() == [0, 3, 6, 9]
    assert len(few["b"]) == 3
    assert capped({"a": many}, 1)["a"].constants.tolist() == [[0]]
    for most in range(1, 10):
        assert len(capped({"a": many}, most)["a"]) == most


def test_numbers_of_a_real_evaluation_can_be_written_as_json():
    method = given_method(9, 4)
    easy, hard = split_answers(0, 4, 9)
    costs = [1 + place % 2 for place in range(sum(map(len, hard)))]
    results = evaluate(method, {"1p": asked(easy, hard, costs)})
    written = json.loads(json.dumps(results.to_json()))
    assert written == results.to_json()
    assert Results.from_json(written, "results") == results
    assert math.isfinite(results.types["1p"].mrr)
