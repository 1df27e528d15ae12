"""Supported claims about one agent with their conditions, and what is not supported: the top of its page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from assaymark.claims.messages import Said, said, stand_ins
from assaymark.claims.season_claims import SeasonVerdict
from assaymark.records import Level, Measurement
from assaymark.report.blocks import (
    Beside,
    Block,
    Card,
    Group,
    Inline,
    Items,
    Linked,
    Quote,
    Styled,
    Text,
    bold,
    notes,
    spaced,
)
from assaymark.report.blocks import Said as Part
from assaymark.report.levels import LEVELS, WithheldGroup
from assaymark.report.season.words import Words
from assaymark.text import clean

if TYPE_CHECKING:
    from assaymark.report.season.index import ModelBook, SeasonLookup


# Supported claims of a season: three levels on the first screen, and a card for every verdict.
#
# A claim that is not supported is listed by its phrase and never by its sentence, and without the values that would
# show its direction.


_FRONT: Final = ("first", "beats", "band")
_SHOWN, _GROUPS, _RESTS = 20, 2, 6
_ROOM: Final = 160
_SHARES: Final = (
    "season.return", "season.drawdown", "season.excess", "season.author_probe", "season.invalid", "season.ledger",
    "agent.flagged_texts", "human.sample",
)  # fmt: skip
_SIGNED: Final = (
    "season.return", "season.excess", "season.self_preference", "season.verbosity",
    "contrast", "lofo.contrast", "recusal.contrast", "length.contrast", "judges.contrast", "judge.own_family",
    "judge.length", "human.contrast",
)  # fmt: skip
_DIGITS: Final = {
    "season.kappa": 2, "season.alone": 2, "order.autocorrelation": 2, "panel.families": 0,
    "panel.alpha": 2, "panel.generalizability": 2,
    "season.thrash": 0, "season.lookahead": 0, "season.decisions": 0, "datasheet.gate": 0,
    "human.judge": 2, "human.agreement": 2, "human.labels": 0,
}  # fmt: skip
_SHARED: Final = ("season.kappa", "contrast", "length.contrast")
_UNTESTED: Final = "claim.reason.untested_first"
_NO_LEAD: Final = said("claim.reason.no_lead")
_STATUS: Final = ("agreement", "stability", "adversarial")


@dataclass(frozen=True, slots=True)
class SaidClaim:
    """A supported claim: its sentence in quotation marks, its condition, and its clipboard text."""

    level: Level
    quote: str
    condition: str
    copy: str


@dataclass(frozen=True, slots=True)
class SaidLevel:
    """One level of the first screen. ``more`` claims are folded; only the page of all claims has the ``rest``."""

    level: Level
    title: str
    shown: tuple[SaidClaim, ...]
    more: tuple[SaidClaim, ...]
    groups: tuple[WithheldGroup, ...]
    more_groups: tuple[WithheldGroup, ...]
    rest: int

    def block(self, words: Words) -> Part:
        """The level as a page shows it."""

        def lines(claims: Sequence[SaidClaim], groups: Sequence[WithheldGroup]) -> Iterator[Quote | tuple[str, Inline]]:
            yield from (Quote(one.level, one.quote, one.condition, one.copy) for one in claims)
            for group in groups:
                yield group.text, tuple(bold(text) if strong else text for text, strong in group.why)

        shown, more = tuple(lines(self.shown, self.groups)), tuple(lines(self.more, self.more_groups))
        key = "index.more_withheld" if self.level == "no-claim" else "index.more"
        rest: Inline = Linked(words("index.rest", n=self.rest), "claims.html") if self.rest else ""
        folded = words(key, n=len(more)) if more else ""
        return Part(self.level, self.title, "", shown, more, folded=folded, rest=rest)


def tally(book: SeasonLookup, words: Words) -> list[tuple[Level, str, str]]:
    """How many claims stand at each level."""
    seen = Counter(one.verdict.publication_level for one in book.run.decided.verdicts)
    return [(level, words.count(seen[level]), words(f"level.{level}.tally")) for level in LEVELS]


def said_levels(book: SeasonLookup, words: Words) -> tuple[SaidLevel, ...]:
    """The three levels in order: claims about single agents; pairs are on the page of all claims."""
    order = {kind: at for at, kind in enumerate(_FRONT)}
    front = sorted((one for one in book.run.decided.verdicts if one.kind in order), key=lambda one: order[one.kind])
    seen = Counter(one.verdict.publication_level for one in book.run.decided.verdicts)
    found = []
    for level in LEVELS:
        mine = [one for one in front if one.verdict.publication_level == level]
        said = [said_claim(book, one, words) for one in mine[:_SHOWN]] if level != "no-claim" else []
        groups = _groups(book, mine, words)[:_SHOWN] if level == "no-claim" else ()
        first = _fitting(said)
        covered = sum(group.covers for group in groups) or len(said)
        found.append(
            SaidLevel(
                level=level,
                title=words(f"level.{level}.title"),
                shown=tuple(said[:first]),
                more=tuple(said[first:]),
                groups=groups[:_GROUPS],
                more_groups=groups[_GROUPS:],
                rest=seen[level] - covered,
            )
        )
    return tuple(found)


def _fitting(claims: Sequence[SaidClaim]) -> int:
    """How many of the first claims fit above the fold, from about how tall each is; one always does."""
    heights = accumulate(
        21 + 27 * (1 + len(one.quote) // 52) + 21 * (len(one.condition) // 66 + 1) * bool(one.condition)
        for one in claims
    )
    return max(sum(height <= _ROOM for height in heights), 1)


def _groups(book: SeasonLookup, verdicts: Sequence[SeasonVerdict], words: Words) -> tuple[WithheldGroup, ...]:
    """Unsupported claims by what they are about, with the first of their reasons; equal ones are one line."""
    found: dict[tuple[str, str], int] = {}
    firsts = [one for one in verdicts if _unsupported_first(one)]
    alone = len(firsts) > 1 and all(_compared_with(one) == len(firsts) - 1 for one in firsts)
    for one in verdicts:
        if alone and one.kind == "first":
            key = words.text(said("claim.withheld.any_first")), words.text(said("claim.reason.untested_any"))
        else:
            key = withheld_text(one, words), words.texts(reasons_of(book, one)[:1])
        found[key] = found.get(key, 0) + 1
    return tuple(WithheldGroup(text, ((f"{why} ", False),) if why else (), n) for (text, why), n in found.items())


def reasons_of(book: SeasonLookup, one: SeasonVerdict) -> tuple[Said, ...]:
    """The reasons of a claim; of an unsupported first rank those that hold for every agent, or who leads would show."""
    if not _unsupported_first(one):
        return one.reasons
    firsts = [other for other in book.run.decided.verdicts if _unsupported_first(other)]
    kept = [why for why in one.reasons if why.key == _UNTESTED or all(why in other.reasons for other in firsts)]
    return tuple(kept) if _NO_LEAD in kept else (*kept, said("claim.reason.no_claimed_lead"))


def _compared_with(one: SeasonVerdict) -> int:
    """With how many agents the one that is to rank first cannot be compared, for want of common periods."""
    others = [why.values["agents"] for why in one.reasons if why.key == _UNTESTED]
    return sum(len(some) for some in others if isinstance(some, tuple))


def _unsupported_first(one: SeasonVerdict) -> bool:
    return one.kind == "first" and one.verdict.publication_level == "no-claim"


def withheld_text(one: SeasonVerdict, words: Words) -> str:
    """What an unsupported claim is about."""
    if one.withheld is not None:
        return words.text(one.withheld)
    return words("claims.about", agents=words.names(sorted(one.verdict.claim.subjects)))


def said_claim(book: SeasonLookup, one: SeasonVerdict, words: Words) -> SaidClaim:
    """A supported claim; what it earned rests on no grade."""
    run = book.run
    judges = {} if one.kind == "beats" else {judge.name: judge.reference for judge in run.judges}
    agents = {agent.name: agent.reference for agent in run.agents}
    built_in = stand_ins(words.catalogue, judges, agents, one.verdict.claim.subjects)
    quote, condition = words.text(one.statement), f"{built_in} {words.texts(one.condition)}".strip()
    source = {"study": clean(run.title or run.name, 120), "day": words.day(run.locked_at[:10])}
    copy = words(
        "claims.copied", quote=words.quoted(quote), condition=condition, plan=clean(one.verdict.plan_hash), **source
    )
    return SaidClaim(one.verdict.publication_level, quote, condition, " ".join(copy.split()))


def claim_cards(book: SeasonLookup, words: Words) -> tuple[Card, ...]:
    """Every verdict, in the order in which they are read."""
    return tuple(_card(book, one, words) for one in book.run.decided.verdicts)


def _card(book: SeasonLookup, one: SeasonVerdict, words: Words) -> Card:
    verdict = one.verdict
    level = verdict.publication_level
    ids = list(dict.fromkeys(verdict.measurements))
    states = (verdict.agreement_status, verdict.stability_status, verdict.adversarial_status)
    hidden = _unsupported_first(one)
    if hidden:  # what differs from agent to agent would show who leads
        ids = [name for name in ids if name.startswith(_SHARED)]
    items = [book.by_id[name] for name in ids[:_RESTS] if name in book.by_id]
    if level == "no-claim":
        blocks: list[Block] = [Text(withheld_text(one, words), "text")]
    else:
        quoted = said_claim(book, one, words)
        blocks = [Quote(level, quoted.quote, quoted.condition, quoted.copy)]
    why = tuple(words.text(reason) for reason in reasons_of(book, one))
    blocks += [Items(why, "whys")] if why else []
    fields = (
        (bold if name in verdict.binding else str)(
            f"{words(f'claims.status.{name}')}: {words.term('claims.state', state)}"
        )
        for name, state in zip(_STATUS, states, strict=True)
        if not (hidden and name == "stability")
    )
    blocks += [Text(spaced(fields, " · "), "tuple"), *notes(tuple(_other_rules(one, words)))]
    rests: list[Inline] = [_rest(book, one, item, words) for item in items]
    more = len(ids) - len(items)
    rests += [Linked(words("claims.more", n=more), "measurements.html")] if more else []
    if rests:
        blocks.append(Group(words("claims.rests", n=len(ids)), (Items(tuple(rests), "whys"),), folded="closed"))
    return Card(level, words(f"level.{level}.tag"), words.term("claims.kind", one.kind), tuple(blocks))


def _other_rules(one: SeasonVerdict, words: Words) -> Iterator[str]:
    """The level under each other rule, those of one level together; of an unsupported first rank it would name one."""
    own, found = one.verdict.publication_level, one.verdict.fragility
    if own == "no-claim" and one.kind == "first":
        return
    for level in (own, *(name for name in LEVELS if name != own)):
        rules = [words.term("claims.rule", name) for name, other in sorted(found.items()) if other == level]
        if rules:
            key = "claims.rules.same" if level == own else "claims.rules.other"
            yield words(key, rules=words.catalogue.names(rules), level=words(f"level.{level}.tag"))


def _rest(book: SeasonLookup, one: SeasonVerdict, item: Measurement, words: Words) -> Inline:
    """A measurement in words: what of whom, its value where that shows nothing that is not supported, its row."""
    subjects = sorted(
        baseline_words(value, words) if key == "baseline" else clean(value, 60)
        for key, value in item.labels.items()
        if key not in ("axis", "dimension", "dropped")
    )
    if "dropped" in item.labels:  # a family of judges, which may be called as an agent is
        subjects.append(f"{words('measured.label.dropped')} {clean(item.labels['dropped'], 60)}")
    what = words.term("measure", item.name.removeprefix("season."))
    named = f"{what} ({words.catalogue.names(subjects)})" if subjects else what
    value = measured(item, words) if _tellable(book, one, item) else Styled(words("frame.withheld"), "gap")
    if spread := book.spread(item):
        value = words("measured.spread", n=book.graded(item), low=spread[0], high=spread[1])
    return Linked(named, book.links[item.id]), ": ", value


def baseline_words(name: str, words: Words) -> str:
    """How a sentence calls a baseline."""
    return words.term("claim.baseline", name.replace(" ", "_").replace("/", "_"))


def _tellable(book: SeasonLookup, one: SeasonVerdict, item: Measurement) -> bool:
    """Whether a value may be shown beside its claim: of no unsupported pair, and of no agent that shares its tier."""
    if "high" in item.labels:
        return one.verdict.publication_level != "no-claim"
    return not book.hidden(item)


def measured(item: Measurement, words: Words) -> str:
    """A measurement as a value with its interval and n, or why there is none."""
    if item.value is None:
        return state_words(item, words)
    text = value_words(item, item.value, words)
    if item.low is not None and item.high is not None:
        ends = words("places.range", first=value_words(item, item.low, words), last=value_words(item, item.high, words))
        text = f"{text} ({ends})"
    return words("measured.n", value=text, n=words.count(item.n), of=words.of(item.n, item.n_of))


_PEOPLE: Final = {"human.agreement": "few", "human.sample": "part"}
"""Where the state of what people graded counts something."""


def state_words(item: Measurement, words: Words) -> str:
    """Why a measurement has no value; a pair that cannot be tested with its periods."""
    name, _, _ = item.state.partition(" (")
    if item.name.startswith("human.") and words.has(f"state.{name}"):
        return words.term("state", name)
    if item.name in _PEOPLE:
        return words(f"people.{_PEOPLE[item.name]}", n=item.n)
    return words.term("state", name if name == "cannot be tested" else item.state)


def value_words(item: Measurement, value: float, words: Words) -> str:
    """A value of a measurement, or an end of its interval, in the form of its kind."""
    sign = item.name in _SIGNED
    if item.name in _SHARES:
        return words.percent(value, 3 if item.name == "season.excess" else 1, sign=sign)
    return words.number(value, _DIGITS.get(item.name, 1), sign=sign)


def level_blocks(parts: Sequence[Part]) -> Block:
    """Levels that hold claims: what is supported beside what is not, or one of the two alone."""
    held = [one for one in parts if one.claims]
    sides = tuple(tuple(one for one in held if (one.level == "no-claim") == hidden) for hidden in (False, True))
    return Beside(sides, "trio") if all(sides) else Group("", tuple(held))


_LEFT_OUT: Final = ("above", "within")
_MOST: Final = 4


def agent_levels(book: ModelBook) -> tuple[Part, ...]:
    """The levels at which there is a claim about an agent. Pairs are only on the page of all claims."""
    name = book.agent.name
    mine = [
        one for one in book.run.decided.verdicts if name in one.verdict.claim.subjects and one.kind not in _LEFT_OUT
    ]
    found = (_level(book, level, [one for one in mine if one.verdict.publication_level == level]) for level in LEVELS)
    return tuple(one for one in found if one.claims)


def _level(book: ModelBook, level: Level, verdicts: list[SeasonVerdict]) -> Part:
    """The claims of one level; unsupported ones are listed with the first of their reasons, equal ones once."""
    words = book.words
    lines: list[Quote | tuple[str, Inline]] = []
    if level == "no-claim":
        named = ((withheld_text(one, words), words.texts(reasons_of(book.lookup, one)[:1])) for one in verdicts)
        lines += dict.fromkeys(named)
    else:
        claims = (said_claim(book.lookup, one, words) for one in verdicts)
        lines += [Quote(level, one.quote, one.condition, one.copy) for one in claims]
    more = len(lines) - _MOST
    rest = Linked(words.say("said.more", n=more), "claims.html") if more > 0 else ""
    title = words(f"level.{level}.title")
    first = 1 if level == "no-claim" else _GROUPS
    shown, others = tuple(lines[:first]), tuple(lines[first:_MOST])
    folded = words("index.more_withheld" if level == "no-claim" else "index.more", n=len(others)) if others else ""
    return Part(level, title, "", shown, others, folded=folded, rest=rest)
