"""Pages of a run in another language: an English text is the key of its translation.

A table of a language (`assaymark/claims/messages/pages`) has English texts with ``#`` for a number and ``§`` for any
other words, each with its translation, in which fields stand in the same order or as ``§2``, ``#1``. A text that is not
in the table is split into its sentences and clauses; those that are not found stay English.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from html import escape, unescape
from importlib.resources import files
from posixpath import dirname, join, normpath
from typing import Any, Final

from assaymark.errors import UnknownNameError
from assaymark.report.page import script_data

# Pages of records (calls, answers, measurements) stay in the language of what they record.
_NAMED: Final = (
    "index|sentences|datasheets|agents|agreement|stability|claims|controls|fact-check|claim-map|plan|scores|data|"
    "profiles|histories|episodes"
)
_PAGES: Final = re.compile(rf"(({_NAMED})(-\d+)?|datasheet/[^/]+)\.html")
_PICTURES: Final = re.compile(rf"figures/({_NAMED})[^/]*\.svg")
_NUMBER: Final = r"([+−-]?(?:\d[\d,]*(?:\.\d+)?|\.\d+))"
_SHARE: Final = re.compile(rf"(?<= ){_NUMBER}(?=\s%(?:,| and |$))")
_TELLING: Final = 12
_GROUP: Final = {"#": _NUMBER, "§": r"((?:(?![.!?]”? [A-Z(]).)+?)"}  # words of one sentence
_FIELD: Final = re.compile(r"([#§])(\d?)")
_PARTS: Final = ((r"(?<=[.!?”]) (?=[^a-z])", " "), (": ", ": "), (", ", ", "))
_BETWEEN: Final = {", ": ", ", " and ": " und ", " or ": " oder "}
_NAMES: Final = r"(?:[^\s,;:]+, )*[^\s,;:]+ and [^\s,;:]*[^\s,.;:]"  # a version may have a dot
_SPOKEN: Final = re.compile(
    r"(?P<kept><(?P<tag>script|style|code|pre)\b.*?</(?P=tag)>)|(?<=>)(?P<text>[^<>]+)(?=<)|"
    r'\b(?P<name>aria-label|placeholder|data-(?:l|shown|said|copy|v|line|brush|point)|content)="(?P<value>[^"]*)"',
    re.DOTALL,
)
_LINK: Final = re.compile(r'\bhref="(?![a-z]+:|#)([^"]+)"')
_LITERAL: Final = re.compile(r'"([^"\n]*)"')
_STYLE: Final = (
    ".switch{display:flex;gap:14px;margin-left:auto;font-size:14px}.switch a,.switch span{min-height:26px}"
    ".top .wrap{flex-wrap:wrap;row-gap:0}@media print{.switch{display:none}}"
)


@dataclass(frozen=True, slots=True)
class Translation:
    """A language of pages. Calling it translates a text; None if the table does not have it."""

    language: str
    name: str
    exact: Mapping[str, str]
    patterns: tuple[tuple[str, re.Pattern[str], str, str, bool], ...]
    cache: dict[str, str | None] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, source: str) -> Translation:
        """Parse a language from its table.

        >>> made = Translation.of('language = "de"\\nname = "Deutsch"\\n[texts]\\n"§ above §" = "§2 unter §1"')
        >>> made("a above b"), made("a below b")
        ('b unter a', None)
        """
        table = tomllib.loads(source)
        texts: Mapping[str, str] = table["texts"]
        patterns = []
        for english in sorted(texts, key=lambda text: (-len(_FIELD.sub("", text)), text)):
            if _FIELD.search(english):
                parts = (_GROUP.get(part) or re.escape(part) for part in re.split("([#§])", english))
                kinds = "".join(match[1] for match in _FIELD.finditer(english))
                telling = len(re.findall("[A-Za-z]", english)) > _TELLING
                literal = max(_FIELD.split(english)[::3], key=len)
                patterns.append((literal, re.compile("".join(parts)), kinds, texts[english], telling))
        return cls(table["language"], table["name"], texts, tuple(patterns))

    def __call__(self, text: str) -> str | None:
        """The translation of a text, with a decimal comma in numbers; None if the table does not have it."""
        if text not in self.cache:
            self.cache[text] = self._found(text)
        return self.cache[text]

    def _found(self, text: str) -> str | None:
        plain = " ".join(text.split())
        if plain in self.exact:
            return self.exact[plain]
        if not re.search("[A-Za-z]", plain):
            return re.sub(rf"(?<![\d.]){_NUMBER}(?!\.?\d)", lambda number: _comma(number[0]), text)
        if plain[0] == "“" and plain[-1] == "”" and (quoted := self(plain[1:-1])) is not None:
            return f"{self.exact['open']}{quoted}{self.exact['close']}"
        clauses = plain.split("; ")
        if len(clauses) > 1 and None not in (translated := [self(clause) for clause in clauses]):
            return "; ".join(map(str, translated))
        if (matched := self._matched(plain, telling=True)) is not None:
            return matched
        if re.fullmatch(_NAMES, plain):
            return self._listed(plain)
        for cut, between in _PARTS:
            pieces = re.split(cut, plain)
            if len(pieces) > 1 and None not in (translated := [self(piece) for piece in pieces]):
                return between.join(map(str, translated))
        head, _, rest = plain.partition(": ")
        if rest and (made_rest := self(rest)) is not None:  # a name before a colon
            return f"{self(head) or head}: {made_rest}"
        if (matched := self._matched(plain, telling=False)) is not None:
            return matched
        if plain.endswith(".") and (made_whole := self(plain[:-1])) is not None:
            return f"{made_whole}."
        for sign in ("α", "ICC"):  # texts about agreement are keyed by kappa, whatever measures it
            if sign in plain and (made_whole := self(plain.replace(sign, "κ"))) is not None:
                return made_whole.replace("κ", sign)
        pieces = plain.split(" · ")
        return " · ".join(self(piece) or piece for piece in pieces) if len(pieces) > 1 else None

    def _matched(self, plain: str, *, telling: bool) -> str | None:
        """The translation by the first matching pattern; ``telling`` selects patterns with many literal letters."""
        # The longest literal of a pattern is searched first: matching the expression takes many times as long.
        matches = ((pattern.fullmatch(plain), kinds, template) for own, pattern, kinds, template, tells in self.patterns
                   if tells == telling and own in plain)  # fmt: skip
        matched, kinds, translated = next((match for match in matches if match[0]), (None, "", ""))
        if matched is None:
            return None  # else its fields; numbers and words are numbered separately
        pairs = [*zip(matched.groups(), kinds, strict=True)]
        named = {kind: [part for part, its in pairs if its == kind] for kind in "#§"}
        queues = {kind: iter(these) for kind, these in named.items()}

        def fill(match: re.Match[str]) -> str:
            kind, at = match[1], match[2]
            value = named[kind][int(at) - 1] if at else next(queues[kind])
            if kind == "#":
                return _comma(value)
            return self(value) or self._listed(_SHARE.sub(lambda share: _comma(share[0]), value))

        return _FIELD.sub(fill, translated)

    def _listed(self, names: str) -> str:
        parts = re.split("(, | and | or )", names)
        return "".join(_BETWEEN.get(part) or self(part) or part for part in parts)

    def render(self, text: str) -> str:
        """A translated text with its surrounding space; sentences that the table does not have stay English."""
        plain = text.strip()
        translated = self(plain) if plain else ""
        if translated is None:
            translated = " ".join(self(part) or part for part in re.split(_PARTS[0][0], plain))
        return text.replace(plain, translated) if plain else text

    def page(self, html: str, folder: str = "") -> str:
        """Translate a page of a folder; links to pages that are not translated lead one folder up."""
        spoken = _SPOKEN.sub(self._spoken, html.replace('<html lang="en">', f'<html lang="{self.language}">', 1))
        return _LINK.sub(lambda match: f'href="{_from_below(match[1], folder)}"', spoken)

    def _spoken(self, match: re.Match[str]) -> str:
        tag: str | None = match["kept"]
        if tag is None and match["name"]:
            texts = unescape(match["value"]).split("|")  # such as days
            return f'{match["name"]}="{escape("|".join(map(self.render, texts)))}"'
        if tag is None:
            return escape(self.render(unescape(match["text"])), quote=False)
        # A script of a page; the texts that the sentence bench reads are translated.
        if 'id="b-data"' not in tag:
            return tag
        head, source = tag.removesuffix("</script>").split(">", 1)
        data: dict[str, Any] = json.loads(source)
        for gate in data["gates"]:
            for cut in gate[2][1] if gate[2] else ():
                cut[1] = self.render(cut[1])
        data["texts"] = [_from_below(text) if ".html" in text else self.render(text) for text in data["texts"]]
        data["scores"] = [[name, self.render(words)] for name, words in data["scores"]]
        data["rules"] = [[name, *map(self.render, words), tally] for name, *words, tally in data["rules"]]
        return f"{head}>{script_data(json.dumps(data, separators=(',', ':')))}</script>"

    def script(self, source: str) -> str:
        """Translate the words in a script: literals that begin with a capital or a sign, or that contain a blank."""

        def literal(match: re.Match[str]) -> str:
            return f'"{self.render(match[1])}"' if re.match("[A-Z,:]|.* .", match[1]) else match[0]

        quoted = source.replace("`“${", f"`{self.exact['open']}${{").replace("}”", f"}}{self.exact['close']}")
        return _LITERAL.sub(literal, quoted).replace('toLocaleString("en")', f'toLocaleString("{self.language}")')


def _comma(number: str) -> str:
    """A number with a decimal comma.

    >>> _comma("1,946"), _comma("+0.46"), _comma(".001")
    ('1.946', '+0,46', '0,001')
    """
    return ("0" * number.startswith(".") + number).translate({44: ".", 46: ","})


def _from_below(link: str, folder: str = "") -> str:
    """A link of a page in a folder of the report, adjusted for the page's place in the folder of a language."""
    page = normpath(join(folder, link.partition("#")[0]))
    return link if link.startswith("#") or _PAGES.fullmatch(page) or _PICTURES.fullmatch(page) else f"../{link}"


