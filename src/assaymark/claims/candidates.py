"""Which claims are decided, in which words, and what each control cell showed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Final, Literal, get_args

from assaymark.claims.messages import agent_words, interval_words, listing, measure_words, p_words, signed
from assaymark.errors import NotMeasurableError
from assaymark.protocol import Cells, Claims
from assaymark.records import AGGREGATE, Claim, Measurement, Scope, measurement_id

if TYPE_CHECKING:
    from assaymark.claims.evidence import Index
    from assaymark.claims.levels import Rules


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
