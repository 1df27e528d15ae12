"""Seasons day by day: the same bytes however often they were stopped, and errors on record."""

# ruff: noqa: I001

from __future__ import annotations

import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from agent_servers import free_port
from season_runs import (
    IDS, NOW, Scripted, begun, market, orders, rows, season_text, small, stored, table_bytes, until, without,
)  # fmt: skip

from assaymark.agents import season_message
from assaymark.claims import english
from assaymark.cli import main, models
from assaymark.engine.providers.http_agent import PythonAgent
from assaymark.errors import InputError, LedgerError, ModelError, PlanError
from assaymark.importers import CASH, EQUAL_WEIGHT, NEXT, WHOLE
from assaymark.market import History, synthetic_history
from assaymark.portfolio import Bar, Account, StatedFill, StatedStep, reconcile
from assaymark.prompting import fence, material_blocks
from assaymark.records import Context, canonical_json, content_id
from assaymark.workflow import CONTEXTS, DECISIONS, OUTCOMES, RunFolder, Store, content_digest, watched
from assaymark.workflow import tracks

A, B = IDS[0], IDS[1]
TABLES = ("contexts", "decisions", "fills", "rejections", "navs", "outcomes", "baselines", "checks")
DAYS = [f"2024-03-0{day}" for day in (1, 4, 5, 6, 7, 8)]
COST = 0.001


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> RunFolder:
    """A replay of six days of the embedded market that nobody disturbed. Not to be changed."""
    folder = begun(tmp_path_factory.mktemp("whole") / "run", season_text(last=DAYS[-1]), models())
    assert [str(day) for day in tracks.run_season(folder, models(), now=NOW).done] == DAYS
    return folder


def acting(**by_day: object) -> Callable[[str], object]:
    """Answers of some days of March, and no orders on others."""
    return lambda day: by_day.get(f"d{int(day[-2:])}", orders())


def scripted(path: Path, answers, **changes) -> tuple[RunFolder, Scripted, dict]:
    """A season of six days of the small market in which agent one is scripted and agent two holds."""
    one = Scripted(answers)
    who = {"test/one": one, "test/two": Scripted(lambda _: orders())}
    named = {"model": "test/one", "other": "test/two", "last": DAYS[-1], "universe": IDS}
    return small(path, who, **named | changes), one, who


def ran(path: Path, answers, **changes) -> tuple[RunFolder, Scripted, dict]:
    folder, one, who = scripted(path, answers, **changes)
    tracks.run_season(folder, who, now=NOW)
    return folder, one, who


class Stop(Exception):
    """A planted kill."""


def stopping(number: int):
    def progress(what: str, done: int, _total: int) -> None:
        if what == "days" and done == number:
            raise Stop

    return progress


def test_a_season_replayed_twice_or_stopped_between_days_is_byte_equal(whole, tmp_path):
    wanted = table_bytes(whole)
    assert set(wanted) == {f"{name}.parquet" for name in TABLES}
    stopped, steps = (begun(tmp_path / name, season_text(last=DAYS[-1]), models()) for name in ("stopped", "steps"))
    for days in (1, 2, 0):
        with pytest.raises(Stop), watched(stopping(days)):
            tracks.run_season(stopped, models(), now=NOW)
    tracks.run_season(stopped, models(), now=NOW)
    for day in DAYS:
        assert [str(one) for one in tracks.step_season(steps, models(), now=NOW).done] == [day]
    assert table_bytes(stopped) == table_bytes(steps) == wanted
    assert tracks.step_season(steps, models(), now=NOW).done == ()
    assert tracks.read_journal(steps)[1] == tracks.read_journal(whole)[1]


def test_a_season_killed_while_it_runs_goes_on(whole, tmp_path):
    folder = begun(tmp_path / "killed", season_text(last=DAYS[-1]), models())
    command = [sys.executable, "-m", "assaymark", "season", "run", str(folder.path)]
    started = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    journal, until_ = tracks.journal_path(folder), time.monotonic() + 60
    while time.monotonic() < until_ and started.poll() is None:
        if journal.is_file() and journal.stat().st_size > 0:
            break
        time.sleep(0.005)
    os.kill(started.pid, signal.SIGKILL)
    started.wait()
    with journal.open("ab") as half:
        half.write(b"0123456789\t{")  # what a kill can leave of a line
    assert main(["season", "run", str(folder.path)]) == 0
    assert table_bytes(folder) == table_bytes(whole)


