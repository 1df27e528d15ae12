"""The format of every number and word on the pages: minus signs, ranges with "to", a space before percent signs, and
words in place of undefined values. Texts from records are cleaned by `clean`."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, TypeGuard

from assaymark.records import LEVELS as LEVELS
from assaymark.records import RANK as RANK
from assaymark.records import AgreementStatus, DerivationKind, EvidenceState, Level, Measurement
from assaymark.records import weakest as weakest
from assaymark.text import clean, count, count_of, count_words, number, span, undefined_reason, visible
from assaymark.text import listing as listing
from assaymark.text import p_words as p_words
from assaymark.text import plural as plural

NOT_SHOWN: Final = "not shown"
AGREES: Final[Mapping[AgreementStatus, str]] = {
    "publish": "enough", "methodology": "weak", "halt": "too little", "not judged": "not judged",
}  # fmt: skip
"""Words for the agreement that a kappa shows."""


_STOP: Final = re.compile(r"(?<=[.!?;])\s+|\n+")
_MONTHS: Final = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
CELLS: Final[Mapping[DerivationKind, tuple[str, str]]] = {
    "cell_a": ("Cell A", "verbose, confident and wrong"), "cell_b": ("Cell B", "terse and correct"),
    "paraphrase": ("Paraphrase", "other words, same facts"), "fact_flip": ("Fact flip", "one number changed"),
    "length_matched": ("Length matched", "same content at one length"),
    "red_team": ("Red team", "texts written to deceive"), "ladder": ("Ladder", "texts of known quality"),
    "vacuum": ("Vacuum", "texts without content"),
}  # fmt: skip
"""The name of each kind of control text on pages, and a description of its texts."""
TAGS: Final[dict[Level, str]] = {
    "headline": "Supported", "qualified": "Only with its condition", "no-claim": "Not supported",
}  # fmt: skip
TITLES: Final = {
    "headline": "Supported",
    "qualified": "Supported only with its condition",
    "no-claim": "Not supported by this evidence",
}
TALLY: Final = {"headline": "supported", "qualified": "only with a condition", "no-claim": "not supported"}
EQUAL_WEIGHT: Final = ("EqW", "equal weight", "equal-weight", "equal_weight")
"""Names of the equal-weight baseline."""

STATE_WORDS: Final[Mapping[EvidenceState, str]] = {
    "supported": "supported", "derivable": "derivable", "rule": "rule", "own_action": "own action",
    "in_context": "in the context", "not_found": "not found", "contradicted": "contradicted",
    "not_verifiable": "not verifiable",
}  # fmt: skip
STATES: Final[tuple[EvidenceState, ...]] = tuple(STATE_WORDS)
"""The states of numbers in texts."""


def excerpt(text: str, start: int, quote: str, reach: int) -> tuple[str, str, str]:
    """A quotation with its sentence before and after it, ``reach`` characters each; alone if it is not at ``start``."""
    if not quote or not text.startswith(quote, start):
        return "", clean(quote), ""
    end = start + len(quote)
    before, after = _STOP.split(text[max(start - reach, 0) : start])[-1], text[end : end + reach]
    stop = _STOP.search(after)
    after, cut = (after[: stop.start()], False) if stop else (after, end + reach < len(text))
    if start > reach and len(before) == reach:
        before = "…" + before[before.find(" ") + 1 :]
    after = (after[: after.rfind(" ")] if " " in after else after) + "…" if cut else after
    spaced = (" " if before[-1:].isspace() else "", " " if after[:1].isspace() else "")
    return clean(before) + spaced[0], clean(quote), spaced[1] + clean(after)


def signed(value: float, digits: int = 2) -> str:
    """A difference, always with its sign, except zero."""
    text = number(value, digits)
    return f"+{text}" if value > 0 and text.strip("0.,") else text


def tally(levels: Iterable[str]) -> tuple[tuple[Level, str, str], ...]:
    """Count the claims at each level, as (level, number, words), from their levels or from a count of them."""
    reached = Counter(levels)
    return tuple((level, count(reached[level]), TALLY[level]) for level in LEVELS)


def tally_words(reached: Mapping[str, int]) -> str:
    """Format the number of claims at each level as one line."""
    return ", ".join(f"{n} {noun}" for _, n, noun in tally(reached))


words = count_words


def counted(value: int, noun: str, many: str | None = None) -> str:
    """A count in digits with its noun."""
    return f"{count(value)} {noun if value == 1 else many or noun + 's'}"


def interval(value: float, low: float | None, high: float | None, digits: int = 2) -> str:
    """A value with its interval; none where nothing varies."""
    ends = "no interval" if low is None or high is None or high - low < 1e-9 else span(low, high, digits)
    return f"{number(value, digits)} ({ends})"


def alpha(value: float) -> str:
    """A significance level without its leading zero."""
    return f"{value:g}".removeprefix("0")


def ordinal_span(first: int, last: int) -> str:
    """A rank or a range of ranks."""
    return str(first) if first == last else f"{first} to {last}"


class KnownValue(Measurement):
    """A measurement with a value, for type checkers; see `known`."""

    value: float


def known(item: Measurement | None) -> TypeGuard[KnownValue]:
    """True if something was measured and has a value."""
    return item is not None and item.value is not None


def state_words(measurement: Measurement) -> str:
    """The reason why there is no number, in words."""
    return undefined_reason(measurement.state)


def as_text(measurement: Measurement | None, digits: int = 2) -> str:
    """The value of a measurement, or the reason why there is none in words."""
    if known(measurement):
        return number(measurement.value, digits)
    return "not measured" if measurement is None else state_words(measurement)


def as_float(value: object) -> float | None:
    """A number from a measurement's detail as a float; None for anything else."""
    return float(value) if isinstance(value, (int, float)) else None


