"""Sections on agreement and ranks: kappa by dimension against the gates, within formats and by pair of judges; each
judge alone; possible ranks; and the stability of each order without any one judge family."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from assaymark.claims import Rules
from assaymark.records import AGGREGATE, Measurement, Verdict
from assaymark.report import blocks as b
from assaymark.report import text as t
from assaymark.report.blocks import Inline
from assaymark.report.charts.canvas import POINTED, WIDE, JudgeWords
from assaymark.report.charts.grids import RankRow, binned, rank_bars, rank_heads, scale_use
from assaymark.report.charts.intervals import ForestRow, forest
from assaymark.report.inputs import KAPPA, RunIndex, ranked_alone
from assaymark.report.study.checks import family_words, significant
from assaymark.report.text import known, words
from assaymark.text import clean, count, number, percent, span

# --- would one judge have said the same? Counts and correlations only, never which agent it ranks first ---------------


def single_section(index: RunIndex) -> b.Section:
    """The discoveries and the rankings of each judge alone, compared with the panel's."""
    singles = sorted(index.all("single.discoveries"), key=lambda m: m.labels.get("judge", ""))
    panel, alone = index.get("panel.discoveries"), [m.value for m in singles if m.value is not None]
    rows, note = [], ""
    for item, title in (*((m, clean(m.labels.get("judge", ""), 80)) for m in singles), (panel, "The whole panel")):
        if item is None:
            continue
        of = index.linked(item, lambda m: f"{count(round(m.value))}{t.count_in(m, 'family', '', ' of ')}")
        both = (t.count_in(item, "overlap"), count(lone_finds(item))) if known(item) and item is not panel else ("", "")
        rows.append((title, of, *both))
    if known(panel):
        above = sum(value > panel.value for value in alone)
        lead = f"{words(above)} of {words(len(alone))} find more than the panel, and " if above else ""
        note = (
            f"Significant after Holm at α {t.alpha(index.study.inference.alpha)}, by a cluster t weighted by records, "
            "over all differences on the dimensions; it decides no claim. More findings of one judge are no evidence "
            f"of more differences between agents: {lead}what one judge alone finds is not supported."
        )
    columns = ("Judge", "Significant alone", "Also found by the panel", "Found by this judge alone")
    discoveries = b.Table(columns, tuple(rows), frozenset({1, 2, 3}), "")
    group = b.Group("What does each judge find alone?", (*b.notes([note], "cap"), discoveries)) if singles else None
    pairs = sorted({(m.labels.get("a", ""), m.labels.get("b", "")) for m in index.all("single.rho")})
    orders = [
        (index.title(d), *(index.linked_value("single.rho", d, a=judge, b=other) for judge, other in pairs))
        for d in index.dimensions
        if index.all("single.rho", d)
    ]
    names = (f"{clean(judge, 40)} and {clean(other, 40)}" for judge, other in pairs)
    rho = b.Table(("Score", *names), tuple(orders), frozenset(range(1, len(pairs) + 1)),
                "ρ of two judges’ rankings on each score") if pairs else None  # fmt: skip
    # The lead, in one or two sentences computed from the numbers.
    correlated, counts = index.known("single.rho", AGGREGATE), index.known("single.discoveries")
    every, sentences = (*index.all("single.rho"), *index.all("single.discoveries")), []
    if not correlated and not counts:
        sentences.append(t.sentence(t.state_words(every[0])) if every else "Not measured: no judge was analysed alone.")
    if correlated:
        values = [m.value for m in correlated]
        how = "one and the same ranking" if min(values) >= 1 - 1e-9 else "different rankings"
        sentences.append(f"Alone, the judges give {how}: ρ {rho_words(values)} on the overall score.")
    if counts:
        extra = sum(lone_finds(m) for m in counts)
        some = f"Together they find {t.plural(extra, 'difference')} significant that the panel does not find."
        sentences.append(some if extra else "None finds a significant difference that the panel does not find.")
    return b.section("single", "Would one judge have said the same?", " ".join(sentences), group, rho)


def rho_words(values: Sequence[float]) -> str:
    """The range of several correlations, in words."""
    low, high = number(min(values)), number(max(values))
    return low if low == high else f"{low} to {high}"


