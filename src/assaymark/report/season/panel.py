"""The page of the panel: the judges, their agreement and noise, and the effect of each on totals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from assaymark.metrology.measure_people import NOT_DRAWN
from assaymark.records import AGGREGATE, Measurement
from assaymark.report import blocks as b
from assaymark.report.charts.canvas import JudgeWords
from assaymark.report.records.answers import SEASON_RECORDS
from assaymark.report.season.index import SeasonIndex, round_points
from assaymark.report.season.leaderboard import band_words, judged_points, strip_head, strip_markup
from assaymark.report.season.levels import reason_words, result_words
from assaymark.report.text import detail_of, known, limits
from assaymark.text import clean, end_digits, gate_digits

LARGE: Final = 10.0
"""Points from which a difference without an interval is called large."""

_LINES: Final = 40
REASONS: Final = {
    "names an agent, a model or its maker": "author", "identifiers of records and episodes": "identifier",
    "a listed name stands in it, and it is in the universe": "universe",
}  # fmt: skip
"""The key of the words for each reason of a blinding audit line."""


def panel_page(index: SeasonIndex) -> b.Page:
    """The page of the panel; agents are always in alphabetical order."""
    words, judges = index.words, index.run.plan.panel
    families = {judge.family for judge in judges}
    shared = sorted(families & {agent.family for agent in index.agents.values()})
    panel = words(
        "panel.lede", judges=words("panel.count", len(judges), few=words.few(len(judges))),
        families=words("panel.families", len(families), few=words.few(len(families))),
    )  # fmt: skip
    conflict = words("panel.conflict", len(shared), families=words.names(shared)) if shared else words("panel.apart")
    preference, changes, floors = preference_table(index), list[tuple[b.Inline, ...]](), list[tuple[b.Inline, ...]]()
    # The judges' agreement on bands, over records of single periods.
    item, ends = index.get("season.kappa"), ""
    if not known(item):
        kappa = words("kappa.none", state=words.term("state", "not measured" if item is None else item.state))
    else:
        if within := limits(item, lambda low, high: words.span(low, high, end_digits(low, high)), ""):
            ends = words("kappa.ends", ends=within, level=words.percent(item.level or 0.95, 0))
        digits = gate_digits(item.value, index.run.plan.judging.halt, index.run.plan.judging.publish)
        kappa = words("kappa.said", words.amount(item.n), kappa=words.number(item.value, digits), ends=ends)
    # The change of each agent's total without each judge; for agents that share a tier only the maximum.
    most, undefined = dict[str, float](), words("state.not defined")
    for agent in index.agents if len(judges) > 1 else ():
        moved = {judge.name: _without(index, agent, judge.name) for judge in judges}
        if not index.shown(agent):
            moves = ((name, abs(change)) for name, change in moved.items() if change is not None)
            most |= {name: max(size, most.get(name, 0.0)) for name, size in moves}
        elif any(change is not None for change in moved.values()):
            changes.append((clean(agent, 60), *(
                b.Linked(undefined if change is None else words.number(change, 1, sign=True),
                         index.href(index.get("season.without", agent=agent, judge=name)))
                for name, change in moved.items()
            )))  # fmt: skip
    if most:
        sizes = (most.get(judge.name) for judge in judges)
        cells = (undefined if size is None else words("without.most", change=size) for size in sizes)
        changes.append((words("without.tiers"), *cells))
    heads = (words("board.agent"), *(words("without.head", judge=clean(judge.name, 60)) for judge in judges))
    without = b.Table(heads, tuple(changes), frozenset(range(1, len(heads))), "", style="narrowed") if changes else None
    names = [("noise", "of", "panel"), *(("judge_noise", "judge", judge.name) for judge in judges)]
    for kind, label, name in (*names, *(("noise", "of", name) for name in index.agents)):
        if (floor := index.get(f"season.{kind}", **{label: name})) is None:
            continue
        value = words("noise.points", value=floor.value) if known(floor) else words.term("state", floor.state)
        freedom = detail_of(floor, "freedom")
        basis = words("noise.rests", words.amount(floor.n), of=words.of(floor.n, floor.n_of))
        basis = basis if freedom is None else words("noise.free", int(freedom), rests=basis)
        subject = words("noise.panel") if (kind, name) == ("noise", "panel") and not floors else clean(name, 60)
        floors.append((subject, b.Linked(value, index.href(floor)), basis))
    of_floors = (words("noise.of"), words("noise.floor"), words("noise.from"))
    noise = b.Table(of_floors, tuple(floors), summary="", style="narrowed") if floors else None
    records = b.Linked(words("panel.records"), f"{index.up}{SEASON_RECORDS}") if index.run.records else ""
    jury, agreed = _tables(index)
    tables = (
        b.Section(id, words(f"{name}.title"), words(f"{name}.lede" if table else f"{name}.{missing}"),
                (table,) if table else ())
        for id, name, table, missing in (("self-preference", "preference", preference, "nobody"),
                                         ("without", "without", without, "none"), ("noise", "noise", noise, "none"))
    )  # fmt: skip
    return b.Page(
        "panel.html", words("panel.title"), f"{panel[:1].upper()}{panel[1:]} {conflict}",
        (
            b.Section("judges", words("panel.judges"), words("panel.alone_lede"), (jury,)),
            b.Section("agreement", words("agreement.title"), b.Linked(kappa, index.href(item)),
                      (agreed, b.Prose(words("agreement.note")))),
            *people_sections(index), *tables,
            b.Section("blinding", words("blinding.title"), "", (*blinding_blocks(index), *b.notes((records,)))),
        ),
        here="panel", styles=("season-tables.css", "season-panel.css", "judges.css"),
    )  # fmt: skip


def _tables(index: SeasonIndex) -> Iterator[b.Table]:
    """The judges of the panel; and the spread of their composites for each agent."""
    words, rows = index.words, list[tuple[b.Inline, ...]]()
    verbose = any(index.get("season.verbosity", judge=judge.name) for judge in index.run.plan.panel)

    def value(item: Measurement | None, missing: str = words("state.not measured")) -> str:
        return b.Linked(missing if item is None else result_words(item, words), index.href(item))

    for judge in index.run.plan.panel:
        kind = "human" if judge.human else "reference" if judge.built_in else "model"
        invalid, alone, verbosity = (
            index.get(f"season.{name}", judge=judge.name) for name in ("invalid", "alone", "verbosity")
        )
        bad = words("state.not measured") if invalid is None else words.term("state", invalid.state)
        if known(invalid):
            wrong = words.amount(round(invalid.value * invalid.n))
            bad = words("panel.invalid", words.amount(invalid.n), bad=wrong)
        # A path with a scheme or a host is not linked, because a site has no external links.
        sheet = index.run.sheets.get(judge.name, "")
        sheet = "" if ":" in sheet or sheet.startswith(("/", "\\")) else clean(sheet, 300)
        cells: list[b.Inline] = [
            (clean(judge.name, 60), b.small(words("panel.family", family=clean(judge.family, 60)))),
            (clean(judge.model, 80), b.small(words(f"panel.kind.{kind}"))), words.amount(judge.trials),
            b.Linked(words("panel.open"), index.up + sheet) if sheet else b.Styled(words("panel.no_datasheet"), "un"),
            b.Linked(bad, index.href(invalid)), value(alone),
        ]  # fmt: skip
        rows.append((*cells, *([value(verbosity, "")] if verbose else [])))
    names = ["preference.judge", "panel.model", "panel.trials", "panel.datasheet", "panel.replies", "panel.alone"]
    columns = tuple(map(words, [*names, *(["panel.verbosity"] if verbose else [])]))
    yield b.Table(columns, tuple(rows), frozenset((2,)), "", stacked=True, style="jury")
    rows = []
    for agent in index.agents:
        row, ends = index.rows.get(agent), index.judged(agent, "season.composite")
        numbers: list[b.Inline] = [b.Styled(words("board.ungraded"), "un"), "", ""]
        if row is not None and row.agreement is not None and ends is not None:
            to = f"{index.pages[agent]}#graded"
            numbers = [b.Linked(words.number(value), to) for value in (*ends, ends[1] - ends[0])]
        absent = words("agreement.absent", judges=words.names(row.absent)) if row is not None and row.absent else ""
        strip = strip_markup(index, index.run.decided.place(agent).level, judged_points(index, agent))
        name = b.Linked(clean(agent, 60), index.pages[agent])
        rows.append((name, *numbers, strip, (band_words(row, words), b.small(absent) if absent else "")))
    of_agents = (*map(words, ("board.agent", "agreement.low", "agreement.high", "agreement.spread")), strip_head(index),
                 words("agreement.band"))  # fmt: skip
    points = []
    for at, judge in enumerate(index.run.plan.panel):
        scored = [(agent, value) for agent in index.agents for value, who in judged_points(index, agent) if who == at]
        scores = ", ".join(f"{clean(agent, 60)} {words.number(value)}" for agent, value in scored)
        points += [JudgeWords(at, clean(judge.name, 60), scores)] if scores else []
    yield b.Table(of_agents, tuple(rows), summary="", stacked=True, style="board season agr",
                  styles=("", "r", "r", "r", "b", ""), judges=tuple(points))  # fmt: skip


def people_sections(index: SeasonIndex) -> Iterator[b.Section]:
    """The agreement of each judge with people on a sample of periods, and that of two people; empty without people."""
    words, rows = index.words, list[tuple[b.Inline, ...]]()
    sample, two = (index.get(f"human.{name}", AGGREGATE) for name in ("sample", "agreement"))
    if sample is None or two is None:
        return

    def stated(measure: Mapping[str, Any], digits: int = 2, *, sign: bool = False) -> str:
        """An estimate from a measurement's detail with its interval."""
        if measure["estimate"] is None:
            return words.term("state", str(measure["state"]).partition(" (")[0])
        value, low, high = words.number(measure["estimate"], digits, sign), measure["low"], measure["high"]
        return value if low is None or high is None else f"{value} ({words.span(low, high, digits, sign)})"

    def reached(item: Measurement) -> str:
        """A kappa with its interval, or the reason why there is none."""
        text = reason_words(item, words)
        if item.value is not None:
            text = stated({"estimate": item.value, "low": item.low, "high": item.high})
        return index.link(item, text)

    detail = sample.detail
    sentences = [words("people.said", len(detail["graders"]), graded=detail["graded"], drawn=detail["drawn"])]
    sentences += [words("people.refused")] if sample.state.startswith(NOT_DRAWN) else []
    for judge in index.run.plan.panel:
        if (item := index.get("human.judge", AGGREGATE, judge=judge.name)) is not None:
            points = stated(item.detail["icc"]), stated(item.detail["bias"], 1, sign=True)
            rows.append((clean(judge.name, 60), reached(item), *points, words.amount(item.n)))
    icc = detail_of(two, "icc")
    reach = "" if icc is None else words.number(icc, 2)
    rows.append((words("people.two"), reached(two), reach, "", words.amount(two.n)))
    columns = (words("preference.judge"), *(words(f"people.{name}") for name in ("kappa", "icc", "bias", "records")))
    table = b.Table(columns, tuple(rows), frozenset((2, 3, 4)), "", stacked=True, style="narrowed")
    yield b.Section("people", words("people.title"), " ".join(sentences), (table, b.Prose(words("people.note"))))


