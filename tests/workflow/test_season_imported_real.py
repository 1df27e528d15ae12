"""The real logs as seasons: every track of AI-Trader and all of CapitalBench can be locked, shown and blinded."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from assaymark.cli import models
from assaymark.workflow import RunFolder, tracks
from assaymark.workflow import import_files as import_records

pytestmark = pytest.mark.shared

NOW = datetime(2026, 4, 1, tzinfo=UTC)
STUDIES = Path(__file__).resolve().parents[2] / "studies"

# track: (agents, decisions, weeks, days, statements that do not follow)
TRACKS = {
    "us": (6, 348, 6, 28, 189), "cn-hourly": (7, 840, 7, 30, 0), "cn-daily": (7, 210, 7, 30, 0),
    "crypto": (6, 84, 3, 14, 30),
}  # fmt: skip


@pytest.fixture(scope="module")
def logs(shared, own_copy) -> Path:
    """Every log of AI-Trader, imported. Not to be changed."""

    def build(folder: Path) -> None:
        import_records("aitrader", shared / "data" / "aitrader", RunFolder(folder / "run"))

    return own_copy("aitrader-logs", build) / "run"


def material(path: Path, study: str) -> tracks.SeasonMaterial:
    folder = RunFolder(path)
    text = (STUDIES / f"{study}.toml").read_text(encoding="utf-8")
    tracks.lock_season(folder, text, f"{study}.toml", models(), now=NOW)
    return tracks.season_material(folder)


@pytest.mark.parametrize("track", TRACKS)
def test_a_track_is_a_season(logs, tmp_path, track):
    shutil.copytree(logs, tmp_path / "run")
    found = material(tmp_path / "run", f"aitrader-{track}")
    agents, decisions, weeks, days, off = TRACKS[track]
    steps = [step for ones in found.steps.values() for step in ones]
    assert (len(found.steps), len(steps)) == (agents, decisions)
    assert len({step.decision.cluster for step in steps}) == weeks
    assert {len(books) for books in found.baselines.values()} == {days}
    assert {len(books) for books in found.navs.values()} <= {days, days - 1}
    assert sum(one.checks - one.passed for one in found.checks) == off
    assert set(found.seconds.values()) == {None}
    assert found.partial
    assert sum(step.book is None for step in steps) == (2 if track == "cn-daily" else 0)
    keys = {one.key for one in tracks.record_notes(found)}
    late = track.startswith("cn")
    assert ("note.records.replayed" in keys, "note.records.undated" in keys) == (late, not late)
    for name, horizon in ((name, found.horizon(name, steps)) for name, steps in found.steps.items()):
        assert len(horizon.steps) == len(found.steps[name])
        assert {line.name for line in horizon.audit if line.state == "kept"} <= {"Google"}


def test_capitalbench_is_a_season_without_books(shared, tmp_path):
    import_records("capitalbench", shared / "data" / "capitalbench", RunFolder(tmp_path / "run"))
    found = material(tmp_path / "run", "capitalbench-season")
    steps = [step for ones in found.steps.values() for step in ones]
    assert (len(found.steps), len(steps)) == (10, 709)
    assert not any(found.navs.values())
    assert (found.baselines, found.checks) == ({}, ())
    assert all(found.seconds.values())
    assert {one.key for one in tracks.record_notes(found)} >= {"note.records.no_books", "note.records.unchecked"}
    for name, horizon in ((name, found.horizon(name, steps)) for name, steps in found.steps.items()):
        assert len(horizon.steps) == len(found.steps[name])
