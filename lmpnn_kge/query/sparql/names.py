"""The terms of a SPARQL query: IRIs, prefixed names, variables and blank nodes become our terms."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin

from rdflib.plugins.sparql.parserutils import CompValue
from rdflib.term import BNode, URIRef
from rdflib.term import Variable as SparqlVariable

from lmpnn_kge.errors import QueryError, one_line, short
from lmpnn_kge.query.formula import Constant, Term, Variable
from lmpnn_kge.query.iri import BLANK, name_of


@dataclass(frozen=True)
class Names:
    """The prefixes of a query, and its base, which completes relative IRIs."""

    prefixes: dict[str, str]
    base: str

    @classmethod
    def declared(cls, prologue: Any) -> Names:
        """The names of BASE and PREFIX, in their order."""
        names = cls({}, "")
        for declaration in prologue:
            iri = names.resolve(declaration.iri)
            if declaration.name == "Base":
                names = cls(names.prefixes, iri)
            else:
                names = cls({**names.prefixes, declaration.prefix or "": iri}, names.base)
        return names

    def resolve(self, iri: str) -> str:
        """An IRI, completed by the base if it is relative."""
        try:
            return urljoin(self.base, iri) if self.base else str(iri)
        except ValueError as error:
            raise QueryError(f"<{short(iri)}> is not an IRI: {one_line(error)}") from error

    def name(self, node: Any) -> str:
        """The name that an IRI or a prefixed name stands for."""
        if isinstance(node, URIRef):
            return name_of(self.resolve(node))
        prefix = node.prefix or ""
        if prefix not in self.prefixes:
            raise QueryError(
                f"the prefix {short(prefix)}: is not declared; begin with PREFIX "
                f"{short(prefix)}: <…>"
            )
        local = re.sub(r"\\(.)", r"\1", node.localname or "")  # \/ is an escaped /
        return name_of(self.prefixes[prefix] + local)

    def term(self, node: Any) -> Term:
        """A term of a triple pattern or a FILTER; a blank node is a variable."""
        if isinstance(node, SparqlVariable):
            return Variable(str(node))
        if isinstance(node, BNode):
            return Variable(BLANK + str(node))
        if is_iri(node):
            return Constant(self.name(node))
        text = node.string if isinstance(node, CompValue) and node.name == "literal" else node
        raise QueryError(
            f"the literal {short(repr(str(text)))} cannot be asked for: a graph has entities only; "
            "write the IRI of an entity"
        )


def is_iri(node: Any) -> bool:
    """Whether a node is an IRI or a prefixed name."""
    return isinstance(node, URIRef) or (isinstance(node, CompValue) and node.name == "pname")
