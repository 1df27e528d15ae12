"""Pages of a run that is under way: how far it is, and single calls as they were asked and answered."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Final

from markupsafe import Markup

from assaymark.engine.calls import CallSpec, Reply
from assaymark.report.formats import clean, count
from assaymark.report.frame import Frame, Link, Site
from assaymark.report.trail.texts import visible

LONGEST = 200_000
"""Characters of a text that a page shows; the ledger holds it whole."""

FRONTS: Final = {"index.html": "Verdicts", "datasheets.html": "Datasheets"}
"""The first pages of reports, by what they show; a folder of datasheets has no other."""

_PROGRESS: Final = Link("live", "/live", "Progress")


@dataclass(frozen=True, slots=True)
class Standing:
    """How far one model is: calls planned, and those with a reply."""

    model: str
    planned: int
    answered: int


@dataclass(frozen=True, slots=True)
class LiveView:
    """A run as it stands.

    Attributes
    ----------
    models : sequence of Standing
        By name.
    a_second : float or None
        Replies a second lately; None where nothing was seen to change yet.
    """

    name: str
    models: tuple[Standing, ...]
    a_second: float | None = None

    @property
    def planned(self) -> int:
        """All calls that are planned so far."""
        return sum(one.planned for one in self.models)

    @property
    def answered(self) -> int:
        """All that have a reply."""
        return sum(one.answered for one in self.models)

    @property
    def seconds_left(self) -> float | None:
        """How long the planned calls will take at the rate of late; None where there is no rate."""
        left = self.planned - self.answered
        if not left:
            return 0.0
        return left / self.a_second if self.a_second else None

    def to_json(self) -> str:
        """What the page asks for again and again."""
        rows = [asdict(one) for one in self.models]
        return json.dumps({"rows": rows, "said": self.said(), "done": self.planned == self.answered})

    def said(self) -> str:
        """The state in one sentence.

        >>> LiveView("r", (Standing("a/b", 200, 50),), 2.0).said()
        '50 of 200 calls are answered, 2.0 a second lately; about 1 min 15 s for the others.'
        """
        if not self.planned:
            return "No call is planned yet."
        first = f"{count(self.answered)} of {count(self.planned)} calls are answered"
        if self.planned == self.answered:
            return f"{first}."
        if not self.a_second or self.seconds_left is None:
            return f"{first}; nothing has come in lately."
        return f"{first}, {self.a_second:.1f} a second lately; about {_duration(self.seconds_left)} for the others."


def render_live(view: LiveView, *, report: str | None) -> str:
    """The page of a run that is under way. ``report`` is the first page of what is there already."""
    rows = [(clean(one.model, 80), one, _share(one)) for one in view.models]
    there = () if report is None else (Link("report", f"/report/{report}", FRONTS[report]),)
    return _frame((*there, _PROGRESS)).render(
        "live.html", clean(view.name, 80), here="live", scripts=("live.js",), connect=True, view=view, rows=rows
    )


def render_call(call: CallSpec, reply: Reply | None) -> str:
    """One call as it was asked and answered. All of it is hostile, and all of it is shown as text."""
    asked = [(message.role, _cut(message.text)) for message in call.messages]
    facts = [("Model", call.model), ("Trial", str(call.trial)), ("Arguments", json.dumps(dict(call.args)))]
    facts += [(name, str(value)) for name, value in (("Seed", call.seed), ("Temperature", call.temperature))
              if value is not None]  # fmt: skip
    if reply is not None:
        facts += [("Answered by", reply.model), ("Finished with", reply.finish)]
        facts += [("Seconds", f"{reply.seconds:.3f}")] if reply.seconds is not None else []
        tokens = [str(value) for value in (reply.input_tokens, reply.output_tokens) if value is not None]
        facts += [("Tokens in and out", " and ".join(tokens))] if tokens else []
    return _frame((_PROGRESS,)).render(
        "call.html", "One call", scripts=(), key=call.key, asked=asked,
        facts=[(name, clean(value, 400)) for name, value in facts],
        reply=None if reply is None else _cut(reply.text), raw=_cut(reply.raw) if reply and reply.raw else None,
    )  # fmt: skip


def render_missing(what: str) -> str:
    """That something is not there, with the way back."""
    return _frame((_PROGRESS,)).render("missing.html", "Not here", scripts=(), what=clean(what, 200))


def _frame(nav: tuple[Link, ...]) -> Frame:
    """What stands around a page that is not part of the report."""
    return Frame(study="", mark="", nav=nav, site=Site(home="/"), styles=("page.css", "live.css"))


def _cut(text: str) -> Markup:
    left = len(text) - LONGEST
    return visible(text if left <= 0 else f"{text[:LONGEST]}\n[… {count(left)} characters more]")


def _share(one: Standing) -> str:
    return f"{100 * one.answered / one.planned:.1f}" if one.planned else "0"


def _duration(seconds: float) -> str:
    """Seconds in words.

    >>> _duration(59.6), _duration(75), _duration(7300)
    ('60 s', '1 min 15 s', '2 h 1 min')
    """
    if seconds < 60:
        return f"{seconds:.0f} s"
    if seconds < 3600:
        return f"{int(seconds // 60)} min {int(seconds % 60)} s"
    return f"{int(seconds // 3600)} h {int(seconds % 3600 // 60)} min"
