"""What a claim has to pass, check by check: the value, what is needed, and whether it stops or conditions the claim.

Checks are in the order in which they are decided, and end with the one that stops. What is said of a claim that is
not supported is the same for both directions of a pair, and for every agent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from assaymark.claims import kind_of
from assaymark.metrology.orders import LEVEL_SLACK
from assaymark.records import AGGREGATE, AnchorState, Measurement, Verdict
from assaymark.report.blocks import Group, Section, notes, section, table_of
from assaymark.report.inputs import RunIndex
from assaymark.report.study.controls import against, controls, gate_words
from assaymark.report.study.probes import favour_words
from assaymark.report.text import (
    alpha,
    counted,
    ends_of,
    estimate,
    gap_words,
    listing,
    p_of,
    p_value,
    plural,
    real,
    sentence,
    shown,
    signed,
    sizes,
    state_words,
)
from assaymark.text import clean, count, number

ONE_FAMILY: Final = "not measurable: one judge family"

_CAPS: Final[Mapping[str, str]] = {
    "agreement": "agreement of the judges",
    "stability": "significance or stability",
    "own_family": "judges of the agents’ own makers",
    "length": "length",
    "distinct": "validity of the dimension",
    "clusters": "the clusters",
    "adversarial": "the control texts",
    "datasheets": "the judges’ own tests",
    "human_anchor": "people’s grades",
    "other_judges": "other judges",
    "preregistration": "preregistration",
}
_ANCHORS: Final[Mapping[AnchorState, str]] = {
    "not-tested": "not graded by people",
    "confirms": "people’s grades confirm it",
    "undecided": "people’s grades leave it open",
    "contradicts": "people’s grades contradict it",
}
_CONTROLS: Final[Mapping[str, str]] = {
    "passed": "passed",
    "construct-sensitive": "sensitive to style",
    "contaminated": "failed: the scores reward length and confidence",
    "not tested": "not tested",
    "not judged": "not judged",
}


@dataclass(frozen=True, slots=True)
class Check:
    """One check of a claim. ``effect`` says whether it stops the claim, or leaves it with a condition."""

    name: str
    text: str
    effect: Literal["", "condition", "stops"] = ""


@dataclass(frozen=True, slots=True)
class Checked:
    """The checks of a claim up to the one that stops it, and the names of those behind that one."""

    checks: tuple[Check, ...]
    unreached: tuple[str, ...]


def cap_words(field: str) -> str:
    """How a page calls a field that limits a claim.

    >>> cap_words("own_family"), cap_words("missing_replies")
    ('judges of the agents’ own makers', 'missing replies')
    """
    return _CAPS.get(field) or clean(field.replace("_", " "), 40)


def stopping(verdict: Verdict) -> tuple[str, ...]:
    """The fields that leave a claim unsupported."""
    return tuple(cap.field for cap in verdict.caps if cap.level == "no-claim" and not cap.lifted)


def is_significant(book: RunIndex, verdict: Verdict) -> bool:
    """Whether the test of a claim's difference rejects, whatever then happens to it."""
    if kind_of(verdict.claim) == "within":
        return verdict.p_adjusted is not None and verdict.p_adjusted <= book.study.inference.alpha + LEVEL_SLACK
    return verdict.stability is not None


def significant(book: RunIndex, dimension: str = AGGREGATE) -> list[Verdict]:
    """The pairs of a score whose test rejects."""
    return [v for v in book.on(dimension, "pair") if is_significant(book, v)]


def checked(book: RunIndex, verdict: Verdict) -> Checked:
    """Every check of a claim, with what limits it marked. Of the first ranks that are not supported, one agent's would
    show in which check it stops that it leads: all of them say the same."""
    return book.once(("checked", verdict.claim.id), lambda: _checked(book, verdict))


def _checked(book: RunIndex, verdict: Verdict) -> Checked:
    caps = {cap.field: cap.level for cap in reversed(verdict.caps) if not cap.lifted}
    rows = _cell(book, verdict) if kind_of(verdict.claim) == "cell" else _rows(book, verdict)
    found: list[Check] = []
    for name, field, text in rows:
        if found and found[-1].effect == "stops":
            break
        level = caps.get(field)
        found.append(Check(name, text, "stops" if level == "no-claim" else "condition" if level else ""))
    if verdict.publication_level == "no-claim" and kind_of(verdict.claim) == "first" and found[0].effect != "stops":
        found = [found[0], Check("Difference", "no supported lead over every other agent", "stops")]
    return Checked(tuple(found), tuple(name for name, _, _ in rows[len(found) :]))


