"""Which claims are decided, and the rules that turn measurements into levels: judge limits, gates, amended fields."""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import TYPE_CHECKING, Final, Literal, get_args

from assaymark.claims.messages import agent_words, interval_words, listing, measure_words, p_words, signed
from assaymark.errors import NotMeasurableError, UnknownNameError
from assaymark.metrology.controls import TOLERANCE
from assaymark.metrology.orders import OTHER_MARGINS
from assaymark.protocol import AGREEMENT, Cells, Claims, Study
from assaymark.records import AGGREGATE, AgreementStatus, Claim, Level, Measurement, Scope, measurement_id

if TYPE_CHECKING:
    from assaymark.claims.evidence import Index

OnFailure = Literal["qualified", "no-claim"]


@dataclass(frozen=True, slots=True)
class Instruments:
    """The judges that do not keep the limits of the plan, or show no datasheet, and what claims may then be at most."""

    failing: tuple[str, ...] = ()
    most: OnFailure = "qualified"
    reason: str = ""
    measurements: tuple[str, ...] = ()


def instruments_of(measurements: Iterable[Measurement], on_failure: OnFailure | None) -> Instruments:
    """What ``datasheet.gate`` measurements permit; everything where the plan demands no datasheets."""
    gates = sorted(
        (measurement for measurement in measurements if measurement.name == "datasheet.gate"),
        key=lambda measurement: measurement.id,
    )
    if on_failure is None or not gates:
        return Instruments()
    failing = {
        gate.labels["judge"]: "; ".join(gate.detail.get("failed", ())) or gate.state
        for gate in gates
        if gate.value is None or gate.value > 0
    }
    reason = "Every judge keeps the limits of its datasheet."
    if failing:
        said = [f"{judge} fails the limits of the plan ({why})" for judge, why in failing.items()]
        reason = f"Judged as an instrument, {'; '.join(said)}."
    return Instruments(tuple(failing), on_failure, reason, tuple(gate.id for gate in gates))


Test = Literal["p", "p_own_variance", "p_cluster_t", "p_bootstrap", "p_sign_flip"]
"""Where the detail of a contrast holds the p-value of a test; ``p`` is that of the plan."""

_OTHER_TESTS: Final[Mapping[str, Test]] = {
    "own variance of each pair": "p_own_variance",
    "clusters weighted by records": "p_cluster_t",
}
_SOURCE_TESTS: Final[Mapping[str, Test]] = {
    "source: percentile bootstrap": "p_bootstrap",
    "source: sign flip": "p_sign_flip",
}
_SHARES: Final = (0.5, 1.0)


@dataclass(frozen=True, slots=True)
class Rules:
    """The decision rules of one plan; the functions below change them one at a time."""

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
    cells: Cells = field(default_factory=Cells)
    cell_alpha: float = 0.05
    on_failure: OnFailure | None = None
    preregistered: bool = True
    span: float = 4.0
    judged: bool = True

    @property
    def order(self) -> Hashable:
        """The part that decides orders; what does not change it need not decide them again."""
        return (self.test, self.source, self.alpha, self.share, self.margin, self.any_judges, self.scales)

    def claims_scale(self, scale: str) -> bool:
        """Whether orders are claimed on a scale, which then is part of the family of tests."""
        return self.scales is None or scale in self.scales

    @classmethod
    def of(cls, study: Study, *, preregistered: bool = True) -> Rules:
        """The rules that a study locked."""
        wanted = study.claims.dimensions
        return cls(
            study.gates.publish,
            study.gates.halt,
            study.inference.alpha,
            share=study.inference.aggregate_share,
            margin=study.inference.margin * study.points,
            span=study.points,
            any_judges=study.claims.judges == "any",
            scales=None if wanted is None else frozenset(wanted),
            cells=study.cells,
            cell_alpha=study.inference.alpha,
            on_failure=None if study.datasheets is None else study.datasheets.on_failure,
            preregistered=preregistered,
        )


def coefficient_words(item: Measurement) -> str:
    """What a measurement of agreement is, in words: kappa, an intraclass correlation, or Krippendorff's alpha."""
    return AGREEMENT[item.detail.get("coefficient", "kappa")]


