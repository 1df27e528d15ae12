"""`assaymark lock`: fix the plan, and everything it depends on, before a judge is called."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from assaymark.agents.llm import agent_texts, date_call, read_date, task_text
from assaymark.engine import CallSpec, Model
from assaymark.errors import PlanError
from assaymark.judging import PARSER, Rubric, load_rubric, plan_texts, rubric_of
from assaymark.market import cycles as cutting
from assaymark.metrology import preflight
from assaymark.notebook import Heading, Note, Part, Result
from assaymark.protocol import Study, Substrate, parse_study, plan_hash
from assaymark.records import JSON, Context, Instrument, Series, content_id, to_json, write_atomic
from assaymark.text import clean
from assaymark.workflow import run_folder as runs
from assaymark.workflow.ask import ask
from assaymark.workflow.progress import Progress, silent
from assaymark.workflow.run_folder import RunFolder
from assaymark.workflow.tables import CONTEXTS, CYCLES, DECISIONS, HUMAN, OUTCOMES, Store
from assaymark.workflow.track import checked_rubric, planned_decisions, select

if TYPE_CHECKING:
    from assaymark.workflow.tables import Table


_PLACE: Final = ("regimes", "cycles", "bars", "seed", "source", "windows")
_COLUMNS: Final = ("open", "high", "low", "close", "volume")


def prepare(folder: RunFolder, study: Study, progress: Progress = silent) -> list[cutting.Cycle]:
    """Cut the cycles of a study into a run folder: contexts, and apart from them where each was cut from. Returns those
    that were cut now."""
    if study.substrate is None:
        return []
    store = Store(folder)
    chosen = study.substrate.model_dump(mode="json", include=set(_PLACE))
    basis: dict[str, str | None] = {"substrate": content_id({"substrate": chosen, "task": task_text()})}
    if all(store.done(table, basis) for table in (CONTEXTS, CYCLES, OUTCOMES)):
        return []
    # The same contexts without the rest are what a kill between two tables leaves.
    if store.digest(CONTEXTS) is not None and not store.done(CONTEXTS, basis):
        raise PlanError(f"{folder.path} holds other records already; run this study in a new folder")
    made: list[cutting.Cycle] = []
    keys: list[cutting.CycleKey] = []
    wanted = len(study.substrate.regimes) * study.substrate.cycles
    for cycle in cut(study.substrate):
        made.append(cycle)
        keys.append(cutting.key_of(cycle, content_id(cycle.context), study.substrate.source))
        progress("cutting cycles", len(keys), wanted)
    with runs.new_folder(folder.path):
        store.write(CONTEXTS, [cycle.context for cycle in made], basis)
        store.write(CYCLES, keys, basis)
        store.write(OUTCOMES, (), basis)
    return made


def cut(substrate: Substrate, *, cycles: int | None = None) -> list[cutting.Cycle]:
    """The cycles of a substrate; with ``cycles`` only so many of each regime, which are the same ones."""
    wanted = substrate.cycles if cycles is None else min(cycles, substrate.cycles)
    found = cutting.cycles_of(source_of(substrate), substrate.regimes, wanted, substrate.bars, substrate.seed,
                      prompt=task_text())  # fmt: skip
    return list(found)


def source_of(substrate: Substrate) -> cutting.MinuteSource:
    """Where the minutes of a substrate come from."""
    synthetic, windows = substrate.source == "synthetic", substrate.windows or {}
    return (
        cutting.synthetic_minutes(substrate.seed)
        if synthetic
        else cutting.minutes_from_file(Path(substrate.source), windows)
    )


def unsanitised(cycle: cutting.Cycle) -> Context:
    """A cycle as it would be shown with dates, names and levels left in: what a date probe has to be able to date."""
    shown = cycle.context
    shift = timedelta(seconds=int(cycle.raw[0].times[-1])) - timedelta(seconds=shown.cutoff.timestamp())
    times = tuple(when + shift for when in shown.series[0].times)
    series = []
    for one in cycle.raw:
        columns = {name: tuple(np.asarray(getattr(one, name)).tolist()) for name in _COLUMNS}
        series.append(Series(instrument=one.instrument, interval_s=60, times=times, **columns))
    return Context(
        completeness="complete", cutoff=shown.cutoff + shift, cutoff_source="bars", prompt=shown.prompt,
        series=tuple(series), constraints=shown.constraints,
        instruments=tuple(Instrument(id=one.instrument, name=one.instrument) for one in cycle.raw),
    )  # fmt: skip


def probe_dates(
    folder: RunFolder,
    study: Study,
    models: Mapping[str, Model] | None,
    progress: Progress = silent,
    made: Sequence[cutting.Cycle] = (),
) -> tuple[cutting.ProbeResult, ...]:
    """Look for each cycle's day by its price ranges, and ask the plan's model (ValueBlindBench section 4)."""
    substrate = study.substrate
    if substrate is None:
        return ()
    cycles, wanted = sample_of(substrate, made), substrate.date_probe
    ranges, columns = source_of(substrate).ranges()
    moments = [datetime.fromtimestamp(int(cycle.raw[0].times[-1]), UTC) for cycle in cycles]
    hits, control = [], []
    for cycle, moment in zip(cycles, moments, strict=True):
        # Under their true names: the probe is given more than an agent could know.
        shown = [
            cutting.Bars(
                cycle.names[one.instrument], np.arange(len(one.times)),
                *(np.array(getattr(one, name)) for name in _COLUMNS),
            )
            for one in cycle.context.series
        ]  # fmt: skip
        true = np.datetime64(moment.date(), "D")
        hits.append(bool(cutting.day_of(shown, columns, ranges) == true))
        control.append(bool(cutting.day_of(cycle.raw, columns, ranges) == true))
    rules = {"alpha": wanted.alpha, "control": wanted.control}
    found = [cutting.probe_result("mechanical", hits, control, chance=1.0 / ranges.days.size, **rules)]
    if wanted.model is not None and models is not None:
        calls = probe_calls(study, cycles)
        replies = ask(folder, calls, models, wanted.model, "asking for dates", progress, study.engine)
        said = [read_date(replies[call.key]) for call in calls]
        right = [one == (true.year, true.month) for one, true in zip(said, [*moments, *moments], strict=True)]
        chance = 1.0 / np.unique(ranges.days.astype("datetime64[M]")).size
        found.append(cutting.probe_result("model", right[: len(cycles)], right[len(cycles) :], chance=chance, **rules))
    if failed := [str(one) for one in found if not one.passed]:
        raise PlanError(
            f"{'; '.join(failed)}. Material that says when it is from cannot be locked; take out what gives it away, "
            "or use a probe that can date anything"
        )
    return tuple(found)


def probe_calls(study: Study, cycles: Sequence[cutting.Cycle] | None = None) -> list[CallSpec]:
    """Every call that the model probe of a study makes; ``cycles`` are its sample, where that is known."""
    if study.substrate is None or (model := study.substrate.date_probe.model) is None:
        return []
    cycles = cycles or sample_of(
        study.substrate
    )  # a model before sanitised cycles, then before the same with everything left in
    return [date_call(model, one) for one in (*(cycle.context for cycle in cycles), *map(unsanitised, cycles))]


def sample_of(substrate: Substrate, made: Sequence[cutting.Cycle] = ()) -> list[cutting.Cycle]:
    """The cycles that are probed, of those ``made`` or cut anew: the first of every regime, as many as planned."""
    wanted = substrate.date_probe.sample
    each = -(-wanted // len(substrate.regimes))
    found = [cycle for cycle in made if cycle.number <= each] or cut(substrate, cycles=each)
    return found[: max(wanted, len(substrate.regimes))]


FORMAT: Final = "assaymark lock 2"
STUDY: Final = runs.Track(
    format=FORMAT, absent="{0} has no locked plan; run: assaymark lock STUDY --out {0}",
    others={
        "assaymark benchmark": "{0} holds a benchmark; use: assaymark bench, or assaymark report {0}",
        "assaymark season": "{0} holds a season; use: assaymark season",
    },
    texts="rubric and prompts of this version", restore="restore the plan, or lock it in a new run folder",
)  # fmt: skip
"""The kind of run that a study is, as far as its lock goes."""
_FIRST: Final = "1"
"""The parser of locks that name none."""


@dataclass(frozen=True, slots=True, repr=False)
class Locked(Result):
    """A locked plan, checked against the records and texts it was locked on."""

    study: Study
    rubric: Rubric
    plan_hash: str
    locked_at: str
    preflight: Mapping[str, JSON]
    amendments: tuple[runs.Amendment, ...] = ()
    date_probes: tuple[Mapping[str, JSON], ...] = ()
    preregistered: bool = True
    parser: str = PARSER

    def _parts(self) -> Iterator[Part]:
        yield Heading(f"{clean(self.study.title or self.study.name, 120)}: the lock")
        yield from (Note(clean(line)) for line in lock_lines(self))

    @property
    def reading(self) -> dict[str, str | None]:
        """What judgments are made from, beside replies. Runs of the first parser do not name it."""
        return {"plan": self.plan_hash} if self.parser == _FIRST else {"plan": self.plan_hash, "parser": self.parser}

    @property
    def amended(self) -> tuple[str, ...]:
        """The plan fields that were changed after the lock, sorted, without those of another rules' version."""
        made = (amendment.fields for amendment in self.amendments if "version" not in amendment.fields)
        return tuple(sorted({name for fields in made for name in fields}))


