"""Several processes that torchrun starts train and evaluate as one process does, bit for bit."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lmpnn_kge import train
from lmpnn_kge.runs.baselines import evaluate_method
from lmpnn_kge.runs.pretrain import pretrain

from ..conftest import TOY
from ..toy_runs import ROTATE, options, partials, result_of, train_tiny

#: The command, but the second process is killed in an epoch unless it was restarted after that.
KILLED = """
import os, signal
from lmpnn_kge.cli import main
from lmpnn_kge.training.loop import Loop

whole = Loop.step

def step(loop, batch):
    here = os.environ["RANK"], os.environ["TORCHELASTIC_RESTART_COUNT"]
    if here == ("1", "0") and (loop.state.epoch, loop.state.step) == (1, 2):
        os.kill(os.getpid(), signal.SIGKILL)
    return whole(loop, batch)

Loop.step = step
main(prog_name="lmpnn-kge")
"""


#: The first attempt leaves a key and is killed; the second prints whether it sees the key.
RESTARTED = """
import os, signal
from lmpnn_kge.processes import job

with job() as processes:
    print(processes.store.check(["left"]), flush=True)
    processes.any()
    processes.store.set("left", "an address")
    if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
        os.kill(os.getpid(), signal.SIGKILL)
"""


#: A job that takes a step of an optimiser, and prints the threads that are left after it.
ENDED = """
from pathlib import Path
import torch
from lmpnn_kge.processes import job

with job() as processes:
    weight = torch.ones(3, requires_grad=True)
    weight.sum().backward()
    torch.optim.Adam([weight]).step()
    processes.any()
print(*(task.joinpath("comm").read_text().strip() for task in Path("/proc/self/task").iterdir()))
"""


def torchrun(processes: int, *arguments, program=("-m", "lmpnn_kge"), restarts: int = 0):
    """A job on this machine; torchrun chooses a free port."""
    launcher = ["-m", "torch.distributed.run", "--standalone", f"--max-restarts={restarts}"]
    words = [*launcher, f"--nproc-per-node={processes}", *program, *arguments]
    return [sys.executable, *map(str, words)]


def run_job(*arguments, cwd: Path, **more) -> subprocess.CompletedProcess:
    command = torchrun(*arguments, **more)
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=500)


def errors(job: subprocess.CompletedProcess) -> list[str]:
    return [line for line in job.stderr.splitlines() if line.startswith("Error: ")]


def training(queries: Path, out: str, **changes) -> list:
    inputs = ["--checkpoint", ROTATE, "--dataset", TOY / "dataset", "--queries", queries]
    return ["train", *inputs, "--out", out, *options(epochs=3, parts=4, **changes)]


@pytest.fixture(scope="module")
def whole(tmp_path_factory, toy_queries):
    """A run of one process."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    train_tiny(toy_queries, folder, epochs=3, parts=4)
    return folder


@pytest.mark.parametrize("processes", [2, pytest.param(4, marks=pytest.mark.long)])
def test_several_processes_train_to_the_same_bits(here, toy_queries, whole, processes):
    job = run_job(processes, *training(toy_queries, "run"), cwd=here)
    assert job.returncode == 0, job.stderr
    assert job.stdout.count("test, MRR in percent:") == 1  # by one process
    assert job.stderr.count("epoch   1/3") == 1
    assert result_of(here / "run") == result_of(whole)
    assert partials(here) == []


@pytest.mark.long
def test_a_killed_process_ends_the_job_with_one_message_and_any_number_resumes_it(
    here, toy_queries, whole
):
    (here / "killed.py").write_text(KILLED)
    job = run_job(2, *training(toy_queries, "run"), program=["killed.py"], cwd=here)
    assert job.returncode != 0
    assert errors(job) == [
        "Error: another process of this job has ended; --resume continues from what is saved"
    ]
    assert len((here / "run" / "metrics.jsonl").read_text().splitlines()) == 1
    train(out=here / "run", resume=True)  # alone
    assert result_of(here / "run") == result_of(whole)
    assert partials(here) == []


