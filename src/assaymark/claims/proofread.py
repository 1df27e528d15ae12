"""Check sentences and claims against the verdicts of a run: supported, qualified, unsupported or contradicted."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import cached_property
from itertools import combinations, product
from typing import Final, Literal

from assaymark.claims.messages import ends_words, interval_words, listing, measure_words, number, p_words, signed
from assaymark.claims.sentences import (
    LONGEST,
    NUMERALS,
    TABLE,
    ParsedSentence,
    Relation,
    RunNames,
    pattern,
    read_sentence,
)
from assaymark.plan import NOT_PREREGISTERED
from assaymark.records import AGGREGATE, Level, Measurement, Verdict, measurement_id
from assaymark.text import prose

Mark = Literal["x", "/", "-", "!", "?"]
"""Supported (x), only with its condition (/), not supported (-), contradicted (!), undecided or unreadable (?)."""

HEADS: Final[Mapping[str, Literal["above", "first", "level"]]] = {"above": "above", "first": "first", "within": "level"}
WORST: Final[tuple[Mark, ...]] = ("!", "-", "/", "?", "x")
MARKS: Final[Mapping[Level, Mark]] = {"headline": "x", "qualified": "/", "no-claim": "-"}
"""The mark of each level."""


Ruling = tuple[Mark, str, tuple[Verdict, ...]]
"""Result for one relation: its mark, the reason, and the verdicts behind it."""


@dataclass(frozen=True, slots=True)
class TextCheck:
    """Result for one sentence: its mark, the reason, the conditions to ``add``, and a supported sentence to ``write``.

    ``also`` are the conditions of that sentence. ``about`` is a comparison of agents or a number of the run.
    """

    mark: Mark
    why: str
    about: Literal["comparison", "number"] = "comparison"
    add: tuple[str, ...] = ()
    write: str = ""
    also: tuple[str, ...] = ()
    level: Level | None = None


def conditions_of(verdicts: Iterable[Verdict]) -> tuple[str, ...]:
    """Return the distinct conditions of several verdicts."""
    qualified = (verdict for verdict in verdicts if verdict.publication_level == "qualified")
    return tuple(dict.fromkeys(condition.text for verdict in qualified for condition in verdict.conditions))


def _supported(*verdicts: Verdict) -> Ruling:
    return min((MARKS[verdict.publication_level] for verdict in verdicts), key=WORST.index), "", verdicts


_OPPOSITE: Final = "the run supports the opposite"
_OPEN: Final[Ruling] = ("x", "", ())  # the sentence says that no order is shown, and none is


@dataclass(frozen=True)
class RunVerdicts:
    """Index of the verdicts of one run; ``counts`` has its sizes by plural noun, such as ``judges``."""

    names: RunNames
    verdicts: tuple[Verdict, ...]
    measurements: Mapping[str, Measurement]
    ranks: Mapping[str, Mapping[str, tuple[int, int]]]
    counts: Mapping[str, int]
    judged: bool = True

    @cached_property
    def _pairs(self) -> Mapping[tuple[str, str, frozenset[str]], Verdict]:
        claims = ((verdict.claim.id.partition("[")[0], verdict.claim, verdict) for verdict in self.verdicts)
        orders = ((head, claim, verdict) for head, claim, verdict in claims if head in HEADS)
        return {(head, claim.dimension, frozenset(claim.subjects)): verdict for head, claim, verdict in orders}

    @cached_property
    def by_statement(self) -> Mapping[str, Verdict]:
        """Verdicts by statement: all supported ones, and unsupported ones that do not rank agents."""
        return {
            statement_key(verdict.claim.statement): verdict
            for verdict in self.verdicts
            if verdict.publication_level != "no-claim" or verdict.claim.id.partition("[")[0] not in HEADS
        }

    @cached_property
    def forms(self) -> tuple[tuple[list[str], Verdict], ...]:
        """Verdicts on anything but orders of agents, each with the form of its statement."""
        others = (one for one in self.verdicts if one.claim.id.partition("[")[0] not in HEADS)
        return tuple((_sentence_form(one.claim.statement, self.names), one) for one in others)

    @cached_property
    def vocabulary(self) -> frozenset[str]:
        """All words of `forms`."""
        return frozenset(word for form, _ in self.forms for word in form)

    @cached_property
    def stated_conditions(self) -> frozenset[str]:
        """Sentences of all conditions, which mention agents but are not claims."""
        texts = (condition.text for verdict in self.verdicts for condition in verdict.conditions)
        return frozenset(statement_key(part) for text in texts for part in re.split(r"(?<=[.!?])\s", text))

    def _find(self, head: str, score: str, *agents: str) -> Verdict | None:
        return self._pairs.get((head, score, frozenset(agents)))

    def _holds(self, head: str, score: str, *agents: str) -> Verdict | None:
        """Return the verdict of a claim if it is supported."""
        verdict = self._find(head, score, *agents)
        return None if verdict is None or verdict.publication_level == "no-claim" else verdict

    def above(self, high: str, low: str, score: str) -> Verdict | None:
        """Return the supported verdict that ranks ``high`` above ``low``, if any."""
        verdict = self._holds("above", score, high, low)
        return verdict if verdict is not None and verdict.claim.subjects == (high, low) else None

    def _neighbours(self, agent: str, score: str) -> tuple[list[str], list[Verdict], list[Verdict]]:
        """Return the other agents, the verdicts that rank one above ``agent``, and those that rank it above one."""
        others = [other for other in self.names.agents if other != agent]
        over = [verdict for other in others if (verdict := self.above(other, agent, score))]
        return others, over, [verdict for other in others if (verdict := self.above(agent, other, score))]

    @cached_property
    def main(self) -> str:
        """The default score of sentences that name none."""
        claims = (verdict.claim for verdict in self.verdicts)
        scores = [claim.dimension for claim in claims if claim.id.startswith(("first[", "above["))]
        return AGGREGATE if AGGREGATE in scores or not scores else scores[0]

    def score(self, name: str) -> str:
        """Resolve a score name of a parsed sentence; the overall score is `main`."""
        return self.main if name == AGGREGATE else name

    def words(self, score: str) -> str:
        """Return the phrase for a score; a benchmark's board is named as in its statements."""
        for claim in (verdict.claim for verdict in self.verdicts):
            if claim.scope == "benchmark" and claim.dimension == score and claim.id.startswith("above["):
                named = claim.statement.partition(f"above {claim.subjects[1]} on ")[2].rstrip(".")
                return named or measure_words(score)
        return measure_words(score)

    # --- rulings ---

    def rule(self, relation: Relation, score: str) -> Ruling:
        """Return the result for one relation on one score, the worst over its pairs."""
        agents, stance = relation.left, relation.stance
        if relation.kind == "above":
            each = [self._above(*pair, score, stance) for pair in product(relation.left, relation.right)]
        elif relation.kind in ("level", "differ"):
            pairs = product(relation.left, relation.right) if relation.right else combinations(relation.left, 2)
            wants_level = (relation.kind == "level") != (stance == "denied")
            each = [self._level(*pair, score, wants_level, relation) for pair in pairs]
        elif relation.kind == "first" and len(agents) > 1 and stance == "asserted":
            rest = [agent for agent in self.names.agents if agent not in agents]
            each = [self._above(*pair, score, stance) for pair in product(agents, rest)]
        elif relation.kind == "rank":
            each = [self._rank(agent, relation.rank, score, stance) for agent in agents]
        elif relation.kind == "first":
            each = [self._first(agent, score, stance) for agent in agents]
        else:  # last
            around = [(agent, *self._neighbours(agent, score)) for agent in agents]
            each = [
                self._weigh(stance, above if len(above) == len(others) else [], below[:1], None, (agent,), score)
                for agent, others, above, below in around
            ]
        mark, reason, by = min(each, key=lambda ruling: WORST.index(ruling[0]), default=_OPEN)
        return mark, reason, _distinct(verdict for _, _, some in each for verdict in some) if mark in "x/" else by

    def _weigh(
        self, stance: str, same: Sequence[Verdict | None], opposite: Sequence[Verdict | None],
        tested: Verdict | None, agents: Sequence[str], score: str,
    ) -> Ruling:  # fmt: skip
        """Rule on a relation from the supported verdicts that state the ``same`` and the ``opposite``, if any."""
        found, other = ([verdict for verdict in some if verdict is not None] for some in (same, opposite))
        if stance == "not shown":
            return ("!", _OPPOSITE, (found[0],)) if found else _OPEN
        if stance == "denied":
            found, other = other, found
        if found:
            return _supported(*found)
        if other:
            return "!", _OPPOSITE, (other[0],)
        if tested is not None:
            return "-", rejection_reason(tested), ()
        if any(verdict.claim.dimension == score for verdict in self.verdicts):
            return "-", f"the rankings that this needs on {self.words(score)} are not all supported", ()
        return "?", f"nothing was decided about {listing(sorted(agents))} on {self.words(score)}", ()

    def _above(self, high: str, low: str, score: str, stance: str) -> Ruling:
        same, opposite = self.above(high, low, score), self.above(low, high, score)
        return self._weigh(stance, [same], [opposite], self._find("above", score, high, low), (high, low), score)

    def _level(self, first: str, other: str, score: str, wants_level: bool, relation: Relation) -> Ruling:
        pair, order = (first, other), self.above(first, other, score) or self.above(other, first, score)
        within, close = self._find("within", score, *pair), self._holds("within", score, *pair)
        tested = self._find("above", score, *pair)
        if relation.stance == "not shown":
            return self._weigh("not shown", [order], [], tested, pair, score)
        if not wants_level:
            opposite = close if relation.kind == "level" else None
            return self._weigh("asserted", [order], [opposite], tested, pair, score)
        if close is None and order is None and within is None and tested is not None:
            return "-", f"that agents score alike was not tested on {self.words(score)}", ()
        return self._weigh("asserted", [close], [order], within, pair, score)

    def _first(self, agent: str, score: str, stance: str) -> Ruling:
        own_verdict, first = self._find("first", score, agent), self._holds("first", score, agent)
        others, ahead, leads = self._neighbours(agent, score)
        same = leads if own_verdict is None and len(leads) == len(others) else []
        opposite = sorted(ahead, key=lambda verdict: verdict.publication_level != "headline")[:1]
        if stance != "denied":
            winners = (verdict for other in others if (verdict := self._holds("first", score, other)))
            opposite = [next(winners, verdict) for verdict in ahead[:1]]
        return self._weigh(stance, same if first is None else [first], opposite, own_verdict, (agent,), score)

    def _rank(self, agent: str, rank: int, score: str, stance: str) -> Ruling:
        best, worst = self.ranks.get(score, {}).get(agent, (1, len(self.names.agents)))
        pairs = [pair for other in self.names.agents if other != agent for pair in ((other, agent), (agent, other))]
        by = tuple(verdict for pair in pairs if (verdict := self.above(*pair, score)) is not None)
        span = f"{agent} can rank from {best} to {worst}" if best < worst else f"{agent} ranks {best}"
        if stance == "not shown":
            return ("!", span, ()) if best == worst == rank else _OPEN
        if not best <= rank <= worst:
            return _supported(*by) if stance == "denied" else ("!", span, by[:1])
        if best == worst:
            return ("!", span, by[:1]) if stance == "denied" else _supported(*by)
        return "-", span, ()

    # --- the nearest sentence ---

    def nearest(self, relation: Relation, score: str) -> tuple[str, tuple[str, ...]]:
        """Return the supported sentence that is closest to a relation, and its conditions; empty if there is none."""
        for name in dict.fromkeys((score, self.main)):
            if verdicts := self._nearest(relation, name):
                if len(verdicts) == 1:
                    return claim_text(verdicts[0]), conditions_of(verdicts)
                highs, lows = (list(dict.fromkeys(verdict.claim.subjects[at] for verdict in verdicts)) for at in (0, 1))
                verb = "scores" if len(highs) == 1 else "score"
                joined = f"{listing(highs)} {verb} above {listing(lows)} on {self.words(name)}."
                return joined, conditions_of(verdicts)
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
                return [order for order in orders if order is not None][:1]
            within = self._holds("within", score, *pairs[0]) if len(pairs) == 1 else None
            return [] if within is None else [within]
        if (first := self._holds("first", score, agents[0])) is not None:
            return [first]
        _, above, below = self._neighbours(agents[0], score)
        return above or below if relation.kind == "last" else below or above

    def check_level(self, agent: str, quoted: str, name: str) -> TextCheck | None:
        """Check the score that a sentence gives an agent; None if this run has none for it."""
        score, key = self.score(name), {"agent": agent}
        ids = (measurement_id("score.effect", key | {"dimension": score}), measurement_id("season.total", key))
        item = next((self.measurements[one] for one in ids if one in self.measurements), None)
        if item is None or item.value is None:
            return None
        best, worst = self.ranks.get(score, {}).get(agent, (1, 0))
        if best == worst:
            words = f"{agent} scores {number(item.value)}{ends_words(item.low, item.high)} on {self.words(score)}"
            return _compared(quoted, item, words)
        found = _compared(quoted, item, f"{agent} cannot be ranked on {self.words(score)}")
        return replace(found, mark="?", why=f"a score alone ranks nobody: {found.why}") if found.mark == "x" else found

    def gap(self, relation: Relation, score: str) -> Measurement | None:
        """Return the contrast of a supported order or level pair; of several, the one with the smallest difference."""
        others = relation.right or tuple(agent for agent in self.names.agents if agent not in relation.left)
        level, contrasts = relation.kind in ("level", "differ"), list[Measurement]()
        pairs = combinations(relation.left, 2) if level and not relation.right else product(relation.left, others)
        for first, other in pairs:
            for high, low in ((first, other), (other, first)):
                name = measurement_id("contrast", {"dimension": score, "high": high, "low": low})
                item = self.measurements.get(name) if level or self.above(high, low, score) else None
                contrasts += [item] if item is not None and item.value is not None else []
        return min(contrasts, key=lambda item: abs(item.value or 0.0), default=None)


