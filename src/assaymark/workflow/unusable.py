"""Replies that nothing can be made of: one line for each judge or agent that gave any, so that nobody looks for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol, TypeVar

from assaymark.agents.llm import NOT_USABLE
from assaymark.engine import CallSpec, Reply, Unusable
from assaymark.records import Decision, Judgment

_STAYS: Final = "recorded as they came, and not asked again"
_ALL: Final = "; if it cannot write the form that the prompt asks for, put another model in a new run folder"


def unusable_judgments(judgments: Iterable[Judgment]) -> list[str]:
    """A line for each judge with replies that hold no score, and the first reason.

    >>> bad = Judgment(trajectory="t", judge="north", family="n", rubric="v1.0", trial=1, status="invalid", scores={},
    ...                call_key="", reason="not one JSON object: expecting value at character 0")
    >>> unusable_judgments([bad])[0][:88]
    'north: 1 of 1 replies hold no score (first: not one JSON object: expecting value at char'
    """
    given: Counter[str] = Counter()
    bad: dict[str, list[Judgment]] = {}
    for one in judgments:
        given[one.judge] += 1
        if one.status != "ok":
            bad.setdefault(one.judge, []).append(one)
    return [
        _line(judge, len(found), given[judge], "hold no score", _first(found)) for judge, found in sorted(bad.items())
    ]


def unusable_decisions(decisions: Iterable[Decision]) -> list[str]:
    """A line for each agent with replies that hold no decision."""
    given: Counter[str] = Counter()
    bad: dict[str, Counter[str]] = {}
    for one in decisions:
        given[one.agent.id] += 1
        for flag in set(one.flags) & set(NOT_USABLE):
            bad.setdefault(one.agent.id, Counter())[flag] += 1
    return [
        _line(agent, kinds.total(), given[agent], "hold no decision", f" ({', '.join(sorted(kinds))})")
        for agent, kinds in sorted(bad.items())
    ]


class Asked(Protocol):
    """A planned call of a judge."""

    @property
    def call(self) -> CallSpec:
        """What is asked."""
        ...

    @property
    def judge(self) -> str:
        """The name of who is asked."""
        ...


P = TypeVar("P", bound=Asked)


def unusable_of(planned: Sequence[P], why: Callable[[P, Reply], str | None]) -> Unusable:
    """Says whose reply to one of these calls is of no use, for `run_all`; ``why`` reads a reply."""
    asked: dict[str, P] = {}

    def found(call: CallSpec, reply: Reply) -> tuple[str, str] | None:
        if not asked:  # a key costs something, and most runs never ask
            asked.update({one.call.key: one for one in planned})
        one = asked[call.key]
        reason = why(one, reply)
        return None if reason is None else (one.judge, reason)

    return found


def _first(bad: Iterable[Judgment]) -> str:
    return next((f" (first: {one.reason})" for one in bad if one.reason), "")


def _line(name: str, n: int, of: int, what: str, why: str) -> str:
    return f"{name}: {n:,} of {of:,} replies {what}{why}; {_STAYS}{_ALL if n == of else ''}"
