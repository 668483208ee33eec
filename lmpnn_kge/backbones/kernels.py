"""Tensor operations that backbones share.

torch is imported inside the functions, so that plugins can import this module without torch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


def take_rows(table: Tensor, ids: Tensor) -> Tensor:
    """Rows of a table: [E, d] and ids [...] -> [..., d]. On a CPU, indexing takes far longer."""
    return table.index_select(0, ids.reshape(-1)).view(*ids.shape, table.shape[1])


def complex_product(a: Tensor, b: Tensor) -> Tensor:
    """Multiply complex vectors elementwise; each is stored as [real ‖ imaginary]."""
    import torch

    a_re, a_im = a.chunk(2, dim=-1)
    b_re, b_im = b.chunk(2, dim=-1)
    return torch.cat([a_re * b_re - a_im * b_im, a_re * b_im + a_im * b_re], dim=-1)


def matmul_by_relation(rows: Tensor, relations: Tensor, matrices: Tensor) -> Tensor:
    """Multiply each row by the matrix of its relation, without copying a matrix for each row.

    rows [n, d], relations [n], matrices [R, d, e] -> [n, e]. Rows of one relation share a product.
    """
    import torch

    order = relations.argsort()
    rows = rows[order]
    if rows.device.type == "cpu":
        counts = relations.bincount(minlength=len(matrices)).tolist()
        groups = zip(rows.split(counts), matrices, strict=True)
        products = [group @ matrix for group, matrix in groups if len(group)]
        product = torch.cat(products or [rows[:, :0] @ matrices[0, :0]])
    else:
        product = _matmul_in_tiles(rows, relations[order], matrices)
    return torch.empty_like(product).index_copy(0, order, product)


def _matmul_in_tiles(rows: Tensor, relations: Tensor, matrices: Tensor) -> Tensor:
    """Multiply rows sorted by relation; no shape depends on the data.

    Each relation's rows are padded to full tiles. At most n // tile + min(R, n) tiles are needed,
    whatever the relations are, so an accelerator never has to send their number to the host.
    """
    import torch

    n, num_relations = len(rows), len(matrices)
    tile = max(8, n // num_relations)
    tiles = n // tile + min(num_relations, n)

    ids = torch.arange(num_relations, device=rows.device)
    row_end = torch.searchsorted(relations, ids, right=True)  # [R]
    row_start = torch.searchsorted(relations, ids)  # [R]
    tile_end = ((row_end - row_start + tile - 1) // tile).cumsum(0)  # [R]
    tile_start = torch.cat([tile_end.new_zeros(1), tile_end[:-1]])  # [R]
    shift = tile_start * tile - row_start  # from the index of a row to its slot in the tiles
    slot = torch.arange(n, device=rows.device) + shift[relations]  # [n]
    relation_of_tile = torch.searchsorted(
        tile_end, torch.arange(tiles, device=rows.device), right=True
    ).clamp(max=num_relations - 1)

    padded = rows.new_zeros(tiles * tile, rows.shape[1]).index_copy(0, slot, rows)
    padded = padded.view(tiles, tile, rows.shape[1])
    product = padded @ matrices[relation_of_tile]  # [tiles, tile, e]
    return product.flatten(0, 1)[slot]


def all_pairs(
    distance: Callable[[Tensor, Tensor], Tensor], queries: Tensor, table: Tensor
) -> Tensor:
    """Compute distance(q, t) for every q of [n, d] and t of [E, d] -> [n, E].

    One block of pairs is computed at a time; on a CPU a block is small enough for its cache.
    """
    elements = 2**21 if queries.device.type == "cpu" else 2**26
    columns = 2048
    rows = max(1, elements // (columns * queries.shape[1]))
    out = queries.new_empty(len(queries), len(table))
    for i in range(0, len(queries), rows):
        for j in range(0, len(table), columns):
            block = distance(queries[i : i + rows, None], table[None, j : j + columns])
            out[i : i + rows, j : j + columns] = block
    return out


def minkowski(a: Tensor, b: Tensor, p: float) -> Tensor:
    """Compute the p-norm of a − b, of shapes [..., d] that broadcast -> [...]."""
    if p == 1:
        return (a - b).abs_().sum(-1)  # several times faster than norm(1)
    return (a - b).norm(p, dim=-1)


def euclidean(a: Tensor, b: Tensor) -> Tensor:
    """Compute the distances between all pairs of [n, d] and [m, d] by a matrix product -> [n, m].

    For two points that nearly coincide this is less exact than the norm of their difference.
    """
    squares = a.square().sum(1, keepdim=True) + b.square().sum(1) - 2 * a @ b.T
    return squares.clamp(min=1e-6).sqrt()
