"""The checks that a claim has to pass, other explanations of a difference, and the limits of the result.

Checks are in the order of decision and end with the one that stops. The text on an unsupported claim is
the same for both directions of a pair, and for every agent. A fix states what would help and what that
costs: calls by closed form, and USD if the price of a call is known.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from assaymark.claims import kind_of
from assaymark.metrology.orders import LEVEL_SLACK
from assaymark.records import AGGREGATE, AnchorState, Measurement, Verdict
from assaymark.report import blocks as b
from assaymark.report import text as t
from assaymark.report.inputs import RunIndex, score_words
from assaymark.report.study.controls import AGAINST, GOOD, controls, favour_words, gate_words, mostly_terse
from assaymark.report.text import known
from assaymark.text import clean, count, money, number

ONE_FAMILY: Final = "not measurable: one judge family"

_CAPS: Final[Mapping[str, str]] = {
    "agreement": "agreement of the judges", "stability": "significance or stability",
    "own_family": "judges of the agents’ own makers", "length": "length", "distinct": "validity of the dimension",
    "clusters": "the clusters", "adversarial": "the control texts", "datasheets": "the judges’ own tests",
    "human_anchor": "people’s grades", "other_judges": "other judges", "preregistration": "preregistration",
}  # fmt: skip
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
_LENGTHS: Final = {
    "clear": "also at equal length", "may-be-length": "may be length", "length": "length explains it",
    "not-tested": "not tested", "not-applicable": "not tested",
}  # fmt: skip
_DISTINCT: Final = {
    "passed": "told apart from the overall impression", "not-told-apart": "not told apart from the overall impression",
    "smaller": "told apart, but the difference is smaller than on the other dimensions",
    "not-tested": "not tested", "not-applicable": "the only dimension",
}  # fmt: skip
_CELL_AGREED: Final = {
    "publish": "every judge family sees the difference",
    "methodology": "every panel without one family sees the difference, but not every family alone",
}
_LAGS: Final = 4


@dataclass(frozen=True, slots=True)
class Check:
    """One check of a claim. ``effect`` says whether it stops the claim or adds a condition."""

    name: str
    text: str
    effect: Literal["", "condition", "stops"] = ""


CheckRow = tuple[str, str, str]
"""A check as (name, field that limits the level, words)."""


def cap_words(field: str) -> str:
    """The name of a field that limits a claim."""
    return _CAPS.get(field) or clean(field.replace("_", " "), 40)


def blockers(verdict: Verdict) -> tuple[str, ...]:
    """The fields that leave a claim unsupported."""
    return tuple(cap.field for cap in verdict.caps if cap.level == "no-claim" and not cap.lifted)


def is_significant(index: RunIndex, verdict: Verdict) -> bool:
    """True if the test of a claim's difference rejects, regardless of later checks."""
    if kind_of(verdict.claim) == "within":
        return verdict.p_adjusted is not None and verdict.p_adjusted <= index.study.inference.alpha + LEVEL_SLACK
    return verdict.stability is not None


def significant(index: RunIndex, dimension: str = AGGREGATE) -> list[Verdict]:
    """The pairs of a score whose test rejects."""
    return [v for v in index.on(dimension, "pair") if is_significant(index, v)]


def checks_of(index: RunIndex, verdict: Verdict) -> tuple[tuple[Check, ...], tuple[str, ...]]:
    """The checks of a claim up to the one that stops it, and later names; first ranks alike, or one would leak."""

    def build() -> tuple[tuple[Check, ...], tuple[str, ...]]:
        kind, caps = kind_of(verdict.claim), {c.field: c.level for c in reversed(verdict.caps) if not c.lifted}
        rows, checks = [] if kind == "cell" else [*_rows(index, verdict)], list[Check]()
        if kind == "cell":  # a claim about control texts
            cell = verdict.claim.subjects[0]
            item = index.get("cell.agreement", cell=cell)
            control = next((planted for planted in controls(index) if planted.cell == cell), None)
            low = f"not every panel without one judge family sees the difference, or {index.sign} is too low"
            agreed = _CELL_AGREED.get(verdict.agreement_status, low)
            if known(item):
                agreed += f"; {index.sign} with the honest records {number(item.value)}"
            stable = verdict.stability_status == "stable"
            rows = [
                ("Number of the rule", "", "not measured" if control is None else index.link(
                    control.gate, f"{gate_words(control)} against {AGAINST.get(cell, '')}: {control.result}")),
                ("Agreement", "agreement", index.link(item, agreed)),
                ("Without any one judge family", "stability",
                 "holds without any one judge family" if stable else "depends on one of them"),
                ("Judges of the writer’s family", "adversarial", _CONTROLS[verdict.adversarial_status]),
                *list(_further(index, verdict))[1:],
            ]  # fmt: skip
        for name, field, text in rows:
            if checks and checks[-1].effect == "stops":
                break
            level = caps.get(field)
            checks.append(Check(name, text, "stops" if level == "no-claim" else "condition" if level else ""))
        if verdict.publication_level == "no-claim" and kind == "first" and checks[0].effect != "stops":
            checks = [checks[0], Check("Difference", "no supported lead over every other agent", "stops")]
        return tuple(checks), tuple(name for name, _, _ in rows[len(checks) :])

    return index.once(("checked", verdict.claim.id), build)


