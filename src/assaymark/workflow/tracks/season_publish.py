"""`assaymark season publish`: what a judged season shows is measured, decided, and made a site."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from assaymark.claims import SeasonGates, certificate_name, decide_season, season_certificates
from assaymark.claims.levels import SPAN
from assaymark.claims.messages import Catalogue, catalogue, english, languages
from assaymark.encoding import write_atomic
from assaymark.errors import InputError, LedgerError, Problem, UnknownNameError
from assaymark.metrology.datasheet import Datasheet
from assaymark.notebook import Note, Part, Result
from assaymark.protocol import HUMAN_FAMILY
from assaymark.records import Decision, content_id
from assaymark.report import ALONE, Site
from assaymark.report.season import season_frame, write_site
from assaymark.report.season.feeds import verdicts_of
from assaymark.report.season.index import SeasonIndex, SeasonRun
from assaymark.report.season.records import SeasonRecord, SeasonTrail, record_places, season_record_pages
from assaymark.text import clean
from assaymark.workflow.ask import calls_of
from assaymark.workflow.human_labels import labels_of, people_basis
from assaymark.workflow.progress import Progress, silent
from assaymark.workflow.run_folder import (
    RunFolder,
    json_text,
    read_text,
    replace_files,
    replace_site,
    site_files,
    write_json,
    write_sums,
)
from assaymark.workflow.tables import DECISIONS, EVIDENCE, MEASUREMENTS, VERDICTS, Store
from assaymark.workflow.tracks.datasheet import datasheet_pages, stored_datasheets
from assaymark.workflow.tracks.season_context import SeasonMaterial, material_of
from assaymark.workflow.tracks.season_judge import judged_periods, judgment_row
from assaymark.workflow.tracks.season_lock import stored_season
from assaymark.workflow.tracks.season_measures import LEVEL, season_findings
from assaymark.workflow.tracks.season_records import CHECKS, GRADES, GUESSES, NAVS, TIMES, SeasonJudgments
from assaymark.workflow.tracks.season_view import behind, hindsight, judged_to, season_run
from assaymark.workflow.verdict_file import Panel, PlaceLine, VerdictFile, decided_file


def season_records(
    judged: SeasonJudgments, decisions: Iterable[Decision], decided_here: bool
) -> tuple[SeasonRecord, ...]:
    """Every record of a judged season. The call about an outcome is not kept with its grade, and so not named."""
    found = []
    for grade in judged.grades:
        row = judgment_row(grade)
        what = {"whole": "the whole record", "replicate": f"replicate {grade.replicate}"}.get(grade.scope, grade.period)
        scores = ", ".join(f"{name} {value:.2f}" for name, value in row.scores.items())
        trial = f", trial {grade.trial}" if grade.trial > 1 else ""
        keys = [key for part in grade.score.grades.parts for key in (part.first_key, part.call_key) if key]
        found.append(
            SeasonRecord(
                kind="grades", who=grade.judge, of=f"{grade.agent}, {what}, {grade.first} to {grade.last}{trial}",
                said=scores if row.status == "ok" else f"{row.status}: {row.reason or 'no reason was kept'}",
                usable=row.status == "ok", keys=() if grade.family == HUMAN_FAMILY else tuple(keys), about=grade.agent,
            )
        )  # fmt: skip
    for guess in judged.guesses:
        trial = f", trial {guess.trial}" if guess.trial > 1 else ""
        right = "right" if guess.guess == guess.author else "wrong"
        found.append(
            SeasonRecord(
                kind="guesses", who=guess.judge, of=f"{guess.author}, {guess.period or 'the whole record'}{trial}",
                said=f"{guess.guess}, {right} of {guess.options}" if guess.guess is not None else guess.state,
                usable=guess.guess is not None, keys=(guess.call_key,), about=guess.author,
            )
        )  # fmt: skip
    for made in decisions:
        orders = ", ".join(f"{action.kind.replace('_', ' ')} {action.instrument}" for action in made.actions)
        key = made.call.raw_object if decided_here else None
        found.append(
            SeasonRecord(
                kind="decisions", who=made.agent.id, of=f"{made.decided_at:%Y-%m-%d %H:%M}, {made.record_id}",
                said=orders or "no order", keys=(key,) if key else (), about=made.record_id,
            )
        )  # fmt: skip
    return tuple(found)


@dataclass(frozen=True, slots=True, repr=False)
class SeasonPublished(Result):
    """What was published: the pages, ``verdicts.json``, lines for whoever called, and the season for a notebook."""

    pages: tuple[Path, ...]
    file: VerdictFile
    lines: tuple[str, ...]
    run: SeasonRun

    def _parts(self) -> Iterator[Part]:
        from assaymark.report.notebook import season_parts

        yield from season_parts(self.run)
        yield from (Note(line) for line in self.lines)


def publish_season(
    folder: RunFolder, site: Path, languages: Sequence[Catalogue] = (), calls: bool = False, url: str = "",
    progress: Progress = silent,
) -> SeasonPublished:  # fmt: skip
    """Measure and decide a judged season, write its tables and ``verdicts.json``, and make its site."""
    if url and not re.fullmatch(r"https?://[^\s<>\"]+", url):
        raise InputError("--url", [Problem("", f"must begin with https:// or http:// (got {clean(url, 80)!r})")])
    stored = stored_season(folder)
    site_files(site, stored.season.name, stored.plan_hash)
    made = decide_judged_season(folder, progress)
    run = replace(made.run, url=url)
    records: Iterable[tuple[str, str]] = ()
    if calls:
        here = not stored.season.recorded
        trail = SeasonTrail(season_records(made.judged, Store(folder).read(DECISIONS), here), calls_of(folder))
        run, records = replace(run, records=record_places(trail.records)), season_record_pages(trail, season_frame(run))

    def write(out: Path) -> None:
        write_season(out, run, languages or shipped_languages(), made.sheets)
        for name, page in records:
            write_atomic(out / name, page)

    pages = replace_site(site, run.plan.name, run.plan_hash, write)
    progress("writing pages", 3, 3)
    file, html = made.file, [page for page in pages if page.suffix == ".html"]
    tally = ", ".join(f"{count} {level}" for level, count in file.tally.items())
    lines = [f"{file.study}: {len(file.verdicts)} claims decided ({tally}); plan {file.plan_hash[:12]}..."]
    if late := behind(made.material, made.judged.grades):
        lines.append(f"{english().render(late)} Run: assaymark season judge {folder.path}")
    size = max(page.stat().st_size for page in html) / 1024
    parts = [page.relative_to(site).parts for page in html]
    tops = sorted(part[0].removesuffix(".html") for part in parts if len(part) == 1)
    below = Counter(part[0] for part in parts if len(part) > 1)
    named = ", ".join([*tops, *(f"{name}/ ({count})" for name, count in sorted(below.items()))])
    written = f"{len(html)} pages written: {named}; the largest of {size:,.0f} kB"
    lines.append(f"{written}; begin at {site / 'index.html'}")
    return SeasonPublished(pages, file, tuple(lines), made.run)


@dataclass(frozen=True, slots=True, eq=False)
class DecidedSeason:
    """A judged season, measured and decided: what its pages show, and what was written beside its tables."""

    run: SeasonRun
    sheets: tuple[Datasheet, ...]
    file: VerdictFile
    material: SeasonMaterial
    judged: SeasonJudgments


_PLACE = ("agent", "first", "last", "shown", "level")


def decide_judged_season(folder: RunFolder, progress: Progress = silent) -> DecidedSeason:
    """Measure and decide a judged season; writes its tables, ``verdicts.json`` and one certificate a verdict."""
    stored, store = stored_season(folder), Store(folder)
    if store.digest(GRADES) is None or not store.rows(GRADES):
        raise LedgerError(f"{folder.path} was not judged yet; run: assaymark season judge {folder.path}")
    progress("reading the records", 0, 3)
    material, judged = material_of(store, stored), SeasonJudgments.read(store)
    sheets = stored_datasheets(folder)
    progress("measuring", 1, 3)
    made_by = content_id({one.judge: one for one in sheets}) if sheets else None
    basis = {"plan": stored.plan_hash, "datasheets": made_by}
    basis |= {table.name: store.digest(table) for table in (GRADES, GUESSES, EVIDENCE, NAVS, TIMES, CHECKS)}
    rng = np.random.default_rng([material.season.seed, 8])
    if (graded := people_basis(folder)) is not None:
        basis["people"] = graded
    people = labels_of(folder, *judged_periods(judged.grades))
    measurements, table = season_findings(material, judged, sheets, rng=rng, people=people)
    store.write(MEASUREMENTS, measurements, basis)
    gates, season = gates_of(material, stored.preregistered), stored.season
    decided = decide_season(measurements, gates, stored.plan_hash)
    verdicts = tuple(one.verdict for one in decided.verdicts)
    store.write(VERDICTS, verdicts, {**basis, "measurements": store.digest(MEASUREMENTS)})
    built_in = {one.name: one.model.startswith("reference/") for one in season.panel}
    families = {one.name: one.family for one in season.panel}
    invalid = {
        measurement.labels["judge"]: measurement.value
        for measurement in measurements
        if measurement.name == "season.invalid"
    }
    places = [
        PlaceLine(why=english().render(row.why), **{name: getattr(row, name) for name in _PLACE})
        for row in decided.places
    ]
    file = decided_file(
        verdicts, measurements, [place.agent for place in decided.places if place.first is not None], study=season.name,
        title=season.title, plan_hash=stored.plan_hash, rubric=season.scoring, made_by=season.agents,
        panel=Panel(judges=families, reference=any(built_in.values()), built_in=built_in),
        amendments=stored.amendments, preregistered=stored.preregistered,
        missing={judge: share for judge, share in invalid.items() if share}, judged_to=judged_to(judged.grades),
        places=tuple(places),
    )  # fmt: skip
    made = season_certificates(decided.verdicts, measurements, gates, families, level=LEVEL)
    replace_files(folder.certificates, dict(zip(map(certificate_name, verdicts), map(json_text, made), strict=True)))
    write_json(folder.verdicts, file)
    run = season_run(stored, material, judged, measurements, table, decided, [sheet.judge for sheet in sheets])
    kept = folder.publications / f"{run.last}.json"
    kept.parent.mkdir(exist_ok=True)
    write_json(kept, verdicts_of(SeasonIndex.of(run)))
    write_sums(folder)
    progress("writing pages", 2, 3)
    earlier = (path for path in sorted(kept.parent.glob("*.json")) if path.stem <= kept.stem)
    run = replace(run, publications=tuple(json.loads(path.read_text(encoding="utf-8")) for path in earlier))
    return DecidedSeason(run, tuple(sheets), file, material, judged)


def write_season(
    folder: Path, run: SeasonRun, languages: Sequence[Catalogue], sheets: Sequence[Datasheet] = (), site: Site = ALONE
) -> None:
    """Write every page of a season, and the datasheets of its judges, to an empty folder."""
    write_site(run, folder, languages, site)
    for name, page in datasheet_pages(sheets, frame=season_frame(run, site)) if sheets else ():
        write_atomic(folder / name, page)


def chosen_languages(wanted: Sequence[str]) -> tuple[Catalogue, ...]:
    """Languages by their codes, or from TOML files of one's own, named by what stands before the first dot."""
    problems: list[Problem] = []
    found: dict[str, Catalogue] = {}
    for one in wanted:
        path = Path(one)
        code = path.name.partition(".")[0]
        try:
            if not one.endswith(".toml"):
                made = catalogue(one)
            elif code.isalnum() and code.isascii():
                made = Catalogue.of({path.name: read_text(path, "language file")}, code)
            else:
                what = f"must begin with the code of a language, such as fr (got {code!r})"
                problems.append(Problem(f"{one}, name", what))
                continue
        except InputError as exc:
            problems += [Problem(f"{one}, {inner.where}", inner.what) for inner in exc.problems]
            continue
        except UnknownNameError as exc:
            problems.append(Problem(one, f"{exc}; or name a TOML file (FILE.toml)"))
            continue
        if made.language in found:
            problems.append(Problem(one, f"the language {made.language!r} is named twice"))
        found[made.language] = made
    if problems:
        raise InputError("--language", problems)
    return tuple(found.values())


def shipped_languages() -> tuple[Catalogue, ...]:
    """Every language that comes with the package, English first."""
    return tuple(catalogue(code) for code in languages())


def gates_of(material: SeasonMaterial, preregistered: bool = True) -> SeasonGates:
    """The decision rules of a season, and whether its authors may have known what came next."""
    season = material.season
    judging, limits = season.judging, season.datasheets
    return SeasonGates(
        season.inference.alpha, judging.publish, judging.halt,
        on_failure=None if limits is None else limits.on_failure, hindsight=tuple(hindsight(material)),
        margin=season.inference.margin * SPAN, any_judges=season.claims.judges == "any", preregistered=preregistered,
    )  # fmt: skip
