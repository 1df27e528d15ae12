"""What the verdicts of a run say to a sentence or a claim: supported, with a condition, not, or the opposite."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, product
from typing import Final, Literal

from assaymark.claims.messages import count_words, interval_words, listing, measure_words, number, p_words, signed
from assaymark.claims.sentences import Names, Reading, Relation, name_key, read_sentence
from assaymark.claims.verdicts import NOT_PREREGISTERED
from assaymark.errors import InputError, Problem, UnknownNameError
from assaymark.records import AGGREGATE, Level, Measurement, Verdict, measurement_id
from assaymark.text import prose

Mark = Literal["x", "/", "-", "!", "?"]
"""Supported; only with its condition; not supported; contradicted; not decided by the run, or not readable."""

COUNTS: Final = ("judges", "agents", "decisions", "clusters", "dimensions", "cycles")
"""Sizes of a run that a text may quote."""

WORST: Final[tuple[Mark, ...]] = ("!", "-", "/", "?", "x")
MARKS: Final[Mapping[Level, Mark]] = {"headline": "x", "qualified": "/", "no-claim": "-"}
"""The mark of each level."""


@dataclass(frozen=True, slots=True)
class Ruling:
    """What a run says to one relation: the mark, why, and the verdicts that support it."""

    mark: Mark
    why: str = ""
    by: tuple[Verdict, ...] = ()

    @property
    def conditions(self) -> tuple[str, ...]:
        """What has to be said with it."""
        return conditions_of(self.by)


@dataclass(frozen=True, slots=True)
class Finding:
    """One sentence of a text: its mark, why, the condition to ``add``, and the supported sentence to ``write``.

    ``also`` are the conditions of that sentence. ``about`` tells comparisons from numbers of the run.
    """

    mark: Mark
    why: str
    about: Literal["comparison", "number"] = "comparison"
    add: tuple[str, ...] = ()
    write: str = ""
    also: tuple[str, ...] = ()
    level: Level | None = None


def conditions_of(verdicts: Iterable[Verdict]) -> tuple[str, ...]:
    """The conditions of several verdicts, each once."""
    found = (
        condition
        for verdict in verdicts
        if verdict.publication_level == "qualified"
        for condition in verdict.conditions
    )
    return tuple(dict.fromkeys(one.text for one in found))


@dataclass(frozen=True)
class Decided:
    """The verdicts of one run, by what they are about; ``counts`` are its sizes, each by its noun in the plural."""

    names: Names
    verdicts: tuple[Verdict, ...]
    measurements: Mapping[str, Measurement]
    ranks: Mapping[str, Mapping[str, tuple[int, int]]]
    counts: Mapping[str, int]
    judged: bool = True

    @cached_property
    def _pairs(self) -> Mapping[tuple[str, str, frozenset[str]], Verdict]:
        heads = ((verdict.claim.id.partition("[")[0], verdict) for verdict in self.verdicts)
        return {
            (head, one.claim.dimension, frozenset(one.claim.subjects)): one
            for head, one in heads
            if head in ("above", "within", "first")
        }

    @cached_property
    def by_statement(self) -> Mapping[str, Verdict]:
        """Verdicts by their own words: all that are supported, and those about no order of two agents."""
        return {
            statement_key(verdict.claim.statement): verdict
            for verdict in self.verdicts
            if verdict.publication_level != "no-claim"
            or not verdict.claim.id.startswith(("above[", "first[", "within["))
        }

    @cached_property
    def stated_conditions(self) -> frozenset[str]:
        """The sentences of all conditions: they speak of agents, and are no claims."""
        texts = (condition.text for verdict in self.verdicts for condition in verdict.conditions)
        return frozenset(statement_key(part) for text in texts for part in re.split(r"(?<=[.!?])\s", text))

    def _find(self, head: str, score: str, *agents: str) -> Verdict | None:
        return self._pairs.get((head, score, frozenset(agents)))

    def above(self, high: str, low: str, score: str) -> Verdict | None:
        """The supported verdict that puts one agent above another."""
        found = self._find("above", score, high, low)
        supported = found is not None and found.publication_level != "no-claim"
        return found if found is not None and supported and found.claim.subjects == (high, low) else None

    @cached_property
    def main(self) -> str:
        """The score that is meant where none is named."""
        scores = [
            verdict.claim.dimension for verdict in self.verdicts if verdict.claim.id.startswith(("first[", "above["))
        ]
        return AGGREGATE if AGGREGATE in scores or not scores else scores[0]

    def score(self, name: str) -> str:
        """The score that a reading calls the overall one, or by its name."""
        return self.main if name == AGGREGATE else name

    def words(self, score: str) -> str:
        """How a sentence calls a score: a board of a benchmark as its statements do."""
        for verdict in self.verdicts:
            claim = verdict.claim
            if claim.scope == "benchmark" and claim.dimension == score and claim.id.startswith("above["):
                return claim.statement.partition(f"above {claim.subjects[1]} on ")[2].rstrip(".") or measure_words(
                    score
                )
        return measure_words(score)

    # --- rulings ---

    def rule(self, relation: Relation, score: str) -> Ruling:
        """What the run says to one relation on one score."""
        agents, stance = relation.left, relation.stance
        if relation.kind == "above":
            each = [self._above(*pair, score, stance) for pair in product(relation.left, relation.right)]
        elif relation.kind in ("level", "differ"):
            pairs = product(relation.left, relation.right) if relation.right else combinations(relation.left, 2)
            wants_level = (relation.kind == "level") != (stance == "denied")
            each = [self._level(*pair, score, wants_level, relation) for pair in pairs]
        elif relation.kind == "first" and len(agents) > 1 and stance == "asserted":
            rest = [one for one in self.names.agents if one not in agents]
            each = [self._above(*pair, score, stance) for pair in product(agents, rest)]
        elif relation.kind == "rank":
            each = [self._rank(agent, relation.rank, score, stance) for agent in agents]
        else:
            rule = self._first if relation.kind == "first" else self._last
            each = [rule(agent, score, stance) for agent in agents]
        mark = min((one.mark for one in each), key=WORST.index, default="x")
        worst = next((one for one in each if one.mark == mark), Ruling("x"))
        return replace(worst, by=_each(v for one in each for v in one.by) if mark in "x/" else worst.by)

    def _supported(self, *verdicts: Verdict) -> Ruling:
        marks = [MARKS[verdict.publication_level] for verdict in verdicts]
        return Ruling(min(marks, key=WORST.index), "", verdicts)

    def _against(self, verdict: Verdict) -> Ruling:
        return Ruling("!", "the run supports the opposite", (verdict,))

    def _above(self, high: str, low: str, score: str, stance: str) -> Ruling:
        same, opposite = self.above(high, low, score), self.above(low, high, score)
        if stance == "not shown":
            return Ruling("x") if same is None else self._against(same)
        if stance == "denied":
            same, opposite = opposite, same
        if same is not None:
            return self._supported(same)
        if opposite is not None:
            return self._against(opposite)
        return self._undecided(self._find("above", score, high, low), (high, low), score)

    def _level(self, one: str, other: str, score: str, wants_level: bool, relation: Relation) -> Ruling:
        order = self.above(one, other, score) or self.above(other, one, score)
        within = self._find("within", score, one, other)
        close = within is not None and within.publication_level != "no-claim"
        if relation.stance == "not shown":
            return Ruling("x") if order is None else self._against(order)
        if not wants_level:
            if order is not None:
                return self._supported(order)
            if within is not None and close and relation.kind == "level":
                return self._against(within)
            return self._undecided(self._find("above", score, one, other), (one, other), score)
        if within is not None and close:
            return self._supported(within)
        if order is not None:
            return self._against(order)
        if within is None and self._find("above", score, one, other) is not None:
            return Ruling("-", f"that agents score alike was not tested on {self.words(score)}")
        return self._undecided(within, (one, other), score)

    def _first(self, agent: str, score: str, stance: str) -> Ruling:
        mine = self._find("first", score, agent)
        others = [one for one in self.names.agents if one != agent]
        ahead = [found for other in others if (found := self.above(other, agent, score))]
        leads = [found for other in others if (found := self.above(agent, other, score))]
        first = mine is not None and mine.publication_level != "no-claim"
        by = (mine,) if mine is not None and first else tuple(leads)
        holds = first or (mine is None and bool(others) and len(leads) == len(others))
        if stance == "not shown":
            return self._against(by[0]) if holds else Ruling("x")
        if stance == "denied":
            if holds:
                return self._against(by[0])
            if ahead:
                return self._supported(min(ahead, key=lambda one: one.publication_level != "headline"))
            return self._undecided(mine, (agent,), score)
        if holds:
            return self._supported(*by)
        if ahead:
            winner = next(
                (
                    v
                    for other in others
                    if (v := self._find("first", score, other)) and v.publication_level != "no-claim"
                ),
                None,
            )
            return self._against(winner or ahead[0])
        return self._undecided(mine, (agent,), score)

    def _last(self, agent: str, score: str, stance: str) -> Ruling:
        others = [one for one in self.names.agents if one != agent]
        above = [found for other in others if (found := self.above(other, agent, score))]
        below = [found for other in others if (found := self.above(agent, other, score))]
        holds = bool(others) and len(above) == len(others)
        if stance != "asserted":
            if holds:
                return self._against(above[0])
            if below or stance == "not shown":
                return self._supported(below[0]) if below and stance == "denied" else Ruling("x")
        elif holds:
            return self._supported(*above)
        elif below:
            return self._against(below[0])
        return self._undecided(None, (agent,), score)

    def _rank(self, agent: str, rank: int, score: str, stance: str) -> Ruling:
        best, worst = self.ranks.get(score, {}).get(agent, (1, len(self.names.agents)))
        by = [
            self.above(*pair, score)
            for one in self.names.agents
            for pair in ((one, agent), (agent, one))
            if one != agent
        ]
        found = tuple(one for one in by if one is not None)
        span = f"{agent} can rank from {best} to {worst}" if best < worst else f"{agent} ranks {best}"
        if stance == "not shown":
            return Ruling("!", span) if best == worst == rank else Ruling("x")
        if not best <= rank <= worst:
            return self._supported(*found) if stance == "denied" else Ruling("!", span, found[:1])
        if best == worst:
            return Ruling("!", span, found[:1]) if stance == "denied" else self._supported(*found)
        return Ruling("-", span)

    def _undecided(self, verdict: Verdict | None, agents: Sequence[str], score: str) -> Ruling:
        if verdict is not None:
            return Ruling("-", why_not(verdict))
        if any(one.claim.dimension == score for one in self.verdicts):
            return Ruling("-", f"the orders that this needs on {self.words(score)} are not all supported")
        return Ruling("?", f"nothing was decided about {listing(sorted(agents))} on {self.words(score)}")

    # --- the nearest sentence ---

    def nearest(self, relation: Relation, score: str) -> tuple[str, tuple[str, ...]]:
        """The supported sentence that is nearest to a relation, and its conditions; empty if there is none."""
        for where in dict.fromkeys((score, self.main)):
            if found := self._nearest(relation, where):
                if len(found) == 1:
                    return said(found[0]), conditions_of(found)
                highs, lows = (list(dict.fromkeys(one.claim.subjects[at] for one in found)) for at in (0, 1))
                verb = "scores" if len(highs) == 1 else "score"
                joined = f"{listing(highs)} {verb} above {listing(lows)} on {self.words(where)}."
                return joined, conditions_of(found)
        named = sorted({*relation.left, *relation.right})
        if len(named) > 1 and self._find("above", score, *named[:2]):
            return f"This study does not rank {listing(named)} on {self.words(score)}.", ()
        return "", ()

    def _nearest(self, relation: Relation, score: str) -> list[Verdict]:
        agents = relation.left
        if relation.right or len(agents) > 1:
            pairs = list(product(agents, relation.right) if relation.right else combinations(agents, 2))
            orders = [self.above(*pair, score) or self.above(*pair[::-1], score) for pair in pairs]
            if all(orders):
                return [order for order in orders if order is not None][:1] if len(pairs) > 1 else [orders[0]]  # type: ignore[list-item]
            within = self._find("within", score, *pairs[0]) if len(pairs) == 1 else None
            return [within] if within is not None and within.publication_level != "no-claim" else []
        agent, others = agents[0], [one for one in self.names.agents if one != agents[0]]
        first = self._find("first", score, agent)
        if first is not None and first.publication_level != "no-claim":
            return [first]
        below = [found for other in others if (found := self.above(agent, other, score))]
        above = [found for other in others if (found := self.above(other, agent, score))]
        return above or below if relation.kind == "last" else below or above

    def gap(self, relation: Relation, score: str) -> Measurement | None:
        """The difference of a supported order; of a first rank the smallest."""
        others = relation.right or tuple(agent for agent in self.names.agents if agent not in relation.left)
        pairs = list(product(relation.left, others))
        found = [
            item
            for one, other in pairs
            for high, low in ((one, other), (other, one))
            if self.above(high, low, score)
            and (
                item := self.measurements.get(
                    measurement_id("contrast", {"dimension": score, "high": high, "low": low})
                )
            )
            and item.value is not None
        ]
        return min(found, key=lambda item: abs(item.value or 0.0), default=None)


def statement_key(text: str) -> str:
    """A sentence without case and signs."""
    return " ".join(re.findall(r"\w+", text.casefold()))


def said(verdict: Verdict) -> str:
    """The sentence of a supported verdict, as it is set."""
    return prose(verdict.claim.statement, 400)


def why_not(verdict: Verdict) -> str:
    """The reason that a claim is not supported, without its direction: the one of the field that decided its level."""
    reasons = [
        reason
        for reason in verdict.reasons
        if reason and reason != NOT_PREREGISTERED and not reason.startswith("Amended")
    ]
    agreed = bool(reasons) and reasons[0].startswith("The judges agree") and "agreement" not in verdict.binding
    at = int(agreed and verdict.agreement_status != "halt" and len(reasons) > 1)
    if at and "stability" not in verdict.binding:
        at = -1
    text = prose(reasons[at] if reasons else "no reason is recorded", 300).partition(". ")[0]
    return (text[:1].lower() + text[1:] if text[1:2].islower() else text).rstrip(".")


def _each(verdicts: Iterable[Verdict]) -> tuple[Verdict, ...]:
    """Each verdict once: they cannot be hashed."""
    return tuple({verdict.claim.id: verdict for verdict in verdicts}.values())


# --- sentences --------------------------------------------------------------------------------------------------------


def proofread_sentence(
    sentence: str, run: Decided, following: Sequence[str] = (), before: Sequence[str] = ()
) -> Finding | None:
    """What a run says to one sentence; None if it compares no agent and quotes no number of the run.

    A condition counts as stated if the sentence or ``following``, the sentences behind it, have most of its words.
    """
    if statement_key(sentence) in run.stated_conditions:
        return None
    if (verbatim := run.by_statement.get(statement_key(sentence))) is not None:
        stated = verbatim.publication_level
        lacking = tuple(one for one in conditions_of((verbatim,)) if not is_stated(one, [sentence, *following]))
        mark = MARKS[stated] if lacking or stated != "qualified" else "x"
        return Finding(mark, why_not(verbatim) if stated == "no-claim" else "", add=lacking, level=stated)
    reading = read_sentence(sentence, run.names, before)
    if reading is None:
        return _numbers(sentence, run)
    own = " ".join(run.words(score) for score in run.names.scores).casefold()
    if reading.foreign and reading.foreign.casefold() not in own:
        return Finding("?", f"nothing in this run measures {_quoted(reading.foreign)}")
    if not reading.relations:
        what = (
            f"{_quoted(reading.others)} is not in this run" if reading.others else f"cannot be read: {reading.unclear}"
        )
        return Finding("?", what)
    scores = [run.score(one) for one in reading.scores]
    ruled = [(relation, score, run.rule(relation, score)) for relation in reading.relations for score in scores]
    relation, score, ruling = min(ruled, key=lambda one: WORST.index(one[2].mark))
    mark, why = _details(reading, relation, score, ruling, run)
    if mark in ("x", "/"):
        by = _each(v for _, _, one in ruled for v in one.by)
        lacking = tuple(one for one in conditions_of(by) if not is_stated(one, [sentence, *following]))
        level: Level = "qualified" if any(one.publication_level == "qualified" for one in by) else "headline"
        if reading.others:
            return Finding("?", f"{_quoted(reading.others)} is not in this run", level=level)
        return Finding("/" if lacking else "x", why, add=lacking, level=level)
    if mark == "?":
        return Finding(mark, why)
    write, also = run.nearest(relation, score)
    if mark == "!" and ruling.mark == "!" and ruling.by:
        write, also = said(ruling.by[0]), conditions_of(ruling.by[:1])
    return Finding(mark, why, write=write, also=also, level="no-claim")


def _quoted(words: str) -> str:
    return f"“{prose(words, 60)}”"


def _details(reading: Reading, relation: Relation, score: str, ruling: Ruling, run: Decided) -> tuple[Mark, str]:
    """The mark of a relation with what the sentence says beside it: outcomes, test, p-value, size, reach."""
    mark, why = ruling.mark, ruling.why
    if reading.outcome:
        scores = "scores for reasoning" if run.judged else "scores"
        return "-", f"the run compares {scores}, not {_quoted(reading.outcome)}"
    if relation.stance != "asserted":
        return mark, why
    tests = [
        verdict
        for verdict in run.verdicts
        if verdict.claim.dimension == score and set(verdict.claim.subjects) == {*relation.left, *relation.right}
    ]
    test = next((one for one in tests if one.claim.id.startswith(("above[", "first["))), None)
    if (
        reading.significant
        and mark == "-"
        and test is not None
        and (test.p_adjusted or 0.0) >= 0.05
        and "own_family" not in test.binding
    ):
        return "!", f"the test is not significant ({p_words(test.p_adjusted or 0.0)} adjusted)"
    if mark not in ("x", "/") or relation.kind not in ("above", "first"):
        return mark, why
    if reading.significant and any(condition.id == "not-tested" for one in ruling.by for condition in one.conditions):
        return "-", "significance was not tested in this run"
    largest = max((one.p_adjusted or 0.0 for one in ruling.by), default=0.0)
    if reading.p is not None and largest > reading.p:
        return "!", f"the number differs: adjusted {p_words(largest)}"
    if reading.share:
        return "-", f"the run measures differences in points; it cannot check {_quoted(reading.share)}"
    if reading.sweeping:
        clusters = f"{run.counts['clusters']} clusters" if "clusters" in run.counts else "records"
        return "-", f"the run covers its own {clusters}, not {_quoted(reading.sweeping)}"
    item = run.gap(relation, score) if reading.gap is not None else None
    if item is not None and item.value is not None and reading.gap is not None:
        low, high = sorted(
            (item.low if item.low is not None else item.value, item.high if item.high is not None else item.value)
        )
        step = 0.5 * 10 ** -len(f"{reading.gap:g}".partition(".")[2])
        if not low - step <= reading.gap <= high + step:
            return (
                "!",
                f"the number differs: the difference is {signed(item.value)}{interval_words(item.low, item.high)}",
            )
        why = f"the difference is {signed(item.value)}{interval_words(item.low, item.high)}"
    return mark, why


_WORDS: Final = re.compile(r"[^\W_]+(?:\.\d+)?")
_NEGATIVE: Final = frozenset(("no", "not", "never", "nothing", "without", "none", "hardly", "only"))


def is_stated(condition: str, sentences: Sequence[str]) -> bool:
    """Whether a condition is said in these sentences: six in ten of its words, and a negation if it has one.

    It is looked for in as many sentences one after the other as it has itself.
    """
    words = _WORDS.findall(condition.casefold())
    wanted = {_stem(word) for word in words if len(word) > 3 or word[0].isdigit()}
    negative = bool(_NEGATIVE.intersection(words))
    for at in range(len(sentences)):
        there = _WORDS.findall(" ".join(sentences[at : at + 1 + condition.count(". ")]).casefold())
        said = len(wanted.intersection(map(_stem, there))) >= 0.6 * len(wanted)
        if said and (not negative or _NEGATIVE.intersection(there)):
            return True
    return False


def _stem(word: str) -> str:
    return re.sub(r"(?:ing|ed|es|s)$", "", word) if len(word) > 4 else word


# --- numbers of the run -----------------------------------------------------------------------------------------------

_KAPPA: Final = re.compile(
    r"(?:\bkappa|κ|\bicc|\bintraclass correlation|\b(?:mean |pairwise |inter-?(?:judge|rater) |judges?'? )?agreement)\b"
    r"(?:(?!least|above|below|over|under|cut|minimum|threshold|limit)[^.;?]){0,40}?"
    r"(?P<k>-?(?:0|1)?\.\d{1,4})(?!\d|\s?%| needed| required)",
    re.I,
)
_PEOPLE: Final = re.compile(r"\b(?:human|people|expert|annotator|person)s?\b", re.I)
_NUMERALS: Final = {count_words(n): n for n in range(1, 13)}
_SAME: Final = {
    "models": "agents", "systems": "agents", "rationales": "decisions", "regimes": "clusters", "criteria": "dimensions",
    "items": "cycles", "questions": "cycles", **{one: one for one in COUNTS},
}  # fmt: skip
_COUNTED: Final = re.compile(
    rf"\b(?P<n>\d[\d,]{{0,9}}|{'|'.join(_NUMERALS)}) (?:\w{{1,12}} )?(?P<noun>{'|'.join(_SAME)})\b", re.I
)


def _numbers(sentence: str, run: Decided) -> Finding | None:
    """Agreement and sizes of the run that a sentence quotes."""
    text = sentence.replace("−", "-")
    found: list[Finding] = []
    if sentence.rstrip("\"')*_”’ ").endswith("?"):
        return None
    if (quoted := _KAPPA.search(text)) and not _PEOPLE.search(text):
        scores = [
            score for score in run.names.scores if re.search(rf"\b{re.escape(score.replace('_', ' '))}\b", text, re.I)
        ]
        score = run.score(scores[0] if scores else AGGREGATE)
        names = (measurement_id("kappa.mean_pairwise", {"dimension": score}), "season.kappa[]")
        item = next((run.measurements[name] for name in names if name in run.measurements), None)
        if item is not None and item.value is not None:
            digits = len(quoted["k"].partition(".")[2])
            ends = "" if item.low is None or item.high is None else f" ({number(item.low)} to {number(item.high)})"
            same = abs(round(item.value, digits) - float(quoted["k"])) < 1e-9
            where = "" if score == run.main else f" on {run.words(score)}"
            kind = "the intraclass correlation" if "intraclass" in item.method else "kappa"
            words = f"{kind} is {number(item.value)}{ends}{where}"
            found.append(Finding("x" if same else "!", words if same else f"the number differs: {words}", "number"))
    counted = [
        (one["noun"].lower(), run.counts[of], _NUMERALS.get(one["n"].lower()) or int(one["n"].replace(",", "")))
        for one in _COUNTED.finditer(text)
        if (of := _SAME[one["noun"].lower()]) in run.counts
    ]
    wrong = [(noun, size) for noun, size, quote in counted if size != quote]
    other = len(counted) > 1 and len(wrong) == len(counted)  # with nothing in common it is about another study
    found = [] if other else found
    if len(counted) > 1 and (not wrong or len(counted) - len(wrong) > 1):
        words = listing([f"{size:,} {noun}" for noun, size in wrong or [(noun, size) for noun, size, _ in counted]])
        found.append(Finding("!" if wrong else "x", f"the number differs: {words}" if wrong else words, "number"))
    return min(found, key=lambda one: WORST.index(one.mark), default=None)


GRAMMAR: Final = "A > B, A < B, A ~ B or A first, with “on SCORE” if it is not the overall score, or the id of a claim"

_CLAIM: Final = re.compile(
    r"(?P<a>.{1,200}?)\s*(?:(?P<op>[<>~≈])|\b(?P<word>above|below|beats)\b)\s*(?P<b>.{1,200})", re.S
)
_FIRST_CLAIM: Final = re.compile(r"(?P<a>.{1,200}?)\s+(?:ranks\s+)?first", re.S)


def parse_claim(text: str, run: Decided) -> tuple[Relation, str]:
    """The relation and the score of a claim in `GRAMMAR`, or of the id of a claim in ``verdicts.json``."""
    text = " ".join(text.split())
    for verdict in run.verdicts:
        head = verdict.claim.id.partition("[")[0]
        if text == verdict.claim.id and head in ("above", "first", "within"):
            kind: Literal["above", "first", "level"] = {"above": "above", "first": "first", "within": "level"}[head]  # type: ignore[assignment]
            subjects = verdict.claim.subjects
            return Relation(kind, subjects[:1], subjects[1:]), verdict.claim.dimension
    head, on, where = text.rpartition(" on ")
    body, scored = (head, where) if on else (text, "")
    known = [one.replace("_", " ") for one in run.names.scores]
    found = _CLAIM.fullmatch(body) or _FIRST_CLAIM.fullmatch(body)
    if found is None:
        raise InputError("--claim", [Problem("", f"must be {GRAMMAR} (got {text!r:.120})")])
    score = run.names.find_score(scored) if scored else AGGREGATE
    if score is None:
        raise UnknownNameError("score", scored, ("the overall score", *known))
    agents = list[str]()
    for name in (found[part] for part in ("a", "b") if part in found.re.groupindex):
        plain = " ".join(name.strip(" '\"").split())
        near = [agent for agent in run.names.agents if agent == plain]
        near = near or [agent for agent in run.names.agents if agent.casefold() == plain.casefold()]
        if not near and (alias := run.names.by_key.get(name_key(plain))):
            near = [alias]
        if not near:
            raise UnknownNameError("agent", plain, run.names.agents)
        agents.append(near[0])
    if len(set(agents)) < len(agents):
        raise InputError("--claim", [Problem("", f"names one agent twice ({agents[0]})")])
    if len(agents) == 1:
        return Relation("first", (agents[0],)), run.score(score)
    sign = found["op"] or {"above": ">", "beats": ">", "below": "<"}[found["word"]]
    if sign in "~≈":
        return Relation("level", (agents[0],), (agents[1],)), run.score(score)
    high, low = agents if sign == ">" else agents[::-1]
    return Relation("above", (high,), (low,)), run.score(score)


@dataclass(frozen=True, slots=True)
class Gated:
    """A claim against the level that was asked for."""

    passed: bool
    mark: Mark
    level: Level
    sentence: str
    why: str
    conditions: tuple[str, ...]


def gate_claim(text: str, run: Decided, at_least: Level = "headline") -> Gated:
    """Whether a run supports a claim at a level; an unsupported claim is named without its direction."""
    named = next(
        (verdict for verdict in run.verdicts if text.strip() == verdict.claim.id), None
    ) or run.by_statement.get(statement_key(text))
    if named is not None and not named.claim.id.startswith(("above[", "first[", "within[")):
        reached = named.publication_level
        if reached == "no-claim":
            return Gated(False, "-", reached, f"The claim {named.claim.id}.", why_not(named), ())
        conditions = tuple(one.text for one in named.conditions)
        return Gated(reached in ("headline", at_least), MARKS[reached], reached, said(named), "", conditions)
    relation, score = parse_claim(named.claim.id if named is not None else text, run)
    ruling = run.rule(relation, score)
    if ruling.mark not in ("x", "/"):
        names, where = sorted({*relation.left, *relation.right}), run.words(score)
        about = {"first": f"A first rank for {listing(names)}", "level": f"That {listing(names)} score alike"}
        sentence = f"{about.get(relation.kind, f'Any ranking of {listing(names)}')} on {where}."
        why = f"the run supports “{said(ruling.by[0])}”" if ruling.mark == "!" and ruling.by else ruling.why
        return Gated(False, ruling.mark, "no-claim", sentence, why, ())
    level: Level = "headline" if ruling.mark == "x" else "qualified"
    conditions = tuple(condition.text for one in ruling.by for condition in one.conditions)
    sentence = " ".join(said(one) for one in ruling.by)
    passed = level == "headline" or at_least == "qualified"
    return Gated(passed, ruling.mark, level, sentence, "", tuple(dict.fromkeys(conditions)))
