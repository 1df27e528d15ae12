"""The pages of an agent: one with its account, grades, last decisions and checks, and beside it all of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from assaymark.claims.levels import SILENT
from assaymark.claims.messages import said
from assaymark.claims.season_claims import Place
from assaymark.judging.season.plans import TEMPORAL, SubComponent
from assaymark.judging.season.scoring import band
from assaymark.report import blocks as b
from assaymark.report.charts.intervals import JudgeWords
from assaymark.report.page import beside
from assaymark.report.season import decisions as d
from assaymark.report.season.index import AgentIndex, SeasonGradeView, SeasonIndex
from assaymark.report.season.leaderboard import PartRow, part_figure
from assaymark.report.season.levels import agent_levels, level_blocks
from assaymark.text import clean

_ROOM, _WHY, _SYMBOLS, _HELD, _WRONG = 2_000, 400, 5, 12, 3
LAST_CARDS: Final = 3
"""Decisions on the page of an agent, and sentences of its fact check."""


def agent_pages(lookup: SeasonIndex, season: str) -> Iterator[b.Page | tuple[str, str]]:
    """The pages of every agent, each after the other, and the files of values; ``season`` is the way back."""
    names, words = list(lookup.agents), lookup.words
    for at, agent in enumerate(lookup.agents.values()):
        book, then = AgentIndex.of(lookup, agent), names[(at + 1) % len(names)]
        places = d.decision_places(book.path, book.steps)
        earned, data = d.earned_section(book)
        up: tuple[b.Inline, ...] = (b.Linked(season, "index.html"),)
        if len(names) > 1:
            up = *up, " · ", words.say("head.next"), " ", b.Linked(clean(then, 60), lookup.pages[then])
        yield _main(book, earned, places, up)
        if data:
            yield d.data_path(book.path), data
        yield from _further(book, places)


# --- the page of an agent ---------------------------------------------------------------------------------------------


def _main(book: AgentIndex, earned: b.Section, places: Mapping[int, str], up: b.Inline) -> b.Page:
    words, agent, steps = book.words, book.agent, book.steps
    place = book.run.decided.place(agent.name)
    # The ranks that it can have, of how many.
    of, ranks = sum(one.first is not None for one in book.run.decided.places), book.say("head.no_place")
    if place.first is not None and place.last is not None:
        ranks = book.say("head.places", first=place.first, last=place.last, of=of)
        if place.first == place.last:
            ranks = book.say("head.place", place=place.first, of=of)
    rank = b.level_words(place.level, words(f"level.{place.level}.tag")), " ", ranks
    why = clean(words.text(place.why), 300)
    head: list[b.Block] = [b.Text((*rank, f": {why}" if why else "", ". ", *_scored(book, place)), "cap stand")]
    head.append(level_blocks(agent_levels(book)))
    if strategy := book.run.plan.strategies.get(agent.name):
        head.append(b.Passage(clean(strategy, _ROOM), book.say("head.strategy")))
    counts = {"decisions": len(steps), "orders": sum(map(d.order_count, steps)),
              "refused": sum(len(step.refusals) for step in steps)}  # fmt: skip
    named = {"family": clean(agent.family, 80), "model": clean(agent.model, 120)}
    facts = book.say("head.facts", **named, **{name: said(f"model.count.{name}", n=n) for name, n in counts.items()})
    # Its value and return, and those of the first baseline.
    account: list[b.Inline] = []
    for path in d.account_paths(book.lookup, agent.name)[:2]:
        gain = words.percent(path.nav[-1] / path.start - 1, sign=True)
        if not account:
            account.append((b.bold(f"{words.amount(path.nav[-1])} {clean(book.run.plan.currency, 12)}"), " ", gain))
        else:
            name = path.name if words.has(f"model.baseline.{path.name}") else "equal weight"
            account.append(book.say("head.beside", baseline=words.word("baseline", name), gain=gain))
    return b.Page(
        book.path, clean(agent.name, 120), facts,
        (earned, _graded(book), _decided(book, places), _checked(book, places)), tuple(head), up=up,
        notice=book.say("head.reference") if agent.built_in else "", aside=tuple(account),
        styles=("season-agent.css", "judges.css", "brush.css"), scripts=("page.js", "brush.js"),
    )  # fmt: skip


def _scored(book: AgentIndex, place: Place) -> tuple[b.Inline, ...]:
    """The points of each judge and their band, and the total; of an agent that shares its tier the judges' range."""
    lookup, words, name = book.lookup, book.words, "season.total"
    row = lookup.rows.get(place.agent)
    agreement = None if row is None else row.agreement
    known = [grade for grade in book.grades if grade.composite is not None]
    if row is None or agreement is None:
        return (book.say("judged.silent" if row is not None and row.state == SILENT else "judged.none"),)
    band_of = agreement.standing
    points = sorted(one.composite or 0.0 for one in known) or [agreement.low, agreement.high]
    kind = {"agreed": "agreed", "contested": "contested", "single judge": "single"}[band_of.state]
    if kind == "single" and not place.shown:
        kind = "alone"
    names = {"band": band_of.band, "low": band_of.lowest, "high": band_of.highest}
    bands = {key: words.term("claim.band", value) for key, value in names.items()}
    sentence = book.say(f"judged.{kind}", points=tuple(map(words.points, points)), **bands)
    if row.absent:
        sentence += f" {book.say('judged.absent', judges=tuple(clean(name, 60) for name in row.absent))}"
    first = book.one("season.composite", judge=known[0].judge if known else "")
    judged = lookup.note(first, sentence)
    if row.total is None:
        return (judged,)
    own, tier = lookup.judged(place.agent, name), lookup.tier_range(place.agent, name)
    total = book.say("head.total", total=row.total)
    if not place.shown and own is not None and tier is not None:
        ends = dict(zip(("low", "high", "tier_low", "tier_high"), map(words.points, (*own, *tier)), strict=True))
        total = book.say("head.range", n=len(known), **ends)
    return judged, " ", lookup.note(book.one(name), total)


