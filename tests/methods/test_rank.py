"""Ranks and metrics against sorted lists and plain sets."""

import bisect
import json
import math
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lmpnn_kge.errors import RunError
from lmpnn_kge.lmpnn.network import Lmpnn
from lmpnn_kge.lmpnn.wiring import wire
from lmpnn_kge.methods import rank as evaluation
from lmpnn_kge.methods.rank import Metrics, Scorer, capped, evaluate, rank_queries
from lmpnn_kge.methods.results import NEGATIVE, POSITIVE, as_json, as_text, average
from lmpnn_kge.queries.columns import Queries
from lmpnn_kge.query.patterns import BETAE, named_patterns
from lmpnn_kge.settings import load_config

from .. import made_up
from ..backbones.test_contract import ENTITIES, RELATIONS, make

PATTERNS = named_patterns()


@dataclass(frozen=True)
class Given(Scorer):
    """Scores that are looked up: the constant of a query is its row; whole numbers, many alike."""

    rows: torch.Tensor = None  # [disjuncts, n, d]

    def embed(self, pattern, constants, relations):
        return self.rows[:, constants[:, 0]]


def given_scorer(entities: int, queries: int, disjuncts: int = 1, seed: int = 0) -> Given:
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


def plain_ranks(scorer: Given, easy, hard) -> list[float]:
    """Sort what is no answer, and look where a hard answer would stand."""
    ranks = []
    for query, (known, missing) in enumerate(zip(easy, hard, strict=True)):
        scores = [
            max(float(disjunct[query] @ entity) for disjunct in scorer.rows)
            for entity in scorer.entities
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
    scorer = given_scorer(entities, queries, disjuncts, seed)
    easy, hard = split_answers(seed, queries, entities)
    heard = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluation, "BATCH", batch)
        patch.setattr(evaluation, "CHUNK_SCORES", chunk)
        ranks = rank_queries(scorer, asked(easy, hard), "1p", lambda *done: heard.append(done))
    assert ranks.tolist() == plain_ranks(scorer, easy, hard)
    assert heard[-1] == ("1p", sum(map(bool, hard)))


def test_ranks_by_hand():
    """Scores 3 2 2 2 1 0; entity 1 is known, 2 and 4 are looked for, so 3 ties with 2."""
    scorer = Given(
        None,
        torch.tensor([[3.0], [2.0], [2.0], [2.0], [1.0], [0.0]]),
        "dnf",
        rows=torch.ones(1, 1, 1),
    )
    queries = asked([[1]], [[2, 4]])
    # 2: behind 0, beside 3. 4: behind 0 and 3, for 1 and 2 are answers.
    assert rank_queries(scorer, queries).tolist() == [2.5, 3.0]
    metrics = evaluate(scorer, {"1p": queries})["1p"]
    assert metrics.mrr == pytest.approx((1 / 2.5 + 1 / 3) / 2)
    assert metrics.hits == {1: 0.0, 3: 1.0, 10: 1.0}
    assert metrics.queries == 1


def test_ranking_changes_neither_the_table_nor_the_queries():
    scorer = given_scorer(9, 4)
    easy, hard = split_answers(0, 4, 9)
    queries = asked(easy, hard)
    first = rank_queries(scorer, queries)
    assert np.array_equal(first, rank_queries(scorer, queries))


def test_embeddings_that_are_no_numbers_are_refused():
    scorer = given_scorer(5, 1)
    scorer.rows[0, 0, 0] = torch.nan
    with pytest.raises(RunError, match="not finite"):
        rank_queries(scorer, asked([[0]], [[1]]))


def test_queries_without_hard_answers_are_not_ranked():
    scorer = given_scorer(5, 2)
    assert evaluate(scorer, {"1p": asked([[0], [1]], [[], []])}) == {}
    assert rank_queries(scorer, asked([[0], [1]], [[], []])).tolist() == []


# A real network -----------------------------------------------------------------------------


@pytest.mark.parametrize("union", ["dnf", "merge"])
def test_an_entity_counts_by_the_nearest_of_the_disjuncts(union):
    pattern = PATTERNS["2u"]
    model = Lmpnn(make("complex"), load_config("tiny"))
    unit = torch.nn.functional.normalize(model.backbone.entities, dim=-1)
    scorer = Scorer(model, unit, union)
    drawn = made_up.queries(pattern, 4, ENTITIES, RELATIONS)
    constants, relations = (
        torch.from_numpy(ids).long() for ids in (drawn.constants, drawn.relations)
    )
    scores = scorer.score(scorer.embed(pattern, constants, relations))
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
    metrics = Metrics.of(np.array([1.0, 2.0, 4.0, 10.0]), hard)
    assert metrics.mrr == pytest.approx(((1 + 1 / 2 + 1 / 4) / 3 + 1 / 10) / 2)
    assert metrics.hits == pytest.approx({1: (1 / 3) / 2, 3: (2 / 3) / 2, 10: 1.0})
    assert metrics.queries == 2
    # One missing edge: 5 and 7 of the first query. Two: 6 of the first, 8 of the third.
    assert metrics.by_missing == {
        1: (pytest.approx((1 + 1 / 4) / 2), 2),
        2: (pytest.approx((1 / 2 + 1 / 10) / 2), 2),
    }