def _rows(index: RunIndex, verdict: Verdict) -> Iterator[CheckRow]:
    """The checks of a claim about agents: agreement, the difference and other explanations of it, then all others."""
    claim, kind, supported = verdict.claim, kind_of(verdict.claim), verdict.publication_level != "no-claim"
    tested, needed = bool(index.all("contrast", claim.dimension)), t.alpha(index.alpha(claim.dimension))
    item = index.pair("contrast", verdict) if tested and kind != "first" else None
    adjusted = None if verdict.p_adjusted is None else t.p_words(verdict.p_adjusted)
    # Significance and stability share one field: the first of them that fails limits the claim.
    survives = is_significant(index, verdict) if tested else verdict.stability_status != "stable"
    result = "not tested"
    if not tested:
        result = "significance not tested: the table came without contrasts"
    elif item is not None and not known(item):
        result = t.state_words(item)
    elif verdict.p is not None and adjusted is not None:
        level = t.alpha(index.study.inference.alpha) if kind == "within" else needed
        result = f"adjusted {adjusted}; {level} needed"
        if "own_family" in blockers(verdict):
            result = f"{t.p_words(verdict.p)} of all judges together"
        if known(item) and supported and claim.asserts_order:
            clusters = item.detail.get("clusters")
            within = f" in {t.counted(clusters, 'cluster')}" if isinstance(clusters, int) else ""
            result = index.link(item, f"{t.difference(item)} over {t.n_words(item)}{within}, {result}")
        elif kind == "first":
            result = f"the weakest lead: {result}"
    yield "Agreement", "agreement", deciding_kappa(index, verdict)
    yield "Difference", "" if survives else "stability", result
    yield "Without any one judge family", "stability" if survives else "", family_words(index, verdict)
    if tested:
        items = _pairs_of(index, verdict, "recusal.contrast")
        if verdict.own_family == "clear" and items:
            maker = "also with judges standing aside for agents of their own makers"
            if claim.asserts_order and supported and len(items) == 1 and known(alone := items[0]) and alone.value:
                maker = index.link(alone, f"{maker}: {t.difference(alone)}")
        else:
            basis = f"{'' if items else 'rankings that rest on '}judges from the agents’ own makers; without them"
            basis += f": adjusted {adjusted}; {needed} needed" if adjusted else ""
            maker = {
                "clear": "no judge shares a family with the agents",
                "rests-on-own-family": f"rests on {basis}",
                "turns-without-own-family": "reverses without the judges from the agents’ own makers",
                "no-disinterested-judge": "every judge shares its family with one of the two",
                "unknown": "families are not given",
                "not-applicable": "not tested",
            }[verdict.own_family]
        yield "Own family", "own_family", maker
        # Length as an explanation. How much each agent writes would reveal the direction.
        length, items = _LENGTHS[verdict.length], _pairs_of(index, verdict, "length.contrast")
        more, slope = (t.detail_of(items[0], key) if len(items) == 1 else None for key in ("gap", "slope"))
        reruns = _pairs_of(index, verdict, "length_matched.contrast")
        if reruns and verdict.length == "clear" and (verdict.p_adjusted_headline or 0.0) > index.alpha(claim.dimension):
            length = index.link(reruns[0], length)  # texts of one length show what a slope on length does not
        elif supported and more is not None and slope is not None:
            sides = ("high", "low") if more >= 0 else ("low", "high")
            longer, other = (clean(items[0].labels[key], 60) for key in sides)
            length += (f": {longer} writes {number(2 ** abs(more), 1)} times as much as {other}, "
                       f"{t.signed(slope)} points a doubling")  # fmt: skip
            if verdict.p_adjusted_headline is not None:
                length += f"; at equal length adjusted {t.p_words(verdict.p_adjusted_headline)}, {needed} needed"
            length = index.link(items[0], length)
        yield "Length", "length", length
    yield from _further(index, verdict, tested)


