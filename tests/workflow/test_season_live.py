"""A live season at the command line, day by day: corporate actions, a halt, late data, and agents that fail."""

from __future__ import annotations

import csv
import html
import io
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from season_runs import Scripted, begun, orders

from assaymark import cli_season
from assaymark.cli import app, main, models
from assaymark.engine import Model
from assaymark.importers.recorded import EQUAL_WEIGHT
from assaymark.market import snapshot_from_file, weekdays, write_snapshot
from assaymark.records import Context
from assaymark.workflow.folder import RunFolder
from assaymark.workflow.season_material import season_material
from assaymark.workflow.season_records import CHECKS, FILLS, NAVS, REJECTIONS
from assaymark.workflow.season_running import run_season, step_season
from assaymark.workflow.tables import DECISIONS, MEASUREMENTS, Store

DAYS: list[date] = weekdays(date(2024, 1, 22), date(2024, 3, 29)).astype(object).tolist()
SEASON = DAYS[-20:]
SPLIT_DAY, LATE, NEXT, HALT = SEASON[7], SEASON[10], SEASON[11], SEASON[14:17]
DIVIDEND_DAY = LATE
NAMES = ("DIVI", "HALT", "PLAIN", "SPLIT")
COST = 0.001
START = 100_000.0


@dataclass(frozen=True)
class Bar:
    """One traded bar, and the action that comes into force on its day."""

    open: float
    close: float
    volume: float
    split: float = 1.0
    dividend: float = 0.0


@cache
def traded() -> Mapping[str, Mapping[date, Bar]]:
    """What was traded: SPLIT splits 10 for 1, DIVI pays 1.25, HALT does not trade on three days."""
    rng = np.random.default_rng(5)
    found: dict[str, dict[date, Bar]] = {}
    for name, level in zip(NAMES, (50.0, 20.0, 80.0, 1000.0), strict=True):
        bars: dict[date, Bar] = {}
        for day in DAYS:
            split = 10.0 if (name, day) == ("SPLIT", SPLIT_DAY) else 1.0
            dividend = 1.25 if (name, day) == ("DIVI", DIVIDEND_DAY) else 0.0
            opened = level / split - dividend  # what is lost in price is gained in units and cash
            level = opened * float(np.exp(rng.normal(0.0005, 0.01)))
            if name != "HALT" or day not in HALT:
                bars[day] = Bar(round(opened, 4), round(level, 4), 1000.0 * split, split, dividend)
        found[name] = bars
    return found


def factors(bars: Mapping[date, Bar]) -> dict[date, float]:
    """Adjustment factors as a data vendor makes them, counting back from the last bar."""
    found, days = {}, sorted(bars)
    factor = 1.0
    for at in range(len(days) - 1, -1, -1):
        found[days[at]] = factor
        if at:
            before, now = bars[days[at - 1]].close, bars[days[at]]
            factor *= (1.0 - now.dividend / (before / now.split)) / now.split
    return found


Row = Mapping[str, object]


def by_factor(name: str, bars: Mapping[date, Bar]) -> Iterator[Row]:
    """Rows with an adjustment factor as of the last of them."""
    for day, factor in factors(bars).items():
        yield _row(name, day, bars[day]) | {"adj_factor": repr(factor)}


def by_action(name: str, bars: Mapping[date, Bar]) -> Iterator[Row]:
    """Rows that list splits and dividends."""
    for day, bar in bars.items():
        yield _row(name, day, bar) | {"split": bar.split if bar.split != 1 else "", "dividend": bar.dividend or ""}


def _row(name: str, day: date, bar: Bar) -> dict[str, object]:
    high, low = max(bar.open, bar.close), min(bar.open, bar.close)
    return {"instrument": name, "date": str(day), "open": bar.open, "high": high, "low": low, "close": bar.close,
            "volume": bar.volume}  # fmt: skip


