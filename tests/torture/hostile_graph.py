"""A run on a graph whose names are markup, code and whatever else a page could stumble over."""

from pathlib import Path
from random import Random

from lmpnn_kge import KnowledgeGraph, Run
from lmpnn_kge.runs.pretrain import pretrain
from lmpnn_kge.runs.train import train

from ..toy_runs import sample_few, tiny

MARKUP = "<img src=x onerror=alert(1)>"

ENTITIES = [
    MARKUP, "</script><script>alert(2)</script>", '"><svg onload=alert(3)>', "a&b;c", "]]>", "<!--",
    "'; DROP TABLE edges; --", "%00%ff", "..", "../../etc/passwd", "?x", "=1+1", "-", "'",
    'a name with (brackets), commas & "quotes"', "javascript:alert(4)", "Ünïcödé 漢字 🦊",
    "\u202eright to left", "_:blank", "http://example.org/a?b=c#d", "{{7*7}}${7*7}", "x" * 300,
    "&lt;b&gt;", "back\\slash",
]  # fmt: skip

RELATIONS = ["<b onmouseover=alert(5)>likes</b>", "r&d", "knows", "http://example.org/p"]

LABELS = {"a&b;c": "<script>alert(6)</script>", "..": 'x" onclick="alert(7)'}

#: The name of its folder.
RUN = "run <i>&"


def write_run(inputs: Path) -> None:
    """The graph, and a run on it that has all that questions need."""
    random = Random(3)
    triples = {tuple(map(random.choice, (ENTITIES, RELATIONS, ENTITIES))) for _ in range(220)}
    triples |= {(name, "knows", MARKUP) for name in ENTITIES}
    made = KnowledgeGraph.from_triples(sorted(triples), labels=LABELS, name="<u>graph</u>")
    graph = made.save(inputs / "graph")
    checkpoint = inputs / "complex.safetensors"
    pretrain("complex", graph, checkpoint, settings={"dim": 8, "epochs": 2})
    sample_few(graph, inputs / "queries", types=("1p", "2p", "2in"))
    run = inputs / RUN
    train(
        checkpoint, dataset=inputs / "graph", queries=inputs / "queries", out=run, settings=tiny()
    )
    Run.open(run).prepare("hybrid")
