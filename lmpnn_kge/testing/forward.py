"""Checks of f alone: shapes, types, devices, gradients, and that it is a pure function."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from lmpnn_kge.backbones.contract import Backbone
from lmpnn_kge.backbones.messages import ScoreType
from lmpnn_kge.errors import BackboneError
from lmpnn_kge.testing.outcome import Subject, Unmet, check, demand, demand_same, error_line

#: Number of messages in a batch.
ROWS = 16

#: Entity widths to try.
WIDTHS = range(1, 25)

FORWARD = "forward(heads, relations)"
FUNCTION = "f is a pure function"


def states(backbone: Backbone, rows: int = ROWS, seed: int = 1) -> Tensor:
    """Make random states of nodes, which need not be entities, [rows, d]."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(rows, backbone.dim, generator=generator).to(backbone.entities.dtype)


def relation_ids(backbone: Backbone, rows: int = ROWS) -> Tensor:
    """Make ids of all relations and their inverses in turn, [rows]."""
    return torch.arange(rows) % (2 * backbone.num_relations)


@check("relation_width(dim)")
def widths(subject: Subject) -> str:
    """Every width works or raises BackboneError, and entity_width returns one that works."""
    backbone, usable = subject.backbone, []
    for width in WIDTHS:
        nearest = backbone.entity_width(width)
        demand(
            type(nearest) is int and nearest > 0 and backbone.entity_width(nearest) == nearest,
            f"entity_width({width}) to return a width that it leaves as it is",
            f"{nearest!r}",
        )
        try:
            model = backbone.random(3, 2, width, reciprocal=True)
        except BackboneError as error:
            demand(
                nearest != width,
                f"a backbone with entities of width {width}, which entity_width returns",
                str(error),
            )
            continue
        _demand_width(model, width)
        demand(
            nearest == width,
            f"entity_width({width}) = {width} because that width works",
            str(nearest),
        )
        usable.append(width)
    for nearest in {backbone.entity_width(width) for width in WIDTHS} - {*WIDTHS}:
        _demand_width(backbone.random(3, 2, nearest, reciprocal=True), nearest)
    shown = ", ".join(map(str, usable[:5])) + (", …" if len(usable) > 5 else "")
    return f"d = {shown}"


def _demand_width(model: Backbone, width: int) -> None:
    expected = f"f(h, r) of width {width} for entities of width {width}"
    try:
        shape = model.forward(states(model, 2), relation_ids(model, 2)).shape
    except Exception as error:
        found = f"with relation_width({width}) = {model.relations.shape[1]}, {error_line(error)}"
        raise Unmet(expected, found) from error
    demand(shape == (2, width), expected, f"shape {list(shape)}")


@check(FORWARD)
def shapes(subject: Subject) -> str:
    """f maps any number of heads [n, d] and ids [n] to [n, d], and all scores are [n, E]."""
    for reciprocal in subject.forms:
        model = subject.make(reciprocal=reciprocal)
        for rows in (0, 1, ROWS):
            z, ids = states(model, rows), relation_ids(model, rows)
            found = model.forward(z, ids)
            demand(
                isinstance(found, Tensor) and found.shape == z.shape,
                f"f of {rows} heads to have shape {list(z.shape)}",
                f"shape {list(found.shape)}" if isinstance(found, Tensor) else repr(found),
            )
            scores = model.score_tails(torch.zeros(rows, dtype=torch.int64), ids)
            wanted = [rows, model.num_entities]
            demand(list(scores.shape) == wanted, f"scores {wanted}", f"{list(scores.shape)}")
    return f"n = 0, 1, {ROWS}"


@check("Fields that are tensors move with")
def dtypes(subject: Subject) -> str:
    """f and the scores have the floating point type of the tables, float32 or float64."""
    single = subject.make()
    double = single.to(dtype=torch.float64)
    for model in (single, double):
        wanted = model.entities.dtype
        z, ids = states(model), relation_ids(model)
        found = model.forward(z, ids).dtype
        demand(found == wanted, f"f(h, r) in {wanted} from tables in {wanted}", f"{found}")
        found = model.score_tails(ids % model.num_entities, ids).dtype
        demand(found == wanted, f"scores in {wanted} from tables in {wanted}", f"{found}")
    z, ids = states(double), relation_ids(double)
    exact = double.forward(z, ids)
    rough = single.forward(z.float(), ids).double()
    demand_same(rough, exact, "f in float32 close to f in float64", 1e-3)
    demand(
        not torch.equal(double.forward(z * (1 + 1e-9), ids), exact),
        "float64 in every step",
        "a change of h by 1e-9 is lost, as in float32",
    )
    return "float32, float64"


