"""A new backbone as a complete small distribution, from templates."""

from __future__ import annotations

import importlib.util
import keyword
import re
from pathlib import Path
from string import Template

from lmpnn_kge.backbones.plugins import discover
from lmpnn_kge.errors import PluginError, choices, short
from lmpnn_kge.files import whole_folder

TEMPLATES = Path(__file__).parent / "templates"

#: Words of a name, as packages have them: it becomes part of a distribution's name and a module's.
NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
LONGEST = 40

#: Sections of LibKGE's options, where those of a model stand beside them under its name.
LIBKGE_SECTIONS = (
    "console", "dataset", "eval", "import", "job", "kvsall", "model", "modules", "search", "train",
    "user", "valid", "verbose",
)  # fmt: skip

#: An f for each type of score, to be replaced.
TYPES = {
    "inner-product": {
        "about": "a relation weighs each coordinate of an entity.",
        "score_type": "INNER_PRODUCT",
        "formula": "h ∘ r",
        "inverse_formula": "r",
        "forward": "heads * self.relations[relations]",
        "inverse": "relations",
        "phi": "(h * r * t).sum()",
    },
    "distance": {
        "about": "a relation moves an entity.",
        "score_type": "DISTANCE",
        "formula": "h + r",
        "inverse_formula": "−r",
        "forward": "heads + self.relations[relations]",
        "inverse": "-relations",
        "phi": "-(h + r - t).norm()",
    },
}


def write_scaffold(name: str, score_type: str, into: str | Path | None = None) -> Path:
    """Write the distribution of a backbone to a new folder, whole or not at all."""
    if score_type not in TYPES:
        raise PluginError(f"no score is of type {score_type!r}; {choices(score_type, TYPES)}")
    check_name(name)
    distribution, module = f"lmpnn-kge-{name}", _module(name)
    folder = Path(distribution if into is None else into)
    test_file = f"test_{name.replace('-', '_')}.py"
    values = {
        "name": name,
        "distribution": distribution,
        "module": module,
        "class_name": _class_name(name),
        "test_file": test_file,
        **TYPES[score_type],
    }
    files = {
        "pyproject.toml.txt": "pyproject.toml",
        "plugin.py.txt": f"{module}.py",
        "test.py.txt": f"tests/{test_file}",
        "README.md.txt": "README.md",
        "gitignore.txt": ".gitignore",
    }
    with whole_folder(folder, may_replace=lambda _: False) as aside:
        (aside / "tests").mkdir()
        for template, file in files.items():
            text = Template((TEMPLATES / template).read_text(encoding="utf-8"))
            (aside / file).write_text(text.substitute(values), encoding="utf-8", newline="\n")
    return folder


def check_name(name: str) -> None:
    """PluginError where no distribution can be called so, or another one is."""
    if not NAME.fullmatch(name) or len(name) > LONGEST:
        words = re.findall(r"[a-z0-9]+", re.sub(r"^lmpnn[-_]kge[-_]", "", name.lower()))
        near = "-".join(words).lstrip("0123456789-")
        hint = f", such as {near!r}" if NAME.fullmatch(near) and len(near) <= LONGEST else ""
        raise PluginError(
            f"{short(name)!r} is no name for a backbone: use at most {LONGEST} small letters, "
            f"digits and single hyphens, a letter first{hint}"
        )
    if name.startswith("lmpnn-kge"):
        raise PluginError(
            f"{name!r} would become lmpnn-kge-{name}; leave lmpnn-kge out of the name"
        )
    for plugin in discover():
        if _module(plugin.name) == _module(name):
            raise PluginError(
                f"a backbone {plugin.name!r} is installed by {plugin.distribution}; "
                "choose another name"
            )
    if importlib.util.find_spec(_module(name)) is not None:
        raise PluginError(f"a module {_module(name)} is installed; choose another name")


def _module(name: str) -> str:
    return f"lmpnn_kge_{name.replace('-', '_')}"


def _class_name(name: str) -> str:
    """In capitals; what Python, the templates or LibKGE call something else becomes a Model."""
    words = "".join(word.capitalize() for word in name.split("-"))
    taken = keyword.iskeyword(words) or words in ("Backbone", "ScoreType", "BackboneTests")
    return f"{words}Model" if taken or words.lower() in LIBKGE_SECTIONS else words