def lone_finds(item: Measurement) -> int:
    """The number of significant contrasts of a judge that the panel does not find in the same direction."""
    only, overlap = item.detail.get("only"), item.detail.get("overlap")
    if isinstance(only, (list, tuple)):
        return len(only)
    return round(item.value or 0) - overlap if isinstance(overlap, int) else 0


def ranks_section(index: RunIndex) -> b.Section:
    """Possible ranks on every score, and resampled ranks. Agents that share a tier have no share of resamples."""
    top = [clean(agent, 80) for agent in index.summary.top_set.get(AGGREGATE, ())]
    every = len(top) == len(index.agents) and len(top) > 2
    answer = f"On the overall score {'every agent' if every else f'any of {t.listing(top)}'} can rank first."
    if len(top) < 2:
        answer = f"On the overall score only {top[0]} can rank first." if top else (
            "No ranks follow: no ranking was tested."
        )  # fmt: skip
    scores, possible = [d for d in index.dimensions if d in index.summary.ranks], None
    if scores and len(index.agents) > 1:  # agents alphabetical, ranks as lowest to highest
        ranks = tuple(
            (clean(agent, 60), *(t.ordinal_span(*index.summary.ranks[d][agent]) for d in scores))
            for agent in sorted(index.summary.ranks[scores[0]])
        )
        possible = b.Table((f"Rank of {count(len(ranks))}", *map(index.title, scores)), ranks, summary="")
    firsts, placed, places = index.known("rank.first", AGGREGATE), rank_shares(index), len(index.agents)
    if not firsts or not placed:
        return b.section("ranks", "Which ranks are possible?", answer, possible)
    ranked, order = ranked_alone(index, AGGREGATE), [*placed, *(agent for agent in index.agents if agent not in placed)]
    rows: list[RankRow] = [
        (clean(agent, 60), placed[agent], ranked[agent].ranks[0], ranked[agent].level) for agent in placed
    ]
    rows += [(clean(agent, 60), None, 0, "no-claim") for agent in order[len(placed) :]]
    heads, body, texts, values = rank_heads(places), [], [], []
    for agent, (name, drawn, *_) in zip(order, rows, strict=True):
        cells: list[Inline] = [b.HATCHED] * len(heads)
        if drawn is not None:
            shares = binned(drawn, places)
            first, *others = map(percent, shares)
            cells = [index.link(index.get("rank.first", AGGREGATE, agent=agent), first), *others]
            in_words = (f"rank {head} in {percent(part)}" for head, part in zip(heads, shares, strict=True) if part > 0)
            texts.append(f"{name}: {', '.join(in_words)}")
        body.append((name, *cells))
        values.append((name, *(str(share) for share in drawn or [t.NOT_SHOWN] * places)))
    unranked = [name for name, drawn, *_ in rows if drawn is None]
    desc = "; ".join(texts) + (f"; not ranked: {t.listing(unranked)}" if unranked else "")
    title = "Share of resamples in which an agent takes each rank"
    caption = (
        f"Share of {draw_counts(firsts)} in which an agent takes each rank; ties share their ranks. The filled bar is "
        "the supported rank. A dashed row is an agent that shares its tier."
    )
    data = b.Table(("Agent", *(f"rank {place}" for place in range(1, places + 1))), tuple(values))
    figure = b.plot("ranks", "Would other clusters change the ranks?", caption, partial(rank_bars, rows, places), desc,
                     None, data, alt=title)  # fmt: skip
    table = b.Table(
        ("Agent", *(f"Rank {head}" for head in heads)), tuple(body), frozenset(range(1, len(heads) + 1)), ""
    )
    both = b.beside(figure, b.Group("The same as a table", (table,)))
    return b.section("ranks", "Which ranks are possible?", answer, possible, both)


def rank_shares(index: RunIndex) -> dict[str, tuple[float, ...]]:
    """Share of resamples in which each agent alone in its tier has each rank; only the first if no other is known."""
    by_agent = {}
    for agent in ranked_alone(index, AGGREGATE):
        item = index.get("rank.first", AGGREGATE, agent=agent)
        if known(item):
            shares = item.detail.get("shares")
            values = shares if isinstance(shares, (list, tuple)) and shares else (item.value,)
            by_agent[agent] = tuple(map(float, values))
    return by_agent


