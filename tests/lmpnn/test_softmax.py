"""Cross-entropy in blocks is cross-entropy, of each tail apart from the others."""

import pytest
import torch

from lmpnn_kge.lmpnn import softmax
from lmpnn_kge.lmpnn.softmax import cross_entropy, mask_of


@pytest.mark.parametrize("block", [1, 50, 10**6])
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_loss_and_gradients_are_those_of_the_whole(monkeypatch, block, smoothing):
    monkeypatch.setattr(softmax, "CPU_BLOCK", block)
    random = torch.Generator().manual_seed(0)
    estimates, entities = (
        torch.randn(n, 4, generator=random, dtype=torch.float64, requires_grad=True)
        for n in (7, 11)
    )
    owners = torch.tensor([0, 0, 1, 3, 3, 3, 6])  # questions 2, 4 and 5 have no tails
    tails = torch.tensor([2, 3, 2, 0, 10, 5, 1])
    weights = torch.rand(7, generator=random, dtype=torch.float64)
    offsets = [0, 2, 3, 3, 6, 6, 6, 7]
    found = cross_entropy(estimates, entities, offsets, owners, tails, weights, smoothing)
    scores = estimates @ entities.T
    expected = torch.zeros((), dtype=torch.float64)
    for owner, tail, weight in zip(owners.tolist(), tails.tolist(), weights, strict=True):
        others = [t for o, t in zip(owners, tails, strict=True) if o == owner and t != tail]
        candidates = [entity for entity in range(len(entities)) if entity not in others]
        log = scores[owner] - scores[owner, candidates].logsumexp(0)
        expected -= weight * ((1 - smoothing) * log[tail] + smoothing * log.mean())
    torch.testing.assert_close(found, expected)
    for mine, theirs in zip(
        torch.autograd.grad(3 * found, (estimates, entities)),
        torch.autograd.grad(3 * expected, (estimates, entities)),
        strict=True,
    ):
        torch.testing.assert_close(mine, theirs)


def test_where_everything_is_right_there_is_nothing_to_learn():
    estimates = torch.randn(2, 3, requires_grad=True)
    owners, tails = torch.tensor([0, 0, 0, 0, 1]), torch.tensor([0, 1, 2, 3, 1])
    weights = torch.tensor([1.0, 1.0, 1.0, 1.0, 0.0])
    loss = cross_entropy(estimates, torch.randn(4, 3), [0, 4, 5], owners, tails, weights)
    loss.backward()
    assert loss.item() == 0
    assert torch.equal(estimates.grad, torch.zeros(2, 3))


@pytest.mark.parametrize("columns", [None, [4, 0, 3]])
def test_a_mask_says_where_entities_stand(columns):
    rows, ids = torch.tensor([0, 0, 2, 2]), torch.tensor([0, 1, 4, 3])
    chosen = None if columns is None else torch.tensor(columns)
    every = list(range(5)) if columns is None else columns
    pairs = set(zip(rows.tolist(), ids.tolist(), strict=True))
    expected = torch.tensor([[(row, entity) in pairs for entity in every] for row in range(3)])
    assert torch.equal(mask_of(rows, ids, chosen, torch.Size([3, len(every)]), 5), expected)
