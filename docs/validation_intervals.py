"""Coverage of the intervals that pages print: one function for each kind of interval."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
from scipy import special
from validation_worlds import FAMILIES, Drawn, Floats, World, decide

from assaymark.metrology import (
    CellAgreement,
    alpha_report,
    anchor_contrast,
    cell_agreement,
    cluster_t,
    discriminant,
    jackknife_kappa,
    krippendorff_alpha,
    length_adjusted,
    length_recused,
    mean_pairwise_kappa,
    order_analysis,
    own_family,
    random_judges,
    rank_intervals,
    recusal_contrast,
    recusal_p,
    serial_contrasts,
)
from assaymark.metrology.contrasts import pairs_of
from assaymark.metrology.measure_panel import categories_of

Ends = tuple[float | None, float | None]
Draws = Callable[[World, int], Iterator[Drawn]]

LEVEL = 0.95
GAP = 0.3
SHIFT = -0.8


@dataclass(frozen=True)
class Kind:
    """A kind of interval: the world it is tried in, its ends in one study, what is true, and the fewest clusters."""

    world: World
    ends: Callable[[Drawn, int], Ends]
    truth: float | Callable[[World], float]
    fewest: int = 5

    def count(self, clusters: int, studies: int, draws: Draws) -> dict[str, int]:
        """In how many studies there is an interval, and in how many it contains what is true."""
        truth = self.truth(self.world) if callable(self.truth) else self.truth
        made = covered = 0
        for drawn in draws(replace(self.world, clusters=clusters), studies):
            for b in range(len(drawn.scores)):
                low, high = self.ends(drawn, b)
                if low is not None and high is not None:
                    made += 1
                    covered += low <= truth <= high
        return {"made": made, "covered": covered}


def ranks(clusters: int, studies: int, draws: Draws) -> dict[str, int]:
    """In how many studies the rank intervals of all agents contain the true ranks."""
    world = World(agents=6, clusters=clusters, levels=(0.8, 0.8, 0.4, 0.2, 0.0, 0.0))
    first, second = pairs_of(world.agents)
    truth = [1 + sum(other > level for other in world.levels) for level in world.levels]
    covered = 0
    for drawn in draws(world, studies):
        found = decide(drawn)
        for said, gap in zip(found.stable[:, 0], found.gap[:, 0], strict=True):
            high, low = np.where(gap > 0, first, second)[said], np.where(gap > 0, second, first)[said]
            given = rank_intervals(zip(high.tolist(), low.tolist(), strict=True), world.agents)
            covered += all(best <= rank <= worst for (best, worst), rank in zip(given, truth, strict=True))
    return {"made": studies, "covered": covered}


# --- contrasts --------------------------------------------------------------------------------------------------------


def _difference(drawn: Drawn, b: int) -> Ends:
    tests = order_analysis({"aggregate": drawn.means[b, 0].mean(axis=1)}).scales["aggregate"]
    return tests[0, 1].interval(LEVEL) or (None, None)


def _in_time(drawn: Drawn, b: int) -> Ends:
    return _student(serial_contrasts(drawn.means[b, 0].mean(axis=1))[0, 1], "gap")


def _recused(drawn: Drawn, b: int) -> Ends:
    return _student(recusal_p(drawn.means[b, 0], drawn.world.kin)[0, 1], "difference")


def _recused_alone(drawn: Drawn, b: int) -> Ends:
    return _ends(recusal_contrast(drawn.means[b, 0], drawn.world.kin, 0, 1))


def _equal_length(drawn: Drawn, b: int) -> Ends:
    scores = np.ascontiguousarray(drawn.scores[b, ..., 0].transpose(0, 2, 1))
    return _ends(length_recused(scores, drawn.words[b], drawn.world.cluster, drawn.world.kin, 0, 1))


def _slope(drawn: Drawn, b: int) -> Ends:
    panel = drawn.scores[b, ..., 0].mean(axis=2)
    return _ends(length_adjusted(panel, drawn.words[b], drawn.world.cluster, 0, 1).slopes[0])


def _other_judges(drawn: Drawn, b: int) -> Ends:
    means = drawn.means[b, 0]
    return _ends(random_judges((means[:, :, 0] - means[:, :, 1]).T))


def _people(drawn: Drawn, b: int) -> Ends:
    """The third judge is people, who graded every other cycle; the two others favour an agent of their own."""
    scores = drawn.scores[b, ..., 0]
    grades = scores[:, :, 2].copy()
    grades[1::2] = np.nan
    return _ends(anchor_contrast(scores[:, :, :2].mean(axis=2), grades, drawn.world.cluster, 0, 3))


# --- judges, dimensions, control texts --------------------------------------------------------------------------------


def _own_common(drawn: Drawn, b: int) -> Ends:
    return _ends(own_family(drawn.means[b, 0], drawn.world.kin).common)


def _own_judge(drawn: Drawn, b: int) -> Ends:
    found = own_family(drawn.means[b, 0], drawn.world.kin).by_judge
    return _ends(found[0] if found else None)


def _kappa(drawn: Drawn, b: int) -> Ends:
    return _ends(jackknife_kappa(_ratings(drawn, b), _clusters(drawn)))


def _alpha(drawn: Drawn, b: int) -> Ends:
    return _ends(alpha_report(_ratings(drawn, b), _clusters(drawn)).alpha)


def _phi(drawn: Drawn, b: int) -> Ends:
    return _ends(discriminant(_records(drawn, b)[..., 1:], _clusters(drawn)).dimensions[0])


def _terse(drawn: Drawn, b: int) -> Ends:
    """Control texts, those of the last agent, against the honest mean of their cluster."""
    cluster, panel = drawn.world.cluster, drawn.scores[b, ..., 0].mean(axis=2)
    honest = drawn.means[b, 0, :, :, :-1].mean(axis=(1, 2))
    return _ends(cluster_t(panel[:, -1] - honest[cluster], cluster))


def _wrong(drawn: Drawn, b: int) -> Ends:
    """Control texts against the first quartile of honest ones."""
    panel = drawn.scores[b, ..., 0].mean(axis=2)
    return _ends(cluster_t(panel[:, -1] - np.quantile(panel[:, :-1], 0.25), drawn.world.cluster))


def _terse_families(drawn: Drawn, b: int) -> Ends:
    """The mean of the judge families."""
    return _student(_shifts(drawn, b, None).panel, "delta")


def _wrong_family(drawn: Drawn, b: int) -> Ends:
    """One judge family, held against its own quartile."""
    return _student(_shifts(drawn, b, 0.25).each[FAMILIES[0]], "delta")


def _shifts(drawn: Drawn, b: int, quantile: float | None) -> CellAgreement:
    world, scores = drawn.world, drawn.scores[b, ..., 0]
    honest, where = scores[:, :-1].reshape(-1, len(FAMILIES)), np.repeat(world.cluster, world.agents - 1)
    return cell_agreement(scores[:, -1], world.cluster, honest, where, FAMILIES, quantile=quantile)


# --- from records to ends, and what is true ---------------------------------------------------------------------------


def _ends(record: Any) -> Ends:
    return (None, None) if record is None else (record.low, record.high)


def _student(record: Any, name: str) -> Ends:
    """Student's interval of a record that has no ends of its own."""
    estimate = getattr(record, name)
    if estimate is None or record.se is None or not record.df:
        return None, None
    half = float(special.stdtrit(record.df, 0.5 + LEVEL / 2)) * record.se
    return estimate - half, estimate + half


