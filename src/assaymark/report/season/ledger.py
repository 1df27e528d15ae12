"""The fact check of an agent: its checkable sentences, what it saw, and what arithmetic and judges say of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from assaymark.records import Measurement
from assaymark.report.blocks import Filter, Inline, Linked, Mark, Row, Table, bold, row_bytes, small, written
from assaymark.report.evidence import STATES
from assaymark.report.season.decisions import further
from assaymark.report.season.index import ModelBook, ModelWords
from assaymark.report.season.inputs import SeasonClaimLine
from assaymark.report.text import excerpt
from assaymark.text import clean

NO_NUMBER: Final = "none"
DIFFER: Final = "differ"
_QUOTE, _SAW, _REACH = 280, 160, 140
_ROW_BYTES: Final = 700
_RULES: Final = 4
_OWN: Final = "own:"
_OVER: Final = re.compile(r"(?P<what>return|volatility|drawdown)-(?P<count>\d{1,4})(?P<unit>[dwmy])")
_GLYPHS: Final = frozenset(STATES)


def ledger_parts(path: str, lines: Sequence[SeasonClaimLine]) -> dict[str, tuple[SeasonClaimLine, ...]]:
    """The pages of the fact check, newest first; they end at the same row in every language."""

    def size(one: SeasonClaimLine) -> int:
        return row_bytes(_ROW_BYTES, (clean(one.quote, _QUOTE), clean(one.saw, _SAW), *one.judges))

    return further(path, "ledger", tuple(reversed(lines)), size)


def ledger_table(book: ModelBook, lines: Sequence[SeasonClaimLine], places: Mapping[int, str], name: str = "") -> Table:
    """Rows under their heads, with filters where it has a ``name``; ``places`` are those of decisions."""
    heads = tuple(book.say(f"ledger.head.{name}") for name in ("day", "claim", "saw", "numbers", "judges"))
    rows = tuple(ledger_row(book, one, places) for one in lines)
    found = ledger_filters(book.words, lines) if name else ()
    what = book.say("ledger.what")
    return Table(heads, rows, summary="", stacked=True, id=name, style="checked", filters=found, what=what)


def ledger_row(book: ModelBook, one: SeasonClaimLine, places: Mapping[int, str]) -> Row:
    """One number in its sentence; where the layers differ its row is of the style ``diff``."""
    words, key = book.words, one.numbers or NO_NUMBER
    saw = clean(one.saw, _SAW)
    rules = ", ".join(rule_word(words, rule) for rule in one.rule.split(", ")[:_RULES]) if one.rule else ""
    said: Inline = written(words.quoted(clean(one.quote, _QUOTE)))
    if one.which:
        before, which, after = excerpt(one.quote, one.start, one.which, _REACH)
        opened, closed = words.quoted("\n").split("\n")
        said = (written(opened + before), bold(which), written(after + closed))
    cells: tuple[Inline, ...] = (
        Linked(words.day(one.day), places.get(one.number, "")),
        said,
        written(_seen(words, saw)) if saw else small(words.say("ledger.no_field")),
        (*_state(words, key), small(rules)) if rules else _state(words, key),
        tuple(_judges(book, one.judges)) or small(words.say("ledger.not_looked_at")),
    )
    differ = one.disagree
    return Row(cells, key=key, also=DIFFER if differ else "", style="diff" if differ else "")


def _state(words: ModelWords, name: str) -> tuple[Inline, ...]:
    """A state as glyph and word."""
    word = bold(words.word("claim_state", name))
    return (Mark(name), word) if name in _GLYPHS else (word,)


def _seen(words: ModelWords, text: str) -> str:
    """What the agent saw, its own figures in words."""
    return "; ".join(
        words.say("ledger.own", name=words.word("own", part.removeprefix(_OWN))) if part.startswith(_OWN) else part
        for part in text.split("; ")
    )


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


def _judges(book: ModelBook, judges: Mapping[str, str]) -> Iterator[Inline]:
    """One state where all of the panel say so; otherwise each state with who says it."""
    states = dict.fromkeys(judges.values())
    for state in states:
        yield _state(book.words, state)
        if len(states) > 1 or len(judges) < len(book.run.judges):
            yield small(", ".join(clean(name, 40) for name, said in judges.items() if said == state))


# --- filters and counts -----------------------------------------------------------------------------------------------


def ledger_filters(words: ModelWords, lines: Sequence[SeasonClaimLine]) -> tuple[Filter, ...]:
    """The buttons above some rows: all, each state that occurs, and where the layers differ."""
    seen: Counter[str] = Counter(one.numbers or NO_NUMBER for one in lines)
    found = [Filter("", words("frame.all"), words.count(len(lines)))]
    for key in (*STATES, NO_NUMBER):
        if seen[key]:
            word = words.word("claim_state", key)
            found.append(Filter(key, word[:1].upper() + word[1:], words.count(seen[key])))
    if differ := sum(one.disagree for one in lines):
        found.append(Filter(DIFFER, words.say("filter.differ"), words.count(differ)))
    return tuple(found)


def ledger_counts(book: ModelBook) -> Table | None:
    """How often each state occurs in each layer, over the whole ledger; None without a claim."""
    if not book.lines:
        return None
    judges = [judge.name for judge in book.run.judges if any(judge.name in line.judges for line in book.lines)]
    by_numbers: Counter[str] = Counter(line.numbers or NO_NUMBER for line in book.lines)
    by_judge = {name: Counter(line.judges.get(name, "") for line in book.lines) for name in judges}
    others = sorted({state for seen in by_judge.values() for state in seen if state} - _GLYPHS)
    rows = []
    for state in (*STATES, *others, NO_NUMBER):
        counts = [by_numbers[state], *(by_judge[name][state] for name in judges)]
        if any(counts):
            rows.append((book.words.word("claim_state", state), *map(book.words.count, counts)))
    heads = (book.say("ledger.head.state"), book.say("ledger.head.numbers"), *(clean(name, 40) for name in judges))
    return Table(heads, tuple(rows), frozenset(range(1, len(heads))), book.say("ledger.counts"))


def ledger_answer(book: ModelBook) -> str:
    """How many of the sentences arithmetic bears out, contradicts or cannot decide."""
    if not book.lines:
        return book.say("ledger.empty")
    seen: Counter[str] = Counter(line.numbers or NO_NUMBER for line in book.lines)
    counts = tuple(
        f"{book.words.count(seen[key])} {book.words.word('claim_state', key)}"
        for key in (*STATES, NO_NUMBER)
        if seen[key]
    )
    return book.say("ledger.counted", n=len(book.lines), counts=counts)


def ledger_notes(book: ModelBook) -> tuple[Inline, ...]:
    """What share the material bears out and what chance would, where the layers differ, and what holds no number."""
    if not book.lines:
        return ()
    item = book.one("season.ledger")
    differ = book.say("ledger.differ", differ=sum(line.disagree for line in book.lines), n=len(book.lines))
    measured = () if item is None else (_share(book, item), _silent(book, item))
    partial = book.say("ledger.partial") if book.run.partial else ""
    return tuple(filter(None, (*measured, differ, partial, book.say("ledger.derivable"))))


def _share(book: ModelBook, item: Measurement) -> Inline:
    if item.value is None:
        return book.say("ledger.no_share", why=book.words.state(item))
    said = book.say("ledger.share", share=book.words.percent(item.value), n=item.n)
    chance, corrected = item.detail.get("chance"), item.detail.get("corrected")
    if not isinstance(chance, (int, float)) or not isinstance(corrected, (int, float)):
        return book.note(item, said)
    values = {"chance": book.words.percent(float(chance)), "corrected": book.words.number(float(corrected), 2)}
    return book.note(item, f"{said} {book.say('ledger.chance', **values)}")


def _silent(book: ModelBook, item: Measurement) -> str:
    silent, steps = item.detail.get("silent"), item.detail.get("steps")
    if not isinstance(silent, int) or not isinstance(steps, int):
        return ""
    return book.say("ledger.silent", silent=silent, n=steps)
