"""What a measurement rests on: the judgments, decisions or numbers that it was computed from, counted and linked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from assaymark.records import Evidence, Measurement
from assaymark.report.formats import clean, count, counted
from assaymark.report.trail.judged import OVERVIEW, Group, Part, Shelf, Subject, subject, subject_of
from assaymark.report.trail.refs import DECISIONS, Ref

LEDGER: Final = "ledger/page-001.html"

_NUMBERS: Final = ("evidence.share", "evidence.chance_corrected")
_DECIDED: Final = ("agent.", "terse.share", "evidence.no_number_share", "forecast.mismatch")
_PARTS: Final[Mapping[str, Part]] = {"anchor.": "anchors", "probe.": "outside"}
_CELLS: Final = ("cell.score", "cell.kappa", "cell.gate", "cell.drop", "cell.halo", "cell.agreement")
_HONEST: Final = (
    "kappa.", "redundancy", "score.", "contrast", "recusal.", "length.", "judges.", "judge.own_family", "dimension.",
    "order.", "rank.", "lofo.", "single.", "panel.discoveries", "panel.alpha", "panel.generalizability",
    "panel.variance", "cell.honest", "noise.", "style.",
    "contamination.", "judge.invalid_share",
)  # fmt: skip
_ASKED: Final = "judge.invalid_share"


@dataclass(frozen=True, slots=True)
class Rests:
    """Counts what the measurements of a study rest on. Build one with `Rests.of`.

    ``given`` are judgments with scores by part, judge, subject and format of the decision; ``asked`` those without
    scores as well. ``numbers`` are those in the rationales, by agent.
    """

    shelf: Shelf
    decisions: Mapping[Subject, Ref]
    decided: Counter[Subject]
    numbers: Counter[str]
    given: Counter[tuple[Part, str, Subject, str]]
    asked: Counter[tuple[Part, str, Subject, str]]

    @classmethod
    def of(cls, shelf: Shelf, decisions: Mapping[Subject, Ref], evidence: Sequence[Evidence]) -> Rests:
        """Count the records of a study once; ``decisions`` leads to the first of each subject."""
        given, asked = Counter[tuple[Part, str, Subject, str]](), Counter[tuple[Part, str, Subject, str]]()
        for group in shelf.groups:
            for one in group.judgments:
                decision = shelf.decisions.get(one.trajectory)
                form = "" if decision is None else decision.format
                key = (group.part, group.judge, subject(one, shelf.decisions), form)
                asked[key] += 1
                given[key] += one.status == "ok"
        agents = {name: decision.agent.id for name, decision in shelf.decisions.items()}
        decided = Counter(map(subject_of, shelf.decisions.values()))
        return cls(shelf, decisions, decided, Counter(agents.get(one.decision, "") for one in evidence), given, asked)

    def on(self, item: Measurement) -> tuple[Ref, ...]:
        """What a measurement rests on; without a count where its name does not tell which records those are."""
        name, agent = item.name, item.labels.get("agent")
        if name.startswith(_NUMBERS):
            total = self.numbers.total()
            mine = counted(total, "number") if agent is None else f"{count(self.numbers[agent])} among all numbers"
            return (Ref(mine, LEDGER),)
        if name.startswith(_DECIDED):
            return (self._decided(agent),)
        part = next((part for start, part in _PARTS.items() if name.startswith(start)), "panel")
        groups = [one for one in self.shelf.groups if one.part == part and _is_of(one, item)]
        subjects = self._subjects(item)
        if not groups or subjects is None:
            return (Ref("judgments", OVERVIEW),)
        return tuple(self._judgments(item, groups, subjects))

    def _decided(self, agent: str | None) -> Ref:
        if agent is None:
            total = sum(n for about, n in self.decided.items() if not about.control)
            return Ref(f"{count(total)} among all decisions", DECISIONS)
        about = Subject(False, agent)
        place, n = self.decisions.get(about, Ref("", DECISIONS)).href, self.decided[about]
        return Ref(counted(n, "decision") if "#only-" in place else f"{count(n)} among all decisions", place)

    def _subjects(self, item: Measurement) -> list[Subject] | None:
        """Whom it is about: named ones, else every agent; None where its name does not tell."""
        named = sorted(item.labels[key] for key in ("agent", "high", "low") if key in item.labels)
        if item.name.startswith(_CELLS) and "cell" in item.labels:
            return [Subject(True, item.labels["cell"])]
        if named:
            return [Subject(False, name) for name in named]
        every = self.shelf.subjects()
        if item.name == "cell.separation":
            return [one for one in every if one.control and one.name in ("cell_a", "cell_b")]
        honest = item.name.startswith((*_HONEST, *_PARTS))
        return [one for one in every if not one.control] if honest else None

    def _judgments(self, item: Measurement, groups: Sequence[Group], subjects: Sequence[Subject]) -> Iterator[Ref]:
        """One link where that says all; one for each judge of two, or for each agent of a pair."""
        if len(groups) == 2 and "a" in item.labels:
            for group in groups:
                yield self._ref(item, [group], subjects, f" by {clean(group.judge, 60)}")
        elif len(subjects) == 2 and "high" in item.labels:
            for about in subjects:
                yield self._ref(item, groups, [about], f" on {about.words}")
        else:
            yield self._ref(item, groups, subjects)

    def _ref(self, item: Measurement, groups: Sequence[Group], subjects: Sequence[Subject], of: str = "") -> Ref:
        """A link whose number is that of the rows it leads to; where these are more, it says that it is among them."""
        n, place = self._n(item, groups, subjects), OVERVIEW
        keys = {(one.part, one.judge) for one in groups}
        alone = len(groups) == 1
        if alone and len(subjects) == 1:
            place = self.shelf.exactly((groups[0].part, groups[0].judge, subjects[0]))
        elif alone:
            place = groups[0].path
        elif len(subjects) == 1:
            place = f"{OVERVIEW}#{subjects[0].anchor}"
        there = sum(
            counts
            for (part, judge, about, _), counts in self.asked.items()
            if (not alone or (part, judge) in keys) and (len(subjects) > 1 or about in subjects)
        )
        several = alone and len(subjects) == 1 and "#only-" not in place
        words = counted(n, "judgment") if n == there and not several else f"{count(n)} among the judgments"
        return Ref(words + of, place)

    def _n(self, item: Measurement, groups: Sequence[Group], subjects: Sequence[Subject]) -> int:
        counts = self.asked if item.name == _ASKED else self.given
        keys, wanted = {(one.part, one.judge) for one in groups}, set(subjects)
        form = item.labels.get("format")
        return sum(
            n
            for (part, judge, about, written), n in counts.items()
            if (part, judge) in keys and about in wanted and form in (None, written)
        )


def _is_of(group: Group, item: Measurement) -> bool:
    """Whether the judgments of a group went into a measurement, as its labels say."""
    judges = [item.labels[key] for key in ("judge", "a", "b") if key in item.labels]
    return (not judges or group.judge in judges) and group.family != item.labels.get("dropped")
