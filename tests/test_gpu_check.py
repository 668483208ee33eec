"""`make gpu-check` finds no difference where there is none, and fails where there is one."""

import pytest
import torch

from . import gpu_check


@pytest.fixture
def one_backbone(monkeypatch):
    monkeypatch.setattr(gpu_check, "BACKBONES", ("rotate",))


def test_the_cpu_agrees_with_itself(one_backbone, capsys):
    assert gpu_check.main(["--device", "cpu", "--quick"]) == 0
    assert "the answers of cpu and the CPU agree" in capsys.readouterr().out


def test_an_answer_that_differs_fails_the_check(one_backbone, monkeypatch, capsys):
    found = iter([torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.1])])
    kinds = ("forward", "loss", "gradients", "ranking", "search")
    monkeypatch.setattr(gpu_check, "answers", lambda *_: dict.fromkeys(kinds, next(found)))
    assert not gpu_check.compare(torch.device("cpu"))
    assert "3.2e-02 !" in capsys.readouterr().out


def test_without_a_gpu_it_says_so_in_a_line(monkeypatch, capsys):
    monkeypatch.setattr(gpu_check, "choose_device", lambda name: torch.device("cpu"))
    assert gpu_check.main([]) == 2
    assert capsys.readouterr().out == (
        "no GPU was found; --device cpu compares the CPU with itself\n"
    )
