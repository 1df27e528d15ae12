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
from assaymark.importers.report import REPLAYED
from assaymark.judging.season.calls import quoted_spans
from assaymark.judging.season.plans import HorizonClaim
from assaymark.judging.season.record import Horizon, HorizonStep
from assaymark.market.instruments import weekdays
from assaymark.plan import Frozen
from assaymark.prompting import INSTRUCTION_LIKE
from assaymark.records import IDENTICAL, Context, Evidence, Measurement, sha256_text
from assaymark.report.season.inputs import SeasonClaimLine, SeasonRule
from assaymark.workflow.tracks.season_books import MOVE
from assaymark.workflow.tracks.season_context import SeasonMaterial
from assaymark.workflow.tracks.season_plan import Season
from assaymark.workflow.tracks.season_records import DELISTED, DIVIDEND, SPLIT, SeasonGrade

_OF_STEPS: Final = "aitrader"
"""The format in which a step has a stamp, and only its messages say when they were written."""


def record_notes(material: SeasonMaterial) -> Iterator[Said]:
    """The notes of a season of records; none of a season that was run here."""
    if not material.season.recorded:
        return
    yield said("note.records.not_ours")
    steps = [one for ones in material.steps.values() for one in ones]
    yield from hindsight(material)
    if any(material.navs.values()):
        yield said("note.records.valued")
        if bare := sum(one.book is None for one in steps):
            yield said("note.records.not_stated", n=bare, of=len(steps))
    else:
        yield said("note.records.no_books")
    checks, passed = (sum(getattr(one, name) for one in material.checks) for name in ("checks", "passed"))
    if checks:
        key = "mismatches" if passed < checks else "reconciled"
        yield said(f"note.records.{key}", n=checks - passed, of=checks)
    else:
        yield said("note.records.unchecked")
    if len(material.steps) < 2:
        return
    ends = {name: (ones[0].day, ones[-1].day) for name, ones in material.steps.items() if ones}
    first, last = min(one for one, _ in ends.values()), max(one for _, one in ends.values())
    if late := tuple(sorted(name for name, found in ends.items() if found != (first, last))):
        yield said("note.records.part", n=len(late), agents=late, first=first, last=last)


def hindsight(material: SeasonMaterial) -> Iterator[Said]:
    """Decisions that were written down late, and those of which a log of steps does not say when."""
    if not material.season.recorded:
        return
    decisions = [one.decision for ones in material.steps.values() for one in ones]
    if late := sum(REPLAYED in one.flags for one in decisions):
        yield said("note.records.replayed", n=late, of=len(decisions))
    undated = sum(one.call.timing_source == "absent" and REPLAYED not in one.flags for one in decisions)
    if undated and material.season.market.format == _OF_STEPS:
        yield said("note.records.undated", n=undated, of=len(decisions))


_MOST_DAYS = 5


