"""Checks of a page's file before any browser opens it: valid, whole, small, and with links that lead somewhere."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cached_property
from html import unescape
from itertools import pairwise
from pathlib import Path
from posixpath import dirname, join, normpath
from typing import Final
from urllib.parse import unquote, urlsplit

import html5lib

MAIN_BYTES: Final = 200_000
MAIN_PACKED: Final = 45_000
OTHER_BYTES: Final = 1_000_000
STYLE_BYTES: Final = 20_480
SCRIPT_BYTES: Final = 9_000
"""Of script on a page; the data of a sentence bench come on top."""

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
    **{name: {"head", "svg"} for name in ("meta", "style", "title")},
}  # fmt: skip
_CHILDREN: Final = {
    "ul": {"li"}, "ol": {"li"}, "tr": {"td", "th"}, "tbody": {"tr"}, "thead": {"tr"},
    "table": {"caption", "colgroup", "thead", "tbody", "tfoot"}, "dl": {"dt", "dd", "div"},
}  # fmt: skip
_REFERENCES: Final = (
    "for", "headers", "aria-labelledby", "aria-describedby", "aria-controls", "aria-owns", "data-tools",
)  # fmt: skip

_BODIES: Final = re.compile(r"(<(script|style)[^>]*>)(.*?)(</\2>)", re.DOTALL)
_TAG: Final = re.compile(r"""<(/?)([a-zA-Z][\w-]*)((?:\s+[\w:-]+(?:="[^"<]*"|='[^'<]*'|=[\w-]+)?)*)\s*(/?)>""")
_ATTRIBUTE: Final = re.compile(r"""\s([\w:-]+)(?:="([^"]*)"|='([^']*)')?""")
_ODD: Final = re.compile(r"<.{0,40}|&(?!#?\w+;).{0,20}", re.DOTALL)
_EMPTY: Final = {"area", "br", "col", "hr", "input", "link", "meta", "wbr"}
_SILENT: Final = re.compile(r'>[^<>]+(?=<)|="[^"<>]*"')
_POLICY: Final = re.compile(
    r"default-src 'none'; style-src 'unsafe-inline'; (?:script-src ([^;]+); img-src data:; )?base-uri 'none'; "
    r"form-action 'none'(?:; connect-src 'self')?"
)
_ROW: Final = re.compile(
    r"^<(tr|li|p|div|option)\b[^<>\n]*>[^\n]*</\1>$\n?|^<section class=\"call\".*?^</section>$\n?", re.M | re.S
)


@dataclass(frozen=True)
class Page:
    """A page as its tags say: one pass over them tells what it is built of and what is wrong with it."""

    name: str
    text: str

    @cached_property
    def attributes(self) -> list[tuple[str, str]]:
        """Every attribute with its value."""
        return [
            (name, unescape(one or other)) for _, _, written, _ in self._tags if written
            for name, one, other in _ATTRIBUTE.findall(written)
        ]  # fmt: skip

    @cached_property
    def ids(self) -> Counter[str]:
        """The number of times that each id is given."""
        return Counter(value for name, value in self.attributes if name == "id")

    @cached_property
    def _tags(self) -> list[tuple[str, str, str, str]]:
        """Each tag: whether it ends an element, its name, its attributes, and whether it closes itself."""
        return _TAG.findall(_BODIES.sub(r"\1\4", self.text))

    @cached_property
    def _walked(self) -> tuple[set[tuple[str, str]], set[tuple[str, str]], dict[str, None]]:
        blocks, kinds, wrong = set[tuple[str, str]](), set[tuple[str, str]](), dict[str, None]()
        marks, above, tables, levels = dict[tuple[str, str], str](), [("", "")], list[_Table](), list[int]()
        for end, tag, written, closed in self._tags:
            if end:
                if above[-1][0] != tag:
                    wrong[f"not HTML: {above[-1][0]} ends with {tag}"] = None
                if len(above) > 1:
                    above.pop()
                if tag == "table" and tables and (why := tables.pop().ragged()):
                    wrong[why] = None
                continue
            mark = marks.get((tag, written))
            if mark is None:
                names = _ATTRIBUTE.findall(written)
                own = sorted(f".{one or other}" if name == "class" else f" {name}" for name, one, other in names)
                mark = marks[tag, written] = tag + "".join(own)
                kinds |= {(tag, ""), *((tag, name) for name, *_ in names)}
                if len({name for name, *_ in names}) < len(names):
                    wrong[f"not HTML: {tag} has an attribute twice"] = None
            if (above[-1][1], mark) not in blocks or tag in ("a", "button"):
                blocks.add((above[-1][1], mark))
                wrong |= dict.fromkeys(_misplaced(tag, written, [one for one, _ in above]))
            if tag == "table":
                tables.append(_Table())
            elif tag in ("tr", "td", "th") and tables:
                tables[-1].add(tag, written)
            elif tag in ("h1", "h2", "h3", "h4", "h5", "h6"):
                levels.append(int(tag[1]))
            if not closed and tag not in _EMPTY:
                above.append((tag, mark))
        wrong |= {f"h{low} after h{high}": None for high, low in pairwise(levels) if low > high + 1}
        return blocks, kinds, wrong

    @property
    def blocks(self) -> Set[tuple[str, str]]:
        """Each kind of element of the page in each kind of parent. A kind is a name, its classes, and the
        names of its other attributes."""
        return self._walked[0]

    @property
    def kinds(self) -> Set[tuple[str, str]]:
        """Every pair of an element's name and one of its attributes, whatever they hold and wherever it stands."""
        return self._walked[1]

    @property
    def errors(self) -> list[str]:
        """The errors of a strict parser; of rows that differ in words and values alone it sees one of each kind."""
        parser, seen = html5lib.HTMLParser(namespaceHTMLElements=False), set[str]()

        def kept(found: re.Match[str]) -> str:
            kind = _SILENT.sub("", found[0])
            if kind in seen and "rowspan" not in kind:
                return ""
            seen.add(kind)
            return found[0]

        parser.parse(_ROW.sub(kept, self.text))
        return [f"{self.name}: not HTML: {where}: {code} {data or ''}" for where, code, data in parser.errors]

    @property
    def standing(self) -> list[str]:
        """Errors in the nesting of its elements, and text that is not markup."""
        rest = _TAG.sub("", _BODIES.sub(r"\1\4", self.text).removeprefix("<!doctype html>"))
        return [*self._walked[2], *(f"not HTML: {odd!r}" for odd in _ODD.findall(rest))]


class _Table:
    """The widths of the rows of a table."""

    def __init__(self) -> None:
        self.rows = list[list[tuple[int, int]]]()

    def add(self, tag: str, written: str) -> None:
        """A row, or a cell of the last: how many rows and columns it takes."""
        if tag == "tr":
            self.rows.append([])
        elif self.rows:
            spans = dict(re.findall(r'(rowspan|colspan)=["\'](\d+)', written))
            self.rows[-1].append((int(spans.get("rowspan", 1)), int(spans.get("colspan", 1))))

    def ragged(self) -> str:
        """Name the widths of rows if they differ; empty if they do not."""
        widths, reaching = set[int](), list[tuple[int, int]]()  # rows still to come, of cells that began further up
        for cells in self.rows:
            widths.add(sum(columns for _, columns in (*cells, *reaching)))
            reaching = [(rows - 1, columns) for rows, columns in (*cells, *reaching) if rows > 1]
        return f"a table has rows of {sorted(widths)} cells" if len(widths) > 1 else ""


def covering(kinds: Mapping[str, Set[Hashable]], known: Set[Hashable] = frozenset()) -> list[str]:
    """Pages that together hold every kind that is not known, the one with most of them first."""
    left, known, found = dict(kinds), set(known), list[str]()
    while left and (name := max(left, key=lambda one: len(left[one] - known))) and not left[name] <= known:
        known |= left.pop(name)
        found.append(name)
    return found


PARSED: Final = set[tuple[str, str]]()
"""The blocks of pages that a strict parser has read: it is slow, and finds the same in equal blocks."""


def parser_problems(pages: Mapping[str, Page]) -> list[str]:
    """The errors of a strict parser in the pages that hold blocks which it has not read yet."""
    found = []
    for path in covering({path: page.blocks for path, page in pages.items()}, PARSED):
        found += pages[path].errors
        PARSED.update(pages[path].blocks)
    return found


def pages_below(root: Path) -> Mapping[str, Page]:
    """All pages below a folder by their path in it, whatever they are."""
    found = {path.relative_to(root).as_posix(): path for path in sorted(root.rglob("*.html"))}
    return {name: Page(name, path.read_text(encoding="utf-8")) for name, path in found.items()}


def markup_problems(page: Page) -> list[str]:
    """Return the problems of a page taken alone, by its tags; a strict parser may find more (``errors``)."""
    found = [*page.standing, *(f"id {name!r} stands {count} times" for name, count in page.ids.items() if count > 1)]
    head, _, body = page.text.partition("</head>")
    for name, part in {"title": head, "style": page.text, "h1": body, "main": body}.items():
        if (count := len(re.findall(rf"<{name}\b", part))) != 1:
            found.append(f"{count} {name}, wants one")
    for name, value in page.attributes:
        named = value.split() if name in _REFERENCES else [value[5:-1]] if value.startswith("url(#") else []
        found += [f"{name}={word!r} names no id" for word in named if word not in page.ids]
    return [f"{page.name}: {one}" for one in dict.fromkeys([*found, *_head(page), *_too_large(page)])]


def _misplaced(tag: str, written: str, above: list[str]) -> Iterator[str]:
    parent, names = above[-1], {name for name, *_ in _ATTRIBUTE.findall(written)}
    feed = tag == "link" and 'rel="alternate"' in written and parent == "head"  # names, and loads nothing
    if (tag in _LOADING and not feed) or "src" in names:
        yield f"{tag} has no place in a page"
    yield from (f"{tag} has {name}" for name in names if name.startswith("on"))
    if "svg" in above:
        return
    if parent not in _PARENTS.get(tag, {parent}) or tag not in _CHILDREN.get(parent, {tag}):
        yield f"{tag} in {parent}"
    if tag in _FLOW and parent in _PHRASING_ONLY:
        yield f"{tag} in {parent}"
    if tag in ("a", "button") and {"a", "button"} & set(above):
        yield f"{tag} inside of something that is clicked"
    if tag == "th" and "scope" not in names:
        yield "th without scope"


def _head(page: Page) -> Iterator[str]:
    """Yield the problems of a page's head: elements that are missing, or in another order."""
    if not page.text.startswith("<!doctype html>\n<html lang="):
        yield "does not begin with its doctype and language"
    ahead = page.text.partition("<style>")[0]
    policy = re.search('<meta http-equiv="Content-Security-Policy" content="([^"]*)"', ahead)
    allowed = _POLICY.fullmatch(unescape(policy[1])) if policy else None
    if allowed is None:
        yield "has no policy of ours ahead of its style"
    named = set((allowed[1] or "").split()) if allowed else set()
    for opened, tag, script, _ in _BODIES.findall(page.text):
        if 'type="application/json"' in opened:
            json.loads(script)  # data run nowhere
        elif tag == "script":
            if _digest(script) not in named:
                yield f"its policy does not name this script: {script[:60]!r}"
            named.discard(_digest(script))
    yield from (f"its policy allows {one}, which it does not hold" for one in sorted(named))
    for wanted in ('<meta charset="utf-8">', '<meta name="viewport" content="width=device-width, initial-scale=1">'):
        if wanted not in page.text:
            yield f"lacks {wanted}"


def _digest(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def _too_large(page: Page) -> Iterator[str]:
    data = page.text.encode()
    most = MAIN_BYTES if Path(page.name).name == "index.html" else OTHER_BYTES
    if len(data) > most:
        yield f"{len(data):,} bytes, at most {most:,}"
    if most == MAIN_BYTES and (packed := len(gzip.compress(data))) > MAIN_PACKED:
        yield f"{packed:,} bytes compressed, at most {MAIN_PACKED:,}"
    for tag, most in (("style", STYLE_BYTES), ("script", SCRIPT_BYTES)):
        bodies = [body for opened, one, body, _ in _BODIES.findall(page.text) if one == tag and "type=" not in opened]
        if (size := sum(len(one.encode()) for one in bodies)) > most:
            yield f"{size:,} bytes of {tag}, at most {most:,}"


def link_problems(root: Path, pages: Mapping[str, Page]) -> list[str]:
    """Links that lead out of the folder, to a file that is not there, or to an id that its page does not have."""
    return _lost_links({path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}, pages)


def made_problems(made: Mapping[str, str], besides: Set[str] = frozenset()) -> list[str]:
    """Return the problems of pages by path, each alone and together; some more files lie beside them."""
    pages = {path: Page(path, text) for path, text in made.items() if path.endswith(".html")}
    found = [one for page in pages.values() for one in markup_problems(page)]
    return [*found, *_lost_links(made.keys() | besides, pages), *parser_problems(pages)]


def _lost_links(files: Set[str], pages: Mapping[str, Page]) -> list[str]:
    found = []
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
    gone = parts.fragment and (other is None or unquote(parts.fragment) not in other.ids)
    return "which has no such id" if gone else ""
