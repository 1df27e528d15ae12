"""What every page is rendered with: the templates, their style and script, and the policy that lets nothing else in."""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from types import SimpleNamespace
from typing import Any, Final, Protocol, TypeVar

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from assaymark import __version__
from assaymark.claims.messages import Catalogue, english
from assaymark.encoding import content_id
from assaymark.report.blocks import Facts, Page, inline, level_words, markup_of, plain
from assaymark.report.charts.canvas import csv_text

# Long tables in pages of less than a megabyte each.


PAGE_BYTES: Final = 760_000
"""Room for rows on one page; the rest of a megabyte is for the frame around them and for markup."""

_PLAIN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,119}")
_HASHED: Final = re.compile(r".*-[0-9a-f]{8}")


class Sized(Protocol):
    """A row that knows about how many bytes it takes."""

    @property
    def size(self) -> int:
        """Bytes of the row on a page."""
        ...


R = TypeVar("R", bound=Sized)
T = TypeVar("T")


def paged(rows: Sequence[R], limit: int = PAGE_BYTES) -> tuple[tuple[R, ...], ...]:
    """The rows in order, in pages that stay within ``limit`` bytes; at least one page, which may be empty."""
    return paged_by(rows, lambda row: row.size, limit)


def paged_by(rows: Iterable[T], size_of: Callable[[T], int], limit: int) -> tuple[tuple[T, ...], ...]:
    """The same for what does not know its size.

    >>> paged_by("abcd", lambda _: 2, 5)
    (('a', 'b'), ('c', 'd'))
    """
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


def part_names(stem: str, pages: int) -> list[str]:
    """The files of something long, in order.

    >>> part_names("claims", 3)
    ['claims.html', 'claims-002.html', 'claims-003.html']
    """
    return [f"{stem}.html", *(f"{stem}-{at:03d}.html" for at in range(2, pages + 1))]


def in_parts(stem: str, pages: Sequence[T]) -> dict[str, T]:
    """The pages of something long by their files.

    >>> in_parts("claims", ["first", "second"])
    {'claims.html': 'first', 'claims-002.html': 'second'}
    """
    return dict(zip(part_names(stem, len(pages)), pages, strict=True))