@pytest.mark.long
def test_restarted_processes_do_not_see_the_addresses_of_those_before(here):
    (here / "restarted.py").write_text(RESTARTED)
    job = run_job(2, program=["restarted.py"], restarts=1, cwd=here)
    assert job.returncode == 0, job.stderr
    assert job.stdout.count("False") == 4  # of two attempts with two processes
    assert "True" not in job.stdout


@pytest.mark.long
@pytest.mark.parametrize("negatives", [0, 7])
def test_a_pretraining_that_torchrun_restarts_ends_in_the_same_bits(here, toy_dataset, negatives):
    settings = {"dim": 8, "batch_size": 32, "epochs": 2, "penalty": 0.1, "entity_dropout": 0.2}
    settings |= {"relation_dropout": 0.2, "negatives": negatives, "parts": 2, "patience": 0}
    ranking = pretrain("complex", toy_dataset, here / "one.safetensors", settings=settings)
    (here / "killed.py").write_text(KILLED)
    given = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    arguments = ["--backbone", "complex", "--dataset", toy_dataset, *given, "--resume"]
    job = run_job(
        *(2, "pretrain", *arguments, "-o", "two.safetensors"),
        program=["killed.py"],
        restarts=1,
        cwd=here,
    )
    assert job.returncode == 0, job.stderr
    assert f"test, filtered: MRR {ranking.mrr:.4f}" in job.stdout
    assert (here / "two.safetensors").read_bytes() == (here / "one.safetensors").read_bytes()
    assert not (here / "two.safetensors.training").exists()


@pytest.mark.long
def test_several_processes_evaluate_a_method_that_one_of_them_has_fitted(here, toy_queries):
    checkpoint = here / "rotate.pt"
    checkpoint.write_bytes(ROTATE.read_bytes())
    inputs = ["--checkpoint", checkpoint, "--dataset", TOY / "dataset", "--queries", toy_queries]
    job = run_job(2, "evaluate", "--method", "hybrid", *inputs, "--json", cwd=here)
    assert job.returncode == 0, job.stderr
    assert job.stderr.count("fitting hybrid on valid") == 1
    alone = evaluate_method(
        "hybrid", checkpoint, dataset=TOY / "dataset", queries=toy_queries
    ).to_json()
    assert json.loads(job.stdout) == alone


@pytest.mark.long
def test_a_mistake_is_reported_once(here):
    job = run_job(2, "train", "--checkpoint", "none.pt", cwd=here)
    assert job.returncode != 0
    assert errors(job) == ["Error: none.pt does not exist"]
    refused = run_job(2, "ask", "run", "r(a, ?)", cwd=here)
    assert errors(refused) == [
        "Error: ask runs in one process, but WORLD_SIZE is 2; start it without torchrun"
    ]


@pytest.mark.long
def test_a_job_that_is_told_to_stop_saves_at_one_step(here, toy_queries):
    command = torchrun(2, *training(toy_queries, "run", patience=0), "--epochs", 2000)
    job = subprocess.Popen(
        command, cwd=here, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    while not job.stderr.readline().startswith("epoch   2"):
        assert job.poll() is None
    job.send_signal(signal.SIGTERM)
    stdout, stderr = job.communicate(timeout=120)
    assert stdout.startswith("stopped and saved; continue with: "), stderr
    assert [line for line in stderr.splitlines() if line.startswith("Error: ")] == []
    assert (here / "run" / "state.safetensors").exists()
    assert os.listdir(here) == ["run"]


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="this system has no /proc")
@pytest.mark.long
def test_no_thread_outlives_a_job(here):
    (here / "ended.py").write_text(ENDED)
    job = run_job(2, program=["ended.py"], cwd=here)
    assert job.returncode == 0, job.stderr
    assert job.stdout
    assert "gloo" not in job.stdout
