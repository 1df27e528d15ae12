"""The data behind the pages of a benchmark, its claims, and the tables of its leaderboards.

Measurements by name and labels:

``bench.level`` (board, model), ``contrast`` (dimension, high, low), ``order.*`` (dimension): leaderboards.
``bench.stage`` (model, profile, stage, windows), ``bench.ceiling`` (profile, stage): S1 to S5, CEPS and PAS.
``bench.adaptation`` (model), ``bench.stress`` (model, profile), ``bench.risk_safe`` (model, profile, scenario).
``bench.drawdown``, ``bench.sharpe``, ``bench.sharpe.contrast`` (model, profile, window), ``bench.performance`` (the
same and figure), ``bench.baseline`` (baseline, window, figure): histories.
``bench.question`` (model, condition, and one of template, regime, kind, or none for all), ``bench.dissociation``.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Final, Literal

from markupsafe import Markup

from assaymark.benchmark.episode import BaselineResult, MarketWindow
from assaymark.benchmark.market import BenchMarket, Window
from assaymark.benchmark.plan import BenchPlan, Profile, profile_named
from assaymark.benchmark.questions.answers import ScoredReply
from assaymark.benchmark.questions.payloads import Split, Template
from assaymark.benchmark.questions.templates import Question
from assaymark.benchmark.scores import EpisodeResult
from assaymark.claims.boards import MISSING, PIPELINE, Leaderboard
from assaymark.claims.messages import built_in_text, english
from assaymark.records import Level, Measurement, Verdict, measurement_id
from assaymark.report import blocks as b
from assaymark.report import text as t
from assaymark.report.blocks import MeasurementIndex, Segments, WithheldGroup, by_name
from assaymark.report.charts.intervals import interval_strip, score_axis, score_head
from assaymark.text import NBSP, clean, count, number, percent, prose

ALL: Final = "all"
"""The leaderboard over all profiles, and the label ``profile`` of measurements over all profiles."""

QUESTIONS: Final = "questions"
"""The leaderboard of the questions; every other leaderboard has the name of its profile."""


@dataclass(frozen=True, slots=True, eq=False)
class BenchRun:
    """All data that the pages of a benchmark show."""

    plan: BenchPlan
    plan_hash: str
    locked_at: str
    market: BenchMarket
    windows: Sequence[MarketWindow]
    leaderboards: tuple[Leaderboard, ...] = ()  # one per profile, one over all, one of the questions, as far as run
    verdicts: tuple[Verdict, ...] = ()
    measurements: Sequence[Measurement] = ()
    results: Sequence[EpisodeResult] = ()
    baselines: Sequence[BaselineResult] = ()
    answers: Mapping[str, Sequence[ScoredReply]] = field(default_factory=dict)  # by model
    notes: Sequence[str] = ()  # remarks for readers
    panel: str | None = None  # the report of the judged rationales, relative to this one
    pool: Sequence[Question] = ()  # the questions were drawn from it
    splits: Mapping[tuple[Template, Split], int] = field(default_factory=dict)  # questions of the whole set
    others: Mapping[str, Measurement] = field(default_factory=dict)  # CEPS under the other convention

    @property
    def title(self) -> str:
        """The title of the pages."""
        return self.plan.title or "PortBench"

    @property
    def profiles(self) -> tuple[Profile, ...]:
        """The profiles of the plan."""
        return tuple(map(profile_named, self.plan.pipeline.profiles))

    @property
    def built_in(self) -> dict[str, bool]:
        """The models, each with whether it is a rule of this package."""
        return {agent.name: agent.model.startswith("reference/") for agent in self.plan.models}


ROUNDING: Final = 1e-9
BenchKind = Literal["first", "gates", "gate", "beats", "dissociation", "above", "within", "other"]
KINDS: Final[tuple[BenchKind, ...]] = ("first", "gates", "gate", "beats", "dissociation", "above", "within", "other")
STAGES: Final[Mapping[str, tuple[str, str]]] = {
    "S1": ("outlook", "Market interpretation"), "S2": ("signals", "Signal generation"),
    "S3": ("weights", "Weight optimisation"), "S4": ("trading", "Execution"), "S5": ("risk", "Risk monitoring"),
}  # fmt: skip


def claim_kind(verdict: Verdict) -> BenchKind:
    """The kind of a benchmark claim, from its id."""
    name = verdict.claim.id.partition("[")[0]
    return next((kind for kind in KINDS if kind == name), "other")


@dataclass(frozen=True, slots=True, eq=False)
class BenchmarkIndex(MeasurementIndex):
    """A `BenchRun` with its look-ups; ``results`` excludes models that were left out for missing replies."""

    run: BenchRun
    names: tuple[str, ...]
    verdicts: Mapping[str, Verdict]
    windows: tuple[Window, ...]
    results: Sequence[EpisodeResult]

    @classmethod
    def of(cls, run: BenchRun) -> BenchmarkIndex:
        """Index a run. Models are listed by name: no page is sorted by a value without a supporting verdict."""
        names, named = tuple(sorted(model.name for model in run.plan.models)), by_name(run.measurements)
        verdicts, by_id = {v.claim.id: v for v in run.verdicts}, {item.id: item for item in run.measurements}
        lacking = [item for item in named.get(MISSING, ()) if item.labels["part"] == PIPELINE]
        gone = {item.labels["model"] for item in lacking if item.detail["left_out"]}
        results = [result for result in run.results if result.model not in gone]
        return cls(by_id, named, run, names, verdicts, tuple(window.spec for window in run.windows), results)

    @property
    def profile(self) -> str:
        """The label ``profile`` of most measurements: all profiles together, or the only one."""
        return ALL if len(self.run.profiles) != 1 else self.run.profiles[0].name

    def board(self, name: str | None) -> Leaderboard | None:
        """The leaderboard of a name; None if there is none."""
        return next((leaderboard for leaderboard in self.run.leaderboards if leaderboard.board.name == name), None)

    def shares_tier(self, board: str | None, model: str) -> bool:
        """True if a model cannot be ranked on a leaderboard, so that no page shows its score as a point."""
        leaderboard = self.board(board)
        return leaderboard is not None and any(model in tier and len(tier) > 1 for tier in leaderboard.tiers)

    @property
    def stress(self) -> tuple[Window, ...]:
        """The stress windows in the order of the plan."""
        return tuple(window for window in self.windows if window.kind == "stress")

    @property
    def normal(self) -> Window | None:
        """The calm window, if one was run."""
        return next((window for window in self.windows if window.kind == "normal"), None)

    @property
    def strictest(self) -> Profile | None:
        """The profile with the smallest drawdown limit."""
        return min(self.run.profiles, key=lambda profile: profile.drawdown_tolerance, default=None)

    @property
    def has_pipeline(self) -> bool:
        """True if the pipeline was run."""
        return bool(self.run.results or self.run.baselines or "bench.stage" in self.by_name)

    @property
    def has_histories(self) -> bool:
        """True if any model has a history in a window and profile of the plan."""
        windows, profiles = ({window.name for window in those} for those in (self.windows, self.run.profiles))
        return any(len(item.nav) for item in self.results if item.window in windows and item.profile in profiles)

    def of_kind(self, *kinds: BenchKind) -> tuple[Verdict, ...]:
        """Verdicts of some kinds, in the order of the run."""
        return tuple(verdict for verdict in self.run.verdicts if claim_kind(verdict) in kinds)

    def pair_level(self, board: str, first: str, second: str) -> Level:
        """The level of the supported order of two models, in either direction."""
        for high, low in ((first, second), (second, first)):
            verdict = self.verdicts.get(measurement_id("above", {"dimension": board, "high": high, "low": low}))
            if verdict is not None:
                return verdict.publication_level
        return "no-claim"

    def gate(self, model: str, profile: str) -> bool | None:
        """True if a model stays within a profile's limit under stress; None if no such verdict is supported."""
        labels = {"model": model, "profile": profile}
        verdict = self.verdicts.get(measurement_id("gate", labels))
        if verdict is None or verdict.publication_level == "no-claim":
            return None
        falls = [m for m in self.all("bench.drawdown", **labels) if m.detail.get("stress")]
        return all(m.value is not None and m.value <= float(m.detail["tolerance"]) + ROUNDING for m in falls)

    def window(self, name: str) -> str:
        """The title of a window."""
        match = next((window for window in self.windows if window.name == name), None)
        return clean((match.title or match.name) if match else name, 60)

    def missing(self, command: Literal["pipeline", "qa"]) -> str:
        """The notice that a part was not run, with the command that runs it."""
        part, adds = ("The pipeline was not run", "adds it")
        if command == "qa":
            part, adds = ("The questions were not asked", "adds them")
        return f"{part}: “assaymark bench {command}” with the same plan and run folder {adds} to this page."


