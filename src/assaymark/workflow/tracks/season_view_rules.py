"""The rules page of a season: every field of its locked file, its value, and what it means."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, time, timedelta
from pathlib import Path
from textwrap import shorten
from typing import Any, Final

from assaymark.agents.llm import ABSENT, NOT_USABLE
from assaymark.claims.evidence import NOISE, TOTAL
from assaymark.claims.messages import Said, said
from assaymark.importers.aitrader import REPLAYED
from assaymark.judging.season.ledger import quoted_spans
from assaymark.judging.season.record import Horizon, HorizonStep, StepRecord
from assaymark.judging.season.replies import HorizonClaim
from assaymark.judging.season.table import IDENTICAL
from assaymark.market.calendar import weekdays
from assaymark.plan import Frozen
from assaymark.prompting.texts import INSTRUCTION_LIKE
from assaymark.protocol import AgentSpec, JudgeSpec
from assaymark.records import Context, Evidence, EvidenceState, Fact, Measurement, Series, sha256_text
from assaymark.report.season.inputs import SeasonClaimLine, SeasonRule
from assaymark.workflow.tracks.season_books import MOVE
from assaymark.workflow.tracks.season_material import SeasonMaterial
from assaymark.workflow.tracks.season_plan import Season
from assaymark.workflow.tracks.season_record_tables import DELISTED, DIVIDEND, SPLIT, SeasonGrade

# What a reader has to know of a season that somebody else ran: what its records hold, and what they lack.


_OF_STEPS: Final = "aitrader"
"""The format in which a step has a stamp, and only its messages say when they were written."""


def record_notes(material: SeasonMaterial) -> Iterator[Said]:
    """The notes of a season of records; none of a season that was run here."""
    if not material.season.recorded:
        return
    yield said("note.records.not_ours")
    steps = [one for ones in material.steps.values() for one in ones]
    yield from hindsight(material)
    yield from _books(material, steps)
    yield from _mismatches(material)
    yield from _apart(material)


def hindsight(material: SeasonMaterial) -> Iterator[Said]:
    """Decisions that were written down late, and those of which a log of steps does not say when.

    Nothing of a season that was run here: it knows what its agents could see.
    """
    if not material.season.recorded:
        return
    decisions = [one.decision for ones in material.steps.values() for one in ones]
    late = sum(REPLAYED in one.flags for one in decisions)
    if late:
        yield said("note.records.replayed", n=late, of=len(decisions))
    undated = sum(one.call.timing_source == "absent" and REPLAYED not in one.flags for one in decisions)
    if undated and material.season.market.format == _OF_STEPS:
        yield said("note.records.undated", n=undated, of=len(decisions))


def _books(material: SeasonMaterial, steps: Sequence[StepRecord]) -> Iterator[Said]:
    """Books and fills: none at all, or steps without one."""
    if not any(material.navs.values()):
        yield said("note.records.no_books")
        return
    yield said("note.records.valued")
    bare = sum(one.book is None for one in steps)
    if bare:
        yield said("note.records.not_stated", n=bare, of=len(steps))


def _mismatches(material: SeasonMaterial) -> Iterator[Said]:
    """How much of what the log states follows from the rest of it."""
    checks, passed = (sum(getattr(one, name) for one in material.checks) for name in ("checks", "passed"))
    if checks:
        key = "mismatches" if passed < checks else "reconciled"
        yield said(f"note.records.{key}", n=checks - passed, of=checks)
    else:
        yield said("note.records.unchecked")


def _apart(material: SeasonMaterial) -> Iterator[Said]:
    """Agents that were not there from the first day to the last."""
    if len(material.steps) < 2:
        return
    ends = {name: (ones[0].day, ones[-1].day) for name, ones in material.steps.items() if ones}
    first, last = min(one for one, _ in ends.values()), max(one for _, one in ends.values())
    late = tuple(sorted(name for name, found in ends.items() if found != (first, last)))
    if late:
        yield said("note.records.part", n=len(late), agents=late, first=first, last=last)


# What a reader has to know of a season beside its claims: what is missing, what failed, what is still to come.


_MOST_DAYS = 5


def season_notes(
    material: SeasonMaterial, grades: Sequence[SeasonGrade], measurements: Sequence[Measurement] = ()
) -> tuple[Said, ...]:
    """The notes of a season, the weightiest first."""
    return (
        *record_notes(material),
        *_unfinished(material, grades),
        *_incomplete(material),
        *_silent_judges(material, grades),
        *_judges_asked_again(grades),
        *_silent_agents(material),
        *_identical(measurements),
        *_instructing(material),
        *_market(material),
        *_split(grades),
    )


def last_day(material: SeasonMaterial) -> str:
    """The last day on which anybody decided."""
    return max(steps[-1].day for steps in material.steps.values() if steps)


def judged_to(grades: Sequence[SeasonGrade]) -> str:
    """The last day that a judge was shown."""
    return max(one.last for one in grades)


def behind(material: SeasonMaterial, grades: Sequence[SeasonGrade]) -> Said | None:
    """That the grades are of fewer days than the season has by now."""
    judged, last = judged_to(grades), last_day(material)
    return said("note.judged_to", judged=judged, last=last) if judged < last else None


# --- parts ------------------------------------------------------------------------------------------------------------


def _unfinished(material: SeasonMaterial, grades: Sequence[SeasonGrade]) -> Iterator[Said]:
    if earlier := behind(material, grades):
        yield earlier
    last, end = last_day(material), material.season.calendar.last
    if weekdays(date.fromisoformat(last[:10]) + timedelta(days=1), end).size:
        yield said("note.going_on", last=last, end=str(end))


def _incomplete(material: SeasonMaterial) -> Iterator[Said]:
    if material.partial:
        yield said("note.partial")
    answered = {
        name: [one.decision.record_id for one in steps if not {*NOT_USABLE} & {*one.decision.flags}]
        for name, steps in material.steps.items()
    }
    untimed = [
        name for name, ones in answered.items() if ones and all(material.seconds.get(one) is None for one in ones)
    ]
    if untimed:
        yield said("note.untimed", n=len(untimed), agents=tuple(sorted(untimed)))


def _silent_judges(material: SeasonMaterial, grades: Sequence[SeasonGrade]) -> Iterator[Said]:
    if nothing := sorted({one.name for one in material.season.panel} - {one.judge for one in grades}):
        yield said("note.judge_awaited", n=len(nothing), judges=tuple(nothing))
    for judge in sorted({one.judge for one in grades}):
        mine = [one.score.grades.state for one in grades if one.judge == judge]
        bad = sum(state != "ok" for state in mine)
        if bad:
            yield said("note.judge_silent", judge=judge, n=bad, of=len(mine))


def _judges_asked_again(grades: Sequence[SeasonGrade]) -> Iterator[Said]:
    for judge in sorted({one.judge for one in grades}):
        firsts = [part.first_key for one in grades if one.judge == judge for part in one.score.grades.parts]
        if n := sum(map(bool, firsts)):
            yield said("note.judge_again", judge=judge, n=n, of=len(firsts))


def _instructing(material: SeasonMaterial) -> Iterator[Said]:
    for name in sorted(material.steps):
        steps = material.steps[name]
        if n := sum(INSTRUCTION_LIKE in one.decision.flags for one in steps):
            yield said("note.instructing", agent=name, n=n, of=len(steps))


def _silent_agents(material: SeasonMaterial) -> Iterator[Said]:
    for name in sorted(material.steps):
        steps = material.steps[name]
        absent = [one for one in steps if ABSENT in one.decision.flags]
        bad = sum(bool({*NOT_USABLE} & {*one.decision.flags}) for one in steps) - len(absent)
        if absent:
            why = "; ".join(absent[-1].decision.missing)
            yield said("note.agent_absent", agent=name, n=len(absent), of=len(steps), why=why)
        if bad:
            yield said("note.agent_silent", agent=name, n=bad, of=len(steps))
    refused = {name: len(ones) for name, ones in material.rejections.items() if ones}
    if refused:
        yield said("note.rejected", n=sum(refused.values()), agents=tuple(sorted(refused)))


def _identical(measurements: Sequence[Measurement]) -> Iterator[Said]:
    """Agents whose replicates show no noise."""
    same = {one.labels["of"] for one in measurements if one.name == NOISE and one.state == IDENTICAL}
    totals = [one for one in measurements if one.name == TOTAL and one.value is not None]
    agents = sorted(same.intersection(one.labels["agent"] for one in totals))
    if agents:
        yield said("note.identical", agents=tuple(agents))


def _market(material: SeasonMaterial) -> Iterator[Said]:
    rows = [one for ones in material.navs.values() for one in ones]
    empty = sorted({one.day for one in rows if one.state == "no data"})
    if empty:
        more = len(empty) - _MOST_DAYS
        shown = (*empty[:_MOST_DAYS], *([f"+{more}"] if more > 0 else []))
        yield said("note.no_data", n=len(empty), days=shown)
    stale = {one.day for one in rows if one.state == "ok" and one.stale}
    if stale:
        yield said("note.stale", n=len(stale))
    if ended := _symbols(material, DELISTED):
        yield said("note.ended", n=len(ended), names=ended)
    if acted := _symbols(material, SPLIT, DIVIDEND):
        yield said("note.acted", n=len(acted), names=acted)
    lines = {line.partition("\t")[2] for one in material.checks for line in one.mismatches}
    places = (line.removeprefix(MOVE).partition(":")[0].rpartition(" on ") for line in lines if line.startswith(MOVE))
    moves = sorted(f"{name} {day}" for name, _, day in places)
    if moves:
        more = len(moves) - _MOST_DAYS
        yield said("note.jumped", n=len(moves), moves=(*moves[:_MOST_DAYS], *([f"+{more}"] if more > 0 else [])))


def _symbols(material: SeasonMaterial, *kinds: str) -> tuple[str, ...]:
    """The instruments with a fill of one of these kinds."""
    fills = (fill for steps in material.steps.values() for one in steps for fill in one.fills)
    return tuple(sorted({fill.symbol for fill in fills if getattr(fill, "kind", "") in kinds}))


def _split(grades: Sequence[SeasonGrade]) -> Iterator[Said]:
    parts = {one.agent: len(one.score.grades.parts) for one in grades if one.scope == "whole"}
    split = sorted(name for name, n in parts.items() if n > 1)
    if split:
        yield said("note.split", n=len(split), agents=tuple(split), parts=max(parts.values()))


OWN: Final = "season"
"""The group of fields that stand in no table of the file."""

_FOLDERS: Final = ("source", "grades")
_TEXTS: Final = ("prompt",)
_NOT_RECORDED: Final = frozenset(
    {
        *((OWN, name) for name in ("bars", "news_days")),
        ("market", "seed"),
        ("market", "live"),
        ("calendar", "decide_at"),
    }
)
"""Fields that say nothing of a season that somebody else ran; so does the table of the broker's rules."""

