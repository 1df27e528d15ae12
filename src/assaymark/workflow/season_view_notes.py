"""What a reader has to know of a season beside its claims: what is missing, what failed, what is still to come."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, timedelta

from assaymark.agents.llm import ABSENT, NOT_USABLE
from assaymark.claims.messages import Said, said
from assaymark.claims.season_index import NOISE, TOTAL
from assaymark.judging.season.noise import IDENTICAL
from assaymark.market.calendar import weekdays
from assaymark.prompting.texts import INSTRUCTION_LIKE
from assaymark.records import Measurement
from assaymark.workflow.season_material import SeasonMaterial
from assaymark.workflow.season_records import DELISTED, DIVIDEND, SPLIT, SeasonGrade
from assaymark.workflow.season_settled import MOVE
from assaymark.workflow.season_view_records import record_notes

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