def draw_counts(items: Sequence[Measurement]) -> str:
    """The number of resamples, how many clusters they draw, and whether they are exhaustive."""
    lead = "all " if items[0].detail.get("exact") else ""
    return f"{t.count_in(items[0], 'resamples', '', lead, ' ')}resamples of {t.n_words(items[0])}"


def stability_section(index: RunIndex, outside: b.Group) -> b.Section:
    """Counts by score, overall pairs without each family, rank correlations, and the held-out judge."""
    rows, overall = [], significant(index)
    for dimension in index.dimensions:
        if verdicts := index.on(dimension, "pair"):
            resolved = significant(index, dimension)
            states = [v.stability.state for v in resolved if v.stability is not None]
            in_drops = [states.count("stable"), states.count("rests-on"), states.count("reversed-without")]
            rows.append((index.title(dimension), *map(count, (len(verdicts), len(resolved), *in_drops))))
    columns = ("Score", "Pairs", "Significant", "Hold in every drop", "Need one family", "Reverse without one")
    families = sorted({m.labels["dropped"] for m in index.all("lofo.contrast", AGGREGATE)})

    def drop(verdict: Verdict, family: str) -> str:
        high, low = verdict.claim.subjects
        item = index.get("lofo.contrast", AGGREGATE, dropped=family, high=high, low=low)
        if item is None or item.value is None:
            return "not comparable"
        return "reverses" if item.value <= 0 else t.p_of(item) + t.p_of(item, "p_adjusted", ", adjusted ", "")

    pairs = sorted(
        (t.listing(sorted(clean(name, 60) for name in v.claim.subjects)), *(drop(v, family) for family in families),
         family_words(index, v))
        for v in overall
    )  # fmt: skip
    dropped = sorted({m.labels["dropped"] for m in index.all("lofo.rho")})
    rho = [
        (index.title(d), *(index.linked_value("lofo.rho", d, dropped=family) for family in dropped))
        for d in index.dimensions
        if index.all("lofo.rho", d)
    ]
    level, judges = index.study.inference.alpha, len(index.study.families)
    note = (
        "A ranking has to keep its sign and its significance without each of "
        f"{t.plural(judges, 'judge family', 'judge families')}: p of at most "
        f"{t.alpha(round(2 * level / min(max(2, judges), 3), 3))} and, after correction over all pairs, "
        f"{t.alpha(2 * level)}. A first rank whose pairs all keep the former needs no correction."
    )
    undropped = index.all("lofo.rho", AGGREGATE)
    answer = "No difference on the overall score is significant."
    if judges < 2:
        answer = "Not measurable: one judge family, so none can be left out."
    elif overall:
        findings = [v.stability for v in overall if v.stability is not None]
        holds = sum(finding.state == "stable" for finding in findings)
        needing, turning = (
            sorted({clean(name, 60) for finding in findings if finding.state == state for name in finding.families})
            for state in ("rests-on", "reversed-without")
        )
        parts = [f"some need judge family {t.listing(needing, last='or')} to be seen"] if needing else []
        parts += [f"some reverse without judge family {t.listing(turning, last='or')}"] if turning else []
        of = f"{count(holds)} of {t.counted(len(overall), 'significant difference')} on the overall score"
        verb = "holds" if holds == 1 else "hold"
        answer = f"{of} {verb} without any one judge family{'; ' if parts else ''}{t.listing(parts)}."
    elif undropped and all(m.value is None for m in undropped):
        answer = t.sentence(t.state_words(undropped[0]))
    without, left_out = (
        [f"without judge family {clean(family, 60)}" for family in names] for names in (families, dropped)
    )
    return b.section(
        "stability", "Does each ranking hold without any one judge family?", answer,
        b.notes([note] if overall else []), b.table_of(columns, rows, 5),
        b.table_of(("Pair", *without, "Result"), pairs if families else (),
                 summary="Every pair of the overall score without each judge family"),
        b.table_of(("Score", *left_out), rho, len(dropped),
                 "Rank correlation ρ of the agents’ scores with and without each judge family"),
        outside,
    )  # fmt: skip


