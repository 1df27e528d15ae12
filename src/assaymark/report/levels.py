"""The three levels of the first screen: claims that are supported, only with a condition, or not. A view of a claim
that is not supported never holds its sentence: it says what it is about, without the direction that the panel saw."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from assaymark.claims import kind_of, suppressed_phrase
from assaymark.claims.levels import KINDS
from assaymark.claims.messages import english, stand_ins
from assaymark.records import AGGREGATE, Level, Verdict
from assaymark.report.blocks import Quote
from assaymark.report.inputs import RunIndex, score_words
from assaymark.report.study.claim_checks import ONE_FAMILY, agreement_words, checked, is_significant, stopping
from assaymark.report.study.probes import finds, found_words
from assaymark.report.text import alpha, listing, moment, p_value, plural, state_words, words
from assaymark.text import clean, prose

# What is not supported, in words that do not say it: claims in groups, with the numbers that stop them.


Segments = tuple[tuple[str, bool], ...]
_NAMES: Final = 6


@dataclass(frozen=True, slots=True)
class WithheldGroup:
    """Several unsupported claims on one score: what they are about, why in numbers, and how many claims it covers.
    ``why`` is text in segments; a segment marked True binds and is set bold."""

    text: str
    why: Segments
    covers: int


def withheld_groups(book: RunIndex) -> tuple[WithheldGroup, ...]:
    """Unsupported claims score by score: the aggregate and the controls, then the dimensions in rubric order."""
    known = book.dimensions
    others = sorted({v.claim.dimension for v in book.run.verdicts if kind_of(v.claim) != "cell"} - set(known))
    groups: list[WithheldGroup] = []
    for dimension in (*known, *others):
        kept = {
            kind: [v for v in book.on(dimension, kind) if v.publication_level == "no-claim"]
            for kind in ("first", "pair", "within")
        }
        firsts, pairs, close = kept["first"], kept["pair"], kept["within"]
        where = score_words(dimension)
        if firsts and pairs and len(firsts) + len(pairs) == len(book.on(dimension, "first", "pair")):
            text = f"Any ranking of the agents, or a first rank, on {where}."
            groups.append(WithheldGroup(text, _why(book, [*firsts, *pairs]), len(firsts) + len(pairs)))
        else:
            for part in _components(pairs):
                names = sorted({name for v in part for name in v.claim.subjects})
                whole = len(part) == len(names) * (len(names) - 1) // 2
                what = "Any ranking" if whole else f"The ranking of {plural(len(part), 'pair')}"
                cleaned = [clean(name, 80) for name in names]
                others = [f"{len(names) - _NAMES + 1} others"]
                some = cleaned if len(names) <= _NAMES else [*cleaned[: _NAMES - 1], *others]
                which = f"{'of' if whole else 'among'} {listing(some)}"
                groups.append(WithheldGroup(f"{what} {which} on {where}.", _why(book, part), len(part)))
            if firsts:
                said = [clean(v.claim.subjects[0], 80) for v in book.on(dimension, "first") if v not in firsts]
                text = f"A first rank for any {'other agent' if said else 'agent'} on {where}."
                groups.append(WithheldGroup(text, _why(book, firsts), len(firsts)))
        if len(close) == 1:
            groups.append(WithheldGroup(prose(suppressed_phrase(close[0].claim), 400), _why(book, close), 1))
        elif close:
            text = f"That the agents of {plural(len(close), 'pair')} score alike on {where}."
            groups.append(WithheldGroup(text, _why(book, close), len(close)))
        if dimension == AGGREGATE:
            for v in book.cells:
                if v.publication_level == "no-claim":
                    stops = [check for check in checked(book, v).checks if check.effect == "stops"]
                    why = tuple(
                        part
                        for stop in stops
                        for part in ((f"{stop.name}: ", False), (str(stop.text), True), (". ", False))
                    )
                    groups.append(WithheldGroup(prose(suppressed_phrase(v.claim), 400), why, 1))
    return tuple(groups)


def _components(pairs: Sequence[Verdict]) -> list[list[Verdict]]:
    """Pairs that share agents, as groups; the groups and their pairs in alphabetical order."""
    root: dict[str, str] = {}

    def find(name: str) -> str:
        while root.setdefault(name, name) != name:
            name = root[name]
        return name

    for verdict in pairs:
        ends = sorted(find(name) for name in verdict.claim.subjects)
        for end in ends[1:]:
            root[end] = ends[0]
    groups: dict[str, list[Verdict]] = {}
    for verdict in sorted(pairs, key=lambda v: sorted(v.claim.subjects)):
        groups.setdefault(find(verdict.claim.subjects[0]), []).append(verdict)
    return [groups[name] for name in sorted(groups)]


# --- why ------------------------------------------------------------------------------------------------------------


def _why(book: RunIndex, verdicts: Sequence[Verdict]) -> Segments:
    """The first check that stops each of some claims on one score, with its number; nothing says who is ahead."""
    stops = [set(stopping(v)) for v in verdicts]
    if all("agreement" in fields for fields in stops):
        return (("Agreement: ", False), (str(agreement_words(book, verdicts[0])), True), (". ", False))
    pairs = [v for v in verdicts if kind_of(v.claim) != "first"]
    if not pairs:
        return (("No lead over every other agent is supported. ", False),)
    only = len(pairs) == 1
    untested = [v for v in pairs if v.pair_state == "cannot-be-tested"]
    tested = [v for v in pairs if v not in untested]
    found = [v for v in tested if is_significant(book, v)]
    parts: list[tuple[str, bool]] = []
    if untested:
        states = {state_words(m) for v in untested if (m := book.pair("contrast", v)) is not None}
        why = " " + sorted(states)[0].removeprefix("cannot be tested").strip() if states else ""
        parts += [(_counted(len(untested), only), False), ("cannot be tested", True), (f"{why}. ", False)]
    if unresolved := [v for v in tested if v not in found]:
        ps = [v.p_adjusted for v in unresolved if v.p_adjusted is not None]
        order = unresolved[0].claim.asserts_order
        level = book.needed(unresolved[0].claim.dimension) if order else book.study.inference.alpha
        which = "the smallest adjusted" if len(ps) > 1 else "adjusted"
        tail = f": {which} {p_value(min(ps))}; {alpha(level)} needed. " if ps else ". "
        many = "is" if only or len(unresolved) == 1 else "are"
        state = "not resolved" if order else "not shown to be so close"
        parts += [(f"{_counted(len(unresolved), only)}{many} ", False), (state, True), (tail, False)]
    parts += _resting([v for v in found if v.stability_status != "stable"], only)
    if resting := [v for v in found if "own_family" in stopping(v)]:
        known = [v.p_adjusted for v in resting if v.p_adjusted is not None]
        rest, needed = "rests" if only or len(resting) == 1 else "rest", alpha(book.needed(resting[0].claim.dimension))
        tail = f"; without them adjusted {p_value(min(known))}, {needed} needed. " if known else ". "
        if not any(book.pair("recusal.contrast", v) for v in resting):  # no interest here, but in what they wait for
            rest = f"{'waits' if rest == 'rests' else 'wait'} for orders that rest"
        parts += [(f"{_counted(len(resting), only)}{rest} on ", False), ("judges from the agents’ own makers", True),
                  (tail, False)]  # fmt: skip
    parts += outside_words(book, found)
    for field, said in (("adversarial", "The control texts fail"), ("human_anchor", "People’s grades contradict it")):
        if any(field in fields for fields in stops):
            parts += [(said, True), (". ", False)]
    return tuple(parts)


def _resting(pairs: Sequence[Verdict], only: bool) -> list[tuple[str, bool]]:
    """Pairs that one judge family makes or turns."""
    parts: list[tuple[str, bool]] = []
    for state, one, many in (
        ("rests-on", "needs judge family {names} to be seen", "need judge family {names} to be seen"),
        ("reversed-without", "turns without judge family {names}", "turn without judge family {names}"),
    ):
        here = [v for v in pairs if v.stability is not None and v.stability.state == state]
        if here:
            names = sorted({clean(name, 60) for v in here for name in v.stability.families})  # type: ignore[union-attr]
            said = (one if only or len(here) == 1 else many).format(names=listing(names, last="or"))
            parts += [(_counted(len(here), only), False), (said, True), (". ", False)]
    if any(v.stability is not None and v.stability.state == "not-measurable" for v in pairs):
        parts += [("Whether it depends on the judge is ", False), (ONE_FAMILY, True), (". ", False)]
    return parts


def outside_words(book: RunIndex, pairs: Iterable[Verdict]) -> list[tuple[str, bool]]:
    """What the held-out judge settled about some pairs: whether it finds a difference, never on which side. Empty where
    it was not asked about any of them."""
    asked = [found for v in pairs if (found := book.pair("probe.contrast", v)) is not None]
    known = [m for m in asked if m.low is not None and m.high is not None]
    if not known:
        return []
    if len(known) == 1:
        return [(f"The held-out judge finds {found_words(known[0])}. ", False)]
    alike = sum(not finds(m) for m in known)
    which = "all" if alike == len(known) else words(alike) if alike else "none"
    about = f"The held-out judge was asked about {words(len(known))} of them"
    return [(f"{about} and finds no difference in {which}. ", False)]


def _counted(size: int, only: bool) -> str:
    return "The pair " if only else f"{plural(size, 'pair').capitalize()} "


LEVELS: Final[tuple[Level, ...]] = ("headline", "qualified", "no-claim")
TAGS: Final[dict[Level, str]] = {
    "headline": "Supported", "qualified": "Only with its condition", "no-claim": "Not supported",
}  # fmt: skip
TITLES: Final = {
    "headline": "Supported",
    "qualified": "Supported only with its condition",
    "no-claim": "Not supported by this evidence",
}
TALLY: Final = {"headline": "supported", "qualified": "only with a condition", "no-claim": "not supported"}
EMPTY: Final = {
    "headline": "No claim is supported without a condition.",
    "qualified": "No claim is supported with a condition.",
    "no-claim": "Every claim is supported.",
}
RANK: Final = {"no-claim": 0, "qualified": 1, "headline": 2}
_RULES: Final = {
    "half-even rounding": "halves rounded to even",
    "own variance of each pair": "a test with each pair’s own variance",
    "clusters weighted by records": "a test with clusters weighted by records",
    "aggregate's share of alpha 0.5": "half of alpha for the overall score",
    "aggregate's share of alpha 1": "all of alpha for the overall score",
    "source: percentile bootstrap": "ValueBlindBench’s percentile bootstrap with Holm",
    "source: sign flip": "ValueBlindBench’s sign flip with Holm",
}
_SHOWN: Final = 3
_MORE: Final = 5


@dataclass(frozen=True, slots=True)
class SaidLevel:
    """One level in few words: its first sentences, ``more`` of them, or in ``groups`` what is not supported. Only the
    page of all claims has the ``rest``."""

    level: Level
    title: str
    shown: tuple[Quote, ...]
    more: tuple[Quote, ...]
    groups: tuple[WithheldGroup, ...]
    rest: int = 0


def said_levels(book: RunIndex) -> tuple[SaidLevel, ...]:
    """The three levels in order, each with its first claims, score by score and by name: a page must not be sorted by
    an order that it does not support."""
    found = []
    for level in LEVELS:
        mine = [v for v in ordered_verdicts(book) if v.publication_level == level != "no-claim"]
        quotes = tuple(said_claim(book, verdict) for verdict in mine[: _SHOWN + _MORE])
        groups = withheld_groups(book) if level == "no-claim" else ()
        found.append(SaidLevel(level, TITLES[level], quotes[:_SHOWN], quotes[_SHOWN:], groups, len(mine) - len(quotes)))
    return tuple(found)


def said_claim(book: RunIndex, verdict: Verdict, id_: str = "") -> Quote:
    """A supported claim with its condition and its clipboard text."""
    statement, study = prose(verdict.claim.statement, 400), book.study
    condition = " ".join(filter(None, (built_in_words(book, verdict), prose(verdict.condition or "", 1200))))
    said = f"{condition} {amended_words(verdict.amended)}".strip()
    copy = copied(statement, said, study.title or study.name, book.run.locked_at, verdict.plan_hash)
    return Quote(verdict.publication_level, statement, condition, copy, id_)


def built_in_words(book: RunIndex, verdict: Verdict) -> str:
    """That a claim's judges or agents are built in; nobody's agents wrote control texts."""
    graders = {one.name for one in book.run.reference_panel}
    makers = {agent.name for agent in book.run.reference_agents}
    agents = {} if kind_of(verdict.claim) == "cell" else {name: name in makers for name in book.agents}
    judges = {judge.name: judge.name in graders for judge in book.study.judges}
    return stand_ins(english(), judges, agents, verdict.claim.subjects)


def copied(statement: str, condition: str, study: str, locked_at: str | None, plan_hash: str) -> str:
    """What the clipboard gets: a sentence with its condition, and which study said it under which plan, locked when.

    >>> copied("A ranks first.", "Few clusters (5).", "Spring", "2026-11-21T02:00:15Z", "a41f")
    '“A ranks first.” Few clusters (5). (assaymark: Spring, 21 November 2026, plan a41f)'
    """
    when = moment(locked_at).partition(", ")[0] if locked_at else ""
    source = ", ".join(filter(None, (clean(study, 120), when, f"plan {clean(plan_hash)}")))
    return " ".join(filter(None, (f"“{statement}”", condition, f"(assaymark: {source})")))


def amended_words(fields: Sequence[str]) -> str:
    """That a claim was made under an amended plan.

    >>> amended_words(["gates.publish"]), amended_words(())
    ('Made under a plan amended after its lock: gates.publish.', '')
    """
    named = listing(sorted(clean(field, 80) for field in fields))
    return f"Made under a plan amended after its lock: {named}." if named else ""


def ordered_verdicts(book: RunIndex) -> tuple[Verdict, ...]:
    """Every verdict: the aggregate first, then the dimensions; by kind and then by name within."""
    order = {name: at for at, name in enumerate(book.dimensions)}

    def place(verdict: Verdict) -> tuple[int, str, int, tuple[str, ...], str]:
        claim = verdict.claim
        at = order.get(claim.dimension, len(order))
        return at, claim.dimension, KINDS.index(kind_of(claim)), tuple(sorted(claim.subjects)), claim.id

    return tuple(sorted(book.run.verdicts, key=place))


def supported_verdicts(book: RunIndex) -> tuple[Verdict, ...]:
    """The supported claims, in the order of the page."""
    return tuple(v for level in LEVELS[:2] for v in ordered_verdicts(book) if v.publication_level == level)


def rule_words(rule: str) -> str:
    """How a page calls a rule that the plan did not lock; one it does not know keeps its name.

    >>> rule_words("half-even rounding"), rule_words("kappa cut-offs 0.5 and 0.25")
    ('halves rounded to even', 'kappa cut-offs 0.5 and 0.25')
    """
    return _RULES.get(rule) or clean(rule, 60)
