"""A judged season as its site shows it: who took part, what happened, the claim ledger, notes, and the locked file."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, time, timedelta
from pathlib import Path
from statistics import fmean
from textwrap import shorten
from typing import Any, Final

from assaymark import __version__
from assaymark.agents.llm import ABSENT, NOT_USABLE, REJECTED
from assaymark.claims.levels import NOISE, TOTAL
from assaymark.claims.messages import Said, said
from assaymark.claims.season_claims import SeasonVerdicts
from assaymark.claims.season_plan import Season
from assaymark.importers.report import REPLAYED
from assaymark.judging.season.calls import quoted_spans
from assaymark.judging.season.plans import HorizonClaim
from assaymark.judging.season.record import AuditLine, Horizon, HorizonStep
from assaymark.judging.season.table import SeasonTable
from assaymark.market.instruments import weekdays
from assaymark.plan import Frozen
from assaymark.prompting import INSTRUCTION_LIKE
from assaymark.records import IDENTICAL, Context, Evidence, Measurement, sha256_text
from assaymark.report.datasheet import datasheet_path
from assaymark.report.season.index import (
    SeasonClaimLine,
    SeasonGradeView,
    SeasonPath,
    SeasonRefusal,
    SeasonRule,
    SeasonRun,
    SeasonStep,
    SeasonTrade,
)
from assaymark.workflow.tracks.season_books import MOVE
from assaymark.workflow.tracks.season_context import SeasonMaterial
from assaymark.workflow.tracks.season_judge import season_horizons
from assaymark.workflow.tracks.season_lock import StoredSeason
from assaymark.workflow.tracks.season_measure import AXES
from assaymark.workflow.tracks.season_records import DELISTED, DIVIDEND, SPLIT, SeasonGrade, SeasonJudgments

_NUMBERS = ("quantity", "weight", "price", "leverage", "stop", "target", "confidence", "expected_return")


def season_run(
    stored: StoredSeason, material: SeasonMaterial, judged: SeasonJudgments, measurements: Sequence[Measurement],
    table: SeasonTable, decided: SeasonVerdicts, sheets: Collection[str] = (),
) -> SeasonRun:  # fmt: skip
    """The season as its site shows it. ``sheets`` are the judges with a datasheet."""
    season = stored.season
    steps = [one for ones in material.steps.values() for one in ones]
    days = sorted({step.day for step in steps})
    decided_at = max(step.decision.decided_at for step in steps)
    left = [] if season.recorded else [*map(str, weekdays(date.fromisoformat(days[-1]), season.calendar.last))]
    ahead = [day for day in left if day > days[-1]]
    next_at = f"{ahead[0]}T{season.calendar.decide_at.isoformat()}+00:00" if ahead and season.market.live else ""
    sources = {step.decision.provenance.source for step in steps if step.decision.provenance}
    books = [(name, False, rows) for name, rows in material.navs.items()]
    books += [(name, True, rows) for name, rows in sorted(material.baselines.items())]
    paths = tuple(
        SeasonPath(name, baseline, season.capital, *zip(*((one.day, one.nav) for one in rows), strict=True))
        for name, baseline, rows in books
        if rows
    )
    numbers: dict[str, list[Evidence]] = defaultdict(list)
    for row in judged.evidence:
        numbers[row.decision].append(row)
    blinding: dict[str, tuple[AuditLine, ...]] = {}
    for one in sorted(judged.replaced, key=lambda one: (one.agent, one.state, -one.count, one.name)):
        line = AuditLine(one.name, "replaced" if one.state == "replaced" else "kept", one.count, one.why)
        blinding[one.agent] = (*blinding.get(one.agent, ()), line)
    return SeasonRun(
        season, stored.plan_hash, stored.locked_at, __version__, days[0], days[-1], len(days), stored.universe,
        material.scoring, paths, season_steps(material),
        {  # over the texts as the judges saw them
            agent: ledger_view(horizon, numbers, claims_by_judge(judged.grades, agent), material.contexts)
            for agent, horizon in season_horizons(material).items()
        },
        grade_views(judged.grades, {one.name for one in season.panel if one.built_in}), table, decided,
        tuple(measurements), blinding, season_rules(season), ", ".join(sorted(sources)) if season.recorded else "",
        material.partial, tuple(season_notes(material, judged.grades, measurements)), len(days) + len(ahead),
        decided_at.isoformat(), next_at,
        {one.name: datasheet_path(one.name) for one in season.panel if one.name in sheets},
    )  # fmt: skip


def season_steps(material: SeasonMaterial) -> dict[str, tuple[SeasonStep, ...]]:
    """Every decision of the first replicate with what came of it, by agent.

    The book after a decision is of its own day in records, and else of the first later day that settled anything.
    """
    wrong: dict[str, list[str]] = defaultdict(list)
    for check in material.checks:
        for line in check.mismatches:
            record, _, text = line.partition("\t")
            wrong[record].append(text)
    found = {}
    for name, steps in material.steps.items():
        settled = [one for one in material.navs[name] if one.state == "ok"]
        same_day, days = {one.day: one for one in settled}, [one.day for one in settled]
        made = []
        for number, one in enumerate(steps, start=1):
            at = bisect_right(days, one.day)
            later = settled[at] if at < len(settled) else None
            nav = same_day.get(one.day) if material.season.recorded else later
            decision, book = one.decision, one.book
            orders = []
            for action in decision.actions:  # as it was given: its kind, its instrument, and its numbers
                stated = [f"{name} {value:.10g}" for name in _NUMBERS if (value := getattr(action, name)) is not None]
                orders.append(", ".join([f"{action.kind} {action.instrument}".strip(), *stated]))
            fills = tuple(
                SeasonTrade(fill.symbol, fill.quantity, fill.price, fill.cost, getattr(fill, "kind", "order"))
                for fill in one.fills
            )
            refusals = tuple(
                SeasonRefusal(order.symbol, order.reason, getattr(order, "text", order.reason))
                for order in one.rejections
            )
            unread = {*NOT_USABLE, REJECTED} & {*decision.flags}
            made.append(
                SeasonStep(
                    number, one.day, decision.record_id, tuple(orders),
                    tuple((text.kind, text.text) for text in decision.rationales), fills, refusals, decision.flags,
                    problem="; ".join(decision.missing) if unread else "",
                    seconds=material.seconds.get(decision.record_id), nav=None if nav is None else nav.nav,
                    cash=None if book is None else book.cash,
                    positions={} if book is None else dict(sorted(book.positions.items())),
                    mismatches=tuple(wrong.get(decision.record_id, ())),
                )
            )  # fmt: skip
        found[name] = tuple(made)
    return found


def grade_views(grades: Iterable[SeasonGrade], built_in: Collection[str] = ()) -> tuple[SeasonGradeView, ...]:
    """The grades of whole records, by agent and then judge: means over trials, and the words of the first."""
    found: dict[tuple[str, str], list[SeasonGrade]] = defaultdict(list)
    for one in sorted(grades, key=lambda grade: (grade.agent, grade.judge, grade.trial)):
        if one.scope == "whole":
            found[one.agent, one.judge].append(one)

    def means(points: Sequence[Mapping[str, float]]) -> dict[str, float]:
        return {name: fmean(point[name] for point in points) for name in points[0]}

    views = []
    for (agent, judge), trials in found.items():
        first, *_ = (trial.score.grades for trial in trials)
        good = [trial.score for trial in trials if trial.score.score is not None]
        if not good:
            reason, parts = first.reason or "", len(first.parts)
            views.append(SeasonGradeView(agent, judge, first.state, reason=reason, parts=parts))
            continue
        given, scores = [one.grades for one in good], [one.score for one in good if one.score is not None]
        words = given[0]
        looked = next((one for one in given if one.lookahead_check == "fail"), words)
        outcomes = [score.outcome for score in scores if score.outcome is not None]
        asked = [one.outcome.state for one in good if one.outcome is not None]
        points = [one.data_reliability for one in given if one.data_reliability is not None]
        counted = [{**one.grades.evidence, **{part.part: part.counted for part in one.capped}} for one in good]
        lowered = sorted({part.part for one in good for part in one.capped if part.counted < part.given})
        asks = judge not in built_in
        views.append(
            SeasonGradeView(
                agent, judge, "ok", fmean(score.composite for score in scores),
                axes={name: fmean(getattr(one, name) for one in scores) for name in AXES},
                reasoning=means([one.reasoning for one in given]), evidence=means(counted),
                capped={name: fmean(one.evidence[name] for one in given) for name in lowered},
                outcome=fmean(outcomes) if outcomes else None,
                outcome_state="ok" if "ok" in asked else next(iter(asked), "unresolved"),
                data_reliability=fmean(points) if points else None,
                lookahead=looked.lookahead_check if asks else None,
                lookahead_reason=looked.lookahead_reason if asks else "",
                verdict=words.verdict, summary=words.summary, parts=len(words.parts),
            )
        )  # fmt: skip
    return tuple(views)


_OF_STEPS: Final = "aitrader"
"""The format in which a step has a stamp, and only its messages say when they were written."""

_MOST_DAYS = 5


def record_notes(material: SeasonMaterial) -> Iterator[Said]:
    """The notes of a season of records; none of a season that was run here."""
    if not material.season.recorded:
        return
    yield said("note.records.not_ours")
    steps = [one for ones in material.steps.values() for one in ones]
    yield from hindsight(material)
    if any(material.navs.values()):
        yield said("note.records.valued")
        if bare := sum(step.book is None for step in steps):
            yield said("note.records.not_stated", n=bare, of=len(steps))
    else:
        yield said("note.records.no_books")
    checks, passed = (sum(getattr(check, name) for check in material.checks) for name in ("checks", "passed"))
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
    if late := sum(REPLAYED in decision.flags for decision in decisions):
        yield said("note.records.replayed", n=late, of=len(decisions))
    undated = sum(decision.call.timing_source == "absent" and REPLAYED not in decision.flags for decision in decisions)
    if undated and material.season.market.format == _OF_STEPS:
        yield said("note.records.undated", n=undated, of=len(decisions))


def judged_to(grades: Sequence[SeasonGrade]) -> str:
    """The last day that a judge was shown."""
    return max(grade.last for grade in grades)


def behind(material: SeasonMaterial, grades: Sequence[SeasonGrade]) -> Said | None:
    """That the grades are of fewer days than the season has by now."""
    judged, last = judged_to(grades), max(steps[-1].day for steps in material.steps.values() if steps)
    return said("note.judged_to", judged=judged, last=last) if judged < last else None


def season_notes(
    material: SeasonMaterial, grades: Sequence[SeasonGrade], measurements: Sequence[Measurement] = ()
) -> Iterator[Said]:
    """The notes of a season, the weightiest first: what is not there yet or not whole, then what agents did."""
    yield from record_notes(material)
    if earlier := behind(material, grades):
        yield earlier
    last, end = max(steps[-1].day for steps in material.steps.values() if steps), material.season.calendar.last
    if weekdays(date.fromisoformat(last[:10]) + timedelta(days=1), end).size:
        yield said("note.going_on", last=last, end=str(end))
    if material.partial:
        yield said("note.partial")
    untimed = []
    for name, steps in material.steps.items():
        answered = [step.decision.record_id for step in steps if not {*NOT_USABLE} & {*step.decision.flags}]
        if answered and all(material.seconds.get(one) is None for one in answered):
            untimed.append(name)
    if untimed:
        yield said("note.untimed", n=len(untimed), agents=tuple(sorted(untimed)))
    judges = sorted({grade.judge for grade in grades})
    if nothing := sorted({one.name for one in material.season.panel} - {*judges}):
        yield said("note.judge_awaited", n=len(nothing), judges=tuple(nothing))
    mine = {judge: [grade.score.grades for grade in grades if grade.judge == judge] for judge in judges}
    for judge, given in mine.items():
        if bad := sum(one.state != "ok" for one in given):
            yield said("note.judge_silent", judge=judge, n=bad, of=len(given))
    for judge, given in mine.items():
        firsts = [part.first_key for one in given for part in one.parts]
        if n := sum(map(bool, firsts)):
            yield said("note.judge_again", judge=judge, n=n, of=len(firsts))
    for name in sorted(material.steps):
        steps = material.steps[name]
        absent = [step for step in steps if ABSENT in step.decision.flags]
        bad = sum(bool({*NOT_USABLE} & {*step.decision.flags}) for step in steps) - len(absent)
        if absent:
            why = "; ".join(absent[-1].decision.missing)
            yield said("note.agent_absent", agent=name, n=len(absent), of=len(steps), why=why)
        if bad:
            yield said("note.agent_silent", agent=name, n=bad, of=len(steps))
    if refused := {name: len(ones) for name, ones in material.rejections.items() if ones}:
        yield said("note.rejected", n=sum(refused.values()), agents=tuple(sorted(refused)))
    same = {
        measurement.labels["of"]
        for measurement in measurements
        if measurement.name == NOISE and measurement.state == IDENTICAL
    }
    totals = [
        measurement for measurement in measurements if measurement.name == TOTAL and measurement.value is not None
    ]
    if agents := sorted(same.intersection(total.labels["agent"] for total in totals)):
        yield said("note.identical", agents=tuple(agents))
    for name in sorted(material.steps):
        if n := sum(INSTRUCTION_LIKE in one.decision.flags for one in material.steps[name]):
            yield said("note.instructing", agent=name, n=n, of=len(material.steps[name]))
    yield from _market_notes(material, grades)


def _market_notes(material: SeasonMaterial, grades: Sequence[SeasonGrade]) -> Iterator[Said]:
    """Days without data, what changed prices or units, and records that were graded in parts."""

    def few(names: Sequence[str]) -> tuple[str, ...]:
        more = len(names) - _MOST_DAYS
        return (*names[:_MOST_DAYS], *([f"+{more}"] if more > 0 else []))

    def symbols(*kinds: str) -> tuple[str, ...]:
        fills = (fill for steps in material.steps.values() for one in steps for fill in one.fills)
        return tuple(sorted({fill.symbol for fill in fills if getattr(fill, "kind", "") in kinds}))

    rows = [one for ones in material.navs.values() for one in ones]
    if empty := sorted({row.day for row in rows if row.state == "no data"}):
        yield said("note.no_data", n=len(empty), days=few(empty))
    if stale := {row.day for row in rows if row.state == "ok" and row.stale}:
        yield said("note.stale", n=len(stale))
    if ended := symbols(DELISTED):
        yield said("note.ended", n=len(ended), names=ended)
    if acted := symbols(SPLIT, DIVIDEND):
        yield said("note.acted", n=len(acted), names=acted)
    lines = {line.partition("\t")[2] for check in material.checks for line in check.mismatches}
    places = (line.removeprefix(MOVE).partition(":")[0].rpartition(" on ") for line in lines if line.startswith(MOVE))
    if moves := sorted(f"{name} {day}" for name, _, day in places):
        yield said("note.jumped", n=len(moves), moves=few(moves))
    parts = {grade.agent: len(grade.score.grades.parts) for grade in grades if grade.scope == "whole"}
    if split := sorted(name for name, n in parts.items() if n > 1):
        yield said("note.split", n=len(split), agents=tuple(split), parts=max(parts.values()))


OWN: Final = "season"
"""The group of fields that stand in no table of the file."""

_NOT_RECORDED: Final = frozenset(
    {(OWN, "bars"), (OWN, "news_days"), ("market", "seed"), ("market", "live"), ("calendar", "decide_at")}
)
"""Fields that say nothing of a season that somebody else ran; so does the table of the broker's rules."""