def arrive(source: Path, day: date, rows: Callable[..., Iterator[Row]] = by_factor, *, without: date | None = None):
    """The snapshot of a day: everything up to it, as of it."""
    source.mkdir(parents=True, exist_ok=True)
    path = source / f"{day}.csv"
    known = {name: {at: bar for at, bar in bars.items() if at <= day} for name, bars in traded().items()}
    lines = [line for name, bars in known.items() for line in rows(name, bars) if line["date"] != str(without)]
    with path.open("w", newline="") as file:
        out = csv.DictWriter(file, list(lines[0]))
        out.writeheader()
        out.writerows(lines)
    now = evening(NEXT) + timedelta(minutes=5) if day == LATE else datetime.combine(day, time(21, 5), UTC)
    write_snapshot(source / str(day), snapshot_from_file(path, now=now))


def file_of(source: Path, agents: Mapping[str, str], *, extra: str = "") -> str:
    """The season: twenty days, four instruments."""
    cast = "".join(
        f'\n[[agents]]\nname = "{one}"\nfamily = "{one}"\nmodel = "{model}"\n' for one, model in agents.items()
    )
    return f"""
name = "live"
prompt = "Grow the book."
universe = {list(NAMES)}
market = {{source = '{source}', live = true}}
engine = {{deadline_s = 5, attempts = 1}}
{extra}
[calendar]
first = {SEASON[0]}
last = {SEASON[-1]}
{cast}
[[panel]]
name = "reader"
family = "of-reader"
model = "reference/season-reader"
"""


def stepped(folder: Path, moment: datetime) -> tuple[int, str, str]:
    """``season step`` at another time: its exit status, and what it printed."""

    class At(datetime):
        @classmethod
        def now(cls, _tz=None):
            return moment

    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(cli_season, "datetime", At)
        status = main(["season", "step", str(folder)])
    return status, out.getvalue(), err.getvalue()


def evening(day: date, *, hour: int = 22) -> datetime:
    return datetime.combine(day, time(hour), UTC)


# --- the season -------------------------------------------------------------------------------------------------------

BUYS = {"DIVI": 200.0, "HALT": 300.0, "PLAIN": 100.0, "SPLIT": 20.0}


def wishes(day: str) -> str:
    """Buy everything on the first day, more of SPLIT on the evening before its split; sell HALT while it is halted."""
    if day == str(SEASON[0]):
        return orders(*((name, "buy", units) for name, units in BUYS.items()))
    if day == str(SEASON[6]):
        return orders(("SPLIT", "buy", 3.0))
    return orders(("HALT", "sell", 100.0)) if day == str(HALT[0]) else orders()


AGENTS = {"buyer": "test/buyer", "babbler": "test/babbler"}


@dataclass(frozen=True)
class Played:
    """A season that was played to its end: its folder and site, and the status and output of each step."""

    folder: RunFolder
    site: Path
    said: Mapping[date | str, tuple[int, str, str]]
    buyer: Scripted


