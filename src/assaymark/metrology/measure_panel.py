"""Measurements of the panel as an instrument: kappa by dimension and format, and what each judge's calls were worth."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

import numpy as np

from assaymark.errors import NotMeasurableError
from assaymark.metrology.bootstrap import KappaSums, wilson
from assaymark.metrology.checks import Floats, Ints
from assaymark.metrology.comparisons import Comparisons
from assaymark.metrology.contrasts import cluster_t
from assaymark.metrology.decision_study import contrast_components, dstudy_variance, generalizability
from assaymark.metrology.kappa import judge_pairs
from assaymark.metrology.measure_kappa import (
    KAPPA,
    ONE_FAMILY,
    Counted,
    categories_of,
    cross_family_pairs,
    kappa_measurements,
    kappa_state,
    plain_measurements,
)
from assaymark.metrology.panel import Panel, state_of
from assaymark.metrology.reliability import alpha_report, icc, judge_agent_variance
from assaymark.metrology.scores import ScoreTable
from assaymark.metrology.stability import averaging, repetition_stability
from assaymark.records import AGGREGATE, JSON, Measurement, content_id

# What agents did, apart from how good it was: answers in the form asked for, limits kept, time and length.
#
# None of it is graded by a judge, and none of it is a ranking: an agent that keeps every limit may still reason badly.


_WILSON: Final = (
    "Wilson interval, which takes decisions as independent; decisions of one cluster hang together, so detail has the "
    "cluster t interval beside it"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conduct:
    """One question that was put to an agent, and what came back."""

    agent: str
    cluster: str
    usable: bool
    flags: tuple[str, ...] = ()
    checks: tuple[tuple[str, bool], ...] | None = None
    seconds: float | None = None
    output_tokens: int | None = None
    tokens: int = 0


def conduct_measurements(asked: Iterable[Conduct], *, level: float = 0.95) -> Iterator[Measurement]:
    """How the agents of a study behaved: five measurements for each of them, agents in alphabetical order."""
    by_agent: dict[str, list[Conduct]] = {}
    for one in asked:
        by_agent.setdefault(one.agent, []).append(one)
    for agent in sorted(by_agent):
        own = sorted(by_agent[agent], key=lambda one: one.cluster)
        inputs = content_id(sorted(content_id(one) for one in own))
        usable = [one for one in own if one.usable]
        flags = Counter(flag for one in own for flag in one.flags)
        yield _share(
            "agent.answered",
            agent,
            [one.usable for one in own],
            [one.cluster for one in own],
            n_of="questions",
            method=f"answers in the form asked for over all questions, {_WILSON}",
            detail={"flags": dict(sorted(flags.items()))},
            level=level,
            inputs=inputs,
        )
        held = [(one.cluster, one.checks) for one in usable if one.checks is not None]
        broken = Counter(rule for _, checks in held for rule in sorted({rule for rule, kept in checks if not kept}))
        yield _share(
            "agent.limits_kept",
            agent,
            [all(kept for _, kept in checks) for _, checks in held],
            [cluster for cluster, _ in held],
            n_of="usable decisions with a book",
            method=f"decisions whose orders keep every numeric limit over all with a book, {_WILSON}",
            detail={"breaches": dict(sorted(broken.items()))},
            level=level,
            inputs=inputs,
        )
        for name, unit, absent, read in _MEDIANS:
            yield _median(name, agent, [read(one) for one in usable], unit, absent, inputs)


_MEDIANS: Final[Sequence[tuple[str, str, str, Callable[[Conduct], float | None]]]] = (
    ("agent.seconds", "seconds", "no timing: no usable decision has a time", lambda one: one.seconds),
    (
        "agent.output_tokens",
        "tokens",
        "not counted: no usable decision has a token count of its provider",
        lambda one: one.output_tokens,
    ),
    ("agent.text_tokens", "words", "undefined: no usable decision", lambda one: one.tokens),
)
"""Name, unit, the state without any value, and where the value is read."""


def flagged_measurements(texts: Iterable[tuple[str, str, bool]], *, level: float = 0.95) -> Iterator[Measurement]:
    """``agent.flagged_texts``: the share of each agent's decisions with instruction-like text; nothing if none has any."""
    found = sorted(texts)
    if not any(flag for *_, flag in found):
        return
    for agent in sorted({agent for agent, *_ in found}):
        own = [(cluster, flag) for one, cluster, flag in found if one == agent]
        yield _share(
            "agent.flagged_texts",
            agent,
            [flag for _, flag in own],
            [cluster for cluster, _ in own],
            n_of="decisions",
            method=f"decisions whose texts address the judge or imitate its prompt over all decisions, {_WILSON}",
            detail={},
            level=level,
            inputs=content_id(own),
        )


