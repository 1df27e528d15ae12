"""From datasheets to pages and figures: self-contained, escaped, silent on the network, ordered by name alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from html import escape
from typing import Any, Final

import svg

from assaymark.errors import InputError, Problem
from assaymark.metrology.datasheet import STRICT, Datasheet
from assaymark.records import Measurement
from assaymark.report.blocks import (
    Beside,
    Block,
    Facts,
    Group,
    Inline,
    Items,
    Linked,
    Page,
    Section,
    Table,
    Text,
    bold,
    noted,
    notes,
    plain,
    strong_link,
)
from assaymark.report.charts.canvas import HALF, WIDE, label, line, num, rect
from assaymark.report.charts.datasheet import Panel
from assaymark.report.datasheet.comparison import (
    FOOT,
    comparison_page,
    drift_section,
    people_section,
    pointwise_section,
    repeat_section,
)
from assaymark.report.datasheet.reading import (
    DatasheetIndex,
    Missing,
    Plot,
    arm_words,
    bounds,
    comparable,
    hits,
    known,
    missing_words,
    of_n,
    opened,
    plot_blocks,
    xml_safe,
)
from assaymark.report.datasheet.sections import (
    ONE,
    axes_plot,
    curve_plot,
    every_table,
    flip_note,
    ladder_table,
    near_plot,
    pair_counts,
    parts_plot,
    planted_answer,
    planted_section,
    quiet_answer,
    scatter_plot,
    seeing_answer,
    segment_plot,
    slot_note,
)
from assaymark.report.page import ALONE, JUDGES, Frame, Link, Site, asset
from assaymark.report.records.calls import Rests
from assaymark.report.text import counted, fit, listing, short_hash, text_width
from assaymark.text import clean, count, number, percent, prose

# The head of a datasheet: the judge in plain words with counts first, chips by stated rules, and the instrument.


_LED: Final = 2.0
_GATES: Final = "dominance, length, leakage, both orders, duplicates"
NO_SKETCH: Final = "No sketch: its rules are about built texts whose quality is known."
"""What stands for the chips of a log."""


def sentences(sheet: DatasheetIndex) -> list[Inline]:
    """The judge in plain words, counts first; a count leads to its row."""
    return list(filter(None, _sentences(sheet)))


def _sentences(sheet: DatasheetIndex) -> Iterator[Inline]:
    log = sheet.is_log

    def counts(share: Measurement) -> Inline:
        return strong_link(sheet.to(share, of_n(share)))

    dark = sheet.base_one("dark_current")
    if dark is not None and dark.value is not None:
        given, still = "one text in both slots" if log else "nothing to choose between", "still " * bool(hits(dark))
        yield f"Given {given}, it {still}chose in ", counts(dark), " calls."
    elif not log:
        yield missing_words(dark, "what it does with nothing to choose between")
    raw = sheet.part("raw")
    if raw is None or raw.value is None:
        yield missing_words(raw, "preference" if log else "preference between equal texts")
    else:
        where = "Of the pairs in the log" if log else "Between equal texts"
        yield f"{where} it preferred one in ", counts(raw), " calls", _why(sheet), "."
    # How often it names the better text, where a log says which that is.
    calls, pairs = known(sheet.base_one("truth.accuracy")), known(sheet.base_one("truth.both"))
    if calls is not None:
        ends = bounds(calls)
        between = f" ({percent(ends[0])} to {percent(ends[1])}, clustered by question)" if ends else ""
        both: Inline = "" if pairs is None else (", and in both orders of ", counts(pairs), " pairs")
        yield "It named the better text in ", counts(calls), f" calls{between}", both, "."
    seen = sheet.steps("sensitivity", sheet.base).get(ONE)
    if seen is not None:
        yield "It noticed one missing requirement in ", counts(seen), " calls."
    strict, seen = known(sheet.part("raw", STRICT)), sheet.steps("sensitivity", STRICT).get(ONE)
    if strict is not None and seen is not None and known(raw) is not None and sheet.base != STRICT:
        told = "Told to be strict about ties, it preferred one of two equal texts in "
        yield told, counts(strict), " calls and noticed the missing requirement in ", counts(seen), "."
    floors = [m.value for m in sheet.every("point.vacuum_score") if m.value is not None]
    if floors:
        said = number(min(floors)) + (f" to {number(max(floors))}" if len(floors) > 1 else "")
        by = ", by dimension" if len(floors) > 1 else ""
        yield "Scoring one text at a time, it gave an empty one ", bold(said), f" points{by}."
    invalid = [m for m in sheet.every("pair.invalid_share") if m.value]
    if invalid:
        bad, every = sum(map(hits, invalid)), sum(m.n for m in invalid)
        yield bold(f"{count(bad)} of {count(every)}"), f" replies could not be used ({percent(bad / every, 1)})."


def chips(sheet: DatasheetIndex) -> list[tuple[str, str]]:
    """A word about each axis, and the rule that chose it; none of a log."""
    parts = [] if sheet.is_log else [text.partition(" (") for text in sheet.sheet.sketch]
    return [(clean(word, 80), clean(rule.removesuffix(")"), 400)) for word, _, rule in parts]


def facts_of(sheet: DatasheetIndex) -> tuple[tuple[str, Inline], ...]:
    """The instrument card: what was asked, with what, and how often."""
    record = sheet.sheet
    print_ = f"fingerprint {short_hash(clean(record.fingerprint))}" if record.fingerprint else "no fingerprint given"
    family = f"family {clean(record.family, 60)}, " if record.family else ""
    facts = [("Model", noted(clean(record.model, 80) or "not stated", f"{family}{print_}"))]
    if sheet.is_log:
        facts.append(("Prompt", noted("that of the log", "not stated")))
    for arm in () if sheet.is_log else record.arms or tuple(record.prompts):
        digest = record.prompts.get(arm, "")
        facts.append(("Prompt", noted(arm_words(arm), short_hash(clean(digest)) if digest else "no hash given")))
    tasks = counted(record.tasks, "question" if sheet.is_log else "task")
    if sheet.is_log:
        truth = any(map(known, sheet.every("truth.accuracy")))
        quality = "a column says which is better" if truth else "their quality is not known, and no manifest names them"
        facts.append(("Texts", noted(tasks, f"of a log: {quality}")))
        facts += _log_facts(record.log)
    else:
        manifest = f"manifest {short_hash(clean(record.manifest))}" if record.manifest else "no manifest given"
        facts.append(("Texts", noted(tasks, manifest)))
    invalid = record.calls.get("invalid", 0)
    total = record.calls.get("all", sum(n for key, n in record.calls.items() if key != "all"))
    facts.append(("Calls", noted(count(total), f"{count(invalid)} without a usable reply")))
    if sheet.is_log:
        facts.append(("Gates", noted("not applied", "gates are for built texts")))
    elif record.manifest:
        facts.append(("Gates", noted("5 of 5 passed", f"before the first call: {_GATES}")))
    else:
        facts.append(("Gates", noted("not recorded")))
    return tuple(facts)


def _log_facts(log: Mapping[str, Any]) -> Iterator[tuple[str, Inline]]:
    """Where a log is from, which of its rows were read, and what its labels were taken to name."""
    if not log:
        return
    chosen = [f"{name} = {' or '.join(map(str, values))}" for name, values in log["filters"].items()]
    said = [*chosen, *log["said"]]
    yield ("File", noted(clean(log["file"], 80), f"{log['format']}, sha256 {short_hash(log['sha256'])}"))
    rows = f"{count(log['rows'])}, {count(log['filtered'])} filtered, {count(log['duplicates'])} repeated"
    yield ("Rows", noted(rows, clean("; ".join(said), 400)))
    yield ("Labels", noted(clean(log["reading"], 300)))


def _why(sheet: DatasheetIndex) -> Inline:
    """By which mechanism, with the pairs that show it; nothing where the decomposition is not there."""
    stable, positional, one_sided, *_ = pair_counts(sheet)
    if known(sheet.part("stable")) is None or not stable + positional + one_sided:
        return ""
    said = "what was said" if sheet.is_log else "how it was worded"
    if one_sided > stable + positional:
        before, strong, after = "mostly in ", "one of the two orders", " only"
    elif positional >= _LED * stable and positional:
        before, strong, after = "mostly for ", "where it stood", f", not for {said}"
    elif stable >= _LED * positional and stable:
        before, strong, after = "mostly for ", said, ", not for where it stood"
    else:
        before, strong, after = "partly for ", f"where it stood and partly for {said}", ""
    pairs = f" (pairs: {count(positional)} by place, {count(stable)} by text, {count(one_sided)} in one order only)"
    return f", {before}", bold(strong), f"{after}{pairs}"


# The summary of a datasheet as one picture that stands alone, reads at 1120 px and prints in greyscale.


_PEERS: Final = 4
_COLUMNS: Final = (0.0, float(WIDE - HALF))
_HEAD: Final = 44.0
_MARGIN: Final = 24.0
_TOKEN: Final = re.compile(r"--([a-z0-9]+):(#[0-9a-f]{3,6})")


def summary_svg(sheet: DatasheetIndex, peers: Sequence[DatasheetIndex], marks: str, page: str) -> str:
    """The picture: profile, axes map, curve, decomposition, operating points, scatter, nearly equal texts.

    ``marks`` is the style of the figures and ``page`` the light colours and text styles; colours are written out,
    since not every reader of SVG knows CSS variables.
    """
    drawn = (sheet, *peers[:_PEERS])
    found = [
        ("axes", axes_plot(drawn)), ("curve", curve_plot(drawn)), ("parts", parts_plot(drawn)),
        ("segment", segment_plot(sheet)), ("scatter", scatter_plot(drawn)), ("near", near_plot(sheet)),
    ]  # fmt: skip
    # An even number of figures; what a log cannot give is not among them.
    plots = [(key, plot) for key, plot in found if not sheet.is_log or key in ("parts", "scatter")]
    parts: list[svg.Element] = [
        svg.Style(text=_plain_style(page, marks)),
        rect(-_MARGIN, -_MARGIN, 9999, 9999, "paper"),
    ]
    y = _title(sheet, parts)
    told = []
    for left, right in zip(plots[::2], plots[1::2], strict=True):
        heights = []
        lines = max(len(_caption(plot)) for _, plot in (left, right))
        for x, (key, plot) in zip(_COLUMNS, (left, right), strict=True):
            heights.append(_place(key, plot, x, y, lines, parts))
            told.append(f"{plot.title}: {plot.described if isinstance(plot, Plot) else plot.why}")
        y += max(heights) + 28
    foot = (
        "Crosses and bars are intervals; peers are drawn for scale. It describes this judge; it does not rank judges."
    )
    parts += [line(0, y, WIDE, y, "hair"), label(0, y + 22, foot, "tk")]
    width, height = WIDE + 2 * _MARGIN, y + 36 + 2 * _MARGIN
    title = f"{sheet.name}: summary of its datasheet"
    return svg.SVG(
        class_=["fig"],
        viewBox=svg.ViewBoxSpec(num(-_MARGIN), num(-_MARGIN), num(width), num(height)),
        width=num(width),
        height=num(height),
        elements=[svg.Title(id="t", text=escape(title)), svg.Desc(id="d", text=escape(". ".join(told))), *parts],
        extra={"role": "img", "aria-labelledby": "t d"},
    ).as_str()


def _title(sheet: DatasheetIndex, parts: list[svg.Element]) -> float:
    """Name, instrument and profile; the height below them."""
    record = sheet.sheet
    facts = [
        clean(record.model, 60),
        counted(record.tasks, "question" if sheet.is_log else "task"),
        f"{count(record.calls.get('all', 0))} calls, {count(record.calls.get('invalid', 0))} unusable",
        f"texts {short_hash(clean(record.manifest))}" if record.manifest else "",
    ]
    parts += [
        label(0, 24, fit(sheet.name, WIDE * 0.9, 26), "big"),
        label(0, 46, fit(" · ".join(filter(None, facts)), WIDE, 13), "t2"),
    ]
    y = 72.0
    said = [*map(plain, sentences(sheet)), "; ".join(word for word, _ in chips(sheet))]
    said += [NO_SKETCH if sheet.is_log else "", flip_note(sheet)]
    for text in filter(None, said):
        for row in _wrapped(text, WIDE, 15):
            parts.append(label(0, y, row, "say"))
            y += 20
    return y + 14


def _place(key: str, plot: Plot | Missing, x: float, y: float, lines: int, parts: list[svg.Element]) -> float:
    """A figure with its head at a place, below as many lines of caption as its neighbour needs; its height."""
    parts += [line(x, y, x + HALF, y, "rule2"), label(x, y + 20, fit(plot.title, HALF, 15), "head")]
    if isinstance(plot, Missing):
        parts.append(rect(x + 1, y + 34, HALF - 2, 60, "void"))
        for at, row in enumerate(_wrapped(plot.why, HALF - 32, 13)[:3]):
            parts.append(label(x + 16, y + 58 + 17 * at, row, "t2"))
        return 110.0
    parts += [label(x, y + 38 + 16 * at, row, "tk") for at, row in enumerate(_caption(plot))]
    panel: Panel = plot.draw(f"s-{key}", HALF)
    head = _HEAD + 16 * lines - 10
    parts.append(svg.G(transform=[svg.Translate(num(x), num(y + head))], elements=list(panel.parts)))
    return panel.height + head


def _caption(plot: Plot | Missing) -> list[str]:
    return _wrapped(plot.caption, HALF, 12) if isinstance(plot, Plot) else []


def _wrapped(text: str, width: float, size: float) -> list[str]:
    """A text in lines that fit.

    >>> _wrapped("one two three", 60, 13)
    ['one two', 'three']
    """
    rows: list[str] = []
    for word in text.split(" "):
        if rows and text_width(f"{rows[-1]} {word}", size) <= width:
            rows[-1] = f"{rows[-1]} {word}"
        else:
            rows.append(fit(word, width, size))
    return rows


def _plain_style(page: str, marks: str) -> str:
    """The styles with every colour written out."""
    # Dark and forced colours are for pages: a picture keeps its paper.
    light = re.sub(r"@media[^{]+\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}", "", f"{page}\n{marks}")
    tokens = dict(_TOKEN.findall(light))
    style = re.sub(r":root\{[^}]*\}", "", light)
    return re.sub(r"var\(--([a-z0-9]+)\)", lambda found: tokens[found[1]], style)


PEERS: Final = 4
_ABSENT: Final = (
    (
        "dark_current",
        "Preference between identical texts",
        "the log has no calls in which there was nothing to choose between",
    ),
    ("graded_vacuum", "Preference between nearly identical texts", "no such pairs were shown"),
    (
        "sensitivity",
        "Sensitivity and detection threshold",
        "which text of a pair is better, and by how much, is not known",
    ),
    ("criterion.shift", "The effect of a strict instruction", "the log has one instruction"),
    ("filler.preference", "Filler preference", "no padded texts were shown"),
)


def judge_page(
    sheet: DatasheetIndex, fit: Sequence[DatasheetIndex], unfit: Sequence[DatasheetIndex], every: Table, *, up: bool
) -> Page:
    """The page of one judge with the peers that its figures may hold, and those that they may not.

    ``every`` is the table of all measurements; it stands on a page of its own where it is long.
    """
    drawn, apart = (sheet, *fit[:PEERS]), sheet.rows_page != sheet.page
    planted = planted_section(sheet)
    seeing, ladder, absent = seeing_plots(sheet, drawn), ladder_table(sheet), _absent(sheet)
    log = sheet.is_log
    quiet = "How do preferences change when the order is swapped?" if log else "Does it choose where texts are equal?"
    said = (slot_note(sheet), *_peer_notes(sheet, fit, unfit))
    sections = [Section("quiet", quiet, quiet_answer(sheet), (plot_blocks(quiet_plots(sheet, drawn)), *notes(said)))]
    if seeing:
        rates = (replace(ladder, summary="All rates, step by step and instruction by instruction"),) if ladder else ()
        heading = "Which differences does it notice?"
        sections.append(Section("seeing", heading, seeing_answer(sheet), (plot_blocks(seeing), *rates)))
    found = (pointwise_section(sheet), people_section(sheet), repeat_section(sheet), drift_section(sheet))
    sections += [section for section in found if section is not None]
    if absent:
        lines = tuple((bold(what), f": not measured, {why}.") for what, why in absent)
        lead = "Not measured, because it needs texts that were built for it."
        sections.append(Section("absent", "What can a log not tell?", lead, (Items(lines),)))
    sections += [planted] if planted else []
    total = counted(len(every.rows), "measurement")
    rows: Block = Text("No measurement is in this datasheet.")
    if every.rows:
        rows = (
            Text(Linked(f"All {total}", sheet.rows_page)) if apart else Group(f"Show {total}", (every,), folded="phone")
        )
    sections.append(Section("every", "Every measurement", _UNDEFINED, (rows,)))
    not_claimed = tuple(prose(text, 400) for text in sheet.sheet.non_claims)
    sections.append(
        Section(
            "non-claims", f"What this {'page' if log else 'datasheet'} does not claim", blocks=(Items(not_claimed),)
        )
    )
    short = {
        "quiet": "Pairs" if absent else "Equal texts", "seeing": "Differences", "pointwise": "One text",
        "people": "People", "repeat": "Repeats", "drift": "Drift", "every": "Every measurement",
        "non-claims": "Not claimed",
    }  # fmt: skip
    notice: Inline = (
        bold("Built-in judge. "),
        f"A rule with planted flaws. {planted_answer(sheet)} ",
        Linked("Planted and measured", f"{sheet.page}#planted"),
    )
    return Page(
        sheet.page,
        f"{sheet.name}, {'measured from a log' if log else 'judge datasheet'}",
        _lede(sheet),
        tuple(sections),
        (
            *notes((notice if planted else "",), "notice"),
            _profile_block(sheet),
        ),
        up=Linked("All judges", COMPARISON) if up else "",
        contents=tuple((one.id, short[one.id]) for one in sections if one.id in short),
        foot=(f"Datasheet of {_hash(sheet)}. ", FOOT),
        here=JUDGES,
        styles=_STYLES,
    )


def _profile_block(sheet: DatasheetIndex) -> Beside:
    """The judge in plain words, beside what was asked of it."""
    said, sketch = tuple((sentence, " ") for sentence in sentences(sheet)), chips(sheet)
    blocks: list[Block] = [Text(said or "Nothing was measured.", "profile")]
    if sketch:
        rules = tuple((bold(word), f". Rule: {rule}" if rule else "") for word, rule in sketch)
        blocks.append(Items(tuple(word for word, _ in sketch), "chips"))
        blocks.append(Group("Sketch by stated rules, descriptive only", (Items(rules),), folded="closed"))
    figure = Linked("Summary as one figure (SVG)", sheet.page.removesuffix(".html") + ".svg")
    blocks += notes((NO_SKETCH if sheet.is_log else "", flip_note(sheet), figure))
    return Beside((tuple(blocks), (Group("The judge", (Facts(facts_of(sheet), wide=False),), level=2),)), "cols")


def _lede(sheet: DatasheetIndex) -> str:
    if sheet.is_log:
        return (
            "Measured from verdicts that were made elsewhere, on texts of unknown quality. It describes; it does not "
            "rank judges."
        )
    return "A datasheet of one judge under stated prompts and one set of texts. It describes; it does not rank judges."


def _hash(sheet: DatasheetIndex) -> str:
    if sheet.sheet.manifest:
        return f"texts {short_hash(clean(sheet.sheet.manifest))}"
    return "verdicts of a log" if sheet.is_log else "no manifest"


def quiet_plots(sheet: DatasheetIndex, drawn: Sequence[DatasheetIndex]) -> tuple[Plot | Missing, ...]:
    """What a judge does where it should not choose."""
    if sheet.is_log:
        return parts_plot(drawn), scatter_plot(drawn)
    return axes_plot(drawn), parts_plot(drawn), scatter_plot(drawn), near_plot(sheet)


def seeing_plots(sheet: DatasheetIndex, drawn: Sequence[DatasheetIndex]) -> tuple[Plot | Missing, ...]:
    """The ladder and the strict prompt; a log has neither, and says so once."""
    found = (curve_plot(drawn), segment_plot(sheet))
    return () if sheet.is_log and not any(isinstance(plot, Plot) for plot in found) else found


def _absent(sheet: DatasheetIndex) -> tuple[tuple[str, str], ...]:
    """What a log cannot give, each with its reason."""
    if not sheet.is_log:
        return ()
    return tuple((title, why) for name, title, why in _ABSENT if not any(map(known, sheet.every(name))))


def _peer_notes(sheet: DatasheetIndex, fit: Sequence[DatasheetIndex], unfit: Sequence[DatasheetIndex]) -> list[str]:
    found = []
    if len(fit) > PEERS:
        left = listing([peer.name for peer in fit[PEERS:]])
        found.append(f"Figures draw four peers, by name; not drawn: {clean(left, 300)}.")
    if unfit:
        left = listing([peer.name for peer in unfit])
        what = "another log or instruction" if sheet.is_log else "other texts or under another prompt"
        found.append(f"Measured on {what}, so not drawn here: {clean(left, 300)}.")
    return found


COMPARISON: Final = "datasheets.html"

_UNDEFINED: Final = "Undefined values are named, never shown as zero."
_STYLES: Final = ("datasheet.css", "datasheet-marks.css", "judges.css")


def judges_frame(first: str = COMPARISON, site: Site = ALONE) -> Frame:
    """What stands around the pages of judges that were measured by themselves, in no study."""
    around = site if site.runs else Site(home=first)
    return Frame(study="", mark="", nav=(Link(JUDGES, first, "Judges"),), site=around)


def render_datasheet(
    sheet: Datasheet,
    peers: Sequence[Datasheet] = (),
    frame: Frame | None = None,
    rests: Rests = lambda _: (),
) -> Mapping[str, str]:
    """The page of one judge and its summary figure, as relative path -> text. Equal datasheets give equal bytes.

    Examples
    --------
    >>> sheet = Datasheet(judge="quay-j", measurements=(), sketch=(), calls={"all": 0}, tasks=0, source="run")
    >>> sorted(render_datasheet(sheet))
    ['datasheet/quay-j.html', 'datasheet/quay-j.svg']
    """
    others = [peer for peer in peers if peer.judge != sheet.judge]
    fit = opened([peer for peer in others if comparable(sheet, peer)])
    unfit = opened([peer for peer in others if not comparable(sheet, peer)])
    this = DatasheetIndex.of(sheet)
    every = every_table(this, rests)
    figure = this.page.removesuffix(".html") + ".svg"
    frame = frame or judges_frame(COMPARISON if others else this.page)
    made = {this.page: xml_safe(frame.page(judge_page(this, fit, unfit, every, up=bool(others))))}
    if this.rows_page != this.page:
        lead = (f"{_UNDEFINED} ", Linked("Back to the datasheet", this.page))
        title = f"{this.name}, every measurement"
        page = Page(this.rows_page, title, lead, blocks=(every,), foot=FOOT, here=JUDGES, styles=_STYLES)
        made[this.rows_page] = xml_safe(frame.page(page))
    made[figure] = xml_safe(summary_svg(this, fit, asset("datasheet-marks.css"), asset("datasheet-figure.css")))
    made |= {path: xml_safe(text) for path, text in frame.files()}
    return made


def render_comparison(
    sheets: Sequence[Datasheet], agreement: Sequence[Measurement] = (), frame: Frame | None = None
) -> Mapping[str, str]:
    """Several judges on one page, by name: small multiples and one table. Nothing on it ranks them."""
    names = [sheet.judge for sheet in sheets]
    twice = sorted({name for name in names if names.count(name) > 1})
    problems = [
        Problem("judge", f"{name!r} has two datasheets; a comparison needs one of each judge") for name in twice
    ]
    if not names:
        problems = [Problem("", "no datasheets; at least one is needed")]
    if problems:
        raise InputError("comparison of datasheets", problems)
    page = comparison_page(COMPARISON, opened(sheets), agreement, _STYLES)
    frame = frame or judges_frame()
    return {COMPARISON: xml_safe(frame.page(page)), **{path: xml_safe(text) for path, text in frame.files()}}
