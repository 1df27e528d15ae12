"""Numbers of pages that lead to rows, as a test reads them: links, and rows by their anchors."""

from __future__ import annotations

import html
import re

NUMBER = re.compile(r"[+−]?\d[\d,]*\.?\d*")
ROW = re.compile(r'<tr [^>]*\bid="([^"]+)"[^>]*>(.*?)</tr>', re.DOTALL)
_TAGS = re.compile(r"<[^>]+>")


def cells(page: str) -> dict[str, list[str]]:
    """The cells of every row that has an id, as text."""
    return {anchor: [plain(cell) for cell in re.split(r"</t[hd]>", row)[:-1]] for anchor, row in ROW.findall(page)}


def links_to(page: str, where: str) -> list[tuple[str, str, str]]:
    """What leads from a page to rows of pages whose path matches: path, anchor, and the text of the link."""
    found = re.findall(rf'<a href="({where})#(m[0-9a-f-]+)">(.*?)</a>', page, flags=re.DOTALL)
    return [(path, anchor, plain(text)) for path, anchor, text in found]


def plain(markup: str) -> str:
    """Markup as text."""
    return html.unescape(_TAGS.sub(" ", markup)).strip()


def first_number(text: str) -> tuple[float, int]:
    """The first number of a text, without its sign, and how many decimals it has."""
    written = NUMBER.search(text)[0].lstrip("+−").replace(",", "")
    return float(written), len(written.partition(".")[2])
