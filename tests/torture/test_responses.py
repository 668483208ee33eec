"""The eyes of the campaign `requests`: they see what no response may have."""

import pytest

from .campaign import Wrong
from .responses import NOT_HTTP, Response, check, split

HEADERS = {
    "content-security-policy": "default-src 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}


def response(body: bytes, media_type: str = "application/json", status: int = 200) -> Response:
    return Response(status, {**HEADERS, "content-type": media_type}, body)


@pytest.mark.parametrize(
    "wrong",
    [
        response(b"{}", status=500),
        response(b"{", status=200),
        response(b'{"x": NaN}'),
        response(b"\xff"),
        response(b"{}", "text/plain"),
        response(b"<img src=x>", "text/html"),
        response(b"<p onclick='alert(1)'>", "text/html"),
        response(b"<script>alert(1)</script>", "text/html"),
        response(b"<a href='javascript:alert(1)'>", "text/html"),
        response(b"<svg><script/></svg>", "image/svg+xml"),
        response(b"<svg onload='x'/>", "image/svg+xml"),
        response(b"<svg>", "image/svg+xml"),
        response(b"<p>wrong</p>", "text/html", 400),
        response(b'{"error": {"message": "a\\nb", "excerpt": null}}', status=400),
        response(b'{"error": {"message": "Traceback", "excerpt": null}}', status=400),
        Response(200, {"content-type": "application/json"}, b"{}"),
        Response(200, {**HEADERS, "x": "evil"}, b""),
    ],
)
def test_what_no_response_may_have_is_seen(wrong):
    with pytest.raises((Wrong, ValueError, SyntaxError)):
        check(wrong)


@pytest.mark.parametrize(
    "right",
    [
        response(b'{"name": "<img src=x onerror=alert(1)>"}'),
        response(b"<p>&lt;img src=x onerror=alert(1)&gt;</p>", "text/html; charset=utf-8"),
        response(b"<svg><text>&lt;script&gt;</text></svg>", "image/svg+xml"),
        response(b'{"error": {"message": "no such entity", "excerpt": null}}', status=400),
        Response(400, {"content-type": "text/plain; charset=utf-8"}, NOT_HTTP),
    ],
)
def test_names_that_are_text_are_fine(right):
    check(right)


def test_responses_are_taken_apart_as_http_says():
    first = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"
    content = b"HTTP/1.1 100 Continue\r\n\r\n" + first + head + chunked + first[:-1]
    responses, rest = split(content, ["GET", "HEAD", "GET", "GET"])
    assert [r.body for r in responses] == [b"{}", b"", b"x"]
    assert rest == first[:-1]
    with pytest.raises(Wrong):
        split(b"SMTP 200 OK\r\n\r\n", ["GET"])
