"""Responses as bytes: taken apart by the rules of HTTP, and searched for what none may have."""

import json
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from html.parser import HTMLParser

from .campaign import FORBIDDEN, LONGEST, Wrong

#: What uvicorn answers to bytes that are not HTTP, before the application sees them.
NOT_HTTP = b"Invalid HTTP request received."

#: How a server may refuse: nothing of it is a mistake of its own, such as 500.
REFUSALS = {400, 401, 403, 404, 405, 406, 408, 413, 415, 421, 503, 504}
ANSWERS = {200, 204, 206, 304, 307}


@dataclass(frozen=True)
class Response:
    """A response with its status, headers and body."""

    status: int
    headers: dict[str, str]
    body: bytes


def split(content: bytes, methods: list[str]) -> tuple[list[Response], bytes]:
    """The whole responses to requests with these methods, and the rest."""
    responses: list[Response] = []
    while b"\r\n\r\n" in content:
        head, _, rest = content.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        if (status := re.fullmatch(r"HTTP/1\.1 (\d\d\d) [ -~]*", first)) is None:
            raise Wrong(f"a response begins with {first[:100]!r}")
        headers = {}
        for line in lines:
            name, colon, value = line.partition(": ")
            if not colon or name in headers:
                raise Wrong(f"a response has the header {line[:100]!r}")
            headers[name.lower()] = value
        if status[1] == "100":
            content = rest
            continue
        method = methods[len(responses)] if len(responses) < len(methods) else "GET"
        body = _body(rest, headers, method == "HEAD" or status[1] in ("204", "304"))
        if body is None:
            break
        size, text = body
        responses.append(Response(int(status[1]), headers, text))
        content = rest[size:]
    return responses, content


def _body(rest: bytes, headers: dict[str, str], is_empty: bool) -> tuple[int, bytes] | None:
    """How many bytes belong to a body, and the body; None if it is not whole yet."""
    if is_empty:
        return 0, b""
    if headers.get("transfer-encoding") == "chunked":
        place, parts = 0, b""
        while (
            found := re.compile(rb"([0-9a-f]+)\r\n", re.IGNORECASE).match(rest, place)
        ) is not None:
            size = int(found[1], 16)
            parts += rest[found.end() : found.end() + size]
            place = found.end() + size + 2
            if not size:
                return (place, parts) if len(rest) >= place else None
        return None
    if "content-length" not in headers:
        return (len(rest), rest) if NOT_HTTP in rest else None
    size = int(headers["content-length"])
    return (size, rest[:size]) if len(rest) >= size else None


def check(response: Response) -> None:
    """Wrong if a response has what none may have."""
    status, body = response.status, response.body
    if status not in REFUSALS | ANSWERS:
        raise Wrong(f"the status is {status}: {body[:500]!r}")
    if (
        status == 400
        and body in (b"", NOT_HTTP)
        and "text/plain" in response.headers["content-type"]
    ):
        return  # by uvicorn; to HEAD without a body
    for name, value in (("x-content-type-options", "nosniff"), ("referrer-policy", "no-referrer")):
        if response.headers.get(name) != value:
            raise Wrong(f"the header {name} is {response.headers.get(name)!r}")
    if "default-src 'none'" not in response.headers.get("content-security-policy", ""):
        raise Wrong("the policy is missing")
    if "\r" in str(response.headers) or "evil" in str(response.headers):
        raise Wrong(f"a header of the request came back: {response.headers}")
    if body:
        _check_body(response.headers.get("content-type", ""), status, body)


def _check_body(media_type: str, status: int, body: bytes) -> None:
    kind = media_type.partition(";")[0]
    text = body.decode("utf-8")
    if status >= 400:
        if kind != "application/json":
            raise Wrong(f"a refusal has the type {media_type}")
        check_error(json.loads(text)["error"])
    elif kind == "application/x-ndjson":
        for line in text.splitlines():
            _strict_json(line)
    elif kind in ("application/json", "application/sparql-results+json"):
        _strict_json(text)
    elif kind == "image/svg+xml" or kind.endswith("xml"):
        _check_xml(body)
    elif kind == "text/html":
        page = _Page()
        page.feed(text)
        page.close()
    elif kind not in ("text/csv", "text/tab-separated-values", "text/turtle", *_ASSETS):
        raise Wrong(f"a response has the type {media_type!r}")


_ASSETS = ("text/css", "text/javascript")


def check_error(error: dict[str, str]) -> None:
    """Wrong if an error is not one short line."""
    message = error["message"]
    if "\n" in message or len(message) + len(error["excerpt"] or "") > LONGEST:
        raise Wrong(f"the message is {message[:500]!r}")
    if words := [word for word in FORBIDDEN if word in message]:
        raise Wrong(f"the message says {words[0]!r}: {message[:500]}")


def _strict_json(text: str) -> None:
    def refuse(word: str) -> None:
        raise Wrong(f"JSON has {word}")

    json.loads(text, parse_constant=refuse)


def _check_xml(body: bytes) -> None:
    for element in ElementTree.fromstring(body).iter():
        name = str(element.tag).rpartition("}")[2].lower()
        if name in ("script", "img", "iframe", "foreignobject", "b", "i"):
            raise Wrong(f"XML has the element {name}")
        for attribute, value in element.attrib.items():
            if attribute.lower().startswith("on") or value.startswith("javascript:"):
                raise Wrong(f"XML has the attribute {attribute}={value!r}")


class _Page(HTMLParser):
    """Wrong if a page has an element or an attribute that only a name could have brought."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name.startswith("on") or (value or "").strip().startswith("javascript:"):
                raise Wrong(f"a page has <{tag} {name}={value!r}>")
        if tag == "img" and ("src", "x") in attrs:
            raise Wrong("a page has an image that a name brought")
        self.script = tag == "script"

    def handle_data(self, data: str) -> None:
        if getattr(self, "script", False) and "alert(" in data:
            raise Wrong("a page has a script that a name brought")

    def handle_endtag(self, tag: str) -> None:
        self.script = False