def season_notes(
    material: SeasonMaterial, grades: Sequence[SeasonGrade], measurements: Sequence[Measurement] = ()
) -> tuple[Said, ...]:
    """The notes of a season, the weightiest first."""
    return (
        *record_notes(material),
        *_of_judging(material, grades),
        *_of_agents(material, measurements),
        *_of_market(material, grades),
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


def _of_judging(material: SeasonMaterial, grades: Sequence[SeasonGrade]) -> Iterator[Said]:
    """What is not there yet or not whole: days, contexts, seconds, and the replies of judges."""
    if earlier := behind(material, grades):
        yield earlier
    last, end = last_day(material), material.season.calendar.last
    if weekdays(date.fromisoformat(last[:10]) + timedelta(days=1), end).size:
        yield said("note.going_on", last=last, end=str(end))
    if material.partial:
        yield said("note.partial")
    untimed = []
    for name, steps in material.steps.items():
        answered = [one.decision.record_id for one in steps if not {*NOT_USABLE} & {*one.decision.flags}]
        if answered and all(material.seconds.get(one) is None for one in answered):
            untimed.append(name)
    if untimed:
        yield said("note.untimed", n=len(untimed), agents=tuple(sorted(untimed)))
    judges = sorted({one.judge for one in grades})
    if nothing := sorted({one.name for one in material.season.panel} - {*judges}):
        yield said("note.judge_awaited", n=len(nothing), judges=tuple(nothing))
    mine = {judge: [one.score.grades for one in grades if one.judge == judge] for judge in judges}
    for judge, given in mine.items():
        if bad := sum(one.state != "ok" for one in given):
            yield said("note.judge_silent", judge=judge, n=bad, of=len(given))
    for judge, given in mine.items():
        firsts = [part.first_key for one in given for part in one.parts]
        if n := sum(map(bool, firsts)):
            yield said("note.judge_again", judge=judge, n=n, of=len(firsts))


def _of_agents(material: SeasonMaterial, measurements: Sequence[Measurement]) -> Iterator[Said]:
    """Agents that did not answer, were rejected, repeat themselves, or wrote to their judges."""
    for name in sorted(material.steps):
        steps = material.steps[name]
        absent = [one for one in steps if ABSENT in one.decision.flags]
        bad = sum(bool({*NOT_USABLE} & {*one.decision.flags}) for one in steps) - len(absent)
        if absent:
            why = "; ".join(absent[-1].decision.missing)
            yield said("note.agent_absent", agent=name, n=len(absent), of=len(steps), why=why)
        if bad:
            yield said("note.agent_silent", agent=name, n=bad, of=len(steps))
    if refused := {name: len(ones) for name, ones in material.rejections.items() if ones}:
        yield said("note.rejected", n=sum(refused.values()), agents=tuple(sorted(refused)))
    same = {one.labels["of"] for one in measurements if one.name == NOISE and one.state == IDENTICAL}
    totals = [one for one in measurements if one.name == TOTAL and one.value is not None]
    if agents := sorted(same.intersection(one.labels["agent"] for one in totals)):
        yield said("note.identical", agents=tuple(agents))
    for name in sorted(material.steps):
        steps = material.steps[name]
        if n := sum(INSTRUCTION_LIKE in one.decision.flags for one in steps):
            yield said("note.instructing", agent=name, n=n, of=len(steps))


def _of_market(material: SeasonMaterial, grades: Sequence[SeasonGrade]) -> Iterator[Said]:
    """Days without data, what changed prices or units, and records that were graded in parts."""

    def few(names: Sequence[str]) -> tuple[str, ...]:
        more = len(names) - _MOST_DAYS
        return (*names[:_MOST_DAYS], *([f"+{more}"] if more > 0 else []))

    def symbols(*kinds: str) -> tuple[str, ...]:
        fills = (fill for steps in material.steps.values() for one in steps for fill in one.fills)
        return tuple(sorted({fill.symbol for fill in fills if getattr(fill, "kind", "") in kinds}))

    rows = [one for ones in material.navs.values() for one in ones]
    if empty := sorted({one.day for one in rows if one.state == "no data"}):
        yield said("note.no_data", n=len(empty), days=few(empty))
    if stale := {one.day for one in rows if one.state == "ok" and one.stale}:
        yield said("note.stale", n=len(stale))
    if ended := symbols(DELISTED):
        yield said("note.ended", n=len(ended), names=ended)
    if acted := symbols(SPLIT, DIVIDEND):
        yield said("note.acted", n=len(acted), names=acted)
    lines = {line.partition("\t")[2] for one in material.checks for line in one.mismatches}
    places = (line.removeprefix(MOVE).partition(":")[0].rpartition(" on ") for line in lines if line.startswith(MOVE))
    if moves := sorted(f"{name} {day}" for name, _, day in places):
        yield said("note.jumped", n=len(moves), moves=few(moves))
    parts = {one.agent: len(one.score.grades.parts) for one in grades if one.scope == "whole"}
    if split := sorted(name for name, n in parts.items() if n > 1):
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
    """The lines of the rules page, in the order of the file's fields; of records those that say something of them."""
    own, tables = [], []
    for name in type(season).model_fields:
        value = getattr(season, name)
        if isinstance(value, Frozen) or name in ("agents", "panel", "strategies"):
            tables += list(_table(name, value))
        else:
            own.append(SeasonRule(group=OWN, name=name, value=_of(name, value), meaning=said(f"field.{OWN}.{name}")))
    silent = _NOT_RECORDED if season.has_books else _NOT_RECORDED | _OF_BOOKS
    return tuple(
        one
        for one in (*own, *tables)
        if not season.recorded or (one.group != "rules" and (one.group, one.name) not in silent)
    )


def _table(name: str, value: Any) -> Iterator[SeasonRule]:
    if isinstance(value, dict):
        for agent, text in sorted(value.items()):
            yield SeasonRule(group=name, name=agent, value=_of("prompt", text), meaning=said(f"field.{name}"))
    elif isinstance(value, tuple):
        for spec in sorted(value, key=lambda one: one.name):
            given = spec.model_dump(mode="json", exclude={"name"}, exclude_none=True)
            given = {"model": given.pop("model"), "family": given.pop("family"), **given}
            words = ", ".join(f"{key} = {_written(one)}" for key, one in given.items() if one != {})
            yield SeasonRule(group=name, name=spec.name, value=words, meaning=said(f"field.{name}"))
    else:
        for one, info in type(value).model_fields.items():
            shown = info.alias or one
            meaning = said(f"field.{name}.{shown}")
            yield SeasonRule(group=name, name=shown, value=_of(one, getattr(value, one)), meaning=meaning)


def _of(name: str, value: Any) -> str:
    if value is None or (name in _TEXTS and not value):
        return ""
    if name in _TEXTS:
        return f"sha256 {sha256_text(value)[:12]}"
    if isinstance(value, str):
        return Path(value).name if name in _FOLDERS else value
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return value.isoformat() if isinstance(value, (date, time)) else _written(value)


def _written(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.12g}"
    if isinstance(value, Frozen):
        value = value.model_dump(mode="json", exclude_none=True)
    if isinstance(value, dict):
        inner = ", ".join(f"{name} = {_written(one)}" for name, one in value.items())
        return f"{{ {inner} }}" if inner else ""
    return json.dumps(value, ensure_ascii=False)


MISQUOTED: Final = "misquoted"
"""The rule of a line whose quotation, by a judge, does not stand in the reasons of its step."""

_MOST_FACTS: Final = 3
_MOST_QUOTED: Final = 300
_MOST_SHOWN: Final = 160
_END = re.compile(r"(?<=[.!?;])\s+|\n+")

_Span = tuple[int, int, int]


@dataclass(slots=True)
class _Line:
    """A line in the making."""

    quote: str
    start: int = 0
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
    horizon: Horizon, evidence: Mapping[str, Sequence[Evidence]], claims: Mapping[str, Sequence[HorizonClaim]],
    contexts: Mapping[str, Context],
) -> tuple[SeasonClaimLine, ...]:  # fmt: skip
    """Every statement of a record that somebody or something can check, by day and then by place."""
    by_step: dict[int, list[tuple[str, HorizonClaim]]] = defaultdict(list)
    for judge, ones in claims.items():
        for claim in ones:
            by_step[claim.step].append((judge, claim))
    found: list[SeasonClaimLine] = []
    for step in horizon.steps:
        lines = _lines(step, evidence.get(step.record_id, ()), by_step[step.number])
        context = contexts.get(step.context_id)
        facts = {} if context is None else _facts(context, lines)
        for line in lines:
            # the state of a row is its own number's: a statement with three numbers has three rows
            for one in line.numbers or (None,):
                names = () if one is None else tuple(dict.fromkeys(one.facts))
                seen = [facts.get(name, name) for name in names[:_MOST_FACTS]]
                seen += [f"+{len(names) - _MOST_FACTS}"] if len(names) > _MOST_FACTS else []
                head = "" if one is None else line.quote[: one.start - line.start]
                found.append(
                    SeasonClaimLine(
                        number=step.number, day=step.day, quote=" ".join(line.quote.split()), saw="; ".join(seen),
                        numbers=None if one is None else one.state, judges=dict(sorted(line.judges.items())),
                        rule=line.rule if one is None else one.rule,
                        which="" if one is None else " ".join(one.quote.split()),
                        start=len(" ".join(f"{head}x".split())) - 1,
                    )
                )  # fmt: skip
    return tuple(found)


