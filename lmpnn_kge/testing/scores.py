"""Checks of what is derived from f: messages, inverses and scores."""

from __future__ import annotations

import inspect

import torch
from torch import Tensor

from lmpnn_kge.backbones.contract import Backbone
from lmpnn_kge.backbones.messages import EQUAL, ScoreType
from lmpnn_kge.testing.forward import relation_ids, states
from lmpnn_kge.testing.outcome import Phi, Skipped, Subject, Unmet, check, demand, demand_same

NO_INVERSE = "no analytic inverse: reciprocal checkpoints only"
IDENTITY = "φ(h, r, t) from f(h, r) equal to φ from f(t, r⁻¹)"


@check("score_type")
def declaration(subject: Subject) -> str:
    """The class declares its score type, its formula and, if it has an inverse, that formula."""
    backbone = subject.backbone
    demand(not inspect.isabstract(backbone), "a class that defines forward", "no forward")
    score_type = getattr(backbone, "score_type", None)
    demand(isinstance(score_type, ScoreType), "score_type, a ScoreType", repr(score_type))
    formula = getattr(backbone, "formula", None)
    demand(isinstance(formula, str) and bool(formula), "formula, a string", repr(formula))
    demand(
        (backbone.inverse_formula is not None) == subject.has_inverse,
        "inverse_formula if and only if invert is defined",
        f"{backbone.inverse_formula!r}, while invert is {'' if subject.has_inverse else 'not '}"
        "defined",
    )
    inverse_formula = backbone.inverse_formula or "none"
    return f"{backbone.score_type.value}, f = {formula}, inverse {inverse_formula}"


@check("The core derives everything else")
def messages(subject: Subject) -> str:
    """The four messages are f(z, r), f(z, r⁻¹) and their negations; equality sends z."""
    model = subject.make()
    z = states(model)
    ids = relation_ids(model) % model.num_relations
    inverse_ids = ids + model.num_relations
    for inverse, directed, f in ((False, ids, "f(z, r)"), (True, inverse_ids, "f(z, r⁻¹)")):
        estimate = model.forward(z, directed)
        found = model.message(z, ids, inverse=inverse)
        demand_same(found, estimate, f"message(inverse={inverse}) equal to {f}", 1e-5)
        found = model.message(z, ids, inverse=inverse, negated=True)
        expected = f"message(inverse={inverse}, negated=True) equal to −{f}"
        demand_same(found, -estimate, expected, 1e-5)
    for negated, wanted in ((False, z), (True, -z)):
        found = model.message(z, EQUAL, negated=negated)
        demand_same(found, wanted, f"equality to send the state, negated={negated}", 1e-6)
    return "f(h, r), −f(h, r), f(t, r⁻¹), −f(t, r⁻¹), equality"


