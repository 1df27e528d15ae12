"""A page as a parser sees it, for tests of pages."""

from __future__ import annotations

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


def read(html: str) -> Outline:
    """A page as it is built; it fails where tags do not nest."""
    outline = Outline()
    outline.feed(html)
    outline.close()
    assert outline.open == []
    return outline


def words(html: str) -> str:
    """What a page says, without its markup."""
    return " ".join(" ".join(read(html).text).split())


def html_of(made: Mapping[str, str]) -> dict[str, str]:
    """The pages among what was made; files of data and drawings that stand alone are none."""
    return {path: text for path, text in made.items() if path.endswith(".html")}
