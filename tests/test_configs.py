"""The shipped configurations."""

import pytest
import yaml

from lmpnn_kge.config import load_config

from .conftest import ROOT

CONFIGS = sorted((ROOT / "configs").glob("*.yaml"))


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_every_value_has_its_reason_and_can_be_loaded(path):
    config = load_config(path.stem)
    for key, value in yaml.safe_load(path.read_text()).items():
        assert getattr(config, key) == value
    settings = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    assert settings
    assert all("#" in line for line in settings)


def test_the_paper_has_settings_for_its_three_graphs():
    names = {path.stem for path in CONFIGS}
    assert names >= {"paper-fb15k", "paper-fb15k-237", "paper-nell"}
