"""Search against the truth of formulas, worked out entity by entity."""

import itertools
import math

import pytest
import torch
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from lmpnn_kge import QueryError
from lmpnn_kge.graph.vocabulary import Vocabulary
from lmpnn_kge.query.formula import FREE, Atom, Constant, Variable
from lmpnn_kge.query.normal_form import Conjunct, normalise, scoped
from lmpnn_kge.query.parser import parse
from lmpnn_kge.query.patterns import Pattern
from lmpnn_kge.search.logic import ALMOST, IMPOSSIBLE, Logic
from lmpnn_kge.search.search import Search
from lmpnn_kge.search.solve import Solver

from .. import made_up
from ..formulas import ENTITIES, RELATIONS, brute_force, formulas, graphs
from .dense import DenseTruth

PATTERNS = made_up.patterns("2f-i", "2f-m", "2f-cn", "3f-c")
LOGICS = [Logic(t, e) for t in ("product", "godel") for e in ("max", "noisy-or")]
VOCABULARY = Vocabulary(
    [f"e{row}" for row in range(ENTITIES)], [f"r{row}" for row in range(RELATIONS)]
)
any_formula = formulas(
    st.sampled_from(VOCABULARY.entity_ids), st.sampled_from(VOCABULARY.relation_ids)
)


class ByHand:
    """The truth of a query in plain numbers, by trying every entity for every variable.

    With max, all variables are tried at once. With noisy-or it matters which ∃ is inside which: a
    variable with a single neighbour is inside, a variable of a circle is outside.
    """

    def __init__(self, truth, logic, pattern, constants, relations):
        self.table, self.logic, self.pattern = truth.table, logic, pattern
        self.entities = range(truth.facts.num_entities)
        self.constants = dict(zip(pattern.constants, constants.tolist(), strict=True))
        self.relations = dict(zip(pattern.relations, relations.tolist(), strict=True))

    def of_all(self):
        disjuncts = [scoped(disjunct) for disjunct in self.pattern.disjuncts]
        by_disjunct = [self.of_conjunct(disjunct, {}, FREE) for disjunct in disjuncts]
        return torch.tensor(
            [
                1 - self.both(1 - truth for truth in truths)
                for truths in zip(*by_disjunct, strict=True)
            ]
        )

    def both(self, truths):
        return math.prod(truths) if self.logic.t_norm == "product" else min(truths, default=1.0)

    def some(self, truths):
        truths = list(truths)
        if self.logic.exists == "max" or max(truths) == 1:
            return max(truths)
        return min(ALMOST, 1 - math.prod(1 - truth for truth in truths))

    def of_conjunct(self, conjunct, values, target):
        """The truth for every entity as the target; without a target, a list of one truth."""
        targets = [{target: entity} for entity in self.entities] if target else [{}]
        if self.logic.exists == "max":
            return [self.at_once(conjunct, {**values, **here}) for here in targets]
        items = [*conjunct.literals, *conjunct.groups]
        left = [v for v in conjunct.bound if v not in values and v != target]
        messages = {}  # variable -> functions of its entity
        while left:
            variable = min(
                left,
                key=lambda v: (
                    len(near(v, items, values)),
                    not self.has(v, items, messages, values),
                ),
            )
            neighbours = near(variable, items, values)
            used = [item for item in items if variable in item.terms]
            shared = [item for item in used if near(variable, [item], values)]
            if len(neighbours) > 1 or any(isinstance(item, Conjunct) for item in shared):
                tried = [
                    self.of_conjunct(conjunct, {**values, variable: entity}, target)
                    for entity in self.entities
                ]
                return [self.some(truths) for truths in zip(*tried, strict=True)]
            left.remove(variable)
            items = [item for item in items if item not in used]
            message = self.message(variable, used, messages.pop(variable, []), values)
            messages.setdefault(next(iter(neighbours), None), []).append(message)
        return [
            self.both(
                [
                    *(self.item(item, values, here) for item in items),
                    *(say(here.get(target)) for say in messages.get(target, [])),
                    *(say(None) for say in messages.get(None, []) if target),
                ]
            )
            for here in targets
        ]

    def has(self, variable, items, messages, values):
        alone = [i for i in items if variable in i.terms and not near(variable, [i], values)]
        return bool(alone) or variable in messages

    def message(self, variable, items, messages, values):
        (neighbour,) = near(variable, items, values) or {None}

        def say(entity):
            outside = values if neighbour is None else {**values, neighbour: entity}
            return self.some(
                self.both(
                    [
                        *(self.item(item, outside, {variable: own}) for item in items),
                        *(inner(own) for inner in messages),
                    ]
                )
                for own in self.entities
            )

        return say

    def at_once(self, conjunct, values):
        left = [variable for variable in conjunct.bound if variable not in values]
        items = [*conjunct.literals, *conjunct.groups]
        return max(
            self.both(
                self.item(item, {**values, **dict(zip(left, chosen, strict=True))}, {})
                for item in items
            )
            for chosen in itertools.product(self.entities, repeat=len(left))
        )

    def item(self, item, values, here):
        """The truth of an item; `here` has the entity of the variable that it is a condition on."""
        if isinstance(item, Conjunct):
            for target, entity in here.items():
                if target in item.terms:  # denied is what would be asked of the target
                    return 1 - self.of_conjunct(item, values, target)[entity]
            return 1 - self.of_conjunct(item, values, None)[0]
        ends = [
            self.constants[term.name] if isinstance(term, Constant) else {**values, **here}[term]
            for term in item.terms
        ]
        if isinstance(item.atom, Atom):
            truth = self.table[self.relations[item.atom.relation], ends[0], ends[1]].item()
        else:
            truth = float(ends[0] == ends[1])
        return 1 - truth if item.negated else truth


