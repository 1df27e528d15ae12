"""Blinding: names of agents and their makers become neutral tokens, names of what is traded stay."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from itertools import pairwise
from typing import Any

from assaymark.records import Agent

Span = tuple[int, int]

_RUN = re.compile(r"[^\W\d_]+|\d+")
_TOKEN = re.compile(r"\[agent [A-Z]{1,2}\]")
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_HYPHENS = "\\-\u2010\u2011\u2012\u2013\u2014"
_GAP = f"[ _./:{_HYPHENS}]{{0,2}}"
_MOST_TOKENS = 26 + 26 * 26

# What may trail a model's name and would give it away: versions and size words. A number after a space only counts as
# a version when it cannot be an amount.
_TRAIL = (
    rf"(?:[._{_HYPHENS}]?v?\d+(?:\.\d+)*[a-z]?(?![a-z0-9]))?"
    r"(?: v?\d\.\d(?!\d|[.,]\d| ?(?:%|percent|bps?\b|pp\b|x\b|points|million|billion|trillion|bn\b|[mbtk]\b)))?"
    rf"(?:[_{_HYPHENS}](?:pro|mini|nano|flash|turbo|preview|ultra|max|plus|lite|thinking|instruct|chat|reasoning|latest"
    r"|exp|beta|high|medium|low|large|small|opus|sonnet|haiku|\d+(?:\.\d+)*b?)(?![a-z0-9])"
    r"| (?:pro|mini|nano|flash|opus|sonnet|haiku|ultra)(?![a-z0-9]))*"
)


@dataclass(frozen=True, slots=True)
class Anonymised:
    """A blinded text and its audit.

    ``replaced`` counts the occurrences that became tokens, by name as it was listed; ``kept`` counts the occurrences
    of listed names that stayed because they stand in a kept string, by that string.
    """

    text: str
    replaced: Mapping[str, int]
    kept: Mapping[str, int]

    def __str__(self) -> str:
        return self.text


def anonymise(text: str, names: Iterable[str], *, keep: Iterable[str] = ()) -> Anonymised:
    """``text`` with every name replaced by a neutral token, except inside the strings of ``keep``.

    Case, accents, width and invisible characters are ignored; hyphens, spaces, dots and underscores within a name may
    be written either way ("GPT-5.5", "gpt 5.5", "gpt5"); a version that trails a name goes with it. Longer names are
    replaced before shorter ones. A name must stand as a word of its own; scripts written without spaces need no
    boundary. A name always gets the same token, by its place in ``names``, whatever the text; writings of a name that
    differ in case or separators share one. Tokens that already stand in the text are left alone, so that blinding
    twice is blinding once.

    Parameters
    ----------
    names : iterable of str
        What to replace; see `blinding_names`.
    keep : iterable of str
        What must survive byte for byte, such as tickers and company names in the universe. ``keep`` wins over
        ``names``: of a name that only partly lies in a kept string, the rest is replaced.

    Examples
    --------
    >>> str(anonymise("As gpt5.5 I like Google.", ["GPT-5.5", "Google"], keep=["Google"]))
    'As [agent A] I like Google.'
    >>> anonymise("Claude Opus 4.8, says Claude", ["Claude", "Claude Opus"]).replaced
    {'Claude Opus': 1, 'Claude': 1}
    """
    return compiled(names, keep).apply(text)


def compiled(names: Iterable[str], keep: Iterable[str]) -> Blinding:
    """The blinding for these names and kept strings, ready for many texts."""
    made = _compiled_names(tuple(names))
    return Blinding(made, frozenset(name.piece for name in made), _listed(tuple(keep)))


@dataclass(frozen=True, slots=True)
class _Name:
    """One name: as listed and folded, its token, and the longest piece that every writing of it contains."""

    listed: str
    folded: str
    token: str
    piece: str


@dataclass(frozen=True, slots=True)
class Blinding:
    """Compiled names and kept strings. Make one with `compiled`; names come longest first."""

    names: tuple[_Name, ...]
    pieces: frozenset[str]
    """The pieces of all names: most texts hold none, and are done with."""
    keep: Mapping[str, str]
    """Kept strings as they were listed, by their folded form."""

    def apply(self, text: str) -> Anonymised:
        """Blind one text."""
        folded = _Folded.of(text)
        there = {piece for piece in self.pieces if piece in folded.text}
        candidates = [name for name in self.names if name.piece in there]
        if not candidates:
            return Anonymised(text, {}, {})
        return _replace(text, folded, candidates, self.keep)


@lru_cache(maxsize=64)
def _compiled_names(names: tuple[str, ...]) -> tuple[_Name, ...]:
    """The names, longest first, with their tokens by place."""
    tokens: dict[str, str] = {}
    made: dict[str, _Name] = {}
    for name in names:
        folded = _Folded.of(name.strip()).text
        if folded and folded not in made:
            token = tokens.setdefault(_identity(folded), _token(len(tokens)))
            made[folded] = _Name(name, folded, token, max(_RUN.findall(folded), key=len, default=folded))
    return tuple(made[folded] for folded in sorted(made, key=lambda folded: (-len(folded), folded)))


@lru_cache(maxsize=256)
def _listed(keep: tuple[str, ...]) -> Mapping[str, str]:
    """Kept strings by their folded form."""
    listed: dict[str, str] = {}
    for name in keep:
        if folded := _Folded.of(name.strip()).text:
            listed.setdefault(folded, name)
    return listed


@dataclass(frozen=True, slots=True)
class _Folded:
    """A text for comparison, and for each of its positions where it came from (None: the same positions)."""

    text: str
    origin: tuple[int, ...] | None

    @classmethod
    def of(cls, text: str) -> _Folded:
        """Fold case, compatibility forms and accents; drop invisible characters."""
        if text.isascii():
            return cls(text.lower(), None)
        folds = {ord(char): _fold(char) for char in set(text)}
        if all(len(fold) == 1 for fold in folds.values()):
            return cls(text.translate(folds), None)
        pieces = [folds[ord(char)] for char in text]
        origin = [at for at, piece in enumerate(pieces) for _ in piece]
        return cls("".join(pieces), (*origin, len(text)))

    def span(self, start: int, end: int) -> Span:
        """The positions in the original text that were folded into ``start:end``."""
        if self.origin is None:
            return start, end
        first, stop = self.origin[start], self.origin[end]
        return first, max(stop, self.origin[end - 1] + 1)


@lru_cache(maxsize=65_536)
def _fold(char: str) -> str:
    """One character without case, width, accent and, if it is invisible, without itself."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", char) if unicodedata.category(c) not in ("Mn", "Cf"))
    return unicodedata.normalize("NFKD", plain.casefold())


