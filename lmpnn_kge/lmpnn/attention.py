"""Attention over the messages to a node.

The paper adds all messages with the weight 1. But a message from a constant is one-hop inference
from a fact, and one from a variable that has heard nothing yet is a guess; and some of what a query
says narrows its answers more than the rest. Weights depend on the messages of one query alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn


class Attention(nn.Module):
    """Weighs the k messages to a node by k · softmax of their scores, which start at 0.

    All weights are 1 at first, so that the network starts with the plain sum of messages.
    """

    def __init__(self, dim: int, width: int):
        super().__init__()
        self.hidden = nn.Linear(dim, width)
        self.score = nn.Linear(width, 1, bias=False)
        nn.init.zeros_(self.score.weight)

    def forward(self, messages: Sequence[Tensor]) -> Sequence[Tensor]:
        """Messages [n, d] to one node -> the same, weighted; a single one has the weight 1."""
        if len(messages) == 1:
            return messages
        stacked = torch.stack(list(messages))  # [k, n, d]
        scores = self.score(self.hidden(stacked).relu())  # [k, n, 1]
        return (len(messages) * scores.softmax(0) * stacked).unbind()
