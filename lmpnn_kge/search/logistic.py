"""Logistic regression with an intercept and a slope of its own for each group."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

#: Penalties on squares, for standardised features: of common weights, and of a group's own
#: intercept and slope, which therefore only say what differs from the others.
COMMON_RIDGE, INTERCEPT_RIDGE, SLOPE_RIDGE = 0.01, 1.0, 4.0

#: The least slope of a group, as a part of the common one, and at all: with a higher first feature
#: a claim is more probable, even if the few claims of a group say otherwise.
LEAST_PART, LEAST_SLOPE = 0.1, 1e-3

#: Iterations of L-BFGS, which usually needs fewer.
ITERATIONS = 100


@dataclass(frozen=True, eq=False)
class Logistic:
    """logit(x) = slopes[g] · x₀ + weights · x₁… + intercepts[g], for a group g."""

    weights: Tensor  # [f − 1]
    slopes: Tensor  # [groups]; all positive
    intercepts: Tensor  # [groups]

    def __call__(self, features: Tensor, groups: Tensor) -> Tensor:
        """The logits of features [n, f] of groups [n]."""
        own = self.slopes[groups] * features[:, 0] + self.intercepts[groups]
        return own + features[:, 1:] @ self.weights

    @classmethod
    def fit(
        cls, features: Tensor, groups: Tensor, holds: Tensor, mass: Tensor, count: int
    ) -> Logistic:
        """Fit features [n, f] of groups [n] below `count` to whether they hold [n], in doubles.

        mass [n] says how many each stands for. Groups without data have the common values.
        """
        total = mass.sum()
        mean = (mass @ features) / total
        scale = ((mass @ (features - mean) ** 2) / total).sqrt()
        scale = torch.where(scale > 1e-6, scale, 1.0)
        columns = (features - mean) / scale
        first = columns[:, 0]
        width = columns.shape[1]
        # The common weights and intercept, then the intercepts and the slopes of the groups.
        theta = features.new_zeros(width + 1 + 2 * count)
        ridge = torch.full_like(theta, INTERCEPT_RIDGE)
        ridge[:width] = COMMON_RIDGE
        ridge[width] = 0.0
        ridge[width + 1 + count :] = SLOPE_RIDGE
        share = (mass @ holds + 0.5) / (total + 1)
        theta[width] = torch.logit(share)
        optimiser = torch.optim.LBFGS([theta], max_iter=ITERATIONS, line_search_fn="strong_wolfe")

        def loss() -> Tensor:
            weights, common, own, slopes = theta.split([width, 1, count, count])
            logits = columns @ weights + common + own[groups] + slopes[groups] * first
            errors = mass * (logits.sigmoid() - holds)
            theta.grad = ridge * theta + torch.cat([
                errors @ columns,
                errors.sum()[None],
                torch.bincount(groups, errors, count),
                torch.bincount(groups, errors * first, count),
            ])  # fmt: skip
            fit = mass @ torch.nn.functional.softplus(logits) - (mass * holds) @ logits
            return fit + (ridge * theta**2).sum() / 2

        optimiser.step(loss)
        weights, common, own, slopes = theta.split([width, 1, count, count])
        per_unit = weights / scale
        least = max(LEAST_PART * float(per_unit[0]), LEAST_SLOPE)
        slope = ((weights[0] + slopes) / scale[0]).clamp(min=least)
        intercepts = common + own - per_unit[1:] @ mean[1:] - slope * mean[0]
        return cls(per_unit[1:].clone(), slope, intercepts)
