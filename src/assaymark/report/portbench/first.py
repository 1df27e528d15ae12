"""The first page of a benchmark: a few sentences, where points are lost, what the ranking rests on, who keeps a limit.

Models are in alphabetical order wherever no sentence ranks them, and bars of what nobody ranks have no point."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Final

from assaymark.claims.boards import Leaderboard
from assaymark.records import Measurement
from assaymark.report import blocks as b
from assaymark.report.charts import models as charts
from assaymark.report.charts.canvas import HALF, NARROW
from assaymark.report.portbench import levels
from assaymark.report.portbench.book import QUESTIONS, STAGES, BenchmarkIndex, kind_of, pipeline_boards
from assaymark.report.text import LEVELS, TAGS, TALLY, bounds_of, copied, counted, listing, plural, shown, weakest
from assaymark.text import NBSP, clean, count, number, percent, span

CONVENTIONS: Final[Mapping[str, str]] = {"paper": "PortBench paper", "reference": "PortBench published code"}
_NO_SCORE: Final = "No score: "


def first_page(book: BenchmarkIndex, deeper: Sequence[tuple[str, str, str]]) -> b.Page:
    """The first page; ``deeper`` are the other pages as (words, path, what is there)."""
    run, said, withheld = book.run, sentences(book), levels.withheld_groups(book)
    reached = Counter({**Counter(one.level for one, _ in said), "no-claim": len(withheld)})
    demonstration: b.Inline = ""
    if run.built_in and all(run.built_in.values()):
        known = "Every model is a built-in rule, so the best and the worst possible score are known. "
        demonstration = b.bold("Demonstration. "), known, b.Linked("What each of them does", "scores.html#models")
    told = (clean(note, 600) for note in run.notes if not note.startswith(_NO_SCORE))
    every: b.Inline = b.Linked(f"All {counted(len(run.verdicts), 'candidate sentence')}", "claims.html")
    gaps = []
    for group in withheld:  # a reason in brackets where it is short; all reasons are with the candidates
        why = "".join(text for text, _ in group.why).strip().rstrip(".")
        gaps.append(group.text[:-1] + (f" ({why[:1].lower()}{why[1:]})." if 0 < len(why) <= 100 else "."))
    if withheld:
        every = b.Mark("no-claim", TAGS["no-claim"]), f" {' '.join(gaps)} ", every
    missing = b.Group("", (b.Items((every,), "claims"),), style="lv no-claim")
    columns = tuple(
        b.Group("", (b.Items((quote,), "claims"), b.Text((b.Mark(quote.level, TAGS[quote.level]), " ", why), "why")),
                style=f"lv {quote.level}")
        for quote, why in said
    )  # fmt: skip
    duo = (b.Beside((columns[::2], columns[1::2])),) if len(columns) > 1 else columns
    deep = b.Items(tuple((b.Linked(words, path), b.small(what)) for words, path, what in deeper), "deep")
    halves = [one for one in (_conventions(book), _questions(book)) if one is not None]
    # Who keeps the drawdown limit of the strictest profile.
    profile, heading = book.strictest, "Who keeps the drawdown limit?"
    if profile is not None and book.stress and book.has_pipeline:
        limit, rows, lines = profile.drawdown_tolerance, list[charts.Fall](), list[tuple[str, ...]]()
        for name in book.names:
            falls = [one for one in book.every("bench.drawdown", model=name, profile=profile.name)
                     if one.detail.get("stress") and one.value is not None]  # fmt: skip
            deepest, kept = max(falls, key=lambda item: item.value or 0.0, default=None), book.gate(name, profile.name)
            if deepest is not None and kept is not None:
                rows.append((clean(name, 60), deepest.value or 0.0, kept))
                lines.append((clean(name, 60), book.to(deepest, percent(deepest.value or 0.0, 1)),
                              book.window(deepest.labels["window"]), "within" if kept else "beyond"))  # fmt: skip
        who = clean(profile.name, 40)
        half = _half("limits", heading, f"Not decided under the {who} profile.")
        if rows:
            title = f"Largest drawdown under stress, {who} profile"
            desc = "; ".join(f"{name}: {fall}, {kept} the limit" for name, fall, _, kept in lines)
            drawn = charts.limit_chart("limit", rows, limit, title, desc)
            inside = [name for name, _, kept in rows if kept]
            named = listing(inside) if len(inside) <= 5 else f"{count(len(inside))} of {plural(len(rows), 'model')}"
            answer = f"{named or 'None of them'}. Each window happened once, so there is no interval."
            heads = ("Model", "Largest drawdown", "Window", f"Limit {100 * limit:g}{NBSP}%")
            table = b.Table(heads, tuple(lines), frozenset({1}))
            more = b.Linked("Value and drawdown in every window", "histories.html") if book.has_histories else ""
            figure = b.Figure(title, "Crossed: beyond the limit.", *drawn, table)
            half = _half("limits", heading, answer, figure, *b.notes((more,)))
        halves.append(half)
    halves.append(b.Group("Go deeper", (deep,), "more", style="sec", level=2))
    pairs = (b.Beside(tuple((half,) for half in halves[at : at + 2])) for at in range(0, len(halves), 2))
    return b.Page(
        "index.html", clean(run.title, 120), levels.lede(book),
        blocks=(*b.notes((demonstration, *told), "notice"), *duo, missing, _stages(book), *pairs), here="results",
        tallies=tuple(b.Tally(level, count(reached[level]), TALLY[level]) for level in LEVELS),
        styles=("portbench-first.css",),
    )  # fmt: skip


def sentences(book: BenchmarkIndex) -> list[tuple[b.Quote, str]]:
    """The sentences of the first page with reasons: first ranks, a cut, two limits, then others where there is room."""
    found: dict[str, list[tuple[b.Quote, str]]] = {kind: [] for kind in ("first", "cut", "gates")}
    for verdict in levels.front(book):
        if verdict.publication_level != "no-claim":
            quote = replace(levels.said_claim(book, verdict), condition=levels.said_words(verdict.condition or ""))
            found.setdefault(kind_of(verdict), []).append((quote, " ".join(map(levels.said_words, verdict.reasons))))
    for board in (*pipeline_boards(book.run)[:1], book.board(QUESTIONS)):
        found["cut"] += tier_cuts(book, board) if board else ()
    gates = found.pop("gates")
    firsts, cuts, *others = found.values()
    chosen = [*firsts[:2], *cuts[:1], *gates[:1], *gates[1:][-1:], *(one for some in others for one in some)]
    return sorted(chosen[: levels.SHOWN], key=lambda one: LEVELS.index(one[0].level))


def tier_cuts(book: BenchmarkIndex, board: Leaderboard) -> Iterator[tuple[b.Quote, str]]:
    """Each cut between tiers as a sentence at the level of its weakest order; a cut below one model is a first rank."""
    by_pair = {one.claim.subjects: one for one in book.of_kind("above") if one.claim.dimension == board.board.name}
    for cut in range(1, len(board.tiers)):
        halves = board.tiers[:cut], board.tiers[cut:]
        above, below = (sorted(name for tier in part for name in tier) for part in halves)
        pairs = [by_pair[pair] for pair in product(above, below) if pair in by_pair]
        level = weakest(one.publication_level for one in pairs)
        if level == "no-claim" or len(above) == 1 or len(pairs) < len(above) * len(below):
            continue
        named = [listing([clean(name, 60) for name in names]) for names in (above, below)]
        others = named[1] if len(below) < 4 else f"the other {plural(len(below), 'model')}"
        text = levels.said_words(f"{named[0]} score above {others} on {clean(board.board.words, 120)}.")
        also = " ".join(dict.fromkeys(levels.said_words(one.condition) for one in pairs if one.condition))
        condition = f"{levels.stands_in(book, [*above, *below])} {also}".strip()
        copy = copied(text, condition, book.run.title, book.run.locked_at, pairs[0].plan_hash)
        why = f"Every order across this cut is supported: {plural(len(pairs), 'pair')}."
        yield b.Quote(level, text, also, copy), why


def _half(id: str, heading: str, answer: b.Inline, *blocks: b.Block) -> b.Group:
    return b.Group(heading, (b.Text(answer, "lede"), *blocks), id, style="sec", level=2)


def _stages(book: BenchmarkIndex) -> b.Group:
    """Where points are lost."""
    heading = "Where do models lose points?"
    if not book.has_pipeline:
        return _half("stages", heading, book.missing("pipeline"))
    profile, columns, best, rows = book.profile, list[charts.Column](), dict[str, float | None](), []
    for stage, (words, _) in STAGES.items():
        most = book.one("bench.ceiling", profile=profile, stage=stage)
        best[stage], bars = None if most is None else most.value, []
        for name in book.names:
            item = book.one("bench.stage", model=name, profile=profile, stage=stage, windows="all")
            bar = None if item is None or item.value is None else (bounds_of(item), number(item.value))
            bars.append(bar)
            rows.append("no score" if bar is None else book.to(item, shown(item)))
        columns.append((stage, words, tuple(bars), best[stage]))
    names = [clean(name, 60) for name in book.names]
    drawn = [["no score" if bar is None else bar[1] for bar in bars] for _, _, bars, _ in columns]
    desc = "; ".join(f"{who}: {', '.join(f'{name} {of[at]}' for (name, *_), of in zip(columns, drawn, strict=True))}"
                     for at, who in enumerate(names))  # fmt: skip
    dates = counted(sum(book.run.decisions.values()), "date")
    title = f"Mean score by stage, with {percent(book.run.plan.level)} interval over {dates}; dotted: best possible"
    wide, narrow = charts.column_chart("stages", names, columns, title, desc)
    table = b.Table(
        ("Model", *(f"{name} {said}" for name, said, *_ in columns)),
        tuple((who, *rows[at :: len(names)]) for at, who in enumerate(names)), frozenset(range(1, 1 + len(columns))),
    )  # fmt: skip
    hatched = [note.removeprefix(_NO_SCORE) for note in book.run.notes if note.startswith(_NO_SCORE)]
    told = tuple(
        b.Text((b.bold("Hatched: no score. "), clean(f"{note[:1].upper()}{note[1:]}", 600)), "hatched")
        for note in hatched
    )
    # The two stages furthest from what is possible.
    reached = {
        name: max((float(bar[1]) for bar in bars if bar is not None), default=None) for name, _, bars, _ in columns
    }
    gaps = {name: most - top for name, most in best.items() if most is not None and (top := reached[name]) is not None}
    worst = sorted(sorted(gaps, key=lambda name: -gaps[name])[:2])
    lost = "Bars are intervals of mean scores from 0 to 1."
    if worst:
        scored, possible = (listing([number(of[name] or 0.0) for name in worst]) for of in (reached, best))
        lost = (
            f"At {listing([STAGES[name][0] for name in worst])}: no model exceeds {scored} there, where {possible} "
            f"{'are' if len(worst) > 1 else 'is'} possible."
        )
    return _half("stages", heading, lost, *told, b.Figure(title, "", wide, narrow, table))


def _conventions(book: BenchmarkIndex) -> b.Group | None:
    """Whether the ranking depends on the convention."""
    boards = pipeline_boards(book.run)
    if not boards or not boards[0].models:
        return None
    board, level = boards[0], percent(book.run.plan.level)
    rows, lines = list[charts.Twice](), list[tuple[str, ...]]()

    def bar(item: Measurement) -> charts.Bar:
        ends = bounds_of(item)
        return ends, span(*ends) if ends else shown(item)

    for head in levels.group_heads(book, board):
        for at, name in enumerate(head.members):
            item, other = board.levels[name], book.run.others.get(name)
            first, second = bar(item), None if other is None or other.value is None else bar(other)
            kind = charts.KINDS[head.level or "no-claim"]
            rows.append((clean(name, 60), first, second, kind, not at and bool(rows)))
            lines.append((clean(name, 60), book.to(item, first[1]), "" if second is None else second[1]))
    mine = CONVENTIONS[book.run.plan.convention]
    theirs = CONVENTIONS["reference" if book.run.plan.convention == "paper" else "paper"]
    title = f"CEPS, {level} interval, {plural(len(rows), 'model')} with a score"
    desc = "; ".join(
        f"{who}: {one} by the {mine}{f', {two} by the {theirs}' if two else ''}" for who, one, two in lines
    )
    wide, narrow = charts.convention_chart("ceps", rows, title, desc)
    caption = f"Filled: {mine}. Outlined: {theirs}. Dotted: tiers of the first."
    table = b.Table(("Model", mine, theirs), tuple(lines), frozenset({1, 2}))
    differ = "They differ in 14 places; the published code scores S1 and S2 against the last 60 days of the prompt. "
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
    figure = b.Figure(title, caption, wide, narrow, table)
    more = b.Text((differ, b.Linked("Every profile", "scores.html#stages")))
    return _half("conventions", "Does the ranking depend on the formulas?", answer, figure, more)


def _questions(book: BenchmarkIndex) -> b.Group:
    heading, board, rows = "Who knows the answers?", book.board(QUESTIONS), []
    if "bench.question" not in book.by_name:
        return _half("questions", heading, book.missing("qa"))
    if board is None or not board.models:
        return _half("questions", heading, b.Linked("The scores of every template", "scores.html#questions"))
    for head in levels.group_heads(book, board):
        items = [board.levels[name] for name in head.members]
        known = [ends for ends in map(bounds_of, items) if ends is not None]
        ends = (min(low for low, _ in known), max(high for _, high in known)) if known else None
        point, written = items[0].value if head.licensed else None, "no interval" if ends is None else span(*ends)
        names = tuple(clean(name, 60) for name in head.members)
        rows.append(charts.TierRow(names, head.level or "no-claim", ends, point, written, written))
    edges = [end for row in rows if row.ends for end in row.ends] or [0.0, 1.0]
    axis = max(0.0, int(min(edges) * 10) / 10), min(1.0, int(max(edges) * 10 + 0.999) / 10)
    title, desc = "Questions with full information, 0 to 1", "; ".join(f"{listing(r.names)}: {r.shown}" for r in rows)
    wide, narrow = (charts.tier_chart(f"asked-{kind[0]}", rows, axis, title, desc, float(width), kind=kind)
                    for kind, width in (("wide", HALF), ("narrow", NARROW)))  # fmt: skip
    table = b.Table(("Tier", "Interval"), tuple((listing(row.names), row.shown) for row in rows), frozenset({1}))
    ranked = f"{count(board.pairs - board.open_pairs)} of {plural(board.pairs, 'pair')} can be ranked: "
    note: list[b.Inline] = [ranked, b.Linked("see sentences", "claims.html"), "."] if board.pairs else []
    note += [" ", b.Linked("By template", "scores.html#questions")]
    top, said = board.tiers[0], ""
    if len(board.tiers) > 1:
        said = f"{listing([clean(name, 60) for name in sorted(top)])}, above all others."
    else:
        said = (
            "No model is shown to know more than another." if len(top) > 1 else f"{clean(top[0], 60)} alone was asked."
        )
    item = next(iter(book.every("bench.dissociation")), None)
    open_ = any(one.publication_level == "no-claim" for one in book.of_kind("dissociation"))
    if item is not None and item.value is not None and open_:
        between = "" if item.low is None or item.high is None else f", {span(item.low, item.high)}"
        said += f" Whether answers predict CEPS cannot be said ({plural(item.n, 'model')}{between})."
    figure = b.Figure(title, "Hatched: a tier from end to end.", wide, narrow, table)
    return _half("questions", heading, said, figure, b.Text(tuple(note)))
