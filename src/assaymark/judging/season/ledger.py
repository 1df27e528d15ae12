"""The two ledgers of a horizon: numbers against the agent's own material, and the claims that a judge looked at.

The numeric ledger caps two parts of the evidence axis, so that no judge can score a contradicted claim as supported
(season methodology v0.3, claim ledger: what the data contradict is "penalised"). The cap is ours; what the judge gave
stands beside it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
class ClaimLine:
    """A claim of a judge beside the numbers that stand in its quotation.

    ``quoted`` says whether the quotation stands in the reasons of its step. ``numeric`` is what the numeric ledger says
    of it: contradicted if any of its numbers is, supported if all are borne out.
    """

    claim: HorizonClaim
    quoted: bool
    numeric: NumericState


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

    Parameters
    ----------
    decisions : iterable of Decision
        At least those of the horizon's steps.
    contexts : mapping of context id to Context
        At least those of these decisions, whole: the ledger looks at all that the agent could see, which is more than
        the market lines of a prompt.

    Raises
    ------
    InputError
        A decision or a context is missing: all of them at once.
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

    >>> none = HorizonLedger({}, {"supported": 3, "contradicted": 1, "not_verifiable": 9})
    >>> capped({"claim_support": 80.0, "no_contradiction": 70.0}, none)[0]
    CappedPart(part='claim_support', given=80.0, cap=75.0, counted=75.0)
    """
    cap = None if ledger is None else ledger.cap
    return tuple(
        CappedPart(
            part=name,
            given=evidence[name],
            cap=cap,
            counted=evidence[name] if cap is None else min(evidence[name], cap),
        )
        for name in CAPPED
        if name in evidence
    )


def ledger_disagreement(claims: Sequence[HorizonClaim], horizon: Horizon, ledger: HorizonLedger) -> LedgerDisagreement:
    """How far a judge's ledger and the numeric one are apart."""
    steps = {step.number: step for step in horizon.steps}
    read = [_line(claim, steps.get(claim.step), ledger) for claim in claims]
    quoted = {(line.claim.step, one.part, one.start) for line, numbers in read for one in numbers}
    accused = [
        (number, one.part, one.start)
        for number, ones in ledger.steps.items()
        for one in ones
        if one.state == "contradicted"
    ]
    return LedgerDisagreement(
        table={
            state: dict(Counter(line.numeric for line, _ in read if line.quoted and line.claim.state == state))
            for state in sorted({line.claim.state for line, _ in read if line.quoted})
        },
        misquoted=sum(not line.quoted for line, _ in read),
        unnoticed=sum(place not in quoted for place in accused),
        claims=len(claims),
    )


def _line(
    claim: HorizonClaim, step: HorizonStep | None, ledger: HorizonLedger
) -> tuple[ClaimLine, tuple[Evidence, ...]]:
    """A claim with its numbers."""
    spans = quoted_spans(claim.quote, step) if step is not None else []
    numbers = tuple(
        one
        for one in ledger.steps.get(claim.step, ())
        if any(
            part == one.part and start <= one.start and one.start + len(one.quote) <= end for part, start, end in spans
        )
    )
    return ClaimLine(claim=claim, quoted=bool(spans), numeric=_numeric(numbers)), numbers


def _numeric(numbers: Sequence[Evidence]) -> NumericState:
    """What the numbers of a claim say together."""
    states = {one.state for one in numbers} - {"own_action"}
    if not states:
        return "no number"
    if "contradicted" in states:
        return "contradicted"
    return "supported" if states <= set(BORNE_OUT) else "not_verifiable"


def quoted_spans(quote: str, step: HorizonStep) -> list[tuple[int, int, int]]:
    """Where a quotation stands in the texts of a step, however its words are spaced: text, start and end.

    >>> from types import SimpleNamespace
    >>> said = SimpleNamespace(texts=[SimpleNamespace(text="Sold:\\n\\nit fell  3 % today; it fell 3 % before.")])
    >>> quoted_spans("fell 3 %", said)
    [(0, 10, 19), (0, 30, 38)]
    """
    words = " ".join(quote.split())
    return [(at, *span) for at, text in enumerate(step.texts) for span in _places(words, text.text)] if words else []


def _places(words: str, text: str) -> Iterator[tuple[int, int]]:
    """The places of words with single spaces between them in a text, none over another."""
    shown, offsets = _spaced(text)
    at = shown.find(words)
    while at >= 0:
        end = at + len(words)
        yield offsets[at], offsets[end - 1] + 1
        at = shown.find(words, end)


@lru_cache(maxsize=1024)
def _spaced(text: str) -> tuple[str, Sequence[int]]:
    """A text with one space for every run of white space, and where each of its characters stood."""
    kept = [at for at, char in enumerate(text) if not char.isspace() or at == 0 or not text[at - 1].isspace()]
    return "".join(" " if text[at].isspace() else text[at] for at in kept), kept
