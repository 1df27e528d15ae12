"""The page of the panel: who judged, how far the judges agree, what noise does, and what each of them changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from markupsafe import Markup

from assaymark.metrology.measure_people import NOT_DRAWN
from assaymark.records import AGGREGATE, Measurement
from assaymark.report.blocks import (
    Block,
    Group,
    Inline,
    Items,
    Keys,
    Linked,
    Page,
    Section,
    Styled,
    Table,
    Text,
    bold,
    notes,
    small,
)
from assaymark.report.charts.intervals import JudgeWords
from assaymark.report.season.index import SeasonLookup
from assaymark.report.season.inputs import SeasonJudge
from assaymark.report.season.leaderboard import band_words, book_scale, drawn_words, judged_points, whole
from assaymark.report.season.levels import measured, state_words
from assaymark.report.season.strip import band_head, band_strip
from assaymark.report.season.words import Words
from assaymark.text import clean

# Do judges favour their own family, and could they know whose record they read?


LARGE: Final = 10.0
"""Points from which a gap of one observation is called large, whatever else is known of it."""

_LINES: Final = 40
REASONS: Final = {
    "names an agent, a model or its maker": "author",
    "identifiers of records and episodes": "identifier",
    "a listed name stands in it, and it is in the universe": "universe",
}
"""The key of the words for each reason of an audit line."""


def preference_table(book: SeasonLookup, words: Words) -> Table | None:
    """Each judge on its own family and on all others, in points of score minus panel median; None without a gap."""
    items = [(judge, book.one("season.self_preference", judge=judge.name)) for judge in book.run.judges]
    rows = tuple(_preference(book, judge, item, words) for judge, item in items if item is not None)
    if not any(item is not None and item.value is not None for _, item in items):
        return None
    heads = (*map(words, ("preference.judge", "preference.own", "preference.others", "preference.gap")),
             preference_level(book, words), words("preference.reading"))  # fmt: skip
    columns = ("", "r", "r", "r", "iv", "rd")
    return Table(heads, rows, frozenset((1, 2, 3)), "", stacked=True, style="prefs", columns=columns)


def preference_level(book: SeasonLookup, words: Words) -> str:
    """What the intervals of the table cover."""
    levels = [one.level for one in book.run.measurements if one.name == "season.self_preference" and one.level]
    return words("preference.interval", level=words.percent(levels[0] if levels else 0.95, 0))


def _preference(book: SeasonLookup, judge: SeasonJudge, item: Measurement, words: Words) -> tuple[Inline, ...]:
    own, others = detail_number(item, "own"), detail_number(item, "others")
    n, rests = int(detail_number(item, "n_own") or 0), ""
    if item.n_of == "periods":
        n, rests = item.n, words("noise.rests", n=words.count(item.n), of=words.of(item.n, item.n_of))
    gap = item.value
    bounds = None if item.low is None or item.high is None else (item.low, item.high)
    state = str(item.detail.get("state", item.state))
    interval = words.term("state", state if state != "ok" else "no interval")
    if bounds is not None:
        interval = f"{words.span(*bounds, 0, sign=True)} ({rests or f'n = {n}'})"
    shown = _points(gap, words)
    large = gap is not None and bounds is None and abs(gap) >= LARGE
    return (
        clean(judge.name, 60),
        _points(own, words),
        _points(others, words),
        Linked(shown, book.link(item)) if book.link(item) or not large else bold(shown),
        bold(interval) if bounds is None else interval,
        _reading(book, judge, item, bounds, n, words),
    )


def _points(value: float | None, words: Words) -> str:
    return words("state.not defined") if value is None else words.number(value, 1, sign=True)


def _reading(
    book: SeasonLookup, judge: SeasonJudge, item: Measurement, bounds: tuple[float, float] | None, n: int, words: Words
) -> str:
    gap = item.value
    if gap is None:
        return words("preference.none")
    if bounds is None:
        size = words("preference.large", points=LARGE) if abs(gap) >= LARGE else ""
        return " ".join(filter(None, (size, words("preference.open", n=n), *_moved(book, judge, words))))
    low, high = bounds
    over = item.n_of == "periods"
    if low > 0:
        said = words("preference.favours", low=low)
    elif high < 0:
        said = words("preference.harsher", high=-high)
    else:
        said = words("preference.unshown_periods" if over else "preference.unshown", n=n, reach=whole(max(-low, high)))
    # An interval over periods is about the agents that there are.
    alone = over and detail_number(item, "agents") == 1
    return f"{said} {words('preference.alone')}" if alone else said


def _moved(book: SeasonLookup, judge: SeasonJudge, words: Words) -> list[str]:
    """By how much totals of its family move without it; beside the range of a shared tier it would give the total."""
    found = []
    for agent in book.agents.values():
        change = change_without(book, agent.name, judge.name) if book.run.decided.place(agent.name).shown else None
        if agent.family == judge.family and change is not None:
            found.append(
                words("preference.moved", agent=clean(agent.name, 60), change=words.number(change, 1, sign=True))
            )
    return found[:3]


def change_without(book: SeasonLookup, agent: str, judge: str) -> float | None:
    """By how much an agent's total changes if one judge is left out; None where either is not there."""
    without, row = book.value("season.without", agent=agent, judge=judge), book.rows.get(agent)
    return None if without is None or row is None or row.total is None else without - row.total


