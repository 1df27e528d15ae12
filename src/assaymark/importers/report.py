"""What an import gives back: the records, and an account of what was there, what was missing and what was wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Final, Literal, Protocol

from pydantic import ConfigDict

from assaymark.errors import LISTED, Problem
from assaymark.notebook import Note, Part, Result
from assaymark.portfolio.broker import CheckKind
from assaymark.records import Context, Decision, Outcome, Rationale

EXAMPLES = 3
"""How many examples of each missing thing a report keeps."""

NO_TEXT = "text"
"""The entry of ``Decision.missing`` when the agent wrote nothing that a judge can read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """How often something was absent, and the first few places."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    count: int
    examples: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ImportReport(Result):
    """The account of one import: denominators first, then everything a reader should know before using the records.

    ``good`` and ``bad`` count decisions: imported, and left out because something about them (or about the round they
    belong to) was wrong; ``problems`` says what. ``missing`` counts what the source names but does not hold,
    ``no_place`` what it holds and no record has a place for: it was read, and is not in the run folder's tables.
    ``verified`` counts files whose hash was recomputed and matched, ``unverifiable`` those that a hash list names but
    that are not there, both by file name. ``never_met`` lists the pairs of agents without a common question: nothing
    can be said about them as a pair. ``replicates`` counts decisions beyond the first of an agent on a question; at 0
    an agent's own noise is undefined.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    source: str
    good: int
    bad: int
    counts: Mapping[str, int] = field(default_factory=dict)
    formats: Mapping[str, int] = field(default_factory=dict)
    flags: Mapping[str, int] = field(default_factory=dict)
    missing: Mapping[str, Missing] = field(default_factory=dict)
    no_place: Mapping[str, Missing] = field(default_factory=dict)
    verified: Mapping[str, int] = field(default_factory=dict)
    unverifiable: Mapping[str, int] = field(default_factory=dict)
    no_text: tuple[str, ...] = ()
    never_met: tuple[tuple[str, str], ...] = ()
    replicates: int = 0
    notes: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()

    def _parts(self) -> Iterator[Part]:
        yield from map(Note, self.lines())

    def lines(self) -> tuple[str, ...]:
        """The report as plain lines, most important first."""
        out = [f"{self.source}: {self.good} decision{'s' * (self.good != 1)} imported, {self.bad} left out"]
        for before, counts in (("", self.counts), ("format ", self.formats), ("flag ", self.flags)):
            out += [f"{before}{name}: {n}" for name, n in counts.items()]
        if self.verified:
            out.append(f"hashes verified: {sum(self.verified.values())}")
        if self.unverifiable:
            out.append(f"hashes of absent files: {sum(self.unverifiable.values())}")
        out += [f"missing {name}: {m.count} (such as {', '.join(m.examples)})" for name, m in self.missing.items()]
        out += [
            f"no place for {name}: {m.count} (such as {', '.join(m.examples)})" for name, m in self.no_place.items()
        ]
        if self.no_text:
            out.append(f"without any text to judge: {len(self.no_text)}")
        out += [f"never met: {a} and {b}" for a, b in self.never_met]
        rest = len(self.problems) - LISTED
        out += [*self.notes, *map(str, self.problems[:LISTED])]
        return (*out, f"and {rest} more") if rest > 0 else tuple(out)


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """The records of one import. ``contexts`` is keyed by content id; outcomes stay a table of their own."""

    decisions: tuple[Decision, ...]
    contexts: Mapping[str, Context]
    outcomes: tuple[Outcome, ...]
    report: ImportReport


