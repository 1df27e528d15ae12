"""`assaymark season publish`: measure and decide a judged season, and write its site."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import chain
from pathlib import Path
from statistics import fmean
from textwrap import shorten
from typing import TYPE_CHECKING, Final

import numpy as np

from assaymark import __version__
from assaymark.claims import SeasonGates, certificate_name, decide_season, season_certificates
from assaymark.claims.certification import Panel, Rank, VerdictFile, build_file
from assaymark.claims.levels import SPAN
from assaymark.claims.messages import Catalogue, catalogue, english, languages
from assaymark.claims.season_claims import SeasonVerdicts
from assaymark.errors import InputError, LedgerError, Problem, UnknownNameError
from assaymark.judging.season.calls import find_quotation
from assaymark.judging.season.plans import HorizonClaim
from assaymark.judging.season.record import AuditLine, Horizon
from assaymark.judging.season.scoring import SeasonRow
from assaymark.market.instruments import weekdays
from assaymark.notebook import Part, Result
from assaymark.protocol import HUMAN_FAMILY
from assaymark.records import Context, Decision, Evidence, Measurement, content_id, grouped, write_atomic
from assaymark.report import ALONE, Site
from assaymark.report.records.answers import SeasonProvenance, SeasonRecord, record_places, season_record_pages
from assaymark.report.season import index, season_frame, write_site
from assaymark.report.season.feeds import verdict_records
from assaymark.report.text import tally_words
from assaymark.text import clean
from assaymark.workflow import run_folder as runs
from assaymark.workflow.human_labels import labels_of, people_basis
from assaymark.workflow.progress import note
from assaymark.workflow.run_folder import RunFolder
from assaymark.workflow.tables import DECISIONS, EVIDENCE, MEASUREMENTS, VERDICTS, Store
from assaymark.workflow.tracks import season_records as rows
from assaymark.workflow.tracks.season_day import read_journal
from assaymark.workflow.tracks.season_facts import (
    LEVEL,
    SeasonMaterial,
    hindsight_notes,
    late_note,
    season_material,
    season_notes,
)
from assaymark.workflow.tracks.season_lock import LockedSeason, stored_season
from assaymark.workflow.tracks.season_measures import AXES, season_findings

if TYPE_CHECKING:
    from assaymark.metrology.datasheet import Datasheet


@dataclass(frozen=True, slots=True, repr=False)
class SeasonPublished(Result):
    """A published season: its pages, ``verdicts.json``, lines to print, and the run to display in a notebook."""

    pages: tuple[Path, ...]
    file: VerdictFile
    lines: tuple[str, ...]
    run: index.SeasonRun

    def _parts(self) -> Iterator[Part]:
        from assaymark.report.notebook import season_parts

        yield from season_parts(self.run)
        yield from self.lines


def publish_season(
    folder: RunFolder, site: Path, languages: Sequence[Catalogue] = (), calls: bool = False, url: str = "",
) -> SeasonPublished:  # fmt: skip
    """Measure and decide a judged season, write its tables and ``verdicts.json``, and write its site."""
    if url and not re.fullmatch(r"https?://[^\s<>\"]+", url):
        raise InputError("--url", [Problem("", f"must begin with https:// or http:// (got {clean(url, 80)!r})")])
    stored = stored_season(folder)
    runs.site_files(site, stored.season.name, stored.plan_hash)
    shown, sheets, file, material, judged = decide_judged_season(folder)
    run = replace(shown, url=url)
    records: Iterable[tuple[str, str]] = ()
    if calls:
        from assaymark.workflow.ask import calls_of

        decisions = Store(folder).read(DECISIONS)
        trail = SeasonProvenance(season_records(judged, decisions, not stored.season.recorded), calls_of(folder))
        run, records = replace(run, records=record_places(trail.records)), season_record_pages(trail, season_frame(run))

    def write(out: Path) -> None:
        write_season(out, run, languages or shipped_languages(), sheets)
        for name, page in records:
            write_atomic(out / name, page)

    written = runs.replace_site(site, run.plan.name, run.plan_hash, write)
    note("writing pages", 3, 3)
    html = [page for page in written if page.suffix == ".html"]
    decided = f"{len(file.verdicts)} claims decided ({tally_words(file.tally)})"
    lines = [f"{file.study}: {decided}; plan {file.plan_hash[:12]}..."]
    if late := late_note(material, judged.grades):
        lines.append(f"{english().render(late)} Run: assaymark season judge {folder.path}")
    size = max(page.stat().st_size for page in html) / 1024
    parts = [page.relative_to(site).parts for page in html]
    tops = sorted(part[0].removesuffix(".html") for part in parts if len(part) == 1)
    below = Counter(part[0] for part in parts if len(part) > 1)
    page_names = ", ".join([*tops, *(f"{name}/ ({count})" for name, count in sorted(below.items()))])
    largest = f"{len(html)} pages written: {page_names}; the largest of {size:,.0f} kB"
    lines.append(f"{largest}; begin at {site / 'index.html'}")
    return SeasonPublished(written, file, tuple(lines), shown)


def season_records(
    judged: rows.SeasonJudgments, decisions: Iterable[Decision], decided_here: bool
) -> tuple[SeasonRecord, ...]:
    """Return every record of a judged season with its calls, except calls about outcomes, which grades do not name."""
    records = []
    for grade in judged.grades:
        row = rows.judgment_row(grade)
        span = {"whole": "the whole record", "replicate": f"replicate {grade.replicate}"}.get(grade.scope, grade.period)
        scores = ", ".join(f"{name} {value:.2f}" for name, value in row.scores.items())
        trial = f", trial {grade.trial}" if grade.trial > 1 else ""
        keys = [key for part in grade.score.grades.parts for key in (part.first_key, part.call_key) if key]
        records.append(
            SeasonRecord(
                kind="grades", who=grade.judge, of=f"{grade.agent}, {span}, {grade.first} to {grade.last}{trial}",
                said=scores if row.status == "ok" else f"{row.status}: {row.reason or 'no reason was kept'}",
                usable=row.status == "ok", keys=() if grade.family == HUMAN_FAMILY else tuple(keys), about=grade.agent,
            )
        )  # fmt: skip
    for guess in judged.guesses:
        trial = f", trial {guess.trial}" if guess.trial > 1 else ""
        right = "right" if guess.guess == guess.author else "wrong"
        records.append(
            SeasonRecord(
                kind="guesses", who=guess.judge, of=f"{guess.author}, {guess.period or 'the whole record'}{trial}",
                said=f"{guess.guess}, {right} of {guess.options}" if guess.guess is not None else guess.state,
                usable=guess.guess is not None, keys=(guess.call_key,), about=guess.author,
            )
        )  # fmt: skip
    for made in decisions:
        orders = ", ".join(f"{action.kind.replace('_', ' ')} {action.instrument}" for action in made.actions)
        key = made.call.raw_object if decided_here else None
        records.append(
            SeasonRecord(
                kind="decisions", who=made.agent.id, of=f"{made.decided_at:%Y-%m-%d %H:%M}, {made.record_id}",
                said=orders or "no order", keys=(key,) if key else (), about=made.record_id,
            )
        )  # fmt: skip
    return tuple(records)


def decide_judged_season(
    folder: RunFolder,
) -> tuple[index.SeasonRun, list[Datasheet], VerdictFile, SeasonMaterial, rows.SeasonJudgments]:
    """Measure and decide a judged season; returns its run, datasheets, ``verdicts.json``, material and judgments.

    Writes its tables, ``verdicts.json`` and one certificate a verdict.
    """
    stored, store = stored_season(folder), Store(folder)
    if store.digest(rows.GRADES) is None or not store.rows(rows.GRADES):
        if not stored.season.panel:
            from assaymark.workflow.tracks.season_judge import refuse_unjudgeable

            refuse_unjudgeable(folder, stored.season, store)
        raise LedgerError(f"{folder.path} was not judged yet; run: assaymark season judge {folder.path}")
    note("reading the records", 0, 3)
    material, judged, sheets = season_material(folder, stored), rows.SeasonJudgments.read(store), []
    lie: dict[str, str] = {}
    if folder.datasheets.is_dir():
        from assaymark.report.datasheet import datasheet_path
        from assaymark.workflow.tracks.datasheet import stored_datasheets

        sheets = stored_datasheets(folder)
        lie = {sheet.judge: datasheet_path(sheet.judge) for sheet in sheets}
    note("measuring", 1, 3)
    made_by = content_id({sheet.judge: sheet for sheet in sheets}) if sheets else None
    basis = {"plan": stored.plan_hash, "datasheets": made_by}
    tables = rows.GRADES, rows.GUESSES, EVIDENCE, rows.NAVS, rows.TIMES, rows.CHECKS
    basis |= {table.name: store.digest(table) for table in tables}
    if (graded := people_basis(folder)) is not None:
        basis["people"] = graded
    people = labels_of(folder, *rows.judged_periods(judged.grades))
    rng = np.random.default_rng([material.season.seed, 8])
    measurements, table = season_findings(material, judged, rng, sheets, people)
    store.write(MEASUREMENTS, measurements, basis)
    gates, season = gates_of(material, stored.preregistered), stored.season
    decided = decide_season(measurements, gates, stored.plan_hash)
    verdicts = tuple(verdict.verdict for verdict in decided.verdicts)
    store.write(VERDICTS, verdicts, {**basis, "measurements": store.digest(MEASUREMENTS)})
    built_in = {judge.name: judge.model.startswith("reference/") for judge in season.panel}
    families = {judge.name: judge.family for judge in season.panel}
    invalid = [measurement for measurement in measurements if measurement.name == "season.invalid"]
    places = [
        Rank(row.agent, row.first, row.last, row.shown, row.level, english().render(row.why)) for row in decided.places
    ]
    file = build_file(
        season, stored.plan_hash, verdicts, measurements,
        [place.agent for place in decided.places if place.first is not None], rubric=season.scoring,
        made_by=season.agents,
        panel=Panel(families, any(built_in.values()), built_in),
        amendments=[amendment.stated for amendment in stored.amendments], preregistered=stored.preregistered,
        missing={measurement.labels["judge"]: measurement.value for measurement in invalid if measurement.value},
        judged_to=max(grade.last for grade in judged.grades), places=tuple(places),
    )  # fmt: skip
    certificates = season_certificates(decided.verdicts, measurements, gates, families, level=LEVEL)
    names = map(certificate_name, verdicts)
    runs.replace_files(folder.certificates, dict(zip(names, map(runs.json_text, certificates), strict=True)))
    runs.write_json(folder.verdicts, file)
    run, (done, _) = season_run(stored, material, judged, measurements, table, decided, lie), read_journal(folder)
    run = replace(run, closes={name: close for name, (close, _) in done[-1].record["marks"].items()} if done else {})
    current = folder.publications / f"{run.last}.json"
    current.parent.mkdir(exist_ok=True)
    runs.write_json(current, verdict_records(index.SeasonIndex.of(run)))
    runs.write_sums(folder)
    note("writing pages", 2, 3)
    earlier = (path for path in sorted(current.parent.glob("*.json")) if path.stem <= current.stem)
    run = replace(run, publications=tuple(json.loads(path.read_text(encoding="utf-8")) for path in earlier))
    return run, sheets, file, material, judged


def gates_of(material: SeasonMaterial, preregistered: bool = True) -> SeasonGates:
    """Return the decision rules of a season, with notes on possible hindsight of its agents."""
    season = material.season
    limits = season.datasheets
    return SeasonGates(
        season.inference.alpha, season.judging.publish, season.judging.halt,
        on_failure=None if limits is None else limits.on_failure, hindsight=tuple(hindsight_notes(material)),
        margin=season.inference.margin * SPAN, any_judges=season.claims.judges == "any", preregistered=preregistered,
    )  # fmt: skip


def write_season(
    folder: Path, run: index.SeasonRun, languages: Sequence[Catalogue], sheets: Sequence[Datasheet] = (),
    site: Site = ALONE,
) -> None:  # fmt: skip
    """Write every page of a season, and the datasheets of its judges, to an empty folder."""
    write_site(run, folder, languages, site)
    if sheets:
        from assaymark.workflow.tracks.datasheet import datasheet_pages

        for name, page in datasheet_pages(sheets, frame=season_frame(run, site)):
            write_atomic(folder / name, page)


def chosen_languages(codes: Sequence[str]) -> tuple[Catalogue, ...]:
    """Return languages by their codes, or from TOML files, whose names begin with the code."""
    problems: list[Problem] = []
    catalogues: dict[str, Catalogue] = {}
    for language in codes:
        path = Path(language)
        code = path.name.partition(".")[0]
        try:
            if not language.endswith(".toml"):
                texts = catalogue(language)
            elif code.isalnum() and code.isascii():
                texts = Catalogue.of({path.name: runs.read_text(path, "language file")}, code)
            else:
                problem = f"must begin with the code of a language, such as fr (got {code!r})"
                problems.append(Problem(f"{language}, name", problem))
                continue
        except InputError as exc:
            problems += [Problem(f"{language}, {inner.where}".removesuffix(", "), inner.what) for inner in exc.problems]
            continue
        except UnknownNameError as exc:
            problems.append(Problem(language, f"{exc}; or name a TOML file (FILE.toml)"))
            continue
        if texts.language in catalogues:
            problems.append(Problem(language, f"the language {texts.language!r} is named twice"))
        catalogues[texts.language] = texts
    if problems:
        raise InputError("--language", problems)
    return tuple(catalogues.values())


def shipped_languages() -> tuple[Catalogue, ...]:
    """Return every language of the package, English first."""
    return tuple(catalogue(code) for code in languages())


# --- The contents of a season's site ----------------------------------------------------------------------------------


def season_run(
    stored: LockedSeason, material: SeasonMaterial, judged: rows.SeasonJudgments, measurements: Sequence[Measurement],
    table: tuple[SeasonRow, ...], decided: SeasonVerdicts, sheets: Mapping[str, str],
) -> index.SeasonRun:  # fmt: skip
    """Return the contents of a season's site; ``sheets`` are the paths of datasheets by judge."""
    season = stored.season
    steps = [step for days in material.steps.values() for step in days]
    days = sorted({step.day for step in steps})
    decided_at = max(step.decision.decided_at for step in steps)
    remaining = [] if season.recorded else [*map(str, weekdays(date.fromisoformat(days[-1]), season.calendar.last))]
    ahead = [day for day in remaining if day > days[-1]]
    next_at = f"{ahead[0]}T{season.calendar.decide_at.isoformat()}+00:00" if ahead and season.market.live else ""
    sources = {step.decision.provenance.source for step in steps if step.decision.provenance}
    books = [(name, False, rows) for name, rows in material.navs.items()]
    books += [(name, True, rows) for name, rows in sorted(material.baselines.items())]
    paths = tuple(
        index.SeasonPath(name, baseline, season.capital, *zip(*((nav.day, nav.nav) for nav in rows), strict=True))
        for name, baseline, rows in books
        if rows
    )
    numbers: dict[str, list[Evidence]] = defaultdict(list)
    for row in judged.evidence:
        numbers[row.decision].append(row)
    blinding = tuple(AuditLine(row.name, row.state, row.count, row.why) for row in judged.replaced)
    return index.SeasonRun(
        season, stored.plan_hash, stored.locked_at, __version__, days[0], days[-1], len(days), stored.data.universe,
        material.scoring, paths, material.steps,
        {  # over the blinded texts
            agent: ledger_view(
                material.horizon(agent, own_steps), numbers, claims_by_judge(judged.grades, agent), material.contexts
            )
            for agent, own_steps in material.steps.items()
        },
        grade_views(judged.grades, {judge.name for judge in season.panel if judge.built_in}), table, decided,
        tuple(measurements), blinding, ", ".join(sorted(sources)) if season.recorded else "",
        material.partial, tuple(season_notes(material, judged.grades, measurements)), len(days) + len(ahead),
        decided_at.isoformat(), next_at,
        {judge.name: sheets[judge.name] for judge in season.panel if judge.name in sheets},
    )  # fmt: skip


