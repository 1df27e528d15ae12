"""The accounts of a season: paths against baselines, what agents hold, and their last decisions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from assaymark.records import Measurement
from assaymark.report.blocks import Block, Figure, Inline, Linked, Section, Table, bold, notes, small
from assaymark.report.charts.canvas import paths_text
from assaymark.report.charts.paths import Floats, NavLine, NavWords, Role, brush_of, falls, nav_figure
from assaymark.report.portbench.book import EQUAL_WEIGHT
from assaymark.report.season.decisions import decision_places, reason_words, trades_words
from assaymark.report.season.index import AgentIndex, SeasonIndex, SeasonPath, SeasonStep, Words
from assaymark.report.season.leaderboard import baseline_name
from assaymark.text import clean

DATA: Final = "accounts.csv"
"""The values behind the figure, beside the first page of each language."""

_DRAWN, _HELD, _LATEST = 8, 3, 5


def on_days(path: SeasonPath, days: Sequence[str]) -> Floats:
    """A path on the days of another, from its start on. On a day that it lacks it stays where it was.

    >>> path = SeasonPath(name="cash", baseline=True, start=10.0, days=("1", "3"), nav=(11.0, 12.0))
    >>> on_days(path, ["1", "2", "3"]).tolist()
    [10.0, 11.0, 11.0, 12.0]
    """
    known: Mapping[str, float] = dict(zip(path.days, path.nav, strict=True))
    found = [path.start]
    for day in days:
        found.append(known.get(day, found[-1]))
    return np.array(found)


def account_paths(book: SeasonIndex, only: str = "") -> tuple[SeasonPath, ...]:
    """The paths of all agents or of one, by name, then equal weight and the other baselines by name."""
    names = [only] if only else book.agents
    agents = [path for name in names if (path := book.path(name)) is not None and path.nav]
    others = sorted(
        (path for path in book.run.paths if path.baseline and path.nav),
        key=lambda path: (path.name not in EQUAL_WEIGHT, path.name),
    )
    return (*agents[:_DRAWN], *others) if agents else ()


def account_figure(book: SeasonIndex, only: str = "") -> tuple[Figure, str] | None:
    """All accounts or one against the baselines, on the days of the longest, and the text of the file with its values.

    None where no account is recorded.
    """
    paths, words = account_paths(book, only), book.words
    if not paths:
        return None
    days = max((one.days for one in paths if not one.baseline), key=len)
    first = next((one for one in paths if one.baseline), None)
    lines, rows = list[NavLine](), list[tuple[Inline, ...]]()
    for path in paths:
        nav, of = on_days(path, days), {"baseline" if path.baseline else "agent": path.name}
        fall, gain = falls(nav), float(nav[-1] / nav[0] - 1)
        at, deepest = int(fall.argmin()), float(fall.min())
        role: Role = "first" if path is first and path.name in EQUAL_WEIGHT else "other"
        name = baseline_name(_called(path), words)
        if not path.baseline:
            role, name = "own" if only else "agent", clean(path.name, 60)
        fallen = words.say("accounts.fallen", agent=name, fall=words.percent(deepest))
        lines.append(NavLine(name, nav, words.percent(gain, sign=True), role, fallen))
        rows.append((
            name, words.amount(float(nav[-1]), 2),
            book.to(book.one("season.return", **of), words.percent(gain, 2, sign=True)),
            book.to(book.one("season.drawdown", **of), words.percent(deepest, 2)),
            words.day(path.days[min(at, len(path.days)) - 1]) if at else words.say("earned.never"),
        ))  # fmt: skip
    own, start = lines[0], words.say("earned.start")
    fallen = words.percent(float(falls(own.nav).min()))
    beside = NavWords(
        start, fall=words.say("earned.fall"), deepest=words.say("earned.deepest", fall=fallen),
        ticks=words.amount, days=tuple(words.day(day, short=True) for day in days),
    )  # fmt: skip
    title, ends = words.say("accounts.title"), "; ".join(f"{line.name} {line.end}" for line in lines)
    desc = words.say("earned.desc", agent=own.name, ends=ends, fall=fallen) if only else ends
    wide, narrow = nav_figure("nav" if only else "accounts", lines, beside, title, desc, log=True)
    navs = [(line.name, line.nav) for line in lines]
    caption = words.say(
        "earned.caption_elsewhere" if book.run.source else "earned.caption",
        first=words.day(days[0]), last=words.day(days[-1]), start=words.amount(paths[0].start),
        currency=clean(book.run.plan.currency, 12),
    )  # fmt: skip
    heads = tuple(words.say(f"earned.head.{name}") for name in ("path", "value", "gain", "fall", "day"))
    table = Table(heads, tuple(rows), frozenset({1, 2, 3}), words.say("accounts.table"))
    figure = Figure(title, caption, wide, narrow, brush=brush_of((start, *map(words.day, days)), navs), table=table,
                    scales=(words.say("accounts.linear"), words.say("accounts.log")))  # fmt: skip
    return figure, paths_text(words.say("earned.head.day"), (start, *days), navs)


def _called(path: SeasonPath) -> str:
    return "equal weight" if path.name in EQUAL_WEIGHT else path.name


def accounts_section(book: SeasonIndex) -> tuple[Section | None, str]:
    """The figure of all accounts, and the text of the file with its values; None where no account is recorded."""
    made, words, left = account_figure(book), book.words, len(book.agents) - _DRAWN
    if made is None:
        return None, ""
    figure = replace(made[0], title="", data=DATA, note=words.say("accounts.more", n=left) if left > 0 else "")
    return Section("accounts", words.say("accounts.section"), words.say("accounts.lede"), (figure,)), made[1]


def earned_section(book: AgentIndex) -> tuple[Section, str]:
    """What an agent earned: one path against the baselines, its drawdown, and its difference to equal weight."""
    heading, made = book.say("earned.section"), account_figure(book.lookup, book.agent.name)
    if made is None:
        return Section("earned", heading, book.say("earned.no_path")), ""
    own, *others = account_paths(book.lookup, book.agent.name)
    navs = [on_days(path, own.days) for path in (own, *others)]
    gains = [book.words.percent(float(nav[-1] / nav[0] - 1), sign=True) for nav in navs]
    lead = book.say("earned.answer_alone", own=gains[0], n=len(own.days))
    if others:
        first = book.words.word("baseline", _called(others[0]))
        lead = book.say("earned.answer", own=gains[0], baseline=first, other=gains[1], n=len(own.days))
    more: Inline = ""
    if others and others[0].name in EQUAL_WEIGHT:
        excess = book.one("season.excess", baseline=others[0].name)
        more = book.lookup.note(excess, _difference(book.words, others[0], navs[0], navs[1], excess))
    figure = replace(made[0], title="", data=data_path(book.path))
    return Section("earned", heading, lead, (*notes((more,), "cap"), figure)), made[1]


def data_path(path: str) -> str:
    """Where the values behind the figure of an agent's page lie.

    >>> data_path("agents/Alder.html")
    'agents/Alder.csv'
    """
    return path.removesuffix(".html") + ".csv"


def _difference(words: Words, baseline: SeasonPath, own: Floats, other: Floats, item: Measurement | None) -> str:
    """The difference over all days, and the mean daily one with its bootstrap interval, in percentage points."""
    points = words.number(100 * float(own[-1] / own[0] - other[-1] / other[0]), 1, sign=True)
    title = words.word("baseline", _called(baseline))
    said = words.say("earned.whole", baseline=title, n=len(own) - 1, points=points)
    if item is None:
        return said
    if item.value is None:
        return f"{said} {words.say('earned.no_interval', why=words.term('state', item.state))}"
    daily = words.number(100 * item.value, 3, sign=True)
    if item.low is None or item.high is None:
        return f"{said} {words.say('earned.daily_alone', points=daily)}"
    ends = {"low": words.number(100 * item.low, 3, sign=True), "high": words.number(100 * item.high, 3, sign=True)}
    level = words.percent(item.level if item.level is not None else 0.95, 0)
    zero = "holds_zero" if item.low <= 0 <= item.high else "clear_of_zero"
    interval = words.say("earned.daily", points=daily, level=level, n=item.n, **ends)
    return f"{said} {interval} {words.say(f'earned.{zero}')}"


# --- what they hold and what they decided last ------------------------------------------------------------------------


def last_book(steps: Sequence[SeasonStep]) -> SeasonStep | None:
    """The last decision after which a book is recorded."""
    return next((step for step in reversed(steps) if step.nav is not None), None)


def held(words: Words, step: SeasonStep, most: int = _HELD) -> str:
    """The largest positions of a book in units, and how many more there are."""
    found = sorted(((symbol, n) for symbol, n in step.positions.items() if n), key=lambda one: (-abs(one[1]), one[0]))
    shown = [f"{clean(symbol, 20)} {words.amount(n, 0 if float(n).is_integer() else 2)}" for symbol, n in found[:most]]
    shown += [words.say("accounts.held_more", n=len(found) - most)] if len(found) > most else []
    return ", ".join(shown) or words.say("accounts.nothing")


def cash_share(words: Words, step: SeasonStep) -> str:
    """The cash of a book as a share of its value."""
    return words.percent(step.cash / step.nav) if step.cash is not None and step.nav else words("state.not measured")


def holdings_blocks(book: SeasonIndex) -> tuple[Block, ...]:
    """What each agent holds after its last decision, by name; nothing where no book is recorded."""
    words, rows = book.words, list[tuple[Inline, ...]]()
    for name in book.agents:
        last = last_book(book.run.steps.get(name, ()))
        if last is not None and last.nav is not None:
            agent = Linked(clean(name, 60), book.pages[name])
            rows.append((agent, words.amount(last.nav), cash_share(words, last), held(words, last)))
    heads = (words("board.agent"), *(words.say(f"accounts.{name}") for name in ("value", "cash", "held")))
    return (Table(heads, tuple(rows), frozenset((1, 2)), "", stacked=True, style="held"),) if rows else ()


def latest_blocks(book: SeasonIndex) -> tuple[Block, ...]:
    """The last decisions of all agents, newest first, each with its reasons and a link to all of it."""
    words, rows = book.words, list[tuple[Inline, ...]]()
    found = [(step.day, name, step) for name in book.agents for step in book.run.steps.get(name, ())[-_LATEST:]]
    found.sort(key=lambda one: (one[0], -one[2].number), reverse=True)
    for day, agent, step in found[:_LATEST]:
        place = decision_places(book.pages[agent], book.run.steps[agent])[step.number]
        reason = reason_words(words, step)
        said: Inline = (trades_words(words, step), small(str(reason)) if reason else "")
        rows.append((Linked(words.day(day), place), Linked(clean(agent, 60), book.pages[agent]), said))
    heads = (words.say("accounts.day"), words("board.agent"), words.say("accounts.decided"))
    return (Table(heads, tuple(rows), summary="", stacked=True, style="latest who"),) if rows else ()


def go_deeper(words: Words) -> Iterator[Inline]:
    """The other pages of the season, with what they hold."""
    for key in ("claims", "panel", "measurements", "rules", "method", "changelog", "archive"):
        yield bold(words(f"nav.{key}")), ": ", Linked(words.say(f"accounts.deeper.{key}"), f"{key}.html")
