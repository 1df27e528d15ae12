"""The judges of a season as instruments: whom they favour, what they like, how they stand alone, what they returned."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean, median

import numpy as np

from assaymark.errors import NotMeasurableError
from assaymark.metrology import SelfPreference, cluster_t, self_preference, wilson
from assaymark.metrology.season_verbosity import season_verbosity
from assaymark.metrology.stability import spearman_columns
from assaymark.plan import ClusterOrder
from assaymark.records import JSON, Measurement
from assaymark.workflow.season_measure_orders import Tokens
from assaymark.workflow.season_measure_scores import SeasonReplies, SeasonScores
from assaymark.workflow.season_measure_table import POINTS, SeasonTotals
from assaymark.workflow.season_records import SeasonGrade, SeasonGuess


def judge_measurements(
    totals: SeasonTotals,
    families: Mapping[str, str],
    tokens: Tokens,
    *,
    level: float,
    order: ClusterOrder = "consecutive",
) -> Iterator[Measurement]:
    """``season.self_preference``, ``.alone`` and ``.verbosity`` of every judge.

    Parameters
    ----------
    families : mapping of agent to family
    order : "consecutive" or "exchangeable"
        Whether periods follow each other in time.
    """
    yield from _preferences(totals.heard, families, level, consecutive=order == "consecutive")
    for judge in totals.scores.judges:
        yield _alone(totals, judge)
        yield _verbosity(totals.heard, judge, tokens, level)


def _preferences(
    scores: SeasonScores, families: Mapping[str, str], level: float, *, consecutive: bool
) -> Iterator[Measurement]:
    """Over the periods of agents that every judge has graded; over whole records where there are too few periods."""
    periods = [(name, agent, row) for name, agents in scores.periods.items() for agent, row in agents.items()]
    over, count = _preferred(periods, scores, families, level, consecutive=consecutive)
    whole, _ = _preferred([("", agent, row) for agent, row in scores.composites.items()], scores, families, level)
    for judge in scores.judges:
        one, once = over.get(judge), whole.get(judge)
        if one is not None and (once is None or one.state in ("ok", "no spread")):
            yield _preference(scores, one, families, periods=count, whole=once)
        elif once is not None:
            yield _preference(scores, once, families)
        else:
            state = "one judge" if len(scores.judges) < 2 else "no agent graded by all judges"
            yield Measurement(
                name="season.self_preference", labels={"judge": judge}, value=None, n=0, n_of="agents of its family",
                method="", state=state,
            )  # fmt: skip


def _preferred(
    rows: Sequence[tuple[str, str, Mapping[str, float]]],
    scores: SeasonScores,
    families: Mapping[str, str],
    level: float,
    *,
    consecutive: bool = False,
) -> tuple[dict[str, SelfPreference], int]:
    """What each judge with a grade gives its own family, over how many periods; rows are (period, agent, composites).

    Without periods the agents are the units.
    """
    judges = [judge for judge in scores.judges if any(judge in row for _, _, row in rows)]
    complete = [one for one in rows if set(judges) <= set(one[2])]
    if len(judges) < 2 or not complete:
        return {}, 0
    periods = [period for period, _, _ in complete]
    found = self_preference(
        [[row[judge] for judge in judges] for _, _, row in complete],
        [families[agent] for _, agent, _ in complete],
        [scores.families[judge] for judge in judges],
        judges=judges,
        level=level,
        clusters=periods if any(periods) else None,
        consecutive=consecutive,
    )
    return {one.judge: one for one in found}, len(set(periods))


def _preference(
    scores: SeasonScores,
    one: SelfPreference,
    families: Mapping[str, str],
    *,
    periods: int = 0,
    whole: SelfPreference | None = None,
) -> Measurement:
    """What one judge gives its own family, over ``n`` periods or agents of its family."""
    mine = sum(families[agent] == scores.families[one.judge] for agent in scores.agents)
    detail: dict[str, JSON] = {
        "own": one.own,
        "others": one.others,
        "n_own": one.n_own,
        "n_others": one.n_others,
        "state": one.state,
    }
    detail |= {"agents": mine} if periods else {}
    detail |= {} if whole is None else {"whole": whole.gap}
    return Measurement(
        name="season.self_preference",
        labels={"judge": one.judge},
        value=one.gap,
        n=periods or one.n_own,
        n_of="periods" if periods else "agents of its family",
        method=one.method,
        state="ok" if one.gap is not None else one.state,
        low=one.low,
        high=one.high,
        level=None if one.low is None else one.level,
        unit=POINTS,
        detail=detail,
    )


def _alone(totals: SeasonTotals, judge: str) -> Measurement:
    """How the order that one judge would make goes with that of the panel, over the agents that it graded."""
    scores = totals.scores
    others = [one for one in scores.judges if one != judge]
    alone = totals.without(others) if others else {}
    agents = sorted(alone)
    places = {name: at for at, name in enumerate(sorted(agents, key=lambda name: (-alone[name], name)), start=1)}
    found = Measurement(
        name="season.alone", labels={"judge": judge}, value=None, n=len(agents), n_of="agents", method="",
        state="one judge",
    )  # fmt: skip
    if not others:
        return found
    found = replace(found, detail={"places": places}, state="fewer than two agents")
    if len(agents) < 2:
        return found
    panel = [totals.row(agent).total or 0.0 for agent in agents]
    (rho,) = spearman_columns(np.array([[alone[agent]] for agent in agents]), np.array(panel)[:, None])
    method = "Spearman's rank correlation of the totals that this judge alone would make with those of the panel"
    state = "ok" if rho is not None else "all totals are equal"
    return replace(found, value=rho, state=state, method=method)


def _verbosity(scores: SeasonScores, judge: str, tokens: Tokens, level: float) -> Measurement:
    """What a judge gives for length beyond what the others give."""
    items = [
        (agent, period, row[judge], median(points for name, points in row.items() if name != judge))
        for period, agents in scores.periods.items()
        for agent, row in agents.items()
        if judge in row and len(row) > 1
    ]
    empty = Measurement(
        name="season.verbosity", labels={"judge": judge}, value=None, n=len(items), n_of="agents' periods", method="",
        state="lengths do not differ",
    )  # fmt: skip
    if not items:
        return replace(empty, state="one judge" if len(scores.judges) < 2 else "not graded")
    spoken = [one for one in items if tokens.get(one[:2], 0) >= 1]
    if not spoken:
        return empty
    agents, periods, own, others = zip(*spoken, strict=True)
    length = [tokens[one[:2]] for one in spoken]
    try:
        found = season_verbosity(own, others, length, agents, periods, level=level)
    except NotMeasurableError:
        return replace(empty, n=len(spoken))
    return replace(
        empty,
        value=found.slope,
        n=found.items,
        state="ok",
        method=found.method,
        low=found.low,
        high=found.high,
        level=None if found.low is None else level,
        unit="points per doubling",
        detail={"periods": found.periods},
    )


# --- blinding ---------------------------------------------------------------------------------------------------------


def probe_measurements(guesses: Iterable[SeasonGuess], *, level: float) -> Iterator[Measurement]:
    """``season.author_probe`` of every judge that was asked: how often it named the author, against chance.

    Guesses at one author hang together: a judge that takes birch for ash does so every week. So the interval is the
    wider one of Wilson's and that over authors, and only where all of it lies above chance a judge can tell.
    """
    rows: dict[str, list[SeasonGuess]] = defaultdict(list)
    for one in guesses:
        rows[one.judge].append(one)
    for judge in sorted(rows):
        yield _probe(judge, rows[judge], level)


def _probe(judge: str, rows: Sequence[SeasonGuess], level: float) -> Measurement:
    usable = [one for one in rows if one.guess is not None]
    right = [one.guess == one.author for one in usable]
    chance = fmean(1 / one.options for one in rows)
    asked = {"asked": len(rows), "guesses": len(usable), "hits": sum(right), "chance": chance}
    if not usable:
        return Measurement(
            name="season.author_probe", labels={"judge": judge}, value=None, n=0, n_of="guesses", method="",
            state="no guess", detail={**asked, "state": "no guess"},
        )  # fmt: skip
    low, high = wilson(sum(right), len(right), level=level)
    over = cluster_t(np.array(right, dtype=float), [one.author for one in usable], level=level)
    if over.low is not None and over.high is not None:
        low, high = max(0.0, min(low, over.low)), min(1.0, max(high, over.high))
    counts, hits = (
        Counter(one.author for one in usable),
        Counter(one.author for one in usable if one.guess == one.author),
    )
    by = {author: [hits[author], counts[author]] for author in sorted(counts)}
    state = "above chance" if low > chance else "not above chance"
    return Measurement(
        name="season.author_probe",
        labels={"judge": judge},
        value=sum(right) / len(right),
        n=len(right),
        n_of="guesses",
        method="share of right guesses; the wider of Wilson's interval and of cluster-t over authors",
        low=low,
        high=high,
        level=level,
        detail={**asked, "state": state, "by": by},
    )


# --- replies ----------------------------------------------------------------------------------------------------------


def reply_measurements(
    grades: Iterable[SeasonGrade], guesses: Iterable[SeasonGuess], replies: SeasonReplies
) -> Iterator[Measurement]:
    """``season.invalid``: the share of a judge's replies that are no answer, with the counts of each kind.

    Where grades are missing, the detail says of whom, and why a judge was left out for it.
    """
    states: dict[str, list[str]] = defaultdict(list)
    for one in grades:
        states[one.judge].append(one.score.grades.state)
        if one.score.outcome is not None:
            states[one.judge].append(one.score.outcome.state)
    for guess in guesses:
        states[guess.judge].append(guess.state)
    for judge in sorted(states):
        counts = Counter(states[judge])
        kinds = {kind: counts[kind] for kind in ("invalid", "refused", "truncated", "failed")}
        n = len(states[judge])
        yield Measurement(
            name="season.invalid", labels={"judge": judge}, value=sum(kinds.values()) / n, n=n, n_of="replies",
            method="share of replies that are no answer in the form that was asked for",
            detail=kinds | replies.of_judge(judge),
        )  # fmt: skip
