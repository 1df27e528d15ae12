"""Do the judges agree? Kappa by dimension against the gates, within formats, by pair, and how the scale was used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from assaymark.claims import agreement_status
from assaymark.records import AGGREGATE, Level, Measurement, Verdict
from assaymark.report.blocks import HATCHED, Beside, Block, Figure, Group, Inline, Section, Table, Text, notes
from assaymark.report.charts.grids import RankRow, ScaleRow, binned, place_heads, rank_bars, scale_use
from assaymark.report.charts.intervals import POINTED, ForestRow, Gates, JudgeWords, forest, told
from assaymark.report.lookup import KAPPA, Book
from assaymark.report.study.claim_checks import family_words, is_significant
from assaymark.report.study.controls import ranked_alone
from assaymark.report.text import (
    AGREES,
    NOT_SHOWN,
    alpha,
    counted,
    interval,
    listing,
    ordinal_span,
    p_value,
    plural,
    sentence,
    shown,
    state_words,
    words,
)
from assaymark.text import clean, count, count_of, number, percent, span

# Would one judge have said the same? Each judge's own order and discoveries beside the panel's.


def single_section(book: Book) -> Section:
    """What each judge alone would have found. Counts and correlations only: which agent it puts first is not said."""
    found, blocks = list(book.every("single.discoveries")), list[Block]()
    if found:
        blocks.append(
            Group("What does each judge find alone?", (*notes([_note(book)], "cap"), _discoveries(book, found)))
        )
    if (rho := _rho(book)) is not None:
        blocks.append(rho)
    return Section("single", "Would one judge have said the same?", single_answer(book), tuple(blocks))


def rhos(book: Book, dimension: str = AGGREGATE) -> list[Measurement]:
    """The rank correlations of two judges' orders that are defined."""
    return [m for m in book.every("single.rho", dimension=dimension) if m.value is not None]


def rho_words(values: Sequence[float]) -> str:
    """The range of several correlations.

    >>> rho_words([0.8, 0.2]), rho_words([1.0])
    ('0.20 to 0.80', '1.00')
    """
    low, high = number(min(values)), number(max(values))
    return low if low == high else f"{low} to {high}"


def only_alone(item: Measurement) -> int:
    """How many significant contrasts a judge finds that the panel does not find in the same direction."""
    only = item.detail.get("only")
    if isinstance(only, (list, tuple)):
        return len(only)
    overlap = item.detail.get("overlap")
    return round(item.value or 0) - overlap if isinstance(overlap, int) else 0


def single_answer(book: Book) -> str:
    """The answer in one or two sentences that follow from the numbers."""
    pairs, alone = rhos(book), [m for m in book.every("single.discoveries") if m.value is not None]
    if not pairs and not alone:
        every = (*book.by_name.get("single.rho", ()), *book.by_name.get("single.discoveries", ()))
        return sentence(state_words(every[0])) if every else "Not measured: no judge was analysed alone."
    said = []
    if pairs:
        values = [m.value or 0.0 for m in pairs]
        how = "one and the same order" if min(values) >= 1 - 1e-9 else "different orders"
        said.append(f"Alone, the judges put the agents in {how}: ρ {rho_words(values)} on the overall score.")
    if alone:
        extra = sum(only_alone(m) for m in alone)
        said.append(
            f"Together they find {plural(extra, 'difference')} significant that the panel does not find."
            if extra
            else "None finds a significant difference that the panel does not find."
        )
    return " ".join(said)


def _rho(book: Book) -> Table | None:
    measured = book.by_name.get("single.rho", ())
    pairs = sorted({(m.labels.get("a", ""), m.labels.get("b", "")) for m in measured})
    if not pairs:
        return None
    rows = [
        (book.title(d), *(book.shown("single.rho", dimension=d, a=a, b=b) for a, b in pairs))
        for d in book.dimensions
        if any(True for _ in book.every("single.rho", dimension=d))
    ]
    heads = ("Score", *(f"{clean(a, 40)} and {clean(b, 40)}" for a, b in pairs))
    return Table(heads, tuple(rows), frozenset(range(1, len(heads))), "ρ of two judges’ orders on each score")


