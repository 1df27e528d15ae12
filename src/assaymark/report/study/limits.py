"""What keeps claims from being supported: each limit with its number beside the threshold, what it does, and the fix. A
fix says what would help and what that costs: calls by closed form, and USD where the price of a call is known."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from assaymark.claims import kind_of
from assaymark.records import AGGREGATE, Measurement, Verdict
from assaymark.report.inputs import RunIndex, score_words
from assaymark.report.study.claim_checks import is_significant, stopping
from assaymark.report.study.controls import GOOD, controls, gate_words, mostly_terse
from assaymark.report.text import counted, listing, plural, real, sentence, signed, words
from assaymark.text import clean, count, money, number

TESTS: Final = {
    "dark_current": ("dark_current", "preferences between two equal texts", 1),
    "positional": ("delta0.positional", "verdicts that change with the position of a text", 1),
    "threshold": ("threshold", "requirements that a difference needs to be seen", 1),
    "vacuum_score": ("point.vacuum_score", "for a text without content", 1),
    "slope": ("point.slope", "points for a further requirement", -1),
    "verbosity": ("point.verbosity", "points per 100 words of filler", 1),
}
"""The limits of a judge's own test: the measurement, what it counts, and whether the limit is the most or the least."""


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit of the result: its name, what was measured against what is needed, its effect, and the fix."""

    title: str
    measured: str
    effect: str
    fix: str
    affected: int


def calls_of(book: RunIndex, calls: float, judges: int | None = None) -> str:
    """So many calls, with their price where one is known. ``judges`` multiplies by judges of the panel and their
    trials; None: calls are calls."""
    if judges is not None:
        trials = max((judge.trials for judge in book.study.judges), default=1)
        calls *= judges * trials
    total = round(calls)
    paid = book.run.paid or ()
    priced = sum(one.calls - one.unpriced for one in paid)
    said = counted(total, "call" if book.run.table is None else "score")
    return f"{said}, about {money(sum(one.usd for one in paid) / priced * total)} USD" if priced else said


def failed_judges(book: RunIndex) -> dict[str, tuple[str, ...]]:
    """The judges that miss a limit of the plan, with what they miss, such as ``verbosity 0.30, at most 0.15``."""
    gates = [m for m in book.every("datasheet.gate") if m.value is None or m.value > 0]
    return {m.labels["judge"]: tuple(map(str, m.detail.get("failed", ()))) for m in gates}


def own_test(book: RunIndex, name: str, judge: str) -> Measurement | None:
    """What a judge's own test measured: over all scores of a text, or under the plain prompt."""
    found = [m for m in book.tests.get(name, ()) if m.labels.get("judge") == judge]
    whole = [m for m in found if m.labels.get("dimension", AGGREGATE) == AGGREGATE]
    return min(whole, key=lambda m: m.id, default=None)


def own_test_words(book: RunIndex, judge: str, limit: str, missed: str = "") -> str:
    """The value of a judge's own test beside the limit of the plan; ``missed`` where only the plan's words are known.
    For example “Auditor +0.30 points per 100 words of filler; 0.15 allowed”."""
    name, unit, side = TESTS[limit]
    limits = book.study.datasheets
    item, cut = own_test(book, name, judge), None if limits is None else limits.set.get(limit)
    if item is None or item.value is None:
        return f"{clean(judge, 60)} {clean(missed.replace(limit, unit, 1), 120) or 'has no own test'}"
    allowed = "" if cut is None else f"; {number(cut)} {'allowed' if side > 0 else 'needed'}"
    return f"{clean(judge, 60)} {signed(item.value)} {unit}{allowed}"


def own_tests_words(book: RunIndex) -> str:
    """Which judges fail their own test, with numbers; else that all of them pass it."""
    failing = failed_judges(book)
    if failing:
        split = [(judge, one.partition(" ")[0], one) for judge, named in failing.items() for one in named]
        known = [own_test_words(book, judge, name, one) for judge, name, one in split if name in TESTS]
        return "; ".join(known) or f"{listing([clean(judge, 60) for judge in failing])} over a limit of the plan"
    limits = book.study.datasheets
    if limits is None:
        return "no limit was set for the judges’ own tests"
    if not book.every("datasheet.gate"):
        return "the judges’ own tests were not run"
    which = next(iter(limits.set), "")

    def value(judge: str) -> float:
        item = own_test(book, TESTS[which][0], judge) if which in TESTS else None
        return -math.inf if item is None or item.value is None else TESTS[which][2] * item.value

    most = max(book.study.judges, key=lambda one: value(one.name), default=None)
    if most is None or which not in TESTS or own_test(book, TESTS[which][0], most.name) is None:
        return "every judge is within the limits of the plan"
    return own_test_words(book, most.name, which)


