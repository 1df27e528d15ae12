"""The claim ledger of an agent: every checkable statement, what the agent saw, and what numbers and judges say of it.

A ledger can have tens of thousands of rows in two languages, so rows are put together here and not in a template. All
that comes from a record passes `clean` and `escape`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from markupsafe import Markup, escape

from assaymark.records import Measurement
from assaymark.report.blocks import Filter, Table, row_bytes
from assaymark.report.evidence import STATES
from assaymark.report.season.index import ModelBook, ModelWords
from assaymark.report.season.inputs import SeasonClaimLine
from assaymark.text import clean

FIRST_ROWS: Final = 100
FIRST_BYTES: Final = 70_000
"""The most rows on the agent's page, and the most bytes of them."""

NO_NUMBER: Final = "none"
DIFFER: Final = "differ"
_QUOTE, _SAW = 280, 160
_ROW_BYTES: Final = 560
_RULES: Final = 4
_OWN: Final = "own:"
_OVER: Final = re.compile(r"(?P<what>return|volatility|drawdown)-(?P<count>\d{1,4})(?P<unit>[dwmy])")
_GLYPHS: Final = frozenset(STATES)


@dataclass(frozen=True, slots=True)
class LedgerLine:
    """One row as markup, with the key of its state and whether the layers differ.

    ``size`` is about how many bytes it takes. It is the same in every language, so that parts end at one row in all.
    """

    html: Markup
    key: str
    differ: bool
    size: int


class LedgerWords:
    """The words of the rows in one language, escaped once."""

    def __init__(self, words: ModelWords, panel: int) -> None:
        self.words, self.panel = words, panel
        self.open, self.close = escape(words("frame.open")), escape(words("frame.close"))
        self._states: dict[str, str] = {}
        self._rules: dict[str, str] = {}

    @cached_property
    def no_field(self) -> str:
        """Where nothing that the agent saw decided."""
        return f'<span class="sub">{escape(self.words.say("ledger.no_field"))}</span>'

    @cached_property
    def nobody(self) -> str:
        """Where no judge looked at a statement."""
        return f'<span class="sub">{escape(self.words.say("ledger.not_looked_at"))}</span>'

    def state(self, name: str) -> str:
        """A state as glyph and word."""
        found = self._states.get(name)
        if found is None:
            word = escape(self.words.word("claim_state", name))
            glyph = f'<svg class="g" aria-hidden="true"><use href="#g-{name}"/></svg>' if name in _GLYPHS else ""
            found = self._states[name] = f"<span>{glyph}{word}</span>"
        return found

    def rule(self, name: str) -> str:
        """How the numbers were matched, in small."""
        found = self._rules.get(name)
        if found is None:
            word = escape(", ".join(rule_word(self.words, one) for one in name.split(", ")[:_RULES])) if name else ""
            found = self._rules[name] = f'<span class="sub">{word}</span>' if word else ""
        return found

    def seen(self, text: str) -> Markup:
        """What the agent saw, its own figures in words."""
        return escape("; ".join(map(self._part, text.split("; "))))

    def _part(self, text: str) -> str:
        if not text.startswith(_OWN):
            return text
        return self.words.say("ledger.own", name=self.words.word("own", text.removeprefix(_OWN)))


def rule_word(words: ModelWords, name: str) -> str:
    """How a number was matched, in words; what was worked out from bars says over which time.

    >>> from assaymark.claims.messages import english
    >>> words = ModelWords(english())
    >>> rule_word(words, "return-15d"), rule_word(words, "row-labelled"), rule_word(words, "unheard of")
    ('return over 15 days', 'same row, field named', 'unheard of')
    """
    found = _OVER.fullmatch(name)
    if found is None:
        return words.word("claim_rule", name)
    span = words.say(f"span.{found['unit']}", n=int(found["count"]))
    return words.say(f"claim_over.{found['what']}", span=span)


def ledger_lines(book: ModelBook, words: LedgerWords, places: Mapping[int, str]) -> tuple[LedgerLine, ...]:
    """Every row in the order of the record; ``places`` says on which page a decision stands."""
    return tuple(_line(one, words, places) for one in book.run.ledger.get(book.agent.name, ()))


