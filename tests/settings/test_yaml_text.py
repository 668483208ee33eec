"""YAML of a user: plain values, and nothing that is larger than its text."""

import pytest

from lmpnn_kge.errors import ConfigError
from lmpnn_kge.settings.files import load_config, read_mapping
from lmpnn_kge.settings.values import parse_settings
from lmpnn_kge.settings.yaml_text import NO_YAML, read_yaml

LAUGHS = "a: &a [x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join(['*' + old] * 9)}]\n"
    for old, new in zip("abcdefghij", "bcdefghijk", strict=True)
)
HUGE = "0x" + "f" * 5000


@pytest.mark.parametrize("text", [LAUGHS, "a: &a {x: 1}\nb: {<<: *a}", "&a [*a]"])
def test_aliases_are_refused(tmp_path, text):
    with pytest.raises(NO_YAML, match="alias"):
        read_yaml(text)
    (tmp_path / "file.yaml").write_text(text)
    with pytest.raises(ConfigError, match="cannot be read: it has an alias"):
        read_mapping(tmp_path / "file.yaml")


@pytest.mark.parametrize("text", ["a: 1", "[1, x, null, 2.5, true]", "", "a: {b: [c]}"])
def test_plain_values_are_read(text):
    import yaml

    assert read_yaml(text) == yaml.safe_load(text)


@pytest.mark.parametrize("text", ["!!python/object/apply:os.system [true]", "a: [", "[" * 5000])
def test_anything_else_is_refused(text):
    with pytest.raises(NO_YAML):
        read_yaml(text)


@pytest.mark.parametrize("text", [f"hidden={HUGE}", f"temperature={HUGE}", f"union={HUGE}"])
def test_a_number_that_python_does_not_print_is_a_wrong_value(text):
    with pytest.raises(ConfigError, match="a number of 20,000 bits"):
        load_config(settings=parse_settings([text]))


def test_a_number_that_python_does_not_print_is_a_wrong_name(tmp_path):
    (tmp_path / "file.yaml").write_text(f"? {HUGE}\n: 1\n")
    with pytest.raises(ConfigError, match="no setting 'a number of 20,000 bits'"):
        load_config(tmp_path / "file.yaml")
