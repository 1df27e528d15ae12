"""What else may explain an order: judges' own families, length, an overall impression, these judges and no others."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from assaymark.claims.candidates import kind_of
from assaymark.claims.evidence import Index
from assaymark.claims.orders import Standing, length_floor, orders_of
from assaymark.claims.rules import Rules, threshold
from assaymark.claims.standing import Evidence
from assaymark.claims.words import listing, measure_words, number, p_words
from assaymark.metrology.cell_rules import TOLERANCE
from assaymark.metrology.multiplicity import LEVEL_SLACK
from assaymark.records import (
    AGGREGATE,
    Claim,
    Condition,
    LengthState,
    Level,
    Measurement,
    OtherJudgesState,
    OwnFamilyState,
)
from assaymark.typography import NBSP, percent

FEW_CLUSTERS = 5
FEW_CONSECUTIVE = 24
_OVERLAP = 0.2
_SHOWN = 0.005  # points; less reads as 0.00


@dataclass(frozen=True, slots=True)
class Finding:
    """What one test of a bias found about a claim, and the highest level that it leaves (None: any).

    ``values`` are what its sentence is made of, for those who word it in another language.
    """

    field: str
    state: str
    cap: Level | None = None
    reasons: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = ()
    measurements: tuple[str, ...] = ()
    values: Mapping[str, Any] = dataclasses.field(default_factory=dict)


def own_family_of(claim: Claim, evidence: Evidence, known: Index, rules: Rules) -> Finding:
    """Whether the order rests on judges that share a family with one of the agents."""
    if unknown := known.families_unknown:
        text = f"Families of {unknown} are not given."
        return Finding("own_family", "unknown", "qualified", conditions=(Condition(id="families-unknown", text=text),))
    items = _items("recusal.contrast", claim.dimension, evidence.pairs, known)
    ids = tuple(item.id for item in items)
    if any(item.value is None for item in items):
        text = (
            "Every judge shares its family with one of the two; no one without an interest has judged this pair."
            if len(evidence.pairs) == 1
            else "Of some pairs every judge shares its family with one of the two; no one without an interest has "
            "judged them."
        )
        return Finding("own_family", "no-disinterested-judge", "qualified",
                       conditions=(Condition(id="own-family", text=text),), measurements=ids)  # fmt: skip
    if "plain" not in evidence.published or "gated" in evidence.published or kind_of(claim) == "within":
        return Finding("own_family", "clear", measurements=ids)
    turned = [item for item in items if _excludes_zero_below(item)]
    worst = max((pair.gated for pair in evidence.pairs), default=1.0)
    level = orders_of(known, rules).level(claim.dimension)
    if turned:
        why = "The order turns without the judges from the agents' own makers."
    else:
        numbers = f"{p_words(worst)} ({threshold(level)})"
        own = "The order rests on judges from the agents' own makers: without them"
        # No judge has an interest in these pairs, but the steps of the correction count on pairs where one has.
        others = "Where judges stand aside for agents of their own makers, orders that this one waits for do not hold:"
        why = f"{own if items else others} {numbers}."
    state: OwnFamilyState = "turns-without-own-family" if turned else "rests-on-own-family"
    return Finding("own_family", state, "no-claim", (why,), (), ids, {"p": worst, "needed": level})


def length_of(claim: Claim, evidence: Evidence, known: Index, rules: Rules) -> Finding:
    """Whether the length of the texts may explain a difference: caps an order at qualified, never lower."""
    items = _items("length.contrast", claim.dimension, evidence.pairs, known)
    if not items and known.in_parts:
        text = "Whether length explains the difference was not tested: the table was read in parts."
        return Finding("length", "not-tested", "qualified", (), (Condition(id="length", text=text),))
    if not items:
        return Finding("length", "not-tested")
    ids = tuple(item.id for item in items)
    overlap = min((float(item.detail.get("overlap", 1.0)) for item in items), default=1.0)
    beside = (
        (Condition(id="overlap", text="Their lengths hardly overlap; the adjustment is extrapolated."),)
        if overlap < _OVERLAP
        else ()
    )
    if kind_of(claim) == "within":
        return _length_within(claim, items, beside, rules)
    if "headline" in evidence.published:
        return Finding("length", "clear", None, (), beside, ids)
    words = [(str(item.detail.get("word", "may be length")).replace(" ", "-"), item) for item in items]
    held = [(word, item) for word, item in words if length_floor(item) > 0 and item.value is not None]
    # A family of tests may fail where each of its contrasts would pass alone.
    raised = [("may-be-length" if word == "clear" else word, item) for word, item in held]
    order = get_args(LengthState)
    if "gated" not in evidence.published:
        state = max((word for word, _ in words), key=order.index)
        if state == "clear" or "plain" not in evidence.published:
            return Finding("length", state, None if state == "clear" else "qualified", (), (), ids)
    elif not raised and (rules.any_judges or not all(pair.row.disinterested for pair in evidence.pairs)):
        return Finding("length", "clear", None, (), beside, ids)  # another field names what fails
    elif not raised:
        # The two write equally much, but the order needs the others' p-values as they are before length is held equal.
        p = p_words(max(pair.headline for pair in evidence.pairs))
        needed = threshold(orders_of(known, rules).level(claim.dimension))
        text = f"It may be length: with all agents at equal length the order is not resolved ({p} adjusted; {needed})."
        return Finding("length", "may-be-length", "qualified", (), (Condition(id="length", text=text), *beside), ids)
    word, item = max(raised or words, key=lambda found: (order.index(found[0]), found[1].detail.get("p", 0.0)))
    said = (Condition(id="length", text=_length_words(word, item)), *beside)
    return Finding("length", word, "qualified", (), said, ids, {"item": item})


def _length_within(claim: Claim, items: Sequence[Measurement], beside: tuple[Condition, ...], rules: Rules) -> Finding:
    """Equal at equal length, too? A gap that length hides is no equivalence."""
    (item,) = items
    ids = (item.id,)
    near = item.detail.get("p_equivalence_at", {})
    p = float(near.get(f"{rules.margin:g}", item.detail.get("p_equivalence", 1.0)))
    if length_floor(item) == 0.0 or p <= rules.alpha + LEVEL_SLACK:
        return Finding("length", "clear", None, (), beside, ids)
    one, other = sorted(claim.subjects)
    text = f"At equal length {one} and {other} are not shown to score within {rules.margin:g} of each other."
    return Finding("length", "may-be-length", "qualified", (), (Condition(id="length", text=text), *beside), ids)


def _length_words(word: str, item: Measurement) -> str:
    high, low, detail = item.labels["high"], item.labels["low"], item.detail
    gap, slope, raw = (float(detail.get(name) or 0.0) for name in ("gap", "slope", "raw"))
    covariates = detail.get("covariates", ["log2"])
    what = "length" if covariates == ["log2"] else "style"
    lead = f"It is {what}" if word == "length" else f"It may be {what}"
    if slope == 0.0 and what == "length":
        return f"{lead}: each agent always writes the same length."
    explained = (
        sum(a * b for a, b in zip(detail["slopes"], detail["gaps"], strict=True)) if "slopes" in detail else slope * gap
    )
    longer, other, times = (high, low, 2**gap) if gap > 0 else (low, high, 2**-gap)
    writes = (
        f"{longer} writes {times:.1f} times as much as {other}" if "log2" in covariates else "texts differ in style"
    )
    if explained < _SHOWN:
        p = p_words(float(detail["p"]))
        return f"{lead}: {writes}, and at equal {what} the difference is not resolved ({p})."
    if "slopes" in detail:
        return f"{lead}: {writes}, and differences in {what} would explain {number(explained)} of {number(raw)}."
    return (
        f"{lead}: {writes}, and {number(slope)} points a doubling would explain {number(explained)} of {number(raw)}."
    )


def distinct_of(claim: Claim, evidence: Evidence, known: Index, rules: Rules) -> Finding:
    """Whether judges tell a dimension from their overall impression, and whether the difference is more than that."""
    if claim.dimension == AGGREGATE or len(known.dimensions) < 2:
        return Finding("distinct", "not-applicable")
    item = known.get("dimension.distinct", dimension=claim.dimension)
    if item is None or item.state.startswith("not measurable"):
        if known.in_parts:
            text = "Whether judges tell the dimensions apart was not tested: the table was read in parts."
            said = (Condition(id="not-told-apart", text=text),)
            return Finding("distinct", "not-tested", "qualified", (), said, () if item is None else (item.id,))
        return Finding("distinct", "not-tested", measurements=() if item is None else (item.id,))
    where, ids = measure_words(claim.dimension), (item.id,)
    p = item.detail.get("p_holm")
    if p is None or float(p) > rules.alpha + LEVEL_SLACK:
        if item.value is None:
            text = f"Judges share nothing on {where}."
        else:
            ends = "" if item.low is None or item.high is None else f" [{number(item.low)}, {number(item.high)}]"
            text = f"Judges do not tell {where} from the overall impression (phi {number(item.value)}{ends})."
        condition = Condition(id="not-told-apart", text=text)
        return Finding("distinct", "not-told-apart", "qualified", (), (condition,), ids)
    gaps = [known.contrast(claim.dimension, pair.row.high, pair.row.low).measurement for pair in evidence.pairs]
    sided = [pair for pair in gaps if pair.value is not None and "others" in pair.detail]
    if any((pair.value or 0.0) < float(pair.detail["others"]) - TOLERANCE for pair in sided):
        text = "The difference is smaller than on the other dimensions: it may be spill-over."
        spill = [Condition(id="smaller", text=text)] if evidence.published else []
        return Finding("distinct", "smaller", "qualified", (), tuple(spill), ids)
    specific = sided and all(float(pair.detail["p_specific"]) <= rules.alpha for pair in sided)
    more = [Condition(id="specific", text=f"In particular on {where}.")] if specific else []
    return Finding("distinct", "passed", None, (), tuple(more), ids)


def other_judges_of(claim: Claim, evidence: Evidence, known: Index, rules: Rules) -> Finding:
    """Whether judges like these would see the same order."""
    items = _items("judges.contrast", claim.dimension, evidence.pairs, known)
    ids = tuple(item.id for item in items)
    tested = [item for item in items if item.value is not None]
    state: OtherJudgesState = "not-tested"
    if items and len(tested) == len(evidence.pairs):
        yes = all((item.value or 0.0) > 0 and float(item.detail["p"]) <= rules.alpha + LEVEL_SLACK for item in tested)
        state = "yes" if yes else "no"
    if not rules.any_judges or "headline" in evidence.published or "gated" not in evidence.published:
        return Finding("other_judges", state, measurements=ids)
    text = "It is not shown to hold for other judges."
    return Finding("other_judges", state, "qualified", (), (Condition(id="other-judges", text=text),), ids)


def missing_of(known: Index, rules: Rules) -> Finding:
    """Replies that are missing: orders of the judges that are left, where one was left out, are qualified."""
    items = [item for item in known.named("missing.share") if "judge" in item.labels and item.value]
    if not items:
        return Finding("missing_replies", "none")
    text, ids = " ".join(missing_words(items, rules.alpha)), tuple(item.id for item in items)
    said = (Condition(id="missing-replies", text=text),)
    if any(item.detail.get("left_out") for item in items):
        return Finding("missing_replies", "left-out", "qualified", (), said, ids)
    return Finding("missing_replies", "tolerated", None, (text,), said, ids)


def missing_words(items: Sequence[Measurement], alpha: float) -> list[str]:
    """Who was left out, what the others lack of the records they were asked about, and of whom more than of others.

    ``items`` are ``missing.share`` of judges.
    """
    found = []
    for item in items:
        judge, lacking = item.labels["judge"], item.detail.get("lacking", {})
        if item.detail.get("left_out"):
            found.append(f"Judge {judge} was left out: {item.detail['left_out']}.")
            continue
        n, of = sum(int(no) for no, _ in lacking.values()), item.detail.get("records")
        share = percent(item.value or 0.0, 1).replace(NBSP, " ")
        found.append(f"Judge {judge} gave no usable score on {n} of {of} decisions ({share}).")
        more = item.detail.get("p_more", {})
        for agent, (no, asked) in lacking.items():
            if (p := float(more.get(agent, 1.0))) <= alpha:
                found.append(
                    f"It left out {agent} ({no} of {asked}) more often than the others "
                    f"({n - no} of {of - asked}; {p_words(p)}): what is missing may not be any text."
                )
    return found


def flagged_of(evidence: Evidence, known: Index) -> Finding:
    """Texts of the agents compared that address the judge: said with a claim, and no limit of its level."""
    agents = {name for pair in evidence.pairs for name in (pair.row.high, pair.row.low)}
    items = [one for one in known.named("agent.flagged_texts") if one.value and one.labels["agent"] in agents]
    if not items:
        return Finding("flagged_texts", "none")
    counts = listing([f"{one.detail['count']} of {one.n} of {one.labels['agent']}" for one in items])
    text = f"Texts address the judge or imitate its prompt ({counts}); they were scored like any other."
    said = (Condition(id="flagged-texts", text=text),)
    return Finding("flagged_texts", "flagged", None, (), said, tuple(one.id for one in items))


def clusters_of(claim: Claim, evidence: Evidence, known: Index) -> list[Finding]:
    """Few clusters, and clusters that follow each other in time."""
    found: list[Finding] = []
    counts = [_clusters(claim.dimension, pair, known) for pair in evidence.pairs if pair.row.testable]
    if not counts:
        return found
    item = known.get("order.autocorrelation", dimension=claim.dimension)
    serial = item is not None and item.detail.get("order") == "consecutive"
    few = min(counts)
    if few <= FEW_CLUSTERS:
        text = f"Few clusters ({few}): this rests on normal errors."
        said = (Condition(id="few-clusters", text=text),)
        found.append(Finding("clusters", "few", conditions=said, values={"n": few}))
    if serial and few < FEW_CONSECUTIVE:
        worth = min(_effective(claim.dimension, pair, known) for pair in evidence.pairs)
        text = f"{few} clusters that follow each other count as about {worth:.0f}."
        said = (Condition(id="consecutive", text=text),)
        values = {"n": few, "worth": worth}
        found.append(Finding("clusters", "consecutive", "qualified", conditions=said, values=values))
    elif not serial and item is not None and item.detail.get("flagged") and claim.asserts_order:
        text = (
            f"Clusters were declared exchangeable, but follow each other (autocorrelation {number(item.value or 0)})."
        )
        said, values = (Condition(id="autocorrelated", text=text),), {"value": item.value or 0.0}
        found.append(
            Finding("clusters", "autocorrelated", "qualified", (), said, measurements=(item.id,), values=values)
        )
    return found


def scope_words(state: str, judges: int) -> str:
    """Whose scores a sentence is about: these judges', unless it holds for others like them.

    >>> scope_words("no", 3), scope_words("yes", 3)
    (' in the scores of these 3 judges', '')
    """
    if state == "yes":
        return ""
    return f" in the scores of {'this judge' if judges == 1 else f'these {judges} judges'}"


def _items(name: str, dimension: str, pairs: Sequence[Standing], known: Index) -> list[Measurement]:
    found = (known.get(name, dimension=dimension, high=pair.row.high, low=pair.row.low) for pair in pairs)
    return [item for item in found if item is not None]


def _excludes_zero_below(item: Measurement) -> bool:
    """Whether an interval lies on the other side of zero."""
    return item.value is not None and item.value < 0 and item.high is not None and item.high < 0


def _clusters(dimension: str, pair: Standing, known: Index) -> int:
    return int(
        known.contrast(dimension, pair.row.high, pair.row.low).measurement.detail.get("clusters", FEW_CLUSTERS + 1)
    )


def _effective(dimension: str, pair: Standing, known: Index) -> float:
    detail = known.contrast(dimension, pair.row.high, pair.row.low).measurement.detail
    return float(detail.get("effective") or detail.get("clusters", 0.0))