def _share(
    name: str,
    agent: str,
    hits: Sequence[bool],
    clusters: Sequence[str],
    *,
    n_of: str,
    method: str,
    detail: Mapping[str, JSON],
    level: float,
    inputs: str,
) -> Measurement:
    """A share of decisions with Wilson's interval, and the ends that clusters give it."""
    n = len(hits)
    parts: dict[str, Any] = {"name": name, "labels": {"agent": agent}, "n": n, "n_of": n_of, "method": method}
    if not n:
        return Measurement(value=None, state=f"undefined: no {n_of}", inputs=inputs, **parts)
    low, high = wilson(sum(hits), n, level=level)
    return Measurement(
        value=sum(hits) / n,
        low=low,
        high=high,
        level=level,
        inputs=inputs,
        detail={"count": sum(hits), **_over_clusters(hits, clusters, level), **detail},
        **parts,
    )


def _over_clusters(hits: Sequence[bool], clusters: Sequence[str], level: float) -> dict[str, JSON]:
    """The cluster t interval of a share, held inside 0..1; no ends where all clusters agree or there is only one."""
    found: dict[str, JSON] = {"clusters": len(set(clusters)), "t_low": None, "t_high": None}
    shares = np.array([float(hit) for hit in hits])
    if len(set(clusters)) < 2 or np.ptp(shares) == 0:
        return found
    test = cluster_t(shares, clusters, level=level)
    if test.low is not None and test.high is not None and test.high > test.low:
        found |= {"t_low": max(0.0, test.low), "t_high": min(1.0, test.high)}
    return found


def _median(name: str, agent: str, values: Sequence[float | None], unit: str, absent: str, inputs: str) -> Measurement:
    """The median of what is known, with its quartiles; how many are not known stands beside them."""
    known = [float(value) for value in values if value is not None]
    parts: dict[str, Any] = {
        "name": name,
        "labels": {"agent": agent},
        "n": len(known),
        "n_of": "usable decisions",
        "method": "median over usable decisions where it is known; quartiles by linear interpolation",
        "unit": unit,
        "inputs": inputs,
    }
    if not known:
        return Measurement(value=None, state=absent, **parts)
    lower, middle, upper = (float(end) for end in np.quantile(known, (0.25, 0.5, 0.75)))
    return Measurement(
        value=middle, detail={"lower": lower, "upper": upper, "unknown": len(values) - len(known)}, **parts
    )


_ALPHA = "Krippendorff's alpha, interval scale, of all records that two judges scored; jackknife over clusters"
_ICC = ("icc_a1", "icc_ak", "icc_c1", "icc_ck")
_IN_PARTS = "not measurable: the table was read in parts, of which only sums were kept"
_NO_RECORD = "not measurable: no record has a score"
_NO_PAIR = "undefined: no two agents share two clusters with scores from every judge"
_ONE_CYCLE = "undefined: one cycle in each cluster, needs two"
_FLAT = "undefined: agents and errors have no variance"
_LIKING = (
    "(MS of judges - MS of judges x clusters) / clusters of a contrast, half of it for each agent, mean over pairs"
)
_SQUARES = "mean squares of the differences between agents in common cycles, judges crossed with cycles in clusters"
_GENERAL = "variance of agents over itself plus half the variance of a contrast; judges and clusters as samples"
_COMPONENTS = {
    "agent": "agent", "agent_cluster": "agent x cluster", "residual": "agent x cycle", "judge_agent": "judge x agent",
    "judge_agent_cluster": "judge x agent x cluster", "disagreement": "disagreement",
}  # fmt: skip
_WITHIN = {"agent_cluster": "agent x cycle", "judge_agent_cluster": "disagreement"}