def near(variable, items, values):
    """The variables without a value that share an item with a variable."""
    touching = [item for item in items if variable in item.terms]
    return {
        term
        for item in touching
        for term in item.terms
        if isinstance(term, Variable)
        and term not in values
        and term != variable
        and not (isinstance(item, Conjunct) and term in item.bound)
    }


def query(formula):
    """A formula as a batch of one query; examples that cannot be asked are left out."""
    try:
        normalise(formula)
    except QueryError:
        assume(False)
    pattern = Pattern(formula)
    return pattern, *(torch.from_numpy(rows)[None] for rows in VOCABULARY.resolve(pattern))


def search(truth, logic, beam=100):
    return Search(Solver(truth, logic, beam, guesses=100, tries=100))


def check(truth, logic, pattern, constants, relations):
    found = search(truth, logic).answer(pattern, constants, relations)(slice(None)).exp()
    for row in range(len(constants)):
        by_hand = ByHand(truth, logic, pattern, constants[row], relations[row]).of_all()
        torch.testing.assert_close(found[row], by_hand.float(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("logic", LOGICS, ids=str)
@pytest.mark.parametrize("name", PATTERNS)
def test_a_beam_that_holds_everything_finds_the_exact_truth(name, logic):
    truth = DenseTruth.random(5, 3, {(0, 0, 1), (1, 1, 2), (2, 2, 2), (4, 0, 3)})
    drawn = made_up.queries(PATTERNS[name], 3, 5, 3)
    columns = (torch.from_numpy(ids).long() for ids in (drawn.constants, drawn.relations))
    check(truth, logic, PATTERNS[name], *columns)


@pytest.mark.parametrize("logic", LOGICS, ids=str)
@given(any_formula, graphs)
@example(parse("!(r0(?, ?x) & r0(?x, ?y))"), set())  # with noisy-or, the order of ?x and ?y matters
@settings(max_examples=60, deadline=None)
def test_so_it_does_for_any_formula(logic, formula, triples):
    pattern, constants, relations = query(formula)
    check(DenseTruth.random(ENTITIES, RELATIONS, triples), logic, pattern, constants, relations)


@pytest.mark.parametrize("logic", LOGICS, ids=str)
@pytest.mark.parametrize("path", ["r0(?, ?x) & r0(?x, ?y)", "r0(e0, ?x) & r1(?x, ?y) & r0(?y, ?)"])
def test_a_path_and_its_denial_add_up_to_one(path, logic):
    truth = DenseTruth.random(ENTITIES, RELATIONS, {(0, 0, 1), (1, 1, 2)})
    asked, denied = (
        search(truth, logic).answer(*query(parse(text)))(slice(None)).exp()
        for text in (path, f"!({path})")
    )
    torch.testing.assert_close(asked + denied, torch.ones_like(asked))


@pytest.mark.parametrize("t_norm", ["product", "godel"])
@pytest.mark.parametrize(
    "path", ["r0(e0, ?x) & r1(?x, ?)", "r0(e0, ?x) & r1(?x, ?) & r0(?x, ?y) & r0(?y, ?)"]
)
def test_many_uncertain_paths_are_not_certain_together(path, t_norm):
    truth = DenseTruth.random(300, 2, {(0, 0, 1), (1, 1, 2), (1, 0, 3), (3, 0, 2)})
    truth.table[truth.table < 1] = 0.9
    logic = Logic(t_norm, "noisy-or")
    asked, denied = (
        search(truth, logic, 300).answer(*query(parse(text)))(slice(None))[0].exp()
        for text in (path, f"r0(?y, ?) & !({path.replace('?y', '?z')})")
    )
    assert asked[2] == 1  # by known edges
    others = [row for row in range(300) if row != 2]
    torch.testing.assert_close(asked[others], torch.full((299,), ALMOST))
    assert (denied[others].log() > IMPOSSIBLE).all()


@pytest.mark.parametrize("logic", LOGICS, ids=str)
@given(any_formula, graphs)
@settings(max_examples=60, deadline=None)
def test_with_certain_edges_only_it_gives_the_exact_answers(logic, formula, triples):
    """Truths of 0 and 1 are classical logic, whatever the t-norm and ∃ are."""
    pattern, constants, relations = query(formula)
    truth = DenseTruth.random(ENTITIES, RELATIONS, triples)
    truth.table = truth.table.floor()
    found = search(truth, logic).answer(pattern, constants, relations)(slice(None))[0].exp()
    assert (found > 0.5).nonzero()[:, 0].tolist() == brute_force(formula, triples)
    assert ((found < 1e-6) | (found > 1 - 1e-6)).all()
