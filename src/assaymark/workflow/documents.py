"""The sentences of Markdown, HTML, LaTeX and plain text, each with its place: code, links' targets and markup left out.

A text is overlaid by one of the same length, in which what is no prose is gone, so that every place stays known.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import escape, unescape
from pathlib import PurePath
from typing import Final, Literal

Form = Literal["markdown", "html", "latex", "text"]

_FORMS: Final[dict[str, Form]] = {
    **dict.fromkeys((".md", ".markdown", ".mdx", ".qmd", ".rmd", ".mdown"), "markdown"),
    **dict.fromkeys((".html", ".htm", ".xhtml"), "html"), **dict.fromkeys((".tex", ".ltx"), "latex"),
}  # fmt: skip
_GONE, _BREAK = "\x00", "\x1e"
_LONGEST_CODE: Final = 1000
_INLINE: Final = (
    "a", "abbr", "b", "cite", "del", "em", "font", "i", "ins", "mark", "q", "s", "small", "span", "strong", "sub",
    "sup", "time", "tt", "u", "var",
)  # fmt: skip
_CODE: Final = ("code", "kbd", "samp")
_UNREAD: Final = (*_CODE, "math", "noscript", "pre", "script", "style", "svg", "template", "textarea")
_TAG: Final = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9-]*)(?:\s[^<>]*|/)?>")
_ENTITY: Final = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z]{2,31});")
_URL: Final = re.compile(r"<?\b(?:https?://|www\.)[^\s<>)\]]+>?")
_MARKER: Final = re.compile(r"[ \t]*(?:[-*+•][ \t]+|\d{1,4}[.)][ \t]+|#{1,6}[ \t]+)(?:\[[ xX]\][ \t])?")
_QUOTE: Final = re.compile(r"[ \t]{0,3}>[ \t]?")
_FENCE: Final = re.compile(r"[ \t]*(?:>[ \t]?)*[ \t]*(`{3,}|~{3,})")
_RULE: Final = re.compile(r"[ \t]*(?:=+|-{2,}|(?:\*[ \t]*){3,}|_{3,})[ \t]*\r?$")
_DEFINITION: Final = re.compile(r"[ \t]{0,3}\[[^\]\n]{1,200}\]:[ \t]")
_MARKDOWN: Final = re.compile(
    r"\]\([^()\s]*(?:\([^()\s]*\)[^()\s]*)?(?:[ \t]+\"[^\"\n]*\")?\)|\]\[[^\]\n]{0,200}\]|\[[\d,\s–-]{1,20}\]|"
    r"\[\^[^\]\n]{1,40}\]|!?\[|\]|\*+|~~|(?<!\w)_+|_+(?!\w)|\\(?=[!-/:-@\[-`{-~])"
)
_LATEX: Final = re.compile(
    r"(?<!\\)%[^\n]*|\\(?:cite\w*|[a-z]*ref|label|url|includegraphics|input|include|bibliography\w*|usepackage|documentclass|"
    r"begin|end|vspace|hspace|setlength|color)\*?(?:\[[^\]\n]*\])?(?:\{[^{}]*\})?|"
    r"\\[a-zA-Z]+\*?(?:\[[^\]\n]*\])?[ \t]?|[{}$]|``|''|\\(?=[%&_#$])"
)
_LATEX_BREAKS: Final = re.compile(r"\\(?:(?:sub)*section|paragraph|chapter|item|caption|title|begin|end)\b")
_TITLE: Final = re.compile(r"\\(?:(?:sub)*section|paragraph|chapter|title|caption)\*?\{[^{}\n]{0,500}\}")
_VERBATIM: Final = re.compile(r"\\begin\{(verbatim|lstlisting|minted|equation\*?|align\*?|tabular[*x]?|tikzpicture)\}")
_END: Final = re.compile(r"[.!?…]+[\"'”’)\]\x00]*(?=\s|$)")
_ABBREVIATED: Final = re.compile(
    r"(?:\b(?:vs|e\.g|i\.e|et al|cf|figs?|secs?|eqs?|tab|approx|ca|dr|mr|ms|mrs|prof|inc|ltd|resp|vol|pp|st|etc|no)|"
    r"(?<!\w)[A-Z])\.$",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence as it is read, where it is in its document, and which block of text it belongs to."""

    text: str
    start: int
    end: int
    block: int


