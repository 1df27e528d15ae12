"""Episodes: the oracle scores 1, nonsense is held and recorded, and the same replies lead to the same calls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from bench_worlds import AGENT, world

from assaymark import benchmark as bench
from assaymark.benchmark import BALANCED, BASELINES, EpisodeResult, EpisodeState, Pipeline, run_baselines
from assaymark.engine import Finish, Ledger, Reply, run_calls
from assaymark.errors import NotMeasurableError, UnknownNameError
from assaymark.portfolio import Strategy, backtest, performance, risk_shares


def run(episode: EpisodeState, answer: Callable[[EpisodeState], str], finish: Finish = "stop") -> EpisodeResult:
    while episode.next_call() is not None:
        episode.take(Reply(text=answer(episode), model="m", finish=finish))
    return episode.result()


def played(answer=EpisodeState.true_reply, place=None, finish="stop", convention="paper", **rules) -> EpisodeResult:
    return run(EpisodeState(AGENT, BALANCED, place or world(), Pipeline(**rules), convention), answer, finish)


def rows_of(result: EpisodeResult, days) -> np.ndarray:
    return np.searchsorted(result.days, np.array(days, dtype="datetime64[D]"))


@pytest.mark.parametrize("convention", bench.CONVENTIONS)
@pytest.mark.parametrize("window", ["normal", "china-2015", "covid-2020", "crypto-2022"])
def test_who_knows_what_happens_next_scores_one(window, convention):
    for day in played(place=world(window), convention=convention).dates:
        assert {state.state for state in day.answers.states.values()} == {"ok"}
        assert [day.scores[stage] for stage in ("S1", "S2", "S4", "S5")] == pytest.approx([1, 1, 1, 1], abs=1e-9)
        assert day.executed == pytest.approx(day.truths.weights, abs=1e-12)
    accurate = played(place=world(window), convention=convention, alpha=1)
    assert [day.ceps for day in accurate.dates] == pytest.approx([1.0] * len(accurate.dates), abs=1e-9)


@pytest.mark.parametrize(("text", "finish", "state"), [
    ("As I see it, markets go up.", "stop", "invalid"), ("", "refusal", "refused"), ("ALBIX", "length", "truncated"),
    ("it was not there", "failed", "invalid"),
])  # fmt: skip
def test_replies_that_cannot_be_read_hold_what_is_held(text, finish, state):
    place = world()
    found = played(lambda _: text, finish=finish)
    for day in found.dates:
        assert {one.state for one in day.answers.states.values()} == {state}
        assert (day.answers.weights, set(day.answers.signals), day.answers.views.any()) == (None, {"hold"}, False)
        assert (day.turnover, day.scores["S4"]) == (0, 0)
        assert day.scores["S1"] == pytest.approx(1 - np.abs(day.truths.views[day.truths.views != 0]).sum() / 2 / 24)
    rows = place.market.returns[place.rows[0] + 1 : place.rows[0] + len(place.days)]
    assert found.nav[1:] == pytest.approx(np.cumprod(1 + rows, axis=0) @ place.start().weights)


def test_the_nav_is_that_of_the_backtest():
    """`assaymark.portfolio.backtest` holds the same targets its own way; it buys the start out of cash, for nothing."""
    place = world(pace="monthly")
    free, paid = (played(place=place, **rules) for rules in ({"cost_bps": 0}, {}))
    at, targets = rows_of(free, place.decisions), np.full((len(place.days), 24), np.nan)
    targets[at] = [day.executed for day in free.dates]
    returns = place.market.returns[place.rows[0] : place.rows[0] + len(place.days)].copy()
    returns[0] = 0
    assert free.nav == pytest.approx(backtest(targets, returns, cost_bps=0).nav)
    kept = 1 - 15e-4 * np.array([day.turnover for day in paid.dates])
    assert paid.dates[0].turnover == pytest.approx(np.abs(paid.dates[0].executed - place.start().weights).sum())
    assert paid.nav[[at[1], -1]] == pytest.approx(free.nav[[at[1], -1]] * [kept[0], kept.prod()])
    # The convention of the authors loses the return of rebalance days.
    silent, kept = (played(lambda _: "", convention=name) for name in ("reference", "paper"))
    at = rows_of(silent, [day.day for day in silent.dates[1:]])
    assert silent.nav[at] == pytest.approx(silent.nav[at - 1])
    assert (np.abs(kept.nav[at] / kept.nav[at - 1] - 1) > 0).all()


def advance(episode, replies):
    """Lead an episode as far as the replies reach, and give the first call that has none; None when it is over."""
    while (call := episode.next_call()) is not None and call.key in replies:
        episode.take(replies[call.key])
    return call


def test_replies_of_a_ledger_lead_an_episode_to_where_it_stood():
    replies: dict[str, Reply] = {}
    first = EpisodeState(AGENT, BALANCED, world())
    while (call := advance(first, replies)) is not None:
        again = EpisodeState(AGENT, BALANCED, world())
        found = advance(again, replies)
        assert (found.key, again.excerpts) == (call.key, first.excerpts)
        replies[call.key] = Reply(text=first.true_reply(), model="m")
    last = EpisodeState(AGENT, BALANCED, world())
    assert advance(last, replies) is None
    assert last.result().nav.tolist() == first.result().nav.tolist()
    assert [one.key for one in last.excerpts.values()] == list(replies)
    assert len(last.excerpts) == last.calls == 3 * len(last.result().dates)
    assert [stage for _, stage in [*last.excerpts][:4]] == ["S1", "S2", "S3", "S1"]


def test_one_market_view_serves_all_profiles():
    episodes = [EpisodeState(AGENT, profile, world()) for profile in bench.PROFILES.values()]
    for episode in episodes:
        run(episode, EpisodeState.true_reply)
    keys = [[one.key for one in episode.excerpts.values()] for episode in episodes]
    assert (len({tuple(one[:2]) for one in keys}), len({one[2] for one in keys})) == (1, 3)


def test_the_pending_call_does_not_change_and_what_is_asked_for_too_much_is_refused():
    episode = EpisodeState(AGENT, bench.CONSERVATIVE, world())

    def refused(said, act, *given):
        with pytest.raises(ValueError, match=said):
            act(*given)

    refused("one/conservative/normal waits for no reply", episode.take, Reply(text="", model="m"))
    assert episode.next_call() is episode.next_call()
    assert (len(episode.excerpts), episode.over) == (1, False)
    refused("is not over: 0 of 4 decisions", episode.result)
    run(episode, EpisodeState.true_reply)
    assert episode.next_call() is None
    refused("is over|waits for no reply", episode.true_reply)
    refused("is over|waits for no reply", episode.take, Reply(text="", model="m"))


@pytest.mark.parametrize("window", ["normal", "covid-2020"])
def test_scores_are_shares_and_paths_have_their_days(window):
    place, rng = world(window, "monthly", 81), np.random.default_rng(5)

    def drawn(episode: EpisodeState) -> str:
        day, stage = [*episode.excerpts][-1]
        names = place.known(day).tickers
        values = {
            "S1": lambda n: rng.uniform(-1, 1, n), "S2": lambda n: rng.choice(["buy", "hold", "sell"], n),
            "S3": lambda n: rng.dirichlet(np.ones(n)),
        }[stage](len(names))  # fmt: skip
        return bench.reply_text(stage, dict(zip(names, values.tolist(), strict=True)))

    found = played(drawn, place)
    assert (found.nav.shape, found.nav[0], found.days[0]) == (found.days.shape, 1, np.datetime64(found.dates[0].day))
    for day in found.dates:
        assert tuple(day.scores) == bench.STAGES
        assert all(0 <= score <= 1 for score in (*day.scores.values(), day.ceps, day.pas))
        assert day.executed.sum() == pytest.approx(1)
        bought = [at for at, one in enumerate(day.answers.signals) if one == "buy"]
        assert day.truths.weights[bought].sum() == pytest.approx(1)


def test_an_episode_through_a_ledger_goes_on_where_it_was_stopped(tmp_path):
    agent, models = (
        AGENT.model_copy(update={"model": "reference/portbench-garbled"}),
        bench.reference_benchmark_models(),
    )
    place = world("crypto-2022")

    def led(asked: int) -> EpisodeState:
        """A new episode led as far as the ledger reaches, and so many calls further."""
        with Ledger.open(tmp_path / "ledger.db") as ledger:
            episode = EpisodeState(agent, BALANCED, place)
            replies: dict[str, Reply] = {}
            while (call := advance(episode, replies)) is not None:
                if not (found := dict(ledger.replies([call.key]))):
                    if not asked:
                        break
                    asked -= 1
                    run_calls(ledger, [call], models)
                    found = dict(ledger.replies([call.key]))
                replies.update(found)
            return episode

    assert len(led(4).excerpts) == 5
    whole, plain = led(100), EpisodeState(agent, BALANCED, place)
    while (call := plain.next_call()) is not None:
        plain.take(asyncio.run(models[agent.model].complete(call)))
    assert (whole.over, whole.excerpts) == (True, plain.excerpts)
    assert whole.result().nav.tolist() == plain.result().nav.tolist() == led(0).result().nav.tolist()


# The five baselines: their rules on the lookback, their path through the sandbox, cash in and out


def window(name: str) -> bench.MarketWindow:
    return world(name, "monthly", 40)


@cache
def results(cash: bool = False):
    return {(one.name, one.window): one for one in run_baselines([window("normal"), window("covid-2020")], cash=cash)}


def test_every_baseline_runs_through_every_window():
    assert list(results()) == [(name, where) for where in ("normal", "covid-2020") for name in BASELINES]
    for (_, where), one in results().items():
        assert (len(one.weights), one.nav[0], one.nav.shape) == (
            len(window(where).decisions),
            1.0,
            window(where).days.shape,
        )
        assert one.weights.sum(axis=1) == pytest.approx(1)
        assert (one.weights >= 0).all()
        assert set(one.statuses) == {"optimal"}
        assert np.isfinite(performance(one.nav).volatility)


@pytest.mark.parametrize("cash", [False, True])
def test_weights_by_the_rules_of_the_seed(cash):
    """Seed 002, section C.3: w = 1/n, a fixed class heuristic, w ~ 1/sigma, equal risk contribution, least variance."""
    known = window("normal").known(window("normal").decisions[4])
    part = [at for at, one in enumerate(known.classes) if cash or one != "cash"]
    found = {name: bench.baseline_weights(name, known, 40, cash=cash)[0][known.part] for name in BASELINES}
    assert [name for name in BASELINES if np.delete(found[name], part).any()] == []
    own, cov = {name: w[part] for name, w in found.items()}, known.covariance[np.ix_(part, part)]
    assert own["EqW"] == pytest.approx(1 / len(part))
    inverse = 1 / np.sqrt(np.diag(cov))
    assert own["RP"] == pytest.approx(inverse / inverse.sum())
    assert risk_shares(own["CRP"], cov) == pytest.approx(1 / len(part))
    variance = own["MinVar"] @ cov @ own["MinVar"]
    assert all(variance <= w @ cov @ w + 1e-18 for w in own.values())
    classes = np.array(known.classes)
    assert [found["60/40"][classes == name].sum() for name in ("equity", "bond")] == pytest.approx([0.6, 0.4])


def test_with_cash_minimum_variance_is_cash_and_the_first_trade_is_from_equal_weights():
    """The spec: with cash its volatility collapses to about 0.2 %."""
    assert performance(results(cash=True)["MinVar", "normal"].nav).volatility < 0.005
    assert performance(results()["MinVar", "normal"].nav).volatility > 0.02
    assert results(cash=True)["EqW", "normal"].turnover[0] == pytest.approx(0.0, abs=1e-12)
    cash = window("normal").classes.count("cash")
    assert results()["EqW", "normal"].turnover[0] == pytest.approx(2 * cash / 40, rel=0.05)
    # The path of equal weights by hand.
    one, year = results(cash=True)["EqW", "normal"], window("normal")
    nav, held, path = 1.0, year.start().weights, [1.0]
    rows = [*year.rows.tolist(), int(np.searchsorted(year.market.days, year.days[-1]))]
    for at, row in enumerate(rows[:-1]):
        part, target = year.known(year.decisions[at]).part, np.zeros(40)
        target[part] = 1 / part.size
        nav *= 1 - 0.0015 * np.abs(target - held).sum()
        held = target
        for day in range(row + 1, rows[at + 1] + 1):
            grown = held * (1 + year.market.returns[day])
            nav *= grown.sum()
            held = grown / grown.sum()
            path.append(nav)
    assert one.nav == pytest.approx(np.array(path))


def test_costs_cost_and_the_reference_convention_is_another_path(monkeypatch):
    year, changes = [window("normal")], ({}, {"cost_bps": 0.0}, {"convention": "reference"})
    plain, free, other = (run_baselines(year, names=["MinVar"], **more)[0] for more in changes)
    assert free.nav[-1] > plain.nav[-1]
    at = int(np.searchsorted(year[0].days, np.datetime64(year[0].decisions[1])))
    assert other.nav[at] == other.nav[at - 1]
    assert plain.nav[at] != plain.nav[at - 1]
    with pytest.raises(UnknownNameError, match="unknown baseline 'MaxSharpe'"):
        run_baselines(year, names=["MaxSharpe"])

    def none(*args, **kwargs):
        raise NotMeasurableError("the risk shares did not settle")

    monkeypatch.setattr(Strategy, "choose", none)  # one without an answer holds what there is
    found = run_baselines([window("covid-2020")], names=["CRP"])[0]
    assert (set(found.statuses), found.turnover.any()) == ({"held: the risk shares did not settle"}, False)
