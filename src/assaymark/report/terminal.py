"""The report of a run for a terminal: 80 columns, readable without colour."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from assaymark.claims import kind_of
from assaymark.metrology.datasheet import BASE, Datasheet, chip_words
from assaymark.records import AGGREGATE, Level, Measurement, measurement_id
from assaymark.report.datasheet.sections import drift_answer
from assaymark.report.inputs import AssayRun, RunIndex
from assaymark.report.levels import ordered_verdicts
from assaymark.report.study import overview, scores
from assaymark.report.study.bench import names_allowed
from assaymark.report.study.checks import limits_of
from assaymark.report.study.controls import people_words
from assaymark.report.text import counted, interval_of, short_hash, tally
from assaymark.text import clean, number, percent, prose

# Shapes carry the level where colour is missing: filled, half, open.
_SIGNS: dict[Level, str] = {"headline": "[x]", "qualified": "[/]", "no-claim": "[-]"}
_STYLES: dict[Level, str] = {"headline": "bold blue", "qualified": "yellow", "no-claim": "dim"}
_LIMITS, _SAID, _TURNED, _SPAN = 4, 4, 2, 24


def terminal_summary(run: AssayRun) -> RenderableType:
    """The first page for `rich.console.Console.print`: the same sentences in the same order. For an imported table of
    scores also how it was read, its tiers, each supported sentence with its condition, and the reasons against others.
    Texts from records are printed verbatim: markup in them has no effect and control characters are replaced."""
    index, table = RunIndex.of(run), run.table
    front, levels = overview.top_finding(index), [verdict.publication_level for verdict in run.verdicts]
    top: Level = "no-claim" if front.verdict is None else front.verdict.publication_level
    parts, worst = list[RenderableType](), limits_of(index)[:_LIMITS]
    if table is None:
        sentence = front.title if front.verdict is None else f"“{front.title}”"
        parts += [Text(f"{' '.join(front.notice)}\n", style="italic")] if front.notice[0] else []
        if not index.preregistered:
            parts.append(Text("Not preregistered. The scores had been seen when the plan was locked.\n", style="bold"))
        also = front.also and ("" if front.verdict is None else "Say also: ") + front.also
        parts += [_indented(_signed(top, sentence)), *_lines(also), *_lines(front.second), Text(), _tally(levels),
                  Text(f"    {overview.totals_line(index)}", style="dim")]  # fmt: skip
        for title, answer, rows in (
            ("Who is ahead, and can it be said?", overview.tiers_words(index), _tiers(index)),
            ("Do planted texts fool the judges?", overview.planted_words(index), ()),
            ("How good are the judges?", overview.judges_words(index), ()),
        ):
            parts += [Text(), Text(title, style="bold"), Text(answer), *rows]
        parts += [Text(), Text("What limits the result?", style="bold")] if worst else []
        for at, (title, measured, effect, fix) in enumerate(worst, 1):
            parts += [Text(f"{at}  {title}. {effect}."), _indented(Text(f"{measured}\n{fix}", style="dim"))]
        return Group(*parts, Text(), Text(f"Plan {short_hash(clean(run.plan_hash))}", style="dim"))
    parts += [Text(f"{prose(table.about, 600)}\n", style="italic")] if table.about else []
    scale = f"scale {table.scale[0]:g} to {table.scale[1]:g}"
    parts.append(Text(f"Read {clean(table.source, 60)}: {scores.size_words(table)}, {scale}"))
    parts += [_indented(Text(prose(line, 400), style="dim"), 2) for line in (table.read, *table.left, *table.filled)]
    parts += [_indented(Text(f"Chosen after the scores were seen: {prose(line, 400)}", style="bold"), 2)
              for line in table.choices]  # fmt: skip
    parts += [Text(), Text(overview.tiers_words(index), style="bold"), *_tiers(index), Text(), _tally(levels)]
    parts += [Text(), _signed(top, front.title), *_lines(front.also)] if front.verdict is None else []
    # The sentences that say the most: the cuts between tiers, then who ranks first on each criterion.
    first = [v for v in ordered_verdicts(index) if v.publication_level != "no-claim" and kind_of(v.claim) == "first"
             and v.claim.dimension != AGGREGATE and names_allowed(index)]  # fmt: skip
    leads = [(prose(v.claim.statement, 400), v.publication_level, tuple(prose(c.text, 400) for c in v.conditions))
             for v in first]  # fmt: skip
    sentences = (overview.tier_sentences(index) + leads)[:_SAID]
    for group, above in ((sentences, ()), (overview.reversed_sentences(index)[:_TURNED], sentences)):
        own, shared = overview.conditions_of(group, above)
        for (text, level, _), condition in zip(group, own, strict=True):
            parts += [_signed(level, f"“{text}”"), *_lines(f"Say also: {condition}" if condition else "")]
        parts += _lines(shared)
    parts += _lines(overview.best_agents(index))
    parts += [_signed("no-claim", front.second)] if front.second else []
    parts += [Text(), Text(f"Do the judges agree? {scores.agreement_answer(index)}"), *_lines(people_words(index))]
    for judge, pairs in sorted(table.orders.items()):  # outcomes of pairs that it saw in both orders
        alike = f"of {counted(pairs['both'], 'pair')} seen in both orders the same text won"
        text, place = (percent(pairs[which] / pairs["both"], 1) for which in ("same_text", "same_place"))
        parts.append(_indented(Text(f"{clean(judge, 60)}: {alike} {text}, the same position {place}"), 2))
    parts += _lines(scores.pairs_words(index))
    parts += [Text(), Text("What limits the result", style="bold")] if worst else []
    parts += [_indented(Text(f"{title}: {measured} {effect}.")) for title, measured, effect, _ in worst]
    steps = scores.next_steps(index)
    parts += [Text(), Text("Next, with the same options", style="bold")] if steps else []
    return Group(*parts, *(_indented(Text(f"{words}\n{command}")) for words, command in steps))


def _signed(level: Level, text: str) -> Text:
    return Text(f"{_SIGNS[level]} {text}", style="bold")


def _lines(text: str) -> list[RenderableType]:
    return [_indented(Text(text))] if text else []


def _tally(levels: Sequence[Level]) -> Text:
    text = Text()
    for level, n, noun in tally(levels):
        text.append(f"{_SIGNS[level]} {n} {noun}   ", style=_STYLES[level])
    return text


def _indented(text: Text, by: int = 4) -> RenderableType:
    return Padding(text, (0, 0, 0, by if not text.plain.startswith("[") else 0))


def _tiers(index: RunIndex) -> list[RenderableType]:
    """The tiers of the overall score as bars on one axis; empty if the judges do not agree."""
    rows = overview.tier_rows(index, AGGREGATE)
    if not rows or index.status(AGGREGATE) == "halt":
        return []
    low, high = overview.scores_axis(index)
    table = Table(box=None, pad_edge=False)
    table.add_column("Tier", overflow="fold", ratio=2)
    table.add_column(f"Score, {index.study.scale_text}", no_wrap=True)
    table.add_column(f"{low:g}{f'{high:g}'.rjust(_SPAN - len(f'{low:g}'))}", no_wrap=True)
    table.add_column("", overflow="fold", ratio=2)
    for row in rows:
        bar = [" "] * _SPAN
        if row.ends is not None:
            first, last = (round((end - low) / (high - low) * (_SPAN - 1)) for end in row.ends)
            bar[first : last + 1] = "=" * (last + 1 - first)
        if row.point is not None:
            bar[round((row.point - low) / (high - low) * (_SPAN - 1))] = "#"
        table.add_row(
            Text(", ".join(row.names)), Text(row.shown.partition(",")[0] or "no range"), Text("".join(bar)),
            Text(f"{_SIGNS[row.level]} {row.remark}", style=_STYLES[row.level]),
        )  # fmt: skip
    return [table]


_Columns = tuple[tuple[str, str, dict[str, str]], ...]

_SAME, _OTHER = {"prompt": BASE, "condition": "same_subset"}, {"prompt": BASE, "condition": "different_subset"}
_WHOLE: Final = {"dimension": AGGREGATE}
_RUN: Final[_Columns] = (
    ("Null pairs", "dark_current", {"prompt": BASE}),
    ("False pref.", "delta0.raw", _SAME),
    ("consistent", "delta0.stable", _SAME),
    ("by position", "delta0.positional", _SAME),
    ("1 apart", "sensitivity", {"prompt": BASE, "delta": "1"}),
    ("Threshold", "threshold", {"prompt": BASE}),
)
_POINTS: Final[_Columns] = (
    ("Score for nothing", "point.vacuum_score", _WHOLE),
    ("points a requirement", "point.slope", _WHOLE),
    ("steps in order", "point.order", _WHOLE),
    ("per 100 filler words", "point.verbosity", _WHOLE),
)
_LOG: Final[_Columns] = (
    ("consistent", "delta0.stable", _OTHER),
    ("by position", "delta0.positional", _OTHER),
    ("one order", "delta0.one_sided", _OTHER),
    ("no pref.", "delta0.no_preference", _OTHER),
    ("flips", "delta0.flip_rate", _OTHER),
    ("invalid", "pair.invalid_share", {"prompt": BASE}),
    ("repeats", "repeat.stability", {}),
)
_TRUTH: Final[_Columns] = tuple(
    (title, f"truth.{name}", {"prompt": BASE})
    for title, name in (("right calls", "accuracy"), ("both orders", "both"), ("one order", "one"), ("neither", "none"))
)
_KAPPAS: Final = {
    "between.kappa_content": "by content, orders averaged", "between.kappa": "by position, call by call",
}  # fmt: skip
_PAIRS, _WIDTH = 6, 80
"""Most pairs of judges that are listed, and the width from which the heads of columns are broken."""
_NULL: Final[_Columns] = (("one text in both slots", "dark_current", {"prompt": BASE}),)


def datasheet_summary(sheets: Sequence[Datasheet], agreement: Sequence[Measurement]) -> RenderableType:
    """One row of measurements per judge, in alphabetical order, and the agreement of every two judges."""
    log, parts = all(sheet.source == "log" for sheet in sheets), list[RenderableType]()
    null = any(m.name == "dark_current" and m.value is not None for sheet in sheets for m in sheet.measurements)
    wanted: list[tuple[_Columns, str]] = [(_LOG, ""), (_TRUTH, "truth.accuracy"), *([(_NULL, "")] if null else [])]
    # One row for each judge with a measurement of the name ``head`` (empty: each judge).
    for columns, head in wanted if log else [(_RUN, "dark_current"), (_POINTS, "point.slope")]:
        table = Table(box=None, pad_edge=False, title_justify="left")
        table.add_column("Judge", overflow="fold")
        width = max(len(sheet.judge) for sheet in sheets) + sum(2 + len(title) for title, _, _ in columns)
        for title, _, _ in columns:
            broken = title.replace(" ", "\n") if width > _WIDTH else title
            table.add_column(broken, justify="right", min_width=max(map(len, title.split())))
        for sheet in sorted(sheets, key=lambda sheet: sheet.judge):
            by_id = {item.id: item for item in sheet.measurements}
            if not head or any(item.name == head for item in sheet.measurements):
                names = (measurement_id(name, {**labels, "judge": sheet.judge}) for _, name, labels in columns)
                cells = [
                    "not measured" if item is None or item.state.startswith("not measured")
                    else "undefined" if item.value is None else str(item.detail.get("text", f"{item.value:.3f}"))
                    for item in map(by_id.get, names)
                ]  # fmt: skip
                table.add_row(clean(sheet.judge, 60), *cells)
        parts += [table] if table.row_count else []
    if log:
        truth = any(item.name == "truth.accuracy" for sheet in sheets for item in sheet.measurements)
        plain = "A log does not say which text is better: a preference here is no error."
        parts.append(Text(f"Shares of pairs. {'Right is what a column of the log calls better.' if truth else plain}"))
        readings = (word for sheet in sheets for word in (sheet.log.get("reading"), *sheet.log.get("said", ())))
        parts += [Text(clean(str(word), 400)) for word in dict.fromkeys(readings) if word]
    else:  # the sketch without its rules, which the page prints
        for sheet in (sheet for sheet in sheets if sheet.sketch):
            words = [chip_words(chip)[0] for chip in sheet.sketch]
            if lost := sheet.calls.get("invalid", 0):
                words.append(f"{lost:,} of {sheet.calls['all']:,} replies could not be used")
            parts.append(Text(f"{clean(sheet.judge, 60)}: {'; '.join(words)}"))
    for name, base in _KAPPAS.items():
        pairs = [item for item in agreement if item.name == name]
        values = [item.value for item in pairs if item.value is not None]
        if len(pairs) > _PAIRS and values:
            ends = f"{number(min(values))} to {number(max(values))}"
            parts.append(Text(f"kappa of {len(values)} pairs of judges {base}: {ends}; the page has each"))
            continue
        for item in pairs:
            value = item.state
            if item.value is not None:
                value = f"{number(item.value)}{interval_of(item)}, {item.n:,} {item.n_of}"
            pair = f"{clean(item.labels['a'], 60)} and {clean(item.labels['b'], 60)}"
            parts.append(Text(f"kappa of {pair} {base}: {value}"))
    alike = [m.labels for m in agreement if m.name == "between.kappa" and m.value == 1]
    named = "; ".join(f"{clean(both['a'], 60)} and {clean(both['b'], 60)}" for both in alike)
    parts += [Text(f"The same verdict in every call, as a copy would give: {named}")] if alike else []
    for sheet, item in ((s, m) for s in sheets for m in s.measurements if m.name == "drift.verdict"):
        parts.append(Text(f"{clean(sheet.judge, 60)}: {drift_answer(item)}"))
    return Group(*parts)
