"""What may be said of a season: orders, classes, agents without a place, bands, and returns against a baseline."""

from __future__ import annotations

from collections.abc import Sequence

from assaymark.claims.messages import said
from assaymark.claims.season_claims import SeasonCase, order_verdicts, pair_verdicts
from assaymark.claims.season_facts import band_verdicts, return_verdicts
from assaymark.claims.season_index import EXCESS, OUTCOME, SeasonGates, season_index
from assaymark.claims.season_orders import season_order
from assaymark.claims.season_panel import season_panel
from assaymark.claims.season_types import Place, SeasonVerdict, SeasonVerdicts
from assaymark.claims.season_words import worst
from assaymark.records import Level, Measurement


def decide_season(measurements: Sequence[Measurement], gates: SeasonGates, plan_hash: str) -> SeasonVerdicts:
    """Put every claim about a season to its rule (``docs/scoring.md``, "What may be said").

    Parameters
    ----------
    measurements : sequence of Measurement
        ``season.*`` measurements of one season, and ``datasheet.gate`` where its plan demands datasheets. Every agent
        has a ``season.total``, every two graded agents a ``season.contrast``.
    gates : SeasonGates
        Error rate and cut-offs of the locked plan.
    plan_hash : str
        Stamped on every verdict.

    Returns
    -------
    SeasonVerdicts
        Boundaries, classes, agents without a place; bands; returns; then every pair by name. Places by falling total
        as far as that is claimed, classes in alphabetical order, agents without a place at the end.

    Raises
    ------
    NotMeasurableError
        A measurement is there twice, or a contrast is missing.
    """
    known = season_index(measurements)
    panel = season_panel(known, gates)
    with_baseline = any(one.labels["baseline"] == gates.baseline for one in known.named(EXCESS))
    # Orders and comparisons with the baseline are two families of one error rate.
    alpha = gates.alpha / (1 + (with_baseline and len(known.graded) > 1))
    season = SeasonCase(known, panel, season_order(known, alpha, claimable=panel.claimable), plan_hash)
    orders = order_verdicts(season)
    verdicts = [
        *orders,
        *band_verdicts(known, panel, plan_hash),
        *return_verdicts(known, gates, alpha, plan_hash),
        *pair_verdicts(season),
    ]
    return SeasonVerdicts(tuple(verdicts), season.order.groups, tuple(_places(season, orders)))


def _places(season: SeasonCase, orders: Sequence[SeasonVerdict]) -> list[Place]:
    """Where every agent stands: placed ones from high to low, then those without a place."""
    placed = [_place(season, group, agent, orders) for group in season.order.groups for agent in group]
    unplaced = [_nowhere(agent, "unplaced") for agent in sorted(season.order.unplaced)]
    return [*placed, *unplaced, *(_nowhere(agent, "ungraded") for agent in season.known.ungraded)]


def _nowhere(agent: str, why: str) -> Place:
    return Place(agent, None, None, shown=False, level="no-claim", why=said(f"claim.why.{why}"))


def _place(season: SeasonCase, group: Sequence[str], agent: str, orders: Sequence[SeasonVerdict]) -> Place:
    """The place of an agent that has one; its total is shown where it stands alone and that may be claimed."""
    first, last = season.order.places(group)
    mine = [one for one in orders if one.kind in ("cut", "tie") and agent in one.verdict.claim.subjects]
    decisive = [one for one in mine if one.kind == "tie"] or mine
    level: Level = worst(one.verdict.publication_level for one in decisive) if decisive else "no-claim"
    shown = bool(decisive) and len(group) == 1 and first == last and level != "no-claim"
    return Place(
        agent, first, last, shown=shown, level=level, why=said(f"claim.why.{_why(season, group, first, last)}")
    )


def _why(season: SeasonCase, group: Sequence[str], first: int, last: int) -> str:
    """The note of a row, as the last part of a key."""
    if closed := season.panel.closed:
        return closed
    if len(group) > 1:
        unknown = all(pair.state == "noise_unknown" for pair in season.order.inside(group))
        return "unknown" if unknown else "class"
    if len(season.known.graded) == 1:
        return "only"
    if first != last:
        return "beside"
    return "apart_outcome" if season.known.lacking(OUTCOME, group) else "apart"
