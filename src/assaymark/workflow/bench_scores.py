"""Every number of a benchmark run as rows of its table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from assaymark.benchmark.stages import STAGES, EpisodeResult, StageState
from assaymark.records import Score
from assaymark.workflow.bench_episodes import Episode
from assaymark.workflow.bench_plan import LockedBench


def pipeline_scores(locked: LockedBench, episodes: Sequence[Episode]) -> Iterator[Score]:
    """S1 to S5, CEPS and PAS of every date, by the plan's convention and by the other one."""
    for one in episodes:
        yield from _of(one.result, locked.plan.convention)
        yield from _of(one.other, locked.other)


def _of(result: EpisodeResult, convention: str) -> Iterator[Score]:
    labels = {"profile": result.profile, "window": result.window}
    for date in result.dates:
        states: dict[str, StageState] = {str(stage): state for stage, state in date.answers.states.items()}
        values: dict[str, float] = {
            **{str(stage): date.scores[stage] for stage in STAGES},
            "CEPS": date.ceps,
            "PAS": date.pas,
        }
        for name, value in values.items():
            state = states.get(name, StageState("ok"))
            yield Score(
                about=f"{result.model}/{result.profile}/{result.window}/{date.day}",
                agent=result.model,
                cluster=f"{result.window}/{date.day}",
                name=name,
                value=float(value),
                convention=convention,
                state=state.state,
                labels=labels,
            )
