"""Every command and option is documented."""

from ..commands import FILE, commands, options, reference


def test_every_command_and_option_says_what_it_is_for():
    every = list(commands())
    assert [path for path, command in every if not command.help] == []
    silent = [(path, o.name) for path, command in every for o in options(command) if not o.help]
    assert silent == []


def test_the_reference_is_that_of_the_commands():
    text = FILE.read_text(encoding="utf-8")
    assert text == reference(), "write it again with `python -m tests.commands`"
    for path, command in commands():
        assert f"## `{' '.join(path)}" in text
        for option in options(command):
            assert option.opts[-1] in text