_COEFFICIENTS: Final = {
    "kappa": "Mean pairwise quadratic-weighted κ",
    "icc": "Mean pairwise intraclass correlation (ICC of single judges, absolute agreement)",
    "alpha": "Krippendorff’s alpha of all answers that two judges scored",
}


def agreement_section(index: RunIndex) -> b.Section:
    """Kappa by score against the gates, within formats and by pair of judges, and the use of the scale."""
    ordered = _kappas(index)
    names = sorted({name for _, m in ordered for name in m.detail.get("pairs", {})})
    pairs = [
        (index.title(d), *("not defined" if (value := t.as_float(m.detail.get("pairs", {}).get(name))) is None
                          else number(value) for name in names))
        for d, m in ordered
    ]  # fmt: skip
    columns = ("Score", *(" and ".join(clean(part, 40) for part in name.split("|")) for name in names))
    by_format, rules, within = [], Rules.of(index.study), [m for m in index.all(KAPPA) if "format" in m.labels]
    for item in sorted(within, key=lambda m: (index.place(m.labels.get("dimension", "")), m.id)):
        few = item.state.startswith("too few") or item.value is None
        kappa = index.link(item, f"{index.kappa_words(item)} ({t.limits(item)})") if known(item) else "no number"
        permits = t.state_words(item) if few else t.AGREES[rules.status(item.value)]
        by_format.append((
            index.title(item.labels.get("dimension", "")), clean(item.labels["format"], 60), kappa, count(item.n),
            t.count_in(item, "clusters", "not stated"), permits,
        ))  # fmt: skip
    caption = (
        "Formats can differ so much that pooled agreement is about the format. Where a format has enough records, the "
        f"lowest {index.sign} gates."
    )
    named = ("Score", "Format", f"{index.sign} with interval", "n", "Clusters", "Agreement")
    table = b.Table(named, tuple(by_format), frozenset({2, 3, 4}), "", stacked=True)
    fold = b.Group("Show each score and format", (table,), folded="phone")
    formats = b.Group("Do they agree within each submission format?", (b.Prose(caption, "cap"), fold))
    # Correlations of each dimension by Campbell and Fiske's three kinds.
    traits = [
        (index.title(d), number(m.value), number(m.detail["other_judges"]), number(m.detail["same_judge"]))
        for d, m in index.by_score("dimension.mtmm")
        if known(m)
    ]
    kinds = ("Dimension", "other judge, same dimension", "other judge, other dimension", "same judge, other dimension")
    body = []
    fleiss, overlap, alone, general, worth = (
        index.get(name, AGGREGATE)
        for name in ("kappa.fleiss", "redundancy", "panel.alpha", "panel.generalizability", "panel.effective_judges")
    )
    liking = index.get("panel.variance", AGGREGATE, part="judge x agent")
    if fleiss is not None and index.study.rubric.coefficient == "kappa":
        body += [f"Unweighted Fleiss κ on the overall score is {t.as_text(fleiss)}. It is reported and gates nothing."]
    if overlap is not None:
        much = "How many independent judges the panel is worth needs texts of known quality and was not measured"
        much += "." if worth is None else f": {t.state_words(worth)}."
        if known(worth):
            much = f"On {count(worth.n)} texts of known quality the panel is worth {number(worth.value, 1)} "
            much += "independent judges."
        body.append(f"Redundancy, the mean correlation between two judges’ scores, is {t.as_text(overlap)}. {much}")
    if known(alone):
        # Judges that lower the panel's alpha: without them it is significantly higher.
        without = alone.detail.get("without", {})
        pulls = [f"{clean(judge, 60)} ({number(rest['alpha'])} without it)"
                 for judge, rest in without.items() if rest["pulls_down"]]  # fmt: skip
        down = "No judge pulls it down beyond chance." if without else "It takes three judges to leave one out."
        if pulls:
            down = f"{t.listing(pulls)} {'pull' if len(pulls) > 1 else 'pulls'} it down."
        body.append(f"Krippendorff’s α on the overall score is {t.estimate(alone)}. {down}")
    if known(general) and known(liking):
        body.append(
            f"The generalizability coefficient of the agents’ means on the overall score is {number(general.value)}: 1 "
            "where agents differ and their means have no error, 0 where they do not differ. The judge × agent "
            f"component is {number(liking.value, 3)} squared points: judges differ in how much they like an agent by a "
            f"standard deviation of {number(liking.value**0.5)} points."
        )
    clusters = [m.detail["clusters"] for _, m in ordered if isinstance(m.detail.get("clusters"), int)]
    if clusters and min(clusters) < 20:
        body.append(
            f"With {t.plural(min(clusters), 'cluster')} a percentile bootstrap is narrower than its level says; the "
            "thick bar is the one to trust. The gate itself compares the point estimate with the cut-offs."
        )
    return b.section(
        "agreement", "Do the judges agree?", agreement_words(index),
        kappa_figure(index), b.notes(body), agreement_table(index),
        b.table_of(columns, pairs if names else (), len(names), f"{index.sign} of each pair of judges"),
        b.table_of(kinds, traits, 3, "Correlations by judge and dimension (multitrait-multimethod)"),
        formats if by_format else None, _scale(index, ordered),
    )  # fmt: skip


