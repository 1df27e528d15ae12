"""External agents as Python callables, on the questions and through the stages."""

from __future__ import annotations

import json
import re
import runpy
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from assaymark import benchmark as bench
from assaymark.benchmark import Position, equal_start, hold, questions, trade
from assaymark.engine import Ledger
from assaymark.engine.providers.http_agent import MarketContext, PythonAgent, QuestionContext
from assaymark.engine.providers.registry import Models
from assaymark.errors import InputError
from assaymark.market import synthetic_history
from assaymark.portfolio import CLASSES, backtest, max_drawdown
from assaymark.protocol import AgentSpec
from assaymark.workflow import SCORES, RunFolder, Store, tracks

NOW = datetime(2026, 5, 1, tzinfo=UTC)
PLAN = """
[market]
instruments = 12
[pipeline]
profiles = ["balanced"]
windows = ["covid-2020"]
frequency = "quarterly"
[questions]
per_template = 3
file = "{questions}"
[[models]]
name = "mine"
family = "mine"
model = "python/mine:decide"
"""


def decide(context):
    """An agent that solves questions and answers every stage in JSON, from nothing but the context."""
    prompt = context.prompt
    tickers = re.findall(r"^([A-Z]+)\t", prompt.partition("BEGIN")[2], re.M)
    if "TASK S1" in prompt:
        return {"views": [{"ticker": one, "view": 0.5} for one in tickers]}
    if "TASK S2" in prompt:
        return {"signals": [{"ticker": one, "signal": "buy"} for one in tickers]}
    if "TASK S3" in prompt:
        names = sorted(set(tickers))
        return json.dumps({"weights": {one: 1 / len(names) for one in names}, "rationale": "Spread."})
    return {"answer": questions.solve(prompt).rpartition("ANSWER:")[2].strip()}


SEEN: list[MarketContext] = []
ASKED: list[QuestionContext] = []


def by_numbers(context):
    """An agent that reads no text: trends, inverse volatilities, and what it holds."""
    if isinstance(context, QuestionContext):
        ASKED.append(context)
        return {"answer": "no"}
    SEEN.append(context)
    names, returns = [one.id for one in context.instruments], np.array(context.returns)
    trend = dict(zip(names, (returns.mean(axis=0) * 500).clip(-1, 1).tolist(), strict=True))
    if context.stage == "S1":
        return {"views": [{"ticker": name, "view": view} for name, view in trend.items()]}
    if context.stage == "S2":
        assert context.views == pytest.approx(trend)
        words = {name: "buy" if view > 0.2 else "sell" if view < -0.2 else "hold" for name, view in trend.items()}
        return {"signals": [{"ticker": name, "signal": word} for name, word in words.items()]}
    size = 1 / np.maximum(returns.std(axis=0), 1e-4)
    weights = zip(names, (size / size.sum()).tolist(), strict=True)
    return {"weights": [{"ticker": name, "weight": weight} for name, weight in weights]}


def failing(context):
    raise RuntimeError("no")


@pytest.fixture(scope="module")
def asked(tmp_path_factory) -> Path:
    path, counts = tmp_path_factory.mktemp("questions") / "set.jsonl", {"T2": 20, "T4": 20, "T6": 20}
    questions.write_questions(path, questions.generate_questions(synthetic_history(0), counts=counts).questions)
    return path


def run(tmp_path, asked, agent) -> dict[str, list]:
    """The scores of an agent by their names."""
    models = Models({"python/mine:decide": PythonAgent(agent)}, {})
    folder, text = RunFolder(tmp_path / "run"), PLAN.format(questions=asked)
    tracks.bench_qa(folder, text, "plan", models, now=NOW)
    tracks.bench_pipeline(folder, text, "plan", models, now=NOW)
    found: dict[str, list] = {}
    for one in Store(folder).read(SCORES):
        found.setdefault(one.name, []).append(one)
    return found


def states(scores, *names) -> set[str]:
    return {one.state for name in names for one in scores[name]}


def full(scores) -> list[float]:
    told = [one for one in scores["QA"] if one.labels["condition"] == "full"]
    return [one.value for one in told if one.convention == "paper"]


def test_an_agent_of_ones_own_is_asked_like_any_model_and_one_that_fails_is_scored_by_rule(tmp_path, asked):
    scores = run(tmp_path / "good", asked, decide)
    assert full(scores) == pytest.approx([1.0] * 9, abs=1e-6)
    assert states(scores, "S1", "S2", "S3") == {"ok"}
    scores = run(tmp_path / "failing", asked, failing)
    assert states(scores, "QA", "S1", "S2", "S3") == {"invalid"}
    assert {one.value for one in scores["QA"]} == {0.0}


