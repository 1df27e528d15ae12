"""The first page of a benchmark: a few sentences, then where points are lost, on what they rest, and who keeps a limit.

Everything else is a link with a count. Models are in alphabetical order wherever no sentence ranks them, and bars of
what nobody ranks have no point.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Final

from assaymark.claims.boards import Leaderboard
from assaymark.records import Measurement
from assaymark.report.blocks import (
    Beside,
    Block,
    Figure,
    Group,
    Inline,
    Items,
    Linked,
    Mark,
    Page,
    Quote,
    Table,
    Tally,
    Text,
    bold,
    notes,
    small,
)
from assaymark.report.charts.canvas import HALF, WIDE
from assaymark.report.charts.tiers import (
    KINDS,
    Bar,
    Column,
    TierRow,
    Twice,
    column_chart,
    convention_chart,
    limit_chart,
    tier_chart,
)
from assaymark.report.inputs import weakest
from assaymark.report.levels import LEVELS, TAGS, TALLY, copied
from assaymark.report.portbench.book import QUESTIONS, STAGES, BenchmarkIndex, ends_of, kind_of, pipeline_boards, sizes
from assaymark.report.portbench.levels import (
    SHOWN,
    front,
    group_heads,
    lede,
    said_claim,
    said_words,
    stands_in,
    withheld_groups,
)
from assaymark.report.text import counted, listing, plural, shown
from assaymark.text import NBSP, clean, count, number, percent, span

CONVENTIONS: Final[Mapping[str, str]] = {"paper": "PortBench paper", "reference": "PortBench published code"}
_NO_SCORE: Final = "No score: "
_BRIEF: Final = 100


def first_page(book: BenchmarkIndex, deeper: Sequence[tuple[str, str, str]]) -> Page:
    """The first page; ``deeper`` are the other pages as (words, path, what is there)."""
    run, said, withheld = book.run, sentences(book), withheld_groups(book)
    reached = Counter({**Counter(one.level for one, _ in said), "no-claim": len(withheld)})
    known = bool(run.built_in) and all(run.built_in.values())
    demonstration: Inline = (
        bold("Demonstration. "),
        "Every model is a built-in rule, so the best and the worst possible score are known. ",
        Linked("What each of them does", "scores.html#models"),
    )
    told = (clean(note, 600) for note in run.notes if not note.startswith(_NO_SCORE))
    every: Inline = Linked(f"All {counted(len(run.verdicts), 'candidate sentence')}", "claims.html")
    gaps = []
    for group in withheld:  # a reason in brackets where it is short; all reasons are with the candidates
        why = "".join(text for text, _ in group.why).strip().rstrip(".")
        gaps.append(group.text[:-1] + (f" ({why[:1].lower()}{why[1:]})." if 0 < len(why) <= _BRIEF else "."))
    open_: Inline = (Mark("no-claim", TAGS["no-claim"]), f" {' '.join(gaps)} ", every) if withheld else every
    missing = Group("", (Items((open_,), "claims"),), style="lv no-claim")
    columns = tuple(
        Group("", (Items((quote,), "claims"), Text((Mark(quote.level, TAGS[quote.level]), " ", why), "why")),
              style=f"lv {quote.level}")
        for quote, why in said
    )  # fmt: skip
    duo = (Beside((columns[::2], columns[1::2])),) if len(columns) > 1 else columns
    deep = Items(tuple((Linked(words, path), small(what)) for words, path, what in deeper), "deep")
    halves = [one for one in (_conventions(book), _questions(book), _limits(book)) if one is not None]
    halves.append(Group("Go deeper", (deep,), "more", style="sec", level=2))
    return Page(
        "index.html", clean(run.title, 120), lede(book),
        blocks=(
            *notes((demonstration if known else "", *told), "notice"), *duo, missing, _stages(book),
            *(Beside(tuple((half,) for half in halves[at : at + 2])) for at in range(0, len(halves), 2)),
        ),
        tallies=tuple(Tally(level, count(reached[level]), TALLY[level]) for level in LEVELS), here="results",
        styles=("portbench-first.css",),
    )  # fmt: skip


def sentences(book: BenchmarkIndex) -> list[tuple[Quote, str]]:
    """The sentences of the first page with their reasons.

    First ranks, a cut between tiers, the strictest and the widest limit, then the others, as far as there is room.
    """
    found: dict[str, list[tuple[Quote, str]]] = {kind: [] for kind in ("first", "cut", "gates")}
    for verdict in front(book):
        if verdict.publication_level != "no-claim":
            quote = replace(said_claim(book, verdict), condition=said_words(verdict.condition or ""))
            found.setdefault(kind_of(verdict), []).append((quote, " ".join(map(said_words, verdict.reasons))))
    for board in (*pipeline_boards(book.run)[:1], book.board(QUESTIONS)):
        found["cut"] += tier_cuts(book, board) if board else ()
    gates = found.pop("gates")
    firsts, cuts, *others = found.values()
    chosen = [*firsts[:2], *cuts[:1], *gates[:1], *gates[1:][-1:], *(one for some in others for one in some)]
    return sorted(chosen[:SHOWN], key=lambda one: LEVELS.index(one[0].level))


def tier_cuts(book: BenchmarkIndex, board: Leaderboard) -> Iterator[tuple[Quote, str]]:
    """Each cut between tiers as a sentence: it follows from every order across it, at the level of the weakest.

    A cut below a single model is its first rank, which is a sentence of its own.
    """
    by_pair = {one.claim.subjects: one for one in book.of_kind("above") if one.claim.dimension == board.board.name}
    for cut in range(1, len(board.tiers)):
        above, below = (
            sorted(name for tier in part for name in tier) for part in (board.tiers[:cut], board.tiers[cut:])
        )
        pairs = [by_pair[pair] for pair in product(above, below) if pair in by_pair]
        level = weakest(one.publication_level for one in pairs)
        if level == "no-claim" or len(above) == 1 or len(pairs) < len(above) * len(below):
            continue
        named = [listing([clean(name, 60) for name in names]) for names in (above, below)]
        others = named[1] if len(below) < 4 else f"the other {plural(len(below), 'model')}"
        text = said_words(f"{named[0]} score above {others} on {clean(board.board.words, 120)}.")
        also = " ".join(dict.fromkeys(said_words(one.condition) for one in pairs if one.condition))
        copy = copied(text, f"{stands_in(book, [*above, *below])} {also}".strip(), book.run.title,
                      book.run.locked_at, pairs[0].plan_hash)  # fmt: skip
        yield Quote(level, text, also, copy), f"Every order across this cut is supported: {plural(len(pairs), 'pair')}."


# --- where points are lost --------------------------------------------------------------------------------------------


def _stages(book: BenchmarkIndex) -> Group:
    heading = "Where do models lose points?"
    if not book.has_pipeline:
        return _half("stages", heading, book.missing("pipeline"))
    profile, names = book.profile, book.names
    items = {
        (name, stage): book.one("bench.stage", model=name, profile=profile, stage=stage, windows="all")
        for name, stage in product(names, STAGES)
    }
    columns, best = [], {}
    for stage, (words, _) in STAGES.items():
        bars = tuple(
            None if item is None or item.value is None else Bar(ends_of(item), number(item.value))
            for item in (items[name, stage] for name in names)
        )
        most = book.one("bench.ceiling", profile=profile, stage=stage)
        best[stage] = None if most is None else most.value
        columns.append(Column(stage, words, bars, best[stage]))
    rows = [clean(name, 60) for name in names]
    lines = [
        tuple("no score" if bar is None else bar.shown for bar in (c.bars[at] for c in columns))
        for at in range(len(rows))
    ]
    desc = "; ".join(f"{who}: {', '.join(f'{c.name} {one}' for c, one in zip(columns, line, strict=True))}"
                     for who, line in zip(rows, lines, strict=True))  # fmt: skip
    dates = counted(sum(book.run.decisions.values()), "date")
    title = f"Mean score by stage, with {percent(book.run.plan.level)} interval over {dates}; dotted: best possible"
    wide, narrow = (
        column_chart(f"stages-{kind[0]}", rows, columns, title, desc, width, kind=kind) for kind, width in sizes(WIDE)
    )
    cells = ([(items[name, c.name], bar) for c, bar in zip(columns, (c.bars[at] for c in columns), strict=True)]
             for at, name in enumerate(names))  # fmt: skip
    table = Table(
        ("Model", *(f"{c.name} {c.words}" for c in columns)),
        tuple((who, *("no score" if bar is None else book.to(item, shown(item)) for item, bar in row))
              for who, row in zip(rows, cells, strict=True)),
        frozenset(range(1, 1 + len(columns))),
    )  # fmt: skip
    hatched = [note.removeprefix(_NO_SCORE) for note in book.run.notes if note.startswith(_NO_SCORE)]
    told = tuple(
        Text((bold("Hatched: no score. "), clean(f"{note[:1].upper()}{note[1:]}", 600)), "hatched") for note in hatched
    )
    # The two stages furthest from what is possible.
    reached = {c.name: max((float(bar.shown) for bar in c.bars if bar is not None), default=None) for c in columns}
    gaps = {c.name: c.best - top for c in columns if c.best is not None and (top := reached[c.name]) is not None}
    worst = sorted(sorted(gaps, key=lambda name: -gaps[name])[:2])
    lost = "Bars are intervals of mean scores from 0 to 1."
    if worst:
        scored, possible = (listing([number(of[name] or 0.0) for name in worst]) for of in (reached, best))
        lost = (
            f"At {listing([STAGES[name][0] for name in worst])}: no model exceeds {scored} there, where {possible} "
            f"{'are' if len(worst) > 1 else 'is'} possible."
        )
    return _half("stages", heading, lost, *told, Figure(title, "", wide, narrow, table=table))


# --- on what the ranking rests ----------------------------------------------------------------------------------------


def _half(id: str, heading: str, answer: Inline, *blocks: Block) -> Group:
    return Group(heading, (Text(answer, "lede"), *blocks), id, style="sec", level=2)


def _bar(item: Measurement) -> Bar:
    ends = ends_of(item)
    return Bar(ends, span(*ends) if ends else shown(item))


def _conventions(book: BenchmarkIndex) -> Group | None:
    boards = pipeline_boards(book.run)
    if not boards or not boards[0].models:
        return None
    board, level = boards[0], percent(book.run.plan.level)
    rows, lines = list[Twice](), list[tuple[str, ...]]()
    for head in group_heads(book, board):
        for at, name in enumerate(head.members):
            item, other = board.levels[name], book.run.others.get(name)
            first, second = _bar(item), None if other is None or other.value is None else _bar(other)
            kind = KINDS[head.level or "no-claim"]
            rows.append(Twice(clean(name, 60), first, second, kind, cut=not at and bool(rows)))
            lines.append((clean(name, 60), book.to(item, first.shown), "" if second is None else second.shown))
    mine, theirs = (CONVENTIONS[one] for one in (
        book.run.plan.convention, "reference" if book.run.plan.convention == "paper" else "paper"))  # fmt: skip
    title = f"CEPS, {level} interval, {plural(len(rows), 'model')} with a score"
    desc = "; ".join(
        f"{who}: {one} by the {mine}{f', {two} by the {theirs}' if two else ''}" for who, one, two in lines
    )
    wide, narrow = (convention_chart(f"ceps-{kind[0]}", rows, title, desc, width, kind) for kind, width in sizes(HALF))
    caption = f"Filled: {mine}. Outlined: {theirs}. Dotted: tiers of the first."
    table = Table(("Model", mine, theirs), tuple(lines), frozenset({1, 2}))
    differ = "They differ in 14 places; the published code scores S1 and S2 against the last 60 days of the prompt. "
    more: Inline = (differ, Linked("Every profile", "scores.html#stages"))
    figure = Figure(title, caption, wide, narrow, table=table)
    pairs = [one for one in book.of_kind("above") if one.claim.dimension == board.board.name]
    said = [pair for pair in pairs if pair.publication_level != "no-claim"]
    turned = [one for one in said if any(c.id == "other-convention" for c in one.conditions)]
    orders = plural(len(said), "supported order")
    answer = f"No. None of the {orders} is the other way round by the {theirs}."
    if not said:
        answer = f"No ranking of the models on CEPS is supported by the {mine}."
    elif turned:
        named = listing([" and ".join(sorted(clean(name, 60) for name in one.claim.subjects)) for one in turned[:3]])
        answer = f"Yes. By the {theirs} {count(len(turned))} of {orders} turn round: {named}."
    return _half("conventions", "Does the ranking depend on the formulas?", answer, figure, Text(more))


def _questions(book: BenchmarkIndex) -> Group | None:
    heading = "Who knows the answers?"
    board = book.board(QUESTIONS)
    if not book.has_questions:
        return _half("questions", heading, book.missing("qa"))
    if board is None or not board.models:
        return _half("questions", heading, Linked("The scores of every template", "scores.html#questions"))
    rows = []
    for head in group_heads(book, board):
        items = [board.levels[name] for name in head.members]
        known = [ends for ends in map(ends_of, items) if ends is not None]
        ends = (min(low for low, _ in known), max(high for _, high in known)) if known else None
        point = items[0].value if head.licensed else None
        written = "no interval" if ends is None else span(*ends)
        names = tuple(clean(name, 60) for name in head.members)
        rows.append(TierRow(names, head.level or "no-claim", ends, point, written, written))
    edges = [end for row in rows if row.ends for end in row.ends] or [0.0, 1.0]
    axis = max(0.0, int(min(edges) * 10) / 10), min(1.0, int(max(edges) * 10 + 0.999) / 10)
    title, desc = "Questions with full information, 0 to 1", "; ".join(f"{listing(r.names)}: {r.shown}" for r in rows)
    wide, narrow = (
        tier_chart(f"asked-{kind[0]}", rows, axis, title, desc, width, kind=kind) for kind, width in sizes(HALF)
    )
    table = Table(("Tier", "Interval"), tuple((listing(row.names), row.shown) for row in rows), frozenset({1}))
    caption = "Hatched: a tier from end to end."
    open_pairs = f"{count(board.pairs - board.open_pairs)} of {plural(board.pairs, 'pair')} can be ranked: "
    note: list[Inline] = [open_pairs, Linked("see sentences", "claims.html"), "."] if board.pairs else []
    more = Linked("By template", "scores.html#questions")
    top = board.tiers[0]
    if len(board.tiers) == 1:
        said = (
            "No model is shown to know more than another." if len(top) > 1 else f"{clean(top[0], 60)} alone was asked."
        )
    else:
        said = f"{listing([clean(name, 60) for name in sorted(top)])}, above all others."
    item = next(book.every("bench.dissociation"), None)
    open_ = any(one.publication_level == "no-claim" for one in book.of_kind("dissociation"))
    if item is not None and item.value is not None and open_:
        between = "" if item.low is None or item.high is None else f", {span(item.low, item.high)}"
        said += f" Whether answers predict CEPS cannot be said ({plural(item.n, 'model')}{between})."
    figure = Figure(title, caption, wide, narrow, table=table)
    return _half("questions", heading, said, figure, Text((*note, " ", more)))


# --- who keeps the limit ----------------------------------------------------------------------------------------------


def _limits(book: BenchmarkIndex) -> Group | None:
    profile = book.strictest
    if profile is None or not book.stress or not book.has_pipeline:
        return None
    limit, rows, lines = profile.drawdown_tolerance, [], []
    for name in book.names:
        items = [
            one for one in book.every("bench.drawdown", model=name, profile=profile.name) if one.detail.get("stress")
        ]
        deepest = max(
            (item for item in items if item.value is not None), key=lambda item: item.value or 0.0, default=None
        )
        kept = book.gate(name, profile.name)
        if deepest is not None and deepest.value is not None and kept is not None:
            rows.append((clean(name, 60), deepest.value, kept))
            lines.append((clean(name, 60), book.to(deepest, percent(deepest.value, 1)),
                          book.window(deepest.labels["window"]), "within" if kept else "beyond"))  # fmt: skip
    who = clean(profile.name, 40)
    if not rows:
        return _half("limits", "Who keeps the drawdown limit?", f"Not decided under the {who} profile.")
    title = f"Largest drawdown under stress, {who} profile"
    desc = "; ".join(f"{name}: {fall}, {kept} the limit" for name, fall, _, kept in lines)
    wide, narrow = (
        limit_chart(f"limit-{kind[0]}", rows, limit, title, desc, width, kind=kind) for kind, width in sizes(HALF)
    )
    inside = [name for name, _, kept in rows if kept]
    named = listing(inside) if len(inside) <= 5 else f"{count(len(inside))} of {plural(len(rows), 'model')}"
    said = f"{named or 'None of them'}. Each window happened once, so there is no interval."
    table = Table(
        ("Model", "Largest drawdown", "Window", f"Limit {100 * limit:g}{NBSP}%"), tuple(lines), frozenset({1})
    )
    figure = Figure(title, "Crossed: beyond the limit.", wide, narrow, table=table)
    more = Linked("Value and drawdown in every window", "histories.html") if book.has_histories else ""
    return _half("limits", "Who keeps the drawdown limit?", said, figure, *notes((more,)))
