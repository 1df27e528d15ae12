"""Which claims about a season its measurements support: rankings, bands, and returns against a baseline."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from assaymark.claims.messages import said
from assaymark.claims.orders import ranks_of, tiers_of
from assaymark.claims.season_claims import SeasonCase, order_verdicts
from assaymark.claims.season_facts import band_verdicts, return_verdicts
from assaymark.claims.season_index import EXCESS, OUTCOME, SILENT, SeasonGates, season_index
from assaymark.claims.season_types import Place, SeasonVerdict, SeasonVerdicts
from assaymark.claims.season_words import weakest
from assaymark.records import AGGREGATE, Level, Measurement


def decide_season(measurements: Sequence[Measurement], gates: SeasonGates, plan_hash: str) -> SeasonVerdicts:
    """Decide every claim about a season (``docs/scoring.md``, "Claims").

    Parameters
    ----------
    measurements : sequence of Measurement
        Of one season, and ``datasheet.gate`` where its plan demands datasheets. Every agent has a ``season.total``,
        every two graded agents a ``contrast``.
    gates : SeasonGates
        The rules of the locked plan.
    plan_hash : str
        Stamped on every verdict.

    Returns
    -------
    SeasonVerdicts
        First ranks; bands; returns; then every pair, and every pair within the margin, by name. Rows of the table tier
        by tier and in alphabetical order, agents without a total at the end.

    Raises
    ------
    NotMeasurableError
        A measurement is there twice, or a contrast is missing.
    """
    season = season_case(measurements, gates, plan_hash)
    orders = order_verdicts(season)
    verdicts = [
        *(one for one in orders if one.kind == "first"),
        *band_verdicts(season),
        *return_verdicts(season),
        *(one for one in orders if one.kind != "first"),
    ]
    return _placed(season, verdicts)


def season_case(measurements: Sequence[Measurement], gates: SeasonGates, plan_hash: str) -> SeasonCase:
    """The measurements of a season with the rules that decide its claims."""
    known = season_index(measurements)
    with_baseline = any(one.labels["baseline"] == gates.baseline for one in known.named(EXCESS))
    # Orders and comparisons with the baseline are two families of one error rate.
    alpha = gates.alpha / (1 + (with_baseline and len(known.graded) > 1))
    return SeasonCase(known, gates, alpha, plan_hash)


def _placed(season: SeasonCase, verdicts: Sequence[SeasonVerdict]) -> SeasonVerdicts:
    """The verdicts with the tiers and ranks that their orders leave."""
    agents = season.known.orders.agents
    levels = {
        frozenset(one.verdict.claim.subjects): one.verdict.publication_level for one in verdicts if one.kind == "above"
    }
    claimed = [
        (one.verdict.claim.subjects[0], one.verdict.claim.subjects[1])
        for one in verdicts
        if one.kind == "above" and one.verdict.publication_level != "no-claim"
    ]
    tiers, ranks = (tiers_of(agents, claimed), ranks_of(agents, claimed)) if agents else ((), {})
    places = []
    for tier in tiers:
        around = [levels[frozenset((one, other))] for one in tier for other in agents if other not in tier]
        level: Level = weakest(around) if around else "no-claim"
        for agent in tier:
            (first, last), shown = ranks[agent], len(tier) == 1 and level != "no-claim"
            why = said(f"claim.why.{_why(season, tier)}")
            places.append(Place(agent, first, last, shown=shown, level=level, why=why))
    for agent in season.known.ungraded:
        silent = season.known.totals[agent].state == SILENT
        why = said(f"claim.why.{'silent' if silent else 'ungraded'}")
        places.append(Place(agent, None, None, shown=False, level="no-claim", why=why))
    return SeasonVerdicts(tuple(verdicts), tiers, tuple(places))


def _why(season: SeasonCase, tier: Sequence[str]) -> str:
    """The note of a row, as the last part of a key."""
    if closed := season.panel.closed:
        return closed
    if len(season.known.graded) == 1:
        return "only"
    if len(tier) == 1:
        return "ranked_outcome" if season.known.lacking(OUTCOME, tier) else "ranked"
    inside = [season.orders.pair(AGGREGATE, *pair).row for pair in combinations(tier, 2)]
    if not any(row.testable for row in inside):
        return "periods"
    return "unknown" if all(row.unresolved == "noise-unknown" for row in inside) else "tier"