def statement_key(text: str) -> str:
    """Normalise a sentence: words and numbers only, case-folded."""
    return " ".join(re.findall(r"-?\d+(?:[.,]\d+)*|\w+", text.casefold().replace("−", "-")))


def claim_text(verdict: Verdict) -> str:
    """Format the statement of a supported verdict."""
    return prose(verdict.claim.statement, 400)


def rejection_reason(verdict: Verdict) -> str:
    """Return the reason of the field that decided an unsupported claim, without the claim's direction."""
    reasons = [one for one in verdict.reasons if one and one != NOT_PREREGISTERED and not one.startswith("Amended")]
    agreed = bool(reasons) and reasons[0].startswith("The judges agree") and "agreement" not in verdict.binding
    at = int(agreed and verdict.agreement_status != "halt" and len(reasons) > 1)
    if at and "stability" not in verdict.binding:
        at = -1
    text = prose(reasons[at] if reasons else "no reason is recorded", 300).partition(". ")[0]
    return (text[:1].lower() + text[1:] if text[1:2].islower() else text).rstrip(".")


def _distinct(verdicts: Iterable[Verdict]) -> tuple[Verdict, ...]:
    """Remove duplicate verdicts by claim id, because verdicts cannot be hashed."""
    return tuple({verdict.claim.id: verdict for verdict in verdicts}.values())