_OF_BOOKS: Final = frozenset({(OWN, "capital"), (OWN, "currency")})


def season_rules(season: Season) -> tuple[SeasonRule, ...]:
    """The lines of the rules page, in the order of the file's fields.

    A value stands as one would write it in the file, and is empty where the field is not set. Agents and judges have a
    line each. Of a season that somebody else ran, what only our broker goes by is left out. Long texts stand as their
    digest, and folders as their last name: a site is no place for the paths of the machine that made it.

    Examples
    --------
    >>> from assaymark.workflow.tracks.season_plan import parse_season
    >>> season = parse_season('''
    ... name = "spring"
    ... prompt = "Grow the book."
    ... calendar = { first = 2024-03-01, last = 2024-05-31 }
    ... agents = [{ name = "one", family = "reference", model = "reference/momentum" }]
    ... ''')
    >>> found = {(one.group, one.name): one.value for one in season_rules(season)}
    >>> found["rules", "cost_bps"], found["calendar", "first"], found["rules", "max_weight"]
    ('10', '2024-03-01', '')
    >>> found["agents", "one"]
    'model = "reference/momentum", family = "reference"'
    """
    own, tables = [], []
    for name in type(season).model_fields:
        value = getattr(season, name)
        if isinstance(value, Frozen) or name in ("agents", "panel", "strategies"):
            tables += list(_table(name, value))
        else:
            own.append(SeasonRule(group=OWN, name=name, value=_of(name, value), meaning=said(f"field.{OWN}.{name}")))
    return tuple(one for one in (*own, *tables) if not season.recorded or _holds(one, season.has_books))


