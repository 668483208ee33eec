"""RDF by pyoxigraph (extra `rdf`): N-Triples, N-Quads, Turtle, TriG, RDF/XML and JSON-LD."""

from __future__ import annotations

import dataclasses
import io
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from lmpnn_kge.errors import DatasetError, QueryError, one_line
from lmpnn_kge.files import open_file
from lmpnn_kge.graph.formats.labels import Labelled, one_space
from lmpnn_kge.graph.formats.ntriples_columns import read_plain
from lmpnn_kge.graph.formats.rdf_xml import check_xml
from lmpnn_kge.graph.formats.reading import ReadOptions, Report, fault_of
from lmpnn_kge.graph.formats.streams import has_hole, most_rows, open_bytes, reading, too_many_rows
from lmpnn_kge.graph.numbered import Numbered, Numbering
from lmpnn_kge.query.iri import SCHEME, name_of

#: The formats by the endings of their files, with their names in pyoxigraph.
FORMATS = {
    ".nt": "N_TRIPLES", ".nq": "N_QUADS", ".ttl": "TURTLE", ".trig": "TRIG", ".rdf": "RDF_XML",
    ".owl": "RDF_XML", ".xml": "RDF_XML", ".jsonld": "JSON_LD",
}  # fmt: skip

#: Properties whose literals are labels; the first that an entity has counts.
LABELS = (
    "http://www.w3.org/2004/02/skos/core#prefLabel",
    "http://www.w3.org/2000/01/rdf-schema#label",
    "http://schema.org/name",
    "https://schema.org/name",
)

#: The language of labels, unless the user says otherwise.
LANGUAGE = "en"

#: What an IRI without a base is resolved against, in formats that allow such IRIs.
BASE = "file:///"

#: A name that pyoxigraph gives to a blank node that has none.
MADE_UP = re.compile("_:[0-9a-f]{20,32}")


def read(
    file: Path, suffix: str, options: ReadOptions, report: Report
) -> tuple[Numbered, Labelled]:
    """The triples of a file whose objects are no literals, and its labels.

    IRIs are ids as they are, and a blank node is `_:` with its name in the file. A label is the
    literal of one of LABELS, or else the IRI with the prefix that the file has for it.
    """
    _pyoxigraph(file)
    with reading(file), open_file(file):
        pass
    fast = read_plain(file) if suffix == ".nt" and not has_hole(file) else None
    if fast is not None:
        plain, rest = fast
        attempt = dataclasses.replace(report, notes=[*report.notes])
        # A line that is wrong is found, with its number, by parsing the whole file.
        with suppress(_NotRdf):
            numbered, labels = _collect(file, suffix, io.BytesIO(rest), options, attempt)
            report.skipped, report.notes = attempt.skipped, attempt.notes
            return Numbered.joined([_named(plain), numbered]), labels
    if FORMATS[suffix] == "RDF_XML":
        with reading(file), open_bytes(file) as stream:
            check_xml(file, stream)
    with reading(file), open_bytes(file) as stream:
        return _collect(file, suffix, stream, options, report)


class _NotRdf(DatasetError):
    """A text that is not RDF."""


def _collect(
    file: Path, suffix: str, stream: IO[bytes], options: ReadOptions, report: Report
) -> tuple[Numbered, Labelled]:
    """The triples and the labels of a stream."""
    from pyoxigraph import BlankNode, Literal, NamedNode

    numbering = Numbering()
    labels = _Labels((options.language or LANGUAGE).lower())
    literals: Counter[str] = Counter()
    add, node, nodes = numbering.add, _Nodes(), (NamedNode, BlankNode)
    parser, most = _parser(file, suffix, stream), most_rows(file)
    for count, quad in enumerate(_quads(file, parser)):
        if count == most:
            raise too_many_rows(file)
        subject, predicate, value = quad.subject, quad.predicate, quad.object
        if type(value) is NamedNode and type(subject) is NamedNode:
            add(subject.value, predicate.value, value.value)
        elif type(value) is Literal:
            if predicate.value in LABELS and type(subject) in nodes:
                labels.add(node.id(subject), predicate.value, value.value, value.language)
            else:
                literals[predicate.value] += 1
        elif type(subject) in nodes and type(value) in nodes:
            add(node.id(subject), predicate.value, node.id(value))
        else:
            report.bad(str(file), "has a triple about a triple, which a graph cannot hold")
    if literals:
        report.note(
            f"{file}: {literals.total():,} triples with a literal are left out, such as those of "
            f"{literals.most_common(1)[0][0]}"
        )
    numbered = _named(numbering.result())
    return numbered, labels.result(numbered, parser.prefixes)


