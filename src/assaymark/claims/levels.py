"""Index of measurements, decision rules of a plan, and findings: what a status permits to publish, and why."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any, Final, Literal, TypeVar

from assaymark.claims.messages import Phrase, ends_words, interval_words, measure_words, number, p_words, signed
from assaymark.errors import NotMeasurableError, UnknownNameError
from assaymark.plan import OTHER_MARGINS, TOLERANCE
from assaymark.protocol import AGREEMENT, CellThresholds, Study
from assaymark.records import (
    AGGREGATE,
    AdversarialStatus,
    AgreementStatus,
    Condition,
    Level,
    Measurement,
    measurement_id,
)
from assaymark.text import gate_number

T = TypeVar("T")
Signed = tuple[Measurement, float | None, float | None, float | None]
"""A measurement of a pair, with its value, low and high in the requested direction."""


def equivalence_gap(item: Measurement) -> tuple[float, float, float, float] | None:
    """Return the difference (first name minus second), and level in percent and ends of its equivalence interval."""
    ends = item.detail.get("equivalence_interval")
    if item.value is None or ends is None:
        return None
    turn = 1.0 if item.labels["high"] < item.labels["low"] else -1.0
    low, high = sorted(turn * end for end in ends)
    return turn * item.value, 100 * (2 * (item.level or 0.95) - 1), low, high


@dataclass(frozen=True, slots=True)
class Index:
    """Index of measurements by id, name and labels, with the agreement measurements that gate each dimension."""

    by_id: Mapping[str, Measurement]
    by_name: Mapping[str, tuple[Measurement, ...]]
    by_pair: Mapping[tuple[str, str, str, str], Measurement]
    agreements: Mapping[str, tuple[Measurement, ...]]
    agents: tuple[str, ...]
    dimensions: tuple[str, ...]
    families: tuple[str, ...]
    compared: frozenset[str]
    levels: Mapping[tuple[str, str | None, str], Measurement]
    drops: Mapping[tuple[str, ...], Measurement]
    rows: Mapping[str, tuple[Any, ...]] | None = None
    tests: frozenset[str] | None = None
    memo: dict[Hashable, Any] = field(default_factory=dict)

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the cached result of ``make``, which is called once per key."""
        if key not in self.memo:
            self.memo[key] = make()
        cached: T = self.memo[key]
        return cached

    def named(self, name: str) -> tuple[Measurement, ...]:
        """Return every measurement of this name."""
        return self.by_name.get(name, ())

    def get(self, name: str, dimension: str = "", /, **labels: str) -> Measurement | None:
        """Return the measurement ``name``, of a dimension, with exactly these other labels; None if there is none."""
        return self.by_id.get(measurement_id(name, {"dimension": dimension, **labels} if dimension else labels))

    def contrast(self, dimension: str, first: str, other: str) -> Measurement:
        """Return the contrast of two agents on a dimension, in either direction."""
        item = self.by_pair.get(("contrast", dimension, first, other))
        item = item or self.by_pair.get(("contrast", dimension, other, first))
        if item is None:
            raise NotMeasurableError(f"no contrast of {first} and {other} on {dimension} was measured")
        return item

    def drop(self, dimension: str, family: str, first: str, other: str) -> Measurement | None:
        """Return the contrast of two agents without a judge family; None if there is none."""
        return self.drops.get((dimension, family, first, other)) or self.drops.get((dimension, family, other, first))

    def tested(self, dimension: str) -> bool:
        """True if differences on a dimension were tested; False for tables without contrasts."""
        return len(self.agents) < 2 or dimension in self.compared

    def directed(self, name: str, dimension: str, first: str, other: str) -> Signed | None:
        """Return the measurement ``name`` of a pair with its sign set so that positive means ``first`` is higher."""
        if (contrast := self.by_pair.get((name, dimension, first, other))) is not None:
            return contrast, contrast.value, contrast.low, contrast.high
        if (contrast := self.by_pair.get((name, dimension, other, first))) is None:
            return None
        value, low, high = (None if end is None else -end for end in (contrast.value, contrast.high, contrast.low))
        return contrast, value, low, high

    @property
    def panel(self) -> Mapping[str, Any]:
        """Detail of ``panel.families``: ``unknown`` families, and whether the table was read ``in_parts``."""
        return next((item.detail for item in self.named("panel.families")), {})

    def measured_tests(self) -> frozenset[str]:
        """Return the tests with p-values, by their keys in the detail of contrasts."""
        details = (item.detail.items() for item in self.named("contrast"))
        return frozenset(name for detail in details for name, p in detail if name.startswith("p") and p is not None)