_OF_BOOKS: Final = frozenset({(OWN, "capital"), (OWN, "currency")})


def season_rules(season: Season) -> tuple[SeasonRule, ...]:
    """The lines of the rules page, in the order of the file's fields; of records those that say something of them."""
    silent = _NOT_RECORDED if season.has_books else _NOT_RECORDED | _OF_BOOKS
    own: list[SeasonRule] = []
    tables: list[SeasonRule] = []

    def add(rows: list[SeasonRule], group: str, name: str, value: str, key: str) -> None:
        if not season.recorded or (group != "rules" and (group, name) not in silent):
            rows.append(SeasonRule(group, name, value, said(f"field.{key}")))

    for name in type(season).model_fields:
        value = getattr(season, name)
        if isinstance(value, Frozen):
            for inner, info in type(value).model_fields.items():
                shown = info.alias or inner
                add(tables, name, shown, _shown(inner, getattr(value, inner)), f"{name}.{shown}")
        elif name == "strategies":
            for agent, text in sorted(value.items()):
                add(tables, name, agent, _shown("prompt", text), name)
        elif name in ("agents", "panel"):
            for spec in sorted(value, key=lambda one: one.name):
                given = spec.model_dump(mode="json", exclude={"name"}, exclude_none=True)
                given = {"model": given.pop("model"), "family": given.pop("family"), **given}
                words = ", ".join(f"{key} = {_written(one)}" for key, one in given.items() if one != {})
                add(tables, name, spec.name, words, name)
        else:
            add(own, OWN, name, _shown(name, value), f"{OWN}.{name}")
    return (*own, *tables)