def other_kappas(rules: Rules, other_ddof: bool, word: str) -> dict[str, Rules]:
    """The other rules about agreement; ``other_ddof`` where a kappa under the other divisor was measured, ``word`` what
    agreement is measured by. Scores that are not rounded have no other rounding."""
    bound = f"the {word}" if word == AGREEMENT["icc"] else word
    found = {
        f"{word} cut-offs 0.5 and 0.25": replace(rules, publish=0.5, halt=0.25),
        f"lower bound of {bound}": replace(rules, kappa="lower"),
    }
    if word == AGREEMENT["kappa"]:
        found["half-even rounding"] = replace(rules, kappa="half-even")
    if other_ddof:
        found["the other ddof"] = replace(rules, kappa="other-ddof")
    return found


def other_tests(rules: Rules, measured: Collection[str], *, dimensions: bool) -> dict[str, Rules]:
    """The other tests that were ``measured`` and can reject, and other shares of alpha where dimensions are claimed."""
    found = {name: replace(rules, test=test) for name, test in _OTHER_TESTS.items() if test in measured}
    if dimensions:
        found |= {f"aggregate's share of alpha {share:g}": replace(rules, share=share) for share in _SHARES}
    source = {name: replace(rules, test=test, source=True) for name, test in _SOURCE_TESTS.items() if test in measured}
    return found | source


def other_margins(rules: Rules) -> dict[str, Rules]:
    """Other margins of equivalence."""
    return {f"margin {share * rules.span:g}": replace(rules, margin=share * rules.span) for share in OTHER_MARGINS}


def threshold(alpha: float) -> str:
    """What an adjusted p-value is compared with, in words."""
    return f"{alpha:.3g} needed".replace("0.", ".", 1)


def agreement_status(kappa: float | None, *, publish: float = 0.4, halt: float = 0.2) -> AgreementStatus:
    """What the panel's agreement permits (ValueBlindBench section 3.7).

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
    """The level at which a claim may be made (ValueBlindBench section 3.8, completed where its table is silent).

    Parameters
    ----------
    agreement : "publish", "methodology" or "halt"
    stability : "stable", "tie-class", "judge-dependent" or "not tested"
        "not tested" is a pair with too few common clusters for any test.
    adversarial : "passed", "construct-sensitive", "contaminated" or "not tested"
    asserts_order : bool
        Whether the claim puts one agent above another inside the class that stability is about.
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


_ABOUT_AGENTS: Final[frozenset[ClaimKind]] = frozenset({"first", "pair", "within"})
_ORDERS: Final[frozenset[ClaimKind]] = frozenset({"first", "pair"})
_NONE: Final[frozenset[ClaimKind]] = frozenset()

TOUCHES: Final[Mapping[str, frozenset[ClaimKind]]] = {
    **dict.fromkeys(
        ("anchor_probe", "contamination", "engine", "human.grades", "title", "inference.mde_power",
         "inference.mde_sd"), _NONE),
    **dict.fromkeys(
        ("gates.format_min_clusters", "gates.format_min_records", "inference.aggregate_share",
         "inference.cluster_order", "inference.test", "stability", "cells.contaminates", "claims.length"),
        _ABOUT_AGENTS),
    **dict.fromkeys(("cells.terse_share", "cells.terse_tokens", "claims.distinct", "claims.judges"), _ORDERS),
    "inference.margin": frozenset({"pair", "within"}),
    "claims.first": frozenset({"first"}),
    "claims.pairs": frozenset({"pair"}),
    "claims.within": frozenset({"within"}),
    "claims.cells": frozenset({"cell"}),
}  # fmt: skip
"""The kinds of claim that a plan field touches; a field without an entry, of its own or of a parent, touches all."""


def amended_for(claim: Claim, amended: Sequence[str]) -> tuple[str, ...]:
    """The amended plan fields under which a claim was made, in the order given, each once."""

    kind = kind_of(claim)

    def touches(name: str) -> bool:
        while name and name not in TOUCHES:
            name = name.rpartition(".")[0]
        return not name or kind in TOUCHES[name]

    return tuple(name for name in dict.fromkeys(amended) if touches(name))


WORDS: Final[Mapping[str, str]] = {
    "cell_a": "confident but wrong rationales",
    "cell_b": "terse but correct rationales",
    "red_team": "red-team rationales",
    "paraphrase": "paraphrases with the same facts",
    "fact_flip": "rationales with one number changed",
    "length_matched": "rationales brought to one length",
}
"""How a sentence calls the texts of each gated cell."""

