"""A batch in parts has the gradients of the whole batch."""

import pytest
import torch

from lmpnn_kge.processes import ALONE
from lmpnn_kge.training.gradients import set_gradients


def weights() -> list[torch.Tensor]:
    random = torch.Generator().manual_seed(0)
    shapes = [(6, 3), (3,), (2, 2)]
    return [torch.randn(shape, generator=random).requires_grad_() for shape in shapes]


def loss_of(tensors, sparse):
    """A loss over rows of the first tensor that uses the second and not the third."""

    def loss(rows):
        looked_up = torch.nn.functional.embedding(rows, tensors[0], sparse=sparse)
        value = (looked_up * tensors[1]).square().sum()
        return value, 2 * value

    return loss


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("sizes", [[7], [4, 3], [1, 2, 2, 2], [2, 2, 3]])
def test_the_gradients_of_parts_add_up_to_those_of_the_batch(sizes, sparse):
    rows = torch.tensor([0, 5, 2, 2, 5, 1, 0])
    whole, divided = weights(), weights()
    with torch.sparse.check_sparse_tensor_invariants(enable=False):
        expected = set_gradients(whole, [rows], loss_of(whole, sparse), ALONE)
        loss = set_gradients(divided, rows.split(sizes), loss_of(divided, sparse), ALONE)
    torch.testing.assert_close(loss, expected)
    assert divided[0].grad.is_sparse == sparse
    for one, other in zip(divided[:2], whole[:2], strict=True):
        torch.testing.assert_close(one.grad.to_dense(), other.grad.to_dense())
    assert divided[2].grad is None  # the optimiser leaves such a weight alone