def test_a_journal_is_done_once_makes_lost_tables_again_and_is_never_read_damaged(tmp_path):
    folder, _, who = scripted(tmp_path, acting(d1=orders((A, "buy", 1.0))), last="2024-03-06")
    tracks.step_season(folder, who, now=NOW, day=date(2024, 3, 5))
    path = tracks.journal_path(folder)
    before = table_bytes(folder), path.read_bytes()
    again = tracks.step_season(folder, who, now=NOW, day=date(2024, 3, 5))
    assert (again.done, again.lines[0]) == ((), "nothing is due after 2024-03-05")
    assert (table_bytes(folder), path.read_bytes()) == before
    tracks.run_season(folder, who, now=NOW)
    wanted = table_bytes(folder)
    for name in ("navs", "decisions", "checks"):
        (folder.tables / f"{name}.parquet").unlink()
        tracks.run_season(folder, who, now=NOW)
        assert table_bytes(folder) == wanted
    (folder.tables / "navs.parquet").unlink()
    busy = pytest.raises(LedgerError, match="another step of this season is running; nothing was")
    with tracks.DayJournal.open(folder), busy:
        tracks.step_season(folder, who, now=NOW)
    tracks.run_season(folder, who, now=NOW)
    assert table_bytes(folder) == wanted
    raw = path.read_bytes()
    place = raw.index(b"cash") + 8
    for damaged in (raw[:place] + bytes([raw[place] ^ 1]) + raw[place + 1 :], b"\n".join(raw.split(b"\n")[1:])):
        path.write_bytes(damaged)
        with pytest.raises(LedgerError, match="damaged at line 1"):
            tracks.run_season(folder, who, now=NOW)


def test_contexts_and_prompts_are_those_of_the_slow_way(whole):
    store = Store(whole)
    contexts = store.contexts()  # each is held against its name
    assert len(contexts) == 11  # on the first day both see the same
    assert store.content(CONTEXTS) == content_digest(CONTEXTS.to_arrow(contexts.values()))
    facts = {row["context_id"]: row["facts"] for row in store.columns(CONTEXTS, "context_id", "facts")}
    assert facts == {name: len(one.facts) for name, one in contexts.items()}
    locked = tracks.open_season(whole)
    day = locked.data.clock(locked.season).day(date(2024, 3, 8))
    shared = tracks.day_material(locked.season, day, {A})
    prompt = tracks.agent_prompt(locked.season, "one", ['a note with "facts":[],"instruments":[], in it\tand a tab'])
    context = tracks.agent_context(shared, Account(10.5, {A: 3.0}), 99.0, "USD", prompt)
    assert tracks.context_json(context, shared.facts, shared.series, shared.instruments) == canonical_json(context)
    blocks = tracks.agent_sections(shared, context)
    assert [one.text for one in blocks] == [fence(*block) for block in material_blocks(context)]
    assert season_message(blocks).text.startswith("MATERIAL.")
    assert {content_id(one) for one in contexts.values() if one.cutoff == day.moment} <= contexts.keys()


def test_contexts_hold_bars_sectors_and_filings_as_they_were_known_and_nothing_of_later(whole):
    history, store = synthetic_history(0), Store(whole)
    contexts = store.contexts()
    for decision in store.read(DECISIONS):
        context = contexts[decision.context_id]
        assert context.cutoff < decision.decided_at
        assert (context.completeness, decision.call.seconds) == ("complete", None)  # times stand apart
        assert all(one.available_at <= context.cutoff for one in context.facts)
        assert all(max(one.times) <= context.cutoff for one in context.series)
        assert {one.id for one in context.instruments} == {one.instrument for one in context.series}
    assert all(one.seconds is not None and one.seconds >= 0 for one in store.read(tracks.TIMES))
    for context in contexts.values():
        view, facts = history.as_of(context.cutoff), {}
        listed = {one.id: one for one in view.instruments}
        for one in context.facts:
            facts.setdefault((one.instrument, one.source), []).append(one)
        for series in context.series:
            assert {len(series.open), len(series.high), len(series.low), len(series.volume)} == {len(series.close)}
            assert [one.value for one in facts[series.instrument, "close"]] == [series.close[-1]]
            assert [one.value for one in facts[series.instrument, "listing"]] == [listed[series.instrument].sub]
            known = [one for one in view.fundamentals(series.instrument) if one.filed_at <= context.cutoff]
            shown = {(one.field, one.id.rsplit(".", 1)[1]): one for one in facts.get((series.instrument, "filing"), [])}
            assert len(shown) == min(len(known), 8)
            for filed in known[-8:]:
                fact = shown[filed.field, filed.period]
                assert (fact.value, fact.available_at, fact.unit) == (filed.value, filed.filed_at, "per share")
                assert fact.as_of < fact.available_at <= context.cutoff
    assert any(one.source == "filing" for context in contexts.values() for one in context.facts)