@cache
def translation(language: str) -> Translation:
    """A language that is part of the package."""
    folder = files("assaymark.claims.messages") / "pages"
    languages = sorted(file.name.removesuffix(".toml") for file in folder.iterdir() if file.name.endswith(".toml"))
    if language not in languages:
        raise UnknownNameError("language", language, languages)
    return Translation.of((folder / f"{language}.toml").read_text(encoding="utf-8"))


def in_language(pages: Iterable[tuple[str, str]], language: str) -> Iterator[tuple[str, str]]:
    """Every page, and its translation in the folder of the language (if any), each with a link to the other."""
    if not language:
        yield from pages
        return
    translator = translation(language)
    for path, text in pages:
        if _PICTURES.fullmatch(path):
            yield f"{language}/{path}", _SPOKEN.sub(translator._spoken, text)
        if not _PAGES.fullmatch(path):
            yield path, text
            continue
        up = "../" * bool(folder := dirname(path))
        yield path, _switched(text, ("English", ""), (translator.name, f"{up}{language}/{path}"))
        # The page with translated scripts, and a policy that allows them by their hashes.
        html = _switched(translator.page(text, folder), ("English", f"../{up}{path}"), (translator.name, ""))
        for source in re.findall(r"<script>(.*?)</script>", html, re.DOTALL):
            spoken = translator.script(source)
            old, new = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (source, spoken))
            html = html.replace(source, spoken).replace(f"sha256-{old}", f"sha256-{new}")
        yield f"{language}/{path}", html


def _switched(html: str, *ways: tuple[str, str]) -> str:
    """A page with links to its languages."""
    items = "".join(
        f'<li><a href="{href}">{name}</a></li>' if href else f'<li><span aria-current="true">{name}</span></li>'
        for name, href in ways
    )
    switch = f'<ul class="switch" aria-label="Languages">{items}</ul></div></header>'
    return html.replace("</style>", f"{_STYLE}</style>", 1).replace("</div></header>", switch, 1)
