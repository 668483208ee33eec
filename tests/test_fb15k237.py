"""The end-to-end proof: link prediction on FB15k-237 gives the figures that LibKGE measured."""

import json

import pytest
import yaml
from click.testing import CliRunner

from lmpnn_kge.cli import main


@pytest.mark.parametrize("name", ["complex", "conve", "distmult", "rescal", "rotate", "transe"])
def test_filtered_test_metrics_are_those_of_libkge(fb15k237, name):
    recorded = yaml.safe_load((fb15k237 / "checkpoints" / "metrics.yaml").read_text())[name]
    file = fb15k237 / "checkpoints" / f"{name}.pt"
    arguments = ["--dataset", str(fb15k237 / "dataset"), "--rank", "test", "--json"]
    result = CliRunner().invoke(main, ["inspect", str(file), *arguments])
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)
    assert facts["backbone"] == name
    measured = facts["ranking"]
    assert measured["split"] == "test"
    assert measured["mrr"] == pytest.approx(recorded["test_mrr_filtered"], abs=1e-5)
    for hits in ("hits@1", "hits@3", "hits@10"):
        assert measured[hits] == pytest.approx(recorded[hits], abs=1e-4)
