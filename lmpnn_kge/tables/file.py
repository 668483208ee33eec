"""Tables as YAML files: every line is a row, which changes some settings of a base.

    ε = 0: {epsilon: 0}

`configs/tables/` has the tables of the paper; a user may write other files of such lines.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lmpnn_kge.errors import ConfigError, short
from lmpnn_kge.settings.files import DEFAULT, find_file, load_config, read_mapping
from lmpnn_kge.settings.kinds import TrainSettings
from lmpnn_kge.settings.values import make_settings

#: The row that changes nothing; files need not name it.
BASE = "base"

FOLDER = "tables"


def read_table(
    table: str | Path,
    config: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
) -> dict[str, TrainSettings]:
    """All settings of every row of a shipped table or a file, by name; the base comes first."""
    base = load_config(DEFAULT if config is None else config, settings)
    file = find_file(FOLDER, table, "table")
    rows = {BASE: base}
    for name, changes in read_mapping(file).items():
        if not isinstance(name, str) or not name.strip() or not name.isprintable():
            raise ConfigError(f"{file} has a row called {short(name)!r}: a name is text, in quotes")
        if not isinstance(changes, dict):
            raise ConfigError(
                f"{file}: the row {name!r} has {short(changes)!r} in place of settings, such as "
                "{epsilon: 0}"
            )
        if name == BASE and changes:
            raise ConfigError(
                f"{file}: {BASE!r} is the row that changes nothing; choose another name"
            )
        try:
            rows[name] = make_settings(TrainSettings, {**vars(base), **changes})
        except ConfigError as error:
            raise ConfigError(f"{file}: the row {name!r}: {error}") from error
    return rows
