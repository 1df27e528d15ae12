"""Sections on the agents of a study: its cycles, the date-leakage checks, agent conduct (which supports no ranking),
and one example cycle with each agent's decision, text and resulting portfolio."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC
from functools import partial
from html import escape
from pathlib import PurePath
from typing import Final

from assaymark.errors import InputError
from assaymark.portfolio.broker import Settlement, audit, fee_of, prices_of, settle
from assaymark.prompting import judged_rationales
from assaymark.records import Constraint, Context, Decision, Measurement
from assaymark.report import blocks as b
from assaymark.report import text as t
from assaymark.report.blocks import Block, Inline
from assaymark.report.charts.canvas import NARROW, csv_text
from assaymark.report.charts.paths import price_chart
from assaymark.report.inputs import RunIndex
from assaymark.report.study.plan import planted_group
from assaymark.report.text import known
from assaymark.text import NBSP, clean, count, number, percent, span

EXAMPLE: Final = "cycle-example.html"
"""The page of the example cycle."""

CLOSES: Final = "data/cycle-closes.csv"
"""The file of the closes drawn in the charts."""

MOST: Final = 12
"""Maximum number of instruments drawn and of agents shown; the others are counted."""

ROOM: Final = 36_000
"""Bytes that the texts of all agents may take together, which limits the size of the page."""

CAUTION: Final = (
    "This is conduct, not quality: no judge graded it and no test compares the agents here, so it supports no ranking. "
    "Agents are listed in alphabetical order."
)
_ORDERS: Final = 20
_FLAGS: Final[Mapping[str, str]] = {
    "invalid-reply": "reply of another form", "refused": "refused", "no-answer": "no answer",
    "rejected-order": "with an order that was not taken", "constraint-breach": "with a limit broken",
    "instruction-like text": "with instruction-like text",
}  # fmt: skip
_RULES: Final[Mapping[str, str]] = {
    "max_weight": "largest position", "min_cash": "cash", "max_leverage": "leverage", "max_orders": "number of orders",
    "allow_short": "short positions", "settlement": "orders that cannot be settled",
}  # fmt: skip
_PROBES: Final[Mapping[str, str]] = {
    "mechanical": "A search of the daily price ranges",
    "model": "A model that was asked for the month",
}
_DONE: Final[Mapping[str, str]] = {
    "buy": "Buy", "sell": "Sell", "short": "Sell short", "cover": "Buy back", "close": "Close", "hold": "Hold",
    "no_trade": "Trade nothing", "target_weight": "Move to a weight",
}  # fmt: skip
_LIMITS: Final[Mapping[str, Callable[[float], str]]] = {
    "max_weight": lambda limit: f"No position above {percent(limit, 1)} of equity",
    "min_cash": lambda limit: f"Cash of at least {percent(limit, 1)} of equity",
    "max_leverage": lambda limit: f"Exposure of at most {number(limit)} times equity",
    "max_orders": lambda limit: f"At most {t.plural(round(limit), 'order')}",
    "allow_short": lambda limit: "Short positions are allowed" if limit else "No short positions",
    "fee": lambda limit: f"A fee of {number(limit, 1)} bps of what is traded",
}


def agents_section(index: RunIndex) -> b.Section | None:
    """The cycles, the date-leakage checks and the agents' conduct; None for a run with imported records."""
    run, substrate, shown_rows = index.run, index.study.substrate, list[tuple[str, ...]]()
    if substrate is None:
        return None
    for regime in substrate.regimes:  # the number of cycles, their days, and the instruments left out
        keys = [key for key in run.cycles if key.regime == regime]
        if not keys:
            continue
        ends = min(key.first_bar for key in keys), max(key.last_bar for key in keys)
        first, last = (t.moment(when.date().isoformat()) for when in ends)
        of, gone_from = count(len(keys)), Counter(name for key in keys for name in key.left_out)
        named = [clean(name, 40) if times == len(keys) else f"{clean(name, 40)} in {count(times)} of {of}"
                 for name, times in sorted(gone_from.items())]  # fmt: skip
        some = t.listing(named) if len(named) <= 8 else f"{', '.join(named[:8])} and {count(len(named) - 8)} more"
        gone = f"{some}: did not trade then" if named else "none"
        shown_rows.append((clean(regime, 60), of, first if first == last else f"{first} and {last}", gone))
    columns = ("Regime", "Cycles", "Cut between", "Instruments left out")
    regimes = b.Table(columns, tuple(shown_rows), frozenset({1}), "", stacked=True)
    probes: list[Inline] = []
    for probe in run.probes:
        asked, dated = count(probe.asked), f"{count(probe.control_hits)} of {count(probe.control_asked)}"
        probes.append((b.Mark("supported" if probe.passed else "contradicted"), " ", (
            f"{_PROBES.get(probe.probe, clean(probe.probe, 40))}: {'PASS' if probe.passed else 'FAIL'}. It "
            f"dated {count(probe.hits)} of {asked} sanitised cycles (chance {percent(probe.chance, 2)}, "
            f"{t.p_words(probe.p)}) and {dated} with dates and names left in."
        )))  # fmt: skip
    if not probes:
        probes.append(
            "The lock holds no date-leakage check, so nothing shows that the cycles do not give their dates away."
        )
    elif substrate.date_probe.model is None:
        probes.append("The plan names no model for a date probe, so no model was asked.")
    planted = tuple(
        planted_group(clean(view.name, 80), view.question, view.planted)
        for view in sorted(index.run.reference_agents, key=lambda planted: planted.name)
    )
    clock = "Dates are those of the source. Neither agents nor judges saw a date, a real name or a price level."
    item = next(iter(index.by_name.get("agent.answered", ())), None)
    method = "The conduct of the agents was not measured."
    if item is not None and item.level is not None:
        states = sorted({t.state_words(m) for m in index.all("agent.seconds") if m.value is None})
        untimed = f"Without seconds: {t.listing(states)}." if states else ""
        method = (
            f"Intervals of shares: {percent(item.level)}, Wilson, which takes decisions as independent; the ends over "
            "clusters do not, and are given beside it where decisions differ. Seconds and words: median, lower to "
            f"upper quartile. Seconds are of one call on the machine that ran the study, waiting included. {untimed}"
        ).strip()
    blocks: list[Block] = [
        b.Group("What were they shown?", (regimes, *b.notes([clock]))),
        b.Group("Does the material say when it is from?", (b.Items(tuple(probes)),)),
        b.Group("What did they do?", (b.Prose(CAUTION, "cap"), _conduct(index), *b.notes([method]))),
    ]
    if planted:
        built_in = {view.name for view in index.run.reference_agents}
        names = [clean(name, 60) for name in sorted(agent.name for agent in index.study.agents) if name in built_in]
        are = "is a built-in rule" if len(built_in) == 1 else "are built-in rules"
        sentence = f"{t.listing(names)} {are} with planted properties, no language model."
        if built_in.issuperset(agent.name for agent in index.study.agents):
            sentence = "Every agent is a built-in rule with planted properties; none is a language model."
        blocks.append(b.Group("", (*b.notes([b.bold(sentence)]), b.beside(*planted, style="tri")), "agents-planted"))
    cycles, source = t.counted(len(run.cycles), "cycle"), PurePath(substrate.source).name
    market = "the built-in invented market" if source == "synthetic" else f"the file {clean(source, 80)}"
    answer = (
        f"Each agent decided on {cycles} from {t.plural(len(shown_rows), 'regime')} of {market}. A "
        f"cycle shows {t.counted(substrate.bars, 'one-minute bar')} of each instrument, a book, and numeric limits."
    )
    example: Inline = (" ", b.Linked("One whole cycle as an example", EXAMPLE)) if run.example is not None else ""
    return b.Section("agents", "What the agents were shown and did", (answer, example), tuple(blocks))


