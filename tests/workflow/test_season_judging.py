"""Judging a season: what is asked, what is recorded, and that it goes on where it was."""

from __future__ import annotations

import pytest
from season_runs import NOW, begun, market, season_text, stored

from assaymark.cli import models
from assaymark.workflow.folder import RunFolder
from assaymark.workflow.season_judging import judge_season
from assaymark.workflow.season_records import GRADES, GUESSES, REPLACED
from assaymark.workflow.season_running import run_season
from assaymark.workflow.tables import EVIDENCE, JUDGMENTS, Store

PANEL = "".join(
    f'\n[[panel]]\nname = "{name}"\nfamily = "j{name}"\nmodel = "reference/season-{name}"\n'
    for name in ("auditor", "reader", "allocator")
)


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A season of two agents and eleven days in three weeks that was run and not judged. Not to be changed."""
    path = tmp_path_factory.mktemp("played")
    text = season_text(head="universe = 6") + PANEL + f'\n[market]\nsource = "{stored(path / "m", market())}"\n'
    folder = begun(path / "run", text, models())
    run_season(folder, models(), now=NOW)
    return folder


def test_whole_records_and_periods_are_graded_by_every_judge(played: RunFolder) -> None:
    done = judge_season(played, models())
    assert done.made == 2 * 3 * (1 + 3) * 2 + 2 * 3
    store = Store(played)
    grades = store.read(GRADES)
    assert {(one.scope, one.period) for one in grades} == {
        ("whole", ""), ("period", "2024-W09"), ("period", "2024-W10"), ("period", "2024-W11")
    }  # fmt: skip
    assert len(grades) == 4 * 2 * 3
    assert all(one.score.score is not None for one in grades)
    assert {one.steps for one in grades if one.scope == "whole"} == {11}
    assert len(store.read(GUESSES)) == 4 * 2 * 3
    assert len(store.read(JUDGMENTS)) == len(grades)
    assert store.rows(EVIDENCE) > 0
    assert store.rows(REPLACED) >= 0
    again = judge_season(played, models())
    assert again.made == 0
    assert again.lines == done.lines
