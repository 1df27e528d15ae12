"""A benchmark run, opened: its measurements by name and labels, its verdicts by kind, and names as they are set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from assaymark.claims.boards import Leaderboard
from assaymark.records import Level, Measurement, Verdict, measurement_id
from assaymark.report.blocks import linked
from assaymark.report.charts.canvas import NARROW
from assaymark.report.portbench.inputs import ALL, QUESTIONS, BenchModel, BenchRun, ProfileView, WindowView
from assaymark.report.text import shown
from assaymark.text import clean, span

ROUNDING: Final = 1e-9
Kind = Literal["first", "gates", "gate", "beats", "dissociation", "above", "within", "other"]
KINDS: Final[tuple[Kind, ...]] = ("first", "gates", "gate", "beats", "dissociation", "above", "within", "other")
STAGES: Final[Mapping[str, tuple[str, str]]] = {
    "S1": ("outlook", "Market interpretation"),
    "S2": ("signals", "Signal generation"),
    "S3": ("weights", "Weight optimisation"),
    "S4": ("trading", "Execution"),
    "S5": ("risk", "Risk monitoring"),
}


def kind_of(verdict: Verdict) -> Kind:
    """What a claim of a benchmark says, from its id."""
    name = verdict.claim.id.partition("[")[0]
    return next((kind for kind in KINDS if kind == name), "other")


@dataclass(frozen=True, slots=True, eq=False)
class BenchmarkIndex:
    """A `BenchRun` with its look-ups. Build one with `BenchBook.of`.

    ``links`` leads from the id of a measurement to its row; empty until rows are placed.
    """

    run: BenchRun
    models: tuple[BenchModel, ...]
    by_id: Mapping[str, Measurement]
    by_name: Mapping[str, tuple[Measurement, ...]]
    verdicts: Mapping[str, Verdict]
    links: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, run: BenchRun) -> BenchmarkIndex:
        """Index a run once. Models are listed by name: no page is sorted by a value that no verdict supports."""
        by_name: dict[str, list[Measurement]] = {}
        for item in run.measurements:
            by_name.setdefault(item.name, []).append(item)
        return cls(
            run=run,
            models=tuple(sorted(run.models, key=lambda model: model.name)),
            by_id={item.id: item for item in run.measurements},
            by_name={name: tuple(found) for name, found in by_name.items()},
            verdicts={verdict.claim.id: verdict for verdict in run.verdicts},
        )

    def to(self, item: Measurement | None, text: str) -> str:
        """A text that leads to the row of a measurement where it has a value and a row; else the text alone."""
        return linked(item, text, self.links)

    @property
    def names(self) -> tuple[str, ...]:
        """The models by name."""
        return tuple(model.name for model in self.models)

    @property
    def profile(self) -> str:
        """What most measurements are of: all profiles together, or the only one."""
        return ALL if len(self.run.profiles) != 1 else self.run.profiles[0].name

    def board(self, name: str | None) -> Leaderboard | None:
        """A leaderboard by its name."""
        return next((leaderboard for leaderboard in self.run.leaderboards if leaderboard.board.name == name), None)

    @property
    def unscored(self) -> frozenset[str]:
        """The models that have no CEPS."""
        return frozenset(name for board in pipeline_boards(self.run) for name in board.unscored)

    def shares_tier(self, board: str | None, model: str) -> bool:
        """Whether a model cannot be ranked on a leaderboard, so that no page shows its score as a point."""
        found = self.board(board)
        return found is not None and any(model in tier and len(tier) > 1 for tier in found.tiers)

    @property
    def stress(self) -> tuple[WindowView, ...]:
        """The stress windows in the order of the plan."""
        return tuple(window for window in self.run.windows if window.stress)

    @property
    def normal(self) -> WindowView | None:
        """The calm window, if one was run."""
        return next((window for window in self.run.windows if not window.stress), None)

    @property
    def strictest(self) -> ProfileView | None:
        """The profile with the smallest drawdown limit."""
        return min(self.run.profiles, key=lambda profile: profile.drawdown_tolerance, default=None)

    @property
    def has_pipeline(self) -> bool:
        """Whether the stages were run."""
        return bool(self.run.paths or self.run.episodes or "bench.stage" in self.by_name)

    @property
    def has_histories(self) -> bool:
        """Whether any model has a history in a window and profile of the plan."""
        windows, profiles = (
            {window.name for window in self.run.windows},
            {profile.name for profile in self.run.profiles},
        )
        mine = (one for one in self.run.paths if not one.baseline and one.window in windows and one.profile in profiles)
        return any(len(path.nav) for path in mine)

    @property
    def has_questions(self) -> bool:
        """Whether the questions were asked."""
        return "bench.question" in self.by_name

    def one(self, name: str, **labels: str) -> Measurement | None:
        """The measurement with exactly these labels."""
        return self.by_id.get(measurement_id(name, labels))

    def every(self, name: str, **labels: str) -> Iterator[Measurement]:
        """All measurements of a name that have these labels among theirs."""
        for item in self.by_name.get(name, ()):
            if all(item.labels.get(key) == value for key, value in labels.items()):
                yield item

    def of_kind(self, *kinds: Kind) -> tuple[Verdict, ...]:
        """Verdicts of some kinds, in the order of the run."""
        return tuple(verdict for verdict in self.run.verdicts if kind_of(verdict) in kinds)

    def pair_level(self, board: str, first: str, second: str) -> Level:
        """At which level the order of two models is supported, whichever it is."""
        found = [
            self.verdicts.get(measurement_id("above", {"dimension": board, "high": high, "low": low}))
            for high, low in ((first, second), (second, first))
        ]
        levels = [verdict.publication_level for verdict in found if verdict is not None]
        return levels[0] if levels else "no-claim"

    def gate(self, model: str, profile: str) -> bool | None:
        """Whether a model stays within a profile's limit under stress; None where neither is supported."""
        verdict = self.verdicts.get(measurement_id("gate", {"model": model, "profile": profile}))
        if verdict is None or verdict.publication_level == "no-claim":
            return None
        falls = [m for m in self.every("bench.drawdown", model=model, profile=profile) if m.detail.get("stress")]
        return all(m.value is not None and m.value <= float(m.detail["tolerance"]) + ROUNDING for m in falls)

    def window(self, name: str) -> str:
        """How a page calls a window."""
        found = next((window for window in self.run.windows if window.name == name), None)
        return clean((found.title or found.name) if found else name, 60)

    def missing(self, command: Literal["pipeline", "qa"]) -> str:
        """That a part was not run, with the command that runs it."""
        part, adds = {
            "pipeline": ("The pipeline was not run", "adds it"),
            "qa": ("The questions were not asked", "adds them"),
        }[command]
        return f"{part}: “assaymark bench {command}” with the same plan and run folder {adds} to this page."


