"""The judgments of a run as tables of scores: the honest records, and each control cell beside them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from assaymark.errors import LedgerError
from assaymark.judging import judged_text, token_count
from assaymark.metrology import Cell, ScoreTable, averaging, gated, score_table
from assaymark.records import Decision, Judgment
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

        def table(decisions: Sequence[Decision]) -> ScoreTable:
            lengths = {one.record_id: token_count(judged_text(one)) for one in decisions}
            graded = (judgment for one in decisions for judgment in judgments.get(one.record_id, ()))
            return score_table(graded, decisions, weights=study.rubric.weights, lengths=lengths)

        whole = honest = table(selection.honest)
        missing = study.missing
        left_out = honest.excess(per_judge=missing.per_judge, per_agent=missing.per_agent)
        if left_out:
            words = "; ".join(f"judge {judge}: {why}" for judge, why in left_out.items())
            if missing.on_excess == "stop" or len(left_out) == len(honest.judges):
                raise LedgerError(f"too many replies are missing: {words}")
            kept = {name: [one for one in found if one.judge not in left_out] for name, found in judgments.items()}
            judgments = {name: found for name, found in kept.items() if found}
            honest = table(selection.honest)
        # Whose trials may be averaged is found on honest records: inside a cell they hardly differ.
        averaged = averaging(honest, study)
        cells = []
        for kind in study.cells_judged:
            by_id = {one.record_id: one for one in selection.cell(kind)}
            scores = gated(table(selection.cell(kind)), study, averaged)
            parents = tuple(by_id[name].derivation.parent for name in scores.trajectories)
            composers = tuple(by_id[name].agent.family for name in scores.trajectories)
            cells.append(Cell(kind=kind, table=scores, parents=parents, composers=composers))
        return cls(selection, judgments, gated(honest, study, averaged), tuple(cells), whole, left_out)


def honest_table(store: Store, locked: Locked) -> ScoreTable:
    """The scores of the honest records of a judged run."""
    return Scores.of(store, locked).honest
