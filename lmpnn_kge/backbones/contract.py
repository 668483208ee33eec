"""The contract between a knowledge graph embedding and everything that is built on it.

A backbone supplies its entity table, its relation table, the forward function f(h, r) and the type
of its score. Messages, scores and truth values are derived here, once for all backbones.

    Type 1, inner product   φ(h, r, t) = ⟨f(h, r), t⟩
    Type 2, distance        φ(h, r, t) = −‖f(h, r) − t‖ in the model's own norm

A distance may see the tail through the relation: t is then replaced by `project(t, r)`.

Relation ids run over [0, 2R): r is a relation and r + R its inverse. A checkpoint trained with
reciprocal relations has all 2R rows; for a plain one, `invert` derives the second half.

torch is imported inside the functions that use it, so that plugins can be listed without it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from lmpnn_kge.backbones.embedding import Embedding
from lmpnn_kge.backbones.kernels import all_pairs
from lmpnn_kge.backbones.libkge.model import LibkgeModel
from lmpnn_kge.errors import BackboneError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from torch import Generator, Tensor
    from typing_extensions import Self

    from lmpnn_kge.backbones.libkge.checkpoint import LibkgeCheckpoint
    from lmpnn_kge.graph.vocabulary import Vocabulary

    Ids = Tensor | Sequence[int] | npt.NDArray[np.int64] | int

#: The equality relation, f(a, =) = a; negated it is ≠.
EQUAL: Literal["="] = "="


class ScoreType(Enum):
    """The comparison of f(h, r) with a tail (the paper's Type 1 and Type 2)."""

    INNER_PRODUCT = "inner product"
    DISTANCE = "distance"


@dataclass(frozen=True, eq=False, kw_only=True)
class Backbone(Embedding, ABC):
    """A frozen knowledge graph embedding; subclass it to add a model.

    Its two tables are `entities` [E, d] and `relations` [2R, w]. If a model needs more, it declares
    fields of its own, as a dataclass with the same decorator arguments as this one.
    """

    #: Type 1 or Type 2.
    score_type: ClassVar[ScoreType]
    #: f(h, r) in the usual notation, shown by `lmpnn-kge backbones`.
    formula: ClassVar[str]
    #: The inverse of a relation in the same notation; None if `invert` is not defined.
    inverse_formula: ClassVar[str | None] = None
    #: Class names of the LibKGE models whose checkpoints this backbone opens.
    libkge_models: ClassVar[tuple[str, ...]] = ()

    # Defined by a model ---------------------------------------------------------------------

    @abstractmethod
    def forward(self, heads: Tensor, relations: Tensor) -> Tensor:
        """Estimate the tail, f(h, r): embeddings [n, d] and relation ids [n] -> [n, d]."""

    @staticmethod
    def invert(relations: Tensor) -> Tensor | None:
        """Derive the rows of the inverse relations, [R, w] -> [R, w]; None if no formula exists."""
        return None

    @staticmethod
    def entity_width(dim: int) -> int:
        """Nearest entity width to dim that the model supports."""
        return dim

    @staticmethod
    def relation_width(dim: int) -> int | None:
        """Width w of a relation for entities of width d; BackboneError if d is not supported.

        None if any width is possible; an untrained relation is then as wide as an entity.
        """
        return dim

    def project(self, tails: Tensor, relations: Tensor) -> Tensor:
        """Type 2 only: map tails into the space of a relation before f(h, r) is compared with them.

        Shapes [..., d] and ids [...] that broadcast -> [..., d].
        """
        return tails

    def distance(self, a: Tensor, b: Tensor) -> Tensor:
        """Type 2 only: distance in the model's own norm; shapes [..., d] broadcast -> [...]."""
        return (a - b).norm(dim=-1)

    def distances(self, a: Tensor, b: Tensor, relations: Tensor) -> Tensor:
        """Type 2 only: distances of estimates [n, d], made by relations [n], to all tails [m, d].

        Returns [n, m]. Used in training. Override it if a matrix product gives the distances: that
        is nearly as exact and much faster.
        """
        return self.distance(a[:, None], self.project(b[None], relations[:, None]))

    @classmethod
    def random_fields(cls, dim: int, generator: Generator) -> dict[str, Any]:
        """Values of the model's own fields for an untrained backbone, used by `random`."""
        return {}

    @classmethod
    def from_libkge(cls, checkpoint: LibkgeCheckpoint, **fields: Any) -> Self:
        """Take tables and ids from a LibKGE checkpoint; override it to fill the model's fields."""
        return cls.from_tensors(
            checkpoint.entities,
            checkpoint.relations,
            reciprocal=checkpoint.reciprocal,
            entity_ids=checkpoint.entity_ids,
            relation_ids=checkpoint.relation_ids,
            **fields,
        )

    def to_libkge(self) -> LibkgeModel:
        """Describe the backbone in LibKGE's terms; override it to write the model's own fields."""
        class_name = type(self).__name__
        if not self.libkge_models:
            raise BackboneError(
                f"{class_name} names no LibKGE model, so it cannot be written as a LibKGE "
                "package; write it to a .safetensors file, or set libkge_models if LibKGE has it"
            )
        own = self.own_fields()
        if own and type(self).to_libkge is Backbone.to_libkge:
            raise BackboneError(
                f"{class_name} does not say what LibKGE calls its {' and '.join(own)}; "
                "define to_libkge"
            )
        name = self.libkge_models[0]
        return LibkgeModel(
            name=name,
            section=name.lower(),
            entities=self.entities,
            relations=self.relations if self.reciprocal else self.relations[: self.num_relations],
        )

    # Construction ---------------------------------------------------------------------------

    @classmethod
    def from_tensors(
        cls, entities: Tensor, relations: Tensor, *, reciprocal: bool, **fields: Any
    ) -> Self:
        """Make a backbone of entities [E, d] and relations, [2R, w] if reciprocal, else [R, w].

        For relations [R, w] the rows of the inverses are derived. fields are the model's own
        fields and the ids.
        """
        import torch

        cls._check_tables(entities, relations, reciprocal)
        if not reciprocal:
            inverse = cls.invert(relations)
            if inverse is None:
                raise BackboneError(
                    f"a plain {cls.__name__} cannot score heads because it has no analytic "
                    "inverse; train it with reciprocal relations (in LibKGE: "
                    "reciprocal_relations_model)"
                )
            relations = torch.cat([relations, inverse])
        backbone = cls(entities=entities, relations=relations, reciprocal=reciprocal, **fields)
        for name, tensor in backbone.tensors().items():
            if not tensor.isfinite().all():
                raise BackboneError(f"{name} of {cls.__name__} has NaN or infinite numbers")
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
        """Make an untrained backbone with normally distributed tables, for tests and training."""
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
                "entity and relation tables must be matrices with at least one row, but their "
                f"shapes are {list(entities.shape)} and {list(relations.shape)}"
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

    # Derived for every model ----------------------------------------------------------------

    @property
    def has_names(self) -> bool:
        return self.entity_ids is not None and self.relation_ids is not None

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The names of the rows; BackboneError if they are not known."""
        from lmpnn_kge.graph.vocabulary import Vocabulary

        if self.entity_ids is None or self.relation_ids is None:
            raise BackboneError(
                "its entities and relations have no names: open the checkpoint together with its "
                "dataset (--dataset DIR)"
            )
        return Vocabulary(self.entity_ids, self.relation_ids)

    def inverse(self, relations: Ids) -> Tensor:
        """Ids of the inverse relations."""
        return (self._ids(relations) + self.num_relations) % (2 * self.num_relations)

    def message(
        self,
        z: Tensor,
        relation: Ids | Literal["="],
        *,
        inverse: bool = False,
        negated: bool = False,
    ) -> Tensor:
        """Message ρ that a node in state z [n, d] sends over a (negated) atom, [n, d].

        relation is one id for all rows or one id per row. If inverse is true, z is the tail of the
        atom and the message goes to its head. The four messages are f(z, r), f(z, r⁻¹) and their
        negations.
        """
        if isinstance(relation, str) and relation == EQUAL:
            estimate = z
        else:
            ids = self.inverse(relation) if inverse else self._ids(relation)
            estimate = self.forward(z, ids.expand(len(z)))
        return -estimate if negated else estimate

    def score(self, heads: Tensor, relation: Ids | Literal["="], tails: Tensor) -> Tensor:
        """Score φ(h, r, t) of embeddings [n, d], not of ids -> [n]."""
        estimates = self.message(heads, relation)
        return self.score_pairs(estimates, tails, None if isinstance(relation, str) else relation)

    def score_pairs(self, estimates: Tensor, tails: Tensor, relations: Ids | None = None) -> Tensor:
        """Score φ of each estimate [n, d] against the tail in the same row -> [n].

        relations are those that the estimates were made with, None for equality: a distance may
        depend on them.
        """
        if self.score_type is ScoreType.INNER_PRODUCT:
            return (estimates * tails).sum(-1)
        if relations is not None:
            tails = self.project(tails, self._ids(relations).expand(len(tails)))
        return -self.distance(estimates, tails)

    def score_entities(self, estimates: Tensor, relations: Ids | None = None) -> Tensor:
        """Score φ of each estimate [n, d] against every entity -> [n, E].

        relations has the same meaning as in `score_pairs`.
        """
        if self.score_type is ScoreType.INNER_PRODUCT:
            return estimates @ self.entities.T
        if relations is None or type(self).project is Backbone.project:
            return -all_pairs(self.distance, estimates, self.entities)
        ids = self._ids(relations).expand(len(estimates))
        scores = estimates.new_empty(len(ids), self.num_entities)
        for relation in ids.unique():  # rows of one relation share the projected entities
            rows = ids == relation
            distance = partial(self._projected_distance, relation)
            scores[rows] = -all_pairs(distance, estimates[rows], self.entities)
        return scores

    def _projected_distance(self, relation: Tensor, estimates: Tensor, tails: Tensor) -> Tensor:
        return self.distance(estimates, self.project(tails, relation))

    def score_tails(self, heads: Ids, relations: Ids) -> Tensor:
        """Score φ(h, r, ·) of head ids [n] and relation ids [n] against every entity -> [n, E]."""
        estimates = self.message(self.entities[self._ids(heads)], relations)
        return self.score_entities(estimates, relations)

    def score_heads(self, relations: Ids, tails: Ids) -> Tensor:
        """Score φ(·, r, t) of relation ids [n] and tail ids [n] against every entity -> [n, E]."""
        return self.score_tails(tails, self.inverse(relations))

    @staticmethod
    def truth(scores: Tensor, *, scale: float = 1.0, shift: float = 0.0) -> Tensor:
        """Truth value ψ = σ(scale · φ + shift); the margin γ of a distance is its shift."""
        return (scale * scores + shift).sigmoid()

    def _facts(self) -> list[str]:
        return [*super()._facts(), self.score_type.value]

    def _ids(self, ids: Ids) -> Tensor:
        import torch

        return torch.as_tensor(ids, dtype=torch.int64, device=self.entities.device)
