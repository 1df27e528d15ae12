"""Verdicts on a season's bands, and on returns against a baseline."""

from __future__ import annotations

from collections.abc import Sequence

from assaymark.claims.messages import Said, english, said
from assaymark.claims.season_index import COMPOSITE, EXCESS, SeasonGates, SeasonIndex
from assaymark.claims.season_panel import SeasonPanel
from assaymark.claims.season_types import SeasonVerdict
from assaymark.claims.season_words import claim_of, graded_verdict, judges_words, p_said
from assaymark.metrology.contrasts import holm
from assaymark.records import Level, Measurement, StabilityStatus, Verdict

RETURN = "return"
"""What comparisons with a baseline are about."""


# --- bands ------------------------------------------------------------------------------------------------------------


def band_verdicts(known: SeasonIndex, panel: SeasonPanel, plan_hash: str) -> list[SeasonVerdict]:
    """For every graded agent whether its band may be named.

    It may where all its judges and its total name one band. It is no headline where noise alone reaches a boundary, or
    where nobody knows how far noise reaches.
    """
    return [_band(agent, known, panel, plan_hash) for agent in sorted(known.graded)]


def _band(agent: str, known: SeasonIndex, panel: SeasonPanel, plan_hash: str) -> SeasonVerdict:
    item = known.totals[agent]
    detail = item.detail
    judges = int(detail["judges"])
    agreed = detail["state"] == "agreed" and detail["graded"] == [detail["band"]] * 2
    statement = said(
        "claim.says.band",
        agent=agent,
        band=said(f"claim.band.{detail['band']}"),
        judges=judges_words(judges),
    )
    return graded_verdict(
        "band",
        claim_of("band", statement, (agent,)),
        statement,
        panel,
        plan_hash,
        stability="stable" if agreed else "judge-dependent",
        reasons=(_band_reason(known, agent, agreed=agreed),) if judges > 1 else (),
        rests=(item.id,),
        reserves=_band_reserves(known, agent),
        withheld=said("claim.withheld.band", agent=agent),
    )


def _band_reason(known: SeasonIndex, agent: str, *, agreed: bool) -> Said:
    detail = known.totals[agent].detail
    # The total itself is not named: whether it may be shown is for the orders to say.
    numbers = {name: known.detail(agent, name) for name in ("low", "high", "margin")}
    if agreed:
        reach = detail.get("reach")
        if reach is None:
            return said("claim.reason.band.agreed_unknown", **numbers)
        return said("claim.reason.band.agreed", reach=float(reach), **numbers)
    lowest, highest = detail["graded"]
    if lowest == highest:
        return said("claim.reason.band.efficiency", band=said(f"claim.band.{detail['band']}"), **numbers)
    words = {"lowest": said(f"claim.band.{lowest}"), "highest": said(f"claim.band.{highest}")}
    return said("claim.reason.band.contested", **numbers, **words)


def _band_reserves(known: SeasonIndex, agent: str) -> tuple[Said, ...]:
    """Noise that reaches a boundary or is unknown, and judges that gave no grade."""
    reach, margin = known.totals[agent].detail.get("reach"), known.detail(agent, "margin")
    part = known.lacking(COMPOSITE, [agent])
    missing = (said("claim.condition.part", agents=part),) if part else ()
    if reach is None:
        return (said("claim.condition.band_unknown"), *missing)
    if float(reach) >= margin:
        return (said("claim.condition.band_noise", reach=float(reach), margin=margin), *missing)
    return missing


# --- baselines --------------------------------------------------------------------------------------------------------


def return_verdicts(known: SeasonIndex, gates: SeasonGates, alpha: float, plan_hash: str) -> list[SeasonVerdict]:
    """Which agents earned more than the baseline; those of whom it may not be said together in one verdict.

    Grades play no part here, so agreement and controls are not judged. A season is one path, so none is a headline.
    """
    items = sorted(
        (one for one in known.named(EXCESS) if one.labels["baseline"] == gates.baseline), key=lambda one: one.id
    )
    if not items:
        return []
    adjusted = holm([1.0 if one.value is None else float(one.detail["p"]) for one in items])
    cleared = [
        (one, float(p))
        for one, p in zip(items, adjusted, strict=True)
        if one.value is not None and one.value > 0 and p <= alpha and one.low is not None and one.low > 0
    ]
    chosen = {one.id for one, _ in cleared}
    rest = [one for one in items if one.id not in chosen]
    found = [_beats(one, p, gates, plan_hash) for one, p in cleared]
    return [*found, *([_none_beats(rest, gates.baseline, plan_hash, other=bool(found))] if rest else [])]


def _beats(item: Measurement, p: float, gates: SeasonGates, plan_hash: str) -> SeasonVerdict:
    agent, baseline = item.labels["agent"], gates.baseline
    statement = said("claim.says.beats", agent=agent, baseline=_baseline(baseline))
    reason = said(
        "claim.reason.beats.cleared",
        value=100 * (item.value or 0.0),
        low=100 * (item.low or 0.0),
        high=100 * (item.high or 0.0),
        p=p_said(p),
        whole=100 * float(item.detail["whole"]),
    )
    conditions = (said("claim.condition.path", days=item.n), *gates.hindsight)
    return _fact(
        statement, (agent,), baseline, (reason,), [item.id], plan_hash, level="qualified", conditions=conditions
    )


def _none_beats(items: Sequence[Measurement], baseline: str, plan_hash: str, *, other: bool) -> SeasonVerdict:
    """That no (other) agent can be said to have earned more."""
    key = "beats_other" if other else "beats_any"
    agents = tuple(one.labels["agent"] for one in items)
    tested = [one for one in items if one.value is not None]
    days = max(one.n for one in items)
    reason = (
        said("claim.reason.beats.any", days=days, agents=agents)
        if tested
        else said("claim.reason.beats.no_days", days=days)
    )
    named = _baseline(baseline)
    return _fact(
        said(f"claim.says.{key}", baseline=named),
        agents,
        baseline,
        (reason,),
        [one.id for one in items],
        plan_hash,
        level="no-claim",
        withheld=said(f"claim.withheld.{key}", baseline=named),
    )


def _baseline(name: str) -> Said | str:
    """A baseline in words."""
    key = f"claim.baseline.{name.replace(' ', '_').replace('/', '_')}"
    return said(key) if key in english().texts else name


def _fact(
    statement: Said,
    agents: Sequence[str],
    baseline: str,
    reasons: tuple[Said, ...],
    rests: Sequence[str],
    plan_hash: str,
    *,
    level: Level,
    conditions: tuple[Said, ...] = (),
    withheld: Said | None = None,
) -> SeasonVerdict:
    """A verdict that rests on no grade."""
    claim = claim_of(
        "beats",
        statement,
        agents,
        scope="benchmark",
        dimension=RETURN,
        asserts_order=True,
        labels={"agents": "+".join(agents), "baseline": baseline},
    )
    stability: StabilityStatus = "stable" if level != "no-claim" else "tie-class"
    verdict = Verdict(
        claim=claim,
        agreement_status="not judged",
        stability_status=stability,
        adversarial_status="not judged",
        publication_level=level,
        reasons=tuple(map(english().render, reasons)),
        binding=("score",) if level == "qualified" else ("stability",),
        measurements=tuple(rests),
        plan_hash=plan_hash,
        condition=english().join(conditions) or None,
    )
    return SeasonVerdict("beats", verdict, statement, reasons, conditions, withheld)
