"""What every command has in common: how loud it is, names that a person would guess, exit statuses, errors."""

from __future__ import annotations

import gc
import json
import logging
import subprocess
import sys

import pytest
import typer

from assaymark.cli import ALIASES as ROOT_ALIASES
from assaymark.cli import STATUSES, app, main
from assaymark.cli.options import ALIASES, Verbosity, resolve_aliases, verbosity, visible, was_interrupt
from assaymark.errors import AssayError

ROOT = typer.main.get_command(app)


def params(*words):
    """The parameters of a command."""
    found, context = ROOT, ROOT.make_context("assaymark", [], resilient_parsing=True)
    for word in words:
        found = found.get_command(context, word)
    return found.get_params(context)


@pytest.mark.parametrize(
    ("command", "typed", "meant"),
    [
        (["run"], ["--study", "s.toml", "--output", "r"], ["s.toml", "--out", "r"]),
        (["run"], ["--config=s.toml", "--dry_run"], ["s.toml", "--dry-run"]),
        (["bench", "qa"], ["--plan", "p.toml", "--models", "a/b"], ["p.toml", "--model", "a/b"]),
        (["judge"], ["--run", "r", "--max-cost", "5"], ["r", "--budget", "5"]),
        (["measure"], ["--scores", "s.csv", "--plan", "p.toml"], ["--judgments", "s.csv", "--study", "p.toml"]),
        (["season", "publish"], ["--season", "s", "--lang", "de"], ["s", "--language", "de"]),
        (["data", "pull"], ["files", "--from", "2024-01-01"], ["files", "--start", "2024-01-01"]),
        (["datasheet"], ["--from", "a.csv", "--map", "b"], ["--from", "a.csv", "--map", "b"]),
        (["amend"], ["--reason", "--output", "s.toml"], ["--reason", "--output", "s.toml"]),
        (["run"], ["--", "--study"], ["--", "--study"]), (["run"], ["--nonsense", "x"], ["--nonsense", "x"]),
        (["import"], ["--path", "x"], ["--path", "x"]),
    ],
)  # fmt: skip
def test_a_guessed_name_is_understood(command, typed, meant):
    assert list(resolve_aliases(typed, params(*command))) == meant


def test_no_guess_is_in_vain():
    """Every name that is guessed at means an option that some command has."""
    groups = [name for name in ROOT.list_commands(None) if hasattr(command(name), "commands")]
    every = [[name] for name in ROOT.list_commands(None)] + [
        [one, inner] for one in groups for inner in command(one).commands
    ]
    known = {name for words in every for one in params(*words) for name in one.opts}
    assert {meant for options in ALIASES.values() for meant in options} <= known


def command(name):
    """One command of the root."""
    return ROOT.get_command(ROOT.make_context("assaymark", [], resilient_parsing=True), name)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["mesure"], "no such command 'mesure'; did you mean measure? see: assaymark --help"),
        (
            ["--json", "doctor"],
            "no such option: --json; the options of a command stand behind its name; see: assaymark",
        ),
        (["compare"], "no such command 'compare'; did you mean datasheet --compare? see: assaymark --help"),
        (["season", "publsh"], "no such command 'publsh'; did you mean 'publish'? see: assaymark season --help"),
        (["run", "--budgt", "5"], "no such option: --budgt; did you mean --budget? see: assaymark run --help"),
        (["run"], "missing argument 'STUDY'; for example: assaymark run study.toml --out runs/mine"),
        (["lock", "s.toml"], "missing option '--out' / '-o'; for example: assaymark lock study.toml --out runs/mine"),
        (["claim"], "give a run folder, or --verify CERTIFICATE; for example: assaymark claim runs/mine"),
        (["datasheet", "--trials", "0"], "invalid value for '--trials': it should be greater than or equal to 1; for"),
    ],
)
def test_misuse_is_one_line_that_says_what_to_do(words, told, capsys):
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"assaymark: {told}")
    assert err.count("\n") == 1


@pytest.mark.parametrize("words", [["help", "season", "run"], ["season", "run", "-h"], ["season", "run", "--help"]])
def test_help_is_asked_for_in_any_way(words, capsys):
    assert main(words) == 0
    assert capsys.readouterr().out.startswith("Usage: assaymark season run ")


@pytest.mark.parametrize("meant", sorted(set(ROOT_ALIASES.values())))
def test_another_word_for_a_command_means_one(meant, capsys):
    words, _, option = meant.partition(" --")
    assert main([*words.split(), "--help"]) == 0
    assert f"--{option}" in capsys.readouterr().out


