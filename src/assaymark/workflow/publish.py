"""`assaymark report`: everything that was measured and decided, as pages and as a terminal summary."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Final

from rich.console import RenderableType

from assaymark.agents.reference import planted_words
from assaymark.errors import InputError, LedgerError
from assaymark.judging import PLANTED
from assaymark.market.cycles import CycleKey
from assaymark.metrology.datasheet import Datasheet
from assaymark.notebook import Note, Part, Result
from assaymark.prompting.texts import INSTRUCTION_LIKE
from assaymark.protocol import JudgeSpec, Study
from assaymark.records import JSON, Decision, Judgment, canonical_json, parse
from assaymark.report import (
    ALONE,
    AssayRun,
    PaidView,
    PlantedView,
    RubricView,
    Site,
    each_page,
    study_frame,
    terminal_summary,
)
from assaymark.report.inputs import CycleView, DateProbeView, RegimeView, SubstrateView
from assaymark.report.notebook import study_parts
from assaymark.report.records.answers import Answers
from assaymark.report.records.calls import ReadCalls
from assaymark.report.records.judgments import Judged
from assaymark.report.records.study import Calls
from assaymark.workflow.lock import open_locked
from assaymark.workflow.progress import paid_views
from assaymark.workflow.raw_calls import calls_of, stored_answers
from assaymark.workflow.run_folder import RunFolder, replace_files
from assaymark.workflow.tables import (
    ANCHOR,
    CONTEXTS,
    CYCLES,
    DECISIONS,
    EVIDENCE,
    JUDGMENTS,
    MEASUREMENTS,
    PROBE,
    VERDICTS,
    Store,
)
from assaymark.workflow.track import Selection, select
from assaymark.workflow.tracks.datasheet import datasheet_pages, stored_datasheets

if TYPE_CHECKING:
    from assaymark.workflow.lock import Locked


# What the report shows of a study that makes its own records: its cycles, its date probes, one cycle, its agents.


_PROBE: Final = tuple(item.name for item in dataclasses.fields(DateProbeView))


def substrate_view(locked: Locked, store: Store) -> SubstrateView | None:
    """What a study showed its agents; None for a study whose records are imported."""
    substrate = locked.study.substrate
    if substrate is None:
        return None
    keys = sorted(store.read(CYCLES), key=lambda key: key.number)
    by_regime = {name: [key for key in keys if key.regime == name] for name in substrate.regimes}
    first = next((found[0] for found in by_regime.values() if found), None)
    return SubstrateView(
        source=PurePath(substrate.source).name,
        bars=substrate.bars,
        regimes=tuple(_regime(name, found) for name, found in by_regime.items() if found),
        probes=tuple(_probe(found) for found in locked.date_probes),
        example=None if first is None else _example(first, store),
    )


def _regime(name: str, keys: Sequence[CycleKey]) -> RegimeView:
    left_out = Counter(instrument for key in keys for instrument in key.left_out)
    return RegimeView(
        name=name,
        cycles=len(keys),
        first=min(key.first_bar for key in keys),
        last=max(key.last_bar for key in keys),
        left_out=dict(sorted(left_out.items())),
    )


def _probe(found: Mapping[str, JSON]) -> DateProbeView:
    """A probe as the lock holds it."""
    try:
        return parse(DateProbeView, canonical_json({name: found[name] for name in _PROBE}), source="date probe")
    except (KeyError, InputError) as exc:
        raise LedgerError(f"the lock holds a date probe that cannot be read ({exc}); lock a new run folder") from None


def _example(key: CycleKey, store: Store) -> CycleView | None:
    """One cycle with the honest decisions on it, agents in alphabetical order."""
    context = next((context for name, context in store.each_context() if name == key.context_id), None)
    if context is None:
        return None
    on_it = (one for one in store.read(DECISIONS) if one.context_id == key.context_id)
    honest = [one for one in on_it if one.derivation.kind == "honest" and one.replicate == 1]
    return CycleView(
        regime=key.regime,
        number=key.number,
        first=key.first_bar,
        last=key.last_bar,
        names=dict(key.names),
        context=context,
        decisions=tuple(sorted(honest, key=lambda one: one.agent.id)),
        left_out=key.left_out,
    )


def planted_agents(study: Study) -> tuple[PlantedView, ...]:
    """What is planted in the reference agents of a study; empty when it has none."""
    return tuple(_planted(study))


def _planted(study: Study) -> Iterator[PlantedView]:
    for agent in study.agents:
        found = planted_words(agent.model, agent.args)
        if found is not None:
            yield PlantedView(name=agent.name, family=agent.family, question=found.rule, planted=found.properties)


@dataclass(frozen=True, slots=True, repr=False)
class Reported(Result):
    """Where the page lies, what to show in the terminal, and the run that a notebook shows."""

    page: Path
    summary: RenderableType
    run: AssayRun

    def _parts(self) -> Iterator[Part]:
        yield from study_parts(self.run)
        yield Note(f"page: {self.page}")


def report(folder: RunFolder, *, calls: Calls = "all") -> Reported:
    """Write ``report/`` from the records of a finished run.

    Parameters
    ----------
    folder : RunFolder
    calls : {"all", "judged", "none"}
        Which calls get pages, as they were asked and answered: all that a record rests on, those of the judges alone,
        or none.

    Raises
    ------
    LedgerError
        There are no verdicts yet: claim first.
    """
    shown = study_shown(folder)
    replace_files(folder.report, study_pages(shown, calls=calls))
    return Reported(folder.report / "index.html", terminal_summary(shown.run), shown.run)


@dataclass(frozen=True, slots=True, eq=False)
class StudyShown:
    """What the pages of a finished study are made from. ``read`` gives its calls; None where no ledger can be asked."""

    run: AssayRun
    sheets: tuple[Datasheet, ...]
    answers: Answers
    read: ReadCalls | None


def study_shown(folder: RunFolder) -> StudyShown:
    """Everything that the pages of a finished study show."""
    locked = open_locked(folder)
    sheets = tuple(stored_datasheets(folder))
    paid = _paid(folder)
    run = gather(locked, Store(folder), sheets, paid)
    read = None if paid is None else calls_of(folder)
    return StudyShown(run, sheets, stored_answers(folder), read)


def study_pages(shown: StudyShown, site: Site = ALONE, *, calls: Calls = "all") -> Iterator[tuple[str, str]]:
    """Every page of a study with those of its judges, as path and text."""
    yield from each_page(shown.run, site, shown.read, calls)
    if shown.sheets:
        frame, read = study_frame(shown.run, site), shown.read if calls == "all" else None
        yield from datasheet_pages(shown.sheets, frame=frame, answers=shown.answers, read=read)


def gather(
    locked: Locked, store: Store, sheets: Sequence[Datasheet] = (), paid: tuple[PaidView, ...] | None = ()
) -> AssayRun:
    """Everything the pages show, from the tables of a run."""
    study = locked.study
    verdicts = {verdict.claim.id: verdict for verdict in store.read(VERDICTS)}
    judgments = store.read(JUDGMENTS)
    selection = select(store.read(DECISIONS), study)
    return AssayRun(
        study=study,
        plan_hash=locked.plan_hash,
        locked_at=locked.locked_at,
        rubric=RubricView(
            name=study.rubric.name,
            title=locked.rubric.title,
            dimensions=tuple(
                (item.name, item.name.replace("_", " ").capitalize()) for item in locked.rubric.dimensions
            ),
        ),
        verdicts=tuple(verdicts.values()),
        measurements=tuple(store.read(MEASUREMENTS)),
        decisions=selection.honest,
        evidence=tuple(store.read(EVIDENCE)),
        invalid=_invalid(judgments),
        calls=len(judgments),
        again=sum(bool(one.first_key) for one in judgments),
        in_flight_bound=in_flight_bound(study),
        reference_panel=planted_views(study),
        import_notes=import_notes(selection.honest, store.columns(CONTEXTS, "context_id", "completeness", "missing")),
        excluded=selection.excluded,
        datasheets=tuple(sheet.judge for sheet in sheets),
        tests=tuple(item for sheet in sheets for item in sheet.measurements),
        substrate=substrate_view(locked, store),
        reference_agents=planted_agents(study),
        paid=paid,
        judged=_judged(study, store, selection, judgments),
    )


def _judged(study: Study, store: Store, selection: Selection, judgments: Sequence[Judgment]) -> Judged:
    """Everything that a judge said in a run, and of what."""
    return Judged(
        parts={
            "panel": judgments,
            "anchors": store.read(ANCHOR) if store.rows(ANCHOR) else (),
            "outside": store.read(PROBE) if store.rows(PROBE) else (),
        },
        decisions=selection.decisions,
        people=frozenset(one.name for one in study.judges if one.human),
        decided_here=study.substrate is not None,
    )


def _paid(folder: RunFolder) -> tuple[PaidView, ...] | None:
    """What was paid; None where the ledger is in a database that cannot be asked from here, as pages need none."""
    try:
        return paid_views(folder)
    except LedgerError:
        if isinstance(folder.ledger, Path):
            raise
        return None


def in_flight_bound(study: Study) -> int:
    """The most calls that one hard kill can cause to be paid twice: one per open slot of each model at each address."""
    lanes = {(judge.model, judge.args.get("base_url"), judge.args.get("api_key_env")) for judge in asked(study)}
    return study.engine.concurrency * len(lanes)


def asked(study: Study) -> tuple[JudgeSpec, ...]:
    """Every model that a study may ask: the panel's, and the outside judge."""
    probe = study.stability.probe
    return study.model_judges if probe is None else (*study.model_judges, probe)


