"""What the panel of a season permits: its agreement, its datasheets, and whether it was blind."""

from __future__ import annotations

from dataclasses import dataclass

from assaymark.claims.evidence import ABOVE_CHANCE, PROBE, SeasonGates, SeasonIndex
from assaymark.claims.levels import Instruments, agreement_status, instruments_of
from assaymark.claims.messages import Said, said
from assaymark.claims.panel import Adversarial, Agreement
from assaymark.metrology.controls import TOLERANCE
from assaymark.records import AdversarialStatus

SINGLE = "not defined: one judge"
CONSTANT = "not defined: two judges gave one band throughout"
MISSING = "not defined: no period was graded by all judges"

_UNDEFINED = {SINGLE: "single", CONSTANT: "constant", MISSING: "missing"}


@dataclass(frozen=True, slots=True)
class SeasonPanel:
    """Two of the three statuses of every verdict that rests on grades, with their reasons and conditions by key."""

    agreement: Agreement
    adversarial: Adversarial
    instruments: Instruments
    reasons: tuple[Said, ...]
    conditions: tuple[tuple[str, Said], ...]

    @property
    def claimable(self) -> bool:
        """Whether any claim may rest on the grades."""
        stopped = self.instruments.failing and self.instruments.most == "no-claim"
        return self.agreement.status != "halt" and not stopped

    @property
    def closed(self) -> str:
        """Why no claim may rest on the grades, as the last part of a key; empty where one may."""
        if self.claimable:
            return ""
        if self.agreement.status != "halt":
            return "datasheets"
        return "single" if self.reasons[0].key.endswith(".single") else "halt"


def season_panel(known: SeasonIndex, gates: SeasonGates) -> SeasonPanel:
    """Decide what the panel permits."""
    agreement, reason, weak = _agreement(known, gates)
    instruments = instruments_of(known.measurements, gates.on_failure)
    adversarial, more, conditions = _adversarial(known, gates, instruments)
    return SeasonPanel(agreement, adversarial, instruments, (reason, *more), (*weak, *conditions))


def _agreement(known: SeasonIndex, gates: SeasonGates) -> tuple[Agreement, Said, tuple[tuple[str, Said], ...]]:
    """The agreement, why, and the condition of a weak one."""
    item = known.kappa
    ids = () if item is None else (item.id,)
    if item is None or item.value is None:
        state = MISSING if item is None else item.state
        reason = said(f"claim.reason.agreement.{_UNDEFINED.get(state, 'missing')}")
        return Agreement("halt", None, "", ids), reason, ()
    gated = item.value if gates.kappa == "point" or item.low is None else item.low
    status = agreement_status(gated, publish=gates.publish, halt=gates.halt)
    cut = gates.halt if status == "halt" else gates.publish
    kappa = _shown(item.value, cut)
    ends: Said | str = ""
    if item.low is not None and item.high is not None:
        ends = said("claim.reason.ends", low=item.low, high=item.high)
    reason = said(f"claim.reason.agreement.{status}", kappa=kappa, ends=ends, cut=cut)
    weak = (("agreement", said("claim.condition.weak", kappa=kappa)),) if status == "methodology" else ()
    return Agreement(status, gated, "", ids), reason, weak


def _shown(kappa: float, cut: float) -> Said:
    """A kappa as it is printed: with a third decimal where two would lift it over a cut-off that it misses."""
    lifted = kappa < cut - TOLERANCE and round(kappa, 2) >= cut
    return said(f"claim.kappa.{'three' if lifted else 'two'}", value=kappa)


def _adversarial(
    known: SeasonIndex, gates: SeasonGates, instruments: Instruments
) -> tuple[Adversarial, tuple[Said, ...], tuple[tuple[str, Said], ...]]:
    """The status with the measurements of blinding that it rests on, its reasons, and its conditions."""
    sheets = sorted((one for one in known.measurements if one.name == "datasheet.gate"), key=lambda one: one.id)
    reasons: list[Said] = []
    conditions: list[tuple[str, Said]] = []
    status: AdversarialStatus = "passed"
    if gates.on_failure is None or not sheets:
        status = "not tested"
        conditions.append(("controls", said("claim.condition.not_tested")))
    elif not instruments.failing:
        reasons.append(said("claim.reason.datasheets.kept"))
    else:
        broken = [one for one in sheets if one.value]
        absent = [one for one in sheets if one.value is None]
        status = "construct-sensitive" if broken else "not tested"
        reasons += [_broken(one.labels["judge"], one.detail.get("failed", ())) for one in broken]
        reasons += [said("claim.reason.datasheets.absent", judge=one.labels["judge"]) for one in absent]
        conditions.append(("judge-limits", said("claim.condition.datasheets", judges=instruments.failing)))
    seeing = sorted(
        (one for one in known.named(PROBE) if one.detail.get("state") == ABOVE_CHANCE), key=lambda one: one.id
    )
    if seeing:
        names = tuple(one.labels["judge"] for one in seeing)
        status = "construct-sensitive"
        conditions.append(("controls", said("claim.condition.probe", judges=names, n=len(names))))
    return Adversarial(status, (), (), tuple(one.id for one in seeing)), tuple(reasons), tuple(conditions)


def _broken(judge: str, limits: object) -> Said:
    """The limits that a judge breaks, in the words of its datasheet."""
    words = "; ".join(map(str, limits)) if isinstance(limits, (list, tuple)) else str(limits)
    return said("claim.reason.datasheets.failed", judge=judge, limits=words)
