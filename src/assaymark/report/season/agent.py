"""The pages of an agent: one with account, grades, last decisions and checks, and others with all of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from assaymark.claims.certification import Rank
from assaymark.claims.levels import SILENT
from assaymark.claims.messages import Phrase, phrase
from assaymark.judging.season.plans import TEMPORAL, SubComponent
from assaymark.judging.season.scoring import band
from assaymark.report import blocks as b
from assaymark.report.charts.canvas import JudgeWords
from assaymark.report.page import with_pager
from assaymark.report.season import decisions as d
from assaymark.report.season.index import AgentIndex, SeasonGradeView, SeasonIndex
from assaymark.report.season.leaderboard import PartRow, part_figure
from assaymark.report.season.levels import agent_levels, level_blocks
from assaymark.report.text import EQUAL_WEIGHT, bounds_of, known
from assaymark.text import clean

_ROOM, _WHY, _SYMBOLS, _HELD, _WRONG = 2_000, 400, 5, 12, 3
LAST_CARDS: Final = 3
"""Number of decisions, and of rows of the fact check, on the page of an agent."""


def agent_pages(season: SeasonIndex, link_text: str) -> Iterator[b.Page | tuple[str, str]]:
    """The pages of every agent, with the files of values; ``link_text`` is that of the link to the first page."""
    names, words = list(season.agents), season.words
    for at, agent in enumerate(season.agents.values()):
        index, then = AgentIndex.of(season, agent), names[(at + 1) % len(names)]
        wrong = [(step, text) for step in index.steps for text in step.mismatches]
        listed: dict[str, Sequence[Any]] = {"decisions": index.steps, "ledger": index.lines, "checks": wrong}
        lists = {kind: d.list_pages(season, index.path, kind, rows) for kind, rows in listed.items()}
        places, file = d.decision_links(lists["decisions"]), index.path.removesuffix(".html") + ".csv"
        earned, data = _returns(index, file)
        up: tuple[b.Inline, ...] = (b.Linked(link_text, "index.html"),)
        if len(names) > 1:
            up = *up, " · ", words.say("head.next"), " ", b.Linked(clean(then, 60), season.pages[then])
        yield _main(index, earned, places, up)
        if data:
            yield file, data
        # All of its decisions, fact checks and mismatches, each page with a link back to the agent.
        kinds: Sequence[tuple[str, b.Inline, Sequence[b.Block]]] = (
            ("decisions", d.decisions_answer(index), ()), ("ledger", index.say("ledger.answer"), d.ledger_head(index)),
            ("checks", index.say("reliability.listed", len(wrong)), ()),
        )  # fmt: skip
        name, named = clean(agent.name, 120), {"part": words("frame.part"), "parts": words("frame.parts")}
        for kind, lead, head in kinds:
            title, back = index.say(f"further.{kind}", agent=name), b.Linked(name, f"{index.path}#{kind}")
            for path, some, links in with_pager(lists[kind].items(), **named):
                block: b.Block
                if kind == "decisions":
                    block = d.decision_listing(index, some)
                elif kind == "ledger":
                    block = d.ledger_table(index, some, places, "claim-lines")
                else:
                    lost = tuple(
                        (b.Linked(words.amount(step.number), places[step.number]), clean(step.day, 24),
                         b.verbatim(d.mismatch_words(words, text)))
                        for step, text in some
                    )  # fmt: skip
                    columns = tuple(index.say(f"reliability.{name}") for name in ("day", "date", "text"))
                    block = b.Table(columns, lost, summary="", stacked=True)
                yield b.Page(path, title, lead, blocks=(*head, block), up=back, parts=links,
                             styles=("season-agent.css",))  # fmt: skip


def _main(index: AgentIndex, earned: b.Section, places: Mapping[int, str], up: b.Inline) -> b.Page:
    words, agent, steps = index.words, index.agent, index.steps
    place = index.run.decided.place(agent.name)
    # Its possible ranks, and the number of ranked agents.
    of, ranks = sum(place.first is not None for place in index.run.decided.places), index.say("head.no_place")
    if place.first is not None and place.last is not None:
        ranks = index.say("head.places", first=place.first, last=place.last, of=of)
        if place.first == place.last:
            ranks = index.say("head.place", place=place.first, of=of)
    rank = b.Mark(place.level, words(f"level.{place.level}.tag")), " ", ranks
    reason = clean(words.text(place.why), 300)
    head: list[b.Block] = [b.Prose((*rank, f": {reason}" if reason else "", ". ", *_points(index, place)), "cap stand")]
    head.append(level_blocks(agent_levels(index)))
    if strategy := index.run.plan.strategies.get(agent.name):
        head.append(b.Passage(clean(strategy, _ROOM), index.say("head.strategy")))
    counts = {"decisions": len(steps), "orders": sum(map(d.order_count, steps)),
              "refused": sum(len(step.rejections) for step in steps)}  # fmt: skip
    named = {"family": clean(agent.family, 80), "model": clean(agent.model, 120)}
    facts = index.say("head.facts", **named, **{name: phrase(f"model.count.{name}", n) for name, n in counts.items()})
    account: list[b.Inline] = []
    for path in d.account_paths(index.season, agent.name)[:2]:
        gain = words.percent(path.nav[-1] / path.start - 1, sign=True)
        if not account:
            account.append((b.bold(f"{words.amount(path.nav[-1])} {clean(index.run.plan.currency, 12)}"), " ", gain))
        else:
            name = path.name if words.has(f"model.baseline.{path.name}") else "equal weight"
            account.append(index.say("head.beside", baseline=words.word("baseline", name), gain=gain))
    shown = list[b.Block]()
    if (holdings := d.holdings(index.season, agent.name, _HELD)) is not None:
        held = "accounts.held" if index.run.closes else "accounts.units"
        shares = f": {words.say('accounts.cash')} {holdings[1]}; {words.say(held)}: {holdings[2]}"
        shown.append(b.Prose((b.bold(words.say("decisions.held", day=words.day(index.run.last))), shares)))
    if latest := steps[: -LAST_CARDS - 1 : -1]:
        columns = tuple(words.say(f"decisions.head.{name}") for name in ("day", "trades", "cost", "reason", "source"))
        lines = tuple(
            (words.day(step.day), d.trades_words(index.season, step),
             words.amount(sum(fill.cost for fill in step.fills if fill.kind == "order"), 2),
             d.first_reason(words, step),
             d.prompt_link(index, step) or b.Linked(words.say("decisions.whole"), places[step.number]))
            for step in latest
        )  # fmt: skip
        whole = b.Linked(words.say("decisions.all", len(steps)), f"{index.path.removesuffix('.html')}/decisions.html")
        shown += [b.Table(columns, lines, frozenset((2,)), "", stacked=True, style="latest"), b.Prose(whole)]
    decided = b.Section("decisions", index.say("decisions.section"), d.decisions_answer(index), tuple(shown))
    return b.Page(
        index.path, clean(agent.name, 120), facts, (earned, _graded(index), decided, _checked(index, places)),
        tuple(head), up=up, notice=index.say("head.reference") if agent.built_in else "", aside=tuple(account),
        styles=("season-agent.css", "judges.css", "brush.css"), scripts=("page.js", "brush.js"),
    )  # fmt: skip


def _returns(index: AgentIndex, file: str) -> tuple[b.Section, str]:
    """The returns of an agent: its account with the baselines, its drawdown, and its difference to equal weight."""
    title, account = index.say("earned.section"), d.account_figure(index.season, index.agent.name, "", data=file)
    if account is None:
        return b.Section("earned", title, index.say("earned.no_path")), ""
    words, (account_path, *others) = index.words, d.account_paths(index.season, index.agent.name)
    navs = [path.on(account_path.days) for path in (account_path, *others)]
    gains = [words.percent(float(nav[-1] / nav[0] - 1), sign=True) for nav in navs]
    if not others:
        lead = index.say("earned.answer_alone", len(account_path.days), own=gains[0])
        return b.Section("earned", title, lead, (account[0],)), account[1]
    baseline = words.word("baseline", d.baseline_key(others[0]))
    lead = index.say("earned.answer", len(account_path.days), own=gains[0], baseline=baseline, other=gains[1])
    if others[0].name not in EQUAL_WEIGHT:
        return b.Section("earned", title, lead, (account[0],)), account[1]
    # The difference over all days, and the mean daily one with its bootstrap interval, in percentage points.
    item = index.get("season.excess", baseline=others[0].name)
    points = words.number(100 * float(navs[0][-1] / navs[0][0] - navs[1][-1] / navs[1][0]), 1, sign=True)
    whole, more = words.say("earned.whole", len(navs[0]) - 1, baseline=baseline, points=points), ""
    if known(item):
        daily, ends = words.number(100 * item.value, 3, sign=True), bounds_of(item)
        if ends is None:
            more = words.say("earned.daily_alone", points=daily)
        else:
            low, high = (words.number(100 * end, 3, sign=True) for end in ends)
            level = words.percent(item.level if item.level is not None else 0.95, 0)
            zero = "holds_zero" if ends[0] <= 0 <= ends[1] else "clear_of_zero"
            interval = words.say("earned.daily", item.n, points=daily, level=level, low=low, high=high)
            more = f"{interval} {words.say(f'earned.{zero}')}"
    elif item is not None:
        more = words.say("earned.no_interval", why=words.term("state", item.state))
    said = b.Prose((whole, " ", index.season.link(item, more)), "cap")
    return b.Section("earned", title, lead, (said, account[0])), account[1]


def _points(index: AgentIndex, place: Rank[Phrase]) -> tuple[b.Inline, ...]:
    """The points of each judge with their band, and the total or, in a shared tier, the range of the judges."""
    season, words, name = index.season, index.words, "season.total"
    row = season.rows.get(place.agent)
    agreement = None if row is None else row.agreement
    usable = [grade for grade in index.grades if grade.composite is not None]
    if row is None or agreement is None:
        return (index.say("judged.silent" if row is not None and row.state == SILENT else "judged.none"),)
    points = sorted(grade.composite or 0.0 for grade in usable) or [agreement.low, agreement.high]
    kind = {"agreed": "agreed", "contested": "contested", "single judge": "single"}[agreement.state]
    if kind == "single" and not place.shown:
        kind = "alone"
    names = {"band": agreement.band, "low": agreement.lowest, "high": agreement.highest}
    bands = {key: words.term("claim.band", value) for key, value in names.items()}
    sentence = index.say(f"judged.{kind}", points=tuple(map(words.points, points)), **bands)
    if row.absent:
        sentence += f" {index.say('judged.absent', judges=tuple(clean(name, 60) for name in row.absent))}"
    first = index.get("season.composite", judge=usable[0].judge if usable else "")
    judged = season.link(first, sentence)
    if row.total is None:
        return (judged,)
    bounds, tier = season.judged(place.agent, name), season.tier_range(place.agent, name)
    total = index.say("head.total", total=row.total)
    if not place.shown and bounds is not None and tier is not None:
        ends = dict(zip(("low", "high", "tier_low", "tier_high"), map(words.points, (*bounds, *tier)), strict=True))
        total = index.say("head.range", len(usable), **ends)
    return judged, " ", season.link(index.get(name), total)


def _checked(index: AgentIndex, places: Mapping[int, str]) -> b.Section:
    """The fact check of its numbers, and further checks: look-ahead, reconciliation and round-trip trading."""
    words, blocks, link, folder = index.words, list[b.Block](), index.season.link, index.path.removesuffix(".html")
    if lines := index.lines[: -LAST_CARDS - 1 : -1]:
        unkept = index.say("ledger.partial") if index.run.partial else ""
        whole = b.Prose(b.Linked(index.say("ledger.all", len(index.lines)), f"{folder}/ledger.html"))
        blocks = [d.ledger_table(index, lines, places), whole, *b.notes((unkept,))]
    usable = [grade for grade in index.grades if grade.state == "ok"]
    # The number of reconciled checks; the score is 100 times their share.
    bad = [text for step in index.steps for text in step.mismatches]
    more = b.Linked(index.say("reliability.all"), f"{folder}/checks.html") if bad else ""
    some = [b.verbatim(d.mismatch_words(words, text)) for text in bad[:_WRONG]]
    points = sorted(grade.data_reliability for grade in usable if grade.data_reliability is not None)
    judged = index.say("reliability.judged", points=tuple(words.number(point, 0) for point in points)) if points else ""
    item = index.get("season.reliability")
    answer = index.say("reliability.listed", len(bad)) if bad else index.say("reliability.unchecked")
    if known(item):
        failed, numbers = round(item.n * (1.0 - item.value / 100.0)), {"value": words.number(item.value, 1)}
        answer = index.say("reliability.clear", item.n, **numbers)
        if failed:
            answer = index.say("reliability.answer", item.n, **numbers, failed=failed)
    elif item is not None:
        answer = index.say("reliability.none", why=words.term("state", item.state))
    reliable = (link(item, answer), *some, more, judged)
    # The look-ahead check, with each judge's answer if one found some.
    looked = [grade for grade in usable if grade.lookahead is not None]
    failed = sum(grade.lookahead != "pass" for grade in looked)
    parts: list[b.Inline] = [index.say("lookahead.elsewhere" if index.run.source else "lookahead.rule")]
    if not looked:
        parts = [f"{parts[0]} {index.say('lookahead.nobody')}"]
    else:
        key = "lookahead.found" if failed else "lookahead.clear"
        text = f"{parts[0]} {index.say(key, len(looked), failed=failed, count=words.few(len(looked)))}"
        parts = [link(index.get("season.lookahead"), text)]
    for grade in looked if failed else ():
        mark = b.Mark("supported" if grade.lookahead == "pass" else "contradicted")
        reason, word = clean(grade.lookahead_reason, _WHY), words.word("lookahead_word", grade.lookahead or "")
        said_why = b.verbatim(f" {words.quoted(reason)}") if reason else ""
        parts.append((mark, b.bold(clean(grade.judge, 60)), f": {word}", said_why, "."))
    rows: tuple[tuple[str, b.Inline], ...] = (
        (index.say("lookahead.title"), b.chained(parts, " ")),
        (index.say("reliability.title"), b.chained(filter(None, reliable), " ")),
        (index.say("thrash.title"), _round_trips(index, usable)),
    )
    blocks.append(b.Group(index.say("checks.section"), (b.Terms(rows),), "checks", "" if bad or failed else "closed"))
    return b.Section("ledger", index.say("ledger.section"), d.ledger_answer(index), tuple(blocks))


def _round_trips(index: AgentIndex, usable: Sequence[SeasonGradeView]) -> b.Inline:
    item, words = index.get("season.thrash"), index.words
    if known(item) and item.detail.get("trades") == 0:
        return index.say("thrash.no_trade")
    said_of = [index.say("thrash.uncounted")]
    if item is not None and not known(item):
        said_of = [index.say("thrash.none", why=words.term("state", item.state))]
    elif known(item):
        said_of = [index.say("thrash.answer", round(item.value))]
        within, counts = item.detail.get("within"), item.detail.get("by_symbol")
        said_of += [index.say("thrash.within", within)] if isinstance(within, int) else []
        if isinstance(counts, dict) and counts:
            most = tuple(f"{clean(name, 40)} {words.amount(n)}" for name, n in list(counts.items())[:_SYMBOLS])
            said_of.append(index.say("thrash.by_symbol", symbols=most))
    if grades := [grade.reasoning[TEMPORAL] for grade in usable if TEMPORAL in grade.reasoning]:
        low, high = map(words.points, (min(grades), max(grades)))
        said_of.append(index.say("thrash.beside", low=low, high=high))
    return index.season.link(item, " ".join(said_of))


_AXES: Final = ("reasoning", "evidence")
_VERDICT, _SUMMARY = 400, 1_600


def _graded(index: AgentIndex) -> b.Section:
    """Both axes part by part; folded below them the tables, points by judge, and the judges' texts."""
    words, usable, plan = index.words, [grade for grade in index.grades if grade.state == "ok"], index.run.scoring
    blocks, below, none = list[b.Block](), list[b.Block](), index.say("graded.not_graded")
    answer = index.say("graded.single" if usable else "graded.none")
    if len(usable) > 1:
        answer = index.say("graded.answer", count=words.few(len(usable)))
    places = {grade.judge: index.season.record("grades", grade.judge, index.agent.name) for grade in index.grades}
    if usable:
        # Points of every judge, with the points given in brackets if the fact check lowered them.
        columns = (index.say("graded.part"), index.say("graded.weight"), *(clean(grade.judge, 40) for grade in usable))
        drawn, lines = list[tuple[b.Figure]](), list[tuple[b.Inline, ...]]()
        for axis in _AXES:
            parts = [
                (words.part(part), words.number(part.weight, 0 if part.weight == round(part.weight) else 1),
                 *(b.Linked(_points_words(index, grade, axis, part.name), places[grade.judge]) for grade in usable))
                for part in getattr(plan, axis)
            ]  # fmt: skip
            table = b.Table(columns, tuple(parts), frozenset(range(1, len(columns))), "")
            drawn.append((_parts_figure(index, axis, usable, table),))
            lines += parts
        blocks.append(b.Columns(tuple(drawn)))
        if omitted := [words.part(part) for part in plan.not_applicable]:
            below.append(b.Prose(index.say("graded.not_applicable", parts=words.catalogue.names(omitted))))
        below.append(b.Table(columns, tuple(lines), frozenset(range(1, len(columns))), ""))
        # A sentence for each part that the fact check lowered.
        lowered = tuple(
            index.say("graded.capped", part=words.part(part), judge=clean(grade.judge, 60),
                     given=words.number(grade.capped[part.name], 0), counted=words.number(grade.evidence[part.name], 0))
            for part in plan.evidence for grade in usable if part.name in grade.capped and part.name in grade.evidence
        )  # fmt: skip
        if lowered:
            below += [b.Prose(index.say("graded.ring")), b.Group(index.say("graded.capped_head"), (b.Items(lowered),))]
    # A row for each judge: its composite, the axes and the outcome; and its texts.
    texts, rows = list[tuple[str, b.Inline]](), list[tuple[b.Inline, ...]]()
    shown = index.season.shown(index.agent.name) or sum(grade.composite is not None for grade in index.grades) > 1
    for grade in index.grades:
        judge, state = clean(grade.judge, 60), words.word("reply", grade.state)
        if grade.state != "ok":
            reason = state + (f" ({clean(grade.reason, 300)})" if grade.reason else "")
            texts.append((judge, b.verbatim(index.say("graded.missing", why=reason))))
            rows.append((judge, *([state] * 5)))
            continue
        verdict, summary = clean(grade.verdict, _VERDICT), clean(grade.summary, _SUMMARY)
        quoted = [b.bold(words.quoted(verdict))] if verdict else []
        quoted += [b.verbatim(words.quoted(summary))] if summary else []
        texts.append((judge, b.chained(quoted, " ")))
        values = (grade.composite, *map(grade.axes.get, ("reasoning", "evidence", "process")), grade.outcome)
        cells = [none if value is None else words.number(value, 1) for value in values]
        cells[-1] = words.term("state", grade.outcome_state) if grade.outcome is None else cells[-1]
        first, *others = [b.Linked(cell, places[grade.judge]) for cell in cells]
        # With a single judge the composite is the total.
        rows.append((judge, first if shown else b.Styled(words("frame.withheld"), "gap"), *others))
    if usable:
        names = ("judge", "composite", "reasoning", "evidence", "process", "outcome")
        titles = tuple(words.say(f"graded.head.{name}") for name in names)
        below.append(b.Group(index.say("graded.axes"), (b.Table(titles, tuple(rows), frozenset(range(1, 6)), ""),)))
    if texts:
        below.append(b.Group(index.say("graded.words"), (b.Terms(tuple(texts)),)))
        blocks.append(b.Group(index.say("graded.table"), tuple(below), folded="closed"))
    return b.Section("graded", index.say("graded.section"), answer, tuple(blocks))