def planted_views(study: Study) -> tuple[PlantedView, ...]:
    """What is planted in the reference judges of a panel, as the plan sets it; empty when the panel has none."""
    return tuple(
        PlantedView(
            name=judge.name,
            family=judge.family,
            question=PLANTED[judge.model].words.partition(";")[0],
            planted=_planted_words(judge),
        )
        for judge in asked(study)
        if judge.model in PLANTED
    )


def _planted_words(judge: JudgeSpec) -> tuple[str, ...]:
    planted = PLANTED[judge.model]
    value = {
        name: float(judge.args.get(name, getattr(planted, name)))
        for name in ("offset", "noise", "slope", "pivot", "halo", "terse", "terse_tokens")
    }
    further = []
    if value["halo"]:
        further.append(
            f"{value['halo']:+.2f} points for texts in the style of {judge.args.get('kin')}".replace("-", "−")
        )
    if value["terse"]:
        further.append(f"{value['terse']:.2f} points off for texts of up to {value['terse_tokens']:.0f} tokens")
    return (
        f"offset {value['offset']:+.2f} points".replace("-", "−"),
        f"noise with a standard deviation of {value['noise']:.2f} points",
        f"{value['slope']:.2f} points for each 100 tokens beyond {value['pivot']:.0f}"
        if value["slope"]
        else "blind to length",
        *further,
    )


def import_notes(decisions: Sequence[Decision], contexts: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """What the records lack, in words, most frequent first.

    ``contexts`` are rows with ``context_id``, ``completeness`` and ``missing``.
    """
    used = {decision.context_id for decision in decisions}
    shown = [row for row in contexts if row["context_id"] in used]
    partial = sum(row["completeness"] == "partial" for row in shown)
    notes = [f"{partial} of {len(shown)} contexts are partial: the agents saw something that is not in the records"]
    counts = Counter(item for row in shown for item in row["missing"])
    counts.update(item for decision in decisions for item in decision.missing)
    said = notes if partial else []
    if n := sum(INSTRUCTION_LIKE in one.flags for one in decisions):
        said.append(f"{n} of {len(decisions)} decisions hold instruction-like text; they are scored like any other")
    return (*said, *(f"{what} ({n} records)" for what, n in counts.most_common(20)))


def _invalid(judgments: list[Judgment]) -> dict[str, int]:
    counts = dict.fromkeys(sorted({item.judge for item in judgments}), 0)
    for item in judgments:
        counts[item.judge] += item.status != "ok"
    return counts
