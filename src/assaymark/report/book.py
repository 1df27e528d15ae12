"""The run, opened at the right page: measurements by name and labels, agents, families, titles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from assaymark.claims import agreement_status
from assaymark.records import AGGREGATE, AgreementStatus, Measurement, Verdict, measurement_id
from assaymark.report.formats import clean, number, shown
from assaymark.report.inputs import AssayRun

KAPPA: Final = "kappa.mean_pairwise"


@dataclass(frozen=True, slots=True)
class Book:
    """An `AssayRun` with the look-ups that every section needs. Build one with `Book.of`."""

    run: AssayRun
    by_id: Mapping[str, Measurement]
    by_name: Mapping[str, tuple[Measurement, ...]]
    families: Mapping[str, str]
    statuses: Mapping[str, AgreementStatus]

    @classmethod
    def of(cls, run: AssayRun) -> Book:
        """Index a run once."""
        by_name: dict[str, list[Measurement]] = {}
        for item in run.measurements:
            by_name.setdefault(item.name, []).append(item)
        return cls(
            run=run,
            by_id={item.id: item for item in run.measurements},
            by_name={name: tuple(sorted(items, key=lambda m: m.id)) for name, items in by_name.items()},
            families=_families(run),
            statuses={v.claim.dimension: v.agreement_status for v in run.verdicts},
        )

    @property
    def agents(self) -> tuple[str, ...]:
        """Every agent, alphabetical: no page is ordered by a score."""
        return tuple(sorted(self.families))

    @property
    def dimensions(self) -> tuple[str, ...]:
        """The aggregate, then the rubric's dimensions in rubric order."""
        return (AGGREGATE, *(name for name, _ in self.run.rubric.dimensions))

    def one(self, name: str, **labels: str) -> Measurement | None:
        """The measurement with exactly these labels."""
        return self.by_id.get(measurement_id(name, labels))

    def every(self, name: str, **labels: str) -> Iterator[Measurement]:
        """All measurements of a name that carry these labels, by id."""
        for item in self.by_name.get(name, ()):
            if all(item.labels.get(key) == value for key, value in labels.items()):
                yield item

    def value(self, name: str, **labels: str) -> float | None:
        """The value of a measurement; None where it is undefined or was not made."""
        found = self.one(name, **labels)
        return None if found is None else found.value

    def contrast(self, dimension: str, one: str, other: str) -> Measurement | None:
        """The contrast of two agents, whichever of them is the higher."""
        direct = self.one("contrast", dimension=dimension, high=one, low=other)
        return direct or self.one("contrast", dimension=dimension, high=other, low=one)

    def family(self, agent: str) -> str:
        """The family of an agent; empty when no record names it."""
        return clean(self.families.get(agent, ""), 60)

    def title(self, dimension: str) -> str:
        """A dimension's title."""
        return clean(self.run.rubric.dimension_title(dimension), 60)

    def status(self, dimension: str) -> AgreementStatus | None:
        """What the judges' agreement on a dimension permits: as its verdicts say, else by the plan's gates."""
        if dimension in self.statuses:
            return self.statuses[dimension]
        kappa = self.gating(dimension)
        if kappa is None:
            return None
        gates = self.run.study.gates
        return agreement_status(kappa.value, publish=gates.publish, halt=gates.halt)

    def gating(self, dimension: str) -> Measurement | None:
        """The kappa that gates a dimension: the lowest of the pooled one and of those within gated formats.

        An undefined kappa is below all of them; a format with too few records has no gate. This is the rule of
        `assaymark.claims.verdicts.governing_agreement`, which does not name the measurement.
        """
        gated = (m for m in self.every(KAPPA, dimension=dimension) if not m.state.startswith("too few"))
        return min(gated, key=lambda m: (float("-inf") if m.value is None else m.value, m.id), default=None)

    def gating_note(self, dimension: str) -> str:
        """The gating kappa and the format it was found in; empty where the pooled kappa gates.

        A value that two decimals would lift over the cut-off that it misses has three.
        """
        item = self.gating(dimension)
        if item is None or "format" not in item.labels:
            return ""
        return f"{self.kappa_words(item)} in {clean(item.labels['format'], 60)}"

    def gating_words(self, dimension: str) -> str:
        """The gating kappa with its sign, its format where it has one, or in words why there is none."""
        item = self.gating(dimension)
        said = self.gating_note(dimension) or self.kappa_words(item)
        return said if item is None or item.value is None else f"κ {said}"

    def kappa_words(self, item: Measurement | None) -> str:
        """A kappa beside the gates, or in words why there is none."""
        if item is None or item.value is None:
            return shown(item)
        gates = self.run.study.gates
        lifted = any(item.value < cut <= round(item.value, 2) for cut in (gates.halt, gates.publish))
        return number(item.value, 3 if lifted else 2)

    def on(self, dimension: str) -> tuple[Verdict, ...]:
        """The verdicts on one dimension, by claim id."""
        return tuple(sorted((v for v in self.run.verdicts if v.claim.dimension == dimension), key=lambda v: v.claim.id))


def measure_words(book: Book, dimension: str) -> str:
    """How a sentence calls the score of a dimension."""
    title = book.title(dimension)
    return "the aggregate score" if dimension == AGGREGATE else title[:1].lower() + title[1:]


def _families(run: AssayRun) -> dict[str, str]:
    families = {agent: "" for verdict in run.verdicts for agent in verdict.claim.subjects}
    families |= {item.labels["agent"]: "" for item in run.measurements if item.name == "score.effect"}
    families |= {decision.agent.id: decision.agent.family for decision in run.decisions}
    return dict(sorted(families.items()))
