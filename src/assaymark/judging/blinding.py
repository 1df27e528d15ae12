"""Blinding: replace names of agents and their vendors by neutral tokens, and keep the names of assets."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from itertools import chain, pairwise, repeat
from typing import Any

from assaymark.errors import InputError, Problem
from assaymark.records import Agent, grouped

Span = tuple[int, int]

_RUN = re.compile(r"[^\W\d_]+|\d+")
_RUN_TO_RUN = re.compile(r"[^\W_](?:.*[^\W_])?", re.DOTALL)
_TOKEN = re.compile(r"\[agent [A-Z]{1,2}\]")
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_HYPHENS = "\\-\u2010\u2011\u2012\u2013\u2014"
_SEPARATORS = f"[ _./:{_HYPHENS}]"
_GAP = f"{_SEPARATORS}{{0,2}}"
_SEPARATING = re.compile(f"{_SEPARATORS}+")
_MOST_TOKENS = 26 + 26 * 26
_LONG = 4000
_NON_ASCII = re.compile(r"[^\x00-\x7f]")

# Suffixes of a model's name that would identify it: versions and size words. A number after a space counts as a
# version only if it cannot be an amount.
_TRAIL = (
    rf"(?:[._{_HYPHENS}]?v?\d+(?:\.\d+)*[a-z]?(?![a-z0-9]))?"
    r"(?: v?\d\.\d(?!\d|[.,]\d| ?(?:%|percent|bps?\b|pp\b|x\b|points|million|billion|trillion|bn\b|[mbtk]\b)))?"
    rf"(?:[_:{_HYPHENS}](?:pro|mini|nano|flash|turbo|preview|ultra|max|plus|lite|thinking|instruct|chat|reasoning|latest"
    r"|exp|beta|high|medium|low|large|small|opus|sonnet|haiku|fast|heavy|code|codex|coder|reasoner|oss|vl|it|air|next"
    r"|omni|distill|terminus|speciale|maverick|scout|seed|text|[a-z]{0,2}\d+(?:[.x]\d+)*[a-z]{0,2})(?![a-z0-9])"
    r"| (?:pro|mini|nano|flash|opus|sonnet|haiku|ultra|code|codex|coder|4o|[rkmt][1-9](?:\.\d)?)(?![a-z0-9]))*"
)


@dataclass(frozen=True, slots=True)
class Anonymised:
    """A blinded text with its replacement counts.

    ``replaced`` counts the occurrences that became tokens, by name as it was listed; ``kept`` counts the occurrences
    of listed names that stayed because they are part of a kept string, by that string.
    """

    text: str
    replaced: Mapping[str, int]
    kept: Mapping[str, int]

    def __str__(self) -> str:
        return self.text


def anonymise(text: str, names: Iterable[str], *, keep: Iterable[str] = ()) -> Anonymised:
    """Replace every name in ``text`` by a neutral token, except inside the strings of ``keep``.

    Case, accents, width, invisible characters and letters that look like Latin ones are ignored; hyphens, spaces, dots
    and underscores within a name may be written either way ("GPT-5.5", "gpt 5.5", "gpt5"); a version after a name is
    replaced with it. Longer names are replaced before shorter ones. A name must be a separate word; scripts written
    without spaces need no boundary. Symbols are part of a name ("bot 😀" is not "bot 🚀"), but its words alone are
    replaced as well.

    Tokens are lettered by first appearance in ``text``, so neither the other names nor their order changes a letter,
    and the same text by authors with other names blinds to the same result. Within a text a name always has the same
    token, and different names have different ones (names beyond 702 share the last); spellings of a name that differ in
    case or separators share one. Existing tokens are kept and not reused: blinding is idempotent.

    Parameters
    ----------
    names : iterable of str
        Names to replace, in any order; see `blinding_names`.
    keep : iterable of str
        Strings to preserve exactly, such as tickers and company names in the universe. ``keep`` has priority over
        ``names``: of a name that is only partly inside a kept string, the rest is replaced.

    Raises
    ------
    InputError
        ``names`` or ``keep`` is a single string, which would be read letter by letter, or contains non-strings.

    Examples
    --------
    >>> str(anonymise("I am alder, not birch; alder.", {"birch", "alder"}))
    'I am [agent A], not [agent B]; [agent A].'
    >>> str(anonymise("As gpt5.5 I like Google.", ["GPT-5.5", "Google"], keep=["Google"]))
    'As [agent A] I like Google.'
    >>> anonymise("Claude Opus 4.8, says Claude", ["Claude", "Claude Opus"]).replaced
    {'Claude Opus': 1, 'Claude': 1}
    """
    return blinding_for(names, keep).apply_all([text])[0]


def blinding_for(names: Iterable[str], keep: Iterable[str]) -> Blinding:
    """Compile a blinding for these names and kept strings that can be applied to many texts."""
    pieces = grouped(_compile_names(_check_strings("names", names)), lambda name: name.pieces[0])
    return Blinding({piece: tuple(names) for piece, names in pieces.items()}, _fold_names(_check_strings("keep", keep)))


def _check_strings(argument: str, raw: Iterable[str]) -> tuple[str, ...]:
    """Return the checked strings of an argument, sorted."""
    if isinstance(raw, str):
        raise InputError("anonymise", [Problem(argument, f"must be a list of strings (got one string, {raw!r})")])
    strings = list(raw)
    if wrong := [string for string in strings if not isinstance(string, str)]:
        raise InputError("anonymise", [Problem(argument, f"must hold strings only (got {wrong[0]!r})")])
    return tuple(sorted(set(strings)))


@dataclass(frozen=True, slots=True)
class _Name:
    """One name: as listed, folded, the identity shared by its spellings, and the pieces that all spellings contain."""

    listed: str
    folded: str
    identity: str
    pieces: tuple[str, ...]
    """Substrings without white space, the longest first."""

    @classmethod
    def of(cls, listed: str, folded: str, identity: str) -> _Name:
        pieces = sorted(set(_RUN.findall(folded) or folded.split()), key=lambda piece: (-len(piece), piece))
        return cls(listed, folded, identity, tuple(pieces))


Edit = tuple[Span, str]
"""The span of a name in the text, and the name's identity."""
Finds = tuple[list[Edit], Mapping[str, int], Mapping[str, int]]
"""The edits of one text in text order, and the counts of names replaced and of strings kept."""


