"""Who answers questions, what the graph knows, and which answers are wanted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lmpnn_kge.graph.vocabulary import Vocabulary
from lmpnn_kge.methods.index import EntityIndex
from lmpnn_kge.methods.method import Method
from lmpnn_kge.runs.explaining import Explaining
from lmpnn_kge.runs.fitting import FittedMethod
from lmpnn_kge.runs.knowledge import Knowledge

#: What to do with entities that a relation was never seen with: rank them last, omit them, nothing.
Candidates = Literal["typed-first", "typed", "any"]


@dataclass(frozen=True, eq=False)
class Asker:
    """All that the answers to a question depend on, besides the question."""

    vocabulary: Vocabulary
    fitted: FittedMethod
    knowledge: Knowledge | None
    k: int | None = None  # answers to each question; None takes the question's LIMIT, or ten
    predicted: bool = False
    candidates: Candidates = "typed-first"
    index: EntityIndex | None = None  # to look in, instead of all entities
    explaining: Explaining | None = None
    witnesses: int = 1  # reasons for each answer, if they are explained
    timeout: float | None = None  # seconds for each question

    @property
    def method(self) -> Method:
        return self.fitted.method