def proofread_sentence(
    sentence: str, run: RunVerdicts, following: Sequence[str] = (), before: Sequence[str] = ()
) -> TextCheck | None:
    """Check one sentence, with conditions also in the ``following``; None if it says nothing about the run."""
    if statement_key(sentence) in run.stated_conditions:
        return None
    if (verbatim := run.by_statement.get(statement_key(sentence))) is not None:
        stated = verbatim.publication_level
        lacking = tuple(text for text in conditions_of((verbatim,)) if not is_stated(text, [sentence, *following]))
        mark = MARKS[stated] if lacking or stated != "qualified" else "x"
        return TextCheck(mark, rejection_reason(verbatim) if stated == "no-claim" else "", add=lacking, level=stated)
    parsed = read_sentence(sentence, run.names, before)
    if parsed is None or not (parsed.relations or parsed.others or parsed.unclear):
        levels = [] if parsed is None else [run.check_level(*level, parsed.scores[0]) for level in parsed.levels]
        checks = [check for check in (*levels, *_numbers(sentence, run)) if check is not None]
        found = _reworded(sentence, run) or min(checks, key=lambda check: WORST.index(check.mark), default=None)
        if parsed is None or found is None or found.mark != "x":
            return found
        mark, reason = _rest(sentence, parsed, None, (found.mark, found.why), run)  # other numbers beside a score
        return TextCheck(mark, reason, "number")
    wording = " ".join(run.words(score) for score in run.names.scores).casefold()
    if parsed.foreign and parsed.foreign.casefold() not in wording:
        return TextCheck("?", f"nothing in this run measures {_quoted(parsed.foreign)}")
    if not parsed.relations:
        if parsed.others:
            return _outsider(sentence, parsed.others, run)
        return TextCheck("?", f"cannot be read: {parsed.unclear}")
    asked = ((relation, score) for relation in parsed.relations for score in relation.scores or parsed.scores)
    ruled = [(relation, run.score(name), run.rule(relation, run.score(name))) for relation, name in asked]
    relation, score, ruling = min(ruled, key=lambda entry: WORST.index(entry[2][0]))
    mark, reason = _mark(parsed, relation, score, ruling, run)
    if mark in ("x", "/"):
        mark, reason = _rest(sentence, parsed, run.gap(relation, score), (mark, reason), run)
    if mark in ("x", "/"):
        by = _distinct(v for _, _, entry in ruled for v in entry[2])
        lacking = tuple(text for text in conditions_of(by) if not is_stated(text, [sentence, *following]))
        level: Level = "qualified" if any(verdict.publication_level == "qualified" for verdict in by) else "headline"
        if parsed.others:
            return replace(_outsider(sentence, parsed.others, run), level=level)
        return TextCheck("/" if lacking else "x", reason, add=lacking, level=level)
    if mark == "?":
        return TextCheck(mark, reason)
    write, also = run.nearest(relation, score)
    if mark == "!" and ruling[0] == "!" and ruling[2]:
        write, also = claim_text(ruling[2][0]), conditions_of(ruling[2][:1])
    return TextCheck(mark, reason, write=write, also=also, level="no-claim")