def _discoveries(book: Book, found: Sequence[Measurement]) -> Table:
    heads = ("Judge", "Significant alone", "Also found by the panel", "Found by this judge alone")
    rows = [_discovery(book, m) for m in sorted(found, key=lambda m: m.labels.get("judge", ""))]
    panel = book.one("panel.discoveries")
    if panel is not None:
        rows.append(("The whole panel", _of(book, panel), "", ""))
    return Table(heads, tuple(rows), frozenset({1, 2, 3}), "")


def _discovery(book: Book, item: Measurement) -> tuple[str, ...]:
    name = clean(item.labels.get("judge", ""), 80)
    if item.value is None:
        return name, state_words(item), "", ""
    overlap = item.detail.get("overlap")
    both = count(overlap) if isinstance(overlap, int) else "not measured"
    return name, _of(book, item), both, count(only_alone(item))


def _of(book: Book, item: Measurement) -> str:
    if item.value is None:
        return state_words(item)
    family = item.detail.get("family")
    return book.to(item, count(round(item.value)) + (f" of {count(family)}" if isinstance(family, int) else ""))


def _note(book: Book) -> str:
    panel = book.one("panel.discoveries")
    if panel is None or panel.value is None:
        return ""
    return (
        f"Significant after Holm at α {alpha(book.run.study.inference.alpha)}, by a cluster t weighted by records, "
        "over all differences on the dimensions; it decides no claim. More findings of one judge are no evidence of "
        f"more differences between agents: {_alone_words(book)}what one judge alone finds is not supported."
    )


def _alone_words(book: Book) -> str:
    alone = [m.value for m in book.every("single.discoveries") if m.value is not None]
    panel = book.value("panel.discoveries")
    if not alone or panel is None:
        return ""
    more = sum(value > panel for value in alone)
    return f"{words(more)} of {words(len(alone))} find more than the panel, and " if more else ""


# Which ranks are possible? Simultaneous rank intervals on every score, and the ranks that resampled clusters give.


class Placed(NamedTuple):
    """An agent alone in its tier, its rank, and how often the clusters give it each rank."""

    agent: str
    place: int
    shares: tuple[float, ...]
    level: Level


def ranks_section(book: Book) -> Section:
    """Possible ranks on every score, and resampled ones. An agent that shares its tier has no share of resamples."""
    found = [m for m in book.every("rank.first", dimension=AGGREGATE) if m.value is not None]
    rows, blocks = _rows(book), list[Block]()
    if (possible := _possible(book)) is not None:
        blocks.append(possible)
    if found and any(row.shares is not None for row in rows):
        table = Group("The same as a table", (_table(book, rows),))
        blocks.append(Beside(((_figure(book, rows, found),), (table,))))
    return Section("ranks", "Which ranks are possible?", _answer(book), tuple(blocks))


def _answer(book: Book) -> str:
    top = [clean(agent, 80) for agent in book.summary.top_set.get(AGGREGATE, ())]
    if not top:
        return "No ranks follow: no order was put to a test."
    if len(top) == 1:
        return f"On the overall score only {top[0]} can rank first."
    every = len(top) == len(book.agents) and len(top) > 2
    return f"On the overall score {'every agent' if every else f'any of {listing(top)}'} can rank first."


def _possible(book: Book) -> Table | None:
    """The ranks that the supported orders leave to each agent; agents alphabetical, ranks as lowest to highest."""
    scores = [d for d in book.dimensions if d in book.summary.ranks]
    if not scores or len(book.agents) < 2:
        return None
    rows = tuple(
        (clean(agent, 60), *(ordinal_span(*book.summary.ranks[d][agent]) for d in scores))
        for agent in sorted(book.summary.ranks[scores[0]])
    )
    return Table((f"Rank of {count(len(rows))}", *(book.title(d) for d in scores)), rows, summary="")


def placed_agents(book: Book) -> tuple[Placed, ...]:
    """The agents alone in their tier with measured shares, from high to low."""
    found = []
    for agent, tier in ranked_alone(book, AGGREGATE).items():
        item = book.one("rank.first", dimension=AGGREGATE, agent=agent)
        if item is not None and item.value is not None:
            found.append(Placed(agent, tier.ranks[0], shares_of(item), tier.level))
    return tuple(found)


