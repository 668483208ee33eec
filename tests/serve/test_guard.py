"""Who is answered: names of the host, tokens, pages of other sites, sizes, headers, the log."""

import json

import pytest

from lmpnn_kge.serve.guard import LOOPBACK, POLICY, Access
from lmpnn_kge.serve.server import access_for

from .conftest import client_of

CROSS_SITE = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"}


@pytest.fixture(scope="module")
def guarded(service):
    return client_of(service, access=Access((), "secret"))


@pytest.mark.parametrize("host", ["localhost:8000", "127.0.0.1", "[::1]:8000", "LOCALHOST"])
def test_this_machine_is_known_by_its_own_names(client, host):
    assert client.get("/health", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "evil:8000"])
def test_a_name_that_leads_here_by_a_trick_is_refused(client, host):
    assert client.get("/health", headers={"Host": host}).status_code == 421


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:8001"},
        CROSS_SITE,
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"},
    ],
)
def test_pages_of_other_sites_get_no_answers(client, headers):
    assert client.get("/api/runs", headers=headers).status_code == 403
    assert client.post("/api/ask", json={"question": "?"}, headers=headers).status_code == 403


def test_our_own_page_and_links_to_it_are_answered(client):
    own = {"Origin": "http://127.0.0.1:8000", "Sec-Fetch-Site": "same-origin"}
    assert client.get("/api/runs", headers=own).status_code == 200
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert client.get("/", headers=link).status_code == 200


def test_an_origin_can_be_allowed(service):
    client = client_of(service, access=Access(origins=("https://yasgui.example",)))
    headers = {"Origin": "https://yasgui.example", **CROSS_SITE}
    answer = client.get("/api/runs", headers=headers)
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-origin"] == "https://yasgui.example"
    assert client.options("/api/ask", headers=headers).status_code == 204
    other = {"Origin": "https://evil.example", **CROSS_SITE}
    assert client.get("/api/runs", headers=other).status_code == 403
    assert client.options("/api/ask", headers=other).status_code == 403


def test_without_the_token_nothing_is_answered(guarded):
    for path in ("/", "/api/runs", "/health", "/static/style.css", "/report/toy", "/nothing"):
        refused = guarded.get(path)
        assert refused.status_code == 401
        assert refused.headers["www-authenticate"] == "Bearer"
    for given in ("Bearer wrong", "Bearer", "Basic secret", "Bearer ünïcode".encode()):
        assert guarded.get("/health", headers={"Authorization": given}).status_code == 401
    assert guarded.get("/health", headers={"Authorization": "Bearer secret"}).status_code == 200


def test_the_address_with_the_token_opens_the_page_and_leaves_a_cookie(service):
    client = client_of(service, access=Access((), "secret"))
    opened = client.get("/?token=secret&q=a", follow_redirects=False)
    assert (opened.status_code, opened.headers["location"]) == (303, "/?q=a")
    cookie = opened.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert client.get("/api/runs").status_code == 200  # by the cookie
    other = client_of(service, access=Access((), "secret"))
    assert other.get("/?token=wrong", follow_redirects=False).status_code == 401


def test_any_other_host_than_this_machine_needs_a_token():
    assert access_for("127.0.0.1", None, ()).token is None
    assert access_for("127.0.0.1", None, ()).hosts == LOOPBACK
    made = [access_for("0.0.0.0", None, ()).token for _ in range(2)]
    assert len(set(made)) == 2
    assert min(map(len, made)) >= 32
    assert access_for("0.0.0.0", "mine", ()).token == "mine"


def test_every_response_forbids_what_the_page_does_not_need(client):
    for path in ("/", "/api/runs", "/api", "/nothing", "/api/ask"):
        headers = client.get(path).headers
        assert headers["content-security-policy"] == POLICY
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
    assert "unsafe" not in POLICY


def test_a_request_that_is_too_large_is_refused(client, service):
    large = b'{"question": "' + b"x" * service.limits.body + b'"}'
    headers = {"Content-Type": "application/json"}
    assert client.post("/api/ask", content=large, headers=headers).status_code == 413

    def parts():
        for first in range(0, len(large), 10_000):
            yield large[first : first + 10_000]

    chunked = client.post("/api/ask", content=parts(), headers=headers)
    assert chunked.status_code == 413


def test_the_log_has_a_line_of_json_for_each_request_without_its_query(service, capsys):
    client = client_of(service, log=True)
    client.get("/api/ask?question=secret%0A&token=secret")
    (line,) = capsys.readouterr().err.splitlines()
    record = json.loads(line)
    assert (record["method"], record["path"], record["status"]) == ("GET", "/api/ask", 400)
    assert "secret" not in line
