"""Format numbers and texts of records for readers, the same on pages and in terminals."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

MINUS: Final = "−"
NBSP: Final = "\u00a0"
# C0 and C1 controls, lone surrogates, and what no character is.
_UNSAFE: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
# Bidirectional controls, and zero-width characters.
_UNSEEN: Final = re.compile(
    "[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\U000e0000-\U000e007f]"
)
_SAME: Final = 1e-9  # what misses a cut-off by less reaches it
_NOTHING: Final = 1e-6  # an end of an interval below this is 0
_SPACES: Final = re.compile(r"\s+")
_APOSTROPHE: Final = re.compile(r"(?<=\w)'")
_ONE_OF: Final = re.compile(r"(?<![\d.,])1 (agent|call|cluster|cycle|decision|judge|point|record|trial)s\b")
_PLURAL: Final = re.compile(r"(\w+?)(ies|sses|s)$")
_ALL_OF: Final = re.compile(r"\b(\d+) of the \1 (?=[a-z]+s\b)")


def clean(text: str, limit: int | None = None) -> str:
    """Sanitise a text from a record for display: one line, no invisible characters, at most ``limit`` long."""
    # Most texts are plain already; a long ledger would spend half its time in the two expressions.
    plain = text.isprintable() and "  " not in text
    flat = text.strip() if plain else visible(_SPACES.sub(" ", text)).strip()
    return flat if limit is None or len(flat) <= limit else flat[: limit - 1].rstrip() + "…"


def visible(text: str) -> str:
    """Make control, bidirectional and zero-width characters of a text visible; spaces stay as they are."""
    return text if text.isprintable() else code_points(_UNSAFE.sub("\ufffd", text))


def code_points(text: str) -> str:
    """Replace bidirectional and zero-width characters of a text by their code points."""
    return text if text.isascii() else _UNSEEN.sub(lambda match: f"[U+{ord(match[0]):04X}]", text)


def prose(text: str, limit: int | None = None) -> str:
    """Format a sentence from a record: sanitised by `clean`, typographic apostrophes, singular nouns after 1."""
    shown = _APOSTROPHE.sub("’", clean(text, limit)).replace("the one agents", "the one agent")
    return _ALL_OF.sub(r"all \1 ", _ONE_OF.sub(r"1 \1", shown.replace("each of the other one ", "the other ")))


def number(value: float, digits: int = 2) -> str:
    """Format a statistic with fixed decimals and a true minus sign, never as negative zero."""
    text = f"{value:,.{digits}f}"
    if not text.strip("-0.,"):
        text = text.lstrip("-")
    return text.replace("-", MINUS)


def gate_digits(value: float, *cuts: float) -> int:
    """The decimals, two or more, with which a number does not read as reaching a cut-off that it misses.

    >>> gate_digits(0.19974, 0.2, 0.4), gate_digits(0.398, 0.2, 0.4), gate_digits(0.35, 0.2, 0.4)
    (4, 3, 2)
    """
    missed = [cut for cut in cuts if value < cut - _SAME]
    return next((digits for digits in range(2, 9) if not any(round(value, digits) >= cut for cut in missed)), 9)


def gate_number(value: float, *cuts: float) -> str:
    """Format a number beside its cut-offs, with the decimals of `gate_digits`."""
    return number(value, gate_digits(value, *cuts))


def end_digits(*ends: float, digits: int = 2) -> int:
    """The decimals, ``digits`` or more, with which no end of an interval loses its sign by reading as 0.

    >>> end_digits(-0.0048, 0.4), end_digits(0.0, 0.4), end_digits(-0.12, 0.4)
    (3, 2, 2)
    """
    return next((more for more in range(digits, 6) if all(abs(end) < _NOTHING or round(end, more) for end in ends)), 6)


def count(value: int) -> str:
    """Format a count with thousands separators."""
    return f"{value:,}"


_SMALL: Final = (
    "no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
)  # fmt: skip


def count_words(value: int) -> str:
    """Format a count: up to twelve as a word, larger ones as digits."""
    return _SMALL[value] if 0 <= value < len(_SMALL) else count(value)


def plural(value: int, noun: str, many: str | None = None) -> str:
    """Format a count in words with its noun."""
    return f"{count_words(value)} {noun if value == 1 else many or noun + 's'}"


def count_of(n: int, of: str) -> str:
    """Format a count with its noun, which records give in the plural; after 1 the noun is singular."""
    words = clean(of, 60)
    if n == 1:
        head, link, rest = words.partition(" of ")
        words = _PLURAL.sub(lambda word: word[1] + {"ies": "y", "sses": "ss", "s": ""}[word[2]], head) + link + rest
    return f"{count(n)} {words}".rstrip()


def percent(share: float, digits: int = 0) -> str:
    """Format a share in [0, 1] as a percentage; only exactly 0 and 1 are shown as 0 % and 100 %."""
    least = 10.0**-digits
    shown = round(100 * share, digits)
    if share > 0 and shown < least:
        return f"<{NBSP}{least:.{digits}f}{NBSP}%"
    if share < 1 and shown > 100 - least:
        return f">{NBSP}{100 - least:.{digits}f}{NBSP}%"
    return f"{number(shown, digits)}{NBSP}%"


def span(low: float, high: float, digits: int = 2) -> str:
    """Format a range of numbers."""
    return f"{number(low, digits)} to {number(high, digits)}"


def listing(items: Sequence[str], *, last: str = "and") -> str:
    """Join names for a sentence: "A, B and C"."""
    return f"{', '.join(items[:-1])} {last} {items[-1]}" if len(items) > 1 else "".join(items)


def p_words(p: float) -> str:
    """Format a p-value, such as "p = .012" or "p < .001"."""
    if p < 0.001:
        return "p < .001"
    return "p = 1" if p >= 0.9995 else f"p = {p:.3f}".replace("0.", ".", 1)


def undefined_reason(state: str) -> str:
    """Describe why a measurement has no value, from its state."""
    text = prose(state)
    if text.startswith("undefined"):
        return "not defined" + text.removeprefix("undefined")
    return text if text and text != "ok" else "not measured"


def bounds(low: float | None, high: float | None, level: float | None) -> str:
    """Format an interval with its level."""
    if low is None or high is None or high - low < 1e-9:
        return "no interval"
    return span(low, high, 3) + ("" if level is None else f", {percent(level)}")


def money(usd: float) -> str:
    """Format an amount in USD with two decimals, or two significant digits below one cent.

    >>> money(12.3), money(0.00123), money(0.0)
    ('12.30', '0.0012', '0.00')
    """
    return f"{usd:,.2f}" if usd >= 0.01 or usd == 0 else f"{usd:.2g}"
