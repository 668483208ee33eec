"""Random SPARQL: by the grammar over the names of a graph, with parts that are wrong, damaged."""

from random import Random

from lmpnn_kge.query.iri import iri_of

from .questions import Names

#: What a query can have that cannot be asked, or that is not SPARQL.
WRONG = (
    "OPTIONAL { ?a ?p ?c }", "BIND(1 AS ?z)", "<\\uD800>", '"\\uDFFF"', "(" * 200, "{" * 300,
    "[" * 90, "?a <\0> ?b", "SERVICE <http://127.0.0.1/> {}", "?a <r>* ?b", "FILTER(?a < 3)",
)  # fmt: skip

COLUMNS = ("?a", "?a", "?a", "?a ?score ?known", "?a ?label", "*", "?a ?b", "(COUNT(?a) AS ?n)")
ENDS = ("", "", "", "", "", " LIMIT 3", " LIMIT 0", f" LIMIT {10**30}", " OFFSET 2", " #\xe9")
DAMAGE = ("", "\0", "{", "\ud800", '"', "<", "'''")


class Queries:
    """Queries over the names of a graph."""

    def __init__(self, random: Random, names: Names):
        self.random = random
        self.entities, self.relations = ([iri_of(name) for name in part] for part in names)

    def query(self) -> str:
        random = self.random
        patterns = f"{self.triple('?a')} {self.pattern(random.randrange(4))}"
        text = f"SELECT {random.choice(COLUMNS)} {{ {patterns} }}{random.choice(ENDS)}"
        if random.random() < 0.1:
            place = random.randrange(len(text))
            text = text[:place] + random.choice(DAMAGE) + text[place + 1 :]
        return text

    def term(self) -> str:
        return self.random.choice(["?a", "?b", "?c", f"<{self.random.choice(self.entities)}>"])

    def triple(self, first: str | None = None) -> str:
        return f"{first or self.term()} <{self.random.choice(self.relations)}> {self.term()} ."

    def pattern(self, depth: int) -> str:
        triple = self.triple()
        match self.random.randrange(12 if depth else 4):
            case 4 | 5:
                return f"{triple} FILTER NOT EXISTS {{ {self.pattern(depth - 1)} }}"
            case 6:
                return f"{{ {self.pattern(depth - 1)} }} UNION {{ {self.pattern(depth - 1)} }}"
            case 7 | 8:
                return f"{triple} MINUS {{ {self.pattern(depth - 1)} }}"
            case 9:
                return f"{triple} FILTER({self.term()} != {self.term()})"
            case 10:
                return f"{triple} VALUES ?a {{ {self.term()} {self.term()} }}"
            case 11:
                return f"{triple} {self.random.choice(WRONG)}"
        return triple
