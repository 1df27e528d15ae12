"""Supported claims, what is not supported and why, one card for every verdict, and the tables of the leaderboards.

The first page has first ranks, counts of limits, comparisons with equal weight, and whether the questions rank the
models as the pipeline does; a claim that is not supported is listed without its direction."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final

from markupsafe import Markup

from assaymark.claims.boards import Leaderboard
from assaymark.claims.messages import english, stand_ins
from assaymark.records import Level, Measurement, Verdict
from assaymark.report import blocks as b
from assaymark.report import text as t
from assaymark.report.blocks import SaidLevel, Segments, WithheldGroup
from assaymark.report.charts.intervals import interval_strip, score_axis, score_head
from assaymark.report.portbench import book as bench
from assaymark.report.portbench.book import BenchmarkIndex, kind_of
from assaymark.text import NBSP, clean, count, number, percent, prose

PAGE: Final = 140_000
"""Bytes of cards on one page."""

SHOWN: Final = 4
"""How many sentences of a level a reader meets first."""

_SCOPES: Final = {
    "first": "a first rank", "within": "a pair within the margin", "gates": "drawdown limit, counted",
    "gate": "drawdown limit", "beats": "against equal weight", "dissociation": "questions and pipeline",
    "above": "a pair of models", "other": "benchmark",
}  # fmt: skip


def said_levels(book: BenchmarkIndex) -> Iterator[SaidLevel]:
    """The three levels in order; pairs and single models are among all claims alone."""
    for level in t.LEVELS:
        mine = tuple(said_claim(book, one) for one in front(book) if level == one.publication_level != "no-claim")
        groups = withheld_groups(book) if level == "no-claim" else ()
        yield SaidLevel(level, t.TITLES[level], mine[:SHOWN], mine[SHOWN:], groups)


def front(book: BenchmarkIndex) -> list[Verdict]:
    """The verdicts that are sentences of the first page: the first board, the limits, equal weight, the others."""
    counted_gates = {verdict.claim.dimension for verdict in book.of_kind("gates")}
    boards = {leaderboard.board.name: at for at, leaderboard in enumerate(book.run.leaderboards)}

    def place(verdict: Verdict) -> tuple[int, int]:
        kind, at = kind_of(verdict), boards.get(verdict.claim.dimension, len(boards))
        return 1 if kind != "first" else 2 + at if at else 0, bench.KINDS.index(kind)

    kept = book.of_kind("first", "gates", "gate", "beats", "dissociation")
    return sorted((v for v in kept if kind_of(v) != "gate" or v.claim.dimension not in counted_gates), key=place)


def said_claim(book: BenchmarkIndex, verdict: Verdict) -> b.Quote:
    """A supported claim with its condition and its clipboard text."""
    run, text = book.run, said_words(verdict.claim.statement)
    condition = f"{stands_in(book, verdict.claim.subjects)} {said_words(verdict.condition or '')}".strip()
    copy = t.copied(text, condition, run.title, run.locked_at, verdict.plan_hash)
    return b.Quote(verdict.publication_level, text, condition, copy)


def claim_cards(book: BenchmarkIndex) -> list[b.Card]:
    """A card for every verdict: by board and kind, then by name; never by which of two models is higher."""
    boards = {leaderboard.board.name: at for at, leaderboard in enumerate(book.run.leaderboards)}

    def place(verdict: Verdict) -> tuple[int, int, tuple[str, ...], str]:
        kind, names = kind_of(verdict), tuple(sorted(verdict.claim.subjects))
        told = "" if kind in ("above", "within") else verdict.claim.id
        return boards.get(verdict.claim.dimension, len(boards)), bench.KINDS.index(kind), names, told

    cards = []
    for verdict in sorted(book.run.verdicts, key=place):
        level, found = verdict.publication_level, []
        # The first measurements that it rests on; two models in alphabetical order.
        for name in dict.fromkeys(verdict.measurements):
            if name in book.links:
                labels = book.by_id[name].labels
                pair = " and ".join(sorted(clean(labels[key], 60) for key in ("high", "low") if key in labels))
                others = [clean(labels[key], 60) for key in ("model", "profile", "window") if key in labels]
                words = ", ".join(filter(None, (pair, *others))) or "the correlation"
                found.append((words, book.links[name]))
        rests = b.spaced(b.Linked(*one) for one in sorted(found)[:6])
        total = t.counted(len(set(verdict.measurements)), "measurement")
        about = b.Text((f"Rests on {total}", *((": ", rests) if rests else ())), "tuple")
        said = b.Text(withheld_words(book, verdict), "text") if level == "no-claim" else said_claim(book, verdict)
        why = (b.Text(said_words(reason), "why") for reason in verdict.reasons)
        cards.append(b.Card(level, t.TAGS[level], _SCOPES[kind_of(verdict)], (said, *why, about)))
    return cards


def stands_in(book: BenchmarkIndex, models: Sequence[str]) -> str:
    """That these models are built in, which is said wherever a sentence about them is copied; else nothing."""
    return stand_ins(english(), {}, book.run.built_in, models, made_by="models")


def said_words(text: str) -> str:
    """A sentence of a verdict as it is set: no percent sign leaves its number at the end of a line."""
    return prose(text, 600).replace(" %", f"{NBSP}%")


def withheld_words(book: BenchmarkIndex, verdict: Verdict) -> str:
    """What a claim that is not supported is about, without its direction."""
    subjects, dimension = sorted(clean(name, 60) for name in verdict.claim.subjects), clean(verdict.claim.dimension, 60)
    board, who = book.board(verdict.claim.dimension), t.listing(subjects)
    where = clean(board.board.words, 120) if board else dimension
    limit = f"Whether {who} {'stays' if len(subjects) == 1 else 'stay'} within the limit ({dimension})."
    return {
        "above": f"Any ranking of {who} on {where}.",
        "first": f"A first rank for {who} on {where}.",
        "within": f"That {who} score alike on {where}.",
        "beats": f"That {who} beats equal weight ({dimension}).",
        "gate": limit,
        "gates": limit,
        "dissociation": "Whether questions and pipeline rank the models alike.",
    }.get(kind_of(verdict), f"A claim about {who or 'the models'} ({dimension}).")


def withheld_groups(book: BenchmarkIndex) -> tuple[WithheldGroup, ...]:
    """The claims of a run that are not supported in a handful of lines, with their numbers."""
    groups, boards, of = list[WithheldGroup](), book.run.leaderboards, defaultdict[str, list[Verdict]](list)
    for verdict in book.run.verdicts:
        if verdict.publication_level == "no-claim":
            of[kind_of(verdict)].append(verdict)
    if orders := [*of["above"], *of["first"], *of["within"]]:
        # How many pairs of a board are not resolved, and the smallest adjusted p among them.
        parts = [
            f"{bench.board_title(board.board.name)}, {board.open_pairs} of {board.pairs} "
            f"(smallest adjusted {t.p_value(board.least)}, needed {t.alpha(round(board.alpha, 4))})"
            for board in boards
            if board.open_pairs
        ]
        further = "" if all(len(board.tiers) == 1 for board in boards) else "further "
        why: Segments = ((f"Pairs that are not resolved: {'; '.join(parts)}. ", False),) if parts else ()
        groups.append(WithheldGroup(f"Any {further}ranking of the models.", why, len(orders)))
    if beats := of["beats"]:
        # Where intervals lie, without the side of zero; and how many there are none of.
        items = [book.by_id[name] for verdict in beats for name in verdict.measurements if name in book.by_id]
        ends = [found for item in items if (found := t.bounds_of(item)) is not None]
        across = sum(low <= 0 <= high for low, high in ends)
        numbers = "The one Sharpe difference has an interval that contains zero. "
        if across != len(beats):
            sides = (
                (across, "has an interval that contains zero", "have an interval that contains zero"),
                (len(ends) - across, "is not shown to be above it", "are not shown to be above it"),
                (len(beats) - len(ends), "has no interval", "have no interval"),
            )
            said = [f"{count(size)} {one if size == 1 else many}" for size, one, many in sides if size]
            numbers = f"Of {t.counted(len(beats), 'Sharpe difference')} {t.listing(said)}. "
        elif across > 1:
            numbers = f"All {count(across)} Sharpe differences have intervals that contain zero. "
        other = "any model" if len(beats) == len(book.of_kind("beats")) else "any other model or profile"
        who = clean(book.names[0], 60) if len(book.names) == 1 else other
        groups.append(WithheldGroup(f"That {who} beats equal weight.", ((numbers, False),), len(beats)))
    # Limits for which not all stress windows were run: profiles with their reasons, each reason once.
    by_reason: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for verdict in (one for one in book.of_kind("gates", "gate") if one.publication_level == "no-claim"):
        name = clean(verdict.claim.dimension.removeprefix("drawdown, "), 40)
        by_reason[" ".join(map(said_words, verdict.reasons))][name] += 1
    alike: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for reason, names in by_reason.items():
        alike[t.listing([*names])][reason] = names.total()
    for profiles, reasons in alike.items():
        why = tuple((f"{reason} ", False) for reason in reasons)
        groups.append(WithheldGroup(f"Whether limits are kept under stress ({profiles}).", why, sum(reasons.values())))
    for verdict in of["dissociation"]:
        reasons_of = " ".join(map(said_words, verdict.reasons))
        groups.append(WithheldGroup(withheld_words(book, verdict), ((f"{reasons_of} ", False),), 1))
    return tuple(groups)


@dataclass(frozen=True, slots=True)
class GroupHead:
    """A tier of a leaderboard; ``licensed`` says whether the score of its only member may be shown."""

    members: tuple[str, ...]
    places: str
    words: str
    level: Level | None
    licensed: bool
    ranks: Mapping[str, str]  # that each member can have, in words; empty where the tier says as much

    @property
    def shown(self) -> b.Inline:
        """The head as a row of a table shows it."""
        level = () if self.level is None else (" ", b.Mark(self.level, t.TAGS[self.level]))
        return (b.bold(self.places), f" {self.words}" if self.words else "", *level)


def stage_tables(book: BenchmarkIndex) -> tuple[b.Group, ...]:
    """A table for every leaderboard of the pipeline, the one over all profiles first."""
    built_in, groups = book.run.built_in, list[b.Group]()
    for at, board in enumerate(bench.pipeline_boards(book.run), 1):
        ends = [end for item in board.levels.values() for end in (item.low, item.high) if end is not None]
        ends += [item.value for item in board.levels.values() if item.value is not None and not ends]
        axis, profile, rows = score_axis(ends), board.board.name, list[b.Row]()
        over_all = profile == bench.ALL
        heads: tuple[b.Inline, ...] = (
            "Model", *((f"{name} ", b.small(words)) for name, (words, _) in bench.STAGES.items()),
            ("CEPS", Markup(score_head(axis))), f"CEPS, {percent(book.run.plan.level)} interval",
            "Stress limits" if over_all else "Stress limit",
        )  # fmt: skip
        for head in (*group_heads(book, board), *unscored_heads(book, board)):
            rows.append(b.Row((head.shown,)))
            for model in head.members:
                item = board.levels.get(model) or book.one("bench.level", model=model, board=profile)
                strip, whole = "", book.to(item, bench.range_words(item))
                score: b.Inline = whole
                if item is not None and item.value is not None:
                    point = item.value if head.licensed else None
                    strip = Markup(interval_strip(axis, t.bounds_of(item), point))
                    if point is not None:
                        score = (book.to(item, number(point)), f" ({whole})")
                mixed = built_in.get(model) and not all(built_in.values())
                said = (head.ranks.get(model, ""), "reference model" if mixed else "")
                labels = {"model": model, "profile": profile, "windows": "all"}
                cells = (stage_cell(book, book.one("bench.stage", **labels, stage=stage)) for stage in bench.STAGES)
                # Whether a limit, or those of all profiles, are kept.
                profiles = [one.name for one in book.run.profiles] if over_all else [profile]
                kept = {name: book.gate(model, name) for name in profiles}
                limit: b.Inline = b.Styled("not decided", "gap")
                if kept and all(value is not None for value in kept.values()):
                    broken = [bench.profile_word(name).lower() for name, value in kept.items() if not value]
                    note = (b.small(t.listing(broken) if broken else f"all {count(len(kept))} profiles"),)
                    verdict = b.bold("fails" if broken else "passes")
                    limit = pass_mark(not broken), verdict, *(note if len(kept) > 1 else ())
                name = (clean(model, 60), *(b.small(words) for words in said if words))
                rows.append(b.Row((name, *cells, strip, score, limit)))
        ceiling = [book.one("bench.ceiling", profile=profile, stage=stage) for stage in bench.STAGES]
        if all(ceiling):
            best = book.one("bench.ceiling", profile=profile, stage="CEPS")
            cells = (stage_cell(book, item) for item in ceiling)
            rows.append(b.Row(((b.bold("Ceiling"), " true answers at every stage"),)))
            rows.append(b.Row((("true answers", b.small("no model")), *cells, "", book.to(best, t.shown(best)), "")))
        columns = ("", *("hc",) * len(bench.STAGES), "st", "iv", "gt")
        title, none = bench.board_title(profile), b.Text("No model has a score on this board.", "none")
        table = b.Table(heads, tuple(rows), summary="", style="heat", label=title, columns=columns)
        notes = b.notes((design_note(book, profile),))
        groups.append(b.Group(title, (table, *(() if board.models else (none,)), *notes), f"board-{at}"))
    return tuple(groups)


def design_note(book: BenchmarkIndex, board: str) -> str:
    """How differences on a board are tested, whether neighbouring clusters depend, and the smallest detectable gap."""
    tests = {item.method.partition("; ")[2].partition(",")[0] for item in book.every("contrast", dimension=board)}
    said = [f"Differences: {t.listing(sorted(tests - {''}))}."] if tests - {""} else []
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
    for gone, words in ((False, "in S3 to S5, so no CEPS and no rank"),
                        (True, "left out: too many of the replies did not come")):  # fmt: skip
        if members := tuple(name for name in board.unscored if (name in left_out) == gone):
            yield GroupHead(members, "No score", words, None, licensed=False, ranks={})


def group_heads(book: BenchmarkIndex, board: Leaderboard) -> Iterator[GroupHead]:
    """The tiers of a leaderboard from the top, models by name inside, each at the level that sets it apart."""
    place, alone, of = 1, len(board.models) == 1, count(len(board.models))
    for members in board.tiers:
        names, size = tuple(sorted(members)), len(members)
        others = [name for name in board.models if name not in members]
        level = t.weakest(book.pair_level(board.board.name, one, two) for one, two in product(members, others))
        places, words = f"Rank {t.ordinal_span(place, place + size - 1)}", "cannot be ranked" if size > 1 else ""
        if not others:
            places = "One model" if size == 1 else f"All {count(size)}"
            words = words or "no other model to compare it with"
        licensed = alone or (size == 1 and level != "no-claim")
        ranks = {name: f"rank {t.ordinal_span(*board.ranks[name])} of {of}" for name in names if size > 1}
        yield GroupHead(names, places, words, None if alone else level, licensed, ranks)
        place += size


def stage_cell(book: BenchmarkIndex, item: Measurement | None) -> b.Share:
    """A mean score with half of its interval."""
    if item is None or item.value is None:
        return b.Share(None, bench.why_none(item))
    ends = t.bounds_of(item)
    half = "" if ends is None else f"±{max(ends[1] - item.value, item.value - ends[0]):.2f}".replace("±0.", "±.")
    return b.Share(item.value, book.to(item, number(item.value)), half)


def pass_mark(passes: bool) -> b.Mark:
    """The mark of a limit that is kept or broken."""
    return b.Mark("supported" if passes else "contradicted", style="gm")


def stage_note(book: BenchmarkIndex) -> str:
    """Denominators, method and unreadable replies, in a few sentences."""
    of, stages, replies = "", list(book.every("bench.stage", stage="S1", windows="all")), book.run.replies
    if stages:
        sizes = sorted({one.n for one in stages if one.labels.get("profile") == bench.ALL} or {one.n for one in stages})
        items = " to ".join(dict.fromkeys((count(sizes[0]), count(sizes[-1]))))
        of = f"Means of {items} {clean(stages[0].n_of, 30)} a model. "
    levels = [item for board in bench.pipeline_boards(book.run) for item in board.levels.values()]
    methods = {clean(item.method, 160).rstrip(".") for item in levels if item.low is not None}
    method = f"Intervals: {t.listing(sorted(methods))}." if methods else "No interval can be given."
    # How many replies could not be read, or only in part.
    total, unread = sum(replies.values()), ""
    kinds = ((("partial",), "were read in part"), (("invalid",), "could not be read"),
             (("refused", "truncated"), "were refused or cut off"))  # fmt: skip
    sums = ((sum(replies.get(state, 0) for state in states), words) for states, words in kinds)
    if said := [f"{count(n)} {words}" for n, words in sums if n]:
        unread = (
            f"Of {t.counted(total, 'reply', 'replies')} {t.listing(said)}; what was not said is scored by the rule of "
            "the plan (neutral view, hold, no trade)."
        )
    elif total:
        unread = "The one reply could be read." if total == 1 else f"All {count(total)} replies could be read."
    return (
        f"{of}A stronger tint is higher, from 0 to 1; ± is half of the {percent(book.run.plan.level)} interval. "
        f"A point is drawn only where the rank is supported. {method} A tier ends where every model in it is "
        "shown to score above every model below it; models inside a tier cannot be ranked, and the ranks that each can "
        f"have follow from its supported pairs. {unread}"
    )


def lede(book: BenchmarkIndex) -> str:
    """The run in one line: models, decisions, instruments, costs, convention."""
    run = book.run
    parts = [t.plural(len(book.names), "model").capitalize()]
    if book.has_pipeline:
        decisions = t.counted(sum(run.decisions.values()), f"{run.plan.pipeline.frequency} decision")
        parts.append(f"{decisions} in {t.plural(len(run.windows), 'window')}")
        parts.append(f"{t.counted(run.instruments, 'instrument')}, costs {run.plan.pipeline.cost_bps:g} bps")
    if "bench.question" in book.by_name:
        asked = sum(map(len, run.answers.values()))
        parts.append(f"{t.counted(asked, 'answer')} to questions" if asked else "questions")
    follow = "the paper’s formulas" if run.plan.convention == "paper" else "the authors’ public code"
    return f"{', '.join(parts)}. Scores follow {follow}. Market: {clean(run.market, 160).rstrip('.')}."