def range_words(item: Measurement | None) -> str:
    """The interval alone, or the reason why there is none: a point estimate would rank the models."""
    return t.limits(item) if t.known(item) else missing_reason(item)


def missing_reason(item: Measurement | None) -> str:
    """The reason why a cell has no number, in short: a page states once why models have no score."""
    return "no score" if item is not None and item.state.startswith("no score") else t.as_text(item)


def board_title(name: str) -> str:
    """The title of a leaderboard."""
    return {ALL: "All profiles", QUESTIONS: "Questions"}.get(name, f"{clean(name, 40).capitalize()} profile")


def pipeline_boards(run: BenchRun) -> tuple[Leaderboard, ...]:
    """The leaderboards of the pipeline: over all profiles, then one per profile."""
    names = {profile.name for profile in run.profiles} | {ALL}
    return tuple(leaderboard for leaderboard in run.leaderboards if leaderboard.board.name in names)


def profile_word(name: str) -> str:
    """A profile's name as a column header."""
    return clean(name, 24).capitalize()


PAGE: Final = 140_000
"""Maximum bytes of cards on one page."""

SHOWN: Final = 4
"""The number of sentences of a level that are shown first."""

_SCOPES: Final = {
    "first": "a first rank", "within": "a pair within the margin", "gates": "drawdown limit, counted",
    "gate": "drawdown limit", "beats": "against equal weight", "dissociation": "questions and pipeline",
    "above": "a pair of models", "other": "benchmark",
}  # fmt: skip