@check("invert(relations)")
def inverse(subject: Subject) -> str:
    """With an analytic inverse, a triple has the same score from its head and from its tail."""
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
    """Largest difference of scores from heads and from tails, and the largest score."""
    entities, relations = model.num_entities, model.num_relations
    pairs = torch.arange(entities * entities)
    h, t = model.entities[pairs // entities], model.entities[pairs % entities]
    gap = size = 0.0
    for relation in range(relations):
        ids = torch.full((len(pairs),), relation)
        ahead = _score(model, score_type, model.message(h, ids), t, ids)
        inverse_ids = model.inverse(ids)
        back = _score(model, score_type, model.message(t, inverse_ids), h, inverse_ids)
        gap = max(gap, (ahead - back).abs().max().item())
        size = max(size, ahead.abs().max().item())
    return gap, size


def _score(
    model: Backbone, score_type: ScoreType, estimates: Tensor, tails: Tensor, relations: Tensor
) -> Tensor:
    """Compute φ by the definition of a score type."""
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
    demand(torch.equal(rows, before), "invert not to change its argument", "it does")
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
    """Scores follow the declared score type, and the other type does not fit better."""
    model = subject.make(dtype=torch.float64)
    declared = model.score_type
    other = next(score for score in ScoreType if score is not declared)
    if declared is ScoreType.INNER_PRODUCT:
        defined = _defined(type(model))
        unused = [name for name in ("distance", "distances", "project") if name in defined]
        found = f"a definition of {' and '.join(unused)}, which only {other.name} uses"
        demand(not unused, f"no distance for {declared.name}", found)
    z, ids = states(model), relation_ids(model)
    estimates = model.forward(z, ids)
    tail_ids = ids % model.num_entities
    tails = model.entities[tail_ids]
    wanted = _score(model, declared, estimates, tails, ids)
    against_all = model.score_entities(estimates, ids)
    for name, scores in (
        ("score", model.score(z, ids, tails)),
        ("score_pairs", model.score_pairs(estimates, tails, ids)),
        ("score_entities", against_all[torch.arange(len(ids)), tail_ids]),
    ):
        demand_same(scores, wanted, f"{name} by the definition of {declared.name}", 1e-6)
    if subject.has_inverse:
        gap, size = _asymmetry(model, declared)
        rival, rival_size = _asymmetry(model, other)
        if gap > 1e-6 * size and rival <= 1e-6 * rival_size:
            raise Unmet(
                f"the score type for which {IDENTITY}",
                f"{declared.name}, with a difference of {gap:.2g} where scores reach {size:.2g}; "
                f"it holds for {other.name}",
            )
    return declared.value


def _defined(backbone: type[Backbone]) -> set[str]:
    """Names that a class and its bases below Backbone define."""
    own = backbone.__mro__[: backbone.__mro__.index(Backbone)]
    return {name for base in own for name in vars(base)}


@check("distance(a, b)")
def distance(subject: Subject) -> str:
    """A distance is symmetric, never negative, 0 from a point to itself; distances agrees."""
    if subject.backbone.score_type is not ScoreType.DISTANCE:
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
    expected = "distances(a, b, relations) equal to distance of all pairs with projected tails"
    wanted = model.distance(a[:, None], projected)
    demand_same(model.distances(a, b, ids), wanted, expected, 1e-3)
    unchanged = torch.equal(a, copies[0]) and torch.equal(b, copies[1])
    demand(unchanged, "arguments unchanged", "they are changed in place")
    return f"from {least:.2g} to {pairs.max().item():.2g} between random points"


@check("φ = ⟨f(h, r), t⟩")
def phi(subject: Subject) -> str:
    """Scores agree with the author's own formula."""
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
            worst = int(gaps.argmax())
            theirs, ours = wanted.flatten()[worst].item(), found.flatten()[worst].item()
            hint = _difference(found, wanted)
            raise Unmet(f"φ(h, r, t) = {theirs:.4g} by your formula", f"{ours:.4g} from f{hint}")
        count, largest = count + found.numel(), max(largest, gaps.max().item())
    return f"{count} triples, off by {largest:.0e} at most"


def _grid_of_scores(model: Backbone, entities: Tensor, relations: int) -> Tensor:
    """Score all triples of some entities and relations -> [heads, relations, tails]."""
    rows = [
        torch.stack([model.score(entities, relation, t.expand_as(entities)) for t in entities], 1)
        for relation in range(relations)
    ]
    return torch.stack(rows, 1)


def _grid(model: Backbone, phi: Phi, entities: Tensor, rows: Tensor) -> Tensor:
    """Score the same triples by the author's formula."""
    return torch.tensor(
        [[[float(phi(model, h, r, t)) for t in entities] for r in rows]
         for h in entities], dtype=model.entities.dtype
    )  # fmt: skip


def _difference(found: Tensor, wanted: Tensor) -> str:
    """Explain how two grids of scores [heads, relations, tails] differ, if the reason is known."""
    missing = wanted - found
    if torch.allclose(found, -wanted):
        return ": it has the opposite sign"
    if torch.allclose(found, wanted.transpose(0, 2)):
        return ": head and tail are exchanged"
    if torch.allclose(missing, missing[:1, :1, :1].expand_as(missing)):
        return ": all scores lack the same number, which belongs in the shift of truth"
    if torch.allclose(missing, missing[:1, :1].expand_as(missing)):
        return ": the difference depends on the tail alone, as a bias does"
    return ""
