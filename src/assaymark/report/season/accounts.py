"""The accounts of a season: all agents in one figure with baselines, what they hold, and their last decisions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from assaymark.report.blocks import Block, Figure, Inline, Linked, Section, Table, bold, small
from assaymark.report.charts.canvas import paths_text
from assaymark.report.charts.paths import NavChart, NavLine, NavWords, Role, brush_of, falls, nav_figure
from assaymark.report.portbench.market import EQUAL_WEIGHT
from assaymark.report.season.agent import LAST_CARDS, decision_keys, order_count
from assaymark.report.season.agent_scores import on_days
from assaymark.report.season.index import ModelWords, SeasonLookup
from assaymark.report.season.inputs import SeasonPath, SeasonStep
from assaymark.report.season.leaderboard import baseline_name
from assaymark.text import clean

DATA: Final = "accounts.csv"
"""The values behind the figure, beside the first page of each language."""

_DRAWN, _HELD, _LATEST, _ORDERS, _REASON = 8, 3, 6, 4, 160


def account_lines(book: SeasonLookup, words: ModelWords) -> tuple[tuple[str, ...], tuple[NavLine, ...]]:
    """The days of the season, and every agent and baseline on them; agents by name, equal weight first of the "
    "others."""
    agents = [path for name in book.agents if (path := book.path(name)) is not None and path.nav]
    if not agents:
        return (), ()
    days = max((one.days for one in agents), key=len)
    others = sorted(
        (path for path in book.run.paths if path.baseline and path.nav),
        key=lambda path: (path.name not in EQUAL_WEIGHT, path.name),
    )

    def line(path: SeasonPath, name: str, role: Role) -> NavLine:
        nav = on_days(path, days)
        fall = words.percent(float(falls(nav).min()))
        gain = words.percent(float(nav[-1] / nav[0] - 1), sign=True)
        return NavLine(name, nav, gain, role, words.say("accounts.fallen", agent=name, fall=fall))

    lines = [line(path, clean(path.name, 60), "agent") for path in agents[:_DRAWN]]
    for at, path in enumerate(others):
        role: Role = "first" if not at and path.name in EQUAL_WEIGHT else "other"
        lines.append(line(path, baseline_name("equal weight" if path.name in EQUAL_WEIGHT else path.name, words), role))
    return days, tuple(lines)


def accounts_section(book: SeasonLookup, words: ModelWords) -> tuple[Section | None, str]:
    """The figure of all accounts, and the text of the file with its values; None where no account is recorded."""
    days, lines = account_lines(book, words)
    if not lines:
        return None, ""
    start = words.say("earned.start")
    said = NavWords(start=start, fall=words.say("earned.fall"), deepest="", ticks=words.amount)
    title = words.say("accounts.title")
    desc = "; ".join(f"{one.name} {one.end}" for one in lines)
    wide, narrow = nav_figure(NavChart("accounts", lines, said), title, desc)
    navs = [(one.name, np.asarray(one.nav)) for one in lines]
    heads = (words("board.agent"), words("board.return"), words.say("accounts.drawdown"))
    rows = tuple((one.name, one.end, words.percent(float(falls(one.nav).min()))) for one in lines)
    left = len(book.agents) - _DRAWN
    figure = Figure(
        title,
        words.say("accounts.caption", first=words.day(days[0]), last=words.day(days[-1]), n=len(days)),
        wide,
        narrow,
        note=words.say("accounts.more", n=left) if left > 0 else "",
        table=Table(heads, rows, frozenset((1, 2)), words.say("accounts.table")),
        brush=brush_of((start, *map(words.day, days)), navs),
        data=DATA,
    )
    section = Section("accounts", words.say("accounts.section"), words.say("accounts.lede"), (figure,))
    return section, paths_text(words.say("earned.head.day"), (start, *days), navs)


def holdings_blocks(book: SeasonLookup, words: ModelWords) -> tuple[Block, ...]:
    """What each agent holds after its last decision, by name; nothing where no book is recorded."""
    rows: list[tuple[Inline, ...]] = []
    for name in book.agents:
        steps = book.run.steps.get(name, ())
        last = next((step for step in reversed(steps) if step.nav is not None), None)
        if last is None or last.nav is None:
            continue
        held = sorted(
            ((symbol, n) for symbol, n in last.positions.items() if n), key=lambda one: (-abs(one[1]), one[0])
        )
        shown = [
            f"{clean(symbol, 20)} {words.amount(n, 0 if float(n).is_integer() else 2)}" for symbol, n in held[:_HELD]
        ]
        more = [words.say("accounts.held_more", n=len(held) - _HELD)] if len(held) > _HELD else []
        cash = (
            words.percent(last.cash / last.nav) if last.cash is not None and last.nav else words("state.not measured")
        )
        what = ", ".join((*shown, *more)) or words.say("accounts.nothing")
        rows.append((Linked(clean(name, 60), book.pages[name]), words.amount(last.nav), cash, what))
    if not rows:
        return ()
    heads = (words("board.agent"), words.say("accounts.value"), words.say("accounts.cash"), words.say("accounts.held"))
    return (Table(heads, tuple(rows), frozenset((1, 2)), "", stacked=True, style="held"),)


def latest_blocks(book: SeasonLookup, words: ModelWords) -> tuple[Block, ...]:
    """The last decisions of all agents, newest first, each with its reasons and a link to all of it."""
    found = [
        (step.day, name, step)
        for name in book.agents
        for step in book.run.steps.get(name, ())[-min(_LATEST, LAST_CARDS) :]
    ]
    found.sort(key=lambda one: (one[0], -one[2].number), reverse=True)
    rows = tuple(_decision(book, name, step, words) for _, name, step in found[:_LATEST])
    if not rows:
        return ()
    heads = (words.say("accounts.day"), words("board.agent"), words.say("accounts.decided"))
    return (Table(heads, rows, summary="", stacked=True, style="latest"),)


def _decision(book: SeasonLookup, agent: str, step: SeasonStep, words: ModelWords) -> tuple[Inline, ...]:
    orders = [clean(order, 60) for order in step.orders[:_ORDERS]] if order_count(step) else []
    if len(step.orders) > _ORDERS and orders:
        orders.append(words.say("accounts.held_more", n=len(step.orders) - _ORDERS))
    state = next((words.word("filter", key) for key in sorted(decision_keys(step))), "")
    reason = clean(next((text for _, text in step.texts if text.strip()), ""), _REASON)
    what = ", ".join(orders) or state
    place = f"{book.pages[agent]}#d{step.number}"
    said: Inline = small(words.quoted(reason)) if reason else ""
    return words.day(step.day), Linked(clean(agent, 60), place), (what, said)


def go_deeper(words: ModelWords) -> Iterator[Inline]:
    """The other pages of the season, with what they hold."""
    for key, href in (
        ("claims", "claims.html"),
        ("panel", "panel.html"),
        ("measurements", "measurements.html"),
        ("rules", "rules.html"),
        ("changelog", "changelog.html"),
    ):
        yield bold(words(f"nav.{key}")), ": ", Linked(words.say(f"accounts.deeper.{key}"), href)
