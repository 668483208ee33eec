"""The SPARQL endpoint: the protocol, its parameters, and what a query can select."""

import csv
import io
import json
import sys
import xml.etree.ElementTree as ElementTree
from urllib.parse import quote

import pytest

from lmpnn_kge.serve.endpoints import Service
from lmpnn_kge.serve.guard import Access
from lmpnn_kge.serve.limits import Limits
from lmpnn_kge.serve.served_run import ServedRun

from .conftest import client_of

pytest.importorskip("rdflib", reason="the extra rdf is not installed")

FRIENDS = "SELECT ?who { <Ada%20Voss> <friend_of> ?who }"
EVERYTHING = (
    "SELECT ?who ?label ?score ?probability ?known ?confirmed {<Ada%20Voss> <friend_of> ?who}"
)
EVERYBODY = "SELECT ?who { {?who ?p ?o} UNION {?s ?p ?who} }"
FORM, QUERY = "application/x-www-form-urlencoded", "application/sparql-query"


def bindings(response):
    assert response.status_code == 200, response.text
    return response.json()["results"]["bindings"]


def ids(response):
    return [row["who"]["value"].removeprefix("kge:") for row in bindings(response)]


def refused(response, status=400):
    assert response.status_code == status, response.text
    return response.json()["error"]["message"]


def test_a_query_can_be_sent_in_three_ways_to_a_run_by_name_or_to_the_first(client, run):
    exact = run.graph.answer(FRIENDS)
    for path in ("/sparql", "/sparql/toy"):
        assert ids(client.get(path, params={"query": FRIENDS})) == exact
        assert ids(client.post(path, data={"query": FRIENDS})) == exact
        body = {"content": FRIENDS, "headers": {"Content-Type": f"{QUERY}; charset=UTF-8"}}
        assert ids(client.post(path, **body)) == exact
        assert ids(client.post(f"{path}?answers=exact&split=test", **body)) == exact
    refused(client.get("/sparql/other", params={"query": FRIENDS}), 404)


@pytest.mark.parametrize("split", ["train", "valid", "test"])
def test_exact_answers_are_by_the_edges_of_a_split(client, run, split):
    got = client.get("/sparql", params={"query": FRIENDS, "split": split})
    assert ids(got) == run.graph.answer(FRIENDS, split)


@pytest.mark.parametrize("method", ["hybrid", "search", "lmpnn", "cqd-beam", None])
def test_predicted_answers_are_those_of_the_run(client, run, method):
    options = {"query": EVERYTHING, "answers": "predicted", "k": 7}
    rows = bindings(client.get("/sparql", params=options | ({"method": method} if method else {})))
    answers = run.ask(FRIENDS, 7, method=method)
    assert len(rows) == len(answers) == 7
    for row, answer in zip(rows, answers, strict=True):
        assert row["who"] == {"type": "uri", "value": f"kge:{answer.id}"}
        assert row["label"] == {"type": "literal", "value": answer.label}
        assert float(row["score"]["value"]) == pytest.approx(answer.score)
        assert row["score"]["datatype"].endswith("#double")
        assert ("probability" in row) == (answer.probability is not None)
        if answer.probability is not None:
            assert float(row["probability"]["value"]) == pytest.approx(answer.probability)
        assert row["known"]["value"] == str(answer.known).lower()
        assert row["confirmed"]["datatype"].endswith("#boolean")
        assert row["confirmed"]["value"] == str(answer.confirmed).lower()


def test_exact_answers_have_no_score_but_say_which_edges_know_them(client, run):
    rows = bindings(client.get("/sparql", params={"query": EVERYTHING}))
    known = run.graph.answer(FRIENDS, "train")
    assert 0 < len(known) < len(rows)
    for row in rows:
        assert not {"score", "probability"} & set(row)
        is_known = row["who"]["value"].removeprefix("kge:") in known
        assert (row["known"]["value"], row["confirmed"]["value"]) == (str(is_known).lower(), "true")


