"""Invalid input is rejected, with all problems and their locations in one error."""

# ruff: noqa: I001  # names in packed lines

from __future__ import annotations

import math

import numpy as np
import pytest

from assaymark.errors import AssayError, InputError, NotMeasurableError, UnknownNameError
from assaymark.portfolio import (
    STRATEGIES, backtest, expected_shortfall, max_sharpe, min_variance, performance, risk_shares, schedule,
    simple_returns, value_at_risk,
)  # fmt: skip

EQUAL, CALM = (STRATEGIES[name].choose for name in ("equal-weight", "minimum-variance"))
NAN, INF = math.nan, math.inf
NORMAL, ODD = {"method": "normal"}, {"method": "cornish-fisher"}
REFUSED = [
    *((performance, (nav,), {}, InputError, said) for nav, said in (
        ([1.0, -1.0], "greater than 0"), ([1.0, 0.0], "greater than 0"), ([1.0, NAN], "finite"), ([1.0, INF], "finite"),
        ([], "at least one value"), ([[1.0]], "1 axes"),
    )),
    *((measure, (returns,), more, kind, said) for measure in (value_at_risk, expected_shortfall)
      for returns, more, kind, said in (
        ([0.1, NAN], {}, InputError, "must be finite"), ([0.1, -INF], {}, InputError, "must be finite"),
        ([0.1, -1.5], {}, InputError, "not be below -1"), ([], {}, InputError, "at least one value"),
        ([[0.1]], {}, InputError, "1 axes"), (["a"], {}, InputError, "must be numbers"),
        *(([0.1], {"level": level}, InputError, r"from 0\.5 to below 1") for level in (0.05, 1.0, NAN, True, "0.95")),
        ([0.1], ODD, UnknownNameError, "historical"),
        ([-0.03], NORMAL, NotMeasurableError, "one return has no standard deviation"),
    )),
    *((backtest, ([target], [[0.0, 0.0]]), {}, InputError, said) for target, said in (
        ([0.5, NAN], "all NaN"), ([1.5, -0.5], "negative"), ([INF, 0.0], "finite"), ([0.8, 0.8], "at most 1"),
        ([1.0], "days and assets"),
    )),
    *((backtest, ([[1.0]], [[0.0]]), {"cost_bps": cost}, InputError, "cost_bps") for cost in (True, "1", NAN, -1.0)),
    (backtest, ([1.0], [[0.0]]), {}, InputError, "2 or 3 axes"), (simple_returns, ([1.0],), {}, InputError, "2 axes"),
    *((risk_shares, (weights, np.eye(2)), {}, InputError, said) for weights, said in (
        ([0.5, NAN], "finite"), ([1.5, -0.5], "negative"), ([0.5, INF], "finite"), ([0.5, 0.4], "must sum to 1"),
        ([1.0], "one entry per asset"), ([[0.5, 0.5]], "1 axes"),
    )),
    (risk_shares, ([0.5, 0.5], [[1.0, -1.0], [-1.0, 1.0]]), {}, NotMeasurableError, "no variance"),
    *((min_variance, (cov,), {}, InputError, said) for cov, said in (
        ([[1.0, 0.5], [0.4, 1.0]], "must be symmetric"), ([[1.0, NAN], [NAN, 1.0]], "must be finite"),
        ([[1.0, INF], [INF, 1.0]], "must be finite"), ([[-1.0, 0.0], [0.0, 1.0]], "must not be negative"),
        ([[1.0, 0.5]], "must be square"), ([1.0, 2.0], "must have 2 axes"), ([["a"]], "must be numbers"),
        ([[1.0], [1.0, 2.0]], "unequal lengths"), (np.zeros((0, 0)), "at least one value"),
        ([[1.0, 0.9, -0.9], [0.9, 1.0, 0.9], [-0.9, 0.9, 1.0]], "positive semidefinite"),
    )),
    *((max_sharpe, ([1.0], [[1.0]]), {"rf": rf}, InputError, "finite number") for rf in (-INF, NAN, "x")),
    (max_sharpe, ("abc", [[1.0]]), {}, InputError, "mu"),
    (EQUAL, (np.full((3, 1), NAN), ["equity"]), {}, NotMeasurableError, "no asset"),
    (STRATEGIES["60/40"].choose, (np.zeros((3, 1)), ["equity"]), {}, NotMeasurableError, "no bond"),
    (CALM, (np.zeros((1, 1)), ["equity"]), {}, NotMeasurableError, "fewer than two days"),
    (EQUAL, ([0.1], ["equity"]), {}, InputError, "window"),
    (schedule, ("momentun", np.zeros((3, 1)), ["equity"], [1]), {}, UnknownNameError, "momentum"),
    (schedule, ("equal-weight", [0.1], ["equity"], [0]), {}, InputError, "returns"),
]  # fmt: skip
AT_ONCE = [
    (performance, ([0.0],), {"rf": NAN, "periods": 0}, "nav rf periods"),
    (value_at_risk, ([NAN],), {"level": 2}, "returns level"),
    (expected_shortfall, ([NAN],), {"level": 2}, "returns level"),
    (backtest, ([[2.0, -1.0]], [[INF, -2.0]]), {"cost_bps": 9000}, "cost_bps returns returns targets"),
    (simple_returns, ([[1.0, -1.0], [0.0, INF]],), {}, "prices prices"),
    (max_sharpe, ([NAN, 1.0, 2.0], [[1.0, 0.5], [0.1, -1.0]]), {"rf": INF, "allowed": [True]},
     "cov cov rf mu mu allowed"),
    (EQUAL, ([[INF, -2.0]], ["stocks"]), {}, "window window classes classes"),
    (schedule, ("equal-weight", np.zeros((5, 1)), ["equity"], [4, 3, 9]), {"window": 0, "delay": -1},
     "window delay signals signals"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "given", "more", "kind", "said"), REFUSED)
def test_wrong_input_is_refused(call, given, more, kind, said):
    assert issubclass(kind, AssayError)
    with pytest.raises(kind, match=said):
        call(*given, **more)


@pytest.mark.parametrize(("call", "given", "more", "places"), AT_ONCE)
def test_every_problem_is_told_at_once(call, given, more, places):
    with pytest.raises(InputError) as caught:
        call(*given, **more)
    assert [problem.where for problem in caught.value.problems] == places.split()
