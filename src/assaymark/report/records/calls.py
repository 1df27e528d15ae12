"""Every call as it was asked and as it was answered, paged, with each text that was shown stored once."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from markupsafe import Markup, escape

from assaymark.engine import CallSpec, Reply
from assaymark.engine.calls import Text as CallText
from assaymark.records import Judgment
from assaymark.report.blocks import (
    Beside,
    Block,
    Facts,
    Group,
    Inline,
    Linked,
    Listing,
    Page,
    Passage,
    Text,
    bold,
    code,
    inline,
    joined,
    markup_of,
    row_bytes,
    row_filters,
    spaced,
)
from assaymark.report.page import Frame
from assaymark.report.records.judgments import OVERVIEW
from assaymark.report.records.texts import BELOW, SEARCH, shown_text, visible
from assaymark.report.text import counted
from assaymark.text import clean, count, money

PAGE: Final = 380_000
"""Bytes of calls, or of texts, on one page; a page with one very long text may have more."""

FOLDER: Final = "calls"
_ROOT: Final = "../"
_FACTS: Final = 600
_ARGS: Final = 2000
_FRAME: Final = 400
_EXCERPT: Final = 320
_SHORT: Final = 1_600
"""A text of at most so many characters stands whole in each call that showed it; of longer ones, both ends."""
_QUOTES: Final = 8
_FIELDS: Final = 24
_LEVELS: Final = 10
_UP: Final = (Linked("sentences", "claims.html"), " / ", Linked("measurements", "measurements.html"), " / ",
              Linked("judgments", OVERVIEW))  # fmt: skip
_WHOLE: Final = "The ledger holds the {} whole: `assaymark serve` {}."


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedCall:
    """A call of the ledger and what came of it. ``new`` are those of its texts that no call before it had: what a
    reader of many calls keeps of the others is their digest, so that a ledger of any size takes little memory. ``usd``
    is None where no price is known."""

    key: str
    call: CallSpec
    new: tuple[CallText, ...]
    reply: Reply | None
    attempts: int = 0
    usd: float | None = None
    in_batch: bool = False


class Asked(NamedTuple):
    """A call that asked for a judgment: its key, a link to the judgment by the name of its judge, and the judgment."""

    key: str
    ref: Linked
    judgment: Judgment


@dataclass(frozen=True, slots=True)
class SameAnswers:
    """By the id of a call the calls that asked about the same answer, its own first. ``dimensions`` are those of the
    rubric by id and title, ``scale`` the ends of every score."""

    asked: Mapping[str, Sequence[Asked]] = field(default_factory=dict)
    dimensions: Sequence[tuple[str, str]] = ()
    scale: tuple[float, float] = (1.0, 5.0)

    def strip(self, dimension: str, others: Sequence[Asked], mine: float) -> Markup:
        """This score as a square and those of others as rings on the levels of the scale, with their words."""
        theirs = [
            (other.ref, other.judgment.scores[dimension]) for other in others if dimension in other.judgment.scores
        ]
        low, high = self.scale
        words, values = "; ".join(f"{who} {value:g}" for who, value in theirs), [mine, *(value for _, value in theirs)]
        if high - low > _LEVELS or any(value % 1 for value in (low, high, *values)):
            return Markup(f" <small>{escape(words)}</small>")
        kinds = ("so" if at == mine and at in values[1:] else "s" if at == mine else "o" if at in values else ""
                 for at in range(int(low), int(high) + 1))  # fmt: skip
        dots = "".join(f'<i class="{kind}"></i>' if kind else "<i></i>" for kind in kinds)
        said = escape(words or "no other reply")
        return Markup(f' <span class="sc" role="img" aria-label="{said}" title="{said}">{dots}</span>')

    def aside(self, found: Sequence[Asked], links: Sequence[Inline]) -> Iterator[Block]:
        """What was read from a reply, beside the other replies on the same answer; ``links`` lead to these."""
        others, judged = found[1:], found[0].judgment
        alike = [other for other in others if other.judgment.rubric == judged.rubric]
        scores = [(title, (bold(f"{judged.scores[name]:g}"), self.strip(name, alike, judged.scores[name])))
                  for name, title in self.dimensions if name in judged.scores]  # fmt: skip
        if scores:
            yield Text(bold("Scores as read"), "who")
            yield Facts(tuple(scores), wide=False)
            yield Text("Square: this reply. Rings: other replies on the same answer by the same rubric.", "cap")
        rows: list[tuple[str, Inline]] = [("Reply", "valid" if judged.status == "ok" else clean(
            ": ".join(filter(None, (judged.status, judged.reason))), 300))]  # fmt: skip
        if judged.evidence:
            rows.append(("Quotes", "; ".join(f"“{clean(one, 80)}”" for one in judged.evidence[:_QUOTES])))
        if judged.lookahead_check is not None:
            rows.append(("Saw the future?", clean(judged.lookahead_check, 80)))
        if links:
            rows.append(("The same answer", spaced(links, ", ")))
        yield Facts(tuple(rows), wide=False)


def marked(text: str, quotes: Iterable[str]) -> Markup:
    """A text on a page with quotes from it marked where they stand.

    >>> print(marked(visible("1 < 2, and lt"), ["< 2", "lt"]))
    1 <mark>&lt; 2</mark>, and <mark>lt</mark>
    """
    wanted = sorted({str(visible(quote)) for quote in quotes if len(quote.strip()) > 1}, key=len, reverse=True)
    if not wanted:
        return Markup(text)
    parts = re.compile(f"<[^>]*>|({'|'.join(map(re.escape, wanted))})|&[#\\w]+;")
    return Markup(parts.sub(lambda found: f"<mark>{found[1]}</mark>" if found[1] else found[0], str(text)))


NONE: Final = SameAnswers()
"""Of calls that asked for no judgments."""

ReadCalls = Callable[[Sequence[str]], Iterator[AskedCall]]
"""Reads the calls with these keys from a ledger, in this order."""


class _Shown(NamedTuple):
    """How a text begins and ends in a conversation, what that takes on a page, and where the text stands whole."""

    blocks: tuple[Block, Block]
    size: int
    whole: Linked


@dataclass(slots=True)
class _Pages:
    """A long list that is cut into pages while it is made: only the page under way is in memory."""

    folder: str
    stem: str
    done: int = 0
    size: int = 0
    end: str = ""
    rows: list[Group] = field(default_factory=list)

    def name(self, at: int) -> str:
        """The file of a page, counted from 1."""
        return f"{self.stem}-{at:03d}.html"

    def add(self, row: Group, size: int) -> tuple[Group, ...]:
        """Put a row on the page under way; the rows of the page before it where that is full now, else nothing."""
        full: tuple[Group, ...] = ()
        if self.rows and self.size + size > PAGE:
            full = tuple(self.rows)
            self.rows, self.size, self.done = [], 0, self.done + 1
        self.rows.append(row)
        self.size += size
        return full

    @property
    def here(self) -> str:
        """The file of the page under way."""
        return self.name(self.done + 1)


def call_pages(
    calls: Iterable[AskedCall],
    uses: Mapping[str, Sequence[Linked]],
    frame: Frame,
    places: MutableMapping[str, str],
    *,
    folder: str = FOLDER,
    answers: SameAnswers = NONE,
) -> Iterator[tuple[str, str]]:
    """The pages of calls and of their texts, one at a time, as path and HTML. A call on the same answer as another
    leads to it, or to its judgment where it stands on another page."""
    texts, cards = _Pages(folder, "texts"), _Pages(folder, "page")
    found: dict[str, _Shown] = {}
    for one in calls:
        for text in one.new:
            if text.sha256 not in found:
                words, shown, anchor = (
                    counted(len(text.text), "character"),
                    shown_text(text.text),
                    f"t{text.sha256[:16]}",
                )
                digest = Text(("sha256 ", code(text.sha256)), "cap")
                left = (Text(_WHOLE.format("text", "shows it with its calls")),) if shown.left_out else ()
                row = Group(words, (digest, Passage(shown.markup), *left), anchor, style="call", level=2)
                full = texts.add(row, _FRAME + shown.size)
                place = Linked(f"whole text, {words}", f"{folder}/{texts.here}#{anchor}")
                excerpt = shown_text(text.text, 2 * _SHORT if len(text.text) <= _SHORT else _EXCERPT)
                both = markup_of(Passage(excerpt.markup, style="said"), _ROOT), markup_of(Text(place, "whole"), _ROOT)
                found[text.sha256] = _Shown(both, excerpt.size, place)
                if full:
                    yield _page(texts, texts.done, full, frame, row.id)
        card, size = _card(one, uses.get(one.key, ()), found)
        size += 200 * len(answers.asked.get(card.id, ())) + 300 * len(answers.dimensions)
        ready = cards.add(card, size)
        places[one.key] = f"{folder}/{cards.here}#{card.id}"
        if ready:
            yield _page(cards, cards.done, ready, frame, card.id, answers)
    for pages in (texts, cards):
        if pages.rows:
            yield _page(pages, pages.done + 1, tuple(pages.rows), frame, "", answers)


def _page(
    pages: _Pages, at: int, rows: tuple[Group, ...], frame: Frame, then: str, answers: SameAnswers = NONE
) -> tuple[str, str]:  # fmt: skip
    """A page of calls or of texts, with links to the parts before and after; ``then`` is the first row after it."""
    last, ids = not then, {row.id: place for place, row in enumerate(rows)}
    links = [Markup('<a href="{}">{}</a>').format(pages.name(at - 1), f"Part {at - 1}")] if at > 1 else []
    links.append(Markup('<b aria-current="page">{}</b>').format(f"Part {at}"))
    links += [] if last else [Markup('<a href="{}">{}</a>').format(pages.name(at + 1), f"Part {at + 1}")]
    parts = Markup('<div class="pager" role="group" aria-label="Parts">{}</div>').format(Markup(" ").join(links))
    path, parts = f"{pages.folder}/{pages.name(at)}", parts if len(links) > 1 else Markup("")
    if pages.stem == "texts":
        lead = (
            "Each text that calls showed, once, by its sha256. A message is its texts in the order that the call names."
        )
        return path, frame.page(Page(path, f"Prompt texts, part {at}", lead, (), rows, parts, **BELOW))
    said = (
        "Each call as a conversation: what was asked, the reply exactly as it came, and its fields where it is JSON. "
        "Invisible characters show as code points. The key of a call covers everything that can change its answer."
    )
    turned = []
    for place, row in enumerate(rows):
        before = f"#{rows[place - 1].id}" if place else f"{pages.name(at - 1)}#{pages.end}" if at > 1 else ""
        after = f"#{rows[place + 1].id}" if place + 1 < len(rows) else "" if last else f"{pages.name(at + 1)}#{then}"
        ways = (("prev", before, "‹ Previous"), ("next", after, "Next ›"), ("up", "#calls", "All calls of this part"))
        nav = " ".join(f'<a rel="{rel}" href="{escape(href)}">{word}</a>' for rel, href, word in ways if href)
        turn: list[Block] = [Markup(f'<p class="turn">{nav}</p>')]
        *talk, facts = row.blocks
        beside: list[Block] = []
        if same := answers.asked.get(row.id):
            links = [
                Markup(f'<a href="#{other}">{escape(str(one.ref))}</a>') if (other := f"c{one.key[:16]}") in ids else
                inline(one.ref, _ROOT) for one in same[1:]
            ]  # fmt: skip
            beside += answers.aside(same, links)
            quotes = same[0].judgment.evidence[:_QUOTES]
            talk = [marked(one, quotes) if isinstance(one, Markup) and one.startswith('<pre class="said"') else one
                    for one in talk]  # fmt: skip
        turn.append(Beside((joined(talk, _ROOT), joined((*beside, facts), _ROOT)), "cols"))
        title = Markup(f'<a href="#{row.id}">{escape(str(row.heading))}</a>')
        turned.append(replace(row, heading=title, blocks=tuple(turn)))
    pages.end, rows = rows[-1].id, tuple(turned)
    listing = Listing(rows, row_filters(sorted(row.key for row in rows)), "calls", "calls")
    scripts = ("page.js+tools.js+turn.js",)
    return path, frame.page(
        Page(
            path,
            f"Calls, part {at}",
            (said, *((" ", Linked("Search all parts", SEARCH)) if answers.asked else ())),
            blocks=(listing,),
            parts=parts,
            scripts=scripts,
            **BELOW,
        )
    )


def _card(one: AskedCall, uses: Sequence[Linked], texts: Mapping[str, _Shown]) -> tuple[Group, int]:
    """One call, and about how many bytes it takes."""
    call, reply = one.call, one.reply
    asked = [(message.role, [texts[part.sha256] for part in message.parts]) for message in call.messages]
    known = [(name, clean(value, _ARGS)) for name, value in _facts(one)]
    blocks: list[Block] = []
    ways = [Linked(clean(use, 160), use.href) for use in uses]
    up: list[Inline] = [_UP, spaced(ways, ", ")] if uses and uses[0].href.startswith("judgments/") else [*ways]
    blocks += [Text(("Up: ", spaced(up, " / ")), "up")] if uses else []
    for role, found in asked:
        blocks += [Text(bold(role.capitalize()), "who"), *(block for one in found for block in one.blocks)]
    shown = [] if reply is None else [shown_text(reply.text), *([shown_text(reply.raw)] if reply.raw else [])]
    blocks.append(Text(bold("Reply") if shown else "There is no reply.", "who"))
    for text, name in zip(shown, ("", "Response body as the provider sent it"), strict=False):
        blocks.append(Passage(text.markup, name))
        blocks += [Text(_WHOLE.format("reply", "shows it"))] if text.left_out and not name else []
    parsed = [] if reply is None else list(_parsed(reply.text))
    blocks += [Group("The reply as JSON", (Facts(tuple(parsed), wide=False),), folded="closed")] if parsed else []
    schema = () if call.schema is None else (("Reply schema", texts[call.schema.sha256].whole),)
    blocks.append(Facts((*known, *schema, ("Key", code(one.key))), wide=False))
    links = [*uses, *(link for _, link in schema), *(one.whole for _, found in asked for one in found)]
    texts_of = [*links, *(link.href for link in links), *(text for fact in (*known, *parsed) for text in fact)]
    excerpts = sum(text.size + 60 for _, found in asked for text in found)
    size = row_bytes(_FACTS + 40 * len(texts_of), texts_of) + sum(text.size for text in shown) + excerpts
    title = clean(uses[0] if uses else call.model, 160)
    return Group(title, tuple(blocks), f"c{one.key[:16]}", key=clean(call.model, 80), style="call", level=2), size


def _parsed(text: str) -> Iterator[tuple[str, str]]:
    """The fields of a reply that is a JSON object, those of objects in it one by one."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return
    if isinstance(found, dict):
        for name, value in list(found.items())[:_FIELDS]:
            inner = value.items() if isinstance(value, dict) else [("", value)]
            for field_, one in list(inner)[:_FIELDS]:
                words = one if isinstance(one, str) else json.dumps(one, ensure_ascii=False)
                yield clean(f"{name}: {field_}" if field_ else name, 60), clean(words, 160)