def test_a_variable_that_a_pattern_binds_is_not_a_figure(client):
    query = "SELECT ?score { <Ada%20Voss> <friend_of> ?score }"
    assert bindings(client.get("/sparql", params={"query": query}))[0]["score"]["type"] == "uri"
    both = "SELECT ?who ?score { <Ada%20Voss> <friend_of> ?who . ?who <friend_of> ?score }"
    assert "selects 2 variables" in refused(client.get("/sparql", params={"query": both}))


def test_limit_and_k_are_the_number_of_answers(client):
    def count(query, **options):
        return len(bindings(client.get("/sparql", params={"query": query} | options)))

    assert count(f"{EVERYBODY} LIMIT 3") == 3
    assert count(EVERYBODY) == 40
    assert count(EVERYBODY, answers="predicted") == 10
    assert count(EVERYBODY, answers="predicted", k=12) == 12
    assert count(f"{EVERYBODY} LIMIT 3", answers="predicted") == 3
    assert count(f"{EVERYBODY} LIMIT 3", answers="predicted", k=12) == 3


def test_offset_and_limit_page_through_the_answers(client):
    for options in ({}, {"answers": "predicted", "k": 40}):

        def ask(modifiers, options=options):
            query = f"{EVERYBODY} {modifiers}"
            return ids(client.get("/sparql", params={"query": query} | options))

        every = ask("")
        assert len(every) == 40
        assert [row for n in range(0, 40, 7) for row in ask(f"LIMIT 7 OFFSET {n}")] == every
        assert ask("OFFSET 38") == every[38:]
        assert ask("LIMIT 0") == ask("OFFSET 41") == ask(f"OFFSET {10**30} LIMIT 2") == []


def test_predicted_answers_beyond_the_first_ten_are_reached_by_offset(client):
    def ask(query, **options):
        return ids(client.get("/sparql", params={"query": query, "answers": "predicted"} | options))

    ranked = ask(EVERYBODY, k=30)
    assert ask(f"{EVERYBODY} OFFSET 10") == ranked[10:20]
    assert ask(f"{EVERYBODY} LIMIT 5 OFFSET 20") == ranked[20:25]
    assert ask(f"{EVERYBODY} LIMIT 5 OFFSET 8", k=10) == ranked[8:10]


@pytest.mark.parametrize("answers", ["exact", "predicted"])
def test_order_by_sorts_before_limit_and_offset_apply(client, answers):
    def ask(modifiers):
        query = EVERYTHING.replace("<Ada%20Voss> <friend_of> ?who", "?who <friend_of> ?other")
        options = {"query": f"{query} {modifiers}", "answers": answers}
        options |= {"k": 20} if answers == "predicted" else {}
        got = bindings(client.get("/sparql", params=options))
        return [{name: value["value"] for name, value in row.items()} for row in got]

    every = ask("")
    for name in ("who", "label"):
        assert ask(f"ORDER BY ?{name}") == sorted(every, key=lambda row: row[name])
        down = ask(f"ORDER BY DESC(?{name}) LIMIT 3 OFFSET 1")
        assert down == sorted(every, key=lambda row: row[name], reverse=True)[1:4]
    mixed = ask("ORDER BY DESC(?known) ?label")
    assert mixed == sorted(every, key=lambda row: (row["known"] == "false", row["label"]))
    scores = [float(row["score"]) for row in ask("ORDER BY DESC(?score)") if "score" in row]
    assert scores == sorted(scores, reverse=True)
    assert len(scores) == (20 if answers == "predicted" else 0)


def test_order_by_without_k_sorts_all_ranked_answers(client):
    query = "SELECT ?who ?score { ?who <friend_of> ?other } ORDER BY ?score"
    options = {"query": query, "answers": "predicted", "method": "lmpnn"}
    lowest = bindings(client.get("/sparql", params=options))
    every = bindings(client.get("/sparql", params=options | {"k": 40}))
    assert lowest == every[:10]


@pytest.mark.parametrize(
    ("end", "words"),
    [
        ("ORDER BY ?friend", "cannot be sorted by ?friend; choose from: ?confirmed, ?known"),
        ("ORDER BY ?lable", "did you mean '?label'"),
        ("ORDER BY STR(?who)", "the function STR is not supported"),
        ("ORDER BY (?score + 1)", "arithmetic is not supported"),
    ],
)
def test_an_order_that_answers_do_not_have_is_refused(client, end, words):
    query = f"SELECT ?who {{ ?who <friend_of> ?friend }} {end}"
    assert words in refused(client.get("/sparql", params={"query": query}))


