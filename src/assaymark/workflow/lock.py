"""`assaymark lock`: fix a plan, and everything that it depends on, before any judge is called."""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import numpy as np

import assaymark.judging as judging
import assaymark.records as rec
from assaymark.agents import agent_argument_problems, reference_agents
from assaymark.agents.llm import DecisionKey, agent_texts, date_call, read_date, task_text
from assaymark.engine import CallSpec, Model
from assaymark.engine.providers.http_agent import is_outside
from assaymark.engine.providers.registry import Models, check_ready, provider_argument_problems
from assaymark.errors import InputError, ModelError, PlanError, Problem, UnknownNameError
from assaymark.judging import PARSER, Rubric, argument_problems, load_rubric, plan_texts, rubric_names, rubric_of
from assaymark.judging.reference.judges import SEASON_PLANTED, dimension_problem, season_argument_problems
from assaymark.market import cycles as cutting
from assaymark.metrology import preflight
from assaymark.metrology.probes import ORACLE_DIMENSION
from assaymark.notebook import Heading, Part, Result
from assaymark.plan import read_toml
from assaymark.protocol import AgentSpec, JudgeSpec, Study, Substrate, parse_study, plan_hash, scale_words
from assaymark.records import AGGREGATE, JSON, content_id, to_json, write_atomic
from assaymark.text import clean
from assaymark.workflow import run_folder as runs
from assaymark.workflow.ask import Canaries, ask
from assaymark.workflow.progress import note
from assaymark.workflow.run_folder import RunFolder, read_text
from assaymark.workflow.tables import CONTEXTS, CYCLES, DECISIONS, HUMAN, OUTCOMES, RecordTable, Store

_PLACE: Final = ("regimes", "cycles", "bars", "seed", "source", "windows")
_COLUMNS: Final = ("open", "high", "low", "close", "volume")


def prepare(folder: RunFolder, study: Study) -> list[cutting.Cycle]:
    """Cut the cycles of a study; write their contexts into a run folder, and their origins into another table. Returns
    the cycles that were cut now."""
    if study.substrate is None:
        return []
    store = Store(folder)
    chosen = study.substrate.model_dump(mode="json", include=set(_PLACE))
    basis: dict[str, str | None] = {"substrate": content_id({"substrate": chosen, "task": task_text()})}
    if all(store.done(table, basis) for table in (CONTEXTS, CYCLES, OUTCOMES)):
        return []
    # Equal contexts without the other tables are left by a kill in between.
    if store.digest(CONTEXTS) is not None and not store.done(CONTEXTS, basis):
        raise PlanError(f"{folder.path} holds other records already; run this study in a new folder")
    cycles: list[cutting.Cycle] = []
    keys: list[cutting.CycleKey] = []
    total = len(study.substrate.regimes) * study.substrate.cycles
    for cycle in cut_cycles(study.substrate):
        cycles.append(cycle)
        keys.append(cutting.key_of(cycle, content_id(cycle.context), study.substrate.source))
        note("cutting cycles", len(keys), total)
    with runs.new_folder(folder.path):
        store.write(CONTEXTS, [cycle.context for cycle in cycles], basis)
        store.write(CYCLES, keys, basis)
        store.write(OUTCOMES, (), basis)
    return cycles


def cut_cycles(substrate: Substrate, *, cycles: int | None = None) -> list[cutting.Cycle]:
    """Cut the cycles of a substrate; with ``cycles`` only the first so many of each regime."""
    total = substrate.cycles if cycles is None else min(cycles, substrate.cycles)
    cut = cutting.cycles_of(minute_source(substrate), substrate.regimes, total, substrate.bars, substrate.seed,
                      prompt=task_text())  # fmt: skip
    return list(cut)


def minute_source(substrate: Substrate) -> cutting.MinuteSource:
    """Return the source of a substrate's minute bars: synthetic, or a file."""
    synthetic, windows = substrate.source == "synthetic", substrate.windows or {}
    return (
        cutting.synthetic_minutes(substrate.seed)
        if synthetic
        else cutting.minutes_from_file(Path(substrate.source), windows)
    )


