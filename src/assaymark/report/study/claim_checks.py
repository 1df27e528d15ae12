"""What a claim has to pass, check by check: the value, what is needed, and whether it stops or conditions the claim.
Checks are in the order in which they are decided, and end with the one that stops. What is said of a claim that is not
supported is the same for both directions of a pair, and for every agent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from assaymark.claims import kind_of
from assaymark.metrology.orders import LEVEL_SLACK
from assaymark.records import AGGREGATE, AnchorState, Measurement, Verdict
from assaymark.report.blocks import Block, Group, Section, Table, notes
from assaymark.report.lookup import Book
from assaymark.report.study.controls import Control, against, controls, gate_words
from assaymark.report.study.people import favour_words
from assaymark.report.text import (
    alpha,
    counted,
    interval,
    listing,
    p_value,
    plural,
    sentence,
    shown,
    signed,
    state_words,
)
from assaymark.text import clean, count, count_of, number, span

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


def is_significant(book: Book, verdict: Verdict) -> bool:
    """Whether the test of a claim's difference rejects, whatever then happens to it."""
    if kind_of(verdict.claim) == "within":
        return verdict.p_adjusted is not None and verdict.p_adjusted <= book.run.study.inference.alpha + LEVEL_SLACK
    return verdict.stability is not None


def checked(book: Book, verdict: Verdict) -> Checked:
    """Every check of a claim, with what limits it marked. Of the first ranks that are not supported, one agent's would
    show in which check it stops that it leads: all of them say the same."""
    return book.once(("checked", verdict.claim.id), lambda: _checked(book, verdict))


def _checked(book: Book, verdict: Verdict) -> Checked:
    caps = {cap.field: cap.level for cap in reversed(verdict.caps) if not cap.lifted}
    rows = _cell(book, verdict) if kind_of(verdict.claim) == "cell" else _rows(book, verdict)
    found: list[Check] = []
    unreached: list[str] = []
    for name, field, text in rows:
        if found and found[-1].effect == "stops":
            unreached.append(name)
            continue
        level = caps.get(field)
        found.append(Check(name, text, "stops" if level == "no-claim" else "condition" if level else ""))
    if verdict.publication_level == "no-claim" and kind_of(verdict.claim) == "first" and found[0].effect != "stops":
        lead = Check("Difference", "no supported lead over every other agent", "stops")
        return Checked((found[0], lead), tuple(name for name, _, _ in rows[2:]))
    return Checked(tuple(found), tuple(unreached))


Row = tuple[str, str, str]


def _rows(book: Book, verdict: Verdict) -> list[Row]:
    """The checks of a claim about agents as (name, field that limits the level, words)."""
    tested = bool(list(book.every("contrast", dimension=verdict.claim.dimension)))
    # What limits a claim by significance or stability is the first of the two that does not hold.
    survives = is_significant(book, verdict) if tested else verdict.stability_status != "stable"
    rows: list[Row] = [
        ("Agreement", "agreement", agreement_words(book, verdict)),
        ("Difference", "" if survives else "stability", _difference(book, verdict, tested)),
        ("Without any one judge family", "stability" if survives else "", family_words(book, verdict)),
    ]
    if tested:
        rows.append(("Own family", "own_family", _claim_checks_own_family(book, verdict)))
        rows.append(("Length", "length", _length(book, verdict)))
        if verdict.claim.dimension != AGGREGATE:
            rows.append(("Dimension", "distinct", _distinct(book, verdict)))
        rows.append(("Clusters", "clusters", _claim_checks_clusters(book, verdict)))
    rows += _further(book, verdict)
    if verdict.claim.asserts_order and tested:
        rows.append(("Other judges", "other_judges", _other_judges(book, verdict)))
    return rows


def _further(book: Book, verdict: Verdict) -> Iterator[Row]:
    yield "Control texts", "adversarial", _control_words(book, verdict)
    failing = any(cap.field == "datasheets" for cap in verdict.caps)
    yield "Judges’ own tests", "datasheets", "a judge misses a limit of the plan" if failing else "no limit missed"
    yield "People", "human_anchor", _people(book, verdict)
    said = "yes" if verdict.preregistered else "no: the scores had been seen when the plan was locked"
    yield "Preregistered", "preregistration", said
    for cap in verdict.caps:
        if cap.field not in _CAPS:
            yield cap_words(cap.field).capitalize(), cap.field, "limits this claim"


