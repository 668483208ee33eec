"""The contrastive loss (eq. loss in the paper), as one softplus in log space.

L = −log [ exp(cos(a, z)/T) / (exp(cos(a, z)/T) + Σ_k exp(cos(z_k, z)/T)) ]
  = softplus( logsumexp_k cos(z_k, z)/T − cos(a, z)/T )

Beyond the paper: with `positives: all`, every known answer among the negatives is a positive as
well, and is not a negative of the other positives.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from lmpnn_kge.lmpnn.softmax import columns_of, noise_and_truths


def contrastive_loss(
    z: Tensor,
    entities: Tensor,
    positives: Tensor,
    negatives: Tensor | None,
    temperature: float,
    known: Tensor | None = None,
) -> Tensor:
    """The mean over queries of the negative log likelihood of their positives.

    z [q, n, d] are the embeddings of q disjuncts; the nearest one to an entity counts. entities
    [E, d] have length 1 and the precision to compute in. negatives are [n, K], drawn for each
    query; [K], distinct and shared by all queries; or None, all entities. In the last two cases a
    query's positive is removed from its negatives. known [2, m] are the rows and columns of answers
    in [n, K], all of which count as positives.
    """
    # Divided by T here, [q, n, d], and not in the scores, [q, n, K]: products with it are logits.
    unit = (F.normalize(z, dim=-1) / temperature).to(entities.dtype)
    answers = entities.index_select(0, positives)  # [n, d]
    positive = (unit * answers).sum(-1).amax(0).float()  # [n]
    independent = negatives is not None and negatives.dim() == 2
    if independent:
        logits = torch.einsum("qnd,nkd->qnk", unit, entities[negatives])
    else:
        noise = entities if negatives is None else entities.index_select(0, negatives)  # [K, d]
        logits = unit @ noise.T
    # Copied because `noise_and_truths` overwrites what the gradient of amax needs.
    nearest = logits.squeeze(0) if len(logits) == 1 else logits.amax(0).clone()  # [n, K]
    if known is not None:
        return _loss_of_all(nearest, positive, known[0], known[1])
    if independent:
        noise = nearest.float().logsumexp(1)
    else:
        own = columns_of(positives, negatives, len(entities))
        rows = torch.arange(len(own), device=own.device)
        last = nearest.shape[1] - 1
        noise, _ = noise_and_truths(nearest, rows, own.clamp(max=last), own <= last)
    return F.softplus(noise - positive).mean()


def _loss_of_all(logits: Tensor, positive: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """The loss with several positives: a query's mean over its drawn and its known answers.

    All positives of a query share one logsumexp, because none of them is a negative.
    """
    noise, truths = noise_and_truths(logits, rows, columns)
    drawn = F.softplus(noise - positive)
    others = F.softplus(noise[rows] - truths)
    count = torch.ones_like(drawn).index_add(0, rows, torch.ones_like(others))
    return (drawn.index_add(0, rows, others) / count).mean()
