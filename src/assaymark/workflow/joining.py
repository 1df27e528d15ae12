"""`assaymark report RUN RUN ... --out SITE`: several runs as one site, each with its pages, and one menu for all."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from assaymark.encoding import write_atomic
from assaymark.errors import InputError, Problem
from assaymark.records import sha256_text
from assaymark.report import Site, each_page
from assaymark.report.datasheet import COMPARISON, judges_frame
from assaymark.report.portbench import each_benchmark_page
from assaymark.report.records.study import Calls
from assaymark.report.site import (
    FrontRun,
    Kind,
    front_of_benchmark,
    front_of_judges,
    front_of_season,
    front_of_study,
    menu,
    render_front,
    site_of,
)
from assaymark.workflow.check import is_table, open_checked
from assaymark.workflow.progress import Progress, silent
from assaymark.workflow.publish import study_pages, study_shown
from assaymark.workflow.raw_calls import calls_of, stored_answers
from assaymark.workflow.run_folder import RunFolder, replace_files, replace_site, site_files
from assaymark.workflow.tracks.benchmark import bench_shown
from assaymark.workflow.tracks.benchmark_plan import is_benchmark
from assaymark.workflow.tracks.datasheet import (
    datasheet_pages,
    has_only_datasheets,
    stored_agreement,
    stored_datasheets,
)
from assaymark.workflow.tracks.season_lock import is_season
from assaymark.workflow.tracks.season_publish import decide_judged_season, shipped_languages, write_season

TITLE: Final = "What may be said"

_NAME: Final = "several runs"
"""What a site of several runs is known by; which they are may change from one time to the next."""

Write = Callable[[Path, Site], object]


def join_runs(
    folders: Sequence[RunFolder], site: Path, title: str = TITLE, calls: Calls = "all", progress: Progress = silent
) -> tuple[tuple[FrontRun, ...], tuple[Path, ...]]:
    """Make one site of finished runs of any kind; returns them in the order of its menu, and its files."""
    paths, problems = [folder.path.resolve() for folder in folders], []
    for at, (folder, path) in enumerate(zip(folders, paths, strict=True)):
        if path in paths[:at]:
            problems.append(Problem(str(folder.path), "is named twice"))
        elif not folder.lock.is_file() and not folder.datasheets.is_dir() and not is_table(folder):
            what = "is no run folder" if folder.path.is_dir() else "does not exist"
            problems.append(Problem(str(folder.path), f"{what}; name folders of finished runs"))
    if problems:
        raise InputError("runs of a site", problems)
    site_files(site, _NAME, "")
    made: dict[str, tuple[FrontRun, Write]] = {}
    for at, (folder, path) in enumerate(zip(folders, paths, strict=True)):
        progress("reading the runs", at, len(folders))
        # The name of its own folder where that is a plain one.
        key = re.sub(r"[^a-z0-9]+", "-", path.name.lower()).strip("-")[:40].strip("-") or "run"
        key = key if key not in made else f"{key}-{sha256_text(str(path))[:6]}"
        made[key] = _shown(folder, calls)
    fronts = {key: front for key, (front, _) in made.items()}
    links = menu(fronts)

    def write(out: Path) -> None:
        for at, (key, (_, pages)) in enumerate(made.items()):
            progress("writing pages", at, len(made))
            pages(out / key, site_of(links, key))
        write_atomic(out / "index.html", render_front(fronts, title))

    found = replace_site(site, _NAME, "", write)
    progress("writing pages", len(made), len(made))
    return tuple(fronts[key] for key in links), found


def kind_of(folder: RunFolder) -> Kind:
    """What a run folder holds; a study where nothing says otherwise."""
    if is_benchmark(folder):
        return "portbench"
    if is_season(folder):
        return "season"
    return "judges" if has_only_datasheets(folder) else "study"


def _shown(folder: RunFolder, calls: Calls) -> tuple[FrontRun, Write]:
    """What the first page says of a run, and what writes its pages to a folder."""
    if is_table(folder):
        run = open_checked(folder).run
        return front_of_study(run), lambda out, site: replace_files(out, each_page(run, site))
    read = None if calls == "none" else calls_of(folder)
    match kind_of(folder):
        case "portbench":
            bench = bench_shown(folder)
            return front_of_benchmark(bench), lambda out, site: replace_files(
                out, each_benchmark_page(bench, site, read)
            )
        case "season":
            season = decide_judged_season(folder)
            return front_of_season(season.run), lambda out, site: write_season(
                out, season.run, shipped_languages(), season.sheets, site
            )
        case "judges":
            sheets, own, answers = stored_datasheets(folder), stored_agreement(folder), stored_answers(folder)
            return front_of_judges(sheets, folder.path.resolve().name), lambda out, site: replace_files(
                out, datasheet_pages(sheets, own, judges_frame(COMPARISON, site), answers, read)
            )
        case "study":
            shown = study_shown(folder)
            return front_of_study(shown.run), lambda out, site: replace_files(out, study_pages(shown, site, calls))
