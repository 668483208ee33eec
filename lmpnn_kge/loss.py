"""The contrastive loss (eq. loss in the paper), as one softplus in log space.

L = −log [ exp(cos(a, z)/T) / (exp(cos(a, z)/T) + Σ_k exp(cos(z_k, z)/T)) ]
  = softplus( logsumexp_k cos(z_k, z)/T − cos(a, z)/T )
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def contrastive_loss(
    z: Tensor, entities: Tensor, positives: Tensor, negatives: Tensor | None, temperature: float
) -> Tensor:
    """The mean over queries of the negative log likelihood of their positives.

    z [q, n, d] has the embeddings of q disjuncts, of which the nearest counts; entities [E, d] are
    of length 1, in the precision to compute in. negatives are [n, K], independent ones for each
    query; [K], distinct ones for all queries; or None, all entities. In the last two cases a
    query's own positive is left out of its negatives.
    """
    unit = F.normalize(z, dim=-1).to(entities.dtype)
    truth = entities[positives]  # [n, d]
    positive = (unit * truth).sum(-1).amax(0).float() / temperature  # [n]
    if negatives is not None and negatives.dim() == 2:
        noise = torch.einsum("qnd,nkd->qnk", unit, entities[negatives])
        logits = noise.amax(0).float() / temperature
    else:
        noise = unit @ (entities if negatives is None else entities[negatives]).T
        logits = noise.amax(0).float() / temperature  # [n, K]
        logits = _without(logits, positives, negatives, len(entities))
    return F.softplus(logits.logsumexp(1) - positive).mean()


def _without(logits: Tensor, positives: Tensor, negatives: Tensor | None, entities: int) -> Tensor:
    """Logits in which each query's positive, where it is among the negatives, is −∞."""
    if negatives is None:
        return logits.scatter(1, positives[:, None], -torch.inf)
    place = torch.full((entities,), -1, device=logits.device)
    place[negatives] = torch.arange(len(negatives), device=logits.device)
    hit = place[positives][:, None]  # [n, 1], -1 where the positive is no negative
    column = hit.clamp(min=0)
    kept = logits.gather(1, column).masked_fill(hit >= 0, -torch.inf)
    return logits.scatter(1, column, kept)
