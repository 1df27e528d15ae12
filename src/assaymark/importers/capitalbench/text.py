"""The texts of a submission as rationales: the agent's own by kind, the arena's apart, each stored once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from assaymark.importers.capitalbench.shapes import (
    Assessment,
    Candidate,
    Holding,
    OptionSubmission,
    Submission,
    WeightsV1,
    WeightsV2,
    WeightsV3,
)
from assaymark.records import Rationale, RationaleKind


def rationales_of(submission: Submission) -> tuple[Rationale, ...]:
    """The texts in the order a judge reads them, then those that are ledgered only, then the arena's.

    Summary, portfolio rationale, key risks and candidates are judged. Reasons for single holdings follow (kind
    ``holding``): they are checked against the facts and not judged. What the arena wrote is kind ``arena``. A text
    that repeats one before it is left out: in v3 the summary is the agent's market rationale, and a v2 holding mostly
    repeats the catalyst of its candidate.
    """
    found: list[Rationale] = []
    seen: set[str] = set()
    for kind, text in _texts(submission):
        if text.strip() and text not in seen:
            seen.add(text)
            found.append(Rationale(text=text, kind=kind))
    return tuple(found)


def _texts(submission: Submission) -> Iterator[tuple[RationaleKind, str]]:
    yield "summary", submission.rationale_summary
    if isinstance(submission, WeightsV3):
        yield "summary", submission.metadata.portfolio_v3.market_rationale
    if not isinstance(submission, OptionSubmission):
        yield "portfolio", _portfolio_rationale(submission)
    for risk in submission.key_risks:
        yield "risk", risk
    if isinstance(submission, WeightsV2):
        yield from (("candidate", candidate_text(one)) for one in submission.candidate_ledger)
    if isinstance(submission, WeightsV3):
        yield from (
            ("candidate", assessment_text(one)) for one in submission.metadata.portfolio_v3.candidate_assessments
        )
        yield from (("arena", _line(one.option_id, one.rationale)) for one in submission.portfolio)
    elif isinstance(submission, (WeightsV1, WeightsV2)):
        ledger = submission.candidate_ledger if isinstance(submission, WeightsV2) else []
        yield from (("holding", holding_text(one, ledger)) for one in submission.portfolio)


def _portfolio_rationale(submission: Submission) -> str:
    return submission.portfolio_rationale if isinstance(submission, (WeightsV1, WeightsV2, WeightsV3)) else ""


def candidate_text(one: Candidate) -> str:
    """The texts of a row of the v2 candidate ledger. Its forecasts are fields, not text, and stay in ``stages``.

    >>> print(candidate_text(Candidate(option_id="GOLD", decision="rejected", evidence=["IAU fell 2.1%."],
    ...     continuation_case="Real yields rise.", reversal_case="They fall.", time_window_catalyst="CPI on July 14",
    ...     invalidation_condition="A close above 80",
    ...     forecast_low_pct=-3, forecast_base_pct=0.5, forecast_high_pct=2)))
    GOLD (rejected)
    Evidence: IAU fell 2.1%.
    Continuation case: Real yields rise.
    Reversal case: They fall.
    Catalyst: CPI on July 14
    Invalidation: A close above 80
    """
    return _block(
        f"{one.option_id} ({one.decision})",
        *(("Evidence", line) for line in one.evidence),
        ("Continuation case", one.continuation_case),
        ("Reversal case", one.reversal_case),
        ("Catalyst", one.time_window_catalyst),
        ("Invalidation", one.invalidation_condition),
    )


def assessment_text(one: Assessment) -> str:
    """The texts of a v3 candidate assessment. Its chances and ranges are fields and stay in ``stages``, and the lanes
    it came from are the arena's.

    >>> print(assessment_text(Assessment(option_id="SOLAR", rank=4, mechanism="no_edge", origin_lanes=["wildcard"],
    ...     recent_return_interpretation="fundamental_deterioration", evidence=["TAN lost 6.4%."], p_beat_spy_pct=41,
    ...     p_top3_pct=8, excess_return_p10_pct=-6.8, excess_return_p50_pct=-0.5, excess_return_p90_pct=5.2)))
    SOLAR (rank 4)
    Evidence: TAN lost 6.4%.
    Mechanism: no edge
    Recent return read as: fundamental deterioration
    """
    return _block(
        f"{one.option_id} (rank {one.rank})",
        *(("Evidence", line) for line in one.evidence),
        ("Mechanism", one.mechanism.replace("_", " ")),
        ("Recent return read as", one.recent_return_interpretation.replace("_", " ")),
    )


def holding_text(one: Holding, ledger: Iterable[Candidate]) -> str:
    """Why an option is held, after the option's name so that its numbers have a subject."""
    said = {
        text
        for candidate in ledger
        if candidate.option_id == one.option_id
        for text in (candidate.time_window_catalyst, candidate.invalidation_condition)
    }
    return _block(
        _line(one.option_id, one.rationale),
        *(
            (title, text)
            for title, text in (("Catalyst", one.time_window_catalyst), ("Invalidation", one.invalidation_condition))
            if text not in said
        ),
    )


def _line(subject: str, text: str) -> str:
    return f"{subject}: {text}" if text.strip() else ""


def _block(head: str, *parts: tuple[str, str]) -> str:
    return "\n".join(filter(None, [head, *(f"{title}: {text}" for title, text in parts if text.strip())]))