def _further(index: RunIndex, verdict: Verdict, tested: bool = False) -> Iterator[CheckRow]:
    """Checks after those of the scores: dimension, clusters, control texts, own tests, people, plan, other judges."""
    dimension = verdict.claim.dimension
    if tested and dimension != AGGREGATE:
        distinct, apart = index.get("dimension.distinct", dimension), _DISTINCT[verdict.distinct]
        if known(distinct) and verdict.distinct in ("passed", "not-told-apart"):
            below, tested_at = number(index.study.claims.distinct), t.p_of(distinct, "p_holm", ", adjusted ", "")
            apart += f": correlation {t.with_ends(distinct)}; below {below} needed{tested_at}"
        yield "Dimension", "distinct", apart
    if tested:
        # The number of clusters in its smallest contrast, and their effective number.
        details = [m.detail for m in _pairs_of(index, verdict, "contrast") if isinstance(m.detail.get("clusters"), int)]
        detail = min(details, key=lambda entry: int(entry["clusters"]), default={})
        few, worth = count(detail["clusters"]) if detail else "not stated", t.as_float(detail.get("effective"))
        item, time = index.get("order.autocorrelation", dimension), ", taken as independent"
        if item is not None and item.detail.get("order") == "consecutive":
            time = " that follow each other in time" + ("" if worth is None else f", worth about {number(worth, 0)}")
        elif item is not None and item.detail.get("flagged"):
            time += ", but they follow each other in time"
        yield "Clusters", "clusters", index.link(item, few + time) if detail else few
    # The outcome of the control texts with their numbers; not "passed" if it depends on one judge family.
    gated = [control for control in controls(index) if control.gate is not None and control.gate.value is not None]
    reversals = "; ".join(f"{control.name} {control.without}" for control in gated if control.reversals)
    outcome = _CONTROLS[verdict.adversarial_status]
    outcome = f"depends on the judges: {reversals}" if reversals and verdict.adversarial_status == "passed" else outcome
    numbers = "; ".join(f"{control.name} {gate_words(control)}, {control.outcome}" for control in gated)
    people, item = _ANCHORS[verdict.human_anchor], None
    if kind_of(verdict.claim) == "pair" and verdict.publication_level != "no-claim":
        item = index.pair("human.contrast", verdict)
    if known(item):
        graded = t.plural(item.n, "graded cycle")
        people = index.link(item, f"{people}: {t.difference(item)}, {graded}; judges favour {favour_words(item)}")
    failing = any(cap.field == "datasheets" for cap in verdict.caps)
    fixed = "yes" if verdict.preregistered else "no: the scores had been seen when the plan was locked"
    yield "Control texts", "adversarial", f"{outcome}; {numbers}" if numbers else outcome
    yield "Judges’ own tests", "datasheets", "a judge misses a limit of the plan" if failing else "no limit missed"
    yield "People", "human_anchor", people
    yield "Preregistered", "preregistration", fixed
    for cap in verdict.caps:
        if cap.field not in _CAPS:
            yield cap_words(cap.field).capitalize(), cap.field, "limits this claim"
    if tested and verdict.claim.asserts_order:
        p = [value for m in _pairs_of(index, verdict, "judges.contrast") if (value := t.detail_of(m, "p")) is not None]
        level = f": {t.p_words(max(p))}; {t.alpha(index.study.inference.alpha)} needed" if len(p) == 1 else ""
        yield "Other judges", "other_judges", {
            "yes": f"expected of other judges, too{level}", "no": f"not shown for other judges{level}",
            "not-tested": "not tested: three judge families are needed", "not-applicable": "not tested",
        }[verdict.other_judges]  # fmt: skip


