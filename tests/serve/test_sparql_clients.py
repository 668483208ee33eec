"""Clients that know nothing of lmpnn-kge, against a server in a process of its own."""

import pytest

from ..pages import DOCS, blocks
from ..serving import serving

rdflib = pytest.importorskip("rdflib", reason="the extra rdf is not installed")
stores = pytest.importorskip("rdflib.plugins.stores.sparqlstore")

FRIENDS = "SELECT ?who { <Ada%20Voss> <friend_of> ?who }"
PREDICTED = "SELECT ?who ?score ?known { <Ada%20Voss> <friend_of> ?who } LIMIT 5"


@pytest.fixture(scope="module")
def server(run_folder, run, tmp_path_factory):
    run.prepare("hybrid")  # the server need not fit it again
    with serving(tmp_path_factory.mktemp("log") / "log", run_folder, "--no-log") as server:
        yield server


@pytest.fixture(scope="module")
def friends(run):
    return {rdflib.URIRef(f"kge:{name}") for name in run.graph.answer(FRIENDS)}


@pytest.mark.parametrize("method", ["GET", "POST", "POST_FORM"])
@pytest.mark.parametrize("format_", ["xml", "json", "csv", "tsv"])
def test_rdflib_asks_the_endpoint_as_a_store(server, friends, method, format_):
    store = stores.SPARQLStore(f"{server.address}/sparql", method=method, returnFormat=format_)
    result = store.query(FRIENDS)
    assert [str(name) for name in result.vars] == ["who"]
    found = {row.who for row in result}
    assert {rdflib.URIRef(str(name)) for name in found} == friends


def test_rdflib_reads_edges_of_a_graph_that_is_an_endpoint(server, friends):
    graph = rdflib.Graph(stores.SPARQLStore(f"{server.address}/sparql/toy"))
    ada, friend_of = rdflib.URIRef("kge:person/ada_voss"), rdflib.URIRef("kge:friend_of")
    assert set(graph.objects(ada, friend_of)) == friends
    assert ada in set(graph.subjects(friend_of, next(iter(friends))))
    assert {row.who for row in graph.query(FRIENDS)} == friends
    assert all((ada, friend_of, friend) in graph for friend in friends)  # by ASK
    assert (ada, friend_of, ada) not in graph
    assert bool(graph.query("ASK { ?a <friend_of> ?b }"))


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("request_method", ["urlencoded", "postdirectly"])
def test_sparqlwrapper_asks_for_predicted_answers(server, run, method, request_method):
    wrapper = pytest.importorskip("SPARQLWrapper", reason="SPARQLWrapper is not installed")
    client = wrapper.SPARQLWrapper(f"{server.address}/sparql")
    client.setQuery(PREDICTED)
    client.setMethod(method)
    if method == "POST":
        client.setRequestMethod(request_method)
    client.setReturnFormat(wrapper.JSON)
    client.addParameter("answers", "predicted")
    rows = client.queryAndConvert()["results"]["bindings"]
    answers = run.ask(FRIENDS, 5)  # known ones are equally good, in any order
    expected = {(f"kge:{answer.id}", str(answer.known).lower()) for answer in answers}
    assert {(row["who"]["value"], row["known"]["value"]) for row in rows} == expected


@pytest.mark.parametrize("name", ["XML", "CSV", "TSV"])
def test_sparqlwrapper_gets_every_format(server, friends, name):
    wrapper = pytest.importorskip("SPARQLWrapper", reason="SPARQLWrapper is not installed")
    client = wrapper.SPARQLWrapper(f"{server.address}/sparql")
    client.setQuery(FRIENDS)
    client.setReturnFormat(getattr(wrapper, name))
    content = client.queryAndConvert()
    text = content.decode() if isinstance(content, bytes) else content.toxml()
    assert all(str(friend) in text for friend in friends)


def test_sparqlwrapper_reads_the_answer_to_ask(server):
    wrapper = pytest.importorskip("SPARQLWrapper", reason="SPARQLWrapper is not installed")
    client = wrapper.SPARQLWrapper(f"{server.address}/sparql")
    client.setQuery("ASK { <Ada%20Voss> <friend_of> <Ada%20Voss> }")
    client.setReturnFormat(wrapper.JSON)
    assert client.queryAndConvert()["boolean"] is False


def test_sparqlwrapper_reports_a_wrong_query_as_such(server):
    wrapper = pytest.importorskip("SPARQLWrapper", reason="SPARQLWrapper is not installed")
    client = wrapper.SPARQLWrapper(f"{server.address}/sparql")
    client.setQuery("SELECT ?a { ?a <friend_of> <Nobody> }")
    with pytest.raises(wrapper.SPARQLExceptions.QueryBadFormed, match="Nobody"):
        client.query()


def test_the_example_of_the_documentation_prints_the_answers(server, friends, capsys):
    (block,) = blocks(DOCS["serve.md"], "py")
    exec(block.replace("http://127.0.0.1:8000", server.address), {})
    assert set(map(rdflib.URIRef, capsys.readouterr().out.splitlines())) == friends
