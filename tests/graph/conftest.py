"""A graph that several tests share."""

from pathlib import Path

import pytest


@pytest.fixture
def countries(tmp_path) -> Path:
    """A folder of named triples, as most graphs are published."""
    folder = tmp_path / "countries"
    folder.mkdir()
    (folder / "train.txt").write_text(
        "France\tborders\tGermany\nGermany\tborders\tPoland\nFrance\tcurrency\tEuro\n"
    )
    (folder / "valid.txt").write_text("Germany\tcurrency\tEuro\n")
    (folder / "test.txt").write_text("Poland\tborders\tCôte d'Ivoire\n")
    return folder