def _conduct(index: RunIndex) -> b.Table:
    """The conduct of each agent: valid replies, limits kept, seconds, words, flags and broken limits."""
    rows: list[tuple[Inline, ...]] = []
    for agent in sorted(index.study.agents, key=lambda agent: agent.name):
        item = {name: index.get(name, agent=agent.name) for name in (
            "agent.answered", "agent.limits_kept", "agent.seconds", "agent.text_tokens", "agent.output_tokens",
            "terse.share")}  # fmt: skip
        answered, limits = item["agent.answered"], item["agent.limits_kept"]
        flags = "; ".join([*_counts(answered, "flags", _FLAGS), *_counts(limits, "breaches", _RULES)]) or "none"
        # The length of a text in words, with the tokens that the provider counted beside it.
        words, tokens = _median(index, item["agent.text_tokens"], 0), item["agent.output_tokens"]
        beside = f"{';' if isinstance(words, tuple) else ''} output tokens not counted"
        if known(tokens):
            beside = f"; {number(tokens.value, 0)} output tokens, {_n(tokens)}"
        rows.append((
            (clean(agent.name, 80), b.small(f" family {clean(agent.family, 60)}")), b.code(clean(agent.model, 120)),
            _share(index, answered), _share(index, limits), _median(index, item["agent.seconds"], 2),
            (words, b.small(beside)), _share(index, item["terse.share"]), flags,
        ))  # fmt: skip
    return b.Table(
        ("Agent", "Model", "Answered in form", "Kept every limit", "Seconds", "Words", "Terse texts",
         "Flags and broken limits"), tuple(rows), summary="", stacked=True,
    )  # fmt: skip


