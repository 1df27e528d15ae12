from __future__ import annotations

import shlex
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
import typer

from assaymark import __version__
from assaymark.cli import COMMANDS, app, main
from assaymark.cli import study as cli_study
from assaymark.cli.doctor import CORE, KEYS, can_run, examine
from assaymark.cli.options import Services, logging_session
from assaymark.importers import IMPORTERS

NAMES = [name for places in COMMANDS.values() for name in places]
OTHERS = {"check", "gate", "proofread", "skill", "serve", "doctor", "datasheet", "bench", "season", "data"}


def test_no_command_of_a_study_is_missing_from_the_list_and_the_help_fits_a_screen(capsys):
    made = {one.name or one.callback.__name__ for one in cli_study.app.registered_commands if one.callback}
    assert {name.rstrip("_") for name in made} == {*NAMES} - OTHERS
    assert ", ".join(sorted(IMPORTERS)) == cli_study.FORMATS
    assert main(["--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 51
    assert max(map(len, lines)) <= 80
    assert [name for name in NAMES if not any(line.startswith(f"  {name} ") for line in lines)] == []


@pytest.mark.parametrize(("words", "found"), [("assaymark me", ["measure"]), ("assaymark season in", ["init"])])
def test_names_are_completed(words, found):
    """What a shell asks for is answered with names; of the root none is loaded for it."""
    asked = {"_ASSAYMARK_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    done = subprocess.run(
        ["assaymark"], executable=Path(sys.executable).parent / "assaymark", env=asked, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.stdout.split() == found


def test_the_list_of_commands_loads_none_of_them():
    """The help, the version and completion answer at once because the program behind them is left alone."""
    code = "import sys; from assaymark.cli import main; main(['--help']); print({'numpy', 'pydantic'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "set()"


def test_the_command_is_installed_and_says_its_version(capsys):
    done = subprocess.run([sys.executable, "-m", "assaymark", "--version"], capture_output=True, text=True, check=False)
    assert main(["--version"]) == 0
    assert done.stdout == capsys.readouterr().out == f"assaymark {__version__}\n"


def test_what_each_verb_says_when_there_is_nothing_left_to_do(run, capsys):
    for verb, said in (("judge", "(0 calls made now)"), ("measure", "measurements"), ("claim", "0 headline")):
        assert main([verb, str(run)]) == 0
        assert said in capsys.readouterr().out


def test_doctor_says_what_is_there_and_never_a_value_and_names_what_is_missing(monkeypatch, capsys):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-41")
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert [word in out for word in ("OPENAI_API_KEY", "reference/auditor", "sk-canary-41")] == [True, True, False]
    findings = examine({}, lambda name: None if name == "duckdb" else "1.0")
    assert [finding.what for finding in findings if finding.needed and not finding.present] == ["duckdb"]
    assert can_run(findings, []) == ["nothing until the missing packages above are installed"]
    assert {finding.what for finding in findings} >= {*CORE, *KEYS}
    monkeypatch.setattr("assaymark.cli.doctor._installed", lambda _: None)
    assert main(["doctor"]) == 1
    assert "a package that assaymark needs is missing" in capsys.readouterr().err


def test_a_stop_from_the_keyboard_is_one_line(monkeypatch, capsys):
    def stop(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("assaymark.cli.app", stop)
    assert main(["demo"]) == 130
    assert "run the same command again" in capsys.readouterr().err


# --- the help of each command -----------------------------------------------------------------------------------------


TOOLS = Services(dict, nullcontext, list, print)
ROOT = typer.main.get_command(app)
CONTEXT = ROOT.make_context("assaymark", [], resilient_parsing=True, obj=TOOLS)
COMMANDS_IN_FULL = [
    words for name in NAMES
    for words in ((name,), *((name, inner) for inner in getattr(ROOT.get_command(CONTEXT, name), "commands", {})))
]  # fmt: skip
"""Every command and sub-command by its words."""

WITHOUT_RESULT = {"serve", "bench", "season", "data", "skill"}  # and groups


def test_the_help_of_each_command_fits_a_screen_and_ends_with_examples_that_are_understood(capsys):
    """What stands in a help can be typed: every word of it is read, and none is misuse."""
    for words in COMMANDS_IN_FULL:
        assert main([*words, "--help"]) == 0
        shown = capsys.readouterr().out
        lines = shown.splitlines()
        assert len(lines) <= 40, words
        assert max(map(len, lines)) <= 80, words
        assert words[-1] in WITHOUT_RESULT or "--json" in shown, words
        title = max(number for number, line in enumerate(lines) if line in ("Example:", "Examples:"))
        assert len(lines) > title + 1, words
        for line in lines[title + 1 :]:
            assert line.startswith("  assaymark ")
            typed = shlex.split(line.partition(" | ")[0].partition(" > ")[0])[1:]
            found, rest = ROOT, typed
            while hasattr(found, "commands"):
                context = found.make_context("assaymark", list(rest), resilient_parsing=True, obj=TOOLS)
                found, rest = found.get_command(context, rest[0]), rest[1:]
            with logging_session():
                found.make_context("assaymark", rest, parent=context)  # raises what is misuse