def blinding_blocks(book: SeasonLookup, words: Words) -> tuple[Block, ...]:
    """The audit of the blinding over all records, and how often judges named the right author."""
    counts: dict[tuple[str, str, str], int] = {}
    for lines in book.run.blinding.values():
        for line in lines:
            key = line.name, line.state, line.why
            counts[key] = counts.get(key, 0) + line.count
    sums = {state: sum(n for (_, s, _), n in counts.items() if s == state) for state in ("replaced", "kept")}
    sentences = [words("blinding.audit", replaced=words.count(sums["replaced"]), kept=words.count(sums["kept"]))]
    sentences = sentences if counts else [words("blinding.none")]
    sentences += [text for judge in book.run.judges if (text := probe_words(book, judge.name, words))]
    if not any(book.one("season.author_probe", judge=judge.name) for judge in book.run.judges):
        sentences.append(words("probe.none"))
    names = [
        (
            clean(name, 80),
            words.term("blinding", state),
            words.count(n),
            words.term("blinding.why", REASONS.get(why, why)),
        )
        for (name, state, why), n in sorted(counts.items())
    ]
    blocks: list[Block] = [Items(tuple(sentences), "lines")]
    if names:
        heads = tuple(map(words, ("blinding.name", "blinding.done", "blinding.count", "blinding.reason")))
        table = Table(heads, tuple(names[:_LINES]), frozenset((2,)), "", stacked=True)
        rest = (words("blinding.rest", n=len(names) - _LINES),) if len(names) > _LINES else ()
        blocks.append(Group(words("blinding.names"), (table, *notes(rest)), folded="closed"))
    return tuple(blocks)


def probe_words(book: SeasonLookup, judge: str, words: Words) -> str:
    """How often a judge named the right author, against chance; empty where it was not asked."""
    item = book.one("season.author_probe", judge=judge)
    if item is None:
        return ""
    name = clean(judge, 60)
    if item.value is None:
        return words("probe.state", judge=name, state=words.term("state", item.state))
    chance = detail_number(item, "chance") or 1 / max(len(book.agents), 1)
    hits = int(detail_number(item, "hits") or round(item.value * item.n))
    said = words(
        "probe.said",
        judge=name,
        hits=words.count(hits),
        n=item.n,
        share=words.percent(item.value, 0),
        ends=_shares(item, words),
        chance=words.percent(chance, 0),
    )
    above = item.low is not None and item.low > chance
    return f"{said} {words('probe.above' if above else 'probe.within')}"


def _shares(item: Measurement, words: Words) -> str:
    if item.low is None or item.high is None:
        return words("state.no interval")
    return words("places.range", first=f"{100 * item.low:.0f}", last=words.percent(item.high, 0))