def shares_of(item: Measurement) -> tuple[float, ...]:
    """How often an agent takes each rank; where only the first was measured, that one."""
    shares = item.detail.get("shares")
    if isinstance(shares, (list, tuple)) and shares:
        return tuple(float(share) for share in shares)
    return (float(item.value or 0.0),)


def draws_words(items: Sequence[Measurement]) -> str:
    """How many resamples there were, of how many clusters, and whether they were all of them."""
    item = items[0]
    draws = item.detail.get("resamples")
    clusters = count_of(item.n, item.n_of)
    if not isinstance(draws, int):
        return f"resamples of {clusters}"
    return f"{'all ' if item.detail.get('exact') else ''}{count(draws)} resamples of {clusters}"


def _rows(book: Book) -> tuple[RankRow, ...]:
    """Agents alone in their tier from high to low, then everyone else in alphabetical order without a number."""
    placed = {found.agent: found for found in placed_agents(book)}
    rows = [RankRow(clean(p.agent, 60), p.shares, p.place, p.level) for p in placed.values()]
    return (*rows, *(RankRow(clean(agent, 60), None) for agent in book.agents if agent not in placed))


def _figure(book: Book, rows: Sequence[RankRow], found: Sequence[Measurement]) -> Figure:
    places = len(book.agents)
    kept = [row.title for row in rows if row.shares is None]
    said = [f"{row.title}: {_said(row, places)}" for row in rows if row.shares is not None]
    desc = "; ".join(said) + (f"; not ranked: {listing(kept)}" if kept else "")
    wide, narrow = rank_bars("ranks", rows, places, "Share of resamples in which an agent takes each rank", desc)
    caption = (
        f"Share of {draws_words(found)} in which an agent takes each rank; ties share their ranks. The filled bar is "
        "the supported rank. A dashed row is an agent that shares its tier."
    )
    heads = ("Agent", *(f"rank {place}" for place in range(1, places + 1)))
    values = Table(heads, tuple((r.title, *(str(one) for one in r.shares or [NOT_SHOWN] * places)) for r in rows))
    return Figure("Would other clusters change the ranks?", caption, wide, narrow, values=values)


def _said(row: RankRow, places: int) -> str:
    pairs = zip(place_heads(places), binned(row.shares or (), places), strict=True)
    return ", ".join(f"rank {head} in {percent(share)}" for head, share in pairs if share > 0)


def _table(book: Book, rows: Sequence[RankRow]) -> Table:
    places = len(book.agents)
    heads = place_heads(places)
    body = []
    named = {clean(agent, 60): agent for agent in book.agents}
    for row in rows:
        cells: list[Inline] = [HATCHED] * len(heads)
        if row.shares is not None:
            first, *others = [percent(s) for s in binned(row.shares, places)]
            item = book.one("rank.first", dimension=AGGREGATE, agent=named[row.title])
            cells = [book.to(item, first), *others]
        body.append((row.title, *cells))
    return Table(("Agent", *(f"Rank {head}" for head in heads)), tuple(body), frozenset(range(1, len(heads) + 1)), "")


# Does each order hold without any one judge family? Sign and significance of every pair in every drop.


def stability_section(book: Book, outside: Group) -> Section:
    """Counts by score, every pair of the overall score in every drop, rank correlations, and the held-out judge."""
    by_score = {dimension: book.on(dimension, "pair") for dimension in book.dimensions}
    found = [v for v in by_score.get(AGGREGATE, ()) if is_significant(book, v)]
    tables = (_scores(book, by_score), _pairs(book, found), _stability_rho(book))
    said = notes([_stability_note(book)] if found else [])
    return Section(
        "stability", "Does each order hold without any one judge family?", _stability_answer(book, found),
        (*said, *(one for one in tables if one is not None), outside),
    )  # fmt: skip


