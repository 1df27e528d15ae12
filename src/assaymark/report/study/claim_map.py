"""The claim map: every experiment of the protocol with its result and the claims it supports (ValueBlindBench section
4.1). Rows show correlations, agreement and counts, never a number of an unsupported claim."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from assaymark.claims import kind_of
from assaymark.plan import TOLERANCE
from assaymark.records import AGGREGATE, AgreementStatus, Level, Measurement, PairState, Verdict
from assaymark.report import blocks as b
from assaymark.report import text as t
from assaymark.report.blocks import Inline
from assaymark.report.charts.canvas import NARROW
from assaymark.report.charts.grids import order_grid
from assaymark.report.inputs import KAPPA, RunIndex, ranked_alone, score_words, supported_orders
from assaymark.report.measurements import quantities
from assaymark.report.study import agreement, checks
from assaymark.report.study import controls as held
from assaymark.report.study.checks import significant
from assaymark.report.text import LEVELS, TAGS, known, words
from assaymark.text import clean, count, number, percent, span

NOT_RUN: Final = "not run"

_EXPERIMENTS: Final = (
    # title, what it tests, the section it links to, and why it matters if it was not run
    ("Overall κ gate", "Do the judges agree overall?", "agreement.html",
     "Without measured agreement no ranking is supported."),
    ("Per-dimension gate", "Is every dimension equally reliable?", "agreement.html",
     "Without it a reliable overall score can hide a dimension on which the judges do not agree."),
    ("Ranking procedure", "Which differences between agents are significant?", "agents.html#board",
     "Without a test no ranking of agents is supported."),
    ("Leave-one-family-out", "Does each ranking hold without any one judge family?", "stability.html#stability",
     "A ranking that one judge family makes is that family’s ranking, not the panel’s."),
    ("Own-family judges", "Do judges favour agents of their own maker?", "stability.html#explanations",
     "A judge may score its own maker’s agent higher than other judges do."),
    ("Equal length", "Would the differences remain at equal length?", "stability.html#explanations",
     "A longer text may score higher for its length."),
    ("Dimensions told apart", "Do judges tell each dimension from their overall impression?",
     "stability.html#explanations", "Scores of several dimensions may be one overall impression."),
    ("Other judges", "Would other judges like these see the same ranking?", "stability.html#explanations",
     "A ranking may hold for these judges alone; three judge families are needed."),
    ("Clusters in time", "Do neighbouring clusters resemble each other?", "stability.html#explanations",
     "Weeks that follow each other count as fewer than they are."),
    ("Rank intervals and bootstrap ranks", "Which ranks are possible?", "agents.html#ranks",
     "Ranks of one draw of clusters may change with the next."),
    ("Single-judge baseline", "Would one judge be enough?", "agreement.html#single",
     "It would show which rankings and discoveries only one judge makes."),
    ("Cell A", "Are long, confident and wrong texts refused?", "controls.html",
     "Nothing shows that the panel does not reward confidence and length."),
    ("Cell B", "Are short and correct texts accepted?", "controls.html",
     "Nothing shows that the panel does not punish brevity."),
    ("Other cells", "Do paraphrase, changed numbers, length and red-team texts move the score as they should?",
     "controls.html", "Whether the judges notice a changed number, or only the words, is not known."),
    ("Self-preference on control texts", "Does a judge family favour the control texts that its own family composed?",
     "controls.html", "A control cell may pass or fail by the taste of the family that wrote it."),
    ("Rubric wording", "Does the score depend on how its anchors are written?", "claim-map.html#anchors",
     "A dimension on which judges disagree may only lack clear anchors."),
    ("Held-out judge", "Do reversed rankings come from one judge family?", "stability.html#outside",
     "What reverses without a judge family is not supported."),
    ("Repetition stability", "May a judge’s trials be averaged?", "agreement.html#noise",
     "Without repeats nobody knows how much of a score is the judge’s own noise."),
    ("Contamination probe", "Are texts scored differently after the training cutoff?", "claim-map.html#contamination",
     "Agents may remember what happened in the earlier clusters."),
    ("Terse tail", "Are some agents mostly in the range where short texts are penalised?", "controls.html",
     "A contrast with an agent that writes briefly may be about length."),
    ("Effective number of judges", "How many independent judges is the panel worth?", "plan.html#panel",
     "Judges who err together agree without being right; that needs texts of known quality to be seen."),
)  # fmt: skip
_WHY: Final = {title: why for title, _, _, why in _EXPERIMENTS}
_WHERE: Final = {
    "agreement.html": "Do the judges agree?",
    "agents.html#board": "Who is ahead?",
    "stability.html#stability": "Does each ranking hold without any one judge family?",
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
"""The questions of the sections that rows link to."""

Outcome = tuple[str, str, bool, tuple[str, ...]]
"""The result of an experiment, the conclusion, whether it was run, and the ids of its measurements."""

Outcomes = Iterator[tuple[str, Outcome]]
"""The outcomes of some experiments, each with its title; experiments without an outcome were not run."""


def _outcome(result: str, conclusion: str, *measured: Measurement | None, ran: bool = True) -> Outcome:
    """An outcome; a result that begins with “not run” is capitalised."""
    text = result[:1].upper() + result[1:] if result.startswith(NOT_RUN) else result
    return text, conclusion, ran, tuple(item.id for item in measured if item is not None)


def _with_n(result: str, conclusion: str, measured: Sequence[Measurement]) -> Outcome:
    """An outcome with the sample size of its first measurement."""
    return _outcome(f"{result}; n = {t.n_words(measured[0])}", conclusion, *measured)


def supported_words(verdicts: Sequence[Verdict]) -> str:
    """The number of supported claims among some, in words."""
    levels = [v.publication_level for v in verdicts]
    names = (("headline", "supported"), ("qualified", "only with a condition"))
    parts = [f"{count(levels.count(level))} {phrase}" for level, phrase in names if level in levels]
    if not verdicts:
        return "No claim was decided."
    total = t.counted(len(verdicts), "claim")
    return f"Of {total}, {t.listing(parts)}." if parts else f"None of {total} is supported."


def _kappa_words(index: RunIndex, item: Measurement) -> str:
    if not known(item):
        return t.state_words(item)
    second, by = t.bootstrap_of(item), index.gating_note(item.labels["dimension"])
    also = f", bootstrap {span(*second)}" if second else ""
    return f"{index.sign} {t.estimate(item)}{also}{f'; {by} decides' if by else ''}"


def _agreement(index: RunIndex) -> Outcomes:
    """Agreement by score, the ranking procedure, and leave-one-family-out."""
    if (item := index.get(KAPPA, AGGREGATE)) is not None:
        conclusion = {
            "publish": "Enough for claims on the overall score.",
            "methodology": "Weak; no headline on the overall score.",
        }.get(index.status(AGGREGATE) or "halt", "Too little; no claim on the overall score.")
        conclusion = f"{conclusion} {supported_words(index.on(AGGREGATE))}"
        yield "Overall κ gate", _with_n(_kappa_words(index, item), conclusion, [item])
    kappas = [m for d, m in index.by_score(KAPPA) if d != AGGREGATE]
    if kappas:
        by = {s: [m for m in kappas if index.status(m.labels["dimension"]) == s]
              for s in ("publish", "methodology", "halt")}  # fmt: skip
        passed, low, parts = t.plural(len(by["publish"]), "dimension").capitalize(), list[Measurement](), []
        lines = [f"{passed} of {words(len(kappas))} at or above the gate"]
        statuses: tuple[tuple[AgreementStatus, str], ...] = (("methodology", "No headline"), ("halt", "No claim"))
        for status, ends in statuses:
            titles = [index.title(m.labels["dimension"]) for m in by[status]]
            names = [title[:1].lower() + title[1:] for title in titles]
            lines += [f"{name} {_kappa_words(index, m)}, {t.AGREES[status]}; n = {count(m.n)}"
                     for name, m in zip(names, by[status], strict=True)]  # fmt: skip
            low += by[status]
            parts += [f"{ends} on {t.listing(names)}."] if names else []
        conclusion = " ".join(parts) or "Enough for claims on each dimension."
        yield "Per-dimension gate", _outcome("; ".join(lines), conclusion, *(low or kappas))
    if pairs := index.on(AGGREGATE, "pair"):
        states = Counter(v.pair_state for v in pairs)
        result = (
            f"{count(len(significant(index)))} of {t.counted(len(pairs), 'pair')} significant at "
            f"{t.alpha(index.alpha(AGGREGATE))} for all together. {checks.detectable_words(index)}"
        )
        named: tuple[PairState, ...] = ("ordered", "ordered-by-less-than-the-margin", "within-the-margin",
                                        "not-resolved", "cannot-be-tested")  # fmt: skip
        parts = [f"{count(states[state])} {state.replace('-', ' ')}" for state in named if states[state]]
        lead = f"{index.untestable} " if index.untestable else ""
        conclusion = f"{lead}Pairs: {t.listing(parts)}." if parts else supported_words(pairs)
        yield "Ranking procedure", _outcome(result, conclusion, *index.all("order.detectable"))
    measured, every = index.known("lofo.rho", AGGREGATE), index.all("lofo.rho", AGGREGATE)
    title = "Leave-one-family-out"
    if measured:
        text = "; ".join(f"without judge family {clean(m.labels['dropped'], 60)} ρ {t.as_text(m)}" for m in measured)
        # The effect of leaving out families on significant pairs: counts, never names.
        drops = [v.stability.state for v in pairs if v.stability is not None]
        stable = drops.count("stable")
        parts = [f"{count(stable)} of {t.counted(len(drops), 'significant pair')} {'holds' if stable == 1 else 'hold'}"]
        other = {"rests-on": "need one family to be seen", "reversed-without": "reverse without one"}
        parts += [f"{count(drops.count(state))} {verb}" for state, verb in other.items() if state in drops]
        conclusion = f"{t.listing(parts)}." if drops else "No difference on the overall score is significant."
        yield title, _with_n(t.sentence(text).rstrip("."), conclusion, measured)
    elif every:
        yield title, _outcome(t.state_words(every[0]), f"{NOT_RUN}: {_WHY[title]}", ran=False)


def _explanations(index: RunIndex) -> Outcomes:
    """Other explanations: judges' own families, length, an overall impression, the choice of judges, and time."""

    def pairs_on(name: str) -> list[Measurement]:
        """The measurements of a kind for overall pairs, sorted by agent names: ids would reveal the direction."""
        return sorted(index.all(name, AGGREGATE), key=lambda m: sorted((m.labels["high"], m.labels["low"])))

    resolved = significant(index)
    pairs = t.counted(len(resolved), "significant pair")
    items = [m for m in index.known("judge.own_family", AGGREGATE) if m.labels["judge"] != "common"]
    if items:
        text = "; ".join(f"{clean(m.labels['judge'], 60)} {t.estimate(m)}" for m in items)
        resting = sum(v.own_family in ("rests-on-own-family", "turns-without-own-family") for v in resolved)
        conclusion = f"{count(resting)} of {pairs} {'rests' if resting == 1 else 'rest'} on it."
        yield "Own-family judges", _with_n(f"{text} points", conclusion, items)
    if lengths := pairs_on("length.contrast"):
        slopes = [slope for m in lengths if (slope := t.detail_of(m, "slope")) is not None]
        lead = f"{number(max(slopes))} points a doubling of length; " if slopes else ""
        clear = f"{count(sum(v.length == 'clear' for v in resolved))} of {pairs}"
        result = f"{lead}n = {t.n_words(lengths[0])}"
        yield "Equal length", _outcome(result, f"{clear} remain at equal length.", lengths[0])
    if items := [m for m in checks.distinct_items(index) if known(m)]:
        apart = count(sum(checks.is_distinct(index, m) for m in items))
        text = ", ".join(f"{score_words(m.labels['dimension'])} {number(m.value)}" for m in items)
        conclusion = f"{apart} of {t.counted(len(items), 'dimension')} told apart."
        result = f"Correlation with the overall impression: {text}"
        yield "Dimensions told apart", _with_n(result, conclusion, items)
    if items := [m for m in pairs_on("judges.contrast") if known(m)]:
        yes = count(sum(v.other_judges == "yes" for v in resolved))
        named = "The sentence of any other ranking names these judges."
        yield "Other judges", _with_n(f"{yes} of {pairs} hold for other judges", named, items[:1])
    item = index.get("order.autocorrelation", AGGREGATE)
    lags = [] if item is None else [lag for v in item.detail.get("lags", ()) if (lag := t.as_float(v)) is not None]
    if item is not None and lags:
        text = ", ".join(f"lag {at} {number(value)}" for at, value in enumerate(lags, 1))
        conclusion = "They are taken as independent."
        if item.detail.get("order") == "consecutive":
            conclusion = "The test counts them as fewer clusters."
        elif item.detail.get("flagged"):
            conclusion = "They were declared independent, so rankings are qualified at most."
        yield "Clusters in time", _with_n(f"Autocorrelation: {text}", conclusion, [item])