def agreement_measurements(panel: Panel, rng: np.random.Generator) -> Iterator[Measurement]:
    """Kappa, Fleiss' kappa and redundancy of the aggregate and each dimension, and kappa within formats."""
    table = panel.table
    kappas = _Kappas.of(panel) if len(set(table.families)) > 1 and table.n else None
    ratings = kappas.ratings if kappas else categories_of(panel.scores)
    yield from _kappa(panel, kappas, None, rng)
    yield from plain_measurements(panel, "kappa.fleiss", "Fleiss' unweighted kappa", lambda: _fleiss(ratings))
    redundancy = "mean Pearson correlation over pairs of judges"
    yield from plain_measurements(panel, "redundancy", redundancy, lambda: _redundancy(panel.scores))
    if len(table.formats) > 1:
        for f in range(len(table.formats)):
            yield from _kappa(panel, kappas, f, rng)


def other_ddof_measurements(panel: Panel, other: ScoreTable) -> Iterator[Measurement]:
    """Mean pairwise kappa of every name had the plan's other divisor decided whose trials are averaged."""
    ddof = 1 - panel.study.inference.ddof
    decided = averaging(panel.table, panel.study, ddof=ddof)
    common = {
        "n": panel.table.n,
        "n_of": "trajectories",
        "method": f"{KAPPA}, trials averaged where repetition stability with ddof {ddof} allows it",
        "detail": {"ddof": ddof, "averaged": dict(decided)},
    }
    state = kappa_state(panel, None, panel.table.n, 0)
    points: list[float | None] = [None] * len(panel.names)
    if state is None:
        ratings = categories_of(other.stacked)
        pairs = cross_family_pairs(panel.table.families)
        points = KappaSums.of(ratings, np.zeros(len(ratings), dtype=np.int64), 1, pairs).points()
        state = f"undefined: a pair of judges gave one rating each to all {panel.table.n} trajectories"
    for name, value in zip(panel.names, points, strict=True):
        said = "ok" if value is not None else state
        yield panel.measure("kappa.other_ddof", {"dimension": name}, value=value, state=said, **common)


@dataclass(frozen=True, slots=True)
class _Kappas:
    """Every rating counted once: sums by format and cluster, and contingency tables by format.

    ``sums`` have one place for each format and cluster, ``even`` one for each format, from halves rounded to even;
    ``tables`` [F, K, P, 5, 5].
    """

    ratings: Ints
    sums: KappaSums
    even: KappaSums
    tables: Ints

    @classmethod
    def of(cls, panel: Panel) -> _Kappas:
        table, pairs = panel.table, cross_family_pairs(panel.table.families)
        formats, clusters = len(table.formats), len(table.clusters)
        settled = np.round(panel.scores, 9)
        ratings = _on_scale(np.floor(settled + 0.5))
        even = _on_scale(np.rint(settled))
        # Contingency tables [groups, K, P, 5, 5] of ratings [n, J, K].
        left, right = np.array(pairs).T
        width, size = ratings.shape[2], 25
        shape = (formats, width, len(pairs), 5, 5)
        cells = (ratings[:, left] * 5 + ratings[:, right] - 6).transpose(0, 2, 1)
        places = cells + size * np.arange(width * len(pairs)).reshape(width, -1)
        places += size * width * len(pairs) * table.format[:, None, None]
        return cls(
            ratings,
            KappaSums.of(ratings, table.format * clusters + table.cluster, formats * clusters, pairs),
            KappaSums.of(even, table.format, formats, pairs),
            np.bincount(places.ravel(), minlength=formats * width * len(pairs) * size).reshape(shape),
        )

    def part(self, panel: Panel, f: int | None) -> Counted:
        """What was counted of one format or of all."""
        formats, clusters = len(panel.table.formats), len(panel.table.clusters)
        if f is not None:
            places = np.arange(f * clusters, (f + 1) * clusters)
            there = places[self.sums.columns[0, 0, places] > 0]
            halves = self.even.of_clusters(np.array([f])).points()
            return Counted(self.sums.of_clusters(there), halves, self.tables[f], there % clusters)
        shape = (*self.sums.columns.shape[:2], formats, clusters)
        pooled = replace(self.sums, columns=self.sums.columns.reshape(shape).sum(axis=2))
        there = np.flatnonzero(pooled.columns[0, 0] > 0)  # of some clusters no trajectory is complete
        return Counted(pooled.of_clusters(there), self.even.points(), self.tables.sum(axis=0), there)


