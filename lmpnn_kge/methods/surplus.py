"""How many scores are above a threshold and how many below, for some thresholds of each query."""

from __future__ import annotations

import torch
from torch import Tensor

#: With more thresholds of a query, one pass that puts its scores into buckets is faster than a pass
#: for each threshold.
FEW = 20

#: Buckets for the scores of a query. Only scores that share one with a threshold are compared.
BUCKETS = 4096

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
    together. The few scores that share a bucket with any threshold are sorted instead.
    """
    device = scores.device
    width = (high - low).abs()  # −0 would give a scale of −∞
    scale = ((BUCKETS - 2) / width).clamp_(max=torch.finfo(scores.dtype).max)
    first = BUCKETS * torch.arange(len(scores), dtype=torch.int32, device=device)[:, None]

    def bucket(values: Tensor) -> Tensor:  # the first one of a query is for all below `low`
        place = (values - low[:, None]).mul_(scale[:, None]).clamp_(min=-1)
        return place.int().add_(first + 1).view(-1)

    places, own = bucket(scores), bucket(thresholds)
    shared = torch.zeros(len(scores) * BUCKETS, dtype=torch.bool, device=device)
    shared[own.long()] = True
    counts = torch.bincount(places, minlength=len(shared)).masked_fill_(shared, 0)
    below = counts.view(len(scores), BUCKETS).cumsum(1)  # [n, BUCKETS]
    apart = below[:, -1:] - 2 * below.view(-1)[own.long()].view_as(thresholds)
    near = _positions(shared, places)
    keys = _keys(places[near], scores.view(-1)[near]).sort().values
    wanted = _keys(own, thresholds.reshape(-1)).view_as(thresholds)
    # The keys of a query lie between those of its first bucket and those of the next query's.
    start, end = (torch.searchsorted(keys, (edge.long() << 32) - 2**31) for edge in
                  (first, first + BUCKETS))  # fmt: skip
    left, right = (torch.searchsorted(keys, wanted, right=right) for right in (False, True))
    return (apart + (end - right) - (left - start)).to(scores.dtype)


def _positions(chosen: Tensor, places: Tensor) -> Tensor:
    """The positions j at which chosen[places_j] holds; few of them, so eight are tested at once."""
    size = len(places)
    mask = torch.zeros(-(-size // 8) * 8, dtype=torch.bool, device=places.device)
    torch.index_select(chosen, 0, places, out=mask[:size])
    eights = mask.view(torch.int64).nonzero()  # [m, 1]
    positions = (8 * eights + torch.arange(8, device=places.device)).view(-1)
    return positions[mask[positions]]


def _keys(places: Tensor, values: Tensor) -> Tensor:
    """Whole numbers that are in the order of the buckets and, within one, of the values."""
    bits = (values + 0.0).view(torch.int32).long()  # −0 becomes 0, which is the same number
    return (places.long() << 32) + torch.where(bits < 0, -1 - (bits & 0x7FFFFFFF), bits)
