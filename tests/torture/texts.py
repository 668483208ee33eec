"""Texts of every format: files of triples and of labels, SPARQL, settings, patterns and tables.

A case changes the words of a sound text, or its bytes, and a command that takes it runs.
"""

import gzip
import re
from pathlib import Path
from random import Random
from typing import Any

from ..conftest import TOY
from .campaign import Campaign, Outcome, Steps, command
from .edits import apply_edit, draw_edit

TRIPLES = [(f"e{n % 7}", f"r{n % 3}", f"e{n * n % 11}") for n in range(40)]

#: Words of any format, to put in place of others.
WORDS = (
    "", " ", "\n", "\t", "\r", "\0", '"', "'", "\\", "<", ">", "{", "}", "[", "]", "(", ")", "&",
    "*", "|", "!", "?", "%", "#", ";", ",", ".", "^", "@en", "^^", "_:b", "a", "<http://x/a>", "e0",
    "<>", "<<", ">>", "http://x/%zz", "\ufeff", "\u202e", "é" * 300, "\\ud800", "\\u0000",
    "9" * 999,
    "-1", "1e999", "NaN", "null", "true", "NOT EXISTS", "FILTER", "OPTIONAL", "UNION", "MINUS",
    "SELECT", "WHERE", "VALUES", "BIND", "SERVICE <http://x/>", "GRAPH ?g", "LIMIT 0", "?x", "$x",
    "(" * 500, "{" * 500, "[" * 500, "!(" * 150, "&a [*a, *a]", "<!ENTITY a '&b;'>", "!!python/x y",
    "? : ", "- " * 400, "x" * 140_000, "CONSTRUCT", "ASK", "GROUP BY ?x", "kge:%00", "<kge:>", "/*",
)  # fmt: skip

SPARQL = (
    "SELECT ?x WHERE { <kge:e0> <kge:r0> ?x }",
    "PREFIX k: <kge:> SELECT DISTINCT ?x WHERE { k:e0 k:r0 ?y . ?y k:r1 ?x } LIMIT 5",
    "SELECT ?x { { ?x <kge:r0> <kge:e1> } UNION { ?x <kge:r1> <kge:e2> } FILTER(?x != <kge:e3>) }",
    "SELECT ?x { ?x <kge:r0> ?y FILTER NOT EXISTS { ?x <kge:r1> ?z . ?z <kge:r2> <kge:e4> } }",
    "SELECT ?x { ?x <kge:r0>/<kge:r1>|^<kge:r2> <kge:e1> MINUS { ?x <kge:r0> <kge:e5> } }",
    "SELECT ?x { VALUES ?y { <kge:e1> <kge:e2> } ?x <kge:r0> ?y . FILTER(?y IN (<kge:e1>)) }",
)

SETTINGS = "hidden: 8\nepochs: 1\nunion: dnf\nlearning_rate: 0.001\nvalidation_queries: 4\n"
PATTERNS = "mine: r1(s1,f)&!r2(e1,f)\nother: (r1(s1,e1)&r2(e1,f))|r3(s2,f)\n"
TABLE = "one: {epsilon: 0.5}\ntwo: {union: merge, hidden: 8}\n"
LABELS = "id\tlabel\ttype\n" + "".join(f"e{n}\tEntity {n}\tthing\n" for n in range(11))


def graph_texts() -> dict[str, bytes]:
    """The same graph in every format, by the endings of files."""

    def rows(form: str) -> str:
        return "".join(form.format(*triple) for triple in TRIPLES)

    lines = rows("<http://x/{0}> <http://x/{1}> <http://x/{2}> .\n")
    label = "<http://www.w3.org/2000/01/rdf-schema#label>"
    turtle = "@prefix x: <http://x/> .\n"
    turtle += rows("x:{0} x:{1} x:{2} ;\n x:r0 [ x:r1 ( x:e1 x:e2 ) ] .\n")
    xml = '<?xml version="1.0"?>\n<!DOCTYPE rdf:RDF [<!ENTITY x "http://x/">]>\n<rdf:RDF '
    xml += 'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:x="http://x/">\n'
    element = '<rdf:Description rdf:about="&x;{0}"><x:{1} rdf:resource="http://x/{2}"/>'
    linked = rows('{{"@id": "http://x/{0}", "http://x/{1}": {{"@id": "http://x/{2}"}}}},\n')
    texts = {
        "tsv": rows("{0}\t{1}\t{2}\n"),
        "csv": "head,relation,tail\n" + rows('"{0}",{1},{2}\n'),
        "jsonl": rows('{{"head": "{0}", "relation": "{1}", "tail": "{2}"}}\n'),
        "nt": f'{lines}<http://x/e0> {label} "E \\u00e9"@en .\n_:b <http://x/r0> _:c .\n',
        "nq": lines.replace(" .\n", " <http://x/g> .\n"),
        "ttl": turtle,
        "trig": f"{turtle}<http://x/g> {{ <http://x/a> a <http://x/b> }}\n",
        "rdf": xml + rows(f"{element}</rdf:Description>\n") + "</rdf:RDF>\n",
        "jsonld": f"[{linked[:-2]}]",
    }
    return {ending: text.encode() for ending, text in texts.items()}