def detail_number(item: Measurement, key: str) -> float | None:
    """A number of a measurement's detail, None where it is not there."""
    value = item.detail.get(key)
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def panel_page(book: SeasonLookup, words: Words, site: str, records: str) -> Page:
    """Everything that is known of the judges; agents are in alphabetical order throughout. ``site`` leads to its "
    "folder."""
    preference, changes, floors = (
        preference_table(book, words),
        tuple(_changes(book, words)),
        tuple(_noise(book, words)),
    )
    kappa = kappa_words(book, words)
    measured_at = book.link(book.one("season.kappa"))
    of_changes = (words("board.agent"), *(words("without.head", judge=clean(one.name, 60)) for one in book.run.judges))
    of_floors = (words("noise.of"), words("noise.floor"), words("noise.from"))
    right = frozenset(range(1, len(of_changes)))
    without = Table(of_changes, changes, right, "", style="narrowed")
    points = Keys(tuple(_composites(book, words)))
    return Page(
        "panel.html",
        words("panel.title"),
        _lede(book, words),
        (
            Section("judges", words("panel.judges"), words("panel.alone_lede"), (_judges(book, words, site),)),
            Section(
                "agreement",
                words("agreement.title"),
                (kappa, *((" ", Linked(words("measured.open"), measured_at)) if measured_at else ())),
                (_agreements(book, words), points, Text(words("agreement.note"))),
            ),
            *people_sections(book, words),
            Section(
                "self-preference",
                words("preference.title"),
                words("preference.lede" if preference else "preference.nobody"),
                (preference,) if preference else (),
            ),
            Section(
                "without",
                words("without.title"),
                words("without.lede" if changes else "without.none"),
                (without,) if changes else (),
            ),
            Section(
                "noise",
                words("noise.title"),
                words("noise.lede" if floors else "noise.none"),
                (Table(of_floors, floors, summary="", style="narrowed"),) if floors else (),
            ),
            Section(
                "blinding",
                words("blinding.title"),
                "",
                (*blinding_blocks(book, words), *notes((Linked(words("panel.records"), records) if records else "",))),
            ),
        ),
        here="panel",
        styles=("season-tables.css", "season-panel.css", "judges.css"),
    )


def people_sections(book: SeasonLookup, words: Words) -> Iterator[Section]:
    """Each judge beside the people who graded a sample of periods, and what two people reach; nothing without any."""
    sample, two = (book.one(f"human.{name}", dimension=AGGREGATE) for name in ("sample", "agreement"))
    if sample is None or two is None:
        return
    detail, rows = sample.detail, list[tuple[Inline, ...]]()
    said = [words("people.said", n=len(detail["graders"]), graded=detail["graded"], drawn=detail["drawn"])]
    said += [words("people.refused")] if sample.state.startswith(NOT_DRAWN) else []
    for name in (one.name for one in book.run.judges):
        if (item := book.one("human.judge", dimension=AGGREGATE, judge=name)) is not None:
            points = (_stated(item.detail["icc"], words), _stated(item.detail["bias"], words, 1, sign=True))
            rows.append((clean(name, 60), book.to(item, _reached(item, words)), *points, words.count(item.n)))
    icc = detail_number(two, "icc")
    reach = "" if icc is None else words.number(icc, 2)
    rows.append((words("people.two"), book.to(two, _reached(two, words)), reach, "", words.count(two.n)))
    heads = (words("preference.judge"), *(words(f"people.{name}") for name in ("kappa", "icc", "bias", "records")))
    table = Table(heads, tuple(rows), frozenset((2, 3, 4)), "", stacked=True, style="narrowed")
    yield Section("people", words("people.title"), " ".join(said), (table, Text(words("people.note"))))


def _reached(item: Measurement, words: Words) -> str:
    """A kappa with its interval, or why there is none."""
    found = {"estimate": item.value, "low": item.low, "high": item.high}
    return state_words(item, words) if item.value is None else _stated(found, words)


