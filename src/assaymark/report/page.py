"""The environment that renders every page: templates, styles and scripts, and the content security policy."""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from operator import attrgetter
from types import SimpleNamespace
from typing import Any, Final, TypeVar

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from assaymark import __version__
from assaymark.claims.messages import Catalogue, english
from assaymark.records import content_id
from assaymark.report.blocks import Mark, Page, Terms, filter_id, inline, markup_in, markup_of, plain, rows_markup
from assaymark.report.charts.canvas import csv_text

PAGE_BYTES: Final = 760_000
"""Maximum bytes of rows on one page; the rest of a megabyte is for the frame around them and for markup."""

_PLAIN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,119}")
_HASHED: Final = re.compile(r".*-[0-9a-f]{8}")

T = TypeVar("T")


def paginate(
    rows: Iterable[T], limit: int = PAGE_BYTES, size_of: Callable[[T], int] = attrgetter("size")
) -> tuple[tuple[T, ...], ...]:
    """The rows in order, split into pages of about ``limit`` bytes; at least one page, which may be empty."""
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


def by_file(
    stem: str, rows: Iterable[T], limit: int = PAGE_BYTES, size_of: Callable[[T], int] = attrgetter("size"),
    further: str = "-{:03d}",
) -> dict[str, tuple[T, ...]]:  # fmt: skip
    """The pages of some rows by their file names: ``stem.html``, ``stem-002.html`` and so on."""
    pages = enumerate(paginate(rows, limit, size_of), 1)
    return {f"{stem}{further.format(at) if at > 1 else ''}.html": page for at, page in pages}


def file_stems(folder: str, keys: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """A path for each key, without extension: safe as a file name, and no two alike."""
    plain = ["-".join(key) for key in keys]
    counts = Counter(name.lower() for name in plain)
    stems = []
    for key, name in zip(keys, plain, strict=True):
        safe = _PLAIN.fullmatch(name) and not _HASHED.fullmatch(name) and ".." not in name
        if safe and counts[name.lower()] == 1:
            stems.append(f"{folder}/{name}")
            continue
        slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:80] or folder.removesuffix("s")
        stems.append(f"{folder}/{slug}-{content_id(list(key))[:8]}")
    return tuple(stems)


def with_pager(
    pages: Iterable[tuple[str, T]], *, part: str = "Part", parts: str = "Parts"
) -> Iterator[tuple[str, T, Markup]]:
    """Each path and its rows, with the links to the other parts, which are in the same folder."""
    listed = tuple(pages)
    names = [path.rpartition("/")[2] for path, _ in listed]
    here, other = Markup('<b aria-current="page">{}</b>'), Markup('<a href="{}">{}</a>')
    for at, (path, rows) in enumerate(listed, 1):
        links = Markup("").join(
            here.format(place) if place == at else other.format(name, place) for place, name in enumerate(names, 1)
        )
        pager = Markup('<div class="pager" role="group" aria-label="{}">{} {}</div>').format(parts, part, links)
        yield path, rows, pager if len(names) > 1 else Markup("")


SCRIPTS: Final = ("page.js+tools.js",)
"""The scripts of a page that names none; names with a plus between them are one script."""

NO_SCRIPT: Final = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
"""The policy of a page without a script."""

_WORDS: Final = (
    "skip", "pages", "languages", "copy", "copied", "not_copied", "say_also", "open", "close", "covers", "search",
    "in_part", "shown", "withheld", "plan", "footer", "runs", "contents", "brush", "brush_from", "brush_to",
    "brush_said", "brush_line", "judges", "data", "save", "cite", "embed",
)  # fmt: skip


@cache
def environment() -> Environment:
    """The templates: values are escaped, undefined ones fail; ``ui`` are the frame's words, English by default."""
    templates = Environment(
        loader=PackageLoader("assaymark.report", "templates"), undefined=StrictUndefined,
        autoescape=True, trim_blocks=True, lstrip_blocks=True, auto_reload=False,
    )  # fmt: skip
    templates.globals |= {"ui": frame_words(english()), "page": None}
    templates.filters |= {
        "inline": inline, "plain": plain, "markup": markup_of, "within": markup_in, "rows": rows_markup,
        "only": filter_id, "facts": lambda rows, root: markup_of(Terms(rows, wide=False), root),
        "marked": lambda tag, level: inline(Mark(level, tag)),
    }  # fmt: skip
    return templates


def frame_words(catalogue: Catalogue) -> SimpleNamespace:
    """The words of the frame in a language, by name; ``lang`` is its code and ``point`` its decimal separator."""
    settings = {"lang": catalogue.language, "point": catalogue.decimal}
    return SimpleNamespace(**settings, **{word: catalogue.say(f"frame.{word}") for word in _WORDS})


@cache
def asset(name: str) -> str:
    """A style sheet or script, minified."""
    if "+" in name:
        return "".join(map(asset, name.split("+")))
    loader = environment().loader
    assert loader is not None
    source, _, _ = loader.get_source(environment(), name)
    if name.endswith(".css"):
        return _shortened(re.sub(r"/\*.*?\*/", "", source, flags=re.DOTALL), r"[{};,]").replace(";}", "}")
    return _shortened(re.sub(r"^\s*//.*", "", source, flags=re.MULTILINE), r"[-+*/%=<>!?:;,{}()&|\[\]]")


def _shortened(source: str, signs: str) -> str:
    """A source without space around some signs and with single blanks elsewhere; quoted strings stay unchanged."""
    return re.sub(rf'("[^"\n]*")|\s*({signs})\s*|\s+', lambda match: match[1] or match[2] or " ", source).strip()