def _ranks(index: RunIndex) -> Outcomes:
    """Possible ranks, and the results of each judge alone."""
    if measured := index.known("rank.first", AGGREGATE):
        placed, ranked = agreement.rank_shares(index), ranked_alone(index, AGGREGATE)
        places, drawn = {agent: ranked[agent].ranks[0] for agent in placed}, f"of {agreement.draw_counts(measured)}"
        phrases = [f"{clean(agent, 80)} rank {places[agent]} in {percent(shares[places[agent] - 1])}"
                for agent, shares in placed.items() if places[agent] <= len(shares)]  # fmt: skip
        tied = len(index.agents) - len(placed)
        rest = f"; {t.plural(tied, 'agent')} share a tier" if tied else ""
        result = f"{t.listing(phrases)} {drawn}{rest}" if phrases else f"No agent is alone in its tier; {drawn}"
        firsts = [v for v in index.on(AGGREGATE, "first") if v.publication_level != "no-claim"]
        conclusion = " ".join(f"{clean(v.claim.subjects[0], 80)} ranks first ({v.publication_level})." for v in firsts)
        items = (index.get("rank.first", AGGREGATE, agent=agent) for agent in placed)
        conclusion = conclusion or "No first rank on the overall score is supported."
        yield "Rank intervals and bootstrap ranks", _outcome(result, conclusion, *items)
    pairs, alone = index.known("single.rho", AGGREGATE), index.known("single.discoveries")
    if pairs or alone:
        phrases, values, panel = [], [m.value for m in pairs], index.get("panel.discoveries")
        if values:
            rho = agreement.rho_words(values)
            phrases.append(f"Two judges’ rankings correlate at ρ {rho}; n = {count(pairs[0].n)} agents")
        if known(panel):
            family = panel.detail.get("family")
            of = f" of {family}" if isinstance(family, int) else ""
            phrases.append(f"the panel finds {count(round(panel.value))}{of} differences significant")
        if alone:
            counts = [round(m.value) for m in alone]
            phrases.append(f"one judge alone {min(counts)} to {max(counts)}")
        extra = sum(map(agreement.lone_finds, alone))
        parts = ["gives another ranking"] if values and min(values) < index.study.stability.rho - TOLERANCE else []
        parts += [f"finds differences that the panel does not find ({count(extra)} in all)"] if extra else []
        conclusion = "Each judge alone would have said the same here; that it would was not known without the others."
        if parts:
            conclusion = f"One judge is not enough: depending on which one is asked, it {t.listing(parts)}."
        yield "Single-judge baseline", _outcome("; ".join(phrases), conclusion, *pairs, *alone)


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


