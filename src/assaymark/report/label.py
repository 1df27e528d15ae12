"""The page for grading texts by hand: blind, one text at a time, served or as a standalone file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from assaymark.errors import InputError, Problem
from assaymark.records import JSON, canonical_json
from assaymark.report.page import Frame, paginate, script_data
from assaymark.text import visible

FILE_BYTES: Final = 2_000_000
"""Maximum bytes of a file for a grader; larger ones are split into parts."""

LabelSection = tuple[str, str | tuple[tuple[str, ...], ...]]
"""A titled section of a text: prose, or the rows of a table with their header."""


@dataclass(frozen=True, slots=True)
class LabelScale:
    """A dimension to grade: its title and question, and the descriptions of those points that have one."""

    name: str
    title: str
    question: str = ""
    anchors: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, slots=True)
class LabelText:
    """A text to grade, under an id that reveals nothing; ``check`` has hashes of known answers by dimension."""

    id: str
    sections: tuple[LabelSection, ...]
    check: Mapping[str, str] | None = None


LabelCycle = tuple[tuple[LabelSection, ...], tuple[LabelText, ...]]
"""The context that the texts of one cycle share, and these texts in the order in which they are graded."""


@dataclass(frozen=True, slots=True)
class LabelSheet:
    """All that one person grades. ``run`` names the draw, and ``salt`` is part of the hashes of known answers."""

    run: str
    grader: str
    scale: tuple[int, int]
    questions: tuple[LabelScale, ...]
    instructions: str
    salt: str
    cycles: tuple[LabelCycle, ...]


def label_page(
    sheet: LabelSheet, *, part: tuple[int, int] = (1, 1), name: str = "", labels: Mapping[str, JSON] | None = None
) -> str:
    """Render the page of a sheet or its ``part``; with ``labels`` so far it sends further grades to its server."""
    questions = [
        {"name": question.name, "title": visible(question.title), "question": visible(question.question),
         "anchors": [[point, visible(text)] for point, text in question.anchors]}
        for question in sheet.questions
    ]  # fmt: skip
    data = {
        "run": sheet.run, "grader": sheet.grader, "part": list(part), "file": name or f"labels-{sheet.grader}.csv",
        "scale": list(sheet.scale), "questions": questions, "instructions": visible(sheet.instructions),
        "salt": sheet.salt, "cycles": list(map(_cycle, sheet.cycles)), "labels": labels,
    }  # fmt: skip
    return Frame("", "", ()).render(
        "label.html", f"Grading, {sheet.grader}", styles=("label.css",), scripts=("label.js",),
        connect=labels is not None, data=script_data(canonical_json(data)),
    )  # fmt: skip


def _cycle(cycle: LabelCycle) -> JSON:
    def shown(sections: Sequence[LabelSection]) -> list[JSON]:
        return [[visible(label), visible(content) if isinstance(content, str) else
                 [list(map(visible, row)) for row in content]] for label, content in sections]  # fmt: skip

    texts = [{"id": text.id, "sections": shown(text.sections)} | ({"check": text.check} if text.check else {})
             for text in cycle[1]]  # fmt: skip
    return {"material": shown(cycle[0]), "texts": texts}


def label_files(sheet: LabelSheet, stem: str, *, limit: int = FILE_BYTES) -> dict[str, str]:
    """The files of a sheet, each at most ``limit`` bytes: ``stem-ab.html``, or ``stem-ab-1.html`` and so on. A cycle is
    split only if it fills more than a file; its context is then repeated in each part. Raises `InputError` for a text
    that does not fit into a file."""
    room = limit - len(label_page(replace(sheet, cycles=())).encode()) - 200  # of names and numbers of parts
    pieces, files = list[LabelCycle](), {}
    for material, texts in sheet.cycles:
        shared = _size((material, ()))
        if (size := shared + max(_size(((), (text,))) for text in texts)) > room:
            text = f"a text with its material takes {size:,} bytes, a file holds {room:,}; grade it on the local page"
            raise InputError("--file", [Problem(f"grader {sheet.grader}", f"{text} (without --file)")])
        pieces += [(material, some) for some in paginate(texts, room - shared, lambda text: _size(((), (text,))))]
    parts = paginate(pieces, room, _size)
    for at, cycles in enumerate(parts, 1):
        name = f"{stem}-{sheet.grader}" + (f"-{at}" if len(parts) > 1 else "")
        files[f"{name}.html"] = label_page(replace(sheet, cycles=cycles), part=(at, len(parts)), name=f"{name}.csv")
    return files


def _size(cycle: LabelCycle) -> int:
    """Bytes that a cycle takes on a page."""
    return len(script_data(canonical_json(_cycle(cycle))).encode()) + 1
