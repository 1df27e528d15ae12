"""Recompute the numbers of a certificate from the tables next to them, and collect the differences."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, Final, TypeVar

import numpy as np
import scipy
from pydantic import Field

from assaymark.claims.certification import KEPT, OTHER_TESTS
from assaymark.claims.levels import KAPPA, Rules, coefficient_words, other_margins
from assaymark.errors import NotMeasurableError
from assaymark.metrology import anchor_contrast, contrasts, holm, kappa_of_table
from assaymark.metrology.bootstrap import EXACT_CLUSTERS, intraclass, kappa_of_sums
from assaymark.metrology.checks import Floats, Ints
from assaymark.metrology.comparisons import natural
from assaymark.metrology.controls import FALLING, cell_outcome
from assaymark.metrology.estimates import defined, student_estimate
from assaymark.metrology.length import length_rule
from assaymark.metrology.measure_orders import cannot_be_tested
from assaymark.metrology.orders import equivalence_p
from assaymark.metrology.reliability import alpha_of_sums
from assaymark.plan import EQUAL_LENGTH, FEWEST_CLUSTERS, FEWEST_CONSECUTIVE, TOLERANCE
from assaymark.records import (
    AGGREGATE,
    Cap,
    Claim,
    Condition,
    Measurement,
    StabilityFinding,
    Verdict,
    grouped,
    measurement_id,
    record,
)

T = TypeVar("T")

_MOST_CYCLES: Final = 2_000_000
_BEFORE_ROUNDING: Final = 1e-6  # levels come from a least-squares solution
_CLOSE: Final = 1e-9
_CALLED: Final[Mapping[str, str]] = {
    "agreement_status": "agreement",
    "stability_status": "stability",
    "adversarial_status": "adversarial",
    "binding": "binding fields",
    "measurements": "measurements it rests on",
    "amended": "amended fields",
    "stability": "what leaving out judge families does",
}
_DROPS: Final[Mapping[str, tuple[str, str]]] = {
    "contrast": ("lofo.contrast", "contrasts"),
    "score.effect": ("lofo.effect", "levels"),
    "cell.gate": ("cell.drop", "gates of control cells"),
}
_PARTS: Final[Mapping[str, str]] = {
    "value": "{}", "low": "lower end of the {}", "high": "upper end of the {}",
    "se": "standard error of the {}", "df": "degrees of freedom of the {}", "effective": "effective clusters of the {}",
    "p_own_variance": "p of the {} (own variance)", "p_cluster_t": "p of the {} (cluster t)",
    "p_bootstrap": "p of the {} (bootstrap)", "p_sign_flip": "p of the {} (sign flip)",
    "p_equivalence": "p of equivalence of the {}",
    **dict.fromkeys(("p_adjusted", "p_holm"), "adjusted p of the {}"),
    "flagged": "flag of the {}", "unanimous": "whether every judge family shows the {}",
    "word": "word for the {}", "judges": "the judges' own difference in the {}",
}  # fmt: skip
"""Names of the parts of a measurement in differences, where they are not those of the certificate."""
_FIXED: Final = ("value", "low", "high", "n", "state")


@record
class StatedStudy:
    """The study of a certificate: judges with families, agents, dimensions, and the level of its intervals."""

    level: Annotated[float, Field(gt=0, lt=1)]
    judges: dict[str, str]
    families: tuple[str, ...]
    agents: tuple[str, ...]
    dimensions: Annotated[tuple[str, ...], Field(max_length=100)]


@dataclass(frozen=True, slots=True)
class Verification:
    """Result of verifying a certificate: ``ok`` if its verdict follows from its own tables."""

    ok: bool
    differences: tuple[str, ...]
    notes: tuple[str, ...] = ()


def _equal(stated: Any, again: Any) -> bool:
    """True if two values are equal, numbers up to rounding error."""
    if isinstance(stated, int | float) and isinstance(again, int | float):
        return math.isclose(stated, again, rel_tol=_CLOSE, abs_tol=_CLOSE)
    return bool(stated == again)


def _distinguish(stated: Any, again: Any) -> tuple[str, str]:
    """Format two different values with enough decimals to distinguish them."""
    for digits in range(2, 17):
        first, other = (
            f"{x:.{digits}f}" if isinstance(x, float) else "nothing" if x is None else str(x) for x in (stated, again)
        )
        if first != other:
            return first, other
    return repr(stated), repr(again)


def _value(value: Any) -> Any:
    """Convert a part of a verdict to one text or number."""
    match value:
        case Condition():
            return f"{value.id}: {value.text}"
        case Cap():
            return f"{value.field} at {value.level}{', lifted' if value.lifted else ''}"
        case StabilityFinding():
            return f"{value.state} {', '.join(value.families)}".rstrip()
    return value


def _describe(item: Measurement) -> str:
    """Return the name of a measurement for messages."""
    name = "kappa on bands" if item.name == KAPPA else item.name
    name = (KEPT[item.name].called if item.name in KEPT else "") or name
    if item.name.startswith(("kappa.", "cell.kappa")):
        name = name.replace("kappa", coefficient_words(item))
    parts = [name]
    for label, words in (
        ("high", "of {high} and {low}"), ("format", "within format {format}"), ("cell", "of {cell}"),
        ("agent", "of {agent}"), ("dimension", "on {dimension}"), ("dropped", "without {dropped}"),
    ):  # fmt: skip
        parts += [words.format_map(item.labels)] if label in item.labels else []
    return " ".join(parts)


@dataclass(frozen=True, slots=True)
class _TTest:
    """A t-test of a mean over ``rows`` rows; ``df`` is None without variance, ``se`` is None without a test."""

    se: float | None
    df: float | None
    rows: int

    def p(self, value: float | None) -> float:
        """Return the two-sided p; without variance, that of a common sign."""
        if value is None or self.se is None:
            return 1.0
        if self.df is None:
            return 1.0 if abs(value) <= TOLERANCE else 2.0 ** (1 - self.rows)
        return student_estimate(value, self.se, self.df).p

    def half(self, quantile: float) -> float | None:
        """Return half the width of an interval; None if there is none."""
        return float(scipy.special.stdtrit(self.df, quantile)) * self.se if self.se and self.df else None


def _arrays(sums: Mapping[str, tuple[float, int]]) -> tuple[Floats, Ints]:
    """Return sums [G, 1] and numbers of cycles [G] of the clusters, in natural order of their names."""
    rows = [sums[name] for name in sorted(sums, key=natural)]
    return np.array([[float(total)] for total, _ in rows]).reshape(-1, 1), np.array([int(n) for _, n in rows], np.int64)


def _moderated(detail: Mapping[str, Any], observed: float, clusters: int) -> _TTest:
    """Return the moderated cluster t-test, whose variance is never below the pair's own (Smyth 2004)."""
    observed = 0.0 if observed <= contrasts.FLAT_VARIANCE else observed
    nu, prior = clusters - 1, float(detail.get("prior_df", 0.0))
    variance = max(observed, (prior * float(detail.get("mean_variance", 0.0)) + nu * observed) / (prior + nu))
    return _TTest(math.sqrt(variance / clusters), prior + nu if variance else None, clusters)


