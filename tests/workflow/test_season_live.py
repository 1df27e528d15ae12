"""A live season at the command line, day by day: corporate actions, a trading halt, and late or missing data."""

# ruff: noqa: I001

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
from season_runs import Scripted, begun, orders, panel, rows

from assaymark.cli import main, models
from assaymark.cli import tracks as cli_season
from assaymark.engine import Ledger, Model
from assaymark.engine.providers.registry import Models, providers
from assaymark.importers import EQUAL_WEIGHT
from assaymark.market import CorporateAction, snapshot_from_file, weekdays, write_snapshot
from assaymark.portfolio import Account
from assaymark.records import Action, Context
from assaymark.workflow import DECISIONS, MEASUREMENTS, RunFolder, Store
from assaymark.workflow import tracks

# A market of four instruments whose data arrive day by day

DAYS: list[date] = weekdays(date(2024, 1, 22), date(2024, 3, 29)).astype(object).tolist()
SEASON = DAYS[-12:]
EVE, SPLIT_DAY, LATE, NEXT, HALT = SEASON[2], SEASON[3], SEASON[5], SEASON[6], SEASON[8:11]
DIVIDEND_DAY = LATE
NAMES = ("DIVI", "HALT", "PLAIN", "SPLIT")
COST, START = 0.001, 100_000.0


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
    """The bars of the market: SPLIT splits 10 for 1, DIVI pays 1.25, HALT does not trade on three days."""
    rng = np.random.default_rng(5)
    found: dict[str, dict[date, Bar]] = {}
    for name, level in zip(NAMES, (50.0, 20.0, 80.0, 1000.0), strict=True):
        bars = found[name] = {}
        for day in DAYS:
            split = 10.0 if (name, day) == ("SPLIT", SPLIT_DAY) else 1.0
            dividend = 1.25 if (name, day) == ("DIVI", DIVIDEND_DAY) else 0.0
            opened = level / split - dividend  # what is lost in price is gained in units and cash
            level = opened * float(np.exp(rng.normal(0.0005, 0.01)))
            if name != "HALT" or day not in HALT:
                bars[day] = Bar(round(opened, 4), round(level, 4), 1000.0 * split, split, dividend)
    return found


Bars = Mapping[date, Bar]
Columns = Callable[[Bars], Iterator[Mapping[str, object]]]


def by_factor(bars: Bars) -> Iterator[Mapping[str, object]]:
    """Adjustment factors as a data vendor makes them, counting back from the last bar."""
    factor, days, found = 1.0, sorted(bars), []
    for day, now in zip(reversed([None, *days[:-1]]), (bars[day] for day in reversed(days)), strict=True):
        found.append({"adj_factor": repr(factor)})
        if day is not None:
            factor *= (1.0 - now.dividend / (bars[day].close / now.split)) / now.split
    return reversed(found)


def by_action(bars: Bars) -> Iterator[Mapping[str, object]]:
    """Splits and dividends are listed."""
    return ({"split": one.split if one.split != 1 else "", "dividend": one.dividend or ""} for one in bars.values())


def arrive(source: Path, *arrived: date, columns: Columns = by_factor, without: date | None = None) -> None:
    """The snapshots of some days: everything up to each of them, as of it."""
    source.mkdir(parents=True, exist_ok=True)
    for day in arrived:
        known = {name: {at: bar for at, bar in bars.items() if at <= day} for name, bars in traded().items()}
        lines = [
            {"instrument": name, "date": str(at), "open": bar.open, "high": max(bar.open, bar.close),
             "low": min(bar.open, bar.close), "close": bar.close, "volume": bar.volume} | more
            for name, bars in known.items() for (at, bar), more in zip(bars.items(), columns(bars), strict=True)
            if at != without
        ]  # fmt: skip
        path = source / f"{day}.csv"
        with path.open("w", newline="") as file:
            out = csv.DictWriter(file, list(lines[0]))
            out.writeheader()
            out.writerows(lines)
        now = evening(NEXT) + timedelta(minutes=5) if day == LATE else datetime.combine(day, time(21, 5), UTC)
        write_snapshot(source / str(day), snapshot_from_file(path, now=now))