def deciding_kappa(index: RunIndex, verdict: Verdict) -> str:
    """The kappa that decides, and the threshold."""
    dimension, gates = verdict.claim.dimension, index.study.gates
    item = index.gating(dimension)
    needed = gates.halt if verdict.agreement_status == "halt" else gates.publish
    return index.linked(item, lambda _: f"{index.gating_words(dimension)}; {number(needed)} needed")


def family_words(index: RunIndex, verdict: Verdict) -> str:
    """The effect of leaving out each judge family on a claim."""
    finding, families = verdict.stability, len(index.study.families)
    if finding is None:
        return {
            "stable": "holds without any one judge family",
            "tie-class": "not shown without each judge family",
            "judge-dependent": "depends on one judge family",
        }.get(verdict.stability_status if families > 1 else "", ONE_FAMILY)
    names = t.listing([clean(name, 60) for name in finding.families], last="or")
    return {
        "stable": f"holds without any one of {t.plural(families, 'judge family', 'judge families')}",
        "rests-on": f"needs judge family {names} to be seen",
        "reversed-without": f"reverses without judge family {names}",
        "not-measurable": ONE_FAMILY,
    }[finding.state]


def _pairs_of(index: RunIndex, verdict: Verdict, name: str) -> list[Measurement]:
    """The measurements of a kind for the pairs that a claim compares."""
    first, *rest = verdict.claim.subjects
    others = rest or [agent for agent in index.agents if agent != first]
    contrasts = (index.contrast(verdict.claim.dimension, first, other, name) for other in others)
    return [item for item in contrasts if item is not None]


# --- other explanations of a difference: own family, length, one overall impression, time -----------------------------
#
# The tables describe judges and the design, so they are shown whatever the verdicts are; for pairs they have only
# counts.


def explanations_section(index: RunIndex) -> b.Section:
    """Other explanations of a difference: a table for each one that could be measured."""
    overall, passed, distinct, lags = significant(index), [], [], []
    for dimension in index.dimensions:
        if resolved := significant(index, dimension):
            fields = "own_family", "length", "distinct", "other_judges"
            makers, length, apart, others = (Counter(getattr(v, name) for v in resolved) for name in fields)
            passed.append((
                index.title(dimension), count(len(resolved)),
                "not tested" if makers["unknown"] == len(resolved) else count(makers["clear"]),
                "not tested" if length["not-tested"] == len(resolved) else count(length["clear"]),
                count(length["may-be-length"] + length["length"]),
                "not applicable" if apart["not-applicable"] == len(resolved) else count(apart["passed"]),
                "not tested" if others["not-tested"] == len(resolved) else count(others["yes"]),
            ))  # fmt: skip
        item = index.get("order.autocorrelation", dimension)  # the similarity of neighbouring clusters
        rhos = [value for lag in item.detail.get("lags", ()) if (value := t.as_float(lag)) is not None] if item else []
        if item is not None and rhos:
            flag, shown = t.detail_of(item, "flag"), "" if item.detail.get("flagged") else "not shown to "
            cells = [*map(t.signed, rhos[:_LAGS]), *[""] * (_LAGS - len(rhos))]
            end = f"{shown}follow each other" + ("" if flag is None else f" (above {number(flag)} needed)")
            lags.append((index.title(dimension), index.link(item, cells[0]), *cells[1:], end))
    for item in distinct_items(index):
        result = t.state_words(item) if item.value is None else "yes" if is_distinct(index, item) else "no"
        distinct.append((index.title(item.labels["dimension"]), index.link(item, t.as_text(item)), t.limits(item),
                         t.p_of(item, "p_holm"), result))  # fmt: skip
    liking = [(clean(m.labels["judge"], 60), index.linked(m), t.p_of(m, "p_holm"))
              for m in index.all("judge.own_family", AGGREGATE) if m.labels["judge"] != "common"]  # fmt: skip
    answer = "No difference on the overall score is significant, so there is none to explain."
    if overall:
        makers, length = Counter(v.own_family for v in overall), Counter(v.length for v in overall)
        numbers = {
            "on judges of the agents’ own makers": makers["rests-on-own-family"] + makers["turns-without-own-family"],
            "on judges that each share a family with one of the two": makers["no-disinterested-judge"],
            "perhaps on length": length["may-be-length"] + length["length"],
        }
        parts = [f"{count(n)} {'rests' if n == 1 else 'rest'} {phrase}" for phrase, n in numbers.items() if n]
        answer = f"Of {t.counted(len(overall), 'significant difference')} on the overall score, "
        missed = {"own families": makers["unknown"], "length": length["not-tested"]}
        none = t.listing([noun for noun, n in missed.items() if n == len(overall)])
        none = f"none was tested for {none}." if none else "none is explained by own families or length."
        answer += f"{t.listing(parts)}." if parts else none
    titled = (
        ("How many significant differences pass each check?", b.table_of(
            ("Score", "Significant", "Without own-family judges", "At equal length", "May be length", "Told apart",
             "For other judges"), passed, 6)),
        ("Do judges favour agents of their own maker?", b.table_of(
            ("Judge", "Points more for agents of its own maker than other judges give", "Adjusted p"), liking)),
    )  # fmt: skip
    header = ("Dimension", f"Correlation, below {number(index.study.claims.distinct)} needed", "Interval", "Adjusted p",
             "Told apart")  # fmt: skip
    return b.section(
        "explanations", "What else could explain a difference?", answer,
        [b.Group(title, (table,)) for title, table in titled if table is not None],
        b.table_of(header, distinct, 3, "Do judges tell dimensions from their overall impression?"),
        b.table_of(("Score", *(f"Lag {lag}" for lag in range(1, _LAGS + 1)), "Clusters"), lags, _LAGS,
                 "The same as a table"),
        b.notes([detectable_words(index)]),
    )  # fmt: skip