def _on_scale(rounded: Floats) -> Ints:
    return np.clip(rounded, 1, 5).astype(np.int64)


def _kappa(panel: Panel, kappas: _Kappas | None, f: int | None, rng: np.random.Generator) -> Iterator[Measurement]:
    """Mean pairwise kappas of one format or of all; without two families or trajectories nothing was counted."""
    table = panel.table
    rows = slice(None) if f is None else table.format == f
    n, clusters = table.format[rows].size, int(np.count_nonzero(np.bincount(table.cluster[rows])))
    state = kappa_state(panel, f, n, clusters)
    counted = str(state) if state or kappas is None else kappas.part(panel, f)
    yield from kappa_measurements(panel, f, n, clusters, counted, rng)


def _fleiss(ratings: Ints) -> list[float | str]:
    """`fleiss_kappa` of every column of ratings [n, J, K], or its state."""
    n, judges, width = ratings.shape
    columns = np.ascontiguousarray(ratings.transpose(2, 1, 0))
    agree = sum(np.count_nonzero(columns[:, a] == columns[:, b], axis=1) for a, b in judge_pairs(judges))
    places = columns - 1 + 5 * np.arange(width)[:, None, None]
    counts = np.bincount(places.ravel(), minlength=5 * width).reshape(width, 5)
    observed = 2 * agree / (n * judges * (judges - 1))
    chance = np.square(counts / (n * judges)).sum(axis=1)
    flat = (counts == n * judges).any(axis=1)
    kappa = (observed - chance) / np.where(flat, 1.0, 1.0 - chance)
    state = f"undefined: all {n * judges} ratings are the same"
    return [state if same else value for same, value in zip(flat.tolist(), kappa.tolist(), strict=True)]


def _redundancy(scores: Floats) -> list[float | str]:
    """`mean_correlation` of every column of scores [n, J, K], or its state."""
    columns = np.ascontiguousarray(scores.transpose(1, 2, 0))
    spread = np.ptp(columns, axis=2)
    away = columns - columns.mean(axis=2, keepdims=True)
    norms = np.sqrt(np.square(away).sum(axis=2))
    away /= np.where(norms > 0, norms, 1.0)[:, :, None]
    pairs = judge_pairs(columns.shape[0])
    mean = sum((away[a] * away[b]).sum(axis=1) for a, b in pairs) / len(pairs)
    flat, worst = (spread.min(axis=0) <= 1e-9).tolist(), (spread.argmin(axis=0) + 1).tolist()
    return [
        f"undefined: judge {judge} gave a single score" if same else value
        for same, judge, value in zip(flat, worst, np.clip(mean, -1, 1).tolist(), strict=True)
    ]


def alpha_measurements(found: Comparisons, level: float, make: Callable[..., Measurement]) -> Iterator[Measurement]:
    """Krippendorff's alpha on every scale, which judge pulls it down, and the panel's intraclass correlations."""
    for s, name in enumerate(found.names):
        grades, clusters = found.ratings(s)
        parts: dict[str, Any] = {"n": len(grades), "n_of": "trajectories", "method": _ALPHA}
        if len(set(found.families)) < 2 or found.in_parts or not grades.size:
            state = _IN_PARTS if found.in_parts else ONE_FAMILY if len(set(found.families)) < 2 else _NO_RECORD
            yield make("panel.alpha", {"dimension": name}, value=None, state=state, **parts)
            continue
        line = np.argsort(clusters, kind="stable")
        report = alpha_report(grades[line], clusters[line], level=level, consecutive=found.consecutive)
        one = report.alpha
        whole = grades[~np.isnan(grades).any(axis=1)]
        known = icc(whole) if len(whole) > 1 else None
        without = {
            found.judges[j]: {
                "alpha": rest.alpha,
                "gain": rest.gain.estimate,
                "low": rest.gain.low,
                "high": rest.gain.high,
                "pulls_down": rest.pulls_down,
            }
            for j, rest in report.without.items()
        }
        yield make(
            "panel.alpha",
            {"dimension": name},
            value=one.estimate,
            state="ok" if one.estimate is not None else one.state,
            low=one.low,
            high=one.high,
            level=level if one.low is not None else None,
            detail={
                "without": without if len(found.judges) > 2 else {},
                "icc": {kind: None if known is None else getattr(known, kind) for kind in _ICC},
            },
            **parts,
        )


