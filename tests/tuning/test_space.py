"""Search spaces as a user types them."""

import pytest

from lmpnn_kge.errors import ConfigError
from lmpnn_kge.settings.files import load_config
from lmpnn_kge.tuning.space import Choices, Range, make_space

BASE = load_config("tiny")


def test_ranges_and_choices_have_the_type_of_their_setting():
    space = make_space(
        BASE,
        [
            "learning_rate=1e-4..1e-2,log",
            "hidden=64..512",
            "epsilon = 0 .. 0.5",
            "negatives=shared|all",
            "residual=true|false",
            "hidden_layers=1|2|1",
        ],
    )
    assert space == {
        "learning_rate": Range(1e-4, 1e-2, log=True),
        "hidden": Range(64, 512),
        "epsilon": Range(0.0, 0.5),
        "negatives": Choices(("shared", "all")),
        "residual": Choices((True, False)),
        "hidden_layers": Choices((1, 2)),
    }
    assert isinstance(space["hidden"].low, int)
    assert isinstance(space["epsilon"].low, float)


def test_a_file_has_the_same(tmp_path):
    file = tmp_path / "space.yaml"
    file.write_text("temperature: 0.05..1,log\nnegatives: [shared, all]\nhidden: 64|128\n")
    assert make_space(BASE, ["hidden=1..2"], file) == {
        "temperature": Range(0.05, 1.0, log=True),
        "negatives": Choices(("shared", "all")),
        "hidden": Range(1, 2),
    }


def test_what_is_printed_is_read_again():
    texts = ["learning_rate=0.0001..0.01,log", "hidden=64..512", "negatives=shared|all"]
    space = make_space(BASE, texts)
    assert [f"{name}={part}" for name, part in space.items()] == texts


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("hidden", "is not a search: write NAME=LOW..HIGH"),
        ("hidden=", "is not a search"),
        ("hiden=1..2", "there is no setting 'hiden'; did you mean 'hidden'"),
        ("hidden=2..1", r"the range 2\.\.1 of hidden is empty"),
        ("epsilon=0..1,log", "has no logarithm"),
        ("hidden=0..5", "hidden is 0, but must be at least 1"),
        ("hidden=1.5..5", "hidden is '1.5', but must be a whole number"),
        ("negatives=all..shared", "negatives is not a number; write its values as negatives=A|B|C"),
        ("negatives=al|shared", "negatives is 'al'; did you mean 'all'"),
        ("epochs=1..5", "epochs cannot be searched for: it is the same for all trials"),
        ("seed=1|2", "seed cannot be searched for"),
    ],
)
def test_mistakes_are_refused(text, words):
    with pytest.raises(ConfigError, match=words.replace("|", r"\|")):
        make_space(BASE, [text])


def test_a_search_needs_a_setting(tmp_path):
    with pytest.raises(ConfigError, match="nothing to search for"):
        make_space(BASE)
    (tmp_path / "space.yaml").write_text("hidden: {a: 1}")
    with pytest.raises(ConfigError, match=r"hidden has .* in place of a range or a list"):
        make_space(BASE, (), tmp_path / "space.yaml")
