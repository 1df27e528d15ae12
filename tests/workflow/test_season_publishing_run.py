"""A judged season as one view: every part of it follows from the tables of its run folder."""

from __future__ import annotations

from dataclasses import replace

import pytest
from season_runs import NOW, begun, market, season_text, stored

from assaymark.claims import SeasonVerdicts, catalogue, languages
from assaymark.cli import models
from assaymark.judging import Contestant, season_table
from assaymark.report.season import SeasonRun
from assaymark.workflow import RunFolder, Store
from assaymark.workflow.tracks import (
    SeasonJudgments,
    SeasonMaterial,
    SeasonReplaced,
    judge_season,
    run_season,
    season_material,
    season_notes,
    season_run,
    stored_season,
)

PANEL = "".join(
    f'\n[[panel]]\nname = "{name}"\nfamily = "j{name}"\nmodel = "reference/season-{name}"\n'
    for name in ("auditor", "reader")
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A judged season of two agents over five days. Not to be changed."""
    path = tmp_path_factory.mktemp("judged")
    text = season_text(head="universe = 6", first="2024-03-11") + PANEL
    found = begun(path / "run", f'{text}\n[market]\nsource = "{stored(path / "m", market())}"\n', models())
    run_season(found, models(), now=NOW)
    judge_season(found, models())
    return found


@pytest.fixture(scope="module")
def material(folder: RunFolder) -> SeasonMaterial:
    return season_material(folder)


@pytest.fixture(scope="module")
def run(folder: RunFolder, material: SeasonMaterial) -> SeasonRun:
    judged = SeasonJudgments.read(Store(folder))
    points = {
        name: {one.judge: one.score.score.composite for one in judged.grades if one.agent == name and one.score.score}
        for name in material.steps
    }
    table = season_table([Contestant(name, ones) for name, ones in points.items()])
    replaced = [("two", "Acme", "replaced", 1), ("one", "NVX", "kept", 2), ("one", "QAD", "kept", 5)]
    judged = replace(judged, replaced=tuple(SeasonReplaced(*one, "because") for one in replaced))
    return season_run(stored_season(folder), material, judged, (), table, SeasonVerdicts((), (), ()), ["reader"])


def test_what_is_shown_is_what_the_tables_hold(run, material):
    assert (run.first, run.last, run.days, run.source) == ("2024-03-11", "2024-03-15", 5, "")
    assert {name: len(steps) for name, steps in run.steps.items()} == {"one": 5, "two": 5}
    assert len(run.universe) == 6
    assert [one.name for one in run.plan.panel] == ["auditor", "reader"]
    assert run.sheets == {"reader": "datasheet/reader.html"}
    assert {(one.agent, one.judge, one.state) for one in run.grades} == {
        (agent, judge, "ok") for agent in ("one", "two") for judge in ("auditor", "reader")
    }
    paths = {one.name: one for one in run.paths}
    assert [(name, one.baseline) for name, one in paths.items()][:3] == [
        ("one", False), ("two", False), ("60/40", True),
    ]  # fmt: skip
    assert {one.start for one in paths.values()} == {100_000.0}
    assert paths["two"].nav == tuple(one.nav for one in material.navs["two"])
    assert [(one.name, one.family, one.built_in) for one in run.plan.agents] == [
        ("one", "reference", True), ("two", "reference", True),
    ]  # fmt: skip
    assert {who: [(one.name, one.state, one.count) for one in lines] for who, lines in run.blinding.items()} == {
        "one": [("QAD", "kept", 5), ("NVX", "kept", 2)], "two": [("Acme", "replaced", 1)],
    }  # fmt: skip
    assert run.plan == material.season
    assert {one.group for one in run.rules} >= {"season", "agents", "panel", "rules", "judging"}


def test_the_ledger_holds_both_layers(run):
    lines = run.ledger["one"]
    assert lines
    assert any(one.numbers is not None for one in lines)
    assert {judge for one in lines for judge in one.judges} <= {"auditor", "reader"}
    assert any(one.judges for one in lines)
    assert [one.number for one in lines] == sorted(one.number for one in lines)


@pytest.mark.parametrize("language", languages())
def test_every_note_has_words(run, language):
    for note in run.notes:
        assert catalogue(language).render(note)


def test_a_season_that_went_on_says_how_far_it_was_judged(folder, material):
    judged = SeasonJudgments.read(Store(folder))
    assert "note.judged_to" not in {one.key for one in season_notes(material, judged.grades)}
    shorter = [replace(one, last="2024-03-13") for one in judged.grades]
    (note, *_) = season_notes(material, shorter)
    assert (note.key, dict(note.values)) == ("note.judged_to", {"judged": "2024-03-13", "last": "2024-03-15"})


@pytest.mark.parametrize("language", languages())
def test_replies_asked_for_twice_and_texts_that_address_the_judge_are_counted(folder, material, language):
    grades = SeasonJudgments.read(Store(folder)).grades
    assert not {"note.judge_again", "note.instructing"} & {one.key for one in season_notes(material, grades)}
    parts = [replace(part, first_key="0" * 64) for part in grades[0].score.grades.parts]
    again = replace(grades[0].score, grades=replace(grades[0].score.grades, parts=tuple(parts)))
    first, *rest = material.steps["one"]
    hostile = replace(first, decision=replace(first.decision, flags=("instruction-like text",)))
    changed = replace(material, steps={**material.steps, "one": (hostile, *rest)})
    notes = {one.key: one for one in season_notes(changed, [replace(grades[0], score=again), *grades[1:]])}
    said = notes["note.judge_again"]
    assert (said.values["judge"], said.values["n"]) == (grades[0].judge, len(parts))
    assert dict(notes["note.instructing"].values) == {"agent": "one", "n": 1, "of": 5}
    for key in ("note.judge_again", "note.instructing"):
        assert catalogue(language).render(notes[key])
