"""Spark gives exactly the answers of DuckDB, from the same compiled statements."""

import shutil
import sys
from importlib.util import find_spec

import duckdb
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from lmpnn_kge.cli import main
from lmpnn_kge.errors import LmpnnError, QueryError, TimeLimitError
from lmpnn_kge.graph.database import Database
from lmpnn_kge.graph.engine import EngineOptions
from lmpnn_kge.graph.knowledge_graph import KnowledgeGraph
from lmpnn_kge.graph.parquet import write_edges
from lmpnn_kge.queries.ground import Edges, ground
from lmpnn_kge.queries.sample import Request, Sampler
from lmpnn_kge.query.parser import parse
from lmpnn_kge.query.patterns import BETAE, EFO1, Pattern, named_patterns, parse_pattern
from lmpnn_kge.work.deadline import time_limit

from ..formulas import formulas

MISSING = [name for name in ("pyspark", "sqlglot", "pyarrow") if not find_spec(name)]
if MISSING or not shutil.which("java"):
    pytest.skip(f"Spark needs {', '.join([*MISSING, 'Java'])}", allow_module_level=True)

pytestmark = pytest.mark.long  # a statement takes Spark a second

#: The toy graph and the real one share a session, with little parallelism.
MASTER, MEMORY = "local[2]", "2GB"

#: Entities and relations that random formulas mention.
FEW = 6


@pytest.fixture(scope="module")
def graph(fb15k237):
    return KnowledgeGraph.open(fb15k237 / "dataset")


@pytest.fixture(scope="module")
def spark(graph, tmp_path_factory):
    """FB15k-237 in Spark, from Parquet files in several partitions."""
    from lmpnn_kge.graph.spark_engine import Spark

    folder = tmp_path_factory.mktemp("parquet") / "edges"
    write_edges(folder, *graph.edges, graph.num_entities, graph.num_relations, rows=200_000)
    assert len(list(folder.iterdir())) == 4
    engine = Spark(str(folder), graph.num_entities, MASTER, MEMORY)
    return Database(engine, graph.num_entities)


@pytest.fixture(scope="module")
def edges(graph):
    return Edges.of(graph.edges[0], graph.num_entities, graph.num_relations)


def same(left, right) -> bool:
    columns = [(left.offsets, right.offsets), (left.values, right.values)]
    if left.costs is not None:
        columns.append((left.costs, right.costs))
    return all(np.array_equal(a, b) for a, b in columns)


@pytest.mark.parametrize("name", [*BETAE, *EFO1])
def test_every_type_has_the_answers_of_duckdb(graph, spark, edges, name):
    pattern = named_patterns()[name]
    # Sampling refuses a step that is undone, which `coauthor` always has; its first half has none.
    drawn = parse_pattern("r1(f,e1)&r2(e1,s1)") if name == "coauthor" else pattern
    constants, relations = ground(drawn, edges, 100_000, np.random.default_rng(0))
    chosen = np.arange(len(constants))
    if name == "coauthor":  # with a large relation, there are millions of pairs of authors
        sizes = np.bincount(graph.edges[0][:, 1])[relations % graph.num_relations]
        chosen = np.flatnonzero(sizes.max(1) < 200)
    queries = constants[chosen[:100]], relations[chosen[:100]]
    answers = spark.answer(pattern, *queries)
    assert len(answers) > 20
    assert same(answers, graph.database.answer(pattern, *queries))
    assert len(answers.values)


@pytest.mark.parametrize("name", ["2f-nm", "3f-c"])
def test_tuples_are_those_of_duckdb_up_to_a_limit(graph, spark, edges, name):
    pattern = named_patterns()[name]
    constants, relations = ground(pattern, edges, 10_000, np.random.default_rng(0))
    queries = constants[:50], relations[:50]
    answers = spark.answer(pattern, *queries, limit=20)
    assert same(answers, graph.database.answer(pattern, *queries, limit=20))
    assert answers.counts.max() == 20


@pytest.fixture(scope="module")
def names(graph):
    """Rows of relations with some hundred edges, and of entities that have many of these."""
    triples, _ = graph.edges
    sizes = np.bincount(triples[:, 1])
    relations = np.flatnonzero((sizes > 200) & (sizes < 600))[:FEW]
    among = triples[np.isin(triples[:, 1], relations)]
    return np.argsort(-np.bincount(among[:, 0]), kind="stable")[:FEW], relations


