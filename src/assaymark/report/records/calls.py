"""Pages of calls, each with its prompt and its reply, where each prompt text is stored once."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from html import escape as escaped_text
from typing import Any, Final, NamedTuple

from markupsafe import Markup

from assaymark.engine import CallSpec, Reply
from assaymark.engine.calls import Text as CallText
from assaymark.records import Judgment, Measurement
from assaymark.report import blocks as b
from assaymark.report.blocks import Block, Group, Inline, Linked, Page, Passage, Prose, Terms, bold, code
from assaymark.report.page import Frame
from assaymark.report.text import counted
from assaymark.text import clean, count, money

RECORDS: Final = "records"
"""The key of the pages of records in the menu of a run."""

OVERVIEW: Final = "judgments/index.html"
SEARCH: Final = "search.html"
"""The search page for all judgments and calls of a study."""

BELOW: Final[Mapping[str, Any]] = {"here": RECORDS, "styles": ("trail.css",)}
"""Settings that all pages of records share."""


def rows_page(
    path: str, title: str, lead: Inline, columns: tuple[str, ...], rows: Sequence[b.PageRow], noun: str, parts: str,
    right: Iterable[int] = (), filters: tuple[b.Filter, ...] | None = None, **more: Any,
) -> Page:  # fmt: skip
    """A page of records: a table of its rows, with a filter for each of their keys unless ``filters`` are given."""
    buttons = b.row_filters(sorted(row.key for row in rows)) if filters is None else filters
    table = b.Table(columns, tuple(rows), frozenset(right), "", stacked=True, id=f"{noun[:-1]}-rows", filters=buttons,
                    search=noun)  # fmt: skip
    return Page(path, title, lead, (), (table,), parts, **{**BELOW, **more})


Lineage = Callable[[Measurement], tuple[Linked, ...]]
"""Returns links to the records that a measurement was computed from."""

PAGE: Final = 380_000
"""Bytes of calls, or of texts, on one page; a page with one very long text may have more."""

WHOLE: Final = 300_000
"""Maximum bytes of one text on a page; the middle of a longer one is cut."""

_NEAR: Final = 40  # characters of a word that is not cut

FOLDER: Final = "calls"
_ROOT: Final = "../"
_FACTS, _FRAME, _ARGS = 600, 400, 2000
_JSON: Final = json.JSONEncoder(ensure_ascii=False)  # json.dumps with an option makes one for each value
_EXCERPT, _SHORT = 320, 1_600
"""A text of at most ``_SHORT`` characters is whole in each call that showed it; a longer one has both ends."""
_QUOTES, _FIELDS, _LEVELS = 8, 24, 10
_UP: Final = (Linked("sentences", "claims.html"), " / ", Linked("measurements", "measurements.html"), " / ",
              Linked("judgments", OVERVIEW))  # fmt: skip
_WHOLE: Final = "The call log holds the {} whole: `assaymark serve` {}."
_LINK: Final = Markup('<a href="{}">{}</a>')


def reveal(text: str) -> Markup:
    """A text as markup from which it can be recovered: invisible characters are replaced by their code point."""
    shown = escaped_text(text, quote=False)
    if not text.replace("\n", "").replace("\t", "").isprintable():
        # Characters that would be invisible, or lost, on a page.
        hidden = {
            ord(char): f'<i class="u">U+{ord(char):04X}</i>'
            for char in set(text)
            if not char.isprintable() and char not in "\n\t" and unicodedata.category(char) != "Zs"
        }
        shown = shown.translate(hidden) if hidden else shown
    return Markup(shown)


def fit_markup(text: str, limit: int = WHOLE) -> tuple[Markup, int]:
    """A text as markup of at most about ``limit`` bytes, and the number of characters cut from its middle."""
    whole = reveal(text) if len(text) <= limit else None
    if whole is not None and len(whole.encode()) <= limit:
        return whole, 0
    length = min(len(text) - 1, int(limit * 0.9))
    while True:  # a character takes at most 23 bytes, so this terminates
        head = int(length * 0.7)
        tail = len(text) - (length - head)
        # No word is cut if a space is near.
        before, after = text[max(0, head - _NEAR) : head].rfind(" "), text[tail : tail + _NEAR].find(" ")
        head, tail = head if before < 0 else max(0, head - _NEAR) + before, tail + max(after, 0)
        first, last = reveal(text[:head]), reveal(text[tail:])
        if length < 2 or len(first.encode()) + len(last.encode()) <= limit:
            break
        length = length * 2 // 3
    cut = tail - head
    mark = Markup('<b class="cut">[{} characters are left out here]</b>').format(count(cut))
    return first + mark + last, cut


@dataclass(frozen=True, slots=True)
class AskedCall:
    """A call with its reply, the texts that no earlier call had, and its price, None if unknown."""

    key: str
    call: CallSpec
    new: tuple[CallText, ...]
    reply: Reply | None
    attempts: int = 0
    usd: float | None = None
    in_batch: bool = False


ReadCalls = Callable[[Sequence[str]], Iterator[AskedCall]]
"""Reads the calls with these keys from a ledger, in this order."""


class JudgeCall(NamedTuple):
    """A call for a judgment: its key, a link to the judgment with the name of its judge as text, and the judgment."""

    key: str
    ref: Linked
    judgment: Judgment


@dataclass(frozen=True, slots=True)
class SameAnswers:
    """Calls on the same answer by the id of each, its own first; the dimensions and the ends of the scale."""

    asked: Mapping[str, Sequence[JudgeCall]] = field(default_factory=dict)
    dimensions: Sequence[tuple[str, str]] = ()
    scale: tuple[float, float] = (1.0, 5.0)

    def strip(self, dimension: str, others: Sequence[JudgeCall], mine: float) -> Markup:
        """The scale as a strip: this score as a square, those of others as rings, with all of them in words."""
        peers = [(peer.ref, peer.judgment.scores[dimension]) for peer in others if dimension in peer.judgment.scores]
        (low, high), values = self.scale, [mine, *(value for _, value in peers)]
        words = "; ".join(f"{name} {value:g}" for name, value in peers)
        if high - low > _LEVELS or any(value % 1 for value in (low, high, *values)):
            return Markup(f" <small>{b.escaped(words)}</small>")
        kinds = ("so" if at == mine and at in values[1:] else "s" if at == mine else "o" if at in values else ""
                 for at in range(int(low), int(high) + 1))  # fmt: skip
        dots = "".join(f'<i class="{kind}"></i>' if kind else "<i></i>" for kind in kinds)
        label = b.escaped(words or "no other reply")
        return Markup(f' <span class="sc" role="img" aria-label="{label}" title="{label}">{dots}</span>')

    def aside(self, asked: Sequence[JudgeCall], links: Sequence[Inline]) -> Iterator[Block]:
        """The scores parsed from a reply, with the other replies on the same answer; ``links`` are links to these."""
        judged = asked[0].judgment
        alike = [other for other in asked[1:] if other.judgment.rubric == judged.rubric]
        scores = tuple((title, (bold(f"{judged.scores[name]:g}"), self.strip(name, alike, judged.scores[name])))
                       for name, title in self.dimensions if name in judged.scores)  # fmt: skip
        if scores:
            yield Prose(bold("Scores as read"), "who")
            yield Terms(scores, wide=False)
            yield Prose("Square: this reply. Rings: other replies on the same answer by the same rubric.", "cap")
        problem = clean(": ".join(filter(None, (judged.status, judged.reason))), 300)
        rows: list[tuple[str, Inline]] = [("Reply", "valid" if judged.status == "ok" else problem)]
        if judged.evidence:
            rows.append(("Quotes", "; ".join(f"“{clean(quote, 80)}”" for quote in judged.evidence[:_QUOTES])))
        if judged.lookahead_check is not None:
            rows.append(("Saw the future?", clean(judged.lookahead_check, 80)))
        yield Terms((*rows, *([("The same answer", b.chained(links, ", "))] if links else [])), wide=False)


NONE: Final = SameAnswers()
"""For calls that asked for no judgment."""


def marked(text: str, quotes: Iterable[str]) -> Markup:
    """A text on a page with the quotes from it highlighted."""
    shown = {str(reveal(quote)) for quote in quotes if len(quote.strip()) > 1}
    wanted = sorted((quote for quote in shown if quote in text), key=len, reverse=True)
    if not wanted:
        return Markup(text)
    parts = re.compile(f"<[^>]*>|({'|'.join(map(re.escape, wanted))})|&[#\\w]+;")
    return Markup(parts.sub(lambda match: f"<mark>{match[1]}</mark>" if match[1] else match[0], str(text)))


class _PromptText(NamedTuple):
    """A text within a conversation: its beginning and end, their size in bytes, and a link to the whole text."""

    blocks: tuple[Block, Block]
    size: int
    link: Linked


@dataclass(slots=True)
class _PageStream:
    """A long list that is split into pages while it is built: only the current page is in memory."""

    folder: str
    stem: str
    done: int = 0
    size: int = 0
    end: str = ""
    rows: list[Group] = field(default_factory=list)

    def name(self, at: int) -> str:
        """The file name of a page, counted from 1."""
        return f"{self.stem}-{at:03d}.html"

    def add(self, row: Group, size: int) -> tuple[tuple[Group, ...], str]:
        """Add a row to the current page. Return the previous page if it is now full, and the address of the row."""
        full: tuple[Group, ...] = ()
        if self.rows and self.size + size > PAGE:
            full, self.rows, self.size, self.done = tuple(self.rows), [], 0, self.done + 1
        self.rows.append(row)
        self.size += size
        return full, f"{self.folder}/{self.name(self.done + 1)}#{row.id}"


def call_pages(
    calls: Iterable[AskedCall], uses: Mapping[str, Sequence[Linked]], frame: Frame, places: MutableMapping[str, str], *,
    folder: str = FOLDER, answers: SameAnswers = NONE,
) -> Iterator[tuple[str, str]]:  # fmt: skip
    """Pages of calls and texts as path and HTML; a call links to others on its answer, or to their judgments."""
    texts, cards = _PageStream(folder, "texts"), _PageStream(folder, "page")
    by_hash: dict[str, _PromptText] = {}
    for call in calls:
        for text in call.new:
            if text.sha256 not in by_hash:
                words, (shown, cut) = counted(len(text.text), "character"), fit_markup(text.text)
                note = (Prose(_WHOLE.format("text", "shows it with its calls")),) if cut else ()
                whole = (Prose(("sha256 ", code(text.sha256)), "cap"), Passage(shown), *note)
                row = Group(words, whole, f"t{text.sha256[:16]}", style="call", level=2)
                full, place = texts.add(row, _FRAME + len(shown.encode()))
                link = Linked(f"whole text, {words}", place)
                excerpt, _ = fit_markup(text.text, 2 * _SHORT if len(text.text) <= _SHORT else _EXCERPT)
                both = Passage(excerpt, style="said"), Prose(link, "whole")
                written = (b.markup_of(both[0], _ROOT), b.markup_of(both[1], _ROOT))
                by_hash[text.sha256] = _PromptText(written, len(excerpt.encode()), link)
                if full:
                    yield _page(texts, texts.done, full, frame, row.id)
        card, size = _card(call, uses.get(call.key, ()), by_hash)
        size += 200 * len(answers.asked.get(card.id, ())) + 300 * len(answers.dimensions)
        full, places[call.key] = cards.add(card, size)
        if full:
            yield _page(cards, cards.done, full, frame, card.id, answers)
    for pages in (texts, cards):
        if pages.rows:
            yield _page(pages, pages.done + 1, tuple(pages.rows), frame, "", answers)


def _page(
    pages: _PageStream, at: int, rows: tuple[Group, ...], frame: Frame, then: str, answers: SameAnswers = NONE
) -> tuple[str, str]:  # fmt: skip
    """A page of calls or of texts, with links to the adjacent parts; ``then`` is the id of the first row after it."""
    last, path, parts = not then, f"{pages.folder}/{pages.name(at)}", Markup("")
    links = [_LINK.format(pages.name(at - 1), f"Part {at - 1}")] if at > 1 else []
    links.append(Markup('<b aria-current="page">{}</b>').format(f"Part {at}"))
    links += [] if last else [_LINK.format(pages.name(at + 1), f"Part {at + 1}")]
    if len(links) > 1:
        parts = Markup('<div class="pager" role="group" aria-label="Parts">{}</div>').format(Markup(" ").join(links))
    if pages.stem == "texts":
        lead = "Each text that calls showed, once, by its sha256. A message is its texts in the order that the call "
        return path, frame.page(Page(path, f"Prompt texts, part {at}", f"{lead}names.", (), rows, parts, **BELOW))
    intro: Inline = (
        "Each call as a conversation: what was asked, the reply exactly as it came, and its fields where it is JSON. "
        "Invisible characters show as code points. The key of a call covers everything that can change its answer."
    )
    ids, shown = [row.id for row in rows], []
    for place, row in enumerate(rows):
        before = f"#{ids[place - 1]}" if place else f"{pages.name(at - 1)}#{pages.end}" if at > 1 else ""
        after = f"#{ids[place + 1]}" if place + 1 < len(rows) else "" if last else f"{pages.name(at + 1)}#{then}"
        ways = (("prev", before, "‹ Previous"), ("next", after, "Next ›"), ("up", "#calls", "All calls of this part"))
        nav = " ".join(f'<a rel="{rel}" href="{b.escaped(href)}">{word}</a>' for rel, href, word in ways if href)
        *talk, facts = row.blocks
        beside: list[Block] = []
        if same := answers.asked.get(row.id):
            here = [f"c{peer.key[:16]}" for peer in same[1:]]
            beside += answers.aside(same, [
                Markup(f'<a href="#{other}">{b.escaped(peer.ref)}</a>') if other in ids else b.inline(peer.ref, _ROOT)
                for peer, other in zip(same[1:], here, strict=True)
            ])  # fmt: skip
            quotes = same[0].judgment.evidence[:_QUOTES]
            talk = [marked(part, quotes) if isinstance(part, Markup) and part.startswith('<pre class="said"') else part
                    for part in talk]  # fmt: skip
        title = Markup(f'<a href="#{row.id}">{b.escaped(str(row.heading))}</a>')
        cols = b.Columns((tuple(talk), (*beside, facts)), "cols")
        shown.append(replace(row, heading=title, blocks=(Markup(f'<p class="turn">{nav}</p>'), cols)))
    pages.end = ids[-1]
    listing = b.CardList(tuple(shown), b.row_filters(sorted(row.key for row in rows)), "calls", "calls")
    intro = (intro, " ", Linked("Search all parts", SEARCH)) if answers.asked else intro
    return path, frame.page(Page(path, f"Calls, part {at}", intro, (), (listing,), parts,
                                 scripts=("page.js+tools.js+turn.js",), **BELOW))  # fmt: skip


def _card(item: AskedCall, uses: Sequence[Linked], texts: Mapping[str, _PromptText]) -> tuple[Group, int]:
    """One call as a group of blocks, and its approximate size in bytes."""
    call, reply = item.call, item.reply
    asked = [(message.role, [texts[part.sha256] for part in message.parts]) for message in call.messages]
    named = [("Model", call.model), ("Trial", call.trial), ("Seed", call.seed), ("Temperature", call.temperature),
             ("Effort", call.effort)]  # fmt: skip
    if call.args:
        named.append(("Arguments", json.dumps(dict(call.args), ensure_ascii=False, sort_keys=True)))
    if reply is not None:
        names = [name for name in (reply.model, reply.fingerprint) if name and name != call.model]
        tokens = ((reply.input_tokens, "in"), (reply.cached_tokens, "of them cached"), (reply.output_tokens, "out"),
                  (reply.reasoning_tokens, "of them reasoning"))  # fmt: skip
        used = [f"{count(value)} {words}" for value, words in tokens if value is not None]
        batch = ", in a batch" if item.in_batch else ""
        named += [
            ("Answered by", ", ".join(names) or None), ("Finished with", reply.finish),
            ("Tokens", ", ".join(used) or None),
            ("Seconds", None if reply.seconds is None else f"{reply.seconds:.3f}"), ("Attempts", count(item.attempts)),
            ("Price", f"{money(item.usd)} USD{batch}" if item.usd else None),
        ]  # fmt: skip
    facts = [(name, clean(str(value), _ARGS)) for name, value in named if value is not None]
    ways: list[Inline] = [Linked(clean(use, 160), use.href) for use in uses]
    up = [_UP, b.chained(ways, ", ")] if uses and uses[0].href.startswith("judgments/") else ways
    blocks: list[Block] = [Prose(("Up: ", b.chained(up, " / ")), "up")] if uses else []
    for role, parts in asked:
        blocks += [Prose(bold(role.capitalize()), "who"), *(block for part in parts for block in part.blocks)]
    shown = [] if reply is None else [fit_markup(reply.text), *([fit_markup(reply.raw)] if reply.raw else [])]
    blocks.append(Prose(bold("Reply") if shown else "There is no reply.", "who"))
    for (text, cut), name in zip(shown, ("", "Response body as the provider sent it"), strict=False):
        blocks.append(Passage(text, name))
        blocks += [Prose(_WHOLE.format("reply", "shows it"))] if cut and not name else []
    # The fields of a reply that is a JSON object, those of objects in it one by one.
    parsed, body = list[tuple[str, str]](), object()
    with suppress(ValueError, RecursionError):
        body = None if reply is None else json.loads(reply.text)
    for name, value in list(body.items())[:_FIELDS] if isinstance(body, dict) else ():
        for part, inner in list(value.items() if isinstance(value, dict) else [("", value)])[:_FIELDS]:
            words = inner if isinstance(inner, str) else _JSON.encode(inner)
            parsed.append((clean(f"{name}: {part}" if part else name, 60), clean(words, 160)))
    fields = Terms(tuple(parsed), wide=False)
    blocks += [Group("The reply as JSON", (fields,), folded="closed")] if parsed else []
    schema = () if call.schema is None else (("Reply schema", texts[call.schema.sha256].link),)
    blocks.append(Terms((*facts, *schema, ("Key", code(item.key))), wide=False))
    links = [*uses, *(link for _, link in schema), *(part.link for _, parts in asked for part in parts)]
    texts_of = [*links, *(link.href for link in links), *(text for fact in (*facts, *parsed) for text in fact)]
    excerpts = sum(text.size + 60 for _, parts in asked for text in parts)
    size = b.row_bytes(_FACTS + 40 * len(texts_of), texts_of) + sum(len(text.encode()) for text, _ in shown) + excerpts
    title = clean(uses[0] if uses else call.model, 160)
    return Group(title, tuple(blocks), f"c{item.key[:16]}", key=clean(call.model, 80), style="call", level=2), size