class Texts(Campaign):
    name = "texts"
    memory = 3 << 30
    seconds = 60
    weight = 3

    def prepare(self, inputs: Path) -> None:
        import duckdb

        texts = graph_texts()
        for ending, content in texts.items():
            (inputs / f"graph.{ending}").write_bytes(content)
            (inputs / f"graph.{ending}.gz").write_bytes(gzip.compress(content))
        rows = ", ".join(map(str, TRIPLES))
        duckdb.execute(
            f"COPY (SELECT * FROM (VALUES {rows}) AS t(head, relation, tail)) "
            f"TO '{inputs / 'graph.parquet'}' (FORMAT parquet)"
        )
        for number, text in enumerate(SPARQL):
            (inputs / f"{number}.sparql").write_text(text)
        for name, text in (
            ("settings.yaml", SETTINGS), ("patterns.yaml", PATTERNS), ("table.yaml", TABLE),
            ("labels.tsv", LABELS), ("labels.csv", LABELS.replace("\t", ",")),
        ):  # fmt: skip
            (inputs / name).write_text(text)

    def draw(self, number: int, random: Random, inputs: Path) -> Steps:
        file = random.choice(sorted(inputs.iterdir())).name
        steps: Steps = [["file", file, random.random()]]
        packed = file.endswith((".gz", ".parquet"))
        for _ in range(random.choice((1, 1, 2, 4))):
            if packed or random.random() < 0.4:
                inner = file.endswith(".gz") and random.random() < 0.7
                steps.append(["inner" if inner else "bytes", *draw_edit(random)])
            else:
                kind = random.choice(("replace", "put", "swap", "drop", "repeat"))
                steps.append([kind, random.random(), random.choice(WORDS), random.random()])
        return steps

    def run(self, steps: Steps, inputs: Path, scratch: Path) -> Outcome:
        name, share = next((s[1:] for s in steps if s[0] == "file"), ["graph.tsv", 0])
        content = (inputs / name).read_bytes()
        if any(step[0] == "inner" for step in steps):
            content = gzip.decompress(content)
            for step in steps:
                content = apply_edit(content, step[1:]) if step[0] == "inner" else content
            content = gzip.compress(content, 1)
        for step in steps:
            if step[0] == "bytes":
                content = apply_edit(content, step[1:])
            elif step[0] not in ("file", "inner"):
                content = change_words(content, *step)
        file = scratch / name
        file.write_bytes(content)
        return use(file, share)


def change_words(content: bytes, kind: str, share: float, word: str, other: float) -> bytes:
    """A text with one of its words replaced, repeated, dropped, swapped, or with one more."""
    words: list[Any] = re.findall(r"\w+|\s+|[^\w\s]", content.decode(errors="surrogateescape"))
    if not words:
        return content
    at, there = int(share * len(words)), int(other * len(words))
    match kind:
        case "replace":
            words[at] = word
        case "put":
            words.insert(at, word)
        case "swap":
            words[at], words[there] = words[there], words[at]
        case "drop":
            del words[at : at + 1 + there % 5]
        case "repeat":
            words[at:at] = words[at : at + 1 + there % 50]
    return "".join(words).encode(errors="surrogateescape")


def use(file: Path, share: float) -> Outcome:
    """Run one of the commands that take a text."""
    dataset, graph = TOY / "dataset", file.parent / "graph.tsv"
    checkpoint = TOY / "checkpoints" / "rotate.package.pt"
    match file.suffix:
        case ".sparql":
            text = file.read_bytes().decode(errors="replace").replace("\0", "")
            if text.startswith("-"):
                return Outcome.REFUSED
            jobs: list[list[str | Path]] = [
                ["translate", text],
                ["draw", text, "-o", "picture.svg"],
                ["answer", text, "--dataset", dataset, "--timeout", "5"],
            ]
        case ".yaml":
            jobs = [
                ["config", "show", "--config", file],
                ["sample", "--dataset", dataset, "-o", "out", "--patterns", file, "--count", "1"],
                [
                    "table",
                    file,
                    "--checkpoint",
                    checkpoint,
                    "--dataset",
                    dataset,
                    "--queries",
                    "no",
                ],
            ]
        case _ if file.stem == "labels":
            graph.write_text("".join("\t".join(triple) + "\n" for triple in TRIPLES))
            jobs = [["split", graph, "-o", "out", "--no-header", "--labels", file]]
        case _:
            jobs = [
                ["split", file, "-o", "out"],
                ["split", file, "-o", "out", "--skip-bad", "5", "--no-header"],
                ["graph", file, "--json"],
                ["answer", "r0(e0, ?)", "--dataset", file],
            ]
    return command(*jobs[int(share * len(jobs))])
