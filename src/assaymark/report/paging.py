"""Long tables in pages of less than a megabyte each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Protocol, TypeVar

from markupsafe import Markup, escape

PAGE_BYTES: Final = 760_000
"""Room for rows on one page; the rest of a megabyte is for the frame around them and for markup."""


class Sized(Protocol):
    """A row that knows about how many bytes it takes."""

    @property
    def size(self) -> int:
        """Bytes of the row on a page."""
        ...


R = TypeVar("R", bound=Sized)


def row_bytes(markup: int, texts: Iterable[str]) -> int:
    """Bytes of a row: its markup and its texts, escaped and encoded.

    >>> row_bytes(10, ["<", "é"])
    16
    """
    return markup + len(escape("".join(texts)).encode())


def paged(rows: Sequence[R], limit: int = PAGE_BYTES) -> tuple[tuple[R, ...], ...]:
    """The rows in order, in pages that stay within ``limit`` bytes; at least one page, which may be empty."""
    pages: list[tuple[R, ...]] = []
    page: list[R] = []
    size = 0
    for row in rows:
        room = row.size
        if page and size + room > limit:
            pages.append(tuple(page))
            page, size = [], 0
        page.append(row)
        size += room
    return (*pages, tuple(page))


def part_names(stem: str, pages: int) -> list[str]:
    """The files of something long, in order.

    >>> part_names("claims", 3)
    ['claims.html', 'claims-002.html', 'claims-003.html']
    """
    return [f"{stem}.html", *(f"{stem}-{at:03d}.html" for at in range(2, pages + 1))]


def pager(names: Sequence[str], at: int) -> Markup:
    """Links between the parts of something long; nothing for a single page."""
    if len(names) < 2:
        return Markup("")
    links = Markup("").join(
        Markup('<b aria-current="page">{}</b>').format(place + 1)
        if place == at
        else Markup('<a href="{}">{}</a>').format(name, place + 1)
        for place, name in enumerate(names)
    )
    return Markup('<nav class="pager" aria-label="Parts">Part {}</nav>').format(links)
