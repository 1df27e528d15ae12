"""Measurements of the panel: agreement by dimension and format, stability and failures of judges, agent behaviour."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any, Final

import numpy as np

from assaymark.errors import NotMeasurableError
from assaymark.metrology import reliability
from assaymark.metrology.bootstrap import Interval, KappaSums, wilson
from assaymark.metrology.checks import Floats, Ints
from assaymark.metrology.comparisons import Comparisons, natural
from assaymark.metrology.contrasts import FLAT_VARIANCE, cluster_t
from assaymark.metrology.estimates import IN_PARTS, ONE_FAMILY, POINTS, Maker, neighbour_blocks, number, state_of
from assaymark.metrology.kappa import Pair, averaging, judge_pairs, repetition_stability, settled_half_up
from assaymark.metrology.panel import RESAMPLES, Panel
from assaymark.metrology.scores import ScoreTable
from assaymark.metrology.sums import ScoreSums
from assaymark.protocol import SCALE, RubricChoice, Scale, scale_words
from assaymark.quantiles import wilson_ends
from assaymark.records import AGGREGATE, JSON, Measurement, content_id, grouped

_WILSON: Final = (
    "Wilson interval, which takes decisions as independent; decisions of one cluster hang together, so detail has the "
    "cluster t interval beside it"
)


@dataclass(frozen=True, slots=True)
class AgentBehaviour:
    """One question to an agent, and the properties of its answer.
    ``checks`` are the numeric limits checked against the portfolio after the orders, as (rule, kept); None without one.
    ``seconds`` and ``output_tokens`` are of the call, None if unknown; ``tokens`` are words of the text.
    """

    agent: str
    cluster: str
    usable: bool
    flags: tuple[str, ...] = ()
    checks: tuple[tuple[str, bool], ...] | None = None
    seconds: float | None = None
    output_tokens: int | None = None
    tokens: int = 0


def conduct_measurements(asked: Iterable[AgentBehaviour], level: float = 0.95) -> Iterator[Measurement]:
    """Make five measurements of each agent's behaviour, agents in alphabetical order."""
    for agent, own in sorted(grouped(asked, lambda behaviour: behaviour.agent).items()):
        behaviours = sorted(own, key=lambda behaviour: behaviour.cluster)
        usable = [behaviour for behaviour in behaviours if behaviour.usable]
        make = partial(Measurement, inputs=content_id(sorted(content_id(behaviour) for behaviour in behaviours)))
        flags = Counter(flag for behaviour in behaviours for flag in behaviour.flags)
        checked = [(behaviour.cluster, behaviour.checks) for behaviour in usable if behaviour.checks is not None]
        broken = Counter(rule for _, checks in checked for rule in sorted({rule for rule, met in checks if not met}))
        yield _share(make, "agent.answered", agent, [(b.cluster, b.usable) for b in behaviours], "questions", level,
                     "answers in the form asked for over all questions",
                     {"flags": dict(sorted(flags.items()))})  # fmt: skip
        yield _share(make, "agent.limits_kept", agent,
                     [(cluster, all(passed for _, passed in checks)) for cluster, checks in checked],
                     "usable decisions with a book", level,
                     "decisions whose orders keep every numeric limit over all with a book",
                     {"breaches": dict(sorted(broken.items()))})  # fmt: skip
        for name, unit, absent in (
            ("seconds", "seconds", "no timing: no usable decision has a time"),
            ("output_tokens", "tokens", "not counted: no usable decision has a token count of its provider"),
            ("text_tokens", "words", "undefined: no usable decision"),
        ):
            values = [getattr(behaviour, name.removeprefix("text_")) for behaviour in usable]
            counts = [float(value) for value in values if value is not None]
            lower, middle, upper = np.quantile(counts, (0.25, 0.5, 0.75)).tolist() if counts else (None, None, None)
            detail = {"lower": lower, "upper": upper, "unknown": len(values) - len(counts)} if counts else {}
            method = "median over usable decisions where it is known; quartiles by linear interpolation"
            yield number(make, f"agent.{name}", {"agent": agent}, middle, (len(counts), "usable decisions"), method,
                         absent, detail, None, None, unit)  # fmt: skip


