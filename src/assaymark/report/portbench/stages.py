"""The leaderboards: five stages, the score with its interval, and the drawdown limit, tier by tier."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from markupsafe import Markup

from assaymark.claims.boards import Leaderboard
from assaymark.records import Level, Measurement
from assaymark.report.blocks import Block, Group, Inline, Mark, Row, Share, Styled, Table, Text, bold, notes, small
from assaymark.report.charts.intervals import interval_strip, score_axis, score_head
from assaymark.report.levels import TAGS
from assaymark.report.portbench.book import (
    STAGES,
    BenchmarkIndex,
    board_title,
    ends_of,
    pipeline_boards,
    profile_word,
    range_words,
    why_none,
)
from assaymark.report.portbench.inputs import ALL
from assaymark.report.study.controls import weakest
from assaymark.report.text import counted, listing, ordinal_span, plural, shown
from assaymark.text import clean, count, number, percent


@dataclass(frozen=True, slots=True)
class GroupHead:
    """A tier of a leaderboard; ``licensed`` says whether the score of its only member may be shown.

    ``ranks`` are the ranks that each member can have, in words; empty where the tier says as much.
    """

    members: tuple[str, ...]
    places: str
    words: str
    level: Level | None
    licensed: bool
    ranks: Mapping[str, str]

    @property
    def shown(self) -> Inline:
        """The head as a row of a table shows it."""
        level = () if self.level is None else (" ", Mark(self.level, TAGS[self.level]))
        return (bold(self.places), f" {self.words}" if self.words else "", *level)


def stage_tables(book: BenchmarkIndex) -> tuple[Group, ...]:
    """A table for every leaderboard of the pipeline, the one over all profiles first."""
    return tuple(_table(book, board, f"board-{at}") for at, board in enumerate(pipeline_boards(book.run), 1))


def _table(book: BenchmarkIndex, board: Leaderboard, anchor: str) -> Group:
    ends = [end for item in board.levels.values() for end in (item.low, item.high) if end is not None]
    ends += [item.value for item in board.levels.values() if item.value is not None and not ends]
    axis, profile = score_axis(ends), board.board.name
    heads: tuple[Inline, ...] = (
        "Model",
        *((f"{name} ", small(words)) for name, (words, _) in STAGES.items()),
        ("CEPS", Markup(score_head(axis))),
        f"CEPS, {percent(book.run.level)} interval",
        "Stress limits" if profile == ALL else "Stress limit",
    )
    built_in, rows = {one.name for one in book.models if one.reference}, list[Row]()
    for head in (*group_heads(book, board), *unscored_heads(book, board)):
        rows.append(Row((head.shown,)))
        for model in head.members:
            item = board.levels.get(model) or book.one("bench.level", model=model, board=profile)
            strip, whole = "", book.to(item, range_words(item))
            score: Inline = whole
            if item is not None and item.value is not None:
                point = item.value if head.licensed else None
                strip = Markup(interval_strip(axis, item.low, item.high, point))
                if point is not None:
                    score = (book.to(item, number(point)), f" ({whole})")
            mixed = model in built_in and len(built_in) < len(book.models)
            said = (head.ranks.get(model, ""), "reference model" if mixed else "")
            labels = {"model": model, "profile": profile, "windows": "all"}
            cells = (stage_cell(book, book.one("bench.stage", **labels, stage=stage)) for stage in STAGES)
            limit = _gate(book, model, [p.name for p in book.run.profiles] if profile == ALL else [profile])
            name = (clean(model, 60), *(small(words) for words in said if words))
            rows.append(Row((name, *cells, strip, score, limit)))
    ceiling = [book.one("bench.ceiling", profile=profile, stage=stage) for stage in STAGES]
    if all(ceiling):
        best = book.one("bench.ceiling", profile=profile, stage="CEPS")
        cells = (stage_cell(book, item) for item in ceiling)
        rows.append(Row(((bold("Ceiling"), " true answers at every stage"),)))
        rows.append(Row((("true answers", small("no model")), *cells, "", book.to(best, shown(best)), "")))
    columns = ("", *("hc",) * len(STAGES), "st", "iv", "gt")
    title, note = board_title(profile), design_note(book, profile)
    blocks: list[Block] = [Table(heads, tuple(rows), summary="", style="heat", label=title, columns=columns)]
    blocks += [] if board.models else [Text("No model has a score on this board.", "none")]
    return Group(title, (*blocks, *notes((note,))), anchor)


def design_note(book: BenchmarkIndex, board: str) -> str:
    """How differences on a board are tested, whether neighbouring clusters depend, and the smallest detectable gap."""
    tests = {item.method.partition("; ")[2].partition(",")[0] for item in book.every("contrast", dimension=board)}
    said = [f"Differences: {listing(sorted(tests - {''}))}."] if tests - {""} else []
    serial = book.one("order.autocorrelation", dimension=board)
    if serial is not None and serial.value is not None:
        lags = [number(lag) for lag in serial.detail["lags"]]
        limit = f"flagged above {number(serial.detail['flag'])}"
        effect = ", so every order is at most qualified" if serial.detail["flagged"] else ""
        text = f"Autocorrelation of neighbouring clusters: {lags[0]} ({limit}{effect})."
        if serial.detail["order"] == "consecutive":
            text = f"Autocorrelation of clusters at lags 1 to {len(lags)}: {', '.join(lags)} (lag 1 {limit})."
        said.append(text)
    reach = book.one("order.detectable", dimension=board)
    if reach is not None and reach.value is not None:
        leader, pair = (number(float(reach.detail[name]), 3) for name in ("leader", "pair"))
        power = percent(float(reach.detail["power"]))
        said.append(f"Smallest detectable difference (power {power}): {leader} for a leader, {pair} for a single pair.")
    return " ".join(said)


def unscored_heads(book: BenchmarkIndex, board: Leaderboard) -> Iterator[GroupHead]:
    """What stands below the tiers: models that nothing is said of, and models that were left out."""
    shares = [item for item in book.every("missing.share", part=board.board.family) if item.detail["left_out"]]
    left_out = {item.labels["model"] for item in shares}
    for gone, words in (
        (False, "in S3 to S5, so no CEPS and no rank"),
        (True, "left out: too many of the replies did not come"),
    ):
        if members := tuple(name for name in board.unscored if (name in left_out) == gone):
            yield GroupHead(members, "No score", words, None, licensed=False, ranks={})


def group_heads(book: BenchmarkIndex, board: Leaderboard) -> Iterator[GroupHead]:
    """The tiers of a leaderboard from the top, models by name inside, each at the level that sets it apart."""
    place, alone, of = 1, len(board.models) == 1, count(len(board.models))
    for members in board.tiers:
        names, size = tuple(sorted(members)), len(members)
        others = [name for name in board.models if name not in members]
        level = weakest(book.pair_level(board.board.name, one, two) for one, two in product(members, others))
        places, words = f"Rank {ordinal_span(place, place + size - 1)}", "cannot be ranked" if size > 1 else ""
        if not others:
            places = "One model" if size == 1 else f"All {count(size)}"
            words = words or "no other model to compare it with"
        licensed = alone or (size == 1 and level != "no-claim")
        ranks = {name: f"rank {ordinal_span(*board.ranks[name])} of {of}" for name in names if size > 1}
        yield GroupHead(names, places, words, None if alone else level, licensed, ranks)
        place += size


def stage_cell(book: BenchmarkIndex, item: Measurement | None) -> Share:
    """A mean score with half of its interval."""
    if item is None or item.value is None:
        return Share(None, why_none(item))
    ends = ends_of(item)
    half = "" if ends is None else f"±{max(ends[1] - item.value, item.value - ends[0]):.2f}".replace("±0.", "±.")
    return Share(item.value, book.to(item, number(item.value)), half)


def pass_mark(passes: bool) -> Mark:
    """The mark of a limit that is kept or broken."""
    return Mark("supported" if passes else "contradicted", style="gm")


def _gate(book: BenchmarkIndex, model: str, profiles: Sequence[str]) -> Inline:
    """Whether a limit, or those of all profiles, are kept."""
    kept = {name: book.gate(model, name) for name in profiles}
    if not kept or any(value is None for value in kept.values()):
        return Styled("not decided", "gap")
    broken = [profile_word(name).lower() for name, value in kept.items() if not value]
    note = listing(broken) if broken else f"all {count(len(kept))} profiles"
    return pass_mark(not broken), bold("fails" if broken else "passes"), *((small(note),) if len(kept) > 1 else ())


def stage_note(book: BenchmarkIndex) -> str:
    """Denominators, method and unreadable replies, in a few sentences."""
    of, stages = "", list(book.every("bench.stage", stage="S1", windows="all"))
    if stages:
        sizes = sorted({item.n for item in stages if item.labels.get("profile") == ALL} or {item.n for item in stages})
        items = " to ".join(dict.fromkeys((count(sizes[0]), count(sizes[-1]))))
        of = f"Means of {items} {clean(stages[0].n_of, 30)} a model. "
    levels = [item for board in pipeline_boards(book.run) for item in board.levels.values()]
    methods = {clean(item.method, 160).rstrip(".") for item in levels if item.low is not None}
    method = f"Intervals: {listing(sorted(methods))}." if methods else "No interval can be given."
    return (
        f"{of}A stronger tint is higher, from 0 to 1; ± is half of the {percent(book.run.level)} interval. "
        f"A point is drawn only where the rank is supported. {method} A tier ends where every model in it is "
        "shown to score above every model below it; models inside a tier cannot be ranked, and the ranks that each can "
        f"have follow from its supported pairs. {_unread(book.run.replies)}"
    )


def _unread(replies: Mapping[str, int]) -> str:
    """How many replies could not be read, or only in part."""
    total = sum(replies.values())
    if not total:
        return ""
    kinds = (
        (("partial",), "were read in part"),
        (("invalid",), "could not be read"),
        (("refused", "truncated"), "were refused or cut off"),
    )
    sums = ((sum(replies.get(state, 0) for state in states), words) for states, words in kinds)
    said = [f"{count(n)} {words}" for n, words in sums if n]
    if not said:
        return "The one reply could be read." if total == 1 else f"All {count(total)} replies could be read."
    return (
        f"Of {counted(total, 'reply', 'replies')} {listing(said)}; what was not said is scored by the rule of the "
        "plan (neutral view, hold, no trade)."
    )


def lede(book: BenchmarkIndex) -> str:
    """The run in one line: models, decisions, instruments, costs, convention."""
    run = book.run
    parts = [plural(len(run.models), "model").capitalize()]
    if book.has_pipeline:
        decisions = sum(window.decisions for window in run.windows)
        windows = plural(len(run.windows), "window")
        parts.append(f"{counted(decisions, f'{clean(run.frequency, 20)} decision')} in {windows}")
        parts.append(f"{counted(run.instruments, 'instrument')}, costs {run.cost_bps:g} bps")
    if book.has_questions:
        asked = sum(run.answers.values())
        parts.append(f"{counted(asked, 'answer')} to questions" if asked else "questions")
    follow = "the paper’s formulas" if run.convention == "paper" else "the authors’ public code"
    return f"{', '.join(parts)}. Scores follow {follow}. Market: {clean(run.market, 160).rstrip('.')}."
