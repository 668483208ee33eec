"""Parameters: any value is read as its type or refused in one line."""

import json
from dataclasses import dataclass
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmpnn_kge.errors import ConfigError
from lmpnn_kge.serve.schema import parameter, parameters_schema, read_parameters

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=5,
)


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Something of every type."""

    name: str = parameter("A name.")
    count: int = parameter("A count.", 1, 0)
    share: float | None = parameter("A share.", None, 0)
    is_new: bool = parameter("Whether it is new.", False)
    side: Literal["head", "tail"] | None = parameter("A side.", None)
    place: int | str | None = parameter("A place.", None)
    numbers: list[int] | None = parameter("Numbers.", None)


def test_texts_of_a_url_become_values():
    given = {"name": "a", "count": "3", "share": "0.5", "is_new": "true", "side": "head",
             "place": "7", "numbers": "1,2"}  # fmt: skip
    read = read_parameters(Wanted, given, as_text=True)
    assert read == Wanted(
        name="a", count=3, share=0.5, is_new=True, side="head", place=7, numbers=[1, 2]
    )
    assert read_parameters(Wanted, {"name": "1", "place": "x"}, as_text=True).place == "x"


@pytest.mark.parametrize(
    "wrong",
    [{"count": "x"}, {"count": "1e400"}, {"share": "nan"}, {"share": "-1"}, {"is_new": "maybe"},
     {"side": "left"}, {"numbers": "1,,2"}, {"count": "9" * 40}, {"other": "1"}],
)  # fmt: skip
def test_a_wrong_text_is_refused(wrong):
    with pytest.raises(ConfigError):
        read_parameters(Wanted, {"name": "a", **wrong}, as_text=True)


@given(st.dictionaries(st.sampled_from([*vars(Wanted(name="")), "other"]), ANYTHING))
def test_any_json_is_read_as_its_types_or_refused(values):
    try:
        read = read_parameters(Wanted, values, as_text=False)
    except ConfigError:
        return
    assert isinstance(read.name, str)
    assert type(read.count) is int
    assert read.share is None or type(read.share) is float
    assert read.side in (None, "head", "tail")
    assert read.numbers is None or all(type(number) is int for number in read.numbers)


def test_the_schema_names_what_is_required_and_the_defaults():
    schema = parameters_schema(Wanted, {})
    assert schema["required"] == ["name"]
    assert schema["properties"]["count"] == {
        "type": "integer", "description": "A count.", "minimum": 0, "default": 1
    }  # fmt: skip
    json.dumps(schema)