def bench_levels(index: BenchmarkIndex) -> Iterator[b.ClaimList]:
    """The three levels in order; claims about pairs and single models are only on the page of all claims."""
    for level in t.LEVELS:
        quotes = tuple(bench_quote(index, v) for v in front_claims(index) if level == v.publication_level != "no-claim")
        groups = bench_withheld(index) if level == "no-claim" else ()
        yield b.ClaimList(level, t.TITLES[level], quotes[:SHOWN] or groups, quotes[SHOWN:])


def front_claims(index: BenchmarkIndex) -> list[Verdict]:
    """The verdicts of the first page, in order: the first leaderboard, limits, equal weight, then others."""
    counted_gates = {verdict.claim.dimension for verdict in index.of_kind("gates")}
    boards = {leaderboard.board.name: at for at, leaderboard in enumerate(index.run.leaderboards)}

    def place(verdict: Verdict) -> tuple[int, int]:
        kind, at = claim_kind(verdict), boards.get(verdict.claim.dimension, len(boards))
        return 1 if kind != "first" else 2 + at if at else 0, KINDS.index(kind)

    verdicts = index.of_kind("first", "gates", "gate", "beats", "dissociation")
    return sorted((v for v in verdicts if claim_kind(v) != "gate" or v.claim.dimension not in counted_gates), key=place)


def bench_quote(index: BenchmarkIndex, verdict: Verdict) -> b.ClaimQuote:
    """A supported claim with its condition and its text for the clipboard."""
    run, text = index.run, unbroken(verdict.claim.statement)
    condition = f"{built_in_note(index, verdict.claim.subjects)} {unbroken(verdict.condition or '')}".strip()
    copy = t.clipboard_text(text, condition, run.title, run.locked_at, verdict.plan_hash)
    return b.ClaimQuote(verdict.publication_level, text, condition, copy)