def _holds(one: SeasonRule, books: bool) -> bool:
    """Whether a line says something of a season that somebody else ran."""
    told = books or (one.group, one.name) not in _OF_BOOKS
    return told and one.group != "rules" and (one.group, one.name) not in _NOT_RECORDED


def _table(name: str, value: Any) -> Iterator[SeasonRule]:
    """The lines of one table of the file."""
    if isinstance(value, dict):
        for agent, text in sorted(value.items()):
            yield SeasonRule(group=name, name=agent, value=_digest(text), meaning=said(f"field.{name}"))
    elif isinstance(value, tuple):
        for spec in sorted(value, key=lambda one: one.name):
            yield SeasonRule(group=name, name=spec.name, value=_spec(spec), meaning=said(f"field.{name}"))
    else:
        for one, info in type(value).model_fields.items():
            shown = info.alias or one
            meaning = said(f"field.{name}.{shown}")
            yield SeasonRule(group=name, name=shown, value=_of(one, getattr(value, one)), meaning=meaning)


def _spec(spec: AgentSpec | JudgeSpec) -> str:
    """An agent or a judge, with what was set of it."""
    given = spec.model_dump(mode="json", exclude={"name"}, exclude_none=True)
    first = [("model", given.pop("model")), ("family", given.pop("family"))]
    return ", ".join(f"{name} = {_written(value)}" for name, value in [*first, *given.items()] if value != {})


def _of(name: str, value: Any) -> str:
    """The value of one field."""
    if name in _TEXTS:
        return _digest(value)
    return Path(value).name if name in _FOLDERS and isinstance(value, str) else _shown(value)


def _digest(text: str) -> str:
    return f"sha256 {sha256_text(text)[:12]}" if text else ""


def _shown(value: Any) -> str:
    """A value by itself: a text without its quotes."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    if isinstance(value, (date, time)):
        return value.isoformat()
    return _written(value)


def _written(value: Any) -> str:
    """A value as it would stand in the file."""
    if isinstance(value, float):
        return f"{value:.12g}"
    if isinstance(value, Frozen):
        value = value.model_dump(mode="json", exclude_none=True)
    if isinstance(value, dict):
        inner = ", ".join(f"{name} = {_written(one)}" for name, one in value.items())
        return f"{{ {inner} }}" if inner else ""
    return json.dumps(value, ensure_ascii=False)


# The claim ledger of one agent as its page shows it: what its reasons state, by the numbers and by the judges.


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
