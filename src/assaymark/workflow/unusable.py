"""Replies that nothing can be made of, or that were asked for twice: one line for each judge or agent that gave any."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol, TypeVar

from assaymark.agents.llm import NOT_USABLE
from assaymark.engine import CallSpec, Reply, Unusable
from assaymark.records import Decision, Judgment

_STAYS: Final = "stored verbatim and not retried"
_ALL: Final = (
    "; if the model cannot produce the required JSON, name another one: assaymark amend (while no reply of this judge "
    "is usable), or a new run folder"
)
_ALL_OF_AGENT: Final = "; if it cannot answer in this form, give this agent another model in a new run folder"


def unusable_judgments(judgments: Iterable[Judgment]) -> list[str]:
    """A line for each judge with replies that have no scores: how many refused, how many in another form.

    >>> bad = Judgment(trajectory="t", judge="north", family="n", rubric="v1.0", trial=1, status="invalid", scores={},
    ...                call_key="", reason="not one JSON object: expecting value at character 0")
    >>> unusable_judgments([bad])[0][:88]
    'north: 1 of 1 replies have no scores: 1 not in the required form (first: not one JSON ob'
    """
    given: Counter[str] = Counter()
    bad: dict[str, list[Judgment]] = {}
    for one in judgments:
        given[one.judge] += 1
        if one.status != "ok":
            bad.setdefault(one.judge, []).append(one)
    return [_judge_line(judge, found, given[judge]) for judge, found in sorted(bad.items())]


def judgments_asked_again(judgments: Sequence[Judgment]) -> list[str]:
    """A line for each judge whose calls were made once more because the first reply was no JSON."""
    again: dict[str, list[Judgment]] = {}
    for one in judgments:
        if one.first_key:
            again.setdefault(one.judge, []).append(one)
    given = Counter(one.judge for one in judgments)
    return [
        again_line(judge, len(found), given[judge], sum(one.status == "ok" for one in found))
        for judge, found in sorted(again.items())
    ]


def again_line(judge: str, n: int, of: int, ok: int) -> str:
    """That calls were made once more, and how many of those brought scores.

    >>> again_line("north", 3, 60, 2)
    'north: 3 of 60 replies (5.0%) were no JSON; asked once more (trial 1b), 2 of them have scores'
    """
    share = f"{n:,} of {of:,} replies ({n / of:.1%})"
    return f"{judge}: {share} were no JSON; asked once more (trial 1b), {ok:,} of them have scores"


def unusable_decisions(decisions: Iterable[Decision]) -> list[str]:
    """A line for each agent with replies that have no decision."""
    given: Counter[str] = Counter()
    bad: dict[str, Counter[str]] = {}
    for one in decisions:
        given[one.agent.id] += 1
        for flag in set(one.flags) & set(NOT_USABLE):
            bad.setdefault(one.agent.id, Counter())[flag] += 1
    return [
        _line(agent, kinds.total(), given[agent], f"have no decision ({', '.join(sorted(kinds))})", _ALL_OF_AGENT)
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


def _judge_line(judge: str, bad: Sequence[Judgment], of: int) -> str:
    refused = sum(one.status == "refused" for one in bad)
    parts = [f"{refused:,} refused"] if refused else []
    if other := len(bad) - refused:
        first = next((f" (first: {one.reason})" for one in bad if one.status != "refused" and one.reason), "")
        parts.append(f"{other:,} not in the required form{first}")
    return _line(judge, len(bad), of, f"have no scores: {', '.join(parts)}", _ALL)


def _line(name: str, n: int, of: int, what: str, if_all: str) -> str:
    return f"{name}: {n:,} of {of:,} replies {what}; {_STAYS}{if_all if n == of else ''}"