def test_a_pattern_variable_is_not_a_figure_to_sort_by(client):
    query = "SELECT ?who { ?who <friend_of> ?score } ORDER BY ?score"
    assert "cannot be sorted by ?score" in refused(client.get("/sparql", params={"query": query}))


@pytest.mark.parametrize(
    ("pattern", "truth"),
    [
        ("?a <friend_of> ?b", True),
        ("<Ada%20Voss> <friend_of> ?b", True),
        ("?a <friend_of> ?b . ?b <mentor_of> ?a FILTER NOT EXISTS { ?a <friend_of> ?a }", None),
        ("?a <friend_of> ?a . ?a <mentor_of> ?a", None),
        ("FILTER NOT EXISTS { <Ada%20Voss> <friend_of> <Ada%20Voss> }", True),
        ("{ <Ada%20Voss> <friend_of> <Ada%20Voss> } UNION { ?x <mentor_of> ?y }", True),
        ("<Ada%20Voss> <friend_of> ?b FILTER(?b != ?b)", False),
        ("", True),
    ],
)
def test_ask_is_true_if_the_edges_match(client, run, pattern, truth):
    import rdflib

    if truth is None:  # as another engine says
        store = rdflib.Graph()
        name = rdflib.Namespace("kge:")
        names = run.graph.vocabulary
        for split in ("train", "valid", "test"):
            for s, p, o in run.graph.triples(split).tolist():
                ends = (names.entity_ids[s], names.relation_ids[p], names.entity_ids[o])
                store.add(tuple(name[part] for part in ends))
        truth = store.query("ASK { " + pattern.replace("<", "<kge:") + " }").askAnswer
    got = client.get("/sparql", params={"query": f"ASK {{ {pattern} }}"})
    assert got.json() == {"head": {}, "boolean": truth}


def test_ask_about_an_edge_is_by_the_edges_of_a_split(client, run):
    names = run.graph.vocabulary
    head, relation, tail = run.graph.triples("test")[0]
    terms = names.entity_ids[head], names.relation_ids[relation], names.entity_ids[tail]
    ask = "ASK {{ <{}> <{}> <{}> }}".format(*terms)
    for split, truth in (("train", False), ("test", True)):
        assert (
            client.get("/sparql", params={"query": ask, "split": split}).json()["boolean"] is truth
        )
    predicted = client.get("/sparql", params={"query": ask, "answers": "predicted"})
    assert "needs answers=exact" in refused(predicted)


def test_the_answer_to_ask_has_the_format_that_the_client_accepts(client):
    texts = {}
    for media_type in ("application/json", "application/xml", "text/csv", *READERS):
        got = client.get("/sparql", params={"query": "ASK {}"}, headers={"Accept": media_type})
        assert got.headers["content-type"].partition(";")[0] == media_type
        texts[media_type] = got.text
    assert json.loads(texts["application/sparql-results+json"])["boolean"] is True
    (_, boolean) = ElementTree.fromstring(texts["application/xml"])
    assert (boolean.tag.partition("}")[2], boolean.text) == ("boolean", "true")
    assert list(csv.reader(io.StringIO(texts["text/csv"]))) == [["_askResult"], ["true"]]
    assert texts["text/tab-separated-values"] == "?_askResult\ntrue\n"