def _stability_answer(book: Book, found: Sequence[Verdict]) -> str:
    if len(book.run.study.families) < 2:
        return "Not measurable: one judge family, so none can be left out."
    rho = list(book.every("lofo.rho", dimension=AGGREGATE))
    if not found:
        undefined = rho and all(m.value is None for m in rho)
        return sentence(state_words(rho[0])) if undefined else "No difference on the overall score is significant."
    holds = sum(v.stability is not None and v.stability.state == "stable" for v in found)
    of = f"{count(holds)} of {counted(len(found), 'significant difference')} on the overall score"
    said = f"{of} {'holds' if holds == 1 else 'hold'} without any one judge family"
    findings = [v.stability for v in found if v.stability is not None]
    needing, turning = (
        sorted({clean(name, 60) for one in findings if one.state == state for name in one.families})
        for state in ("rests-on", "reversed-without")
    )
    parts = [f"some need judge family {listing(needing, last='or')} to be seen"] if needing else []
    parts += [f"some turn without judge family {listing(turning, last='or')}"] if turning else []
    return f"{said}{'; ' if parts else ''}{listing(parts)}."


def _stability_note(book: Book) -> str:
    """The levels that every drop has to reach."""
    level, families = book.run.study.inference.alpha, len(book.run.study.families)
    single = 2 * level / min(max(2, families), 3)
    return (
        f"An order has to keep its sign and its significance without each of "
        f"{plural(families, 'judge family', 'judge families')}: p of at most {alpha(round(single, 3))} and, after "
        f"correction over all pairs, {alpha(2 * level)}. A first rank whose pairs all keep the former "
        "needs no correction."
    )


def _scores(book: Book, by_score: dict[str, tuple[Verdict, ...]]) -> Table | None:
    rows = []
    for dimension, verdicts in by_score.items():
        found = [v for v in verdicts if is_significant(book, v)]
        states = [v.stability.state for v in found if v.stability is not None]
        if verdicts:
            in_drops = [states.count("stable"), states.count("rests-on"), states.count("reversed-without")]
            rows.append((book.title(dimension), *map(count, (len(verdicts), len(found), *in_drops))))
    heads = ("Score", "Pairs", "Significant", "Hold in every drop", "Need one family", "Turn without one")
    return Table(heads, tuple(rows), frozenset(range(1, 6)), "") if rows else None


def _pairs(book: Book, found: Sequence[Verdict]) -> Table | None:
    families = sorted({m.labels["dropped"] for m in book.every("lofo.contrast", dimension=AGGREGATE)})
    if not found or not families:
        return None
    rows = sorted(
        (
            listing(sorted(clean(name, 60) for name in v.claim.subjects)),
            *(_drop(book, v, family) for family in families),
            family_words(book, v),
        )
        for v in found
    )
    heads = ("Pair", *(f"without judge family {clean(family, 60)}" for family in families), "Result")
    return Table(heads, tuple(rows), summary="Every pair of the overall score without each judge family")


def _drop(book: Book, verdict: Verdict, family: str) -> str:
    high, low = verdict.claim.subjects
    labels = {"dimension": AGGREGATE, "dropped": family}
    item: Measurement | None = book.one("lofo.contrast", **labels, high=high, low=low)
    if item is None or item.value is None:
        return "not comparable"
    if item.value <= 0:
        return "turns"
    p, adjusted = item.detail.get("p"), item.detail.get("p_adjusted")
    said = p_value(float(p)) if isinstance(p, (int, float)) else "not tested"
    return said + (f", adjusted {p_value(float(adjusted))}" if isinstance(adjusted, (int, float)) else "")


def _stability_rho(book: Book) -> Table | None:
    """Rank correlations with and without each family, of estimates: what calls for the held-out judge."""
    families = sorted({m.labels["dropped"] for m in book.every("lofo.rho")})
    rows = [
        (book.title(d), *(book.shown("lofo.rho", dimension=d, dropped=family) for family in families))
        for d in book.dimensions
        if any(True for _ in book.every("lofo.rho", dimension=d))
    ]
    heads = ("Score", *(f"without judge family {clean(family, 60)}" for family in families))
    summary = "Rank correlation ρ of the agents’ scores with and without each judge family"
    return Table(heads, tuple(rows), frozenset(range(1, len(heads))), summary) if rows else None


