"""What several tests of graphs share."""

from pathlib import Path

import pytest

from lmpnn_kge.graph import duckdb_engine


def follow_nothing(patch: pytest.MonkeyPatch) -> None:
    """Let statements answer, however few queries there are."""
    patch.setattr(duckdb_engine, "follow", lambda task, adjacency: None)


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