class Tally:
    """Collects, while an import runs, what its report will say."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.counts: Counter[str] = Counter()
        self.verified: Counter[str] = Counter()
        self.unverifiable: Counter[str] = Counter()
        self._missing: dict[str, Missing] = {}
        self._no_place: dict[str, Missing] = {}

    def problem(self, where: str, what: str) -> None:
        """Notes one thing wrong with the input."""
        self.problems.append(Problem(where, what))

    def missing(self, what: str, example: str) -> None:
        """Notes one thing the source should hold and does not."""
        _add(self._missing, what, example)

    def no_place(self, what: str, example: object, times: int = 1) -> None:
        """Notes one thing that the source holds, so many times, and no record has a place for."""
        _add(self._no_place, what, f"{example!s:.60}", times)

    def unresolved(self, decisions: Iterable[Decision], resolved: Collection[str], what: str) -> None:
        """Notes what each decision lacks, and ``what`` for those without an outcome (their ids: ``resolved``)."""
        for decision in decisions:
            for name in decision.missing:
                if name != NO_TEXT:  # the report has a line of its own for these
                    self.missing(name, decision.record_id)
            if decision.record_id not in resolved:
                self.missing(what, decision.record_id)

    def imported(
        self,
        source: str,
        decisions: Sequence[Decision],
        contexts: Mapping[str, Context],
        outcomes: Sequence[Outcome],
        *,
        bad: int,
        notes: Sequence[str] = (),
    ) -> Imported:
        """The finished import; contexts that no decision names are left out."""
        used = {decision.context_id for decision in decisions}
        contexts = {name: context for name, context in contexts.items() if name in used}
        counts = {
            "decisions": len(decisions),
            "contexts": len(contexts),
            "agents": len({decision.agent.id for decision in decisions}),
            "clusters": len({decision.cluster for decision in decisions}),
            "outcomes": len(outcomes),
            "facts": sum(len(context.facts) for context in contexts.values()),
        }
        cycles: dict[str, set[str]] = {}
        for decision in decisions:
            cycles.setdefault(decision.agent.id, set()).add(decision.cycle)
        report = ImportReport(
            source=source, good=len(decisions), bad=bad, counts=counts | dict(self.counts),
            formats=dict(sorted(Counter(d.format for d in decisions).items())),
            flags=dict(sorted(Counter(flag for d in decisions for flag in d.flags).items())),
            missing=dict(self._missing), no_place=dict(self._no_place),
            verified=dict(sorted(self.verified.items())), unverifiable=dict(sorted(self.unverifiable.items())),
            no_text=tuple(d.record_id for d in decisions if NO_TEXT in d.missing),
            never_met=tuple((a, b) for a, b in combinations(sorted(cycles), 2) if cycles[a].isdisjoint(cycles[b])),
            replicates=sum(d.replicate > 1 for d in decisions), notes=tuple(notes), problems=tuple(self.problems),
        )  # fmt: skip
        return Imported(decisions=tuple(decisions), contexts=contexts, outcomes=tuple(outcomes), report=report)


def _add(found: dict[str, Missing], what: str, example: str, times: int = 1) -> None:
    before = found.get(what, Missing(count=0))
    more = () if len(before.examples) == EXAMPLES or example in before.examples else (example,)
    found[what] = Missing(count=before.count + times, examples=(*before.examples, *more))


def has_text(rationales: Iterable[Rationale]) -> bool:
    """Whether the agent wrote anything that a judge can read; reasons for single holdings are not judged."""
    return any(r.kind not in ("arena", "holding") and r.text.strip() for r in rationales)


EQUAL_WEIGHT: Final = "equal weight"
CASH: Final = "cash"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedFill:
    """One logged action that was carried out: signed units. ``price`` is None where it is not known."""

    day: str
    agent: str
    record_id: str
    number: int
    symbol: str
    quantity: float
    price: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedBook:
    """The stated book after the last step of a day, and what it was worth then.

    ``not stated``: the log states no book on that day, and the one before it is carried on. ``stale`` names symbols
    without a price at that moment, valued at their last known one.
    """

    day: str
    agent: str
    state: Literal["ok", "not stated"]
    cash: float
    nav: float
    positions: Mapping[str, float]
    stale: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCheck:
    """How many checks of one kind an agent's log had and passed; ``mismatches`` are (record id, sentence)."""

    agent: str
    kind: CheckKind
    checks: int
    passed: int
    mismatches: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedTrack:
    """One track of a log: books, fills, baselines (``agent`` is the baseline's name), and checks of one by the other.

    ``capital`` is what each agent began with, ``universe`` the symbols with prices, ``days`` the day of each decision
    (by record id) where it was made.
    """

    name: str
    capital: float
    currency: str
    universe: tuple[str, ...]
    days: Mapping[str, str]
    fills: tuple[RecordedFill, ...] = ()
    books: tuple[RecordedBook, ...] = ()
    baselines: tuple[RecordedBook, ...] = ()
    checks: tuple[RecordedCheck, ...] = ()


class ReadTrack(Protocol):
    """From the bytes of files to one track; pure. What an import would refuse is left out here."""

    def __call__(self, files: Mapping[str, bytes], track: str) -> RecordedTrack:
        """One track of the log in ``files``."""
        ...
