"""The report on a run, as it is served."""

import shutil

import pytest

from lmpnn_kge.errors import RunError, TimeLimitError
from lmpnn_kge.serve import run_report
from lmpnn_kge.serve.run_report import RunReport
from lmpnn_kge.work.deadline import time_limit


def test_a_report_is_drawn_again_only_if_the_run_has_changed(run_folder, tmp_path):
    folder = shutil.copytree(run_folder, tmp_path / "run")
    report = RunReport("toy", folder)
    first = report.page()
    assert report.page() is first
    (folder / "new.json").write_text("{}")
    second = report.page()
    assert second == first
    assert second is not first


def test_drawing_ends_at_the_time_limit_and_so_does_waiting_for_it(run_folder):
    report = RunReport("toy", run_folder)
    with time_limit(1e-6), pytest.raises(TimeLimitError):
        report.page()
    with run_report._drawing, time_limit(1e-6), pytest.raises(TimeLimitError):
        report.page()
    assert report.page().startswith("<!DOCTYPE html>")


def test_a_run_that_is_gone_is_named(run_folder, tmp_path):
    with pytest.raises(RunError, match="gone"):
        RunReport("toy", tmp_path / "gone").page()
