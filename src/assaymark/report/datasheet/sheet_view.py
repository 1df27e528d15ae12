"""One judge's page as data: every figure drawn, every sentence written, nothing left for the template to decide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from assaymark.report.datasheet.every import (
    EveryRow,
    PlantedView,
    every_rows,
    filters,
    level_words,
    planted_view,
)
from assaymark.report.datasheet.further import Section, drift_section, pointwise_section, repeat_section
from assaymark.report.datasheet.plots import Missing, Plot
from assaymark.report.datasheet.profile import Profile, profile_of
from assaymark.report.datasheet.quiet import (
    axes_plot,
    near_plot,
    parts_plot,
    quiet_answer,
    scatter_plot,
    slot_note,
)
from assaymark.report.datasheet.reading import Opened, known
from assaymark.report.datasheet.seeing import curve_plot, ladder_table, seeing_answer, segment_plot
from assaymark.report.evidence import Filter
from assaymark.report.formats import clean, counted, listing, prose, short_hash
from assaymark.report.tables import Table
from assaymark.report.trail.refs import Rests

PEERS: Final = 4
_ABSENT: Final = (
    ("dark_current", "Dark current", "the log has no calls in which there was nothing to choose between"),
    ("graded_vacuum", "Preference between nearly identical texts", "no such pairs were shown"),
    (
        "sensitivity",
        "Sensitivity and detection threshold",
        "which text of a pair is better, and by how much, is not known",
    ),
    ("criterion.shift", "The effect of a strict instruction", "the log has one instruction"),
    ("filler.preference", "Filler preference", "no padded texts were shown"),
)


@dataclass(frozen=True, slots=True)
class SheetView:
    """The page of one judge."""

    title: str
    lede: str
    hash: str
    notice: str
    profile: Profile
    quiet_answer: str
    quiet: tuple[Plot | Missing, ...]
    quiet_notes: tuple[str, ...]
    seeing_answer: str
    seeing: tuple[Plot | Missing, ...]
    ladder: Table | None
    sections: tuple[Section, ...]
    absent: tuple[tuple[str, str], ...]
    planted: PlantedView | None
    rows: tuple[EveryRow, ...]
    rests: bool
    apart: bool
    filters: tuple[Filter, ...]
    total: str
    level: str
    non_claims: tuple[str, ...]


def sheet_view(sheet: Opened, fit: Sequence[Opened], unfit: Sequence[Opened], rests: Rests = lambda _: ()) -> SheetView:
    """The view of one judge with the peers that its figures may hold, and those that they may not.

    ``rests`` gives the answers that a measurement was computed from.
    """
    drawn = (sheet, *fit[:PEERS])
    rows = every_rows(sheet, rests)
    planted = planted_view(sheet)
    sections = (pointwise_section(sheet), repeat_section(sheet), drift_section(sheet))
    quiet, seeing = _quiet(sheet, drawn), _seeing(sheet, drawn)
    return SheetView(
        title=f"{sheet.name}, {'read from a log' if sheet.is_log else 'measured as an instrument'}",
        lede=_lede(sheet),
        hash=_hash(sheet),
        notice="" if planted is None else planted.answer,
        profile=profile_of(sheet),
        quiet_answer=quiet_answer(sheet),
        quiet=quiet,
        quiet_notes=tuple(filter(None, (slot_note(sheet), *_peer_notes(sheet, fit, unfit)))),
        seeing_answer=seeing_answer(sheet),
        seeing=seeing,
        ladder=ladder_table(sheet),
        sections=tuple(section for section in sections if section is not None),
        absent=_absent(sheet),
        planted=planted,
        rows=rows,
        rests=any(row.rests for row in rows),
        apart=sheet.rows_page != sheet.page,
        filters=filters(rows, log=sheet.is_log),
        total=counted(len(rows), "measurement"),
        level=level_words(sheet),
        non_claims=tuple(prose(text, 400) for text in sheet.sheet.non_claims),
    )


def _lede(sheet: Opened) -> str:
    if sheet.is_log:
        return (
            "Measured from verdicts that were made elsewhere, on texts of unknown quality. It describes; it does not "
            "rank judges."
        )
    return "A datasheet of one judge under stated prompts and one set of texts. It describes; it does not rank judges."


def _hash(sheet: Opened) -> str:
    if sheet.sheet.manifest:
        return f"texts {short_hash(clean(sheet.sheet.manifest))}"
    return "verdicts of a log" if sheet.is_log else "no manifest"


def _quiet(sheet: Opened, drawn: Sequence[Opened]) -> tuple[Plot | Missing, ...]:
    if sheet.is_log:
        return parts_plot(drawn), scatter_plot(drawn)
    return axes_plot(drawn), parts_plot(drawn), scatter_plot(drawn), near_plot(sheet)


def _seeing(sheet: Opened, drawn: Sequence[Opened]) -> tuple[Plot | Missing, ...]:
    """The ladder and the strict prompt; a log has neither, and says so once."""
    found = (curve_plot(drawn), segment_plot(sheet))
    return () if sheet.is_log and not any(isinstance(plot, Plot) for plot in found) else found


def _absent(sheet: Opened) -> tuple[tuple[str, str], ...]:
    """What a log cannot give, each with its reason."""
    if not sheet.is_log:
        return ()
    return tuple((title, why) for name, title, why in _ABSENT if not any(map(known, sheet.every(name))))


def _peer_notes(sheet: Opened, fit: Sequence[Opened], unfit: Sequence[Opened]) -> list[str]:
    found = []
    if len(fit) > PEERS:
        left = listing([peer.name for peer in fit[PEERS:]])
        found.append(f"Figures draw four peers, by name; not drawn: {clean(left, 300)}.")
    if unfit:
        left = listing([peer.name for peer in unfit])
        what = "another log or instruction" if sheet.is_log else "other texts or under another prompt"
        found.append(f"Measured on {what}, so not drawn here: {clean(left, 300)}.")
    return found
