"""The HTTP interface: what it answers is what the library answers, in the stated form."""

import json
import xml.etree.ElementTree as ElementTree

import jsonschema
import pytest

from lmpnn_kge.errors import QueryError
from lmpnn_kge.serve.endpoints import ENDPOINTS

PATH = 'friend_of("Ada Voss", ?x) & known_in(?x, ?)'
DENIAL = 'friend_of("Ada Voss", ?) & !mentor_of(?, ?x)'
FORMULAS = [
    'friend_of("Ada Voss", ?)',
    PATH,
    DENIAL,
    'friend_of("Ada Voss", ?) | mentor_of("Ada Voss", ?)',
    "!(friend_of(?x, ?) & known_in(?x, Dunmere)) & known_in(?, Dunmere)",
]
SPARQL = "SELECT ?a { <Ada%20Voss> <friend_of> ?a } LIMIT 2"

#: A request to every endpoint.
REQUESTS = {
    "/health": {},
    "/api/runs": {},
    "/api/run": {"run": "toy"},
    "/api/ask": {"question": PATH, "k": 3, "explain": 2},
    "/api/answer": {"question": PATH},
    "/api/explain": {"question": DENIAL, "answer": "Tilda Frost", "count": 2},
    "/api/draw": {"question": DENIAL},
    "/api/edit": {"question": PATH, "action": "negate", "edge": 1},
    "/api/complete": {"text": "friend_of(Ad"},
    "/api/entity": {"name": "Ada Voss", "k": 2},
}


def post(client, path, status=200, **values):
    response = client.post(path, json=values)
    assert response.status_code == status, response.text
    return response.json()


def test_every_endpoint_is_described_and_answers_as_described(client):
    described = client.get("/api/openapi.json").json()
    assert set(described["paths"]) == set(REQUESTS) == {endpoint.path for endpoint in ENDPOINTS}
    for path, values in REQUESTS.items():
        operation = described["paths"][path]["get"]
        schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
        validator = jsonschema.Draft202012Validator({**schema, **described})
        by_get = client.get(path, params=values)
        assert by_get.status_code == 200, by_get.text
        validator.validate(by_get.json())
        if values:
            validator.validate(post(client, path, **values))


def test_the_described_parameters_accept_what_is_sent(client):
    described = client.get("/api/openapi.json").json()
    for path, values in REQUESTS.items():
        if values:
            body = described["paths"][path]["post"]["requestBody"]
            schema = body["content"]["application/json"]["schema"]
            jsonschema.Draft202012Validator({**schema, **described}).validate(values)


@pytest.mark.parametrize("method", ["hybrid", "search", "lmpnn", "cqd-beam"])
@pytest.mark.parametrize("formula", FORMULAS)
def test_answers_are_those_of_the_library(client, run, formula, method):
    wanted = {"question": formula, "method": method, "k": 7, "explain": 1}
    (direct,) = run.ask_each([formula], 7, method=method, explain=1)
    if isinstance(direct, QueryError):  # a beam needs an entity to begin with
        assert post(client, "/api/ask", 400, **wanted)["error"]["message"] == str(direct)
        return
    served = post(client, "/api/ask", **wanted)
    assert served["method"] == method
    assert served["notes"] == list(direct.notes)
    assert [answer["rank"] for answer in served["answers"]] == list(range(1, len(direct) + 1))
    for given, answer in zip(served["answers"], direct, strict=True):
        for name in ("id", "label", "probability", "known", "confirmed", "mark"):
            assert given[name] == getattr(answer, name)
        assert [r["truth"] for r in given["reasons"]] == [r.truth for r in answer.reasons]


def test_pages_of_answers_make_up_all_answers(client):
    everything = post(client, "/api/ask", question=PATH, k=40)
    firsts = range(0, 42, 7)
    pages = [post(client, "/api/ask", question=PATH, k=7, offset=first) for first in firsts]
    assert [a for page in pages for a in page["answers"]] == everything["answers"]
    count = len(everything["answers"])
    assert [page["more"] for page in pages] == [first + 7 < count for first in firsts]


def test_the_limit_of_sparql_is_the_number_of_answers(client):
    assert len(post(client, "/api/ask", question=SPARQL)["answers"]) == 2
    assert len(post(client, "/api/ask", question=SPARQL, k=3)["answers"]) == 3