def lock(
    folder: RunFolder, study_text: str, source: str, now: datetime, models: Mapping[str, Model] | None = None,
    progress: Progress = silent, first: Callable[[Study], object] | None = None,
) -> Locked:  # fmt: skip
    """Lock a study on the records of a run folder: validate, run the preflight, fingerprint."""
    if folder.lock.is_file():
        STUDY.stored(folder)  # what is locked here may be no study, or of version 1
    study = parse_study(study_text, source)
    with runs.new_folder(folder.path) if study.substrate is not None else nullcontext():
        made = prepare(folder, study, progress)
        folder.require()
        checked = check_plan(folder, study, source, models)
        if folder.lock.is_file():
            locked = open_locked(folder)
            if locked.plan_hash != checked["plan_hash"]:
                raise PlanError(
                    f"{source} differs from the plan locked in {folder.path} (plan hash "
                    f"{checked['plan_hash'][:12]}..., locked {locked.plan_hash[:12]}...); a locked plan is not changed "
                    f"in silence: use another --out, or say why it changes: assaymark amend {source} "
                    f"--out {folder.path} --reason WHY"
                )
            return locked
        if first is not None:
            first(study)
    probes = [to_json(date) | {"passed": date.passed} for date in probe_dates(folder, study, models, progress, made)]
    write_plan(folder, study_text, checked, to_json(now), probes)
    return open_locked(folder)


