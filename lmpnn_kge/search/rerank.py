"""A learnt order of the best answers of search, by what search knows of them.

The score of an entity is a sum over the conditions that it must satisfy:

    Σ slope(role) · log truth + g(truth, is certain, popularity, fan, role, relation)

g is a small network that begins at 0, so that the order is first that of search. popularity is the
number of known edges of the relation that end at the entity, fan the number of those that begin at
the constant. The parts of a disjunction are summed by their exponentials.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lmpnn_kge.search.facts import Facts
from lmpnn_kge.search.logic import CERTAIN, UNREACHED
from lmpnn_kge.search.questions import listwise_loss
from lmpnn_kge.search.solve import Part, Role
from lmpnn_kge.work.listener import Listener

#: The width of the hidden layers of g, and of the vector of a relation.
HIDDEN, RELATION = 32, 8

EPOCHS, RATE, DECAY = 8, 3e-3, 1e-2


@dataclass(frozen=True, eq=False)
class Candidates:
    """What is known of the best entities of queries of one pattern."""

    entities: Tensor  # [n, c]
    truth: Tensor  # [n, c]: by search, logarithms
    parts: Tensor  # [n, c, p]: the log truth of each condition
    popularity: Tensor  # [n, c, p]
    fan: Tensor  # [n, p]
    relations: Tensor  # [n, p]; 2R for none
    roles: Tensor  # [p]
    disjuncts: Tensor  # [p]: the number of the disjunct of each condition

    def at(self, rows: Tensor) -> Candidates:
        """Some of the queries."""
        return Candidates(
            self.entities[rows],
            self.truth[rows],
            self.parts[rows],
            self.popularity[rows],
            self.fan[rows],
            self.relations[rows],
            self.roles,
            self.disjuncts,
        )


def gather_candidates(
    disjuncts: Sequence[Sequence[Part]],
    truth: Tensor,
    entities: Tensor,
    facts: Facts,
) -> Candidates:
    """What is known of entities [n, c], given the log truth [n, E] of all."""
    size, none = len(entities), 2 * facts.num_relations
    columns = [(number, part) for number, parts in enumerate(disjuncts) for part in parts]
    parts, popularity, fan, relations = [], [], [], []
    for _, part in columns:
        values = part.truth.expand(-1, truth.shape[1]) if part.truth.shape[1] == 1 else part.truth
        parts.append(values.gather(1, entities).clamp(min=UNREACHED))
        relation = part.relation
        if relation is None:
            popularity.append(torch.zeros_like(parts[-1]))
            relations.append(torch.full((size,), none, device=entities.device))
        else:
            inverse = (relation + facts.num_relations) % none
            popularity.append(facts.count(facts.keys_of(entities, inverse[:, None])).log1p())
            relations.append(relation)
        if relation is None or part.head is None:
            fan.append(torch.zeros(size, device=entities.device))
        else:
            fan.append(facts.count(facts.keys_of(part.head, relation)).log1p())
    return Candidates(
        entities,
        truth.gather(1, entities),
        torch.stack(parts, 2),
        torch.stack(popularity, 2),
        torch.stack(fan, 1),
        torch.stack(relations, 1),
        torch.tensor([part.role for _, part in columns], device=entities.device),
        torch.tensor([number for number, _ in columns], device=entities.device),
    )


class Reranker(nn.Module):
    """Scores candidates."""

    def __init__(self, num_relations: int):
        super().__init__()
        self.slopes = nn.Parameter(torch.ones(len(Role)))
        self.relations = nn.Embedding(2 * num_relations + 1, RELATION)
        nn.init.normal_(self.relations.weight, std=0.1)
        features = 4 + len(Role) + RELATION
        last = nn.Linear(HIDDEN, 1)
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)
        self.condition = nn.Sequential(
            nn.Linear(features, HIDDEN), nn.GELU(),
            nn.Linear(HIDDEN, HIDDEN), nn.GELU(), last,
        )  # fmt: skip

    def forward(self, candidates: Candidates) -> Tensor:
        """Scores [n, c]."""
        truth, roles = candidates.parts, candidates.roles
        kinds = F.one_hot(roles, len(Role)).to(truth)
        columns = [
            torch.stack([truth / 5, (truth > CERTAIN).float(), candidates.popularity / 3], -1),
            (candidates.fan / 3)[:, None, :, None].expand(*truth.shape, 1),
            kinds.expand(*truth.shape, -1),
            self.relations(candidates.relations)[:, None].expand(*truth.shape, -1),
        ]
        scores = truth * self.slopes[roles] + self.condition(torch.cat(columns, -1))[..., 0]
        sums = scores.new_zeros(*truth.shape[:2], int(candidates.disjuncts.max()) + 1)
        return sums.index_add(2, candidates.disjuncts, scores).logsumexp(2)


@dataclass(frozen=True, eq=False)
class Lesson:
    """Candidates with the answers among them."""

    candidates: Candidates
    hard: Tensor  # [n, c]
    ignored: Tensor  # [n, c]: easy answers
    counts: Tensor  # [n]: of all hard answers

    def at(self, rows: Tensor) -> Lesson:
        return Lesson(
            self.candidates.at(rows), self.hard[rows], self.ignored[rows], self.counts[rows]
        )


def train_reranker(
    lessons: Sequence[Lesson], num_relations: int, seed: int, listener: Listener
) -> Reranker:
    """Learn to rank hard answers above entities that are not answers."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        reranker = Reranker(num_relations)
    random = torch.Generator().manual_seed(seed)
    optimiser = torch.optim.AdamW(reranker.parameters(), lr=RATE, weight_decay=DECAY)
    steps = EPOCHS * len(lessons)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, max(1, steps))
    listener.begin("learning to rank answers", steps)
    for _ in range(EPOCHS):
        for position in torch.randperm(len(lessons), generator=random).tolist():
            lesson = lessons[position]
            scores = reranker(lesson.candidates)
            loss = listwise_loss(scores, lesson.hard, lesson.ignored, lesson.counts)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
            listener.advance(1)
    return reranker