Row = tuple[str, str, str]
"""A check as (name, field that limits the level, words)."""


def _rows(book: RunIndex, verdict: Verdict) -> list[Row]:
    """The checks of a claim about agents."""
    claim, tested = verdict.claim, bool(book.every("contrast", dimension=verdict.claim.dimension))
    # What limits a claim by significance or stability is the first of the two that does not hold.
    survives = is_significant(book, verdict) if tested else verdict.stability_status != "stable"
    rows: list[Row] = [
        ("Agreement", "agreement", agreement_words(book, verdict)),
        ("Difference", "" if survives else "stability", _difference(book, verdict, tested)),
        ("Without any one judge family", "stability" if survives else "", family_words(book, verdict)),
    ]
    if tested:
        items = _pairs_of(book, verdict, "recusal.contrast")
        if verdict.own_family == "clear" and items:
            (only, *more) = items
            aside = "also with judges standing aside for agents of their own makers"
            gap = verdict.claim.asserts_order and verdict.publication_level != "no-claim" and not more and only.value
            own_family = book.to(only, f"{aside}: {gap_words(only)}") if gap else aside
        else:
            adjusted = "" if verdict.p_adjusted is None else (
                f": adjusted {p_value(verdict.p_adjusted)}; {alpha(book.needed(verdict.claim.dimension))} needed"
            )  # fmt: skip
            rests = f"{'' if items else 'orders that rest on '}judges from the agents’ own makers; without them"
            own_family = {
                "clear": "no judge shares a family with the agents",
                "rests-on-own-family": f"rests on {rests}{adjusted}",
                "turns-without-own-family": "turns without the judges from the agents’ own makers",
                "no-disinterested-judge": "every judge shares its family with one of the two",
                "unknown": "families are not given",
                "not-applicable": "not tested",
            }[verdict.own_family]
        rows += [("Own family", "own_family", own_family), ("Length", "length", _length(book, verdict))]
        rows += [("Dimension", "distinct", _distinct(book, verdict))] if claim.dimension != AGGREGATE else []
        rows.append(("Clusters", "clusters", _clusters(book, verdict)))
    rows += _further(book, verdict)
    if claim.asserts_order and tested:
        p = [one for m in _pairs_of(book, verdict, "judges.contrast") if (one := real(m.detail.get("p"))) is not None]
        needed = f": {p_value(max(p))}; {alpha(book.study.inference.alpha)} needed" if len(p) == 1 else ""
        rows.append(("Other judges", "other_judges", {
            "yes": f"expected of other judges, too{needed}",
            "no": f"not shown for other judges{needed}",
            "not-tested": "not tested: three judge families are needed",
            "not-applicable": "not tested",
        }[verdict.other_judges]))  # fmt: skip
    return rows


def _further(book: RunIndex, verdict: Verdict) -> list[Row]:
    # What control texts say of a claim, with their numbers; not "passed" where one judge family makes it so.
    found = [control for control in controls(book) if control.gate is not None and control.gate.value is not None]
    turned = "; ".join(f"{control.name} {control.without}" for control in found if control.turned)
    said = _CONTROLS[verdict.adversarial_status]
    said = f"depends on the judges: {turned}" if turned and verdict.adversarial_status == "passed" else said
    numbers = "; ".join(f"{control.name} {gate_words(control)}, {control.outcome}" for control in found)
    people, item = _ANCHORS[verdict.human_anchor], None
    if kind_of(verdict.claim) == "pair" and verdict.publication_level != "no-claim":
        item = book.pair("human.contrast", verdict)
    if item is not None and item.value is not None:
        graded = plural(item.n, "graded cycle")
        people = book.to(item, f"{people}: {gap_words(item)}, {graded}; judges favour {favour_words(item)}")
    failing = any(cap.field == "datasheets" for cap in verdict.caps)
    fixed = "yes" if verdict.preregistered else "no: the scores had been seen when the plan was locked"
    return [
        ("Control texts", "adversarial", f"{said}; {numbers}" if numbers else said),
        ("Judges’ own tests", "datasheets", "a judge misses a limit of the plan" if failing else "no limit missed"),
        ("People", "human_anchor", people),
        ("Preregistered", "preregistration", fixed),
        *((cap_words(cap.field).capitalize(), cap.field, "limits this claim")
          for cap in verdict.caps if cap.field not in _CAPS),
    ]  # fmt: skip