def detail_of(item: Measurement | None, key: str) -> float | None:
    """A number from the detail of a measurement; None if it has none."""
    return None if item is None else as_float(item.detail.get(key))


def count_in(item: Measurement, key: str, otherwise: str = "not measured", lead: str = "", end: str = "") -> str:
    """A count from the detail of a measurement between ``lead`` and ``end``; ``otherwise`` if there is none."""
    value = item.detail.get(key)
    return f"{lead}{count(value)}{end}" if isinstance(value, int) else otherwise


def p_of(item: Measurement | None, key: str = "p", lead: str = "", otherwise: str = "not tested") -> str:
    """A p-value from a measurement's detail after ``lead``; ``otherwise`` if there is none."""
    p = detail_of(item, key)
    return otherwise if p is None else f"{lead}{p_words(p)}"


def bounds_of(item: Measurement | None) -> tuple[float, float] | None:
    """The interval of a measurement; None if it has none."""
    return None if item is None or item.low is None or item.high is None else (item.low, item.high)


def limits(item: Measurement, form: Callable[[float, float], str] = span, otherwise: str = "no interval") -> str:
    """The interval of a measurement in words; ``otherwise`` if it has none."""
    ends = bounds_of(item)
    return otherwise if ends is None else form(*ends)


def interval_of(item: Measurement, form: Callable[[float, float], str] = span, lead: str = "") -> str:
    """The interval of a measurement to follow its value, in brackets or after a ``lead``; empty if there is none."""
    ends = limits(item, form, "")
    return ends and (f"{lead}{ends}" if lead else f" ({ends})")


def bootstrap_of(item: Measurement) -> tuple[float, float] | None:
    """The percentile bootstrap interval of a kappa; it is too narrow with few clusters and therefore printed second."""
    second = item.detail.get("bootstrap")
    low, high = (as_float(second.get(end)) for end in ("low", "high")) if isinstance(second, Mapping) else (None, None)
    return None if low is None or high is None else (low, high)


def estimate(item: KnownValue) -> str:
    """The value of a measurement with its interval."""
    return interval(item.value, item.low, item.high)


def with_ends(item: KnownValue, form: Callable[[float], str] = number) -> str:
    """The value in a given form with its interval; without an interval the value alone."""
    return form(item.value) + interval_of(item)


def difference(item: KnownValue, sign: int = 1) -> str:
    """A difference in points with its interval; ``sign`` −1 reverses its direction."""
    ends = limits(item, lambda low, high: span(low, high) if sign > 0 else span(-high, -low))
    return f"{signed(sign * item.value)} points ({ends})"