def _people(book: Book, verdict: Verdict) -> str:
    """What people's grades say of a claim; with numbers where they may be shown."""
    said = _ANCHORS[verdict.human_anchor]
    item = None if kind_of(verdict.claim) != "pair" else book.pair("human.contrast", verdict)
    if item is None or item.value is None or verdict.publication_level == "no-claim":
        return said
    return book.to(item, f"{said}: {gap_words(item, 1)}, {plural(item.n, 'graded cycle')}; judges favour "
                         f"{favour_words(item)}")  # fmt: skip


def _cell(book: Book, verdict: Verdict) -> list[Row]:
    """The checks of a claim about control texts."""
    item = book.one("cell.agreement", cell=verdict.claim.subjects[0])
    words = {
        "publish": "every judge family sees the difference",
        "methodology": "every panel without one family sees the difference, but not every family alone",
    }.get(
        verdict.agreement_status,
        f"not every panel without one judge family sees the difference, or {book.sign} is too low",
    )
    control = next((one for one in controls(book) if one.cell == verdict.claim.subjects[0]), None)
    result = "not measured"
    if control is not None:
        result = book.to(control.gate, f"{gate_words(control)} against {against(control.cell)}: {control.said}")
    kappa = ""
    if item is not None and item.value is not None:
        kappa = f"; {book.sign} with the honest records {number(item.value)}"
    stable = {"stable": "holds without any one judge family"}
    return [
        ("Number of the rule", "", result),
        ("Agreement", "agreement", book.to(item, words + kappa)),
        ("Without any one judge family", "stability", stable.get(verdict.stability_status, "depends on one of them")),
        ("Judges of the writer’s family", "adversarial", _CONTROLS[verdict.adversarial_status]),
        *list(_further(book, verdict))[1:],
    ]


def _control_words(book: Book, verdict: Verdict) -> str:
    """What the control texts say of a claim, with their numbers; not "passed" where one judge family makes it so."""
    found = [control for control in controls(book) if control.gate is not None and control.gate.value is not None]
    turned = [f"{_short(control)} {control.without}" for control in found if control.turned]
    said = _CONTROLS[verdict.adversarial_status]
    if turned and verdict.adversarial_status == "passed":
        said = f"depends on the judges: {'; '.join(turned)}"
    numbers = "; ".join(f"{_short(control)} {gate_words(control)}, {control.outcome}" for control in found)
    return f"{said}; {numbers}" if numbers else said


def _short(control: Control) -> str:
    return control.title.partition(":")[0]


# --- the words of each check ------------------------------------------------------------------------------------------


def agreement_words(book: Book, verdict: Verdict) -> str:
    """The kappa that decides, and what is needed."""
    dimension, gates = verdict.claim.dimension, book.run.study.gates
    item = book.gating(dimension)
    if item is None or item.value is None:
        return shown(item)
    needed = gates.halt if verdict.agreement_status == "halt" else gates.publish
    return book.to(item, f"{book.gating_words(dimension)}; {number(needed)} needed")


def _difference(book: Book, verdict: Verdict, tested: bool) -> str:
    claim = verdict.claim
    if not tested:
        return "significance not tested: the table came without contrasts"
    item = None if kind_of(claim) == "first" else book.pair("contrast", verdict)
    if item is not None and item.value is None:
        return state_words(item)
    if verdict.p_adjusted is None or verdict.p is None:
        return "not tested"
    level = book.run.study.inference.alpha if kind_of(claim) == "within" else book.needed(claim.dimension)
    said = f"adjusted {p_value(verdict.p_adjusted)}; {alpha(level)} needed"
    if "own_family" in stopping(verdict):
        said = f"{p_value(verdict.p)} of all judges together"
    if item is None or verdict.publication_level == "no-claim" or not claim.asserts_order:
        return f"the weakest lead: {said}" if kind_of(claim) == "first" else said
    clusters = item.detail.get("clusters")
    where = f" in {counted(clusters, 'cluster')}" if isinstance(clusters, int) else ""
    return book.to(item, f"{gap_words(item)} over {count_of(item.n, item.n_of)}{where}, {said}")


def gap_words(item: Measurement, sign: int = 1) -> str:
    """A difference in points with its interval; ``sign`` −1 turns it round.

    >>> gap_words(Measurement(name="contrast", labels={}, value=0.5, low=0.4, high=0.6, n=9, n_of="", method=""))
    '+0.50 points (0.40 to 0.60)'
    """
    ends = [end for end in (item.low, item.high) if end is not None]
    bounds = [sign * end for end in ends][::sign] if len(ends) == 2 else [None, None]
    value = sign * (item.value or 0.0)
    return f"{signed(value)} points {interval(value, *bounds).partition(' ')[2]}"


