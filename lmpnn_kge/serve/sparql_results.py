"""Results of SELECT and ASK in the formats of SPARQL 1.1: JSON, XML, CSV and TSV."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal
from xml.sax.saxutils import escape, quoteattr

from lmpnn_kge.query.iri import BLANK, iri_of

XSD = "http://www.w3.org/2001/XMLSchema#"

#: Characters that no document in XML 1.0 can have, not even escaped.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

_TURTLE = str.maketrans(
    {"\\": "\\\\", '"': '\\"', "\t": "\\t", "\n": "\\n", "\r": "\\r", "\b": "\\b", "\f": "\\f"}
)


@dataclass(frozen=True)
class Value:
    """A value of a variable: an IRI, a blank node or a literal."""

    type: Literal["uri", "bnode", "literal"]
    text: str
    datatype: str | None = None

    @property
    def turtle(self) -> str:
        """The value as Turtle writes it."""
        if self.type == "uri":
            return f"<{self.text}>"
        if self.type == "bnode":
            return BLANK + self.text
        datatype = "" if self.datatype is None else f"^^<{self.datatype}>"
        return f'"{self.text.translate(_TURTLE)}"{datatype}'


def entity_value(name: str) -> Value:
    """An entity as an IRI or, if RDF gave it no name, as a blank node."""
    if name.startswith(BLANK):
        return Value("bnode", _blank_label(name.removeprefix(BLANK)))
    return Value("uri", iri_of(name))


def _blank_label(label: str) -> str:
    """A label that every format can have; different labels stay different."""
    return re.sub("[^A-Za-z0-9]", lambda found: f"_{ord(found[0]):x}_", label) or "_"


def literal(value: str | float | bool | None) -> Value | None:
    """A literal with its type; None has no value."""
    match value:
        case None | str():
            return None if value is None else Value("literal", value)
        case bool():
            return Value("literal", str(value).lower(), f"{XSD}boolean")
        case _:
            return Value("literal", repr(float(value)), f"{XSD}double")


@dataclass(frozen=True)
class Solutions:
    """The result of SELECT: the names of its variables, and a row of values for each solution."""

    variables: tuple[str, ...]
    rows: Sequence[Sequence[Value | None]]  # None: the variable has no value


def to_json(solutions: Solutions) -> str:
    bindings = [
        {
            name: _json_value(value)
            for name, value in zip(solutions.variables, row, strict=True)
            if value is not None
        }
        for row in solutions.rows
    ]
    content = {"head": {"vars": solutions.variables}, "results": {"bindings": bindings}}
    return json.dumps(content, separators=(",", ":"))


def _json_value(value: Value) -> dict[str, str]:
    content = {"type": value.type, "value": value.text}
    return content if value.datatype is None else {**content, "datatype": value.datatype}


def to_xml(solutions: Solutions) -> str:
    """XML in which characters that it cannot hold are replaced by U+FFFD."""
    head = "".join(f"<variable name={quoteattr(name)}/>" for name in solutions.variables)
    results = "".join(
        "<result>{}</result>\n".format(
            "".join(
                f"<binding name={quoteattr(name)}>{_xml_value(value)}</binding>"
                for name, value in zip(solutions.variables, row, strict=True)
                if value is not None
            )
        )
        for row in solutions.rows
    )
    return _xml(head, f"<results>\n{results}</results>")


def _xml(head: str, body: str) -> str:
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<sparql xmlns="http://www.w3.org/2005/sparql-results#">\n'
        f"<head>{head}</head>\n{body}\n</sparql>\n"
    )


def _xml_value(value: Value) -> str:
    text = escape(_NOT_XML.sub("\ufffd", value.text), {"\r": "&#13;"})  # a reader drops a bare one
    datatype = "" if value.datatype is None else f" datatype={quoteattr(value.datatype)}"
    return f"<{value.type}{datatype}>{text}</{value.type}>"


def to_csv(solutions: Solutions) -> str:
    """Plain values, which do not say what is an IRI and what is a literal."""
    stream = io.StringIO()
    writer = csv.writer(stream)  # its lines end in CR and LF, as those of the format
    writer.writerow(solutions.variables)
    for row in solutions.rows:
        writer.writerow(map(_csv_value, row))
    return stream.getvalue()


def _csv_value(value: Value | None) -> str:
    if value is None:
        return ""
    return value.turtle if value.type == "bnode" else value.text


def to_tsv(solutions: Solutions) -> str:
    """Values as Turtle writes them."""
    lines = ["\t".join(f"?{name}" for name in solutions.variables)]
    lines += [
        "\t".join("" if value is None else value.turtle for value in row) for row in solutions.rows
    ]
    return "\n".join(lines) + "\n"


def boolean_json(value: bool) -> str:
    return json.dumps({"head": {}, "boolean": value}, separators=(",", ":"))


def boolean_xml(value: bool) -> str:
    return _xml("", f"<boolean>{str(value).lower()}</boolean>")


# The standard has no table for ASK: this one is that of Apache Jena.
def boolean_csv(value: bool) -> str:
    return f"_askResult\r\n{str(value).lower()}\r\n"


def boolean_tsv(value: bool) -> str:
    return f"?_askResult\n{str(value).lower()}\n"


@dataclass(frozen=True)
class Format:
    """A format of results: its name, media types and writers."""

    name: str
    media_types: tuple[str, ...]  # the first one is its own
    write: Callable[[Solutions], str]
    write_boolean: Callable[[bool], str]
    iri: str  # by which a service description names it


_FORMATS = "http://www.w3.org/ns/formats/SPARQL_Results_"

#: The formats, those that are taken if a client does not mind first.
FORMATS = (
    Format(
        "json",
        ("application/sparql-results+json", "application/json"),
        to_json,
        boolean_json,
        f"{_FORMATS}JSON",
    ),
    Format(
        "xml",
        ("application/sparql-results+xml", "application/xml"),
        to_xml,
        boolean_xml,
        f"{_FORMATS}XML",
    ),
    Format("csv", ("text/csv",), to_csv, boolean_csv, f"{_FORMATS}CSV"),
    Format("tsv", ("text/tab-separated-values",), to_tsv, boolean_tsv, f"{_FORMATS}TSV"),
)

#: The format of every media type that a client can ask for.
BY_TYPE = {media_type: format_ for format_ in FORMATS for media_type in format_.media_types}