def distinct_items(index: RunIndex) -> list[Measurement]:
    """The correlation of each dimension with the overall impression, in rubric order."""
    return [item for d, item in index.by_score("dimension.distinct") if d != AGGREGATE]


def is_distinct(index: RunIndex, item: Measurement) -> bool:
    """True if judges distinguish a dimension from their overall impression."""
    p = t.detail_of(item, "p_holm")
    return p is not None and p <= index.study.inference.alpha + LEVEL_SLACK


def detectable_words(index: RunIndex) -> str:
    """The smallest differences that the design could detect."""
    item = index.get("order.detectable", AGGREGATE)
    if not known(item):
        return t.sentence(f"Smallest detectable difference: {t.as_text(item)}")
    pair, power = t.detail_of(item, "pair"), t.detail_of(item, "power")
    single = "" if pair is None else f", {number(pair)} for a single pair"
    with_power = "" if power is None else f" with power {number(power, 1)}"
    return (
        f"The smallest differences that this study could detect{with_power}: {number(item.value)} points for a "
        f"leader{single}. A leader needs all of its pairs and is found less often."
    )


TESTS: Final = {
    "dark_current": ("dark_current", "preferences between two equal texts", 1),
    "positional": ("delta0.positional", "verdicts that change with the position of a text", 1),
    "threshold": ("threshold", "requirements that a difference needs to be seen", 1),
    "vacuum_score": ("point.vacuum_score", "for a text without content", 1),
    "slope": ("point.slope", "points for a further requirement", -1),
    "verbosity": ("point.verbosity", "points per 100 words of filler", 1),
}
"""The limits of a judge's own test: the measurement, its unit in words, and 1 for a maximum or -1 for a minimum."""


def failed_judges(index: RunIndex) -> dict[str, tuple[str, ...]]:
    """The judges that miss limits of the plan, with these limits, such as ``verbosity 0.30, at most 0.15``."""
    gates = [m for m in index.all("datasheet.gate") if m.value is None or m.value > 0]
    return {m.labels["judge"]: tuple(map(str, m.detail.get("failed", ()))) for m in gates}


def own_test(index: RunIndex, name: str, judge: str) -> Measurement | None:
    """The result of a judge's own test: over all scores of a text, or under the plain prompt."""
    tests = [m for m in index.tests.get(name, ()) if m.labels.get("judge") == judge]
    whole = [m for m in tests if m.labels.get("dimension", AGGREGATE) == AGGREGATE]
    return min(whole, key=lambda m: m.id, default=None)