def family_words(book: Book, verdict: Verdict) -> str:
    """What leaving out each judge family does to a claim."""
    finding = verdict.stability
    if finding is None:
        return {
            "stable": "holds without any one judge family",
            "tie-class": "not shown without each judge family",
            "judge-dependent": "depends on one judge family",
        }.get(verdict.stability_status if len(book.run.study.families) > 1 else "", ONE_FAMILY)
    names = listing([clean(name, 60) for name in finding.families], last="or")
    return {
        "stable": f"holds without any one of {plural(len(book.run.study.families), 'judge family', 'judge families')}",
        "rests-on": f"needs judge family {names} to be seen",
        "reversed-without": f"turns without judge family {names}",
        "not-measurable": ONE_FAMILY,
    }[finding.state]


def _claim_checks_pairs(book: Book, verdict: Verdict, name: str) -> list[Measurement]:
    """The measurements of a kind about the pairs that a claim compares."""
    claim = verdict.claim
    if len(claim.subjects) > 1:
        found = [book.pair(name, verdict)]
    else:
        others = [agent for agent in book.agents if agent != claim.subjects[0]]
        found = [book.contrast(claim.dimension, claim.subjects[0], other, name) for other in others]
    return [item for item in found if item is not None]


def _claim_checks_own_family(book: Book, verdict: Verdict) -> str:
    level = f"; {alpha(book.needed(verdict.claim.dimension))} needed"
    adjusted = "" if verdict.p_adjusted is None else f": adjusted {p_value(verdict.p_adjusted)}{level}"
    items = _claim_checks_pairs(book, verdict, "recusal.contrast")
    if verdict.own_family == "clear" and items:
        (only, *more) = items
        aside = "also with judges standing aside for agents of their own makers"
        gap = verdict.claim.asserts_order and verdict.publication_level != "no-claim" and not more and only.value
        return book.to(only, f"{aside}: {gap_words(only)}") if gap else aside
    rests = "judges from the agents’ own makers; without them"
    return {
        "clear": "no judge shares a family with the agents",
        "rests-on-own-family": f"rests on {'' if items else 'orders that rest on '}{rests}{adjusted}",
        "turns-without-own-family": "turns without the judges from the agents’ own makers",
        "no-disinterested-judge": "every judge shares its family with one of the two",
        "unknown": "families are not given",
        "not-applicable": "not tested",
    }[verdict.own_family]


def _length(book: Book, verdict: Verdict) -> str:
    """Whether length may explain it. How long each agent writes would turn the word into a direction."""
    words = {
        "clear": "also at equal length",
        "may-be-length": "may be length",
        "length": "length explains it",
        "not-tested": "not tested",
        "not-applicable": "not tested",
    }[verdict.length]
    items = _claim_checks_pairs(book, verdict, "length.contrast")
    if verdict.publication_level == "no-claim" or len(items) != 1:
        return words
    detail, labels = items[0].detail, items[0].labels
    gap, slope = detail.get("gap"), detail.get("slope")
    if not isinstance(gap, (int, float)) or not isinstance(slope, (int, float)):
        return words
    longer, other = (labels["high"], labels["low"]) if gap >= 0 else (labels["low"], labels["high"])
    text = (
        f"{words}: {clean(longer, 60)} writes {number(2 ** abs(gap), 1)} times as much as {clean(other, 60)}, "
        f"{signed(slope)} points a doubling"
    )
    if verdict.p_adjusted_headline is not None:
        needed = alpha(book.needed(verdict.claim.dimension))
        text += f"; at equal length adjusted {p_value(verdict.p_adjusted_headline)}, {needed} needed"
    return book.to(items[0], text)


def _distinct(book: Book, verdict: Verdict) -> str:
    item = book.one("dimension.distinct", dimension=verdict.claim.dimension)
    return {
        "passed": f"told apart from the overall impression{_phi(book, item)}",
        "not-told-apart": f"not told apart from the overall impression{_phi(book, item)}",
        "smaller": "told apart, but the difference is smaller than on the other dimensions",
        "not-tested": "not tested",
        "not-applicable": "the only dimension",
    }[verdict.distinct]


def _phi(book: Book, item: Measurement | None) -> str:
    if item is None or item.value is None:
        return ""
    ends = "" if item.low is None or item.high is None else f" ({span(item.low, item.high)})"
    cut = number(book.run.study.claims.distinct)
    p = item.detail.get("p_holm")
    tested = f", adjusted {p_value(float(p))}" if isinstance(p, (int, float)) else ""
    return book.to(item, f": correlation {number(item.value)}{ends}; below {cut} needed{tested}")


