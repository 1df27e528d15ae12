"""A page as tests read it: what it is built of, the texts that it shows, and the rows that its numbers lead to."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from html.parser import HTMLParser

VOID = {"meta", "br", "input", "img", "link"}


class Outline(HTMLParser):
    """Checks that tags nest and ids are unique, and gathers links, ids, headings and text."""

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.links, self.tags, self.attributes = [], [], [], [], []
        self.text, self.serif, self.lang = [], [], ""

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.tags.append(tag)
        if tag == "html":
            self.lang = found["lang"]
        self.attributes += [name for name, _ in attrs]
        if tag not in VOID:
            self.open.append((tag, found.get("class") or ""))
        if "id" in found:
            self.ids.append(found["id"])
        if tag == "a":
            self.links.append(found["href"])

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open
        assert self.open[-1][0] == tag, (self.open[-3:], tag, self.getpos())
        self.open.pop()

    def handle_data(self, data):
        inside = [tag for tag, _ in self.open]
        if not {"style", "script"} & set(inside):
            self.text.append(data)
            if any("quote" in kind.split() for _, kind in self.open):
                self.serif.append(data)


def read(page: str) -> Outline:
    """A page as it is built; it fails where tags do not nest."""
    outline = Outline()
    outline.feed(page)
    outline.close()
    assert outline.open == []
    return outline


def words(page: str) -> str:
    """The text of a page, without its markup."""
    return " ".join(" ".join(read(page).text).split())


def html_of(made: Mapping[str, str]) -> dict[str, str]:
    """The pages among what was made; files of data and drawings that stand alone are none."""
    return {path: text for path, text in made.items() if path.endswith(".html")}


# --- texts as a browser would give them back: markup in, the words of the model out ----------------------------------


class Raw(HTMLParser):
    """The text of every ``pre`` of a page, below the id of what holds it, with hidden characters put back.
    What was asked is below ``<id> asked``."""

    def __init__(self):
        super().__init__()
        self.texts: dict[str, list[str]] = {}
        self.around, self.into, self.inside, self.hidden, self.first = "", "", False, False, False

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        if tag == "section" and found.get("class") == "call":
            self.around = found["id"]
        if tag == "pre":
            self.inside = self.first = True
            self.into = f"{self.around} asked" if found.get("class") == "said" else self.around
            self.texts.setdefault(self.into, []).append("")
        self.hidden = tag == "i" and found.get("class") == "u"

    def handle_endtag(self, tag):
        self.inside = self.inside and tag != "pre"
        self.hidden = False

    def handle_data(self, data):
        if not self.inside:
            return
        if self.first:  # a browser drops the line break that follows the tag
            assert data.startswith("\n")
            data, self.first = data[1:], False
        self.texts[self.into][-1] += chr(int(data.removeprefix("U+"), 16)) if self.hidden else data


def raw_texts(page: str) -> dict[str, list[str]]:
    """Each id of a call, or of a text, with the texts shown there."""
    reader = Raw()
    reader.feed(page)
    reader.close()
    return reader.texts


# --- numbers that lead to rows ---------------------------------------------------------------------------------------

NUMBER = re.compile(r"[+−]?\d[\d,]*\.?\d*")
ROW = re.compile(r'<tr [^>]*\bid="([^"]+)"[^>]*>(.*?)</tr>', re.DOTALL)
_TAGS = re.compile(r"<[^>]+>")


def cells(page: str) -> dict[str, list[str]]:
    """The cells of every row that has an id, as text."""
    return {anchor: [plain(cell) for cell in re.split(r"</t[hd]>", row)[:-1]] for anchor, row in ROW.findall(page)}


def links_to(page: str, where: str) -> list[tuple[str, str, str]]:
    """Links from a page to rows of pages whose path matches: path, anchor, and link text."""
    found = re.findall(rf'<a href="({where})#(m[0-9a-f-]+)">(.*?)</a>', page, flags=re.DOTALL)
    return [(path, anchor, plain(text)) for path, anchor, text in found]


def plain(markup: str) -> str:
    """Markup as text."""
    return html.unescape(_TAGS.sub(" ", markup)).strip()


def first_number(text: str) -> tuple[float, int]:
    """The first number of a text, without its sign, and how many decimals it has."""
    written = NUMBER.search(text)[0].lstrip("+−").replace(",", "")
    return float(written), len(written.partition(".")[2])