def _kappas(index: RunIndex) -> list[tuple[str, Measurement]]:
    """The kappas of the scores: the overall score first, then by kappa in descending order."""

    def place(pair: tuple[str, Measurement]) -> tuple[bool, bool, float]:
        dimension, item = pair
        return dimension != AGGREGATE, item.value is None, -(item.value or 0.0)

    return sorted(index.by_score(KAPPA), key=place)


def _scale(index: RunIndex, ordered: Sequence[tuple[str, Measurement]]) -> b.Figure | None:
    """Each judge's use of the marks; None for too many judges, or without contingency tables."""
    judges, rows = [judge.name for judge in index.study.judges], []
    for dimension, item in ordered:
        # A judge's share of each mark, from the first contingency table that the judge is part of.
        tables, columns = item.detail.get("tables", {}), list[tuple[float, ...] | None]()
        for judge in judges:
            name = next((table for table in sorted(tables) if judge in table.split("|")), "")
            table: Sequence[Sequence[float]] = tables.get(name, ())
            sums = [sum(line) for line in (table if name.split("|")[0] == judge else zip(*table, strict=True))]
            columns.append(tuple(value / sum(sums) for value in sums) if sum(sums) else None)
        rows.append((index.title(dimension), tuple(columns)))
    rows = [row for row in rows if any(row[1])]
    if not rows or len(judges) > POINTED:
        return None
    low = int(index.study.scale[0])
    marks = tuple(f"{at}".replace("-", "−") for at in range(low, low + index.study.rubric.categories))
    titles, texts, cells = [clean(judge, 60) for judge in judges], [], list[tuple[str, ...]]()
    for at, name in enumerate(titles):
        mostly = []
        for row, shares_of in rows:
            shares, mode = shares_of[at], "no marks"
            if shares is not None:
                mode = f"mostly {marks[shares.index(max(shares))]} ({percent(max(shares))})"
            mostly.append(f"{row} {mode}")
        texts.append(JudgeWords(at, name, ", ".join(mostly)))
    for row, shares_of in rows:
        for judge, shares in zip(titles, shares_of, strict=True):
            cells.append((f"{row}, {judge}", *(["no marks"] * len(marks) if shares is None else map(percent, shares))))
    title = f"How each judge used the marks {index.study.scale_text}"
    caption = "Share of the trajectories that each judge gave each mark, trials averaged and rounded as for κ."
    table_ = b.Table(("Score and judge", *marks), tuple(cells), frozenset(range(1, len(marks) + 1)))
    return b.plot(
        "scale", "Which marks did each judge give?", caption, partial(scale_use, titles, rows, marks), alt=title,
        width=WIDE, table=table_, judges=tuple(texts),
    )  # fmt: skip


