"""What a page's file must be before any browser opens it: valid, whole, small, and with links that lead somewhere."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from functools import cached_property
from html import unescape
from itertools import pairwise
from pathlib import Path
from posixpath import dirname, join, normpath
from typing import Final
from urllib.parse import unquote, urlsplit
from xml.etree.ElementTree import Element

import html5lib

MAIN_BYTES: Final = 200_000
MAIN_PACKED: Final = 45_000
OTHER_BYTES: Final = 1_000_000
STYLE_BYTES: Final = 20_480
SCRIPT_BYTES: Final = 9_000
"""Of script on a page; the data of a sentence bench come on top."""

_HEADINGS: Final = {"h1", "h2", "h3", "h4", "h5", "h6"}
_LOADING: Final = {"img", "link", "iframe", "object", "embed", "base", "form", "audio", "video", "source", "template"}
_PHRASING_ONLY: Final = {
    "p", "span", "h1", "h2", "h3", "h4", "h5", "h6", "button", "label", "b", "i", "em", "strong", "small", "code",
    "pre", "q", "cite", "output", "abbr", "time",
}  # fmt: skip
_FLOW: Final = {
    "p", "div", "section", "article", "aside", "nav", "header", "footer", "main", "h1", "h2", "h3", "h4", "h5", "h6",
    "ul", "ol", "li", "dl", "dt", "dd", "table", "thead", "tbody", "tr", "td", "th", "figure", "figcaption", "details",
    "summary", "pre", "blockquote", "hr",
}  # fmt: skip
_PARENTS: Final = {
    "li": {"ul", "ol"}, "tr": {"thead", "tbody", "tfoot"}, "td": {"tr"}, "th": {"tr"}, "caption": {"table"},
    "dt": {"dl", "div"}, "dd": {"dl", "div"}, "figcaption": {"figure"}, "summary": {"details"},
}  # fmt: skip
_CHILDREN: Final = {
    "ul": {"li"}, "ol": {"li"}, "tr": {"td", "th"}, "tbody": {"tr"}, "thead": {"tr"},
    "table": {"caption", "colgroup", "thead", "tbody", "tfoot"}, "dl": {"dt", "dd", "div"},
}  # fmt: skip
_REFERENCES: Final = (
    "for", "headers", "aria-labelledby", "aria-describedby", "aria-controls", "aria-owns", "data-tools",
)  # fmt: skip


_BODIES: Final = re.compile(r"(<(script|style)[^>]*>).*?(</\2>)", re.DOTALL)
_STYLE: Final = re.compile(r"<style>(.*?)</style>", re.DOTALL)
_TAG: Final = re.compile(r"<[a-zA-Z][^<>]*>")
_STEP: Final = re.compile(r"<(/?)([a-zA-Z][\w-]*)([^<>]*?)(/?)>")
_ATTRIBUTE: Final = re.compile(r"""\s([\w:-]+)=(?:"([^"]*)"|'([^']*)')""")
_NAMED: Final = re.compile(r"""\s([\w:-]+)(?:="([^"]*)"|='([^']*)')?""")
_EMPTY: Final = {"area", "br", "col", "hr", "input", "link", "meta", "wbr"}
_BETWEEN: Final = re.compile(r">(?:[^<>&]|&(?:amp|lt|gt|#34|#39);)+(?=<)")
_VALUES: Final = re.compile(r'="(?:[^"<>&]|&(?:amp|lt|gt|#34|#39);)*"')
_REPEATED: Final = re.compile(r"(<(div|li|button|details)\b[^<>]*>(?:(?!</\2>).)*</\2>)\1+")
_ROW: Final = re.compile(
    r"^<(tr|li|p|div|option)\b[^<>\n]*>[^\n]*</\1>$\n?|^<section class=\"call\".*?^</section>$\n?", re.M | re.S
)


