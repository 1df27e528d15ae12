"""The fields that decide a claim, of a study, a season or a benchmark, and the level that they leave."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from assaymark.claims.levels import Instruments, publication_level
from assaymark.claims.panel import Adversarial, Agreement
from assaymark.claims.standing import Evidence, Finding
from assaymark.records import Cap, Claim, Condition, Level, Verdict

LEVELS: Final[tuple[Level, ...]] = ("no-claim", "qualified", "headline")
"""From the lowest."""

NOT_PREREGISTERED: Final = "These scores were analysed after they were seen."

_STATES: Final = ("own_family", "length", "distinct", "other_judges")


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

    def caps(self) -> tuple[Cap, ...]:
        """Every field that limits the level, lowest first."""
        found = [*self._tuple_caps(), *self._other_caps()]
        return tuple(sorted(found, key=lambda cap: (LEVELS.index(cap.level), cap.field)))

    def _tuple_caps(self) -> Iterator[Cap]:
        agreement, evidence, adversarial = self.agreement.status, self.evidence.status, self.adversarial.status
        if agreement in ("halt", "methodology"):
            yield Cap(field="agreement", level="no-claim" if agreement == "halt" else "qualified")
        if evidence == "rule-dependent":
            yield Cap(field="stability", level="qualified")
        elif evidence != "stable":
            stops = evidence == "judge-dependent" or self.claim.asserts_order or not self.evidence.published
            stops = stops and not (evidence == "tie-class" and self.claim.scope == "adversarial-cell")
            yield Cap(field="stability", level="no-claim" if stops else "qualified")
        if not self.evidence.tested:
            yield Cap(field="stability", level="qualified")
        if adversarial not in ("passed", "not judged"):
            yield Cap(field="adversarial", level="no-claim" if adversarial == "contaminated" else "qualified")

    def _other_caps(self) -> Iterator[Cap]:
        for one in self.findings:
            if one.cap is not None:
                yield Cap(field=one.field, level=one.cap)
        if self.instruments.failing:
            yield Cap(field="datasheets", level=self.instruments.most)
        if not self.preregistered:
            yield Cap(field="preregistration", level="qualified")

    @property
    def level(self) -> Level:
        """The lowest of what the three statuses permit and every cap."""
        found: list[Level] = [cap.level for cap in self.caps() if not cap.lifted]
        if self.agreement.status != "not judged":
            found.append(
                publication_level(
                    self.agreement.status,
                    self.evidence.status,
                    self.adversarial.status,
                    asserts_order=self.claim.asserts_order,
                    significance_tested=self.evidence.tested,
                )
            )
        return min(found, key=LEVELS.index, default="headline")

    @property
    def measurements(self) -> tuple[str, ...]:
        """The ids of everything that was looked at."""
        found = [*self.agreement.measurements, *self.evidence.measurements, *self.adversarial.measurements]
        found += [*self.instruments.measurements, *(name for one in self.findings for name in one.measurements)]
        return tuple(dict.fromkeys(found))

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
        states = {name: self.state(name) for name in _STATES}
        return Verdict(
            claim=self.claim if claim is None else claim,
            agreement_status=self.agreement.status,
            stability_status=evidence.status,
            adversarial_status=self.adversarial.status,
            publication_level=level,
            reasons=tuple(reasons),
            binding=tuple(dict.fromkeys(cap.field for cap in caps if cap.level == level))
            if level != "headline"
            else (),
            measurements=self.measurements,
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