def _facts(one: AskedCall) -> Iterator[tuple[str, str]]:
    """What is known about a call beside its texts."""
    call, reply = one.call, one.reply
    yield "Model", call.model
    yield "Trial", str(call.trial)
    for name, value in (("Seed", call.seed), ("Temperature", call.temperature), ("Effort", call.effort)):
        if value is not None:
            yield name, str(value)
    if call.args:
        yield "Arguments", json.dumps(dict(call.args), ensure_ascii=False, sort_keys=True)
    if reply is None:
        return
    who = [name for name in (reply.model, reply.fingerprint) if name and name != call.model]
    if who:
        yield "Answered by", ", ".join(who)
    yield "Finished with", reply.finish
    tokens = ((reply.input_tokens, "in"), (reply.cached_tokens, "of them cached"), (reply.output_tokens, "out"),
              (reply.reasoning_tokens, "of them reasoning"))  # fmt: skip
    if known := [f"{count(value)} {words}" for value, words in tokens if value is not None]:
        yield "Tokens", ", ".join(known)
    if reply.seconds is not None:
        yield "Seconds", f"{reply.seconds:.3f}"
    yield "Attempts", count(one.attempts)
    if one.usd:
        yield "Price", f"{money(one.usd)} USD{', in a batch' if one.in_batch else ''}"