def _line(one: SeasonClaimLine, words: LedgerWords, places: Mapping[int, str]) -> LedgerLine:
    key = one.numbers or NO_NUMBER
    differ = one.disagree
    page = places.get(one.number)
    number = f'<a href="{page}#d{one.number}">{one.number}</a>' if page else f"{one.number}"
    quote, saw = clean(one.quote, _QUOTE), clean(one.saw, _SAW)
    mark = f' data-x="{DIFFER}"' if differ else ""
    html = (
        f'<tr data-k="{key}"{mark}><th scope="row">{number}</th>'
        f'<td dir="auto">{words.open}{escape(quote)}{words.close}</td>'
        f'<td dir="auto">{words.seen(saw) if saw else words.no_field}</td>'
        f'<td class="st"><div>{words.state(key)}{words.rule(one.rule)}</div></td>'
        f'<td class="st{" diff" if differ else ""}"><div>{_judges(one.judges, words)}</div></td></tr>\n'
    )
    return LedgerLine(Markup(html), key, differ, row_bytes(_ROW_BYTES, (quote, saw, *one.judges)))


def _judges(judges: Mapping[str, str], words: LedgerWords) -> str:
    """One state where all of the panel say so; otherwise each state with who says it."""
    if not judges:
        return words.nobody
    states = dict.fromkeys(judges.values())
    if len(states) == 1 and len(judges) == words.panel:
        return words.state(next(iter(states)))
    found = []
    for state in states:
        names = ", ".join(clean(name, 40) for name, said in judges.items() if said == state)
        found.append(f'{words.state(state)}<span class="sub">{escape(names)}</span>')
    return "".join(found)


# --- filters and counts -----------------------------------------------------------------------------------------------


def ledger_filters(words: ModelWords, lines: Sequence[LedgerLine]) -> tuple[Filter, ...]:
    """The buttons above some rows: all, each state that occurs, and where the layers differ."""
    seen = Counter(line.key for line in lines)
    found = [Filter("", words("frame.all"), words.count(len(lines)))]
    for key in (*STATES, NO_NUMBER):
        if seen[key]:
            word = words.word("claim_state", key)
            found.append(Filter(key, word[:1].upper() + word[1:], words.count(seen[key])))
    differ = sum(line.differ for line in lines)
    if differ:
        found.append(Filter(DIFFER, words.say("filter.differ"), words.count(differ)))
    return tuple(found)


def ledger_counts(book: ModelBook) -> Table | None:
    """How often each state occurs in each layer, over the whole ledger; None without a claim."""
    lines = book.run.ledger.get(book.agent.name, ())
    if not lines:
        return None
    judges = [judge.name for judge in book.run.judges if any(judge.name in line.judges for line in lines)]
    by_numbers: Counter[str] = Counter(line.numbers or NO_NUMBER for line in lines)
    by_judge = {name: Counter(line.judges.get(name, "") for line in lines) for name in judges}
    others = sorted({state for seen in by_judge.values() for state in seen if state} - _GLYPHS)
    rows = []
    for state in (*STATES, *others, NO_NUMBER):
        counts = [by_numbers[state], *(by_judge[name][state] for name in judges)]
        if any(counts):
            rows.append((book.words.word("claim_state", state), *map(book.words.count, counts)))
    heads = (book.say("ledger.head.state"), book.say("ledger.head.numbers"))
    named = tuple(clean(name, 40) for name in judges)
    return Table((*heads, *named), tuple(rows), frozenset(range(1, 2 + len(judges))))


def ledger_answer(book: ModelBook) -> str:
    """What the section is, and how much of it the numbers bear out beyond chance."""
    lines = book.run.ledger.get(book.agent.name, ())
    if not lines:
        return book.say("ledger.empty")
    return book.say("ledger.answer")


def ledger_notes(book: ModelBook) -> tuple[str, ...]:
    """What share the material bears out and what chance would, where the layers differ, and what holds no number."""
    lines = book.run.ledger.get(book.agent.name, ())
    if not lines:
        return ()
    item = book.one("season.ledger")
    differ = book.say("ledger.differ", differ=sum(line.disagree for line in lines), n=len(lines))
    measured = () if item is None else (_share(book, item), _silent(book, item))
    partial = book.say("ledger.partial") if book.run.partial else ""
    return tuple(filter(None, (*measured, differ, partial, book.say("ledger.derivable"))))


def _share(book: ModelBook, item: Measurement) -> str:
    if item.value is None:
        return book.say("ledger.no_share", why=book.words.state(item))
    said = book.say("ledger.share", share=book.words.percent(item.value), n=item.n)
    chance, corrected = item.detail.get("chance"), item.detail.get("corrected")
    if not isinstance(chance, (int, float)) or not isinstance(corrected, (int, float)):
        return book.to(item, said)
    values = {"chance": book.words.percent(float(chance)), "corrected": book.words.number(float(corrected), 2)}
    return book.to(item, f"{said} {book.say('ledger.chance', **values)}")


def _silent(book: ModelBook, item: Measurement) -> str:
    silent, steps = item.detail.get("silent"), item.detail.get("steps")
    if not isinstance(silent, int) or not isinstance(steps, int):
        return ""
    return book.say("ledger.silent", silent=silent, n=steps)