def _records(drawn: Drawn, b: int) -> Floats:
    """Scores [N * K, J, S] of single texts."""
    return np.asarray(drawn.scores[b].reshape(-1, *drawn.scores.shape[3:]))


def _ratings(drawn: Drawn, b: int) -> Any:
    return categories_of(_records(drawn, b)[..., 0])


def _clusters(drawn: Drawn) -> Any:
    return np.repeat(drawn.world.cluster, drawn.world.agents)


@cache
def _many(world: World) -> Drawn:
    """One study of very many clusters."""
    return replace(world, clusters=20_000).draw(1, np.random.default_rng(99))


def _gap_of(world: World) -> float:
    means = _many(world).means.mean(axis=(0, 1, 2, 3))
    return float(means[0] - means[1])


def _kappa_of(world: World) -> float:
    return mean_pairwise_kappa(_ratings(_many(world), 0))


def _alpha_of(world: World) -> float:
    return krippendorff_alpha(_ratings(_many(world), 0)) or 0.0


def _phi_of(world: World) -> float:
    drawn = _many(world)
    return discriminant(_records(drawn, 0)[..., 1:], _clusters(drawn)).dimensions[0].phi or 0.0


def _quartile_of(world: World, judges: slice = slice(None)) -> float:
    scores = _many(world).scores[0, :, :, judges, 0].mean(axis=2)
    return float(scores[:, -1].mean() - np.quantile(scores[:, :-1], 0.25))


_CONFLICTED = World(levels=(GAP,), agent_families=("north", "south", "east", "west"), own=0.5)
_LONGER = replace(_CONFLICTED, slope=0.25, longer=(1.0, 0.6, 0.3, 0.0))
_GRADED = World(levels=(0.6, GAP), grades=True, judge_sd=0.4)
_CONTROLS = World(agents=5, levels=(0.0, 0.0, 0.0, 0.0, SHIFT))

KINDS: Mapping[str, Kind] = {
    "difference of two agents": Kind(World(levels=(GAP,)), _difference, GAP),
    "the same at the top of the scale, whole grades": Kind(
        World(levels=(GAP,), grades=True, centre=4.4), _difference, _gap_of
    ),
    "the same of the two most erratic of four agents": Kind(
        World(levels=(GAP,), spread=(2.5, 1.4, 0.7, 0.4)), _difference, GAP
    ),
    "the same over weeks, correlated by .5": Kind(World(levels=(GAP,), rho=(0.5,) * 4), _in_time, GAP, 12),
    "difference with judges standing aside": Kind(_CONFLICTED, _recused, GAP),
    "the same by t over clusters": Kind(_CONFLICTED, _recused_alone, GAP),
    "difference at equal length": Kind(_LONGER, _equal_length, GAP),
    "slope on length": Kind(_LONGER, _slope, 0.25),
    "difference with judges as a sample": Kind(World(levels=(GAP,), taste=0.2), _other_judges, GAP),
    "difference as people see it": Kind(replace(_CONFLICTED, cycles=12), _people, GAP),
    "own family, all judges": Kind(_CONFLICTED, _own_common, 0.5),
    "own family, one judge": Kind(_CONFLICTED, _own_judge, 0.5),
    "kappa": Kind(_GRADED, _kappa, _kappa_of),
    "Krippendorff's alpha": Kind(_GRADED, _alpha, _alpha_of),
    "phi of a dimension": Kind(World(levels=(0.6, GAP), on=(1.0, 0.6, 0.3)), _phi, _phi_of),
    "terse texts against honest ones": Kind(_CONTROLS, _terse, SHIFT),
    "the same, mean of judge families": Kind(_CONTROLS, _terse_families, SHIFT),
    "wrong texts against the honest first quartile": Kind(_CONTROLS, _wrong, _quartile_of),
    "the same, one judge family": Kind(_CONTROLS, _wrong_family, partial(_quartile_of, judges=slice(1))),
}
