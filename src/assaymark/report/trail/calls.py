"""Every call as it was asked and as it was answered, paged, with each text that was shown stored once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Generic

from markupsafe import Markup

from assaymark.engine import CallSpec, Reply
from assaymark.engine.calls import Text
from assaymark.report.cost import money
from assaymark.report.filters import key_filters
from assaymark.report.formats import clean, count, counted
from assaymark.report.frame import Frame
from assaymark.report.paging import R, row_bytes
from assaymark.report.trail.refs import BELOW, Ref
from assaymark.report.trail.texts import ShownText, shown_text

PAGE: Final = 380_000
"""Bytes of calls, or of texts, on one page; a page with one very long text may have more."""

FOLDER: Final = "calls"
_FACTS: Final = 600
_ARGS: Final = 2000
_FRAME: Final = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedCall:
    """A call of the ledger and what came of it.

    ``new`` are those of its texts that no call before it had: what a reader of many calls keeps of the others is their
    digest, so that a ledger of any size takes little memory. ``usd`` is None where no price is known.
    """

    key: str
    call: CallSpec
    new: tuple[Text, ...]
    reply: Reply | None
    attempts: int = 0
    usd: float | None = None
    in_batch: bool = False


ReadCalls = Callable[[Sequence[str]], Iterator[AskedCall]]
"""Reads the calls with these keys from a ledger, in this order."""


@dataclass(frozen=True, slots=True)
class CallView:
    """One call, ready to show. ``asked`` are role, and words with a link for each text of the message."""

    anchor: str
    key: str
    model: str
    title: str
    uses: tuple[Ref, ...]
    facts: tuple[tuple[str, str], ...]
    asked: tuple[tuple[str, tuple[Ref, ...]], ...]
    reply: ShownText | None
    raw: ShownText | None

    @property
    def size(self) -> int:
        """About how many bytes it will take."""
        links = [*self.uses, *(link for _, links in self.asked for link in links)]
        texts = [words for link in links for words in (link.words, link.href)]
        texts += [text for fact in self.facts for text in fact]
        shown = sum(0 if one is None else one.size for one in (self.reply, self.raw))
        return row_bytes(_FACTS + 40 * len(texts), texts) + shown


@dataclass(frozen=True, slots=True)
class TextView:
    """One text that calls showed."""

    anchor: str
    digest: str
    characters: str
    shown: ShownText

    @property
    def size(self) -> int:
        """About how many bytes it will take."""
        return _FRAME + self.shown.size


@dataclass(slots=True)
class _Pages(Generic[R]):
    """A long list that is cut into pages while it is made: only the page under way is in memory."""

    folder: str
    stem: str
    done: int = 0
    size: int = 0
    rows: list[R] = field(default_factory=list)

    def name(self, at: int) -> str:
        """The file of a page, counted from 1."""
        return f"{self.stem}-{at:03d}.html"

    def add(self, row: R) -> tuple[R, ...]:
        """Put a row on the page under way; the rows of the page before it where that is full now, else nothing."""
        size = row.size
        full: tuple[R, ...] = ()
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
    uses: Mapping[str, Sequence[Ref]],
    frame: Frame,
    places: MutableMapping[str, str],
    *,
    folder: str = FOLDER,
) -> Iterator[tuple[str, str]]:
    """The pages of calls and of their texts, one at a time, as path and HTML.

    Parameters
    ----------
    calls : iterable of AskedCall
        In the order in which they are shown.
    uses : mapping of call key to sequence of Ref
        What rests on a call: its judgment, its decision.
    frame : Frame
    places : mutable mapping of call key to str
        Filled with where each call stands, below the folder of the report.
    folder : str
        Where the pages lie in it.
    """
    texts, cards = _Pages[TextView](folder, "texts"), _Pages[CallView](folder, "page")
    found: dict[str, Ref] = {}
    for one in calls:
        for text in one.new:
            if text.sha256 not in found:
                view = _text_view(text)
                full = texts.add(view)
                found[text.sha256] = Ref(view.characters, f"{texts.here}#{view.anchor}")
                if full:
                    yield _text_page(texts, texts.done, full, frame, last=False)
        card = _call_view(one, uses.get(one.key, ()), found)
        ready = cards.add(card)
        places[one.key] = f"{folder}/{cards.here}#{card.anchor}"
        if ready:
            yield _call_page(cards, cards.done, ready, frame, last=False)
    if texts.rows:
        yield _text_page(texts, texts.done + 1, tuple(texts.rows), frame, last=True)
    if cards.rows:
        yield _call_page(cards, cards.done + 1, tuple(cards.rows), frame, last=True)


def _call_page(
    pages: _Pages[CallView], at: int, rows: Sequence[CallView], frame: Frame, *, last: bool
) -> tuple[str, str]:
    name = pages.name(at)
    return f"{pages.folder}/{name}", frame.render(
        "trail-calls.html",
        f"Calls, part {at}",
        **BELOW,
        rows=rows,
        filters=key_filters([row.model for row in rows]),
        total=counted(len(rows), "call"),
        pager=_neighbours(pages, at, last=last),
    )


def _text_page(
    pages: _Pages[TextView], at: int, rows: Sequence[TextView], frame: Frame, *, last: bool
) -> tuple[str, str]:
    return f"{pages.folder}/{pages.name(at)}", frame.render(
        "trail-texts.html",
        f"Texts that were shown, part {at}",
        **BELOW,
        rows=rows,
        pager=_neighbours(pages, at, last=last),
    )


def _neighbours(pages: _Pages[R], at: int, *, last: bool) -> Markup:
    """Links to the parts before and after; how many there are is not known before the last one is made."""
    links = [Markup('<a href="{}">{}</a>').format(pages.name(at - 1), f"Part {at - 1}")] if at > 1 else []
    links.append(Markup('<b aria-current="page">{}</b>').format(f"Part {at}"))
    links += [] if last else [Markup('<a href="{}">{}</a>').format(pages.name(at + 1), f"Part {at + 1}")]
    if len(links) < 2:
        return Markup("")
    return Markup('<div class="pager" role="group" aria-label="Parts">{}</div>').format(Markup(" ").join(links))


def _text_view(text: Text) -> TextView:
    words = counted(len(text.text), "character")
    return TextView(f"t{text.sha256[:16]}", text.sha256, words, shown_text(text.text))


def _call_view(one: AskedCall, uses: Sequence[Ref], texts: Mapping[str, Ref]) -> CallView:
    call, reply = one.call, one.reply
    asked: list[tuple[str, tuple[Ref, ...]]] = []
    asked += [(message.role, tuple(texts[part.sha256] for part in message.parts)) for message in call.messages]
    if call.schema is not None:
        asked.append(("form of the reply", (texts[call.schema.sha256],)))
    return CallView(
        anchor=f"c{one.key[:16]}",
        key=one.key,
        model=clean(call.model, 80),
        title=clean(uses[0].words if uses else call.model, 160),
        uses=tuple(uses),
        facts=tuple((name, clean(value, _ARGS)) for name, value in _facts(one)),
        asked=tuple(asked),
        reply=None if reply is None else shown_text(reply.text),
        raw=shown_text(reply.raw) if reply is not None and reply.raw else None,
    )


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
