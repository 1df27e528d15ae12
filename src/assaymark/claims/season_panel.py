"""What the panel of a season permits: its agreement, its datasheets, and whether it was blind."""

from __future__ import annotations

from dataclasses import dataclass

from assaymark.claims.gates import agreement_status, publication_level
from assaymark.claims.instruments import Instruments, instruments_of
from assaymark.claims.messages import Said, said
from assaymark.claims.season_index import ABOVE_CHANCE, PROBE, SeasonGates, SeasonIndex
from assaymark.metrology.cell_rules import TOLERANCE
from assaymark.records import AdversarialStatus, AgreementStatus, Level, StabilityStatus

SINGLE = "not defined: one judge"
CONSTANT = "not defined: two judges gave one band throughout"
MISSING = "not defined: no period was graded by all judges"

_UNDEFINED = {SINGLE: "single", CONSTANT: "constant", MISSING: "missing"}


@dataclass(frozen=True, slots=True)
class SeasonPanel:
    """Two of the three fields of every verdict that rests on grades, with their reasons and conditions.

    ``conditions`` have to be said with a qualified claim; the first of ``reasons`` is about agreement. With any of
    ``reserves`` no claim is a headline.
    """

    agreement: AgreementStatus
    adversarial: AdversarialStatus
    instruments: Instruments
    reasons: tuple[Said, ...]
    conditions: tuple[Said, ...]
    measurements: tuple[str, ...]
    reserves: tuple[Said, ...] = ()

    def level(self, stability: StabilityStatus, *, asserts_order: bool) -> Level:
        """The level of a claim of that stability, capped by what the datasheets permit."""
        found = publication_level(self.agreement, stability, self.adversarial, asserts_order=asserts_order)
        return self.instruments.capped(found)

    @property
    def claimable(self) -> bool:
        """Whether an order may be claimed at all."""
        return self.level("stable", asserts_order=True) != "no-claim"

    @property
    def closed(self) -> str:
        """Why no claim may rest on the grades, as the last part of a key; empty where one may."""
        if self.claimable:
            return ""
        if self.agreement != "halt":
            return "datasheets"
        return "single" if self.reasons[0].key.endswith(".single") else "halt"

    def binding(self, level: Level) -> tuple[str, ...]:
        """Which of its fields keep a claim from the next better level."""
        failing = bool(self.instruments.failing)
        if level == "headline":
            return ()
        if level == "no-claim":
            names = {"agreement": self.agreement == "halt", "datasheets": failing and not self.claimable}
        else:
            names = {
                "agreement": self.agreement == "methodology",
                "adversarial": self.adversarial != "passed",
                "datasheets": failing,
            }
        return tuple(name for name, bound in names.items() if bound)


def season_panel(known: SeasonIndex, gates: SeasonGates) -> SeasonPanel:
    """What the panel permits.

    Agreement is kappa on bands (`season.kappa`) against the plan's cut-offs. The construct is *passed* where datasheets
    are demanded and every judge keeps its limits, *construct-sensitive* where a judge breaks one or can tell who wrote
    a record, and else *not tested*: a season grades no control texts.
    """
    agreement, told, weak = _agreement(known, gates)
    instruments = instruments_of(known.measurements, gates.on_failure)
    adversarial, more, conditions, probes = _adversarial(known, gates, instruments)
    kappa = () if known.kappa is None else (known.kappa.id,)
    return SeasonPanel(
        agreement=agreement,
        adversarial=adversarial,
        instruments=instruments,
        reasons=(told, *more),
        conditions=(*weak, *conditions),
        measurements=(*kappa, *instruments.measurements, *probes),
        reserves=gates.hindsight,
    )


def _agreement(known: SeasonIndex, gates: SeasonGates) -> tuple[AgreementStatus, Said, tuple[Said, ...]]:
    """The status, why, and what a weak agreement asks to be said."""
    item = known.kappa
    if item is None or item.value is None:
        state = MISSING if item is None else item.state
        return "halt", said(f"claim.reason.agreement.{_UNDEFINED.get(state, 'missing')}"), ()
    status = agreement_status(item.value, publish=gates.publish, halt=gates.halt)
    cut = gates.halt if status == "halt" else gates.publish
    kappa = _shown(item.value, cut)
    ends: Said | str = ""
    if item.low is not None and item.high is not None:
        ends = said("claim.reason.ends", low=item.low, high=item.high)
    reason = said(f"claim.reason.agreement.{status}", kappa=kappa, ends=ends, cut=cut)
    return status, reason, (said("claim.condition.weak", kappa=kappa),) if status == "methodology" else ()


def _shown(kappa: float, cut: float) -> Said:
    """A kappa as it is printed: with a third decimal where two would lift it over a cut-off that it misses."""
    lifted = kappa < cut - TOLERANCE and round(kappa, 2) >= cut
    return said(f"claim.kappa.{'three' if lifted else 'two'}", value=kappa)


def _adversarial(
    known: SeasonIndex, gates: SeasonGates, instruments: Instruments
) -> tuple[AdversarialStatus, tuple[Said, ...], tuple[Said, ...], tuple[str, ...]]:
    """The status, its reasons, its conditions, and the measurements of blinding that it rests on."""
    sheets = sorted((one for one in known.measurements if one.name == "datasheet.gate"), key=lambda one: one.id)
    reasons, conditions = [], []
    status: AdversarialStatus = "passed"
    if gates.on_failure is None or not sheets:
        status = "not tested"
        conditions.append(said("claim.condition.not_tested"))
    elif not instruments.failing:
        reasons.append(said("claim.reason.datasheets.kept"))
    else:
        broken = [one for one in sheets if one.value]
        absent = [one for one in sheets if one.value is None]
        status = "construct-sensitive" if broken else "not tested"
        reasons += [_broken(one.labels["judge"], one.detail.get("failed", ())) for one in broken]
        reasons += [said("claim.reason.datasheets.absent", judge=one.labels["judge"]) for one in absent]
        conditions.append(said("claim.condition.datasheets", judges=instruments.failing))
    seeing = sorted(
        (one for one in known.named(PROBE) if one.detail.get("state") == ABOVE_CHANCE), key=lambda one: one.id
    )
    if seeing:
        names = tuple(one.labels["judge"] for one in seeing)
        status = "construct-sensitive"
        conditions.append(said("claim.condition.probe", judges=names, n=len(names)))
    return status, tuple(reasons), tuple(conditions), tuple(one.id for one in seeing)


def _broken(judge: str, limits: object) -> Said:
    """The limits that a judge breaks, as its datasheet words them."""
    words = "; ".join(map(str, limits)) if isinstance(limits, (list, tuple)) else str(limits)
    return said("claim.reason.datasheets.failed", judge=judge, limits=words)
