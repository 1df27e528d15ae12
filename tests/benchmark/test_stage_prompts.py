"""Prompts of the pipeline: complete, told the right rules, and blind to what came later."""

from __future__ import annotations

import dataclasses
import json
import re
from datetime import UTC, datetime

import numpy as np
import pytest
from bench_worlds import AGENT, world

from assaymark.benchmark import PROFILES
from assaymark.benchmark.episode import EpisodeRules, EpisodeState, MarketWindow
from assaymark.benchmark.market import BenchMarket
from assaymark.benchmark.replies import ASKED, COLUMNS, reply_schema, stage_template, stage_texts
from assaymark.engine import CallSpec, Reply, Text
from assaymark.prompting import cells, sections


def calls_of(episode: EpisodeState, count: int = 3) -> list[CallSpec]:
    found = []
    for _ in range(count):
        call = episode.next_call()
        assert call is not None
        found.append(call)
        episode.take(Reply(text=episode.true_reply(), model="m"))
    return found


def user(call: CallSpec) -> str:
    return call.messages[1].text


def tables(text: str) -> dict[str, list[list[str]]]:
    return {one.label: [cells(line) for line in one.content.split("\n")] for one in sections(text)}


def test_the_table_of_assets_is_complete():
    place = world("normal", "monthly", 81)
    first, _, third = calls_of(EpisodeState(AGENT, PROFILES["balanced"], place))
    for call in (first, third):
        rows = tables(user(call))["assets"]
        assert tuple(rows[0]) == COLUMNS
        assert [row[0] for row in rows[1:]] == list(place.known(place.decisions[0]).tickers)
        assert len(rows) == 82
        assert all(len(row) == len(COLUMNS) for row in rows)
        assert "nan" not in user(call).lower().split()
    lines = {one.ticker: one for one in place.known(place.decisions[0]).lines}
    for row in tables(user(first))["assets"][1:]:
        line = lines[row[0]]
        assert float(row[2]) == pytest.approx(line.close, rel=1e-5)
        assert float(row[5]) == pytest.approx(100 * line.volatility, abs=0.006)
        assert row[-1] == line.regime
        assert (row[8] == "n/a") == (line.beta is None)


def test_the_twelve_series_and_the_correlations_are_in_it():
    place = world("normal", "monthly", 81)
    found = tables(user(calls_of(EpisodeState(AGENT, PROFILES["balanced"], place), 1)[0]))
    assert len(found["macro"]) == 13
    assert [row[0] for row in found["correlations"][1:]] == found["correlations"][0][5:]
    matrix = np.array([[float(cell) for cell in row[5:]] for row in found["correlations"][1:]])
    assert matrix == pytest.approx(place.known(place.decisions[0]).between, abs=0.006)
    assert [row[4] for row in found["correlations"][2:]] == [row[5] for row in found["correlations"][2:]]


def test_only_the_stage_that_must_obey_a_profile_is_told_it():
    for profile in PROFILES.values():
        first, second, third = map(user, calls_of(EpisodeState(AGENT, profile, world())))
        assert profile.text in third
        assert f"{100 * profile.equity_cap:g}%" in third
        assert "profile" not in first + second
        assert "PORTFOLIO" not in first + second


def test_the_portfolio_is_shown_as_it_is():
    place = world()
    episode = EpisodeState(AGENT, PROFILES["balanced"], place)
    calls_of(episode, 3)
    held = dict(tables(user(calls_of(episode, 3)[2]))["portfolio"])
    result_nav = float(held["net_asset_value"]) / 100_000
    weights = [float(value) for name, value in held.items() if name in place.tickers]
    assert sum(weights) == pytest.approx(1, abs=0.002)
    assert result_nav != 1
    assert float(held["drawdown_from_peak_pct"]) <= 0


@pytest.mark.parametrize(("convention", "threshold"), [("paper", "0.2"), ("reference", "0.15")])
def test_the_threshold_that_is_said(convention, threshold):
    episode = EpisodeState(AGENT, PROFILES["balanced"], world(), EpisodeRules(convention=convention))
    first, second, _ = map(user, calls_of(episode))
    assert f"buy if its view is above {threshold}, sell if it is below -{threshold}," in second
    assert ("over the next 63 trading days" in first) == (convention == "paper")


def test_earlier_answers_stand_in_the_next_prompt():
    place = world()
    episode = EpisodeState(AGENT, PROFILES["balanced"], place)
    episode.next_call()
    tickers = place.known(place.decisions[0]).tickers
    episode.take(Reply(text=f"{tickers[0]}: 0.2004\n{tickers[1]}: -0.7", model="m"))
    shown = dict(tables(user(episode.next_call()))["views"][1:])
    assert [shown[name] for name in tickers[:3]] == ["0.2004", "-0.7", "0"]
    episode.take(Reply(text=f"{tickers[0]}: buy", model="m"))
    rows = tables(user(episode.next_call()))["signals"][1:]
    assert rows[:3] == [[tickers[0], "0.2004", "buy"], [tickers[1], "-0.7", "hold"], [tickers[2], "0", "hold"]]


def test_nothing_of_a_prompt_is_unfilled_and_its_parts_are_named():
    for call in calls_of(EpisodeState(AGENT, PROFILES["balanced"], world()), 12):
        assert not re.search(r"\$\{?[a-z]", call.messages[0].text + user(call))
        assert call.template == stage_template().sha256 == Text.of(stage_template().text).sha256
        assert (call.seed, call.temperature) == (3, 0.0)
        assert call.schema is not None
        assert user(call).count("TASK S") == 1


def test_schemas_are_strict_and_hashed():
    for stage in ASKED:
        schema = reply_schema(stage)
        assert schema["additionalProperties"] is False
        assert schema["required"] == list(schema["properties"])
        assert json.loads(stage_texts()[f"schema of {stage}"]) == schema


def test_what_becomes_known_later_changes_no_prompt_up_to_then():
    """Two markets that are alike up to the close of the second decision: so are the prompts of an episode."""
    place = world()
    history, second = place.market.history, place.decisions[1]
    close = int(datetime(second.year, second.month, second.day, 21, tzinfo=UTC).timestamp())
    rng = np.random.default_rng(3)
    factor = np.where(history.known_at > close, rng.uniform(0.5, 1.5, history.known_at.shape), 1.0)
    other = dataclasses.replace(
        history,
        bars={name: values * factor for name, values in history.bars.items()},
        macro=tuple(
            dataclasses.replace(one, values=np.where(one.released > close, one.values + 1, one.values))
            for one in history.macro
        ),
        news=tuple(
            dataclasses.replace(one, text="changed") if one.published_at.timestamp() > close else one
            for one in history.news
        ),
    )
    changed = MarketWindow(BenchMarket(other, place.market.universe), place.spec, place.pace)
    tickers = place.tickers
    said = [f"{tickers[0]}: 0.5\n{tickers[1]}: 0.1", f"{tickers[0]}: buy", f"{tickers[0]}: 0.3\n{tickers[1]}: 0.7"]
    texts = []
    for one in (place, changed):
        episode = EpisodeState(AGENT, PROFILES["balanced"], one)
        found = []
        while (call := episode.next_call()) is not None:
            found.append(user(call))
            episode.take(Reply(text=said[(len(found) - 1) % 3], model="m"))
        texts.append(found)
    assert texts[0][:6] == texts[1][:6]
    assert texts[0][6] != texts[1][6]
    assert texts[0][8] != texts[1][8]