def agreement_section(book: Book) -> Section:
    """Kappa by score against the gates, within formats and by pair of judges, and how the scale was used."""
    measured = [(d, book.one(KAPPA, dimension=d)) for d in book.dimensions]
    found = [(d, m) for d, m in measured if m is not None]
    ordered = sorted(found, key=lambda pair: (pair[0] != AGGREGATE, pair[1].value is None, -(pair[1].value or 0.0)))
    blocks: list[Block | None] = [_forest(book, ordered) if ordered else None, *notes(_notes(book, ordered))]
    blocks += [agreement_table(book), _pair_table(book, ordered), _traits(book), _formats(book), _scale(book, ordered)]
    shown_ones = tuple(one for one in blocks if one is not None)
    return Section("agreement", "Do the judges agree?", agreement_words(book), shown_ones)


def agreement_words(book: Book) -> str:
    """The answer: enough, weak or too little agreement, score by score."""
    measured = [(d, book.one(KAPPA, dimension=d)) for d in book.dimensions]
    return _agreement_answer(book, [(d, m) for d, m in measured if m is not None])


def agreement_table(book: Book) -> Table | None:
    """Every score with its kappas, the overall score first, then by kappa; None where none was measured."""
    measured = [(d, m) for d in book.dimensions if (m := book.one(KAPPA, dimension=d)) is not None]
    measured.sort(key=lambda pair: (pair[0] != AGGREGATE, pair[1].value is None, -(pair[1].value or 0.0)))
    heads = ("Score", book.sign, "jackknife", "bootstrap", "n", "clusters", "Fleiss κ", "redundancy", "agreement")
    rows = tuple(_row(book, d, m) for d, m in measured)
    summary = "The same as a table, with Fleiss κ and redundancy"
    return Table(heads, rows, frozenset(range(1, 8)), summary) if rows else None


def _agreement_answer(book: Book, found: Sequence[tuple[str, Measurement]]) -> str:
    if not found:
        return "Agreement was not measured."
    if all(m.value is None for _, m in found):
        return f"Agreement is {state_words(found[0][1])}."
    dimensions = [d for d, _ in found if d != AGGREGATE]
    by = {s: [_titled(book, d) for d in dimensions if book.status(d) == s] for s in ("publish", "methodology", "halt")}
    parts = []
    if AGGREGATE in dict(found):
        decided = _bracketed(book.gating_note(AGGREGATE), f"{book.sign} ")
        status = book.status(AGGREGATE) or "halt"
        parts.append(f"On the overall score agreement is {AGREES[status]}{decided}.")
    if dimensions:
        some = words(len(by["publish"])).capitalize() if by["publish"] else "None"
        parts.append(f"{some} of {plural(len(dimensions), 'dimension')}: enough agreement.")
    if by["methodology"]:
        parts.append(f"{_names(by['methodology'])}: weak agreement, no headline.")
    if by["halt"]:
        parts.append(f"{_names(by['halt'])}: too little agreement, no claim.")
    return " ".join(parts)


def _titled(book: Book, dimension: str) -> str:
    return book.title(dimension) + _bracketed(book.gating_note(dimension))


_COEFFICIENTS: Final = {
    "kappa": "Mean pairwise quadratic-weighted κ",
    "icc": "Mean pairwise intraclass correlation (ICC of single judges, absolute agreement)",
    "alpha": "Krippendorff’s alpha of all answers that two judges scored",
}


def _bracketed(note: str, sign: str = "") -> str:
    return f" ({sign}{note})" if note else ""


def _names(titles: Sequence[str]) -> str:
    text = listing([title[:1].lower() + title[1:] for title in titles])
    return text[:1].upper() + text[1:]


def bootstrap_of(item: Measurement) -> tuple[float, float] | None:
    """The ends of a kappa's percentile bootstrap, which is too narrow with few clusters and so printed second."""
    second = item.detail.get("bootstrap")
    return _pair(second.get("low"), second.get("high")) if isinstance(second, Mapping) else None


