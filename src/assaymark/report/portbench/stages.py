"""The leaderboards: five stages, the score with its interval, and the drawdown limit, in classes and not in ranks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from assaymark.claims.boards import Standing
from assaymark.records import Level, Measurement
from assaymark.report.figures.score import ScoreAxis, score_axis, score_head
from assaymark.report.formats import clean, count, counted, listing, number, ordinal_span, percent, plural, shown, span
from assaymark.report.levels import TAGS
from assaymark.report.licence import weakest
from assaymark.report.portbench.book import STAGES, BenchBook, board_title, pipeline_boards, profile_word
from assaymark.report.portbench.figures import interval_strip
from assaymark.report.portbench.inputs import ALL


@dataclass(frozen=True, slots=True)
class StageCell:
    """A mean score as it is set; ``share`` is its tint, None for a cell without a number."""

    share: str | None
    value: str
    half: str


@dataclass(frozen=True, slots=True)
class GateMark:
    """Whether a limit is kept, as glyph and word; ``glyph`` is empty where no verdict says it."""

    glyph: str
    word: str
    note: str


@dataclass(frozen=True, slots=True)
class StageRow:
    """One model. ``point`` is its score where its position may be claimed, else empty."""

    model: str
    note: str
    cells: tuple[StageCell, ...]
    strip: str
    point: str
    interval: str
    gate: GateMark


@dataclass(frozen=True, slots=True)
class StageGroup:
    """A run of places: its words, the level at which its position may be said, and its models by name."""

    places: str
    words: str
    level: Level | None
    tag: str
    rows: tuple[StageRow, ...]


@dataclass(frozen=True, slots=True)
class GroupHead:
    """A group of a leaderboard; ``licensed`` says whether a score of its own may stand for its only member."""

    members: tuple[str, ...]
    places: str
    words: str
    level: Level | None
    tag: str
    licensed: bool


@dataclass(frozen=True, slots=True)
class StageTable:
    """One leaderboard; ``head`` are the ticks above the intervals, ``ceiling`` and ``best`` what the answers score."""

    id: str
    title: str
    gate: str
    head: str
    groups: tuple[StageGroup, ...]
    ceiling: tuple[StageCell, ...]
    best: str
    empty: str


def stage_tables(book: BenchBook) -> tuple[StageTable, ...]:
    """A table for every leaderboard of the pipeline, the one over all profiles first."""
    return tuple(_table(book, standing) for standing in pipeline_boards(book.run))


def _table(book: BenchBook, standing: Standing) -> StageTable:
    ends = [end for item in standing.levels.values() for end in (item.low, item.high) if end is not None]
    ends += [item.value for item in standing.levels.values() if item.value is not None and not ends]
    axis = score_axis(ends)
    profile = standing.board.name
    ceiling = book.one("bench.ceiling", profile=profile, stage="CEPS")
    return StageTable(
        id=f"board-{[s.board.name for s in pipeline_boards(book.run)].index(profile) + 1}",
        title=board_title(standing),
        gate="Stress limits" if profile == ALL else "Stress limit",
        head=score_head(axis),
        groups=_groups(book, standing, axis),
        ceiling=_ceiling(book, profile),
        best=book.to(ceiling, shown(ceiling)),
        empty="" if standing.models else "No model has a score on this board.",
    )


def _groups(book: BenchBook, standing: Standing, axis: ScoreAxis) -> tuple[StageGroup, ...]:
    return tuple(
        StageGroup(
            places=head.places,
            words=head.words,
            level=head.level,
            tag=head.tag,
            rows=tuple(_row(book, standing, name, axis, licensed=head.licensed) for name in head.members),
        )
        for head in group_heads(book, standing)
    )


def group_heads(book: BenchBook, standing: Standing) -> Iterator[GroupHead]:
    """The groups of a leaderboard from high to low, models by name inside, each at the level of its position."""
    place = 1
    alone = len(standing.models) == 1
    for members in standing.groups:
        others = [name for name in standing.models if name not in members]
        levels = [book.pair_level(standing, one, two) for one, two in product(members, others)]
        level = weakest([*levels, "qualified"] if len(members) > 1 and levels else levels)
        places = ordinal_span(place, place + len(members) - 1)
        words = "one class, order withheld" if len(members) > 1 else ""
        if not others:
            places, words = _everybody(len(members))
        licensed = alone or (len(members) == 1 and level != "no-claim")
        names = tuple(sorted(members))
        yield GroupHead(names, places, words, None if alone else level, TAGS[level], licensed)
        place += len(members)


def _everybody(size: int) -> tuple[str, str]:
    """The head of the only group."""
    if size == 1:
        return "One model", "nothing to stand above or below"
    return f"All {count(size)}", "one class, any order withheld"


def _row(book: BenchBook, standing: Standing, model: str, axis: ScoreAxis, *, licensed: bool) -> StageRow:
    item = standing.levels[model]
    profile = standing.board.name
    known = next((one for one in book.models if one.name == model), None)
    mixed = not all(one.reference for one in book.models)
    point = item.value if licensed else None
    ends = "single observation" if item.low is None or item.high is None else span(item.low, item.high)
    return StageRow(
        model=clean(model, 60),
        note="reference model" if known is not None and known.reference and mixed else "",
        cells=tuple(stage_cell(book, book.one("bench.stage", **_labels(model, profile, stage))) for stage in STAGES),
        strip=interval_strip(axis, item.low, item.high, point),
        point=book.to(item, number(point)) if point is not None else "",
        interval=ends if point is not None else book.to(item, ends),
        gate=_gate(book, model, [p.name for p in book.run.profiles] if profile == ALL else [profile]),
    )


def _ceiling(book: BenchBook, profile: str) -> tuple[StageCell, ...]:
    """What the answers themselves score on each stage; nothing where that was not measured."""
    found = [book.one("bench.ceiling", profile=profile, stage=stage) for stage in STAGES]
    return tuple(stage_cell(book, item) for item in found) if all(found) else ()


def _labels(model: str, profile: str, stage: str) -> dict[str, str]:
    return {"model": model, "profile": profile, "stage": stage, "windows": "all"}


def stage_cell(book: BenchBook, item: Measurement | None) -> StageCell:
    """A mean score with half of its interval."""
    if item is None or item.value is None:
        return StageCell(None, shown(item), "")
    half = ""
    if item.low is not None and item.high is not None:
        half = f"±{max(item.high - item.value, item.value - item.low):.2f}".replace("±0.", "±.")
    return StageCell(f"{min(max(item.value, 0.0), 1.0):.2f}", book.to(item, number(item.value)), half)


def _gate(book: BenchBook, model: str, profiles: Sequence[str]) -> GateMark:
    """One limit, or those of all profiles."""
    kept = {name: book.gate(model, name) for name in profiles}
    if not kept or any(value is None for value in kept.values()):
        return GateMark("", "not decided", "")
    broken = [profile_word(name).lower() for name, value in kept.items() if not value]
    if not broken:
        return GateMark("pass", "passes", f"all {count(len(kept))} profiles" if len(kept) > 1 else "")
    return GateMark("fail", "fails", listing(broken) if len(kept) > 1 else "")


def stage_note(book: BenchBook) -> str:
    """Denominators, method and unreadable replies, in a few sentences."""
    stages = list(book.every("bench.stage", stage="S1", windows="all"))
    of = ""
    if stages:
        sizes = sorted({item.n for item in stages if item.labels.get("profile") == ALL} or {item.n for item in stages})
        items = " to ".join(dict.fromkeys((count(sizes[0]), count(sizes[-1]))))
        of = f"Means of {items} {clean(stages[0].n_of, 30)} a model. "
    return (
        f"{of}A stronger tint is higher, from 0 to 1; ± is half of the {percent(book.run.level)} interval. "
        "A point is drawn only where the position may be claimed. "
        f"{_method(book)} A group ends where everybody in it differs significantly from everybody below it, after "
        f"Holm. {_unread(book)}"
    )


def _method(book: BenchBook) -> str:
    items = [item for standing in pipeline_boards(book.run) for item in standing.levels.values()]
    methods = {clean(item.method, 160).rstrip(".") for item in items if item.low is not None}
    return f"Intervals: {listing(sorted(methods))}." if methods else "No interval can be given."


def _unread(book: BenchBook) -> str:
    """How many replies could not be read, or only in part."""
    total = sum(book.run.replies.values())
    if not total:
        return ""
    said = []
    for state, words in (("partial", "were read in part"), ("invalid", "could not be read")):
        if number_of := book.run.replies.get(state, 0):
            said.append(f"{count(number_of)} {words}")
    lost = book.run.replies.get("refused", 0) + book.run.replies.get("truncated", 0)
    if lost:
        said.append(f"{count(lost)} were refused or cut off")
    if not said:
        return "The one reply could be read." if total == 1 else f"All {count(total)} replies could be read."
    return (
        f"Of {counted(total, 'reply', 'replies')} {listing(said)}; what was not said is scored by the rule of the "
        "plan (neutral view, hold, no trade)."
    )


def lede(book: BenchBook) -> str:
    """The run in one line: models, decisions, instruments, costs, convention."""
    run = book.run
    decisions = sum(window.decisions for window in run.windows)
    parts = [plural(len(run.models), "model").capitalize()]
    if book.has_pipeline:
        windows = plural(len(run.windows), "window")
        parts.append(f"{counted(decisions, f'{clean(run.frequency, 20)} decision')} in {windows}")
        parts.append(f"{counted(run.instruments, 'instrument')}, costs {run.cost_bps:g} bps")
    if book.has_questions:
        asked = sum(run.answers.values())
        parts.append(f"{counted(asked, 'answer')} to questions" if asked else "questions")
    follow = (
        "Scores follow the paper’s formulas."
        if run.convention == "paper"
        else "Scores follow the authors’ public code."
    )
    return f"{', '.join(parts)}. {follow} Market: {clean(run.market, 160).rstrip('.')}."