def flagged_measurements(texts: Iterable[tuple[str, str, bool]], level: float = 0.95) -> Iterator[Measurement]:
    """Measure ``agent.flagged_texts``: each agent's share of (agent, cluster, flagged) with instruction-like text."""
    rows = sorted(texts)
    for agent in sorted({agent for agent, *_ in rows}) if any(flag for *_, flag in rows) else ():
        hits = [(cluster, flag) for name, cluster, flag in rows if name == agent]
        method = "decisions whose texts address the judge or imitate its prompt over all decisions"
        make = partial(Measurement, inputs=content_id(hits))
        yield _share(make, "agent.flagged_texts", agent, hits, "decisions", level, method, {})


def _share(
    make: Maker, name: str, agent: str, hits: Sequence[tuple[str, bool]], n_of: str, level: float, description: str,
    more: Mapping[str, JSON],
) -> Measurement:  # fmt: skip
    """Measure a share of decisions (cluster, hit) with Wilson's interval; cluster-robust ends are in the detail."""
    n, count, detail = len(hits), sum(hit for _, hit in hits), dict[str, JSON]()
    if n:
        clusters, shares = [cluster for cluster, _ in hits], np.array([float(hit) for _, hit in hits])
        detail = {"count": count, "clusters": len(set(clusters)), "t_low": None, "t_high": None, **more}
        if len(set(clusters)) > 1 and np.ptp(shares):
            test = cluster_t(shares, clusters, level)
            if test.low is not None and test.high is not None and test.high > test.low:
                detail |= {"t_low": max(0.0, test.low), "t_high": min(1.0, test.high)}
    return number(make, name, {"agent": agent}, count / n if n else None, (n, n_of), f"{description}, {_WILSON}",
                  f"undefined: no {n_of}", detail, wilson(count, n, level=level) if n else None, level)  # fmt: skip


_NO_CATEGORIES: Final = "not measured: this plan compares scores by their intraclass correlation, not by categories"


def agreement_method(rubric: RubricChoice) -> str:
    """Describe the method of ``kappa.mean_pairwise`` under a plan."""
    if rubric.coefficient == "alpha":
        return _ALPHA.partition(";")[0] + "; trials averaged, not rounded"
    if rubric.coefficient == "icc":
        return (
            "mean of pairwise intraclass correlations ICC(A,1) over judges of different families; "
            "trials averaged, not rounded"
        )
    return (
        "mean of pairwise quadratic-weighted kappa over judges of different families; "
        f"trials averaged, halves rounded up, clipped to {scale_words(rubric.scale)}"
    )


def categories_of(scores: Floats, scale: Scale = SCALE) -> Ints:
    """Convert averaged scores to ratings from 1 for the lowest: rounded with halves up, then clipped."""
    return np.clip(settled_half_up(scores), *scale).astype(np.int64) - (int(scale[0]) - 1)


def cross_family_pairs(families: tuple[str, ...]) -> list[Pair]:
    """Return pairs of judges of different families; judges of one family agree for reasons other than quality."""
    return [(a, b) for a, b in combinations(range(len(families)), 2) if families[a] != families[b]]