def own_tests_words(index: RunIndex) -> str:
    """The judges that fail their own test, with numbers; otherwise that all pass."""
    failing, limits = failed_judges(index), index.study.datasheets

    def beside_limit(judge: str, limit: str, missed: str = "") -> str:
        """“Auditor +0.30 points per 100 words of filler; 0.15 allowed”, or ``missed`` if the value is not known."""
        name, unit, side = TESTS[limit]
        item, cut = own_test(index, name, judge), None if limits is None else limits.set.get(limit)
        if not known(item):
            return f"{clean(judge, 60)} {clean(missed.replace(limit, unit, 1), 120) or 'has no own test'}"
        allowed = "" if cut is None else f"; {number(cut)} {'allowed' if side > 0 else 'needed'}"
        return f"{clean(judge, 60)} {t.signed(item.value)} {unit}{allowed}"

    if failing:
        split = [(judge, failure.partition(" ")[0], failure) for judge, named in failing.items() for failure in named]
        phrases = [beside_limit(judge, name, failure) for judge, name, failure in split if name in TESTS]
        return "; ".join(phrases) or f"{t.listing([clean(judge, 60) for judge in failing])} over a limit of the plan"
    if limits is None:
        return "no limit was set for the judges’ own tests"
    if not index.all("datasheet.gate"):
        return "the judges’ own tests were not run"
    which = next(iter(limits.set), "")
    measured, _, side = TESTS.get(which, ("", "", 1))
    tested = {judge.name: own_test(index, measured, judge.name) for judge in index.study.judges}
    worth = {name: side * m.value for name, m in tested.items() if known(m)}
    most = max(tested, key=lambda name: worth.get(name, -math.inf), default="")
    if which not in TESTS or tested.get(most) is None:
        return "every judge is within the limits of the plan"
    return beside_limit(most, which)


_OF_TABLES: Final[Mapping[str, str]] = {
    "adversarial": "Have the same judges grade control texts: rows with the column derivation, as in the docs.",
    "clusters": "Name larger clusters (--cluster COLUMN), or declare that they follow in time (--cluster-order).",
    "few-clusters": "More items, or smaller clusters.",
    "preregistration": "Lock a plan before the next scores are made, and name it with --study.",
    "own_family": "Name the makers of judges and systems (--family NAME=MAKER), or add a judge without an interest.",
    "missing_replies": "Have the judges grade what is missing.",
}
"""Fixes for limits of an imported table of scores."""


def fix_words(index: RunIndex, field: str, verdict: Verdict | None = None) -> str:
    """The fix that would lift a limit, with its price. It never depends on which agent is ahead."""
    run, panel, decided = index.run, len(index.study.judges), index.answers
    if run.table is not None and field in _OF_TABLES:
        return _OF_TABLES[field]
    if field == "stability" and (verdict is None or not is_significant(index, verdict)):
        return " ".join(filter(None, _detectable(index)))
    failing = [clean(judge, 60) for judge in failed_judges(index)]
    controlled = sum(c.score.n for c in controls(index) if c.score is not None) or 100
    another = ("Add a judge from a maker that built no agent: \0. No guarantee.", decided, 1)
    # The words, the number of calls, and the number of judges that make them.
    fix, calls, judges = {
        "agreement": ("Rewrite the anchors of the rubric and pilot on 100 texts: \0. No guarantee.", 100, panel),
        "stability": another, "own_family": another, "other_judges": another,
        "length": (
            "Judge texts of equal length: \0 for each agent rewritten.", decided / max(len(index.agents), 1), panel),
        "distinct": ("Set this dimension apart in the rubric, and score it separately.", 0, 0),
        "clusters": ("Two more market regimes: \0 of the judges.", 2 * decided / max(index.clusters, 1), panel),
        "few-clusters": ("Two more market regimes: \0 of the judges.", 2 * decided / max(index.clusters, 1), panel),
        "adversarial": (
            "Give the judges a rubric that asks for facts, and grade the control texts again: \0.", controlled, panel),
        "datasheets": (f"Replace {t.listing(failing) or 'the judge'} with a judge that passes the test: \0.",
                       decided, max(len(failing), 1)),
        "human_anchor": (
            "Find out in which texts judges and people differ most; another panel, or another rubric, may not.", 0, 0),
        "preregistration": ("Lock the plan before new decisions are scored.", 0, 0),
    }.get(field, ("Complete what is missing and judge it again.", 0, 0))  # fmt: skip
    if field == "agreement" and len(index.study.families) == 1:
        fix, calls, judges = "Add a judge of another maker: \0.", decided, 1
    return fix.replace("\0", _calls(index, calls, judges))


