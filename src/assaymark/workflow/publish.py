"""`assaymark report`: the measurements and verdicts of a run as pages and as a terminal summary."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from rich.console import RenderableType

from assaymark.agents.reference import planted_words
from assaymark.engine import Ledger
from assaymark.errors import InputError, LedgerError
from assaymark.judging import PLANTED
from assaymark.market import CycleKey, ProbeResult
from assaymark.metrology.datasheet import Datasheet
from assaymark.notebook import Part, Result
from assaymark.prompting import INSTRUCTION_LIKE
from assaymark.protocol import Study
from assaymark.records import Decision, Judgment, canonical_json, parse
from assaymark.report import (
    ALONE,
    AssayRun,
    PaidView,
    PlantedView,
    RubricView,
    Site,
    each_page,
    money,
    study_frame,
    terminal_summary,
)
from assaymark.report.inputs import Example
from assaymark.report.page import JUDGES, Frame, Link
from assaymark.report.records.answers import AnswerIndex
from assaymark.report.records.calls import ReadCalls
from assaymark.report.records.judgments import Calls
from assaymark.report.records.judgments import JudgmentPart as Judged
from assaymark.report.text import short_hash
from assaymark.report.translation import in_language
from assaymark.text import clean
from assaymark.workflow import tables
from assaymark.workflow.ask import calls_of, paid_views, stored_answers
from assaymark.workflow.lock import open_locked, select
from assaymark.workflow.run_folder import RunFolder, replace_files
from assaymark.workflow.tracks.datasheet import datasheet_pages, stored_datasheets

if TYPE_CHECKING:
    from assaymark.report.site import LiveView
    from assaymark.workflow.lock import Locked


_PROBE: Final = tuple(item.name for item in dataclasses.fields(ProbeResult))
_PLANTED: Final = ("offset", "noise", "slope", "pivot", "halo", "terse", "terse_tokens")


def substrate_view(
    locked: Locked, store: tables.Store
) -> tuple[tuple[CycleKey, ...], tuple[ProbeResult, ...], Example | None]:
    """Return the cycles, date probes and an example of a study with its own agents; all empty for imported records."""
    substrate = locked.study.substrate
    if substrate is None:
        return (), (), None
    keys = sorted(store.read(tables.CYCLES), key=lambda key: key.number)
    probes = []
    for probe in locked.date_probes:
        try:
            text = canonical_json({name: probe[name] for name in _PROBE})
            probes.append(parse(ProbeResult, text, source="date probe"))
        except (KeyError, InputError) as exc:
            reason = f"the lock holds a date probe that cannot be read ({exc}); lock a new run folder"
            raise LedgerError(reason) from None
    # The first cycle and the honest decisions on it, agents in alphabetical order.
    example, key = None, next((key for name in substrate.regimes for key in keys if key.regime == name), None)
    context = next((context for _, context in store.each_context({key.context_id} if key else ())), None)
    if key is not None and context is not None:
        on_it = (decision for decision in store.read(tables.DECISIONS) if decision.context_id == key.context_id)
        honest = [decision for decision in on_it if decision.derivation.kind == "honest" and decision.replicate == 1]
        example = key, context, tuple(sorted(honest, key=lambda decision: decision.agent.id))
    return tuple(keys), tuple(probes), example


def planted_agents(study: Study) -> tuple[PlantedView, ...]:
    """Return the planted properties of a study's reference agents; empty if it has none."""
    words = ((agent, planted_words(agent.model, agent.args)) for agent in study.agents)
    return tuple(
        PlantedView(agent.name, agent.family, planted.rule, planted.properties)
        for agent, planted in words
        if planted is not None
    )


@dataclass(frozen=True, slots=True, repr=False)
class StudyReport(Result):
    """A written report: its first page, the terminal summary, and the run to display in a notebook."""

    page: Path
    summary: RenderableType
    run: AssayRun

    def _parts(self) -> Iterator[Part]:
        from assaymark.report.notebook import study_parts  # imported here, because only notebooks need it

        yield from study_parts(self.run)
        yield f"page: {self.page}"