@dataclass(frozen=True, slots=True, eq=False)
class Ratings:
    """The sums from which the agreement of judges follows, for K names, F formats and G clusters.
    ``sums`` [., K, F * G] are of pairs of judges of different families, ``halves`` [., K, F] the same by format with
    halves rounded to even; ``tables`` [F, K, P, S, S] are contingency tables of all pairs. Scores that are not rounded
    have neither. ``products`` [K, J, J] are products of two judges' unrounded scores, centred."""

    sums: KappaSums
    halves: KappaSums | None
    tables: Ints | None
    products: Floats

    @classmethod
    def of(cls, panel: Panel) -> Ratings:
        """Sum the scores of a panel with judges of several families."""
        return cls.of_scores(panel) if panel.sums is None else cls.of_sums(panel, panel.sums)

    @classmethod
    def of_scores(cls, panel: Panel) -> Ratings:
        """Sum the scores of a table in memory."""
        table, rubric, scores = panel.table, panel.study.rubric, panel.scores
        formats, clusters, s = len(table.formats), len(table.clusters), rubric.categories
        every, pairs = judge_pairs(len(table.judges)), cross_family_pairs(table.families)
        away = (scores - scores.mean(axis=0)).transpose(2, 1, 0)
        products, places = away @ away.transpose(0, 2, 1), table.format * clusters + table.cluster
        if rubric.coefficient == "icc":
            origin = sum(rubric.scale) / 2
            return cls(KappaSums.of(scores, places, formats * clusters, pairs, origin, "icc"), None, None, products)
        ratings, even = (categories_of(x, rubric.scale) for x in (scores, np.rint(np.round(scores, 9))))
        # The cell [n, K, P] of each record in the tables of all formats.
        left, right = np.array(every).T
        shape = formats, len(panel.names), len(every), s, s
        cells = (ratings[:, left] * s + ratings[:, right] - (s + 1)).transpose(0, 2, 1)
        cells += s * s * np.arange(shape[1] * shape[2]).reshape(shape[1], -1)
        cells += math.prod(shape[1:]) * table.format[:, None, None]
        tables = np.bincount(cells.ravel(), minlength=math.prod(shape)).reshape(shape)
        sums, halves = (
            KappaSums.of(x, codes, size, pairs)
            for x, codes, size in ((ratings, places, formats * clusters), (even, table.format, formats))
        )
        return cls(sums, halves, tables, products)

    @classmethod
    def of_sums(cls, panel: Panel, sums: ScoreSums) -> Ratings:
        """Sum the contingency tables of levels, with the results of `of_scores` on the table."""
        layout, rubric, pairs = sums.layout, panel.study.rubric, cross_family_pairs(panel.table.families)
        judges, values = len(layout.judges), [layout.values(k) for k in range(len(sums.tables))]
        products = np.zeros((len(values), judges, judges))
        for k, (tables, x) in enumerate(zip(sums.tables, values, strict=True)):
            for (a, b), table in zip(layout.pairs, tables.sum(axis=(0, 1)), strict=True):
                rows, columns = table.sum(axis=1), table.sum(axis=0)
                u, v = x - rows @ x / rows.sum(), x - columns @ x / columns.sum()
                products[k, [a, b, a], [a, b, b]] = rows @ (u * u), columns @ (v * v), u @ table @ v
        flat = [table.reshape(-1, *table.shape[2:]) for table in sums.tables]  # by format and cluster
        if rubric.coefficient == "icc":
            origin = sum(rubric.scale) / 2
            return cls(
                KappaSums.of_tables(flat, [x - origin for x in values], judges, pairs, "icc"), None, None, products
            )
        rating = np.arange(1, layout.categories + 1)

        def rated(rounded: Sequence[Ints]) -> list[Ints]:
            """Convert tables of levels [F * G, P, ., .] to tables of ratings, from each level's rating."""
            to = [(levels[:, None] == rating).astype(np.int64) for levels in rounded]
            return [np.asarray(one.T @ table @ one) for one, table in zip(to, flat, strict=True)]

        up, even = (
            rated([categories_of(x, layout.scale) for x in each])
            for each in (values, [np.rint(np.round(x, 9)) for x in values])
        )
        centred = [rating - rating[rating.size // 2]] * len(values)
        by_format = [table.reshape(*sums.sizes.shape, *table.shape[1:]).sum(axis=1) for table in (*up, *even)]
        return cls(
            KappaSums.of_tables(up, centred, judges, pairs),
            KappaSums.of_tables(by_format[len(up) :], centred, judges, pairs),
            np.stack(by_format[: len(up)], axis=1), products,
        )  # fmt: skip

    def fleiss(self, n: int) -> list[float | str]:
        """Compute `fleiss_kappa` of each name, or its state, from the contingency tables of all pairs of judges."""
        assert self.tables is not None
        tables, judges = self.tables.sum(axis=0), self.sums.judges
        observed = np.trace(tables, axis1=2, axis2=3).sum(axis=1) / (n * math.comb(judges, 2))
        # Every judge is in J - 1 pairs, so the margins of all pairs count each rating J - 1 times.
        shares = (tables.sum(axis=(1, 3)) + tables.sum(axis=(1, 2))) / (n * judges * (judges - 1))
        flat, chance = (shares == 1).any(axis=1), np.square(shares).sum(axis=1)
        kappa = (observed - chance) / np.where(flat, 1.0, 1.0 - chance)
        state = f"undefined: all {n * judges} ratings are the same"
        return [state if same else value for same, value in zip(flat.tolist(), kappa.tolist(), strict=True)]

    def redundancy(self, n: int) -> list[float | str]:
        """Compute the mean correlation over pairs of judges of each name, or its state."""
        squares = np.diagonal(self.products, axis1=1, axis2=2)
        flat, (a, b) = squares <= n * FLAT_VARIANCE, np.triu_indices(squares.shape[1], 1)
        spread = np.sqrt(np.where(flat, 1.0, squares))
        mean = np.clip((self.products[:, a, b] / (spread[:, a] * spread[:, b])).mean(axis=1), -1, 1)
        return [f"undefined: judge {same.argmax() + 1} gave a single score" if same.any() else value
                for same, value in zip(flat, mean.tolist(), strict=True)]  # fmt: skip


def agreement_measurements(panel: Panel, rng: np.random.Generator) -> Iterator[Measurement]:
    """Measure kappa, Fleiss' kappa and redundancy of the aggregate and each dimension, and kappa within formats."""
    table, gates, sizes = panel.table, panel.study.gates, panel.sizes
    general = ONE_FAMILY if len(set(table.families)) < 2 else panel.missing
    ratings: Ratings | str = Ratings.of(panel) if general is None else general
    for f in (None, *(range(len(table.formats)) if len(table.formats) > 1 else ())):
        counts, part = sizes.sum(axis=0) if f is None else sizes[f], ratings
        n, clusters = int(counts.sum()), np.flatnonzero(counts)
        few = f is not None and (n < gates.format_min_records or clusters.size < gates.format_min_clusters)
        if few and general != ONE_FAMILY:
            part = f"too few to gate: {n} records in {clusters.size} cluster{'' if clusters.size == 1 else 's'}"
        yield from _kappas(panel, part, f, n, clusters, rng)
        for name, method, uncounted, statistic in () if f is not None else (
            ("kappa.fleiss", "Fleiss' unweighted kappa", panel.study.rubric.coefficient == "icc", Ratings.fleiss),
            ("redundancy", "mean Pearson correlation over pairs of judges", False, Ratings.redundancy),
        ):  # fmt: skip
            values: list[float | str] = [_NO_CATEGORIES if general is None else general] * len(panel.names)
            if isinstance(ratings, Ratings) and not uncounted:
                values = statistic(ratings, n)
            for dimension, value in zip(panel.names, values, strict=True):
                estimate, reason = (None, value) if isinstance(value, str) else (value, "")
                yield panel.number(name, {"dimension": dimension}, estimate, (n, "trajectories"), method, reason)


def _kappas(
    panel: Panel, ratings: Ratings | str, f: int | None, n: int, clusters: Ints, rng: np.random.Generator
) -> Iterator[Measurement]:
    """Measure mean pairwise kappas of all names, in one format or (None) all, with two intervals; ``ratings`` may be
    the reason for having none."""
    plan, rubric, judges, kind = panel.study.inference, panel.study.rubric, panel.table.judges, "kappa.mean_pairwise"
    labels, count = {} if f is None else {"format": panel.table.formats[f]}, (n, "trajectories")
    how, form = agreement_method(rubric), rubric.coefficient
    common: dict[str, JSON] = {"clusters": clusters.size} | ({} if form == "kappa" else {"coefficient": form})
    if isinstance(ratings, str):
        for name in panel.names:
            yield panel.number(kind, {"dimension": name, **labels}, None, count, how, ratings, common)
        return

    def chosen(sums: KappaSums) -> Floats:
        """Return the columns of one format, or of all, by cluster."""
        columns = sums.columns.reshape(*sums.columns.shape[:2], len(panel.table.formats), -1)
        return np.ascontiguousarray(columns.sum(axis=2) if f is None else columns[:, :, f])

    sums = replace(ratings.sums, columns=chosen(ratings.sums)[:, :, clusters])
    jacks: list[Interval | str] = ["no interval: one cluster, needs two"] * len(panel.names)
    boots = jacks
    if sums.clusters > 1:
        boots = sums.bootstrap(plan.level, plan.resamples or RESAMPLES, rng)
        blocks = None
        if plan.order_of(panel.table.clusters) == "consecutive":
            times = [natural(panel.table.clusters[g]) for g in clusters]
            blocks = neighbour_blocks(len(times))[np.argsort(sorted(range(len(times)), key=times.__getitem__))]
        jacks = sums.jackknife(plan.level, blocks)
    pairs, points = [f"{judges[a]}|{judges[b]}" for a, b in sums.pairs], sums.points()
    tables, halves = None, list[float | None]()
    if ratings.tables is not None and ratings.halves is not None:
        cross = [judge_pairs(len(judges)).index(pair) for pair in sums.pairs]
        tables = (ratings.tables.sum(axis=0) if f is None else ratings.tables[f])[:, cross].tolist()
        halves = replace(ratings.halves, columns=chosen(ratings.halves)).points()
    for k, (name, kappas) in enumerate(zip(panel.names, sums.of_all().T.tolist(), strict=True)):
        by_pair: dict[str, Any] = {
            pair: None if math.isnan(kappa) else kappa for pair, kappa in zip(pairs, kappas, strict=True)
        }
        detail = common | {"pairs": by_pair}
        if tables is None:
            detail["sums"] = dict(zip(pairs, sums.of_pairs(k), strict=True))
        else:
            detail |= {"tables": dict(zip(pairs, tables[k], strict=True)), "half_even": halves[k]}
        jack, boot, method, ends = jacks[k], boots[k], how, None
        if points[k] is not None:
            low, high = (boot.low, boot.high) if isinstance(boot, Interval) and boot.low < boot.high else (None, None)
            detail["bootstrap"] = {"low": low, "high": high, "method": boot if isinstance(boot, str) else boot.method}
            method = f"{how}; {jack if isinstance(jack, str) else jack.method}"
            ends = None if isinstance(jack, str) else (jack.low, jack.high)
        constant = ", ".join(pair for pair, kappa in by_pair.items() if kappa is None)
        state = f"undefined: both judges gave one rating to all {n} trajectories ({constant})"
        yield panel.number(kind, {"dimension": name, **labels}, points[k], count, method, state, detail, ends)


def other_ddof_measurements(panel: Panel, other: ScoreTable) -> Iterator[Measurement]:
    """Measure every mean pairwise kappa as if the other divisor decided which trials are averaged (``other``)."""
    ddof = 1 - panel.study.inference.ddof
    method = (
        f"{agreement_method(panel.study.rubric)}, trials averaged where repetition stability with ddof {ddof} allows it"
    )
    state = ONE_FAMILY if len(set(panel.table.families)) < 2 else panel.missing
    points: list[float | None] = [None] * len(panel.names)
    if state is None:
        form, scores, pairs = panel.study.rubric.coefficient, other.stacked, cross_family_pairs(panel.table.families)
        ratings = scores if form == "icc" else categories_of(scores, panel.study.scale)
        points = KappaSums.of(ratings, np.zeros(len(ratings), dtype=np.int64), 1, pairs, form=form).points()
        state = f"undefined: a pair of judges gave one rating each to all {panel.table.n} trajectories"
    detail: dict[str, JSON] = {"ddof": ddof, "averaged": dict(averaging(panel.table, panel.study, ddof))}
    if panel.study.rubric.coefficient == "icc":
        detail["coefficient"] = "icc"
    for name, value in zip(panel.names, points, strict=True):
        yield panel.number("kappa.other_ddof", {"dimension": name}, value, (panel.table.n, "trajectories"), method,
                           state, detail)  # fmt: skip


_ALPHA = "Krippendorff's alpha, interval scale, of all records that two judges scored; jackknife over clusters"
_LIKING = (
    "(MS of judges - MS of judges x clusters) / clusters of a contrast, half of it for each agent, mean over pairs"
)
_SQUARES = "mean squares of the differences between agents in common cycles, judges crossed with cycles in clusters"
_GENERAL = "variance of agents over itself plus half the variance of a contrast; judges and clusters as samples"
_NO_PAIR = "undefined: no two agents share two clusters with scores from every judge"
_COMPONENTS = {
    "agent": "agent", "agent_cluster": "agent x cluster", "residual": "agent x cycle", "judge_agent": "judge x agent",
    "judge_agent_cluster": "judge x agent x cluster", "disagreement": "disagreement",
}  # fmt: skip
_WITHIN = {"agent_cluster": "agent x cycle", "judge_agent_cluster": "disagreement"}


def alpha_measurements(comparisons: Comparisons, level: float, make: Maker) -> Iterator[Measurement]:
    """Measure Krippendorff's alpha on every scale, alpha without each judge, and the intraclass correlations."""
    for s, name in enumerate(comparisons.names):
        grades, clusters = comparisons.ratings(s)
        count, labels = (len(grades), "trajectories"), {"dimension": name}
        if len(set(comparisons.families)) < 2 or comparisons.in_parts or not grades.size:
            one_family = ONE_FAMILY if len(set(comparisons.families)) < 2 else "not measurable: no record has a score"
            state = IN_PARTS if comparisons.in_parts else one_family
            yield number(make, "panel.alpha", labels, None, count, _ALPHA, state)
            continue
        line = np.argsort(clusters, kind="stable")
        report = reliability.alpha_report(grades[line], clusters[line], level, comparisons.consecutive)
        complete = grades[~np.isnan(grades).any(axis=1)]
        whole_icc = reliability.icc(complete) if len(complete) > 1 else None
        without: dict[str, Any] = {
            comparisons.judges[j]: {"alpha": rest.alpha, "gain": rest.gain.estimate, "low": rest.gain.low,
                              "high": rest.gain.high, "pulls_down": rest.pulls_down}
            for j, rest in report.without.items()
        }  # fmt: skip
        kinds = ("icc_a1", "icc_ak", "icc_c1", "icc_ck")
        detail: dict[str, JSON] = {"without": without if len(comparisons.judges) > 2 else {}}
        detail["icc"] = {kind: None if whole_icc is None else getattr(whole_icc, kind) for kind in kinds}
        yield number(make, "panel.alpha", labels, report.alpha, count, _ALPHA, "ok", detail, None, level)


def alpha_agreement(comparisons: Comparisons, rubric: RubricChoice, level: float, make: Maker) -> Iterator[Measurement]:
    """Measure ``kappa.mean_pairwise`` for plans with Krippendorff's alpha, over all records scored by two judges.

    Pairs of judges of one family are included, and agreement is not measured within formats.
    """
    method, origin = agreement_method(rubric), sum(rubric.scale) / 2
    for s, item in enumerate(alpha_measurements(comparisons, level, make)):
        grades, clusters = comparisons.ratings(s)
        sums, paired = reliability.alpha_sums(grades - origin)
        ratings, pairs = {"": sums.tolist()}, dict[str, Any]()
        for a, b in cross_family_pairs(comparisons.families):
            parts, _ = reliability.alpha_sums(grades[:, [a, b]] - origin)
            pair, value = f"{comparisons.judges[a]}|{comparisons.judges[b]}", float(reliability.alpha_of_sums(*parts))
            ratings[pair], pairs[pair] = parts.tolist(), None if math.isnan(value) else value
        detail: dict[str, JSON] = {"clusters": int(np.unique(clusters[paired]).size), "coefficient": "alpha"}
        detail |= {"pairs": pairs, "ratings": ratings} if item.value is not None else {}
        yield replace(item, name="kappa.mean_pairwise", n=int(paired.sum()), detail=detail,
                      method=f"{method}; delete-one-cluster jackknife" if item.low is not None else method)  # fmt: skip


def variance_measurements(comparisons: Comparisons, make: Maker) -> Iterator[Measurement]:
    """Measure the variance components of a contrast of two agents, and the design's generalizability coefficient."""
    count = len(comparisons.clusters), "clusters"
    lacking = ONE_FAMILY if len(set(comparisons.families)) < 2 else _NO_PAIR
    state, parts, liking = IN_PARTS if comparisons.in_parts else lacking, None, np.full(len(comparisons.names), np.nan)
    if lacking == _NO_PAIR and comparisons.judge_means.size:
        with suppress(NotMeasurableError):
            liking = np.array([reliability.judge_agent_variance(means) for means in comparisons.judge_means])
        if not comparisons.in_parts:
            parts = reliability.contrast_components(comparisons.cells, comparisons.cluster, liking)
    for s, name in enumerate(comparisons.names):
        alone = parts is not None and math.isnan(parts[0]["residual"][s])
        for part, title in _COMPONENTS.items():
            value, method, reason = float(liking[s]), _LIKING, lacking
            if part != "judge_agent":
                value, method = math.nan if parts is None else float(parts[0][part][s]), _SQUARES
                reason = "undefined: one cycle in each cluster, needs two" if alone else state
            if alone and part in _WITHIN:
                method += f"; with one cycle in each cluster it includes {_WITHIN[part]}"
            yield number(make, "panel.variance", {"dimension": name, "part": title}, value, count,
                         f"{method}; not below 0", state=reason, unit="squared points")  # fmt: skip
        share, reason, detail = None, state, dict[str, JSON]()
        if parts is not None:
            v, agent = {part: float(value[s]) for part, value in parts[1].items()}, float(parts[0]["agent"][s])
            clusters, judges = round(parts[2]), len(comparisons.judges)
            reason = "undefined: agents and errors have no variance"
            with suppress(NotMeasurableError):
                share = reliability.generalizability(agent, v, clusters, 1, judges, 1)
            detail = {"agent": agent, "error": reliability.dstudy_variance(v, clusters, 1, judges, 1) / 2}
        yield number(make, "panel.generalizability", {"dimension": name}, share, count, _GENERAL, reason, detail)


def judge_measurements(panel: Panel) -> Iterator[Measurement]:
    """Measure each judge's repetition stability with both divisors and unusable share; noise floor of each agent."""
    table, study = panel.table, panel.study
    for ddof in (0, 1):
        decided = averaging(table, study, ddof)
        for judge in table.judges:
            trials, value = table.trials[judge], None
            state = "undefined: one trial, needs two"
            if trials.shape[1] > 1:
                state = f"undefined: {trials.shape[0]} trajectories with every trial usable, needs two"
                if trials.shape[0] > 1:
                    try:
                        value = repetition_stability(trials, ddof=ddof)
                    except NotMeasurableError as exc:
                        state = state_of(exc)
            method = f"1 - mean variance within trajectories / variance of all trials, ddof {ddof}"
            detail: dict[str, JSON] = {"gate": study.gates.repetition_stability, "trials": trials.shape[1]}
            detail["averaged"] = decided.get(judge, False)
            yield panel.number("noise.repetition_stability", {"judge": judge, "ddof": str(ddof)}, value,
                               (trials.shape[0], "trajectories"), method, state, detail)  # fmt: skip
    for judge in table.judges:
        calls = table.calls[judge]
        bad = calls.invalid + calls.refused
        detail = {"ok": calls.ok, "invalid": calls.invalid, "refused": calls.refused, "reasons": dict(calls.reasons)}
        share, total = bad / calls.total, calls.total
        yield panel.number("judge.invalid_share", {"judge": judge}, share, (total, "calls"),
                           "calls without a usable score over all calls, Wilson interval", "ok", detail,
                           wilson_ends(share, total, panel.level))  # fmt: skip
    for agent in table.agents:
        groups = table.replicates.get(agent, ())
        squares = sum(float(np.square(np.array(group) - np.mean(group)).sum()) for group in groups)
        floor = float(np.sqrt(squares / sum(len(group) - 1 for group in groups))) if groups else None
        yield panel.number("noise.agent_floor", {"agent": agent}, floor, (sum(map(len, groups)), "replicates"),
                           "pooled standard deviation of the aggregate between replicates of one cycle",
                           "undefined: no replicates", {"dimension": AGGREGATE, "cycles": len(groups)},
                           unit=POINTS)  # fmt: skip


def missing_measurements(table: ScoreTable | ScoreSums, left_out: Mapping[str, str]) -> Iterator[Measurement]:
    """Measure ``missing.share`` of replies by judge and by agent, for the panel including the ``left_out`` judges."""
    (by_judge, by_pair), asked, n_of = table.missing(), table.asked, "replies asked for"
    rows = list[tuple[dict[str, str], float, int, dict[str, JSON]]]()
    for judge, share in by_judge.items():
        lacking = {agent: value for (name, agent), value in by_pair.items() if name == judge and value}
        detail: dict[str, JSON] = {"by_agent": lacking, "left_out": left_out.get(judge, "")}
        if lacking:
            detail |= lacking_records(table.agents, table.replies, [*asked].index(judge))
        rows.append(({"judge": judge}, share, asked[judge], detail))
    for agent in table.agents:
        if shares := [share for (_, name), share in by_pair.items() if name == agent]:
            rows.append(({"agent": agent}, float(np.mean(shares)), len(shares), {}))
    for labels, share, n, detail in rows:
        yield number(Measurement, "missing.share", labels, share, (n, n_of), "share without a usable reply", "ok",
                     detail, inputs=table.digest)  # fmt: skip


def lacking_records(agents: Sequence[str], replies: Ints, at: int) -> dict[str, JSON]:
    """Count by agent the records that judge ``at`` lacks in ``replies`` [J, A, 2], and test them against chance."""
    from scipy.stats import hypergeom  # here, because it takes every command a third of a second to load

    usable, unusable = replies[at, :, 0], replies[at, :, 1]
    asked, tests = usable + unusable, replies[..., 0].size
    p = np.minimum(1.0, tests * hypergeom.sf(unusable - 1, asked.sum(), unusable.sum(), asked))
    lost = np.flatnonzero(unusable).tolist()
    return {
        "records": int(asked.sum()), "lacking": {agents[a]: [int(unusable[a]), int(asked[a])] for a in lost},
        "p_more": {agents[a]: float(p[a]) for a in lost},
    }  # fmt: skip
