"""Shared parts of the commands: verbosity, aliases, exit statuses, error messages."""

from __future__ import annotations

import gc
import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import typer

from assaymark.cli import ALIASES as ROOT_ALIASES
from assaymark.cli import STATUSES, app, main
from assaymark.cli.options import ALIASES, resolve_aliases, visible
from assaymark.errors import AssayError

ROOT = typer.main.get_command(app)
SCORES = Path(__file__).parents[1] / "examples" / "scores.csv"


CONTEXT = ROOT.make_context("assaymark", [], resilient_parsing=True)


def command(*words):
    found = ROOT
    for word in words:
        found = found.get_command(CONTEXT, word)
    return found


GUESSED = """
run : --study s.toml --output r : s.toml --out r
run : --config=s.toml --dry_run : s.toml --dry-run
bench qa : --plan p.toml --models a/b : p.toml --model a/b
judge : --run r --max-cost 5 : r --budget 5
measure : --scores s.csv --plan p.toml : --judgments s.csv --study p.toml
season publish : --season s --lang de : s --language de
data pull : files --from 2024-01-01 : files --start 2024-01-01
datasheet : --from a.csv --map b : --from a.csv --map b
amend : --reason --output s.toml : --reason --output s.toml
run : -- --study : -- --study
run : --nonsense x : --nonsense x
import : --path x : --path x
"""


def test_a_guessed_name_is_understood_and_no_guess_is_in_vain():
    for line in GUESSED.strip().splitlines():
        words, typed, meant = (part.split() for part in line.split(" : "))
        assert list(resolve_aliases(typed, command(*words).get_params(CONTEXT))) == meant, line
    places = [(name,) for name in ROOT.list_commands(None)]
    places += [(*one, inner) for one in places for inner in getattr(command(*one), "commands", ())]
    known = {name for words in places for one in command(*words).get_params(CONTEXT) for name in one.opts}
    assert {meant for options in ALIASES.values() for meant in options} <= known


MISUSE = [
    ("mesure", "no such command 'mesure'; did you mean measure? see: assaymark --help"),
    ("--json doctor", "no such option: --json; the options of a command follow its name; see: assaymark"),
    ("compare", "no such command 'compare'; did you mean datasheet --compare? see: assaymark --help"),
    ("season publsh", "no such command 'publsh'; did you mean 'publish'? see: assaymark season --help"),
    ("run --budgt 5", "no such option: --budgt; did you mean --budget? see: assaymark run --help"),
    ("run", "missing argument 'STUDY'; for example: assaymark run study.toml --out runs/mine"),
    ("lock s.toml", "missing option '--out' / '-o'; for example: assaymark lock study.toml --out runs/mine"),
    ("claim", "give a run folder, or --verify CERTIFICATE; for example: assaymark claim runs/mine"),
    ("gate x --claim a --at-least b", "invalid value for '--at-least': 'b' is not one of 'headline', 'qualified'; for"),
    ("datasheet --trials 0", "invalid value for '--trials': must be at least 1 (got '0'); for example: "),
    ("label r --port 70000", "invalid value for '--port': must be at most 65535 (got '70000'); for example: "),
    ("run s --out r --budget x", "invalid value for '--budget': must be a number (got 'x'); for example: "),
    ("plan-calls r --budget .5", "invalid value for '--budget': must be a whole number (got '.5'); for example: "),
]


def test_misuse_is_one_line_that_says_what_to_do(capsys):
    for words, told in MISUSE:
        assert main(words.split()) == 2
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        assert err.startswith(f"assaymark: {told}")


def test_help_is_asked_for_in_any_way_and_a_group_alone_shows_it_and_is_misuse(capsys):
    for words in ("help season run", "season run -h", "season run --help"):
        assert main(words.split()) == 0
        assert capsys.readouterr().out.startswith("Usage: assaymark season run ")
    for meant in sorted(set(ROOT_ALIASES.values())):  # another word for a command means one
        words, _, option = meant.partition(" --")
        assert main([*words.split(), "--help"]) == 0
        assert f"--{option}" in capsys.readouterr().out
    for words in ([], ["season"], ["data"]):
        assert main(words) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert "Examples:" in err


