"""One judge among several: marks that belong to a judge, and what it says of each of them in words.

The style sheet ``judges.css`` keeps the marks of the judge that is pointed at, in every figure of a page, and dims
those of the others. A list of the judges below a figure does the same for a keyboard and a finger, and shows the
values in words. It takes no script.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import svg

POINTED: Final = 12
"""How many judges of a page can be pointed at; the style sheet has a rule for each."""


@dataclass(frozen=True, slots=True)
class JudgeWords:
    """A judge below a figure: its place among the judges of the page, its name, and its values in words."""

    at: int
    name: str
    said: str

    @property
    def pointed(self) -> bool:
        """Whether the style sheet knows it."""
        return self.at < POINTED


def told(judges: Sequence[JudgeWords]) -> str:
    """All judges with their values: the text alternative of a figure that compares them.

    >>> told([JudgeWords(0, "anvil", "2 of 3"), JudgeWords(1, "bellows", "1 of 3")])
    'anvil: 2 of 3; bellows: 1 of 3'
    """
    return "; ".join(f"{one.name}: {one.said}" for one in judges)


ALL: Final = ("j", "jx")
"""The classes of a mark of all judges together: it steps back from the marks of any one."""


def judge_class(at: int | None) -> list[str]:
    """The classes of one mark of the judge at a place; none for a mark of nobody.

    >>> judge_class(2), judge_class(None)
    (['j', 'j2'], [])
    """
    return [] if at is None or at >= POINTED else ["j", f"j{at}"]


def judge_marks(at: int, marks: Sequence[svg.Element]) -> list[svg.Element]:
    """The marks as those of the judge at a place, the same place in every figure of a page.

    >>> from assaymark.report.figures.canvas import line
    >>> print(*judge_marks(2, [line(0, 0, 4, 0, "gs")]))
    <g class="j j2"><line class="gs" x1="0" y1="0" x2="4" y2="0"/></g>
    >>> judge_marks(0, [])
    []
    """
    kinds = judge_class(at)
    return [svg.G(class_=kinds, elements=list(marks))] if marks and kinds else list(marks)