class _OnlyOn(TorchFunctionMode):
    """Raises Unmet as soon as an operation takes or makes a tensor on another device.

    Single numbers may be on any device, as torch allows.
    """

    def __init__(self, device: str):
        super().__init__()
        self.device = device

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        self._check(func, (args, kwargs))
        result = func(*args, **kwargs)
        self._check(func, result)
        return result

    def _check(self, func: Any, values: object) -> None:
        for tensor in tensors_in(values):
            if tensor.device.type != self.device and tensor.dim():
                name = getattr(func, "__name__", str(func))
                raise Unmet(
                    "every tensor on the device of the tables",
                    f"{name} with a tensor of shape {list(tensor.shape)} on {tensor.device.type}; "
                    "give it device=heads.device, or make it a field",
                )


def tensors_in(value: object) -> Iterator[Tensor]:
    """Yield all tensors in lists, tuples, dictionaries and modules."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, torch.nn.Module):
        yield from value.state_dict().values()
    elif isinstance(value, Mapping):
        yield from tensors_in(list(value.values()))
    elif isinstance(value, list | tuple | set):
        for item in value:
            yield from tensors_in(item)


@check("shapes must not depend on data")
def devices(subject: Subject) -> str:
    """Messages, scores and gradients stay on the device of the tables and read no values."""
    model = subject.make().to("meta")
    z = torch.empty(ROWS, model.dim, device="meta", requires_grad=True)
    ids = torch.empty(ROWS, dtype=torch.int64, device="meta")
    try:
        with _OnlyOn("meta"):
            message = model.message(z, ids, inverse=True, negated=True)
            scores = model.score_entities(message)
            if model.score_type is ScoreType.DISTANCE:
                model.distances(message, z, ids)
                model.project(z, ids)
        scores.sum().backward()
    except (RuntimeError, NotImplementedError, TypeError) as error:
        raise Unmet(
            "no step that reads values: no item, no nonzero, no shape that depends on data",
            f"on torch's meta device, {error_line(error)}",
        ) from error
    wanted = [ROWS, model.num_entities]
    demand(list(scores.shape) == wanted, f"scores {wanted}", f"{list(scores.shape)}")
    return "on torch's meta device"


@check("A row must not depend on the others in its batch")
def batch(subject: Subject) -> str:
    """A row of f does not depend on the other rows in its batch, their order or their number."""
    model = subject.make(dtype=torch.float64)
    z, ids = states(model), relation_ids(model)
    together = model.forward(z, ids)
    alone = torch.cat([model.forward(z[i : i + 1], ids[i : i + 1]) for i in range(ROWS)])
    demand_same(together, alone, "the same row in a batch as alone")
    order = torch.randperm(ROWS)
    expected = "the same rows from the same batch in another order"
    demand_same(model.forward(z[order], ids[order]), together[order], expected)
    others = torch.cat([z[:1], 100 * states(model, 3 * ROWS, seed=2)])
    other_ids = torch.cat([ids[:1], relation_ids(model, 3 * ROWS)])
    expected = "the same row among others"
    demand_same(model.forward(others, other_ids)[:1], together[:1], expected)
    return f"{ROWS} rows together, alone, in another order, among others"


@check(FUNCTION)
def determinism(subject: Subject) -> str:
    """f gives the same output for the same input, independent of earlier calls and of the seed."""
    model = subject.make(dtype=torch.float64)
    z, ids = states(model), relation_ids(model)
    first = model.forward(z, ids)
    for seed in (1, 2):
        torch.manual_seed(seed)
        model.forward(states(model, seed=seed + 5), ids.flip(0))
        expected = "f(h, r) as it was the first time: no random numbers, no state"
        demand_same(model.forward(z, ids), first, expected, 1e-12)
    return "3 calls"


@check(FUNCTION)
def frozen(subject: Subject) -> str:
    """f changes neither its arguments nor its tables, and no gradient reaches the tables."""
    made = subject.make()
    leaves: dict[str, Any] = {n: t.clone().requires_grad_() for n, t in made.tensors().items()}
    model = dataclasses.replace(made, **leaves)
    before = {name: tensor.detach().clone() for name, tensor in model.tensors().items()}
    z, ids = states(model), relation_ids(model)
    arguments = {"heads": z, "relations (ids)": ids}
    copies = {name: tensor.clone() for name, tensor in arguments.items()}
    found = model.forward(z, ids)
    for name, tensor in arguments.items():
        demand(torch.equal(tensor, copies[name]), f"{name} unchanged", "they are changed in place")
    demand(
        not found.requires_grad,
        "f without a gradient if its heads have none",
        "it requires one: some tensor in f is a parameter",
    )
    z = z.requires_grad_()
    model.score_entities(model.message(z, ids), ids).sum().backward()
    for name, tensor in model.tensors().items():
        reached = tensor.requires_grad or leaves[name].grad is not None
        demand(not reached, f"no gradient for {name}", "one reaches it: keep it detached")
        demand(torch.equal(tensor, before[name]), f"{name} unchanged", "calls change it")
    return f"{', '.join(before)} stay the same"


@check(FORWARD)
def gradient(subject: Subject) -> str:
    """A gradient reaches h and is the derivative of f."""
    model = subject.make(dtype=torch.float64)
    z, ids = states(model).requires_grad_(), relation_ids(model)
    weights = states(model, seed=3)

    def value(z: Tensor) -> Tensor:
        return (model.forward(z, ids) * weights).sum()

    total = value(z)
    demand(total.requires_grad, "a gradient for h", "none: f leaves autograd")
    (found,) = torch.autograd.grad(total, z, allow_unused=True)
    if found is None or not found.abs().sum() > 0:
        raise Unmet("a gradient for h", "none: f does not depend on h")
    return f"off by {_gap(value, z.detach(), found, 'h'):.0e} at most"


@check("Fields that are tensors")
def trainable(subject: Subject) -> str:
    """Scores depend on all tensors in fields, so that `pretrain` can train them."""
    made = subject.make(reciprocal=True, dtype=torch.float64)
    tensors = {name: t.clone().requires_grad_() for name, t in made.tensors().items()}
    ids = relation_ids(made)
    heads, tails = ids % made.num_entities, (3 * ids + 1) % made.num_entities

    def value(tensors: Mapping[str, Tensor]) -> Tensor:
        model = made.with_tensors(tensors)
        scores = model.score(model.entities[heads], ids, model.entities[tails])
        return scores.square().sum()

    total = value(tensors)
    gradients = torch.autograd.grad(total, list(tensors.values()), allow_unused=True)
    fixed = {name: tensor.detach() for name, tensor in tensors.items()}
    for name, found in zip(tensors, gradients, strict=True):
        if found is None:
            raise Unmet(f"a gradient for {name}", "none: scores do not depend on this field")
        _gap(lambda t, name=name: value({**fixed, name: t}), fixed[name], found, name)  # type: ignore[misc]
    return ", ".join(tensors)


def _gap(value: Callable[[Tensor], Tensor], at: Tensor, gradient: Tensor, name: str) -> float:
    """Relative error of a gradient against differences along a few directions."""
    gaps, step = [], 1e-6
    size = step * max(1e-6, gradient.norm().item())
    for seed in range(3):
        torch.manual_seed(seed)
        direction = torch.randn_like(at) * step
        difference = (value(at + direction) - value(at - direction)).item() / 2
        slope = (gradient * direction).sum().item()
        gaps.append(abs(difference - slope) / size)
        demand(
            gaps[-1] < 1e-3,
            f"the gradient of f by {name}: {difference / step:.4g} along a direction",
            f"{slope / step:.4g}",
        )
    return max(gaps)


@check("Fields that are tensors move with")
def moves(subject: Subject) -> str:
    """Every tensor is a field, and `.to` moves all of them."""
    model = subject.make()
    z, ids = states(model), relation_ids(model)
    before = model.forward(z, ids)
    known = {id(tensor) for tensor in model.tensors().values()}
    own = {k: v for k, v in vars(model).items() if not _is_cached(type(model), k)}
    kept = [own, *(vars(base) for base in type(model).__mro__)]
    for name, value in (item for held in kept for item in held.items()):
        for tensor in tensors_in(value):
            demand(
                id(tensor) in known,
                "every tensor in a field of the dataclass, which `.to` moves",
                f"a tensor of shape {list(tensor.shape)} in {name}",
            )
    for name, tensor in model.to("meta").tensors().items():
        demand(tensor.is_meta, f"{name} on another device after .to(device)", str(tensor.device))
    double = model.to(dtype=torch.float64)
    for name, tensor in double.tensors().items():
        wanted = torch.float64
        demand(tensor.dtype == wanted, f"{name} in {wanted} after .to(dtype=…)", str(tensor.dtype))
    back = double.to(dtype=torch.float32)
    demand_same(back.forward(z, ids), before, "the same f after float64 and back", 1e-4)
    return ", ".join(model.tensors())


def _is_cached(backbone: type[Backbone], name: str) -> bool:
    """Whether an attribute is computed from fields, so that a copy computes it again."""
    return isinstance(getattr(backbone, name, None), cached_property)