def _stated(one: Mapping[str, Any], words: Words, digits: int = 2, *, sign: bool = False) -> str:
    """An estimate of a detail with its interval."""
    if one["estimate"] is None:
        return words.term("state", str(one["state"]).partition(" (")[0])
    value, low, high = words.number(one["estimate"], digits, sign=sign), one["low"], one["high"]
    return value if low is None or high is None else f"{value} ({words.span(low, high, digits, sign=sign)})"


def _lede(book: SeasonLookup, words: Words) -> str:
    judges = book.run.judges
    families = len({one.family for one in judges})
    text = words(
        "panel.lede",
        judges=words("panel.count", n=len(judges), few=words.few(len(judges))),
        families=words("panel.families", n=families, few=words.few(families)),
    )
    shared = sorted({one.family for one in judges} & {one.family for one in book.run.agents})
    conflict = words("panel.conflict", families=words.names(shared), n=len(shared)) if shared else words("panel.apart")
    return f"{text[:1].upper()}{text[1:]} {conflict}"


def _judges(book: SeasonLookup, words: Words, site: str) -> Table:
    verbose = any(book.one("season.verbosity", judge=judge.name) for judge in book.run.judges)
    rows: list[tuple[Inline, ...]] = []
    for judge in book.run.judges:
        kind = "human" if judge.human else "reference" if judge.reference else "model"
        invalid, alone, verbosity = (
            book.one(f"season.{name}", judge=judge.name) for name in ("invalid", "alone", "verbosity")
        )
        sheet = _link(judge.datasheet)
        cells: list[Inline] = [
            (clean(judge.name, 60), small(words("panel.family", family=clean(judge.family, 60)))),
            (clean(judge.model, 80), small(words(f"panel.kind.{kind}"))),
            words.count(judge.trials),
            Linked(words("panel.open"), site + sheet) if sheet else Styled(words("panel.no_datasheet"), "un"),
            Linked(_invalid(invalid, words), book.link(invalid)),
            Linked(_value(alone, words), book.link(alone)),
        ]
        cells += [Linked(_value(verbosity, words, missing=""), book.link(verbosity))] if verbose else []
        rows.append(tuple(cells))
    names = ["preference.judge", "panel.model", "panel.trials", "panel.datasheet", "panel.replies", "panel.alone"]
    heads = tuple(map(words, [*names, *(["panel.verbosity"] if verbose else [])]))
    return Table(heads, tuple(rows), frozenset((2,)), "", stacked=True, style="jury", wide=True)


def _link(target: str | None) -> str:
    """A relative link; anything that names a scheme or a host is none, because a site asks nothing of a network."""
    if not target or ":" in target or target.startswith(("/", "\\")):
        return ""
    return clean(target, 300)


def _invalid(item: Measurement | None, words: Words) -> str:
    if item is None or item.value is None:
        return words("state.not measured") if item is None else words.term("state", item.state)
    bad = round(item.value * item.n)
    return words("panel.invalid", bad=words.count(bad), n=words.count(item.n))


def _value(item: Measurement | None, words: Words, missing: str | None = None) -> str:
    if item is None:
        return words("state.not measured") if missing is None else missing
    return measured(item, words)


def kappa_words(book: SeasonLookup, words: Words) -> str:
    """How far the judges agree on bands, over records of single periods."""
    item = book.one("season.kappa")
    if item is None or item.value is None:
        return words("kappa.none", state=words.term("state", "not measured" if item is None else item.state))
    ends = ""
    if item.low is not None and item.high is not None:
        level = words.percent(item.level or 0.95, 0)
        ends = words("kappa.ends", ends=words.span(item.low, item.high, 2), level=level)
    return words("kappa.said", kappa=words.number(item.value, 2), ends=ends, n=words.count(item.n))


