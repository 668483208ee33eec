"""Discovery by metadata, loading by name, and plugins that misbehave."""

import sys
import types
from importlib.metadata import EntryPoint

import pytest

import lmpnn_kge
from lmpnn_kge import Backbone, PluginError, ScoreType, backbone_class, hookimpl
from lmpnn_kge.backbones import discovery as plugins


class Sound(Backbone):
    score_type = ScoreType.INNER_PRODUCT
    formula = "h"

    def forward(self, heads, relations):
        return heads


class Unfinished(Backbone):
    score_type = ScoreType.DISTANCE
    formula = "h"


class Letters(Sound):
    libkge_models = "CP"


class Projecting(Sound):
    def project(self, tails, relations):
        return -tails


class Untyped(Backbone):
    formula = "h"

    def forward(self, heads, relations):
        return heads


def module_with(**functions):
    module = types.ModuleType("some_plugin")
    for name, function in functions.items():
        setattr(module, name, hookimpl(function))
    return module


@pytest.fixture
def install(monkeypatch):
    """Pretend that modules are installed as backbones: install(name=module, …)."""

    def pretend(**modules):
        entries = []
        for name, module in modules.items():
            monkeypatch.setitem(sys.modules, f"plugin_{name}", module)
            entries.append(EntryPoint(name, f"plugin_{name}", plugins.GROUP))
        monkeypatch.setattr(plugins, "entry_points", lambda group: entries)

    return pretend


def test_a_plugin_is_loaded_through_its_hook(install):
    install(mine=module_with(lmpnn_kge_backbone=lambda: Sound))
    assert backbone_class("mine") is Sound


def test_the_old_name_of_backbone_class_still_works():
    assert lmpnn_kge.backbone_class is backbone_class


def test_loading_one_backbone_imports_no_other(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("lmpnn_kge_")]:
        monkeypatch.delitem(sys.modules, name)
    backbone_class("transe")
    assert [name for name in sys.modules if name.startswith("lmpnn_kge_")] == ["lmpnn_kge_transe"]


def test_an_unknown_name_lists_the_known_and_the_nearest():
    with pytest.raises(PluginError, match=r"did you mean 'rotate'\? choose from: complex, conve"):
        backbone_class("rotatE")


def test_an_unknown_name_says_so_if_no_backbone_is_installed(install):
    install()
    with pytest.raises(PluginError, match="no backbone is called 'rotate'; no backbone is install"):
        backbone_class("rotate")


def test_a_misspelled_hook_is_refused_by_its_name(install):
    install(mine=module_with(lmpnn_kge_bakcbone=lambda: Sound))
    with pytest.raises(PluginError, match="unknown hook 'lmpnn_kge_bakcbone'"):
        backbone_class("mine")


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        (None, "must return a subclass of Backbone, not None"),
        ("Sound", "must return a subclass of Backbone, not 'Sound'"),
        (dict, "must return a subclass of Backbone"),
        (Untyped, "Untyped.score_type must be a ScoreType"),
        (Unfinished, "Unfinished does not define forward"),
        (Projecting, "Projecting.project must be left out if scores are inner products"),
        (Letters, "Letters.libkge_models must be a tuple of strings"),
    ],
)
def test_a_hook_that_returns_something_else_is_refused(install, returned, words):
    install(mine=module_with(lmpnn_kge_backbone=lambda: returned))
    with pytest.raises(PluginError, match=words):
        backbone_class("mine")


def test_a_plugin_without_a_hook_is_refused(install):
    install(mine=types.ModuleType("empty"))
    with pytest.raises(PluginError, match="must return a subclass of Backbone, not None"):
        backbone_class("mine")


class Speechless(Exception):
    def __str__(self):
        raise RuntimeError


def test_what_a_plugin_prints_is_not_in_our_output(install, capsys):
    def chatty():
        print("hello")
        return Sound

    install(mine=module_with(lmpnn_kge_backbone=chatty))
    backbone_class("mine")
    assert capsys.readouterr() == ("", "hello\n")


@pytest.mark.parametrize(
    "raised", [ValueError("bad"), SystemExit(3), ImportError("no jax"), Speechless()]
)
def test_whatever_a_plugin_raises_is_contained(install, raised):
    def fail():
        raise raised

    install(
        bad=module_with(lmpnn_kge_backbone=fail), good=module_with(lmpnn_kge_backbone=lambda: Sound)
    )
    with pytest.raises(PluginError, match=f"'bad' of unknown is broken: .*{type(raised).__name__}"):
        backbone_class("bad")
    assert backbone_class("good") is Sound


def test_a_missing_module_is_contained(monkeypatch):
    entry = EntryPoint("gone", "no_such_module_anywhere", plugins.GROUP)
    monkeypatch.setattr(plugins, "entry_points", lambda group: [entry])
    with pytest.raises(PluginError, match="No module named 'no_such_module_anywhere'"):
        backbone_class("gone")


class Distribution:
    version = "1.0"

    def __init__(self, name):
        self.name = name


def test_a_name_claimed_twice_is_refused_naming_both_distributions(monkeypatch):
    entries = [
        EntryPoint("twice", "m", plugins.GROUP)._for(Distribution(name))
        for name in ("here", "there")
    ]
    monkeypatch.setattr(plugins, "entry_points", lambda group: entries)
    with pytest.raises(PluginError, match=r"claimed by here 1\.0 and by there 1\.0; uninstall"):
        plugins.discover()[0].load()
    with pytest.raises(PluginError, match=r"'twice' is claimed by"):
        backbone_class("twice")