def _calls(index: RunIndex, calls: float, judges: int) -> str:
    """The number of calls to ``judges`` judges, with their trials, and the price if it is known."""
    total = round(calls * judges * max((judge.trials for judge in index.study.judges), default=1))
    paid = index.run.paid or ()
    priced = sum(bill.calls - bill.unpriced for bill in paid)
    amount = t.counted(total, "call" if index.run.table is None else "score")
    return f"{amount}, about {money(sum(bill.usd for bill in paid) / priced * total)} USD" if priced else amount


def _detectable(index: RunIndex) -> tuple[str, str]:
    """The smallest detectable difference of the design (empty if unknown), and the cost of detecting a smaller one."""
    item = index.get("order.detectable", AGGREGATE)
    pair = None if item is None else t.as_float(item.detail.get("pair", item.value))
    if pair is None or not 0 < pair <= index.study.points:
        none = "This study could not detect any gap on this scale: too few common clusters."
        more = "More decisions in more market regimes" if index.run.table is None else "More items in more clusters"
        more += "; this design does not tell how many."
        return none if pair is not None and pair > 0 else "", more
    target = next((size for k in (0.3, 0.1, 0.03) if (size := k * (index.study.points / 4)) < 0.9 * pair), pair / 2)
    factor = (pair / target) ** 2
    calls = _calls(index, factor * index.answers, len(index.study.judges))
    times = f"{number(factor, 1)} times the {'decisions' if index.run.table is None else 'answers'}"
    more = f"Detecting a gap of {target:g} takes about {times}: {calls}."
    return f"The smallest gap this study could detect is {number(pair)} points.", more


def binding_fields(verdict: Verdict) -> tuple[str, ...]:
    """The fields that determine the level of a claim."""
    level = verdict.publication_level
    return tuple(dict.fromkeys(c.field for c in verdict.caps if not c.lifted and c.level == level))


def copied_words(index: RunIndex) -> str:
    """The judges with equal scores for every answer, as copies of one judge have; empty if there are none."""
    scales = [item.detail.get("pairs") or {} for _, item in index.by_score("kappa.mean_pairwise")]
    pairs = (name for name in (scales[0] if scales else ()) if all(round(of.get(name) or 0, 9) == 1 for of in scales))
    alike = [{*pair.split("|", 1)} for pair in pairs]
    groups = {tuple(sorted(set[str]().union(*(other for other in alike if other & pair)))) for pair in alike}
    return "; ".join(t.listing([clean(name, 60) for name in names]) for names in sorted(groups))


Limit = tuple[str, str, str, str]
"""A limit of the result: its title, the measured value with its threshold, its effect, and the fix."""


