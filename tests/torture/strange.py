"""Values, paths and headers at which a server could go wrong."""

from urllib.parse import quote

from .hostile_graph import MARKUP, RUN

STRANGE_TEXTS = (
    "", " ", "\0", "\ud800", "\udfff x", "\ufeff", "\x1b[31m", "\r\nX: y", "%", "%00", "%ff",
    "null", MARKUP, "../../etc/passwd", "'; --", "{{7*7}}", "?", "é" * 500, "a" * 12_000, "𝄞", "-1",
    "NaN",
)  # fmt: skip

STRANGE_NUMBERS = (
    0, -1, 1, 2, 2**31, -(2**31), 2**53, 2**63, 2**64, -(2**63), 10**30, 10**300, 0.5, -0.0, 1e-300,
    1e300, -1e300,
)  # fmt: skip

STRANGE = (
    None, True, False, [], {}, [[]], [1, "x", None], {"a": {"b": []}}, {"question": "x"},
)  # fmt: skip

#: JSON that no library writes.
STRANGE_JSON = (
    "", "[", "{", "]", "nul", "NaN", "Infinity", "-Infinity", "1e999", "01", '"\\ud800"', "'x'",
    "[" * 5_000, '{"a":' * 5_000, "[" * 100_000 + "]" * 100_000, "9" * 20_000, '{"k":1,"k":2}',
    '{"question":"x","question":"y"}', '"\\u0000"', "\xff\xfe{\0}\0", "\xef\xbb\xbf{}", "{}\0",
    '{"\\ud800": 1}', '{"question": "\\udc80"}', "\xc3\x28", "\xed\xa0\x80", "{}{}", "[]", '"x"',
)  # fmt: skip

METHODS = (
    "GET", "POST", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "PRI", "get",
    "QUERY", "GET/", "PROPFIND", "G" * 300,
)  # fmt: skip

PATHS = (
    "/", "//", "/.", "/..", "/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/static/", "/static",
    "/static/../app.py", "/static/..%2fapp.py", "/static/%2e%2e%2fapp.py", "/static/..\\app.py",
    "/static/index.html%00.js", "/static/%ff", "/static/index.html", "/static/index.html/",
    "/report", "/report/..", "/report/%2e%2e", "/report/%2fetc%2fpasswd", "/report/" + quote(RUN),
    "/api", "/api/", "/api//ask", "/api/ask/", "/API/ask", "/api/openapi.json",
    "/api/%61sk?question=%3F", "/sparql", "/sparql/", "/sparql/..", "/sparql/" + quote(RUN),
    "/sparql/%3Cb%3E", "/health", "/health/../api/runs", "/;/api/runs", "/api/runs;x=1",
    "/api/runs#x", "/api/runs?%00", "*", "http://evil.example/api/runs", "//evil.example/api/runs",
    "/\\evil.example", "evil.example:80", "/" + "a" * 3_000, "/" + "a/" * 30_000,
    "/api/ask?question=" + "a" * 60_000, "/?" + "a=b&" * 500, "/?token=x", "/?token=%00", "/%",
    "/%zz", "/%c0%af", "/.git/config", "/api/runs?run[]=x",
)  # fmt: skip

HEADERS = (
    "Host: evil.example", "Host:", "Host: 127.0.0.1:99999999", "Host: [::1", "Host: 127.0.0.1\0",
    "Host: 127.0.0.1@evil.example", "X-Forwarded-Host: evil.example", "Origin: null",
    "Origin: https://evil.example", "Origin: http://127.0.0.1", "Origin: " + "x" * 5_000,
    "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Cookie: lmpnn_kge_token=\xff;;=;",
    "Cookie: " + "a=b; " * 2_000, "Authorization: Bearer", "Authorization: Basic \xff\xfe",
    "Content-Length: 5", "Content-Length: -1", "Content-Length: +5", "Content-Length: 0x5",
    "Content-Length: 99999999999999999999999999", "Content-Length: 5\r\nContent-Length: 6",
    "Content-Length: 5, 6", "Content-Length: \xb2", "Content-Length : 5",
    "Transfer-Encoding: chunked", "Transfer-Encoding: identity",
    "Transfer-Encoding: chunked, chunked", "Transfer-Encoding: x",
    "Transfer-Encoding: chunked\r\nContent-Length: 5", "Transfer-Encoding : chunked",
    "Transfer-Encoding:\x0bchunked", "Expect: 100-continue", "Expect: x", "Upgrade: websocket",
    "Connection: upgrade\r\nUpgrade: websocket", "Connection: keep-alive, close",
    "Range: bytes=0-1", "If-None-Match: *", "Accept: " + "a/b;q=0.1," * 500, "Accept: */*;q=nan",
    "Accept: \xff", "Accept-Encoding: gzip, br", "Content-Encoding: gzip", "X: a\r\n b", "X: a\0b",
    "X: \x7f", ": x", "X", " X: y", "X\t: y", "X: y\r", "\xff: y", "X: " + "y" * 20_000,
    "X: y\nZ: w",
    "Content-Type: application/json", "Content-Type: application/x-ndjson",
    "Content-Type: application/sparql-query", "Content-Type: application/x-www-form-urlencoded",
    "Content-Type: text/plain", "Content-Type: multipart/form-data; boundary=x", "Content-Type:",
    "Content-Type: application/json; charset=utf-16", "Content-Type: " + "a" * 3_000,
    "Content-Type: \xff", "Content-Type: application/json; charset=\xff",
)  # fmt: skip

#: Valid values of parameters that have few.
WORDS = {
    "role": ("entity", "relation"), "end": ("head", "tail"), "split": ("train", "valid", "test"),
    "candidates": ("typed-first", "typed", "any"), "format": ("json", "svg"),
    "method": ("hybrid", "search", "lmpnn", "cqd-beam"),
    "action": ("add", "negate", "remove", "replace", "ask", "deny", "allow", "remove-part"),
}  # fmt: skip

#: Bodies for headers that contradict each other.
BODIES = (
    "", "{}", '5\r\n{"k":\r\n2\r\n1}\r\n0\r\n\r\n', "-5\r\nx", "fffffffffffffffff\r\nx",
    "0\r\n\r\n", "5;x=y\r\nabcde\r\n0\r\nX: y\r\n\r\n",
    "0\r\n\r\nGET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
)  # fmt: skip

STREAM_OPTIONS = (
    "", "", "", "?k=2", "?method=search", "?explain=1", "?k=-1", "?run=x", "?x=1",
)  # fmt: skip

SPARQL_OPTIONS = (
    "", "", "", "", "", "answers=exact", "answers=predicted", "answers=predicted",
    "answers=predicted&k=3", "split=train", "format=csv", "k=1", "default-graph-uri=x",
    "answers=%ff", "update=x", "answers=predicted&k=99999999",
)  # fmt: skip

ACCEPTS = (
    "*/*", "*/*", "*/*", "*/*", "*/*", "*/*", "application/sparql-results+json",
    "application/sparql-results+xml", "text/csv", "text/tab-separated-values", "application/json",
    "application/xml", "text/html", "text/turtle", "image/svg+xml",
    "text/html,application/xhtml+xml,*/*;q=0.8", "image/png", "*/*;q=0", "x",
)  # fmt: skip