def test_rows_beyond_the_limit_are_never_left_out_silently(run):
    limits = Limits(rows=5)
    client = client_of(Service({"toy": ServedRun("toy", run, limits)}, limits))
    everybody = {"query": EVERYBODY}
    cut = client.get("/sparql", params=everybody)
    assert (cut.status_code, cut.headers["content-range"]) == (206, "rows 0-4/40")
    assert len(cut.json()["results"]["bindings"]) == 5
    cut = client.get("/sparql", params=everybody | {"answers": "predicted", "k": 6})
    assert (cut.status_code, cut.headers["content-range"]) == (206, "rows 0-4/*")
    assert len(cut.json()["results"]["bindings"]) == 5
    whole = client.get("/sparql", params=everybody | {"answers": "predicted", "k": 5})
    assert (whole.status_code, "content-range" in whole.headers) == (200, False)
    limited = {"query": f"{EVERYBODY} LIMIT 5"}
    assert client.get("/sparql", params=limited).status_code == 200
    later = {"query": f"{EVERYBODY} OFFSET 30", "answers": "predicted"}
    cut = client.get("/sparql", params=later)
    assert (cut.status_code, cut.headers["content-range"]) == (206, "rows */*")


def test_a_query_that_takes_too_long_is_a_504(run):
    limits = Limits(seconds=1e-6)
    client = client_of(Service({"toy": ServedRun("toy", run, limits)}, limits))
    assert "no answer within" in refused(client.get("/sparql", params={"query": FRIENDS}), 504)


READERS = {
    "application/sparql-results+json": lambda text: len(json.loads(text)["results"]["bindings"]),
    "application/json": lambda text: len(json.loads(text)["results"]["bindings"]),
    "application/sparql-results+xml": lambda text: len(ElementTree.fromstring(text)[1]),
    "application/xml": lambda text: len(ElementTree.fromstring(text)[1]),
    "text/csv": lambda text: len(list(csv.reader(io.StringIO(text)))) - 1,
    "text/tab-separated-values": lambda text: len(text.splitlines()) - 1,
}


@pytest.mark.parametrize("media_type", READERS)
def test_a_result_has_the_format_that_the_client_accepts(client, run, media_type):
    got = client.get("/sparql", params={"query": FRIENDS}, headers={"Accept": media_type})
    assert got.headers["content-type"].partition(";")[0] == media_type
    assert got.headers["vary"] == "Accept"
    assert READERS[media_type](got.text) == len(run.graph.answer(FRIENDS))
    named = client.get("/sparql", params={"query": FRIENDS, "format": media_type})
    assert named.text == got.text


def test_a_format_can_be_named_in_the_ways_of_other_endpoints(client):
    options = {"query": FRIENDS, "format": "csv", "output": "csv", "results": "csv"}
    got = client.get("/sparql", params=options, headers={"Accept": "application/json"})
    assert got.headers["content-type"] == "text/csv; charset=utf-8"
    assert "different formats" in refused(client.get("/sparql", params=options | {"output": "xml"}))
    assert "'pdf'" in refused(client.get("/sparql", params={"query": FRIENDS, "format": "pdf"}))


def test_a_type_that_is_not_offered_is_a_406(client):
    got = client.get("/sparql", params={"query": FRIENDS}, headers={"Accept": "image/png"})
    assert "text/csv" in refused(got, 406)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ("default-graph-uri=http://e/g", "one graph"),
        ("named-graph-uri=http://e/g", "one graph"),
        ("update=CLEAR%20ALL", "updates"),
        ("answers=all", "exact"),
        ("split=all", "train"),
        ("k=3", "answers=predicted"),
        ("method=search", "answers=predicted"),
        ("answers=predicted&split=train", "answers=exact"),
        ("answers=predicted&k=0", "at least 1"),
        ("answers=predicted&method=magic", "hybrid"),
        ("query=SELECT", "twice"),
        ("colour=red", "no parameter 'colour'"),
        ("x=%ff", "not UTF-8"),
        ("&".join(["default-graph-uri="] * 101), "more than 100"),
    ],
)
def test_a_parameter_that_cannot_be_fulfilled_is_refused(client, parameters, words):
    got = client.get(f"/sparql?query={quote(FRIENDS)}&{parameters}")
    assert words in refused(got)
    posted = client.post("/sparql", content=parameters, headers={"Content-Type": FORM})
    assert posted.status_code == 400


def test_empty_parameters_of_the_protocol_are_ignored(client, run):
    got = client.get("/sparql", params={"query": FRIENDS, "default-graph-uri": ""})
    assert ids(got) == run.graph.answer(FRIENDS)