def variance_measurements(found: Comparisons, make: Callable[..., Measurement]) -> Iterator[Measurement]:
    """Variance components of a contrast of two agents, and how well the design tells agents apart on average."""
    parts: dict[str, Any] = {"n": len(found.clusters), "n_of": "clusters"}
    lacking = ONE_FAMILY if len(set(found.families)) < 2 else _NO_PAIR
    state, known, liking = _IN_PARTS if found.in_parts else lacking, None, np.full(len(found.names), np.nan)
    if lacking == _NO_PAIR and found.judge_means.size:
        with suppress(NotMeasurableError):
            liking = np.array([judge_agent_variance(means) for means in found.judge_means])
        if not found.in_parts:
            known = contrast_components(found.cells, found.cluster, liking)
    for s, name in enumerate(found.names):
        for part, title in _COMPONENTS.items():
            value = (
                float(liking[s]) if part == "judge_agent" else math.nan if known is None else float(known.v[part][s])
            )
            method = _LIKING if part == "judge_agent" else _SQUARES
            alone = known is not None and math.isnan(known.v["residual"][s])
            if alone and part in _WITHIN:
                method = f"{method}; with one cycle in each cluster it includes {_WITHIN[part]}"
            why = lacking if part == "judge_agent" else _ONE_CYCLE if alone else state
            labels = {"dimension": name, "part": title}
            one = {"value": None, "state": why} if math.isnan(value) else {"value": value}
            yield make("panel.variance", labels, unit="squared points", method=f"{method}; not below 0", **one, **parts)
        said: dict[str, Any] = {"value": None, "state": state}
        if known is not None:
            v, agent = {part: float(value[s]) for part, value in known.of_means.items()}, float(known.v["agent"][s])
            clusters, judges = round(known.clusters), len(found.judges)
            said = {"value": None, "state": _FLAT}
            with suppress(NotMeasurableError):
                said = {"value": generalizability(agent, v, clusters, 1, judges, 1)}
            said["detail"] = {"agent": agent, "error": dstudy_variance(v, clusters, 1, judges, 1) / 2}
        yield make("panel.generalizability", {"dimension": name}, method=_GENERAL, **said, **parts)


def judge_measurements(panel: Panel) -> Iterator[Measurement]:
    """Repetition stability under both divisors and share of unusable calls of each judge; noise floor of each agent."""
    for ddof in (0, 1):
        decided = averaging(panel.table, panel.study, ddof=ddof)
        for judge in panel.table.judges:
            yield _stability(panel, judge, ddof, decided.get(judge, False))
    for judge in panel.table.judges:
        calls = panel.table.calls[judge]
        low, high = wilson(calls.invalid + calls.refused, calls.total, level=panel.study.inference.level)
        yield panel.measure(
            "judge.invalid_share",
            {"judge": judge},
            value=(calls.invalid + calls.refused) / calls.total,
            n=calls.total,
            n_of="calls",
            method="calls without a usable score over all calls, Wilson interval",
            low=low,
            high=high,
            level=panel.study.inference.level,
            detail={"ok": calls.ok, "invalid": calls.invalid, "refused": calls.refused, "reasons": dict(calls.reasons)},
        )
    for agent in panel.table.agents:
        yield _floor(panel, agent)


