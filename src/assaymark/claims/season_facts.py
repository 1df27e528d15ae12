"""Verdicts on a season's bands, and on returns against a baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from assaymark.claims.biases import Finding
from assaymark.claims.fields import Fields
from assaymark.claims.messages import Said, english, said
from assaymark.claims.season_claims import SeasonCase, flagged_texts, hindsight, missing_replies, reserve
from assaymark.claims.season_index import COMPOSITE, EXCESS, SeasonGates, SeasonIndex
from assaymark.claims.season_panel import season_panel
from assaymark.claims.season_types import SeasonVerdict
from assaymark.claims.season_words import claim_of, judges_words, p_said, season_verdict
from assaymark.claims.standing import Evidence
from assaymark.metrology.contrasts import holm
from assaymark.records import Claim, Level, Measurement

RETURN = "return"
"""What comparisons with a baseline are about."""


# --- bands ------------------------------------------------------------------------------------------------------------


def band_verdicts(season: SeasonCase) -> list[SeasonVerdict]:
    """For every graded agent whether its band may be named.

    It may where all its judges and its total name one band. It is no headline where noise alone reaches a boundary, or
    where the noise is unknown.
    """
    return [_band(season, agent) for agent in sorted(season.known.graded)]


def _band(season: SeasonCase, agent: str) -> SeasonVerdict:
    known, panel = season.known, season.panel
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
    claim = claim_of("band", statement, (agent,))
    fields = _band_fields(season, claim, season.gates, agreed=agreed)
    own = (_band_reason(known, agent, agreed=agreed),) if judges > 1 else ()
    conditions = [*panel.conditions] if fields.level == "qualified" else []
    return season_verdict(
        "band",
        fields,
        statement,
        season.plan_hash,
        reasons=(*panel.reasons, *own) if not panel.claimable and agreed else (*own, *panel.reasons),
        conditions=[*conditions, *(one.values["said"] for one in fields.findings)],
        withheld=said("claim.withheld.band", agent=agent),
        fragility={
            name: _band_fields(season, claim, gates, agreed=agreed).level for name, gates, _ in season.variants("band")
        },
    )


def _band_fields(season: SeasonCase, claim: Claim, gates: SeasonGates, *, agreed: bool) -> Fields:
    (agent,) = claim.subjects
    panel = season.panel if gates is season.gates else season_panel(season.known, gates)
    evidence = Evidence("stable" if agreed else "judge-dependent", "", (season.known.totals[agent].id,))
    known = season.known
    findings = (
        *_band_reserves(known, agent),
        *missing_replies(known, gates),
        *flagged_texts(known, [agent]),
        *hindsight(gates),
    )
    return Fields(claim, panel.agreement, evidence, panel.adversarial, panel.instruments, findings, gates.preregistered)


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


def _band_reserves(known: SeasonIndex, agent: str) -> list[Finding]:
    """Noise that reaches a boundary or is unknown, and judges that gave no grade."""
    reach, margin = known.totals[agent].detail.get("reach"), known.detail(agent, "margin")
    part = known.lacking(COMPOSITE, [agent])
    missing = [reserve("missing-replies", said("claim.condition.part", agents=part))] if part else []
    if reach is None:
        return [reserve("noise", said("claim.condition.band_unknown")), *missing]
    if float(reach) >= margin:
        return [reserve("noise", said("claim.condition.band_noise", reach=float(reach), margin=margin)), *missing]
    return missing


# --- baselines --------------------------------------------------------------------------------------------------------


def return_verdicts(season: SeasonCase) -> list[SeasonVerdict]:
    """Which agents earned more than the baseline; all others together in one verdict.

    Grades play no part here, so agreement and controls are not judged. A season is one path, so none is a headline.
    """
    gates, alpha = season.gates, season.alpha
    items = sorted(
        (one for one in season.known.named(EXCESS) if one.labels["baseline"] == gates.baseline), key=lambda one: one.id
    )
    if not items:
        return []
    cleared = _cleared(items, alpha)
    others = {
        "an error rate that rankings do not share": _cleared(items, gates.alpha),
        "half of the error rate": _cleared(items, alpha / 2),
    }
    rest = [one for one in items if one.id not in cleared]
    found = [_beats(season, one, cleared[one.id], _levels([one], others)) for one in items if one.id in cleared]
    return [*found, *([_none_beats(season, rest, _levels(rest, others), other=bool(found))] if rest else [])]


def _cleared(items: Sequence[Measurement], alpha: float) -> dict[str, float]:
    """The differences from a baseline that are above 0 after Holm over all of them, with their adjusted p-values."""
    adjusted = holm([1.0 if one.value is None else float(one.detail["p"]) for one in items])
    return {
        one.id: float(p)
        for one, p in zip(items, adjusted, strict=True)
        if one.value is not None and one.value > 0 and p <= alpha and one.low is not None and one.low > 0
    }


def _levels(items: Sequence[Measurement], others: Mapping[str, Mapping[str, float]]) -> dict[str, Level]:
    """The level of "one of these earned more" under other rules; it is never a headline."""
    return {
        name: "qualified" if any(one.id in cleared for one in items) else "no-claim" for name, cleared in others.items()
    }


def _beats(season: SeasonCase, item: Measurement, p: float, fragility: Mapping[str, Level]) -> SeasonVerdict:
    agent, baseline = item.labels["agent"], season.gates.baseline
    reason = said(
        "claim.reason.beats.cleared",
        value=100 * (item.value or 0.0),
        low=100 * (item.low or 0.0),
        high=100 * (item.high or 0.0),
        p=p_said(p),
        whole=100 * float(item.detail["whole"]),
    )
    path = reserve("one-path", said("claim.condition.path", days=item.n))
    findings = (path, *hindsight(season.gates))
    statement = said("claim.says.beats", agent=agent, baseline=_baseline(baseline))
    return _fact(season, statement, (agent,), reason, [item.id], findings, withheld=statement, fragility=fragility)


def _none_beats(
    season: SeasonCase, items: Sequence[Measurement], fragility: Mapping[str, Level], *, other: bool
) -> SeasonVerdict:
    """That no (other) agent can be said to have earned more."""
    key = "beats_other" if other else "beats_any"
    agents = tuple(one.labels["agent"] for one in items)
    days = max(one.n for one in items)
    reason = said("claim.reason.beats.no_days", days=days)
    if any(one.value is not None for one in items):
        reason = said("claim.reason.beats.any", days=days, agents=agents)
    baseline = _baseline(season.gates.baseline)
    statement, withheld = (said(f"claim.{part}.{key}", baseline=baseline) for part in ("says", "withheld"))
    rests = [one.id for one in items]
    return _fact(season, statement, agents, reason, rests, (), withheld=withheld, fragility=fragility)


def _baseline(name: str) -> Said | str:
    """A baseline in words."""
    key = f"claim.baseline.{name.replace(' ', '_').replace('/', '_')}"
    return said(key) if key in english().texts else name


def _fact(
    season: SeasonCase,
    statement: Said,
    agents: Sequence[str],
    reason: Said,
    rests: Sequence[str],
    findings: Sequence[Finding],
    *,
    withheld: Said,
    fragility: Mapping[str, Level],
) -> SeasonVerdict:
    """A verdict that rests on no grade; without a finding it is not supported."""
    claim = claim_of(
        "beats",
        statement,
        agents,
        scope="benchmark",
        dimension=RETURN,
        asserts_order=True,
        labels={"agents": "+".join(agents), "baseline": season.gates.baseline},
    )
    evidence = Evidence("stable" if findings else "tie-class", "", tuple(rests))
    fields = Fields.unjudged(claim, evidence, findings, preregistered=season.gates.preregistered)
    conditions = [one.values["said"] for one in findings]
    return season_verdict(
        "beats", fields, statement, season.plan_hash, reasons=(reason,), conditions=conditions, withheld=withheld,
        fragility=fragility,
    )  # fmt: skip
