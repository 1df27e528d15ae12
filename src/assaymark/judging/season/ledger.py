"""The two ledgers of a horizon: numbers against the agent's own material, and the claims that a judge looked at.

The numeric ledger caps two parts of the evidence axis, so that no judge can score a contradicted claim as supported
(season methodology v0.3, claim ledger: what the data contradict is "penalised"). The cap is ours; what the judge gave
stands beside it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final, Literal

from assaymark.errors import InputError, Problem
from assaymark.judging.evidence import Material, numeric_ledger
from assaymark.judging.season.record import Horizon, HorizonStep
from assaymark.judging.season.replies import ClaimState, HorizonClaim
from assaymark.records import Context, Decision, Evidence, EvidenceState, record

NumericState = Literal["supported", "contradicted", "not_verifiable", "no number"]

CAPPED: Final = ("claim_support", "no_contradiction")
"""The parts of the evidence axis that the numeric ledger caps."""

BORNE_OUT: Final[tuple[EvidenceState, ...]] = ("supported", "derivable", "rule")


@dataclass(frozen=True, slots=True)
class HorizonLedger:
    """Every number in the reasons that judges are shown, by step, and what the agent's material says about it."""

    steps: Mapping[int, tuple[Evidence, ...]]
    counts: Mapping[EvidenceState, int] = field(default_factory=dict)

    @property
    def numbers(self) -> int:
        """Numbers other than the decisions' own figures: what can be asked about at all."""
        return sum(count for state, count in self.counts.items() if state != "own_action")

    @property
    def supported(self) -> int:
        """Numbers that the material bears out: a fact, what follows from facts, a rule of the task."""
        return sum(self.counts.get(state, 0) for state in BORNE_OUT)

    @property
    def contradicted(self) -> int:
        """Numbers that the material contradicts."""
        return self.counts.get("contradicted", 0)

    @property
    def supported_share(self) -> float | None:
        """Share of the numbers that the material bears out; None without a number."""
        return self.supported / self.numbers if self.numbers else None

    @property
    def contradicted_share(self) -> float | None:
        """Share of the numbers that the material contradicts; None without a number."""
        return self.contradicted / self.numbers if self.numbers else None

    @property
    def silent_steps(self) -> int:
        """Steps whose reasons hold no number."""
        return sum(not ones for ones in self.steps.values())

    @property
    def cap(self) -> float | None:
        """Of the numbers that the material decides, the percentage that it bears out; None if it decides none.

        A number that cannot be verified is no reproach, and lowers no cap.
        """
        decided = self.supported + self.contradicted
        return 100.0 * self.supported / decided if decided else None

    def between(self, first: int, last: int) -> HorizonLedger:
        """The ledger of the steps ``first`` to ``last``, as `Horizon.between` cuts them."""
        return _counted({number: ones for number, ones in self.steps.items() if first <= number <= last})


@record
class CappedPart:
    """A part of the evidence axis: what the judge gave, the cap of the numeric ledger, and what counts."""

    part: str
    given: float
    cap: float | None
    counted: float


@record
class LedgerDisagreement:
    """How far a judge's ledger and the numeric one are apart, in counts.

    ``table`` counts the claims whose quotation was found, by the judge's state and then the numeric one. ``misquoted``
    are claims whose quotation does not stand in the reasons of their step, ``unnoticed`` contradicted numbers that
    stand in no quotation. ``claims`` are all of the judge's.
    """

    table: Mapping[ClaimState, Mapping[NumericState, int]]
    misquoted: int
    unnoticed: int
    claims: int

    @property
    def overruled(self) -> int:
        """Claims that the judge calls supported and the numbers contradict."""
        return self._count("supported", "contradicted")

    @property
    def strict(self) -> int:
        """Claims that the judge calls contradicted and the numbers bear out."""
        return self._count("contradicted", "supported")

    @property
    def agreed(self) -> int:
        """Claims that both decide, alike."""
        return self._count("supported", "supported") + self._count("contradicted", "contradicted")

    def _count(self, judge: ClaimState, numeric: NumericState) -> int:
        return self.table.get(judge, {}).get(numeric, 0)


def horizon_ledger(horizon: Horizon, decisions: Iterable[Decision], contexts: Mapping[str, Context]) -> HorizonLedger:
    """The numeric ledger (`judging.evidence.numeric_ledger`) of a horizon, over the blinded texts that judges see.

    The contexts have to be whole: the ledger looks at all that the agent could see, which is more than the market lines
    of a prompt. Raises InputError with all decisions and contexts that are missing.
    """
    return horizon_ledgers([horizon], decisions, contexts)[0]