def ends_of(item: Measurement | None) -> tuple[float, float] | None:
    """The interval of a measurement, where it has one."""
    return None if item is None or item.low is None or item.high is None else (item.low, item.high)


def range_words(item: Measurement | None) -> str:
    """The interval alone, or why there is none: a point would rank the models."""
    if item is None or item.value is None:
        return why_none(item)
    ends = ends_of(item)
    return "no interval" if ends is None else span(*ends)


def sizes(wide: float) -> tuple[tuple[Literal["wide"], float], tuple[Literal["narrow"], float]]:
    """The kinds of a chart with their widths: on a wide page, and on a phone."""
    return ("wide", float(wide)), ("narrow", float(NARROW))


def why_none(item: Measurement | None) -> str:
    """Why a cell has no number, in few words: a page says once what models without a score lack."""
    return "no score" if item is not None and item.state.startswith("no score") else shown(item)


def board_title(name: str) -> str:
    """How a page calls a leaderboard.

    >>> board_title("all"), board_title("balanced")
    ('All profiles', 'Balanced profile')
    """
    return {ALL: "All profiles", QUESTIONS: "Questions"}.get(name, f"{clean(name, 40).capitalize()} profile")


def pipeline_boards(run: BenchRun) -> tuple[Leaderboard, ...]:
    """The leaderboards of the pipeline: over all profiles, then one a profile."""
    known = {profile.name for profile in run.profiles} | {ALL}
    return tuple(leaderboard for leaderboard in run.leaderboards if leaderboard.board.name in known)


def profile_word(name: str) -> str:
    """A profile's name as the head of a column."""
    return clean(name, 24).capitalize()


def shown_names(names: Sequence[str]) -> tuple[str, ...]:
    """Names of models, safe to show."""
    return tuple(clean(name, 60) for name in names)