def agreement_words(index: RunIndex) -> str:
    """The lead of the section: enough, weak or too little agreement, score by score."""
    kappas = index.by_score(KAPPA)
    if not kappas:
        return "Agreement was not measured."
    if all(m.value is None for _, m in kappas):
        return f"Agreement is {t.state_words(kappas[0][1])}."
    dimensions, parts = [d for d, _ in kappas if d != AGGREGATE], []
    by = {
        s: [index.title(d) + _bracketed(index.gating_note(d)) for d in dimensions if index.status(d) == s]
        for s in ("publish", "methodology", "halt")
    }
    if AGGREGATE in dict(kappas):
        decided = _bracketed(index.gating_note(AGGREGATE), f"{index.sign} ")
        parts.append(f"On the overall score agreement is {t.AGREES[index.status(AGGREGATE) or 'halt']}{decided}.")
    if dimensions:
        some = words(len(by["publish"])).capitalize() if by["publish"] else "None"
        parts.append(f"{some} of {t.plural(len(dimensions), 'dimension')}: enough agreement.")
    for status, phrase in (("methodology", "weak agreement, no headline"), ("halt", "too little agreement, no claim")):
        if by[status]:
            names = t.listing([title[:1].lower() + title[1:] for title in by[status]])
            parts.append(f"{names[:1].upper()}{names[1:]}: {phrase}.")
    return " ".join(parts)


def agreement_table(index: RunIndex) -> b.Table | None:
    """Every score with its kappas, the overall score first, then by kappa; None if none was measured."""
    rows = []
    for dimension, item in _kappas(index):
        bootstrap, by, status = t.bootstrap_of(item), index.gating_note(dimension), index.status(dimension)
        gate = t.AGREES[status] if status else "no gate"
        rows.append((
            index.title(dimension), index.link(item, t.as_text(item)), t.limits(item),
            span(*bootstrap) if bootstrap else "no interval", count(item.n),
            t.count_in(item, "clusters", "not stated"), index.linked_value("kappa.fleiss", dimension),
            index.linked_value("redundancy", dimension), f"{gate}, {by}" if by else gate,
        ))  # fmt: skip
    columns = ("Score", index.sign, "jackknife", "bootstrap", "n", "clusters", "Fleiss κ", "redundancy", "agreement")
    return b.table_of(columns, rows, 7, "The same as a table, with Fleiss κ and redundancy")


def _bracketed(note: str, sign: str = "") -> str:
    return f" ({sign}{note})" if note else ""


def kappa_figure(index: RunIndex) -> b.Figure | None:
    """The kappa of every score with its intervals and the gates; None if none was measured."""
    rows, texts, kappas = list[ForestRow](), [], _kappas(index)
    if not kappas:
        return None
    for dimension, item in kappas:
        gating, by, status = index.gating(dimension), index.gating_note(dimension), index.status(dimension)
        within = tuple(m.value for m in index.known(KAPPA, dimension)
                       if "format" in m.labels and not m.state.startswith("too few"))  # fmt: skip
        format_kappa = gating.value if gating and "format" in gating.labels else None
        rows.append((index.title(dimension), item, status, by, format_kappa, within))
        word = t.AGREES[status] if status else "no gate"
        words = f"{t.estimate(item)}, {word}" if known(item) else t.state_words(item)
        texts.append((rows[-1][0], words + _bracketed(by)))
    gates = index.study.gates
    desc = "; ".join(f"{title}: {words}" for title, words in texts)
    title = "Agreement between judges on each score, against the gates"
    draw = partial(forest, rows, (gates.halt, gates.publish), index.sign)
    caption = (
        f"{_COEFFICIENTS[index.study.rubric.coefficient]}, where 1 is full agreement and 0 is chance; n = "
        f"{count(max(m.n for _, m in kappas))} {clean(kappas[0][1].n_of, 40)}. Thick bar: jackknife interval over the "
        "clusters. Thin line below it: their percentile bootstrap. Square: one dimension. Diamond: the overall score."
    )
    if any(within for *_, within in rows):
        caption += f" Small circle: {index.sign} within one submission format."
    if any(by for _, _, _, by, *_ in rows):
        caption += f" Upright stroke: the lowest {index.sign} within a format that has a gate of its own; it decides."
    values = b.Table(("Score", index.sign), tuple(texts))
    return b.plot("kappa", "How far is each score from a gate?", caption, draw, desc, None, values, alt=title,
                   width=WIDE)  # fmt: skip