def _agreements(book: SeasonLookup, words: Words) -> Table:
    """How far apart the judges are on each agent; the points are composites."""
    bands, scale = book.run.scoring.bands, book_scale(book)
    names = [words.term("claim.band", band) for band in ("weak", "mixed", "strong")]
    rows: list[tuple[Inline, ...]] = []
    for agent in book.agents:
        row, points = book.rows.get(agent), judged_points(book, agent)
        ends = book.judged(agent, "season.composite")
        numbers: list[Inline] = [Styled(words("board.ungraded"), "un"), "", ""]
        if row is not None and row.agreement is not None and ends is not None:
            to = f"{book.pages[agent]}#graded"
            numbers = [Linked(words.number(value), to) for value in (*ends, ends[1] - ends[0])]
        absent = words("agreement.absent", judges=words.names(row.absent)) if row is not None and row.absent else ""
        strip = band_strip(bands, scale, book.run.decided.place(agent).level, points)
        drawn = Markup('<span role="img" aria-label="{}">{}</span>').format(drawn_words(points, words), Markup(strip))
        name = Linked(clean(agent, 60), book.pages[agent])
        rows.append((name, *numbers, drawn, (band_words(row, words), small(absent) if absent else "")))
    heads: tuple[Inline, ...] = (
        *map(words, ("board.agent", "agreement.low", "agreement.high", "agreement.spread")),
        (
            Markup('<span class="skip">{}</span>').format(words("board.drawn")),
            Markup(band_head(bands, scale, (names[0], names[1], names[2]))),
        ),
        words("agreement.band"),
    )
    columns = ("", "r", "r", "r", "b", "")
    return Table(heads, tuple(rows), summary="", stacked=True, style="board season agr", wide=True, columns=columns)


def _composites(book: SeasonLookup, words: Words) -> list[JudgeWords]:
    found = []
    for at, judge in enumerate(book.run.judges):
        points = [(agent, one.points) for agent in book.agents for one in judged_points(book, agent) if one.judge == at]
        said = ", ".join(f"{clean(agent, 60)} {words.number(value)}" for agent, value in points)
        found += [JudgeWords(at, clean(judge.name, 60), said)] if said else []
    return found


def _noise(book: SeasonLookup, words: Words) -> Iterator[tuple[Inline, ...]]:
    """The floors: of the panel on one record, and of each agent on identical input."""
    judges = [(book.one("season.judge_noise", judge=one.name), one.name) for one in book.run.judges]
    agents = [(book.one("season.noise", of=name), name) for name in book.agents]
    for item, name in ((book.one("season.noise", of="panel"), ""), *judges, *agents):
        if item is None:
            continue
        title = clean(name, 60) if name else words("noise.panel")
        value = words.term("state", item.state) if item.value is None else words("noise.points", value=item.value)
        freedom = detail_number(item, "freedom")
        rests = words("noise.rests", n=words.count(item.n), of=words.of(item.n, item.n_of))
        rests = rests if freedom is None else words("noise.free", rests=rests, n=int(freedom))
        yield title, Linked(value, book.link(item)), rests


def _changes(book: SeasonLookup, words: Words) -> Iterator[tuple[Inline, ...]]:
    """By how much each agent's total changes without each judge.

    Agents that share a tier are one row: by how much the total of any of them moves at most, since a change beside the
    range of the judges would give the total.
    """
    none, most = words("state.not defined"), dict[str, float]()
    judges = book.run.judges if len(book.run.judges) > 1 else ()
    for agent in book.agents:
        changes = {judge.name: change_without(book, agent, judge.name) for judge in judges}
        if not book.run.decided.place(agent).shown:
            known = [(name, abs(one)) for name, one in changes.items() if one is not None]
            most |= {name: max(size, most.get(name, 0.0)) for name, size in known}
        elif any(change is not None for change in changes.values()):
            texts = [none if one is None else words.number(one, 1, sign=True) for one in changes.values()]
            links = [book.link(book.one("season.without", agent=agent, judge=name)) for name in changes]
            yield clean(agent, 60), *(Linked(text, link) for text, link in zip(texts, links, strict=True))
    if most:
        sizes = [words("without.most", change=most[one.name]) if one.name in most else none for one in judges]
        yield words("without.tiers"), *sizes
