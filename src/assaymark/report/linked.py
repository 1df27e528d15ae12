"""Words of a number that lead to the row of its measurement."""

from __future__ import annotations


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