def claim_cards(index: BenchmarkIndex) -> list[b.Card]:
    """A card for every verdict: by leaderboard and kind, then by name; never by which of two models is higher."""
    boards = {leaderboard.board.name: at for at, leaderboard in enumerate(index.run.leaderboards)}

    def place(verdict: Verdict) -> tuple[int, int, tuple[str, ...], str]:
        kind, names = claim_kind(verdict), tuple(sorted(verdict.claim.subjects))
        claim_id = "" if kind in ("above", "within") else verdict.claim.id
        return boards.get(verdict.claim.dimension, len(boards)), KINDS.index(kind), names, claim_id

    cards = []
    for verdict in sorted(index.run.verdicts, key=place):
        level, links = verdict.publication_level, []
        # Its first measurements; two models in alphabetical order.
        for name in dict.fromkeys(verdict.measurements):
            if name in index.links:
                labels = index.by_id[name].labels
                pair = " and ".join(sorted(clean(labels[key], 60) for key in ("high", "low") if key in labels))
                others = [clean(labels[key], 60) for key in ("model", "profile", "window") if key in labels]
                words = ", ".join(filter(None, (pair, *others))) or "the correlation"
                links.append((words, index.links[name]))
        sources = b.chained(b.Linked(*link) for link in sorted(links)[:6])
        total = t.counted(len(set(verdict.measurements)), "measurement")
        about = b.Prose((f"Rests on {total}", *((": ", sources) if sources else ())), "tuple")
        claim = b.Prose(claim_subject(index, verdict), "text") if level == "no-claim" else bench_quote(index, verdict)
        reasons = (b.Prose(unbroken(reason), "why") for reason in verdict.reasons)
        cards.append(b.Card(level, t.TAGS[level], _SCOPES[claim_kind(verdict)], (claim, *reasons, about)))
    return cards


def built_in_note(index: BenchmarkIndex, models: Sequence[str]) -> str:
    """The notice that these models are built in, for every sentence that can be copied; else empty."""
    return built_in_text(english(), {}, index.run.built_in, models, made_by="models")


def unbroken(text: str) -> str:
    """A sentence of a verdict with no line break before a percent sign."""
    return prose(text, 600).replace(" %", f"{NBSP}%")


def claim_subject(index: BenchmarkIndex, verdict: Verdict) -> str:
    """The subject of an unsupported claim, without its direction."""
    subjects, dimension = sorted(clean(name, 60) for name in verdict.claim.subjects), clean(verdict.claim.dimension, 60)
    board, models = index.board(verdict.claim.dimension), t.listing(subjects)
    score = clean(board.board.words, 120) if board else dimension
    limit = f"Whether {models} {'stays' if len(subjects) == 1 else 'stay'} within the limit ({dimension})."
    return {
        "above": f"Any ranking of {models} on {score}.",
        "first": f"A first rank for {models} on {score}.",
        "within": f"That {models} score alike on {score}.",
        "beats": f"That {models} beats equal weight ({dimension}).",
        "gate": limit,
        "gates": limit,
        "dissociation": "Whether questions and pipeline rank the models alike.",
    }.get(claim_kind(verdict), f"A claim about {models or 'the models'} ({dimension}).")