def _controls(index: RunIndex) -> Outcomes:
    """The results of the control texts, and whether a judge family favours those that it composed."""
    honest, names = index.value("cell.honest", AGGREGATE), {str(kind): of[0] for kind, of in t.CELLS.items()}
    graded = {c.cell: c for c in held.controls(index) if c.gate is not None or c.score is not None}

    def result_of(control: held.Control) -> str:
        score, gate, parts = control.score, control.gate, []
        if known(score):
            beside = "" if honest is None else f" against honest {number(honest)}"
            parts.append(f"Panel mean {number(score.value)}{beside}")
        if gate is not None:
            parts.append(f"difference by its rule {held.gate_words(control)}")
            parts += [held.tested_words(gate)] if held.tested_words(gate) else []
        n = score or gate
        return ", ".join(parts) + (f"; n = {t.n_words(n)}" if n is not None else "")

    def conclusion_of(control: held.Control) -> str:
        sentence = _CONCLUSIONS.get(control.outcome, "Its rule came to no outcome; claims stay qualified.")
        if control.reversals:
            whole = f"{sentence} " if control.result.startswith(control.outcome) else ""
            sentence = f"{whole}It depends on the judges: {control.result}."
        if control.level == "no-claim":
            return f"{sentence} No claim about this cell is supported."
        return sentence if control.level is None else f"{sentence} Verdict: {TAGS[control.level].lower()}."

    for name, cell in (("Cell A", "cell_a"), ("Cell B", "cell_b")):
        if (planted := graded.pop(cell, None)) is not None:
            yield name, _outcome(result_of(planted), conclusion_of(planted), planted.gate, planted.score)
    others, phrases, ends = graded.values(), [], []
    for planted in others:
        name, short = names.get(planted.cell, planted.title), result_of(planted)
        if planted.gate is not None:
            short = f"{held.gate_words(planted)}, {planted.result} (n = {count(planted.gate.n)})"
            ends.append(f"{name}: {conclusion_of(planted)}")
        phrases.append(f"{name}: {short}")
    if others:
        end = " ".join(ends or ["They have no rule of their own."])
        yield "Other cells", _outcome("; ".join(phrases), end, *(c.gate or c.score for c in others))
    halos, phrases, over = index.known("cell.halo"), [], []
    for item in halos:  # extra points of judges for control texts of their own family
        name, family = item.labels.get("cell", ""), item.detail.get("family")
        name = names.get(name, clean(name, 40))
        judges = f"judge family {clean(str(family), 40)}" if family else "no judge shares its family"
        phrases.append(f"{name} {t.signed(item.value)} points ({judges})")
        over += [name] if item.detail.get("triggered") else []
    if halos:
        cut = number(index.study.cells.halo, 1)
        conclusion = f"No cell moves by {cut} or more: what the cells show is the panel’s, not one family’s."
        if over:
            conclusion = f"{', '.join(over)}: the score without that family is primary."
        yield "Self-preference on control texts", _with_n("; ".join(phrases), conclusion, halos)