def require_decided(folder: RunFolder) -> None:
    """Raise `LedgerError` if the verdicts of a run were decided on other measurements than it has now."""
    locked, store = open_locked(folder), tables.Store(folder)
    basis = {
        "plan": locked.plan_hash,
        **{one.name: store.digest(one) for one in (tables.JUDGMENTS, tables.MEASUREMENTS)},
    }
    if store.digest(tables.VERDICTS) is not None and not store.done(tables.VERDICTS, basis):
        raise LedgerError(f"{folder.path}: measurements or plan are newer than its verdicts; "
                          f"run: assaymark claim {folder.path}")  # fmt: skip


def report(folder: RunFolder, calls: Calls = "all", language: str = "") -> StudyReport:
    """Write ``report/`` from the records of a finished run; a further language goes to a folder below it."""
    require_decided(folder)
    shown = study_contents(folder)
    replace_files(folder.report, in_language(study_pages(shown, ALONE, calls), language))
    return StudyReport(folder.report / "index.html", terminal_summary(shown[0]), shown[0])


def call_progress(folder: RunFolder) -> Mapping[str, tuple[int, int]]:
    """Return the planned and the answered calls of each model of a run; empty without a ledger."""
    if not folder.has_ledger:
        return {}
    with Ledger.open(folder.ledger, create=False) as ledger:
        return ledger.answer_counts()


def report_unfinished(folder: RunFolder, language: str = "") -> tuple[Path, LiveView]:
    """Write ``report/`` of a locked study without verdicts: its progress, and the datasheets of its judges."""
    from assaymark.report.site import LiveView, render_unfinished

    locked, sheets = open_locked(folder), tuple(stored_datasheets(folder))
    view = LiveView(folder.path.resolve().name, call_progress(folder))
    judges = (Link(JUDGES, "datasheets.html", "Judges"),) if sheets else ()
    frame = Frame(study=clean(locked.study.title or locked.study.name, 120), mark=short_hash(locked.plan_hash),
                  nav=(Link("overview", "index.html", "Overview"), *judges))  # fmt: skip
    spent = sum(paid.usd for paid in paid_views(folder)) if folder.has_ledger else 0.0
    resume = f"assaymark run {folder.plan} --out {folder.path}"
    page = render_unfinished(view, frame, money(spent) if spent else "", resume, [sheet.judge for sheet in sheets])
    pages = datasheet_pages(sheets, (), frame, stored_answers(folder)) if sheets else ()
    replace_files(folder.report, in_language([("index.html", page), *pages], language))
    return folder.report / "index.html", view


StudyContents: TypeAlias = "tuple[AssayRun, tuple[Datasheet, ...], AnswerIndex, ReadCalls | None]"
"""The contents of a finished study's pages; the last item reads its calls, None if no ledger is available."""


