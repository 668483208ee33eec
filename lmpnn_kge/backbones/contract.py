"""The contract between a knowledge graph embedding and everything that is built on it.

A backbone supplies its entity table, its relation table, the forward function f(h, r) and the type
of its score. The rest is derived here, once for all backbones: messages, scores, truth values.

    Type 1, inner product   φ(h, r, t) = ⟨f(h, r), t⟩
    Type 2, distance        φ(h, r, t) = −‖f(h, r) − t‖ in the model's own norm

A distance may also look at the tail through the relation: t is then what `project` makes of it.

Relation ids run over [0, 2R): r is a relation and r + R its inverse. A checkpoint trained with
reciprocal relations brings all 2R rows; for any other, `invert` derives the second half.

torch is imported where it is used: a plugin can then be listed without it.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from lmpnn_kge.backbones.kernels import all_pairs
from lmpnn_kge.backbones.libkge.model import LibkgeModel
from lmpnn_kge.errors import BackboneError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import torch
    from torch import Generator, Tensor
    from typing_extensions import Self

    from lmpnn_kge.backbones.libkge.checkpoint import LibkgeCheckpoint

    Ids = Tensor | Sequence[int] | npt.NDArray[np.int64] | int

#: The equality relation, f(a, =) = a; negated it is ≠.
EQUAL: Literal["="] = "="


class ScoreType(Enum):
    """How a model compares f(h, r) with a tail (the paper's Type 1 and Type 2)."""

    INNER_PRODUCT = "inner product"
    DISTANCE = "distance"


@dataclass(frozen=True, eq=False, kw_only=True)
class Backbone(ABC):
    """A frozen knowledge graph embedding; subclass it to add a model.

    A subclass that needs more than the two tables declares further fields, as a dataclass with the
    same arguments as this one.
    """

    #: Type 1 or Type 2.
    score_type: ClassVar[ScoreType]
    #: f(h, r) as a reader would write it, for `lmpnn-kge backbones`.
    formula: ClassVar[str]
    #: The inverse of a relation, likewise; None where `invert` is not defined.
    inverse_formula: ClassVar[str | None] = None
    #: The LibKGE models (class names) that this backbone reads.
    libkge_models: ClassVar[tuple[str, ...]] = ()

    entities: Tensor  # [E, d]
    relations: Tensor  # [2R, w]
    reciprocal: bool  # whether the inverse rows were trained rather than derived
    entity_ids: list[str] | None = None  # E names
    relation_ids: list[str] | None = None  # R names, none for inverses

    # What a model defines -------------------------------------------------------------------

    @abstractmethod
    def forward(self, heads: Tensor, relations: Tensor) -> Tensor:
        """f(h, r): the estimate of the tail; [n, d] and ids [n] -> [n, d]."""

    @staticmethod
    def invert(relations: Tensor) -> Tensor | None:
        """The rows of the inverse relations, [R, w] -> [R, w]; None where there is no formula."""
        return None

    @staticmethod
    def entity_width(dim: int) -> int:
        """The nearest width that entities can have, for somebody who does not know the model."""
        return dim

    @staticmethod
    def relation_width(dim: int) -> int | None:
        """The width w of a relation for entities of width d; raises BackboneError for a bad d.

        None where any will do; an untrained relation is then as wide as an entity.
        """
        return dim

    def project(self, tails: Tensor, relations: Tensor) -> Tensor:
        """Type 2 only: tails as a relation sees them, which is what f(h, r) is compared with.

        Shapes [..., d] and ids [...] that broadcast -> [..., d].
        """
        return tails

    def distance(self, a: Tensor, b: Tensor) -> Tensor:
        """Type 2 only: in the model's own norm; shapes [..., d] that broadcast -> [...]."""
        return (a - b).norm(dim=-1)

    def distances(self, a: Tensor, b: Tensor, relations: Tensor) -> Tensor:
        """Type 2 only: of estimates [n, d] to all tails [m, d], projected by ids [n] -> [n, m].

        Training asks for them. Redefine it where a matrix product gives the distances, nearly as
        exact and much faster.
        """
        return self.distance(a[:, None], self.project(b[None], relations[:, None]))

    @classmethod
    def random_fields(cls, dim: int, generator: Generator) -> dict[str, Any]:
        """Further fields of an untrained backbone, for `random`."""
        return {}

    @classmethod
    def from_libkge(cls, checkpoint: LibkgeCheckpoint, **fields: Any) -> Self:
        """Take tables and ids from a LibKGE checkpoint; redefine it to add further fields."""
        return cls.from_tensors(
            checkpoint.entities,
            checkpoint.relations,
            reciprocal=checkpoint.reciprocal,
            entity_ids=checkpoint.entity_ids,
            relation_ids=checkpoint.relation_ids,
            **fields,
        )

    def to_libkge(self) -> LibkgeModel:
        """The way back: what LibKGE calls the parts; redefine it to add further fields."""
        kind = type(self)
        if not kind.libkge_models:
            raise BackboneError(
                f"{kind.__name__} names no LibKGE model, so LibKGE has no file for it; "
                "set libkge_models, or write it to a .safetensors file"
            )
        known = {field.name for field in dataclasses.fields(Backbone)}
        own = [field.name for field in dataclasses.fields(self) if field.name not in known]
        if own and kind.to_libkge is Backbone.to_libkge:
            raise BackboneError(
                f"{kind.__name__} does not say what LibKGE calls its {' and '.join(own)}; "
                "define to_libkge"
            )
        name = kind.libkge_models[0]
        return LibkgeModel(
            name=name,
            section=name.lower(),
            entities=self.entities,
            relations=self.relations if self.reciprocal else self.relations[: self.num_relations],
        )

    # How one is made ------------------------------------------------------------------------

    @classmethod
    def from_tensors(
        cls, entities: Tensor, relations: Tensor, *, reciprocal: bool, **fields: Any
    ) -> Self:
        """entities [E, d]; relations [2R, w] if reciprocal, else [R, w] with inverses derived."""
        import torch

        cls._check_tables(entities, relations, reciprocal)
        if not reciprocal:
            inverse = cls.invert(relations)
            if inverse is None:
                raise BackboneError(
                    f"a plain {cls.__name__} cannot answer towards heads, for it has no analytic "
                    "inverse; train it with LibKGE's reciprocal_relations_model"
                )
            relations = torch.cat([relations, inverse])
        backbone = cls(entities=entities, relations=relations, reciprocal=reciprocal, **fields)
        for name, tensor in backbone.tensors().items():
            if not tensor.isfinite().all():
                raise BackboneError(f"{name} of {cls.__name__} hold NaN or infinite numbers")
        return backbone

    @classmethod
    def random(
        cls,
        num_entities: int,
        num_relations: int,
        dim: int,
        *,
        reciprocal: bool = False,
        seed: int = 0,
        **fields: Any,
    ) -> Self:
        """An untrained backbone with normally distributed tables: for tests and for training."""
        import torch

        generator = torch.Generator().manual_seed(seed)
        rows = 2 * num_relations if reciprocal else num_relations
        width = cls.relation_width(dim)
        return cls.from_tensors(
            torch.randn(num_entities, dim, generator=generator),
            torch.randn(rows, dim if width is None else width, generator=generator),
            reciprocal=reciprocal,
            **{**cls.random_fields(dim, generator), **fields},
        )

    @classmethod
    def _check_tables(cls, entities: Tensor, relations: Tensor, reciprocal: bool) -> None:
        tables = (entities, relations)
        if any(table.dim() != 2 or not table.numel() for table in tables):
            raise BackboneError(
                "entity and relation tables must be matrices with at least one row, not of shapes "
                f"{list(entities.shape)} and {list(relations.shape)}"
            )
        expected = cls.relation_width(entities.shape[1])
        if expected is not None and relations.shape[1] != expected:
            raise BackboneError(
                f"{cls.__name__} with entities of width {entities.shape[1]} needs relations of "
                f"width {expected}, not {relations.shape[1]}"
            )
        if reciprocal and len(relations) % 2:
            raise BackboneError(
                f"reciprocal relations come in pairs, but the table has {len(relations)} rows"
            )

    def __post_init__(self) -> None:
        for name, ids, rows in (
            ("entity", self.entity_ids, self.num_entities),
            ("relation", self.relation_ids, self.num_relations),
        ):
            if ids is not None and len(ids) != rows:
                raise BackboneError(f"{len(ids)} {name} ids do not match {rows} {name} rows")
        for name, tensor in self.tensors().items():
            object.__setattr__(self, name, tensor.detach())

    def tensors(self) -> dict[str, Tensor]:
        """The two tables and a model's further tensors, by the names of their fields."""
        import torch

        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {name: value for name, value in values.items() if isinstance(value, torch.Tensor)}

    def with_tensors(self, tensors: Mapping[str, Tensor]) -> Self:
        """The same backbone over other tensors, which gradients may reach: to train one.

        Only fields are taken over, nothing that was worked out from the tensors before.
        """
        other = object.__new__(type(self))
        for field in dataclasses.fields(self):
            value = tensors[field.name] if field.name in tensors else getattr(self, field.name)
            object.__setattr__(other, field.name, value)
        return other

    def to(
        self, device: torch.device | str | None = None, dtype: torch.dtype | None = None
    ) -> Self:
        """The same backbone on another device or in another floating point type."""
        moved: dict[str, Any] = {
            name: tensor.to(device=device, dtype=dtype if tensor.is_floating_point() else None)
            for name, tensor in self.tensors().items()
        }
        return dataclasses.replace(self, **moved)

    # What follows for every model -----------------------------------------------------------

    @property
    def num_entities(self) -> int:
        return len(self.entities)

    @property
    def num_relations(self) -> int:
        """R: without inverses."""
        return len(self.relations) // 2

    @property
    def dim(self) -> int:
        return self.entities.shape[1]

    def inverse(self, relations: Ids) -> Tensor:
        """The ids of the inverse relations."""
        return (self._ids(relations) + self.num_relations) % (2 * self.num_relations)

    def message(
        self,
        z: Tensor,
        relation: Ids | Literal["="],
        *,
        inverse: bool = False,
        negated: bool = False,
    ) -> Tensor:
        """ρ: what a node in state z [n, d] tells its neighbour over a (negated) atom, [n, d].

        relation is one id for all rows or an id for each. inverse says that z is the atom's tail
        and the message goes to its head: all four messages are f(z, r) or f(z, r⁻¹) and their
        negations.
        """
        if isinstance(relation, str) and relation == EQUAL:
            estimate = z
        else:
            ids = self.inverse(relation) if inverse else self._ids(relation)
            estimate = self.forward(z, ids.expand(len(z)))
        return -estimate if negated else estimate

    def score(self, heads: Tensor, relation: Ids | Literal["="], tails: Tensor) -> Tensor:
        """φ(h, r, t) of embeddings [n, d], not of ids -> [n]."""
        estimates = self.message(heads, relation)
        return self.score_pairs(estimates, tails, None if isinstance(relation, str) else relation)

    def score_pairs(self, estimates: Tensor, tails: Tensor, relations: Ids | None = None) -> Tensor:
        """φ of estimated tails [n, d] against a tail for each, [n].

        relations are those that the estimates come from, None for equality: a distance may depend
        on them.
        """
        if self.score_type is ScoreType.INNER_PRODUCT:
            return (estimates * tails).sum(-1)
        if relations is not None:
            tails = self.project(tails, self._ids(relations).expand(len(tails)))
        return -self.distance(estimates, tails)

    def score_entities(self, estimates: Tensor, relations: Ids | None = None) -> Tensor:
        """φ of estimated tails [n, d] against every entity, [n, E]; relations as above."""
        if self.score_type is ScoreType.INNER_PRODUCT:
            return estimates @ self.entities.T
        if relations is None or type(self).project is Backbone.project:
            return -all_pairs(self.distance, estimates, self.entities)
        ids = self._ids(relations).expand(len(estimates))
        scores = estimates.new_empty(len(ids), self.num_entities)
        for relation in ids.unique():  # all its rows share what is projected
            rows = ids == relation
            distance = partial(self._projected_distance, relation)
            scores[rows] = -all_pairs(distance, estimates[rows], self.entities)
        return scores

    def _projected_distance(self, relation: Tensor, estimates: Tensor, tails: Tensor) -> Tensor:
        return self.distance(estimates, self.project(tails, relation))

    def score_tails(self, heads: Ids, relations: Ids) -> Tensor:
        """φ(h, r, ·) of ids [n] and [n] -> [n, E]."""
        estimates = self.message(self.entities[self._ids(heads)], relations)
        return self.score_entities(estimates, relations)

    def score_heads(self, relations: Ids, tails: Ids) -> Tensor:
        """φ(·, r, t) of ids [n] and [n] -> [n, E]."""
        return self.score_tails(tails, self.inverse(relations))

    @staticmethod
    def truth(scores: Tensor, *, scale: float = 1.0, shift: float = 0.0) -> Tensor:
        """ψ = σ(scale · φ + shift); the margin γ of a distance is the shift."""
        return (scale * scores + shift).sigmoid()

    def _ids(self, ids: Ids) -> Tensor:
        import torch

        return torch.as_tensor(ids, dtype=torch.int64, device=self.entities.device)
