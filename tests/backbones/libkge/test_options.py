"""How LibKGE's options inherit, as its format page says."""

import pytest

from lmpnn_kge.backbones.libkge.options import look_up
from lmpnn_kge.graph.formats.libkge import flatten

OPTIONS = {
    "model": "reciprocal_relations_model",
    "reciprocal_relations_model": {
        "base_model": {
            "type": "transe",
            "l_norm": 2.0,
            "entity_embedder": {"+++": "+++"},
        }
    },
    "transe": {
        "class_name": "TransE",
        "l_norm": 1.0,
        "entity_embedder": {"type": "lookup_embedder"},
    },
    "lookup_embedder": {"dim": 100},
}


def test_the_most_specific_value_wins():
    assert look_up(OPTIONS, "reciprocal_relations_model.base_model.l_norm") == 2.0
    assert look_up(OPTIONS, "transe.l_norm") == 1.0


def test_what_is_not_set_is_inherited_through_types():
    assert look_up(OPTIONS, "reciprocal_relations_model.base_model.class_name") == "TransE"
    assert look_up(OPTIONS, "reciprocal_relations_model.base_model.entity_embedder.dim") == 100


@pytest.mark.parametrize("key", ["transe.margin", "nothing", "transe.l_norm.deeper"])
def test_an_option_that_is_not_set_is_none(key):
    assert look_up(OPTIONS, key) is None


def test_sections_that_inherit_from_each_other_are_an_error():
    with pytest.raises(ValueError, match="circle"):
        look_up({"a": {"type": "b"}, "b": {"type": "a"}}, "a.x")


def test_dotted_and_nested_keys_flatten_to_the_same():
    nested = {"files": {"train": {"filename": "t.del"}}}
    dotted = {"files.train.filename": "t.del"}
    assert flatten(nested) == flatten(dotted) == {"files.train.filename": "t.del"}


def test_a_mapping_that_contains_itself_flattens():
    knot: dict = {"x": 1}
    knot["again"] = knot
    assert flatten(knot)["again.again.x"] == 1