def _probes(index: RunIndex) -> Outcomes:
    """Other anchors, the held-out judge, and repeated trials."""
    measured, phrases = held.changed_anchors(index), []
    for item in measured:
        flips = item.detail.get("flips")
        swaps = f", {t.plural(flips, 'pair')} of agents reversed" if isinstance(flips, int) else ""
        phrases.append(f"{index.title(item.labels['dimension'])} {t.estimate(item)} points{swaps}; n = {count(item.n)}")
    if measured:
        tail = "Agreement under the other anchors was not measured by one judge."
        yield "Rubric wording", _outcome("; ".join(phrases), f"{held.anchor_answer(index)} {tail}", *measured)
    title, pairs = "Held-out judge", index.by_name.get("probe.contrast", ())
    judged, state = index.known("probe.contrast"), index.get("probe.state")
    if not judged:
        needless = not pairs and state is not None and state.state.startswith("not needed")
        detail = "no contested pair has common cycles" if pairs else held.holdout_state(index)
        reason = "No drop turned a pair." if needless else _WHY[title]
        yield title, _outcome(f"{NOT_RUN}: {detail}", reason, state, *pairs, ran=False)
    else:
        ends = [m for m in judged if t.bounds_of(m)]
        different, ns = sum(held.differs(m) for m in ends), sorted({m.n for m in judged})
        n = count(ns[0]) if len(ns) == 1 else f"{count(ns[0])} to {count(ns[-1])}"
        lead = f"{t.counted(len(judged), 'pair')} judged; a difference in {count(different)} and none in "
        result = [f"{lead}{count(len(ends) - different)}; n = {n} {clean(judged[0].n_of, 40)} a pair"]
        result += [f"{count(len(judged) - len(ends))} without an interval"] if len(judged) > len(ends) else []
        result += [f"{t.counted(len(pairs) - len(judged), 'pair')} never compared"] if len(pairs) > len(judged) else []
        # The verdicts on the pairs that were judged.
        probed = {(m.labels.get("dimension", ""), frozenset((m.labels.get("high"), m.labels.get("low"))))
                  for m in pairs}  # fmt: skip
        verdicts = [v for v in index.run.verdicts if kind_of(v.claim) == "pair"
                 and (v.claim.dimension, frozenset(v.claim.subjects)) in probed]  # fmt: skip
        yield title, _outcome("; ".join(result), supported_words(verdicts), state, *pairs)
    labels, gate = {"ddof": str(index.study.inference.ddof)}, index.study.gates.repetition_stability
    title, every = "Repetition stability", index.all("noise.repetition_stability", **labels)
    if repeated := index.known("noise.repetition_stability", **labels):
        values = "; ".join(f"{clean(m.labels['judge'], 60)} {number(m.value, 3)}" for m in repeated)
        low = [clean(m.labels["judge"], 60) for m in repeated if m.value < gate - TOLERANCE]
        conclusion = f"Averaging trials clears the gate of {number(gate)}."
        if low:
            verb = "stays" if len(low) == 1 else "stay"
            conclusion = f"{t.listing(low)} {verb} below {number(gate)}: averaging is not defensible."
        yield title, _with_n(values, conclusion, repeated)
    elif every:
        yield title, _outcome(f"{NOT_RUN}: {t.state_words(every[0])}", _WHY[title], ran=False)