_OF_TABLES: Final[Mapping[str, str]] = {
    "adversarial": "Have the same judges grade control texts: rows with the column derivation, as in the docs.",
    "clusters": "Name larger clusters (--cluster COLUMN), or declare that they follow in time (--cluster-order).",
    "few-clusters": "More items, or smaller clusters.",
    "preregistration": "Lock a plan before the next scores are made, and name it with --study.",
    "own_family": "Name the makers of judges and systems (--family NAME=MAKER), or add a judge without an interest.",
    "missing_replies": "Have the judges grade what is missing.",
}
"""What helps where a table of scores is all there is."""


# --- what helps, by the field that limits ---------------------------------------------------------------------------


def fix_words(book: RunIndex, field: str, verdict: Verdict | None = None) -> str:
    """What would lift a limit, with its price. Nothing of it depends on who is ahead."""
    run, panel, decided = book.run, len(book.study.judges), book.answers
    if run.table is not None and field in _OF_TABLES:
        return _OF_TABLES[field]
    if field == "agreement":
        return f"Rewrite the anchors of the rubric and pilot on 100 texts: {calls_of(book, 100, panel)}. No guarantee."
    if field == "stability" and (verdict is None or not is_significant(book, verdict)):
        return f"{smallest_words(book)} {more_words(book)}".strip()
    if field in ("stability", "own_family", "other_judges"):
        return f"Add a judge from a maker that built no agent: {calls_of(book, decided, 1)}. No guarantee."
    if field == "length":
        agents = max(len(book.agents), 1)
        return f"Judge texts of equal length: {calls_of(book, decided / agents, panel)} for each agent rewritten."
    if field == "distinct":
        return "Describe what sets this dimension apart in the rubric, and score it in a call of its own."
    if field in ("clusters", "few-clusters"):
        clusters = max(book.clusters, 1)
        return f"Two more market regimes: {calls_of(book, 2 * decided / clusters, panel)} of the judges."
    if field == "adversarial":
        return "Give the judges a rubric that asks for facts, and grade the control texts again: " + calls_of(
            book, sum(c.score.n for c in controls(book) if c.score is not None) or 100, panel
        )
    if field == "datasheets":
        failing = [clean(judge, 60) for judge in failed_judges(book)]
        which = listing(failing) if failing else "the judge"
        return f"Replace {which} with a judge that passes the test: {calls_of(book, decided, max(len(failing), 1))}."
    if field == "human_anchor":
        return "Find out in which texts judges and people differ most; another panel, or another rubric, may not."
    if field == "preregistration":
        return "Lock the plan before new decisions are scored."
    return "Complete what is missing and judge it again."


def _smallest(book: RunIndex) -> float | None:
    """The smallest difference of two agents that the design could detect; None where it is not known."""
    item = book.one("order.detectable", dimension=AGGREGATE)
    pair = None if item is None else real(item.detail.get("pair", item.value))
    return pair if pair is not None and pair > 0 else None


def smallest_words(book: RunIndex) -> str:
    """The smallest difference that the design could detect, in words; empty where it is not known."""
    pair = _smallest(book)
    if pair is not None and pair > book.study.points:
        return "This study could not detect any gap on this scale: too few common clusters."
    return "" if pair is None else f"The smallest gap this study could detect is {number(pair)} points."


def more_words(book: RunIndex) -> str:
    """What detecting a smaller difference would take."""
    pair = _smallest(book)
    if pair is None or pair > book.study.points:
        return "More decisions in more market regimes; this design does not tell how many."
    target = next((one for k in (0.3, 0.1, 0.03) if (one := k * (book.study.points / 4)) < 0.9 * pair), pair / 2)
    factor = (pair / target) ** 2
    calls = calls_of(book, factor * book.answers, len(book.study.judges))
    return f"Detecting a gap of {target:g} takes about {number(factor, 1)} times the decisions: {calls}."


def binding(verdict: Verdict) -> tuple[str, ...]:
    """The fields that hold a claim at its level."""
    level = verdict.publication_level
    return tuple(dict.fromkeys(c.field for c in verdict.caps if not c.lifted and c.level == level))


# --- the table --------------------------------------------------------------------------------------------------------


def limits_of(book: RunIndex) -> list[Limit]:
    """The limits of the result, those that affect most claims first."""
    stops, conditions = Counter[str](), Counter[str]()
    for verdict in book.run.verdicts:
        caps = [cap for cap in verdict.caps if not cap.lifted]
        stopped = next(iter(stopping(verdict)), None)
        if stopped is not None:
            stops[_split(book, verdict, stopped)] += 1
        else:
            conditions.update(dict.fromkeys((cap.field for cap in caps if cap.level == "qualified"), 1))
    found = []
    for field in dict.fromkeys((*stops, *conditions)):
        effects = [f"Stops {counted(stops[field], 'sentence')}"] if stops[field] else []
        adds = f"{'adds' if effects else 'Adds'} a condition to {counted(conditions[field], 'sentence')}"
        effects += [adds] if conditions[field] else []
        title, measured = _named(book, field)
        more = "More decisions in more market regimes."
        fix = {"lead": "Whatever helps the single orders.", "difference": more_words(book), "untested": more}.get(field)
        fix = fix or fix_words(book, {"family": "own_family"}.get(field, field))
        found.append(Limit(title, sentence(measured), "; ".join(effects), fix, stops[field] + conditions[field]))
    return sorted(found, key=lambda one: (-one.affected, one.title))