def _share(index: RunIndex, item: Measurement | None) -> Inline:
    """A share with its interval, and with that over clusters if there is one."""
    if not known(item):
        return t.as_text(item)
    low, high = t.detail_of(item, "t_low"), t.detail_of(item, "t_high")
    named = (("", t.bounds_of(item)), ("over clusters ", None if low is None or high is None else (low, high)))
    parts = [f"{lead}{percent(ends[0])} to {percent(ends[1])}" for lead, ends in named if ends]
    return index.link(item, percent(item.value)), b.small(f" {', '.join((*parts, _n(item)))}")


def _n(item: Measurement) -> str:
    """The denominator, on one line."""
    return f"n{NBSP}={NBSP}{count(item.n)}"


def _median(index: RunIndex, item: Measurement | None, digits: int) -> Inline:
    """A median with its quartiles."""
    if not known(item):
        return t.as_text(item)
    median = index.link(item, number(item.value, digits))
    low, high = t.detail_of(item, "lower"), t.detail_of(item, "upper")
    quartiles = "" if low is None or high is None else f"{span(low, high, digits)}, "
    return median, b.small(f" {quartiles}{_n(item)}")


def _counts(item: Measurement | None, part: str, named: Mapping[str, str]) -> Iterator[str]:
    """The counts in a part of a measurement's detail, in words."""
    counts = {} if item is None else item.detail.get(part, {})
    if isinstance(counts, Mapping):
        for name in sorted(counts):
            if isinstance(counts[name], int):
                yield f"{counts[name]} {named.get(name, clean(name, 40))}"