def _decided(book: AgentIndex, places: Mapping[int, str]) -> b.Section:
    """What it holds, and its last decisions."""
    words, blocks = book.words, list[b.Block]()
    if (last := d.last_book(book.steps)) is not None:
        cash = f"{words.say('accounts.cash')} {d.cash_share(words, last)}"
        when = b.bold(words.say("decisions.held", day=words.day(last.day)))
        blocks.append(b.Text((when, f": {cash}; {words.say('accounts.held')}: {d.held(words, last, _HELD)}")))
    if latest := book.steps[: -LAST_CARDS - 1 : -1]:
        heads = tuple(words.say(f"decisions.head.{name}") for name in ("day", "trades", "cost", "reason", "source"))
        lines = tuple(d.decision_row(book, step, places[step.number]) for step in latest)
        first, *_ = d.decision_parts(book.path, book.steps)
        all_of_them = b.Linked(words.say("decisions.all", n=len(book.steps)), first)
        blocks += [b.Table(heads, lines, frozenset((2,)), "", stacked=True, style="latest"), b.Text(all_of_them)]
    return b.Section("decisions", book.say("decisions.section"), d.decisions_answer(book), tuple(blocks))


def _checked(book: AgentIndex, places: Mapping[int, str]) -> b.Section:
    """The fact check of its numbers, and what else was checked."""
    blocks: list[b.Block] = []
    if lines := book.lines[: -LAST_CARDS - 1 : -1]:
        first, *_ = d.ledger_parts(book.path, book.lines)
        unkept = book.say("ledger.partial") if book.run.partial else ""
        whole = b.Linked(book.say("ledger.all", n=len(book.lines)), first)
        blocks = [d.ledger_table(book, lines, places), b.Text(whole), *b.notes((unkept,))]
    usable = [grade for grade in book.grades if grade.state == "ok"]
    wrong = d.mismatch_parts(book.path, book.steps)
    listed = b.Linked(book.say("reliability.all"), next(iter(wrong))) if wrong else ""
    some = [b.written(d.mismatch_words(book.words, text)) for part in wrong.values() for _, text in part[:_WRONG]][
        :_WRONG
    ]
    points = sorted(one.data_reliability for one in usable if one.data_reliability is not None)
    shown = tuple(book.words.number(point, 0) for point in points)
    judged = book.say("reliability.judged", points=shown) if points else ""
    # How many checks reconcile; the score is 100 times their share.
    item, found = book.one("season.reliability"), sum(map(len, wrong.values()))
    answer = book.say("reliability.listed", n=found) if found else book.say("reliability.unchecked")
    if item is not None and item.value is None:
        answer = book.say("reliability.none", why=book.words.term("state", item.state))
    elif item is not None and item.value is not None:
        failed, numbers = round(item.n * (1.0 - item.value / 100.0)), {"value": book.words.number(item.value, 1)}
        answer = book.say("reliability.clear", **numbers, n=item.n)
        if failed:
            answer = book.say("reliability.answer", **numbers, n=item.n, failed=failed)
    reliable = (book.lookup.note(item, answer), *some, listed, judged)
    rows: tuple[tuple[str, b.Inline], ...] = (
        (book.say("lookahead.title"), b.spaced(_lookahead(book, usable), " ")),
        (book.say("reliability.title"), b.spaced(filter(None, reliable), " ")),
        (book.say("thrash.title"), _thrash(book, usable)),
    )
    fine = not wrong and all(one.lookahead in (None, "pass") for one in usable)
    blocks.append(b.Group(book.say("checks.section"), (b.Facts(rows),), "checks", "closed" if fine else ""))
    return b.Section("ledger", book.say("ledger.section"), d.ledger_answer(book), tuple(blocks))


