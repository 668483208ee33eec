"""What a SPARQL endpoint can do: a SPARQL 1.1 Service Description in Turtle, and a page."""

from __future__ import annotations

from html import escape
from typing import Any
from urllib.parse import quote

from lmpnn_kge.graph.triples import SPLITS
from lmpnn_kge.serve.served_run import ServedRun
from lmpnn_kge.serve.sparql_results import FORMATS, Value

TITLE = "SPARQL endpoint of lmpnn-kge"

ABOUT = (
    "SELECT queries with one variable, by the edges of the graph (answers=exact) or also by edges "
    "that are predicted (answers=predicted). A query can also select ?label, ?score, ?probability, "
    "?known and ?confirmed, or sort by them. ASK is answered by the edges of the graph."
)


def to_turtle(path: str, served: ServedRun) -> str:
    """The description of the endpoint at a path."""
    formats = ",\n    ".join(f"<{format_.iri}>" for format_ in FORMATS)
    return f"""@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix sd: <http://www.w3.org/ns/sparql-service-description#> .
@prefix void: <http://rdfs.org/ns/void#> .

[] a sd:Service ;
  sd:endpoint <{quote(path)}> ;
  rdfs:label {Value("literal", TITLE).turtle} ;
  rdfs:comment {Value("literal", ABOUT).turtle} ;
  sd:supportedLanguage sd:SPARQL11Query ;
  sd:resultFormat {formats} ;
  sd:defaultDataset [
    a sd:Dataset ;
    sd:defaultGraph [
      a sd:Graph ;
      rdfs:label {Value("literal", served.name).turtle}{_sizes(served)}
    ]
  ] .
"""


def _sizes(served: ServedRun) -> str:
    graph = served.run.graph
    if graph is None:
        return ""
    triples = sum(len(graph.triples(split)) for split in SPLITS)
    return (
        f" ;\n      void:triples {triples} ;\n      void:entities {graph.num_entities} ;\n"
        f"      void:properties {graph.num_relations}"
    )


def to_page(path: str, served: ServedRun) -> str:
    """A page for people who open the address of the endpoint in a browser."""
    formats = "\n".join(
        f"<tr><td><code>{escape(format_.media_types[0])}</code></td>"
        f"<td><code>format={escape(format_.name)}</code></td></tr>"
        for format_ in FORMATS
    )
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{TITLE}</title>
<link rel="stylesheet" href="/static/style.css">
</head>
<body>
<main class="plain">
<h1>{TITLE}</h1>
<p>This is the address of a SPARQL 1.1 endpoint for the run <code>{escape(served.name)}</code>. Give
it to a SPARQL client, or send a query as the parameter <code>query</code>. To ask in a browser, use
<a href="/">the page</a>, which also takes SPARQL.</p>
<p>{escape(ABOUT)}</p>
<h2>Formats</h2>
<table><tbody>
{formats}
</tbody></table>
</main>
</body>
</html>
"""


#: The description by media type; the first one is taken if a client does not mind.
DESCRIPTIONS: dict[str, Any] = {"text/turtle": to_turtle, "text/html": to_page}