@given(
    formula=formulas(
        st.integers(0, FEW - 1).map("e{}".format), st.integers(0, FEW - 1).map("r{}".format)
    )
)
@settings(
    max_examples=200,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)
def test_random_formulas_have_the_answers_of_duckdb(graph, spark, names, formula):
    entities, relations = names
    pattern = Pattern(formula)
    # Three queries of each formula: its own names, and others in their place.
    shift = np.arange(3)[:, None]
    columns = [
        rows[(np.array([int(name[1:]) for name in places], int)[None] + shift) % FEW]
        for rows, places in ((entities, pattern.constants), (relations, pattern.relations))
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lmpnn_kge.graph.database.MAX_COMBINATIONS", 1e5)
        try:
            expected = graph.database.answer(pattern, *columns)
        except QueryError:  # not connected, or several variables range over all entities
            assume(False)
        assert same(spark.answer(pattern, *columns), expected)


@pytest.mark.parametrize("name", ["2p", "pi", "up", "2in", "pni", "3c"])
def test_missing_edges_and_witnesses_are_those_of_duckdb(graph, spark, edges, name):
    pattern = named_patterns()[name]
    queries = ground(pattern, edges, 100, np.random.default_rng(1))
    costs = spark.missing_edges(pattern, *queries, "valid", "test")
    assert same(costs, graph.database.missing_edges(pattern, *queries, "valid", "test"))
    some = np.arange(0, len(costs.values), max(1, len(costs.values) // 50))
    owners = costs.owners[some]
    asked = queries[0][owners], queries[1][owners], costs.values[some], "test", 2
    assert spark.witnesses(pattern, *asked) == graph.database.witnesses(pattern, *asked)


def test_bulk_answers_are_parquet_files(graph, spark, edges, tmp_path):
    pattern = named_patterns()["2i"]
    queries = ground(pattern, edges, 300, np.random.default_rng(2))
    rows = []
    for place, database in enumerate((graph.database, spark)):
        folder = str(tmp_path / str(place))
        database.write_answers(pattern, *queries, folder)
        with duckdb.connect() as connection:
            table = connection.read_parquet(f"{folder}/*.parquet")
            rows.append(sorted(table.project("q, answer").fetchall()))
    assert rows[0] == rows[1]
    answers = graph.database.answer(pattern, *queries)
    assert rows[0] == list(zip(answers.owners.tolist(), answers.values.tolist(), strict=True))


def test_a_statement_ends_when_its_time_is_over_and_the_next_one_is_answered(graph, spark):
    slow = Pattern(parse("!r0(?, ?x) & !r0(?x, ?) & ? != ?x"))  # 200 million pairs of entities
    nothing, relation = np.zeros((1, 0), int), np.zeros((1, 1), int)
    for seconds in (1e-9, 1):
        with time_limit(seconds), pytest.raises(TimeLimitError):
            spark.answer(slow, nothing, relation)
    quick, entity = named_patterns()["1p"], graph.edges[0][:1, :1]
    answers = spark.answer(quick, entity, relation)
    assert same(answers, graph.database.answer(quick, entity, relation))


def test_sampling_draws_the_same_queries(toy_dataset):
    toy = KnowledgeGraph.open(toy_dataset)
    pattern = named_patterns()["2in"]
    request = Request("test", "2in", pattern, 10)
    on_spark = toy.answered_by(EngineOptions("spark", master=MASTER))
    queries, expected = (Sampler(g).sample(request) for g in (on_spark, toy))
    assert len(expected)
    assert np.array_equal(queries.constants, expected.constants)
    assert same(queries.easy, expected.easy)
    assert same(queries.hard, expected.hard)


def test_the_command_answers_by_spark(toy_dataset, tmp_path):
    toy = KnowledgeGraph.open(toy_dataset)
    formula = f'"{toy.relation_ids[0]}"(?x, ?)'
    arguments = ["answer", formula, "--dataset", str(toy_dataset)]
    spark = ["--engine", "spark", "--master", MASTER, "--parquet", str(tmp_path / "edges")]
    expected, answered = (CliRunner().invoke(main, [*arguments, *more]) for more in ([], spark))
    assert answered.exit_code == 0, answered.output
    assert answered.stdout == expected.stdout
    assert list((tmp_path / "edges").glob("*.parquet"))


def test_a_missing_package_is_named(monkeypatch, toy_dataset):
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    graph = KnowledgeGraph.open(toy_dataset).answered_by(EngineOptions("spark"))
    with pytest.raises(LmpnnError, match=r"pip install 'lmpnn-kge\[spark\]'"):
        assert graph.database
