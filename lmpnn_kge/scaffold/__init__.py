"""A new backbone as a small Python project, written from templates."""

from __future__ import annotations

import importlib.util
import keyword
import re
from pathlib import Path
from string import Template

from lmpnn_kge.backbones.discovery import discover
from lmpnn_kge.errors import PluginError, choices, short
from lmpnn_kge.files import atomic_folder

TEMPLATES = Path(__file__).parent / "templates"

#: The form of a name, which becomes part of the names of a distribution and a module.
NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
LONGEST = 40

#: A simple model for each score type, to be replaced by the author's own.
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


def write_scaffold(
    name: str,
    score_type: str,
    out: str | Path | None = None,
    *,
    libkge_model: str | None = None,
) -> Path:
    """Write the project of a backbone to a new folder, atomically.

    libkge_model is the class name of the model in LibKGE, if LibKGE has it.
    """
    if score_type not in TYPES:
        raise PluginError(f"there is no score type {score_type!r}; {choices(score_type, TYPES)}")
    if libkge_model is not None and not libkge_model.isidentifier():
        raise PluginError(f"{short(libkge_model)!r} is not the name of a class in LibKGE")
    check_name(name)
    distribution, module = f"lmpnn-kge-{name}", _module(name)
    folder = Path(distribution if out is None else out)
    test_file = f"test_{name.replace('-', '_')}.py"
    values = {
        "name": name,
        "distribution": distribution,
        "module": module,
        "class_name": _class_name(name),
        "test_file": test_file,
        "libkge_models": f'    libkge_models = ("{libkge_model}",)\n' if libkge_model else "",
        **TYPES[score_type],
    }
    files = {
        "pyproject.toml.txt": "pyproject.toml",
        "plugin.py.txt": f"{module}.py",
        "test.py.txt": f"tests/{test_file}",
        "README.md.txt": "README.md",
        "gitignore.txt": ".gitignore",
    }
    with atomic_folder(folder) as aside:
        (aside / "tests").mkdir()
        for template, file in files.items():
            text = Template((TEMPLATES / template).read_text(encoding="utf-8"))
            (aside / file).write_text(text.substitute(values), encoding="utf-8", newline="\n")
    return folder


def check_name(name: str) -> None:
    """Raise PluginError if a name is not valid for a distribution, or is taken."""
    if not NAME.fullmatch(name) or len(name) > LONGEST:
        words = re.findall(r"[a-z0-9]+", re.sub(r"^lmpnn[-_]kge[-_]", "", name.lower()))
        near = "-".join(words).lstrip("0123456789-")
        hint = f", such as {near!r}" if NAME.fullmatch(near) and len(near) <= LONGEST else ""
        raise PluginError(
            f"{short(name)!r} is not a valid name for a backbone: use at most {LONGEST} lower-case "
            f"letters, digits and single hyphens, starting with a letter{hint}"
        )
    if name.startswith("lmpnn-kge"):
        raise PluginError(
            f"the project of {name!r} would be called lmpnn-kge-{name}; leave lmpnn-kge out of "
            "the name"
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
    """Capitalised words; Model is added if Python or the templates use the name already."""
    words = "".join(word.capitalize() for word in name.split("-"))
    taken = keyword.iskeyword(words) or words in ("Backbone", "ScoreType", "BackboneTests")
    return f"{words}Model" if taken else words