def _pair(low: object, high: object) -> tuple[float, float] | None:
    return (float(low), float(high)) if isinstance(low, (int, float)) and isinstance(high, (int, float)) else None


def _forest_row(book: Book, dimension: str, item: Measurement) -> ForestRow:
    gating = book.gating(dimension)
    return ForestRow(
        title=book.title(dimension),
        value=item.value,
        interval=_pair(item.low, item.high),
        bootstrap=bootstrap_of(item),
        status=book.status(dimension),
        state=state_words(item),
        pooled=dimension == AGGREGATE,
        by=book.gating_note(dimension),
        gating=gating.value if gating is not None and "format" in gating.labels else None,
        within=tuple(m.value for m in _gated_formats(book, dimension) if m.value is not None),
    )


def _gated_formats(book: Book, dimension: str) -> list[Measurement]:
    """The kappas within formats that have a gate of their own."""
    found = book.every(KAPPA, dimension=dimension)
    return [m for m in found if "format" in m.labels and not m.state.startswith("too few")]


def _forest(book: Book, found: Sequence[tuple[str, Measurement]]) -> Figure:
    rows = [_forest_row(book, d, m) for d, m in found]
    gates = book.run.study.gates
    desc = "; ".join(f"{r.title}: {_agreement_said(r)}" for r in rows)
    title = "Agreement between judges on each score, against the gates"
    wide, narrow = forest("kappa", rows, Gates(gates.halt, gates.publish, book.sign), title, desc)
    sizes = sorted({m.n for _, m in found})
    n = count(sizes[-1]) if sizes else "no"
    caption = (
        f"{_COEFFICIENTS[book.run.study.rubric.coefficient]}, where 1 is full agreement and 0 is chance; n = {n} "
        f"{clean(found[0][1].n_of, 40)}. Thick bar: jackknife interval over the clusters. "
        f"Thin line below it: their percentile bootstrap. Square: one dimension. Diamond: the overall score."
    )
    if any(row.within for row in rows):
        caption += f" Small circle: {book.sign} within one submission format."
    if any(row.by for row in rows):
        caption += f" Upright stroke: the lowest {book.sign} within a format that has a gate of its own; it decides."
    values = Table(("Score", book.sign), tuple((row.title, _agreement_said(row)) for row in rows))
    return Figure("How far is each score from a gate?", caption, wide, narrow, values=values)


def _agreement_said(row: ForestRow) -> str:
    decided = _bracketed(row.by)
    if row.value is None:
        return row.state + decided
    word = AGREES[row.status] if row.status else "no gate"
    return f"{interval(row.value, *(row.interval or (None, None)))}, {word}{decided}"


def _row(book: Book, dimension: str, item: Measurement) -> tuple[Inline, ...]:
    ends, bootstrap, by = _pair(item.low, item.high), bootstrap_of(item), book.gating_note(dimension)
    gate = AGREES[found] if (found := book.status(dimension)) else "no gate"
    return (
        book.title(dimension), book.to(item, shown(item)), span(*ends) if ends else "no interval",
        span(*bootstrap) if bootstrap else "no interval", count(item.n), _clusters(item),
        book.shown("kappa.fleiss", dimension=dimension), book.shown("redundancy", dimension=dimension),
        f"{gate}, {by}" if by else gate,
    )  # fmt: skip


def _clusters(item: Measurement) -> str:
    clusters = item.detail.get("clusters")
    return count(clusters) if isinstance(clusters, int) else "not stated"


def _formats(book: Book) -> Group | None:
    order = {name: at for at, name in enumerate(book.dimensions)}
    found = [m for m in book.every(KAPPA) if "format" in m.labels]
    found.sort(key=lambda m: (order.get(m.labels.get("dimension", ""), len(order)), m.id))
    if not found:
        return None
    caption = (
        "Formats can differ so much that pooled agreement is about the format. Where a format has enough records, the "
        f"lowest {book.sign} gates."
    )
    heads = ("Score", "Format", f"{book.sign} with interval", "n", "Clusters", "Agreement")
    table = Table(heads, tuple(_format_row(book, m) for m in found), frozenset({2, 3, 4}), "", stacked=True)
    fold = Group("Show each score and format", (table,), folded="phone")
    return Group("Do they agree within each submission format?", (Text(caption, "cap"), fold))


