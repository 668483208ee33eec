"""A trained network, opened from its run folder: evaluate it, rank entities, ask questions."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import get_args

import torch
from torch import Tensor

from lmpnn_kge.backbones.contract import Backbone
from lmpnn_kge.backbones.open import build, find_backbone, read_checkpoint
from lmpnn_kge.device import choose_device
from lmpnn_kge.errors import ConfigError, RunError, choices
from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph
from lmpnn_kge.graph.vocabulary import Vocabulary
from lmpnn_kge.listener import SILENT, Listener
from lmpnn_kge.lmpnn.network import Lmpnn
from lmpnn_kge.methods.lmpnn import LmpnnMethod
from lmpnn_kge.methods.rank import evaluate_split
from lmpnn_kge.methods.results import Results
from lmpnn_kge.queries.store import QueryStore
from lmpnn_kge.query.formula import Formula
from lmpnn_kge.query.negations import exclusions
from lmpnn_kge.query.parser import parse
from lmpnn_kge.query.patterns import Pattern
from lmpnn_kge.runs.answer import Answer
from lmpnn_kge.runs.inputs import renumber_queries
from lmpnn_kge.settings.kinds import TrainSettings, UnionMode
from lmpnn_kge.training.folder import RUN, RunFolder
from lmpnn_kge.training.lmpnn import MODEL, load_best
from lmpnn_kge.training.provenance import QueriesSource, RunProvenance, file_hash

#: The results of the best network on the test queries.
TEST = "test.json"


@dataclass(frozen=True, eq=False)
class Run:
    """A trained network with its backbone, ready to answer."""

    folder: RunFolder[TrainSettings, RunProvenance]
    method: LmpnnMethod
    vocabulary: Vocabulary
    dataset: KnowledgeGraph | Path | None  # its graph, or the folder of it, if that is found
    notes: tuple[str, ...] = ()

    @classmethod
    def open(
        cls,
        folder: str | Path,
        *,
        checkpoint: str | Path | None = None,
        dataset: str | Path | None = None,
        device: str = "auto",
    ) -> Run:
        """Open a run folder; checkpoint and dataset say where those are now, if they have moved."""
        run = RunFolder.open(folder, RUN)
        if not run.has(MODEL):
            raise RunError(f"{run.path} has no network yet; continue it with `train --resume`")
        file, notes = _find_checkpoint(run, checkpoint)
        chosen = choose_device(device)
        vocabulary = run.vocabulary()
        backbone = _open_backbone(run, file, vocabulary, is_other=bool(notes))
        model = Lmpnn(backbone, run.settings, dtype=precision(run.provenance)).on(chosen)
        load_best(model, run)
        graph = None if dataset is None else Path(dataset)
        if graph is None and run.provenance.dataset is not None:
            recorded = find_moved(run.provenance.dataset, run.path)
            graph = recorded if recorded.exists() else None
        return cls(run, LmpnnMethod.of(model, run.settings), vocabulary, graph, tuple(notes))

    def __repr__(self) -> str:
        source = self.folder.provenance
        results = "not tested" if self.results is None else repr(self.results)
        return f"Run({self.folder.path}: {source.backbone} on {source.queries.graph}, {results})"

    @property
    def backbone(self) -> Backbone:
        return self.method.model.backbone

    @cached_property
    def graph(self) -> KnowledgeGraph | None:
        """The graph of the run; None if its folder cannot be found."""
        return KnowledgeGraph.open(self.dataset) if isinstance(self.dataset, Path) else self.dataset

    @cached_property
    def results(self) -> Results | None:
        """The results on test; None if the run was not tested."""
        if not self.folder.has(TEST):
            return None
        return Results.from_json(self.folder.read_json(TEST), str(self.folder.path / TEST))

    def evaluate(
        self,
        split: str = "test",
        *,
        queries: str | Path | QueryStore | None = None,
        union: UnionMode | None = None,
        limit: int | None = None,
        listener: Listener = SILENT,
    ) -> Results:
        """Rank the hard answers of a split of the run's own queries, or of others.

        queries is a store or its folder; limit takes at most that many queries per type, evenly
        spread.
        """
        if union not in (None, *get_args(UnionMode)):
            raise ConfigError(f"union is {union!r}; {choices(str(union), get_args(UnionMode))}")
        method = dataclasses.replace(self.method, union=union or self.method.union)
        store = queries if isinstance(queries, QueryStore) else self.queries(split, queries)[0]
        return evaluate_split(method, store, split, limit, listener)

    def queries(self, split: str, folder: str | Path | None = None) -> tuple[QueryStore, list[str]]:
        """A split of the run's own queries or of others in the rows of its backbone, and notes."""
        own = self.folder.provenance.queries.folder
        store = QueryStore.open(folder or find_moved(own, self.folder.path))
        wanted = dataclasses.replace(store, splits={split: store.queries(split)})
        renumbered, notes = renumber_queries(wanted, self.vocabulary)
        source = self.folder.provenance.queries
        if folder is None and QueriesSource.of(store).sha256 != source.sha256:
            notes.append(f"{store.folder} has changed since {self.folder.path} was trained on it")
        return renumbered, notes

    def embed(self, formula: str | Formula) -> Tensor:
        """The answer embeddings of a formula, one for each disjunct, [disjuncts, d]."""
        return self.method.embed(*self._query(*_parsed(formula)))[:, 0]

    def rank(self, formula: str | Formula, k: int = 10) -> list[tuple[str, float]]:
        """The ids and scores of the k entities that answer a formula best."""
        parsed, text = _parsed(formula)
        scores, excluded = self._scores(parsed, text)
        best = scores.topk(max(0, min(k, len(scores) - excluded)))
        return [
            (self.vocabulary.entity_ids[row], score)
            for row, score in zip(best.indices.tolist(), best.values.tolist(), strict=True)
        ]

    def ask(
        self,
        formula: str | Formula,
        k: int = 10,
        *,
        predicted: bool = False,
        graph: KnowledgeGraph | str | Path | None = None,
    ) -> list[Answer]:
        """The k best answers to a formula, each marked as known or predicted by the graph.

        Entities that violate a negated condition in the training edges are omitted. With
        predicted=True, known answers are omitted as well. graph is a graph, or its folder, to use
        instead of the run's own.
        """
        graph = self.graph if graph is None else KnowledgeGraph.of(graph)
        if predicted and graph is None:
            raise RunError(
                "--predicted needs the graph of the run to tell predicted answers from known ones; "
                "give its folder with --dataset DIR"
            )
        parsed, text = _parsed(formula)
        self.vocabulary.resolve(Pattern(parsed), text)  # an error points at a name in the text
        known: set[str] = set()
        confirmed: set[str] = set()
        omitted: set[str] = set()
        if graph is not None:
            known = set(graph.answer(parsed, "train"))
            confirmed = set(graph.answer(parsed, "test"))
            omitted = {graph.entity_ids[row] for row in graph.refuted_rows(parsed)}
            omitted |= known if predicted else set()
        ranked = [pair for pair in self.rank(parsed, k + len(omitted)) if pair[0] not in omitted]
        return [
            Answer(
                id_,
                self.vocabulary.label(self.vocabulary.entity(id_)),
                score,
                None if graph is None else id_ in known,
                None if graph is None else id_ in confirmed,
            )
            for id_, score in ranked[:k]
        ]

    def _query(self, formula: Formula, text: str | None) -> tuple[Pattern, Tensor, Tensor]:
        """A formula as a batch of one query of its own pattern."""
        pattern = Pattern(formula)
        rows = self.vocabulary.resolve(pattern, text)
        constants, relations = (torch.from_numpy(ids)[None].to(self.method.device) for ids in rows)
        return pattern, constants, relations

    @torch.inference_mode()
    def _scores(self, formula: Formula, text: str | None) -> tuple[Tensor, int]:
        """The score of every entity, [E], and how many are excluded by `? != entity`.

        An inequality with a constant holds exactly, without the network: the entity scores −∞.
        """
        rest, excluded = exclusions(formula)
        if excluded:
            self.vocabulary.resolve(Pattern(formula), text)  # the rest does not have all names
        scores = self.method.answer(*self._query(rest, text))(slice(None))[0]
        rows = {self.vocabulary.entity(constant.name) for constant in excluded}
        scores[list(rows)] = -torch.inf
        return scores, len(rows)


