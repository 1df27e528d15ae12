"""The invented seasons have the states that the pages are made for."""

from __future__ import annotations

import made_season as made
import pytest

from assaymark.records import measurement_id


@pytest.mark.parametrize(("agents", "days", "judges"), [(1, 1, 3), (2, 5, 1), (8, 61, 3), (12, 20, 5)])
def test_a_season_of_any_size_is_whole(agents, days, judges):
    run = made.made_season(agents, days, judges)
    names = {one.name for one in run.plan.agents}
    assert len(names) == agents
    assert {place.agent for place in run.decided.places} == names
    assert {row.contestant for row in run.table.rows} == names
    assert len(run.grades) == agents * judges
    ids = {one.id for one in run.measurements}
    assert len(ids) == len(run.measurements)
    assert all(measurement_id("season.total", {"agent": name}) in ids for name in names)


def test_every_state_is_there():
    run = made.made_season()
    rows = {row.contestant: row for row in run.table.rows}
    assert rows["Birch"].agreement.standing.state == "contested"
    assert rows["Cedar"].efficiency is None
    assert rows["Gorse"].state == "graded by part of the panel"
    assert rows["Hazel"].state == "not graded"
    assert run.decided.place("Hazel").first is None
    assert (run.decided.place("Elm").first, run.decided.place("Elm").last) == (2, 6)
    assert {one.verdict.publication_level for one in run.decided.verdicts} == {"headline", "qualified", "no-claim"}


@pytest.mark.parametrize("language", ["en", "de"])
def test_every_sentence_can_be_said(language):
    words = made.made_catalogue(language)
    run = made.made_season()
    for one in run.decided.verdicts:
        assert words.render(one.statement)
        assert all(words.render(reason) for reason in (*one.reasons, *one.condition))
    assert all(words.render(place.why) for place in run.decided.places)
