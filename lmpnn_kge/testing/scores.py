"""Checks of what follows from f: messages, inverses, and the score as its author means it."""

from __future__ import annotations

import inspect

import torch
from torch import Tensor

from lmpnn_kge.backbones.contract import EQUAL, Backbone, ScoreType
from lmpnn_kge.testing.forward import relation_ids, states
from lmpnn_kge.testing.outcome import Phi, Skipped, Subject, Unmet, check, demand, demand_same

NO_INVERSE = "no analytic inverse: reciprocal checkpoints only"
IDENTITY = "φ(h, r, t) from f(h, r) equal to φ from f(t, r⁻¹)"


@check("score_type")
def declaration(subject: Subject) -> str:
    """The class says its score type and formula, and that of the inverse where it has one."""
    kind = subject.kind
    demand(not inspect.isabstract(kind), "a class that defines forward", "that it does not")
    score_type = getattr(kind, "score_type", None)
    demand(isinstance(score_type, ScoreType), "score_type, a ScoreType", repr(score_type))
    formula = getattr(kind, "formula", None)
    demand(isinstance(formula, str) and bool(formula), "formula, a string", repr(formula))
    demand(
        (kind.inverse_formula is not None) == subject.has_inverse,
        "inverse_formula exactly where invert is defined",
        f"{kind.inverse_formula!r}, and an invert that is {'' if subject.has_inverse else 'not '}"
        "defined",
    )
    return f"{kind.score_type.value}, f = {formula}, inverse {kind.inverse_formula or 'none'}"


@check("The core derives everything else")
def messages(subject: Subject) -> str:
    """The four messages are f(z, r), f(z, r⁻¹) and their negations; equality sends z itself."""
    model = subject.make()
    z = states(model)
    ids = relation_ids(model) % model.num_relations
    for inverse, place in ((False, ids), (True, ids + model.num_relations)):
        estimate = model.forward(z, place)
        found = model.message(z, ids, inverse=inverse)
        demand_same(found, estimate, f"message(inverse={inverse}) equal to f of the id of it", 1e-5)
        found = model.message(z, ids, inverse=inverse, negated=True)
        demand_same(found, -estimate, f"message(inverse={inverse}, negated=True) equal to −f", 1e-5)
    for negated, wanted in ((False, z), (True, -z)):
        found = model.message(z, EQUAL, negated=negated)
        demand_same(found, wanted, f"the state itself over equality, negated={negated}", 1e-6)
    return "f(h, r), −f(h, r), f(t, r⁻¹), −f(t, r⁻¹), equality"


@check("invert(relations)")
def inverse(subject: Subject) -> str:
    """Where the inverse is analytic, a triple has one score, from its head and from its tail."""
    if not subject.has_inverse:
        raise Skipped(NO_INVERSE)
    model = subject.make(dtype=torch.float64)
    gap, size = _asymmetry(model, model.score_type)
    demand(gap <= 1e-6 * size, IDENTITY, f"a difference of {gap:.2g} where scores reach {size:.2g}")
    relations, tails = relation_ids(model), torch.arange(relation_ids(model).numel()) % 5
    rows = torch.arange(len(relations))
    heads = (tails * 3 + 1) % model.num_entities
    demand_same(
        model.score_heads(relations, tails)[rows, heads],
        model.score_tails(heads, relations)[rows, tails],
        "score_heads equal to score_tails of the same triples",
        1e-6,
    )
    return f"off by {gap:.0e} at most"


