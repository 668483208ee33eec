"""`lmpnn-kge config`: which settings there are, and what a run would use."""

from __future__ import annotations

import click

from lmpnn_kge.cli.options import setting_option

kind_option = click.option(
    "--for",
    "kind",
    type=click.Choice(["train", "pretrain", "cqd"]),
    default="train",
    show_default=True,
    help="The command or the method whose settings they are.",
)


@click.group()
def config() -> None:
    """Settings: the shipped configurations, and what they come to."""


@config.command("list")
@kind_option
def list_(kind: str) -> None:
    """The shipped configurations, each with its first line."""
    from lmpnn_kge.settings import KINDS, shipped

    files = shipped(KINDS[kind])
    width = max(map(len, files))
    for name, file in sorted(files.items()):
        first = file.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")
        click.echo(f"{name:<{width}}  {first}")


@config.command()
@kind_option
@click.option("--config", "name", default="default", metavar="NAME|FILE", help="Where to begin.")
@setting_option
def show(kind: str, name: str, settings: tuple[str, ...]) -> None:
    """Print every setting that a command would use with the same options, as YAML."""
    from lmpnn_kge.settings import DEFAULT, KINDS, load_settings, parse_settings, to_yaml

    found = load_settings(KINDS[kind], [DEFAULT, name], parse_settings(settings))
    click.echo(to_yaml(found), nl=False)