def n_words(item: Measurement) -> str:
    """The sample size of a measurement with its unit."""
    return count_of(item.n, item.n_of)


def moment(text: str) -> str:
    """An ISO date or time in words; any other text unchanged."""
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        return clean(text, 80)
    day = f"{when.day} {_MONTHS[when.month - 1]} {when.year}"
    return day if when.tzinfo is None else f"{day}, {when.astimezone(UTC):%H:%M} UTC"


def short_hash(digest: str) -> str:
    """The first and the last eight characters of a hash."""
    return digest if len(digest) <= 20 else f"{digest[:8]}…{digest[-8:]}"


def sentence(text: str) -> str:
    """A text with a capital letter and a full stop."""
    stripped = text.strip()
    return stripped and stripped[0].upper() + stripped[1:] + ("" if stripped[-1] in ".!?" else ".")


def text_width(text: str, size: float) -> float:
    """Approximate width of a text in the unit of ``size``, rounded up generously. Wide scripts take a full em."""
    ems = 0.0
    for char in text:
        if unicodedata.east_asian_width(char) in "WF":
            ems += 1.0
        elif char in " .,:;'|ijlI!-()":
            ems += 0.34
        else:
            ems += 0.68 if char.isupper() or char in "mwMW%@" else 0.57
    return ems * size


def fit(text: str, width: float, size: float) -> str:
    """A text cut with an ellipsis to fit a width."""
    if text_width(text, size) <= width:
        return text
    cut = text
    while cut and text_width(cut + "…", size) > width:
        cut = cut[:-1]
    return cut.rstrip() + "…"


def shortened(names: Sequence[str], width: float, size: float) -> tuple[str, ...]:
    """Names cut in the middle so that each fits a width and different names stay different."""

    def cut_middle(text: str, head: float) -> str:
        """The two ends of a text around an ellipsis; ``head`` is the share of characters kept at the start."""
        if text_width(text, size) <= width:
            return text
        for length in range(len(text) - 1, 0, -1):
            start = round(length * head)
            cut = f"{text[:start]}…{text[len(text) - length + start :]}"
            if text_width(cut, size) <= width:
                return cut
        return "…"

    for head in (0.4, 0.6, 0.2, 0.0):
        cuts = tuple(cut_middle(name, head) for name in names)
        if len(set(cuts)) == len(set(names)):
            return cuts
    places = {name: f"… {at}" for at, name in enumerate(dict.fromkeys(names), 1)}
    return tuple(fit(name, width - text_width(places[name], size), size).rstrip("…") + places[name] for name in names)


def cell_title(cell: str) -> str:
    """The title of a kind of control text, with a description of its texts."""
    pair = {str(kind): words for kind, words in CELLS.items()}.get(cell)
    return f"{pair[0]}: {pair[1]}" if pair else cell.replace("_", " ").capitalize()


def clipboard_text(statement: str, condition: str, study: str, locked_at: str | None, plan_hash: str) -> str:
    """The text for the clipboard: a sentence with its condition, study, plan and the date of its lock.

    >>> clipboard_text("A ranks first.", "Few clusters (5).", "Spring", "2026-11-21T02:00:15Z", "a41f")
    '“A ranks first.” Few clusters (5). (assaymark: Spring, 21 November 2026, plan a41f)'
    """
    when = moment(locked_at).partition(", ")[0] if locked_at else ""
    source = ", ".join(filter(None, (clean(study, 120), when, f"plan {clean(plan_hash)}")))
    return " ".join(filter(None, (f"“{statement}”", condition, f"(assaymark: {source})")))


def block(text: str, limit: int) -> str:
    """A text with its line breaks and with invisible characters made visible, truncated to ``limit`` characters.

    >>> block("a\\r\\nb\\u202ec", 10), block("x" * 12, 5)
    ('a\\nb[U+202E]c', 'xxxxx\\n[7 more characters are not shown]')
    """
    safe, excess = visible(text[:limit].replace("\r\n", "\n").replace("\r", "\n")), len(text) - limit
    return safe if excess <= 0 else f"{safe}\n[{count(excess)} more characters are not shown]"