def _claim_checks_clusters(book: Book, verdict: Verdict) -> str:
    counts = [
        (m.detail.get("clusters"), m.detail.get("effective")) for m in _claim_checks_pairs(book, verdict, "contrast")
    ]
    known = [(n, worth) for n, worth in counts if isinstance(n, int)]
    if not known:
        return "not stated"
    few, worth = min(known, key=lambda pair: pair[0])
    item = book.one("order.autocorrelation", dimension=verdict.claim.dimension)
    if item is not None and item.detail.get("order") == "consecutive":
        effective = f", worth about {number(float(worth), 0)}" if isinstance(worth, (int, float)) else ""
        return book.to(item, f"{count(few)} that follow each other in time{effective}")
    follow = ", but they follow each other in time" if item is not None and item.detail.get("flagged") else ""
    return book.to(item, f"{count(few)}, taken as independent{follow}")


def _other_judges(book: Book, verdict: Verdict) -> str:
    items = _claim_checks_pairs(book, verdict, "judges.contrast")
    p = [float(m.detail["p"]) for m in items if isinstance(m.detail.get("p"), (int, float))]
    tested = f": {p_value(max(p))}; {alpha(book.run.study.inference.alpha)} needed" if len(p) == 1 else ""
    return {
        "yes": f"expected of other judges, too{tested}",
        "no": f"not shown for other judges{tested}",
        "not-tested": "not tested: three judge families are needed",
        "not-applicable": "not tested",
    }[verdict.other_judges]


# What else could explain a difference? Judges' liking of their own family, length, one overall impression, time.
#
# The tables describe judges and the design, so they are shown whatever the verdicts are; of pairs they hold counts
# alone.


_LAGS: Final = 4
_RESTING: Final = frozenset(("rests-on-own-family", "turns-without-own-family"))


def explanations_section(book: Book) -> Section:
    """What else could explain a difference: a table for each explanation that could be measured."""
    titled = (("How many significant differences pass each check?", _pairs(book)),
              ("Do judges favour agents of their own maker?", _own_family(book)))  # fmt: skip
    blocks: list[Block] = [Group(title, (table,)) for title, table in titled if table is not None]
    blocks += [table for table in (_dimensions(book), _clusters(book)) if table is not None]
    said = notes([detectable_words(book)])
    return Section("explanations", "What else could explain a difference?", _answer(book), (*blocks, *said))


def _answer(book: Book) -> str:
    found = [v for v in book.on(AGGREGATE, "pair") if is_significant(book, v)]
    if not found:
        return "No difference on the overall score is significant, so there is none to explain."
    numbers = {
        "on judges of the agents’ own makers": sum(v.own_family in _RESTING for v in found),
        "on judges that each share a family with one of the two": sum(
            v.own_family == "no-disinterested-judge" for v in found
        ),
        "perhaps on length": sum(v.length in ("may-be-length", "length") for v in found),
    }
    parts = [f"{count(n)} {'rests' if n == 1 else 'rest'} {said}" for said, n in numbers.items() if n]
    said = f"Of {counted(len(found), 'significant difference')} on the overall score, "
    return said + (f"{listing(parts)}." if parts else "none is explained by own families or length.")


# --- judges of the agents' own makers -------------------------------------------------------------------------------


def own_family_items(book: Book) -> list[Measurement]:
    """How much more each judge gives agents of its own maker on the overall score, by judge."""
    return [m for m in book.every("judge.own_family", dimension=AGGREGATE) if m.labels["judge"] != "common"]


def _own_family(book: Book) -> Table | None:
    rows = []
    for item in own_family_items(book):
        said = state_words(item) if item.value is None else interval(item.value, item.low, item.high)
        p = item.detail.get("p_holm")
        tested = p_value(float(p)) if isinstance(p, (int, float)) else "not tested"
        rows.append((clean(item.labels["judge"], 60), book.to(item, said), tested))
    heads = ("Judge", "Points more for agents of its own maker than other judges give", "Adjusted p")
    return Table(heads, tuple(rows), summary="") if rows else None


# --- pairs, counted -------------------------------------------------------------------------------------------------


