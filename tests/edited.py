"""Files of runs and stores with other contents, and with checksums that fit these."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lmpnn_kge.files.checked import CHECKSUM, with_checksum, without_checksum, yaml_with_checksum


def signed(content: dict[str, Any]) -> dict[str, Any]:
    """A mapping with a checksum that fits it."""
    return with_checksum({key: value for key, value in content.items() if key != CHECKSUM})


def read_json(file: Path) -> dict[str, Any]:
    """The content of a file, without its checksum."""
    return without_checksum(json.loads(file.read_text()))


def edit_json(file: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the content of a file."""
    content = json.loads(file.read_text())
    change(content)
    file.write_text(json.dumps(signed(content)))


def edit_settings(run: Path, change: Callable[[str], str]) -> None:
    """Change the text of the settings of a run."""
    text = (run / "config.yaml").read_text().partition(f"# {CHECKSUM}")[0]
    (run / "config.yaml").write_text(yaml_with_checksum(change(text)))
