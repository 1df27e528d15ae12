"""The first page of a table of scores: how it was read, how good each of its judges is, and what to do next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from shlex import quote
from typing import Final

from markupsafe import Markup

from assaymark.records import AGGREGATE, Measurement
from assaymark.report.blocks import Facts, Group, Inline, Items, Linked, Section, Table, Text, bold, small
from assaymark.report.charts.tiers import Strip, strip_axis
from assaymark.report.inputs import TableView
from assaymark.report.lookup import KAPPA, Book
from assaymark.report.text import counted, listing, plural, shown, signed
from assaymark.text import clean, count, number, prose

WINS: Final = "share of wins"
"""The score of pairs, as `check` names it; beside other scores, that of pairs that the same judges saw."""

COMMON: Final = "common"
"""The label of what all judges of their own family have in common."""

_ROLES: Final[Mapping[str, str]] = {
    "agent": "system", "agent_a": "first system", "agent_b": "second system", "score": "score", "judge": "judge",
    "item": "item", "dimension": "criterion", "winner": "verdict", "order_1": "verdict, one order",
    "order_2": "verdict, other order", "order": "order shown", "cluster": "cluster", "trial": "trial",
    "length": "length", "text": "text",
}  # fmt: skip
"""What a role is called on the page."""


def read_section(table: TableView) -> Section:
    """How a table was understood, what was filled in, and what was left out."""
    rows: list[tuple[str, Inline]] = [
        (name.capitalize(), (Markup("<code>{}</code>").format(clean(table.roles[role], 80))))
        for role, name in _ROLES.items()
        if role in table.roles
    ]
    rows.append(("Criteria", (listing([clean(one, 60) for one in table.dimensions]), f", {scale_words(table)}")))
    rows.append(("File", (clean(table.source, 200), small(f" {digest_words(table)}"))))
    told = Items(tuple(prose(one, 600) for one in (*table.left, *(f"Chosen after the scores were seen: {one}."
                                                                  for one in table.choices))))  # fmt: skip
    wrong = ("Wrong? Name the column of a role with ", Markup("<code>--map ROLE=COLUMN</code>"), ".")
    filled = Items((*(prose(one, 600) for one in table.filled), wrong))
    assumed = Group(f"What was assumed ({len(table.filled)})", (filled,), folded="closed")
    blocks = (Facts(tuple(rows)), *((told,) if told.items else ()), assumed)
    return Section("read", "How was the table read?", f"{size_words(table)}.", blocks)


def size_words(table: TableView) -> str:
    """How much there is in a table."""
    what = "cluster" if "cluster" in table.roles or "item" not in table.roles else "item"
    parts = (counted(table.agents, "system"), counted(table.clusters, what), counted(table.judges, "judge"),
             plural(len(table.dimensions), "criterion", "criteria"))  # fmt: skip
    lost = f", {count(table.missing)} missing" if table.missing else ""
    return f"{', '.join(parts)}: {counted(table.scores, 'score')}{lost}"


def scale_words(table: TableView) -> str:
    """The scale in words."""
    return f"{table.scale[0]:g} to {table.scale[1]:g}"


def digest_words(table: TableView) -> str:
    """The format of a file and how its bytes begin."""
    return f"{table.format}{f', sha256 {table.sha256[:12]}…' if table.sha256 else ''}"


def panel_section(book: Book) -> Section:
    """How far the judges agree, and one row for each of them."""
    panel = sorted(book.run.study.judges, key=lambda one: one.name)
    pairs = kappa_pairs(book)
    wins = any(True for _ in book.every("judge.own_family", dimension=WINS))
    axis = strip_axis([end for judge in panel for end in _ends(book.one("judge.own_family", dimension=AGGREGATE,
                                                                       judge=judge.name))], 0.0)  # fmt: skip
    rows = []
    for judge in panel:
        name, own = judge.name, book.one("judge.own_family", dimension=AGGREGATE, judge=judge.name)
        mine, others = split_pairs(pairs, name)
        liking: Inline = "none of its family" if own is None else shown(own)
        if own is not None and own.value is not None:
            over = own.low is not None and own.low > 0
            strip = Strip(axis, ((0.0, "", True),), ((own.value, own.low, own.high),), "q" if over else "p")
            liking = (Markup(strip.svg()), " ", bold(signed(own.value)) if over else signed(own.value))
        family = small(f" {clean(judge.family, 60)}") if judge.family != name else ""
        rows.append((
            (clean(name, 60), family),
            number(mine) if mine is not None else "left out" if lost(book, name) else "no pair",
            number(others) if others is not None and not lost(book, name) else "", liking,
            *((_wins(book, name),) if wins else ()), missing_words(book, name),
        ))  # fmt: skip
    what = book.sign
    heads = ("Judge", f"{what} with the others", f"{what} without it",
             ("Points more for its own family", small(" dashed: 0")),
             *(("Share of wins more for it, in pairs",) if wins else ()), "Missing scores")  # fmt: skip
    table = Table(heads, tuple(rows), frozenset({1, 2}), summary="", stacked=True, style="tests")
    spread = [Text(spread_words(book), "cap")] if spread_words(book) else []
    more = Items((Linked("Every pair of judges", "agreement.html"),))
    return Section("judges", "Do the judges agree, and is one of them odd?", agree_words(book), (table, *spread, more))


def _wins(book: Book, judge: str) -> Inline:
    """How much more of its comparisons a judge lets its own family win, if pairs were given beside the scores."""
    item = book.one("judge.own_family", dimension=WINS, judge=judge)
    if item is None or item.value is None:
        return "" if item is None else shown(item)
    ends = "" if item.low is None or item.high is None else f" ({signed(item.low)} to {signed(item.high)})"
    return (bold(signed(item.value)) if item.low is not None and item.low > 0 else signed(item.value), ends)


def spread_words(book: Book) -> str:
    """How far apart the systems are with each judge that scored its own family; it also moves the points for it."""
    spreads: dict[str, float] = {}
    for judge in {item.labels["judge"] for item in book.every("judge.own_family", dimension=AGGREGATE)} - {COMMON}:
        means = [one.value for one in book.every("single.level", dimension=AGGREGATE, judge=judge)]
        known = [value for value in means if value is not None]
        spreads[judge] = max(known) - min(known) if known else 0.0
    told = [f"{number(value, 1)} points apart with {clean(judge, 60)}" for judge, value in sorted(spreads.items())]
    why = "A judge that spreads scores more also gives a good system of its family more points without preferring it."
    return f"The lowest and the highest system are {listing(told)}. {why}" if len(told) > 1 else ""


def pairs_words(book: Book) -> str:
    """What pairs that were given beside scores say of the judges: position bias, and wins of their own family."""
    table = book.run.table
    if table is None or not table.orders:
        return ""
    liked = [item for item in book.every("judge.own_family", dimension=WINS)
             if item.labels["judge"] != COMMON and (item.low or 0.0) > 0 and item.value is not None]  # fmt: skip
    told = [
        f"{clean(one.labels['judge'], 60)} picks its own family in {100 * (one.value or 0.0):.0f} "
        f"({100 * (one.low or 0.0):.0f} to {100 * (one.high or 0.0):.0f}) more of 100 pairs than the other judges do."
        for one in liked
    ]
    return " ".join((*told, place_words(table)))


def place_words(table: TableView) -> str:
    """In how many pairs the position decided, over the judges."""
    shares = sorted(one["same_place"] / one["both"] for one in table.orders.values())
    ends = f"{shares[0]:.1%} of pairs"
    if len(shares) > 1:
        ends = f"{shares[0]:.1%} to {shares[-1]:.1%} of pairs, depending on the judge"
    return f"The same position won both orders of {ends}; 0% if the texts alone decide."


def _ends(item: Measurement | None) -> Iterator[float]:
    for end in () if item is None else (item.value, item.low, item.high):
        if end is not None:
            yield end


def kappa_pairs(book: Book) -> dict[tuple[str, str], float]:
    """The agreement of every two judges on the overall score."""
    item = book.one(KAPPA, dimension=AGGREGATE)
    found = {} if item is None else item.detail.get("pairs", {})
    return {(a, b): value for key, value in found.items() for a, _, b in (key.partition("|"),) if value is not None}


def split_pairs(pairs: Mapping[tuple[str, str], float], judge: str) -> tuple[float | None, float | None]:
    """The mean agreement over the pairs with a judge, and over those without it."""
    mine = [value for pair, value in pairs.items() if judge in pair]
    others = [value for pair, value in pairs.items() if judge not in pair]
    return tuple(sum(one) / len(one) if one else None for one in (mine, others))  # type: ignore[return-value]


def lost(book: Book, judge: str) -> bool:
    """Whether a judge was left out."""
    item = book.one("missing.share", judge=judge)
    return item is not None and bool(item.detail.get("left_out"))


def missing_words(book: Book, judge: str) -> str:
    """How many scores of a judge are missing, and whether it was left out."""
    item = book.one("missing.share", judge=judge)
    if item is None or item.value is None:
        return "none"
    lacking, asked = item.detail.get("lacking"), item.detail.get("records")
    said = f"{count(lacking)} of {count(asked)}" if isinstance(lacking, int) and isinstance(asked, int) else (
        f"{item.value:.1%}"
    )  # fmt: skip
    return f"{said}, left out" if lost(book, judge) else said if item.value else "none"


def agree_words(book: Book) -> str:
    """The answer to whether the judges agree, with the judge that pulls it down."""
    item, gates = book.one(KAPPA, dimension=AGGREGATE), book.run.study.gates
    if item is None or item.value is None:
        return f"Not known: {shown(item)}."
    ends = "" if item.low is None or item.high is None else f" ({number(item.low)} to {number(item.high)})"
    answer = "Yes" if item.value >= gates.publish else "Hardly" if item.value >= gates.halt else "No"
    what = book.sign
    said = f"{answer}: {what} {number(item.value)}{ends}; {number(gates.publish)} needed."
    odd = odd_judge(book, item.value)
    return said if odd is None else f"{said} {clean(odd[0], 60)} pulls it down: {number(odd[1])} without it."


def odd_judge(book: Book, value: float) -> tuple[str, float] | None:
    """The judge without which the others agree better by at least a tenth, and how well."""
    pairs = kappa_pairs(book)
    without = {judge.name: split_pairs(pairs, judge.name)[1] for judge in book.run.study.judges}
    known = {name: rest for name, rest in without.items() if rest is not None and rest >= value + 0.1}
    return max(known.items(), key=lambda one: one[1]) if known else None


def order_lines(table: TableView) -> list[str]:
    """What became of pairs that a judge saw in both orders, a line a judge."""
    return [
        f"{clean(judge, 60)}: of {counted(one['both'], 'pair')} seen in both orders the same text won "
        f"{one['same_text'] / one['both']:.1%}, the same position {one['same_place'] / one['both']:.1%}"
        for judge, one in sorted(table.orders.items())
    ]


def next_steps(book: Book) -> list[tuple[str, str]]:
    """What would help, each with its command: (words, command)."""
    table = book.run.table
    if table is None:
        return []
    found: list[tuple[str, str]] = []
    item, command = book.one(KAPPA, dimension=AGGREGATE), f"assaymark check {quote(clean(table.source, 120))}"
    odd = None if item is None or item.value is None else odd_judge(book, item.value)
    if odd is not None:
        found.append((f"See what changes without {clean(odd[0], 60)}:", f"{command} --without {quote(odd[0])}"))
    if "cluster" not in table.roles:
        found.append(("Name clusters, if items come in groups:", f"{command} --cluster COLUMN"))
    if not book.preregistered:
        found.append(("Fix a plan before the next scores:", "assaymark lock PLAN.toml --out plan"))
    if not any(item.name.startswith("human.") for item in book.run.measurements):
        drawn = f"assaymark draw {quote(clean(table.source, 120))} --sample 25"
        found.append(("No human grades; draw items for people to grade:", drawn))
    found.append(("Check the sentences of a text:", "assaymark proofread README.md --run RUN"))
    return found


def next_section(steps: Sequence[tuple[str, str]]) -> Section:
    """What to do next."""
    lines: tuple[Inline, ...] = tuple((words, " ", Markup("<code>{}</code>").format(what)) for words, what in steps)
    return Section("next", "What to do next?", "", (Items(lines),))


def orders_section(table: TableView) -> Section:
    """Position bias, measured on the way."""
    heads = ("Judge", "Pairs in both orders", "The same text won", "The same position won", "Of these, the first",
             "A tie in one order")  # fmt: skip
    rows = tuple(
        (clean(judge, 60), count(one["both"]), f"{one['same_text'] / one['both']:.1%}",
         f"{one['same_place'] / one['both']:.1%}",
         f"{one.get('first_place', 0) / one['same_place']:.1%}" if one["same_place"] else "none",
         f"{one['one_tie'] / one['both']:.1%}")
        for judge, one in sorted(table.orders.items())
    )  # fmt: skip
    made = Table(heads, rows, frozenset({1, 2, 3, 4, 5}), summary="", stacked=True, style="tests")
    return Section("orders", "Does the order in which texts are shown decide?", place_words(table), (made,))