@contextmanager
def scripted(cast: Mapping[str, Model]) -> Iterator[None]:
    known = app.info.context_settings["obj"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(app.info.context_settings, "obj", replace(known, models=lambda: {**models(), **cast}))
        yield


@pytest.fixture(scope="module", params=[by_factor, by_action], ids=["factors", "listed"])
def played(request, tmp_path_factory) -> Played:
    """The season of twenty days, by `season step` on each evening. The data of one day come after those of the next."""
    path = tmp_path_factory.mktemp("live")
    source, folder = path / "market", path / "run"
    arrive(source, DAYS[-21], request.param)
    (path / "season.toml").write_text(file_of(source, AGENTS))
    buyer = Scripted(wishes)
    said = {}
    with scripted({"test/buyer": buyer, "test/babbler": Scripted(lambda _: "I would rather not use JSON.")}):
        assert main(["season", "init", str(path / "season.toml"), "--out", str(folder)]) == 0
        for day in SEASON:
            if day != LATE:
                arrive(source, day, request.param, without=LATE if day == NEXT else None)
            said[day] = stepped(folder, evening(day))
            if day == NEXT:
                arrive(source, LATE, request.param)
                said["then"] = stepped(folder, evening(day, hour=23))
        assert main(["season", "judge", str(folder)]) == 0
        assert main(["season", "publish", str(folder), "--out", str(path / "site")]) == 0
    return Played(RunFolder(folder), path / "site", said, buyer)


def bar_of(name: str, day: date) -> Bar | None:
    return traded()[name].get(day)


def by_hand() -> list[float]:
    """What the buyer's book is worth on each evening, from what was traded and nothing else."""
    cash, units, close = START, dict.fromkeys(NAMES, 0.0), dict.fromkeys(NAMES, 0.0)
    worth = []
    for at, day in enumerate(SEASON):
        for name in NAMES:
            if bar := bar_of(name, day):
                units[name] *= bar.split
                cash += units[name] * bar.dividend
        bought = BUYS if at == 1 else {"SPLIT": 3.0 * 10.0} if day == SPLIT_DAY else {}
        for name, wanted in bought.items():
            cash -= wanted * bar_of(name, day).open * (1 + COST)
            units[name] += wanted
        close |= {name: bar.close for name in NAMES if (bar := bar_of(name, day))}
        worth.append(cash + sum(units[name] * close[name] for name in NAMES))
    return worth


def test_total_returns_are_those_by_hand(played):
    navs = [one for one in Store(played.folder).read(NAVS) if one.agent == "buyer"]
    assert [one.day for one in navs] == [str(day) for day in SEASON]
    assert [one.nav for one in navs] == pytest.approx(by_hand(), rel=1e-9)
    (found,) = [one for one in Store(played.folder).read(MEASUREMENTS)
                if one.name == "season.return" and one.labels == {"agent": "buyer"}]  # fmt: skip
    assert found.value == pytest.approx(by_hand()[-1] / START - 1, rel=1e-9)
    assert navs[7].positions["SPLIT"] == 230.0


def test_the_baseline_earns_the_same_actions(played):
    navs = season_material(played.folder).baselines[EQUAL_WEIGHT]
    units = {name: START / 4 / (1 + COST) / bar_of(name, SEASON[1]).open for name in NAMES}
    paid = units["DIVI"] * 1.25
    last = {name: traded()[name][max(day for day in traded()[name])].close for name in NAMES}
    worth = paid + sum(units[name] * (10.0 if name == "SPLIT" else 1.0) * last[name] for name in NAMES)
    assert navs[-1].nav == pytest.approx(worth, rel=1e-9)


def test_actions_are_rows_of_their_own_kind_that_add_up(played):
    fills = [one for one in Store(played.folder).read(FILLS) if one.agent == "buyer"]
    acted = {one.kind: one for one in fills if one.kind != "order"}
    assert {kind: (one.day, one.symbol) for kind, one in acted.items()} == {
        "split": (str(SPLIT_DAY), "SPLIT"), "dividend": (str(DIVIDEND_DAY), "DIVI")
    }  # fmt: skip
    assert (acted["split"].quantity, acted["split"].price, acted["split"].cost) == (180.0, 0.0, 0.0)
    assert (acted["dividend"].quantity, acted["dividend"].cost) == (0.0, pytest.approx(-250.0))
    assert acted["dividend"].price == pytest.approx(1.25)
    cash = START - sum(one.quantity * one.price + one.cost for one in fills)
    assert cash == pytest.approx([one.cash for one in Store(played.folder).read(NAVS) if one.agent == "buyer"][-1])
    waited = [one for one in fills if (one.kind, one.day) == ("order", str(SPLIT_DAY))]
    assert [(one.quantity, one.record_id) for one in waited] == [(30.0, f"live-{SEASON[6]}-buyer")]


def test_every_check_says_what_it_found(played):
    checks = Store(played.folder).read(CHECKS)
    assert {one.kind for one in checks if one.agent == "buyer"} == {"fill", "cash", "position"}
    assert all(one.passed == one.checks and not one.mismatches for one in checks)
    rejected = [one for one in Store(played.folder).read(REJECTIONS) if one.agent == "buyer"]
    assert [(one.symbol, one.reason, one.day) for one in rejected] == [("HALT", "stale-price", str(HALT[1]))]
    assert [one.stale for one in Store(played.folder).read(NAVS) if one.agent == "buyer"].count(("HALT",)) == 3
    flags = {one.flags for one in Store(played.folder).read(DECISIONS) if one.agent.id == "babbler"}
    assert flags == {("invalid-reply",)}


def test_a_late_day_is_waited_for_and_taken_in_order(played):
    status, out, err = played.said[LATE]
    until = f"waiting for the data of {LATE} until {LATE + timedelta(days=2)} 21:30 UTC"
    assert (status, err) == (0, "")
    assert until in out
    assert "nothing is due" not in out
    status, out, err = played.said[NEXT]
    assert (status, err) == (0, "")
    assert f"{until}; the days after it are there and follow in order" in out
    status, out, _ = played.said["then"]
    assert status == 0
    assert "live: 2 days done" in out
    assert all(state == "ok" for state in {one.state for one in Store(played.folder).read(NAVS)})


def shown(played: Played, day: date) -> Context:
    """What the buyer was shown on a day."""
    (found,) = [one for one in Store(played.folder).contexts().values()
                if one.cutoff.date() == day and one.portfolio.positions.get("PLAIN")]  # fmt: skip
    return found


def test_agents_are_shown_bars_on_todays_level_and_told_of_actions(played):
    context = shown(played, SPLIT_DAY)
    series = {one.instrument: one for one in context.series}["SPLIT"]
    before, now = bar_of("SPLIT", SEASON[6]), bar_of("SPLIT", SPLIT_DAY)
    assert series.close[-2:] == pytest.approx((before.close / 10, now.close), rel=1e-5)
    assert series.open[-1] == pytest.approx(now.open, rel=1e-5)
    assert series.volume[-2:] == (10_000.0, 10_000.0)
    assert len(series.open) == len(series.high) == len(series.low) == len(series.volume) == len(series.close) == 30
    facts = {(one.instrument, one.field): one for one in context.facts}
    assert facts["SPLIT", "price"].value == series.close[-1]
    assert (facts["SPLIT", "split"].value, facts["SPLIT", "split"].as_of.date()) == (10.0, SPLIT_DAY)
    assert "SPLIT: split of 10 for 1" in context.prompt
    assert "your book now holds 200 units" in context.prompt
    later = {(one.instrument, one.field): one for one in shown(played, SEASON[12]).facts}
    assert later["DIVI", "dividend"].value == pytest.approx(1.25)
    assert later["DIVI", "dividend"].available_at.date() == DIVIDEND_DAY
    assert "250.00 was paid into its cash" in shown(played, DIVIDEND_DAY).prompt


def test_pages_say_what_came_into_force(played):
    first = html.unescape((played.site / "index.html").read_text(encoding="utf-8"))
    assert "Splits or dividends of DIVI and SPLIT came into force while they were held." in first
    agent = "".join(
        html.unescape(one.read_text(encoding="utf-8")) for one in (played.site / "agents").glob("buyer*.html")
    )
    assert "split of SPLIT: 180 units added" in agent
    assert "dividend of DIVI: 250.00 in cash" in agent
    assert "Returns are total returns" in html.unescape((played.site / "rules.html").read_text(encoding="utf-8"))


# --- what goes wrong --------------------------------------------------------------------------------------------------


def small(path: Path, rows: Callable[..., Iterator[Row]], *arrived: date, **rest: object) -> tuple[RunFolder, dict]:
    """A season of the buyer alone over the snapshots of some days."""
    for day in arrived:
        arrive(path / "market", day, rows, **rest)
    who = {**models(), "test/buyer": Scripted(wishes)}
    return begun(path / "run", file_of(path / "market", {"buyer": "test/buyer"}), who), who


def by_close(name: str, bars: Mapping[date, Bar]) -> Iterator[Row]:
    """Rows that say nothing of adjustments."""
    return (_row(name, day, bar) for day, bar in bars.items())


def as_they_are(name: str, bars: Mapping[date, Bar]) -> Iterator[Row]:
    """Rows that say that nothing is to be adjusted, which is wrong on the day of a split."""
    return (_row(name, day, bar) | {"adj_factor": 1.0} for day, bar in bars.items())


def test_a_source_that_does_not_say_whether_prices_are_adjusted_is_refused_for_live_seasons(tmp_path, capsys):
    arrive(tmp_path / "market", SEASON[0], by_close)
    (tmp_path / "season.toml").write_text(text := file_of(tmp_path / "market", {"buyer": "reference/momentum"}))
    assert main(["season", "init", str(tmp_path / "season.toml"), "--out", str(tmp_path / "run")]) == 1
    said = capsys.readouterr().err
    assert "files does not say whether prices are adjusted for splits and dividends (DIVI, HALT, PLAIN, SPLIT)" in said
    assert "adj_factor" in said
    assert not (tmp_path / "run").exists()
    source = tmp_path / "market" / str(SEASON[0])
    replay = text.replace(f"'{tmp_path / 'market'}', live = true", f"'{source}'").replace(
        str(SEASON[-1]), str(SEASON[0])
    )
    (tmp_path / "season.toml").write_text(replay)
    assert main(["season", "init", str(tmp_path / "season.toml"), "--out", str(tmp_path / "run")]) == 0


def test_a_move_that_no_action_explains_is_a_failing_check_with_its_day_and_instrument(tmp_path):
    folder, who = small(tmp_path, as_they_are, SEASON[8])
    step_season(folder, who, now=evening(SEASON[8]))
    checks = {one.kind: one for one in Store(folder).read(CHECKS)}
    bought = checks["fill"]  # of SPLIT something was bought on that day
    assert (bought.checks - bought.passed, len(bought.mismatches)) == (1, 1)
    before, now = bar_of("SPLIT", SEASON[6]), bar_of("SPLIT", SPLIT_DAY)
    said = f"price of SPLIT on {SPLIT_DAY}: {now.close:.10g} after {before.close:.10g} on {SEASON[6]}, "
    said += "explained by no action"
    assert bought.mismatches[0].endswith(said)
    assert checks["position"].passed == checks["position"].checks


def test_a_replay_of_the_whole_market_has_the_books_of_the_live_season(played, tmp_path):
    arrive(tmp_path / "market", SEASON[-1])
    text = file_of(tmp_path / "market" / str(SEASON[-1]), {"buyer": "test/buyer"}).replace(", live = true", "")
    who = {**models(), "test/buyer": Scripted(wishes)}
    folder = begun(tmp_path / "run", text, who)
    run_season(folder, who, now=evening(SEASON[-1]))
    live = [one for one in Store(played.folder).read(NAVS) if one.agent == "buyer"]
    assert [one.nav for one in Store(folder).read(NAVS)] == pytest.approx([one.nav for one in live], rel=1e-9)


def test_a_day_whose_data_do_not_come_in_time_is_lost_loudly(tmp_path):
    folder, who = small(tmp_path, by_factor, SEASON[3], without=SEASON[2])
    late = datetime.combine(SEASON[2], time(21, 30), UTC) + timedelta(hours=48)
    waiting = step_season(folder, who, now=late - timedelta(minutes=1))
    assert waiting.days == tuple(SEASON[:2])
    assert waiting.overdue == ()
    assert f"waiting for the data of {SEASON[2]}" in waiting.lines[-1]
    done = step_season(folder, who, now=late)
    assert done.days == tuple(SEASON[2:4])
    assert done.overdue == (
        f"{SEASON[2]}: its data did not come in time; the day is recorded without, nobody was asked, and orders waited",
    )
    assert [one.state for one in Store(folder).read(NAVS)] == ["ok", "ok", "no data", "ok"]


def test_overdue_data_are_an_error_and_a_line(tmp_path):
    for day in SEASON[:3]:
        arrive(tmp_path / "market", day)
    (tmp_path / "season.toml").write_text(file_of(tmp_path / "market", {"holder": "reference/equal-weight"}))
    folder = tmp_path / "run"
    assert main(["season", "init", str(tmp_path / "season.toml"), "--out", str(folder)]) == 0
    # however long ago they were, days whose data are there are done
    status, out, err = stepped(folder, evening(SEASON[10]))
    assert (status, "3 days done" in out) == (1, True)
    assert f"{SEASON[3]}: its data are overdue since {SEASON[3] + timedelta(days=2)} 21:30 UTC" in err
    assert f"the data end on {SEASON[2]}" in err
    status, out, err = stepped(folder, evening(SEASON[10]))
    assert (status, "nothing is due" in out, "are overdue" in err) == (1, False, True)
    quick = (tmp_path / "season.toml").read_text().replace("[calendar]", "[calendar]\nlate_after_h = 700")
    (tmp_path / "season.toml").write_text(quick)
    assert main(["season", "init", str(tmp_path / "season.toml"), "--out", str(tmp_path / "slow")]) == 0
    assert stepped(tmp_path / "slow", evening(SEASON[10]))[0] == 0