def _with_detail(item: Measurement, detail: Mapping[str, Any]) -> Measurement:
    return replace(item, detail={**item.detail, **detail})


class Recomputation:
    """Recomputes the measurements of a certificate; records differences, and notes on what is taken as given."""

    def __init__(
        self, study: StatedStudy, rules: Rules, measurements: Sequence[Measurement], bare: Collection[str] = ()
    ) -> None:
        self.study, self.rules, self.bare = study, rules, bare
        self.differences: dict[str, None] = {}  # each once and in order, as are the notes
        self.notes: dict[str, None] = {}
        self.labels = {item.labels["dimension"]: item.detail for item in measurements if item.name == "human.labels"}
        self.complete = not any(item.detail.get("missing") for item in measurements if item.name == "panel.families")
        self.consecutive = any(
            item.detail.get("order") == "consecutive" for item in measurements if item.name == "order.autocorrelation"
        )
        self._by_name: Mapping[str, Callable[[Measurement], Measurement]] = {
            **dict.fromkeys(("kappa.mean_pairwise", "cell.kappa", KAPPA), self._kappa),
            **dict.fromkeys(("probe.contrast", "cell.gate"), self._one_sample),
            **dict.fromkeys(("terse.share", "datasheet.gate", "cell.agreement", "human.sample", "human.agreement",
                             "dimension.distinct", "panel.families", "order.autocorrelation"), self._shares),
            **dict.fromkeys(("lofo.contrast", "recusal.contrast", "length.contrast", "judges.contrast"), self._variant),
            "contrast": self._contrast,
            "human.contrast": self._human_contrast,
        }  # fmt: skip

    @property
    def result(self) -> Verification:
        """The differences and notes so far."""
        return Verification(not self.differences, tuple(self.differences), tuple(self.notes))

    def compare(self, what: str, stated: Any, again: T) -> T:
        """Record a difference between the stated and the recomputed value; returns the stated one if they are equal."""
        if not _equal(stated, again):
            first, other = _distinguish(stated, again)
            self.differences[f"{what}: the certificate says {first}, its tables give {other}"] = None
            return again
        return again if again is None else stated

    def assume(self, what: str) -> None:
        """Record that something could not be recomputed."""
        self.notes[f"{what} taken as given"] = None

    def compare_verdicts(self, stated: Verdict, again: Verdict) -> None:
        """Compare two verdicts on one claim field by field."""
        pairs = [(f"{field.name} of the claim", getattr(stated.claim, field.name), getattr(again.claim, field.name))
                 for field in fields(Claim)]  # fmt: skip
        names = [field.name for field in fields(Verdict) if field.name != "claim"]
        called = {name: _CALLED.get(name, name.replace("_", " ")) for name in names}
        pairs += [(called[name], getattr(stated, name), getattr(again, name)) for name in names]
        for what, stated_here, other in pairs:
            if isinstance(other, Mapping):
                for name in dict.fromkeys([*stated_here, *other]):
                    self.compare(f"level under {name}", stated_here.get(name), other.get(name))
            elif isinstance(other, tuple):
                for at in range(max(len(stated_here), len(other))):
                    self.compare(what, *(_value(side[at]) if at < len(side) else None for side in (stated_here, other)))
            else:
                self.compare(what, _value(stated_here), _value(other))

    def recompute(self, measurements: Sequence[Measurement]) -> list[Measurement]:
        """Recompute each measurement but ``bare`` ones from its own table, then check the relations between them."""
        items = []
        for item in measurements:
            if item.name != KAPPA and item.id not in self.bare:
                if item.level is not None:
                    self.compare(f"level of the interval of the {_describe(item)}", item.level, self.study.level)
                if KEPT[item.name].note:
                    self.assume(KEPT[item.name].note)
            again = None if item.id in self.bare else self._by_name.get(item.name)
            items.append(item if again is None else again(item))
        items = self._check_cells(items)
        self._check_drops(items)
        return items

    def _kappa(self, item: Measurement) -> Measurement:
        """Recompute a kappa, and those of its pairs of judges, from their contingency tables."""
        label, stated = _describe(item), item.detail
        if not any(stated.get(name) for name in ("tables", "sums", "ratings")):
            if item.value is not None:
                self.assume(f"the {label} has no tables and is")
            return item
        value = self._pairs(item)
        records = {pair: int(np.sum(cells)) for pair, cells in (stated.get("tables") or {}).items()}
        records |= {pair: int(parts[0]) for pair, parts in (stated.get("sums") or {}).items()}
        for pair, n in records.items():
            self.compare(f"records behind the {label} between {pair.replace('|', ' and ')}", item.n, n)
        if (ratings := (stated.get("ratings") or {}).get("")) is not None:
            value = defined(float(alpha_of_sums(*ratings)))
        if item.low is not None:
            word = coefficient_words(item)
            self.assume(f"intervals of {word}, and the number of clusters that they rest on, are")
        if stated.get("half_even") is not None:
            self.assume("kappas under half-even rounding are")
        return self._check(item, {"value": value})

    def _pairs(self, item: Measurement) -> float | None:
        """Recompute the agreement of each pair of judges from its table or sums; return the mean if all are defined."""
        kappas: dict[str, float | None] = {}
        for pair, cells in (item.detail.get("tables") or {}).items():
            try:
                kappas[pair] = kappa_of_table(cells)
            except NotMeasurableError:
                kappas[pair] = None
        of_sums = kappa_of_sums if item.detail.get("coefficient") == "kappa" else intraclass
        for name, rule in (("sums", of_sums), ("ratings", alpha_of_sums)):
            sums: Mapping[str, list[float]] = item.detail.get(name) or {}
            kappas |= {pair: defined(float(rule(*parts))) for pair, parts in sums.items() if pair}
        stated = item.detail.get("pairs") or {}
        for pair in dict.fromkeys([*stated, *kappas]):
            label = f"{_describe(item)} between {pair.replace('|', ' and ')}"
            self.compare(label, stated.get(pair), kappas.get(pair))
        known = [kappa for kappa in kappas.values() if kappa is not None]
        return float(np.mean(known)) if known and len(known) == len(kappas) else None

    def _check(self, item: Measurement, again: Mapping[str, Any]) -> Measurement:
        """Compare parts of a measurement with the recomputed ones; return it with those that its tables give."""
        fixed, detail, described = dict[str, Any](), dict(item.detail), _describe(item)
        for name, part in again.items():
            label = _PARTS.get(name, f"{name.replace('_', ' ')} of the {{}}").format(described)
            if name in _FIXED:
                fixed[name] = self.compare(label, getattr(item, name), part)
            else:
                detail[name] = self.compare(label, detail.get(name), part)
        if "value" in fixed and fixed["value"] is None:
            state = item.state if item.value is None else "undefined: both judges gave one rating"
            fixed = {"state": state, **fixed, "low": None, "high": None, "level": None}
        elif "value" in fixed:
            fixed["state"] = "ok"
        return replace(item, detail=detail, **fixed)

    # Contrasts: from their cluster sums, or without them from their standard errors.

    def _contrast(self, item: Measurement) -> Measurement:
        """Recompute difference, variance and test from cluster sums; mean variance and autocorrelation are given."""
        column, counts = _arrays(item.detail.get("cluster_sums") or {})
        what, clusters = _describe(item), int(counts.size)
        item = self._check(item, {"n": int(counts.sum()), "clusters": clusters})
        means = column[:, 0] / counts
        gap = float(contrasts.snap_to_zero(means.mean())) if clusters else None
        self.compare(f"whether the first is higher in the {what}", True, gap is None or gap >= 0)
        # Every other test that needs no random draws on so many clusters
        stated = [name for name in OTHER_TESTS if name in item.detail and name != "p_own_variance"]
        tests: dict[str, float] = {} if clusters else dict.fromkeys(stated, 1.0)
        if clusters and self.complete:
            tests["p_cluster_t"] = float(contrasts.t_test(column, counts).p[0])
            nothing: dict[str, Any] = {"resamples": 1, "rng": None, "level": 0.95, "intervals": [False]}
            if clusters <= EXACT_CLUSTERS:
                tests["p_bootstrap"] = float(contrasts.bootstrap_tests([(column, counts)], **nothing)[0].p[0])
            if clusters <= contrasts.EXACT_FLIPS:
                tests["p_sign_flip"] = float(contrasts.flip_tests([(column, counts)], **nothing)[0].p[0])
        for name in stated:
            if name not in tests:
                condition = "over so many clusters" if self.complete else "where grades are missing"
                self.assume(f"p-values of the {name.removeprefix('p_').replace('_', ' ')} {condition} are")
        item = self._check(item, {name: tests[name] for name in stated if name in tests})
        item = self._check(item, {"variance": float(means.var(ddof=1)) if clusters > 1 else 0.0})
        if gap is None or clusters < (FEWEST_CONSECUTIVE if self.consecutive else FEWEST_CLUSTERS):
            own = dict.fromkeys([name for name in ("p", "p_own_variance") if name in item.detail], 1.0)
            return self._check(
                item, {"value": None, "state": cannot_be_tested(clusters, self.consecutive), "gap": gap, **own}
            )
        item, variance = self._check(item, {"value": gap}), item.detail["variance"]
        test = self._serial(item, means) if self.consecutive else _moderated(item.detail, variance, clusters)
        item = self._retest(item, test)
        if item.labels["dimension"] == AGGREGATE:
            inner = test.half(self.study.level)
            for at, end in enumerate((-1, 1)):
                ends = (item.detail.get("equivalence_interval") or (None, None))[at]
                again = None if inner is None or item.value is None else item.value + end * inner
                self.compare(f"equivalence interval of the {what}", ends, again)
        elif "others" in item.detail:
            self.assume("differences on the other dimensions are")
        if not self.consecutive and "p_own_variance" in item.detail:
            item = self._check(item, {"p_own_variance": _moderated({}, variance, clusters).p(item.value)})
        return self._interval(item, test)

    def _serial(self, item: Measurement, means: Floats) -> _TTest:
        """Return the t-test with the stated effective number of clusters, taken singly or in blocks of two."""
        rho, effective = float(item.detail.get("rho", 0.0)), item.detail.get("effective")
        tests = []
        for size in (1, 2):
            starts = np.arange(means.size // size) * size
            rows = np.add.reduceat(means, starts) / np.diff(np.append(starts, means.size))
            variance = float(rows.var(ddof=1))
            # Correct the variance of dependent rows, which is biased downwards.
            variance /= max(0.2, 1 - ((1 + rho) / (1 - rho) - 1) / (rows.size - 1))
            size_again = float(contrasts.effective_size(rows.size, rho))
            if _equal(effective, size_again):
                error = math.sqrt(variance / size_again) if variance > contrasts.FLAT_VARIANCE else 0.0
                tests.append(_TTest(error, size_again - 1 if error else None, rows.size))
        if not tests:
            self._check(item, {"effective": float(contrasts.effective_size(means.size, rho))})
            return _TTest(None, None, means.size)
        return min(tests, key=lambda test: (abs((test.se or 0.0) - float(item.detail.get("se", 0.0))), test.rows))

    def _retest(self, item: Measurement, test: _TTest, *, tested: bool = True) -> Measurement:
        """Recompute standard error, degrees of freedom, p and, on the aggregate, equivalence."""
        value = item.value
        if tested:
            item = self._check(item, {"se": test.se, "df": test.df, "p": test.p(value)})
        if value is None or item.labels["dimension"] != AGGREGATE or item.name in ("lofo.contrast", "judges.contrast"):
            return item
        near, clusters = item.detail.get("p_equivalence_at", {}), int(item.detail["clusters"])

        def p(margin: float) -> float:
            return equivalence_p(value, test.se, test.df, clusters, margin)

        item = self._check(item, {"p_equivalence": p(self.rules.margin)})
        called = f"p of equivalence of the {_describe(item)} at the margin"
        margins = {f"{rules.margin:g}": rules.margin for rules in other_margins(self.rules).values()}
        again = {name: self.compare(f"{called} {name}", near.get(name), p(margin)) for name, margin in margins.items()}
        return _with_detail(item, {"p_equivalence_at": again})

    def _interval(self, item: Measurement, test: _TTest) -> Measurement:
        half = test.half(0.5 + self.study.level / 2)
        low, high = (None, None) if half is None or item.value is None else (item.value - half, item.value + half)
        return self._check(item, {"low": low, "high": high})

    def _variant(self, item: Measurement) -> Measurement:
        """Recompute a contrast without a judge family or same-family judges, at equal length, or over other judges."""
        name, detail = item.name, item.detail
        if name == "lofo.contrast" and "variance" not in detail:
            self.assume("the other contrasts of a leader without each judge family are")
            return item
        if name != "judges.contrast":
            item = self._check(item, {"clusters": item.n})
        elif item.value is None:
            return item
        # The test with the stated standard error and degrees of freedom
        clusters = int(detail.get("clusters", item.n))
        test = _TTest(detail.get("se"), detail.get("df"), clusters // 2 if self.consecutive else clusters)
        if name == "lofo.contrast":
            if self.consecutive:
                test = test if test.df is None else replace(test, df=float(detail.get("effective", 0.0)) - 1)
                self.assume("standard errors of contrasts without each judge family, for clusters in time order, are")
            elif item.n < FEWEST_CLUSTERS:
                test = _TTest(None, None, item.n)
            else:
                test = _moderated(detail, float(detail["variance"]), item.n)
            item = self._retest(item, test)
            self.assume("variances without each judge family, and p-values adjusted over all pairs without it, are")
            scales = 1 if item.labels["dimension"] == AGGREGATE else len(self.study.dimensions)
            return self._adjusted(item, "p_adjusted", scales * math.comb(len(self.study.agents), 2))
        gap, slope = float(detail.get("gap", 0.0)), float(detail.get("slope", 0.0))
        # If each agent always writes the same length, length and agent are confounded, and p is 1.
        same_length = name == "length.contrast" and abs(slope) <= TOLERANCE and abs(gap) >= EQUAL_LENGTH + TOLERANCE
        item = self._retest(item, test, tested=not (same_length and detail["p"] >= 1))
        if name == "recusal.contrast":
            return self._interval(item, test)
        if "slopes" in detail:
            self.assume("words about style are")
        elif name == "length.contrast":
            value, p, word = item.value or 0.0, float(item.detail["p"]), "may be length"
            if (raw := float(detail.get("raw", -1.0))) >= 0:
                equal = {"estimate": item.value, "p_up": p / 2 if value > 0 else 1 - p / 2}
                explained = {"estimate": slope, "p": float(detail.get("slope_p", 1.0))}
                word = length_rule({"estimate": raw}, equal, explained, gap, alpha=self.rules.alpha)
            item = self._check(item, {"word": word})
        return item

    def _adjusted(self, item: Measurement, name: str, tests: int) -> Measurement:
        """Check that an adjusted p-value lies between the p-value and ``tests`` times the p-value."""
        p, stated = float(item.detail["p"]), item.detail.get(name)
        bounded = min(max(p if stated is None else stated, p), min(1.0, tests * p))
        return self._check(item, {name: bounded})

    # Measurements other than contrasts of two agents.

    def _one_sample(self, item: Measurement) -> Measurement:
        """Recompute a probe or the gate of a control cell by the cluster t-test, one-sided for cells that must fall."""
        sums, name = item.detail.get("cluster_sums"), _describe(item)
        if not sums or item.value is None:
            if item.value is not None:
                self.assume(f"the {name} has no cluster sums and is")
            return item
        column, counts = _arrays(sums)
        tested = contrasts.t_test(column, counts, self.study.level)
        p = float(tested.p[0])
        if item.labels.get("cell") in FALLING:
            p = p / 2 if tested.difference[0] < 0 else 1 - p / 2
        stated = {"p": p} if "p" in item.detail else {}
        low, high = (defined(end[0]) for end in (tested.low, tested.high))
        value = float(tested.difference[0])
        item = self._check(item, {"n": int(counts.sum()), "value": value, "low": low, "high": high, **stated})
        return _with_detail(item, {"p": p, **item.detail})

    def _shares(self, item: Measurement) -> Measurement:
        """Recompute shares, counts and what depends on them."""
        name, detail, label = item.name, item.detail, _describe(item)
        if name == "dimension.distinct":
            tested = "p" in detail and "p_holm" in detail
            return self._adjusted(item, "p_holm", len(self.study.dimensions)) if tested else item
        if name == "terse.share":
            if (below := detail.get("below")) is None or item.value is None or not item.n:
                self.assume(f"the {label} is")
                return item
            return self._check(item, {"tokens": self.rules.cells.terse_tokens, "value": below / item.n})
        if name == "panel.families":
            judges = detail.get("own", {})
            self.compare("number of judges", item.n, len(judges))
            if "judges" not in detail.get("unknown", ""):
                families = {self.study.judges.get(judge) for judge in judges}
                item = self._check(item, {"value": float(len(families))})
            self.assume("which judges share a family with which agents, and whether grades are missing, is")
        if name == "order.autocorrelation":
            lags, flag = detail.get("lags") or [None], detail.get("flag")
            self.assume("the dependence of clusters that follow each other is")
            flagged = bool(lags[0] is not None and flag is not None and lags[0] > flag)
            return self._check(item, {"value": lags[0], "flagged": flagged})
        if name == "cell.agreement":
            beside = "over a control cell and the honest records, and what each judge family sees, is"
            self.assume(f"{coefficient_words(item)} {beside}")
            if item.value is not None and (by_family := detail.get("p")):
                alpha = self.rules.cells.alpha if item.labels["cell"] in FALLING else self.rules.cell_alpha
                every = all(p <= alpha + TOLERANCE for p in by_family.values())
                return self._check(item, {"unanimous": every})
        if name == "datasheet.gate" and item.value is not None:
            failed = float(len(detail.get("failed", [])))
            self.compare(f"limits that {item.labels['judge']} fails", item.value, failed)
        if name == "human.sample" and item.value is not None:
            share = detail["graded"] / detail["drawn"] if detail["drawn"] else None
            return self._check(item, {"value": share})
        if name == "human.agreement":
            return self._check(item, {"value": self._pairs(item)})
        return item

    def _human_contrast(self, item: Measurement) -> Measurement:
        """Recompute a human contrast from the labelled records and the judges' sums on the other cycles."""
        label, detail = _describe(item), self.labels.get(item.labels["dimension"])
        rest: Mapping[str, tuple[int, float, float]] = item.detail.get("rest") or {}
        if detail is None or sum(n for n, _, _ in rest.values()) > _MOST_CYCLES:
            self.assume(f"the {label} is")
            return item
        agents: list[str] = detail["agents"]
        clusters: list[str] = [*detail["of"], *(name for name, (n, _, _) in rest.items() for _ in range(n))]
        order = sorted(range(len(clusters)), key=lambda k: natural(clusters[k]))
        size, pair = len(clusters), [agents.index(item.labels[end]) for end in ("high", "low")]
        judged, people = np.full((2, size, len(agents)), np.nan)
        pi, first = np.ones(size), len(detail["of"])
        for k, (row, grades, chance) in enumerate(zip(detail["judged"], detail["people"], detail["pi"], strict=True)):
            judged[k], people[k], pi[k] = np.array(row, float), np.array(grades, float), chance
        for n, *sums in rest.values():
            judged[first : first + n, pair] = np.array(sums) / n
            first += n
        again = anchor_contrast(
            judged[order], people[order], [clusters[k] for k in order], *pair, pi=pi[order], level=self.study.level,
            consecutive=self.consecutive,
        )  # fmt: skip
        self.compare(f"labelled cycles of the {label}", item.n, again.labelled)
        if item.detail.get("p_graders") is not None:
            self.assume("whether other graders would see the same ranking is")
        if item.detail.get("needed") is not None:
            self.assume("numbers of labelled cycles needed are")
        judges = None if again.judge_only is None else again.judge_only.estimate
        parts = {"se": again.se, "p": again.p_up, "judges": judges, "value": again.estimate}
        return self._check(item, parts | {"low": again.low, "high": again.high})

    # Relations between measurements.

    def _check_cells(self, items: list[Measurement]) -> list[Measurement]:
        """Recompute Holm's correction over the control cells, also without each judge family, outcomes and halos."""
        limits = self.rules.cells
        gates = (item for item in items if item.name in ("cell.gate", "cell.drop"))
        adjusted: dict[str, float] = {}
        for members in grouped(gates, lambda item: item.labels.get("dropped")).values():
            # An untested cell stays in the family with p = 1.
            stated = [None if member.value is None else member.detail.get("p") for member in members]
            p = [1.0 if p_value is None else float(p_value) for p_value in stated]
            adjusted |= dict(zip([item.id for item in members], holm(p).tolist(), strict=True))
        again = []
        for item in items:
            tested, name = item.detail.get("p"), _describe(item)
            if item.name == "cell.halo" and item.value is not None and item.detail.get("family") is not None:
                triggered = abs(item.value) >= limits.halo - TOLERANCE
                self.compare(f"whether the {name} is triggered", bool(item.detail.get("triggered")), triggered)
                item = _with_detail(item, {"triggered": triggered})
            elif item.name in ("cell.gate", "cell.drop") and item.value is not None and tested is not None:
                p_holm = adjusted.get(item.id, 1.0)
                p_holm = self.compare(f"p of the {name} after Holm", item.detail.get("p_holm"), p_holm)
                flat, alpha = item.low is None, self.rules.cell_alpha
                outcome = cell_outcome(
                    item.labels["cell"], item.value, float(tested), p_holm, flat, cells=limits, alpha=alpha
                )
                item = self._check(_with_detail(item, {"p_holm": p_holm}), {"outcome": str(outcome)})
            again.append(item)
        by_id = {item.id: item for item in again}
        for halo in again:
            if halo.name != "cell.halo" or halo.value is None or halo.detail.get("triggered"):
                continue
            cell, family = halo.labels["cell"], halo.detail.get("family")
            gate, drop = by_id.get(f"cell.gate[cell={cell}]"), by_id.get(f"cell.drop[cell={cell},dropped={family}]")
            if gate is not None:
                self.compare(f"n of the {_describe(halo)}", halo.n, gate.n)
            if gate is not None and drop is not None and gate.value is not None and drop.value is not None:
                self.compare(_describe(halo), halo.value, gate.value - drop.value)
            elif family is not None:
                self.assume(f"the {_describe(halo)} is")
        return again

    def _check_drops(self, items: list[Measurement]) -> None:
        """Check that the values without each family average to the panel's, which is the mean over its judges."""
        families = self.study.families
        judges = self._judge_families(items) if self.complete else None
        by_id = {item.id: item for item in items}
        for original in items:
            number = original.detail.get("gap") if original.value is None else original.value
            if original.name not in _DROPS or number is None:
                continue
            drop, called = _DROPS[original.name]
            parts = {name: by_id.get(measurement_id(drop, {**original.labels, "dropped": name})) for name in families}
            there = {family: item for family, item in parts.items() if item is not None and item.value is not None}
            # With missing grades, counts may differ without one family.
            for item in there.values() if self.complete else ():
                self.compare(f"n of the {_describe(item)}", item.n, original.detail.get("clusters", original.n))
            # The gate of cell A is not a mean over judges, nor is a gate that already leaves judges out.
            linear = original.name != "cell.gate" or (
                original.labels["cell"] not in ("cell_a", "red_team") and original.detail.get("primary") == "panel"
            )
            if judges is None or len(there) < len(families) or not linear:
                if there:
                    self.assume(f"{called} without each judge family are")
                continue
            sizes = {family: sum(other == family for other in judges.values()) for family in there}
            total = sum((len(judges) - sizes[family]) * (item.value or 0.0) for family, item in there.items())
            back = total / ((len(there) - 1) * len(judges))
            if abs(back - number) > _BEFORE_ROUNDING:
                first, other = _distinguish(number, back)
                prefix = f"{_describe(original)}: the certificate says {first}"
                self.differences[f"{prefix}, its numbers without each judge family give {other}"] = None

    def _judge_families(self, items: list[Measurement]) -> dict[str, str] | None:
        """Return the families of the judges in the tables; None if they cannot be determined."""
        judged = (item for item in items if item.name != "human.agreement")
        paired = (item.detail.get("tables") or item.detail.get("sums") or () for item in judged)
        names = sorted({name for pairs in paired for pair in pairs for name in pair.split("|")})
        if not names:
            return None
        judges = {name: self.study.judges.get(name, "unknown") for name in names}
        stated, tables = (", ".join(sorted(set(side))) for side in (self.study.families, judges.values()))
        self.compare("judge families", stated, tables)
        return judges if stated == tables and len(self.study.families) > 1 else None
