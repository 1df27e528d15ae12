"""What comes from elsewhere: market snapshots, and other people's records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from rich.console import Group, RenderableType
from rich.text import Text

from assaymark import market
from assaymark.claims.season_plan import period_of
from assaymark.engine import Ledger
from assaymark.errors import InputError, PlanError, Problem, UnknownNameError
from assaymark.importers import ImportReport, import_human, importer
from assaymark.importers.human import import_labels
from assaymark.judging import find_rubric
from assaymark.judging.season.scoring import HIGHEST
from assaymark.market.instruments import CLASSES, Listing
from assaymark.market.open import Condition, condition, quotes
from assaymark.notebook import Told
from assaymark.prompting import flagged
from assaymark.protocol import parse_study
from assaymark.records import AGGREGATE, Context, Decision, Outcome, sha256_text
from assaymark.report.terminal import origin_summary, store_summary, view_summary
from assaymark.workflow.human_labels import HumanGrade, store_grades, stored_draw
from assaymark.workflow.labelling import frame_of
from assaymark.workflow.lock import STUDY
from assaymark.workflow.progress import Progress, silent
from assaymark.workflow.run_folder import RunFolder, missing, new_folder, read_lock, read_text
from assaymark.workflow.tables import CONTEXTS, DECISIONS, HUMAN, OUTCOMES, Store, Table, content_digest
from assaymark.workflow.tracks.season_facts import season_material
from assaymark.workflow.tracks.season_lock import is_season, stored_season
from assaymark.workflow.tracks.season_records import TIMES

LISTED: Final = 40
"""Problems, and notes, that a check prints; the rest is counted."""

LOCAL: Final[Mapping[str, Sequence[str]]] = {"files": ("path", "licence", "currency", "class"), "synthetic": ("seed",)}
"""The sources that ask nobody, with the options they take."""


@dataclass(frozen=True, slots=True, repr=False)
class Checked(Told):
    """What a check found, whole and as lines to print, of which there are fewer."""

    found: Condition
    lines: tuple[str, ...]


def synth(folder: Path, seed: int, progress: Progress = silent) -> str:
    """Write the embedded market of a seed into a folder, and say in one line what is there now."""
    progress("market", 0, 2)
    snapshot = market.synthetic_snapshot(seed)
    progress("market", 1, 2)
    line = _written(folder, snapshot)
    progress("market", 2, 2)
    return line


def pull(
    folder: Path, source: str, symbols: Sequence[str] = (), start: str | None = None, end: str | None = None,
    *, options: Sequence[str] = (), now: datetime, environment: Mapping[str, str], progress: Progress = silent,
) -> str:  # fmt: skip
    """Fetch a snapshot into a folder, and say in one line what is there now: days in ISO form, options as KEY=VALUE."""
    given: dict[str, str] = {}
    for number, pair in enumerate(options, start=1):
        name, sign, value = (part.strip() for part in pair.partition("="))
        # A value is never repeated in a message, because it may be a key to a service.
        if not sign or not name:
            raise InputError("--option", [f"number {number} must be KEY=VALUE"])
        if name in given:
            raise InputError("--option", [f"{name} is given more than once"])
        given[name] = value
    first, last = _day("--start", start), _day("--end", end)
    if source in LOCAL:
        # A snapshot from this machine.
        known, synthetic = LOCAL[source], source == "synthetic"
        unknown = f"is unknown; {source} takes {', '.join(known)}"
        problems = [Problem(f"option {name}", unknown) for name in given if name not in known]
        if source == "files" and "path" not in given:
            problems.append(Problem("option path", "is needed: --option path=FILE, a CSV or Parquet file"))
        if synthetic and (symbols or first or last):
            problems.append(Problem("", "the synthetic market comes whole; --symbol, --start and --end are for others"))
        if problems:
            raise InputError(f"source {source}", problems)
        if synthetic:
            seed = given.get("seed", "0")
            if not seed.isascii() or not seed.isdigit():
                raise InputError("option seed", [f"must be a whole number, 0 or more (got {seed!r})"])
            local = market.synthetic_snapshot(int(seed))
        else:
            kind = given.get("class", "EQ")
            if kind not in CLASSES:
                raise UnknownNameError("class", kind, CLASSES)
            local = market.snapshot_from_file(
                Path(given["path"]), now, licence=given.get("licence", "not stated"),
                currency=given.get("currency", ""), asset_class=kind, symbols=symbols, start=first, end=last,
            )  # fmt: skip
        return _written(folder, local)
    # Here, because the networked sources are needed by nothing else and their package takes time to load.
    from assaymark.market import sources

    if source not in sources.SOURCES:
        raise UnknownNameError("source", source, [*LOCAL, *sources.SOURCES])
    asked = sources.SOURCES[source]
    if asked.key_option and asked.key_variable and environment.get(asked.key_variable):
        given.setdefault(asked.key_option, environment[asked.key_variable])
    request = sources.Request(symbols=tuple(symbols), start=first, end=last, options=given)
    return _written(folder, sources.pull(source, request, now=now, progress=progress))


def show(folder: Path, at: str | None = None, instrument: str | None = None) -> RenderableType:
    """What a folder holds or, with ``at``, what could be known from it at that time."""
    moment = None if at is None else parse_moment(at)
    manifest, history = _manifest(folder), market.open_history(folder)
    if moment is None:
        return store_summary(manifest, history, instrument)
    # Without the summary of the store, which knows what came later.
    return Group(origin_summary(manifest), Text(), view_summary(history.as_of(moment), instrument))


def facts(folder: Path, at: str | None = None, instrument: str | None = None) -> dict[str, object]:
    """The same as `show`, for a program: what the folder is and its instruments, or with ``at`` closes and readings."""
    moment = None if at is None else parse_moment(at)
    manifest, history = _manifest(folder), market.open_history(folder)
    listings = history.listings if moment is None else history.as_of(moment).instruments
    known = [listing.id for listing in listings]
    if instrument is not None and instrument not in known:
        raise UnknownNameError("instrument", instrument, known)
    wanted = [listing for listing in listings if instrument in (None, listing.id)]
    if moment is None:
        return {"snapshot": manifest, "instruments": [_listing(one) for one in wanted]}
    view = history.as_of(moment)
    closes = {quote.listing.id: {"close": quote.close, "day": str(quote.day)} for quote in quotes(view)}
    return {
        "snapshot": manifest.id,
        "as_of": moment,
        "instruments": [_listing(one) | closes.get(one.id, {}) for one in wanted],
        "macro": [
            {"id": one.id, "unit": one.unit, "state": one.state, "value": one.value}
            for one in ([] if instrument is not None else view.all_macro())
        ],
    }


def _listing(one: Listing) -> dict[str, object]:
    ended = None if one.delisted is None else one.delisted.isoformat()
    return {"id": one.id, "class": one.asset_class, "name": one.name, "listed": one.listed.isoformat(), "ended": ended}


def check(folder: Path) -> Checked:
    """Look a folder's snapshot over: digests, tables, then everything that `assaymark.market.open` names."""
    manifest = _manifest(folder)
    found = condition(market.open_history(folder, cache=False))
    lines = []
    for kind, items in (("problem", found.problems), ("note", found.notes)):
        lines += [f"{kind}: {item}" for item in items[:LISTED]]
        if len(items) > LISTED:
            lines.append(f"and {len(items) - LISTED} more {kind}s")
    return Checked(found, (*lines, f"{manifest.id}: {len(found.problems)} problems, {len(found.notes)} notes"))


