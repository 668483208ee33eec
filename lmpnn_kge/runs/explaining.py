"""Reasons for answers: from the graph if they are known, by search if they are predicted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch

from lmpnn_kge.errors import QueryError, StoppedError, TimeLimitError
from lmpnn_kge.graph.vocabulary import Vocabulary
from lmpnn_kge.query.explain import Witness, explain
from lmpnn_kge.query.formula import FREE, Constant, Formula, Term, has_negation
from lmpnn_kge.query.normal_form import Conjunct, normalise, substitute
from lmpnn_kge.query.patterns import Pattern
from lmpnn_kge.query.reason import Reason, formula_of
from lmpnn_kge.runs.knowledge import AnswerRows, Knowledge
from lmpnn_kge.search.edges import EdgeProbability
from lmpnn_kge.search.solve import Solver
from lmpnn_kge.search.witness import find_witnesses

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Explaining:
    """A graph, a search and the probabilities of edges."""

    vocabulary: Vocabulary
    knowledge: Knowledge
    solver: Solver
    edges: EdgeProbability

    def explain(
        self, formula: Formula, answers: AnswerRows, known: Sequence[bool], count: int
    ) -> list[list[Reason]]:
        """Up to `count` reasons for each answer, the best first.

        answers are rows, or tuples of rows, and known says which of them follow from the training
        edges. The names in the formula are ids.
        """
        pairs = list(zip(answers, known, strict=True))
        exact = self.knowledge.witnesses(formula, [row for row, k in pairs if k], count)
        likely = self._search(formula, [row for row, k in pairs if not k], count)
        sources = {True: iter(exact), False: iter(likely)}
        by_answer = [next(sources[is_known]) for is_known in known]
        reasons = iter(
            explain(
                [witness for witnesses in by_answer for witness in witnesses],
                self.vocabulary,
                self._holds,
                self._probability,
            )
        )
        return [[next(reasons) for _ in witnesses] for witnesses in by_answer]

    def _search(self, formula: Formula, answers: AnswerRows, count: int) -> list[list[Witness]]:
        if not answers:
            return []
        pattern, device = Pattern(formula), self.solver.truth.device
        constants, relations = self.vocabulary.resolve(pattern)
        columns = torch.from_numpy(constants).to(device), torch.from_numpy(relations).to(device)
        rows = torch.tensor(answers, device=device)
        found = find_witnesses(self.solver, pattern, *columns, rows, count)
        return [[self._with_open_paths(witness) for witness in several] for several in found]

    def _with_open_paths(self, witness: Witness) -> Witness:
        """A witness with the denied groups that hold by the known edges because others are missing.

        Search is never certain of a group that denies something itself.
        """
        groups = enumerate(witness.disjunct.groups)
        holding = (number for number, group in groups if self._holds_by_denial(group, witness))
        return replace(witness, open_paths=frozenset(holding))

    def _holds_by_denial(self, group: Conjunct, witness: Witness) -> bool:
        """Whether a denied group that denies something itself holds by the known edges.

        False if the graph cannot say.
        """
        outside = set(group.terms) - set(group.bound)
        rows = {variable: row for variable, row in witness.values.items() if variable in outside}
        if not rows or not has_negation(formula_of(group)):
            return False
        asked = next(iter(rows))  # the others become constants
        ids = self.vocabulary.entity_ids
        names: dict[Term, Term] = {v: Constant(ids[row]) for v, row in rows.items()}
        filled = formula_of(substitute(group, {**names, asked: FREE}))
        try:
            normalise(filled)
            return bool(self.knowledge.witnesses(filled, [rows[asked]], 1)[0])
        except (TimeLimitError, StoppedError):
            raise
        except QueryError:  # its parts are not connected, or there are too many entities to try
            return False

    def _holds(self, edges: Ints) -> npt.NDArray[np.bool_]:
        heads, relations, tails = torch.from_numpy(edges).to(self.solver.truth.device).unbind(1)
        facts = self.knowledge.facts
        return facts.hold(facts.keys_of(heads, relations), tails).cpu().numpy()

    @torch.no_grad()
    def _probability(self, edges: Ints) -> npt.NDArray[np.float64]:
        heads, relations, tails = torch.from_numpy(edges).to(self.solver.truth.device).unbind(1)
        return self.edges.at(heads, relations, tails).cpu().double().numpy()