def test_an_agent_gets_the_numbers_as_numbers(tmp_path, asked):
    SEEN.clear()
    ASKED.clear()
    assert states(run(tmp_path, asked, by_numbers), "S1", "S2", "S3") == {"ok"}
    last = [one for one in SEEN if one.stage == "S3"][-1]
    closes = np.array([one.close for one in last.series]).T
    returns, correlations = np.array(last.returns), np.array(last.correlations)
    assert (closes.shape, returns.shape, correlations.shape) == ((61, 12), (60, 12), (12, 12))
    assert [one.instrument for one in last.series] == [one.id for one in last.instruments]
    assert {one.asset_class for one in last.instruments} == set(CLASSES)
    assert returns == pytest.approx(closes[1:] / closes[:-1] - 1, abs=1e-9)
    moving = np.ptp(returns, axis=0) > 0
    assert correlations[np.ix_(moving, moving)] == pytest.approx(np.corrcoef(returns[:, moving].T), abs=1e-6)
    assert last.series[0].times[-1] == last.cutoff  # nothing is later than the close of the decision
    assert max(one.available_at for one in last.facts) <= last.cutoff
    assert set(last.signals.values()) <= {"buy", "hold", "sell"}
    held, price = last.portfolio, {one.instrument: one.close[-1] for one in last.series}
    assert sum(last.weights.values()) == pytest.approx(1)
    of_nav = {name: units * price[name] / held.nav for name, units in held.positions.items()}
    assert of_nav == pytest.approx(last.weights)
    limits = {(one.kind, one.scope): one.limit for one in last.constraints}
    assert (limits["max_weight", "equity and crypto"], limits["fee", "order"]) == (bench.BALANCED.equity_cap, 15)
    first = next(one for one in SEEN if one.stage == "S1")  # as the prompts: S1 is for all investors
    assert (first.portfolio, first.views, first.constraints, first.horizon_days) == (None, {}, (), 63)
    with Ledger.open(tmp_path / "run" / "ledger.db") as ledger:
        calls = ledger.load([one.key for one in ledger.answered()], {})
    stages = [one.messages[0].parts for one in calls if len(one.messages[0].parts) == 3]
    assert len({parts[2].sha256 for parts in stages}) == len(stages) / 3  # a date's market is kept once
    text = PLAN.format(questions=asked)
    models = Models({"python/mine:decide": PythonAgent(by_numbers)}, {})
    (line, *_) = tracks.expect_bench(RunFolder(tmp_path / "run"), text, "plan", False, models).lines
    assert "3 calls" in line
    assert "1 answered already" in line  # S1, which is the same whatever was answered before

    assert {one.template for one in ASKED} == {"T2", "T4", "T6"}
    for one in ASKED:  # what the prompt states, and no more than that
        stated = {abs(float(number)) for number in re.findall(r"\d+\.\d+(?:[eE]-\d+)?", one.prompt)}
        assert {abs(value) for value in one.given.values() if isinstance(value, float)} - {0.9, 0.95, 0.99} <= stated
    pairs = [one for one in ASKED if one.template == "T4"]
    whole, restricted = ([one for one in pairs if ("covariance" in one.given) is known] for known in (True, False))
    assert whole[0].given.keys() - restricted[0].given.keys() == {"covariance", "correlation"}
    assert "ovariance" not in restricted[0].prompt


def test_the_example_agent_manages_portfolios_within_the_limits(tmp_path, asked):
    path = Path(__file__).resolve().parents[2] / "examples" / "portbench_agent.py"
    scores = run(tmp_path, asked, runpy.run_path(str(path))["decide"])
    assert states(scores, "QA", "S1", "S2", "S3") == {"ok"}
    assert full(scores) == pytest.approx([1.0] * 9, abs=1e-4)
    alignments = [one.value for one in scores["PAS"] if one.convention == "paper"]
    assert min(alignments) >= 2 / 3 - 1e-9  # cap and floor are kept; value at risk it does not look at


def test_a_request_says_no_day_that_the_prompt_does_not():
    agent = AgentSpec(name="m", family="m", model="http/127.0.0.1:1/x")
    request = json.loads(bench.outside_call(agent, "Q", bench.ANSWER_SCHEMA, "0" * 64).messages[0].text)
    assert request["context"]["cutoff"].startswith("2000-01-03")
    assert request["format"] == "assaymark context 1"


# The sandbox against the backtest of `assaymark.portfolio`, and by its laws

ASSETS = 4


@st.composite
def books(draw):
    """Target weights for some decisions, and the days from each to the next."""
    count = draw(st.integers(1, 4))
    raw = draw(hnp.arrays(float, (count, ASSETS), elements=st.floats(0.0, 1.0)))
    share = draw(hnp.arrays(float, count, elements=st.floats(0.0, 1.0)))
    total = raw.sum(axis=1, keepdims=True)
    targets = np.where(total > 0, raw / np.where(total > 0, total, 1.0), 0.0) * share[:, None]
    lengths = draw(st.lists(st.integers(1, 5), min_size=count, max_size=count))
    return targets, lengths, draw(hnp.arrays(float, (sum(lengths), ASSETS), elements=st.floats(-0.9, 1.0)))