def _lookahead(book: AgentIndex, usable: Sequence[SeasonGradeView]) -> Iterator[b.Inline]:
    """What was known of the future, and what each judge says of it, where one saw some."""
    words, looked = book.words, [one for one in usable if one.lookahead is not None]
    failed = sum(one.lookahead != "pass" for one in looked)
    rule = book.say("lookahead.elsewhere" if book.run.source else "lookahead.rule")
    if not looked:
        yield f"{rule} {book.say('lookahead.nobody')}"
        return
    key = "lookahead.found" if failed else "lookahead.clear"
    text = f"{rule} {book.say(key, failed=failed, n=len(looked), count=words.few(len(looked)))}"
    yield book.lookup.note(book.one("season.lookahead"), text)
    for one in looked if failed else ():
        mark = b.Mark("supported" if one.lookahead == "pass" else "contradicted")
        why, word = clean(one.lookahead_reason, _WHY), words.word("lookahead_word", one.lookahead or "")
        said_why = b.written(f" {words.quoted(why)}") if why else ""
        yield mark, b.bold(clean(one.judge, 60)), f": {word}", said_why, "."


def _thrash(book: AgentIndex, usable: Sequence[SeasonGradeView]) -> b.Inline:
    item, words = book.one("season.thrash"), book.words
    if item is not None and item.value is not None and item.detail.get("trades") == 0:
        return book.say("thrash.no_trade")
    said_of = [book.say("thrash.uncounted")]
    if item is not None and item.value is None:
        said_of = [book.say("thrash.none", why=words.term("state", item.state))]
    elif item is not None and item.value is not None:
        said_of = [book.say("thrash.answer", n=round(item.value))]
        within, counts = item.detail.get("within"), item.detail.get("by_symbol")
        said_of += [book.say("thrash.within", n=within)] if isinstance(within, int) else []
        if isinstance(counts, dict) and counts:
            most = tuple(f"{clean(name, 40)} {words.amount(n)}" for name, n in list(counts.items())[:_SYMBOLS])
            said_of.append(book.say("thrash.by_symbol", symbols=most))
    if grades := [one.reasoning[TEMPORAL] for one in usable if TEMPORAL in one.reasoning]:
        low, high = map(words.points, (min(grades), max(grades)))
        said_of.append(book.say("thrash.beside", low=low, high=high))
    return book.lookup.note(item, " ".join(said_of))


# --- what the judges graded -------------------------------------------------------------------------------------------


_AXES: Final = ("reasoning", "evidence")
_VERDICT, _SUMMARY = 400, 1_600


