"""The metrics of tuples against their definitions, over all tuples of a few entities."""

import itertools
import json
import math
from dataclasses import dataclass
from statistics import fmean

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lmpnn_kge.graph.answers import Answers
from lmpnn_kge.graph.vocabulary import Vocabulary
from lmpnn_kge.methods.rank import evaluate, evaluate_split, rank_split
from lmpnn_kge.methods.results import Results
from lmpnn_kge.methods.tuple_ranks import tuple_position
from lmpnn_kge.queries.columns import Queries
from lmpnn_kge.queries.store import QueryStore
from lmpnn_kge.query.patterns import parse_pattern

PATTERNS = {2: "r1(s1,f1)&r2(f1,f2)", 3: "r1(s1,f1)&r2(f1,f2)&r3(f2,f3)"}
E = 5


@dataclass
class Given:
    """A method with given scores [k, n, E]; the constant of a query is its number."""

    scores: torch.Tensor
    num_entities = E
    device = torch.device("cpu")

    streamed = None

    def answer(self, pattern, constants, relations):
        place = int(pattern.focus.name) - 1 if pattern.focus else 0
        own = self.scores[place, constants[:, 0]]
        return lambda rows, out=None: own[rows].clone()


def answers(sets, arity) -> Answers:
    rows = [row for several in sets for row in sorted(several)]
    counts = [len(several) for several in sets]
    values = np.array(rows, np.int32).reshape(-1, arity)
    return Answers(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), values)


def make(seed, arity, ties):
    """Queries with some easy and some hard tuples, and scores, perhaps with ties."""
    random = np.random.default_rng(seed)
    every = list(itertools.product(range(E), repeat=arity))
    easy, hard = [], []
    for _ in range(4):
        order = [every[i] for i in random.permutation(len(every))]
        few, more = random.integers(0, 6, 2)
        easy.append(order[:few])
        hard.append(order[few : few + 1 + more])
    shape = (arity, 4, E)
    scores = random.integers(0, 3, shape) if ties else random.permuted(
        np.broadcast_to(np.arange(E), shape), axis=2
    )  # fmt: skip
    pattern = parse_pattern(PATTERNS[arity])
    queries = Queries(
        pattern,
        np.arange(4, dtype=np.int32)[:, None],
        np.zeros((4, arity), np.int32),
        answers(easy, arity),
        answers(hard, arity),
    )
    return queries, easy, hard, scores.astype(float)


def rank(own, others) -> float:
    return 1 + sum(score > own for score in others) + sum(score == own for score in others) / 2


def marginal_rank(scores, entity, answering) -> float:
    return rank(scores[entity], [s for e, s in enumerate(scores) if e not in answering])


def naive_marginal(easy, hard, scores):
    """The ranks of the entities of each variable that are in hard tuples only, by query."""
    for query, (known, missing) in enumerate(zip(easy, hard, strict=True)):
        by_variable = []
        for place, own in enumerate(scores[:, query]):
            seen, new = ({t[place] for t in tuples} for tuples in (known, missing))
            if new - seen:
                by_variable.append([marginal_rank(own, e, seen | new) for e in new - seen])
        if by_variable:
            yield by_variable


def naive_components(easy, hard, scores):
    """For each query and hard tuple, the filtered ranks of its entities."""
    for query, (known, missing) in enumerate(zip(easy, hard, strict=True)):
        yield [
            [
                marginal_rank(own, t[place], {other[place] for other in known + missing})
                for place, own in enumerate(scores[:, query])
            ]
            for t in missing
        ]


def naive_joint(easy, hard, scores):
    """For each query, the ranks of its hard tuples: all tuples of unbounded ranks are listed."""
    arity = len(scores)
    listed = sorted(
        itertools.product(range(2 * E * arity), repeat=arity),
        key=lambda ranks: [sum(ranks[:n]) for n in range(arity, 0, -1)],
    )
    place_of = {ranks: place for place, ranks in enumerate(listed)}
    for query, (known, missing) in enumerate(zip(easy, hard, strict=True)):
        orders = [np.argsort(np.argsort(-own)) for own in scores[:, query]]
        places = {
            t: place_of[tuple(int(order[e]) for order, e in zip(orders, t, strict=True))]
            for t in known + missing
        }
        yield [1 + places[t] - sum(p < places[t] for p in places.values()) for t in missing]