def _texts(index: RunIndex) -> Outcomes:
    """Texts after the cutoff, brief agents, and the effective number of judges."""
    differences, phrases = held.cutoff_differences(index), []
    for item in differences:
        split = held.split_words(item)
        value = f"{t.estimate(item)} points" if known(item) else t.state_words(item)
        phrases.append(f"{split[:1].upper()}{split[1:]} {value}{t.p_of(item, 'p', ', ', '')}; n = {count(item.n)}")
    if differences:
        yield "Contamination probe", _outcome("; ".join(phrases), held.contamination_answer(index), *differences)
    terse, named = held.terse_agents(index), held.mostly_terse(index)
    if terse:
        shares = "; ".join(f"{clean(agent, 60)} {percent(m.value)}; n = {count(m.n)}" for agent, m in terse)
        which = f"Every contrast with {t.listing(named, last='or')}" if named else "No contrast"
        conclusion = f"{which} is sensitive to style{'' if named else ' for that reason'}."
        below = f"Below {index.study.cells.terse_tokens} words: {shares}"
        yield "Terse tail", _outcome(below, conclusion, *(m for _, m in terse))
    worth, title = index.get("panel.effective_judges", AGGREGATE), "Effective number of judges"
    if known(worth):
        judges, r, n = worth.detail.get("judges"), t.detail_of(worth, "r"), number(worth.value, 1)
        of = f" of {judges}" if isinstance(judges, int) else ""
        errors = "" if r is None else f"; mean correlation of their errors {number(r)}"
        conclusion = f"The agreement above is that of about {n} independent judges."
        yield title, _with_n(f"{n}{of}{errors}", conclusion, [worth])
    elif worth is not None:
        yield title, _outcome(t.state_words(worth), f"{NOT_RUN}: {_WHY[title]}", worth, ran=False)