def test_without_costs_nothing_is_said_of_missing_edges():
    assert Metrics.of(np.array([2.0]), made_up.answers([[3]])).by_missing == {}


def test_a_rank_between_two_places_is_no_hit_at_the_better_one():
    assert Metrics.of(np.array([1.5]), made_up.answers([[3]])).hits == {1: 0.0, 3: 1.0, 10: 1.0}


def test_of_many_queries_some_are_taken_evenly():
    many = asked([[0]] * 10, [[1]] * 10)
    few = capped({"a": many, "b": many.select(np.arange(10) < 3)}, 4)
    assert few["a"].constants[:, 0].tolist() == [0, 3, 6, 9]
    assert len(few["b"]) == 3
    assert capped({"a": many}, 1)["a"].constants.tolist() == [[0]]
    for most in range(1, 10):
        assert len(capped({"a": many}, most)["a"]) == most


# Results ------------------------------------------------------------------------------------


def made_metrics(mrr: float, **changes) -> Metrics:
    return Metrics(**{"mrr": mrr, "hits": {1: 0.1, 3: 0.2, 10: 0.3}, "queries": 7,
                      "by_missing": {}, **changes})  # fmt: skip


def all_types() -> dict[str, Metrics]:
    return {name: made_metrics(number / 100) for number, name in enumerate(BETAE)}


def test_the_paper_averages_nine_types_without_negation_and_five_with_it():
    assert (*POSITIVE, *NEGATIVE) == tuple(BETAE)
    assert [name for name in BETAE if "!" in BETAE[name]] == list(NEGATIVE)
    results = as_json("test", all_types())
    assert results["A_P"] == pytest.approx(sum(range(9)) / 9 / 100)
    assert results["A_N"] == pytest.approx(sum(range(9, 14)) / 5 / 100)


@pytest.mark.parametrize(("missing", "none", "some"), [("2u", "A_P", "A_N"), ("pni", "A_N", "A_P")])
def test_an_average_of_fewer_types_is_none(missing, none, some):
    metrics = all_types()
    del metrics[missing]
    results = as_json("test", metrics)
    assert results[none] is None
    assert results[some] is not None
    assert none not in as_text(results)
    assert some in as_text(results)
    assert average({}, POSITIVE) is None


def test_json_has_everything_and_survives_writing_and_reading():
    metrics = {"2p": made_metrics(0.25, by_missing={1: (0.5, 3), 2: (0.125, 4)})}
    results = as_json("valid", metrics)
    assert results == {
        "split": "valid",
        "types": {
            "2p": {
                "mrr": 0.25,
                "hits@1": 0.1,
                "hits@3": 0.2,
                "hits@10": 0.3,
                "queries": 7,
                "missing_edges": {
                    "1": {"mrr": 0.5, "answers": 3},
                    "2": {"mrr": 0.125, "answers": 4},
                },
            }
        },
        "A_P": None,
        "A_N": None,
    }
    assert as_text(json.loads(json.dumps(results))) == as_text(results)


def test_numbers_of_a_real_evaluation_can_be_written_as_json():
    scorer = given_scorer(9, 4)
    easy, hard = split_answers(0, 4, 9)
    costs = [1 + place % 2 for place in range(sum(map(len, hard)))]
    results = as_json("test", evaluate(scorer, {"1p": asked(easy, hard, costs)}))
    written = json.loads(json.dumps(results))
    assert written == results
    assert math.isfinite(results["types"]["1p"]["mrr"])


def test_text_is_the_row_of_the_paper_then_the_rest():
    metrics = {
        "2in": made_metrics(0.034),
        "mine": made_metrics(0.5),
        "1p": made_metrics(0.456, by_missing={1: (0.4, 3)}),
    }
    assert as_text(as_json("test", metrics)).splitlines() == [
        "       1p   2in",
        "MRR  45.6   3.4",
        "",
        "     mine",
        "MRR  50.0",
        "",
        "           1p   2in  mine",
        "Hits@1   10.0  10.0  10.0",
        "Hits@3   20.0  20.0  20.0",
        "Hits@10  30.0  30.0  30.0",
        "",
        "             1p   2in  mine",
        "1 missing  40.0            ",
    ]