def study_contents(folder: RunFolder) -> StudyContents:
    """Read the contents of a finished study's pages."""
    locked, store, sheets = open_locked(folder), tables.Store(folder), tuple(stored_datasheets(folder))
    paid: tuple[PaidView, ...] | None = None  # None if the ledger is in a database that cannot be reached
    try:
        paid = paid_views(folder)
    except LedgerError:
        if isinstance(folder.ledger, Path):
            raise
    study, judgments = locked.study, store.read(tables.JUDGMENTS)
    selection = select(store.read(tables.DECISIONS), study)
    invalid = dict.fromkeys(sorted({judgment.judge for judgment in judgments}), 0)
    for judgment in judgments:
        invalid[judgment.judge] += judgment.status != "ok"
    anchors, outside = store.stored(tables.ANCHOR), store.stored(tables.PROBE)
    parts: dict[Judged, Sequence[Judgment]] = {"panel": judgments, "anchors": anchors, "outside": outside}
    titles = (
        (dimension.name, dimension.title or dimension.name.replace("_", " ").capitalize())
        for dimension in locked.rubric.dimensions
    )
    again = sum(bool(judgment.first_key) for judgment in judgments)
    texts = () if study.rubric.text is None else tuple(locked.rubric.rows)
    run = AssayRun(
        study, locked.plan_hash, locked.locked_at,
        RubricView(study.rubric.name, locked.rubric.title, tuple(titles), texts),
        tuple({verdict.claim.id: verdict for verdict in store.read(tables.VERDICTS)}.values()),
        tuple(store.read(tables.MEASUREMENTS)), selection.honest, tuple(store.read(tables.EVIDENCE)), invalid,
        len(judgments), again, in_flight_bound(study), planted_views(study), import_notes(selection.honest, store),
        selection.excluded, tuple(sheet.judge for sheet in sheets),
        tuple(item for sheet in sheets for item in sheet.measurements), *substrate_view(locked, store),
        planted_agents(study), paid, {part: graded for part, graded in parts.items() if graded}, selection.decisions,
    )  # fmt: skip
    return run, sheets, stored_answers(folder), None if paid is None else calls_of(folder)


def study_pages(shown: StudyContents, site: Site = ALONE, calls: Calls = "all") -> Iterator[tuple[str, str]]:
    """Yield every page of a study, those of its judges included, as path and text."""
    run, sheets, answers, read = shown
    yield from each_page(run, site, read, calls)
    if sheets:
        yield from datasheet_pages(sheets, (), study_frame(run, site), answers, read if calls == "all" else None)


def in_flight_bound(study: Study) -> int:
    """Return the most calls that one hard kill can bill twice: the open slots of each model at each address."""
    lanes = {(judge.model, judge.args.get("base_url"), judge.args.get("api_key_env")) for judge in study.asked_judges}
    return study.engine.concurrency * len(lanes)


def planted_views(study: Study) -> tuple[PlantedView, ...]:
    """Return the planted properties of a panel's reference judges, as the plan sets them; empty if it has none."""
    views = []
    for judge in study.asked_judges:
        if judge.model not in PLANTED:
            continue
        planted = PLANTED[judge.model]
        value = {name: float(judge.args.get(name, getattr(planted, name))) for name in _PLANTED}
        words = [
            f"offset {value['offset']:+.2f} points".replace("-", "−"),
            f"noise with a standard deviation of {value['noise']:.2f} points",
            f"{value['slope']:.2f} points for each 100 words beyond {value['pivot']:.0f}"
            if value["slope"]
            else "blind to length",
        ]
        if value["halo"]:
            halo = f"{value['halo']:+.2f} points for texts in the style of {judge.args.get('kin')}"
            words.append(halo.replace("-", "−"))
        if value["terse"]:
            words.append(f"{value['terse']:.2f} points off for texts of up to {value['terse_tokens']:.0f} tokens")
        question = planted.words.partition(";")[0]
        views.append(PlantedView(judge.name, judge.family, question, tuple(words)))
    return tuple(views)


def import_notes(decisions: Sequence[Decision], store: tables.Store) -> tuple[str, ...]:
    """Return lines on what the records lack, most frequent first."""
    used = {decision.context_id for decision in decisions}
    contexts = store.columns(tables.CONTEXTS, "context_id", "completeness", "missing")
    shown = [row for row in contexts if row["context_id"] in used]
    counts = Counter(item for row in shown for item in row["missing"])
    counts.update(item for decision in decisions for item in decision.missing)
    notes = []
    if n := sum(row["completeness"] == "partial" for row in shown):
        notes.append(f"{n} of {len(shown)} contexts are partial: the agents saw something that is not in the records")
    if n := sum(INSTRUCTION_LIKE in decision.flags for decision in decisions):
        notes.append(f"{n} of {len(decisions)} decisions hold instruction-like text; they are scored like any other")
    return (*notes, *(f"{note} ({n} records)" for note, n in counts.most_common(20)))