def horizon_ledgers(
    horizons: Sequence[Horizon], decisions: Iterable[Decision], contexts: Mapping[str, Context]
) -> list[HorizonLedger]:
    """The numeric ledgers of several horizons, as `horizon_ledger`. A context that they share is looked at once."""
    known = {one.record_id: one for one in decisions}
    steps = [step for horizon in horizons for step in horizon.steps]
    problems = [
        Problem(f"record {s.record_id}", "is not among the decisions") for s in steps if s.record_id not in known
    ]
    problems += [
        Problem(f"record {s.record_id}", f"its context {s.context_id[:12]} is not among them")
        for s in steps
        if s.context_id not in contexts
    ]
    if problems:
        raise InputError("horizon ledger", problems)
    shown: dict[str, list[HorizonStep]] = {}
    for step in steps:
        shown.setdefault(step.context_id, []).append(step)
    found: dict[int, tuple[Evidence, ...]] = {}
    for name, ones in shown.items():
        material = Material.of(contexts[name])
        for step in ones:
            decision = replace(known[step.record_id], rationales=step.texts)
            found[id(step)] = tuple(numeric_ledger(decision, contexts[name], material=material))
    return [_counted({step.number: found[id(step)] for step in horizon.steps}) for horizon in horizons]


def _counted(steps: Mapping[int, tuple[Evidence, ...]]) -> HorizonLedger:
    return HorizonLedger(steps, dict(Counter(one.state for ones in steps.values() for one in ones)))


def capped(evidence: Mapping[str, float], ledger: HorizonLedger | None) -> tuple[CappedPart, ...]:
    """The parts of the evidence axis that the numeric ledger caps, with what the judge gave and what counts.

    Without a ledger, and where it decides no number, nothing is capped.
    """
    cap = None if ledger is None else ledger.cap
    found = []
    for name in CAPPED:
        if name in evidence:
            given = evidence[name]
            counted = given if cap is None else min(given, cap)
            found.append(CappedPart(part=name, given=given, cap=cap, counted=counted))
    return tuple(found)


def ledger_disagreement(claims: Sequence[HorizonClaim], horizon: Horizon, ledger: HorizonLedger) -> LedgerDisagreement:
    """How far a judge's ledger and the numeric one are apart.

    Of the numbers in a quotation the ledger says contradicted if any of them is, supported if all are borne out.
    """
    steps = {step.number: step for step in horizon.steps}
    table: dict[ClaimState, Counter[NumericState]] = {}
    misquoted = 0
    quoted: set[tuple[int, int, int]] = set()
    for claim in claims:
        step = steps.get(claim.step)
        spans = quoted_spans(claim.quote, step) if step is not None else []
        if not spans:
            misquoted += 1
            continue
        numbers = [
            one
            for one in ledger.steps.get(claim.step, ())
            if any(
                part == one.part and start <= one.start and one.start + len(one.quote) <= end
                for part, start, end in spans
            )
        ]
        quoted |= {(claim.step, one.part, one.start) for one in numbers}
        states = {one.state for one in numbers} - {"own_action"}
        numeric: NumericState = "supported" if states <= set(BORNE_OUT) else "not_verifiable"
        if not states:
            numeric = "no number"
        elif "contradicted" in states:
            numeric = "contradicted"
        table.setdefault(claim.state, Counter())[numeric] += 1
    accused = [
        (number, one.part, one.start)
        for number, ones in ledger.steps.items()
        for one in ones
        if one.state == "contradicted"
    ]
    return LedgerDisagreement(
        table={state: dict(table[state]) for state in sorted(table)},
        misquoted=misquoted,
        unnoticed=sum(place not in quoted for place in accused),
        claims=len(claims),
    )


def quoted_spans(quote: str, step: HorizonStep) -> list[tuple[int, int, int]]:
    """Where a quotation stands in the texts of a step, however its words are spaced: text, start and end."""
    words = " ".join(quote.split())
    found = []
    for part, text in enumerate(step.texts if words else ()):
        shown, offsets = _spaced(text.text)
        at = shown.find(words)
        while at >= 0:
            end = at + len(words)
            found.append((part, offsets[at], offsets[end - 1] + 1))
            at = shown.find(words, end)
    return found


@lru_cache(maxsize=1024)
def _spaced(text: str) -> tuple[str, Sequence[int]]:
    """A text with one space for every run of white space, and where each of its characters stood."""
    kept = [at for at, char in enumerate(text) if not char.isspace() or at == 0 or not text[at - 1].isspace()]
    return "".join(" " if text[at].isspace() else text[at] for at in kept), kept