def raw_context(cycle: cutting.Cycle) -> rec.Context:
    """Return a cycle's context with its dates, names and price levels: the positive control of a date probe."""
    shown = cycle.context
    shift = timedelta(seconds=int(cycle.raw[0].times[-1])) - timedelta(seconds=shown.cutoff.timestamp())
    times = tuple(when + shift for when in shown.series[0].times)
    series = []
    for bars in cycle.raw:
        columns = {name: tuple(np.asarray(getattr(bars, name)).tolist()) for name in _COLUMNS}
        series.append(rec.Series(bars.instrument, 60, times, **columns))
    return rec.Context(
        completeness="complete", cutoff=shown.cutoff + shift, cutoff_source="bars", prompt=shown.prompt,
        series=tuple(series), constraints=shown.constraints,
        instruments=tuple(rec.Instrument(id=bars.instrument, name=bars.instrument) for bars in cycle.raw),
    )  # fmt: skip


def probe_dates(
    folder: RunFolder, study: Study, models: Mapping[str, Model] | None, cut: Sequence[cutting.Cycle] = ()
) -> tuple[cutting.ProbeResult, ...]:
    """Date each cycle by its price ranges and by asking the plan's model (ValueBlindBench section 4)."""
    substrate = study.substrate
    if substrate is None:
        return ()
    cycles, probe = probe_sample(substrate, cut), substrate.date_probe
    lows, highs = minute_source(substrate).ranges()
    moments = [datetime.fromtimestamp(int(cycle.raw[0].times[-1]), UTC) for cycle in cycles]
    hits, control = [], []
    for cycle, moment in zip(cycles, moments, strict=True):
        # With their true names: the probe may know more than an agent.
        shown = [
            cutting.Bars(
                cycle.names[series.instrument], np.arange(len(series.times)),
                *(np.array(getattr(series, name)) for name in _COLUMNS),
            )
            for series in cycle.context.series
        ]  # fmt: skip
        true = np.datetime64(moment.date(), "D")
        hits.append(bool(cutting.day_of(shown, lows, highs) == true))
        control.append(bool(cutting.day_of(cycle.raw, lows, highs) == true))
    rules = {"alpha": probe.alpha, "control": probe.control}
    probes = [cutting.probe_result("mechanical", hits, control, chance=1.0 / lows.days.size, **rules)]
    if probe.model is not None and models is not None:
        calls = probe_calls(study, cycles)
        replies = ask(folder, calls, models, probe.model, "asking for dates", study.engine)
        dates = [read_date(replies[call.key]) for call in calls]
        right = [date == (true.year, true.month) for date, true in zip(dates, [*moments, *moments], strict=True)]
        chance = 1.0 / np.unique(lows.days.astype("datetime64[M]")).size
        probes.append(cutting.probe_result("model", right[: len(cycles)], right[len(cycles) :], chance, **rules))
    if failed := [str(result) for result in probes if not result.passed]:
        raise PlanError(
            f"{'; '.join(failed)}. Material whose date can be inferred cannot be locked; remove what reveals it, "
            "or use a probe that can date unsanitised material"
        )
    return tuple(probes)


def probe_calls(study: Study, cycles: Sequence[cutting.Cycle] | None = None) -> list[CallSpec]:
    """Return every call of a study's model probe; ``cycles`` is its sample, cut here by default."""
    if study.substrate is None or (model := study.substrate.date_probe.model) is None:
        return []
    # First the sanitised cycles, then the same cycles unsanitised.
    cycles = cycles or probe_sample(study.substrate)
    return [date_call(model, context) for context in (*(cycle.context for cycle in cycles), *map(raw_context, cycles))]


