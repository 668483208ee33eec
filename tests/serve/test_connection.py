"""Connections to clients that send or read too slowly, or do not speak HTTP, are closed."""

import socket
import threading

import pytest
import uvicorn

from lmpnn_kge.serve.connection import Connection

#: More than the buffers of a connection hold, in bytes.
SIZE = 20_000_000

LONG_ENDED = threading.Event()

HEAD = b"GET / HTTP/1.1\r\nHost: x\r\n"


async def app(scope, receive, send):
    """A long response, without a look at the body of the request."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    for more in (True, True, True, False):
        body = b"x" * (SIZE if scope["path"] == "/long" else 1)
        await send({"type": "http.response.body", "body": body, "more_body": more})
    if scope["path"] == "/long":
        LONG_ENDED.set()


@pytest.fixture(scope="module")
def port():
    """A server whose patience ends after a moment."""
    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, http=Connection, lifespan="off", log_config=None, ws="none")
    server = uvicorn.Server(config)
    config.timeout_keep_alive = 0.2
    thread = threading.Thread(target=server.run, args=([listening],))
    thread.start()
    yield listening.getsockname()[1]
    server.should_exit = True
    thread.join()
    listening.close()


def received(connection) -> bytes:
    """All that the server sends until it closes the connection."""
    parts = []
    connection.settimeout(60)
    try:
        while part := connection.recv(1 << 16):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


@pytest.mark.parametrize("beginning", [b"", b"G", HEAD, HEAD + b"X: y\r\n"])
def test_a_request_that_does_not_arrive_ends_its_connection(port, beginning):
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(beginning)
        assert received(connection) == b""


def test_a_request_that_arrives_byte_by_byte_ends_its_connection(port):
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.settimeout(0.01)
        assert any(is_closed_after_a_byte(connection) for _ in range(10_000))


def is_closed_after_a_byte(connection) -> bool:
    try:
        connection.sendall(b"G")
        return connection.recv(1) == b""
    except TimeoutError:  # nothing was sent back, and the connection is open
        return False
    except OSError:
        return True


def test_a_body_that_nobody_reads_does_not_hold_a_connection(port):
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nbegin")
        assert received(connection).startswith(b"HTTP/1.1 200 OK")


def test_a_connection_can_be_used_again_in_time(port):
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall((HEAD + b"\r\n") * 3)
        assert received(connection).count(b"HTTP/1.1 200 OK") == 3


def test_a_client_that_does_not_read_loses_its_connection(port):
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(b"GET /long HTTP/1.1\r\nHost: x\r\n\r\n")
        assert LONG_ENDED.wait(60)  # it cannot end otherwise, because nobody has read it
        assert len(received(connection)) < 4 * SIZE


CHUNKED = b"POST %s HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"


def tracebacks(caplog):
    return [record for record in caplog.records if record.exc_info]


def test_a_request_with_an_invalid_body_has_one_response(port, caplog):
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(CHUNKED % b"/" + b"not a size\r\n")
        response = received(connection)
    assert response.startswith(b"HTTP/1.1 400 Bad Request")
    assert response.count(b"HTTP/1.1") == 1
    assert not tracebacks(caplog)


def test_an_invalid_body_after_the_response_has_begun_ends_the_connection(port, caplog):
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(CHUNKED % b"/long")
        begun = connection.recv(1)
        connection.sendall(b"not a size\r\n")
        assert b"HTTP/1.1 400" not in begun + received(connection)
    assert not tracebacks(caplog)
