"""`lmpnn-kge trackers`: list what trainings can be recorded with."""

from __future__ import annotations

import click

from lmpnn_kge.cli.options import json_option
from lmpnn_kge.cli.plugin_list import print_plugins


@click.command()
@json_option
def trackers(as_json: bool) -> None:
    """List the installed trackers: plugins that record a training for another program.

    `train --track NAME` uses one. A tracker may need a package, which it names when it is used.
    """
    from lmpnn_kge.backbones.discovery import TRACKERS

    print_plugins(TRACKERS, as_json)
