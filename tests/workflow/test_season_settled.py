"""What follows from a season: baselines, checks and outcomes, each against the market it was made from."""

# ruff: noqa: I001

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from season_runs import IDS, NOW, begun, market, season_text, stored

from assaymark.cli import models
from assaymark.importers import CASH, EQUAL_WEIGHT, NEXT, WHOLE
from assaymark.market import History
from assaymark.portfolio import Book
from assaymark.workflow import OUTCOMES, RunFolder, Store
from assaymark.workflow import tracks

COST = 0.001


def played(path, history: History | None = None, universe: object = 6, **changes) -> RunFolder:
    text = season_text(head=f"universe = {universe}", **changes)
    source = stored(path / "market", history or market())
    folder = begun(path / "run", f'{text}\n[market]\nsource = "{source}"\n', models())
    tracks.run_season(folder, models(), now=NOW)
    return folder


@pytest.fixture(scope="module")
def season(tmp_path_factory) -> RunFolder:
    """Two agents, six instruments, eleven days. Not to be changed."""
    return played(tmp_path_factory.mktemp("season"))


def priced(day: str, field: str) -> dict[str, float]:
    history = market()
    row = int(np.flatnonzero(history.days == np.datetime64(day))[0])
    return dict(zip(IDS, history.bars[field][row].tolist(), strict=True))


def by_hand(shares: dict[str, float], days: list[str]) -> list[float]:
    """What it is worth to buy these shares at the second day's opens, and hold."""
    opens = priced(days[1], "open")
    units = {name: 100_000.0 * share / (1 + COST) / opens[name] for name, share in shares.items()}
    worth = [math.fsum(held * priced(day, "close")[name] for name, held in units.items()) for day in days[1:]]
    return [100_000.0, *worth]


def test_baselines_buy_once_and_hold_and_there_is_no_60_40_without_both_classes(season, tmp_path):
    found: dict[str, list[float]] = {}
    days = sorted({one.day for one in Store(season).read(tracks.NAVS)})
    for one in sorted(Store(season).read(tracks.BASELINES), key=lambda one: one.day):
        found.setdefault(one.agent, []).append(one.nav)
    classes = {one.id: one.asset_class for one in market().listings}
    members = {kind: [name for name in IDS if classes[name] == kind] for kind in ("EQ", "BO")}
    sixty = {name: share / len(members[kind]) for kind, share in (("EQ", 0.6), ("BO", 0.4)) for name in members[kind]}
    assert set(found) == {EQUAL_WEIGHT, CASH, tracks.SIXTY_FORTY}
    assert found[CASH] == [100_000.0] * 11
    assert found[EQUAL_WEIGHT] == pytest.approx(by_hand(dict.fromkeys(IDS, 1 / 6), days), rel=1e-9)
    assert found[tracks.SIXTY_FORTY] == pytest.approx(by_hand(sixty, days), rel=1e-9)
    only = next(one.id for one in market().listings if one.asset_class == "EQ")
    folder = played(tmp_path, last="2024-03-05", universe=[only])
    assert {one.agent for one in Store(folder).read(tracks.BASELINES)} == {EQUAL_WEIGHT, CASH}


def test_outcomes_are_the_steps_of_the_books(season):
    material = tracks.season_material(season)
    equal = [one.nav for one in material.baselines[EQUAL_WEIGHT]]
    outcomes = {(one.record_id, one.horizon): one for one in Store(season).read(OUTCOMES)}
    for agent, steps in material.steps.items():
        navs = [one.nav for one in material.navs[agent]]
        for at, step in enumerate(steps[:-1]):
            one = outcomes.pop((step.decision.record_id, NEXT))
            assert one.value == pytest.approx(navs[at + 1] / navs[at] - 1, abs=1e-12)
            assert one.benchmark == pytest.approx(equal[at + 1] / equal[at] - 1, abs=1e-12)
            assert str(one.resolved_at.date()) == steps[at + 1].day
        whole = outcomes.pop((steps[-1].decision.record_id, WHOLE))
        assert whole.value == pytest.approx(navs[-1] / 100_000 - 1, abs=1e-12)
    assert not outcomes


def test_every_check_of_an_untouched_season_reconciles(season):
    checks = Store(season).read(tracks.CHECKS)
    assert {(one.agent, one.kind) for one in checks} >= {("one", "cash"), ("one", "fill"), ("two", "position")}
    assert sum(one.checks for one in checks if one.kind == "cash") == 2 * 11
    assert all(one.passed == one.checks and not one.mismatches for one in checks)


@pytest.mark.parametrize("what", ["cash", "position", "fill"])
def test_an_altered_book_is_found(season, what):
    locked = tracks.open_season(season)
    clock = locked.data.clock(locked.season)
    second, third = (clock.day(day) for day in clock.due(None)[1:3])
    material = tracks.season_material(season)
    marks = {name: (quote.close, str(second.date)) for name, quote in second.quotes.items()}
    decided = next(one.decision for one in material.steps["one"] if one.day == str(second.date))
    before = Book(material.navs["one"][1].cash, material.navs["one"][1].positions)
    trades = None if what == "position" else decided
    day = tracks.settle_account(locked.season, "one", tracks.Account(before, trades), third, marks)
    assert not tracks.checked(locked.season, before, day, third, "r")["mismatches"]
    nav, held = day.nav, min(day.nav.positions)
    if what == "cash":
        day = replace(day, nav=replace(nav, cash=nav.cash + 5))
    elif what == "position":
        day = replace(day, nav=replace(nav, positions={**nav.positions, held: nav.positions[held] + 1}))
    else:
        day = replace(day, fills=tuple(replace(one, price=one.price * 1.01) for one in day.fills))
    found = tracks.checked(locked.season, before, day, third, "r")
    assert what in {kind for kind, _ in found["mismatches"]}
    assert found["counts"][what][1] < found["counts"][what][0]


def test_days_without_data_change_no_baseline(tmp_path):
    history = market()
    rows = {day: int(np.flatnonzero(history.days == np.datetime64(day))[0]) for day in ("2024-03-01", "2024-03-05")}
    bars = {name: values.copy() for name, values in history.bars.items()}
    for values in bars.values():
        values[list(rows.values())] = np.nan
    folder = played(tmp_path, replace(history, bars=bars), last="2024-03-07")
    found = {one.day: one for one in Store(folder).read(tracks.BASELINES) if one.agent == EQUAL_WEIGHT}
    assert [(one.state, one.nav == 100_000.0) for _, one in sorted(found.items())] == [
        ("no data", True), ("ok", True), ("no data", True), ("ok", False), ("ok", False)
    ]  # fmt: skip
    assert set(found["2024-03-06"].positions) == set(IDS)
