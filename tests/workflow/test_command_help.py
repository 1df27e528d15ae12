from __future__ import annotations

import shlex
from contextlib import nullcontext

import typer

from assaymark.cli import COMMANDS, app, main
from assaymark.cli.options import Services, logging_session

TOOLS = Services(dict, nullcontext, list, print)
ROOT = typer.main.get_command(app)
CONTEXT = ROOT.make_context("assaymark", [], resilient_parsing=True, obj=TOOLS)
NAMES = [name for places in COMMANDS.values() for name in places]
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
