"""What an agent reads from a context, and what it refuses to read."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest
from agent_contexts import CUTOFF, DECIDED, NAMES, bars, context, fact, rows, seen

from assaymark.agents import observe
from assaymark.errors import InputError, NotMeasurableError

TABLE = {"Ash": (0.01, 0.02, 0.03, 0.12, -0.05, 1.0, 1.0), "Beech": (0.0, -0.1)}
CLOSES = 100 + np.arange(60.0).reshape(30, 2) % 7


def test_figures_become_ratios_and_the_rest_stays_unknown():
    ash, beech = seen(TABLE).assets
    assert [(item.ratio, item.sessions, item.words) for item in ash.returns] == [
        (0.01, 5.0, "5 sessions"),
        (0.02, 21.0, "21 sessions"),
        (0.03, 63.0, "63 sessions"),
    ]
    assert (ash.volatility, ash.drawdown, ash.beta, ash.correlation) == (0.12, -0.05, 1.0, 1.0)
    assert (beech.volatility, beech.drawdown, beech.beta, beech.correlation) == (None, None, None, None)


def test_windows_in_days_months_and_years_are_put_in_order():
    facts = (
        fact("ASH", "return_1y", 20.0, "percent"),
        fact("ASH", "return_6m", 0.1),
        fact("ASH", "return_7d", 50.0, "bps"),
        fact("ASH", "return_since_march", 0.9),
    )
    ash = seen({"Ash": ()}, facts=facts).assets[0]
    assert [(item.words, round(item.ratio, 9)) for item in ash.returns] == [
        ("7 days", 0.005),
        ("6 months", 0.1),
        ("1 year", 0.2),
    ]
    assert [item.sessions for item in ash.returns] == [5.0, 126.0, 252.0]


def test_economic_figures_are_kept_apart_and_words_are_no_figures():
    facts = (
        fact("", "policy_rate", 2.5, "percent"),
        fact("", "mood", "sour", "text"),
        fact("", "volatility_index", 19.0, "index"),
        fact("ASH", "beta", "n/a", "text"),
    )
    view = seen({"Ash": ()}, facts=facts)
    assert view.economy == {"policy_rate": 2.5, "volatility_index": 19.0}
    assert view.assets[0].beta is None
    assert view.held == {}


def test_names_are_put_on_one_line():
    view = seen({"Ash\n\n5/5  this": ()})
    assert view.benchmark.short == "Ash 5/5 this"


def test_anything_later_than_the_decision_is_refused():
    late = DECIDED + timedelta(seconds=1)
    series = bars(("Ash",), CLOSES[:, :1], times=tuple(late + timedelta(days=i - 29) for i in range(30)))
    future = context(TABLE, facts=(fact("ASH", "return_5s", 0.1, available_at=late),), series=series, cutoff=late)
    with pytest.raises(InputError) as caught:
        observe(future, decided_at=DECIDED)
    assert [problem.where for problem in caught.value.problems] == ["facts.ASH.return_5s", "series.ASH", "cutoff"]
    assert "could not be known yet" in str(caught.value)


def test_what_is_known_at_the_moment_of_deciding_may_be_used():
    assert observe(context(TABLE, cutoff=DECIDED), decided_at=DECIDED).benchmark.id == "ASH"


def test_numbers_that_cannot_be_used_are_all_reported():
    facts = (fact("ASH", "return_5s", float("nan")), fact("ASH", "volatility_21s", 12.0, "points"))
    with pytest.raises(InputError, match=r"finite number \(got nan\)(.|\n)*got 'points'"):
        seen({"Ash": ()}, facts=facts)
    with pytest.raises(InputError, match="at least one is needed to decide about"):
        seen({})


def test_daily_returns_are_simple_returns_in_the_order_of_the_instruments():
    names = ("Ash", "Beech")
    view = seen(TABLE, series=bars(names, CLOSES)[::-1])
    assert view.daily is not None
    assert view.daily == pytest.approx(np.diff(CLOSES, axis=0) / CLOSES[:-1])


@pytest.mark.parametrize(
    "series",
    [
        (),
        bars(("Ash",), CLOSES),
        bars(("Ash", "Beech"), CLOSES[:10]),
        bars(("Ash", "Beech"), CLOSES, interval_s=3600),
        bars(("Ash", "Beech"), CLOSES * [1, 0]),
        (bars(("Ash",), CLOSES)[0], bars(("Cedrel", "Beech"), CLOSES[1:])[1]),
    ],
    ids=["none", "one missing", "too few", "hourly", "worthless", "other times"],
)
def test_bars_that_do_not_fit_together_are_not_used(series):
    assert seen(TABLE, series=series).daily is None


def test_missing_volatility_is_named():
    with pytest.raises(NotMeasurableError, match="no usable volatility for BEECH, FIR"):
        seen({**TABLE, "Fir": (0.1, 0.1, 0.1, -0.2)}).volatilities()
    with pytest.raises(NotMeasurableError, match="for ASH, BEECH, CEDREL, DAMSON, ELDER and 2 more"):
        seen(dict.fromkeys(NAMES[:7], ())).volatilities()
    assert seen({"Ash": TABLE["Ash"]}).volatilities().tolist() == [0.12]
    assert rows(TABLE)[0].available_at == CUTOFF


def test_the_benchmark_is_what_correlates_fully_with_it():
    row = (0.0, 0.0, 0.0, 0.1, 0.0, 1.0)
    assert seen({"Ash": (*row, 0.4), "Beech": (*row, 1.0), "Cedrel": (*row, 1.0)}).benchmark.id == "BEECH"
    assert seen({"Ash": (*row, 0.4), "Beech": row}).benchmark.id == "ASH"