def _parts_figure(index: AgentIndex, axis: str, usable: Sequence[SeasonGradeView], table: b.Table) -> b.Figure:
    words, plan = index.words, index.run.scoring
    parts: Sequence[SubComponent] = getattr(plan, axis)
    rows, contested, judges = list[PartRow](), 0, list[JudgeWords]()
    for part in parts:
        graded = [(grade, getattr(grade, axis)[part.name]) for grade in usable if part.name in getattr(grade, axis)]
        lowered = [(grade.capped[part.name], points) for grade, points in graded if part.name in grade.capped]
        judged = [(points, index.season.judge_place(grade.judge)) for grade, points in graded]
        weight = words.number(part.weight, 0 if part.weight == round(part.weight) else 1)
        rows.append((words.part(part), weight, judged, lowered))
        contested += len({band(points, plan) for points, _ in judged}) > 1
    weak, mixed, strong = (words.term("claim.band", name) for name in ("weak", "mixed", "strong"))
    title = words.say(f"graded.title.{axis}", count=words.few(len(rows)))
    desc = words.say("graded.desc", len(rows), contested=contested)
    wide, narrow = part_figure(f"parts-{axis}", rows, plan.bands, (weak, mixed, strong), title, desc)
    for grade in usable:
        values = ", ".join(f"{words.part(part)} {_points_words(index, grade, axis, part.name)}" for part in parts)
        if (at := index.season.judge_place(grade.judge)) is not None:
            judges.append(JudgeWords(at, clean(grade.judge, 60), values))
    return b.Figure(title, "", wide, narrow, None, table, tuple(judges))


def _points_words(index: AgentIndex, grade: SeasonGradeView, axis: str, part: str) -> str:
    points, words = getattr(grade, axis).get(part), index.words
    if points is None:
        return index.say("graded.not_graded")
    note = f" ({index.say('graded.given', points=words.number(grade.capped[part], 0))})" if part in grade.capped else ""
    return f"{words.number(points, 0)}{note}"