def _parsed(formula: str | Formula) -> tuple[Formula, str | None]:
    """A formula, and its text if it came as one, for errors to point into."""
    return (parse(formula), formula) if isinstance(formula, str) else (formula, None)


def precision(provenance: RunProvenance) -> torch.dtype:
    """The precision a run began with: what is fast here and now must not decide its results."""
    return torch.bfloat16 if provenance.precision == "bf16" else torch.float32


def find_moved(recorded: str | Path, run: Path) -> Path:
    """A recorded file or folder, or one of the same name and parents near a run that was moved.

    If there is neither, the recorded path, so that opening it says what is missing.
    """
    path = Path(recorded)
    if path.exists():
        return path
    here = run.resolve()
    for nearby in (here, *list(here.parents)[:3]):
        for depth in range(1, 4):
            candidate = nearby.joinpath(*path.parts[-depth:])
            if candidate.exists():
                return candidate
    return path


def _find_checkpoint(
    run: RunFolder[TrainSettings, RunProvenance], given: str | Path | None
) -> tuple[Path, list[str]]:
    """The checkpoint of a run, and a note if it is not the file that the run was trained on."""
    recorded = run.provenance.checkpoint
    file = find_moved(recorded.file, run.path) if given is None else Path(given)
    if not file.is_file():
        raise RunError(
            f"the checkpoint of {run.path} is not at {given or recorded.file}; say where it is "
            "with --checkpoint"
        )
    if file_hash(file) == recorded.sha256:
        return file, []
    return file, [f"{file} is not the file that {run.path} was trained on: its hash differs"]


def _open_backbone(
    run: RunFolder[TrainSettings, RunProvenance],
    file: Path,
    names: Vocabulary,
    *,
    is_other: bool,
) -> Backbone:
    """The backbone of a run, with the run's names; RunError if it is one of another graph."""
    checkpoint = read_checkpoint(file)
    _, backbone_class = find_backbone(checkpoint, run.provenance.backbone)
    backbone, _ = build(checkpoint, backbone_class)
    sizes = backbone.num_entities, backbone.num_relations
    if sizes != (names.num_entities, names.num_relations):
        raise RunError(
            f"{run.path} was trained on {names.num_entities} entities and {names.num_relations} "
            f"relations, but {file} has {sizes[0]} and {sizes[1]}"
        )
    if is_other and backbone.has_names and not backbone.vocabulary.has_ids_of(names):
        raise RunError(f"{file} has other names, or in another order, than {run.path}")
    return dataclasses.replace(
        backbone, entity_ids=names.entity_ids, relation_ids=names.relation_ids
    )
