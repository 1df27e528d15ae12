"""The page of the panel: who judged, how far the judges agree, what noise does, and what each of them changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from assaymark.records import Measurement
from assaymark.report.blocks import Linked
from assaymark.report.charts.canvas import Scale
from assaymark.report.charts.intervals import JudgeWords
from assaymark.report.season.index import SeasonLookup
from assaymark.report.season.inputs import SeasonJudge
from assaymark.report.season.leaderboard import band_words, book_scale, drawn_words, judged_points, whole
from assaymark.report.season.levels import measured
from assaymark.report.season.strip import band_head, band_strip
from assaymark.report.season.words import Words
from assaymark.text import clean

# Do judges favour their own family, and could they know whose record they read?


LARGE: Final = 10.0
"""Points from which a gap of one observation is called large, whatever else is known of it."""

_LINES: Final = 40
_WHY: Final = {
    "names an agent, a model or its maker": "author",
    "identifiers of records and episodes": "identifier",
    "a listed name stands in it, and it is in the universe": "universe",
}


@dataclass(frozen=True, slots=True)
class PreferenceRow:
    """One judge on its own family and on all others, in points of score minus panel median; ``link`` is its row."""

    judge: str
    own: str
    others: str
    gap: str
    large: bool
    interval: str
    single: bool
    reading: str
    link: str


@dataclass(frozen=True, slots=True)
class BlindingView:
    """What blinding did, and how often judges guessed right: sentences, and names as (name, state, count, why)."""

    sentences: tuple[str, ...]
    names: tuple[tuple[str, str, str, str], ...]
    rest: int


def preference_rows(book: SeasonLookup, words: Words) -> tuple[PreferenceRow, ...]:
    """One row a judge that was measured; none at all where there is no gap to show."""
    measured = [(judge, book.one("season.self_preference", judge=judge.name)) for judge in book.run.judges]
    if not any(item is not None and item.value is not None for _, item in measured):
        return ()
    return tuple(_preference(book, judge, item, words) for judge, item in measured if item is not None)


def preference_level(book: SeasonLookup, words: Words) -> str:
    """What the intervals of the table cover."""
    levels = [one.level for one in book.run.measurements if one.name == "season.self_preference" and one.level]
    return words("preference.interval", level=words.percent(levels[0] if levels else 0.95, 0))


def _preference(book: SeasonLookup, judge: SeasonJudge, item: Measurement, words: Words) -> PreferenceRow:
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
    return PreferenceRow(
        judge=clean(judge.name, 60),
        own=_points(own, words),
        others=_points(others, words),
        gap=_points(gap, words),
        large=gap is not None and bounds is None and abs(gap) >= LARGE,
        interval=interval,
        single=bounds is None,
        reading=_reading(book, judge, item, bounds, n, words),
        link=book.link(item),
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


def blinding_view(book: SeasonLookup, words: Words) -> BlindingView:
    """The audit of the blinding over all records."""
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
        (clean(name, 80), words.term("blinding", state), words.count(n), words.term("blinding.why", _WHY.get(why, why)))
        for (name, state, why), n in sorted(counts.items())
    ]
    return BlindingView(tuple(sentences), tuple(names[:_LINES]), max(len(names) - _LINES, 0))


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


_LINKED: Final = ("invalid", "alone", "verbosity")


@dataclass(frozen=True, slots=True)
class JudgeRow:
    """One judge: who it is, where its datasheet lies (empty without one), and what was measured of it.

    ``links`` lead to the rows of what was measured, by the names of the fields.
    """

    name: str
    family: str
    model: str
    kind: str
    trials: str
    datasheet: str
    invalid: str
    alone: str
    verbosity: str
    links: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class AgreementLine:
    """One agent as its judges graded it; the points are composites. ``low`` is empty where nobody graded it."""

    agent: str
    link: str
    low: str
    high: str
    spread: str
    band: str
    strip: str
    drawn: str
    absent: str


@dataclass(frozen=True, slots=True)
class PanelView:
    """The panel page. ``changes`` are rows of (agent, change of its total without each judge and a link to its row).

    Agents that share a tier are one row of ``changes``: by how much the total of any of them moves at most, since a
    change beside the range of the judges would give the total. ``composites`` are the points that each judge gave, for
    agents with a total of their own. ``measured`` leads to the row of
    kappa, and is empty where there is none. ``noise`` has (of, value, from, link to its row).
    """

    lede: str
    judges: tuple[JudgeRow, ...]
    verbosity: bool
    kappa: str
    measured: str
    head: str
    agreement: tuple[AgreementLine, ...]
    composites: tuple[JudgeWords, ...]
    noise: tuple[tuple[str, str, str, str], ...]
    changes: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]


def panel_view(book: SeasonLookup, words: Words) -> PanelView:
    """Everything that is known of the judges; agents stand in alphabetical order throughout."""
    run = book.run
    names = [words.term("claim.band", band) for band in ("weak", "mixed", "strong")]
    scale = book_scale(book)
    judges = tuple(_judge(book, one, words) for one in run.judges)
    return PanelView(
        lede=_lede(book, words),
        judges=judges,
        verbosity=any(one.verbosity for one in judges),
        kappa=kappa_words(book, words),
        measured=book.link(book.one("season.kappa")),
        head=band_head(run.scoring.bands, scale, (names[0], names[1], names[2])),
        agreement=tuple(_agreement(book, agent, scale, words) for agent in book.agents),
        composites=tuple(_composites(book, words)),
        noise=tuple(_noise(book, words)),
        changes=tuple(_changes(book, words)) if len(run.judges) > 1 else (),
    )


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


def _judge(book: SeasonLookup, judge: SeasonJudge, words: Words) -> JudgeRow:
    kind = "human" if judge.human else "reference" if judge.reference else "model"
    return JudgeRow(
        name=clean(judge.name, 60),
        family=clean(judge.family, 60),
        model=clean(judge.model, 80),
        kind=words(f"panel.kind.{kind}"),
        trials=words.count(judge.trials),
        datasheet=_link(judge.datasheet),
        invalid=_invalid(book.one("season.invalid", judge=judge.name), words),
        alone=_value(book.one("season.alone", judge=judge.name), words),
        verbosity=_value(book.one("season.verbosity", judge=judge.name), words, missing=""),
        links={name: book.link(book.one(f"season.{name}", judge=judge.name)) for name in _LINKED},
    )


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


def _agreement(book: SeasonLookup, agent: str, scale: Scale, words: Words) -> AgreementLine:
    row = book.rows.get(agent)
    found = None if row is None else row.agreement
    points = judged_points(book, agent)
    absent = words.names(row.absent) if row is not None and row.absent else ""
    ends = book.judged(agent, "season.composite")
    low = high = spread = ""
    if found is not None and ends is not None:
        low, high, spread = (
            Linked(words.number(value), f"{book.pages[agent]}#graded") for value in (*ends, ends[1] - ends[0])
        )
    return AgreementLine(
        agent=clean(agent, 60),
        link=book.pages[agent],
        low=low,
        high=high,
        spread=spread,
        band=band_words(row, words),
        strip=band_strip(book.run.scoring.bands, scale, book.run.decided.place(agent).level, points),
        drawn=drawn_words(points, words),
        absent=absent,
    )


def _composites(book: SeasonLookup, words: Words) -> list[JudgeWords]:
    found = []
    for at, judge in enumerate(book.run.judges):
        points = [(agent, one.points) for agent in book.agents for one in judged_points(book, agent) if one.judge == at]
        said = ", ".join(f"{clean(agent, 60)} {words.number(value)}" for agent, value in points)
        found += [JudgeWords(at, clean(judge.name, 60), said)] if said else []
    return found


def _noise(book: SeasonLookup, words: Words) -> list[tuple[str, str, str, str]]:
    """The floors: of the panel on one record, and of each agent on identical input."""
    found = []
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
        found.append((title, value, rests, book.link(item)))
    return found


def _changes(book: SeasonLookup, words: Words) -> list[tuple[str, tuple[tuple[str, str], ...]]]:
    found, none = [], words("state.not defined")
    most: dict[str, float] = {}
    for agent in book.agents:
        changes = {judge.name: change_without(book, agent, judge.name) for judge in book.run.judges}
        if not book.run.decided.place(agent).shown:
            known = [(name, abs(one)) for name, one in changes.items() if one is not None]
            most |= {name: max(size, most.get(name, 0.0)) for name, size in known}
        elif any(change is not None for change in changes.values()):
            texts = [none if one is None else words.number(one, 1, sign=True) for one in changes.values()]
            links = [book.link(book.one("season.without", agent=agent, judge=name)) for name in changes]
            found.append((clean(agent, 60), tuple(zip(texts, links, strict=True))))
    if most:
        sizes = [words("without.most", change=most[one.name]) if one.name in most else none for one in book.run.judges]
        found.append((words("without.tiers"), tuple((size, "") for size in sizes)))
    return found