def sandbox_run(targets, lengths, returns, *, cost_bps=15.0, convention="paper"):
    """NAV by the day, the first close included, and the turnovers."""
    position, path, turnovers, first = equal_start(np.arange(ASSETS), ASSETS), [1.0], [], 0
    for at, (target, length) in enumerate(zip(targets, lengths, strict=True)):
        after, turnover = trade(position, target, cost_bps=cost_bps)
        turnovers.append(turnover)
        days = returns[first : first + length]
        first += length
        position, nav = hold(after, days, to_decision=at + 1 < len(lengths), convention=convention)
        path += nav.tolist()
    return np.array(path), np.array(turnovers), position


@given(books(), st.floats(0.0, 100.0))
def test_it_is_the_backtest_that_begins_in_equal_weights(book, cost):
    targets, lengths, returns = book
    nav, turnovers, _ = sandbox_run(*book, cost_bps=cost)
    rows = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    # The backtest begins in money: its first trade to equal weights is free here, and the day before.
    wanted = np.full((returns.shape[0] + 2, ASSETS), np.nan)
    wanted[0], wanted[rows + 1] = 1.0 / ASSETS, targets
    other = backtest(wanted, np.vstack([np.zeros((2, ASSETS)), returns]), cost_bps=cost)
    assert other.turnover[rows + 1] == pytest.approx(turnovers, abs=1e-9)
    # NAV here is before the trade of its close, there after it.
    before = other.nav / (1.0 - cost * 1e-4) / np.where(np.arange(wanted.shape[0]) == 0, 1.0, 1.0 - other.cost)
    assert before[1:] == pytest.approx(nav, rel=1e-9)
    # The reference convention loses the return of each rebalance day.
    blanked = returns.copy()
    blanked[np.cumsum(lengths)[:-1] - 1] = 0.0
    (nav, turnovers, _), (same, others, _) = (
        sandbox_run(targets, lengths, returns, convention="reference"), sandbox_run(targets, lengths, blanked),
    )  # fmt: skip
    assert nav == pytest.approx(same)
    assert turnovers == pytest.approx(others)


@given(books())
def test_the_laws_of_a_path(book):
    """Drawdown is that of the path, assets have no order, and holding or trading to what is held costs nothing."""
    targets, lengths, returns = book
    nav, _, position = sandbox_run(*book)
    order = np.array([2, 0, 3, 1])
    assert sandbox_run(targets[:, order], lengths, returns[:, order])[0] == pytest.approx(nav)
    assert -1.0 <= position.drawdown <= 0.0
    assert (position.nav, position.peak) == pytest.approx((nav[-1], nav.max()))
    assert position.drawdown >= max_drawdown(nav).depth - 1e-12
    assert trade(position, None)[0] is position
    again, turnover = trade(position, position.weights)
    assert (turnover, again.nav) == (0.0, position.nav)


def test_paths_by_hand():
    even, returns = np.full((3, ASSETS), 0.25), np.full((6, ASSETS), 0.01)
    nav, turnovers, _ = sandbox_run(even, [2, 2, 2], returns)  # what equals the start never trades
    assert turnovers == pytest.approx(np.zeros(3), abs=1e-12)
    assert nav == pytest.approx(1.01 ** np.arange(7))
    start = equal_start(np.arange(2), 2)
    whole, half = (trade(start, np.array([share, 0.0]), cost_bps=0.0)[0] for share in (1.0, 0.5))
    position, nav = hold(whole, np.array([[-1.0, 0.0], [5.0, 0.0]]), to_decision=False)
    assert (nav.tolist(), position.drawdown) == ([0.0, 0.0], -1.0)  # what was lost wholly does not come back
    assert trade(position, np.array([0.0, 1.0]))[1] == 0.0
    position, nav = hold(half, np.array([[1.0, 9.0]]), to_decision=False)  # money earns nothing and is kept
    assert (nav.tolist(), position.weights.round(6).tolist()) == ([1.5], [0.666667, 0.0])
    position, nav = hold(start, np.empty((0, 2)), to_decision=False)
    assert (position is start, nav.size) == (True, 0)


def test_what_cannot_be_held_is_refused_six_decimals_are_brought_to_1_and_turnover_is_two_sided():
    for target, what in (
        ([0.6, 0.6], "sum to at most 1"), ([-0.1, 0.6], r"at least 0 \(got -0.1\)"), ([np.nan, 0.6], "must be finite"),
        ([1.0], r"shape \(2,\) \(got \(1,\)\)"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=what):
            trade(Position(1.0, np.array([0.5, 0.5]), 1.0), np.array(target))
    after, _ = trade(Position(1.0, np.array([1.0, 0.0, 0.0]), 1.0), np.array([0.333334] * 3), cost_bps=0)
    assert after.weights.tolist() == pytest.approx([1 / 3] * 3, abs=1e-12)
    assert bench.turnover_between([0.5, 0.5, 0.0], [0.0, 0.5, 0.5]) == 1.0