def evening(day: date, *, hour: int = 22) -> datetime:
    return datetime.combine(day, time(hour), UTC)


def bar_of(name: str, day: date) -> Bar | None:
    return traded()[name].get(day)


def file_of(source: Path, **agents: str) -> str:
    """The season: twelve days, four instruments."""
    cast = (f'\n[[agents]]\nname = "{one}"\nfamily = "{one}"\nmodel = "{model}"\n' for one, model in agents.items())
    return f"""
name = "live"
prompt = "Grow the book."
universe = {list(NAMES)}
market = {{source = '{source}', live = true}}
engine = {{deadline_s = 5, attempts = 1}}
[calendar]
first = {SEASON[0]}
last = {SEASON[-1]}
{"".join(cast)}{panel("reader")}"""


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


@contextmanager
def scripted(**cast: Model) -> Iterator[None]:
    """The command line with some models for tests."""
    more = {f"test/{name}": one for name, one in cast.items()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("assaymark.cli.options.models", lambda: Models({**models(), **more}, providers()))
        yield


BUYS = {"DIVI": 200.0, "HALT": 300.0, "PLAIN": 100.0, "SPLIT": 20.0}


def wishes(day: str) -> str:
    """Buy everything on the first day, more of SPLIT on the evening before its split; sell HALT while it is halted."""
    return {
        str(SEASON[0]): orders(*((name, "buy", units) for name, units in BUYS.items())),
        str(EVE): orders(("SPLIT", "buy", 3.0)), str(HALT[0]): orders(("HALT", "sell", 100.0)),
    }.get(day, orders())  # fmt: skip


@dataclass(frozen=True)
class Played:
    """A season that was played to its end: its folder and site, and the status and output of some steps."""

    folder: RunFolder
    site: Path
    said: Mapping[date | str, tuple[int, str, str]]

    def page(self, name: str) -> str:
        return html.unescape((self.site / name).read_text(encoding="utf-8")).replace("\xa0", " ")


@pytest.fixture(scope="module", params=[by_factor, by_action], ids=["factors", "listed"])
def played(request, tmp_path_factory) -> Played:
    """The season by `season step` on each evening. The data of one day come after those of the next."""
    path, columns = tmp_path_factory.mktemp("live"), request.param
    source, folder, said = path / "market", path / "run", {}
    arrive(source, DAYS[-len(SEASON) - 1], columns=columns)
    text = file_of(source, buyer="test/buyer", babbler="test/babbler")
    with scripted(buyer=Scripted(wishes), babbler=Scripted(lambda _: "I would rather not use JSON.")):
        # Unasked: `season init` refuses an agent that writes no JSON on its first call.
        tracks.lock_season(RunFolder(folder), text, "season.toml", now=datetime.now(UTC))
        for day in SEASON:
            if day != LATE:
                arrive(source, day, columns=columns, without=LATE if day == NEXT else None)
            said[day] = stepped(folder, evening(day))
            if day == NEXT:
                arrive(source, LATE, columns=columns)
                said["then"] = stepped(folder, evening(day, hour=23))
        assert main(["season", "judge", str(folder)]) == 0
        assert main(["season", "publish", str(folder), "--out", str(path / "site"), "--language", "en"]) == 0
    return Played(RunFolder(folder), path / "site", said)


def by_hand() -> list[float]:
    """Return the value of the buyer's portfolio on each evening, computed from its trades alone."""
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


def test_total_returns_are_those_by_hand_and_of_a_replay_of_the_whole_market(played, tmp_path):
    navs = rows(played.folder, tracks.NAVS, agent="buyer")
    assert [one.day for one in navs] == [str(day) for day in SEASON]
    assert [one.nav for one in navs] == pytest.approx(by_hand(), rel=1e-9)
    (found,) = rows(played.folder, MEASUREMENTS, name="season.return", labels={"agent": "buyer"})
    assert found.value == pytest.approx(by_hand()[-1] / START - 1, rel=1e-9)
    # the baseline earns the same actions
    units = {name: START / 4 / (1 + COST) / bar_of(name, SEASON[1]).open for name in NAMES}
    last = {name: traded()[name][max(traded()[name])].close for name in NAMES}
    worth = sum(units[name] * (10.0 if name == "SPLIT" else 1.0) * last[name] for name in NAMES)
    held = tracks.season_material(played.folder).baselines[EQUAL_WEIGHT]
    assert held[-1].nav == pytest.approx(units["DIVI"] * 1.25 + worth, rel=1e-9)
    folder, who = lone(tmp_path, SEASON[-1], live=False)
    tracks.run_season(folder, who, now=evening(SEASON[-1]))
    assert [one.nav for one in rows(folder, tracks.NAVS)] == pytest.approx(by_hand(), rel=1e-9)


def test_where_lots_are_traded_a_split_makes_lots_of_lots_only_and_all_of_all(played):
    locked = tracks.open_season(played.folder)
    lots = locked.season.model_copy(update={"rules": locked.season.rules.model_copy(update={"fractional": False})})
    last = next(one for one in Store(played.folder).read(DECISIONS) if one.record_id == f"live-{EVE}-buyer")
    day = locked.data.clock(lots).day(SPLIT_DAY)
    for split, held, side, units, expected in (
        (10.0, 0.0, "buy", 1.5, "fraction"), (1.5, 0.0, "buy", 3.0, 4.0), (0.1, 0.0, "buy", 5.0, "fraction"),
        (1.5, 3.0, "sell", 1.0, -1.0), (1.5, 3.0, "sell", 3.0, -4.5), (1.5, 1.5, "sell", 1.5, -2.25),
    ):  # fmt: skip
        book, ordered = Account(START, {"SPLIT": held}), replace(last, actions=(Action("SPLIT", side, units),))
        acted = replace(day, actions={"SPLIT": (CorporateAction("SPLIT", SPLIT_DAY, split),)})
        found = tracks.settle_account(lots, "buyer", book, ordered, acted, {"SPLIT": (1000.0, str(EVE))})
        traded = [one.quantity for one in found.fills if one.kind == "order"]
        assert [one.reason for one in found.rejections] + traded == [expected]


def test_actions_are_rows_of_their_own_kind_that_add_up_and_are_told_on_the_pages(played):
    fills, navs = (rows(played.folder, table, agent="buyer") for table in (tracks.FILLS, tracks.NAVS))
    assert navs[SEASON.index(SPLIT_DAY)].positions["SPLIT"] == 230.0
    acted = {one.kind: (one.day, one.symbol, one.quantity) for one in fills if one.kind != "order"}
    assert acted == {
        "split": (str(SPLIT_DAY), "SPLIT", 180.0), "dividend": (str(DIVIDEND_DAY), "DIVI", 0.0)
    }  # fmt: skip
    costs = {one.kind: (one.price, one.cost) for one in fills if one.kind != "order"}
    assert costs == {"split": (0.0, 0.0), "dividend": (pytest.approx(1.25), pytest.approx(-250.0))}
    assert START - sum(one.quantity * one.price + one.cost for one in fills) == pytest.approx(navs[-1].cash)
    waited = [(one.quantity, one.record_id) for one in fills if (one.kind, one.day) == ("order", str(SPLIT_DAY))]
    assert waited == [(30.0, f"live-{EVE}-buyer")]
    checks = rows(played.folder, tracks.CHECKS)
    assert {one.kind for one in checks if one.agent == "buyer"} == {"fill", "cash", "position"}
    assert all(one.passed == one.checks and not one.mismatches for one in checks)
    rejected = rows(played.folder, tracks.REJECTIONS, agent="buyer")
    assert [(one.symbol, one.reason, one.day) for one in rejected] == [("HALT", "stale-price", str(HALT[1]))]
    assert [one.stale for one in navs].count(("HALT",)) == 3
    flags = {one.flags for one in Store(played.folder).read(DECISIONS) if one.agent.id == "babbler"}
    assert flags == {("invalid-reply",)}
    said = "Splits or dividends of DIVI and SPLIT came into force while they were held."
    assert said in played.page("index.html")
    own = "".join(played.page(f"agents/buyer/{one.name}") for one in (played.site / "agents" / "buyer").glob("*.html"))
    assert "split of SPLIT: 180 units added" in own
    assert "dividend of DIVI: 250.00 in cash" in own
    assert "Returns are total returns" in played.page("rules.html")


def test_a_late_day_is_waited_for_and_taken_in_order(played):
    until = f"waiting for the data of {LATE} until {LATE + timedelta(days=2)} 21:30 UTC"
    late, following, then = (played.said[when] for when in (LATE, NEXT, "then"))
    assert (late[0], late[2], following[0], following[2], then[0]) == (0, "", 0, "", 0)
    assert (until in late[1], "nothing is due" in late[1]) == (True, False)
    assert f"{until}; the days after it are there and follow in order" in following[1]
    assert "live: 2 days done" in then[1]
    assert {one.state for one in Store(played.folder).read(tracks.NAVS)} == {"ok"}


def test_agents_are_shown_bars_on_todays_level_and_told_of_actions(played):
    def shown(day: date) -> Context:
        """Return the buyer's context on a day."""
        (found,) = [one for one in Store(played.folder).contexts().values()
                    if one.cutoff.date() == day and one.portfolio.positions.get("PLAIN")]  # fmt: skip
        return found

    context = shown(SPLIT_DAY)
    series = {one.instrument: one for one in context.series}["SPLIT"]
    before, now = bar_of("SPLIT", EVE), bar_of("SPLIT", SPLIT_DAY)
    assert series.close[-2:] == pytest.approx((before.close / 10, now.close), rel=1e-5)
    assert series.open[-1] == pytest.approx(now.open, rel=1e-5)
    assert series.volume[-2:] == (10_000.0, 10_000.0)
    assert {len(one) for one in (series.open, series.high, series.low, series.volume, series.close)} == {30}
    facts = {(one.instrument, one.field): one for one in context.facts}
    assert facts["SPLIT", "price"].value == series.close[-1]
    assert (facts["SPLIT", "split"].value, facts["SPLIT", "split"].as_of.date()) == (10.0, SPLIT_DAY)
    assert "SPLIT: split of 10 for 1" in context.prompt
    assert "your book now holds 200 units" in context.prompt
    later = {(one.instrument, one.field): one for one in shown(SEASON[7]).facts}["DIVI", "dividend"]
    assert (later.value, later.available_at.date()) == (pytest.approx(1.25), DIVIDEND_DAY)
    assert "250.00 was paid into its cash" in shown(DIVIDEND_DAY).prompt


def test_parts_that_the_season_has_no_data_for_are_not_applicable(played):
    scores = [one.score for one in rows(played.folder, tracks.GRADES, agent="buyer")]
    parts = {"claim_support", "momentum_use", "no_unsupported_claims", "no_contradiction"}
    assert all(set(one.grades.evidence) == parts for one in scores)
    plan = tracks.season_material(played.folder).scoring
    assert [part.name for part in plan.not_applicable] == ["valuation_use", "analyst_use", "sector_use"]
    assert {part.name: round(part.weight, 3) for part in plan.evidence}["claim_support"] == round(25 / 65 * 100, 3)
    with Ledger.open(played.folder.ledger) as ledger:
        (system, *_) = [message.text for message in ledger.call(scores[0].grades.parts[0].call_key).messages]
    assert "Not applicable in this season, whose material has no such field: Correct use of valuation" in system
    assert "analyst_use" not in system
    agent, rules = played.page("agents/buyer.html"), played.page("rules.html")
    assert ("Not applicable, as the season has no such data: " in agent, agent.count("Analyst")) == (True, 1)
    assert "not applicable: the season has no such data, and the 10 % of this part went to the others" in rules


def lone(path: Path, *arrived: date, live: bool = True, **rest: object) -> tuple[RunFolder, dict]:
    """A season of the buyer alone over the snapshots of some days, or over the last of them."""
    arrive(path / "market", *arrived, **rest)
    who, text = {**models(), "test/buyer": Scripted(wishes)}, file_of(path / "market", buyer="test/buyer")
    if not live:
        text = text.replace(f"'{path / 'market'}', live = true", f"'{path / 'market' / str(arrived[-1])}'")
    return begun(path / "run", text, who), who


def test_a_source_that_does_not_say_whether_prices_are_adjusted_is_refused_for_live_seasons(tmp_path, ran, refused):
    source, file, run = tmp_path / "market", tmp_path / "season.toml", tmp_path / "run"
    arrive(source, SEASON[0], columns=lambda bars: ({} for _ in bars))
    file.write_text(text := file_of(source, buyer="reference/momentum"))
    said = refused("season", "init", file, "--out", run)
    assert "files does not say whether prices are adjusted for splits and dividends (DIVI, HALT, PLAIN, SPLIT)" in said
    assert "adj_factor" in said
    assert not run.exists()
    replay = text.replace(f"'{source}', live = true", f"'{source / str(SEASON[0])}'")
    file.write_text(replay.replace(str(SEASON[-1]), str(SEASON[0])))
    ran("season", "init", file, "--out", run)


def test_a_move_that_no_action_explains_is_a_failing_check_with_its_day_and_instrument(tmp_path):
    """The data state that nothing is to be adjusted, which is wrong on the day of a split."""
    folder, who = lone(tmp_path, SEASON[4], columns=lambda bars: ({"adj_factor": 1.0} for _ in bars))
    tracks.step_season(folder, who, now=evening(SEASON[4]))
    checks = {one.kind: one for one in Store(folder).read(tracks.CHECKS)}
    bought = checks["fill"]  # of SPLIT something was bought on that day
    assert (bought.checks - bought.passed, len(bought.mismatches)) == (1, 1)
    before, now = bar_of("SPLIT", EVE), bar_of("SPLIT", SPLIT_DAY)
    said = f"price of SPLIT on {SPLIT_DAY}: {now.close:.10g} after {before.close:.10g} on {EVE}, "
    assert bought.mismatches[0].endswith(said + "explained by no action")
    assert checks["position"].passed == checks["position"].checks
    tracks.judge_season(folder, who)
    tracks.publish_season(folder, tmp_path / "site")
    for page, words in (
        ("index", f"1 move of a price is explained by no split or dividend of the market data (SPLIT {SPLIT_DAY})."),
        ("agents/buyer", f"The price of SPLIT went from {before.close:.10g} on {EVE}"),
        ("de/index", f"von keinem Split und keiner Dividende der Marktdaten erklärt (SPLIT {SPLIT_DAY})."),
        ("de/agents/buyer", "Der Kurs von SPLIT ging von"),
    ):
        assert words in Played(folder, tmp_path / "site", {}).page(f"{page}.html")


def test_a_day_whose_data_do_not_come_in_time_is_lost_loudly_and_overdue_data_are_an_error(tmp_path):
    folder, who = lone(tmp_path, SEASON[3], without=SEASON[2])
    late = datetime.combine(SEASON[2], time(21, 30), UTC) + timedelta(hours=48)
    waiting = tracks.step_season(folder, who, now=late - timedelta(minutes=1))
    assert (waiting.done, waiting.overdue) == (tuple(SEASON[:2]), ())
    assert f"waiting for the data of {SEASON[2]}" in waiting.lines[-1]
    done = tracks.step_season(folder, who, now=late)
    assert done.done == tuple(SEASON[2:4])
    assert done.overdue == (
        f"{SEASON[2]}: its data came too late; the day is recorded without decisions, and orders were postponed",
    )
    assert [one.state for one in Store(folder).read(tracks.NAVS)] == ["ok", "ok", "no data", "ok"]
    arrive(tmp_path / "later", *SEASON[:3])
    file, over = tmp_path / "season.toml", tmp_path / "over"
    file.write_text(file_of(tmp_path / "later", holder="reference/equal-weight"))
    assert main(["season", "init", str(file), "--out", str(over)]) == 0
    for done in (True, False):  # however long ago they were, days whose data are there are done
        status, out, err = stepped(over, evening(SEASON[10]))
        assert (status, "3 days done" in out, "nothing is due" in out) == (1, done, False)
        assert f"{SEASON[3]}: its data are overdue since {SEASON[3] + timedelta(days=2)} 21:30 UTC" in err
        assert f"the data end on {SEASON[2]}" in err
    file.write_text(file.read_text().replace("[calendar]", "[calendar]\nlate_after_h = 700"))
    assert main(["season", "init", str(file), "--out", str(tmp_path / "slow")]) == 0
    assert stepped(tmp_path / "slow", evening(SEASON[10]))[0] == 0
