"""Whether a sentence plainly states one figure: subject, field, horizon, copula, number, and not one word more."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from assaymark.judging.evidence.around import Around
from assaymark.judging.evidence.lexicon import word_set
from assaymark.judging.evidence.material import FieldLabel, Material
from assaymark.judging.evidence.words import SPAN_WORDS, SPELLED, canonical, is_horizon, lower_of, words_in

_PLAIN = word_set("is was are of at the a an its s in over for has stands stood sits equals now currently evidence")
_BEHIND = word_set("over in for the now currently")
_WINDOW = word_set("last past trailing latest")
_SPAN = SPAN_WORDS | SPELLED.keys() | {"trading"}
_OPENERS = word_set("so hence therefore thus i we")
_TURNS = word_set("and but")
# words that say the same as another and nothing else; a gain or a momentum may be measured in another way
_SAME = {
    "vol": "volatility", "vols": "volatility", "dd": "drawdown", "corr": "correlation", "returned": "return",
}  # fmt: skip
_POINTS = re.compile(r"p(?:oin)?ts?\b|pps?\b|[kKMBTx×]\Z", re.IGNORECASE)
_LEFT_OVER = re.compile(r"(?:[\s'’`:=_\-–—|•·#]|\*\*)*\Z")
_LEFT_OVER_BESIDE = re.compile(r"(?:[\s'’`:=_\-–—|•·#,;()]|\*\*)*\Z")
_ASKS = "?？"

_ELSEWHEN = word_set(
    """
    ago earlier previously formerly historical historically yesterday backtest backtested simulated simulation scenario
    hypothetical hypothetically suppose supposing imagine assume assumed assuming pretend if would could should might
    january february april june july august september october november december
    """
)
_DISPUTED = word_set(
    """
    false wrong incorrect incorrectly untrue mistake mistaken misprint typo claim claims claimed alleged allegedly
    supposedly rumour rumor quote quoted example stale outdated doubt doubtful disagree
    """
)
_OTHER_BASIS = word_set(
    """
    annualised annualized gross net fee fees cost costs tax taxes hedged currency eur euro euros gbp jpy denominated
    excess log median forecast forecasts
    """
)
_BESIDE = _ELSEWHEN | _DISPUTED | _OTHER_BASIS
_DOUBT = _BESIDE | word_set(
    "not no never t without neither nor or instead rather except last prior than before after model usd dollar dollars"
)
_EARLIER = re.compile(r"\blast (?:year|month|quarter|week|season|time)\b")


@lru_cache(maxsize=1 << 12)
def is_doubted(before: str, after: str) -> bool:
    """Whether a neighbouring sentence sets another time or basis, supposes, quotes or takes back.

    >>> is_doubted("A year ago things looked good", ""), is_doubted("Momentum is strong", "I buy")
    (True, False)
    """
    for text in (before, after):
        lower = lower_of(text)
        if not _BESIDE.isdisjoint(words_in(lower, 0, len(lower)).lowers) or _EARLIER.search(lower):
            return True
    return False


def is_plain_statement(material: Material, around: Around, label: FieldLabel) -> bool:
    """Whether the sentence around a number says no more than that this field of the subject is the number.

    Only words of closed lists may stand in it, beside the names, the field and its horizon: any other one (a negator,
    a time, a measure, a peer, a currency) makes it a statement about something else. What follows may be a conclusion
    ("so I buy it"), or a further figure that is stated just as plainly.
    """
    place = around.place
    start, end = place.sentence
    if place.read.pieces.whole(around.number.start) != (start, end) or place.read.text[end : end + 1] in tuple(_ASKS):
        return False
    if not all(map(_may_follow, around.trail)):
        return False
    if _POINTS.search(around.number.quote) or not around.horizons <= {label.horizon}:
        return False
    tokens = _tokens(around)
    left, right = place.clause
    before, behind = around.number.start, around.number.end
    lead = [token for token in tokens if left <= token.start < before]
    trail = [token for token in tokens if behind <= token.start < right]
    rest = _Rest(tokens, material, label)
    return (
        _names_field(lead, label)
        and all(token.kind != "word" or _is_field_word(token.lower, label) or token.lower in _PLAIN for token in lead)
        and all(token.kind == "horizon" or token.lower in _BEHIND for token in trail)
        and _nothing_else(around, tokens, left, right, _LEFT_OVER)
        and rest.leads(start, left)
        and rest.follows(right, end)
        and _nothing_else(around, tokens, start, left, _LEFT_OVER_BESIDE)
        and (rest.concludes(right, end) or _nothing_else(around, tokens, right, end, _LEFT_OVER_BESIDE))
    )


def _may_follow(lower: str) -> bool:
    """Whether a word can stand behind the number at all: as a rule none does but those of a horizon."""
    return lower in _BEHIND or lower in _WINDOW or lower in _SPAN or lower[0].isdigit()


@dataclass(frozen=True, slots=True)
class _Token:
    """A word of the sentence, a name, a horizon or a number."""

    start: int
    end: int
    lower: str
    kind: str


def _tokens(around: Around) -> list[_Token]:
    """The sentence as names, horizons, numbers and single words, in order."""
    place = around.place
    start, end = place.sentence
    sentence = place.read.sentence_at(around.number.start)
    numbers = place.read.near(start, end)
    taken = [_Token(one.start, one.end, "", "number") for one in numbers]
    taken += [_Token(one.start, one.end, "", "name") for one in sentence.mentions if start <= one.start < end]
    taken += [_Token(first, last, "", "horizon") for first, last, _ in sentence.spoken.spans(start, end)]
    words = sentence.words
    for at in range(*words.within(start, end)):
        first, last = words.starts[at], words.end(at)
        if not any(one.start < last and first < one.end for one in taken):
            kind = "horizon" if is_horizon(words.forms[at]) else "word"
            taken.append(_Token(first, last, words.lowers[at], kind))
    taken.sort(key=lambda token: token.start)
    return list(_windows(taken))


def _windows(tokens: Sequence[_Token]) -> Iterator[_Token]:
    """The tokens without the "last" of "the last 21 sessions" and the "to" of "beta to SPY"."""
    for at, token in enumerate(tokens):
        following = tokens[at + 1].kind if at + 1 < len(tokens) else ""
        if token.lower in _WINDOW and following == "horizon":
            continue
        if token.lower == "to" and following == "name" and at and tokens[at - 1].lower == "beta":
            continue
        yield token


def _names_field(lead: Sequence[_Token], label: FieldLabel) -> bool:
    """Whether every word of the field stands before the number, in the field's own words."""
    said = {_plain_form(token.lower) for token in lead if token.kind == "word"}
    wanted = {_plain_form(word) for word in label.printed if canonical(word) in label.kinds}
    names = any(token.kind == "name" for token in lead)
    missing = wanted - said
    # the benchmark in "beta to SPY" is read as a name
    return bool(said & wanted) and (not missing or (names and len(missing) == 1 and len(wanted) > 1))