@dataclass(frozen=True)
class Page:
    """A page as a strict parser sees it: one of each kind of row, because rows are many and the parser is slow.

    Pages of one folder are made by one template and share the kinds of rows that have been ``read``.
    """

    name: str
    text: str
    read: set[str] = field(default_factory=set, compare=False)

    @cached_property
    def _parsed(self) -> tuple[Element, list[str]]:
        parser = html5lib.HTMLParser(namespaceHTMLElements=False)
        root = parser.parse(_without_repeats(self.text, self.read))
        return root, [f"{where}: {code} {data or ''}" for where, code, data in parser.errors]

    @property
    def errors(self) -> list[str]:
        """What is not HTML, by line and column."""
        return self._parsed[1]

    @cached_property
    def elements(self) -> list[tuple[Element, tuple[str, ...]]]:
        """Elements with the names of those that they stand in, outermost first; one of each kind of row."""
        return list(_walked(self._parsed[0], ()))

    @cached_property
    def attributes(self) -> list[tuple[str, str]]:
        """Every attribute of the whole page with its value."""
        tags = _TAG.findall(_BODIES.sub(r"\1\3", self.text))
        return [(name, unescape(one or other)) for tag in tags for name, one, other in _ATTRIBUTE.findall(tag)]

    @cached_property
    def ids(self) -> Counter[str]:
        """How often each id is given."""
        return Counter(value for name, value in self.attributes if name == "id")

    @cached_property
    def _steps(self) -> list[tuple[str, str, str, str]]:
        """Tags of its body in their order: whether one ends, its name, its attributes, whether it ends itself."""
        return _STEP.findall(_BODIES.sub(r"\1\3", self.text.partition("</head>")[2]))

    @property
    def kinds(self) -> frozenset[tuple[str, str]]:
        """Every pair of an element's name and one of its attributes, whatever they hold and wherever it stands."""
        written = {(tag, attributes) for end, tag, attributes, _ in self._steps if not end}
        return frozenset(
            (tag, name) for tag, one in written for name in ("", *(name for name, *_ in _NAMED.findall(one)))
        )

    @property
    def blocks(self) -> frozenset[tuple[str, str, str]]:
        """What it is built of: under its style sheet, each kind of element in each kind of parent. A kind is a name,
        its classes, and the names of its other attributes.
        """
        style = " ".join(str(len(one)) for one in _STYLE.findall(self.text))
        found, marks, open_ones = set(), dict[tuple[str, str], str](), [""]
        for end, tag, written, closed in self._steps:
            if end:
                del open_ones[max(1, len(open_ones) - 1) :]
                continue
            mark = marks.get((tag, written))
            if mark is None:
                named = _NAMED.findall(written)
                names = sorted(f".{one or other}" if name == "class" else f" {name}" for name, one, other in named)
                mark = marks[tag, written] = tag + "".join(names)
            found.add((style, open_ones[-1], mark))
            if not closed and tag not in _EMPTY:
                open_ones.append(mark)
        return frozenset(found)


def covering(kinds: Mapping[str, Set[Hashable]], known: Set[Hashable] = frozenset()) -> list[str]:
    """Pages that together hold every kind that is not known, the one with most of them first."""
    left, known, found = dict(kinds), set(known), list[str]()
    while left and (name := max(left, key=lambda one: len(left[one] - known))) and not left[name] <= known:
        known |= left.pop(name)
        found.append(name)
    return found


def _without_repeats(text: str, seen: set[str]) -> str:
    """A page without rows and calls that differ from one seen before in escaped words and values alone.

    One with a character in it that could be markup is never left out.
    """

    def kept(found: re.Match[str]) -> str:
        row = found[0]
        kind = _REPEATED.sub(r"\1", _VALUES.sub('=""', _BETWEEN.sub(">", row)))
        tag = found[1] or "section"
        if "rowspan" in row or row.count(f"<{tag}") != row.count(f"</{tag}") or kind not in seen:
            seen.add(kind)
            return row
        return ""

    return _ROW.sub(kept, text)


def _walked(element: Element, above: tuple[str, ...]) -> Iterator[tuple[Element, tuple[str, ...]]]:
    if not isinstance(element.tag, str):
        yield Element("a-comment"), above  # no template writes one into a page
        return
    yield element, above
    for child in element:
        yield from _walked(child, (*above, element.tag))


def pages_below(root: Path) -> Mapping[str, Page]:
    """All pages below a folder by their path in it, whatever they are."""
    read = defaultdict[Path, set[str]](set)
    found = {path.relative_to(root).as_posix(): path for path in sorted(root.rglob("*.html"))}
    return {
        name: Page(name, path.read_text(encoding="utf-8"), set() if path.parent == root else read[path.parent])
        for name, path in found.items()
    }


def markup_problems(page: Page) -> list[str]:
    """What is wrong with a page taken alone."""
    found = [f"not HTML: {error}" for error in page.errors]
    found += [f"id {name!r} stands {count} times" for name, count in page.ids.items() if count > 1]
    tags = Counter(str(element.tag) for element, _ in page.elements)
    found += [f"{tags[name]} {name}, wants one" for name in ("h1", "main", "title", "style") if tags[name] != 1]
    levels = [int(str(one.tag)[1]) for one, _ in page.elements if str(one.tag) in _HEADINGS]
    found += [f"h{low} after h{high}" for high, low in pairwise(levels) if low > high + 1]
    for element, above in page.elements:
        found += _misplaced(element, above)
    found += [f"{name}={word!r} names no id" for name, word in _references(page) if word not in page.ids]
    return [f"{page.name}: {one}" for one in dict.fromkeys([*found, *_head(page), *_too_large(page)])]