_BLOCK: Final = re.compile(r"@[^{;}]+\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}")
_RULE: Final = re.compile(r"([^{}]+)\{([^{}]*)\}")
_USED: Final = re.compile(r'\bclass="([^"]*)"')
_CLASS: Final = re.compile(r"\.([A-Za-z][\w-]*)")


def used_rules(sheets: Sequence[str], svg: str, scope: str = "") -> Iterator[str]:
    """The rules of style sheets for classes that a picture uses, each restricted to a ``scope``."""
    used = set(" ".join(_USED.findall(svg)).split())
    for selectors, body in _style_rules(tuple(sheets))[0]:
        if matching := [scope + selector for selector, names in selectors if names and used.issuperset(names)]:
            yield f"{','.join(matching)}{{{body}}}"


@cache
def _style_rules(sheets: tuple[str, ...]) -> tuple[list[tuple[list[tuple[str, list[str]]], str]], str]:
    """The plain rules of style sheets as selectors with their classes, and the colours; without media blocks,
    pseudo-classes and combinators."""
    rules = _RULE.findall("\n".join(_BLOCK.sub("", asset(name)) for name in sheets))
    listed = ([one.strip() for one in names.split(",") if not set(one) & set(":[#*>~")] for names, _ in rules)
    split = [([(one, _CLASS.findall(one)) for one in each], rule[1]) for each, rule in zip(listed, rules, strict=True)]
    colours = "".join(f"svg{{{body}}}" for name, body in rules if name.strip() == ":root")
    return [rule for rule in split if rule[0]], colours


_PAPER: Final = "svg{background:var(--bg);color-scheme:light}"


def picture(svg: str, sheets: Sequence[str], source: str) -> str:
    """A figure as a standalone file, with its style, its light colours and its source."""
    style = "".join((_style_rules(tuple(sheets))[1], _PAPER, *used_rules(sheets, svg)))
    about = Markup("<metadata>{}</metadata>").format(source)
    named = svg.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1)
    return named.replace(">", f">{about}<style>{style}</style>", 1)


@cache
def content_security_policy(*scripts: str, connect: bool = False) -> str:
    """A policy that loads nothing and runs only our scripts, by hash; ``connect`` allows requests to the server."""
    hashes = (hashlib.sha256(asset(name).encode()).digest() for name in scripts or SCRIPTS)
    digests = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in hashes)
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src {digests}; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )
    return f"{policy}; connect-src 'self'" if connect else policy


def script_data(packed: str) -> Markup:
    """JSON for a script element, with signs escaped so that no text can end the element."""
    return Markup(packed.translate({ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&"}))


@dataclass(frozen=True, slots=True)
class Link:
    """An entry of a menu: its key, its target and its label."""

    key: str
    href: str
    word: str


@dataclass(frozen=True, slots=True)
class Site:
    """A site of several runs, as seen from the pages of the run ``here``; ``home`` is its first page."""

    runs: tuple[Link, ...] = ()
    here: str = ""
    home: str = "index.html"

    def below(self, folders: int) -> Site:
        """The same site, seen from ``folders`` levels further down."""
        up = "../" * folders
        runs = tuple(Link(run.key, up + run.href, run.word) for run in self.runs)
        return Site(runs, self.here, up * bool(self.runs) + self.home)


JUDGES: Final = "judges"
"""The key of the page of datasheets in the menu of a run that has them."""

ALONE: Final = Site()
"""The site of a run that is the only one."""


@dataclass(frozen=True, slots=True)
class Frame:
    """The frame around every page of one run: the menus, the style, the footer with the short plan hash."""

    study: str
    mark: str
    nav: tuple[Link, ...]
    site: Site = ALONE
    styles: tuple[str, ...] = ("page.css",)
    ui: SimpleNamespace | None = None
    _files: dict[str, str] = field(default_factory=dict, compare=False, repr=False)

    def files(self) -> Iterator[tuple[str, str]]:
        """The files of the figures on pages rendered since the last call, as path and text."""
        while self._files:
            yield self._files.popitem()

    def cited(self, title: str) -> str:
        """The citation of a figure."""
        parts = (f"Figure: {title}", self.study, self.mark and f"plan {self.mark}", f"assaymark {__version__}")
        return ", ".join(filter(None, parts)) + "."

    def embedded(self, path: str, title: str) -> str:
        """The HTML that embeds a figure in another page."""
        return f'<img src="{path}.svg" alt="{escape(title)}">'

    def render(
        self, template: str, title: str, here: str = "", root: str = "", styles: Sequence[str] = (),
        scripts: Sequence[str] = SCRIPTS, connect: bool = False, **values: Any,
    ) -> str:  # fmt: skip
        """Render one page."""
        values |= {} if self.ui is None else {"ui": self.ui}
        return environment().get_template(template).render(
            values, frame=self, here=here, root=root, title=title, version=__version__,
            csp=content_security_policy(*scripts, connect=connect) if scripts else NO_SCRIPT,
            css="\n".join(map(asset, (*self.styles, *styles))), scripts=list(map(asset, scripts)),
        )  # fmt: skip

    def page(self, page: Page, switch: Sequence[tuple[str, str, str]] = ()) -> str:
        """Render a page of blocks; its links are relative to the run folder. ``switch`` are its other languages."""
        drawn = page.figures
        for figure in drawn:
            path = page.file_of(figure)
            self._files[f"{path}.svg"] = picture(figure.wide, (*self.styles, *page.styles), self.cited(figure.title))
            if figure.rows is not None:
                rows = (tuple(map(plain, row.cells)) for row in figure.rows.lines)
                self._files[f"{path}.csv"] = csv_text(tuple(map(plain, figure.rows.columns)), rows)
        first, *others = page.scripts
        return self.render(
            "page.html", page.title, page.here, "../" * page.path.count("/"), page.styles,
            (first + "+figure.js" * bool(drawn), *others), page=page, switch=switch,
        )  # fmt: skip
