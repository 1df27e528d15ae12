"""Do judges favour their own family, and could they know whose record they read?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from assaymark.records import Measurement
from assaymark.report.formats import clean
from assaymark.report.season.inputs import SeasonJudge
from assaymark.report.season.leaderboard import whole
from assaymark.report.season.lookup import SeasonLookup
from assaymark.report.season.words import Words

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