def test_orders_fill_at_the_next_open_or_close_and_never_on_their_day(tmp_path):
    for fill, field in (("next_open", "open"), ("close", "close")):
        rules = f'fill = "{fill}"\ncost_bps = 20.0'
        folder, *_ = ran(tmp_path / fill, acting(d1=orders((A, "buy", 10.0))), rules=rules)
        (found,) = Store(folder).read(tracks.FILLS)
        assert (found.day, found.record_id) == ("2024-03-04", "spring-2024-03-01-one")
        assert found.price == priced("2024-03-04", field)[A]
        assert found.cost == pytest.approx(10.0 * found.price * 0.002)


def test_orders_that_break_a_rule_are_kept_and_their_agent_is_told(tmp_path):
    wrong = orders(
        (A, "buy", 1e9), ("NOBODY", "buy", 1.0), (A, "short", 1.0), (B, "sell", 1.0), (A, "buy", 0.5),
        (A, "buy", -1.0), (B, "buy", 1.0), (B, "buy", 1.0),
    )  # fmt: skip
    folder, one, _ = ran(tmp_path, acting(d1=wrong), rules="fractional = false\nmax_orders = 5")
    found = Store(folder).read(tracks.REJECTIONS)
    assert sorted(each.reason for each in found) == [
        "beyond-cash", "beyond-count", "fraction", "not-held", "not-taken", "not-taken", "short-forbidden",
    ]  # fmt: skip
    assert {each.day for each in found} == {"2024-03-04"}
    for words in ("cash is 100,000.00", "'NOBODY' is not offered", "short positions are not allowed",
                  "nothing of it is held", "multiples of 1", "above 0", "5 a day are allowed"):  # fmt: skip
        assert words in one.prompts[1]
    assert "not carried out" not in one.prompts[0] + one.prompts[2]
    assert len(Store(folder).read(tracks.FILLS)) == 1
    assert "rejected-order" in Store(folder).read(DECISIONS)[0].flags


def test_a_price_that_is_old_is_not_traded_at(tmp_path):
    answers = acting(d1=orders((A, "buy", 10.0)), d4=orders((A, "sell", 10.0), (B, "buy", 1.0)))
    folder, one, _ = ran(tmp_path, answers, history=without(market(), "2024-03-05", A, B))
    found = {each.symbol: each.reason for each in Store(folder).read(tracks.REJECTIONS)}
    assert found == {A: "stale-price", B: "no-price"}
    assert "days old" in one.prompts[2]
    navs = {each.day: each for each in rows(folder, tracks.NAVS, agent="one")}
    assert (navs["2024-03-05"].stale, navs["2024-03-06"].stale) == ((A,), ())
    assert navs["2024-03-05"].nav == navs["2024-03-04"].nav
    shown = [c for c in Store(folder).contexts().values() if c.cutoff.date() == date(2024, 3, 5)]
    # the same material for both agents
    assert {(A in {i.id for i in c.instruments}, B in {i.id for i in c.instruments}) for c in shown} == {(True, False)}


def test_a_day_without_data_is_written_down_and_orders_wait(tmp_path):
    history = without(market(), "2024-03-05")
    folder, one, who = scripted(tmp_path, acting(d4=orders((A, "buy", 10.0))), history=history)
    done = tracks.step_season(folder, who, now=NOW, day=date(2024, 3, 5))
    assert "without data: 2024-03-05" in done.lines[0]
    tracks.run_season(folder, who, now=NOW)  # the order waits from one run to the next
    assert {each.day for each in rows(folder, tracks.NAVS, state="no data")} == {"2024-03-05"}
    assert "2024-03-05" not in one.asked
    (fill,) = Store(folder).read(tracks.FILLS)
    assert (fill.day, fill.record_id) == ("2024-03-06", "spring-2024-03-04-one")


