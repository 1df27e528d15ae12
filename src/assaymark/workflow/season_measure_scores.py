"""The grades of a season as numbers: composites by agent, judge, trial, period and replicate."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from statistics import fmean, median
from typing import Literal, TypeVar

import numpy as np

from assaymark.errors import LedgerError
from assaymark.judging.season.horizon_replies import ReplyState
from assaymark.judging.season.scores import JudgeScore
from assaymark.metrology.checks import Ints
from assaymark.metrology.measure_agreement import lacking_records
from assaymark.metrology.table import excess_replies, missing_shares
from assaymark.plan import Missing
from assaymark.records import JSON
from assaymark.workflow.season_records import SeasonGrade

K = TypeVar("K")
V = TypeVar("V")

Composites = Mapping[str, Mapping[str, float]]
"""By agent and then judge; a judge without a usable grade is left out."""


@dataclass(frozen=True, slots=True, eq=False)
class SeasonReplies:
    """What each judge was asked about each agent, with and without a usable grade [J, A, 2], and who lacks too much.

    Whole records, periods and replicates count alike; one that some trial graded is not missing. ``left_out`` are the
    judges that lack more than the plan tolerates, with the reason.
    """

    judges: tuple[str, ...]
    agents: tuple[str, ...]
    replies: Ints
    left_out: Mapping[str, str]

    @classmethod
    def of(cls, grades: Iterable[SeasonGrade], agents: Sequence[str], missing: Missing) -> SeasonReplies:
        """Count the grades of some agents.

        Raises
        ------
        LedgerError
            A judge lacks too much, and the plan says to stop.
        """
        usable: dict[tuple[str, str, str, str, int], bool] = {}
        for one in grades:
            if one.agent in agents:
                key = (one.judge, one.agent, one.scope, one.period, one.replicate)
                usable[key] = usable.get(key, False) or one.score.score is not None
        judges = tuple(sorted({key[0] for key in usable}))
        replies = np.zeros((len(judges), len(agents), 2), dtype=np.int64)
        for (judge, agent, *_), ok in usable.items():
            replies[judges.index(judge), agents.index(agent), int(not ok)] += 1
        shares = missing_shares(judges, agents, replies)
        left_out = excess_replies(*shares, per_judge=missing.per_judge, per_agent=missing.per_agent)
        if left_out and missing.on_excess == "stop":
            words = "; ".join(f"judge {judge}: {why}" for judge, why in left_out.items())
            raise LedgerError(f"too many replies are missing: {words}")
        # Where all lack too much it is of some agent, which then has no number; the others keep theirs.
        return cls(judges, tuple(agents), replies, {} if len(left_out) == len(judges) else left_out)

    def of_judge(self, judge: str) -> dict[str, JSON]:
        """What a judge lacks of whom, and why it was left out; empty where nothing is missing."""
        if judge not in self.judges or not self.replies[self.judges.index(judge), :, 1].any():
            return {}
        found = lacking_records(self.agents, self.replies, self.judges.index(judge))
        return {**found, "left_out": self.left_out.get(judge, "")}


@dataclass(frozen=True, slots=True, eq=False)
class SeasonScores:
    """What the judges of a season gave.

    Attributes
    ----------
    agents : tuple of names
        In the order of the season file, also those without a usable grade.
    families : mapping of judge to family
        In alphabetical order of the judges; also judges without a usable grade.
    whole : mapping of agent to judge to scores
        One for each usable trial on the whole record, by trial.
    composites : mapping of agent to judge to composite
        Of whole records, the mean over trials.
    periods : mapping of period to agent to judge to composite
    replicates : mapping of agent to replicate to judge to composite
    states : mapping of (agent, judge) to state
        Of the first whole grade, for those without a usable one; "left out" where the plan leaves the judge out.
    """

    agents: tuple[str, ...]
    families: Mapping[str, str]
    whole: Mapping[str, Mapping[str, Mapping[int, JudgeScore]]]
    composites: Composites
    periods: Mapping[str, Composites]
    replicates: Mapping[str, Mapping[int, Mapping[str, float]]]
    states: Mapping[tuple[str, str], ReplyState | Literal["left out"]]

    @property
    def judges(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(self.families)

    def without(self, agents: Collection[str]) -> SeasonScores:
        """The grades of all other agents: judges agree on an empty record, and that says nothing about them."""
        if not agents:
            return self
        return replace(
            self,
            agents=tuple(one for one in self.agents if one not in agents),
            whole=_but(self.whole, agents),
            composites=_but(self.composites, agents),
            periods={name: _but(row, agents) for name, row in self.periods.items()},
            replicates=_but(self.replicates, agents),
        )

    def axis(self, agent: str, name: str) -> dict[str, float]:
        """What judges gave an agent on an axis of the composite, the mean over trials."""
        points = attrgetter(name)
        return {judge: fmean(map(points, trials.values())) for judge, trials in self.whole[agent].items()}

    def outcomes(self, agent: str) -> dict[str, float]:
        """What judges gave an agent's outcome, the mean over trials that have one."""
        found = {}
        for judge, trials in self.whole[agent].items():
            points = [one.outcome for one in trials.values() if one.outcome is not None]
            if points:
                found[judge] = fmean(points)
        return found

    def gradings(self, agent: str) -> list[float]:
        """The panel's median of one agent's whole record in each trial that all its judges have."""
        mine = self.whole[agent].values()
        common = set.intersection(*(set(trials) for trials in mine)) if mine else set()
        return [median(trials[at].composite for trials in mine) for at in sorted(common)]

    def repeated(self, agent: str) -> list[float]:
        """The panel's median of each replicate that all judges of the agent's replicates have graded."""
        mine = self.replicates.get(agent, {})
        panel = {judge for row in mine.values() for judge in row}
        return [median(row.values()) for _, row in sorted(mine.items()) if set(row) == panel]


