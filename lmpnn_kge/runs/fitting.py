"""What is fitted on valid, once for a checkpoint and its graph, and kept in a file beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from lmpnn_kge.backbones.contract import Backbone
from lmpnn_kge.errors import CalibrationError, FileError, one_line
from lmpnn_kge.files import file_hash, relative
from lmpnn_kge.graph.triples import Triples
from lmpnn_kge.methods.calibration import Reliability, mapping
from lmpnn_kge.methods.method import Method
from lmpnn_kge.methods.origin import Origin
from lmpnn_kge.methods.rank import average, capped, intervals, rank_split
from lmpnn_kge.methods.ranks import check_ranks_file
from lmpnn_kge.methods.results import Results
from lmpnn_kge.processes import current
from lmpnn_kge.queries.columns import Queries
from lmpnn_kge.queries.store import QueryStore
from lmpnn_kge.runs.kept import EDGES, read_json, read_reliability, write_json
from lmpnn_kge.runs.reliability import measure_on_test
from lmpnn_kge.search.counting import AnswerCount, Known
from lmpnn_kge.search.edges import EdgeProbability
from lmpnn_kge.search.facts import Facts
from lmpnn_kge.search.fit import Fit, fit, held_out
from lmpnn_kge.search.probability import AnswerProbability
from lmpnn_kge.settings.kinds import SearchSettings
from lmpnn_kge.training.provenance import Software
from lmpnn_kge.work.listener import Listener

KIND, FORMAT = "lmpnn-kge fit", 1

#: Queries per type that the reliability of probabilities is measured on.
MEASURED = 200

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class FittedMethod:
    """A way to answer with its name and settings, and the probability of its answers if any.

    count predicts the number of answers if it can be fitted; it is fitted when it is first needed.
    """

    method: Method
    probability: AnswerProbability | None = None
    name: str = "unnamed"
    settings: Mapping[str, Any] = field(default_factory=dict)
    count: Callable[[Listener], FittedCount | None] = lambda _: None


@dataclass(frozen=True, eq=False)
class FittedCount:
    """What predicts numbers of answers, and the known answers that it takes into account."""

    count: AnswerCount
    known: Known | None

    @classmethod
    def fit(
        cls, method: Method, valid: Mapping[str, Queries], known: Known | None, listener: Listener
    ) -> FittedCount | None:
        """Fit to queries that nothing else is fitted on; None, with a note, if there are none."""
        single = {n: group for n, group in valid.items() if len(group.pattern.free) == 1}
        ranked = {name: group.ranked for name, group in single.items()}
        queries = {n: group.select(held_out(len(group))) for n, group in ranked.items()}
        try:
            return cls(AnswerCount.fit(method, queries, known), known)
        except CalibrationError as error:
            listener.note(one_line(error))
            return None


@dataclass(frozen=True, eq=False)
class FittedEdges:
    """The probabilities of edges, and how reliable they are on test if there are test triples."""

    probability: EdgeProbability
    reliability: Mapping[str, Reliability]  # as `runs.reliability` measures it

    def to_json(self) -> dict[str, object]:
        measured = {name: reliability.to_json() for name, reliability in self.reliability.items()}
        return {"probability": self.probability.to_json(), "reliability": measured}

    @classmethod
    def from_json(
        cls, content: object, source: str, backbone: Backbone, facts: Facts
    ) -> FittedEdges:
        """Read what `to_json` returned; CalibrationError, which names the source, if it is not."""
        fields = mapping(content, ("probability", "reliability"), source)
        probability = EdgeProbability.from_json(fields["probability"], source, backbone, facts)
        return cls(probability, read_reliability(fields["reliability"], source))


def evaluate_fitted(
    fitted: FittedMethod,
    store: QueryStore,
    split: str,
    limit: int | None,
    inputs: Mapping[str, str | None],
    ranks: str | Path | None,
    listener: Listener,
) -> Results:
    """Rank a split of a store, and measure how reliable the probabilities of answers are.

    inputs has the hashes of the checkpoint and the graph. The rank of every hard answer is written
    to the file `ranks`, if one is given.
    """
    if ranks is not None:
        check_ranks_file(ranks)
    ranked = rank_split(fitted.method, store, split, limit, listener, fitted.name)
    if ranks is not None:
        ranked.save(ranks)
    origin = _origin(fitted, store, limit, inputs)
    results = replace(average(ranked), origin=origin, intervals=intervals(ranked))
    having = {
        name: group.ranked
        for name, group in store.queries(split).items()
        if len(group.pattern.free) == 1  # nothing is estimated of tuples but their ranks
    }
    if not having:
        return results
    few = capped(having, min(MEASURED, limit or MEASURED))
    if fitted.probability is not None:
        results = replace(results, reliability=fitted.probability.measure(fitted.method, few))
    counting = fitted.count(listener)
    if counting is not None:
        measured = counting.count.measure(fitted.method, few, counting.known)
        results = replace(results, counting=measured)
    return results


def _origin(
    fitted: FittedMethod, store: QueryStore, limit: int | None, inputs: Mapping[str, str | None]
) -> Origin:
    return Origin(
        method=fitted.name,
        settings=dict(fitted.settings),
        checkpoint=inputs["checkpoint"],
        queries=None if store.folder is None else file_hash(store.folder / "manifest.json"),
        graph=inputs["graph"],
        graph_name=store.graph,
        limit=limit,
        versions=Software.now().versions,
    )


@dataclass(frozen=True, eq=False)
class Fitting:
    """An embedding with its graph, and where to keep what is fitted to them.

    inputs has hashes of what a fit depends on. A file that was fitted to something else, or that is
    damaged, is fitted again.
    """

    backbone: Backbone
    facts: Facts
    file: Callable[[str], Path] | None  # by the name of what is fitted; None if it is not kept
    inputs: Mapping[str, str]
    valid_queries: Callable[[], Mapping[str, Queries]]
    triples: Callable[[str], Triples]  # of a split, in the rows of the backbone
    known: Known

    def method(self, name: str, settings: SearchSettings, listener: Listener) -> FittedMethod:
        """`search` or `hybrid`."""

        def make() -> Fit:
            ranked = {n: group.ranked for n, group in self.valid_queries().items()}
            # What is learnt from one free variable serves those of tuples, too.
            queries = {n: g for n, g in ranked.items() if len(g) and len(g.pattern.free) == 1}
            return fit(name, self.backbone, self.facts, queries, settings, listener)

        def read(content: object, source: str) -> Fit:
            count, device = self.backbone.num_relations, self.facts.keys.device
            return Fit.from_json(name, content, source, count, device)

        # A file of its own, so that a comparison of both does not fit each of them every time.
        kept = name if settings.facts == "known" else f"{name}-{settings.facts}"
        with current().in_turn():  # so that all processes of a job have the same fit
            fitted = self._kept(kept, vars(settings), make, read, Fit.to_json, listener)
        method = fitted.method(self.backbone, self.facts, settings)
        count = partial(self._count, f"{kept}-count", method, settings)
        return FittedMethod(method, fitted.probability, name, vars(settings), count)

    def _count(
        self, name: str, method: Method, settings: SearchSettings, listener: Listener
    ) -> FittedCount | None:
        """The number of answers by the scores of a method; None if it cannot be fitted."""
        known = self.known if settings.facts == "known" else None

        def make() -> AnswerCount | None:
            fitted = FittedCount.fit(method, self.valid_queries(), known, listener)
            return None if fitted is None else fitted.count

        def read(content: object, source: str) -> AnswerCount | None:
            device = self.facts.keys.device
            return None if content is None else AnswerCount.from_json(content, source, device)

        def to_json(count: AnswerCount | None) -> object:
            return None if count is None else count.to_json()

        with current().in_turn():
            count = self._kept(name, vars(settings), make, read, to_json, listener)
        return None if count is None else FittedCount(count, known)

    def edges(self, listener: Listener) -> FittedEdges:
        """The probabilities of edges."""

        def make() -> FittedEdges:
            fitted = EdgeProbability.fit(self.backbone, self.facts, self.triples("valid"))
            return FittedEdges(fitted, measure_on_test(fitted, self.triples))

        def read(content: object, source: str) -> FittedEdges:
            return FittedEdges.from_json(content, source, self.backbone, self.facts)

        return self._kept(EDGES, {}, make, read, FittedEdges.to_json, listener)

    def _kept(
        self,
        name: str,
        settings: Mapping[str, Any],
        make: Callable[[], T],
        read: Callable[[object, str], T],
        to_json: Callable[[T], object],
        listener: Listener,
    ) -> T:
        """What a file has, if it was fitted to these inputs; otherwise it is fitted and kept."""
        if self.file is None:
            return make()
        file = self.file(name)
        head = {
            "kind": KIND,
            "format": FORMAT,
            "fit": name,
            "inputs": dict(self.inputs),
            "settings": dict(settings),
        }
        try:
            content = read_json(file, head)
            if content is not None:
                return read(content.get("fitted"), str(file))
        except (CalibrationError, FileError) as error:
            listener.note(f"{one_line(error)}; it is fitted again")
        listener.note(f"fitting {name} on valid, once; kept in {relative(file)}")
        fitted = make()
        try:
            write_json(file, {**head, "fitted": to_json(fitted)})
        except FileError as error:
            listener.note(f"{one_line(error)}, so it will be fitted again next time")
        return fitted