def check_plan(
    folder: RunFolder, study: Study, source: str, models: Mapping[str, Model] | None, *, refuse_hopeless: bool = True,
) -> dict[str, JSON]:  # fmt: skip
    """Validate a study against the records of a run folder, and run the preflight; returns what its lock says of it."""
    store = Store(folder)
    decisions = store.read(DECISIONS) if study.substrate is None else planned_decisions(study, store.read(CYCLES))
    selection = select(decisions, study)
    graders = {one.judge for one in store.read(HUMAN)} if store.digest(HUMAN) else set()
    rubric = checked_rubric(study, source, decisions, selection, models, sorted(graders))
    families = {one.agent.id: one.agent.family for one in selection.honest}
    answered: dict[str, set[str]] = {name: set() for name in sorted(families)}
    cluster_of: dict[str, str] = {}
    for one in selection.honest:
        answered[one.agent.id].add(one.cycle)
        cluster_of[one.cycle] = one.cluster
    common = [answered[a] & answered[b] for a, b in combinations(answered, 2)]
    report = preflight(
        study, len(families), len(rubric.dimensions),
        np.array([len({cluster_of[cycle] for cycle in cycles}) for cycles in common], dtype=int),
        np.array([len(cycles) for cycles in common], dtype=int),
        agent_families=families, clusters=sorted({one.cluster for one in selection.honest}),
    )  # fmt: skip
    if refuse_hopeless and report.hopeless and not study.inference.allow_hopeless:
        raise PlanError(
            f"{source}: with this design no ranking can reach significance at alpha {study.inference.alpha}: "
            f"{'; '.join(report.warnings)}. Use more clusters, or set inference.allow_hopeless = true to lock it anyway"
        )
    tables = locked_tables(study, store)
    fingerprint = plan_hash(study, texts_of(study), tables)
    return {"plan_hash": fingerprint, "tables": tables, "preflight": to_json(report)}