def test_an_instrument_that_ends_is_paid_out_at_its_last_close(tmp_path):
    history = market()
    ends = tuple(replace(one, delisted=date(2024, 3, 5)) if one.id == A else one for one in history.listings)
    history = replace(history, listings=ends)
    for day in (6, 7, 8, 11, 12, 13, 14):
        history = without(history, f"2024-03-{day:02d}", A)
    folder, *_ = ran(tmp_path, acting(d1=orders((A, "buy", 10.0))), history=history)
    (paid,) = rows(folder, tracks.FILLS, kind=tracks.DELISTED)
    last = priced("2024-03-05", "close")[A]
    assert (paid.day, paid.quantity, paid.cost, paid.price) == ("2024-03-06", -10.0, 0.0, last)
    navs = {one.day: one for one in rows(folder, tracks.NAVS, agent="one")}
    assert navs["2024-03-06"].positions == {}
    assert navs["2024-03-06"].nav == pytest.approx(navs["2024-03-05"].nav)
    steps = {one.day: one for one in tracks.season_material(folder).steps["one"]}
    assert ([one.symbol for one in steps["2024-03-05"].fills], steps["2024-03-05"].book.positions) == ([A], {})
    assert all(one.passed == one.checks for one in Store(folder).read(tracks.CHECKS))


@pytest.mark.parametrize(
    ("answer", "flag", "why"),
    [
        (ModelError("it broke", retryable=False), "no-answer", "it broke"),
        ("I would rather not use JSON.", "invalid-reply", "not one JSON object"),
        ('{"orders": "all"}', "invalid-reply", "keys are missing: 'rationale'"),
    ],
)  # fmt: skip
def test_an_agent_that_fails_every_day_holds_and_that_is_seen(tmp_path, answer, flag, why):
    folder, one, who = scripted(tmp_path, lambda _: answer)
    done = tracks.run_season(folder, who, now=NOW)
    assert done.lines[-1].startswith(f"one gave no usable reply on 6 of 6 days, and held (last: {why}")
    mine = [each for each in Store(folder).read(DECISIONS) if each.agent.id == "one"]
    assert [each.flags for each in mine] == [(flag,)] * 6
    assert all(each.missing for each in mine)
    assert {each.nav for each in Store(folder).read(tracks.NAVS)} == {100_000.0}
    assert "your last reply could not be used" in one.prompts[1]
    tracks.run_season(folder, who, now=NOW)
    assert one.asked == DAYS


def test_a_call_that_was_answered_is_not_made_again_after_a_kill(tmp_path):
    folder, one, who = scripted(tmp_path, lambda _: orders((A, "buy", 1.0)))
    with pytest.raises(Stop), watched(stopping(3)):
        tracks.run_season(folder, who, now=NOW)
    tracks.journal_path(folder).unlink()  # as if nothing of it had reached the disk
    tracks.run_season(folder, who, now=NOW)
    assert one.asked == DAYS


def test_replicates_are_asked_and_only_the_first_trades(tmp_path):
    count: list[str] = []

    def answers(day: str) -> str:
        count.append(day)
        return orders((A, "buy", float(count.count(day))))

    folder, *_ = ran(tmp_path, answers, head="replicates = 3")
    mine = [each for each in Store(folder).read(DECISIONS) if each.agent.id == "one"]
    assert sorted(each.replicate for each in mine) == [1] * 6 + [2] * 6 + [3] * 6
    assert (len({each.record_id for each in mine}), len({each.context_id for each in mine})) == (18, 6)
    fills = Store(folder).read(tracks.FILLS)
    first = {each.record_id: each.actions[0].quantity for each in mine if each.replicate == 1}
    assert [each.quantity for each in fills] == [first[each.record_id] for each in fills]
    assert len(fills) == 5


