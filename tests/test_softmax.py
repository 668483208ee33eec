"""Cross-entropy in blocks is cross-entropy."""

import pytest
import torch

from lmpnn_kge import softmax
from lmpnn_kge.softmax import cross_entropy


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
    found = cross_entropy(estimates, entities, owners, tails, weights, smoothing)
    log = (estimates @ entities.T).log_softmax(1)
    truth = (1 - smoothing) * log[owners, tails] + smoothing * log[owners].mean(1)
    expected = -(weights * truth).sum()
    torch.testing.assert_close(found, expected)
    for mine, theirs in zip(
        torch.autograd.grad(3 * found, (estimates, entities)),
        torch.autograd.grad(3 * expected, (estimates, entities)),
        strict=True,
    ):
        torch.testing.assert_close(mine, theirs)