_STATEMENTS: Final[Mapping[str, str]] = {
    "passed": "The panel scores {texts} below the bottom quartile of honest ones.",
    "failed": "The panel does not score {texts} below the bottom quartile of honest ones.",
    "substance": "The panel scores {texts} within {substance:g} points of honest ones.",
    "verbosity-bias": "The panel scores {texts} more than {verbosity:g} points below honest ones.",
    "terse-favoured": "The panel scores {texts} more than {substance:g} points above honest ones.",
    "invariant": "The panel scores {texts} within {substance:g} points of their originals.",
    "style-sensitive": "The panel scores {texts} more than {substance:g} points away from their originals.",
    "noticed": "The panel scores {texts} below their originals.",
    "not noticed": "The panel does not score {texts} below their originals.",
    "inconclusive": "What the panel makes of {texts} stays open.",
}


@dataclass(frozen=True, slots=True)
class CellState:
    """One control cell: the outcome of its rule and the number behind it."""

    cell: str
    outcome: str
    gate: Measurement
    halo: Measurement | None
    family: str | None
    drops: Mapping[str, Measurement]

    @property
    def texts(self) -> str:
        """How a sentence calls the cell's texts."""
        return cell_words(self.cell)

    @property
    def value(self) -> float | None:
        """The number that the rule looks at, in rubric points, without the in-family judges where that is primary."""
        primary = self.drops.get(self.family) if self.family is not None else None
        return self.gate.value if primary is None else primary.value

    @property
    def numbers(self) -> str:
        """The number with its interval and its p-value, in words."""
        if self.value is None:
            return self.gate.state
        whole = self.value == self.gate.value
        interval = interval_words(self.gate.low, self.gate.high) if whole else ""
        p = self.gate.detail.get("p_holm" if self.cell in ("cell_b", "paraphrase", "length_matched") else "p")
        tail = f", {p_words(float(p))}" if whole and p is not None else ""
        return f"{signed(self.value)} points{interval}{tail}"

    @property
    def measurements(self) -> tuple[str, ...]:
        """What the outcome rests on."""
        primary = () if self.family is None else (self.drops[self.family].id,)
        return (self.gate.id, *(() if self.halo is None else (self.halo.id,)), *primary)


def cell_words(cell: str) -> str:
    """How a sentence calls the texts of a cell."""
    return WORDS.get(cell, f"records of {cell.replace('_', ' ')}")


def cell_states(known: Index) -> dict[str, CellState]:
    """The state of every gated cell that was judged, by its name."""

    def state(gate: Measurement) -> CellState:
        cell = gate.labels["cell"]
        halo = known.get("cell.halo", cell=cell)
        drops = {one.labels["dropped"]: one for one in known.named("cell.drop") if one.labels["cell"] == cell}
        family = str(halo.detail.get("family")) if halo is not None and halo.detail.get("triggered") else None
        # The drop stands in for the gate only where the gate was not already computed without the family.
        if family not in drops or gate.detail.get("primary") == f"without {family}":
            family = None
        # What has no number was not tested.
        item = gate if family is None else drops[family]
        outcome = item.detail.get("outcome")
        shown = outcome in _STATEMENTS and (item.value is not None or outcome == "inconclusive")
        return CellState(cell, str(outcome) if shown else "not tested", gate, halo, family, drops)

    return known.once("cells", lambda: {gate.labels["cell"]: state(gate) for gate in known.named("cell.gate")})


ClaimKind = Literal["first", "pair", "within", "cell"]
KINDS: Final[tuple[ClaimKind, ...]] = get_args(ClaimKind)
"""Every kind of claim, in the order in which the claims about one dimension are decided."""

_HEADS: Final[Mapping[str, ClaimKind]] = {"first": "first", "above": "pair", "within": "within", "cell": "cell"}


def kind_of(claim: Claim) -> ClaimKind:
    """What a claim is about; two agents within the margin have as many subjects as a pair, so counting cannot tell."""
    head = claim.id.partition("[")[0]
    if head not in _HEADS:
        raise NotMeasurableError(f"claim {claim.id!r} is of no known kind ({', '.join(_HEADS)})")
    return _HEADS[head]


