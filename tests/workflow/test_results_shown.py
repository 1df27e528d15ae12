"""What the verbs give back shows itself, and no more than may be said."""

from __future__ import annotations

from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest

from assaymark import workflow
from assaymark.notebook import Folded, Grid, Rows, Said, parts_of
from assaymark.records import parse
from assaymark.text import prose
from assaymark.workflow import tracks


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
    folded = [part for part in parts_of(file) if isinstance(part, Folded) and "not supported" in part.summary]
    (table,) = (part for part in folded[0].parts if isinstance(part, Grid))
    said = [row[1].rpartition("; ")[::-2] for row in table.rows]
    assert said == sorted(said)


def test_claims_of_stand_ins_say_so_wherever_they_are_printed(file):
    """As the clipboard does: in a terminal, in a notebook, and read again from the file."""
    said = [part for part in parts_of(file) if isinstance(part, Said)]
    assert {part.also.partition(".")[0] for part in said} == {"Made and graded by rule-based stand-ins"}
    real = replace(file, panel=replace(file.panel, built_in={}), agents=dict.fromkeys(file.agents, False))
    assert "stand-in" not in repr(real) + real._repr_html_()


def test_tables_are_read_as_rows_and_reporting_shows_the_first_screen_with_its_figure(folder):
    for table in (workflow.MEASUREMENTS, workflow.VERDICTS):
        read = workflow.Store(folder).read(table)
        assert isinstance(read, Rows)
        assert read._repr_html_().count("<tr>") == 21
    reported = workflow.Reported(Path("report/index.html"), "summary", workflow.study_shown(folder).run)
    assert reported._repr_html_().count("<svg") == 2
    assert repr(reported).splitlines()[-1] == "page: report/index.html"
    assert repr(reported).startswith("Demonstration. Agents and judges are built-in rules with known flaws;")


def test_judges_are_shown_by_name_and_not_ranked(folder):
    sheets = tracks.stored_datasheets(folder)
    names = sorted(sheet.judge for sheet in sheets)
    shown = repr(tracks.Made(tuple(reversed(sheets)), (), Path("datasheets.html"), 9))
    heads = [line.partition(",")[0] for line in shown.splitlines() if line.endswith("judge datasheet")]
    assert [name for name in heads if name in names] == names
    assert [repr(sheet).partition(":")[0] for sheet in sheets] == [f"Datasheet of {sheet.judge}" for sheet in sheets]


def test_results_of_a_few_lines_are_those_lines(folder):
    locked = workflow.open_locked(folder)
    short = {line for line in workflow.lock_lines(locked) if len(line) < 100}
    assert short <= {*repr(locked).splitlines()}
    assert repr(tracks.SeasonJudged(made=2, lines=("one \x1b[31m", "two"))) == "one �[31m\ntwo"
    assert "<td>824</td>" in workflow.JudgeResult(judgments=220, evidence=824, made=0, reasked=0)._repr_html_()
