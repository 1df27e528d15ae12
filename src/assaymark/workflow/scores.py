"""The judgments of a run as tables of scores: the honest records, and each control cell beside them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from assaymark.errors import LedgerError
from assaymark.judging import judged_text, token_count
from assaymark.metrology import Cell, ScoreTable, averaging, gated, score_table
from assaymark.protocol import Study
from assaymark.records import Decision, DerivationKind, Judgment
from assaymark.workflow.tables import DECISIONS, JUDGMENTS
from assaymark.workflow.track import Selection, select

if TYPE_CHECKING:
    from assaymark.workflow.lock import Locked
    from assaymark.workflow.tables import Store


@dataclass(frozen=True, slots=True)
class Scores:
    """What a run's judges gave: judgments by trajectory, the honest records as a table, the control cells."""

    selection: Selection
    judgments: Mapping[str, list[Judgment]]
    honest: ScoreTable
    cells: tuple[Cell, ...]
    whole: ScoreTable
    left_out: Mapping[str, str]

    @classmethod
    def of(cls, store: Store, locked: Locked) -> Scores:
        """Read and arrange the judgments of a run."""
        study = locked.study
        selection = select(store.read(DECISIONS), study)
        judgments: Mapping[str, list[Judgment]] = defaultdict(list)
        for one in store.read(JUDGMENTS):
            judgments[one.trajectory].append(one)
        whole = honest = _table(selection.honest, judgments, study)
        missing = study.missing
        left_out = honest.excess(per_judge=missing.per_judge, per_agent=missing.per_agent)
        if left_out:
            words = "; ".join(f"judge {judge}: {why}" for judge, why in left_out.items())
            if missing.on_excess == "stop" or len(left_out) == len(honest.judges):
                raise LedgerError(f"too many replies are missing: {words}")
            judgments = {
                name: kept
                for name, found in judgments.items()
                if (kept := [one for one in found if one.judge not in left_out])
            }
            honest = _table(selection.honest, judgments, study)
        # Whose trials may be averaged is found on honest records: inside a cell they hardly differ.
        decided = averaging(honest, study)
        cells = tuple(_cell(kind, selection.cell(kind), judgments, study, decided) for kind in study.cells_judged)
        return cls(selection, judgments, gated(honest, study, decided), cells, whole, left_out)


def honest_table(store: Store, locked: Locked) -> ScoreTable:
    """The scores of the honest records of a judged run."""
    return Scores.of(store, locked).honest


def _table(decisions: Sequence[Decision], judgments: Mapping[str, list[Judgment]], study: Study) -> ScoreTable:
    """The scores of some decisions, with the length of each text as it was judged."""
    lengths = {one.record_id: token_count(judged_text(one)) for one in decisions}
    graded = (judgment for one in decisions for judgment in judgments.get(one.record_id, ()))
    return score_table(graded, decisions, weights=study.rubric.weights, lengths=lengths)


def _cell(
    kind: DerivationKind,
    decisions: Sequence[Decision],
    judgments: Mapping[str, list[Judgment]],
    study: Study,
    averaged: Mapping[str, bool],
) -> Cell:
    table = gated(_table(decisions, judgments, study), study, averaged)
    by_id = {one.record_id: one for one in decisions}
    return Cell(
        kind=kind,
        table=table,
        parents=tuple(by_id[name].derivation.parent for name in table.trajectories),
        composers=tuple(by_id[name].agent.family for name in table.trajectories),
    )