def _named(numbered: Numbered) -> Numbered:
    """Names instead of the IRIs that we have made of them."""
    entities, relations = list(map(_name, numbered.entities)), list(map(_name, numbered.relations))
    if entities == numbered.entities and relations == numbered.relations:
        return numbered
    # Two spellings of an IRI can be one name.
    nothing = Numbered([], [], numbered.triples[:0])
    return Numbered.joined([nothing, Numbered(entities, relations, numbered.triples)])


def _name(iri: str) -> str:
    """The name that an IRI of ours stands for; any other IRI is its own name."""
    if not iri.startswith(SCHEME):
        return iri
    try:
        name = name_of(iri)
    except QueryError:
        return iri
    return iri if fault_of(name) else name


class _Nodes:
    """The ids of nodes. Blank nodes without a name in the file are numbered as they come."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def id(self, node: Any) -> str:
        name = str(node)
        if not name.startswith("_:"):
            return _name(node.value)
        if MADE_UP.fullmatch(name):  # pyoxigraph makes up another one each time
            return f"_:genid{self.numbers.setdefault(name, len(self.numbers) + 1)}"
        return name


def _pyoxigraph(file: Path) -> Any:
    try:
        import pyoxigraph
    except ImportError:
        raise DatasetError(
            f"{file} is RDF, which needs the extra rdf: run `pip install 'lmpnn-kge[rdf]'`"
        ) from None
    return pyoxigraph


def _parser(file: Path, suffix: str, stream: IO[bytes]) -> Any:
    pyoxigraph, name = _pyoxigraph(file), FORMATS[suffix]
    base = None if name in ("N_TRIPLES", "N_QUADS") else BASE
    return pyoxigraph.parse(stream, getattr(pyoxigraph.RdfFormat, name), base_iri=base)


def _quads(file: Path, parser: Any) -> Iterator[Any]:
    """The quads of a file; a syntax error names its line."""
    try:
        yield from parser
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        place = f"{file} line {line}" if line else str(file)
        raise _NotRdf(f"{place} is not readable RDF: {one_line(error)}") from error


class _Labels:
    """Labels as they come: a property before another, and the language before another."""

    def __init__(self, language: str):
        self.language = language
        self.best: dict[str, tuple[int, int, str]] = {}

    def add(self, id_: str, predicate: str, label: str, language: str | None) -> None:
        text = one_space(label)
        if not text:
            return
        candidate = (self._distance(language), LABELS.index(predicate), text)
        if id_ not in self.best or candidate < self.best[id_]:
            self.best[id_] = candidate

    def _distance(self, language: str | None) -> int:
        """How far a language is from the wanted one: en-GB is nearer to en than no language."""
        given = (language or "").lower()
        if given == self.language:
            return 0
        if given.partition("-")[0] == self.language.partition("-")[0]:
            return 1
        return 3 if given else 2

    def result(self, numbered: Numbered, prefixes: dict[str, str]) -> Labelled:
        labels = {id_: label for id_, (_, _, label) in self.best.items()}
        if prefixes:
            for id_ in (*numbered.entities, *numbered.relations):
                if id_ not in labels and (short := _shortened(id_, prefixes)):
                    labels[id_] = short
        return Labelled(labels)


def _shortened(iri: str, prefixes: dict[str, str]) -> str | None:
    """An IRI as prefix:name, by the longest prefix that fits; None if none fits."""
    fitting = [(len(start), name) for name, start in prefixes.items() if iri.startswith(start)]
    if not fitting or iri.startswith("_:"):
        return None
    length, name = max(fitting)
    rest = iri[length:]
    return f"{name}:{rest}" if rest and "/" not in rest and "#" not in rest else None
