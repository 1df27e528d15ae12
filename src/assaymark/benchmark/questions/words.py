"""Words in a reply: directions, decisions, regimes and changes, with their negations."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import cast

from assaymark.benchmark.questions.amounts import Reading, values_in
from assaymark.benchmark.questions.payloads import (
    REGIME_NAMES,
    Change,
    Direction,
    Regime,
    RegimeView,
    Side,
    Trade,
    Way,
)

_NEGATED = re.compile(r"\b(?:not|no|never|neither|nor|isn't|won't|n't)\s+(?:be\s+|a\s+|an\s+|the\s+)?$", re.IGNORECASE)
_WAYS: Mapping[str, Way] = {
    "positive": "positive", "negative": "negative", "flat": "flat", "up": "positive", "down": "negative",
    "neutral": "flat",
}  # fmt: skip
_CLASSES: Mapping[str, str] = {
    "equity": r"equit(?:y|ies)|stocks?",
    "bond": r"bonds?|fixed[ _]income",
    "commodity": r"commodit(?:y|ies)",
    "real_estate": r"real[ _-]?estate|reits?",
    "crypto": r"crypto(?:currenc(?:y|ies))?",
    "cash": r"cash(?:[ _]equivalents?)?",
}
_CHANGES: Mapping[str, Change] = {
    "increas": "increase", "overweight": "increase", "raise": "increase", "decreas": "decrease",
    "reduc": "decrease", "underweight": "decrease", "lower": "decrease", "hold": "hold", "maintain": "hold",
    "neutral": "hold", "keep": "hold", "unchanged": "hold",
}  # fmt: skip
_CHANGE = rf"({'|'.join(_CHANGES)})"
_YES = re.compile(
    r"\byes\b|(?<!not )\b(?:should|must|needs? to) (?:be )?rebalance|rebalanc\w* is (?:needed|required)", re.I
)
_NO = re.compile(
    r"\bno\b|\b(?:not|n't|never)\s+(?:be\s+|to\s+)?(?:rebalanc|need|requir|necess|trad)|\bunnecessary\b|\bno need\b",
    re.I,
)
_SIDE = re.compile(r"\b(buy|sell|purchase|add|trim|reduce|increase)\w*\b", re.I)
_SIDES: Mapping[str, Side] = {
    "buy": "buy", "purchase": "buy", "add": "buy", "increase": "buy", "sell": "sell", "trim": "sell", "reduce": "sell",
}  # fmt: skip


def direction_said(said: str, marked: bool) -> Reading:
    """Up, down or flat, where a reply says one of them.

    >>> direction_said("Not negative; it will be positive.", True).answer
    Direction(way='positive')
    """
    named = "|".join(_WAYS)
    whole = rf"\b({named})\b"
    for part in said.splitlines()[:1] if marked else [said, *reversed(said.splitlines())]:
        found = {
            _WAYS[match[1].lower()]
            for match in re.finditer(whole, part, re.I)
            if not _NEGATED.search(part[: match.start()][-40:])
        }
        if len(found) == 1:
            return Reading(Direction(found.pop()))
        if found and part is not said:
            return Reading(None, f"several directions: {', '.join(sorted(found))}")
    return Reading(None, "no direction, or several")


def trade_said(said: str, _marked: bool, names: Sequence[str]) -> Reading:
    """Whether to rebalance, and by which trade: the first one that is named.

    >>> trade_said("Yes; buy 0.065 of IVV", True, ("IVV", "BND")).answer
    Trade(rebalance=True, side='buy', instrument='IVV', size=0.065)
    """
    first = re.match(r"\W*(?:\(?a\)?\W*)?(yes|no)\b", said, re.I)
    if first:
        yes = first[1].lower() == "yes"
    else:
        yes, no = bool(_YES.search(said)), bool(_NO.search(said))
        if yes == no:
            return Reading(None, "both yes and no" if yes else "neither yes nor no")
    if not yes:
        return Reading(Trade(False))
    rest = said[first.end() :] if first else said
    return _trade(rest, names)


def _trade(said: str, names: Sequence[str]) -> Reading:
    """The first trade of a reply that says yes."""
    side = _SIDE.search(said)
    places = [(match.start(), name) for name in names for match in re.finditer(_alone(name), said)]
    if side is None:
        return Reading(Trade(True), "no trade is named")
    after = sorted(one for one in places if one[0] > side.start())
    before = sorted(one for one in places if one[0] < side.start())
    instrument = after[0][1] if after else before[-1][1] if before else None
    # Sizes are not scored; names with digits would be taken for numbers, so they are cut out first.
    plain = re.sub("|".join(map(_alone, names)), " ", said[side.end() :])
    sizes = [value for _, value in values_in(plain)]
    trade = Trade(True, _SIDES[side[1].lower()], instrument, abs(sizes[0]) if sizes else None)
    return Reading(trade, "" if instrument else "the trade names no instrument of the portfolio")


def regime_said(said: str, _marked: bool) -> Reading:
    """The regime and the change of each class.

    >>> regime_said("Regime: bear. Equities: reduce, Cash: increase", True).answer
    RegimeView(regime='bear', changes={'equity': 'decrease', 'cash': 'increase'})
    """
    regime = _regime(said)
    changes: dict[str, Change] = {}
    for name, words in _CLASSES.items():
        after = rf"(?:\b|_)(?:{words})\b[^\w,;.\n]{{0,6}}(?:is|should be|to|allocation)?[^\w,;.\n]{{0,3}}{_CHANGE}"
        beside = re.search(after, said, re.I) or re.search(rf"\b{_CHANGE}\w*\s+(?:{words})\b", said, re.I)
        if beside:
            changes[name] = _CHANGES[beside[1].lower()]
    if regime is None and not changes:
        return Reading(None, "neither one regime nor a change of a class")
    missing = [name for name in _CLASSES if name not in changes]
    reasons = ["no regime, or several"] * (regime is None) + [f"no change for {', '.join(missing)}"] * bool(missing)
    return Reading(RegimeView(regime, changes), "; ".join(reasons))


def _regime(said: str) -> Regime | None:
    """The regime that is named as such, or the only one that is named."""
    words = "|".join(REGIME_NAMES)
    stated = re.findall(rf"\bregime\W{{0,6}}(?:is\W{{1,3}})?({words})\b", said, re.I)
    found = {word.lower() for word in stated}
    if not found:
        found = {
            match[1].lower()
            for match in re.finditer(rf"\b({words})(?:ish)?\b", said, re.I)
            if not _NEGATED.search(said[: match.start()][-40:])
        }
    return cast(Regime, found.pop()) if len(found) == 1 else None


def _alone(name: str) -> str:
    """A name that is not part of a longer one."""
    return rf"(?<![A-Za-z0-9-]){re.escape(name)}(?![A-Za-z0-9-])"