def candidate_claims(
    wanted: Claims,
    agents: Sequence[str],
    dimensions: Sequence[str],
    contrasts: Sequence[tuple[str, str, str]],
    margin: float = 0.3,
    *,
    cells: Sequence[tuple[CellState, Cells]] = (),
) -> list[Claim]:
    """The claims of a study: by default every first place, every pair, every pair within the margin, every cell."""
    scopes = [AGGREGATE, *dimensions] if wanted.dimensions is None else list(wanted.dimensions)
    seen = {(dimension, frozenset((high, low))): (high, low) for dimension, high, low in contrasts}
    names, claims = sorted(agents), list[Claim]()
    for dimension in scopes:
        ordered = [seen.get((dimension, frozenset(pair)), pair) for pair in combinations(names, 2)]
        if wanted.first:
            claims += [first_claim(dimension, agent, len(names)) for agent in names]
        if wanted.pairs:
            claims += [pair_claim(dimension, high, low) for high, low in ordered]
        if wanted.within and dimension == AGGREGATE:
            claims += [within_claim(high, low, margin) for high, low in ordered]
    return claims + ([cell_claim(state, limits) for state, limits in cells] if wanted.cells else [])


def claims_of(wanted: Claims, known: Index, rules: Rules, cells: Sequence[CellState]) -> list[Claim]:
    """`candidate_claims` of measurements: their directions and cells under ``rules``."""
    scopes = (AGGREGATE, *known.dimensions) if wanted.dimensions is None else wanted.dimensions
    pairs = list(combinations(known.agents, 2))
    return candidate_claims(
        wanted,
        known.agents,
        known.dimensions,
        [(scope, *direction(scope, *pair, known)) for scope in scopes for pair in pairs],
        rules.margin,
        cells=[(state, rules.cells) for state in cells],
    )


def direction(dimension: str, one: str, other: str, known: Index) -> tuple[str, str]:
    """Which of two agents the panel saw higher: by their contrast, or by their levels where there is none."""
    if known.tested(dimension):
        contrast = known.contrast(dimension, one, other)
        return contrast.high, contrast.low
    levels = [known.level(dimension, name) for name in (one, other)]
    values = [None if item is None else item.value for item in levels]
    if values[0] is None or values[1] is None or values[0] == values[1]:
        return (one, other) if one < other else (other, one)
    return (one, other) if values[0] > values[1] else (other, one)


def suppressed_phrase(claim: Claim) -> str:
    """What an unsupported claim is about; never the sentence itself, nor its direction."""
    where, kind = measure_words(claim.dimension), kind_of(claim)
    if kind == "first":
        return f"A first rank for {claim.subjects[0]} on {where}."
    if kind == "cell":
        return f"How the panel scores {cell_words(claim.subjects[0])}."
    names = listing(sorted(claim.subjects))
    return f"That {names} score alike on {where}." if kind == "within" else f"Any ranking of {names} on {where}."


def first_claim(dimension: str, agent: str, count: int) -> Claim:
    """ "X ranks first of so many agents"."""
    scope: Scope = "aggregate-ranking" if dimension == AGGREGATE else "dimension-ranking"
    says = f"{agent} ranks first of the {agent_words(count)} on {measure_words(dimension)}."
    return _claim("first", {"dimension": dimension, "agent": agent}, scope, says, (agent,), asserts_order=True)


def pair_claim(dimension: str, high: str, low: str) -> Claim:
    """ "X scores above Y"."""
    labels, says = (
        {"dimension": dimension, "high": high, "low": low},
        f"{high} scores above {low} on {measure_words(dimension)}.",
    )
    return _claim("above", labels, "pairwise-contrast", says, (high, low), asserts_order=True)


def within_claim(high: str, low: str, margin: float, dimension: str = AGGREGATE) -> Claim:
    """ "X and Y score within the margin of each other" on the overall score; it asserts no order."""
    both, labels = " and ".join(sorted((high, low))), {"dimension": dimension, "high": high, "low": low}
    says = f"{both} score within {margin:g} of each other on {measure_words(dimension)}."
    return _claim("within", labels, "pairwise-contrast", says, (high, low), asserts_order=False)


def cell_claim(state: CellState, limits: Cells) -> Claim:
    """What the panel makes of one control cell."""
    text = _STATEMENTS.get(state.outcome, "How the panel treats {texts} was not tested.")
    says = text.format(texts=state.texts, substance=limits.substance, verbosity=limits.verbosity)
    return _claim("cell", {"cell": state.cell}, "adversarial-cell", says, (state.cell,), asserts_order=False)


def _claim(
    head: str, labels: dict[str, str], scope: Scope, says: str, subjects: tuple[str, ...], *, asserts_order: bool
) -> Claim:
    dimension = labels.get("dimension", AGGREGATE)
    return Claim(
        id=measurement_id(head, labels), scope=scope, statement=says, subjects=subjects, dimension=dimension,
        asserts_order=asserts_order,
    )  # fmt: skip
