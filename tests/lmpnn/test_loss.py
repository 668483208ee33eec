"""The contrastive loss against eq. loss of the paper, with loops and in float64."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from lmpnn_kge.lmpnn.loss import contrastive_loss

KINDS = ("independent", "shared", "all")
every_kind = pytest.mark.parametrize("kind", KINDS)


def plain_loss(z, entities, positives, negatives, temperature):
    """z [q, n, d] and entities [E, d], both in float64; a query, a noisy answer at a time."""

    def similarity(query, entity):  # of the nearest disjunct
        a = entities[entity]
        cosines = [(v @ a) / (v.norm() * a.norm()) for v in z[:, query]]
        return max(cosines)

    losses = []
    for query, answer in enumerate(positives):
        truth = torch.exp(similarity(query, answer) / temperature)
        noise = sum(
            torch.exp(similarity(query, entity) / temperature)
            for entity in _noise(query, answer, negatives, len(entities))
        )
        losses.append(-torch.log(truth / (truth + noise)))
    return sum(losses) / len(losses)


def _noise(query, answer, negatives, entities):
    if negatives is not None and isinstance(negatives[0], list):
        return negatives[query]  # as in the paper, even where the answer is among them
    shared = range(entities) if negatives is None else negatives
    return [entity for entity in shared if entity != answer]


def draw(kind, seed=0, disjuncts=1, queries=4, entities=9, dim=3, count=5):
    """Embeddings [q, n, d], entities [E, d], positives [n], negatives."""
    random = torch.Generator().manual_seed(seed)
    z = torch.randn(disjuncts, queries, dim, generator=random, dtype=torch.float64)
    table = torch.randn(entities, dim, generator=random, dtype=torch.float64)
    positives = torch.randint(entities, (queries,), generator=random)
    negatives = {
        "independent": torch.randint(entities, (queries, count), generator=random),
        "shared": torch.randperm(entities, generator=random)[:count],
        "all": None,
    }[kind]
    return z, table, positives, negatives


def both(z, table, positives, negatives, temperature):
    """The loss and the plain one, each with its gradient."""
    found, expected = (z.clone().requires_grad_() for _ in range(2))
    unit = F.normalize(table, dim=-1).float()
    loss = contrastive_loss(found.float(), unit, positives, negatives, temperature)
    listed = None if negatives is None else negatives.tolist()
    plain = plain_loss(expected, table, positives.tolist(), listed, temperature)
    loss.backward()
    plain.backward()
    return (loss.item(), found.grad), (plain.item(), expected.grad)


@given(
    kind=st.sampled_from(KINDS),
    seed=st.integers(0, 10_000),
    disjuncts=st.integers(1, 3),
    queries=st.integers(1, 4),
    entities=st.integers(2, 9),
    count=st.integers(1, 9),
    temperature=st.sampled_from([0.05, 0.1, 1.0]),
)
@settings(max_examples=60, deadline=None)
def test_loss_and_gradient_are_those_of_the_paper(
    kind, seed, disjuncts, queries, entities, count, temperature
):
    drawn = draw(kind, seed, disjuncts, queries, entities, count=count)
    (loss, gradient), (plain, plain_gradient) = both(*drawn, temperature)
    assert loss == pytest.approx(plain, rel=1e-4, abs=1e-5)
    assert torch.allclose(gradient, plain_gradient, rtol=1e-3, atol=1e-4)


@given(
    kind=st.sampled_from(KINDS),
    seed=st.integers(0, 10_000),
    entities=st.integers(2, 9),
    chance=st.sampled_from([0.1, 0.5, 1.0]),
)
@settings(max_examples=60, deadline=None)
def test_answers_among_the_noise_are_positives_and_noise_to_none(kind, seed, entities, chance):
    z, table, positives, negatives = draw(kind, seed, disjuncts=2, entities=entities)
    random = torch.Generator().manual_seed(seed)
    answers = torch.rand(len(positives), entities, generator=random) < chance  # [n, E]
    answers[torch.arange(len(positives)), positives] = True
    columns = torch.arange(entities) if negatives is None else negatives
    columns = columns.expand(len(positives), -1)  # [n, K]
    right = answers.gather(1, columns)
    found, expected = (z.clone().requires_grad_() for _ in range(2))
    unit = F.normalize(table, dim=-1).float()
    known = right.nonzero().T
    loss = contrastive_loss(found.float(), unit, positives, negatives, 0.1, known)
    cosines = torch.einsum("qnd,ed->qne", F.normalize(expected, dim=-1), unit.double()).amax(0)
    losses = []
    for query, (drawn, scores) in enumerate(zip(positives, (cosines / 0.1).exp(), strict=True)):
        noise = scores[columns[query, ~right[query]]].sum()
        truths = scores[torch.cat([drawn[None], columns[query, right[query]]])]
        losses.append(-torch.log(truths / (truths + noise)).mean())
    plain = sum(losses) / len(losses)
    loss.backward()
    plain.backward()
    assert loss.item() == pytest.approx(plain.item(), rel=1e-4, abs=1e-5)
    assert torch.allclose(found.grad, expected.grad, rtol=1e-3, atol=1e-4)


def test_a_loss_by_hand():
    """cos(a, z) = 0.6, noise at 0.8 and −0.6, T = 0.2: −log(e³ / (e³ + e⁴ + e⁻³))."""
    entities = torch.tensor([[0.6, 0.8], [0.8, 0.6], [-0.6, 0.8]])
    z = torch.tensor([[[5.0, 0.0]]])  # its length does not matter
    expected = -math.log(math.exp(3) / (math.exp(3) + math.exp(4) + math.exp(-3)))
    for negatives in (torch.tensor([[1, 2]]), torch.tensor([1, 2]), torch.tensor([0, 1, 2]), None):
        loss = contrastive_loss(z, entities, torch.tensor([0]), negatives, 0.2)
        assert loss.item() == pytest.approx(expected, rel=1e-5)


def test_the_paper_keeps_a_positive_among_its_own_noise_and_shared_noise_does_not():
    z, entities = torch.ones(1, 1, 2), torch.eye(2)
    positive = torch.tensor([0])
    independent = contrastive_loss(z, entities, positive, torch.tensor([[0, 1]]), 1.0)
    shared = contrastive_loss(z, entities, positive, torch.tensor([0, 1]), 1.0)
    assert independent.item() == pytest.approx(math.log(3))  # all three are as near
    assert shared.item() == pytest.approx(math.log(2))


@every_kind
@pytest.mark.parametrize("temperature", [0.01, 0.001])
def test_extreme_logits_do_not_overflow(kind, temperature):
    """The answer is opposite to z and the noise is where z is: L = 2 / T, up to log K."""
    entities = torch.tensor([[1.0, 0.0], [-1.0, 0.0]])
    z = torch.tensor([[[-1.0, 1e-3]]], requires_grad=True)
    negatives = {"independent": torch.tensor([[1]]), "shared": torch.tensor([1]), "all": None}
    loss = contrastive_loss(z, entities, torch.tensor([0]), negatives[kind], temperature)
    loss.backward()
    assert loss.item() == pytest.approx(2 / temperature, rel=1e-4)
    assert z.grad.isfinite().all()
    assert z.grad.abs().sum() > 0
    solved = contrastive_loss(-z, entities, torch.tensor([0]), negatives[kind], temperature)
    assert solved.item() == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("negatives", [torch.tensor([0]), None])
def test_without_any_noise_there_is_nothing_to_learn_and_no_gradient_is_nan(negatives):
    entities = torch.tensor([[1.0, 0.0]])
    z = torch.randn(1, 1, 2, requires_grad=True)
    loss = contrastive_loss(z, entities, torch.tensor([0]), negatives, 0.1)
    loss.backward()
    assert loss.item() == 0
    assert torch.equal(z.grad, torch.zeros_like(z))


@every_kind
def test_of_several_disjuncts_the_nearest_counts(kind):
    z, table, positives, negatives = draw(kind)
    unit = F.normalize(table, dim=-1).float()
    alone = contrastive_loss(z.float(), unit, positives, negatives, 0.1)
    twice = contrastive_loss(torch.cat([z, z]).float(), unit, positives, negatives, 0.1)
    assert twice.item() == pytest.approx(alone.item(), rel=1e-5)
    # One disjunct points at the answer: the positive is 1, whatever the other says.
    at_answer = torch.stack([z[0].float(), unit[positives]])
    found = contrastive_loss(at_answer, unit, positives, negatives, 0.1)
    listed = None if negatives is None else negatives.tolist()
    expected = plain_loss(at_answer.double(), table, positives.tolist(), listed, 0.1)
    assert found.item() == pytest.approx(expected.item(), rel=1e-4)


@every_kind
def test_in_bf16_the_loss_is_close_and_summed_in_fp32(kind):
    z, table, positives, negatives = draw(kind, queries=30, entities=40, dim=8, count=20)
    unit = F.normalize(table, dim=-1)
    fine, coarse = (
        contrastive_loss(z.float(), unit.to(dtype), positives, negatives, 0.1)
        for dtype in (torch.float32, torch.bfloat16)
    )
    assert coarse.dtype == torch.float32
    assert coarse.item() == pytest.approx(fine.item(), rel=0.02)
