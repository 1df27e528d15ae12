"""Each number of a certificate again, from the table that stands beside it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from scipy import special

from assaymark.claims.certificates import OTHER_TESTS, Findings, same, shown_apart
from assaymark.claims.certificates import about_difference as about
from assaymark.claims.levels import other_margins
from assaymark.claims.orders import SHORTEST
from assaymark.claims.reading import Read
from assaymark.errors import NotMeasurableError
from assaymark.metrology import holm, kappa_of_table
from assaymark.metrology.bootstrap import EXACT_CLUSTERS
from assaymark.metrology.checks import Floats, Ints
from assaymark.metrology.comparisons import natural
from assaymark.metrology.contrasts import EXACT_FLIPS, bootstrap_tests, flip_tests, settle, t_test
from assaymark.metrology.controls import FALLING, TOLERANCE, cell_outcome
from assaymark.metrology.estimates import student_estimate
from assaymark.metrology.length import length_rule
from assaymark.metrology.measure_orders import cannot_be_tested
from assaymark.metrology.moderated import FEWEST_CLUSTERS, FEWEST_CONSECUTIVE, FLAT_VARIANCE, effective_size
from assaymark.metrology.orders import equivalence_p
from assaymark.records import AGGREGATE, JSON, Measurement, measurement_id

# The contrasts of a certificate again: from their cluster sums, or from their standard errors where there are none.


@dataclass(frozen=True, slots=True)
class _T:
    """A t test of a mean over so many rows; without df nothing varies, and without a standard error there is none."""

    se: float | None
    df: float | None
    rows: int

    def p(self, value: float | None) -> float:
        """Two-sided p; of the common sign where nothing varies."""
        if value is None or self.se is None:
            return 1.0
        if self.df is None:
            return 1.0 if abs(value) <= TOLERANCE else 2.0 ** (1 - self.rows)
        return student_estimate(value, self.se, self.df).p

    def half(self, quantile: float) -> float | None:
        """Half of the width of an interval; None where there is none."""
        return float(special.stdtrit(self.df, quantile)) * self.se if self.se and self.df else None


def arrays(sums: Mapping[str, tuple[float, int]]) -> tuple[Floats, Ints]:
    """Sums [G, 1] and numbers of cycles [G] of clusters, in the order of time where their names tell it."""
    rows = [sums[name] for name in sorted(sums, key=natural)]
    return np.array([[float(total)] for total, _ in rows]).reshape(-1, 1), np.array([int(n) for _, n in rows], np.int64)


# --- the panel's contrast ---------------------------------------------------------------------------------------------


def _contrast(item: Measurement, read: Read, found: Findings) -> Measurement:
    """Gap, variance and test from cluster sums; what the pairs share (mean variance, autocorrelation) is as stated."""
    column, counts = arrays(item.detail.get("cluster_sums") or {})
    what, n, clusters = about(item), int(counts.sum()), int(counts.size)
    found.compare(f"n of the {what}", item.n, n)
    found.compare(f"clusters of the {what}", item.detail.get("clusters"), clusters)
    means = column[:, 0] / counts
    gap = float(settle(means.mean())) if clusters else None
    found.compare(f"whether the first is higher in the {what}", True, gap is None or gap >= 0)
    item = replace(item, n=n, detail={**item.detail, **_other_tests(item, column, counts, read, found)})
    spread = float(means.var(ddof=1)) if clusters > 1 else 0.0
    own = found.compare(f"variance of the {what}", item.detail.get("variance"), spread)
    found.given("what the pairs share (their mean variance, the degrees of freedom borrowed from it, and the "
                "autocorrelation of clusters in time order) is")  # fmt: skip
    fewest = FEWEST_CONSECUTIVE if read.consecutive else FEWEST_CLUSTERS
    if gap is None or clusters < fewest:
        state = cannot_be_tested(clusters, consecutive=read.consecutive)
        found.compare(what, item.value, None)
        found.compare(f"state of the {what}", item.state, state)
        found.compare(f"gap of the {what}", item.detail.get("gap"), gap)
        one = {name: 1.0 for name in ("p", "p_own_variance") if name in item.detail}
        for name in one:
            found.compare(f"{name.replace('_', ' ')} of the {what}", item.detail[name], 1.0)
        return replace(item, value=None, state=state, low=None, high=None, detail={**item.detail, **one})
    gap = found.compare(what, item.value, gap)
    test = _serial(item, means, found) if read.consecutive else _moderated(item.detail, own, clusters)
    detail = dict(item.detail) | _compared_test(item, test, gap, found)
    if item.labels["dimension"] == AGGREGATE:
        detail |= _equivalence(item, test, gap, read, found)
        inner = test.half(read.certificate.study.level)
        for at, end in enumerate((-1, 1)):
            stated = (item.detail.get("equivalence_interval") or (None, None))[at]
            found.compare(f"equivalence interval of the {what}", stated, None if inner is None else gap + end * inner)
    elif "others" in item.detail:
        found.given("differences on the other dimensions are")
    if not read.consecutive and "p_own_variance" in detail:
        p = _moderated({}, own, clusters).p(gap)
        detail["p_own_variance"] = found.compare(f"p of the {what} (own variance)", detail["p_own_variance"], p)
    half = test.half(0.5 + read.certificate.study.level / 2)
    low, high = (None, None) if half is None else (gap - half, gap + half)
    return found.interval(replace(item, value=gap, state="ok", detail=detail), low, high)


def _moderated(detail: Mapping[str, Any], own: float, clusters: int) -> _T:
    """Moderated cluster t: the variance is never below the pair's own (Smyth 2004)."""
    own = 0.0 if own <= FLAT_VARIANCE else own
    nu, prior = clusters - 1, float(detail.get("prior_df", 0.0))
    variance = max(own, (prior * float(detail.get("mean_variance", 0.0)) + nu * own) / (prior + nu))
    return _T(math.sqrt(variance / clusters), prior + nu if variance else None, clusters)