def _cell(book: RunIndex, verdict: Verdict) -> list[Row]:
    """The checks of a claim about control texts."""
    cell = verdict.claim.subjects[0]
    item, control = book.one("cell.agreement", cell=cell), next((c for c in controls(book) if c.cell == cell), None)
    words = {
        "publish": "every judge family sees the difference",
        "methodology": "every panel without one family sees the difference, but not every family alone",
    }.get(
        verdict.agreement_status,
        f"not every panel without one judge family sees the difference, or {book.sign} is too low",
    )
    result = "not measured" if control is None else book.to(
        control.gate, f"{gate_words(control)} against {against(cell)}: {control.said}"
    )  # fmt: skip
    kappa = ""
    if item is not None and item.value is not None:
        kappa = f"; {book.sign} with the honest records {number(item.value)}"
    stable = verdict.stability_status == "stable"
    without = "holds without any one judge family" if stable else "depends on one of them"
    return [
        ("Number of the rule", "", result),
        ("Agreement", "agreement", book.to(item, words + kappa)),
        ("Without any one judge family", "stability", without),
        ("Judges of the writer’s family", "adversarial", _CONTROLS[verdict.adversarial_status]),
        *_further(book, verdict)[1:],
    ]


# --- the words of each check ------------------------------------------------------------------------------------------


def agreement_words(book: RunIndex, verdict: Verdict) -> str:
    """The kappa that decides, and what is needed."""
    dimension, gates = verdict.claim.dimension, book.study.gates
    item = book.gating(dimension)
    if item is None or item.value is None:
        return shown(item)
    needed = gates.halt if verdict.agreement_status == "halt" else gates.publish
    return book.to(item, f"{book.gating_words(dimension)}; {number(needed)} needed")


def _difference(book: RunIndex, verdict: Verdict, tested: bool) -> str:
    claim, kind = verdict.claim, kind_of(verdict.claim)
    if not tested:
        return "significance not tested: the table came without contrasts"
    item = None if kind == "first" else book.pair("contrast", verdict)
    if item is not None and item.value is None:
        return state_words(item)
    if verdict.p_adjusted is None or verdict.p is None:
        return "not tested"
    level = book.study.inference.alpha if kind == "within" else book.needed(claim.dimension)
    said = f"adjusted {p_value(verdict.p_adjusted)}; {alpha(level)} needed"
    if "own_family" in stopping(verdict):
        said = f"{p_value(verdict.p)} of all judges together"
    if item is None or verdict.publication_level == "no-claim" or not claim.asserts_order:
        return f"the weakest lead: {said}" if kind == "first" else said
    clusters = item.detail.get("clusters")
    where = f" in {counted(clusters, 'cluster')}" if isinstance(clusters, int) else ""
    return book.to(item, f"{gap_words(item)} over {sizes(item)}{where}, {said}")


def family_words(book: RunIndex, verdict: Verdict) -> str:
    """What leaving out each judge family does to a claim."""
    finding, families = verdict.stability, len(book.study.families)
    if finding is None:
        return {
            "stable": "holds without any one judge family",
            "tie-class": "not shown without each judge family",
            "judge-dependent": "depends on one judge family",
        }.get(verdict.stability_status if families > 1 else "", ONE_FAMILY)
    names = listing([clean(name, 60) for name in finding.families], last="or")
    return {
        "stable": f"holds without any one of {plural(families, 'judge family', 'judge families')}",
        "rests-on": f"needs judge family {names} to be seen",
        "reversed-without": f"turns without judge family {names}",
        "not-measurable": ONE_FAMILY,
    }[finding.state]


def _pairs_of(book: RunIndex, verdict: Verdict, name: str) -> list[Measurement]:
    """The measurements of a kind about the pairs that a claim compares."""
    one, *rest = verdict.claim.subjects
    others = rest or [agent for agent in book.agents if agent != one]
    found = (book.contrast(verdict.claim.dimension, one, other, name) for other in others)
    return [item for item in found if item is not None]