@dataclass(frozen=True, slots=True)
class Blinding:
    """Compiled names and kept strings, made by `blinding_for`."""

    names: Mapping[str, tuple[_Name, ...]]
    """The names by their longest pieces: most texts contain few pieces, and only those names are searched for."""
    keep: Mapping[str, str]
    """Kept strings as listed, by their folded form."""

    def apply_all(self, texts: Sequence[str]) -> list[Anonymised]:
        """Blind texts that belong together: tokens are lettered by first appearance across all texts, in order."""
        results = [self._find(text) for text in texts]
        identities = dict.fromkeys(identity for edits, _, _ in results for _, identity in edits)
        standing = {token for text in texts for token in _TOKEN.findall(text)} if identities else set()
        free = (token for token in map(_token, range(_MOST_TOKENS)) if token not in standing)
        tokens = dict(zip(identities, chain(free, repeat(_token(_MOST_TOKENS))), strict=False))
        blinded = []
        for text, (edits, replaced, spared) in zip(texts, results, strict=True):
            out, at = [], 0
            for (start, end), identity in edits:
                out += [text[at:start], tokens[identity]]
                at = end
            blinded.append(Anonymised("".join([*out, text[at:]]), replaced, spared))
        return blinded

    def _find(self, text: str) -> Finds:
        """Find the names in one text, outside kept strings."""
        edits, replaced, spared = self._find_folded(text, _FoldedText.of(text))
        odd = set() if text.isascii() else set(text)
        readings = [_FoldedText.of(text, invisible=" ")] if any(map(_invisible, odd)) else []
        readings += [_FoldedText.of(text, alike=True)] if odd & _look_alikes().keys() else []
        for reading in readings:
            others, counts, _ = self._find_folded(text, reading)
            if more := [edit for edit in others if not any(_overlap(edit[0], span) for span, _ in edits)]:
                edits = _drop_overlaps(sorted([*edits, *more]))
                replaced = dict(Counter(replaced) | Counter(counts))
        return edits, replaced, spared

    def _find_folded(self, text: str, folded: _FoldedText) -> Finds:
        """Find the names in one folded form of a text, longest first, outside kept strings and existing tokens."""
        # Long texts repeat most of their words: the set of distinct words is shorter and contains the same pieces.
        words = folded.text if len(folded.text) < _LONG else " ".join(set(folded.text.split()))
        candidates = (name for piece, names in self.names.items() if piece in words for name in names)
        there = [name for name in candidates if all(piece in words for piece in name.pieces[1:])]
        if not there:
            return [], {}, {}
        standing = [match.span() for match in _TOKEN.finditer(text)]
        if folded.origin is not None:
            position_of = {at: position for position, at in reversed(list(enumerate(folded.origin)))}
            standing = [(position_of[start], position_of[end - 1] + 1) for start, end in standing]
        found_spans: list[Edit] = [(span, "") for span in standing]
        replaced: Counter[str] = Counter()
        kept_at: dict[Span, str] = {}
        for name in sorted(there, key=lambda name: (-len(name.folded), name.folded)):
            # Every position at which the name occurs as a word, including overlapping ones.
            pattern, at = _name_pattern(name.folded), 0
            while standing_at := pattern.search(folded.text, at):
                match, at = standing_at.span(), standing_at.start() + 1
                if _is_one_word(folded.text[max(at - 2, 0) : at - 1], folded.text[at - 1]):
                    continue
                # what follows a name may have been found as a name itself, as the end of GPT-5-Codex
                taken = min((start for (start, _), _ in found_spans if match[0] < start < match[1]), default=match[1])
                shorter = pattern.match(folded.text, match[0], taken)
                if shorter is None or any(_overlap(shorter.span(), span) for span, _ in found_spans):
                    continue
                match = shorter.span()
                # Kept strings that occur as words in it; any other part of it with a letter or digit is the name.
                holes: list[Span] = []
                for string, listed in self.keep.items():
                    reach = match[1] + len(string) - 1
                    first = folded.text.find(string, max(match[0] - len(string) + 1, 0), reach)
                    while first >= 0:
                        stop = first + len(string)
                        around = folded.text[first - 1 : first], folded.text[stop : stop + 1]
                        if not _is_one_word(around[0], string[0]) and not _is_one_word(around[1], string[-1]):
                            holes.append((first, stop))
                            kept_at[first, stop] = listed
                        first = folded.text.find(string, first + 1, reach)
                start, pieces = match[0], []
                for low, high in [*sorted(holes), (match[1], match[1])]:
                    if start < low and (not holes or any(map(str.isalnum, folded.text[start:low]))):
                        pieces.append((start, low))
                    start = max(start, high)
                found_spans += [(piece, name.identity) for piece in pieces]
                replaced[name.listed] += bool(pieces)
        edits = sorted((folded.span(*span), identity) for span, identity in found_spans if identity)
        return _drop_overlaps(edits), dict(+replaced), dict(Counter(kept_at.values()))


