"""The content of every response of the HTTP interface."""

from __future__ import annotations

from typing import Any, TypedDict


class Named(TypedDict):
    """An entity or a relation."""

    id: str
    label: str


class CheckedAtom(TypedDict):
    """A condition with its status; relation, head and tail are those of a single edge."""

    text: str
    status: str
    probability: float | None
    negated: bool
    relation: Named | None
    head: Named | None
    tail: Named | None


class Node(TypedDict):
    """A node of a drawing, by its centre and size."""

    term: str
    kind: str
    label: str
    tag: str
    id: str | None
    frame: int | None
    x: float
    y: float
    width: float
    height: float


class Tip(TypedDict):
    """The point of an arrow."""

    x: float
    y: float
    direction: float


class Edge(TypedDict):
    """An edge of a drawing: its text by centre and size, its line as the data of an SVG path."""

    name: str
    look: str
    words: str
    arrow: bool
    head: int
    tail: int
    frame: int | None
    negated: bool
    equality: bool
    path: str
    tip: Tip
    x: float
    y: float
    width: float
    height: float


class Frame(TypedDict):
    """The frame of a group that is denied as a whole."""

    caption: str
    look: str
    caption_x: float
    caption_y: float
    x: float
    y: float
    width: float
    height: float


class Graph(TypedDict):
    """A drawing of one disjunct."""

    width: float
    height: float
    nodes: list[Node]
    edges: list[Edge]
    frames: list[Frame]


class Reason(TypedDict):
    """One way in which an entity answers; the graph is there if one answer is explained."""

    disjunct: str
    values: dict[str, Named]
    truth: float
    atoms: list[CheckedAtom]
    title: str
    graph: Graph | None


class Answer(TypedDict):
    """An answer, as `ask --json` prints it, with its rank."""

    rank: int
    id: str
    label: str
    score: float | None
    probability: float | None
    known: bool | None
    confirmed: bool | None
    mark: str
    reasons: list[Reason]


class Answers(TypedDict):
    """Predicted answers; complete is false if the server's limit of rows cut them."""

    run: str
    question: str
    method: str
    estimated: bool
    notes: list[str]
    answers: list[Answer]
    more: bool
    complete: bool
    seconds: float


class ExactAnswers(TypedDict):
    """Exact answers; complete is false if not all of them are listed from the offset on."""

    run: str
    question: str
    split: str
    answers: list[Named]
    total: int
    complete: bool
    seconds: float


class ExplainedAnswer(TypedDict):
    """An entity, and whether the graph knows it as an answer."""

    id: str
    label: str
    known: bool
    confirmed: bool


class Explanation(TypedDict):
    """The reasons for one answer."""

    run: str
    question: str
    answer: ExplainedAnswer
    reasons: list[Reason]


class Problem(TypedDict):
    """What is wrong, in one line; for a question also where, from column 0."""

    message: str
    excerpt: str | None
    column: int | None


class Drawing(TypedDict):
    """A question that was understood, in both languages, and drawn; or what is wrong with it."""

    question: str
    formula: str
    is_sparql: bool
    sparql: str | None
    notes: list[str]
    disjuncts: list[Graph]
    error: Problem | None


class Edited(TypedDict):
    """The question after an edit; empty if nothing is left of it."""

    question: str


class Completion(TypedDict):
    """A name that fits; count is the number of its known edges."""

    insert: str
    id: str
    label: str
    type: str | None
    count: int | None


class Completions(TypedDict):
    """Names that fit, for the part of the text from start to end."""

    start: int
    end: int
    role: str
    items: list[Completion]


class Related(TypedDict):
    """Known edges of an entity by one relation, at one end of it."""

    relation: Named
    end: str
    total: int
    entities: list[Named]


class PredictedEntity(TypedDict):
    """The other end of a predicted edge."""

    id: str
    label: str
    probability: float | None
    score: float | None
    confirmed: bool | None


class Predicted(TypedDict):
    """Predicted edges of an entity by one relation, at one end of it."""

    relation: Named
    end: str
    entities: list[PredictedEntity]


class Entity(TypedDict):
    """What a graph knows of an entity, and what is predicted."""

    run: str
    id: str
    label: str
    type: str | None
    known: list[Related]
    predicted: list[Predicted]


class GraphSize(TypedDict):
    """The graph of a run."""

    name: str
    entities: int
    relations: int
    train: int
    valid: int
    test: int


class Example(TypedDict):
    """A question that the graph of a run can answer, and its type."""

    question: str
    type: str


class RunSummary(TypedDict):
    """A run that is served."""

    name: str
    title: str
    backbone: str
    graph: GraphSize | None
    methods: list[str]
    method: str
    examples: list[Example]
    notes: list[str]


class Fact(TypedDict):
    """A named value of the provenance."""

    name: str
    value: str


class Bin(TypedDict):
    """Claims of similar probability, and the share of them that hold."""

    probability: float
    share: float
    count: float


class Calibration(TypedDict):
    """How well probabilities agree with what holds, on test."""

    error: float
    bins: list[Bin]


class RunDetails(RunSummary):
    """A run with its results, calibration, settings and provenance."""

    results: dict[str, Any]
    calibration: dict[str, Calibration]
    settings: dict[str, Any]
    provenance: list[Fact]


class ServerLimits(TypedDict):
    """The limits of the server for a request."""

    seconds: float
    rows: int
    characters: int
    lines: int
    body: int


class Runs(TypedDict):
    """The runs that are served."""

    runs: list[RunSummary]
    limits: ServerLimits


class Failure(TypedDict):
    """A request that cannot be answered."""

    error: Problem


class Health(TypedDict):
    """That the server answers."""

    status: str
    version: str