def _lines(step: HorizonStep, numbers: Sequence[Evidence], claims: Sequence[tuple[str, HorizonClaim]]) -> list[_Line]:
    """The lines of one step in the order of their places; quotations that were not found come last."""
    placed: dict[_Span, _Line] = {}
    lost: dict[str, _Line] = {}
    for judge, claim in claims:
        spans = quoted_spans(claim.quote, step)
        if spans:
            part, start, end = spans[0]
            line = placed.setdefault(spans[0], _Line(step.texts[part].text[start:end], start))
        else:
            line = lost.setdefault(claim.quote, _Line(claim.quote, rule=MISQUOTED))
        line.judges.setdefault(judge, claim.state)
    quoted = tuple(placed)
    gaps = [[gap.span() for gap in _END.finditer(one.text)] for one in step.texts]
    for number in numbers:
        stop = number.start + len(number.quote)
        around = [one for one in quoted if one[0] == number.part and one[1] <= number.start and stop <= one[2]]
        for span in around or [_sentence(number, gaps[number.part], len(step.texts[number.part].text))]:
            part, start, end = span
            placed.setdefault(span, _Line(step.texts[part].text[start:end], start)).numbers.append(number)
    return [*(placed[span] for span in sorted(placed)), *lost.values()]


def _sentence(number: Evidence, gaps: Sequence[tuple[int, int]], size: int) -> _Span:
    """The sentence in which a number stands; of an endless one, what is near."""
    stop = number.start + len(number.quote)
    after = bisect_right(gaps, number.start, key=lambda gap: gap[1])
    start = gaps[after - 1][1] if after else 0
    end = next((gap[0] for gap in gaps[after:] if gap[0] >= stop), size)
    return number.part, max(start, number.start - _MOST_QUOTED), min(end, stop + _MOST_QUOTED)


def _facts(context: Context, lines: Iterable[_Line]) -> dict[str, str]:
    wanted = {name for line in lines for one in line.numbers for name in one.facts}
    if not wanted:
        return {}
    found = {}
    for fact in context.facts:
        if fact.id in wanted:
            number = not isinstance(fact.value, str)
            value = f"{fact.value:.10g}" if number else shorten(str(fact.value), _MOST_SHOWN, placeholder="…")
            found[fact.id] = " ".join(word for word in (fact.instrument, fact.field, value) if word)
    for one in context.series:
        if one.close:
            ends = (0, -1) if len(one.close) > 1 else (0,)
            days, closes = (" … ".join(words) for words in (
                [one.times[at].date().isoformat() for at in ends], [f"{one.close[at]:.10g}" for at in ends],
            ))  # fmt: skip
            found[f"series:{one.instrument}"] = f"{one.instrument} close {days}: {closes}"
    if context.portfolio is not None:
        book = {"cash": context.portfolio.cash, "nav": context.portfolio.nav, **context.portfolio.positions}
        found |= {f"portfolio.{name}": f"{name} {value:.10g}" for name, value in book.items() if value is not None}
    return found