def bench_withheld(index: BenchmarkIndex) -> tuple[WithheldGroup, ...]:
    """The unsupported claims of a run, grouped into a few lines with their numbers."""
    groups, boards, of = list[WithheldGroup](), index.run.leaderboards, defaultdict[str, list[Verdict]](list)
    for verdict in index.run.verdicts:
        if verdict.publication_level == "no-claim":
            of[claim_kind(verdict)].append(verdict)
    if orders := [*of["above"], *of["first"], *of["within"]]:
        # The number of unresolved pairs of a board, and the smallest adjusted p among them.
        parts = [
            f"{board_title(board.board.name)}, {board.open_pairs} of {board.pairs} "
            f"(smallest adjusted {t.p_words(board.least)}, needed {t.alpha(round(board.alpha, 4))})"
            for board in boards
            if board.open_pairs
        ]
        further = "further " if any(board.open_pairs < board.pairs for board in boards) else ""
        note: Segments = ((f"Pairs that are not resolved: {'; '.join(parts)}. ", False),) if parts else ()
        groups.append(WithheldGroup(f"Any {further}ranking of the models.", note, len(orders)))
    if beats := of["beats"]:
        # The number of intervals that contain zero, of others, and of missing ones, never the side.
        items = [index.by_id[name] for verdict in beats for name in verdict.measurements if name in index.by_id]
        ends = [bounds for item in items if (bounds := t.bounds_of(item)) is not None]
        across = sum(low <= 0 <= high for low, high in ends)
        numbers = "The one Sharpe difference has an interval that contains zero. "
        if across != len(beats):
            sides = (
                (across, "has an interval that contains zero", "have an interval that contains zero"),
                (len(ends) - across, "is not shown to be above it", "are not shown to be above it"),
                (len(beats) - len(ends), "has no interval", "have no interval"),
            )
            counts = [f"{count(size)} {singular if size == 1 else many}" for size, singular, many in sides if size]
            numbers = f"Of {t.counted(len(beats), 'Sharpe difference')} {t.listing(counts)}. "
        elif across > 1:
            numbers = f"All {count(across)} Sharpe differences have intervals that contain zero. "
        other = "any model" if len(beats) == len(index.of_kind("beats")) else "any other model or profile"
        models = clean(index.names[0], 60) if len(index.names) == 1 else other
        groups.append(WithheldGroup(f"That {models} beats equal weight.", ((numbers, False),), len(beats)))
    # Limits without all stress windows: profiles with their reasons, each reason once.
    by_reason: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for verdict in (verdict for verdict in index.of_kind("gates", "gate") if verdict.publication_level == "no-claim"):
        name = clean(verdict.claim.dimension.removeprefix("drawdown, "), 40)
        by_reason[" ".join(map(unbroken, verdict.reasons))][name] += 1
    alike: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for reason, names in by_reason.items():
        alike[t.listing([*names])][reason] = names.total()
    for profiles, reasons in alike.items():
        note = tuple((f"{reason} ", False) for reason in reasons)
        groups.append(WithheldGroup(f"Whether limits are kept under stress ({profiles}).", note, sum(reasons.values())))
    for verdict in of["dissociation"]:
        reasons_of = " ".join(map(unbroken, verdict.reasons))
        groups.append(WithheldGroup(claim_subject(index, verdict), ((f"{reasons_of} ", False),), 1))
    return tuple(groups)


@dataclass(frozen=True, slots=True)
class TierHeading:
    """A tier of a leaderboard; ``licensed`` says whether the score of its only member may be shown."""

    members: tuple[str, ...]
    places: str
    words: str
    level: Level | None
    licensed: bool
    ranks: Mapping[str, str]  # possible ranks by member, in words; empty if those of the tier

    @property
    def shown(self) -> b.Inline:
        """The tier's heading as a table row."""
        level = () if self.level is None else (" ", b.Mark(self.level, t.TAGS[self.level]))
        return (b.bold(self.places), f" {self.words}" if self.words else "", *level)


def stage_tables(index: BenchmarkIndex) -> tuple[b.Group, ...]:
    """A table for every leaderboard of the pipeline, the one over all profiles first."""
    built_in, groups = index.run.built_in, list[b.Group]()
    for at, board in enumerate(pipeline_boards(index.run), 1):
        ends = [end for item in board.levels.values() for end in (item.low, item.high) if end is not None]
        ends += [item.value for item in board.levels.values() if item.value is not None and not ends]
        axis, profile, rows = score_axis(ends), board.board.name, list[b.PageRow]()
        over_all = profile == ALL
        header: tuple[b.Inline, ...] = (
            "Model", *((f"{name} ", b.small(words)) for name, (words, _) in STAGES.items()),
            ("CEPS", Markup(score_head(axis))), f"CEPS, {percent(index.run.plan.level)} interval",
            "Stress limits" if over_all else "Stress limit",
        )  # fmt: skip
        for head in (*tier_headings(index, board), *unscored_headings(index, board)):
            rows.append(b.PageRow((head.shown,)))
            for model in head.members:
                item = board.levels.get(model) or index.get("bench.level", model=model, board=profile)
                strip, whole = "", index.link(item, range_words(item))
                score: b.Inline = whole
                if t.known(item):
                    strip = Markup(interval_strip(axis, t.bounds_of(item), item.value if head.licensed else None))
                    if head.licensed:
                        score = (index.link(item, number(item.value)), f" ({whole})")
                mixed = built_in.get(model) and not all(built_in.values())
                remarks = (head.ranks.get(model, ""), "reference model" if mixed else "")
                labels = {"model": model, "profile": profile, "windows": "all"}
                cells = (stage_cell(index, index.get("bench.stage", **labels, stage=stage)) for stage in STAGES)
                # The verdict on the limit, or on those of all profiles.
                profiles = [profile.name for profile in index.run.profiles] if over_all else [profile]
                gates = {name: index.gate(model, name) for name in profiles}
                limit: b.Inline = b.Styled("not decided", "gap")
                if gates and all(value is not None for value in gates.values()):
                    broken = [profile_word(name).lower() for name, value in gates.items() if not value]
                    note = (b.small(t.listing(broken) if broken else f"all {count(len(gates))} profiles"),)
                    verdict = b.bold("fails" if broken else "passes")
                    limit = pass_mark(not broken), verdict, *(note if len(gates) > 1 else ())
                name = (clean(model, 60), *(b.small(words) for words in remarks if words))
                rows.append(b.PageRow((name, *cells, strip, score, limit)))
        ceiling = [index.get("bench.ceiling", profile=profile, stage=stage) for stage in STAGES]
        if all(ceiling):
            top = index.get("bench.ceiling", profile=profile, stage="CEPS")
            cells, best = (stage_cell(index, item) for item in ceiling), index.link(top, t.as_text(top))
            rows.append(b.PageRow(((b.bold("Ceiling"), " true answers at every stage"),)))
            rows.append(b.PageRow((("true answers", b.small("no model")), *cells, "", best, "")))
        columns = ("", *("hc",) * len(STAGES), "st", "iv", "gt")
        title, none = board_title(profile), b.Prose("No model has a score on this board.", "none")
        table = b.Table(header, tuple(rows), summary="", style="heat", label=title, styles=columns)
        notes = b.notes((design_note(index, profile),))
        groups.append(b.Group(title, (table, *(() if board.models else (none,)), *notes), f"board-{at}"))
    return tuple(groups)