def _outsider(sentence: str, others: str, run: RunVerdicts) -> TextCheck:
    """Check a comparison with something that is no agent: a baseline that claims of the run name, or not in the run."""
    named = {agent for *_, agent in run.names.mentions(sentence)}
    beats = [
        one for one in run.verdicts
        if one.claim.id.startswith(("beats[", "season.beats["))
        and named.issubset(one.claim.subjects) and statement_key(others) in statement_key(one.claim.statement)
    ]  # fmt: skip
    if beats and pattern("not_ahead").search(sentence):
        return TextCheck("?", f"the run tests only whether an agent is ahead of {_quoted(others)}")
    if supported := [one for one in beats if one.publication_level != "no-claim"]:
        return TextCheck("?", f"the run supports “{claim_text(supported[0])}”")
    absent = f"{_quoted(others)} is not in this run"
    return TextCheck("-", rejection_reason(beats[0])) if beats else TextCheck("?", absent)


def _quoted(words: str) -> str:
    return f"“{prose(words, 60)}”"


def _mark(parsed: ParsedSentence, relation: Relation, score: str, ruling: Ruling, run: RunVerdicts) -> tuple[Mark, str]:
    """Adjust the mark of a relation by the other content of the sentence: outcome, test, p-value, size, scope."""
    mark, reason, by = ruling
    if parsed.outcome:
        scores = "scores for reasoning" if run.judged else "scores"
        return "-", f"the run compares {scores}, not {_quoted(parsed.outcome)}"
    stated = parsed.gap or next((f"{one:g}" for one in (parsed.margin, parsed.p) if one is not None), "")
    if mark == "x" and relation.stance != "asserted" and stated:
        return "?", f"{_quoted(stated)} was not checked"
    if relation.stance != "asserted":
        return mark, reason
    if parsed.significant and mark == "-":
        names = {*relation.left, *relation.right}
        tests = [one for one in run.verdicts if one.claim.dimension == score and {*one.claim.subjects} == names]
        test = next((verdict for verdict in tests if verdict.claim.id.startswith(("above[", "first["))), None)
        if test is not None and (test.p_adjusted or 0.0) >= 0.05 and "own_family" not in test.binding:
            return "!", f"the test is not significant ({p_words(test.p_adjusted or 0.0)} adjusted)"
    if mark not in ("x", "/"):
        return mark, reason
    if parsed.p is not None and (wrong := _wrong_p(parsed.p, parsed.p_sign, relation, score, by, run)):
        return "!", wrong
    level = relation.kind in ("level", "differ")
    if parsed.share:
        return "-", f"the run measures differences in points; it cannot check {_quoted(parsed.share)}"
    untested = any(condition.id == "not-tested" for verdict in by for condition in verdict.conditions)
    if parsed.significant and untested and not level:
        return "-", "significance was not tested in this run"
    if parsed.sweeping and not level:
        clusters = f"{run.counts['clusters']} clusters" if "clusters" in run.counts else "records"
        return "-", f"the run covers its own {clusters}, not {_quoted(parsed.sweeping)}"
    if parsed.margin is not None and relation.kind == "level":
        tested = [float(match[1]) for verdict in by if (match := pattern("within").search(verdict.claim.statement))]
        if tested and max(tested) > parsed.margin + 1e-9:
            return "!", f"the number differs: they score within {max(tested):g} of each other"
    # A size refers to the pair that the sentence names, even if it says more about one of the two.
    named = [one for one in parsed.relations if (one.kind, one.stance) == ("above", "asserted")] or [relation]
    gaps = [item for one in named if (item := run.gap(one, score)) is not None]
    bound = parsed.margin is not None and relation.kind != "level" and not parsed.gap
    if bound or (parsed.gap and not gaps):
        return ("?" if mark == "x" else mark), f"{_quoted(stated)} was not checked"
    if parsed.gap:
        gap, step = float(parsed.gap), _step(parsed.gap)
        item = min(gaps, key=lambda contrast: abs(abs(contrast.value or 0.0) - abs(gap)))
        value, reason = item.value or 0.0, _size_words(item)
        low, high = sorted(value if end is None else end for end in (item.low, item.high))
        # In the interval of the contrast, or its value rounded, in either direction if it names none
        agrees = any(low <= one <= high or abs(one - value) <= step for one in ((gap, -gap) if level else (gap,)))
        if parsed.gap_sign:
            agrees = (abs(value) <= gap + step) if parsed.gap_sign == "<" else (abs(value) >= gap - step)
        return (mark, reason) if agrees else ("!", f"the number differs: {reason}")
    return mark, reason