def _shown(name: str, value: Any) -> str:
    if value is None or (name == "prompt" and not value):
        return ""
    if name == "prompt":
        return f"sha256 {sha256_text(value)[:12]}"
    if isinstance(value, str):
        return Path(value).name if name in ("source", "grades") else value
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
    for one in sorted(grades, key=lambda grade: (grade.judge, grade.trial)):
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
            for number in line.numbers or (None,):
                names = () if number is None else tuple(dict.fromkeys(number.facts))
                seen = [facts.get(name, name) for name in names[:_MOST_FACTS]]
                seen += [f"+{len(names) - _MOST_FACTS}"] if len(names) > _MOST_FACTS else []
                head = "" if number is None else line.quote[: number.start - line.start]
                quote, saw, judges = " ".join(line.quote.split()), "; ".join(seen), dict(sorted(line.judges.items()))
                state, rule = (None, line.rule) if number is None else (number.state, number.rule)
                which, start = (
                    "" if number is None else " ".join(number.quote.split()),
                    len(" ".join(f"{head}x".split())) - 1,
                )
                found.append(SeasonClaimLine(step.number, step.day, quote, saw, state, rule, judges, which, start))
    return tuple(found)


def _lines(step: HorizonStep, numbers: Sequence[Evidence], claims: Sequence[tuple[str, HorizonClaim]]) -> list[_Line]:
    """The lines of one step in the order of their places; quotations that were not found come last."""
    placed: dict[tuple[int, int, int], _Line] = {}
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
    ends = [[gap.span() for gap in _END.finditer(one.text)] for one in step.texts]
    for number in numbers:
        stop = number.start + len(number.quote)
        around = [one for one in quoted if one[0] == number.part and one[1] <= number.start and stop <= one[2]]
        if not around:  # the sentence in which the number stands; of an endless one, what is near
            gaps, size = ends[number.part], len(step.texts[number.part].text)
            after = bisect_right(gaps, number.start, key=lambda gap: gap[1])
            start = gaps[after - 1][1] if after else 0
            end = next((gap[0] for gap in gaps[after:] if gap[0] >= stop), size)
            around = [(number.part, max(start, number.start - _MOST_QUOTED), min(end, stop + _MOST_QUOTED))]
        for span in around:
            part, start, end = span
            placed.setdefault(span, _Line(step.texts[part].text[start:end], start)).numbers.append(number)
    return [*(placed[span] for span in sorted(placed)), *lost.values()]


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