def _pairs(book: Book) -> Table | None:
    """How many significant differences of each score pass each check."""
    rows = []
    for dimension in book.dimensions:
        found = [v for v in book.on(dimension, "pair") if is_significant(book, v)]
        if found:
            rows.append((book.title(dimension), count(len(found)), *_counts(found)))
    heads = (
        "Score", "Significant", "Without own-family judges", "At equal length", "May be length", "Told apart",
        "For other judges",
    )  # fmt: skip
    return Table(heads, tuple(rows), frozenset(range(1, len(heads))), "") if rows else None


def _counts(found: list[Verdict]) -> tuple[str, ...]:
    own, length = Counter(v.own_family for v in found), Counter(v.length for v in found)
    distinct, others = Counter(v.distinct for v in found), Counter(v.other_judges for v in found)
    return (
        count(own["clear"]),
        "not tested" if length["not-tested"] == len(found) else count(length["clear"]),
        count(length["may-be-length"] + length["length"]),
        "not applicable" if distinct["not-applicable"] == len(found) else count(distinct["passed"]),
        "not tested" if others["not-tested"] == len(found) else count(others["yes"]),
    )


# --- dimensions -------------------------------------------------------------------------------------------------------


def distinct_items(book: Book) -> list[Measurement]:
    """The correlation of each dimension with the overall impression, in rubric order."""
    found = (book.one("dimension.distinct", dimension=d) for d in book.dimensions if d != AGGREGATE)
    return [item for item in found if item is not None]


def told_apart(book: Book, item: Measurement) -> bool:
    """Whether judges tell a dimension from their overall impression."""
    p = item.detail.get("p_holm")
    return isinstance(p, (int, float)) and p <= book.run.study.inference.alpha + LEVEL_SLACK


def _dimensions(book: Book) -> Table | None:
    rows = []
    for item in distinct_items(book):
        ends = "no interval" if item.low is None or item.high is None else span(item.low, item.high)
        p = item.detail.get("p_holm")
        result = ("yes" if told_apart(book, item) else "no") if item.value is not None else state_words(item)
        rows.append(
            (
                book.title(item.labels["dimension"]),
                book.to(item, shown(item)),
                ends,
                p_value(float(p)) if isinstance(p, (int, float)) else "not tested",
                result,
            )
        )
    cut = number(book.run.study.claims.distinct)
    heads = ("Dimension", f"Correlation, below {cut} needed", "Interval", "Adjusted p", "Told apart")
    title = "Do judges tell dimensions from their overall impression?"
    return Table(heads, tuple(rows), frozenset({1, 2, 3}), title) if rows else None


# --- clusters ---------------------------------------------------------------------------------------------------------


def _clusters(book: Book) -> Table | None:
    """How far neighbouring clusters are alike, lag by lag."""
    rows = []
    for dimension in book.dimensions:
        item = book.one("order.autocorrelation", dimension=dimension)
        lags = [] if item is None else [lag for lag in item.detail.get("lags", ()) if isinstance(lag, (int, float))]
        if item is not None and lags:
            flag = item.detail.get("flag")
            said = "follow each other" if item.detail.get("flagged") else "not shown to follow each other"
            cut = f"{said} (above {number(float(flag))} needed)" if isinstance(flag, (int, float)) else said
            cells = [signed(float(lag)) for lag in lags[:_LAGS]]
            cells += [""] * (_LAGS - len(cells))
            rows.append((book.title(dimension), book.to(item, cells[0]), *cells[1:], cut))
    heads = ("Score", *(f"Lag {lag}" for lag in range(1, _LAGS + 1)), "Clusters")
    return Table(heads, tuple(rows), frozenset(range(1, _LAGS + 1))) if rows else None


def order_words(book: Book) -> str:
    """How the plan takes the clusters: independent, or following each other in time."""
    item = book.one("order.autocorrelation", dimension=AGGREGATE)
    order = book.run.study.inference.cluster_order if item is None else item.detail.get("order")
    return {"exchangeable": "taken as independent", "consecutive": "in time order"}.get(str(order), "not stated")


def detectable_words(book: Book) -> str:
    """The smallest differences that the design could detect."""
    item = book.one("order.detectable", dimension=AGGREGATE)
    if item is None or item.value is None:
        return sentence(f"Smallest detectable difference: {shown(item)}")
    pair, power = item.detail.get("pair"), item.detail.get("power")
    single = f", {number(float(pair))} for a single pair" if isinstance(pair, (int, float)) else ""
    with_power = f" with power {number(float(power), 1)}" if isinstance(power, (int, float)) else ""
    return (
        f"The smallest differences that this study could detect{with_power}: {number(item.value)} points for a "
        f"leader{single}. A leader needs all of its pairs and is found less often."
    )