def test_exact_answers_are_those_of_the_graph(client, run):
    for split in ("train", "test"):
        served = post(client, "/api/answer", question=PATH, split=split)
        assert [answer["id"] for answer in served["answers"]] == run.graph.answer(PATH, split)
        assert served["complete"]
        assert served["total"] == len(served["answers"])
    part = post(client, "/api/answer", question=PATH, k=1, offset=1)
    assert part["answers"] == post(client, "/api/answer", question=PATH)["answers"][1:2]
    assert not part["complete"]


def test_any_entity_can_be_explained_also_one_that_was_not_offered(client, run):
    last = post(client, "/api/ask", question=PATH, k=40)["answers"][-1]
    explained = post(client, "/api/explain", question=PATH, answer=last["id"])
    assert explained["answer"]["known"] == last["known"]
    for reason in explained["reasons"]:
        assert reason["values"]["?"]["id"] == last["id"]
        node = reason["graph"]["nodes"][0]
        assert (node["id"], node["label"]) == (last["id"], last["label"])


def test_a_drawing_has_both_languages_and_the_picture(client):
    drawn = post(client, "/api/draw", question=SPARQL)
    assert drawn["is_sparql"]
    assert drawn["formula"] == 'friend_of("Ada Voss", ?)'
    assert "SELECT DISTINCT ?answer" in drawn["sparql"]
    for options, accept in (({"format": "svg"}, "*/*"), ({}, "image/svg+xml")):
        wanted = {"question": DENIAL, **options}
        picture = client.get("/api/draw", params=wanted, headers={"Accept": accept})
        assert picture.headers["content-type"] == "image/svg+xml"
        assert ElementTree.fromstring(picture.text).tag.endswith("svg")


def test_a_wrong_question_says_what_is_wrong_and_where(client):
    wrong = post(client, "/api/draw", 400, question='frend_of("Ada Voss", ?)')["error"]
    assert wrong["column"] == 0
    assert "did you mean 'friend_of'" in wrong["message"]
    assert wrong["excerpt"].endswith("\n^")
    checked = post(client, "/api/draw", question="friend_of(?", check=True)
    assert checked["error"]["column"] == 11
    assert checked["disjuncts"] == []


def test_a_question_for_tuples_is_drawn_but_not_answered(client):
    pairs = {"question": "friend_of(?1, ?2)"}
    nodes = post(client, "/api/draw", **pairs)["disjuncts"][0]["nodes"]
    assert [node["kind"] for node in nodes] == ["free", "free"]
    for path, more in (("ask", {}), ("answer", {}), ("explain", {"answer": "Ada Voss"})):
        error = post(client, f"/api/{path}", 400, **pairs, **more)["error"]
        assert error["message"].startswith("the formula asks for 2 entities at once (?1, ?2)")
    edit = {"action": "negate", "edge": 0}
    error = post(client, "/api/edit", 400, **pairs, **edit)["error"]
    assert "changed in its text only" in error["message"]


def test_edits_chain_into_a_question_that_can_be_asked(client):
    text = ""
    for action in (
        {"action": "add", "relation": "friend_of", "head": '"Ada Voss"', "tail": 0},
        {"action": "add", "relation": "mentor_of", "head": 0},
        {"action": "negate", "edge": 1},
    ):
        text = post(client, "/api/edit", question=text, **action)["question"]
    assert text == DENIAL
    assert post(client, "/api/edit", 400, question=text, action="negate")["error"]["message"] == (
        "the action negate needs the parameter edge"
    )


def test_completion_offers_what_fits_the_relation_first(client, run):
    names = run.vocabulary
    offered = post(client, "/api/complete", text="known_in(?x, ")["items"]
    towns = [item["id"] for item in offered]
    assert towns
    assert all(id_.startswith("town/") for id_ in towns)
    assert [item["count"] for item in offered] == sorted(
        (item["count"] for item in offered), reverse=True
    )
    (item,) = post(client, "/api/complete", role="entity", prefix="ada v")["items"]
    assert (item["id"], item["insert"]) == ("person/ada_voss", '"Ada Voss"')
    relations = post(client, "/api/complete", text="")
    assert relations["role"] == "relation"
    assert len(relations["items"]) == names.num_relations
    assert post(client, "/api/complete", text="friend_of(?x")["items"] == []
    post(client, "/api/complete", 400)