def _format_row(book: Book, item: Measurement) -> tuple[Inline, ...]:
    gates = book.run.study.gates
    few = item.state.startswith("too few")
    status = agreement_status(item.value, publish=gates.publish, halt=gates.halt)
    gate = state_words(item) if few or item.value is None else AGREES[status]
    title, name = book.title(item.labels.get("dimension", "")), clean(item.labels["format"], 60)
    return title, name, _format_kappa(book, item), count(item.n), _clusters(item), gate


def _format_kappa(book: Book, item: Measurement) -> str:
    if item.value is None:
        return "no number"
    bounds = "no interval" if item.low is None or item.high is None else span(item.low, item.high)
    return book.to(item, f"{book.kappa_words(item)} ({bounds})")


def _pair_table(book: Book, found: Sequence[tuple[str, Measurement]]) -> Table | None:
    names = sorted({name for _, m in found for name in m.detail.get("pairs", {})})
    if not names:
        return None
    rows = tuple(
        (book.title(dimension), *(_kappa_cell(item.detail.get("pairs", {}).get(name)) for name in names))
        for dimension, item in found
    )
    heads = ("Score", *(_pair_title(name) for name in names))
    return Table(heads, rows, frozenset(range(1, len(heads))), f"{book.sign} of each pair of judges")


def _kappa_cell(value: object) -> str:
    return number(float(value)) if isinstance(value, (int, float)) else "not defined"


def _pair_title(name: str) -> str:
    return " and ".join(clean(part, 40) for part in name.split("|"))


def _scale(book: Book, found: Sequence[tuple[str, Measurement]]) -> Figure | None:
    judges = [judge.name for judge in book.run.study.judges]
    rows = [ScaleRow(book.title(d), tuple(_marginal(m, judge) for judge in judges)) for d, m in found]
    rows = [row for row in rows if any(row.shares)]
    if not rows or len(judges) > POINTED:
        return None
    titles = [clean(judge, 60) for judge in judges]
    marks = _marks_of(book)
    said = tuple(JudgeWords(at, name, _mostly(rows, at, marks)) for at, name in enumerate(titles))
    title = f"How each judge used the marks {book.run.study.scale_text}"
    wide, narrow = scale_use("scale", titles, rows, title, told(said), marks=marks)
    caption = "Share of the trajectories that each judge gave each mark, trials averaged and rounded as for κ."
    return Figure(
        "Which marks did each judge give?", caption, wide, narrow, said, table=_marks_table(titles, rows, marks)
    )


def _marks_of(book: Book) -> tuple[str, ...]:
    """The whole levels of the scale, in words."""
    low, categories = int(book.run.study.scale[0]), book.run.study.rubric.categories
    return tuple(f"{level}".replace("-", "−") for level in range(low, low + categories))


def _mostly(rows: Sequence[ScaleRow], judge: int, marks: Sequence[str]) -> str:
    """The mark that a judge gave most often, score by score."""
    found = []
    for row in rows:
        shares = row.shares[judge]
        if shares is None:
            found.append(f"{row.title} no marks")
        else:
            top = max(range(len(shares)), key=lambda at, shares=shares: shares[at])  # type: ignore[misc]
            found.append(f"{row.title} mostly {marks[top]} ({percent(shares[top])})")
    return ", ".join(found)


def _marks_table(judges: Sequence[str], rows: Sequence[ScaleRow], marks: Sequence[str]) -> Table:
    cells = [
        (f"{row.title}, {judge}", *(("no marks",) * len(marks) if shares is None else map(percent, shares)))
        for row in rows
        for judge, shares in zip(judges, row.shares, strict=True)
    ]
    return Table(("Score and judge", *marks), tuple(cells), frozenset(range(1, len(marks) + 1)))


