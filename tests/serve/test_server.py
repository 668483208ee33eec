"""The command `serve` as a process: it starts, answers what the documentation shows, and stops."""

import os
import re
import shutil
import signal
import socket
import subprocess

import pytest

from lmpnn_kge.serve.server import listen

from ..pages import DOCS, blocks, check_options, joined
from ..serving import serving
from ..toy_runs import cli


@pytest.fixture(scope="module")
def server(run_folder, tmp_path_factory):
    with serving(tmp_path_factory.mktemp("log") / "log", run_folder) as server:
        yield server


def examples(program: str) -> list[str]:
    lines = [line for block in blocks(DOCS["serve.md"], "sh") for line in joined(block)]
    return [line for line in lines if line.startswith(program)]


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
@pytest.mark.parametrize("line", [*examples("curl "), *examples("printf ")])
def test_the_requests_of_the_documentation_are_answered(server, line, tmp_path):
    command = line.replace("127.0.0.1:8000", f"127.0.0.1:{server.port}")
    command = re.sub(r"\bcurl ", "curl -sS --fail-with-body ", command)
    shell = ["bash", "-euo", "pipefail", "-c", command]
    asked = subprocess.run(shell, capture_output=True, text=True, cwd=tmp_path)
    assert asked.returncode == 0, asked.stdout + asked.stderr
    made = next(tmp_path.iterdir(), None)
    content = asked.stdout if made is None else made.read_text()
    assert content.startswith(("{", "<", "who,label", "@prefix")), content
    assert '"error": {' not in content


def test_the_command_of_the_documentation_has_these_options():
    (line,) = examples("lmpnn-kge serve")
    check_options(line)


def test_a_server_that_is_told_to_stop_stops(run_folder, tmp_path):
    with serving(tmp_path / "log", run_folder) as server:
        assert server.get("/health")["status"] == "ok"
        server.process.send_signal(signal.SIGTERM)
        server.process.wait(60)
        with socket.socket() as gone, pytest.raises(ConnectionRefusedError):
            gone.connect(("127.0.0.1", server.port))


def test_the_log_is_written_to_standard_error(server):
    server.get("/api/runs")
    server.get("/health")  # the line about a request is written after its response was sent
    assert '"path": "/api/runs"' in server.log.read_text()


def test_a_port_that_is_taken_is_a_mistake_in_one_line(run_folder):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        result = cli("serve", run_folder, "--port", taken.getsockname()[1], code=2)
    assert "choose another one with --port" in result.stderr


def test_what_is_not_a_run_is_a_mistake_in_one_line(tmp_path):
    result = cli("serve", tmp_path, "--port", 0, code=2)
    assert "is not a run folder" in result.stderr


def test_another_host_than_this_machine_prints_a_token(run_folder, tmp_path, monkeypatch):
    monkeypatch.setitem(os.environ, "LMPNN_KGE_TOKEN", "of-my-own")
    with serving(tmp_path / "log", run_folder, "--host", "0.0.0.0") as server:
        refused = subprocess.run(
            ["curl", "-s", f"{server.address}/api/runs"], capture_output=True, text=True
        )
        assert "a token is needed" in refused.stdout
        answered = subprocess.run(
            ["curl", "-s", "-H", "Authorization: Bearer of-my-own", f"{server.address}/health"],
            capture_output=True,
            text=True,
        )
        assert '"ok"' in answered.stdout


def test_a_response_is_sent_without_waiting_for_more():
    with listen("127.0.0.1", 0) as listening:
        assert listening.proto == socket.IPPROTO_TCP  # by which asyncio sets TCP_NODELAY