def mean_of_means(values) -> float:
    return fmean(map(fmean, values))


@given(seed=st.integers(0, 10_000), arity=st.sampled_from([2, 3]), ties=st.booleans())
@settings(max_examples=60, deadline=None)
def test_metrics_equal_a_naive_computation(seed, arity, ties):
    queries, easy, hard, scores = make(seed, arity, ties)
    result = evaluate(Given(torch.from_numpy(scores).float()), {"x": queries}).types["x"]
    marginal = list(naive_marginal(easy, hard, scores))
    assert result.tuples.marginal_queries == len(marginal)
    if marginal:
        mrr = fmean(fmean(fmean(1 / r for r in v) for v in q) for q in marginal)
        hits = fmean(fmean(fmean(r <= 3 for r in v) for v in q) for q in marginal)
        assert result.mrr == pytest.approx(mrr)
        assert result.hits[3] == pytest.approx(hits)
    components = list(naive_components(easy, hard, scores))
    multiply = result.tuples.multiply
    assert multiply.hits[3] == pytest.approx(
        mean_of_means([all(r <= 3 for r in t) for t in q] for q in components)
    )
    assert multiply.mrr == pytest.approx(
        mean_of_means([math.prod(1 / r for r in t) ** (1 / arity) for t in q] for q in components)
    )
    joint = result.tuples.joint
    assert 0 < joint.mrr <= 1
    if not ties:
        ranks = list(naive_joint(easy, hard, scores))
        assert joint.mrr == pytest.approx(mean_of_means([1 / r for r in q] for q in ranks))
        assert joint.hits[10] == pytest.approx(mean_of_means([r <= 10 for r in q] for q in ranks))


def test_tuples_are_numbered_by_the_sum_of_their_ranks():
    for arity in (1, 2, 3):
        listed = sorted(
            (ranks for ranks in itertools.product(range(8), repeat=arity) if sum(ranks) < 8),
            key=lambda ranks: [sum(ranks[:n]) for n in range(len(ranks), 0, -1)],
        )
        assert tuple_position(np.array(listed, float)).tolist() == list(range(len(listed)))


def test_results_with_tuples_are_written_read_and_printed():
    queries, *_, scores = make(1, 2, ties=False)
    results = evaluate(Given(torch.from_numpy(scores).float()), {"2f-p": queries})
    again = Results.from_json(json.loads(json.dumps(results.to_json())), "here")
    assert again == results
    text = results.to_text()
    assert text.count("multiply ") == text.count("joint ") == 4
    assert "joint Hits@10" in text
    assert "joint MRR" in {row[0] for row in results.to_table().texts}


def test_the_ranks_of_tuples_are_their_joint_ranks(tmp_path):
    queries, _, hard, scores = make(2, 2, ties=False)
    names = Vocabulary([f"e {n}" for n in range(E)], ["r"])
    store = QueryStore("tiny", names, {"test": {"x": queries}})
    method = Given(torch.from_numpy(scores).float())
    ranks = rank_split(method, store, "test")
    first = sorted(hard[0])[0]
    assert ranks.columns["answer"][0] == ", ".join(f'"e {n}"' for n in first)
    assert ranks.columns["question"][0] == 'r("e 0", ?1) & r(?1, ?2)'
    average = evaluate_split(method, store, "test").types["x"].tuples.joint.mrr
    owners = queries.hard.owners
    by_query = [fmean(1 / ranks.columns["rank"][owners == n]) for n in range(4)]
    assert average == pytest.approx(fmean(by_query))
    ranks.save(tmp_path / "ranks.csv")
    assert len((tmp_path / "ranks.csv").read_text().splitlines()) == 1 + len(ranks)