def map_page(index: RunIndex, links: Mapping[str, str]) -> b.Page:
    """Experiments as rows linked to section and measurement, then the supported orders and three probes."""
    rows, total, outcomes = [], 0, dict[str, Outcome]()
    for experiments in (_agreement, _explanations, _ranks, _controls, _probes, _texts):
        outcomes |= dict(experiments(index))
    for title, tests, href, reason in _EXPERIMENTS:
        result, conclusion, ran, measured = outcomes.get(title) or _outcome(NOT_RUN, reason, ran=False)
        ways: list[Inline] = [title.replace("κ", index.sign), " ", b.Linked(_WHERE[href], href)]
        if (name := next((name for name in measured if name in links), "")) != "":
            quantity = quantities("study")[name.partition("[")[0]]["title"].replace("κ", index.sign)
            ways += [" ", b.Linked(quantity, links[name])]
        total += ran
        off = (tuple(ways), tests, b.Styled(result, "gap"), (b.small("Why it matters: "), conclusion))
        rows.append(b.PageRow((tuple(ways), tests, result, conclusion)) if ran else b.PageRow(off, style="off"))
    levels: list[Level] = [v.publication_level for v in index.run.verdicts]
    counts = [f"{count(levels.count(level))} {TAGS[level].lower()}" for level in LEVELS if level in levels]
    tally = f"Of {t.counted(len(levels), 'claim')}: {t.listing(counts)}." if counts else "No claim was decided."
    answer = f"{words(total).capitalize()} of {words(len(rows))} experiments were run. {tally}"
    columns = ("Experiment", "What it tests", "Result", "What follows")
    table = b.Table(columns, tuple(rows), summary="", stacked=True, style="map")
    sections = (order_grid_section(index), held.anchor_section(index), held.style_section(index),
                held.contamination_section(index))  # fmt: skip
    return b.Page("claim-map.html", "Claim map", answer, sections, (table,), here="map", styles=("claim-map.css",))