@lru_cache(maxsize=64)
def _compile_names(names: tuple[str, ...]) -> tuple[_Name, ...]:
    """Compile names for the search: each as listed and, if that is still distinctive, without its outer symbols."""
    listed = _fold_names(names)
    by_text = {folded: _Name.of(name, folded, _identity(folded)) for folded, name in listed.items()}
    identities = {name.identity for name in by_text.values()}
    owners: dict[str, list[_Name]] = {}
    for name in by_text.values():
        lead, core, tail = _split_name(name.folded)
        # True if the words alone may count as the name
        if (lead or tail) and any(
            (not run.isdigit() and len(run) > (2 if run.isascii() else 1)) for run in _RUN.findall(core)
        ):
            owners.setdefault(core, []).append(name)
    for core, sharers in owners.items():
        shared = len({name.identity for name in sharers}) > 1 or _identity(core) in identities
        identity = _identity(core) if shared else sharers[0].identity
        by_text.setdefault(core, _Name.of(sharers[0].listed, core, identity))
    return tuple(by_text.values())


def _split_name(folded: str) -> tuple[list[str], str, list[str]]:
    """Split a name into leading symbols, words and trailing symbols; a name of symbols only counts as words."""
    core = _RUN_TO_RUN.search(folded)
    if core is None:
        return [], folded, []
    lead, tail = (_SEPARATING.split(outer) for outer in (folded[: core.start()], folded[core.end() :]))
    return list(filter(None, lead)), core.group(), list(filter(None, tail))


