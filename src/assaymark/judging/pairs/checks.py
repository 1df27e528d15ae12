"""What has to hold of stimuli before any judge is called."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from assaymark.errors import InputError, Problem
from assaymark.judging.pairs.calls import PAIR_PROMPTS, pair_texts
from assaymark.judging.pairs.tasks import ORDERS, Pair, Stimulus, marks
from assaymark.records import PairCondition, record

LENGTH_TOLERANCE = 0.05
"""Texts that are to be of one length differ by at most this share of the longer one, in whitespace tokens."""
LEAST_FILLER = 0.2
"""The filler text of a pair is longer by at least this share of the other."""

_MATCHED: tuple[PairCondition, ...] = ("ladder", "same_subset", "different_subset", "graded_vacuum")
_TELLING = re.compile(
    r"same_subset|different_subset|graded_vacuum|expected winner|(?:delta|quality level|level) ?[=:] ?\d", re.IGNORECASE
)


@record
class GateReport:
    """Gates that all pairs passed: what each gate looks at, in words, and how many pairs or texts it looked at."""

    pairs: int
    checked: Mapping[str, int]
    words: Mapping[str, str]


GATES: Mapping[str, str] = {
    "dominance": "the better text meets everything that the other meets, and the difference is the one claimed",
    "length": "texts that are to be of one length are, within 5 % in a pair and in a task; fillers are longer",
    "leakage": "no prompt changes with what is known about a pair, and no text says it",
    "orders": "every pair is shown in both orders",
    "duplicates": "no two pairs of a task have the same two texts, and no two pairs one id",
}
"""The gates by name."""


def check(pairs: Sequence[Pair]) -> GateReport:
    """Put all pairs through all gates.

    What a text meets is counted again from the text (see `marking`), not believed.

    Raises
    ------
    InputError
        Any gate is not passed: every problem of every pair at once.

    Examples
    --------
    >>> from assaymark.judging.pairs.stimuli import build_stimuli
    >>> from assaymark.judging.pairs.tasks import finance_tasks
    >>> report = check(build_stimuli(finance_tasks()[:1], seed=7))
    >>> report.pairs, sorted(report.checked)
    (45, ['dominance', 'duplicates', 'leakage', 'length', 'orders'])
    """
    problems: list[Problem] = [] if pairs else [Problem("", "at least one pair is needed (got 0)")]
    for pair in pairs:
        for gate, what in (
            *(("dominance", what) for what in _dominance(pair)),
            *(("length", what) for what in _length(pair)),
            *(("leakage", what) for what in _leakage(pair)),
            *(("orders", what) for what in _orders(pair)),
        ):
            problems.append(Problem(f"pair {pair.id}", f"{gate}: {what}"))
    problems += _task_lengths(pairs)
    problems += _duplicates(pairs)
    if problems:
        raise InputError("stimuli", problems)
    matched = sum(pair.condition in (*_MATCHED, "filler") for pair in pairs)
    return GateReport(
        pairs=len(pairs),
        checked={**dict.fromkeys(GATES, len(pairs)), "length": matched},
        words=dict(GATES),
    )


# --- what a pair claims -----------------------------------------------------------------------------------------------


def _dominance(pair: Pair) -> Iterator[str]:
    """Whether the texts differ in what they meet as the pair says."""
    names = pair.brief.names
    u, v = (marks(text.text, names) for text in (pair.u, pair.v))
    for called, text, earned in (("u", pair.u, u), ("v", pair.v, v)):
        if earned != _claimed(text, names):
            yield f"{called} does not meet what it is said to meet (got {earned}, said {_claimed(text, names)})"
    if pair.condition == "ladder":
        yield from _step(pair, u, v)
        return
    if pair.delta or pair.better is not None:
        yield f"neither text can be better in a {pair.condition} pair (got delta {pair.delta:g}, {pair.better})"
    blank = pair.u.text.strip() == pair.v.text.strip()
    if blank != (pair.condition == "vacuum"):
        yield f"the texts of a {pair.condition} pair must {'differ' if blank else 'not differ'}"
    if pair.condition == "different_subset":
        if sum(u) != sum(v) or u == v:
            yield f"the texts must meet equally many different requirements (got {sum(u):g} and {sum(v):g})"
    elif u != v:
        yield f"the texts must meet the same requirements (got {u} and {v})"


def _claimed(text: Stimulus, names: Sequence[str]) -> tuple[float, ...]:
    """What a text earns by its own account."""
    return tuple(1.0 if name in text.met else 0.5 if name in text.partly else 0.0 for name in names)


def _step(pair: Pair, u: Sequence[float], v: Sequence[float]) -> Iterator[str]:
    """Whether the better text of a ladder pair dominates by exactly delta."""
    if pair.better is None or pair.delta <= 0:
        yield f"a ladder pair needs a better text and a step above 0 (got {pair.better}, {pair.delta:g})"
        return
    high, low = (u, v) if pair.better == "u" else (v, u)
    if any(mine < theirs for mine, theirs in zip(high, low, strict=True)):
        yield f"{pair.better} does not meet everything that the other meets"
    if sum(high) - sum(low) != pair.delta:
        yield f"the difference is {sum(high) - sum(low):g} requirements, not {pair.delta:g}"


# --- length -----------------------------------------------------------------------------------------------------------


def _length(pair: Pair) -> Iterator[str]:
    """Whether the lengths of a pair's texts are as its condition says."""
    short, long = sorted((pair.u.tokens, pair.v.tokens))
    if pair.condition in _MATCHED and long - short > LENGTH_TOLERANCE * long:
        yield f"the texts have {short} and {long} tokens, more than 5 % apart"
    if pair.condition == "filler" and pair.v.tokens < (1 + LEAST_FILLER) * pair.u.tokens:
        yield f"v must be longer by a fifth (got {pair.v.tokens} tokens against {pair.u.tokens})"