def file_stems(folder: str, keys: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Where the pages of things with such keys lie, without their ending: safe as file names, and no two alike.

    >>> file_stems("agents", [("alder",), ("Birch",), ("../x",)])
    ('agents/alder', 'agents/Birch', 'agents/x-407cf666')
    """
    plain = ["-".join(key) for key in keys]
    seen = Counter(name.lower() for name in plain)
    found = []
    for key, name in zip(keys, plain, strict=True):
        safe = _PLAIN.fullmatch(name) and not _HASHED.fullmatch(name) and ".." not in name
        if safe and seen[name.lower()] == 1:
            found.append(f"{folder}/{name}")
            continue
        kept = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:80] or folder.removesuffix("s")
        found.append(f"{folder}/{kept}-{content_id(list(key))[:8]}")
    return tuple(found)


def beside(
    pages: Iterable[tuple[str, T]], *, part: str = "Part", parts: str = "Parts"
) -> Iterator[tuple[str, T, Markup]]:
    """Paths and what stands there, each with the links to the other parts, which lie in one folder.

    >>> [(path, rows, str(links)) for path, rows, links in beside([("calls/one.html", "rows")])]
    [('calls/one.html', 'rows', '')]
    """
    listed = tuple(pages)
    names = [path.rpartition("/")[2] for path, _ in listed]
    for at, (path, rows) in enumerate(listed):
        yield path, rows, pager(names, at, part, parts)


def pager(names: Sequence[str], at: int, part: str = "Part", parts: str = "Parts") -> Markup:
    """Links between the parts of something long, after the word for a part; nothing for a single page."""
    if len(names) < 2:
        return Markup("")
    links = Markup("").join(
        Markup('<b aria-current="page">{}</b>').format(place + 1)
        if place == at
        else Markup('<a href="{}">{}</a>').format(name, place + 1)
        for place, name in enumerate(names)
    )
    return Markup('<div class="pager" role="group" aria-label="{}">{} {}</div>').format(parts, part, links)


SCRIPTS: Final = ("page.js+tools.js",)
"""The scripts of a page that names none; names with a plus between them are one script."""

NO_SCRIPT: Final = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
"""The policy of a page without a script."""

_WORDS: Final = (
    "skip", "pages", "languages", "copy", "copied", "not_copied", "say_also", "open", "close", "covers", "search",
    "in_part",
    "shown", "withheld", "plan", "footer", "runs", "contents", "brush", "brush_from", "brush_to", "brush_said",
    "brush_line", "judges", "data", "save", "cite", "embed",
)  # fmt: skip


@cache
def environment() -> Environment:
    """The templates of this package, with every value escaped and an undefined one an error. ``ui`` are the words of
    the frame, in English where a page does not bring those of its own language."""
    made = Environment(
        loader=PackageLoader("assaymark.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.globals["ui"] = frame_words(english())
    made.globals["page"] = None
    made.filters["inline"] = inline
    made.filters["plain"] = plain
    made.filters["markup"] = markup_of
    made.filters["facts"] = lambda rows, root: markup_of(Facts(rows, wide=False), root)
    made.filters["marked"] = lambda tag, level: inline(level_words(level, tag))
    return made


def frame_words(catalogue: Catalogue) -> SimpleNamespace:
    """The words of the frame in a language, by name; ``lang`` is its code and ``point`` what stands before decimals.

    >>> frame_words(english()).copy
    'Copy'
    """
    known = {"lang": catalogue.language, "point": catalogue.decimal}
    return SimpleNamespace(**known, **{word: catalogue.say(f"frame.{word}") for word in _WORDS})


@cache
def asset(name: str) -> str:
    """A style sheet or script, without the comments and the spaces that only its author needs."""
    if "+" in name:
        return "".join(map(asset, name.split("+")))
    loader = environment().loader
    assert loader is not None
    source, _, _ = loader.get_source(environment(), name)
    if name.endswith(".css"):
        return _shortened(re.sub(r"/\*.*?\*/", "", source, flags=re.DOTALL), r"[{};,]").replace(";}", "}")
    return _shortened(re.sub(r"^\s*//.*", "", source, flags=re.MULTILINE), r"[-+*/%=<>!?:;,{}()&|\[\]]")


def _shortened(source: str, signs: str) -> str:
    """A text without space around some signs, and with one blank for any other; what stands in quotes stays.

    >>> _shortened('a  ; b { c: " ; " }', "[{};]")
    'a;b{c: " ; "}'
    """
    return re.sub(rf'("[^"\n]*")|\s*({signs})\s*|\s+', lambda found: found[1] or found[2] or " ", source).strip()


_BLOCK: Final = re.compile(r"@[^{;}]+\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}")
_RULE: Final = re.compile(r"([^{}]+)\{([^{}]*)\}")
_USED: Final = re.compile(r'\bclass="([^"]*)"')
_CLASS: Final = re.compile(r"\.([A-Za-z][\w-]*)")


def drawn_rules(sheets: Sequence[str], svg: str, scope: str = "") -> Iterator[str]:
    """The rules of style sheets about classes that a picture has, each held to a ``scope``."""
    used = set(" ".join(_USED.findall(svg)).split())
    for selectors, body in _rules(tuple(sheets)):
        kept = [
            selector for selector in selectors if _CLASS.search(selector) and used.issuperset(_CLASS.findall(selector))
        ]
        if kept:
            yield f"{','.join(scope + one for one in kept)}{{{body}}}"


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


@cache
def _colours(sheets: tuple[str, ...]) -> str:
    """What the colours of style sheets are on white paper."""
    css = "".join(_BLOCK.sub("", asset(name)) for name in sheets)
    return "".join(f"svg{{{body}}}" for name, body in _RULE.findall(css) if name == ":root")


_PAPER: Final = "svg{background:var(--bg);color-scheme:light}"


def picture(svg: str, sheets: Sequence[str], source: str) -> str:
    """A figure as a file of its own: its style, its light colours, and where it is from."""
    style = "".join((_colours(tuple(sheets)), _PAPER, *drawn_rules(sheets, svg)))
    about = Markup("<metadata>{}</metadata>").format(source)
    return svg.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1).replace(
        ">", f">{about}<style>{style}</style>", 1
    )


@cache
def content_security_policy(*scripts: str, connect: bool = False) -> str:
    """Nothing may be loaded, inline styles may apply, and no scripts may run but these of ours, by their hashes.
    Pictures may be made of what the page holds: a figure as a PNG. ``scripts`` are names of assets; without any, the
    one of every page. ``connect`` lets them ask the server that the page came from."""
    digests = " ".join(f"'sha256-{_digest(name)}'" for name in scripts or SCRIPTS)
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src {digests}; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )
    return f"{policy}; connect-src 'self'" if connect else policy


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(asset(script).encode()).digest()).decode()


@dataclass(frozen=True, slots=True)
class Link:
    """An entry of a menu: its name among the others, where it leads, and its words."""

    key: str
    href: str
    word: str


@dataclass(frozen=True, slots=True)
class Site:
    """A site of several runs, as the pages of one run see it.

    Attributes
    ----------
    runs : sequence of Link
        Every run by its key, seen from the folder of this run's pages. Empty for a run that stands alone.
    here : str
        The key of this run.
    home : str
        The first page of the whole site, seen from the same folder.
    """

    runs: tuple[Link, ...] = ()
    here: str = ""
    home: str = "index.html"

    def below(self, folders: int) -> Site:
        """The same site, seen from so many folders further down."""
        up = "../" * folders
        return Site(
            tuple(Link(run.key, up + run.href, run.word) for run in self.runs),
            self.here,
            up * bool(self.runs) + self.home,
        )


JUDGES: Final = "judges"
"""The key of the page of datasheets in the menu of a run that has them."""

ALONE: Final = Site()
"""Where a run stands whose pages are all there is."""


@dataclass(frozen=True, slots=True)
class Frame:
    """What stands around every page of one run: the menus, the style, the footer.

    Attributes
    ----------
    study : str
        What the run is called, for the title of the window. Cleaned.
    mark : str
        The short plan hash for the footer, or empty.
    nav : sequence of Link
        The pages of the run, seen from the folder they lie in.
    site : Site
    styles : sequence of str
        Style sheets of every page of the run, by name.
    ui : SimpleNamespace or None
        The words of the frame, where they are not English.
    """

    study: str
    mark: str
    nav: tuple[Link, ...]
    site: Site = ALONE
    styles: tuple[str, ...] = ("page.css",)
    ui: SimpleNamespace | None = None
    _files: dict[str, str] = field(default_factory=dict, compare=False, repr=False)

    def files(self) -> Iterator[tuple[str, str]]:
        """The files of the figures on the pages that were made since the last call, as path and text."""
        while self._files:
            yield self._files.popitem()

    def cited(self, title: str) -> str:
        """How a figure is cited."""
        parts = (f"Figure: {title}", self.study, self.mark and f"plan {self.mark}", f"assaymark {__version__}")
        return ", ".join(filter(None, parts)) + "."

    def embedded(self, path: str, title: str) -> str:
        """How a page of somebody else shows a figure."""
        return f'<img src="{path}.svg" alt="{escape(title)}">'

    def render(
        self,
        template: str,
        title: str,
        *,
        here: str = "",
        root: str = "",
        styles: Sequence[str] = (),
        scripts: Sequence[str] = SCRIPTS,
        connect: bool = False,
        **values: Any,
    ) -> str:
        """One page."""
        words = {} if self.ui is None else {"ui": self.ui}
        return (
            environment()
            .get_template(template)
            .render(
                csp=content_security_policy(*scripts, connect=connect) if scripts else NO_SCRIPT,
                css="\n".join(asset(name) for name in (*self.styles, *styles)),
                scripts=[asset(name) for name in scripts],
                frame=self,
                here=here,
                root=root,
                title=title,
                version=__version__,
                **words,
                **values,
            )
        )

    def page(self, page: Page, switch: Sequence[tuple[str, str, str]] = ()) -> str:
        """A page of blocks; its links are those of the folder of the run. ``switch`` are its other languages."""
        drawn = page.figures
        for one in drawn:
            path = page.file_of(one)
            self._files[f"{path}.svg"] = picture(one.wide, (*self.styles, *page.styles), self.cited(one.title))
            if one.rows is not None:
                rows = (tuple(map(plain, row.cells)) for row in one.rows.lines)
                self._files[f"{path}.csv"] = csv_text(tuple(map(plain, one.rows.heads)), rows)
        more = "+figure.js" if drawn else ""
        return self.render(
            "page.html",
            page.title,
            here=page.here,
            root="../" * page.path.count("/"),
            styles=page.styles,
            scripts=(page.scripts[0] + more, *page.scripts[1:]),
            page=page,
            switch=switch,
        )