def _graded(book: AgentIndex) -> b.Section:
    """Both axes part by part; folded below the same as a table, points by judge, and what the judges wrote."""
    words, usable = book.words, [grade for grade in book.grades if grade.state == "ok"]
    blocks, below = list[b.Block](), list[b.Block]()
    answer = book.say("graded.single" if usable else "graded.none")
    if len(usable) > 1:
        answer = book.say("graded.answer", count=words.few(len(usable)))
    if usable:
        blocks.append(b.Beside(tuple((_parts_figure(book, axis, usable),) for axis in _AXES)))
        if left := [words.part(part) for part in book.run.scoring.not_applicable]:
            below.append(b.Text(book.say("graded.not_applicable", parts=words.catalogue.names(left))))
        below.append(_parts_table(book, usable, _AXES))
        # A sentence for each part that the fact check lowered.
        lowered = tuple(
            book.say("graded.capped", part=words.part(part), judge=clean(one.judge, 60),
                     given=words.number(one.capped[part.name], 0), counted=words.number(one.evidence[part.name], 0))
            for part in book.run.scoring.evidence for one in usable
            if part.name in one.capped and part.name in one.evidence
        )  # fmt: skip
        if lowered:
            below += [b.Text(book.say("graded.ring")), b.Group(book.say("graded.capped_head"), (b.Items(lowered),))]
        below.append(b.Group(book.say("graded.axes"), (_axes_table(book),)))
    if book.grades:
        texts: list[tuple[str, b.Inline]] = []
        for one in book.grades:
            why = words.word("reply", one.state) + (f" ({clean(one.reason, 300)})" if one.reason else "")
            verdict, summary = clean(one.verdict, _VERDICT), clean(one.summary, _SUMMARY)
            quoted = [b.bold(words.quoted(verdict))] if verdict else []
            quoted += [b.written(words.quoted(summary))] if summary else []
            missing = b.written(book.say("graded.missing", why=why))
            texts.append((clean(one.judge, 60), b.spaced(quoted, " ") if one.state == "ok" else missing))
        below.append(b.Group(book.say("graded.words"), (b.Facts(tuple(texts)),)))
        blocks.append(b.Group(book.say("graded.table"), tuple(below), folded="closed"))
    return b.Section("graded", book.say("graded.section"), answer, tuple(blocks))


def _parts_figure(book: AgentIndex, axis: str, usable: Sequence[SeasonGradeView]) -> b.Figure:
    words, plan = book.words, book.run.scoring
    parts: Sequence[SubComponent] = getattr(plan, axis)
    rows, contested = list[PartRow](), 0
    for part in parts:
        graded = [(one, getattr(one, axis)[part.name]) for one in usable if part.name in getattr(one, axis)]
        lowered = [(one.capped[part.name], points) for one, points in graded if part.name in one.capped]
        judged = [(points, book.lookup.judge_place(one.judge)) for one, points in graded]
        rows.append((words.part(part), _weight(book, part), judged, lowered))
        contested += len({band(points, plan=plan) for points, _ in judged}) > 1
    weak, mixed, strong = (words.term("claim.band", name) for name in ("weak", "mixed", "strong"))
    title = words.say(f"graded.title.{axis}", count=words.few(len(rows)))
    desc = words.say("graded.desc", n=len(rows), contested=contested)
    wide, narrow = part_figure(f"parts-{axis}", rows, plan.bands, (weak, mixed, strong), title, desc)
    judges = []
    for one in usable:
        given = ", ".join(f"{words.part(part)} {_given(book, one, axis, part.name)}" for part in parts)
        if (at := book.lookup.judge_place(one.judge)) is not None:
            judges.append(JudgeWords(at, clean(one.judge, 60), given))
    return b.Figure(title, "", wide, narrow, None, _parts_table(book, usable, (axis,)), tuple(judges))


