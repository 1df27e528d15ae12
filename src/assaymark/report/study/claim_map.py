"""The claim map: every experiment of the protocol, what it found, and what that supports (ValueBlindBench section 4.1).
A row holds no number of an unsupported claim: correlations, agreements and counts stand for what may not be ordered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from assaymark.claims import kind_of
from assaymark.records import AGGREGATE, AgreementStatus, Level, Measurement, PairState, Verdict
from assaymark.report.blocks import (
    HATCHED,
    Beside,
    Figure,
    Inline,
    Linked,
    Page,
    Row,
    Section,
    Styled,
    Table,
    notes,
    section,
    small,
)
from assaymark.report.charts.grids import heat
from assaymark.report.inputs import KAPPA, RunIndex, score_words
from assaymark.report.levels import LEVELS, TAGS
from assaymark.report.study.agreement import bootstrap_of, draws_words, only_alone, placed_agents, rho_words
from assaymark.report.study.claim_checks import (
    detectable_words,
    distinct_items,
    own_family_items,
    significant,
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
from assaymark.report.study.probes import (
    anchor_answer,
    anchor_section,
    changed_anchors,
    contamination_answer,
    contamination_gaps,
    contamination_section,
    finds,
    outside_state,
    shift_words,
    split_words,
)
from assaymark.report.text import (
    AGREES,
    CELLS,
    alpha,
    counted,
    estimate,
    listing,
    p_of,
    plural,
    real,
    sentence,
    shown,
    signed,
    sizes,
    state_words,
    words,
)
from assaymark.text import clean, count, number, percent, span

NOT_RUN: Final = "not run"

Outcome = tuple[str, str, bool, tuple[str, ...]]
"""What an experiment found, what follows, whether it was run, and the ids of its measurements."""


def outcome(result: str, conclusion: str, *measured: Measurement | None, ran: bool = True) -> Outcome:
    """What was found; a result that begins with “not run” has a capital."""
    text = result[:1].upper() + result[1:] if result.startswith(NOT_RUN) else result
    return text, conclusion, ran, tuple(item.id for item in measured if item is not None)


def with_n(result: str, conclusion: str, measured: Sequence[Measurement]) -> Outcome:
    """What was found, with how many of what the first measurement rests on."""
    return outcome(f"{result}; n = {sizes(measured[0])}", conclusion, *measured)


def absent(why: str, found: Sequence[Measurement] = (), lead: str = "") -> Outcome:
    """That an experiment was not run, and why that matters; or why what was ``found`` has no value.

    >>> absent("It might be wrong.")
    ('Not run', 'It might be wrong.', False, ())
    """
    if found:
        return outcome(lead + state_words(found[0]), why if lead else f"{NOT_RUN}: {why}", ran=False)
    return outcome(NOT_RUN, why, ran=False)


# --- the control cells ------------------------------------------------------------------------------------------------

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


def _cell(book: RunIndex, cell: str) -> Outcome:
    found = next((c for c in controls(book) if c.cell == cell), None)
    if found is None or (found.gate is None and found.score is None):
        return absent(_ABSENT[cell])
    return outcome(_result(book, found), _conclusion(found), found.gate, found.score)


def _result(book: RunIndex, control: Control) -> str:
    honest, score, parts = book.value("cell.honest", dimension=AGGREGATE), control.score, []
    if score is not None and score.value is not None:
        beside = "" if honest is None else f" against honest {number(honest)}"
        parts.append(f"Panel mean {number(score.value)}{beside}")
    if control.gate is not None:
        parts.append(f"difference by its rule {gate_words(control)}")
        parts += [tested_words(control.gate)] if tested_words(control.gate) else []
    n = score or control.gate
    return ", ".join(parts) + (f"; n = {sizes(n)}" if n is not None else "")


def _conclusion(control: Control) -> str:
    said = _CONCLUSIONS.get(control.outcome, "Its rule came to no outcome; claims stay qualified.")
    if control.turned:
        whole = f"{said} " if control.said.startswith(control.outcome) else ""
        said = f"{whole}It depends on the judges: {control.said}."
    if not control.supported:
        return f"{said} No claim about this cell is supported."
    return said if control.level is None else f"{said} Verdict: {TAGS[control.level].lower()}."


def _other_cells(book: RunIndex) -> Outcome:
    """Every cell beside A and B that was graded."""
    found = [c for c in controls(book) if c.cell not in _ABSENT and (c.gate is not None or c.score is not None)]
    if not found:
        return absent("Whether the judges notice a changed number, or only the words, is not known.")
    said, ends, known = [], [], {str(kind): words[0] for kind, words in CELLS.items()}
    for one in found:
        name, short = known.get(one.cell, one.title), _result(book, one)
        if one.gate is not None:
            short = f"{gate_words(one)}, {one.said} (n = {count(one.gate.n)})"
            ends.append(f"{name}: {_conclusion(one)}")
        said.append(f"{name}: {short}")
    end = " ".join(ends or ["They have no rule of their own."])
    return outcome("; ".join(said), end, *(c.gate or c.score for c in found))


def _halo(book: RunIndex) -> Outcome:
    """What judges add to the cells that their own family composed."""
    found = book.known("cell.halo")
    if not found:
        return absent("A control cell may pass or fail by the taste of the family that wrote it.")
    known, said, over = {str(kind): words[0] for kind, words in CELLS.items()}, [], []
    for item in found:
        name, family = item.labels.get("cell", ""), item.detail.get("family")
        name = known.get(name, clean(name, 40))
        who = f"judge family {clean(str(family), 40)}" if family else "no judge shares its family"
        said.append(f"{name} {signed(item.value or 0.0)} points ({who})")
        over += [name] if item.detail.get("triggered") else []
    cut = number(book.study.cells.halo, 1)
    conclusion = f"No cell moves by {cut} or more: what the cells show is the panel’s, not one family’s."
    if over:
        conclusion = f"{', '.join(over)}: the score without that family is primary."
    return with_n("; ".join(said), conclusion, found)


# --- what else could explain a difference -----------------------------------------------------------------------------


def _own_family(book: RunIndex) -> Outcome:
    items, found = [m for m in own_family_items(book) if m.value is not None], significant(book)
    if not items:
        return absent("A judge may score its own maker’s agent higher than other judges do.")
    said = "; ".join(f"{clean(m.labels['judge'], 60)} {estimate(m)}" for m in items)
    rests = sum(v.own_family in ("rests-on-own-family", "turns-without-own-family") for v in found)
    pairs = counted(len(found), "significant pair")
    return with_n(f"{said} points", f"{count(rests)} of {pairs} {'rests' if rests == 1 else 'rest'} on it.", items)


def _pairs(book: RunIndex, name: str) -> list[Measurement]:
    """The measurements of a kind about the pairs of the overall score, by names: ids have the direction in them."""
    return sorted(book.every(name, dimension=AGGREGATE), key=lambda m: sorted((m.labels["high"], m.labels["low"])))


def _length(book: RunIndex) -> Outcome:
    items, found = _pairs(book, "length.contrast"), significant(book)
    if not items:
        return absent("A longer text may score higher for its length.")
    slopes = [slope for m in items if (slope := real(m.detail.get("slope"))) is not None]
    lead = f"{number(max(slopes))} points a doubling of length; " if slopes else ""
    clear = f"{count(sum(v.length == 'clear' for v in found))} of {counted(len(found), 'significant pair')}"
    return outcome(f"{lead}n = {sizes(items[0])}", f"{clear} remain at equal length.", items[0])


def _distinct(book: RunIndex) -> Outcome:
    items = [m for m in distinct_items(book) if m.value is not None]
    if not items:
        return absent("Scores of several dimensions may be one overall impression.")
    apart = count(sum(told_apart(book, m) for m in items))
    said = ", ".join(f"{score_words(m.labels['dimension'])} {number(m.value or 0.0)}" for m in items)
    conclusion = f"{apart} of {counted(len(items), 'dimension')} told apart."
    return with_n(f"Correlation with the overall impression: {said}", conclusion, items)


def _others(book: RunIndex) -> Outcome:
    items, found = [m for m in _pairs(book, "judges.contrast") if m.value is not None], significant(book)
    if not items:
        return absent("An order may hold for these judges alone; three judge families are needed.")
    yes, pairs = count(sum(v.other_judges == "yes" for v in found)), counted(len(found), "significant pair")
    said = "The sentence of any other order names these judges."
    return with_n(f"{yes} of {pairs} hold for other judges", said, items[:1])


def _time(book: RunIndex) -> Outcome:
    item = book.one("order.autocorrelation", dimension=AGGREGATE)
    lags = [] if item is None else [lag for one in item.detail.get("lags", ()) if (lag := real(one)) is not None]
    if item is None or not lags:
        return absent("Weeks that follow each other count as fewer than they are.")
    said = ", ".join(f"lag {at} {number(value)}" for at, value in enumerate(lags, 1))
    conclusion = "They are taken as independent."
    if item.detail.get("order") == "consecutive":
        conclusion = "The test counts them as fewer clusters."
    elif item.detail.get("flagged"):
        conclusion = "They were declared independent, so orders are qualified at most."
    return with_n(f"Autocorrelation: {said}", conclusion, [item])


_TOLERANCE: Final = 1e-9


# --- agreement ------------------------------------------------------------------------------------------------------


def _kappa_words(book: RunIndex, item: Measurement) -> str:
    if item.value is None:
        return state_words(item)
    second, by = bootstrap_of(item), book.gating_note(item.labels["dimension"])
    also = f", bootstrap {span(*second)}" if second else ""
    return f"{book.sign} {estimate(item)}{also}{f'; {by} decides' if by else ''}"


def _aggregate(book: RunIndex) -> Outcome:
    item = book.one(KAPPA, dimension=AGGREGATE)
    if item is None:
        return absent("Without measured agreement no order is supported.")
    conclusion = {
        "publish": "Enough for claims on the overall score.",
        "methodology": "Weak; no headline on the overall score.",
    }.get(book.status(AGGREGATE) or "halt", "Too little; no claim on the overall score.")
    return with_n(_kappa_words(book, item), f"{conclusion} {supported_words(book.on(AGGREGATE))}", [item])


def _dimensions(book: RunIndex) -> Outcome:
    found = [m for d in book.dimensions if d != AGGREGATE and (m := book.one(KAPPA, dimension=d)) is not None]
    if not found:
        return absent("Without it a reliable overall score can hide a dimension on which the judges do not agree.")
    by = {s: [m for m in found if book.status(m.labels["dimension"]) == s] for s in ("publish", "methodology", "halt")}
    passed, low, parts = plural(len(by["publish"]), "dimension").capitalize(), list[Measurement](), []
    said = [f"{passed} of {words(len(found))} at or above the gate"]
    statuses: tuple[tuple[AgreementStatus, str], ...] = (("methodology", "No headline"), ("halt", "No claim"))
    for status, ends in statuses:
        named = [
            (title[:1].lower() + title[1:], m) for m in by[status] for title in (book.title(m.labels["dimension"]),)
        ]
        said += [f"{name} {_kappa_words(book, m)}, {AGREES[status]}; n = {count(m.n)}" for name, m in named]
        low += by[status]
        parts += [f"{ends} on {listing([name for name, _ in named])}."] if named else []
    return outcome("; ".join(said), " ".join(parts) or "Enough for claims on each dimension.", *(low or found))


def _effective(book: RunIndex) -> Outcome:
    item = book.one("panel.effective_judges", dimension=AGGREGATE)
    why = "Judges who err together agree without being right; that needs texts of known quality to be seen."
    if item is None:
        return absent(why)
    if item.value is None:
        return outcome(state_words(item), f"{NOT_RUN}: {why}", item, ran=False)
    judges, r, worth = item.detail.get("judges"), real(item.detail.get("r")), number(item.value, 1)
    of = f" of {judges}" if isinstance(judges, int) else ""
    errors = "" if r is None else f"; mean correlation of their errors {number(r)}"
    said = f"The agreement above is that of about {worth} independent judges."
    return with_n(f"{worth}{of}{errors}", said, [item])


# --- orders ---------------------------------------------------------------------------------------------------------


def _orders(book: RunIndex) -> Outcome:
    pairs = book.on(AGGREGATE, "pair")
    if not pairs:
        return absent("Without a test no order of agents is supported.")
    states = Counter(v.pair_state for v in pairs)
    result = (
        f"{count(len(significant(book)))} of {counted(len(pairs), 'pair')} significant at "
        f"{alpha(book.needed(AGGREGATE))} for all together. {detectable_words(book)}"
    )
    said: dict[PairState, str] = {
        "ordered": "ordered",
        "ordered-by-less-than-the-margin": "ordered by less than the margin",
        "within-the-margin": "within the margin",
        "not-resolved": "not resolved",
        "cannot-be-tested": "cannot be tested",
    }
    parts = [f"{count(states[state])} {words}" for state, words in said.items() if states[state]]
    lead = f"{book.untestable} " if book.untestable else ""
    conclusion = f"{lead}Pairs: {listing(parts)}." if parts else supported_words(pairs)
    return outcome(result, conclusion, *book.every("order.detectable"))


def _ranks(book: RunIndex) -> Outcome:
    found = book.known("rank.first", dimension=AGGREGATE)
    if not found:
        return absent("Ranks of one draw of clusters may change with the next.")
    placed, drawn = placed_agents(book), f"of {draws_words(found)}"
    said = [f"{clean(p.agent, 80)} rank {p.place} in {percent(p.shares[p.place - 1])}" for p in placed
            if p.place <= len(p.shares)]  # fmt: skip
    kept = len(book.agents) - len(placed)
    rest = f"; {plural(kept, 'agent')} share a tier" if kept else ""
    result = f"{listing(said)} {drawn}{rest}" if said else f"No agent is alone in its tier; {drawn}"
    firsts = [v for v in book.on(AGGREGATE, "first") if v.publication_level != "no-claim"]
    conclusion = " ".join(f"{clean(v.claim.subjects[0], 80)} ranks first ({v.publication_level})." for v in firsts)
    items = (book.one("rank.first", dimension=AGGREGATE, agent=p.agent) for p in placed)
    return outcome(result, conclusion or "No first rank on the overall score is supported.", *items)


def _lofo(book: RunIndex) -> Outcome:
    measured = book.known("lofo.rho", dimension=AGGREGATE)
    if not measured:
        why = "An order that one judge family makes is that family’s order, not the panel’s."
        return absent(why, book.every("lofo.rho", dimension=AGGREGATE))
    said = "; ".join(f"without judge family {clean(m.labels['dropped'], 60)} ρ {shown(m)}" for m in measured)
    # What the drops do to the significant pairs: counts, never names.
    found = [v.stability.state for v in book.on(AGGREGATE, "pair") if v.stability is not None]
    stable = found.count("stable")
    parts = [f"{count(stable)} of {counted(len(found), 'significant pair')} {'holds' if stable == 1 else 'hold'}"]
    other = {"rests-on": "need one family to be seen", "reversed-without": "turn without one"}
    parts += [f"{count(found.count(state))} {verb}" for state, verb in other.items() if state in found]
    conclusion = f"{listing(parts)}." if found else "No difference on the overall score is significant."
    return with_n(sentence(said).rstrip("."), conclusion, measured)


# --- judges alone, and the held-out one -----------------------------------------------------------------------------


def _single(book: RunIndex) -> Outcome:
    pairs, alone = book.known("single.rho", dimension=AGGREGATE), book.known("single.discoveries")
    if not pairs and not alone:
        return absent("It would show which orders and discoveries only one judge makes.")
    said, values, panel = [], [m.value or 0.0 for m in pairs], book.one("panel.discoveries")
    if values:
        said.append(f"Two judges’ orders correlate at ρ {rho_words(values)}; n = {count(pairs[0].n)} agents")
    if panel is not None and panel.value is not None:
        family = panel.detail.get("family")
        of = f" of {family}" if isinstance(family, int) else ""
        said.append(f"the panel finds {count(round(panel.value))}{of} differences significant")
    if alone:
        found = [round(m.value or 0.0) for m in alone]
        said.append(f"one judge alone {min(found)} to {max(found)}")
    extra = sum(only_alone(m) for m in alone)
    parts = ["gives another order"] if values and min(values) < book.study.stability.rho - _TOLERANCE else []
    parts += [f"finds differences that the panel does not find ({count(extra)} in all)"] if extra else []
    conclusion = "Each judge alone would have said the same here; that it would was not known without the others."
    if parts:
        conclusion = f"One judge is not enough: depending on which one is asked, it {listing(parts)}."
    return outcome("; ".join(said), conclusion, *pairs, *alone)


def _outside(book: RunIndex) -> Outcome:
    pairs, judged = book.by_name.get("probe.contrast", ()), book.known("probe.contrast")
    state, unsettled = book.one("probe.state"), "What turns with a judge family is not supported."
    if not judged:
        needless = not pairs and state is not None and state.state.startswith("not needed")
        what = "no contested pair has common cycles" if pairs else outside_state(book)
        why = "No drop turned a pair." if needless else unsettled
        return outcome(f"{NOT_RUN}: {what}", why, state, *pairs, ran=False)
    ends = [m for m in judged if m.low is not None and m.high is not None]
    different, ns = sum(finds(m) for m in ends), sorted({m.n for m in judged})
    n = count(ns[0]) if len(ns) == 1 else f"{count(ns[0])} to {count(ns[-1])}"
    said = f"{counted(len(judged), 'pair')} judged; a difference in {count(different)} and none in "
    result = [f"{said}{count(len(ends) - different)}; n = {n} {clean(judged[0].n_of, 40)} a pair"]
    result += [f"{count(len(judged) - len(ends))} without an interval"] if len(judged) > len(ends) else []
    result += [f"{counted(len(pairs) - len(judged), 'pair')} never compared"] if len(pairs) > len(judged) else []
    # What became of the pairs that were judged.
    probed = {(m.labels.get("dimension", ""), frozenset((m.labels.get("high"), m.labels.get("low")))) for m in pairs}
    found = [v for v in book.run.verdicts
             if kind_of(v.claim) == "pair" and (v.claim.dimension, frozenset(v.claim.subjects)) in probed]  # fmt: skip
    return outcome("; ".join(result), supported_words(found), state, *pairs)


# --- the texts --------------------------------------------------------------------------------------------------------


def _anchors(book: RunIndex) -> Outcome:
    measured, said = changed_anchors(book), []
    if not measured:
        return absent("A dimension on which judges disagree may only lack clear anchors.")
    for item in measured:
        flips = item.detail.get("flips")
        turned = f", {plural(flips, 'pair')} of agents turned" if isinstance(flips, int) else ""
        said.append(f"{book.title(item.labels['dimension'])} {shift_words(item)}{turned}; n = {count(item.n)}")
    conclusion = f"{anchor_answer(book)} Agreement under the other anchors was not measured by one judge."
    return outcome("; ".join(said), conclusion, *measured)


def _repetition(book: RunIndex) -> Outcome:
    labels = {"ddof": str(book.study.inference.ddof)}
    measured = book.known("noise.repetition_stability", **labels)
    if not measured:
        why = "Without repeats nobody knows how much of a score is the judge’s own noise."
        return absent(why, book.every("noise.repetition_stability", **labels), f"{NOT_RUN}: ")
    gate = book.study.gates.repetition_stability
    said = "; ".join(f"{clean(m.labels['judge'], 60)} {number(m.value or 0.0, 3)}" for m in measured)
    low = [clean(m.labels["judge"], 60) for m in measured if (m.value or 0.0) < gate - _TOLERANCE]
    conclusion = f"Averaging trials clears the gate of {number(gate)}."
    if low:
        verb = "stays" if len(low) == 1 else "stay"
        conclusion = f"{listing(low)} {verb} below {number(gate)}: averaging is not defensible."
    return with_n(said, conclusion, measured)


def _contamination(book: RunIndex) -> Outcome:
    found, said = contamination_gaps(book), []
    if not found:
        return absent("Agents may remember what happened in the earlier clusters.")
    for item in found:
        split = split_words(item)
        value = state_words(item) if item.value is None else shift_words(item)
        said.append(f"{split[:1].upper()}{split[1:]} {value}{p_of(item, 'p', ', ', '')}; n = {count(item.n)}")
    return outcome("; ".join(said), contamination_answer(book), *found)


def _terse(book: RunIndex) -> Outcome:
    found, named = terse_agents(book), mostly_terse(book)
    if not found:
        return absent("A contrast with an agent that writes briefly may be about length.")
    said = "; ".join(f"{clean(agent, 60)} {percent(m.value or 0.0)}; n = {count(m.n)}" for agent, m in found)
    which = f"Every contrast with {listing(named, last='or')}" if named else "No contrast"
    conclusion = f"{which} is sensitive to style{'' if named else ' for that reason'}."
    return outcome(f"Below {book.study.cells.terse_tokens} words: {said}", conclusion, *(m for _, m in found))


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

_EXPERIMENTS: Final[tuple[tuple[str, str, str, Callable[[RunIndex], Outcome]], ...]] = (
    ("Overall κ gate", "Do the judges agree overall?", "agreement.html", _aggregate),
    ("Per-dimension gate", "Is every dimension equally reliable?", "agreement.html", _dimensions),
    ("Order procedure", "Which differences between agents are significant?", "agents.html#board", _orders),
    ("Leave-one-family-out", "Does each order hold without any one judge family?", "stability.html#stability", _lofo),
    ("Own-family judges", "Do judges favour agents of their own maker?", "stability.html#explanations", _own_family),
    ("Equal length", "Would the differences remain at equal length?", "stability.html#explanations", _length),
    ("Dimensions told apart", "Do judges tell each dimension from their overall impression?",
     "stability.html#explanations", _distinct),
    ("Other judges", "Would other judges like these see the same order?", "stability.html#explanations", _others),
    ("Clusters in time", "Do neighbouring clusters resemble each other?", "stability.html#explanations", _time),
    ("Rank intervals and bootstrap ranks", "Which ranks are possible?", "agents.html#ranks", _ranks),
    ("Single-judge baseline", "Would one judge be enough?", "agreement.html#single", _single),
    ("Cell A", "Are long, confident and wrong texts refused?", "controls.html", partial(_cell, cell="cell_a")),
    ("Cell B", "Are short and correct texts accepted?", "controls.html", partial(_cell, cell="cell_b")),
    ("Other cells", "Do paraphrase, changed numbers, length and red-team texts move the score as they should?",
     "controls.html", _other_cells),
    ("Self-preference on control texts", "Does a judge family favour the control texts that its own family composed?",
     "controls.html", _halo),
    ("Rubric wording", "Does the score depend on how its anchors are written?", "claim-map.html#anchors", _anchors),
    ("Held-out judge", "Are the orders that a drop turns those of one judge family?",
     "stability.html#outside", _outside),
    ("Repetition stability", "May a judge’s trials be averaged?", "agreement.html#noise", _repetition),
    ("Contamination probe", "Are texts scored differently after the training cutoff?",
     "claim-map.html#contamination", _contamination),
    ("Terse tail", "Are some agents mostly in the range where short texts are penalised?", "controls.html", _terse),
    ("Effective number of judges", "How many independent judges is the panel worth?", "plan.html#panel", _effective),
)  # fmt: skip


def map_page(book: RunIndex, links: Mapping[str, str]) -> Page:
    """Every experiment as a row, with the ways to its section and to its first measurement that has a row of its own;
    then the supported orders and three probes beside the scores."""
    rows, total = [], 0
    for title, tests, href, find in _EXPERIMENTS:
        result, conclusion, ran, measured = find(book)
        ways: list[Inline] = [title.replace("κ", book.sign), " ", Linked(_WHERE[href], href)]
        link = next((links[name] for name in measured if name in links), "")
        ways += [" ", Linked("measurement", link)] if link else []
        total += ran
        row = Row((tuple(ways), tests, result, conclusion))
        off = (tuple(ways), tests, Styled(result, "gap"), (small("Why it matters: "), conclusion))
        rows.append(row if ran else Row(off, style="off"))
    levels: list[Level] = [v.publication_level for v in book.run.verdicts]
    said = [f"{count(levels.count(level))} {TAGS[level].lower()}" for level in LEVELS if level in levels]
    tally = f"Of {counted(len(levels), 'claim')}: {listing(said)}." if said else "No claim was decided."
    answer = f"{words(total).capitalize()} of {words(len(rows))} experiments were run. {tally}"
    heads = ("Experiment", "What it tests", "Result", "What follows")
    table = Table(heads, tuple(rows), summary="", stacked=True, style="map")
    sections = (gaps_section(book), anchor_section(book), style_section(book), contamination_section(book))
    return Page("claim-map.html", "Claim map", answer, sections, (table,), here="map")


def supported_words(verdicts: Sequence[Verdict]) -> str:
    """How many of some claims are supported, in words."""
    levels = [v.publication_level for v in verdicts]
    names = (("headline", "supported"), ("qualified", "only with a condition"))
    parts = [f"{count(levels.count(level))} {said}" for level, said in names if level in levels]
    if not verdicts:
        return "No claim was decided."
    total = counted(len(verdicts), "claim")
    return f"Of {total}, {listing(parts)}." if parts else f"None of {total} is supported."


MOST = 14
"""With more agents the chart has no room for its cells, and the table is alone."""

_CAPTION: Final = (
    "The agent of a row scores above the agent of a filled column. S: supported. C: only with its condition. Hatched: "
    "no supported order."
)


def gaps_section(book: RunIndex) -> Section:
    """Every supported order of every score. Only supported orders have a mark anywhere in it."""
    scored, title, agents = (
        [d for d in book.dimensions if book.on(d, "pair")],
        "Which orders are supported?",
        book.agents,
    )
    if not scored or len(agents) < 2:
        return Section("gaps", title, "No difference between two agents was tested.")
    allowed, pairs = {d: supported_orders(book, d) for d in scored}, len(agents) * (len(agents) - 1) // 2

    def said(pair: tuple[str, str], level: Level) -> str:
        return f"{clean(pair[0], 60)} above {clean(pair[1], 60)} ({TAGS[level].lower()})"

    rows, charts = list[tuple[Inline, ...]](), list[tuple[Figure]]()
    # A row for each pair that any verdict orders; the agents of a row in alphabetical order.
    for one, other in sorted({(min(pair), max(pair)) for found in allowed.values() for pair in found}):
        both = ((one, other), (other, one))
        cells = [next((said(p, allowed[d][p]) for p in both if p in allowed[d]), HATCHED) for d in scored]
        rows.append((f"{clean(one, 60)} and {clean(other, 60)}", *cells))
    place, names = {agent: row for row, agent in enumerate(agents)}, [clean(agent, 60) for agent in agents]
    for dimension in scored if len(agents) <= MOST else ():
        if found := allowed[dimension]:
            marks = {(place[high], place[low]): level for (high, low), level in found.items()}
            heading = book.title(dimension)
            desc = "; ".join(said(pair, level) for pair, level in sorted(found.items()))
            desc += f"; {plural(pairs - len(found), 'pair')} without a supported order"
            svg = heat(f"heat{len(charts)}", names, marks, f"Supported orders of agents: {heading}", desc)
            drawn = tuple((clean(high, 60), clean(low, 60), level) for (high, low), level in sorted(found.items()))
            note, values = f"{counted(len(found), 'order')} of {counted(pairs, 'pair')}", ("Above", "Below", "Level")
            charts.append((Figure(heading, "", svg, "", note=note, values=Table(values, drawn)),))
    silent = [score_words(d) for d in scored if not allowed[d]]
    none = f"No order is supported on {listing(silent, last='or')}." if silent else ""
    lead = f"{counted(sum(map(len, allowed.values())), 'order')} of {count(len(scored) * pairs)} supported."
    return section(
        "gaps", title, lead, notes([none, _CAPTION if charts else ""]),
        Beside(tuple(charts), "tri") if charts else None,
        Table(("Pair", *map(book.title, scored)), tuple(rows)) if rows else None,
    )  # fmt: skip
