"""`lmpnn-kge config`: the shipped configurations, and the settings that a command would use."""

from __future__ import annotations

import click

from lmpnn_kge.cli.options import setting_option
from lmpnn_kge.cli.text import Group

for_option = click.option(
    "--for",
    "command",
    type=click.Choice(["train", "pretrain", "cqd", "search"]),
    default="train",
    show_default=True,
    help="Command or method whose settings to show.",
)


@click.group(cls=Group)
def config() -> None:
    """List the shipped configurations, and show settings with their reasons."""


@config.command("list")
@for_option
def list_(command: str) -> None:
    """List the shipped configurations, each with its purpose."""
    from lmpnn_kge.settings.files import shipped
    from lmpnn_kge.settings.kinds import KINDS

    files = shipped(KINDS[command])
    width = max(map(len, files))
    for name, file in sorted(files.items()):
        first = file.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")
        click.echo(click.wrap_text(f"{name:<{width}}  {first}", 80, "", " " * (width + 2)))


@config.command()
@for_option
@click.option(
    "--config",
    "name",
    default="default",
    show_default=True,
    metavar="NAME|FILE",
    help="Configuration to start from.",
)
@click.option(
    "--backbone",
    metavar="NAME",
    help="With --for pretrain: use the defaults for this backbone's type of score.",
)
@setting_option
def show(command: str, name: str, backbone: str | None, settings: tuple[str, ...]) -> None:
    """Print every setting that a command would use, with its reason, as YAML."""
    from lmpnn_kge.settings.files import explain, files_for_score
    from lmpnn_kge.settings.kinds import KINDS
    from lmpnn_kge.settings.values import parse_settings

    is_distance = False
    if backbone is not None:
        if command != "pretrain":
            raise click.UsageError("--backbone applies to --for pretrain only")
        from lmpnn_kge.backbones.discovery import backbone_class
        from lmpnn_kge.backbones.messages import ScoreType

        is_distance = backbone_class(backbone).score_type is ScoreType.DISTANCE
    names = files_for_score(is_distance, name)
    click.echo(explain(KINDS[command], names, parse_settings(settings)), nl=False)
