"""What a season left behind, read from its tables alone."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from season_runs import NOW, begun, market, season_text, stored

from assaymark.agents import reference_agents
from assaymark.errors import LedgerError, PlanError
from assaymark.workflow import RunFolder, Store
from assaymark.workflow.tracks import FILLS, NAVS, SeasonMaterial, run_season, season_material


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A season of two agents and eleven days with two replicates."""
    path = tmp_path_factory.mktemp("played")
    text = season_text(head="universe = 6\nreplicates = 2") + f'\n[market]\nsource = "{stored(path / "m", market())}"\n'
    folder = begun(path / "run", text, dict(reference_agents()))
    run_season(folder, dict(reference_agents()), now=NOW)
    return folder


@pytest.fixture(scope="module")
def material(played: RunFolder) -> SeasonMaterial:
    return season_material(played)


def test_steps_are_in_order_and_carry_what_the_broker_made_of_them(played: RunFolder, material: SeasonMaterial) -> None:
    fills, navs = Store(played).read(FILLS), Store(played).read(NAVS)
    assert [one.id for one in material.agents] == ["one", "two"]
    for name, steps in material.steps.items():
        days = [one.day for one in steps]
        assert days == sorted(days)
        assert len(days) == 11
        assert sum(len(one.fills) for one in steps) == sum(one.agent == name for one in fills)
        for step, later in zip(steps, days[1:], strict=False):
            book = next(one for one in navs if one.agent == name and one.day == later)
            assert step.book is not None
            assert (step.book.cash, step.book.positions) == (book.cash, book.positions)
            assert {one.record_id for one in fills if one.agent == name and one.day == later} <= {
                step.decision.record_id
            }
        assert steps[-1].book is None
        assert not steps[-1].fills


def test_replicates_are_decisions_alone(material: SeasonMaterial) -> None:
    assert sorted(material.replicates) == [("one", 1), ("one", 2), ("two", 1), ("two", 2)]
    for (agent, replicate), steps in material.replicates.items():
        assert {(one.decision.agent.id, one.decision.replicate) for one in steps} == {(agent, replicate)}
        assert all(one.book is None and not one.fills for one in steps)


def test_nothing_is_read_but_tables_and_lock(played: RunFolder, material: SeasonMaterial, tmp_path: Path) -> None:
    shutil.copytree(played.path, tmp_path / "copy", ignore=shutil.ignore_patterns("season", "ledger*"))
    copied = season_material(RunFolder(tmp_path / "copy"))
    assert copied.steps == material.steps
    assert copied.contexts == material.contexts
    assert not copied.partial
    assert copied.plan_hash == material.plan_hash


def test_an_edited_file_and_a_lost_table_are_refused(played: RunFolder, tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "copy")
    shutil.copytree(played.path, folder.path)
    (folder.tables / "navs.parquet").unlink()
    with pytest.raises(LedgerError, match=r"navs\.parquet is not there; make it with assaymark season run"):
        season_material(folder)
    folder.plan.write_text(folder.plan.read_text().replace("Grow", "Shrink"))
    with pytest.raises(PlanError, match="was edited after the lock"):
        season_material(folder)
