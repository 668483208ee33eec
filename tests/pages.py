"""The pages of the documentation, and a reader who follows them literally."""

import os
import re
import shlex
import shutil
from importlib.util import find_spec
from pathlib import Path

import click
from click.testing import CliRunner

from lmpnn_kge.cli import main

from .conftest import ROOT

README = (ROOT / "README.md").read_text()
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()
DOCS = {path.name: path.read_text() for path in sorted((ROOT / "docs").glob("*.md"))}

#: What a reader of README and docs/ can type: commands, Python, and files to write.
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(text: str, language: str) -> list[str]:
    return [block for name, block in _BLOCK.findall(text) if name == language]


def shell_lines(text: str) -> list[str]:
    """The commands of blocks that are not followed here."""
    return [line for block in blocks(text, "sh") for line in joined(block) if line]


def joined(block: str) -> list[str]:
    """The lines of a block; one that ends in a backslash continues on the next."""
    return re.sub(r" *\\\n *", " ", block).splitlines()


def check_options(line: str) -> None:
    """Parse a command without running it, which fails if an option does not exist."""
    program, *words = shlex.split(line)
    assert program == "lmpnn-kge", line
    command: click.Command = main
    while isinstance(command, click.Group) and words and words[0] in command.commands:
        name, *words = words
        command = command.commands[name]
    command.make_context(line, words)


#: A module of each extra, without which a page or a block of Python that says so is skipped.
EXTRAS = {"rdf": "rdflib", "frames": "pandas", "serve": "starlette"}


def missing_extra(text: str) -> str | None:
    """The extra that a text needs, if it is not installed."""
    needed = re.findall(r"needs the extra `?(\w+)", text)
    return next((extra for extra in needed if find_spec(EXTRAS[extra]) is None), None)


class Reader:
    """Follows pages from top to bottom, each in a folder of its own.

    Pages share their setup: a command that was run for another page gives the same files again.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self.results: dict[str, tuple[str, Path]] = {}  # output and new files, by command

    def follow(self, page: str, text: str, monkeypatch) -> dict:
        """Do what a page says, and return the names that its Python defines."""
        folder = self.folder / page
        folder.mkdir()
        (folder / "tests").symlink_to(ROOT / "tests")  # where the commands find the data
        monkeypatch.chdir(folder)
        monkeypatch.delenv("LMPNN_KGE_DATA", raising=False)
        monkeypatch.setattr("lmpnn_kge.cli.text.line_width", lambda: 80)
        names: dict = {}
        for language, block in _BLOCK.findall(text):
            if language == "python" and not missing_extra(block):
                exec(block, names)
            elif language in ("yaml", "txt"):  # its first line is a comment with its name
                Path(block.splitlines()[0].removeprefix("# ")).write_text(block)
            elif language == "console":
                self._console(block)
        return names

    def _console(self, block: str) -> None:
        """Run the commands of a block; each prints the lines that are shown below it."""
        shown: list[str] = []
        printed: list[str] = []
        for line in joined(block):
            if line.startswith("$ "):
                assert printed[: len(shown)] == shown
                output = self.run(line.removeprefix("$ "))
                shown, printed = [], [line.rstrip() for line in output.splitlines()]
            else:
                shown.append(line)
        assert printed[: len(shown)] == shown

    def run(self, line: str) -> str:
        """The output of a command in the current folder."""
        if line in self.results:
            output, made = self.results[line]
            shutil.copytree(made, ".", dirs_exist_ok=True)
            return output
        program, *arguments = shlex.split(line)
        assert program == "lmpnn-kge"
        before = _files()
        result = CliRunner().invoke(main, arguments)
        assert result.exit_code == 0, (line, result.output, result.exception)
        made = self.folder / f"made-{len(self.results)}"
        made.mkdir()
        for file in _files() - before:
            (made / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, made / file)
        self.results[line] = result.stdout, made
        return result.stdout


def _files() -> set[Path]:
    """All files in the current folder; os.walk does not follow the link to the tests."""
    return {Path(folder, name) for folder, _, names in os.walk(".") for name in names}
