"""The contract between a knowledge graph embedding and everything that is built on it.

A backbone supplies its entity table, its relation table, the forward function f(h, r) and the type
of its score. Messages, scores and truth values are derived from these in `messages`.

    Type 1, inner product   φ(h, r, t) = ⟨f(h, r), t⟩
    Type 2, distance        φ(h, r, t) = −‖f(h, r) − t‖ in the model's own norm

A distance may see the tail through the relation: t is then replaced by `project(t, r)`.

Relation ids run over [0, 2R): r is a relation and r + R its inverse. A checkpoint trained with
reciprocal relations has all 2R rows; for a plain one, `invert` derives the second half.

torch is imported inside the functions that use it, so that plugins can be listed without it.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from lmpnn_kge.backbones.libkge.model import LibkgeModel
from lmpnn_kge.backbones.messages import Messages, ScoreType
from lmpnn_kge.errors import BackboneError

if TYPE_CHECKING:
    from torch import Generator, Tensor
    from typing_extensions import Self

    from lmpnn_kge.backbones.libkge.checkpoint import LibkgeCheckpoint


@dataclass(frozen=True, eq=False, kw_only=True)
class Backbone(Messages):
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

        from lmpnn_kge.backbones.mapped import blocks

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
            if not all(part.isfinite().all() for part in blocks(tensor)):
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

        if min(num_entities, num_relations, dim) < 1:
            raise BackboneError(
                "a backbone has at least one entity, one relation and a width of 1, not "
                f"{num_entities}, {num_relations} and {dim}"
            )
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
        import torch

        tables = (entities, relations)
        if not all(isinstance(t, torch.Tensor) and t.layout is torch.strided for t in tables):
            raise BackboneError("entity and relation tables must be dense tensors of torch")
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

    @property
    def projects(self) -> bool:
        return type(self).project is not Backbone.project

    def _facts(self) -> list[str]:
        return [*super()._facts(), self.score_type.value]