def grade_views(
    grades: Iterable[rows.SeasonGrade], built_in: Collection[str] = ()
) -> tuple[index.SeasonGradeView, ...]:
    """Return the grades of whole records by agent and judge: means over trials, with the texts of the first trial."""
    whole = (grade for grade in grades if grade.scope == "whole")
    in_order = sorted(whole, key=lambda grade: (grade.agent, grade.judge, grade.trial))
    by_judge = grouped(in_order, lambda grade: (grade.agent, grade.judge))

    def means(points: Sequence[Mapping[str, float]]) -> dict[str, float]:
        return {name: fmean(point[name] for point in points) for name in points[0]}

    views = []
    for (agent, judge), trials in by_judge.items():
        first, *_ = (trial.score.grades for trial in trials)
        good = [trial.score for trial in trials if trial.score.score is not None]
        if not good:
            parts = len(first.parts)
            views.append(index.SeasonGradeView(agent, judge, first.state, reason=first.reason or "", parts=parts))
            continue
        graded, scores = [score.grades for score in good], [score.score for score in good if score.score is not None]
        words = graded[0]
        looked = next((grades for grades in graded if grades.lookahead_check == "fail"), words)
        outcomes = [score.outcome for score in scores if score.outcome is not None]
        states = [score.outcome.state for score in good if score.outcome is not None]
        points = [grades.data_reliability for grades in graded if grades.data_reliability is not None]
        counted = [{**score.grades.evidence, **{part.part: part.counted for part in score.capped}} for score in good]
        lowered = sorted({part.part for score in good for part in score.capped if part.counted < part.given})
        asks = judge not in built_in
        views.append(
            index.SeasonGradeView(
                agent, judge, "ok", fmean(score.composite for score in scores),
                {name: fmean(getattr(score, name) for score in scores) for name in AXES},
                means([grades.reasoning for grades in graded]), means(counted),
                {name: fmean(grades.evidence[name] for grades in graded) for name in lowered},
                fmean(outcomes) if outcomes else None, "ok" if "ok" in states else next(iter(states), "unresolved"),
                fmean(points) if points else None, looked.lookahead_check if asks else None,
                looked.lookahead_reason if asks else "", words.verdict, words.summary, parts=len(words.parts),
            )
        )  # fmt: skip
    return tuple(views)