def _split(book: RunIndex, verdict: Verdict, field: str) -> str:
    """Significance and stability are one field of a verdict, and two limits for a reader."""
    if kind_of(verdict.claim) == "first" and field != "agreement":  # one agent's own field would show that it leads
        return "lead"
    if field != "stability":
        return field
    if verdict.pair_state == "cannot-be-tested":
        return "untested"
    return "family" if is_significant(book, verdict) else "difference"


def _named(book: RunIndex, field: str) -> tuple[str, str]:
    """The title of a limit and its number beside the threshold."""
    run, gates = book.run, book.study.gates
    if field == "agreement":
        weak = [d for d in book.dimensions if book.status(d) in ("halt", "methodology")]
        low = [book.gating_words(d) for d in weak]
        many = f"{words(len(weak))} scores" if len(weak) > 1 else score_words(weak[0]) if weak else "some scores"
        needed = f"{number(gates.halt)} needed, {number(gates.publish)} without a condition"
        return f"The judges agree too little on {many}", f"agreement {', '.join(low)}; {needed}"
    if field == "lead":
        return "Only one agent can rank first", "a first rank needs a supported order over every other agent"
    if field == "untested":
        return "Pairs of agents cannot be tested", f"too few common clusters; the study has {words(book.clusters)}"
    if field == "difference":
        return "Some agents are too close", smallest_words(book) or "their differences are not significant"
    if field == "family":
        families = sorted({
            clean(name, 60) for v in run.verdicts if v.stability and v.stability.state != "stable"
            for name in v.stability.families
        })  # fmt: skip
        return (
            "Some orders rest on one judge family",
            f"not seen without {listing(families, last='or') or 'one of them'}",
        )
    if field == "own_family":
        shared = sorted({clean(f, 60) for f in run.study.families} & {book.family(a) for a in book.agents})
        if not shared and run.table is not None:
            return "Makers are not known", "self-preference cannot be tested without the makers of judges and systems"
        return "Judges share a maker with agents", f"{listing(shared) or 'families'} made agents and judges"
    if field == "length":
        item = book.one("score.length_correlation")
        terse = mostly_terse(book)
        named = f"; most texts of {listing(terse)} are very short" if terse else ""
        value = "how length moves scores could not be excluded" if item is None or item.value is None else (
            f"length and score correlate at {number(item.value)}"
        )  # fmt: skip
        return "Score follows length", value + named
    if field == "adversarial":
        bad = [c for c in controls(book) if c.outcome not in GOOD]
        said = "; ".join(f"{c.name} {gate_words(c)}, {c.said}" for c in bad if c.gate is not None)
        terse = mostly_terse(book)
        brief = f"most texts of {listing(terse)} have fewer than {run.study.cells.terse_tokens} words" if terse else ""
        return "Style may explain scores", said or brief or "control texts were not graded"
    if field == "datasheets":
        return f"{listing([clean(judge, 60) for judge in failed_judges(book)]) or 'A judge'} fails its own test", (
            own_tests_words(book)
        )
    if field == "clusters":
        clusters = book.clusters
        if run.table is not None:
            return "Neighbouring clusters resemble each other", "they may count for less than their number"
        return f"Only {plural(clusters, 'market regime')}", "neighbouring clusters may follow each other in time"
    if field == "other_judges":
        return "Not shown for other judges", f"{plural(len(run.study.families), 'judge family', 'judge families')}"
    if field == "distinct":
        cut = number(run.study.claims.distinct)
        return "Some dimensions repeat the overall impression", f"correlation below {cut} needed"
    if field == "human_anchor":
        return "People’s grades contradict it", "people see less than half of the difference that the judges see"
    if field == "preregistration":
        if run.table is not None:
            return "The scores came before a plan", "these scores were analysed after they were seen"
        return "The plan was locked after the scores", "the scores had been seen when the plan was locked"
    if field == "missing_replies":
        table = run.table
        some = "" if table is None else f"{count(table.missing)} of {count(table.missing + table.scores)} "
        return "Scores are missing", f"{some or 'some '}scores are missing, or those of a judge left out"
    return clean(field.replace("_", " "), 60).capitalize(), "a limit of the plan"