def _length(book: RunIndex, verdict: Verdict) -> str:
    """Whether length may explain it. How long each agent writes would turn the word into a direction."""
    words = {
        "clear": "also at equal length",
        "may-be-length": "may be length",
        "length": "length explains it",
        "not-tested": "not tested",
        "not-applicable": "not tested",
    }[verdict.length]
    items = _pairs_of(book, verdict, "length.contrast")
    if verdict.publication_level == "no-claim" or len(items) != 1:
        return words
    gap, slope = (real(items[0].detail.get(key)) for key in ("gap", "slope"))
    if gap is None or slope is None:
        return words
    longer, other = (clean(items[0].labels[key], 60) for key in (("high", "low") if gap >= 0 else ("low", "high")))
    text = f"{words}: {longer} writes {number(2 ** abs(gap), 1)} times as much as {other}, {signed(slope)} points a "
    text += "doubling"
    if verdict.p_adjusted_headline is not None:
        needed = alpha(book.needed(verdict.claim.dimension))
        text += f"; at equal length adjusted {p_value(verdict.p_adjusted_headline)}, {needed} needed"
    return book.to(items[0], text)


def _distinct(book: RunIndex, verdict: Verdict) -> str:
    item, phi = book.one("dimension.distinct", dimension=verdict.claim.dimension), ""
    if item is not None and item.value is not None:
        cut, tested = number(book.study.claims.distinct), p_of(item, "p_holm", ", adjusted ", "")
        phi = book.to(item, f": correlation {number(item.value)}{ends_of(item)}; below {cut} needed{tested}")
    return {
        "passed": f"told apart from the overall impression{phi}",
        "not-told-apart": f"not told apart from the overall impression{phi}",
        "smaller": "told apart, but the difference is smaller than on the other dimensions",
        "not-tested": "not tested",
        "not-applicable": "the only dimension",
    }[verdict.distinct]


def _clusters(book: RunIndex, verdict: Verdict) -> str:
    details = [m.detail for m in _pairs_of(book, verdict, "contrast") if isinstance(m.detail.get("clusters"), int)]
    if not details:
        return "not stated"
    detail = min(details, key=lambda one: int(one["clusters"]))
    few, worth = count(detail["clusters"]), real(detail.get("effective"))
    item = book.one("order.autocorrelation", dimension=verdict.claim.dimension)
    if item is not None and item.detail.get("order") == "consecutive":
        effective = "" if worth is None else f", worth about {number(worth, 0)}"
        return book.to(item, f"{few} that follow each other in time{effective}")
    follow = ", but they follow each other in time" if item is not None and item.detail.get("flagged") else ""
    return book.to(item, f"{few}, taken as independent{follow}")


# What else could explain a difference? Judges' liking of their own family, length, one overall impression, time.
#
# The tables describe judges and the design, so they are shown whatever the verdicts are; of pairs they hold counts
# alone.


_LAGS: Final = 4