def _task_lengths(pairs: Sequence[Pair]) -> Iterator[Problem]:
    """Whether all texts of a task that are to be of one length are."""
    lengths: dict[str, list[int]] = {}
    for pair in pairs:
        if pair.condition in _MATCHED:
            lengths.setdefault(pair.task, []).extend((pair.u.tokens, pair.v.tokens))
    for task, found in lengths.items():
        if max(found) - min(found) > LENGTH_TOLERANCE * max(found):
            yield Problem(f"task {task}", f"length: its texts have {min(found)} to {max(found)} tokens")


# --- leakage ----------------------------------------------------------------------------------------------------------


def _leakage(pair: Pair) -> Iterator[str]:
    """Whether anything that is known about a pair reaches its prompts."""
    anonymous = _anonymous(pair)
    for order in pair.orders:
        for prompt in PAIR_PROMPTS:
            shown = pair_texts(pair, order, prompt)
            if shown != pair_texts(anonymous, order, prompt):
                yield f"the {prompt} prompt in order {order} depends on more than the texts of the pair"
    listed = (pair.brief.question, *(part for one in pair.brief.requirements for part in one))
    for where, text in (("u", pair.u.text), ("v", pair.v.text), *(("the task", text) for text in listed)):
        told = pair.id if pair.id and pair.id in text else _told(text)
        if told:
            yield f"{where} tells about the pair (got {told!r})"


@lru_cache(maxsize=8192)
def _told(text: str) -> str:
    """Words in a text that would tell a judge what is expected of it; empty if there are none."""
    found = _TELLING.search(text)
    return found.group() if found else ""


def _anonymous(pair: Pair) -> Pair:
    """The pair without anything that judges must not know."""
    u, v = (Stimulus(text=text.text) for text in (pair.u, pair.v))
    brief = replace(pair.brief, task="")
    return replace(pair, id="", condition="vacuum", variant="", brief=brief, u=u, v=v, delta=0.0, better=None)


# --- design -----------------------------------------------------------------------------------------------------------


def _orders(pair: Pair) -> Iterator[str]:
    """Whether a pair is shown in both orders."""
    if sorted(pair.orders) != sorted(ORDERS):
        yield f"must be shown in both orders once (got {', '.join(pair.orders) or 'none'})"


def _duplicates(pairs: Sequence[Pair]) -> Iterator[Problem]:
    """Whether any two pairs are one: then one call would be counted twice."""
    ids: set[str] = set()
    contents: dict[tuple[str, str, str], str] = {}
    for pair in pairs:
        if pair.id in ids:
            yield Problem(f"pair {pair.id}", "duplicates: another pair has this id")
        ids.add(pair.id)
        low, high = sorted((pair.u.text, pair.v.text))
        other = contents.setdefault((pair.task, low, high), pair.id)
        if other != pair.id:
            yield Problem(f"pair {pair.id}", f"duplicates: has the same two texts as {other}")
