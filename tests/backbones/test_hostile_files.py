"""Files that are broken, foreign or malicious: one line, exit code 2, and nothing runs."""

import copy
import json
import os
import pickle
import zipfile
from collections import OrderedDict
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

from lmpnn_kge import open_backbone
from lmpnn_kge.cli import main

from ..conftest import TOY
from ..libkge_files import DIM, ENTITIES, RELATIONS, Config, content, safe_load, save

ENTITY_TABLE = "_entity_embedder._embeddings.weight"
RELATION_TABLE = "_relation_embedder._embeddings.weight"
SOUND = TOY / "checkpoints" / "complex.package.pt"


class Runs:
    """Pickles as a call of a function with one argument."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


def touch(path: Path) -> str:
    return f"open({str(path)!r}, 'w')"


def with_table(name: str, table) -> dict:
    made = content()
    made["model"][0][name] = table
    return made


def without_table(name: str) -> dict:
    made = content()
    del made["model"][0][name]
    return made


def with_options(options) -> dict:
    return content(config=Config(options))


def with_ids(entity_ids) -> dict:
    made = content()
    made["dataset"]["meta"]["entity_ids"] = entity_ids
    return made


def conve(name: str, tensor) -> dict:
    """The content of a sound ConvE with one tensor changed."""
    made = safe_load(TOY / "checkpoints" / "conve-reciprocal.package.pt")
    made["config"] = Config(made["config"].options)
    state = {k: v for k, v in made["model"][0].items() if not k.startswith("_base_model.")}
    if tensor is None:
        del state[name]
    else:
        state[name] = tensor
    return made | {"model": (OrderedDict(state), {})}


def conve_with(kernel: int = 3, **options) -> dict:
    """A sound ConvE with other options or filters."""
    made = conve("_scorer.convolution.weight", torch.ones(32, 1, kernel, kernel))
    made["config"].options["reciprocal_relations_model"]["base_model"] |= options
    return made


def projected(width: int, rows: int = 9) -> dict:
    """A model whose entities are projected from a table of some width."""
    made = without_table(ENTITY_TABLE)
    made["model"][0]["_entity_embedder.base_embedder._embeddings.weight"] = table(rows, width)
    made["model"][0]["_entity_embedder.projection.weight"] = table(rows, width)
    return made


def doubled(times: int) -> list:
    """A list that prints as two to the power of times."""
    found: list = []
    for _ in range(times):
        found = [found, found]
    return found


def table(rows: int = ENTITIES, width: int = DIM, value: float = 1.0) -> torch.Tensor:
    return torch.full((rows, width), value)


def inherits_in_a_circle():
    return with_options(
        {
            "model": "transe",
            "transe": {"class_name": "TransE", "type": "a"},
            "a": {"type": "b"},
            "b": {"type": "a"},
        }
    )


def norm(value):
    return with_options({"model": "transe", "transe": {"class_name": "TransE", "l_norm": value}})


#: What is saved, and words that the message must have.
CONTENTS = {
    "a list": ([1, 2], "a saved list"),
    "a bare tensor": (torch.zeros(3), "a saved Tensor"),
    "a state dict": ({"weight": torch.zeros(3)}, "not a LibKGE checkpoint"),
    "an unknown type": (content(type="model"), "not a LibKGE checkpoint"),
    "an odd type": (content(type=["train"]), "not a LibKGE checkpoint"),
    "no config": ({k: v for k, v in content().items() if k != "config"}, "configuration"),
    "a config that is a dict": (content(config={"model": "distmult"}), "configuration"),
    "a config without options": (content(config=Config(None)), "no options"),
    "a search": (content(type="search"), "search checkpoint"),
    "another search": (content(type="search_grash"), "search checkpoint"),
    "no model": ({k: v for k, v in content().items() if k != "model"}, "it has no model"),
    "a model that is a number": (content(model=(3, {})), "it has no model"),
    "a model that is empty": (content(model=()), "it has no model"),
    "a tensor that is a number": (with_table(ENTITY_TABLE, 3), "not a named tensor"),
    "a name that is a number": (content(model=({1: torch.zeros(2)}, {})), "not a named tensor"),
    "options without a model": (with_options({}), "does not name a model"),
    "a model name that is a list": (with_options({"model": ["distmult"]}), "does not name a model"),
    "a reciprocal model of nothing": (
        with_options({"model": "reciprocal_relations_model"}),
        "base_model.type",
    ),
    "a class name that is a number": (
        with_options({"model": "m", "m": {"class_name": 7}}),
        "name of its model",
    ),
    "sections in a circle": (inherits_in_a_circle(), "circle"),
    "a model nobody knows, to rank": (content("mine", "Mine"), "no installed backbone opens"),
    "no entity table": (without_table(ENTITY_TABLE), f"no tensor {ENTITY_TABLE}"),
    "no relation table": (without_table(RELATION_TABLE), f"no tensor {RELATION_TABLE}"),
    "a table that is a vector": (with_table(ENTITY_TABLE, torch.ones(5)), "shape"),
    "a table that is a cube": (with_table(ENTITY_TABLE, torch.ones(5, 4, 2)), "shape"),
    "a table of integers": (with_table(ENTITY_TABLE, table().long()), "floating point"),
    "a table of complex numbers": (
        with_table(ENTITY_TABLE, table().cfloat()),
        "torch.ComplexFloatStorage",
    ),
    "a table without rows": (
        content(model=({ENTITY_TABLE: table(0), RELATION_TABLE: table(3)}, {}), dataset=None),
        "at least one row",
    ),
    "a table that is wider than the other": (
        with_table(RELATION_TABLE, table(RELATIONS, 6)),
        "width 4, not 6",
    ),
    "NaN in a table": (with_table(ENTITY_TABLE, table(value=float("nan"))), "NaN or infinite"),
    "infinity in a table": (
        with_table(RELATION_TABLE, table(RELATIONS, value=float("inf"))),
        "NaN or infinite",
    ),
    "a sparse table": (with_table(ENTITY_TABLE, table().to_sparse()), "_rebuild_sparse"),
    "a table on no device": (with_table(ENTITY_TABLE, table().to("meta")), "_rebuild_meta"),
    "a table that claims a terabyte": (
        with_table(ENTITY_TABLE, torch.zeros(1).expand(2**38, DIM)),
        "more numbers than",
    ),
    "a table of booleans": (with_table(ENTITY_TABLE, table().bool()), "floating point"),
    "a projection of nothing": (projected(0, 99), "makes 99 × 99 numbers from a few"),
    "a projection of little": (projected(1, 999), "makes 999 × 999 numbers from a few"),
    "projections that do not fit": (
        with_table("_entity_embedder.projection.weight", table()),
        "_entity_embedder.base_embedder._embeddings.weight",
    ),
    "too few ids": (with_ids(["a"]), "1 entity ids do not match the 5 entity rows"),
    "ids that are a string": (with_ids("abcde"), "entity ids must be a list, not abcde"),
    "ids that are numbers": (with_ids([1, 2, 3, 4, 5]), "ids must be strings"),
    "ids that repeat": (with_ids(["a", "b", "c", "b", "e"]), "these repeat: 1 ('b')"),
    "a norm of zero": (norm(0), "l_norm must be a number above 0"),
    "a norm that is not a number": (norm("large"), "l_norm must be a number above 0"),
    "a norm that is a list": (norm([2]), "l_norm must be a number above 0"),
    "a norm that is NaN": (norm(float("nan")), "l_norm must be a number above 0"),
    "a norm beyond all numbers": (norm(10**400), "l_norm must be a number above 0"),
    "a norm without end": (norm(float("inf")), "l_norm must be a number above 0"),
    "a norm that is a list of lists of lists": (norm(doubled(40)), "l_norm must be a number"),
    "a class name that is a list of lists of lists": (
        with_options({"model": "m", "m": {"class_name": doubled(40)}}),
        "name of its model",
    ),
    "a model in ten thousand sections": (with_options({"model": "a" + ".a" * 10000}), "too long"),
    "a ConvE with half a step": (conve_with(stride=0.5), "stride must be a whole number"),
    "a ConvE with endless padding": (conve_with(padding=float("inf")), "padding must be"),
    "a ConvE with a flat image": (
        conve_with(**{"2D_aspect_ratio": 1e-320}),
        "2D_aspect_ratio must be",
    ),
    "a ConvE with filters larger than its image": (conve_with(padding=0, kernel=9), "projection"),
    "a ConvE without filters": (conve("_scorer.convolution.weight", None), "no tensor _scorer"),
    "a ConvE with flat filters": (
        conve("_scorer.convolution.weight", torch.ones(32, 9)),
        "must have shape [any, 1, any, any]",
    ),
    "a ConvE with another projection": (
        conve("_scorer.projection.weight", torch.ones(18, 7)),
        "needs a projection of shape",
    ),
    "a ConvE with too few means": (
        conve("_scorer.bn1.running_mean", torch.ones(3)),
        "must have shape [32], not [3]",
    ),
    "a ConvE with negative variances": (
        conve("_scorer.bn2.running_var", -torch.ones(18)),
        "NaN or infinite",
    ),
}


def assert_refused(path: Path, words: str, *arguments: str) -> None:
    result = CliRunner().invoke(main, ["inspect", str(path), *arguments])
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    line = result.stderr
    assert line.startswith("Error: ")
    assert line.endswith("\n")
    assert line.count("\n") == 1
    assert str(path) in line
    assert words in line


@pytest.mark.parametrize("name", CONTENTS)
@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "legacy"])
def test_content_that_is_not_a_usable_checkpoint(tmp_path, name, zipped):
    made, words = CONTENTS[name]
    path = tmp_path / "file.pt"
    save(path, copy.deepcopy(made), _use_new_zipfile_serialization=zipped)
    options = ["--backbone", "distmult"] if "nobody knows" in name else []
    if options:
        words = "is a Mine, but backbone 'distmult' opens DistMult"
    assert_refused(path, words, *options)


def nested_in_the_config(payload):
    return with_options({"model": "distmult", "distmult": {"class_name": payload}})


ROUTES = {
    "at the top": lambda payload: payload,
    "beside the model": lambda payload: content(extra=payload),
    "in the config": nested_in_the_config,
    "as the config's state": lambda payload: content(config=Config(payload)),
    "among the tensors": lambda payload: with_table(ENTITY_TABLE, payload),
    "in the ids": lambda payload: with_ids([payload] * ENTITIES),
    "in the recorded metrics": lambda payload: content(valid_trace=[{"epoch": payload}]),
}


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("function", [os.system, eval, exec, __import__], ids=lambda f: f.__name__)
@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "legacy"])
def test_code_in_a_file_is_refused_and_does_not_run(tmp_path, route, function, zipped):
    witness = tmp_path / "witness"
    argument = f"touch {witness}" if function is os.system else touch(witness)
    payload = Runs(function, "antigravity" if function is __import__ else argument)
    path = tmp_path / "hostile.pt"
    save(path, ROUTES[route](payload), _use_new_zipfile_serialization=zipped)
    assert_refused(path, "refused because it names ")
    assert not witness.exists()


@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "legacy"])
@pytest.mark.parametrize(
    "payload",
    [Runs(bytearray, 3 * 10**9), Runs(torch.FloatTensor, 500_000, 1000), Runs(torch.Size, [10**9])],
    ids=["bytearray", "FloatTensor", "Size"],
)
def test_names_that_only_fill_the_memory_are_refused(tmp_path, payload, zipped):
    path = tmp_path / "large.pt"
    save(path, content(extra=payload), _use_new_zipfile_serialization=zipped)
    assert_refused(path, "refused because it names ")


def test_a_version_that_is_made_of_something_else_is_refused(tmp_path):
    class Version(str):
        def __reduce__(self):
            return Version, (doubled(40),)

    Version.__module__, Version.__qualname__ = "torch.torch_version", "TorchVersion"
    original, torch.torch_version.TorchVersion = torch.torch_version.TorchVersion, Version
    try:
        path = save(tmp_path / "version.pt", content(extra=Version("2")))
    finally:
        torch.torch_version.TorchVersion = original
    assert_refused(path, "torch version is not a string")


def test_a_legacy_file_that_claims_more_than_it_holds(tmp_path):
    path = save(tmp_path / "claims.pt", content(), _use_new_zipfile_serialization=False)
    small, large = b"K\x14N", b"J\x00\x65\xcd\x1dN"  # 20 numbers as one byte; half a billion
    claimed = path.read_bytes()
    assert claimed.count(small) >= 1
    path.write_bytes(claimed.replace(small, large))
    assert_refused(path, "claims more numbers than the file has")


@pytest.mark.parametrize("protocol", [3, 4, 5])
def test_other_pickle_protocols_are_refused(tmp_path, protocol):
    path = save(tmp_path / "protocol.pt", content(), pickle_protocol=protocol)
    assert_refused(path, f"pickle protocol {protocol}")


def test_a_config_that_is_never_filled_is_refused(tmp_path):
    class Empty:
        def __reduce__(self):
            return Config.__new__, (Config,)

    path = save(tmp_path / "empty.pt", content(config=Empty()))
    assert_refused(path, "")


def test_scores_that_overflow_are_not_ranked(tmp_path, toy_dataset):
    made = safe_load(TOY / "checkpoints" / "distmult.package.pt")
    made["config"] = Config(made["config"].options)
    for tensor in made["model"][0].values():
        tensor.mul_(1e30)
    path = save(tmp_path / "large.pt", made | {"model": (made["model"][0], {})})
    assert_refused(path, "scores overflow", "--dataset", str(toy_dataset), "--rank", "test")


def test_what_a_file_says_of_itself_cannot_forge_a_line_or_colour_the_terminal(tmp_path):
    options = {"model": "distmult", "dataset": {"name": "toy\x1b[2J\nbackbone    evil\ud800"}}
    path = save(tmp_path / "forged.pt", content(config=Config(options)))
    output = CliRunner().invoke(main, ["inspect", str(path)]).stdout
    assert r"toy\x1b[2J\nbackbone    evil\ud800" in output
    facts = CliRunner().invoke(main, ["inspect", str(path), "--json"]).stdout
    assert json.loads(facts)["dataset"] == options["dataset"]["name"]


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), torch.ones(2), "x", [1], None])
def test_odd_recorded_metrics_are_left_out(tmp_path, odd):
    options = {"model": "distmult", "valid": {"metric": "mrr"}}
    made = content(config=Config(options), epoch=odd, valid_trace=[{"mrr": odd, "epoch": odd}, odd])
    facts = CliRunner().invoke(main, ["inspect", str(save(tmp_path / "odd.pt", made)), "--json"])
    assert json.loads(facts.stdout)["validation"] is None
    assert json.loads(facts.stdout)["epoch"] is None


@pytest.mark.parametrize("protocol", range(6))
def test_a_bare_pickle_is_refused_and_does_not_run(tmp_path, protocol):
    witness = tmp_path / "witness"
    path = tmp_path / "bare.pt"
    path.write_bytes(pickle.dumps(Runs(eval, touch(witness)), protocol=protocol))
    assert_refused(path, "")
    assert not witness.exists()


def test_a_config_that_is_called_instead_of_restored_is_refused(tmp_path):
    path = save(tmp_path / "called.pt", content(config=Runs(Config, {"model": "distmult"})))
    assert_refused(path, "not a readable checkpoint")


@pytest.mark.parametrize("kept", [1, 2, 100, 5000, 20000, -100, -1])
def test_a_truncated_file(tmp_path, kept):
    path = tmp_path / "cut.pt"
    path.write_bytes(SOUND.read_bytes()[:kept])
    assert_refused(path, "not a readable checkpoint")


def test_a_zip_that_is_not_a_checkpoint(tmp_path):
    path = tmp_path / "photos.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("holiday.txt", "sun")
    assert_refused(path, "not a readable checkpoint")


def test_a_zip_that_unpacks_to_far_more_than_it_is(tmp_path):
    path = tmp_path / "bomb.pt"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", bytes(2**25))
    assert_refused(path, "more bytes than its own size")


@pytest.mark.parametrize("text", ["hello\n", "dataset:\n  name: toy\n", "\x00\x01\x02"])
def test_a_text_file(tmp_path, text):
    path = tmp_path / "notes.pt"
    path.write_text(text)
    assert_refused(path, "not a readable checkpoint")


def test_an_empty_file(tmp_path):
    path = tmp_path / "nothing.pt"
    path.touch()
    assert_refused(path, "nothing.pt is empty")


def test_a_folder(tmp_path):
    assert_refused(tmp_path, "is not a file")


def test_a_name_that_no_file_can_have():
    assert_refused(Path("a" * 300), "does not exist")


def test_a_missing_file(tmp_path):
    assert_refused(tmp_path / "nothing.pt", "does not exist")


def test_a_name_in_two_lines_stays_in_one(tmp_path):
    path = save(tmp_path / "lines.pt", content("distmult", "Dist\nMult\x1b[31m"))
    assert_refused(path, "no installed backbone opens", "--against-libkge")


@pytest.mark.parametrize("name", ["search.pt", "conve-plain.package.pt"])
def test_files_of_libkge_that_hold_no_usable_model(name):
    words = {"search.pt": "search checkpoint", "conve-plain.package.pt": "no analytic inverse"}
    assert_refused(TOY / "checkpoints" / name, words[name])


def test_ids_with_gaps_are_named_like_blank_nodes(tmp_path):
    path = save(tmp_path / "gaps.pt", with_ids(["a", None, "c", None, "e"]))
    assert open_backbone(path).entity_ids == ["a", "_:1", "c", "_:3", "e"]


def test_options_that_contain_themselves_are_harmless(tmp_path):
    made = content()
    made["config"].options["distmult"]["again"] = made["config"].options
    result = CliRunner().invoke(main, ["inspect", str(save(tmp_path / "knot.pt", made))])
    assert result.exit_code == 0, result.output