def test_a_wrong_query_is_a_400_that_says_where(client):
    got = client.get("/sparql", params={"query": "SELECT ?a { ?a <friend_of> }"})
    assert refused(got).startswith("the SPARQL query cannot be read")
    assert got.json()["error"]["column"] is not None
    assert "'Nobody'" in refused(
        client.get("/sparql", params={"query": "SELECT ?a { ?a <friend_of> <Nobody> }"})
    )
    assert "OPTIONAL" in refused(
        client.get("/sparql", params={"query": "SELECT ?a { ?a <r> ?b OPTIONAL {?a <s> ?c} }"})
    )
    formula = client.get("/sparql", params={"query": "friend_of(?, ?x)"})
    assert "cannot be read" in refused(formula)


def test_bodies_of_other_types_and_other_methods_are_refused(client):
    got = client.post("/sparql", json={"query": FRIENDS})
    assert QUERY in refused(got, 415)
    bad = client.post("/sparql", content=b"SELECT \xff", headers={"Content-Type": QUERY})
    assert "UTF-8" in refused(bad)
    assert "query is missing" in refused(client.post("/sparql", data={"answers": "exact"}))
    refused(client.put("/sparql", content=FRIENDS), 405)


def test_without_rdflib_the_endpoint_names_the_extra(client, monkeypatch):
    monkeypatch.setitem(sys.modules, "rdflib", None)
    assert "lmpnn-kge[rdf]" in refused(client.get("/sparql", params={"query": FRIENDS}), 501)


def test_the_service_description_says_what_the_endpoint_is(client, run):
    import rdflib

    got = client.get("/sparql/toy")
    assert got.headers["content-type"] == "text/turtle; charset=utf-8"
    graph = rdflib.Graph().parse(data=got.text, format="turtle", publicID="http://localhost/")
    description = rdflib.Namespace("http://www.w3.org/ns/sparql-service-description#")
    (service,) = graph.subjects(rdflib.RDF.type, description.Service)
    assert graph.value(service, description.endpoint) == rdflib.URIRef(
        "http://localhost/sparql/toy"
    )
    assert len(list(graph.objects(service, description.resultFormat))) == 4
    sizes = rdflib.Namespace("http://rdfs.org/ns/void#")
    assert {int(n) for n in graph.objects(None, sizes.entities)} == {run.graph.num_entities}
    page = client.get("/sparql", headers={"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"})
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    refused(client.get("/sparql", headers={"Accept": "application/rdf+xml"}), 406)


def test_a_page_of_an_allowed_origin_can_ask_as_yasgui_does(service, run):
    client = client_of(service, access=Access(origins=["https://yasgui.example"]))
    origin = {"Origin": "https://yasgui.example", "Sec-Fetch-Site": "cross-site"}
    preflight = client.options(
        "/sparql",
        headers=origin
        | {
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "content-type",
            "Access-Control-Request-Private-Network": "true",
        },
    )
    assert preflight.status_code == 204
    assert preflight.headers["access-control-allow-origin"] == "https://yasgui.example"
    assert "POST" in preflight.headers["access-control-allow-methods"]
    assert "content-type" in preflight.headers["access-control-allow-headers"].lower()
    assert preflight.headers["access-control-allow-private-network"] == "true"
    got = client.post(
        "/sparql",
        data={"query": FRIENDS},
        headers=origin
        | {
            "Accept": "application/sparql-results+json,*/*;q=0.9",
            "Content-Type": f"{FORM}; charset=UTF-8",
        },
    )
    assert ids(got) == run.graph.answer(FRIENDS)
    assert got.headers["access-control-allow-origin"] == "https://yasgui.example"
    assert got.headers["vary"] == "Accept, Origin"


def test_pages_of_other_origins_cannot_ask(service):
    client = client_of(service, access=Access(origins=["https://yasgui.example"]))
    other = {"Origin": "https://evil.example"}
    refused(client.post("/sparql", data={"query": FRIENDS}, headers=other), 403)
    got = client.options("/sparql", headers=other | {"Access-Control-Request-Method": "POST"})
    assert (got.status_code, "access-control-allow-origin" in got.headers) == (403, False)
