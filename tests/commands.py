"""The reference of the command line, from the commands themselves.

`python -m tests.commands` writes docs/commands.md.
"""

from collections.abc import Iterator

import click

from lmpnn_kge.cli import main

from .conftest import ROOT

FILE = ROOT / "docs" / "commands.md"

HEAD = """# Commands

This page lists every command and option, as `lmpnn-kge COMMAND --help` prints them.

If a command cannot do its work, it prints one line that says why, and exits with code 2.
"""


def commands(
    command: click.Command = main, path: tuple[str, ...] = ("lmpnn-kge",)
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """All commands with the words that call them; groups come before what is in them."""
    yield path, command
    if isinstance(command, click.Group):
        for name, inner in sorted(command.commands.items()):
            yield from commands(inner, (*path, name))


def options(command: click.Command) -> list[click.Option]:
    """The options that `--help` shows: hidden ones are old names."""
    return [o for o in command.params if isinstance(o, click.Option) and not o.hidden]


def reference() -> str:
    parts = [HEAD]
    for path, command in commands():
        arguments = [p.make_metavar(click.Context(command)) for p in command.params
                     if isinstance(p, click.Argument)]  # fmt: skip
        title = " ".join([*path, *arguments])
        help_ = " ".join((command.help or "").split())
        parts.append(f"\n## `{title}`\n\n{help_}\n")
        rows = [f"| `{_usage(o)}` | {_help(o).replace('|', chr(92) + '|')} |\n"
                for o in options(command)]  # fmt: skip
        if rows:
            parts.append("\n| option | |\n|---|---|\n" + "".join(rows))
    return "".join(parts)


def _help(option: click.Option) -> str:
    """What an option is for, and what it is if it is not given."""
    default = f" Default: {option.default}." if option.show_default else ""
    return f"{option.help or ''}{default}"


def _usage(option: click.Option) -> str:
    """The names of an option and what it takes."""
    names = ", ".join([*option.opts, *option.secondary_opts])
    taken = "" if option.is_flag else f" {option.make_metavar(click.Context(main))}"
    return (names + taken).replace("|", "\\|")


if __name__ == "__main__":
    FILE.write_text(reference(), encoding="utf-8")