def _is_field_word(lower: str, label: FieldLabel) -> bool:
    return _plain_form(lower) in _forms(label.printed)


@lru_cache(maxsize=1 << 12)
def _forms(printed: frozenset[str]) -> frozenset[str]:
    return frozenset(map(_plain_form, printed))


def _plain_form(lower: str) -> str:
    """A word without its plural; only words that mean exactly the same are joined."""
    if lower in _SAME:
        return _SAME[lower]
    return lower[:-1] if len(lower) > 3 and lower.endswith("s") and not lower.endswith(("ss", "us", "is")) else lower


class _Rest:
    """What stands in the sentence outside the number's own clause."""

    __slots__ = ("_fields", "_label", "_tokens")

    def __init__(self, tokens: Sequence[_Token], material: Material, label: FieldLabel) -> None:
        self._tokens = tokens
        self._label = label
        self._fields = frozenset().union(*(_forms(one.printed) for one in material.cells.labels))

    def leads(self, start: int, end: int) -> bool:
        """Whether what comes first sets no scene: only names, or further figures that are stated as plainly."""
        part = self._within(start, end)
        if any(token.kind == "number" for token in part):
            return self._plain(part)
        return all(token.kind == "name" or token.lower in _PLAIN for token in part)

    def follows(self, start: int, end: int) -> bool:
        """Whether what comes after takes nothing back."""
        part = self._within(start, end)
        if self.concludes(start, end):
            return _DOUBT.isdisjoint(token.lower for token in part)
        if any(token.kind == "number" for token in part) and part[0].kind != "number":
            return _DOUBT.isdisjoint(token.lower for token in part)
        return all(token.kind == "horizon" or token.lower in _BEHIND for token in part)

    def concludes(self, start: int, end: int) -> bool:
        """Whether what comes after is a conclusion: "so ...", "and I ..."."""
        said = [token.lower for token in self._within(start, end)[:2]]
        if said and said[0] in _TURNS:
            said = said[1:]
        return bool(said) and said[0] in _OPENERS

    def _plain(self, part: Sequence[_Token]) -> bool:
        return all(
            token.kind != "word"
            or token.lower in _PLAIN
            or token.lower in _TURNS
            or _plain_form(token.lower) in self._fields
            for token in part
        )

    def _within(self, start: int, end: int) -> list[_Token]:
        return [token for token in self._tokens if start <= token.start < end]


def _nothing_else(around: Around, tokens: Sequence[_Token], start: int, end: int, allowed: re.Pattern[str]) -> bool:
    """Whether nothing but harmless marks stands between the tokens: a ``~``, a quotation mark or a ``€`` is a doubt."""
    at, text = start, around.place.read.text
    for token in tokens:
        if start <= token.start < end:
            if not _is_blank(text[at : token.start], allowed):
                return False
            at = max(at, token.end)
    return _is_blank(text[at:end], allowed)


def _is_blank(text: str, allowed: re.Pattern[str]) -> bool:
    """Whether a stretch holds only allowed marks, and the words that `_windows` leaves out."""
    return bool(allowed.match(_LEFT_OUT.sub("", text)))


_LEFT_OUT = re.compile(r"\b(?:last|past|trailing|latest|to)\b", re.IGNORECASE)