@lru_cache(maxsize=256)
def _fold_names(names: tuple[str, ...]) -> Mapping[str, str]:
    """Map the folded form of each name to the name as listed."""
    listed: dict[str, str] = {}
    for name in names:
        if folded := _FoldedText.of(name).text.strip():
            listed.setdefault(folded, name)
    return listed


@dataclass(frozen=True, slots=True)
class _FoldedText:
    """A text folded for comparison, and the original position of each character (None: unchanged positions)."""

    text: str
    origin: tuple[int, ...] | None

    @classmethod
    def of(cls, text: str, *, invisible: str = "", alike: bool = False) -> _FoldedText:
        """Fold case, compatibility forms and accents, and with ``alike`` letters that resemble Latin ones.

        Invisible characters are dropped, or read as ``invisible``.
        """
        if text.isascii():
            return cls(text.lower(), None)
        folds = {char: invisible if _invisible(char) else _fold(char) for char in set(text)}
        if alike:
            folds |= {char: latin for char, latin in _look_alikes().items() if char in folds}
        if all(len(fold) == 1 for fold in folds.values()):
            return cls(_NON_ASCII.sub(lambda match: folds[match.group()], text).lower(), None)
        pieces = [folds[char] for char in text]
        origin = [at for at, piece in enumerate(pieces) for _ in piece]
        return cls("".join(pieces).lower(), (*origin, len(text)))

    def span(self, start: int, end: int) -> Span:
        """Return the span of the original text that was folded into ``start:end``."""
        if self.origin is None:
            return start, end
        first, stop = self.origin[start], self.origin[end]
        return first, max(stop, self.origin[end - 1] + 1)


@lru_cache(maxsize=4096)
def _invisible(char: str) -> bool:
    return unicodedata.category(char) == "Cf"


