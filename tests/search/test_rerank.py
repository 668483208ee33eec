"""The learnt order: it begins with that of search, and finds a rule that search does not know."""

import torch

from lmpnn_kge.search import rerank
from lmpnn_kge.search.fit import make_lessons, make_search
from lmpnn_kge.search.rerank import Candidates, Lesson, Reranker, train_reranker
from lmpnn_kge.search.solve import Role
from lmpnn_kge.search.truth import Weights
from lmpnn_kge.work.listener import SILENT

from .made_up import E, R, settings


def random_lesson(seed: int, rows=64, width=20) -> Lesson:
    """Queries with one condition; the answer is the most popular candidate."""
    random = torch.Generator().manual_seed(seed)
    truth = -5 * torch.rand(rows, width, 1, generator=random)
    popularity = 5 * torch.rand(rows, width, 1, generator=random)
    candidates = Candidates(
        torch.arange(width).repeat(rows, 1),
        truth[..., 0],
        truth,
        popularity,
        torch.zeros(rows, 1),
        torch.zeros(rows, 1, dtype=torch.int64),
        torch.tensor([Role.EDGE]),
        torch.tensor([0]),
    )
    hard = torch.zeros(rows, width, dtype=torch.bool)
    hard.scatter_(1, popularity.argmax(1), True)
    return Lesson(candidates, hard, torch.zeros_like(hard), torch.ones(rows))


def share_first(reranker, lesson) -> float:
    best = reranker(lesson.candidates).argmax(1)
    return float(lesson.hard[torch.arange(len(best)), best].float().mean())


def test_the_order_begins_as_that_of_search(world):
    search = make_search(
        world.backbone, world.facts, settings(exists="max"), Weights.uniform(0.25, -1.0, R)
    )
    reranker = Reranker(R)
    lessons = make_lessons(search, world.queries, 0, SILENT)
    assert len(lessons) == len(world.queries)
    for lesson in lessons:
        candidates = lesson.candidates
        scores = reranker(candidates)
        if candidates.disjuncts.max() == 0:  # a union is summed, search joins it by De Morgan
            expected = candidates.parts.sum(2)
            assert torch.allclose(scores, expected, atol=1e-4)
            reached = candidates.truth > -25
            assert torch.allclose(scores[reached], candidates.truth[reached], atol=1e-3)
        else:
            assert torch.allclose(scores, candidates.parts.logsumexp(2), atol=1e-4)


def test_an_artificial_rule_is_learnt(monkeypatch):
    monkeypatch.setattr(rerank, "EPOCHS", 40)
    lessons = [random_lesson(seed) for seed in range(6)]
    unseen = random_lesson(100)
    untrained = share_first(Reranker(R), unseen)
    trained = share_first(train_reranker(lessons, R, 0, SILENT), unseen)
    assert untrained < 0.3
    assert trained > 0.7


def test_the_same_seed_learns_the_same():
    torch.manual_seed(5)
    before = torch.get_rng_state()
    lessons = [random_lesson(seed) for seed in range(2)]
    one, two = (train_reranker(lessons, R, 3, SILENT).state_dict() for _ in range(2))
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert torch.equal(before, torch.get_rng_state())  # others draw what they would have drawn


def test_lessons_have_every_answer_of_a_small_graph(world):
    search = make_search(world.backbone, world.facts, settings(), Weights.uniform(0.25, -1.0, R))
    for lesson in make_lessons(search, world.queries, 0, SILENT):
        assert lesson.candidates.entities.shape[1] == E
        assert torch.equal(lesson.hard.sum(1), lesson.counts)
        assert not (lesson.hard & lesson.ignored).any()


def test_popularity_and_fan_are_counts_of_known_edges(world):
    search = make_search(world.backbone, world.facts, settings(), Weights.uniform(0.25, -1.0, R))
    (lesson,) = make_lessons(search, {"1p": world.queries["1p"]}, 0, SILENT)
    candidates = lesson.candidates
    known = set(map(tuple, world.graph.triples("train").tolist()))
    known |= {(tail, relation + R, head) for head, relation, tail in known}
    for row in range(0, len(candidates.entities), 7):
        relation = int(candidates.relations[row, 0])
        for column in range(0, E, 9):
            tail = int(candidates.entities[row, column])
            popular = sum(1 for _, r, t in known if (r, t) == (relation, tail))
            value = candidates.popularity[row, column, 0].expm1()
            assert round(float(value)) == popular
    assert (candidates.fan > 0).any()
