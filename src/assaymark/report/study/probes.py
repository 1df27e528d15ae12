"""Probes beside the scores: other anchors, clusters after the training cutoff, the held-out judge, and people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from assaymark.claims.levels import kind_of
from assaymark.records import AGGREGATE, Measurement
from assaymark.report.blocks import (
    HATCHED,
    Figure,
    Group,
    Inline,
    Section,
    Table,
    Text,
    notes,
    plain,
    section,
    table_of,
)
from assaymark.report.charts.intervals import AxisRow, axis_rows
from assaymark.report.inputs import RunIndex
from assaymark.report.study.controls import supported_orders
from assaymark.report.text import (
    alpha,
    counted,
    ends_of,
    estimate,
    gap_words,
    listing,
    p_of,
    plural,
    real,
    sentence,
    shown,
    signed,
    sizes,
    state_words,
)
from assaymark.text import clean, count, number, percent, span

# --- other anchors --------------------------------------------------------------------------------------------------


def anchors(book: RunIndex) -> list[Measurement]:
    """The shifts of each score under the other rubric, in rubric order."""
    order = {name: at for at, name in enumerate(book.dimensions)}
    found = book.by_name.get("anchor.shift", ())
    return sorted(found, key=lambda m: (order.get(m.labels.get("dimension", ""), len(order)), m.id))


def changed_anchors(book: RunIndex) -> list[Measurement]:
    """The measured shifts of the dimensions whose anchors differ; where the run does not say which, of all but the
    aggregate."""
    found = [m for m in anchors(book) if m.labels.get("dimension") != AGGREGATE and m.value is not None]
    return [m for m in found if m.detail.get("changed", True)]


def anchor_section(book: RunIndex) -> Section:
    """The anchor probe. How many pairs change order is counted, not named: neither order is supported here."""
    found, title = anchors(book), "Do the anchors carry the score?"
    measured = [m for m in found if m.value is not None]
    if not measured:
        why = f"The anchor probe is {state_words(found[0])}." if found else (
            "Not run: no texts were graded again under another rubric."
        )  # fmt: skip
        return Section("anchors", title, why)
    drawn, rows = list[AxisRow](), list[tuple[Inline, ...]]()
    for item in found:
        detail, dimension = item.detail, item.labels.get("dimension", "")
        before, after = (real(detail.get(key)) for key in ("sd_before", "sd_after"))
        changed, whole = detail.get("changed"), dimension == AGGREGATE
        what = "all" if whole else "changed" if detail.get("changed", True) else "same"
        agents, flips = detail.get("order_before") or (), detail.get("flips")
        pairs = len(agents) * (len(agents) - 1) // 2
        of = f" of {count(pairs)}" if pairs else ""
        rows.append((
            book.title(dimension), what, state_words(item) if item.value is None else book.to(item, shift_words(item)),
            p_of(item), *("not measured" if one is None else number(one) for one in (before, after)),
            f"{count(flips)}{of}" if isinstance(flips, int) else "not measured", count(item.n),
        ))  # fmt: skip
        if item.value is not None:
            spread = "" if before is None or after is None else (
                f"spread {number(before)} before, {number(after)} after; "
            )  # fmt: skip
            name = book.title(dimension) + (" (same anchors)" if not whole and changed is False else "")
            bounds = None if item.low is None or item.high is None else (item.low, item.high)
            drawn.append(AxisRow(name, signed(item.value) + ends_of(item), f"{spread}n = {count(item.n)}", item.value,
                                 bounds))  # fmt: skip
    desc = "; ".join(f"{row.title}: {row.shown}, {row.note}" for row in drawn)
    wide, narrow = axis_rows("anchors", drawn, "Shift of each score under the other anchors", desc)
    rubric, judge = (clean(str(measured[0].detail.get(key, "")), 60) for key in ("rubric", "judge"))
    caption = (
        f"Score under rubric {rubric or 'of the probe'} minus score under {clean(book.run.rubric.name, 60)}, the same "
        f"texts and the same judge{f' ({judge})' if judge else ''}, in rubric points with intervals over clusters."
    )
    heads = ("Score", "Anchors", "Shift", "p", "Spread before", "Spread after", "Pairs that change order", "n")
    table = Table(heads, tuple(rows), frozenset({4, 5, 7}))
    note = "One judge alone grades this probe, so it says nothing about agreement under the other rubric."
    figure = Figure("How far do the scores move?", caption, wide, narrow, values=table)
    return section("anchors", title, anchor_answer(book), figure, table, notes([note]))


def anchor_answer(book: RunIndex) -> str:
    """Which dimensions move with their anchors, in one sentence."""
    changed = changed_anchors(book)
    still = [m for m in changed if m.low is None or m.high is None or m.low <= 0 <= m.high]
    moved = [book.title(m.labels["dimension"]) for m in changed if m not in still]
    if not changed:
        return "No dimension has other anchors in the probe."
    if not moved:
        return f"Other anchors move none of {plural(len(changed), 'score')} measurably."
    return f"{listing(moved)}: the score depends on how its anchors are written."


def shift_words(item: Measurement) -> str:
    """A shift or gap with its interval, in points."""
    return f"{estimate(item)} points"


# --- after the cutoff -----------------------------------------------------------------------------------------------


def contamination_gaps(book: RunIndex) -> list[Measurement]:
    """The gaps between later and earlier clusters: all instruments together, then each of them."""
    found = book.by_name.get("contamination.gap", ())
    return sorted(found, key=lambda m: (m.labels.get("split") != "all", m.labels.get("split", "")))


def contamination_section(book: RunIndex) -> Section:
    """The contamination probe, with the instruments that are on one side only."""
    found, title = contamination_gaps(book), "Do later clusters differ?"
    if not found:
        said = "the plan names no clusters after the training cutoff, so scores may rest on remembered events."
        return Section("contamination", title, f"Not run: {said}")

    def side(item: Measurement, name: str) -> str:
        n, clusters = item.detail.get(f"n_{name}"), item.detail.get(f"clusters_{name}")
        within = f" in {counted(clusters, 'cluster')}" if isinstance(clusters, int) else ""
        return count(n) + within if isinstance(n, int) else "not stated"

    rows = [
        (split_words(m), shown(m) if m.value is None else book.to(m, shift_words(m)), p_of(m), side(m, "post"),
         side(m, "earlier"))
        for m in found
    ]  # fmt: skip
    absent = sorted({clean(str(name), 40) for m in found for name in m.detail.get("absent", ())})
    said = f"On one side only, and so not compared: {listing(absent)}." if absent else ""
    table = table_of(("Split", "Later minus earlier", "p", "Later", "Earlier"), rows)
    return section("contamination", title, contamination_answer(book), table, notes([said]))


def contamination_answer(book: RunIndex) -> str:
    """Whether scores differ after the cutoff, as far as the tests say."""
    found = contamination_gaps(book)
    tested = [(m, p) for m in found if m.value is not None and (p := real(m.detail.get("p"))) is not None]
    if not tested:
        return f"The contamination probe is {state_words(found[0])}." if found else "Not run."
    moved = [split_words(m) for m, p in tested if p <= book.study.inference.alpha]
    if moved:
        return f"Scores after the cutoff differ from those before on: {listing(moved)}."
    return (
        f"None of {plural(len(tested), 'split')} shows a difference after the cutoff; "
        "that bounds contamination, it does not exclude it."
    )


def split_words(item: Measurement) -> str:
    """Which records a gap compares: all of them, or those of one instrument."""
    split = clean(item.labels.get("split", ""), 60)
    return "all records" if split == "all" else split.removeprefix("instrument:")


# --- the held-out judge: the pairs that leaving out a judge family turns ----------------------------------------------


def outside_group(book: RunIndex) -> Group:
    """What became of the held-out judge: every pair it was asked about. Directions only where they are supported."""
    order = {name: at for at, name in enumerate(book.dimensions)}
    rows = list[tuple[int, tuple[Inline, ...]]]()
    for item in book.by_name.get("probe.contrast", ()):
        dimension, high, low = (item.labels.get(key, "") for key in ("dimension", "high", "low"))
        allowed, found = supported_orders(book, dimension), "none" if item.value is None else found_words(item)
        # Its size and sign are parts of what is not supported.
        said: tuple[Inline, str] = (HATCHED if item.value is not None else state_words(item), "no order")
        for pair, sign in (((high, low), 1), ((low, high), -1)):
            if pair in allowed and item.value is not None and said[1] == "no order":
                way = f"{clean(pair[0], 60)} above {clean(pair[1], 60)}"
                said = (book.to(item, gap_words(item, sign)), way)
        names = " and ".join(sorted((clean(high, 60), clean(low, 60))))
        cells = (book.title(dimension), names, said[0], found, sizes(item), said[1])
        rows.append((order.get(dimension, len(order)), cells))
    rows.sort(key=lambda one: (one[0], *map(plain, one[1])))
    heads = ("Score", "Pair", "Difference", "The judge finds", "n", "Supported")
    table = table_of(heads, (row for _, row in rows), {4})
    answer = Text(_outside_answer(book), "cap")
    return Group("What did the held-out judge settle?", (answer, table) if table else (answer,), "outside")


def outside_name(book: RunIndex) -> str:
    """The held-out judge of the plan with its family; empty where none was committed."""
    probe = book.study.stability.probe
    return "" if probe is None else f"{clean(probe.name, 60)} (judge family {clean(probe.family, 60)})"


def outside_state(book: RunIndex) -> str:
    """Whether the held-out judge was asked, in a few words."""
    item, asked = book.one("probe.state"), len(book.known("probe.contrast"))
    if item is not None and item.state != "ok":
        return state_words(item)
    if asked:
        return f"asked about {plural(asked, 'pair')}"
    contested = 0 if item is None else round(item.value or 0.0)
    if contested:
        return f"not asked, though {plural(contested, 'pair')} {'turns' if contested == 1 else 'turn'} round"
    return "not committed" if book.study.stability.probe is None else "not needed"


def _outside_answer(book: RunIndex) -> str:
    name, state, pairs = outside_name(book), outside_state(book), book.known("probe.contrast")
    if not name:
        lead = "No held-out judge was named in the plan"
        unsettled = f"{lead}, so what turns with a judge family stays unsettled."
        return unsettled if state == "not committed" else f"{lead}: {state}."
    if not pairs:
        return f"The held-out judge, {name}: {state}."
    alike, item, cut = sum(not finds(m) for m in pairs), book.one("probe.state"), book.study.stability.rho
    rhos = {} if item is None else item.detail.get("rho", {})
    low = sorted(clean(str(family), 40) for family, rho in rhos.items() if (one := real(rho)) is not None and one < cut)
    why = f", because without judge family {listing(low, last='or')} ρ falls below {number(cut, 1)}" if low else ""
    settled = "none" if not alike else "all" if alike == len(pairs) else count(alike)
    return (
        f"The held-out judge, {name}, was {state}{why}. It finds no difference in {settled} of them "
        f"({alpha(book.study.inference.alpha)} needed): there no order is supported."
    )


def finds(item: Measurement) -> bool:
    """Whether the held-out judge finds a difference: its interval does not hold zero."""
    return item.low is None or item.high is None or not item.low <= 0 <= item.high


def found_words(item: Measurement) -> str:
    """Whether it finds a difference, with its p-value; of no pair the side.

    >>> item = Measurement(name="probe.contrast", labels={}, value=0.1, low=-0.1, high=0.3, n=9, n_of="", method="",
    ...                    detail={"p": 0.3})
    >>> found_words(item)
    'no difference, p = .300'
    """
    return ("a difference" if finds(item) else "no difference") + p_of(item, lead=", ", otherwise="")


# --- people: each judge beside them, and what they see of the supported orders ----------------------------------------

_LISTED: Final = 10


def people_section(book: RunIndex) -> Section | None:
    """The people who graded, each judge beside them, and the supported orders as people see them; None without any."""
    if book.one("human.sample", dimension=AGGREGATE) is None:
        return None
    heads = ("Score", "Judge", "κ with people", "ICC", "Judge minus people", "Passes found", "Failures found", "n")
    judges = [row for d in book.dimensions if book.one("human.sample", dimension=d) for row in _judges(book, d)]
    orders = ("Supported order", "Judges", "People", "Judges favour", "Graded", "Variance saved")
    passed = number(book.study.human.passed_from(*book.study.scale), 2)
    note = (
        "Humans are no ground truth: a judge is as good as a person where its interval reaches the agreement of two "
        f"people. A text passes from {passed} on. People’s difference is estimated from the graded cycles, made "
        "sharper by the judges on all cycles; what the judges favour is taken out."
    )
    return section(
        "people", "What do people say?", people_words(book),
        Table(heads, tuple(judges), frozenset(range(2, 8)), "Each judge beside the mean grade of people", stacked=True),
        table_of(orders, _orders(book), {1, 2, 4, 5}, "Supported orders as people see them", stacked=True),
        Text(note, "cap"),
    )  # fmt: skip


def people_words(book: RunIndex) -> str:
    """Who graded how much, how far judges and people agree, and what became of the orders; empty without people."""
    sample = book.one("human.sample", dimension=AGGREGATE)
    if sample is None:
        return ""
    detail = sample.detail
    graded = f"{count(int(detail['graded']))} of {count(int(detail['drawn']))} {clean(sample.n_of, 60)}"
    who = f"{plural(len(list(detail['graders'])), 'person', 'people')} graded {graded}"
    if lacking := [clean(str(one), 60) for one in detail.get("ungraded", ())]:
        more = f" and {count(len(lacking) - _LISTED)} more" if len(lacking) > _LISTED else ""
        who += f" (not whole: {', '.join(lacking[:_LISTED])}{more})"
    if sample.value is None:
        return f"{sentence(who)} Nothing is corrected by them: {clean(sample.state.removeprefix('not tested: '), 200)}."
    states = [verdict.human_anchor for verdict in book.run.verdicts if verdict.claim.asserts_order]
    found = [f"{count(states.count(one))} {said}" for one, said in (
        ("confirms", "confirmed"), ("contradicts", "contradicted"), ("undecided", "left undecided")
    ) if one in states]  # fmt: skip
    two, agree = book.value("human.agreement", dimension=AGGREGATE), []
    each = [one.value or 0.0 for one in book.known("human.judge", dimension=AGGREGATE)]
    if each:
        reach = "" if two is None else f"; two people agree at {number(two)}"
        agree = [f"Each judge agrees with them at κ {span(min(each), max(each))}{reach}."]
    said = f"Of the orders that the judges support they have {listing(found) or 'tested none'}."
    return " ".join((sentence(who), *agree, said))


def favour_words(item: Measurement) -> str:
    """What judges see beyond people, as a liking of one of the two.

    >>> item = Measurement(name="human.contrast", labels={"high": "ash", "low": "elm"}, value=0.4, n=30, n_of="",
    ...                    method="", detail={"rectifier": -0.12})
    >>> favour_words(item)
    'ash by 0.12'
    """
    more = real(item.detail.get("rectifier"))
    if more is None:
        return "not measured"
    return f"{clean(item.labels['high' if more <= 0 else 'low'], 60)} by {number(abs(more))}"


def _judges(book: RunIndex, dimension: str) -> Iterator[tuple[Inline, ...]]:
    """One row for each judge, and one for two people: what a judge can reach."""

    def kappa(item: Measurement) -> str:
        return book.to(item, state_words(item) if item.value is None else number(item.value) + ends_of(item))

    def stated(one: Any, form: Any = number) -> str:
        value, low, high = (real(one.get(key)) for key in ("estimate", "low", "high"))
        if value is None:
            return clean(str(one.get("state", "")).partition(":")[2].strip() or "not measured", 60)
        return form(value) + ("" if low is None or high is None else f" ({span(low, high)})")  # type: ignore[no-any-return]

    def rate(found: Any) -> str:
        hits, n, low, high = found
        ends = "" if low is None or high is None else f" ({percent(low)} to {percent(high)})"
        return f"{count(hits)} of {count(n)}{ends}" if n else "none to find"

    for judge in sorted(one.name for one in book.study.judges):
        if (item := book.one("human.judge", dimension=dimension, judge=judge)) is not None:
            one, name = item.detail, clean(judge, 60)
            yield (book.title(dimension), name, kappa(item), stated(one["icc"]), stated(one["bias"], signed),
                   rate(one["tpr"]), rate(one["tnr"]), count(item.n))  # fmt: skip
    if (agreed := book.one("human.agreement", dimension=dimension)) is not None:
        icc = real(agreed.detail.get("icc"))
        cells = (kappa(agreed), "" if icc is None else number(icc), "", "", "", count(agreed.n))
        yield book.title(dimension), "two people", *cells


def _orders(book: RunIndex) -> Iterator[tuple[Inline, ...]]:
    """The supported orders of two agents that people were asked about."""
    for verdict in book.run.verdicts:
        claim = verdict.claim
        if kind_of(claim) != "pair" or verdict.publication_level == "no-claim":
            continue
        high, low = claim.subjects
        item = book.one("human.contrast", dimension=claim.dimension, high=high, low=low)
        if item is not None and item.value is not None:
            judges, saving = real(item.detail.get("judges")), real(item.detail.get("saving"))
            yield (
                f"{clean(high, 60)} above {clean(low, 60)} on {book.title(claim.dimension).lower()}",
                "" if judges is None else signed(judges), book.to(item, signed(item.value) + ends_of(item)),
                favour_words(item), count(item.n), "" if saving is None else percent(saving),
            )  # fmt: skip