def test_it_is_as_loud_as_is_asked_before_the_command_or_behind_it(monkeypatch):
    heard, logger = [], logging.getLogger("assaymark")
    before = logger.level
    monkeypatch.setattr("assaymark.cli.start.examine", lambda _: heard.append(logger.level) or [])
    for words in ("doctor", "-q doctor", "doctor --quiet", "--verbose doctor", "doctor -v", "-v doctor -q"):
        assert main(words.split()) == 0
        assert logger.level == before
    assert heard == [logging.WARNING, logging.ERROR, logging.ERROR, logging.INFO, logging.INFO, logging.ERROR]


def test_what_the_program_notes_is_heard_by_whoever_is_verbose(monkeypatch, capsys):
    def examine(_):
        logging.getLogger("assaymark.engine").info("a retry of \x1b[31mnobody")
        logging.getLogger("assaymark.engine").warning("a stop")
        return []

    monkeypatch.setattr("assaymark.cli.start.examine", examine)
    heard = {}
    for option in ("--quiet", "--json", "--verbose"):
        main(["doctor", option])
        heard[option] = capsys.readouterr().err.splitlines()
    assert heard["--quiet"] == []
    assert heard["--json"] == ["assaymark: a stop"]
    assert len(heard["--verbose"]) == 2
    assert heard["--verbose"][0].endswith(r" s] a retry of \x1b[31mnobody")
    assert not logging.getLogger("assaymark").handlers


def test_the_exit_status_says_what_kind_of_end_it_was_and_who_is_verbose_sees_a_traceback(monkeypatch, capsys):
    ends: list[BaseException] = [defect := ZeroDivisionError("by nobody")]

    def broken(_):
        raise ends[-1]

    monkeypatch.setattr("assaymark.cli.start.examine", broken)
    loading = RuntimeError("Error calling __set_name__")  # an interrupted import may raise any error
    loading.__cause__ = KeyboardInterrupt()
    assert main(["doctor", "-v"]) == 70
    assert "in broken" in capsys.readouterr().err
    for end, status, told in (
        (defect, 70, "a bug in assaymark, ZeroDivisionError: by nobody; run it again with --verbose"),
        (AssayError("no"), 1, "no"), (PermissionError(13, "no", "f"), 1, "no"), (loading, 130, "run the same"),
        (KeyboardInterrupt(), 130, "run the same command again"),
    ):  # fmt: skip
        ends.append(end)
        assert main(["doctor", "--json"]) == status
        out, err = capsys.readouterr()
        assert (out, err.count("\n"), "Traceback" in err) == ("", 1, False)
        assert told in err
        assert f" {status} " in STATUSES


def test_nothing_can_steer_the_terminal_and_one_without_a_width_is_written_to(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "0")
    assert main(["doctor"]) == 0
    assert capsys.readouterr().out.startswith("yes  assaymark ")
    assert visible("a\x1b]0;title\x07b\u202ec\n") == "a\\x1b]0;title\\x07b\\u202ec\n"


def test_whoever_has_had_enough_is_told_nothing():
    """As in `assaymark doctor | head -1`."""
    code = "import sys; from assaymark.cli import main; sys.exit(main(['import', 'template']))"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        told = process.stderr.read()
        process.wait()
    assert told == b""


def test_an_output_that_knows_few_characters_gets_escapes_and_json_is_one_document_with_sorted_keys(tmp_path):
    command = [sys.executable, "-m", "assaymark", "check", SCORES, "--out", tmp_path / "run"]
    few = {**os.environ, "PYTHONIOENCODING": "ascii"}
    lines, document = (subprocess.check_output([*command, *more], env=few) for more in ((), ("--json",)))
    assert b"\\u201cAtlas ranks first" in lines
    assert document.count(b"\n") == 1
    assert list(found := json.loads(document)) == sorted(found)


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