def write_plan(
    folder: RunFolder, study_text: str, checked: Mapping[str, JSON], locked_at: JSON, probes: Sequence[JSON] = (),
    amendments: Sequence[str] = (), preregistered: bool = True,
) -> None:  # fmt: skip
    """Write the plan, then the lock that names it and says what the date probes found."""
    write_atomic(folder.plan, study_text)
    lock = study_lock(checked, locked_at, probes)
    runs.write_lock(folder, {**lock, "amendments": list(amendments), "preregistered": preregistered})


def study_lock(checked: Mapping[str, JSON], locked_at: JSON, probes: Sequence[JSON] = ()) -> dict[str, JSON]:
    """The lock of a study that was not amended."""
    return STUDY.new_lock(**checked, locked_at=locked_at, date_probes=list(probes), parser=PARSER)


def open_locked(folder: RunFolder) -> Locked:
    """The locked plan of a run folder."""
    folder.require()
    stored = STUDY.stored(folder)
    study = parse_study(runs.read_text(folder.plan, "plan"), source=str(folder.plan))
    tables = locked_tables(study, Store(folder))
    if changed := sorted(name for name in tables if tables[name] != stored["tables"].get(name)):
        raise PlanError(f"{folder.path}: {' and '.join(changed)} changed after the lock; lock a new run folder on them")
    fingerprint = plan_hash(study, texts_of(study), tables)
    STUDY.require_unedited(folder, fingerprint, stored)
    return Locked(
        study, rubric_of(study.rubric), fingerprint, stored["locked_at"], stored["preflight"],
        runs.read_amendments(folder, stored.get("amendments", [])), tuple(stored.get("date_probes", ())),
        stored.get("preregistered", True), stored.get("parser", _FIRST),
    )  # fmt: skip


def texts_of(study: Study) -> dict[str, str]:
    """Every text that a study uses, by name: its rubrics, and what judges and agents are told."""
    texts = plan_texts(rubric_of(study.rubric))
    if study.anchor_probe is not None:
        texts |= plan_texts(load_rubric(study.anchor_probe.rubric))
    if study.agents:
        texts |= agent_texts()
    return texts


def locked_tables(study: Study, store: Store) -> dict[str, str]:
    """What the plan is locked on: the records, and the grades of people if it has any."""
    wanted: list[Table[Any]] = [CONTEXTS] if study.substrate else [CONTEXTS, DECISIONS]
    if any(judge.human for judge in study.judges):
        wanted.append(HUMAN)
    return {table.name: store.content(table) or "absent" for table in wanted}


def lock_lines(locked: Locked) -> list[str]:
    """What `assaymark lock` prints: the fingerprint and what the design can conclude."""
    report = locked.preflight
    test = {"moderated-t": "moderated cluster t", "own-variance": "cluster t with each pair's own variance"}
    n = report["clusters"]
    over = f"over {n} clusters (median of the pairs of agents)" if n else "for no pair: too few common clusters"
    lines = [f"plan hash {locked.plan_hash}", f"locked {locked.locked_at}", f"test: {test[str(report['test'])]} {over}"]
    for name, words in (
        ("reach", "smallest detectable gap"),
        ("reach_borrowed", "at best, where the agents' variances are alike"),
        ("reach_half", "with half the clusters"),
    ):
        found = report[name]
        if found is not None and (name != "reach_borrowed" or found != report["reach"]):
            alike = found["leader"] == found["pair"]
            told = "" if alike else f" for a leader, {found['pair']:.2f} for a single pair"
            lines.append(f"{words}: {found['leader']:.2f} points{told}")
    if report["conflicted"]:
        lines.append(
            f"{report['conflicted']} pairs have a judge from the maker of one of the two: their order has to hold "
            "without it"
        )
    for one in locked.date_probes:
        lines.append(
            f"{one['probe']} date probe {'PASS' if one['passed'] else 'FAIL'}: dated {one['hits']} of {one['asked']} "
            f"sanitised cycles, {one['control_hits']} of {one['control_asked']} unsanitised ones"
        )
    return [*lines, *(f"warning: {text}" for text in report["warnings"])]