def _serial(item: Measurement, means: Floats, found: Findings) -> _T:
    """t with the effective number of clusters, of single ones or blocks of two: whichever of them has that number."""
    rho, effective = float(item.detail.get("rho", 0.0)), item.detail.get("effective")
    tests = []
    for size in (1, 2):
        starts = np.arange(means.size // size) * size
        rows = np.add.reduceat(means, starts) / np.diff(np.append(starts, means.size))
        variance = float(rows.var(ddof=1))
        # Dependent rows vary too little around their mean.
        variance /= max(0.2, 1 - ((1 + rho) / (1 - rho) - 1) / (rows.size - 1))
        size_again = float(effective_size(rows.size, rho))
        if same(effective, size_again):
            error = math.sqrt(variance / size_again) if variance > FLAT_VARIANCE else 0.0
            tests.append(_T(error, size_again - 1 if error else None, rows.size))
    if not tests:
        found.compare(f"effective clusters of the {about(item)}", effective, float(effective_size(means.size, rho)))
        return _T(None, None, means.size)
    return min(tests, key=lambda test: (abs((test.se or 0.0) - float(item.detail.get("se", 0.0))), test.rows))


def _compared_test(item: Measurement, test: _T, value: float | None, found: Findings) -> dict[str, Any]:
    """Standard error, degrees of freedom and p of a test, compared with the stated ones."""
    again = {"standard error": ("se", test.se), "degrees of freedom": ("df", test.df), "p": ("p", test.p(value))}
    return {
        name: found.compare(f"{words} of the {about(item)}", item.detail.get(name), number)
        for words, (name, number) in again.items()
    }


def _equivalence(item: Measurement, test: _T, value: float, read: Read, found: Findings) -> dict[str, Any]:
    """The p-value of "further apart than the margin"."""
    what, clusters = f"p of equivalence of the {about(item)}", int(item.detail["clusters"])

    def p(margin: float) -> float:
        return equivalence_p(value, test.se, test.df, clusters, margin)

    near = item.detail.get("p_equivalence_at", {})
    return {
        "p_equivalence": found.compare(what, item.detail.get("p_equivalence"), p(read.certificate.rules.margin)),
        "p_equivalence_at": {
            name: found.compare(f"{what} at the margin {name}", near.get(name), p(rules.margin))
            for name, rules in ((f"{r.margin:g}", r) for r in other_margins(read.certificate.rules).values())
        },
    }


def _other_tests(item: Measurement, column: Floats, counts: Ints, read: Read, found: Findings) -> dict[str, float]:
    """Every other test that needs no random draws on so many clusters.

    Where grades are missing, these tests are of the records that every judge graded, and not of all.
    """
    stated = {name: item.detail[name] for name in OTHER_TESTS if name in item.detail and name != "p_own_variance"}
    again: dict[str, float] = {} if counts.size else dict.fromkeys(stated, 1.0)
    if counts.size and read.complete:
        again["p_cluster_t"] = float(t_test(column, counts).p[0])
        nothing: dict[str, Any] = {"resamples": 1, "rng": None, "level": 0.95, "intervals": [False]}
        if counts.size <= EXACT_CLUSTERS:
            again["p_bootstrap"] = float(bootstrap_tests([(column, counts)], **nothing)[0].p[0])
        if counts.size <= EXACT_FLIPS:
            again["p_sign_flip"] = float(flip_tests([(column, counts)], **nothing)[0].p[0])
    for name, p in stated.items():
        words = name.removeprefix("p_").replace("_", " ")
        if name in again:
            again[name] = found.compare(f"p of the {about(item)} ({words})", p, again[name])
        else:
            why = "over so many clusters" if read.complete else "where grades are missing"
            found.given(f"p-values of the {words} {why} are")
    return {name: p for name, p in again.items() if name in stated}


# --- contrasts without cluster sums -----------------------------------------------------------------------------------


def _dropped(item: Measurement, read: Read, found: Findings) -> Measurement:
    """The contrast without a judge family, from its variance."""
    if "variance" not in item.detail:
        found.given("the other contrasts of a leader without each judge family are")
        return item
    what, clusters = about(item), item.n
    found.compare(f"clusters of the {what}", item.detail.get("clusters"), clusters)
    if read.consecutive:
        test = _stated(item, read)
        if test.df is not None:
            test = replace(test, df=float(item.detail.get("effective", 0.0)) - 1)
        found.given("standard errors of contrasts without each judge family, for clusters in time order, are")
    elif clusters < FEWEST_CLUSTERS:
        test = _T(None, None, clusters)
    else:
        test = _moderated(item.detail, float(item.detail["variance"]), clusters)
    detail = dict(item.detail) | _compared_test(item, test, item.value, found)
    found.given("variances without each judge family, and p-values adjusted over all pairs without it, are")
    scales = 1 if item.labels["dimension"] == AGGREGATE else len(read.certificate.study.dimensions)
    detail["p_adjusted"] = _adjusted(what, item.detail.get("p_adjusted"), detail["p"], scales * len(read.pairs), found)
    return replace(item, detail=detail)


def _adjusted(what: str, stated: float | None, p: float, tests: int, found: Findings) -> float:
    """An adjusted p-value lies between the p-value and as many times as there are tests."""
    bounded = min(max(p if stated is None else stated, p), min(1.0, tests * p))
    return found.compare(f"adjusted p of the {what}", stated, bounded)


def _stated(item: Measurement, read: Read) -> _T:
    """The test with the standard error and degrees of freedom that are stated."""
    clusters = int(item.detail.get("clusters", item.n))
    rows = clusters // 2 if read.consecutive else clusters
    return _T(item.detail.get("se"), item.detail.get("df"), rows)


def _recusal(item: Measurement, read: Read, found: Findings) -> Measurement:
    found.given("contrasts with judges standing aside, and their standard errors, are")
    found.compare(f"clusters of the {about(item)}", item.detail.get("clusters"), item.n)
    test = _stated(item, read)
    detail = dict(item.detail) | _compared_test(item, test, item.value, found)
    half = None if item.value is None else test.half(0.5 + read.certificate.study.level / 2)
    if item.value is not None and item.labels["dimension"] == AGGREGATE:
        detail |= _equivalence(item, test, item.value, read, found)
    low, high = (None, None) if half is None or item.value is None else (item.value - half, item.value + half)
    return found.interval(replace(item, detail=detail), low, high)


def _length(item: Measurement, read: Read, found: Findings) -> Measurement:
    found.given("contrasts at equal length, their standard errors, and lengths with their slopes are")
    found.compare(f"clusters of the {about(item)}", item.detail.get("clusters"), item.n)
    test, detail = _stated(item, read), dict(item.detail)
    gap, slope = float(detail.get("gap", 0.0)), float(detail.get("slope", 0.0))
    # Where each agent always writes the same length, it cannot be told from the agent, and p is 1.
    if abs(slope) > TOLERANCE or abs(gap) < SHORTEST - TOLERANCE or detail["p"] < 1:
        detail |= _compared_test(item, test, item.value, found)
    if item.value is not None and item.labels["dimension"] == AGGREGATE:
        detail |= _equivalence(item, test, item.value, read, found)
    if "slopes" in detail:
        found.given("words about style are")
        return replace(item, detail=detail)
    value, p, raw, word = item.value or 0.0, float(detail["p"]), float(detail.get("raw", -1.0)), "may be length"
    if raw >= 0:
        word = length_rule(
            {"estimate": raw},
            {"estimate": item.value, "p_up": p / 2 if value > 0 else 1 - p / 2},
            {"estimate": slope, "p": float(detail.get("slope_p", 1.0))},
            gap,
            alpha=read.certificate.rules.alpha,
        )
    detail["word"] = found.compare(f"word for the {about(item)}", item.detail.get("word"), word)
    return replace(item, detail=detail)


def _judges(item: Measurement, read: Read, found: Findings) -> Measurement:
    found.given("contrasts over other judges, their standard errors and intervals are")
    if item.value is None:
        return item
    return replace(item, detail=dict(item.detail) | _compared_test(item, _stated(item, read), item.value, found))


def _distinct(item: Measurement, read: Read, found: Findings) -> Measurement:
    found.given("whether judges tell dimensions from the overall impression is")
    if "p" not in item.detail or "p_holm" not in item.detail:
        return item
    p, tests = float(item.detail["p"]), len(read.certificate.study.dimensions)
    return replace(
        item, detail={**item.detail, "p_holm": _adjusted(about(item), item.detail["p_holm"], p, tests, found)}
    )


ABOUT_PAIRS: Final[Mapping[str, Callable[[Measurement, Read, Findings], Measurement]]] = {
    "contrast": _contrast,
    "lofo.contrast": _dropped,
    "recusal.contrast": _recusal,
    "length.contrast": _length,
    "judges.contrast": _judges,
    "dimension.distinct": _distinct,
}

_BEFORE_ROUNDING: Final = 1e-6  # levels come from a least-squares solution
_DROPS: Final[Mapping[str, tuple[str, str]]] = {
    "contrast": ("lofo.contrast", "contrasts"),
    "score.effect": ("lofo.effect", "levels"),
    "cell.gate": ("cell.drop", "gates of control cells"),
}


# --- one measurement --------------------------------------------------------------------------------------------------


def recompute(item: Measurement, read: Read, found: Findings) -> Measurement:
    """The measurement as its own table gives it; differences and what has no table are noted in ``found``."""
    if item.level is not None:
        found.compare(f"level of the interval of the {about(item)}", item.level, read.certificate.study.level)
    if item.name in _GIVEN:
        found.given(_GIVEN[item.name])
    again = _AGAIN.get(item.name)
    return item if again is None else again(item, read, found)


_GIVEN: Final[Mapping[str, str]] = {
    "kappa.other_ddof": "kappas under the other ddof are",
    "cell.halo": "intervals of halos are",
    "cell.drop": "p-values and intervals of control cells without each judge family are",
    "score.effect": "levels of agents are",
    "length_matched.contrast": "reruns at equal length are",
    "datasheet.gate": "what the datasheets of the judges show is",
}


def kappa_again(item: Measurement, read: Read, found: Findings) -> Measurement:
    """A kappa, and those of its pairs of judges, from their contingency tables."""
    del read
    tables: Mapping[str, JSON] = item.detail.get("tables") or {}
    what = about(item)
    if not tables:
        if item.value is not None:
            found.given(f"the {what} has no tables and is")
        return item
    kappas = {pair: _kappa_of(cells) for pair, cells in tables.items()}
    stated: Mapping[str, float | None] = item.detail.get("pairs") or {}
    for pair in dict.fromkeys([*stated, *kappas]):
        found.compare(f"{what} between {pair.replace('|', ' and ')}", stated.get(pair), kappas.get(pair))
    for pair, cells in tables.items():
        found.compare(f"records behind the {what} between {pair.replace('|', ' and ')}", item.n, int(np.sum(cells)))
    known = [kappa for kappa in kappas.values() if kappa is not None]
    value = float(np.mean(known)) if len(known) == len(kappas) else None
    value = found.compare(what, item.value, value)
    if item.low is not None:
        found.given("intervals of kappa, and the number of clusters that they rest on, are")
    if item.detail.get("half_even") is not None:
        found.given("kappas under half-even rounding are")
    return _with_value(item, value)


def _kappa_of(cells: JSON) -> float | None:
    try:
        return kappa_of_table(cells)
    except NotMeasurableError:
        return None


def _one_sample(item: Measurement, read: Read, found: Findings) -> Measurement:
    """A probe or the gate of a control cell: a mean over clusters on cluster t, one-sided where it has to fall."""
    sums, what = item.detail.get("cluster_sums"), about(item)
    if not sums or item.value is None:
        if item.value is not None:
            found.given(f"the {what} has no cluster sums and is")
        return item
    column, counts = arrays(sums)
    tested = t_test(column, counts, level=read.certificate.study.level)
    p = float(tested.p[0])
    if item.labels.get("cell") in FALLING:
        p = p / 2 if tested.difference[0] < 0 else 1 - p / 2
    if "p" in item.detail:
        p = found.compare(f"p of the {what}", item.detail["p"], p)
    n = found.compare(f"n of the {what}", item.n, int(counts.sum()))
    value = found.compare(what, item.value, float(tested.difference[0]))
    low, high = (None if math.isnan(end[0]) else float(end[0]) for end in (tested.low, tested.high))
    item = found.interval(item, low, high)
    return replace(_with_value(item, value), n=n, detail={**item.detail, "p": p})


def _share(item: Measurement, read: Read, found: Findings) -> Measurement:
    below = item.detail.get("below")
    if below is None or item.value is None or not item.n:
        found.given(f"the {about(item)} is")
        return item
    found.compare(f"tokens of the {about(item)}", item.detail.get("tokens"), read.certificate.rules.cells.terse_tokens)
    return replace(item, value=found.compare(about(item), item.value, below / item.n))


def _families(item: Measurement, read: Read, found: Findings) -> Measurement:
    own = item.detail.get("own", {})
    found.compare("number of judges", item.n, len(own))
    if "judges" not in item.detail.get("unknown", ""):
        found.compare(about(item), item.value, float(len({read.certificate.study.judges.get(judge) for judge in own})))
    found.given("which judges share a family with which agents, and whether grades are missing, is")
    return item


def _autocorrelation(item: Measurement, read: Read, found: Findings) -> Measurement:
    del read
    lags, flag = item.detail.get("lags") or [None], item.detail.get("flag")
    found.compare(about(item), item.value, lags[0])
    flagged = bool(lags[0] is not None and flag is not None and lags[0] > flag)
    found.compare(f"flag of the {about(item)}", item.detail.get("flagged"), flagged)
    found.given("the dependence of clusters that follow each other is")
    return replace(item, detail={**item.detail, "flagged": flagged})


def _cell_agreement(item: Measurement, read: Read, found: Findings) -> Measurement:
    found.given("kappa over a control cell and the honest records, and what each judge family sees, is")
    by_family = item.detail.get("p")
    if item.value is None or not by_family:
        return item
    rules = read.certificate.rules
    alpha = rules.cells.alpha if item.labels["cell"] in FALLING else rules.cell_alpha
    every = all(p <= alpha + TOLERANCE for p in by_family.values())
    found.compare(f"whether every judge family shows the {about(item)}", item.detail.get("unanimous"), every)
    return replace(item, detail={**item.detail, "unanimous": every})


def _instrument(item: Measurement, read: Read, found: Findings) -> Measurement:
    del read
    if item.value is not None:
        failed = item.detail.get("failed", [])
        found.compare(f"limits that {item.labels['judge']} fails", item.value, float(len(failed)))
    return item


_AGAIN: Final[Mapping[str, Callable[[Measurement, Read, Findings], Measurement]]] = {
    "kappa.mean_pairwise": kappa_again,
    "cell.kappa": kappa_again,
    "cell.agreement": _cell_agreement,
    "panel.families": _families,
    "order.autocorrelation": _autocorrelation,
    "probe.contrast": _one_sample,
    "cell.gate": _one_sample,
    "terse.share": _share,
    "datasheet.gate": _instrument,
    **ABOUT_PAIRS,
}


def _with_value(item: Measurement, value: float | None) -> Measurement:
    if value is None:
        state = item.state if item.value is None else "undefined: both judges gave one rating"
        return replace(item, value=None, low=None, high=None, level=None, state=state)
    return replace(item, value=value, state="ok")


# --- what several measurements have to agree on -----------------------------------------------------------------------


def cells_again(items: list[Measurement], read: Read, found: Findings) -> list[Measurement]:
    """Holm over the control cells, with all judges and without each family, then each outcome by its rule."""
    families: dict[str | None, list[Measurement]] = {}
    for item in items:
        if item.name in ("cell.gate", "cell.drop"):
            families.setdefault(item.labels.get("dropped"), []).append(item)
    adjusted: dict[str, float] = {}
    for members in families.values():
        p = holm([_p_of(item) for item in members]).tolist()
        adjusted |= dict(zip([item.id for item in members], p, strict=True))
    return [_cell(item, adjusted.get(item.id, 1.0), read, found) for item in items]


def _p_of(item: Measurement) -> float:
    """The p-value of a gate; what was not tested holds its place in the family with 1."""
    p = item.detail.get("p")
    return 1.0 if p is None or item.value is None else float(p)


def _cell(item: Measurement, p_holm: float, read: Read, found: Findings) -> Measurement:
    if item.name == "cell.halo" and item.value is not None and item.detail.get("family") is not None:
        triggered = abs(item.value) >= read.certificate.rules.cells.halo - TOLERANCE
        found.compare(f"whether the {about(item)} is triggered", bool(item.detail.get("triggered")), triggered)
        return replace(item, detail={**item.detail, "triggered": triggered})
    if item.name not in ("cell.gate", "cell.drop") or item.value is None:
        return item
    p = item.detail.get("p")
    if p is None:
        return item
    p_holm = found.compare(f"p of the {about(item)} after Holm", item.detail.get("p_holm"), p_holm)
    rules, flat = read.certificate.rules, item.low is None
    outcome = cell_outcome(
        item.labels["cell"], item.value, float(p), p_holm, flat=flat, cells=rules.cells, alpha=rules.cell_alpha
    )
    found.compare(f"outcome of the {about(item)}", str(item.detail.get("outcome")), outcome)
    return replace(item, detail={**item.detail, "p_holm": p_holm, "outcome": outcome})


def halos_again(items: list[Measurement], found: Findings) -> None:
    """A halo that is not triggered is the gate number minus the number without the composer's family."""
    by_id = {item.id: item for item in items}
    for halo in items:
        if halo.name != "cell.halo" or halo.value is None or halo.detail.get("triggered"):
            continue
        cell, family = halo.labels["cell"], halo.detail.get("family")
        gate, drop = by_id.get(f"cell.gate[cell={cell}]"), by_id.get(f"cell.drop[cell={cell},dropped={family}]")
        if gate is not None:
            found.compare(f"n of the {about(halo)}", halo.n, gate.n)
        if gate is not None and drop is not None and gate.value is not None and drop.value is not None:
            found.compare(about(halo), halo.value, gate.value - drop.value)
        elif family is not None:
            found.given(f"the {about(halo)} is")


def drops_again(items: list[Measurement], read: Read, found: Findings) -> None:
    """The panel is the mean over its judges, so the numbers without each family average back to its own.

    With n judges of a family among J, the numbers without it, weighted by J - n, sum to (F - 1) J times the whole. The
    quartile that cell A is held against is no mean, so its drops are taken as given.
    """
    families = read.certificate.study.families
    judges = _judges_of(items, read, found) if read.complete else None
    by_id = {item.id: item for item in items}
    for whole in items:
        number = whole.detail.get("gap") if whole.value is None else whole.value
        if whole.name not in _DROPS or number is None:
            continue
        drop, called = _DROPS[whole.name]
        parts = {family: by_id.get(measurement_id(drop, {**whole.labels, "dropped": family})) for family in families}
        there = {family: item for family, item in parts.items() if item is not None and item.value is not None}
        for item in there.values():
            # Grades may be missing without one family and not with all.
            if read.complete:
                found.compare(f"n of the {about(item)}", item.n, whole.detail.get("clusters", whole.n))
        if judges is None or len(there) < len(families) or not _linear(whole):
            if there:
                found.given(f"{called} without each judge family are")
            continue
        back = _averaged({family: item.value or 0.0 for family, item in there.items()}, judges)
        if abs(back - number) > _BEFORE_ROUNDING:
            one, other = shown_apart(number, back)
            what = f"{about(whole)}: the certificate says {one}, its numbers without each judge family give {other}"
            found.differences[what] = None


def _averaged(without: Mapping[str, float], judges: Mapping[str, str]) -> float:
    """The panel's number from those without each family.

    >>> round(_averaged({"f": 2.0, "g": 3.0}, {"a": "f", "b": "g"}), 9)
    2.5
    """
    count = {family: sum(other == family for other in judges.values()) for family in without}
    total = sum((len(judges) - count[family]) * value for family, value in without.items())
    return total / ((len(without) - 1) * len(judges))


def _linear(whole: Measurement) -> bool:
    """Whether a number is a mean over judges; the gate of cell A is not, nor is one that leaves judges out already."""
    return whole.name != "cell.gate" or (
        whole.labels["cell"] not in ("cell_a", "red_team") and whole.detail.get("primary") == "panel"
    )


def _judges_of(items: list[Measurement], read: Read, found: Findings) -> dict[str, str] | None:
    """The families of the judges behind the tables, or None where they do not tell."""
    pairs = [pair for item in items for pair in item.detail.get("tables") or {}]
    names = sorted({name for pair in pairs for name in pair.split("|")})
    if not names:
        return None
    study = read.certificate.study
    judges = {name: study.judges.get(name, "unknown") for name in names}
    stated, tables = (", ".join(sorted(set(side))) for side in (study.families, judges.values()))
    found.compare("judge families", stated, tables)
    return judges if stated == tables and len(study.families) > 1 else None
