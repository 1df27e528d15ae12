"""`assaymark lock`: fix the plan, and everything it depends on, before a judge is called."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import datetime
from itertools import combinations
from typing import Any, Final

import numpy as np

from assaymark import __version__
from assaymark.agents.prompts import agent_texts
from assaymark.display import Heading, Note, Part, Result
from assaymark.engine import Model
from assaymark.errors import LedgerError, PlanError
from assaymark.judging import PARSER, Rubric, load_rubric, plan_texts
from assaymark.metrology import Preflight, preflight
from assaymark.protocol import Study, parse_study, plan_hash
from assaymark.records import JSON, Decision, to_json
from assaymark.typography import clean
from assaymark.workflow.amendments import Amendment, read_amendments
from assaymark.workflow.date_probes import probe_dates
from assaymark.workflow.folder import (
    RunFolder,
    check_lock,
    new_folder,
    read_lock,
    read_text,
    write_atomic,
    write_lock,
)
from assaymark.workflow.planned import planned_decisions
from assaymark.workflow.progress import Progress, silent
from assaymark.workflow.selection import Selection, checked_rubric, select
from assaymark.workflow.substrates import prepare
from assaymark.workflow.tables import CONTEXTS, CYCLES, DECISIONS, HUMAN, Store, Table

FORMAT: Final = "assaymark lock 2"
_FIRST: Final = "1"
"""The parser of locks that name none."""


@dataclass(frozen=True, slots=True, repr=False)
class Locked(Result):
    """A locked plan, checked against the records and texts it was locked on.

    ``preregistered`` is false where the rules of version 2 came after scores had been seen. ``parser`` is the version
    of the parser that judges' replies are read by.
    """

    study: Study
    rubric: Rubric
    plan_hash: str
    locked_at: str
    preflight: Mapping[str, JSON]
    amendments: tuple[Amendment, ...] = ()
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
        """The plan fields that were changed after the lock, sorted; a change of the rules' version is not among them.

        That one says by `preregistered` whether scores had been seen.
        """
        return tuple(sorted({name for one in self.amendments if not one.of_rules for name in one.fields}))


def lock(
    folder: RunFolder,
    study_text: str,
    source: str,
    *,
    now: datetime,
    models: Mapping[str, Model] | None = None,
    first: Callable[[Study], object] | None = None,
    progress: Progress = silent,
) -> Locked:
    """Lock a study on the records of a run folder: validate, run the preflight, fingerprint.

    A study that makes its own records has its cycles cut here and is locked on them, before any agent is asked, if they
    pass the date probes. Locking the same plan again changes nothing. No lock is written unless everything holds. With
    ``models``, agents and judges whose model nobody provides are refused here, not after the lock. ``first`` is called
    with a study that is about to be locked; if it raises, a folder that was made for the cycles is gone again.

    Raises
    ------
    InputError
        The study file is wrong by itself, or names things that the records do not have; every problem at once.
    PlanError
        Another plan is locked here already, or this one can never reject anything.
    """
    if folder.lock.is_file():
        stored_lock(folder)  # what is locked here may be no study, or of version 1
    study = parse_study(study_text, source=source)
    with new_folder(folder.path) if study.substrate is not None else nullcontext():
        prepare(folder, study, progress=progress)
        folder.require()
        checked = check_plan(folder, study, source, models)
        if folder.lock.is_file():
            return _same_plan(folder, checked.plan_hash, source)
        if first is not None:
            first(study)
    probes = [to_json(one) | {"passed": one.passed} for one in probe_dates(folder, study, models, progress=progress)]
    write_plan(folder, study_text, checked, locked_at=to_json(now), amendments=(), probes=probes)
    return open_locked(folder)


@dataclass(frozen=True, slots=True)
class Checked:
    """A plan that holds on the records of a run folder: its hash, what it can conclude, and the tables it is about."""

    plan_hash: str
    preflight: Preflight
    tables: Mapping[str, str]


def check_plan(
    folder: RunFolder, study: Study, source: str, models: Mapping[str, Model] | None, *, refuse_hopeless: bool = True
) -> Checked:
    """Validate a study against the records of a run folder, and run the preflight.

    Raises
    ------
    InputError
        The plan names things that the records do not have; every problem at once.
    PlanError
        It can never reject anything, and ``refuse_hopeless``.
    """
    store = Store(folder)
    decisions = store.read(DECISIONS) if study.substrate is None else planned_decisions(study, store.read(CYCLES))
    selection = select(decisions, study)
    graders = {one.judge for one in store.read(HUMAN)} if store.digest(HUMAN) else set()
    rubric = checked_rubric(study, source, decisions, selection, models, sorted(graders))
    report = _preflight(study, selection, rubric)
    if refuse_hopeless and report.can_never_reject and not study.inference.allow_hopeless:
        raise PlanError(f"{source}: {_hopeless(report, study)}")
    return Checked(plan_hash(study, texts_of(study), locked_tables(study, store)), report, locked_tables(study, store))


def write_plan(
    folder: RunFolder,
    study_text: str,
    checked: Checked,
    *,
    locked_at: JSON,
    amendments: Sequence[str],
    probes: Sequence[JSON] = (),
    preregistered: bool = True,
) -> None:
    """Write the plan, then the lock that names it and says what the date probes found."""
    write_atomic(folder.plan, study_text)
    lock = study_lock(checked, locked_at=locked_at, probes=probes)
    write_lock(folder, {**lock, "amendments": list(amendments), "preregistered": preregistered})


def study_lock(checked: Checked, *, locked_at: JSON, probes: Sequence[JSON] = ()) -> dict[str, JSON]:
    """The lock of a study that was not amended."""
    return {
        "format": FORMAT,
        "software": f"assaymark {__version__}",
        "plan_hash": checked.plan_hash,
        "locked_at": locked_at,
        "tables": dict(checked.tables),
        "preflight": to_json(checked.preflight),
        "date_probes": list(probes),
        "amendments": [],
        "preregistered": True,
        "parser": PARSER,
    }


def open_locked(folder: RunFolder) -> Locked:
    """The locked plan of a run folder.

    Raises
    ------
    PlanError
        There is no lock, or the plan, a text it uses, or the records changed after it: says which.
    """
    folder.require()
    if not folder.lock.is_file():
        raise PlanError(f"{folder.path} has no locked plan; run: assaymark lock STUDY --out {folder.path}")
    stored = stored_lock(folder)
    study = parse_study(read_text(folder.plan, "plan"), source=str(folder.plan))
    store = Store(folder)
    if (tables := locked_tables(study, store)) != stored["tables"]:
        changed = sorted(name for name in tables if tables[name] != stored["tables"].get(name))
        raise PlanError(f"{folder.path}: {' and '.join(changed)} changed after the lock; lock a new run folder on them")
    fingerprint = plan_hash(study, texts_of(study), tables)
    if fingerprint != stored["plan_hash"]:
        raise PlanError(
            f"{folder.plan} was edited after the lock (plan hash {fingerprint[:12]}..., locked "
            f"{str(stored['plan_hash'])[:12]}...), or the rubric and prompts of this version differ; restore the plan, "
            "or lock it in a new run folder"
        )
    made = read_amendments(folder, stored.get("amendments", []))
    probes = tuple(stored.get("date_probes", ()))
    return Locked(
        study,
        load_rubric(study.rubric.name),
        fingerprint,
        stored["locked_at"],
        stored["preflight"],
        made,
        probes,
        stored.get("preregistered", True),
        stored.get("parser", _FIRST),
    )


def stored_lock(folder: RunFolder) -> Mapping[str, JSON]:
    """The lock of a study as it was written, before anything in it is checked."""
    stored = read_lock(folder)
    if str(stored.get("format")).startswith("assaymark benchmark"):
        raise PlanError(f"{folder.path} holds a benchmark; use: assaymark bench, or assaymark report {folder.path}")
    if str(stored.get("format")).startswith("assaymark season"):
        raise PlanError(f"{folder.path} holds a season; use: assaymark season")
    if stored.get("format") != FORMAT:
        raise LedgerError(f"{folder.lock} is damaged, or of another version: it does not say {FORMAT!r}")
    check_lock(folder, stored)
    return stored


def _same_plan(folder: RunFolder, fingerprint: str, source: str) -> Locked:
    locked = open_locked(folder)
    if locked.plan_hash != fingerprint:
        raise PlanError(
            f"{source} differs from the plan locked in {folder.path} (plan hash {fingerprint[:12]}..., locked "
            f"{locked.plan_hash[:12]}...); a locked plan is not changed in silence: use another --out, or say why it "
            f"changes: assaymark amend {source} --out {folder.path} --reason WHY"
        )
    return locked


def texts_of(study: Study) -> dict[str, str]:
    """Every text that a study uses, by name: its rubrics, and what judges and agents are told."""
    texts = plan_texts(load_rubric(study.rubric.name))
    if study.anchor_probe is not None:
        texts |= plan_texts(load_rubric(study.anchor_probe.rubric))
    if study.agents:
        texts |= agent_texts()
    return texts


def locked_tables(study: Study, store: Store) -> dict[str, str]:
    """What the plan is locked on: the records, and the grades of people if it has any.

    A study that makes its own records is locked on its cycles alone: its decisions are made under the plan.
    """
    people = any(judge.human for judge in study.judges)
    wanted: list[Table[Any]] = [CONTEXTS] if study.substrate else [CONTEXTS, DECISIONS]
    if people:
        wanted.append(HUMAN)
    return {table.name: store.content(table) or "absent" for table in wanted}


def _preflight(study: Study, selection: Selection, rubric: Rubric) -> Preflight:
    """What the locked tests can conclude on these records."""
    agents = sorted({decision.agent.id for decision in selection.honest})
    clusters: list[int] = []
    cycles: list[int] = []
    for one, other in combinations(agents, 2):
        common = _common(selection.honest, one, other)
        cycles.append(len(common))
        clusters.append(len(set(common.values())))
    return preflight(
        study,
        len(agents),
        len(rubric.dimensions),
        np.array(clusters, dtype=int),
        np.array(cycles, dtype=int),
        agent_families={decision.agent.id: decision.agent.family for decision in selection.honest},
        clusters=sorted({decision.cluster for decision in selection.honest}),
    )


def _hopeless(report: Preflight, study: Study) -> str:
    """Why a design can conclude nothing, and what to do."""
    return (
        f"with this design no ranking can reach significance at alpha {study.inference.alpha}: "
        f"{'; '.join(report.warnings)}. Use more clusters, or set inference.allow_hopeless = true to lock it anyway"
    )


def _common(decisions: Sequence[Decision], one: str, other: str) -> dict[str, str]:
    """The cycles in which both agents decided, each with its cluster."""
    met: dict[str, set[str]] = {}
    where = {}
    for decision in decisions:
        if decision.agent.id in (one, other):
            met.setdefault(decision.cycle, set()).add(decision.agent.id)
            where[decision.cycle] = decision.cluster
    return {cycle: where[cycle] for cycle, agents in met.items() if len(agents) == 2}


def lock_lines(locked: Locked) -> list[str]:
    """What `assaymark lock` prints: the fingerprint and what the design can conclude."""
    report = locked.preflight
    test = {"moderated-t": "moderated cluster t", "own-variance": "cluster t with each pair's own variance"}
    return [
        f"plan hash {locked.plan_hash}",
        f"locked {locked.locked_at}",
        f"test: {test[str(report['test'])]} over {report['clusters']} clusters (median of the pairs of agents)",
        *_reach_lines(report),
        *(_probe_line(one) for one in locked.date_probes),
        *(f"warning: {text}" for text in report["warnings"]),
    ]


def _reach_lines(report: Mapping[str, JSON]) -> Iterator[str]:
    """The smallest gaps that the design finds, and what a conflict of interest or fewer clusters cost."""
    names = (
        ("reach", "smallest detectable gap"),
        ("reach_borrowed", "at best, where the agents' variances are alike"),
        ("reach_half", "with half the clusters"),
    )
    for name, words in names:
        found = report[name]
        if found is None or (name == "reach_borrowed" and found == report["reach"]):
            continue
        alike = found["leader"] == found["pair"]
        told = "" if alike else f" for a leader, {found['pair']:.2f} for a single pair"
        yield f"{words}: {found['leader']:.2f} points{told}"
    if report["conflicted"]:
        yield (
            f"{report['conflicted']} pairs have a judge from the maker of one of the two: their order has to hold "
            "without it"
        )


def _probe_line(found: Mapping[str, JSON]) -> str:
    """What a date probe found."""
    verdict = "PASS" if found["passed"] else "FAIL"
    return (
        f"{found['probe']} date probe {verdict}: dated {found['hits']} of {found['asked']} sanitised cycles, "
        f"{found['control_hits']} of {found['control_asked']} unsanitised ones"
    )
