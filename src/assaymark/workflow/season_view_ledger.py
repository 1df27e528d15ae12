"""The claim ledger of one agent as its page shows it: what its reasons state, by the numbers and by the judges."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import shorten
from typing import Final

from assaymark.judging.season.horizon_ledger import quoted_spans
from assaymark.judging.season.horizon_replies import HorizonClaim
from assaymark.judging.season.horizon_types import Horizon, HorizonStep
from assaymark.records import Context, Evidence, EvidenceState, Fact, Series
from assaymark.report.season.inputs import SeasonClaimLine
from assaymark.workflow.season_records import SeasonGrade

MISQUOTED: Final = "misquoted"
"""The rule of a line whose quotation, by a judge, does not stand in the reasons of its step."""

_WEAKEST_FIRST: Final[tuple[EvidenceState, ...]] = (
    "contradicted",
    "not_verifiable",
    "derivable",
    "rule",
    "supported",
    "own_action",
)
_MOST_FACTS: Final = 3
_MOST_QUOTED: Final = 300
_MOST_SHOWN: Final = 160
_END = re.compile(r"(?<=[.!?;])\s+|\n+")

_Span = tuple[int, int, int]


@dataclass(slots=True)
class _Line:
    """A line in the making."""

    quote: str
    numbers: list[Evidence] = field(default_factory=list)
    judges: dict[str, str] = field(default_factory=dict)
    rule: str = ""


def claims_by_judge(grades: Iterable[SeasonGrade], agent: str) -> dict[str, tuple[HorizonClaim, ...]]:
    """What each judge listed of an agent's whole record, in the first trial whose reply could be used."""
    found: dict[str, tuple[HorizonClaim, ...]] = {}
    for one in sorted(grades, key=lambda one: (one.judge, one.trial)):
        if one.agent == agent and one.scope == "whole" and one.score.grades.state == "ok":
            found.setdefault(one.judge, one.score.grades.claims)
    return found


def ledger_view(
    horizon: Horizon,
    evidence: Mapping[str, Sequence[Evidence]],
    claims: Mapping[str, Sequence[HorizonClaim]],
    contexts: Mapping[str, Context],
) -> tuple[SeasonClaimLine, ...]:
    """Every statement of a record that somebody or something can check, by day and then by place.

    A line is what a judge quoted, with the numbers in it, or a sentence with numbers that no judge quoted. The numbers
    of a line are as good as the weakest of them; those of the decision itself count only where there is no other.

    Parameters
    ----------
    evidence : mapping of record id to numbers
        The numeric ledger over the texts of ``horizon``.
    claims : mapping of judge to claims
    contexts : mapping of context id to Context
        For what the agent saw.
    """
    by_step: dict[int, list[tuple[str, HorizonClaim]]] = defaultdict(list)
    for judge, ones in claims.items():
        for claim in ones:
            by_step[claim.step].append((judge, claim))
    found: list[SeasonClaimLine] = []
    for step in horizon.steps:
        lines = _lines(step, evidence.get(step.record_id, ()), by_step[step.number])
        context = contexts.get(step.context_id)
        facts = {} if context is None else _facts(context, lines)
        found += [_made(step, one, facts) for one in lines]
    return tuple(found)


def joint_state(states: Iterable[EvidenceState]) -> EvidenceState | None:
    """What several numbers are worth together: as much as the weakest; None without a number.

    >>> joint_state(["supported", "derivable", "own_action"]), joint_state([])
    ('derivable', None)
    """
    known = {*states}
    return next((state for state in _WEAKEST_FIRST if state in known), None)


# --- parts ------------------------------------------------------------------------------------------------------------


def _lines(step: HorizonStep, numbers: Sequence[Evidence], claims: Sequence[tuple[str, HorizonClaim]]) -> list[_Line]:
    """The lines of one step in the order of their places; quotations that were not found come last."""
    placed: dict[_Span, _Line] = {}
    lost: dict[str, _Line] = {}
    for judge, claim in claims:
        spans = quoted_spans(claim.quote, step)
        if spans:
            part, start, end = spans[0]
            line = placed.setdefault(spans[0], _Line(step.texts[part].text[start:end]))
        else:
            line = lost.setdefault(claim.quote, _Line(claim.quote, rule=MISQUOTED))
        line.judges.setdefault(judge, claim.state)
    quoted = tuple(placed)
    gaps = [[gap.span() for gap in _END.finditer(one.text)] for one in step.texts]
    for number in numbers:
        around = [span for span in quoted if _within(number, span)]
        for span in around or [_sentence(number, gaps[number.part], len(step.texts[number.part].text))]:
            part, start, end = span
            placed.setdefault(span, _Line(step.texts[part].text[start:end])).numbers.append(number)
    return [*(placed[span] for span in sorted(placed)), *lost.values()]


def _within(number: Evidence, span: _Span) -> bool:
    part, start, end = span
    return part == number.part and start <= number.start and number.start + len(number.quote) <= end


def _sentence(number: Evidence, gaps: Sequence[tuple[int, int]], size: int) -> _Span:
    """The sentence in which a number stands; of an endless one, what is near."""
    stop = number.start + len(number.quote)
    after = bisect_right(gaps, number.start, key=lambda gap: gap[1])
    start = gaps[after - 1][1] if after else 0
    end = next((gap[0] for gap in gaps[after:] if gap[0] >= stop), size)
    return number.part, max(start, number.start - _MOST_QUOTED), min(end, stop + _MOST_QUOTED)


def _facts(context: Context, lines: Iterable[_Line]) -> dict[str, str]:
    """What the agent saw that decided some lines, in words by id."""
    wanted = {name for line in lines for one in line.numbers for name in one.facts}
    if not wanted:
        return {}
    found = {one.id: _fact_text(one) for one in context.facts if one.id in wanted}
    found |= {f"series:{one.instrument}": _series_text(one) for one in context.series if one.close}
    if context.portfolio is not None:
        book = {"cash": context.portfolio.cash, "nav": context.portfolio.nav, **context.portfolio.positions}
        found |= {f"portfolio.{name}": f"{name} {value:.10g}" for name, value in book.items() if value is not None}
    return found


def _fact_text(fact: Fact) -> str:
    value = shorten(fact.value, _MOST_SHOWN, placeholder="…") if isinstance(fact.value, str) else f"{fact.value:.10g}"
    return " ".join(word for word in (fact.instrument, fact.field, value) if word)


def _series_text(series: Series) -> str:
    """The closes that a number was worked out from, by their ends."""
    ends = (0, -1) if len(series.close) > 1 else (0,)
    days = " … ".join(series.times[at].date().isoformat() for at in ends)
    return f"{series.instrument} close {days}: {' … '.join(f'{series.close[at]:.10g}' for at in ends)}"


def _made(step: HorizonStep, line: _Line, facts: Mapping[str, str]) -> SeasonClaimLine:
    names = list(dict.fromkeys(name for one in line.numbers for name in one.facts))
    seen = [facts.get(name, name) for name in names[:_MOST_FACTS]]
    more = [f"+{len(names) - _MOST_FACTS}"] if len(names) > _MOST_FACTS else []
    return SeasonClaimLine(
        number=step.number,
        day=step.day,
        quote=" ".join(line.quote.split()),
        saw="; ".join([*seen, *more]),
        numbers=joint_state(one.state for one in line.numbers),
        rule=line.rule or ", ".join(sorted({one.rule for one in line.numbers})),
        judges=dict(sorted(line.judges.items())),
    )
