"""Long tables in pages of less than a megabyte each."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Protocol, TypeVar

from markupsafe import Markup, escape

from assaymark.encoding import content_id

PAGE_BYTES: Final = 760_000
"""Room for rows on one page; the rest of a megabyte is for the frame around them and for markup."""

_PLAIN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,119}")
_HASHED: Final = re.compile(r".*-[0-9a-f]{8}")


class Sized(Protocol):
    """A row that knows about how many bytes it takes."""

    @property
    def size(self) -> int:
        """Bytes of the row on a page."""
        ...


R = TypeVar("R", bound=Sized)
T = TypeVar("T")


def row_bytes(markup: int, texts: Iterable[str]) -> int:
    """Bytes of a row: its markup and its texts, escaped and encoded.

    >>> row_bytes(10, ["<", "é"])
    16
    """
    return markup + len(escape("".join(texts)).encode(errors="surrogatepass"))


def paged(rows: Sequence[R], limit: int = PAGE_BYTES) -> tuple[tuple[R, ...], ...]:
    """The rows in order, in pages that stay within ``limit`` bytes; at least one page, which may be empty."""
    return paged_by(rows, lambda row: row.size, limit)


def paged_by(rows: Iterable[T], size_of: Callable[[T], int], limit: int) -> tuple[tuple[T, ...], ...]:
    """The same for what does not know its size.

    >>> paged_by("abcd", lambda _: 2, 5)
    (('a', 'b'), ('c', 'd'))
    """
    pages: list[tuple[T, ...]] = []
    page: list[T] = []
    size = 0
    for row in rows:
        room = size_of(row)
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


def in_parts(stem: str, pages: Sequence[T]) -> dict[str, T]:
    """The pages of something long by their files.

    >>> in_parts("claims", ["first", "second"])
    {'claims.html': 'first', 'claims-002.html': 'second'}
    """
    return dict(zip(part_names(stem, len(pages)), pages, strict=True))


def file_stems(folder: str, keys: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Where the pages of things with such keys lie, without their ending: safe as file names, and no two alike.

    >>> file_stems("agents", [("alder",), ("Birch",), ("../x",)])
    ('agents/alder', 'agents/Birch', 'agents/x-407cf666')
    """
    plain = ["-".join(key) for key in keys]
    seen = Counter(name.lower() for name in plain)
    found = []
    for key, name in zip(keys, plain, strict=True):
        safe = _PLAIN.fullmatch(name) and not _HASHED.fullmatch(name) and ".." not in name
        if safe and seen[name.lower()] == 1:
            found.append(f"{folder}/{name}")
            continue
        kept = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:80] or folder.removesuffix("s")
        found.append(f"{folder}/{kept}-{content_id(list(key))[:8]}")
    return tuple(found)


def only(key: str) -> str:
    """The id of the button that shows the rows of one key.

    >>> only("alder")
    'only-c556cf7e13'
    """
    return f"only-{content_id([key])[:10]}"


def beside(
    pages: Iterable[tuple[str, T]], *, part: str = "Part", parts: str = "Parts"
) -> Iterator[tuple[str, T, Markup]]:
    """Paths and what stands there, each with the links to the other parts, which lie in one folder.

    >>> [(path, rows, str(links)) for path, rows, links in beside([("calls/one.html", "rows")])]
    [('calls/one.html', 'rows', '')]
    """
    listed = tuple(pages)
    names = [path.rpartition("/")[2] for path, _ in listed]
    for at, (path, rows) in enumerate(listed):
        yield path, rows, pager(names, at, part=part, parts=parts)


def pager(names: Sequence[str], at: int, *, part: str = "Part", parts: str = "Parts") -> Markup:
    """Links between the parts of something long, after the word for a part; nothing for a single page."""
    if len(names) < 2:
        return Markup("")
    links = Markup("").join(
        Markup('<b aria-current="page">{}</b>').format(place + 1)
        if place == at
        else Markup('<a href="{}">{}</a>').format(name, place + 1)
        for place, name in enumerate(names)
    )
    return Markup('<div class="pager" role="group" aria-label="{}">{} {}</div>').format(parts, part, links)