def _parts_table(book: AgentIndex, usable: Sequence[SeasonGradeView], axes: Sequence[str]) -> b.Table:
    """Points of every judge, with what a judge gave in brackets where the fact check lowered it."""
    rows: tuple[tuple[b.Inline, ...], ...] = tuple(
        (book.words.part(part), _weight(book, part),
         *(_to_grade(book, one.judge, _given(book, one, axis, part.name)) for one in usable))
        for axis in axes for part in getattr(book.run.scoring, axis)
    )  # fmt: skip
    heads = (book.say("graded.part"), book.say("graded.weight"), *(clean(g.judge, 40) for g in usable))
    return b.Table(heads, rows, frozenset(range(1, len(heads))), "")


def _to_grade(book: AgentIndex, judge: str, text: str) -> str:
    """A text that leads to what a judge gave this agent, where records lie beside the pages."""
    return b.Linked(text, book.lookup.record("grades", judge, book.agent.name))


def _weight(book: AgentIndex, part: SubComponent) -> str:
    return book.words.number(part.weight, 0 if part.weight == round(part.weight) else 1)


def _given(book: AgentIndex, one: SeasonGradeView, axis: str, part: str) -> str:
    points, words = getattr(one, axis).get(part), book.words
    if points is None:
        return book.say("graded.not_graded")
    given = f" ({book.say('graded.given', points=words.number(one.capped[part], 0))})" if part in one.capped else ""
    return f"{words.number(points, 0)}{given}"


def _axes_table(book: AgentIndex) -> b.Table:
    """A row for each judge: its composite, the axes and the outcome."""
    words, rows = book.words, list[tuple[b.Inline, ...]]()
    shown = book.lookup.shown(book.agent.name) or sum(grade.composite is not None for grade in book.grades) > 1

    def points(value: float | None) -> str:
        return book.say("graded.not_graded") if value is None else words.number(value, 1)

    for one in book.grades:
        if one.state != "ok":
            rows.append((clean(one.judge, 60), *([words.word("reply", one.state)] * 5)))
            continue
        cells = [points(one.axes.get(name)) for name in ("reasoning", "evidence", "process")]
        cells.append(words.term("state", one.outcome_state) if one.outcome is None else points(one.outcome))
        composite: str = b.Styled(words("frame.withheld"), "gap")  # of a single judge it is the total
        if shown:
            composite = _to_grade(book, one.judge, points(one.composite))
        rows.append((clean(one.judge, 60), composite, *(_to_grade(book, one.judge, cell) for cell in cells)))
    names = ("judge", "composite", "reasoning", "evidence", "process", "outcome")
    return b.Table(tuple(words.say(f"graded.head.{name}") for name in names), tuple(rows), frozenset(range(1, 6)), "")


# --- the pages beside it ----------------------------------------------------------------------------------------------


def _further(book: AgentIndex, places: Mapping[int, str]) -> Iterator[b.Page]:
    """All of its decisions, of its fact check, and of what does not reconcile, each with a link back to its page."""
    words, wrong, counts = book.words, d.mismatch_parts(book.path, book.steps), d.ledger_counts(book)
    kinds: Sequence[tuple[str, b.Inline, Mapping[str, Sequence[Any]], Callable[[Any], tuple[b.Block, ...]]]] = (
        ("decisions", d.decisions_answer(book), d.decision_parts(book.path, book.steps),
         lambda steps: (b.Listing(tuple(d.decision_group(book, step) for step in steps),
                                  d.decision_filters(words, steps), words.say("decisions.what"), "decision-cards"),)),
        ("ledger", book.say("ledger.answer"), d.ledger_parts(book.path, book.lines),
         lambda lines: (*b.notes(d.ledger_notes(book)), *((counts,) if counts else ()),
                        d.ledger_table(book, lines, places, "claim-lines"))),
        ("checks", book.say("reliability.listed", n=sum(map(len, wrong.values()))), wrong,
         lambda found: (d.mismatch_table(book, found, places),)),
    )  # fmt: skip
    for kind, lead, parts, made in kinds:
        for path, rows, links in beside(parts.items(), part=words("frame.part"), parts=words("frame.parts")):
            name = clean(book.agent.name, 120)
            up, title = b.Linked(name, f"{book.path}#{kind}"), book.say(f"further.{kind}", agent=name)
            yield b.Page(path, title, lead, blocks=made(rows), up=up, parts=links, styles=("season-agent.css",))