def season_scores(grades: Iterable[SeasonGrade], agents: Sequence[str], left_out: Collection[str] = ()) -> SeasonScores:
    """The grades of a season without those of agents that are not among ``agents``, and of the judges ``left_out``."""
    rows = sorted(
        (one for one in grades if one.agent in agents), key=lambda one: (one.judge, one.trial, one.period, one.agent)
    )
    whole: dict[str, dict[str, dict[int, JudgeScore]]] = {agent: defaultdict(dict) for agent in agents}
    periods: dict[str, dict[str, dict[str, list[float]]]] = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    replicates: dict[str, dict[int, dict[str, list[float]]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(list))
    )
    states: dict[tuple[str, str], ReplyState | Literal["left out"]] = {}
    for one in rows:
        score, out = one.score.score, one.judge in left_out
        if one.scope == "whole":
            state = one.score.grades.state
            states.setdefault((one.agent, one.judge), "left out" if out and state == "ok" else state)
        if score is None or out:
            continue
        if one.scope == "whole":
            whole[one.agent][one.judge][one.trial] = score
        elif one.scope == "period":
            periods[one.period][one.agent][one.judge].append(score.composite)
        else:
            replicates[one.agent][one.replicate][one.judge].append(score.composite)
    return SeasonScores(
        agents=tuple(agents),
        families={one.judge: one.family for one in rows},
        whole=whole,
        composites=mean_composites(whole),
        periods={name: _means(periods[name]) for name in sorted(periods)},
        replicates={agent: _means(found) for agent, found in replicates.items()},
        states={key: state for key, state in states.items() if key[1] not in whole[key[0]]},
    )


def mean_composites(whole: Mapping[str, Mapping[str, Mapping[int, JudgeScore]]]) -> Composites:
    """The composite of every agent by every judge, the mean over trials."""
    return {
        agent: {judge: fmean(one.composite for one in trials.values()) for judge, trials in row.items()}
        for agent, row in whole.items()
    }


def _but(rows: Mapping[str, V], agents: Collection[str]) -> dict[str, V]:
    return {agent: row for agent, row in rows.items() if agent not in agents}


def _means(found: Mapping[K, Mapping[str, Collection[float]]]) -> dict[K, dict[str, float]]:
    return {key: {judge: fmean(points) for judge, points in row.items()} for key, row in found.items()}