def test_an_entity_has_its_known_edges_and_predicted_ones(client, run):
    entity = post(client, "/api/entity", name="person/ada_voss", k=50)
    edges = {
        (part["relation"]["id"], part["end"], other["id"])
        for part in entity["known"]
        for other in part["entities"]
    }
    ids, relations = run.graph.entity_ids, run.graph.relation_ids
    me = run.graph.vocabulary.entity("person/ada_voss")
    triples = run.graph.triples("train").tolist()
    expected = {(relations[r], "head", ids[t]) for h, r, t in triples if h == me}
    expected |= {(relations[r], "tail", ids[h]) for h, r, t in triples if t == me}
    assert edges == expected
    for part in entity["predicted"]:
        for other in part["entities"]:
            assert (part["relation"]["id"], part["end"], other["id"]) not in edges


def test_examples_can_be_asked(client):
    (run,) = client.get("/api/runs").json()["runs"]
    assert {example["type"] for example in run["examples"]} >= {"1p", "2p", "2in"}
    for example in run["examples"]:
        post(client, "/api/ask", question=example["question"])


def test_a_run_has_its_figures_and_its_report(client, run):
    details = client.get("/api/run").json()
    assert details["results"]["lmpnn"] == json.loads(json.dumps(run.results.to_json()))
    assert details["settings"]["hidden"] == 8
    assert any(fact["name"] == "checkpoint.sha256" for fact in details["provenance"])
    page = client.get("/report/toy")
    assert page.text.startswith("<!DOCTYPE html>")
    assert "script" not in page.headers["content-security-policy"]
    assert client.get("/report/else").status_code == 404


def test_many_questions_stream_a_line_for_each_in_their_order(client, run):
    lines = [json.dumps(FORMULAS[0]), json.dumps({"question": "friend_of("}), "17", "{", "",
             json.dumps({"question": FORMULAS[1]})] + [json.dumps(FORMULAS[2])] * 100  # fmt: skip
    response = client.post(
        "/api/ask?k=2&method=lmpnn",
        content="\n".join(lines),
        headers={"Content-Type": "application/x-ndjson"},
    )
    records = [json.loads(line) for line in response.text.splitlines()]
    assert len(records) == len(lines) - 1  # a blank line is no question
    assert [record.get("question") for record in records][:5] == [
        FORMULAS[0], "friend_of(", "17", "{", FORMULAS[1]
    ]  # fmt: skip
    assert ["error" in record for record in records] == [False, True, True, True] + [False] * 101
    direct = run.ask(FORMULAS[1], 2, method="lmpnn")
    assert [answer["id"] for answer in records[4]["answers"]] == [answer.id for answer in direct]


@pytest.mark.parametrize(
    ("path", "values", "message"),
    [
        ("/api/ask", {}, "question is missing"),
        ("/api/ask", {"question": PATH, "k": 0}, "k is 0, but must be at least 1"),
        ("/api/ask", {"question": PATH, "k": "3"}, "k is '3', but must be a whole number"),
        ("/api/ask", {"question": PATH, "k": True}, "must be a whole number"),
        ("/api/ask", {"question": PATH, "method": "magic"}, "toy has no method 'magic'"),
        ("/api/ask", {"question": PATH, "candidates": "all"}, "choose from: any, typed"),
        ("/api/ask", {"question": 3}, "must be a text"),
        ("/api/ask", {"question": PATH, "more": 1}, "there is no parameter 'more'"),
        ("/api/ask", {"question": "x" * 20_000}, "this server reads up to 10,000"),
        ("/api/answer", {"question": PATH, "split": "dev"}, "choose from: test, train, valid"),
        ("/api/explain", {"question": PATH, "answer": "Adda Voss"}, "did you mean"),
        ("/api/entity", {"name": "nobody"}, "there is no entity 'nobody'"),
        ("/api/edit", {"action": "add", "relation": "r", "head": 1.5}, "must be a whole number"),
    ],
)
def test_a_wrong_parameter_is_named_with_what_would_be_right(client, path, values, message):
    assert message in post(client, path, 400, **values)["error"]["message"]


def test_what_is_not_a_request_is_refused(client):
    assert client.get("/api/nothing").status_code == 404
    assert client.delete("/api/ask").status_code == 405
    assert client.get("/api/ask?k=1&k=2").status_code == 400
    assert client.get("/api/ask", params={"run": "x", "question": PATH}).status_code == 404
    assert client.post("/api/ask", data={"question": PATH}).status_code == 415
    for body in (b"{", b"[]", b"\xff", b'{"question": ' + b"[" * 100_000):
        response = client.post(
            "/api/ask", content=body, headers={"Content-Type": "application/json"}
        )
        assert response.status_code == 400, body[:20]


def test_the_interface_has_a_page_for_people(client):
    page = client.get("/api").text
    assert all(f"<code>{endpoint.path}</code>" in page for endpoint in ENDPOINTS)
