"""Datasheets as pages and figures: self-contained, escaped, without network access, sorted only by name.

The page of a judge, its summary as one picture, and the page of several judges, on which nothing is a ranking."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape
from typing import Final

from assaymark.errors import InputError, Problem
from assaymark.metrology.datasheet import BASE, STRICT, Datasheet, chip_words
from assaymark.records import AGGREGATE, Measurement, duplicates
from assaymark.report import blocks as b
from assaymark.report.charts import canvas as c
from assaymark.report.charts.canvas import HALF, WIDE, Drawn, Element, JudgeWords, element, label, line, num, rect
from assaymark.report.charts.datasheet import small_curve, small_segment
from assaymark.report.datasheet import reading as r
from assaymark.report.datasheet import sections as sec
from assaymark.report.page import ALONE, JUDGES, Frame, Link, Site, asset
from assaymark.report.records.calls import Lineage
from assaymark.report.text import counted, fit, interval_of, known, listing, n_words, short_hash, shortened, text_width
from assaymark.text import clean, count, number, percent, prose

COMPARISON: Final = "datasheets.html"
FOOT: Final = (
    "Every number is a measurement with its denominator, interval and method. Nothing on this page ranks judges."
)
NO_SKETCH: Final = "No sketch: its rules are about built texts whose quality is known."
"""Shown in place of the summary chips for a log."""

PEERS: Final = 4
_UNDEFINED: Final = "Undefined values are named, never shown as zero."
_STYLES: Final = ("datasheet.css", "datasheet-marks.css", "judges.css")
_LED: Final = 2.0
_GATES: Final = "dominance, length, leakage, both orders, duplicates"


# --- the head of a datasheet: the judge in plain words with counts first, chips by stated rules, and the judge card ---


def profile_lines(sheet: r.DatasheetIndex) -> list[b.Inline]:
    """The judge in plain words, counts first; each count links to its row."""
    log, lines = sheet.is_log, list[b.Inline]()

    def counts(share: Measurement) -> b.Inline:
        return b.strong_link(sheet.link(share, r.of_n(share)))

    dark = sheet.get_base("dark_current")
    if known(dark):
        shown, still = "one text in both slots" if log else "nothing to choose between", "still " * bool(r.hits(dark))
        lines.append((f"Given {shown}, it {still}chose in ", counts(dark), " calls."))
    elif not log:
        lines.append(r.missing_words(dark, "what it does with nothing to choose between"))
    raw = sheet.part("raw")
    if not known(raw):
        lines.append(r.missing_words(raw, "preference" if log else "preference between equal texts"))
    else:
        source = "Of the pairs in the log" if log else "Between equal texts"
        # The mechanism, with the pairs that show it; nothing without the decomposition.
        reason: b.Inline = ""
        stable, positional, one_sided, *_ = sec.pair_counts(sheet)
        if known(sheet.part("stable")) and stable + positional + one_sided:
            basis = "what was said" if log else "how it was worded"
            before, strong, after = "partly for ", f"its position and partly for {basis}", ""
            if one_sided > stable + positional:
                before, strong, after = "mostly in ", "one of the two orders", " only"
            elif positional >= _LED * stable and positional:
                before, strong, after = "mostly for ", "its position", f", not for {basis}"
            elif stable >= _LED * positional and stable:
                before, strong, after = "mostly for ", basis, ", not for its position"
            shares = f"{count(positional)} by position, {count(stable)} by text, {count(one_sided)} in one order only"
            reason = f", {before}", b.bold(strong), f"{after} (pairs: {shares})"
        lines.append((f"{source} it preferred one in ", counts(raw), " calls", reason, "."))
    # The share of calls that name the better text, if the log labels that.
    calls, pairs = sheet.get_base("truth.accuracy"), sheet.get_base("truth.both")
    if known(calls):
        between = interval_of(calls, lambda low, high: f"{percent(low)} to {percent(high)}, clustered by question")
        both: b.Inline = (", and in both orders of ", counts(pairs), " pairs") if known(pairs) else ""
        lines.append(("It named the better text in ", counts(calls), f" calls{between}", both, "."))
    noticed = sheet.steps("sensitivity", sheet.base).get(sec.ONE)
    if noticed is not None:
        lines.append(("It noticed one missing requirement in ", counts(noticed), " calls."))
    strict, noticed = sheet.part("raw", STRICT), sheet.steps("sensitivity", STRICT).get(sec.ONE)
    if known(strict) and noticed is not None and known(raw) and sheet.base != STRICT:
        opening = "Told to be strict about ties, it preferred one of two equal texts in "
        lines.append((opening, counts(strict), " calls and noticed the missing requirement in ", counts(noticed), "."))
    if floors := [m.value for m in sheet.known("point.vacuum_score")]:
        lowest = number(min(floors)) + (f" to {number(max(floors))}" if len(floors) > 1 else "")
        by = ", by dimension" if len(floors) > 1 else ""
        lines.append(("Scoring one text at a time, it gave an empty one ", b.bold(lowest), f" points{by}."))
    if invalid := [m for m in sheet.all("pair.invalid_share") if m.value]:
        bad, every = sum(map(r.hits, invalid)), sum(m.n for m in invalid)
        share = f" replies could not be used ({percent(bad / every, 1)})."
        lines.append((b.bold(f"{count(bad)} of {count(every)}"), share))
    return list(filter(None, lines))


def chips(sheet: r.DatasheetIndex) -> list[tuple[str, str]]:
    """A word about each axis and the rule that chose it; empty for a log."""
    return [] if sheet.is_log else [chip_words(text) for text in sheet.sheet.sketch]


def facts_of(sheet: r.DatasheetIndex) -> tuple[tuple[str, b.Inline], ...]:
    """The judge card: model, prompts, texts, calls and gates."""
    record = sheet.sheet
    print_ = f"fingerprint {short_hash(clean(record.fingerprint))}" if record.fingerprint else "no fingerprint given"
    family = f"family {clean(record.family, 60)}, " if record.family else ""
    facts = [("Model", b.with_note(clean(record.model, 80) or "not stated", f"{family}{print_}"))]
    if sheet.is_log:
        facts.append(("Prompt", b.with_note("that of the log", "not stated")))
    for arm in () if sheet.is_log else record.arms or tuple(record.prompts):
        sha = record.prompts.get(arm, "")
        facts.append(("Prompt", b.with_note(r.arm_words(arm), short_hash(clean(sha)) if sha else "no hash given")))
    tasks = counted(record.tasks, "question" if sheet.is_log else "task")
    if sheet.is_log:
        quality = "their quality is not known, and no manifest names them"
        quality = "a column says which is better" if sheet.known("truth.accuracy") else quality
        facts.append(("Texts", b.with_note(tasks, f"of a log: {quality}")))
        if log := record.log:  # its source, the rows that were read, and the meaning of its labels
            chosen = [f"{name} = {' or '.join(map(str, values))}" for name, values in log["filters"].items()]
            rows = f"{count(log['rows'])}, {count(log['filtered'])} filtered, {count(log['duplicates'])} repeated"
            sha = f"{log['format']}, sha256 {short_hash(log['sha256'])}"
            facts += [("File", b.with_note(clean(log["file"], 80), sha)),
                      ("Rows", b.with_note(rows, clean("; ".join([*chosen, *log["said"]]), 400))),
                      ("Labels", b.with_note(clean(log["reading"], 300)))]  # fmt: skip
    else:
        manifest = f"manifest {short_hash(clean(record.manifest))}" if record.manifest else "no manifest given"
        facts.append(("Texts", b.with_note(tasks, manifest)))
    invalid = record.calls.get("invalid", 0)
    total = record.calls.get("all", sum(n for key, n in record.calls.items() if key != "all"))
    facts.append(("Calls", b.with_note(count(total), f"{count(invalid)} without a usable reply")))
    gates = ("5 of 5 passed", f"before the first call: {_GATES}") if record.manifest else ("not recorded", "")
    facts.append(("Gates", b.with_note(*(("not applied", "gates are for built texts") if sheet.is_log else gates))))
    return tuple(facts)


# --- the summary as one standalone picture, legible at 1120 px and printable in greyscale -----------------------------


_MARGIN: Final = 24.0
_TOKEN: Final = re.compile(r"--([a-z0-9]+):(#[0-9a-f]{3,6})")


def summary_svg(sheet: r.DatasheetIndex, figures: JudgeFigures, marks: str, page: str) -> str:
    """The summary as one picture: profile, axes map, curve, decomposition, operating points, scatter, null pairs."""
    record, (preference, sensitivity) = sheet.sheet, figures
    # An even number of figures, without those that a log cannot give.
    plots = preference
    if not sheet.is_log:
        plots = (preference[0], sensitivity[0], preference[1], sensitivity[1], *preference[2:])
    # The styles with literal colours; dark and forced colours apply to pages only.
    light = re.sub(r"@media[^{]+\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}", "", f"{page}\n{marks}")
    tokens, style = dict(_TOKEN.findall(light)), re.sub(r":root\{[^}]*\}", "", light)
    style = re.sub(r"var\(--([a-z0-9]+)\)", lambda match: tokens[match[1]], style)
    parts: list[Element] = [element("style", style), rect(-_MARGIN, -_MARGIN, 9999, 9999, "paper")]
    # Name, instrument and profile.
    facts = [
        clean(record.model, 60), counted(record.tasks, "question" if sheet.is_log else "task"),
        f"{count(record.calls.get('all', 0))} calls, {count(record.calls.get('invalid', 0))} unusable",
        f"texts {short_hash(clean(record.manifest))}" if record.manifest else "",
    ]  # fmt: skip
    parts.append(label(0, 24, fit(sheet.name, WIDE * 0.9, 26), "big"))
    parts.append(label(0, 46, fit(" · ".join(filter(None, facts)), WIDE, 13), "t2"))
    texts = [*map(b.plain, profile_lines(sheet)), "; ".join(word for word, _ in chips(sheet))]
    texts += [NO_SKETCH if sheet.is_log else "", sec.flip_note(sheet)]
    y, titled = 72.0, list[str]()
    for row in (row for text in filter(None, texts) for row in _wrapped(text, WIDE, 15)):
        parts.append(label(0, y, row, "say"))
        y += 20
    y += 14
    for pair in zip(plots[::2], plots[1::2], strict=True):
        # Both figures start below the longer of the two captions.
        captions = [_wrapped(plot.caption, HALF, 12) if plot.draw else [] for plot in pair]
        head, heights = 34.0 + 16 * max(map(len, captions)), list[float]()
        for x, plot, caption in zip((0.0, float(WIDE - HALF)), pair, captions, strict=True):
            parts += [line(x, y, x + HALF, y, "rule2"), label(x, y + 20, fit(plot.title, HALF, 15), "head")]
            if plot.draw is None:
                parts.append(rect(x + 1, y + 34, HALF - 2, 60, "void"))
                for at, row in enumerate(_wrapped(plot.caption, HALF - 32, 13)[:3]):
                    parts.append(label(x + 16, y + 58 + 17 * at, row, "t2"))
                heights.append(110.0)
                titled.append(f"{plot.title}: {plot.caption}")
                continue
            parts += [label(x, y + 38 + 16 * at, row, "tk") for at, row in enumerate(caption)]
            plotted, tall = plot.draw(f"s{len(titled)}", HALF)
            parts.append(element("g", plotted, transform=f"translate({num(x)} {num(y + head)})"))
            heights.append(tall + head)
            titled.append(f"{plot.title}: {plot.desc}")
        y += max(heights) + 28
    foot = (
        "Crosses and bars are intervals; peers are drawn for scale. It describes this judge; it does not rank judges."
    )
    parts += [line(0, y, WIDE, y, "hair"), label(0, y + 22, foot, "tk")]
    title = element("title", escape(f"{sheet.name}: summary of its datasheet"), id="t")
    parts = [title, element("desc", escape(". ".join(titled)), id="d"), *parts]
    box = -_MARGIN, -_MARGIN, WIDE + 2 * _MARGIN, y + 36 + 2 * _MARGIN
    return c.picture(box, parts, "fig", alone=True, role="img", aria_labelledby="t d")


def _wrapped(text: str, width: float, size: float) -> list[str]:
    """A text split into lines of at most ``width``."""
    rows: list[str] = []
    for word in text.split(" "):
        if rows and text_width(f"{rows[-1]} {word}", size) <= width:
            rows[-1] = f"{rows[-1]} {word}"
        else:
            rows.append(fit(word, width, size))
    return rows


# --- the page of one judge --------------------------------------------------------------------------------------------


_ABSENT: Final = (
    ("dark_current", "Preference between identical texts",
     "the log has no calls in which there was nothing to choose between"),
    ("graded_vacuum", "Preference between nearly identical texts", "no such pairs were shown"),
    ("sensitivity", "Sensitivity and detection threshold",
     "which text of a pair is better, and by how much, is not known"),
    ("criterion.shift", "The effect of a strict instruction", "the log has one instruction"),
    ("filler.preference", "Filler preference", "no padded texts were shown"),
)  # fmt: skip


def judge_page(
    sheet: r.DatasheetIndex, figures: JudgeFigures, fit: Sequence[r.DatasheetIndex],
    unfit: Sequence[r.DatasheetIndex], every: b.Table, *, up: bool,
) -> b.Page:  # fmt: skip
    """The page of one judge; ``every`` is the table of all measurements, on a separate page if it is long."""
    log, manifest, (preference, seeing) = sheet.is_log, sheet.sheet.manifest, figures
    planted, ladder = sec.planted_section(sheet), sec.ladder_table(sheet)
    # Quantities that a log cannot give, each with the reason.
    absent = [(subject, reason) for name, subject, reason in _ABSENT if log and not sheet.known(name)]
    quiet = "How do preferences change when the order is swapped?" if log else "Does it choose where texts are equal?"
    slot = sheet.part("slot_1_share")
    notes = [f"Position 1 won {r.of_n(slot)} pairs in which one position won both orders."] if known(slot) else []
    if len(fit) > PEERS:
        others = listing([peer.name for peer in fit[PEERS:]])
        notes.append(f"Figures draw four peers, by name; not drawn: {clean(others, 300)}.")
    if unfit:
        subject = "another log or instruction" if log else "other texts or under another prompt"
        notes.append(f"Measured on {subject}, so not drawn here: {clean(listing([one.name for one in unfit]), 300)}.")
    blocks: tuple[b.Block, ...] = (b.beside(*preference), *b.notes(notes))
    sections = [b.Section("quiet", quiet, sec.preference_answer(sheet), blocks)]
    if seeing:
        rates = (replace(ladder, summary="All rates, step by step and instruction by instruction"),) if ladder else ()
        blocks = (b.beside(*seeing), *rates)
        sections.append(b.Section("seeing", "Which differences does it notice?", sec.sensitivity_answer(sheet), blocks))
    sections += sec.topic_sections(sheet)
    if absent:
        lines = tuple((b.bold(subject), f": not measured, {reason}.") for subject, reason in absent)
        lead = "Not measured, because it needs texts that were built for it."
        sections.append(b.Section("absent", "What can a log not tell?", lead, (b.Items(lines),)))
    sections += [planted] if planted else []
    size = counted(len(every.rows), "measurement")
    here, none = sheet.rows_page == sheet.page, b.Prose("No measurement is in this datasheet.")
    rows = (
        b.Group(f"Show {size}", (every,), folded="phone") if here else b.Prose(b.Linked(f"All {size}", sheet.rows_page))
    )
    sections.append(b.Section("every", "Every measurement", _UNDEFINED, (rows if every.rows else none,)))
    not_claimed = b.Items(tuple(prose(text, 400) for text in sheet.sheet.non_claims))
    heading = f"What this {'page' if log else 'datasheet'} does not claim"
    sections.append(b.Section("non-claims", heading, blocks=(not_claimed,)))
    short = {
        "quiet": "Pairs" if absent else "Equal texts", "seeing": "Differences", "pointwise": "One text",
        "people": "People", "repeat": "Repeats", "drift": "Drift", "every": "Every measurement",
        "non-claims": "Not claimed",
    }  # fmt: skip
    notice: b.Inline = ""
    if planted:
        rule = f"A rule with planted flaws. {planted.lead} "
        notice = b.bold("Built-in judge. "), rule, b.Linked("Planted and measured", f"{sheet.page}#planted")
    # The judge in plain words, next to its card.
    words, sketch = tuple((sentence, " ") for sentence in profile_lines(sheet)), chips(sheet)
    profile: list[b.Block] = [b.Prose(words or "Nothing was measured.", "profile")]
    if sketch:
        rules = b.Items(tuple((b.bold(word), f". Rule: {rule}" if rule else "") for word, rule in sketch))
        profile.append(b.Items(tuple(word for word, _ in sketch), "chips"))
        profile.append(b.Group("Sketch by stated rules, descriptive only", (rules,), folded="closed"))
    figure = b.Linked("Summary as one figure (SVG)", sheet.page.removesuffix(".html") + ".svg")
    profile += b.notes((NO_SKETCH if log else "", sec.flip_note(sheet), figure))
    card = b.Group("The judge", (b.Terms(facts_of(sheet), wide=False),), level=2)
    lede = "A datasheet of one judge under stated prompts and one set of texts."
    of = f"texts {short_hash(clean(manifest))}" if manifest else "verdicts of a log" if log else "no manifest"
    if log:
        lede = "Measured from verdicts that were made elsewhere, on texts of unknown quality."
    return b.Page(
        sheet.page, f"{sheet.name}, {'measured from a log' if log else 'judge datasheet'}",
        f"{lede} It describes; it does not rank judges.", tuple(sections),
        (*b.notes((notice,), "notice"), b.Columns((tuple(profile), (card,)), "cols")),
        up=b.Linked("All judges", COMPARISON) if up else "",
        contents=tuple((section.id, short[section.id]) for section in sections if section.id in short),
        foot=(f"Datasheet of {of}. ", FOOT), here=JUDGES, styles=_STYLES,
    )  # fmt: skip


JudgeFigures = tuple[tuple[b.Figure, ...], tuple[b.Figure, ...]]
"""The figures of a judge on preferences where it should have none, and on the differences that it notices."""


def judge_figures(sheet: r.DatasheetIndex, peers: Sequence[r.DatasheetIndex]) -> JudgeFigures:
    """The figures of a judge beside its first peers, without those that a log cannot give."""
    drawn = (sheet, *peers[:PEERS])
    preference = sec.parts_plot(drawn), sec.map_plot("scatter", drawn)
    seeing = sec.curve_plot(drawn), sec.segment_plot(sheet)
    if sheet.is_log:
        return preference, seeing if any(figure.draw for figure in seeing) else ()
    return (sec.map_plot("axes", drawn), *preference, sec.null_pairs_plot(sheet)), seeing


# --- several judges, by name ------------------------------------------------------------------------------------------


DRAWN: Final = 12
_CELL: Final = (150.0, 28.0)  # height of a small multiple, and of its head
_BASES: Final = {"between.kappa_content": "the text, orders averaged", "between.kappa": "the position, call by call"}
_PAIRS: Final = ("raw", "stable", "positional", "one_sided", "other_pairs", "flip_rate")
_ARMED: Final[tuple[tuple[str, dict[str, str]], ...]] = (
    ("dark_current", {}), *((f"delta0.{name}", {"condition": r.SAME}) for name in _PAIRS),
    ("delta0.raw", {"condition": "different_subset"}),
    *((f"truth.{name}", {}) for name in ("accuracy", "both", "one", "none")),
    *(("sensitivity", {"delta": delta}) for delta in ("0.5", "1", "5")), ("threshold", {}), ("d_prime", {"delta": "1"}),
    ("filler.preference", {}), ("pair.invalid_share", {}),
)  # fmt: skip
_UNARMED: Final[tuple[tuple[str, dict[str, str]], ...]] = (
    ("criterion.shift", {"condition": r.SAME}), ("criterion.shift", {"condition": "ladder", "delta": "1"}),
    ("repeat.stability", {}),
    *((f"point.{name}", {"dimension": AGGREGATE}) for name in ("vacuum_score", "slope", "order", "verbosity")),
)  # fmt: skip


def comparison_lead(sheets: Sequence[r.DatasheetIndex]) -> str:
    """The number of judges, and that they are not ranked."""
    return f"{counted(len(sheets), 'judge')}, listed alphabetically, not ranked."


def comparison_page(sheets: Sequence[r.DatasheetIndex], agreement: Sequence[Measurement]) -> b.Page:
    """The page of several judges, which are in alphabetical order already."""
    drawn, notes = sheets[:DRAWN], list[str]()
    if not all(r.comparable(sheets[0].sheet, sheet.sheet) for sheet in sheets):
        groups: dict[tuple[str, str, str], list[str]] = {}
        for judge, sheet in ((judge, judge.sheet) for judge in sheets):
            groups.setdefault((sheet.source, sheet.manifest, sheet.prompts.get(BASE, "")), []).append(judge.name)
        listed = "; ".join(clean(listing(names), 200) for names in groups.values())
        within = "Not all judges saw the same texts under the same prompt. Numbers compare within a group only"
        notes.append(f"{within}: {listed}.")
    if len(sheets) > DRAWN:
        notes.append(f"Figures draw the first twelve judges by name; the tables hold all {len(sheets)}.")
    whole = any(not sheet.is_log for sheet in sheets)
    question = "How do preferences change when the order is swapped?"
    maps = [sec.parts_plot(drawn, focus=False), sec.map_plot("scatter", drawn, focus=False)]
    if whole:
        question = "Do they choose where texts are equal?"
        maps.insert(0, sec.map_plot("axes", drawn, focus=False))
    lead = "Each judge keeps the same marker in every figure."
    sections = [b.Section("judges", "Which judges?", blocks=(b.Items(tuple(map(judge_line, sheets))),))]
    paired = any(plot.draw for plot in maps)  # judges may have graded single texts only
    sections += [b.Section("maps", question, lead, (b.beside(*maps),))] if paired else []
    grids: Sequence[b.Figure] = _multiples(drawn) if whole else ()
    if any(plot.draw for plot in grids):
        lead = "One small picture a judge, by name, all on the same axes."
        sections.append(b.Section("grids", "Which differences do they notice?", lead, (b.beside(*grids),)))
    instruction = " under the instruction that allows ties" if whole and paired else ""
    lead = f"Estimate and interval{instruction}. The page of each judge has all, with n and method."
    table = _side_by_side(sheets, log=not whole)
    rows = table if table.rows else b.Prose("No quantity of this table was measured.")
    sections.append(b.Section("table", "The measurements, judge by judge", lead, (rows,)))
    # Kappa of each pair of judges, by their names: first by content, then by position.
    kappas = {m.id: m for m in (*(m for s in sheets for name in _BASES for m in s.all(name)), *agreement)}
    agreed = list[tuple[str, ...]]()
    for m in sorted(
        kappas.values(), key=lambda m: (m.labels.get("a", ""), m.labels.get("b", ""), [*_BASES].index(m.name))
    ):
        pair = f"{r.printed_name(m.labels.get('a', ''))} and {r.printed_name(m.labels.get('b', ''))}"
        value, _, reason = r.value_words(m).partition(": ")  # a reason is too long for a column of numbers
        ends, how = (r.interval_words(m), clean(m.method, 160)) if m.value is not None else ("none", reason)
        agreed.append((pair, _BASES[m.name], value, ends, n_words(m), how))
    if agreed:
        lead = (
            "Unweighted Cohen’s κ of each pair of judges: on the text that each prefers once both orders are "
            "averaged, then on the position, call by call. Both may agree and be wrong."
        )
        columns = ("Judges", "Agree on", "κ", "Interval", "n", "Method")
        kappa = b.Table(columns, tuple(agreed), frozenset({2, 3, 4}), "")
        sections.append(b.Section("kappa", "Do they prefer the same texts?", lead, (kappa,)))
    not_claimed = tuple(dict.fromkeys(prose(text, 400) for s in sheets for text in s.sheet.non_claims))
    sections.append(b.Section("non-claims", "What this page does not claim", blocks=(b.Items(not_claimed),)))
    short = {"judges": "Judges", "maps": "Equal texts" if whole else "Pairs", "grids": "Differences",
             "table": "Measurements", "kappa": "Agreement"}  # fmt: skip
    contents = tuple((section.id, short.get(section.id, "Not claimed")) for section in sections)
    return b.Page(
        COMPARISON, "Judge reliability", comparison_lead(sheets), tuple(sections), b.notes(notes, "notice"),
        contents=contents, foot=FOOT, here=JUDGES, styles=_STYLES,
    )  # fmt: skip


def _side_by_side(sheets: Sequence[r.DatasheetIndex], *, log: bool) -> b.Table:
    """The main quantities, one column per judge; rows that no judge has are omitted."""
    lines = []
    for name, labels in (*_ARMED, *_UNARMED):
        own = labels.get("condition") == r.SAME  # the pairs of a log are in the row of the decomposed pairs
        measured = [s.get_base(name, **({"condition": s.condition} if own else labels)) if (name, labels) in _ARMED else
                 s.get(name, **labels) for s in sheets]  # fmt: skip
        title = r.title_of(name, log)
        if "delta" in labels:
            title = f"{title}, {r.step_words(labels['delta'])} apart"
        elif "condition" in labels and not log:
            title = f"{title}, {r.kind_words(labels['condition'])}"
        if any(map(known, measured)) and (own or not log or "condition" not in labels):
            # With many judges, links in every cell would make the page too long; only names are links then.
            cells = map(_cell, sheets, measured)
            lines.append((title, *(cells if len(sheets) <= DRAWN else map(str, cells))))
    named = ("Quantity", *(b.Linked(s.name, f"{s.page}#every") for s in sheets))
    return b.Table(named, tuple(lines), frozenset(range(1, len(named))), "")


def judge_line(sheet: r.DatasheetIndex) -> b.Inline:
    """A judge in a list: its name, its model and its summary chips."""
    words = [word for word, _ in chips(sheet)]
    model = clean(sheet.sheet.model, 80) or "model not stated"
    return b.Linked(sheet.name, sheet.page), " ", b.small(model), *((": ", "; ".join(words)) if words else ())


# --- small multiples ------------------------------------------------------------------------------------------------


def _multiples(sheets: Sequence[r.DatasheetIndex]) -> tuple[b.Figure, b.Figure]:
    """Small figures of every judge, two per line: its curve along the ladder, and the effect of the strict prompt."""
    steps = sorted({delta for s in sheets for delta in s.steps("sensitivity", s.base)})
    curves = [sec.curve_of(sheet, at) for at, sheet in enumerate(sheets)]
    both = [(sec.operating_point(s, s.base), sec.operating_point(s, STRICT)) for s in sheets]

    def grid(name: str, width: float) -> Drawn:
        space, parts = 16.0, list[Element]()
        size, height = (width - space) / 2, _CELL[0] + _CELL[1] + 14
        for at, title in enumerate(shortened([s.name for s in sheets], size - 4, 13)):
            x, y, (base, strict), inner = (at % 2) * (size + space), (at // 2) * height, both[at], list[Element]()
            if name.startswith("curves") and curves[at].points:
                inner = small_curve(curves[at], size, _CELL[0])
            elif not name.startswith("curves") and base and strict:
                inner = small_segment(base, strict, at, size, _CELL[0])
            drawn: list[Element] = [label(x, y + 14, title, "tb")]
            if inner:
                drawn.append(element("g", inner, transform=f"translate({num(x)} {num(y + _CELL[1])})"))
            else:
                drawn += [rect(x + 1, y + 26, size - 2, 60, "void"), label(x + 10, y + 60, "not measured", "tk")]
            parts += c.judge_marks(at, drawn)
        return parts, height * ((len(sheets) + 1) // 2)

    title, rows = "How big a difference does each notice?", list[tuple[str, ...]]()
    ladder = b.Figure(title, "The quality ladder was not run for any of these judges.")
    if steps:
        for sheet in sheets:
            run = sheet.steps("sensitivity", sheet.base)
            threshold = sheet.link(sheet.get_base("threshold"), sec.threshold_line(sheet))
            rows.append((sheet.name, *(_cell(sheet, run.get(delta)) for delta in steps), threshold))
        columns = ("Judge", *(f"{r.step_words(delta)} apart" for delta in steps), "75 % threshold")
        caption = "Percent of calls that pick the better text, by requirements ahead. Bars: intervals; dashes: 75 %."
        table = b.Table(columns, tuple(rows))
        ladder = b.plot("curves", title, caption, grid, "", table, judges=sec.curve_words(sheets))
    title = "What does being strict about ties give and take?"
    if not any(base and strict for base, strict in both):
        return ladder, b.Figure(title, "The strict instruction was not run for any of these judges.")
    texts = [[f"{percent(p.x)} and {percent(p.y)}" if p else "not measured" for p in points] for points in both]
    judges = tuple(JudgeWords(at, sheet.name, f"from {old} to {new}")
                   for at, (sheet, (old, new)) in enumerate(zip(sheets, texts, strict=True)))  # fmt: skip
    caption = (
        "Across: percent false preference. Up: percent that pick the better text, one requirement apart. "
        "Filled: ties allowed. Empty: strict."
    )
    columns = ("Judge", "Ties allowed: false preference, picks the better", "Strict")
    table = b.Table(columns, tuple((judge.name, *cells) for judge, cells in zip(judges, texts, strict=True)))
    return ladder, b.plot("segments", title, caption, grid, "", table, judges=judges)


def _cell(sheet: r.DatasheetIndex, measurement: Measurement | None) -> str:
    if measurement is None:
        return "not measured"
    ends = f" ({r.interval_words(measurement)})" if known(measurement) else ""
    return sheet.link(measurement, f"{r.value_words(measurement)}{ends}")


# --- to files ---------------------------------------------------------------------------------------------------------


def judges_frame(first: str = COMPARISON, site: Site = ALONE) -> Frame:
    """The frame of the pages of judges that were measured on their own, without a study."""
    around = site if site.runs else Site(home=first)
    return Frame(study="", mark="", nav=(Link(JUDGES, first, "Judges"),), site=around)


def render_datasheet(
    sheet: Datasheet, peers: Sequence[Datasheet] = (), frame: Frame | None = None, lineage: Lineage = lambda _: (),
) -> Mapping[str, str]:  # fmt: skip
    """The page of one judge and its summary figure, as relative path -> text. Equal datasheets give equal bytes.

    >>> sheet = Datasheet(judge="quay-j", measurements=(), sketch=(), calls={"all": 0}, tasks=0, source="run")
    >>> sorted(render_datasheet(sheet))
    ['datasheet/quay-j.html', 'datasheet/quay-j.svg']
    """
    others = [peer for peer in peers if peer.judge != sheet.judge]
    fit = r.index_sheets([peer for peer in others if r.comparable(sheet, peer)])
    unfit = r.index_sheets([peer for peer in others if not r.comparable(sheet, peer)])
    this = r.DatasheetIndex.of(sheet)
    figures, every = judge_figures(this, fit), sec.measurement_table(this, lineage)
    figure = this.page.removesuffix(".html") + ".svg"
    frame = frame or judges_frame(COMPARISON if others else this.page)
    files = {this.page: r.xml_safe(frame.page(judge_page(this, figures, fit, unfit, every, up=bool(others))))}
    if this.rows_page != this.page:
        lead = (f"{_UNDEFINED} ", b.Linked("Back to the datasheet", this.page))
        title = f"{this.name}, every measurement"
        page = b.Page(this.rows_page, title, lead, blocks=(every,), foot=FOOT, here=JUDGES, styles=_STYLES)
        files[this.rows_page] = r.xml_safe(frame.page(page))
    files[figure] = r.xml_safe(summary_svg(this, figures, asset("datasheet-marks.css"), asset("datasheet-figure.css")))
    files |= {path: r.xml_safe(text) for path, text in frame.files()}
    return files


def render_comparison(
    sheets: Sequence[Datasheet], agreement: Sequence[Measurement] = (), frame: Frame | None = None
) -> Mapping[str, str]:
    """Several judges on one page, sorted by name: small multiples and one table. Judges are not ranked."""
    names = [sheet.judge for sheet in sheets]
    rule = "a comparison needs one of each judge"
    problems = [Problem("judge", f"{name!r} has two datasheets; {rule}") for name in duplicates(names)]
    if not names:
        problems = [Problem("", "no datasheets; at least one is needed")]
    if problems:
        raise InputError("comparison of datasheets", problems)
    page = comparison_page(r.index_sheets(sheets), agreement)
    frame = frame or judges_frame()
    return {COMPARISON: r.xml_safe(frame.page(page)), **{path: r.xml_safe(text) for path, text in frame.files()}}
