"""Published query files are recognised by their checksums."""

import json

import pytest
from click.testing import CliRunner

from lmpnn_kge.cli import main
from lmpnn_kge.files import file_hash
from lmpnn_kge.queries import published
from lmpnn_kge.queries.published import PUBLISHED, published_text
from lmpnn_kge.queries.store import QueryStore, write_store

from ..conftest import TOY
from .test_betae import betae_folder
from .tiny_stores import small

FILES = [*PUBLISHED["FB15k-237"]]


def known(folder, names):
    """The checksums and sizes of some files, as the table of published ones has them."""
    files = {name: folder / f"{name}.pkl" for name in names}
    return {name: (file_hash(file)[:12], file.stat().st_size) for name, file in files.items()}


def run(*arguments):
    return CliRunner().invoke(main, ["queries", *map(str, arguments)], catch_exceptions=False)


@pytest.fixture
def folder(tmp_path):
    return betae_folder(tmp_path / "betae")


def test_a_digest_has_twelve_digits_and_no_file_is_listed_twice():
    digests = [digits for files in PUBLISHED.values() for digits, _ in files.values()]
    assert {len(digits) for digits in digests} == {12}
    assert len(set(digests)) == len(digests) == 16
    assert len(FILES) == 8


def test_published_files_are_recognised(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(published, "PUBLISHED", {"NELL": {}, "Toy": known(folder, FILES)})
    result = run("import", folder, "--out", tmp_path / "store")
    assert "note: these are the published Toy queries\n" in result.stderr
    assert QueryStore.open(tmp_path / "store").provenance["published"] == "Toy"
    shown = run("info", tmp_path / "store").stdout
    assert "imported   betae: these are the published Toy queries\n" in shown


def test_other_files_are_not(folder, tmp_path):
    result = run("import", folder, "--out", tmp_path / "store")
    assert "note: these are not the published queries of FB15k-237, NELL, FB15k\n" in result.stderr
    assert QueryStore.open(tmp_path / "store").provenance["published"] is None


def test_a_file_that_differs_is_named(folder, tmp_path, monkeypatch):
    table = {"Toy": known(folder, FILES) | {"valid-queries": ("0" * 12, 10)}}
    monkeypatch.setattr(published, "PUBLISHED", table)
    result = run("import", folder, "--out", tmp_path / "store")
    assert "note: valid-queries differ from the published Toy files\n" in result.stderr
    assert "note: these are not the published queries of Toy\n" in result.stderr


def test_the_size_alone_does_not_recognise_a_file(folder, monkeypatch):
    sizes = {name: ("0" * 12, size) for name, (_, size) in known(folder, FILES).items()}
    monkeypatch.setattr(published, "PUBLISHED", {"Toy": sizes})
    assert published.recognise(folder, FILES) == (None, [])


def test_files_without_a_known_checksum_are_named(folder, tmp_path, monkeypatch):
    table = {"Toy": known(folder, ["test-queries", "test-easy-answers", "test-hard-answers"])}
    monkeypatch.setattr(published, "PUBLISHED", table)
    result = run("import", folder, "--out", tmp_path / "store")
    assert "note: these are the published Toy queries\n" in result.stderr
    assert "train-queries, train-answers, valid-queries" in result.stderr


def test_stores_of_older_versions_say_that_nothing_was_compared():
    assert published_text({"imported": "x"}) == "not compared with the published files"


def test_info_shows_what_a_store_was_sampled_with(tmp_path):
    store = tmp_path / "store"
    command = ["sample", "--dataset", str(TOY / "dataset"), "--types", "1p", "--count", "3"]
    sampled = CliRunner().invoke(main, [*command, "-o", str(store), "--rule", "lost-answer=off"])
    assert sampled.exit_code == 0, sampled.output
    shown = run("info", store).stdout
    assert "queries    3 train, 3 valid, 3 test\n" in shown
    assert "preset     betae\n" in shown
    assert (
        "rules      hard-answer, few-answers, excluding, no-return, no-repeat, zero-shot\n" in shown
    )
    assert "off        lost-answer, shares\n" in shown
    content = json.loads(run("info", store, "--json").stdout)
    assert content["queries"] == {"train": 3, "valid": 3, "test": 3}
    assert content["provenance"]["rules"]["lost-answer"] is False


def test_info_shows_that_an_older_store_recorded_no_rules(tmp_path):
    write_store(small(), tmp_path / "store")
    assert "rules      not recorded\n" in run("info", tmp_path / "store").stdout