def _stability(panel: Panel, judge: str, ddof: int, averaged: bool) -> Measurement:
    """Repetition stability; ``averaged`` is whether this divisor lets the judge's trials be averaged."""
    trials = panel.table.trials[judge]
    common = {
        "n": trials.shape[0],
        "n_of": "trajectories",
        "method": f"1 - mean variance within trajectories / variance of all trials, ddof {ddof}",
        "detail": {
            "gate": panel.study.gates.repetition_stability,
            "trials": trials.shape[1],
            "averaged": averaged,
        },
    }
    labels = {"judge": judge, "ddof": str(ddof)}
    if trials.shape[1] < 2:
        state = "undefined: one trial, needs two"
    elif trials.shape[0] < 2:
        state = f"undefined: {trials.shape[0]} trajectories with every trial usable, needs two"
    else:
        try:
            value = repetition_stability(trials, ddof=ddof)
            return panel.measure("noise.repetition_stability", labels, value=value, **common)
        except NotMeasurableError as exc:
            state = state_of(exc)
    return panel.measure("noise.repetition_stability", labels, value=None, state=state, **common)


def _floor(panel: Panel, agent: str) -> Measurement:
    groups = panel.table.replicates.get(agent, ())
    common = {
        "n": sum(len(group) for group in groups),
        "n_of": "replicates",
        "method": "pooled standard deviation of the aggregate between replicates of one cycle",
        "unit": "rubric points",
        "detail": {"dimension": AGGREGATE, "cycles": len(groups)},
    }
    labels = {"agent": agent}
    if not groups:
        return panel.measure("noise.agent_floor", labels, value=None, state="undefined: no replicates", **common)
    squares = sum(float(np.square(np.array(group) - np.mean(group)).sum()) for group in groups)
    freedom = sum(len(group) - 1 for group in groups)
    return panel.measure("noise.agent_floor", labels, value=float(np.sqrt(squares / freedom)), **common)


class Replies(Protocol):
    """What `missing_measurements` reads of a table, or of its sums."""

    @property
    def agents(self) -> tuple[str, ...]:
        """Names."""

    @property
    def replies(self) -> Ints:
        """What each judge was asked about each agent, with and without a usable answer [J, A, 2]."""

    @property
    def digest(self) -> str:
        """A short hash of everything in it."""

    @property
    def asked(self) -> dict[str, int]:
        """Replies asked for, by judge."""

    def missing(self) -> tuple[dict[str, float], dict[tuple[str, str], float]]:
        """Shares that are missing, by judge, and by judge and agent."""


def missing_measurements(table: Replies, left_out: Mapping[str, str]) -> Iterator[Measurement]:
    """Shares of replies that were asked for and did not come or could not be read, by judge and by agent."""
    (by_judge, by_pair), asked = table.missing(), table.asked
    common: dict[str, Any] = {
        "n_of": "replies asked for",
        "method": "share without a usable reply",
        "inputs": table.digest,
    }
    judges = [*asked]
    for judge, share in by_judge.items():
        own = {agent: value for (one, agent), value in by_pair.items() if one == judge and value}
        detail: dict[str, JSON] = {"by_agent": own, "left_out": left_out.get(judge, "")}
        if own:
            detail |= lacking_records(table.agents, table.replies, judges.index(judge))
        yield Measurement(
            name="missing.share",
            labels={"judge": judge},
            value=share,
            n=asked[judge],
            detail=detail,
            **common,
        )
    for agent in table.agents:
        shares = [share for (_, one), share in by_pair.items() if one == agent]
        if shares:
            value = float(np.mean(shares))
            yield Measurement(name="missing.share", labels={"agent": agent}, value=value, n=len(shares), **common)


def lacking_records(agents: Sequence[str], replies: Ints, at: int) -> dict[str, JSON]:
    """Of whom judge ``at`` lacks records, and whether more than chance leaves out of the ``replies`` [J, A, 2]."""
    from scipy.stats import hypergeom  # here, because it takes every command a third of a second to load

    usable, unusable = replies[at, :, 0], replies[at, :, 1]
    asked, tests = usable + unusable, replies[..., 0].size
    p = np.minimum(1.0, tests * hypergeom.sf(unusable - 1, asked.sum(), unusable.sum(), asked))
    lost = np.flatnonzero(unusable).tolist()
    return {
        "records": int(asked.sum()),
        "lacking": {agents[a]: [int(unusable[a]), int(asked[a])] for a in lost},
        "p_more": {agents[a]: float(p[a]) for a in lost},
    }