def test_live_is_the_same_code_over_a_source_that_grows(tmp_path):
    answers, source = (lambda day: orders((A, "buy", float(day[-2:])))), tmp_path / "source"
    replay, _, who = ran(tmp_path / "replay", answers)
    stored(source / "first", until(market(), "2024-03-05"))
    live, *_ = scripted(tmp_path / "live", answers, source=source, live=True)
    early = datetime(2024, 3, 5, 21, 0, tzinfo=UTC)
    for after, days in ((0, (1, 4)), (1, (5,)), (48, ())):
        done = tracks.step_season(live, who, now=early + timedelta(hours=after))
        assert [day.day for day in done.done] == list(days)
    with pytest.raises(InputError, match="2024-03-06 is ahead of the market, which ends on 2024-03-05"):
        tracks.step_season(live, who, now=NOW, day=date(2024, 3, 6))
    stored(source / "second", market(), "grown")
    with pytest.raises(InputError, match="is not over"):
        tracks.step_season(live, who, now=datetime(2024, 3, 7, 21, 0, tzinfo=UTC), day=date(2024, 3, 7))
    with pytest.raises(InputError, match="a time needs a zone"):
        tracks.step_season(live, who, now=datetime(2024, 3, 5))
    tracks.step_season(live, who, now=datetime(2024, 3, 30, tzinfo=UTC))
    assert table_bytes(live) == table_bytes(replay)
    assert len({one.record["market"] for one in tracks.read_journal(live)[0]}) == 2


