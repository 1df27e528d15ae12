"""The built-in models: measurements recover their planted properties, and they know only the prompt."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from bench_worlds import AGENT, world
from hypothesis import given
from hypothesis import strategies as st

import assaymark.benchmark.reference
from assaymark import benchmark as bench
from assaymark.benchmark import BALANCED, CONSERVATIVE, PROFILES, EpisodeState, questions
from assaymark.benchmark.reference import FAULTS, PREFIX, RULES, MarketTables, apply_limits, faulty_reply, tables_of
from assaymark.engine import CallSpec, Message, Model, Reply, Text
from assaymark.errors import ModelError
from assaymark.metrology import wilson


def answered(model: Model, call: CallSpec) -> Reply:
    return asyncio.run(model.complete(call))


def run(word: str, window: str = "normal", profile=BALANCED, convention="paper", **rules) -> bench.EpisodeResult:
    model = bench.ReferenceBenchmarkModel(word)
    episode = EpisodeState(AGENT, profile, world(window), bench.Pipeline(**rules), convention)
    while (call := episode.next_call()) is not None:
        text, finish = model.answer(tuple(part.text for part in call.messages[1].parts), call.seed)
        episode.take(Reply(text=text, model="m", finish=finish))
    return episode.result()


def asked(text: str, **more) -> CallSpec:
    return CallSpec(model="m", messages=(Message("user", (Text.of(text),)),), template="", **more)


def test_ten_models_can_reach_nothing_but_the_prompt():
    """The market, the oracle and episodes have look-ahead, so the module of the models may import none of them."""
    assert len(RULES) == 10
    assert set(bench.reference_benchmark_models()) == {PREFIX + word for word in RULES}
    text = Path(assaymark.benchmark.reference.__file__).read_text(encoding="utf-8")
    assert not re.search(r"assaymark\.market|benchmark\.(market|oracle|episode)|questions\.generate", text)


@pytest.mark.parametrize("window", ["normal", "covid-2020"])
def test_the_sheet_is_the_snapshot(window):
    shown = world(window).known(world(window).decisions[0])
    sheet = tables_of(bench.market_text(shown).text)
    assert sheet.tickers == tuple(one.ticker for one in shown.lines)
    assert sheet.numbers["ret60_pct"] == pytest.approx([one.return_60 for one in shown.lines], abs=5.1e-5)
    assert sheet.numbers["vol_pct"] == pytest.approx([one.volatility for one in shown.lines], abs=5.1e-5)
    names = list(shown.regimes)
    first, last = names.index(sheet.classes[0]), names.index(sheet.classes[-1])
    assert sheet.correlation[0, -1] == pytest.approx(shown.between[first, last], abs=0.0051)
    assert np.diag(sheet.correlation) == pytest.approx(1.0)


def question(number: int) -> str:
    returns = " ".join(f"{one:.4f}" for one in np.random.default_rng(number).normal(0, 0.02, 30))
    lines = f"Daily returns of the last 30 trading days, oldest first:\n{returns}\n\n"
    return lines + "Question: what is the 1-day value at risk (VaR) of SPY at 95% confidence?"


def test_the_planted_skill_is_the_share_that_is_solved():
    prompts = [question(number) for number in range(300)]
    known = [(questions.solve(prompt), questions.guess(prompt)) for prompt in prompts]
    for word, rule in RULES.items():
        model = bench.ReferenceBenchmarkModel(word)
        replies = [model.answer((prompt,), 0)[0] for prompt in prompts]
        solved = sum(reply == one for reply, (one, _) in zip(replies, known, strict=True))
        assert solved + sum(reply == one for reply, (_, one) in zip(replies, known, strict=True)) == 300
        low, high = wilson(solved, 300, level=0.999)
        assert low <= rule.skill <= high, word


def test_the_same_prompt_and_seed_are_answered_alike_and_a_rationale_comes_with_every_stage():
    model = bench.ReferenceBenchmarkModel("contrarian")
    first, again = (answered(model, asked(question(4), seed=1)) for _ in range(2))
    assert first == again
    assert first.fingerprint == f"{PREFIX}contrarian@2"
    assert len({answered(model, asked(question(4), seed=seed)).text for seed in range(20)}) == 2
    model, episode = bench.ReferenceBenchmarkModel("steady"), EpisodeState(AGENT, BALANCED, world())
    for said in ("The rule 'steady' is most bullish", "The threshold is kept to: ", "The rule 'steady' gives"):
        episode.take(reply := answered(model, episode.next_call()))
        assert bench.rationale_of(reply.text).startswith(said)


def test_a_prompt_that_lacks_something_is_a_failed_attempt_that_says_what():
    for word, task, args, reason in (
        ("bold", "TASK S1, views.", {}, "portbench-bold cannot read the prompt: prompt: it has no table of assets"),
        ("bold", "TASK S1, views.", {"style": "oak"}, "argument style is unknown"),
        ("steady", "TASK S2, signals.", {}, "names no threshold"),
        ("steady", "TASK S2, signals. above 0.2, below", {}, "no table of views"),
    ):
        with pytest.raises(ModelError, match=reason):
            answered(bench.ReferenceBenchmarkModel(word), asked(task, args=args))


@pytest.mark.parametrize("word", [word for word in RULES if word != "garbled"])
def test_every_model_but_one_keeps_to_the_form(word):
    for day in run(word).dates:
        assert {one.state for one in day.answers.states.values()} == {"ok"}
        assert all(0 <= score <= 1 for score in (*day.scores.values(), day.ceps, day.pas))


def test_momentum_has_the_views_that_the_authors_take_for_true_and_contrarian_is_its_opposite():
    found, plain = run("momentum", convention="reference").dates, run("momentum").dates
    # The trailing return is printed to a hundredth of a percent, a view to a thousandth.
    assert [day.scores["S1"] for day in found] == pytest.approx([1.0] * 4, abs=1e-3)
    assert all(day.scores["S1"] < 0.9 for day in plain)
    for one, other in zip(plain, run("contrarian").dates, strict=True):
        assert other.answers.views == pytest.approx(-one.answers.views)


def test_stubborn_only_trades_its_drift_away():
    found, place = run("stubborn", "crypto-2022"), world("crypto-2022")
    for day in found.dates:
        part = place.known(day.day).part
        assert day.executed[part] == pytest.approx(1 / part.size, abs=1e-5)
    assert found.dates[0].turnover == pytest.approx(0, abs=1e-4)
    assert all(0 < day.turnover < 0.6 for day in found.dates[1:])


def test_cautious_is_the_one_that_adapts():
    """Cap and floor are kept under each profile; the book of a model that ignores the profile is the same for all."""
    risky = [at for at, name in enumerate(world().classes) if name in ("equity", "crypto")]
    cautious, ignoring = (
        [run(word, profile=one).dates for one in PROFILES.values()] for word in ("cautious", "momentum")
    )
    for profile, dates in zip(PROFILES.values(), cautious, strict=True):
        assert all(day.executed[risky].sum() <= profile.equity_cap + 1e-6 for day in dates)
    assert len({tuple(dates[0].executed) for dates in ignoring}) == 1
    at = list(PROFILES.values()).index(CONSERVATIVE)
    assert cautious[at][0].pas > ignoring[at][0].pas


def test_one_buy_signal_or_none_makes_the_oracle_agree():
    """Equation 7 lets the oracle hold only what the model says to buy.
    So who buys one asset, or none and holds all alike, always holds the oracle's book: S3's accuracy, S4 and S5 are 1
    whatever the market does. The convention ``reference`` asks what truly is to be bought, and neither gains."""
    for word in ("bold", "stubborn"):
        for day in run(word, alpha=1.0).dates:
            assert [day.scores[stage] for stage in ("S3", "S4", "S5")] == pytest.approx([1, 1, 1], abs=1e-3)
        other = run(word, alpha=1.0, convention="reference")
        assert np.mean([day.scores["S4"] for day in other.dates]) < 0.9


TICKERS = ("SPY", "TLT", "BIL", "BTC")
STAGES = {
    "S1": (bench.parse_views, (0.5, -0.3, 0.0, 0.9)), "S2": (bench.parse_signals, ("buy", "sell", "hold", "buy")),
    "S3": (bench.parse_weights, (0.4, 0.3, 0.2, 0.1)),
}  # fmt: skip
STATES = {
    "none": "ok ok ok", "lines": "ok ok ok", "fence": "ok ok ok", "missing": "partial partial partial",
    "extra": "partial partial partial", "out of range": "partial partial invalid",
    "no number": "partial partial invalid", "cut": "truncated truncated truncated",
    "refusal": "refused refused refused", "prose": "invalid invalid invalid", "code": "invalid invalid invalid",
}  # fmt: skip


def test_every_fault_has_its_state_and_garbled_shows_every_state_in_a_few_windows():
    assert set(FAULTS) == set(STATES)
    for fault in FAULTS:
        seen = []
        for stage, (parse, meant) in STAGES.items():
            text, finish = faulty_reply(fault, stage, dict(zip(TICKERS, meant, strict=True)))
            found, state = parse(Reply(text=text, model="m", finish=finish), TICKERS)
            seen.append(state.state)
            if state.state == "ok":
                assert list(found) == (list(meant) if stage == "S2" else pytest.approx(meant))
        assert " ".join(seen) == STATES[fault], fault
    states = Counter(
        one.state
        for window in ("normal", "china-2015", "crypto-2022") for profile in PROFILES.values()
        for day in run("garbled", window, profile).dates for one in day.answers.states.values()
    )  # fmt: skip
    assert set(states) == {"ok", "partial", "invalid", "refused", "truncated"}


CLASSES = ("equity", "crypto", "bond", "cash", "commodity", "real_estate")
LIMITS = [(one.equity_cap, one.bond_floor) for one in PROFILES.values()] + [(0.0, 1.0), (0.3, 0.96)]


@given(
    st.lists(st.floats(0, 1), min_size=6, max_size=6).filter(lambda parts: sum(parts) > 0.01), st.sampled_from(LIMITS)
)
def test_weights_are_brought_within_any_limits(parts, limits):
    weights = np.array(parts) / sum(parts)
    found = apply_limits(weights, MarketTables(tuple("ABCDEF"), CLASSES, {}, np.eye(6)), limits)
    assert (found.min() >= 0, found.sum()) == (True, pytest.approx(1))
    assert found[:2].sum() <= limits[0] + 1e-9
    assert found[2:4].sum() >= limits[1] - 1e-9
    if weights[:2].sum() <= limits[0] and weights[2:4].sum() >= limits[1]:
        assert found == pytest.approx(weights)


def test_correlations_that_make_no_covariance_leave_inverse_volatility():
    correlation = np.array([[1.0, 0.9, -0.9], [0.9, 1.0, 0.9], [-0.9, 0.9, 1.0]])
    sheet = MarketTables(("A", "B", "C"), ("bond", "bond", "cash"), {"vol_pct": np.array([0.1, 0.2, 0.4])}, correlation)
    found = RULES["literal"].weigh(sheet, np.array([0.5, 0.5, 0.5]), np.ones(3, dtype=bool), (0.5, 0.1))
    assert found == pytest.approx([4 / 7, 2 / 7, 1 / 7])
    # limits that nothing can keep change nothing
    sheet = MarketTables(("A", "B"), ("equity", "crypto"), {}, np.eye(2))
    assert apply_limits(np.array([0.7, 0.3]), sheet, (0.4, 0.4)).tolist() == [0.7, 0.3]
