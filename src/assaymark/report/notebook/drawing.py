"""A figure of the pages, made fit for a notebook: names that are its own, and the few styles that it needs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final

from assaymark.display import Drawing
from assaymark.records import sha256_text
from assaymark.report.frame import asset
from assaymark.report.tables import Figure

_BLOCK: Final = re.compile(r"@[^{;]+\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}")
_RULE: Final = re.compile(r"([^{}]+)\{([^{}]*)\}")
_CLASS: Final = re.compile(r"\.([A-Za-z][\w-]*)")
_USED: Final = re.compile(r'\bclass="([^"]*)"')
_NAMES: Final = re.compile(r'(\b(?:id|aria-labelledby)="|="url\(#)([^")]+)')


def drawing(figure: Figure, *sheets: str) -> Drawing:
    """A figure for a notebook; ``sheets`` are the style sheets of its page, ``page.css`` beside them."""
    mark = f"a{sha256_text(figure.wide + figure.narrow)[:8]}-"
    wide, narrow = _renamed(figure.wide, mark), _renamed(figure.narrow, mark)
    caption = f"{figure.caption} {figure.note}".strip()
    rules = _needed(("page.css", *sheets), wide + narrow)
    return Drawing(figure.title, caption, wide, narrow, (*rules, asset("notebook.css")))


def _renamed(svg: str, mark: str) -> str:
    """The picture with a mark before each name in it, since a notebook may hold two of a kind."""
    # A quote in a text is escaped, so what stands before one is an attribute.
    return _NAMES.sub(lambda found: found[1] + " ".join(mark + name for name in found[2].split()), svg)


def _needed(sheets: Sequence[str], svg: str) -> Iterator[str]:
    """The rules about classes that the picture has, each held to figures."""
    used = set(" ".join(_USED.findall(svg)).split())
    for selectors, body in _rules(tuple(sheets)):
        kept = [one for one in selectors if _CLASS.search(one) and used.issuperset(_CLASS.findall(one))]
        if kept:
            yield f"{','.join(f'.assay-fig {one}' for one in kept)}{{{body}}}"


@cache
def _rules(sheets: tuple[str, ...]) -> tuple[tuple[tuple[str, ...], str], ...]:
    """The plain rules of style sheets: those for other media, and for what is pointed at, are for pages."""
    css = "\n".join(_BLOCK.sub("", asset(name)) for name in sheets)
    found = []
    for selectors, body in _RULE.findall(css):
        plain = tuple(one.strip() for one in selectors.split(",") if not set(one) & set(":[#*>~"))
        if plain:
            found.append((plain, body))
    return tuple(found)
