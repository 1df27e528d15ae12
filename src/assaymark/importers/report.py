"""What an import gives back: the records, and an account of what was there, what was missing and what was wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from pydantic import ConfigDict

from assaymark.display import Note, Part, Result
from assaymark.errors import LISTED, Problem
from assaymark.records import Context, Decision, Outcome, Rationale

EXAMPLES = 3
"""How many examples of each missing thing a report keeps."""


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
    belong to) was wrong; ``problems`` says what. ``missing`` counts what the source names but does not hold.
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
        """The report as plain lines, most important first.

        >>> ImportReport(source="mine", good=2, bad=0, counts={"contexts": 1}).lines()
        ('mine: 2 decisions imported, 0 left out', 'contexts: 1')
        """
        out = [f"{self.source}: {self.good} decisions imported, {self.bad} left out"]
        out += [f"{name}: {n}" for name, n in self.counts.items()]
        out += [f"format {name}: {n}" for name, n in self.formats.items()]
        out += [f"flag {name}: {n}" for name, n in self.flags.items()]
        if self.verified:
            out.append(f"hashes verified: {sum(self.verified.values())}")
        if self.unverifiable:
            out.append(f"hashes of absent files: {sum(self.unverifiable.values())}")
        out += [f"missing {name}: {m.count} (such as {', '.join(m.examples)})" for name, m in self.missing.items()]
        if self.no_text:
            out.append(f"without any text to judge: {len(self.no_text)}")
        out += [f"never met: {a} and {b}" for a, b in self.never_met]
        out += list(self.notes)
        return (*out, *capped(self.problems))


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
        self._missing: dict[str, list[str]] = {}
        self._absent: Counter[str] = Counter()

    def problem(self, where: str, what: str) -> None:
        """One thing wrong with the input."""
        self.problems.append(Problem(where, what))

    def missing(self, what: str, example: str) -> None:
        """One thing the source should hold and does not."""
        self._absent[what] += 1
        kept = self._missing.setdefault(what, [])
        if len(kept) < EXAMPLES:
            kept.append(example)

    def report(self, source: str, decisions: Sequence[Decision], *, bad: int, **more: Any) -> ImportReport:
        """The finished report over the decisions that were imported."""
        return ImportReport(
            source=source,
            good=len(decisions),
            bad=bad,
            counts=dict(self.counts),
            formats=dict(sorted(Counter(d.format for d in decisions).items())),
            flags=dict(sorted(Counter(flag for d in decisions for flag in d.flags).items())),
            missing={k: Missing(count=self._absent[k], examples=tuple(v)) for k, v in self._missing.items()},
            verified=dict(sorted(self.verified.items())),
            unverifiable=dict(sorted(self.unverifiable.items())),
            no_text=tuple(d.record_id for d in decisions if NO_TEXT in d.missing),
            never_met=never_met(decisions),
            replicates=sum(d.replicate > 1 for d in decisions),
            problems=tuple(self.problems),
            **more,
        )


NO_TEXT = "text"
"""What stands in ``Decision.missing`` when the agent wrote nothing that a judge can read."""


def has_text(rationales: Iterable[Rationale]) -> bool:
    """Whether the agent wrote anything that a judge can read; reasons for single holdings are not judged."""
    return any(r.kind not in ("arena", "holding") and r.text.strip() for r in rationales)


def never_met(decisions: Iterable[Decision]) -> tuple[tuple[str, str], ...]:
    """The pairs of agents that never answered one question, in alphabetical order."""
    cycles: dict[str, set[str]] = {}
    for decision in decisions:
        cycles.setdefault(decision.agent.id, set()).add(decision.cycle)
    return tuple((a, b) for a, b in combinations(sorted(cycles), 2) if cycles[a].isdisjoint(cycles[b]))


def capped(problems: Sequence[Problem], limit: int = LISTED) -> tuple[str, ...]:
    """The first ``limit`` problems as lines, and a count of the rest.

    >>> capped([Problem("line 1", "empty"), Problem("line 2", "empty")], limit=1)
    ('line 1: empty', 'and 1 more')
    """
    rest = len(problems) - limit
    return tuple(str(p) for p in problems[:limit]) + ((f"and {rest} more",) if rest > 0 else ())