@lru_cache(maxsize=65_536)
def _fold(char: str) -> str:
    """Return one character without case, width and accent; empty if it is invisible."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", char) if unicodedata.category(c) not in ("Mn", "Cf"))
    return unicodedata.normalize("NFKD", plain.casefold())


def _identity(folded: str) -> str:
    """Return the form that all spellings of one name share: without separators, unless nothing would remain."""
    return _SEPARATING.sub("", folded) or folded


def _token(index: int) -> str:
    """Return the neutral token with this index: A to Z, then AA to ZZ; all later names share ZZ."""
    index = min(index, _MOST_TOKENS - 1)
    letters = chr(65 + index) if index < 26 else chr(65 + (index - 26) // 26) + chr(65 + (index - 26) % 26)
    return f"[agent {letters}]"


@lru_cache(maxsize=4096)
def _name_pattern(folded: str) -> re.Pattern[str]:
    """Compile the pattern that finds a folded name in a folded text."""
    lead, core, tail = _split_name(folded)
    runs = list(_RUN.finditer(core))
    if not runs:
        return re.compile(re.escape(folded))
    joint = f"[{_HYPHENS}]?" if len(core) <= 3 else _GAP
    parts = [*(re.escape(symbols) + _GAP for symbols in lead), re.escape(runs[0].group())]
    for before, run in pairwise(runs):
        written = re.escape(core[before.end() : run.start()])
        parts += [f"(?:{written}|{joint})", re.escape(run.group())]
    parts += [_GAP + re.escape(symbols) for symbols in tail]
    if not tail and core[-1].isascii():
        parts.append(_TRAIL)
    if inner := _wordlike((tail[-1] if tail else core)[-1]):
        parts.append(f"(?!{inner})")
    return re.compile("".join(parts))


@lru_cache(maxsize=4096)
def _wordlike(char: str) -> str:
    """Return the characters that form one word with an adjacent ``char``; empty for symbols and unspaced scripts."""
    if not (char.isalnum() or unicodedata.category(char).startswith("M")):
        return ""
    if char.isascii():
        return "[a-z0-9]"
    return "" if re.match(f"[{_UNSPACED}]", char) else rf"[^\W_\x00-\x7f{_UNSPACED}]"


def _is_one_word(neighbour: str, char: str) -> bool:
    """Return True if a neighbouring character would form one word with ``char``."""
    inner = _wordlike(char)
    return bool(inner and neighbour and re.match(inner, neighbour))


def _overlap(a: Span, b: Span) -> bool:
    """Return True if two spans share a position."""
    return a[0] < b[1] and b[0] < a[1]


def _drop_overlaps(edits: Iterable[Edit]) -> list[Edit]:
    """Sort the edits and drop each one that overlaps an earlier edit."""
    chosen: list[Edit] = []
    for edit in edits:
        if not chosen or edit[0][0] >= chosen[-1][0][1]:
            chosen.append(edit)
    return chosen


@cache
def _name_lists() -> dict[str, Any]:
    """Load the built-in lists of names."""
    return tomllib.loads((files("assaymark.judging") / "names.toml").read_text(encoding="utf-8"))


@cache
def _look_alikes() -> dict[str, str]:
    """Return the Latin letter of each letter that resembles it."""
    return {char: latin for latin, alike in _name_lists()["alike"].items() for char in alike}


def blinding_names(agents: Iterable[Agent]) -> tuple[str, ...]:
    """Return the names to remove from texts before a judge sees them."""
    lists = _name_lists()
    ordinary = set(lists["ordinary"]["words"])
    known_agents = list(agents)
    candidates: set[str] = set()
    for agent in known_agents:
        candidates |= {agent.id, agent.family, agent.model}
        for full in (agent.id, agent.model):
            bare = full.rpartition("/")[2]
            undated = re.sub(r"[-@](?:20\d{6}|20\d\d-\d\d-\d\d|\d{4})$", "", bare)
            versioned = re.sub(r"[-_](?:preview|latest|instruct|exp)$", "", undated)
            candidates |= {full.partition("/")[0], bare, undated, versioned, *re.findall(r"[^\W\d_]{4,}", bare)}
    runs = {name.strip(): _RUN.findall(_FoldedText.of(name).text) for name in candidates if name.strip()}
    words = {word for pieces in runs.values() for word in pieces}
    companies = {lists["belongs"][word] for word in words & lists["belongs"].keys()} | (words & lists["listed"].keys())
    listed = [name for company in sorted(companies) for name in lists["listed"][company]]
    # A name made only of short parts, numbers and trading terms does not identify anyone.
    derived = sorted(
        name
        for name, pieces in runs.items()
        if any(len(run) > 2 and not run.isdigit() and run not in ordinary for run in pieces)
    )
    prints = sorted({agent.fingerprint for agent in known_agents if agent.fingerprint and len(agent.fingerprint) > 5})
    return tuple(dict.fromkeys([*lists["models"], *lists["makers"], *listed, *derived, *prints]))


def company_names(symbols: Iterable[str]) -> tuple[str, ...]:
    """Return the usual names of the listed companies among these symbols; blinding keeps them as market facts."""
    companies: Mapping[str, list[str]] = _name_lists()["held"]
    return tuple(dict.fromkeys(name for symbol in sorted(set(symbols)) for name in companies.get(symbol, ())))
