"""Settings: every one named, typed and checked, and a mistake reported in one line."""

import dataclasses

import pytest
import yaml
from click.testing import CliRunner

from lmpnn_kge.cli import main
from lmpnn_kge.errors import ConfigError
from lmpnn_kge.settings import files as configs
from lmpnn_kge.settings.files import load_config, shipped
from lmpnn_kge.settings.kinds import KINDS, TrainSettings
from lmpnn_kge.settings.values import make_settings, parse_settings, to_yaml


def cli(*arguments, code=0):
    result = CliRunner().invoke(main, ["config", *map(str, arguments)])
    assert result.exit_code == code, result.output
    if code:
        assert result.stderr.startswith("Error: ")
        assert result.stderr.count("\n") == 1
        assert result.stdout == ""
    return result


def test_without_anything_the_default_file_holds():
    (values,) = (yaml.safe_load(shipped()["default"].read_text()),)
    assert dataclasses.asdict(load_config()) == values
    assert list(values) == [field.name for field in dataclasses.fields(TrainSettings)]


def test_single_settings_win_over_a_file_and_a_file_over_the_default(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("hidden: 7\nepochs: 3\n")
    config = load_config(file, {"epochs": 4})
    assert (config.hidden, config.epochs) == (7, 4)
    assert dataclasses.replace(config, hidden=4096, epochs=20) == load_config()


def test_an_empty_file_changes_nothing(tmp_path):
    (tmp_path / "empty.yml").write_text("# nothing\n")
    assert load_config(tmp_path / "empty.yml") == load_config()


@pytest.mark.parametrize("name", sorted(shipped()))
def test_what_is_shown_loads_back_to_the_same(tmp_path, name):
    arguments = ("--set", "seed=3", "--set", "epsilon=1e-7", "--set", "schedule=linear")
    file = tmp_path / "shown.yaml"
    file.write_text(cli("show", "--config", name, *arguments).stdout)
    settings = {"seed": 3, "epsilon": 1e-7, "schedule": "linear"}
    assert load_config(file) == load_config(name, settings)
    shown = file.read_text().splitlines()
    assert max(map(len, shown)) <= 80
    assert shown[shown.index("seed: 3") - 1].endswith("(set on the command line)")


def test_a_shown_setting_keeps_the_reason_of_the_file_that_it_comes_from():
    shown = cli("show", "--config", "small").stdout.splitlines()
    for name, key in (("small", "hidden"), ("default", "epsilon")):
        (line,) = (x for x in shipped()[name].read_text().splitlines() if x.startswith(f"{key}:"))
        assert shown[shown.index(line.partition(" #")[0].rstrip()) - 1] in (
            f"# {line.partition(' # ')[2]}",
            f"# {line.partition('# ')[2]}",
        )


def test_a_value_of_a_file_without_a_reason_names_the_file(tmp_path):
    (tmp_path / "mine.yaml").write_text("hidden: 7\n")
    assert (
        "# set in mine.yaml\nhidden: 7\n" in cli("show", "--config", tmp_path / "mine.yaml").stdout
    )


def test_pretraining_shows_the_defaults_for_the_score_of_a_backbone():
    assert "negatives: 0" in cli("show", "--for", "pretrain", "--backbone", "complex").stdout
    assert "negatives: 1024" in cli("show", "--for", "pretrain", "--backbone", "transe").stdout


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_settings_is_shown(kind):
    shown = cli("show", "--for", kind).stdout
    for key in (field.name for field in dataclasses.fields(KINDS[kind])):
        assert f"\n{key}: " in shown


def test_a_run_folder_has_settings_that_load_back_to_the_same(tmp_path):
    file = tmp_path / "config.yaml"
    file.write_text(to_yaml(load_config("small")))
    assert load_config(file) == load_config("small")


def test_the_list_has_a_line_for_every_file():
    lines = cli("list").stdout.splitlines()
    names = [line.split()[0] for line in lines if not line.startswith(" ")]
    assert names == sorted(shipped())
    assert max(map(len, lines)) <= 80


def test_an_installed_package_reads_its_own_folder_and_no_other(tmp_path, monkeypatch):
    for folder in ("own", "of-another-package"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "default.yaml").write_text(folder)
    monkeypatch.setattr(configs, "FOLDERS", (tmp_path / "own", tmp_path / "of-another-package"))
    assert shipped() == {"default": tmp_path / "own" / "default.yaml"}


@pytest.mark.parametrize("text", ["1e-4", "1.0e-4", "0.0001", "'1e-4'", " 1e-4 "])
def test_a_number_may_be_written_as_everyone_writes_it(text):
    value = load_config(settings=parse_settings([f"learning_rate={text}"])).learning_rate
    assert value == 1e-4
    assert isinstance(value, float)


def test_a_whole_number_is_a_number():
    value = load_config(settings=parse_settings(["epsilon=1"])).epsilon
    assert value == 1
    assert isinstance(value, float)


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("hiden=1", "there is no setting 'hiden'; did you mean 'hidden'?"),
        ("=1", "there is no setting ''"),
        ("hidden", "'hidden' is not a setting: write key=value"),
        ("hidden=[1", "the value of 'hidden=[1' is not YAML"),
        ("hidden=2001-99-99", "is not YAML"),
        ("hidden=" + "1" * 5000, "is not YAML"),
        ("hidden=" + "[" * 600, "is not YAML"),
        ("hidden=!!python/name:os.system ''", "is not YAML"),
        ("hidden=", "hidden is 'None', but must be a whole number"),
        ("hidden=1.5", "hidden is '1.5', but must be a whole number"),
        ("hidden=true", "hidden is 'True', but must be a whole number"),
        ("hidden='4'", "hidden is '4', but must be a whole number"),
        ("hidden=[4]", "hidden is '[4]', but must be a whole number"),
        ("hidden=0", "hidden is 0, but must be at least 1"),
        ("hidden=1" + "0" * 30, "but must be at most 2147483647"),
        ("depth_shift=-1" + "0" * 30, "but must be at most 2147483647"),
        ("seed=-1", "seed is -1, but must be at least 0"),
        ("parts=1025", "parts is 1025, but must be at most batch_size, 1024"),
        ("seed=2147483648", "but must be at most 2147483647"),
        ("compile=1", "compile is '1', but must be true or false"),
        ("compile=maybe", "compile is 'maybe', but must be true or false"),
        ("epsilon=true", "epsilon is 'True', but must be a number"),
        ("epsilon=much", "epsilon is 'much', but must be a number"),
        ("epsilon=.nan", "epsilon is nan, but must be a finite number"),
        ("epsilon=nan", "epsilon is nan, but must be a finite number"),
        ("epsilon=-.inf", "epsilon is -inf, but must be a finite number"),
        ("learning_rate=1e39", "learning_rate is 1e+39, but must be at most 1e+30"),
        ("epsilon=1e999", "epsilon is inf, but must be a finite number"),
        ("epsilon=1" + "0" * 400, "but must be a number"),
        ("temperature=0", "temperature is 0.0, but must be above 0"),
        ("learning_rate=-1e-3", "learning_rate is -0.001, but must be above 0"),
        ("save_minutes=-1", "save_minutes is -1.0, but must be at least 0"),
        ("epochs=-1", "epochs is -1, but must be at least 0"),
        ("messages=inferences", "did you mean 'inference'? choose from: cat, inference"),
        ("union=[dnf]", "choose from: dnf, merge"),
        ("schedule=", "choose from: constant, cosine, linear"),
    ],
)
def test_a_wrong_setting_is_one_line(setting, words):
    stderr = cli("show", "--set", setting, code=2).stderr
    assert words in stderr
    assert len(stderr) < 400


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"- hidden\n", "must hold lines of the form `key: value`"),
        (b"hidden\n", "must hold lines of the form `key: value`"),
        (b"hidden: [\n", "cannot be read"),
        (b"hidden: 2001-99-99\n", "cannot be read"),
        (b"\xff\xfe\n", "cannot be read"),
        (b"? [a]\n: 1\n", "cannot be read"),
        (b"a: " + b"[" * 600, "cannot be read"),
        (b"hiden: 1\n", "there is no setting 'hiden'; did you mean 'hidden'?"),
        (b"1: 1\n", "there is no setting '1'"),
        (None, "No such file"),
    ],
)
def test_a_wrong_file_is_one_line(tmp_path, content, words):
    file = tmp_path / "wrong.yaml"
    if content is not None:
        file.write_bytes(content)
    assert words in cli("show", "--config", file, code=2).stderr


def test_a_folder_in_place_of_a_file_is_refused(tmp_path):
    (tmp_path / "folder.yaml").mkdir()
    assert "cannot be read" in cli("show", "--config", tmp_path / "folder.yaml", code=2).stderr


@pytest.mark.parametrize("name", ["papr-nell", "", "mine.json"])
def test_an_unknown_name_lists_those_there_are(name):
    stderr = cli("show", "--config", name, code=2).stderr
    assert f"no configuration is called {name!r}" in stderr
    assert ", ".join(sorted(shipped())) in stderr
    assert ("did you mean 'paper-nell'?" in stderr) == (name == "papr-nell")


def test_a_configuration_must_have_all_its_settings():
    values = dataclasses.asdict(load_config())
    del values["hidden"], values["seed"]
    with pytest.raises(ConfigError, match="settings are missing: hidden, seed"):
        make_settings(TrainSettings, values)
