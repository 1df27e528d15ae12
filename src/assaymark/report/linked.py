"""Words of a number that lead to the row of its measurement."""

from __future__ import annotations

from collections.abc import Mapping

from assaymark.records import Measurement


class Linked(str):
    """A text that pages show as a link to ``href``, below the folder of the report; elsewhere the text that it is.

    >>> said = Linked("0.64", "measurements.html#m1")
    >>> said == "0.64", said.href
    (True, 'measurements.html#m1')
    """

    __slots__ = ("href",)

    href: str

    def __new__(cls, text: str, href: str) -> Linked:
        """``text`` as a link."""
        made = super().__new__(cls, text)
        made.href = href
        return made


def leading(item: Measurement | None, text: str, links: Mapping[str, str]) -> str:
    """A text that leads to the row of a measurement where it has a value and a row; else the text alone.

    ``links`` gives the row of a measurement by its id.
    """
    href = None if item is None or item.value is None else links.get(item.id)
    return text if href is None else Linked(text, href)