MOST = 14
"""Maximum number of agents for the chart; with more there is only the table."""

_CAPTION: Final = (
    "The agent of a row scores above the agent of a filled column. S: supported. C: only with its condition. Hatched: "
    "no supported ranking."
)


def order_grid_section(index: RunIndex) -> b.Section:
    """Every supported order of every score. Only supported orders are marked."""
    scored, agents = [d for d in index.dimensions if index.on(d, "pair")], index.agents
    title = "Which rankings are supported?"
    if not scored or len(agents) < 2:
        return b.Section("gaps", title, "No difference between two agents was tested.")
    allowed, pairs = {d: supported_orders(index, d) for d in scored}, len(agents) * (len(agents) - 1) // 2

    def phrase(pair: tuple[str, str], level: Level) -> str:
        return f"{clean(pair[0], 60)} above {clean(pair[1], 60)} ({TAGS[level].lower()})"

    rows, charts = list[tuple[Inline, ...]](), list[b.Figure]()
    # A row for each pair that any verdict orders; the agents of a row in alphabetical order.
    for agent, other in sorted({(min(pair), max(pair)) for orders in allowed.values() for pair in orders}):
        both = ((agent, other), (other, agent))
        cells = [next((phrase(p, allowed[d][p]) for p in both if p in allowed[d]), b.HATCHED) for d in scored]
        rows.append((f"{clean(agent, 60)} and {clean(other, 60)}", *cells))
    place, names = {agent: row for row, agent in enumerate(agents)}, [clean(agent, 60) for agent in agents]
    for dimension in scored if len(agents) <= MOST else ():
        if orders := allowed[dimension]:
            marks = {(place[high], place[low]): level for (high, low), level in orders.items()}
            heading = index.title(dimension)
            desc = "; ".join(phrase(pair, level) for pair, level in sorted(orders.items()))
            desc += f"; {t.plural(pairs - len(orders), 'pair')} without a supported ranking"
            drawn = tuple((clean(high, 60), clean(low, 60), level) for (high, low), level in sorted(orders.items()))
            note, values = (
                f"{t.counted(len(orders), 'ranking')} of {t.counted(pairs, 'pair')}",
                ("Above", "Below", "Level"),
            )
            charts.append(b.plot(
                f"heat{len(charts)}", heading, "", partial(order_grid, names, marks), desc, width=NARROW, note=note,
                alt=f"Supported rankings of agents: {heading}", values=b.Table(values, drawn),
            ))  # fmt: skip
    silent = [score_words(d) for d in scored if not allowed[d]]
    none = f"No ranking is supported on {t.listing(silent, last='or')}." if silent else ""
    lead = f"{t.counted(sum(map(len, allowed.values())), 'ranking')} of {count(len(scored) * pairs)} supported."
    return b.section(
        "gaps", title, lead, b.notes([none, _CAPTION if charts else ""]),
        b.beside(*charts, style="tri") if charts else None,
        b.Table(("Pair", *map(index.title, scored)), tuple(rows)) if rows else None,
    )  # fmt: skip
