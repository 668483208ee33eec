"""Checksums in texts: whatever changes is noticed, and older files without one are read."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmpnn_kge.files.checked import (
    CHECKSUM,
    check_yaml,
    with_checksum,
    without_checksum,
    yaml_with_checksum,
)

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
CONTENTS = st.dictionaries(st.text().filter(lambda key: key != CHECKSUM), VALUES, max_size=4)


@given(CONTENTS)
def test_what_was_written_is_read(content):
    assert without_checksum(json.loads(json.dumps(with_checksum(content)))) == content


@given(CONTENTS, st.data())
def test_a_changed_character_gives_the_same_content_or_is_refused(content, data):
    text = json.dumps(with_checksum(content))
    place = data.draw(st.integers(0, len(text) - 1))
    changed = text[:place] + data.draw(st.characters()) + text[place + 1 :]
    try:
        read = without_checksum(json.loads(changed))
    except ValueError:
        return
    # The key of the checksum itself may have become another one.
    assert {key: read.get(key) for key in content} == content


def test_numbers_and_tuples_are_compared_as_json_writes_them():
    content = {"a": (1, 2.5), "b": {2: "x", 10: "y"}}
    written = json.loads(json.dumps(with_checksum(content)))
    assert without_checksum(written) == {"a": [1, 2.5], "b": {"2": "x", "10": "y"}}


def test_a_file_of_an_older_version_has_no_checksum():
    assert without_checksum({"a": 1}) == {"a": 1}
    check_yaml("hidden: 8\n")


@pytest.mark.parametrize("content", [[], 7, "x", None])
def test_only_a_mapping_has_a_checksum(content):
    with pytest.raises(ValueError, match="mapping"):
        without_checksum(content)


def test_content_that_is_too_deep_to_be_written_is_refused():
    deep: dict = {}
    for _ in range(200_000):
        deep = {"a": deep}
    with pytest.raises(ValueError, match="nested too deeply"):
        without_checksum({"a": deep, CHECKSUM: ""})
    while deep:  # Python would free it level by level
        deep = deep.pop("a")


def test_settings_that_were_changed_are_refused():
    text = yaml_with_checksum("hidden: 8\nseed: 1\n")
    check_yaml(text)
    for changed in (text.replace("8", "9"), text.replace("hidden: 8\n", ""), text[:-2], text + "#"):
        with pytest.raises(ValueError, match="changed since it was written"):
            check_yaml(changed)
