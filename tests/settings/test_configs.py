"""The shipped configurations."""

import pytest
import yaml

from lmpnn_kge.reports.published import ABLATION, BEST, published
from lmpnn_kge.settings.files import load_config, shipped
from lmpnn_kge.settings.kinds import KINDS
from lmpnn_kge.tables.file import read_table

from ..conftest import ROOT

CONFIGS = sorted((ROOT / "configs").glob("*.yaml"))


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_every_value_has_its_reason_and_can_be_loaded(path):
    config = load_config(path.stem)
    for key, value in yaml.safe_load(path.read_text()).items():
        assert getattr(config, key) == value
    settings = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    assert settings
    assert all("#" in line for line in settings)


@pytest.mark.parametrize("file", [f for kind in KINDS.values() for f in shipped(kind).values()])
def test_the_first_line_is_a_short_summary_for_the_list(file):
    first = file.read_text().splitlines()[0]
    assert first.startswith("# ")
    assert len(first) <= 75


def test_the_default_says_how_it_differs_from_the_paper():
    ours, theirs = vars(load_config("small")), vars(load_config("paper-small"))
    lines = (ROOT / "configs" / "default.yaml").read_text().splitlines()
    head = " ".join(line for line in lines if line.startswith("#"))
    differing = {key for key in ours if ours[key] != theirs[key]} - {"negative_count"}
    assert differing == {"constants", "negation", "residual", "union", "positives", "negatives"}
    assert all(key in head for key in differing)


def test_the_paper_has_settings_for_its_three_graphs():
    names = {path.stem for path in CONFIGS}
    assert names >= {"paper-fb15k", "paper-fb15k-237", "paper-nell"}


@pytest.mark.parametrize("table", sorted((ROOT / "configs" / "tables").glob("*.yaml")))
def test_every_table_can_be_made_of_every_configuration(table):
    for config in CONFIGS:
        rows = read_table(table.stem, config.stem)
        assert next(iter(rows.values())) == load_config(config.stem)
        assert set(rows) == {"base", *(yaml.safe_load(table.read_text()) or {})}


def test_the_ablation_has_all_rows_of_the_paper():
    rows = read_table("ablation")
    printed = {row.setting for row in published(table=ABLATION)}
    assert printed - set(rows) == {BEST}
    for name, key in (("ε", "epsilon"), ("T", "temperature")):
        values = {n: vars(config)[key] for n, config in rows.items() if n.startswith(f"{name} = ")}
        assert values == {n: float(n.removeprefix(f"{name} = ")) for n in values}
    assert {config.depth_shift for config in rows.values()} == {-1, 0, 1, 2, 3}
    assert rows["L − 1"].depth_shift == -1