def design_note(index: BenchmarkIndex, board: str) -> str:
    """The test of differences on a leaderboard, autocorrelation of clusters, and the smallest detectable difference."""
    tests = {item.method.partition("; ")[2].partition(",")[0] for item in index.all("contrast", board)}
    body = [f"Differences: {t.listing(sorted(tests - {''}))}."] if tests - {""} else []
    serial = index.get("order.autocorrelation", board)
    if t.known(serial):
        lags = [number(lag) for lag in serial.detail["lags"]]
        limit = f"flagged above {number(serial.detail['flag'])}"
        effect = ", so every ranking is at most qualified" if serial.detail["flagged"] else ""
        text = f"Autocorrelation of neighbouring clusters: {lags[0]} ({limit}{effect})."
        if serial.detail["order"] == "consecutive":
            text = f"Autocorrelation of clusters at lags 1 to {len(lags)}: {', '.join(lags)} (lag 1 {limit})."
        body.append(text)
    reach = index.get("order.detectable", board)
    if t.known(reach):
        leader, pair = (number(float(reach.detail[name]), 3) for name in ("leader", "pair"))
        power = percent(float(reach.detail["power"]))
        body.append(f"Smallest detectable difference (power {power}): {leader} for a leader, {pair} for a single pair.")
    return " ".join(body)


def unscored_headings(index: BenchmarkIndex, board: Leaderboard) -> Iterator[TierHeading]:
    """The groups below the tiers: models without a score, and models that were left out."""
    shares = [item for item in index.all(MISSING, part=board.board.family) if item.detail["left_out"]]
    left_out = {item.labels["model"] for item in shares}
    for gone, words in ((False, "in S3 to S5, so no CEPS and no rank"),
                        (True, "left out: too many of the replies did not come")):  # fmt: skip
        if members := tuple(name for name in board.unscored if (name in left_out) == gone):
            yield TierHeading(members, "No score", words, None, licensed=False, ranks={})


def tier_headings(index: BenchmarkIndex, board: Leaderboard) -> Iterator[TierHeading]:
    """The tiers of a leaderboard from the top, models by name, each with the level of its separation."""
    place, alone, of = 1, len(board.models) == 1, count(len(board.models))
    for members in board.tiers:
        names, size = tuple(sorted(members)), len(members)
        others = [name for name in board.models if name not in members]
        level = t.weakest(index.pair_level(board.board.name, one, two) for one, two in product(members, others))
        places, words = f"Rank {t.ordinal_span(place, place + size - 1)}", "cannot be ranked" if size > 1 else ""
        if not others:
            places = "One model" if size == 1 else f"All {count(size)}"
            words = words or "no other model to compare it with"
        licensed = alone or (size == 1 and level != "no-claim")
        ranks = {name: f"rank {t.ordinal_span(*board.ranks[name])} of {of}" for name in names if size > 1}
        yield TierHeading(names, places, words, None if alone else level, licensed, ranks)
        place += size