def _asymmetry(model: Backbone, score_type: ScoreType) -> tuple[float, float]:
    """How far scores from heads and from tails are apart, and how large they are."""
    entities, relations = model.num_entities, model.num_relations
    pairs = torch.arange(entities * entities)
    h, t = model.entities[pairs // entities], model.entities[pairs % entities]
    gap = size = 0.0
    for relation in range(relations):
        ids = torch.full((len(pairs),), relation)
        ahead = _score(model, score_type, model.message(h, ids), t, ids)
        there = model.inverse(ids)
        back = _score(model, score_type, model.message(t, there), h, there)
        gap = max(gap, (ahead - back).abs().max().item())
        size = max(size, ahead.abs().max().item())
    return gap, size


def _score(
    model: Backbone, score_type: ScoreType, estimates: Tensor, tails: Tensor, relations: Tensor
) -> Tensor:
    """φ by the definition of a type."""
    if score_type is ScoreType.INNER_PRODUCT:
        return (estimates * tails).sum(-1)
    return -model.distance(estimates, model.project(tails, relations))


@check("invert(relations)")
def involution(subject: Subject) -> str:
    """The inverse of the inverse is the relation."""
    if not subject.has_inverse:
        raise Skipped(NO_INVERSE)
    model = subject.make(dtype=torch.float64)
    rows = model.relations[: model.num_relations]
    before = rows.clone()
    once = model.invert(rows)
    demand(torch.equal(rows, before), "invert to leave its argument alone", "that it changes it")
    assert once is not None
    shape = list(rows.shape)
    demand(list(once.shape) == shape, f"inverse rows {shape}", f"{list(once.shape)}")
    twice = model.invert(once)
    assert twice is not None
    other = model.with_tensors({"relations": torch.cat([twice, once])})
    z, ids = states(model), relation_ids(model)
    expected = "f(h, (r⁻¹)⁻¹) equal to f(h, r)"
    demand_same(other.forward(z, ids), model.forward(z, ids), expected, 1e-6)
    return "f(h, (r⁻¹)⁻¹) = f(h, r)"


@check("score_type")
def score_type(subject: Subject) -> str:
    """Scores are those of the type that is told, and no other type fits better."""
    model = subject.make(dtype=torch.float64)
    kind, told = type(model), model.score_type
    other = next(score for score in ScoreType if score is not told)
    if told is ScoreType.INNER_PRODUCT:
        own = [name for name in ("distance", "distances", "project") if name in _defined(kind)]
        found = f"that it defines {' and '.join(own)}, which only {other.name} uses"
        demand(not own, f"no distance for {told.name}", found)
    z, ids = states(model), relation_ids(model)
    estimates = model.forward(z, ids)
    places = ids % model.num_entities
    tails = model.entities[places]
    wanted = _score(model, told, estimates, tails, ids)
    against_all = model.score_entities(estimates, ids)
    for name, scores in (
        ("score", model.score(z, ids, tails)),
        ("score_pairs", model.score_pairs(estimates, tails, ids)),
        ("score_entities", against_all[torch.arange(len(ids)), places]),
    ):
        demand_same(scores, wanted, f"{name} by the definition of {told.name}", 1e-6)
    if subject.has_inverse:
        gap, size = _asymmetry(model, told)
        rival, rival_size = _asymmetry(model, other)
        if gap > 1e-6 * size and rival <= 1e-6 * rival_size:
            raise Unmet(
                f"the score type for which {IDENTITY}",
                f"{told.name}, with a difference of {gap:.2g} where scores reach {size:.2g}; "
                f"it holds for {other.name}",
            )
    return told.value


def _defined(kind: type[Backbone]) -> set[str]:
    """What a class and its bases define beyond Backbone."""
    mine = kind.__mro__[: kind.__mro__.index(Backbone)]
    return {name for base in mine for name in vars(base)}


@check("distance(a, b)")
def distance(subject: Subject) -> str:
    """A distance is never negative, 0 at itself, symmetric, and the same between all pairs."""
    if subject.kind.score_type is not ScoreType.DISTANCE:
        raise Skipped("the score is an inner product")
    model = subject.make(dtype=torch.float64)
    a, b = states(model, 5), states(model, 6, seed=2)
    copies = a.clone(), b.clone()
    pairs = model.distance(a[:, None], b[None])
    demand(list(pairs.shape) == [5, 6], "distances [5, 6] of [5, 1, d] and [1, 6, d]",
           f"{list(pairs.shape)}")  # fmt: skip
    least = pairs.min().item()
    demand(least >= 0, "distances of at least 0", f"{least:.3g}")
    demand(least > 0, "a distance between different points", "0")
    at_itself = model.distance(a, a).abs().max().item()
    demand(at_itself <= 1e-5, "0 from a point to itself", f"{at_itself:.3g}")
    back = model.distance(b[:, None], a[None]).T
    demand_same(back, pairs, "distance(a, b) = distance(b, a)", 1e-6)
    ids = relation_ids(model, 5)
    projected = model.project(b[None], ids[:, None])
    expected = "distances(a, b, relations) equal to distance of all pairs, tails projected"
    wanted = model.distance(a[:, None], projected)
    demand_same(model.distances(a, b, ids), wanted, expected, 1e-3)
    unchanged = torch.equal(a, copies[0]) and torch.equal(b, copies[1])
    demand(unchanged, "arguments as they were", "that they changed in place")
    return f"from {least:.2g} to {pairs.max().item():.2g} between random points"


@check("φ = ⟨f(h, r), t⟩")
def phi(subject: Subject) -> str:
    """Scores are those of the author's own formula."""
    if subject.phi is None:
        raise Skipped("no formula to compare with: define phi(self, model, h, r, t) in the tests")
    count, largest = 0, 0.0
    for reciprocal in subject.forms:
        model = subject.make(reciprocal=reciprocal, dtype=torch.float64)
        rows = model.relations if reciprocal else model.relations[: model.num_relations]
        entities = model.entities[:4]
        wanted = _grid(model, subject.phi, entities, rows)
        found = _grid_of_scores(model, entities, len(rows))
        gaps = (found - wanted).abs()
        if not gaps.max() <= 1e-6 * max(1.0, wanted.abs().max().item()):
            place = int(gaps.argmax())
            one, other = wanted.flatten()[place].item(), found.flatten()[place].item()
            hint = _difference(found, wanted)
            raise Unmet(f"φ(h, r, t) = {one:.4g} by your formula", f"{other:.4g} from f{hint}")
        count, largest = count + found.numel(), max(largest, gaps.max().item())
    return f"{count} triples, off by {largest:.0e} at most"


def _grid_of_scores(model: Backbone, entities: Tensor, relations: int) -> Tensor:
    """φ of all triples of some entities and relations, [heads, relations, tails]."""
    rows = [
        torch.stack([model.score(entities, relation, t.expand_as(entities)) for t in entities], 1)
        for relation in range(relations)
    ]
    return torch.stack(rows, 1)


def _grid(model: Backbone, phi: Phi, entities: Tensor, rows: Tensor) -> Tensor:
    """The same by the author's formula."""
    return torch.tensor(
        [[[float(phi(model, h, r, t)) for t in entities] for r in rows]
         for h in entities], dtype=model.entities.dtype
    )  # fmt: skip


def _difference(found: Tensor, wanted: Tensor) -> str:
    """What two grids of scores [heads, relations, tails] look like beside each other."""
    missing = wanted - found
    if torch.allclose(found, -wanted):
        return ": it has the opposite sign"
    if torch.allclose(found, wanted.transpose(0, 2)):
        return ": head and tail are exchanged"
    if torch.allclose(missing, missing[:1, :1, :1].expand_as(missing)):
        return ": all scores lack the same number, which belongs into truth's shift"
    if torch.allclose(missing, missing[:1, :1].expand_as(missing)):
        return ": what is missing depends on the tail alone, as a bias does"
    return ""