def _manifest(folder: Path) -> market.Manifest:
    if not folder.exists():
        raise missing(folder, "folder of a market snapshot", "make one with: assaymark data synth --out FOLDER")
    return market.read_manifest(folder)


def parse_moment(text: str) -> datetime:
    """A time from the command line."""
    try:
        if len(text) == len("2024-03-01"):
            return datetime.combine(date.fromisoformat(text), time(23, 59, 59), UTC)
        found = datetime.fromisoformat(text)
    except ValueError:
        raise InputError("--at", [f"must be a day or a time such as 2024-03-01T21:00:00Z (got {text!r})"]) from None
    if found.tzinfo is None:
        raise InputError("--at", [f"a time needs a zone, such as {text}Z or {text}-05:00 (got {text!r})"])
    return found


def _day(option: str, text: str | None) -> date | None:
    """A day from an option."""
    try:
        return None if text is None else date.fromisoformat(text)
    except ValueError:
        raise InputError(option, [f"must be a day such as 2024-03-01 (got {text!r})"]) from None


def _written(folder: Path, snapshot: market.Snapshot) -> str:
    """Write a snapshot, and say what is in it."""
    market.write_snapshot(folder, snapshot)
    nouns = {"bars": "bars", "instruments": "instruments", "macro": "macro values", "news": "news items",
             "fundamentals": "filed values"}  # fmt: skip
    parts = [f"{snapshot.tables[name].num_rows:,} {noun}" for name, noun in nouns.items()]
    acted = snapshot.tables["actions"].num_rows
    parts += [f"{acted:,} splits and dividends"] if acted else []
    return f"{snapshot.id} in {folder}: {', '.join(parts)}"


# --- records ----------------------------------------------------------------------------------------------------------


def import_records(
    format: str, path: Path, folder: RunFolder, keep_going: bool = False, progress: Progress = silent
) -> ImportReport:
    """Read the files of a format below ``path`` into a run folder."""
    chosen = importer(format)
    if not path.exists():
        raise missing(path, "folder", f"give the one that holds {', '.join(chosen.patterns)}")
    where, names = (path, chosen.files(path)) if not path.is_file() else (path.parent, chosen.wanted([path.name]))
    if not names:
        raise InputError(str(path), [Problem("", f"is no file of {format}: {', '.join(chosen.patterns)}")])
    data = {name: _bytes(where / name) for name in names}
    imported = chosen.read(data, keep_going=keep_going, progress=progress)
    if not imported.decisions:
        raise InputError(str(path), [Problem("", "no decision could be imported"), *imported.report.problems])
    read_lock(folder)
    with new_folder(folder.path):
        with Ledger.open(folder.ledger) as ledger:
            for name, raw in data.items():
                ledger.add_source(name, raw, format)
        store_records(folder, imported.decisions, imported.contexts, imported.outcomes)
    return imported.report