def preference_table(index: SeasonIndex) -> b.Table | None:
    """Each judge on its own family and on others, in points above the panel median; None without a difference."""
    words = index.words
    items = [(judge, index.get("season.self_preference", judge=judge.name)) for judge in index.run.plan.panel]
    if not any(known(item) for _, item in items):
        return None
    rows = list[tuple[b.Inline, ...]]()
    for judge, item in ((judge, item) for judge, item in items if item is not None):
        difference, over = item.value, item.n_of == "periods"
        n = item.n if over else int(detail_of(item, "n_own") or 0)
        basis = words("noise.rests", words.amount(n), of=words.of(n, item.n_of)) if over else f"n = {n}"
        large, state = difference is not None and abs(difference) >= LARGE, str(item.detail.get("state", item.state))
        interval: str = b.bold(words.term("state", state if state != "ok" else "no interval"))
        if item.low is not None and item.high is not None:
            interval, large = f"{words.span(item.low, item.high, 1, sign=True)} ({basis})", False
        if difference is None:
            reading = words("preference.none")
        elif item.low is None or item.high is None:
            # The change of its family's totals without it; within a tier that would reveal totals.
            kin = [one.name for one in index.agents.values() if one.family == judge.family and index.shown(one.name)]
            moved = [
                words("preference.moved", agent=clean(name, 60), change=words.number(change, 1, sign=True))
                for name in kin
                if (change := _without(index, name, judge.name)) is not None
            ]
            size = words("preference.large", points=LARGE) if large else ""
            reading = " ".join(filter(None, (size, words("preference.open", n), *moved[:3])))
        elif item.low > 0:
            reading = words("preference.favours", low=item.low)
        elif item.high < 0:
            reading = words("preference.harsher", high=-item.high)
        else:
            key = "preference.unshown_periods" if over else "preference.unshown"
            reading = words(key, n, reach=round_points(max(-item.low, item.high)))
        # An interval over periods is about these agents only.
        if difference is not None and None not in (item.low, item.high) and over and item.detail.get("agents") == 1:
            reading += f" {words('preference.alone')}"
        points = [
            words("state.not defined") if value is None else words.number(value, 1, sign=True)
            for value in (detail_of(item, "own"), detail_of(item, "others"), difference)
        ]
        link = index.href(item)
        shown = b.Linked(points[2], link) if link or not large else b.bold(points[2])
        rows.append((clean(judge.name, 60), *points[:2], shown, interval, reading))
    levels = (one.level for one in index.all("season.self_preference") if one.level)
    level = words("preference.interval", level=words.percent(next(levels, 0.95), 0))
    header = (*map(words, ("preference.judge", "preference.own", "preference.others", "preference.gap")), level,
             words("preference.reading"))  # fmt: skip
    columns = ("", "r", "r", "r", "iv", "rd")
    return b.Table(header, tuple(rows), frozenset((1, 2, 3)), "", stacked=True, style="prefs", styles=columns)


