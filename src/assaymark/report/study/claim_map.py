"""The claim map: every experiment of the protocol, what it found, and what that supports (ValueBlindBench section 4.1).
A row holds no number of an unsupported claim: correlations, agreements and counts stand for what may not be ordered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from assaymark.claims import kind_of
from assaymark.records import AGGREGATE, Level, Measurement, PairState, Verdict
from assaymark.report.blocks import (
    HATCHED,
    Beside,
    Block,
    Figure,
    Inline,
    Linked,
    Page,
    Row,
    Section,
    Styled,
    Table,
    notes,
    small,
)
from assaymark.report.charts.grids import heat
from assaymark.report.levels import LEVELS, TAGS
from assaymark.report.lookup import KAPPA, Book, score_words
from assaymark.report.study.agreement import bootstrap_of, draws_words, only_alone, placed_agents, rho_words, rhos
from assaymark.report.study.claim_checks import (
    detectable_words,
    distinct_items,
    is_significant,
    own_family_items,
    told_apart,
)
from assaymark.report.study.controls import (
    Control,
    controls,
    gate_words,
    mostly_terse,
    style_section,
    supported_orders,
    terse_agents,
    tested_words,
)
from assaymark.report.study.outside import finds, outside_state
from assaymark.report.study.probes import (
    anchor_answer,
    anchor_section,
    changed_anchors,
    contamination_answer,
    contamination_gaps,
    contamination_section,
    shift_words,
    split_words,
)
from assaymark.report.text import (
    AGREES,
    CELLS,
    alpha,
    counted,
    interval,
    listing,
    p_value,
    plural,
    sentence,
    shown,
    signed,
    state_words,
    words,
)
from assaymark.text import clean, count, count_of, number, percent, span

# A row of the claim map, filled step by step: named, then with its result, or with why its absence matters.


NOT_RUN: Final = "not run"


Outcome = tuple[str, str, bool, tuple[str, ...]]
"""What an experiment found, what follows, whether it was run, and the ids of its measurements."""


def outcome(result: str, conclusion: str, *measured: str, ran: bool = True) -> Outcome:
    """What was found; a result that begins with “not run” has a capital."""
    text = result[:1].upper() + result[1:] if result.startswith(NOT_RUN) else result
    return text, conclusion, ran, measured


def absent(why: str) -> Outcome:
    """That an experiment was not run, and why that matters.

    >>> absent("It might be wrong.")
    ('Not run', 'It might be wrong.', False, ())
    """
    return outcome(NOT_RUN, why, ran=False)


# The control cells as rows of the claim map.


_ABSENT: Final = {
    "cell_a": "Nothing shows that the panel does not reward confidence and length.",
    "cell_b": "Nothing shows that the panel does not punish brevity.",
}
_CONCLUSIONS: Final[Mapping[str, str]] = {
    "passed": "The panel does not simply reward length and confidence.",
    "failed": "The scores are contaminated: no claim under this rubric is supported.",
    "substance": "The panel scores substance: brevity alone costs nothing that matters.",
    "verbosity-bias": "The rubric is sensitive to style: short, correct texts are marked down; claims are qualified.",
    "terse-favoured": "The rubric is sensitive to style: short texts are marked up; claims are qualified.",
    "inconclusive": "Neither substance nor a bias is shown; claims stay qualified.",
    "invariant": "Other words for the same facts score alike.",
    "style-sensitive": "Other words for the same facts score differently: the score is sensitive to style.",
    "noticed": "A changed number is noticed.",
    "not noticed": "A changed number goes unnoticed.",
    "not tested": "It could not be tested; claims stay qualified.",
}


def cell_row(book: Book, cell: str) -> Outcome:
    """Cell A or cell B."""
    found = next((c for c in controls(book) if c.cell == cell), None)
    if found is None or (found.gate is None and found.score is None):
        return absent(_ABSENT[cell])
    ids = tuple(m.id for m in (found.gate, found.score) if m is not None)
    return outcome(_result(book, found), _conclusion(found), *ids)


def _result(book: Book, control: Control) -> str:
    honest, score = book.one("cell.honest", dimension=AGGREGATE), control.score
    parts = []
    if score is not None and score.value is not None:
        mean = f"Panel mean {number(score.value)}"
        parts.append(mean + (f" against honest {number(honest.value)}" if honest and honest.value is not None else ""))
    if control.gate is not None:
        parts.append(f"difference by its rule {gate_words(control)}")
        parts += [tested_words(control.gate)] if tested_words(control.gate) else []
    n = score or control.gate
    return ", ".join(parts) + (f"; n = {count_of(n.n, n.n_of)}" if n is not None else "")


def _conclusion(control: Control) -> str:
    said = _CONCLUSIONS.get(control.outcome, "Its rule came to no outcome; claims stay qualified.")
    if control.turned:
        whole = f"{said} " if control.said.startswith(control.outcome) else ""
        said = f"{whole}It depends on the judges: {control.said}."
    if not control.supported:
        return f"{said} No claim about this cell is supported."
    return said if control.level is None else f"{said} Verdict: {TAGS[control.level].lower()}."


def other_cells_row(book: Book) -> Outcome:
    """Every cell beside A and B that was graded."""
    found = [c for c in controls(book) if c.cell not in _ABSENT and (c.gate is not None or c.score is not None)]
    if not found:
        return absent("Whether the judges notice a changed number, or only the words, is not known.")
    said = [f"{_name(c)}: {_short(book, c)}" for c in found]
    ends = [f"{_name(c)}: {_conclusion(c)}" for c in found if c.gate is not None] or ["They have no rule of their own."]
    return outcome("; ".join(said), " ".join(ends), *(m.id for c in found if (m := c.gate or c.score) is not None))


def _name(control: Control) -> str:
    known = {str(kind): words[0] for kind, words in CELLS.items()}
    return known.get(control.cell, control.title)


def _short(book: Book, control: Control) -> str:
    if control.gate is None:
        return _result(book, control)
    return f"{gate_words(control)}, {control.said} (n = {count(control.gate.n)})"


def halo_row(book: Book) -> Outcome:
    """What judges add to the cells that their own family composed."""
    found = [m for m in book.by_name.get("cell.halo", ()) if m.value is not None]
    if not found:
        return absent("A control cell may pass or fail by the taste of the family that wrote it.")
    cut = book.run.study.cells.halo
    said = [f"{_cell(m.labels.get('cell', ''))} {signed(m.value or 0.0)} points ({_family(m.detail)})" for m in found]
    over = [_cell(m.labels.get("cell", "")) for m in found if m.detail.get("triggered")]
    conclusion = (
        f"{', '.join(over)}: the score without that family is primary."
        if over
        else f"No cell moves by {number(cut, 1)} or more: what the cells show is the panel’s, not one family’s."
    )
    result = "; ".join(said) + (f"; n = {count_of(found[0].n, found[0].n_of)}" if found else "")
    return outcome(result, conclusion, *(m.id for m in found))


def _cell(cell: str) -> str:
    return {str(kind): words[0] for kind, words in CELLS.items()}.get(cell, clean(cell, 40))


def _family(detail: Mapping[str, object]) -> str:
    family = detail.get("family")
    return f"judge family {clean(str(family), 40)}" if family else "no judge shares its family"


# What else could explain a difference, as rows of the claim map.


def own_family_row(book: Book) -> Outcome:
    """What judges add to agents of their own maker, and how many orders rest on it."""
    items = [m for m in own_family_items(book) if m.value is not None]
    if not items:
        return absent("A judge may score its own maker’s agent higher than other judges do.")
    said = [f"{clean(m.labels['judge'], 60)} {interval(m.value or 0.0, m.low, m.high)}" for m in items]
    found = [v for v in book.on(AGGREGATE, "pair") if is_significant(book, v)]
    rests = sum(v.own_family in ("rests-on-own-family", "turns-without-own-family") for v in found)
    verb = "rests" if rests == 1 else "rest"
    conclusion = f"{count(rests)} of {counted(len(found), 'significant pair')} {verb} on it."
    result = f"{'; '.join(said)} points; n = {count_of(items[0].n, items[0].n_of)}"
    return outcome(result, conclusion, *(m.id for m in items))


def _pairs(book: Book, name: str) -> list[Measurement]:
    """The measurements of a kind about the pairs of the overall score, by names: ids have the direction in them."""
    return sorted(book.every(name, dimension=AGGREGATE), key=lambda m: sorted((m.labels["high"], m.labels["low"])))


def length_row(book: Book) -> Outcome:
    """What length adds, and how many orders remain at equal length."""
    items = _pairs(book, "length.contrast")
    if not items:
        return absent("A longer text may score higher for its length.")
    slopes = [float(slope) for m in items if isinstance(slope := m.detail.get("slope"), (int, float))]
    found = [v for v in book.on(AGGREGATE, "pair") if is_significant(book, v)]
    clear = sum(v.length == "clear" for v in found)
    slope = f"{number(max(slopes))} points a doubling of length; " if slopes else ""
    result = f"{slope}n = {count_of(items[0].n, items[0].n_of)}"
    remain = f"{count(clear)} of {counted(len(found), 'significant pair')} remain at equal length."
    return outcome(result, remain, *(m.id for m in items[:1]))


def distinct_row(book: Book) -> Outcome:
    """Which dimensions the judges tell from their overall impression."""
    items = [m for m in distinct_items(book) if m.value is not None]
    if not items:
        return absent("Scores of several dimensions may be one overall impression.")
    apart = sum(told_apart(book, m) for m in items)
    said = [f"{score_words(m.labels['dimension'])} {number(m.value or 0.0)}" for m in items]
    result = f"Correlation with the overall impression: {', '.join(said)}; n = {count_of(items[0].n, items[0].n_of)}"
    return outcome(result, f"{count(apart)} of {counted(len(items), 'dimension')} told apart.", *(m.id for m in items))


def others_row(book: Book) -> Outcome:
    """How many orders hold for other judges."""
    items = [m for m in _pairs(book, "judges.contrast") if m.value is not None]
    if not items:
        return absent("An order may hold for these judges alone; three judge families are needed.")
    found = [v for v in book.on(AGGREGATE, "pair") if is_significant(book, v)]
    yes = sum(v.other_judges == "yes" for v in found)
    pairs = counted(len(found), "significant pair")
    result = f"{count(yes)} of {pairs} hold for other judges; n = {count_of(items[0].n, items[0].n_of)}"
    return outcome(result, "The sentence of any other order names these judges.", *(m.id for m in items[:1]))


def time_row(book: Book) -> Outcome:
    """How far neighbouring clusters are alike."""
    item = book.one("order.autocorrelation", dimension=AGGREGATE)
    lags = [] if item is None else [float(v) for v in item.detail.get("lags", ()) if isinstance(v, (int, float))]
    if item is None or not lags:
        return absent("Weeks that follow each other count as fewer than they are.")
    said = ", ".join(f"lag {at} {number(value)}" for at, value in enumerate(lags, 1))
    conclusion = "They are taken as independent."
    if item.detail.get("order") == "consecutive":
        conclusion = "The test counts them as fewer clusters."
    elif item.detail.get("flagged"):
        conclusion = "They were declared independent, so orders are qualified at most."
    return outcome(f"Autocorrelation: {said}; n = {count_of(item.n, item.n_of)}", conclusion, item.id)


_TOLERANCE: Final = 1e-9


def claim_map(book: Book, links: Mapping[str, str]) -> Page:
    """Every experiment as a row, then the supported orders and three probes beside the scores."""
    made = [(title.replace("κ", book.sign), tests, href, find(book)) for title, tests, href, find in _EXPERIMENTS]
    ran = sum(found[2] for *_, found in made)
    answer = f"{words(ran).capitalize()} of {words(len(made))} experiments were run. {_tally(book.run.verdicts)}"
    heads = ("Experiment", "What it tests", "Result", "What follows")
    rows = tuple(_row(*one, links) for one in made)
    table = Table(heads, rows, summary="", stacked=True, style="map")
    sections = (gaps_section(book), anchor_section(book), style_section(book), contamination_section(book))
    return Page("claim-map.html", "Claim map", answer, sections, (table,), here="map")


def _row(title: str, tests: str, href: str, found: Outcome, links: Mapping[str, str]) -> Row:
    """A row with the ways to its section and to its first measurement that has a row of its own."""
    result, conclusion, ran, measured = found
    ways: list[Inline] = [title, " ", Linked(_WHERE[href], href)]
    link = next((links[name] for name in measured if name in links), "")
    ways += [" ", Linked("measurement", link)] if link else []
    if ran:
        return Row((tuple(ways), tests, result, conclusion))
    return Row((tuple(ways), tests, Styled(result, "gap"), (small("Why it matters: "), conclusion)), style="off")


def _tally(verdicts: Sequence[Verdict]) -> str:
    levels: list[Level] = [v.publication_level for v in verdicts]
    said = [f"{count(levels.count(level))} {TAGS[level].lower()}" for level in LEVELS if level in levels]
    return f"Of {counted(len(levels), 'claim')}: {listing(said)}." if said else "No claim was decided."


def supported_words(verdicts: Sequence[Verdict]) -> str:
    """How many of some claims are supported, in words."""
    said = sum(v.publication_level == "headline" for v in verdicts)
    reserved = sum(v.publication_level == "qualified" for v in verdicts)
    if not verdicts:
        return "No claim was decided."
    if not said and not reserved:
        return f"None of {counted(len(verdicts), 'claim')} is supported."
    parts = ([f"{count(said)} supported"] if said else []) + (
        [f"{count(reserved)} only with a condition"] if reserved else []
    )
    return f"Of {counted(len(verdicts), 'claim')}, {listing(parts)}."


# --- agreement ------------------------------------------------------------------------------------------------------


def _kappa_words(book: Book, item: Measurement) -> str:
    if item.value is None:
        return state_words(item)
    second = bootstrap_of(item)
    also = f", bootstrap {span(*second)}" if second else ""
    by = book.gating_note(item.labels["dimension"])
    decides = f"; {by} decides" if by else ""
    return f"{book.sign} {interval(item.value, item.low, item.high)}{also}{decides}"


def _aggregate(book: Book) -> Outcome:
    item = book.one(KAPPA, dimension=AGGREGATE)
    if item is None:
        return absent("Without measured agreement no order is supported.")
    status = book.status(AGGREGATE)
    conclusion = {
        "publish": "Enough for claims on the overall score.",
        "methodology": "Weak; no headline on the overall score.",
    }.get(status or "halt", "Too little; no claim on the overall score.")
    result = f"{_kappa_words(book, item)}; n = {count_of(item.n, item.n_of)}"
    return outcome(result, f"{conclusion} {supported_words(book.on(AGGREGATE))}", item.id)


def _dimensions(book: Book) -> Outcome:
    found = [m for d in book.dimensions if d != AGGREGATE and (m := book.one(KAPPA, dimension=d)) is not None]
    if not found:
        return absent("Without it a reliable overall score can hide a dimension on which the judges do not agree.")
    by = {s: [m for m in found if book.status(m.labels["dimension"]) == s] for s in ("publish", "methodology", "halt")}
    low = [m for status in ("methodology", "halt") for m in by[status]]
    passed = plural(len(by["publish"]), "dimension").capitalize()
    said = [f"{passed} of {words(len(found))} at or above the gate"]
    said += [
        f"{_named(book, m)} {_kappa_words(book, m)}, {AGREES[status]}; n = {count(m.n)}"
        for status in ("methodology", "halt")
        for m in by[status]
    ]
    parts = []
    if by["methodology"]:
        parts.append(f"No headline on {listing([_named(book, m) for m in by['methodology']])}.")
    if by["halt"]:
        parts.append(f"No claim on {listing([_named(book, m) for m in by['halt']])}.")
    conclusion = " ".join(parts) or "Enough for claims on each dimension."
    ids = tuple(m.id for m in (low or found))
    return outcome("; ".join(said), conclusion, *ids)


def _named(book: Book, item: Measurement) -> str:
    title = book.title(item.labels["dimension"])
    return title[:1].lower() + title[1:]


def _effective(book: Book) -> Outcome:
    item = book.one("panel.effective_judges", dimension=AGGREGATE)
    why = "Judges who err together agree without being right; that needs texts of known quality to be seen."
    if item is None:
        return absent(why)
    if item.value is None:
        return outcome(state_words(item), f"{NOT_RUN}: {why}", item.id, ran=False)
    judges, r = item.detail.get("judges"), item.detail.get("r")
    of = f" of {judges}" if isinstance(judges, int) else ""
    errors = f"; mean correlation of their errors {number(float(r))}" if isinstance(r, (int, float)) else ""
    worth = f"The agreement above is that of about {number(item.value, 1)} independent judges."
    return outcome(f"{number(item.value, 1)}{of}{errors}; n = {count_of(item.n, item.n_of)}", worth, item.id)


# --- orders ---------------------------------------------------------------------------------------------------------


def _orders(book: Book) -> Outcome:
    pairs = book.on(AGGREGATE, "pair")
    if not pairs:
        return absent("Without a test no order of agents is supported.")
    significant = sum(is_significant(book, v) for v in pairs)
    states = Counter(v.pair_state for v in pairs)
    needed = alpha(book.needed(AGGREGATE))
    result = (
        f"{count(significant)} of {counted(len(pairs), 'pair')} significant at {needed} for all together. "
        f"{detectable_words(book)}"
    )
    said: dict[PairState, str] = {
        "ordered": "ordered",
        "ordered-by-less-than-the-margin": "ordered by less than the margin",
        "within-the-margin": "within the margin",
        "not-resolved": "not resolved",
        "cannot-be-tested": "cannot be tested",
    }
    parts = [f"{count(states[state])} {words}" for state, words in said.items() if states[state]]
    conclusion = f"{book.untestable} " if book.untestable else ""
    ids = [m.id for m in book.every("order.detectable")]
    return outcome(result, f"{conclusion}Pairs: {listing(parts)}." if parts else supported_words(pairs), *ids)


def _ranks(book: Book) -> Outcome:
    found = [m for m in book.every("rank.first", dimension=AGGREGATE) if m.value is not None]
    if not found:
        return absent("Ranks of one draw of clusters may change with the next.")
    placed = placed_agents(book)
    said = [f"{clean(p.agent, 80)} rank {p.place} in {percent(p.shares[p.place - 1])}" for p in placed
            if p.place <= len(p.shares)]  # fmt: skip
    drawn = f"of {draws_words(found)}"
    kept = len(book.agents) - len(placed)
    rest = f"; {plural(kept, 'agent')} share a tier" if kept else ""
    result = f"{listing(said)} {drawn}{rest}" if said else f"No agent is alone in its tier; {drawn}"
    firsts = [v for v in book.on(AGGREGATE, "first") if v.publication_level != "no-claim"]
    conclusion = " ".join(f"{clean(v.claim.subjects[0], 80)} ranks first ({v.publication_level})." for v in firsts)
    ids = tuple(m.id for p in placed if (m := book.one("rank.first", dimension=AGGREGATE, agent=p.agent)))
    return outcome(result, conclusion or "No first rank on the overall score is supported.", *ids)


def _lofo(book: Book) -> Outcome:
    found = list(book.every("lofo.rho", dimension=AGGREGATE))
    measured = [m for m in found if m.value is not None]
    why = "An order that one judge family makes is that family’s order, not the panel’s."
    if not measured:
        return outcome(state_words(found[0]), f"{NOT_RUN}: {why}", ran=False) if found else absent(why)
    said = [f"without judge family {clean(m.labels['dropped'], 60)} ρ {shown(m)}" for m in measured]
    result = f"{sentence('; '.join(said)).rstrip('.')}; n = {count_of(measured[0].n, measured[0].n_of)}"
    return outcome(result, _drop_words(book), *(m.id for m in measured))


def _drop_words(book: Book) -> str:
    """What the drops do to the significant pairs of the overall score: counts, never names."""
    found = [v.stability.state for v in book.on(AGGREGATE, "pair") if v.stability is not None]
    if not found:
        return "No difference on the overall score is significant."
    stable = found.count("stable")
    parts = [f"{count(stable)} of {counted(len(found), 'significant pair')} {'holds' if stable == 1 else 'hold'}"]
    other = {"rests-on": "need one family to be seen", "reversed-without": "turn without one"}
    parts += [f"{count(found.count(state))} {said}" for state, said in other.items() if state in found]
    return f"{listing(parts)}."


# --- judges alone, and the held-out one -----------------------------------------------------------------------------


def _single(book: Book) -> Outcome:
    pairs, alone = rhos(book), [m for m in book.every("single.discoveries") if m.value is not None]
    if not pairs and not alone:
        return absent("It would show which orders and discoveries only one judge makes.")
    said = []
    values = [m.value or 0.0 for m in pairs]
    if values:
        said.append(f"Two judges’ orders correlate at ρ {rho_words(values)}; n = {count(pairs[0].n)} agents")
    panel = book.one("panel.discoveries")
    if panel is not None and panel.value is not None:
        family = panel.detail.get("family")
        of = f" of {family}" if isinstance(family, int) else ""
        said.append(f"the panel finds {count(round(panel.value))}{of} differences significant")
    if alone:
        found = [round(m.value or 0.0) for m in alone]
        said.append(f"one judge alone {min(found)} to {max(found)}")
    extra = sum(only_alone(m) for m in alone)
    unlike = bool(values) and min(values) < book.run.study.stability.rho - _TOLERANCE
    if not unlike and not extra:
        conclusion = "Each judge alone would have said the same here; that it would was not known without the others."
    else:
        parts = ["gives another order"] if unlike else []
        parts += [f"finds differences that the panel does not find ({count(extra)} in all)"] if extra else []
        conclusion = f"One judge is not enough: depending on which one is asked, it {listing(parts)}."
    return outcome("; ".join(said), conclusion, *(m.id for m in (*pairs, *alone)))


def _outside(book: Book) -> Outcome:
    pairs = book.by_name.get("probe.contrast", ())
    state = book.one("probe.state")
    ids = tuple(m.id for m in (*([state] if state else []), *pairs))
    if not pairs:
        needless = state is not None and state.state.startswith("not needed")
        why = "No drop turned a pair." if needless else "What turns with a judge family is not supported."
        return outcome(f"{NOT_RUN}: {outside_state(book)}", why, *ids, ran=False)
    judged = [m for m in pairs if m.value is not None]
    if not judged:
        why = "What turns with a judge family is not supported."
        return outcome(f"{NOT_RUN}: no contested pair has common cycles", why, *ids, ran=False)
    ends = [m for m in judged if m.low is not None and m.high is not None]
    different = sum(finds(m) for m in ends)
    sizes = sorted({m.n for m in judged})
    n = count(sizes[0]) if len(sizes) == 1 else f"{count(sizes[0])} to {count(sizes[-1])}"
    rest = [f"{count(len(judged) - len(ends))} without an interval"] if len(judged) > len(ends) else []
    rest += [f"{counted(len(pairs) - len(judged), 'pair')} never compared"] if len(pairs) > len(judged) else []
    result = (
        f"{counted(len(judged), 'pair')} judged; a difference in {count(different)} and none in "
        f"{count(len(ends) - different)}; n = {n} {clean(judged[0].n_of, 40)} a pair"
    )
    return outcome("; ".join([result, *rest]), _settled(book, pairs), *ids)


def _settled(book: Book, pairs: Sequence[Measurement]) -> str:
    """What became of the pairs that were judged."""
    probed = {(m.labels.get("dimension", ""), frozenset((m.labels.get("high"), m.labels.get("low")))) for m in pairs}
    found = [
        v
        for v in book.run.verdicts
        if kind_of(v.claim) == "pair" and (v.claim.dimension, frozenset(v.claim.subjects)) in probed
    ]
    return supported_words(found)


# --- the texts --------------------------------------------------------------------------------------------------------


def _anchors(book: Book) -> Outcome:
    measured = [m for m in changed_anchors(book) if m.value is not None]
    if not measured:
        return absent("A dimension on which judges disagree may only lack clear anchors.")
    said = [f"{book.title(m.labels['dimension'])} {shift_words(m)}{_flips(m)}; n = {count(m.n)}" for m in measured]
    conclusion = f"{anchor_answer(book)} Agreement under the other anchors was not measured by one judge."
    return outcome("; ".join(said), conclusion, *(m.id for m in measured))


def _flips(item: Measurement) -> str:
    flips = item.detail.get("flips")
    return f", {plural(flips, 'pair')} of agents turned" if isinstance(flips, int) else ""


def _repetition(book: Book) -> Outcome:
    ddof = str(book.run.study.inference.ddof)
    found = list(book.every("noise.repetition_stability", ddof=ddof))
    measured = [m for m in found if m.value is not None]
    why = "Without repeats nobody knows how much of a score is the judge’s own noise."
    if not measured:
        return outcome(f"{NOT_RUN}: {state_words(found[0])}", why, ran=False) if found else absent(why)
    gate = book.run.study.gates.repetition_stability
    said = [f"{clean(m.labels['judge'], 60)} {number(m.value or 0.0, 3)}" for m in measured]
    low = [clean(m.labels["judge"], 60) for m in measured if (m.value or 0.0) < gate - _TOLERANCE]
    conclusion = (
        f"{listing(low)} {'stays' if len(low) == 1 else 'stay'} below {number(gate)}: averaging is not defensible."
        if low
        else f"Averaging trials clears the gate of {number(gate)}."
    )
    return outcome(f"{'; '.join(said)}; n = {count_of(measured[0].n, measured[0].n_of)}", conclusion,
                   *(m.id for m in measured))  # fmt: skip


def _contamination(book: Book) -> Outcome:
    found = contamination_gaps(book)
    if not found:
        return absent("Agents may remember what happened in the earlier clusters.")
    said = []
    for item in found:
        split = split_words(item)
        value = state_words(item) if item.value is None else shift_words(item)
        p = item.detail.get("p")
        tested = f", {p_value(float(p))}" if isinstance(p, (int, float)) else ""
        said.append(f"{split[:1].upper()}{split[1:]} {value}{tested}; n = {count(item.n)}")
    return outcome("; ".join(said), contamination_answer(book), *(m.id for m in found))


def _terse(book: Book) -> Outcome:
    found = terse_agents(book)
    if not found:
        return absent("A contrast with an agent that writes briefly may be about length.")
    cells = book.run.study.cells
    said = [f"{clean(agent, 60)} {percent(m.value or 0.0)}; n = {count(m.n)}" for agent, m in found]
    named = mostly_terse(book)
    conclusion = (
        f"Every contrast with {listing(named, last='or')} is sensitive to style."
        if named
        else "No contrast is sensitive to style for that reason."
    )
    result = f"Below {cells.terse_tokens} words: {'; '.join(said)}"
    return outcome(result, conclusion, *(m.id for _, m in found))


_WHERE: Final = {
    "agreement.html": "Do the judges agree?",
    "agents.html#board": "Who is ahead?",
    "stability.html#stability": "Does each order hold without any one judge family?",
    "stability.html#explanations": "What else could explain a difference?",
    "agents.html#ranks": "Which ranks are possible?",
    "agreement.html#single": "Would one judge have said the same?",
    "controls.html": "Do the controls hold?",
    "claim-map.html#anchors": "Do the anchors carry the score?",
    "stability.html#outside": "What did the held-out judge settle?",
    "agreement.html#noise": "How much is noise?",
    "claim-map.html#contamination": "Do later clusters differ?",
    "plan.html#panel": "Who judged?",
}
"""The questions of the sections that rows lead to."""

_EXPERIMENTS: Final[tuple[tuple[str, str, str, Callable[[Book], Outcome]], ...]] = (
    ("Overall κ gate", "Do the judges agree overall?", "agreement.html", _aggregate),
    ("Per-dimension gate", "Is every dimension equally reliable?", "agreement.html", _dimensions),
    ("Order procedure", "Which differences between agents are significant?", "agents.html#board", _orders),
    ("Leave-one-family-out", "Does each order hold without any one judge family?", "stability.html#stability", _lofo),
    ("Own-family judges", "Do judges favour agents of their own maker?", "stability.html#explanations", own_family_row),
    ("Equal length", "Would the differences remain at equal length?", "stability.html#explanations", length_row),
    ("Dimensions told apart", "Do judges tell each dimension from their overall impression?",
     "stability.html#explanations", distinct_row),
    ("Other judges", "Would other judges like these see the same order?", "stability.html#explanations", others_row),
    ("Clusters in time", "Do neighbouring clusters resemble each other?", "stability.html#explanations", time_row),
    ("Rank intervals and bootstrap ranks", "Which ranks are possible?", "agents.html#ranks", _ranks),
    ("Single-judge baseline", "Would one judge be enough?", "agreement.html#single", _single),
    ("Cell A", "Are long, confident and wrong texts refused?", "controls.html", partial(cell_row, cell="cell_a")),
    ("Cell B", "Are short and correct texts accepted?", "controls.html", partial(cell_row, cell="cell_b")),
    ("Other cells", "Do paraphrase, changed numbers, length and red-team texts move the score as they should?",
     "controls.html", other_cells_row),
    ("Self-preference on control texts", "Does a judge family favour the control texts that its own family composed?",
     "controls.html", halo_row),
    ("Rubric wording", "Does the score depend on how its anchors are written?", "claim-map.html#anchors", _anchors),
    ("Held-out judge", "Are the orders that a drop turns those of one judge family?",
     "stability.html#outside", _outside),
    ("Repetition stability", "May a judge’s trials be averaged?", "agreement.html#noise", _repetition),
    ("Contamination probe", "Are texts scored differently after the training cutoff?",
     "claim-map.html#contamination", _contamination),
    ("Terse tail", "Are some agents mostly in the range where short texts are penalised?", "controls.html", _terse),
    ("Effective number of judges", "How many independent judges is the panel worth?", "plan.html#panel", _effective),
)  # fmt: skip


MOST = 14
"""With more agents the chart has no room for its cells, and the table is alone."""

_CAPTION: Final = (
    "The agent of a row scores above the agent of a filled column. S: supported. C: only with its condition. Hatched: "
    "no supported order."
)


def gaps_section(book: Book) -> Section:
    """Every supported order of every score. Only supported orders have a mark anywhere in it."""
    scored, title = [d for d in book.dimensions if book.on(d, "pair")], "Which orders are supported?"
    agents = book.agents
    if not scored or len(agents) < 2:
        return Section("gaps", title, "No difference between two agents was tested.")
    allowed = {d: supported_orders(book, d) for d in scored}
    shown = sum(len(found) for found in allowed.values())
    total = len(scored) * len(agents) * (len(agents) - 1) // 2
    drawn = [d for d in scored if allowed[d]] if len(agents) <= MOST else []
    silent = [score_words(d) for d in scored if not allowed[d]]
    said = notes(
        [f"No order is supported on {listing(silent, last='or')}." if silent else "", _CAPTION if drawn else ""]
    )
    charts = tuple((_chart(book, d, allowed[d], at),) for at, d in enumerate(drawn))
    blocks: list[Block] = [Beside(charts, "tri")] if charts else []
    blocks += [_table(book, scored, allowed)] if shown else []
    return Section("gaps", title, f"{counted(shown, 'order')} of {count(total)} supported.", (*said, *blocks))


def _chart(book: Book, dimension: str, allowed: Mapping[tuple[str, str], Level], at: int) -> Figure:
    agents = book.agents
    place = {agent: row for row, agent in enumerate(agents)}
    cells = {(place[high], place[low]): level for (high, low), level in allowed.items()}
    title = book.title(dimension)
    pairs = len(agents) * (len(agents) - 1) // 2
    said = "; ".join(_said(pair, level) for pair, level in sorted(allowed.items()))
    desc = f"{said}; {plural(pairs - len(allowed), 'pair')} without a supported order"
    names = [clean(agent, 60) for agent in agents]
    svg = heat(f"heat{at}", names, cells, f"Supported orders of agents: {title}", desc)
    rows = tuple((clean(high, 60), clean(low, 60), level) for (high, low), level in sorted(allowed.items()))
    values = Table(("Above", "Below", "Level"), rows)
    note = f"{counted(len(allowed), 'order')} of {counted(pairs, 'pair')}"
    return Figure(title, "", svg, "", note=note, values=values)


def _said(pair: tuple[str, str], level: Level) -> str:
    return f"{clean(pair[0], 60)} above {clean(pair[1], 60)} ({TAGS[level].lower()})"


def _table(book: Book, scored: list[str], allowed: Mapping[str, Mapping[tuple[str, str], Level]]) -> Table:
    """A row for each pair that any verdict orders; the agents of a row in alphabetical order."""
    pairs = sorted({(min(pair), max(pair)) for found in allowed.values() for pair in found})
    rows = []
    for one, other in pairs:
        both = ((one, other), (other, one))
        cells = [next((_said(p, allowed[d][p]) for p in both if p in allowed[d]), HATCHED) for d in scored]
        rows.append((f"{clean(one, 60)} and {clean(other, 60)}", *cells))
    return Table(("Pair", *(book.title(d) for d in scored)), tuple(rows))