def import_grades(folder: RunFolder, path: Path, rubric: str = "v1.0") -> int:
    """Read what people graded into a run folder, beside the records that they graded; returns the number of grades."""
    folder.require()
    read_lock(folder)
    store = Store(folder)
    data, season = _bytes(path), is_season(folder)
    beside = data.startswith(b"PAR1") or b"time" in data.split(b"\n", 1)[0]
    if season and beside and any(one.human for one in stored_season(folder).season.panel):
        beside = AGGREGATE.encode() in data  # people of the panel give the parts of the scoring plan
    if beside and stored_draw(folder) is not None:
        frame = frame_of(folder, rubric)
        cycles = {name: cycle for name, (cycle, _) in frame.records.items()}
        asked = dict.fromkeys((*frame.dimensions, AGGREGATE))
        given = import_labels(path.name, data, cycles, asked, frame.scale)
        store_grades(folder, [HumanGrade(**one) for one in given])
        return len(given)
    if season:
        # What people of the panel gave whole records (`AGENT`) and periods (`AGENT/2024-W09`).
        stored = stored_season(folder)
        played = stored.season
        people = [one.name for one in played.panel if one.human]
        if not people:
            what = 'no judge of the panel is a person ([[panel]] with model = "human/table", family = "human")'
            then = "to hold the judges against people, first draw what these grade (assaymark draw)"
            raise InputError(str(path), [Problem("judge", f"{what}, so these grades would count nowhere; {then}")])
        rows = [(row["agent"], row["day"]) for row in store.columns(TIMES, "agent", "day")] if store.rows(TIMES) else []
        plan = played.scoring_plan if not rows else season_material(folder, stored).scoring
        periods = {f"{agent}/{period_of(day, played.judging.period)}" for agent, day in rows}
        grades = import_human(
            path.name, data, records={agent for agent, _ in rows} | periods, rubric=plan.grader, scale=(0, HIGHEST),
            dimensions=[part.name for part in (*plan.reasoning, *plan.evidence)], graders=people,
            optional=("data_reliability", "outcome", *(part.name for part in plan.not_applicable)),
        )  # fmt: skip
    else:
        records, graders = {row["record_id"] for row in store.columns(DECISIONS, "record_id")}, None
        if STUDY.holds(folder):
            study = parse_study(read_text(folder.plan, "plan"), source=str(folder.plan))
            graders = [judge.name for judge in study.judges if judge.human]
        wanted = find_rubric(rubric)
        grades = import_human(
            path.name, data, records, wanted.names, wanted.version, wanted.scale,
            graders=graders,
        )  # fmt: skip
    made = HUMAN.to_arrow(grades)
    basis: dict[str, str | None] = {"grades": content_digest(made)}
    if store.done(HUMAN, basis):
        return len(grades)
    if not season:
        _require_locked_on(folder, {HUMAN: made}, "grades")
    with Ledger.open(folder.ledger) as ledger:
        ledger.add_source(path.name, data, "human")
    store.write_arrow(HUMAN, made, basis)
    return len(grades)


def import_named_grades(folder: RunFolder, named: str | None, *, anchor: bool = False) -> None:
    """Read the file of grades that a plan names, if it is there: in the run folder, or as it is named."""
    places = [] if named is None or (anchor and stored_draw(folder) is None) else [folder.path / named, Path(named)]
    if (path := next((place for place in places if place.is_file()), None)) is not None:
        import_grades(folder, path)


def store_records(
    folder: RunFolder, decisions: Iterable[Decision], contexts: Mapping[str, Context], outcomes: Iterable[Outcome]
) -> None:
    """Write the three tables of imported records; the same records again change nothing."""
    store = Store(folder)
    made: dict[Table[Any], pa.Table] = {
        CONTEXTS: CONTEXTS.to_arrow(contexts.values()), DECISIONS: DECISIONS.to_arrow(map(flagged, decisions)),
        OUTCOMES: OUTCOMES.to_arrow(outcomes),
    }  # fmt: skip
    basis = {"records": sha256_text("\n".join(content_digest(arrow) for arrow in made.values()))}
    if all(store.done(table, basis) for table in made):
        return
    _require_locked_on(folder, made, "records")
    for table, arrow in made.items():
        store.write_arrow(table, arrow, basis)


def _require_locked_on(folder: RunFolder, made: Mapping[Table[Any], pa.Table], what: str) -> None:
    """Only what a plan was locked on may be written again."""
    if not folder.lock.is_file():
        return
    locked = read_lock(folder).get("tables")  # none of a season or a benchmark, which make their own records
    digests = {table.name: content_digest(arrow) for table, arrow in made.items()}
    if locked is None or any(locked.get(name, digest) != digest for name, digest in digests.items()):
        raise PlanError(
            f"{folder.path} holds a plan that is locked on other {what}; import these into a new run folder"
        )


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as exc:
        raise InputError(str(path), [Problem("", f"cannot be read: {exc.strerror or exc}")]) from None