def probe_sample(substrate: Substrate, cut: Sequence[cutting.Cycle] = ()) -> list[cutting.Cycle]:
    """Return the sample of a date probe from ``cut`` or newly cut cycles: the first ones of every regime."""
    size = substrate.date_probe.sample
    each = -(-size // len(substrate.regimes))
    sample = [cycle for cycle in cut if cycle.number <= each] or cut_cycles(substrate, cycles=each)
    return sample[: max(size, len(substrate.regimes))]


FORMAT: Final = "assaymark lock 2"
STUDY: Final = runs.LockKind(
    format=FORMAT, absent="{0} has no locked plan; run: assaymark lock STUDY --out {0}",
    others={
        "assaymark benchmark": "{0} contains a benchmark; use: assaymark bench, or assaymark report {0}",
        "assaymark season": "{0} contains a season; use: assaymark season judge {0}, or season publish {0}",
    },
    texts="rubric and prompts of this version", restore="restore the plan, or lock it in a new run folder",
)  # fmt: skip
"""The format and the messages of a study's lock."""
_FIRST: Final = "1"
"""The parser of locks that do not name one."""


@dataclass(frozen=True, slots=True, repr=False)
class Locked(Result):
    """A locked plan, checked against the records and texts that it was locked on."""

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
        yield from map(clean, lock_lines(self))

    @property
    def reading(self) -> dict[str, str | None]:
        """The basis of judgments apart from replies: plan hash and parser, the latter left out for the first parser."""
        return {"plan": self.plan_hash} if self.parser == _FIRST else {"plan": self.plan_hash, "parser": self.parser}

    @property
    def amended(self) -> tuple[str, ...]:
        """The plan fields that amendments changed, sorted; a change to the rules of version 2 does not count."""
        changes = (amendment.fields for amendment in self.amendments if "version" not in amendment.fields)
        return tuple(sorted({name for fields in changes for name in fields}))


def lock(
    folder: RunFolder, study_text: str, source: str, now: datetime, models: Mapping[str, Model] | None = None,
    first: Callable[[Study], Canaries] | None = None,
) -> Locked:  # fmt: skip
    """Lock a study in a run folder: validate it, run the preflight, hash it; ``first`` makes one trial call a model."""
    if folder.lock.is_file():
        STUDY.stored(folder)  # raises if the lock is not of a study, or of version 1
    study = parse_study(study_text, source)
    with runs.new_folder(folder.path) if study.substrate is not None or folder.check.is_file() else nullcontext():
        cycles = prepare(folder, study)
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
        sent = None if first is None else first(study)
    probes = [to_json(date) | {"passed": date.passed} for date in probe_dates(folder, study, models, cycles)]
    write_plan(folder, study_text, checked, to_json(now), probes)
    locked = open_locked(folder)
    if sent is not None:
        sent.keep(folder, locked)
    return locked


def check_plan(
    folder: RunFolder, study: Study, source: str, models: Mapping[str, Model] | None, *, refuse_hopeless: bool = True,
) -> dict[str, JSON]:  # fmt: skip
    """Validate a study against the records of a run folder and run the preflight; returns the fields for its lock."""
    store = Store(folder)
    decisions = store.read(DECISIONS) if study.substrate is None else planned_decisions(study, store.read(CYCLES))
    selection = select(decisions, study)
    graders = {judgment.judge for judgment in store.stored(HUMAN)}
    rubric = checked_rubric(study, source, decisions, selection, models, sorted(graders))
    families = {decision.agent.id: decision.agent.family for decision in selection.honest}
    answered: dict[str, set[str]] = {name: set() for name in sorted(families)}
    cluster_of: dict[str, str] = {}
    for decision in selection.honest:
        answered[decision.agent.id].add(decision.cycle)
        cluster_of[decision.cycle] = decision.cluster
    common = [answered[a] & answered[b] for a, b in itertools.combinations(answered, 2)]
    report = preflight(
        study, len(families), len(rubric.dimensions),
        np.array([len({cluster_of[cycle] for cycle in cycles}) for cycles in common], dtype=int),
        np.array([len(cycles) for cycles in common], dtype=int),
        agent_families=families, clusters=sorted({decision.cluster for decision in selection.honest}),
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
    """Write the plan, then its lock with the results of the date probes."""
    write_atomic(folder.plan, study_text)
    lock = study_lock(checked, locked_at, probes)
    runs.write_lock(folder, {**lock, "amendments": list(amendments), "preregistered": preregistered})


def study_lock(checked: Mapping[str, JSON], locked_at: JSON, probes: Sequence[JSON] = ()) -> dict[str, JSON]:
    """Return the lock of a study without amendments."""
    return STUDY.new_lock(**checked, locked_at=locked_at, date_probes=list(probes), parser=PARSER)


def open_locked(folder: RunFolder) -> Locked:
    """Read the locked plan of a run folder. Raises `PlanError` if the plan or its records changed after the lock."""
    folder.require()
    stored = STUDY.stored(folder)
    study = parse_study(read_text(folder.plan, "plan"), source=str(folder.plan))
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
    """Return every text of a study by name: its rubrics, and the prompts of judges and agents."""
    texts = plan_texts(rubric_of(study.rubric))
    if study.anchor_probe is not None:
        texts |= plan_texts(load_rubric(study.anchor_probe.rubric))
    if study.agents:
        texts |= agent_texts()
    return texts


def locked_tables(study: Study, store: Store) -> dict[str, str]:
    """Return the digests of the tables that a plan is locked on: records, and grades of people on its panel."""
    tables: list[RecordTable[Any]] = [CONTEXTS] if study.substrate else [CONTEXTS, DECISIONS]
    if any(judge.human for judge in study.judges):
        tables.append(HUMAN)
    return {table.name: store.content(table) or "absent" for table in tables}


def lock_lines(locked: Locked) -> list[str]:
    """Return the lines that `assaymark lock` prints: the plan hash and the power of the design."""
    report = locked.preflight
    test = {"moderated-t": "moderated cluster t", "own-variance": "cluster t with each pair's own variance"}
    n = report["clusters"]
    over = f"over {n} clusters (median of the pairs of agents)" if n else "for no pair: too few common clusters"
    lines = [f"plan hash {locked.plan_hash}", f"locked {locked.locked_at}", f"test: {test[str(report['test'])]} {over}"]
    for name, words in (
        ("reach", "smallest detectable gap, if cycles of a cluster are independent"),
        ("reach_borrowed", "at best, where the agents' variances are alike"),
        ("reach_half", "with half the clusters"),
    ):
        reach = report[name]
        if reach is not None and (name != "reach_borrowed" or reach != report["reach"]):
            alike = reach["leader"] == reach["pair"]
            of_whom = "" if alike else f" for a leader, {reach['pair']:.2f} for a single pair"
            lines.append(f"{words}: {reach['leader']:.2f} points{of_whom}")
    if report["conflicted"]:
        lines.append(
            f"{report['conflicted']} pairs have a judge from the maker of one of the two: their ranking has "
            "to hold without it"
        )
    for one in locked.date_probes:
        lines.append(
            f"{cutting.PROBES.get(str(one['probe']), one['probe'])} {'PASS' if one['passed'] else 'FAIL'}: dated "
            f"{one['hits']} of {one['asked']} sanitised cycles, {one['control_hits']} of {one['control_asked']} "
            "unsanitised ones"
        )
    return [*lines, *(f"warning: {text}" for text in report["warnings"])]


# --- The decisions of a study, and checks of everything that its plan names -------------------------------------------


@dataclass(frozen=True, slots=True)
class Selection:
    """The decisions of a study, control cells included, and the number excluded for each reason."""

    decisions: tuple[rec.Decision, ...]
    excluded: Mapping[str, int]

    @property
    def honest(self) -> tuple[rec.Decision, ...]:
        """The decisions that are ranked."""
        return self.cell("honest")

    def cell(self, kind: rec.DerivationKind) -> tuple[rec.Decision, ...]:
        """Return the decisions of one control cell."""
        return tuple(decision for decision in self.decisions if decision.derivation.kind == kind)


def select(decisions: Sequence[rec.Decision], study: Study) -> Selection:
    """Return the decisions that ``[records]`` of a study selects, in their order."""
    reasons = [judging.left_out(decision, study.records) for decision in decisions]
    excluded = Counter(reason for reason in reasons if reason is not None)
    chosen = tuple(decision for decision, reason in zip(decisions, reasons, strict=True) if reason is None)
    return Selection(chosen, dict(sorted(excluded.items())))


def checked_rubric(
    study: Study, source: str, decisions: Sequence[rec.Decision], selection: Selection,
    models: Mapping[str, Model] | None = None, graders: Collection[str] = (),
) -> Rubric:  # fmt: skip
    """Return the rubric of a study after checking every name in the study; raises `InputError` with all problems."""
    agents = sorted({decision.agent.id for decision in decisions})
    problems = [*_unknown("records.agents", "agent", study.records.agents or (), agents)]
    for at, agent in enumerate(study.agents):
        problems += model_problems(f"agents.{at}", agent, models, "agent")
    dated = None if study.substrate is None else study.substrate.date_probe.model
    if dated is not None and (unknown := unknown_model(dated, models)) is not None:
        problems.append(Problem("substrate.date_probe.model", unknown))
    for at, judge in enumerate(study.judges):
        problems += model_problems(f"judges.{at}", judge, models, "judge")
    if study.stability.probe is not None:
        problems += model_problems("stability.probe", study.stability.probe, models, "judge")
    for at, judge in enumerate(study.judges):
        if judge.human and not graders:
            problem = "a human grader, but no grades were imported; run: assaymark import human"
            problems.append(Problem(f"judges.{at}", problem))
        elif judge.human:
            problems += _unknown(f"judges.{at}.name", "human grader", [judge.name], graders)
    for name in graders:
        if name not in {judge.name for judge in study.judges if judge.human}:
            problem = f"grades of {name!r:.60} were imported, and no judge of the plan is that person"
            add = f'add [[judges]] name = "{name:.60}", model = "human/table", family = "human"'
            problems.append(Problem("judges", f"{problem}; {add}, or import a table without these grades"))
    for kind in study.cells_judged:
        if not selection.cell(kind):
            problems.append(Problem("records.derivations", f"no record of the control cell {kind} was imported"))
    clusters, after = sorted({row.cluster for row in selection.honest}), getattr(study.contamination, "post_cutoff", ())
    problems += _unknown("contamination.post_cutoff", "cluster", after, clusters)
    if (probe := study.anchor_probe) is not None:
        problems += _unknown("anchor_probe.rubric", "rubric", [probe.rubric], rubric_names())
        if probe.rubric == study.rubric.name and probe.rubric in rubric_names():
            problem = f"is the study's own rubric (got {study.rubric.name}); name another"
            problems.append(Problem("anchor_probe.rubric", problem))
    if not selection.honest:
        left = ", ".join(f"{count} by {reason}" for reason, count in selection.excluded.items()) or "none were imported"
        problems.append(Problem("records", f"no decision is left to judge ({left})"))
    try:
        rubric = rubric_of(study.rubric)
    except UnknownNameError as exc:
        raise InputError(source, [*problems, Problem("rubric.name", str(exc))]) from None
    if problems := [*problems, *_rubric_problems(study, rubric)]:
        raise InputError(source, problems)
    return rubric


def _unknown(place: str, kind: str, names: Iterable[str], options: Collection[str]) -> Iterator[Problem]:
    """Return a problem for each name that is not among the options."""
    return (Problem(place, str(UnknownNameError(kind, name, tuple(options)))) for name in names if name not in options)


def _rubric_problems(study: Study, rubric: Rubric) -> Iterator[Problem]:
    """Yield each mismatch between a plan and its rubric, and between the rubric and those who grade by it."""
    if study.rubric.name != rubric.version:
        yield Problem("rubric.name", f"is the version in the rubric, {rubric.version} (got {study.rubric.name})")
    if study.scale != rubric.scale:
        problem = f"rubric {rubric.version} is graded on {scale_words(rubric.scale)}; leave rubric.scale out"
        yield Problem("rubric.scale", f"{problem} (got {scale_words(study.scale)})")
    probe = study.stability.probe
    judges = [(f"judges.{at}.model", judge.model) for at, judge in enumerate(study.judges)]
    for place, model in (*judges, *([] if probe is None else [("stability.probe.model", probe.model)])):
        if (unknown := dimension_problem(model, rubric.names)) is not None:
            yield Problem(place, unknown)
    if study.oracle and ORACLE_DIMENSION not in rubric.names:
        yield Problem("oracle", f"scores {ORACLE_DIMENSION} alone, which rubric {rubric.version} does not ask for")
    anchor, dimensions = study.anchor_probe, [dimension.name for dimension in rubric.dimensions]
    if anchor is not None and anchor.rubric in rubric_names() and load_rubric(anchor.rubric).scale != rubric.scale:
        yield Problem("anchor_probe.rubric", f"must have the scale of the study's, {scale_words(rubric.scale)}")
    weights = study.rubric.weights
    yield from _unknown("rubric.weights", "dimension", weights or (), dimensions)
    yield from _unknown("claims.dimensions", "dimension", study.claims.dimensions or (), (AGGREGATE, *dimensions))
    yield from _unknown("cells.contaminates", "dimension", study.cells.contaminates or (), (AGGREGATE, *dimensions))
    if weights is not None:
        if missing := ", ".join(name for name in dimensions if name not in weights):
            yield Problem("rubric.weights", f"every dimension needs a weight, 0 allowed (missing: {missing})")
        if not sum(weights.values()) > 0:
            yield Problem("rubric.weights", "at least one weight must be above 0")


def study_text(path: Path) -> str:
    """Return the text of a study file, with the content of the rubric that ``rubric.file`` names."""
    return _inline_rubric(path, "study file", ("rubric", "file"), "text")


def read_study(path: Path) -> Study:
    """Read the study in a file."""
    return parse_study(study_text(path), str(path))


def bench_text(path: Path) -> str:
    """Return the text of a benchmark file, with the content of the rubric whose path is ``rubric``."""
    return _inline_rubric(path, "benchmark file", ("rubric",), "rubric")


def _inline_rubric(path: Path, noun: str, place: Sequence[str], name: str) -> str:
    """Return a plan's text with the rubric file named at ``place`` replaced by its content, under ``name``."""
    text, source = read_text(path, noun), str(path)
    file = _value_at(text, source, place)
    if not isinstance(file, str) or not (name == "text" or file.endswith(".toml")):
        return text
    rubric = read_text(path.parent / file, "rubric")
    judging.parse_rubric(rubric, source=str(path.parent / file))
    plain = "'''" not in rubric and rubric.endswith("\n") and "\r" not in rubric
    literal = f"'''\n{rubric}'''" if plain else json.dumps(rubric, ensure_ascii=False)
    written = rf"\b{place[-1]}\s*=\s*(?:'{re.escape(file)}'|{re.escape(json.dumps(file, ensure_ascii=False))})"
    plan, count = re.subn(written, lambda _: f"{name} = {literal}", text)
    if count != 1 or _value_at(plan, source, (*place[:-1], name)) != rubric:
        raise InputError(source, [Problem(".".join(place), f'write it once, as {place[-1]} = "{file}"')])
    return plan


def _value_at(text: str, source: str, place: Sequence[str]) -> object:
    value: object = read_toml(text, source)
    for key in place:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def planned_decisions(study: Study, cycles: Sequence[cutting.CycleKey]) -> list[rec.Decision]:
    """Return the planned decisions as far as the plan determines them: agent, cycle and cluster."""
    planned = [(key, spec.name, spec.family, rec.Derivation()) for key in cycles for spec in study.agents]
    for kind, count in study.controls.wanted.items():
        for number, key in enumerate(itertools.islice(itertools.cycle(cycles), count), start=1):
            planned.append((key, f"{kind}-{number}", study.controls.family, rec.Derivation(kind)))
    decisions = []
    for key, agent, family, derivation in planned:
        place = DecisionKey(study.name, key.regime, key.number, key.context_id)
        decision = rec.Decision(
            record_id=place.record_id(agent), episode_id=place.episode, step=1, cluster=place.regime,
            decided_at=cutting.NEUTRAL_NOW, context_id=place.context_id, actions=(), rationales=(), format="planned",
            agent=rec.Agent(agent if derivation.kind == "honest" else "control", family),
            provenance=rec.Provenance(source="the plan"), derivation=derivation,
        )  # fmt: skip
        decisions.append(decision)
    return decisions


def unknown_model(name: str, models: Mapping[str, Model] | None) -> str | None:
    """Return why no provider has a model; None if one has, or if ``models`` is None."""
    if isinstance(models, Models):
        return models.problem(name)
    return None if models is None or name in models else str(UnknownNameError("model", name, tuple(models)))


_ArgumentProblems = Callable[[str, Mapping[str, Any]], Iterable[str]]
_ROLES: Final[Mapping[str, tuple[_ArgumentProblems, Callable[[], Iterable[str]], str]]] = {
    "agent": (agent_argument_problems, reference_agents, "cannot decide; built-in models that can"),
    "judge": (argument_problems, tuple, ""),
    "judge of seasons": (
        season_argument_problems, lambda: SEASON_PLANTED, "cannot read whole records; built-in models that can",
    ),
}  # fmt: skip
"""The check of a model's arguments by its role, and the built-in models that can play it, if not all can."""


def model_problems(
    place: str, spec: AgentSpec | JudgeSpec, models: Mapping[str, Model] | None, role: str
) -> Iterator[Problem]:
    """Yield the problems of a model in a role of a plan, each located below ``place``; none for a person."""
    wrong_arguments, built_in, unfit = _ROLES[role]
    model, args = spec.model, spec.args
    if isinstance(spec, JudgeSpec) and spec.human:
        return
    if (unknown := unknown_model(model, models)) is not None:
        yield Problem(f"{place}.model", unknown)
    elif unfit and model.startswith("reference/") and model not in (names := sorted(built_in())):
        yield Problem(f"{place}.model", f"{model} {unfit}: {', '.join(names)}")
    else:
        problems = (*wrong_arguments(model, args), *provider_argument_problems(model, args))
        yield from (Problem(f"{place}.args", problem) for problem in problems)
        for name in ("seed", "temperature", "effort") if role == "agent" and is_outside(model) else ():
            if getattr(spec, name) is not None:
                yield Problem(f"{place}.{name}", "is not sent to an agent of its own; leave it out")


def absent_problems(place: str, agent: AgentSpec, models: Mapping[str, Model] | None) -> Iterator[Problem]:
    """Yield a problem if an external agent is unavailable: no reply at its address, or an import of it that fails."""
    if models is None or not is_outside(agent.model) or unknown_model(agent.model, models) is not None:
        return
    try:
        check_ready(models[agent.model])
    except ModelError as exc:
        yield Problem(f"{place}.model", str(exc))