@dataclass(frozen=True)
class Document:
    """A text with its form; ``keep`` says of which inline code the words are read, as the name of an agent."""

    text: str
    form: Form
    keep: Callable[[str], bool]

    def sentences(self) -> Iterator[Sentence]:
        """Every sentence of its prose, in order."""
        overlaid = "".join(
            {"markdown": self._markdown, "html": self._html, "latex": self._latex}.get(self.form, self._text)()
        )
        for block, segment in enumerate(re.finditer(f"[^{_BREAK}]+", overlaid)):
            begin, text = segment.start(), segment[0]
            at = 0
            for stop in [*_END.finditer(text), None]:
                end = len(text) if stop is None else stop.end()
                if stop is not None and _ABBREVIATED.search(
                    text[max(at, stop.start() - 12) : stop.start() + 1].replace(_GONE, "")
                ):
                    continue
                inner = text[at:end]
                first = len(inner) - len(inner.lstrip(f" \t\r\n\ufeff{_GONE}"))
                last = len(inner.rstrip(f" \t\r\n{_GONE}"))
                if last > first:
                    said = inner[first:last].replace(_GONE, "")
                    yield Sentence(said, begin + at + first, begin + at + last, block)
                at = end

    def replaceable(self, start: int, end: int) -> tuple[int, int] | None:
        """The place of a sentence with the markup that opens or closes in it; None if it cannot be cut out."""
        text = self.text
        before = re.search(r"(?:[*_`~\[!]|<\w[^<>]{0,200}>){0,8}$", text[max(0, start - 400) : start])
        after = re.match(r"(?:[*_`~]|\][(\[][^\s()\[\]]{0,300}[)\]]|</\w{1,20}>){0,8}", text[end : end + 400])
        begin = start - len(before[0] if before else "")
        finish = end + len(after[0] if after else "")
        for place in ((start, end), (begin, end), (start, finish), (begin, finish)):
            if self.form in ("latex", "text") or _balanced(text[slice(*place)]):
                return place
        return None

    def escaped(self, text: str) -> str:
        """A sentence as this form writes it."""
        if self.form == "latex":
            return re.sub(r"([%&_#$])", r"\\\1", text)
        return escape(text, quote=False) if self.form == "html" else text.replace("<", "&lt;")

    # --- overlays ---

    def _text(self) -> list[str]:
        chars = list(self.text)
        self._lines(chars, marked=False)
        return self._common(chars)

    def _markdown(self) -> list[str]:
        chars = list(self.text)
        text, head = self.text, re.match(r"(---|\+\+\+)[ \t]*\r?\n", self.text)
        if head and (end := text.find(f"\n{head[1]}", head.end() - 1)) >= 0:
            _fill(chars, 0, end + 4)
        self._comments(chars)
        self._lines(chars, marked=True)
        self._code_spans(chars)
        self._tags(chars)
        for found in _MARKDOWN.finditer("".join(chars)):
            if found[0].startswith("![") or not found[0].isspace():
                _fill(chars, *found.span(), with_=_GONE)
        return self._common(chars)

    def _html(self) -> list[str]:
        chars = list(self.text)
        self._comments(chars)
        self._tags(chars)
        return self._common(chars)

    def _latex(self) -> list[str]:
        chars, text, at = list(self.text), self.text, 0
        while found := _VERBATIM.search(text, at):
            end = text.find(f"\\end{{{found[1]}}}", found.end())
            at = len(text) if end < 0 else end
            _fill(chars, found.start(), at)
            chars[found.start()] = _BREAK
        for found in _LATEX.finditer("".join(chars)):
            _fill(chars, *found.span(), with_=_GONE)
            if _LATEX_BREAKS.match(found[0]):
                chars[found.start()] = _BREAK
        for found in _TITLE.finditer(text):
            chars[found.end() - 1] = _BREAK
        chars = list(
            re.sub(r"\n[ \t]*(?=\r?\n)", lambda one: _BREAK + _GONE * (len(one[0]) - 1), "".join(chars)).replace(
                "~", " "
            )
        )
        return self._common(chars)

    def _common(self, chars: list[str]) -> list[str]:
        text = "".join(chars)
        for found in _URL.finditer(text):
            _fill(chars, *found.span())
        if self.form in ("markdown", "html"):
            for found in _ENTITY.finditer(text):
                _fill(chars, *found.span(), with_=_GONE)
                chars[found.start()] = unescape(found[0])[:1]
        return [char if char >= " " or char in (_GONE, _BREAK, "\n", "\t") else " " for char in chars]

    def _lines(self, chars: list[str], *, marked: bool) -> None:
        """Blocks of lines: paragraphs, items, headings, cells of tables; without code between fences or indented."""
        fence, blank, quoted, item, at = "", True, False, False, 0
        for line in self.text.split("\n"):
            end = at + len(line)
            opened = _FENCE.match(line) if marked else None
            if fence:
                _fill(chars, at, end)
                fence = "" if opened and opened[1].startswith(fence) and not line[opened.end() :].strip() else fence
            elif opened:
                fence = opened[1]
                _fill(chars, at, end, with_=_BREAK)
            elif not line.strip(" \t\r>" if marked else " \t\r"):
                _fill(chars, at, end, with_=_GONE)
                if end < len(chars):
                    chars[end] = _BREAK
                blank = True
            else:
                indented = line.startswith(("    ", "\t"))
                if marked and ((blank and indented and not item) or _DEFINITION.match(line) or _RULE.match(line)):
                    _fill(chars, at, end, with_=_BREAK if _RULE.match(line) else " ")
                else:
                    item = self._marks(chars, line, at, quoted=quoted, marked=marked) or (item and indented)
                    quoted, blank = marked and _QUOTE.match(line) is not None, False
            at = end + 1

    def _marks(self, chars: list[str], line: str, at: int, *, quoted: bool, marked: bool) -> bool:
        """The marks at the beginning of a line; returns whether it begins an item."""
        quote = _QUOTE.match(line) if marked else None
        inner = 0 if quote is None else quote.end()
        if quote is not None:
            _fill(chars, at, at + inner, with_=_GONE if quoted else _BREAK)
        mark = _MARKER.match(line, inner)
        if mark is not None:
            _fill(chars, at + inner, at + mark.end(), with_=_BREAK)
            if "#" in mark[0] and at + len(line) < len(chars):
                chars[at + len(line)] = _BREAK
        if marked and line.lstrip(" \t").startswith("|"):
            for place in [at, *(at + found.start() for found in re.finditer(r"\|", line))]:
                chars[place] = _BREAK
        return mark is not None and "#" not in mark[0]

    def _code_spans(self, chars: list[str]) -> None:
        """Inline code: gone, except the names of agents."""
        ticks = list(re.finditer("`+", "".join(chars)))
        places: dict[int, list[int]] = {}
        for one in ticks:
            places.setdefault(len(one[0]), []).append(one.start())
        until = 0
        for one in ticks:
            same = places[len(one[0])]
            after = bisect_right(same, one.start())
            if one.start() < until or after == len(same) or same[after] - one.end() > _LONGEST_CODE:
                continue
            close, until = same[after], same[after] + len(one[0])
            inside = self.text[one.end() : close]
            if self.keep(inside.strip()):
                _fill(chars, *one.span(), with_=_GONE)
                _fill(chars, close, until, with_=_GONE)
            elif _BREAK not in chars[one.start() : close]:
                _fill(chars, one.start(), until)

    def _comments(self, chars: list[str]) -> None:
        at = 0
        while (begin := self.text.find("<!--", at)) >= 0:
            end = self.text.find("-->", begin + 4)
            at = len(self.text) if end < 0 else end + 3
            _fill(chars, begin, at)

    def _tags(self, chars: list[str]) -> None:
        """Tags: those inside of a line are gone, others end a block, and some elements are not read at all."""
        text = "".join(chars)
        lower, until = text.lower(), 0
        for tag in _TAG.finditer(text):
            name = tag[2].lower()
            if tag.start() < until:
                continue
            _fill(chars, *tag.span(), with_=_GONE)
            if name in _UNREAD and not tag[1] and not tag[0].endswith("/>"):
                close = lower.find(f"</{name}", tag.end())
                until = len(text) if close < 0 else close
                if not (name == "code" and self.keep(text[tag.end() : until].strip())):
                    _fill(chars, tag.end(), until)
            if name not in _INLINE and name not in _CODE:
                chars[tag.start()] = _BREAK


def form_of(name: str) -> Form:
    """The form of a file by its name: Markdown, HTML, LaTeX, or plain text."""
    return _FORMS.get(PurePath(name).suffix.lower(), "text")


def _fill(chars: list[str], start: int, end: int, *, with_: str = " ") -> None:
    """Overlay a place; line ends inside of blanks stay."""
    if end > start:
        chars[start:end] = [with_ if char != "\n" or with_ == _GONE else char for char in chars[start:end]]


def _balanced(text: str) -> bool:
    pairs = text.count("[") == text.count("]") and text.count("<") - text.count("</") == text.count("</")
    return pairs and not any(text.count(sign) % 2 for sign in ("**", "`", "~~"))
