"""The ways to answer the questions to a run, by name, each made when it is first needed."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from lmpnn_kge.errors import ConfigError, LmpnnError, RunError, choices, one_line
from lmpnn_kge.graph.vocabulary import Vocabulary
from lmpnn_kge.methods.cqd import CqdBeam
from lmpnn_kge.methods.lmpnn import LmpnnMethod
from lmpnn_kge.methods.names import CQD_BEAM, HYBRID, LMPNN, OF_RUN, SEARCH
from lmpnn_kge.runs.explaining import Explaining
from lmpnn_kge.runs.fitting import FittedMethod, Fitting
from lmpnn_kge.runs.knowledge import Knowledge
from lmpnn_kge.search.edges import EdgeProbability
from lmpnn_kge.search.hybrid import Hybrid
from lmpnn_kge.search.search import Search
from lmpnn_kge.settings.files import DEFAULT, load_settings
from lmpnn_kge.settings.kinds import CqdSettings, SearchSettings
from lmpnn_kge.work.listener import Listener


@dataclass(frozen=True, eq=False)
class Methods:
    """The ways to answer with one network and one graph, kept for what they remember.

    Threads that ask for a method at the same time get the same one: it is fitted once.
    """

    network: LmpnnMethod
    vocabulary: Vocabulary
    knowledge: Knowledge | None  # None without a graph
    fitting: Fitting | None  # likewise
    _made: dict[str, FittedMethod] = field(default_factory=dict, repr=False)
    _edges: list[EdgeProbability] = field(default_factory=list, repr=False)  # once opened
    _making: threading.RLock = field(default_factory=threading.RLock, repr=False)

    def get(self, name: str | None, listener: Listener) -> FittedMethod:
        """A method by its name, or the best that there is; ConfigError for an unknown name."""
        if name is None:
            return self._best(listener)
        if name not in OF_RUN:
            raise ConfigError(f"there is no method {name!r} to ask with; {choices(name, OF_RUN)}")
        with self._making:
            if name not in self._made:
                self._made[name] = self._make(name, listener)
        return self._made[name]

    def explaining(self, fitted: FittedMethod, listener: Listener) -> Explaining:
        """What explains the answers of a method: its own search, or `search` if it has none."""
        fitting = self._needed("explaining answers")
        assert self.knowledge is not None
        if not isinstance(fitted.method, Search | Hybrid):
            fitted = self.get(SEARCH, listener)
        assert isinstance(fitted.method, Search | Hybrid)
        with self._making:
            if not self._edges:
                self._edges.append(fitting.edges(listener).probability)
        return Explaining(self.vocabulary, self.knowledge, fitted.method.solver, self._edges[0])

    def _best(self, listener: Listener) -> FittedMethod:
        """Hybrid, or the network if hybrid cannot be fitted, with a note why."""
        if self.fitting is None:
            return self.get(LMPNN, listener)
        try:
            return self.get(HYBRID, listener)
        except LmpnnError as error:
            listener.note(f"lmpnn answers, because hybrid cannot be fitted: {one_line(error)}")
        return self.get(LMPNN, listener)

    def _make(self, name: str, listener: Listener) -> FittedMethod:
        if name == LMPNN:
            return FittedMethod(self.network, name=name)
        if name == CQD_BEAM:
            settings = load_settings(CqdSettings, [DEFAULT])
            beam = CqdBeam.of(self.network.model.backbone, settings)
            return FittedMethod(beam, name=name, settings=vars(settings))
        fitting, defaults = self._needed(name), load_settings(SearchSettings, [DEFAULT])
        return fitting.method(name, defaults, listener)

    def _needed(self, purpose: str) -> Fitting:
        if self.fitting is None:
            raise RunError(
                f"{purpose} needs the graph of the run, and it was not found; say where it is with "
                "--dataset DIR (in Python: dataset=)"
            )
        return self.fitting