def explanations_section(book: RunIndex) -> Section:
    """What else could explain a difference: a table for each explanation that could be measured."""
    overall, passed, distinct, lags = significant(book), [], [], []
    for dimension in book.dimensions:
        if found := significant(book, dimension):
            own, length, apart, others = (
                Counter(getattr(v, name) for v in found)
                for name in ("own_family", "length", "distinct", "other_judges")
            )
            passed.append((
                book.title(dimension), count(len(found)), count(own["clear"]),
                "not tested" if length["not-tested"] == len(found) else count(length["clear"]),
                count(length["may-be-length"] + length["length"]),
                "not applicable" if apart["not-applicable"] == len(found) else count(apart["passed"]),
                "not tested" if others["not-tested"] == len(found) else count(others["yes"]),
            ))  # fmt: skip
        item = book.one("order.autocorrelation", dimension=dimension)  # how far neighbouring clusters are alike
        known = [one for lag in item.detail.get("lags", ()) if (one := real(lag)) is not None] if item else []
        if item is not None and known:
            flag = real(item.detail.get("flag"))
            said = "follow each other" if item.detail.get("flagged") else "not shown to follow each other"
            cells = [*map(signed, known[:_LAGS]), *[""] * (_LAGS - len(known))]
            end = said if flag is None else f"{said} (above {number(flag)} needed)"
            lags.append((book.title(dimension), book.to(item, cells[0]), *cells[1:], end))
    for item in distinct_items(book):
        result = state_words(item) if item.value is None else "yes" if told_apart(book, item) else "no"
        distinct.append((book.title(item.labels["dimension"]), book.to(item, shown(item)),
                         ends_of(item)[2:-1] or "no interval", p_of(item, "p_holm"), result))  # fmt: skip
    liking = [
        (
            clean(m.labels["judge"], 60),
            book.to(m, state_words(m) if m.value is None else estimate(m)),
            p_of(m, "p_holm"),
        )
        for m in own_family_items(book)
    ]
    titled = (
        ("How many significant differences pass each check?", table_of(
            ("Score", "Significant", "Without own-family judges", "At equal length", "May be length", "Told apart",
             "For other judges"), passed, 6)),
        ("Do judges favour agents of their own maker?", table_of(
            ("Judge", "Points more for agents of its own maker than other judges give", "Adjusted p"), liking)),
    )  # fmt: skip
    heads = ("Dimension", f"Correlation, below {number(book.study.claims.distinct)} needed", "Interval", "Adjusted p",
             "Told apart")  # fmt: skip
    return section(
        "explanations", "What else could explain a difference?", _answer(overall),
        [Group(title, (table,)) for title, table in titled if table is not None],
        table_of(heads, distinct, 3, "Do judges tell dimensions from their overall impression?"),
        table_of(("Score", *(f"Lag {lag}" for lag in range(1, _LAGS + 1)), "Clusters"), lags, _LAGS,
                 "The same as a table"),
        notes([detectable_words(book)]),
    )  # fmt: skip


def _answer(found: list[Verdict]) -> str:
    if not found:
        return "No difference on the overall score is significant, so there is none to explain."
    own, length = Counter(v.own_family for v in found), Counter(v.length for v in found)
    numbers = {
        "on judges of the agents’ own makers": own["rests-on-own-family"] + own["turns-without-own-family"],
        "on judges that each share a family with one of the two": own["no-disinterested-judge"],
        "perhaps on length": length["may-be-length"] + length["length"],
    }
    parts = [f"{count(n)} {'rests' if n == 1 else 'rest'} {said}" for said, n in numbers.items() if n]
    said = f"Of {counted(len(found), 'significant difference')} on the overall score, "
    return said + (f"{listing(parts)}." if parts else "none is explained by own families or length.")


def own_family_items(book: RunIndex) -> list[Measurement]:
    """How much more each judge gives agents of its own maker on the overall score, by judge."""
    return [m for m in book.every("judge.own_family", dimension=AGGREGATE) if m.labels["judge"] != "common"]


def distinct_items(book: RunIndex) -> list[Measurement]:
    """The correlation of each dimension with the overall impression, in rubric order."""
    found = (book.one("dimension.distinct", dimension=d) for d in book.dimensions if d != AGGREGATE)
    return [item for item in found if item is not None]


def told_apart(book: RunIndex, item: Measurement) -> bool:
    """Whether judges tell a dimension from their overall impression."""
    p = real(item.detail.get("p_holm"))
    return p is not None and p <= book.study.inference.alpha + LEVEL_SLACK


def order_words(book: RunIndex) -> str:
    """How the plan takes the clusters: independent, or following each other in time."""
    item = book.one("order.autocorrelation", dimension=AGGREGATE)
    order = book.study.inference.cluster_order if item is None else item.detail.get("order")
    return {"exchangeable": "taken as independent", "consecutive": "in time order"}.get(str(order), "not stated")


def detectable_words(book: RunIndex) -> str:
    """The smallest differences that the design could detect."""
    item = book.one("order.detectable", dimension=AGGREGATE)
    if item is None or item.value is None:
        return sentence(f"Smallest detectable difference: {shown(item)}")
    pair, power = real(item.detail.get("pair")), real(item.detail.get("power"))
    single = "" if pair is None else f", {number(pair)} for a single pair"
    with_power = "" if power is None else f" with power {number(power, 1)}"
    return (
        f"The smallest differences that this study could detect{with_power}: {number(item.value)} points for a "
        f"leader{single}. A leader needs all of its pairs and is found less often."
    )