def _misplaced(element: Element, above: tuple[str, ...]) -> Iterator[str]:
    tag, parent = str(element.tag), above[-1] if above else ""
    feed = tag == "link" and element.attrib.get("rel") == "alternate" and parent == "head"  # names, and loads nothing
    if (tag in _LOADING and not feed) or "src" in element.attrib or tag == "a-comment":
        yield f"{tag} has no place in a page"
    if tag in ("meta", "style", "title") and parent not in ("head", "svg"):
        yield f"{tag} in {parent}"
    if tag in _PARENTS and parent not in _PARENTS[tag]:
        yield f"{tag} in {parent}"
    if parent in _CHILDREN and tag not in _CHILDREN[parent]:
        yield f"{tag} in {parent}"
    if tag in _FLOW and parent in _PHRASING_ONLY:
        yield f"{tag} in {parent}: {''.join(element.itertext())[:60]!r}"
    if tag in ("a", "button") and {"a", "button"} & set(above):
        yield f"{tag} inside of something that is clicked"
    yield from (f"{tag} has {name}" for name in element.attrib if str(name).startswith("on"))
    if tag == "th" and "scope" not in element.attrib:
        yield f"th without scope: {''.join(element.itertext())[:60]!r}"
    if tag == "table":
        yield from _ragged(element)


def _ragged(table: Element) -> Iterator[str]:
    """Rows of a table that are wider or narrower than its first."""
    widths: list[int] = []
    reaching: list[tuple[int, int]] = []  # rows still to come, and columns, of cells that began further up
    for row in table.iter("tr"):
        cells = [(int(one.attrib.get("rowspan", 1)), int(one.attrib.get("colspan", 1))) for one in row]
        widths.append(sum(columns for _, columns in (*cells, *reaching)))
        reaching = [(rows - 1, columns) for rows, columns in (*cells, *reaching) if rows > 1]
    if len(set(widths)) > 1:
        yield f"table {table.attrib.get('id', '')!r} has rows of {sorted(set(widths))} cells"


def _references(page: Page) -> Iterator[tuple[str, str]]:
    for name, value in page.attributes:
        if name in _REFERENCES:
            yield from ((name, word) for word in value.split())
        elif value.startswith("url(#"):
            yield name, value[5:-1]


def _head(page: Page) -> Iterator[str]:
    """What the head of every page has to have, and in which order."""
    if not page.text.startswith("<!doctype html>\n<html lang="):
        yield "does not begin with its doctype and language"
    policy = page.text.find('<meta http-equiv="Content-Security-Policy" content="default-src &#39;none&#39;')
    if not 0 < policy < page.text.find("<style>"):
        yield "has no policy ahead of its style"
    for one, _ in page.elements:
        if one.tag == "script" and one.attrib.get("type") == "application/json":
            json.loads(one.text or "")  # data run nowhere
        elif one.tag == "script" and _digest(one.text or "") not in page.text[:2000]:
            yield f"its policy does not name this script: {(one.text or '')[:60]!r}"
    for wanted in ('<meta charset="utf-8">', '<meta name="viewport" content="width=device-width, initial-scale=1">'):
        if wanted not in page.text:
            yield f"lacks {wanted}"


def _digest(script: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"


def _too_large(page: Page) -> Iterator[str]:
    data = page.text.encode()
    most = MAIN_BYTES if Path(page.name).name == "index.html" else OTHER_BYTES
    if len(data) > most:
        yield f"{len(data):,} bytes, at most {most:,}"
    if most == MAIN_BYTES and (packed := len(gzip.compress(data))) > MAIN_PACKED:
        yield f"{packed:,} bytes compressed, at most {MAIN_PACKED:,}"
    for tag, most in (("style", STYLE_BYTES), ("script", SCRIPT_BYTES)):
        found = [one for one, _ in page.elements if one.tag == tag and "type" not in one.attrib]
        size = sum(len((one.text or "").encode()) for one in found)
        if size > most:
            yield f"{size:,} bytes of {tag}, at most {most:,}"


def link_problems(root: Path, pages: Mapping[str, Page]) -> list[str]:
    """Links that lead out of the folder, to a file that is not there, or to an id that its page does not have."""
    found = []
    files = {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}
    for page in pages.values():
        for link in {value for name, value in page.attributes if name in ("href", "xlink:href")}:
            if why := _lost(files, pages, page, link):
                found.append(f"{page.name}: something leads to {link[:120]!r}, {why}")
    return sorted(found)


def _lost(files: Set[str], pages: Mapping[str, Page], page: Page, link: str) -> str:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc or parts.path.startswith("/"):
        return "which is not beside it"
    target = normpath(join(dirname(page.name), unquote(parts.path))) if parts.path else page.name
    if target.startswith(".."):
        return "which is outside of its folder"
    if target not in files:
        return "which does not exist"
    other = pages.get(target)
    if parts.fragment and (other is None or unquote(parts.fragment) not in other.ids):
        return "which has no such id"
    return ""
