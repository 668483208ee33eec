"""How many scores are above a threshold and how many below, for some thresholds of each query."""

from __future__ import annotations

import torch
from torch import Tensor

#: With more thresholds of a query, one pass that puts its scores into buckets is faster than a pass
#: for each threshold.
FEW = 16

#: Buckets for the scores of a query. Only scores that share one with a threshold are compared.
BUCKETS = 8192

#: The most scores whose signs a sum in single precision counts exactly.
EXACT = 2**24


def surplus(scores: Tensor, thresholds: Tensor) -> Tensor:
    """How many more of scores [n, E] are above thresholds [n, k] than below: Σ sign(s − t), [n, k].

    Every score is above, below or tied: above + below + tied = E and above − below = Σ, so that
    above + tied / 2 = (E + Σ) / 2. One sum thus counts both, and needs no second comparison.
    """
    if scores.shape[1] > EXACT:
        columns = scores.split(EXACT, 1)
        parts = [surplus(part.contiguous(), thresholds).long() for part in columns]
        return torch.stack(parts).sum(0)
    if thresholds.shape[1] > FEW and scores.dtype == torch.float32:
        low, high = thresholds.amin(1), scores.amax(1)
        if (high - low).isfinite().all():
            return _by_buckets(scores, thresholds, low, torch.maximum(high, thresholds.amax(1)))
    difference = torch.empty_like(scores)  # written again for every threshold
    signs = [
        torch.sub(scores, threshold[:, None], out=difference).sign_().sum(1)
        for threshold in thresholds.unbind(1)
    ]
    return torch.stack(signs, dim=1)


def _by_buckets(scores: Tensor, thresholds: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """The same for many thresholds, all of which are between low and high [n].

    The bucket of a number never falls if the number rises. A score in another bucket than a
    threshold is therefore above or below it as its bucket is, and those of a bucket are counted
    together. Only the few scores in the bucket of a threshold are compared with it.
    """
    queries, device = len(scores), scores.device
    width = (high - low).abs()  # −0 would give a scale of −∞
    scale = ((BUCKETS - 2) / width).clamp_(max=torch.finfo(scores.dtype).max)
    first = BUCKETS * torch.arange(queries, dtype=torch.int32, device=device)[:, None]

    def bucket(values: Tensor) -> Tensor:  # the first one of a query is for all below `low`
        place = (values - low[:, None]).mul_(scale[:, None]).clamp_(min=-1)
        return place.int().add_(first + 1).view(-1)

    flat, places, own = thresholds.reshape(-1), bucket(scores), bucket(thresholds).long()
    counts = torch.bincount(places, minlength=queries * BUCKETS)
    upto = counts.view(queries, BUCKETS).cumsum(1).view(-1)  # in a bucket and those below
    apart = scores.shape[1] - 2 * upto[own] + counts[own]

    shared = torch.zeros(len(counts), dtype=torch.bool, device=device)
    shared[own] = True
    owner = torch.empty_like(shared, dtype=torch.int32)  # of a bucket: one of its thresholds
    owner[own] = torch.arange(len(own), dtype=torch.int32, device=device)
    near = _positions(shared, places)
    compared = owner.index_select(0, places.index_select(0, near))
    signs = scores.view(-1).index_select(0, near).sub_(flat.index_select(0, compared)).sign_()
    within = torch.zeros_like(flat).index_add_(0, compared, signs)
    same = owner[own]
    net = within[same].add_(apart).view_as(thresholds)
    # Of several thresholds in one bucket, those unlike the compared one are left.
    rest = (flat != flat[same]).view_as(thresholds).nonzero()
    for rows, columns in (part.unbind(1) for part in rest.split(queries)):
        others = thresholds[rows, columns]
        net[rows, columns] = scores.index_select(0, rows).sub_(others[:, None]).sign_().sum(1)
    return net


def _positions(chosen: Tensor, places: Tensor) -> Tensor:
    """The positions j at which chosen[places_j] holds; few of them, so eight are tested at once."""
    size = len(places)
    mask = torch.zeros(-(-size // 8) * 8, dtype=torch.bool, device=places.device)
    torch.index_select(chosen, 0, places, out=mask[:size])
    eights = mask.view(torch.int64).nonzero()  # [m, 1]
    positions = (8 * eights + torch.arange(8, device=places.device)).view(-1)
    return positions[mask.index_select(0, positions)]