MISQUOTED: Final = "misquoted"
"""The rule of a line whose quotation by a judge is not in the reasons of its step."""

_MOST_FACTS: Final = 3
_MOST_QUOTED: Final = 300
_MOST_SHOWN: Final = 160
_END = re.compile(r"(?<=[.!?;])\s+|\n+")


def claims_by_judge(grades: Iterable[rows.SeasonGrade], agent: str) -> dict[str, tuple[HorizonClaim, ...]]:
    """Return the claims that each judge listed for an agent's whole record, in its first trial with a usable reply."""
    claims: dict[str, tuple[HorizonClaim, ...]] = {}
    for entry in sorted(grades, key=lambda grade: (grade.judge, grade.trial)):
        if entry.agent == agent and entry.scope == "whole" and entry.score.grades.state == "ok":
            claims.setdefault(entry.judge, entry.score.grades.claims)
    return claims


def ledger_view(
    horizon: Horizon, evidence: Mapping[str, Sequence[Evidence]], claims: Mapping[str, Sequence[HorizonClaim]],
    contexts: Mapping[str, Context],
) -> tuple[index.SeasonClaimLine, ...]:  # fmt: skip
    """Return every checkable statement of a record, by day and position."""
    views: list[index.SeasonClaimLine] = []
    for step in horizon.steps:
        # judges' states of quotations by span, and of quotations not found; numbers by span
        states_at: defaultdict[tuple[int, int, int], dict[str, str]] = defaultdict(dict)
        lost: defaultdict[str, dict[str, str]] = defaultdict(dict)
        numbers: defaultdict[tuple[int, int, int], list[Evidence]] = defaultdict(list)
        for judge, claim in ((judge, one) for judge, ones in claims.items() for one in ones if one.step == step.number):
            spans = find_quotation(claim.quote, step)
            (states_at[spans[0]] if spans else lost[claim.quote]).setdefault(judge, claim.state)
        quoted, ends = tuple(states_at), [[end.span() for end in _END.finditer(text.text)] for text in step.texts]
        for number in evidence.get(step.record_id, ()):
            stop = number.start + len(number.quote)
            around = [span for span in quoted if span[0] == number.part and span[1] <= number.start and stop <= span[2]]
            if not around:  # the sentence with the number, or of a very long one the text near it
                gaps, size = ends[number.part], len(step.texts[number.part].text)
                after = bisect_right(gaps, number.start, key=lambda pause: pause[1])
                start = gaps[after - 1][1] if after else 0
                end = next((pause[0] for pause in gaps[after:] if pause[0] >= stop), size)
                around = [(number.part, max(start, number.start - _MOST_QUOTED), min(end, stop + _MOST_QUOTED))]
            for span in around:
                numbers[span].append(number)
        context = contexts.get(step.context_id)
        facts = {} if context is None else _facts(context, chain.from_iterable(numbers.values()))
        lines = [(step.texts[part].text[start:end], start, numbers[part, start, end], states_at[part, start, end], "")
                 for part, start, end in sorted({*states_at, *numbers})]  # fmt: skip
        lines += [(quote, 0, [], states, MISQUOTED) for quote, states in lost.items()]
        for quote_text, start, numbers_in, states, rule in lines:
            quote, judges = " ".join(quote_text.split()), dict(sorted(states.items()))
            if not numbers_in:
                views.append(index.SeasonClaimLine(step.number, step.day, quote, "", None, rule, judges))
            for one in numbers_in:  # one row for each number, with its own state
                names = tuple(dict.fromkeys(one.facts))
                labels = [facts.get(name, name) for name in names[:_MOST_FACTS]]
                labels += [f"+{len(names) - _MOST_FACTS}"] if len(names) > _MOST_FACTS else []
                which, head = " ".join(one.quote.split()), quote_text[: one.start - start]
                at, saw = len(" ".join(f"{head}x".split())) - 1, "; ".join(labels)
                view = index.SeasonClaimLine(step.number, step.day, quote, saw, one.state, one.rule, judges, which, at)
                views.append(view)
    return tuple(views)


def _facts(context: Context, numbers: Iterable[Evidence]) -> dict[str, str]:
    names = {name for number in numbers for name in number.facts}
    if not names:
        return {}
    texts = {}
    for fact in context.facts:
        if fact.id in names:
            number = not isinstance(fact.value, str)
            value = f"{fact.value:.10g}" if number else shorten(str(fact.value), _MOST_SHOWN, placeholder="…")
            texts[fact.id] = " ".join(word for word in (fact.instrument, fact.field, value) if word)
    for series in context.series:
        if series.close:
            ends = (0, -1) if len(series.close) > 1 else (0,)
            days = " … ".join(series.times[at].date().isoformat() for at in ends)
            closes = " … ".join(f"{series.close[at]:.10g}" for at in ends)
            texts[f"series:{series.instrument}"] = f"{series.instrument} close {days}: {closes}"
    if context.portfolio is not None:
        values = {"cash": context.portfolio.cash, "nav": context.portfolio.nav, **context.portfolio.positions}
        texts |= {f"portfolio.{name}": f"{name} {value:.10g}" for name, value in values.items() if value is not None}
    return texts
