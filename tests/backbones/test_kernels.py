"""The shared tensor operations against their definitions."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lmpnn_kge.backbones.kernels import (
    _matmul_in_tiles,
    all_pairs,
    complex_product,
    matmul_by_relation,
    minkowski,
    take_rows,
)


def test_complex_product_is_that_of_complex_numbers():
    a, b = torch.randn(2, 5, 6, generator=torch.Generator().manual_seed(0))
    as_complex = [torch.complex(*x.chunk(2, dim=-1)) for x in (a, b)]
    product = as_complex[0] * as_complex[1]
    torch.testing.assert_close(complex_product(a, b), torch.cat([product.real, product.imag], -1))


@given(
    relations=st.lists(st.integers(0, 6), max_size=60),
    num_relations=st.integers(7, 9),
    tiles=st.booleans(),
)
@settings(deadline=None)
def test_every_row_meets_the_matrix_of_its_relation(relations, num_relations, tiles):
    ids = torch.tensor(sorted(relations) if tiles else relations, dtype=torch.int64)
    rows = torch.randn(len(ids), 3)
    matrices = torch.randn(num_relations, 3, 2)
    product = (_matmul_in_tiles if tiles else matmul_by_relation)(rows, ids, matrices)
    assert product.shape == (len(ids), 2)
    expected = torch.einsum("nd,nde->ne", rows, matrices[ids])
    torch.testing.assert_close(product, expected)


@pytest.mark.parametrize("tiles", [False, True])
def test_gradients_of_rows_pass_through(tiles):
    ids = torch.tensor([0, 0, 2, 2, 2])
    rows = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    matrices = torch.randn(3, 3, 2, dtype=torch.float64)
    multiply = _matmul_in_tiles if tiles else matmul_by_relation
    assert torch.autograd.gradcheck(lambda x: multiply(x, ids, matrices), rows)


def test_all_pairs_covers_every_block():
    queries, table = torch.randn(19, 70), torch.randn(4100, 70)
    distances = all_pairs(lambda a, b: (a - b).abs().sum(-1), queries, table)
    torch.testing.assert_close(distances, torch.cdist(queries, table, p=1.0))


@pytest.mark.parametrize("p", [1, 1.5, 2.0, float("inf")])
def test_minkowski_is_the_p_norm_of_the_difference(p):
    a, b = torch.randn(4, 1, 6), torch.randn(5, 6)
    torch.testing.assert_close(minkowski(a, b, p), torch.cdist(a[:, 0], b, p=p))


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0), (2, 3)])
def test_taken_rows_are_those_of_indexing(shape):
    table = torch.arange(20).view(5, 4).float()
    ids = torch.randint(5, shape)
    assert torch.equal(take_rows(table, ids), table[ids])
