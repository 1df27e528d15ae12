"""What is decided about a season: its verdicts, the rows of its table, and what its panel permits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from assaymark.claims.evidence import ABOVE_CHANCE, PROBE, SeasonGates, SeasonIndex
from assaymark.claims.levels import Instruments, agreement_status, instruments_of
from assaymark.claims.messages import Said, said
from assaymark.claims.panel import Adversarial, Agreement
from assaymark.metrology.controls import TOLERANCE
from assaymark.records import AdversarialStatus, Level, Verdict

SeasonClaimKind = Literal["first", "above", "within", "band", "beats"]
"""What a claim says.

``first``: an agent ranks first. ``above``: one agent scores above another. ``within``: two agents score within the
margin of each other. ``band``: the band of an agent's total. ``beats``: an agent earned more than a baseline.
"""


@dataclass(frozen=True, slots=True)
class SeasonVerdict:
    """A verdict, and what it says as sentences that any language can word."""

    kind: SeasonClaimKind
    verdict: Verdict
    statement: Said
    reasons: tuple[Said, ...]
    condition: tuple[Said, ...] = ()
    withheld: Said | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """The ranks that an agent can have, and in a word why its total is shown or not."""

    agent: str
    first: int | None
    last: int | None
    shown: bool
    level: Level
    why: Said


@dataclass(frozen=True, slots=True)
class SeasonVerdicts:
    """All verdicts in the order in which they are read, and the rows of the table."""

    verdicts: tuple[SeasonVerdict, ...]
    tiers: tuple[tuple[str, ...], ...]
    places: tuple[Place, ...]

    def place(self, agent: str) -> Place:
        """The row of an agent."""
        return {one.agent: one for one in self.places}[agent]


SINGLE = "not defined: one judge"
CONSTANT = "not defined: two judges gave one band throughout"
MISSING = "not defined: no period was graded by all judges"


@dataclass(frozen=True, slots=True)
class SeasonPanel:
    """Two of the three statuses of every verdict that rests on grades, with their reasons and conditions by key."""

    agreement: Agreement
    adversarial: Adversarial
    instruments: Instruments
    reasons: tuple[Said, ...]
    conditions: tuple[tuple[str, Said], ...]

    @property
    def closed(self) -> str:
        """Why no claim may rest on the grades, as the last part of a key; empty where one may."""
        if self.agreement.status == "halt":
            return "single" if self.reasons[0].key.endswith(".single") else "halt"
        return "datasheets" if self.instruments.failing and self.instruments.most == "no-claim" else ""


def season_panel(known: SeasonIndex, gates: SeasonGates) -> SeasonPanel:
    """Decide what the panel permits."""
    item, instruments = known.kappa, instruments_of(known.measurements, gates.on_failure)
    ids = () if item is None else (item.id,)
    conditions: list[tuple[str, Said]] = []
    if item is None or item.value is None:
        undefined = {SINGLE: "single", CONSTANT: "constant"}.get("" if item is None else item.state, "missing")
        agreement, reasons = Agreement("halt", None, "", ids), [said(f"claim.reason.agreement.{undefined}")]
    else:
        gated = item.value if gates.kappa == "point" or item.low is None else item.low
        agreed = agreement_status(gated, publish=gates.publish, halt=gates.halt)
        agreement, cut = Agreement(agreed, gated, "", ids), gates.halt if agreed == "halt" else gates.publish
        # Three decimals where two would lift it over a cut-off that it misses.
        lifted = item.value < cut - TOLERANCE and round(item.value, 2) >= cut
        kappa = said(f"claim.kappa.{'three' if lifted else 'two'}", value=item.value)
        ends: Said | str = ""
        if item.low is not None and item.high is not None:
            ends = said("claim.reason.ends", low=item.low, high=item.high)
        reasons = [said(f"claim.reason.agreement.{agreed}", kappa=kappa, ends=ends, cut=cut)]
        conditions += [("agreement", said("claim.condition.weak", kappa=kappa))] if agreed == "methodology" else []
    status: AdversarialStatus = "passed"
    if gates.on_failure is None or not instruments.measurements:
        status = "not tested"
        conditions.append(("controls", said("claim.condition.not_tested")))
    elif not instruments.failing:
        reasons.append(said("claim.reason.datasheets.kept"))
    else:
        sheets = sorted(known.named("datasheet.gate"), key=lambda one: one.id)
        broken = {one.labels["judge"]: "; ".join(map(str, one.detail.get("failed", ()))) for one in sheets if one.value}
        status = "construct-sensitive" if broken else "not tested"
        reasons += [said("claim.reason.datasheets.failed", judge=judge, limits=why) for judge, why in broken.items()]
        reasons += [
            said("claim.reason.datasheets.absent", judge=one.labels["judge"]) for one in sheets if one.value is None
        ]
        conditions.append(("judge-limits", said("claim.condition.datasheets", judges=instruments.failing)))
    seeing = [one for one in known.named(PROBE) if one.detail.get("state") == ABOVE_CHANCE]
    seeing.sort(key=lambda one: one.id)
    if seeing:
        names = tuple(one.labels["judge"] for one in seeing)
        status = "construct-sensitive"
        conditions.append(("controls", said("claim.condition.probe", judges=names, n=len(names))))
    adversarial = Adversarial(status, (), (), tuple(one.id for one in seeing))
    return SeasonPanel(agreement, adversarial, instruments, tuple(reasons), tuple(conditions))
