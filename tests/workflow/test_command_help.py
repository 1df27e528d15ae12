from __future__ import annotations

import shlex
from contextlib import nullcontext

import pytest
import typer

from assaymark.cli import COMMANDS, app, main
from assaymark.cli.options import Services, logging_session

TOOLS = Services(dict, nullcontext, list, print)
NAMES = [name for places in COMMANDS.values() for name in places]


def commands():
    """Every command and sub-command by its words."""
    root = typer.main.get_command(app)
    context = root.make_context("assaymark", [], resilient_parsing=True, obj=TOOLS)
    for name in NAMES:
        found = root.get_command(context, name)
        yield (name,)
        yield from ((name, inner) for inner in getattr(found, "commands", {}))


COMMANDS_IN_FULL = list(commands())


RESULTS = {"serve", "bench", "season", "data", "skill"}
"""Commands without a result, and groups."""


@pytest.mark.parametrize("words", COMMANDS_IN_FULL, ids=" ".join)
def test_the_help_of_each_command_fits_a_screen_and_ends_with_examples_that_are_understood(words, capsys):
    """What stands in a help can be typed: every word of it is read, and none is misuse."""
    assert main([*words, "--help"]) == 0
    shown = capsys.readouterr().out
    lines = shown.splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80
    assert words[-1] in RESULTS or "--json" in shown
    title = max(number for number, line in enumerate(lines) if line in ("Example:", "Examples:"))
    examples = lines[title + 1 :]
    assert examples
    for line in examples:
        assert line.startswith("  assaymark ")
        typed = shlex.split(line.partition(" | ")[0].partition(" > ")[0])[1:]
        found, rest = typer.main.get_command(app), typed
        while hasattr(found, "commands"):
            context = found.make_context("assaymark", list(rest), resilient_parsing=True, obj=TOOLS)
            found, rest = found.get_command(context, rest[0]), rest[1:]
        with logging_session():
            found.make_context("assaymark", rest, parent=context)  # raises what is misuse