def _marginal(item: Measurement, judge: str) -> tuple[float, ...] | None:
    """A judge's share of each mark, from the first contingency table that the judge is part of."""
    tables = item.detail.get("tables", {})
    for name in sorted(tables):
        pair = name.split("|")
        if judge not in pair:
            continue
        table = tables[name]
        sums = [sum(row) for row in table] if pair[0] == judge else [sum(column) for column in zip(*table, strict=True)]
        total = sum(sums)
        return tuple(value / total for value in sums) if total else None
    return None


def _notes(book: Book, found: Sequence[tuple[str, Measurement]]) -> tuple[str, ...]:
    notes = []
    fleiss = book.one("kappa.fleiss", dimension=AGGREGATE)
    if fleiss is not None and book.run.study.rubric.coefficient == "kappa":
        notes.append(f"Unweighted Fleiss κ on the overall score is {shown(fleiss)}. It is reported and gates nothing.")
    overlap = book.one("redundancy", dimension=AGGREGATE)
    if overlap is not None:
        notes.append(
            f"Redundancy, the mean correlation between two judges’ scores, is {shown(overlap)}. {_worth_words(book)}"
        )
    alpha = book.one("panel.alpha", dimension=AGGREGATE)
    if alpha is not None and alpha.value is not None:
        ends = interval(alpha.value, alpha.low, alpha.high)
        notes.append(f"Krippendorff’s α on the overall score is {ends}. {_pulling(alpha)}")
    notes += _generalizability(book)
    clusters = [m.detail["clusters"] for _, m in found if isinstance(m.detail.get("clusters"), int)]
    if clusters and min(clusters) < 20:
        notes.append(
            f"With {plural(min(clusters), 'cluster')} a percentile bootstrap is narrower than its level says; the "
            "thick bar is the one to trust. The gate itself compares the point estimate with the cut-offs."
        )
    return tuple(notes)


def _pulling(alpha: Measurement) -> str:
    """Which judges pull the panel's alpha down: those without whom it is higher beyond chance."""
    without = alpha.detail.get("without", {})
    found = [
        f"{clean(judge, 60)} ({number(rest['alpha'])} without it)"
        for judge, rest in without.items()
        if rest["pulls_down"]
    ]
    if not found:
        return "No judge pulls it down beyond chance." if without else "It takes three judges to leave one out."
    return f"{listing(found)} {'pull' if len(found) > 1 else 'pulls'} it down."


def _generalizability(book: Book) -> list[str]:
    """How well the design tells the agents apart on average, and how much judges like single agents."""
    item, liking = (
        book.one(name, dimension=AGGREGATE, **labels)
        for name, labels in (("panel.generalizability", {}), ("panel.variance", {"part": "judge x agent"}))
    )
    if item is None or item.value is None or liking is None or liking.value is None:
        return []
    said = (
        f"The generalizability coefficient of the agents’ means on the overall score is {number(item.value)}: 1 where "
        "agents differ and their means have no error, 0 where they do not differ. The judge × agent component is "
        f"{number(liking.value, 3)} squared points: judges differ in how much they like an agent by a standard "
        f"deviation of {number(liking.value**0.5)} points."
    )
    return [said]


def _traits(book: Book) -> Table | None:
    """Correlations of each dimension by Campbell and Fiske's three kinds; None where none was measured."""
    found = [(d, m) for d in book.dimensions if (m := book.one("dimension.mtmm", dimension=d)) is not None]
    rows = tuple(
        (book.title(d), number(m.value), number(m.detail["other_judges"]), number(m.detail["same_judge"]))
        for d, m in found
        if m.value is not None
    )
    heads = ("Dimension", "other judge, same dimension", "other judge, other dimension", "same judge, other dimension")
    summary = "Correlations by judge and dimension (multitrait-multimethod)"
    return Table(heads, rows, frozenset((1, 2, 3)), summary) if rows else None


def _worth_words(book: Book) -> str:
    item = book.one("panel.effective_judges", dimension=AGGREGATE)
    if item is None or item.value is None:
        why = "" if item is None else f": {state_words(item)}"
        needs = "needs texts of known quality and was not measured"
        return f"How many independent judges the panel is worth {needs}{why}."
    return f"On {count(item.n)} texts of known quality the panel is worth {number(item.value, 1)} independent judges."