@pytest.mark.parametrize("words", [[], ["season"], ["data"]])
def test_a_group_alone_shows_its_help_and_is_misuse(words, capsys):
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "Examples:" in err


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["doctor"], Verbosity.NORMAL), (["-q", "doctor"], Verbosity.QUIET), (["doctor", "--quiet"], Verbosity.QUIET),
        (["--verbose", "doctor"], Verbosity.VERBOSE), (["doctor", "-v"], Verbosity.VERBOSE),
        (["-v", "doctor", "-q"], Verbosity.QUIET),
    ],
)  # fmt: skip
def test_it_is_as_loud_as_is_asked_before_the_command_or_behind_it(words, expected, monkeypatch):
    heard = []
    monkeypatch.setattr("assaymark.cli.doctor.examine", lambda _: heard.append(verbosity()) or [])
    monkeypatch.setattr("assaymark.cli.doctor.can_run", lambda *_: [])
    assert main(words) == 0
    assert heard == [expected]
    assert verbosity() is Verbosity.NORMAL


def test_what_the_program_notes_is_heard_by_whoever_is_verbose(monkeypatch, capsys):
    def examine(_):
        logging.getLogger("assaymark.engine").info("a retry of \x1b[31mnobody")
        logging.getLogger("assaymark.engine").warning("a stop")
        return []

    monkeypatch.setattr("assaymark.cli.doctor.examine", examine)
    monkeypatch.setattr("assaymark.cli.doctor.can_run", lambda *_: [])
    heard = {}
    for option in ("--quiet", "--json", "--verbose"):
        main(["doctor", option])
        heard[option] = capsys.readouterr().err.splitlines()
    assert heard["--quiet"] == []
    assert heard["--json"] == ["assaymark: a stop"]
    assert len(heard["--verbose"]) == 2
    assert heard["--verbose"][0].endswith(r" s] a retry of \x1b[31mnobody")
    assert not logging.getLogger("assaymark").handlers


def broken(*_):
    raise ZeroDivisionError("by nobody")


def test_a_defect_is_one_line_and_a_traceback_for_whoever_is_verbose(monkeypatch, capsys):
    monkeypatch.setattr("assaymark.cli.doctor.examine", broken)
    assert main(["doctor"]) == 70
    out, err = capsys.readouterr()
    assert out == ""
    assert "a bug in assaymark, ZeroDivisionError: by nobody; run it again with --verbose" in err
    assert "Traceback" not in err
    assert main(["doctor", "-v"]) == 70
    assert "in broken" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "status"),
    [(AssayError("no"), 1), (PermissionError(13, "no", "f"), 1), (RuntimeError("no"), 70), (KeyboardInterrupt(), 130)],
)
def test_the_exit_status_says_what_kind_of_end_it_was(error, status, monkeypatch, capsys):
    def end(_):
        raise error

    monkeypatch.setattr("assaymark.cli.doctor.examine", end)
    assert main(["doctor", "--json"]) == status
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert f" {status} " in STATUSES


def test_a_stop_while_code_is_loaded_is_a_stop():
    """What is loaded when a key is pressed may raise an error of its own."""
    error = RuntimeError("Error calling __set_name__")
    error.__cause__ = KeyboardInterrupt()
    assert was_interrupt(error)
    assert not was_interrupt(RuntimeError("alone"))


def test_nothing_can_steer_the_terminal():
    assert visible("a\x1b]0;title\x07b\u202ec\n") == "a\\x1b]0;title\\x07b\\u202ec\n"


def test_whoever_has_had_enough_is_told_nothing():
    """As in `assaymark doctor | head -1`."""
    code = "import sys; from assaymark.cli import main; sys.exit(main(['import', 'template']))"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        told = process.stderr.read()
        process.wait()
    assert told == b""


def test_only_the_program_itself_looks_for_cycles_less_often(monkeypatch, capsys):
    before = gc.get_threshold()
    try:
        assert main(["--version"]) == 0
        assert gc.get_threshold() == before
        monkeypatch.setattr(sys, "argv", ["assaymark", "--version"])
        gc.set_threshold(700, 10, 10)
        assert main() == 0
        assert gc.get_threshold()[0] > 700
    finally:
        gc.set_threshold(*before)


def test_json_is_one_document_with_sorted_keys(capsys):
    assert main(["doctor", "--json"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.count("\n") == 1
    found = json.loads(out, object_pairs_hook=lambda pairs: [key for key, _ in pairs])
    assert found == sorted(found)