def _without(index: SeasonIndex, agent: str, judge: str) -> float | None:
    """The change of an agent's total if one judge is left out; None if either total is missing."""
    without, row = index.value("season.without", agent=agent, judge=judge), index.rows.get(agent)
    return None if without is None or row is None or row.total is None else without - row.total


def blinding_blocks(index: SeasonIndex) -> tuple[b.Block, ...]:
    """The audit of the blinding over all records, and the share of correct author guesses by judges."""
    words, counts, sums = index.words, Counter[tuple[str, str, str]](), Counter[str]()
    for line in index.run.blinding:
        counts[line.name, line.state, line.why] += line.count
        sums[line.state] += line.count
    replaced, kept = (words.amount(sums[state]) for state in ("replaced", "kept"))
    sentences = [words("blinding.audit", replaced=replaced, kept=kept) if counts else words("blinding.none")]
    asked = []
    for name, item in ((spec.name, index.get("season.author_probe", judge=spec.name)) for spec in index.run.plan.panel):
        # The share of correct author guesses of a judge, and that by chance.
        judge = clean(name, 60)
        if not known(item):
            state = [] if item is None else [words.term("state", item.state)]
            asked += [words("probe.state", judge=judge, state=spec) for spec in state]
            continue
        chance = detail_of(item, "chance") or 1 / max(len(index.agents), 1)
        hits = int(detail_of(item, "hits") or round(item.value * item.n))
        ends = limits(item, lambda low, high: words.range(f"{100 * low:.0f}", words.percent(high, 0)),
                      words("state.no interval"))  # fmt: skip
        text = words("probe.said", item.n, judge=judge, hits=words.amount(hits), share=words.percent(item.value, 0),
                     ends=ends, chance=words.percent(chance, 0))  # fmt: skip
        above = item.low is not None and item.low > chance
        asked.append(f"{text} {words('probe.above' if above else 'probe.within')}")
    names = [
        (clean(name, 80), words.term("blinding", state), words.amount(n),
         words.term("blinding.why", REASONS.get(reason, reason)))
        for (name, state, reason), n in sorted(counts.items())
    ]  # fmt: skip
    blocks: list[b.Block] = [b.Items((*sentences, *(asked or [words("probe.none")])), "lines")]
    if names:
        columns = tuple(map(words, ("blinding.name", "blinding.done", "blinding.count", "blinding.reason")))
        table = b.Table(columns, tuple(names[:_LINES]), frozenset((2,)), "", stacked=True)
        rest = (words("blinding.rest", len(names) - _LINES),) if len(names) > _LINES else ()
        blocks.append(b.Group(words("blinding.names"), (table, *b.notes(rest)), folded="closed"))
    return tuple(blocks)