def index(
    measurements: Iterable[Measurement], families: Sequence[str] | None = None, agents: Sequence[str] | None = None,
    dimensions: Sequence[str] | None = None, tests: frozenset[str] | None = None,
) -> Index:  # fmt: skip
    """Build an `Index` of measurements. A certificate has only one claim's part of them, and gives the other names."""
    by_id: dict[str, Measurement] = {}
    by_pair: dict[tuple[str, str, str, str], Measurement] = {}
    grouped: dict[str, list[Measurement]] = {}
    for item in measurements:
        name, labels, key = item.name, item.labels, item.id
        if key in by_id:
            raise NotMeasurableError(f"{key} was measured twice; the tables are not of one analysis")
        by_id[key] = item
        grouped.setdefault(name, []).append(item)
        if labels.keys() == _PAIR:
            by_pair[name, labels["dimension"], labels["high"], labels["low"]] = item
    effects, kappas = grouped.get("score.effect", []), grouped.get("kappa.mean_pairwise", [])
    agreements: dict[str, tuple[Measurement, ...]] = {}
    for item in kappas:
        if not item.state.startswith("too few"):
            agreements[item.labels["dimension"]] = (*agreements.get(item.labels["dimension"], ()), item)
    dropped = tuple(dict.fromkeys(item.labels["dropped"] for item in grouped.get("lofo.rho", ())))
    # With one family, leaving it out would leave no judge.
    dropped = dropped if len(dropped) > 1 else ()
    pooled = [item.labels["dimension"] for item in kappas if "format" not in item.labels]
    levels = {
        (item.labels["dimension"], item.labels.get("dropped"), item.labels["agent"]): item
        for item in (*effects, *grouped.get("lofo.effect", ()))
    }
    return Index(
        by_id,
        {name: tuple(group) for name, group in grouped.items()},
        by_pair,
        agreements,
        tuple(sorted({item.labels["agent"] for item in effects}) if agents is None else agents),
        tuple((name for name in pooled if name != AGGREGATE) if dimensions is None else dimensions),
        dropped if families is None else tuple(families),
        frozenset(item.labels["dimension"] for item in grouped.get("contrast", ())),
        levels,
        {_DROP(item.labels): item for item in grouped.get("lofo.contrast", ())},
        tests=tests,
    )


_PAIR: Final = frozenset(("dimension", "high", "low"))
_DROP: Final = itemgetter("dimension", "dropped", "high", "low")


TOTAL, COMPOSITE, INVALID, OUTCOME = "season.total", "season.composite", "season.invalid", "season.outcome"
EFFICIENCY, KAPPA, EXCESS = "season.efficiency", "season.kappa", "season.excess"
PROBE, NOISE, FLAGGED = "season.author_probe", "season.noise", "agent.flagged_texts"
ABOVE_CHANCE = "above chance"
SILENT = "no usable answer"
"""State of the total of an agent without a usable answer."""
SPAN = 100.0
"""Points between the ends of a season's scale."""

OnFailure = Literal["qualified", "no-claim"]
Test = Literal["p", "p_own_variance", "p_cluster_t", "p_bootstrap", "p_sign_flip"]
"""Key in a contrast's detail with the p-value of a test; ``p`` is the test of the plan."""

_OTHER_TESTS: Final[tuple[tuple[str, Test, bool], ...]] = (
    ("own variance of each pair", "p_own_variance", False),
    ("clusters weighted by records", "p_cluster_t", False),
    ("source: percentile bootstrap", "p_bootstrap", True),
    ("source: sign flip", "p_sign_flip", True),
)


