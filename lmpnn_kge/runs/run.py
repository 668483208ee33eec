"""A trained network, opened from its run folder: evaluate it, rank entities, ask questions."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import get_args, overload

import torch
from torch import Tensor

from lmpnn_kge.backbones.contract import Backbone
from lmpnn_kge.device import choose_device, computing
from lmpnn_kge.errors import ConfigError, QueryError, RunError, choices
from lmpnn_kge.files import file_hash, relative
from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph
from lmpnn_kge.graph.vocabulary import Vocabulary
from lmpnn_kge.lmpnn.network import Lmpnn
from lmpnn_kge.methods.index import EntityIndex
from lmpnn_kge.methods.lmpnn import LmpnnMethod
from lmpnn_kge.methods.names import LMPNN
from lmpnn_kge.methods.rank import rank_split
from lmpnn_kge.methods.ranks import Ranks
from lmpnn_kge.methods.results import Results
from lmpnn_kge.queries.columns import Queries
from lmpnn_kge.queries.renumber import renumber_store
from lmpnn_kge.queries.store import QueryStore
from lmpnn_kge.query.formula import Formula
from lmpnn_kge.runs.answer import Answer, AnswerList, NumberOfAnswers
from lmpnn_kge.runs.asker import Candidates
from lmpnn_kge.runs.asking import Asking
from lmpnn_kge.runs.best import choosing, excluded
from lmpnn_kge.runs.fitting import FittedCount, FittedMethod, Fitting, evaluate_fitted
from lmpnn_kge.runs.indexed import RECALL, Indexing
from lmpnn_kge.runs.inputs import renumber_queries
from lmpnn_kge.runs.kept import fit_file, read_results, results_file
from lmpnn_kge.runs.knowledge import Knowledge
from lmpnn_kge.runs.methods import Methods
from lmpnn_kge.runs.moved import find_checkpoint, find_moved, open_backbone_of, precision
from lmpnn_kge.runs.predict import Wanted, predict_missing
from lmpnn_kge.runs.predictions import Predictions
from lmpnn_kge.runs.questions import Batch, Question
from lmpnn_kge.settings.kinds import TrainSettings, UnionMode
from lmpnn_kge.training.folder import RUN, STATE, RunFolder
from lmpnn_kge.training.lmpnn import MODEL, load_best
from lmpnn_kge.training.provenance import QueriesSource, RunProvenance
from lmpnn_kge.training.resume import epochs_done, is_finished
from lmpnn_kge.work.listener import SILENT, Listener
from lmpnn_kge.work.once import once

#: Many formulas; a text by itself is not among them, although it is a sequence of texts.
Formulas = list[str] | list[Formula] | list[str | Formula] | tuple[str | Formula, ...]


@dataclass(frozen=True, eq=False)
class Run:
    """A trained network with its backbone, ready to answer."""

    folder: RunFolder[TrainSettings, RunProvenance]
    method: LmpnnMethod
    vocabulary: Vocabulary
    dataset: KnowledgeGraph | Path | None  # its graph, or the folder of it, if that is found
    notes: tuple[str, ...] = ()
    other_checkpoint: str | None = None  # its hash, if it is not that of the training
    recorded_graph: str | None = None  # the fingerprint that its graph must have

    @classmethod
    def open(
        cls,
        folder: str | Path,
        *,
        checkpoint: str | Path | None = None,
        dataset: str | Path | None = None,
        device: str = "auto",
        table_memory: str | None = None,
    ) -> Run:
        """Open a run folder; checkpoint and dataset say where those are now, if they have moved.

        table_memory is how much of the entity table the device may hold, as in `train`.
        """
        run = RunFolder.open(folder, RUN)
        if not run.has(MODEL):
            raise RunError(f"{run.path} has no network yet; continue it with `train --resume`")
        file, other_hash = find_checkpoint(run, checkpoint)
        notes = []
        if other_hash is not None:
            notes = [f"{file} is not the file that {run.path} was trained on: its hash differs"]
        chosen = choose_device(device)
        vocabulary = run.vocabulary()
        backbone = open_backbone_of(run, file, vocabulary, is_other=other_hash is not None)
        network = Lmpnn(backbone, run.settings, dtype=precision(run.provenance))
        model = network.on(chosen, table_memory)
        load_best(model, run)
        notes += filter(None, [model.backbone.table_note])
        graph = None if dataset is None else Path(dataset)
        if graph is None and run.provenance.dataset is not None:
            recorded = find_moved(run.provenance.dataset, run.path)
            graph = recorded if recorded.exists() else None
        if run.has(STATE) and not is_finished(run):
            notes.append(
                f"the training of {run.path} is not finished: {epochs_done(run)} of "
                f"{run.settings.epochs} epochs are done; `train --resume` continues it"
            )
        method = LmpnnMethod.of(model, run.settings)
        recorded_graph = run.provenance.graph if dataset is None else None
        return cls(run, method, vocabulary, graph, tuple(notes), other_hash, recorded_graph)

    def __repr__(self) -> str:
        source = self.folder.provenance
        results = "not tested" if self.results is None else repr(self.results)
        return f"Run({self.folder.path}: {source.backbone} on {source.queries.graph}, {results})"

    @property
    def backbone(self) -> Backbone:
        return self.method.model.backbone

    @once
    def graph(self) -> KnowledgeGraph | None:
        """The graph of the run; None if its folder cannot be found.

        RunError if it is not the graph that the run was trained on, unless it was given.
        """
        if not isinstance(self.dataset, Path):
            return self.dataset
        graph = KnowledgeGraph.open(self.dataset)
        if self.recorded_graph not in (None, graph.fingerprint):
            raise RunError(
                f"{relative(self.dataset)} has changed since {self.folder.path} was trained on it; "
                "restore it, or give a graph to use instead with --dataset DIR"
            )
        return graph

    @cached_property
    def results(self) -> Results | None:
        """The results on test; None if the run was not tested."""
        return self.kept_results(LMPNN)

    def evaluate(
        self,
        split: str = "test",
        *,
        queries: str | Path | QueryStore | None = None,
        method: str = LMPNN,
        union: UnionMode | None = None,
        limit: int | None = None,
        ranks: str | Path | None = None,
        listener: Listener = SILENT,
    ) -> Results:
        """Rank the hard answers of a split of the run's own queries, or of others.

        queries is a store or its folder; limit takes at most that many queries per type, evenly
        spread. method is a way to answer, as in `ask`; union is for the network only. The rank of
        every hard answer is written to the file `ranks`, which ends in .parquet or .csv.
        """
        if union not in (None, *get_args(UnionMode)):
            raise ConfigError(f"union is {union!r}; {choices(str(union), get_args(UnionMode))}")
        fitted = self._fitted(method, union, listener)
        store = queries if isinstance(queries, QueryStore) else self.queries(split, queries)[0]
        return evaluate_fitted(fitted, store, split, limit, self._hashes(method), ranks, listener)

    def ranks(
        self,
        split: str = "test",
        *,
        queries: str | Path | QueryStore | None = None,
        method: str = LMPNN,
        limit: int | None = None,
        listener: Listener = SILENT,
    ) -> Ranks:
        """The rank of every hard answer, which `evaluate` averages, with the same arguments."""
        fitted = self._fitted(method, None, listener)
        store = queries if isinstance(queries, QueryStore) else self.queries(split, queries)[0]
        return rank_split(fitted.method, store, split, limit, listener, fitted.name)

    def _fitted(self, method: str, union: UnionMode | None, listener: Listener) -> FittedMethod:
        if method != LMPNN:
            return self._methods.get(method, listener)
        # The network needs no graph, which may be gone.
        network = dataclasses.replace(self.method, union=union or self.method.union)
        settings = vars(self.folder.settings) | {"union": network.union}
        count = partial(self._network_count, network)
        return FittedMethod(network, name=LMPNN, settings=settings, count=count)

    def _network_count(self, network: LmpnnMethod, listener: Listener) -> FittedCount | None:
        """What predicts numbers of answers from the scores alone; None without valid queries."""
        own = find_moved(self.folder.provenance.queries.folder, self.folder.path)
        valid = self._valid_queries() if own.exists() else {}
        return FittedCount.fit(network, valid, None, listener) if valid else None

    def _hashes(self, method: str) -> dict[str, str | None]:
        """The hashes of the checkpoint and the graph that a method works with."""
        recorded = self.folder.provenance
        graph = None if method == LMPNN else self.graph  # the network needs none
        return {
            "checkpoint": self.other_checkpoint or recorded.checkpoint.sha256,
            "graph": recorded.graph if graph is None else graph.fingerprint,
        }

    def kept_results(self, method: str) -> Results | None:
        """The results of a method on all test queries; None if they were not kept."""
        return read_results(self.folder, method)

    def keep_results(self, method: str, results: Results) -> None:
        """Keep the results of a method on all test queries in the run, for reports.

        Those of another checkpoint or of other queries than those of the run are not kept.
        """
        origin, own = results.origin, self.folder.provenance.queries.sha256
        same_queries = origin is None or origin.queries in (None, own)
        if self.other_checkpoint is None and same_queries:
            self.folder.write_json(results_file(method), results.to_json())

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

    def _valid_queries(self) -> Mapping[str, Queries]:
        """The valid queries of the run's own store, if it has any."""
        own = self.folder.provenance.queries.folder
        store = QueryStore.open(find_moved(own, self.folder.path))
        wanted = dataclasses.replace(store, splits={"valid": store.splits.get("valid", {})})
        return renumber_store(wanted, self.vocabulary)[0].queries("valid")

    @computing()
    def embed(self, formula: str | Formula) -> Tensor:
        """The answer embeddings of a formula, one for each disjunct, [disjuncts, d]."""
        batch = Batch.of([Question.read_single(formula, self.vocabulary)])
        return self.method.embed(batch.pattern, *batch.tensors(self.method.device))[:, 0]

    @computing()
    def rank(
        self, formula: str | Formula, k: int | None = None, *, method: str | None = None
    ) -> list[tuple[str, float]]:
        """The ids and scores of the k entities that answer a formula best, by the score alone."""
        asked = self.method if method is None else self._methods.get(method, SILENT).method
        question = Question.read_single(formula, self.vocabulary)
        batch = Batch.of([question])
        with torch.inference_mode():  # but not above, where hybrid may have to learn first
            choose = choosing(asked, batch)
            best = choose(excluded(asked, batch), None, question.most(k))
        ids = [self.vocabulary.entity_ids[row] for row in best.rows[0].tolist()]
        return list(zip(ids, best.scores[0].tolist(), strict=True))

    @overload
    def ask(
        self,
        formula: str | Formula,
        k: int | None = None,
        *,
        predicted: bool = False,
        graph: KnowledgeGraph | str | Path | None = None,
        method: str | None = None,
        candidates: Candidates = "typed-first",
        approximate: bool = False,
        explain: int = 0,
        timeout: float | None = None,
        listener: Listener = SILENT,
    ) -> AnswerList: ...

    @overload
    def ask(
        self,
        formula: Formulas,
        k: int | None = None,
        *,
        predicted: bool = False,
        graph: KnowledgeGraph | str | Path | None = None,
        method: str | None = None,
        candidates: Candidates = "typed-first",
        approximate: bool = False,
        explain: int = 0,
        timeout: float | None = None,
        listener: Listener = SILENT,
    ) -> list[AnswerList]: ...

    def ask(
        self,
        formula: str | Formula | Formulas,
        k: int | None = None,
        *,
        predicted: bool = False,
        graph: KnowledgeGraph | str | Path | None = None,
        method: str | None = None,
        candidates: Candidates = "typed-first",
        approximate: bool = False,
        explain: int = 0,
        timeout: float | None = None,
        listener: Listener = SILENT,
    ) -> AnswerList | list[AnswerList]:
        """The k best answers to a formula, each marked as known or predicted by the graph.

        A formula may also be a SPARQL query. Without k, its LIMIT is taken, or 10. A list of
        formulas gives a list of answers to each, much faster than one call for each. The answers of
        a formula with ?1, ?2, … are tuples, whose score is no probability.

        Entities that violate a negated condition in the training edges are omitted, and so are
        entities of the question that could answer only by an edge to themselves. With
        predicted=True, known answers are omitted as well.

        graph is a graph, or its folder, to use instead of the run's own. method is the name of a
        way to answer: lmpnn, search, hybrid or cqd-beam; by default hybrid, if the graph is found.
        candidates says what happens to entities that no training edge of a relation has at the
        place of `?`: they are ranked last (`typed-first`), omitted (`typed`) or ranked by score
        like all others (`any`). approximate looks for answers of the network in an index instead
        of reading a large table (extra `index`). explain is the number of reasons to give for each
        answer. timeout is in seconds for each formula, without the time to fit a method or to build
        an index; None sets no limit.

        Any number of threads can ask at the same time.
        """
        many = isinstance(formula, list | tuple)
        results = self.ask_each(
            formula if isinstance(formula, list | tuple) else [formula],
            k,
            predicted=predicted,
            graph=graph,
            method=method,
            candidates=candidates,
            approximate=approximate,
            explain=explain,
            timeout=timeout,
            listener=listener,
        )
        answers = []
        for number, result in enumerate(results, 1):
            if isinstance(result, QueryError):
                raise result.within(f"question {number}") if many else result
            answers.append(result)
        return answers if many else answers[0]

    def ask_each(
        self,
        formulas: Formulas,
        k: int | None = None,
        *,
        predicted: bool = False,
        graph: KnowledgeGraph | str | Path | None = None,
        method: str | None = None,
        candidates: Candidates = "typed-first",
        approximate: bool = False,
        explain: int = 0,
        timeout: float | None = None,
        listener: Listener = SILENT,
    ) -> list[AnswerList | QueryError]:
        """`ask` for many formulas; a wrong one has its error in place of its answers."""
        if candidates not in get_args(Candidates):
            wrong = str(candidates)
            raise ConfigError(f"candidates is {wrong!r}; {choices(wrong, get_args(Candidates))}")
        wanted_method = LMPNN if approximate and method is None else method
        asking = self._asking(graph, wanted_method, explain, timeout, listener)
        index = self._index(asking.fitted, listener) if approximate else None
        if predicted and asking.knowledge is None:
            raise RunError(
                "only the graph of the run tells predicted answers from known ones, and it was not "
                "found; say where it is with --dataset DIR (in Python: graph=)"
            )
        wanted = dataclasses.replace(
            asking, k=k, predicted=predicted, candidates=candidates, index=index
        )
        return wanted.ask(formulas)

    def _index(self, fitted: FittedMethod, listener: Listener) -> EntityIndex | None:
        """The index of the network's entities; None if their table is small."""
        if fitted.name != LMPNN:
            raise ConfigError(
                f"only the network has approximate answers: ask with lmpnn, not {fitted.name}"
            )
        if self._indexing is not None:
            return self._indexing.open(listener)
        listener.note("answers are exact: the entity table is small enough for that")
        return None

    @once
    def _indexing(self) -> Indexing | None:
        if self.method.streamed is None:
            return None
        recorded = self.folder.provenance
        own = find_moved(recorded.queries.folder, self.folder.path)
        return Indexing(
            self.method.streamed,
            self.other_checkpoint or recorded.checkpoint.sha256,
            self.folder.path / MODEL,
            self.folder.path / RECALL,
            self._valid_queries if own.exists() else dict,
        )

    def count(
        self,
        formula: str | Formula,
        *,
        method: str | None = None,
        timeout: float | None = None,
        listener: Listener = SILENT,
    ) -> NumberOfAnswers:
        """How many answers a formula probably has; the arguments are those of `ask`."""
        asking = self._asking(None, method, 0, timeout, listener)
        name = asking.fitted.name
        counting = self._fitted(name, None, listener).count(listener)
        if counting is None:
            raise RunError(
                f"{name} cannot predict numbers of answers: that is fitted on valid queries, for "
                "search, hybrid and lmpnn"
            )
        return asking.count(formula, counting)

    def prepare(self, method: str, listener: Listener = SILENT) -> None:
        """Fit or read what a method and its reasons need, so that no question waits for it."""
        fitted = self._methods.get(method, listener)
        if self.knowledge is not None:
            self._methods.explaining(fitted, listener)

    def explain(
        self,
        formula: str | Formula,
        entity: str | Sequence[str],
        count: int = 1,
        *,
        method: str | None = None,
        timeout: float | None = None,
        listener: Listener = SILENT,
    ) -> Answer:
        """An entity, an id or a label, as an answer to a formula, with up to `count` reasons.

        If the formula asks for several entities, entity is a list of them. It need not be among the
        best answers. The other arguments are those of `ask`.
        """
        return self._asking(None, method, count, timeout, listener).explain(formula, entity)

    def _asking(
        self,
        graph: KnowledgeGraph | str | Path | None,
        method: str | None,
        explain: int,
        timeout: float | None,
        listener: Listener,
    ) -> Asking:
        """Who answers, and what the run's graph or another one knows."""
        knowledge, methods = self.knowledge, self._methods
        if graph is not None and graph is not self.graph:
            knowledge = self._knowledge_of(KnowledgeGraph.of(graph))
            methods = self._methods_of(knowledge, kept=False)
        fitted = methods.get(method, listener)
        explaining = methods.explaining(fitted, listener) if explain else None
        return Asking(
            self.vocabulary,
            fitted,
            knowledge,
            explaining=explaining,
            witnesses=explain,
            timeout=timeout,
        )

    def predict(
        self,
        *,
        relations: Sequence[str] = (),
        heads: Sequence[str] = (),
        tails: Sequence[str] = (),
        limit: int = 100,
        min_probability: float = 0.0,
        any_pair: bool = False,
        new: bool = False,
        listener: Listener = SILENT,
    ) -> Predictions:
        """The most probable triples that the training graph lacks, by the embedding of the run.

        The network takes no part. `lmpnn_kge.predict` explains the arguments.
        """
        wanted = Wanted(relations, heads, tails, limit, min_probability, any_pair, new)
        if self.graph is None:
            raise RunError("the graph of the run is not found; give its folder with --dataset DIR")
        return predict_missing(self.backbone, self.graph, wanted, listener)

    @once
    def knowledge(self) -> Knowledge | None:
        """What the run's own graph knows; None if it is not found."""
        return None if self.graph is None else self._knowledge_of(self.graph)

    def _knowledge_of(self, graph: KnowledgeGraph) -> Knowledge:
        return Knowledge(graph, self.vocabulary, self.method.device)

    @once
    def _methods(self) -> Methods:
        """The ways to answer, with the run's own graph."""
        return self._methods_of(self.knowledge, kept=True)

    def _methods_of(self, knowledge: Knowledge | None, *, kept: bool) -> Methods:
        fitting = None
        if knowledge is not None:
            recorded = self.folder.provenance
            manifest = find_moved(recorded.queries.folder, self.folder.path) / "manifest.json"
            fitting = Fitting(
                self.backbone,
                knowledge.facts,
                (lambda name: self.folder.path / fit_file(name)) if kept else None,
                {
                    "checkpoint": self.other_checkpoint or recorded.checkpoint.sha256,
                    "queries": file_hash(manifest)
                    if manifest.is_file()
                    else recorded.queries.sha256,
                    "graph": knowledge.graph.fingerprint,
                },
                self._valid_queries,
                knowledge.triples,
                knowledge.known_answers,
            )
        return Methods(self.method, self.vocabulary, knowledge, fitting)
