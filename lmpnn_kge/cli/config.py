"""`lmpnn-kge config`: which settings there are, and what a run would use."""

from __future__ import annotations

import click

from lmpnn_kge.cli.options import setting_option


@click.group()
def config() -> None:
    """Settings of training: the shipped configurations, and what they come to."""


@config.command("list")
@click.option("--pretrain", is_flag=True, help="Those of `pretrain` instead of `train`.")
def list_(pretrain: bool) -> None:
    """The shipped configurations, each with its first line."""
    from lmpnn_kge.config import Config, Recipe, shipped

    files = shipped(Recipe if pretrain else Config)
    width = max(map(len, files))
    for name, file in sorted(files.items()):
        first = file.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")
        click.echo(f"{name:<{width}}  {first}")


@config.command()
@click.option("--config", "name", default="default", metavar="NAME|FILE", help="Where to begin.")
@setting_option
def show(name: str, settings: tuple[str, ...]) -> None:
    """Print every setting that `train` would use with the same options, as YAML."""
    from lmpnn_kge.config import load_config, parse_settings, to_yaml

    click.echo(to_yaml(load_config(name, parse_settings(settings))), nl=False)