@dataclass(frozen=True, slots=True)
class Rules:
    """Decision rules of one plan; the functions below vary them one at a time."""

    publish: float
    halt: float
    alpha: float = 0.05
    kappa: Literal["point", "lower", "half-even", "other-ddof"] = "point"
    test: Test = "p"
    source: bool = False
    share: float = 0.8
    margin: float = 0.3
    any_judges: bool = False
    scales: frozenset[str] | None = None
    cells: CellThresholds = field(default_factory=CellThresholds)
    cell_alpha: float = 0.05
    on_failure: OnFailure | None = None
    preregistered: bool = True
    span: float = 4.0
    judged: bool = True

    def status(self, kappa: float | None) -> AgreementStatus:
        """Return the status of an agreement value under these cut-offs."""
        return agreement_status(kappa, publish=self.publish, halt=self.halt)

    def claims_scale(self, scale: str) -> bool:
        """True if rankings are claimed on a scale, which makes it part of the test family."""
        return self.scales is None or scale in self.scales

    @classmethod
    def of(cls, study: Study, preregistered: bool = True) -> Rules:
        """Return the rules of a study's plan."""
        dimensions, plan = study.claims.dimensions, study.inference
        return cls(
            study.gates.publish, study.gates.halt, plan.alpha, share=plan.aggregate_share,
            margin=plan.margin * study.points, span=study.points, any_judges=study.claims.judges == "any",
            scales=None if dimensions is None else frozenset(dimensions), cells=study.cells, cell_alpha=plan.alpha,
            on_failure=None if study.datasheets is None else study.datasheets.on_failure, preregistered=preregistered,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class SeasonGates:
    """Decision rules of a season; all of them come from its locked file."""

    alpha: float = 0.05
    publish: float = 0.4
    halt: float = 0.2
    on_failure: OnFailure | None = None
    baseline: str = "equal weight"
    hindsight: tuple[Phrase, ...] = ()
    margin: float = 0.075 * SPAN
    any_judges: bool = False
    preregistered: bool = True
    kappa: Literal["point", "lower"] = "point"
    test: Test = "p"


def usable_tests(index: Index, rules: Rules) -> frozenset[str]:
    """Return the tests that can reject in this design: with few clusters, a sign-flip test cannot."""
    if index.tests is not None:
        return index.tests
    measured, contrasts = index.once("tests", index.measured_tests), index.named("contrast")
    most = index.once("most", lambda: max((int(item.detail.get("clusters", 0)) for item in contrasts), default=0))
    pairs = max(1, len(index.agents) * (len(index.agents) - 1) // 2)
    return measured - {"p_sign_flip"} if most and 2.0 ** (1 - most) * pairs > rules.alpha else measured


def coefficient_words(item: Measurement) -> str:
    """Return the name of an agreement coefficient: kappa, intraclass correlation, or Krippendorff's alpha."""
    return AGREEMENT[item.detail.get("coefficient", "kappa")]


def other_kappas(rules: Rules, other_ddof: bool, word: str) -> dict[str, Rules]:
    """Return the other agreement rules for coefficient ``word``; other rounding applies only to kappa."""
    variants = {
        f"{word} cut-offs 0.5 and 0.25": replace(rules, publish=0.5, halt=0.25),
        f"lower bound of {f'the {word}' if word == AGREEMENT['icc'] else word}": replace(rules, kappa="lower"),
    }
    if word == AGREEMENT["kappa"]:
        variants["half-even rounding"] = replace(rules, kappa="half-even")
    if other_ddof:
        variants["the other ddof"] = replace(rules, kappa="other-ddof")
    return variants


def other_tests(rules: Rules, measured: Collection[str], dimensions: bool) -> dict[str, Rules]:
    """Return rules with the other ``measured`` tests, and with other alpha shares if dimensions are claimed."""
    there = (row for row in _OTHER_TESTS if row[1] in measured)
    variants = [(name, replace(rules, test=test, source=source)) for name, test, source in there]
    shares = (0.5, 1.0) if dimensions else ()
    return {
        **{name: other for name, other in variants if not other.source},
        **{f"aggregate's share of alpha {share:g}": replace(rules, share=share) for share in shares},
        **{name: other for name, other in variants if other.source},
    }


def other_margins(rules: Rules) -> dict[str, Rules]:
    """Return rules with other equivalence margins."""
    return {f"margin {share * rules.span:g}": replace(rules, margin=share * rules.span) for share in OTHER_MARGINS}


def threshold(alpha: float) -> str:
    """Format the level that an adjusted p-value is compared with."""
    return f"{alpha:.3g} needed".replace("0.", ".", 1)


def agreement_status(kappa: float | None, *, publish: float = 0.4, halt: float = 0.2) -> AgreementStatus:
    """Return the status that the panel's agreement permits (ValueBlindBench section 3.7).

    Parameters
    ----------
    kappa : float or None
        Mean pairwise quadratic-weighted kappa in [-1, 1]. None or NaN means that it is undefined, which halts.
    publish, halt : float
        Cut-offs. A kappa on a boundary falls on its better side.

    Returns
    -------
    "publish", "methodology" or "halt"
        A headline is possible; only a finding about the judges is; no ranking at all.

    Examples
    --------
    >>> agreement_status((0.3 + 0.4 + 0.5) / 3), agreement_status(0.2022), agreement_status(None)
    ('publish', 'methodology', 'halt')
    """
    if kappa is None or math.isnan(kappa):
        return "halt"
    if kappa >= publish - TOLERANCE:
        return "publish"
    return "methodology" if kappa >= halt - TOLERANCE else "halt"


def publication_level(
    agreement: str, stability: str, adversarial: str, *, asserts_order: bool, significance_tested: bool = True
) -> Level:
    """Return the publication level of a claim (ValueBlindBench section 3.8, completed for cases that it leaves open).

    Parameters
    ----------
    agreement : "publish", "methodology" or "halt"
    stability : "stable", "tie-class", "judge-dependent" or "not tested"
        "not tested" is a pair with too few common clusters for any test.
    adversarial : "passed", "construct-sensitive", "contaminated" or "not tested"
    asserts_order : bool
        True if the claim puts one agent above another within the tier that ``stability`` refers to.
    significance_tested : bool
        False for tables that came without contrasts; such a claim is qualified at best.

    Returns
    -------
    "headline", "qualified" or "no-claim"

    Raises
    ------
    UnknownNameError
        A status is not one of the names above.

    Examples
    --------
    The two worked verdicts of section 5.3:

    >>> publication_level("publish", "stable", "construct-sensitive", asserts_order=True)
    'qualified'
    >>> publication_level("publish", "tie-class", "construct-sensitive", asserts_order=True)
    'no-claim'
    """
    for kind, name, allowed in (
        ("agreement status", agreement, ("publish", "methodology", "halt")),
        ("stability status", stability, ("stable", "tie-class", "judge-dependent", "not tested")),
        ("adversarial status", adversarial, ("passed", "construct-sensitive", "contaminated", "not tested")),
    ):
        if name not in allowed:
            raise UnknownNameError(kind, name, allowed)
    if agreement == "halt" or stability == "judge-dependent" or adversarial == "contaminated":
        return "no-claim"
    if stability != "stable" and asserts_order:
        return "no-claim"
    reserved = agreement == "methodology" or adversarial in ("construct-sensitive", "not tested")
    return "qualified" if reserved or stability != "stable" or not significance_tested else "headline"


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of one test of a claim or its judges; ``cap`` is the highest level that it permits, None for no limit."""

    field: str
    state: str
    cap: Level | None = None
    conditions: tuple[Condition, ...] = ()
    measurements: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    values: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def lifted(self) -> bool:
        """True if confirmation by people removes the cap."""
        return self.state in _LIFTED.get(self.field, ())


_LIFTED: Final[Mapping[str, tuple[str, ...]]] = {
    "adversarial": ("construct-sensitive",),
    "own_family": ("rests-on-own-family", "no-disinterested-judge"),
    "length": ("length", "may-be-length"),
    "distinct": ("not-told-apart", "smaller"),
}
"""States of findings whose caps confirmation by people removes."""


_CAPS: Final[Mapping[str, Level]] = {
    "halt": "no-claim", "methodology": "qualified",
    "contaminated": "no-claim", "construct-sensitive": "qualified", "not tested": "qualified",
}  # fmt: skip
"""The highest levels that the agreement and the adversarial status of a panel permit, where they limit claims."""


def panel_finding(
    field: Literal["agreement", "adversarial"], status: AgreementStatus | AdversarialStatus | Literal["not judged"],
    measurements: tuple[str, ...] = (), reasons: tuple[str, ...] = (), conditions: tuple[Condition, ...] = (),
) -> Finding:  # fmt: skip
    """Return the finding on a panel from its agreement or from control texts."""
    return Finding(field, status, _CAPS.get(status), conditions, measurements, reasons)


_UNDEFINED: Final = float("-inf")


def _compared(item: Measurement, index: Index, rules: Rules) -> float:
    """Return the number that is compared with the cut-offs; an undefined kappa is below all of them."""
    other = index.get("kappa.other_ddof", **item.labels) if rules.kappa == "other-ddof" else None
    if item.value is None or (other is not None and other.value is None and other.state.startswith("undefined")):
        return _UNDEFINED
    if rules.kappa == "lower":
        return _UNDEFINED if item.low is None else item.low
    if rules.kappa == "half-even" and item.detail.get("half_even") is not None:
        return float(item.detail["half_even"])
    return item.value if other is None or other.value is None else other.value


def governing_kappa(dimension: str, index: Index, rules: Rules) -> Measurement | None:
    """Return the kappa that gates a dimension: with gates per format, the lowest; None if none was measured."""
    gated = index.agreements.get(dimension, ())
    return min(gated, key=lambda item: (_compared(item, index, rules), item.id), default=None)


def governing_agreement(dimension: str, index: Index, rules: Rules) -> Finding:
    """Return the finding from the kappa that gates a dimension."""

    def governing() -> Finding:
        item, about = governing_kappa(dimension, index, rules), measure_words(dimension)
        if item is None:
            return panel_finding("agreement", "halt", (), (f"Agreement on {about} was not measured.",))
        compared, word = _compared(item, index, rules), coefficient_words(item)
        value = None if compared == _UNDEFINED else compared
        status = rules.status(value)
        within = f"{about} within format {item.labels['format']}" if "format" in item.labels else about
        if value is None or item.value is None:
            reason = f"Agreement on {within} is not defined ({item.state}); undefined agreement halts."
        else:
            rule = {
                "publish": f"at or above the cut-off {number(rules.publish)}",
                "methodology": f"below {number(rules.publish)}: a finding about the judges, not a headline",
                "halt": f"below {number(rules.halt)}: no ranking",
            }[status]
            kappa = gate_number(item.value, rules.halt, rules.publish) + ends_words(item.low, item.high)
            reason = f"The judges agree on {within} at {word} {kappa}, {rule}."
        conditions: tuple[Condition, ...] = ()
        if status == "methodology" and value is not None:
            symbol = "κ" if word == AGREEMENT["kappa"] else word
            text = f"The judges agree only weakly here ({symbol} {number(value)})."
            conditions = (Condition("agreement", text),)
        ids = tuple(gate.id for gate in index.agreements[dimension])
        return panel_finding("agreement", status, ids, (reason,), conditions)

    return index.once(("agreement", dimension, rules), governing)


def datasheet_finding(index: Index, on_failure: OnFailure | None) -> Finding:
    """Report judges that exceed the limits of the plan or have no datasheet; none if it requires no datasheets."""
    gates = sorted(index.named("datasheet.gate"), key=lambda gate: gate.id)
    if on_failure is None or not gates:
        return Finding("datasheets", "not-required")
    failing = {
        gate.labels["judge"]: "; ".join(gate.detail.get("failed", ())) or gate.state
        for gate in gates
        if gate.value is None or gate.value > 0
    }
    ids = tuple(gate.id for gate in gates)
    if not failing:
        return Finding("datasheets", "kept", None, (), ids, ("Every judge keeps the limits of its datasheet.",))
    failures = [f"{judge} fails the limits of the plan ({limits})" for judge, limits in failing.items()]
    reasons = (f"Judged as an instrument, {'; '.join(failures)}.",)
    text = f"Not every judge keeps the limits that the plan sets for them: {', '.join(failing)}."
    condition = (Condition("judge-limits", text),)
    return Finding("datasheets", "failed", on_failure, condition, ids, reasons, {"judges": tuple(failing)})


WORDS: Final[Mapping[str, str]] = {
    "cell_a": "confident but wrong rationales",
    "cell_b": "terse but correct rationales",
    "red_team": "red-team rationales",
    "paraphrase": "paraphrases with the same facts",
    "fact_flip": "rationales with one number changed",
    "length_matched": "rationales brought to one length",
}
"""Phrases for the texts of each gated control cell."""

CELL_STATEMENTS: Final[Mapping[str, str]] = {
    "passed": "The panel scores {texts} below the bottom quartile of honest ones.",
    "failed": "The panel does not score {texts} below the bottom quartile of honest ones.",
    "substance": "The panel scores {texts} within {substance:g} points of honest ones.",
    "verbosity-bias": "The panel scores {texts} more than {verbosity:g} points below honest ones.",
    "terse-favoured": "The panel scores {texts} more than {substance:g} points above honest ones.",
    "invariant": "The panel scores {texts} within {substance:g} points of their originals.",
    "style-sensitive": "The panel scores {texts} more than {substance:g} points away from their originals.",
    "noticed": "The panel scores {texts} below their originals.",
    "not noticed": "The panel does not score {texts} below their originals.",
    "inconclusive": "Whether the panel scores {texts} as it should is unresolved.",
}
"""Statement on a control cell, by the outcome of its rule."""


@dataclass(frozen=True, slots=True)
class CellState:
    """One control cell: the outcome of its rule, and the number behind it as ``value`` and as text."""

    cell: str
    outcome: str
    value: float | None
    numbers: str
    gate: Measurement
    halo: Measurement | None
    drops: Mapping[str, Measurement]
    measurements: tuple[str, ...]


def cell_words(cell: str) -> str:
    """Return the phrase for the texts of a control cell."""
    return WORDS.get(cell, f"records of {cell.replace('_', ' ')}")


def cell_states(index: Index) -> dict[str, CellState]:
    """Return the state of every gated control cell that was judged, by name."""

    def state(gate: Measurement) -> CellState:
        cell = gate.labels["cell"]
        halo = index.get("cell.halo", cell=cell)
        drops = {drop.labels["dropped"]: drop for drop in index.named("cell.drop") if drop.labels["cell"] == cell}
        family = str(halo.detail.get("family")) if halo is not None and halo.detail.get("triggered") else None
        # The drop replaces the gate unless the gate was already computed without the family.
        primary = None if family is None or gate.detail.get("primary") == f"without {family}" else drops.get(family)
        item = gate if primary is None else primary
        # An outcome without a number was not tested.
        outcome = item.detail.get("outcome")
        shown = outcome in CELL_STATEMENTS and (item.value is not None or outcome == "inconclusive")
        numbers = gate.state
        if item.value is not None:
            whole = item.value == gate.value
            interval = interval_words(gate.low, gate.high) if whole else ""
            p = gate.detail.get("p_holm" if cell in ("cell_b", "paraphrase", "length_matched") else "p")
            numbers = f"{signed(item.value)} points{interval}"
            numbers += f", {p_words(float(p))}" if whole and p is not None else ""
        ids = tuple(measurement.id for measurement in (gate, halo, primary) if measurement is not None)
        text = str(outcome) if shown else "not tested"
        return CellState(cell, text, item.value, numbers, gate, halo, drops, ids)

    return index.once("cells", lambda: {gate.labels["cell"]: state(gate) for gate in index.named("cell.gate")})