def example_page(index: RunIndex) -> b.Page | None:
    """The page of the example cycle; None if there is none."""
    if index.run.example is None:
        return None
    (cycle, context, decisions), charts = index.run.example, list[Block]()
    prices = prices_of(context)
    classes = {item.id: item.asset_class for item in context.instruments}
    for at, series in enumerate(context.series[:MOST]):
        name, closes = clean(series.instrument, 40), series.close
        kind = clean(classes.get(series.instrument, ""), 30).replace("_", " ")
        caption = f"Real name: {clean(cycle.names.get(series.instrument, 'not known'), 60)}"
        title = f"{name}, {kind}" if kind else name
        if len(closes) < 2 or not all(map(math.isfinite, closes)):
            charts.append(b.Group(title, b.notes(["no line: fewer than two prices", caption])))
            continue
        minutes = round((len(closes) - 1) * series.interval_s / 60)
        desc = (
            f"{t.counted(len(closes), 'close')} from {number(closes[0])} to {number(closes[-1])}, lowest "
            f"{number(min(closes))}, highest {number(max(closes))}"
        )
        sides = (f"{count(minutes)} minutes before", "at the cutoff")
        charts.append(b.plot(f"price{at}", title, "", partial(price_chart, closes, sides), desc,
                             alt=f"Closes of {name}", width=NARROW, note=caption, data=CLOSES))  # fmt: skip
    shown: list[Block] = [b.beside(*charts, style="tri")] if charts else []
    undrawn = _more(len(context.series), "instrument", "is not drawn", "are not drawn")
    shown += b.notes([b.Linked("The closes behind the charts (CSV)", CLOSES) if charts else "", undrawn])
    shown += _features_and_portfolio(context, prices)
    limits = tuple(limit_words(rule) for rule in context.constraints[:40])
    shown.append(b.Group("The limits", (b.Items(limits),) if limits else b.notes(["No limit was stated."])))
    if task := clean(context.prompt, 3000):
        shown.append(b.Group("The task", b.notes([task])))
    agents = sorted(decisions, key=lambda decision: decision.agent.id)[:MOST]
    decided: list[Block] = [_agent(agent, context, prices, ROOM // len(agents)) for agent in agents]
    decided = decided or [*b.notes(["No decision on this cycle is in the records."])]
    decided += b.notes([_more(len(decisions), "agent", "is in the records alone", "are in the records alone")])
    answer = (
        f"Cycle {count(cycle.number)} of the regime {clean(cycle.regime, 60)}, as "
        f"{t.plural(len(decisions), 'agent')} saw it, and what each decided. It is an example and no evidence: "
        "nothing may be concluded from one cycle."
    )
    second = (
        "Agents are listed in alphabetical order. The arithmetic is ours: orders settled at the last prices, fees "
        "included."
    )
    # The source of the cycle, which agents never saw.
    first, last = cycle.first_bar.astimezone(UTC), cycle.last_bar.astimezone(UTC)
    ends = f"{first:%H:%M} to {last:%H:%M} UTC" if first.date() == last.date() else f"to {t.moment(last.isoformat())}"
    begin = t.moment(first.date().isoformat() if first.date() == last.date() else first.isoformat())
    gone = [clean(name, 40) for name in cycle.left_out[:MOST]]
    are = "is" if len(gone) == 1 else "are"
    omitted = f" {t.listing(gone)} did not trade then and {are} left out." if gone else ""
    unseen = "The agents saw neither this time nor the real names below the charts."
    return b.Page(
        EXAMPLE, "One cycle, and what was decided on it",
        (answer, " ", b.Linked("All agents, all cycles", "agents.html#agents")),
        (b.Section("shown", "What was shown?", f"Cut from bars of {begin}, {ends}.{omitted} {unseen}", tuple(shown)),
         b.Section("decided", "What did each agent decide and write?", second, tuple(decided))),
    )  # fmt: skip


def example_closes(index: RunIndex) -> str:
    """The file behind the charts of the example cycle; empty if there is none."""
    example = index.run.example
    series = () if example is None else example[1].series
    rows = [  # every close that was shown, drawn or not: a row per bar
        (asset.instrument, round((len(asset.close) - 1 - at) * asset.interval_s / 60), close)
        for asset in series
        for at, close in enumerate(asset.close)
    ]
    return "" if example is None else csv_text(("instrument", "minutes before", "close"), rows)


def _more(total: int, noun: str, singular: str, many: str) -> str:
    rest = total - MOST
    return "" if rest <= 0 else t.sentence(f"{t.plural(rest, f'more {noun}')} {singular if rest == 1 else many}")


def _features_and_portfolio(context: Context, prices: Mapping[str, float]) -> Iterator[b.Group]:
    """The features given in addition to prices, and the portfolio before any order."""
    portfolio = context.portfolio
    # The facts given with the bars: a row per instrument, a column per field.
    facts = [fact for fact in context.facts if fact.instrument and not isinstance(fact.value, str)]
    fields = list(dict.fromkeys((fact.field, fact.unit) for fact in facts))[:MOST]
    values, rows = {(fact.instrument, fact.field, fact.unit): fact.value for fact in facts}, list[tuple[str, ...]]()
    for name in list(dict.fromkeys(fact.instrument for fact in facts))[:MOST]:
        given_to = [(values.get((name, *field)), 6 if field[1] == "ratio" else 4) for field in fields]
        cells = (number(value, digits) if isinstance(value, (int, float)) and math.isfinite(value) else "not given"
                 for value, digits in given_to)  # fmt: skip
        rows.append((clean(name, 40), *cells))
    columns = ("Instrument", *(f"{clean(name, 30).replace('_', ' ')}, {clean(unit, 20)}" for name, unit in fields))
    if (features := b.table_of(columns, rows, len(fields))) is not None:
        yield b.Group("Features given with the bars", (features,))
    if portfolio is not None:
        cash, nav, positions = portfolio.cash, portfolio.nav, list[tuple[str, ...]]()
        for name in sorted(portfolio.positions)[:40]:
            units, price = portfolio.positions[name], prices.get(name)
            worth = ("no price", "not defined", "not defined")
            if price is not None:
                share = percent(units * price / nav, 1) if nav > 0 else "no NAV"
                worth = (number(price, 4), number(units * price), share)
            positions.append((clean(name, 40), number(units, 4), *worth))
        share = percent(cash / nav, 1) if nav > 0 else "no NAV"
        positions.append(("Cash", "", "", number(cash), share))
        columns = ("Position", "Units", "Last price", "Value", "Of NAV")
        table = b.Table(columns, tuple(positions), frozenset({1, 2, 3, 4}), "")
        sentence = f"Before any order, in {clean(portfolio.currency, 12)}: cash {number(cash)}, NAV {number(nav)}."
        yield b.Group("The book", (b.Prose(sentence, "cap"), table))


def limit_words(rule: Constraint) -> str:
    """A numeric limit in words."""
    if rule.kind in _LIMITS:
        return _LIMITS[rule.kind](rule.limit)
    return f"{clean(rule.kind, 40).replace('_', ' ')}: {number(rule.limit)} {clean(rule.unit, 20)}"


def _agent(decision: Decision, context: Context, prices: Mapping[str, float], room: int) -> b.Group:
    """One agent's answer: its text, its orders with their arithmetic, and every limit checked against the portfolio."""
    parts: list[Inline] = []
    # As much of its text as fits once escaped, with an ellipsis if it is cut.
    lines = (line for rationale in judged_rationales(decision) for line in rationale.text.splitlines())
    for part in filter(None, map(clean, lines)):
        if _bytes(part) <= room:
            parts.append(part)
            room -= _bytes(part) + 8
            continue
        size = 0
        for at, char in enumerate(part):
            size += _bytes(char)
            if size > room - 3:
                parts += [f"{part[:at].rstrip()}…"] if at else []
                break
        parts.append("The text goes on in the records.")
        break
    (after, problem), orders = _after(decision, context, prices), list[str]()
    for order in decision.actions[:_ORDERS]:  # with what each is worth at the last price
        did, name = _DONE[order.kind], clean(order.instrument, 40)
        if order.quantity is None:
            orders.append(f"{did} {name}".strip())
            continue
        price = prices.get(order.instrument)
        worth = "" if price is None else f" at {number(price, 4)}, worth {_amount(order.quantity * price)}"
        orders.append(f"{did} {_amount(order.quantity, 4)} of {name}{worth}")
    if len(decision.actions) > _ORDERS:
        orders.append(f"and {t.counted(len(decision.actions) - _ORDERS, 'more order')}")
    parts += [] if decision.confidence is None else [f"Confidence that it gave: {number(decision.confidence)}."]
    parts += [b.bold(problem)] if problem else []
    right: list[Block] = [b.Items(tuple(orders) or ("No orders",))]
    if after is not None:
        exposure = f"Exposure is {_amount(after.exposure)}, and no equity is left."
        if after.equity > 0:
            share = percent(after.exposure / after.equity, 1)
            exposure = f"Exposure {_amount(after.exposure)} over equity {_amount(after.equity)} is {share}."
        cash = (
            f"Cash {_amount(after.cash)} less purchases {_amount(after.bought)} plus sales {_amount(after.sold)} less "
            f"fees {_amount(after.fees)} leaves {_amount(after.residual)}."
        )
        right += b.notes([cash, exposure])
        checks = list[tuple[Inline, ...]]()
        for check in audit(after, context.constraints):
            subject = f", {clean(check.subject, 40)}" if check.subject else ""
            value = "no equity is left" if not math.isfinite(check.value) else {
                "max_weight": f"{percent(check.value, 2)}{subject}", "min_cash": f"{percent(check.value, 2)}{subject}",
                "max_orders": count(round(check.value)),
                "allow_short": f"{number(check.value, 4)}{subject}" if subject else "none",
            }.get(check.rule, number(check.value, 3))  # fmt: skip
            limit = limit_words(Constraint(check.rule, check.limit, ""))
            state = (b.Mark("supported" if check.kept else "contradicted"), " kept" if check.kept else " broken")
            checks.append((limit, value, state))
        table = b.table_of(("Limit", "After the orders", "State"), checks, {1}, stacked=True)
        right += [table] if table else []
    heading = (clean(decision.agent.id, 80), b.small(f" family {clean(decision.agent.family, 60)}"))
    return b.Group(heading, (b.Columns((b.notes(parts), tuple(right))),))


def _bytes(text: str) -> int:
    return len(escape(text).encode())


def _after(decision: Decision, context: Context, prices: Mapping[str, float]) -> tuple[Settlement | None, str]:
    """The portfolio after the orders, or the reason why there is none."""
    if not decision.rationales and not decision.actions and decision.flags:
        missing = clean("; ".join(decision.missing), 400)
        return None, f"No usable answer ({clean(', '.join(decision.flags), 80)}): {missing}"
    if context.portfolio is None:
        return None, "There is no book to settle orders on."
    try:
        after = settle(context.portfolio, prices, decision.actions, fee_bps=fee_of(context.constraints))
    except InputError as exc:
        return None, f"The orders cannot be settled: {clean(str(exc), 300)}"
    except (ValueError, OverflowError):
        after = None
    # Amounts beyond the range of a float make infinite sums.
    if after is None or not math.isfinite(after.equity + after.exposure):
        return None, "The orders cannot be settled: their amounts are beyond any number."
    return after, ""


def _amount(value: float, digits: int = 2) -> str:
    """A number of units or of money; an implausibly large one only by its magnitude."""
    return number(value, digits) if abs(value) < 1e15 else f"{value:.3g}"