def test_the_commands_lock_step_and_run_and_a_dry_run_writes_nothing(whole, tmp_path, ran, refused):
    file, folder = tmp_path / "season.toml", tmp_path / "run"
    file.write_text(season_text(last="2024-03-06"))

    assert "2 agents, 8 instruments, 2024-03-01 to 2024-03-06" in ran("season", "init", file, "--out", folder)
    before = sorted(folder.rglob("*"))
    out = ran("season", "run", folder, "--dry-run")
    for words in ("in all 8 calls, 0 answered already; the rest: costs nothing",  # two agents on four days
                  "4 days: what agents hold later is not known", "dry run: nothing was sent"):  # fmt: skip
        assert words in out
    assert sorted(folder.rglob("*")) == before
    assert "2024-03-01 done" in ran("season", "step", folder)
    rest = json.loads(ran("season", "run", folder, "--dry-run", "--json"))["models"]
    assert sum(one["stages"]["agents"] for one in rest) == 6
    assert "2 days done" in ran("season", "step", folder, "--day", "2024-03-05")
    assert "2024-03-06 done" in ran("season", "run", folder)
    for day, words in ((date(2024, 3, 4), "is before 2024-03-08"), (date(2024, 4, 1), "is outside the season")):
        with pytest.raises(InputError, match=words):
            tracks.step_season(whole, models(), now=NOW, day=day)
    said = refused("season", "step", whole.path, "--day", "tomorrow")
    assert said == "assaymark: --day: must be a day such as 2024-03-01 (got 'tomorrow')\n"
    assert "contains no season; make one with" in refused("season", "run", tmp_path / "nowhere")
    assert f"assaymark season init {file} --out FOLDER" in refused("season", "run", file)
    file.write_text("name = 3")
    refused("season", "init", file, "--out", tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_an_agent_outside_is_sent_the_context_itself_and_a_market_that_changed_is_refused(tmp_path):
    seen: list[Context] = []

    def decide(context: Context) -> dict:
        seen.append(context)
        return {"orders": [{"instrument": A, "side": "buy", "quantity": 1.0}], "rationale": "It is there."}

    locked, _, who = scripted(tmp_path, acting())
    who["python/mine:decide"] = PythonAgent(decide)
    text = locked.plan.read_text().replace("test/one", "python/mine:decide")
    folder = begun(tmp_path / "outside", text, who)
    tracks.run_season(folder, who, now=NOW)
    assert {content_id(one) for one in seen} <= Store(folder).contexts().keys()
    assert len(Store(folder).read(tracks.FILLS)) == 5
    assert seen[1].portfolio.positions == {A: 1.0}
    shutil.rmtree(tmp_path / "market")
    stored(tmp_path / "market", without(market(), "2024-03-05", A))
    with pytest.raises(PlanError, match="the market changed after the lock"):
        tracks.run_season(locked, who, now=NOW)
    assert not tracks.journal_path(locked).exists()


BROKE = ModelError("no money left", retryable=False, quota=True)


def test_a_provider_without_money_stops_a_replay_without_loss_and_a_live_season_goes_on(tmp_path):
    """A replay can wait; a day of a live season does not come again."""
    poor = [True]
    folder, one, who = scripted(tmp_path, lambda day: BROKE if day == "2024-03-06" and poor else orders())
    with pytest.raises(ModelError, match="no money left"):
        tracks.run_season(folder, who, now=NOW)
    assert [nav.day for nav in Store(folder).read(tracks.NAVS)][-1] == "2024-03-05"
    poor.clear()
    assert tracks.run_season(folder, who, now=NOW).done[0] == date(2024, 3, 6)
    assert not any(each.flags for each in Store(folder).read(DECISIONS))
    assert one.asked.count("2024-03-05") == 1
    who["poor/one"] = Scripted(lambda _: BROKE)
    source = {"source": tmp_path / "market", "live": True}
    live = small(tmp_path / "live", who, model="poor/one", other="test/two", last="2024-03-05", universe=IDS, **source)
    done = tracks.run_season(live, who, now=NOW)
    assert (len(done.done), done.absent) == (3, {"one": 3})
    assert done.lines[-1].endswith("(last: poor: no money left)")
    mine = [one.flags for one in Store(live).read(DECISIONS) if one.agent.id == "one"]
    assert mine == [("no-answer", "absent")] * 3


def test_an_absent_agent_is_a_problem_of_the_lock_unless_it_is_allowed_to_and_never_stops_the_day(tmp_path, capsys):
    """Nobody answers at the address of agent one."""
    folder, path = RunFolder(tmp_path / "run"), tmp_path / "season.toml"
    head = f"universe = {IDS}\nmarket = {{source = '{stored(tmp_path / 'market', market())}'}}\n"
    path.write_text(season_text(head=head, model=f"http/127.0.0.1:{free_port()}/decide", last="2024-03-05"))

    def told(*words: str, status: int = 0) -> str:
        assert main(["season", *words]) == status
        return "".join(capsys.readouterr())

    init = ("init", str(path), "--out", str(folder.path))
    said = told(*init, status=1)
    assert "agents.one.model: nothing answers at http://127.0.0.1:" in said
    assert "--allow-absent one" in said
    assert not folder.path.exists()
    said = told(*init, "--allow-absent", "nobody", status=1)
    assert "2 problems" in said
    assert "--allow-absent: unknown agent 'nobody'" in said
    assert "no answer came from: one" in told(*init, "--allow-absent", "one")
    told(*init)  # locked: nothing is looked at again
    out = told("step", str(folder.path), status=3)
    assert "2024-03-01 done" in out
    assert "one was absent on 1 of 1 days, and held (last: nothing answers at http://127.0.0.1:" in out
    assert json.loads(told("run", str(folder.path), "--json", status=3))["absent"] == {"one": 2}
    told("run", str(folder.path))  # nothing was due
    for name, flags in {"one": ("no-answer", "absent"), "two": ()}.items():
        mine = [one for one in Store(folder).read(DECISIONS) if one.agent.id == name]
        assert [one.flags for one in mine] == [flags] * 3
        assert name == "two" or all(one.missing[0].startswith("nothing answers at") for one in mine)
    assert len(Store(folder).read(tracks.NAVS)) == 6
    graded = SimpleNamespace(grades=SimpleNamespace(state="ok", parts=()))
    grade = SimpleNamespace(last="2024-03-05", judge="j", scope="period", score=graded)
    notes = [english().render(one) for one in tracks.season_notes(tracks.season_material(folder), [grade])]
    assert any(one.startswith("one was absent on 3 of 3 days and held its portfolio. It could not be") for one in notes)
    # A day on which nobody is there is not done.
    other = RunFolder(tmp_path / "nobody")
    text = path.read_text().replace("reference/equal-weight", f"http/127.0.0.1:{free_port()}/decide")
    tracks.lock_season(other, text, "season.toml", models(), now=NOW, allow_absent=("one", "two"))
    with pytest.raises(ModelError, match="no agent could be called on 2024-03-01"):
        tracks.run_season(other, models(), now=NOW)
    assert tracks.read_journal(other)[0] == []


def test_what_an_agent_raises_on_many_days_is_said_once(tmp_path, monkeypatch, capsys):
    (tmp_path / "season_agent_for_this_test.py").write_text("def decide(context):\n    return context.closes['SPY']\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    file, folder = tmp_path / "season.toml", tmp_path / "run"
    file.write_text(season_text(last="2024-03-06", model="python/season_agent_for_this_test:decide"))
    assert main(["season", "init", str(file), "--out", str(folder)]) == 0
    assert main(["season", "run", str(folder), "--strict-agents"]) == 1
    err = capsys.readouterr().err
    assert "season_agent_for_this_test.py, line 2); stopped here" in err
    assert "recorded as no answer" not in err
    assert main(["season", "run", str(folder)]) == 0
    (raised,) = [line for line in capsys.readouterr().err.splitlines() if " raised " in line]
    assert "raised AttributeError: 'Context' object has no attribute 'closes' (" in raised
    assert raised.endswith("line 2), 4 times; recorded as no answer")


# What follows from a season: books, baselines, outcomes and checks, each against the market it was made from


def played(path: Path, history: History | None = None, universe: object = 6, **changes) -> RunFolder:
    folder = small(path, models(), history=history, universe=universe, **changes)
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
    """Return the daily value of buying these shares at the second day's opens, and holding them."""
    opens = priced(days[1], "open")
    units = {name: 100_000.0 * share / (1 + COST) / opens[name] for name, share in shares.items()}
    worth = [math.fsum(held * priced(day, "close")[name] for name, held in units.items()) for day in days[1:]]
    return [100_000.0, *worth]


def test_books_follow_from_fills_and_bars(season):
    for agent in ("one", "two"):
        steps = []
        for nav in rows(season, tracks.NAVS, agent=agent):
            columns = [priced(nav.day, field) for field in ("open", "high", "low", "close")]
            bars = {name: Bar(*(column[name] for column in columns)) for name in IDS}
            fills = tuple(
                StatedFill(symbol=one.symbol, quantity=one.quantity, price=one.price, cost=one.cost)
                for one in rows(season, tracks.FILLS, agent=agent, day=nav.day)
            )
            book = Account(nav.cash, nav.positions)
            steps.append(StatedStep(name=nav.day, fills=fills, book=book, bars=bars))
            assert nav.nav == pytest.approx(book.nav(columns[-1]), rel=1e-12)
        assert reconcile(Account(100_000.0), steps).data_reliability == 100.0
        assert sum(len(one.fills) for one in steps) > 3


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
    folder = played(tmp_path, last="2024-03-05", universe=members["EQ"][:1])
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


@pytest.mark.parametrize("what", ["cash", "position", "fill"])
def test_every_check_of_an_untouched_season_reconciles_and_an_altered_book_is_found(season, what):
    checks = Store(season).read(tracks.CHECKS)
    assert {(one.agent, one.kind) for one in checks} >= {("one", "cash"), ("one", "fill"), ("two", "position")}
    assert sum(one.checks for one in checks if one.kind == "cash") == 2 * 11
    assert all(one.passed == one.checks and not one.mismatches for one in checks)
    locked, material = tracks.open_season(season), tracks.season_material(season)
    clock = locked.data.clock(locked.season)
    second, third = (clock.day(day) for day in clock.due(None)[1:3])
    marks = {name: (quote.close, str(second.date)) for name, quote in second.quotes.items()}
    decided = next(one.decision for one in material.steps["one"] if one.day == str(second.date))
    before = Account(material.navs["one"][1].cash, material.navs["one"][1].positions)
    last = None if what == "position" else decided
    day = tracks.settle_account(locked.season, "one", before, last, third, marks)
    assert not tracks.audit_day(locked.season, before, day, third, "r")["mismatches"]
    nav, held = day.nav, min(day.nav.positions)
    day = {
        "cash": replace(day, nav=replace(nav, cash=nav.cash + 5)),
        "position": replace(day, nav=replace(nav, positions={**nav.positions, held: nav.positions[held] + 1})),
        "fill": replace(day, fills=tuple(replace(one, price=one.price * 1.01) for one in day.fills)),
    }[what]
    found = tracks.audit_day(locked.season, before, day, third, "r")
    assert what in {kind for kind, _ in found["mismatches"]}
    assert found["counts"][what][1] < found["counts"][what][0]


def test_days_without_data_change_no_baseline(tmp_path):
    folder = played(tmp_path, without(without(market(), "2024-03-01"), "2024-03-05"), last="2024-03-07")
    found = {one.day: one for one in rows(folder, tracks.BASELINES, agent=EQUAL_WEIGHT)}
    assert [(one.state, one.nav == 100_000.0) for _, one in sorted(found.items())] == [
        ("no data", True), ("ok", True), ("no data", True), ("ok", False), ("ok", False)
    ]  # fmt: skip
    assert set(found["2024-03-06"].positions) == set(IDS)
