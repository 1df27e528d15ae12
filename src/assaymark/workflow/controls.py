"""`assaymark controls`: control texts for imported records, made from the records themselves before they are judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from assaymark.agents.controls import CONTROL, cell_decisions
from assaymark.errors import InputError, PlanError, Problem, UnknownNameError
from assaymark.notebook import Note, Part, Result
from assaymark.plan import toml_text
from assaymark.records import Decision, DerivationKind
from assaymark.text import clean
from assaymark.workflow.amend import asking_begun
from assaymark.workflow.lock import Locked, check_plan, open_locked, write_plan
from assaymark.workflow.progress import Progress, silent
from assaymark.workflow.run_folder import Amendment, RunFolder, changed_fields, record_amendment, require_version_2
from assaymark.workflow.tables import CONTEXTS, DECISIONS, Store

KINDS: Final[tuple[DerivationKind, ...]] = ("cell_a", "cell_b", "fact_flip")
"""Verbose and wrong, terse and right, and one number changed: what needs no words from anybody."""

_SHOWN: Final = 4  # reasons that are said


@dataclass(frozen=True, slots=True, repr=False)
class MadeControls(Result):
    """How many control texts were added, of each kind, and why others could not be made: reason to sources."""

    made: Mapping[DerivationKind, int]
    wanted: int
    sources: Mapping[DerivationKind, int]
    reasons: Mapping[DerivationKind, Mapping[str, int]]
    amendment: Amendment | None = None

    def _parts(self) -> Iterator[Part]:
        yield from (Note(clean(line)) for line in self.lines())

    def lines(self) -> Iterator[str]:
        """What `assaymark controls` prints."""
        for kind, count in self.made.items():
            of = "records" if kind == "fact_flip" else "contexts"
            yield f"{kind}: {count} of {self.wanted} made, from {self.sources[kind]} {of}"
            reasons = sorted(self.reasons[kind].items(), key=lambda one: (-one[1], one[0]))
            yield from (f"  {count} {of} gave none: {why}" for why, count in reasons[:_SHOWN])
            if len(reasons) > _SHOWN:
                yield f"  and {len(reasons) - _SHOWN} more reasons"
        there = [kind for kind, count in self.made.items() if count]
        if self.amendment is not None:
            yield f"amendment {self.amendment.number}: {self.amendment.reason}"
        elif there:
            names = ", ".join(f'"{kind}"' for kind in ("honest", *there))
            yield f"have them judged: [records] derivations = [{names}] in the study, then lock it"


def make_controls(
    folder: RunFolder, *, now: datetime, count: int = 30, kinds: Sequence[str] = KINDS, seed: int = 0,
    family: str = CONTROL, style: str = "plain", progress: Progress = silent,
) -> MadeControls:  # fmt: skip
    """Add control texts to the imported records of a run, of which no judge was asked yet.

    Cells A and B are made from what agents were shown, fact flips from honest records: where there is a book with
    prices and limits, features of instruments, and numbers that the material holds, so that what is wrong is known to
    be wrong. A plan that is locked is amended: its derivations name them from then on.
    """
    folder.require()
    require_version_2(folder)
    wanted = _kinds(kinds)
    if count < 1:
        raise InputError("--count", [Problem("", f"must be at least 1 (got {count})")])
    locked, store = open_locked(folder) if folder.lock.is_file() else None, Store(folder)
    if locked is not None and locked.study.substrate is not None:
        raise PlanError(f"{folder.path} makes its own records; its plan asks for controls with [controls]")
    if asking_begun(folder):
        raise PlanError(f"{folder.path}: judges were asked already; controls come before judging, in a new run folder")
    decisions = list(store.read(DECISIONS))
    if sum(one.agent.id == CONTROL for one in decisions):
        raise PlanError(f"{folder.path} has controls already; import the records into a new run folder for others")
    honest = [one for one in decisions if one.derivation.kind == "honest"]
    used = {one.context_id: one.cluster for one in sorted(honest, key=lambda one: one.record_id)}
    material = [(name, context, used[name]) for name, context in store.each_context() if name in used]
    found, sources, reasons = list(decisions), dict[DerivationKind, int](), dict[DerivationKind, dict[str, int]]()
    made: dict[DerivationKind, int] = {}
    for at, kind in enumerate(wanted):
        progress("making controls", at, len(wanted))
        why: dict[str, str] = {}
        cells = cell_decisions(
            material, kind=kind, count=count, seed=seed, family=family, style=style, honest=honest, reasons=why
        )
        found += cells
        made[kind], sources[kind] = len(cells), len(honest) if kind == "fact_flip" else len(material)
        reasons[kind] = dict(Counter(filter(None, why.values())))
    progress("making controls", len(wanted), len(wanted))
    if len(found) == len(decisions):
        said = "; ".join(f"{kind}: {max(one, key=one.__getitem__)}" for kind, one in reasons.items() if one)
        raise InputError(str(folder.path), [Problem("", f"no control could be made from these records ({said})")])
    amendment = None
    if locked is None:
        _write(store, found)
    else:
        amendment = _amended(folder, locked, found, [kind for kind, one in made.items() if one], now=now)
    return MadeControls(made, count, sources, reasons, amendment)


def _kinds(kinds: Sequence[str]) -> list[DerivationKind]:
    if unknown := [name for name in kinds if name not in KINDS]:
        raise UnknownNameError("kind of control", unknown[0], KINDS)
    return [kind for kind in KINDS if kind in kinds]


def _write(store: Store, found: Sequence[Decision]) -> None:
    store.write(DECISIONS, found, {"contexts": store.content(CONTEXTS), "controls": "assaymark controls"})


def _amended(
    folder: RunFolder, locked: Locked, found: Sequence[Decision], kinds: Sequence[DerivationKind], *, now: datetime
) -> Amendment:
    """Write the records of a locked plan, and the plan that names the new ones."""
    records = locked.study.records
    derivations = tuple(dict.fromkeys((*records.derivations, *kinds)))
    study = locked.study.model_copy(update={"records": records.model_copy(update={"derivations": derivations})})
    text = toml_text(study.model_dump(mode="json", exclude_none=True))
    _write(Store(folder), found)
    checked = check_plan(folder, study, str(folder.plan), None)
    digests = record_amendment(
        folder, locked.amendments, now=now, reason="controls made from the records: " + ", ".join(kinds),
        fields=changed_fields(locked.study, study), before=locked.plan_hash, after=(checked.plan_hash, text),
    )  # fmt: skip
    write_plan(
        folder, text, checked, locked_at=locked.locked_at, amendments=digests, probes=locked.date_probes,
        preregistered=locked.preregistered,
    )  # fmt: skip
    return open_locked(folder).amendments[-1]
