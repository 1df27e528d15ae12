"""The fields that decide a claim, of a study, a season or a benchmark, and the level that they leave."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from assaymark.claims.human_anchor import lifted
from assaymark.claims.levels import Instruments, publication_level
from assaymark.claims.panel import Adversarial, Agreement
from assaymark.claims.standing import Evidence, Finding
from assaymark.records import Cap, Claim, Condition, Level, Verdict

LEVELS: Final[tuple[Level, ...]] = ("no-claim", "qualified", "headline")
"""From the lowest."""

NOT_PREREGISTERED: Final = "These scores were analysed after they were seen."


def weakest(levels: Iterable[Level]) -> Level:
    """The lowest of some levels; a headline of none."""
    return min(levels, key=LEVELS.index, default="headline")


@dataclass(frozen=True, slots=True)
class Fields:
    """The parts from which one claim's verdict follows."""

    claim: Claim
    agreement: Agreement
    evidence: Evidence
    adversarial: Adversarial
    instruments: Instruments = field(default_factory=Instruments)
    findings: tuple[Finding, ...] = ()
    preregistered: bool = True

    @classmethod
    def unjudged(
        cls, claim: Claim, evidence: Evidence, findings: Sequence[Finding] = (), *, preregistered: bool = True
    ) -> Fields:
        """Of a claim that rests on no grade."""
        agreement, adversarial = Agreement("not judged", None, "", ()), Adversarial("not judged", (), (), ())
        return cls(claim, agreement, evidence, adversarial, findings=tuple(findings), preregistered=preregistered)

    def state(self, name: str) -> str:
        """What a bias test found, in one word."""
        return next((one.state for one in self.findings if one.field == name), "not-applicable")

    def without(self, name: str) -> Fields:
        """The same without what one bias test found."""
        return replace(self, findings=tuple(one for one in self.findings if one.field != name))

    @property
    def lifts(self) -> bool:
        """Whether people confirm the order and agree with each other, which lifts what biases of judges cap."""
        return any(one.field == "human_anchor" and bool(one.values.get("lifts")) for one in self.findings)

    def caps(self) -> tuple[Cap, ...]:
        """Every field that limits the level, lowest first, and whether people's grades lift it."""
        agreement, evidence, adversarial = self.agreement.status, self.evidence.status, self.adversarial.status
        found: list[tuple[str, Level]] = []
        if agreement in ("halt", "methodology"):
            found.append(("agreement", "no-claim" if agreement == "halt" else "qualified"))
        if evidence != "stable":
            stops = evidence == "judge-dependent" or self.claim.asserts_order or not self.evidence.published
            stops = stops and not (evidence == "tie-class" and self.claim.scope == "adversarial-cell")
            found.append(("stability", "no-claim" if stops and evidence != "rule-dependent" else "qualified"))
        if not self.evidence.tested:
            found.append(("stability", "qualified"))
        if adversarial not in ("passed", "not judged"):
            found.append(("adversarial", "no-claim" if adversarial == "contaminated" else "qualified"))
        found += [(one.field, one.cap) for one in self.findings if one.cap is not None]
        found += [("datasheets", self.instruments.most)] if self.instruments.failing else []
        found += [] if self.preregistered else [("preregistration", "qualified")]
        found.sort(key=lambda cap: (LEVELS.index(cap[1]), cap[0]))
        free = {one.field for one in self.findings if lifted(one)} if self.lifts else set()
        free |= {"adversarial"} if self.lifts and adversarial == "construct-sensitive" else set()
        return tuple(Cap(field=name, level=level, lifted=name in free) for name, level in found)

    @property
    def level(self) -> Level:
        """The lowest of what the three statuses permit and every cap."""
        caps = self.caps()
        # People lift "no claim" of the recusal contrast to qualified, and every other cap that they lift wholly.
        found: list[Level] = [cap.level for cap in caps if not cap.lifted]
        found += ["qualified" for cap in caps if cap.lifted and cap.level == "no-claim"]
        if self.agreement.status != "not judged":
            free = any(cap.field == "adversarial" and cap.lifted for cap in caps)
            found.append(
                publication_level(
                    self.agreement.status,
                    self.evidence.status,
                    "passed" if free else self.adversarial.status,
                    asserts_order=self.claim.asserts_order,
                    significance_tested=self.evidence.tested,
                )
            )
        return weakest(found)

    def verdict(
        self,
        plan_hash: str,
        *,
        claim: Claim | None = None,
        reasons: Sequence[str],
        conditions: Sequence[Condition],
        fragility: Mapping[str, Level],
        amended: Sequence[str] = (),
    ) -> Verdict:
        """The verdict in these words; ``claim`` has the statement with its scope."""
        level, caps, evidence = self.level, self.caps(), self.evidence
        states = {name: self.state(name) for name in ("own_family", "length", "distinct", "other_judges")}
        anchor = self.state("human_anchor")
        states["human_anchor"] = "not-tested" if anchor == "not-applicable" else anchor
        looked_at = [self.agreement.measurements, evidence.measurements, self.adversarial.measurements]
        looked_at += [self.instruments.measurements, *(one.measurements for one in self.findings)]
        limits = [(cap.field, "qualified" if cap.lifted else cap.level) for cap in caps
                  if not cap.lifted or cap.level == "no-claim"]  # fmt: skip
        binding = [] if level == "headline" else [name for name, most in limits if most == level]
        return Verdict(
            claim=self.claim if claim is None else claim,
            agreement_status=self.agreement.status,
            stability_status=evidence.status,
            adversarial_status=self.adversarial.status,
            publication_level=level,
            reasons=tuple(reasons),
            binding=tuple(dict.fromkeys(binding)),
            measurements=tuple(dict.fromkeys(name for names in looked_at for name in names)),
            plan_hash=plan_hash,
            condition=" ".join(one.text for one in conditions) or None,
            fragility=fragility,
            amended=tuple(amended),
            conditions=tuple(conditions),
            caps=caps,
            pair_state=evidence.state,
            p=evidence.p,
            p_adjusted=evidence.p_adjusted,
            p_adjusted_headline=evidence.p_adjusted_headline,
            stability=evidence.stability,
            preregistered=self.preregistered,
            **states,  # type: ignore[arg-type]  # each state is a word of its own list
        )
