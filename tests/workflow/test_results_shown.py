"""Results of the verbs display themselves, and show no more than their claims support."""

from __future__ import annotations

import io
import logging
from dataclasses import replace
from html import unescape
from pathlib import Path
from threading import Thread

import pytest
from rich.console import Console

from assaymark import workflow
from assaymark.notebook import Collapsed, CommandResult, Grid, Quote, Rows, display_parts
from assaymark.records import parse
from assaymark.text import prose
from assaymark.workflow import Piece, ProgressDisplay, bars, cost_callback, counts, note, say, tracks, watched


@pytest.fixture(scope="module")
def folder(demo) -> workflow.RunFolder:
    return workflow.RunFolder(demo)


@pytest.fixture(scope="module")
def file(folder) -> workflow.VerdictFile:
    return parse(workflow.VerdictFile, folder.verdicts.read_text(encoding="utf-8"), source="verdicts.json")


def test_claiming_shows_what_may_be_said_and_names_the_rest_without_its_direction(file):
    shown = unescape(file._repr_html_())
    assert {one.publication_level for one in file.verdicts} == {"headline", "qualified", "no-claim"}
    for one in file.verdicts:
        assert (prose(one.claim.statement) in shown) == (one.publication_level != "no-claim")
    assert len(repr(file).splitlines()) < 50
    # What is withheld stands by name: the file has the higher of a pair first in its ids, and is ordered by them.
    folded = [part for part in display_parts(file) if isinstance(part, Collapsed) and "not supported" in part.summary]
    (table,) = (part for part in folded[0].parts if isinstance(part, Grid))
    said = [row[1].rpartition("; ")[::-2] for row in table.rows]
    assert said == sorted(said)


def test_claims_of_stand_ins_say_so_wherever_they_are_printed(file):
    """As the clipboard does: in a terminal, in a notebook, and read again from the file."""
    said = [part for part in display_parts(file) if isinstance(part, Quote)]
    assert {part.also.partition(".")[0] for part in said} == {"Made and graded by rule-based stand-ins"}
    real = replace(file, panel=replace(file.panel, built_in={}), agents=dict.fromkeys(file.agents, False))
    assert "stand-in" not in repr(real) + real._repr_html_()


def test_tables_are_read_as_rows_and_reporting_shows_the_first_screen_with_its_figure(folder):
    for table in (workflow.MEASUREMENTS, workflow.VERDICTS):
        read = workflow.Store(folder).read(table)
        assert isinstance(read, Rows)
        assert read._repr_html_().count("<tr>") == 21
    reported = workflow.Reported(Path("report/index.html"), "summary", workflow.study_contents(folder)[0])
    assert reported._repr_html_().count("<svg") == 2
    assert repr(reported).splitlines()[-1] == "page: report/index.html"
    assert repr(reported).startswith("Demonstration. Agents and judges are built-in rules with known flaws;")


def test_judges_are_shown_by_name_and_not_ranked(folder):
    sheets = tracks.stored_datasheets(folder)
    names = sorted(sheet.judge for sheet in sheets)
    shown = repr(tracks.MadeSheets(tuple(reversed(sheets)), (), Path("datasheets.html")))
    heads = [line.partition(",")[0] for line in shown.splitlines() if line.endswith("judge datasheet")]
    assert [name for name in heads if name in names] == names
    assert [repr(sheet).partition(":")[0] for sheet in sheets] == [f"Datasheet of {sheet.judge}" for sheet in sheets]


def test_results_of_a_few_lines_are_those_lines(folder):
    locked = workflow.open_locked(folder)
    short = {line for line in workflow.lock_lines(locked) if len(line) < 100}
    assert short <= {*repr(locked).splitlines()}
    assert repr(CommandResult(2, ("one \x1b[31m", "two"))) == "one �[31m\ntwo"
    assert "<td>824</td>" in workflow.JudgeResult(judgments=220, evidence=824, made=0, reasked=0)._repr_html_()


# --- progress ---------------------------------------------------------------------------------------------------------


NOTES = "assaymark.workflow.progress"


class Clock:
    """A clock that is set."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def shown_to(nobody: Console, clock: Clock) -> ProgressDisplay:
    with bars(nobody) as shown:
        return ProgressDisplay(shown._display, False, clock)


def test_a_piece_of_work_tells_count_rate_time_left_and_cost():
    piece = Piece("asking", first=200, total=2030, began=0.0, done=200, logged=0.0)
    assert piece.state(10.0, 0.0) == "200 of 2,030"  # what was there before says nothing about a rate
    piece.done = 312
    assert piece.state(10.0, 0.0) == "312 of 2,030, 11.2/s, 0:02:34 left"
    assert piece.state(10.0, 4.871) == "312 of 2,030, 11.2/s, 0:02:34 left, 4.87 USD"
    assert piece.state(0.5, 0.0) == "312 of 2,030"  # too early to tell
    piece.done = 2030
    assert piece.state(10.0, 0.001) == "2,030 of 2,030, 0.001 USD"


def test_the_log_has_the_begin_and_end_of_each_piece_and_now_and_then_a_line(caplog):
    clock, out = Clock(), io.StringIO()
    shown = shown_to(Console(file=out), clock)
    with caplog.at_level(logging.INFO, NOTES):
        for seconds, done in ((0, 0), (4, 10), (7, 20), (4, 30), (11, 70), (1, 100)):
            clock.now += seconds
            shown("asking", done, 100)
    assert [one.getMessage() for one in caplog.records] == [
        "asking: 0 of 100", "asking: 20 of 100, 1.8/s, 0:00:44 left", "asking: 70 of 100, 2.7/s, 0:00:12 left",
        "asking: 100 of 100 in 27.0 s",
    ]  # fmt: skip
    assert out.getvalue() == ""


def test_it_says_where_the_work_is():
    shown = shown_to(Console(file=io.StringIO()), Clock())
    assert shown.where() == ""
    shown("asking the judges", 312, 2030)
    assert shown.where() == " at asking the judges (312 of 2,030)"
    shown("asking the judges", 2030, 2030)
    assert shown.where() == ""


def test_lines_are_shown_unless_it_is_quiet():
    for quiet in (True, False):
        out = io.StringIO()
        with bars(Console(file=out, force_terminal=True), quiet=quiet) as shown:
            shown("asking", 1, 2)
            shown.say("a [bold]judge[/] refuses")
        for words in ("a [bold]judge[/] refuses", "asking"):
            assert (words in out.getvalue()) is not quiet


def test_progress_is_that_of_the_block_and_a_part_keeps_its_counts_and_hands_on_lines_and_costs():
    out, told = io.StringIO(), []
    assert (cost_callback(), note("nobody watches", 1, 2), say("nobody hears")) == (None, None, None)
    with bars(Console(file=out)) as whole:
        note("the whole", 1, 2)
        with watched(lambda *now: told.append(now)):
            note("a part", 3, 4)
            ours, pay = counts("on a thread"), cost_callback()
            say("a line")
        # what a runner is handed goes where it would have gone then, whichever thread calls it
        thread = Thread(target=lambda: (ours(5, 6), pay(0.0125), note("a thread of nobody", 7, 8), say("unheard")))
        thread.start()
        thread.join()
    note("nobody watches again", 1, 2)
    assert told == [("a part", 3, 4), ("on a thread", 5, 6)]
    assert (whole.usd, whole.where(), out.getvalue()) == (0.0125, " at the whole (1 of 2)", "a line\n")
