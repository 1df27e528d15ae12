"""The constraint-arithmetic oracle on the records of a run: its scores, and what of them counts as known quality."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from assaymark.judging import asked_alike, oracle_scores
from assaymark.metrology.oracle import ORACLE_DIMENSION
from assaymark.records import Decision
from assaymark.workflow.locking import Locked
from assaymark.workflow.tables import DECISIONS, Store


def scored_by_oracle(store: Store, locked: Locked) -> dict[str, int]:
    """The oracle's score of constraint awareness of every selected record that is made of orders, by record id.

    For `oracle_measurements`. Every control cell of the plan is scored like the honest records. The oracle reads the
    prompt that the judges are shown. Empty where no record is made of orders on a portfolio with prices.

    Raises
    ------
    LedgerError
        The records are not there.
    """
    decisions: Sequence[Decision] = store.read(DECISIONS)
    return oracle_scores(decisions, store.each_context(), locked.study)


def oracle_known(
    locked: Locked, scores: Mapping[str, float], known: Mapping[str, Mapping[str, float]]
) -> dict[str, Mapping[str, float]]:
    """Known scores by record with the oracle's among them, for `known_measurements`.

    The oracle's scores count as known quality only under a rubric that words constraint awareness as the oracle scores
    it (v1.1, constraints-1.0): under other anchors a judge may differ from it and make no error. What a record's own
    construction fixes goes before.

    Parameters
    ----------
    locked : Locked
        For the rubric.
    scores : mapping of record id to score
        From `scored_by_oracle`.
    known : mapping of record id to {dimension or "aggregate": score}
        From the construction of control records.
    """
    found = (
        {name: {ORACLE_DIMENSION: float(score)} for name, score in scores.items()} if asked_alike(locked.rubric) else {}
    )
    return {name: {**found.get(name, {}), **known.get(name, {})} for name in {**found, **known}}