def limits_of(index: RunIndex) -> list[Limit]:
    """The limits of the result, those that affect most claims first."""
    stops, conditions = Counter[str](), Counter[str]()
    for verdict in index.run.verdicts:
        stopped = next(iter(blockers(verdict)), None)
        if stopped is None:
            conditions.update({cap.field for cap in verdict.caps if not cap.lifted and cap.level == "qualified"})
            continue
        if stopped == "stability" and (kind_of(verdict.claim), verdict.pair_state) == ("within", "ordered"):
            continue  # a ranked pair is not too close
        # Significance and stability are one field of a verdict, but two limits for readers.
        if kind_of(verdict.claim) == "first" and stopped != "agreement":  # one agent's own would show that it leads
            stopped = "lead"
        elif stopped == "stability":
            stopped = "family" if is_significant(index, verdict) else "difference"
            stopped = "untested" if verdict.pair_state == "cannot-be-tested" else stopped
        stops[stopped] += 1
    # The title of each limit, and its number with the threshold.
    run, gates, table, cells = index.run, index.study.gates, index.run.table, index.study.cells
    weak = [d for d in index.dimensions if index.status(d) in ("halt", "methodology")]
    many = f"{t.words(len(weak))} scores" if len(weak) > 1 else score_words(weak[0]) if weak else "some scores"
    needed = f"{number(gates.halt)} needed, {number(gates.publish)} without a condition"
    unstable = [v.stability for v in run.verdicts if v.stability and v.stability.state != "stable"]
    families = sorted({clean(name, 60) for finding in unstable for name in finding.families})
    shared = sorted({clean(f, 60) for f in run.study.families} & {index.family(a) for a in index.agents})
    makers = "Judges share a maker with agents", f"{t.listing(shared) or 'families'} made agents and judges"
    if not shared and table is not None:
        makers = "Makers are not known", "self-preference cannot be tested without the makers of judges and systems"
    terse, item = t.listing(mostly_terse(index)), index.get("score.length_correlation")
    shown = f"length and score correlate at {number(item.value)}" if known(item) else "length may play a part"
    bad = [c for c in controls(index) if c.outcome not in GOOD]
    style = "; ".join(f"{c.name} {gate_words(c)}, {c.result}" for c in bad if c.gate is not None)
    brief = f"most texts of {terse} have fewer than {cells.terse_tokens} words" if terse else ""
    failing, (smallest, larger) = t.listing([clean(judge, 60) for judge in failed_judges(index)]), _detectable(index)
    some = "" if table is None else f"{count(table.missing)} of {count(table.missing + table.scores)} "
    wording = {
        "agreement": (f"The judges agree too little on {many}",
                      f"agreement {', '.join(map(index.gating_words, weak))}; {needed}"),
        "family": ("Some rankings rest on one judge family",
                   f"not seen without {t.listing(families, last='or') or 'one of them'}"),
        "own_family": makers,
        "length": ("Score follows length", shown + (f"; most texts of {terse} are very short" if terse else "")),
        "adversarial": ("Style may explain scores", style or brief or "control texts were not graded"),
        "datasheets": (f"{failing or 'A judge'} fails its own test", own_tests_words(index)),
        "lead": ("Only one agent can rank first", "a first rank means above every other agent"),
        "untested": ("Pairs of agents cannot be tested",
                     f"too few common clusters; the study has {t.words(index.clusters)}"),
        "difference": ("Some agents are too close", smallest or "their differences are not significant"),
        "clusters": (f"Only {t.plural(index.clusters, 'market regime')}",
                     "neighbouring clusters may follow each other in time"),
        "other_judges": ("Not shown for other judges",
                         f"{t.plural(len(run.study.families), 'judge family', 'judge families')}"),
        "distinct": ("Some dimensions repeat the overall impression",
                     f"correlation below {number(run.study.claims.distinct)} needed"),
        "human_anchor": ("People’s grades contradict it",
                         "people see less than half of the difference that the judges see"),
        "preregistration": ("The plan was locked after the scores",
                            "the scores had been seen when the plan was locked"),
        "missing_replies": ("Scores are missing", f"{some or 'some '}scores are missing, or those of a judge left out"),
    }  # fmt: skip
    if len(run.study.families) == 1:
        wording["agreement"] = "Agreement cannot be measured", "all judges are of one family; two are needed"
    if table is not None:
        wording |= {
            "clusters": ("Neighbouring clusters resemble each other", "they may count for less than their number"),
            "preregistration": ("The scores came before a plan", "these scores were analysed after they were seen"),
        }
    more = "decisions in more market regimes" if table is None else "items in more clusters"
    fixes = {"lead": "See the limits of its pairs.", "untested": f"More {more}.",
             "difference": larger, "family": fix_words(index, "own_family")}  # fmt: skip
    limits = list[tuple[int, Limit]]()
    for field in dict.fromkeys((*stops, *conditions)):
        effects = [f"Stops {t.counted(stops[field], 'sentence')}"] if stops[field] else []
        adds = f"{'adds' if effects else 'Adds'} a condition to {t.counted(conditions[field], 'sentence')}"
        effects += [adds] if conditions[field] else []
        title, measured = wording.get(field, (clean(field.replace("_", " "), 60).capitalize(), "a limit of the plan"))
        row = (title, t.sentence(measured), "; ".join(effects), fixes.get(field) or fix_words(index, field))
        limits.append((stops[field] + conditions[field], row))
    copied = copied_words(index)
    measured = f"{copied} gave equal scores to every answer; copies of one judge count as several."
    fix = "Replace all but one of them." if table is None else "Check without all but one of them (--without)."
    first = [("Some judges agree on every answer", measured, "Lowers no level", fix)] if copied else []
    return [*first, *(row for _, row in sorted(limits, key=lambda limit: (-limit[0], limit[1][0])))]
