"""YAML as far as settings need it: plain values, written out."""

from __future__ import annotations

from typing import Any

import yaml

#: What reading raises for text that is not YAML, or that is more than settings need.
NO_YAML = (yaml.YAMLError, ValueError, RecursionError)


class _Loader(yaml.SafeLoader):
    """Refuses aliases, with which 400 characters can stand for gigabytes."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("it has an alias such as *name; write the value out")
        return super().compose_node(parent, index)


def read_yaml(text: str) -> Any:
    """The content of a YAML text; one of NO_YAML if it cannot be read."""
    loader = _Loader(text)
    try:
        return loader.get_single_data()
    finally:
        loader.dispose()