def _rest(
    sentence: str, parsed: ParsedSentence, item: Measurement | None, ruling: tuple[Mark, str], run: RunVerdicts
) -> tuple[Mark, str]:
    """Check the other numbers of a supported comparison: an interval, scores, kappa, and sizes of the run."""
    levels, agreement = [run.check_level(*one, parsed.scores[0]) for one in parsed.levels], _kappa(sentence, run)
    wrong = [check.why for check in (*levels, agreement) if check is not None and check.mark == "!"]
    wrong += filter(None, [_wrong_size(sentence, run)])
    unread = [n for (_, n), check in zip(parsed.levels, levels, strict=True) if check is None]
    rest = parsed.rest if agreement is None else pattern("kappa").sub(" ", parsed.rest)
    if item is not None:
        confidence, value = pattern("confidence").search(rest), item.value or 0.0
        if confidence and float(confidence[1]) == 100 * (item.level or 0.95):
            rest = rest.replace(confidence[0], " ")
        for match in pattern("interval").finditer(rest):
            ends, step = (float(match["low"]), float(match["high"])), _step(match["high"])
            bounds = zip(ends, (item.low, item.high), strict=True)
            agrees = all(end is not None and abs(n - end) <= step for n, end in bounds)
            agrees = ends[0] - step <= value <= ends[1] + step if match["between"] else agrees
            wrong += [] if agrees else [f"the number differs: {_size_words(item)}"]
        rest = pattern("interval").sub(" ", rest)
    sizes = {run.counts.get(noun, 0) for noun in ("decisions", "cycles", "clusters")}
    sizes.add(run.counts.get("decisions", 0) // max(1, run.counts.get("agents", 1)))
    for match in pattern("counted").finditer(rest):
        known, size = run.counts.get(noun := TABLE["same"][match["noun"].lower()], 0), _size(match["n"])
        if known == size or (noun == "decisions" and size in sizes):
            rest = rest.replace(match[0], " ")
        elif 0 < known < size:
            wrong.append(f"the number differs: {known:,} {match['noun']}")
    scored = statement_key(" ".join(map(run.words, run.names.scores))).split()
    place = re.compile(r"\w+ (?:(?:the|our|all|both|these) )*(\w+)")  # "on CEPS" is a score
    unread += [one for one in parsed.unread if not ((at := place.match(one.casefold())) and at[1] in scored)]
    unread += [n for n in pattern("numeral").findall(rest) if n not in scored]
    unread += [one[0] for one in pattern("times").finditer(rest) if one["in"] and _size(one["n"]) not in sizes]
    if wrong:
        return "!", wrong[0]
    return ("?" if ruling[0] == "x" else ruling[0], f"{_quoted(unread[0])} was not checked") if unread else ruling


def _step(quoted: str) -> float:
    """Return half a unit of the last digit of a number as it is written, and a little."""
    return 0.5 * 10.0 ** -len(quoted.partition(".")[2]) + 1e-9


def _size_words(item: Measurement) -> str:
    return f"the difference is {signed(item.value or 0.0)}{interval_words(item.low, item.high)}"


def _wrong_p(p: float, sign: str, relation: Relation, score: str, by: Sequence[Verdict], run: RunVerdicts) -> str:
    """Return what a stated p-value should be; empty if it agrees, or is at most twice the adjusted one."""
    adjusted = [max((verdict.p_adjusted or 0.0 for verdict in by), default=0.0)]
    if relation.kind == "level":  # the test of the difference may be meant, too
        pair = frozenset((*relation.left, *relation.right))
        named = [one for one in run.verdicts if one.claim.dimension == score and frozenset(one.claim.subjects) == pair]
        adjusted += [one.p_adjusted or 0.0 for one in named if one.claim.id.startswith("above[")]
    if sign in ("<", "<<", "≤", "below", "under"):
        agrees = any(one <= p for one in adjusted)
    elif sign in (">", ">>", "≥", "above", "over"):
        agrees = any(one >= p for one in adjusted)
    else:
        step = _step(f"{p:.9f}".rstrip("0"))
        agrees = any(one - step <= p <= 2 * one + step for one in adjusted)
    return "" if agrees else f"the number differs: adjusted {p_words(adjusted[0])}"


def is_stated(condition: str, sentences: Sequence[str]) -> bool:
    """True if consecutive sentences have 60 % of the words of a condition, and a negation if it has one."""
    texts = (" ".join(sentences[at : at + 1 + condition.count(". ")]) for at in range(len(sentences)))
    # Words of five letters and more without their endings
    words, *each = (
        re.findall(r"[^\W_]+(?:\.\d+)?", re.sub(r"\b(?=\w{5})(\w+?)(?:ing|ed|es|s)\b", r"\1", text.casefold()))
        for text in (condition, *texts)
    )
    stems, negative = {word for word in words if len(word) > 3 or word[0].isdigit()}, pattern("negative").search
    return any(
        len(stems.intersection(there)) >= 0.6 * len(stems)
        and (not negative(" ".join(words)) or negative(" ".join(there)) is not None)
        for there in each
    )


_LIKE: Final = 0.85  # of the words, in order, that a sentence has in common with a claim of which it is a variant


def _sentence_form(text: str, names: RunNames) -> list[str]:
    """Return the words of a sentence, with one sign for every agent and another for every number."""
    for start, end, _ in [*names.mentions(text)][::-1]:
        text = f"{text[:start]}@{text[end:]}"
    words = re.findall(r"@|[+-]?\d[\d.,]*(?=\W|$)|\w+(?:-\w+)*", text.replace("−", "-").casefold())
    return ["#" if word[-1:] == "." or word[:1] in "+-0123456789" or word in NUMERALS else word for word in words]


def _likeness(form: Sequence[str], words: Sequence[str]) -> float:
    """Return the share of words that two forms have in common: in order, or of those of the sentence if it has six."""
    common = (Counter(form) & Counter(words)).total()
    if 2 * common < _LIKE * (len(form) + len(words)):  # no order makes it more
        return common / len(words) if len(words) > 5 else 0.0
    return SequenceMatcher(None, form, words, autojunk=False).ratio()


def _reworded(sentence: str, run: RunVerdicts) -> TextCheck | None:
    """Check a sentence that is a claim of the run but for some words or numbers; None if it is like no claim.

    It is held against the claim of this kind on the agents and the profile, window or baseline that it names.
    """
    if not run.forms or len(sentence) > LONGEST or sentence.rstrip(" \"')*_”’").endswith("?"):
        return None
    words = _sentence_form(sentence, run.names)
    if sum(word in run.vocabulary for word in words) < 0.7 * len(words):  # too few for `_LIKE`
        return None
    share, nearest = max(((_likeness(form, words), one) for form, one in run.forms), key=lambda entry: entry[0])
    if share < _LIKE:
        return None
    named = {agent for *_, agent in run.names.mentions(sentence)}
    head, text = nearest.claim.id.partition("[")[0], sentence.casefold()
    about: list[tuple[float, list[str], Verdict]] = []
    for form, verdict in run.forms:
        kind, _, labels = verdict.claim.id.rstrip("]").partition("[")
        own = {*verdict.claim.subjects}.intersection(run.names.agents)
        said = [label.partition("=")[::2] for label in labels.split(",") if "=" in label]
        where = all(value.casefold() in text for name, value in said if name in ("profile", "window", "baseline"))
        if kind == head and where and named == (set() if len(own) == len(run.names.agents) else own):
            about.append((_likeness(form, words), form, verdict))
    if not about:
        return TextCheck("?", "no claim of this run is in these words")
    _, form, verdict = max(about, key=lambda entry: entry[0])
    if verdict.publication_level == "no-claim":
        return TextCheck("-", rejection_reason(verdict), level="no-claim")
    known, stated = (pattern("any_number").findall(text) for text in (verdict.claim.statement, sentence))
    reason = f"the run supports “{claim_text(verdict)}”"
    differs = not Counter(words) - Counter(form) and Counter(stated) - Counter(known)
    if differs or (known[:1] == stated[:1] and form != words and any(other == words for other, _ in run.forms)):
        reason = f"the number differs: {reason}" if differs else reason
        return TextCheck("!", reason, write=claim_text(verdict), also=conditions_of((verdict,)), level="no-claim")
    return TextCheck("?", reason)


def _size(text: str) -> int:
    return NUMERALS.get(text.lower()) or int(text.replace(",", ""))


def _wrong_size(text: str, run: RunVerdicts) -> str:
    """Return the number of judges or agents that a sentence about the run should state; empty if it is right."""
    for match in pattern("of_the_run").finditer(text):
        about = match["d"] is None or next(run.names.mentions(text), None) is not None
        size = run.counts.get(noun := "agents" if match["c"] else "judges")
        if about and size and size != _size(match["a"] or match["b"] or match["c"] or match["d"]):
            return f"the number differs: {size:,} {noun}"
    return ""


def _kappa(sentence: str, run: RunVerdicts) -> TextCheck | None:
    """Check the agreement of the judges that a sentence quotes, if it quotes one."""
    quoted = pattern("kappa").search(text := sentence.replace("−", "-"))
    if quoted is None or pattern("of_people").search(text):
        return None
    named = (one for one in run.names.scores if re.search(rf"\b{re.escape(one.replace('_', ' '))}\b", text, re.I))
    score = run.score(next(named, AGGREGATE))
    names = (measurement_id("kappa.mean_pairwise", {"dimension": score}), "season.kappa[]")
    item = next((run.measurements[name] for name in names if name in run.measurements), None)
    if item is None or item.value is None:
        return None
    suffix = "" if score == run.main else f" on {run.words(score)}"
    kind = "the intraclass correlation" if "intraclass" in item.method else "kappa"
    return _compared(quoted["k"], item, f"{kind} is {number(item.value)}{ends_words(item.low, item.high)}{suffix}")


def _compared(quoted: str, item: Measurement, words: str) -> TextCheck:
    """Compare a quoted number with a measurement, rounded as it is quoted."""
    same = abs(round(item.value or 0.0, len(quoted.partition(".")[2])) - float(quoted)) < 1e-9
    return TextCheck("x" if same else "!", words if same else f"the number differs: {words}", "number")


def _numbers(sentence: str, run: RunVerdicts) -> list[TextCheck]:
    """Check the agreement and the counts that a sentence quotes."""
    if sentence.rstrip("\"')*_”’ ").endswith("?"):
        return []
    checks = [] if (agreement := _kappa(sentence, run)) is None else [agreement]
    counted = [
        (match["noun"].lower(), run.counts[of], _size(match["n"]))
        for match in pattern("counted").finditer(sentence)
        if (of := TABLE["same"][match["noun"].lower()]) in run.counts
    ]
    wrong = [(noun, size) for noun, size, quote in counted if size != quote]
    other = len(counted) > 1 and len(wrong) == len(counted)  # all counts differ: it is about another study
    words = listing([f"{size:,} {noun}" for noun, size in wrong or [(noun, size) for noun, size, _ in counted]])
    if other and any(noun == "judges" for noun, *_ in counted):
        return [TextCheck("?", f"this run has {words}; every number is another", "number")]
    if len(counted) > 1 and not other:
        known = {run.counts[noun] for noun in ("clusters", "cycles") if noun in run.counts}
        times = [match[0] for match in pattern("times").finditer(sentence) if _size(match["n"]) not in known]
        mark: Mark = "!" if wrong else "?" if times else "x"
        why = {"!": f"the number differs: {words}", "?": f"{_quoted((times or [''])[0])} was not checked"}
        checks.append(TextCheck(mark, why.get(mark, words), "number"))
    elif len(counted) == 1 and (differs := _wrong_size(sentence, run)):
        checks.append(TextCheck("!", differs, "number"))
    return [] if other else checks