def stage_cell(index: BenchmarkIndex, item: Measurement | None) -> b.Share:
    """A mean score with the longer half of its interval."""
    if not t.known(item):
        return b.Share(None, missing_reason(item))
    ends = t.bounds_of(item)
    half = "" if ends is None else f"±{max(ends[1] - item.value, item.value - ends[0]):.2f}".replace("±0.", "±.")
    return b.Share(item.value, index.link(item, number(item.value)), half)


def pass_mark(passes: bool) -> b.Mark:
    """The icon of a limit that is kept or exceeded."""
    return b.Mark("supported" if passes else "contradicted", style="gm")


def replies_note(states: Iterable[str], rule: str) -> str:
    """The number of replies and of those that could not be read whole, with the ``rule`` that scores them."""
    counts = Counter(states)
    kinds = ((("partial",), "were read in part"), (("invalid",), "could not be read"),
             (("refused", "truncated"), "were refused or cut off"))  # fmt: skip
    sums = ((sum(counts[state] for state in some), words) for some, words in kinds)
    if parts := [f"{count(n)} {words}" for n, words in sums if n]:
        return f"Of {t.counted(counts.total(), 'reply', 'replies')} {t.listing(parts)}; {rule}."
    every = "The" if counts.total() == 1 else "All"
    return f"{every} {t.counted(counts.total(), 'reply', 'replies')} could be read." if counts else ""


def stage_note(index: BenchmarkIndex) -> str:
    """Denominators, method and unreadable replies, in a few sentences."""
    of, stages = "", list(index.all("bench.stage", stage="S1", windows="all"))
    if stages:
        sizes = sorted({m.n for m in stages if m.labels.get("profile") == ALL} or {m.n for m in stages})
        items = " to ".join(dict.fromkeys((count(sizes[0]), count(sizes[-1]))))
        of = f"Means of {items} {clean(stages[0].n_of, 30)} a model. "
    levels = [item for board in pipeline_boards(index.run) for item in board.levels.values()]
    methods = {clean(item.method, 160).rstrip(".") for item in levels if item.low is not None}
    method = f"Intervals: {t.listing(sorted(methods))}." if methods else "No interval can be given."
    states = (read.state for one in index.run.results for date in one.dates for read in date.answers.states.values())
    rule = "what was not said is scored by the rule of the plan (neutral view, hold, no trade)"
    return (
        f"{of}A stronger tint is higher, from 0 to 1; ± reaches the farther end of the "
        f"{percent(index.run.plan.level)} interval. A point is drawn only where the rank is supported. {method} "
        "A tier ends where every model in it is shown to score above every model below it; models inside a tier cannot "
        f"be ranked, and the ranks that each can have follow from its supported pairs. {replies_note(states, rule)}"
    )


def bench_lede(index: BenchmarkIndex) -> str:
    """The run in one line: models, decisions, instruments, costs, convention."""
    run, history = index.run, index.run.market.history
    parts = [t.plural(len(index.names), "model").capitalize()]
    if index.has_pipeline:
        total = sum(len(window.decisions) for window in run.windows)
        decisions = t.counted(total, f"{run.plan.pipeline.frequency} decision")
        parts.append(f"{decisions} in {t.plural(len(run.windows), 'window')}")
        parts.append(f"{t.counted(run.market.universe.size, 'instrument')}, costs {run.plan.pipeline.cost_bps:g} bps")
    if "bench.question" in index.by_name:
        asked = sum(map(len, run.answers.values()))
        parts.append(f"{t.counted(asked, 'answer')} to questions" if asked else "questions")
    follow = "the paper’s formulas" if run.plan.convention == "paper" else "the authors’ public code"
    source = "the embedded synthetic market" if history.source == "synthetic" else history.source
    market = clean(f"{source}, snapshot {history.snapshot}", 160).rstrip(".")
    return f"{', '.join(parts)}. Scores follow {follow}. Market: {market}."
