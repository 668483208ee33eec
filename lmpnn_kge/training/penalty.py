"""Choosing the penalty of an embedding on validation triples.

The best penalty depends on the graph and on the model, and a wrong one costs up to ten points of
MRR. Quality rises to the best penalty and falls after it, so a few trainings find it.
"""

from __future__ import annotations

from collections.abc import Callable

#: Penalties to try, in ascending order.
PENALTIES = (0.01, 0.03, 0.08, 0.2, 0.5)

#: The penalty if none is chosen: the best one for FB15k-237.
USUAL = 0.08

#: Training triples up to which an embedding is trained several times to choose.
MOST_TRIPLES = 50_000


def choose_penalty(quality: Callable[[float], float]) -> float:
    """The penalty of best quality, found by climbing from the usual one in steps."""
    start = PENALTIES.index(USUAL)
    best, best_quality = start, quality(USUAL)
    for step in (-1, 1):
        while 0 <= best + step < len(PENALTIES):
            next_quality = quality(PENALTIES[best + step])
            if next_quality <= best_quality:
                break
            best, best_quality = best + step, next_quality
        if best != start:  # the other side is lower
            break
    return PENALTIES[best]
