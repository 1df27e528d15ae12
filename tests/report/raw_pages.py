"""Reads texts back from the pages that show them, as a browser would: markup in, the words of the model out."""

from __future__ import annotations

from html.parser import HTMLParser


class Raw(HTMLParser):
    """The text of every ``pre`` of a page, below the id of what holds it, with hidden characters put back.

    What was asked is below ``<id> asked``.
    """

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
