"""`lmpnn-kge loaders`: list the file formats that can be read."""

from __future__ import annotations

import click

from lmpnn_kge.cli.options import json_option
from lmpnn_kge.cli.plugin_list import print_plugins


@click.command()
@json_option
def loaders(as_json: bool) -> None:
    """List the installed loaders: plugins that each read one format of checkpoint files."""
    from lmpnn_kge.backbones.discovery import LOADERS

    print_plugins(LOADERS, as_json)