def _identity(folded: str) -> str:
    """What two writings of one name have in common."""
    return "".join(_RUN.findall(folded)) or folded


def _token(index: int) -> str:
    """The neutral token with this index: A to Z, then AA to ZZ, which is then shared."""
    index = min(index, _MOST_TOKENS - 1)
    letters = chr(65 + index) if index < 26 else chr(65 + (index - 26) // 26) + chr(65 + (index - 26) % 26)
    return f"[agent {letters}]"


@lru_cache(maxsize=4096)
def _name_pattern(folded: str) -> re.Pattern[str]:
    """The pattern that finds a folded name in a folded text.

    It begins with a literal, which is what makes the search fast; what may stand before is looked at afterwards.
    """
    runs = list(_RUN.finditer(folded))
    if not runs:
        return re.compile(re.escape(folded))
    tight = len(folded) <= 3
    parts = [re.escape(runs[0].group())]
    for before, run in pairwise(runs):
        written = re.escape(folded[before.end() : run.start()])
        gap = f"[{_HYPHENS}]?" if tight else _GAP
        parts += [f"(?:{written}|{gap})", re.escape(run.group())]
    last = runs[-1].group()[-1]
    trail = _TRAIL if last.isascii() else ""
    after = f"(?!{inner})" if (inner := _wordlike(last)) else ""
    return re.compile(f"{''.join(parts)}{trail}{after}")


@lru_cache(maxsize=4096)
def _wordlike(char: str) -> str:
    """The characters that, beside ``char``, would make one word with it; empty for scripts without spaces."""
    if char.isascii():
        return "[a-z0-9]" if char.isalnum() else ""
    return "" if re.match(f"[{_UNSPACED}]", char) else rf"[^\W_\x00-\x7f{_UNSPACED}]"


def _kept_near(span: Span, text: str, keep: Mapping[str, str]) -> list[tuple[Span, str]]:
    """Where kept strings stand as words in the folded text and overlap a span."""
    found = []
    for folded, listed in keep.items():
        at = text.find(folded, max(span[0] - len(folded) + 1, 0), span[1] + len(folded) - 1)
        while at >= 0:
            end = at + len(folded)
            if not _joined(text[at - 1 : at], folded[0]) and not _joined(text[end : end + 1], folded[-1]):
                found.append(((at, end), listed))
            at = text.find(folded, at + 1, span[1] + len(folded) - 1)
    return found


def _joined(neighbour: str, char: str) -> bool:
    """Whether a neighbouring character would make one word with ``char``."""
    inner = _wordlike(char)
    return bool(inner and neighbour and re.match(inner, neighbour))


def _replace(text: str, folded: _Folded, names: list[_Name], keep: Mapping[str, str]) -> Anonymised:
    """Replace the names, longest first, outside of kept strings and of tokens that are already there."""
    taken: list[tuple[Span, str | None]] = [(span, None) for span in _token_spans(text, folded)]
    replaced: Counter[str] = Counter()
    left: dict[Span, str] = {}
    for name in names:
        for match in _matches(name, folded.text):
            if any(_overlap(match, span) for span, _ in taken):
                continue
            inside = _kept_near(match, folded.text, keep)
            left.update(inside)
            pieces = _outside(match, [span for span, _ in inside], folded.text)
            taken += [(piece, name.token) for piece in pieces]
            replaced[name.listed] += bool(pieces)
    edits = [(folded.span(*span), token) for span, token in taken if token is not None]
    return Anonymised(_edited(text, edits), dict(+replaced), dict(Counter(left.values())))


def _token_spans(text: str, folded: _Folded) -> list[Span]:
    """Where tokens already stand, in positions of the folded text."""
    if folded.origin is None:
        return [match.span() for match in _TOKEN.finditer(text)]
    where = {at: position for position, at in reversed(list(enumerate(folded.origin)))}
    return [(where[match.start()], where[match.end() - 1] + 1) for match in _TOKEN.finditer(text)]


def _matches(name: _Name, text: str) -> Iterator[Span]:
    """Every place where a name stands as a word, overlapping ones included."""
    pattern, first = _name_pattern(name.folded), _RUN.search(name.folded)
    at = 0
    while match := pattern.search(text, at):
        at = match.start() + 1
        if not (first and _joined(text[max(at - 2, 0) : at - 1], first.group()[0])):
            yield match.span()


def _overlap(a: Span, b: Span) -> bool:
    """Whether two spans share a position."""
    return a[0] < b[1] and b[0] < a[1]


def _outside(span: Span, holes: list[Span], text: str) -> list[Span]:
    """The parts of a span outside of the holes that hold any letter or digit."""
    start, end = span
    parts = []
    for low, high in sorted(holes):
        parts.append((start, low))
        start = max(start, high)
    parts.append((start, end))
    return [(a, b) for a, b in parts if a < b and (not holes or any(char.isalnum() for char in text[a:b]))]


def _edited(text: str, edits: list[tuple[Span, str]]) -> str:
    """The text with each span replaced; spans that touch one original character are replaced once."""
    out, at = [], 0
    for (start, end), token in sorted(edits):
        if start >= at:
            out += [text[at:start], token]
            at = end
    return "".join([*out, text[at:]])


# --- which names ------------------------------------------------------------------------------------------------------


@cache
def _known() -> dict[str, Any]:
    """The built-in lists."""
    return tomllib.loads((files("assaymark.judging") / "names.toml").read_text(encoding="utf-8"))


def blinding_names(agents: Iterable[Agent]) -> tuple[str, ...]:
    """The names to take out of texts before a judge sees them.

    These are the models and makers that everybody knows, then whatever names the given agents: ids, families, model
    ids with and without provider and date, telling words of model ids, fingerprints. The names of listed companies
    are included only if an agent belongs to one, since elsewhere they are market facts. A name made of words of the
    trade alone ("momentum", "equal-weight", "agent-1") is left out: it identifies nobody, and every rationale uses it.
    The result depends on the set of names only, not on which agent carries which.

    >>> names = blinding_names([Agent(id="desk-zeta9", family="google", model="google/gemini-3.1-pro-preview")])
    >>> "desk-zeta9" in names, "Google" in names, "Amazon" in names
    (True, True, False)
    """
    known = _known()
    given = list(agents)
    own: set[str] = set()
    for agent in given:
        own |= _agent_names(agent)
    words = {word for name in own for word in _RUN.findall(_Folded.of(name).text)}
    companies = sorted(
        {*(known["belongs"][word] for word in words & known["belongs"].keys()), *(words & known["listed"].keys())}
    )
    listed = [name for company in companies for name in known["listed"][company]]
    derived = sorted(name for name in own if _identifies(name))
    prints = sorted({agent.fingerprint for agent in given if agent.fingerprint and len(agent.fingerprint) > 5})
    return tuple(dict.fromkeys([*known["models"], *known["makers"], *listed, *derived, *prints]))


def _agent_names(agent: Agent) -> set[str]:
    """Everything by which one agent may be called."""
    names = {agent.id, agent.family, agent.model}
    for full in (agent.id, agent.model):
        bare = full.rpartition("/")[2]
        undated = re.sub(r"[-@](?:20\d{6}|20\d\d-\d\d-\d\d|\d{4})$", "", bare)
        versioned = re.sub(r"[-_](?:preview|latest|instruct|exp)$", "", undated)
        names |= {full.partition("/")[0], bare, undated, versioned}
        names |= set(re.findall(r"[^\W\d_]{4,}", bare))
    return {name.strip() for name in names if name.strip()}


def _identifies(name: str) -> bool:
    """Whether a name tells anything: not when it is all short bits, numbers and words of the trade."""
    runs = _RUN.findall(_Folded.of(name).text)
    ordinary = set(_known()["ordinary"]["words"])
    return any(len(run) > 2 and not run.isdigit() and run not in ordinary for run in runs)
